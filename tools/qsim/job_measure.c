/* SPDX-License-Identifier: MIT */
/* Computes the evaluator's metrics for a model. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "job.h"
#include "latency.h"
#include "scores.h"

static void add_option(tool *own, const char *name, const char *value) {
    text problem = {0};
    (void)args_give_before(&own->args, args_option(own->args.verb, name), value, &problem);
    text_free(&problem);
}

static void add_number(tool *own, const char *name, int64_t value) {
    char digits[24];
    snprintf(digits, sizeof(digits), "%lld", (long long)value);
    if (value > 0)
        add_option(own, name, digits);
}

static const option data_options[] = {OPTION_DATA, {NULL, NULL, NULL, 0, NULL}};
static const verb data_verb = {"run-config", "", "", data_options, NULL, false, NULL};

/* The number of samples to make up: the model's fixed batch if it is over 16, else 16. */
static int64_t made_up(const qsim_model *m) {
    qsim_value_info in = {.struct_size = sizeof(in)};
    bool fixed = qsim_model_input(m, 0, &in) == QSIM_OK && in.rank > 0 && in.dims[0] > 16;
    return fixed ? in.dims[0] : 16;
}

void job_tool(const tool *t, const job_data *d, const qsim_model *m, tool *own) {
    *own = *t;
    own->no_assumed = true; /* the hint names an option of the command line */
    memset(&own->args, 0, sizeof(own->args));
    own->args.verb = &data_verb;
    add_option(own, "data", d->spec ? d->spec : "random");
    if (d->preprocess)
        add_option(own, "preprocess", d->preprocess);
    for (size_t k = 0; job_shape(d, k); k++)
        add_option(own, "shape", job_shape(d, k));
    add_number(own, "batch", d->batch);
    add_number(own, "limit", d->spec || d->limit ? d->limit : made_up(m));
    add_number(own, "skip", d->skip);
    if (args_has(&t->args, "skip-unreadable"))
        add_option(own, "skip-unreadable", NULL);
}

void job_tool_close(tool *own) {
    args_free(&own->args);
}

/* The reference and a model, and their measurements. */
typedef struct pair {
    engine engine[2];
    qsim_metrics difference;
    scores scores;
    latency time;
    int64_t rows; /* samples of one timed run */
    const char *label;
} pair;

const job_data *job_data_of(const job *j, int kind) {
    for (size_t i = 0; i < j->metric_count; i++)
        if (j->metrics[i].kind == kind && j->metrics[i].data.spec)
            return &j->metrics[i].data;
    for (size_t i = 0; i < j->metric_count; i++)
        if (j->metrics[i].data.spec)
            return &j->metrics[i].data;
    for (size_t i = 0; i < j->pass_count; i++)
        if (j->passes[i].data.spec)
            return &j->passes[i].data;
    static const job_data none = {0};
    return &none;
}

static int run_batch(const tool *t, const job *j, pair *p, const dataset *d, const batch *b) {
    const char *files[] = {j->model, p->label};
    int code = EXIT_OK;
    for (int k = 0; k < 2 && code == EXIT_OK; k++)
        code = engine_execute(t, files[k], &p->engine[k], b->inputs, b->input_count);
    if (code == EXIT_OK && p->engine[0].output_count > 0) {
        int bad = qsim_metrics_add(&p->difference, &p->engine[0].outputs[0],
                                   &p->engine[1].outputs[0], 0, 0);
        if (bad)
            return tool_fail(t, bad, "%s: the outputs cannot be compared", p->label);
    }
    if (code == EXIT_OK && b->labels)
        code = scores_add(t, &p->scores, p->label, d, &p->engine[1].outputs[0], b);
    return code;
}

static int compare_all(const tool *t, const job *j, pair *p, const qsim_model *reference) {
    tool own;
    dataset *d = NULL;
    batch b = {.samples = 1};
    job_tool(t, job_data_of(j, METRIC_ACCURACY), reference, &own);
    int code = dataset_open(&own, reference, &d);
    while (code == EXIT_OK && b.samples > 0) {
        code = dataset_next(d, &b);
        if (code == EXIT_OK && b.samples > 0)
            code = run_batch(t, j, p, d, &b);
    }
    dataset_close(d);
    job_tool_close(&own);
    return code;
}

/* Is one more run to be timed? As many as asked for, else 20 and at least 0.1 s of them. */
static bool more(int64_t done, int64_t wanted, double first) {
    return wanted > 0 ? done < wanted : done < 20 || tool_now() - first < 100;
}

/* Times both models on one sample at a time, like a server. */
static int time_runs(const tool *t, const job *j, pair *p, const qsim_model *reference) {
    job_data data = *job_data_of(j, METRIC_LATENCY);
    int64_t warmup = 3, repeat = 0;
    tool own;
    dataset *d = NULL;
    batch b;
    bool said = false;
    for (size_t i = 0; i < j->metric_count; i++)
        if (j->metrics[i].kind <= METRIC_THROUGHPUT) {
            const job_metric *m = &j->metrics[i];
            warmup = !said || m->warmup > warmup ? m->warmup : warmup;
            repeat = !said || m->repeat > repeat ? m->repeat : repeat;
            data.batch = m->data.batch;
            said = true;
        }
    data.batch = data.batch && said ? data.batch : 1;
    job_tool(t, &data, reference, &own);
    own.quiet = true;
    int code = dataset_open(&own, reference, &d);
    if (code == EXIT_OK)
        code = dataset_next(d, &b);
    p->rows = code == EXIT_OK ? b.samples : 0;
    double first = tool_now();
    for (int64_t i = 0; code == EXIT_OK && more(i - warmup, repeat, first); i++) {
        double start = tool_now();
        code = engine_execute(t, p->label, &p->engine[1], b.inputs, b.input_count);
        if (i >= warmup)
            latency_add(&p->time, tool_now() - start);
    }
    dataset_close(d);
    job_tool_close(&own);
    latency_summarize(&p->time);
    return code;
}

static double latency_value(const latency *l, const char *sub) {
    if (strcmp(sub, "avg") == 0)
        return l->mean;
    if (strcmp(sub, "min") == 0)
        return l->min;
    if (strcmp(sub, "max") == 0)
        return l->count ? l->ms[l->count - 1] : 0;
    double digits = atof(sub + 1); /* p50, p999 */
    return latency_quantile(l, digits >= 100 ? digits / 1000 : digits / 100);
}

/* Samples per second; the lowest rate is that of the longest run. */
static double throughput_value(const pair *p, const char *sub) {
    const char *other = strcmp(sub, "min") == 0 ? "max" : strcmp(sub, "max") == 0 ? "min" : sub;
    const double ms = latency_value(&p->time, other);
    return ms > 0 ? 1000 * (double)p->rows / ms : NAN;
}

static double difference_value(const qsim_metrics *m, const char *sub) {
    if (strcmp(sub, "max_abs") == 0)
        return m->max_abs;
    if (strcmp(sub, "max_rel") == 0)
        return m->max_rel;
    if (strcmp(sub, "sqnr") == 0)
        return qsim_metrics_sqnr(m);
    if (strcmp(sub, "cosine") == 0)
        return qsim_metrics_cosine(m);
    return m->rows ? 100.0 * (double)m->agree / (double)m->rows : NAN;
}

static double value_of(const job_metric *m, const pair *p, int64_t bytes) {
    switch (m->kind) {
    case METRIC_LATENCY: return latency_value(&p->time, m->sub);
    case METRIC_THROUGHPUT: return throughput_value(p, m->sub);
    case METRIC_SIZE: return (double)bytes;
    case METRIC_DIFFERENCE: return difference_value(&p->difference, m->sub);
    default:
        return scores_percent(&p->scores,
                              strcmp(m->sub, "top5") == 0 ? p->scores.top5 : p->scores.top1) /
               (strncmp(m->sub, "top", 3) == 0 ? 1 : 100);
    }
}

/* Does a value meet its goal? The input model itself meets goals relative to it. */
static bool meets(const job_metric *m, double value, const double *base) {
    double bound = m->goal_value, sign = m->higher ? 1 : -1;
    if (m->goal == GOAL_NONE || (m->goal != GOAL_THRESHOLD && !base))
        return true;
    if (m->goal != GOAL_THRESHOLD) {
        bool percent = m->goal == GOAL_GAIN_PERCENT || m->goal == GOAL_LOSS_PERCENT;
        double step = percent ? fabs(*base) * m->goal_value / 100 : m->goal_value;
        bool gain = m->goal == GOAL_GAIN || m->goal == GOAL_GAIN_PERCENT;
        bound = *base + sign * (gain ? step : -step);
    }
    return m->higher ? value >= bound : value <= bound;
}

static void fill(const job *j, const pair *p, const job_result *base, job_result *out) {
    out->good = true;
    out->values = tool_alloc(j->metric_count, sizeof(*out->values));
    for (size_t i = 0; i < j->metric_count; i++) {
        out->values[i] = value_of(&j->metrics[i], p, out->bytes);
        out->good &= meets(&j->metrics[i], out->values[i], base ? &base->values[i] : NULL);
    }
    out->mean_ms = p->time.mean;
    out->throughput = throughput_value(p, "avg");
    out->accuracy = p->scores.samples ? scores_percent(&p->scores, p->scores.top1) : NAN;
    out->max_abs = p->difference.max_abs;
    out->sqnr = qsim_metrics_sqnr(&p->difference);
}

static int need_labels(const tool *t, const job *j, const pair *p) {
    for (size_t i = 0; i < j->metric_count; i++)
        if (j->metrics[i].kind == METRIC_ACCURACY && p->scores.samples == 0)
            return tool_usage(t, "data_dir: \"X.npy,Y.npy\" or an .npz with x and y has them",
                              "%s: the data of metric '%.60s' have no labels", j->file,
                              j->metrics[i].name);
    return EXIT_OK;
}

int job_measure(const tool *t, const job *j, const qsim_model *reference, const qsim_model *m,
                const char *label, const job_result *base, job_result *out) {
    pair p = {.label = label, .difference = {.struct_size = sizeof(p.difference)}};
    memset(out, 0, sizeof(*out));
    out->bytes = qsim_model_bytes(m);
    int code = engine_of_model(t, j->model, reference, NULL, 0, &p.engine[0]);
    if (code == EXIT_OK)
        code = engine_of_model(t, label, m, NULL, 0, &p.engine[1]);
    if (code == EXIT_OK)
        code = compare_all(t, j, &p, reference);
    if (code == EXIT_OK)
        code = need_labels(t, j, &p);
    if (code == EXIT_OK)
        code = time_runs(t, j, &p, reference);
    if (code == EXIT_OK)
        fill(j, &p, base, out);
    for (int k = 0; k < 2; k++)
        engine_close(&p.engine[k]);
    scores_free(&p.scores);
    latency_free(&p.time);
    return code;
}

bool job_better(const job *j, const job_result *a, const job_result *b) {
    if (a->good != b->good)
        return a->good;
    for (size_t i = 0; i < j->metric_count; i++)
        if (a->values[i] != b->values[i])
            return j->metrics[i].higher ? a->values[i] > b->values[i] : a->values[i] < b->values[i];
    return j->metric_count == 0 && a->sqnr > b->sqnr;
}
