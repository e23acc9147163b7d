/* SPDX-License-Identifier: MIT */
/*
 * The nodes that a session reports as integer, on networks with known float islands; the model
 * reports the same, for every row of the operator table.
 */
#include "net.h"

#include <qsim/model.h>
#include <qsim/session.h>

static bool is_listed(const char *list, const char *name) {
    size_t length = strlen(name);
    for (const char *at = list; (at = strstr(at, name)) != NULL; at += length)
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
            return true;
    return false;
}

/* Compiles; the nodes in float are those of the list, by the names of their first outputs. */
static void check(const qsim_model *m, const char *floats) {
    qsim_session *s = NULL;
    qsim_error e = {0};
    CHECK_INT(qsim_session_create(m, NULL, &s, &e), 0);
    for (int32_t i = 0; i < qsim_model_node_count(m); i++) {
        qsim_node_info n = {.struct_size = sizeof(n)};
        CHECK_INT(qsim_model_node(m, i, &n), 0);
        bool wrong = qsim_session_node_integer(s, i) == is_listed(floats, n.outputs[0]);
        if (wrong)
            fprintf(stderr, "  %s '%s' is said to be in %s\n", n.op_type, n.outputs[0],
                    qsim_session_node_integer(s, i) ? "integers" : "float");
        CHECK(!wrong);
        CHECK_INT(n.integer, qsim_session_node_integer(s, i));
    }
    CHECK_INT(qsim_session_node_integer(s, -1), 0);
    CHECK_INT(qsim_session_node_integer(s, qsim_model_node_count(m)), 0);
    CHECK_INT(qsim_session_node_integer(NULL, 0), 0);
    qsim_session_free(s);
}

/*
 * Conv -> Relu -> [pair] -> Transpose without a pair -> Softmax of columns, in float -> [pair] ->
 * Identity -> expression of three nodes -> [pair]; `leak`: the convolution's float is also given
 * out.
 */
static void island(int32_t dtype, bool leak) {
    net n;
    const int64_t dims[] = {1, 3, 5, 5}, wdims[] = {4, 3, 3, 3}, perm[] = {0, 2, 3, 1};
    uint8_t w[108];
    for (int i = 0; i < 108; i++)
        w[i] = (uint8_t)(i * 37 % 200 - 100);
    net_begin(&n, NULL, 13);
    net_input(&n, "x", QSIM_FLOAT, 4, dims);
    net_pair(&n, "x", dtype, 0.03f, 3, 0);
    net_const(&n, "w", QSIM_INT8, 4, wdims, w);
    net_float(&n, "w_s", 0.01f);
    net_node(&n, "", "DequantizeLinear", "w,w_s", "w_d");
    net_node(&n, "", "Conv", "x_d,w_d", "c");
    net_node(&n, "", "Relu", "c", "r");
    net_pair(&n, "r", dtype, 0.05f, 3, 0);
    net_ints(&n, net_node(&n, "", "Transpose", "r_d", "t"), "perm", 4, perm);
    qs_node_set_int(n.g, net_node(&n, "", "Softmax", "t", "soft"), "axis", 1);
    net_pair(&n, "soft", dtype, 0.004f, 3, 0);
    net_node(&n, "", "Identity", "soft_d", "i");
    net_node(&n, "", "Sigmoid", "i", "s");
    net_node(&n, "", "Mul", "i,s", "m");
    net_node(&n, "", "Exp", "m", "y");
    net_pair(&n, "y", dtype, 0.02f, 3, 0);
    net_output(&n, "y_d");
    if (leak)
        net_output(&n, "c");
    NET_OK(&n, net_end(&n));
    /* A graph output of the convolution's floats adds a float node beside the integer one. */
    check(n.model, "x_q soft soft_q y_d"); /* floats that are given out come from integer sums */
    net_free(&n);
}

static void floats_only(void) {
    net n;
    const int64_t dims[] = {2, 3};
    net_begin(&n, NULL, 13);
    net_input(&n, "x", QSIM_FLOAT, 2, dims);
    net_node(&n, "", "Identity", "x", "i");
    net_node(&n, "", "Relu", "i", "r");
    net_node(&n, "", "Transpose", "r", "y");
    net_output(&n, "y");
    NET_OK(&n, net_end(&n));
    check(n.model, "i r y");
    net_free(&n);
}

/* All nodes but the conversions at both ends. */
static void shufflenet(void) {
    char path[1024];
    qsim_model *m = NULL;
    CHECK_INT(qsim_model_load(NULL, test_shared("models/shufflenet-v2-12-int8.onnx", path), NULL,
                              &m, NULL),
              0);
    CHECK_INT(qsim_model_node_count(m), 189);
    check(m, "input_quantized output");
    qsim_model_free(m);
}

/* ---- every row ---- */

/* Session and model agree; the node called `name` is integer if `integer`. */
static void compare_answers(const qsim_model *m, const char *name, bool integer) {
    qsim_session *s = NULL;
    if (qsim_session_create(m, NULL, &s, NULL))
        return; /* some operators refuse this net's inputs */
    for (int32_t i = 0; i < qsim_model_node_count(m); i++) {
        qsim_node_info n = {.struct_size = sizeof(n)};
        CHECK_INT(qsim_model_node(m, i, &n), 0);
        const int32_t said = qsim_session_node_integer(s, i);
        if (n.integer != said || (integer && strcmp(n.outputs[0], name) == 0 && !said)) {
            fprintf(stderr, "  %s: model %d, session %d\n", n.op_type, (int)n.integer, (int)said);
            CHECK_FAIL("model and session disagree, or a curve of bytes is no table");
        }
    }
    test_checks++;
    qsim_session_free(s);
}

/* x -> [pair] -> the row -> [pair]: with a tensor for each operand, or one tensor for all. */
static bool make_row(net *n, const qs_op *op, bool apart) {
    static const char *const own[] = {"x0_d", "x0_d,x1_d", "x0_d,x1_d,x2_d"};
    static const char *const one[] = {"x0_d", "x0_d,x0_d", "x0_d,x0_d,x0_d"};
    static const char *const names[] = {"x0", "x1", "x2"};
    const int32_t count = op->max_in < 0 ? 2 : op->min_in;
    if (op->domain || count < 1 || count > 3)
        return false;
    net_begin(n, NULL, qs_op_newest_opset());
    for (int32_t i = 0; i < count; i++) {
        net_input(n, names[i], QSIM_FLOAT, NET_DIMS(1, 4, 4, 4));
        net_pair(n, names[i], QSIM_UINT8, 0.03f, 3, 0);
    }
    const qs_id id = net_node(n, "", op->name, apart ? own[count - 1] : one[count - 1], "y");
    for (int32_t i = 0; i < op->attr_count; i++)
        if (strcmp(op->attrs[i].name, "kernel_shape") == 0)
            net_ints(n, id, "kernel_shape", 2, (const int64_t[]){2, 2});
        else if (strcmp(op->attrs[i].name, "to") == 0)
            qs_node_set_int(n->g, id, "to", QSIM_FLOAT);
        else if (strcmp(op->attrs[i].name, "fmod") == 0)
            qs_node_set_int(n->g, id, "fmod", 1);
    net_pair(n, "y", QSIM_UINT8, 0.02f, 3, 0);
    net_output(n, "y_d");
    if (net_end(n) == QSIM_OK)
        return true;
    net_free(n);
    return false;
}

static void every_row(void) {
    int made = 0;
    for (size_t i = 0; i < qs_op_count(); i++)
        for (int apart = 0; apart < 2; apart++) {
            const qs_op *op = qs_op_at(i);
            net n;
            if (!make_row(&n, op, apart))
                continue;
            made++;
            compare_answers(n.model, "y", (op->traits & QS_ELEMENTWISE) && !apart);
            net_free(&n);
        }
    CHECK(made >= 80);
}

int main(void) {
    for (int i = 0; i < 4; i++)
        island(i & 1 ? QSIM_INT8 : QSIM_UINT8, i >> 1);
    floats_only();
    every_row();
    shufflenet();
    return test_done();
}
