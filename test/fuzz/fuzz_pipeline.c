/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer target: bytes as a model that goes the whole way: session, run, calibration, both forms
 * of quantization, and a run of what came out. Nothing may crash, and no error may be INTERNAL.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <qsim/qsim.h>

#include "fuzz.h"

#define MOST_INPUTS  4
#define MOST_OUTPUTS 8
#define MOST_BYTES   (1u << 16) /* of one input */
#define MOST_MEMORY  ((size_t)1 << 28)

/* A model may ask for much memory: it gets NOMEM before the machine does. */
static atomic_size_t in_use;

static void *bounded_alloc(void *user, size_t size, size_t align) {
    (void)user;
    if (size > MOST_MEMORY || atomic_fetch_add(&in_use, size) + size > MOST_MEMORY) {
        if (size <= MOST_MEMORY)
            atomic_fetch_sub(&in_use, size);
        return NULL;
    }
    void *p = aligned_alloc(align, (size + align - 1) / align * align);
    if (!p)
        abort();
    return p;
}

static void bounded_free(void *user, void *ptr, size_t size) {
    (void)user;
    atomic_fetch_sub(&in_use, size);
    free(ptr);
}

static qsim_ctx *context(void) {
    qsim_allocator a = {bounded_alloc, bounded_free, NULL};
    qsim_ctx_options o = {.struct_size = sizeof(o), .allocator = &a, .threads = 1};
    qsim_ctx *ctx = NULL;
    if (qsim_ctx_create(&o, &ctx, NULL))
        abort();
    return ctx;
}

static int legal(int code) {
    if (code == QSIM_E_INTERNAL)
        abort();
    return code;
}

/* Inputs as the model declares them, unknown sizes 1. */
typedef struct feed {
    qsim_tensor x[MOST_INPUTS];
    int64_t dims[MOST_INPUTS][QSIM_MAX_RANK];
    size_t count;
} feed;

static int feed_one(const qsim_model *m, int32_t i, feed *f) {
    qsim_value_info v = {.struct_size = sizeof(v)};
    qsim_tensor *t = &f->x[i];
    if (qsim_model_input(m, i, &v) || v.rank < 0)
        return 0;
    for (int32_t k = 0; k < v.rank; k++)
        f->dims[i][k] = v.dims[k] < 0 ? 1 : v.dims[k];
    *t = (qsim_tensor){v.dtype, v.rank, f->dims[i], NULL, 0};
    if (qsim_tensor_size(t->dtype, t->rank, t->dims, NULL, &t->bytes) || t->bytes > MOST_BYTES)
        return 0;
    t->data = malloc(t->bytes + 1);
    uint8_t *p = t->data;
    for (size_t k = 0; p && k < t->bytes; k++)
        p[k] = (uint8_t)(k % 4 == 3 ? 0x3e : k); /* floats a little over 0.1; anything else */
    f->count = (size_t)i + 1;
    return p != NULL;
}

static int feed_all(const qsim_model *m, feed *f) {
    int32_t n = qsim_model_input_count(m);
    memset(f, 0, sizeof(*f));
    if (n > MOST_INPUTS || qsim_model_output_count(m) > MOST_OUTPUTS)
        return 0;
    for (int32_t i = 0; i < n; i++)
        if (!feed_one(m, i, f))
            return 0;
    return 1;
}

static void feed_free(feed *f) {
    for (size_t i = 0; i < f->count; i++)
        free(f->x[i].data);
}

/* Whatever runs gives outputs that can be read to their last byte. */
static void execute(const qsim_model *m, int32_t level, const feed *f) {
    qsim_session_options o = {.struct_size = sizeof(o), .level = level};
    qsim_tensor y[MOST_OUTPUTS] = {{0}};
    size_t outputs = (size_t)qsim_model_output_count(m);
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    static volatile uint8_t sink;
    if (legal(qsim_session_create(m, &o, &s, NULL)))
        return;
    if (legal(qsim_run_create(s, &r, NULL)) == 0 &&
        legal(qsim_run_execute(r, f->x, f->count, y, outputs, NULL)) == 0)
        for (size_t i = 0; i < outputs; i++)
            for (size_t k = 0; k < y[i].bytes; k++)
                sink = (uint8_t)(sink + ((const uint8_t *)y[i].data)[k]);
    qsim_run_free(r);
    qsim_session_free(s);
}

static void quantize(const qsim_model *m, const feed *f) {
    qsim_calibration *c = NULL;
    if (legal(qsim_calibration_create(m, NULL, &c, NULL)) == 0 &&
        legal(qsim_calibration_feed(c, f->x, f->count, NULL)) == 0)
        for (int32_t format = 0; format < 2; format++) {
            qsim_quantize_options o = {
                .struct_size = sizeof(o), .format = format, .method = format * QSIM_METHOD_MSE};
            qsim_model *q = NULL;
            if (legal(qsim_quantize(m, c, &o, &q, NULL)) == 0)
                execute(q, QSIM_LEVEL_ALL, f);
            qsim_model_free(q);
        }
    qsim_calibration_free(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    qsim_ctx *ctx = context();
    qsim_model *m = NULL, *o = NULL;
    feed f;
    if (legal(qsim_model_load_memory(ctx, data, size, NULL, &m, NULL)) == 0) {
        if (feed_all(m, &f)) {
            execute(m, QSIM_LEVEL_DISABLE, &f);
            execute(m, QSIM_LEVEL_ALL, &f);
            quantize(m, &f);
            if (legal(qsim_model_optimize(m, QSIM_LEVEL_ALL, &o, NULL)) == 0)
                execute(o, QSIM_LEVEL_ALL, &f);
        }
        feed_free(&f);
    }
    qsim_model_free(o);
    qsim_model_free(m);
    qsim_ctx_free(ctx);
    if (atomic_load(&in_use) != 0)
        abort(); /* something was lost */
    return 0;
}

/* ---- seeds ---- */

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

/* Movement and arithmetic around shapes that constants give. */
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

static qsim_model *quantized(const qsim_model *m, int32_t format) {
    qsim_quantize_options o = {.struct_size = sizeof(o), .format = format};
    qsim_calibration *c = NULL;
    qsim_model *q = NULL;
    feed f;
    if (!feed_all(m, &f) || qsim_calibration_create(m, NULL, &c, NULL) ||
        qsim_calibration_feed(c, f.x, f.count, NULL) || qsim_quantize(m, c, &o, &q, NULL))
        abort();
    feed_free(&f);
    qsim_calibration_free(c);
    return q;
}

/* Two float models, then each as QDQ and with integer operators. */
size_t fuzz_seed(size_t index, uint8_t *buffer, size_t capacity) {
    qsim_builder *b = NULL;
    qsim_model *m = NULL;
    size_t size = 0;
    if (index > 5)
        return 0;
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
    if (qsim_model_save_memory(m, buffer, capacity, &size, NULL) || size > capacity)
        abort();
    qsim_model_free(m);
    return size;
}
