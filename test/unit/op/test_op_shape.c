/* SPDX-License-Identifier: MIT */
/* Shapes, movement operators and the table. */
#include "op_harness.h"

static float ramp[4096];

static op_case *ramp_case(const char *op_type, int64_t version, int32_t rank, const int64_t *dims) {
    op_case *c = case_new("", op_type, version);
    case_input(c, QSIM_FLOAT, rank, dims, ramp);
    return c;
}

static void reshape_one(int64_t version, int32_t rank, const int64_t *dims, int64_t count,
                        const int64_t *shape, const char *expected) {
    op_case *c = ramp_case("Reshape", version, rank, dims);
    case_ints(c, count, shape);
    case_node(c, 1);
    int code = case_infer(c);
    if (expected) {
        CHECK_INT(code, 0);
        CHECK_STR(case_shape(c, 0), expected);
    } else {
        CHECK(code != 0);
        CHECK(strstr(c->error.message, "Reshape") != NULL);
        CHECK(strstr(c->error.message, "'n'") != NULL);
    }
    case_free(c);
}

static void test_reshape(void) {
    reshape_one(13, SHAPE(2, 3, 4), 2, DIMS(4, 6), "float[4,6]");
    reshape_one(13, SHAPE(2, 3, 4), 2, DIMS(0, -1), "float[2,12]");
    reshape_one(13, SHAPE(2, 3, 4), 1, DIMS(-1), "float[24]");
    reshape_one(13, SHAPE(2, 3, 4), 3, DIMS(0, 0, 0), "float[2,3,4]");
    reshape_one(13, SHAPE(-1, 3, 4), 2, DIMS(0, -1), "float[-1,12]");
    reshape_one(13, SHAPE(-1, 3, 4), 2, DIMS(-1, 12), "float[-1,12]");
    reshape_one(13, SHAPE(-1, 3, 4), 2, DIMS(-1, 6), "float[-1,6]");
    reshape_one(13, SHAPE(0, 3), 2, DIMS(3, 0), NULL); /* axis 1 is 3: 9 elements, not 0 */
    reshape_one(13, SHAPE(2, 3), 2, DIMS(4, 2), NULL);
    reshape_one(13, SHAPE(2, 3), 2, DIMS(-1, 4), NULL);
    reshape_one(13, SHAPE(2, 3), 2, DIMS(-1, -1), NULL);
    reshape_one(13, SHAPE(2, 3), 2, DIMS(-2, 3), NULL);
    reshape_one(13, SHAPE(2, 3), 3, DIMS(2, 3, 0), NULL);
    reshape_one(13, SHAPE(2, 2), 2, DIMS(INT64_MIN, 1), NULL);
    reshape_one(13, SHAPE(2, 2), 2, DIMS((1ll << 62) + 1, 4), NULL); /* wraps to 4 */
    reshape_one(13, SHAPE(0, 2), 2, DIMS(0, -1), NULL);              /* 0 over 0 */
    op_case *c = ramp_case("Reshape", 14, SHAPE(0, 3, 4));
    case_ints(c, 3, DIMS(3, 4, 0));
    case_node(c, 1);
    CHECK_INT(qs_node_set_int(c->g, c->node, "allowzero", 1), 0);
    CHECK_INT(case_infer(c), 0);
    CHECK_STR(case_shape(c, 0), "float[3,4,0]");
    case_free(c);
    c = ramp_case("Reshape", 1, SHAPE(2, 6)); /* the shape is an attribute */
    case_node(c, 1);
    CHECK_INT(qs_node_set_ints(c->g, c->node, "shape", DIMS(3, -1), 2), 0);
    CHECK_INT(case_run(c), 0);
    CHECK_STR(case_shape(c, 0), "float[3,4]");
    CHECK(memcmp(case_data(c, 0), ramp, 48) == 0);
    CHECK_INT(qs_op_upgrade_graph(c->g, 13, "m", &c->error), 0);
    CHECK_INT(c->g->nodes[c->node].input_count, 2);
    CHECK_INT(c->g->nodes[c->node].attr_count, 0);
    CHECK_INT(c->g->nodes[c->node].version, 13);
    CHECK_INT(qs_op_infer_graph(c->g, "m", &c->error), 0);
    CHECK_STR(case_shape(c, 0), "float[3,4]");
    case_free(c);
}

static void test_flatten(void) {
    static const struct {
        int64_t axis;
        const char *expected;
    } cases[] = {{1, "float[2,60]"},  {0, "float[1,120]"}, {3, "float[24,5]"},
                 {4, "float[120,1]"}, {-1, "float[24,5]"}, {5, NULL}};
    for (size_t i = 0; i < QS_COUNT(cases); i++) {
        op_case *c = ramp_case("Flatten", 13, SHAPE(2, 3, 4, 5));
        case_node(c, 1);
        CHECK_INT(qs_node_set_int(c->g, c->node, "axis", cases[i].axis), 0);
        int code = case_infer(c);
        CHECK_INT(code == 0, cases[i].expected != NULL);
        if (cases[i].expected)
            CHECK_STR(case_shape(c, 0), cases[i].expected);
        case_free(c);
    }
}

static void test_squeeze(void) {
    op_case *c = ramp_case("Squeeze", 13, SHAPE(1, 3, 1, 5));
    case_ints(c, 2, DIMS(0, -2));
    case_node(c, 1);
    CHECK_INT(case_infer(c), 0);
    CHECK_STR(case_shape(c, 0), "float[3,5]");
    case_free(c);
    c = ramp_case("Squeeze", 13, SHAPE(1, 3));
    case_ints(c, 1, DIMS(1));
    case_node(c, 1);
    CHECK_INT(case_infer(c), QSIM_E_SHAPE);
    case_free(c);
    c = ramp_case("Unsqueeze", 13, SHAPE(3, 4, 5));
    case_ints(c, 3, DIMS(5, 4, 2));
    case_node(c, 1);
    CHECK_INT(case_infer(c), 0);
    CHECK_STR(case_shape(c, 0), "float[3,4,1,5,1,1]");
    case_free(c);
    c = ramp_case("Unsqueeze", 13, SHAPE(3, 4));
    case_ints(c, 2, DIMS(1, -3));
    case_node(c, 1);
    CHECK_INT(case_infer(c), QSIM_E_VALUE); /* the same axis twice */
    case_free(c);
    c = ramp_case("Unsqueeze", 11, SHAPE(3));
    case_node(c, 1);
    CHECK_INT(qs_node_set_ints(c->g, c->node, "axes", DIMS(0), 1), 0);
    CHECK_INT(case_infer(c), 0);
    CHECK_INT(qs_op_upgrade_graph(c->g, 13, "m", &c->error), 0);
    CHECK_INT(qs_op_infer_graph(c->g, "m", &c->error), 0);
    CHECK_STR(case_shape(c, 0), "float[1,3]");
    case_free(c);
}

/* Every permutation of a rank-4 tensor in each element size, against indices. */
static void transpose_one(int32_t dtype, size_t size, const int64_t perm[4]) {
    const int64_t d[4] = {2, 35, 3, 37};
    static uint8_t x[2 * 35 * 3 * 37 * 8];
    uint64_t state = 7;
    for (size_t i = 0; i < sizeof(x); i++)
        x[i] = (uint8_t)test_random(&state);
    op_case *c = case_new("", "Transpose", 13);
    case_input(c, dtype, 4, d, x);
    case_node(c, 1);
    CHECK_INT(qs_node_set_ints(c->g, c->node, "perm", perm, 4), 0);
    CHECK_INT(case_run(c), 0);
    const uint8_t *y = case_data(c, 0);
    int64_t at[4];
    size_t wrong = 0, k = 0;
    for (at[perm[0]] = 0; at[perm[0]] < d[perm[0]]; at[perm[0]]++)
        for (at[perm[1]] = 0; at[perm[1]] < d[perm[1]]; at[perm[1]]++)
            for (at[perm[2]] = 0; at[perm[2]] < d[perm[2]]; at[perm[2]]++)
                for (at[perm[3]] = 0; at[perm[3]] < d[perm[3]]; at[perm[3]]++, k++) {
                    size_t from = (size_t)(((at[0] * d[1] + at[1]) * d[2] + at[2]) * d[3] + at[3]);
                    wrong += memcmp(y + k * size, x + from * size, size) != 0;
                }
    CHECK_INT(wrong, 0);
    case_free(c);
}

static void test_transpose(void) {
    static const int32_t dtypes[] = {QSIM_UINT8, QSIM_INT16, QSIM_FLOAT, QSIM_INT64};
    for (int64_t code = 0; code < 256; code++) {
        int64_t perm[4] = {code & 3, code >> 2 & 3, code >> 4 & 3, code >> 6};
        uint32_t mask = 1u << perm[0] | 1u << perm[1] | 1u << perm[2] | 1u << perm[3];
        if (mask != 15)
            continue;
        for (size_t t = 0; t < 4; t++)
            transpose_one(dtypes[t], (size_t)1 << t, perm);
    }
    op_case *c = ramp_case("Transpose", 13, SHAPE(2, 3));
    case_node(c, 1);
    CHECK_INT(qs_node_set_ints(c->g, c->node, "perm", DIMS(0, 0), 2), 0);
    CHECK_INT(case_infer(c), QSIM_E_VALUE);
    case_free(c);
    c = ramp_case("Transpose", 13, SHAPE(2, 3)); /* no perm: reversed */
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    CHECK_STR(case_shape(c, 0), "float[3,2]");
    CHECK_NEAR(((const float *)case_data(c, 0))[1], 3, 0);
    case_free(c);
}

static void test_concat_split(void) {
    op_case *c = ramp_case("Concat", 13, SHAPE(2, 1, 3));
    case_input(c, QSIM_FLOAT, SHAPE(2, 2, 3), ramp + 100);
    case_input(c, QSIM_FLOAT, SHAPE(2, 0, 3), ramp);
    case_node(c, 1);
    CHECK_INT(qs_node_set_int(c->g, c->node, "axis", -2), 0);
    CHECK_INT(case_run(c), 0);
    CHECK_STR(case_shape(c, 0), "float[2,3,3]");
    static const float joined[] = {0, 1, 2, 100, 101, 102, 103, 104, 105,
                                   3, 4, 5, 106, 107, 108, 109, 110, 111};
    CHECK(memcmp(case_data(c, 0), joined, sizeof(joined)) == 0);
    case_free(c);
    c = ramp_case("Concat", 13, SHAPE(2, 3));
    case_input(c, QSIM_FLOAT, SHAPE(2, 4), ramp);
    case_node(c, 1);
    CHECK_INT(qs_node_set_int(c->g, c->node, "axis", 0), 0);
    CHECK_INT(case_infer(c), QSIM_E_SHAPE);
    case_free(c);

    c = ramp_case("Split", 13, SHAPE(2, 6));
    case_ints(c, 2, DIMS(2, 4));
    case_node(c, 2);
    CHECK_INT(qs_node_set_int(c->g, c->node, "axis", 1), 0);
    CHECK_INT(case_run(c), 0);
    CHECK_STR(case_shape(c, 1), "float[2,4]");
    static const float left[] = {0, 1, 6, 7}, right[] = {2, 3, 4, 5, 8, 9, 10, 11};
    CHECK(memcmp(case_data(c, 0), left, sizeof(left)) == 0);
    CHECK(memcmp(case_data(c, 1), right, sizeof(right)) == 0);
    case_free(c);
    c = ramp_case("Split", 18, SHAPE(7)); /* uneven: 3, 3, 1 */
    case_node(c, 3);
    CHECK_INT(qs_node_set_int(c->g, c->node, "num_outputs", 3), 0);
    CHECK_INT(case_run(c), 0);
    CHECK_STR(case_shape(c, 2), "float[1]");
    CHECK_NEAR(*(const float *)case_data(c, 2), 6, 0);
    case_free(c);
    c = ramp_case("Split", 13, SHAPE(7));
    case_node(c, 3);
    CHECK_INT(case_infer(c), QSIM_E_SHAPE);
    case_free(c);
    c = ramp_case("Split", 13, SHAPE(6));
    case_ints(c, 2, DIMS(-1, 7));
    case_node(c, 2);
    CHECK_INT(case_infer(c), QSIM_E_VALUE);
    case_free(c);
}

/* The table refuses what it does not know, by name. */
static void test_table(void) {
    bool known = true;
    CHECK(qs_op_find("", "NoSuch", 13, &known) == NULL && !known);
    CHECK(qs_op_find("ai.onnx", "Relu", 13, &known) != NULL && known);
    CHECK(qs_op_find("", "HardSwish", 13, &known) == NULL && known);
    CHECK_INT(qs_op_newest_opset(), 28);

    op_case *c = ramp_case("Foo", 13, SHAPE(2));
    case_node(c, 1);
    CHECK_INT(case_infer(c), QSIM_E_UNSUPPORTED);
    CHECK_STR(c->error.message, "m: operator Foo is not supported (node 'n', Foo: opset 13)");
    case_free(c);
    c = ramp_case("Relu", 13, SHAPE(2));
    case_node(c, 1);
    CHECK_INT(qs_node_set_int(c->g, c->node, "flux", 3), 0);
    CHECK_INT(case_infer(c), QSIM_E_UNSUPPORTED);
    CHECK(strstr(c->error.message, "'flux'") != NULL);
    case_free(c);
    c = ramp_case("Flatten", 13, SHAPE(2));
    case_node(c, 1);
    CHECK_INT(qs_node_set_float(c->g, c->node, "axis", 1), 0);
    CHECK_INT(case_infer(c), QSIM_E_GRAPH); /* wrong type */
    case_free(c);
    c = ramp_case("Add", 13, SHAPE(2));
    case_node(c, 1);
    CHECK_INT(case_infer(c), QSIM_E_GRAPH); /* one input */
    case_free(c);
    c = case_new("", "Relu", 13);
    case_input(c, QSIM_BOOL, SHAPE(2), NULL);
    case_node(c, 1);
    CHECK_INT(case_infer(c), QSIM_E_DTYPE);
    case_free(c);
}

/* The type that the file declares of an output must be what comes out, its sizes need not; symbols
 * go through. */
static void test_declared(void) {
    for (int wrong = 0; wrong < 3; wrong++) {
        op_case *c = ramp_case("Relu", 13, SHAPE(2));
        case_node(c, 1);
        qs_dim d = {wrong == 1 ? 3 : 2, NULL};
        const int32_t dtype = wrong == 2 ? QSIM_INT32 : QSIM_FLOAT;
        CHECK_INT(qs_value_set_shape(c->g, c->out[0], dtype, 1, &d), 0);
        c->g->values[c->out[0]].declared = true;
        CHECK_INT(case_infer(c), wrong == 2 ? QSIM_E_DTYPE : QSIM_OK);
        CHECK_INT(c->g->values[c->out[0]].misdeclared, wrong == 1);
        if (wrong < 2)
            CHECK_STR(case_shape(c, 0), "float[2]");
        case_free(c);
    }
    op_case *c = ramp_case("Add", 13, SHAPE(2, 3));
    case_input(c, QSIM_FLOAT, SHAPE(3), ramp);
    case_node(c, 1);
    qs_dim d[2] = {{-1, "N"}, {3, NULL}};
    CHECK_INT(qs_value_set_shape(c->g, c->in[0], QSIM_FLOAT, 2, d), 0);
    CHECK_INT(case_infer(c), 0);
    CHECK_STR(case_shape(c, 0), "float[N-1,3]");
    case_free(c);
}

static void test_scalar(void) {
    op_case *c = ramp_case("Softmax", 13, 0, NULL);
    case_node(c, 1);
    CHECK_INT(case_infer(c), QSIM_E_SHAPE);
    CHECK(strstr(c->error.message, "a scalar has no axis") != NULL);
    case_free(c);
}

/* An attribute's word that an operator does not know is answered with those of its version. */
static void test_words(void) {
    static const struct {
        const char *op, *inputs; /* "f4": float of rank 4; b: uint8, l: int64; "-0": none */
        int32_t version;
        const char *attr, *words, *more; /* an attribute that it needs, too */
    } list[] = {
        {"BitShift", "b1b1", 11, "direction", "LEFT|RIGHT", ""},
        {"Gelu", "f1", 20, "approximate", "none|tanh", ""},
        {"Cast", "f1", 24, "round_mode", "up|down|nearest", "to"},
        {"DepthToSpace", "f4", 11, "mode", "DCR|CRD", "blocksize"},
        {"Pad", "f2l1", 18, "mode", "constant|edge|reflect", ""},
        {"Pad", "f2l1", 19, "mode", "constant|edge|reflect|wrap", ""},
        {"ScatterElements", "f1l1f1", 16, "reduction", "none|add|mul|max|min", ""},
        {"GridSample", "f4f4", 16, "mode", "bilinear|nearest|bicubic", ""},
        {"GridSample", "f4f4", 20, "mode", "linear|nearest|cubic", ""},
        {"GridSample", "f4f4", 20, "padding_mode", "zeros|border|reflection", ""},
        {"RoiAlign", "f4f2l1", 16, "mode", "avg|max", ""},
        {"RoiAlign", "f4f2l1", 16, "coordinate_transformation_mode", "half_pixel|output_half_pixel",
         ""},
        {"Resize", "f4-0f1", 13, "mode", "nearest|linear|cubic|bilinear", ""},
        {"Resize", "f4-0f1", 13, "nearest_mode", "round_prefer_floor|round_prefer_ceil|floor|ceil",
         ""},
        {"MaxPool", "f4", 12, "auto_pad", "NOTSET|SAME_UPPER|SAME_LOWER|VALID", ""},
        {"LSTM", "f3f3f3", 14, "direction", "forward|reverse|bidirectional", "hidden_size"},
    };
    for (size_t i = 0; i < QS_COUNT(list); i++) {
        op_case *c = case_new("", list[i].op, list[i].version);
        for (const char *in = list[i].inputs; *in; in += 2) {
            const int32_t dtype = *in == 'f' ? QSIM_FLOAT : *in == 'b' ? QSIM_UINT8 : QSIM_INT64;
            if (*in == '-')
                case_absent(c);
            else
                case_input(c, dtype, in[1] - '0', DIMS(4, 4, 4, 4), ramp);
        }
        case_node(c, 1);
        case_string(c, list[i].attr, "sideways");
        if (!strcmp(list[i].op, "MaxPool"))
            CHECK_INT(qs_node_set_ints(c->g, c->node, "kernel_shape", DIMS(2, 2), 2), 0);
        else if (*list[i].more)
            CHECK_INT(qs_node_set_int(c->g, c->node, list[i].more, 1), 0);
        CHECK_INT(case_infer(c), QSIM_E_VALUE);
        char says[256];
        snprintf(says, sizeof(says), "attribute %s is 'sideways', none of %s", list[i].attr,
                 list[i].words);
        const char *at = strstr(c->error.message, says);
        CHECK(at && at[strlen(says)] != '|');
        case_free(c);
    }
}

int main(void) {
    for (size_t i = 0; i < QS_COUNT(ramp); i++)
        ramp[i] = (float)i;
    test_scalar();
    test_words();
    test_reshape();
    test_flatten();
    test_squeeze();
    test_transpose();
    test_concat_split();
    test_table();
    test_declared();
    return test_done();
}
