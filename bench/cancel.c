/* SPDX-License-Identifier: MIT */
/*
 * Times the latency of cancelling: from qsim_ctx_cancel to the return of the cancelled call, in
 * elapsed time, at five moments inside one long step of each operator, and at 40 moments while a
 * model of 400 MB is saved to the current folder, over one that is there.
 *
 *     cancel [ISA]    avx2, c, ...; by default the best that the CPU has
 *
 * Prints lines of four fields, separated by tabs: operator, the time of its step, the median and
 * the worst latency, in milliseconds. A latency is 0 where the call was over before.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include <qsim/qsim.h>

#define MOMENTS      5
#define SAVE_MOMENTS 40
#define SAVED        "cancel_saved.onnx"

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

/* A node to cancel: the types of its inputs, a small constant as last input, one attribute. */
typedef struct subject {
    const char *name, *op, *inputs, *outputs, *types[3];
    const char *constant; /* type of the last input, an int64 whose elements are all `value` */
    int64_t value;
    const char *attr;
    int64_t number;
} subject;

static const subject subjects[] = {
    {"MatMul 3000^3", "MatMul", "a,b", "y", {"float[3000,3000]", "float[3000,3000]"}, 0, 0, 0, 0},
    {"TopK 1 row of 8M", "TopK", "a,k", "y,i", {"float[8388608]"}, "int64[1]", 100000, 0, 0},
    {"Unique of 2M", "Unique", "a", "y", {"float[2097152]"}, 0, 0, 0, 0},
    {"NonMaxSuppression 20000",
     "NonMaxSuppression",
     "a,b,k",
     "y",
     {"float[1,20000,4]", "float[1,1,20000]"},
     "int64[1]",
     20000,
     0,
     0},
    {"ScatterElements 16M",
     "ScatterElements",
     "a,b,c",
     "y",
     {"float[16777216]", "int64[16777216]", "float[16777216]"},
     0,
     0,
     0,
     0},
    {"CumSum 1 row of 64M", "CumSum", "a,k", "y", {"float[67108864]"}, "int64[]", 0, 0, 0},
    {"ArgMax of 64M", "ArgMax", "a", "y", {"float[8192,8192]"}, 0, 0, "axis", 1},
    {"NonZero of 32M", "NonZero", "a", "y", {"float[33554432]"}, 0, 0, 0, 0},
    {"Softmax 8192 rows of 8192", "Softmax", "a", "y", {"float[8192,8192]"}, 0, 0, 0, 0},
    {"Softmax 1 row of 64M", "Softmax", "a", "y", {"float[1,67108864]"}, 0, 0, 0, 0},
    {"Transpose 8192^2", "Transpose", "a", "y", {"float[8192,8192]"}, 0, 0, 0, 0},
};

/* The context that the signal handler cancels. A signal needs no second core to come in time. */
static qsim_ctx *context;
static volatile double cancelled_at;

static void on_alarm(int number) {
    (void)number;
    cancelled_at = now();
    qsim_ctx_cancel(context, 1);
}

static void cancel_after(double ms) {
    const long us = (long)(ms * 1e3) + 1;
    const struct itimerval t = {{0, 0}, {us / 1000000, us % 1000000}};
    cancelled_at = 0;
    setitimer(ITIMER_REAL, &t, NULL);
}

static qsim_model *build(qsim_ctx *ctx, const subject *s) {
    static int64_t value;
    const char *const names[] = {"a", "b", "c"};
    qsim_builder *b = NULL;
    qsim_model *m = NULL;
    qsim_error e;
    char output[2] = {s->outputs[0], 0};
    value = s->value;
    if (qsim_builder_create(ctx, 13, s->op, &b, &e))
        return NULL;
    for (int i = 0; i < 3 && s->types[i]; i++)
        qsim_builder_input_as(b, names[i], s->types[i]);
    if (s->constant)
        qsim_builder_constant_as(b, "k", s->constant, &value);
    qsim_builder_node(b, "", s->op, "", s->inputs, s->outputs);
    if (s->attr)
        qsim_builder_attr_int(b, s->attr, s->number);
    qsim_builder_output_as(b, output, NULL);
    if (qsim_builder_finish(b, &m, &e))
        fprintf(stderr, "%s: %s\n", s->name, e.message);
    qsim_builder_free(b);
    return m;
}

/* Fills an input with varied numbers; indices of a Scatter stay below its size. */
static void fill(qsim_tensor *t, const qsim_value_info *v) {
    uint64_t seed = 88172645463325252u;
    *t = (qsim_tensor){v->dtype, v->rank, v->dims, NULL, 0};
    if (qsim_tensor_size(v->dtype, v->rank, v->dims, NULL, &t->bytes))
        return;
    t->data = malloc(t->bytes);
    const size_t n = t->bytes / (v->dtype == QSIM_FLOAT ? 4 : 8);
    for (size_t i = 0; t->data && i < n; i++) {
        seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
        if (v->dtype == QSIM_FLOAT)
            ((float *)t->data)[i] = (float)(int32_t)(seed >> 40) / 16777216.0f;
        else
            ((int64_t *)t->data)[i] = (int64_t)(seed % n);
    }
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Writes a line: what was cancelled, its time without that, median and worst of `count` latencies.
 */
static void print_latencies(const char *name, double whole, double *late, size_t count) {
    qsort(late, count, sizeof(*late), by_value);
    printf("%s\t%.0f\t%.1f\t%.1f\n", name, whole, late[count / 2], late[count - 1]);
    fflush(stdout);
}

static void measure(qsim_ctx *ctx, const subject *s) {
    qsim_tensor x[3], y[2] = {{0}, {0}};
    qsim_session *session = NULL;
    qsim_run *run = NULL;
    qsim_error e = {0};
    double late[MOMENTS], whole = 0;
    size_t count = 0;
    qsim_model *m = build(ctx, s);
    if (!m || qsim_session_create(m, NULL, &session, &e) || qsim_run_create(session, &run, &e)) {
        printf("%s\t-\t-\t%s\n", s->name, e.message);
        return;
    }
    for (; count < (size_t)qsim_model_input_count(m); count++) {
        qsim_value_info v = {.struct_size = sizeof(v)};
        if (qsim_model_input(m, (int32_t)count, &v) == QSIM_OK)
            fill(&x[count], &v);
    }
    for (int i = 0; i < 2; i++) {
        whole = now();
        if (qsim_run_execute(run, x, count, y, 1, &e))
            fprintf(stderr, "%s: %s\n", s->name, e.message);
        whole = now() - whole;
    }
    for (int i = 0; i < MOMENTS; i++) {
        cancel_after(whole * (i + 0.5) / MOMENTS);
        const int code = qsim_run_execute(run, x, count, y, 1, &e);
        const double end = now();
        while (cancelled_at <= 0) /* the run ended before the signal: try an earlier moment */
            ;
        qsim_ctx_cancel(ctx, 0);
        late[i] = code == QSIM_E_CANCELLED && end > cancelled_at ? end - cancelled_at : 0;
    }
    print_latencies(s->name, whole, late, MOMENTS);
    for (size_t i = 0; i < count; i++)
        free(x[i].data);
    qsim_run_free(run);
    qsim_session_free(session);
    qsim_model_free(m);
}

/* A model of one constant of 400 MB. */
static qsim_model *build_large(qsim_ctx *ctx) {
    qsim_builder *b = NULL;
    qsim_model *m = NULL;
    qsim_error e;
    float *data = calloc((size_t)100 << 20, sizeof(float));
    if (!data || qsim_builder_create(ctx, 13, "large", &b, &e))
        return NULL;
    qsim_builder_input_as(b, "a", "float[1048576]");
    qsim_builder_constant_as(b, "k", "float[100,1048576]", data);
    qsim_builder_node(b, "", "Add", "", "a,k", "y");
    qsim_builder_output_as(b, "y", NULL);
    if (qsim_builder_finish(b, &m, &e))
        fprintf(stderr, "save: %s\n", e.message);
    qsim_builder_free(b);
    free(data);
    return m;
}

static void measure_save(qsim_ctx *ctx) {
    const qsim_save_options o = {.struct_size = sizeof(o), .flags = QSIM_SAVE_REPLACE};
    double late[SAVE_MOMENTS], whole = 0;
    qsim_error e = {0};
    qsim_model *m = build_large(ctx);
    for (int i = 0; i < 4; i++) { /* disks vary: the fastest */
        const double began = now();
        if (!m || qsim_model_save(m, SAVED, &o, &e)) {
            printf("saving 400 MB\t-\t-\t%s\n", e.message);
            return;
        }
        const double took = now() - began;
        whole = i > 0 && took > whole ? whole : took;
    }
    for (int i = 0; i < SAVE_MOMENTS; i++) {
        cancel_after(whole * (i + 0.5) / SAVE_MOMENTS);
        const int code = qsim_model_save(m, SAVED, &o, &e);
        const double end = now();
        while (cancelled_at <= 0)
            ;
        qsim_ctx_cancel(ctx, 0);
        late[i] = code == QSIM_E_CANCELLED && end > cancelled_at ? end - cancelled_at : 0;
    }
    print_latencies("saving 400 MB", whole, late, SAVE_MOMENTS);
    qsim_model_free(m);
    remove(SAVED);
}

int main(int argc, char **argv) {
    qsim_ctx_options o = {.struct_size = sizeof(o), .threads = 1};
    const struct sigaction action = {.sa_handler = on_alarm};
    qsim_ctx *ctx = NULL;
    qsim_error e;
    for (int32_t i = 1; argc > 1 && qsim_isa_name(i); i++)
        if (strcmp(argv[1], qsim_isa_name(i)) == 0)
            o.isa = i;
    if (qsim_ctx_create(&o, &ctx, &e)) {
        fprintf(stderr, "%s\n", e.message);
        return 1;
    }
    context = ctx;
    sigaction(SIGALRM, &action, NULL);
    for (size_t i = 0; i < sizeof(subjects) / sizeof(*subjects); i++)
        measure(ctx, &subjects[i]);
    measure_save(ctx);
    qsim_ctx_free(ctx);
    return 0;
}
