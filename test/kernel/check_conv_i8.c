/* SPDX-License-Identifier: MIT */
/*
 * Whole integer convolutions beside a plain loop over the definition, in every table: choice of the
 * layout, packing, driver and kernels.
 */
#include "checkkernel.h"

#include <stdio.h>

#include "draw_conv_i8.h"

typedef struct call {
    qs_conv_i8 conv;
    qs_conv_i8_post post;
    const uint8_t *x;
    uint8_t *y, *scratch;
} call;

/* Bounds of float outputs. */
#define LOW  (-20.0f)
#define HIGH 20.0f

static int32_t float_of(int32_t acc, float scale, float add) {
    const float v = (float)acc * scale + add, low = v < LOW ? LOW : v, y = low > HIGH ? HIGH : low;
    memcpy(&acc, &y, 4);
    return acc;
}

/* The callback's addition to byte `at`, which shows misplaced bytes. */
static uint8_t mark(size_t at) {
    return (uint8_t)(at * 7 + at / 251);
}

/* The same for byte b of a float. */
static uint32_t marked(uint32_t bits, int32_t b, size_t at) {
    const uint32_t byte = (bits >> (8 * b) & 255u) + mark(at);
    return (bits & ~(255u << (8 * b))) | (byte & 255u) << (8 * b);
}

static void copy_block(const void *arg, const qs_conv_i8_block *b) {
    (void)arg;
    for (size_t r = 0; r < b->rows; r++)
        for (size_t i = 0; i < b->n; i++)
            b->y[r * b->y_stride + i] =
                (uint8_t)(b->x[r * b->x_stride + i] + mark(b->at + r * b->stride + i));
}

/* Biases, multipliers and addends in the order of positions. */
static void spread_columns(ck_state *s, const ck_image *p, qs_conv_i8 *c) {
    const size_t positions = (size_t)c->w.positions;
    int32_t *bias = ck_input(s, 4 * positions);
    float *mult = ck_input(s, 4 * positions), *add = ck_input(s, 4 * positions);
    qs_conv_i8_weights_spread(&c->w, p->bias, bias);
    qs_conv_i8_weights_spread(&c->w, p->mult, mult);
    qs_conv_i8_weights_spread(&c->w, p->add, add);
    if (p->wide)
        memset(bias, 0, 4 * positions);
    c->o.bias = bias;
    c->o.mult = p->int32_out ? NULL : mult;
    if (p->floats) {
        c->o.scale = mult;
        c->o.add = add;
        c->o.low = LOW;
        c->o.high = HIGH;
    }
}

static qs_conv_i8_post post_of(const ck_image *p, const int32_t *colsum) {
    const qs_conv_i8 *c = &p->conv;
    const bool by_row = p->row_scale && !p->int32_out;
    return (qs_conv_i8_post){.colsum = colsum,
                             .w_zp = c->w.zero_points == QS_ZP_COLUMN ? p->w_zp : NULL,
                             .row_zp = p->row_zp,
                             .wide_bias = p->wide ? p->bias : NULL,
                             .zp = c->x_zp,
                             .k = c->w.kh * c->w.kw * c->w.c,
                             .mult = p->int32_out || by_row ? NULL : p->mult,
                             .row_scale = by_row ? p->row_scale : NULL,
                             .col_scale = p->col_scale,
                             .y_scale = p->y_scale};
}

static call *prepare(ck_state *s, const qk_i8 *t, const ck_image *p, uint8_t *y) {
    call *k = ck_input(s, sizeof(*k));
    *k = (call){.conv = p->conv, .x = p->x, .y = y};
    qs_conv_i8_weights *w = &k->conv.w;
    qk_source_i8 source = p->source;
    size_t scratch = 0;
    source.zp = w->zero_points == QS_ZP_SPLIT ? p->w_zp : NULL;
    if (!p->int32_out && !p->post && !p->clamp)
        w->result = QS_RESULT_BYTES;
    else if (p->floats && p->conv.g.dilation_h == 1 && p->conv.g.dilation_w == 1)
        w->result = QS_RESULT_FLOATS;
    qs_conv_i8_weights_layout(t, w);
    uint8_t *b = ck_output(s, w->bytes);
    int32_t *colsum = ck_input(s, 4 * (size_t)w->groups * (size_t)w->n);
    qs_conv_i8_weights_pack(w, &source, p->group_stride, (int8_t *)b, colsum);
    ck_same(s, b, b, w->bytes, p->text); /* the guards */
    k->conv.b = (const int8_t *)b;
    spread_columns(s, p, &k->conv);
    k->post = post_of(p, colsum);
    k->conv.post = p->post ? &k->post : NULL;
    k->conv.after = p->handed ? copy_block : NULL;
    k->conv.after_in_place = p->in_place;
    qs_conv_i8_make_plan(&k->conv, p->threads, ck_input(s, 4 * qs_conv_i8_offsets(w)), &scratch);
    k->scratch = ck_input(s, scratch);
    return k;
}

static void run(void *arg) {
    static const qsim_ctx alone = {.threads = 1}; /* never cancelled; runs tasks in turn */
    const call *k = arg;
    qs_conv_i8_run(&alone, &k->conv, k->x, k->y, k->scratch, false);
}

/* ---- the definition ---- */

/* The sum of products of an output, less the zero points that its epilogue subtracts. */
static int64_t sum_at(const ck_image *p, int64_t pixel, int32_t n) {
    const qs_conv_i8 *c = &p->conv;
    const qk_source_i8 w = ck_column(p, n);
    const int64_t channels = (int64_t)c->w.groups * c->w.c, image = pixel / c->g.wo / c->g.ho;
    const int64_t top = pixel / c->g.wo % c->g.ho * c->g.stride_h - c->g.pad_top;
    const int64_t left = pixel % c->g.wo * c->g.stride_w - c->g.pad_left;
    const int32_t x_zp = !p->post ? 0 : p->row_zp ? p->row_zp[pixel] : c->x_zp, w_zp = p->w_zp[n];
    int64_t sum = 0;
    for (int32_t ky = 0; ky < c->w.kh; ky++)
        for (int32_t kx = 0; kx < c->w.kw; kx++) {
            const int64_t y = top + ky * c->g.dilation_h, x = left + kx * c->g.dilation_w;
            const bool inside = y >= 0 && y < c->g.h && x >= 0 && x < c->g.wd;
            const int64_t at = inside ? ((image * c->g.h + y) * c->g.wd + x) * channels : 0;
            const uint8_t *v = p->x + at + n / c->w.n * c->w.c;
            for (int32_t i = 0; i < c->w.c; i++)
                sum += ((inside ? v[i] : c->x_zp) - x_zp) * (ck_weight(&w, ky, kx, i) - w_zp);
        }
    return sum;
}

static void store(const ck_image *p, int64_t pixel, int32_t n, int64_t sum, uint8_t *y) {
    const qs_conv_i8 *c = &p->conv;
    const int64_t columns = (int64_t)c->w.groups * c->w.n, i = pixel * columns + n;
    const int64_t at = c->g.y_channels ? pixel * c->g.y_channels + c->g.y_column + n : i;
    int32_t acc = (int32_t)(sum + (p->wide ? 0 : p->bias[n]));
    if (p->floats)
        acc = float_of(acc, p->mult[n], p->add[n]);
    for (int32_t b = 0; b < 4 && p->floats && p->handed; b++)
        acc = (int32_t)marked((uint32_t)acc, b, (size_t)(4 * i + b));
    if (p->int32_out) {
        memcpy(y + 4 * at, &acc, 4);
        return;
    }
    const float m =
        p->row_scale ? (p->row_scale[pixel] * p->col_scale[n]) / p->y_scale : p->mult[n];
    const int64_t value = p->wide ? sum + p->bias[n] : acc;
    y[at] = (uint8_t)(ck_requantize(value, m, c->o.zp, c->o.lo, c->o.hi) +
                      (p->handed ? mark((size_t)i) : 0));
}

/* Computes output by output, from the definition. */
static void plain(const ck_image *p, uint8_t *y) {
    const qs_conv_i8 *c = &p->conv;
    for (int64_t pixel = 0; pixel < c->g.batch * c->g.ho * c->g.wo; pixel++)
        for (int32_t n = 0; n < c->w.groups * c->w.n; n++)
            store(p, pixel, n, sum_at(p, pixel, n), y);
}

static void check_image(ck_state *s, ck_image p) {
    uint8_t *expected = ck_output(s, p.y_bytes), *actual = ck_output(s, p.y_bytes);
    run(prepare(s, s->t->i8, &p, actual));
    plain(&p, expected);
    ck_same(s, expected, actual, p.y_bytes, p.text);
}

static void check_conv(ck_state *s) {
    check_image(s, ck_draw_image(s));
}

static void check_packed(ck_state *s) {
    check_image(s, ck_draw_packed(s));
}

static void check_wide(ck_state *s) {
    check_image(s, ck_draw_wide(s));
}

/* Checks kernels that prefetch; seldom, as it takes as long as many other checks. */
static void check_far(ck_state *s) {
    if (s->t->i8->fetches && ck_random(s) % 8 == 0)
        check_image(s, ck_draw_far(s));
}

/* ---- timing ---- */

/* The caller sets p.int32_out and p.floats. */
static void bench_image(ck_state *s, ck_image p, int32_t size, int32_t groups, int32_t c, int32_t n,
                        int32_t kernel, int32_t stride, int32_t zp, bool split) {
    p.conv = (qs_conv_i8){.g = {.batch = 1, .h = size, .wd = size}};
    p.conv.g.stride_h = p.conv.g.stride_w = stride;
    qs_conv_i8 *v = &p.conv;
    v->g.dilation_h = v->g.dilation_w = 1;
    v->g.pad_top = v->g.pad_left = kernel / 2;
    v->g.ho = v->g.wo = ck_out_size(size, 2 * (kernel / 2), kernel, stride, 1);
    v->w = (qs_conv_i8_weights){.groups = groups, .c = c, .n = n, .kh = kernel, .kw = kernel};
    v->w.zero_points = split ? QS_ZP_SPLIT : QS_ZP_NONE;
    v->o = (qk_out_i8){.zp = zp, .hi = 255};
    p.threads = 1;
    ck_fill_image(s, &p);
    call *k = prepare(s, s->t->i8, &p, ck_output(s, p.y_bytes));
    if (groups > 1)
        snprintf(p.text, sizeof(p.text), "depthwise %dx%d s%d %d @%d%s%s", kernel, kernel, stride,
                 groups, size, split ? " weight zp" : "", p.floats ? " floats" : "");
    else
        snprintf(p.text, sizeof(p.text), "%dx%d s%d %d->%d @%d%s", kernel, kernel, stride, c, n,
                 size, zp ? "" : " zp 0");
    ck_time(s, p.text, (double)qs_conv_i8_macs(&k->conv), 0, run, k);
}

static void bench_zp(ck_state *s, int32_t size, int32_t groups, int32_t c, int32_t n,
                     int32_t kernel, int32_t stride, int32_t zp, bool split) {
    bench_image(s, (ck_image){0}, size, groups, c, n, kernel, stride, zp, split);
}

/* Depthwise with float outputs, as in dynamic quantization. */
static void bench_floats(ck_state *s, int32_t size, int32_t groups, int32_t kernel,
                         int32_t stride) {
    const ck_image p = {.int32_out = true, .floats = true};
    bench_image(s, p, size, groups, 1, 1, kernel, stride, 0, false);
}

static void bench_shape(ck_state *s, int32_t size, int32_t groups, int32_t c, int32_t n,
                        int32_t kernel, int32_t stride) {
    bench_zp(s, size, groups, c, n, kernel, stride, 3, false);
}

static void bench_conv(ck_state *s) {
    bench_shape(s, 56, 1, 64, 64, 3, 1);
    bench_shape(s, 28, 1, 128, 128, 3, 1);
    bench_shape(s, 56, 1, 64, 256, 1, 1);
    bench_shape(s, 56, 1, 256, 64, 1, 1);
    bench_shape(s, 112, 1, 16, 96, 1, 1);
    bench_zp(s, 112, 1, 16, 96, 1, 1, 0, false); /* as after ReLU */
    bench_shape(s, 56, 1, 144, 24, 1, 1);
    bench_shape(s, 224, 1, 3, 32, 3, 2);
    bench_shape(s, 224, 1, 3, 64, 7, 2);
    bench_shape(s, 32, 1, 3, 16, 3, 1);
    bench_shape(s, 32, 1, 16, 16, 3, 1);
    bench_shape(s, 56, 1, 24, 144, 1, 1);
    bench_shape(s, 28, 1, 1, 8, 5, 1);
    bench_shape(s, 14, 1, 8, 16, 5, 1);
    bench_shape(s, 112, 32, 1, 1, 3, 1);
    bench_shape(s, 56, 144, 1, 1, 3, 1);
    bench_shape(s, 28, 192, 1, 1, 3, 1);
    bench_shape(s, 14, 384, 1, 1, 3, 1);
    bench_shape(s, 7, 960, 1, 1, 3, 1);
    bench_zp(s, 28, 192, 1, 1, 3, 1, 3, true);
    bench_zp(s, 28, 192, 1, 1, 3, 2, 3, true);
    bench_shape(s, 112, 96, 1, 1, 3, 2);
    bench_shape(s, 56, 144, 1, 1, 3, 2);
    bench_shape(s, 28, 192, 1, 1, 3, 2);
    bench_shape(s, 14, 576, 1, 1, 3, 2);
    bench_shape(s, 28, 120, 1, 1, 5, 1);
    bench_shape(s, 14, 480, 1, 1, 5, 1);
    bench_shape(s, 28, 240, 1, 1, 5, 2);
    bench_shape(s, 112, 16, 1, 1, 3, 1);
    bench_shape(s, 56, 24, 1, 1, 3, 1);
    bench_floats(s, 28, 192, 3, 1);
    bench_floats(s, 28, 192, 3, 2);
    bench_floats(s, 28, 120, 5, 1);
}

const ck_case ck_cases_conv_i8[] = {
    {"conv_u8s8", check_conv, bench_conv},
    {"conv_packed", check_packed, NULL},
    {"conv_wide", check_wide, NULL},
    {"conv_far", check_far, NULL},
};
const size_t ck_cases_conv_i8_count = QS_COUNT(ck_cases_conv_i8);
