/* SPDX-License-Identifier: MIT */
/* Operators with weights, windows and sums, and the usual blocks of networks. */
#include "random_graph.h"

#include <math.h>
#include <string.h>

#define MAX_WEIGHTS 60000

static void ints(rg *g, const char *name, size_t count, const int64_t *v) {
    qsim_builder_attr_ints(g->b, name, v, count);
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* ---- convolutions ---- */

#define SPACE 3 /* axes of space at most */

typedef struct window {
    int64_t kernel[SPACE], stride[SPACE], dilation[SPACE], before[SPACE], after[SPACE];
} window;

/* Size of axis `i` after a window; 0: none, or a size that ONNX Runtime computes otherwise. */
static int64_t behind(const window *w, int i, int64_t size, bool ceil_mode) {
    int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
    int64_t last = size + w->before[i] + w->after[i] - reach;
    if (last < 0)
        return 0;
    int64_t n = (last + (ceil_mode ? w->stride[i] - 1 : 0)) / w->stride[i] + 1;
    return (n - 1) * w->stride[i] >= size + w->before[i] ? 0 : n;
}

/* The sizes of x's axes of space after a window; false where it does not fit. */
static bool sizes_behind(const window *w, const rg_tensor *x, bool ceil_mode, int64_t *sizes) {
    bool fits = true;
    for (int i = 0; i < x->rank - 2 && fits; i++) {
        sizes[i] = behind(w, i, x->dims[2 + i], ceil_mode);
        fits = sizes[i] > 0;
    }
    return fits;
}

static void attributes(rg *g, const window *w, int axes, bool kernel_shape) {
    int64_t pads[2 * SPACE];
    for (int i = 0; i < axes; i++) {
        pads[i] = w->before[i];
        pads[axes + i] = w->after[i];
    }
    if (kernel_shape || rg_chance(g, 70))
        ints(g, "kernel_shape", (size_t)axes, w->kernel);
    ints(g, "strides", (size_t)axes, w->stride);
    ints(g, "pads", 2 * (size_t)axes, pads);
}

/* Convolves with this window; -1 where it does not fit. */
static int32_t conv_window(rg *g, int32_t x, int64_t channels, int64_t group, const window *w) {
    const rg_tensor *t = &g->t[x];
    const int axes = t->rank - 2;
    int64_t dims[2 + SPACE] = {t->dims[0], channels};
    int64_t weights[2 + SPACE] = {channels, t->dims[1] / group};
    size_t count = (size_t)(channels * weights[1]);
    bool dilated = false;
    if (!sizes_behind(w, t, false, dims + 2))
        return -1;
    for (int i = 0; i < axes; i++) {
        weights[2 + i] = w->kernel[i];
        count *= (size_t)w->kernel[i];
        dilated |= w->dilation[i] > 1;
    }
    if (count > MAX_WEIGHTS || channels > 512)
        return -1;
    float size = 1.7f / sqrtf((float)count / (float)channels);
    const int32_t rank = t->rank;
    const char *name = rg_weight(g, rank, weights, size, 0), *reads;
    if (rg_chance(g, 75)) {
        const char *bias = rg_bias(g, channels, x);
        reads = rg_text(g, "%s,%s,%s", rg_in(g, x), name, bias);
    } else {
        reads = rg_text(g, "%s,%s", rg_in(g, x), name);
    }
    rg_node(g, "Conv", reads);
    attributes(g, w, axes, false);
    if (dilated)
        ints(g, "dilations", (size_t)axes, w->dilation);
    qsim_builder_attr_int(g->b, "group", group);
    return rg_made(g, x, rank, dims);
}

int32_t rg_conv(rg *g, int32_t x, int64_t channels, int64_t kernel, int64_t group, int64_t stride) {
    int64_t p = kernel / 2;
    const window w = {{kernel, kernel}, {stride, stride}, {1, 1}, {p, p}, {p, p}};
    return conv_window(g, x, channels, group, &w);
}

static int64_t some_channels(rg *g) {
    return RG_ONE_OF(g, 1, 3, 7, 8, 16, 17, 24, 32, 33, 48, 64);
}

static bool conv(rg *g) {
    int32_t x = rg_pick(g, rg_chance(g, 88) ? 4 : 3);
    if (x < 0)
        return false;
    const int64_t in = g->t[x].dims[1];
    int64_t group = 1, channels = some_channels(g);
    window w = {.stride = {1, 1}, .dilation = {1, 1}};
    w.kernel[0] = RG_ONE_OF(g, 1, 1, 3, 3, 3, 5, 2, 7, 9);
    w.kernel[1] = rg_chance(g, 85) ? w.kernel[0] : RG_ONE_OF(g, 1, 1, 3, 5, 7, 9);
    if (rg_chance(g, 30))
        w.stride[0] = w.stride[1] = rg_chance(g, 85) ? 2 : 3;
    if (rg_chance(g, 5))
        w.stride[1] = RG_ONE_OF(g, 1, 2, 3);
    if (rg_chance(g, 10))
        w.dilation[0] = w.dilation[1] = 2;
    for (int i = 0; i < 2; i++)
        w.before[i] = w.after[i] = (w.kernel[i] - 1) * w.dilation[i] / 2;
    if (rg_chance(g, 15))
        for (int i = 0; i < 4; i++)
            (i < 2 ? w.before : w.after)[i & 1] = rg_draw(g, 3);
    uint32_t kind = rg_draw(g, 10);
    if (kind < 4) { /* depthwise, sometimes with a multiplier */
        group = in;
        channels = in * (rg_chance(g, 85) ? 1 : 2);
    } else if (kind == 4) {
        group = in % 4 == 0 ? 4 : in % 3 == 0 ? 3 : 1;
        channels = group * RG_ONE_OF(g, 1, 2, 5, 8, 16);
    }
    return conv_window(g, x, channels, group, &w) >= 0;
}

static bool conv_transpose(rg *g) {
    int32_t x = rg_pick(g, 4);
    if (x < 0 || g->t[x].dims[2] * g->t[x].dims[3] > 200)
        return false;
    const rg_tensor *t = &g->t[x];
    const int64_t kernel = RG_ONE_OF(g, 2, 3, 4), stride = RG_ONE_OF(g, 1, 2, 2, 2);
    const int64_t pad = kernel > 2 ? rg_draw(g, 2) : 0, more = stride > 1 ? rg_draw(g, 2) : 0;
    const int64_t group = t->dims[1] % 4 == 0 && rg_chance(g, 25) ? RG_ONE_OF(g, 2, 4) : 1;
    const int64_t channels = group * RG_ONE_OF(g, 1, 3, 8, 17);
    const int64_t weights[] = {t->dims[1], channels / group, kernel, kernel};
    const int64_t dims[] = {t->dims[0], channels,
                            (t->dims[2] - 1) * stride - 2 * pad + kernel + more,
                            (t->dims[3] - 1) * stride - 2 * pad + kernel + more};
    if (dims[2] < 1 || dims[3] < 1 || weights[0] * weights[1] * kernel * kernel > MAX_WEIGHTS)
        return false;
    const float size = 1.5f / sqrtf((float)(t->dims[1] / group) * 2.0f);
    const char *w = rg_weight(g, 4, weights, size, 1);
    const char *bias = "";
    if (rg_chance(g, 60)) {
        if (group > 1)
            g->weight_count = 0; /* scales count channels of a group */
        bias = rg_bias(g, channels, x);
    }
    rg_node(g, "ConvTranspose", rg_text(g, "%s,%s%s%s", rg_in(g, x), w, *bias ? "," : "", bias));
    ints(g, "strides", 2, (int64_t[]){stride, stride});
    ints(g, "pads", 4, (int64_t[]){pad, pad, pad, pad});
    ints(g, "output_padding", 2, (int64_t[]){more, more});
    qsim_builder_attr_int(g->b, "group", group);
    rg_made(g, x, 4, dims);
    return true;
}

/* Two convolutions with the same weights on two maps, as heads of detectors have them. */
static bool shared_conv(rg *g) {
    int32_t x = rg_pick(g, 4), y = -1;
    for (int32_t i = g->count - 1; i >= 0 && x >= 0 && y < 0; i--)
        if (g->t[i].rank == 4 && g->t[i].dims[1] == g->t[x].dims[1] && (i != x || rg_chance(g, 30)))
            y = i;
    if (y < 0 || g->t[x].dims[1] > 33)
        return false;
    const int64_t in = g->t[x].dims[1], channels = some_channels(g);
    const int64_t weights[] = {channels, in, 3, 3};
    const char *w = rg_weight(g, 4, weights, 0.6f / sqrtf((float)in), 0);
    const char *bias = rg_bias(g, channels, x);
    const int32_t both[] = {x, y};
    for (int i = 0; i < 2; i++) {
        const rg_tensor *t = &g->t[both[i]];
        rg_node(g, "Conv", rg_text(g, "%s,%s,%s", rg_in(g, both[i]), w, bias));
        ints(g, "pads", 4, (int64_t[]){1, 1, 1, 1});
        rg_made(g, both[i], 4, (int64_t[]){t->dims[0], channels, t->dims[2], t->dims[3]});
    }
    return true;
}

/* ---- products ---- */

static int32_t gemm(rg *g, int32_t x, int64_t n) {
    const rg_tensor *t = &g->t[x];
    const int64_t k = t->dims[1];
    const bool transposed = rg_chance(g, 60), plain = rg_chance(g, 80);
    if (k * n > MAX_WEIGHTS)
        return -1;
    const int64_t weights[] = {transposed ? n : k, transposed ? k : n};
    const char *w = rg_weight(g, 2, weights, 1.7f / sqrtf((float)k), transposed ? 0 : 1);
    const char *bias = "";
    if (rg_chance(g, 80)) {
        if (!plain)
            g->weight_count = 0;
        bias = rg_bias(g, n, x);
    }
    rg_node(g, "Gemm", rg_text(g, "%s,%s%s%s", rg_in(g, x), w, *bias ? "," : "", bias));
    qsim_builder_attr_int(g->b, "transB", transposed);
    if (!plain) {
        qsim_builder_attr_float(g->b, "alpha", 0.5f);
        if (*bias)
            qsim_builder_attr_float(g->b, "beta", 2);
    }
    return rg_made(g, x, 2, (int64_t[]){g->t[x].dims[0], n});
}

static int32_t matmul(rg *g, int32_t x, int64_t n) {
    const rg_tensor *t = &g->t[x];
    int64_t dims[5];
    const int32_t rank = t->rank;
    memcpy(dims, t->dims, sizeof(dims));
    const int64_t weights[] = {dims[rank - 1], n};
    if (weights[0] * n > MAX_WEIGHTS)
        return -1;
    dims[rank - 1] = n;
    const char *w = rg_weight(g, 2, weights, 1.7f / sqrtf((float)weights[0]), 1);
    rg_node(g, "MatMul", rg_text(g, "%s,%s", rg_in(g, x), w));
    int32_t y = rg_made(g, x, rank, dims);
    if (rg_chance(g, 50)) {
        const char *bias = rg_floats(g, 1, &n, 0.3f, 0);
        rg_node(g, "Add", rg_text(g, "%s,%s", rg_in(g, y), bias));
        y = rg_made(g, y, rank, dims);
    }
    return y;
}

static bool product(rg *g) {
    int32_t x = rg_pick(g, rg_chance(g, 60) ? 2 : rg_chance(g, 70) ? 3 : 4);
    if (x < 0)
        return false;
    const int64_t n = RG_ONE_OF(g, 1, 3, 10, 16, 17, 33, 64);
    if (g->t[x].rank == 2 && rg_chance(g, 70))
        return gemm(g, x, n) >= 0;
    return matmul(g, x, n) >= 0;
}

static int32_t softmax(rg *g, int32_t x) {
    rg_node(g, "Softmax", rg_in(g, x));
    qsim_builder_attr_int(g->b, "axis", rg_chance(g, 80) || g->t[x].rank < 3 ? -1 : 1);
    return rg_made(g, x, g->t[x].rank, g->t[x].dims);
}

/* softmax(x x^T) x over [N,T,D], the second x transposed. */
static bool attention(rg *g) {
    int32_t x = rg_pick(g, 3);
    if (x < 0 || g->t[x].power > 3 || g->t[x].dims[1] > 64)
        return false;
    const int64_t n = g->t[x].dims[0], time = g->t[x].dims[1], deep = g->t[x].dims[2];
    int32_t q = matmul(g, x, deep);
    if (q < 0)
        return false;
    rg_node(g, "Transpose", rg_in(g, x));
    ints(g, "perm", 3, (int64_t[]){0, 2, 1});
    int32_t transposed = rg_made(g, x, 3, (int64_t[]){n, deep, time});
    rg_node(g, "MatMul", rg_both(g, q, transposed));
    int32_t scores = rg_made(g, x, 3, (int64_t[]){n, time, time});
    rg_node(g, "Mul", rg_text(g, "%s,%s", rg_in(g, scores), rg_scalar(g, 0.25f)));
    scores = softmax(g, rg_made(g, scores, 3, (int64_t[]){n, time, time}));
    rg_node(g, "MatMul", rg_both(g, scores, x));
    int32_t y = rg_made(g, x, 3, (int64_t[]){n, time, deep});
    g->t[y].power += 2;
    return true;
}

/* ---- windows and sums ---- */

/* Pools with this window; false where it does not fit. */
static bool pool_window(rg *g, int32_t x, bool max, bool ceil_mode, const window *w) {
    const rg_tensor *t = &g->t[x];
    int64_t dims[2 + SPACE] = {t->dims[0], t->dims[1]};
    if (!sizes_behind(w, t, ceil_mode, dims + 2))
        return false;
    rg_node(g, max ? "MaxPool" : "AveragePool", rg_in(g, x));
    attributes(g, w, t->rank - 2, true);
    qsim_builder_attr_int(g->b, "ceil_mode", ceil_mode);
    if (!max)
        qsim_builder_attr_int(g->b, "count_include_pad", rg_chance(g, 30));
    rg_made(g, x, t->rank, dims);
    return true;
}

static bool pool(rg *g) {
    int32_t x = rg_pick(g, rg_chance(g, 90) ? 4 : 3);
    if (x < 0)
        return false;
    const bool max = rg_chance(g, 55), up = rg_chance(g, 20);
    const int64_t k = RG_ONE_OF(g, 2, 2, 3, 3, 5), s = RG_ONE_OF(g, 1, 2, 2, 3);
    const int64_t p = rg_chance(g, 40) ? k / 2 : 0;
    window w = {{k, k}, {s, s}, {1, 1}, {p, p}, {p, p}};
    if (rg_chance(g, 10))
        w.kernel[1] = RG_ONE_OF(g, 2, 3);
    if (rg_chance(g, 10))
        w.after[0] = w.after[1] = 0;
    for (int i = 0; i < 2; i++) {
        w.before[i] = least(w.before[i], w.kernel[i] - 1);
        w.after[i] = least(w.after[i], w.kernel[i] - 1);
    }
    return pool_window(g, x, max, up, &w);
}

static int32_t global(rg *g, int32_t x) {
    const rg_tensor *t = &g->t[x];
    const int64_t dims[] = {t->dims[0], t->dims[1], 1, 1}, axes[] = {2, 3};
    if (rg_chance(g, 60)) {
        rg_node(g, "GlobalAveragePool", rg_in(g, x));
        return rg_made(g, x, 4, dims);
    }
    const int64_t keep = rg_draw(g, 2);
    if (g->opset < 18) {
        rg_node(g, "ReduceMean", rg_in(g, x));
        ints(g, "axes", 2, axes);
    } else {
        rg_node(g, "ReduceMean", rg_text(g, "%s,%s", rg_in(g, x), rg_ints(g, 2, axes)));
    }
    qsim_builder_attr_int(g->b, "keepdims", keep);
    return rg_made(g, x, keep ? 4 : 2, dims);
}

static bool sums(rg *g) {
    int32_t x = rg_pick(g, 4);
    return x >= 0 && global(g, x) >= 0;
}

static bool normalized(rg *g) {
    int32_t x = rg_pick(g, 0);
    const rg_tensor *t = &g->t[x];
    const int32_t rank = t->rank;
    const int64_t last = t->dims[rank - 1], channels = t->dims[1];
    if (rg_chance(g, 35)) {
        softmax(g, x);
        return true;
    }
    if (g->opset >= 17 && last >= 4 && rg_chance(g, 50)) {
        const char *scale = rg_floats(g, 1, &last, 0.5f, 1),
                   *bias = rg_floats(g, 1, &last, 0.2f, 0);
        rg_node(g, "LayerNormalization", rg_text(g, "%s,%s,%s", rg_in(g, x), scale, bias));
        qsim_builder_attr_float(g->b, "epsilon", 0.01f);
    } else {
        const char *scale = rg_floats(g, 1, &channels, 0.5f, 1);
        const char *bias = rg_floats(g, 1, &channels, 0.2f, 0);
        const char *mean = rg_floats(g, 1, &channels, 0.2f, 0);
        const char *variance = rg_floats(g, 1, &channels, 0.5f, 1);
        rg_node(g, "BatchNormalization",
                rg_text(g, "%s,%s,%s,%s,%s", rg_in(g, x), scale, bias, mean, variance));
    }
    rg_made(g, x, rank, g->t[x].dims);
    return true;
}

static bool reduced(rg *g) {
    static const char *const ops[] = {"ReduceMean", "ReduceMax", "ReduceMin", "ReduceSum"};
    int32_t x = rg_pick(g, 0);
    const uint32_t op = rg_draw(g, 4);
    int64_t dims[5], axis = 1 + rg_draw(g, (uint32_t)g->t[x].rank - 1);
    int32_t rank = g->t[x].rank;
    memcpy(dims, g->t[x].dims, sizeof(dims));
    if (op == 3 && dims[axis] > 16)
        return false;
    const bool keep = rank == 2 || rg_chance(g, 60);
    const bool as_input = op == 3 || g->opset >= (op == 0 || op == 1 || op == 2 ? 18 : 13);
    if (as_input) {
        rg_node(g, ops[op], rg_text(g, "%s,%s", rg_in(g, x), rg_ints(g, 1, &axis)));
    } else {
        rg_node(g, ops[op], rg_in(g, x));
        ints(g, "axes", 1, &axis);
    }
    qsim_builder_attr_int(g->b, "keepdims", keep);
    if (keep)
        dims[axis] = 1;
    else
        memmove(dims + axis, dims + axis + 1, (size_t)(--rank - axis) * sizeof(*dims));
    rg_made(g, x, rank, dims);
    return true;
}

/* A recurrent layer over [N,T,D], transposed to [T,N,D] and back. */
static bool recurrent(rg *g) {
    int32_t x = rg_pick(g, 3);
    if (x < 0 || g->t[x].dims[1] > 20)
        return false;
    const bool lstm = rg_chance(g, 50);
    const int64_t n = g->t[x].dims[0], time = g->t[x].dims[1], deep = g->t[x].dims[2];
    const int64_t hidden = RG_ONE_OF(g, 1, 5, 16), gates = (lstm ? 4 : 3) * hidden;
    if (deep > 64)
        return false;
    const char *w = rg_floats(g, 3, (int64_t[]){1, gates, deep}, 1 / sqrtf((float)deep), 0);
    const char *r = rg_floats(g, 3, (int64_t[]){1, gates, hidden}, 1 / sqrtf((float)hidden), 0);
    const char *bias = rg_floats(g, 2, (int64_t[]){1, 2 * gates}, 0.2f, 0);
    const int32_t at = g->nodes;
    rg_many(g, "Transpose", rg_in(g, x), rg_text(g, "in%d", at));
    ints(g, "perm", 3, (int64_t[]){1, 0, 2});
    rg_many(g, lstm ? "LSTM" : "GRU", rg_text(g, "in%d,%s,%s,%s", at, w, r, bias),
            rg_text(g, "out%d", at));
    qsim_builder_attr_int(g->b, "hidden_size", hidden);
    rg_many(g, "Squeeze", rg_text(g, "out%d,%s", at, rg_ints(g, 1, (int64_t[]){1})),
            rg_text(g, "flat%d", at));
    rg_node(g, "Transpose", rg_text(g, "flat%d", at));
    ints(g, "perm", 3, (int64_t[]){1, 0, 2});
    rg_made(g, x, 3, (int64_t[]){n, time, hidden});
    return true;
}

/* ---- blocks ---- */

static bool residual(rg *g) {
    int32_t x = rg_pick(g, 4);
    if (x < 0)
        return false;
    const int64_t c = g->t[x].dims[1];
    int32_t y = x;
    if (rg_chance(g, 50)) { /* inverted: wide, depthwise, narrow */
        const int64_t wide = c * (c > 64 ? 1 : RG_ONE_OF(g, 1, 2, 3));
        if ((y = rg_conv(g, y, wide, 1, 1, 1)) < 0)
            return false;
        y = rg_activation(g, y);
        y = rg_conv(g, y, wide, RG_ONE_OF(g, 3, 3, 5), wide, 1);
        y = rg_activation(g, y);
        if ((y = rg_conv(g, y, c, 1, 1, 1)) < 0)
            return false;
    } else {
        if ((y = rg_conv(g, y, some_channels(g), 3, 1, 1)) < 0)
            return false;
        y = rg_activation(g, y);
        if ((y = rg_conv(g, y, c, RG_ONE_OF(g, 1, 3), 1, 1)) < 0)
            return false;
    }
    y = rg_chance(g, 50) ? rg_binary(g, "Add", y, x) : rg_binary(g, "Add", x, y);
    if (rg_chance(g, 60))
        rg_activation(g, y);
    return true;
}

static bool squeeze_excite(rg *g) {
    int32_t x = rg_pick(g, 4);
    if (x < 0 || g->t[x].power > 4)
        return false;
    const int64_t c = g->t[x].dims[1];
    rg_node(g, "GlobalAveragePool", rg_in(g, x));
    int32_t y = rg_made(g, x, 4, (int64_t[]){g->t[x].dims[0], c, 1, 1});
    if ((y = rg_conv(g, y, RG_ONE_OF(g, 1, 4, 8, 17), 1, 1, 1)) < 0)
        return false;
    y = rg_unary(g, "Relu", y);
    if ((y = rg_conv(g, y, c, 1, 1, 1)) < 0)
        return false;
    y = rg_unary(g, rg_chance(g, 50) ? "Sigmoid" : "HardSigmoid", y);
    rg_binary(g, "Mul", x, y);
    return true;
}

/* ---- three axes of space, as networks on videos and scans have them ---- */

static window volume_window(rg *g, int64_t most) {
    window w;
    for (int i = 0; i < SPACE; i++) {
        w.kernel[i] = rg_chance(g, 60) ? 3 : 1 + rg_draw(g, (uint32_t)most);
        w.stride[i] = rg_chance(g, 75) ? 1 : 2;
        w.dilation[i] = 1;
        w.before[i] = rg_chance(g, 70) ? w.kernel[i] / 2 : 0;
        w.after[i] = rg_chance(g, 90) ? w.before[i] : 0;
    }
    return w;
}

bool rg_volume(rg *g) {
    const int32_t x = rg_pick(g, 2 + SPACE);
    if (x < 0)
        return false;
    if (rg_chance(g, 40)) {
        const window w = volume_window(g, 3);
        return pool_window(g, x, rg_chance(g, 55), false, &w);
    }
    const int64_t in = g->t[x].dims[1];
    const int64_t group = rg_chance(g, 25) ? in : in % 2 == 0 && rg_chance(g, 20) ? 2 : 1;
    const int64_t channels = group * RG_ONE_OF(g, 1, 1, 2, 3, 8);
    window w = volume_window(g, 4);
    if (rg_chance(g, 15))
        w.dilation[rg_draw(g, SPACE)] = 2;
    return channels <= 64 && conv_window(g, x, channels, group, &w) >= 0;
}

bool rg_layer(rg *g) {
    uint32_t kind = rg_draw(g, 100);
    return kind < 32   ? conv(g)
           : kind < 34 ? shared_conv(g)
           : kind < 36 ? reduced(g)
           : kind < 38 ? recurrent(g)
           : kind < 43 ? conv_transpose(g)
           : kind < 55 ? product(g)
           : kind < 58 ? attention(g)
           : kind < 72 ? pool(g)
           : kind < 78 ? sums(g)
           : kind < 84 ? normalized(g)
           : kind < 94 ? residual(g)
                       : squeeze_excite(g);
}
