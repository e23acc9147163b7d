/* SPDX-License-Identifier: MIT */
/* GridSample, AffineGrid, RoiAlign and MaxRoiPool: positions worked out by hand. */
#include "op_harness.h"

#include "op/rules.h"

#include <math.h>

static float ramp[200];

static const float *run_ok(op_case *c) {
    CHECK_INT(case_run(c), 0);
    return case_data(c, 0);
}

/* ---- GridSample ---- */

/* One row of four pixels 0, 1, 2, 3 sampled at x in pixels, y on the row. */
static double sample(const char *mode, const char *padding, bool aligned, double x) {
    const bool old = strcmp(mode, "bilinear") == 0 || strcmp(mode, "bicubic") == 0;
    op_case *c = case_new("", "GridSample", old ? 16 : 22);
    const float place[2] = {(float)(aligned ? x / 1.5 - 1 : (x * 2 + 1) / 4 - 1), 0};
    case_input(c, QSIM_FLOAT, SHAPE(1, 1, 1, 4), ramp);
    case_input(c, QSIM_FLOAT, SHAPE(1, 1, 1, 2), place);
    case_node(c, 1);
    case_string(c, "mode", mode);
    case_string(c, "padding_mode", padding);
    qs_node_set_int(c->g, c->node, "align_corners", aligned);
    const double y = (double)run_ok(c)[0];
    case_free(c);
    return y;
}

static void test_gridsample(void) {
    static const char *const linear[] = {"linear", "bilinear"};
    for (int i = 0; i < 2; i++) {
        CHECK_NEAR(sample(linear[i], "zeros", false, 1.25), 1.25, 1e-6);
        CHECK_NEAR(sample(linear[i], "zeros", true, 1.25), 1.25, 1e-6);
        CHECK_NEAR(sample(linear[i], "zeros", false, 3.25), 3 * 0.75, 1e-6);
        CHECK_NEAR(sample(linear[i], "border", false, 3.25), 3, 1e-6);
        CHECK_NEAR(sample(linear[i], "border", false, 9), 3, 0);
        /* mirrored at 3.5: 4.75 is 2.25; at 3: 4.75 is 1.25 */
        CHECK_NEAR(sample(linear[i], "reflection", false, 4.75), 2.25, 1e-6);
        CHECK_NEAR(sample(linear[i], "reflection", true, 4.75), 1.25, 1e-6);
        CHECK_NEAR(sample(linear[i], "reflection", true, -7.25), 1.25, 1e-5);
    }
    CHECK_NEAR(sample("nearest", "zeros", false, 1.25), 1, 0);
    CHECK_NEAR(sample("nearest", "zeros", false, 1.75), 2, 0);
    CHECK_NEAR(sample("nearest", "zeros", false, 2.5), 2, 0); /* ties to even */
    CHECK_NEAR(sample("nearest", "zeros", false, 4), 0, 0);
    CHECK_NEAR(sample("nearest", "border", false, 7), 3, 0);
    /* Keys' weights at 1/2 with a = -0.75: -3/32, 19/32, 19/32, -3/32 */
    CHECK_NEAR(sample("cubic", "zeros", false, 1.5), 1.5, 1e-6);
    CHECK_NEAR(sample("bicubic", "zeros", false, 2.5), (-3 + 2 * 19 + 3 * 19) / 32.0, 1e-6);
    CHECK_NEAR(sample("cubic", "border", true, 2.5), (-3 + 2 * 19 + 3 * 19 - 9) / 32.0, 1e-6);
    CHECK_NEAR(sample("bicubic", "border", false, 3.5), (-3 * 2 + 3 * (19 + 19 - 3)) / 32.0, 1e-6);
    CHECK_NEAR(sample("cubic", "border", true, 3.5), (-3 * 2 + 3 * (19 + 19 - 3)) / 32.0, 1e-6);
    CHECK_NEAR(sample("cubic", "border", false, 900), 3, 1e-6);
}

/* The two pixels around a position among n; an index of -1: outside. */
static void neighbours(float g, int64_t n, int64_t at[2], double weight[2]) {
    const double x = (double)(((g + 1) * (float)n - 1) / 2), first = floor(x);
    for (int k = 0; k < 2; k++) {
        const double i = first + k;
        at[k] = i >= 0 && i < (double)n ? (int64_t)i : -1;
        weight[k] = k ? x - first : 1 - (x - first);
    }
}

/* Many points in and around two images of three channels: the bits of the definition. */
static void test_points(void) {
    enum { N = 2, C = 3, H = 5, W = 7, POINTS = 23 * 31 };
    static float x[N * C * H * W], grid[N * POINTS * 2];
    uint64_t seed = 17;
    size_t wrong = 0;
    for (size_t i = 0; i < QS_COUNT(x); i++)
        x[i] = (float)(test_random(&seed) % 2001) / 1000 - 1;
    for (size_t i = 0; i < QS_COUNT(grid); i++)
        grid[i] = (float)(test_random(&seed) % 3001) / 1000 - 1.5f;
    op_case *c = case_new("", "GridSample", 20);
    case_input(c, QSIM_FLOAT, SHAPE(N, C, H, W), x);
    case_input(c, QSIM_FLOAT, SHAPE(N, 23, 31, 2), grid);
    case_node(c, 1);
    const float *y = run_ok(c);
    for (size_t i = 0; i < N * POINTS; i++) {
        int64_t row[2], column[2];
        double down[2], right[2];
        neighbours(grid[2 * i + 1], H, row, down);
        neighbours(grid[2 * i], W, column, right);
        for (size_t k = 0; k < C; k++) {
            const size_t plane = i / POINTS * C + k;
            double sum = 0;
            for (int t = 0; t < 4; t++)
                if (row[t / 2] >= 0 && column[t % 2] >= 0)
                    sum += down[t / 2] * right[t % 2] *
                           (double)x[(plane * H + (size_t)row[t / 2]) * W + (size_t)column[t % 2]];
            wrong += y[plane * POINTS + i % POINTS] != (float)sum;
        }
    }
    CHECK_INT(wrong, 0);
    case_free(c);
}

/* Two channels of a cube, at the middle of eight pixels and, of bytes, at one. */
static void test_volume(void) {
    const float places[6] = {0, 0, 0, 1, -1, 1};
    uint8_t bytes[16];
    op_case *c = case_new("", "GridSample", 20);
    case_input(c, QSIM_FLOAT, SHAPE(1, 2, 2, 2, 2), ramp);
    case_input(c, QSIM_FLOAT, SHAPE(1, 1, 1, 2, 3), places);
    case_node(c, 1);
    qs_node_set_int(c->g, c->node, "align_corners", 1);
    const float *y = run_ok(c);
    CHECK_STR(case_shape(c, 0), "float[1,2,1,1,2]");
    CHECK_NEAR(y[0], 3.5, 1e-6);
    CHECK_NEAR(y[1], 5, 1e-6); /* z 1, y 0, x 1 */
    CHECK_NEAR(y[2], 11.5, 1e-6);
    CHECK_NEAR(y[3], 13, 1e-6);
    case_free(c);
    for (int i = 0; i < 16; i++)
        bytes[i] = (uint8_t)(i * 3);
    c = case_new("", "GridSample", 20);
    case_input(c, QSIM_UINT8, SHAPE(1, 2, 2, 2, 2), bytes);
    case_input(c, QSIM_FLOAT, SHAPE(1, 1, 1, 2, 3), places);
    case_node(c, 1);
    case_string(c, "mode", "nearest");
    qs_node_set_int(c->g, c->node, "align_corners", 1);
    CHECK_INT(case_run(c), 0);
    CHECK_INT(((const uint8_t *)case_data(c, 0))[1], 15);
    CHECK_INT(((const uint8_t *)case_data(c, 0))[3], 39);
    case_free(c);
    c = case_new("", "GridSample", 20); /* the grid has too few coordinates */
    case_input(c, QSIM_FLOAT, SHAPE(1, 2, 2, 2, 2), ramp);
    case_input(c, QSIM_FLOAT, SHAPE(1, 1, 1, 2, 2), places);
    case_node(c, 1);
    CHECK_INT(case_infer(c), QSIM_E_SHAPE);
    case_free(c);
    c = case_new("", "GridSample", 16); /* modes change their names */
    case_input(c, QSIM_FLOAT, SHAPE(1, 1, 1, 4), ramp);
    case_input(c, QSIM_FLOAT, SHAPE(1, 1, 1, 2), places);
    case_node(c, 1);
    case_string(c, "mode", "bicubic");
    CHECK_INT(case_infer(c), 0);
    CHECK_INT(qs_op_upgrade_graph(c->g, 20, "m", &c->error), 0);
    CHECK(qs_node_string_is(&c->g->nodes[c->node], "mode", "cubic", false));
    case_free(c);
}

/* ---- AffineGrid ---- */

static void test_affinegrid(void) {
    const float theta[6] = {2, 1, 0.5f, 0, -1, 3};
    for (int aligned = 0; aligned < 2; aligned++) {
        op_case *c = case_new("", "AffineGrid", 20);
        case_input(c, QSIM_FLOAT, SHAPE(1, 2, 3), theta);
        case_ints(c, 4, DIMS(1, 7, 2, 4));
        case_node(c, 1);
        qs_node_set_int(c->g, c->node, "align_corners", aligned);
        const float *g = run_ok(c);
        CHECK_STR(case_shape(c, 0), "float[1,2,4,2]");
        for (int i = 0; i < 8; i++) {
            const double x = aligned ? -1 + i % 4 * 2.0 / 3 : -0.75 + i % 4 * 0.5;
            const double y = aligned ? -1 + i / 4 * 2.0 : -0.5 + i / 4;
            CHECK_NEAR(g[2 * i], 2 * x + y + 0.5, 1e-6);
            CHECK_NEAR(g[2 * i + 1], 3 - y, 1e-6);
        }
        case_free(c);
    }
}

/* ---- RoiAlign ---- */

/* A region (1, 1) to (5, 3) of an 8 x 8 ramp 8 y + x, in 1 x 2 bins. */
static const float *roi_align(op_case *c, const char *mode, const char *how, int64_t samples) {
    static const float region[4] = {2, 2, 10, 6};
    case_input(c, QSIM_FLOAT, SHAPE(1, 1, 8, 8), ramp);
    case_input(c, QSIM_FLOAT, SHAPE(1, 4), region);
    case_input(c, QSIM_INT64, SHAPE(1), DIMS(0));
    case_node(c, 1);
    case_string(c, "mode", mode);
    if (how)
        case_string(c, "coordinate_transformation_mode", how);
    qs_node_set_int(c->g, c->node, "output_width", 2);
    qs_node_set_int(c->g, c->node, "sampling_ratio", samples);
    const qs_attr scale = {.name = "spatial_scale", .type = QSIM_ATTR_FLOAT, .u.f = 0.5f};
    CHECK_INT(qs_node_set_attr(c->g, c->node, &scale), 0);
    return run_ok(c);
}

static void test_roialign(void) {
    op_case *c = case_new("", "RoiAlign", 10);
    const float *y = roi_align(c, "avg", NULL, 0);
    CHECK_STR(case_shape(c, 0), "float[1,1,1,2]");
    CHECK_NEAR(y[0], 8 * 2 + 2, 1e-5); /* centers of the bins: the ramp is linear */
    CHECK_NEAR(y[1], 8 * 2 + 4, 1e-5);
    CHECK_INT(qs_op_upgrade_graph(c->g, 16, "m", &c->error), 0);
    CHECK(qs_node_string_is(&c->g->nodes[c->node], "coordinate_transformation_mode",
                            "output_half_pixel", false));
    case_free(c);

    c = case_new("", "RoiAlign", 16); /* half a pixel up and left */
    y = roi_align(c, "avg", NULL, 2);
    CHECK_NEAR(y[0], 8 * 1.5 + 1.5, 1e-5);
    CHECK_NEAR(y[1], 8 * 1.5 + 3.5, 1e-5);
    case_free(c);

    c = case_new("", "RoiAlign", 22); /* one sample at (2, 2): its first corner has all weight */
    y = roi_align(c, "max", "output_half_pixel", 1);
    CHECK_NEAR(y[0], 18, 1e-5);
    CHECK_NEAR(y[1], 20, 1e-5);
    case_free(c);

    static const float region[4] = {0};
    c = case_new("", "RoiAlign", 16); /* an image that the batch has not */
    case_input(c, QSIM_FLOAT, SHAPE(1, 1, 8, 8), ramp);
    case_input(c, QSIM_FLOAT, SHAPE(1, 4), region);
    case_input(c, QSIM_INT64, SHAPE(1), DIMS(3));
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    CHECK_INT(c->fault.code, QSIM_E_VALUE);
    CHECK_STR(c->fault.what, "batch index");
    CHECK_INT(c->fault.value, 3);
    CHECK_INT(c->fault.end, 1);
    case_free(c);
}

/* ---- MaxRoiPool ---- */

/*
 * On an 8 x 8 ramp 8 y + x: scaled corners (1, 1.4) and (5, 3) are pixels (1, 1) to (5, 3), five by
 * three of them in 2 x 2 bins, which overlap; then a region beyond the image.
 */
static void test_maxroipool(void) {
    static const float regions[10] = {0, 2, 2.8f, 10, 6, 0, 40, 40, 44, 44};
    op_case *c = case_new("", "MaxRoiPool", 1);
    case_input(c, QSIM_FLOAT, SHAPE(1, 1, 8, 8), ramp);
    case_input(c, QSIM_FLOAT, SHAPE(2, 5), regions);
    case_node(c, 1);
    const qs_attr scale = {.name = "spatial_scale", .type = QSIM_ATTR_FLOAT, .u.f = 0.5f};
    const qs_attr bins = {
        .name = "pooled_shape", .type = QSIM_ATTR_INTS, .count = 2, .u.ints = DIMS(2, 2)};
    CHECK_INT(qs_node_set_attr(c->g, c->node, &scale), 0);
    CHECK_INT(qs_node_set_attr(c->g, c->node, &bins), 0);
    const float *y = run_ok(c);
    CHECK_STR(case_shape(c, 0), "float[2,1,2,2]");
    const int want[8] = {8 * 2 + 3, 8 * 2 + 5, 8 * 3 + 3, 8 * 3 + 5, 0, 0, 0, 0};
    for (int i = 0; i < 8; i++)
        CHECK_NEAR(y[i], want[i], 0);
    case_free(c);

    static const float wrong[5] = {1, 0, 0, 1, 1};
    c = case_new("", "MaxRoiPool", 1); /* an image that the batch has not */
    case_input(c, QSIM_FLOAT, SHAPE(1, 1, 8, 8), ramp);
    case_input(c, QSIM_FLOAT, SHAPE(1, 5), wrong);
    case_node(c, 1);
    CHECK_INT(qs_node_set_attr(c->g, c->node, &bins), 0);
    CHECK_INT(case_run(c), 0);
    CHECK(c->fault.code != 0);
    case_free(c);
}

int main(void) {
    for (int i = 0; i < 200; i++)
        ramp[i] = (float)i;
    test_gridsample();
    test_points();
    test_volume();
    test_affinegrid();
    test_roialign();
    test_maxroipool();
    return test_done();
}
