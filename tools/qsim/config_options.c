/* SPDX-License-Identifier: MIT */
/*
 * --config F.json: {"mode": "static", "limit": 512, "set": ["head*=fp32"]}, the options of the
 * command line by their names; or in groups, {"calibration": {"method": "mse", "samples": 512},
 * "weights": {"per_channel": true}}.
 */
#include <stdlib.h>
#include <string.h>

#include <qsim/data.h>

#include "common/config.h"
#include "verbs.h"

/* Keys in groups, and the options that they stand for. */
static const struct {
    const char *group, *key, *option;
} grouped[] = {
    {"calibration", "data", "data"},
    {"calibration", "file", "calibration"},
    {"calibration", "method", "method"},
    {"calibration", "percentile", "percentile"},
    {"calibration", "samples", "limit"},
    {"calibration", "skip", "skip"},
    {"calibration", "batch", "batch"},
    {"calibration", "preprocess", "preprocess"},
    {"weights", "type", "weights"},
    {"weights", "scheme", "weight-scheme"},
    {"weights", "reduce_range", "reduce-range"},
    {"weights", "reduce_pairs", "reduce-pairs"},
    {"weights", "bits", NULL},
    {"weights", "per_channel", NULL},
    {"activations", "type", "activations"},
    {"activations", "symmetric", "symmetric"},
    {"activations", "bits", NULL},
};

#define GROUPED (sizeof(grouped) / sizeof(*grouped))

typedef struct reading {
    tool *t;
    const char *file;
    text problem, hint;
} reading;

static bool wrong(reading *r, const config *at, const char *what) {
    config_path(at, &r->problem);
    text_printf(&r->problem, ": %s", what);
    return false;
}

static bool leads_up(const char *path) {
    for (const char *at = path; (at = strstr(at, "..")) != NULL; at += 2)
        if ((at == path || strchr("/,", at[-1])) && (!at[2] || strchr("/,", at[2])))
            return true;
    return false;
}

const char *config_value(const option *o, const config *c, text *out) {
    const bool whole = strcmp(o->value, "N") == 0, number = strcmp(o->value, "P") == 0;
    const bool either = strcmp(o->value, "TIME") == 0; /* 60 or "60s" */
    if (whole || number || (either && c->kind != CONFIG_STRING)) {
        if (c->kind != CONFIG_INT && (whole || c->kind != CONFIG_REAL))
            return whole ? "not a whole number" : "not a number";
        if (c->kind == CONFIG_INT)
            text_printf(out, "%lld", (long long)c->whole);
        else
            text_printf(out, "%.17g", c->number);
        return NULL;
    }
    if (c->kind != CONFIG_STRING)
        return "not a string";
    text_puts(out, c->string);
    return NULL;
}

static bool give_one(reading *r, const option *o, const config *c) {
    text value = {0}, problem = {0};
    bool good;
    if (!o->value) {
        if (c->kind != CONFIG_BOOL)
            return wrong(r, c, "neither true nor false");
        return !c->truth || args_give_before(&r->t->args, o, NULL, &problem);
    }
    const bool path = strcmp(o->value, "FILE") == 0 || strcmp(o->value, "SPEC") == 0;
    const char *fault = config_value(o, c, &value);
    if (!fault && path && leads_up(c->string))
        fault = "a path in a configuration may not lead upwards ('..')";
    good = !fault || wrong(r, c, fault);
    if (good && !args_give_before(&r->t->args, o, value.data ? value.data : "", &problem))
        good = wrong(r, c, problem.data);
    text_free(&value);
    text_free(&problem);
    return good;
}

/* An array repeats an option. In reverse order, since each value is put before the others. */
static bool give(reading *r, const option *o, const config *c) {
    if (c->kind != CONFIG_ARRAY)
        return give_one(r, o, c);
    if (strcmp(o->name, "set") != 0)
        return wrong(r, c, "one value is wanted, not an array");
    for (size_t i = c->count; i-- > 0;)
        if (!give_one(r, o, &c->items[i]))
            return false;
    return true;
}

static bool read_special(reading *r, const config *c) {
    const option *scheme = args_option(r->t->args.verb, "weight-scheme");
    if (strcmp(c->key, "bits") == 0)
        return (c->kind == CONFIG_INT && c->whole == 8) ||
               wrong(r, c, "8 is what there is, as a number");
    if (c->kind != CONFIG_BOOL)
        return wrong(r, c, "neither true nor false");
    return args_give_before(&r->t->args, scheme, c->truth ? "channel" : "tensor", &r->problem);
}

static bool unknown(reading *r, const config *c, const char *const *names) {
    const char *near = names ? closest(c->key, names) : args_nearest(r->t->args.verb, c->key);
    if (near)
        text_printf(&r->hint, "did you mean %s?", near);
    return wrong(r, c, "unknown key");
}

static bool read_group(reading *r, const config *group) {
    const char *names[GROUPED + 1];
    size_t n = 0;
    for (size_t i = 0; i < GROUPED; i++)
        if (strcmp(grouped[i].group, group->key) == 0)
            names[n++] = grouped[i].key;
    names[n] = NULL;
    for (size_t k = 0; k < group->count; k++) {
        const config *c = &group->items[k];
        size_t i = 0;
        while (i < GROUPED &&
               (strcmp(grouped[i].group, group->key) != 0 || strcmp(grouped[i].key, c->key) != 0))
            i++;
        if (i == GROUPED)
            return unknown(r, c, names);
        const char *name = grouped[i].option;
        if (name ? !give(r, args_option(r->t->args.verb, name), c) : !read_special(r, c))
            return false;
    }
    return true;
}

static bool is_group(const config *c) {
    bool known = false;
    for (size_t i = 0; i < GROUPED; i++)
        known |= strcmp(grouped[i].group, c->key) == 0;
    return known && c->kind == CONFIG_OBJECT;
}

static bool read_key(reading *r, const config *c) {
    static const char *const none[] = {"config", "help", "version", NULL};
    char *name = tool_copy(c->key);
    for (char *p = name; *p; p++)
        *p = *p == '_' ? '-' : *p;
    const option *o = args_option(r->t->args.verb, name);
    for (size_t i = 0; none[i]; i++)
        if (strcmp(none[i], name) == 0)
            o = NULL;
    free(name);
    if (is_group(c))
        return read_group(r, c);
    return o ? give(r, o, c) : unknown(r, c, NULL);
}

int config_options(tool *t) {
    reading r = {.t = t, .file = args_value(&t->args, "config")};
    config c = {0};
    void *data;
    size_t size;
    if (!r.file)
        return EXIT_OK;
    t->json = args_has(&t->args, "json");
    int code = tool_read_all(t, r.file, &data, &size);
    if (code)
        return code;
    if (!config_parse(data, size, &c, &r.problem))
        code = tool_fail(t, QSIM_E_FORMAT, "%s: %s", r.file, r.problem.data);
    for (size_t i = c.count; i-- > 0 && code == EXIT_OK;)
        if (!read_key(&r, &c.items[i]))
            code = tool_usage(t, r.hint.data, "%s: %s", r.file, r.problem.data);
    config_free(&c);
    free(data);
    text_free(&r.problem);
    text_free(&r.hint);
    return code;
}
