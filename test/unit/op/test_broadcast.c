/* SPDX-License-Identifier: MIT */
/*
 * Operators of two operands over shapes that broadcast in every way, against a loop over all
 * indices; and their results written over an operand.
 */
#include "op_harness.h"

#define MOST 20000

typedef struct shapes {
    int32_t rank_a, rank_b;
    int64_t a[3], b[3];
} shapes;

/* Short rows that repeat in one operand or the other, few and many of them; rows too long for a
 * tile; single numbers; equal shapes. */
static const shapes all[] = {
    {3, 1, {3, 50, 7}, {7}},
    {3, 3, {3, 50, 7}, {3, 1, 7}},
    {3, 2, {2, 5, 1200}, {1, 1200}},
    {1, 3, {7}, {3, 50, 7}},
    {3, 3, {3, 1, 7}, {3, 50, 7}},
    {2, 1, {400, 16}, {16}},
    {2, 1, {300, 12}, {12}},
    {3, 3, {5, 3, 24}, {5, 1, 24}},
    {3, 3, {2, 300, 3}, {2, 1, 3}},
    {1, 1, {1201}, {1}},
    {1, 1, {1}, {1201}},
    {3, 3, {4, 100, 5}, {4, 100, 1}},
    {3, 3, {5, 30, 12}, {1, 30, 12}},
    {2, 2, {9, 111}, {9, 111}},
    {3, 3, {2, 0, 7}, {1, 1, 7}},
    {3, 3, {4, 1, 6}, {1, 9, 6}},
};

typedef struct operation {
    const char *name;
    int64_t version;
    bool one_way; /* input 1 broadcasts to input 0 only */
    float (*of)(float, float);
} operation;

static float sum(float a, float b) {
    return a + b;
}
static float difference(float a, float b) {
    return a - b;
}
static float product(float a, float b) {
    return a * b;
}
static float quotient(float a, float b) {
    return a / b;
}
static float greater(float a, float b) {
    return a > b ? a : b;
}
static float slope(float a, float b) {
    return a < 0 ? a * b : a;
}

static const operation operations[] = {
    {"Add", 14, false, sum},      {"Sub", 14, false, difference}, {"Mul", 14, false, product},
    {"Div", 14, false, quotient}, {"Max", 13, false, greater},    {"PRelu", 16, true, slope},
};

static size_t elements(int32_t rank, const int64_t *dims) {
    size_t n = 1;
    for (int32_t i = 0; i < rank; i++)
        n *= (size_t)dims[i];
    return n;
}

/* The element of an operand of `dims` that belongs to the index `at` of a result of rank `rank`. */
static size_t place(int32_t own, const int64_t *dims, int32_t rank, const int64_t *at) {
    size_t offset = 0;
    for (int32_t i = 0; i < own; i++)
        offset = offset * (size_t)dims[i] + (dims[i] == 1 ? 0 : (size_t)at[i + rank - own]);
    return offset;
}

/* The wanted result; returns its elements. */
static size_t expect(const shapes *s, const float *a, const float *b, float (*of)(float, float),
                     float *y) {
    const int32_t rank = s->rank_a > s->rank_b ? s->rank_a : s->rank_b;
    int64_t dims[3], at[3] = {0};
    for (int32_t i = 0; i < rank; i++) {
        const int32_t ka = i - rank + s->rank_a, kb = i - rank + s->rank_b;
        const int64_t da = ka < 0 ? 1 : s->a[ka], db = kb < 0 ? 1 : s->b[kb];
        dims[i] = da == 1 ? db : da;
    }
    const size_t n = elements(rank, dims);
    for (size_t k = 0; k < n; k++) {
        y[k] = of(a[place(s->rank_a, s->a, rank, at)], b[place(s->rank_b, s->b, rank, at)]);
        for (int32_t i = rank - 1; i >= 0 && ++at[i] == dims[i]; i--)
            at[i] = 0;
    }
    return n;
}

static void fill(float *x, size_t n, uint32_t seed) {
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(int32_t)(seed >> 8) / 4194304.0f - 2.0f + 1e-3f;
    }
}

/* over: the input whose memory the result gets, or -1. */
static void one(const operation *o, const shapes *s, int32_t over) {
    static float a[MOST], b[MOST], want[MOST];
    fill(a, elements(s->rank_a, s->a), 1);
    fill(b, elements(s->rank_b, s->b), 2);
    const size_t n = expect(s, a, b, o->of, want);
    const size_t own[2] = {elements(s->rank_a, s->a), elements(s->rank_b, s->b)};
    if ((over >= 0 && own[over] != n) || (o->one_way && own[0] != n))
        return;
    op_case *c = case_new("", o->name, o->version);
    case_input(c, QSIM_FLOAT, s->rank_a, s->a, a);
    case_input(c, QSIM_FLOAT, s->rank_b, s->b, b);
    case_node(c, 1);
    if (over >= 0) {
        c->data[c->out[0]] = c->data[c->in[over]];
        c->bytes[c->out[0]] = n * sizeof(float);
    }
    CHECK_INT(case_run(c), 0);
    CHECK(n == 0 || memcmp(case_data(c, 0), want, n * sizeof(float)) == 0);
    if (over >= 0)
        c->data[c->out[0]] = NULL; /* freed with the input */
    case_free(c);
}

static void test_broadcast(void) {
    for (size_t k = 0; k < QS_COUNT(operations); k++)
        for (size_t i = 0; i < QS_COUNT(all); i++)
            one(&operations[k], &all[i], -1);
}

/* What qs_step.in_place allows: floats of Add, Sub, Mul, Div and PRelu over a whole operand. */
static void test_over_an_operand(void) {
    for (size_t k = 0; k < QS_COUNT(operations); k++)
        for (size_t i = 0; i < QS_COUNT(all) && operations[k].of != greater; i++)
            for (int32_t over = 0; over < (operations[k].one_way ? 1 : 2); over++)
                one(&operations[k], &all[i], over);
}

int main(void) {
    test_broadcast();
    test_over_an_operand();
    return test_done();
}
