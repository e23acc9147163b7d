/* SPDX-License-Identifier: MIT */
/* Trigonometric operators, activations, predicates and bits against libm, formulas and NumPy. */
#include "op_harness.h"

#include <float.h>
#include <math.h>

#define N 400

static op_case *unary(const char *op_type, int32_t version, int32_t dtype, int64_t n,
                      const void *x) {
    op_case *c = case_new("", op_type, version);
    case_input(c, dtype, SHAPE(n), x);
    case_node(c, 1);
    return c;
}

/* Floats within `units` in the last place of libm's double, doubles within a few. */
static void curve_within(const char *op_type, int32_t version, double (*expected)(double),
                         double low, double high, double units) {
    float x[N];
    double d[N];
    int wrong = 0;
    for (int i = 0; i < N; i++) {
        x[i] = (float)(low + (high - low) * i / (N - 1));
        d[i] = low + (high - low) * i / (N - 1);
    }
    op_case *c = unary(op_type, version, QSIM_FLOAT, N, x);
    CHECK_INT(case_run(c), 0);
    const float *y = case_data(c, 0);
    for (int i = 0; i < N; i++) {
        const double e = expected((double)x[i]);
        wrong += !(fabs((double)y[i] - e) <= fabs(e) * 1.22e-7 * units + 1e-45);
    }
    case_free(c);
    c = unary(op_type, version, QSIM_DOUBLE, N, d);
    CHECK_INT(case_run(c), 0);
    const double *z = case_data(c, 0);
    for (int i = 0; i < N; i++)
        wrong += !(fabs(z[i] - expected(d[i])) <= fabs(expected(d[i])) * 1e-14 + 1e-15);
    case_free(c);
    if (wrong)
        CHECK_FAIL(op_type);
    test_checks++;
}

/* Floats are rounded once. */
static void curve(const char *op_type, int32_t version, double (*expected)(double), double low,
                  double high) {
    curve_within(op_type, version, expected, low, high, 0.5);
}

static void special(const char *op_type, int32_t version, float x, float expected) {
    op_case *c = unary(op_type, version, QSIM_FLOAT, 1, &x);
    CHECK_INT(case_run(c), 0);
    const float y = *(const float *)case_data(c, 0);
    if (!(y == expected && signbit(y) == signbit(expected)) && !(y != y && expected != expected))
        CHECK_FAIL(op_type);
    test_checks++;
    case_free(c);
}

/* Doubles only: floats of these are the kernels'. */
static void doubles(const char *op_type, int32_t version, double (*expected)(double)) {
    double d[N];
    int wrong = 0;
    for (int i = 0; i < N; i++)
        d[i] = i == 0 ? 0.0 : -12 + 24.0 * i / (N - 1);
    op_case *c = unary(op_type, version, QSIM_DOUBLE, N, d);
    CHECK_INT(case_run(c), 0);
    const double *z = case_data(c, 0);
    for (int i = 0; i < N; i++)
        wrong += !(fabs(z[i] - expected(d[i])) <= fabs(expected(d[i])) * 1e-13 + 5e-15);
    case_free(c);
    if (wrong)
        CHECK_FAIL(op_type);
    test_checks++;
}

static double sigmoid_of(double x) {
    return 1 / (1 + exp(-x));
}
static double softplus_of(double x) {
    return log1p(exp(x));
}
static double leaky_of(double x) {
    return x < 0 ? x * (double)0.01f : x;
}
static double hardsigmoid_of(double x) {
    return fmin(1, fmax(0, (double)0.2f * x + 0.5));
}
static double hardswish_of(double x) {
    return x * fmin(1, fmax(0, x / 6 + 0.5));
}
static double gelu_of(double x) {
    return x / 2 * (1 + erf(x / sqrt(2)));
}

static void test_doubles(void) {
    doubles("Exp", 13, exp);
    doubles("Tanh", 13, tanh);
    doubles("Erf", 13, erf);
    doubles("Sigmoid", 13, sigmoid_of);
    doubles("Softplus", 1, softplus_of);
    doubles("LeakyRelu", 16, leaky_of);
    doubles("HardSigmoid", 6, hardsigmoid_of);
    doubles("HardSwish", 14, hardswish_of);
    doubles("Gelu", 20, gelu_of);
}

/* Before version 7 a list of slopes is of channels; upgraded, an Unsqueeze says so. */
static void test_old_slopes(void) {
    static const float x[12] = {-1, 2, -3, -4, 5, -6, -7, 8, -9, -10, 11, -12};
    static const float slopes[2] = {2, 0.5f};
    for (int upgraded = 0; upgraded < 2; upgraded++) {
        op_case *c = case_new("", "PRelu", 6);
        case_input(c, QSIM_FLOAT, SHAPE(1, 2, 2, 3), x);
        case_input(c, QSIM_FLOAT, SHAPE(2), slopes);
        case_node(c, 1);
        if (upgraded) {
            CHECK_INT(case_infer(c), 0);
            CHECK_INT(qs_op_upgrade_graph(c->g, 13, "m", &c->error), 0);
            CHECK_INT(qs_op_infer_graph(c->g, "m", &c->error), 0);
            CHECK_INT(c->g->values[c->g->nodes[c->node].inputs[1]].rank, 3);
            CHECK_STR(case_shape(c, 0), "float[1,2,2,3]");
        } else {
            CHECK_INT(case_run(c), 0);
            for (int i = 0; i < 12; i++)
                CHECK_NEAR(((const float *)case_data(c, 0))[i],
                           x[i] < 0 ? x[i] * slopes[i / 6] : x[i], 0);
        }
        case_free(c);
    }
}

/* Slopes of channels, of columns and of each element; zeros keep their sign, NaNs stay. */
static void test_slopes(void) {
    static float x[2 * 3 * 41], slopes[2 * 3 * 41];
    for (int i = 0; i < 246; i++) {
        x[i] = i % 7 == 3 ? -0.0f : i % 11 == 4 ? NAN : (float)(i % 13) - 6.5f;
        slopes[i] = (float)(i % 5) - 1.25f;
    }
    for (int form = 0; form < 3; form++) {
        op_case *c = case_new("", "PRelu", 16);
        case_input(c, QSIM_FLOAT, SHAPE(2, 3, 41), x);
        if (form == 0)
            case_input(c, QSIM_FLOAT, SHAPE(3, 1), slopes);
        else if (form == 1)
            case_input(c, QSIM_FLOAT, SHAPE(41), slopes);
        else
            case_input(c, QSIM_FLOAT, SHAPE(2, 3, 41), slopes);
        case_node(c, 1);
        CHECK_INT(case_run(c), 0);
        const float *y = case_data(c, 0);
        for (int i = 0; i < 246; i++) {
            const float slope = slopes[form == 0 ? i / 41 % 3 : form == 1 ? i % 41 : i];
            const float want = x[i] < 0 ? x[i] * slope : x[i];
            CHECK(want != want ? y[i] != y[i] : y[i] == want && !signbit(y[i]) == !signbit(want));
        }
        case_free(c);
    }
}

/* Slopes of integers wrap; unsigned numbers are not below 0. */
static void test_whole_slopes(void) {
    static const int64_t x[3] = {-3, 0, 5}, slope[1] = {((int64_t)1 << 62) + 1};
    static const uint32_t u[3] = {4000000000, 0, 5}, two[1] = {2};
    op_case *c = case_new("", "PRelu", 16);
    case_input(c, QSIM_INT64, SHAPE(3), x);
    case_input(c, QSIM_INT64, SHAPE(1), slope);
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    CHECK(((const int64_t *)case_data(c, 0))[0] == ((int64_t)1 << 62) - 3);
    CHECK(((const int64_t *)case_data(c, 0))[2] == 5);
    case_free(c);
    c = case_new("", "PRelu", 16);
    case_input(c, QSIM_UINT32, SHAPE(3), u);
    case_input(c, QSIM_UINT32, SHAPE(1), two);
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    CHECK(memcmp(case_data(c, 0), u, sizeof(u)) == 0);
    case_free(c);
    c = case_new("", "Sign", 13);
    case_input(c, QSIM_UINT32, SHAPE(3), u);
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    CHECK(memcmp(case_data(c, 0), (const uint32_t[]){1, 0, 1}, 12) == 0);
    case_free(c);
}

/*
 * Angles far beyond those that libraries reduce well: mingw-w64's sin gives them back unchanged.
 * The sines are from exact arithmetic with 220 digits of pi.
 */
static void test_far_angles(void) {
    static const double angles[] = {0x1.2a05f2p+33,  0x1.c6bf52p+49, 0x1.0f0cfp+73,
                                    0x1.fe185cp+78,  0x1.93e594p+99, 0x1p+100,
                                    0x1.05ed2ep+117, 0x1p+127,       0x1.fffffep+127};
    static const double sines[] = {-0.4875060250875107, 0.9944343070894763,  -0.7340815352961015,
                                   0.42097135603431124, -0.7911634385219837, -0.8721836054182673,
                                   0.39851176888209416, 0.6233855129558702,  -0.5218765233336585};
    enum { COUNT = sizeof(angles) / sizeof(*angles) };
    float x[COUNT];
    for (int i = 0; i < COUNT; i++)
        x[i] = (float)angles[i];
    op_case *c = unary("Sin", 7, QSIM_FLOAT, COUNT, x);
    CHECK_INT(case_run(c), 0);
    for (int i = 0; i < COUNT; i++)
        CHECK(fabs((double)((const float *)case_data(c, 0))[i] - sines[i]) < 6.1e-8);
    case_free(c);
    c = unary("Sin", 7, QSIM_DOUBLE, COUNT, angles);
    CHECK_INT(case_run(c), 0);
    for (int i = 0; i < COUNT; i++)
        CHECK(fabs(((const double *)case_data(c, 0))[i] - sines[i]) < 1e-15);
    case_free(c);
}

static void test_trig(void) {
    curve_within("Sin", 7, sin, -40, 40, 1.6);
    curve_within("Cos", 7, cos, -40, 40, 1.6);
    curve_within("Sin", 7, sin, -262200, 262200, 1.6); /* near and far angles in a block */
    curve_within("Cos", 7, cos, -262200, 262200, 1.6);
    special("Sin", 7, 0x1.921fb4p+1f, (float)sin(0x1.921fb4p+1)); /* pi */
    special("Cos", 7, -INFINITY, NAN);
    curve("Tan", 7, tan, -40, 40);
    curve("Asin", 7, asin, -1, 1);
    curve("Acos", 7, acos, -1, 1);
    curve("Atan", 7, atan, -60, 60);
    curve("Sinh", 9, sinh, -80, 80);
    curve("Cosh", 9, cosh, -80, 80);
    curve("Asinh", 9, asinh, -50, 1e20);
    curve("Asinh", 9, asinh, -2, 2);
    curve("Acosh", 9, acosh, 1, 3);
    curve("Acosh", 9, acosh, 1, 1e20);
    curve("Atanh", 9, atanh, -0.999, 0.999);
    special("Sin", 7, INFINITY, NAN);
    special("Sin", 7, -0.0f, -0.0f);
    special("Asin", 7, 1.5f, NAN);
    special("Acosh", 9, 0.5f, NAN);
    special("Atanh", 9, 1.0f, INFINITY);
    special("Atan", 7, -INFINITY, (float)-1.5707963267948966);
    special("Sinh", 9, 100.0f, INFINITY);
    special("Cosh", 9, NAN, NAN);
}

static double elu(double x) {
    return x < 0 ? expm1(x) : x;
}
static double selu(double x) {
    return (double)1.05070102214813232422f *
           (x <= 0 ? (double)1.67326319217681884766f * expm1(x) : x);
}
static double mish(double x) {
    return x * tanh(log1p(exp(x)));
}
static double swish(double x) {
    return x / (1 + exp(-x));
}
static double softsign(double x) {
    return x / (1 + fabs(x));
}
static double thresholded(double x) {
    return x > 1 ? x : 0;
}
static double shrink(double x) {
    return fabs(x) > 0.5 ? x : 0;
}

static void test_activations(void) {
    curve_within("Elu", 6, elu, -20, 5, 2);
    curve_within("Selu", 6, selu, -20, 5, 3);
    curve_within("Celu", 12, elu, -20, 5, 2);
    curve_within("Mish", 18, mish, -20, 30, 4);
    curve_within("Softplus", 1, softplus_of, -80, 80, 2.5);
    curve("Swish", 24, swish, -20, 20);
    curve_within("Softsign", 1, softsign, -20, 20, 1.5);
    curve("ThresholdedRelu", 10, thresholded, -3, 3);
    curve("Shrink", 9, shrink, -3, 3);
    special("Mish", 18, NAN, NAN);
    special("Mish", 18, 1000.0f, 1000.0f);
    special("Elu", 6, -INFINITY, -1.0f);
    special("Softsign", 1, FLT_MAX, 1.0f);
    special("ThresholdedRelu", 10, NAN, NAN);
    special("HardSigmoid", 6, INFINITY, 1.0f);
    special("Floor", 13, -0.0f, -0.0f);
    special("Floor", 13, -0.5f, -1.0f);
    special("Ceil", 13, -0.5f, -0.0f);
    special("Round", 16, 2.5f, 2.0f);
    /* celu with alpha 2: 2 (e^-1 - 1) at -2, with -2: -2 (e^1 - 1) */
    for (int i = 0; i < 2; i++) {
        const float x = -2, alpha = i ? -2.0f : 2.0f;
        op_case *c = unary("Celu", 12, QSIM_FLOAT, 1, &x);
        CHECK_INT(qs_node_set_float(c->g, c->node, "alpha", alpha), 0);
        CHECK_INT(case_run(c), 0);
        const double v = (double)alpha * expm1(-2.0 / (double)alpha);
        CHECK_NEAR(*(const float *)case_data(c, 0), v, 1.22e-7 * fabs(v));
        case_free(c);
    }
}

static void test_questions(void) {
    const float x[] = {NAN, INFINITY, -INFINITY, FLT_MAX, 0};
    op_case *c = unary("IsNaN", 13, QSIM_FLOAT, 5, x);
    CHECK_INT(case_run(c), 0);
    CHECK(memcmp(case_data(c, 0), "\1\0\0\0\0", 5) == 0);
    case_free(c);
    for (int i = 0; i < 4; i++) {
        c = unary("IsInf", 10, QSIM_FLOAT, 5, x);
        CHECK_INT(qs_node_set_int(c->g, c->node, "detect_positive", i & 1), 0);
        CHECK_INT(qs_node_set_int(c->g, c->node, "detect_negative", i >> 1), 0);
        CHECK_INT(case_run(c), 0);
        const uint8_t y[] = {0, i & 1, (uint8_t)(i >> 1), 0, 0};
        CHECK(memcmp(case_data(c, 0), y, 5) == 0);
        case_free(c);
    }
}

static void pair(const char *op_type, const char *direction, int32_t dtype, int64_t n,
                 const void *a, const void *b, const void *expected) {
    op_case *c = case_new("", op_type, 18);
    case_input(c, dtype, SHAPE(n), a);
    case_input(c, dtype, SHAPE(n), b);
    case_node(c, 1);
    if (direction)
        case_string(c, "direction", direction);
    CHECK_INT(case_run(c), 0);
    CHECK(memcmp(case_data(c, 0), expected, c->bytes[c->out[0]]) == 0);
    case_free(c);
}

static void test_bits(void) {
    const uint16_t a[] = {16, 4, 0xffff, 1}, b[] = {1, 2, 16, 15};
    pair("BitShift", "LEFT", QSIM_UINT16, 4, a, b, (const uint16_t[]){32, 16, 0, 0x8000});
    pair("BitShift", "RIGHT", QSIM_UINT16, 4, a, b, (const uint16_t[]){8, 1, 0, 0});
    const int32_t p[] = {-1, 12}, q[] = {0x0f0f, 10};
    pair("BitwiseAnd", NULL, QSIM_INT32, 2, p, q, (const int32_t[]){0x0f0f, 8});
    pair("BitwiseOr", NULL, QSIM_INT32, 2, p, q, (const int32_t[]){-1, 14});
    pair("BitwiseXor", NULL, QSIM_INT32, 2, p, q, (const int32_t[]){~0x0f0f, 6});
    op_case *c = unary("BitwiseNot", 18, QSIM_INT64, 2, (const int64_t[]){0, -5});
    CHECK_INT(case_run(c), 0);
    CHECK(memcmp(case_data(c, 0), (const int64_t[]){-1, 4}, 16) == 0);
    case_free(c);
    c = unary("BitShift", 11, QSIM_UINT8, 1, "a");
    CHECK_INT(case_infer(c), QSIM_E_GRAPH); /* one input */
    case_free(c);
    c = unary("BitCast", 26, QSIM_FLOAT, 2, (const float[]){1, -2});
    CHECK_INT(qs_node_set_int(c->g, c->node, "to", QSIM_INT32), 0);
    CHECK_INT(case_infer(c), 0);
    CHECK_STR(case_shape(c, 0), "int32[2]");
    case_free(c);
    c = unary("BitCast", 26, QSIM_FLOAT, 2, (const float[]){1, -2});
    CHECK_INT(qs_node_set_int(c->g, c->node, "to", QSIM_INT64), 0);
    CHECK_INT(case_infer(c), QSIM_E_DTYPE);
    case_free(c);
}

/* ---- Hardmax, EyeLike, Size, Det ---- */

static void test_matrices(void) {
    const float x[] = {3, 0, 1, 2, 2, 5, 1, 5};
    op_case *c = case_new("", "Hardmax", 13);
    case_input(c, QSIM_FLOAT, SHAPE(2, 4), x);
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    CHECK(memcmp(case_data(c, 0), (const float[]){1, 0, 0, 0, 0, 1, 0, 0}, 32) == 0);
    case_free(c);
    c = case_new("", "Hardmax", 11); /* both axes are one */
    case_input(c, QSIM_FLOAT, SHAPE(2, 4), x);
    case_node(c, 1);
    CHECK_INT(qs_node_set_int(c->g, c->node, "axis", 0), 0);
    CHECK_INT(case_run(c), 0);
    CHECK(memcmp(case_data(c, 0), (const float[]){0, 0, 0, 0, 0, 1, 0, 0}, 32) == 0);
    case_free(c);
    const double wide[] = {1, 1 + 1e-12, 0, 1};
    c = case_new("", "Hardmax", 13);
    case_input(c, QSIM_DOUBLE, SHAPE(4), wide);
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    CHECK(memcmp(case_data(c, 0), (const double[]){0, 1, 0, 0}, 32) == 0);
    case_free(c);
    for (int k = -3; k <= 4; k++) {
        int32_t eye[6];
        for (int i = 0; i < 6; i++)
            eye[i] = i % 3 - i / 3 == k;
        c = case_new("", "EyeLike", 9);
        case_input(c, QSIM_FLOAT, SHAPE(2, 3), x);
        case_node(c, 1);
        CHECK_INT(qs_node_set_int(c->g, c->node, "k", k), 0);
        CHECK_INT(qs_node_set_int(c->g, c->node, "dtype", QSIM_INT32), 0);
        CHECK_INT(case_run(c), 0);
        CHECK(memcmp(case_data(c, 0), eye, sizeof(eye)) == 0);
        case_free(c);
    }
    c = case_new("", "Size", 13);
    case_input(c, QSIM_FLOAT, SHAPE(2, 4), x);
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    CHECK(*(const int64_t *)case_data(c, 0) == 8);
    case_free(c);
    c = case_new("", "Det", 11); /* 3 * 2 - 0 * 1; 2 * 5 - 5 * 1 */
    case_input(c, QSIM_FLOAT, SHAPE(2, 2, 2), x);
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    CHECK_STR(case_shape(c, 0), "float[2]");
    CHECK(memcmp(case_data(c, 0), (const float[]){6, 5}, 8) == 0);
    case_free(c);
}

/* Of matrices whose first pivot is 0, whose determinant is below any double, and which have none.
 */
static void test_inverse(void) {
    static const float x[] = {0, 2, 4, 6, 1, 2, 2, 4}, wanted[] = {-0.75f, 0.25f, 0.5f, 0};
    op_case *c = case_new("com.microsoft", "Inverse", 1);
    case_input(c, QSIM_FLOAT, SHAPE(2, 2, 2), x);
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    CHECK_STR(case_shape(c, 0), "float[2,2,2]");
    const float *y = case_data(c, 0);
    for (int i = 0; i < 4; i++)
        CHECK(y[i] == wanted[i] && isnan(y[4 + i]));
    case_free(c);
    enum { SIDE = 12 };
    double small[SIDE * SIDE] = {0};
    for (int i = 0; i < SIDE; i++)
        small[i * (SIDE + 1)] = 0x1p-100;
    c = case_new("com.microsoft", "Inverse", 1);
    case_input(c, QSIM_DOUBLE, SHAPE(SIDE, SIDE), small);
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    const double *z = case_data(c, 0);
    for (int i = 0; i < SIDE * SIDE; i++)
        CHECK(z[i] == (i % (SIDE + 1) ? 0 : 0x1p100));
    case_free(c);
}

/* Exponents that are computed by themselves have the value and the sign of pow, within a rounding.
 */
static void test_usual_powers(void) {
    static const float ends[] = {0.0f,   -0.0f,   INFINITY, -INFINITY, NAN,
                                 1e-40f, -1e-40f, 3e38f,    1e-30f,    -2e13f};
    static const float exponents[] = {2, 3, -1, 0.5f, -0.5f, 1.5f};
    float x[70];
    for (int64_t n = 1; n <= 70; n += 23)
        for (size_t e = 0; e < 6; e++) {
            uint64_t seed = (uint64_t)n;
            for (int64_t i = 0; i < n; i++)
                x[i] = i % 3 ? (float)(test_random(&seed) % 4000) / 64 - 9 : ends[i / 3 % 10];
            op_case *c = case_new("", "Pow", 15);
            case_input(c, QSIM_FLOAT, SHAPE(n), x);
            case_input(c, QSIM_FLOAT, SHAPE(1), &exponents[e]);
            case_node(c, 1);
            CHECK_INT(case_run(c), 0);
            const float *y = case_data(c, 0);
            size_t wrong = 0;
            for (int64_t i = 0; i < n; i++) {
                const float wanted = (float)pow((double)x[i], (double)exponents[e]);
                const double off = fabs((double)y[i] - (double)wanted);
                const bool right =
                    isnan(wanted) ? isnan(y[i])
                                  : signbit(y[i]) == signbit(wanted) &&
                                        (y[i] == wanted || off <= 1.2e-7 * fabs((double)wanted));
                wrong += !right;
            }
            CHECK_INT(wrong, 0);
            case_free(c);
        }
}

int main(void) {
    test_usual_powers();
    test_inverse();
    test_doubles();
    test_old_slopes();
    test_slopes();
    test_whole_slopes();
    test_matrices();
    test_trig();
    test_far_angles();
    test_activations();
    test_questions();
    test_bits();
    return test_done();
}
