/* SPDX-License-Identifier: MIT */
/* Chooses the layout of 8-bit weights for a table of kernels, and packs them. */
#include "op/int8/conv_i8.h"

static int32_t common_divisor(int32_t a, int32_t b) {
    while (b) {
        int32_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/*
 * Few channels would leave most lanes of a vector unused. With stride 1, several pixels count as
 * one pixel of more channels whose weights repeat, as many as fill whole vectors. Window kernels
 * for bytes handle few channels themselves.
 */
static bool layout_depthwise(qs_conv_i8_weights *w) {
    const qk_i8 *t = w->t;
    int32_t block = 16 * t->lanes, groups;
    size_t taps, bytes;
    const bool split = w->zero_points == QS_ZP_SPLIT;
    if (w->groups > INT32_MAX - 64 || !qs_mul((size_t)w->kh + 1, (size_t)w->kw, &taps) ||
        taps > INT32_MAX / 2 - 8)
        return false;
    /* With few channels and stride 1, joining pixels makes floats faster than the window kernel. */
    const int64_t lanes = (int64_t)block * ((w->groups - 1) / block + 1);
    const bool filled = w->stride_w == 2 || 4 * (int64_t)w->groups >= 3 * lanes;
    const bool has =
        w->result == QS_RESULT_FLOATS
            ? filled && qk_i8_floats_window(t, w->kh, w->kw, w->stride_h, w->stride_w, split)
            : w->result == QS_RESULT_BYTES && qk_i8_has_window(t, w->kh, w->kw);
    w->choice = has && w->stride_h > 0 && w->stride_h <= 64 && w->stride_w > 0 && w->stride_w <= 64
                    ? QS_CONV_DEPTHWISE_2D
                    : QS_CONV_DEPTHWISE;
    w->channels = w->groups;
    if (w->choice != QS_CONV_DEPTHWISE_2D && w->stride_w == 1 && w->groups < block)
        w->channels = block / common_divisor(block, w->groups) * w->groups;
    w->positions = qk_i8_depthwise_positions(t, w->channels);
    taps = (size_t)w->kh * (size_t)w->kw;
    taps = split ? 2 * qs_align(taps, 4) : taps;
    w->taps = (int32_t)taps;
    taps = qs_align(taps, 4);
    if (w->choice == QS_CONV_DEPTHWISE_2D) {
        groups = qk_i8_window_groups(t, w->kh);
        taps = (size_t)(4 * groups * w->kw * qk_i8_window_sets(t, w->kh, w->stride_h, split));
    }
    if (!qs_mul(taps, (size_t)w->positions, &bytes))
        return false;
    w->bytes = bytes;
    return true;
}

/*
 * Cost of a row of the product, in quarters of one vector's dot product: the dot products, the
 * epilogue, a share for each broadcast and for the row. Half a vector takes as long as three
 * quarters.
 */
static int64_t row_cost(const qk_i8 *t, const qk_form_i8 *f) {
    int64_t dwords = (int64_t)f->segs * f->k4, quarters = f->positions / t->lanes;
    if (quarters == 2)
        quarters = 3;
    return quarters * (dwords + 2) + dwords / 2 + 8;
}

static void set_pixels(const qs_conv_i8_weights *w, qk_source_i8 *s, int32_t pixels) {
    s->whole = w->choice == QS_CONV_GATHERED;
    s->pixels = pixels;
    s->shift = pixels > 1 ? w->stride_w * w->c : 0;
}

/*
 * Chooses how many neighbouring outputs make one row of the product: few columns would leave lanes
 * unused, few channels bytes of dwords. A row may read at most 64 bytes beyond the image.
 */
static int32_t choose_pixels(const qs_conv_i8_weights *w, const qk_source_i8 *s) {
    const qk_i8 *t = w->t;
    qk_form_i8 f;
    qk_source_i8 wide = *s;
    int32_t best = 1, row = w->kw * w->c;
    if (t->tiles || w->choice == QS_CONV_BY_TAPS || w->strided_out ||
        w->zero_points != QS_ZP_NONE || w->kw < 2 || w->stride_w < 1 || w->n > 32 || w->c > 64 ||
        w->stride_w > 64 || !qk_i8_form(t, s, true, false, &f))
        return 1;
    int64_t least = row_cost(t, &f) * 15 / 16; /* gains below 1/16 do not count */
    for (int32_t pixels = 2; pixels * w->n <= 64; pixels++) {
        set_pixels(w, &wide, pixels);
        if (!qk_i8_form(t, &wide, true, false, &f) || 4 * f.k4 - row > 64)
            break;
        int64_t cost = row_cost(t, &f) / pixels;
        if (cost < least) {
            least = cost;
            best = pixels;
        }
    }
    return best;
}

/* Whether to copy kernel rows end to end first: they leave much of their last dword unused. */
static bool gathers(const qs_conv_i8_weights *w, qk_source_i8 s) {
    const qk_i8 *t = w->t;
    qk_form_i8 rows, whole;
    int64_t row = (int64_t)w->kw * w->c;
    if (!t->gather || s.split || w->choice == QS_CONV_BY_TAPS || w->kh < 2 || w->stride_w < 1 ||
        row > 64 || w->kh > 16)
        return false;
    if (!qk_i8_form(t, &s, true, w->zero_points == QS_ZP_COLUMN, &rows))
        return false;
    s.pixels = 1;
    s.whole = true;
    if (!qk_i8_form(t, &s, true, w->zero_points == QS_ZP_COLUMN, &whole))
        return false;
    if (t->tiles)
        return 3 * whole.k4 <= 2 * rows.segs * rows.k4;
    int64_t next = (int64_t)w->stride_w * w->c;
    bool small = w->kh <= 4 && next + row <= 16 && w->kh * row <= 32;
    int64_t copies = small ? 8 : 5 * w->kh;
    return row_cost(t, &whole) + copies < row_cost(t, &rows) / w->pixels;
}

/* Dwords per row at which tiles take as long as vectors, for panels of 64 and of 32 columns. */
#define TILE_DWORDS_64 8
#define TILE_DWORDS_32 12

/*
 * Whether tiles compute a product faster, though they are padded in both directions and their sums
 * go through memory: measured with 784 and 3136 rows of 24 to 256 bytes by 8 to 192 columns. Few
 * rows do not pay for setting tiles up; if their number is unknown, the kernel decides.
 */
static bool suits_tiles(const qk_i8 *t, const qs_conv_i8_weights *w, const qk_source_i8 *s) {
    const bool merged = w->choice != QS_CONV_BY_TAPS, sums = w->zero_points == QS_ZP_COLUMN;
    qk_form_i8 tiles, vectors;
    if (!qk_i8_form(t, s, merged, sums, &tiles) || !qk_i8_form(t->below, s, merged, sums, &vectors))
        return false;
    const double macs = (double)w->rows * s->n * s->kh * s->kw * s->c;
    const int64_t narrow = tiles.positions % 64, wide = tiles.positions - narrow;
    return !(macs > 0 && macs < QK_I8_TILES_FROM) &&
           ((int64_t)vectors.segs * vectors.k + 3) / 4 * vectors.positions >=
               TILE_DWORDS_64 * wide + TILE_DWORDS_32 * narrow;
}

bool qs_conv_i8_weights_layout(const qk_i8 *t, qs_conv_i8_weights *w) {
    qk_source_i8 s = {
        .n = w->n, .kh = w->kh, .kw = w->kw, .c = w->c, .split = w->zero_points == QS_ZP_SPLIT};
    int64_t positions;
    if (w->groups > 1 && w->n == 1 && w->c == 1 && w->zero_points != QS_ZP_COLUMN &&
        w->zero_points != QS_ZP_SAME) {
        w->t = t->tiles ? t->below : t;
        return layout_depthwise(w);
    }
    w->choice = w->groups == 1 && (w->contiguous || w->kw == 1) ? QS_CONV_BY_ROWS : QS_CONV_BY_TAPS;
    w->t = t->tiles && !suits_tiles(t, w, &s) ? t->below : t;
    w->pixels = choose_pixels(w, &s);
    set_pixels(w, &s, w->pixels);
    if (gathers(w, s)) {
        w->choice = QS_CONV_GATHERED;
        set_pixels(w, &s, w->pixels = 1);
    }
    if (!qk_i8_form(w->t, &s, w->choice != QS_CONV_BY_TAPS, w->zero_points == QS_ZP_COLUMN,
                    &w->form) ||
        !qs_mul(w->form.bytes, (size_t)w->groups, &w->bytes) ||
        !qs_mul64(w->form.positions, w->groups, &positions) || positions > INT32_MAX)
        return false;
    w->positions = (int32_t)positions;
    return true;
}

void qs_conv_i8_weights_pack(const qs_conv_i8_weights *w, const qk_source_i8 *s,
                             int64_t group_stride, int8_t *b, int32_t *colsum) {
    qk_source_i8 group = *s;
    if (qs_conv_i8_is_depthwise(w)) {
        group.n = w->groups;
        group.sn = group_stride;
        if (w->choice == QS_CONV_DEPTHWISE_2D)
            qk_i8_pack_window(w->t, &group, w->stride_h, b, colsum);
        else
            qk_i8_pack_depthwise(w->t, &group, w->channels, b, colsum);
        return;
    }
    set_pixels(w, &group, w->pixels);
    group.split = w->zero_points == QS_ZP_SPLIT;
    for (int32_t g = 0; g < w->groups; g++) {
        qk_i8_pack(w->t, &group, w->choice != QS_CONV_BY_TAPS, w->zero_points == QS_ZP_COLUMN, b,
                   colsum);
        group.w += group_stride;
        group.zp = group.zp ? group.zp + w->n : NULL;
        b += w->form.bytes;
        colsum = colsum ? colsum + w->n : NULL;
    }
}

void qs_conv_i8_weights_spread(const qs_conv_i8_weights *w, const void *in, void *out) {
    if (qs_conv_i8_is_depthwise(w)) {
        qk_i8_spread_depthwise(w->t, w->channels, w->groups, in, out);
        return;
    }
    for (int32_t g = 0; g < w->groups; g++)
        qk_i8_spread(w->t, w->form.n, w->pixels * w->n, w->n,
                     (const int32_t *)in + (int64_t)g * w->n,
                     (int32_t *)out + (int64_t)g * w->form.positions);
}
