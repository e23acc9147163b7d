/* SPDX-License-Identifier: MIT */
/* The kernel `cast`: beside the types' definitions, in double arithmetic. */
#include "checkkernel.h"

#include "kernel/ew.h"

#include <math.h>
#include <stdio.h>

typedef struct cast_run {
    const qk_ew *k;
    qk_cast how;
    const void *x;
    void *y;
    size_t n;
} cast_run;

static void call(void *arg) {
    const cast_run *r = arg;
    r->k->cast(r->how, r->x, r->y, r->n);
}

static size_t input_bytes(qk_cast how) {
    return how <= QK_FROM_S8 ? 1 : how == QK_FROM_HALF || how == QK_FROM_BRAIN ? 2 : 4;
}

static size_t output_bytes(qk_cast how) {
    return how == QK_TO_HALF ? 2 : how >= QK_TO_U8 ? 1 : 4;
}

/* What a float of 16 bits stands for, by IEEE 754: 5 or 8 bits of exponent. */
static double value_of(uint32_t bits, int exponent_bits) {
    const int digits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
    const int exponent = (int)(bits >> digits) & ((1 << exponent_bits) - 1);
    const int fraction = (int)bits & ((1 << digits) - 1);
    double v = exponent ? ldexp((1 << digits) + fraction, exponent - bias - digits)
                        : ldexp(fraction, 1 - bias - digits);
    if (exponent == (1 << exponent_bits) - 1)
        v = fraction ? (double)NAN : (double)INFINITY;
    return bits >> 15 ? -v : v;
}

/* x rounded to a float16: a multiple of the distance of its neighbours, the even one of two. */
static double nearest_half(double x) {
    int exponent;
    if (x == 0 || x != x || isinf(x))
        return x;
    frexp(x, &exponent); /* from 1/2 on */
    const double step = ldexp(1, (exponent < -13 ? -13 : exponent) - 11);
    const double near = rint(x / step) * step;
    return fabs(near) > 65504 ? copysign((double)INFINITY, x) : near;
}

static double whole(double x, double low, double high) {
    return x != x ? 0 : fmin(high, fmax(low, trunc(x)));
}

static bool same(double a, double b) {
    return a != a ? b != b : a == b && !signbit(a) == !signbit(b);
}

static bool is_right(qk_cast how, const void *vx, const void *vy, size_t i) {
    const float *x = vx, *y = vy;
    const uint16_t *x16 = vx, *y16 = vy;
    switch (how) {
    case QK_FROM_BOOL: return y[i] == (((const uint8_t *)vx)[i] ? 1.0f : 0.0f);
    case QK_FROM_U8: return y[i] == (float)((const uint8_t *)vx)[i];
    case QK_FROM_S8: return y[i] == (float)((const int8_t *)vx)[i];
    case QK_FROM_S32: return y[i] == (float)((const int32_t *)vx)[i];
    case QK_FROM_HALF: return same(value_of(x16[i], 5), (double)y[i]);
    case QK_FROM_BRAIN: return same(value_of(x16[i], 8), (double)y[i]);
    case QK_TO_HALF:
        return x[i] != x[i] ? y16[i] == 0x7e00
                            : same(nearest_half((double)x[i]), value_of(y16[i], 5));
    case QK_TO_S32:
        return (double)((const int32_t *)vy)[i] == whole((double)x[i], INT32_MIN, INT32_MAX);
    case QK_TO_U8: return ((const uint8_t *)vy)[i] == whole((double)x[i], 0, 255);
    case QK_TO_S8: return ((const int8_t *)vy)[i] == whole((double)x[i], -128, 127);
    case QK_TO_BOOL: return ((const uint8_t *)vy)[i] == (x[i] != 0);
    }
    return false;
}

/* Floats of every size; between those of float16, halfway and nearly so; random bits otherwise. */
static void fill(ck_state *s, qk_cast how, void *vx, size_t n) {
    static const float special[] = {
        NAN,      -NAN,      INFINITY, -INFINITY,    -0.0f,   65519.996f,    65520.f,
        0x1p31,   -0x1p31,   127.9f,   -128.99f,     255.99f, 256.0f,        1e-44f,
        0x1p-25f, 0x1.8p-24, 0x1p-14,  0x1.ffcp-15f, -0.99f,  2147483520.0f, -2147483904.0f};
    float *x = vx;
    uint8_t *bytes = vx;
    for (size_t i = 0; i < n * input_bytes(how); i++)
        bytes[i] = (uint8_t)ck_random(s);
    for (size_t i = 0; i < n && how >= QK_TO_HALF; i++) {
        const float near = (float)value_of(ck_random(s) & 0xffff, 5);
        uint32_t bits;
        memcpy(&bits, &near, sizeof(bits));
        bits = (bits | 0x1000u) + (uint32_t)ck_between(s, -1, 1);
        switch (ck_between(s, 0, 4)) {
        case 0: x[i] = special[ck_random(s) % QS_COUNT(special)]; break;
        case 1: x[i] = ldexpf(ck_real(s, -1, 1), ck_between(s, -30, 35)); break;
        case 2: memcpy(x + i, &bits, sizeof(bits)); break;
        case 3: x[i] = ck_real(s, -300, 300); break;
        default: break;
        }
    }
}

static void check(ck_state *s, qk_cast how) {
    const size_t n = 16 * (size_t)ck_between(s, 1, 40), bytes = n * output_bytes(how);
    void *x = ck_output(s, n * input_bytes(how));
    uint8_t *expected = ck_output(s, bytes), *actual = ck_output(s, bytes);
    uint8_t *all = ck_output(s, n), *right = ck_output(s, n);
    cast_run r = {s->c->ew, how, x, expected, n};
    char shape[64];
    snprintf(shape, sizeof(shape), "n %zu", n);
    fill(s, how, x, n);
    call(&r);
    for (size_t i = 0; i < n; i++) {
        all[i] = 1;
        right[i] = is_right(how, x, expected, i);
    }
    ck_same(s, all, right, n, shape);
    r.k = s->t->ew;
    r.y = actual;
    call(&r);
    ck_same(s, expected, actual, bytes, shape);
}

static void bench(ck_state *s, qk_cast how) {
    const size_t n = 50000, bytes = input_bytes(how) + output_bytes(how);
    cast_run r = {s->t->ew, how, ck_floats(s, n, -10, 10), ck_output(s, 4 * n), n};
    ck_time(s, "n 50000", 0, (double)(bytes * n), call, &r);
}

#define CASE(how)                                                                                  \
    static void check_##how(ck_state *s) {                                                         \
        check(s, how);                                                                             \
    }                                                                                              \
    static void bench_##how(ck_state *s) {                                                         \
        bench(s, how);                                                                             \
    }

CASE(QK_FROM_BOOL)
CASE(QK_FROM_U8)
CASE(QK_FROM_S8)
CASE(QK_FROM_S32)
CASE(QK_FROM_HALF)
CASE(QK_FROM_BRAIN)
CASE(QK_TO_HALF)
CASE(QK_TO_S32)
CASE(QK_TO_U8)
CASE(QK_TO_S8)
CASE(QK_TO_BOOL)

const ck_case ck_cases_casts[] = {
    {"ew cast from bool", check_QK_FROM_BOOL, bench_QK_FROM_BOOL},
    {"ew cast from u8", check_QK_FROM_U8, bench_QK_FROM_U8},
    {"ew cast from s8", check_QK_FROM_S8, bench_QK_FROM_S8},
    {"ew cast from s32", check_QK_FROM_S32, bench_QK_FROM_S32},
    {"ew cast from float16", check_QK_FROM_HALF, bench_QK_FROM_HALF},
    {"ew cast from bfloat16", check_QK_FROM_BRAIN, bench_QK_FROM_BRAIN},
    {"ew cast to float16", check_QK_TO_HALF, bench_QK_TO_HALF},
    {"ew cast to s32", check_QK_TO_S32, bench_QK_TO_S32},
    {"ew cast to u8", check_QK_TO_U8, bench_QK_TO_U8},
    {"ew cast to s8", check_QK_TO_S8, bench_QK_TO_S8},
    {"ew cast to bool", check_QK_TO_BOOL, bench_QK_TO_BOOL},
};
const size_t ck_cases_casts_count = QS_COUNT(ck_cases_casts);
