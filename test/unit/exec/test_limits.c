/* SPDX-License-Identifier: MIT */
/*
 * Limits: a value equal to the limit passes; a larger value is refused with the limit's name, the
 * limit and the need. Memory: no call ever holds more than its limit.
 */
#include "heap.h"
#include "proto.h"

#include <qsim/qsim.h>

#include <time.h>
#include <unistd.h>

static float numbers[64 * 64];

/* `n` products of rows of 64 with one shared weight, or with a weight each. */
static qsim_model *products(qsim_ctx *ctx, int n, bool shared, qsim_error *e) {
    qsim_builder *b = NULL;
    qsim_model *m = NULL;
    char text[64], name[32] = "w", y[32] = "x";
    CHECK_INT(qsim_builder_create(ctx, 13, "g", &b, e), QSIM_OK);
    qsim_builder_input_as(b, "x", "float[1,64]");
    for (int i = 0; i < n; i++) {
        if (!shared)
            snprintf(name, sizeof(name), "w%d", i);
        if (!shared || i == 0) {
            numbers[0] = (float)i;
            qsim_builder_constant_as(b, name, "float[64,64]", numbers);
        }
        snprintf(text, sizeof(text), "%s,%s", y, name);
        snprintf(y, sizeof(y), "v%d", i);
        qsim_builder_node(b, "", "MatMul", "", text, y);
    }
    qsim_builder_output_as(b, y, NULL);
    const int code = qsim_builder_finish(b, &m, e);
    CHECK(code == QSIM_OK || code == QSIM_E_NOMEM);
    qsim_builder_free(b);
    return m;
}

static size_t session_bytes(int n, bool shared) {
    qsim_error e;
    qsim_session *s = NULL;
    qsim_model *m = products(NULL, n, shared, &e);
    CHECK_INT(qsim_session_create(m, NULL, &s, &e), QSIM_OK);
    const size_t bytes = qsim_session_bytes(s);
    qsim_session_free(s);
    qsim_model_free(m);
    return bytes;
}

/* A weight that many nodes share is packed once. */
static void shared_weight(void) {
    const size_t weight = sizeof(numbers);
    CHECK(session_bytes(60, true) < session_bytes(1, true) + 4 * weight);
    CHECK(session_bytes(60, false) > 50 * weight);
}

/* `n` integer products with one weight, each with an output scale of its own. */
static size_t scaled_bytes(int n) {
    static const uint8_t zero;
    static const float one = 1;
    float scale = 1;
    qsim_error e;
    qsim_builder *b = NULL;
    qsim_model *m = NULL;
    qsim_session *s = NULL;
    char text[96], name[32], y[32] = "x";
    CHECK_INT(qsim_builder_create(NULL, 13, "g", &b, &e), QSIM_OK);
    qsim_builder_input_as(b, "x", "uint8[1,64]");
    qsim_builder_constant_as(b, "w", "int8[64,256]", numbers);
    qsim_builder_constant_as(b, "v", "int8[256,64]", numbers);
    qsim_builder_constant_as(b, "s", "float[]", &one);
    qsim_builder_constant_as(b, "z", "uint8[]", &zero);
    qsim_builder_constant_as(b, "k", "int8[]", &zero);
    for (int i = 0; i < 2 * n; i++) {
        snprintf(name, sizeof(name), "s%d", i);
        scale *= 1.01f;
        qsim_builder_constant_as(b, name, "float[]", &scale);
        snprintf(text, sizeof(text), "%s,s,z,%s,s,k,%s,z", y, i % 2 ? "v" : "w", name);
        snprintf(y, sizeof(y), "y%d", i);
        qsim_builder_node(b, "", "QLinearMatMul", "", text, y);
    }
    qsim_builder_output_as(b, y, NULL);
    CHECK_INT(qsim_builder_finish(b, &m, &e), QSIM_OK);
    qsim_builder_free(b);
    CHECK_INT(qsim_session_create(m, NULL, &s, &e), QSIM_OK);
    const size_t bytes = qsim_session_bytes(s);
    qsim_session_free(s);
    qsim_model_free(m);
    return bytes;
}

static void shared_integers(void) {
    const size_t weights = (size_t)2 * 64 * 256, each = 8192; /* at most: sums, multipliers */
    CHECK(scaled_bytes(1) > weights);
    CHECK(scaled_bytes(41) < scaled_bytes(1) + 40 * 2 * each);
}

/* Many results folded from one constant: memory stays below their total size. */
static void folding(void) {
    enum { COUNT = 400, SIZE = 1 << 16 };
    static float big[SIZE];
    test_heap h = {0};
    qsim_allocator a = test_heap_allocator(&h);
    qsim_ctx_options o = {.struct_size = sizeof(o), .allocator = &a, .threads = 1};
    qsim_ctx *ctx;
    qsim_builder *b;
    qsim_model *m = NULL;
    qsim_session *s = NULL;
    qsim_error e = {0};
    char in[32], out[32];
    CHECK_INT(qsim_ctx_create(&o, &ctx, &e), QSIM_OK);
    CHECK_INT(qsim_builder_create(ctx, 13, "g", &b, &e), QSIM_OK);
    qsim_builder_input_as(b, "x", "float[65536]");
    qsim_builder_constant_as(b, "k0", "float[65536]", big);
    for (int i = 0; i < COUNT; i++) {
        snprintf(in, sizeof(in), "k%d", i);
        snprintf(out, sizeof(out), "k%d", i + 1);
        qsim_builder_node(b, "", "Neg", "", in, out);
    }
    snprintf(in, sizeof(in), "x,k%d", COUNT);
    qsim_builder_node(b, "", "Add", "", in, "y");
    qsim_builder_output_as(b, "y", NULL);
    CHECK_INT(qsim_builder_finish(b, &m, &e), QSIM_OK);
    qsim_builder_free(b);
    CHECK_INT(qsim_session_create(m, NULL, &s, &e), QSIM_OK);
    CHECK(h.peak < (size_t)64 << 20); /* all results: 100 MiB */
    qsim_session_free(s);
    qsim_model_free(m);
    qsim_ctx_free(ctx);
    CHECK_INT(h.live, 0);
}

/* ---- counts ---- */

static int load(const qsim_limits *limits, const proto *file, qsim_error *e) {
    qsim_ctx_options o = {.struct_size = sizeof(o), .threads = 1, .limits = limits};
    qsim_ctx *ctx;
    qsim_model *m = NULL;
    CHECK_INT(qsim_ctx_create(&o, &ctx, e), QSIM_OK);
    const int code = qsim_model_load_memory(ctx, file->data, file->size, NULL, &m, e);
    qsim_model_free(m);
    qsim_ctx_free(ctx);
    return code;
}

/* Ten nodes and eleven tensors, the last node with three attributes. */
static proto ten_nodes(void) {
    proto file = {0}, g = {0}, node = {0};
    const int64_t dims[] = {1, 4};
    char in[16] = "x", out[16];
    for (int i = 0; i < 10; i++) {
        snprintf(out, sizeof(out), "v%d", i);
        if (i < 9)
            proto_node(&g, "Relu", NULL, in, NULL, out);
        memcpy(in, i < 9 ? out : in, sizeof(in));
    }
    proto_text(&node, 1, in);
    proto_text(&node, 2, out);
    proto_text(&node, 4, "Selu");
    for (int i = 0; i < 2; i++) {
        proto attr = {0};
        const float one = 1;
        proto_text(&attr, 1, i ? "gamma" : "alpha");
        proto_tag(&attr, 2, 5);
        proto_raw(&attr, &one, sizeof(one));
        proto_int(&attr, 20, 1);
        proto_take(&node, 5, &attr);
        proto_free(&attr);
    }
    proto_take(&g, 1, &node);
    proto_text(&g, 2, "g");
    proto_value(&g, 11, "x", QSIM_FLOAT, dims, 2);
    proto_value(&g, 12, out, QSIM_FLOAT, dims, 2);
    proto_model(&file, &g);
    proto_free(&node);
    proto_free(&g);
    return file;
}

static void check_limit(size_t member, const char *name, uint64_t need, const proto *file) {
    char value[32], needed[32];
    qsim_limits limits = {.struct_size = sizeof(limits)};
    qsim_error e;
    memcpy((char *)&limits + member, &need, sizeof(need));
    CHECK_INT(load(&limits, file, &e), QSIM_OK);
    need--;
    memcpy((char *)&limits + member, &need, sizeof(need));
    CHECK_INT(load(&limits, file, &e), QSIM_E_LIMIT);
    snprintf(value, sizeof(value), "%llu,", (unsigned long long)need);
    snprintf(needed, sizeof(needed), "%llu are", (unsigned long long)need + 1);
    if (!strstr(e.message, name) || !strstr(e.message, value) || !strstr(e.message, needed)) {
        fprintf(stderr, "%s\n", e.message);
        CHECK_FAIL("a refusal names limit, value and need");
    }
}

static void note(void *user, const qsim_error *error) {
    int *named = user;
    *named += error->code == QSIM_E_LIMIT && strstr(error->message, "'nesting'") != NULL;
}

/* A check reports a subgraph that is nested too deep; inspection leaves it unread. */
static void check_nesting(const proto *file, int32_t flags, uint64_t nesting, int problems) {
    const qsim_limits limits = {.struct_size = sizeof(limits), .nesting = nesting};
    const qsim_ctx_options c = {.struct_size = sizeof(c), .threads = 1, .limits = &limits};
    const qsim_load_options o = {.struct_size = sizeof(o), .flags = flags};
    qsim_ctx *ctx = NULL;
    qsim_model *m = NULL;
    qsim_error e;
    int named = 0;
    CHECK_INT(qsim_ctx_create(&c, &ctx, &e), QSIM_OK);
    CHECK_INT(qsim_model_load_memory(ctx, file->data, file->size, &o, &m, &e), QSIM_OK);
    CHECK_INT(m ? qsim_model_check(m, note, &named) : -1, problems);
    CHECK_INT(named, problems);
    qsim_model_free(m);
    qsim_ctx_free(ctx);
}

/* A constant of five numbers. */
static proto five_numbers(void) {
    static const float five[5] = {1, 2, 3, 4, 5};
    const int64_t dims[] = {5};
    proto file = {0}, g = {0}, t = {0};
    proto_node(&g, "Add", NULL, "x", "w", "y");
    proto_int(&t, 1, 5);
    proto_int(&t, 2, QSIM_FLOAT);
    proto_text(&t, 8, "w");
    proto_bytes(&t, 9, five, sizeof(five));
    proto_take(&g, 5, &t);
    proto_text(&g, 2, "g");
    proto_value(&g, 11, "x", QSIM_FLOAT, dims, 1);
    proto_value(&g, 12, "y", QSIM_FLOAT, dims, 1);
    proto_model(&file, &g);
    proto_free(&g);
    proto_free(&t);
    return file;
}

/* An If in both branches of an If. */
static proto two_deep(void) {
    const int64_t dims[] = {4};
    proto file = {0}, g = {0}, node = {0}, branch = {0};
    for (int depth = 0; depth <= 2; depth++) {
        for (int k = 0; k < 2 && depth; k++) {
            proto inner = {0};
            proto_raw(&inner, branch.data, branch.size);
            proto_graph(&node, k ? "else_branch" : "then_branch", &inner);
            proto_free(&inner);
        }
        branch.size = 0;
        if (depth) {
            proto_text(&node, 1, "c");
            proto_text(&node, 2, "y");
            proto_text(&node, 4, "If");
            proto_take(&branch, 1, &node);
        } else {
            proto_node(&branch, "Relu", NULL, "x", NULL, "y");
        }
        proto_text(&branch, 2, "g");
        proto_name(&branch, 12, "y");
    }
    proto_raw(&g, branch.data, branch.size);
    proto_value(&g, 11, "x", QSIM_FLOAT, dims, 1);
    proto_value(&g, 11, "c", QSIM_BOOL, dims, 0);
    proto_model(&file, &g);
    proto_free(&g);
    proto_free(&node);
    proto_free(&branch);
    return file;
}

static void counts(void) {
    proto file = ten_nodes();
    check_limit(offsetof(qsim_limits, nodes), "'nodes'", 10, &file);
    check_limit(offsetof(qsim_limits, values), "'values'", 11, &file);
    check_limit(offsetof(qsim_limits, attributes), "'attributes'", 2, &file);
    proto_free(&file);
    file = five_numbers();
    check_limit(offsetof(qsim_limits, elements), "'elements'", 5, &file);
    proto_free(&file);
    file = two_deep();
    check_limit(offsetof(qsim_limits, nesting), "'nesting'", 2, &file);
    check_nesting(&file, QSIM_LOAD_CHECK, 2, 0);
    check_nesting(&file, QSIM_LOAD_CHECK, 1, 4); /* both branches of both */
    check_nesting(&file, QSIM_LOAD_INSPECT, 1, 0);
    proto_free(&file);
}

static void threads(void) {
    qsim_limits limits = {.struct_size = sizeof(limits), .threads = 3};
    qsim_ctx_options o = {.struct_size = sizeof(o), .threads = 4, .limits = &limits};
    qsim_error e;
    qsim_ctx *ctx;
    CHECK_INT(qsim_ctx_create(&o, &ctx, &e), QSIM_E_LIMIT);
    CHECK(strstr(e.message, "'threads' is 3, 4 are needed") != NULL);
    o.threads = 3;
    CHECK_INT(qsim_ctx_create(&o, &ctx, &e), QSIM_OK);
    qsim_limits now = {.struct_size = sizeof(now)};
    CHECK_INT(qsim_ctx_limits(ctx, &now), QSIM_OK);
    CHECK_INT((int)now.threads, 3);
    CHECK_INT((int)now.nesting, 16);
    CHECK(now.memory == 0 && now.milliseconds == 0 && now.nodes > 0 && now.file > 0);
    qsim_ctx_free(ctx);
    limits.struct_size = 0;
    CHECK_INT(qsim_ctx_create(&o, &ctx, &e), QSIM_E_ARGUMENT);
}

/* A pipe without end, and a file. */
static void files(void) {
    static const char bytes[1000];
    qsim_limits limits = {.struct_size = sizeof(limits), .file = 999, .stream = 5000};
    qsim_ctx_options o = {.struct_size = sizeof(o), .threads = 1, .limits = &limits};
    char path[] = "limits-XXXXXX", pipe_path[64];
    qsim_file *f;
    qsim_error e;
    qsim_ctx *ctx;
    int ends[2];
    const int fd = mkstemp(path);
    CHECK(fd >= 0 && write(fd, bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes));
    close(fd);
    CHECK_INT(qsim_ctx_create(&o, &ctx, &e), QSIM_OK);
    CHECK_INT(qsim_file_open(ctx, path, 0, &f, &e), QSIM_E_LIMIT);
    CHECK(strstr(e.message, "'file' is 999, 1000 are needed") != NULL);
    CHECK(pipe(ends) == 0);
    for (int i = 0; i < 10; i++)
        CHECK(write(ends[1], bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes));
    snprintf(pipe_path, sizeof(pipe_path), "/dev/fd/%d", ends[0]);
    CHECK_INT(qsim_file_open(ctx, pipe_path, 0, &f, &e), QSIM_E_LIMIT);
    CHECK(strstr(e.message, "'stream' is 5000") != NULL);
    close(ends[0]);
    close(ends[1]);
    qsim_ctx_free(ctx);
    unlink(path);
}

static void out_of_time(void) {
    qsim_limits limits = {.struct_size = sizeof(limits), .milliseconds = 1};
    proto file = ten_nodes();
    qsim_ctx_options o = {.struct_size = sizeof(o), .threads = 1, .limits = &limits};
    qsim_ctx *ctx;
    qsim_model *m = NULL;
    qsim_error e;
    CHECK_INT(qsim_ctx_create(&o, &ctx, &e), QSIM_OK);
    nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
    CHECK_INT(qsim_model_load_memory(ctx, file.data, file.size, NULL, &m, &e), QSIM_E_TIME);
    CHECK(!m && strstr(e.message, "'milliseconds' is 1") != NULL);
    qsim_ctx_free(ctx);
    proto_free(&file);
}

/* ---- memory ---- */

/* Compiles, runs, calibrates and quantizes a model; the first failure's code. */
static int whole_way(qsim_ctx *ctx, qsim_error *e) {
    const int64_t dims[] = {1, 64};
    qsim_model *q = NULL, *m = products(ctx, 6, false, e);
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    qsim_calibration *c = NULL;
    qsim_tensor x = {QSIM_FLOAT, 2, dims, numbers, 256}, y = {0};
    int code = m ? qsim_session_create(m, NULL, &s, e) : QSIM_E_NOMEM;
    if (!code)
        code = qsim_run_create(s, &r, e);
    if (!code)
        code = qsim_run_execute(r, &x, 1, &y, 1, e);
    if (!code)
        code = qsim_calibration_create(m, NULL, &c, e);
    if (!code)
        code = qsim_calibration_feed(c, &x, 1, e);
    if (!code)
        code = qsim_quantize(m, c, NULL, &q, e);
    qsim_model_free(q);
    qsim_calibration_free(c);
    qsim_run_free(r);
    qsim_session_free(s);
    qsim_model_free(m);
    return code;
}

static void memory(void) {
    bool refused = false, passed = false;
    for (size_t limit = 16 << 10; limit < (size_t)64 << 20 && !passed; limit += limit / 4) {
        test_heap h = {0};
        qsim_allocator a = test_heap_allocator(&h);
        qsim_limits limits = {.struct_size = sizeof(limits), .memory = limit};
        qsim_ctx_options o = {
            .struct_size = sizeof(o), .allocator = &a, .threads = 1, .limits = &limits};
        qsim_ctx *ctx;
        qsim_error e = {0};
        CHECK_INT(qsim_ctx_create(&o, &ctx, &e), QSIM_OK);
        const uint64_t before = qsim_ctx_memory(ctx);
        const int code = whole_way(ctx, &e);
        CHECK(code == QSIM_OK || code == QSIM_E_NOMEM);
        CHECK(h.peak <= limit);
        CHECK(qsim_ctx_memory(ctx) == before);
        passed = !code;
        refused = refused || (code && strstr(e.hint, "'memory'") && strstr(e.hint, "needed"));
        qsim_ctx_free(ctx);
        CHECK_INT(h.live, 0);
    }
    CHECK(refused && passed);
}

/*
 * A plan's activations are limited without an option: `size` of them are rows of 4 floats, of which
 * two tensors are needed at once.
 */
static int activations(int64_t size, qsim_error *e) {
    const int64_t dims[] = {1, 4}, shape[] = {size, 4};
    float row[4] = {1, 2, 3, 4};
    qsim_builder *b = NULL;
    qsim_model *m = NULL;
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    qsim_tensor x = {QSIM_FLOAT, 2, dims, row, sizeof(row)}, y = {0};
    CHECK_INT(qsim_builder_create(NULL, 13, "g", &b, e), QSIM_OK);
    qsim_builder_input_as(b, "x", "float[1,4]");
    qsim_builder_constant_as(b, "shape", "int64[2]", shape);
    qsim_builder_node(b, "", "Expand", "", "x,shape", "a");
    qsim_builder_node(b, "", "CumSum", "", "a,zero", "c");
    qsim_builder_constant_as(b, "zero", "int64[]", &(int64_t){0});
    qsim_builder_node(b, "", "Add", "", "a,c", "d");
    qsim_builder_node(b, "", "ReduceMax", "", "d", "y");
    qsim_builder_output_as(b, "y", NULL);
    CHECK_INT(qsim_builder_finish(b, &m, e), QSIM_OK);
    int code = qsim_session_create(m, NULL, &s, e);
    if (!code)
        code = qsim_run_create(s, &r, e);
    if (!code)
        code = qsim_run_execute(r, &x, 1, &y, 1, e);
    qsim_run_free(r);
    qsim_session_free(s);
    qsim_model_free(m);
    qsim_builder_free(b);
    return code;
}

static void check_activations(void) {
    qsim_error e = {0};
    CHECK_INT(activations(1000, &e), QSIM_OK);
    CHECK_INT(activations((int64_t)9 << 26, &e), QSIM_E_LIMIT); /* two of 9 GiB */
    CHECK(strstr(e.message, "activations need ") && strstr(e.message, "limit is 17179869184"));
    CHECK_INT(activations((int64_t)1 << 30, &e), QSIM_E_LIMIT); /* 16 GiB each */
}

int main(void) {
    if (sizeof(size_t) > 4)
        check_activations();
    shared_weight();
    shared_integers();
    folding();
    counts();
    threads();
    files();
    out_of_time();
    memory();
    return test_done();
}
