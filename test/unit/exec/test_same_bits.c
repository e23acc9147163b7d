/* SPDX-License-Identifier: MIT */
/*
 * The same bits for any threads, batch and instruction set: SHA-256 over outputs. Networks of
 * ../shared/models if they exist, and two made here.
 */
#include "net.h"

#include <qsim/model.h>
#include <qsim/ptq.h>

typedef struct made {
    qsim_run *run;
    qsim_session *session;
    qsim_ctx *ctx;
} made;

static bool make_run(made *m, const qsim_model *source, const char *path, int32_t isa,
                     int32_t threads) {
    qsim_ctx_options o = {.struct_size = sizeof(o), .isa = isa, .threads = threads};
    qsim_model *model = NULL;
    qsim_error e = {0};
    static uint8_t file[1 << 22];
    size_t size = 0;
    CHECK_INT(qsim_ctx_create(&o, &m->ctx, &e), 0);
    if (source) {
        CHECK_INT(qsim_model_save_memory(source, file, sizeof(file), &size, &e), 0);
        CHECK_INT(qsim_model_load_memory(m->ctx, file, size, NULL, &model, &e), 0);
    } else {
        CHECK_INT(qsim_model_load(m->ctx, path, NULL, &model, &e), 0);
    }
    int code = qsim_session_create(model, NULL, &m->session, &e);
    if (!code)
        code = qsim_run_create(m->session, &m->run, &e);
    CHECK_INT(code, 0);
    if (code)
        fprintf(stderr, "  %s\n", e.message);
    qsim_model_free(model);
    return !code;
}

static void drop(made *m) {
    qsim_run_free(m->run);
    qsim_session_free(m->session);
    qsim_ctx_free(m->ctx);
}

/* Hash of output 0 for `batch` samples of pseudo-random input, `at_once` at a time. */
static void hash_run(made *m, const int64_t *shape, int32_t rank, int64_t batch, int64_t at_once,
                     char hex[65]) {
    int64_t dims[QSIM_MAX_RANK];
    size_t sample = 1;
    qs_sha256 h;
    uint64_t state = 42;
    for (int32_t i = 1; i < rank; i++) {
        dims[i] = shape[i];
        sample *= (size_t)shape[i];
    }
    float *x = malloc(sample * (size_t)batch * sizeof(float));
    for (size_t i = 0; i < sample * (size_t)batch; i++)
        x[i] = (float)(test_random(&state) % 2048) / 1024 - 1;
    qs_sha256_init(&h);
    for (int64_t i = 0; i < batch; i += at_once) {
        qsim_error e = {0};
        dims[0] = at_once;
        qsim_tensor in = net_tensor(QSIM_FLOAT, rank, dims, x + (size_t)i * sample), out = {0};
        int code = qsim_run_execute(m->run, &in, 1, &out, 1, &e);
        CHECK_INT(code, 0);
        if (code)
            fprintf(stderr, "  %s\n", e.message);
        else
            qs_sha256_add(&h, out.data, out.bytes);
    }
    qs_sha256_hex(&h, hex);
    free(x);
}

static void compare(const qsim_model *source, const char *path, const int64_t *shape, int32_t rank,
                    int64_t batch) {
    char want[65], got[65];
    made m = {0};
    if (!make_run(&m, source, path, QSIM_ISA_C, 1)) {
        drop(&m);
        return;
    }
    hash_run(&m, shape, rank, batch, 1, want);
    if (batch > 1) {
        hash_run(&m, shape, rank, batch, batch, got);
        CHECK_STR(got, want);
    }
    drop(&m);
    for (int32_t isa = QSIM_ISA_C; qsim_isa_name(isa); isa++)
        for (size_t i = 0; i < 4 && qsim_isa_available(isa); i++) {
            static const int32_t threads[] = {1, 2, 3, 7};
            m = (made){0};
            if (make_run(&m, source, path, isa, threads[i])) {
                hash_run(&m, shape, rank, batch, batch > 1 ? batch / 2 : 1, got);
                CHECK_STR(got, want);
            }
            drop(&m);
        }
}

/* Checks a model quantized dynamically, with one scale for a whole batch. */
static void compare_dynamic(const qsim_model *m, const int64_t *shape, int32_t rank) {
    const qsim_quantize_options o = {.struct_size = sizeof(o), .mode = QSIM_MODE_DYNAMIC};
    qsim_model *q = NULL;
    CHECK_INT(qsim_quantize(m, NULL, &o, &q, NULL), QSIM_OK);
    if (q)
        compare(q, NULL, shape, rank, 1);
    qsim_model_free(q);
}

/* Large enough that work is split over threads. */
static void float_net(void) {
    net n;
    const int64_t pads[] = {1, 1, 1, 1}, kernel[] = {2, 2}, shape[] = {-1, 5, 38, 30};
    net_begin(&n, NULL, 13);
    net_input(&n, "x", QSIM_FLOAT, 4, shape);
    net_random(&n, "w1", NET_DIMS(40, 5, 3, 3), 1, 0.3f);
    net_random(&n, "b1", NET_DIMS(40), 2, 1);
    net_random(&n, "w2", NET_DIMS(40, 1, 3, 3), 3, 0.5f);
    net_random(&n, "w3", NET_DIMS(40 * 19 * 15, 21), 4, 0.1f);
    qs_id c = net_node(&n, "", "Conv", "x,w1,b1", "c1");
    net_ints(&n, c, "pads", 4, pads);
    net_node(&n, "", "Sigmoid", "c1", "s1");
    c = net_node(&n, "", "Conv", "s1,w2", "c2");
    net_ints(&n, c, "pads", 4, pads);
    qs_node_set_int(n.g, c, "group", 40);
    net_node(&n, "", "Add", "c2,s1", "a");
    c = net_node(&n, "", "AveragePool", "a", "p");
    net_ints(&n, c, "kernel_shape", 2, kernel);
    net_ints(&n, c, "strides", 2, kernel);
    net_node(&n, "", "Flatten", "p", "f");
    net_node(&n, "", "MatMul", "f,w3", "m");
    net_node(&n, "", "Softmax", "m", "y");
    net_output(&n, "y");
    NET_OK(&n, net_end(&n));
    compare(n.model, NULL, shape, 4, 4);
    compare_dynamic(n.model, shape, 4);
    net_free(&n);
}

static void shared_nets(void) {
    static const struct {
        const char *name;
        int64_t batch, shape[4];
    } nets[] = {
        {"models/fashion_lenetlite.onnx", 8, {1, 1, 28, 28}},
        {"models/fashion_mobilenetv2_tiny.onnx", 2, {1, 1, 28, 28}},
        {"models/mlptiny_ic_resnet8_int8.onnx", 4, {1, 3, 32, 32}},
        {"models/mlptiny_kws_dscnn_int8.onnx", 4, {1, 1, 49, 10}},
    };
    char path[1024];
    for (size_t i = 0; i < QS_COUNT(nets); i++)
        compare(NULL, test_shared(nets[i].name, path), nets[i].shape, 4, nets[i].batch);
}

static void dynamic_nets(void) {
    static const struct {
        const char *name;
        int64_t shape[4];
    } nets[] = {
        {"models/fashion_mobilenetv2_tiny.onnx", {1, 1, 28, 28}},
        {"models/fashion_resnet8.onnx", {1, 1, 28, 28}},
        {"models/mlptiny_kws_dscnn_fp32.onnx", {1, 1, 49, 10}},
    };
    char path[1024];
    for (size_t i = 0; i < QS_COUNT(nets); i++) {
        qsim_model *m = NULL;
        CHECK_INT(qsim_model_load(NULL, test_shared(nets[i].name, path), NULL, &m, NULL), 0);
        compare_dynamic(m, nets[i].shape, 4);
        qsim_model_free(m);
    }
}

int main(void) {
    float_net();
    shared_nets();
    dynamic_nets();
    return test_done();
}
