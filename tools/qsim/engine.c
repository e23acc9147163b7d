/* SPDX-License-Identifier: MIT */
#include "engine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <qsim/data.h>
#include <qsim/ptq.h>
#include <qsim/quant.h>

#include "common/slot.h"

int32_t level_option(const tool *t) {
    static const char *const names[] = {"", "disable", "basic", "extended", "all"};
    const char *level = args_value(&t->args, "level");
    for (int32_t i = QSIM_LEVEL_DISABLE; level && i <= QSIM_LEVEL_ALL; i++)
        if (strcmp(level, names[i]) == 0)
            return i;
    return QSIM_LEVEL_DEFAULT;
}

int engine_of_model(const tool *t, const char *file, const qsim_model *m, const char *const *names,
                    size_t count, engine *e) {
    qsim_error error;
    qsim_session_options options = {.struct_size = sizeof(options),
                                    .outputs = names,
                                    .output_count = count,
                                    .ctx = t->ctx,
                                    .level = level_option(t)};
    memset(e, 0, sizeof(*e));
    qsim_ctx *before = tool_begin_work(t->ctx);
    int code = qsim_session_create(m, &options, &e->session, &error);
    if (code == QSIM_OK)
        code = qsim_run_create(e->session, &e->run, &error);
    tool_end_work(t->ctx, before);
    if (code)
        return tool_error(t, file, &error);
    e->output_count = (size_t)qsim_session_output_count(e->session);
    e->outputs = tool_alloc(e->output_count, sizeof(*e->outputs));
    return EXIT_OK;
}

int engine_open(const tool *t, const char *file, engine *e) {
    qsim_model *model = NULL;
    memset(e, 0, sizeof(*e));
    int code = tool_load_model(t, file, 0, &model);
    if (code == EXIT_OK)
        code = engine_of_model(t, file, model, NULL, 0, e);
    e->model = model;
    return code;
}

/* Of one output. */
struct engine_floats {
    double scale; /* 0: it stays as it is */
    int64_t zero_point;
    float *data;
    size_t capacity;
};

void engine_dequantize(engine *e, const qsim_model *m) {
    e->floats = tool_alloc(e->output_count, sizeof(*e->floats));
    memset(e->floats, 0, e->output_count * sizeof(*e->floats));
    for (size_t i = 0; i < e->output_count; i++)
        (void)slot_find_scale(m, qsim_session_output_name(e->session, (int32_t)i),
                              &e->floats[i].scale, &e->floats[i].zero_point);
}

/* A type that cannot be dequantized stays as it is. */
static void dequantize(struct engine_floats *f, qsim_tensor *y) {
    const size_t n = elements(y);
    if (n > f->capacity) {
        f->data = tool_grow(f->data, n, sizeof(*f->data));
        f->capacity = n;
    }
    if (qsim_values_dequantize(y->data, n, (float)f->scale, (int32_t)f->zero_point, y->dtype,
                               f->data) == QSIM_OK)
        *y = (qsim_tensor){QSIM_FLOAT, y->rank, y->dims, f->data, n * sizeof(float)};
}

int engine_try(engine *e, const qsim_tensor *inputs, size_t count, qsim_error *error) {
    memset(e->outputs, 0, e->output_count * sizeof(*e->outputs));
    tool_cancel_on_interrupt(e->run);
    int code = qsim_run_execute(e->run, inputs, count, e->outputs, e->output_count, error);
    tool_cancel_on_interrupt(NULL);
    for (size_t i = 0; e->floats && i < e->output_count && code == QSIM_OK; i++)
        if (e->floats[i].scale > 0)
            dequantize(&e->floats[i], &e->outputs[i]);
    if (code == QSIM_OK && tool_interrupted()) {
        error->code = code = QSIM_E_CANCELLED;
        snprintf(error->message, sizeof(error->message), "interrupted");
        error->hint[0] = 0;
    }
    return code;
}

int engine_execute(const tool *t, const char *file, engine *e, const qsim_tensor *inputs,
                   size_t count) {
    qsim_error error;
    return engine_try(e, inputs, count, &error) ? tool_error(t, file, &error) : EXIT_OK;
}

void engine_close(engine *e) {
    for (size_t i = 0; e->floats && i < e->output_count; i++)
        free(e->floats[i].data);
    free(e->floats);
    qsim_run_free(e->run);
    qsim_session_free(e->session);
    qsim_model_free(e->model);
    free(e->outputs);
    memset(e, 0, sizeof(*e));
}

size_t elements(const qsim_tensor *t) {
    size_t n = 0;
    return qsim_tensor_size(t->dtype, t->rank, t->dims, &n, NULL) ? 0 : n;
}

#define ELEMENT(code, type)                                                                        \
    case code: {                                                                                   \
        type v;                                                                                    \
        memcpy(&v, (const char *)t->data + i * sizeof(v), sizeof(v));                              \
        return (double)v;                                                                          \
    }

double element(const qsim_tensor *t, size_t i) {
    switch (t->dtype) {
        ELEMENT(QSIM_FLOAT, float)
        ELEMENT(QSIM_DOUBLE, double)
        ELEMENT(QSIM_UINT8, uint8_t)
        ELEMENT(QSIM_INT8, int8_t)
        ELEMENT(QSIM_BOOL, uint8_t)
        ELEMENT(QSIM_UINT16, uint16_t)
        ELEMENT(QSIM_INT16, int16_t)
        ELEMENT(QSIM_UINT32, uint32_t)
        ELEMENT(QSIM_INT32, int32_t)
        ELEMENT(QSIM_UINT64, uint64_t)
        ELEMENT(QSIM_INT64, int64_t)
    case QSIM_FLOAT16:
    case QSIM_BFLOAT16: {
        float v;
        const qsim_tensor from = {t->dtype, 0, NULL, (char *)t->data + 2 * i, 2};
        const qsim_tensor to = {QSIM_FLOAT, 0, NULL, &v, sizeof(v)};
        return qsim_tensor_convert(&from, &to, NULL) ? (double)NAN : (double)v;
    }
    default: return NAN;
    }
}

bool tensor_has_classes(const char *name, const qsim_tensor *y) {
    qsim_divergence d = {.struct_size = sizeof(d), .answer = qsim_answer_of(name, y->rank)};
    if (d.answer == QSIM_ANSWER_LOGITS)
        return true;
    if (qsim_divergence_add(&d, y, y) == QSIM_OK && d.answer == QSIM_ANSWER_VALUES)
        return false;
    for (int32_t i = 1; i + 1 < y->rank; i++)
        if (y->dims[i] > 1)
            return false;
    return y->rank >= 2 && y->dims[y->rank - 1] > 1;
}
