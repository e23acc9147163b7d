/* SPDX-License-Identifier: MIT */
/*
 * Cancelling: a context at every allocation of every call, a run while it is planned and inside a
 * step. A cancelled call ends with its own code and can be repeated.
 */
#include "heap.h"
#include "touch_trap.h"

#include <qsim/qsim.h>

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

typedef struct canceller {
    qsim_ctx *ctx;
    qsim_run *run;  /* cancelled in place of the context, unless NULL */
    long calls, at; /* the allocation that cancels, counted from 1; 0: none */
    long live;
} canceller;

static void *take(void *user, size_t size, size_t align) {
    canceller *c = user;
    if (++c->calls == c->at && c->run)
        qsim_run_cancel(c->run);
    else if (c->calls == c->at)
        qsim_ctx_cancel(c->ctx, 1);
    c->live++;
    return aligned_alloc(align, (size + align - 1) / align * align);
}

static void give(void *user, void *p, size_t size) {
    canceller *c = user;
    (void)size;
    c->live--;
    free(p);
}

typedef struct things {
    canceller c;
    qsim_model *model, *quantized;
    qsim_session *session;
    qsim_run *run;
    qsim_calibration *calibration;
    char path[32], statistics[40];
} things;

static float values[64 * 64];
static const int64_t row[] = {1, 64};

static qsim_tensor input(void) {
    return (qsim_tensor){QSIM_FLOAT, 2, row, values, 256};
}

static int build(things *t, qsim_error *e) {
    qsim_builder *b = NULL;
    int code = qsim_builder_create(t->c.ctx, 13, "g", &b, e);
    if (code)
        return code;
    qsim_builder_input_as(b, "x", "float[1,64]");
    qsim_builder_constant_as(b, "w", "float[64,64]", values);
    qsim_builder_constant_as(b, "k", "float[64,64]", values);
    qsim_builder_node(b, "", "Neg", "", "k", "n");
    qsim_builder_node(b, "", "MatMul", "", "x,w", "a");
    qsim_builder_node(b, "", "Relu", "", "a", "r");
    qsim_builder_node(b, "", "MatMul", "", "r,n", "y");
    qsim_builder_output_as(b, "y", NULL);
    code = qsim_builder_finish(b, &t->model, e);
    qsim_builder_free(b);
    return code;
}

/* ---- jobs ---- */

static int job_load(things *t, qsim_error *e) {
    qsim_model *m = NULL;
    const int code = qsim_model_load(t->c.ctx, t->path, NULL, &m, e);
    qsim_model_free(m);
    return code;
}

static int job_session(things *t, qsim_error *e) {
    qsim_session *s = NULL;
    const int code = qsim_session_create(t->model, NULL, &s, e);
    qsim_session_free(s);
    return code;
}

static int job_calibrate(things *t, qsim_error *e) {
    qsim_calibration *c = NULL;
    const qsim_tensor x = input();
    int code = qsim_calibration_create(t->model, NULL, &c, e);
    if (!code)
        code = qsim_calibration_feed(c, &x, 1, e);
    qsim_calibration_free(c);
    return code;
}

static int job_quantize(things *t, qsim_error *e) {
    qsim_model *q = NULL;
    const int code = qsim_quantize(t->model, t->calibration, NULL, &q, e);
    qsim_model_free(q);
    return code;
}

static int job_optimize(things *t, qsim_error *e) {
    qsim_model *m = NULL;
    const int code = qsim_model_optimize(t->model, QSIM_LEVEL_ALL, &m, e);
    qsim_model_free(m);
    return code;
}

static int job_save(things *t, qsim_error *e) {
    const qsim_save_options o = {.struct_size = sizeof(o), .flags = QSIM_SAVE_REPLACE};
    return qsim_model_save(t->model, t->path, &o, e);
}

static int job_measure(things *t, qsim_error *e) {
    size_t need;
    return qsim_model_save_memory(t->model, NULL, 0, &need, e);
}

static int job_layers(things *t, qsim_error *e) {
    const int32_t count = qsim_quantize_layers(t->model, t->calibration, NULL, NULL, NULL, e);
    return count < 0 ? count : QSIM_OK;
}

static int job_pairs(things *t, qsim_error *e) {
    const int32_t count = qsim_model_pairs(t->model, t->quantized, NULL, NULL, e);
    return count < 0 ? count : QSIM_OK;
}

/* What is known about nodes of the new model is found while it is compared. */
static int job_new_pairs(things *t, qsim_error *e) {
    qsim_model *q = NULL;
    int32_t count = qsim_quantize(t->model, t->calibration, NULL, &q, e);
    if (!count)
        count = qsim_model_pairs(t->model, q, NULL, NULL, e);
    qsim_model_free(q);
    return count < 0 ? count : QSIM_OK;
}

static int job_read(things *t, qsim_error *e) {
    qsim_calibration *c = NULL;
    int code = qsim_calibration_load(t->c.ctx, t->statistics, &c, e);
    if (!code)
        code = qsim_calibration_merge(c, t->calibration, e);
    qsim_calibration_free(c);
    return code;
}

static int job_recipe(things *t, qsim_error *e) {
    static const char text[] = "qsim-recipe 1\nlayer \"a\" float\nlayer \"b\" float\n"
                               "layer \"c\" float\nlayer \"d\" float\n";
    qsim_recipe *r = NULL;
    const int code = qsim_recipe_load_memory(t->c.ctx, text, sizeof(text) - 1, "text", &r, e);
    qsim_recipe_free(r);
    return code;
}

static int job_integers(things *t, qsim_error *e) {
    qsim_model *m = NULL;
    const int code = qsim_model_integer_io(t->quantized, QSIM_INTEGER_INPUTS, &m, e);
    qsim_model_free(m);
    return code;
}

static int job_convert(things *t, qsim_error *e) {
    qsim_model *m = NULL;
    const int code = qsim_model_convert_to(t->quantized, QSIM_FORMAT_FLOAT, &m, e);
    qsim_model_free(m);
    return code;
}

static int job_linear(things *t, qsim_error *e) {
    static const int64_t one_row[] = {1, 256}, columns[] = {4, 256}, result[] = {1, 4};
    static int8_t y[4];
    const float multiplier = 0.5f;
    const qsim_op_options o = {
        .struct_size = sizeof(o), .multiplier = &multiplier, .multipliers = 1};
    const qsim_tensor in = {QSIM_UINT8, 2, one_row, values, 256},
                      w = {QSIM_INT8, 2, columns, values, 1024};
    return qsim_linear(t->c.ctx, &in, &w, &o, &(qsim_tensor){QSIM_INT8, 2, result, y, 4}, e);
}

static const struct {
    const char *name;
    int (*run)(things *t, qsim_error *e);
} jobs[] = {{"load", job_load},           {"session", job_session},   {"calibrate", job_calibrate},
            {"quantize", job_quantize},   {"optimize", job_optimize}, {"save", job_save},
            {"measure", job_measure},     {"layers", job_layers},     {"pairs", job_pairs},
            {"integers", job_integers},   {"convert", job_convert},   {"linear", job_linear},
            {"new pairs", job_new_pairs}, {"read", job_read},         {"recipe", job_recipe}};

/* Cancelled at each of its allocations; a call may succeed if its last allocation cancels it. */
static void at_every_allocation(things *t, size_t job) {
    qsim_error e = {0};
    long before = t->c.calls, live = t->c.live, cancelled = 0;
    CHECK_INT(jobs[job].run(t, &e), QSIM_OK);
    const long calls = t->c.calls - before;
    CHECK_INT(t->c.live, live);
    for (long i = 1; i <= calls; i++) {
        t->c.at = t->c.calls + i;
        const int code = jobs[job].run(t, &e);
        t->c.at = 0;
        CHECK(code == QSIM_OK || code == QSIM_E_CANCELLED);
        CHECK_INT(e.code, code);
        CHECK(!code || strstr(e.message, "cancelled"));
        CHECK_INT(t->c.live, live);
        cancelled += code != 0;
        qsim_ctx_cancel(t->c.ctx, 0);
    }
    CHECK_INT(jobs[job].run(t, &e), QSIM_OK); /* the context is usable as before */
    if (2 * cancelled < calls) {
        fprintf(stderr, "%s: %ld of %ld\n", jobs[job].name, cancelled, calls);
        CHECK_FAIL("most cancellations are noticed");
    }
}

/* What is found about a model is kept: not what a cancelled call would find. */
static void inspected(qsim_ctx *ctx, const qsim_model *m) {
    qsim_node_info n = {.struct_size = sizeof(n)};
    qsim_ctx_cancel(ctx, 1);
    CHECK_INT(qsim_model_node_count(m), QSIM_E_CANCELLED);
    CHECK_INT(qsim_model_node(m, 0, &n), QSIM_E_CANCELLED);
    qsim_ctx_cancel(ctx, 0);
    CHECK(qsim_model_node_count(m) > 0);
    CHECK_INT(qsim_model_node(m, 0, &n), QSIM_OK);
}

/* While a context is cancelled, no call on it begins. */
static void cancelled_before(things *t) {
    qsim_error e;
    qsim_tensor x = input(), y = {0};
    qsim_ctx_cancel(t->c.ctx, 1);
    for (size_t i = 0; i < sizeof(jobs) / sizeof(*jobs); i++)
        CHECK_INT(jobs[i].run(t, &e), QSIM_E_CANCELLED);
    CHECK_INT(qsim_run_execute(t->run, &x, 1, &y, 1, &e), QSIM_E_CANCELLED);
    CHECK_INT(qsim_run_execute(t->run, &x, 1, &y, 1, &e), QSIM_E_CANCELLED);
    qsim_machine machine = {.struct_size = sizeof(machine)};
    CHECK_INT(qsim_machine_measure(t->c.ctx, &machine, &e), QSIM_E_CANCELLED);
    qsim_ctx_cancel(t->c.ctx, 0);
    CHECK_INT(qsim_run_execute(t->run, &x, 1, &y, 1, &e), QSIM_OK);
    qsim_run_cancel(t->run);
    CHECK_INT(qsim_run_execute(t->run, &x, 1, &y, 1, &e), QSIM_E_CANCELLED);
    CHECK_INT(qsim_run_execute(t->run, &x, 1, &y, 1, &e), QSIM_OK);
    qsim_ctx_cancel(NULL, 1);
}

/* ---- while a plan is made ---- */

#define CHAIN 4000

/* A run without a plan: its input's first size is known when it is executed. */
static void chain(things *t) {
    qsim_builder *b = NULL;
    qsim_error e;
    char x[16] = "x", y[16];
    CHECK_INT(qsim_builder_create(t->c.ctx, 13, "g", &b, &e), QSIM_OK);
    qsim_builder_input_as(b, "x", "float[n,64]");
    for (int i = 0; i < CHAIN; i++, strcpy(x, y)) {
        snprintf(y, sizeof(y), "y%d", i);
        qsim_builder_node(b, "", "Abs", "", i % 2 ? "x" : x, y);
        if (i % 2)
            qsim_builder_output_as(b, y, NULL);
    }
    CHECK_INT(qsim_builder_finish(b, &t->model, &e), QSIM_OK);
    qsim_builder_free(b);
    CHECK_INT(qsim_session_create(t->model, NULL, &t->session, &e), QSIM_OK);
    CHECK_INT(qsim_run_create(t->session, &t->run, &e), QSIM_OK);
}

/* A run that is cancelled while its plan is made does not go on with it, and can be repeated. */
static void while_planned(bool reserve) {
    things t = {.model = NULL};
    const qsim_allocator a = {take, give, &t.c};
    qsim_ctx_options o = {.struct_size = sizeof(o), .allocator = &a, .threads = 1};
    static qsim_tensor y[CHAIN / 2];
    qsim_tensor x = input();
    qsim_error e;
    memset(y, 0, sizeof(y));
    CHECK_INT(qsim_ctx_create(&o, &t.c.ctx, &e), QSIM_OK);
    chain(&t);
    t.c.run = t.run;
    t.c.at = t.c.calls + 1;
    long before = t.c.calls;
    CHECK_INT(reserve ? qsim_run_reserve(t.run, &x, 1, &e)
                      : qsim_run_execute(t.run, &x, 1, y, CHAIN / 2, &e),
              QSIM_E_CANCELLED);
    CHECK(strstr(e.message, "cancelled") != NULL);
    const long cancelled = t.c.calls - before;
    before = t.c.calls;
    CHECK_INT(qsim_run_execute(t.run, &x, 1, y, CHAIN / 2, &e), QSIM_OK);
    CHECK(2 * cancelled < t.c.calls - before);
    qsim_run_free(t.run);
    qsim_session_free(t.session);
    qsim_model_free(t.model);
    qsim_ctx_free(t.c.ctx);
    CHECK_INT(t.c.live, 0);
}

/* ---- inside a step ---- */

#define SIDE 1200

typedef struct watcher {
    qsim_run *run;
    qsim_ctx *ctx; /* cancelled in place of the run, unless NULL */
} watcher;

static void *watch(void *arg) {
    const watcher *w = arg;
    while (!atomic_load(&trap.touched))
        sched_yield();
    if (w->ctx)
        qsim_ctx_cancel(w->ctx, 1);
    else
        qsim_run_cancel(w->run);
    return NULL;
}

/*
 * A product that takes seconds with the C kernels is cancelled by another thread once its first
 * result is written; its last result may not be written.
 */
static void inside(const char *type, bool whole_context, int32_t threads) {
    static float big[SIDE * SIDE];
    float *out = (float *)(void *)pages(sizeof(big));
    const int64_t dims[] = {SIDE, SIDE};
    qsim_ctx_options o = {.struct_size = sizeof(o), .threads = threads, .isa = QSIM_ISA_C};
    qsim_builder *b = NULL;
    things t = {.model = NULL};
    qsim_error e;
    pthread_t thread;
    CHECK_INT(qsim_ctx_create(&o, &t.c.ctx, &e), QSIM_OK);
    CHECK_INT(qsim_builder_create(t.c.ctx, 13, "g", &b, &e), QSIM_OK);
    qsim_builder_input_as(b, "x", type);
    qsim_builder_input_as(b, "w", type);
    qsim_builder_node(b, "", "MatMul", "", "x,w", "y");
    qsim_builder_output_as(b, "y", NULL);
    CHECK_INT(qsim_builder_finish(b, &t.model, &e), QSIM_OK);
    qsim_builder_free(b);
    CHECK_INT(qsim_session_create(t.model, NULL, &t.session, &e), QSIM_OK);
    CHECK_INT(qsim_run_create(t.session, &t.run, &e), QSIM_OK);
    const qsim_tensor x = {QSIM_FLOAT, 2, dims, big, sizeof(big)};
    qsim_tensor y = {QSIM_FLOAT, 2, dims, out, sizeof(big)};
    memset(out, 0xff, sizeof(big)); /* NaN */
    set_trap(NULL, (uint8_t *)out, NULL);
    watcher w = {t.run, whole_context ? t.c.ctx : NULL};
    CHECK(pthread_create(&thread, NULL, watch, &w) == 0);
    CHECK_INT(qsim_run_execute(t.run, (qsim_tensor[]){x, x}, 2, &y, 1, &e), QSIM_E_CANCELLED);
    pthread_join(thread, NULL);
    long missing = 0;
    for (long i = 0; i < SIDE * SIDE; i++)
        missing += out[i] != out[i];
    CHECK(missing > 0);
    free(out);
    qsim_ctx_cancel(t.c.ctx, 0);
    qsim_run_free(t.run);
    qsim_session_free(t.session);
    qsim_model_free(t.model);
    qsim_ctx_free(t.c.ctx);
}

int main(void) {
    things t = {.path = "cancel-XXXXXX"};
    const qsim_allocator a = {take, give, &t.c};
    qsim_ctx_options o = {.struct_size = sizeof(o), .allocator = &a, .threads = 1};
    qsim_error e;
    const qsim_tensor x = input();
    const int fd = mkstemp(t.path);
    close(fd);
    CHECK_INT(qsim_ctx_create(&o, &t.c.ctx, &e), QSIM_OK);
    CHECK_INT(build(&t, &e), QSIM_OK);
    CHECK_INT(job_save(&t, &e), QSIM_OK);
    CHECK_INT(qsim_session_create(t.model, NULL, &t.session, &e), QSIM_OK);
    CHECK_INT(qsim_run_create(t.session, &t.run, &e), QSIM_OK);
    CHECK_INT(qsim_calibration_create(t.model, NULL, &t.calibration, &e), QSIM_OK);
    CHECK_INT(qsim_calibration_feed(t.calibration, &x, 1, &e), QSIM_OK);
    CHECK_INT(qsim_quantize(t.model, t.calibration, NULL, &t.quantized, &e), QSIM_OK);
    snprintf(t.statistics, sizeof(t.statistics), "%s.txt", t.path);
    CHECK_INT(qsim_calibration_save(t.calibration, t.statistics, 0, &e), QSIM_OK);
    inspected(t.c.ctx, t.model);
    inspected(t.c.ctx, t.quantized);
    for (size_t i = 0; i < sizeof(jobs) / sizeof(*jobs); i++)
        at_every_allocation(&t, i);
    cancelled_before(&t);
    qsim_calibration_free(t.calibration);
    qsim_run_free(t.run);
    qsim_session_free(t.session);
    qsim_model_free(t.quantized);
    qsim_model_free(t.model);
    qsim_ctx_free(t.c.ctx);
    CHECK_INT(t.c.live, 0);
    unlink(t.path);
    unlink(t.statistics);
    while_planned(false);
    while_planned(true);
    inside("float[1200,1200]", false, 1);
    inside("float[1200,1200]", true, 2);
    return test_done();
}
