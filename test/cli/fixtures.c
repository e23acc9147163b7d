/* SPDX-License-Identifier: MIT */
/* Makes the models and data of the command-line tests in the current folder: here the models. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <qsim/qsim.h>

#include "../proto.h"
#include "fixtures.h"

/* ---- models ---- */

static qsim_builder *begin(const char *name) {
    qsim_builder *b = NULL;
    need(qsim_builder_create(NULL, 13, name, &b, NULL), name);
    return b;
}

static void finish(qsim_builder *b, const char *path) {
    qsim_model *m = NULL;
    qsim_error e = {.message = ""};
    qsim_save_options replace = {.struct_size = sizeof(replace), .flags = QSIM_SAVE_REPLACE};
    int code = qsim_builder_finish(b, &m, &e);
    if (code)
        fprintf(stderr, "%s\n", e.message);
    need(code, path);
    need(qsim_model_save(m, path, &replace, NULL), path);
    qsim_model_free(m);
    qsim_builder_free(b);
}

static void add_input(qsim_builder *b, const char *name, int32_t rank, const int64_t *rest) {
    int64_t dims[8] = {-1};
    const char *names[8] = {"N"};
    memcpy(dims + 1, rest, (size_t)(rank - 1) * sizeof(*dims));
    need(qsim_builder_input(b, name, QSIM_FLOAT, rank, dims, names), name);
}

static void add_output(qsim_builder *b, const char *name, int64_t width) {
    const char *names[] = {"N", NULL};
    need(qsim_builder_output(b, name, QSIM_FLOAT, 2, (int64_t[]){-1, width}, names), name);
}

static void add_weights(qsim_builder *b, const char *name, int64_t rows, int64_t columns,
                        const float *data) {
    int64_t dims[] = {rows, columns};
    qsim_tensor t = {QSIM_FLOAT, 2, dims, (void *)(uintptr_t)data,
                     (size_t)(rows * columns) * sizeof(float)};
    need(qsim_builder_constant(b, name, &t), name);
}

/*
 * A model whose output is its input: the class is the greatest of three numbers. `last` scales the
 * last one.
 */
static void make_identity(const char *path, float last) {
    const float one[] = {1, 0, 0, 0, 1, 0, 0, 0, last};
    qsim_builder *b = begin("identity");
    add_input(b, "x", 2, (int64_t[]){3});
    add_weights(b, "w", 3, 3, one);
    need(qsim_builder_node(b, "", "Gemm", "head", "x,w", "y"), "Gemm");
    add_output(b, "y", 3);
    finish(b, path);
}

/* `last`: the operator that makes the answers; Cast: in float16; NULL: none. */
static void make_mlp(const char *path, const char *last) {
    float *w1 = values(4 * 16, 1), *w2 = values(16 * 3, 2);
    qsim_builder *b = begin("mlp");
    add_input(b, "x", 2, (int64_t[]){4});
    add_weights(b, "w1", 4, 16, w1);
    add_weights(b, "w2", 16, 3, w2);
    need(qsim_builder_node(b, "", "Gemm", "fc1", "x,w1", "h"), "Gemm");
    need(qsim_builder_node(b, "", "Relu", "relu", "h", "r"), "Relu");
    need(qsim_builder_node(b, "", "Gemm", "fc2", "r,w2", last ? "f" : "y"), "Gemm");
    if (last)
        need(qsim_builder_node(b, "", last, "last", "f", "y"), last);
    if (last && strcmp(last, "Cast") == 0) {
        need(qsim_builder_attr_int(b, "to", QSIM_FLOAT16), "to");
        need(qsim_builder_output(b, "y", QSIM_FLOAT16, 2, (int64_t[]){-1, 3}, NULL), "y");
    } else {
        add_output(b, "y", 3);
    }
    finish(b, path);
    free(w1);
    free(w2);
}

/* p = max(x, 0), y = -p, of one type of floats. */
static void make_typed(const char *path, int32_t type) {
    const char *names[] = {"N", NULL};
    qsim_builder *b = begin("typed");
    need(qsim_builder_input(b, "x", type, 2, (int64_t[]){-1, 2}, names), "x");
    need(qsim_builder_node(b, "", "Relu", "positive", "x", "p"), "Relu");
    need(qsim_builder_node(b, "", "Neg", "negative", "p", "y"), "Neg");
    need(qsim_builder_output(b, "y", type, 2, (int64_t[]){-1, 2}, names), "y");
    finish(b, path);
}

/* A layer with one weight that is no number. */
static void make_not_finite(const char *path, float weight) {
    float *w = values(4 * 3, 1);
    qsim_builder *b = begin("not finite");
    w[5] = weight;
    add_input(b, "x", 2, (int64_t[]){4});
    add_weights(b, "w", 4, 3, w);
    need(qsim_builder_node(b, "", "Relu", "positive", "x", "p"), "Relu");
    need(qsim_builder_node(b, "", "Gemm", "fc", "p,w", "y"), "Gemm");
    add_output(b, "y", 3);
    finish(b, path);
    free(w);
}

/* A mask of -infinity, which is legal, on every score: Softmax makes NaNs of them. */
static void make_masked(void) {
    const float mask = -INFINITY;
    float *w = values(4 * 3, 1);
    qsim_builder *b = begin("masked");
    add_input(b, "x", 2, (int64_t[]){4});
    need(qsim_builder_constant_as(b, "mask", "float[]", &mask), "mask");
    need(qsim_builder_node(b, "", "Add", "hide", "x,mask", "scores"), "Add");
    need(qsim_builder_node(b, "", "Softmax", "weigh", "scores", "p"), "Softmax");
    add_weights(b, "w", 4, 3, w);
    need(qsim_builder_node(b, "", "Gemm", "fc", "p,w", "y"), "Gemm");
    add_output(b, "y", 3);
    finish(b, "masked.onnx");
    free(w);
}

/* Picks from three numbers; made-up indices are 0 or 1. */
static void make_pick(void) {
    qsim_builder *b = begin("pick");
    const qsim_tensor t = {QSIM_FLOAT, 1, (int64_t[]){3}, (float[]){5, 6, 7}, 12};
    need(qsim_builder_input(b, "x", QSIM_INT64, 2, (int64_t[]){-1, 4}, NULL), "x");
    need(qsim_builder_constant(b, "table", &t), "table");
    need(qsim_builder_node(b, "", "Gather", "pick", "table,x", "y"), "Gather");
    need(qsim_builder_output_as(b, "y", NULL), "y");
    finish(b, "pick.onnx");
}

/* Pictures, each value times 0.9. */
static void make_dimmer(void) {
    qsim_builder *b = begin("dimmer");
    need(qsim_builder_input_as(b, "x", "float[N,3,H,W]"), "x");
    need(qsim_builder_constant_as(b, "factor", "float[]", &(float){0.9f}), "factor");
    need(qsim_builder_node(b, "", "Mul", "dim", "x,factor", "y"), "Mul");
    need(qsim_builder_output_as(b, "y", "float[N,3,H,W]"), "y");
    finish(b, "faded.onnx");
}

static void make_sum(void) {
    qsim_builder *b = begin("sum");
    add_input(b, "a", 2, (int64_t[]){2});
    add_input(b, "b", 2, (int64_t[]){2});
    need(qsim_builder_node(b, "", "Add", "add", "a,b", "s"), "Add");
    need(qsim_builder_node(b, "", "Relu", "positive", "s", "p"), "Relu");
    add_output(b, "s", 2);
    add_output(b, "p", 2);
    finish(b, "two.onnx");
}

/* A model that carries a state, whose first axis does not count samples. */
static void make_stateful(void) {
    qsim_builder *b = begin("stateful");
    add_input(b, "x", 2, (int64_t[]){4});
    need(qsim_builder_input(b, "state", QSIM_FLOAT, 2, (int64_t[]){2, 4}, NULL), "state");
    add_weights(b, "w", 4, 4, (float[16]){1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1});
    need(qsim_builder_node(b, "", "MatMul", "head", "x,w", "h"), "MatMul");
    need(qsim_builder_node(b, "", "MatMul", "step", "state,w", "u"), "MatMul");
    need(qsim_builder_node(b, "", "ReduceSum", "sum", "u", "t"), "ReduceSum");
    need(qsim_builder_node(b, "", "Add", "add", "h,t", "s"), "Add");
    add_output(b, "s", 4);
    finish(b, "stateful.onnx");
}

/* A model with an input that is called as labels are; its output is that input. */
static void make_named_as_labels(void) {
    static const float nothing[9];
    qsim_builder *b = begin("named as labels");
    add_input(b, "x", 2, (int64_t[]){3});
    add_input(b, "y", 2, (int64_t[]){3});
    add_weights(b, "w", 3, 3, nothing);
    need(qsim_builder_node(b, "", "Gemm", "head", "x,w", "h"), "Gemm");
    need(qsim_builder_node(b, "", "Add", "add", "h,y", "s"), "Add");
    add_output(b, "s", 3);
    finish(b, "xy.onnx");
}

/* A model that adds up the upper and the lower half of 4 x 4 pixels. */
static void make_image(void) {
    float w[32] = {0};
    for (int i = 0; i < 16; i++)
        w[i * 2 + i / 8] = 1;
    qsim_builder *b = begin("image");
    add_input(b, "x", 4, (int64_t[]){1, 4, 4});
    add_weights(b, "w", 16, 2, w);
    need(qsim_builder_node(b, "", "Flatten", "flat", "x", "f"), "Flatten");
    need(qsim_builder_node(b, "", "Gemm", "head", "f,w", "y"), "Gemm");
    add_output(b, "y", 2);
    finish(b, "img.onnx");
}

/* Positions of a text behind those of its past, with a mask over all; `axis`: the mask's name. */
static void make_text(const char *file, const char *axis) {
    const char *mask[] = {"batch", axis};
    qsim_builder *b = begin("text");
    need(qsim_builder_input_as(b, "input_now", "float[batch,length]"), "now");
    need(qsim_builder_input(b, "attention_mask", QSIM_INT64, 2, (int64_t[]){-1, -1}, mask), "mask");
    need(qsim_builder_input_as(b, "past_keys", "float[batch,1,past_length,1]"), "past");
    need(qsim_builder_constant_as(b, "at", "int64[2]", (int64_t[]){1, 3}), "at");
    need(qsim_builder_node(b, "", "Unsqueeze", "key", "input_now,at", "k4"), "Unsqueeze");
    need(qsim_builder_node(b, "", "Concat", "join", "past_keys,k4", "keys"), "Concat");
    need(qsim_builder_attr_int(b, "axis", 2), "axis");
    need(qsim_builder_node(b, "", "Cast", "cast", "attention_mask", "m"), "Cast");
    need(qsim_builder_attr_int(b, "to", QSIM_FLOAT), "to");
    need(qsim_builder_node(b, "", "Unsqueeze", "lift", "m,at", "m4"), "Unsqueeze");
    need(qsim_builder_node(b, "", "Mul", "hide", "keys,m4", "y"), "Mul");
    need(qsim_builder_output_as(b, "y", NULL), "y");
    finish(b, file);
}

/* A layer, and its result turned by tables of sines and cosines. */
static void make_rotated(void) {
    float *w = values(64, 5);
    qsim_builder *b = begin("rotated");
    need(qsim_builder_import(b, "com.microsoft", 1), "com.microsoft");
    need(qsim_builder_input_as(b, "x", "float[N,4,8]"), "x");
    need(qsim_builder_constant_as(b, "w", "float[8,8]", w), "w");
    need(qsim_builder_constant_as(b, "cos", "float[4,4]", w), "cos");
    need(qsim_builder_constant_as(b, "sin", "float[4,4]", w + 16), "sin");
    need(qsim_builder_constant_as(b, "at", "int64[1]", &(int64_t){0}), "at");
    need(qsim_builder_node(b, "", "MatMul", "fc", "x,w", "h"), "MatMul");
    need(qsim_builder_node(b, "com.microsoft", "RotaryEmbedding", "turn", "h,at,cos,sin", "y"),
         "turn");
    need(qsim_builder_output_as(b, "y", NULL), "y");
    finish(b, "rotated.onnx");
    free(w);
}

/* A state that counts samples along its second axis. */
static void make_turned(void) {
    qsim_builder *b = begin("turned");
    need(qsim_builder_input_as(b, "x", "float[batch,2]"), "x");
    need(qsim_builder_input_as(b, "state", "float[2,batch]"), "state");
    need(qsim_builder_node(b, "", "Transpose", "turn", "state", "t"), "Transpose");
    need(qsim_builder_node(b, "", "Add", "add", "x,t", "y"), "Add");
    need(qsim_builder_output_as(b, "y", NULL), "y");
    finish(b, "turned.onnx");
}

/* A product by rows, whose free axes all have one name. */
static void make_alike(void) {
    qsim_builder *b = begin("alike");
    need(qsim_builder_input_as(b, "a", "float[None,None]"), "a");
    need(qsim_builder_input_as(b, "b", "float[None,None]"), "b");
    need(qsim_builder_node(b, "", "Gemm", "gemm", "a,b", "y"), "Gemm");
    need(qsim_builder_attr_int(b, "transB", 1), "transB");
    need(qsim_builder_output_as(b, "y", NULL), "y");
    finish(b, "alike.onnx");
}

/* A Conv, times a number, of any number of pictures of any size from 3 x 3 on. */
static void make_free(void) {
    float *w = values(9, 4);
    qsim_builder *b = begin("free");
    need(qsim_builder_input_as(b, "x", "float[N,1,H,W]"), "x");
    need(qsim_builder_input_as(b, "gain", "float[]"), "gain");
    need(qsim_builder_constant_as(b, "w", "float[1,1,3,3]", w), "w");
    need(qsim_builder_node(b, "", "Conv", "conv", "x,w", "c"), "Conv");
    need(qsim_builder_node(b, "", "Mul", "times", "c,gain", "y"), "Mul");
    need(qsim_builder_output(b, "y", QSIM_FLOAT, 4, (int64_t[]){-1, 1, -1, -1}, NULL), "y");
    finish(b, "free.onnx");
    free(w);
}

/* A layer that takes one sample at a time, though its first axis is free. */
static void make_single(void) {
    float *w = values(12, 6);
    qsim_builder *b = begin("single");
    need(qsim_builder_input_as(b, "x", "float[N,4]"), "x");
    need(qsim_builder_constant_as(b, "w", "float[4,3]", w), "w");
    need(qsim_builder_constant_as(b, "shape", "int64[2]", (int64_t[]){1, 4}), "shape");
    need(qsim_builder_node(b, "", "Reshape", "one", "x,shape", "o"), "Reshape");
    need(qsim_builder_node(b, "", "MatMul", "fc", "o,w", "y"), "MatMul");
    need(qsim_builder_output_as(b, "y", NULL), "y");
    finish(b, "single.onnx");
    free(w);
}

/* A model whose output is its input; all axes are free but one of size 3. */
static void make_same(const char *path, int32_t dtype, int32_t rank, const int64_t *dims) {
    static const char *const names[] = {"N", "A", "B", "C"};
    qsim_builder *b = begin("same");
    need(qsim_builder_input(b, "x", dtype, rank, dims, names), "x");
    need(qsim_builder_node(b, "", "Identity", "same", "x", "y"), "Identity");
    need(qsim_builder_output(b, "y", dtype, rank, dims, names), "y");
    finish(b, path);
}

/*
 * A quantized layer whose scales are valid and do not fit: those of the input's pair are 0.125 and
 * 0.25, that of the bias is 1 in place of 0.25 * 0.5, and the weights use the codes -3 to 3. With
 * `right` they fit, and the weights use -100 to 127.
 */
static void make_scales(const char *path, bool right) {
    int8_t weights[64];
    for (int i = 0; i < 64; i++)
        weights[i] = (int8_t)(right ? i * 227 / 63 - 100 : i % 7 - 3);
    qsim_builder *b = begin("scales");
    add_input(b, "x", 2, (int64_t[]){8});
    need(qsim_builder_constant_as(b, "sx", "float[]", &(float){0.125f}), "sx");
    need(qsim_builder_constant_as(b, "sd", "float[]", &(float){right ? 0.125f : 0.25f}), "sd");
    need(qsim_builder_constant_as(b, "sw", "float[]", &(float){0.5f}), "sw");
    need(qsim_builder_constant_as(b, "sb", "float[]", &(float){right ? 0.0625f : 1}), "sb");
    need(qsim_builder_constant_as(b, "w", "int8[8,8]", weights), "w");
    need(qsim_builder_constant_as(b, "c", "int32[8]", (int32_t[8]){1, 2, 3}), "c");
    need(qsim_builder_node(b, "", "QuantizeLinear", "q", "x,sx", "xq"), "q");
    need(qsim_builder_node(b, "", "DequantizeLinear", "d", "xq,sd", "xd"), "d");
    need(qsim_builder_node(b, "", "DequantizeLinear", "dw", "w,sw", "wd"), "dw");
    need(qsim_builder_node(b, "", "DequantizeLinear", "db", "c,sb", "cd"), "db");
    need(qsim_builder_node(b, "", "Gemm", "fc", "xd,wd,cd", "y"), "fc");
    need(qsim_builder_node(b, "", "Gemm", "shares", "xd,wd,cd", "z"), "shares");
    add_output(b, "y", 8);
    add_output(b, "z", 8);
    finish(b, path);
}

/* The same of operators on quantized tensors. */
static void make_qlinear(const char *path, bool right) {
    int8_t weights[64];
    for (int i = 0; i < 64; i++)
        weights[i] = (int8_t)(right ? i * 227 / 63 - 100 : i % 7 - 3);
    qsim_builder *b = begin("qlinear");
    add_input(b, "x", 2, (int64_t[]){8});
    need(qsim_builder_constant_as(b, "sx", "float[]", &(float){0.125f}), "sx");
    need(qsim_builder_constant_as(b, "zx", "uint8[]", &(uint8_t){128}), "zx");
    need(qsim_builder_constant_as(b, "za", "uint8[]", &(uint8_t){right ? 128 : 127}), "za");
    need(qsim_builder_constant_as(b, "sw", "float[]", &(float){0.5f}), "sw");
    need(qsim_builder_constant_as(b, "zw", "int8[]", &(int8_t){0}), "zw");
    need(qsim_builder_constant_as(b, "sy", "float[]", &(float){4}), "sy");
    need(qsim_builder_constant_as(b, "sd", "float[]", &(float){right ? 4 : 8}), "sd");
    need(qsim_builder_constant_as(b, "w", "int8[8,8]", weights), "w");
    need(qsim_builder_node(b, "", "QuantizeLinear", "q", "x,sx,zx", "xq"), "q");
    need(qsim_builder_node(b, "", "QLinearMatMul", "mm", "xq,sx,za,w,sw,zw,sy,zx", "yq"), "mm");
    need(qsim_builder_node(b, "", "DequantizeLinear", "d", "yq,sd,zx", "y"), "d");
    add_output(b, "y", 8);
    finish(b, path);
}

/* A protobuf field of bytes; returns the end. */
static uint8_t *put(uint8_t *p, int field, const void *data, size_t size) {
    *p++ = (uint8_t)(field << 3 | 2);
    *p++ = (uint8_t)size;
    memcpy(p, data, size);
    return p + size;
}

/* A model with two nodes of unknown operators. */
static void make_unknown(void) {
    static const uint8_t type[] = {0x0a, 4, 8, 1, 0x12, 0};
    uint8_t graph[256], node[64], value[64], model[256] = {8, 8}, *g = graph, *n, *m = model + 2;
    for (int i = 0; i < 2; i++) {
        n = put(node, 1, i ? "m" : "x", 1);
        n = put(n, 2, i ? "y" : "m", 1);
        n = put(n, 3, i ? "second" : "first", i ? 6 : 5);
        n = put(n, 4, i ? "Frobnicate" : "Wobble", i ? 10 : 6);
        g = put(g, 1, node, (size_t)(n - node));
    }
    g = put(g, 2, "g", 1);
    for (int i = 0; i < 2; i++) {
        n = put(value, 1, i ? "y" : "x", 1);
        n = put(n, 2, type, sizeof(type));
        g = put(g, i ? 12 : 11, value, (size_t)(n - value));
    }
    m = put(m, 7, graph, (size_t)(g - graph));
    m = put(m, 8, "\20\15", 2);
    write_file("unknown.onnx", model, (size_t)(m - model), NULL, 0);
}

/* A model that breaks five rules. */
static void make_broken(void) {
    static const int64_t dims[] = {3};
    static const uint8_t zeros[8];
    proto g = {0}, w = {0}, model = {0};
    proto_int(&w, 1, 3);
    proto_int(&w, 2, QSIM_FLOAT);
    proto_text(&w, 8, "short_w");
    proto_bytes(&w, 9, zeros, sizeof(zeros));
    proto_take(&g, 5, &w);
    proto_node(&g, "Wobble", "unknown", "x", NULL, "a");
    proto_node(&g, "Add", "biased", "x", "short_w", "b");
    proto_node(&g, "Relu", "unfed", "nowhere", NULL, "c");
    proto_node(&g, "Relu", "again", "x", NULL, "c");
    proto_node(&g, "Relu", "fine", "b", NULL, "y");
    proto_value(&g, 11, "x", QSIM_FLOAT, dims, 1);
    proto_value(&g, 12, "y", QSIM_FLOAT, dims, 1);
    proto_value(&g, 12, "missing", QSIM_FLOAT, dims, 1);
    proto_model(&model, &g);
    write_file("broken.onnx", model.data, model.size, NULL, 0);
    proto_free(&g);
    proto_free(&w);
    proto_free(&model);
}

/* y = x + w; the numbers of w are in outside.bin. */
static void make_outside(void) {
    static const int64_t dims[] = {3};
    static const float w[] = {1, 2, 3};
    proto g = {0}, t = {0}, model = {0};
    proto_node(&g, "Add", "add", "x", "w", "y");
    proto_int(&t, 1, 3);
    proto_int(&t, 2, QSIM_FLOAT);
    proto_text(&t, 8, "w");
    proto_external(&t, "location", "outside.bin");
    proto_int(&t, 14, 1);
    proto_take(&g, 5, &t);
    proto_value(&g, 11, "x", QSIM_FLOAT, dims, 1);
    proto_value(&g, 12, "y", QSIM_FLOAT, dims, 1);
    proto_model(&model, &g);
    write_file("outside.onnx", model.data, model.size, NULL, 0);
    write_file("outside.bin", w, sizeof(w), NULL, 0);
    proto_free(&g);
    proto_free(&t);
    proto_free(&model);
}

/* y = rate == 16000 ? x w0 : x w1, as an If is read; made-up rates are another number. */
static void make_branches(void) {
    static const int64_t wide = 16000;
    static const char *const name[2][2] = {{"x,w0", "a0"}, {"x,w1", "a1"}};
    qsim_tensor t = {QSIM_INT64, 0, NULL, (void *)(uintptr_t)&wide, sizeof(wide)};
    qsim_builder *b = begin("branches");
    add_input(b, "x", 2, (int64_t[]){4});
    need(qsim_builder_input(b, "rate", QSIM_INT64, 0, NULL, NULL), "rate");
    need(qsim_builder_constant(b, "wide", &t), "wide");
    need(qsim_builder_node(b, "", "Equal", "is", "rate,wide", "is"), "Equal");
    for (int i = 0; i < 2; i++) {
        float *w = values(4 * 3, (uint32_t)i + 1);
        add_weights(b, i ? "w1" : "w0", 4, 3, w);
        need(qsim_builder_node(b, "", "Gemm", name[i][1], name[i][0], name[i][1]), "Gemm");
        free(w);
    }
    need(qsim_builder_node(b, "", "Where", "y", "is,a0,a1", "y"), "Where");
    add_output(b, "y", 3);
    finish(b, "branches.onnx");
}

/* The branch x w of an If, of `to` columns. */
static void add_branch(proto *node, const char *name, int64_t to) {
    proto graph = {0}, w = {0};
    float *data = values((size_t)(4 * to), 5);
    proto_node(&graph, "MatMul", NULL, "x", "w", "inner");
    proto_int(&w, 1, 4);
    proto_int(&w, 1, to);
    proto_int(&w, 2, QSIM_FLOAT);
    proto_text(&w, 8, "w");
    proto_bytes(&w, 9, data, (size_t)(4 * to) * sizeof(*data));
    proto_take(&graph, 5, &w);
    proto_text(&graph, 2, name);
    proto_name(&graph, 12, "inner");
    proto_graph(node, name, &graph);
    proto_free(&graph);
    proto_free(&w);
    free(data);
}

/* An If whose branches give different sizes, so that it stays one. */
static void make_choice(void) {
    proto model = {0}, graph = {0}, node = {0};
    proto_text(&node, 1, "on");
    proto_text(&node, 2, "y");
    proto_text(&node, 3, "choice");
    proto_text(&node, 4, "If");
    add_branch(&node, "then_branch", 3);
    add_branch(&node, "else_branch", 2);
    proto_take(&graph, 1, &node);
    proto_text(&graph, 2, "choice");
    proto_value(&graph, 11, "x", QSIM_FLOAT, (const int64_t[]){1, 4}, 2);
    proto_value(&graph, 11, "on", QSIM_BOOL, NULL, 0);
    proto_value(&graph, 12, "y", QSIM_FLOAT, (const int64_t[]){1, -1}, 2);
    proto_model(&model, &graph);
    write_file("choice.onnx", model.data, model.size, NULL, 0);
    proto_free(&model);
    proto_free(&graph);
    proto_free(&node);
}

/* An input without rows beside the one that counts. */
static void make_no_rows(void) {
    qsim_builder *b = begin("no rows");
    need(qsim_builder_input_as(b, "n", "float[0]"), "n");
    need(qsim_builder_input_as(b, "x", "float[3,4]"), "x");
    need(qsim_builder_node(b, "", "Relu", "relu", "x", "y"), "Relu");
    need(qsim_builder_output_as(b, "y", NULL), "y");
    finish(b, "norows.onnx");
}

int main(void) {
    make_identity("id.onnx", 1);
    make_identity("blind.onnx", 0); /* to class 2 */
    make_mlp("mlp.onnx", NULL);
    make_mlp("mlp_half.onnx", "Cast");
    make_mlp("mlp_soft.onnx", "Softmax");
    make_typed("relu32.onnx", QSIM_FLOAT);
    make_typed("relu16.onnx", QSIM_FLOAT16);
    make_typed("relub.onnx", QSIM_BFLOAT16);
    make_not_finite("nan_weight.onnx", NAN);
    make_not_finite("inf_weight.onnx", -INFINITY);
    make_masked();
    make_pick();
    make_dimmer();
    make_sum();
    make_named_as_labels();
    make_stateful();
    make_image();
    make_text("text.onnx", "total_length");
    make_text("text_sum.onnx", "past_length + length");
    make_text("text_mask.onnx", "mask_length");
    make_text("text_plain.onnx", NULL);
    make_turned();
    make_alike();
    make_rotated();
    make_free();
    make_single();
    make_same("batch.onnx", QSIM_FLOAT, 2, (int64_t[]){20, 3});
    make_branches();
    make_choice();
    make_same("photo.onnx", QSIM_FLOAT, 4, (int64_t[]){-1, 3, -1, -1});
    make_same("last.onnx", QSIM_FLOAT, 4, (int64_t[]){-1, -1, -1, 3});
    make_same("sound.onnx", QSIM_FLOAT, 2, (int64_t[]){-1, -1});
    make_same("column.onnx", QSIM_FLOAT, 3, (int64_t[]){-1, 4, 1});
    make_same("column9.onnx", QSIM_FLOAT, 3, (int64_t[]){-1, 9, 1});
    make_same("deep.onnx", QSIM_FLOAT, 4, (int64_t[]){-1, 16, -1, -1});
    make_no_rows();
    make_same("half.onnx", QSIM_FLOAT16, 2, (int64_t[]){-1, -1});
    make_same("brain.onnx", QSIM_BFLOAT16, 2, (int64_t[]){-1, -1});
    make_same("photo16.onnx", QSIM_FLOAT16, 4, (int64_t[]){-1, 3, -1, -1});
    make_same("double.onnx", QSIM_DOUBLE, 2, (int64_t[]){-1, -1});
    make_same("whole.onnx", QSIM_INT64, 1, (int64_t[]){-1});
    make_scales("odd.onnx", false);
    make_scales("fitting.onnx", true);
    make_qlinear("odd_qlinear.onnx", false);
    make_qlinear("fitting_qlinear.onnx", true);
    make_unknown();
    make_broken();
    make_outside();
    make_data();
    return 0;
}
