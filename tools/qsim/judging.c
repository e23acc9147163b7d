/* SPDX-License-Identifier: MIT */
#include "judging.h"

#include <math.h>
#include <stdlib.h>

#include "calibrating.h"
#include "common/progress.h"
#include "scores.h"

bool judge_hold_out(const tool *t, dataset *d, int64_t *held) {
    int64_t most;
    if (!tool_int(t, "held-out", 0, 1000000, DATASET_HELD_OUT, &most))
        return false;
    *held = dataset_hold_out(d, most);
    return true;
}

static const char *const bound_names[] = {"min-sqnr", "min-cosine", "min-agreement", NULL};

bool judge_has_bounds(const tool *t) {
    for (size_t i = 0; bound_names[i]; i++)
        if (args_has(&t->args, bound_names[i]))
            return true;
    return false;
}

/*
 * Labels by the order of folders are the model's classes only if there is a folder for each; the
 * library counts the others.
 */
static bool labels_are_classes(const judging *j, const dataset *d) {
    const size_t folders = dataset_classes(d);
    return folders == 0 || folders == scores_classes(j->model);
}

/* Warns of the first label that is no class of the model, if that tells their number. */
static void warn_of_label(const tool *t, const judging *j, const dataset *d, const batch *b,
                          bool *told) {
    const size_t classes = scores_classes(j->model);
    text odd = {0};
    if (*told || classes == 0 || !scores_odd_label(d, b, classes, false, &odd))
        return;
    tool_warn(t, "%s", odd.data);
    text_free(&odd);
    *told = true;
}

int judge_all(const tool *t, judging *j, dataset *d) {
    const qsim_verdict_options o = {.struct_size = sizeof(o),
                                    .calibration = j->calibration,
                                    .method = j->method,
                                    .seen = j->samples == SAMPLES_SEEN,
                                    .made_up = j->made_up,
                                    .no_classes = j->no_classes};
    const bool labelled = labels_are_classes(j, d);
    bool told = false;
    progress p = {0};
    qsim_error e;
    batch b;
    uint64_t done = 0;
    progress_begin(&p, t);
    int code = qsim_verdict_create(j->model, j->result, &o, &j->verdict, &e)
                   ? tool_error(t, j->output, &e)
                   : EXIT_OK;
    if (j->calibration && j->samples != SAMPLES_OTHERS)
        j->outlier = calibration_outlier(j->calibration, d);
    while (code == EXIT_OK) {
        code = dataset_next(d, &b);
        if (code || b.samples == 0)
            break;
        if (qsim_verdict_feed(j->verdict, b.inputs, b.input_count, &e))
            code = tool_error(t, j->output, &e);
        else if (labelled && b.labels)
            warn_of_label(t, j, d, &b, &told);
        if (code == EXIT_OK && labelled && b.labels &&
            qsim_verdict_label(j->verdict, b.labels, (size_t)b.samples, &e))
            code = tool_error(t, j->output, &e);
        done += (uint64_t)b.samples;
        if (progress_step(&p, "judging", done, (uint64_t)dataset_samples(d)))
            break; /* the samples so far are judged */
    }
    progress_end(&p);
    return code;
}

void judge_close(judging *j) {
    qsim_verdict_free(j->verdict);
    free(j->outlier);
    j->verdict = NULL;
    j->outlier = NULL;
}

static bool misses(const char *file, const qsim_verdict_info *o, const char *what, double value,
                   double bound) {
    if (isnan(bound) || value >= bound)
        return false;
    fprintf(stderr, "qsim: %s: output '%.100s': %s is %g, the bound is %g\n", file, o->name, what,
            value, bound);
    return true;
}

bool judge_bounds_read(const tool *t, judge_limits *l) {
    return tool_number(t, "min-sqnr", -1e3, 1e3, (double)NAN, &l->sqnr) &&
           tool_number(t, "min-cosine", -1, 1, (double)NAN, &l->cosine) &&
           tool_percent(t, "min-agreement", (double)NAN, &l->agreement);
}

int judge_bounds(const judging *j, const judge_limits *l) {
    bool bad = false;
    for (int32_t i = 0; i < qsim_verdict_output_count(j->verdict); i++) {
        qsim_verdict_info o = {.struct_size = sizeof(o)};
        if (qsim_verdict_output(j->verdict, i, &o) || o.measure == QSIM_MEASURE_NONE)
            continue;
        bad |= misses(j->output, &o, "SQNR", o.sqnr, l->sqnr);
        bad |= misses(j->output, &o, "cosine", o.cosine, l->cosine);
        if (o.measure == QSIM_MEASURE_AGREEMENT)
            bad |= misses(j->output, &o, "agreement", o.agreement, l->agreement);
    }
    return bad ? EXIT_BOUND : EXIT_OK;
}
