/* SPDX-License-Identifier: MIT */
/* Dynamic and weight-only quantization: the file's form; fused and literal bits agree. */
#include "ptq_nets.h"

#include <math.h>
#include <stdbool.h>

static qsim_model *quantize(const qsim_model *m, int32_t mode, int32_t per_row, int32_t scheme,
                            int32_t weights) {
    qsim_quantize_options o = {.struct_size = sizeof(o),
                               .mode = mode,
                               .per_row = per_row,
                               .weight_scheme = scheme,
                               .weight_type = weights};
    qsim_model *q = NULL;
    qsim_error e = {0};
    if (qsim_quantize(m, NULL, &o, &q, &e))
        fprintf(stderr, "%s\n", e.message);
    CHECK(q != NULL);
    return q;
}

/* Grouped and strided convolutions, both Gemms, a product of rank 3, and a tail of 7 columns. */
static qsim_model *net_mixed(void) {
    qsim_builder *b = NULL;
    const char *symbol[4] = {"N", NULL, NULL, NULL};
    const int64_t two[2] = {2, 2}, pads[4] = {1, 1, 0, 1};
    CHECK_INT(qsim_builder_create(NULL, 18, "mixed", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, 4, (int64_t[]){-1, 1, 12, 12}, symbol);
    qsim_builder_output(b, "y", QSIM_FLOAT, 2, (int64_t[]){-1, 7}, symbol);
    qsim_builder_output(b, "z", QSIM_FLOAT, 4, (int64_t[]){-1, 6, 6, 9}, symbol);
    net_constant(b, "w1", 4, (int64_t[]){6, 1, 3, 3}, 0.5f, 1);
    net_constant(b, "b1", 1, (int64_t[]){6}, 0.3f, 2);
    net_constant(b, "w2", 4, (int64_t[]){6, 1, 3, 3}, 0.3f, 3);
    net_constant(b, "w3", 2, (int64_t[]){7, 216}, 0.2f, 5);
    net_constant(b, "b3", 1, (int64_t[]){7}, 0.3f, 6);
    net_constant(b, "w4", 2, (int64_t[]){6, 9}, 0.4f, 7);
    net_constant(b, "b4", 1, (int64_t[]){9}, 0.3f, 8);
    qsim_builder_node(b, "", "Conv", "conv1", "x,w1,b1", "c1");
    qsim_builder_attr_ints(b, "strides", two, 2);
    qsim_builder_attr_ints(b, "pads", pads, 4);
    qsim_builder_node(b, "", "Relu", "relu1", "c1", "r1");
    qsim_builder_node(b, "", "Conv", "conv2", "r1,w2", "c2");
    qsim_builder_attr_int(b, "group", 6);
    qsim_builder_attr_ints(b, "pads", (int64_t[]){1, 1, 1, 1}, 4);
    qsim_builder_node(b, "", "Flatten", "flat", "c2", "f");
    qsim_builder_node(b, "", "Gemm", "fc", "f,w3,b3", "y");
    qsim_builder_attr_int(b, "transB", 1);
    qsim_builder_attr_float(b, "alpha", 0.5f);
    qsim_builder_node(b, "", "MatMul", "mm", "c2,w4", "m");
    qsim_builder_node(b, "", "Add", "add", "m,b4", "z");
    return net_finish(b);
}

/* Depthwise kernels of other sizes, strides and dilations, with bounds after them. */
static qsim_model *net_depthwise(void) {
    qsim_builder *b = NULL;
    const char *symbol[4] = {"N", NULL, NULL, NULL};
    CHECK_INT(qsim_builder_create(NULL, 13, "depthwise", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, 4, (int64_t[]){-1, 1, 12, 12}, symbol);
    qsim_builder_output(b, "y", QSIM_FLOAT, 2, (int64_t[]){-1, 152}, symbol);
    net_constant(b, "w1", 4, (int64_t[]){19, 1, 3, 3}, 0.5f, 1);
    net_constant(b, "w2", 4, (int64_t[]){19, 1, 5, 3}, 0.5f, 2);
    net_constant(b, "b2", 1, (int64_t[]){19}, 0.3f, 3);
    net_constant(b, "w3", 4, (int64_t[]){19, 1, 3, 2}, 0.5f, 4);
    const float lo = -0.5f, hi = 0.75f;
    qsim_builder_constant_as(b, "lo", "float[]", &lo);
    qsim_builder_constant_as(b, "hi", "float[]", &hi);
    qsim_builder_node(b, "", "Conv", "conv1", "x,w1", "c1");
    qsim_builder_node(b, "", "Clip", "clip1", "c1,lo,hi", "r1");
    qsim_builder_node(b, "", "Conv", "conv2", "r1,w2,b2", "c2");
    qsim_builder_attr_int(b, "group", 19);
    qsim_builder_attr_ints(b, "strides", (int64_t[]){2, 1}, 2);
    qsim_builder_attr_ints(b, "pads", (int64_t[]){1, 2, 3, 0}, 4);
    qsim_builder_node(b, "", "Clip", "clip2", "c2,lo,hi", "r2");
    qsim_builder_node(b, "", "Conv", "conv3", "r2,w3", "c3");
    qsim_builder_attr_int(b, "group", 19);
    qsim_builder_attr_ints(b, "strides", (int64_t[]){2, 3}, 2);
    qsim_builder_attr_ints(b, "dilations", (int64_t[]){2, 3}, 2);
    qsim_builder_attr_ints(b, "pads", (int64_t[]){2, 2, 1, 1}, 4);
    qsim_builder_node(b, "", "Relu", "relu3", "c3", "r3");
    qsim_builder_node(b, "", "Flatten", "flat", "r3", "y");
    return net_finish(b);
}

/*
 * Curves and sums after convolutions, two of which are joined: of few channels, or of many; of
 * images of one size, or of any.
 */
static qsim_model *net_behind(bool wide, bool any) {
    qsim_builder *b = NULL;
    const char *symbol[4] = {"N", NULL, any ? "H" : NULL, any ? "W" : NULL};
    const int64_t side = any ? -1 : 12;
    const int64_t pads[4] = {1, 1, 1, 1}, steps[2] = {wide ? 4 : 1, wide ? 4 : 1};
    CHECK_INT(qsim_builder_create(NULL, 14, "behind", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, 4, (int64_t[]){-1, 1, side, side}, symbol);
    symbol[1] = any ? "K" : NULL;
    qsim_builder_output(b, "y", QSIM_FLOAT, 2,
                        (int64_t[]){-1, any    ? -1
                                        : wide ? 612
                                               : 720},
                        symbol);
    net_constant(b, "w1", 4, (int64_t[]){6, 1, 3, 3}, 0.5f, 1);
    net_constant(b, "w2", 4, (int64_t[]){6, 6, 1, 1}, 0.5f, 2);
    net_constant(b, "w3", 4, (int64_t[]){6, 1, 3, 3}, 0.5f, 3);
    net_constant(b, "w4", 4, (int64_t[]){wide ? 66 : 3, 6, 1, 1}, 0.5f, 4);
    net_constant(b, "b4", 1, (int64_t[]){wide ? 66 : 3}, 0.3f, 5);
    net_constant(b, "w5", 4, (int64_t[]){2, 6, 3, 3}, 0.5f, 6);
    qsim_builder_node(b, "", "Conv", "conv1", "x,w1", "c1");
    qsim_builder_attr_ints(b, "pads", pads, 4);
    qsim_builder_node(b, "", "Sigmoid", "sigmoid1", "c1", "g1");
    qsim_builder_node(b, "", "Mul", "mul1", "c1,g1", "s1");
    qsim_builder_node(b, "", "Conv", "conv2", "s1,w2", "c2");
    qsim_builder_node(b, "", "Add", "add2", "s1,c2", "s2");
    qsim_builder_node(b, "", "Conv", "conv3", "s2,w3", "c3");
    qsim_builder_attr_int(b, "group", 6);
    qsim_builder_attr_ints(b, "pads", pads, 4);
    qsim_builder_node(b, "", "HardSwish", "hard3", "c3", "s3");
    qsim_builder_node(b, "", "Conv", "conv4", "s3,w4,b4", "c4");
    qsim_builder_attr_ints(b, "strides", steps, 2);
    qsim_builder_node(b, "", "Relu", "relu4", "c4", "s4");
    qsim_builder_node(b, "", "Conv", "conv5", "s3,w5", "c5");
    qsim_builder_attr_ints(b, "pads", pads, 4);
    qsim_builder_attr_ints(b, "strides", steps, 2);
    qsim_builder_node(b, "", "Sigmoid", "sigmoid5", "c5", "s5");
    qsim_builder_node(b, "", "Concat", "join", "s4,s5", "j");
    qsim_builder_attr_int(b, "axis", 1);
    qsim_builder_node(b, "", "Flatten", "flat", "j", "y");
    return net_finish(b);
}

static size_t run_level(const qsim_model *m, int32_t level, qsim_tensor *x, float *y,
                        size_t capacity) {
    qsim_session_options o = {.struct_size = sizeof(o), .level = level};
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    qsim_error e = {0};
    qsim_tensor out[4] = {{0}};
    size_t n = 0, outputs = (size_t)qsim_model_output_count(m);
    if (qsim_session_create(m, &o, &s, &e) || qsim_run_create(s, &r, &e) ||
        qsim_run_execute(r, x, 1, out, outputs, &e))
        fprintf(stderr, "%s\n", e.message);
    CHECK_INT(e.code, QSIM_OK);
    for (size_t i = 0; i < outputs && !e.code && n + out[i].bytes / 4 <= capacity; i++) {
        memcpy(y + n, out[i].data, out[i].bytes);
        n += out[i].bytes / 4;
    }
    qsim_run_free(r);
    qsim_session_free(s);
    return n;
}

static void check_like(const float *a, const float *b, size_t n, double least) {
    double signal = 0, noise = 0;
    for (size_t i = 0; i < n; i++) {
        signal += (double)a[i] * (double)a[i];
        noise += pow((double)a[i] - (double)b[i], 2);
    }
    CHECK(n > 0 && signal >= noise * pow(10, least / 10));
}

#define ROOM 4096

/* The fused operators give the bits of the literal chain, for any batch. */
static void fused_one(const qsim_model *m, int32_t per_row, int32_t scheme, int32_t weights) {
    static float x[144 * 5], y[ROOM], literal[ROOM], reference[ROOM], alone[ROOM];
    int64_t dims[4] = {5, 1, 12, 12};
    qsim_tensor t = {QSIM_FLOAT, 4, dims, x, sizeof(x)};
    qsim_model *q = quantize(m, QSIM_MODE_DYNAMIC, per_row, scheme, weights);
    net_batch(x, 5, 7);
    for (int i = 144; i < 288; i++)
        x[i] = x[i] * 8 - 4; /* one sample has another range */
    for (int i = 288; i < 432; i++)
        x[i] = 0;
    size_t n = run_level(q, QSIM_LEVEL_ALL, &t, y, ROOM);
    CHECK_INT(run_level(q, QSIM_LEVEL_DISABLE, &t, literal, ROOM), n);
    CHECK(memcmp(y, literal, n * 4) == 0);
    CHECK_INT(run_level(m, QSIM_LEVEL_ALL, &t, reference, ROOM), n);
    check_like(reference, y, n, 20);
    size_t width = (size_t)(n / 5), first = net_count(m, "MatMul") ? 7 : width;
    for (int64_t i = 0; i < 5 && per_row; i++) {
        dims[0] = 1;
        t.data = x + 144 * i;
        t.bytes = 144 * 4;
        CHECK_INT(run_level(q, QSIM_LEVEL_ALL, &t, alone, ROOM), width);
        CHECK(memcmp(alone, y + (size_t)i * first, first * 4) == 0);
        CHECK(memcmp(alone + first, y + 5 * first + (size_t)i * (width - first),
                     (width - first) * 4) == 0);
    }
    qsim_model_free(q);
}

static void test_fused(void) {
    qsim_model *nets[] = {net_lenet(),
                          net_mixed(),
                          net_depthwise(),
                          net_behind(false, false),
                          net_behind(true, false),
                          net_behind(true, true)};
    const size_t count = sizeof(nets) / sizeof(*nets);
    for (size_t i = 0; i < count; i++)
        for (int32_t rows = 0; rows < 2; rows++)
            for (int32_t scheme = 0; scheme < 4; scheme++) {
                fused_one(nets[i], rows, scheme, QSIM_INT8);
                fused_one(nets[i], rows, scheme, QSIM_UINT8);
            }
    for (size_t i = 0; i < count; i++)
        qsim_model_free(nets[i]);
}

/* Is an operator of the highest level only a curve, sum, bound or join? */
static bool is_extra(const char *op) {
    static const char *const names[] = {"Clip", "Relu",      "Silu",   "Sigmoid", "Mul",
                                        "Add",  "HardSwish", "Concat", "Insert"};
    bool extra = false;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        extra |= strcmp(op, names[i]) == 0;
    return extra;
}

/* Operators after convolutions take no more steps than the one that computes sums. */
static void steps_of(qsim_model *m, int wanted) {
    qsim_model *q = quantize(m, QSIM_MODE_DYNAMIC, 0, 0, 0);
    int64_t dims[4] = {1, 1, 12, 12};
    static float x[144];
    qsim_tensor t = {QSIM_FLOAT, 4, dims, x, sizeof(x)}, y = {0};
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    CHECK_INT(qsim_session_create(q, NULL, &s, NULL), QSIM_OK);
    CHECK_INT(qsim_run_create(s, &r, NULL), QSIM_OK);
    CHECK_INT(qsim_run_execute(r, &t, 1, &y, 1, NULL), QSIM_OK);
    int depthwise = 0, extra = 0;
    for (int32_t i = 0; i < qsim_run_step_count(r); i++) {
        qsim_step_info info = {.struct_size = sizeof(info)};
        CHECK_INT(qsim_run_step(r, i, &info), QSIM_OK);
        depthwise += strcmp(info.kernel, "depthwise int8") == 0;
        extra += is_extra(info.op_type);
    }
    CHECK_INT(depthwise, wanted);
    CHECK_INT(extra, 0);
    qsim_run_free(r);
    qsim_session_free(s);
    qsim_model_free(q);
    qsim_model_free(m);
}

static void test_steps(void) {
    steps_of(net_depthwise(), 2);
    steps_of(net_behind(false, false), 1);
    steps_of(net_behind(true, false), 1);
    steps_of(net_behind(true, true), 1);
}

static void test_form(void) {
    qsim_model *m = net_mixed();
    qsim_model *q = quantize(m, QSIM_MODE_DYNAMIC, 0, 0, 0);
    qsim_node_info n;
    qsim_value_info v;
    CHECK_INT(net_count(q, "Conv") + net_count(q, "Gemm") + net_count(q, "MatMul"), 0);
    CHECK_INT(net_count(q, "ConvInteger"), 2);
    CHECK_INT(net_count(q, "MatMulInteger"), 2);
    CHECK_INT(net_count(q, "DynamicQuantizeLinear"), 4); /* x r1 f c2 */
    CHECK(net_find(q, "ConvInteger", "c1_sums_ConvInteger", &n));
    CHECK_STR(n.inputs[0], "x_quantized");
    CHECK_STR(n.inputs[2], "x_zero_point");
    CHECK(net_value(q, "w1_quantized", &v) && v.dtype == QSIM_UINT8 && v.bytes == 54);
    CHECK(net_value(q, "w1_scale", &v) && v.rank == 4 && v.dims[1] == 6);
    CHECK(net_value(q, "w4_quantized", &v) && v.dtype == QSIM_INT8 && v.bytes == 54);
    CHECK_INT(qsim_model_opset(q, ""), 18);
    qsim_model_free(q);
    /* Sessions count the whole chain as integers. */
    q = quantize(m, QSIM_MODE_DYNAMIC, 1, 0, 0);
    CHECK_INT(net_count(q, "DynamicQuantizeLinear"), 0);
    CHECK_INT(net_count(q, "ReduceMax"), 4);
    qsim_model_free(q);
    qsim_model_free(m);
}

/* Weights only: the numbers are scale * (code - zero point), and nothing else changes. */
static void test_weights(void) {
    static float x[144 * 2], y[ROOM], reference[ROOM];
    const int64_t dims[4] = {2, 1, 12, 12};
    qsim_tensor t = {QSIM_FLOAT, 4, dims, x, sizeof(x)};
    qsim_model *m = net_mixed();
    net_batch(x, 2, 3);
    for (int32_t scheme = 0; scheme < 4; scheme++) {
        qsim_model *q = quantize(m, QSIM_MODE_WEIGHTS, 0, scheme, scheme ? QSIM_UINT8 : QSIM_INT8);
        size_t n = run_level(q, QSIM_LEVEL_ALL, &t, y, ROOM);
        CHECK_INT(run_level(m, QSIM_LEVEL_ALL, &t, reference, ROOM), n);
        check_like(reference, y, n, 30);
        CHECK_INT(net_count(q, "DequantizeLinear"), 4);
        CHECK_INT(net_count(q, "Conv") + net_count(q, "Gemm") + net_count(q, "MatMul"), 4);
        qsim_model_free(q);
    }
    qsim_model_free(m);
}

/* One weight shared by three layers is one constant in each mode. */
static void test_shared_weight(void) {
    qsim_builder *b = NULL;
    qsim_value_info v;
    const char *symbol[2] = {"N", NULL};
    CHECK_INT(qsim_builder_create(NULL, 13, "shared", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, 2, (int64_t[]){-1, 8}, symbol);
    qsim_builder_output(b, "y", QSIM_FLOAT, 2, (int64_t[]){-1, 8}, symbol);
    net_constant(b, "w", 2, (int64_t[]){8, 8}, 0.5f, 1);
    qsim_builder_node(b, "", "MatMul", "one", "x,w", "a");
    qsim_builder_node(b, "", "Relu", "relu", "a", "r");
    qsim_builder_node(b, "", "MatMul", "two", "r,w", "c");
    qsim_builder_node(b, "", "MatMul", "three", "c,w", "y");
    qsim_model *m = net_finish(b);
    for (int32_t mode = QSIM_MODE_DYNAMIC; mode <= QSIM_MODE_WEIGHTS; mode++) {
        qsim_model *q = quantize(m, mode, 0, 0, 0);
        int written = 0;
        for (int32_t i = 0; i < qsim_model_value_count(q); i++) {
            v = (qsim_value_info){.struct_size = sizeof(v)};
            CHECK_INT(qsim_model_value(q, i, &v), QSIM_OK);
            written += strncmp(v.name, "w_quantized", 11) == 0;
        }
        CHECK_INT(written, 1);
        qsim_model_free(q);
    }
    qsim_model_free(m);
}

/* Counts nodes and their weights' bytes before and after; float layers count as nodes only. */
static int32_t count_layer(void *user, const qsim_layer_info *l) {
    int64_t *sum = user;
    sum[0]++;
    sum[1] += l->float_bytes;
    sum[2] += l->bytes;
    sum[3] += l->scheme < 0;
    return 0;
}

static void check_stored_layers(const qsim_model *m) {
    const qsim_rule rule = {
        .struct_size = sizeof(rule), .pattern = "lstm", .action = QSIM_RULE_FLOAT};
    qsim_quantize_options o = {.struct_size = sizeof(o), .mode = QSIM_MODE_DYNAMIC};
    int64_t sum[4] = {0};
    CHECK_INT(qsim_quantize_layers(m, NULL, &o, count_layer, sum, NULL), 2);
    CHECK(sum[0] == 2 && sum[1] == 4 * (54 + 96 + 64) && sum[2] == 54 + 96 + 64 && sum[3] == 0);
    o.rules = &rule;
    o.rule_count = 1;
    memset(sum, 0, sizeof(sum));
    CHECK_INT(qsim_quantize_layers(m, NULL, &o, count_layer, sum, NULL), 2);
    CHECK(sum[2] == 54 + 4 * (96 + 64) && sum[3] == 1);
}

/* Tables and recurrent weights are stored in 8 bits in dynamic mode, too, unless forbidden. */
static void test_stored(void) {
    qsim_builder *b = NULL;
    qsim_value_info v;
    CHECK_INT(qsim_builder_create(NULL, 13, "recurrent", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "ids", QSIM_INT64, 2, (int64_t[]){5, 2}, NULL);
    qsim_builder_output(b, "y", QSIM_FLOAT, 4, (int64_t[]){5, 1, 2, 4}, NULL);
    net_constant(b, "table", 2, (int64_t[]){9, 6}, 0.5f, 1);
    net_constant(b, "w", 3, (int64_t[]){1, 16, 6}, 0.5f, 2);
    net_constant(b, "r", 3, (int64_t[]){1, 16, 4}, 0.5f, 3);
    qsim_builder_node(b, "", "Gather", "rows", "table,ids", "x");
    qsim_builder_node(b, "", "LSTM", "lstm", "x,w,r", "y");
    qsim_builder_attr_int(b, "hidden_size", 4);
    qsim_model *m = net_finish(b);
    qsim_model *q = quantize(m, QSIM_MODE_DYNAMIC, 0, 0, 0);
    check_stored_layers(m);
    CHECK_INT(net_count(q, "DequantizeLinear"), 3);
    CHECK(net_value(q, "table_quantized", &v) && v.dtype == QSIM_INT8 && v.bytes == 54);
    CHECK(net_value(q, "w_quantized", &v) && v.dtype == QSIM_INT8 && v.bytes == 96);
    CHECK(net_value(q, "w_scale", &v) && v.rank == 1 && v.dims[0] == 16);
    CHECK(net_value(q, "r_quantized", &v) && v.dtype == QSIM_INT8 && v.bytes == 64);
    int64_t ids[10] = {0, 8, 3, 3, 1, 7, 2, 6, 5, 4};
    qsim_tensor t = {QSIM_INT64, 2, (int64_t[]){5, 2}, ids, sizeof(ids)};
    static float y[ROOM], reference[ROOM];
    const size_t n = run_level(q, QSIM_LEVEL_ALL, &t, y, ROOM);
    CHECK_INT(run_level(m, QSIM_LEVEL_ALL, &t, reference, ROOM), n);
    check_like(reference, y, n, 30);
    qsim_model_free(q);
    qsim_model_free(m);
}

static void test_refusals(void) {
    qsim_model *m = net_lenet();
    qsim_quantize_options o = {.struct_size = sizeof(o), .mode = 3};
    qsim_rule rule = {sizeof(rule), "fc*", QSIM_RULE_FLOAT, 0};
    net_refused(m, NULL, NULL, QSIM_E_ARGUMENT, "static quantization needs a calibration");
    net_refused(m, NULL, &o, QSIM_E_ARGUMENT, "mode 3");
    o.mode = QSIM_MODE_WEIGHTS;
    o.per_row = 1;
    net_refused(m, NULL, &o, QSIM_E_ARGUMENT, "per_row");
    qsim_model *q = quantize(m, QSIM_MODE_DYNAMIC, 0, 0, 0);
    o = (qsim_quantize_options){.struct_size = sizeof(o), .mode = QSIM_MODE_DYNAMIC};
    net_refused(q, NULL, &o, QSIM_E_UNSUPPORTED, "already quantized");
    qsim_calibration *c = NULL; /* nothing could be done with it */
    CHECK_INT(qsim_calibration_create(q, NULL, &c, NULL), QSIM_E_UNSUPPORTED);
    CHECK(c == NULL);
    qsim_model_free(q);
    q = quantize(m, QSIM_MODE_WEIGHTS, 0, 0, 0);
    o.mode = QSIM_MODE_WEIGHTS;
    net_refused(q, NULL, &o, QSIM_E_UNSUPPORTED, "already quantized");
    qsim_model_free(q);
    o.rules = &rule; /* some weights stay floats: they can be stored later */
    o.rule_count = 1;
    CHECK_INT(qsim_quantize(m, NULL, &o, &q, NULL), 0);
    o.rule_count = 0;
    qsim_model *all = NULL;
    CHECK_INT(qsim_quantize(q, NULL, &o, &all, NULL), 0);
    qsim_model_free(all);
    qsim_model_free(q);
    o = (qsim_quantize_options){.struct_size = sizeof(o), .mode = QSIM_MODE_DYNAMIC};
    o.rules = &rule;
    o.rule_count = 1;
    CHECK_INT(qsim_quantize(m, NULL, &o, &q, NULL), QSIM_OK);
    CHECK_INT(net_count(q, "Gemm"), 2);
    CHECK_INT(net_count(q, "ConvInteger"), 2);
    qsim_model_free(q);
    qsim_model_free(m);
}

/* x, reshaped to sizes that are an input, as their number is: a product or convolution reads it. */
static qsim_model *net_any_rank(bool conv) {
    qsim_builder *b = NULL;
    CHECK_INT(qsim_builder_create(NULL, 13, "any", &b, NULL), QSIM_OK);
    qsim_builder_input_as(b, "x", "float[2,4,8]");
    qsim_builder_input_as(b, "sizes", "int64[n]");
    qsim_builder_output_as(b, "y", NULL);
    net_constant(b, "w", conv ? 3 : 2, conv ? (int64_t[]){6, 4, 3} : (int64_t[]){8, 12}, 1, 5);
    qsim_builder_node(b, "", "Reshape", "", "x,sizes", "r");
    qsim_builder_node(b, "", conv ? "Conv" : "MatMul", "layer", "r,w", "y");
    return net_finish(b);
}

static size_t run_any_rank(const qsim_model *m, float *x, float *y) {
    static const int64_t sizes[] = {2, 4, 8}, count[] = {3};
    const qsim_tensor in[] = {{QSIM_FLOAT, 3, sizes, x, 64 * sizeof(float)},
                              {QSIM_INT64, 1, count, (void *)(uintptr_t)sizes, sizeof(sizes)}};
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    qsim_tensor out = {0};
    CHECK_INT(qsim_session_create(m, NULL, &s, NULL), QSIM_OK);
    CHECK_INT(qsim_run_create(s, &r, NULL), QSIM_OK);
    CHECK_INT(qsim_run_execute(r, in, 2, &out, 1, NULL), QSIM_OK);
    CHECK(out.bytes == 96 * sizeof(float));
    memcpy(y, out.data, 96 * sizeof(float));
    qsim_run_free(r);
    qsim_session_free(s);
    return 96;
}

/* Rows of a tensor of unknown rank: one has numbers a hundred times as large as the other. */
static void test_any_rank(void) {
    float x[64], y[96], z[96];
    uint64_t seed = 4;
    qsim_model *m = net_any_rank(false);
    qsim_model *q = quantize(m, QSIM_MODE_DYNAMIC, 1, QSIM_WEIGHT_CHANNEL_SYMMETRIC, QSIM_INT8);
    for (int i = 0; i < 64; i++)
        x[i] = ((float)test_random(&seed) / 2147483648.0f - 1) * (i < 32 ? 100 : 1);
    const size_t n = run_any_rank(m, x, y) / 2;
    run_any_rank(q, x, z);
    check_like(y + n, z + n, n, 30); /* the small numbers */
    qsim_model_free(m);
    qsim_model_free(q);
    /* An image has the rank of the weights. */
    qsim_node_info node;
    qsim_attr_info axes = {.struct_size = sizeof(axes)};
    m = net_any_rank(true);
    q = quantize(m, QSIM_MODE_DYNAMIC, 1, QSIM_WEIGHT_CHANNEL_SYMMETRIC, QSIM_INT8);
    CHECK(net_find(q, "ReduceMax", NULL, &node));
    CHECK_INT(qsim_model_attr(q, net_index(q, node.name), 0, &axes), QSIM_OK);
    CHECK(axes.count == 2 && axes.ints[0] == 1 && axes.ints[1] == 2);
    qsim_model_free(m);
    qsim_model_free(q);
}

int main(void) {
    test_any_rank();
    test_form();
    test_fused();
    test_steps();
    test_weights();
    test_shared_weight();
    test_stored();
    test_refusals();
    return test_done();
}
