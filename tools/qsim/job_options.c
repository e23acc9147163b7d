/* SPDX-License-Identifier: MIT */
/* The options of a pass's verb, which a pass takes by their own names, as --config does. */
#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "verbs.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

const verb *job_verb(const job_pass *p) {
    return p->automatic                      ? &verb_auto
           : p->action == ACTION_SENSITIVITY ? &verb_sensitivity
                                             : &verb_quantize;
}

/* Options that stand elsewhere in a configuration, or on the command line of run-config. */
static const char *const elsewhere[] = {
    "data",    "limit",    "skip",    "batch",    "shape",         "preprocess",      "labels",
    "output",  "force",    "html",    "report",   "csv",           "skip-unreadable", "svg",
    "config",  "attempts", "dry-run", "held-out", "min-agreement", "min-cosine",      "min-sqnr",
    "threads", "isa",      "memory",  "time",     "json",          "quiet",           "verbose",
    "help",    "version",
};

/* Numbers, which are checked before the work begins. */
static const struct {
    const char *option;
    double low, high;
} ranges[] = {
    {"max-drop", 0, 100}, {"budget", 1e-6, 1e6},   {"percentile", 50, 100},
    {"block", 0, 256},    {"steps", 1, 1000000.0}, {"seed", 0, 9007199254740992.0},
};

const option *job_option(const job_pass *p, const char *key) {
    char *name = tool_copy(key);
    for (char *s = name; *s; s++)
        *s = *s == '_' ? '-' : *s;
    const option *o = args_option(job_verb(p), name);
    for (size_t i = 0; o && i < COUNT(elsewhere); i++)
        if (strcmp(elsewhere[i], name) == 0)
            o = NULL;
    free(name);
    return o;
}

size_t job_option_names(const job_pass *p, const char **names, size_t capacity) {
    size_t n = 0;
    for (const option *o = job_verb(p)->options; o->name && n < capacity; o++)
        if (job_option(p, o->name))
            names[n++] = o->name;
    return n;
}

static bool check_number(job_reader *r, const option *o, const config *v) {
    for (size_t i = 0; i < COUNT(ranges); i++)
        if (strcmp(ranges[i].option, o->name) == 0 && v->kind != CONFIG_STRING &&
            !(v->number >= ranges[i].low && v->number <= ranges[i].high))
            return job_wrong(r, v, "not a number from %.16g to %.16g", ranges[i].low,
                             ranges[i].high);
    return true;
}

/* The recipe is written beside the pass's model, so that flows do not share a file. */
static bool check_file(job_reader *r, const config *v, const job_choice *c, const char *name) {
    static const char *const others[] = {"model.onnx", "metrics.json", "sensitivity.csv"};
    if (c->count > 0 && strcmp(c->values[0], name) != 0)
        return job_wrong(r, v, "a pass writes one recipe, and '%.60s' is named already",
                         c->values[0]);
    if (strpbrk(name, "/\\"))
        return job_wrong(r, v, "a folder in '%.60s': the recipe is written beside the model", name);
    for (size_t i = 0; i < COUNT(others); i++)
        if (strcmp(others[i], name) == 0)
            return job_wrong(r, v, "'%s' is written, too: the recipe needs another name", name);
    return true;
}

/* A choice with one value, which does not replace others of that option. */
static void add_rule(job_pass *pass, const char *rule) {
    pass->choices = tool_grow(pass->choices, pass->choice_count + 1, sizeof(*pass->choices));
    job_choice *c = &pass->choices[pass->choice_count++];
    *c = (job_choice){.option = "set"};
    job_choice_add(c, rule);
}

static bool read_one(job_reader *r, job_pass *pass, const option *o, const config *v) {
    text value = {0}, problem = {0};
    args scratch = {.verb = job_verb(pass)};
    const char *wrong = o->value                 ? config_value(o, v, &value)
                        : v->kind != CONFIG_BOOL ? "neither true nor false"
                                                 : NULL;
    if (!wrong && o->value && !value.size)
        wrong = "an empty string";
    if (!wrong && !o->value && v->truth)
        text_puts(&value, "");
    if (!wrong && o->value && !args_give_before(&scratch, o, value.data, &problem))
        wrong = problem.data;
    bool good = !wrong || job_wrong(r, v, "%s", wrong);
    good = good && (!o->value || check_number(r, o, v));
    if (good && o->value && strcmp(o->name, "save-recipe") == 0)
        good = check_file(r, v, job_choice_of(pass, o->name), value.data);
    if (good && strcmp(o->name, "set") == 0)
        add_rule(pass, value.data);
    else if (good)
        job_choice_add(job_choice_of(pass, o->name), o->value || v->truth ? value.data : NULL);
    args_free(&scratch);
    text_free(&value);
    text_free(&problem);
    return good;
}

bool job_read_option(job_reader *r, job_pass *pass, const option *o, const config *v) {
    if (v->kind != CONFIG_ARRAY)
        return read_one(r, pass, o, v);
    if (!r->job->search && strcmp(o->name, "set") != 0)
        return job_wrong(r, v, "several values need a search_strategy");
    for (size_t i = 0; i < v->count; i++)
        if (!read_one(r, pass, o, &v->items[i]))
            return false;
    return true;
}

bool job_applies(const char *mode, const char *method, const char *weights, const char *name) {
    const bool is_static = !mode || strcmp(mode, "static") == 0;
    if (strcmp(name, "per-row") == 0)
        return !is_static && strcmp(mode, "dynamic") == 0;
    if (strcmp(name, "percentile") == 0 && method && strcmp(method, "percentile") != 0)
        return false;
    if (strcmp(name, "format") == 0 && weights && strchr(weights, '4'))
        return true;
    if (strcmp(name, "method") == 0 && method && strcmp(method, "auto") == 0)
        return true;
    return is_static || !quantize_is_static(name);
}
