/* SPDX-License-Identifier: MIT */
/*
 * Floats narrower than float32: float16, bfloat16, float4e2m1 and the float8 types of ONNX with
 * fractions. Each of their values is a float32; converting to them rounds once, from a double, to
 * nearest even.
 */
#ifndef QS_MINIFLOAT_H
#define QS_MINIFLOAT_H

#include "base/base.h"

typedef struct qs_minifloat {
    int8_t mantissa, exponent; /* bits */
    int8_t bias;
    uint16_t infinity; /* magnitude bits; 0: there is none */
    uint16_t nan;
    uint16_t largest; /* magnitude bits of the largest finite value */
    bool no_minus_zero;
} qs_minifloat;

/* Whether an element type is float16 or bfloat16; for qs_is_real also float or double. */
static inline bool qs_is_half(int32_t dtype) {
    return dtype == QSIM_FLOAT16 || dtype == QSIM_BFLOAT16;
}

static inline bool qs_is_real(int32_t dtype) {
    return dtype == QSIM_FLOAT || dtype == QSIM_DOUBLE || qs_is_half(dtype);
}

/* The format of an element type; NULL: it is none of these. */
const qs_minifloat *qs_minifloat_of(int32_t dtype);

/* The value that `bits` stand for. */
float qs_minifloat_value(const qs_minifloat *f, uint32_t bits);

/*
 * The bits nearest to v. A value that rounds beyond the largest finite one becomes that with
 * `saturate`, else infinity or, where the format has none, NaN. The caller has set rounding to
 * nearest even (qs_fp_enter).
 */
uint32_t qs_minifloat_bits(const qs_minifloat *f, double v, bool saturate);

/*
 * Convert float16 (IEEE 754 binary16) and bfloat16 to float, without branches, so that loops
 * vectorize. A subnormal float16 becomes 2^-14 plus its value, and 2^-14 is subtracted. A NaN
 * becomes quiet.
 */
static inline float qs_half_value(uint16_t h) {
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, m = (uint32_t)(h & 0x7fffu) << 13;
    uint32_t bits = m + (m < 0x0f800000u ? 112u << 23 : 224u << 23), small = m + (113u << 23);
    float value;
    memcpy(&value, &small, sizeof(value));
    value -= 0x1p-14f;
    memcpy(&small, &value, sizeof(small));
    bits = (m < 1u << 23 ? small : bits) | (m > 0x0f800000u ? 1u << 22 : 0) | sign;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline float qs_brain_value(uint16_t b) {
    const uint32_t bits = (uint32_t)b << 16;
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

#endif
