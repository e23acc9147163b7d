/* SPDX-License-Identifier: MIT */
/*
 * Quantize/dequantize graphs: their integer forms, and results within a step of their definition:
 * the literal evaluation, DQ -> float operator -> Q, which every comparison uses.
 */
#include "qdq_nets.h"

#include <math.h>

/* Weights "w" of 8 bits with `scales` scales on `axis`, dequantized as "w_d". */
static void weights(net *n, const char *w, int32_t dtype, int32_t rank, const int64_t *dims,
                    int64_t axis, int64_t scales, bool zero_points, uint64_t seed) {
    char name[32], in[100];
    uint8_t bytes[2048];
    float s[64];
    uint8_t z[64];
    size_t count = 1;
    uint64_t state = seed * 31 + 7;
    for (int32_t i = 0; i < rank; i++)
        count *= (size_t)dims[i];
    for (size_t i = 0; i < count; i++)
        bytes[i] = (uint8_t)test_random(&state);
    for (int64_t i = 0; i < scales; i++) {
        s[i] = 0.002f + (float)(test_random(&state) % 100) * 1e-4f;
        z[i] = (uint8_t)((dtype == QSIM_UINT8 ? 128 : 0) + (int)(test_random(&state) % 21) - 10);
    }
    net_const(n, w, dtype, rank, dims, bytes);
    snprintf(name, sizeof(name), "%s_s", w);
    net_const(n, name, QSIM_FLOAT, scales > 1, &scales, s);
    snprintf(in, sizeof(in), "%s,%s", w, name);
    if (zero_points) {
        snprintf(name, sizeof(name), "%s_z", w);
        net_const(n, name, dtype, scales > 1, &scales, z);
        snprintf(in + strlen(in), sizeof(in) - strlen(in), ",%s", name);
    }
    snprintf(name, sizeof(name), "%s_d", w);
    qs_node_set_int(n->g, net_node(n, "", "DequantizeLinear", in, name), "axis", axis);
}

/* Whether the product reads the bytes of w in place. */
static bool in_place(net *n) {
    const void *w = n->g->values[qs_graph_find(n->g, "w")].data->data;
    qs_graph *clone = integers(n);
    bool same = false;
    for (size_t i = 0; i < clone->order_count; i++) {
        const qs_node *p = &clone->nodes[clone->order[i]];
        if (strcmp(p->op_type, "QLinearMatMul") == 0)
            same = clone->values[p->inputs[3]].data->data == w;
    }
    qs_graph_free(clone);
    return same;
}

/* ---- patterns ---- */

static void conv(int32_t activation, int32_t weight, bool per_channel, const char *act, int bias) {
    net n;
    const int64_t dims[] = {2, 3, 6, 5}, wdims[] = {4, 3, 3, 3}, four = 4, pads[] = {1, 0, 1, 1};
    const float b[4] = {0.5f, -1, 0.25f, 0};
    const int32_t bq[4] = {100, -2000, 30, 7};
    int z = activation == QSIM_UINT8 ? 120 : -3;
    begin(&n, 4, dims);
    net_pair(&n, "x", activation, 0.03f, z, 0);
    weights(&n, "w", weight, 4, wdims, 0, per_channel ? 4 : 1, true, 3);
    if (bias == 1)
        net_const(&n, "b_d", QSIM_FLOAT, 1, &four, b);
    if (bias == 2) {
        float s[4];
        const float *ws = n.g->values[qs_graph_find(n.g, "w_s")].data->data;
        for (int i = 0; i < 4; i++)
            s[i] = 0.03f * ws[per_channel ? i : 0];
        net_const(&n, "b", QSIM_INT32, 1, &four, bq);
        net_const(&n, "b_s", QSIM_FLOAT, 1, &four, s);
        qs_node_set_int(n.g, net_node(&n, "", "DequantizeLinear", "b,b_s", "b_d"), "axis", 0);
    }
    net_ints(&n, net_node(&n, "", "Conv", bias ? "x_d,w_d,b_d" : "x_d,w_d", act ? "c" : "y"),
             "pads", 4, pads);
    net_float(&n, "lo", -0.5f);
    net_float(&n, "hi", 1.0f);
    if (act)
        net_node(&n, "", act, strcmp(act, "Clip") == 0 ? "c,lo,hi" : "c", "y");
    net_pair(&n, "y", activation, 0.05f, z, 0);
    finish(&n, "y_q");
    CHECK_INT(operators(&n, "QLinearConv"), 1);
    CHECK_INT(operators(&n, "Conv"), 0);
    judge(&n, 4, dims, activation, 1, 10);
    net_free(&n);
}

static void gemm(bool trans, bool per_channel, int bias) {
    net n;
    const int64_t dims[] = {5, 12}, kn[] = {12, 7}, nk[] = {7, 12}, seven = 7;
    float b[7] = {1, -1, 0.5f, 2, 0, 0.1f, -3};
    begin(&n, 2, dims);
    net_pair(&n, "x", QSIM_UINT8, 0.02f, 131, 0);
    weights(&n, "w", QSIM_INT8, 2, trans ? nk : kn, trans ? 0 : 1, per_channel ? 7 : 1, false, 5);
    net_const(&n, "b", QSIM_FLOAT, 1, &seven, b);
    qs_id g = net_node(&n, "", "Gemm", bias ? "x_d,w_d,b" : "x_d,w_d", "g");
    qs_node_set_int(n.g, g, "transB", trans);
    net_node(&n, "", "Relu", "g", "y");
    net_pair(&n, "y", QSIM_UINT8, 0.04f, 10, 0);
    finish(&n, "y_q");
    CHECK_INT(operators(&n, "QLinearMatMul"), 1);
    CHECK(in_place(&n));
    judge(&n, 2, dims, QSIM_UINT8, 1, 10);
    net_free(&n);
}

/* x W + b, W also after a Transpose. */
static void matmul(bool transposed) {
    net n;
    const int64_t dims[] = {2, 3, 12}, kn[] = {12, 7}, nk[] = {7, 12}, seven = 7, perm[] = {1, 0};
    const float b[7] = {1, -1, 0.5f, 2, 0, 0.1f, -3};
    begin(&n, 3, dims);
    net_pair(&n, "x", QSIM_UINT8, 0.02f, 131, 0);
    weights(&n, "w", QSIM_INT8, 2, transposed ? nk : kn, transposed ? 0 : 1, 7, false, 5);
    net_const(&n, "b", QSIM_FLOAT, 1, &seven, b);
    if (transposed)
        net_ints(&n, net_node(&n, "", "Transpose", "w_d", "wt"), "perm", 2, perm);
    net_node(&n, "", "MatMul", transposed ? "x_d,wt" : "x_d,w_d", "m");
    net_node(&n, "", "Add", "b,m", "y");
    net_pair(&n, "y", QSIM_UINT8, 0.04f, 100, 0);
    finish(&n, "y_q");
    CHECK_INT(operators(&n, "QLinearMatMul"), 1);
    CHECK_INT(operators(&n, "Add"), 0);
    judge(&n, 3, dims, QSIM_UINT8, 1, 10);
    net_free(&n);
}

/* Products of two computed tensors: scores x x', then scores times x, with Relu or without. */
static void attention(int32_t dtype, bool relu) {
    net n;
    const int64_t dims[] = {2, 3, 17, 9}, perm[] = {0, 1, 3, 2};
    begin(&n, 4, dims);
    net_pair(&n, "x", dtype, 0.02f, 13, 0);
    net_node(&n, "", "Tanh", "x", "v");
    net_pair(&n, "v", dtype, 0.01f, -2, 0);
    net_ints(&n, net_node(&n, "", "Transpose", "v_d", "t"), "perm", 4, perm);
    net_node(&n, "", "MatMul", "x_d,t", relu ? "r" : "s");
    if (relu)
        net_node(&n, "", "Relu", "r", "s");
    net_pair(&n, "s", dtype, 0.07f, 9, 0);
    net_node(&n, "", "MatMul", "s_d,v_d", "y");
    net_pair(&n, "y", dtype, 0.4f, 100, 0);
    finish(&n, "y_q");
    CHECK_INT(operators(&n, "QLinearMatMul"), 2);
    CHECK_INT(operators(&n, "DequantizeLinear"), 0);
    judge(&n, 4, dims, dtype, 1, 10);
    net_free(&n);
}

/* Short and long rows, and axes of others that stay apart; x_d and what else a normalization has.
 */
static void rows_of(const char *in, int32_t dtype, int64_t count, int64_t axis, int64_t opset) {
    net n;
    static float list[7000];
    const bool soft = strcmp(in, "x_d") == 0;
    const int64_t dims[] = {2, count > 1000 ? 1 : soft ? 3 : 9, count};
    for (int64_t i = 0; i < count; i++)
        list[i] = 0.5f + 0.01f * (float)(i % 91);
    net_begin(&n, NULL, opset);
    net_input(&n, "x", QSIM_FLOAT, 3, dims);
    net_const(&n, "scale", QSIM_FLOAT, 1, &count, list);
    net_const(&n, "bias", QSIM_FLOAT, 1, &count, list);
    net_pair(&n, "x", dtype, 0.03f, 13, 0);
    const qs_id node = net_node(&n, "", soft ? "Softmax" : "LayerNormalization", in, "y");
    qs_node_set_int(n.g, node, "axis", axis);
    net_pair(&n, "y", dtype, soft ? 1.0f / 256 : 0.02f, !soft || dtype == QSIM_UINT8 ? 0 : -128, 0);
    finish(&n, "y_q");
    CHECK_INT(operators(&n, soft ? "QLinearSoftmax" : "QLinearLayerNormalization"), axis != 1);
    CHECK_INT(operators(&n, "DequantizeLinear"), axis == 1);
    judge(&n, 3, dims, dtype, 0, 0);
    net_free(&n);
}

static void binary(const char *op, int32_t dtype, bool constant, bool relu) {
    net n;
    const int64_t dims[] = {2, 3, 4, 5}, small[] = {3, 1, 1};
    const uint8_t values[3] = {3, 250, 77};
    begin(&n, 4, dims);
    net_pair(&n, "x", dtype, 0.02f, 3, 0);
    net_node(&n, "", "Neg", "x", "v");
    net_pair(&n, "v", dtype, 0.035f, -2, 0);
    net_const(&n, "c", QSIM_INT8, 3, small, values);
    net_float(&n, "c_s", 0.01f);
    net_node(&n, "", "DequantizeLinear", "c,c_s", "c_d");
    net_node(&n, "", op, constant ? "x_d,c_d" : "x_d,v_d", relu ? "r" : "y");
    if (relu)
        net_node(&n, "", "Relu", "r", "y");
    net_pair(&n, "y", dtype, 0.03f, 4, 0);
    finish(&n, "y_q");
    CHECK_INT(operators(&n, op), 0);
    judge(&n, 4, dims, dtype, 1, 100);
    net_free(&n);
}

static void unary(const char *op, int32_t dtype) {
    net n;
    const int64_t dims[] = {3, 50};
    begin(&n, 2, dims);
    net_pair(&n, "x", dtype, 0.03f, 7, 0);
    net_node(&n, "", op, "x_d", "y");
    net_pair(&n, "y", dtype, 0.02f, -5, 0);
    finish(&n, "y_q");
    CHECK_INT(operators(&n, "QTable"), 1);
    CHECK_INT(operators(&n, op), 0);
    judge(&n, 2, dims, dtype, 0, 0);
    net_free(&n);
}

/* x * sigmoid(x) + 3, one table, also if the constant is quantized. */
static void expression(int32_t dtype, bool quantized) {
    net n;
    const int64_t dims[] = {3, 50};
    begin(&n, 2, dims);
    if (quantized) {
        net_byte(&n, "hundred", dtype, 100);
        net_float(&n, "scale", 0.03f);
        net_node(&n, "", "DequantizeLinear", "hundred,scale", "three");
    } else {
        net_float(&n, "three", 3);
    }
    net_pair(&n, "x", dtype, 0.03f, 12, 0);
    net_node(&n, "", "Sigmoid", "x_d", "s");
    net_node(&n, "", "Mul", "x_d,s", "m");
    net_node(&n, "", "Add", "three,m", "y");
    net_pair(&n, "y", dtype, 0.02f, 5, 0);
    finish(&n, "y_q");
    CHECK_INT(operators(&n, "QTable"), 1);
    CHECK_INT(operators(&n, NULL), dtype == QSIM_UINT8 ? 2 : 3); /* Q, table, sign */
    judge(&n, 2, dims, dtype, 0, 0);
    net_free(&n);
}

static void movement(float y_scale, int32_t dtype) {
    net n;
    const int64_t dims[] = {2, 3, 6, 4}, kernel[] = {2, 2}, shape[] = {2, 18}, two = 2;
    const int64_t perm[] = {0, 2, 3, 1};
    begin(&n, 4, dims);
    net_pair(&n, "x", dtype, 0.02f, 11, 0);
    qs_id pool = net_node(&n, "", "MaxPool", "x_d", "p");
    net_ints(&n, pool, "kernel_shape", 2, kernel);
    net_ints(&n, pool, "strides", 2, kernel);
    net_pair(&n, "p", dtype, 0.02f, 11, 0);
    net_ints(&n, net_node(&n, "", "Transpose", "p_d", "t"), "perm", 4, perm);
    net_pair(&n, "t", dtype, 0.02f, 11, 0);
    net_const(&n, "shape", QSIM_INT64, 1, &two, shape);
    net_node(&n, "", "Reshape", "t_d,shape", "y");
    net_pair(&n, "y", dtype, y_scale, 11, 0);
    finish(&n, "y_q");
    CHECK_INT(operators(&n, "DequantizeLinear"), 0);
    CHECK_INT(operators(&n, "QTable"), y_scale != 0.02f);
    judge(&n, 4, dims, dtype, 0, 0);
    net_free(&n);
}

/*
 * Padding of integers: constant (left out, exact, between two steps, outside the type) and
 * mirrored; `pairs`: with a pair of its own. After a MaxPool, so that layouts take part.
 */
static void padding(const char *mode, const float *value, int pairs, int32_t dtype, bool bounded) {
    net n;
    const int64_t dims[] = {2, 3, 6, 4}, kernel[] = {2, 2}, eight = 8;
    const int64_t pads[] = {0, 1, 1, 2, 0, 2, 3, 0};
    begin(&n, 4, dims);
    net_pair(&n, "x", dtype, 0.02f, 11, 0);
    net_ints(&n, net_node(&n, "", "MaxPool", "x_d", "p"), "kernel_shape", 2, kernel);
    if (pairs & 1)
        net_pair(&n, "p", dtype, 0.02f, 11, 0);
    net_const(&n, "pads", QSIM_INT64, 1, &eight, pads);
    if (value)
        net_float(&n, "value", *value);
    const char *in = pairs & 1 ? "p_d,pads,value" : "p,pads,value";
    char text[32];
    snprintf(text, sizeof(text), "%.*s", (int)strlen(in) - (value ? 0 : 6), in);
    qs_id pad = net_node(&n, "", "Pad", text, bounded ? "b" : "y");
    qs_attr attr = {
        .name = "mode", .type = QSIM_ATTR_STRING, .u.s = {(const uint8_t *)mode, strlen(mode)}};
    qs_node_set_attr(n.g, pad, &attr);
    if (bounded)
        net_node(&n, "", "Relu", "b", "y");
    net_pair(&n, "y", dtype, pairs & 2 ? 0.03f : 0.02f, 11, 0);
    finish(&n, "y_q");
    bool exact = !value || *value == 0.0f || *value == 0.5f || !strcmp(mode, "edge");
    bool integers = exact || !bounded;
    CHECK_INT(operators(&n, "DequantizeLinear"), integers ? 0 : 1);
    judge(&n, 4, dims, dtype, 0, 0);
    net_free(&n);
}

/* A Pad between convolutions leaves the network without a transpose in front of and after it. */
static void padding_layout(void) {
    net n;
    const int64_t dims[] = {1, 3, 6, 5}, wdims[] = {4, 3, 3, 3}, vdims[] = {4, 6, 3, 3}, eight = 8;
    const int64_t pads[] = {0, 1, 0, 2, 0, 1, 0, 2};
    begin(&n, 4, dims);
    net_pair(&n, "x", QSIM_INT8, 0.03f, 3, 0);
    weights(&n, "w", QSIM_INT8, 4, wdims, 0, 4, true, 3);
    weights(&n, "v", QSIM_INT8, 4, vdims, 0, 4, true, 4);
    net_const(&n, "pads", QSIM_INT64, 1, &eight, pads);
    net_node(&n, "", "Conv", "x_d,w_d", "c");
    net_pair(&n, "c", QSIM_INT8, 0.05f, 9, 0);
    net_node(&n, "", "Pad", "c_d,pads", "p");
    net_node(&n, "", "Conv", "p,v_d", "y");
    net_pair(&n, "y", QSIM_INT8, 0.05f, 0, 0);
    finish(&n, "y_q");
    CHECK_INT(operators(&n, "DequantizeLinear"), 0);
    judge(&n, 4, dims, QSIM_INT8, 1, 10);
    qs_pass p = net_pass(&n);
    NET_OK(&n, qs_pass_u8(&p));
    NET_OK(&n, qs_pass_qdq(&p));
    NET_OK(&n, qs_pass_layout(&p, true));
    CHECK_INT(net_count(&n, "Pad"), 1);
    CHECK_INT(net_count(&n, "Transpose"), 2); /* of the network's input and output */
    net_free(&n);
}

static void pools(int kind) {
    net n;
    const int64_t dims[] = {2, 3, 4, 4}, kernel[] = {3, 2}, axes[] = {2, 3};
    begin(&n, 4, dims);
    net_pair(&n, "x", QSIM_UINT8, 0.02f, 128, 0);
    if (kind == 0)
        net_ints(&n, net_node(&n, "", "AveragePool", "x_d", "y"), "kernel_shape", 2, kernel);
    if (kind == 1)
        net_node(&n, "", "GlobalAveragePool", "x_d", "y");
    if (kind == 2) {
        qs_id mean = net_node(&n, "", "ReduceMean", "x_d", "y");
        net_ints(&n, mean, "axes", 2, axes);
        qs_node_set_int(n.g, mean, "keepdims", 0);
    }
    if (kind == 3) { /* no quantization between pool and Flatten */
        net_node(&n, "", "GlobalAveragePool", "x_d", "g");
        net_node(&n, "", "Flatten", "g", "y");
    }
    net_pair(&n, "y", QSIM_UINT8, 0.015f, 128, 0);
    finish(&n, "y_q");
    CHECK_INT(operators(&n, kind ? "QLinearGlobalAveragePool" : "QLinearAveragePool"), 1);
    CHECK_INT(operators(&n, "DequantizeLinear"), 0);
    judge(&n, 4, dims, QSIM_UINT8, 1, 200);
    net_free(&n);
}

static void concat(float second) {
    net n;
    const int64_t dims[] = {2, 3, 4, 4};
    begin(&n, 4, dims);
    net_pair(&n, "x", QSIM_UINT8, 0.02f, 100, 0);
    net_node(&n, "", "Neg", "x", "v");
    net_pair(&n, "v", QSIM_UINT8, second, 100, 0);
    qs_node_set_int(n.g, net_node(&n, "", "Concat", "x_d,v_d", "y"), "axis", 1);
    net_pair(&n, "y", QSIM_UINT8, 0.02f, 100, 0);
    finish(&n, "y_q");
    CHECK_INT(operators(&n, "Concat"), second == 0.02f);
    CHECK_INT(operators(&n, "DequantizeLinear"), 0);
    judge(&n, 4, dims, QSIM_UINT8, 0, 0);
    net_free(&n);
}

static void split(void) {
    net n;
    const int64_t dims[] = {2, 4, 3, 3};
    begin(&n, 4, dims);
    net_pair(&n, "x", QSIM_UINT8, 0.02f, 100, 0);
    qs_node_set_int(n.g, net_node(&n, "", "Split", "x_d", "a,b"), "axis", 1);
    net_pair(&n, "a", QSIM_UINT8, 0.02f, 100, 0);
    net_pair(&n, "b", QSIM_UINT8, 0.01f, 90, 0);
    net_node(&n, "", "Add", "a_d,b_d", "y");
    net_pair(&n, "y", QSIM_UINT8, 0.03f, 100, 0);
    finish(&n, "y_q");
    CHECK_INT(operators(&n, "Split"), 1);
    CHECK_INT(operators(&n, "DequantizeLinear"), 0);
    judge(&n, 4, dims, QSIM_UINT8, 1, 100);
    net_free(&n);
}

/* Reshape without a pair of its own: GlobalAveragePool -> Q -> DQ -> Reshape -> Gemm. */
static void bare_movement(void) {
    net n;
    const int64_t dims[] = {2, 12, 4, 4}, kn[] = {12, 7}, shape[] = {-1, 12}, two = 2;
    begin(&n, 4, dims);
    net_pair(&n, "x", QSIM_UINT8, 0.02f, 131, 0);
    net_node(&n, "", "GlobalAveragePool", "x_d", "g");
    net_pair(&n, "g", QSIM_UINT8, 0.01f, 131, 0);
    net_const(&n, "shape", QSIM_INT64, 1, &two, shape);
    net_node(&n, "", "Reshape", "g_d,shape", "r");
    weights(&n, "w", QSIM_INT8, 2, kn, 1, 7, false, 5);
    net_node(&n, "", "Gemm", "r,w_d", "y");
    net_pair(&n, "y", QSIM_UINT8, 0.02f, 10, 0);
    finish(&n, "y_q");
    CHECK_INT(operators(&n, "QLinearMatMul"), 1);
    CHECK_INT(operators(&n, "DequantizeLinear"), 0);
    judge(&n, 4, dims, QSIM_UINT8, 1, 100);
    net_free(&n);
}

/* Standard operators on signed tensors, as files may have them. */
static void qoperator(int32_t x_type, int32_t w_type) {
    net n;
    const int64_t dims[] = {2, 3, 6, 5}, wdims[] = {4, 3, 3, 3};
    begin(&n, 4, dims);
    net_float(&n, "x_s", 0.03f);
    net_byte(&n, "x_z", x_type, x_type == QSIM_UINT8 ? 120 : -9);
    net_float(&n, "y_s", 0.3f);
    net_byte(&n, "y_z", x_type, x_type == QSIM_UINT8 ? 100 : 5);
    net_node(&n, "", "QuantizeLinear", "x,x_s,x_z", "x_q");
    weights(&n, "w", w_type, 4, wdims, 0, 1, true, 3);
    net_node(&n, "", "QLinearConv", "x_q,x_s,x_z,w,w_s,w_z,y_s,y_z", "y");
    finish(&n, "y");
    /* The reference: the same as QDQ, which the test of conv() judges. */
    net m;
    begin(&m, 4, dims);
    net_pair(&m, "x", x_type, 0.03f, x_type == QSIM_UINT8 ? 120 : -9, 0);
    weights(&m, "w", w_type, 4, wdims, 0, 1, true, 3);
    net_node(&m, "", "Conv", "x_d,w_d", "y");
    net_pair(&m, "y", x_type, 0.3f, x_type == QSIM_UINT8 ? 100 : 5, 0);
    finish(&m, "y_q");
    static float x[180];
    uint8_t a[96], b[96];
    for (int i = 0; i < 180; i++)
        x[i] = (float)(i * 37 % 180) / 30 - 3;
    qsim_tensor in = net_tensor(QSIM_FLOAT, 4, dims, x);
    qsim_tensor out = {.data = a, .bytes = sizeof(a)};
    NET_OK(&n, net_run(&n, 0, false, &in, 1, &out, 1));
    CHECK_INT(out.dtype, x_type);
    out = (qsim_tensor){.data = b, .bytes = sizeof(b)};
    NET_OK(&m, net_run(&m, 0, false, &in, 1, &out, 1));
    CHECK(memcmp(a, b, sizeof(a)) == 0);
    net_free(&n);
    net_free(&m);
}

/* As the quantizer uses it: standard operators only, no bounds that files cannot hold. */
static void standard(void) {
    net n;
    const int64_t dims[] = {1, 3, 6, 5}, wdims[] = {4, 3, 3, 3};
    for (int relu = 0; relu < 2; relu++) {
        begin(&n, 4, dims);
        net_pair(&n, "x", QSIM_INT8, 0.03f, 3, 0);
        weights(&n, "w", QSIM_INT8, 4, wdims, 0, 4, true, 3);
        net_node(&n, "", "Conv", "x_d,w_d", "c");
        net_node(&n, "", "Relu", "c", "y");
        /* With the least value as zero point, the clamp to the type is the Relu. */
        net_pair(&n, "y", QSIM_INT8, 0.05f, relu ? -128 : 0, 0);
        net_node(&n, "", "Sigmoid", "y_d", "z");
        net_pair(&n, "z", QSIM_INT8, 0.01f, 0, 0);
        finish(&n, "z_d");
        qs_pass p = net_pass(&n);
        p.standard = true;
        NET_OK(&n, qs_pass_qdq(&p));
        CHECK_INT(net_count(&n, "QLinearConv"), relu);
        CHECK_INT(net_count(&n, "Sigmoid"), 1);
        for (size_t i = 0; i < n.g->order_count; i++)
            CHECK_STR(n.g->nodes[n.g->order[i]].domain, "");
        net_free(&n);
    }
}

int main(void) {
    const int32_t types[2] = {QSIM_UINT8, QSIM_INT8};
    for (int i = 0; i < 8; i++)
        conv(types[i & 1], types[i >> 1 & 1], i >> 2 & 1, NULL, 0);
    conv(QSIM_UINT8, QSIM_INT8, true, "Relu", 1);
    conv(QSIM_INT8, QSIM_INT8, true, "Clip", 2);
    conv(QSIM_UINT8, QSIM_UINT8, false, "Clip", 2);
    for (int i = 0; i < 8; i++)
        gemm(i & 1, i >> 1 & 1, i >> 2 & 1);
    matmul(false);
    matmul(true);
    for (int i = 0; i < 4; i++)
        attention(types[i & 1], i >> 1);
    for (int i = 0; i < 8; i++) {
        rows_of("x_d", types[i & 1], i & 2 ? 7 : 70, 2, i & 4 ? 11 : 13);
        rows_of("x_d", types[i & 1], i & 2 ? 7 : 70, i & 4 ? -1 : 1, 13);
        rows_of(i & 4 ? "x_d,scale,bias" : "x_d,scale", types[i & 1], i & 2 ? 7 : 70, 2, 17);
    }
    rows_of("x_d", QSIM_UINT8, 7000, 2, 13);
    rows_of("x_d,scale,bias", QSIM_INT8, 7000, -1, 17);
    for (int i = 0; i < 8; i++)
        binary(i & 1 ? "Add" : "Mul", types[i >> 1 & 1], i >> 2 & 1, i & 1);
    const char *ops[] = {"Relu",        "Sigmoid",   "Tanh", "Exp",
                         "HardSigmoid", "LeakyRelu", "Abs",  "Erf"};
    for (size_t i = 0; i < QS_COUNT(ops); i++) {
        unary(ops[i], QSIM_UINT8);
        unary(ops[i], QSIM_INT8);
    }
    for (int32_t i = 0; i < 4; i++)
        expression(i % 2 ? QSIM_INT8 : QSIM_UINT8, i > 1);
    movement(0.02f, QSIM_UINT8);
    movement(0.02f, QSIM_INT8);
    movement(0.03f, QSIM_INT8);
    const float fills[] = {0, 0.5f, 0.013f, -INFINITY};
    for (int i = 0; i < 16; i++) {
        padding("constant", NULL, i & 3, types[i >> 2 & 1], i >> 3);
        padding("edge", NULL, i & 3, types[i >> 2 & 1], i >> 3);
        padding("edge", &fills[2], i & 3, types[i >> 2 & 1], i >> 3);
        for (size_t k = 0; k < QS_COUNT(fills); k++)
            padding("constant", &fills[k], i & 3, types[i >> 2 & 1], i >> 3);
    }
    padding_layout();
    for (int i = 0; i < 4; i++)
        pools(i);
    concat(0.02f);
    concat(0.03f);
    split();
    bare_movement();
    for (int i = 0; i < 4; i++)
        qoperator(types[i & 1], types[i >> 1]);
    standard();
    return test_done();
}
