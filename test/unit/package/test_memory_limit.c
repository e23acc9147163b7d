/* SPDX-License-Identifier: MIT */
/*
 * The limit 'memory' at each stage of a model's life. Each stage would take 64 MiB: under a limit
 * of 8 the call is refused with the limit's name, and the process takes no more than 32 MiB above
 * it, by the system's count. Without a limit it succeeds.
 */
#include "process_memory.h"
#include "proto.h"
#include "test.h"

#include <qsim/qsim.h>

#include <sys/wait.h>
#include <unistd.h>

#define MIB   ((size_t)1 << 20)
#define LIMIT (8 * MIB)
#define ABOVE (32 * MIB)
#define SIDE  4096 /* of a weight of 64 MiB */

static void add_constant(proto *graph, int64_t count, int64_t side, int dtype, uint32_t field,
                         const void *data, size_t size) {
    proto t = {0};
    proto_int(&t, 1, count);
    if (side)
        proto_int(&t, 1, side);
    proto_int(&t, 2, dtype);
    proto_text(&t, 8, "w");
    proto_bytes(&t, field, data, size);
    proto_take(graph, 5, &t);
    proto_free(&t);
}

static proto finish(proto *g, int64_t in, int rank, int64_t out) {
    const int64_t x[] = {1, in}, y[] = {1, out};
    proto file = {0};
    proto_text(g, 2, "g");
    proto_value(g, 11, "x", QSIM_FLOAT, rank == 2 ? x : x + 1, rank);
    proto_value(g, 12, "y", QSIM_FLOAT, rank == 2 ? y : y + 1, rank);
    proto_model(&file, g);
    proto_free(g);
    return file;
}

/* y = x w; the weight's bytes are used where they lie. */
static proto product(void) {
    proto g = {0};
    void *zeros = calloc(SIDE * SIDE, 4);
    proto_node(&g, "MatMul", "m", "x", "w", "y");
    add_constant(&g, SIDE, SIDE, QSIM_FLOAT, 9, zeros, (size_t)SIDE * SIDE * 4);
    free(zeros);
    return finish(&g, SIDE, 2, SIDE);
}

/* Numbers of 8 bytes that take one byte each in the file. */
static proto packed(void) {
    proto g = {0};
    void *zeros = calloc(SIDE, SIDE / 2);
    proto_node(&g, "Relu", NULL, "x", NULL, "y");
    add_constant(&g, SIDE * SIDE / 2, 0, QSIM_INT64, 7, zeros, SIDE * SIDE / 2);
    free(zeros);
    return finish(&g, 4, 1, 4);
}

/* Four bytes become 64 MiB. */
static proto expansion(void) {
    const int64_t size = SIDE * SIDE;
    proto g = {0};
    proto_node(&g, "Expand", NULL, "x", "w", "y");
    add_constant(&g, 1, 0, QSIM_INT64, 9, &size, sizeof(size));
    return finish(&g, 1, 1, size);
}

/* ---- stages: calls after the model is loaded ---- */

static int stage_load(qsim_model *m, qsim_error *e) {
    (void)m;
    (void)e;
    return QSIM_OK;
}

static int stage_session(qsim_model *m, qsim_error *e) {
    qsim_session *s = NULL;
    const int code = qsim_session_create(m, NULL, &s, e);
    qsim_session_free(s);
    return code;
}

static const int64_t one = 1;
static float number;

static int stage_run(qsim_model *m, qsim_error *e) {
    const qsim_tensor x = {QSIM_FLOAT, 1, &one, &number, sizeof(number)};
    qsim_tensor y = {0};
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    int code = qsim_session_create(m, NULL, &s, e);
    if (!code)
        code = qsim_run_create(s, &r, e);
    if (!code)
        code = qsim_run_execute(r, &x, 1, &y, 1, e);
    qsim_run_free(r);
    qsim_session_free(s);
    return code;
}

static int stage_calibrate(qsim_model *m, qsim_error *e) {
    const qsim_tensor x = {QSIM_FLOAT, 1, &one, &number, sizeof(number)};
    qsim_calibration *c = NULL;
    int code = qsim_calibration_create(m, NULL, &c, e);
    if (!code)
        code = qsim_calibration_feed(c, &x, 1, e);
    qsim_calibration_free(c);
    return code;
}

static int stage_quantize(qsim_model *m, qsim_error *e) {
    const qsim_quantize_options o = {.struct_size = sizeof(o), .mode = QSIM_MODE_DYNAMIC};
    qsim_model *q = NULL;
    const int code = qsim_quantize(m, NULL, &o, &q, e);
    qsim_model_free(q);
    return code;
}

static int stage_optimize(qsim_model *m, qsim_error *e) {
    qsim_model *optimized = NULL;
    int code = qsim_model_optimize(m, QSIM_LEVEL_ALL, &optimized, e);
    qsim_model_free(optimized);
    return code;
}

static qsim_ctx *context;

/* An entry is copied in memory; the package itself is streamed to the file. */
static int stage_package(qsim_model *m, qsim_error *e) {
    const char *path = "memory-limit.onnx", *out = "memory-limit.zip";
    const qsim_save_options replace = {.struct_size = sizeof(replace), .flags = QSIM_SAVE_REPLACE};
    void *zeros = calloc(SIDE, SIDE);
    qsim_packer *w = NULL;
    int code = qsim_model_save(m, path, &replace, e);
    if (!code)
        code = qsim_packer_create(context, &w, e);
    if (!code)
        code = qsim_packer_model(w, path, NULL, e);
    for (int i = 0; i < 4 && !code; i++) {
        char name[16];
        snprintf(name, sizeof(name), "d%d", i);
        code = qsim_packer_add(w, QSIM_ROLE_DATA, name, zeros, SIDE * SIDE, e);
    }
    if (!code)
        code = qsim_packer_save(w, out, QSIM_PACK_REPLACE | QSIM_PACK_DEFLATE, e);
    qsim_packer_free(w);
    free(zeros);
    unlink(path);
    unlink(out);
    return code;
}

/* ---- a process for each ---- */

static int child(const proto *file, int (*stage)(qsim_model *, qsim_error *), size_t limit) {
    test_failures = 0; /* failures so far belong to the parent */
    const size_t before = process_memory("VmRSS:");
    const qsim_limits limits = {.struct_size = sizeof(limits), .memory = limit};
    qsim_ctx_options o = {.struct_size = sizeof(o), .threads = 1, .limits = &limits};
    qsim_model *m = NULL;
    qsim_error e = {0};
    CHECK_INT(qsim_ctx_create(&o, &context, &e), QSIM_OK);
    int code = qsim_model_load_memory(context, file->data, file->size, NULL, &m, &e);
    if (!code)
        code = stage(m, &e);
    CHECK_INT(code, limit ? QSIM_E_NOMEM : QSIM_OK);
    CHECK(!code || strstr(e.hint, "the limit 'memory' is 8388608 bytes"));
    if (code && !strstr(e.hint, "'memory'"))
        fprintf(stderr, "%s (%s)\n", e.message, e.hint);
    qsim_model_free(m);
    CHECK(!limit || qsim_ctx_memory(context) < MIB);
    qsim_ctx_free(context);
    const size_t most = process_memory("VmHWM:");
    CHECK(!limit || most <= before + LIMIT + ABOVE);
    if (limit && most > before + LIMIT + ABOVE)
        fprintf(stderr, "%zu KiB above\n", (most - before - LIMIT) / 1024);
    return test_failures != 0;
}

static void check(const char *name, const proto *file, int (*stage)(qsim_model *, qsim_error *)) {
    for (int i = 0; i < 2; i++) {
        int how = 0;
        const pid_t pid = fork();
        if (pid == 0)
            _exit(child(file, stage, i ? LIMIT : 0));
        CHECK(pid > 0 && waitpid(pid, &how, 0) == pid);
        if (how != 0)
            fprintf(stderr, "in stage %s, %s\n", name, i ? "limited" : "without a limit");
        CHECK_INT(how, 0);
    }
}

int main(void) {
    proto a = product(), b = packed(), c = expansion();
    check("load", &b, stage_load);
    check("session", &a, stage_session);
    check("run", &c, stage_run);
    check("calibrate", &c, stage_calibrate);
    check("quantize", &a, stage_quantize);
    check("optimize", &b, stage_optimize);
    check("package", &c, stage_package);
    proto_free(&a);
    proto_free(&b);
    proto_free(&c);
    return test_done();
}
