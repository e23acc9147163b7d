/* SPDX-License-Identifier: MIT */
/* Measures each combination of a sweep. One calibration serves all: it has histograms. */
#include <math.h>

#include "calibrating.h"
#include "common/progress.h"
#include "engine.h"
#include "latency.h"
#include "scores.h"
#include "sweeping.h"

#define TIMED_RUNS 18

/* Prints the error, but not after an interrupt, which is reported once. */
static int failed(const tool *t, const char *file, const qsim_error *e) {
    return e->code == QSIM_E_CANCELLED && tool_interrupted() ? EXIT_INTERRUPTED
                                                             : tool_error(t, file, e);
}

/*
 * Measures accuracy, if there are labels, and the shortest time of a run on the first batch: with
 * so few runs that is steadier than the median while other programs run.
 */
static int score(const tool *t, sweep *s, const qsim_model *m, dataset *d, double *top1,
                 double *ms) {
    const char *file = s->file;
    engine e = {0};
    scores found = {0};
    latency time = {0};
    qsim_error error;
    batch b;
    int code = engine_of_model(t, file, m, NULL, 0, &e);
    *top1 = (double)NAN;
    dataset_rewind(d);
    while (code == EXIT_OK && (code = dataset_next(d, &b)) == EXIT_OK && b.samples > 0) {
        const int runs = time.count ? 1 : 1 + TIMED_RUNS; /* the first one warms up */
        for (int i = 0; i < runs && code == EXIT_OK; i++) {
            const double start = tool_now();
            if (engine_try(&e, b.inputs, b.input_count, &error))
                code = failed(t, file, &error);
            if (i > 0)
                latency_add(&time, tool_now() - start);
        }
        s->rows = s->rows ? s->rows : b.samples;
        if (code == EXIT_OK && b.labels)
            code = scores_add(t, &found, file, d, &e.outputs[0], &b);
        if (!dataset_has_labels(d))
            break;
    }
    latency_summarize(&time);
    s->runs = code == EXIT_OK ? time.count : s->runs;
    *ms = time.min;
    *top1 = found.samples ? scores_percent(&found, found.top1) : (double)NAN;
    scores_free(&found);
    latency_free(&time);
    engine_close(&e);
    return code;
}

static void take_verdict(const qsim_verdict *v, attempt *a) {
    a->grade = qsim_verdict_grade(v);
    a->agreement = (double)NAN;
    a->sqnr = INFINITY;
    a->cosine = 1;
    for (int32_t i = 0; i < qsim_verdict_output_count(v); i++) {
        qsim_verdict_info o = {.struct_size = sizeof(o)};
        if (qsim_verdict_output(v, i, &o) || o.measure == QSIM_MEASURE_NONE)
            continue;
        a->sqnr = fmin(a->sqnr, o.sqnr);
        a->cosine = fmin(a->cosine, o.cosine);
        if (o.measure == QSIM_MEASURE_AGREEMENT)
            a->agreement = isnan(a->agreement) ? o.agreement : fmin(a->agreement, o.agreement);
    }
}

static int feed_all(const tool *t, const char *file, dataset *d, qsim_verdict *v) {
    qsim_error e;
    batch b;
    int code;
    dataset_rewind(d);
    while ((code = dataset_next(d, &b)) == EXIT_OK && b.samples > 0)
        if (qsim_verdict_feed(v, b.inputs, b.input_count, &e))
            return failed(t, file, &e);
    return code;
}

static int try_one(const tool *t, sweep *s, const qsim_model *m, const qsim_calibration *c,
                   dataset *d, attempt *a) {
    const qsim_quantize_options o = {.struct_size = sizeof(o),
                                     .weight_scheme = a->weight_scheme,
                                     .method = a->range_method,
                                     .percentile = isnan(a->percentile) ? 0 : a->percentile};
    const qsim_verdict_options how = {.struct_size = sizeof(how),
                                      .seen = s->held_out == 0,
                                      .no_layers = 1,
                                      .no_classes = args_has(&t->args, "no-classes")};
    qsim_model *q = NULL;
    qsim_verdict *v = NULL;
    qsim_error e;
    int code = EXIT_OK;
    if (qsim_quantize(m, c, &o, &q, &e) || qsim_verdict_create(m, q, &how, &v, &e))
        code = failed(t, s->file, &e);
    else if ((code = tool_list_model(t, s->file, q)) == EXIT_OK)
        code = feed_all(t, s->file, d, v);
    if (code == EXIT_OK) {
        take_verdict(v, a);
        a->bytes = qsim_model_bytes(q);
        code = score(t, s, q, d, &a->top1, &a->ms);
    }
    qsim_verdict_free(v);
    qsim_model_free(q);
    return code;
}

/* Counts the combinations tried, which are reported after an interrupt, too. */
static int try_each(const tool *t, sweep *s, const qsim_model *m, const qsim_calibration *c,
                    dataset *d, size_t all) {
    progress p;
    int code = EXIT_OK;
    progress_begin(&p, t);
    while (s->count < all && code == EXIT_OK) {
        text name = {0};
        attempt_name(&s->attempts[s->count], &name);
        code = try_one(t, s, m, c, d, &s->attempts[s->count]);
        s->count += code == EXIT_OK;
        if (code == EXIT_OK && progress_step(&p, name.data, s->count, all))
            code = EXIT_INTERRUPTED;
        text_free(&name);
    }
    progress_end(&p);
    return code;
}

int sweep_try(const tool *t, sweep *s, const qsim_model *m, dataset *d) {
    const size_t all = s->count;
    qsim_calibration *c = NULL;
    s->count = 0;
    int code = judge_hold_out(t, d, &s->held_out) ? EXIT_OK : EXIT_USAGE;
    if (code == EXIT_OK)
        code = calibrate_data(t, s->file, m, NULL, d, &c); /* reports an interrupt */
    if (code == EXIT_OK) {
        s->samples = qsim_calibration_samples(c);
        dataset_use_held(d, s->held_out > 0);
        code = score(t, s, m, d, &s->float_top1, &s->float_ms);
        if (code == EXIT_OK)
            code = try_each(t, s, m, c, d, all);
        if (code == EXIT_INTERRUPTED && s->count > 0)
            fprintf(stderr, "qsim: %s: interrupted; the table has %zu of %zu combinations\n",
                    s->file, s->count, all);
        else if (code == EXIT_INTERRUPTED)
            code = tool_fail(t, QSIM_E_CANCELLED, "%s: interrupted before the first combination",
                             s->file);
    }
    qsim_calibration_free(c);
    return code;
}
