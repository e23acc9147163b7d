/* SPDX-License-Identifier: MIT */
#include "selftest_layers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array_source.h"

#define MOST_WEIGHTS 65536

/* ---- numbers ---- */

/* SplitMix64 (Steele, Lea, Flood, 2014). */
static uint64_t next(drawing *d) {
    return source_scramble(d->state += UINT64_C(0x9e3779b97f4a7c15));
}

int64_t draw_between(drawing *d, int64_t low, int64_t high) {
    return low + (int64_t)(next(d) % (uint64_t)(high - low + 1));
}

bool draw_chance(drawing *d, int64_t of) {
    return draw_between(d, 1, of) == 1;
}

int64_t draw_channels(drawing *d) {
    static const int64_t usual[] = {1, 2, 3, 4, 8, 12, 16, 24, 32, 48, 64, 96};
    return draw_chance(d, 2) ? usual[draw_between(d, 0, 11)] : draw_between(d, 1, 100);
}

static int64_t draw_window(drawing *d) {
    static const int64_t usual[] = {1, 1, 3, 3, 3, 5, 7};
    return draw_chance(d, 4) ? draw_between(d, 1, 12) : usual[draw_between(d, 0, 6)];
}

size_t count_of(const int64_t *dims, int32_t rank) {
    size_t n = 0;
    return qsim_tensor_size(QSIM_FLOAT, rank, dims, &n, NULL) ? 0 : n;
}

float *draw_numbers(drawing *d, size_t count) {
    float *x = tool_alloc(count, sizeof(*x));
    for (size_t i = 0; i < count; i++)
        x[i] = (float)(next(d) >> 40) * 0x1p-23f - 1;
    return x;
}

/* ---- nodes ---- */

void name_constant(const drawing *d, char letter, char name[16]) {
    snprintf(name, 16, "t%d%c", (int)d->count + 1, letter);
}

void add_constant(drawing *d, char letter, int32_t rank, const int64_t *dims, float most) {
    const size_t count = count_of(dims, rank);
    float *x = draw_numbers(d, count);
    const qsim_tensor c = {QSIM_FLOAT, rank, dims, x, count * sizeof(*x)};
    char name[16];
    for (size_t i = 0; i < count; i++)
        x[i] *= most;
    name_constant(d, letter, name);
    qsim_builder_constant(d->b, name, &c);
    free(x);
}

/* Weights of sums over `terms` products, with which results are about as large as inputs. */
static void weights(drawing *d, char letter, int32_t rank, const int64_t *dims, int64_t terms) {
    add_constant(d, letter, rank, dims, 2 / sqrtf((float)terms));
}

void add_node(drawing *d, const char *op, const char *second, const char *constants) {
    char in[96], name[16], of[16];
    int n = snprintf(in, sizeof(in), "%s%s%s", d->last, second ? "," : "", second ? second : "");
    for (; *constants; constants++) {
        name_constant(d, *constants, of);
        n += snprintf(in + n, sizeof(in) - (size_t)n, ",%s", of);
    }
    snprintf(name, sizeof(name), "t%d", (int)++d->count);
    qsim_builder_node(d->b, "", op, name, in, name);
    memcpy(d->earlier, d->last, sizeof(d->last));
    memcpy(d->last, name, sizeof(name));
}

windows draw_windows(drawing *d, bool dilated) {
    windows w;
    for (int k = 0; k < 2; k++) {
        const int64_t in = d->dims[2 + k];
        w.size[k] = k && draw_chance(d, 2) ? w.size[0] : draw_window(d);
        w.stride[k] =
            k && draw_chance(d, 2) ? w.stride[0] : draw_between(d, 1, draw_chance(d, 4) ? 3 : 2);
        w.dilation[k] = dilated && draw_chance(d, 6) ? 2 : 1;
        const int64_t reach = (w.size[k] - 1) * w.dilation[k] + 1;
        w.pads[k] = draw_between(d, 0, w.size[k] - 1);
        w.pads[2 + k] = draw_chance(d, 2) ? w.pads[k] : draw_between(d, 0, w.size[k] - 1);
        while (in + w.pads[k] + w.pads[2 + k] < reach)
            w.pads[2 + k]++;
        w.out[k] = (in + w.pads[k] + w.pads[2 + k] - reach) / w.stride[k] + 1;
    }
    return w;
}

void give_windows(drawing *d, const windows *w, bool dilated) {
    qsim_builder_attr_ints(d->b, "kernel_shape", w->size, 2);
    qsim_builder_attr_ints(d->b, "strides", w->stride, 2);
    qsim_builder_attr_ints(d->b, "pads", w->pads, 4);
    if (dilated)
        qsim_builder_attr_ints(d->b, "dilations", w->dilation, 2);
    memcpy(&d->dims[2], w->out, sizeof(w->out));
}

/* ---- layers ---- */

static void conv(drawing *d) {
    const windows w = draw_windows(d, true);
    const int64_t c = d->dims[1], group = draw_chance(d, 3)                 ? c
                                          : c % 4 == 0 && draw_chance(d, 4) ? 4
                                                                            : 1;
    const int64_t terms = c / group * w.size[0] * w.size[1];
    int64_t m = group == 1 ? draw_channels(d) : c * draw_between(d, 1, c < 40 ? 2 : 1);
    while (group == 1 && m > 1 && m * terms > MOST_WEIGHTS)
        m /= 2;
    const int64_t dims[] = {m, c / group, w.size[0], w.size[1]};
    const bool bias = !draw_chance(d, 4);
    weights(d, 'w', 4, dims, terms);
    if (bias)
        add_constant(d, 'b', 1, &m, 1);
    add_node(d, "Conv", NULL, bias ? "wb" : "w");
    give_windows(d, &w, true);
    qsim_builder_attr_int(d->b, "group", group);
    d->dims[1] = m;
    d->earlier[0] = 0;
}

static void conv_transpose(drawing *d) {
    const int64_t c = d->dims[1], k = draw_between(d, 1, 4), stride = draw_between(d, 1, 2);
    const int64_t dims[] = {c, draw_between(d, 1, 16), k, k}, strides[] = {stride, stride};
    weights(d, 'w', 4, dims, c * k * k / (stride * stride) + 1);
    add_constant(d, 'b', 1, &dims[1], 1);
    add_node(d, "ConvTranspose", NULL, "wb");
    qsim_builder_attr_ints(d->b, "strides", strides, 2);
    d->dims[1] = dims[1];
    for (int i = 2; i < 4; i++)
        d->dims[i] = (d->dims[i] - 1) * stride + k;
    d->earlier[0] = 0;
}

static void product(drawing *d) {
    const int64_t k = d->dims[2];
    const int64_t dims[] = {k, draw_chance(d, 4) ? draw_between(d, 1, 300) : draw_channels(d)};
    weights(d, 'w', 2, dims, k);
    add_node(d, "MatMul", NULL, "w");
    add_constant(d, 'b', 1, &dims[1], 1);
    add_node(d, "Add", NULL, "b");
    d->dims[2] = dims[1];
    d->earlier[0] = 0;
}

/* LSTM or GRU along axis 0, in one direction, whose axis is then taken out. */
static void recurrent(drawing *d) {
    const bool lstm = draw_chance(d, 2);
    const int64_t gates = lstm ? 4 : 3, hidden = draw_between(d, 1, 40), direction = 1;
    const int64_t w[] = {1, gates * hidden, d->dims[2]}, r[] = {1, gates * hidden, hidden};
    const int64_t b[] = {1, 2 * gates * hidden};
    char name[16];
    weights(d, 'w', 3, w, d->dims[2]);
    weights(d, 'r', 3, r, hidden);
    add_constant(d, 'b', 2, b, 1);
    add_node(d, lstm ? "LSTM" : "GRU", NULL, "wrb");
    qsim_builder_attr_int(d->b, "hidden_size", hidden);
    name_constant(d, 'a', name);
    qsim_builder_constant_as(d->b, name, "int64[1]", &direction);
    add_node(d, "Squeeze", NULL, "a");
    d->dims[2] = hidden;
    d->earlier[0] = 0;
}

void add_layer(drawing *d) {
    if (d->rank == 3)
        (draw_chance(d, 5) ? recurrent : product)(d);
    else
        (draw_chance(d, 6) && d->dims[2] * d->dims[3] < 400 ? conv_transpose : conv)(d);
}
