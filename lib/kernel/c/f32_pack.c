/* SPDX-License-Identifier: MIT */
/* Packing of float weights into panels, for every instruction set. */
#include <float.h>
#include <math.h>

#include "kernel/f32.h"
#include "kernel/transpose4.h"

bool qk_pack_f32_size(size_t panel, size_t k, size_t cols, size_t *floats) {
    size_t width, n;
    (void)panel;
    if (!qs_add(cols, 7, &width)) {
        return false;
    }
    return qs_mul(width & ~(size_t)7, k, &n) && qs_add(n, QK_PACK_SLACK, floats);
}

/* Terms packed at a time: they and the rows they go to stay in the cache. */
#define TERMS 16
/* Columns that are read side by side: a cache line of the packed matrix. */
#define LINE 16

static void move(float *to, const uint8_t *from) {
    memcpy(to, from, sizeof(*to));
}

/* Packs `rows` rows of one panel of a row-major matrix. */
static void pack_lines(float *to, size_t width, size_t rows, size_t cols, ptrdiff_t step,
                       const uint8_t *src) {
    for (size_t i = 0; i < rows; i++, to += width) {
        const uint8_t *from = src + (ptrdiff_t)i * step;
        size_t c = 0;
        for (; c + 8 <= cols; c += 8) /* without a call for so few */
            memcpy(to + c, from + c * sizeof(float), 8 * sizeof(float));
        for (; c < width; c++)
            if (c < cols)
                move(to + c, from + c * sizeof(float));
            else
                to[c] = 0;
    }
}

/* Packs a row-major matrix: some rows of all panels at a time, in the order of memory. */
static void pack_matrix(float *packed, size_t panel, size_t k, size_t cols, ptrdiff_t step,
                        const uint8_t *src) {
    for (size_t i = 0; i < k; i += TERMS) {
        const size_t rows = k - i < TERMS ? k - i : TERMS;
        for (size_t col = 0; col < cols; col += panel) {
            const size_t width = qk_panel_width(panel, cols, col);
            pack_lines(packed + col * k + i * width, width, rows,
                       cols - col < width ? cols - col : width, step,
                       src + (ptrdiff_t)i * step + (ptrdiff_t)(col * sizeof(float)));
        }
    }
}

/* Packs columns one after the other: for a few inner terms at a time all `outer` ones. */
static void pack_columns(float *to, size_t width, size_t outer, size_t cols,
                         const qk_pack_source *s, const uint8_t *src) {
    const ptrdiff_t size = sizeof(float);
    for (size_t first = 0; first < s->inner; first += TERMS) {
        size_t end = s->inner - first < TERMS ? s->inner : first + TERMS;
        for (size_t j = 0; j < cols; j++)
            for (size_t o = 0; o < outer; o++) {
                const uint8_t *from =
                    src + size * ((ptrdiff_t)j * s->col_step + (ptrdiff_t)o * s->outer_step);
                float *row = to + o * s->inner * width + j;
                for (size_t i = first; i < end; i++)
                    move(row + i * width, from + size * (ptrdiff_t)i * s->inner_step);
            }
    }
}

/*
 * The same where the terms of a column are adjacent, in any order: transposes four terms of `cols`
 * columns at a time; cols is a multiple of 4, LINE at most. Term t goes to row t % outer * inner +
 * t / outer.
 */
static void transpose_columns(float *to, size_t width, size_t outer, size_t cols,
                              const qk_pack_source *s, const uint8_t *src) {
    const size_t terms = outer * s->inner, whole = terms & ~(size_t)3;
    const uint8_t *from[LINE];
    size_t row = 0; /* packed row of the next term */
    for (size_t j = 0; j < cols; j++)
        from[j] = src + (ptrdiff_t)sizeof(float) * (ptrdiff_t)j * s->col_step;
    for (size_t t = 0; t < terms;) {
        const size_t count = t < whole ? 4 : 1;
        uint8_t *at[4];
        for (size_t i = 0; i < count; i++) {
            at[i] = (uint8_t *)(to + row * width);
            row = row + s->inner < terms ? row + s->inner : row + s->inner + 1 - terms;
        }
        for (size_t j = 0; j < cols && count == 1; j++)
            memcpy(at[0] + 4 * j, from[j] + 4 * t, 4);
        for (size_t j = 0; j < cols && count == 4; j += 4) {
            qk_transpose_dwords(from + j, 4 * t, 0, at);
            for (size_t i = 0; i < 4; i++)
                at[i] += 16;
        }
        t += count;
    }
}

static void pack_panel(float *to, size_t width, size_t outer, size_t cols, const qk_pack_source *s,
                       const uint8_t *src) {
    const ptrdiff_t column = (ptrdiff_t)sizeof(float) * s->col_step;
    const bool together =
        outer == 1 ? s->inner_step == 1 : s->outer_step == 1 && s->inner_step == (ptrdiff_t)outer;
    const size_t fours = together ? cols & ~(size_t)3 : 0;
    for (size_t j = 0; j < fours; j += LINE)
        transpose_columns(to + j, width, outer, fours - j < LINE ? fours - j : LINE, s,
                          src + (ptrdiff_t)j * column);
    pack_columns(to + fours, width, outer, cols - fours, s, src + (ptrdiff_t)fours * column);
    for (size_t i = 0; i < outer * s->inner && cols < width; i++)
        memset(to + i * width + cols, 0, (width - cols) * sizeof(float));
}

void qk_pack_f32(float *packed, size_t panel, size_t k, size_t cols, const qk_pack_source *source) {
    const ptrdiff_t size = sizeof(float);
    qk_pack_source s = *source;
    if (s.inner == 1) { /* a matrix */
        s.inner = k;
        s.inner_step = s.outer_step;
    }
    if (s.col_step == 1 && s.inner == k) {
        pack_matrix(packed, panel, k, cols, size * s.inner_step, s.src);
        packed += ((cols + 7) & ~(size_t)7) * k;
    }
    for (size_t col = 0; col < cols && !(s.col_step == 1 && s.inner == k); col += panel) {
        size_t width = qk_panel_width(panel, cols, col);
        size_t used = cols - col < width ? cols - col : width;
        const uint8_t *src = (const uint8_t *)s.src + size * (ptrdiff_t)col * s.col_step;
        pack_panel(packed, width, s.inner ? k / s.inner : 0, used, &s, src);
        packed += width * k;
    }
    memset(packed, 0, QK_PACK_SLACK * sizeof(float));
}

/* The most floats looked at: no stop is checked meanwhile, and each may be a cache miss. */
#define LOOKS ((size_t)1 << 18)

QS_COLD bool qk_has_denormals(const void *floats, size_t n, size_t row) {
    for (size_t i = 0, looks = 0; i < n && looks < LOOKS; looks++, i += i + 1 < row ? 1 : row) {
        float x;
        memcpy(&x, (const uint8_t *)floats + i * sizeof(x), sizeof(x));
        if (x != 0 && fabsf(x) < FLT_MIN)
            return true;
    }
    return false;
}

QS_COLD void qk_flush_denormals(float *x, size_t n) {
    for (size_t i = 0; i < n; i++)
        x[i] = fabsf(x[i]) < FLT_MIN ? 0 : x[i];
}

bool qk_all_finite(const void *floats, size_t n) {
    const uint8_t *in = floats;
    const uint32_t exponent = 0x7f800000u; /* all ones: infinity or NaN */
    uint32_t found = 0;
    size_t i = 0;
#ifdef QK_SHUFFLES
    const qk_four mask = {exponent, exponent, exponent, exponent};
    qk_four any = {0}, other = {0}, v, w;
    for (; n - i >= 8; i += 8) {
        memcpy(&v, in + 4 * i, 16);
        memcpy(&w, in + 4 * i + 16, 16);
        any |= (qk_four)((v & mask) == mask);
        other |= (qk_four)((w & mask) == mask);
    }
    any |= other;
    found = any[0] | any[1] | any[2] | any[3];
#endif
    for (; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, in + 4 * i, 4);
        found |= (bits & exponent) == exponent;
    }
    return !found;
}
