/* SPDX-License-Identifier: MIT */
/* Passes of qsim's own: the ladder of qsim auto, and qsim sensitivity. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calibrating.h"
#include "common/progress.h"
#include "job.h"
#include "ladder.h"
#include "modelinfo.h"
#include "unit_report.h"
#include "verbs.h"

#define SEARCHED 256 /* most samples, as for qsim auto and qsim sensitivity */
#define JUDGED   128

/* Reads samples of the pass's data and calibrates on them. */
static int prepare(const tool *t, const tool *named, const job_pass *p, quantizing *q, size_t most,
                   samples *s) {
    const char *path = args_value(&named->args, "calibration");
    tool own;
    if (!p->data.spec)
        return tool_usage(t, "\"data_config\": {\"data_dir\": \"X.npy\"} names it",
                          "passes.%s: %s needs data", p->name, p->type);
    job_tool(t, &p->data, q->model, &own);
    int code = dataset_open(&own, q->model, &q->data);
    if (code == EXIT_OK) /* they are for the verdict */
        (void)dataset_hold_out(q->data, DATASET_HELD_OUT);
    if (code == EXIT_OK)
        code = samples_read(&own, q->data, q->model, most, s, NULL);
    if (code == EXIT_OK)
        code = samples_check_labels(&own, q->file, q->model, q->data, s);
    if (code == EXIT_OK)
        code = path ? calibration_open(t, path, &q->calibration) : samples_calibrate(&own, q, s);
    dataset_close(q->data);
    q->data = NULL;
    job_tool_close(&own);
    return code;
}

static int32_t note_mode(void *mode, const qsim_attempt *a) {
    if (a->kept)
        *(int32_t *)mode = a->mode;
    return 0;
}

int job_auto(const tool *t, const tool *own, const job_pass *p, quantizing *q) {
    ladder l = {.tool = t, .q = q, .begun = tool_now()};
    qsim_recipe *found = NULL;
    progress bar;
    qsim_error e;
    int code = ladder_options(own, &l);
    if (code == EXIT_OK)
        q->options.keep_moments = ladder_keeps_moments(&l);
    if (code == EXIT_OK)
        code = prepare(t, own, p, q, SEARCHED, &l.seen);
    q->options.keep_moments = 0;
    qsim_search_options o = {.struct_size = sizeof(o)};
    if (code == EXIT_OK && qsim_recipe_create(t->ctx, &found, &e))
        code = tool_error(t, q->file, &e);
    if (code == EXIT_OK) {
        ladder_give(&l, &o);
        progress_begin(&bar, t);
        o.progress = progress_step;
        o.progress_user = &bar;
        o.attempt = note_mode;
        o.attempt_user = &q->options.mode;
        if (qsim_search(q->model, q->calibration, &q->options, &o, found, NULL, &e))
            code = quantize_error(t, q, &e);
        progress_end(&bar);
        qsim_recipe_free(q->recipe);
        q->options.recipe = q->recipe = found;
    }
    ladder_free(&l);
    return code;
}

/* ---- sensitivity ---- */

int job_sensitivity(const tool *t, const job *j, const job_flow *f, const job_pass *p,
                    const qsim_model *m) {
    quantizing q = {.file = j->model, .model = (qsim_model *)(uintptr_t)m};
    tool own = *t;
    samples s = {0};
    units u = {0};
    text path = {0};
    qsim_error e;
    progress bar;
    memset(&own.args, 0, sizeof(own.args));
    own.args.verb = job_verb(p);
    int code = job_give(t, p, NULL, &own);
    if (code == EXIT_OK)
        code = quantize_options(&own, &q);
    if (code == EXIT_OK)
        code = recipe_open(&own, &q);
    if (code == EXIT_OK)
        code = prepare(t, &own, p, &q, JUDGED, &s);
    if (code == EXIT_OK) {
        qsim_search_options o = {.struct_size = sizeof(o)};
        samples_give(&s, &o);
        o.labels = NULL;
        o.label_count = 0;
        progress_begin(&bar, t);
        o.progress = progress_step;
        o.progress_user = &bar;
        u.plain.struct_size = sizeof(u.plain);
        if (qsim_sensitivity(m, q.calibration, &q.options, &o, units_add, &u, &u.plain, &e) < 0)
            code = quantize_error(t, &q, &e);
        progress_end(&bar);
    }
    job_path(j, f, "sensitivity.csv", &path);
    own.force = true; /* job_prepare_output has checked it */
    if (code == EXIT_OK)
        code = units_csv(&own, path.data, &u);
    if (code == EXIT_OK && !t->quiet && !t->json)
        table_line("units", "%s: %zu, in the order of what they gain in float", path.data, u.count);
    text_free(&path);
    units_free(&u);
    samples_free(&s);
    qsim_calibration_free(q.calibration);
    qsim_recipe_free(q.recipe);
    quantize_options_free(&q);
    args_free(&own.args);
    return code;
}
