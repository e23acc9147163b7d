/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer target: bytes as tensors that are given to valid models: of any type, rank and size,
 * with exactly the memory that they state. They are executed, reserved, calibrated on and observed,
 * and given to the layers on plain buffers.
 */
#include <math.h>
#include <string.h>

#include <qsim/op.h>
#include <qsim/qsim.h>

#include "fuzz.h"
#include "model_seeds.h"

#define MOST_BYTES (1u << 14)

typedef struct view {
    int64_t dims[QSIM_MAX_RANK + 1];
    qsim_tensor t;
} view;

/* Usually sizes and type of the model's declaration; the memory is exactly as long. */
static bool take_input(fuzz_bytes *b, const qsim_value_info *v, view *x) {
    x->t = (qsim_tensor){v->dtype, v->rank, x->dims, NULL, 0};
    for (int32_t i = 0; i < v->rank; i++)
        x->dims[i] = v->dims[i] < 0 ? (int64_t)fuzz_below(b, 4) : v->dims[i];
    switch (fuzz_byte(b)) {
    case 1: x->t.dtype = (int32_t)fuzz_number(b); break;
    case 2: x->t.rank = (int32_t)fuzz_number(b); break;
    case 3: x->dims[fuzz_below(b, 4)] = fuzz_number(b); break;
    case 4: x->t.dims = NULL; break;
    default: break;
    }
    if (x->t.rank > QSIM_MAX_RANK)
        x->t.rank = QSIM_MAX_RANK + 1;
    if (!x->t.dims || qsim_tensor_size(x->t.dtype, x->t.rank, x->t.dims, NULL, &x->t.bytes) ||
        x->t.bytes > MOST_BYTES)
        x->t.bytes = fuzz_below(b, 200);
    if (fuzz_byte(b) > 250)
        x->t.bytes -= x->t.bytes > 0;
    uint8_t *p = x->t.data = malloc(x->t.bytes ? x->t.bytes : 1);
    for (size_t i = 0; p && i < x->t.bytes; i++)
        p[i] = fuzz_byte(b);
    return p != NULL;
}

/* The output is in the session's memory, or in the caller's, which may be too small. */
static void execute(qsim_run *r, fuzz_bytes *b, const qsim_tensor *x) {
    uint8_t *own = NULL;
    qsim_tensor y = {0};
    if (fuzz_byte(b) % 2) {
        y.bytes = fuzz_below(b, 96);
        y.data = own = aligned_alloc(64, (y.bytes + 63) / 64 * 64 + 64);
    }
    if (fuzz_legal(qsim_run_execute(r, x, fuzz_byte(b) > 250 ? 0 : 1, &y, 1, NULL)) == QSIM_OK) {
        static volatile uint8_t sink;
        for (size_t i = 0; i < y.bytes; i++)
            sink = (uint8_t)(sink + ((const uint8_t *)y.data)[i]);
    }
    free(own);
}

static void network(qsim_ctx *ctx, fuzz_bytes *b) {
    static qsim_model *models[FUZZ_MODELS];
    const size_t index = fuzz_below(b, FUZZ_MODELS);
    qsim_value_info v = {.struct_size = sizeof(v)};
    qsim_session_options o = {
        .struct_size = sizeof(o), .ctx = ctx, .level = (int32_t)fuzz_below(b, 5)};
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    view x = {.dims = {0}};
    models[index] = models[index] ? models[index] : fuzz_model(index);
    if (qsim_model_input(models[index], 0, &v))
        abort();
    if (fuzz_legal(qsim_session_create(models[index], &o, &s, NULL)) == QSIM_OK &&
        fuzz_legal(qsim_run_create(s, &r, NULL)) == QSIM_OK)
        for (int k = 0; k < 4 && b->left > 0 && take_input(b, &v, &x); k++) {
            if (fuzz_byte(b) % 4 == 0)
                fuzz_legal(qsim_run_reserve(r, &x.t, 1, NULL));
            execute(r, b, &x.t);
            free(x.t.data);
        }
    qsim_run_free(r);
    qsim_session_free(s);
}

static void calibrate(qsim_ctx *ctx, fuzz_bytes *b) {
    static qsim_model *m;
    qsim_value_info v = {.struct_size = sizeof(v)};
    qsim_calibration *c = NULL;
    qsim_observer *o = NULL;
    float low, high;
    view x = {.dims = {0}};
    m = m ? m : fuzz_model(1);
    if (qsim_model_input(m, 0, &v))
        abort();
    if (!take_input(b, &v, &x))
        return;
    if (fuzz_legal(qsim_calibration_create(m, NULL, &c, NULL)) == QSIM_OK)
        fuzz_legal(qsim_calibration_feed(c, &x.t, 1, NULL));
    if (fuzz_legal(qsim_observer_create(ctx, NULL, &o, NULL)) == QSIM_OK &&
        fuzz_legal(qsim_observer_feed(o, x.t.data, x.t.bytes / 4)) == QSIM_OK)
        for (int32_t method = 0; method < 4; method++)
            if (qsim_observer_range(o, method, 0, QSIM_INT8, 0, &low, &high) == QSIM_OK &&
                (!isfinite(low) || !isfinite(high) || low > 0 || high < 0))
                abort();
    qsim_observer_free(o);
    qsim_calibration_free(c);
    free(x.t.data);
}

/* A tensor of bytes for a layer, of small or odd sizes. */
static bool take_operand(fuzz_bytes *b, int32_t rank, view *x) {
    static const int32_t types[] = {QSIM_UINT8, QSIM_INT8,  QSIM_UINT8,    QSIM_INT8,
                                    QSIM_INT32, QSIM_FLOAT, QSIM_UNDEFINED};
    qsim_value_info v = {.dtype = types[fuzz_below(b, 7)], .rank = rank, .dims = x->dims};
    for (int32_t i = 0; i < rank; i++)
        x->dims[i] = fuzz_byte(b) > 250 ? fuzz_number(b) : 1 + (int64_t)fuzz_below(b, 9);
    return take_input(b, &v, x);
}

static void layer(qsim_ctx *ctx, fuzz_bytes *b) {
    const int32_t rank = fuzz_byte(b) % 2 ? 4 : 2;
    int32_t numbers[8], w_zero[16];
    float multiplier[16];
    qsim_op_options o = {
        .struct_size = sizeof(o), .w_zero_point = w_zero, .multiplier = multiplier};
    view x = {.dims = {0}}, w = {.dims = {0}}, y = {.dims = {0}};
    for (size_t i = 0; i < 8; i++)
        numbers[i] = fuzz_byte(b) > 240 ? (int32_t)fuzz_number(b) : (int32_t)fuzz_below(b, 4);
    for (size_t i = 0; i < 16; i++) {
        w_zero[i] = (int8_t)fuzz_byte(b);
        multiplier[i] = (float)fuzz_byte(b) / 256.0f;
    }
    o.flags = (int32_t)fuzz_below(b, 3);
    o.groups = (int32_t)fuzz_below(b, 10);
    o.stride_h = numbers[0], o.stride_w = numbers[1];
    o.dilation_h = numbers[2], o.dilation_w = numbers[3];
    o.pad_top = numbers[4], o.pad_left = numbers[5], o.pad_bottom = numbers[6],
    o.pad_right = numbers[7];
    o.x_zero_point = (int8_t)fuzz_byte(b);
    o.w_zero_points = fuzz_below(b, 16);
    o.multipliers = fuzz_below(b, 16);
    o.y_zero_point = (int8_t)fuzz_byte(b);
    if (!take_operand(b, rank, &x))
        return;
    if (take_operand(b, rank, &w)) {
        if (take_operand(b, rank, &y)) {
            fuzz_legal((rank == 4 ? qsim_conv2d : qsim_linear)(ctx, &x.t, &w.t, &o, &y.t, NULL));
            free(y.t.data);
        }
        free(w.t.data);
    }
    free(x.t.data);
}

static void attempt(qsim_ctx *ctx, const fuzz_heap *heap, const uint8_t *data, size_t size) {
    fuzz_bytes b = {data, size};
    (void)heap;
    switch (fuzz_below(&b, 4)) {
    case 0: calibrate(ctx, &b); break;
    case 1: layer(ctx, &b); break;
    default: network(ctx, &b);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_run(attempt, data, size);
    return 0;
}

/* Each network with a valid input; calibration; a convolution and a linear layer. */
size_t fuzz_seed(size_t index, uint8_t *buffer, size_t capacity) {
    if (index >= FUZZ_MODELS + 3 || capacity < 400)
        return 0;
    for (size_t i = 0; i < 400; i++)
        buffer[i] = (uint8_t)(i % 97 < 50 ? 0 : i % 61);
    buffer[0] = index < FUZZ_MODELS ? 2 : index == FUZZ_MODELS ? 0 : 1;
    buffer[1] = (uint8_t)index;
    return 400;
}
