/* SPDX-License-Identifier: MIT */
/*
 * A template of float depthwise convolution of any window. Before including it, define the macros
 * of f32_tile.h and DW_WIDEST, the most pixels of a block.
 *
 * Windows of 3 or 5 columns whose pixels lie one or two taps apart are computed in blocks of
 * adjacent pixels, or (`two`) of two lines one tap apart: a vector of the input is loaded once
 * for all outputs of the block that use it. Other windows are computed by pixels of a line, each
 * with its own loads.
 *
 * Blocks go down the image inside a segment of columns and a chunk of channels, whose lines stay in
 * the first-level cache.
 */
#ifndef QK_F32_DEPTHWISE_H
#define QK_F32_DEPTHWISE_H

#include <assert.h>

/* Pixels. Four lines of a segment are 16 KB: long runs of few channels suit the prefetcher best. */
#define DW_WIDE    20
#define DW_SEGMENT 28
#define DW_LEAST   3 /* the fewest pixels of a block */

/* The place of a block. */
typedef struct dw_at {
    const float *a;
    float *c;
    size_t j, end; /* channels [j, end) */
    size_t blocks; /* number of blocks of the same width, one after the other */
} dw_at;

/* ---- blocks ---- */

/*
 * The products of each vector of the input: BLOCK_<columns of the window>_<step>_<width>, M(output,
 * column of the window), in the order of the columns. Written out, because compilers spill arrays.
 */
/* Advances a pointer; the barrier keeps gcc from making one for each use and spilling them. */
#define WALK(p, step)                                                                              \
    p += step;                                                                                     \
    __asm__("" : "+r"(p));
#define IN(i, products)                                                                            \
    {                                                                                              \
        VEC in = LOAD(q);                                                                          \
        OPAQUE_LOAD(in)                                                                            \
        WALK(q, step) products                                                                     \
    }
/* clang-format off */
#define BLOCK_3_1_3(M) \
    IN(0, M(0, 0)) IN(1, M(0, 1) M(1, 0)) IN(2, M(0, 2) M(1, 1) M(2, 0)) IN(3, M(1, 2) M(2, 1)) \
    IN(4, M(2, 2))
#define BLOCK_3_1_4(M) \
    IN(0, M(0, 0)) IN(1, M(0, 1) M(1, 0)) IN(2, M(0, 2) M(1, 1) M(2, 0)) \
    IN(3, M(1, 2) M(2, 1) M(3, 0)) IN(4, M(2, 2) M(3, 1)) IN(5, M(3, 2))
#define BLOCK_3_2_3(M) \
    IN(0, M(0, 0)) IN(1, M(0, 1)) IN(2, M(0, 2) M(1, 0)) IN(3, M(1, 1)) IN(4, M(1, 2) M(2, 0)) \
    IN(5, M(2, 1)) IN(6, M(2, 2))
#define BLOCK_3_2_4(M) \
    IN(0, M(0, 0)) IN(1, M(0, 1)) IN(2, M(0, 2) M(1, 0)) IN(3, M(1, 1)) IN(4, M(1, 2) M(2, 0)) \
    IN(5, M(2, 1)) IN(6, M(2, 2) M(3, 0)) IN(7, M(3, 1)) IN(8, M(3, 2))
#define BLOCK_5_1_3(M) \
    IN(0, M(0, 0)) IN(1, M(0, 1) M(1, 0)) IN(2, M(0, 2) M(1, 1) M(2, 0)) \
    IN(3, M(0, 3) M(1, 2) M(2, 1)) IN(4, M(0, 4) M(1, 3) M(2, 2)) IN(5, M(1, 4) M(2, 3)) \
    IN(6, M(2, 4))
#define BLOCK_5_1_4(M) \
    IN(0, M(0, 0)) IN(1, M(0, 1) M(1, 0)) IN(2, M(0, 2) M(1, 1) M(2, 0)) \
    IN(3, M(0, 3) M(1, 2) M(2, 1) M(3, 0)) IN(4, M(0, 4) M(1, 3) M(2, 2) M(3, 1)) \
    IN(5, M(1, 4) M(2, 3) M(3, 2)) IN(6, M(2, 4) M(3, 3)) IN(7, M(3, 4))
#define BLOCK_5_2_3(M) \
    IN(0, M(0, 0)) IN(1, M(0, 1)) IN(2, M(0, 2) M(1, 0)) IN(3, M(0, 3) M(1, 1)) \
    IN(4, M(0, 4) M(1, 2) M(2, 0)) IN(5, M(1, 3) M(2, 1)) IN(6, M(1, 4) M(2, 2)) IN(7, M(2, 3)) \
    IN(8, M(2, 4))
#define BLOCK_5_2_4(M) \
    IN(0, M(0, 0)) IN(1, M(0, 1)) IN(2, M(0, 2) M(1, 0)) IN(3, M(0, 3) M(1, 1)) \
    IN(4, M(0, 4) M(1, 2) M(2, 0)) IN(5, M(1, 3) M(2, 1)) IN(6, M(1, 4) M(2, 2) M(3, 0)) \
    IN(7, M(2, 3) M(3, 1)) IN(8, M(2, 4) M(3, 2)) IN(9, M(3, 3)) IN(10, M(3, 4))
/* clang-format on */

#define UPPER(o, k)                                                                                \
    c##o = FMA(in, w##k, c##o);                                                                    \
    OPAQUE(c##o)
#define LOWER(o, k)                                                                                \
    e##o = FMA(in, x##k, e##o);                                                                    \
    OPAQUE(e##o)
#define BOTH(o, k) UPPER(o, k) LOWER(o, k)

#define WEIGHT(to, k)                                                                              \
    VEC to##k = LOAD(z);                                                                           \
    OPAQUE_LOAD(to##k)                                                                             \
    WALK(z, stride)
#define WEIGHTS_3(to) WEIGHT(to, 0) WEIGHT(to, 1) WEIGHT(to, 2)
#define WEIGHTS_5(to) WEIGHTS_3(to) WEIGHT(to, 3) WEIGHT(to, 4)
/* A line of the input, and of the weights for the upper or the lower line of outputs. */
#define INPUT(line) const float *q = line;
#define TAKE(across, to, line)                                                                     \
    const float *z = line;                                                                         \
    WEIGHTS_##across(to)

#define UPPER_ZERO(o) VEC c##o = SET1(0.0f);
#define LOWER_ZERO(o) VEC e##o = SET1(0.0f);
#define FINISH(v)     MIN(hi, MAX(lo, ADD(v, bias)))
#define UPPER_OUT(o)                                                                               \
    STORE_FIRST(q, FINISH(c##o), last);                                                            \
    WALK(q, out_pixel)
#define LOWER_OUT(o)                                                                               \
    STORE_FIRST(q, FINISH(e##o), last);                                                            \
    WALK(q, out_pixel)

/* Loops over vectors of channels, and for each over the blocks of a line. */
#define DW_FUNCTION(name, width, body)                                                             \
    TARGET static void name(const qk_depthwise_f32 *d, const dw_at *at) {                          \
        const ptrdiff_t step = d->tap_across, out_pixel = d->out_pixel, down = d->tap_down;        \
        const ptrdiff_t stride = (ptrdiff_t)d->stride, w_down = (ptrdiff_t)d->w_down;              \
        const VEC lo = SET1(d->lo), hi = SET1(d->hi);                                              \
        for (size_t j = at->j; j < at->end; j += LANES) {                                          \
            const size_t last = at->end - j < LANES ? at->end - j : LANES;                         \
            const VEC bias = LOAD(d->bias + j);                                                    \
            const float *from = at->a + j;                                                         \
            float *to = at->c + j;                                                                 \
            size_t n = at->blocks; /* at least one */                                              \
            do {                                                                                   \
                const float *p = from, *v = d->w + j;                                              \
                body from += (ptrdiff_t)width * d->pixel_step;                                     \
                to += (ptrdiff_t)width * out_pixel;                                                \
            } while (--n > 0);                                                                     \
        }                                                                                          \
    }

/* One line of outputs. */
#define DW_ONE(across, apart, width)                                                               \
    DW_FUNCTION(                                                                                   \
        dw_##across##_##apart##_##width, width,                                                    \
        REP##width(UPPER_ZERO) if (d->down > 0) {                                                  \
            size_t r = d->down;                                                                    \
            do {                                                                                   \
                INPUT(p)                                                                           \
                TAKE(across, w, v)                                                                 \
                BLOCK_##across##_##apart##_##width(UPPER) p += down;                               \
                v += w_down;                                                                       \
            } while (--r > 0);                                                                     \
        } {                                                                                        \
            float *q = to;                                                                         \
            REP##width(UPPER_OUT)                                                                  \
        })

/* Two lines: the lower one takes the weights of the line before. */
#define DW_TWO(across, width)                                                                      \
    DW_FUNCTION(                                                                                   \
        dw_##across##_twice_##width, width,                                                        \
        REP##width(UPPER_ZERO) REP##width(LOWER_ZERO) {                                            \
            INPUT(p)                                                                               \
            TAKE(across, w, v)                                                                     \
            BLOCK_##across##_1_##width(UPPER)                                                      \
        } for (size_t r = 1; r < d->down; r++) {                                                   \
            p += down;                                                                             \
            INPUT(p)                                                                               \
            const float *z = v;                                                                    \
            WEIGHTS_##across(x) v += w_down;                                                       \
            z = v;                                                                                 \
            WEIGHTS_##across(w) BLOCK_##across##_1_##width(BOTH)                                   \
        } {                                                                                        \
            p += down;                                                                             \
            INPUT(p)                                                                               \
            TAKE(across, x, v)                                                                     \
            BLOCK_##across##_1_##width(LOWER)                                                      \
        } {                                                                                        \
            float *q = to;                                                                         \
            REP##width(UPPER_OUT) q = to + d->out_line;                                            \
            REP##width(LOWER_OUT)                                                                  \
        })

typedef void (*dw_block_fn)(const qk_depthwise_f32 *d, const dw_at *at);

/* ---- any pixels of a line ---- */

/* The barrier keeps gcc from computing the address again at each use. */
#define DW_ROW(r)                                                                                  \
    const float *a##r = at->a + (ptrdiff_t)(r)*d->pixel_step;                                      \
    __asm__("" : "+r"(a##r));
#define DW_ZERO(r) VEC c##r = SET1(0.0f);
#define DW_STEP(r)                                                                                 \
    c##r = FMA(LOAD(a##r + i), w, c##r);                                                           \
    OPAQUE(c##r)
#define DW_OUT(r)                                                                                  \
    STORE_FIRST(at->c + (ptrdiff_t)(r)*d->out_pixel + j, MIN(hi, MAX(lo, ADD(c##r, bias))), last);

#define DW_ANY(rows)                                                                               \
    TARGET static void dw_any_##rows(const qk_depthwise_f32 *d, const dw_at *at) {                 \
        const VEC lo = SET1(d->lo), hi = SET1(d->hi);                                              \
        REP##rows(DW_ROW) for (size_t j = at->j; j < at->end; j += LANES) {                        \
            const size_t last = at->end - j < LANES ? at->end - j : LANES;                         \
            const VEC bias = LOAD(d->bias + j);                                                    \
            REP##rows(DW_ZERO) for (size_t y = 0; y < d->down; y++) {                              \
                const float *v = d->w + y * d->w_down + j;                                         \
                ptrdiff_t i = (ptrdiff_t)y * d->tap_down + (ptrdiff_t)j;                           \
                for (size_t x = 0; x < d->across; x++, i += d->tap_across, v += d->stride) {       \
                    VEC w = LOAD(v);                                                               \
                    OPAQUE_LOAD(w)                                                                 \
                    REP##rows(DW_STEP)                                                             \
                }                                                                                  \
            }                                                                                      \
            REP##rows(DW_OUT)                                                                      \
        }                                                                                          \
    }
DW_ANY(1)
DW_ANY(4)
DW_ANY(8)

static void dw_any(const qk_depthwise_f32 *d, size_t j, size_t end) {
    for (size_t y = 0; y < d->lines; y++) {
        const float *const a = d->a + (ptrdiff_t)y * d->line_step;
        float *const c = d->c + (ptrdiff_t)y * d->out_line;
        for (size_t x = 0; x < d->pixels;) {
            const size_t rest = d->pixels - x, n = rest >= 8 ? 8 : d->pixels >= 4 ? 4 : 1;
            x = rest < n ? d->pixels - n : x; /* the last block overlaps */
            const dw_at at = {a + (ptrdiff_t)x * d->pixel_step, c + (ptrdiff_t)x * d->out_pixel, j,
                              end, 1};
            (n == 8 ? dw_any_8 : n == 4 ? dw_any_4 : dw_any_1)(d, &at);
            x += n;
        }
    }
}

/* ---- the image ---- */

/* Functions for blocks of one line and of two, by width; NULL where there is none. */
typedef struct dw_kind {
    size_t across;
    ptrdiff_t stride;
    dw_block_fn one[DW_WIDEST + 1], two[DW_WIDEST + 1];
} dw_kind;

/* Width of the next block of n pixels: n, or one that leaves DW_LEAST or more, except for n = 5. */
static size_t dw_width(const dw_block_fn *fn, size_t n) {
    if (n <= DW_WIDEST && fn[n])
        return n;
    size_t width = n - DW_LEAST < DW_WIDEST ? n - DW_LEAST : DW_WIDEST;
    while (width > DW_LEAST && !fn[width])
        width--;
    return width > DW_LEAST ? width : DW_LEAST;
}

/* Computes the lines of a segment of `pixels` columns, the first of which is at `at`. */
static void dw_segment(const qk_depthwise_f32 *d, const dw_kind *k, dw_at at, size_t pixels) {
    const bool pairs = k->two[DW_LEAST] && d->line_step == d->tap_down && d->down > 0;
    for (size_t y = 0; y < d->lines;) {
        const size_t lines = pairs && d->lines - y > 1 ? 2 : 1;
        const dw_block_fn *const fn = lines == 2 ? k->two : k->one;
        dw_at block = at;
        for (size_t x = 0; x < pixels;) {
            x = pixels - x < DW_LEAST ? pixels - DW_LEAST : x; /* the last block overlaps */
            const size_t rest = pixels - x, width = dw_width(fn, rest);
            block.a = at.a + (ptrdiff_t)x * d->pixel_step;
            block.c = at.c + (ptrdiff_t)x * d->out_pixel;
            const size_t keep =
                rest % width == 0 ? 0 : DW_LEAST; /* pixels for blocks of another width */
            block.blocks = rest >= width + keep ? (rest - keep) / width : 1;
            fn[width](d, &block);
            x += width * block.blocks;
        }
        at.a += (ptrdiff_t)lines * d->line_step;
        at.c += (ptrdiff_t)lines * d->out_line;
        y += lines;
    }
}

static const dw_kind *dw_find(const qk_depthwise_f32 *d, const dw_kind *kinds, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (kinds[i].across == d->across && d->pixel_step == kinds[i].stride * d->tap_across)
            return &kinds[i];
    return NULL;
}

static void dw_image(const qk_depthwise_f32 *given, const dw_kind *kinds, size_t count) {
    assert(qk_depthwise_f32_valid(given));
    qk_depthwise_f32 d = *given;
    const dw_kind *const kind = d.pixels < DW_LEAST ? NULL : dw_find(&d, kinds, count);
    if (!kind && d.pixels < 8 &&
        d.lines > d.pixels) { /* short lines: lines and columns are swapped */
        d.lines = given->pixels;
        d.pixels = given->lines;
        d.line_step = given->pixel_step;
        d.pixel_step = given->line_step;
        d.out_line = given->out_pixel;
        d.out_pixel = given->out_line;
    }
    const size_t chunk = d.pixels > DW_WIDE ? 32 : 64;
    for (size_t j = 0; j < d.channels; j += chunk) {
        const size_t end = d.channels - j < chunk ? d.channels : j + chunk;
        if (!kind) {
            dw_any(&d, j, end);
            continue;
        }
        for (size_t x = 0; x < d.pixels; x += DW_SEGMENT) {
            const size_t rest = d.pixels - x, n = rest < DW_SEGMENT + DW_LEAST ? rest : DW_SEGMENT;
            const dw_at at = {d.a + (ptrdiff_t)x * d.pixel_step, d.c + (ptrdiff_t)x * d.out_pixel,
                              j, end, 1};
            dw_segment(&d, kind, at, n);
            if (n == rest)
                break;
        }
    }
}

#endif
