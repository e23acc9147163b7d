/* SPDX-License-Identifier: MIT */
/*
 * Cancelling: a context at every allocation of every call, a run inside a step, packing inside a
 * weight. A cancelled call ends with its own code and can be repeated.
 */
#include "heap.h"

#include <qsim/qsim.h>

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
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
    qsim_model *model;
    qsim_session *session;
    qsim_run *run;
    qsim_calibration *calibration;
    char path[32];
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

static const struct {
    const char *name;
    int (*run)(things *t, qsim_error *e);
} jobs[] = {{"load", job_load},         {"session", job_session},   {"calibrate", job_calibrate},
            {"quantize", job_quantize}, {"optimize", job_optimize}, {"save", job_save}};

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

/* While a context is cancelled, no call on it begins. */
static void cancelled_before(things *t) {
    qsim_error e;
    qsim_tensor x = input(), y = {0};
    qsim_ctx_cancel(t->c.ctx, 1);
    for (size_t i = 0; i < sizeof(jobs) / sizeof(*jobs); i++)
        CHECK_INT(jobs[i].run(t, &e), QSIM_E_CANCELLED);
    CHECK_INT(qsim_run_execute(t->run, &x, 1, &y, 1, &e), QSIM_E_CANCELLED);
    CHECK_INT(qsim_run_execute(t->run, &x, 1, &y, 1, &e), QSIM_E_CANCELLED);
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
    const volatile float *first; /* of the output: written once the step has begun */
    qsim_ctx *ctx;               /* cancelled in place of the run, unless NULL */
} watcher;

static void *watch(void *arg) {
    const watcher *w = arg;
    while (*w->first != *w->first)
        sched_yield();
    if (w->ctx)
        qsim_ctx_cancel(w->ctx, 1);
    else
        qsim_run_cancel(w->run);
    return NULL;
}

/*
 * A product that takes seconds with the C kernels is cancelled after its first result is written;
 * its last result may not be written.
 */
static void inside(const char *type, bool whole_context, int32_t threads) {
    static float big[SIDE * SIDE], out[SIDE * SIDE];
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
    qsim_tensor y = {QSIM_FLOAT, 2, dims, out, sizeof(out)};
    memset(out, 0xff, sizeof(out)); /* NaN */
    watcher w = {t.run, out, whole_context ? t.c.ctx : NULL};
    CHECK(pthread_create(&thread, NULL, watch, &w) == 0);
    CHECK_INT(qsim_run_execute(t.run, (qsim_tensor[]){x, x}, 2, &y, 1, &e), QSIM_E_CANCELLED);
    pthread_join(thread, NULL);
    long missing = 0;
    for (long i = 0; i < SIDE * SIDE; i++)
        missing += out[i] != out[i];
    CHECK(missing > 0);
    qsim_ctx_cancel(t.c.ctx, 0);
    qsim_run_free(t.run);
    qsim_session_free(t.session);
    qsim_model_free(t.model);
    qsim_ctx_free(t.c.ctx);
}

/* ---- at a touch ---- */

#define WEIGHT (64 * 8192)
#define PAGE   65536 /* a multiple of the system's page */

/* Memory whose first touch cancels, and whose second touch, if it has one, is recorded. */
static struct {
    qsim_ctx *ctx;
    uint8_t *page, *last;
    volatile sig_atomic_t touched, last_touched;
} trap;

static void on_touch(int number, siginfo_t *info, void *unused) {
    const uint8_t *at = info->si_addr;
    (void)number;
    (void)unused;
    if (trap.page && at >= trap.page && at < trap.page + PAGE) {
        mprotect(trap.page, PAGE, PROT_READ | PROT_WRITE);
        qsim_ctx_cancel(trap.ctx, 1);
        trap.touched = 1;
    } else if (trap.last && at >= trap.last && at < trap.last + PAGE) {
        mprotect(trap.last, PAGE, PROT_READ | PROT_WRITE);
        trap.last_touched = 1;
    } else {
        signal(SIGSEGV, SIG_DFL);
    }
}

static void set_trap(qsim_ctx *ctx, uint8_t *page, uint8_t *last) {
    const struct sigaction action = {.sa_sigaction = on_touch, .sa_flags = SA_SIGINFO};
    trap.ctx = ctx;
    trap.page = page;
    trap.last = last;
    trap.touched = trap.last_touched = 0;
    CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
    CHECK(mprotect(page, PAGE, PROT_NONE) == 0);
    CHECK(!last || mprotect(last, PAGE, PROT_NONE) == 0);
}

static uint8_t *pages(size_t bytes) {
    uint8_t *p = aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE);
    CHECK(p != NULL);
    return p;
}

/* One step; its input is all ones, `w` a constant of ones; "": the operator has no weight. */
typedef struct touch_case {
    const char *op, *x, *w, *y;
    double expected; /* each element of the result */
    int32_t isa;
} touch_case;

static const touch_case touch_cases[] = {
    {"MatMulInteger", "uint8[96,64]", "int8[64,8192]", "int32[96,8192]", 64, QSIM_ISA_C},
    {"MatMulInteger", "uint8[960,64]", "int8[64,8192]", "int32[960,8192]", 64, QSIM_ISA_AUTO},
    {"Softmax", "float[1,2097152]", "", "float[1,2097152]", 1.0 / 2097152, QSIM_ISA_AUTO},
    {"Identity", "float[1,2097152]", "", "float[1,2097152]", 1, QSIM_ISA_AUTO},
    {"Trilu", "float[1,2097152]", "", "float[1,2097152]", 1, QSIM_ISA_AUTO},
    {"LogSoftmax", "float[1,524288]", "", "float[1,524288]", -19 * 0.6931471805599453,
     QSIM_ISA_AUTO},
};

static qsim_model *one_step(qsim_ctx *ctx, const touch_case *c) {
    static int8_t ones[WEIGHT];
    qsim_builder *b = NULL;
    qsim_model *m = NULL;
    qsim_error e;
    memset(ones, 1, sizeof(ones));
    CHECK_INT(qsim_builder_create(ctx, 14, "g", &b, &e), QSIM_OK);
    qsim_builder_input_as(b, "x", c->x);
    if (*c->w)
        qsim_builder_constant_as(b, "w", c->w, ones);
    if (strcmp(c->op, "MatMulBnb4") == 0) { /* of two codes in each byte */
        static const float scales[2 * WEIGHT / 64];
        qsim_builder_import(b, "com.microsoft", 1);
        qsim_builder_constant_as(b, "s", "float[16384]", scales);
        qsim_builder_node(b, "com.microsoft", c->op, "", "x,w,s", "y");
        qsim_builder_attr_int(b, "K", 64);
        qsim_builder_attr_int(b, "N", 2 * WEIGHT / 64);
        qsim_builder_attr_int(b, "block_size", 64);
        qsim_builder_attr_int(b, "quant_type", 1);
    } else {
        qsim_builder_node(b, "", c->op, "", *c->w ? "x,w" : "x", "y");
    }
    qsim_builder_output_as(b, "y", NULL);
    CHECK_INT(qsim_builder_finish(b, &m, &e), QSIM_OK);
    qsim_builder_free(b);
    return m;
}

/* A tensor of ones of the shape that the model declares, for its input or its output. */
static qsim_tensor full(const qsim_model *m, qsim_value_info *v, bool input) {
    qsim_tensor t = {0};
    *v = (qsim_value_info){.struct_size = sizeof(*v)};
    CHECK_INT(input ? qsim_model_input(m, 0, v) : qsim_model_output(m, 0, v), QSIM_OK);
    t = (qsim_tensor){v->dtype, v->rank, v->dims, NULL, 0};
    CHECK_INT(qsim_tensor_size(v->dtype, v->rank, v->dims, NULL, &t.bytes), QSIM_OK);
    t.data = pages(t.bytes + PAGE);
    for (size_t i = 0; input && i < t.bytes; i++)
        ((uint8_t *)t.data)[i] = 1;
    for (size_t i = 0; input && v->dtype == QSIM_FLOAT && i < t.bytes / 4; i++)
        ((float *)t.data)[i] = 1;
    return t;
}

static double element(const qsim_tensor *t, size_t i) {
    return t->dtype == QSIM_FLOAT ? (double)((const float *)t->data)[i]
                                  : (double)((const int32_t *)t->data)[i];
}

/* Cancelled when the first element is written: the last is not written; then executed in full. */
static void at_first_result(const touch_case *c) {
    qsim_ctx_options o = {.struct_size = sizeof(o), .threads = 1, .isa = c->isa};
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    qsim_value_info in, out;
    qsim_ctx *ctx;
    qsim_error e;
    CHECK_INT(qsim_ctx_create(&o, &ctx, &e), QSIM_OK);
    qsim_model *m = one_step(ctx, c);
    CHECK_INT(qsim_session_create(m, NULL, &s, &e), QSIM_OK);
    CHECK_INT(qsim_run_create(s, &r, &e), QSIM_OK);
    qsim_tensor x = full(m, &in, true), y = full(m, &out, false);
    memset(y.data, 0xff, y.bytes);
    set_trap(ctx, y.data, NULL);
    CHECK_INT(qsim_run_execute(r, &x, 1, &y, 1, &e), QSIM_E_CANCELLED);
    CHECK(trap.touched);
    CHECK(((const uint8_t *)y.data)[y.bytes - 1] == 0xff);
    qsim_ctx_cancel(ctx, 0);
    CHECK_INT(qsim_run_execute(r, &x, 1, &y, 1, &e), QSIM_OK);
    double worst = 0;
    for (size_t i = 0; i < y.bytes / 4; i++)
        worst = fmax(worst, fabs(element(&y, i) / c->expected - 1));
    CHECK(worst < 1e-5);
    free(x.data);
    free(y.data);
    qsim_run_free(r);
    qsim_session_free(s);
    qsim_model_free(m);
    qsim_ctx_free(ctx);
}

/* The weight's bytes, the first WEIGHT ones in a row; *end is behind them. */
static uint8_t *find_ones(uint8_t *data, size_t size, uint8_t **end) {
    size_t run = 0;
    for (size_t i = 0; i < size; i++) {
        run = data[i] == 1 ? run + 1 : 0;
        if (run == WEIGHT) {
            *end = data + i + 1;
            return data + i + 1 - run;
        }
    }
    CHECK_FAIL("the weight is in the file");
    *end = data + size;
    return data;
}

/* Cancelled when packing or widening reads a weight's first page: the last page is not read. */
static void while_packing(const char *op, const char *x, const char *w) {
    const touch_case c = {op, x, w, "", 0, QSIM_ISA_AUTO};
    char path[] = "cancel-XXXXXX";
    qsim_ctx_options o = {.struct_size = sizeof(o), .threads = 1};
    const qsim_save_options replace = {.struct_size = sizeof(replace), .flags = QSIM_SAVE_REPLACE};
    qsim_session *s = NULL;
    qsim_ctx *ctx;
    qsim_error e;
    close(mkstemp(path));
    CHECK_INT(qsim_ctx_create(&o, &ctx, &e), QSIM_OK);
    qsim_model *m = one_step(ctx, &c);
    CHECK_INT(qsim_model_save(m, path, &replace, &e), QSIM_OK);
    qsim_model_free(m);
    FILE *f = fopen(path, "rb");
    uint8_t *data = pages(2 * WEIGHT), *end;
    const size_t size = fread(data, 1, 2 * WEIGHT, f);
    fclose(f);
    unlink(path);
    CHECK_INT(qsim_model_load_memory(ctx, data, size, NULL, &m, &e), QSIM_OK);
    uint8_t *first = find_ones(data, size, &end);
    set_trap(ctx, data + (size_t)(first - data + PAGE) / PAGE * PAGE,
             data + (size_t)(end - data - 2 * PAGE) / PAGE * PAGE);
    CHECK_INT(qsim_session_create(m, NULL, &s, &e), QSIM_E_CANCELLED);
    CHECK(trap.touched && !trap.last_touched);
    qsim_ctx_cancel(ctx, 0);
    CHECK_INT(qsim_session_create(m, NULL, &s, &e), QSIM_OK);
    CHECK(trap.last_touched);
    qsim_session_free(s);
    qsim_model_free(m);
    free(data);
    qsim_ctx_free(ctx);
}

/* ---- copies of megabytes ---- */

#define MUCH ((size_t)8 << 20)

/* Cancelled when an input's first page is copied: its last page is not. */
static void while_given(void) {
    const touch_case c = {"GlobalMaxPool", "float[1,1,1024,2048]", "", "", 1, QSIM_ISA_AUTO};
    qsim_ctx_options o = {.struct_size = sizeof(o), .threads = 1};
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    qsim_value_info in;
    qsim_ctx *ctx;
    qsim_error e;
    CHECK_INT(qsim_ctx_create(&o, &ctx, &e), QSIM_OK);
    qsim_model *m = one_step(ctx, &c);
    CHECK_INT(qsim_session_create(m, NULL, &s, &e), QSIM_OK);
    CHECK_INT(qsim_run_create(s, &r, &e), QSIM_OK);
    qsim_tensor x = full(m, &in, true), y = {0};
    set_trap(ctx, x.data, (uint8_t *)x.data + MUCH - PAGE);
    CHECK_INT(qsim_run_execute(r, &x, 1, &y, 1, &e), QSIM_E_CANCELLED);
    CHECK(strstr(e.message, "cancelled") != NULL);
    CHECK(trap.touched && !trap.last_touched);
    qsim_ctx_cancel(ctx, 0);
    CHECK_INT(qsim_run_execute(r, &x, 1, &y, 1, &e), QSIM_OK);
    CHECK(trap.last_touched);
    CHECK(y.data && *(const float *)y.data == 1);
    free(x.data);
    qsim_run_free(r);
    qsim_session_free(s);
    qsim_model_free(m);
    qsim_ctx_free(ctx);
}

/* A model that is saved to memory, and one that is copied from there. */
static void while_copied(void) {
    qsim_ctx_options o = {.struct_size = sizeof(o), .threads = 1};
    qsim_load_options copy = {.struct_size = sizeof(copy), .flags = QSIM_LOAD_COPY};
    qsim_builder *b = NULL;
    qsim_model *m = NULL, *again = NULL;
    qsim_ctx *ctx;
    qsim_error e;
    size_t need = 0;
    uint8_t *weight = pages(MUCH), *file = pages(MUCH + PAGE);
    memset(weight, 1, MUCH);
    CHECK_INT(qsim_ctx_create(&o, &ctx, &e), QSIM_OK);
    CHECK_INT(qsim_builder_create(ctx, 13, "g", &b, &e), QSIM_OK);
    qsim_builder_input_as(b, "x", "float[1,2097152]");
    qsim_builder_constant_as(b, "w", "float[2097152]", weight);
    qsim_builder_node(b, "", "Add", "", "x,w", "y");
    qsim_builder_output_as(b, "y", NULL);
    CHECK_INT(qsim_builder_finish(b, &m, &e), QSIM_OK);
    qsim_builder_free(b);
    uint8_t *last = file + MUCH - PAGE;
    set_trap(ctx, file, last);
    CHECK_INT(qsim_model_save_memory(m, file, MUCH + PAGE, &need, &e), QSIM_E_CANCELLED);
    CHECK(trap.touched && !trap.last_touched);
    qsim_ctx_cancel(ctx, 0);
    CHECK_INT(qsim_model_save_memory(m, file, MUCH + PAGE, &need, &e), QSIM_OK);
    CHECK(trap.last_touched);
    qsim_model_free(m);
    set_trap(ctx, file, last);
    CHECK_INT(qsim_model_load_memory(ctx, file, need, &copy, &again, &e), QSIM_E_CANCELLED);
    CHECK(trap.touched && !trap.last_touched);
    qsim_ctx_cancel(ctx, 0);
    CHECK_INT(qsim_model_load_memory(ctx, file, need, &copy, &again, &e), QSIM_OK);
    CHECK(trap.last_touched);
    qsim_model_free(again);
    CHECK_INT(qsim_model_load_memory(ctx, file, need, NULL, &again, &e), QSIM_OK);
    qsim_session *s = NULL; /* which copies the weight */
    set_trap(ctx, file + PAGE, last);
    CHECK_INT(qsim_session_create(again, NULL, &s, &e), QSIM_E_CANCELLED);
    CHECK(trap.touched && !trap.last_touched);
    qsim_ctx_cancel(ctx, 0);
    CHECK_INT(qsim_session_create(again, NULL, &s, &e), QSIM_OK);
    CHECK(trap.last_touched);
    qsim_session_free(s);
    qsim_model_free(again);
    free(weight);
    free(file);
    qsim_ctx_free(ctx);
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
    for (size_t i = 0; i < sizeof(jobs) / sizeof(*jobs); i++)
        at_every_allocation(&t, i);
    cancelled_before(&t);
    qsim_calibration_free(t.calibration);
    qsim_run_free(t.run);
    qsim_session_free(t.session);
    qsim_model_free(t.model);
    qsim_ctx_free(t.c.ctx);
    CHECK_INT(t.c.live, 0);
    unlink(t.path);
    while_planned(false);
    while_planned(true);
    inside("float[1200,1200]", false, 1);
    inside("float[1200,1200]", true, 2);
    for (size_t i = 0; i < sizeof(touch_cases) / sizeof(*touch_cases); i++)
        at_first_result(&touch_cases[i]);
    while_given();
    while_copied();
    while_packing("MatMulInteger", "uint8[8,64]", "int8[64,8192]");
    while_packing("MatMulBnb4", "float[8,64]", "uint8[524288]");
    return test_done();
}
