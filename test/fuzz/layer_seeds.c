/* SPDX-License-Identifier: MIT */
/*
 * Messages of the forms in which exporters write layers and that passes rewrite: a Pad before a
 * convolution or an average, layers in half precision, Einsums, weights of 4 and 8 bits; and
 * tensors of another file in graphs inside, beside branches and calls that are read as other nodes.
 */
#include <string.h>

#include <qsim/base.h>

#include "fuzz.h"
#include "model_seeds.h"

#define MOST_BYTES 4096

/* A constant of small numbers. */
static void constant(proto *graph, const char *name, int32_t dtype, int32_t rank,
                     const int64_t *dims) {
    uint8_t data[MOST_BYTES];
    size_t bytes = 0;
    proto t = {0};
    if (qsim_tensor_size(dtype, rank, dims, NULL, &bytes) || bytes > sizeof(data))
        abort();
    for (size_t i = 0; i < bytes; i++)
        data[i] = (uint8_t)(i * 37 + 11);
    for (size_t i = 0; dtype == QSIM_FLOAT && i < bytes / 4; i++)
        memcpy(data + 4 * i, &(float){(float)((i * 37 + 11) % 101) / 100.0f - 0.505f}, 4);
    for (size_t i = 1; (dtype == QSIM_FLOAT16 || dtype == QSIM_BFLOAT16) && i < bytes; i += 2)
        data[i] = (uint8_t)(i % 3 ? 0x3c : 0xbc); /* about 1 or 0.01, negative or not */
    for (int32_t i = 0; i < rank; i++)
        proto_int(&t, 1, dims[i]);
    proto_int(&t, 2, dtype);
    proto_text(&t, 8, name);
    proto_bytes(&t, 9, data, bytes);
    proto_take(graph, 5, &t);
    proto_free(&t);
}

static void integers(proto *graph, const char *name, int64_t count, const int64_t *v) {
    proto_constant(graph, name, QSIM_INT64, count, v, (size_t)count * sizeof(*v));
}

static void ints(proto *node, const char *name, int count, const int64_t *v) {
    proto a = {0};
    proto_text(&a, 1, name);
    for (int i = 0; i < count; i++)
        proto_int(&a, 8, v[i]);
    proto_int(&a, 20, 7);
    proto_take(node, 5, &a);
    proto_free(&a);
}

static void text(proto *node, const char *name, const char *value) {
    proto a = {0};
    proto_text(&a, 1, name);
    proto_text(&a, 4, value);
    proto_int(&a, 20, 3);
    proto_take(node, 5, &a);
    proto_free(&a);
}

/* A model of this graph and opset, which also imports ONNX Runtime's domain. */
static void finish(proto *model, proto *graph, int64_t opset) {
    proto import = {0};
    proto_text(graph, 2, "g");
    proto_int(model, 1, 10);
    proto_take(model, 7, graph);
    proto_int(&import, 2, opset);
    proto_take(model, 8, &import);
    proto_text(&import, 1, "com.microsoft");
    proto_int(&import, 2, 1);
    proto_take(model, 8, &import);
    proto_free(graph);
    proto_free(&import);
}

/* ---- a Pad before what pads itself ---- */

void fuzz_padded(proto *model) {
    static const int64_t image[] = {1, 2, 6, 6}, weights[] = {3, 2, 3, 3}, deep[] = {3, 1, 3, 3};
    static const int64_t all[] = {0, 0, 1, 1, 0, 0, 1, 0}, some[] = {1, 0, 0, 1}, axes[] = {-2, 3};
    static const int64_t window[] = {2, 2}, none[] = {0, 0, 0, 0}, pads[] = {0, 1, 1, 0};
    static const float zero = 0;
    proto graph = {0}, node = {0};
    integers(&graph, "all", 8, all);
    integers(&graph, "some", 4, some);
    integers(&graph, "axes", 2, axes);
    constant(&graph, "w", QSIM_FLOAT, 4, weights);
    constant(&graph, "d", QSIM_FLOAT, 4, deep);
    proto_constant(&graph, "zero", QSIM_FLOAT, -1, &zero, sizeof(zero));
    proto_begin(&node, "Pad", "x,all,zero", "a");
    proto_take(&graph, 1, &node);
    proto_begin(&node, "Conv", "a,w", "c");
    ints(&node, "pads", 4, pads);
    proto_take(&graph, 1, &node);
    proto_begin(&node, "Relu", "c", "r");
    proto_take(&graph, 1, &node);
    proto_begin(&node, "Pad", "r,some,,axes", "b");
    proto_take(&graph, 1, &node);
    proto_begin(&node, "Conv", "b,d", "e");
    proto_integer(&node, "group", 3);
    text(&node, "auto_pad", "VALID");
    proto_take(&graph, 1, &node);
    proto_begin(&node, "Pad", "e,some,zero,axes", "f");
    text(&node, "mode", "constant");
    proto_take(&graph, 1, &node);
    proto_begin(&node, "AveragePool", "f", "y");
    ints(&node, "kernel_shape", 2, window);
    ints(&node, "pads", 4, none);
    proto_take(&graph, 1, &node);
    proto_value(&graph, 11, "x", QSIM_FLOAT, image, 4);
    proto_name(&graph, 12, "y");
    finish(model, &graph, 18);
    proto_free(&node);
}

/* ---- half precision ---- */

/* Layers of float16, one of bfloat16, and what lies between them; results of both types. */
void fuzz_half(proto *model) {
    static const int64_t rows[] = {2, 4}, square[] = {4, 4}, columns[] = {4}, axis = 1;
    proto graph = {0}, node = {0};
    constant(&graph, "w", QSIM_FLOAT16, 2, square);
    constant(&graph, "b", QSIM_FLOAT16, 1, columns);
    constant(&graph, "v", QSIM_BFLOAT16, 2, square);
    integers(&graph, "axis", 1, &axis);
    proto_begin(&node, "Gemm", "x,w,b", "g");
    proto_take(&graph, 1, &node);
    proto_begin(&node, "Relu", "g", "r");
    proto_take(&graph, 1, &node);
    proto_begin(&node, "LayerNormalization", "r,b", "n");
    proto_take(&graph, 1, &node);
    proto_begin(&node, "Softmax", "n", "s");
    proto_take(&graph, 1, &node);
    proto_begin(&node, "Cast", "s", "t");
    proto_integer(&node, "to", QSIM_BFLOAT16);
    proto_take(&graph, 1, &node);
    proto_begin(&node, "MatMul", "t,v", "y");
    proto_take(&graph, 1, &node);
    proto_begin(&node, "ReduceMean", "s,axis", "m");
    proto_take(&graph, 1, &node);
    proto_begin(&node, "Cast", "m", "f");
    proto_integer(&node, "to", QSIM_FLOAT);
    proto_take(&graph, 1, &node);
    proto_value(&graph, 11, "x", QSIM_FLOAT16, rows, 2);
    proto_name(&graph, 12, "y");
    proto_name(&graph, 12, "f");
    finish(model, &graph, 18);
    proto_free(&node);
}

/* ---- products ---- */

static void narrow(proto *graph, const char *in, const char *out, int64_t bits, int64_t level) {
    proto node = {0};
    proto_begin(&node, "MatMulNBits", in, out);
    proto_text(&node, 7, "com.microsoft");
    proto_integer(&node, "K", 24);
    proto_integer(&node, "N", 24);
    proto_integer(&node, "bits", bits);
    proto_integer(&node, "block_size", 16);
    proto_integer(&node, "accuracy_level", level);
    proto_take(graph, 1, &node);
    proto_free(&node);
}

/* Einsums with constants and without, weights of int4 in blocks, MatMulNBits of 4 and 8 bits. */
void fuzz_products(proto *model) {
    static const int64_t input[] = {2, 3, 24}, square[] = {24, 24}, scales[] = {2, 24};
    static const int64_t four[] = {24, 2, 8}, eight[] = {24, 2, 16}, each[] = {24, 2};
    proto graph = {0}, node = {0};
    constant(&graph, "e", QSIM_FLOAT, 2, square);
    constant(&graph, "q", QSIM_INT4, 2, square);
    constant(&graph, "s", QSIM_FLOAT, 2, scales);
    constant(&graph, "c4", QSIM_UINT8, 3, four);
    constant(&graph, "c8", QSIM_UINT8, 3, eight);
    constant(&graph, "t", QSIM_FLOAT, 2, each);
    constant(&graph, "z8", QSIM_UINT8, 2, each);
    proto_begin(&node, "Einsum", "x,e", "a");
    text(&node, "equation", "bij,kj->bik");
    proto_take(&graph, 1, &node);
    proto_begin(&node, "Einsum", "a,x", "b");
    text(&node, "equation", "...ij,...kj->...ik");
    proto_take(&graph, 1, &node);
    proto_begin(&node, "Softmax", "b", "p");
    proto_take(&graph, 1, &node);
    proto_begin(&node, "Einsum", "p,a", "h");
    text(&node, "equation", "bij,bjk->bik");
    proto_take(&graph, 1, &node);
    proto_begin(&node, "DequantizeLinear", "q,s", "d");
    proto_integer(&node, "axis", 0);
    proto_integer(&node, "block_size", 16);
    proto_take(&graph, 1, &node);
    proto_begin(&node, "MatMul", "h,d", "m");
    proto_take(&graph, 1, &node);
    narrow(&graph, "m,c4,t", "n", 4, 0);
    narrow(&graph, "n,c8,t,z8", "o", 8, 4);
    narrow(&graph, "o,c4,t", "y", 4, 4);
    proto_value(&graph, 11, "x", QSIM_FLOAT, input, 3);
    proto_name(&graph, 12, "y");
    finish(model, &graph, 21);
    proto_free(&node);
}

/* ---- tensors of another file ---- */

/* Four floats of the other file. */
static void far_tensor(proto *t, const char *name) {
    proto_int(t, 1, 4);
    proto_int(t, 2, QSIM_FLOAT);
    proto_text(t, 8, name);
    proto_external(t, "location", FUZZ_OUTSIDE);
    proto_external(t, "length", "16");
    proto_int(t, 14, 1);
}

/* y: a choice between two sums, of which each has a constant, twice by a call; z: a Loop of sums.
 */
void fuzz_far(proto *model) {
    static const int64_t four[] = {4}, three = 3;
    proto graph = {0}, node = {0}, inner = {0}, f = {0}, t = {0};
    far_tensor(&t, "w");
    proto_take(&graph, 5, &t);
    for (int i = 0; i < 2; i++) {
        far_tensor(&t, "c");
        proto_take(&inner, 5, &t);
        proto_node(&inner, i ? "Add" : "Mul", NULL, "x", "c", "d");
        proto_name(&inner, 12, "d");
        if (i == 0)
            proto_begin(&node, "If", "on", "chosen");
        proto_graph(&node, i ? "else_branch" : "then_branch", &inner);
    }
    proto_take(&graph, 1, &node);
    proto_begin(&node, "Twice", "chosen", "y");
    proto_text(&node, 7, "mine");
    proto_take(&graph, 1, &node);
    proto_constant(&graph, "three", QSIM_INT64, -1, &three, sizeof(three));
    far_tensor(&t, "step");
    proto_loop(&graph, "w", &t, QSIM_FLOAT, four, 1);
    proto_value(&graph, 11, "x", QSIM_FLOAT, four, 1);
    proto_value(&graph, 11, "on", QSIM_BOOL, NULL, 0);
    proto_name(&graph, 12, "y");
    proto_name(&graph, 12, "z");
    finish(model, &graph, 13);
    proto_text(&node, 1, "mine");
    proto_int(&node, 2, 1);
    proto_take(model, 8, &node);
    proto_text(&f, 1, "Twice");
    proto_text(&f, 4, "a");
    proto_text(&f, 5, "b");
    proto_begin(&node, "Add", "a,a", "b");
    proto_take(&f, 7, &node);
    proto_int(&node, 2, 13);
    proto_take(&f, 9, &node);
    proto_text(&f, 10, "mine");
    proto_take(model, 25, &f);
    proto_free(&node);
    proto_free(&inner);
    proto_free(&f);
    proto_free(&t);
}
