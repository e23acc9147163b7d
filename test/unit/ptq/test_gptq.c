/* SPDX-License-Identifier: MIT */
/*
 * GPTQ's rounding against its definition with the inverse of H, as in the paper, and H itself
 * against sums over all positions of a convolution.
 */
#include "ptq_nets.h"

#include "ptq/calibration.h"
#include "ptq/gptq.h"
#include "ptq/gram.h"

#include <math.h>

static qsim_ctx *ctx;

#define N        7
#define CHANNELS 18 /* more than one block of channels */

static double uniform(uint64_t *seed) {
    return (double)test_random(seed) / 2147483648.0 - 1;
}

/* Replaces a by its inverse, by elimination. */
static void invert(double a[N][N]) {
    for (int p = 0; p < N; p++) {
        const double pivot = 1 / a[p][p];
        for (int j = 0; j < N; j++)
            a[p][j] = j == p ? pivot : a[p][j] * pivot;
        for (int i = 0; i < N; i++) {
            const double f = a[i][p];
            for (int j = 0; j < N && i != p; j++)
                a[i][j] = j == p ? -f * pivot : a[i][j] - f * a[p][j];
        }
    }
}

/* Rounds one row: after each weight the others compensate its error, and H loses a row. */
static void by_definition(const double *h, const float *w, const float *scale, int low, int high,
                          int *codes) {
    double open[N];
    bool done[N] = {false};
    for (int k = 0; k < N; k++)
        open[k] = (double)w[k];
    for (int turn = 0; turn < N; turn++) {
        double rest[N][N];
        int next = -1;
        for (int k = 0; k < N; k++)
            if (!done[k] && (next < 0 || h[k * N + k] > h[next * N + next]))
                next = k;
        for (int i = 0; i < N; i++) /* H of the weights not rounded yet; else 1 on the diagonal */
            for (int j = 0; j < N; j++)
                rest[i][j] = done[i] || done[j] ? (double)(i == j) : h[i * N + j];
        invert(rest);
        const double q = fmin(high, fmax(low, rint(open[next] / (double)scale[next])));
        const double error = open[next] - (double)((float)q * scale[next]);
        codes[next] = (int)q;
        done[next] = true;
        for (int k = 0; k < N; k++)
            if (!done[k])
                open[k] -= error * rest[next][k] / rest[next][next];
    }
}

static double error_of(const double *h, const float *w, const int8_t *codes, const float *scale) {
    double sum = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            sum += ((double)w[i] - codes[i] * (double)scale[i]) * h[i * N + j] *
                   ((double)w[j] - codes[j] * (double)scale[j]);
    return sum;
}

static void check_round(uint64_t seed) {
    double h[N * N] = {0}, damped[N * N], mean = 0, sum[2] = {0};
    float w[CHANNELS * N], scale[CHANNELS * 2], own[N];
    int8_t codes[CHANNELS * N], plain[CHANNELS * N];
    int expected[N];
    for (int s = 0; s < 20; s++) {
        double x[N], common = uniform(&seed);
        for (int i = 0; i < N; i++)
            x[i] = common + uniform(&seed) * (1 + i % 3);
        for (int i = 0; i < N * N; i++)
            h[i] += x[i / N] * x[i % N];
    }
    for (int i = 0; i < N; i++)
        mean += h[i * N + i] / N;
    memcpy(damped, h, sizeof(h));
    for (int i = 0; i < N; i++)
        damped[i * N + i] += 0.01 * mean;
    for (int i = 0; i < CHANNELS * N; i++)
        w[i] = (float)uniform(&seed);
    for (int i = 0; i < CHANNELS * 2; i++) /* blocks of 4 and 3 weights */
        scale[i] = 0.12f + 0.03f * (float)uniform(&seed);
    const qs_rows rows = {w, CHANNELS, N, 1, CHANNELS}; /* weight k of c at k * CHANNELS + c */
    const qs_grid grid = {scale, NULL, 2, 4, -8, 7, 0};
    qs_gptq g;
    CHECK_INT(qs_gptq_create(ctx, h, N, &g), QSIM_OK);
    double *scratch = malloc(qs_gptq_scratch(&g) * sizeof(*scratch));
    qs_gptq_round(&g, &rows, &grid, codes, scratch);
    qs_gptq_round(NULL, &rows, &grid, plain, NULL);
    for (int c = 0; c < CHANNELS; c++) {
        float row[N];
        int8_t got[N], nearest[N];
        for (int k = 0; k < N; k++) {
            row[k] = w[k * CHANNELS + c];
            own[k] = scale[c * 2 + k / 4];
            got[k] = codes[k * CHANNELS + c];
            nearest[k] = plain[k * CHANNELS + c];
            CHECK_INT(nearest[k], (int)fmin(7, fmax(-8, rint((double)row[k] / (double)own[k]))));
        }
        by_definition(damped, row, own, -8, 7, expected);
        for (int k = 0; k < N; k++)
            CHECK_INT(got[k], expected[k]);
        sum[0] += error_of(damped, row, got, own);
        sum[1] += error_of(damped, row, nearest, own);
    }
    CHECK(sum[0] < sum[1]);
    free(scratch);
    qs_gptq_free(&g);
}

/* Unsigned codes, with zero points. */
static void check_unsigned(void) {
    double h[4] = {1, 0, 0, 1};
    const float w[2] = {0.26f, -0.9f}, scale[1] = {0.1f};
    const int32_t zero[1] = {5};
    const qs_rows rows = {w, 1, 2, 2, 1};
    const qs_grid grid = {scale, zero, 1, 2, 0, 15, 0};
    uint8_t codes[2];
    double scratch[32];
    qs_gptq g;
    CHECK_INT(qs_gptq_create(ctx, h, 2, &g), QSIM_OK);
    CHECK(qs_gptq_scratch(&g) <= QS_COUNT(scratch));
    qs_gptq_round(&g, &rows, &grid, codes, scratch);
    CHECK_INT(codes[0], 8); /* 2.6 + 5 */
    CHECK_INT(codes[1], 0); /* -9 + 5 */
    qs_gptq_free(&g);
}

static void check_refused(void) {
    double bad[4] = {1, 2, 2, 1}, infinite[1] = {INFINITY}, none[4] = {0};
    qs_gptq g;
    CHECK_INT(qs_gptq_create(ctx, bad, 2, &g), QSIM_E_VALUE);
    CHECK_INT(qs_gptq_create(ctx, infinite, 1, &g), QSIM_E_VALUE);
    CHECK_INT(qs_gptq_create(ctx, none, 2, &g), QSIM_OK); /* inputs that never move */
    qs_gptq_free(&g);
}

#define SIDE 5 /* of images */
#define K    3 /* of kernels */

static qsim_model *convolution(const int64_t *pads) {
    qsim_builder *b = NULL;
    CHECK_INT(qsim_builder_create(ctx, 13, "convolution", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, 4, (int64_t[]){-1, 1, SIDE, SIDE},
                       (const char *[]){"N", NULL, NULL, NULL});
    qsim_builder_output(b, "y", QSIM_FLOAT, 4, (int64_t[]){-1, 1, -1, -1},
                        (const char *[]){"N", NULL, "h", "w"});
    net_constant(b, "w", 4, (int64_t[]){1, 1, K, K}, 0.5f, 1);
    qsim_builder_node(b, "", "Conv", "conv", "x,w", "y");
    qsim_builder_attr_ints(b, "strides", (int64_t[]){2, 2}, 2);
    qsim_builder_attr_ints(b, "pads", pads, 4);
    return net_finish(b);
}

/* The moments of all windows of an image, the padded ones among them. Returns their number. */
static uint64_t sum_windows(const float *x, const int64_t *pads, double *sum) {
    const int out_h = (int)(SIDE + pads[0] + pads[2] - K) / 2 + 1;
    const int out_w = (int)(SIDE + pads[1] + pads[3] - K) / 2 + 1;
    for (int p = 0; p < out_h * out_w; p++) {
        double window[K * K];
        for (int k = 0; k < K * K; k++) {
            const int y = p / out_w * 2 + k / K - (int)pads[0];
            const int z = p % out_w * 2 + k % K - (int)pads[1];
            const bool inside = y >= 0 && y < SIDE && z >= 0 && z < SIDE;
            window[k] = inside ? (double)x[y * SIDE + z] : 0;
        }
        for (int i = 0; i < K * K * K * K; i++)
            sum[i] += window[i / (K * K)] * window[i % (K * K)];
    }
    return (uint64_t)out_h * (uint64_t)out_w;
}

/* Padding before the image, after it, on all sides, and nowhere. */
static void check_moments(void) {
    static const int64_t pads[][4] = {{1, 1, 0, 0}, {0, 0, 2, 1}, {1, 0, 1, 1}, {0, 0, 0, 0}};
    const qsim_quantize_options q = {.struct_size = sizeof(q), .keep_moments = 1};
    const qsim_calibration_options o = {.struct_size = sizeof(o), .quantize = &q};
    for (size_t n = 0; n < QS_COUNT(pads); n++) {
        qsim_model *m = convolution(pads[n]);
        qsim_calibration *c = NULL;
        float x[SIDE * SIDE];
        double sum[K * K * K * K] = {0};
        for (int i = 0; i < SIDE * SIDE; i++)
            x[i] = (float)(i * 7 % 11) - 3;
        const qsim_tensor in = {QSIM_FLOAT, 4, (int64_t[]){1, 1, SIDE, SIDE}, x, sizeof(x)};
        CHECK_INT(qsim_calibration_create(m, &o, &c, NULL), QSIM_OK);
        CHECK_INT(qsim_calibration_feed(c, &in, 1, NULL), QSIM_OK);
        CHECK_INT(c->gram_count, 1);
        const uint64_t rows = sum_windows(x, pads[n], sum);
        CHECK_INT(c->grams[0].rows, rows);
        for (int i = 0; i < K * K * K * K; i++) /* whole numbers */
            CHECK(c->grams[0].sum[i] == sum[i]);
        qsim_calibration_free(c);
        qsim_model_free(m);
    }
}

int main(void) {
    CHECK_INT(qsim_ctx_create(NULL, &ctx, NULL), QSIM_OK);
    for (uint64_t seed = 1; seed <= 200; seed++)
        check_round(seed);
    check_unsigned();
    check_refused();
    check_moments();
    qsim_ctx_free(ctx);
    return test_done();
}
