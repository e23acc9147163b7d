/* SPDX-License-Identifier: MIT */
/*
 * A template of float depthwise convolution by 3 x 3 adjacent taps, pixels one or two taps apart,
 * for 32 vector registers (AVX-512, NEON). Before including it, define the macros of f32_tile.h,
 * include f32_depthwise.h, and define
 *
 *   EDGE, EDGE_IF(on)       a mask of all lanes or none
 *   FMA_IF(edge, a, b, c)   FMA(a, b, c) where the mask is set, else c
 *
 * Blocks of pixels go down the image with the weights in registers. With pixels one tap apart, two
 * lines of outputs are summed at once; with two taps, each line of the image is read once: it ends
 * one line of outputs and begins the next. Memory is the limit there, so no line may be read again.
 *
 * Taps outside the image are left out: rows of them by branches, columns by masks.
 */
#ifndef QK_F32_DEPTHWISE_3X3_H
#define QK_F32_DEPTHWISE_3X3_H

/* Lines of a block: their pages stay in the TLB from block to block. */
#define DW3_LINES    28
#define DW3_CHANNELS 16

typedef struct dw3_block {
    const float *a;
    float *c;
    size_t j, end, lines;
    bool above, below; /* the first line lacks its first row of taps, the last one its last */
    ptrdiff_t before,
        beyond; /* 0, or elements by which the first or last column is outside the image */
} dw3_block;

#define TAP(acc, w, o, k)                                                                          \
    acc##o = FMA(in, w##k, acc##o);                                                                \
    OPAQUE(acc##o)
#define TAP_EDGE(edge, acc, w, o, k)                                                               \
    acc##o = FMA_IF(edge, in, w##k, acc##o);                                                       \
    OPAQUE(acc##o)
#define TAP_FIRST(acc, w, o, k) TAP_EDGE(left, acc, w, o, k)
#define TAP_LAST(acc, w, o, k)  TAP_EDGE(right, acc, w, o, k)

/* The row of weights (u, v, x from the top) of an input for the lines of outputs c and e. */
#define C_U(o, k, how)     how(c, u, o, k)
#define C_V(o, k, how)     how(c, v, o, k)
#define C_X(o, k, how)     how(c, x, o, k)
#define E_X(o, k, how)     how(e, x, o, k)
#define C_V_E_U(o, k, how) how(c, v, o, k) how(e, u, o, k)
#define C_X_E_V(o, k, how) how(c, x, o, k) how(e, v, o, k)
#define C_X_E_U(o, k, how) how(c, x, o, k) how(e, u, o, k)

/* The barrier keeps gcc from loading again for every product. */
#define COLUMN_AT(q, products)                                                                     \
    {                                                                                              \
        VEC in = LOAD(q);                                                                          \
        OPAQUE(in) products                                                                        \
    }
#define COLUMN(products) WALK(q, across) COLUMN_AT(q, products)

/* The columns of a line of the image: LINE_<step>_<width>(where, M(output, column, how)). */
#define LINE(line, products, middle, end_products)                                                 \
    {                                                                                              \
        const float *q = line;                                                                     \
        COLUMN_AT(q + at->before, products)                                                        \
        middle q += across - at->beyond;                                                           \
        COLUMN_AT(q, end_products)                                                                 \
    }
/* clang-format off */
#define LINE_1_4(line, M) \
    LINE(line, M(0, 0, TAP_FIRST), COLUMN(M(0, 1, TAP) M(1, 0, TAP)) \
         COLUMN(M(0, 2, TAP) M(1, 1, TAP) M(2, 0, TAP)) COLUMN(M(1, 2, TAP) M(2, 1, TAP) M(3, 0, TAP)) \
         COLUMN(M(2, 2, TAP) M(3, 1, TAP)), M(3, 2, TAP_LAST))
#define LINE_1_7(line, M) \
    LINE(line, M(0, 0, TAP_FIRST), COLUMN(M(0, 1, TAP) M(1, 0, TAP)) \
         COLUMN(M(0, 2, TAP) M(1, 1, TAP) M(2, 0, TAP)) COLUMN(M(1, 2, TAP) M(2, 1, TAP) M(3, 0, TAP)) \
         COLUMN(M(2, 2, TAP) M(3, 1, TAP) M(4, 0, TAP)) COLUMN(M(3, 2, TAP) M(4, 1, TAP) M(5, 0, TAP)) \
         COLUMN(M(4, 2, TAP) M(5, 1, TAP) M(6, 0, TAP)) COLUMN(M(5, 2, TAP) M(6, 1, TAP)), \
         M(6, 2, TAP_LAST))
#define LINE_2_4(line, M) \
    LINE(line, M(0, 0, TAP_FIRST), COLUMN(M(0, 1, TAP)) COLUMN(M(0, 2, TAP) M(1, 0, TAP)) \
         COLUMN(M(1, 1, TAP)) COLUMN(M(1, 2, TAP) M(2, 0, TAP)) COLUMN(M(2, 1, TAP)) \
         COLUMN(M(2, 2, TAP) M(3, 0, TAP)) COLUMN(M(3, 1, TAP)), M(3, 2, TAP_LAST))
#define LINE_2_7(line, M) \
    LINE(line, M(0, 0, TAP_FIRST), COLUMN(M(0, 1, TAP)) COLUMN(M(0, 2, TAP) M(1, 0, TAP)) \
         COLUMN(M(1, 1, TAP)) COLUMN(M(1, 2, TAP) M(2, 0, TAP)) COLUMN(M(2, 1, TAP)) \
         COLUMN(M(2, 2, TAP) M(3, 0, TAP)) COLUMN(M(3, 1, TAP)) COLUMN(M(3, 2, TAP) M(4, 0, TAP)) \
         COLUMN(M(4, 1, TAP)) COLUMN(M(4, 2, TAP) M(5, 0, TAP)) COLUMN(M(5, 1, TAP)) \
         COLUMN(M(5, 2, TAP) M(6, 0, TAP)) COLUMN(M(6, 1, TAP)), M(6, 2, TAP_LAST))
/* clang-format on */

#define DW3_WEIGHTS(to, row)                                                                       \
    const VEC to##0 = LOAD(row), to##1 = LOAD((row) + d->stride),                                  \
              to##2 = LOAD((row) + 2 * d->stride);
#define NEXT(o) c##o = e##o;
#define OUT(width, which)                                                                          \
    {                                                                                              \
        float *q = to;                                                                             \
        REP##width(which##_OUT)                                                                    \
    }                                                                                              \
    to += d->out_line;

#define DW3_FUNCTION(name, body)                                                                   \
    TARGET static void name(const qk_depthwise_f32 *d, const dw3_block *at) {                      \
        const ptrdiff_t across = d->tap_across, out_pixel = d->out_pixel, down = d->tap_down;      \
        const EDGE left = EDGE_IF(!at->before), right = EDGE_IF(!at->beyond);                      \
        for (size_t j = at->j; j < at->end; j += LANES) {                                          \
            const size_t last = at->end - j < LANES ? at->end - j : LANES;                         \
            const float *const w = d->w + j, *p = at->a + j;                                       \
            float *to = at->c + j;                                                                 \
            DW3_WEIGHTS(u, w)                                                                      \
            DW3_WEIGHTS(v, w + d->w_down)                                                          \
            DW3_WEIGHTS(x, w + 2 * d->w_down)                                                      \
            const VEC bias = LOAD(d->bias + j), lo = SET1(d->lo), hi = SET1(d->hi);                \
            body                                                                                   \
        }                                                                                          \
    }

/* Lines of outputs one tap apart: in pairs, a last odd one alone. */
#define DW3_TWICE(width)                                                                           \
    DW3_FUNCTION(                                                                                  \
        dw3_1_##width, for (size_t n = at->lines; n > 0; n -= 2) {                                 \
            REP##width(UPPER_ZERO) if (!at->above || n < at->lines) LINE_1_##width(p, C_U);        \
            if (n == 1) {                                                                          \
                LINE_1_##width(p + down, C_V);                                                     \
                if (!at->below)                                                                    \
                    LINE_1_##width(p + 2 * down, C_X);                                             \
                OUT(width, UPPER)                                                                  \
                break;                                                                             \
            }                                                                                      \
            REP##width(LOWER_ZERO) LINE_1_##width(p + down, C_V_E_U);                              \
            p += 2 * down;                                                                         \
            LINE_1_##width(p, C_X_E_V);                                                            \
            if (!at->below || n > 2)                                                               \
                LINE_1_##width(p + down, E_X);                                                     \
            OUT(width, UPPER)                                                                      \
            OUT(width, LOWER)                                                                      \
        })

/* Two taps apart: the sums e of the next line begin where those of this one end. */
#define DW3_ROLL(width)                                                                            \
    DW3_FUNCTION(                                                                                  \
        dw3_2_##width, REP##width(UPPER_ZERO) if (!at->above) LINE_2_##width(p, C_U);              \
        for (size_t n = at->lines; n > 0; n--) {                                                   \
            p += down;                                                                             \
            LINE_2_##width(p, C_V);                                                                \
            p += down;                                                                             \
            REP##width(LOWER_ZERO) if (n > 1) LINE_2_##width(p, C_X_E_U) else if (!at->below)      \
                LINE_2_##width(p, C_X);                                                            \
            OUT(width, UPPER)                                                                      \
            REP##width(NEXT)                                                                       \
        })

DW3_TWICE(4)
DW3_TWICE(7)
DW3_ROLL(4)
DW3_ROLL(7)

/* Width of the block at pixel x of a line; the last one may begin earlier. */
static size_t dw3_width(size_t x, size_t pixels) {
    const size_t rest = pixels - x;
    return rest > 4 && (rest >= 7 || x > 0) ? 7 : 4;
}

/* Computes lines [y, y + lines) of channels [j, end). */
static void dw3_lines(const qk_depthwise_f32 *d, size_t y, size_t lines, size_t j, size_t end) {
    const bool apart = d->pixel_step != d->tap_across;
    dw3_block b = {.j = j, .end = end, .lines = lines};
    b.above = y == 0 && d->cut.top;
    b.below = y + lines == d->lines && d->cut.bottom;
    for (size_t x = 0; x < d->pixels;) {
        const size_t width = dw3_width(x, d->pixels), rest = d->pixels - x;
        x = rest < width ? d->pixels - width : x;
        b.a = d->a + (ptrdiff_t)y * d->line_step + (ptrdiff_t)x * d->pixel_step;
        b.c = d->c + (ptrdiff_t)y * d->out_line + (ptrdiff_t)x * d->out_pixel;
        b.before = x == 0 && d->cut.left ? d->tap_across : 0;
        b.beyond = x + width == d->pixels && d->cut.right ? d->tap_across : 0;
        if (width == 7)
            (apart ? dw3_2_7 : dw3_1_7)(d, &b);
        else
            (apart ? dw3_2_4 : dw3_1_4)(d, &b);
        x += width;
    }
}

/*
 * Lines whose distance in taps is not that of pixels are computed one by one. Long lines whose
 * blocks share two columns of the image are computed for few channels at a time, so that the shared
 * columns stay in the first-level cache.
 */
static void depthwise_3x3(const qk_depthwise_f32 *d) {
    assert(qk_depthwise_3x3_valid(d));
    const bool alike = d->line_step * d->tap_across == d->pixel_step * d->tap_down;
    const bool share = d->pixel_step == d->tap_across && d->pixels > DW3_LINES;
    const size_t down = d->stretch ? d->stretch : DW3_LINES, most = alike ? down : 1;
    const size_t step = share ? DW3_CHANNELS : d->channels;
    for (size_t y = 0; y < d->lines; y += most) {
        const size_t lines = d->lines - y < most ? d->lines - y : most;
        for (size_t j = 0; j < d->channels; j += step)
            dw3_lines(d, y, lines, j, d->channels - j < step ? d->channels : j + step);
    }
}

/* Whether depthwise_3x3 computes this job. */
static bool is_depthwise_3x3(const qk_depthwise_f32 *d) {
    return d->down == 3 && d->across == 3 && d->pixels >= QK_DEPTHWISE_3X3_LEAST &&
           (d->pixel_step == d->tap_across || d->pixel_step == 2 * d->tap_across);
}

#endif
