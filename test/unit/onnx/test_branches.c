/* SPDX-License-Identifier: MIT */
/*
 * If: the condition selects the branch, names inside a branch are local to it, and malformed nodes
 * are refused by the rule that they break.
 */
#include <stdbool.h>

#include "test.h"
#include "proto.h"

#include <qsim/qsim.h>

static const int64_t one[] = {1}, two[] = {2}, any[] = {-1};

static void constant(proto *graph, const char *name, int dtype, const int64_t *n, const void *data,
                     size_t size) {
    proto t = {0};
    if (n)
        proto_int(&t, 1, *n);
    proto_int(&t, 2, dtype);
    proto_text(&t, 8, name);
    proto_bytes(&t, 9, data, size);
    proto_take(graph, 5, &t);
    proto_free(&t);
}

/* t = x + (10, 20), u = -t */
static void adding(proto *g) {
    static const float k[] = {10, 20};
    constant(g, "k", QSIM_FLOAT, two, k, sizeof(k));
    proto_node(g, "Add", "add", "x", "k", "t");
    proto_node(g, "Neg", "neg", "t", NULL, "u");
    proto_name(g, 12, "t");
    proto_name(g, 12, "u");
}

/* t = x * x, u = max(x, 0): the names of the other branch. */
static void squaring(proto *g) {
    proto_node(g, "Mul", "mul", "x", "x", "t");
    proto_node(g, "Relu", "relu", "x", NULL, "u");
    proto_name(g, 12, "t");
    proto_name(g, 12, "u");
}

/* The outputs in the other order; the first is a value of the outer graph. */
static void outside(proto *g) {
    proto_node(g, "Neg", "neg", "x", NULL, "u");
    proto_name(g, 12, "x");
    proto_name(g, 12, "u");
}

/* c ? adding : d ? squaring : outside, into y and z. */
static void nested(proto *model, bool known) {
    proto g = {0}, then = {0}, otherwise = {0}, a = {0}, b = {0};
    static const uint8_t yes = 1;
    squaring(&a);
    outside(&b);
    proto_if(&otherwise, "inner", "d", &a, &b, "t,u");
    proto_name(&otherwise, 12, "t");
    proto_name(&otherwise, 12, "u");
    adding(&then);
    proto_if(&g, "outer", "c", &then, &otherwise, "y,z");
    proto_text(&g, 2, "g");
    if (known)
        constant(&g, "c", QSIM_BOOL, NULL, &yes, 1);
    else
        proto_value(&g, 11, "c", QSIM_BOOL, NULL, 0);
    proto_value(&g, 11, "d", QSIM_BOOL, NULL, 0);
    proto_value(&g, 11, "x", QSIM_FLOAT, two, 1);
    proto_value(&g, 12, "y", QSIM_FLOAT, two, 1);
    proto_value(&g, 12, "z", QSIM_FLOAT, two, 1);
    model->size = 0;
    proto_model(model, &g);
    proto_free(&g);
    proto_free(&then);
    proto_free(&otherwise);
    proto_free(&a);
    proto_free(&b);
}

static qsim_model *load(const proto *p) {
    qsim_model *m = NULL;
    qsim_error e = {0};
    CHECK_INT(qsim_model_load_memory(NULL, p->data, p->size, NULL, &m, &e), QSIM_OK);
    if (!m)
        fprintf(stderr, "%s\n", e.message);
    return m;
}

static void check_run(qsim_run *run, bool known, uint8_t c, uint8_t d) {
    float x[2] = {3, -4};
    const float expected[3][4] = {{13, 16, -13, -16}, {9, 16, 3, 0}, {3, -4, -3, 4}};
    const int which = c ? 0 : d ? 1 : 2;
    qsim_tensor in[3] = {{QSIM_BOOL, 0, NULL, &c, 1},
                         {QSIM_BOOL, 0, NULL, &d, 1},
                         {QSIM_FLOAT, 1, two, x, sizeof(x)}};
    qsim_tensor out[2] = {{0}};
    CHECK_INT(qsim_run_execute(run, in + known, known ? 2 : 3, out, 2, NULL), QSIM_OK);
    for (int i = 0; i < 4; i++)
        CHECK(((const float *)out[i / 2].data)[i % 2] == expected[which][i]);
}

/* Runs all conditions at a level, the first branch last: then nothing but its two nodes runs. */
static void check_level(const qsim_model *m, int32_t level, bool known) {
    qsim_session_options o = {.struct_size = sizeof(o), .level = level};
    qsim_session *s = NULL;
    qsim_run *run = NULL;
    CHECK_INT(qsim_session_create(m, &o, &s, NULL), QSIM_OK);
    CHECK_INT(qsim_run_create(s, &run, NULL), QSIM_OK);
    for (uint8_t k = 0; k < 4; k++)
        if (k % 2 == 1 || !known)
            check_run(run, known, k % 2, k / 2);
    CHECK_INT(qsim_run_step_count(run), 2);
    qsim_run_free(run);
    qsim_session_free(s);
}

static void check_choices(void) {
    proto p = {0};
    for (int known = 0; known < 2; known++) {
        nested(&p, known);
        qsim_model *m = load(&p);
        for (int32_t level = QSIM_LEVEL_DISABLE; m && level <= QSIM_LEVEL_ALL; level++)
            check_level(m, level, known);
        qsim_model_free(m);
    }
    proto_free(&p);
}

/*
 * The first choice has the node's name, the second one adds its output's. Names of nodes repeat in
 * branches, but not in the graph: ONNX Runtime refuses that.
 */
static void check_names(void) {
    static const char *const expected[] = {"if0/then/neg",   "if3/else/neg",
                                           "if1/else/inner", "if1/else/inner/if1/else/u",
                                           "outer",          "outer/z"};
    proto p = {0};
    size_t found = 0;
    nested(&p, false);
    qsim_model *m = load(&p);
    for (int32_t i = 0; m && i < qsim_model_node_count(m); i++) {
        qsim_node_info n = {.struct_size = sizeof(n)};
        CHECK_INT(qsim_model_node(m, i, &n), QSIM_OK);
        if ((strcmp(n.op_type, "Where") == 0 || strcmp(n.op_type, "Neg") == 0) && found < 6)
            CHECK_STR(n.name, expected[found++]);
    }
    CHECK_INT(found, 6);
    qsim_model_free(m);
    proto_free(&p);
}

/* ---- refusals ---- */

static void refused(proto *graph, int code, const char *part) {
    proto model = {0};
    qsim_model *m = NULL;
    qsim_error e = {0};
    proto_text(graph, 2, "g");
    proto_value(graph, 11, "c", QSIM_BOOL, NULL, 0);
    proto_value(graph, 11, "cs", QSIM_BOOL, two, 1);
    proto_value(graph, 11, "x", QSIM_FLOAT, two, 1);
    proto_value(graph, 11, "w", QSIM_FLOAT, one, 1);
    proto_value(graph, 11, "s", QSIM_FLOAT, any, 1);
    proto_value(graph, 12, "y", QSIM_FLOAT, two, 1);
    proto_value(graph, 12, "z", QSIM_FLOAT, two, 1);
    proto_model(&model, graph);
    CHECK_INT(qsim_model_load_memory(NULL, model.data, model.size, NULL, &m, &e), code);
    if (!strstr(e.message, part)) {
        fprintf(stderr, "message: %s\nexpected in it: %s\n", e.message, part);
        CHECK_FAIL("the message does not say what is wrong");
    }
    qsim_model_free(m);
    proto_free(&model);
}

/* One node of one operand and the outputs t and u, of which a branch needs two. */
static void small(proto *g, const char *input, const char *first, const char *second) {
    proto_node(g, "Neg", "neg", input, NULL, "t");
    proto_node(g, "Relu", "relu", "x", NULL, "u");
    proto_name(g, 12, first);
    if (second)
        proto_name(g, 12, second);
}

/* An error of the Where that replaces an If is reported as the If's. */
static void check_differences(void) {
    static const struct {
        const char *name, *condition, *part;
        int dtype, code;
    } cases[] = {
        {"if", "c", "", QSIM_FLOAT, QSIM_OK}, /* sizes may differ */
        {"if", "c", "'y' as int32 and as float (node 'if', If)", QSIM_INT32, QSIM_E_DTYPE},
        {"if", "x", "'x' of If is not a single value (node 'if', If)", QSIM_FLOAT, QSIM_E_SHAPE},
        {"if", "f", "'f' of If is float, not bool (node 'if', If)", QSIM_FLOAT, QSIM_E_DTYPE},
    };
    static const int64_t three[] = {3};
    static const int32_t data[3] = {0};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        proto g = {0}, a = {0}, b = {0};
        constant(&a, "k", cases[i].dtype, three, data, sizeof(data));
        proto_node(&a, "Neg", "neg", "k", NULL, "t");
        proto_node(&a, "Relu", "relu", "x", NULL, "u");
        proto_name(&a, 12, "t");
        proto_name(&a, 12, "u");
        small(&b, "x", "t", "u");
        proto_value(&g, 11, "f", QSIM_FLOAT, NULL, 0);
        proto_if(&g, cases[i].name, cases[i].condition, &a, &b, "y,z");
        refused(&g, cases[i].code, cases[i].part);
        proto_free(&g);
        proto_free(&a);
        proto_free(&b);
    }
}

static void check_refusals(void) {
    static const struct {
        const char *condition, *input, *first, *second, *part;
        int code;
    } cases[] = {
        {"c", "w", "t", "u", "", QSIM_OK},
        {"c", "s", "t", "u", "", QSIM_OK},
        {"cs", "x", "t", "u", "'cs' of If is not a single value", QSIM_E_SHAPE},
        {"none", "x", "t", "u", "condition is defined nowhere", QSIM_E_GRAPH},
        {"c", "x", "t", NULL, "a branch has 1 outputs, the node 2", QSIM_E_GRAPH},
        {"c", "x", "t", "v", "output 'v' of a branch is made by no node", QSIM_E_GRAPH},
    };
    proto g = {0}, a = {0}, b = {0};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (int side = 0; side < 2; side++) {
            small(side ? &b : &a, cases[i].input, cases[i].first, cases[i].second);
            small(side ? &a : &b, "x", "t", "u");
            proto_if(&g, "if", cases[i].condition, &a, &b, "y,z");
            refused(&g, cases[i].code, cases[i].part);
        }
    check_differences();
    small(&a, "x", "t", "u");
    small(&b, "x", "t", "u");
    proto_value(&b, 11, "p", QSIM_FLOAT, two, 1);
    proto_if(&g, "if", "c", &a, &b, "y,z");
    refused(&g, QSIM_E_UNSUPPORTED, "a branch with inputs");
    small(&a, "x", "t", "u");
    small(&b, "x", "t", "u");
    proto_bytes(&b, 15, NULL, 0);
    proto_if(&g, "if", "c", &a, &b, "y,z");
    refused(&g, QSIM_E_GRAPH, "an initializer has no name");
    small(&a, "x", "t", "u");
    proto_name(&a, 12, "x");
    small(&b, "x", "t", "u");
    proto_if(&g, "if", "c", &a, &b, "y,z");
    refused(&g, QSIM_E_GRAPH, "a branch has 3 outputs, the node 2");
    small(&a, "x", "t", "u");
    small(&b, "x", "t", "u");
    proto_if(&g, "if", "c", &a, &b, "y,y");
    refused(&g, QSIM_E_GRAPH, "tensor 'y' is written twice");
    proto_free(&g);
    proto_free(&a);
    proto_free(&b);
}

/* An If without its one condition, its outputs or one of its branches, beside a whole one. */
static void check_malformed(void) {
    static const struct {
        const char *inputs[2], *outputs[2];
        bool then, otherwise;
    } cases[] = {
        {{"c", NULL}, {"y", "z"}, true, true},   {{NULL, NULL}, {"y", "z"}, true, true},
        {{"c", "c"}, {"y", "z"}, true, true},    {{"", NULL}, {"y", "z"}, true, true},
        {{"c", NULL}, {NULL, NULL}, true, true}, {{"c", NULL}, {"y", "z"}, false, true},
        {{"c", NULL}, {"y", "z"}, true, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        proto g = {0}, node = {0}, branch = {0};
        for (int k = 0; k < 2 && cases[i].inputs[k]; k++)
            proto_text(&node, 1, cases[i].inputs[k]);
        for (int k = 0; k < 2 && cases[i].outputs[k]; k++)
            proto_text(&node, 2, cases[i].outputs[k]);
        proto_text(&node, 4, "If");
        small(&branch, "x", "t", "u");
        if (cases[i].then)
            proto_graph(&node, "then_branch", &branch);
        branch.size = 0;
        small(&branch, "x", "t", "u");
        if (cases[i].otherwise)
            proto_graph(&node, "else_branch", &branch);
        proto_take(&g, 1, &node);
        refused(&g, i ? QSIM_E_GRAPH : QSIM_OK,
                i ? "no condition, two branches and outputs (node" : "");
        proto_free(&g);
        proto_free(&node);
        proto_free(&branch);
    }
}

static int choices_of(const qsim_model *m) {
    int choices = 0;
    for (int32_t i = 0; m && i < qsim_model_node_count(m); i++) {
        qsim_node_info n = {.struct_size = sizeof(n)};
        CHECK_INT(qsim_model_node(m, i, &n), QSIM_OK);
        choices += strcmp(n.op_type, "If") == 0;
        CHECK_INT(n.graphs, strcmp(n.op_type, "If") == 0 ? 2 : 0);
    }
    return choices;
}

/* Loads a model of an If on "c", whose branches read "v" and "w"; frees the graph. */
static qsim_model *load_choice(proto *g, const char *name) {
    proto a = {0}, b = {0}, model = {0};
    small(&a, "v", "t", "u");
    small(&b, "w", "t", "u");
    proto_if(g, name, "c", &a, &b, "y,z");
    proto_text(g, 2, "g");
    proto_name(g, 12, "y");
    proto_name(g, 12, "z");
    proto_model(&model, g);
    qsim_model *m = load(&model);
    proto_free(&model);
    proto_free(g);
    proto_free(&a);
    proto_free(&b);
    return m;
}

/* A choice without a name gives none to what replaces it. */
static void check_unnamed(void) {
    proto g = {0};
    proto_value(&g, 11, "c", QSIM_BOOL, NULL, 0);
    proto_value(&g, 11, "v", QSIM_FLOAT, two, 1);
    proto_value(&g, 11, "w", QSIM_FLOAT, two, 1);
    proto_value(&g, 11, "x", QSIM_FLOAT, two, 1);
    qsim_model *m = load_choice(&g, "");
    int found = 0;
    for (int32_t i = 0; m && i < qsim_model_node_count(m); i++) {
        qsim_node_info n = {.struct_size = sizeof(n)};
        CHECK_INT(qsim_model_node(m, i, &n), QSIM_OK);
        if (strcmp(n.op_type, "Where") != 0)
            continue;
        CHECK_STR(n.name, "");
        found++;
    }
    CHECK_INT(found, 2);
    qsim_model_free(m);
}

/* Branches of the same known size, or of one name for it, are a Where; others stay an If. */
static void check_sizes(void) {
    static const struct {
        int64_t size;
        const char *name;
        int rank;
    } sizes[] = {{0, NULL, 1}, {1, NULL, 1}, {2, NULL, 1}, {-1, NULL, 1},
                 {-1, "n", 1}, {-1, "m", 1}, {0, NULL, 0}};
    for (int i = 0; i < 7; i++)
        for (int k = 0; k < 7; k++) {
            proto g = {0};
            proto_value(&g, 11, "c", QSIM_BOOL, NULL, 0);
            proto_value(&g, 11, "x", QSIM_FLOAT, two, 1);
            for (int side = 0; side < 2; side++) {
                const int which = side ? k : i;
                if (sizes[which].name)
                    proto_named_size(&g, side ? "w" : "v", QSIM_FLOAT, sizes[which].name);
                else
                    proto_value(&g, 11, side ? "w" : "v", QSIM_FLOAT, &sizes[which].size,
                                sizes[which].rank);
            }
            qsim_model *m = load_choice(&g, "if");
            CHECK_INT(choices_of(m), i != k || i == 3);
            qsim_model_free(m);
        }
}

/* A node outside fails if both results have the vector's size; they have not, so the If stays. */
static void check_beside(void) {
    static const int64_t three = 3;
    for (int number = 0; number < 2; number++) {
        proto g = {0};
        proto_value(&g, 11, "c", QSIM_BOOL, NULL, 0);
        proto_value(&g, 11, "x", QSIM_FLOAT, two, 1);
        proto_value(&g, 11, "v", QSIM_FLOAT, two, number != 0);
        proto_value(&g, 11, "w", QSIM_FLOAT, two, number != 1);
        proto_value(&g, 11, "three", QSIM_FLOAT, &three, 1);
        proto_node(&g, "Add", "beside", "y", "three", "s");
        qsim_model *m = load_choice(&g, "if");
        CHECK_INT(choices_of(m), 1);
        qsim_model_free(m);
    }
}

/* Branches of sizes with the same name are a Where, those of two names stay an If. */
static void check_named_sizes(bool same) {
    proto g = {0};
    proto_named_size(&g, "v", QSIM_FLOAT, "n");
    proto_named_size(&g, "w", QSIM_FLOAT, same ? "n" : "m");
    proto_value(&g, 11, "c", QSIM_BOOL, NULL, 0);
    proto_value(&g, 11, "x", QSIM_FLOAT, two, 1);
    qsim_model *m = load_choice(&g, "if");
    CHECK_INT(choices_of(m), same ? 0 : 1);
    qsim_session *s = NULL;
    qsim_run *run = NULL;
    CHECK_INT(qsim_session_create(m, NULL, &s, NULL), QSIM_OK);
    CHECK_INT(qsim_run_create(s, &run, NULL), QSIM_OK);
    for (uint8_t c = 0; c < 2; c++) {
        static const float v[] = {1, 2}, w[] = {3, 4, 5};
        const int64_t sizes[] = {2}, more[] = {same ? 2 : 3};
        const qsim_tensor in[] = {{QSIM_FLOAT, 1, sizes, (void *)(uintptr_t)v, sizeof(v)},
                                  {QSIM_FLOAT, 1, more, (void *)(uintptr_t)w, (size_t)*more * 4},
                                  {QSIM_BOOL, 0, NULL, &c, 1},
                                  {QSIM_FLOAT, 1, two, (void *)(uintptr_t)v, sizeof(v)}};
        qsim_tensor out[2] = {{0}};
        CHECK_INT(qsim_run_execute(run, in, 4, out, 2, NULL), QSIM_OK);
        CHECK_INT(out[0].dims[0], c ? 2 : *more);
        CHECK(((const float *)out[0].data)[0] == (c ? -1 : -3));
    }
    qsim_run_free(run);
    qsim_session_free(s);
    qsim_model_free(m);
}

/* 16 branches inside branches are read, 17 are not. */
static void check_depth(void) {
    for (int depth = 16; depth <= 17; depth++) {
        proto inner = {0}, other = {0}, around = {0};
        small(&inner, "x", "t", "u");
        for (int i = 0; i < depth; i++) {
            const bool last = i == depth - 1;
            small(&other, "x", "t", "u");
            proto_if(&around, "if", "c", &inner, &other, last ? "y,z" : "t,u");
            if (!last) {
                proto_name(&around, 12, "t");
                proto_name(&around, 12, "u");
            }
            proto swap = inner;
            inner = around;
            around = swap;
            around.size = 0;
        }
        if (depth > 16)
            refused(&inner, QSIM_E_LIMIT, "'nesting' is 16, 17 are needed");
        else
            refused(&inner, QSIM_OK, "");
        proto_free(&inner);
        proto_free(&other);
        proto_free(&around);
    }
}

/* The size of axis 1 selects whether it is dropped; the branch not taken would break a rule. */
static void check_untaken(int64_t size) {
    static const int64_t at = 1;
    const int64_t dims[2] = {2, size};
    proto model = {0}, g = {0}, then = {0}, otherwise = {0}, node = {0};
    qsim_session *s = NULL;
    qsim_run *run = NULL;
    float x[6] = {3, -4, 5, -6, 7, -8};
    proto_node(&then, "Squeeze", "squeeze", "r", "axes", "sq");
    proto_name(&then, 12, "sq");
    proto_node(&otherwise, "Identity", "same", "r", NULL, "id");
    proto_name(&otherwise, 12, "id");
    constant(&g, "at", QSIM_INT64, NULL, &at, sizeof(at));
    constant(&g, "axes", QSIM_INT64, one, &at, sizeof(at));
    proto_node(&g, "Relu", "relu", "x", NULL, "r");
    proto_node(&g, "Shape", "shape", "r", NULL, "sizes");
    proto_node(&g, "Gather", "gather", "sizes", "at", "size");
    proto_node(&g, "Equal", "equal", "size", "at", "c");
    proto_text(&node, 1, "r");
    proto_text(&node, 1, "axes");
    proto_text(&node, 2, ""); /* the first output is left out */
    proto_text(&node, 2, "best");
    proto_text(&node, 4, "TopK");
    proto_take(&g, 1, &node);
    proto_text(&node, 1, "c");
    proto_text(&node, 2, "y");
    proto_text(&node, 4, "If");
    proto_graph(&node, "then_branch", &then);
    proto_graph(&node, "else_branch", &otherwise);
    proto_take(&g, 1, &node);
    proto_text(&g, 2, "g");
    proto_value(&g, 11, "x", QSIM_FLOAT, dims, 2);
    proto_text(&node, 1, "y");
    proto_take(&g, 12, &node);
    proto_model(&model, &g);
    qsim_model *m = load(&model);
    CHECK_INT(qsim_session_create(m, NULL, &s, NULL), QSIM_OK);
    CHECK_INT(qsim_run_create(s, &run, NULL), QSIM_OK);
    const qsim_tensor in = {QSIM_FLOAT, 2, dims, x, 2 * (size_t)size * sizeof(float)};
    qsim_tensor y = {0};
    CHECK_INT(qsim_run_execute(run, &in, 1, &y, 1, NULL), QSIM_OK);
    CHECK_INT(y.rank, size == 1 ? 1 : 2);
    CHECK_INT(y.bytes, in.bytes);
    for (int i = 0; i < 2 * (int)size; i++)
        CHECK(((const float *)y.data)[i] == (x[i] > 0 ? x[i] : 0));
    CHECK_INT(qsim_run_step_count(run), 1); /* Relu: the choice is made before */
    qsim_run_free(run);
    qsim_session_free(s);
    qsim_model_free(m);
    proto_free(&model);
    proto_free(&g);
    proto_free(&then);
    proto_free(&otherwise);
    proto_free(&node);
}

/* An If inside of a Loop, one of whose branches adds what does not fit: the model is read. */
static void check_untaken_inside(void) {
    static const int64_t five[] = {5}, times = 2;
    static const float w[5] = {0};
    static const uint8_t yes = 1;
    proto model = {0}, g = {0}, body = {0}, then = {0}, otherwise = {0}, node = {0};
    constant(&then, "w", QSIM_FLOAT, five, w, sizeof(w));
    proto_node(&then, "Add", "misfit", "v", "w", "sum");
    proto_name(&then, 12, "sum");
    proto_node(&otherwise, "Neg", "neg", "v", NULL, "minus");
    proto_name(&otherwise, 12, "minus");
    proto_if(&body, NULL, "c", &then, &otherwise, "next");
    proto_node(&body, "Identity", NULL, "on", NULL, "still");
    proto_value(&body, 11, "i", QSIM_INT64, NULL, 0);
    proto_value(&body, 11, "on", QSIM_BOOL, NULL, 0);
    proto_value(&body, 11, "v", QSIM_FLOAT, two, 1);
    proto_value(&body, 12, "still", QSIM_BOOL, NULL, 0);
    proto_value(&body, 12, "next", QSIM_FLOAT, two, 1);
    constant(&g, "times", QSIM_INT64, NULL, &times, sizeof(times));
    constant(&g, "yes", QSIM_BOOL, NULL, &yes, 1);
    proto_text(&node, 1, "times");
    proto_text(&node, 1, "yes");
    proto_text(&node, 1, "x");
    proto_text(&node, 2, "y");
    proto_text(&node, 4, "Loop");
    proto_graph(&node, "body", &body);
    proto_take(&g, 1, &node);
    proto_text(&g, 2, "g");
    proto_value(&g, 11, "x", QSIM_FLOAT, two, 1);
    proto_value(&g, 11, "c", QSIM_BOOL, NULL, 0);
    proto_value(&g, 12, "y", QSIM_FLOAT, two, 1);
    proto_model(&model, &g);
    qsim_model_free(load(&model));
    proto *const all[] = {&model, &g, &body, &then, &otherwise, &node};
    for (int i = 0; i < 6; i++)
        proto_free(all[i]);
}

int main(void) {
    check_untaken_inside();
    check_untaken(1);
    check_untaken(3);
    check_choices();
    check_names();
    check_refusals();
    check_malformed();
    check_unnamed();
    check_sizes();
    check_beside();
    check_depth();
    check_named_sizes(true);
    check_named_sizes(false);
    return test_done();
}
