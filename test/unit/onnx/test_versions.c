/* SPDX-License-Identifier: MIT */
/*
 * Inputs and outputs that a later version of an operator added are refused before it, and those
 * that became mandatory are required from it on. The numbers are those of ONNX's change log.
 */
#include "net.h"

typedef struct form {
    const char *op;
    int64_t opset;
    int min_in, max_in, max_out;
} form;

static const form forms[] = {
    {"BatchNormalization", 9, 5, 5, 5},
    {"BatchNormalization", 14, 5, 5, 3},
    {"Clip", 10, 1, 1, 1},
    {"Clip", 11, 1, 3, 1},
    {"Dropout", 10, 1, 1, 2},
    {"Dropout", 12, 1, 3, 2},
    {"Gemm", 10, 3, 3, 1},
    {"Gemm", 11, 2, 3, 1},
    {"MaxPool", 7, 1, 1, 1},
    {"MaxPool", 8, 1, 1, 2},
    {"Pad", 10, 1, 1, 1},
    {"Pad", 11, 2, 3, 1},
    {"Pad", 17, 2, 3, 1},
    {"Pad", 18, 2, 4, 1},
    {"ReduceMax", 17, 1, 1, 1},
    {"ReduceMax", 18, 1, 2, 1},
    {"ReduceMean", 17, 1, 1, 1},
    {"ReduceMean", 18, 1, 2, 1},
    {"ReduceMin", 17, 1, 1, 1},
    {"ReduceMin", 18, 1, 2, 1},
    {"ReduceSum", 12, 1, 1, 1},
    {"ReduceSum", 13, 1, 2, 1},
    {"Reshape", 4, 1, 1, 1},
    {"Reshape", 5, 2, 2, 1},
    {"Resize", 10, 2, 2, 1},
    {"Resize", 11, 3, 4, 1},
    {"Resize", 13, 1, 4, 1},
    {"Slice", 9, 1, 1, 1},
    {"Slice", 10, 3, 5, 1},
    {"Split", 1, 1, 2, 8},
    {"Split", 12, 1, 1, 8},
    {"Split", 13, 1, 2, 8},
    {"Squeeze", 12, 1, 1, 1},
    {"Squeeze", 13, 1, 2, 1},
    {"Unsqueeze", 12, 1, 1, 1},
    {"Unsqueeze", 13, 2, 2, 1},
    {"Upsample", 8, 1, 1, 1},
    {"Upsample", 9, 2, 2, 1},
};

static int resolve(const form *f, int inputs, int outputs) {
    static const char in[] = "a,b,c,d,e,f,g,h,i", out[] = "r,s,t,u,v,w,x,y,z";
    char some_in[sizeof(in)], some_out[sizeof(out)];
    net n;
    net_begin(&n, NULL, f->opset);
    snprintf(some_in, sizeof(some_in), "%.*s", inputs ? 2 * inputs - 1 : 0, in);
    snprintf(some_out, sizeof(some_out), "%.*s", 2 * outputs - 1, out);
    int code = qs_op_resolve(n.g, net_node(&n, "", f->op, some_in, some_out), "net", &n.error);
    if (code)
        CHECK(strstr(n.error.message, "puts, expected") != NULL);
    net_free(&n);
    return code;
}

/* What is refused says what is supported. */
static void refused(const char *op, int32_t dtype, const char *message, const char *hint) {
    net n;
    net_begin(&n, NULL, 13);
    net_input(&n, "a", dtype, NET_DIMS(4, 6));
    net_node(&n, "", op, "a,a", "y");
    net_output(&n, "y");
    CHECK(net_end(&n) != QSIM_OK);
    CHECK(strstr(n.error.message, message) != NULL);
    CHECK_STR(n.error.hint, hint);
    net_free(&n);
}

static void test_refusals(void) {
    static const char list[] =
        "qsim info --ops lists the operators, opsets and types that are supported";
    refused("SwiGLU", QSIM_FLOAT, "this version of operator SwiGLU is not supported",
            "supported are its opsets 28 to 28");
    refused("Scatter", QSIM_FLOAT, "this version of operator Scatter is not supported",
            "supported are its opsets 9 to 10");
    refused("SwishGLU", QSIM_FLOAT, "operator SwishGLU is not supported", list);
    refused("Mod", QSIM_STRING, "input 0 'a' has type string", list);
}

int main(void) {
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        const form *f = &forms[i];
        CHECK_INT(resolve(f, f->min_in - 1, 1), QSIM_E_GRAPH);
        CHECK_INT(resolve(f, f->min_in, 1), 0);
        CHECK_INT(resolve(f, f->max_in, f->max_out), 0);
        CHECK_INT(resolve(f, f->max_in + 1, 1), QSIM_E_GRAPH);
        if (f->max_out < 8)
            CHECK_INT(resolve(f, f->max_in, f->max_out + 1), QSIM_E_GRAPH);
    }
    test_refusals();
    return test_done();
}
