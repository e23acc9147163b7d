/* SPDX-License-Identifier: MIT */
/*
 * Times what calibrating for a quantization without options costs beside running, from C: processor
 * time on one thread, runs and feeds in turns, medians.
 *
 *     feeds [BATCH[,SIZE]:]MODEL...    by default single samples; SIZE: of free axes but the batch
 *
 * Inputs are made up between 0 and 1, whole numbers are 16000 (a rate of sound). Prints lines of
 * five fields, separated by tabs: model, batch, microseconds of a run and of a feed, the ratio.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <qsim/qsim.h>

#define TURNS 31
#define LONG  2000.0 /* microseconds of a turn at least */
#define MOST  8      /* inputs and outputs */

typedef struct subject {
    qsim_model *model;
    qsim_session *session;
    qsim_run *run;
    qsim_calibration *calibration;
    qsim_tensor inputs[MOST], outputs[MOST];
    int64_t dims[MOST][8];
    size_t input_count, output_count;
} subject;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int make_input(subject *s, size_t i, int64_t batch, int64_t size) {
    qsim_value_info v = {.struct_size = sizeof(v)};
    if (qsim_model_input(s->model, (int32_t)i, &v) || v.rank > 8)
        return 0;
    size_t count = 1;
    for (int32_t k = 0; k < v.rank; k++) {
        const char *name = v.dim_names[k];
        const int is_batch = name ? strstr(name, "batch") || !strcmp(name, "N") : k == 0;
        s->dims[i][k] = v.dims[k] > 0 ? v.dims[k] : is_batch || k == 0 ? batch : size;
        count *= (size_t)s->dims[i][k];
    }
    const size_t width = v.dtype == QSIM_INT64 ? 8 : 4;
    void *data = calloc(count, width);
    if (!data || (v.dtype != QSIM_INT64 && v.dtype != QSIM_FLOAT))
        return 0;
    for (size_t k = 0; k < count; k++)
        if (width == 8)
            ((int64_t *)data)[k] = 16000;
        else
            ((float *)data)[k] = (float)rand() / (float)RAND_MAX;
    s->inputs[i] = (qsim_tensor){v.dtype, v.rank, s->dims[i], data, count * width};
    return 1;
}

static int open_subject(qsim_ctx *ctx, const char *path, int64_t batch, int64_t size, subject *s) {
    qsim_error e;
    const qsim_quantize_options plain = {.struct_size = sizeof(plain)};
    const qsim_calibration_options o = {.struct_size = sizeof(o), .quantize = &plain};
    if (qsim_model_load(ctx, path, NULL, &s->model, &e) ||
        qsim_session_create(s->model, NULL, &s->session, &e) ||
        qsim_run_create(s->session, &s->run, &e) ||
        qsim_calibration_create(s->model, &o, &s->calibration, &e))
        return fprintf(stderr, "%s\n", e.message), 0;
    s->input_count = (size_t)qsim_session_input_count(s->session);
    s->output_count = (size_t)qsim_session_output_count(s->session);
    int made = s->input_count <= MOST && s->output_count <= MOST;
    for (size_t i = 0; i < s->input_count && made; i++)
        made = make_input(s, i, batch, size);
    if (!made)
        fprintf(stderr, "%s: inputs that this program does not make\n", path);
    return made;
}

static int turn(subject *s, int feeds, int loops, double *us) {
    qsim_error e;
    const double begin = now();
    for (int i = 0; i < loops; i++)
        if (feeds ? qsim_calibration_feed(s->calibration, s->inputs, s->input_count, &e)
                  : qsim_run_execute(s->run, s->inputs, s->input_count, s->outputs, s->output_count,
                                     &e))
            return fprintf(stderr, "%s\n", e.message), 0;
    *us = (now() - begin) / loops;
    return 1;
}

static int measure(qsim_ctx *ctx, const char *text) {
    const char *path = strpbrk(text, ":") ? strchr(text, ':') + 1 : text;
    const char *comma = path > text ? memchr(text, ',', (size_t)(path - text)) : NULL;
    const int64_t batch = path > text ? atoi(text) : 1, size = comma ? atoi(comma + 1) : 224;
    const char *slash = strrchr(path, '/');
    subject s = {0};
    double us[2][TURNS], first = 1;
    int ok = open_subject(ctx, path, batch, size, &s);
    for (int k = 0; k < 6 && ok; k++) /* warms up: makes plans, settles the width of bins */
        ok = turn(&s, k % 2, 1, &first);
    const int loops = first < LONG ? (int)(LONG / first) + 1 : 1;
    for (int i = 0; i < TURNS && ok; i++)
        ok = turn(&s, 0, loops, &us[0][i]) && turn(&s, 1, loops, &us[1][i]);
    for (int k = 0; k < 2 && ok; k++)
        qsort(us[k], TURNS, sizeof(us[k][0]), by_size);
    if (ok)
        printf("%s\t%lld\t%.4g\t%.4g\t%.2f\n", slash ? slash + 1 : path, (long long)batch,
               us[0][TURNS / 2], us[1][TURNS / 2], us[1][TURNS / 2] / us[0][TURNS / 2]);
    for (size_t i = 0; i < s.input_count && i < MOST; i++)
        free((void *)(uintptr_t)s.inputs[i].data);
    qsim_calibration_free(s.calibration);
    qsim_run_free(s.run);
    qsim_session_free(s.session);
    qsim_model_free(s.model);
    return ok;
}

int main(int argc, char **argv) {
    const qsim_ctx_options o = {.struct_size = sizeof(o), .threads = 1};
    qsim_ctx *ctx = NULL;
    int failed = qsim_ctx_create(&o, &ctx, NULL) != QSIM_OK;
    for (int i = 1; i < argc && !failed; i++) {
        failed = !measure(ctx, argv[i]);
        fflush(stdout);
    }
    qsim_ctx_free(ctx);
    return failed;
}
