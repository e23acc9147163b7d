/* SPDX-License-Identifier: MIT */
/* Normalizations and LogSoftmax against their formulas in plain loops. */
#include "op_numbers.h"

#include <math.h>

/* Inputs of shape (2, 4, 3), some negative. */
static double data[24];

static op_case *on_data(const char *op, int32_t version, int32_t dtype) {
    op_case *c = case_new("", op, version);
    case_numbers(c, dtype, SHAPE(2, 4, 3), data);
    return c;
}

static void near_numbers(op_case *c, const char *shape, const double *expected) {
    CHECK_INT(case_run(c), 0);
    CHECK_STR(c->error.message, "");
    check_numbers(c, 0, shape, expected, 2e-6);
    case_free(c);
}

static const char *shape_of(int32_t dtype) {
    return dtype == QSIM_DOUBLE ? "double[2,4,3]" : "float[2,4,3]";
}

/* `each` channels share statistics; scale and bias are of channels or of groups. */
static void group_one(const char *op, int32_t version, int32_t dtype, size_t each) {
    const bool by_group = version == 18;
    double y[24], scale[4], bias[4];
    for (size_t i = 0; i < 4; i++) {
        scale[i] = 1.5 - (double)i;
        bias[i] = (double)i / 4;
    }
    for (size_t first = 0; first < 24; first += each * 3) {
        double mean = 0, variance = 0;
        for (size_t i = first; i < first + each * 3; i++)
            mean += data[i] / (double)(each * 3);
        for (size_t i = first; i < first + each * 3; i++)
            variance += (data[i] - mean) * (data[i] - mean) / (double)(each * 3);
        for (size_t i = first; i < first + each * 3; i++) {
            const size_t c = by_group ? i / 3 % 4 / each : i / 3 % 4;
            y[i] = (data[i] - mean) / sqrt(variance + 0.25) * scale[c] + bias[c];
        }
    }
    op_case *c = on_data(op, version, dtype);
    const int64_t count = by_group ? 4 / (int64_t)each : 4;
    case_numbers(c, dtype, 1, &count, scale);
    case_numbers(c, dtype, 1, &count, bias);
    case_node(c, 1);
    CHECK_INT(qs_node_set_float(c->g, c->node, "epsilon", 0.25f), 0);
    if (strcmp(op, "GroupNormalization") == 0)
        case_attr_int(c, "num_groups", 4 / (int64_t)each);
    near_numbers(c, shape_of(dtype), y);
}

static void test_groups(void) {
    for (int32_t t = 0; t < 2; t++) {
        const int32_t dtype = t ? QSIM_DOUBLE : QSIM_FLOAT;
        group_one("InstanceNormalization", 1, dtype, 1);
        group_one("InstanceNormalization", 22, dtype, 1);
        for (size_t each = 1; each <= 4; each *= 2) {
            group_one("GroupNormalization", 18, dtype, each);
            group_one("GroupNormalization", 21, dtype, each);
        }
    }
    op_case *c = on_data("GroupNormalization", 18, QSIM_FLOAT); /* to scales of channels */
    case_numbers(c, QSIM_FLOAT, SHAPE(2), data);
    case_numbers(c, QSIM_FLOAT, SHAPE(2), data);
    case_node(c, 1);
    case_attr_int(c, "num_groups", 2);
    CHECK_INT(case_infer(c), 0);
    CHECK_INT(qs_op_upgrade_graph(c->g, 21, "m", &c->error), 0);
    CHECK_INT(qs_op_infer_graph(c->g, "m", &c->error), 0);
    CHECK_INT(c->g->values[c->g->nodes[c->node].inputs[1]].dims[0].size, 4);
    case_free(c);
    c = on_data("GroupNormalization", 21, QSIM_FLOAT);
    case_numbers(c, QSIM_FLOAT, SHAPE(4), data);
    case_numbers(c, QSIM_FLOAT, SHAPE(4), data);
    case_node(c, 1);
    case_attr_int(c, "num_groups", 3);
    case_refused(c, QSIM_E_VALUE);
    c = on_data("InstanceNormalization", 6, QSIM_FLOAT);
    case_numbers(c, QSIM_FLOAT, SHAPE(3), data);
    case_numbers(c, QSIM_FLOAT, SHAPE(4), data);
    case_node(c, 1);
    case_refused(c, QSIM_E_SHAPE);
}

/* Along axis 1, whose elements lie 3 apart, or 2. */
static void lp_one(int32_t dtype, int64_t axis, int64_t order) {
    double y[24];
    const size_t count = axis == 1 ? 4 : 3, step = axis == 1 ? 3 : 1;
    for (size_t i = 0; i < 24; i++) {
        const size_t first = axis == 1 ? i / 12 * 12 + i % 3 : i / 3 * 3;
        double norm = 0;
        for (size_t k = 0; k < count; k++)
            norm += order == 1 ? fabs(data[first + k * step]) : pow(data[first + k * step], 2);
        norm = order == 1 ? norm : sqrt(norm);
        y[i] = data[i] / norm;
    }
    op_case *c = on_data("LpNormalization", 1, dtype);
    case_node(c, 1);
    if (axis == 1 || order == 1) {
        case_attr_int(c, "axis", axis == 1 ? -2 : 2);
        case_attr_int(c, "p", order);
    }
    near_numbers(c, shape_of(dtype), y);
}

static void lrn_one(int32_t dtype, int64_t size) {
    const float beta = size % 2 ? 0.75f : 0.625f; /* the default, and another one */
    double y[24];
    for (int64_t i = 0; i < 24; i++) {
        const int64_t c = i / 3 % 4;
        double sum = 0;
        for (int64_t k = c - (size - 1) / 2; k <= c + size / 2; k++)
            if (k >= 0 && k < 4)
                sum += pow(data[i + (k - c) * 3], 2);
        y[i] = data[i] / pow(2 + 0.5 / (double)size * sum, (double)beta);
    }
    op_case *c = on_data("LRN", 13, dtype);
    case_node(c, 1);
    case_attr_int(c, "size", size);
    if (size % 2 == 0)
        CHECK_INT(qs_node_set_float(c->g, c->node, "beta", beta), 0);
    CHECK_INT(qs_node_set_float(c->g, c->node, "alpha", 0.5f), 0);
    CHECK_INT(qs_node_set_float(c->g, c->node, "bias", 2), 0);
    near_numbers(c, shape_of(dtype), y);
}

/* A row that is longer than the lanes of its sum, and one of zeros. */
static void lp_long(void) {
    enum { N = 1000 };
    float x[2 * N] = {0};
    double squares = 0;
    for (int i = 0; i < N; i++) {
        x[i] = (float)(i % 37 - 11) * 0.37f;
        squares += (double)x[i] * (double)x[i];
    }
    op_case *c = case_new("", "LpNormalization", 22);
    case_input(c, QSIM_FLOAT, SHAPE(2, N), x);
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    const float *y = case_data(c, 0);
    for (int i = 0; i < N; i++) {
        CHECK_NEAR(y[i], (double)x[i] / sqrt(squares), 1e-7);
        CHECK(y[N + i] == 0.0f);
    }
    case_free(c);
}

static void test_local(void) {
    lp_long();
    for (int32_t t = 0; t < 2; t++) {
        const int32_t dtype = t ? QSIM_DOUBLE : QSIM_FLOAT;
        for (int64_t i = 0; i < 4; i++)
            lp_one(dtype, 1 + i % 2, 1 + i / 2);
        for (int64_t size = 1; size < 7; size++)
            lrn_one(dtype, size);
    }
    op_case *c = case_new("", "LpNormalization", 22); /* nothing to divide by */
    case_numbers(c, QSIM_FLOAT, SHAPE(2), NUMBERS(0, 0));
    case_node(c, 1);
    case_gives(c, "float[2]", NUMBERS(0, 0));
    c = on_data("LpNormalization", 1, QSIM_FLOAT);
    case_node(c, 1);
    case_attr_int(c, "p", 3);
    case_refused(c, QSIM_E_VALUE);
    c = on_data("LRN", 1, QSIM_FLOAT);
    case_node(c, 1);
    case_refused(c, QSIM_E_VALUE);
}

/* `version` below 13: the axes from 1 on are one. */
static void log_softmax_one(int32_t version, int64_t axis) {
    double y[24];
    const size_t count = version < 13 ? 12 : axis == 1 ? 4 : 3;
    const size_t step = version >= 13 && axis == 1 ? 3 : 1;
    for (size_t i = 0; i < 24; i++) {
        const size_t first = step == 3 ? i / 12 * 12 + i % 3 : i / count * count;
        double sum = 0;
        for (size_t k = 0; k < count; k++)
            sum += exp(data[first + k * step]);
        y[i] = data[i] - log(sum);
    }
    op_case *c = on_data("LogSoftmax", version, QSIM_FLOAT);
    case_node(c, 1);
    if (axis)
        case_attr_int(c, "axis", axis);
    near_numbers(c, "float[2,4,3]", y);
}

static void test_log_softmax(void) {
    log_softmax_one(1, 0);
    log_softmax_one(11, -2);
    log_softmax_one(13, 0);
    log_softmax_one(13, 1);
    op_case *c = case_new("", "LogSoftmax", 13); /* exponentials that no float holds */
    case_numbers(c, QSIM_FLOAT, SHAPE(2), NUMBERS(1000, 1000));
    case_node(c, 1);
    near_numbers(c, "float[2]", NUMBERS(-0.6931471805599453, -0.6931471805599453));
    c = on_data("LogSoftmax", 11, QSIM_FLOAT); /* Flatten, LogSoftmax, Reshape */
    case_node(c, 1);
    CHECK_INT(case_infer(c), 0);
    CHECK_INT(qs_op_upgrade_graph(c->g, 13, "m", &c->error), 0);
    size_t found = 0;
    for (size_t i = 0; i < c->g->node_count; i++)
        found += strcmp(c->g->nodes[i].op_type, "LogSoftmax") == 0;
    CHECK_INT(found, 1);
    case_free(c);
}

/* The results of rows whose n elements are `inner` apart. */
static float *softmax_of(const char *op, const float *x, size_t n, size_t inner) {
    op_case *c = case_new("", op, 13);
    float *y = malloc(2 * n * inner * sizeof(*y));
    case_input(c, QSIM_FLOAT, SHAPE(2, (int64_t)n, (int64_t)inner), x);
    case_node(c, 1);
    case_attr_int(c, "axis", 1);
    CHECK_INT(case_run(c), 0);
    CHECK(y != NULL);
    memcpy(y, case_data(c, 0), 2 * n * inner * sizeof(*y));
    case_free(c);
    return y;
}

/* Rows across have the bits of the same rows by themselves, and their exponentials' shares. */
static void softmax_across(const char *op, size_t n, size_t inner) {
    const bool logs = op[0] == 'L';
    float *x = malloc(2 * n * inner * sizeof(*x)), *row = malloc(2 * n * sizeof(*row));
    CHECK(x != NULL && row != NULL);
    for (size_t i = 0; i < 2 * n * inner; i++)
        x[i] = (float)(i * 7919 % 1013) / 50 - 10;
    float *y = softmax_of(op, x, n, inner);
    for (size_t r = 0; r < inner; r++) {
        double sum[2] = {0};
        for (size_t i = 0; i < 2 * n; i++) {
            row[i] = x[i * inner + r];
            sum[i / n] += exp((double)row[i]);
        }
        float *alone = softmax_of(op, row, n, 1);
        size_t same = 0, right = 0;
        for (size_t i = 0; i < 2 * n; i++) {
            const double share = exp((double)row[i]) / sum[i / n];
            const double expected = logs ? log(share) : share;
            same += memcmp(alone + i, y + i * inner + r, sizeof(*y)) == 0;
            right += fabs((double)alone[i] - expected) <= 2e-6 * (logs ? 10 : expected);
        }
        CHECK_INT(same, 2 * n);
        CHECK_INT(right, 2 * n);
        free(alone);
    }
    free(x);
    free(row);
    free(y);
}

static void test_softmax_across(void) {
    static const size_t counts[] = {1, 2, 3, 8, 15, 16, 17, 65, 300}, inners[] = {1, 3, 16, 64, 81};
    for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
        for (size_t k = 0; k < sizeof(inners) / sizeof(*inners); k++) {
            softmax_across("Softmax", counts[i], inners[k]);
            softmax_across("LogSoftmax", counts[i], inners[k]);
        }
}

/* Doubles: to more digits than a float has. */
static void test_softmax_doubles(void) {
    static const double x[3] = {1, 2, 4};
    const double sum = exp(-3) + exp(-2) + 1;
    for (int logs = 0; logs < 2; logs++) {
        op_case *c = case_new("", logs ? "LogSoftmax" : "Softmax", 13);
        case_input(c, QSIM_DOUBLE, SHAPE(3), x);
        case_node(c, 1);
        CHECK_INT(case_run(c), 0);
        for (int i = 0; i < 3; i++)
            CHECK_NEAR(((const double *)case_data(c, 0))[i],
                       logs ? x[i] - 4 - log(sum) : exp(x[i] - 4) / sum, 1e-14);
        case_free(c);
    }
}

/* BatchNormalization of [pixels, channels] or of planes; over_input: in the memory of x. */
static void batchnorm(int64_t pixels, int64_t channels, bool last, bool over_input) {
    static float x[40 * 1300], list[4][1300]; /* scale, shift, mean, variance */
    const int64_t dims[4] = {1, last ? pixels : channels, 1, last ? channels : pixels};
    const size_t n = (size_t)(pixels * channels);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(i * 37 % 101) / 16 - 3;
    for (size_t k = 0; k < 4; k++)
        for (size_t c = 0; c < (size_t)channels; c++)
            list[k][c] = (float)((c * 5 + k * 3) % 13) / 8 + (k == 3 ? 0.5f : -0.75f);
    op_case *c = case_new("qsim", "BatchNormalization", 1);
    case_input(c, QSIM_FLOAT, 4, dims, x);
    for (size_t k = 0; k < 4; k++)
        case_input(c, QSIM_FLOAT, 1, &channels, list[k]);
    case_node(c, 1);
    CHECK_INT(qs_node_set_int(c->g, c->node, "channels_last", last), 0);
    if (over_input) {
        c->data[c->out[0]] = c->data[c->in[0]];
        c->bytes[c->out[0]] = n * sizeof(float);
    }
    CHECK_INT(case_run(c), 0);
    const float *y = case_data(c, 0);
    for (size_t i = 0; i < n; i++) {
        const size_t k = last ? i % (size_t)channels : i / (size_t)pixels;
        const float factor = list[0][k] / sqrtf(list[3][k] + 1e-5f);
        CHECK_NEAR(y[i], (x[i] - list[2][k]) * factor + list[1][k], 0);
    }
    if (over_input)
        c->data[c->out[0]] = NULL; /* freed with the input */
    case_free(c);
}

static void test_batchnorm(void) {
    static const int64_t sizes[][2] = {{1300, 3}, {600, 24}, {512, 40}, {40, 3}, {9, 1300}};
    for (size_t i = 0; i < QS_COUNT(sizes); i++)
        for (int k = 0; k < 4; k++)
            batchnorm(sizes[i][0], sizes[i][1], k % 2, k / 2);
}

/*
 * Of two near values by turns, each is one deviation from the mean. The mean of a hundred thousand
 * that 16 lanes add is off by a fourteenth of that.
 */
static void long_row(const char *op, bool each) {
    enum { COUNT = 100000 };
    static float x[COUNT], scale[COUNT];
    const int64_t scales = each ? COUNT : 1;
    size_t wrong = 0;
    for (size_t i = 0; i < COUNT; i++) {
        x[i] = i % 2 ? 0.701f : 0.7f;
        scale[i] = 1;
    }
    op_case *c = case_new("", op, 17);
    case_input(c, QSIM_FLOAT, SHAPE(1, 1, COUNT), x);
    case_input(c, QSIM_FLOAT, 1, &scales, scale);
    if (!each)
        case_input(c, QSIM_FLOAT, 1, &scales, x + 1);
    case_node(c, 1);
    CHECK_INT(qs_node_set_float(c->g, c->node, "epsilon", 1e-12f), 0);
    CHECK_INT(case_run(c), 0);
    for (size_t i = 0; i < COUNT; i++) {
        const double want = (i % 2 ? 1 : -1) + (each ? 0 : (double)x[1]);
        wrong += fabs((double)((const float *)case_data(c, 0))[i] - want) > 0.01;
    }
    CHECK_INT(wrong, 0);
    case_free(c);
}

static void test_long_rows(void) {
    long_row("LayerNormalization", true);
    long_row("InstanceNormalization", false);
}

int main(void) {
    test_softmax_doubles();
    test_batchnorm();
    for (size_t i = 0; i < 24; i++)
        data[i] = (double)(i * 7 % 11) / 2 - 2.25;
    test_groups();
    test_local();
    test_log_softmax();
    test_softmax_across();
    test_long_rows();
    return test_done();
}
