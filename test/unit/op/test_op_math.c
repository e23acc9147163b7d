/* SPDX-License-Identifier: MIT */
/* Element-wise operators, reductions, Softmax, Cast, Slice, Pad, Clip against plain loops. */
#include "op_harness.h"

#include <float.h>
#include <math.h>

#define N 1003
static float noise[N];

/* ---- Add, Sub, Mul, Div with broadcasting ---- */

static double apply(char op, double a, double b) {
    switch (op) {
    case '+': return a + b;
    case '-': return a - b;
    case '*': return a * b;
    default: return a / b;
    }
}

static size_t at_of(const int64_t *dims, int32_t rank, const int64_t *index, int32_t full) {
    size_t at = 0;
    for (int32_t i = 0; i < rank; i++) {
        int64_t k = index[i + full - rank];
        at = at * (size_t)dims[i] + (size_t)(dims[i] == 1 ? 0 : k);
    }
    return at;
}

static void broadcast_one(const char *op_type, char op, int32_t ra, const int64_t *da, int32_t rb,
                          const int64_t *db, const char *shape) {
    op_case *c = case_new("", op_type, 14);
    case_input(c, QSIM_FLOAT, ra, da, noise);
    case_input(c, QSIM_FLOAT, rb, db, noise + 200);
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    CHECK_STR(case_shape(c, 0), shape);
    const qs_value *y = case_out(c, 0);
    const float *out = case_data(c, 0);
    int64_t index[QSIM_MAX_RANK] = {0};
    size_t total = c->bytes[c->out[0]] / 4, wrong = 0;
    for (size_t k = 0; k < total; k++) {
        float a = noise[at_of(da, ra, index, y->rank)];
        float b = noise[200 + at_of(db, rb, index, y->rank)];
        wrong += out[k] != (float)apply(op, (double)a, (double)b);
        for (int32_t i = y->rank - 1; i >= 0 && ++index[i] == y->dims[i].size; i--)
            index[i] = 0;
    }
    CHECK_INT(wrong, 0);
    case_free(c);
}

static void test_broadcast(void) {
    static const char *const names[] = {"Add", "Sub", "Mul", "Div"};
    for (size_t i = 0; i < 4; i++) {
        char op = "+-*/"[i];
        broadcast_one(names[i], op, SHAPE(2, 3, 5), SHAPE(2, 3, 5), "float[2,3,5]");
        broadcast_one(names[i], op, SHAPE(2, 3, 5), SHAPE(5), "float[2,3,5]");
        broadcast_one(names[i], op, SHAPE(2, 3, 5), SHAPE(3, 1), "float[2,3,5]");
        broadcast_one(names[i], op, SHAPE(3, 1), SHAPE(2, 3, 5), "float[2,3,5]");
        broadcast_one(names[i], op, SHAPE(2, 1, 5), SHAPE(1, 3, 1), "float[2,3,5]");
        broadcast_one(names[i], op, SHAPE(4, 1), SHAPE(1, 6), "float[4,6]");
        broadcast_one(names[i], op, SHAPE(1), SHAPE(2, 2), "float[2,2]");
        broadcast_one(names[i], op, 0, NULL, SHAPE(3), "float[3]");
        broadcast_one(names[i], op, 0, NULL, 0, NULL, "float[]");
        broadcast_one(names[i], op, SHAPE(2, 0), SHAPE(1), "float[2,0]");
        broadcast_one(names[i], op, SHAPE(1, 2, 1, 3), SHAPE(4, 1, 5, 1), "float[4,2,5,3]");
    }
    op_case *c = case_new("", "Add", 13);
    case_input(c, QSIM_FLOAT, SHAPE(2, 3), noise);
    case_input(c, QSIM_FLOAT, SHAPE(2), noise);
    case_node(c, 1);
    CHECK_INT(case_infer(c), QSIM_E_SHAPE);
    case_free(c);
}

/* Version 6: b over axis 1 of a; upgraded, an Unsqueeze does it. */
static void test_legacy(void) {
    op_case *c = case_new("", "Mul", 6);
    case_input(c, QSIM_FLOAT, SHAPE(2, 3, 4), noise);
    case_input(c, QSIM_FLOAT, SHAPE(3), noise + 50);
    case_node(c, 1);
    CHECK_INT(qs_node_set_int(c->g, c->node, "broadcast", 1), 0);
    CHECK_INT(qs_node_set_int(c->g, c->node, "axis", 1), 0);
    CHECK_INT(case_run(c), 0);
    CHECK_STR(case_shape(c, 0), "float[2,3,4]");
    for (size_t i = 0; i < 24; i++)
        CHECK_NEAR(((const float *)case_data(c, 0))[i], noise[i] * noise[50 + i / 4 % 3], 0);
    CHECK_INT(qs_op_upgrade_graph(c->g, 13, "m", &c->error), 0);
    CHECK_INT(qs_op_infer_graph(c->g, "m", &c->error), 0);
    CHECK_STR(case_shape(c, 0), "float[2,3,4]");
    const qs_value *b = &c->g->values[c->g->nodes[c->node].inputs[1]];
    CHECK_INT(b->rank, 2);
    CHECK_INT(b->dims[1].size, 1);
    case_free(c);
}

/* Opset 1 had an attribute for inputs that may be overwritten; opset 13 does not have it. */
static void test_consumed_inputs(void) {
    static const char *const ops[] = {"Relu", "Sum", "Max", "Exp", "Add", "Clip"};
    static const int64_t none = 0;
    for (size_t i = 0; i < QS_COUNT(ops); i++) {
        op_case *c = case_new("", ops[i], 5);
        case_input(c, QSIM_FLOAT, SHAPE(6), noise);
        if (strcmp(ops[i], "Add") == 0)
            case_input(c, QSIM_FLOAT, SHAPE(6), noise);
        case_node(c, 1);
        CHECK_INT(qs_node_set_ints(c->g, c->node, "consumed_inputs", &none, 1), 0);
        CHECK_INT(case_infer(c), 0);
        CHECK_INT(qs_op_upgrade_graph(c->g, 13, "m", &c->error), 0);
        case_free(c);
    }
}

static void test_integers(void) {
    static const int8_t a[] = {-128, 100, 7, -7, 5, -128}, b[] = {1, 100, 2, 2, 0, -1};
    static const int8_t sums[] = {-127, -56, 9, -5, 5, 127},
                        quotients[] = {-128, 1, 3, -3, 0, -128};
    op_case *c = case_new("", "Add", 14);
    case_input(c, QSIM_INT8, SHAPE(6), a);
    case_input(c, QSIM_INT8, SHAPE(6), b);
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    CHECK(memcmp(case_data(c, 0), sums, 6) == 0);
    case_free(c);
    c = case_new("", "Div", 14);
    case_input(c, QSIM_INT8, SHAPE(6), a);
    case_input(c, QSIM_INT8, SHAPE(6), b);
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    CHECK(memcmp(case_data(c, 0), quotients, 6) == 0);
    case_free(c);
    static const uint64_t big[] = {UINT64_MAX, 1ull << 63}, two[] = {2, 2},
                          half[] = {UINT64_MAX / 2, 1ull << 62};
    c = case_new("", "Div", 14);
    case_input(c, QSIM_UINT64, SHAPE(2), big);
    case_input(c, QSIM_UINT64, SHAPE(2), two);
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    CHECK(memcmp(case_data(c, 0), half, 16) == 0);
    case_free(c);
}

/* The internal Add has a fused clamp. */
static void test_fused(void) {
    op_case *c = case_new("qsim", "Add", 1);
    case_input(c, QSIM_FLOAT, SHAPE(N), noise);
    case_input(c, QSIM_FLOAT, SHAPE(N), noise);
    case_node(c, 1);
    CHECK_INT(qs_node_set_float(c->g, c->node, "lo", 0.0f), 0);
    CHECK_INT(qs_node_set_float(c->g, c->node, "hi", 6.0f), 0);
    CHECK_INT(case_run(c), 0);
    const float *y = case_data(c, 0);
    for (size_t i = 0; i < N; i++)
        CHECK_NEAR(y[i], fmin(fmax((double)(noise[i] + noise[i]), 0), 6), 0);
    case_free(c);
}

/* ---- one operand ---- */

static double hard_sigmoid(double x) {
    return fmin(fmax(0.2 * x + 0.5, 0), 1);
}
static double hard_swish(double x) {
    return x * fmin(fmax(x / 6 + 0.5, 0), 1);
}
static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}
static double relu(double x) {
    return x > 0 ? x : 0;
}
static double leaky(double x) {
    return x > 0 ? x : 0.01 * x;
}
static double negative(double x) {
    return -x;
}

/* Worst error in units of the last place of the result, or of `least` if that is greater. */
static void unary_one(const char *op_type, double (*fn)(double), double least, double ulps) {
    static float x[4000];
    for (size_t i = 0; i < QS_COUNT(x); i++)
        x[i] = ((float)i - 2000.0f) * 0.011f;
    op_case *c = case_new("", op_type, 16);
    case_input(c, QSIM_FLOAT, SHAPE(40, 100), x);
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    CHECK_STR(case_shape(c, 0), "float[40,100]");
    const float *y = case_data(c, 0);
    double worst = 0;
    for (size_t i = 0; i < QS_COUNT(x); i++) {
        double exact = fn((double)x[i]);
        double unit = fmax(fabs(exact), least) * (double)FLT_EPSILON;
        if (exact == exact)
            worst = fmax(worst, fabs((double)y[i] - exact) / unit);
        else
            CHECK(y[i] != y[i]);
    }
    CHECK_NEAR(worst, 0, ulps);
    case_free(c);
}

static void special_one(const char *op_type, float x, float expected) {
    op_case *c = case_new("", op_type, 16);
    case_input(c, QSIM_FLOAT, SHAPE(1), &x);
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    float y = *(const float *)case_data(c, 0);
    CHECK(y == expected || (y != y && expected != expected));
    case_free(c);
}

static void test_unary(void) {
    unary_one("Relu", relu, 1e-30, 0);
    unary_one("LeakyRelu", leaky, 1e-30, 1);
    unary_one("Sigmoid", sigmoid, 1e-30, 3);
    unary_one("Tanh", tanh, 1e-30, 2);
    unary_one("Exp", exp, 1e-30, 2);
    unary_one("HardSigmoid", hard_sigmoid, 0.25, 8);
    unary_one("HardSwish", hard_swish, 0.25, 8);
    unary_one("Sqrt", sqrt, 1e-30, 0.5);
    unary_one("Neg", negative, 1e-30, 0);
    unary_one("Abs", fabs, 1e-30, 0);
    unary_one("Erf", erf, 1e-30, 2);
    unary_one("Floor", floor, 1e-30, 0);
    unary_one("Ceil", ceil, 1e-30, 0);
    special_one("Erf", INFINITY, 1.0f);
    special_one("Erf", NAN, NAN);
    special_one("Log", 0.0f, -INFINITY);
    special_one("Log", -1.0f, NAN);
    special_one("Log", 1.0f, 0.0f);
    special_one("Log", 1e-40f, (float)log((double)1e-40f));
    special_one("Softplus", 100.0f, 100.0f);
    special_one("Sign", -0.5f, -1.0f);
    special_one("Reciprocal", -4.0f, -0.25f);
    special_one("Round", 2.5f, 2.0f);
    special_one("Exp", 89.0f, INFINITY);
    special_one("Exp", INFINITY, INFINITY);
    special_one("Exp", -INFINITY, 0.0f);
    special_one("Exp", 0.0f, 1.0f);
    special_one("Exp", NAN, NAN);
    special_one("Exp", -100.0f, 3.783506e-44f); /* a denormal */
    special_one("Tanh", INFINITY, 1.0f);
    special_one("Tanh", -INFINITY, -1.0f);
    special_one("Tanh", NAN, NAN);
    special_one("Sigmoid", -INFINITY, 0.0f);
    special_one("Sigmoid", INFINITY, 1.0f);
    special_one("Relu", NAN, NAN);
    special_one("HardSigmoid", NAN, NAN);
}

/* ---- Clip ---- */

/* To opset 11: bounds become inputs of the operand's type. */
static void test_upgraded_bounds(void) {
    static const int32_t types[] = {QSIM_FLOAT, QSIM_DOUBLE, QSIM_FLOAT16, QSIM_BFLOAT16};
    static const uint16_t sixes[] = {0, 0, 0x4600, 0x40c0};
    for (size_t i = 0; i < QS_COUNT(types); i++) {
        op_case *c = case_new("", "Clip", 10);
        case_input(c, types[i], SHAPE(3), NULL);
        case_node(c, 1);
        CHECK_INT(qs_node_set_float(c->g, c->node, "max", 6), 0);
        CHECK_INT(case_infer(c), 0);
        CHECK_INT(qs_op_upgrade_graph(c->g, 13, "m", &c->error), 0);
        CHECK_INT(qs_op_infer_graph(c->g, "m", &c->error), 0);
        const qs_const *most = qs_node_const(c->g, &c->g->nodes[c->node], 2);
        CHECK(most && most->dtype == types[i]);
        CHECK(!most || !sixes[i] || memcmp(most->data, &sixes[i], 2) == 0);
        case_free(c);
    }
}

static void test_clip(void) {
    static const float x[] = {-2, -0.5f, 0, 0.5f, 2, NAN}, lo = -1, hi = 1;
    for (int32_t form = 0; form < 4; form++) { /* bounds as attributes, inputs, one, none */
        op_case *c = case_new("", "Clip", form ? 13 : 6);
        case_input(c, QSIM_FLOAT, SHAPE(6), x);
        if (form == 2)
            case_absent(c);
        else if (form == 1)
            case_const(c, QSIM_FLOAT, 0, NULL, &lo);
        if (form == 1 || form == 2)
            case_input(c, QSIM_FLOAT, 0, NULL, &hi);
        case_node(c, 1);
        if (form == 0) {
            CHECK_INT(qs_node_set_float(c->g, c->node, "min", -1), 0);
            CHECK_INT(qs_node_set_float(c->g, c->node, "max", 1), 0);
        }
        CHECK_INT(case_run(c), 0);
        const float *y = case_data(c, 0);
        CHECK_NEAR(y[0], form < 2 ? -1 : -2, 0);
        CHECK_NEAR(y[1], -0.5, 0);
        CHECK_NEAR(y[4], form < 3 ? 1 : 2, 0);
        CHECK(y[5] != y[5]);
        if (form == 0) {
            CHECK_INT(qs_op_upgrade_graph(c->g, 13, "m", &c->error), 0);
            const qs_node *n = &c->g->nodes[c->node];
            CHECK_INT(n->input_count, 3);
            float bound = 0;
            memcpy(&bound, c->g->values[n->inputs[1]].data->data, 4);
            CHECK_NEAR(bound, -1, 0);
        }
        case_free(c);
    }
    static const uint8_t u[] = {0, 5, 200, 255}, low = 5, high = 200;
    op_case *c = case_new("", "Clip", 13);
    case_input(c, QSIM_UINT8, SHAPE(4), u);
    case_const(c, QSIM_UINT8, 0, NULL, &low);
    case_const(c, QSIM_UINT8, 0, NULL, &high);
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    CHECK(memcmp(case_data(c, 0), "\5\5\310\310", 4) == 0);
    case_free(c);
}

/* ---- Softmax, ReduceMean ---- */

static void softmax_one(int64_t version, int64_t axis, size_t outer, size_t count, size_t inner) {
    op_case *c = case_new("", "Softmax", version);
    case_input(c, QSIM_FLOAT, SHAPE(3, 5, 7, 2), noise);
    case_node(c, 1);
    CHECK_INT(qs_node_set_int(c->g, c->node, "axis", axis), 0);
    CHECK_INT(case_run(c), 0);
    const float *y = case_data(c, 0);
    for (size_t o = 0; o < outer; o++)
        for (size_t i = 0; i < inner; i++) {
            double sum = 0;
            for (size_t k = 0; k < count; k++)
                sum += exp((double)noise[(o * count + k) * inner + i]);
            double worst = 0;
            for (size_t k = 0; k < count; k++) {
                size_t at = (o * count + k) * inner + i;
                worst = fmax(worst, fabs(exp((double)noise[at]) / sum - (double)y[at]));
            }
            CHECK_NEAR(worst, 0, 1e-6);
        }
    case_free(c);
}

static void test_softmax(void) {
    softmax_one(13, -1, 105, 2, 1);
    softmax_one(13, 1, 3, 5, 14);
    softmax_one(13, 0, 1, 3, 70);
    softmax_one(11, 1, 3, 70, 1); /* flattened */
    softmax_one(11, -2, 15, 14, 1);
    softmax_one(11, 0, 1, 210, 1);
    softmax_one(6, -1, 105, 2, 1); /* as other runtimes read old files, too */
    op_case *c = case_new("", "Softmax", 13);
    case_input(c, QSIM_FLOAT, SHAPE(3, 5), noise);
    case_node(c, 1);
    CHECK_INT(qs_node_set_int(c->g, c->node, "axis", 2), 0);
    CHECK_INT(case_infer(c), QSIM_E_VALUE);
    case_free(c);
    /* [2,3,4] at 11: becomes Flatten, Softmax, Reshape; [2,3] keeps its node */
    for (int32_t rank = 2; rank <= 3; rank++) {
        c = case_new("", "Softmax", 11);
        case_input(c, QSIM_FLOAT, rank, DIMS(2, 3, 4), noise);
        case_node(c, 1);
        CHECK_INT(case_infer(c), 0);
        CHECK_INT(qs_op_upgrade_graph(c->g, 13, "m", &c->error), 0);
        CHECK_INT(qs_op_infer_graph(c->g, "m", &c->error), 0);
        CHECK_STR(case_shape(c, 0), rank == 2 ? "float[2,3]" : "float[2,3,4]");
        CHECK_INT(c->g->order_count, rank == 2 ? 1 : 4);
        CHECK_STR(c->g->nodes[c->node].op_type, rank == 2 ? "Softmax" : "Reshape");
        case_free(c);
    }
}

/* The written order: 16 lanes, then halves. */
static float tree(const float *x, size_t n, size_t step) {
    float lanes[16] = {0};
    for (size_t i = 0; i < n; i++)
        lanes[i % 16] += x[i * step];
    for (size_t i = 0; i < 8; i++)
        lanes[i] += lanes[i + 8];
    for (size_t i = 0; i < 4; i++)
        lanes[i] += lanes[i + 4];
    return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
}

static void test_reduce(void) {
    op_case *c = case_new("", "ReduceMean", 13); /* axes 2, 3 of [2,3,9,11] */
    case_input(c, QSIM_FLOAT, SHAPE(2, 3, 9, 11), noise);
    case_node(c, 1);
    CHECK_INT(qs_node_set_ints(c->g, c->node, "axes", DIMS(-1, 2), 2), 0);
    CHECK_INT(case_run(c), 0);
    CHECK_STR(case_shape(c, 0), "float[2,3,1,1]");
    for (size_t o = 0; o < 6; o++)
        CHECK_NEAR(((const float *)case_data(c, 0))[o], tree(noise + o * 99, 99, 1) / 99.0f, 0);
    case_free(c);
    c = case_new("", "ReduceMean", 18); /* axis 0 and 1, strided */
    case_input(c, QSIM_FLOAT, SHAPE(4, 9, 11), noise);
    case_ints(c, 2, DIMS(0, 1));
    case_node(c, 1);
    CHECK_INT(qs_node_set_int(c->g, c->node, "keepdims", 0), 0);
    CHECK_INT(case_run(c), 0);
    CHECK_STR(case_shape(c, 0), "float[11]");
    for (size_t o = 0; o < 11; o++)
        CHECK_NEAR(((const float *)case_data(c, 0))[o], tree(noise + o, 36, 11) / 36.0f, 0);
    case_free(c);
    c = case_new("", "ReduceMean", 18); /* 35 columns of two images: vectors of them and a rest */
    case_input(c, QSIM_FLOAT, SHAPE(2, 4, 35), noise);
    case_ints(c, 1, DIMS(1));
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    for (size_t o = 0; o < 70; o++)
        CHECK_NEAR(((const float *)case_data(c, 0))[o],
                   tree(noise + o / 35 * 140 + o % 35, 4, 35) / 4.0f, 0);
    case_free(c);
    c = case_new("", "ReduceSum", 13); /* more terms than lanes */
    case_input(c, QSIM_FLOAT, SHAPE(19, 18), noise);
    case_ints(c, 1, DIMS(0));
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    for (size_t o = 0; o < 18; o++)
        CHECK_NEAR(((const float *)case_data(c, 0))[o], tree(noise + o, 19, 18), 0);
    case_free(c);
    c = case_new("", "ReduceMax", 18); /* axes 0 and 2, not neighbours; all by default: see below */
    case_input(c, QSIM_FLOAT, SHAPE(4, 3, 5), noise);
    case_ints(c, 2, DIMS(0, 2));
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    CHECK_STR(case_shape(c, 0), "float[1,3,1]");
    for (size_t k = 0; k < 3; k++) {
        float best = -INFINITY;
        for (size_t i = 0; i < 20; i++)
            best = fmaxf(best, noise[i / 5 * 15 + k * 5 + i % 5]);
        CHECK_NEAR(((const float *)case_data(c, 0))[k], best, 0);
    }
    case_free(c);
    c = case_new("", "ReduceSum", 13);
    case_input(c, QSIM_FLOAT, SHAPE(4, 5), noise);
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    CHECK_STR(case_shape(c, 0), "float[1,1]");
    CHECK_NEAR(*(const float *)case_data(c, 0), tree(noise, 20, 1), 0);
    case_free(c);
}

/* ---- Cast ---- */

static void test_cast(void) {
    static const float x[] = {-1.9f, 300.7f, NAN, INFINITY, -INFINITY, 0.5f};
    static const int8_t s8[] = {-1, 127, 0, 127, -128, 0};
    static const uint8_t truth[] = {1, 1, 1, 1, 1, 1};
    op_case *c = case_new("", "Cast", 13);
    case_input(c, QSIM_FLOAT, SHAPE(6), x);
    case_node(c, 1);
    CHECK_INT(qs_node_set_int(c->g, c->node, "to", QSIM_INT8), 0);
    CHECK_INT(case_run(c), 0);
    CHECK(memcmp(case_data(c, 0), s8, 6) == 0);
    case_free(c);
    c = case_new("", "Cast", 13);
    case_input(c, QSIM_FLOAT, SHAPE(6), x);
    case_node(c, 1);
    CHECK_INT(qs_node_set_int(c->g, c->node, "to", QSIM_BOOL), 0);
    CHECK_INT(case_run(c), 0);
    CHECK(memcmp(case_data(c, 0), truth, 6) == 0);
    case_free(c);
    /* not by way of double, which would round twice */
    static const int64_t wide[] = {(1ll << 60) + (1ll << 36) + 1, -3, 258};
    c = case_new("", "Cast", 13);
    case_input(c, QSIM_INT64, SHAPE(3), wide);
    case_node(c, 1);
    CHECK_INT(qs_node_set_int(c->g, c->node, "to", QSIM_FLOAT), 0);
    CHECK_INT(case_run(c), 0);
    CHECK(((const float *)case_data(c, 0))[0] == (float)wide[0]);
    case_free(c);
    c = case_new("", "Cast", 13);
    case_input(c, QSIM_INT64, SHAPE(3), wide);
    case_node(c, 1);
    CHECK_INT(qs_node_set_int(c->g, c->node, "to", QSIM_UINT8), 0);
    CHECK_INT(case_run(c), 0);
    CHECK(memcmp(case_data(c, 0), "\1\375\2", 3) == 0); /* wraps */
    case_free(c);
    c = case_new("", "Cast", 13);
    case_input(c, QSIM_FLOAT, SHAPE(6), x);
    case_node(c, 1);
    CHECK_INT(qs_node_set_int(c->g, c->node, "to", QSIM_STRING), 0);
    CHECK_INT(case_infer(c), QSIM_E_UNSUPPORTED);
    case_free(c);
}

/* Before opset 6 the type is a name. */
static void cast_to_name(void) {
    static const float x[] = {-1.9f, 300.7f, 0.5f};
    static const int64_t whole[] = {-1, 300, 0};
    for (int64_t to = 0; to <= 13; to += 13) {
        op_case *c = case_new("", "Cast", 5);
        case_input(c, QSIM_FLOAT, SHAPE(3), x);
        case_node(c, 1);
        const qs_attr name = {
            .name = "to", .type = QSIM_ATTR_STRING, .u.s = {(const uint8_t *)"INT64", 5}};
        CHECK_INT(qs_node_set_attr(c->g, c->node, &name), 0);
        if (to)
            CHECK_INT(qs_op_upgrade_graph(c->g, to, "m", &c->error), 0);
        CHECK_INT(case_run(c), 0);
        CHECK_STR(case_shape(c, 0), "int64[3]");
        CHECK(memcmp(case_data(c, 0), whole, sizeof(whole)) == 0);
        CHECK_INT(qs_node_int(&c->g->nodes[c->node], "to", 0), to ? QSIM_INT64 : 0);
        case_free(c);
    }
    op_case *c = case_new("", "Cast", 1);
    case_input(c, QSIM_FLOAT, SHAPE(3), x);
    case_node(c, 1);
    const qs_attr odd = {
        .name = "to", .type = QSIM_ATTR_STRING, .u.s = {(const uint8_t *)"INT", 3}};
    CHECK_INT(qs_node_set_attr(c->g, c->node, &odd), 0);
    CHECK_INT(case_infer(c), QSIM_E_UNSUPPORTED);
    case_free(c);
}

static void cast_one(int32_t from, const void *x, int32_t to, int64_t n, const void *expected) {
    op_case *c = case_new("", "Cast", 21);
    case_input(c, from, SHAPE(n), x);
    case_node(c, 1);
    CHECK_INT(qs_node_set_int(c->g, c->node, "to", to), 0);
    CHECK_INT(case_run(c), 0);
    CHECK(c->bytes[c->out[0]] > 0 && memcmp(case_data(c, 0), expected, c->bytes[c->out[0]]) == 0);
    case_free(c);
}

/* Bits by the tables of IEEE 754 and of ONNX's text on float8: ties to even, the largest values,
 * denormals; int64 rounds once. */
static void test_cast_narrow(void) {
    const float x[] = {1.0f,     -2.0f,      65504.0f, 65519.0f, 65520.0f,    0x1p-24f,
                       0x1p-25f, 0x1.8p-25f, -0.0f,    INFINITY, 0x1.002p+0f, 0x1.006p+0f};
    const uint16_t halves[] = {0x3c00, 0xc000, 0x7bff, 0x7bff, 0x7c00, 0x0001,
                               0x0000, 0x0001, 0x8000, 0x7c00, 0x3c00, 0x3c02};
    const uint16_t brains[] = {0x3f80, 0xc000, 0x4780, 0x4780, 0x4780, 0x3380,
                               0x3300, 0x3340, 0x8000, 0x7f80, 0x3f80, 0x3f80};
    const float back[] = {1.0f, -2.0f,    65504.0f, 65504.0f, INFINITY, 0x1p-24f,
                          0.0f, 0x1p-24f, -0.0f,    INFINITY, 1.0f,     0x1.008p+0f};
    cast_one(QSIM_FLOAT, x, QSIM_FLOAT16, 12, halves);
    cast_one(QSIM_FLOAT, x, QSIM_BFLOAT16, 12, brains);
    cast_one(QSIM_FLOAT16, halves, QSIM_FLOAT, 12, back);
    const double twice[] = {1.0 + 0x1p-11 + 0x1p-40,
                            1.0 + 0x1p-11}; /* a float between them: a tie */
    cast_one(QSIM_DOUBLE, twice, QSIM_FLOAT16, 2, (const uint16_t[]){0x3c01, 0x3c00});
    const int64_t wide[] = {0x4040000000000001, -2049};
    cast_one(QSIM_INT64, wide, QSIM_BFLOAT16, 2, (const uint16_t[]){0x5e81, 0xc500});
    const float few[] = {448.0f, 500.0f, -0.0f, 0x1p-9f, INFINITY, 57344.0f, 17.0f};
    cast_one(QSIM_FLOAT, few, QSIM_FLOAT8E4M3FN, 7,
             (const uint8_t[]){0x7e, 0x7e, 0x80, 0x01, 0x7e, 0x7e, 0x58});
    cast_one(QSIM_FLOAT, few, QSIM_FLOAT8E4M3FNUZ, 7,
             (const uint8_t[]){0x7f, 0x7f, 0x00, 0x02, 0x7f, 0x7f, 0x60});
    cast_one(QSIM_FLOAT, few, QSIM_FLOAT8E5M2, 7,
             (const uint8_t[]){0x5f, 0x60, 0x80, 0x18, 0x7b, 0x7b, 0x4c});
    const float coarse[] = {300.0f, -256.0f, 432.0f};
    cast_one(QSIM_FLOAT, coarse, QSIM_FLOAT8E4M3FN, 3, (const uint8_t[]){0x79, 0xf8, 0x7e});
    cast_one(QSIM_FLOAT8E4M3FN, (const uint8_t[]){0x7e, 0xfe, 0x79}, QSIM_FLOAT, 3,
             (const float[]){448.0f, -448.0f, 288.0f});
    cast_one(QSIM_FLOAT8E5M2FNUZ, (const uint8_t[]){0x7f, 0x40, 0x01}, QSIM_FLOAT, 3,
             (const float[]){57344.0f, 1.0f, 0x1p-17f});
    const float small[] = {7.9f, -1.0f, -8.0f, 3.0f, 9.0f};
    cast_one(QSIM_FLOAT, small, QSIM_INT4, 5, (const uint8_t[]){0xf7, 0x38, 0x09});
    cast_one(QSIM_INT4, (const uint8_t[]){0xf7, 0x38, 0x09}, QSIM_INT8, 5,
             (const int8_t[]){7, -1, -8, 3, -7});
    cast_one(QSIM_UINT4, (const uint8_t[]){0xf7, 0x38, 0x09}, QSIM_FLOAT, 5,
             (const float[]){7, 15, 8, 3, 9});
}

int main(void) {
    test_upgraded_bounds();
    uint64_t state = 11;
    for (size_t i = 0; i < N; i++)
        noise[i] = (float)(int32_t)test_random(&state) / 4e8f;
    test_broadcast();
    test_integers();
    test_legacy();
    test_consumed_inputs();
    test_fused();
    test_unary();
    test_clip();
    test_softmax();
    test_reduce();
    test_cast();
    cast_to_name();
    test_cast_narrow();
    return test_done();
}
