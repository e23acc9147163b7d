/* SPDX-License-Identifier: MIT */
/* Element-wise kernels. */
#include "checkkernel.h"

#include "kernel/ew.h"

#include <math.h>
#include <stdio.h>

typedef struct ew_case {
    const qk_ew *k;
    qk_ew_u8 w;
    const void *a, *b;
    void *c;
    size_t n, sa, sb;
    int which; /* 0 add, 1 mul; then floats, as in call */
} ew_case;

static void call(void *arg) {
    const ew_case *e = arg;
    switch (e->which) {
    case 0: e->k->add_u8(e->a, e->sa, e->b, e->sb, e->c, e->n, &e->w); break;
    case 1: e->k->mul_u8(e->a, e->sa, e->b, e->sb, e->c, e->n, &e->w); break;
    case 2: e->k->exp(e->a, e->c, e->n); break;
    case 3: e->k->sigmoid(e->a, e->c, e->n); break;
    case 4: e->k->tanh(e->a, e->c, e->n); break;
    case 5: e->k->exp_shifted(e->a, 0.75f, e->c, e->n); break;
    case 6: e->k->erf(e->a, e->c, e->n); break;
    case 7: e->k->gelu(e->a, e->c, e->n); break;
    case 8: e->k->gelu_tanh(e->a, e->c, e->n); break;
    case 9: e->k->divide(e->a, 3.1f, e->c, e->n); break;
    case 10: e->k->normalize(e->a, 0.1f, 1.7f, e->b, NULL, e->c, e->n); break;
    case 11: e->k->normalize(e->a, 0.1f, 1.7f, e->b, e->a, e->c, e->n); break;
    case 12: *(float *)e->c = e->k->greatest(e->a, e->n); break;
    case 13: *(float *)e->c = e->k->sum(e->a, 0, e->n); break;
    default: *(float *)e->c = e->k->sum_squares(e->a, 0.3f, e->n); break;
    }
}

static void make(ew_case *e, ck_state *s, int which, size_t n) {
    *e = (ew_case){.which = which, .n = n, .sa = 1, .sb = 1};
    e->w.ma = ck_real(s, 0.001f, 2);
    e->w.mb = ck_real(s, 0.001f, 2);
    e->w.za = ck_between(s, 0, 255);
    e->w.zb = ck_between(s, 0, 255);
    e->w.zc = ck_between(s, 0, 255);
    e->w.lo = (float)-e->w.zc;
    e->w.hi = (float)(255 - e->w.zc);
    e->w.flip_a = ck_between(s, 0, 1) ? 0x80 : 0;
    e->w.flip_b = ck_between(s, 0, 1) ? 0x80 : 0;
    e->w.flip_c = ck_between(s, 0, 1) ? 0x80 : 0;
    const float reach = which >= 6 && which <= 8 ? 6 : 100;
    e->a = which < 2 ? ck_input(s, n) : ck_floats(s, n, -reach, reach);
    e->b = which < 2 ? ck_input(s, n) : which == 10 || which == 11 ? ck_floats(s, n, -2, 2) : NULL;
}

/* The definition once more, for the C kernels; the elementary functions against the C library. */
static void plain(const ew_case *e, uint8_t *c) {
    const uint8_t *a = e->a, *b = e->b;
    for (size_t i = 0; i < e->n; i++) {
        float va = (float)((a[i * e->sa] ^ e->w.flip_a) - e->w.za);
        float vb = (float)((b[i * e->sb] ^ e->w.flip_b) - e->w.zb);
        float v = e->which ? va * vb * e->w.ma : e->w.ma * va + e->w.mb * vb;
        v = fminf(fmaxf(v, e->w.lo), e->w.hi);
        c[i] = (uint8_t)(((int32_t)rintf(v) + e->w.zc) ^ e->w.flip_c);
    }
}

static double wanted(const ew_case *e, size_t i) {
    const double x = (double)((const float *)e->a)[i];
    if (e->which == 6)
        return erf(x);
    return e->which == 7 ? x * erfc(-x * 0.70710678118654752) / 2
                         : x / 2 * (1 + tanh(0.79788456080286536 * (x + 0.044715 * x * x * x)));
}

/* Against double arithmetic: functions to 1e-6, sums to 1e-5 of their terms. */
static void check_value(ck_state *s, const ew_case *e, const float *y, const char *shape) {
    const float *a = e->a;
    double sum = 0, size = 0, top = (double)a[0];
    bool right = true;
    for (size_t i = 0; i < e->n; i++) {
        double d = (double)a[i] - 0.3, term = e->which == 13 ? (double)a[i] : d * d;
        sum += term;
        size += fabs(term);
        top = fmax(top, (double)a[i]);
        if (e->which >= 6 && e->which <= 8)
            right = right && fabs((double)y[i] - wanted(e, i)) <= 1e-6;
    }
    if (e->which >= 12)
        right = e->which == 12 ? (double)y[0] == top : fabs((double)y[0] - sum) <= 1e-5 * size;
    uint8_t *yes = ck_output(s, 1), *is = ck_output(s, 1);
    *yes = 1;
    *is = right;
    ck_same(s, yes, is, 1, shape);
}

static void check(ck_state *s, int which) {
    ew_case e;
    char shape[64];
    size_t n = (size_t)ck_between(s, 1, 200);
    make(&e, s, which, n);
    if (which < 2) {
        int32_t form = ck_between(s, 0, 2);
        e.sa = form != 1;
        e.sb = form != 2;
    }
    snprintf(shape, sizeof(shape), "n %zu strides %zu %zu", n, e.sa, e.sb);
    size_t bytes = which < 2 ? n : which >= 12 ? 4 : 4 * n;
    void *expected = ck_output(s, bytes), *actual = ck_output(s, bytes);
    e.k = s->c->ew;
    e.c = expected;
    if (which < 2)
        plain(&e, expected);
    else
        call(&e);
    if (which >= 6)
        check_value(s, &e, expected, shape);
    e.k = s->t->ew;
    e.c = actual;
    call(&e);
    ck_same(s, expected, actual, bytes, shape);
}

static void bench(ck_state *s, int which) {
    ew_case e;
    make(&e, s, which, 50000);
    e.k = s->t->ew;
    e.c = ck_output(s, which < 2 ? e.n : 4 * e.n);
    ck_time(s, "n 50000", 0, (double)e.n * (which < 2 ? 3 : 8), call, &e);
}

#define CASE(name, which)                                                                          \
    static void check_##name(ck_state *s) {                                                        \
        check(s, which);                                                                           \
    }                                                                                              \
    static void bench_##name(ck_state *s) {                                                        \
        bench(s, which);                                                                           \
    }

CASE(add, 0)
CASE(mul, 1)
CASE(exp, 2)
CASE(sigmoid, 3)
CASE(tanh, 4)
CASE(shifted, 5)
CASE(erf, 6)
CASE(gelu, 7)
CASE(gelu_tanh, 8)
CASE(divide, 9)
CASE(scale, 10)
CASE(normalize, 11)
CASE(greatest, 12)
CASE(sum, 13)
CASE(squares, 14)

const ck_case ck_cases_ew[] = {
    {"ew add u8", check_add, bench_add},
    {"ew mul u8", check_mul, bench_mul},
    {"ew exp", check_exp, bench_exp},
    {"ew sigmoid", check_sigmoid, bench_sigmoid},
    {"ew tanh", check_tanh, bench_tanh},
    {"ew exp shifted", check_shifted, bench_shifted},
    {"ew erf", check_erf, bench_erf},
    {"ew gelu", check_gelu, bench_gelu},
    {"ew gelu tanh", check_gelu_tanh, bench_gelu_tanh},
    {"ew divide", check_divide, bench_divide},
    {"ew scale", check_scale, bench_scale},
    {"ew normalize", check_normalize, bench_normalize},
    {"ew greatest", check_greatest, bench_greatest},
    {"ew sum", check_sum, bench_sum},
    {"ew sum of squares", check_squares, bench_squares},
};
const size_t ck_cases_ew_count = QS_COUNT(ck_cases_ew);
