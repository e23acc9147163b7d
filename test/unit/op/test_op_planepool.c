/* SPDX-License-Identifier: MIT */
/* LpPool, GlobalLpPool, GlobalMaxPool, and convolutions' depth, against explicit sums. */
#include "op_harness.h"

#include <math.h>

static float ramp[400];

static void test_lppool(void) {
    for (int power = 1; power < 4; power++) {
        op_case *c = case_new("", "LpPool", 18);
        case_input(c, QSIM_FLOAT, SHAPE(1, 2, 4, 5), ramp);
        case_node(c, 1);
        CHECK_INT(qs_node_set_ints(c->g, c->node, "kernel_shape", DIMS(2, 2), 2), 0);
        CHECK_INT(qs_node_set_ints(c->g, c->node, "dilations", DIMS(2, 1), 2), 0);
        CHECK_INT(qs_node_set_ints(c->g, c->node, "pads", DIMS(0, 1, 0, 0), 4), 0);
        qs_node_set_int(c->g, c->node, "p", power);
        CHECK_INT(case_run(c), 0);
        CHECK_STR(case_shape(c, 0), "float[1,2,2,5]");
        for (int i = 0; i < 20; i++) {
            const int plane = i / 10 * 20, y = i / 5 % 2, x = i % 5;
            double sum = 0;
            for (int k = 0; k < 4; k++)
                if (x - 1 + k % 2 >= 0)
                    sum +=
                        pow(fabs((double)ramp[plane + (y + k / 2 * 2) * 5 + x - 1 + k % 2]), power);
            CHECK_NEAR(((const float *)case_data(c, 0))[i], pow(sum, 1.0 / power), 1e-4);
        }
        case_free(c);
    }
}

static void test_global(void) {
    op_case *c = case_new("", "GlobalMaxPool", 1);
    case_input(c, QSIM_FLOAT, SHAPE(1, 3, 2, 3, 4), ramp);
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    CHECK_STR(case_shape(c, 0), "float[1,3,1,1,1]");
    for (int i = 0; i < 3; i++) {
        float most = -INFINITY;
        for (int k = 0; k < 24; k++)
            most = fmaxf(most, ramp[24 * i + k]);
        CHECK_NEAR(((const float *)case_data(c, 0))[i], most, 0);
    }
    case_free(c);
    for (int64_t area = 1; area <= 200; area += area < 60 ? 7 : 1) { /* NaNs are passed over */
        static float x[2 * 200];
        for (int i = 0; i < 2 * area; i++)
            x[i] = i % 5 == 2 ? NAN : ramp[i * 37 % 60] - (float)(i % 200);
        c = case_new("", "GlobalMaxPool", 1);
        case_input(c, QSIM_FLOAT, SHAPE(1, 2, area), x);
        case_node(c, 1);
        CHECK_INT(case_run(c), 0);
        for (int i = 0; i < 2; i++) {
            float most = -INFINITY;
            for (int64_t k = 0; k < area; k++)
                most = fmaxf(most, x[i * area + k]);
            CHECK_NEAR(((const float *)case_data(c, 0))[i], most, 0);
        }
        case_free(c);
    }
    c = case_new("", "GlobalMaxPool", 1); /* of no numbers: the least float */
    case_input(c, QSIM_FLOAT, SHAPE(1, 2, 3, 0), ramp);
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    CHECK_STR(case_shape(c, 0), "float[1,2,1,1]");
    CHECK(((const float *)case_data(c, 0))[1] == -INFINITY);
    case_free(c);
    c = case_new("", "GlobalLpPool", 1);
    case_input(c, QSIM_FLOAT, SHAPE(1, 2, 5), ramp);
    case_node(c, 1);
    const qs_attr p = {.name = "p", .type = QSIM_ATTR_FLOAT, .u.f = 1.0f};
    CHECK_INT(qs_node_set_attr(c->g, c->node, &p), 0);
    CHECK_INT(case_run(c), 0);
    for (int i = 0; i < 2; i++) {
        double sum = 0;
        for (int k = 0; k < 5; k++)
            sum += fabs((double)ramp[5 * i + k]);
        CHECK_NEAR(((const float *)case_data(c, 0))[i], sum, 1e-5);
    }
    CHECK_INT(qs_op_upgrade_graph(c->g, 18, "m", &c->error), 0);
    CHECK_INT(qs_node_int(&c->g->nodes[c->node], "p", 0), 1);
    case_free(c);
}

/* Maxima over three axes with Indices by rows and by columns, and means with and without pads. */
static void test_volume(void) {
    static const float x[8] = {1, 5, 3, 2, 8, 4, 7, 6}; /* 2 x 2 x 2 */
    for (int columns = 0; columns < 2; columns++) {
        op_case *c = case_new("qsim", "PlaneMaxPool", 1);
        case_input(c, QSIM_FLOAT, SHAPE(1, 1, 2, 2, 2), x);
        case_node(c, 2);
        CHECK_INT(qs_node_set_ints(c->g, c->node, "kernel_shape", DIMS(2, 2, 1), 3), 0);
        qs_node_set_int(c->g, c->node, "storage_order", columns);
        CHECK_INT(case_run(c), 0);
        CHECK_NEAR(((const float *)case_data(c, 0))[0], 8, 0);
        CHECK_NEAR(((const float *)case_data(c, 0))[1], 6, 0);
        CHECK_INT(((const int64_t *)case_data(c, 1))[0], columns ? 1 : 4);
        CHECK_INT(((const int64_t *)case_data(c, 1))[1], 7);
        case_free(c);
    }
    for (int pads = 0; pads < 2; pads++) {
        op_case *c = case_new("qsim", "PlaneAveragePool", 1);
        case_input(c, QSIM_FLOAT, SHAPE(1, 1, 2, 2, 2), x);
        case_node(c, 1);
        CHECK_INT(qs_node_set_ints(c->g, c->node, "kernel_shape", DIMS(2, 2, 2), 3), 0);
        CHECK_INT(qs_node_set_ints(c->g, c->node, "pads", DIMS(1, 0, 0, 0, 0, 0), 6), 0);
        qs_node_set_int(c->g, c->node, "count_include_pad", pads);
        CHECK_INT(case_run(c), 0);
        CHECK_STR(case_shape(c, 0), "float[1,1,2,1,1]");
        CHECK_NEAR(((const float *)case_data(c, 0))[0], 11.0 / (pads ? 8 : 4), 1e-6);
        CHECK_NEAR(((const float *)case_data(c, 0))[1], 36.0 / 8, 1e-6);
        case_free(c);
    }
}

/* Columns of a zero point at the border; sums of slices that a stride of 1 lays over each other. */
static void test_depth(void) {
    const uint8_t x[6] = {1, 2, 3, 4, 5, 6}, zero = 9; /* two channels of three slices */
    static const uint8_t want[12] = {9, 1, 9, 4, 1, 2, 4, 5, 2, 3, 5, 6};
    op_case *c = case_new("qsim", "DepthColumns", 1);
    case_input(c, QSIM_UINT8, SHAPE(1, 2, 3, 1, 1), x);
    case_const(c, QSIM_UINT8, 0, NULL, &zero);
    case_node(c, 1);
    qs_node_set_int(c->g, c->node, "kernel", 2);
    qs_node_set_int(c->g, c->node, "before", 1);
    CHECK_INT(case_run(c), 0);
    CHECK_STR(case_shape(c, 0), "uint8[3,4,1,1]");
    CHECK(memcmp(case_data(c, 0), want, sizeof(want)) == 0);
    case_free(c);

    static const float parts[4] = {1, 10, 100, 1000}, bias = 0.5f; /* two slices of two taps */
    static const float sums[3] = {1.5f, 110.5f, 1000.5f};
    c = case_new("qsim", "DepthSum", 1);
    case_input(c, QSIM_FLOAT, SHAPE(2, 2, 1, 1), parts);
    case_input(c, QSIM_FLOAT, SHAPE(1, 1, 2, 1, 1), parts);
    case_const(c, QSIM_FLOAT, SHAPE(1), &bias);
    case_node(c, 1);
    qs_node_set_int(c->g, c->node, "kernel", 2);
    CHECK_INT(case_run(c), 0);
    CHECK_STR(case_shape(c, 0), "float[1,1,3,1,1]");
    CHECK(memcmp(case_data(c, 0), sums, sizeof(sums)) == 0);
    case_free(c);
}

int main(void) {
    for (int i = 0; i < 400; i++)
        ramp[i] = (float)(i * 7 % 31) / 4 - 3;
    test_lppool();
    test_global();
    test_volume();
    test_depth();
    return test_done();
}
