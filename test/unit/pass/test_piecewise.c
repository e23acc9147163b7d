/* SPDX-License-Identifier: MIT */
/*
 * Functions of one quantized tensor that differ by channel: those of two lines become QPiecewise,
 * with the bits of the three operators; all others stay.
 */
#include "qdq_nets.h"

#define MOST_CHANNELS 45

/* A constant "name" of these sizes: low + step * i, in a mixed order. */
static void series(net *n, const char *name, int32_t rank, const int64_t *dims, float low,
                   float step) {
    float v[2 * MOST_CHANNELS];
    int64_t count = 1;
    for (int32_t i = 0; i < rank; i++)
        count *= dims[i];
    for (int64_t i = 0; i < count; i++)
        v[i] = low + step * (float)(i * 37 % count);
    net_const(n, name, QSIM_FLOAT, rank, dims, v);
}

/*
 * The usual case: one list per channel of axis 1, the function between two pairs. Scales have no
 * small common factor: ties, which a float decides either way, are seldom then.
 */
typedef struct channel_case {
    int32_t dtype;
    int64_t channels;
    float x_scale, y_scale;
    int32_t x_zero, y_zero;
    bool pooled; /* behind a MaxPool, so that channels become the last axis */
} channel_case;

static const int64_t *begin_case(net *n, const channel_case *c) {
    static int64_t dims[4];
    const int64_t kernel[] = {2, 2}, list[3] = {c->channels, 1, 1};
    memcpy(dims, (int64_t[]){2, c->channels, c->pooled ? 17 : 8, 9}, sizeof(dims));
    begin(n, 4, dims);
    net_pair(n, "x", c->dtype, c->x_scale, c->x_zero, 0);
    if (c->pooled) {
        net_ints(n, net_node(n, "", "MaxPool", "x_d", "p"), "kernel_shape", 2, kernel);
        net_pair(n, "p", c->dtype, c->x_scale, c->x_zero, 0);
    }
    series(n, "slope", 3, list, -0.2f, 1.1f / (float)c->channels);
    series(n, "factor", 3, list, 0.4f, 1.3f / (float)c->channels);
    series(n, "term", 3, list, -0.7f, 1.9f / (float)c->channels);
    return dims;
}

static void end_case(net *n, const channel_case *c, const int64_t *dims, int found) {
    net_pair(n, "y", c->dtype, c->y_scale, c->y_zero, 0);
    finish(n, "y_q");
    CHECK_INT(operators(n, "QPiecewise"), found);
    CHECK_INT(operators(n, "DequantizeLinear"), !found);
    judge(n, 4, dims, c->dtype, 0, 0);
    net_free(n);
}

static void prelu(const channel_case *c, const char *behind) {
    net n;
    const int64_t *dims = begin_case(&n, c);
    net_float(&n, "lo", -0.5f);
    net_float(&n, "hi", 1.5f);
    net_node(&n, "", "PRelu", c->pooled ? "p_d,slope" : "x_d,slope", behind ? "r" : "y");
    if (behind)
        net_node(&n, "", behind, strcmp(behind, "Clip") == 0 ? "r,lo,hi" : "r", "y");
    end_case(&n, c, dims, 1);
}

/* BatchNormalization, and (PRelu(x) * factor + term). */
static void affine(const channel_case *c, bool norm) {
    net n;
    const int64_t *dims = begin_case(&n, c);
    const char *x = c->pooled ? "p_d" : "x_d";
    char in[64];
    if (norm) {
        series(&n, "s", 1, &c->channels, 0.5f, 0.01f);
        series(&n, "b", 1, &c->channels, -0.6f, 0.02f);
        series(&n, "m", 1, &c->channels, 0.3f, -0.01f);
        series(&n, "v", 1, &c->channels, 0.7f, 0.03f);
        snprintf(in, sizeof(in), "%s,s,b,m,v", x);
        net_node(&n, "", "BatchNormalization", in, "y");
    } else {
        snprintf(in, sizeof(in), "%s,slope", x);
        net_node(&n, "", "PRelu", in, "r");
        net_node(&n, "", "Mul", "factor,r", "f");
        net_node(&n, "", "Add", "f,term", "y");
    }
    end_case(&n, c, dims, 1);
}

/* What stays: curves, a knee elsewhere, constants along two axes or the batch, ties at many codes.
 */
static void others(void) {
    const channel_case c = {QSIM_UINT8, 5, 0.03127f, 0.01973f, 120, 100, false};
    const int64_t two[3] = {5, 1, 9}, batch[4] = {2, 1, 1, 1};
    net n;
    const int64_t *dims = begin_case(&n, &c);
    net_node(&n, "", "Sigmoid", "x_d", "r");
    net_node(&n, "", "Mul", "r,factor", "y");
    end_case(&n, &c, dims, 0);
    dims = begin_case(&n, &c);
    net_node(&n, "", "Add", "x_d,term", "r");
    net_node(&n, "", "PRelu", "r,slope", "y");
    end_case(&n, &c, dims, 0);
    dims = begin_case(&n, &c);
    series(&n, "wide", 3, two, 0.1f, 0.02f);
    net_node(&n, "", "PRelu", "x_d,wide", "y");
    end_case(&n, &c, dims, 0);
    dims = begin_case(&n, &c);
    series(&n, "images", 4, batch, 0.4f, 0.3f);
    net_node(&n, "", "PRelu", "x_d,images", "y");
    end_case(&n, &c, dims, 0);
    const channel_case ties = {QSIM_UINT8, 5, 0.03f, 0.02f, 120, 100, false}; /* 1.5, rounded */
    dims = begin_case(&n, &ties);
    net_node(&n, "", "PRelu", "x_d,slope", "y");
    end_case(&n, &ties, dims, 0);
}

/* Channels on the last axis: as they are, and too few elements of each to be worth it. */
static void last_axis(int64_t channels, int64_t length) {
    net n;
    const int64_t dims[3] = {2, length, channels};
    begin(&n, 3, dims);
    net_pair(&n, "x", QSIM_UINT8, 0.03127f, 128, 0);
    series(&n, "slope", 1, &channels, 0.1f, 0.07f);
    net_node(&n, "", "PRelu", "x_d,slope", "y");
    net_pair(&n, "y", QSIM_UINT8, 0.01771f, 77, 0);
    finish(&n, "y_q");
    CHECK_INT(operators(&n, "QPiecewise"), length >= 8);
    judge(&n, 3, dims, QSIM_UINT8, 0, 0);
    net_free(&n);
}

int main(void) {
    static const channel_case cases[] = {
        {QSIM_UINT8, 5, 0.03127f, 0.01973f, 120, 100, false},
        {QSIM_INT8, 5, 0.03127f, 0.01973f, -3, 9, false},
        {QSIM_UINT8, 5, 0.03127f, 0.01973f, 120, 100, true},
        {QSIM_INT8, 3, 0.03127f, 0.01973f, -3, 9, true},
        {QSIM_UINT8, 40, 0.04129f, 0.02971f, 0, 3, true},
        {QSIM_UINT8, 2, 0.04129f, 0.02971f, 255, 254, false},
    };
    for (size_t i = 0; i < QS_COUNT(cases); i++) {
        prelu(&cases[i], NULL);
        prelu(&cases[i], "Relu");
        prelu(&cases[i], "Clip");
        affine(&cases[i], true);
        affine(&cases[i], false);
    }
    others();
    last_axis(5, 8);
    last_axis(5, 7);
    last_axis(40, 90);
    return test_done();
}
