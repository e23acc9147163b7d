/* SPDX-License-Identifier: MIT */
/* Attempts of searches that are kept, and those that are not better for sure. */
#include "ptq_nets.h"

enum { BATCHES = 2 };

static float data[BATCHES][144 * 8];
static const int64_t batch_dims[4] = {8, 1, 12, 12};
static qsim_tensor batches[BATCHES];

static void make_batches(void) {
    for (int i = 0; i < BATCHES; i++)
        batches[i] = (qsim_tensor){QSIM_FLOAT, 4, batch_dims, data[i], sizeof(data[i])};
}

static qsim_recipe *make_recipe(void) {
    qsim_recipe *r = NULL;
    CHECK_INT(qsim_recipe_create(NULL, &r, NULL), QSIM_OK);
    return r;
}

/* The KL of each sample's answers with these options to those of the float model. */
static void losses_by(const qsim_model *m, const qsim_calibration *c,
                      const qsim_quantize_options *by, double losses[8 * BATCHES]) {
    qsim_model *q = NULL;
    CHECK_INT(qsim_quantize(m, c, by, &q, NULL), QSIM_OK);
    for (int b = 0; b < BATCHES; b++) {
        float y[40], z[40];
        CHECK_INT(net_run(m, &batches[b], y, 40), 40);
        CHECK_INT(net_run(q, &batches[b], z, 40), 40);
        for (int i = 0; i < 8; i++)
            losses[8 * b + i] = net_kl(y + 5 * i, z + 5 * i);
    }
    qsim_model_free(q);
}

/* The mean of x - y in its standard errors; *mean: of y. */
static double sureness(const double *x, const double *y, double *mean) {
    const int n = 8 * BATCHES;
    double sum = 0, squares = 0;
    *mean = 0;
    for (int i = 0; i < n; i++) {
        sum += (x[i] - y[i]) / n;
        *mean += y[i] / n;
    }
    for (int i = 0; i < n; i++)
        squares += (x[i] - y[i] - sum) * (x[i] - y[i] - sum);
    return squares > 0 ? sum / sqrt(squares / (n - 1) / n) : 0;
}

/*
 * Ranges by another method replace those of min/max only where the loss of these samples falls by
 * two standard errors: by less it rises on others as often as not. Some draws of samples have to
 * show that, and some the opposite.
 */
static void test_ranges(void) {
    static const int32_t methods[3] = {QSIM_METHOD_MINMAX, QSIM_METHOD_MSE, QSIM_METHOD_PERCENTILE};
    qsim_model *m = net_lenet();
    qsim_calibration *c = net_calibrate(m, 4);
    const qsim_search_options o = {
        .struct_size = sizeof(o), .inputs = batches, .input_count = BATCHES, .methods = "ranges"};
    int taken = 0, doubted = 0;
    net_batch(data[0], 8, 100);
    data[0][77] = 3; /* a value that widens the range by min/max alone */
    CHECK_INT(qsim_calibration_feed(c, batches, 1, NULL), QSIM_OK);
    for (uint64_t draw = 0; draw < 24; draw++) {
        double losses[3][8 * BATCHES], means[3], score = 0;
        int best = 0;
        qsim_recipe *found = make_recipe();
        for (int b = 0; b < BATCHES; b++)
            net_batch(data[b], 8, 500 + 2 * draw + (uint64_t)b);
        CHECK_INT(qsim_search(m, c, NULL, &o, found, &score, NULL), QSIM_OK);
        qsim_quantize_options by = {.struct_size = sizeof(by), .percentile = 99.99};
        losses_by(m, c, &by, losses[0]);
        (void)sureness(losses[0], losses[0], &means[0]);
        for (int k = 1; k < 3; k++) {
            by.method = methods[k];
            losses_by(m, c, &by, losses[k]);
            const double sure = sureness(losses[best], losses[k], &means[k]);
            CHECK(fabs(sure - 2) > 1e-6); /* or libm would decide */
            doubted += sure > 0 && sure < 2;
            best = sure > 2 ? k : best;
        }
        taken += best > 0;
        CHECK_NEAR(-score, means[best], 1e-9);
        by = (qsim_quantize_options){.struct_size = sizeof(by), .recipe = found};
        losses_by(m, c, &by, losses[0]);
        (void)sureness(losses[0], losses[0], &means[0]);
        CHECK_NEAR(means[0], -score, 1e-9);
        qsim_recipe_free(found);
    }
    CHECK(taken > 0 && doubted > 0);
    qsim_calibration_free(c);
    qsim_model_free(m);
}

/* The KL of a sample's answer with ranges by this method. */
static double loss_of_one(const qsim_model *m, const qsim_calibration *c, qsim_tensor *sample,
                          int32_t method) {
    const qsim_quantize_options by = {
        .struct_size = sizeof(by), .method = method, .percentile = 99.99};
    float y[5], z[5];
    qsim_model *q = NULL;
    CHECK_INT(qsim_quantize(m, c, &by, &q, NULL), QSIM_OK);
    CHECK(net_run(m, sample, y, 5) == 5 && net_run(q, sample, z, 5) == 5);
    qsim_model_free(q);
    return net_kl(y, z);
}

/*
 * One sample has no standard error: other ranges replace those of min/max where they lose at most a
 * quarter of what these lose, and not where they lose only less.
 */
static void test_one_sample(void) {
    static const int32_t methods[3] = {QSIM_METHOD_MINMAX, QSIM_METHOD_MSE, QSIM_METHOD_PERCENTILE};
    static const float outliers[] = {3, 30, 300};
    static const int64_t one[4] = {1, 1, 12, 12};
    qsim_tensor sample = {QSIM_FLOAT, 4, one, data[1], sizeof(float) * 144};
    const qsim_search_options o = {
        .struct_size = sizeof(o), .inputs = &sample, .input_count = 1, .methods = "ranges"};
    int taken = 0, doubted = 0;
    qsim_model *m = net_lenet();
    for (size_t at = 0; at < sizeof(outliers) / sizeof(*outliers); at++) {
        qsim_calibration *c = net_calibrate(m, 60); /* so many that the percentile cuts off one */
        net_batch(data[0], 8, 100);
        data[0][77] = outliers[at];
        CHECK_INT(qsim_calibration_feed(c, batches, 1, NULL), QSIM_OK);
        for (uint64_t draw = 0; draw < 8; draw++) {
            double best, score = 0;
            qsim_recipe *found = make_recipe();
            net_batch(data[1], 1, 700 + draw);
            CHECK_INT(qsim_search(m, c, NULL, &o, found, &score, NULL), QSIM_OK);
            best = loss_of_one(m, c, &sample, methods[0]);
            for (int k = 1; k < 3; k++) {
                const double loss = loss_of_one(m, c, &sample, methods[k]);
                const int takes = loss <= 0.25 * best;
                taken += takes;
                doubted += loss < best && !takes;
                best = takes ? loss : best;
            }
            CHECK_NEAR(-score, best, 1e-9);
            qsim_recipe_free(found);
        }
        qsim_calibration_free(c);
    }
    CHECK(taken > 0 && doubted > 0);
    qsim_model_free(m);
}

/* Biases are corrected where that lowers the loss by one standard error, and else as they are. */
static void test_corrected(void) {
    qsim_model *m = net_lenet();
    qsim_calibration *c = net_calibrate(m, 4);
    const qsim_search_options o = {.struct_size = sizeof(o),
                                   .inputs = batches,
                                   .input_count = BATCHES,
                                   .methods = "correction"};
    int kept = 0, left = 0;
    for (uint64_t draw = 0; draw < 24; draw++) {
        double losses[2][8 * BATCHES], mean[2], score = 0;
        qsim_recipe *found = make_recipe();
        qsim_quantize_options by = {.struct_size = sizeof(by), .mode = QSIM_MODE_DYNAMIC};
        for (int b = 0; b < BATCHES; b++) {
            net_batch(data[b], 8, 500 + 2 * draw + (uint64_t)b);
            for (int i = 0; i < 8 * 144; i++)
                data[b][i] -= 0.05f * (float)draw; /* less and less as calibrated */
        }
        CHECK_INT(qsim_search(m, c, &by, &o, found, &score, NULL), QSIM_OK);
        for (int k = 0; k < 2; k++) {
            by.no_bias_correction = 1 - k;
            losses_by(m, c, &by, losses[k]);
            (void)sureness(losses[k], losses[k], &mean[k]);
        }
        const double sure = sureness(losses[0], losses[1], &mean[1]);
        CHECK(fabs(sure - 1) > 1e-6); /* or libm would decide */
        CHECK_NEAR(-score, mean[sure > 1], 1e-9);
        kept += sure > 1;
        left += sure > 0 && sure < 1;
        qsim_recipe_free(found);
    }
    CHECK(kept > 0 && left > 0);
    qsim_calibration_free(c);
    qsim_model_free(m);
}

int main(void) {
    make_batches();
    test_ranges();
    test_one_sample();
    test_corrected();
    return test_done();
}
