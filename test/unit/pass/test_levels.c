/* SPDX-License-Identifier: MIT */
/*
 * qsim_model_optimize on trained networks: a model optimized at each level, saved, loaded and run
 * at each level has the same outputs and integer tensors; optimizing again changes nothing. Then
 * parameters of quantization as PyTorch writes them.
 */
#include "net.h"

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

/* ---- scales and zero points of one element and one axis ---- */

/* Every scale, and every zero point, of a node of com.microsoft is a scalar. */
static void check_scalars(const qs_graph *g, const char *op_type, int wanted) {
    int found = 0;
    for (size_t i = 0; i < g->order_count; i++) {
        const qs_node *n = &g->nodes[g->order[i]];
        if (!qs_node_is(n, "com.microsoft", op_type))
            continue;
        found++;
        for (int32_t k = 0; k < n->input_count; k++)
            if (g->values[n->inputs[k]].data)
                CHECK_INT(g->values[n->inputs[k]].rank, 0);
    }
    CHECK_INT(found, wanted);
}

/*
 * PyTorch writes scales of shape [1], which are one for a tensor all the same. ONNX Runtime refuses
 * such in operators of com.microsoft: "Scale and Zero-point must be a scalar".
 */
static void scalars(void) {
    float x[12];
    outputs a, b;
    net n;
    qsim_model *o = NULL;
    for (int i = 0; i < 12; i++)
        x[i] = (float)(i * i % 7) * 0.3f - 0.7f;
    net_begin(&n, NULL, 13);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(1, 3, 2, 2));
    net_pair(&n, "x", QSIM_UINT8, 0.01f, 100, 1);
    const qs_id pool = net_node(&n, "", "AveragePool", "x_d", "p");
    CHECK_INT(qs_node_set_ints(n.g, pool, "kernel_shape", (const int64_t[]){1, 1}, 2), 0);
    net_pair(&n, "p", QSIM_UINT8, 0.015f, 100, 1);
    net_node(&n, "", "Add", "x_d,p_d", "a");
    net_pair(&n, "a", QSIM_UINT8, 0.02f, 100, 1);
    net_node(&n, "", "Mul", "a_d,x_d", "m");
    net_pair(&n, "m", QSIM_UINT8, 0.03f, 100, 1);
    const qs_id concat = net_node(&n, "", "Concat", "m_d,a_d", "c");
    CHECK_INT(qs_node_set_int(n.g, concat, "axis", 1), 0);
    net_pair(&n, "c", QSIM_UINT8, 0.04f, 100, 1);
    net_output(&n, "c_d");
    NET_OK(&n, net_end(&n));
    const qsim_tensor in = net_tensor(QSIM_FLOAT, 4, (const int64_t[]){1, 3, 2, 2}, x);
    o = optimize(n.model, QSIM_LEVEL_EXTENDED);
    check_scalars(o->graph, "QLinearAdd", 1);
    check_scalars(o->graph, "QLinearMul", 1);
    check_scalars(o->graph, "QLinearConcat", 1);
    check_scalars(o->graph, "QLinearAveragePool", 1);
    execute(n.model, NULL, 0, QSIM_LEVEL_DISABLE, &in, &a);
    execute(o, NULL, 0, QSIM_LEVEL_DISABLE, &in, &b);
    compare(&a, &b, true);
    done(&a);
    done(&b);
    qsim_model_free(o);
    net_free(&n);
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
    scalars();
    return test_done();
}
