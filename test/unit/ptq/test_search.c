/* SPDX-License-Identifier: MIT */
/* Searches for weight schemes and percentiles. */
#include <math.h>

#include "ptq_nets.h"

enum { BATCHES = 2 };

static float data[BATCHES][144 * 8];
static const int64_t batch_dims[4] = {8, 1, 12, 12};
static qsim_tensor batches[BATCHES];

static void make_batches(void) {
    for (int i = 0; i < BATCHES; i++) {
        net_batch(data[i], 8, 50 + (uint64_t)i);
        batches[i] = (qsim_tensor){QSIM_FLOAT, 4, batch_dims, data[i], sizeof(data[i])};
    }
}

/* Squared error of a quantized model's output against the float one's. */
static double output_error(const qsim_model *m, const qsim_calibration *c, const int32_t *schemes,
                           size_t count) {
    qsim_quantize_options o = {.struct_size = sizeof(o), .schemes = schemes, .scheme_count = count};
    qsim_model *q = NULL;
    double sum = 0;
    CHECK_INT(qsim_quantize(m, c, &o, &q, NULL), QSIM_OK);
    for (int b = 0; b < BATCHES; b++) {
        float y[40], z[40];
        CHECK_INT(net_run(m, &batches[b], y, 40), 40);
        CHECK_INT(net_run(q, &batches[b], z, 40), 40);
        for (int i = 0; i < 40; i++)
            sum += pow((double)y[i] - (double)z[i], 2);
    }
    qsim_model_free(q);
    return sum;
}

/* The last layer's output is the network's: its choice can be checked from outside. */
static void test_greedy(void) {
    qsim_model *m = net_lenet();
    qsim_calibration *c = net_calibrate(m, 4);
    int32_t schemes[4] = {9, 9, 9, 9}, again[4];
    qsim_search_options o = {
        .struct_size = sizeof(o), .inputs = batches, .input_count = BATCHES, .greedy = 1};
    CHECK_INT(qsim_search(m, c, NULL, &o, schemes, NULL, NULL, NULL), QSIM_OK);
    double p[32] = {0}, none = 0;
    CHECK_INT(qsim_search(m, c, NULL, &o, again, p, &none, NULL), QSIM_OK);
    CHECK(p[0] == 100 && p[qsim_calibration_count(c) - 1] == 100 && isnan(none));
    CHECK(memcmp(schemes, again, sizeof(schemes)) == 0);
    double chosen = output_error(m, c, schemes, 4);
    for (int k = 0; k < 3; k++) {
        CHECK(schemes[k] >= 0 && schemes[k] <= 2);
        int32_t other[4] = {schemes[0], schemes[1], schemes[2], k};
        CHECK(chosen <= output_error(m, c, other, 4) * (1 + 1e-9));
    }
    qsim_calibration_free(c);
    qsim_model_free(m);
}

/* Two layers for which the best scheme is plain: one-sided weights; channels a thousandfold apart.
 */
static void test_greedy_knows(void) {
    static float one_sided[16 * 8], uneven[8 * 4];
    const int64_t d1[2] = {16, 8}, d2[2] = {8, 4}, dx[2] = {32, 16};
    static float x[32 * 16];
    uint64_t seed = 77;
    for (int i = 0; i < 128; i++)
        one_sided[i] = (float)(test_random(&seed) % 1000) / 1000;
    for (int i = 0; i < 32; i++)
        uneven[i] = ((float)(test_random(&seed) % 2000) / 1000 - 1) * (i % 4 ? 0.001f : 1);
    for (int i = 0; i < 32 * 16; i++)
        x[i] = (float)(test_random(&seed) % 1000) / 1000;
    for (int k = 0; k < 2; k++) {
        qsim_builder *b = NULL;
        qsim_tensor w = {QSIM_FLOAT, 2, k ? d2 : d1, k ? uneven : one_sided,
                         k ? sizeof(uneven) : sizeof(one_sided)};
        const int64_t rows[2] = {32, k ? 8 : 16}, out[2] = {32, k ? 4 : 8};
        CHECK_INT(qsim_builder_create(NULL, 13, "g", &b, NULL), QSIM_OK);
        qsim_builder_input(b, "x", QSIM_FLOAT, 2, k ? rows : dx, NULL);
        qsim_builder_output(b, "y", QSIM_FLOAT, 2, out, NULL);
        qsim_builder_constant(b, "w", &w);
        qsim_builder_node(b, "", "MatMul", "mm", "x,w", "y");
        qsim_model *m = net_finish(b);
        qsim_tensor t = {QSIM_FLOAT, 2, k ? rows : dx, x, (size_t)(32 * rows[1]) * 4};
        qsim_calibration *c = NULL;
        int32_t scheme[1] = {9};
        CHECK_INT(qsim_calibration_create(m, &c, NULL), QSIM_OK);
        CHECK_INT(qsim_calibration_feed(c, &t, 1, NULL), QSIM_OK);
        qsim_search_options o = {
            .struct_size = sizeof(o), .inputs = &t, .input_count = 1, .greedy = 1};
        CHECK_INT(qsim_search(m, c, NULL, &o, scheme, NULL, NULL, NULL), QSIM_OK);
        if (k == 0)
            CHECK(scheme[0] != QSIM_WEIGHT_TENSOR_SYMMETRIC);
        else
            CHECK_INT(scheme[0], QSIM_WEIGHT_CHANNEL_SYMMETRIC);
        qsim_calibration_free(c);
        qsim_model_free(m);
    }
}

/* A score that knows what it wants: some cut on r1, little elsewhere. Also counts and cancels. */
typedef struct judge {
    int calls, stop_at;
    float wanted;
} judge;

static int score(void *user, const qsim_model *m, double *out) {
    judge *j = user;
    qsim_value_info v;
    float s = 0;
    if (++j->calls == j->stop_at)
        return 1;
    CHECK(net_value(m, "r1_scale", &v));
    memcpy(&s, v.data, 4);
    *out = 90 - 100 * fabs((double)(s / j->wanted) - 1);
    return 0;
}

static void test_anneal(void) {
    qsim_model *m = net_lenet();
    qsim_calibration *c = net_calibrate(m, 4);
    double p[2][32], best[2] = {0}, start, check;
    float low, high;
    CHECK(qsim_calibration_count(c) <= 32);
    CHECK_INT(qsim_calibration_range(c, "r1", QSIM_METHOD_PERCENTILE, 99.7, &low, &high), QSIM_OK);
    judge j = {.wanted = high / 255};
    qsim_search_options o = {.struct_size = sizeof(o),
                             .score = score,
                             .score_user = &j,
                             .seed = 5,
                             .float_score = 90,
                             .max_drop = 60,
                             .steps = 60};
    for (int k = 0; k < 2; k++)
        CHECK_INT(qsim_search(m, c, NULL, &o, NULL, p[k], &best[k], NULL), QSIM_OK);
    CHECK(best[0] == best[1] && memcmp(p[0], p[1], sizeof(double) * 10) == 0);
    CHECK_INT(j.calls, 2 * 61);
    /* Better than where it began, and what it hands out has the score that it says. */
    for (int k = 0; k < 2; k++) {
        qsim_model *q = NULL;
        double flat[32];
        for (int i = 0; i < 32; i++)
            flat[i] = 99;
        qsim_quantize_options qo = {.struct_size = sizeof(qo),
                                    .percentiles = k ? p[0] : flat,
                                    .percentile_count = (size_t)qsim_calibration_count(c)};
        CHECK_INT(qsim_quantize(m, c, &qo, &q, NULL), QSIM_OK);
        CHECK_INT(score(&j, q, k ? &check : &start), 0);
        qsim_model_free(q);
    }
    CHECK(best[0] > start);
    CHECK(best[0] == check);
    /* A limit that nothing meets: the best of the starting points, no walk. */
    j.calls = 0;
    o.float_score = 500;
    o.max_drop = 1;
    CHECK_INT(qsim_search(m, c, NULL, &o, NULL, p[1], &best[1], NULL), QSIM_OK);
    CHECK_INT(j.calls, 4);
    CHECK(p[1][0] == p[1][5]);
    /* Stopped in the middle: cancelled, with the best so far. */
    qsim_error e;
    j.calls = 0;
    j.stop_at = 5;
    o.float_score = 90;
    o.max_drop = 60;
    best[1] = NAN;
    CHECK_INT(qsim_search(m, c, NULL, &o, NULL, p[1], &best[1], &e), QSIM_E_CANCELLED);
    CHECK(best[1] >= start);
    qsim_calibration_free(c);
    qsim_model_free(m);
}

static void test_refused(void) {
    qsim_model *m = net_lenet();
    qsim_calibration *c = net_calibrate(m, 1);
    int32_t schemes[4];
    double p[32];
    qsim_search_options o = {.struct_size = sizeof(o), .greedy = 1};
    CHECK_INT(qsim_search(m, c, NULL, &o, schemes, NULL, NULL, NULL), QSIM_E_ARGUMENT);
    o = (qsim_search_options){.struct_size = sizeof(o), .steps = 3};
    CHECK_INT(qsim_search(m, c, NULL, &o, schemes, p, NULL, NULL), QSIM_E_ARGUMENT);
    o.steps = -1;
    CHECK_INT(qsim_search(m, c, NULL, &o, schemes, p, NULL, NULL), QSIM_E_ARGUMENT);
    qsim_calibration_free(c);
    qsim_model_free(m);
}

int main(void) {
    make_batches();
    test_greedy();
    test_greedy_knows();
    test_anneal();
    test_refused();
    return test_done();
}
