/* SPDX-License-Identifier: MIT */
/* Element-wise kernels on 8 bits, quantization and dequantization. */
#ifndef QK_U8_H
#define QK_U8_H

#include "base/base.h"

/*
 * c = round_half_even(clamp(v, lo, hi)) + zc on uint8, with
 *   add: v = ma (a - za) + mb (b - zb)      mul: v = ((a - za) (b - zb)) ma
 * An int8 operand is its uint8 twin ^ 0x80: its flip_* is 0x80, else 0. Strides are 0 or 1. If both
 * are 1, c may be b.
 */
typedef struct qk_u8_pair {
    float ma, mb;
    int32_t za, zb, zc;
    float lo, hi; /* bounds of c, minus zc */
    uint8_t flip_a, flip_b, flip_c;
} qk_u8_pair;

typedef void (*qk_u8_fn)(const uint8_t *a, size_t sa, const uint8_t *b, size_t sb, uint8_t *c,
                         size_t n, const qk_u8_pair *w);

/* mul of a[i] and b[i % m] for i < n; m: multiples of 64 up to QK_SCALE_MOST. */
typedef void (*qk_scale_fn)(const uint8_t *a, const uint8_t *b, size_t m, uint8_t *c, size_t n,
                            const qk_u8_pair *w);

#define QK_SCALE_MOST 1024

/*
 * A function of two lines for each channel, which meet at the zero point. With d = x - zx, in
 * float: y = round_half_even(clamp(d * (d < 0 ? below[c] : above[c]) + offset[c], lo, hi)) + zy
 */
typedef struct qk_piecewise {
    const float *below, *above, *offset; /* by channel */
    int32_t zx, zy;
    float lo, hi; /* bounds of y, minus zy */
} qk_piecewise;

/* For rows of n channels. */
typedef void (*qk_piecewise_fn)(const qk_piecewise *w, const uint8_t *x, uint8_t *y, size_t n,
                                size_t rows);

/*
 * y = table[x], 256 bytes, for rows of n bytes that begin x_stride and y_stride bytes apart. x and
 * y may be the same.
 */
typedef void (*qk_table_fn)(const uint8_t *table, const uint8_t *x, size_t x_stride, uint8_t *y,
                            size_t y_stride, size_t n, size_t rows);

/*
 * Interleaves two tensors of rows of n bytes, looked up in tables where these are given, to rows of
 * 2 n: a0 b0 a1 b1 .... The `first` bytes of each go to y0, the rest, if there is any, to y1.
 */
typedef struct qk_shuffle {
    const uint8_t *a, *b, *table_a, *table_b;
    uint8_t *y0, *y1;
    size_t n, rows, first; /* n: up to QK_SHUFFLE_MOST */
} qk_shuffle;

#define QK_SHUFFLE_MOST 4096

typedef struct qk_u8 {
    qk_u8_fn add, mul;
    qk_scale_fn scale; /* NULL: mul is as fast */
    qk_piecewise_fn piecewise;
    qk_table_fn table;
    void (*shuffle)(const qk_shuffle *s);
    void (*shuffle32)(const qk_shuffle *s); /* n and first count elements of 4 bytes; no tables */
    /* y = table[x], 256 floats */
    void (*lookup)(const float *table, const uint8_t *x, float *y, size_t n);
    /* y[i * planes + c] = x[c * plane + i] for i < n: 1 ... 4 planes become channels */
    void (*interleave)(const uint8_t *x, size_t plane, size_t planes, uint8_t *y, size_t n);
    /* One scale and the zero point of the uint8 twin, 0 ... 255; flip as above. */
    void (*quantize)(const float *x, size_t n, float scale, int32_t zp, uint8_t flip, uint8_t *y);
    /* The same for elements that are NaN or at most a number for which qk_within is true. */
    void (*quantize_within)(const float *x, size_t n, float scale, int32_t zp, uint8_t flip,
                            uint8_t *y);
    void (*dequantize)(const uint8_t *x, size_t n, float scale, int32_t zp, uint8_t flip, float *y);
    /* The transpose of `columns` lines, `line` elements apart, of 1 and of 4 bytes per element:
       y[r * columns + c] = x[c * line + r] for r < rows. */
    void (*transpose8)(const void *x, size_t line, void *y, size_t rows, size_t columns);
    void (*transpose32)(const void *x, size_t line, void *y, size_t rows, size_t columns);
} qk_u8;

/* Whether no number up to `highest` exceeds 255 when quantized. */
static inline bool qk_within(float highest, float scale, int32_t zp) {
    return highest / scale < 255.5f - (float)zp;
}

void qk_lookup_c(const float *table, const uint8_t *x, float *y, size_t n);
void qk_transpose8_c(const void *x, size_t line, void *y, size_t rows, size_t columns);
void qk_transpose32_c(const void *x, size_t line, void *y, size_t rows, size_t columns);
void qk_transpose8_avx2(const void *x, size_t line, void *y, size_t rows, size_t columns);
void qk_transpose32_avx2(const void *x, size_t line, void *y, size_t rows, size_t columns);
void qk_interleave_avx2(const uint8_t *x, size_t plane, size_t planes, uint8_t *y, size_t n);

void qk_shuffle32_c(const qk_shuffle *s);
void qk_shuffle32_avx2(const qk_shuffle *s);
/* shuffle by look_up, the table kernel of an instruction set. */
void qk_shuffle_by(const qk_shuffle *s, qk_table_fn look_up);

extern const qk_u8 qk_u8_c, qk_u8_avx2, qk_u8_avx512, qk_u8_neon;

#endif
