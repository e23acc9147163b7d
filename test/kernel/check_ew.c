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
    int which; /* 0 add, 1 mul; exp, sigmoid, tanh, exp_shifted */
} ew_case;

static void call(void *arg) {
    const ew_case *e = arg;
    switch (e->which) {
    case 0: e->k->add_u8(e->a, e->sa, e->b, e->sb, e->c, e->n, &e->w); break;
    case 1: e->k->mul_u8(e->a, e->sa, e->b, e->sb, e->c, e->n, &e->w); break;
    case 2: e->k->exp(e->a, e->c, e->n); break;
    case 3: e->k->sigmoid(e->a, e->c, e->n); break;
    case 4: e->k->tanh(e->a, e->c, e->n); break;
    default: e->k->exp_shifted(e->a, 0.75f, e->c, e->n); break;
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
    e->a = which < 2 ? ck_input(s, n) : ck_floats(s, n, -100, 100);
    e->b = which < 2 ? ck_input(s, n) : NULL;
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
    size_t bytes = which < 2 ? n : 4 * n;
    void *expected = ck_output(s, bytes), *actual = ck_output(s, bytes);
    e.k = s->c->ew;
    e.c = expected;
    if (which < 2)
        plain(&e, expected);
    else
        call(&e);
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

const ck_case ck_cases_ew[] = {
    {"ew add u8", check_add, bench_add}, {"ew mul u8", check_mul, bench_mul},
    {"ew exp", check_exp, bench_exp},    {"ew sigmoid", check_sigmoid, bench_sigmoid},
    {"ew tanh", check_tanh, bench_tanh}, {"ew exp shifted", check_shifted, bench_shifted},
};
const size_t ck_cases_ew_count = QS_COUNT(ck_cases_ew);
