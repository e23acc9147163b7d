/* SPDX-License-Identifier: MIT */
/* Col2Im and MaxUnpool, by hand. */
#include "op_harness.h"

static void test_col2im(void) {
    /* Windows of 2 x 2 over 3 x 3 pixels: entries are 1, 10, 100, 1000 times the number of the
     * window. */
    float columns[16];
    static const float want[9] = {1, 12, 20, 103, 1234, 2040, 300, 3400, 4000};
    for (int i = 0; i < 16; i++)
        columns[i] = (float)(i % 4 + 1) * (i / 4 == 0   ? 1
                                           : i / 4 == 1 ? 10
                                           : i / 4 == 2 ? 100
                                                        : 1000);
    op_case *c = case_new("", "Col2Im", 18);
    case_input(c, QSIM_FLOAT, SHAPE(1, 4, 4), columns);
    case_ints(c, 2, DIMS(3, 3));
    case_ints(c, 2, DIMS(2, 2));
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    CHECK_STR(case_shape(c, 0), "float[1,1,3,3]");
    for (int i = 0; i < 9; i++) {
        double sum = 0; /* over windows (wy, wx) that cover the pixel */
        for (int w = 0; w < 4; w++) {
            const int y = i / 3 - w / 2, x = i % 3 - w % 2;
            if (y >= 0 && y < 2 && x >= 0 && x < 2)
                sum += (double)columns[(y * 2 + x) * 4 + w];
        }
        CHECK_NEAR(((const float *)case_data(c, 0))[i], sum, 0);
    }
    CHECK_NEAR(((const float *)case_data(c, 0))[0], want[0], 0);
    CHECK_NEAR(((const float *)case_data(c, 0))[8], want[8], 0);
    case_free(c);

    /* One axis, dilated and padded: entries 0 and 2 of windows that begin at -1 and 1. */
    static const int32_t list[4] = {1, 2, 3, 4};
    c = case_new("", "Col2Im", 18);
    case_input(c, QSIM_INT32, SHAPE(1, 2, 2), list);
    case_ints(c, 1, DIMS(4));
    case_ints(c, 1, DIMS(2));
    case_node(c, 1);
    CHECK_INT(qs_node_set_ints(c->g, c->node, "dilations", DIMS(2), 1), 0);
    CHECK_INT(qs_node_set_ints(c->g, c->node, "strides", DIMS(2), 1), 0);
    CHECK_INT(qs_node_set_ints(c->g, c->node, "pads", DIMS(1, 0), 2), 0);
    CHECK_INT(case_run(c), 0);
    const int32_t *y = case_data(c, 0);
    CHECK(y[0] == 0 && y[1] == 3 + 2 && y[2] == 0 && y[3] == 4);
    case_free(c);

    c = case_new("", "Col2Im", 18); /* as many columns as there are no windows */
    static const float five[4 * 5] = {0};
    case_input(c, QSIM_FLOAT, SHAPE(1, 4, 5), five);
    case_ints(c, 2, DIMS(3, 3));
    case_ints(c, 2, DIMS(2, 2));
    case_node(c, 1);
    CHECK_INT(case_infer(c), QSIM_E_SHAPE);
    case_free(c);
}

/* Maxima at 5, 7, 13, 15 of 4 x 4, as they are or in 5 x 5. */
static void test_maxunpool(void) {
    static const float maxima[4] = {5, 6, 7, 8};
    for (int64_t size = 4; size < 6; size++) {
        op_case *c = case_new("", "MaxUnpool", 11);
        case_input(c, QSIM_FLOAT, SHAPE(1, 1, 2, 2), maxima);
        case_input(c, QSIM_INT64, SHAPE(1, 1, 2, 2), DIMS(5, 7, 13, 15));
        if (size > 4)
            case_ints(c, 4, DIMS(1, 1, size, size));
        case_node(c, 1);
        CHECK_INT(qs_node_set_ints(c->g, c->node, "kernel_shape", DIMS(2, 2), 2), 0);
        CHECK_INT(qs_node_set_ints(c->g, c->node, "strides", DIMS(2, 2), 2), 0);
        CHECK_INT(case_run(c), 0);
        CHECK_INT(case_out(c, 0)->dims[2].size, size);
        for (int64_t i = 0; i < size * size; i++) {
            const int64_t y = i / size, x = i % size;
            const bool hit = (y == 1 || y == 3) && (x == 1 || x == 3);
            CHECK_NEAR(((const float *)case_data(c, 0))[i], hit ? maxima[y / 3 * 2 + x / 3] : 0, 0);
        }
        case_free(c);
    }
}

int main(void) {
    test_col2im();
    test_maxunpool();
    return test_done();
}
