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
    {3, 3, {4, 1, 100}, {4, 9, 1}},
    {3, 3, {2, 9, 1}, {2, 9, 300}},
    {2, 2, {9, 1}, {9, 1100}},
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

/* Where the elements of both operands lie for each element of the result; returns how many. */
static size_t find(const shapes *s, size_t *in_a, size_t *in_b) {
    const int32_t rank = s->rank_a > s->rank_b ? s->rank_a : s->rank_b;
    int64_t dims[3], at[3] = {0};
    for (int32_t i = 0; i < rank; i++) {
        const int32_t ka = i - rank + s->rank_a, kb = i - rank + s->rank_b;
        const int64_t da = ka < 0 ? 1 : s->a[ka], db = kb < 0 ? 1 : s->b[kb];
        dims[i] = da == 1 ? db : da;
    }
    const size_t n = elements(rank, dims);
    for (size_t k = 0; k < n; k++) {
        in_a[k] = place(s->rank_a, s->a, rank, at);
        in_b[k] = place(s->rank_b, s->b, rank, at);
        for (int32_t i = rank - 1; i >= 0 && ++at[i] == dims[i]; i--)
            at[i] = 0;
    }
    return n;
}

static size_t in_a[MOST], in_b[MOST];

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
    const size_t n = find(s, in_a, in_b);
    for (size_t k = 0; k < n; k++)
        want[k] = o->of(a[in_a[k]], b[in_b[k]]);
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

/* ---- integers and bool ---- */

static const char *const whole_names[] = {"Add",
                                          "Sub",
                                          "Mul",
                                          "Div",
                                          "Max",
                                          "Min",
                                          "Mod",
                                          "Less",
                                          "LessOrEqual",
                                          "Greater",
                                          "GreaterOrEqual",
                                          "Equal",
                                          "BitwiseAnd",
                                          "BitwiseXor",
                                          "BitShift",
                                          "PRelu"};
static const int32_t whole_types[] = {QSIM_INT8,  QSIM_INT16,  QSIM_INT32,  QSIM_INT64,
                                      QSIM_UINT8, QSIM_UINT16, QSIM_UINT32, QSIM_UINT64};

/* The low bits of the result of two integers, sign- or zero-extended; the 64th bit has no sign. */
static uint64_t whole_of(const char *op, bool is_signed, uint64_t a, uint64_t b) {
    const int64_t p = (int64_t)a, q = (int64_t)b;
    const bool less = is_signed ? p < q : a < b;
    if (op[0] == 'A' || op[0] == 'S')
        return op[0] == 'A' ? a + b : a - b;
    if (strcmp(op, "Mul") == 0)
        return a * b;
    if (strcmp(op, "Div") == 0)
        return b == 0 ? 0 : !is_signed ? a / b : q == -1 ? 0 - a : (uint64_t)(p / q);
    if (strcmp(op, "Mod") == 0) {
        if (b == 0 || (is_signed && q == -1))
            return 0;
        const int64_t r = is_signed ? p % q : (int64_t)(a % b);
        return (uint64_t)(is_signed && r != 0 && (r < 0) != (q < 0) ? r + q : r);
    }
    if (strcmp(op, "Max") == 0)
        return less ? b : a;
    if (strcmp(op, "Min") == 0)
        return less ? a : b;
    if (op[0] == 'L')
        return less || (op[4] && a == b);
    if (op[0] == 'G')
        return (!less && a != b) || (op[7] && a == b);
    if (op[0] == 'E')
        return a == b;
    if (op[0] == 'P')
        return is_signed && p < 0 ? a * b : a;
    return op[7] == 'A' ? a & b : op[7] == 'X' ? a ^ b : b < 64 ? a << b : 0;
}

static uint64_t extended(const char *x, size_t i, size_t bytes, bool is_signed) {
    uint64_t v = 0;
    memcpy(&v, x + i * bytes, bytes);
    return is_signed ? (uint64_t)((int64_t)(v << (64 - 8 * bytes)) >> (64 - 8 * bytes)) : v;
}

/* Few different numbers in one of two operands, so that some are equal. */
static void whole(const char *op, int32_t type, const shapes *s) {
    static char x[2][MOST * 8], want[MOST * 8];
    const size_t bytes = (size_t)qsim_dtype_bits(type) / 8;
    const bool is_signed =
        type == QSIM_INT8 || type == QSIM_INT16 || type == QSIM_INT32 || type == QSIM_INT64;
    const bool truth = op[0] == 'L' || op[0] == 'G' || op[0] == 'E', slope = op[0] == 'P';
    const bool shift = strcmp(op, "BitShift") == 0;
    const size_t own[2] = {elements(s->rank_a, s->a), elements(s->rank_b, s->b)};
    const size_t n = find(s, in_a, in_b), y_bytes = truth ? 1 : bytes;
    uint64_t seed = n + bytes;
    if ((shift && is_signed) || (slope && (bytes < 4 || own[0] != n)))
        return;
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < own[k]; i++) {
            const uint64_t r = test_random(&seed), few = r % 5 - (is_signed ? 2 : 0);
            const uint64_t v = shift && k == 1 ? r % (8 * bytes + 3) : r >> 20 & 1 ? few : r;
            memcpy(x[k] + i * bytes, &v, bytes);
        }
    for (size_t i = 0; i < n; i++) {
        const uint64_t v = whole_of(op, is_signed, extended(x[0], in_a[i], bytes, is_signed),
                                    extended(x[1], in_b[i], bytes, is_signed));
        memcpy(want + i * y_bytes, &v, y_bytes);
    }
    op_case *c = case_new("", op, 18);
    case_input(c, type, s->rank_a, s->a, x[0]);
    case_input(c, type, s->rank_b, s->b, x[1]);
    case_node(c, 1);
    if (shift)
        case_string(c, "direction", "LEFT");
    CHECK_INT(case_run(c), 0);
    if (n && memcmp(case_data(c, 0), want, n * y_bytes) != 0)
        CHECK_FAIL(op);
    test_checks++;
    case_free(c);
}

static void logic(const char *op, const shapes *s) {
    static uint8_t a[MOST], b[MOST], want[MOST];
    const size_t n = find(s, in_a, in_b);
    uint64_t seed = n;
    for (size_t i = 0; i < MOST; i++) {
        a[i] = (uint8_t)(test_random(&seed) % 3);
        b[i] = (uint8_t)(test_random(&seed) % 3);
    }
    for (size_t i = 0; i < n; i++) {
        const bool p = a[in_a[i]] != 0, q = b[in_b[i]] != 0;
        want[i] = op[0] == 'A' ? p && q : op[0] == 'O' ? p || q : op[0] == 'X' ? p != q : p == q;
    }
    op_case *c = case_new("", op, 13);
    case_input(c, QSIM_BOOL, s->rank_a, s->a, a);
    case_input(c, QSIM_BOOL, s->rank_b, s->b, b);
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    CHECK(n == 0 || memcmp(case_data(c, 0), want, n) == 0);
    case_free(c);
}

static void test_whole_numbers(void) {
    static const char *const logics[] = {"And", "Or", "Xor", "Equal"};
    for (size_t i = 0; i < QS_COUNT(all); i++) {
        for (size_t k = 0; k < QS_COUNT(whole_names) * QS_COUNT(whole_types); k++)
            whole(whole_names[k / 8], whole_types[k % 8], &all[i]);
        for (size_t k = 0; k < QS_COUNT(logics); k++)
            logic(logics[k], &all[i]);
    }
}

int main(void) {
    test_broadcast();
    test_whole_numbers();
    test_over_an_operand();
    return test_done();
}
