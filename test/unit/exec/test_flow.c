/* SPDX-License-Identifier: MIT */
/*
 * Graphs inside nodes, and sizes that depend on data: If with branches of different sizes, Loop
 * with a growing state, NonZero and nodes after it. Expected values are computed by hand.
 */
#include <stdbool.h>

#include "heap.h"
#include "proto.h"
#include "test.h"

#include <qsim/qsim.h>

static const int64_t four[] = {4}, any[] = {-1};

static qsim_model *load(qsim_ctx *ctx, proto *graph, qsim_error *e) {
    proto model = {0};
    qsim_model *m = NULL;
    proto_text(graph, 2, "g");
    proto_model(&model, graph);
    qsim_load_options o = {.struct_size = sizeof(o), .flags = QSIM_LOAD_COPY};
    if (qsim_model_load_memory(ctx, model.data, model.size, &o, &m, e) && e->code != QSIM_E_NOMEM)
        CHECK_FAIL(e->message);
    proto_free(&model);
    return m;
}

/* y = If(c) { x + x } else { `other`, which reads w }: 4 elements or 2; takes `other`. */
static void choose(proto *g, proto *other) {
    static const float w[] = {7, 8};
    proto a = {0}, node = {0};
    proto_node(&a, "Add", "add", "x", "x", "t");
    proto_name(&a, 12, "t");
    proto_constant(g, "w", QSIM_FLOAT, 2, w, sizeof(w));
    proto_value(g, 11, "c", QSIM_BOOL, NULL, 0);
    proto_value(g, 11, "x", QSIM_FLOAT, four, 1);
    proto_text(&node, 1, "c");
    proto_text(&node, 2, "y");
    proto_text(&node, 4, "If");
    proto_graph(&node, "then_branch", &a);
    proto_graph(&node, "else_branch", other);
    proto_take(g, 1, &node);
    proto_free(&a);
    proto_free(other);
    proto_free(&node);
}

/* y = If(c) { x + x } else { w }; z = -y */
static void different(proto *g) {
    proto b = {0};
    proto_node(&b, "Identity", "same", "w", NULL, "u");
    proto_name(&b, 12, "u");
    choose(g, &b);
    proto_node(g, "Neg", "neg", "y", NULL, "z");
    proto_value(g, 12, "z", QSIM_FLOAT, any, 1);
}

/* Both branches have a t, and the second one also t_2, the name of a copy of t. */
static void alike(proto *g) {
    proto b = {0};
    proto_node(&b, "Neg", "first", "w", NULL, "t");
    proto_node(&b, "Neg", "second", "t", NULL, "t_2");
    proto_name(&b, 12, "t_2");
    choose(g, &b);
    proto_value(g, 12, "y", QSIM_FLOAT, any, 1);
}

/*
 * Loop of at most m times: state s becomes s + s beside k, captured, which doubles and adds one
 * element each time; the scan output is the trip. It ends once trip 2 is done.
 */
static void growing(proto *g) {
    static const float k[] = {0.5f};
    static const int64_t last = 2;
    proto b = {0}, node = {0}, axis = {0};
    proto_constant(&b, "last", QSIM_INT64, -1, &last, sizeof(last));
    proto_name(&b, 11, "trip");
    proto_name(&b, 11, "go");
    proto_name(&b, 11, "s");
    proto_node(&b, "Add", "double", "s", "s", "d");
    proto_text(&node, 1, "d");
    proto_text(&node, 1, "k");
    proto_text(&node, 2, "next");
    proto_text(&node, 4, "Concat");
    proto_text(&axis, 1, "axis");
    proto_int(&axis, 3, 0);
    proto_int(&axis, 20, 2);
    proto_take(&node, 5, &axis);
    proto_take(&b, 1, &node);
    proto_node(&b, "Less", "less", "trip", "last", "more");
    proto_node(&b, "Identity", "same", "trip", NULL, "seen");
    proto_name(&b, 12, "more");
    proto_name(&b, 12, "next");
    proto_name(&b, 12, "seen");
    proto_constant(g, "k", QSIM_FLOAT, 1, k, sizeof(k));
    proto_value(g, 11, "m", QSIM_INT64, NULL, 0);
    proto_value(g, 11, "x", QSIM_FLOAT, any, 1);
    proto_text(&node, 1, "m");
    proto_text(&node, 1, "");
    proto_text(&node, 1, "x");
    proto_text(&node, 2, "y");
    proto_text(&node, 2, "trips");
    proto_text(&node, 4, "Loop");
    proto_graph(&node, "body", &b);
    proto_take(g, 1, &node);
    proto_value(g, 12, "y", QSIM_FLOAT, any, 1);
    proto_value(g, 12, "trips", QSIM_INT64, any, 1);
    proto_free(&b);
    proto_free(&node);
    proto_free(&axis);
}

/* y = the elements of x that are not zero, doubled: NonZero, Squeeze, Gather, Add. */
static void picked(proto *g) {
    proto node = {0}, axes = {0};
    static const int64_t first = 0;
    proto_constant(g, "zero", QSIM_INT64, 1, &first, sizeof(first));
    proto_value(g, 11, "x", QSIM_FLOAT, any, 1);
    proto_node(g, "NonZero", "nonzero", "x", NULL, "at");
    proto_node(g, "Squeeze", "squeeze", "at", "zero", "index");
    proto_node(g, "Gather", "gather", "x", "index", "v");
    proto_node(g, "Add", "add", "v", "v", "y");
    proto_value(g, 12, "y", QSIM_FLOAT, any, 1);
    proto_free(&node);
    proto_free(&axes);
}

static qsim_tensor floats(const float *data, const int64_t *count) {
    return (qsim_tensor){QSIM_FLOAT, 1, count, (void *)(uintptr_t)data,
                         (size_t)*count * sizeof(float)};
}

static void check_floats(const qsim_tensor *y, const float *expected, int64_t count) {
    CHECK_INT(y->dtype, QSIM_FLOAT);
    CHECK_INT(y->rank, 1);
    CHECK_INT(y->dims[0], count);
    for (int64_t i = 0; i < count && i < y->dims[0]; i++)
        CHECK(((const float *)y->data)[i] == expected[i]);
}

typedef struct live {
    qsim_model *model;
    qsim_session *session;
    qsim_run *run;
} live;

static int begin(live *l, qsim_ctx *ctx, void (*build)(proto *), qsim_error *e) {
    proto g = {0};
    memset(l, 0, sizeof(*l));
    build(&g);
    l->model = load(ctx, &g, e);
    proto_free(&g);
    int code = l->model ? qsim_session_create(l->model, NULL, &l->session, e) : e->code;
    return code ? code : qsim_run_create(l->session, &l->run, e);
}

static void end(live *l) {
    qsim_run_free(l->run);
    qsim_session_free(l->session);
    qsim_model_free(l->model);
}

static void check_if(void) {
    static const float x[] = {1, 2, 3, 4}, then[] = {-2, -4, -6, -8}, otherwise[] = {-7, -8};
    live l;
    qsim_error e = {0};
    CHECK_INT(begin(&l, NULL, different, &e), QSIM_OK);
    for (int i = 0; i < 4; i++) {
        uint8_t c = i % 2 == 1;
        qsim_tensor in[2] = {{QSIM_BOOL, 0, NULL, &c, 1}, floats(x, four)}, out = {0};
        CHECK_INT(qsim_run_execute(l.run, in, 2, &out, 1, &e), QSIM_OK);
        check_floats(&out, c ? then : otherwise, c ? 4 : 2);
    }
    end(&l);
}

/* From {1}: {2, .5}, {4, 1, .5}, {8, 2, 1, .5}; then the condition ends it. */
static void check_loop(void) {
    static const float all[] = {1, 2, .5f, 4, 1, .5f, 8, 2, 1, .5f};
    static const int begins[] = {0, 1, 3, 6};
    const int64_t one = 1;
    live l;
    qsim_error e = {0};
    CHECK_INT(begin(&l, NULL, growing, &e), QSIM_OK);
    for (int64_t m = 5; m >= 0; m--) {
        const int64_t trips = m < 3 ? m : 3;
        qsim_tensor in[2] = {{QSIM_INT64, 0, NULL, &m, sizeof(m)}, floats(all, &one)}, out[2] = {0};
        CHECK_INT(qsim_run_execute(l.run, in, 2, out, 2, &e), QSIM_OK);
        check_floats(&out[0], all + begins[trips], trips + 1);
        CHECK_INT(out[1].rank, 1);
        CHECK_INT(out[1].dims[0], trips);
        for (int64_t t = 0; t < trips; t++)
            CHECK_INT(((const int64_t *)out[1].data)[t], t);
    }
    end(&l);
}

/* A Loop whose body makes its condition from `from` by an operator. */
static void loop_on(proto *g, const char *op, const char *from) {
    proto b = {0}, node = {0};
    proto_name(&b, 11, "trip");
    proto_name(&b, 11, "go");
    proto_name(&b, 11, "s");
    proto_node(&b, op, "on", from, NULL, "more");
    proto_node(&b, "Identity", "same", "s", NULL, "next");
    proto_name(&b, 12, "more");
    proto_name(&b, 12, "next");
    proto_value(g, 11, "x", QSIM_FLOAT, any, 1);
    proto_text(&node, 1, "");
    proto_text(&node, 1, "");
    proto_text(&node, 1, "x");
    proto_text(&node, 2, "y");
    proto_text(&node, 4, "Loop");
    proto_graph(&node, "body", &b);
    proto_take(g, 1, &node);
    proto_value(g, 12, "y", QSIM_FLOAT, any, 1);
    proto_free(&b);
    proto_free(&node);
}

/* Nothing ends it. */
static void endless(proto *g) {
    loop_on(g, "Identity", "go");
}

static void float_condition(proto *g) {
    loop_on(g, "Identity", "s");
}

/* The list that the body makes is its condition as well. */
static void list_condition(proto *g) {
    proto b = {0}, node = {0};
    proto_name(&b, 11, "trip");
    proto_name(&b, 11, "go");
    proto_name(&b, 11, "list");
    proto_node(&b, "SequenceInsert", "grow", "list", "x", "grown");
    proto_name(&b, 12, "grown");
    proto_name(&b, 12, "grown");
    proto_value(g, 11, "x", QSIM_FLOAT, any, 1);
    proto_constant(g, "two", QSIM_INT64, 1, &(int64_t){2}, sizeof(int64_t));
    proto_text(&node, 2, "begin");
    proto_text(&node, 4, "SequenceEmpty");
    proto_take(g, 1, &node);
    proto_text(&node, 1, "two");
    proto_text(&node, 1, "");
    proto_text(&node, 1, "begin");
    proto_text(&node, 2, "all");
    proto_text(&node, 4, "Loop");
    proto_graph(&node, "body", &b);
    proto_take(g, 1, &node);
    proto_node(g, "SequenceAt", "pick", "all", "two", "y");
    proto_value(g, 12, "y", QSIM_FLOAT, any, 1);
    proto_free(&b);
    proto_free(&node);
}

static void check_condition(void (*build)(proto *), const char *message) {
    proto g = {0}, model = {0};
    qsim_model *m = NULL;
    qsim_error e = {0};
    build(&g);
    proto_text(&g, 2, "g");
    proto_model(&model, &g);
    CHECK_INT(qsim_model_load_memory(NULL, model.data, model.size, NULL, &m, &e), QSIM_E_DTYPE);
    CHECK(strstr(e.message, message) != NULL);
    qsim_model_free(m);
    proto_free(&g);
    proto_free(&model);
}

static void check_endless(void) {
    static const float x[] = {1};
    const int64_t one = 1;
    live l;
    qsim_error e = {0};
    CHECK_INT(begin(&l, NULL, endless, &e), QSIM_OK);
    qsim_tensor in = floats(x, &one), out = {0};
    CHECK_INT(qsim_run_execute(l.run, &in, 1, &out, 1, &e), QSIM_E_LIMIT);
    CHECK(strstr(e.message, "has not ended after 1000000 iterations") != NULL);
    end(&l);
}

/* A Loop or Scan without an input that its body needs is refused; with it, accepted. So are
 * directions. */
static void check_inputs(void) {
    static const struct {
        const char *op, *inputs[3], *message;
        int64_t from, to; /* the directions of a Scan */
    } cases[] = {
        {"Loop", {"", "", ""}, "input 2 is left out", 0, 0},
        {"Loop", {"", "", "x"}, NULL, 0, 0},
        {"Scan", {"", "x", NULL}, "input 0 is left out", 0, 0},
        {"Scan", {"x", "", NULL}, "input 1 is left out", 0, 0},
        {"Scan", {"x", "x", NULL}, NULL, 0, 1},
        {"Scan", {"x", "x", NULL}, "scan_input_directions has 2, not 0 or 1", 2, 0},
        {"Scan", {"x", "x", NULL}, "scan_output_directions has -1, not 0 or 1", 1, -1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const bool loop = cases[i].op[0] == 'L';
        proto g = {0}, b = {0}, node = {0}, a = {0}, model = {0};
        qsim_model *m = NULL;
        qsim_error e;
        if (loop)
            proto_name(&b, 11, "trip");
        proto_name(&b, 11, "first");
        proto_name(&b, 11, "second");
        proto_node(&b, "Identity", "one", "first", NULL, "p");
        proto_node(&b, "Identity", "two", "second", NULL, "q");
        proto_name(&b, 12, "p");
        proto_name(&b, 12, "q");
        for (int k = 0; k < 3 && cases[i].inputs[k]; k++)
            proto_text(&node, 1, cases[i].inputs[k]);
        proto_text(&node, 2, "y");
        if (!loop)
            proto_text(&node, 2, "z");
        proto_text(&node, 4, cases[i].op);
        proto_graph(&node, "body", &b);
        for (int k = 0; k < 3 && !loop; k++) {
            static const char *const names[] = {"num_scan_inputs", "scan_input_directions",
                                                "scan_output_directions"};
            const int64_t numbers[] = {1, cases[i].from, cases[i].to};
            proto_text(&a, 1, names[k]);
            proto_int(&a, k ? 8 : 3, numbers[k]);
            proto_int(&a, 20, k ? QSIM_ATTR_INTS : QSIM_ATTR_INT);
            proto_take(&node, 5, &a);
        }
        proto_value(&g, 11, "x", QSIM_FLOAT, any, 1);
        proto_take(&g, 1, &node);
        proto_name(&g, 12, "y");
        proto_text(&g, 2, "g");
        proto_model(&model, &g);
        const int code = qsim_model_load_memory(NULL, model.data, model.size, NULL, &m, &e);
        const bool direction = cases[i].message && strstr(cases[i].message, "directions");
        CHECK_INT(code, direction ? QSIM_E_VALUE : cases[i].message ? QSIM_E_GRAPH : QSIM_OK);
        CHECK(!cases[i].message || strstr(e.message, cases[i].message) != NULL);
        qsim_model_free(m);
        proto_free(&g);
        proto_free(&b);
        proto_free(&node);
        proto_free(&a);
        proto_free(&model);
    }
}

/* Nodes after NonZero have other sizes each time; sizes seen before allocate nothing. */
static void check_picked(void) {
    static const float x[] = {0, 1, -0.0f, 2, 3, 0, 4, 5};
    static const float y[] = {2, 4, 6, 8, 10};
    static const int64_t sizes[] = {8, 5, 1, 8}, counts[] = {5, 3, 0, 5};
    test_heap heap = {0};
    qsim_allocator a = test_heap_allocator(&heap);
    qsim_ctx_options o = {.struct_size = sizeof(o), .allocator = &a, .threads = 1};
    qsim_ctx *ctx = NULL;
    live l;
    qsim_error e = {0};
    CHECK_INT(qsim_ctx_create(&o, &ctx, &e), QSIM_OK);
    CHECK_INT(begin(&l, ctx, picked, &e), QSIM_OK);
    for (int i = 0; i < 4; i++) {
        qsim_tensor in = floats(x, &sizes[i]), out = {0};
        CHECK_INT(qsim_run_execute(l.run, &in, 1, &out, 1, &e), QSIM_OK);
        check_floats(&out, y, counts[i]);
        const long before = heap.calls;
        out = (qsim_tensor){0};
        CHECK_INT(qsim_run_execute(l.run, &in, 1, &out, 1, &e), QSIM_OK);
        check_floats(&out, y, counts[i]);
        CHECK_INT(heap.calls, before);
    }
    end(&l);
    qsim_ctx_free(ctx);
    CHECK_INT(heap.live, 0);
}

/* A caller's buffer is filled; a buffer that is too small is refused with the output's name. */
static void check_buffers(void) {
    static const float x[] = {1, 0, 2};
    static const float y[] = {2, 4};
    const int64_t three = 3;
    float own[2];
    live l;
    qsim_error e = {0};
    CHECK_INT(begin(&l, NULL, picked, &e), QSIM_OK);
    qsim_tensor in = floats(x, &three), out = {.data = own, .bytes = sizeof(own)};
    CHECK_INT(qsim_run_execute(l.run, &in, 1, &out, 1, &e), QSIM_OK);
    CHECK(out.data == own);
    check_floats(&out, y, 2);
    out.bytes = 4;
    CHECK_INT(qsim_run_execute(l.run, &in, 1, &out, 1, &e), QSIM_E_ARGUMENT);
    CHECK(strstr(e.message, "'y' has 4 bytes, 8 are needed") != NULL);
    end(&l);
}

/* A changed model is saved with its subgraphs, which still find the values that they capture. */
static void check_saving(void) {
    static void (*const builds[])(proto *) = {different, growing, alike};
    for (int i = 0; i < 3; i++) {
        live l;
        qsim_error e = {0};
        qsim_model *changed = NULL, *again = NULL;
        size_t need = 0;
        CHECK_INT(begin(&l, NULL, builds[i], &e), QSIM_OK);
        CHECK_INT(qsim_model_optimize(l.model, QSIM_LEVEL_EXTENDED, &changed, &e), QSIM_OK);
        qsim_model_save_memory(changed, NULL, 0, &need, NULL);
        void *file = malloc(need);
        CHECK_INT(qsim_model_save_memory(changed, file, need, &need, &e), QSIM_OK);
        CHECK_INT(qsim_model_load_memory(NULL, file, need, NULL, &again, &e), QSIM_OK);
        CHECK_INT(qsim_model_node_count(again), qsim_model_node_count(changed));
        qsim_model_free(again);
        free(file);
        qsim_model_free(changed);
        end(&l);
    }
}

static int execute(const live *l, int which, qsim_error *e) {
    static const float x[] = {1, 2, 0, 4};
    uint8_t c = 1;
    int64_t m = 3;
    qsim_tensor out[2] = {0}, in[2] = {{QSIM_BOOL, 0, NULL, &c, 1}, floats(x, four)};
    if (which == 1)
        in[0] = (qsim_tensor){QSIM_INT64, 0, NULL, &m, sizeof(m)};
    return qsim_run_execute(l->run, in + (which == 2), which == 2 ? 1 : 2, out, which == 1 ? 2 : 1,
                            e);
}

/*
 * Every allocation fails once: an error, no leak, no crash. A run whose execution failed can be
 * executed again.
 */
static void check_memory(void) {
    static void (*const builds[])(proto *) = {different, growing, picked};
    for (int i = 0; i < 3; i++)
        for (long at = 1, done = 0; !done; at++) {
            test_heap heap = {.fail_at = at};
            qsim_allocator a = test_heap_allocator(&heap);
            qsim_ctx_options o = {.struct_size = sizeof(o), .allocator = &a, .threads = 1};
            qsim_ctx *ctx = NULL;
            qsim_error e = {0};
            live l = {0};
            int code = qsim_ctx_create(&o, &ctx, &e);
            if (!code)
                code = begin(&l, ctx, builds[i], &e);
            if (!code)
                code = execute(&l, i, &e);
            CHECK(code == QSIM_OK || code == QSIM_E_NOMEM);
            CHECK(!code || e.message[0]);
            done = code == QSIM_OK && heap.calls < at;
            heap.fail_at = 0;
            CHECK(!l.run || execute(&l, i, NULL) == QSIM_OK);
            end(&l);
            qsim_ctx_free(ctx);
            CHECK_INT(heap.live, 0);
        }
}

int main(void) {
    check_if();
    check_loop();
    check_endless();
    check_condition(float_condition, "the body's condition is float, not bool");
    check_condition(list_condition, "the body's condition is a sequence");
    check_inputs();
    check_picked();
    check_buffers();
    check_saving();
    check_memory();
    return test_done();
}
