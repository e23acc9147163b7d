/* SPDX-License-Identifier: MIT */
/* Whole integer convolutions: borders, strides, dilation, groups, depthwise, odd channels. */
#include "checkkernel.h"

#include <stdio.h>
#include <stdlib.h>

#include "op/int8/conv_i8.h"

typedef struct image {
    qs_conv_i8 conv; /* geometry and weights' shape */
    const uint8_t *x;
    const int8_t *w;
    int32_t *bias, *w_zp;
    float *mult, *add;
    size_t y_bytes;
    bool int32_out;
    bool floats;           /* with int32_out */
    bool handed, in_place; /* a callback gets results block by block; it works in place */
    char text[128];
} image;

typedef struct call {
    qs_conv_i8 conv;
    const uint8_t *x;
    uint8_t *y, *scratch;
} call;

static int32_t out_size(int32_t in, int32_t pads, int32_t k, int32_t stride, int32_t dilation) {
    return (in + pads - (k - 1) * dilation - 1) / stride + 1;
}

/* The largest value of a column before rounding. */
static float reach(const image *p, size_t column, size_t terms) {
    int64_t sum = abs(p->bias[column]);
    for (size_t i = 0; i < terms; i++)
        sum += 255 * abs(p->w[column * terms + i] - p->w_zp[column]);
    return (float)sum * p->mult[column];
}

static void fill(ck_state *s, image *p) {
    qs_conv_i8 *c = &p->conv;
    size_t columns = (size_t)c->w.groups * (size_t)c->w.n;
    size_t terms = (size_t)c->w.c * (size_t)c->w.kh * (size_t)c->w.kw;
    p->x = ck_input(s, (size_t)c->g.batch * (size_t)c->g.h * (size_t)c->g.wd * (size_t)c->w.groups *
                           (size_t)c->w.c);
    p->w = ck_input(s, columns * terms);
    p->bias = ck_input(s, 4 * columns);
    p->w_zp = ck_input(s, 4 * columns);
    for (size_t i = 0; i < columns; i++) {
        p->bias[i] = ck_between(s, -3000, 3000);
        /* Some channels have a zero point, small or large. */
        bool any = c->w.zero_points == QS_ZP_SPLIT && ck_random(s) % 8 == 0;
        p->w_zp[i] = c->w.zero_points == QS_ZP_SAME ? c->w_zp : any ? ck_between(s, -127, 127) : 0;
    }
    p->mult = ck_floats(s, columns, 1e-4f, 2e-3f);
    p->add = ck_floats(s, columns, -1.0f, 1.0f);
    c->o.fits16 = true;
    for (size_t i = 0; i < columns; i++)
        if (c->o.fits16 && reach(p, i, terms) >= QK_I8_FITS16)
            c->o.fits16 = false;
    p->y_bytes = (size_t)c->g.batch * (size_t)c->g.ho * (size_t)c->g.wo;
    p->y_bytes *= c->g.y_channels ? (size_t)c->g.y_channels : columns;
    p->y_bytes *= p->int32_out ? 4 : 1;
    c->w.contiguous = c->g.dilation_w == 1;
    c->w.stride_h = c->g.stride_h;
    c->w.stride_w = c->g.stride_w;
}

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

static call prepare(ck_state *s, const qk_i8 *t, const image *p, uint8_t *y) {
    call k = {p->conv, p->x, y, NULL};
    qs_conv_i8_weights *w = &k.conv.w;
    int64_t terms = (int64_t)w->c * w->kh * w->kw;
    qk_source_i8 source = {.w = p->w,
                           .n = w->n,
                           .kh = w->kh,
                           .kw = w->kw,
                           .c = w->c,
                           .sn = terms,
                           .sc = (int64_t)w->kh * w->kw,
                           .sy = w->kw,
                           .sx = 1,
                           .zp = w->zero_points == QS_ZP_SPLIT ? p->w_zp : NULL};
    size_t scratch = 0;
    if (!p->int32_out)
        w->result = QS_RESULT_BYTES;
    else if (p->floats && p->conv.g.dilation_h == 1 && p->conv.g.dilation_w == 1)
        w->result = QS_RESULT_FLOATS;
    qs_conv_i8_weights_layout(t, w);
    int8_t *b = ck_input(s, w->bytes);
    int32_t *colsum = ck_input(s, 4 * (size_t)w->groups * (size_t)w->n);
    qs_conv_i8_weights_pack(w, &source, terms * w->n, b, colsum);
    int32_t *bias = ck_input(s, 4 * (size_t)w->positions);
    float *mult = ck_input(s, 4 * (size_t)w->positions);
    qs_conv_i8_weights_spread(w, p->bias, bias);
    qs_conv_i8_weights_spread(w, p->mult, mult);
    k.conv.b = b;
    k.conv.o.bias = bias;
    k.conv.o.mult = p->int32_out ? NULL : mult;
    if (p->floats) {
        float *add = ck_input(s, 4 * (size_t)w->positions);
        qs_conv_i8_weights_spread(w, p->add, add);
        k.conv.o.scale = mult;
        k.conv.o.add = add;
        k.conv.o.low = LOW;
        k.conv.o.high = HIGH;
    }
    k.conv.after = p->handed ? copy_block : NULL;
    k.conv.after_in_place = p->in_place;
    qs_conv_i8_make_plan(&k.conv, 1, ck_input(s, 4 * qs_conv_i8_offsets(w)), &scratch);
    k.scratch = ck_input(s, scratch);
    return k;
}

static void run(void *arg) {
    static const qsim_ctx alone = {.threads = 1}; /* never cancelled */
    const call *k = arg;
    qs_conv_i8_run(&alone, &k->conv, k->x, k->y, k->scratch, false);
}

/* Draws the image, its batch, and the window. */
static void random_window(ck_state *s, qs_conv_i8 *c) {
    bool square = ck_random(s) % 2; /* 3 x 3 has kernels of its own */
    c->g.batch = ck_between(s, 1, 2);
    c->w.kh = square ? 3 : ck_between(s, 1, 8);
    c->w.kw = square ? 3 : ck_between(s, 1, 8);
    c->g.stride_h = c->g.stride_w = ck_between(s, 1, 2);
    if (ck_random(s) % 8 == 0) {
        c->g.stride_h = ck_between(s, 1, 7);
        c->g.stride_w = ck_between(s, 1, 7);
    }
    c->g.dilation_h = square ? 1 : ck_between(s, 1, 2);
    c->g.dilation_w = square ? 1 : ck_between(s, 1, ck_random(s) % 4 ? 2 : 20);
    c->g.pad_top = ck_between(s, 0, c->w.kh - 1);
    c->g.pad_left = ck_between(s, 0, c->w.kw - 1);
    c->g.h = ck_between(s, 1, 20) + (c->w.kh - 1) * c->g.dilation_h;
    c->g.wd = ck_between(s, 1, 20) + (c->w.kw - 1) * c->g.dilation_w;
    c->g.ho = out_size(c->g.h, c->g.pad_top + ck_between(s, 0, c->w.kh - 1), c->w.kh, c->g.stride_h,
                       c->g.dilation_h);
    c->g.wo = out_size(c->g.wd, c->g.pad_left + ck_between(s, 0, c->w.kw - 1), c->w.kw,
                       c->g.stride_w, c->g.dilation_w);
}

/* Draws groups of channels, a few or many. */
static void random_channels(ck_state *s, qs_conv_i8 *c) {
    c->w.groups = c->w.n = c->w.c = 1;
    if (ck_random(s) % 8 == 0)
        c->w.groups = ck_random(s) % 2 ? 32 : 16; /* several pixels share a vector */
    else if (ck_random(s) % 2)
        c->w.groups = ck_between(s, 2, ck_random(s) % 2 ? 200 : 40);
    else {
        bool few = ck_random(s) % 2; /* several pixels make a row of the product */
        c->w.n = ck_between(s, 1, few ? 12 : 90);
        c->w.c = ck_between(s, 1, few ? 4 : 20);
    }
}

static image random_outputs(ck_state *s) {
    image p = {.int32_out = ck_random(s) % 3 == 0};
    p.floats = p.int32_out && ck_random(s) % 2;
    p.handed = (!p.int32_out || p.floats) && ck_random(s) % 3 == 0;
    return p;
}

/* Draws everything but the sizes. */
static image finish(ck_state *s, image p) {
    qs_conv_i8 *c = &p.conv;
    if (ck_random(s) % 4 == 0) { /* one zero point for all weights */
        c->w.zero_points = QS_ZP_SAME;
        c->w_zp = ck_between(s, -128, 127);
        c->w.n = c->w.groups > 1 ? ck_between(s, 1, 3) : c->w.n;
    }
    if (c->w.zero_points == QS_ZP_NONE && c->w.groups > 1 && ck_random(s) % 2)
        c->w.zero_points = QS_ZP_SPLIT;
    c->x_zp = (uint8_t)ck_random(s);
    c->o = (qk_out_i8){.zp = ck_random(s) % 3 ? ck_between(s, 0, 255) : 0, .hi = 255};
    if (ck_random(s) % 2) {
        c->o.lo = ck_between(s, 0, 50);
        c->o.hi = ck_between(s, c->o.lo, 255);
    }
    const bool elsewhere = p.handed && !p.floats; /* not in place */
    c->w.strided_out =
        (c->w.groups == 1 || c->w.zero_points == QS_ZP_SAME || elsewhere) && ck_random(s) % 3 == 0;
    if (c->w.strided_out) { /* channels of a larger tensor, whose other channels stay unchanged */
        c->g.y_column = ck_between(s, 0, 70);
        c->g.y_channels = c->g.y_column + c->w.groups * c->w.n + ck_between(s, 0, 70);
    }
    p.in_place = p.handed && (p.floats || (!c->w.strided_out && ck_random(s) % 2));
    fill(s, &p);
    c->o.fits16 = c->o.fits16 && ck_random(s) % 4 > 0;
    snprintf(p.text, sizeof(p.text), "%lldx%dx%d groups %d c %d n %d kernel %dx%d stride %d",
             (long long)c->g.batch, c->g.h, c->g.wd, c->w.groups, c->w.c, c->w.n, c->w.kh, c->w.kw,
             c->g.stride_h);
    return p;
}

static image random_image(ck_state *s) {
    image p = random_outputs(s);
    qs_conv_i8 *c = &p.conv;
    random_window(s, c);
    random_channels(s, c);
    if (c->w.groups == 1 && ck_random(s) % 4 == 0) { /* a first layer, with im2row */
        c->w.n = ck_between(s, 1, 70);
        c->w.c = ck_between(s, 1, 4);
        c->g.wd = ck_between(s, 1, 150) + (c->w.kw - 1) * c->g.dilation_w;
        c->g.wo = out_size(c->g.wd, c->g.pad_left, c->w.kw, c->g.stride_w, c->g.dilation_w);
    }
    return finish(s, p);
}

/*
 * Depthwise windows of 5 x 5 and 7 x 7 (and 4 to 8) over rows several times as wide: vectors read
 * for one pixel serve the next ones, and their buffer is reused.
 */
static image wide_image(ck_state *s) {
    static const int32_t sizes[] = {5, 7, 5, 7, 4, 6, 8};
    const int32_t k = sizes[ck_random(s) % QS_COUNT(sizes)];
    image p = random_outputs(s);
    qs_conv_i8 *c = &p.conv;
    c->g.batch = 1;
    c->w.kh = c->w.kw = k;
    c->g.stride_h = c->g.stride_w = ck_random(s) % 3 ? 1 : 2;
    c->g.dilation_h = c->g.dilation_w = 1;
    c->g.pad_top = c->g.pad_left = ck_random(s) % 2 ? k / 2 : 0;
    c->g.h = ck_between(s, k, 2 * k + 3);
    c->g.wd = ck_between(s, 3 * k, 8 * k);
    c->g.ho = out_size(c->g.h, 2 * c->g.pad_top, k, c->g.stride_h, 1);
    c->g.wo = out_size(c->g.wd, 2 * c->g.pad_left, k, c->g.stride_w, 1);
    c->w.groups = ck_between(s, 8, 100);
    c->w.n = c->w.c = 1;
    return finish(s, p);
}

/* Windows along one axis of many channels, as convolutions of signals have them. */
static image line_image(ck_state *s) {
    image p = random_outputs(s);
    qs_conv_i8 *c = &p.conv;
    const int32_t length = ck_between(s, 1, 16);
    const bool wide = ck_random(s) % 2;
    random_window(s, c);
    c->w.kh = wide ? 1 : length;
    c->w.kw = wide ? length : 1;
    c->g.dilation_h = c->g.dilation_w = 1;
    c->g.pad_top = wide ? 0 : length / 2;
    c->g.pad_left = wide ? length / 2 : 0;
    c->g.h = ck_between(s, c->w.kh, 2 * c->w.kh + 8);
    c->g.wd = ck_between(s, c->w.kw, 2 * c->w.kw + 8);
    c->g.ho = out_size(c->g.h, 2 * c->g.pad_top, c->w.kh, c->g.stride_h, 1);
    c->g.wo = out_size(c->g.wd, 2 * c->g.pad_left, c->w.kw, c->g.stride_w, 1);
    c->w.groups = 1;
    c->w.c = 4 * ck_between(s, 1, 12);
    c->w.n = ck_between(s, 1, 40);
    return finish(s, p);
}

/* More weights than caches hold, which are prefetched during products, and few pixels. */
static image far_image(ck_state *s) {
    image p = random_outputs(s);
    qs_conv_i8 *c = &p.conv;
    random_window(s, c);
    c->w.groups = 1;
    c->w.c = ck_between(s, 20, 40);
    c->w.n = (1 << 19) / (c->w.c * c->w.kh * c->w.kw);
    if (c->w.n > 400) { /* one tap, or a few */
        c->w.n = ck_between(s, 200, 400);
        c->w.c = (1 << 19) / (c->w.n * c->w.kh * c->w.kw) + 1;
    }
    return finish(s, p);
}

/* Computes output by output, from the definition. */
static void plain(const image *p, uint8_t *y) {
    const qs_conv_i8 *c = &p->conv;
    int64_t pixels = c->g.batch * c->g.ho * c->g.wo, columns = (int64_t)c->w.groups * c->w.n;
    int64_t cin = (int64_t)c->w.groups * c->w.c, taps = (int64_t)c->w.kh * c->w.kw;
    for (int64_t i = 0; i < pixels * columns; i++) {
        int64_t n = i % columns, px = i / columns % c->g.wo, py = i / columns / c->g.wo % c->g.ho;
        int64_t image_at = i / columns / c->g.wo / c->g.ho, first = n / c->w.n * c->w.c;
        int64_t sum = p->bias[n];
        for (int64_t t = 0; t < taps * c->w.c; t++) {
            int64_t tap = t / c->w.c, ch = t % c->w.c;
            int64_t iy = py * c->g.stride_h - c->g.pad_top + tap / c->w.kw * c->g.dilation_h;
            int64_t ix = px * c->g.stride_w - c->g.pad_left + tap % c->w.kw * c->g.dilation_w;
            bool inside = iy >= 0 && iy < c->g.h && ix >= 0 && ix < c->g.wd;
            int32_t v = inside ? p->x[((image_at * c->g.h + iy) * c->g.wd + ix) * cin + first + ch]
                               : c->x_zp;
            sum += v * (p->w[(n * c->w.c + ch) * taps + tap] - p->w_zp[n]);
        }
        int32_t acc = (int32_t)sum;
        const int64_t at = c->g.y_channels ? i / columns * c->g.y_channels + c->g.y_column + n : i;
        if (p->floats)
            acc = float_of(acc, p->mult[n], p->add[n]);
        for (int32_t b = 0; b < 4 && p->floats && p->handed; b++)
            acc = (int32_t)marked((uint32_t)acc, b, (size_t)(4 * i + b));
        if (p->int32_out)
            memcpy(y + 4 * at, &acc, 4);
        else
            y[at] = (uint8_t)(ck_requantize(acc, p->mult[n], c->o.zp, c->o.lo, c->o.hi) +
                              (p->handed ? mark((size_t)i) : 0));
    }
}

static void check_image(ck_state *s, image p) {
    uint8_t *expected = ck_output(s, p.y_bytes), *actual = ck_output(s, p.y_bytes);
    call k = prepare(s, s->t->i8, &p, actual);
    run(&k);
    if (s->t == s->c) {
        plain(&p, expected);
    } else {
        call c = prepare(s, s->c->i8, &p, expected);
        run(&c);
    }
    ck_same(s, expected, actual, p.y_bytes, p.text);
}

static void check_conv(ck_state *s) {
    check_image(s, random_image(s));
}

static void check_wide(ck_state *s) {
    check_image(s, wide_image(s));
}

static void check_line(ck_state *s) {
    check_image(s, line_image(s));
}

/* Checks kernels that prefetch; seldom, as it takes as long as many other checks. */
static void check_far(ck_state *s) {
    if (s->t->i8->fetches && ck_random(s) % 8 == 0)
        check_image(s, far_image(s));
}

/* The caller sets p.int32_out and p.floats. */
static void bench_image(ck_state *s, image p, int32_t size, int32_t groups, int32_t c, int32_t n,
                        int32_t kernel, int32_t stride, int32_t zp, bool split) {
    p.conv = (qs_conv_i8){.g = {.batch = 1, .h = size, .wd = size}};
    p.conv.g.stride_h = p.conv.g.stride_w = stride;
    qs_conv_i8 *v = &p.conv;
    v->g.dilation_h = v->g.dilation_w = 1;
    v->g.pad_top = v->g.pad_left = kernel / 2;
    v->g.ho = v->g.wo = out_size(size, 2 * (kernel / 2), kernel, stride, 1);
    v->w = (qs_conv_i8_weights){.groups = groups, .c = c, .n = n, .kh = kernel, .kw = kernel};
    v->w.zero_points = split ? QS_ZP_SPLIT : QS_ZP_NONE;
    v->o = (qk_out_i8){.zp = zp, .hi = 255};
    fill(s, &p);
    call k = prepare(s, s->t->i8, &p, ck_output(s, p.y_bytes));
    if (groups > 1)
        snprintf(p.text, sizeof(p.text), "depthwise %dx%d s%d %d @%d%s%s", kernel, kernel, stride,
                 groups, size, split ? " weight zp" : "", p.floats ? " floats" : "");
    else
        snprintf(p.text, sizeof(p.text), "%dx%d s%d %d->%d @%d%s", kernel, kernel, stride, c, n,
                 size, zp ? "" : " zp 0");
    ck_time(s, p.text, (double)qs_conv_i8_macs(&k.conv), 0, run, &k);
}

static void bench_zp(ck_state *s, int32_t size, int32_t groups, int32_t c, int32_t n,
                     int32_t kernel, int32_t stride, int32_t zp, bool split) {
    bench_image(s, (image){0}, size, groups, c, n, kernel, stride, zp, split);
}

/* Depthwise with float outputs, as in dynamic quantization. */
static void bench_floats(ck_state *s, int32_t size, int32_t groups, int32_t kernel,
                         int32_t stride) {
    const image p = {.int32_out = true, .floats = true};
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
    {"conv_wide", check_wide, NULL},
    {"conv_line", check_line, NULL},
    {"conv_far", check_far, NULL},
};
const size_t ck_cases_conv_i8_count = QS_COUNT(ck_cases_conv_i8);
