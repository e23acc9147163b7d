/* SPDX-License-Identifier: MIT */
/*
 * Cancelling inside the work of one call: steps, packing, copies, layers on plain buffers. The
 * first touch of a page cancels; the last page stays untouched. Then the call is repeated in full.
 */
#include "heap.h"
#include "touch_trap.h"

#include <qsim/qsim.h>

#include <math.h>
#include <unistd.h>

#define WEIGHT (64 * 8192)

/* ---- one step ---- */

/* One step; its input is all ones, `w` a constant of ones; "": the operator has no weight. */
typedef struct touch_case {
    const char *op, *x, *w, *y;
    double expected; /* each element of the result */
    int32_t isa;
} touch_case;

static const touch_case touch_cases[] = {
    {"MatMulInteger", "uint8[96,64]", "int8[64,8192]", "int32[96,8192]", 64, QSIM_ISA_C},
    {"MatMulInteger", "uint8[960,64]", "int8[64,8192]", "int32[960,8192]", 64, QSIM_ISA_AUTO},
    {"Softmax", "float[1,2097152]", "", "float[1,2097152]", 1.0 / 2097152, QSIM_ISA_AUTO},
    {"Identity", "float[1,2097152]", "", "float[1,2097152]", 1, QSIM_ISA_AUTO},
    {"Trilu", "float[1,2097152]", "", "float[1,2097152]", 1, QSIM_ISA_AUTO},
    {"LogSoftmax", "float[1,524288]", "", "float[1,524288]", -19 * 0.6931471805599453,
     QSIM_ISA_AUTO},
};

static qsim_model *one_step(qsim_ctx *ctx, const touch_case *c) {
    static int8_t ones[WEIGHT];
    qsim_builder *b = NULL;
    qsim_model *m = NULL;
    qsim_error e;
    memset(ones, 1, sizeof(ones));
    CHECK_INT(qsim_builder_create(ctx, 14, "g", &b, &e), QSIM_OK);
    qsim_builder_input_as(b, "x", c->x);
    if (*c->w)
        qsim_builder_constant_as(b, "w", c->w, ones);
    if (strcmp(c->op, "MatMulBnb4") == 0) { /* of two codes in each byte */
        static const float scales[2 * WEIGHT / 64];
        qsim_builder_import(b, "com.microsoft", 1);
        qsim_builder_constant_as(b, "s", "float[16384]", scales);
        qsim_builder_node(b, "com.microsoft", c->op, "", "x,w,s", "y");
        qsim_builder_attr_int(b, "K", 64);
        qsim_builder_attr_int(b, "N", 2 * WEIGHT / 64);
        qsim_builder_attr_int(b, "block_size", 64);
        qsim_builder_attr_int(b, "quant_type", 1);
    } else {
        qsim_builder_node(b, "", c->op, "", *c->w ? "x,w" : "x", "y");
    }
    qsim_builder_output_as(b, "y", NULL);
    CHECK_INT(qsim_builder_finish(b, &m, &e), QSIM_OK);
    qsim_builder_free(b);
    return m;
}

/* A tensor of ones of the shape that the model declares, for its input or its output. */
static qsim_tensor full(const qsim_model *m, qsim_value_info *v, bool input) {
    qsim_tensor t = {0};
    *v = (qsim_value_info){.struct_size = sizeof(*v)};
    CHECK_INT(input ? qsim_model_input(m, 0, v) : qsim_model_output(m, 0, v), QSIM_OK);
    t = (qsim_tensor){v->dtype, v->rank, v->dims, NULL, 0};
    CHECK_INT(qsim_tensor_size(v->dtype, v->rank, v->dims, NULL, &t.bytes), QSIM_OK);
    t.data = pages(t.bytes + PAGE);
    for (size_t i = 0; input && i < t.bytes; i++)
        ((uint8_t *)t.data)[i] = 1;
    for (size_t i = 0; input && v->dtype == QSIM_FLOAT && i < t.bytes / 4; i++)
        ((float *)t.data)[i] = 1;
    return t;
}

static double element(const qsim_tensor *t, size_t i) {
    return t->dtype == QSIM_FLOAT ? (double)((const float *)t->data)[i]
                                  : (double)((const int32_t *)t->data)[i];
}

/* Cancelled when the first element is written: the last is not written; then executed in full. */
static void at_first_result(const touch_case *c) {
    qsim_ctx_options o = {.struct_size = sizeof(o), .threads = 1, .isa = c->isa};
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    qsim_value_info in, out;
    qsim_ctx *ctx;
    qsim_error e;
    CHECK_INT(qsim_ctx_create(&o, &ctx, &e), QSIM_OK);
    qsim_model *m = one_step(ctx, c);
    CHECK_INT(qsim_session_create(m, NULL, &s, &e), QSIM_OK);
    CHECK_INT(qsim_run_create(s, &r, &e), QSIM_OK);
    qsim_tensor x = full(m, &in, true), y = full(m, &out, false);
    memset(y.data, 0xff, y.bytes);
    set_trap(ctx, y.data, NULL);
    CHECK_INT(qsim_run_execute(r, &x, 1, &y, 1, &e), QSIM_E_CANCELLED);
    CHECK(trap.touched);
    CHECK(((const uint8_t *)y.data)[y.bytes - 1] == 0xff);
    qsim_ctx_cancel(ctx, 0);
    CHECK_INT(qsim_run_execute(r, &x, 1, &y, 1, &e), QSIM_OK);
    double worst = 0;
    for (size_t i = 0; i < y.bytes / 4; i++)
        worst = fmax(worst, fabs(element(&y, i) / c->expected - 1));
    CHECK(worst < 1e-5);
    free(x.data);
    free(y.data);
    qsim_run_free(r);
    qsim_session_free(s);
    qsim_model_free(m);
    qsim_ctx_free(ctx);
}

/* The weight's bytes, the first WEIGHT ones in a row; *end is behind them. */
static uint8_t *find_ones(uint8_t *data, size_t size, uint8_t **end) {
    size_t run = 0;
    for (size_t i = 0; i < size; i++) {
        run = data[i] == 1 ? run + 1 : 0;
        if (run == WEIGHT) {
            *end = data + i + 1;
            return data + i + 1 - run;
        }
    }
    CHECK_FAIL("the weight is in the file");
    *end = data + size;
    return data;
}

/* Cancelled when packing or widening reads a weight's first page: the last page is not read. */
static void while_packing(const char *op, const char *x, const char *w) {
    const touch_case c = {op, x, w, "", 0, QSIM_ISA_AUTO};
    char path[] = "cancel-XXXXXX";
    qsim_ctx_options o = {.struct_size = sizeof(o), .threads = 1};
    const qsim_save_options replace = {.struct_size = sizeof(replace), .flags = QSIM_SAVE_REPLACE};
    qsim_session *s = NULL;
    qsim_ctx *ctx;
    qsim_error e;
    close(mkstemp(path));
    CHECK_INT(qsim_ctx_create(&o, &ctx, &e), QSIM_OK);
    qsim_model *m = one_step(ctx, &c);
    CHECK_INT(qsim_model_save(m, path, &replace, &e), QSIM_OK);
    qsim_model_free(m);
    FILE *f = fopen(path, "rb");
    uint8_t *data = pages(2 * WEIGHT), *end;
    const size_t size = fread(data, 1, 2 * WEIGHT, f);
    fclose(f);
    unlink(path);
    CHECK_INT(qsim_model_load_memory(ctx, data, size, NULL, &m, &e), QSIM_OK);
    uint8_t *first = find_ones(data, size, &end);
    set_trap(ctx, data + (size_t)(first - data + PAGE) / PAGE * PAGE,
             data + (size_t)(end - data - 2 * PAGE) / PAGE * PAGE);
    CHECK_INT(qsim_session_create(m, NULL, &s, &e), QSIM_E_CANCELLED);
    CHECK(trap.touched && !trap.last_touched);
    qsim_ctx_cancel(ctx, 0);
    CHECK_INT(qsim_session_create(m, NULL, &s, &e), QSIM_OK);
    CHECK(trap.last_touched);
    qsim_session_free(s);
    qsim_model_free(m);
    free(data);
    qsim_ctx_free(ctx);
}

/* ---- copies of megabytes ---- */

#define MUCH ((size_t)8 << 20)

/* Cancelled when an input's first page is copied: its last page is not. */
static void while_given(void) {
    const touch_case c = {"GlobalMaxPool", "float[1,1,1024,2048]", "", "", 1, QSIM_ISA_AUTO};
    qsim_ctx_options o = {.struct_size = sizeof(o), .threads = 1};
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    qsim_value_info in;
    qsim_ctx *ctx;
    qsim_error e;
    CHECK_INT(qsim_ctx_create(&o, &ctx, &e), QSIM_OK);
    qsim_model *m = one_step(ctx, &c);
    CHECK_INT(qsim_session_create(m, NULL, &s, &e), QSIM_OK);
    CHECK_INT(qsim_run_create(s, &r, &e), QSIM_OK);
    qsim_tensor x = full(m, &in, true), y = {0};
    set_trap(ctx, x.data, (uint8_t *)x.data + MUCH - PAGE);
    CHECK_INT(qsim_run_execute(r, &x, 1, &y, 1, &e), QSIM_E_CANCELLED);
    CHECK(strstr(e.message, "cancelled") != NULL);
    CHECK(trap.touched && !trap.last_touched);
    qsim_ctx_cancel(ctx, 0);
    CHECK_INT(qsim_run_execute(r, &x, 1, &y, 1, &e), QSIM_OK);
    CHECK(trap.last_touched);
    CHECK(y.data && *(const float *)y.data == 1);
    free(x.data);
    qsim_run_free(r);
    qsim_session_free(s);
    qsim_model_free(m);
    qsim_ctx_free(ctx);
}

/* A model that is saved to memory, and one that is copied from there. */
static void while_copied(void) {
    qsim_ctx_options o = {.struct_size = sizeof(o), .threads = 1};
    qsim_load_options copy = {.struct_size = sizeof(copy), .flags = QSIM_LOAD_COPY};
    qsim_builder *b = NULL;
    qsim_model *m = NULL, *again = NULL;
    qsim_ctx *ctx;
    qsim_error e;
    size_t need = 0;
    uint8_t *weight = pages(MUCH), *file = pages(MUCH + PAGE);
    memset(weight, 1, MUCH);
    CHECK_INT(qsim_ctx_create(&o, &ctx, &e), QSIM_OK);
    CHECK_INT(qsim_builder_create(ctx, 13, "g", &b, &e), QSIM_OK);
    qsim_builder_input_as(b, "x", "float[1,2097152]");
    qsim_builder_constant_as(b, "w", "float[2097152]", weight);
    qsim_builder_node(b, "", "Add", "", "x,w", "y");
    qsim_builder_output_as(b, "y", NULL);
    CHECK_INT(qsim_builder_finish(b, &m, &e), QSIM_OK);
    qsim_builder_free(b);
    uint8_t *last = file + MUCH - PAGE;
    set_trap(ctx, file, last);
    CHECK_INT(qsim_model_save_memory(m, file, MUCH + PAGE, &need, &e), QSIM_E_CANCELLED);
    CHECK(trap.touched && !trap.last_touched);
    qsim_ctx_cancel(ctx, 0);
    CHECK_INT(qsim_model_save_memory(m, file, MUCH + PAGE, &need, &e), QSIM_OK);
    CHECK(trap.last_touched);
    qsim_model_free(m);
    set_trap(ctx, file, last);
    CHECK_INT(qsim_model_load_memory(ctx, file, need, &copy, &again, &e), QSIM_E_CANCELLED);
    CHECK(trap.touched && !trap.last_touched);
    qsim_ctx_cancel(ctx, 0);
    CHECK_INT(qsim_model_load_memory(ctx, file, need, &copy, &again, &e), QSIM_OK);
    CHECK(trap.last_touched);
    qsim_model_free(again);
    CHECK_INT(qsim_model_load_memory(ctx, file, need, NULL, &again, &e), QSIM_OK);
    qsim_session *s = NULL; /* which copies the weight */
    set_trap(ctx, file + PAGE, last);
    CHECK_INT(qsim_session_create(again, NULL, &s, &e), QSIM_E_CANCELLED);
    CHECK(trap.touched && !trap.last_touched);
    qsim_ctx_cancel(ctx, 0);
    CHECK_INT(qsim_session_create(again, NULL, &s, &e), QSIM_OK);
    CHECK(trap.last_touched);
    qsim_session_free(s);
    qsim_model_free(again);
    free(weight);
    free(file);
    qsim_ctx_free(ctx);
}

/* ---- layers on plain buffers ---- */

typedef struct layer_case {
    int64_t x[4], w[4], y[4];
    int32_t rank;
    size_t multipliers; /* 0: y is INT32 */
    char trapped;       /* the tensor whose first page cancels: x, w or y */
} layer_case;

static const layer_case layer_cases[] = {
    {{8, 256}, {4096, 256}, {8, 4096}, 2, 1, 'w'},
    {{8, 256}, {4096, 256}, {8, 4096}, 2, 0, 'w'},
    {{16, 65536}, {8, 65536}, {16, 8}, 2, 1, 'x'},
    {{1024, 64}, {1024, 64}, {1024, 1024}, 2, 1, 'y'},
    {{1, 16, 256, 256}, {8, 16, 1, 1}, {1, 8, 256, 256}, 4, 1, 'x'},
    {{1, 16, 256, 256}, {16, 16, 1, 1}, {1, 16, 256, 256}, 4, 0, 'y'},
};

static qsim_tensor plain(int32_t dtype, int32_t rank, const int64_t *dims) {
    qsim_tensor t = {dtype, rank, dims, NULL, 0};
    CHECK_INT(qsim_tensor_size(dtype, rank, dims, NULL, &t.bytes), QSIM_OK);
    t.data = pages(t.bytes);
    memset(t.data, 1, t.bytes);
    return t;
}

static int call_layer(qsim_ctx *ctx, const layer_case *c, const qsim_tensor t[3], qsim_error *e) {
    static const float multiplier = 1.0f / 1024;
    const qsim_op_options o = {
        .struct_size = sizeof(o), .multiplier = &multiplier, .multipliers = c->multipliers};
    return (c->rank == 2 ? qsim_linear : qsim_conv2d)(ctx, &t[0], &t[1], &o, &t[2], e);
}

/* Cancelled when a tensor's first page is touched: its last page is not. */
static void while_layered(const layer_case *c) {
    qsim_ctx_options o = {.struct_size = sizeof(o), .threads = 1};
    qsim_ctx *ctx;
    qsim_error e;
    CHECK_INT(qsim_ctx_create(&o, &ctx, &e), QSIM_OK);
    const qsim_tensor t[3] = {plain(QSIM_UINT8, c->rank, c->x), plain(QSIM_INT8, c->rank, c->w),
                              plain(c->multipliers ? QSIM_UINT8 : QSIM_INT32, c->rank, c->y)};
    const qsim_tensor *trapped = &t[c->trapped == 'x' ? 0 : c->trapped == 'w' ? 1 : 2];
    set_trap(ctx, trapped->data, (uint8_t *)trapped->data + trapped->bytes - PAGE);
    CHECK_INT(call_layer(ctx, c, t, &e), QSIM_E_CANCELLED);
    CHECK(strstr(e.message, "cancelled") != NULL);
    CHECK(trap.touched && !trap.last_touched);
    CHECK_INT(call_layer(ctx, c, t, &e), QSIM_E_CANCELLED);
    qsim_ctx_cancel(ctx, 0);
    CHECK_INT(call_layer(ctx, c, t, &e), QSIM_OK);
    CHECK(trap.last_touched);
    const int64_t terms = c->w[1];
    CHECK(c->multipliers ? *(uint8_t *)t[2].data == (terms + 512) / 1024
                         : *(int32_t *)t[2].data == terms);
    for (int i = 0; i < 3; i++)
        free(t[i].data);
    qsim_ctx_free(ctx);
}

int main(void) {
    for (size_t i = 0; i < sizeof(touch_cases) / sizeof(*touch_cases); i++)
        at_first_result(&touch_cases[i]);
    while_given();
    while_copied();
    for (size_t i = 0; i < sizeof(layer_cases) / sizeof(*layer_cases); i++)
        while_layered(&layer_cases[i]);
    while_packing("MatMulInteger", "uint8[8,64]", "int8[64,8192]");
    while_packing("MatMulBnb4", "float[8,64]", "uint8[524288]");
    return test_done();
}
