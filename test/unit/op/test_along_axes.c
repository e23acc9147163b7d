/* SPDX-License-Identifier: MIT */
/*
 * Softmax, LogSoftmax, Hardmax, LayerNormalization and InstanceNormalization of random sizes, with
 * one thread and three: within their definition in double, and of the same bits in every table of
 * kernels.
 */
#include "op_random.h"

#include <math.h>

/* x is outer x count x inner; what `count` numbers make is normalized. */
typedef struct shape {
    int64_t outer, count, inner;
} shape;

static double value(const float *x, const shape *s, int64_t o, int64_t i, int64_t k) {
    return (double)x[(o * s->count + i) * s->inner + k];
}

static bool near(float y, double wanted, double within) {
    return fabs((double)y - wanted) <= within;
}

static bool is_softmax(const shape *s, const float *x, const float *y, bool logs) {
    bool right = true;
    for (int64_t o = 0; o < s->outer; o++)
        for (int64_t k = 0; k < s->inner; k++) {
            double top = value(x, s, o, 0, k), sum = 0;
            for (int64_t i = 1; i < s->count; i++) { /* gcc 12 cannot compile fmax for aarch64 */
                const double v = value(x, s, o, i, k);
                top = v > top ? v : top;
            }
            for (int64_t i = 0; i < s->count; i++)
                sum += exp(value(x, s, o, i, k) - top);
            for (int64_t i = 0; i < s->count; i++) {
                const float found = y[(o * s->count + i) * s->inner + k];
                const double less = value(x, s, o, i, k) - top, share = exp(less) / sum;
                right = right && (logs ? near(found, less - log(sum), 1e-5 - 2e-7 * less)
                                       : near(found, share, (3e-6 - 6e-8 * less) * share + 1e-40));
            }
        }
    return right;
}

/* Each row of n numbers has scale and bias by element, or by row. */
static bool is_normal(const float *x, const float *y, int64_t rows, int64_t n, const float *scale,
                      const float *bias, int64_t by_row) {
    bool right = true;
    for (int64_t r = 0; r < rows; r++) {
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < n; i++)
            mean += (double)x[r * n + i] / (double)n;
        for (int64_t i = 0; i < n; i++)
            variance += pow((double)x[r * n + i] - mean, 2) / (double)n;
        for (int64_t i = 0; i < n; i++) {
            const int64_t at = by_row ? r % by_row : i;
            const double v = ((double)x[r * n + i] - mean) / sqrt(variance + 0.01);
            right = right && near(y[r * n + i], v * (double)scale[at] + (double)bias[at], 1e-4);
        }
    }
    return right;
}

/* Runs a case in every context; the first one's result for the caller, who frees it. */
static or_result run_everywhere(qsim_ctx **ctx, int contexts, const or_case *c) {
    or_result first = or_run(ctx[0], c, false);
    CHECK_STR(first.error.message, "");
    for (int i = 1; i < contexts && !first.code; i++) {
        or_result r = or_run(ctx[i], c, false);
        const bool same = !r.code && memcmp(first.out[0].data, r.out[0].data,
                                            or_elements(&first.out[0]) * sizeof(float)) == 0;
        CHECK(same);
        if (!same)
            fprintf(stderr, "%s: isa %d differs\n", c->op, qsim_ctx_isa(ctx[i]));
        or_free(&r);
    }
    return first;
}

/* y[o][k][i] = x[o][i][k] */
static float *turned(const float *x, const shape *s) {
    float *y = malloc((size_t)(s->outer * s->count * s->inner) * sizeof(*y));
    for (int64_t at = 0; y && at < s->outer * s->count * s->inner; at++) {
        const int64_t k = at % s->inner, i = at / s->inner % s->count, o = at / s->inner / s->count;
        y[(o * s->inner + k) * s->count + i] = x[at];
    }
    return y;
}

static void softmax(qsim_ctx **ctx, int contexts, const shape *s, bool logs) {
    float *x = random_floats((size_t)(s->outer * s->count * s->inner), between(0, 1) ? 60 : 4);
    or_case c = {.domain = "", .version = 13, .inputs = 1, .outputs = 1, .attr_count = 1};
    c.op = logs ? "LogSoftmax" : "Softmax";
    c.attrs[0] = or_int("axis", 1);
    c.in[0] = (or_tensor){QSIM_FLOAT, 3, {s->outer, s->count, s->inner}, x, false};
    or_result r = run_everywhere(ctx, contexts, &c);
    const bool right = !r.code && is_softmax(s, x, r.out[0].data, logs);
    CHECK(right);
    /* The same numbers next to each other give the same bits. */
    float *near = turned(x, s), *wanted = right ? turned(r.out[0].data, s) : NULL;
    c.attrs[0] = or_int("axis", 2);
    c.in[0] = (or_tensor){QSIM_FLOAT, 3, {s->outer, s->inner, s->count}, near, false};
    or_result again = run_everywhere(ctx, contexts, &c);
    CHECK(wanted && !again.code &&
          memcmp(wanted, again.out[0].data,
                 (size_t)(s->outer * s->count * s->inner) * sizeof(*wanted)) == 0);
    or_free(&again);
    free(near);
    free(wanted);
    if (!right)
        fprintf(stderr, "%s of %dx%dx%d\n", c.op, (int)s->outer, (int)s->count, (int)s->inner);
    or_free(&r);
    free(x);
}

/* Numbers that occur several times, zeros of both signs, and NaNs in one of two cases. */
static void hardmax(qsim_ctx **ctx, int contexts, const shape *s) {
    const size_t all = (size_t)(s->outer * s->count * s->inner);
    float *x = random_floats(all, 1), *wanted = calloc(all, sizeof(*wanted));
    const bool nans = between(0, 1);
    for (size_t i = 0; i < all; i++)
        x[i] = nans && between(0, 40) == 0 ? NAN : between(0, 9) ? rintf(9 * x[i]) / 4 : -0.0f;
    for (int64_t o = 0; o < s->outer; o++)
        for (int64_t k = 0; k < s->inner; k++) {
            int64_t top = 0;
            for (int64_t i = 1; i < s->count; i++)
                top = value(x, s, o, i, k) > value(x, s, o, top, k) ? i : top;
            wanted[(o * s->count + top) * s->inner + k] = 1;
        }
    or_case c = {.domain = "", .op = "Hardmax", .version = 13, .inputs = 1, .outputs = 1};
    c.attrs[0] = or_int("axis", 1);
    c.attr_count = 1;
    c.in[0] = (or_tensor){QSIM_FLOAT, 3, {s->outer, s->count, s->inner}, x, false};
    or_result r = run_everywhere(ctx, contexts, &c);
    CHECK(!r.code && memcmp(r.out[0].data, wanted, all * sizeof(*wanted)) == 0);
    or_free(&r);
    free(wanted);
    free(x);
}

/* `instances`: (outer, count) are batch and channels, each of them a row of `inner`. */
static void normalize(qsim_ctx **ctx, int contexts, const shape *s, bool instances) {
    const int64_t n = instances ? s->inner : s->count * s->inner;
    const int64_t rows = instances ? s->outer * s->count : s->outer;
    float *x = random_floats((size_t)(rows * n), 3);
    float *scale = random_floats((size_t)(s->count * s->inner), 2);
    float *bias = random_floats((size_t)(s->count * s->inner), 2);
    or_case c = {.domain = "", .version = 17, .inputs = 3, .outputs = 1, .attr_count = 2};
    c.op = instances ? "InstanceNormalization" : "LayerNormalization";
    c.attrs[0] = or_float("epsilon", 0.01f);
    c.attrs[1] = or_int("axis", 1);
    c.attr_count = instances ? 1 : 2;
    c.in[0] = (or_tensor){QSIM_FLOAT, 3, {s->outer, s->count, s->inner}, x, false};
    c.in[1] = (or_tensor){QSIM_FLOAT, instances ? 1 : 2, {s->count, s->inner}, scale, false};
    c.in[2] = (or_tensor){QSIM_FLOAT, instances ? 1 : 2, {s->count, s->inner}, bias, false};
    or_result r = run_everywhere(ctx, contexts, &c);
    const bool right =
        !r.code && is_normal(x, r.out[0].data, rows, n, scale, bias, instances ? s->count : 0);
    CHECK(right);
    if (!right)
        fprintf(stderr, "%s of %dx%dx%d\n", c.op, (int)s->outer, (int)s->count, (int)s->inner);
    or_free(&r);
    free(x);
    free(scale);
    free(bias);
}

/* Few and many rows, short and long, adjacent and side by side. */
static shape random_shape(void) {
    shape s = {between(1, between(0, 1) ? 6 : 90), between(1, between(0, 1) ? 20 : 140), 1};
    if (between(0, 1))
        s.inner = between(1, between(0, 1) ? 20 : 150);
    if (between(0, 5) == 0)
        s.count = between(900, 1200);
    while (s.outer * s.count * s.inner > 30000)
        *(s.outer > s.inner ? &s.outer : s.inner > 1 ? &s.inner : &s.count) /= 2;
    return s;
}

int main(void) {
    or_seed = 20261130;
    qsim_ctx *ctx[4 * QS_ISA_COUNT];
    int contexts = or_contexts(ctx, 1);
    contexts += or_contexts(ctx + contexts, 3);
    for (int i = 0; i < 120; i++) {
        const shape s = random_shape();
        softmax(ctx, contexts, &s, i % 2);
        hardmax(ctx, contexts, &s);
        normalize(ctx, contexts, &s, i % 2);
    }
    const shape longs[] = {{1, 33000, 3}, {2, 40000, 18}}; /* longer than a piece */
    for (int i = 0; i < 4; i++)
        softmax(ctx, contexts, &longs[i % 2], i / 2);
    hardmax(ctx, contexts, &longs[0]);
    for (int i = 0; i < contexts; i++)
        qsim_ctx_free(ctx[i]);
    return test_done();
}
