/* SPDX-License-Identifier: MIT */
/* Requantization of 16 sums, see quant/requantize.h. For aarch64. */
#ifndef QK_REQUANTIZE_NEON_H
#define QK_REQUANTIZE_NEON_H

#include <arm_neon.h>

#include "base/base.h"

typedef struct limits {
    int16x8_t zp;
    uint8x16_t lo, hi;
} limits;

static inline limits limits_of(int32_t zp, int32_t lo, int32_t hi) {
    return (limits){vdupq_n_s16((int16_t)zp), vdupq_n_u8((uint8_t)lo), vdupq_n_u8((uint8_t)hi)};
}

/*
 * Conversion rounds half to even and saturates, and later steps saturate, too: so the definition's
 * clamp may come last.
 */
static inline int32x4_t scale(int32x4_t acc, float32x4_t m) {
    return vcvtnq_s32_f32(vmulq_f32(vcvtq_f32_s32(acc), m));
}

static inline uint8x16_t pack_bytes(const limits *l, int32x4_t v0, int32x4_t v1, int32x4_t v2,
                                    int32x4_t v3) {
    const int16x8_t a = vqaddq_s16(vqmovn_high_s32(vqmovn_s32(v0), v1), l->zp);
    const int16x8_t b = vqaddq_s16(vqmovn_high_s32(vqmovn_s32(v2), v3), l->zp);
    return vminq_u8(vmaxq_u8(vqmovun_high_s16(vqmovun_s16(a), b), l->lo), l->hi);
}

#endif
