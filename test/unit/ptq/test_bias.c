/* SPDX-License-Identifier: MIT */
/* Bias correction against sums by hand: a product without a bias, padding, BatchNormalization. */
#include "ptq_nets.h"

#include <math.h>
#include <stdbool.h>

static bool constant(const qsim_model *m, const char *name, float *out, size_t n) {
    qsim_value_info v;
    if (!net_value(m, name, &v) || v.bytes != n * sizeof(float))
        return false;
    memcpy(out, v.data, v.bytes);
    return true;
}

/* The real value of a quantized weight. */
static float stored(const qsim_model *m, const char *weights, const char *scales, size_t channel,
                    size_t i) {
    qsim_value_info w, s;
    int8_t q;
    float scale;
    CHECK(net_value(m, weights, &w) && net_value(m, scales, &s));
    memcpy(&q, (const uint8_t *)w.data + i, 1);
    memcpy(&scale, (const uint8_t *)s.data + 4 * channel, 4);
    return (float)q * scale;
}

static qsim_model *quantized(const qsim_model *m, const qsim_calibration *c, int32_t mode,
                             int32_t off) {
    const qsim_quantize_options o = {
        .struct_size = sizeof(o), .mode = mode, .no_bias_correction = off};
    qsim_model *q = NULL;
    qsim_error e = {0};
    if (qsim_quantize(m, c, &o, &q, &e))
        fprintf(stderr, "%s\n", e.message);
    CHECK(q != NULL);
    return q;
}

static qsim_calibration *calibrate(const qsim_model *m, const qsim_tensor *x) {
    qsim_calibration *c = NULL;
    CHECK_INT(qsim_calibration_create(m, NULL, &c, NULL), QSIM_OK);
    CHECK_INT(qsim_calibration_feed(c, x, 1, NULL), QSIM_OK);
    return c;
}

/* A MatMul gets an Add of sum_k (W - Q(W))[k, o] * mean(x[k]); with the option, no Add. */
static void test_product(void) {
    static float x[4 * 6], w[6 * 3], shift[3];
    const int64_t dims[2] = {4, 6}, wdims[2] = {6, 3};
    qsim_tensor in = {QSIM_FLOAT, 2, dims, x, sizeof(x)};
    qsim_builder *b = NULL;
    uint64_t seed = 4;
    for (int i = 0; i < 24; i++)
        x[i] = (float)(test_random(&seed) % 1000) / 100;
    CHECK_INT(qsim_builder_create(NULL, 13, "product", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, 2, dims, NULL);
    net_constant(b, "w", 2, wdims, 1, 3);
    qsim_builder_node(b, "", "MatMul", "mm", "x,w", "y");
    qsim_builder_output(b, "y", QSIM_FLOAT, 2, (int64_t[]){4, 3}, NULL);
    qsim_model *m = net_finish(b);
    qsim_calibration *c = calibrate(m, &in);
    CHECK(constant(m, "w", w, 18));
    for (int32_t mode = QSIM_MODE_STATIC; mode <= QSIM_MODE_WEIGHTS; mode++) {
        qsim_model *q = quantized(m, c, mode, 0), *off = quantized(m, c, mode, 1);
        CHECK(constant(q, "mm_bias", shift, 3));
        CHECK(!constant(off, "mm_bias", shift, 3));
        for (size_t o = 0; o < 3; o++) {
            double sum = 0;
            for (size_t k = 0; k < 6; k++) {
                double mean = 0;
                for (size_t i = 0; i < 4; i++)
                    mean += (double)x[i * 6 + k] / 4;
                sum += (double)(w[k * 3 + o] - stored(q, "w_quantized", "w_scale", o, k * 3 + o)) *
                       mean;
            }
            CHECK_NEAR(shift[o], sum, 1e-6);
            CHECK(fabs(sum) > 1e-4);
        }
        qsim_model_free(q);
        qsim_model_free(off);
    }
    qsim_calibration_free(c);
    qsim_model_free(m);
}

/*
 * A 3x3 convolution over 4 x 4 pixels with a border of zeros: along each axis the outer taps read
 * the border at one of four positions, so that they count 3/4.
 */
static void test_padding(void) {
    static float x[2 * 2 * 16], w[2 * 2 * 9], bias[2], corrected[2];
    static const double share[3] = {0.75, 1, 0.75};
    const int64_t dims[4] = {2, 2, 4, 4};
    qsim_tensor in = {QSIM_FLOAT, 4, dims, x, sizeof(x)};
    qsim_builder *b = NULL;
    uint64_t seed = 5;
    for (int i = 0; i < 64; i++)
        x[i] = (float)(test_random(&seed) % 1000) / 100;
    CHECK_INT(qsim_builder_create(NULL, 13, "padding", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, 4, dims, NULL);
    net_constant(b, "w", 4, (int64_t[]){2, 2, 3, 3}, 1, 6);
    net_constant(b, "b", 1, (int64_t[]){2}, 1, 7);
    qsim_builder_node(b, "", "Conv", "conv", "x,w,b", "y");
    qsim_builder_attr_ints(b, "pads", (int64_t[]){1, 1, 1, 1}, 4);
    qsim_builder_output(b, "y", QSIM_FLOAT, 4, dims, NULL);
    qsim_model *m = net_finish(b);
    qsim_calibration *c = calibrate(m, &in);
    qsim_model *q = quantized(m, c, QSIM_MODE_WEIGHTS, 0);
    CHECK(constant(m, "w", w, 36) && constant(m, "b", bias, 2));
    CHECK(constant(q, "b_corrected", corrected, 2));
    for (size_t o = 0; o < 2; o++) {
        double sum = (double)bias[o];
        for (size_t k = 0; k < 18; k++) {
            double mean = 0;
            for (size_t i = 0; i < 32; i++)
                mean += (double)x[i / 16 * 32 + k / 9 * 16 + i % 16] / 32;
            sum += (double)(w[o * 18 + k] - stored(q, "w_quantized", "w_scale", o, o * 18 + k)) *
                   mean * share[k % 9 / 3] * share[k % 3];
        }
        CHECK_NEAR(corrected[o], sum, 1e-6);
    }
    qsim_model_free(q);
    qsim_calibration_free(c);
    qsim_model_free(m);
}

/*
 * Without data: after a BatchNormalization of bias b and scale s and a ReLU the mean of a channel
 * is b F(b / s) + s d(b / s), F and d of the standard normal distribution.
 */
static void test_without_data(void) {
    static float v[2 * 2], corrected[2];
    const int64_t two[1] = {2}, dims[4] = {1, 2, 4, 4};
    float scale[2] = {0.5f, -2}, shift[2] = {1, -1}, mean[2] = {3, 4}, var[2] = {5, 6};
    float *parts[4] = {scale, shift, mean, var};
    const char *names[4] = {"s", "t", "m", "v"};
    qsim_builder *b = NULL;
    CHECK_INT(qsim_builder_create(NULL, 13, "norm", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, 4, dims, NULL);
    net_constant(b, "w", 4, (int64_t[]){2, 2, 1, 1}, 1, 6);
    net_constant(b, "u", 4, (int64_t[]){2, 2, 1, 1}, 1, 8);
    for (int i = 0; i < 4; i++) {
        qsim_tensor t = {QSIM_FLOAT, 1, two, parts[i], 8};
        qsim_builder_constant(b, names[i], &t);
    }
    qsim_builder_node(b, "", "Conv", "a", "x,w", "c");
    qsim_builder_node(b, "", "BatchNormalization", "bn", "c,s,t,m,v", "n");
    qsim_builder_node(b, "", "Relu", "relu", "n", "r");
    qsim_builder_node(b, "", "Conv", "last", "r,u", "y");
    qsim_builder_output(b, "y", QSIM_FLOAT, 4, dims, NULL);
    qsim_model *m = net_finish(b);
    qsim_model *q = quantized(m, NULL, QSIM_MODE_WEIGHTS, 0);
    CHECK(constant(m, "u", v, 4) && constant(q, "u_bias", corrected, 2));
    for (size_t o = 0; o < 2; o++) {
        double sum = 0;
        for (size_t k = 0; k < 2; k++) {
            const double s = fabs((double)scale[k]), t = (double)shift[k], z = t / s;
            const double expected =
                t * 0.5 * erfc(-z / sqrt(2)) + s * exp(-z * z / 2) / sqrt(2 * 3.14159265358979);
            sum += (double)(v[o * 2 + k] - stored(q, "u_quantized", "u_scale", o, o * 2 + k)) *
                   expected;
        }
        CHECK_NEAR(corrected[o], sum, 1e-7);
    }
    qsim_model_free(q);
    qsim_model_free(m);
}

int main(void) {
    test_product();
    test_padding();
    test_without_data();
    return test_done();
}
