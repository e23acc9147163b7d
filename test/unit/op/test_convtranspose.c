/* SPDX-License-Identifier: MIT */
/* ConvTranspose on floats against plain loops: the same order of sums, so the same bits. */
#include "op_conv.h"

#include "op/nn/overlap.h"

/* The input position under tap k of output position o; -1: none. */
static int64_t under(int64_t o, int64_t before, int64_t k, int64_t dilation, int64_t stride,
                     int64_t size) {
    const int64_t at = o + before - k * dilation;
    return at >= 0 && at % stride == 0 && at / stride < size ? at / stride : -1;
}

/* Whether windows are computed and then added, tap by tap. */
static bool overlaps(const conv_shape *s) {
    const bool merged = s->kw == s->sw && s->dw == 1 && !s->left && !s->right && !s->ew;
    const qs_transposed g = {.group = s->group, .merged = s->group == 1 && merged};
    qs_dim dims[4] = {{s->c, NULL}, {s->m / s->group, NULL}, {s->kh, NULL}, {s->kw, NULL}};
    const qs_value w = {.rank = 4, .dims = dims};
    return qs_overlap_pays(&g, &w);
}

/*
 * NHWC in and out, weights [C, M / group, kh, kw]; taps in order, then channels: one sum, or with
 * `overlaps` a sum of each tap's.
 */
static float output_at(const conv_shape *s, const float *x, const float *w, const float *b,
                       int64_t n, int64_t oy, int64_t ox, int64_t o) {
    const int64_t cg = s->c / s->group, mg = s->m / s->group, first = o / mg * cg;
    const bool split = overlaps(s);
    float acc = 0.0f, total = 0.0f;
    for (int64_t ky = 0; ky < s->kh; ky++)
        for (int64_t kx = 0; kx < s->kw; kx++) {
            const int64_t y = under(oy, s->top, ky, s->dh, s->sh, s->h);
            const int64_t z = under(ox, s->left, kx, s->dw, s->sw, s->w);
            for (int64_t i = first; i < first + cg && y >= 0 && z >= 0; i++)
                acc = fmaf(x[((n * s->h + y) * s->w + z) * s->c + i],
                           w[((i * mg + o % mg) * s->kh + ky) * s->kw + kx], acc);
            total += acc;
            acc = split ? 0.0f : acc;
        }
    acc = split ? total : acc;
    if (b)
        acc += b[o];
    acc = acc < s->lo ? s->lo : acc;
    return acc > s->hi ? s->hi : acc;
}

static void check_shape(qsim_ctx **ctx, int contexts, const conv_shape *s) {
    float *x = random_floats((size_t)(s->n * s->h * s->w * s->c), 2);
    float *w = random_floats((size_t)(s->c * s->m / s->group * s->kh * s->kw), 2);
    float *b = random_floats((size_t)s->m, 2);
    const int64_t oh = (s->h - 1) * s->sh + (s->kh - 1) * s->dh + 1 + s->eh - s->top - s->bottom;
    const int64_t ow = (s->w - 1) * s->sw + (s->kw - 1) * s->dw + 1 + s->ew - s->left - s->right;
    float *expected = conv_expected(s, x, w, b, oh, ow, output_at);
    for (int i = 0; i < contexts; i++) {
        or_case c = conv_case("ConvTranspose", s, x, w, b, i % 2 == 0);
        c.in[1].dims[0] = s->c;
        c.in[1].dims[1] = s->m / s->group;
        c.attrs[c.attr_count++] = or_pair("output_padding", s->eh, s->ew);
        conv_check(ctx[i], &c, s, oh, ow, expected);
    }
    free(expected);
    free(x);
    free(w);
    free(b);
}

static void random_shapes(qsim_ctx **ctx, int contexts) {
    for (int i = 0; i < 150; i++) {
        conv_shape s = {.n = between(1, 3), .h = between(1, 9), .w = between(1, 9)};
        random_window(5, &s.kh, &s.kw);
        s.sh = between(1, 4);
        s.sw = i % 4 == 3 ? s.kw : between(1, 4);
        s.dh = i % 3 == 0 ? between(1, 3) : 1;
        s.dw = i % 3 == 1 ? between(1, 3) : 1;
        const int64_t high = (s.h - 1) * s.sh + (s.kh - 1) * s.dh;
        const int64_t wide = (s.w - 1) * s.sw + (s.kw - 1) * s.dw;
        bool pads = i % 4 < 2;
        const int64_t most = between(0, 3) ? 3 : 40; /* sometimes all but one row or column */
        s.top = pads ? between(0, high < most ? high : most) : 0;
        s.left = pads ? between(0, wide < most ? wide : most) : 0;
        s.bottom = pads ? between(0, high - s.top < most ? high - s.top : most) : 0;
        s.right = pads ? between(0, wide - s.left < most ? wide - s.left : most) : 0;
        s.eh = i % 5 == 0 ? between(0, 4) : 0;
        s.ew = i % 5 == 1 ? between(0, 4) : 0;
        s.group = i % 5 == 2 ? between(2, 4) : 1;
        s.c = s.group * between(1, 20);
        s.m = s.group * between(1, i % 7 == 0 ? 90 : 20);
        s.bias = i % 2 == 0;
        s.lo = i % 3 == 0 ? 0.0f : -INFINITY;
        s.hi = i % 9 == 0 ? 1.5f : INFINITY;
        check_shape(ctx, contexts, &s);
    }
}

/* Few channels: windows that overlap. Lines of images, and rows that are made in pieces. */
static void few_channels(qsim_ctx **ctx, int contexts) {
    int seen = 0;
    for (int i = 0; i < 60; i++) {
        conv_shape s = {.n = between(1, 3), .h = between(1, 9), .w = between(1, 9), .group = 1};
        s.kh = i % 4 == 0 ? 1 : between(2, 9);
        s.kw = between(2, 9);
        s.sh = between(1, 4);
        s.sw = between(1, 4);
        s.dh = i % 5 == 0 ? between(1, 3) : 1;
        s.dw = i % 5 == 1 ? between(1, 3) : 1;
        s.w = i % 10 == 0 ? between(1000, 3000) : s.w;
        s.h = i % 10 == 0 ? 2 : s.h;
        s.top = between(0, s.kh - 1);
        s.left = between(0, s.kw - 1);
        s.bottom = between(0, s.kh - 1 - s.top);
        s.right = between(0, s.kw - 1 - s.left);
        s.eh = i % 5 == 2 ? between(0, 4) : 0;
        s.ew = i % 5 == 3 ? between(0, 4) : 0;
        s.c = between(8, 20);
        s.m = between(1, 4);
        s.bias = i % 2 == 0;
        s.lo = i % 3 == 0 ? 0.0f : -INFINITY;
        s.hi = i % 9 == 0 ? 1.5f : INFINITY;
        seen += overlaps(&s);
        check_shape(ctx, contexts, &s);
    }
    CHECK(seen > 30 && seen < 60);
}

/* Depthwise, with more channels than a vector has lanes. */
static void depthwise(qsim_ctx **ctx, int contexts) {
    for (int i = 0; i < 40; i++) {
        conv_shape s = {.n = between(1, 2), .h = between(1, 9), .w = between(1, 9)};
        random_window(5, &s.kh, &s.kw);
        s.sh = between(1, 4);
        s.sw = between(1, 4);
        s.dh = i % 3 == 0 ? between(1, 3) : 1;
        s.dw = i % 3 == 1 ? between(1, 3) : 1;
        s.top = i % 2 ? between(0, (s.kh - 1) * s.dh) : 0;
        s.left = i % 2 ? between(0, (s.kw - 1) * s.dw) : 0;
        s.c = s.m = s.group = between(2, 70);
        s.bias = i % 4 < 2;
        s.lo = i % 3 == 0 ? 0.0f : -INFINITY;
        s.hi = i % 9 == 0 ? 1.5f : INFINITY;
        check_shape(ctx, contexts, &s);
    }
}

/* Large enough to be cut for threads. */
static void large_shapes(qsim_ctx **ctx, int contexts) {
    const conv_shape list[] = {
        {1, 40, 41, 24, 24, 1, 2, 2, 2, 2, 1, 1, 0, 0, 0, 0, 0.0f, INFINITY, true, USUAL, 0, 0},
        {2, 30, 20, 32, 40, 1, 4, 4, 2, 2, 1, 1, 1, 1, 1, 1, 0.0f, INFINITY, true, USUAL, 0, 0},
        {2, 40, 41, 32, 1, 1, 5, 5, 2, 2, 1, 1, 2, 2, 2, 2, 0.0f, INFINITY, true, USUAL, 0, 0},
        {2, 40, 41, 64, 64, 64, 4, 4, 2, 2, 1, 1, 1, 1, 1, 1, 0.0f, INFINITY, true, USUAL, 0, 0},
    };
    for (size_t i = 0; i < QS_COUNT(list); i++)
        check_shape(ctx, contexts, &list[i]);
}

/* ---- sizes and refusals ---- */

static int64_t width(const char *attr, int64_t value, const char *auto_pad, int64_t stride) {
    qsim_ctx *ctx = NULL;
    CHECK_INT(qsim_ctx_create(NULL, &ctx, NULL), 0);
    or_case c = {.domain = "", .op = "ConvTranspose", .version = 11, .inputs = 2, .outputs = 1};
    float x = 0;
    c.in[0] = (or_tensor){QSIM_FLOAT, 3, {1, 2, 5}, &x, false};
    c.in[1] = (or_tensor){QSIM_FLOAT, 3, {2, 3, 3}, &x, false};
    c.attrs[0] = (or_attr){.name = "strides", .type = QSIM_ATTR_INTS, .ints = {stride}, .count = 1};
    c.attrs[1] = or_string("auto_pad", auto_pad);
    c.attr_count = 2;
    if (attr) {
        c.attrs[2] = (or_attr){.name = attr, .type = QSIM_ATTR_INTS, .ints = {value}, .count = 1};
        c.attr_count = 3;
    }
    or_result r = or_run(ctx, &c, true);
    qsim_ctx_free(ctx);
    return r.code ? r.code : r.out[0].dims[2];
}

static void sizes(void) {
    CHECK_INT(width(NULL, 0, "NOTSET", 2), 11);
    CHECK_INT(width("output_padding", 1, "NOTSET", 2), 12);
    CHECK_INT(width("output_shape", 10, "NOTSET", 2), 10);
    CHECK_INT(width("output_shape", 40, "SAME_UPPER", 2), 40);
    CHECK_INT(width(NULL, 0, "SAME_UPPER", 2), 10);
    CHECK_INT(width(NULL, 0, "SAME_LOWER", 4), 20);
    CHECK_INT(width(NULL, 0, "VALID", 2), 11);
    CHECK_INT(width(NULL, 0, "SAME", 2), QSIM_E_VALUE);
    CHECK_INT(width("kernel_shape", 2, "NOTSET", 2), QSIM_E_SHAPE);
    CHECK_INT(width("output_padding", -1, "NOTSET", 2), QSIM_E_VALUE);
    CHECK_INT(width("dilations", 0, "NOTSET", 2), QSIM_E_VALUE);
    CHECK_INT(width(NULL, 0, "NOTSET", INT64_MAX), QSIM_E_VALUE);
    const int64_t most = INT32_MAX;
    CHECK_INT(width(NULL, 0, "NOTSET", most + 1), QSIM_E_VALUE);
    CHECK(SIZE_MAX == UINT32_MAX || width(NULL, 0, "NOTSET", most) == 4 * most + 3);
    CHECK_INT(width("dilations", most + 1, "NOTSET", 1), QSIM_E_VALUE);
}

int main(void) {
    or_seed = 20250311;
    qsim_ctx *ctx[QS_ISA_COUNT];
    const int contexts = or_contexts(ctx, 3);
    random_shapes(ctx, contexts);
    few_channels(ctx, contexts);
    depthwise(ctx, contexts);
    large_shapes(ctx, contexts);
    sizes();
    for (int i = 0; i < contexts; i++)
        qsim_ctx_free(ctx[i]);
    return test_done();
}
