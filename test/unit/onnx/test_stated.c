/* SPDX-License-Identifier: MIT */
/*
 * Sizes that a model states and a run contradicts: refused with the node's name at every level, and
 * also in the model from qsim_model_optimize; other models run alike. Sizes that are declared of
 * what a node computes and that it contradicts: the node is right.
 */
#include "net.h"
#include "proto.h"

#define COLUMNS 8

static void ints(net *n, const char *name, int64_t count, const int64_t *v) {
    net_const(n, name, QSIM_INT64, 1, &count, v);
}

/* Runs the model on `rows` rows of COLUMNS at a level; the first output's shape as text. */
static int run_at(const qsim_model *m, int32_t level, int64_t rows, char *shape, qsim_error *e) {
    float x[4 * COLUMNS] = {0};
    const int64_t dims[] = {rows, COLUMNS};
    qsim_tensor in = {QSIM_FLOAT, 2, dims, x, (size_t)rows * COLUMNS * sizeof(float)};
    qsim_tensor out = {0};
    qsim_session_options o = {.struct_size = sizeof(o), .level = level};
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    int code = qsim_session_create(m, &o, &s, e);
    if (!code)
        code = qsim_run_create(s, &r, e);
    if (!code)
        code = qsim_run_execute(r, &in, 1, &out, 1, e);
    shape[0] = '\0';
    for (int32_t i = 0; !code && i < out.rank; i++)
        snprintf(shape + strlen(shape), 16, "%lld,", (long long)out.dims[i]);
    qsim_run_free(r);
    qsim_session_free(s);
    return code;
}

/* The model as it is and as optimized at each level, run at each level. */
static void check(net *n, int64_t rows, const char *shape, const char *refusal) {
    static const int32_t levels[] = {QSIM_LEVEL_DISABLE, QSIM_LEVEL_BASIC, QSIM_LEVEL_EXTENDED,
                                     QSIM_LEVEL_ALL};
    char got[128];
    qsim_error e;
    NET_OK(n, net_end(n));
    for (size_t i = 0; i < 5; i++) {
        qsim_model *m = NULL;
        if (i < 4)
            CHECK_INT(qsim_model_optimize(n->model, levels[i], &m, &e), 0);
        for (size_t k = 0; k < 4; k++) {
            const int code = run_at(m ? m : n->model, levels[k], rows, got, &e);
            CHECK_INT(code, refusal ? QSIM_E_SHAPE : 0);
            CHECK_STR(got, shape);
            if (refusal)
                CHECK(strstr(e.message, refusal) != NULL);
        }
        qsim_model_free(m);
    }
    net_free(n);
}

static void begin(net *n) {
    net_begin(n, NULL, 13);
    net_input(n, "x", QSIM_FLOAT, NET_DIMS(-1, COLUMNS));
}

static void end(net *n, const char *last) {
    net_node(n, "", "Neg", last, "y");
    net_output(n, "y");
}

/* A Reshape whose result's shape does not matter to the next Reshape. */
static void reshapes(const int64_t *first, int64_t rows, const char *shape, const char *refusal) {
    net n;
    begin(&n);
    ints(&n, "first", 2, first);
    ints(&n, "four", 2, (int64_t[]){-1, 4});
    net_node(&n, "", "Reshape", "x,first", "a");
    net_node(&n, "", "Reshape", "a,four", "b");
    end(&n, "b");
    check(&n, rows, shape, refusal);
}

/* An axis removed and inserted again; a sum over it hides its size. */
static void squeezes(int64_t rows, const char *shape, const char *refusal) {
    net n;
    begin(&n);
    ints(&n, "zero", 1, (int64_t[]){0});
    net_node(&n, "", "Squeeze", "x,zero", "a");
    net_node(&n, "", "Unsqueeze", "a,zero", "b");
    net_node(&n, "", "ReduceSum", "b,zero", "c");
    end(&n, "c");
    check(&n, rows, shape, refusal);
}

/* What is declared between two nodes, of an input whose rows have a name or none. */
static void declared(const char *symbol, int64_t rows, const char *shape, const char *refusal) {
    const qs_dim dims[] = {{1, NULL}, {COLUMNS, NULL}},
                 free_rows[] = {{-1, symbol}, {COLUMNS, NULL}};
    net n;
    begin(&n);
    CHECK_INT(qs_value_set_shape(n.g, net_value(&n, "x"), QSIM_FLOAT, 2, free_rows), 0);
    ints(&n, "one", 2, (int64_t[]){1, -1});
    net_node(&n, "", "Abs", "x", "a");
    const qs_id a = net_value(&n, "a");
    CHECK_INT(qs_value_set_shape(n.g, a, QSIM_FLOAT, 2, dims), 0);
    n.g->values[a].declared = true;
    net_node(&n, "", "Reshape", "a,one", "b"); /* the identity, if that is true */
    end(&n, "b");
    check(&n, rows, shape, refusal);
}

/* Declared of an output only: many files declare the batch size that they were exported with. */
static void declared_output(void) {
    const qs_dim dims[] = {{1, NULL}, {COLUMNS, NULL}};
    net n;
    begin(&n);
    net_node(&n, "", "Neg", "x", "y");
    const qs_id y = net_value(&n, "y");
    CHECK_INT(qs_value_set_shape(n.g, y, QSIM_FLOAT, 2, dims), 0);
    n.g->values[y].declared = true;
    net_output(&n, "y");
    check(&n, 3, "3,8,", NULL);
}

/* Bytes joined and shuffled with their other axes exchanged, or under a number of rows that is not
 * the run's: no channel shuffle. */
static void shuffled(int64_t h, int64_t w, int64_t rows, const char *shape, const char *refusal) {
    net n;
    begin(&n);
    net_float(&n, "s", 0.5f);
    net_byte(&n, "z", QSIM_UINT8, 3);
    ints(&n, "in", 3, (int64_t[]){0, 2, 4});
    ints(&n, "apart", 4, (int64_t[]){h, w, 2, 4});
    ints(&n, "join", 3, (int64_t[]){h, w, 8});
    net_node(&n, "", "QuantizeLinear", "x,s,z", "q");
    net_node(&n, "", "Reshape", "q,in", "a");
    net_node(&n, "", "Neg", "x", "m");
    net_node(&n, "", "QuantizeLinear", "m,s,z", "p");
    net_node(&n, "", "Reshape", "p,in", "b");
    qs_graph_set_import(n.g, "com.microsoft", 1);
    const qs_id c = net_node(&n, "com.microsoft", "QLinearConcat", "s,z,a,s,z,b,s,z", "c");
    qs_node_set_int(n.g, c, "axis", 2);
    net_node(&n, "", "Reshape", "c,apart", "d");
    net_ints(&n, net_node(&n, "", "Transpose", "d", "e"), "perm", 4, (int64_t[]){0, 1, 3, 2});
    net_node(&n, "", "Reshape", "e,join", "f");
    net_node(&n, "", "DequantizeLinear", "f,s,z", "g");
    end(&n, "g");
    check(&n, rows, shape, refusal);
}

static void keep_line(void *user, int32_t level, const char *line) {
    char *log = user;
    if (level == QSIM_LOG_WARNING)
        snprintf(log + strlen(log), 256 - strlen(log), "%s\n", line);
}

/* The file of y = -(-x), x [3,8], which declares a type and sizes for both results. */
static void write_declared(proto *file, int type, const int64_t *a, int a_rank, const int64_t *y,
                           int y_rank) {
    const int64_t x[] = {3, COLUMNS};
    proto graph = {0};
    proto_node(&graph, "Neg", "first", "x", NULL, "a");
    proto_node(&graph, "Neg", "second", "a", NULL, "y");
    proto_value(&graph, 11, "x", QSIM_FLOAT, x, 2);
    proto_value(&graph, 13, "a", QSIM_FLOAT, a, a_rank);
    proto_value(&graph, 12, "y", type, y, y_rank);
    proto_model(file, &graph);
    proto_free(&graph);
}

/* Sizes that a node contradicts: its own hold, a warning says so, and qsim_model_check counts. */
static void misdeclared(const int64_t *a, int a_rank, const int64_t *y, int y_rank,
                        const char *warnings, int problems) {
    char log[256] = "", shape[128];
    const qsim_ctx_options co = {
        .struct_size = sizeof(co), .threads = 1, .log = keep_line, .log_user = log};
    qsim_load_options o = {.struct_size = sizeof(o), .name = "m"};
    qsim_ctx *ctx = NULL;
    qsim_model *m = NULL;
    proto file = {0};
    write_declared(&file, QSIM_FLOAT, a, a_rank, y, y_rank);
    CHECK_INT(qsim_ctx_create(&co, &ctx, NULL), QSIM_OK);
    CHECK_INT(qsim_model_load_memory(ctx, file.data, file.size, &o, &m, NULL), QSIM_OK);
    CHECK_STR(log, warnings);
    CHECK_INT(run_at(m, QSIM_LEVEL_ALL, 3, shape, NULL), QSIM_OK);
    CHECK_STR(shape, "3,8,");
    CHECK_INT(qsim_model_check(m, NULL, NULL), problems);
    qsim_model_free(m);
    o.flags = QSIM_LOAD_CHECK;
    CHECK_INT(qsim_model_load_memory(ctx, file.data, file.size, &o, &m, NULL), QSIM_OK);
    CHECK_INT(qsim_model_check(m, NULL, NULL), problems);
    qsim_model_free(m);
    qsim_ctx_free(ctx);
    proto_free(&file);
}

/* No rows are no rows, also where the file leaves their number open. */
static void declared_open(void) {
    const int64_t none[] = {0, COLUMNS}, open[] = {-1, COLUMNS};
    qsim_model *m = NULL;
    proto file = {0}, graph = {0};
    proto_node(&graph, "Relu", "n", "x", NULL, "y");
    proto_value(&graph, 11, "x", QSIM_FLOAT, none, 2);
    proto_value(&graph, 12, "y", QSIM_FLOAT, open, 2);
    proto_model(&file, &graph);
    CHECK_INT(qsim_model_load_memory(NULL, file.data, file.size, NULL, &m, NULL), QSIM_OK);
    const qs_value *y = &m->graph->values[qs_graph_find(m->graph, "y")];
    CHECK(y->rank == 2 && y->dims[0].size == 0 && y->dims[1].size == COLUMNS);
    qsim_model_free(m);
    proto_free(&file);
    proto_free(&graph);
}

/* A number that is declared as a matrix. */
static void misdeclared_scalar(void) {
    const int64_t dims[] = {3, COLUMNS};
    char log[256] = "";
    const qsim_ctx_options co = {.struct_size = sizeof(co), .log = keep_line, .log_user = log};
    const qsim_load_options o = {.struct_size = sizeof(o), .name = "m"};
    qsim_ctx *ctx = NULL;
    qsim_model *m = NULL;
    proto file = {0}, graph = {0}, node = {0};
    proto_begin(&node, "ReduceMax", "x", "y");
    proto_integer(&node, "keepdims", 0);
    proto_take(&graph, 1, &node);
    proto_value(&graph, 11, "x", QSIM_FLOAT, dims, 2);
    proto_value(&graph, 12, "y", QSIM_FLOAT, dims, 2);
    proto_model(&file, &graph);
    CHECK_INT(qsim_ctx_create(&co, &ctx, NULL), QSIM_OK);
    CHECK_INT(qsim_model_load_memory(ctx, file.data, file.size, &o, &m, NULL), QSIM_OK);
    CHECK_STR(log, "m: 'y' has the shape []; the file declares another\n");
    qsim_model_free(m);
    qsim_ctx_free(ctx);
    proto_free(&file);
    proto_free(&graph);
    proto_free(&node);
}

static void declared_type(void) {
    const int64_t dims[] = {3, COLUMNS};
    qsim_model *m = NULL;
    qsim_error e;
    proto file = {0};
    write_declared(&file, QSIM_INT8, dims, 2, dims, 2);
    CHECK_INT(qsim_model_load_memory(NULL, file.data, file.size, NULL, &m, &e), QSIM_E_DTYPE);
    CHECK(strstr(e.message, "output 'y' is declared int8 but is float (node 'second'") != NULL);
    proto_free(&file);
}

/* A type that is no tensor's says nothing of a tensor: the next that is stated of it counts. */
static void other_type(void) {
    const int64_t x[] = {3, COLUMNS}, wrong[] = {5};
    qsim_model *m = NULL;
    proto graph = {0}, file = {0}, type = {0}, value = {0};
    proto_node(&graph, "Neg", "first", "x", NULL, "a");
    proto_node(&graph, "Neg", "second", "a", NULL, "y");
    proto_value(&graph, 11, "x", QSIM_FLOAT, x, 2);
    proto_bytes(&type, 4, NULL, 0); /* sequence_type */
    proto_text(&value, 1, "a");
    proto_take(&value, 2, &type);
    proto_take(&graph, 13, &value);
    proto_value(&graph, 13, "a", QSIM_FLOAT, wrong, 1);
    proto_value(&graph, 12, "y", QSIM_FLOAT, x, 2);
    proto_model(&file, &graph);
    CHECK_INT(qsim_model_load_memory(NULL, file.data, file.size, NULL, &m, NULL), QSIM_OK);
    CHECK_INT(qsim_model_check(m, NULL, NULL), 1);
    qsim_model_free(m);
    proto_free(&file);
    proto_free(&graph);
    proto_free(&value);
    proto_free(&type);
}

/* Of a tensor what is stated first counts, also of a constant, whose own sizes nothing changes. */
static void stated_twice(void) {
    static const int64_t x[] = {COLUMNS}, wrong[] = {5};
    static const float w[COLUMNS] = {0};
    for (int first = 0; first <= 1; first++) { /* which of both statements is right */
        qsim_model *m = NULL;
        qsim_error e = {0};
        proto graph = {0}, file = {0}, tensor = {0};
        proto_node(&graph, "Add", "first", "x", "w", "a");
        proto_node(&graph, "Neg", "second", "a", NULL, "y");
        proto_int(&tensor, 1, COLUMNS);
        proto_int(&tensor, 2, QSIM_FLOAT);
        proto_text(&tensor, 8, "w");
        proto_bytes(&tensor, 9, w, sizeof(w));
        proto_take(&graph, 5, &tensor);
        proto_value(&graph, 11, "x", QSIM_FLOAT, x, 1);
        proto_value(&graph, 12, "y", QSIM_FLOAT, x, 1);
        proto_value(&graph, 13, "a", QSIM_FLOAT, first ? wrong : x, 1);
        proto_value(&graph, 13, "a", QSIM_FLOAT, first ? x : wrong, 1);
        proto_value(&graph, 13, "w", QSIM_FLOAT, wrong, 1);
        proto_value(&graph, 13, "x", QSIM_FLOAT, wrong, 1);
        proto_model(&file, &graph);
        CHECK_INT(qsim_model_load_memory(NULL, file.data, file.size, NULL, &m, &e), QSIM_OK);
        CHECK_INT(qsim_model_check(m, NULL, NULL), first);
        for (int32_t i = 0; m && i < qsim_model_value_count(m); i++) {
            qsim_value_info v = {.struct_size = sizeof(v)};
            CHECK_INT(qsim_model_value(m, i, &v), QSIM_OK);
            CHECK(strcmp(v.name, "w") != 0 || (v.rank == 1 && v.dims[0] == COLUMNS));
        }
        qsim_model_free(m);
        proto_free(&tensor);
        proto_free(&file);
        proto_free(&graph);
    }
}

int main(void) {
    stated_twice();
    reshapes((int64_t[]){1, 8}, 1, "2,4,", NULL);
    reshapes((int64_t[]){1, 8}, 2, "", "16 elements cannot take a shape of 8 (node 'a'");
    reshapes((int64_t[]){-1, 16}, 2, "4,4,", NULL);
    reshapes((int64_t[]){-1, 16}, 3, "", "-1 stands for 24 elements over 16 (node 'a'");
    reshapes((int64_t[]){-1, 2}, 3, "6,4,", NULL);
    squeezes(1, "1,8,", NULL);
    squeezes(2, "", "axis 0 has size 2, not 1 (node 'a'");
    declared(NULL, 1, "1,8,", NULL);
    declared(NULL, 2, "", "axis 0 of 'a' is 2, the model states 1 (node 'a'");
    declared("N", 1, "1,8,", NULL);
    declared("N", 2, "1,16,", NULL);
    declared_output();
    declared_type();
    other_type();
    const int64_t right[] = {3, COLUMNS}, open[] = {-1, COLUMNS}, wrong[] = {-1, 4, 1};
    misdeclared(right, 2, open, 2, "", 0);
    misdeclared(right, 2, wrong, 2, "m: 'y' has the shape [3,8]; the file declares another\n", 1);
    misdeclared(right, 2, (int64_t[]){0, COLUMNS}, 2,
                "m: 'y' has the shape [3,8]; the file declares another\n", 1);
    misdeclared(right, 2, (int64_t[]){3, 0}, 2,
                "m: 'y' has the shape [3,8]; the file declares another\n", 1);
    misdeclared(wrong, 3, wrong, 0,
                "m: 'a' has the shape [3,8]; the file declares another\n"
                "m: 'y' has the shape [3,8]; the file declares another\n",
                2);
    misdeclared_scalar();
    declared_open();
    shuffled(0, 0, 2, "2,2,8,", NULL);
    shuffled(2, 3, 3, "2,3,8,", NULL);
    shuffled(2, 2, 3, "", "48 elements cannot take a shape of 32 (node 'd'");
    return test_done();
}
