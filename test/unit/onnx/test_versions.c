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
    static const char list[] = "qsim info --ops lists what is supported";
    refused("SwiGLU", QSIM_FLOAT, "this version of operator SwiGLU is not supported",
            "supported are its opsets 28 to 28");
    refused("Scatter", QSIM_FLOAT, "this version of operator Scatter is not supported",
            "supported are its opsets 9 to 10");
    refused("SwishGLU", QSIM_FLOAT, "operator SwishGLU is not supported", list);
    refused("Mod", QSIM_STRING, "input 0 'a' has type string", list);
}

/* ---- upgrades ---- */

/* A Squeeze with an attribute, in a domain, beside an owned graph with another one. */
static void begin_old(net *n, int64_t opset, const char *domain, bool inside) {
    static const int64_t axis = 1;
    net_begin(n, NULL, opset);
    net_input(n, "x", QSIM_FLOAT, NET_DIMS(4, 1));
    net_ints(n, net_node(n, domain, "Squeeze", "x", "y"), "axes", 1, &axis);
    net_output(n, "y");
    if (inside) {
        qs_graph *body;
        CHECK_INT(qs_graph_create(n->ctx, &body), 0);
        CHECK_INT(qs_graph_own(n->g, body), 0);
        CHECK_INT(qs_graph_set_import(body, "", opset), 0);
        const qs_id a = qs_graph_add_value(body, "a"), b = qs_graph_add_value(body, "b");
        const qs_id at = qs_graph_add_node(body, "", "Squeeze", "", &a, 1, &b, 1);
        CHECK_INT(qs_node_set_ints(body, at, "axes", &axis, 1), 0);
        qs_graph_push_input(body, a);
        qs_graph_push_output(body, b);
        CHECK_INT(qs_graph_sort(body, NULL), 0);
    }
}

static void test_upgrades(void) {
    static const struct {
        int64_t from, to;
        const char *domain;
        bool inside;
        int code, inputs; /* of the Squeeze: its axes are an input from opset 13 on */
    } cases[] = {
        {7, 13, "", false, QSIM_OK, 2},     {7, 12, "", false, QSIM_OK, 1},
        {7, 7, "", false, QSIM_OK, 1},      {12, 11, "", false, QSIM_E_UNSUPPORTED, 1},
        {7, 13, "", true, QSIM_OK, 2},      {7, 13, "ai.onnx", false, QSIM_OK, 2},
        {7, 13, "mine", false, QSIM_OK, 1}, {7, 21, "", true, QSIM_OK, 2},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        net n;
        begin_old(&n, cases[i].from, cases[i].domain, cases[i].inside);
        CHECK_INT(qs_op_upgrade_graph(n.g, cases[i].to, "m", &n.error), cases[i].code);
        const int64_t now = cases[i].code ? cases[i].from : cases[i].to;
        CHECK_INT(qs_graph_import(n.g, ""), now);
        CHECK_INT(n.g->nodes[0].input_count, cases[i].inputs);
        CHECK_INT(n.g->nodes[0].attr_count, cases[i].inputs == 1);
        if (cases[i].code)
            CHECK_STR(n.error.message, "m: opset 12 cannot be made opset 11");
        if (cases[i].inside) {
            const qs_graph *body = n.g->owned[0];
            CHECK_INT(qs_graph_import(body, ""), now);
            CHECK(body->nodes[0].input_count == 2 && body->nodes[0].attr_count == 0);
        }
        net_free(&n);
    }
    const int64_t newest = qs_op_newest_opset();
    for (int64_t to = newest - 1; to <= newest + 1; to++) {
        net n;
        begin_old(&n, 7, "", false);
        CHECK_INT(qs_op_upgrade_graph(n.g, to, NULL, &n.error),
                  to <= newest ? QSIM_OK : QSIM_E_UNSUPPORTED);
        CHECK(to <= newest || strstr(n.error.message, "model: opset 7 cannot be made opset"));
        net_free(&n);
    }
}

/* ---- half precision ---- */

/* Statistics of operators with a "stash_type" are floats beside results of half precision. */
static void test_halves(void) {
    static const struct {
        const char *op, *inputs, *outputs;
        int32_t second; /* the type of the second output of a node of float16; 0: it has none */
    } nodes[] = {
        {"LayerNormalization", "x,s,s", "y,m,d", QSIM_FLOAT},
        {"LayerNormalization", "x,s,s", "y", 0},
        {"TopK", "x,k", "y,i", QSIM_INT64},
        {"Dropout", "x", "y,m", QSIM_BOOL},
        {"Split", "x", "y,z", QSIM_FLOAT16},
        {"LSTM", "q,w,w", "y,h", QSIM_FLOAT16},
    };
    static const int64_t one = 1;
    for (size_t i = 0; i < sizeof(nodes) / sizeof(*nodes); i++) {
        net n;
        net_begin(&n, NULL, 17);
        net_input(&n, "x", QSIM_FLOAT16, NET_DIMS(4, 6));
        net_input(&n, "s", QSIM_FLOAT16, NET_DIMS(6));
        net_input(&n, "q", QSIM_FLOAT16, NET_DIMS(2, 1, 1));
        net_input(&n, "w", QSIM_FLOAT16, NET_DIMS(1, 4, 1));
        net_const(&n, "k", QSIM_INT64, 1, &one, &one);
        const qs_id id = net_node(&n, "", nodes[i].op, nodes[i].inputs, nodes[i].outputs);
        const qs_attr size = {.name = "hidden_size", .type = QSIM_ATTR_INT, .u.i = 1};
        if (nodes[i].inputs[0] == 'q')
            CHECK_INT(qs_node_set_attr(n.g, id, &size), 0);
        net_output(&n, "y");
        NET_OK(&n, net_end(&n));
        CHECK_INT(n.g->values[qs_graph_find(n.g, "y")].dtype, QSIM_FLOAT16);
        for (int32_t k = 1; k < n.g->nodes[id].output_count; k++)
            CHECK_INT(n.g->values[n.g->nodes[id].outputs[k]].dtype, nodes[i].second);
        net_free(&n);
    }
}

int main(void) {
    test_upgrades();
    test_halves();
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
