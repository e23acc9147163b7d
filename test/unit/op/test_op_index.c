/* SPDX-License-Identifier: MIT */
/*
 * Operators that index: gathers and scatters of elements and tuples, TopK, OneHot, and those that
 * rearrange or crop. Expected values are the examples of ONNX's text, NumPy's, or counted by hand.
 */
#include "op_numbers.h"

#include <math.h>

static double ramp[MOST_NUMBERS];

/* ---- gathers ---- */

static op_case *gather_elements(int32_t dtype, int64_t axis, const int64_t indices[6]) {
    op_case *c = case_new("", "GatherElements", 13);
    case_numbers(c, dtype, SHAPE(3, 3), NUMBERS(1, 2, 3, 4, 5, 6, 7, 8, 9));
    case_input(c, QSIM_INT64, SHAPE(2, 3), indices);
    case_node(c, 1);
    case_attr_int(c, "axis", axis);
    return c;
}

static void test_gather_elements(void) {
    for (size_t i = 0; i < QS_COUNT(number_types); i++) {
        char shape[32];
        snprintf(shape, sizeof(shape), "%s[2,3]", qsim_dtype_name(number_types[i]));
        case_gives(gather_elements(number_types[i], 0, DIMS(1, 2, 0, 2, 0, 0)), shape,
                   NUMBERS(4, 8, 3, 7, 2, 3));
        case_gives(gather_elements(number_types[i], -1, DIMS(0, 0, -1, 1, -3, 2)), shape,
                   NUMBERS(1, 1, 3, 5, 4, 6));
    }
    case_breaks(gather_elements(QSIM_FLOAT, 0, DIMS(1, 2, 0, 3, 0, 0)));
    case_breaks(gather_elements(QSIM_FLOAT, 1, DIMS(1, 2, 0, -4, 0, 0)));
    op_case *named = gather_elements(QSIM_FLOAT, -1, DIMS(1, 2, 0, -4, 0, 0)); /* and says which */
    CHECK_INT(case_run(named), 0);
    CHECK_INT(qs_fault_report(&named->fault, named->g, 0, "m", &named->error), QSIM_E_VALUE);
    CHECK(strstr(named->error.message, "m: index -4 is outside [-3, 3) of axis 1 (node") != NULL);
    case_free(named);
    case_refused(gather_elements(QSIM_FLOAT, 2, DIMS(0, 0, 0, 0, 0, 0)), QSIM_E_VALUE);

    op_case *c = case_new("", "GatherElements", 11); /* three axes, the middle one, int32 */
    const int32_t indices[4] = {2, 0, -1, 1};
    case_numbers(c, QSIM_FLOAT, SHAPE(2, 3, 2), ramp);
    case_input(c, QSIM_INT32, SHAPE(2, 1, 2), indices);
    case_node(c, 1);
    case_attr_int(c, "axis", 1);
    case_gives(c, "float[2,1,2]", NUMBERS(4, 1, 10, 9));

    c = case_new("", "GatherElements", 13); /* constant indices are checked at load */
    case_numbers(c, QSIM_FLOAT, SHAPE(3), ramp);
    case_const(c, QSIM_INT64, SHAPE(1), DIMS(3));
    case_node(c, 1);
    case_refused(c, QSIM_E_VALUE);
    c = case_new("", "GatherElements", 13); /* more indices than rows */
    case_numbers(c, QSIM_FLOAT, SHAPE(2, 2), ramp);
    case_input(c, QSIM_INT64, SHAPE(3, 2), DIMS(0, 0, 0, 0, 0, 0));
    case_node(c, 1);
    case_attr_int(c, "axis", 1);
    case_refused(c, QSIM_E_SHAPE);
}

static op_case *gather_nd(int64_t batch, int32_t rank, const int64_t *dims, const int64_t *at) {
    op_case *c = case_new("", "GatherND", 13);
    case_numbers(c, QSIM_FLOAT, SHAPE(2, 2, 2), ramp);
    case_input(c, QSIM_INT64, rank, dims, at);
    case_node(c, 1);
    case_attr_int(c, "batch_dims", batch);
    return c;
}

static void test_gather_nd(void) {
    case_gives(gather_nd(0, SHAPE(2, 2), DIMS(0, 1, 1, 0)), "float[2,2]", NUMBERS(2, 3, 4, 5));
    case_gives(gather_nd(0, SHAPE(2, 1, 2), DIMS(0, 1, 1, 0)), "float[2,1,2]", NUMBERS(2, 3, 4, 5));
    case_gives(gather_nd(0, SHAPE(1, 3), DIMS(-1, 0, -2)), "float[1]", NUMBERS(4));
    case_gives(gather_nd(1, SHAPE(2, 1), DIMS(1, 0)), "float[2,2]", NUMBERS(2, 3, 4, 5));
    case_gives(gather_nd(2, SHAPE(2, 2, 1), DIMS(1, 0, 0, 1)), "float[2,2]", NUMBERS(1, 2, 4, 7));
    case_breaks(gather_nd(0, SHAPE(2, 2), DIMS(0, 1, 2, 0)));
    case_breaks(gather_nd(1, SHAPE(2, 1), DIMS(1, -3)));
    case_refused(gather_nd(0, SHAPE(1, 4), DIMS(0, 0, 0, 0)), QSIM_E_SHAPE);
    case_refused(gather_nd(1, SHAPE(3, 1), DIMS(0, 0, 0)), QSIM_E_SHAPE);
    case_refused(gather_nd(2, SHAPE(2, 1), DIMS(0, 0)), QSIM_E_VALUE);
}

/* ---- scatters ---- */

/* One row of five, scattered on at 1, 3 and 1 again. */
static op_case *scatter(int32_t version, int32_t dtype, const char *reduction, int64_t last) {
    op_case *c = case_new("", "ScatterElements", version);
    case_numbers(c, dtype, SHAPE(1, 5), NUMBERS(1, 2, 3, 4, 5));
    case_input(c, QSIM_INT64, SHAPE(1, 3), DIMS(1, 3, last));
    case_numbers(c, dtype, SHAPE(1, 3), NUMBERS(7, 1, 3));
    case_node(c, 1);
    case_attr_int(c, "axis", -1);
    if (reduction)
        case_string(c, "reduction", reduction);
    return c;
}

static void test_scatter_elements(void) {
    for (size_t i = 0; i < QS_COUNT(number_types); i++) {
        const int32_t t = number_types[i];
        char shape[32];
        snprintf(shape, sizeof(shape), "%s[1,5]", qsim_dtype_name(t));
        case_gives(scatter(11, t, NULL, -4), shape, NUMBERS(1, 3, 3, 1, 5));
        case_gives(scatter(18, t, "none", 1), shape, NUMBERS(1, 3, 3, 1, 5));
        case_gives(scatter(16, t, "add", 1), shape, NUMBERS(1, 12, 3, 5, 5));
        case_gives(scatter(18, t, "mul", 1), shape, NUMBERS(1, 42, 3, 4, 5));
        case_gives(scatter(16, t, "max", 1), shape, NUMBERS(1, 7, 3, 4, 5));
        case_gives(scatter(18, t, "max", 1), shape, NUMBERS(1, 7, 3, 4, 5));
        case_gives(scatter(18, t, "min", 1), shape, NUMBERS(1, 2, 3, 1, 5));
    }
    case_breaks(scatter(18, QSIM_FLOAT, "add", 5));
    case_breaks(scatter(18, QSIM_FLOAT, "none", -6));
    case_refused(scatter(16, QSIM_FLOAT, "mean", 1), QSIM_E_VALUE);
    case_refused(scatter(18, QSIM_FLOAT, "mean", 1), QSIM_E_VALUE);

    op_case *c = case_new("", "Scatter", 9); /* ONNX's first example */
    case_numbers(c, QSIM_FLOAT, SHAPE(3, 3), NUMBERS(0, 0, 0, 0, 0, 0, 0, 0, 0));
    case_input(c, QSIM_INT32, SHAPE(2, 3), (const int32_t[]){1, 0, 2, 0, 2, 1});
    case_numbers(c, QSIM_FLOAT, SHAPE(2, 3), NUMBERS(1, 1.5, 1.25, 2, 2.5, 2.25));
    case_node(c, 1);
    CHECK_INT(case_infer(c), 0);
    CHECK_INT(qs_op_upgrade_graph(c->g, 18, "m", &c->error), 0);
    CHECK_STR(c->g->nodes[c->node].op_type, "ScatterElements");
    case_gives(c, "float[3,3]", NUMBERS(2, 1.5, 0, 1, 0, 2.25, 0, 2.5, 1.25));

    c = case_new("", "ScatterElements", 18); /* updates of another shape */
    case_numbers(c, QSIM_FLOAT, SHAPE(4), ramp);
    case_input(c, QSIM_INT64, SHAPE(2), DIMS(0, 0));
    case_numbers(c, QSIM_FLOAT, SHAPE(3), ramp);
    case_node(c, 1);
    case_refused(c, QSIM_E_SHAPE);
    c = case_new("", "ScatterElements", 18); /* no sum of booleans */
    case_input(c, QSIM_BOOL, SHAPE(2), "\1");
    case_input(c, QSIM_INT64, SHAPE(1), DIMS(0));
    case_input(c, QSIM_BOOL, SHAPE(1), "\1");
    case_node(c, 1);
    case_string(c, "reduction", "add");
    case_refused(c, QSIM_E_DTYPE);
}

/* Rows with one index, and a row with two, along the first of two axes. */
static op_case *scatter_rows(const char *reduction, int64_t last) {
    op_case *c = case_new("", "ScatterElements", 18);
    case_numbers(c, QSIM_FLOAT, SHAPE(3, 3), ramp);
    case_input(c, QSIM_INT64, SHAPE(4, 3), DIMS(1, 1, 1, 0, 0, 2, -2, -2, -2, last, last, last));
    case_numbers(c, QSIM_FLOAT, SHAPE(4, 3), NUMBERS(10, 20, 30, 1, 2, 3, 100, 200, 300, 7, 8, 9));
    case_node(c, 1);
    case_string(c, "reduction", reduction);
    return c;
}

static void test_scatter_rows(void) {
    case_gives(scatter_rows("none", 2), "float[3,3]", NUMBERS(1, 2, 2, 100, 200, 300, 7, 8, 9));
    case_gives(scatter_rows("add", 0), "float[3,3]", NUMBERS(8, 11, 11, 113, 224, 335, 6, 7, 11));
    case_gives(scatter_rows("max", -1), "float[3,3]", NUMBERS(1, 2, 2, 100, 200, 300, 7, 8, 9));
    case_breaks(scatter_rows("add", 3));
    op_case *c = case_new("", "ScatterElements", 18); /* three axes, the middle one, int32 */
    case_numbers(c, QSIM_UINT8, SHAPE(2, 2, 2), ramp);
    case_input(c, QSIM_INT32, SHAPE(2, 1, 2), (const int32_t[]){1, 1, 0, 0});
    case_numbers(c, QSIM_UINT8, SHAPE(2, 1, 2), NUMBERS(50, 60, 70, 80));
    case_node(c, 1);
    case_attr_int(c, "axis", 1);
    case_gives(c, "uint8[2,2,2]", NUMBERS(0, 1, 50, 60, 70, 80, 6, 7));
}

static op_case *scatter_nd(const char *reduction, const int64_t at[2]) {
    op_case *c = case_new("", "ScatterND", 18);
    case_numbers(c, QSIM_FLOAT, SHAPE(3, 2), ramp);
    case_input(c, QSIM_INT64, SHAPE(2, 1), at);
    case_numbers(c, QSIM_FLOAT, SHAPE(2, 2), NUMBERS(10, 20, 30, NAN));
    case_node(c, 1);
    case_string(c, "reduction", reduction);
    return c;
}

static void test_scatter_nd(void) {
    case_gives(scatter_nd("none", DIMS(2, -3)), "float[3,2]", NUMBERS(30, NAN, 2, 3, 10, 20));
    case_gives(scatter_nd("add", DIMS(1, 1)), "float[3,2]", NUMBERS(0, 1, 42, NAN, 4, 5));
    case_gives(scatter_nd("max", DIMS(1, 1)), "float[3,2]", NUMBERS(0, 1, 30, NAN, 4, 5));
    case_breaks(scatter_nd("none", DIMS(2, 3)));
    op_case *c = case_new("", "ScatterND", 11); /* ONNX's first example, on bytes */
    case_numbers(c, QSIM_UINT8, SHAPE(8), NUMBERS(1, 2, 3, 4, 5, 6, 7, 8));
    case_input(c, QSIM_INT64, SHAPE(4, 1), DIMS(4, 3, 1, 7));
    case_numbers(c, QSIM_UINT8, SHAPE(4), NUMBERS(9, 10, 11, 12));
    case_node(c, 1);
    case_gives(c, "uint8[8]", NUMBERS(1, 11, 3, 10, 9, 6, 7, 12));
    c = case_new("", "ScatterND", 18); /* updates lack an axis */
    case_numbers(c, QSIM_FLOAT, SHAPE(3, 2), ramp);
    case_input(c, QSIM_INT64, SHAPE(2, 1), DIMS(0, 1));
    case_numbers(c, QSIM_FLOAT, SHAPE(2), ramp);
    case_node(c, 1);
    case_refused(c, QSIM_E_SHAPE);
}

/* ---- TopK ---- */

static op_case *topk(int32_t version, int32_t dtype, int64_t axis, int64_t k) {
    op_case *c = case_new("", "TopK", version);
    case_numbers(c, dtype, SHAPE(2, 4), NUMBERS(3, 7, 1, 7, 2, 9, 9, 0));
    if (version >= 10)
        case_ints(c, 1, &k);
    case_node(c, 2);
    case_attr_int(c, "axis", axis);
    if (version < 10)
        case_attr_int(c, "k", k);
    return c;
}

static void topk_gives(op_case *c, const char *shape, const char *where, const double *values,
                       const double *indices) {
    CHECK_INT(case_run(c), 0);
    check_numbers(c, 0, shape, values, 0);
    check_numbers(c, 1, where, indices, 0);
    case_free(c);
}

static void test_topk(void) {
    for (size_t i = 0; i < QS_COUNT(number_types); i++) {
        const char *name = qsim_dtype_name(number_types[i]);
        char shape[2][32];
        snprintf(shape[0], sizeof(shape[0]), "%s[2,3]", name);
        snprintf(shape[1], sizeof(shape[1]), "%s[1,4]", name);
        topk_gives(topk(11, number_types[i], -1, 3), shape[0], "int64[2,3]",
                   NUMBERS(7, 7, 3, 9, 9, 2), NUMBERS(1, 3, 0, 1, 2, 0));
        op_case *c = topk(24, number_types[i], 0, 1);
        case_attr_int(c, "largest", 0);
        topk_gives(c, shape[1], "int64[1,4]", NUMBERS(2, 7, 1, 0), NUMBERS(1, 0, 0, 1));
    }
    for (int32_t version = 1; version <= 10; version += 9)
        topk_gives(topk(version, QSIM_FLOAT, 1, 4), "float[2,4]", "int64[2,4]",
                   NUMBERS(7, 7, 3, 1, 9, 9, 2, 0), NUMBERS(1, 3, 0, 2, 1, 2, 0, 3));
    op_case *c = topk(1, QSIM_FLOAT, 1, 2);
    CHECK_INT(case_infer(c), 0);
    CHECK_INT(qs_op_upgrade_graph(c->g, 13, "m", &c->error), 0);
    CHECK_INT(c->g->nodes[c->node].input_count, 2);
    CHECK_INT(qs_op_infer_graph(c->g, "m", &c->error), 0);
    CHECK_STR(case_shape(c, 0), "float[2,2]");
    case_free(c);

    c = case_new("", "TopK", 11); /* signs, zeros alike, infinities; a NaN is above all */
    case_numbers(c, QSIM_FLOAT, SHAPE(7), NUMBERS(-0.0, -INFINITY, NAN, 0, -2, INFINITY, 1e-40));
    case_ints(c, 1, DIMS(7));
    case_node(c, 2);
    topk_gives(c, "float[7]", "int64[7]",
               NUMBERS(NAN, INFINITY, (double)1e-40f, -0.0, 0, -2, -INFINITY),
               NUMBERS(2, 5, 6, 0, 3, 4, 1));
    c = case_new("", "TopK", 11); /* integers that no double holds */
    case_input(c, QSIM_INT64, SHAPE(3), DIMS(INT64_MAX - 1, INT64_MAX, INT64_MIN));
    case_ints(c, 1, DIMS(3));
    case_node(c, 2);
    CHECK_INT(case_run(c), 0);
    check_numbers(c, 1, "int64[3]", NUMBERS(1, 0, 2), 0);
    case_free(c);
    case_refused(topk(11, QSIM_FLOAT, -1, 5), QSIM_E_VALUE);
    case_refused(topk(11, QSIM_FLOAT, -1, -1), QSIM_E_VALUE);
    case_refused(topk(11, QSIM_FLOAT, 2, 1), QSIM_E_VALUE);
    case_refused(topk(10, QSIM_INT8, 1, 1), QSIM_E_DTYPE);
}

/* Whether a comes before b; NaN is greater than all, and not less than itself. */
static bool comes_first(float a, float b, bool smallest) {
    const bool nan_a = a != a, nan_b = b != b;
    return smallest ? (nan_b && !nan_a) || a < b : (nan_a && !nan_b) || a > b;
}

/* Floats of few values along the middle axis, by repeated choice of the first of the best. */
static void topk_random(uint64_t *seed, size_t count, size_t inner, size_t k) {
    static const float few[] = {0.0f, -0.0f, 1.0f, 2.0f, 3.0f, -INFINITY, INFINITY, NAN};
    const bool smallest = test_random(seed) % 2;
    const size_t values = 4 + test_random(seed) % 5, n = 2 * count * inner;
    float *x = malloc(n * sizeof(*x));
    bool *used = malloc(count);
    for (size_t i = 0; i < n; i++)
        x[i] = test_random(seed) % 8 ? (float)(test_random(seed) % 1000) * (i % 3 ? 1.0f : -1.0f)
                                     : few[test_random(seed) % values];
    op_case *c = case_new("", "TopK", 11);
    case_input(c, QSIM_FLOAT, SHAPE(2, (int64_t)count, (int64_t)inner), x);
    case_ints(c, 1, DIMS((int64_t)k));
    case_node(c, 2);
    case_attr_int(c, "axis", 1);
    case_attr_int(c, "largest", !smallest);
    CHECK_INT(case_run(c), 0);
    size_t wrong = 0;
    for (size_t row = 0; row < 2 * inner; row++) {
        const size_t from = row / inner * count * inner + row % inner;
        memset(used, 0, count);
        for (size_t r = 0; r < k; r++) {
            size_t best = SIZE_MAX;
            for (size_t i = 0; i < count; i++)
                if (!used[i] && (best == SIZE_MAX || comes_first(x[from + i * inner],
                                                                 x[from + best * inner], smallest)))
                    best = i;
            used[best] = true;
            const size_t at = (row / inner * k + r) * inner + row % inner;
            wrong += ((const int64_t *)case_data(c, 1))[at] != (int64_t)best;
            wrong += memcmp((const float *)case_data(c, 0) + at, x + from + best * inner, 4) != 0;
        }
    }
    CHECK_INT(wrong, 0);
    case_free(c);
    free(used);
    free(x);
}

static void test_topk_random(void) {
    uint64_t seed = 13;
    for (int i = 0; i < 200; i++) {
        const size_t count = 1 + test_random(&seed) % 60;
        topk_random(&seed, count, 1 + test_random(&seed) % 3, 1 + test_random(&seed) % count);
    }
    topk_random(&seed, 70000, 1, 3); /* past elements at which a stop is checked */
}

/* ---- OneHot ---- */

static op_case *onehot(int32_t version, int32_t dtype, int64_t axis) {
    const float depth = 3.75f;
    op_case *c = case_new("", "OneHot", version);
    case_numbers(c, dtype, SHAPE(3), NUMBERS(1, 0, 3));
    case_const(c, QSIM_FLOAT, 0, NULL, &depth);
    case_numbers(c, QSIM_INT16, SHAPE(2), NUMBERS(-5, 8));
    case_node(c, 1);
    case_attr_int(c, "axis", axis);
    return c;
}

static void test_onehot(void) {
    for (size_t i = 0; i < QS_COUNT(number_types); i++) {
        case_gives(onehot(11, number_types[i], -1), "int16[3,3]",
                   NUMBERS(-5, 8, -5, 8, -5, -5, -5, -5, -5));
        case_gives(onehot(9, number_types[i], 0), "int16[3,3]",
                   NUMBERS(-5, 8, -5, 8, -5, -5, -5, -5, -5));
    }
    for (int32_t version = 9; version <= 11; version += 2) { /* indices from the end: since 11 */
        op_case *c = case_new("", "OneHot", version);
        case_numbers(c, QSIM_INT32, SHAPE(1, 2), NUMBERS(-1, -4));
        case_ints(c, 1, DIMS(3));
        case_numbers(c, QSIM_FLOAT, SHAPE(2), NUMBERS(0, 1));
        case_node(c, 1);
        case_attr_int(c, "axis", 1);
        case_gives(c, "float[1,3,2]", NUMBERS(0, 0, 0, 0, version < 11 ? 0 : 1, 0));
    }
    op_case *c = case_new("", "OneHot", 11);
    case_numbers(c, QSIM_INT32, SHAPE(2), NUMBERS(0, 0));
    case_ints(c, 1, DIMS(0));
    case_numbers(c, QSIM_FLOAT, SHAPE(2), NUMBERS(0, 1));
    case_node(c, 1);
    case_refused(c, QSIM_E_VALUE);
}

/* ---- Trilu, CumSum, CumProd ---- */

static op_case *trilu(int32_t dtype, int64_t upper, int64_t k) {
    op_case *c = case_new("", "Trilu", 14);
    case_numbers(c, dtype, SHAPE(3, 4), ramp);
    case_input(c, QSIM_INT64, 0, NULL, &k);
    case_node(c, 1);
    case_attr_int(c, "upper", upper);
    return c;
}

static void test_trilu(void) {
    for (size_t i = 0; i < QS_COUNT(number_types); i++) {
        char shape[32];
        snprintf(shape, sizeof(shape), "%s[3,4]", qsim_dtype_name(number_types[i]));
        case_gives(trilu(number_types[i], 0, 1), shape,
                   NUMBERS(0, 1, 0, 0, 4, 5, 6, 0, 8, 9, 10, 11));
        case_gives(trilu(number_types[i], 1, -1), shape,
                   NUMBERS(0, 1, 2, 3, 4, 5, 6, 7, 0, 9, 10, 11));
        case_gives(trilu(number_types[i], 1, 3), shape,
                   NUMBERS(0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0));
    }
    case_gives(trilu(QSIM_FLOAT, 1, INT64_MIN), "float[3,4]", ramp);
    case_gives(trilu(QSIM_FLOAT, 0, INT64_MAX), "float[3,4]", ramp);
    static const double zeros[12];
    case_gives(trilu(QSIM_FLOAT, 1, INT64_MAX), "float[3,4]", zeros);
    case_gives(trilu(QSIM_FLOAT, 0, INT64_MIN), "float[3,4]", zeros);
    op_case *c = case_new("", "Trilu", 14);
    case_numbers(c, QSIM_FLOAT, SHAPE(2, 2, 2), NUMBERS(1, 2, 3, 4, 5, 6, 7, 8));
    case_node(c, 1);
    case_gives(c, "float[2,2,2]", NUMBERS(1, 2, 0, 4, 5, 6, 0, 8));
    c = case_new("", "Trilu", 14);
    case_numbers(c, QSIM_FLOAT, SHAPE(4), ramp);
    case_node(c, 1);
    case_refused(c, QSIM_E_SHAPE);
}

static op_case *cumulative(const char *op, int32_t dtype, int32_t axis, int64_t exclusive,
                           int64_t reverse) {
    op_case *c = case_new("", op, strcmp(op, "CumProd") ? 14 : 26);
    case_numbers(c, dtype, SHAPE(3, 4), ramp);
    case_input(c, QSIM_INT32, 0, NULL, &axis);
    case_node(c, 1);
    case_attr_int(c, "exclusive", exclusive);
    case_attr_int(c, "reverse", reverse);
    return c;
}

static void test_cumulative(void) {
    static const int32_t types[] = {QSIM_FLOAT, QSIM_DOUBLE, QSIM_INT32,
                                    QSIM_INT64, QSIM_UINT32, QSIM_UINT64};
    for (size_t i = 0; i < QS_COUNT(types); i++) {
        const int32_t t = types[i];
        char shape[32];
        snprintf(shape, sizeof(shape), "%s[3,4]", qsim_dtype_name(t));
        case_gives(cumulative("CumSum", t, 0, 0, 0), shape,
                   NUMBERS(0, 1, 2, 3, 4, 6, 8, 10, 12, 15, 18, 21));
        case_gives(cumulative("CumSum", t, -1, 0, 1), shape,
                   NUMBERS(6, 6, 5, 3, 22, 18, 13, 7, 38, 30, 21, 11));
        case_gives(cumulative("CumSum", t, 1, 1, 0), shape,
                   NUMBERS(0, 0, 1, 3, 0, 4, 9, 15, 0, 8, 17, 27));
        case_gives(cumulative("CumSum", t, -2, 1, 1), shape,
                   NUMBERS(12, 14, 16, 18, 8, 9, 10, 11, 0, 0, 0, 0));
        case_gives(cumulative("CumProd", t, 1, 0, 0), shape,
                   NUMBERS(0, 0, 0, 0, 4, 20, 120, 840, 8, 72, 720, 7920));
        case_gives(cumulative("CumProd", t, 0, 1, 1), shape,
                   NUMBERS(32, 45, 60, 77, 8, 9, 10, 11, 1, 1, 1, 1));
    }
    case_breaks(cumulative("CumSum", QSIM_FLOAT, 2, 0, 0));
    case_breaks(cumulative("CumSum", QSIM_FLOAT, INT32_MIN, 0, 0));
    op_case *c = case_new("", "CumSum", 11);
    case_numbers(c, QSIM_FLOAT, SHAPE(2), ramp);
    case_ints(c, 1, DIMS(1));
    case_node(c, 1);
    case_refused(c, QSIM_E_VALUE);
}

/* Rows of every length up to three vectors of 16 numbers, against sums in order. */
static void test_cumulative_rows(void) {
    static float x[2 * 5 * 48], y[2 * 5 * 48];
    const int32_t axis = 1;
    for (int64_t i = 0; i < (int64_t)QS_COUNT(x); i++)
        x[i] = 1.0f / (float)(3 * i % 101 + 1);
    for (int64_t n = 1; n <= 48; n++)
        for (int64_t form = 0; form < 4; form++) {
            const bool exclusive = form % 2, reverse = form / 2;
            for (int64_t i = 0; i < 2 * n; i++) {
                float sum = 0;
                for (int64_t t = 0; t < 5; t++) {
                    const int64_t at = (i / n * 5 + (reverse ? 4 - t : t)) * n + i % n;
                    y[at] = sum;
                    sum = t == 0 ? x[at] : sum + x[at];
                    y[at] = exclusive ? y[at] : sum;
                }
            }
            op_case *c = case_new("", "CumSum", 14);
            case_input(c, QSIM_FLOAT, SHAPE(2, 5, n), x);
            case_input(c, QSIM_INT32, 0, NULL, &axis);
            case_node(c, 1);
            case_attr_int(c, "exclusive", exclusive);
            case_attr_int(c, "reverse", reverse);
            CHECK_INT(case_run(c), 0);
            CHECK(memcmp(case_data(c, 0), y, (size_t)(10 * n) * sizeof(*y)) == 0);
            case_free(c);
        }
}

/* ---- blocks, sequences, frames ---- */

static op_case *depth_to_space(int32_t dtype, const char *mode) {
    op_case *c = case_new("", "DepthToSpace", 13);
    case_numbers(c, dtype, SHAPE(1, 8, 2, 3), ramp);
    case_node(c, 1);
    case_attr_int(c, "blocksize", 2);
    case_string(c, "mode", mode);
    return c;
}

static const double by_depth[48] = {0,  12, 1,  13, 2,  14, 24, 36, 25, 37, 26, 38, 3,  15, 4,  16,
                                    5,  17, 27, 39, 28, 40, 29, 41, 6,  18, 7,  19, 8,  20, 30, 42,
                                    31, 43, 32, 44, 9,  21, 10, 22, 11, 23, 33, 45, 34, 46, 35, 47};
static const double by_column[48] = {
    0,  6,  1,  7,  2,  8,  12, 18, 13, 19, 14, 20, 3,  9,  4,  10, 5,  11, 15, 21, 16, 22, 17, 23,
    24, 30, 25, 31, 26, 32, 36, 42, 37, 43, 38, 44, 27, 33, 28, 34, 29, 35, 39, 45, 40, 46, 41, 47};

static void test_blocks(void) {
    for (size_t i = 0; i < QS_COUNT(number_types); i++) {
        const int32_t t = number_types[i];
        char shape[2][32];
        snprintf(shape[0], sizeof(shape[0]), "%s[1,2,4,6]", qsim_dtype_name(t));
        snprintf(shape[1], sizeof(shape[1]), "%s[1,8,2,3]", qsim_dtype_name(t));
        case_gives(depth_to_space(t, "DCR"), shape[0], by_depth);
        case_gives(depth_to_space(t, "CRD"), shape[0], by_column);
        op_case *c = case_new("", "SpaceToDepth", 1);
        case_numbers(c, t, SHAPE(1, 2, 4, 6), by_depth);
        case_node(c, 1);
        case_attr_int(c, "blocksize", 2);
        case_gives(c, shape[1], ramp);
    }
    case_refused(depth_to_space(QSIM_FLOAT, "RDC"), QSIM_E_VALUE);
    op_case *c = depth_to_space(QSIM_FLOAT, "DCR");
    case_attr_int(c, "blocksize", 3);
    case_refused(c, QSIM_E_SHAPE);
    c = depth_to_space(QSIM_FLOAT, "DCR");
    case_attr_int(c, "blocksize", 0);
    case_refused(c, QSIM_E_VALUE);
}

static op_case *reverse(int64_t batch, const int64_t lengths[4]) {
    op_case *c = case_new("", "ReverseSequence", 10);
    case_numbers(c, QSIM_FLOAT, SHAPE(4, 4), ramp);
    case_input(c, QSIM_INT64, SHAPE(4), lengths);
    case_node(c, 1);
    case_attr_int(c, "batch_axis", batch);
    case_attr_int(c, "time_axis", 1 - batch);
    return c;
}

static void test_reverse(void) {
    case_gives(reverse(0, DIMS(1, 2, 3, 4)), "float[4,4]",
               NUMBERS(0, 1, 2, 3, 5, 4, 6, 7, 10, 9, 8, 11, 15, 14, 13, 12));
    case_gives(reverse(1, DIMS(4, 3, 2, 0)), "float[4,4]",
               NUMBERS(12, 9, 6, 3, 8, 5, 2, 7, 4, 1, 10, 11, 0, 13, 14, 15));
    case_breaks(reverse(0, DIMS(1, 2, 3, 5)));
    case_breaks(reverse(0, DIMS(1, -1, 3, 4)));
    op_case *c = reverse(0, DIMS(1, 2, 3, 4));
    case_attr_int(c, "time_axis", 0);
    case_refused(c, QSIM_E_VALUE);
}

static op_case *center(int32_t count, const int64_t *shape, int64_t axis) {
    op_case *c = case_new("", "CenterCropPad", 18);
    case_numbers(c, QSIM_INT16, SHAPE(3, 4), ramp);
    case_ints(c, count, shape);
    case_node(c, 1);
    if (axis != INT64_MAX)
        CHECK_INT(qs_node_set_ints(c->g, c->node, "axes", &axis, 1), 0);
    return c;
}

static void test_center(void) {
    case_gives(center(2, DIMS(1, 7), INT64_MAX), "int16[1,7]", NUMBERS(0, 4, 5, 6, 7, 0, 0));
    case_gives(center(2, DIMS(4, 1), INT64_MAX), "int16[4,1]", NUMBERS(1, 5, 9, 0));
    case_gives(center(1, DIMS(2), -1), "int16[3,2]", NUMBERS(1, 2, 5, 6, 9, 10));
    case_gives(center(1, DIMS(2), 0), "int16[2,4]", ramp);
    case_refused(center(1, DIMS(2), INT64_MAX), QSIM_E_SHAPE);
    case_refused(center(1, DIMS(-1), 0), QSIM_E_VALUE);
    case_refused(center(1, DIMS(2), 2), QSIM_E_VALUE);
}

int main(void) {
    for (size_t i = 0; i < MOST_NUMBERS; i++)
        ramp[i] = (double)i;
    test_gather_elements();
    test_gather_nd();
    test_scatter_elements();
    test_scatter_rows();
    test_scatter_nd();
    test_topk();
    test_topk_random();
    test_onehot();
    test_trilu();
    test_cumulative();
    test_cumulative_rows();
    test_blocks();
    test_reverse();
    test_center();
    return test_done();
}
