/* SPDX-License-Identifier: MIT */
/*
 * Float kernels: matrix product and convolution, depthwise convolution, pooling.
 *
 * Numbers. Every output has one accumulator that starts at +0. Products are added one after the
 * other, in the order of `seg` and then k, each by a fused multiply-add. Vectors run across
 * outputs. So all instruction sets give the same bits, and results do not depend on how rows or
 * columns are split. The result is acc + bias, clamped by `v < lo ? lo : v`, `v > hi ? hi : v`,
 * which lets NaN pass.
 *
 * Memory. Inputs are channels last and dense. Up to 64 bytes after a row may be read, but are not
 * used. Nothing is written outside of the outputs.
 */
#ifndef QK_F32_H
#define QK_F32_H

#include "base/base.h"
#include "kernel/table.h"

/*
 * c[r][j] = clamp(sum over s, i of a[row[r] + seg[s] + i] * b(s * k + i, j) + bias[j])
 *
 * In a convolution a row is an output pixel (row[] has the offset of its window), and a segment is
 * a part of the window that is contiguous in memory. A plain product has one segment at 0. Windows
 * of pixels at the image's border have fewer taps; then `at` has the row of b for each segment, and
 * `out` the place of each pixel, because these pixels are not adjacent.
 */
typedef struct qk_gemm_f32 {
    const float *a;
    const ptrdiff_t *row; /* `rows` offsets in elements */
    const ptrdiff_t *seg; /* `segs` offsets, added to a row's */
    size_t rows, segs, k;
    const float *b;    /* packed by qk_pack_f32 for this table: all columns */
    size_t b_row;      /* 0, or b is a matrix: floats between its rows, a multiple of 8 columns */
    const float *bias; /* readable up to the packed width; -0.0f where there is none */
    size_t cols;
    float lo, hi;
    float *c;
    size_t ldc;           /* elements between rows of c */
    const ptrdiff_t *out; /* NULL, or the offset of each row of c instead of r * ldc */
    const size_t *at;     /* NULL, or the row of b of each segment instead of s * k */
    size_t depth;         /* with `at`: number of rows of b */
    /*
     * begun: c has the sums of earlier terms. open: more terms follow, so c gets the sums without
     * bias and clamp. Only for `part`, and for `gemm` of whole panels in tables with `parts`.
     */
    bool begun, open;
    size_t panel;      /* for `part`: the panel of the table that b is packed for */
    const float *next; /* the weights of the next job, to be prefetched during this one */
    size_t next_floats;
} qk_gemm_f32;

/*
 * The sides of a rectangle of output pixels at which windows reach one tap beyond the image. With
 * `top` the first line has no first row of taps; with `right` the last column has no last tap.
 */
typedef struct qk_cut {
    bool top, bottom, left, right;
} qk_cut;

/*
 * Depthwise convolution of a rectangle of output pixels, all of which have down x across taps:
 * c[y * out_line + x * out_pixel + j] = clamp(sum over ky, kx of
 *     a[y * line_step + x * pixel_step + ky * tap_down + kx * tap_across + j] *
 *     w[ky * w_down + kx * stride + j] + bias[j]) for j < channels.
 * Rows of w and bias hold `stride` floats, a multiple of 16, zero after `channels`.
 */
typedef struct qk_depthwise_f32 {
    const float *a;
    size_t lines, pixels;
    ptrdiff_t line_step, pixel_step;
    size_t down, across;
    ptrdiff_t tap_down, tap_across;
    size_t channels, stride, w_down;
    const float *w, *bias;
    float lo, hi;
    float *c;
    ptrdiff_t out_line, out_pixel;
    qk_cut cut;
    size_t stretch; /* lines of a block in depthwise_3x3; 0: its default */
} qk_depthwise_f32;

/*
 * Pooling of one row of output, or of several rows of maxima whose windows have all rows inside of
 * the image. The caller leaves out window rows outside of the image (`x` is the first row inside,
 * `kh` the number of rows); the kernel leaves out window columns outside of it.
 */
typedef struct qk_pool {
    const void *x;      /* column 0 of the first window row */
    ptrdiff_t row_step; /* elements between window rows */
    size_t kh;          /* window rows inside the image, >= 0 */
    size_t kw, dw, sw;  /* window columns (0: none is inside), their dilation, the stride */
    ptrdiff_t left;     /* padding: output ox starts at ox * sw - left */
    size_t width, ow;   /* columns of the image, of the output */
    /*
     * The windows of outputs [inside, inside_end) are wholly inside of the image, which is faster.
     * qk_pool_set_inside() sets both; 0 and 0 give the same results.
     */
    size_t inside, inside_end;
    size_t channels;
    void *y;
    size_t y_step; /* elements between output pixels: channels, or more */
    size_t lines;  /* rows of output; elements between them in x and y: */
    ptrdiff_t line_step, out_line;
    /*
     * An average divides by count_rows * columns. Columns are those inside of the image, or with
     * count_pads all before width + right.
     */
    size_t count_rows;
    ptrdiff_t right;
    bool count_pads;
    /* u8 averages: m = x_scale / (y_scale * count), see quant/requantize.h. */
    float x_scale, y_scale;
    int32_t x_zero, y_zero, lo, hi;
} qk_pool;

#define QK_DEPTHWISE_3X3_LEAST 4

/* The float and pooling part of the kernel table. */
typedef struct qk_f32 {
    size_t panel; /* columns of a packed panel, a multiple of 16 */
    bool parts; /* gemm supports `begun`, `open` and `next`, and reads many terms block by block */
    void (*gemm)(const qk_gemm_f32 *g);
    void (*part)(const qk_gemm_f32 *g); /* in C: at most `panel` columns, sums of any length */
    void (*depthwise)(const qk_depthwise_f32 *d); /* for jobs without cuts */
    /*
     * For jobs with cuts: 3 x 3 taps, pixels one or two taps apart, lines of QK_DEPTHWISE_3X3_LEAST
     * pixels or more. `a` is where the first window would begin without a cut. May be NULL.
     */
    void (*depthwise_3x3)(const qk_depthwise_f32 *d);
    void (*max_f32)(const qk_pool *p);
    void (*average_f32)(const qk_pool *p);
    void (*max_u8)(const qk_pool *p);
    void (*average_u8)(const qk_pool *p);
} qk_f32;

/* `part` of a table: C, or C compiled with FMA3. */
void qk_gemm_f32_c(const qk_gemm_f32 *g);
void qk_part_f32_fma(const qk_gemm_f32 *g);

/* cfma has the C kernels compiled with FMA3: the same bits, faster. */
extern const qk_f32 qk_f32_c;
#if QK_X86
extern const qk_f32 qk_f32_cfma, qk_f32_avx2, qk_f32_avx512, qk_f32_two_ports;
#elif QK_ARM
extern const qk_f32 qk_f32_neon;
#endif

/* The C versions of pooling. */
void qk_max_f32_c(const qk_pool *p);
void qk_average_f32_c(const qk_pool *p);
void qk_max_u8_c(const qk_pool *p);
void qk_average_u8_c(const qk_pool *p);

/* The offset of row r of the output; the number of rows of b. */
static inline ptrdiff_t qk_gemm_out(const qk_gemm_f32 *g, size_t r) {
    return g->out ? g->out[r] : (ptrdiff_t)(r * g->ldc);
}
static inline size_t qk_gemm_depth(const qk_gemm_f32 *g) {
    return g->at ? g->depth : g->segs * g->k;
}
/* Where column `col`, the first one of a panel, begins in b. */
static inline const float *qk_gemm_column(const qk_gemm_f32 *g, size_t col) {
    return g->b + (g->b_row ? col : col * qk_gemm_depth(g));
}

/* ---- contracts: what kernels assert in debug and sanitizer builds ---- */

static inline bool qk_gemm_f32_valid(const qk_f32 *k, const qk_gemm_f32 *g) {
    return g->row && g->seg && g->b && g->bias && g->c && g->cols > 0 &&
           (g->out || g->rows < 2 || g->ldc >= g->cols) &&
           (g->panel || !(g->begun || g->open) ||
            (k->parts && g->cols % k->panel == 0 && !g->b_row)) &&
           (!g->b_row || (g->b_row >= g->cols && g->cols % 8 == 0));
}
static inline bool qk_depthwise_f32_valid(const qk_depthwise_f32 *d) {
    return d->w && d->bias && d->c && d->lines > 0 && d->pixels > 0 && d->channels > 0 &&
           d->stride % 16 == 0 && d->stride >= d->channels;
}
static inline bool qk_depthwise_3x3_valid(const qk_depthwise_f32 *d) {
    return qk_depthwise_f32_valid(d) && d->down == 3 && d->across == 3 &&
           d->pixels >= QK_DEPTHWISE_3X3_LEAST &&
           (d->pixel_step == d->tap_across || d->pixel_step == 2 * d->tap_across);
}
static inline bool qk_pool_valid(const qk_pool *p) {
    return p->y && p->channels > 0 && p->dw > 0 && p->sw > 0 && p->y_step >= p->channels &&
           p->inside <= p->inside_end && p->inside_end <= p->ow;
}

/*
 * Packed weights are panels of `panel` columns; the last panel has the remaining columns, rounded
 * up to a multiple of 8. Row k of a panel has the k-th weight of each column, and zeros after the
 * last.
 */

/* Floats after the last row of the last panel that kernels may read, since they load whole vectors.
 */
#define QK_PACK_SLACK 64

/* Floats that the packed matrix needs, the slack included; false on overflow. */
bool qk_pack_f32_size(size_t panel, size_t k, size_t cols, size_t *floats);

/* Width of the panel that starts at column `col`. */
static inline size_t qk_panel_width(size_t panel, size_t cols, size_t col) {
    size_t rest = cols - col;
    return rest >= panel ? panel : (rest + 7) & ~(size_t)7;
}

/*
 * Packs b(k, j) = src[(k / inner) * outer_step + (k % inner) * inner_step + j * col_step]. A matrix
 * uses inner = 1; OIHW weights have k = (kh * KW + kw) * C + c, so inner = C, inner_step = KH * KW,
 * outer_step = 1.
 */
typedef struct qk_pack_source {
    const void *src; /* floats as files have them: no alignment */
    size_t inner;
    ptrdiff_t outer_step, inner_step, col_step;
} qk_pack_source;

void qk_pack_f32(float *packed, size_t panel, size_t k, size_t cols, const qk_pack_source *source);

/*
 * Whether the weights seem to have denormals: one is in the first row of the n floats, or is the
 * last float of a later row. (Looking at all floats would take a fifth of the time of loading.)
 * Weight decay makes denormals in channels that no gradient reaches, and a product with one takes a
 * hundred cycles or more on x86, so weights that a session keeps are then packed with 0 in their
 * place.
 */
bool qk_has_denormals(const void *floats, size_t n, size_t row);
/* Replaces denormals by 0. */
void qk_flush_denormals(float *x, size_t n);

/* Whether all floats are finite. They need no alignment. */
bool qk_all_finite(const void *floats, size_t n);

#endif
