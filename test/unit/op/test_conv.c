/* SPDX-License-Identifier: MIT */
/* Conv on floats against a plain loop: the same order of sums, so the same bits. */
#include "op_conv.h"

/* NHWC; products are added in the definition's order, padding as products with +0. */
static float conv_at(const conv_shape *s, const float *x, const float *w, const float *b, int64_t n,
                     int64_t oy, int64_t ox, int64_t o) {
    const int64_t cg = s->c / s->group, first = o / (s->m / s->group) * cg;
    float acc = 0.0f;
    for (int64_t ky = 0; ky < s->kh; ky++)
        for (int64_t kx = 0; kx < s->kw; kx++)
            for (int64_t i = 0; i < cg; i++) {
                int64_t y = oy * s->sh - s->top + ky * s->dh, z = ox * s->sw - s->left + kx * s->dw;
                bool inside = y >= 0 && y < s->h && z >= 0 && z < s->w;
                float v = inside ? x[((n * s->h + y) * s->w + z) * s->c + first + i] : 0.0f;
                acc = fmaf(v, w[((o * cg + i) * s->kh + ky) * s->kw + kx], acc);
            }
    acc += b ? b[o] + 0.0f : 0.0f; /* a sum of -0 gives +0 */
    acc = acc < s->lo ? s->lo : acc;
    return acc > s->hi ? s->hi : acc;
}

/* Finite constant weights skip padding; other weights cannot. */
static void check_shape(qsim_ctx **ctx, int contexts, const conv_shape *s) {
    const size_t x_floats = (size_t)(s->n * s->h * s->w * s->c);
    const size_t w_floats = (size_t)(s->m * s->c / s->group * s->kh * s->kw);
    float *x = random_floats(x_floats, 2), *w = random_floats(w_floats, 2);
    float *b = random_floats((size_t)s->m, 2);
    for (size_t i = 0; i < x_floats && s->values == UNDERFLOW; i++)
        x[i] = 1e-30f;
    for (size_t i = 0; i < w_floats && s->values == UNDERFLOW; i++)
        w[i] = i % 3 == 0 ? 1e-30f : -1e-30f;
    for (size_t i = 0; i < w_floats && s->values == INFINITE; i += 7)
        w[i] = INFINITY;
    const int64_t oh = (s->h + s->top + s->bottom - (s->kh - 1) * s->dh - 1) / s->sh + 1;
    const int64_t ow = (s->w + s->left + s->right - (s->kw - 1) * s->dw - 1) / s->sw + 1;
    float *expected = conv_expected(s, x, w, b, oh, ow, conv_at);
    for (int run = 0; run < 2 * contexts; run++) {
        or_case c = conv_case("Conv", s, x, w, b, run % 2 == 0);
        c.in[1].dims[0] = s->m;
        c.in[1].dims[1] = s->c / s->group;
        conv_check(ctx[run / 2], &c, s, oh, ow, expected);
    }
    free(expected);
    free(x);
    free(w);
    free(b);
}

static void random_shapes(qsim_ctx **ctx, int contexts) {
    for (int i = 0; i < 120; i++) {
        conv_shape s = {.n = between(1, 3), .h = between(1, 14), .w = between(1, 14)};
        random_window(5, &s.kh, &s.kw);
        s.dh = i % 3 == 0 ? between(1, 3) : 1;
        s.dw = i % 3 == 1 ? between(1, 3) : 1;
        s.sh = between(1, 3);
        s.sw = between(1, 3);
        bool pads = i % 4 != 0;
        s.top = pads ? random_pad(3, s.kh, s.dh) : 0;
        s.left = pads ? random_pad(3, s.kw, s.dw) : 0;
        s.bottom = pads ? random_pad(3, s.kh, s.dh) : 0;
        s.right = pads ? random_pad(3, s.kw, s.dw) : 0;
        while (s.h + s.top + s.bottom <= (s.kh - 1) * s.dh)
            s.h++;
        while (s.w + s.left + s.right <= (s.kw - 1) * s.dw)
            s.w++;
        s.group = i % 5 == 0 ? between(2, 4) : 1;
        s.c = s.group * between(1, i % 8 == 0 ? 70 : 9);
        s.m = s.group * between(1, i % 7 == 0 ? 150 : 40);
        if (i % 6 == 1) { /* depthwise, sometimes with several filters for a channel */
            s.group = s.c = between(2, i % 4 == 1 ? 120 : 40);
            s.m = s.c * (between(0, 3) ? 1 : between(2, 3));
        }
        s.bias = i % 2 == 0;
        s.lo = i % 3 == 0 ? 0.0f : -INFINITY;
        s.hi = i % 9 == 0 ? 1.5f : INFINITY;
        check_shape(ctx, contexts, &s);
    }
}

/* Large enough to be cut for threads: 1x1, bordered 3x3, depthwise, few pixels of many columns. */
static void large_shapes(qsim_ctx **ctx, int contexts) {
    const conv_shape list[] = {
        {1, 24, 24, 48, 80, 1, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 0.0f, 6.0f, true, USUAL, 0, 0},
        {2, 30, 31, 40, 70, 1,         1,        1,    1,     1, 1,
         1, 0,  0,  0,  0,  -INFINITY, INFINITY, true, USUAL, 0, 0},
        {1, 4, 4, 256, 300, 1, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, 0.0f, INFINITY, false, USUAL, 0, 0},
        {1, 112, 112, 33, 33, 33,        3,        3,    1,     1, 1,
         1, 1,   1,   1,  1,  -INFINITY, INFINITY, true, USUAL, 0, 0},
        {1, 9, 30, 40, 40, 40,        3,        3,    2,     1, 1,
         1, 1, 1,  1,  1,  -INFINITY, INFINITY, true, USUAL, 0, 0},
        {2, 8, 31, 20, 20, 20, 3, 3, 1, 2, 1, 1, 1, 1, 0, 1, 0.0f, INFINITY, true, USUAL, 0, 0},
        {1, 5, 6, 3, 4, 1, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, false, UNDERFLOW, 0, 0},
        {1, 5, 6, 4, 4, 4, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, -1, 1, false, UNDERFLOW, 0, 0},
        {1, 5, 6, 3, 4, 1,         3,        3,     1,        1, 1,
         1, 1, 1, 1, 1, -INFINITY, INFINITY, false, INFINITE, 0, 0},
        {1, 5, 6, 4, 4, 4, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, -INFINITY, INFINITY, true, INFINITE, 0, 0},
        {1, 3, 9, 8, 8, 1, 2, 17, 1, 1, 1, 1, 0, 8, 0, 8, -INFINITY, INFINITY, true, USUAL, 0, 0},
    };
    for (size_t i = 0; i < QS_COUNT(list); i++)
        check_shape(ctx, contexts, &list[i]);
}

/* Weights over half a megabyte run tap by tap; no tap, one, some or all are inside the image. */
static void far_weights(qsim_ctx **ctx, int contexts) {
    const conv_shape list[] = {
        {2, 6, 7, 64, 256, 1, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 0.0f, INFINITY, true, USUAL, 0, 0},
        {1, 7, 7, 130, 128, 1,         3,        3,     2,     2, 1,
         1, 1, 1, 1,   1,   -INFINITY, INFINITY, false, USUAL, 0, 0},
        {1, 5, 9, 64, 128, 1, 5, 5, 1, 2, 1, 1, 2, 2, 2, 2, -INFINITY, 3.0f, true, USUAL, 0, 0},
        {1, 3, 3, 256, 64, 1, 3, 3, 1, 1, 3, 3, 3, 3, 3, 3, -INFINITY, INFINITY, true, USUAL, 0, 0},
        {1, 2, 2, 256, 64, 1, 3, 3, 1, 1, 1, 1, 3, 3, 3, 3, -INFINITY, INFINITY, true, USUAL, 0, 0},
        {1, 4, 4, 64, 256, 1,         3,        3,    1,        1, 1,
         1, 1, 1, 1,  1,   -INFINITY, INFINITY, true, INFINITE, 0, 0},
    };
    for (size_t i = 0; i < QS_COUNT(list); i++)
        check_shape(ctx, contexts, &list[i]);
    for (int i = 0; i < 6; i++) { /* any window, and padding that some taps never leave */
        conv_shape s = {.n = 1, .h = between(1, 4), .w = between(1, 4), .group = 1};
        random_window(5, &s.kh, &s.kw);
        s.dh = between(1, 2);
        s.dw = between(1, 2);
        s.sh = between(1, 2);
        s.sw = between(1, 2);
        s.top = random_pad(s.kh, s.kh, s.dh);
        s.left = random_pad(s.kw, s.kw, s.dw);
        s.bottom = (s.kh - 1) * s.dh;
        s.right = (s.kw - 1) * s.dw;
        s.c = between(64, 80);
        s.m = 64 * ((131072 / (s.c * s.kh * s.kw) + 64) / 64);
        s.hi = INFINITY;
        check_shape(ctx, contexts, &s);
    }
}

static void check_size(qsim_ctx *ctx, or_attr attr, int64_t h, int64_t expected) {
    float x[1] = {0};
    or_case c = {.domain = "", .op = "Conv", .version = 13, .inputs = 2, .outputs = 1};
    c.in[0] = (or_tensor){QSIM_FLOAT, 4, {-1, 3, h, h}, x, false};
    c.in[1] = (or_tensor){QSIM_FLOAT, 4, {8, 3, 3, 3}, x, false};
    c.attrs[0] = attr;
    c.attrs[1] = or_pair("strides", 2, 2);
    c.attr_count = 2;
    or_result r = or_run(ctx, &c, true);
    CHECK_INT(r.code, expected > 1000 ? TEST_WIDE(QSIM_OK) : QSIM_OK);
    if (r.code) {
        or_free(&r);
        return;
    }
    CHECK_INT(r.out[0].rank, 4);
    CHECK_INT(r.out[0].dims[0], -1);
    CHECK_INT(r.out[0].dims[1], 8);
    CHECK_INT(r.out[0].dims[2], expected);
    or_free(&r);
}

static void rules(qsim_ctx *ctx) {
    check_size(ctx, or_string("auto_pad", "SAME_UPPER"), 7, 4);
    check_size(ctx, or_string("auto_pad", "SAME_LOWER"), 8, 4);
    check_size(ctx, or_string("auto_pad", "VALID"), 8, 3);
    check_size(ctx, or_string("auto_pad", "NOTSET"), 8, 3);
    check_size(ctx, or_four("pads", INT32_MAX, 0, 0, 0), 8, 1073741827);
    check_size(ctx, or_four("pads", 1, 1, 1, 1), 8, 4);
    check_size(ctx, or_pair("kernel_shape", 3, 3), -1, -1);
}

#define LIMIT ((int64_t)INT32_MAX) /* of a window's numbers, as in integers (test_int8_ops.c) */

static void refuses(qsim_ctx *ctx) {
    float x[1] = {0};
    const struct {
        or_attr attr;
        int64_t channels, size;
        int code;
        const char *says;
    } list[] = {
        {or_int("group", 2), 3, 8, QSIM_E_SHAPE, ""},
        {or_int("group", 3), 9, 8, QSIM_E_VALUE, ""},
        {or_int("group", 0), 3, 8, QSIM_E_VALUE, ""},
        {or_int("group", 1), 4, 8, QSIM_E_SHAPE, ""},
        {or_int("group", 1), 3, 2, QSIM_E_SHAPE, ""},
        {or_pair("strides", 0, 1), 3, 8, QSIM_E_VALUE, ""},
        {or_pair("dilations", 1, -1), 3, 8, QSIM_E_VALUE, ""},
        {or_pair("dilations", INT64_MAX, 1), 3, 8, QSIM_E_VALUE, ""},
        {or_pair("dilations", LIMIT + 1, 1), 3, 8, QSIM_E_VALUE, ""},
        {or_pair("strides", 1, LIMIT + 1), 3, 8, QSIM_E_VALUE, ""},
        {or_four("pads", 0, 0, LIMIT + 1, 0), 3, 8, QSIM_E_VALUE, ""},
        {or_four("pads", LIMIT, 0, LIMIT, 0), 3, 8, QSIM_E_LIMIT, ""},
        {or_pair("kernel_shape", 3, 4), 3, 8, QSIM_E_SHAPE, ""},
        {or_four("pads", 0, 0, 0, -1), 3, 8, QSIM_E_VALUE, ""},
        {or_pair("pads", 0, 0), 3, 8, QSIM_E_SHAPE, ""},
        {or_string("auto_pad", "SAME"), 3, 8, QSIM_E_VALUE,
         "auto_pad is 'SAME', none of NOTSET|SAME_UPPER|SAME_LOWER|VALID"},
        {or_int("channels_last", 1), 3, 8, QSIM_E_UNSUPPORTED, ""},
        {or_float("lo", 0), 3, 8, QSIM_E_UNSUPPORTED, ""},
    };
    for (size_t i = 0; i < QS_COUNT(list); i++) {
        or_case c = {.domain = "", .op = "Conv", .version = 13, .inputs = 2, .outputs = 1};
        c.in[0] = (or_tensor){QSIM_FLOAT, 4, {1, list[i].channels, list[i].size, 8}, x, false};
        c.in[1] = (or_tensor){QSIM_FLOAT, 4, {8, 3, 3, 3}, x, false};
        c.attrs[0] = list[i].attr;
        c.attr_count = 1;
        or_result r = or_run(ctx, &c, true);
        CHECK_INT(r.code, list[i].code);
        CHECK(strstr(r.error.message, "Conv") != NULL);
        CHECK(strstr(r.error.message, list[i].says) != NULL);
    }
}

int main(void) {
    or_seed = 20240917;
    qsim_ctx *one[QS_ISA_COUNT], *three[QS_ISA_COUNT];
    int n = or_contexts(one, 1), n3 = or_contexts(three, 3);
    CHECK(n >= 1);
    random_shapes(one, n);
    large_shapes(one, n);
    large_shapes(three, n3);
    far_weights(one, n);
    far_weights(three, n3);
    rules(one[0]);
    refuses(one[0]);
    for (int i = 0; i < n; i++) {
        qsim_ctx_free(one[i]);
        qsim_ctx_free(three[i]);
    }
    return test_done();
}
