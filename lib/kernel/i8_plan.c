/* SPDX-License-Identifier: MIT */
/* How an integer convolution is cut: strips, blocks, tasks, and the scratch that they take. */
#include "kernel/i8_conv.h"

#include "base/slices.h"
#include "base/waves.h"

#define GATHERED   (24 << 10)
#define STRIP_GOAL (96 << 10)
/* An image without border has as many strips as it has so many pixels, or bytes, but not more. */
#define FLAT_PIXELS  3072
#define WINDOW_BYTES (256 << 10)
#define MOST_STRIPS  8
#define AFTER_ROWS                                                                                 \
    (64 << 10) /* of a depthwise convolution, whose calls take a start, for `after` */

int64_t qk_conv_i8_macs(const qk_conv_i8 *c) {
    return c->batch * c->ho * c->wo * c->w.groups * c->w.n * c->w.c * c->w.kh * c->w.kw;
}

double qk_conv_i8_ns(const qk_conv_i8 *c) {
    return (double)qk_conv_i8_macs(c) / (c->w.depthwise ? QS_DEPTHWISE_I8 : QS_MACS_I8);
}

static int32_t least(int64_t a, int64_t b) {
    return (int32_t)(a < b ? a : b);
}

static int64_t span_w(const qk_conv_i8 *c) {
    return (int64_t)(c->wo - 1) * c->stride_w + (int64_t)(c->w.kw - 1) * c->dilation_w + 1;
}

/* A 1 x 1 convolution without border is one matrix product over all pixels. */
static void flatten(qk_conv_i8 *c) {
    int64_t pixels = c->batch * c->h * c->wd;
    c->flat = c->w.kh == 1 && c->w.kw == 1 && c->stride_h == 1 && c->stride_w == 1 &&
              !c->bordered && c->ho == c->h && c->wo == c->wd && pixels <= INT32_MAX;
    if (c->flat) {
        c->batch = 1;
        c->h = c->ho = (int32_t)pixels;
        c->wd = c->wo = 1;
    }
}

/* Rows of a strip where one would do: y could not lie over x then. */
static int64_t part_rows(const qk_conv_i8 *c) {
    const int64_t bytes = (int64_t)c->h * c->wd * qk_conv_i8_in(c), unit = c->flat ? 96 : 2;
    int64_t strips = c->flat ? c->ho / FLAT_PIXELS : bytes / WINDOW_BYTES;
    strips = strips < 1 ? 1 : strips < MOST_STRIPS ? strips : MOST_STRIPS;
    return ((c->ho + strips - 1) / strips + unit - 1) / unit * unit;
}

static void split(qk_conv_i8 *c, int32_t threads) {
    int64_t rows = c->ho, all = c->batch * c->ho;
    if (c->bordered) {
        rows = STRIP_GOAL / c->strip_stride - (qk_conv_i8_rows(c, 1) - c->stride_h);
        rows /= c->stride_h;
        if (rows < 4)
            rows = 4;
    } else if (c->flat || c->w.window) {
        rows = part_rows(c);
    }
    if (threads > 1 && rows > (all + threads - 1) / threads)
        rows = (all + threads - 1) / threads;
    if (threads > 1 && c->batch % threads != 0 && rows > 0) { /* as many for each */
        int64_t strips = (c->ho + rows - 1) / rows;
        strips = (strips + threads - 1) / threads * threads;
        rows = (c->ho + strips - 1) / strips;
    }
    rows += c->w.window && rows < all ? rows & 1 : 0; /* two rows cost what one does */
    c->strip_rows = least(rows > 0 ? rows : 1, c->ho > 0 ? c->ho : 1);
    c->strips = (c->ho + c->strip_rows - 1) / c->strip_rows;
    c->row_tasks = least(threads, c->batch * c->strips);
    c->column_tasks = 1;
    if (threads > 1 && !c->bordered && !c->post && c->w.groups == 1 &&
        (!c->after || c->w.pixels == 1) && all * c->wo < 16 * (int64_t)threads) {
        c->row_tasks = 1;
        c->column_tasks = threads;
    }
    if (c->row_tasks < 1)
        c->row_tasks = 1;
}

/* How far from each other x and y have to begin where one lies over the other. */
static void set_distances(qk_conv_i8 *c) {
    const size_t strips = (size_t)c->strips, rows = (size_t)c->strip_rows;
    const size_t items = (size_t)c->batch * strips, wo = (size_t)c->wo;
    qs_reach r = {.h = (size_t)c->h,
                  .oh = (size_t)c->ho,
                  .step = (size_t)c->stride_h,
                  .top = (size_t)c->pad_top,
                  .taps = (size_t)qk_conv_i8_rows(c, 1),
                  .row = (size_t)c->wd * (size_t)qk_conv_i8_in(c),
                  .out = wo * (size_t)qk_conv_i8_out(c)};
    c->wave = (int64_t)qs_wave(items, (size_t)c->row_tasks, qk_conv_i8_ns(c));
    for (size_t i = 0; i < items; i += (size_t)c->wave) {
        const size_t rest = items - i, wave = (size_t)c->wave;
        const size_t last = (rest < wave ? items : i + wave) - 1;
        const size_t end = (last % strips + 1) * rows;
        qs_reach_wave(&r, i / strips, i % strips * rows, last / strips, end < r.oh ? end : r.oh);
    }
    c->before = r.before;
    c->behind = r.behind;
}

/* In the order of packed weights, once more for a second set. */
static void depthwise_offsets(const qk_conv_i8 *c, int32_t down, int32_t across, int32_t *offset) {
    int32_t taps = c->w.kh * c->w.kw, set = c->w.split ? c->w.taps / 2 : c->w.taps;
    for (int32_t i = 0; i < c->w.taps; i++) {
        int32_t tap = i % set;
        offset[i] = tap < taps ? tap / c->w.kw * down + tap % c->w.kw * across : 0;
    }
}

static bool fill_offsets(qk_conv_i8 *c, int32_t *offset) {
    int64_t last = (int64_t)(c->w.kh - 1) * c->dilation_h * c->strip_stride + c->strip_stride;
    if (last > INT32_MAX)
        return false;
    int32_t pixel = (int32_t)qk_conv_i8_in(c), columns = c->w.merged ? 1 : c->w.kw;
    int32_t down = c->dilation_h * c->strip_stride, across = c->dilation_w * pixel;
    if (c->w.depthwise) {
        depthwise_offsets(c, down, across, offset);
        return true;
    }
    for (int32_t y = 0; y < c->w.kh; y++)
        for (int32_t x = 0; x < columns; x++)
            *offset++ = y * down + x * across;
    return true;
}

/*
 * Pixels per micro-kernel call. Gathered ones are few enough to stay in the first cache, and parts
 * of one image row where that is long: gathering then overlaps with the product.
 */
static void set_block(qk_conv_i8 *c) {
    c->block = c->post ? 16 : 96;
    /* No addresses and no sums: no limit either. */
    c->columns = c->post || c->w.row_sums ? c->block : 8 * QK_I8_BLOCK;
    if (c->after && c->w.form.n > 0)
        c->columns = least(c->columns, QK_I8_AFTER / c->w.form.n / 8 * 8);
    c->columns = c->columns < c->block ? c->block : c->columns;
    c->gather_stride = c->w.whole ? 4 * c->w.form.k4 : 0;
    if (c->gather_stride > 16 && c->gather_stride < 32)
        c->gather_stride = 32; /* two pixels in a vector */
    c->whole_rows = false;
    if (!c->w.whole || c->post || c->wo < 48)
        return;
    int32_t most = GATHERED / c->gather_stride;
    most = most > QK_I8_BLOCK ? QK_I8_BLOCK : most < 32 ? 32 : most;
    c->whole_rows = !c->w.row_sums && c->wo % 2 == 0 && c->wo <= most; /* pairs lie in one */
    if (c->whole_rows) {
        c->block = GATHERED / c->gather_stride / c->wo * c->wo;
        return;
    }
    int32_t parts = (c->wo + most - 1) / most;
    c->block = least((c->wo + parts - 1) / parts + 7, QK_I8_BLOCK) / 8 * 8;
}

/* Bytes of results for `after`; false: too many. */
static bool after_bytes(qk_conv_i8 *c, size_t *bytes) {
    const int64_t row = (int64_t)c->wo * c->w.groups * (c->w.floats ? 4 : 1);
    int64_t rows = row > 0 ? AFTER_ROWS / row & ~(int64_t)1 : 2;
    *bytes = 0;
    c->block_rows = least(rows > 2 ? rows : 2, c->strip_rows);
    if (!c->after || c->after_in_place)
        return true;
    if (c->w.depthwise)
        return qs_mul((size_t)row, (size_t)c->block_rows, bytes);
    const int32_t most = c->columns > c->block ? c->columns : c->block;
    return qs_mul((size_t)c->w.form.n, (size_t)most, bytes);
}

bool qk_conv_i8_plan(qk_conv_i8 *c, int32_t threads, int32_t *offset, size_t *scratch) {
    int64_t width = span_w(c), bytes;
    size_t block_bytes = 0;
    c->bordered =
        c->pad_top > 0 || c->pad_left > 0 || width > c->wd || qk_conv_i8_rows(c, c->ho) > c->h;
    flatten(c);
    c->bordered = c->bordered && !c->w.window;
    if (!c->bordered)
        width = c->wd;
    if (!qs_mul64(width, qk_conv_i8_in(c), &bytes) || bytes > INT32_MAX - 63)
        return false;
    c->strip_stride = (int32_t)(c->bordered ? qs_align((size_t)bytes, 64) : (size_t)bytes);
    c->strip_lead = c->bordered ? (int32_t)(-c->pad_left * qk_conv_i8_in(c) & 63) : 0;
    c->offset = offset;
    if (!fill_offsets(c, offset))
        return false;
    split(c, threads);
    set_distances(c);
    c->strip_bytes = c->w.window ? qs_align((size_t)bytes + 64, 64) : 0;
    if (c->bordered) {
        if (!qs_mul64(c->strip_stride, qk_conv_i8_rows(c, c->strip_rows), &bytes) ||
            bytes > INT64_MAX - 192)
            return false;
        c->strip_bytes = qs_align((size_t)bytes + (size_t)c->strip_lead + 64, 64);
    }
    set_block(c);
    if (c->post && !qs_mul((size_t)c->w.form.n, 4 * (size_t)c->block, &block_bytes))
        return false;
    if (block_bytes > SIZE_MAX / 2)
        return false;
    c->block_bytes = qs_align(block_bytes, 64);
    block_bytes = c->w.whole ? (size_t)c->gather_stride * (size_t)c->block + 64 : 0;
    c->gather_bytes = qs_align(block_bytes, 64);
    if (!after_bytes(c, &block_bytes) || block_bytes > SIZE_MAX / 2 ||
        !qs_add(c->strip_bytes, c->block_bytes, &c->task_bytes) ||
        !qs_add(c->task_bytes, c->gather_bytes, &c->task_bytes) ||
        !qs_add(c->task_bytes, qs_align(block_bytes, 64), &c->task_bytes))
        return false;
    return qs_mul(c->task_bytes, (size_t)(c->row_tasks * c->column_tasks), scratch);
}
