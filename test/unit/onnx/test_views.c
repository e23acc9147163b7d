/* SPDX-License-Identifier: MIT */
/*
 * Slices, splits and joins along the first axis cost no step: their data is read or written in
 * place. Every output is compared with the operators' definition.
 */
#include "net.h"

#include <math.h>

#define ROW 4
#define X   6

static void list(net *n, const char *name, int64_t v) {
    net_const(n, name, QSIM_INT64, NET_DIMS(1), &v);
}

static void axis0(net *n, const char *op, const char *in, const char *out) {
    qs_node_set_int(n->g, net_node(n, "", op, in, out), "axis", 0);
}

static void begin(net *n) {
    const int64_t parts[] = {2, 4};
    net_begin(n, NULL, 13);
    net_input(n, "x", QSIM_FLOAT, NET_DIMS(X, ROW));
    list(n, "0", 0);
    list(n, "1", 1);
    list(n, "3", 3);
    net_const(n, "parts", QSIM_INT64, NET_DIMS(2), parts);
    net_random(n, "k", NET_DIMS(1, ROW), 9, 1);
}

typedef struct got {
    float y[8][64 * ROW];
    int64_t rows[8];
    int32_t steps;
} got;

/* Runs twice, into the caller's buffers and into the run's own; both results must be equal. */
static void run(net *n, size_t outputs, got *g) {
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    float x[X * ROW];
    const int64_t dims[] = {X, ROW};
    qsim_tensor in = net_tensor(QSIM_FLOAT, 2, dims, x), out[8];
    for (int i = 0; i < X * ROW; i++)
        x[i] = (float)(i * 7 % 11) - 5.5f;
    NET_OK(n, qs_session_compile(n->model, NULL, 0, &s, &n->error));
    NET_OK(n, qsim_run_create(s, &r, &n->error));
    for (size_t i = 0; i < outputs; i++) {
        memset(g->y[i], 0xcc, sizeof(g->y[i]));
        out[i] = (qsim_tensor){.data = g->y[i], .bytes = sizeof(g->y[i])};
    }
    NET_OK(n, qsim_run_execute(r, &in, 1, out, outputs, &n->error));
    for (size_t i = 0; i < outputs; i++) {
        g->rows[i] = out[i].dims[0];
        out[i].data = NULL;
    }
    NET_OK(n, qsim_run_execute(r, &in, 1, out, outputs, &n->error));
    for (size_t i = 0; i < outputs; i++)
        CHECK(memcmp(out[i].data, g->y[i], out[i].bytes) == 0);
    g->steps = qsim_run_step_count(r);
    qsim_run_free(r);
    qsim_session_free(s);
}

static float x_at(int64_t row, int column) {
    return (float)((row * ROW + column) * 7 % 11) - 5.5f;
}

/* Rows [from, from + count) of function `f` of x, at row `at` of output `y`. */
static void check_rows(const float *y, int64_t at, int64_t from, int64_t count, int f) {
    for (int64_t r = 0; r < count; r++)
        for (int c = 0; c < ROW; c++) {
            const float x = x_at(from + r, c), relu = x > 0 ? x : 0;
            const float want[] = {x, relu, -x, fabsf(x), -relu};
            CHECK(y[(at + r) * ROW + c] == want[f]);
        }
}

enum { ID, RELU, NEG, ABS, MINUS_RELU };

/* Views of a step's result and of the input, as outputs and as inputs of other steps. */
static void slices(void) {
    net n;
    static got g;
    begin(&n);
    net_node(&n, "", "Relu", "x", "r");
    net_node(&n, "", "Slice", "r,1,3,0", "s");
    axis0(&n, "Split", "r,parts", "p,q");
    net_node(&n, "", "Slice", "x,1,3,0", "t");
    net_node(&n, "", "Neg", "t", "u");
    net_node(&n, "", "Neg", "q", "v");
    axis0(&n, "Gather", "r,3", "w"); /* of one index */
    const char *outputs[] = {"s", "q", "t", "u", "v", "w"};
    for (int i = 0; i < 6; i++)
        net_output(&n, outputs[i]);
    NET_OK(&n, net_end(&n));
    run(&n, 6, &g);
    CHECK_INT(g.steps, 3);
    check_rows(g.y[5], 0, 3, 1, RELU);
    check_rows(g.y[0], 0, 1, 2, RELU);
    check_rows(g.y[1], 0, 2, 4, RELU);
    check_rows(g.y[2], 0, 1, 2, ID);
    check_rows(g.y[3], 0, 1, 2, NEG);
    check_rows(g.y[4], 0, 2, 4, MINUS_RELU);
    net_free(&n);
}

/* Operands of a Concat are computed in place, also in joins of joins and reshaped joins. */
static void joins(void) {
    net n;
    static got g;
    const int64_t shape[] = {-1, ROW};
    begin(&n);
    net_const(&n, "shape", QSIM_INT64, NET_DIMS(2), shape);
    net_node(&n, "", "Relu", "x", "r");
    net_node(&n, "", "Neg", "x", "a");
    net_node(&n, "", "Reshape", "a,shape", "b");
    axis0(&n, "Concat", "r,b", "c");
    net_node(&n, "", "Abs", "x", "d");
    axis0(&n, "Concat", "c,d", "e");
    net_node(&n, "", "Neg", "r", "f");
    net_output(&n, "e");
    net_output(&n, "f");
    NET_OK(&n, net_end(&n));
    run(&n, 2, &g);
    CHECK_INT(g.steps, 4);
    CHECK_INT(g.rows[0], 3 * X);
    check_rows(g.y[0], 0, 0, X, RELU);
    check_rows(g.y[0], X, 0, X, NEG);
    check_rows(g.y[0], 2 * X, 0, X, ABS);
    check_rows(g.y[1], 0, 0, X, MINUS_RELU);
    net_free(&n);
}

/* Operands that cannot be moved are copied: views, a second use, inputs, constants, outputs. */
static void copies(void) {
    net n;
    static got g;
    begin(&n);
    net_node(&n, "", "Relu", "x", "r");
    net_node(&n, "", "Neg", "x", "a");
    net_node(&n, "", "Abs", "x", "o");
    net_node(&n, "", "Slice", "r,1,3,0", "s");
    axis0(&n, "Concat", "a,s,a,x,k,o,r", "c");
    axis0(&n, "Concat", "r,a", "d");
    net_output(&n, "c");
    net_output(&n, "o");
    net_output(&n, "d");
    NET_OK(&n, net_end(&n));
    run(&n, 3, &g);
    CHECK_INT(g.steps, 5);
    CHECK_INT(g.rows[0], 5 * X + 3);
    check_rows(g.y[0], 0, 0, X, NEG);
    check_rows(g.y[0], X, 1, 2, RELU);
    check_rows(g.y[0], X + 2, 0, X, NEG);
    check_rows(g.y[0], 2 * X + 2, 0, X, ID);
    CHECK(memcmp(&g.y[0][(3 * X + 2) * ROW], n.g->values[qs_graph_find(n.g, "k")].data->data,
                 ROW * sizeof(float)) == 0);
    check_rows(g.y[0], 3 * X + 3, 0, X, ABS);
    check_rows(g.y[0], 4 * X + 3, 0, X, RELU);
    check_rows(g.y[1], 0, 0, X, ABS);
    check_rows(g.y[2], 0, 0, X, RELU);
    check_rows(g.y[2], X, 0, X, NEG);
    net_free(&n);
}

/* Runs of bytes after axes of one element, and slices that are none. */
static void runs(void) {
    net n;
    static got g;
    begin(&n);
    const int64_t shape[] = {1, X, 2, 2};
    net_const(&n, "shape", QSIM_INT64, NET_DIMS(4), shape);
    list(&n, "2", 2);
    net_node(&n, "", "Reshape", "x,shape", "b");
    net_node(&n, "", "Relu", "b", "r");
    net_node(&n, "", "Slice", "r,1,3,1", "s");   /* a view */
    net_node(&n, "", "Slice", "r,0,1,3", "t");   /* columns */
    net_node(&n, "", "Slice", "r,0,3,1,2", "u"); /* every second */
    net_node(&n, "", "Slice", "s,1,2,1", "v");   /* a view of a view */
    net_output(&n, "s");
    net_output(&n, "t");
    net_output(&n, "u");
    net_output(&n, "v");
    NET_OK(&n, net_end(&n));
    run(&n, 4, &g);
    CHECK_INT(g.steps, 3);
    check_rows(g.y[0], 0, 1, 2, RELU);
    for (int r = 0; r < 2 * X; r++)
        CHECK(g.y[1][r] == fmaxf(x_at(r / 2, r % 2 * 2), 0));
    check_rows(g.y[2], 0, 0, 1, RELU);
    check_rows(g.y[2], 1, 2, 1, RELU);
    check_rows(g.y[3], 0, 2, 1, RELU);
    net_free(&n);
}

int main(void) {
    slices();
    joins();
    copies();
    runs();
    return test_done();
}
