/* SPDX-License-Identifier: MIT */
/* ArgMax and ArgMin against a search in order. */
#include "op_harness.h"

#include <math.h>

/* ArgMax or ArgMin along the middle axis, which may be the last but for one: the first or last of
 * equals; NaN only if it is first. */
static void arg_random(uint64_t *seed, size_t rows, size_t inner) {
    static const float few[] = {0.0f, -0.0f, 1.0f, -1.0f, NAN, INFINITY, -INFINITY, 2.0f};
    const bool least = test_random(seed) % 2, last = test_random(seed) % 2;
    const size_t outer = 1 + test_random(seed) % (inner > 1 ? 3 : 700), n = outer * rows * inner;
    const size_t values = test_random(seed) % 2 ? 8 : 4;
    float *x = malloc(n * sizeof(*x));
    size_t wrong = 0;
    for (size_t i = 0; i < n; i++)
        x[i] = few[test_random(seed) % values];
    op_case *c = case_new("", least ? "ArgMin" : "ArgMax", 13);
    case_input(c, QSIM_FLOAT, SHAPE((int64_t)outer, (int64_t)rows, (int64_t)inner), x);
    case_node(c, 1);
    qs_node_set_int(c->g, c->node, "axis", 1);
    qs_node_set_int(c->g, c->node, "keepdims", 0);
    qs_node_set_int(c->g, c->node, "select_last_index", last);
    CHECK_INT(case_run(c), 0);
    for (size_t o = 0; o < outer * inner; o++) {
        const float *v = x + o / inner * rows * inner + o % inner;
        size_t best = 0;
        for (size_t i = 1; i < rows; i++) {
            const float a = v[i * inner], b = v[best * inner];
            if ((least ? a < b : a > b) || (last && a == b))
                best = i;
        }
        wrong += ((const int64_t *)case_data(c, 0))[o] != (int64_t)best;
    }
    CHECK_INT(wrong, 0);
    case_free(c);
    free(x);
}

static void test_arg_columns(void) {
    uint64_t seed = 7;
    for (int i = 0; i < 100; i++) {
        arg_random(&seed, 1 + test_random(&seed) % 9, 1 + test_random(&seed) % 40);
        arg_random(&seed, 3, 250 + test_random(&seed) % 300); /* blocks of columns */
        arg_random(&seed, 1 + test_random(&seed) % 300, 1);   /* rows end to end */
        arg_random(&seed, 1 + test_random(&seed) % 40, 1);    /* and short ones */
    }
}

/* A row that is searched in pieces: the extreme is in one of the later ones, once or twice. */
static void test_arg_long(void) {
    enum { N = 200000 };
    static float x[N];
    for (int k = 0; k < 8; k++) {
        const bool least = k & 1, last = k & 2, twice = k & 4;
        op_case *c = case_new("", least ? "ArgMin" : "ArgMax", 13);
        memset(x, 0, sizeof(x));
        x[70000] = least ? -1 : 1;
        x[199999] = twice ? x[70000] : 0;
        case_input(c, QSIM_FLOAT, SHAPE(N), x);
        case_node(c, 1);
        qs_node_set_int(c->g, c->node, "select_last_index", last);
        CHECK_INT(case_run(c), 0);
        CHECK_INT(((const int64_t *)case_data(c, 0))[0], twice && last ? 199999 : 70000);
        case_free(c);
    }
}

static void test_arg(void) {
    static const float x[] = {1, 5, 5, -2, -2, 0};
    for (int last = 0; last < 2; last++) {
        op_case *c = case_new("", last ? "ArgMin" : "ArgMax", 13);
        case_input(c, QSIM_FLOAT, SHAPE(2, 3), x);
        case_node(c, 1);
        CHECK_INT(qs_node_set_int(c->g, c->node, "axis", -1), 0);
        CHECK_INT(qs_node_set_int(c->g, c->node, "select_last_index", last), 0);
        CHECK_INT(case_run(c), 0);
        CHECK_STR(case_shape(c, 0), "int64[2,1]");
        CHECK_INT(((const int64_t *)case_data(c, 0))[0], last ? 0 : 1);
        CHECK_INT(((const int64_t *)case_data(c, 0))[1], last ? 1 : 2);
        case_free(c);
    }
}

/* ArgMax and ArgMin of numbers that other types would order differently: 1, and the last. */
static void test_arg_types(void) {
    static const int8_t s8[] = {-100, 100, -101};
    static const uint8_t u8[] = {128, 255, 1};
    static const int16_t s16[] = {-300, 300, -301};
    static const int32_t s32[] = {-70000, 70000, -70001};
    static const int64_t s64[] = {INT64_MIN + 1, INT64_MAX, INT64_MIN};
    static const double f64[] = {-1e300, 1e300, -2e300};
    static const uint16_t u16[] = {40000, 60000, 1};
    static const uint32_t u32[] = {3000000000, 4000000000, 1};
    static const uint64_t u64[] = {UINT64_MAX - 1, UINT64_MAX, 1};
    static const struct {
        int32_t dtype;
        const void *x;
    } all[] = {{QSIM_INT8, s8},    {QSIM_UINT8, u8},   {QSIM_INT16, s16},
               {QSIM_UINT16, u16}, {QSIM_INT32, s32},  {QSIM_UINT32, u32},
               {QSIM_INT64, s64},  {QSIM_UINT64, u64}, {QSIM_DOUBLE, f64}};
    for (size_t i = 0; i < 2 * QS_COUNT(all); i++) {
        op_case *c = case_new("", i % 2 ? "ArgMin" : "ArgMax", 13);
        case_input(c, all[i / 2].dtype, SHAPE(3), all[i / 2].x);
        case_node(c, 1);
        CHECK_INT(case_run(c), 0);
        CHECK_INT(((const int64_t *)case_data(c, 0))[0], i % 2 ? 2 : 1);
        case_free(c);
    }
}

int main(void) {
    test_arg();
    test_arg_columns();
    test_arg_long();
    test_arg_types();
    return test_done();
}
