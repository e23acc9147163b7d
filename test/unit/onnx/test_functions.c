/* SPDX-License-Identifier: MIT */
/*
 * Functions that a model defines itself: called, called by each other, with attributes, inputs left
 * out, inputs that are outputs, subgraphs; and what is refused.
 */
#include "test.h"
#include "heap.h"
#include "proto.h"

#include <qsim/qsim.h>

static const int64_t two[] = {2};

/* An attribute with a float, or one that refers to an attribute of the function. */
static void attribute(proto *node, uint32_t field, const char *name, const char *refers, float v) {
    proto a = {0};
    proto_text(&a, 1, name);
    if (refers) {
        proto_text(&a, 21, refers);
    } else {
        proto_tag(&a, 2, 5);
        proto_raw(&a, &v, sizeof(v));
    }
    proto_int(&a, 20, 1);
    proto_take(node, field, &a);
    proto_free(&a);
}

/* "a,,b" as fields of a node or function. */
static void names(proto *p, uint32_t field, const char *list) {
    char one[32];
    for (; *list; list += strcspn(list, ","), list += *list == ',') {
        snprintf(one, sizeof(one), "%.*s", (int)strcspn(list, ","), list);
        proto_text(p, field, one);
    }
}

static void begin(proto *node, const char *domain, const char *op, const char *in,
                  const char *out) {
    names(node, 1, in);
    names(node, 2, out);
    proto_text(node, 4, op);
    proto_text(node, 7, domain);
}

/* Appends a function whose nodes are in `body` (field 7), and empties it. */
static void function(proto *model, const char *name, const char *in, const char *out, int opset,
                     proto *body) {
    proto import = {0}, f = {0};
    proto_text(&f, 1, name);
    names(&f, 4, in);
    names(&f, 5, out);
    proto_raw(&f, body->data, body->size);
    body->size = 0;
    proto_int(&import, 2, opset);
    proto_take(&f, 9, &import);
    proto_text(&f, 10, "mine");
    proto_take(model, 25, &f);
    proto_free(&import);
    proto_free(&f);
}

/* LeakyRelu(a) by alpha, plus b, or plus a where b is left out: t is its own. */
static void scaled(proto *model, int opset) {
    proto node = {0}, body = {0};
    begin(&node, "", "LeakyRelu", "a", "t");
    attribute(&node, 5, "alpha", "alpha", 0);
    proto_take(&body, 7, &node);
    begin(&node, "", "Clip", "t,,most", "clipped"); /* `most` may be left out */
    proto_take(&body, 7, &node);
    begin(&node, "", "Add", "clipped,a", "y");
    proto_take(&body, 7, &node);
    attribute(&body, 11, "alpha", NULL, 0.25f); /* by default */
    function(model, "Scaled", "a,most", "y", opset, &body);
    proto_free(&node);
    proto_free(&body);
}

/* p = -Scaled(a) with alpha 0.5, q = a. */
static void both(proto *model) {
    proto node = {0}, body = {0};
    begin(&node, "mine", "Scaled", "a", "t");
    attribute(&node, 5, "alpha", NULL, 0.5f);
    proto_take(&body, 7, &node);
    begin(&node, "", "Neg", "t", "p");
    proto_take(&body, 7, &node);
    function(model, "Both", "a", "p,a", 13, &body);
    proto_free(&node);
    proto_free(&body);
}

static void import(proto *model, const char *domain, int version) {
    proto p = {0};
    proto_text(&p, 1, domain);
    proto_int(&p, 2, version);
    proto_take(model, 8, &p);
    proto_free(&p);
}

/* The graph uses the names that the functions use for their own values. */
static void finish(proto *model, proto *graph) {
    proto_text(graph, 2, "g");
    proto_value(graph, 11, "t", QSIM_FLOAT, two, 1);
    proto_value(graph, 12, "a", QSIM_FLOAT, two, 1);
    proto_value(graph, 12, "r", QSIM_FLOAT, two, 1);
    proto_value(graph, 12, "s", QSIM_FLOAT, two, 1);
    proto_model(model, graph);
    import(model, "mine", 1);
    proto_free(graph);
}

/* A model that calls function `name` of its own, and negates its input twice. */
static void calling(proto *model, const char *name) {
    proto graph = {0}, node = {0};
    begin(&node, "mine", name, "t", "a");
    proto_take(&graph, 1, &node);
    proto_node(&graph, "Neg", NULL, "t", NULL, "r");
    proto_node(&graph, "Neg", NULL, "t", NULL, "s");
    finish(model, &graph);
    proto_free(&node);
}

static void check_values(void) {
    static const float most = 1.0f;
    proto model = {0}, graph = {0}, node = {0}, t = {0};
    qsim_model *m = NULL;
    qsim_session *s = NULL;
    qsim_run *run = NULL;
    qsim_error e = {0};
    proto_int(&t, 2, QSIM_FLOAT);
    proto_text(&t, 8, "top");
    proto_bytes(&t, 9, &most, sizeof(most));
    proto_take(&graph, 5, &t);
    begin(&node, "mine", "Both", "t", "r,s");
    proto_take(&graph, 1, &node);
    begin(&node, "mine", "Scaled", "t,top", "a");
    proto_take(&graph, 1, &node);
    finish(&model, &graph);
    scaled(&model, 13);
    both(&model);
    float x[2] = {3, -4};
    const float expected[3][2] = {{1 + 3, -1 - 4}, {-6, 2 + 4}, {3, -4}}; /* a, r, s */
    CHECK_INT(qsim_model_load_memory(NULL, model.data, model.size, NULL, &m, &e), QSIM_OK);
    CHECK_STR(e.message, "");
    CHECK_INT(qsim_session_create(m, NULL, &s, &e), QSIM_OK);
    CHECK_INT(qsim_run_create(s, &run, &e), QSIM_OK);
    const qsim_tensor in = {QSIM_FLOAT, 1, two, x, sizeof(x)};
    qsim_tensor out[3] = {{0}};
    CHECK_INT(qsim_run_execute(run, &in, 1, out, 3, &e), QSIM_OK);
    for (int i = 0; i < 6 && out[i / 2].data; i++)
        CHECK(((const float *)out[i / 2].data)[i % 2] == expected[i / 2][i % 2]);
    qsim_run_free(run);
    qsim_session_free(s);
    qsim_model_free(m);
    proto_free(&model);
    proto_free(&node);
    proto_free(&t);
}

static void refused(const char *in, const char *out, int opset, int code, const char *part) {
    proto model = {0}, graph = {0}, node = {0};
    qsim_model *m = NULL;
    qsim_error e = {0};
    begin(&node, "mine", "Scaled", in, out);
    proto_take(&graph, 1, &node);
    proto_node(&graph, "Neg", NULL, "t", NULL, "r");
    proto_node(&graph, "Abs", NULL, "t", NULL, "s");
    finish(&model, &graph);
    scaled(&model, opset);
    CHECK_INT(qsim_model_load_memory(NULL, model.data, model.size, NULL, &m, &e), code);
    if (!strstr(e.message, part)) {
        fprintf(stderr, "message: %s\nexpected in it: %s\n", e.message, part);
        CHECK_FAIL("the message does not say what is wrong");
    }
    qsim_model_free(m);
    proto_free(&model);
    proto_free(&node);
}

/* Eleven functions, each calling the one before ten times: refused before it takes memory. */
static void check_bomb(void) {
    proto model = {0}, graph = {0}, node = {0}, body = {0};
    qsim_model *m = NULL;
    qsim_error e = {0};
    char name[16], before[16];
    begin(&node, "mine", "f10", "t", "a");
    proto_take(&graph, 1, &node);
    finish(&model, &graph);
    for (int i = 0; i <= 10; i++) {
        snprintf(name, sizeof(name), "f%d", i);
        snprintf(before, sizeof(before), "f%d", i - 1);
        for (int k = 0; k < 10; k++) {
            begin(&node, i ? "mine" : "", i ? before : "Neg", "a", k ? "" : "y");
            if (k) {
                char own[16];
                snprintf(own, sizeof(own), "y%d", k);
                proto_text(&node, 2, own);
            }
            proto_take(&body, 7, &node);
        }
        function(&model, name, "a", "y", 13, &body);
    }
    CHECK_INT(qsim_model_load_memory(NULL, model.data, model.size, NULL, &m, &e), QSIM_E_LIMIT);
    CHECK(strstr(e.message, "more than 100000 calls of functions, or 1000000 nodes") != NULL);
    qsim_model_free(m);
    proto_free(&model);
    proto_free(&node);
    proto_free(&body);
}

/* More functions than there may be, none of them called. */
static void check_limit(void) {
    proto model = {0}, graph = {0}, body = {0};
    qsim_model *m = NULL;
    qsim_error e = {0};
    finish(&model, &graph);
    for (int i = 0; i < 2001; i++)
        function(&model, "Same", "a", "y", 13, &body);
    CHECK_INT(qsim_model_load_memory(NULL, model.data, model.size, NULL, &m, &e), QSIM_E_LIMIT);
    CHECK(strstr(e.message, "more than 2000 local functions") != NULL);
    qsim_model_free(m);
    proto_free(&model);
}

/* Functions that call each other in a row: calls inside calls go 16 deep. */
static void check_calls(void) {
    for (int depth = 15; depth <= 17; depth++) {
        proto model = {0}, node = {0}, body = {0};
        qsim_model *m = NULL;
        qsim_error e = {0};
        calling(&model, "F1");
        for (int i = 1; i <= depth; i++) {
            char name[16], next[16];
            snprintf(name, sizeof(name), "F%d", i);
            snprintf(next, sizeof(next), "F%d", i + 1);
            begin(&node, i < depth ? "mine" : "", i < depth ? next : "Neg", "a", "y");
            proto_take(&body, 7, &node);
            function(&model, name, "a", "y", 13, &body);
        }
        CHECK_INT(qsim_model_load_memory(NULL, model.data, model.size, NULL, &m, &e),
                  depth <= 16 ? QSIM_OK : QSIM_E_LIMIT);
        CHECK(depth <= 16 || strstr(e.message, "more than 16 calls inside calls"));
        qsim_model_free(m);
        proto_free(&model);
        proto_free(&node);
        proto_free(&body);
    }
}

/* A call inside a function whose argument the function does not define. */
static void check_undefined(void) {
    for (int defined = 0; defined < 2; defined++) {
        proto model = {0}, node = {0}, body = {0};
        qsim_model *m = NULL;
        qsim_error e = {0};
        calling(&model, "Outer");
        begin(&node, "mine", "Inner", defined ? "p" : "nowhere", "q");
        proto_take(&body, 7, &node);
        function(&model, "Outer", "p", "q", 13, &body);
        begin(&node, "", "Neg", "p", "q");
        proto_take(&body, 7, &node);
        function(&model, "Inner", "p", "q", 13, &body);
        CHECK_INT(qsim_model_load_memory(NULL, model.data, model.size, NULL, &m, &e),
                  defined ? QSIM_OK : QSIM_E_GRAPH);
        CHECK(defined || strstr(e.message, "'nowhere' is defined nowhere in the function"));
        qsim_model_free(m);
        proto_free(&model);
        proto_free(&node);
        proto_free(&body);
    }
}

/* Functions in an order that `step` gives, each called once: y = -x, applied `count` times. */
static void check_many(int count, int step) {
    proto model = {0}, graph = {0}, node = {0}, body = {0};
    qsim_model *m = NULL;
    qsim_error e = {0};
    char name[16], in[16] = "t", out[16];
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof(name), "f%d", i * 7 % count);
        snprintf(out, sizeof(out), i + 1 < count ? "v%d" : "a", i);
        begin(&node, "mine", name, in, out);
        proto_take(&graph, 1, &node);
        memcpy(in, out, sizeof(in));
    }
    begin(&node, "", "Neg", "a", "r");
    proto_take(&graph, 1, &node);
    begin(&node, "", "Neg", "r", "s");
    proto_take(&graph, 1, &node);
    finish(&model, &graph);
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof(name), "f%d", i * step % count);
        begin(&node, "", "Neg", "p", "q");
        proto_take(&body, 7, &node);
        function(&model, name, "p", "q", 13, &body);
    }
    CHECK_INT(qsim_model_load_memory(NULL, model.data, model.size, NULL, &m, &e), QSIM_OK);
    CHECK_STR(e.message, "");
    CHECK_INT(qsim_model_node_count(m), count + 2);
    qsim_model_free(m);
    proto_free(&model);
    proto_free(&node);
    proto_free(&body);
}

/*
 * Every allocation of a load fails once; a function has so many inputs that their names need one of
 * their own.
 */
static void check_memory(void) {
    proto model = {0}, graph = {0}, node = {0}, body = {0}, f = {0};
    char name[16];
    begin(&node, "mine", "Wide", "t", "a");
    proto_take(&graph, 1, &node);
    begin(&node, "", "Neg", "a", "r");
    proto_take(&graph, 1, &node);
    begin(&node, "", "Neg", "r", "s");
    proto_take(&graph, 1, &node);
    finish(&model, &graph);
    for (int i = 0; i < 20000; i++) {
        snprintf(name, sizeof(name), "p%d", i);
        proto_text(&f, 4, name);
    }
    begin(&node, "", "Neg", "p0", "q");
    proto_take(&f, 7, &node);
    proto_text(&f, 1, "Wide");
    proto_text(&f, 5, "q");
    proto_int(&body, 2, 13);
    proto_take(&f, 9, &body);
    proto_text(&f, 10, "mine");
    proto_take(&model, 25, &f);
    for (long at = 1, done = 0; !done; at++) {
        test_heap heap = {.fail_at = at};
        qsim_allocator a = test_heap_allocator(&heap);
        qsim_ctx_options o = {.struct_size = sizeof(o), .allocator = &a, .threads = 1};
        qsim_ctx *ctx = NULL;
        qsim_model *m = NULL;
        qsim_error e = {0};
        int code = qsim_ctx_create(&o, &ctx, &e);
        if (!code)
            code = qsim_model_load_memory(ctx, model.data, model.size, NULL, &m, &e);
        CHECK(code == QSIM_OK || code == QSIM_E_NOMEM);
        CHECK(!code || e.message[0]);
        done = code == QSIM_OK && heap.calls < at;
        qsim_model_free(m);
        qsim_ctx_free(ctx);
        CHECK_INT(heap.live, 0);
    }
    proto_free(&model);
    proto_free(&node);
    proto_free(&body);
    proto_free(&f);
}

/* A model that is refused, or is not; it is freed. */
static void loads(proto *model, int code, const char *part) {
    qsim_model *m = NULL;
    qsim_error e = {0};
    CHECK_INT(qsim_model_load_memory(NULL, model->data, model->size, NULL, &m, &e), code);
    if (!strstr(e.message, part)) {
        fprintf(stderr, "message: %s\nexpected in it: %s\n", e.message, part);
        CHECK_FAIL("the message does not say what is wrong");
    }
    qsim_model_free(m);
    proto_free(model);
}

/*
 * Attributes of a function go by their whole names: by the call's, else by the function's, whose
 * names may begin like another's. alpha = 0.25 by the function, or what the call says.
 */
static void check_attributes(void) {
    static const struct {
        const char *refers, *given, *defaults[2]; /* defaults are 0.25, then 0.75 */
        float alpha;                              /* that the node has: 0.01 is ONNX's */
    } cases[] = {
        {"alpha", "alpha", {"alpha", NULL}, 0.5f},   {"alpha", NULL, {"alpha", NULL}, 0.25f},
        {"alpha", "alph", {"alpha", NULL}, 0.25f},   {"alpha", "alphas", {"alpha", NULL}, 0.25f},
        {"alpha", NULL, {"alphas", "alpha"}, 0.75f}, {"alpha", NULL, {"alph", "alpha"}, 0.75f},
        {"alpha", NULL, {"beta!", "alpha"}, 0.75f},  {"alpha", "alpha", {NULL, NULL}, 0.5f},
        {"alpha", NULL, {"alphb", NULL}, 0.01f},     {"alpha", NULL, {NULL, NULL}, 0.01f},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        proto model = {0}, graph = {0}, node = {0}, body = {0};
        qsim_model *m = NULL;
        qsim_session *s = NULL;
        qsim_run *run = NULL;
        qsim_error e = {0};
        begin(&node, "mine", "Leaky", "t", "a");
        if (cases[i].given)
            attribute(&node, 5, cases[i].given, NULL, 0.5f);
        proto_take(&graph, 1, &node);
        proto_node(&graph, "Neg", NULL, "t", NULL, "r");
        proto_node(&graph, "Neg", NULL, "t", NULL, "s");
        finish(&model, &graph);
        begin(&node, "", "LeakyRelu", "p", "q");
        attribute(&node, 5, "alpha", cases[i].refers, 0);
        proto_take(&body, 7, &node);
        for (int k = 0; k < 2 && cases[i].defaults[k]; k++)
            attribute(&body, 11, cases[i].defaults[k], NULL, k ? 0.75f : 0.25f);
        function(&model, "Leaky", "p", "q", 13, &body);
        CHECK_INT(qsim_model_load_memory(NULL, model.data, model.size, NULL, &m, &e), QSIM_OK);
        CHECK_STR(e.message, "");
        CHECK_INT(qsim_session_create(m, NULL, &s, &e), QSIM_OK);
        CHECK_INT(qsim_run_create(s, &run, &e), QSIM_OK);
        float x[2] = {-1, 1};
        const qsim_tensor in = {QSIM_FLOAT, 1, two, x, sizeof(x)};
        qsim_tensor out[3] = {{0}};
        CHECK_INT(qsim_run_execute(run, &in, 1, out, 3, &e), QSIM_OK);
        CHECK(out[0].data && ((const float *)out[0].data)[0] == -cases[i].alpha);
        qsim_run_free(run);
        qsim_session_free(s);
        qsim_model_free(m);
        proto_free(&model);
        proto_free(&node);
        proto_free(&body);
    }
}

/* An attribute that refers to a function's outside of one, or to a graph of the call. */
static void check_references(void) {
    proto model = {0}, graph = {0}, node = {0}, body = {0}, inner = {0};
    begin(&node, "", "LeakyRelu", "t", "a");
    attribute(&node, 5, "alpha", "alpha", 0);
    proto_take(&graph, 1, &node);
    proto_node(&graph, "Neg", NULL, "t", NULL, "r");
    proto_node(&graph, "Neg", NULL, "t", NULL, "s");
    finish(&model, &graph);
    loads(&model, QSIM_E_GRAPH,
          "attribute 'alpha' refers to a function's attribute outside of one");
    begin(&node, "mine", "Leaky", "t", "a");
    proto_text(&inner, 2, "g");
    proto_node(&inner, "Neg", NULL, "t", NULL, "n");
    proto_name(&inner, 12, "n");
    proto_graph(&node, "alpha", &inner);
    proto_take(&graph, 1, &node);
    proto_node(&graph, "Neg", NULL, "t", NULL, "r");
    proto_node(&graph, "Neg", NULL, "t", NULL, "s");
    finish(&model, &graph);
    begin(&node, "", "LeakyRelu", "p", "q");
    attribute(&node, 5, "alpha", "alpha", 0);
    proto_take(&body, 7, &node);
    function(&model, "Leaky", "p", "q", 13, &body);
    loads(&model, QSIM_E_UNSUPPORTED, "attribute 'alpha' refers to a graph");
    proto_free(&node);
    proto_free(&body);
    proto_free(&inner);
}

/* Outputs of a function that are inputs, left out by the call or made by nothing. */
static void check_results(void) {
    static const struct {
        const char *in, *formal_in, *formal_out, *out; /* out: of the call */
        int code;
        const char *part;
    } cases[] = {
        {"t", "p", "q", "a", QSIM_OK, ""},
        {"t", "p", "p", "a", QSIM_OK, ""},
        {"t", "p", "q,p", "a", QSIM_OK, ""},
        {"t", "p", "p,q", ",a", QSIM_OK, ""},
        {"t", "p", "nothing", "a", QSIM_E_GRAPH,
         "output 'nothing' of the function 'F' is made by no node"},
        {"t", "p,o", "o", "a", QSIM_E_GRAPH, "output 'o' of the function 'F' is made by no node"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        proto model = {0}, graph = {0}, node = {0}, body = {0};
        begin(&node, "mine", "F", cases[i].in, cases[i].out);
        proto_take(&graph, 1, &node);
        proto_node(&graph, "Neg", NULL, "t", NULL, "r");
        proto_node(&graph, "Neg", NULL, "t", NULL, "s");
        finish(&model, &graph);
        begin(&node, "", "Neg", "p", "q");
        proto_take(&body, 7, &node);
        function(&model, "F", cases[i].formal_in, cases[i].formal_out, 13, &body);
        loads(&model, cases[i].code, cases[i].part);
        proto_free(&node);
        proto_free(&body);
    }
}

/* A model whose output `a` is -t: has no problems, runs, and is emptied. */
static void check_negates(proto *model) {
    qsim_model *m = NULL;
    qsim_session *s = NULL;
    qsim_run *run = NULL;
    qsim_error e = {0};
    float x[2] = {3, -4};
    const qsim_tensor in = {QSIM_FLOAT, 1, two, x, sizeof(x)};
    qsim_tensor out[3] = {{0}};
    const qsim_load_options o = {.struct_size = sizeof(o), .flags = QSIM_LOAD_CHECK};
    CHECK_INT(qsim_model_load_memory(NULL, model->data, model->size, &o, &m, NULL), QSIM_OK);
    CHECK_INT(qsim_model_check(m, NULL, NULL), 0);
    qsim_model_free(m);
    CHECK_INT(qsim_model_load_memory(NULL, model->data, model->size, NULL, &m, &e), QSIM_OK);
    CHECK_STR(e.message, "");
    CHECK_INT(qsim_session_create(m, NULL, &s, NULL), QSIM_OK);
    CHECK_INT(qsim_run_create(s, &run, NULL), QSIM_OK);
    CHECK_INT(qsim_run_execute(run, &in, 1, out, 3, NULL), QSIM_OK);
    for (int i = 0; i < 2 && out[0].data; i++)
        CHECK(((const float *)out[0].data)[i] == -x[i]);
    qsim_run_free(run);
    qsim_session_free(s);
    qsim_model_free(m);
    proto_free(model);
}

/* An output of a function that an If in it makes; both branches use the same names. */
static void check_choice(void) {
    static const char *const ops[] = {"Identity", "Neg"};
    static const uint8_t minus = 1;
    proto model = {0}, node = {0}, body = {0}, branch = {0}, t = {0};
    calling(&model, "Chosen");
    proto_int(&t, 2, QSIM_BOOL);
    proto_bytes(&t, 9, &minus, 1);
    begin(&node, "", "Constant", "", "c");
    proto_text(&body, 1, "value");
    proto_take(&body, 5, &t);
    proto_int(&body, 20, 4);
    proto_take(&node, 5, &body);
    proto_take(&body, 7, &node);
    begin(&node, "", "If", "c", "q");
    for (int then = 0; then < 2; then++) {
        proto_node(&branch, ops[then], "same", "p", NULL, "chosen");
        proto_name(&branch, 12, "chosen");
        proto_graph(&node, then ? "then_branch" : "else_branch", &branch);
    }
    proto_take(&body, 7, &node);
    function(&model, "Chosen", "p", "q", 13, &body);
    check_negates(&model);
    proto_free(&node);
    proto_free(&body);
    proto_free(&branch);
    proto_free(&t);
}

/* Operator sets of a function: in the model's version, and one that the model does not import. */
static void check_imports(void) {
    static const struct {
        const char *domain;
        int64_t version;
        int code;
        const char *part;
    } cases[] = {
        {"ai.onnx", 13, QSIM_OK, ""},
        {"ai.onnx", 14, QSIM_E_UNSUPPORTED,
         "the function 'F' is of opset 14 of ai.onnx, the model of 13"},
        {"mine", 2, QSIM_E_UNSUPPORTED, "the function 'F' is of opset 2 of mine, the model of 1"},
        {"other", 1, QSIM_OK, ""},
        {"other", 0, QSIM_E_UNSUPPORTED, "opset 0 of other does not exist"},
        {"other", -1, QSIM_E_UNSUPPORTED, "opset -1 of other does not exist"},
        {"other", INT32_MAX, QSIM_OK, ""},
        {"other", (int64_t)INT32_MAX + 1, QSIM_E_UNSUPPORTED,
         "opset 2147483648 of other does not exist"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        proto model = {0}, f = {0}, node = {0};
        calling(&model, "F");
        proto_text(&f, 1, "F");
        proto_text(&f, 4, "p");
        proto_text(&f, 5, "q");
        begin(&node, "ai.onnx", "Neg", "p", "q");
        proto_take(&f, 7, &node);
        proto_text(&node, 1, cases[i].domain);
        proto_int(&node, 2, cases[i].version);
        proto_take(&f, 9, &node);
        proto_text(&f, 10, "mine");
        proto_take(&model, 25, &f);
        loads(&model, cases[i].code, cases[i].part);
        proto_free(&f);
        proto_free(&node);
    }
}

int main(void) {
    check_attributes();
    check_references();
    check_results();
    check_choice();
    check_imports();
    check_values();
    check_memory();
    for (int count = 1; count < 24; count++)
        if (count % 5 && count % 7)
            check_many(count, 5);
    for (int step = 1; step < 17; step++) /* of a prime number each step is an order */
        check_many(17, step);
    refused("t", "a", 13, QSIM_OK, "");
    refused("t,t,t", "a", 13, QSIM_E_GRAPH, "more inputs than the function 'Scaled' has");
    refused("t", "a,u", 13, QSIM_E_GRAPH, "more outputs than the function 'Scaled' has");
    refused("t", "a", 12, QSIM_E_UNSUPPORTED, "is of opset 12 of ai.onnx, the model of 13");
    refused("t", "a", 0, QSIM_E_UNSUPPORTED, "opset 0 of ai.onnx does not exist");
    check_bomb();
    check_limit();
    check_calls();
    check_undefined();
    return test_done();
}
