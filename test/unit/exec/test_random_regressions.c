/* SPDX-License-Identifier: MIT */
/*
 * Findings of test_random_graphs, reduced: graphs that did not run, or gave other integers at
 * another level, after optimizing, or with more outputs; or files that no other runtime accepts.
 * One of fuzzing: what counts the elements of a number copied no sizes from NULL.
 */
#include "test.h"

#include <qsim/qsim.h>

#define MAX_OUTPUTS 4

/* Scales whose products are often half a step, so that any other way to compute differs. */
static qsim_builder *begin(int32_t opset, const char *x) {
    qsim_builder *b = NULL;
    static const float scales[] = {0.1f, 0.3f, 0.1f * 0.3f * 8};
    static const uint8_t zeros[] = {7, 131, 90};
    static const int8_t s8 = 3;
    CHECK_INT(qsim_builder_create(NULL, opset, "found", &b, NULL), 0);
    qsim_builder_input_as(b, "x", x);
    qsim_builder_constant_as(b, "s0", "float[]", &scales[0]);
    qsim_builder_constant_as(b, "s1", "float[]", &scales[1]);
    qsim_builder_constant_as(b, "s2", "float[]", &scales[2]);
    qsim_builder_constant_as(b, "z0", "uint8[]", &zeros[0]);
    qsim_builder_constant_as(b, "z1", "uint8[]", &zeros[1]);
    qsim_builder_constant_as(b, "z2", "uint8[]", &zeros[2]);
    qsim_builder_constant_as(b, "zs", "int8[]", &s8);
    return b;
}

/* With x quantized, "xq", and dequantized, "xd". */
static qsim_builder *begin_quantized(const char *x) {
    qsim_builder *b = begin(13, x);
    qsim_builder_node(b, "", "QuantizeLinear", "", "x,s0,z1", "xq");
    qsim_builder_node(b, "", "DequantizeLinear", "", "xq,s0,z1", "xd");
    return b;
}

/* Weights [4,4,3,3], or with `k` 1 [4,4,1,1], as s8 after a DequantizeLinear. */
static void weights(qsim_builder *b, const char *name, int64_t k, uint64_t seed) {
    int8_t w[4 * 4 * 9];
    static const int8_t zero = 0;
    char q[32], text[64];
    for (size_t i = 0; i < sizeof(w); i++)
        w[i] = (int8_t)(test_random(&seed) % 7) - 3;
    snprintf(q, sizeof(q), "%s_q", name);
    snprintf(text, sizeof(text), "int8[4,4,%d,%d]", (int)k, (int)k);
    qsim_builder_constant_as(b, q, text, w);
    snprintf(text, sizeof(text), "%s_z", name);
    qsim_builder_constant_as(b, text, "int8[]", &zero);
    snprintf(text, sizeof(text), "%s_q,s1,%s_z", name, name);
    qsim_builder_node(b, "", "DequantizeLinear", "", text, name);
}

static qsim_model *end(qsim_builder *b) {
    qsim_model *m = NULL;
    qsim_error e = {.message = ""};
    qsim_builder_finish(b, &m, &e);
    CHECK_STR(e.message, "");
    qsim_builder_free(b);
    return m;
}

typedef struct given {
    uint8_t bytes[MAX_OUTPUTS][4096];
    size_t size[MAX_OUTPUTS];
} given;

static void run(const qsim_model *m, int32_t level, const char *const *names, size_t count,
                given *y) {
    qsim_session_options o = {
        .struct_size = sizeof(o), .outputs = names, .output_count = count, .level = level};
    qsim_value_info v = {.struct_size = sizeof(v)};
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    qsim_error e = {.message = ""};
    static float x[1024];
    uint64_t state = 99;
    qsim_tensor out[MAX_OUTPUTS] = {{0}};
    memset(y, 0, sizeof(*y));
    CHECK_INT(qsim_model_input(m, 0, &v), 0);
    for (size_t i = 0; i < sizeof(x) / sizeof(*x); i++)
        if (v.dtype == QSIM_FLOAT)
            x[i] = (float)(test_random(&state) >> 8) * (8.0f / 16777216.0f) - 4;
        else
            memcpy(&x[i], &(uint32_t){test_random(&state)}, sizeof(float));
    qsim_tensor in = {v.dtype, v.rank, v.dims, x, 0};
    qsim_tensor_size(v.dtype, v.rank, v.dims, NULL, &in.bytes);
    int code = qsim_session_create(m, &o, &s, &e);
    if (!code)
        code = qsim_run_create(s, &r, &e);
    for (size_t i = 0; i < MAX_OUTPUTS; i++)
        out[i] = (qsim_tensor){.data = y->bytes[i], .bytes = sizeof(y->bytes[i])};
    if (!code)
        code = qsim_run_execute(r, &in, 1, out, (size_t)qsim_session_output_count(s), &e);
    for (int32_t i = 0; !code && i < qsim_session_output_count(s); i++)
        y->size[i] = out[i].bytes;
    CHECK_STR(e.message, "");
    CHECK_INT(code, 0);
    qsim_run_free(r);
    qsim_session_free(s);
}

/* The first output is the same at every level, optimized or not, alone or with `more`. */
static void check(qsim_model *m, const char *first, const char *more) {
    static given want, got;
    const char *const names[] = {first, more};
    run(m, QSIM_LEVEL_ALL, NULL, 0, &want);
    CHECK(want.size[0] > 0);
    for (int32_t level = QSIM_LEVEL_DISABLE; level <= QSIM_LEVEL_ALL; level++) {
        qsim_model *o = NULL;
        qsim_error e = {.message = ""};
        run(m, level, NULL, 0, &got);
        CHECK(memcmp(&want, &got, sizeof(want)) == 0);
        run(m, level, names, more ? 2 : 1, &got);
        CHECK(memcmp(want.bytes[0], got.bytes[0], sizeof(want.bytes[0])) == 0);
        CHECK_INT(qsim_model_optimize(m, level, &o, &e), 0);
        CHECK_STR(e.message, "");
        if (o)
            run(o, QSIM_LEVEL_ALL, NULL, 0, &got);
        CHECK(memcmp(&want, &got, sizeof(want)) == 0);
        qsim_model_free(o);
    }
    qsim_model_free(m);
}

/* A slope of one element in three axes, in a table. */
static void slope_of_three_axes(void) {
    static const float slope = -0.3f;
    qsim_builder *b = begin(13, "float[1,1,5,7]");
    qsim_builder_constant_as(b, "slope", "float[1,1,1]", &slope);
    qsim_builder_node(b, "", "QuantizeLinear", "", "x,s0,z1", "xq");
    qsim_builder_node(b, "", "DequantizeLinear", "", "xq,s0,z1", "xd");
    qsim_builder_node(b, "", "PRelu", "", "xd,slope", "p");
    qsim_builder_node(b, "", "QuantizeLinear", "", "p,s1,z0", "y");
    qsim_builder_output_as(b, "y", NULL);
    check(end(b), "y", NULL);
}

/* Operators of com.microsoft have version numbers of their own. */
static void contributed(void) {
    static const int64_t two[] = {2, 2};
    qsim_builder *b = begin_quantized("float[1,4,6,7]");
    qsim_builder_node(b, "", "AveragePool", "", "xd", "p");
    qsim_builder_attr_ints(b, "kernel_shape", two, 2);
    qsim_builder_node(b, "", "QuantizeLinear", "", "p,s2,z0", "pq");
    qsim_builder_node(b, "", "DequantizeLinear", "", "pq,s2,z0", "pd");
    qsim_builder_node(b, "", "Relu", "", "xd", "r");
    qsim_builder_node(b, "", "QuantizeLinear", "", "r,s1,z1", "rq");
    qsim_builder_node(b, "", "DequantizeLinear", "", "rq,s1,z1", "rd");
    qsim_builder_node(b, "", "Concat", "", "xd,rd", "c");
    qsim_builder_attr_int(b, "axis", 1);
    qsim_builder_node(b, "", "QuantizeLinear", "", "c,s2,z2", "y");
    qsim_builder_output_as(b, "y", NULL);
    qsim_builder_output_as(b, "pd", NULL);
    check(end(b), "y", "rd");
}

/* The maximum of signed bytes that no pass has made unsigned. */
static void greatest_signed(void) {
    static const int64_t three[] = {3, 3};
    qsim_builder *b = begin(13, "int8[1,4,6,7]");
    qsim_builder_node(b, "", "MaxPool", "", "x", "y");
    qsim_builder_attr_ints(b, "kernel_shape", three, 2);
    qsim_builder_output_as(b, "y", NULL);
    check(end(b), "y", NULL);
}

/* A convolution reads dequantized numbers through a Dropout that is also an output. */
static void dropout(void) {
    qsim_builder *b = begin_quantized("float[1,4,6,7]");
    weights(b, "w", 3, 5);
    qsim_builder_node(b, "", "Dropout", "", "xd", "d");
    qsim_builder_node(b, "", "Conv", "", "d,w", "c");
    qsim_builder_node(b, "", "QuantizeLinear", "", "c,s2,z2", "y");
    qsim_builder_output_as(b, "y", NULL);
    check(end(b), "y", "d");
}

/* x + x becomes a table, in an optimized file, too. */
static void twice(void) {
    qsim_builder *b = begin_quantized("float[1,4,6,7]");
    qsim_builder_node(b, "", "DequantizeLinear", "", "xq,s0,z1", "xe");
    qsim_builder_node(b, "", "Add", "", "xd,xe", "a");
    qsim_builder_node(b, "", "QuantizeLinear", "", "a,s2,z2", "y");
    qsim_builder_output_as(b, "y", NULL);
    check(end(b), "y", "a");
}

/* A Concat of floats that is quantized, and is also an output as floats. */
static void concat_of_floats(void) {
    qsim_builder *b = begin_quantized("float[1,4,6,7]");
    weights(b, "w", 1, 9);
    qsim_builder_node(b, "", "Conv", "", "xd,w", "c");
    qsim_builder_node(b, "", "Concat", "", "xd,c", "cat");
    qsim_builder_attr_int(b, "axis", 1);
    qsim_builder_node(b, "", "QuantizeLinear", "", "cat,s2,z1", "y");
    qsim_builder_output_as(b, "y", NULL);
    check(end(b), "y", "cat");
}

static void check_names(const qsim_model *m, int32_t at_least) {
    qsim_node_info p = {.struct_size = sizeof(p)}, q = p;
    int32_t named = 0;
    for (int32_t i = 0; i < qsim_model_node_count(m); i++) {
        qsim_model_node(m, i, &p);
        named += p.name[0] != 0;
        for (int32_t k = 0; k < i; k++) {
            qsim_model_node(m, k, &q);
            CHECK(!p.name[0] || strcmp(p.name, q.name) != 0);
        }
    }
    CHECK(named >= at_least);
}

/* A float node that stays beside the integer nodes made of it has a name different from theirs. */
static void names(void) {
    qsim_builder *b = begin(13, "float[1,4,6,7]");
    qsim_model *m, *o = NULL;
    weights(b, "w", 1, 9);
    qsim_builder_node(b, "", "QuantizeLinear", "", "x,s0,z1", "xq");
    qsim_builder_node(b, "", "DequantizeLinear", "", "xq,s0,z1", "xd");
    qsim_builder_node(b, "", "Conv", "conv", "xd,w", "c");
    qsim_builder_node(b, "", "QuantizeLinear", "q", "c,s2,z1", "y");
    qsim_builder_output_as(b, "y", NULL);
    qsim_builder_output_as(b, "c", NULL);
    m = end(b);
    CHECK_INT(qsim_model_optimize(m, QSIM_LEVEL_EXTENDED, &o, NULL), 0);
    check_names(o, 2);
    qsim_model_free(o);
    check(m, "y", "xd");
}

/* A weight that two convolutions share is quantized for each. */
static void shared_weights(void) {
    static const float w[16] = {1, -2, 3, 4, 0.5f}, bias[4] = {1, 2, 3, 4};
    static float x[4 * 6 * 7] = {1, 2, 3, -4, 5};
    static const int64_t dims[] = {1, 4, 6, 7};
    qsim_tensor in = {QSIM_FLOAT, 4, dims, x, sizeof(x)};
    qsim_builder *b = begin(13, "float[1,4,6,7]");
    qsim_calibration *c = NULL;
    qsim_builder_constant_as(b, "w", "float[4,4,1,1]", w);
    qsim_builder_constant_as(b, "b", "float[4]", bias);
    qsim_builder_node(b, "", "Conv", "one", "x,w,b", "c");
    qsim_builder_node(b, "", "Conv", "two", "c,w,b", "y");
    qsim_builder_output_as(b, "y", NULL);
    qsim_model *m = end(b), *q = NULL;
    CHECK_INT(qsim_calibration_create(m, NULL, &c, NULL), 0);
    CHECK_INT(qsim_calibration_feed(c, &in, 1, NULL), 0);
    for (int32_t mode = QSIM_MODE_STATIC; mode <= QSIM_MODE_WEIGHTS; mode++) {
        qsim_quantize_options o = {.struct_size = sizeof(o), .mode = mode};
        CHECK_INT(qsim_quantize(m, c, &o, &q, NULL), 0);
        check_names(q, 2);
        qsim_model_free(q);
    }
    qsim_calibration_free(c);
    qsim_model_free(m);
}

/* A float bias that is no multiple of the sums' step, which is several output steps. */
static void coarse_sums(void) {
    static given y;
    static const int8_t w[16], zero = 0;
    static const float bias[4] = {0.1f, -0.1f, 0.07f, 0}, fine = 0.003f;
    uint8_t want[4];
    qsim_builder *b = begin(13, "float[1,4,6,7]");
    qsim_builder_constant_as(b, "fine", "float[]", &fine);
    qsim_builder_constant_as(b, "bias", "float[4]", bias);
    qsim_builder_constant_as(b, "w_q", "int8[4,4,1,1]", w);
    qsim_builder_constant_as(b, "w_z", "int8[]", &zero);
    qsim_builder_node(b, "", "DequantizeLinear", "", "w_q,s1,w_z", "w");
    qsim_builder_node(b, "", "QuantizeLinear", "", "x,s0,z1", "xq");
    qsim_builder_node(b, "", "DequantizeLinear", "", "xq,s0,z1", "xd");
    qsim_builder_node(b, "", "Conv", "", "xd,w,bias", "c");
    qsim_builder_node(b, "", "QuantizeLinear", "", "c,fine,z1", "y");
    qsim_builder_output_as(b, "y", NULL);
    qsim_model *m = end(b);
    CHECK_INT(qsim_values_quantize(bias, 4, fine, 131, QSIM_UINT8, want), 0);
    run(m, QSIM_LEVEL_ALL, NULL, 0, &y);
    for (int i = 0; i < 4; i++)
        CHECK_INT(y.bytes[0][i * 42], want[i]);
    check(m, "y", "c");
}

/* The number of elements of a number, which has no sizes. */
static void size_of_number(void) {
    qsim_builder *b = begin(13, "float[2]");
    qsim_builder_node(b, "", "ReduceMax", "", "x", "most");
    qsim_builder_attr_int(b, "keepdims", 0);
    qsim_builder_node(b, "", "Size", "", "most", "y");
    qsim_builder_output_as(b, "y", NULL);
    check(end(b), "y", NULL);
}

int main(void) {
    size_of_number();
    slope_of_three_axes();
    contributed();
    greatest_signed();
    dropout();
    twice();
    concat_of_floats();
    names();
    shared_weights();
    coarse_sums();
    return test_done();
}
