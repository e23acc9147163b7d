/* SPDX-License-Identifier: MIT */
/*
 * Initial models, made here: two float networks, each as QDQ and with integer operators, and
 * messages that no builder makes: functions, subgraphs, every field of tensors.
 */
#include "model_seeds.h"

#include <string.h>

#include <qsim/qsim.h>

#include "fuzz.h"
#include "proto.h"

static void constant(qsim_builder *b, const char *name, int32_t rank, const int64_t *dims) {
    static float w[256];
    qsim_tensor t = {QSIM_FLOAT, rank, dims, w, 0};
    qsim_tensor_size(QSIM_FLOAT, rank, dims, NULL, &t.bytes);
    for (size_t i = 0; i < 256; i++)
        w[i] = (float)((i * 37 + 11) % 101) / 100.0f - 0.5f;
    qsim_builder_constant(b, name, &t);
}

static void integers(qsim_builder *b, const char *name, const int64_t *v, int64_t count) {
    qsim_tensor t = {QSIM_INT64, 1, &count, (void *)(uintptr_t)v, (size_t)count * sizeof(*v)};
    qsim_builder_constant(b, name, &t);
}

/* Convolutions, one of them depthwise, a shortcut, pooling, a linear layer. */
static void chain(qsim_builder *b) {
    const int64_t two[] = {2, 2}, pads[] = {1, 1, 1, 1};
    qsim_builder_input(b, "x", QSIM_FLOAT, 4, (int64_t[]){-1, 1, 8, 8}, NULL);
    constant(b, "w", 4, (int64_t[]){4, 1, 3, 3});
    constant(b, "b", 1, (int64_t[]){4});
    constant(b, "d", 4, (int64_t[]){4, 1, 3, 3});
    constant(b, "v", 2, (int64_t[]){64, 3});
    constant(b, "e", 1, (int64_t[]){3});
    qsim_builder_node(b, "", "Conv", "conv", "x,w,b", "c");
    qsim_builder_attr_ints(b, "pads", pads, 4);
    qsim_builder_node(b, "", "Relu", "relu", "c", "r");
    qsim_builder_node(b, "", "Conv", "deep", "r,d", "g");
    qsim_builder_attr_ints(b, "pads", pads, 4);
    qsim_builder_attr_int(b, "group", 4);
    qsim_builder_node(b, "", "Add", "add", "r,g", "a");
    qsim_builder_node(b, "", "MaxPool", "pool", "a", "p");
    qsim_builder_attr_ints(b, "kernel_shape", two, 2);
    qsim_builder_attr_ints(b, "strides", two, 2);
    qsim_builder_node(b, "", "Flatten", "flat", "p", "f");
    qsim_builder_node(b, "", "Gemm", "fc", "f,v,e", "y");
    qsim_builder_output(b, "y", QSIM_FLOAT, 2, (int64_t[]){-1, 3}, NULL);
}

/* Movement and arithmetic around shapes from constants. */
static void movement(qsim_builder *b) {
    qsim_builder_input(b, "x", QSIM_FLOAT, 3, (int64_t[]){2, 3, 4}, NULL);
    integers(b, "shape", (int64_t[]){2, 4, 3}, 3);
    integers(b, "from", (int64_t[]){1, 0}, 2);
    integers(b, "to", (int64_t[]){4, 2}, 2);
    integers(b, "axes", (int64_t[]){1, 2}, 2);
    integers(b, "pick", (int64_t[]){1, -1, 0}, 3);
    constant(b, "k", 1, (int64_t[]){2});
    qsim_builder_node(b, "", "Transpose", "turn", "x", "t");
    qsim_builder_attr_ints(b, "perm", (int64_t[]){0, 2, 1}, 3);
    qsim_builder_node(b, "", "Reshape", "form", "x,shape", "r");
    qsim_builder_node(b, "", "Concat", "join", "t,r", "c");
    qsim_builder_attr_int(b, "axis", 1);
    qsim_builder_node(b, "", "Slice", "cut", "c,from,to,axes", "s");
    qsim_builder_node(b, "", "Mul", "mul", "s,k", "m");
    qsim_builder_node(b, "", "Gather", "gather", "m,pick", "g");
    qsim_builder_attr_int(b, "axis", 1);
    qsim_builder_node(b, "", "ReduceMean", "mean", "g", "n");
    qsim_builder_attr_ints(b, "axes", (int64_t[]){1}, 1);
    qsim_builder_node(b, "", "Sigmoid", "sig", "n", "o");
    qsim_builder_node(b, "", "Softmax", "soft", "o", "y");
    qsim_builder_output(b, "y", QSIM_FLOAT, 3, (int64_t[]){2, 1, 2}, NULL);
}

/* A batch of one image, or the tensor of `movement`. */
static void feed(qsim_calibration *c, const qsim_model *m) {
    static const int64_t image[] = {1, 1, 8, 8}, rows[] = {2, 3, 4};
    float x[64];
    qsim_value_info v = {.struct_size = sizeof(v)};
    if (qsim_model_input(m, 0, &v))
        abort();
    const bool is_image = v.rank == 4;
    for (size_t i = 0; i < 64; i++)
        x[i] = (float)(i % 13) / 13.0f;
    const qsim_tensor t = {QSIM_FLOAT, v.rank, is_image ? image : rows, x,
                           is_image ? sizeof(x) : 24 * sizeof(float)};
    if (qsim_calibration_feed(c, &t, 1, NULL))
        abort();
}

static qsim_model *quantized(const qsim_model *m, int32_t format) {
    qsim_quantize_options o = {.struct_size = sizeof(o), .format = format};
    qsim_calibration *c = NULL;
    qsim_model *q = NULL;
    if (qsim_calibration_create(m, NULL, &c, NULL))
        abort();
    feed(c, m);
    if (qsim_quantize(m, c, &o, &q, NULL))
        abort();
    qsim_calibration_free(c);
    return q;
}

qsim_model *fuzz_model(size_t index) {
    qsim_builder *b = NULL;
    qsim_model *m = NULL;
    if (index >= FUZZ_MODELS)
        return NULL;
    if (qsim_builder_create(NULL, 13, "g", &b, NULL))
        abort();
    (index % 2 ? movement : chain)(b);
    if (qsim_builder_finish(b, &m, NULL))
        abort();
    qsim_builder_free(b);
    if (index > 1) {
        qsim_model *q = quantized(m, (int32_t)index / 2 - 1);
        qsim_model_free(m);
        m = q;
    }
    return m;
}

/* ---- messages made by hand ---- */

/* A float weight of small numbers. */
static void weight(proto *graph, const char *name, const int64_t *dims, int rank) {
    float w[32];
    size_t count = 1;
    proto t = {0};
    for (int i = 0; i < rank; i++) {
        proto_int(&t, 1, dims[i]);
        count *= (size_t)dims[i];
    }
    for (size_t i = 0; i < count; i++)
        w[i] = (float)((i * 37 + 11) % 101) / 100.0f - 0.5f;
    proto_int(&t, 2, QSIM_FLOAT);
    proto_text(&t, 8, name);
    proto_bytes(&t, 9, w, count * sizeof(*w));
    proto_take(graph, 5, &t);
    proto_free(&t);
}

/* A graph of one node, x to y. */
static void branch(proto *graph, const char *op) {
    proto_node(graph, op, NULL, "x", NULL, "inner");
    proto_text(graph, 2, op);
    proto_value(graph, 12, "inner", QSIM_FLOAT, (const int64_t[]){2}, 1);
}

/* y = x > 0 ? relu : neg, by If; then a Loop that adds x three times. */
static void flow(proto *model) {
    static const int64_t three = 3;
    proto graph = {0}, node = {0}, inner = {0};
    proto_begin(&node, "ReduceMax", "x", "top");
    proto_take(&graph, 1, &node);
    proto_begin(&node, "Cast", "top", "is");
    proto_integer(&node, "to", QSIM_BOOL);
    proto_take(&graph, 1, &node);
    proto_begin(&node, "Squeeze", "is", "flag");
    proto_take(&graph, 1, &node);
    proto_begin(&node, "If", "flag", "chosen");
    branch(&inner, "Relu");
    proto_graph(&node, "then_branch", &inner);
    branch(&inner, "Neg");
    proto_graph(&node, "else_branch", &inner);
    proto_take(&graph, 1, &node);
    proto_begin(&node, "Loop", "three,,chosen", "y");
    proto_node(&inner, "Add", NULL, "state", "x", "next");
    proto_node(&inner, "Identity", NULL, "on", NULL, "still");
    proto_value(&inner, 11, "i", QSIM_INT64, NULL, 0);
    proto_value(&inner, 11, "on", QSIM_BOOL, NULL, 0);
    proto_value(&inner, 11, "state", QSIM_FLOAT, (const int64_t[]){2}, 1);
    proto_value(&inner, 12, "still", QSIM_BOOL, NULL, 0);
    proto_value(&inner, 12, "next", QSIM_FLOAT, (const int64_t[]){2}, 1);
    proto_graph(&node, "body", &inner);
    proto_take(&graph, 1, &node);
    proto_constant(&graph, "three", QSIM_INT64, -1, &three, sizeof(three));
    proto_value(&graph, 11, "x", QSIM_FLOAT, (const int64_t[]){2}, 1);
    proto_value(&graph, 12, "y", QSIM_FLOAT, (const int64_t[]){2}, 1);
    proto_model(model, &graph);
    proto_free(&graph);
    proto_free(&node);
    proto_free(&inner);
}

/* y = Twice(x), a function of the model; metadata, documentation, another import. */
static void called(proto *model) {
    proto graph = {0}, f = {0}, part = {0};
    proto_text(&part, 1, "x");
    proto_text(&part, 2, "y");
    proto_text(&part, 4, "Twice");
    proto_text(&part, 7, "mine");
    proto_take(&graph, 1, &part);
    proto_text(&graph, 2, "g");
    proto_text(&graph, 10, "documentation");
    proto_value(&graph, 11, "x", QSIM_FLOAT, (const int64_t[]){-1, 2}, 2);
    proto_value(&graph, 12, "y", QSIM_FLOAT, (const int64_t[]){-1, 2}, 2);
    proto_model(model, &graph);
    proto_text(&part, 1, "mine");
    proto_int(&part, 2, 1);
    proto_take(model, 8, &part);
    proto_text(&part, 1, "key");
    proto_text(&part, 2, "value");
    proto_take(model, 14, &part);
    proto_text(&f, 1, "Twice");
    proto_text(&f, 4, "a");
    proto_text(&f, 5, "b");
    proto_begin(&part, "Add", "a,a", "b");
    proto_take(&f, 7, &part);
    proto_int(&part, 2, 13);
    proto_take(&f, 9, &part);
    proto_text(&f, 10, "mine");
    proto_take(model, 25, &f);
    proto_free(&graph);
    proto_free(&f);
    proto_free(&part);
}

/* y = x + w for each field of elements: packed, one by one, as raw bytes. */
static void tensors(proto *model) {
    static const struct {
        int dtype;
        uint32_t field, wire; /* wire 2: packed varints; 9: raw */
    } kinds[] = {{QSIM_FLOAT, 4, 5},   {QSIM_INT32, 5, 0},   {QSIM_INT64, 7, 0},
                 {QSIM_DOUBLE, 10, 1}, {QSIM_UINT64, 11, 0}, {QSIM_INT8, 5, 2},
                 {QSIM_FLOAT16, 5, 2}, {QSIM_BOOL, 5, 0},    {QSIM_UINT8, 9, 9},
                 {QSIM_INT4, 9, 9}};
    proto graph = {0}, t = {0};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        const char name[] = {'w', (char)('0' + i), 0};
        proto_int(&t, 1, 2);
        proto_int(&t, 2, kinds[i].dtype);
        if (kinds[i].wire == 9)
            proto_bytes(&t, 9, "\1\2", kinds[i].dtype == QSIM_INT4 ? 1 : 2);
        else if (kinds[i].wire == 2)
            proto_bytes(&t, kinds[i].field, "\1\1", 2);
        for (int k = 0; k < 2 && kinds[i].wire != 9 && kinds[i].wire != 2; k++) {
            proto_tag(&t, kinds[i].field, kinds[i].wire);
            proto_raw(&t, "\0\0\0\0\0\0\0", kinds[i].wire == 0 ? 1 : kinds[i].wire == 1 ? 8 : 4);
        }
        proto_text(&t, 8, name);
        proto_take(&graph, 5, &t);
        const char out[] = {'y', (char)('0' + i), 0};
        proto_node(&graph, "Identity", NULL, name, NULL, out);
        proto_value(&graph, 12, out, kinds[i].dtype, (const int64_t[]){2}, 1);
    }
    proto_value(&graph, 11, "x", QSIM_FLOAT, (const int64_t[]){2}, 1);
    proto_model(model, &graph);
    proto_free(&graph);
    proto_free(&t);
}

/* y = x + w, where w is three floats in another file. */
static void outside(proto *model) {
    static const char *const pairs[][2] = {
        {"location", FUZZ_OUTSIDE}, {"offset", "8"}, {"length", "12"}};
    proto graph = {0}, t = {0};
    proto_node(&graph, "Add", "add", "x", "w", "y");
    proto_int(&t, 1, 3);
    proto_int(&t, 2, QSIM_FLOAT);
    proto_text(&t, 8, "w");
    for (size_t i = 0; i < 3; i++)
        proto_external(&t, pairs[i][0], pairs[i][1]);
    proto_int(&t, 14, 1);
    proto_take(&graph, 5, &t);
    proto_value(&graph, 11, "x", QSIM_FLOAT, (const int64_t[]){-1, 3}, 2);
    proto_value(&graph, 12, "y", QSIM_FLOAT, (const int64_t[]){-1, 3}, 2);
    proto_model(model, &graph);
    proto_free(&graph);
    proto_free(&t);
}

static void cast(proto *graph, const char *in, const char *out, int32_t dtype) {
    proto node = {0};
    proto_begin(&node, "Cast", in, out);
    proto_integer(&node, "to", dtype);
    proto_take(graph, 1, &node);
    proto_free(&node);
}

/* To each float of 8 bits and back; and a weight large enough for a file of its own. */
static void casts(proto *model) {
    static const float w[300] = {1, -2.5f};
    static const char *const small[] = {"a", "b", "c", "d"}, *const back[] = {"e", "f", "g", "h"};
    proto graph = {0}, to = {0}, opset = {0};
    for (int32_t i = 0; i < 4; i++) {
        cast(&graph, "x", small[i], QSIM_FLOAT8E4M3FN + i);
        cast(&graph, small[i], back[i], QSIM_FLOAT);
        proto_value(&graph, 12, back[i], QSIM_FLOAT, (const int64_t[]){2}, 1);
    }
    proto_node(&graph, "Identity", NULL, "w", NULL, "z");
    proto_int(&to, 1, 300);
    proto_int(&to, 2, QSIM_FLOAT);
    proto_text(&to, 8, "w");
    proto_bytes(&to, 9, w, sizeof(w));
    proto_take(&graph, 5, &to);
    proto_text(&graph, 2, "g");
    proto_value(&graph, 11, "x", QSIM_FLOAT, (const int64_t[]){2}, 1);
    proto_value(&graph, 12, "z", QSIM_FLOAT, (const int64_t[]){300}, 1);
    proto_int(model, 1, 9);
    proto_take(model, 7, &graph);
    proto_int(&opset, 2, 19);
    proto_take(model, 8, &opset);
    proto_free(&graph);
    proto_free(&to);
    proto_free(&opset);
}

/*
 * A list cut from x, read by a Loop's counter; another one grows and a third one changes, beside a
 * choice by an If.
 */
static void lists(proto *model) {
    static const int64_t any[] = {-1, 2}, two[] = {2};
    proto graph = {0}, node = {0}, body = {0}, either[2] = {{0}, {0}};
    proto_begin(&node, "SplitToSequence", "x", "s");
    proto_integer(&node, "keepdims", 0);
    proto_take(&graph, 1, &node);
    proto_node(&graph, "SequenceLength", NULL, "s", NULL, "n");
    proto_node(&graph, "SequenceConstruct", NULL, "h", NULL, "begin");
    proto_node(&graph, "SequenceInsert", NULL, "begin", "h", "both");
    for (size_t i = 0; i < 2; i++) {
        proto_node(&either[i], "SequenceAt", NULL, i ? "s" : "both", "i", i ? "b" : "a");
        proto_node(&either[i], i ? "Relu" : "Neg", NULL, i ? "b" : "a", NULL, i ? "d" : "c");
        proto_name(&either[i], 12, i ? "d" : "c");
    }
    proto_begin(&node, "If", "on", "chosen");
    proto_graph(&node, "then_branch", &either[0]);
    proto_graph(&node, "else_branch", &either[1]);
    proto_name(&body, 11, "i");
    proto_name(&body, 11, "on");
    proto_name(&body, 11, "list");
    proto_name(&body, 11, "other");
    proto_take(&body, 1, &node);
    proto_node(&body, "SequenceAt", NULL, "s", "i", "part");
    proto_node(&body, "Add", NULL, "part", "chosen", "sum");
    proto_node(&body, "SequenceInsert", NULL, "list", "sum", "grown");
    proto_node(&body, "SequenceErase", NULL, "other", "i", "fewer");
    proto_begin(&node, "SequenceInsert", "fewer,sum,i", "changed");
    proto_take(&body, 1, &node);
    proto_node(&body, "Identity", NULL, "on", NULL, "still");
    proto_name(&body, 12, "still");
    proto_name(&body, 12, "grown");
    proto_name(&body, 12, "changed");
    proto_begin(&node, "Loop", "n,,both,both", "all,swapped");
    proto_graph(&node, "body", &body);
    proto_take(&graph, 1, &node);
    proto_begin(&node, "ConcatFromSequence", "all", "y");
    proto_integer(&node, "axis", 0);
    proto_integer(&node, "new_axis", 1);
    proto_take(&graph, 1, &node);
    proto_begin(&node, "ConcatFromSequence", "swapped", "z");
    proto_integer(&node, "axis", 0);
    proto_take(&graph, 1, &node);
    proto_value(&graph, 11, "x", QSIM_FLOAT, any, 2);
    proto_value(&graph, 11, "h", QSIM_FLOAT, two, 1);
    proto_name(&graph, 12, "y");
    proto_name(&graph, 12, "z");
    proto_text(&graph, 2, "g");
    proto_model(model, &graph);
    proto_free(&graph);
    proto_free(&node);
    proto_free(&either[0]);
    proto_free(&either[1]);
    proto_free(&body);
}

/* Both losses, with and without weights of classes. */
static void losses(proto *model) {
    static const int64_t scores[] = {2, 3, 2}, targets[] = {2, 2}, classes[] = {3};
    static const char *const in[] = {"x,t", "x,t,w"}, *const out[] = {"a", "b,p", "c", "d"};
    proto graph = {0}, node = {0};
    for (size_t i = 0; i < 4; i++) {
        proto_begin(&node, i % 2 ? "SoftmaxCrossEntropyLoss" : "NegativeLogLikelihoodLoss",
                    in[i / 2], out[i]);
        if (i < 2)
            proto_integer(&node, "ignore_index", 0);
        proto_take(&graph, 1, &node);
    }
    proto_value(&graph, 11, "x", QSIM_FLOAT, scores, 3);
    proto_value(&graph, 11, "t", QSIM_INT64, targets, 2);
    proto_value(&graph, 11, "w", QSIM_FLOAT, classes, 1);
    for (size_t i = 0; i < 4; i++)
        proto_name(&graph, 12, i == 1 ? "b" : out[i]);
    proto_name(&graph, 12, "p");
    proto_text(&graph, 2, "g");
    proto_model(model, &graph);
    proto_free(&graph);
    proto_free(&node);
}

/* Doubles through a recurrent layer and Resize, integers through Resize, parameters of floats. */
static void types(proto *model) {
    static const int64_t time[] = {2, 1, 3}, w[] = {1, 4, 3}, r[] = {1, 4, 1}, one[] = {1};
    static const float scale[] = {2, 1, 1.5f};
    proto graph = {0}, node = {0}, t = {0};
    proto_begin(&node, "LSTM", "x,w,r", "h");
    proto_integer(&node, "hidden_size", 1);
    proto_take(&graph, 1, &node);
    for (size_t i = 0; i < 2; i++) {
        proto_begin(&node, "Resize", i ? "q,,s" : "x,,s", i ? "z" : "y");
        proto_text(&t, 1, "mode");
        proto_text(&t, 4, "linear");
        proto_int(&t, 20, 3);
        proto_take(&node, 5, &t);
        proto_take(&graph, 1, &node);
    }
    proto_node(&graph, "Transpose", NULL, "k", NULL, "v");
    proto_begin(&node, "BatchNormalization", "h,m,m,m,m", "n");
    proto_take(&graph, 1, &node);
    proto_int(&t, 1, 3);
    proto_int(&t, 2, QSIM_FLOAT);
    proto_text(&t, 8, "s");
    proto_bytes(&t, 9, scale, sizeof(scale));
    proto_take(&graph, 5, &t);
    proto_value(&graph, 11, "x", QSIM_DOUBLE, time, 3);
    proto_value(&graph, 11, "q", QSIM_INT8, time, 3);
    proto_value(&graph, 11, "k", QSIM_INT4, time, 3);
    proto_value(&graph, 11, "m", QSIM_FLOAT, one, 1);
    proto_value(&graph, 11, "w", QSIM_DOUBLE, w, 3);
    proto_value(&graph, 11, "r", QSIM_DOUBLE, r, 3);
    proto_name(&graph, 12, "n");
    proto_name(&graph, 12, "y");
    proto_name(&graph, 12, "z");
    proto_name(&graph, 12, "v");
    proto_text(&graph, 2, "g");
    proto_model(model, &graph);
    proto_free(&graph);
    proto_free(&node);
    proto_free(&t);
}

/* A list that a Loop of two iterations makes of x, and parts of x of a size that is computed. */
static void unrolled(proto *model) {
    static const int64_t any[] = {-1, 2}, none = 0, two = 2;
    proto graph = {0}, node = {0}, body = {0};
    proto_node(&graph, "SequenceEmpty", NULL, NULL, NULL, "begin");
    proto_name(&body, 11, "i");
    proto_name(&body, 11, "on");
    proto_name(&body, 11, "list");
    proto_node(&body, "SequenceInsert", NULL, "list", "x", "grown");
    proto_name(&body, 12, "on");
    proto_name(&body, 12, "grown");
    proto_begin(&node, "Loop", "two,,begin", "all");
    proto_graph(&node, "body", &body);
    proto_take(&graph, 1, &node);
    proto_node(&graph, "Size", NULL, "x", NULL, "size");
    proto_node(&graph, "SplitToSequence", NULL, "x", "size", "parts");
    proto_node(&graph, "SequenceAt", NULL, "all", "zero", "y");
    proto_node(&graph, "SequenceAt", NULL, "parts", "zero", "z");
    proto_constant(&graph, "zero", QSIM_INT64, -1, &none, sizeof(none));
    proto_constant(&graph, "two", QSIM_INT64, -1, &two, sizeof(two));
    proto_value(&graph, 11, "x", QSIM_FLOAT, any, 2);
    proto_name(&graph, 12, "y");
    proto_name(&graph, 12, "z");
    proto_model(model, &graph);
    proto_free(&graph);
    proto_free(&node);
    proto_free(&body);
}

/* z: two iterations of s = Relu(s w), then s v + e, from x; an If in the Loop chooses. */
static void layers_in_loop(proto *graph) {
    static const int64_t square[] = {4, 4};
    proto node = {0}, body = {0}, either = {0};
    proto_name(&body, 11, "i");
    proto_name(&body, 11, "on");
    proto_name(&body, 11, "s");
    proto_node(&body, "Equal", NULL, "i", "zero", "first");
    proto_begin(&node, "If", "first", "next");
    proto_node(&either, "MatMul", "product", "s", "w", "p");
    proto_node(&either, "Relu", NULL, "p", NULL, "r");
    proto_name(&either, 12, "r");
    proto_graph(&node, "then_branch", &either);
    weight(&either, "v", square, 2);
    weight(&either, "e", square, 1);
    proto_node(&either, "MatMul", "linear", "s", "v", "p");
    proto_node(&either, "Add", NULL, "p", "e", "q");
    proto_name(&either, 12, "q");
    proto_graph(&node, "else_branch", &either);
    proto_take(&body, 1, &node);
    proto_node(&body, "Identity", NULL, "on", NULL, "still");
    proto_name(&body, 12, "still");
    proto_name(&body, 12, "next");
    proto_begin(&node, "Loop", "two,,h", "z");
    proto_graph(&node, "body", &body);
    proto_take(graph, 1, &node);
    proto_free(&node);
    proto_free(&body);
    proto_free(&either);
}

/* Layers inside: of an If in a Loop, which share a weight with the main graph, and of a Scan. */
static void layers(proto *model) {
    static const int64_t square[] = {4, 4}, taps[] = {2, 1, 2}, rows[] = {2, 4}, none = 0, two = 2;
    static const int64_t images[] = {2, 1, 1, 4};
    proto graph = {0}, node = {0}, body = {0};
    weight(&graph, "w", square, 2);
    proto_constant(&graph, "zero", QSIM_INT64, -1, &none, sizeof(none));
    proto_constant(&graph, "two", QSIM_INT64, -1, &two, sizeof(two));
    proto_constant(&graph, "form", QSIM_INT64, 4, images, sizeof(images));
    proto_node(&graph, "MatMul", "outer", "x", "w", "h");
    layers_in_loop(&graph);
    proto_node(&graph, "Reshape", NULL, "z", "form", "images");
    proto_value(&body, 11, "image", QSIM_FLOAT, images + 1, 3);
    weight(&body, "k", taps, 3);
    proto_node(&body, "Conv", "conv", "image", "k", "c");
    proto_name(&body, 12, "c");
    proto_begin(&node, "Scan", "images", "y");
    proto_graph(&node, "body", &body);
    proto_integer(&node, "num_scan_inputs", 1);
    proto_take(&graph, 1, &node);
    proto_value(&graph, 11, "x", QSIM_FLOAT, rows, 2);
    proto_name(&graph, 12, "y");
    proto_text(&graph, 2, "g");
    proto_model(model, &graph);
    proto_free(&graph);
    proto_free(&node);
    proto_free(&body);
}

static size_t by_hand(size_t index, uint8_t *buffer, size_t capacity) {
    static void (*const write[])(proto *) = {
        outside, fuzz_far, flow,     called, tensors,     casts,     lists,
        losses,  types,    unrolled, layers, fuzz_padded, fuzz_half, fuzz_products};
    proto p = {0};
    if (index >= sizeof(write) / sizeof(write[0]))
        return 0;
    write[index](&p);
    if (p.size > capacity)
        abort();
    memcpy(buffer, p.data, p.size);
    const size_t size = p.size;
    proto_free(&p);
    return size;
}

size_t fuzz_model_bytes(size_t index, uint8_t *buffer, size_t capacity) {
    size_t size = 0;
    qsim_model *m = fuzz_model(index);
    if (!m)
        return by_hand(index - FUZZ_MODELS, buffer, capacity);
    if (qsim_model_save_memory(m, buffer, capacity, &size, NULL) || size > capacity)
        abort();
    qsim_model_free(m);
    return size;
}
