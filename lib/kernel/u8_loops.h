/* SPDX-License-Identifier: MIT */
/*
 * Macros that instantiate the loops of the 8-bit family, once for each instruction set:
 *
 *   QK_U8_PAIRS(suffix, target)      defines <name>_<suffix>; target: an attribute or nothing
 *   QK_U8_PIECEWISE(suffix, target)  defines piecewise_<suffix>
 *   QK_U8_SHUFFLE(suffix)            defines shuffle_<suffix> by table_<suffix>
 *   QK_U8_SHUFFLE32(suffix, target)  defines qk_shuffle32_<suffix> by weave32_<suffix>
 *   QK_U8_INSTANCE(suffix, target, of)   defines qk_u8_<suffix>, with the transposes of `of`
 *
 * The compiler vectorizes them; nothing in them depends on the width, so the bits are the same.
 */
#ifndef QK_U8_LOOPS_H
#define QK_U8_LOOPS_H

#include "kernel/u8.h"
#include "quant/requantize.h"

static inline float qk_u8_term(uint8_t v, uint8_t flip, int32_t zp) {
    return (float)((int32_t)(v ^ flip) - zp);
}

static inline uint8_t qk_u8_store(float v, const qk_u8_pair *w) {
    v = qs_minf(qs_maxf(v, w->lo), w->hi);
    return (uint8_t)((qs_round_even(v) + w->zc) ^ w->flip_c);
}

/*
 * `step_a`, `step_b`, `mul`: constants, so that each loop vectorizes. c may be b, but does not
 * overlap it otherwise.
 */
QS_INLINE void qk_u8_pair_loop(const uint8_t *a, size_t step_a, const uint8_t *b, size_t step_b,
                               uint8_t *c, size_t n, const qk_u8_pair *w, bool mul) {
    const qk_u8_pair k = *w;
    QS_IVDEP
    for (size_t i = 0; i < n; i++) {
        const float ta = qk_u8_term(a[i * step_a], k.flip_a, k.za);
        const float tb = qk_u8_term(b[i * step_b], k.flip_b, k.zb);
        c[i] = qk_u8_store(mul ? (ta * tb) * k.ma : k.ma * ta + k.mb * tb, &k);
    }
}

#define QK_U8_PAIR(name, suffix, TARGET, mul)                                                      \
    TARGET static void name##_##suffix(const uint8_t *a, size_t sa, const uint8_t *b, size_t sb,   \
                                       uint8_t *c, size_t n, const qk_u8_pair *w) {                \
        if (sa && sb)                                                                              \
            qk_u8_pair_loop(a, 1, b, 1, c, n, w, mul);                                             \
        else if (sa)                                                                               \
            qk_u8_pair_loop(a, 1, b, 0, c, n, w, mul);                                             \
        else                                                                                       \
            qk_u8_pair_loop(a, 0, b, sb, c, n, w, mul);                                            \
    }

/* Result c of a row's byte x. */
static inline uint8_t qk_u8_piece(const qk_piecewise *w, size_t c, uint8_t x) {
    const float d = (float)((int32_t)x - w->zx);
    const float v = d * (d < 0 ? w->below[c] : w->above[c]) + w->offset[c];
    return (uint8_t)(qs_round_even(qs_minf(qs_maxf(v, w->lo), w->hi)) + w->zy);
}

#define QK_U8_PIECEWISE(suffix, TARGET)                                                            \
    TARGET static void piecewise_##suffix(const qk_piecewise *w, const uint8_t *x, uint8_t *y,     \
                                          size_t n, size_t rows) {                                 \
        const qk_piecewise k = *w;                                                                 \
        for (size_t r = 0; r < rows; r++, x += n, y += n) {                                        \
            QS_IVDEP                                                                               \
            for (size_t c = 0; c < n; c++)                                                         \
                y[c] = qk_u8_piece(&k, c, x[c]);                                                   \
        }                                                                                          \
    }

#define QK_U8_TABLE(suffix, TARGET)                                                                \
    TARGET static void table_##suffix(const uint8_t *restrict table, const uint8_t *x,             \
                                      size_t x_stride, uint8_t *y, size_t y_stride, size_t n,      \
                                      size_t rows) {                                               \
        for (size_t r = 0; r < rows; r++, x += x_stride, y += y_stride)                            \
            for (size_t i = 0; i < n; i++)                                                         \
                y[i] = table[x[i]];                                                                \
    }

#define QK_U8_QUANTIZE(suffix, TARGET)                                                             \
    TARGET static void quantize_##suffix(const float *restrict x, size_t n, float scale,           \
                                         int32_t zp, uint8_t flip, uint8_t *restrict y) {          \
        const float lo = (float)-zp, hi = (float)(255 - zp);                                       \
        for (size_t i = 0; i < n; i++) {                                                           \
            const float v = qs_minf(qs_maxf(x[i] / scale, lo), hi);                                \
            y[i] = (uint8_t)((qs_round_even(v) + zp) ^ flip);                                      \
        }                                                                                          \
    }

#define QK_U8_DEQUANTIZE(suffix, TARGET)                                                           \
    TARGET static void dequantize_##suffix(const uint8_t *restrict x, size_t n, float scale,       \
                                           int32_t zp, uint8_t flip, float *restrict y) {          \
        for (size_t i = 0; i < n; i++)                                                             \
            y[i] = qk_u8_term(x[i], flip, zp) * scale;                                             \
    }

#define QK_U8_INTERLEAVE_LOOP(count)                                                               \
    for (size_t i = 0; i < n; i++)                                                                 \
        for (size_t c = 0; c < (count); c++)                                                       \
            y[i * (count) + c] = x[c * plane + i];

#define QK_U8_INTERLEAVE(suffix, TARGET)                                                           \
    TARGET static void interleave_##suffix(const uint8_t *restrict x, size_t plane, size_t planes, \
                                           uint8_t *restrict y, size_t n) {                        \
        if (planes == 2) {                                                                         \
            QK_U8_INTERLEAVE_LOOP(2)                                                               \
        } else if (planes == 3) {                                                                  \
            QK_U8_INTERLEAVE_LOOP(3)                                                               \
        } else {                                                                                   \
            QK_U8_INTERLEAVE_LOOP(planes)                                                          \
        }                                                                                          \
    }

#define QK_U8_SHUFFLE(suffix)                                                                      \
    static void shuffle_##suffix(const qk_shuffle *s) {                                            \
        qk_shuffle_by(s, table_##suffix);                                                          \
    }

/* weave32: y = a0 b0 a1 b1 ..., n of each. */
#define QK_U8_SHUFFLE32(suffix, TARGET)                                                            \
    TARGET void qk_shuffle32_##suffix(const qk_shuffle *s) {                                       \
        const size_t n = s->n, half = s->first / 2, odd = s->first % 2, rest = 2 * n - s->first;   \
        const float *a = (const void *)s->a, *b = (const void *)s->b;                              \
        float *y0 = (void *)s->y0, *y1 = (void *)s->y1;                                            \
        for (size_t r = 0; r < s->rows; r++, a += n, b += n, y0 += s->first, y1 += rest) {         \
            weave32_##suffix(a, b, y0, half);                                                      \
            if (odd) {                                                                             \
                y0[2 * half] = a[half];                                                            \
                y1[0] = b[half];                                                                   \
            }                                                                                      \
            if (half < n)                                                                          \
                weave32_##suffix(a + half + odd, b + half + odd, y1 + odd, n - half - odd);        \
        }                                                                                          \
    }

#define QK_U8_PAIRS(suffix, TARGET)                                                                \
    QK_U8_PAIR(add, suffix, TARGET, false)                                                         \
    QK_U8_PAIR(mul, suffix, TARGET, true)

#define QK_U8_INSTANCE(suffix, TARGET, of)                                                         \
    QK_U8_PAIRS(suffix, TARGET)                                                                    \
    QK_U8_INTERLEAVE(suffix, TARGET)                                                               \
    QK_U8_QUANTIZE(suffix, TARGET)                                                                 \
    QK_U8_DEQUANTIZE(suffix, TARGET)                                                               \
    QK_U8_PIECEWISE(suffix, TARGET)                                                                \
    QK_U8_TABLE(suffix, TARGET)                                                                    \
    QK_U8_SHUFFLE(suffix)                                                                          \
    const qk_u8 qk_u8_##suffix = {.add = add_##suffix,                                             \
                                  .mul = mul_##suffix,                                             \
                                  .piecewise = piecewise_##suffix,                                 \
                                  .table = table_##suffix,                                         \
                                  .shuffle = shuffle_##suffix,                                     \
                                  .shuffle32 = qk_shuffle32_##of,                                  \
                                  .interleave = interleave_##suffix,                               \
                                  .lookup = qk_lookup_c,                                           \
                                  .quantize = quantize_##suffix,                                   \
                                  .quantize_within = quantize_##suffix,                            \
                                  .dequantize = dequantize_##suffix,                               \
                                  .transpose8 = qk_transpose8_##of,                                \
                                  .transpose32 = qk_transpose32_##of}

#endif
