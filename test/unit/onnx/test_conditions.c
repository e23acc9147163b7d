/* SPDX-License-Identifier: MIT */
/*
 * The condition of an If is one element, of any rank. An If is read as Where only if that gives the
 * sizes of the branches: not if the condition may have more axes or elements.
 */
#include "proto.h"
#include "test.h"

#include <qsim/qsim.h>
#include <stdbool.h>

static void shapeless_flag(proto *g) {
    proto tensor = {0}, type = {0}, value = {0};
    proto_int(&tensor, 1, QSIM_BOOL);
    proto_take(&type, 1, &tensor);
    proto_text(&value, 1, "flag");
    proto_take(&value, 2, &type);
    proto_take(g, 11, &value);
    proto_free(&tensor);
    proto_free(&type);
    proto_free(&value);
}

/* y = flag ? -x : max(x, 0) */
static int load(const int64_t *sizes, int rank, const int64_t *x_sizes, int x_rank, qsim_model **m,
                qsim_error *e) {
    proto g = {0}, then = {0}, otherwise = {0}, node = {0}, model = {0};
    proto_node(&then, "Neg", "neg", "x", NULL, "t");
    proto_node(&otherwise, "Relu", "relu", "x", NULL, "u");
    proto_name(&then, 12, "t");
    proto_name(&otherwise, 12, "u");
    proto_text(&node, 1, "flag");
    proto_text(&node, 2, "y");
    proto_text(&node, 3, "if");
    proto_text(&node, 4, "If");
    proto_graph(&node, "then_branch", &then);
    proto_graph(&node, "else_branch", &otherwise);
    proto_take(&g, 1, &node);
    proto_text(&g, 2, "g");
    if (rank >= 0)
        proto_value(&g, 11, "flag", QSIM_BOOL, sizes, rank);
    else
        shapeless_flag(&g);
    proto_value(&g, 11, "x", QSIM_FLOAT, x_sizes, x_rank);
    proto_name(&g, 12, "y");
    proto_model(&model, &g);
    const int code = qsim_model_load_memory(NULL, model.data, model.size, NULL, m, e);
    proto_free(&model);
    proto_free(&g);
    proto_free(&then);
    proto_free(&otherwise);
    proto_free(&node);
    return code;
}

/* Runs the model with `count` conditions in `rank` axes, all `flag`. */
static int run(qsim_model *m, const int64_t *dims, int rank, bool flag, int x_rank) {
    static const int64_t x_sizes[] = {1, 2};
    float x[2] = {1, -2};
    bool flags[2] = {flag, flag};
    size_t count = 1;
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    for (int i = 0; i < rank; i++)
        count *= (size_t)dims[i];
    const qsim_tensor in[] = {{QSIM_BOOL, rank, dims, flags, count},
                              {QSIM_FLOAT, x_rank, x_sizes + 2 - x_rank, x, x_rank ? 8 : 4}};
    qsim_tensor y = {0};
    CHECK_INT(qsim_session_create(m, NULL, &s, NULL), QSIM_OK);
    CHECK_INT(qsim_run_create(s, &r, NULL), QSIM_OK);
    const int code = qsim_run_execute(r, in, 2, &y, 1, NULL);
    if (!code) {
        CHECK_INT(y.rank, x_rank);
        CHECK_INT(y.bytes, in[1].bytes);
        CHECK(((const float *)y.data)[0] == (flag ? -1 : 1));
        CHECK(x_rank == 0 || ((const float *)y.data)[1] == (flag ? 2 : 0));
    }
    qsim_run_free(r);
    qsim_session_free(s);
    return code;
}

static const struct {
    int rank; /* of the condition; -1: not stated */
    int64_t sizes[2];
    int x_rank;
    int code;
    bool where;
} cases[] = {
    {0, {0}, 0, QSIM_OK, true},       {0, {0}, 1, QSIM_OK, true},
    {1, {1}, 0, QSIM_OK, false},      {1, {1}, 1, QSIM_OK, true},
    {2, {1, 1}, 1, QSIM_OK, false},   {2, {1, 1}, 2, QSIM_OK, true},
    {1, {-1}, 1, QSIM_OK, false},     {2, {1, -1}, 2, QSIM_OK, false},
    {-1, {0}, 2, QSIM_OK, false},     {1, {2}, 1, QSIM_E_SHAPE, false},
    {1, {0}, 1, QSIM_E_SHAPE, false}, {2, {1, 2}, 2, QSIM_E_SHAPE, false},
};

static void check_case(size_t i) {
    static const int64_t x_sizes[] = {1, 2};
    static const int64_t ones[] = {1, 1}, twos[] = {1, 2};
    const int rank = cases[i].rank, x_rank = cases[i].x_rank;
    qsim_model *m = NULL;
    qsim_error e = {0};
    const int code = load(cases[i].sizes, rank, x_sizes + 2 - x_rank, x_rank, &m, &e);
    CHECK_INT(code, cases[i].code);
    CHECK(!code || strstr(e.message, "'flag' of If is not a single value (node 'if', If)"));
    if (code)
        return;
    bool where = false;
    for (int32_t k = 0; k < qsim_model_node_count(m); k++) {
        qsim_node_info n = {.struct_size = sizeof(n)};
        CHECK_INT(qsim_model_node(m, k, &n), QSIM_OK);
        where |= strcmp(n.op_type, "Where") == 0;
    }
    CHECK_INT(where, cases[i].where);
    const int fed = rank < 0 ? 2 : rank;
    for (int flag = 0; flag < 2; flag++) {
        CHECK_INT(run(m, ones, fed, flag, x_rank), QSIM_OK);
        if (rank < 0 || (rank > 0 && cases[i].sizes[rank - 1] < 0))
            CHECK_INT(run(m, twos + 2 - fed, fed, flag, x_rank), QSIM_E_SHAPE);
    }
    qsim_model_free(m);
}

int main(void) {
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        check_case(i);
    return test_done();
}
