/* SPDX-License-Identifier: MIT */
/* Slice, Pad, Gather, Constant, Dropout, Shape against plain index arithmetic. */
#include "op_harness.h"

#include "op/rules.h"

static float ramp[1000];

/* ---- Slice ---- */

static void slice_one(int64_t n, int64_t start, int64_t end, int64_t step, int64_t count,
                      const float *expected) {
    op_case *c = case_new("", "Slice", 13);
    case_input(c, QSIM_FLOAT, 1, &n, ramp);
    case_ints(c, 1, &start);
    case_ints(c, 1, &end);
    case_absent(c);
    case_ints(c, 1, &step);
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    CHECK_INT(case_out(c, 0)->dims[0].size, count);
    CHECK(count == 0 || memcmp(case_data(c, 0), expected, (size_t)count * 4) == 0);
    case_free(c);
}

static void test_slice(void) {
    slice_one(6, 1, 4, 1, 3, (const float[]){1, 2, 3});
    slice_one(6, 0, INT64_MAX, 2, 3, (const float[]){0, 2, 4});
    slice_one(6, -3, -1, 1, 2, (const float[]){3, 4});
    slice_one(6, -1, INT64_MIN, -1, 6, (const float[]){5, 4, 3, 2, 1, 0});
    slice_one(6, 4, 0, -3, 2, (const float[]){4, 1});
    slice_one(6, 10, 20, 1, 0, NULL);
    slice_one(6, 4, 2, 1, 0, NULL);
    slice_one(6, 5, INT64_MIN, INT64_MIN, 1, (const float[]){5});
    slice_one(6, 0, INT64_MAX, INT64_MAX, 1, (const float[]){0});
    slice_one(0, 0, 5, 1, 0, NULL);
    for (int64_t n = 2; n < 80; n++) { /* rows of vectors, and what is left of them */
        float every[80];
        for (int64_t i = 0; i < n; i++)
            every[i] = (float)(2 * i + 1);
        slice_one(n, 1, INT64_MAX, 2, n / 2, every);
    }

    op_case *c = case_new("", "Slice", 9); /* attributes, two axes */
    case_input(c, QSIM_FLOAT, SHAPE(4, 5, 6), ramp);
    case_node(c, 1);
    CHECK_INT(qs_node_set_ints(c->g, c->node, "starts", DIMS(1, 2), 2), 0);
    CHECK_INT(qs_node_set_ints(c->g, c->node, "ends", DIMS(3, 100), 2), 0);
    CHECK_INT(qs_node_set_ints(c->g, c->node, "axes", DIMS(0, -1), 2), 0);
    CHECK_INT(case_run(c), 0);
    CHECK_STR(case_shape(c, 0), "float[2,5,4]");
    const float *y = case_data(c, 0);
    for (size_t k = 0; k < 40; k++)
        CHECK_NEAR(y[k], (k / 20 + 1) * 30 + k / 4 % 5 * 6 + k % 4 + 2, 0);
    CHECK_INT(qs_op_upgrade_graph(c->g, 13, "m", &c->error), 0);
    CHECK_INT(qs_op_infer_graph(c->g, "m", &c->error), 0);
    CHECK_STR(case_shape(c, 0), "float[2,5,4]");
    case_free(c);

    static const struct {
        int64_t start, end, step;
        int32_t ends;
    } bad[] = {{0, 1, 0, 1}, {0, 1, 1, 2}};
    for (size_t i = 0; i < QS_COUNT(bad); i++) {
        c = case_new("", "Slice", 13);
        case_input(c, QSIM_FLOAT, SHAPE(4), ramp);
        case_ints(c, 1, &bad[i].start);
        case_ints(c, bad[i].ends, DIMS(1, 1));
        case_absent(c);
        case_ints(c, 1, &bad[i].step);
        case_node(c, 1);
        CHECK(case_infer(c) != 0);
        case_free(c);
    }
}

/* Starts, steps and sizes drawn at random, all axes at once, on elements of 1 and of 4 bytes. */
static void slice_random(uint64_t *seed) {
    int64_t dims[5], starts[5], ends[5], axes[5], steps[5], count[5], elements = 1, made = 1;
    const int32_t rank = 1 + (int32_t)(test_random(seed) % 5);
    const bool bytes = test_random(seed) % 2;
    static uint8_t low[9 * 9 * 9 * 9 * 9];
    static float high[9 * 9 * 9 * 9 * 9];
    for (int32_t i = 0; i < rank; i++) {
        const int64_t n = dims[i] = 1 + (int64_t)(test_random(seed) % (i < 2 ? 9 : 5));
        const bool whole = test_random(seed) % 2;
        axes[i] = i;
        starts[i] = whole ? 0 : (int64_t)(test_random(seed) % (uint64_t)n);
        steps[i] = whole ? 1 : (int64_t)(test_random(seed) % 3) + 1;
        steps[i] *= !whole && test_random(seed) % 4 == 0 ? -1 : 1;
        ends[i] = steps[i] < 0 ? INT64_MIN : INT64_MAX;
        count[i] = steps[i] < 0 ? starts[i] / -steps[i] + 1 : (n - starts[i] - 1) / steps[i] + 1;
        elements *= n;
        made *= count[i];
    }
    for (int64_t i = 0; i < elements; i++) {
        low[i] = (uint8_t)(i * 31 + i / 251);
        high[i] = (float)i;
    }
    op_case *c = case_new("", "Slice", 13);
    case_input(c, bytes ? QSIM_UINT8 : QSIM_FLOAT, rank, dims, bytes ? (void *)low : (void *)high);
    case_ints(c, rank, starts);
    case_ints(c, rank, ends);
    case_ints(c, rank, axes);
    case_ints(c, rank, steps);
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    bool same = true;
    for (int64_t k = 0; k < made; k++) {
        int64_t rest = k, at = 0, step = 1;
        for (int32_t i = rank - 1; i >= 0; i--) {
            at += (starts[i] + rest % count[i] * steps[i]) * step;
            rest /= count[i];
            step *= dims[i];
        }
        same = same && (bytes ? ((const uint8_t *)case_data(c, 0))[k] == low[at]
                              : ((const float *)case_data(c, 0))[k] == high[at]);
    }
    CHECK(same);
    case_free(c);
}

/* ---- Pad ---- */

static int64_t pad_source(const char *mode, int64_t i, int64_t n) {
    if (i >= 0 && i < n)
        return i;
    if (strcmp(mode, "edge") == 0)
        return i < 0 ? 0 : n - 1;
    if (strcmp(mode, "reflect") == 0)
        return i < 0 ? -i : 2 * n - 2 - i;
    if (strcmp(mode, "wrap") == 0)
        return ((i % n) + n) % n;
    return -1;
}

static void pad_one(const char *mode, const int64_t pads[6]) {
    const int64_t d[3] = {3, 4, 5};
    float fill = -7;
    op_case *c = case_new("", "Pad", 19);
    case_input(c, QSIM_FLOAT, 3, d, ramp);
    case_ints(c, 6, pads);
    case_const(c, QSIM_FLOAT, 0, NULL, &fill);
    case_node(c, 1);
    case_string(c, "mode", mode);
    CHECK_INT(case_run(c), 0);
    const qs_value *v = case_out(c, 0);
    const float *y = case_data(c, 0);
    int64_t at[3], wrong = 0;
    for (at[0] = -pads[0]; at[0] < d[0] + pads[3]; at[0]++)
        for (at[1] = -pads[1]; at[1] < d[1] + pads[4]; at[1]++)
            for (at[2] = -pads[2]; at[2] < d[2] + pads[5]; at[2]++) {
                float expected = fill;
                int64_t s[3];
                for (int32_t i = 0; i < 3; i++)
                    s[i] = pad_source(mode, at[i], d[i]);
                if (s[0] >= 0 && s[1] >= 0 && s[2] >= 0)
                    expected = ramp[(s[0] * 4 + s[1]) * 5 + s[2]];
                wrong += *y++ != expected;
            }
    CHECK_INT(wrong, 0);
    for (int32_t i = 0; i < 3; i++)
        CHECK_INT(v->dims[i].size, d[i] + pads[i] + pads[i + 3]);
    case_free(c);
}

static void test_pad(void) {
    static const char *const modes[] = {"constant", "edge", "reflect", "wrap"};
    for (size_t i = 0; i < 4; i++) {
        pad_one(modes[i], DIMS(1, 2, 3, 2, 0, 4));
        pad_one(modes[i], DIMS(0, 0, 0, 0, 0, 0));
        pad_one(modes[i], DIMS(0, 3, 0, 0, 1, 2));
        pad_one(modes[i], DIMS(1, -1, 0, 0, -2, 2));
        pad_one(modes[i], DIMS(0, 0, 1, 0, 0, 3)); /* of the last axis only */
        pad_one(modes[i], DIMS(0, -1, 2, 0, 0, -1));
    }
    op_case *c = case_new("", "Pad", 13); /* wider than the axis */
    case_input(c, QSIM_FLOAT, SHAPE(3), ramp);
    case_ints(c, 2, DIMS(3, 0));
    case_node(c, 1);
    case_string(c, "mode", "reflect");
    CHECK_INT(case_infer(c), QSIM_E_VALUE);
    case_free(c);
    c = case_new("", "Pad", 13);
    case_input(c, QSIM_FLOAT, SHAPE(3), ramp);
    case_ints(c, 2, DIMS(INT64_MAX, INT64_MAX));
    case_node(c, 1);
    CHECK_INT(case_infer(c), QSIM_E_VALUE);
    case_free(c);
    c = case_new("", "Pad", 18); /* axes */
    case_input(c, QSIM_FLOAT, SHAPE(3, 4), ramp);
    case_ints(c, 2, DIMS(1, 2));
    case_absent(c);
    case_ints(c, 1, DIMS(-1));
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    CHECK_STR(case_shape(c, 0), "float[3,7]");
    CHECK_NEAR(((const float *)case_data(c, 0))[8], 4, 0);
    case_free(c);
    c = case_new("", "Pad", 2); /* attributes */
    case_input(c, QSIM_FLOAT, SHAPE(2), ramp);
    case_node(c, 1);
    CHECK_INT(qs_node_set_ints(c->g, c->node, "pads", DIMS(1, 1), 2), 0);
    CHECK_INT(qs_node_set_float(c->g, c->node, "value", 9), 0);
    CHECK_INT(case_run(c), 0);
    CHECK_NEAR(((const float *)case_data(c, 0))[3], 9, 0);
    CHECK_INT(qs_op_upgrade_graph(c->g, 13, "m", &c->error), 0);
    CHECK_INT(c->g->nodes[c->node].input_count, 3);
    case_free(c);
}

/* ---- rows ---- */

/* Every length with a case of its own, and nothing between the rows. */
static void test_copy_rows(void) {
    static uint8_t x[3 * 310], y[3 * 320], expected[3 * 320];
    for (size_t i = 0; i < sizeof(x); i++)
        x[i] = (uint8_t)(i * 37 + i / 256);
    for (size_t n = 0; n <= 300; n += n < 40 ? 1 : 13) {
        const size_t x_step = n + 7, y_step = n + 11;
        memset(y, 99, sizeof(y));
        memset(expected, 99, sizeof(expected));
        for (size_t i = 0; i < 3 * n; i++)
            expected[i / n * y_step + i % n] = x[(2 - i / n) * x_step + i % n];
        qs_copy_rows(x + 2 * x_step, -(ptrdiff_t)x_step, y, (ptrdiff_t)y_step, n, 3);
        CHECK(memcmp(y, expected, sizeof(y)) == 0);
    }
}

/* Rows that are megabytes together, and rows of a megabyte, in the pieces between checks for a
 * stop. */
static void test_long_rows(void) {
    static const size_t sizes[][2] = {
        {0, 3}, {1, 3000001}, {12, 250000}, {300, 9001}, {1500000, 2}};
    enum { MOST = 3 << 20 };
    uint8_t *x = malloc(2 * MOST), *y = malloc(2 * MOST);
    qsim_ctx *ctx;
    CHECK_INT(qs_ctx_hold_bare(NULL, &ctx, NULL), QSIM_OK);
    for (size_t i = 0; i < 2 * MOST; i++)
        x[i] = (uint8_t)(i * 37 + i / 256);
    for (size_t k = 0; k < QS_COUNT(sizes); k++) {
        const size_t n = sizes[k][0], rows = sizes[k][1];
        size_t wrong = 0;
        memset(y, 99, 2 * MOST);
        qs_copy_many_rows(ctx, x, (ptrdiff_t)n, y, (ptrdiff_t)n + 1, n, rows);
        for (size_t i = 0; i < rows * (n + 1); i++)
            wrong += y[i] != (i % (n + 1) == n ? 99 : x[i / (n + 1) * n + i % (n + 1)]);
        CHECK_INT(wrong, 0);
        qs_stop stop = {.code = QSIM_E_CANCELLED, .outer = ctx->stop};
        qsim_ctx view;
        qs_ctx_view(ctx, &stop, &view);
        qs_copy_many_rows(&view, x, (ptrdiff_t)n, memset(y, 99, 2 * MOST), (ptrdiff_t)n, n, rows);
        CHECK(!n || y[rows * n - 1] == 99); /* the last row is not copied */
    }
    qs_ctx_drop(ctx);
    free(x);
    free(y);
}

/* ---- Gather ---- */

static void test_gather(void) {
    op_case *c = case_new("", "Gather", 13);
    case_input(c, QSIM_FLOAT, SHAPE(2, 3, 4), ramp);
    static const int64_t picks[] = {2, -3, 1, 0};
    case_const(c, QSIM_INT64, SHAPE(2, 2), picks);
    case_node(c, 1);
    CHECK_INT(qs_node_set_int(c->g, c->node, "axis", 1), 0);
    CHECK_INT(case_run(c), 0);
    CHECK_STR(case_shape(c, 0), "float[2,2,2,4]");
    static const size_t from[] = {2, 0, 1, 0};
    const float *y = case_data(c, 0);
    for (size_t k = 0; k < 32; k++)
        CHECK_NEAR(y[k], k / 16 * 12 + from[k / 4 % 4] * 4 + k % 4, 0);
    case_free(c);
    static const int64_t outside[] = {3, -4, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < 4; i++) {
        c = case_new("", "Gather", 13);
        case_input(c, QSIM_FLOAT, SHAPE(3), ramp);
        case_const(c, QSIM_INT64, 0, NULL, &outside[i]);
        case_node(c, 1);
        CHECK_INT(case_infer(c), QSIM_E_VALUE);
        case_free(c);
    }
}

/* ---- Constant, Dropout, Shape ---- */

static void test_sources(void) {
    op_case *c = case_new("", "Constant", 13);
    case_node(c, 1);
    CHECK_INT(qs_node_set_ints(c->g, c->node, "value_ints", DIMS(4, 5, 6), 3), 0);
    CHECK_INT(case_run(c), 0);
    CHECK_STR(case_shape(c, 0), "int64[3]");
    CHECK_INT(((const int64_t *)case_data(c, 0))[2], 6);
    case_free(c);
    c = case_new("", "Constant", 13);
    case_node(c, 1);
    CHECK_INT(case_infer(c), QSIM_E_GRAPH);
    case_free(c);

    c = case_new("", "Dropout", 13);
    case_input(c, QSIM_FLOAT, SHAPE(5), ramp);
    case_node(c, 2);
    CHECK_INT(case_run(c), 0);
    CHECK_STR(case_shape(c, 1), "bool[5]");
    CHECK(memcmp(case_data(c, 0), ramp, 20) == 0);
    CHECK(memcmp(case_data(c, 1), "\1\1\1\1\1", 5) == 0);
    case_free(c);
    const uint8_t on = 1;
    const float none = 0;
    c = case_new("", "Dropout", 13);
    case_input(c, QSIM_FLOAT, SHAPE(5), ramp);
    case_const(c, QSIM_FLOAT, 0, NULL, &none);
    case_const(c, QSIM_BOOL, 0, NULL, &on);
    case_node(c, 2);
    CHECK_INT(case_run(c), 0);
    CHECK(memcmp(case_data(c, 0), ramp, 20) == 0);
    CHECK(memcmp(case_data(c, 1), "\1\1\1\1\1", 5) == 0);
    case_free(c);

    c = case_new("", "Shape", 15);
    case_input(c, QSIM_FLOAT, SHAPE(2, 3, 4), ramp);
    case_node(c, 1);
    CHECK_INT(qs_node_set_int(c->g, c->node, "start", -2), 0);
    CHECK_INT(case_run(c), 0);
    CHECK_STR(case_shape(c, 0), "int64[2]");
    CHECK_INT(((const int64_t *)case_data(c, 0))[0], 3);
    case_free(c);
}

int main(void) {
    uint64_t seed = 5;
    for (size_t i = 0; i < QS_COUNT(ramp); i++)
        ramp[i] = (float)i;
    test_slice();
    for (int32_t i = 0; i < 3000; i++)
        slice_random(&seed);
    test_pad();
    test_copy_rows();
    test_long_rows();
    test_gather();
    test_sources();
    return test_done();
}
