/* SPDX-License-Identifier: MIT */
/* Evaluators: metrics, their sub types and goals. */
#include <stdlib.h>
#include <string.h>

#include "job.h"

static const struct {
    const char *type;
    int kind;
    const char *subs[12]; /* the first is the default */
} kinds[] = {
    {"latency", METRIC_LATENCY, {"avg", "min", "max", "p50", "p75", "p90", "p95", "p99", "p999"}},
    {"throughput",
     METRIC_THROUGHPUT,
     {"avg", "min", "max", "p50", "p75", "p90", "p95", "p99", "p999"}},
    {"accuracy", METRIC_ACCURACY, {"accuracy_score", "top1", "top5"}},
    {"size_on_disk", METRIC_SIZE, {"bytes"}},
    {"size", METRIC_SIZE, {"bytes"}},
    {"difference", METRIC_DIFFERENCE, {"max_abs", "max_rel", "sqnr", "cosine", "agreement"}},
    {"numeric_difference",
     METRIC_DIFFERENCE,
     {"max_abs", "max_rel", "sqnr", "cosine", "agreement"}},
};

static const char *const goals[] = {"",
                                    "threshold",
                                    "min-improvement",
                                    "percent-min-improvement",
                                    "max-degradation",
                                    "percent-max-degradation",
                                    NULL};

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static bool is_higher(int kind, const char *sub) {
    return kind == METRIC_ACCURACY || kind == METRIC_THROUGHPUT ||
           (kind == METRIC_DIFFERENCE && strcmp(sub, "max_abs") != 0 &&
            strcmp(sub, "max_rel") != 0);
}

static bool read_goal(job_reader *r, const config *c, job_metric *m) {
    static const char *const keys[] = {"type", "value", NULL};
    const char *type = NULL;
    if (!c)
        return true;
    if (!job_keys(r, c, keys) || !job_string(r, c, "type", &type) ||
        !job_number(r, c, "value", &m->goal_value))
        return false;
    for (int i = 1; goals[i] && type; i++)
        if (strcmp(goals[i], type) == 0)
            m->goal = i;
    if (m->goal == GOAL_NONE)
        return job_wrong(r, c,
                         "a goal's type is threshold, min-improvement, max-degradation or "
                         "one of these with percent- before it");
    return config_get(c, "value") ? true : job_wrong(r, c, "its value is missing");
}

static bool read_settings(job_reader *r, const config *c, job_metric *m) {
    static const char *const keys[] = {"warmup_num",  "repeat_test_num", "sleep_num", "task",
                                       "num_classes", "average",         "kwargs",    NULL};
    return !c || (job_keys(r, c, keys) && job_int(r, c, "warmup_num", 0, &m->warmup) &&
                  job_int(r, c, "repeat_test_num", 1, &m->repeat));
}

static bool find_sub(job_reader *r, const config *at, size_t kind, job_metric *m) {
    text names = {0};
    for (size_t i = 0; kinds[kind].subs[i]; i++) {
        if (strcmp(kinds[kind].subs[i], m->sub) == 0) {
            text_free(&names);
            m->higher = is_higher(m->kind, m->sub);
            return true;
        }
        text_printf(&names, "%s%s", i ? ", " : "", kinds[kind].subs[i]);
    }
    bool good = job_unsupported(r, at, "'%.60s' is not supported, because %s has %s only", m->sub,
                                kinds[kind].type, names.data);
    text_free(&names);
    return good;
}

static job_metric *add(job *j, const job_metric *m) {
    j->metrics = tool_grow(j->metrics, j->metric_count + 1, sizeof(*j->metrics));
    j->metrics[j->metric_count] = *m;
    return &j->metrics[j->metric_count++];
}

static bool read_sub(job_reader *r, const config *c, size_t kind, const job_metric *metric) {
    static const char *const keys[] = {
        "name", "priority", "goal", "metric_config", "higher_is_better", "priority_rank", NULL};
    job_metric *m = add(r->job, metric);
    m->sub = NULL;
    if (c->kind == CONFIG_STRING)
        m->sub = c->string;
    else if (!job_keys(r, c, keys) || !job_string(r, c, "name", &m->sub) ||
             !job_int(r, c, "priority", -1, &m->priority) ||
             !job_int(r, c, "priority_rank", -1, &m->priority) ||
             !read_settings(r, job_key(c, "metric_config"), m) ||
             !read_goal(r, job_key(c, "goal"), m))
        return false;
    if (!m->sub)
        return job_wrong(r, c, "its name is missing");
    return find_sub(r, c, kind, m);
}

static bool read_metric(job_reader *r, const config *c) {
    static const char *const keys[] = {
        "name", "type",     "backend",  "sub_types", "user_config", "data_config", "metric_config",
        "goal", "priority", "sub_type", "data_dir",  "batch_size",  NULL};
    job_metric m = {.warmup = 3, .repeat = 0};
    const char *type = NULL;
    size_t k = 0;
    if (!job_keys(r, c, keys) || !job_string(r, c, "type", &type) ||
        !job_string(r, c, "name", &m.name))
        return false;
    if (!type)
        type = m.name ? m.name : "";
    while (k < COUNT(kinds) && strcmp(kinds[k].type, type) != 0)
        k++;
    if (k == COUNT(kinds))
        return job_unsupported(
            r, config_get(c, "type") ? config_get(c, "type") : c,
            "'%.60s' is not supported, because the metrics are latency, throughput, "
            "accuracy, size_on_disk and difference",
            type);
    m.kind = kinds[k].kind;
    m.name = m.name ? m.name : kinds[k].type;
    const config *user = job_key(c, "user_config"), *subs = job_key(c, "sub_types");
    if (!job_read_data(r, c, &m.data) || (user && !job_read_data(r, user, &m.data)) ||
        (user && job_key(user, "user_script") &&
         !job_unsupported(r, job_key(user, "user_script"),
                          "not supported, because qsim runs no Python: store the arrays and name "
                          "them in data_dir")) ||
        !read_settings(r, job_key(c, "metric_config"), &m) ||
        !job_int(r, c, "priority", -1, &m.priority))
        return false;
    if (!subs) {
        m.sub = kinds[k].subs[0];
        if (!job_string(r, c, "sub_type", &m.sub) || !read_goal(r, job_key(c, "goal"), &m))
            return false;
        return find_sub(r, c, k, add(r->job, &m));
    }
    if (subs->kind != CONFIG_ARRAY || subs->count == 0)
        return job_wrong(r, subs, "not an array of sub types");
    for (size_t i = 0; i < subs->count; i++)
        if (!read_sub(r, &subs->items[i], k, &m))
            return false;
    return true;
}

/* Sorts by priority: 1 first, those without one (0 or less) last; equal ones keep their order. */
static void sort_metrics(job *j) {
    for (size_t i = 1; i < j->metric_count; i++)
        for (size_t k = i; k > 0; k--) {
            job_metric *a = &j->metrics[k - 1], *b = &j->metrics[k], spare = *a;
            if (b->priority <= 0 || (a->priority > 0 && a->priority <= b->priority))
                break;
            *a = *b;
            *b = spare;
        }
}

static bool read_evaluator(job_reader *r, const config *e) {
    static const char *const keys[] = {"metrics", "type", "name", NULL};
    if (!job_part(r, e, keys))
        return false;
    const config *metrics = job_key(e, "metrics");
    if (metrics && metrics->kind != CONFIG_ARRAY)
        return job_wrong(r, metrics, "%s, not an array", config_kind_name(metrics));
    for (size_t i = 0; metrics && i < metrics->count; i++)
        if (!read_metric(r, &metrics->items[i]))
            return false;
    return true;
}

/* Checks all evaluators and reads the chosen one. */
bool job_read_evaluator(job_reader *r, const config *chosen) {
    const config *all = config_get(&r->job->root, "evaluators"), *e = chosen;
    if (all && all->kind != CONFIG_OBJECT)
        return job_wrong(r, all, "%s, not an object", config_kind_name(all));
    for (size_t i = 0; all && i < all->count; i++) {
        if (!read_evaluator(r, &all->items[i]))
            return false;
        r->job->metric_count = 0;
    }
    if (e && e->kind == CONFIG_STRING) {
        e = config_get(all, e->string);
        if (!e)
            return job_wrong(r, chosen, "there is no evaluator '%.60s' in evaluators",
                             chosen->string);
    } else if (!e && all && all->count == 1)
        e = &all->items[0];
    if (e && !read_evaluator(r, e))
        return false;
    sort_metrics(r->job);
    return true;
}
