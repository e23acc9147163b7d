/* SPDX-License-Identifier: MIT */
/*
 * QLinearConv, ConvInteger, QLinearMatMul and MatMulInteger against plain loops in int64 over the
 * definition: (x - x_zp) * (w - w_zp), every instruction set, one thread and three.
 */
#include "op_random.h"

#include "op/int8/int8_prepare.h"

#include <math.h>

static void *random_bytes(size_t n) {
    uint8_t *p = or_memory(n);
    for (size_t i = 0; i < n + 64; i++)
        p[i] = (uint8_t)test_random(&or_seed);
    return p;
}

static int32_t byte_at(const void *p, int64_t i, bool is_signed) {
    return is_signed ? ((const int8_t *)p)[i] : ((const uint8_t *)p)[i];
}

/* Parameters of any of the four operators. */
typedef struct params {
    bool quantized, w_signed, bias, w_zp, constant, clip;
    bool per_column, per_row; /* lists instead of scalars */
    int64_t columns, rows;
    int32_t lo, hi;
    float *x_scale, *w_scale, *y_scale;
    uint8_t *x_zp, *w_zps, *y_zp;
    int32_t *biases;
} params;

static float *random_scales(int64_t n, float around) {
    float *p = or_memory((size_t)n * 4);
    for (int64_t i = 0; i < n; i++)
        p[i] = around * (0.5f + (float)between(0, 1000) / 1000.0f);
    return p;
}

static params random_params(bool quantized, int64_t columns, int64_t rows, int64_t terms) {
    params p = {.quantized = quantized, .columns = columns, .rows = rows, .hi = 255};
    p.w_signed = between(0, 2) > 0;
    p.w_zp = between(0, 2) == 0;
    p.bias = quantized && between(0, 1);
    p.constant = between(0, 3) > 0;
    p.per_column = between(0, 1);
    p.clip = quantized && between(0, 1);
    if (p.clip) {
        p.lo = (int32_t)between(0, 100);
        p.hi = (int32_t)between(p.lo, 255);
    }
    p.x_scale = random_scales(rows, 0.02f);
    p.w_scale = random_scales(columns, 0.01f);
    p.y_scale = random_scales(1, 0.0004f * sqrtf((float)terms) * 100.0f);
    p.x_zp = random_bytes((size_t)rows);
    p.y_zp = random_bytes(1);
    p.w_zps = random_bytes((size_t)columns);
    /* A u8 weight without a zero point parameter has 128, as quantizers write it. */
    for (int64_t i = 0; i < columns && !p.w_zp; i++)
        p.w_zps[i] = p.w_signed ? 0 : 128;
    for (int64_t i = 1; i < columns && !p.per_column; i++) {
        p.w_zps[i] = p.w_zps[0];
        p.w_scale[i] = p.w_scale[0];
    }
    p.biases = or_memory((size_t)columns * 4);
    for (int64_t i = 0; i < columns; i++)
        p.biases[i] = (int32_t)between(-5000, 5000);
    return p;
}

static void free_params(params *p) {
    free(p->x_scale);
    free(p->w_scale);
    free(p->y_scale);
    free(p->x_zp);
    free(p->w_zps);
    free(p->y_zp);
    free(p->biases);
}

/* Inputs and attributes beside x and w. */
static void add_params(or_case *c, const params *p, bool matmul) {
    int32_t w_type = p->w_signed ? QSIM_INT8 : QSIM_UINT8;
    int64_t n = p->per_column ? p->columns : 1;
    or_tensor x_zp = {QSIM_UINT8, 0, {0}, p->x_zp, p->constant};
    or_tensor w_zp = {w_type, 1, {n}, p->w_zps, p->constant};
    or_tensor x_scale = {QSIM_FLOAT, 0, {0}, p->x_scale, p->constant};
    if (p->per_row) {
        x_zp.rank = x_scale.rank = 1;
        x_zp.dims[0] = x_scale.dims[0] = p->rows;
    }
    if (!p->quantized) {
        c->in[2] = x_zp;
        c->in[3] = w_zp;
        c->inputs = 4;
        return;
    }
    c->in[1] = x_scale;
    c->in[2] = x_zp;
    c->in[4] = (or_tensor){QSIM_FLOAT, 1, {n}, p->w_scale, p->constant};
    c->in[5] = w_zp;
    c->in[6] = (or_tensor){QSIM_FLOAT, 0, {0}, p->y_scale, p->constant};
    c->in[7] = (or_tensor){QSIM_UINT8, 0, {0}, p->y_zp, p->constant};
    c->in[8] = (or_tensor){QSIM_INT32, 1, {p->columns}, p->biases, p->constant};
    c->inputs = p->bias ? 9 : 8;
    if (p->clip) {
        c->attrs[c->attr_count++] = or_int("lo", p->lo);
        c->attrs[c->attr_count++] = or_int("hi", p->hi);
    }
    (void)matmul;
}

static int64_t plain_output(const params *p, int64_t acc, int64_t row, int64_t column) {
    if (!p->quantized)
        return (int32_t)(uint32_t)acc;
    acc += p->bias ? p->biases[column] : 0;
    float m = (p->x_scale[p->per_row ? row : 0] * p->w_scale[column]) / p->y_scale[0];
    float v = (float)(int32_t)acc * m;
    int32_t zp = p->y_zp[0];
    v = fminf(fmaxf(v, (float)(p->lo - zp)), (float)(p->hi - zp));
    return (int64_t)nearbyintf(v) + zp;
}

static void compare(const or_result *r, const int64_t *expected, bool quantized) {
    size_t n = or_elements(&r->out[0]), wrong = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t got =
            quantized ? ((const uint8_t *)r->out[0].data)[i] : ((const int32_t *)r->out[0].data)[i];
        wrong += got != expected[i];
    }
    CHECK_INT(wrong, 0);
}

static void run_everywhere(qsim_ctx **ctx, int contexts, const or_case *c, const int64_t *expected,
                           bool quantized) {
    for (int i = 0; i < contexts; i++) {
        or_result r = or_run(ctx[i], c, false);
        CHECK_STR(r.error.message, "");
        if (!r.code)
            compare(&r, expected, quantized);
        or_free(&r);
    }
}

/* ---- convolution ---- */

typedef struct shape {
    int64_t n, h, w, c, m, group, kh, kw, sh, sw, dh, dw, top, left, bottom, right;
} shape;

static int64_t out_size(int64_t in, int64_t k, int64_t s, int64_t d, int64_t pads) {
    return (in + pads - (k - 1) * d - 1) / s + 1;
}

static int64_t conv_at(const shape *s, const params *p, const uint8_t *x, const void *w, int64_t n,
                       int64_t oy, int64_t ox, int64_t o) {
    int64_t cg = s->c / s->group, first = o / (s->m / s->group) * cg, acc = 0;
    int32_t w_zp = byte_at(p->w_zps, o, p->w_signed);
    for (int64_t ky = 0; ky < s->kh; ky++)
        for (int64_t kx = 0; kx < s->kw; kx++)
            for (int64_t i = 0; i < cg; i++) {
                int64_t y = oy * s->sh - s->top + ky * s->dh, z = ox * s->sw - s->left + kx * s->dw;
                if (y < 0 || y >= s->h || z < 0 || z >= s->w)
                    continue;
                int32_t v = x[((n * s->h + y) * s->w + z) * s->c + first + i] - p->x_zp[0];
                acc +=
                    v * (byte_at(w, ((o * cg + i) * s->kh + ky) * s->kw + kx, p->w_signed) - w_zp);
            }
    return acc;
}

static void check_conv(qsim_ctx **ctx, int contexts, const shape *s, bool quantized) {
    int64_t cg = s->c / s->group, terms = cg * s->kh * s->kw, oh, ow, at = 0;
    oh = out_size(s->h, s->kh, s->sh, s->dh, s->top + s->bottom);
    ow = out_size(s->w, s->kw, s->sw, s->dw, s->left + s->right);
    params p = random_params(quantized, s->m, 1, terms);
    uint8_t *x = random_bytes((size_t)(s->n * s->h * s->w * s->c));
    void *w = random_bytes((size_t)(s->m * terms));
    int64_t *expected = calloc((size_t)(s->n * oh * ow * s->m), sizeof(*expected));
    for (int64_t n = 0; n < s->n; n++)
        for (int64_t y = 0; y < oh; y++)
            for (int64_t z = 0; z < ow; z++)
                for (int64_t o = 0; o < s->m; o++)
                    expected[at++] = plain_output(&p, conv_at(s, &p, x, w, n, y, z, o), 0, o);
    or_case c = {.domain = "qsim", .version = 1, .outputs = 1, .attr_count = 6};
    c.op = quantized ? "QLinearConv" : "ConvInteger";
    c.attrs[0] = or_int("channels_last", 1);
    c.attrs[1] = or_int("group", s->group);
    c.attrs[2] = or_pair("strides", s->sh, s->sw);
    c.attrs[3] = or_pair("dilations", s->dh, s->dw);
    c.attrs[4] = or_pair("kernel_shape", s->kh, s->kw);
    c.attrs[5] = or_four("pads", s->top, s->left, s->bottom, s->right);
    c.in[0] = (or_tensor){QSIM_UINT8, 4, {s->n, s->h, s->w, s->c}, x, false};
    c.in[quantized ? 3 : 1] = (or_tensor){
        p.w_signed ? QSIM_INT8 : QSIM_UINT8, 4, {s->m, cg, s->kh, s->kw}, w, between(0, 4) > 0};
    add_params(&c, &p, false);
    run_everywhere(ctx, contexts, &c, expected, quantized);
    free(expected);
    free(x);
    free(w);
    free_params(&p);
}

static shape random_shape(void) {
    shape s = {.n = between(1, 3), .h = between(1, 12), .w = between(1, 12), .group = 1};
    random_window(4, &s.kh, &s.kw);
    s.sh = between(1, 3);
    s.sw = between(1, 3);
    s.dh = between(1, 2);
    s.dw = between(1, 2);
    s.top = random_pad(2, s.kh, s.dh);
    s.left = random_pad(2, s.kw, s.dw);
    s.bottom = random_pad(2, s.kh, s.dh);
    s.right = random_pad(2, s.kw, s.dw);
    const bool whole = between(0, 1); /* the image holds a window */
    while (s.h + (whole ? 0 : s.top + s.bottom) <= (s.kh - 1) * s.dh)
        s.h++;
    while (s.w + (whole ? 0 : s.left + s.right) <= (s.kw - 1) * s.dw)
        s.w++;
    s.c = between(1, between(0, 2) ? 9 : 48);
    s.m = between(1, 40);
    int64_t kind = between(0, 3);
    if (kind == 0) { /* depthwise */
        s.group = s.c = s.m = between(2, 70);
    } else if (kind == 1) { /* groups */
        s.group = between(2, 4);
        s.c = s.group * between(1, between(0, 1) ? 5 : 20);
        s.m = s.group * between(1, 20);
    }
    return s;
}

static void test_convolutions(qsim_ctx **ctx, int contexts) {
    static const shape fixed[] = {
        {1, 28, 28, 1, 8, 1, 5, 5, 1, 1, 1, 1, 2, 2, 2, 2},
        {2, 14, 14, 8, 16, 1, 5, 5, 1, 1, 1, 1, 0, 0, 0, 0},
        {1, 30, 30, 64, 64, 1, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},
        {1, 40, 40, 3, 32, 1, 3, 3, 2, 2, 1, 1, 0, 0, 1, 1},
        {3, 20, 20, 16, 96, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0},
        {1, 20, 20, 16, 24, 1, 1, 1, 2, 2, 1, 1, 0, 0, 0, 0},
        {1, 56, 56, 96, 96, 96, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},
        {1, 57, 57, 96, 96, 96, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1},
        {1, 3, 5, 3, 4, 1, 3, 3, INT32_MAX, INT32_MAX, 1, 1, 0, 0, 0, 0},
        {2, 5, 3, 24, 24, 24, 3, 3, INT32_MAX, INT32_MAX, 1, 1, 1, 0, 0, 1},
    };
    for (size_t i = 0; i < QS_COUNT(fixed); i++)
        check_conv(ctx, contexts, &fixed[i], true);
    for (int i = 0; i < 150; i++) {
        shape s = random_shape();
        check_conv(ctx, contexts, &s, i % 3 != 0);
    }
}

/* ---- matrix products ---- */

/* batches of a and b: equal, or one of them 1 */
static void check_matmul(qsim_ctx **ctx, int contexts, bool quantized, const int64_t size[3],
                         int64_t ba, int64_t bb, bool per_row) {
    int64_t m = size[0], n = size[1], k = size[2], batches = ba > bb ? ba : bb, at = 0;
    params p = random_params(quantized, n, m, k);
    p.per_row = per_row;
    uint8_t *a = random_bytes((size_t)(ba * m * k));
    void *b = random_bytes((size_t)(bb * k * n));
    int64_t *expected = calloc((size_t)(batches * m * n), sizeof(*expected));
    for (int64_t i = 0; i < batches; i++)
        for (int64_t r = 0; r < m; r++)
            for (int64_t j = 0; j < n; j++) {
                int64_t acc = 0, ia = ba > 1 ? i : 0, ib = bb > 1 ? i : 0;
                for (int64_t t = 0; t < k; t++)
                    acc += (a[(ia * m + r) * k + t] - p.x_zp[per_row ? r : 0]) *
                           (byte_at(b, (ib * k + t) * n + j, p.w_signed) -
                            byte_at(p.w_zps, j, p.w_signed));
                expected[at++] = plain_output(&p, acc, r, j);
            }
    or_case c = {.domain = "qsim", .version = 1, .outputs = 1};
    c.op = quantized ? "QLinearMatMul" : "MatMulInteger";
    c.in[0] = (or_tensor){QSIM_UINT8, 3, {ba, m, k}, a, false};
    or_tensor right = {p.w_signed ? QSIM_INT8 : QSIM_UINT8, 2, {k, n}, b, between(0, 3) > 0};
    if (bb > 1) {
        right.rank = 3;
        memcpy(right.dims, (int64_t[]){bb, k, n}, 24);
    }
    c.in[quantized ? 3 : 1] = right;
    add_params(&c, &p, true);
    run_everywhere(ctx, contexts, &c, expected, quantized);
    free(expected);
    free(a);
    free(b);
    free_params(&p);
}

static void test_products(qsim_ctx **ctx, int contexts) {
    static const int64_t fixed[][3] = {{1, 10, 128}, {1, 300, 400}, {256, 256, 256}, {1, 1, 1}};
    for (size_t i = 0; i < QS_COUNT(fixed); i++)
        check_matmul(ctx, contexts, true, fixed[i], 1, 1, false);
    for (int i = 0; i < 120; i++) {
        int64_t size[3] = {between(1, 20), between(1, 100), between(1, 90)};
        int64_t ba = between(0, 2) ? 1 : between(1, 4), bb = between(0, 2) ? 1 : ba;
        if (ba == 1 && between(0, 3) == 0)
            bb = between(2, 4);
        check_matmul(ctx, contexts, i % 2, size, ba, bb, between(0, 3) == 0);
    }
}

/* ---- rules ---- */

/* ONNX's own example of QLinearMatMul. */
static void test_example(qsim_ctx *ctx) {
    uint8_t a[8 + 64] = {208, 236, 0, 238, 3, 214, 255, 29}, zp_a[1] = {113}, zp_b[1] = {114};
    uint8_t b[12 + 64] = {152, 51, 244, 60, 26, 255, 0, 127, 246, 127, 254, 247}, zp_y[1] = {118};
    float sa = 0.0066f, sb = 0.00705f, sy = 0.0107f;
    static const uint8_t expected[] = {168, 115, 255, 1, 66, 151};
    or_case c = {.domain = "", .op = "QLinearMatMul", .version = 10, .inputs = 8, .outputs = 1};
    c.in[0] = (or_tensor){QSIM_UINT8, 2, {2, 4}, a, false};
    c.in[1] = (or_tensor){QSIM_FLOAT, 0, {0}, &sa, true};
    c.in[2] = (or_tensor){QSIM_UINT8, 0, {0}, zp_a, true};
    c.in[3] = (or_tensor){QSIM_UINT8, 2, {4, 3}, b, true};
    c.in[4] = (or_tensor){QSIM_FLOAT, 0, {0}, &sb, true};
    c.in[5] = (or_tensor){QSIM_UINT8, 0, {0}, zp_b, true};
    c.in[6] = (or_tensor){QSIM_FLOAT, 0, {0}, &sy, true};
    c.in[7] = (or_tensor){QSIM_UINT8, 0, {0}, zp_y, true};
    or_result r = or_run(ctx, &c, false);
    CHECK_STR(r.error.message, "");
    for (int i = 0; i < 6 && !r.code; i++)
        CHECK_INT(((uint8_t *)r.out[0].data)[i], expected[i]);
    or_free(&r);
    sb = -1.0f;
    r = or_run(ctx, &c, true);
    CHECK_INT(r.code, QSIM_E_VALUE);
    sb = INFINITY;
    r = or_run(ctx, &c, true);
    CHECK_INT(r.code, QSIM_E_VALUE);
    sb = 0.01f;
    c.in[2].dtype = QSIM_INT8;
    r = or_run(ctx, &c, true);
    CHECK_INT(r.code, QSIM_E_DTYPE);
    c.in[2].dtype = QSIM_UINT8;
    c.in[3].dims[0] = 3;
    r = or_run(ctx, &c, true);
    CHECK_INT(r.code, QSIM_E_SHAPE);
}

/* Sums that may exceed int32 are refused by name; the largest that cannot is exact. */
static void test_overflow(qsim_ctx *ctx) {
    enum { K = 66000 };
    uint8_t *a = or_memory(K), zp[1] = {0};
    int8_t *b = or_memory(K), w_zp[1] = {0};
    float one = 1.0f, tiny = 1e-7f;
    memset(a, 255, K);
    memset(b, -128, K);
    or_case c = {.domain = "", .op = "QLinearMatMul", .version = 10, .inputs = 8, .outputs = 1};
    c.in[0] = (or_tensor){QSIM_UINT8, 2, {1, K}, a, false};
    c.in[1] = (or_tensor){QSIM_FLOAT, 0, {0}, &one, true};
    c.in[2] = (or_tensor){QSIM_UINT8, 0, {0}, zp, true};
    c.in[3] = (or_tensor){QSIM_INT8, 2, {K, 1}, b, true};
    c.in[4] = (or_tensor){QSIM_FLOAT, 0, {0}, &tiny, true};
    c.in[5] = (or_tensor){QSIM_INT8, 0, {0}, w_zp, true};
    c.in[6] = c.in[1];
    c.in[7] = c.in[2];
    or_result r = or_run(ctx, &c, false);
    CHECK_INT(r.code, QSIM_E_UNSUPPORTED);
    or_free(&r);
    memset(b, 127, K);
    r = or_run(ctx, &c, false);
    CHECK_INT(r.code, QSIM_OK); /* 66000 * 255 * 127 = 2137410000 < 2^31; times 1e-7: 213.7 */
    if (!r.code)
        CHECK_INT(((uint8_t *)r.out[0].data)[0], 214);
    or_free(&r);
    c.in[1].constant = false; /* the same, were weights 128 from their zero point, is too large */
    r = or_run(ctx, &c, false);
    CHECK_INT(r.code, QSIM_E_UNSUPPORTED);
    or_free(&r);
    /* Of 33,000 bytes 255 from their zero point sums fit, of 33,100 they do not. */
    for (int32_t k = 33000; k <= 33100; k += 100)
        for (int fixed = 0; fixed < 4; fixed++) {
            memset(b, 255, K);
            c.in[0].dims[1] = c.in[3].dims[0] = k;
            c.in[3].dtype = c.in[5].dtype = QSIM_UINT8;
            c.in[3].constant = fixed & 1;
            c.in[5].constant = fixed & 2;
            r = or_run(ctx, &c, false);
            CHECK_INT(r.code, k == 33000 ? QSIM_OK : QSIM_E_UNSUPPORTED);
            if (!r.code) /* 33000 * 255 * 255 * 1e-7 = 214.6 */
                CHECK_INT(((uint8_t *)r.out[0].data)[0], 215);
            or_free(&r);
        }
    free(a);
    free(b);
}

/* Biases at the ends of int32: sums exceed int32, the result is that of exact arithmetic. Bits 0, 1
 * and 2 of `given`: whether biases, the scale of x, and weights are inputs. */
static void test_extreme_bias(qsim_ctx *ctx, unsigned given) {
    uint8_t x[2 + 64] = {255, 0}, zp[1] = {0}, zp_y[1] = {200};
    int8_t w[2] = {-100, 100}, w_zp[1] = {0};
    int32_t bias[2] = {INT32_MIN, INT32_MAX};
    float one = 1.0f, tiny = 1e-8f;
    /* (-2147483648 - 25500) * 1e-8 = -21.475; 2147483647 * 1e-8 = 21.475; without the 25500 the
     * same to the step. */
    static const uint8_t expected[] = {179, 221, 179, 221};
    or_case c = {.domain = "qsim", .op = "QLinearMatMul", .version = 1, .inputs = 9, .outputs = 1};
    c.in[0] = (or_tensor){QSIM_UINT8, 2, {2, 1}, x, false};
    c.in[1] = (or_tensor){QSIM_FLOAT, 0, {0}, &one, true};
    c.in[2] = (or_tensor){QSIM_UINT8, 0, {0}, zp, true};
    c.in[3] = (or_tensor){QSIM_INT8, 2, {1, 2}, w, true};
    c.in[4] = (or_tensor){QSIM_FLOAT, 0, {0}, &tiny, true};
    c.in[5] = (or_tensor){QSIM_INT8, 0, {0}, w_zp, true};
    c.in[6] = c.in[1];
    c.in[7] = (or_tensor){QSIM_UINT8, 0, {0}, zp_y, true};
    c.in[8] = (or_tensor){QSIM_INT32, 1, {2}, bias, !(given & 1)};
    c.in[1].constant = !(given & 2);
    c.in[3].constant = !(given & 4);
    or_result r = or_run(ctx, &c, false);
    CHECK_STR(r.error.message, "");
    for (int i = 0; i < 4 && !r.code; i++)
        CHECK_INT(((uint8_t *)r.out[0].data)[i], expected[i]);
    or_free(&r);
}

static int32_t requantized(const qs_i8_rules *r, float m, int64_t sum) {
    double v = (double)((float)sum * m);
    v = fmin(fmax(v, (double)(r->lo - r->y_zp)), (double)(r->hi - r->y_zp));
    return (int32_t)rint(v) + r->y_zp;
}

/* A huge bias is replaced by a smaller one: no sum exceeds int32, every result stays the same. */
static void test_narrow(void) {
    int narrowed = 0;
    for (int round = 0; round < 2000; round++) {
        int8_t weights[8];
        float w_scale = ldexpf(1, (int)-between(10, 40)) * (float)between(100, 199);
        int32_t bias = (int32_t)(between(0, 1) ? INT32_MIN + between(0, 60000)
                                               : INT32_MAX - between(0, 60000)),
                made;
        int32_t y_zp = (int32_t)between(0, 255), lo = (int32_t)between(0, 100);
        qs_i8_rules r = {.x_scale = 1.0f,
                         .y_scale = 1.0f,
                         .w_scale = &w_scale,
                         .w_scales = 1,
                         .bias = &bias,
                         .x_zp = (int32_t)between(0, 255),
                         .y_zp = y_zp,
                         .lo = lo,
                         .hi = (int32_t)between(lo, 255)};
        qs_conv_i8_weights w = {.groups = 1, .n = 1, .kh = 1, .kw = 1, .c = 8};
        qk_source_i8 source = {
            .w = weights, .n = 1, .kh = 1, .kw = 1, .c = 8, .sn = 8, .sc = 1, .sy = 8, .sx = 8};
        qs_i8_list zp = {NULL, 0, true};
        int64_t least = 0, greatest = 0;
        for (int i = 0; i < 8; i++) {
            weights[i] = (int8_t)between(-128, 127);
            least += (weights[i] > 0 ? -r.x_zp : 255 - r.x_zp) * weights[i];
            greatest += (weights[i] > 0 ? 255 - r.x_zp : -r.x_zp) * weights[i];
        }
        int64_t all, above;
        const qs_i8_totals totals = {&all, &above};
        qs_i8_sum_up(&w, &source, 8, &zp, &totals);
        if (!qs_i8_narrow(&w, &totals, &r, &made))
            continue;
        narrowed += made != bias;
        CHECK(least + made >= INT32_MIN && greatest + made <= INT32_MAX);
        for (int k = 0; k <= 16; k++) {
            int64_t sum = least + (greatest - least) * k / 16;
            CHECK_INT(requantized(&r, w_scale, sum + made), requantized(&r, w_scale, sum + bias));
        }
    }
    CHECK(narrowed > 200);
}

/* ---- refusals ---- */

/* ConvInteger over uint8, each size 8 but the channels and the 3 x 3 kernel; what its rules say. */
static int rules_of(qsim_ctx *ctx, int32_t x_rank, int32_t w_rank, int64_t channels, or_attr attr) {
    static uint8_t any[1] = {0};
    or_case c = {.domain = "", .op = "ConvInteger", .version = 10, .inputs = 2, .outputs = 1};
    c.in[0] = (or_tensor){QSIM_UINT8, x_rank, {1, channels, 8, 8}, any, false};
    c.in[1] = (or_tensor){QSIM_UINT8, w_rank, {8, 3, 3, 3}, any, false};
    c.attrs[0] = attr;
    c.attr_count = 1;
    return or_run(ctx, &c, true).code;
}

static void test_refusals(qsim_ctx *ctx) {
    const or_attr plain = or_int("group", 1);
    CHECK_INT(rules_of(ctx, 4, 4, 3, plain), 0);
    CHECK_INT(rules_of(ctx, -1, 4, 3, plain), 0); /* known only when it runs */
    CHECK_INT(rules_of(ctx, 4, -1, 3, plain), 0);
    CHECK_INT(rules_of(ctx, 0, 4, 3, plain), QSIM_E_SHAPE);
    CHECK_INT(rules_of(ctx, 4, 0, 3, plain), QSIM_E_SHAPE);
    CHECK_INT(rules_of(ctx, 3, 4, 3, plain), QSIM_E_SHAPE);
    CHECK_INT(rules_of(ctx, 4, 4, 4, plain), QSIM_E_SHAPE);
    CHECK_INT(rules_of(ctx, 4, 4, 6, or_int("group", 2)), 0);
    CHECK_INT(rules_of(ctx, 4, 4, 4, or_int("group", 2)), QSIM_E_SHAPE);
    CHECK_INT(rules_of(ctx, 4, 4, 9, or_int("group", 3)), QSIM_E_VALUE); /* 8 filters */
    CHECK_INT(rules_of(ctx, 4, 4, 3, or_pair("strides", 0, 1)), QSIM_E_VALUE);
    CHECK_INT(rules_of(ctx, 4, 4, 3, or_pair("kernel_shape", 3, 4)), QSIM_E_SHAPE);
    const int64_t most = INT32_MAX; /* as of floats (test_conv.c) */
    CHECK_INT(rules_of(ctx, 4, 4, 3, or_pair("strides", most, most)), 0);
    CHECK_INT(rules_of(ctx, 4, 4, 3, or_pair("strides", 1, most + 1)), QSIM_E_VALUE);
    CHECK_INT(rules_of(ctx, 4, 4, 3, or_pair("dilations", most + 1, 1)), QSIM_E_VALUE);
    CHECK_INT(rules_of(ctx, 4, 4, 3, or_four("pads", 0, 0, most + 1, 0)), QSIM_E_VALUE);
    CHECK_INT(rules_of(ctx, 4, 4, 3, or_four("pads", most - 9, 0, 0, 0)), TEST_WIDE(0));
    CHECK_INT(rules_of(ctx, 4, 4, 3, or_four("pads", most, 0, most, 0)), QSIM_E_LIMIT);
}

int main(void) {
    or_seed = 20260711;
    test_narrow();
    qsim_ctx *ctx[2 * QS_ISA_COUNT];
    int contexts = or_contexts(ctx, 1);
    contexts += or_contexts(ctx + contexts, 3);
    test_example(ctx[0]);
    test_refusals(ctx[0]);
    test_overflow(ctx[0]);
    for (int i = 0; i < contexts; i++)
        for (unsigned given = 0; given < 8; given++)
            test_extreme_bias(ctx[i], given);
    test_convolutions(ctx, contexts);
    test_products(ctx, contexts);
    for (int i = 0; i < contexts; i++)
        qsim_ctx_free(ctx[i]);
    return test_done();
}
