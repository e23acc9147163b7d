/* SPDX-License-Identifier: MIT */
/*
 * A cancellation that is withdrawn while work is going on: what had begun either ends as cancelled
 * or is done in full. A context whose host runs the parts of all work is cancelled for some of
 * them.
 */
#include <qsim/qsim.h>

#include "test.h"

typedef struct host {
    qsim_ctx *ctx;
    long calls, at; /* the call for parallel work that is disturbed, counted from 1; 0: none */
} host;

/* Of one call the first half of the parts is run while the context is cancelled. */
static void parallel(void *user, size_t n, qsim_task_fn task, void *arg) {
    host *h = user;
    const int disturbed = ++h->calls == h->at;
    for (size_t i = 0; i < n; i++) {
        if (disturbed)
            qsim_ctx_cancel(h->ctx, 2 * i < n ? 1 : 0);
        task(arg, i);
    }
    if (disturbed)
        qsim_ctx_cancel(h->ctx, 0);
}

#define SIDE  512
#define BYTES ((size_t)SIDE * SIDE * 4 + 65536)

static float weights[SIDE * SIDE], x[SIDE];
static uint8_t file[BYTES], expected[BYTES];
static const int64_t row[] = {1, SIDE};

static qsim_model *build(qsim_ctx *ctx) {
    qsim_builder *b = NULL;
    qsim_model *m = NULL;
    qsim_error e;
    for (size_t i = 0; i < SIDE * SIDE; i++)
        weights[i] = (float)(i * 7 % 31) / 31 - 0.5f;
    for (size_t i = 0; i < SIDE; i++)
        x[i] = (float)(i % 13) - 6;
    CHECK_INT(qsim_builder_create(ctx, 13, "g", &b, &e), QSIM_OK);
    qsim_builder_input_as(b, "x", "float[1,512]");
    qsim_builder_constant_as(b, "w", "float[512,512]", weights);
    qsim_builder_node(b, "", "Exp", "", "w", "e");
    qsim_builder_node(b, "", "MatMul", "", "e,w", "p"); /* folded */
    qsim_builder_node(b, "", "MatMul", "", "x,p", "a");
    qsim_builder_node(b, "", "Relu", "", "a", "r");
    qsim_builder_node(b, "", "MatMul", "", "r,w", "y");
    qsim_builder_output_as(b, "y", NULL);
    CHECK_INT(qsim_builder_finish(b, &m, &e), QSIM_OK);
    qsim_builder_free(b);
    return m;
}

/* ---- jobs: each gives bytes that are always the same ---- */

static int job_run(const qsim_model *m, uint8_t *out, size_t *size, qsim_error *e) {
    const qsim_tensor in = {QSIM_FLOAT, 2, row, x, sizeof(x)};
    qsim_tensor y = {QSIM_FLOAT, 2, row, out, sizeof(x)};
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    int code = qsim_session_create(m, NULL, &s, e);
    if (!code)
        code = qsim_run_create(s, &r, e);
    if (!code)
        code = qsim_run_execute(r, &in, 1, &y, 1, e);
    qsim_run_free(r);
    qsim_session_free(s);
    *size = sizeof(x);
    return code;
}

static int saved(qsim_model *m, int code, uint8_t *out, size_t *size, qsim_error *e) {
    if (!code)
        code = qsim_model_save_memory(m, out, BYTES, size, e);
    qsim_model_free(m);
    return code;
}

static int job_optimize(const qsim_model *m, uint8_t *out, size_t *size, qsim_error *e) {
    qsim_model *made = NULL;
    const int code = qsim_model_optimize(m, QSIM_LEVEL_ALL, &made, e);
    return saved(made, code, out, size, e);
}

static int job_quantize(const qsim_model *m, uint8_t *out, size_t *size, qsim_error *e) {
    const qsim_tensor in = {QSIM_FLOAT, 2, row, x, sizeof(x)};
    qsim_calibration *c = NULL;
    qsim_model *made = NULL;
    int code = qsim_calibration_create(m, NULL, &c, e);
    if (!code)
        code = qsim_calibration_feed(c, &in, 1, e);
    if (!code)
        code = qsim_quantize(m, c, NULL, &made, e);
    qsim_calibration_free(c);
    return saved(made, code, out, size, e);
}

typedef int job(const qsim_model *m, uint8_t *out, size_t *size, qsim_error *e);

static void disturb(host *h, const qsim_model *m, job *run, const char *name) {
    size_t size = 0, want = 0;
    long cancelled = 0;
    qsim_error e;
    h->calls = 0;
    CHECK_INT(run(m, expected, &want, &e), QSIM_OK);
    const long calls = h->calls;
    CHECK(calls > 0 && want > 0);
    for (long i = 1; i <= calls; i++) {
        h->calls = 0;
        h->at = i;
        const int code = run(m, file, &size, &e);
        h->at = 0;
        cancelled += code == QSIM_E_CANCELLED;
        if (code != QSIM_E_CANCELLED &&
            (code || size != want || memcmp(file, expected, size) != 0)) {
            fprintf(stderr, "%s, parallel call %ld of %ld: %d\n", name, i, calls, code);
            CHECK_FAIL("cancelled, or done in full");
        }
    }
    CHECK(cancelled > 0);
}

int main(void) {
    host h = {0};
    qsim_ctx_options o = {.struct_size = sizeof(o), .threads = 4, .parallel_for = parallel};
    qsim_error e;
    o.parallel_user = &h;
    CHECK_INT(qsim_ctx_create(&o, &h.ctx, &e), QSIM_OK);
    qsim_model *m = build(h.ctx);
    disturb(&h, m, job_run, "run");
    disturb(&h, m, job_optimize, "optimize");
    disturb(&h, m, job_quantize, "quantize");
    qsim_model_free(m);
    qsim_ctx_free(h.ctx);
    return test_done();
}
