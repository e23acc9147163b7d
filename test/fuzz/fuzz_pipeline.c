/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer target: bytes as a model that goes through session, run, calibration, all modes of
 * quantization, and a run of the results. Nothing may crash, and no error may be INTERNAL.
 */
#include <stdlib.h>
#include <string.h>

#include <qsim/qsim.h>

#include "fuzz.h"
#include "model_seeds.h"

#define MOST_INPUTS  4
#define MOST_OUTPUTS 8
#define MOST_BYTES   (1u << 16) /* per input */

/* Inputs by the model's declaration, with 1 for unknown sizes. */
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
        p[k] =
            (uint8_t)(k % 4 == 3 ? 0x3e : k); /* floats over 0.1; arbitrary bytes for other types */
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

/* Runs the model if it can, and reads its outputs to the last byte. */
static void execute(const qsim_model *m, int32_t level, const feed *f) {
    qsim_session_options o = {.struct_size = sizeof(o), .level = level};
    qsim_tensor y[MOST_OUTPUTS] = {{0}};
    size_t outputs = (size_t)qsim_model_output_count(m);
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    static volatile uint8_t sink;
    if (fuzz_legal(qsim_session_create(m, &o, &s, NULL)))
        return;
    if (fuzz_legal(qsim_run_create(s, &r, NULL)) == 0 &&
        fuzz_legal(qsim_run_execute(r, f->x, f->count, y, outputs, NULL)) == 0)
        for (size_t i = 0; i < outputs; i++)
            for (size_t k = 0; k < y[i].bytes; k++)
                sink = (uint8_t)(sink + ((const uint8_t *)y[i].data)[k]);
    qsim_run_free(r);
    qsim_session_free(s);
}

/* As pairs, in floats, and in operators of ONNX. */
static void convert(const qsim_model *m, const feed *f) {
    static const int32_t formats[] = {QSIM_FORMAT_QDQ, QSIM_FORMAT_FLOAT, QSIM_FORMAT_ONNX};
    for (int i = 0; i < 3; i++) {
        qsim_model *made = NULL;
        if (fuzz_legal(qsim_model_convert_to(m, formats[i], &made, NULL)) == 0)
            execute(made, QSIM_LEVEL_ALL, f);
        qsim_model_free(made);
    }
}

/* With integers as inputs, outputs or both. */
static void integers(const qsim_model *m, const feed *f) {
    for (int32_t which = 1; which <= 3; which++) {
        qsim_model *made = NULL;
        if (fuzz_legal(qsim_model_integer_io(m, which, &made, NULL)) == 0)
            execute(made, QSIM_LEVEL_ALL, f);
        qsim_model_free(made);
    }
}

static void quantize_by(const qsim_model *m, const qsim_calibration *c,
                        const qsim_quantize_options *o, const feed *f) {
    qsim_model *q = NULL;
    if (fuzz_legal(qsim_quantize(m, c, o, &q, NULL)) == 0) {
        execute(q, QSIM_LEVEL_ALL, f);
        integers(q, f);
        convert(q, f);
    }
    qsim_model_free(q);
}

/* Statically in both forms, and in one of the other modes, with or without the calibration. */
static void quantize(const qsim_model *m, const feed *f, size_t choice) {
    static const qsim_rule narrow = {sizeof(narrow), "*", QSIM_RULE_INT4, 0};
    const qsim_quantize_options other = {
        .struct_size = sizeof(other),
        .mode = choice & 1 ? QSIM_MODE_WEIGHTS : QSIM_MODE_DYNAMIC,
        .per_row = (choice & 3) == 2,
        .reduce_range = choice & 32 ? QSIM_REDUCE_PAIRS : QSIM_REDUCE_NONE,
        .weight_type = (choice & 97) == 65 ? QSIM_FLOAT16 : QSIM_INT8,
        .rules = &narrow,
        .rule_count = (choice & 12) == 12,
    };
    qsim_calibration *c = NULL;
    if (fuzz_legal(qsim_calibration_create(m, NULL, &c, NULL)) == 0 &&
        fuzz_legal(qsim_calibration_feed(c, f->x, f->count, NULL)) == 0)
        for (int32_t format = 0; format < 2; format++) {
            const qsim_quantize_options o = {.struct_size = sizeof(o),
                                             .format = format,
                                             .method = format * QSIM_METHOD_MSE,
                                             .reduce_range = choice & 32 ? QSIM_REDUCE_PAIRS
                                                                         : QSIM_REDUCE_NONE};
            quantize_by(m, c, &o, f);
        }
    quantize_by(m, choice & 16 ? c : NULL, &other, f);
    qsim_calibration_free(c);
}

static void attempt(qsim_ctx *ctx, const fuzz_heap *heap, const uint8_t *data, size_t size) {
    qsim_model *m = NULL, *o = NULL;
    feed f;
    (void)heap;
    if (fuzz_legal(qsim_model_load_memory(ctx, data, size, NULL, &m, NULL)) == 0) {
        if (feed_all(m, &f)) {
            execute(m, QSIM_LEVEL_DISABLE, &f);
            execute(m, QSIM_LEVEL_ALL, &f);
            integers(m, &f);
            convert(m, &f);
            quantize(m, &f, size); /* other sizes, other options */
            if (fuzz_legal(qsim_model_optimize(m, QSIM_LEVEL_ALL, &o, NULL)) == 0)
                execute(o, QSIM_LEVEL_ALL, &f);
        }
        feed_free(&f);
    }
    qsim_model_free(o);
    qsim_model_free(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    /* A Loop may say that it has any number of iterations. */
    static const qsim_limits limits = {.struct_size = sizeof(limits), .milliseconds = 1000};
    fuzz_run_limited(attempt, &limits, data, size);
    return 0;
}

size_t fuzz_seed(size_t index, uint8_t *buffer, size_t capacity) {
    return fuzz_model_bytes(index, buffer, capacity);
}
