/* SPDX-License-Identifier: MIT */
/* Plans an integer convolution: its strips, blocks, tasks and scratch memory. */
#include "op/int8/conv_i8.h"

#include "base/slices.h"
#include "base/waves.h"

#define GATHERED (24 << 10)
/* Bytes of a group's weights that exceed the second-level cache beside other data. */
#define FAR_WEIGHTS ((size_t)1 << 19)
#define STRIP_GOAL  (96 << 10)
/* Strips of an image without padding: one per FLAT_PIXELS or WINDOW_BYTES, at most MOST_STRIPS. */
#define FLAT_PIXELS  3072
#define WINDOW_BYTES (256 << 10)
#define MOST_STRIPS  8
/* Pixels of a block computed with tiles; the second with qs_conv_i8_post. */
#define AMX_BLOCK 512
#define AMX_POST  32
#define AFTER_ROWS                                                                                 \
    (64 << 10) /* bytes per call of `after` for depthwise, whose kernel calls have set-up time */

int64_t qs_conv_i8_macs(const qs_conv_i8 *c) {
    return c->g.batch * c->g.ho * c->g.wo * c->w.groups * c->w.n * c->w.c * c->w.kh * c->w.kw;
}

double qs_conv_i8_ns(const qs_conv_i8 *c) {
    return (double)qs_conv_i8_macs(c) /
           (qs_conv_i8_is_depthwise(&c->w) ? QS_DEPTHWISE_I8 : QS_MACS_I8);
}

static int32_t least(int64_t a, int64_t b) {
    return (int32_t)(a < b ? a : b);
}

/* Input columns that an output row reads, padding included. */
static int64_t span_w(const qs_conv_i8_geometry *g, int32_t kw) {
    return (int64_t)(g->wo - 1) * g->stride_w + (int64_t)(kw - 1) * g->dilation_w + 1;
}

/* A 1 x 1 convolution without padding or strides is one matrix product over all pixels. */
static void flatten(qs_conv_i8 *c) {
    const qs_conv_i8_geometry *g = &c->g;
    int64_t pixels = g->batch * g->h * g->wd;
    if (c->p.input == QS_INPUT_BORDERED || c->w.kh > 1 || c->w.kw > 1 || g->stride_h > 1 ||
        g->stride_w > 1 || g->ho != g->h || g->wo != g->wd || pixels > INT32_MAX)
        return;
    c->p.input = QS_INPUT_FLAT;
    c->p.batch = 1;
    c->p.h = c->p.ho = (int32_t)pixels;
    c->p.wd = c->p.wo = 1;
}

/* Rows of a strip where one strip would suffice: with several, y may overlap x in memory. */
static int64_t part_rows(const qs_conv_i8 *c) {
    const int64_t bytes = (int64_t)c->p.h * c->p.wd * qs_conv_i8_in(c),
                  unit = c->p.input == QS_INPUT_FLAT ? 96 : 2;
    int64_t strips = c->p.input == QS_INPUT_FLAT ? c->p.ho / FLAT_PIXELS : bytes / WINDOW_BYTES;
    strips = strips < 1 ? 1 : strips < MOST_STRIPS ? strips : MOST_STRIPS;
    return ((c->p.ho + strips - 1) / strips + unit - 1) / unit * unit;
}

static void split(qs_conv_i8 *c, int32_t threads) {
    int64_t rows = c->p.ho, all = c->p.batch * c->p.ho;
    if (c->p.input == QS_INPUT_BORDERED) {
        rows = STRIP_GOAL / c->p.strip_stride - (qs_conv_i8_rows(c, 1) - c->g.stride_h);
        rows /= c->g.stride_h;
        if (rows < 4)
            rows = 4;
        if (c->p.fetch) /* every strip reads all weights again */
            rows = c->p.ho;
    } else if (c->p.input == QS_INPUT_FLAT || c->w.choice == QS_CONV_DEPTHWISE_2D) {
        rows = part_rows(c);
    }
    if (threads > 1 && rows > (all + threads - 1) / threads)
        rows = (all + threads - 1) / threads;
    if (threads > 1 && c->p.batch % threads != 0 && rows > 0) { /* equally many per thread */
        int64_t strips = (c->p.ho + rows - 1) / rows;
        strips = (strips + threads - 1) / threads * threads;
        rows = (c->p.ho + strips - 1) / strips;
    }
    rows += c->w.choice == QS_CONV_DEPTHWISE_2D && rows < all
                ? rows & 1
                : 0; /* two rows take as long as one */
    c->p.strip_rows = least(rows > 0 ? rows : 1, c->p.ho > 0 ? c->p.ho : 1);
    c->p.strips = (c->p.ho + c->p.strip_rows - 1) / c->p.strip_rows;
    c->p.row_tasks = least(threads, c->p.batch * c->p.strips);
    c->p.column_tasks = 1;
    if (threads > 1 && c->p.input != QS_INPUT_BORDERED && !c->post && c->w.groups == 1 &&
        (!c->after || c->w.pixels == 1) && all * c->p.wo < 16 * (int64_t)threads) {
        c->p.row_tasks = 1;
        c->p.column_tasks = threads;
    }
    if (c->p.row_tasks < 1)
        c->p.row_tasks = 1;
}

/* Sets the distances between x and y at which they may overlap in memory. */
static void set_distances(qs_conv_i8 *c) {
    const size_t strips = (size_t)c->p.strips, rows = (size_t)c->p.strip_rows;
    const size_t items = (size_t)c->p.batch * strips, wo = (size_t)c->p.wo;
    qs_reach r = {.h = (size_t)c->p.h,
                  .oh = (size_t)c->p.ho,
                  .step = (size_t)c->g.stride_h,
                  .top = (size_t)c->g.pad_top,
                  .taps = (size_t)qs_conv_i8_rows(c, 1),
                  .row = (size_t)c->p.wd * (size_t)qs_conv_i8_in(c),
                  .out = wo * (size_t)qs_conv_i8_out(c)};
    c->p.wave = (int64_t)qs_wave(items, (size_t)c->p.row_tasks, qs_conv_i8_ns(c));
    for (size_t i = 0; i < items; i += (size_t)c->p.wave) {
        const size_t rest = items - i, wave = (size_t)c->p.wave;
        const size_t last = (rest < wave ? items : i + wave) - 1;
        const size_t end = (last % strips + 1) * rows;
        qs_reach_wave(&r, i / strips, i % strips * rows, last / strips, end < r.oh ? end : r.oh);
    }
    c->p.min_lead = r.min_lead;
    c->p.min_lag = r.min_lag;
}

/* Offsets of taps in the order of packed weights, repeated for a second set. */
static void depthwise_offsets(const qs_conv_i8 *c, int32_t down, int32_t across, int32_t *offset) {
    int32_t taps = c->w.kh * c->w.kw,
            set = c->w.zero_points == QS_ZP_SPLIT ? c->w.taps / 2 : c->w.taps;
    for (int32_t i = 0; i < c->w.taps; i++) {
        int32_t tap = i % set;
        offset[i] = tap < taps ? tap / c->w.kw * down + tap % c->w.kw * across : 0;
    }
}

static bool fill_offsets(qs_conv_i8 *c, int32_t *offset) {
    int64_t last = (int64_t)(c->w.kh - 1) * c->g.dilation_h * c->p.strip_stride + c->p.strip_stride;
    if (last > INT32_MAX)
        return false;
    int32_t pixel = (int32_t)qs_conv_i8_in(c),
            columns = c->w.choice != QS_CONV_BY_TAPS ? 1 : c->w.kw;
    int32_t down = c->g.dilation_h * c->p.strip_stride, across = c->g.dilation_w * pixel;
    if (qs_conv_i8_is_depthwise(&c->w)) {
        depthwise_offsets(c, down, across, offset);
        return true;
    }
    const int32_t sets = c->w.zero_points == QS_ZP_SPLIT ? 2 : 1;
    for (int32_t y = 0; y < sets * c->w.kh; y++)
        for (int32_t x = 0; x < columns; x++)
            *offset++ = y % c->w.kh * down + x * across;
    return true;
}

/* Tiles compute many pixels per call: a part of one output row, or whole rows. */
static void set_tiles_block(qs_conv_i8 *c) {
    int32_t most = c->post ? AMX_POST : AMX_BLOCK;
    if (c->w.zero_points == QS_ZP_SAME && most > QS_CONV_I8_BLOCK)
        most = QS_CONV_I8_BLOCK;
    c->p.block = c->p.wo > most || c->p.wo == 0 ? most / 16 * 16 : most / c->p.wo * c->p.wo;
    c->p.columns = most;
}

/*
 * Chooses the rows per micro-kernel call. Gathered rows stay in the first-level cache; a call takes
 * a part of a long output row, so that gathering overlaps with the product.
 */
static void set_block(qs_conv_i8 *c) {
    c->p.block = c->post ? 16 : c->p.fetch ? QS_CONV_I8_BLOCK : 96;
    /* Without arrays of addresses or sums, QS_CONV_I8_BLOCK is no limit. */
    c->p.columns = c->post || c->w.zero_points == QS_ZP_SAME ? c->p.block : 8 * QS_CONV_I8_BLOCK;
    if (c->after && c->w.form.n > 0)
        c->p.columns = least(c->p.columns, QS_CONV_I8_AFTER / c->w.form.n / 8 * 8);
    c->p.columns = c->p.columns < c->p.block ? c->p.block : c->p.columns;
    c->p.gather_stride = c->w.choice == QS_CONV_GATHERED ? 4 * c->w.form.k4 : 0;
    if (c->p.gather_stride > 16 && c->p.gather_stride < 32)
        c->p.gather_stride = 32; /* a vector holds two pixels */
    c->p.whole_rows = false;
    if (c->w.t->tiles)
        set_tiles_block(c);
    if (c->w.choice != QS_CONV_GATHERED || c->post || c->p.wo < 48)
        return;
    int32_t most = GATHERED / c->p.gather_stride;
    most = most > QS_CONV_I8_BLOCK ? QS_CONV_I8_BLOCK : most < 32 ? 32 : most;
    c->p.whole_rows = c->w.zero_points != QS_ZP_SAME && c->p.wo % 2 == 0 &&
                      c->p.wo <= most; /* pairs of pixels lie in one row */
    if (c->p.whole_rows) {
        c->p.block = GATHERED / c->p.gather_stride / c->p.wo * c->p.wo;
        return;
    }
    int32_t parts = (c->p.wo + most - 1) / most;
    c->p.block = least((c->p.wo + parts - 1) / parts + 7, QS_CONV_I8_BLOCK) / 8 * 8;
}

/* Bytes of results kept for `after`; false: a size overflows. */
static bool after_bytes(qs_conv_i8 *c, size_t *bytes) {
    const int64_t row = (int64_t)c->p.wo * c->w.groups * (c->w.result == QS_RESULT_FLOATS ? 4 : 1);
    int64_t rows = row > 0 ? AFTER_ROWS / row & ~(int64_t)1 : 2;
    *bytes = 0;
    c->p.block_rows = least(rows > 2 ? rows : 2, c->p.strip_rows);
    if (!c->after || c->after_in_place)
        return true;
    if (qs_conv_i8_is_depthwise(&c->w))
        return qs_mul((size_t)row, (size_t)c->p.block_rows, bytes);
    const int32_t most = c->p.columns > c->p.block ? c->p.columns : c->p.block;
    return qs_mul((size_t)c->w.form.n, (size_t)most, bytes);
}

bool qs_conv_i8_make_plan(qs_conv_i8 *c, int32_t threads, int32_t *offset, size_t *scratch) {
    int64_t width = span_w(&c->g, c->w.kw), bytes;
    size_t block_bytes = 0;
    const qs_conv_i8_geometry *g = &c->g;
    c->p = (qs_conv_i8_plan){.batch = g->batch, .h = g->h, .wd = g->wd, .ho = g->ho, .wo = g->wo};
    if (c->w.choice != QS_CONV_DEPTHWISE_2D &&
        (g->pad_top > 0 || g->pad_left > 0 || width > g->wd || qs_conv_i8_rows(c, g->ho) > g->h))
        c->p.input = QS_INPUT_BORDERED;
    c->p.fetch = c->w.t->fetches && c->w.form.bytes >= FAR_WEIGHTS;
    flatten(c);
    if (c->p.input != QS_INPUT_BORDERED)
        width = c->p.wd;
    if (!qs_mul64(width, qs_conv_i8_in(c), &bytes) || bytes > INT32_MAX - 63)
        return false;
    c->p.strip_stride =
        (int32_t)(c->p.input == QS_INPUT_BORDERED ? qs_align((size_t)bytes, 64) : (size_t)bytes);
    c->p.strip_lead =
        c->p.input == QS_INPUT_BORDERED ? (int32_t)(-c->g.pad_left * qs_conv_i8_in(c) & 63) : 0;
    c->p.offset = offset;
    if (!fill_offsets(c, offset))
        return false;
    split(c, threads);
    set_distances(c);
    c->p.strip_bytes = c->w.choice == QS_CONV_DEPTHWISE_2D ? qs_align((size_t)bytes + 64, 64) : 0;
    if (c->p.input == QS_INPUT_BORDERED) {
        if (!qs_mul64(c->p.strip_stride, qs_conv_i8_rows(c, c->p.strip_rows), &bytes) ||
            bytes > INT64_MAX - 192)
            return false;
        c->p.strip_bytes = qs_align((size_t)bytes + (size_t)c->p.strip_lead + 64, 64);
    }
    set_block(c);
    if (c->post && !qs_mul((size_t)c->w.form.n, 4 * (size_t)c->p.block, &block_bytes))
        return false;
    if (block_bytes > SIZE_MAX / 2)
        return false;
    c->p.block_bytes = qs_align(block_bytes, 64);
    block_bytes =
        c->w.choice == QS_CONV_GATHERED ? (size_t)c->p.gather_stride * (size_t)c->p.block + 64 : 0;
    c->p.gather_bytes = qs_align(block_bytes, 64);
    if (!after_bytes(c, &block_bytes) || block_bytes > SIZE_MAX / 2 ||
        !qs_add(c->p.strip_bytes, c->p.block_bytes, &c->p.task_bytes) ||
        !qs_add(c->p.task_bytes, c->p.gather_bytes, &c->p.task_bytes) ||
        !qs_add(c->p.task_bytes, qs_align(block_bytes, 64), &c->p.task_bytes))
        return false;
    return qs_mul(c->p.task_bytes, (size_t)(c->p.row_tasks * c->p.column_tasks), scratch);
}
