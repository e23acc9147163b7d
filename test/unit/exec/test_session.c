/* SPDX-License-Identifier: MIT */
/* Sessions and runs over plain float networks. */
#include "heap.h"
#include "net.h"

#include <math.h>

/* y = relu(x + c) reshaped; z = -x; the batch is open. */
static void two_outputs(net *n, qsim_ctx *ctx) {
    static const float c[3] = {1, -2, 0.5f};
    static const int64_t shape[] = {-1}, three[] = {3}, one[] = {1};
    net_begin(n, ctx, 13);
    net_input(n, "x", QSIM_FLOAT, NET_DIMS(-1, 3));
    net_const(n, "c", QSIM_FLOAT, 1, three, c);
    net_const(n, "shape", QSIM_INT64, 1, one, shape);
    net_node(n, "", "Add", "x,c", "sum");
    net_node(n, "", "Relu", "sum", "relu");
    net_node(n, "", "Reshape", "relu,shape", "y");
    net_node(n, "", "Neg", "x", "z");
    net_output(n, "y");
    net_output(n, "z");
    NET_OK(n, net_end(n));
}

static void results(void) {
    net n;
    float x[6] = {1, 2, 3, -4, -5, -6}, y[6], z[6];
    const int64_t dims[] = {2, 3};
    two_outputs(&n, NULL);
    for (int32_t level = 0; level <= QSIM_LEVEL_ALL; level++) {
        qsim_tensor in = net_tensor(QSIM_FLOAT, 2, dims, x);
        qsim_tensor out[2] = {{.data = y, .bytes = sizeof(y)}, {.data = z, .bytes = sizeof(z)}};
        NET_OK(&n, net_run(&n, level, false, &in, 1, out, 2));
        const float want[6] = {2, 0, 3.5f, 0, 0, 0};
        for (int i = 0; i < 6; i++) {
            CHECK_NEAR(y[i], want[i], 0);
            CHECK_NEAR(z[i], -x[i], 0);
        }
        CHECK_INT(out[0].rank, 1);
        CHECK_INT(out[0].bytes, 24);
    }
    net_free(&n);
}

static void keep_line(void *user, int32_t level, const char *line) {
    snprintf(user, 128, "%d %s", (int)level, line);
}

static void log_lines(void) {
    net n;
    char line[128] = "";
    qsim_ctx *ctx = NULL;
    qsim_ctx_options o = {
        .struct_size = sizeof(o), .threads = 1, .log = keep_line, .log_user = line};
    CHECK_INT(qsim_ctx_create(&o, &ctx, NULL), 0);
    two_outputs(&n, ctx);
    qsim_session *s = NULL;
    NET_OK(&n, qsim_session_create(n.model, NULL, &s, &n.error));
    CHECK(strncmp(line, "3 net: compiled to ", 19) == 0);
    qsim_session_free(s);
    net_free(&n);
    qsim_ctx_free(ctx);
}

static void own_memory_and_shapes(void) {
    net n;
    qsim_session *s;
    qsim_run *r;
    float x[30];
    qsim_tensor out[2] = {{0}};
    two_outputs(&n, NULL);
    NET_OK(&n, qsim_session_create(n.model, NULL, &s, &n.error));
    net_free(&n); /* the session holds the data that it needs */
    CHECK_STR(qsim_session_input_name(s, 0), "x");
    CHECK_STR(qsim_session_output_name(s, 1), "z");
    CHECK(qsim_session_output_name(s, 2) == NULL);
    CHECK_INT(qsim_run_create(s, &r, NULL), 0);
    qsim_session_free(s);
    for (int round = 0; round < 24; round++) {
        /* More shapes than a run keeps plans for; `out` still has the views of the last round. */
        const int64_t dims[] = {1 + round * 7 % 10, 3};
        for (int i = 0; i < 30; i++)
            x[i] = (float)(i - round);
        qsim_tensor in = net_tensor(QSIM_FLOAT, 2, dims, x);
        CHECK_INT(qsim_run_execute(r, &in, 1, out, 2, NULL), 0);
        CHECK_INT(out[0].dims[0], dims[0] * 3);
        const float *z = out[1].data;
        for (int i = 0; i < dims[0] * 3; i++)
            CHECK_NEAR(z[i], -x[i], 0);
    }
    CHECK(qsim_run_arena_bytes(r) > 0);
    CHECK_INT(qsim_run_step_count(r), 2); /* Add fused with Relu, Neg */
    qsim_step_info info = {.struct_size = sizeof(info)};
    CHECK_INT(qsim_run_step(r, 0, &info), 0);
    CHECK_STR(info.op_type, "Add");
    CHECK_INT(qsim_run_step(r, 2, &info), QSIM_E_ARGUMENT);
    qsim_run_free(r);
}

static void refusals(void) {
    net n;
    qsim_session *s;
    qsim_run *r;
    float x[6] = {0}, y[2];
    const int64_t dims[] = {2, 3}, bad[] = {2, 4};
    qsim_error e;
    two_outputs(&n, NULL);
    CHECK_INT(qsim_session_create(n.model, NULL, &s, NULL), 0);
    CHECK_INT(qsim_run_create(s, &r, NULL), 0);
    qsim_tensor out[2] = {{0}}, in = net_tensor(QSIM_FLOAT, 2, bad, x);
    CHECK_INT(qsim_run_execute(r, &in, 1, out, 2, &e), QSIM_E_SHAPE);
    CHECK_STR(e.message, "net: input 'x' is given as [2,4], the model takes 3 at axis 1");
    in = net_tensor(QSIM_INT32, 2, dims, x);
    CHECK_INT(qsim_run_execute(r, &in, 1, out, 2, &e), QSIM_E_DTYPE);
    in = net_tensor(QSIM_FLOAT, 2, dims, x);
    CHECK_INT(qsim_run_execute(r, &in, 2, out, 2, &e), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_run_execute(r, &in, 1, out, 1, &e), QSIM_E_ARGUMENT);
    in.bytes = 20;
    CHECK_INT(qsim_run_execute(r, &in, 1, out, 2, &e), QSIM_E_ARGUMENT);
    in.bytes = 24;
    out[0] = (qsim_tensor){.data = y, .bytes = sizeof(y)};
    CHECK_INT(qsim_run_execute(r, &in, 1, out, 2, &e), QSIM_E_ARGUMENT);
    out[0].data = NULL;
    qsim_run_cancel(r);
    CHECK_INT(qsim_run_execute(r, &in, 1, out, 2, &e), QSIM_E_CANCELLED);
    CHECK_INT(qsim_run_execute(r, &in, 1, out, 2, &e), 0);
    qsim_run_free(r);
    qsim_session_free(s);
    const char *names[] = {"sum", "nothing"};
    qsim_session_options o = {.struct_size = sizeof(o), .outputs = names, .output_count = 2};
    CHECK_INT(qsim_session_create(n.model, &o, &s, &e), QSIM_E_NOT_FOUND);
    CHECK(strstr(e.message, "'nothing'") != NULL);
    o.outputs = NULL;
    CHECK_INT(qsim_session_create(n.model, &o, &s, &e), QSIM_E_ARGUMENT);
    CHECK_STR(e.message, "net: 2 outputs are asked for without their names");
    net_free(&n);
}

/* Any tensor by name: intermediate ones, inputs, constants, the same tensor twice. */
static void taps(void) {
    net n;
    float x[3] = {1, 2, 3};
    const int64_t dims[] = {1, 3};
    const char *names[] = {"sum", "x", "c", "y", "sum"};
    qsim_session_options o = {.struct_size = sizeof(o), .outputs = names, .output_count = 5};
    qsim_session *s;
    qsim_run *r;
    float given[3];
    qsim_tensor out[5] = {{0}}, in = net_tensor(QSIM_FLOAT, 2, dims, x);
    two_outputs(&n, NULL);
    NET_OK(&n, qsim_session_create(n.model, &o, &s, &n.error));
    CHECK_INT(qsim_run_create(s, &r, NULL), 0);
    for (int round = 0; round < 2; round++) {
        NET_OK(&n, qsim_run_execute(r, &in, 1, out, 5, &n.error));
        const float want[5][3] = {
            {2, 0, 3.5f}, {1, 2, 3}, {1, -2, 0.5f}, {2, 0, 3.5f}, {2, 0, 3.5f}};
        for (int k = 0; k < 5; k++)
            for (int i = 0; i < 3; i++)
                CHECK_NEAR(((const float *)out[k].data)[i], want[k][i], 0);
        CHECK(out[1].data != x && out[2].data != out[0].data);
        out[4] = (qsim_tensor){.data = given, .bytes = sizeof(given)};
    }
    CHECK_STR(qsim_session_output_name(s, 4), "sum");
    qsim_run_free(r);
    qsim_session_free(s);
    net_free(&n);
}

/* ---- allocation ---- */

static void no_allocation(void) {
    net n;
    test_heap h = {0};
    qsim_allocator a = test_heap_allocator(&h);
    qsim_ctx_options o = {.struct_size = sizeof(o), .allocator = &a, .threads = 1};
    qsim_ctx *ctx;
    qsim_session *s;
    qsim_run *r;
    float x[30] = {0};
    CHECK_INT(qsim_ctx_create(&o, &ctx, NULL), 0);
    two_outputs(&n, ctx);
    CHECK_INT(qsim_session_create(n.model, NULL, &s, NULL), 0);
    CHECK_INT(qsim_run_create(s, &r, NULL), 0);
    const int64_t small[] = {2, 3}, large[] = {10, 3};
    qsim_tensor in[2] = {net_tensor(QSIM_FLOAT, 2, small, x), net_tensor(QSIM_FLOAT, 2, large, x)};
    qsim_tensor out[2] = {{0}};
    CHECK_INT(qsim_run_reserve(r, &in[0], 1, NULL), 0);
    CHECK_INT(qsim_run_reserve(r, &in[1], 1, NULL), 0);
    long before = h.calls;
    for (int i = 0; i < 10; i++)
        CHECK_INT(qsim_run_execute(r, &in[i % 2], 1, out, 2, NULL), 0);
    CHECK_INT(h.calls, before);
    qsim_run_free(r);
    qsim_session_free(s);
    net_free(&n);
    qsim_ctx_free(ctx);
    CHECK_INT(h.live, 0);
}

/* Sizes computed from Shape are known when a run is planned: [a,2,b] becomes [a,4,b/2]. */
static void shape_arithmetic(void) {
    net n;
    static const int64_t three[] = {3}, times[] = {1, 2, 1}, by[] = {1, 1, 2};
    float x[24], y[24];
    net_begin(&n, NULL, 13);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(-1, 2, -1));
    net_const(&n, "times", QSIM_INT64, 1, three, times);
    net_const(&n, "by", QSIM_INT64, 1, three, by);
    net_node(&n, "", "Shape", "x", "shape");
    net_node(&n, "", "Mul", "shape,times", "product");
    net_node(&n, "", "Div", "product,by", "target");
    net_node(&n, "", "Reshape", "x,target", "shaped");
    net_node(&n, "", "Neg", "shaped", "y");
    net_output(&n, "y");
    NET_OK(&n, net_end(&n));
    for (int i = 0; i < 24; i++)
        x[i] = (float)i;
    const int64_t dims[] = {3, 2, 4};
    qsim_session *s;
    qsim_run *r;
    qsim_tensor in = net_tensor(QSIM_FLOAT, 3, dims, x), out = {.data = y, .bytes = sizeof(y)};
    NET_OK(&n, qsim_session_create(n.model, NULL, &s, &n.error));
    CHECK_INT(qsim_run_create(s, &r, NULL), 0);
    NET_OK(&n, qsim_run_execute(r, &in, 1, &out, 1, &n.error));
    CHECK_INT(out.rank, 3);
    CHECK_INT(out.dims[0], 3);
    CHECK_INT(out.dims[1], 4);
    CHECK_INT(out.dims[2], 2);
    CHECK_INT(qsim_run_step_count(r), 1); /* only Neg computes */
    for (int i = 0; i < 24; i++)
        CHECK_NEAR(y[i], -x[i], 0);
    qsim_run_free(r);
    qsim_session_free(s);
    net_free(&n);
}

/* An If by an input: only the branch taken has steps. */
static void choice_by_input(void) {
    net n;
    float x[4] = {-1, 2, -3, 4}, y[4];
    net_begin(&n, NULL, 13);
    net_input(&n, "flag", QSIM_BOOL, 0, NULL);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(4));
    net_node(&n, "", "Relu", "x", "a");
    net_node(&n, "", "Neg", "a", "then");
    net_node(&n, "", "Abs", "x", "else");
    net_node(&n, "", "Where", "flag,then,else", "y");
    net_output(&n, "y");
    NET_OK(&n, net_end(&n));
    const int64_t dims[] = {4};
    qsim_session *s;
    qsim_run *r;
    NET_OK(&n, qsim_session_create(n.model, NULL, &s, &n.error));
    CHECK_INT(qsim_run_create(s, &r, NULL), 0);
    for (int i = 0; i < 4; i++) {
        uint8_t flag = i % 2 == 0;
        const qsim_tensor in[2] = {net_tensor(QSIM_BOOL, 0, NULL, &flag),
                                   net_tensor(QSIM_FLOAT, 1, dims, x)};
        qsim_tensor out = {.data = y, .bytes = sizeof(y)};
        NET_OK(&n, qsim_run_execute(r, in, 2, &out, 1, &n.error));
        CHECK_INT(qsim_run_step_count(r), flag ? 2 : 1);
        for (int k = 0; k < 4; k++)
            CHECK_NEAR(y[k], flag ? (x[k] > 0 ? -x[k] : 0) : fabsf(x[k]), 0);
    }
    qsim_run_free(r);
    qsim_session_free(s);
    net_free(&n);
}

/* Swish and HardSwish as exporters write them: one step each, unless a part is read twice. */
static void curves(void) {
    for (int i = 0; i < 4; i++) {
        net n;
        float x[8], y[8];
        net_begin(&n, NULL, 13);
        net_input(&n, "x", QSIM_FLOAT, NET_DIMS(8));
        net_float(&n, "three", 3);
        net_float(&n, "six", 6);
        net_float(&n, "zero", 0);
        if (i < 2) {
            net_node(&n, "", "Sigmoid", "x", "s");
            net_node(&n, "", "Mul", i ? "s,x" : "x,s", "y");
        } else {
            net_node(&n, "", "Add", "three,x", "a");
            net_node(&n, "", "Clip", "a,zero,six", "s");
            net_node(&n, "", "Mul", "x,s", "m");
            net_node(&n, "", "Div", "m,six", "y");
        }
        if (i == 3)
            net_node(&n, "", "Neg", "s", "twice");
        net_output(&n, "y");
        if (i == 3)
            net_output(&n, "twice");
        NET_OK(&n, net_end(&n));
        for (int k = 0; k < 8; k++)
            x[k] = (float)k * 1.5f - 5;
        const int64_t dims[] = {8};
        const qsim_tensor in = net_tensor(QSIM_FLOAT, 1, dims, x);
        qsim_tensor out[2] = {{.data = y, .bytes = sizeof(y)}, {0}};
        qsim_session *s;
        qsim_run *r;
        NET_OK(&n, qsim_session_create(n.model, NULL, &s, &n.error));
        CHECK_INT(qsim_run_create(s, &r, NULL), 0);
        NET_OK(&n, qsim_run_execute(r, &in, 1, out, i == 3 ? 2 : 1, &n.error));
        CHECK_INT(qsim_run_step_count(r), i == 3 ? 4 : 1);
        for (int k = 0; k < 8; k++) {
            const double v = (double)x[k], hard = v * fmin(6, fmax(0, v + 3)) / 6;
            CHECK_NEAR(y[k], i < 2 ? v / (1 + exp(-v)) : hard, 1e-6);
        }
        qsim_run_free(r);
        qsim_session_free(s);
        net_free(&n);
    }
}

/* A shape given as an input: one plan for each value. */
static void shape_as_input(void) {
    net n;
    float x[12], y[12];
    qsim_error e;
    net_begin(&n, NULL, 13);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(12));
    net_input(&n, "shape", QSIM_INT64, NET_DIMS(2));
    net_node(&n, "", "Reshape", "x,shape", "shaped");
    net_node(&n, "", "Neg", "shaped", "y");
    net_output(&n, "y");
    NET_OK(&n, net_end(&n));
    for (int i = 0; i < 12; i++)
        x[i] = (float)i;
    const int64_t dims[] = {12}, two[] = {2};
    int64_t shapes[3][2] = {{3, 4}, {6, -1}, {5, 2}};
    qsim_session *s;
    qsim_run *r;
    qsim_tensor in[2] = {net_tensor(QSIM_FLOAT, 1, dims, x), net_tensor(QSIM_INT64, 1, two, NULL)};
    qsim_tensor out = {.data = y, .bytes = sizeof(y)};
    NET_OK(&n, qsim_session_create(n.model, NULL, &s, &n.error));
    NET_OK(&n, qsim_run_create(s, &r, &n.error));
    CHECK_INT(qsim_run_execute(r, in, 2, &out, 1, &e), QSIM_E_ARGUMENT);
    for (int i = 0; i < 8; i++) {
        in[1].data = shapes[i % 2];
        memset(y, 0, sizeof(y));
        NET_OK(&n, qsim_run_execute(r, in, 2, &out, 1, &n.error));
        CHECK_INT(out.dims[0], shapes[i % 2][0]);
        CHECK_INT(out.dims[1], i % 2 ? 2 : 4);
        CHECK_NEAR(y[11], -11, 0);
    }
    in[1].data = shapes[2];
    CHECK_INT(qsim_run_execute(r, in, 2, &out, 1, &e), QSIM_E_SHAPE);
    qsim_run_free(r);
    qsim_session_free(s);
    net_free(&n);
}

/* A sum of a million rows and a million columns is refused before any memory is allocated. */
static void too_large(void) {
    net n;
    qsim_session *s;
    qsim_run *r;
    static const int64_t two[] = {2}, column[] = {-1, 1}, row[] = {1, -1};
    static float x[1 << 20];
    qsim_error e;
    net_begin(&n, NULL, 13);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(-1));
    net_const(&n, "column", QSIM_INT64, 1, two, column);
    net_const(&n, "row", QSIM_INT64, 1, two, row);
    net_node(&n, "", "Reshape", "x,column", "a");
    net_node(&n, "", "Reshape", "x,row", "b");
    net_node(&n, "", "Add", "a,b", "sums");
    net_output(&n, "sums");
    NET_OK(&n, net_end(&n));
    CHECK_INT(qsim_session_create(n.model, NULL, &s, NULL), 0);
    CHECK_INT(qsim_run_create(s, &r, NULL), 0);
    const int64_t dims[] = {1 << 20};
    qsim_tensor t = net_tensor(QSIM_FLOAT, 1, dims, x), y = {0};
    CHECK_INT(qsim_run_execute(r, &t, 1, &y, 1, &e), QSIM_E_LIMIT);
    CHECK_STR(e.message,
              SIZE_MAX > UINT32_MAX
                  ? "net: tensor 'sums' needs 4398046511104 bytes, the limit is 17179869184 (node "
                    "'sums', Add)"
                  : "net: output 0 is larger than memory can be (node 'sums', Add: opset 13)");
    qsim_run_free(r);
    qsim_session_free(s);
    net_free(&n);
}

/* Planning does not loop over the rows of a node that it refuses: that would take years. */
static void too_many(void) {
    net n;
    qsim_session *s;
    qsim_run *r;
    float w[9] = {0};
    qsim_error e;
    net_begin(&n, NULL, 13);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(-1, 1, 4, 4));
    net_const(&n, "w", QSIM_FLOAT, NET_DIMS(1, 1, 3, 3), w);
    net_node(&n, "", "Conv", "x,w", "y");
    net_output(&n, "y");
    NET_OK(&n, net_end(&n));
    CHECK_INT(qsim_session_create(n.model, NULL, &s, NULL), 0);
    CHECK_INT(qsim_run_create(s, &r, NULL), 0);
    const int64_t dims[] = {INT64_C(1) << 48, 1, 4, 4}, negative[] = {-1, 1, 4, 4};
    qsim_tensor t = {QSIM_FLOAT, 4, dims, NULL, (size_t)(UINT64_C(1) << 54)};
    CHECK_INT(qsim_run_reserve(r, &t, 1, &e), QSIM_E_LIMIT);
    CHECK_STR(e.message,
              SIZE_MAX > UINT32_MAX
                  ? "net: output 0 needs 18014398509481984 bytes, the limit is 17179869184 (node "
                    "after 'x', Transpose)"
                  : "net: input 'x' is too large");
    t.dims = negative;
    CHECK_INT(qsim_run_reserve(r, &t, 1, &e), QSIM_E_SHAPE);
    CHECK_STR(e.message, "net: input 'x' is given as [-1,1,4,4]: a size is negative");
    qsim_run_free(r);
    qsim_session_free(s);
    net_free(&n);
}

/* Operators of the layout that a session chooses are called as ONNX calls them. */
static void names_of_operators(void) {
    static const float w[64 * 64] = {1};
    static const int64_t two[] = {2, 2};
    float x[64] = {0};
    net n;
    qsim_tensor out = {0};
    net_begin(&n, NULL, 13);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(1, 64, -1, -1));
    net_const(&n, "w", QSIM_FLOAT, NET_DIMS(64, 64, 1, 1), w);
    net_node(&n, "", "Conv", "x,w", "c");
    net_ints(&n, net_node(&n, "", "MaxPool", "c", "m"), "kernel_shape", 2, two);
    net_node(&n, "", "Conv", "m,w", "y");
    net_output(&n, "y");
    NET_OK(&n, net_end(&n));
    const int64_t dims[] = {1, 64, 1, 1};
    const qsim_tensor in = net_tensor(QSIM_FLOAT, 4, dims, x);
    for (int32_t level = QSIM_LEVEL_DISABLE; level <= QSIM_LEVEL_ALL; level++) {
        CHECK_INT(net_run(&n, level, false, &in, 1, &out, 1), QSIM_E_SHAPE);
        CHECK_STR(n.error.message, "net: the window spans 2 elements of an axis that has 1 with "
                                   "padding (node 'm', MaxPool: opset 13)");
    }
    net_free(&n);
}

static void gelu(void) {
    static const char *const last[3][2] = {{"x,a", "m,half"}, {"x,half", "m,a"}, {"half,a", "x,m"}};
    for (int i = 0; i < 3; i++) {
        net n;
        float x[8], y[8];
        net_begin(&n, NULL, 13);
        net_input(&n, "x", QSIM_FLOAT, NET_DIMS(8));
        net_float(&n, "root", i == 1 ? 0.70710678f : 1.41421356f);
        net_float(&n, "one", 1);
        net_float(&n, "half", 0.5f);
        net_node(&n, "", i == 1 ? "Mul" : "Div", "x,root", "d");
        net_node(&n, "", "Erf", "d", "e");
        net_node(&n, "", "Add", i == 2 ? "one,e" : "e,one", "a");
        net_node(&n, "", "Mul", last[i][0], "m");
        net_node(&n, "", "Mul", last[i][1], "y");
        net_output(&n, "y");
        NET_OK(&n, net_end(&n));
        for (int k = 0; k < 8; k++)
            x[k] = (float)k * 1.1f - 4;
        const int64_t dims[] = {8};
        const qsim_tensor in = net_tensor(QSIM_FLOAT, 1, dims, x);
        qsim_tensor out = {.data = y, .bytes = sizeof(y)};
        qsim_session *s;
        qsim_run *r;
        NET_OK(&n, qsim_session_create(n.model, NULL, &s, &n.error));
        CHECK_INT(qsim_run_create(s, &r, NULL), 0);
        NET_OK(&n, qsim_run_execute(r, &in, 1, &out, 1, &n.error));
        CHECK_INT(qsim_run_step_count(r), 1);
        for (int k = 0; k < 8; k++)
            CHECK_NEAR(y[k], (double)x[k] * erfc(-(double)x[k] * sqrt(0.5)) / 2, 1e-6);
        qsim_run_free(r);
        qsim_session_free(s);
        net_free(&n);
    }
}

int main(void) {
    results();
    log_lines();
    own_memory_and_shapes();
    refusals();
    taps();
    no_allocation();
    shape_arithmetic();
    choice_by_input();
    curves();
    gelu();
    names_of_operators();
    shape_as_input();
    too_large();
    too_many();
    return test_done();
}
