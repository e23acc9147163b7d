/* SPDX-License-Identifier: MIT */
/* One calibration serves all: ranges are chosen from its histograms. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calibrating.h"
#include "common/progress.h"
#include "engine.h"
#include "latency.h"
#include "scores.h"
#include "sweeping.h"
#include "verbs.h"

#define TIMED_RUNS 20

static const char *const schemes[] = {"channel", "tensor", "tensor-asymmetric",
                                      "channel-asymmetric", NULL};
static const char *const methods[] = {"minmax", "percentile", "mse", "entropy", NULL};

/* ---- what is tried ---- */

/* Which of `names` a list "a,b" has; all of them where it is NULL. False: something else is in it.
 */
static bool read_list(const tool *t, const char *name, const char *const *names, bool *wanted) {
    const char *list = args_value(&t->args, name);
    for (size_t i = 0; names[i]; i++)
        wanted[i] = !list;
    while (list && *list) {
        const size_t n = strcspn(list, ",");
        size_t i = 0;
        while (names[i] && (strlen(names[i]) != n || strncmp(names[i], list, n) != 0))
            i++;
        if (!names[i])
            return tool_usage(t, NULL, "--%s: '%.*s' is none", name, (int)n, list) == EXIT_OK;
        wanted[i] = true;
        list += n + (list[n] == ',');
    }
    return true;
}

static void add_attempt(sweep *s, size_t scheme, size_t method, double percentile) {
    s->attempts = tool_grow(s->attempts, s->count + 1, sizeof(*s->attempts));
    s->attempts[s->count++] = (attempt){.scheme = schemes[scheme],
                                        .method = methods[method],
                                        .percentile = percentile,
                                        .top1 = (double)NAN};
}

/* A percentile each. */
static bool add_percentiles(const tool *t, sweep *s, size_t scheme) {
    const char *list = args_value(&t->args, "percentiles");
    char number[32];
    for (list = list ? list : "99,99.9,99.99,99.999"; *list;) {
        const size_t n = strcspn(list, ",");
        double p = 0;
        snprintf(number, sizeof(number), "%.*s", (int)(n < 31 ? n : 31), list);
        if (!parse_number(number, &p) || !(p > 0 && p <= 100))
            return tool_usage(t, NULL, "--percentiles: '%s' is no percentile", number) == EXIT_OK;
        add_attempt(s, scheme, QSIM_METHOD_PERCENTILE, p);
        list += n + (list[n] == ',');
    }
    return true;
}

static bool list_attempts(const tool *t, sweep *s) {
    bool scheme[3], method[4];
    if (!read_list(t, "schemes", schemes, scheme) || !read_list(t, "methods", methods, method))
        return false;
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 4 && scheme[i]; k++) {
            if (method[k] && k == QSIM_METHOD_PERCENTILE && !add_percentiles(t, s, i))
                return false;
            if (method[k] && k != QSIM_METHOD_PERCENTILE)
                add_attempt(s, i, k, (double)NAN);
        }
    return true;
}

static int32_t index_of(const char *name, const char *const *names) {
    int32_t i = 0;
    while (strcmp(names[i], name) != 0)
        i++;
    return i;
}

/* ---- measuring ---- */

/* Accuracy where there are labels, and the time of a run on the first batch. */
static int score(const tool *t, const char *file, const qsim_model *m, dataset *d, double *top1,
                 double *ms, int64_t *rows) {
    engine e = {0};
    scores s = {0};
    latency time = {0};
    batch b;
    int code = engine_of_model(t, file, m, NULL, 0, &e);
    *top1 = (double)NAN;
    dataset_rewind(d);
    while (code == EXIT_OK && (code = dataset_next(d, &b)) == EXIT_OK && b.samples > 0) {
        for (int i = 0; i < (time.count ? 1 : TIMED_RUNS) && code == EXIT_OK; i++) {
            const double start = tool_now();
            code = engine_execute(t, file, &e, b.inputs, b.input_count);
            if (time.count + 1 < TIMED_RUNS && i > 0) /* the first one warms up */
                latency_add(&time, tool_now() - start);
        }
        *rows = *rows ? *rows : b.samples;
        if (code == EXIT_OK && b.labels)
            code = scores_add(t, &s, file, &e.outputs[0], b.labels, b.samples);
        if (!dataset_has_labels(d))
            break;
    }
    *ms = latency_median(time.ms, time.count);
    *top1 = s.samples ? scores_percent(&s, s.top1) : (double)NAN;
    scores_free(&s);
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
            return tool_error(t, file, &e);
    return code;
}

static int try_one(const tool *t, const sweep *s, const qsim_model *m, const qsim_calibration *c,
                   dataset *d, attempt *a) {
    const qsim_quantize_options o = {.struct_size = sizeof(o),
                                     .weight_scheme = index_of(a->scheme, schemes),
                                     .method = index_of(a->method, methods),
                                     .percentile = isnan(a->percentile) ? 0 : a->percentile};
    const qsim_verdict_options how = {
        .struct_size = sizeof(how), .seen = s->held_out == 0, .no_layers = 1};
    qsim_model *q = NULL;
    qsim_verdict *v = NULL;
    qsim_error e;
    int64_t rows = 0;
    int code = EXIT_OK;
    if (qsim_quantize(m, c, &o, &q, &e) || qsim_verdict_create(m, q, &how, &v, &e))
        code = tool_error(t, s->file, &e);
    else if ((code = tool_list_model(t, s->file, q)) == EXIT_OK)
        code = feed_all(t, s->file, d, v);
    if (code == EXIT_OK) {
        take_verdict(v, a);
        a->bytes = qsim_model_bytes(q);
        code = score(t, s->file, q, d, &a->top1, &a->ms, &rows);
    }
    qsim_verdict_free(v);
    qsim_model_free(q);
    return code;
}

static int try_all(const tool *t, sweep *s, const qsim_model *m, dataset *d) {
    qsim_calibration *c = NULL;
    progress p;
    int code = judge_hold_out(t, d, &s->held_out) ? EXIT_OK : EXIT_USAGE;
    if (code == EXIT_OK)
        code = calibrate_data(t, s->file, m, NULL, d, &c);
    s->samples = qsim_calibration_samples(c);
    dataset_use_held(d, s->held_out > 0);
    if (code == EXIT_OK)
        code = score(t, s->file, m, d, &s->float_top1, &s->float_ms, &s->rows);
    progress_begin(&p, t);
    for (size_t i = 0; i < s->count && code == EXIT_OK; i++) {
        text name = {0};
        attempt_name(&s->attempts[i], &name);
        code = try_one(t, s, m, c, d, &s->attempts[i]);
        if (code == EXIT_OK && progress_step(&p, name.data, i + 1, s->count)) {
            s->count = i + 1; /* those are shown */
            code = EXIT_INTERRUPTED;
        } else if (code)
            s->count = i;
        text_free(&name);
    }
    progress_end(&p);
    qsim_calibration_free(c);
    return code;
}

/* ---- the verb ---- */

static const char *const files[] = {"csv", "markdown", "svg"};

static int write_files(const tool *t, const sweep *s) {
    int code = EXIT_OK;
    for (size_t i = 0; i < 3 && code == EXIT_OK; i++) {
        const char *path = args_value(&t->args, files[i]);
        text out = {0};
        if (!path)
            continue;
        (i == 0 ? sweep_csv : i == 1 ? sweep_markdown : sweep_chart)(s, &out);
        code = tool_write(t, path, out.data, out.size);
        text_free(&out);
    }
    return code;
}

static void report(const tool *t, page *p, const sweep *s) {
    text out = {0};
    if (p->path) {
        sweep_chart(s, &out);
        page_chart(p, &out);
    }
    if (!t->json || p->path) {
        page_report_begin(t, p);
        out.size = 0;
        sweep_markdown(s, &out);
        fputs(out.data, stdout);
        printf("\n%s: calibrated on %lld samples, judged by %lld%s; runs of batch %lld\n",
               tool_base_name(s->file), (long long)s->samples,
               (long long)(s->held_out ? s->held_out : s->samples),
               s->held_out ? " others" : " of them, none held out", (long long)s->rows);
        page_report_end(t, p);
    }
    if (t->json) {
        json j = {0};
        sweep_json(s, &j);
        tool_print_json(t, &j);
    }
    text_free(&out);
}

static int run_sweep(tool *t, sweep *s) {
    qsim_model *m = NULL;
    dataset *d = NULL;
    page p;
    int code = EXIT_OK;
    if (!tool_operands(t, 1, 1) || !list_attempts(t, s))
        return EXIT_USAGE;
    s->file = t->args.operands[0];
    for (size_t i = 0; i < 3; i++)
        if (args_has(&t->args, files[i]) &&
            !tool_may_write(t, args_value(&t->args, files[i]), &code))
            return code;
    if (!page_open(t, &p, &code))
        return code;
    code = tool_load_model(t, s->file, 0, &m);
    if (code == EXIT_OK) {
        s->float_bytes = qsim_model_bytes(m);
        code = dataset_open(t, m, &d);
    }
    if (code == EXIT_OK)
        code = try_all(t, s, m, d);
    const bool partial = code == EXIT_INTERRUPTED && s->count > 0;
    if (code == EXIT_OK || partial) {
        report(t, &p, s);
        const int failed = write_files(t, s);
        code = failed ? failed : code;
    }
    code = page_close(t, &p, "qsim sweep", code);
    dataset_close(d);
    qsim_model_free(m);
    return code;
}

static int run(tool *t) {
    sweep s = {.float_top1 = (double)NAN};
    const int code = run_sweep(t, &s);
    free(s.attempts);
    return code;
}

static const option options[] = {
    OPTION_DATA,
    {"schemes", "LIST", "of channel,tensor,tensor-asymmetric,channel-asymmetric (all)", 0, NULL},
    {"methods", "LIST", "of minmax,percentile,mse,entropy (all)", 0, NULL},
    {"percentiles", "LIST", "for percentile (99,99.9,99.99,99.999)", 0, NULL},
    {"held-out", "N", "keep at most N samples from calibrating, to judge by (128)", 0, NULL},
    {"markdown", "FILE", "write the table, which is also printed", 0, NULL},
    {"csv", "FILE", "write it as CSV", 0, NULL},
    {"svg", "FILE", "draw the SQNR of each", 0, NULL},
    OPTION_HTML,
    OPTION_FORCE,
    {NULL, NULL, NULL, 0, NULL},
};

const verb verb_sweep = {
    "sweep", "MODEL --data SPEC", "try schemes, ranges, percentiles, all with all", options, run,
    false};
