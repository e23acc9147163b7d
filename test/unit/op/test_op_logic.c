/* SPDX-License-Identifier: MIT */
/* Comparisons, Where, Expand, Pow, Max and the like, fills, LayerNormalization. */
#include "op_harness.h"

#include <math.h>

static const float f6[] = {1, -2, 3, NAN, 0, -0.0f};
static const float g6[] = {1, 2, -3, 1, -0.0f, 0.5f};

static void bytes_case(const char *op, int64_t version, int32_t dtype, const void *a, const void *b,
                       const uint8_t *expected) {
    op_case *c = case_new("", op, version);
    case_input(c, dtype, SHAPE(2, 3), a);
    case_input(c, dtype, SHAPE(2, 3), b);
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    CHECK_STR(case_shape(c, 0), "bool[2,3]");
    CHECK(memcmp(case_data(c, 0), expected, 6) == 0);
    case_free(c);
}

static void test_compare(void) {
    static const uint8_t t[] = {0, 2, 0, 1, 1, 0}, u[] = {0, 1, 1, 0, 1, 0};
    bytes_case("Greater", 13, QSIM_FLOAT, f6, g6, (const uint8_t[]){0, 0, 1, 0, 0, 0});
    bytes_case("Less", 13, QSIM_FLOAT, f6, g6, (const uint8_t[]){0, 1, 0, 0, 0, 1});
    bytes_case("GreaterOrEqual", 16, QSIM_FLOAT, f6, g6, (const uint8_t[]){1, 0, 1, 0, 1, 0});
    bytes_case("LessOrEqual", 16, QSIM_FLOAT, f6, g6, (const uint8_t[]){1, 1, 0, 0, 1, 1});
    bytes_case("Equal", 13, QSIM_FLOAT, f6, g6, (const uint8_t[]){1, 0, 0, 0, 1, 0});
    bytes_case("Equal", 13, QSIM_BOOL, t, u, (const uint8_t[]){1, 1, 0, 0, 1, 1});
    bytes_case("And", 7, QSIM_BOOL, t, u, (const uint8_t[]){0, 1, 0, 0, 1, 0});
    bytes_case("Or", 7, QSIM_BOOL, t, u, (const uint8_t[]){0, 1, 1, 1, 1, 0});
    bytes_case("Xor", 7, QSIM_BOOL, t, u, (const uint8_t[]){0, 0, 1, 1, 0, 0});
    op_case *c = case_new("", "Less", 13);
    case_input(c, QSIM_FLOAT, SHAPE(2), f6);
    case_input(c, QSIM_INT32, SHAPE(2), f6);
    case_node(c, 1);
    CHECK_INT(case_infer(c), QSIM_E_DTYPE);
    case_free(c);
}

static bool holds(const char *op, float a, float b) {
    const bool same = strstr(op, "Equal") && a == b;
    return same || (op[0] == 'G' && a > b) || (op[0] == 'L' && a < b);
}

/* Rows of n elements, of which either operand may have one a row; few different values. */
static void compare_long(const char *op, int64_t n, int64_t first, int64_t second) {
    static const float values[] = {-INFINITY, -1, -0.0f, 0, 1e-40f, 1, NAN};
    static float a[3 * 700], b[3 * 700];
    uint64_t seed = (uint64_t)n;
    for (size_t i = 0; i < QS_COUNT(a); i++) {
        a[i] = values[test_random(&seed) % QS_COUNT(values)];
        b[i] = values[test_random(&seed) % QS_COUNT(values)];
    }
    op_case *c = case_new("", op, 16);
    case_input(c, QSIM_FLOAT, SHAPE(3, first ? n : 1), a);
    case_input(c, QSIM_FLOAT, SHAPE(3, second ? n : 1), b);
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    const uint8_t *y = case_data(c, 0);
    long wrong = 0;
    for (int64_t i = 0; i < 3 * (first || second ? n : 1); i++)
        wrong += y[i] != holds(op, a[first ? i : i / n], b[second ? i : i / n]);
    CHECK_INT(wrong, 0);
    case_free(c);
}

/* Rows of n truths, any byte but 0 being one, of which either operand may have one a row. */
static void truths_long(int op, int64_t n, int64_t first, int64_t second) {
    static const char *const names[] = {"And", "Or", "Xor"};
    static const uint8_t values[] = {0, 1, 2, 0x80, 0xff, 0};
    static uint8_t a[3 * 70], b[3 * 70];
    uint64_t seed = (uint64_t)(n * 4 + first * 2 + second);
    long wrong = 0;
    for (size_t i = 0; i < sizeof(a); i++) {
        a[i] = values[test_random(&seed) % sizeof(values)];
        b[i] = values[test_random(&seed) % sizeof(values)];
    }
    op_case *c = case_new("", names[op], 7);
    case_input(c, QSIM_BOOL, SHAPE(3, first ? n : 1), a);
    case_input(c, QSIM_BOOL, SHAPE(3, second ? n : 1), b);
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    const uint8_t *y = case_data(c, 0);
    for (int64_t i = 0; i < 3 * (first || second ? n : 1); i++) {
        const bool s = a[first ? i : i / n] != 0, t = b[second ? i : i / n] != 0;
        wrong += y[i] != (op == 0 ? s && t : op == 1 ? s || t : s != t);
    }
    CHECK_INT(wrong, 0);
    case_free(c);
}

static void test_long_truths(void) {
    for (int op = 0; op < 3; op++)
        for (int64_t n = 1; n <= 70; n += 1 + n / 8)
            for (int which = n == 1 ? 3 : 1; which < 4; which++)
                truths_long(op, n, which & 1, which >> 1);
}

static void test_long_compare(void) {
    static const char *const ops[] = {"Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Equal"};
    static const int64_t lengths[] = {1, 7, 16, 63, 256, 257, 700};
    for (size_t i = 0; i < QS_COUNT(ops) * QS_COUNT(lengths); i++)
        for (int k = 1; k < 4; k++)
            compare_long(ops[i % QS_COUNT(ops)], lengths[i / QS_COUNT(ops)], k & 1, k >> 1);
}

/* Every combination of broadcast axes, against an odometer. */
static void where_one(const int64_t *dc, const int64_t *dx, const int64_t *dy) {
    static const uint8_t condition[] = {1, 0, 0, 1, 1, 0};
    static const int64_t x[] = {10, 11, 12, 13, 14, 15}, y[] = {20, 21, 22, 23, 24, 25};
    op_case *c = case_new("", "Where", 16);
    case_input(c, QSIM_BOOL, 2, dc, condition);
    case_input(c, QSIM_INT64, 2, dx, x);
    case_input(c, QSIM_INT64, 2, dy, y);
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    const int64_t *z = case_data(c, 0), *d[3] = {dc, dx, dy};
    int64_t rows = case_out(c, 0)->dims[0].size, columns = case_out(c, 0)->dims[1].size, at[3];
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < columns; k++) {
            for (int i = 0; i < 3; i++)
                at[i] = (d[i][0] == 1 ? 0 : r) * d[i][1] + (d[i][1] == 1 ? 0 : k);
            CHECK_INT(z[r * columns + k], condition[at[0]] ? x[at[1]] : y[at[2]]);
        }
    case_free(c);
}

static void test_where(void) {
    static const int64_t forms[4][2] = {{2, 3}, {1, 3}, {2, 1}, {1, 1}};
    for (int i = 0; i < 64; i++)
        where_one(forms[i % 4], forms[i / 4 % 4], forms[i / 16]);
}

/* Operands of random sizes and types, each broadcast along some axes: every element by its index.
 */
static void where_random(uint64_t *seed) {
    static const int32_t types[] = {QSIM_UINT8, QSIM_INT16, QSIM_FLOAT, QSIM_INT64};
    static const int64_t sizes[] = {1, 2, 3, 5, 40, 300};
    const int32_t dtype = types[test_random(seed) % 4], rank = (int32_t)(test_random(seed) % 4);
    const size_t bytes = (size_t)qsim_dtype_bits(dtype) / 8;
    int64_t dims[3][4], out[4], elements = 1;
    uint8_t *data[3];
    size_t wrong = 0;
    op_case *c = case_new("", "Where", 16);
    for (int32_t i = 0; i < rank; i++) {
        out[i] = sizes[test_random(seed) % (i + 1 == rank ? 6 : 4)];
        elements *= out[i];
    }
    for (int s = 0; s < 3; s++) {
        const size_t all = test_random(seed) % 3; /* 0: of the output's size */
        size_t n = s ? bytes : 1;
        for (int32_t i = 0; i < rank; i++) {
            dims[s][i] = all && test_random(seed) % 2 ? 1 : out[i];
            n *= (size_t)dims[s][i];
        }
        data[s] = malloc(n);
        for (size_t i = 0; i < n; i++)
            data[s][i] = (uint8_t)(s ? test_random(seed) : test_random(seed) % 2);
        case_input(c, s ? dtype : QSIM_BOOL, rank, dims[s], data[s]);
    }
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    const qs_value *v = case_out(c, 0);
    elements = 1;
    for (int32_t i = 0; i < v->rank; i++)
        elements *= out[i] = v->dims[i].size;
    for (int64_t k = 0; k < elements; k++) {
        int64_t at[3] = {0}, step[3] = {1, 1, 1}, rest = k;
        for (int32_t i = rank - 1; i >= 0; rest /= out[i--])
            for (int s = 0; s < 3; s++) {
                at[s] += rest % out[i] % dims[s][i] * step[s];
                step[s] *= dims[s][i];
            }
        const int from = data[0][at[0]] ? 1 : 2;
        wrong += memcmp((const uint8_t *)case_data(c, 0) + (size_t)k * bytes,
                        data[from] + (size_t)at[from] * bytes, bytes) != 0;
    }
    CHECK_INT(wrong, 0);
    case_free(c);
    for (int s = 0; s < 3; s++)
        free(data[s]);
}

static void test_expand(void) {
    static const uint8_t x[] = {7, 8, 9};
    op_case *c = case_new("", "Expand", 13);
    case_input(c, QSIM_UINT8, SHAPE(3, 1), x);
    case_ints(c, 3, (const int64_t[]){2, 1, 4});
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    CHECK_STR(case_shape(c, 0), "uint8[2,3,4]");
    for (size_t i = 0; i < 24; i++)
        CHECK_INT(((const uint8_t *)case_data(c, 0))[i], x[i / 4 % 3]);
    case_free(c);
    c = case_new("", "Expand", 13);
    case_input(c, QSIM_UINT8, SHAPE(3, 1), x);
    case_ints(c, 2, (const int64_t[]){2, 4});
    case_node(c, 1);
    CHECK_INT(case_infer(c), QSIM_E_SHAPE);
    case_free(c);
}

/* Expand or Tile of random sizes and types: each element of the result by its index. */
static void repeat_random(uint64_t *seed) {
    static const int32_t types[] = {QSIM_UINT8, QSIM_INT16, QSIM_FLOAT, QSIM_INT64};
    const int32_t dtype = types[test_random(seed) % 4], rank = (int32_t)(test_random(seed) % 5);
    const bool expand = test_random(seed) % 2;
    const int32_t lead = expand ? (int32_t)(test_random(seed) % 3) : 0, all = rank + lead;
    const int32_t large = rank < 4 ? (int32_t)(test_random(seed) % 8) : all; /* the axis */
    int64_t dims[6], given[6], out[6];
    size_t bytes = (size_t)qsim_dtype_bits(dtype) / 8, elements = 1, results = 1, wrong = 0;
    for (int32_t i = 0; i < all; i++) {
        const int64_t size = 1 +
                             (int64_t)(test_random(seed) % 5) * (int64_t)(test_random(seed) % 2) +
                             (i == large ? (int64_t)(test_random(seed) % 900) : 0);
        const int64_t times =
            1 + (int64_t)(test_random(seed) % 4) * (int64_t)(test_random(seed) % 2);
        if (i >= lead)
            dims[i - lead] = size;
        out[i] = i < lead || (expand && size == 1) ? times : expand ? size : size * times;
        given[i] = !expand                                                ? times
                   : i >= lead && out[i] == size && test_random(seed) % 2 ? 1
                                                                          : out[i];
        elements *= i < lead ? 1 : (size_t)size;
        results *= (size_t)out[i];
    }
    uint8_t *x = malloc(elements * bytes + 1);
    for (size_t i = 0; i < elements * bytes; i++)
        x[i] = (uint8_t)test_random(seed);
    op_case *c = case_new("", expand ? "Expand" : "Tile", 13);
    case_input(c, dtype, rank, dims, x);
    case_ints(c, all, given);
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    for (size_t i = 0; i < results; i++) {
        size_t rest = i, from = 0, step = 1;
        for (int32_t k = all; k-- > lead; rest /= (size_t)out[k]) {
            from += rest % (size_t)out[k] % (size_t)dims[k - lead] * step;
            step *= (size_t)dims[k - lead];
        }
        const uint8_t *y = case_data(c, 0);
        wrong += memcmp(y + i * bytes, x + from * bytes, bytes) != 0;
    }
    CHECK_INT(wrong, 0);
    case_free(c);
    free(x);
}

/* Element i of a list of `type` becomes v. */
static void store(void *list, int i, int32_t type, double v) {
    switch (type) {
    case QSIM_FLOAT: ((float *)list)[i] = (float)v; break;
    case QSIM_DOUBLE: ((double *)list)[i] = v; break;
    case QSIM_INT32: ((int32_t *)list)[i] = (int32_t)v; break;
    case QSIM_INT64: ((int64_t *)list)[i] = (int64_t)v; break;
    case QSIM_INT16:
    case QSIM_UINT16: ((int16_t *)list)[i] = (int16_t)v; break;
    default: ((int8_t *)list)[i] = (int8_t)v;
    }
}

static void test_pow(void) {
    static const float x[] = {2, -2, 0, 1.5f, 10, -3}, y[] = {0.5f, 3, -1, 2.5f, -3, 2};
    op_case *c = case_new("", "Pow", 15);
    case_input(c, QSIM_FLOAT, SHAPE(6), x);
    case_input(c, QSIM_FLOAT, SHAPE(6), y);
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    for (size_t i = 0; i < 6; i++) {
        float want = (float)pow((double)x[i], (double)y[i]);
        CHECK(((const float *)case_data(c, 0))[i] == want);
    }
    case_free(c);
    static const int64_t a[] = {3, -1, 2, -1, 5}, b[] = {4, -3, -1, -2, 0},
                         want[] = {81, -1, 0, 1, 1};
    c = case_new("", "Pow", 15);
    case_input(c, QSIM_INT64, SHAPE(5), a);
    case_input(c, QSIM_INT64, SHAPE(5), b);
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    CHECK(memcmp(case_data(c, 0), want, sizeof(want)) == 0);
    case_free(c);
    static const uint64_t powers[] = {3, 5, 0, UINT64_MAX, 1};
    static const int64_t raised[] = {27, -1, 1, -1, 5};
    static const float roots[] = {27, -1, 1, 0, 5};
    for (int real = 0; real < 2; real++) {
        static const float bases[] = {3, -1, 2, -1, 5};
        const int64_t odd[] = {3, -1, 2, -1, 5};
        c = case_new("", "Pow", 15);
        case_input(c, real ? QSIM_FLOAT : QSIM_INT64, SHAPE(5), real ? (const void *)bases : odd);
        case_input(c, QSIM_UINT64, SHAPE(5), powers);
        case_node(c, 1);
        CHECK_INT(case_run(c), 0);
        for (int i = 0; i < 5; i++)
            if (!real)
                CHECK_INT(((const int64_t *)case_data(c, 0))[i], raised[i]);
            else if (i != 3) /* 2^64 - 1 is even as a double */
                CHECK(((const float *)case_data(c, 0))[i] == roots[i]);
        case_free(c);
    }
    static const uint32_t few[] = {3, 1, 0, 2, 1};
    c = case_new("", "Pow", 15);
    case_input(c, QSIM_INT64, SHAPE(5), a);
    case_input(c, QSIM_UINT32, SHAPE(5), few);
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    CHECK_INT(((const int64_t *)case_data(c, 0))[0], 27);
    CHECK_INT(((const int64_t *)case_data(c, 0))[4], 5);
    case_free(c);
}

/* 2, -2 and -1 to powers of every type; one below 0 for floats only. */
static void test_powers(void) {
    static const int32_t types[] = {QSIM_FLOAT, QSIM_DOUBLE, QSIM_INT32, QSIM_INT64};
    static const int32_t powers[] = {QSIM_FLOAT, QSIM_DOUBLE, QSIM_INT8,  QSIM_INT16,
                                     QSIM_INT32, QSIM_INT64,  QSIM_UINT8, QSIM_UINT16};
    for (size_t k = 0; k < 4 * QS_COUNT(powers); k++) {
        const int32_t t = types[k / QS_COUNT(powers)], u = powers[k % QS_COUNT(powers)];
        const double x[] = {2, -2, -1}, y[] = {k < 6 ? -2 : 3, 2, 5};
        uint64_t a[3], b[3];
        for (int i = 0; i < 3; i++) {
            store(a, i, t, x[i]);
            store(b, i, u, y[i]);
        }
        op_case *c = case_new("", "Pow", 15);
        case_input(c, t, SHAPE(3), a);
        case_input(c, u, SHAPE(3), b);
        case_node(c, 1);
        CHECK_INT(case_run(c), 0);
        uint64_t want[3];
        for (int i = 0; i < 3; i++)
            store(want, i, t, pow(x[i], y[i]));
        CHECK(memcmp(case_data(c, 0), want, c->bytes[c->out[0]]) == 0);
        case_free(c);
    }
}

static void extreme_one(const char *op, const float *expected) {
    static const float b[] = {1.5f}, d[] = {-1, 5, 2};
    op_case *c = case_new("", op, 13);
    case_input(c, QSIM_FLOAT, SHAPE(2, 3), f6);
    case_input(c, QSIM_FLOAT, SHAPE(1), b);
    case_input(c, QSIM_FLOAT, SHAPE(1, 3), d);
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    CHECK_STR(case_shape(c, 0), "float[2,3]");
    for (size_t i = 0; i < 6; i++) {
        float v = ((const float *)case_data(c, 0))[i];
        CHECK(v == expected[i] || (isnan(v) && isnan(expected[i])));
    }
    case_free(c);
}

static void test_extremes(void) {
    extreme_one("Max", (const float[]){1.5f, 5, 3, NAN, 5, 2});
    extreme_one("Min", (const float[]){-1, -2, 1.5f, NAN, 0, 0});
    extreme_one("Sum", (const float[]){1.5f, 4.5f, 6.5f, NAN, 6.5f, 3.5f});
    extreme_one("Mean", (const float[]){0.5f, 1.5f, 6.5f / 3, NAN, 6.5f / 3, 3.5f / 3});
}

static float folded(const char *op, float a, float b) {
    const bool first = a != a || (op[1] == 'a' ? a > b : a < b);
    return op[0] == 'S' ? a + b : first ? a : b;
}

/* More elements than one pass takes: full inputs, one element as the first, or one a row. */
static void extreme_long(const char *op, int64_t first, int64_t second) {
    enum { ROWS = 3, COLUMNS = 1700, COUNT = ROWS * COLUMNS };
    static float x[3][COUNT];
    uint64_t seed = 5;
    for (size_t i = 0; i < 3 * (size_t)COUNT; i++)
        x[i / COUNT][i % COUNT] = (float)(int32_t)(test_random(&seed) % 2001) / 64.0f - 15.0f;
    for (size_t i = 31; i < 3 * (size_t)COUNT; i += 101)
        x[i / COUNT][i % COUNT] = NAN;
    op_case *c = case_new("", op, 13);
    case_input(c, QSIM_FLOAT, SHAPE(first, first > 1 ? COLUMNS : 1), x[0]);
    case_input(c, QSIM_FLOAT, SHAPE(ROWS, COLUMNS), x[1]);
    case_input(c, QSIM_FLOAT, SHAPE(ROWS, second), x[2]);
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    CHECK_STR(case_shape(c, 0), "float[3,1700]");
    long wrong = 0;
    for (size_t i = 0; i < COUNT; i++) {
        const float a = x[0][first > 1 ? i : 0], b = x[2][second > 1 ? i : i / COLUMNS];
        const float want = folded(op, folded(op, a, x[1][i]), b);
        const float v = ((const float *)case_data(c, 0))[i];
        wrong += !(v == want || (v != v && want != want));
    }
    CHECK_INT(wrong, 0);
    case_free(c);
}

static void test_long_extremes(void) {
    static const char *const ops[] = {"Max", "Min", "Sum"};
    for (size_t i = 0; i < QS_COUNT(ops); i++) {
        extreme_long(ops[i], 3, 1700);
        extreme_long(ops[i], 1, 1700);
        extreme_long(ops[i], 3, 1);
    }
}

static void test_range(void) {
    static const int32_t from = 10, to = 4, by = -3;
    op_case *c = case_new("", "Range", 11);
    case_const(c, QSIM_INT32, 0, NULL, &from);
    case_const(c, QSIM_INT32, 0, NULL, &to);
    case_const(c, QSIM_INT32, 0, NULL, &by);
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    CHECK_STR(case_shape(c, 0), "int32[2]");
    CHECK_INT(((const int32_t *)case_data(c, 0))[1], 7);
    case_free(c);
    static const float start = 0, limit = 1, nothing = 0, tiny = 1e-30f;
    const float *steps[] = {&nothing, &tiny};
    for (int i = 0; i < 2; i++) {
        c = case_new("", "Range", 11);
        case_const(c, QSIM_FLOAT, 0, NULL, &start);
        case_const(c, QSIM_FLOAT, 0, NULL, &limit);
        case_const(c, QSIM_FLOAT, 0, NULL, steps[i]);
        case_node(c, 1);
        CHECK_INT(case_infer(c), i ? QSIM_E_LIMIT : QSIM_E_VALUE);
        case_free(c);
    }
}

static void test_fill(void) {
    op_case *c = case_new("", "ConstantOfShape", 9);
    case_ints(c, 2, (const int64_t[]){2, 2});
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    CHECK_STR(case_shape(c, 0), "float[2,2]");
    CHECK(((const float *)case_data(c, 0))[3] == 0);
    case_free(c);
    c = case_new("", "ConstantOfShape", 9);
    case_ints(c, 1, (const int64_t[]){-1});
    case_node(c, 1);
    CHECK_INT(case_infer(c), QSIM_E_VALUE);
    case_free(c);
}

/* A value of this type; its data is read if type and element count are valid. */
static int fill_with(int32_t dtype, size_t elements, size_t bytes, op_case **out) {
    static const uint64_t data[4] = {0x4008000000000007, 0, 0, 0};
    qs_const value = {.dtype = dtype, .data = data, .elements = elements, .bytes = bytes};
    qs_attr a = {.name = "value", .type = QSIM_ATTR_TENSOR, .u.tensor = &value};
    op_case *c = *out = case_new("", "ConstantOfShape", 9);
    case_ints(c, 1, (const int64_t[]){3});
    case_node(c, 1);
    CHECK_INT(qs_node_set_attr(c->g, c->node, &a), 0);
    return case_run(c);
}

static void test_fill_value(void) {
    static const struct {
        int32_t dtype, code;
        size_t elements, bytes;
        const char *shape;
    } list[] = {{QSIM_DOUBLE, 0, 1, 8, "double[3]"},
                {QSIM_INT64, 0, 1, 8, "int64[3]"},
                {QSIM_INT16, 0, 1, 2, "int16[3]"},
                {QSIM_UINT8, 0, 1, 1, "uint8[3]"},
                {QSIM_INT64, QSIM_E_SHAPE, 2, 16, ""},
                {QSIM_UINT8, QSIM_E_SHAPE, 0, 0, ""},
                {QSIM_COMPLEX128, QSIM_E_UNSUPPORTED, 1, 16, ""},
                {QSIM_STRING, QSIM_E_UNSUPPORTED, 1, 1, ""}};
    for (size_t i = 0; i < QS_COUNT(list); i++) {
        op_case *c = NULL;
        CHECK_INT(fill_with(list[i].dtype, list[i].elements, list[i].bytes, &c), list[i].code);
        if (!list[i].code) {
            static const uint64_t want = 0x4008000000000007;
            CHECK_STR(case_shape(c, 0), list[i].shape);
            for (size_t k = 0; k < 3; k++)
                CHECK(memcmp((const char *)case_data(c, 0) + k * list[i].bytes, &want,
                             list[i].bytes) == 0);
        }
        case_free(c);
    }
}

/* Any axis and length, against sums in double. */
static void layernorm_one(int opset, size_t rows, size_t n, bool bias) {
    float *x = malloc(rows * n * 4), *scale = malloc(n * 4);
    for (size_t i = 0; i < rows * n; i++)
        x[i] = (float)((i * 7919 + 13) % 1009) / 100 - 4;
    for (size_t i = 0; i < n; i++)
        scale[i] = (float)(i % 5) - 1.5f;
    op_case *c = case_new("", "LayerNormalization", opset);
    case_input(c, QSIM_FLOAT, SHAPE((int64_t)rows, (int64_t)n), x);
    case_input(c, QSIM_FLOAT, SHAPE((int64_t)n), scale);
    if (bias)
        case_input(c, QSIM_FLOAT, SHAPE((int64_t)n), scale);
    case_node(c, 3);
    CHECK_INT(case_run(c), 0);
    for (size_t r = 0; r < rows; r++) {
        double mean = 0, variance = 0;
        for (size_t i = 0; i < n; i++)
            mean += (double)x[r * n + i] / (double)n;
        for (size_t i = 0; i < n; i++)
            variance += pow((double)x[r * n + i] - mean, 2) / (double)n;
        double inverse = 1 / sqrt(variance + 1e-5);
        CHECK_NEAR(((const float *)case_data(c, 1))[r], mean, 1e-5);
        CHECK_NEAR(((const float *)case_data(c, 2))[r] / inverse, 1, 1e-5);
        for (size_t i = 0; i < n; i++)
            CHECK_NEAR(((const float *)case_data(c, 0))[r * n + i],
                       ((double)x[r * n + i] - mean) * inverse * (double)scale[i] +
                           (bias ? (double)scale[i] : 0),
                       1e-4);
    }
    case_free(c);
    free(x);
    free(scale);
}

static void test_layernorm(void) {
    layernorm_one(17, 3, 5, false);
    layernorm_one(17, 2, 16, true);
    layernorm_one(17, 4, 768, true);
    layernorm_one(11, 3, 33, true); /* as ONNX Runtime's optimizer writes it */
    op_case *c = case_new("", "LayerNormalization", 17);
    case_input(c, QSIM_FLOAT, SHAPE(2, 3), f6);
    case_input(c, QSIM_FLOAT, SHAPE(2), f6);
    case_node(c, 1);
    CHECK_INT(case_infer(c), QSIM_E_SHAPE);
    case_free(c);
}

/* Inputs that have to be a single value: without elements or with two they are refused. */
static void single_one(const char *op, const int32_t *types, int32_t count, int32_t at,
                       int64_t size) {
    static const int64_t boxes[] = {1, 2, 4}, scores[] = {1, 1, 2};
    const bool boxed = strcmp(op, "NonMaxSuppression") == 0;
    op_case *c = case_new("", op, 17);
    for (int32_t i = 0; i < count; i++) {
        if (boxed && i < 2)
            case_input(c, types[i], 3, i ? scores : boxes, NULL);
        else
            case_input(c, types[i], i >= at, &size, NULL);
    }
    case_node(c, 1);
    CHECK_INT(case_infer(c), size == 1 ? QSIM_OK : QSIM_E_SHAPE);
    case_free(c);
}

static void test_single(void) {
    static const int32_t suppression[] = {QSIM_FLOAT, QSIM_FLOAT, QSIM_INT64, QSIM_FLOAT,
                                          QSIM_FLOAT};
    static const int32_t mel[] = {QSIM_INT64, QSIM_INT64, QSIM_INT64, QSIM_FLOAT, QSIM_FLOAT};
    static const int32_t clip[] = {QSIM_FLOAT, QSIM_FLOAT, QSIM_FLOAT};
    for (int64_t size = 0; size < 3; size++) {
        for (int32_t at = 2; at < 5; at++) {
            single_one("NonMaxSuppression", suppression, 5, at, size);
            single_one("MelWeightMatrix", mel, 5, at, size);
        }
        single_one("Clip", clip, 3, 1, size);
        single_one("Clip", clip, 3, 2, size);
    }
}

int main(void) {
    test_compare();
    test_long_compare();
    test_long_truths();
    test_where();
    test_expand();
    uint64_t seed = 3;
    for (int i = 0; i < 2000; i++)
        repeat_random(&seed);
    for (int i = 0; i < 1000; i++)
        where_random(&seed);
    test_pow();
    test_powers();
    test_extremes();
    test_long_extremes();
    test_range();
    test_fill();
    test_fill_value();
    test_layernorm();
    test_single();
    return test_done();
}
