/* SPDX-License-Identifier: MIT */
/* RotaryEmbedding, RMSNormalization and TensorScatter against hand computation. */
#include "op_harness.h"

#include <math.h>

static void near_all(const op_case *c, size_t n, const float *expected, double tolerance) {
    const float *y = case_data(c, 0);
    for (size_t i = 0; i < n; i++)
        CHECK_NEAR(y[i], expected[i], tolerance);
}

/* ---- RotaryEmbedding ---- */

/* Quarter turns: position 1 takes (a, b) to (-b, a), position 0 leaves it. */
static const float quarter_cos[4] = {1, 1, 0, 0}, quarter_sin[4] = {0, 0, 1, 1};
static const float counted[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};

static void test_rotary(void) {
    op_case *c = case_new("", "RotaryEmbedding", 23); /* one head, two entries of 5, 4 rotated */
    case_input(c, QSIM_FLOAT, SHAPE(1, 1, 2, 5), counted);
    case_input(c, QSIM_FLOAT, SHAPE(2, 2), quarter_cos);
    case_input(c, QSIM_FLOAT, SHAPE(2, 2), quarter_sin);
    case_input(c, QSIM_INT64, SHAPE(1, 2), DIMS(1, 0));
    case_node(c, 1);
    CHECK_INT(qs_node_set_int(c->g, c->node, "rotary_embedding_dim", 4), 0);
    CHECK_INT(case_run(c), 0);
    near_all(c, 10, (const float[]){-3, -4, 1, 2, 5, 6, 7, 8, 9, 10}, 0);
    case_free(c);

    c = case_new("", "RotaryEmbedding",
                 23); /* (batch, sequence, heads * size), pairs side by side */
    case_input(c, QSIM_FLOAT, SHAPE(1, 2, 4), counted);
    case_input(c, QSIM_FLOAT, SHAPE(1, 2, 1), (const float[]){1, 0});
    case_input(c, QSIM_FLOAT, SHAPE(1, 2, 1), (const float[]){0, 1});
    case_node(c, 1);
    CHECK_INT(qs_node_set_int(c->g, c->node, "num_heads", 2), 0);
    CHECK_INT(qs_node_set_int(c->g, c->node, "interleaved", 1), 0);
    CHECK_INT(case_run(c), 0);
    near_all(c, 8, (const float[]){1, 2, 3, 4, -6, 5, -8, 7}, 0);
    case_free(c);

    c = case_new("com.microsoft", "RotaryEmbedding", 1); /* one position: the first entry's */
    case_input(c, QSIM_FLOAT, SHAPE(1, 1, 4), counted);
    case_input(c, QSIM_INT64, SHAPE(1), DIMS(1));
    case_input(c, QSIM_FLOAT, SHAPE(2, 2), quarter_cos);
    case_input(c, QSIM_FLOAT, SHAPE(2, 2), quarter_sin);
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    near_all(c, 4, (const float[]){-3, -4, 1, 2}, 0);
    case_free(c);
}

static void test_rotary_refused(void) {
    static const struct {
        int64_t rank3, half, heads, rotated;
    } bad[] = {{1, 2, 0, 0}, {1, 2, 3, 0}, {1, 3, 1, 0}, {0, 2, 0, 3}, {0, 3, 0, 6}};
    for (size_t i = 0; i < QS_COUNT(bad); i++) {
        op_case *c = case_new("", "RotaryEmbedding", 23);
        case_input(c, QSIM_FLOAT, bad[i].rank3 ? 3 : 4, DIMS(1, 1, bad[i].rank3 ? 4 : 1, 4), NULL);
        case_input(c, QSIM_FLOAT, SHAPE(1, 1, bad[i].half), NULL);
        case_input(c, QSIM_FLOAT, SHAPE(1, 1, bad[i].half), NULL);
        case_node(c, 1);
        qs_node_set_int(c->g, c->node, "num_heads", bad[i].heads);
        qs_node_set_int(c->g, c->node, "rotary_embedding_dim", bad[i].rotated);
        CHECK(case_infer(c) != 0);
        case_free(c);
    }
}

/* Sines of fewer positions than cosines, which positions are checked against. */
static void test_caches(void) {
    for (int64_t rows = 1; rows <= 2; rows++) {
        op_case *c = case_new("", "RotaryEmbedding", 23);
        case_input(c, QSIM_FLOAT, SHAPE(1, 1, 1, 4), counted);
        case_input(c, QSIM_FLOAT, SHAPE(2, 2), quarter_cos);
        case_input(c, QSIM_FLOAT, SHAPE(rows, 2), quarter_sin);
        case_input(c, QSIM_INT64, SHAPE(1, 1), DIMS(1));
        case_node(c, 1);
        CHECK_INT(case_infer(c), rows == 2 ? QSIM_OK : QSIM_E_SHAPE);
        case_free(c);
    }
}

/* ---- RMSNormalization ---- */

static void rms_one(const char *op, int64_t version, int64_t axis, int32_t rank,
                    const int64_t *dims, const float *scale, const float *expected) {
    static const float x[8] = {1, 2, 2, 4, -1, 1, 1, -1};
    op_case *c = case_new("", op, version);
    case_input(c, QSIM_FLOAT, SHAPE(2, 2, 2), x);
    case_input(c, QSIM_FLOAT, rank, dims, scale);
    case_node(c, 1);
    CHECK_INT(qs_node_set_int(c->g, c->node, "axis", axis), 0);
    CHECK_INT(qs_node_set_float(c->g, c->node, "epsilon", 0), 0);
    CHECK_INT(case_run(c), 0);
    near_all(c, 8, expected, 1e-6);
    case_free(c);
}

static void test_rms(void) {
    const float a = 1 / sqrtf(2.5f), b = 2 / sqrtf(2.5f); /* of 1, 2 and of 2, 4 */
    const float two[2] = {1, 10}, down[2] = {3, 5};
    rms_one("RMSNormalization", 23, -1, 1, DIMS(2), two,
            (const float[]){a, 10 * b, a, 10 * b, -1, 10, 1, -10});
    rms_one("SimplifiedLayerNormalization", 21, 2, 1, DIMS(2), two,
            (const float[]){a, 10 * b, a, 10 * b, -1, 10, 1, -10});
    /* 1, 2, 2, 4: mean square 6.25 */
    rms_one("RMSNormalization", 23, 1, 1, DIMS(1), two,
            (const float[]){0.4f, 0.8f, 0.8f, 1.6f, -1, 1, 1, -1});
    rms_one("RMSNormalization", 23, 1, 1, DIMS(2), two,
            (const float[]){0.4f, 8, 0.8f, 16, -1, 10, 1, -10});
    rms_one("RMSNormalization", 23, -2, 2, DIMS(2, 1), down,
            (const float[]){1.2f, 2.4f, 4, 8, -3, 3, 5, -5});
    op_case *c = case_new("", "RMSNormalization", 23); /* the scale has more than is normalized */
    case_input(c, QSIM_FLOAT, SHAPE(2, 2, 2), NULL);
    case_input(c, QSIM_FLOAT, SHAPE(2, 2), NULL);
    case_node(c, 1);
    CHECK_INT(case_infer(c), QSIM_E_SHAPE);
    case_free(c);
}

/* ---- TensorScatter ---- */

static int scatter(const char *mode, int64_t first, const float *expected) {
    static const float zeros[8] = {0};
    op_case *c = case_new("", "TensorScatter", 24); /* a cache of 4 entries of 2, an update of 2 */
    case_input(c, QSIM_FLOAT, SHAPE(1, 4, 2), zeros);
    case_input(c, QSIM_FLOAT, SHAPE(1, 2, 2), counted);
    case_input(c, QSIM_INT64, SHAPE(1), &first);
    case_node(c, 1);
    case_string(c, "mode", mode);
    const int code = case_run(c);
    if (!code)
        near_all(c, 8, expected, 0);
    case_free(c);
    return code;
}

static void test_scatter(void) {
    CHECK_INT(scatter("linear", 1, (const float[]){0, 0, 1, 2, 3, 4, 0, 0}), 0);
    CHECK_INT(scatter("circular", 3, (const float[]){3, 4, 0, 0, 0, 0, 1, 2}), 0);
    CHECK_INT(scatter("circular", 6, (const float[]){0, 0, 0, 0, 1, 2, 3, 4}), 0);
    CHECK_INT(scatter("both", 0, NULL), QSIM_E_VALUE);
}

int main(void) {
    test_rotary();
    test_rotary_refused();
    test_caches();
    test_rms();
    test_scatter();
    return test_done();
}
