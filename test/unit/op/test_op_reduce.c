/* SPDX-License-Identifier: MIT */
/* Reductions of every kind, type and set of axes against their formulas in plain loops. */
#include "op_numbers.h"

#include <math.h>

static const char *const kinds[] = {
    "ReduceSum",    "ReduceMean",      "ReduceL1",   "ReduceSumSquare", "ReduceL2",
    "ReduceLogSum", "ReduceLogSumExp", "ReduceProd", "ReduceMax",       "ReduceMin"};

static bool is(const char *kind, const char *name) {
    return strcmp(kind + strlen("Reduce"), name) == 0;
}

/* The reduction of n numbers by definition; `whole`: truncated, as integer types store it. */
static double reduced(const char *kind, const double *v, size_t n, bool whole) {
    double sum = 0, l1 = 0, squares = 0, exps = 0, product = 1, max = -INFINITY, min = INFINITY;
    for (size_t i = 0; i < n; i++) {
        sum += v[i];
        l1 += fabs(v[i]);
        squares += v[i] * v[i];
        exps += exp(v[i]);
        product *= v[i];
        max = v[i] > max ? v[i] : max;
        min = v[i] < min ? v[i] : min;
    }
    const double y = is(kind, "Sum")         ? sum
                     : is(kind, "Mean")      ? sum / (double)n
                     : is(kind, "L1")        ? l1
                     : is(kind, "SumSquare") ? squares
                     : is(kind, "L2")        ? sqrt(squares)
                     : is(kind, "LogSum")    ? log(sum)
                     : is(kind, "LogSumExp") ? log(exps)
                     : is(kind, "Prod")      ? product
                     : is(kind, "Max")       ? max
                                             : min;
    return whole ? trunc(y) : y;
}

static bool is_real(int32_t dtype) {
    return dtype == QSIM_FLOAT || dtype == QSIM_DOUBLE;
}

/* Over the axes of `mask` of a tensor (2, 3, 4), which are an attribute before version 18 or 13. */
static void reduce_one(const char *kind, int32_t dtype, int32_t version, uint32_t mask, bool keep) {
    static const int64_t dims[3] = {2, 3, 4};
    const bool some_negative =
        dtype != QSIM_UINT32 && dtype != QSIM_UINT64 && dtype != QSIM_UINT8 && !is(kind, "LogSum");
    const bool input = version >= (is(kind, "Sum") ? 13 : 18);
    double v[24], parts[24][24], expected[24];
    size_t counts[24] = {0}, outputs = 1, n = 0;
    int64_t axes[3];
    int32_t axis_count = 0;
    char shape[64];
    n = (size_t)snprintf(shape, sizeof(shape), "%s[", qsim_dtype_name(dtype));
    for (int32_t i = 0; i < 3; i++) {
        if (mask >> i & 1)
            axes[axis_count++] = i % 2 ? i - 3 : i;
        else
            outputs *= (size_t)dims[i];
        if (keep || !(mask >> i & 1))
            n += (size_t)snprintf(shape + n, sizeof(shape) - n, "%s%d",
                                  shape[n - 1] == '[' ? "" : ",", mask >> i & 1 ? 1 : (int)dims[i]);
    }
    snprintf(shape + n, sizeof(shape) - n, "]");
    for (size_t i = 0; i < 24; i++) {
        v[i] = (double)(i * 7 % 5) + (is(kind, "LogSum") ? 1 : some_negative ? -2 : 0);
        const size_t at[3] = {i / 12, i / 4 % 3, i % 4};
        size_t o = 0;
        for (int32_t k = 0; k < 3; k++)
            if (!(mask >> k & 1))
                o = o * (size_t)dims[k] + at[k];
        parts[o][counts[o]++] = v[i];
    }
    for (size_t o = 0; o < outputs; o++)
        expected[o] = reduced(kind, parts[o], counts[o], !is_real(dtype));
    op_case *c = case_new("", kind, version);
    case_numbers(c, dtype, 3, dims, v);
    if (input)
        case_ints(c, axis_count, axes);
    case_node(c, 1);
    if (!input)
        CHECK_INT(qs_node_set_ints(c->g, c->node, "axes", axes, axis_count), 0);
    case_attr_int(c, "keepdims", keep);
    CHECK_INT(case_run(c), 0);
    CHECK_STR(c->error.message, "");
    check_numbers(c, 0, shape, expected, is_real(dtype) ? 4e-7 : 0);
    case_free(c);
}

static void test_kinds(void) {
    static const int32_t types[] = {QSIM_FLOAT, QSIM_DOUBLE, QSIM_INT32,
                                    QSIM_INT64, QSIM_UINT32, QSIM_UINT64};
    static const int32_t versions[] = {1, 11, 13, 18, 20};
    for (size_t k = 0; k < QS_COUNT(kinds); k++)
        for (uint32_t mask = 1; mask < 8; mask++) {
            for (size_t t = 0; t < QS_COUNT(types); t++)
                reduce_one(kinds[k], types[t], versions[(mask + t) % 5], mask, (mask + t) & 1);
            if (k >= 8) {
                reduce_one(kinds[k], QSIM_INT8, 12, mask, mask & 1);
                reduce_one(kinds[k], QSIM_UINT8, 20, mask, mask & 1);
            }
        }
}

/* Rows, columns and planes long enough for every path of float: 16 lanes, 16 columns, parts. */
static void test_long(void) {
    enum { ROWS = 37, COLUMNS = 133 };
    static float x[3 * ROWS * COLUMNS];
    uint64_t seed = 5;
    for (size_t i = 0; i < QS_COUNT(x); i++)
        x[i] = (float)(test_random(&seed) % 1000) / 1000.0f + 0.5f;
    for (size_t k = 0; k < QS_COUNT(kinds); k++)
        for (int64_t axis = 0; axis < 3; axis++) {
            op_case *c = case_new("", kinds[k], 20);
            case_input(c, QSIM_FLOAT, SHAPE(3, ROWS, COLUMNS), x);
            case_ints(c, axis == 2 ? 2 : 1, axis == 2 ? DIMS(2, 0) : DIMS(axis + 1));
            case_node(c, 1);
            CHECK_INT(case_run(c), 0);
            const size_t outputs = axis == 0 ? 3 * COLUMNS : axis == 1 ? 3 * ROWS : ROWS;
            double worst = 0;
            for (size_t o = 0; o < outputs; o++) {
                static double part[3 * COLUMNS];
                size_t n = 0;
                for (size_t i = 0; i < QS_COUNT(x); i++) {
                    const size_t row = i / COLUMNS, p = row / ROWS;
                    const size_t to = axis == 0   ? p * COLUMNS + i % COLUMNS
                                      : axis == 1 ? row
                                                  : row % ROWS;
                    if (to == o)
                        part[n++] = (double)x[i];
                }
                const double want = reduced(kinds[k], part, n, false);
                const double got = (double)((const float *)case_data(c, 0))[o];
                worst = fmax(worst, fabs(got - want) / (fabs(want) + 1e-30));
            }
            CHECK(worst < 1e-5);
            case_free(c);
        }
}

/* ---- empty sets, no axes, special values ---- */

static op_case *on_empty(const char *kind, int32_t dtype) {
    op_case *c = case_new("", kind, 20);
    case_input(c, dtype, SHAPE(2, 0, 3), "");
    case_ints(c, 1, DIMS(1));
    case_node(c, 1);
    case_attr_int(c, "keepdims", 0);
    return c;
}

static void empty_gives(const char *kind, int32_t dtype, double v) {
    char shape[32];
    snprintf(shape, sizeof(shape), "%s[2,3]", qsim_dtype_name(dtype));
    case_gives(on_empty(kind, dtype), shape, NUMBERS(v, v, v, v, v, v));
}

static void test_empty(void) {
    for (int32_t t = 0; t < 2; t++) {
        const int32_t dtype = t ? QSIM_DOUBLE : QSIM_FLOAT;
        empty_gives("ReduceSum", dtype, 0);
        empty_gives("ReduceL1", dtype, 0);
        empty_gives("ReduceL2", dtype, 0);
        empty_gives("ReduceSumSquare", dtype, 0);
        empty_gives("ReduceProd", dtype, 1);
        empty_gives("ReduceLogSum", dtype, -INFINITY);
        empty_gives("ReduceLogSumExp", dtype, -INFINITY);
        empty_gives("ReduceMax", dtype, -INFINITY);
        empty_gives("ReduceMin", dtype, INFINITY);
    }
    empty_gives("ReduceMax", QSIM_INT32, INT32_MIN);
    empty_gives("ReduceMin", QSIM_INT32, INT32_MAX);
    empty_gives("ReduceMax", QSIM_UINT8, 0);
    empty_gives("ReduceMin", QSIM_UINT8, 255);
    empty_gives("ReduceMax", QSIM_INT8, -128);
    empty_gives("ReduceMin", QSIM_UINT32, 4294967295.0);
    empty_gives("ReduceMean", QSIM_INT64, 0);
    empty_gives("ReduceProd", QSIM_INT64, 1);
}

static op_case *without_axes(const char *kind, int64_t noop) {
    op_case *c = case_new("", kind, 18);
    case_numbers(c, QSIM_FLOAT, SHAPE(3), NUMBERS(4, -2, -3));
    case_node(c, 1);
    case_attr_int(c, "noop_with_empty_axes", noop);
    return c;
}

static void test_without_axes(void) {
    case_gives(without_axes("ReduceProd", 0), "float[1]", NUMBERS(24));
    case_gives(without_axes("ReduceSum", 1), "float[3]", NUMBERS(4, -2, -3));
    case_gives(without_axes("ReduceMax", 1), "float[3]", NUMBERS(4, -2, -3));
    case_gives(without_axes("ReduceL2", 1), "float[3]", NUMBERS(4, 2, 3));
    case_gives(without_axes("ReduceSumSquare", 1), "float[3]", NUMBERS(16, 4, 9));
    case_gives(without_axes("ReduceLogSumExp", 1), "float[3]", NUMBERS(4, -2, -3));
    op_case *c = case_new("", "ReduceL1", 13); /* to the axes' input */
    case_numbers(c, QSIM_FLOAT, SHAPE(1, 3), NUMBERS(4, -2, -3));
    case_node(c, 1);
    CHECK_INT(qs_node_set_ints(c->g, c->node, "axes", DIMS(-1), 1), 0);
    CHECK_INT(case_infer(c), 0);
    CHECK_INT(qs_op_upgrade_graph(c->g, 18, "m", &c->error), 0);
    CHECK_INT(c->g->nodes[c->node].input_count, 2);
    CHECK_INT(qs_op_infer_graph(c->g, "m", &c->error), 0);
    CHECK_STR(case_shape(c, 0), "float[1,1]");
    case_free(c);
}

static void special(const char *kind, const double v[3], double expected) {
    for (int32_t t = 0; t < 2; t++) {
        op_case *c = case_new("", kind, 18);
        case_numbers(c, t ? QSIM_DOUBLE : QSIM_FLOAT, SHAPE(3), v);
        case_node(c, 1);
        CHECK_INT(case_run(c), 0);
        check_numbers(c, 0, t ? "double[1]" : "float[1]", &expected, 1e-6);
        case_free(c);
    }
}

static void test_special(void) {
    special("ReduceLogSumExp", NUMBERS(1000, 1000, -1000), 1000.6931471805599);
    special("ReduceLogSumExp", NUMBERS(-INFINITY, -INFINITY, -INFINITY), -INFINITY);
    special("ReduceLogSumExp", NUMBERS(1, INFINITY, -INFINITY), INFINITY);
    special("ReduceLogSumExp", NUMBERS(1, NAN, 2), NAN);
    special("ReduceMax", NUMBERS(1, NAN, 2), NAN);
    special("ReduceMin", NUMBERS(1, 2, NAN), NAN);
    special("ReduceLogSum", NUMBERS(1, -2, 0), NAN);
    for (int32_t max = 0; max < 2; max++) {
        op_case *c = case_new("", max ? "ReduceMax" : "ReduceMin", 20);
        case_input(c, QSIM_BOOL, SHAPE(2, 2), "\1\1\1\0");
        case_ints(c, 1, DIMS(1));
        case_node(c, 1);
        CHECK_INT(case_run(c), 0);
        CHECK_STR(case_shape(c, 0), "bool[2,1]");
        CHECK(memcmp(case_data(c, 0), max ? "\1\1" : "\1\0", 2) == 0);
        case_free(c);
    }
    op_case *c = case_new("", "ReduceMax", 18);
    case_input(c, QSIM_BOOL, SHAPE(2), "\1\0");
    case_node(c, 1);
    case_refused(c, QSIM_E_DTYPE);
    c = case_new("", "ReduceMax", 11);
    case_numbers(c, QSIM_INT8, SHAPE(1), NUMBERS(1));
    case_node(c, 1);
    case_refused(c, QSIM_E_DTYPE);
}

/* ---- floats, bit by bit ---- */

static float fold(float lanes[16]) {
    for (size_t half = 8; half; half /= 2)
        for (size_t i = 0; i < half; i++)
            lanes[i] += lanes[i + half];
    return lanes[0];
}

/*
 * The reduction in its defined order: sums over 16 lanes, of longer sums those of 16384 terms in
 * order, products and extremes one by one.
 */
static float defined(const char *kind, const float *v, size_t n) {
    enum { BLOCK = 16384 };
    float lanes[16] = {0}, product = 1, best = is(kind, "Max") ? -INFINITY : INFINITY, total = 0;
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && i % BLOCK == 0) {
            total += fold(lanes);
            memset(lanes, 0, sizeof(lanes));
        }
        const bool square = is(kind, "L2") || is(kind, "SumSquare");
        lanes[i % 16] += square ? v[i] * v[i] : is(kind, "L1") ? fabsf(v[i]) : v[i];
        product *= v[i];
        if (best == best && !(is(kind, "Max") ? v[i] <= best : v[i] >= best))
            best = v[i];
    }
    total = n > BLOCK ? total + fold(lanes) : fold(lanes);
    return is(kind, "Mean")                     ? total / (float)n
           : is(kind, "L2")                     ? sqrtf(total)
           : is(kind, "Prod")                   ? product
           : is(kind, "Max") || is(kind, "Min") ? best
                                                : total;
}

/* Numbers, of which some are zeros of either sign, and with `nans` NaNs. */
static float number(uint64_t *seed, bool nans) {
    static const float few[] = {0.0f, -0.0f, 1.0f, -1.0f};
    const uint64_t r = test_random(seed) >> 8;
    if (nans && r % 61 == 0)
        return NAN;
    return r % 3 == 0 ? few[r / 3 % 4] : ((float)(r % 4001) - 2000.0f) / 999.0f;
}

static void same_bits(const char *kind, const int64_t dims[4], uint32_t mask, uint64_t *seed) {
    const size_t n = (size_t)(dims[0] * dims[1] * dims[2] * dims[3]);
    float *x = malloc(n * sizeof(*x)), *part = malloc(n * sizeof(*part));
    size_t *to = malloc(n * sizeof(*to)); /* by element: the output that it belongs to */
    const bool nans = test_random(seed) % 2;
    const float only_zeros = test_random(seed) % 4 ? 1.0f : 0.0f;
    int64_t axes[4];
    int32_t count = 0;
    for (int32_t i = 0; i < 4; i++)
        if (mask >> i & 1)
            axes[count++] = i;
    for (size_t i = 0; i < n; i++)
        x[i] = number(seed, nans) * only_zeros;
    op_case *c = case_new("", kind, 18);
    case_input(c, QSIM_FLOAT, 4, dims, x);
    case_ints(c, count, axes);
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    size_t kept = 1, wrong = 0;
    for (int32_t i = 0; i < 4; i++)
        kept *= mask >> i & 1 ? 1 : (size_t)dims[i];
    for (size_t i = 0; i < n; i++) {
        size_t rest = i, step = 1;
        to[i] = 0;
        for (int32_t k = 4; k-- > 0; rest /= (size_t)dims[k])
            if (!(mask >> k & 1)) {
                to[i] += rest % (size_t)dims[k] * step;
                step *= (size_t)dims[k];
            }
    }
    for (size_t o = 0; o < kept; o++) {
        size_t terms = 0;
        for (size_t i = 0; i < n; i++)
            if (to[i] == o)
                part[terms++] = x[i];
        const float want = defined(kind, part, terms), got = ((const float *)case_data(c, 0))[o];
        wrong += want == want ? memcmp(&want, &got, sizeof(got)) != 0 : got == got;
    }
    CHECK_INT(wrong, 0);
    free(x);
    free(part);
    free(to);
    case_free(c);
}

static void test_bits(void) {
    static const char *const exact[] = {"ReduceSum", "ReduceMean", "ReduceL1",  "ReduceSumSquare",
                                        "ReduceL2",  "ReduceProd", "ReduceMax", "ReduceMin"};
    static const int64_t sizes[] = {1, 2, 3, 5, 17};
    uint64_t seed = 11;
    for (size_t k = 0; k < QS_COUNT(exact); k++) {
        for (uint32_t mask = 1; mask < 16; mask++) {
            int64_t dims[4];
            for (int32_t i = 0; i < 4; i++)
                dims[i] = sizes[test_random(&seed) % QS_COUNT(sizes)];
            same_bits(exact[k], dims, mask, &seed);
        }
        same_bits(exact[k], DIMS(1, 1, 2, 2500), 8, &seed); /* several parts of a row */
        same_bits(exact[k], DIMS(3, 2, 2, 411), 5, &seed);  /* and of several rows */
        same_bits(exact[k], DIMS(2, 37, 1, 150), 2, &seed); /* several blocks of columns */
        same_bits(exact[k], DIMS(5, 2, 7, 70), 5, &seed);
        same_bits(exact[k], DIMS(1, 1, 2, 40000), 8, &seed); /* several blocks of a sum */
        same_bits(exact[k], DIMS(2, 211, 157, 3), 6, &seed);
        same_bits(exact[k], DIMS(3, 8192, 2, 2), 7,
                  &seed); /* also of elements that are collected */
        same_bits(exact[k], DIMS(1, 32768, 1, 67), 2, &seed);
        same_bits(exact[k], DIMS(17, 1500, 1, 2), 11, &seed);
        for (int64_t last = 2; last < 40; last += 6) /* few columns, of rows end to end */
            same_bits(exact[k], DIMS(3, 2, 90, last), 5, &seed);
        same_bits(exact[k], DIMS(2, 37, 1, 600), 2, &seed);
    }
}

int main(void) {
    test_bits();
    test_kinds();
    test_long();
    test_empty();
    test_without_axes();
    test_special();
    return test_done();
}
