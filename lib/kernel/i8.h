/* SPDX-License-Identifier: MIT */
/*
 * Integer kernels: u8 activations x s8 weights, exact int32 sums, requantization to u8.
 *
 * Sums wrap modulo 2^32 on every instruction set, so only the final value has to fit int32; the
 * caller proves that when it packs weights (qk_i8_bounds). Requantization: quant/requantize.h.
 *
 * Every tensor has 64 readable bytes after it: kernels read the last segment of a row in whole
 * dwords and the last channels of a pixel in whole vectors. Those bytes are multiplied by zero
 * weights.
 */
#ifndef QK_I8_H
#define QK_I8_H

#include "base/base.h"
#include "kernel/table.h"

/* ---- micro-kernels ---- */

#define QK_I8_FITS16 32500 /* |acc * m| below it: round(acc * m) + zero_point fits int16 */

/*
 * How sums become outputs. Arrays have an element for each position of the panel (see qk_i8), in
 * the order of positions.
 */
typedef struct qk_out_i8 {
    const int32_t *bias; /* initial values of the sums */
    const float *mult;   /* multiplier per column; NULL: outputs are int32 sums, or floats */
    int32_t zp, lo, hi;  /* zero point and bounds of y, all in 0…255 */
    bool clamp;          /* |sum| * mult may reach 2^31: clamp before converting to int32 */
    bool fits16;         /* |sum| * mult stays below QK_I8_FITS16: zp can be added in 16 bits */
    /* Float outputs: clamp((float)sum * scale + add), as qk_scale of ew.h; NULL: int32 sums. */
    const float *scale, *add;
    float low, high;
} qk_out_i8;

/*
 * im2row: copies m rows of `segs` segments of k <= 64 bytes end to end. Row r is read at a + r *
 * a_stride and written at out + r * out_stride. Up to 64 bytes after a row's last segment are
 * overwritten.
 */
typedef struct qk_gather_u8 {
    const uint8_t *a;
    ptrdiff_t a_stride;
    const int32_t *seg_offset;
    int32_t m, segs, k;
    int32_t line; /* 0, or rows of a line: line i begins at a + i * line_stride */
    ptrdiff_t line_stride;
    uint8_t *out;
    ptrdiff_t out_stride;
} qk_gather_u8;

/*
 * The product of m rows by one panel of columns. Row r begins at rows[r], or at a + r * a_stride
 * where rows is NULL; a is never NULL. Tables with `tiles` also take rows in lines: line i begins
 * at a + i * line_stride, m is a multiple of `line`; 0: no lines, as always with `rows`. A row
 * consists of `segs` segments of 4 * k4 bytes; segment s begins seg_offset[s] bytes after the row's
 * address (NULL: one segment at 0). b: for every segment, for every dword of it, `width` positions
 * of 4 bytes; or for every two dwords, `width` positions of 8 bytes.
 */
typedef struct qk_gemm_u8s8 {
    const uint8_t *a;
    const uint8_t *const *rows;
    ptrdiff_t a_stride;
    ptrdiff_t line_stride;
    const int32_t *seg_offset;
    int32_t line; /* rows of a line, or 0 */
    int32_t m, segs, k4;
    int32_t width; /* columns of the panel: 64, 32 or 16; with small_panels also 24 and 8 */
    int32_t cols;  /* columns that are stored: 1 … width */
    const int8_t *b;
    const int8_t *next;         /* NULL, or the next panel of b, to be prefetched */
    const int32_t *row_init;    /* NULL, or m numbers: one is added to each sum of its row */
    const qk_gather_u8 *gather; /* NULL, or the im2row that makes the rows first */
    void *out;                  /* u8 with mult, else int32 or floats */
    ptrdiff_t out_stride;       /* bytes between rows */
    qk_out_i8 o;
} qk_gemm_u8s8;

/*
 * m pixels of a depthwise convolution, all channels. Pixel r begins at a + r * a_stride, its tap t
 * tap_offset[t] bytes further.
 * w: for every block of 16 * lanes channels, for every 4 taps, 16 * lanes positions of 4 bytes.
 */
typedef struct qk_depthwise_u8s8 {
    const uint8_t *a;
    ptrdiff_t a_stride;
    const int32_t *tap_offset;
    int32_t m, taps, channels;
    const int8_t *w;
    void *out;
    ptrdiff_t out_stride;
    qk_out_i8 o; /* arrays as long as channels rounded up to a block */
} qk_depthwise_u8s8;

/*
 * Rows of output of a depthwise convolution, all channels, which reads the image itself and, for
 * rows outside of the image, `zeros`, a row of zero points. Outputs are bytes without a clamp, or
 * floats (qk_i8_floats_window). Weights are packed by qk_i8_pack_window.
 */
typedef struct qk_window_u8s8 {
    const uint8_t *image, *zeros;
    int32_t h, wd, channels;
    int64_t top; /* image row of the first output's first tap (`left`: column); may be < 0 */
    int32_t left;
    int32_t kh, kw, stride_h, stride_w, dilation_h, dilation_w;
    int32_t rows, wo;
    bool split; /* two sets of weights, as in qk_i8_pack_window */
    const int8_t *w;
    void *out; /* dense: rows of wo pixels */
    qk_out_i8 o;
} qk_window_u8s8;

/*
 * One row of sums with weight zero points, in column order: out[i] = requantized acc[i] - row_zp *
 * colsum[i] - w_zp[i] * rest.
 */
typedef struct qk_post_row_i8 {
    const int32_t *acc, *colsum, *w_zp;
    const float *mult;
    int32_t n;
    uint32_t row_zp, rest;
    uint8_t *out;
    qk_out_i8 o; /* only zp, lo and hi are used */
} qk_post_row_i8;

/*
 * Products with fewer multiplications do not use AMX, because setting up tiles takes 0.1 us
 * (measured with 1 to 100 rows). Half as many are enough if weights are already packed for tiles
 * and rows fill whole tiles.
 */
#define QK_I8_TILES_FROM (1 << 18)

/*
 * The integer part of the kernel table, with its order of columns. Columns are permuted so that the
 * in-lane packs of a vector unit write them back in order: in a panel of V vectors of `lanes`
 * 128-bit lanes, the position of vector v, lane l, element e holds column 4 * V * l + 4 * v + e.
 * With one lane (C) and in panels of 24 and 8 columns the position is the column.
 */
typedef struct qk_i8 {
    int32_t lanes;
    int32_t widest;    /* columns of the widest panel: 64 or 16 */
    bool small_panels; /* there are panels of 24 and 8 columns */
    bool fetches;      /* gemm prefetches `next` */
    bool pairs;        /* gemm takes two dwords at a time: k4 is even */
    bool planes;       /* in each 64 bytes of weights, the even bytes come before the odd ones */
    /*
     * gemm uses tiles of 16 rows by 64 bytes: k4 is a multiple of 16, panels have 64 or 32 columns,
     * rows may come in lines. `below` packs and computes the products that do not use tiles.
     */
    bool tiles;
    const struct qk_i8 *below; /* or NULL */
    void (*gemm)(const qk_gemm_u8s8 *g);
    /*
     * gemm of at most panel_rows rows by adjacent panels, all of the widest; g.cols counts the
     * columns of all. NULL: panel_rows is 0.
     */
    void (*panels)(const qk_gemm_u8s8 *g, int32_t panels);
    int32_t panel_rows;
    /* out[r] = factor * sum of the first k bytes of row r's segments; g as for gemm, without b */
    void (*row_sums)(const qk_gemm_u8s8 *g, int32_t k, int32_t factor, int32_t *out);
    void (*gather)(const qk_gather_u8 *g); /* or NULL */
    /*
     * NULL, or packs 4 * fours rows of 64 adjacent bytes, a byte for each column, rows `row` bytes
     * apart, into a panel without planes and pairs. Each byte is byte ^ flip. Adds the weights of
     * each position to sums.
     */
    void (*pack_side)(const int8_t *w, int64_t row, int32_t fours, uint8_t flip, int8_t *to,
                      int32_t sums[64]);
    void (*depthwise)(const qk_depthwise_u8s8 *d);
    /* for kernels that qk_i8_has_window accepts; or NULL */
    void (*window)(const qk_window_u8s8 *d);
    int32_t window_group;  /* rows of the kernel in a dword: 4 of 8 bits or 2 of 16 bits */
    int32_t window_floats; /* most sets of weights with float outputs (qk_i8_floats_window), or 0 */
    /* y[i] = requantized acc[i], one multiplier */
    void (*requantize)(const int32_t *acc, size_t n, float m, int32_t zp, int32_t lo, int32_t hi,
                       uint8_t *y);
    void (*post)(const qk_post_row_i8 *p);
} qk_i8;

extern const qk_i8 qk_i8_c;
#if QK_X86
/* two_ports: avx512vnni with other tiles, see qk_table_two_ports. */
extern const qk_i8 qk_i8_avx2, qk_i8_avxvnni, qk_i8_avx512vnni, qk_i8_two_ports, qk_i8_amx;
#elif QK_ARM
extern const qk_i8 qk_i8_neon, qk_i8_neondot, qk_i8_neoni8mm;
#endif

/* ---- contracts: what kernels assert in debug and sanitizer builds ---- */

/* Valid outputs are bytes, floats or int32; the latter two are aligned to 4 bytes. */
static inline bool qk_out_i8_valid(const qk_out_i8 *o, const void *out, ptrdiff_t stride) {
    const bool bytes =
        o->mult && o->lo >= 0 && o->lo <= o->hi && o->hi <= 255 && o->zp >= 0 && o->zp <= 255;
    const bool dwords =
        !o->mult && (!o->scale || o->add) && (uintptr_t)out % 4 == 0 && stride % 4 == 0;
    return o->bias && (bytes || dwords);
}

/* `panels`: the number of adjacent panels; several must be of the widest kind. */
static inline bool qk_gemm_u8s8_valid(const qk_i8 *t, const qk_gemm_u8s8 *g, int32_t panels) {
    const bool small = t->small_panels && (g->width == 24 || g->width == 8);
    const bool usual =
        (g->width == 64 || g->width == 32 || g->width == 16) && g->width <= t->widest;
    return g->m > 0 && g->a && g->b && g->segs > 0 && (g->segs == 1 || g->seg_offset) &&
           g->k4 > 0 && (!t->pairs || g->k4 % 2 == 0) && (!t->tiles || g->k4 % 16 == 0) &&
           (g->line == 0 || (t->tiles && !g->rows && g->line > 0 && g->m % g->line == 0)) &&
           (small || usual) && panels > 0 &&
           (panels == 1 || (g->width == t->widest && g->m <= t->panel_rows)) && g->cols > 0 &&
           g->cols <= (int64_t)g->width * panels && qk_out_i8_valid(&g->o, g->out, g->out_stride);
}

static inline bool qk_gather_u8_valid(const qk_gather_u8 *g) {
    return g->a && g->seg_offset && g->segs > 0 && g->k > 0 && g->k <= 64 && g->m >= 0 &&
           g->line >= 0 && g->out && g->out_stride >= (ptrdiff_t)g->segs * g->k;
}

static inline bool qk_depthwise_u8s8_valid(const qk_depthwise_u8s8 *d) {
    return d->a && d->w && d->tap_offset && d->taps > 0 && d->channels > 0 && d->m > 0 &&
           qk_out_i8_valid(&d->o, d->out, d->out_stride);
}

/* ---- packing ---- */

/* Width of the next panel when `left` columns remain. */
int32_t qk_i8_panel(const qk_i8 *t, int32_t left);
/* How many panels t->panels computes at once for m rows, with `left` columns remaining. */
int32_t qk_i8_panels(const qk_i8 *t, int32_t m, int32_t left);
/* The column of a position in a panel (or depthwise block) of `width` columns. */
int32_t qk_i8_column(const qk_i8 *t, int32_t width, int32_t position);
/*
 * out[position] = in[column % period] over all panels of `columns`, for elements of 4 bytes (int32,
 * float); 0 from column n on.
 */
void qk_i8_spread(const qk_i8 *t, int32_t columns, int32_t n, int32_t period, const void *in,
                  void *out);

/* The weights of one group: w(column, kernel row, kernel column, channel). */
typedef struct qk_source_i8 {
    const int8_t *w;
    uint8_t flip; /* 0x80: w is u8, its bytes are flipped into s8 */
    int32_t n, kh, kw, c;
    int64_t sn, sy, sx, sc; /* strides in elements */
    const int32_t *zp;      /* zero points per column, above -128: w - zp is packed; NULL: none */
    int32_t pixels, shift;  /* merged only: see qk_form_i8; 0 pixels is 1 */
    bool whole;             /* merged only: all kernel rows are one segment */
    const qsim_ctx *ctx;    /* cancelling it ends packing early; NULL: nothing does */
    bool split;             /* products only: w - zp is packed as two sets of s8 weights */
} qk_source_i8;

/*
 * The packed form of a group. With `merged` there is one segment per kernel row (kw * c bytes),
 * else one per tap. With `sum_column` a column of ones is added, whose sums are those of the
 * activations.
 *
 * With several pixels, neighbouring outputs are one row of the product, with n columns for each
 * pixel. The weights of a pixel begin `shift` bytes after those of the pixel before, in a longer
 * segment that has zeros elsewhere.
 *
 * With `split` all segments come twice; the second set has the part of w - zp that exceeds s8.
 */
typedef struct qk_form_i8 {
    int32_t segs, k, k4;
    int32_t n; /* columns, the sum column included */
    int32_t positions;
    size_t bytes; /* size of the packed group */
} qk_form_i8;

/* The part of w, a difference w - zp, in the first or second set of s8 weights. */
static inline int8_t qk_i8_part(int32_t w, bool second) {
    const int32_t first = w < -128 ? -128 : w > 127 ? 127 : w;
    return (int8_t)(second ? w - first : first);
}

/* Whether packing has to end early, because the source's context is cancelled. */
bool qk_i8_stopped(const qk_source_i8 *s);
/* Computes the packed form of a group; false: a size overflows. */
bool qk_i8_form(const qk_i8 *t, const qk_source_i8 *s, bool merged, bool sum_column, qk_form_i8 *f);
/* Packs one group; the n sums of its columns go to colsum, which may be NULL. */
void qk_i8_pack(const qk_i8 *t, const qk_source_i8 *s, bool merged, bool sum_column, int8_t *b,
                int32_t *colsum);

/*
 * For depthwise convolutions the source has n channels and c = 1. If `channels` is larger than n,
 * channels repeat with period n: several pixels of few channels are then one pixel of many. The
 * last block also repeats its channels, with period 32 or 16, if they fill at most half or a
 * quarter of it.
 */
/* Channels rounded up to whole blocks. */
int32_t qk_i8_depthwise_positions(const qk_i8 *t, int32_t channels);
/*
 * Packs 4 * ceil(taps / 4) bytes for each position; with zero points twice as many: a second set of
 * the same taps holds the part of w - zp that exceeds s8.
 */
void qk_i8_pack_depthwise(const qk_i8 *t, const qk_source_i8 *s, int32_t channels, int8_t *w,
                          int32_t *colsum);
/* out[position] = in[channel % n] */
void qk_i8_spread_depthwise(const qk_i8 *t, int32_t channels, int32_t n, const void *in, void *out);

/* Whether the table has a window kernel for kh x kw taps. */
static inline bool qk_i8_has_window(const qk_i8 *t, int32_t kh, int32_t kw) {
    return t->window && kh >= 2 && kh <= 7 && kw <= 7;
}
/* Number of sets of weights: two if w - zp exceeds s8 and weights have 8 bits, else one. */
static inline int32_t qk_i8_split_sets(const qk_i8 *t, bool split) {
    return split && t->window_group == 4 ? 2 : 1;
}
/* Whether the table has a window kernel with float outputs for these taps, without dilation. */
static inline bool qk_i8_floats_window(const qk_i8 *t, int32_t kh, int32_t kw, int32_t stride_h,
                                       int32_t stride_w, bool split) {
    return qk_i8_split_sets(t, split) <= t->window_floats && kh == 3 && kw == 3 &&
           stride_h == stride_w && stride_h <= 2;
}
static inline int32_t qk_i8_window_groups(const qk_i8 *t, int32_t kh) {
    return (kh + t->window_group - 1) / t->window_group;
}
/*
 * Whether two rows of output share interleaved dwords: the kernel moved down by the stride needs no
 * more of them. The second row then has weights of its own, moved down.
 */
static inline bool qk_i8_window_shared(const qk_i8 *t, int32_t kh, int32_t stride_h) {
    return qk_i8_window_groups(t, kh) == qk_i8_window_groups(t, kh + stride_h);
}
/* Number of sets of weights in a block: one per row of output, or two if w - zp exceeds s8. */
static inline int32_t qk_i8_window_sets(const qk_i8 *t, int32_t kh, int32_t stride_h, bool split) {
    return (qk_i8_window_shared(t, kh, stride_h) ? 2 : 1) * qk_i8_split_sets(t, split);
}
static inline bool qk_window_u8s8_valid(const qk_i8 *t, const qk_window_u8s8 *d) {
    const bool floats = qk_i8_floats_window(t, d->kh, d->kw, d->stride_h, d->stride_w, d->split) &&
                        d->dilation_h == 1 && d->dilation_w == 1;
    return qk_i8_has_window(t, d->kh, d->kw) && d->image && d->zeros && d->w && d->channels > 0 &&
           d->rows > 0 && d->wo > 0 && d->stride_h > 0 && d->stride_h <= 64 && d->stride_w > 0 &&
           d->stride_w <= 64 && d->dilation_h > 0 && d->dilation_w > 0 && !d->o.clamp &&
           (d->o.mult || (d->o.scale && floats)) && qk_out_i8_valid(&d->o, d->out, 4);
}
/*
 * Packs the weights of window kernels. Order: block, row of output, set, column of the kernel,
 * group of kernel rows, position; each position has one dword. With 16-bit weights there is one
 * set.
 */
void qk_i8_pack_window(const qk_i8 *t, const qk_source_i8 *s, int32_t stride_h, int8_t *w,
                       int32_t *colsum);

/* ---- bounds of sums ---- */

/* The most columns of one call of qk_i8_totals. */
#define QK_I8_TOTALS 256
/*
 * Computes for each of `count` columns from `first` on the sum of w - zp, and the sum of its
 * positive terms. `zp` has `count` numbers from -256 to 256; NULL: 0.
 */
void qk_i8_totals(const qk_source_i8 *s, int32_t first, int32_t count, const int32_t *zp,
                  int64_t *sum, int64_t *above);
/* Writes the sums of the weights of columns [n, end) to colsum[n] and following. */
void qk_i8_column_sums(const qk_source_i8 *s, int32_t n, int32_t end, int32_t *colsum);
/*
 * Computes the least and greatest value of sum((x - x_zp) * (w - w_zp)) over x in 0…255 from a
 * column's totals. Callers prove by it that sums fit int32.
 */
static inline void qk_i8_bounds(int64_t sum, int64_t above, int32_t x_zp, int64_t *least,
                                int64_t *greatest) {
    *least = 255 * (sum - above) - x_zp * sum;
    *greatest = 255 * above - x_zp * sum;
}

#endif
