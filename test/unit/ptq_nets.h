/* SPDX-License-Identifier: MIT */
/* Small networks and data for the tests of lib/ptq, made with the public builder. */
#ifndef QS_TEST_PTQ_NETS_H
#define QS_TEST_PTQ_NETS_H

#include <math.h>

#include "test.h"

#include <qsim/ptq.h>
#include <qsim/session.h>

/* A float constant of random values in +-size, made from `seed`. */
static inline void net_constant(qsim_builder *b, const char *name, int rank, const int64_t *dims,
                                float size, uint64_t seed) {
    static float data[600000];
    size_t n = 0;
    seed = seed * 7919 + 12345;
    CHECK_INT(qsim_tensor_size(QSIM_FLOAT, rank, dims, &n, NULL), QSIM_OK);
    CHECK(n <= sizeof(data) / sizeof(*data));
    for (size_t i = 0; i < n; i++)
        data[i] = ((float)test_random(&seed) / 2147483648.0f - 1) * size;
    qsim_tensor t = {QSIM_FLOAT, rank, dims, data, n * sizeof(float)};
    CHECK_INT(qsim_builder_constant(b, name, &t), QSIM_OK);
}

static inline qsim_model *net_finish(qsim_builder *b) {
    qsim_model *m = NULL;
    qsim_error e = {0};
    if (qsim_builder_finish(b, &m, &e))
        fprintf(stderr, "%s\n", e.message);
    CHECK(m != NULL);
    qsim_builder_free(b);
    return m;
}

/* LeNet on 12x12: conv(1->4, 3x3) relu pool conv(4->6, 3x3) relu flatten fc(54->16) relu fc(16->5).
 */
static inline qsim_model *net_lenet(void) {
    qsim_builder *b = NULL;
    const char *symbol[4] = {"N", NULL, NULL, NULL};
    const int64_t two[2] = {2, 2};
    CHECK_INT(qsim_builder_create(NULL, 13, "lenet", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, 4, (int64_t[]){-1, 1, 12, 12}, symbol);
    qsim_builder_output(b, "y", QSIM_FLOAT, 2, (int64_t[]){-1, 5}, symbol);
    net_constant(b, "w1", 4, (int64_t[]){4, 1, 3, 3}, 0.5f, 1);
    net_constant(b, "b1", 1, (int64_t[]){4}, 0.3f, 2);
    net_constant(b, "w2", 4, (int64_t[]){6, 4, 3, 3}, 0.3f, 3);
    net_constant(b, "b2", 1, (int64_t[]){6}, 0.3f, 4);
    net_constant(b, "w3", 2, (int64_t[]){16, 54}, 0.2f, 5);
    net_constant(b, "b3", 1, (int64_t[]){16}, 0.3f, 6);
    net_constant(b, "w4", 2, (int64_t[]){16, 5}, 0.4f, 7);
    net_constant(b, "b4", 1, (int64_t[]){5}, 0.3f, 8);
    qsim_builder_node(b, "", "Conv", "conv1", "x,w1,b1", "c1");
    qsim_builder_node(b, "", "Relu", "relu1", "c1", "r1");
    qsim_builder_node(b, "", "MaxPool", "pool1", "r1", "p1");
    qsim_builder_attr_ints(b, "kernel_shape", two, 2);
    qsim_builder_attr_ints(b, "strides", two, 2);
    qsim_builder_node(b, "", "Conv", "conv2", "p1,w2,b2", "c2");
    qsim_builder_node(b, "", "Relu", "relu2", "c2", "r2");
    qsim_builder_node(b, "", "Flatten", "flat", "r2", "f");
    qsim_builder_node(b, "", "Gemm", "fc1", "f,w3,b3", "g1");
    qsim_builder_attr_int(b, "transB", 1);
    qsim_builder_node(b, "", "Relu", "relu3", "g1", "r3");
    qsim_builder_node(b, "", "Gemm", "fc2", "r3,w4,b4", "y");
    return net_finish(b);
}

/* ---- steps between two convolutions ---- */

/* A node "op inputs output"; the node is called like its output. */
typedef struct net_step {
    const char *op, *inputs, *output;
} net_step;

static inline void net_numbers(qsim_builder *b) {
    static const struct {
        const char *name;
        float value;
    } list[] = {{"zero", 0}, {"least", 1e-6f}, {"one", 1},      {"three", 3},
                {"six", 6},  {"half", 0.5f},   {"root", 1.414f}};
    for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++) {
        qsim_tensor t = {QSIM_FLOAT, 0, NULL, (void *)(uintptr_t)&list[i].value, 4};
        CHECK_INT(qsim_builder_constant(b, list[i].name, &t), QSIM_OK);
    }
}

/* x -> Conv -> c -> steps -> r -> Conv -> y; `output`: another output, or NULL. */
static inline qsim_model *net_between(const net_step *steps, const char *output) {
    qsim_builder *b = NULL;
    CHECK_INT(qsim_builder_create(NULL, 13, "between", &b, NULL), QSIM_OK);
    qsim_builder_input_as(b, "x", "float[N,4,8,8]");
    qsim_builder_output(b, "y", QSIM_FLOAT, -1, NULL, NULL);
    if (output)
        qsim_builder_output(b, output, QSIM_FLOAT, -1, NULL, NULL);
    net_numbers(b);
    net_constant(b, "w", 4, (int64_t[]){4, 4, 1, 1}, 6, 1);
    net_constant(b, "v", 4, (int64_t[]){4, 4, 1, 1}, 1, 2);
    qsim_builder_node(b, "", "Conv", "first", "x,w", "c");
    for (; steps->op; steps++)
        qsim_builder_node(b, "", steps->op, steps->output, steps->inputs, steps->output);
    qsim_builder_node(b, "", "Conv", "second", "r,v", "y");
    return net_finish(b);
}

/* Fills one batch of `n` samples of 144 values in [0, 1). */
static inline void net_batch(float *x, int n, uint64_t seed) {
    seed = seed * 2654435761u + 99;
    for (int i = 0; i < 144 * n; i++)
        x[i] = (float)test_random(&seed) / 4294967296.0f;
}

static inline qsim_calibration *net_calibrate(const qsim_model *m, int batches) {
    static float x[144 * 8];
    const int64_t dims[4] = {8, 1, 12, 12};
    qsim_tensor t = {QSIM_FLOAT, 4, dims, x, sizeof(x)};
    qsim_calibration *c = NULL;
    qsim_error e = {0};
    if (qsim_calibration_create(m, NULL, &c, &e))
        fprintf(stderr, "%s\n", e.message);
    CHECK(c != NULL);
    for (int i = 0; c && i < batches; i++) {
        net_batch(x, 8, 100 + (uint64_t)i);
        CHECK_INT(qsim_calibration_feed(c, &t, 1, &e), QSIM_OK);
    }
    return c;
}

/* Layer `index` with its scheme; its texts are in `room`. */
typedef struct net_layers {
    int32_t wanted, seen;
    qsim_layer_info info;
    char name[64], op_type[32];
} net_layers;

static inline int32_t net_see_layer(void *user, const qsim_layer_info *layer) {
    net_layers *l = user;
    if (l->seen++ != l->wanted)
        return 0;
    l->info = *layer;
    snprintf(l->name, sizeof(l->name), "%s", layer->name);
    snprintf(l->op_type, sizeof(l->op_type), "%s", layer->op_type);
    return 0;
}

static inline net_layers net_layer(const qsim_model *m, const qsim_calibration *c,
                                   const qsim_quantize_options *o, int32_t index) {
    net_layers l = {.wanted = index};
    CHECK(qsim_quantize_layers(m, c, o, net_see_layer, &l, NULL) > index);
    CHECK(l.info.struct_size == sizeof(l.info));
    return l;
}

static inline int32_t net_layer_count(const qsim_model *m) {
    return qsim_quantize_layers(m, NULL, NULL, NULL, NULL, NULL);
}

/* Runs one input through a model; writes the first output's floats and returns their number. */
static inline size_t net_run(const qsim_model *m, qsim_tensor *x, float *y, size_t capacity) {
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    qsim_error e = {0};
    qsim_tensor out[4] = {{0}};
    size_t n = 0, outputs = (size_t)qsim_model_output_count(m);
    if (qsim_session_create(m, NULL, &s, &e) || qsim_run_create(s, &r, &e) ||
        qsim_run_execute(r, x, 1, out, outputs, &e))
        fprintf(stderr, "%s\n", e.message);
    CHECK_INT(e.code, QSIM_OK);
    if (!e.code && out[0].dtype == QSIM_FLOAT && out[0].bytes <= capacity * sizeof(float)) {
        memcpy(y, out[0].data, out[0].bytes);
        n = out[0].bytes / sizeof(float);
    }
    qsim_run_free(r);
    qsim_session_free(s);
    return n;
}

/* The node with this operator and name; NULL if there is none. */
static inline int net_find(const qsim_model *m, const char *op, const char *name,
                           qsim_node_info *info) {
    for (int32_t i = 0; i < qsim_model_node_count(m); i++) {
        *info = (qsim_node_info){.struct_size = sizeof(*info)};
        CHECK_INT(qsim_model_node(m, i, info), QSIM_OK);
        if (strcmp(info->op_type, op) == 0 && (!name || strcmp(info->name, name) == 0))
            return 1;
    }
    return 0;
}

/* The index of the node with this name; -1 if there is none. */
static inline int32_t net_index(const qsim_model *m, const char *name) {
    qsim_node_info info = {.struct_size = sizeof(info)};
    for (int32_t i = 0; qsim_model_node(m, i, &info) == QSIM_OK; i++)
        if (strcmp(info.name, name) == 0)
            return i;
    return -1;
}

static inline int net_count(const qsim_model *m, const char *op) {
    int n = 0;
    for (int32_t i = 0; i < qsim_model_node_count(m); i++) {
        qsim_node_info info = {.struct_size = sizeof(info)};
        CHECK_INT(qsim_model_node(m, i, &info), QSIM_OK);
        n += strcmp(info.op_type, op) == 0;
    }
    return n;
}

static inline int net_value(const qsim_model *m, const char *name, qsim_value_info *info) {
    for (int32_t i = 0; i < qsim_model_value_count(m); i++) {
        *info = (qsim_value_info){.struct_size = sizeof(*info)};
        CHECK_INT(qsim_model_value(m, i, info), QSIM_OK);
        if (strcmp(info->name, name) == 0)
            return 1;
    }
    return 0;
}

/* qsim_quantize, which must succeed. */
static inline qsim_model *net_quantize(const qsim_model *m, const qsim_calibration *c,
                                       const qsim_quantize_options *o) {
    qsim_model *q = NULL;
    qsim_error e = {0};
    if (qsim_quantize(m, c, o, &q, &e))
        fprintf(stderr, "%s\n", e.message);
    CHECK(q != NULL);
    return q;
}

/* qsim_quantize refuses with this code and a message that has `text` in it. */
static inline void net_refused(const qsim_model *m, const qsim_calibration *c,
                               const qsim_quantize_options *o, int code, const char *text) {
    qsim_model *q = NULL;
    qsim_error e = {0};
    CHECK_INT(qsim_quantize(m, c, o, &q, &e), code);
    CHECK(q == NULL && strstr(e.message, text) != NULL);
    qsim_model_free(q);
}

/* qsim_model_convert_to, which must succeed. */
static inline qsim_model *net_convert(const qsim_model *m, int32_t format) {
    qsim_model *made = NULL;
    qsim_error e = {0};
    if (qsim_model_convert_to(m, format, &made, &e))
        fprintf(stderr, "%s\n", e.message);
    CHECK(made != NULL);
    return made;
}

/* Are two small models saved as the same bytes? */
static inline int net_same_bytes(const qsim_model *a, const qsim_model *b) {
    static char x[1 << 16], y[1 << 16];
    size_t n = 0, m = 0;
    CHECK_INT(qsim_model_save_memory(a, x, sizeof(x), &n, NULL), QSIM_OK);
    CHECK_INT(qsim_model_save_memory(b, y, sizeof(y), &m, NULL), QSIM_OK);
    CHECK(n > 0 && n <= sizeof(x));
    return n == m && memcmp(x, y, n) == 0;
}

/* Constants of one element: a scale, and the zero point of uint8. */
static inline void net_scale(qsim_builder *b, const char *scale, const char *zero, float s,
                             uint8_t z) {
    CHECK_INT(qsim_builder_constant_as(b, scale, "float[]", &s), QSIM_OK);
    CHECK_INT(qsim_builder_constant_as(b, zero, "uint8[]", &z), QSIM_OK);
}

/* KL of two rows of 5 logits, in libm. */
static inline double net_kl(const float *y, const float *z) {
    double sum_y = 0, sum_z = 0, result = 0;
    for (int i = 0; i < 5; i++) {
        sum_y += exp((double)y[i]);
        sum_z += exp((double)z[i]);
    }
    for (int i = 0; i < 5; i++) {
        const double p = exp((double)y[i]) / sum_y, q = exp((double)z[i]) / sum_z;
        result += p * log(p / q);
    }
    return result;
}

#endif
