/* SPDX-License-Identifier: MIT */
/*
 * RandomNormal and others: the generator against its authors' vectors, moments and the Kolmogorov
 * and Smirnov distance from the distribution, types, shapes, refusals.
 */
#include "op_harness.h"

#include "op/move/random.h"
#include "op/rules.h"
#include "tensor/minifloat.h"

#include <math.h>

/* Known answers that Random123, the authors' library, has for philox4x32 with 10 rounds. */
static void test_philox(void) {
    static const uint32_t known[3][10] = {
        {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
        {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x408f276d,
         0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
        {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09,
         0x94fdcceb, 0x5001e420, 0x24126ea1}};
    for (size_t k = 0; k < QS_COUNT(known); k++) {
        uint32_t out[4];
        qs_philox(known[k], known[k] + 4, out);
        for (int i = 0; i < 4; i++)
            CHECK(out[i] == known[k][6 + i]);
    }
}

/* ---- distributions ---- */

enum { COUNT = 100001 };

static double numbers[COUNT];

static op_case *make(const char *op, int64_t version, int32_t dtype, const char *a, float av,
                     const char *b, float bv) {
    op_case *c = case_new("", op, version);
    case_node(c, 1);
    qs_node_set_int(c->g, c->node, "dtype", dtype);
    qs_node_set_ints(c->g, c->node, "shape", DIMS(COUNT), 1);
    const qs_attr first = {.name = a, .type = QSIM_ATTR_FLOAT, .u.f = av};
    const qs_attr second = {.name = b, .type = QSIM_ATTR_FLOAT, .u.f = bv};
    CHECK_INT(qs_node_set_attr(c->g, c->node, &first), 0);
    CHECK_INT(qs_node_set_attr(c->g, c->node, &second), 0);
    CHECK_INT(case_run(c), 0);
    CHECK_INT(case_out(c, 0)->dtype, dtype);
    return c;
}

static void read_numbers(op_case *c, int32_t dtype) {
    const void *y = case_data(c, 0);
    for (int i = 0; i < COUNT; i++) {
        const uint16_t bits = ((const uint16_t *)y)[i];
        numbers[i] = dtype == QSIM_DOUBLE    ? ((const double *)y)[i]
                     : dtype == QSIM_FLOAT   ? (double)((const float *)y)[i]
                     : dtype == QSIM_FLOAT16 ? (double)qs_half_value(bits)
                                             : (double)qs_brain_value(bits);
    }
    case_free(c);
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double normal_below(double x) {
    return erfc(-x / sqrt(2.0)) / 2;
}

static double uniform_below(double x) {
    return x;
}

/*
 * Mean, variance, fourth moment, correlation of neighbours, and the greatest distance of the
 * numbers' distribution from `below`. The bounds are five standard errors, and the distance that
 * one sample in a thousand exceeds.
 */
static void check_distribution(double mean, double variance, double fourth, double (*below)(double),
                               double grain) {
    const double n = COUNT, error = sqrt(1 / n);
    double sums[4] = {0}, most = 0;
    for (int i = 0; i < COUNT; i++) {
        const double d = numbers[i] - mean;
        sums[0] += d / n;
        sums[1] += d * d / n;
        sums[2] += d * d * d * d / n;
        sums[3] += i ? d * (numbers[i - 1] - mean) / n : 0;
    }
    CHECK_NEAR(sums[0], 0, 5 * error * sqrt(variance) + grain);
    CHECK_NEAR(sums[1], variance, 5 * error * sqrt(fourth - variance * variance) + grain);
    CHECK_NEAR(sums[2], fourth, 50 * error * fourth);
    CHECK_NEAR(sums[3], 0, 5 * error * variance);
    qsort(numbers, COUNT, sizeof(*numbers), by_value);
    for (int i = 0; i < COUNT; i++) {
        const double f = below(numbers[i]);
        most = fmax(most, fmax((i + 1) / n - f, f - i / n));
    }
    CHECK(most < 1.95 * error + grain);
}

/* grain: how far rounding to the type moves a number, at most. */
static void test_distributions(void) {
    static const struct {
        int32_t dtype;
        double grain;
    } types[] = {{QSIM_FLOAT, 0}, {QSIM_DOUBLE, 0}, {QSIM_FLOAT16, 1e-3}, {QSIM_BFLOAT16, 8e-3}};
    for (size_t k = 0; k < QS_COUNT(types); k++) {
        const int32_t t = types[k].dtype;
        read_numbers(make("RandomNormal", 22, t, "mean", 0, "scale", 1), t);
        check_distribution(0, 1, 3, normal_below, types[k].grain);
        read_numbers(make("RandomUniform", 22, t, "low", 0, "high", 1), t);
        CHECK(numbers[0] >= 0);
        check_distribution(0.5, 1.0 / 12, 1.0 / 80, uniform_below, types[k].grain);
        CHECK(numbers[COUNT - 1] < 1); /* sorted by then; 1 itself is never drawn */
    }
    read_numbers(make("RandomNormal", 1, QSIM_DOUBLE, "mean", 5, "scale", 2), QSIM_DOUBLE);
    for (int i = 0; i < COUNT; i++)
        numbers[i] = (numbers[i] - 5) / 2;
    check_distribution(0, 1, 3, normal_below, 0);
    read_numbers(make("RandomUniform", 1, QSIM_DOUBLE, "low", -3, "high", 1), QSIM_DOUBLE);
    for (int i = 0; i < COUNT; i++)
        numbers[i] = (numbers[i] + 3) / 4;
    check_distribution(0.5, 1.0 / 12, 1.0 / 80, uniform_below, 0);
}

/* ---- Bernoulli, Multinomial ---- */

static void test_bernoulli(void) {
    static const int32_t types[] = {QSIM_FLOAT, QSIM_DOUBLE, QSIM_FLOAT16, QSIM_BFLOAT16,
                                    QSIM_INT8,  QSIM_INT64,  QSIM_UINT16,  QSIM_BOOL};
    static const uint64_t ones[] = {0x3f800000, 0x3ff0000000000000, 0x3c00, 0x3f80, 1, 1, 1, 1};
    static float p[COUNT];
    static uint8_t first[COUNT];
    for (int i = 0; i < COUNT; i++)
        p[i] = i < 100 ? 0 : i < 200 ? 1 : 0.3f;
    for (size_t k = 0; k < QS_COUNT(types); k++) {
        op_case *c = case_new("", "Bernoulli", 15);
        size_t size = qs_dtype_bytes(types[k]);
        int set = 0;
        case_input(c, QSIM_FLOAT, SHAPE(COUNT), p);
        case_node(c, 1);
        if (types[k] != QSIM_FLOAT) /* the input's type */
            qs_node_set_int(c->g, c->node, "dtype", types[k]);
        CHECK_INT(case_run(c), 0);
        CHECK_INT(case_out(c, 0)->dtype, types[k]);
        for (int i = 0; i < COUNT; i++) {
            uint64_t bits = 0;
            memcpy(&bits, (const char *)case_data(c, 0) + (size_t)i * size, size);
            CHECK(bits == 0 || bits == ones[k]);
            CHECK(i >= 200 || (bits != 0) == (i >= 100));
            set += i >= 200 && bits;
            first[i] = k == 0 ? bits != 0 : first[i];
            CHECK(first[i] == (bits != 0)); /* in every type the same */
        }
        CHECK_NEAR(set, 0.3 * (COUNT - 200), 5 * sqrt(0.21 * COUNT));
        case_free(c);
    }
}

/* Chi squared of the classes that were drawn; row 1 has the same odds, written with large logs. */
static void test_multinomial(void) {
    const float logs[2][5] = {{0, 0.69314718f, -INFINITY, 1.3862944f, 2.0794415f},
                              {300, 300.69314718f, -INFINITY, 301.3862944f, 302.0794415f}};
    static const double odds[5] = {1.0 / 15, 2.0 / 15, 0, 4.0 / 15, 8.0 / 15};
    for (int wide = 0; wide < 2; wide++) {
        op_case *c = case_new("", "Multinomial", 7);
        int same = 0;
        case_input(c, QSIM_FLOAT, SHAPE(2, 5), logs);
        case_node(c, 1);
        qs_node_set_int(c->g, c->node, "sample_size", 30001);
        if (wide)
            qs_node_set_int(c->g, c->node, "dtype", QSIM_INT64);
        CHECK_INT(case_run(c), 0);
        CHECK_STR(case_shape(c, 0), wide ? "int64[2,30001]" : "int32[2,30001]");
        for (int row = 0; row < 2; row++) {
            double chi = 0;
            int counts[5] = {0};
            for (int i = 0; i < 30001; i++) {
                const int at = row * 30001 + i;
                const int64_t k = wide ? ((const int64_t *)case_data(c, 0))[at]
                                       : ((const int32_t *)case_data(c, 0))[at];
                CHECK(k >= 0 && k < 5);
                counts[k]++;
                same += row == 0 && k == (wide ? ((const int64_t *)case_data(c, 0))[at + 30001]
                                               : ((const int32_t *)case_data(c, 0))[at + 30001]);
            }
            CHECK_INT(counts[2], 0);
            for (int k = 0; k < 5; k++)
                chi += k == 2 ? 0 : pow(counts[k] - odds[k] * 30001, 2) / (odds[k] * 30001);
            CHECK(chi < 16.3); /* three degrees of freedom: one in a thousand */
        }
        CHECK(same < 15000); /* rows are drawn independently: 38 % agree */
        case_free(c);
    }
    const float none[2] = {-INFINITY, -INFINITY};
    op_case *c = case_new("", "Multinomial", 7);
    case_input(c, QSIM_FLOAT, SHAPE(1, 2), none);
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    CHECK_INT(c->fault.code, QSIM_E_VALUE);
    case_free(c);
}

/* ---- shapes and refusals ---- */

static void refused(const char *op, int32_t dtype, const char *attr, int64_t value, int code) {
    op_case *c = case_new("", op, 22);
    if (dtype)
        case_input(c, dtype, SHAPE(2, -1), NULL);
    case_node(c, 1);
    if (attr && strcmp(attr, "shape") == 0)
        qs_node_set_ints(c->g, c->node, "shape", &value, 1);
    else if (attr)
        qs_node_set_int(c->g, c->node, attr, value);
    CHECK_INT(case_infer(c), code);
    if (code == QSIM_OK)
        CHECK_STR(case_shape(c, 0), dtype == QSIM_FLOAT16 ? "float16[2,-1]" : "float[2,-1]");
    case_free(c);
}

static void test_forms(void) {
    refused("RandomNormalLike", QSIM_FLOAT, NULL, 0, QSIM_OK);
    refused("RandomUniformLike", QSIM_FLOAT16, NULL, 0, QSIM_OK);
    refused("RandomUniformLike", QSIM_INT32, "dtype", QSIM_FLOAT, QSIM_OK);
    refused("Bernoulli", QSIM_DOUBLE, "dtype", QSIM_FLOAT, QSIM_OK);
    refused("RandomNormalLike", QSIM_INT32, NULL, 0, QSIM_E_DTYPE);
    refused("RandomNormalLike", QSIM_FLOAT, "dtype", QSIM_INT32, QSIM_E_DTYPE);
    refused("RandomNormalLike", QSIM_FLOAT, "dtype", 1000, QSIM_E_DTYPE);
    refused("RandomNormalLike", QSIM_FLOAT, "shape", 2, QSIM_E_UNSUPPORTED);
    refused("RandomNormal", 0, NULL, 0, QSIM_E_GRAPH);
    refused("RandomUniform", 0, "shape", -2, QSIM_E_VALUE);
    refused("Bernoulli", QSIM_INT32, NULL, 0, QSIM_E_DTYPE);
    refused("Multinomial", QSIM_FLOAT, "dtype", QSIM_FLOAT, QSIM_E_DTYPE);
    refused("Multinomial", QSIM_FLOAT, "sample_size", -1, QSIM_E_VALUE);
}

int main(void) {
    test_philox();
    test_distributions();
    test_bernoulli();
    test_multinomial();
    test_forms();
    return test_done();
}
