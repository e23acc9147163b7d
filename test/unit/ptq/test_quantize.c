/* SPDX-License-Identifier: MIT */
/* Quantization of graphs: the file's form, its numbers, rules, refusals. */
#include <math.h>

#include "graph/model.h"
#include "ptq/calibration.h"
#include "ptq_nets.h"

static float scalar(const qsim_model *m, const char *name) {
    qsim_value_info v;
    float f = NAN;
    CHECK(net_value(m, name, &v) && v.data && v.dtype == QSIM_FLOAT && v.rank == 0);
    if (v.data && v.bytes == 4)
        memcpy(&f, v.data, 4);
    return f;
}

/* An INT8 LeNet: pairs at the right places, ReLUs absorbed, scales shared. */
static void test_form(void) {
    qsim_model *m = net_lenet();
    qsim_calibration *c = net_calibrate(m, 4);
    qsim_model *q = net_quantize(m, c, NULL);
    qsim_node_info n;
    qsim_value_info v;
    CHECK_INT(net_count(q, "QuantizeLinear"), 7); /* x r1 p1 r2 f r3 y */
    CHECK_INT(net_count(q, "DequantizeLinear"), 7 + 4 + 4);
    CHECK_INT(net_count(q, "Relu"), 3);
    CHECK(net_find(q, "Conv", "conv1", &n));
    CHECK_STR(n.inputs[0], "x_DequantizeLinear_Output");
    CHECK_STR(n.inputs[1], "w1_DequantizeLinear_Output");
    CHECK_STR(n.inputs[2], "b1_DequantizeLinear_Output");
    CHECK_STR(n.outputs[0], "c1"); /* Conv -> Relu without a pair between them */
    CHECK(net_find(q, "QuantizeLinear", "r1_QuantizeLinear", &n));
    CHECK_STR(n.inputs[0], "r1");
    CHECK_STR(n.inputs[1], "r1_scale");
    CHECK(net_find(q, "QuantizeLinear", "p1_QuantizeLinear", &n));
    CHECK_STR(n.inputs[1], "r1_scale"); /* a pool moves values: one scale */
    CHECK(net_find(q, "QuantizeLinear", "f_QuantizeLinear", &n));
    CHECK_STR(n.inputs[1], "r2_scale");
    CHECK(net_find(q, "DequantizeLinear", "y_DequantizeLinear", &n));
    CHECK_STR(n.outputs[0], "y");
    CHECK(net_value(q, "w1_quantized", &v) && v.dtype == QSIM_INT8 && v.bytes == 36);
    CHECK(net_value(q, "w1_scale", &v) && v.rank == 1 && v.dims[0] == 4);
    CHECK(net_value(q, "w1_zero_point", &v) && v.dtype == QSIM_INT8 && v.bytes == 4);
    CHECK(net_value(q, "b1_quantized", &v) && v.dtype == QSIM_INT32 && v.bytes == 16);
    CHECK(net_value(q, "x_zero_point", &v) && v.dtype == QSIM_UINT8 && v.rank == 0);
    CHECK(!net_value(q, "w1", &v) || v.data == NULL || qsim_model_bytes(q) < qsim_model_bytes(m));
    CHECK_INT(qsim_model_opset(q, ""), 13);
    /* Scales follow from the ranges: (max - 0) / 255 after a ReLU. */
    float low, high;
    CHECK_INT(qsim_calibration_range(c, "r1", QSIM_METHOD_MINMAX, 0, QSIM_UINT8, 0, &low, &high),
              QSIM_OK);
    CHECK(low == 0 && scalar(q, "r1_scale") == high / 255);
    qsim_model_free(q);
    qsim_calibration_free(c);
    qsim_model_free(m);
}

/* Weights against a computation from scratch: symmetric per channel, bias in x_scale * w_scale. */
static void test_weights(void) {
    qsim_model *m = net_lenet();
    qsim_calibration *c = net_calibrate(m, 2);
    const qsim_quantize_options plain = {.struct_size = sizeof(plain), .no_bias_correction = 1};
    qsim_model *q = net_quantize(m, c, &plain);
    qsim_value_info w, b, wq, ws, bq;
    CHECK(net_value(m, "w2", &w) && net_value(m, "b2", &b));
    CHECK(net_value(q, "w2_quantized", &wq) && net_value(q, "w2_scale", &ws));
    CHECK(net_value(q, "b2_quantized", &bq));
    float xs = scalar(q, "r1_scale"), fw[216], fb[6], s[6];
    int8_t qw[216];
    int32_t qb[6];
    memcpy(fw, w.data, sizeof(fw));
    memcpy(fb, b.data, sizeof(fb));
    memcpy(s, ws.data, sizeof(s));
    memcpy(qw, wq.data, sizeof(qw));
    memcpy(qb, bq.data, sizeof(qb));
    int wrong = 0;
    for (int k = 0; k < 6; k++) {
        float most = 0;
        for (int i = 0; i < 36; i++)
            most = fmaxf(most, fabsf(fw[k * 36 + i]));
        CHECK_NEAR(s[k], most / 127, 1e-9);
        for (int i = 0; i < 36; i++)
            wrong += qw[k * 36 + i] != (int)rintf(fw[k * 36 + i] / s[k]);
        CHECK_NEAR((double)qb[k] * (double)xs * (double)s[k], fb[k], 0.51 * (double)(xs * s[k]));
    }
    CHECK_INT(wrong, 0);
    qsim_model_free(q);
    qsim_calibration_free(c);
    qsim_model_free(m);
}

/* Every combination of options gives a model that runs and stays near the float one. */
static void test_accuracy(void) {
    static float x[144 * 8], y[40], z[40];
    const int64_t dims[4] = {8, 1, 12, 12};
    qsim_tensor t = {QSIM_FLOAT, 4, dims, x, sizeof(x)};
    qsim_model *m = net_lenet();
    qsim_calibration *c = net_calibrate(m, 8);
    net_batch(x, 8, 7);
    CHECK_INT(net_run(m, &t, y, 40), 40);
    for (int k = 0; k < 32; k++) {
        qsim_quantize_options o = {.struct_size = sizeof(o)};
        o.activation_type = k & 1 ? QSIM_INT8 : QSIM_UINT8;
        o.activation_symmetric = k >> 1 & 1;
        o.weight_type = k >> 2 & 1 ? QSIM_UINT8 : QSIM_INT8;
        o.weight_scheme = k / 8 % 4;
        o.method = k % 4;
        o.reduce_range = k >= 24;
        qsim_model *q = net_quantize(m, c, &o);
        CHECK_INT(net_run(q, &t, z, 40), 40);
        double noise = 0, signal = 0;
        for (int i = 0; i < 40; i++) {
            noise += pow((double)(y[i] - z[i]), 2);
            signal += pow((double)y[i], 2);
        }
        if (!(signal > 300 * noise))
            fprintf(stderr, "options %d: %g dB\n", k, 10 * log10(signal / noise));
        CHECK(signal > 300 * noise); /* 25 dB */
        qsim_model_free(q);
    }
    qsim_calibration_free(c);
    qsim_model_free(m);
}

/* Integer operators in the file give the bits of the pairs. */
static void test_qoperator(void) {
    static float x[144 * 8], y[40], z[40];
    const int64_t dims[4] = {8, 1, 12, 12};
    qsim_tensor t = {QSIM_FLOAT, 4, dims, x, sizeof(x)};
    qsim_model *m = net_lenet();
    qsim_calibration *c = net_calibrate(m, 2);
    qsim_node_info n;
    for (int k = 0; k < 2; k++) {
        qsim_quantize_options o = {.struct_size = sizeof(o),
                                   .activation_type = k ? QSIM_INT8 : QSIM_UINT8};
        qsim_model *pairs = net_quantize(m, c, &o), *ops;
        o.format = QSIM_FORMAT_QOPERATOR;
        ops = net_quantize(m, c, &o);
        CHECK_INT(net_count(ops, "Conv"), 0);
        CHECK_INT(net_count(ops, "QLinearConv"), 2);
        CHECK_INT(net_count(pairs, "QLinearConv"), 0);
        CHECK(net_find(ops, "QLinearConv", "conv1", &n) && n.domain[0] == 0);
        for (int32_t i = 0; i < qsim_model_node_count(ops); i++) {
            n = (qsim_node_info){.struct_size = sizeof(n)};
            CHECK_INT(qsim_model_node(ops, i, &n), QSIM_OK);
            CHECK(strcmp(n.domain, "qsim") != 0);
            for (int32_t j = 0; j < n.output_count; j++)
                CHECK(n.outputs[j][0] != 0);
        }
        net_batch(x, 8, 7);
        CHECK_INT(net_run(pairs, &t, y, 40), 40);
        CHECK_INT(net_run(ops, &t, z, 40), 40);
        CHECK(memcmp(y, z, sizeof(y)) == 0);
        static char file[1 << 18];
        size_t size = 0;
        qsim_model *back = NULL;
        CHECK_INT(qsim_model_save_memory(ops, file, sizeof(file), &size, NULL), QSIM_OK);
        CHECK_INT(qsim_model_load_memory(NULL, file, size, NULL, &back, NULL), QSIM_OK);
        qsim_model_free(back);
        qsim_model_free(pairs);
        qsim_model_free(ops);
    }
    qsim_calibration_free(c);
    qsim_model_free(m);
}

static size_t bytes_of(const qsim_model *m, void *buffer, size_t capacity) {
    size_t need = 0;
    CHECK_INT(qsim_model_save_memory(m, buffer, capacity, &need, NULL), QSIM_OK);
    CHECK(need <= capacity);
    return need;
}

/* The same bytes each time; the written file loads and gives the same numbers. */
static void test_bytes(void) {
    static char one[1 << 18], two[1 << 18];
    static float x[144], y[5], z[5];
    const int64_t dims[4] = {1, 1, 12, 12};
    qsim_tensor t = {QSIM_FLOAT, 4, dims, x, sizeof(x)};
    qsim_model *m = net_lenet(), *back = NULL;
    qsim_calibration *c = net_calibrate(m, 2), *d = net_calibrate(m, 2);
    qsim_model *q = net_quantize(m, c, NULL), *r = net_quantize(m, d, NULL);
    size_t n = bytes_of(q, one, sizeof(one));
    CHECK_INT(bytes_of(r, two, sizeof(two)), n);
    CHECK(memcmp(one, two, n) == 0);
    CHECK_INT(qsim_model_load_memory(NULL, one, n, NULL, &back, NULL), QSIM_OK);
    net_batch(x, 1, 3);
    CHECK_INT(net_run(q, &t, y, 5), 5);
    CHECK_INT(net_run(back, &t, z, 5), 5);
    CHECK(memcmp(y, z, sizeof(y)) == 0);
    CHECK_INT(qsim_model_ir_version(back), 7);
    int found = 0;
    for (int32_t i = 0; i < qsim_model_metadata_count(back); i++)
        found += strncmp(qsim_model_metadata_key(back, i), "qsim.", 5) == 0;
    CHECK_INT(found, 3);
    qsim_model_free(back);
    qsim_model_free(q);
    qsim_model_free(r);
    qsim_calibration_free(c);
    qsim_calibration_free(d);
    qsim_model_free(m);
}

/* Rules by name; a tensor that was not calibrated keeps its neighbours in float. */
static void test_rules(void) {
    qsim_model *m = net_lenet(), *q = NULL;
    qsim_calibration *c = net_calibrate(m, 2);
    qsim_error e;
    qsim_node_info n;
    qsim_rule rules[2] = {
        {.struct_size = sizeof(rules[0]), .pattern = "fc*", .action = QSIM_RULE_FLOAT},
        {.struct_size = sizeof(rules[0]), .pattern = "fc[2-9]", .action = QSIM_RULE_INT8}};
    qsim_quantize_options o = {.struct_size = sizeof(o), .rules = rules, .rule_count = 2};
    q = net_quantize(m, c, &o);
    CHECK(net_find(q, "Gemm", "fc1", &n));
    CHECK_STR(n.inputs[1], "w3");
    CHECK(net_find(q, "Gemm", "fc2", &n));
    CHECK_STR(n.inputs[1], "w4_DequantizeLinear_Output");
    CHECK_INT(net_layer_count(m), 4);
    net_layers l = net_layer(m, NULL, &o, 2);
    CHECK_STR(l.name, "fc1");
    CHECK_STR(l.op_type, "Gemm");
    CHECK(l.info.scheme == -1 && l.info.dtype == QSIM_FLOAT &&
          l.info.float_bytes == 4 * (16 * 54 + 16) && l.info.bytes == l.info.float_bytes);
    l = net_layer(m, NULL, &o, 3);
    CHECK(l.info.scheme == 0 && l.info.dtype == QSIM_INT8 && l.info.bytes == 80 + 4 * 5);
    qsim_model_free(q);
    q = NULL;
    rules[1].pattern = "conv9";
    CHECK_INT(qsim_quantize(m, c, &o, &q, &e), QSIM_E_NOT_FOUND);
    CHECK(q == NULL && strstr(e.message, "conv9"));
    qsim_calibration_free(c);
    qsim_model_free(m);
}

static void test_refused(void) {
    qsim_model *m = net_lenet(), *other = NULL, *q = NULL;
    qsim_calibration *c = net_calibrate(m, 1);
    qsim_error e;
    qsim_quantize_options o = {.struct_size = sizeof(o), .weight_type = QSIM_INT16};
    CHECK_INT(qsim_quantize(m, c, &o, &q, &e), QSIM_E_UNSUPPORTED);
    o = (qsim_quantize_options){.struct_size = sizeof(o), .method = 9};
    CHECK_INT(qsim_quantize(m, c, &o, &q, &e), QSIM_E_ARGUMENT);
    o = (qsim_quantize_options){.struct_size = sizeof(o), .percentile = -1};
    CHECK_INT(qsim_quantize(m, c, &o, &q, &e), QSIM_E_ARGUMENT);
    qsim_rule rule = {.pattern = "*", .action = QSIM_RULE_FLOAT}; /* no struct_size */
    o = (qsim_quantize_options){.struct_size = sizeof(o), .rules = &rule, .rule_count = 1};
    CHECK_INT(qsim_quantize(m, c, &o, &q, &e), QSIM_E_ARGUMENT);
    qsim_builder *b = NULL;
    CHECK_INT(qsim_builder_create(NULL, 13, "other", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, 1, (int64_t[]){4}, NULL);
    qsim_builder_output(b, "y", QSIM_FLOAT, 1, (int64_t[]){4}, NULL);
    qsim_builder_node(b, "", "Relu", "r", "x", "y");
    other = net_finish(b);
    CHECK_INT(qsim_quantize(other, c, NULL, &q, &e), QSIM_E_MISMATCH);
    /* A NaN in a batch is refused by name and leaves no trace. */
    static float x[144];
    const int64_t dims[4] = {1, 1, 12, 12};
    qsim_tensor t = {QSIM_FLOAT, 4, dims, x, sizeof(x)};
    float low, high, low2, high2;
    CHECK_INT(qsim_calibration_range(c, "y", 0, 0, QSIM_UINT8, 0, &low, &high), QSIM_OK);
    x[20] = NAN;
    CHECK_INT(qsim_calibration_feed(c, &t, 1, &e), QSIM_E_VALUE);
    CHECK(strstr(e.message, "'x'") != NULL);
    CHECK_INT(qsim_calibration_range(c, "y", 0, 0, QSIM_UINT8, 0, &low2, &high2), QSIM_OK);
    CHECK(low == low2 && high == high2);
    /* The range of a named tensor is that of its observer, for the given type. */
    CHECK_INT(qsim_calibration_range(c, "y", QSIM_METHOD_MSE, 0, QSIM_INT4, QSIM_RANGE_SYMMETRIC,
                                     &low, &high),
              QSIM_OK);
    for (int32_t i = 0; i < qsim_calibration_count(c); i++)
        if (strcmp(qsim_calibration_name(c, i), "y") == 0)
            CHECK_INT(qsim_observer_range(qsim_calibration_observer(c, i), QSIM_METHOD_MSE, 0,
                                          QSIM_INT4, QSIM_RANGE_SYMMETRIC, &low2, &high2),
                      QSIM_OK);
    CHECK(low == low2 && high == high2);
    CHECK_INT(qsim_calibration_range(c, "y", QSIM_METHOD_MSE, 0, QSIM_UINT8, 0, &low2, &high2),
              QSIM_OK);
    CHECK(low != low2 || high != high2);
    CHECK_INT(qsim_calibration_range(c, "y", QSIM_METHOD_MSE, 0, QSIM_INT16, 0, &low2, &high2),
              QSIM_E_DTYPE);
    CHECK_INT(qsim_calibration_samples(c), 8);
    qsim_calibration_free(c);
    qsim_model_free(m);
    qsim_model_free(other);
}

/* A Gemm of [2, 4] by 4 x `columns` weights with a bias, calibrated on `x`. */
static qsim_model *gemm(const float *w, const float *bias, int64_t columns, const qsim_tensor *x,
                        qsim_calibration **c) {
    qsim_builder *b = NULL;
    const int64_t dw[2] = {4, columns}, dy[2] = {2, columns};
    const size_t row = (size_t)columns * sizeof(float);
    const qsim_tensor tw = {QSIM_FLOAT, 2, dw, (void *)(uintptr_t)w, 4 * row};
    const qsim_tensor tb = {QSIM_FLOAT, 1, &columns, (void *)(uintptr_t)bias, row};
    CHECK_INT(qsim_builder_create(NULL, 13, "g", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, 2, x->dims, NULL);
    qsim_builder_output(b, "y", QSIM_FLOAT, 2, dy, NULL);
    qsim_builder_constant(b, "w", &tw);
    qsim_builder_constant(b, "b", &tb);
    qsim_builder_node(b, "", "Gemm", "g", "x,w,b", "y");
    qsim_model *m = net_finish(b);
    CHECK_INT(qsim_calibration_create(m, NULL, c, NULL), QSIM_OK);
    CHECK_INT(qsim_calibration_feed(*c, x, 1, NULL), QSIM_OK);
    return m;
}

/*
 * Overflow by construction. fc(4 -> 3): channel 0 has weights that are tiny beside its bias,
 * channel 1 has none but a bias, channel 2 is plain. With scales from the weights alone, bias 0
 * would need 1e9 / (x_scale * 1e-9 / 127) = 3e22 steps.
 */
static void test_overflow(void) {
    const float w[12] = {1e-9f, 0, 1, -1e-9f, 0, -0.5f, 1e-9f, 0, 0.25f, 0, 0, 0.125f};
    const float bias[3] = {1e6f, -0.7f, 0.3f};
    const int64_t dx[2] = {2, 4};
    float x[8] = {1, 2, 3, 4, 0.5f, 0, -1, 2}, y[6], z[6];
    qsim_tensor t = {QSIM_FLOAT, 2, dx, x, sizeof(x)};
    qsim_calibration *c = NULL;
    qsim_model *m = gemm(w, bias, 3, &t, &c);
    CHECK_INT(net_run(m, &t, y, 6), 6);
    for (int scheme = 0; scheme < 3; scheme++) {
        qsim_quantize_options o = {.struct_size = sizeof(o), .weight_scheme = scheme};
        qsim_model *q = net_quantize(m, c, &o);
        qsim_value_info v;
        int32_t qb[3];
        CHECK(net_value(q, "b_quantized", &v) && v.bytes == sizeof(qb));
        memcpy(qb, v.data, sizeof(qb));
        for (int k = 0; k < 3; k++)
            CHECK(qb[k] != INT32_MIN && qb[k] != INT32_MAX);
        CHECK_INT(net_run(q, &t, z, 6), 6);
        /* y runs to 1e6, so its step is 3922: channel 0 must be right, not wrapped. */
        CHECK_NEAR(z[0], y[0], 4000);
        CHECK_NEAR(z[3], y[3], 4000);
        if (scheme == 0) {
            float s[3];
            CHECK(net_value(q, "b_quantized_scale", &v) && v.bytes == sizeof(s));
            memcpy(s, v.data, sizeof(s));
            CHECK_NEAR((double)qb[0] * (double)s[0], 1e6, 1);
            CHECK_NEAR((double)qb[1] * (double)s[1], -0.7, 1e-6); /* no weights: 24 bits for it */
            CHECK_NEAR((double)qb[2] * (double)s[2], 0.3, 0.02);
        }
        qsim_model_free(q);
    }
    qsim_calibration_free(c);
    qsim_model_free(m);
}

/* One output channel, per channel and per tensor: its scale is that of its weights. */
static void test_one_channel(void) {
    const int64_t dx[2] = {2, 4};
    float w[4] = {0.25f, -0.5f, 1, 0.125f}, bias[1] = {0.3f}, y[2], z[2], s;
    float x[8] = {1, 2, 3, 4, 0.5f, 0, -1, 2};
    qsim_tensor t = {QSIM_FLOAT, 2, dx, x, sizeof(x)};
    qsim_calibration *c = NULL;
    qsim_model *m = gemm(w, bias, 1, &t, &c);
    CHECK_INT(net_run(m, &t, y, 2), 2);
    for (int scheme = 0; scheme < 3; scheme++) {
        qsim_quantize_options o = {.struct_size = sizeof(o), .weight_scheme = scheme};
        qsim_model *q = net_quantize(m, c, &o);
        qsim_value_info v;
        CHECK(net_value(q, "w_scale", &v) && v.bytes == sizeof(s));
        memcpy(&s, v.data, sizeof(s));
        CHECK_NEAR(s, scheme == QSIM_WEIGHT_TENSOR_ASYMMETRIC ? 1.5 / 255 : 1.0 / 127, 1e-8);
        CHECK_INT(net_run(q, &t, z, 2), 2);
        for (int i = 0; i < 2; i++)
            CHECK_NEAR(z[i], y[i], 0.05);
        qsim_model_free(q);
    }
    qsim_calibration_free(c);
    qsim_model_free(m);
}

/* Quantizing uses the graph that the calibration prepared, if both are of one model. */
static void test_prepared_once(void) {
    qsim_model *m = net_lenet(), *same = net_lenet();
    qsim_calibration *c = net_calibrate(m, 2);
    qsim_model *q = net_quantize(m, c, NULL), *r = net_quantize(same, c, NULL);
    CHECK(q && q->base == c->prepared);
    CHECK(r && r->base != c->prepared && r->base->base == same);
    qsim_model_free(r);
    qsim_model_free(q);
    qsim_calibration_free(c);
    qsim_model_free(same);
    qsim_model_free(m);
}

int main(void) {
    test_prepared_once();
    test_form();
    test_weights();
    test_accuracy();
    test_qoperator();
    test_bytes();
    test_rules();
    test_refused();
    test_overflow();
    test_one_channel();
    return test_done();
}
