/* SPDX-License-Identifier: MIT */
/*
 * qsim_model_optimize on trained networks: a model optimized at each level, saved, loaded and run
 * at each level has the same outputs and integer tensors; optimizing again changes nothing.
 */
#include "test.h"

#include <math.h>
#include <stdbool.h>
#include <qsim/qsim.h>

#define MAX_NAMES 256

typedef struct case_ {
    const char *file;
    int32_t rank;
    int64_t dims[4];
    bool integer; /* has quantized tensors: all outputs are equal bit for bit */
} net_case;

/* The outputs of a session of one model. */
typedef struct outputs {
    qsim_session *session;
    qsim_run *run;
    qsim_tensor t[MAX_NAMES];
    size_t count;
} outputs;

static void execute(const qsim_model *m, const char *const *names, size_t count, int32_t level,
                    const qsim_tensor *x, outputs *o) {
    qsim_session_options so = {
        .struct_size = sizeof(so), .outputs = names, .output_count = count, .level = level};
    qsim_error e = {.message = ""};
    memset(o, 0, sizeof(*o));
    int code = qsim_session_create(m, &so, &o->session, &e);
    if (!code)
        code = qsim_run_create(o->session, &o->run, &e);
    o->count = (size_t)qsim_session_output_count(o->session);
    if (!code)
        code = qsim_run_execute(o->run, x, 1, o->t, o->count, &e);
    CHECK_STR(e.message, "");
    CHECK_INT(code, 0);
}

static void done(outputs *o) {
    qsim_run_free(o->run);
    qsim_session_free(o->session);
}

static void compare(const outputs *a, const outputs *b, bool exact) {
    CHECK_INT(a->count, b->count);
    for (size_t i = 0; i < a->count && i < b->count; i++) {
        const qsim_tensor *x = &a->t[i], *y = &b->t[i];
        CHECK_INT(x->bytes, y->bytes);
        if (exact || x->dtype != QSIM_FLOAT) {
            CHECK(x->bytes == y->bytes && memcmp(x->data, y->data, x->bytes) == 0);
            continue;
        }
        const float *p = x->data, *q = y->data;
        double largest = 0, difference = 0;
        for (size_t k = 0; k < x->bytes / 4 && k < y->bytes / 4; k++) {
            largest = fmax(largest, fabs((double)p[k]));
            difference = fmax(difference, fabs((double)p[k] - (double)q[k]));
        }
        CHECK(largest > 0);
        CHECK(difference <= 1e-5 * largest);
    }
}

/* ---- models ---- */

static void *save(const qsim_model *m, size_t *size) {
    CHECK_INT(qsim_model_save_memory(m, NULL, 0, size, NULL), 0);
    void *bytes = malloc(*size + 1);
    CHECK_INT(qsim_model_save_memory(m, bytes, *size, size, NULL), 0);
    return bytes;
}

static qsim_model *optimize(const qsim_model *m, int32_t level) {
    qsim_model *out = NULL;
    qsim_error e = {.message = ""};
    CHECK_INT(qsim_model_optimize(m, level, &out, &e), 0);
    CHECK_STR(e.message, "");
    return out;
}

static bool has_domain(const qsim_model *m, const char *domain) {
    for (int32_t i = 0; i < qsim_model_node_count(m); i++) {
        qsim_node_info n = {.struct_size = sizeof(n)};
        if (qsim_model_node(m, i, &n) == 0 && strcmp(n.domain, domain) == 0)
            return true;
    }
    return false;
}

/* 8-bit tensors computed by both models. */
static size_t integer_names(const qsim_model *a, const qsim_model *b, const char **names) {
    size_t count = 0;
    for (int32_t i = 0; i < qsim_model_value_count(a); i++) {
        qsim_value_info v = {.struct_size = sizeof(v)}, w = {.struct_size = sizeof(w)};
        if (qsim_model_value(a, i, &v) || v.data || (v.dtype != QSIM_UINT8 && v.dtype != QSIM_INT8))
            continue;
        bool there = false;
        for (int32_t k = 0; k < qsim_model_value_count(b) && !there; k++)
            there = qsim_model_value(b, k, &w) == 0 && strcmp(v.name, w.name) == 0 && !w.data;
        if (there && count < MAX_NAMES)
            names[count++] = v.name;
    }
    return count;
}

static void same_integers(const qsim_model *m, const qsim_model *o, const qsim_tensor *x) {
    static const char *names[MAX_NAMES];
    static outputs a, b;
    const size_t count = integer_names(m, o, names);
    CHECK(count > 8);
    execute(m, names, count, QSIM_LEVEL_DISABLE, x, &a);
    execute(o, names, count, QSIM_LEVEL_DISABLE, x, &b);
    compare(&a, &b, true);
    done(&a);
    done(&b);
}

/* The optimized model, loaded from its file. */
static void at_level(const net_case *c, const qsim_model *m, int32_t level, const qsim_tensor *x,
                     const outputs *wanted) {
    static outputs got;
    size_t size, again_size;
    qsim_model *made = optimize(m, level), *o = NULL, *again;
    qsim_error e = {.message = ""};
    void *bytes = save(made, &size);
    CHECK_INT(qsim_model_load_memory(NULL, bytes, size, NULL, &o, &e), 0);
    CHECK_STR(e.message, "");
    CHECK(!has_domain(o, "qsim"));
    CHECK(qsim_model_node_count(o) <= qsim_model_node_count(m));
    for (int32_t run = QSIM_LEVEL_DISABLE; run <= QSIM_LEVEL_ALL; run++) {
        execute(o, NULL, 0, run, x, &got);
        compare(wanted, &got, c->integer);
        done(&got);
    }
    if (c->integer)
        same_integers(m, o, x);
    again = optimize(o, level);
    void *again_bytes = save(again, &again_size);
    if (level > QSIM_LEVEL_DISABLE)
        CHECK(again_size == size && memcmp(again_bytes, bytes, size) == 0);
    qsim_model_free(again);
    qsim_model_free(o);
    qsim_model_free(made);
    free(again_bytes);
    free(bytes);
}

static void check(const net_case *c) {
    static float x[150528];
    static outputs wanted;
    char path[1024], file[256];
    qsim_model *m = NULL;
    qsim_error e = {.message = ""};
    uint64_t state = 7;
    qsim_tensor in = {.dtype = QSIM_FLOAT, .rank = c->rank, .dims = c->dims, .data = x};
    for (size_t i = 0; i < sizeof(x) / sizeof(*x); i++)
        x[i] = (float)(test_random(&state) >> 8) * (2.0f / 16777216.0f) - 1;
    snprintf(file, sizeof(file), "models/%s.onnx", c->file);
    qsim_tensor_size(in.dtype, in.rank, in.dims, NULL, &in.bytes);
    CHECK(in.bytes <= sizeof(x));
    CHECK_INT(qsim_model_load(NULL, test_shared(file, path), NULL, &m, &e), 0);
    CHECK_STR(e.message, "");
    execute(m, NULL, 0, QSIM_LEVEL_DISABLE, &in, &wanted);
    for (int32_t level = QSIM_LEVEL_DISABLE; level <= QSIM_LEVEL_ALL; level++)
        at_level(c, m, level, &in, &wanted);
    done(&wanted);
    qsim_model_free(m);
}

/* Most nodes of a quantized network become integer operators in the file. */
static void pairs_are_gone(void) {
    char path[1024];
    qsim_model *m = NULL;
    CHECK_INT(qsim_model_load(NULL, test_shared("models/mlptiny_ic_resnet8_int8.onnx", path), NULL,
                              &m, NULL),
              0);
    qsim_model *o = optimize(m, QSIM_LEVEL_EXTENDED);
    CHECK_INT(qsim_model_node_count(m), 76);
    CHECK_INT(qsim_model_node_count(o), 24);
    CHECK(has_domain(o, "com.microsoft"));
    CHECK_INT(qsim_model_opset(o, "com.microsoft"), 1);
    qsim_model *b = optimize(m, QSIM_LEVEL_BASIC);
    CHECK_INT(qsim_model_opset(b, "com.microsoft"), 0);
    qsim_model_free(b);
    qsim_model_free(o);
    qsim_model_free(m);
}

int main(void) {
    static const net_case cases[] = {
        {"fashion_lenetlite", 4, {3, 1, 28, 28}, false},
        {"fashion_resnet8", 4, {2, 1, 28, 28}, false},
        {"fashion_mobilenetv2_tiny", 4, {2, 1, 28, 28}, false},
        {"mnist-8", 4, {1, 1, 28, 28}, false},
        {"mlptiny_kws_dscnn_fp32", 4, {2, 1, 49, 10}, false},
        {"squeezenet1.1_fp32_from_fp16", 4, {1, 3, 224, 224}, false},
        {"mobilenet_v1_025_224_imagenet", 4, {1, 3, 224, 224}, false},
        {"shufflenet-v2-12_fp32_dequantized", 4, {1, 3, 224, 224}, false},
        {"mlptiny_kws_dscnn_int8", 4, {2, 1, 49, 10}, true},
        {"mlptiny_ic_resnet8_int8", 4, {2, 3, 32, 32}, true},
        {"coral_mobilenet_v2_1.0_224_qdq", 4, {1, 3, 224, 224}, true},
        {"shufflenet-v2-12-int8", 4, {1, 3, 224, 224}, true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        check(&cases[i]);
    pairs_are_gone();
    return test_done();
}
