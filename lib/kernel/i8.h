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

/* How sums become outputs. Arrays are in position order (see below) and as long as the panel. */
typedef struct qk_out_i8 {
    const int32_t *bias; /* what sums start with */
    const float *mult;   /* one multiplier per column; NULL: int32 sums are stored, or floats */
    int32_t zp, lo, hi;  /* lo <= y <= hi, all in 0…255 */
    bool clamp;          /* |sum| * mult may reach 2^31: clamp before converting */
    bool fits16;         /* |sum| * mult stays below QK_I8_FITS16: zp can be added in 16 bits */
    /* Floats: clamp((float)sum * scale + add), as qk_scale of ew.h clamps; NULL: int32. */
    const float *scale, *add;
    float low, high;
} qk_out_i8;

/*
 * m rows of `segs` segments of k bytes, 64 at most, laid end to end: row r of a begins at
 * a + r * a_stride, that of the result at out + r * out_stride. Up to 64 bytes after a row's last
 * segment are overwritten.
 */
typedef struct qk_gather_u8 {
    const uint8_t *a;
    ptrdiff_t a_stride;
    const int32_t *seg_offset;
    int32_t m, segs, k;
    int32_t line; /* 0, or rows after which `a` continues line_stride bytes after its beginning */
    ptrdiff_t line_stride;
    uint8_t *out;
    ptrdiff_t out_stride;
} qk_gather_u8;

/*
 * m rows x one panel of columns. Row r begins at rows[r], or at a + r * a_stride where rows is
 * NULL; a never is. Tables that take lines: every `line` rows, a continues line_stride bytes after
 * where they began; m is a multiple of `line` then, which is 0 where rows is not NULL. It consists
 * of `segs` segments of 4 * k4 bytes; segment s begins seg_offset[s] bytes after the row's address
 * (NULL: one segment at 0). b: for every segment, for every dword of it, `width` positions of 4
 * bytes; or for every two dwords, `width` positions of 8 bytes.
 */
typedef struct qk_gemm_u8s8 {
    const uint8_t *a;
    const uint8_t *const *rows;
    ptrdiff_t a_stride;
    ptrdiff_t line_stride;
    const int32_t *seg_offset;
    int32_t line; /* or 0 */
    int32_t m, segs, k4;
    int32_t width; /* 64, 32 or 16; 24 or 8 where the table says so */
    int32_t cols;  /* of them stored: 1 … width */
    const int8_t *b;
    const int8_t
        *next; /* NULL, or the next panel of b, as wide: tables that fetch do it meanwhile */
    const int32_t *row_init;    /* NULL, or m numbers: what sums of a row start with besides bias */
    const qk_gather_u8 *gather; /* NULL, or what first puts the rows where they are */
    void *out;                  /* u8, or int32 without mult */
    ptrdiff_t out_stride;       /* bytes from row to row */
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
 * Rows of output of a depthwise convolution, all channels, on the image itself: what lies outside
 * of it is seen as `zeros`, a row of zero points. To bytes without a clamp, or to floats
 * (qk_i8_floats_window). Weights: qk_i8_pack_window.
 */
typedef struct qk_window_u8s8 {
    const uint8_t *image, *zeros;
    int32_t h, wd, channels;
    int64_t top; /* where the first tap of the first output looks; may be negative */
    int32_t left;
    int32_t kh, kw, stride_h, stride_w, dilation_h, dilation_w;
    int32_t rows, wo;
    bool split; /* two sets of weights, as in qk_i8_pack_window */
    const int8_t *w;
    void *out; /* dense */
    qk_out_i8 o;
} qk_window_u8s8;

/*
 * One row of sums with weight zero points:
 * out[i] = requantized acc[i] - row_zp * colsum[i] - w_zp[i] * rest. Arrays in natural order.
 */
typedef struct qk_post_row_i8 {
    const int32_t *acc, *colsum, *w_zp;
    const float *mult;
    int32_t n;
    uint32_t row_zp, rest;
    uint8_t *out;
    qk_out_i8 o; /* zp, lo, hi */
} qk_post_row_i8;

/*
 * Multiplications of a product from which on setting up tiles (0.1 us) pays, measured with 1 to 100
 * rows; by weights that are padded for tiles already and by whole tiles of rows, half as many.
 */
#define QK_I8_TILES_FROM (1 << 18)

/*
 * Position and column. Columns are permuted so that the in-lane packs of a vector unit write them
 * back in order: in a panel of V vectors of `lanes` 128-bit lanes, vector v, lane l, element e
 * holds column 4 * V * l + 4 * v + e. With one lane (C) that is the identity, and so it is in
 * panels of 24 and 8.
 */
typedef struct qk_i8 {
    int32_t lanes;
    int32_t widest;    /* panel: 64 or 16 columns */
    bool small_panels; /* there are panels of 24 and 8 columns */
    bool fetches;      /* gemm heeds `next` */
    bool pairs;        /* gemm takes two dwords at a time: k4 is even */
    bool planes;       /* of every 16 positions' dwords, the even bytes stand before the odd ones */
    /*
     * Rows and weights go through tiles of 16 rows by 64 bytes: k4 is a multiple of 16, panels have
     * 64 or 32 columns, rows can lie in lines. `below` packs and computes what tiles do not suit.
     */
    bool tiles;
    const struct qk_i8 *below; /* or NULL */
    void (*gemm)(const qk_gemm_u8s8 *g);
    /*
     * gemm of up to panel_rows rows and of panels side by side, all of the widest; g.cols is of all
     * of them. NULL: no row.
     */
    void (*panels)(const qk_gemm_u8s8 *g, int32_t panels);
    int32_t panel_rows;
    /* out[r] = factor * sum of the first k bytes of row r's segments; g as above, without b */
    void (*row_sums)(const qk_gemm_u8s8 *g, int32_t k, int32_t factor, int32_t *out);
    void (*gather)(const qk_gather_u8 *g); /* or NULL */
    void (*depthwise)(const qk_depthwise_u8s8 *d);
    /* kernels that qk_i8_has_window names, or NULL */
    void (*window)(const qk_window_u8s8 *d);
    int32_t window_group;  /* rows of the kernel in a dword: 4 of 8 bits or 2 of 16 */
    int32_t window_floats; /* qk_i8_floats_window: sets of weights at most, or 0 */
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

/* Sums become bytes, floats or int32; whatever has more than one byte is aligned to it. */
static inline bool qk_out_i8_valid(const qk_out_i8 *o, const void *out, ptrdiff_t stride) {
    const bool bytes =
        o->mult && o->lo >= 0 && o->lo <= o->hi && o->hi <= 255 && o->zp >= 0 && o->zp <= 255;
    const bool dwords =
        !o->mult && (!o->scale || o->add) && (uintptr_t)out % 4 == 0 && stride % 4 == 0;
    return o->bias && (bytes || dwords);
}

/* `panels` side by side, of the widest where there are several. */
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
/* How many of the next ones t->panels can take together, of m rows. */
int32_t qk_i8_panels(const qk_i8 *t, int32_t m, int32_t left);
/* Column of a position in a panel (or depthwise block) of `width`. */
int32_t qk_i8_column(const qk_i8 *t, int32_t width, int32_t position);
/*
 * out[position] = in[column % period] over all panels of `columns`, for elements of 4 bytes (int32,
 * float); 0 from column n on.
 */
void qk_i8_spread(const qk_i8 *t, int32_t columns, int32_t n, int32_t period, const void *in,
                  void *out);

/* Where the weights of one group lie: (column, kernel row, kernel column, channel). */
typedef struct qk_source_i8 {
    const int8_t *w;
    uint8_t flip; /* 0x80: w is u8, its bytes are flipped into s8 */
    int32_t n, kh, kw, c;
    int64_t sn, sy, sx, sc; /* strides in elements */
    const int32_t *zp;      /* per column, above -128: w - zp is packed; NULL: none */
    int32_t pixels, shift;  /* merged only: see below; 0 pixels is 1 */
    bool whole;             /* merged only: all kernel rows make one segment */
    const qsim_ctx *ctx;    /* asked whether to go on: packing may end early; NULL: never asked */
    bool split;             /* products: two sets of weights, as zp needs them */
} qk_source_i8;

/*
 * merged: one segment per kernel row (kw * c bytes), else one per tap. sum_column: a column of ones
 * follows, whose sums are those of the activations.
 *
 * Several pixels: neighbouring outputs make one row of the product, with n columns each. Their
 * kernel rows begin `shift` bytes after each other in a longer one, zero elsewhere.
 *
 * split: all segments come twice, and what w - zp exceeds s8 by is in the second set.
 */
typedef struct qk_form_i8 {
    int32_t segs, k, k4;
    int32_t n; /* columns, the sum column included */
    int32_t positions;
    size_t bytes; /* of the packed group */
} qk_form_i8;

/* w - zp in two sets of s8 weights. */
static inline int8_t qk_i8_part(int32_t w, bool second) {
    const int32_t first = w < -128 ? -128 : w > 127 ? 127 : w;
    return (int8_t)(second ? w - first : first);
}

/* false: sizes overflow */
bool qk_i8_form(const qk_i8 *t, const qk_source_i8 *s, bool merged, bool sum_column, qk_form_i8 *f);
/* Packs one group; colsum (n of them) may be NULL. */
void qk_i8_pack(const qk_i8 *t, const qk_source_i8 *s, bool merged, bool sum_column, int8_t *b,
                int32_t *colsum);

/*
 * Depthwise: the source has n channels and c = 1. Channels repeat with period n where `channels` is
 * larger: several pixels of few channels are then one of many. The last block repeats channels,
 * too, if they fill no more than half or a quarter of its lanes: those are 16, 32 or 64, at most
 * the block.
 */
/* Channels rounded up to whole blocks. */
int32_t qk_i8_depthwise_positions(const qk_i8 *t, int32_t channels);
/*
 * Packs 4 * ceil(taps / 4) bytes for each position; twice as many with zero points: what w - zp
 * exceeds s8 by comes in a second set of the same taps.
 */
void qk_i8_pack_depthwise(const qk_i8 *t, const qk_source_i8 *s, int32_t channels, int8_t *w,
                          int32_t *colsum);
/* out[position] = in[channel % n] */
void qk_i8_spread_depthwise(const qk_i8 *t, int32_t channels, int32_t n, const void *in, void *out);

/* Has the table a window kernel for this kernel? */
static inline bool qk_i8_has_window(const qk_i8 *t, int32_t kh, int32_t kw) {
    return t->window && kh >= 2 && kh <= 7 && kw <= 7;
}
/* Sets of weights: two where zero points exceed s8; in 16 bits they do not. */
static inline int32_t qk_i8_split_sets(const qk_i8 *t, bool split) {
    return split && t->window_group == 4 ? 2 : 1;
}
/* Does it have one to floats for this kernel, undilated? */
static inline bool qk_i8_floats_window(const qk_i8 *t, int32_t kh, int32_t kw, int32_t stride_h,
                                       int32_t stride_w, bool split) {
    return qk_i8_split_sets(t, split) <= t->window_floats && kh == 3 && kw == 3 &&
           stride_h == stride_w && stride_h <= 2;
}
static inline int32_t qk_i8_window_groups(const qk_i8 *t, int32_t kh) {
    return (kh + t->window_group - 1) / t->window_group;
}
/*
 * Two rows of output share what is interleaved for one if the kernel, moved down by the stride,
 * takes no more dwords: the second row then has its own, moved weights.
 */
static inline bool qk_i8_window_shared(const qk_i8 *t, int32_t kh, int32_t stride_h) {
    return qk_i8_window_groups(t, kh) == qk_i8_window_groups(t, kh + stride_h);
}
/* Sets of weights in a block: one per row of output, twice where zero points exceed s8. */
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
 * For every block, row of output, set, column of the kernel and group of its rows: positions of
 * one dword. In 16 bits w - zp needs no second set.
 */
void qk_i8_pack_window(const qk_i8 *t, const qk_source_i8 *s, int32_t stride_h, int8_t *w,
                       int32_t *colsum);

/* ---- bounds of sums ---- */

/* Columns that qk_i8_totals looks at in one call, at most. */
#define QK_I8_TOTALS 256
/*
 * For each of `count` columns from `first` on, the sum of w - zp and the sum of those above 0; zp
 * has `count` numbers from -256 to 256, or is NULL.
 */
void qk_i8_totals(const qk_source_i8 *s, int32_t first, int32_t count, const int32_t *zp,
                  int64_t *sum, int64_t *above);
/* The sums of the weights of columns [n, end) into colsum[n] and following. */
void qk_i8_column_sums(const qk_source_i8 *s, int32_t n, int32_t end, int32_t *colsum);
/*
 * Least and greatest value of sum((x - x_zp) * (w - w_zp)) over x in 0…255, from a column's totals.
 * The proof that int32 suffices.
 */
static inline void qk_i8_bounds(int64_t sum, int64_t above, int32_t x_zp, int64_t *least,
                                int64_t *greatest) {
    *least = 255 * (sum - above) - x_zp * sum;
    *greatest = 255 * above - x_zp * sum;
}

#endif
