/* SPDX-License-Identifier: MIT */
/*
 * Dynamically quantized convolutions over one, two and three axes of space, padded on every side:
 * at each level the bits of plain loops, which pad with the zero point that the run has chosen.
 * Weights are int8 with zero point 0, or uint8 with one for all or one for each channel. Biases
 * are added to results, or rounded down to integers that are added to sums.
 */
#include "net.h"

#include <math.h>

#define SPACE 3
enum { BATCH = 2, IN = 3, OUT = 5, DEPTH = 4, HEIGHT = 5, WIDTH = 6, KERNEL = 3 };
enum { TAPS = KERNEL * KERNEL * KERNEL, INPUTS = BATCH * IN * DEPTH * HEIGHT * WIDTH };

/* Sizes of the axes of space; 1 for those that an image of fewer axes lacks. */
typedef struct form {
    int axes;
    int64_t in[SPACE], kernel[SPACE], pad[SPACE], stride[SPACE], out[SPACE];
} form;

static form form_of(int axes) {
    const int64_t sizes[SPACE] = {DEPTH, HEIGHT, WIDTH}, strides[SPACE] = {1, 2, 1};
    form f = {.axes = axes};
    for (int i = 0; i < SPACE; i++) {
        const bool there = i >= SPACE - axes;
        f.in[i] = there ? sizes[i] : 1;
        f.kernel[i] = there ? KERNEL : 1;
        f.pad[i] = there ? 1 : 0;
        f.stride[i] = there ? strides[i] : 1;
        f.out[i] = (f.in[i] + 2 * f.pad[i] - f.kernel[i]) / f.stride[i] + 1;
    }
    return f;
}

typedef struct values {
    float x[INPUTS], bias[OUT], scale[OUT];
    int8_t w[OUT * IN * TAPS]; /* uint8 with zero points */
    int zero_points;
    bool integers; /* biases are */
    uint8_t zero[OUT];
} values;

static void draw(values *v) {
    uint64_t state = 11;
    for (size_t i = 0; i < INPUTS; i++) /* mostly above zero, so that zero points are not 128 */
        v->x[i] = (float)(test_random(&state) >> 8) * (3.0f / 16777216.0f) - 0.75f;
    for (size_t i = 0; i < sizeof(v->w); i++)
        v->w[i] = (int8_t)(test_random(&state) >> 16);
    for (size_t i = 0; i < OUT; i++) {
        v->bias[i] = 0.25f * (float)i - 0.5f;
        v->scale[i] = 0.001f + 0.0005f * (float)i;
        v->zero[i] = (uint8_t)(v->zero_points == 1   ? 119
                               : v->zero_points == 2 ? 40 * i + 7
                                                     : 40 * i);
    }
}

/* ---- plain loops ---- */

static int64_t product(const int64_t sizes[SPACE]) {
    return sizes[0] * sizes[1] * sizes[2];
}

/* Scale and zero point of DynamicQuantizeLinear, from ONNX's text. */
static void range(const float *x, size_t count, float *scale, int *zero) {
    float lo = 0, hi = 0;
    for (size_t i = 0; i < count; i++) {
        lo = fminf(lo, x[i]);
        hi = fmaxf(hi, x[i]);
    }
    *scale = (hi - lo) / 255.0f;
    *zero = (int)nearbyintf(fminf(fmaxf(-lo / *scale, 0), 255));
}

static int quantized(float x, float scale, int zero) {
    return (int)fminf(fmaxf(nearbyintf(x / scale) + (float)zero, 0), 255);
}

/* Sum of products at position `at` of the output; outside, x is the zero point: nothing is added.
 */
static int32_t sum_at(const form *f, const uint8_t *x, int zero, const values *v, int64_t m,
                      const int64_t at[SPACE]) {
    const int8_t *w = v->w + m * IN * product(f->kernel);
    int32_t sum = 0;
    for (int64_t c = 0; c < IN; c++)
        for (int64_t i = 0; i < product(f->kernel); i++) {
            const int64_t tap[SPACE] = {i / f->kernel[2] / f->kernel[1],
                                        i / f->kernel[2] % f->kernel[1], i % f->kernel[2]};
            int64_t from = c;
            bool inside = true;
            for (int k = 0; k < SPACE; k++) {
                const int64_t p = at[k] * f->stride[k] + tap[k] - f->pad[k];
                inside = inside && p >= 0 && p < f->in[k];
                from = from * f->in[k] + p;
            }
            const int8_t stored = w[c * product(f->kernel) + i];
            const int weight = v->zero_points ? (uint8_t)stored - v->zero[m] : stored;
            if (inside)
                sum += (x[from] - zero) * weight;
        }
    return sum;
}

static void expect(const form *f, const values *v, float *y) {
    static uint8_t q[INPUTS];
    const int64_t image = IN * product(f->in), outs = product(f->out);
    float scale;
    int zero;
    range(v->x, (size_t)(BATCH * image), &scale, &zero);
    CHECK(zero > 0 && zero < 255);
    for (int64_t i = 0; i < BATCH * image; i++)
        q[i] = (uint8_t)quantized(v->x[i], scale, zero);
    for (int64_t i = 0; i < BATCH * OUT * outs; i++) {
        const int64_t n = i / outs / OUT, m = i / outs % OUT, p = i % outs;
        const int64_t at[SPACE] = {p / f->out[2] / f->out[1], p / f->out[2] % f->out[1],
                                   p % f->out[2]};
        const int32_t sum = sum_at(f, q + n * image, zero, v, m, at);
        const float step = scale * v->scale[m];
        const int32_t whole = v->integers ? (int32_t)floorf(v->bias[m] / step) : 0;
        const float scaled = (float)(sum + whole) * step;
        const float added = v->integers ? scaled : scaled + v->bias[m];
        y[i] = added > 0 ? added : 0;
    }
}

/* ---- the same as a network ---- */

/* The nodes from "sums" to "biased". */
static void add_scaling(net *n, bool integers) {
    const char *sums = "sums";
    net_node(n, "", "Mul", "scale,w_scale", "scales");
    if (integers) {
        net_node(n, "", "Div", "bias,scales", "quotient");
        net_node(n, "", "Floor", "quotient", "rounded");
        const qs_id whole = net_node(n, "", "Cast", "rounded", "whole");
        CHECK_INT(qs_node_set_int(n->g, whole, "to", QSIM_INT32), 0);
        net_node(n, "", "Reshape", "whole,shape", "integers");
        net_node(n, "", "Add", "sums,integers", sums = "added");
    }
    const qs_id cast = net_node(n, "", "Cast", sums, "floats");
    CHECK_INT(qs_node_set_int(n->g, cast, "to", QSIM_FLOAT), 0);
    net_node(n, "", "Mul", "floats,scales", integers ? "biased" : "scaled");
    if (!integers)
        net_node(n, "", "Add", "scaled,bias", "biased");
}

static void check(int axes, int zero_points, bool integers) {
    static float wanted[BATCH * OUT * DEPTH * HEIGHT * WIDTH], got[QS_COUNT(wanted)];
    static values v;
    const form f = form_of(axes);
    const int skip = SPACE - axes, rank = 2 + axes;
    int64_t x[2 + SPACE] = {BATCH, IN}, w[2 + SPACE] = {OUT, IN}, b[2 + SPACE] = {1, OUT};
    int64_t pads[2 * SPACE];
    net n;
    for (int i = 0; i < axes; i++) {
        x[2 + i] = f.in[skip + i];
        w[2 + i] = f.kernel[skip + i];
        b[2 + i] = pads[i] = pads[axes + i] = 1;
    }
    v.zero_points = zero_points;
    v.integers = integers;
    draw(&v);
    const int32_t type = zero_points ? QSIM_UINT8 : QSIM_INT8;
    const int64_t zeros = OUT;
    net_begin(&n, NULL, 13);
    net_input(&n, "x", QSIM_FLOAT, rank, x);
    net_const(&n, "w", type, rank, w, v.w);
    net_const(&n, "w_scale", QSIM_FLOAT, rank, b, v.scale);
    net_const(&n, "bias", QSIM_FLOAT, rank, b, v.bias);
    net_const(&n, "w_zero", type, zero_points > 1, &zeros, v.zero);
    net_node(&n, "", "DynamicQuantizeLinear", "x", "q,scale,zero");
    const qs_id conv = net_node(&n, "", "ConvInteger", "q,w,zero,w_zero", "sums");
    net_ints(&n, conv, "pads", 2 * axes, pads);
    net_ints(&n, conv, "strides", axes, f.stride + skip);
    const int64_t length = rank;
    net_const(&n, "shape", QSIM_INT64, 1, &length, b);
    add_scaling(&n, integers);
    net_node(&n, "", "Relu", "biased", "y");
    net_output(&n, "y");
    NET_OK(&n, net_end(&n));
    expect(&f, &v, wanted);
    const qsim_tensor in = net_tensor(QSIM_FLOAT, rank, x, v.x);
    const size_t bytes = (size_t)(BATCH * OUT * product(f.out)) * sizeof(float);
    for (int32_t level = QSIM_LEVEL_DISABLE; level <= QSIM_LEVEL_ALL; level++) {
        qsim_tensor y = {.data = got, .bytes = bytes};
        memset(got, 1, bytes);
        NET_OK(&n, net_run(&n, level, false, &in, 1, &y, 1));
        CHECK(memcmp(got, wanted, bytes) == 0);
    }
    qs_pass p = net_pass(&n);
    NET_OK(&n, qs_pass_dynamic(&p));
    CHECK_INT(net_count(&n, "ConvIntegerScaled"), 1);
    CHECK_INT(net_count(&n, "Add"), 0);
    net_free(&n);
}

int main(void) {
    for (int axes = 1; axes <= SPACE; axes++)
        for (int zero_points = 0; zero_points < 4; zero_points++)
            for (int integers = 0; integers < 2; integers++)
                check(axes, zero_points, integers);
    return test_done();
}
