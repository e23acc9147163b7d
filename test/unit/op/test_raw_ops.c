/* SPDX-License-Identifier: MIT */
/* The layers and requantizations on plain buffers against plain loops and known values. */
#include <math.h>
#include <stdbool.h>

#include <qsim/op.h>

#include "test.h"

static uint64_t seed = 99;

static int32_t between(int32_t a, int32_t b) {
    return a + (int32_t)(test_random(&seed) % (uint32_t)(b - a + 1));
}

static int32_t at(const qsim_tensor *t, int64_t i) {
    if (t->dtype == QSIM_INT8)
        return ((const int8_t *)t->data)[i];
    if (t->dtype == QSIM_UINT8)
        return ((const uint8_t *)t->data)[i];
    return ((const int32_t *)t->data)[i];
}

static qsim_tensor make(int32_t dtype, int32_t rank, const int64_t *dims) {
    qsim_tensor t = {.dtype = dtype, .rank = rank, .dims = dims};
    CHECK_INT(qsim_tensor_size(dtype, rank, dims, NULL, &t.bytes), QSIM_OK);
    t.data = malloc(t.bytes); /* exactly: nothing after it may be read or written */
    for (size_t i = 0; i < t.bytes; i++)
        ((uint8_t *)t.data)[i] = (uint8_t)test_random(&seed);
    return t;
}

static int32_t random_point(int32_t dtype) {
    return dtype == QSIM_INT8 ? between(-128, 127) : between(0, 255);
}

typedef struct setup {
    qsim_op_options o;
    int32_t w_zp[64], bias[64];
    float m[64];
} setup;

static void random_options(setup *s, int32_t columns, int32_t x, int32_t w, int32_t y) {
    memset(s, 0, sizeof(*s));
    s->o.struct_size = sizeof(s->o);
    s->o.x_zero_point = random_point(x);
    s->o.w_zero_point = s->w_zp;
    s->o.w_zero_points = (size_t)(between(0, 2) == 0 ? 0 : between(0, 1) ? 1 : columns);
    for (int32_t i = 0; i < columns; i++) {
        s->w_zp[i] = random_point(w);
        s->bias[i] = between(-2000, 2000);
        s->m[i] = (float)between(1, 1000) * 1e-5f;
    }
    s->o.bias = between(0, 1) ? s->bias : NULL;
    if (y == QSIM_INT32)
        return;
    s->o.multiplier = s->m;
    s->o.multipliers = (size_t)(between(0, 1) ? 1 : columns);
    s->o.y_zero_point = random_point(y);
    if (between(0, 1)) {
        s->o.lo = random_point(y);
        s->o.hi = y == QSIM_INT8 ? 127 : 255;
    }
}

static int32_t w_zp_of(const setup *s, int64_t o) {
    return s->o.w_zero_points ? s->w_zp[s->o.w_zero_points == 1 ? 0 : o] : 0;
}

static int32_t finish(const setup *s, const qsim_tensor *y, int64_t acc, int64_t o) {
    acc += s->o.bias ? s->bias[o] : 0;
    if (y->dtype == QSIM_INT32)
        return (int32_t)acc;
    int32_t lo = s->o.lo, hi = s->o.hi, zp = s->o.y_zero_point;
    if (lo == 0 && hi == 0) {
        lo = y->dtype == QSIM_INT8 ? -128 : 0;
        hi = lo + 255;
    }
    float v = (float)acc * s->m[s->o.multipliers == 1 ? 0 : o];
    v = fminf(fmaxf(v, (float)(lo - zp)), (float)(hi - zp));
    return (int32_t)nearbyintf(v) + zp;
}

/* Index of (n, c, y, x) in either layout. */
static int64_t place(const qsim_tensor *t, bool nhwc, int64_t n, int64_t c, int64_t y, int64_t x) {
    const int64_t *d = t->dims;
    return nhwc ? ((n * d[1] + y) * d[2] + x) * d[3] + c : ((n * d[1] + c) * d[2] + y) * d[3] + x;
}

static int32_t conv_at(const setup *s, const qsim_tensor *x, const qsim_tensor *w,
                       const qsim_tensor *y, const int64_t p[4]) {
    bool nhwc = s->o.flags & QSIM_OP_NHWC;
    int64_t per_group = w->dims[0] / s->o.groups, first = p[1] / per_group * w->dims[1], acc = 0;
    int64_t h = x->dims[nhwc ? 1 : 2], width = x->dims[nhwc ? 2 : 3];
    for (int64_t c = 0; c < w->dims[1]; c++)
        for (int64_t ky = 0; ky < w->dims[2]; ky++)
            for (int64_t kx = 0; kx < w->dims[3]; kx++) {
                int64_t iy = p[2] * s->o.stride_h - s->o.pad_top + ky * s->o.dilation_h;
                int64_t ix = p[3] * s->o.stride_w - s->o.pad_left + kx * s->o.dilation_w;
                if (iy < 0 || iy >= h || ix < 0 || ix >= width)
                    continue;
                int64_t j = ((p[1] * w->dims[1] + c) * w->dims[2] + ky) * w->dims[3] + kx;
                acc +=
                    (int64_t)(at(x, place(x, nhwc, p[0], first + c, iy, ix)) - s->o.x_zero_point) *
                    (at(w, j) - w_zp_of(s, p[1]));
            }
    return finish(s, y, acc, p[1]);
}

static const int32_t types8[] = {QSIM_UINT8, QSIM_INT8};
static const int32_t types_out[] = {QSIM_UINT8, QSIM_INT8, QSIM_INT32};

static void check_conv(qsim_ctx *ctx) {
    int32_t tx = types8[between(0, 1)], tw = types8[between(0, 1)], ty = types_out[between(0, 2)];
    int64_t groups = between(1, 3), c = groups * between(1, 4), m = groups * between(1, 12);
    if (between(0, 3) == 0)
        groups = m = c;
    setup s;
    random_options(&s, (int32_t)m, tx, tw, ty);
    bool nhwc = between(0, 1);
    s.o.flags = nhwc ? QSIM_OP_NHWC : 0;
    s.o.groups = (int32_t)groups;
    s.o.stride_h = between(1, 2);
    s.o.stride_w = between(1, 2);
    s.o.dilation_h = between(1, 2);
    s.o.dilation_w = between(1, 2);
    s.o.pad_top = between(0, 1);
    s.o.pad_bottom = between(0, 2);
    s.o.pad_left = between(0, 2);
    s.o.pad_right = between(0, 1);
    int64_t n = between(1, 2), kh = between(1, 3), kw = between(1, 3), h = between(5, 9);
    int64_t width = between(5, 9);
    int64_t ho = (h + s.o.pad_top + s.o.pad_bottom - (kh - 1) * s.o.dilation_h - 1) / s.o.stride_h;
    int64_t wo =
        (width + s.o.pad_left + s.o.pad_right - (kw - 1) * s.o.dilation_w - 1) / s.o.stride_w;
    ho++;
    wo++;
    int64_t dx[4] = {n, c, h, width}, dw[4] = {m, c / groups, kh, kw}, dy[4] = {n, m, ho, wo};
    if (nhwc) {
        memcpy(dx, (int64_t[]){n, h, width, c}, sizeof(dx));
        memcpy(dy, (int64_t[]){n, ho, wo, m}, sizeof(dy));
    }
    qsim_tensor x = make(tx, 4, dx), w = make(tw, 4, dw), y = make(ty, 4, dy);
    qsim_error e = {0};
    CHECK_INT(qsim_conv2d(ctx, &x, &w, &s.o, &y, &e), QSIM_OK);
    CHECK_STR(e.message, "");
    long wrong = 0;
    for (int64_t i = 0; i < n * m * ho * wo; i++) {
        int64_t p[4] = {i / (m * ho * wo), i / (ho * wo) % m, i / wo % ho, i % wo};
        wrong += at(&y, place(&y, nhwc, p[0], p[1], p[2], p[3])) != conv_at(&s, &x, &w, &y, p);
    }
    CHECK_INT(wrong, 0);
    free(x.data);
    free(w.data);
    free(y.data);
}

static void check_linear(qsim_ctx *ctx) {
    int32_t tx = types8[between(0, 1)], tw = types8[between(0, 1)], ty = types_out[between(0, 2)];
    int64_t m = between(1, 9), n = between(1, 60), k = between(1, 70);
    int64_t dx[2] = {m, k}, dw[2] = {n, k}, dy[2] = {m, n};
    qsim_tensor x = make(tx, 2, dx), w = make(tw, 2, dw), y = make(ty, 2, dy);
    setup s;
    random_options(&s, (int32_t)n, tx, tw, ty);
    qsim_error e = {0};
    CHECK_INT(qsim_linear(ctx, &x, &w, &s.o, &y, &e), QSIM_OK);
    long wrong = 0;
    for (int64_t i = 0; i < m * n; i++) {
        int64_t acc = 0;
        for (int64_t t = 0; t < k; t++)
            acc += (int64_t)(at(&x, i / n * k + t) - s.o.x_zero_point) *
                   (at(&w, i % n * k + t) - w_zp_of(&s, i % n));
        wrong += at(&y, i) != finish(&s, &y, acc, i % n);
    }
    CHECK_INT(wrong, 0);
    free(x.data);
    free(w.data);
    free(y.data);
}

/* Ties with an odd zero point: rounding comes before the zero point. */
static void test_requantize(void) {
    static const int32_t acc[] = {-1, 1, 3, 5, 1000000, -1000000};
    static const uint8_t expected[] = {1, 1, 3, 3, 255, 0};
    static const int8_t clipped[] = {0, 1, 3, 3, 100, 0};
    uint8_t y[6];
    int8_t s[6];
    float half = 0.5f, bad = INFINITY;
    CHECK_INT(qsim_requantize(acc, 1, 6, &half, 1, 1, 0, 255, QSIM_UINT8, y), QSIM_OK);
    for (int i = 0; i < 6; i++)
        CHECK_INT(y[i], expected[i]);
    /* -0.5 rounds to -0, then + 1: inside the bounds [0, 100]; -1.5 would not be. */
    static const int32_t low[] = {-3, 1, 3, 5, 1000, -1000};
    CHECK_INT(qsim_requantize(low, 1, 6, &half, 1, 1, 0, 100, QSIM_INT8, s), QSIM_OK);
    for (int i = 0; i < 6; i++)
        CHECK_INT(s[i], clipped[i]);
    CHECK_INT(qsim_requantize(acc, 1, 6, &bad, 1, 1, 0, 255, QSIM_UINT8, y), QSIM_E_VALUE);
    CHECK_INT(qsim_requantize(acc, 1, 6, &half, 1, 1, 0, 256, QSIM_UINT8, y), QSIM_E_VALUE);
    CHECK_INT(qsim_requantize(acc, 1, 6, &half, 2, 1, 0, 255, QSIM_UINT8, y), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_requantize(acc, 1, 6, &half, 1, 1, 0, 255, QSIM_FLOAT, y), QSIM_E_DTYPE);
}

/* gemmlowp's published formulas, written with masks as there. */
static int32_t gemmlowp(int32_t a, int32_t m, int32_t shift) {
    int64_t ab = (int64_t)a * (shift > 0 ? 1 << shift : 1) * m;
    int32_t nudge = ab >= 0 ? 1 << 30 : 1 - (1 << 30), exponent = shift < 0 ? -shift : 0;
    int32_t x = (int32_t)((ab + nudge) / ((int64_t)1 << 31));
    int32_t mask = (int32_t)((1ll << exponent) - 1), remainder = x & mask;
    int32_t threshold = (mask >> 1) + (x < 0 ? 1 : 0);
    return (int32_t)(((int64_t)x >> exponent) + (remainder > threshold ? 1 : 0));
}

static void test_fixed(void) {
    static const struct {
        double real;
        int32_t m, shift;
    } known[] = {{0.5, 1 << 30, 0}, {0.25, 1 << 30, -1}, {1.0, 1 << 30, 1},    {0.75, 3 << 29, 0},
                 {0.0, 0, 0},       {1e-20, 0, 0},       {1e20, INT32_MAX, 30}};
    int32_t m, shift;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        CHECK_INT(qsim_fixed_from_float(known[i].real, &m, &shift), QSIM_OK);
        CHECK_INT(m, known[i].m);
        CHECK_INT(shift, known[i].shift);
    }
    CHECK_INT(qsim_fixed_from_float(-1.0, &m, &shift), QSIM_E_VALUE);
    CHECK_INT(qsim_fixed_from_float((double)NAN, &m, &shift), QSIM_E_VALUE);
    int64_t wrong = 0;
    for (int i = 0; i < 20000; i++) {
        double real = ldexp(1.0 + (double)between(0, 1000000) / 1e6, between(-20, 2));
        int32_t acc = between(-1000000, 1000000);
        uint8_t y;
        CHECK_INT(qsim_fixed_from_float(real, &m, &shift), QSIM_OK);
        CHECK_INT(qsim_requantize_fixed(&acc, 1, 1, &m, &shift, 1, 3, 0, 255, QSIM_UINT8, &y),
                  QSIM_OK);
        int64_t v = (int64_t)gemmlowp(acc, m, shift) + 3;
        wrong += y != (v < 0 ? 0 : v > 255 ? 255 : v);
    }
    CHECK_INT(wrong, 0);
    shift = 31;
    CHECK_INT(qsim_requantize_fixed((int32_t[]){1}, 1, 1, &m, &shift, 1, 3, 0, 255, QSIM_UINT8,
                                    (uint8_t[]){0}),
              QSIM_E_VALUE);
}

static void test_refusals(qsim_ctx *ctx) {
    int64_t dx[2] = {1, 70000}, dw[2] = {1, 70000}, dy[2] = {1, 1};
    qsim_tensor x = make(QSIM_UINT8, 2, dx), w = make(QSIM_INT8, 2, dw),
                y = make(QSIM_UINT8, 2, dy);
    float m = 1e-7f;
    qsim_op_options o = {.struct_size = sizeof(o), .multiplier = &m, .multipliers = 1};
    memset(w.data, 0x80, w.bytes); /* -128: 70000 * 255 * 128 is beyond int32 */
    CHECK_INT(qsim_linear(ctx, &x, &w, &o, &y, NULL), QSIM_E_UNSUPPORTED);
    memset(w.data, 1, w.bytes);
    CHECK_INT(qsim_linear(ctx, &x, &w, &o, &y, NULL), QSIM_OK);
    CHECK_INT(qsim_linear(NULL, &x, &w, &o, &y, NULL), QSIM_E_ARGUMENT);
    o.pad_top = 1;
    CHECK_INT(qsim_linear(ctx, &x, &w, &o, &y, NULL), QSIM_E_ARGUMENT);
    o.pad_top = 0;
    o.x_zero_point = 256;
    CHECK_INT(qsim_linear(ctx, &x, &w, &o, &y, NULL), QSIM_E_VALUE);
    o.x_zero_point = 0;
    o.multipliers = 0;
    CHECK_INT(qsim_linear(ctx, &x, &w, &o, &y, NULL), QSIM_E_DTYPE);
    o.multipliers = 1;
    dw[1]--;
    CHECK_INT(qsim_linear(ctx, &x, &w, &o, &y, NULL), QSIM_E_SHAPE);
    dw[1]++;
    w.bytes--;
    CHECK_INT(qsim_linear(ctx, &x, &w, &o, &y, NULL), QSIM_E_ARGUMENT);
    free(x.data);
    free(w.data);
    free(y.data);
}

int main(void) {
    for (int32_t isa = QSIM_ISA_C; qsim_isa_name(isa); isa++) {
        qsim_ctx_options o = {.struct_size = sizeof(o), .threads = 2, .isa = isa};
        qsim_ctx *ctx;
        if (!qsim_isa_available(isa))
            continue;
        CHECK_INT(qsim_ctx_create(&o, &ctx, NULL), QSIM_OK);
        for (int i = 0; i < 150; i++) {
            check_conv(ctx);
            check_linear(ctx);
        }
        test_refusals(ctx);
        qsim_ctx_free(ctx);
    }
    test_requantize();
    test_fixed();
    return test_done();
}
