/* SPDX-License-Identifier: MIT */
/* What qsim_model_node says of a node: multiply-accumulates and operands. */
#include "test.h"

#include <qsim/model.h>

/* Products of every rank: outputs times the length of a sum. */
static void check_macs(void) {
    static const struct {
        const char *op, *a, *b;
        int64_t transposed, macs;
    } list[] = {{"MatMul", "float[2,3]", "float[3,4]", 0, 2 * 3 * 4},
                {"MatMul", "float[5,2,3]", "float[3,4]", 0, 5 * 2 * 3 * 4},
                {"MatMul", "float[2,3]", "float[3]", 0, 2 * 3},
                {"MatMul", "float[3]", "float[3,4]", 0, 3 * 4},
                {"MatMul", "float[3]", "float[3]", 0, 3},
                {"Gemm", "float[2,3]", "float[3,4]", 0, 2 * 3 * 4},
                {"Gemm", "float[2,3]", "float[4,3]", 1, 2 * 3 * 4},
                {"MatMulInteger", "uint8[2,3]", "uint8[3,4]", 0, 2 * 3 * 4},
                {"ConvInteger", "uint8[1,2,5,5]", "uint8[4,2,3,3]", 0, 4 * 3 * 3 * 18},
                {"MatMul", "float[N,3]", "float[3,4]", 0, 3 * 4}, /* of one sample */
                {"MatMul", "float[0,3]", "float[3,4]", 0, 0},
                {"ConvTranspose", "float[1,2,5,5]", "float[2,3,4,4]", 0, 2 * 25 * 3 * 16},
                {"LSTM", "float[7,2,5]", "float[1,12,5]", 0, 7 * 2 * 12 * (5 + 3)},
                {"Add", "float[2,3]", "float[3]", 0, 0}};
    for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++) {
        const int recurrent = strcmp(list[i].op, "LSTM") == 0;
        qsim_builder *b = NULL;
        qsim_model *m = NULL;
        qsim_node_info n = {.struct_size = sizeof(n)};
        CHECK_INT(qsim_builder_create(NULL, 13, "macs", &b, NULL), 0);
        qsim_builder_input_as(b, "a", list[i].a);
        qsim_builder_input_as(b, "b", list[i].b);
        if (recurrent)
            qsim_builder_input_as(b, "c", "float[1,12,3]");
        qsim_builder_node(b, "", list[i].op, "node", recurrent ? "a,b,c" : "a,b", "y");
        if (list[i].transposed)
            qsim_builder_attr_int(b, "transB", 1);
        qsim_builder_output(b, "y", list[i].a[0] == 'u' ? QSIM_INT32 : QSIM_FLOAT, -1, NULL, NULL);
        CHECK_INT(qsim_builder_finish(b, &m, NULL), 0);
        CHECK_INT(qsim_model_node(m, 0, &n), 0);
        CHECK_INT(n.macs, list[i].macs);
        qsim_model_free(m);
        qsim_builder_free(b);
    }
}

static void check_operands(void) {
    static const struct {
        const char *op, *inputs;
        uint64_t operands;
    } list[] = {
        {"Add", "f,g", 3},
        {"Gather", "f,i", 1},                    /* data; indices */
        {"Slice", "f,i,i", 1},                   /* data; starts and ends */
        {"RotaryEmbedding", "x,t,t", 1},         /* data; cosines and sines */
        {"QLinearMatMul", "u,s,z,u,s,z,s,z", 9}, /* data and weights; scales and zero points */
    };
    static const char *const inputs[][2] = {
        {"f", "float[4]"}, {"g", "float[4]"},     {"i", "int64[1]"},   {"x", "float[1,2,3,4]"},
        {"s", "float[]"},  {"t", "float[1,3,2]"}, {"u", "uint8[2,2]"}, {"z", "uint8[]"}};
    for (size_t k = 0; k < sizeof(list) / sizeof(*list); k++) {
        qsim_builder *b = NULL;
        qsim_model *m = NULL;
        qsim_node_info n = {.struct_size = sizeof(n)};
        CHECK_INT(qsim_builder_create(NULL, 23, "operands", &b, NULL), 0);
        for (size_t i = 0; i < sizeof(inputs) / sizeof(*inputs); i++)
            qsim_builder_input_as(b, inputs[i][0], inputs[i][1]);
        qsim_builder_node(b, "", list[k].op, "node", list[k].inputs, "y");
        const int32_t type = list[k].inputs[0] == 'u' ? QSIM_UINT8 : QSIM_FLOAT;
        qsim_builder_output(b, "y", type, -1, NULL, NULL);
        CHECK_INT(qsim_builder_finish(b, &m, NULL), 0);
        CHECK_INT(qsim_model_node(m, 0, &n), 0);
        CHECK(n.operands == list[k].operands);
        qsim_model_free(m);
        qsim_builder_free(b);
    }
}

int main(void) {
    check_macs();
    check_operands();
    return test_done();
}
