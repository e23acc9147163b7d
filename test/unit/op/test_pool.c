/* SPDX-License-Identifier: MIT */
/* Pools against plain loops: the same order of sums, so the same bits. */
#include "op_random.h"

#include <math.h>

typedef struct shape {
    int64_t n, h, w, c, kh, kw, sh, sw, dh, dw, top, left, bottom, right, ceil, pads;
} shape;

static int64_t out_size(int64_t in, int64_t k, int64_t s, int64_t d, int64_t before, int64_t after,
                        bool ceil_mode) {
    int64_t last = in + before + after - (k - 1) * d - 1, out = last / s + 1;
    if (ceil_mode && last > 0 && last % s != 0)
        out++;
    if (ceil_mode && (out - 1) * s >= in + before) /* would begin in the padding after it */
        out--;
    return out;
}

/* Collects the elements of one output's window. Returns how many count. */
typedef struct window {
    double value[64];
    int64_t index[64];
    int inside, counted;
} window;

static window window_of(const shape *s, const float *x, int64_t n, int64_t oy, int64_t ox,
                        int64_t c) {
    window w = {.inside = 0};
    for (int64_t ky = 0; ky < s->kh; ky++) {
        for (int64_t kx = 0; kx < s->kw; kx++) {
            int64_t y = oy * s->sh - s->top + ky * s->dh, z = ox * s->sw - s->left + kx * s->dw;
            if (y >= 0 && y < s->h && z >= 0 && z < s->w) {
                w.value[w.inside] = x[((n * s->h + y) * s->w + z) * s->c + c];
                w.index[w.inside++] = ((n * s->c + c) * s->h + y) * s->w + z;
                w.counted++;
            } else if (s->pads && y < s->h + s->bottom && z < s->w + s->right) {
                w.counted++;
            }
        }
    }
    return w;
}

static or_case pool_case(const char *op, const shape *s) {
    or_case c = {.domain = "qsim", .op = op, .version = 1, .outputs = 1};
    const or_attr attrs[] = {
        or_int("channels_last", 1),
        or_int("ceil_mode", s->ceil),
        or_pair("strides", s->sh, s->sw),
        or_pair("dilations", s->dh, s->dw),
        or_pair("kernel_shape", s->kh, s->kw),
        or_four("pads", s->top, s->left, s->bottom, s->right),
    };
    memcpy(c.attrs, attrs, sizeof(attrs));
    c.attr_count = QS_COUNT(attrs);
    c.in[0] = (or_tensor){.rank = 4, .dims = {s->n, s->h, s->w, s->c}};
    return c;
}

static float expect_float(const char *op, const window *w) {
    float m = -INFINITY, sum = 0.0f;
    for (int i = 0; i < w->inside; i++) {
        m = (float)w->value[i] > m ? (float)w->value[i] : m;
        sum += (float)w->value[i];
    }
    return strcmp(op, "MaxPool") == 0 ? m : sum / (float)(w->counted ? w->counted : 1);
}

/* v = sum * (sx / (sy * count)), clamped, rounded half to even, + zero point. */
static int expect_u8(const window *w, int x_zero, int y_zero, float sx, float sy, int lo, int hi) {
    int sum = 0;
    for (int i = 0; i < w->inside; i++)
        sum += (int)w->value[i] - x_zero;
    float v = (float)sum * (sx / (sy * (float)(w->counted ? w->counted : 1)));
    v = v < (float)(lo - y_zero) ? (float)(lo - y_zero) : v;
    v = v > (float)(hi - y_zero) ? (float)(hi - y_zero) : v;
    return (int)rintf(v) + y_zero;
}

static long compare_float(const char *op, const shape *s, const float *x, const or_result *r) {
    const int64_t oh = r->out[0].dims[1], ow = r->out[0].dims[2];
    const float *y = r->out[0].data;
    long wrong = 0;
    for (int64_t k = 0; k < s->n * oh * ow * s->c; k++) {
        window w =
            window_of(s, x, k / (oh * ow * s->c), k / (ow * s->c) % oh, k / s->c % ow, k % s->c);
        float e = expect_float(op, &w);
        wrong += memcmp(&e, &y[k], sizeof(e)) != 0;
    }
    return wrong;
}

static void check_float(qsim_ctx *ctx, const char *op, const shape *s, float *x) {
    or_case c = pool_case(op, s);
    c.inputs = 1;
    c.in[0].dtype = QSIM_FLOAT;
    c.in[0].data = x;
    if (strcmp(op, "AveragePool") == 0)
        c.attrs[c.attr_count++] = or_int("count_include_pad", s->pads);
    or_result r = or_run(ctx, &c, false);
    CHECK_INT(r.code, QSIM_OK);
    CHECK_INT(r.out[0].dims[1],
              out_size(s->h, s->kh, s->sh, s->dh, s->top, s->bottom, s->ceil != 0));
    CHECK_INT(r.out[0].dims[2],
              out_size(s->w, s->kw, s->sw, s->dw, s->left, s->right, s->ceil != 0));
    CHECK_INT(compare_float(op, s, x, &r), 0);
    or_free(&r);
}

static void check_indices(qsim_ctx *ctx, const shape *s, float *x) {
    or_case c = pool_case("MaxPool", s);
    c.inputs = 1;
    c.outputs = 2;
    c.in[0].dtype = QSIM_FLOAT;
    c.in[0].data = x;
    or_result r = or_run(ctx, &c, false);
    CHECK_INT(r.code, QSIM_OK);
    const int64_t oh = r.out[0].dims[1], ow = r.out[0].dims[2];
    CHECK_INT(r.out[1].dims[1], s->c);
    CHECK_INT(r.out[1].dims[2], oh);
    const int64_t *index = r.out[1].data;
    long wrong = 0;
    for (int64_t k = 0; k < s->n * s->c * oh * ow; k++) {
        window w = window_of(s, x, k / (oh * ow * s->c), k / ow % oh, k % ow, k / (oh * ow) % s->c);
        int best = 0;
        for (int i = 1; i < w.inside; i++)
            best = w.value[i] > w.value[best] ? i : best;
        wrong += w.inside > 0 && index[k] != w.index[best];
    }
    CHECK_INT(wrong, 0);
    or_free(&r);
}

/* Checks bytes by the loop for floats; xf has the same values. */
static void check_u8(qsim_ctx *ctx, const char *op, const shape *s, const uint8_t *x,
                     const float *xf) {
    float sx = 0.02f, sy = 0.031f;
    uint8_t x_zero[65] = {118}, y_zero[65] = {7};
    const bool average = strcmp(op, "MaxPool") != 0;
    or_case c = pool_case(op, s);
    c.inputs = average ? 5 : 1;
    c.in[0].dtype = QSIM_UINT8;
    c.in[0].data = (void *)(uintptr_t)x;
    c.in[1] = (or_tensor){QSIM_FLOAT, 0, {0}, &sx, true};
    c.in[2] = (or_tensor){QSIM_UINT8, 0, {0}, x_zero, true};
    c.in[3] = (or_tensor){QSIM_FLOAT, 0, {0}, &sy, true};
    c.in[4] = (or_tensor){QSIM_UINT8, 0, {0}, y_zero, true};
    if (average) {
        c.attrs[c.attr_count++] = or_int("count_include_pad", s->pads);
        c.attrs[c.attr_count++] = or_int("lo", 5);
        c.attrs[c.attr_count++] = or_int("hi", 60);
    }
    or_result r = or_run(ctx, &c, false);
    CHECK_INT(r.code, QSIM_OK);
    const int64_t oh = r.out[0].dims[1], ow = r.out[0].dims[2];
    const uint8_t *y = r.out[0].data;
    long wrong = 0;
    for (int64_t k = 0; k < s->n * oh * ow * s->c; k++) {
        window w =
            window_of(s, xf, k / (oh * ow * s->c), k / (ow * s->c) % oh, k / s->c % ow, k % s->c);
        int e = average ? expect_u8(&w, 118, 7, sx, sy, 5, 60)
                        : (int)fmaxf(expect_float("MaxPool", &w), 0.0f);
        wrong += e != y[k];
    }
    CHECK_INT(wrong, 0);
    or_free(&r);
}

static shape random_shape(int i) {
    shape s = {.n = between(1, 2), .h = between(1, 12), .w = between(1, 12)};
    s.c = between(1, i % 4 == 0 ? 150 : 20);
    random_window(4, &s.kh, &s.kw);
    s.sh = between(1, 3);
    s.sw = between(1, 3);
    s.dh = i % 3 == 0 ? between(1, 3) : 1;
    s.dw = i % 3 == 1 ? between(1, 3) : 1;
    if (i % 2) {
        s.top = random_pad(3, s.kh, s.dh);
        s.left = random_pad(3, s.kw, s.dw);
        s.bottom = random_pad(3, s.kh, s.dh);
        s.right = random_pad(3, s.kw, s.dw);
    }
    s.ceil = i % 5 < 2;
    s.pads = i % 7 < 3;
    /* With ceil_mode the first window, too, may end behind the padding. */
    while (s.h + s.top + s.bottom + (s.ceil ? s.sh - 1 : 0) <= (s.kh - 1) * s.dh)
        s.h++;
    while (s.w + s.left + s.right + (s.ceil ? s.sw - 1 : 0) <= (s.kw - 1) * s.dw)
        s.w++;
    return s;
}

static void random_shapes(qsim_ctx **ctx, int contexts) {
    for (int i = 0; i < 150; i++) {
        const shape s = random_shape(i);
        const size_t n = (size_t)(s.n * s.h * s.w * s.c);
        float *x = or_memory(n * sizeof(float)), *bytes_as_floats = or_memory(n * sizeof(float));
        uint8_t *bytes = or_memory(n);
        for (size_t k = 0; k < n; k++) {
            x[k] = (float)between(-4000, 4000) / 1000.0f;
            bytes[k] = (uint8_t)between(0, 255);
            bytes_as_floats[k] = bytes[k];
        }
        for (int k = 0; k < contexts; k++) {
            check_float(ctx[k], "MaxPool", &s, x);
            check_float(ctx[k], "AveragePool", &s, x);
            check_u8(ctx[k], "MaxPool", &s, bytes, bytes_as_floats);
            check_u8(ctx[k], "QLinearAveragePool", &s, bytes, bytes_as_floats);
        }
        check_indices(ctx[0], &s, x);
        free(x);
        free(bytes);
        free(bytes_as_floats);
    }
}

/* Averages of few channels whose windows are no neighbours. */
static void few_channels(qsim_ctx **ctx, int contexts) {
    for (int64_t i = 0; i < 40; i++) {
        const int64_t kw = between(1, 4), sw = between(2, 5), dw = between(1, 2);
        const shape s = {between(1, 2),
                         between(4, 7),
                         between(9, i % 4 ? 60 : 300),
                         i % 9 + 1,
                         between(1, 3),
                         kw,
                         between(1, 2),
                         sw,
                         1,
                         dw,
                         between(0, 1),
                         between(0, 1),
                         between(0, 1),
                         between(0, 1),
                         between(0, 1),
                         between(0, 1)};
        const size_t n = (size_t)(s.n * s.h * s.w * s.c);
        float *x = or_memory(n * sizeof(float));
        for (size_t k = 0; k < n; k++)
            x[k] = (float)between(-4000, 4000) / 1000.0f;
        for (int k = 0; k < contexts && s.kw * s.kh > 1; k++)
            check_float(ctx[k], "AveragePool", &s, x);
        free(x);
    }
}

/* Maxima of windows that are taken apart: in several bands, of zeros of both signs and of NaNs. */
static void large_windows(qsim_ctx **ctx, int contexts) {
    static const float values[] = {0.0f, -0.0f, NAN, -INFINITY, -1.0f, -2.0f};
    static const shape shapes[] = {
        {2, 13, 13, 70, 7, 7, 1, 1, 1, 1, 3, 3, 3, 3, 0, 0},
        {1, 61, 12, 190, 5, 5, 1, 1, 1, 1, 2, 2, 2, 2, 0, 0},
        {2, 45, 11, 260, 6, 7, 2, 1, 1, 1, 0, 3, 5, 3, 0, 0},
        {1, 50, 20, 130, 7, 5, 1, 2, 3, 2, 9, 0, 9, 4, 1, 0},
        {1, 9, 30, 3, 8, 8, 1, 1, 1, 1, 12, 1, 12, 1, 0, 0},
    };
    for (size_t i = 0; i < QS_COUNT(shapes); i++) {
        const shape *s = &shapes[i];
        const size_t n = (size_t)(s->n * s->h * s->w * s->c);
        float *x = or_memory(n * sizeof(float));
        uint8_t *bytes = or_memory(n);
        for (size_t k = 0; k < n; k++)
            x[k] = values[between(0, QS_COUNT(values) - 1)];
        for (int k = 0; k < contexts; k++)
            check_float(ctx[k], "MaxPool", s, x);
        for (size_t k = 0; k < n; k++)
            x[k] = bytes[k] = (uint8_t)between(0, 255);
        for (int k = 0; k < contexts; k++)
            check_u8(ctx[k], "MaxPool", s, bytes, x);
        check_indices(ctx[0], s, x);
        free(x);
        free(bytes);
    }
}

/*
 * Windows of 2^24 elements and more, most of them padding, which are computed in pieces: two rows
 * of two windows over five columns, of one channel and of more than a piece has.
 */
static void longest_windows(qsim_ctx *ctx) {
    static const int64_t channels[] = {1, 17};
    for (size_t i = 0; i < QS_COUNT(channels); i++) {
        const int64_t c = channels[i], kw = (1 << 24) / (c + 3) / 2 + 1;
        const shape s = {1, 3, 5, c, 2, kw, 1, kw, 1, 1, 0, kw - 3, 0, kw - 2, 0, 0};
        float x[15 * 17];
        for (size_t k = 0; k < QS_COUNT(x); k++)
            x[k] = (float)between(-4000, 4000) / 1000.0f;
        check_float(ctx, "MaxPool", &s, x);
        check_float(ctx, "AveragePool", &s, x);
        uint8_t bytes[QS_COUNT(x)];
        for (size_t k = 0; k < QS_COUNT(x); k++)
            x[k] = bytes[k] = (uint8_t)between(0, 255);
        check_u8(ctx, "MaxPool", &s, bytes, x);
    }
}

/* x of rank 3, 4 and 5: the mean over everything between batch and channels. */
static void global(qsim_ctx *ctx, int32_t rank, bool quantized) {
    const or_tensor shapes[3] = {{.rank = 3, .dims = {2, 7, 5}},
                                 {.rank = 4, .dims = {2, 7, 7, 70}},
                                 {.rank = 5, .dims = {2, 3, 2, 5, 17}}};
    or_tensor t = shapes[rank - 3];
    t.dtype = quantized ? QSIM_UINT8 : QSIM_FLOAT;
    const int64_t c = t.dims[rank - 1], plane = (int64_t)or_elements(&t) / 2 / c;
    float *f = or_memory(or_elements(&t) * sizeof(float)), sx = 0.11f, sy = 0.07f;
    uint8_t *u = or_memory(or_elements(&t)), x_zero[1] = {9}, y_zero[1] = {3};
    for (size_t i = 0; i < or_elements(&t); i++) {
        u[i] = (uint8_t)between(0, 255);
        f[i] = quantized ? u[i] : (float)between(-99, 99) / 7.0f;
    }
    t.data = quantized ? (void *)u : (void *)f;
    or_case k = {.domain = "qsim",
                 .op = quantized ? "QLinearGlobalAveragePool" : "GlobalAveragePool",
                 .version = 1,
                 .inputs = quantized ? 5 : 1,
                 .outputs = 1,
                 .attrs = {or_int("channels_last", 1)},
                 .attr_count = 1};
    k.in[0] = t;
    k.in[1] = (or_tensor){QSIM_FLOAT, 0, {0}, &sx, true};
    k.in[2] = (or_tensor){QSIM_UINT8, 0, {0}, x_zero, true};
    k.in[3] = (or_tensor){QSIM_FLOAT, 0, {0}, &sy, true};
    k.in[4] = (or_tensor){QSIM_UINT8, 0, {0}, y_zero, true};
    or_result r = or_run(ctx, &k, false);
    CHECK_INT(r.code, QSIM_OK);
    CHECK_INT(r.out[0].dims[rank - 2], 1);
    for (int64_t i = 0; i < 2 * c && !r.code; i++) {
        float sum = 0.0f;
        for (int64_t p = 0; p < plane; p++)
            sum += f[(i / c * plane + p) * c + i % c];
        if (!quantized) {
            CHECK_NEAR(((float *)r.out[0].data)[i], sum / (float)plane, 0.0);
            continue;
        }
        float v = (sum - 9.0f * (float)plane) * (sx / (sy * (float)plane));
        v = fminf(fmaxf(v, -3.0f), 252.0f);
        CHECK_INT(((uint8_t *)r.out[0].data)[i], (int)rintf(v) + 3);
    }
    or_free(&r);
    free(f);
    free(u);
}

/*
 * The mean of a large image of one value is that value. Adding pixel after pixel is off by 1e-3
 * here; each of 16 lanes adds at most 1024 numbers before it is added to the others.
 */
static void large_image(qsim_ctx *ctx, int64_t channels) {
    enum { SIDE = 400, IMAGES = 2 };
    const size_t n = (size_t)(IMAGES * SIDE * SIDE * channels);
    float *x = or_memory(n * sizeof(float));
    for (size_t i = 0; i < n; i++)
        x[i] = 0.7f + 0.01f * (float)((int64_t)i % channels);
    const or_case c = {.domain = "qsim",
                       .op = "GlobalAveragePool",
                       .version = 1,
                       .inputs = 1,
                       .outputs = 1,
                       .in = {{QSIM_FLOAT, 4, {IMAGES, SIDE, SIDE, channels}, x, false}},
                       .attrs = {or_int("channels_last", 1)},
                       .attr_count = 1};
    or_result r = or_run(ctx, &c, false);
    CHECK_INT(r.code, QSIM_OK);
    for (int64_t i = 0; i < IMAGES * channels && !r.code; i++)
        CHECK_NEAR(((float *)r.out[0].data)[i], x[i % channels], 2e-5 * (double)x[i % channels]);
    or_free(&r);
    free(x);
}

static void refuses(qsim_ctx *ctx) {
    float x[1] = {0}, bad = 0.0f, nan = NAN;
    const shape s = {1, 4, 4, 3, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0};
    or_case c = pool_case("MaxPool", &s);
    c.inputs = 1;
    c.in[0].dtype = QSIM_INT32;
    c.in[0].data = x;
    CHECK_INT(or_run(ctx, &c, true).code, QSIM_E_DTYPE);
    c.in[0].dtype = QSIM_FLOAT;
    c.in[0].rank = 2;
    CHECK_INT(or_run(ctx, &c, true).code, QSIM_E_SHAPE);
    c.in[0].rank = 4;
    c.attrs[2] = or_pair("strides", 1, (int64_t)INT32_MAX + 1);
    CHECK_INT(or_run(ctx, &c, true).code, QSIM_E_VALUE);
    c.attrs[2] = or_pair("strides", 1, 1);
    c.domain = "";
    c.version = 9; /* ceil_mode came with opset 10, channels_last never */
    c.attrs[0] = or_int("ceil_mode", 1);
    c.attr_count = 1;
    CHECK_INT(or_run(ctx, &c, true).code, QSIM_E_UNSUPPORTED);
    c.version = 10; /* without a kernel_shape */
    CHECK_INT(or_run(ctx, &c, true).code, QSIM_E_GRAPH);
    c = pool_case("QLinearAveragePool", &s);
    c.inputs = 4;
    c.in[0].dtype = QSIM_UINT8;
    c.in[0].data = x;
    c.in[1] = (or_tensor){QSIM_FLOAT, 0, {0}, &bad, true};
    c.in[3] = (or_tensor){QSIM_FLOAT, 0, {0}, &nan, true};
    CHECK_INT(or_run(ctx, &c, true).code, QSIM_E_VALUE);
    bad = 1.0f;
    CHECK_INT(or_run(ctx, &c, true).code, QSIM_E_VALUE);
    nan = 1.0f;
    CHECK_INT(or_run(ctx, &c, true).code, QSIM_OK);
}

int main(void) {
    or_seed = 77;
    qsim_ctx *ctx[QS_ISA_COUNT];
    int n = or_contexts(ctx, 2);
    CHECK(n >= 1);
    random_shapes(ctx, n);
    few_channels(ctx, n);
    large_windows(ctx, n);
    longest_windows(ctx[0]);
    for (int i = 0; i < n; i++)
        for (int32_t rank = 3; rank <= 5; rank++) {
            global(ctx[i], rank, false);
            global(ctx[i], rank, true);
        }
    for (int i = 0; i < n; i++) {
        large_image(ctx[i], 1);
        large_image(ctx[i], 65);
    }
    refuses(ctx[0]);
    for (int i = 0; i < n; i++)
        qsim_ctx_free(ctx[i]);
    return test_done();
}
