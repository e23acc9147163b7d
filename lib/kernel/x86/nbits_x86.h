/* SPDX-License-Identifier: MIT */
/*
 * A template of the products with weights in blocks for one vector width. Before including it,
 * define
 *
 *   TARGET, INLINE       function attributes
 *   V, I, LANES          vectors of LANES floats and dwords; PARTS = 16 / LANES
 *   TABLE                the name of the table
 *   load_f, store_f, load_i, set_f, set_i, add_f, mul_f, fma, to_float, low, down4, load_zeros
 *   code_f(x)            floats of the lowest 4 bits of dwords, less 8
 *   dot2(s, x, y, a)     s + products of codes, 4 bits in a byte, with eight integers at a, in the
 *                        order of qk_nbits_place
 *   dot8(s, x, y, a)     the same of codes of 8 bits
 */
#include "kernel/nbits.h"

#define PARTS  (QK_NBITS_GROUP / LANES)
#define ACROSS (QK_NBITS_TOGETHER * PARTS) /* vectors side by side */

/*
 * Addresses for each vector of two groups: codes of dword 0, scales and zero points of block 0; and
 * what `rounded` takes: its blocks, and where row 0 is.
 */
typedef struct places {
    const uint32_t *codes[ACROSS];
    const float *scales[ACROSS];
    const uint8_t *zeros[ACROSS];
    size_t begin, end;
    float *y;
    size_t ldy;
} places;

INLINE places find_places(const qk_nbits_weights *w, size_t group) {
    places p;
#pragma GCC unroll 16
    for (size_t v = 0; v < ACROSS; v++) {
        const size_t g = group + v / PARTS, lane = v % PARTS * LANES;
        p.codes[v] = qk_nbits_codes(w, g) + lane;
        p.scales[v] = w->scales + g * w->blocks * QK_NBITS_GROUP + lane;
        p.zeros[v] = w->zeros ? w->zeros + g * w->blocks * QK_NBITS_GROUP + lane : NULL;
    }
    return p;
}

/* Zero points minus 8. */
INLINE V zero_f(const uint8_t *zeros) {
    return to_float(add_i(load_zeros(zeros), set_i(-8)));
}

INLINE V weight(I x, V zero, V scale, bool zeros) {
    const V code = code_f(x);
    return mul_f(zeros ? sub_f(code, zero) : code, scale);
}

TARGET static void unpack_vector(const qk_nbits_weights *w, size_t group, size_t lane, size_t begin,
                                 size_t depth, float *to, size_t width) {
    const uint32_t *codes = qk_nbits_codes(w, group) + begin / 8 * QK_NBITS_GROUP + lane;
    const bool zeros = w->zeros != NULL;
    for (size_t b = begin / w->block, k = begin; k < depth; b++) {
        const size_t at = (group * w->blocks + b) * QK_NBITS_GROUP + lane;
        const V scale = load_f(w->scales + at);
        const V zero = zeros ? zero_f(w->zeros + at) : set_f(0);
        const size_t whole = (b + 1) * w->block, end = whole < depth ? whole : depth;
        for (; k < end; codes += QK_NBITS_GROUP) {
            I x = load_i(codes);
            const size_t n = end - k < 8 ? end : k + 8;
            if (zeros)
                for (; k < n; k++, x = down4(x))
                    store_f(to + k * width, weight(x, zero, scale, true));
            else
                for (; k < n; k++, x = down4(x))
                    store_f(to + k * width, weight(x, zero, scale, false));
        }
    }
}

TARGET static void unpack(const qk_nbits_weights *w, size_t group, size_t begin, size_t end,
                          size_t columns, float *to, size_t width) {
    if (columns < LANES) { /* 8 columns of a group */
        qk_nbits_avx2.unpack(w, group, begin, end, columns, to, width);
        return;
    }
    for (size_t lane = 0; lane < columns; lane += LANES)
        unpack_vector(w, group, lane, begin, end, to + lane, width);
}

INLINE void row_groups(const qk_nbits_weights *w, const float *a, size_t depth, size_t group,
                       float *y, bool zeros) {
    places p = find_places(w, group);
    V sum[ACROSS], scale[ACROSS], zero[ACROSS];
    I x[ACROSS];
#pragma GCC unroll 16
    for (size_t v = 0; v < ACROSS; v++)
        sum[v] = set_f(0);
    for (size_t b = 0, k = 0, dword = 0; b < w->blocks; b++) {
#pragma GCC unroll 16
        for (size_t v = 0; v < ACROSS; v++) {
            scale[v] = load_f(p.scales[v] + b * QK_NBITS_GROUP);
            zero[v] = zeros ? zero_f(p.zeros[v] + b * QK_NBITS_GROUP) : set_f(0);
        }
        const size_t end = k + w->block < depth ? k + w->block : depth;
        for (; k < end; dword += QK_NBITS_GROUP) {
            const size_t n = end - k < 8 ? end : k + 8;
#pragma GCC unroll 16
            for (size_t v = 0; v < ACROSS; v++)
                x[v] = load_i(p.codes[v] + dword);
            for (; k < n; k++) {
                const V one = set_f(a[k]);
#pragma GCC unroll 16
                for (size_t v = 0; v < ACROSS; v++) {
                    sum[v] = fma(one, weight(x[v], zero[v], scale[v], zeros), sum[v]);
                    x[v] = down4(x[v]);
                }
            }
        }
    }
#pragma GCC unroll 16
    for (size_t v = 0; v < ACROSS; v++)
        store_f(y + v * LANES, sum[v]);
}

TARGET static void row(const qk_nbits_weights *w, const float *a, size_t depth, size_t group,
                       size_t groups, float *y) {
    for (size_t g = 0; g < groups; g += QK_NBITS_TOGETHER, y += QK_NBITS_TOGETHER * QK_NBITS_GROUP)
        if (w->zeros)
            row_groups(w, a, depth, group + g, y, true);
        else
            row_groups(w, a, depth, group + g, y, false);
}

/* The kernel `rounded` for a constant number of rows, from `first` on. */
INLINE void rounded_rows(const qk_nbits_weights *w, const qk_nbits_rows *m, const places *p,
                         size_t first, size_t rows, bool bytes) {
    const size_t depth = w->block * w->blocks, eights = w->block / 8;
    const size_t step = (bytes ? 2 : 1) * QK_NBITS_GROUP;
    const size_t ldy = p->ldy;
    const int8_t *a = m->a + first * depth + p->begin * w->block;
    float *y = p->y + first * ldy;
    for (size_t b = p->begin; b < p->end; b++, a += w->block) {
        const size_t at = first * w->blocks + b;
        I sum[8][ACROSS], minus[ACROSS]; /* zero points, negated */
#pragma GCC unroll 16
        for (size_t v = 0; v < ACROSS; v++)
            minus[v] =
                p->zeros[v] ? neg_i(load_zeros(p->zeros[v] + b * QK_NBITS_GROUP)) : set_i(-8);
#pragma GCC unroll 16
        for (size_t r = 0; r < rows; r++) {
            const I sum_a = set_i(m->sums[at + r * w->blocks]);
#pragma GCC unroll 16
            for (size_t v = 0; v < ACROSS; v++)
                sum[r][v] = mul_i(minus[v], sum_a);
        }
        for (size_t q = 0; q < eights; q++)
#pragma GCC unroll 16
            for (size_t v = 0; v < ACROSS; v++) {
                const uint32_t *codes = p->codes[v] + (b * eights + q) * step;
                const I first8 = load_i(codes);
                const I even = bytes ? first8 : low(first8);
                const I odd = bytes ? load_i(codes + QK_NBITS_GROUP) : low(down4(first8));
#pragma GCC unroll 16
                for (size_t r = 0; r < rows; r++) {
                    const int8_t *at8 = a + r * depth + q * 8;
                    sum[r][v] =
                        bytes ? dot8(sum[r][v], even, odd, at8) : dot2(sum[r][v], even, odd, at8);
                }
            }
#pragma GCC unroll 16
        for (size_t v = 0; v < ACROSS; v++) {
            const V scale = load_f(p->scales[v] + b * QK_NBITS_GROUP);
#pragma GCC unroll 16
            for (size_t r = 0; r < rows; r++) {
                float *to = y + r * ldy + v * LANES;
                const V factor = mul_f(set_f(m->scales[at + r * w->blocks]), scale);
                store_f(to, add_f(load_f(to), mul_f(to_float(sum[r][v]), factor)));
            }
        }
    }
}

#define NAME_(a, b) a##b
#define NAME(a, b)  NAME_(a, b)
#define ROWS(n)                                                                                    \
    TARGET static void NAME(rounded_, n)(const qk_nbits_weights *w, const qk_nbits_rows *m,        \
                                         const places *p, size_t first) {                          \
        if (w->bytes)                                                                              \
            rounded_rows(w, m, p, first, n, true);                                                 \
        else                                                                                       \
            rounded_rows(w, m, p, first, n, false);                                                \
    }
ROWS(1)
ROWS(MOST_ROWS)

TARGET static void rounded(const qk_nbits_weights *w, const qk_nbits_rows *m, size_t group,
                           size_t begin, size_t end, float *y, size_t ldy) {
    places p = find_places(w, group);
    size_t r = 0;
    p.begin = begin;
    p.end = end;
    p.y = y;
    p.ldy = ldy;
    for (; r + MOST_ROWS <= m->rows; r += MOST_ROWS)
        NAME(rounded_, MOST_ROWS)(w, m, &p, r);
    for (; r < m->rows; r++)
        rounded_1(w, m, &p, r);
}

const qk_nbits TABLE = {.unpack = unpack, .row = row, .rounded = rounded};
