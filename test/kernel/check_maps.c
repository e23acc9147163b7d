/* SPDX-License-Identifier: MIT */
/* The kernel `map`: its functions beside double arithmetic, in units in the last place. */
#include "checkkernel.h"

#include "kernel/ew.h"

#include <math.h>
#include <stdio.h>

typedef struct map_row {
    qk_curve f;
    float param[3];
    double (*wanted)(double x, const float *param);
    double units;   /* as lib/kernel/ew_maps.h promises; 0: the same number */
    float farthest; /* |x| */
} map_row;

typedef struct map_run {
    const qk_ew *k;
    const map_row *row;
    const float *x;
    float *y;
    size_t n;
} map_run;

static double elu(double x, const float *param) {
    return x < 0 ? (double)param[0] * expm1(x / (double)param[2]) : (double)param[1] * x;
}

static double softplus(double x, const float *param) {
    (void)param;
    return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

static double mish(double x, const float *param) {
    const double e = expm1(x < 40 ? softplus(x, param) : 40); /* tanh(s) by e^s - 1 */
    return x * (e * (e + 2) / (e * (e + 2) + 2));
}

static double softsign(double x, const float *param) {
    (void)param;
    return x / (1 + fabs(x));
}

static double hardsigmoid(double x, const float *param) {
    const float product = param[0] * (float)x, v = product + param[1];
    return (double)(v < 0 ? 0 : v > 1 ? 1 : v);
}

static double threshold(double x, const float *param) {
    return x != x || x > (double)param[0] ? x : 0;
}

static double to_floor(double x, const float *param) {
    (void)param;
    return floor(x);
}

static double to_ceil(double x, const float *param) {
    (void)param;
    return ceil(x);
}

static double to_round(double x, const float *param) {
    (void)param;
    return rint(x);
}

static double sine(double x, const float *param) {
    (void)param;
    return sin(x);
}

static double cosine(double x, const float *param) {
    (void)param;
    return cos(x);
}

static double logarithm(double x, const float *param) {
    (void)param;
    return log(x);
}

static void call(void *arg) {
    const map_run *r = arg;
    r->k->map(r->row->f, r->row->param, r->x, r->y, r->n);
}

/*
 * Results below 2^-126 have fewer digits, products with them, too: mish below 2^-119 is within
 * 2^-142.
 */
static bool is_near(const map_row *row, float x, float y) {
    const double v = row->wanted((double)x, row->param), error = fabs((double)y - v);
    int exponent;
    if (v != v || isinf(v))
        return v != v ? y != y : (double)y == v;
    frexp(v, &exponent);
    exponent = exponent < -125 ? -125 : exponent;
    if (row->f == QK_MISH && fabs(v) < 0x1p-119)
        return error <= 0x1p-142;
    return error <= ldexp(row->units, exponent - 24) && (v != 0 || !signbit(y) == !signbit(v));
}

/* Numbers of every size, all bits of which are random; whole ones and halves among them. */
static float *make_numbers(ck_state *s, const map_row *row, size_t n) {
    static const float special[] = {
        NAN,    INFINITY, -INFINITY, -0.0f, 0.0f,  1e-44f, -1e-39f,    1e30f,         88.7f,
        -88.7f, -103.9f,  -3e38f,    0.5f,  -0.5f, -1.5f,  8388607.5f, 2147483648.0f, -16777217.0f};
    float *x = ck_output(s, n * sizeof(*x));
    for (size_t i = 0; i < n; i++) {
        const float real = ck_real(s, -1, 1);
        switch (ck_between(s, 0, 3)) {
        case 0: x[i] = special[ck_random(s) % QS_COUNT(special)]; break;
        case 1: x[i] = ldexpf(real, ck_between(s, -140, 128)); break;
        case 2: x[i] = real * 100.0f; break;
        default: x[i] = real * 8.0f;
        }
        x[i] = !(fabsf(x[i]) <= row->farthest) && row->farthest < INFINITY ? real * row->farthest
                                                                           : x[i];
    }
    return x;
}

static void check(ck_state *s, const map_row *row) {
    const size_t n = (size_t)ck_between(s, 1, 200), bytes = n * sizeof(float);
    float *x = make_numbers(s, row, n), *expected = ck_output(s, bytes);
    float *actual = ck_output(s, bytes);
    uint8_t *all = ck_output(s, n), *near = ck_output(s, n);
    map_run r = {s->c->ew, row, x, expected, n};
    char shape[64];
    snprintf(shape, sizeof(shape), "n %zu", n);
    call(&r);
    for (size_t i = 0; i < n; i++) {
        all[i] = 1;
        near[i] = is_near(row, x[i], expected[i]);
    }
    ck_same(s, all, near, n, shape);
    r.k = s->t->ew;
    r.y = actual;
    call(&r);
    ck_same(s, expected, actual, bytes, shape);
    r.y = x; /* in place */
    call(&r);
    ck_same(s, expected, x, bytes, shape);
}

static void bench(ck_state *s, const map_row *row) {
    const size_t n = 50000;
    map_run r = {s->t->ew, row, ck_floats(s, n, -10, 10), ck_output(s, 4 * n), n};
    ck_time(s, "n 50000", 0, 8.0 * (double)n, call, &r);
}

#define CASE(name, ...)                                                                            \
    static const map_row name##_row = {__VA_ARGS__};                                               \
    static void check_##name(ck_state *s) {                                                        \
        check(s, &name##_row);                                                                     \
    }                                                                                              \
    static void bench_##name(ck_state *s) {                                                        \
        bench(s, &name##_row);                                                                     \
    }

CASE(elu, QK_ELU, {1, 1, 1}, elu, 1.5, INFINITY)
CASE(celu, QK_ELU, {1.7f, 0.9f, 0.3f}, elu, 3.5, INFINITY)
CASE(softplus, QK_SOFTPLUS, {0}, softplus, 2.5, INFINITY)
CASE(mish, QK_MISH, {0}, mish, 4, INFINITY)
CASE(softsign, QK_SOFTSIGN, {0}, softsign, 1.5, INFINITY)
CASE(hardsigmoid, QK_HARDSIGMOID, {0.2f, 0.5f}, hardsigmoid, 0, INFINITY)
CASE(threshold, QK_THRESHOLD, {0.7f}, threshold, 0, INFINITY)
CASE(floor, QK_FLOOR, {0}, to_floor, 0, INFINITY)
CASE(ceil, QK_CEIL, {0}, to_ceil, 0, INFINITY)
CASE(round, QK_ROUND, {0}, to_round, 0, INFINITY)
CASE(sin, QK_SIN, {0}, sine, 1.6, 262143)
CASE(cos, QK_COS, {0}, cosine, 1.6, 262143)
CASE(log, QK_LOG, {0}, logarithm, 1, INFINITY)

const ck_case ck_cases_maps[] = {
    {"ew map elu", check_elu, bench_elu},
    {"ew map celu", check_celu, bench_celu},
    {"ew map softplus", check_softplus, bench_softplus},
    {"ew map mish", check_mish, bench_mish},
    {"ew map softsign", check_softsign, bench_softsign},
    {"ew map hardsigmoid", check_hardsigmoid, bench_hardsigmoid},
    {"ew map threshold", check_threshold, bench_threshold},
    {"ew map floor", check_floor, bench_floor},
    {"ew map ceil", check_ceil, bench_ceil},
    {"ew map round", check_round, bench_round},
    {"ew map sin", check_sin, bench_sin},
    {"ew map cos", check_cos, bench_cos},
    {"ew map log", check_log, bench_log},
};
const size_t ck_cases_maps_count = QS_COUNT(ck_cases_maps);
