/* SPDX-License-Identifier: MIT */
/* Command lines to try after a result that is not good: variations of the one that was given. */
#include <stdlib.h>
#include <string.h>

#include "quantizing.h"
#include "verbs.h"

static bool is_one_of(const char *name, const char *const *names) {
    for (; *names; names++)
        if (strcmp(name, *names) == 0)
            return true;
    return false;
}

/* The command line without some options and with `more` at its end. */
static void repeat(const tool *t, const verb *v, const char *const *without, const char *more,
                   text *out) {
    text_printf(out, "qsim %s", v->name);
    for (size_t i = 0; i < t->args.operand_count; i++)
        text_shell_word(out, t->args.operands[i]);
    for (size_t i = 0; i < t->args.given_count; i++) {
        const option *o = t->args.given[i].option;
        if (is_one_of(o->name, without) || strcmp(o->name, "force") == 0 ||
            !args_option(v, o->name))
            continue;
        text_printf(out, " --%s", o->name);
        if (t->args.given[i].value)
            text_shell_word(out, t->args.given[i].value);
    }
    text_printf(out, "%s%s -f", *more ? " " : "", more);
}

static void add_of(next_steps *n, const tool *t, const verb *v, const char *const *without,
                   const char *more) {
    text line = {0};
    if (n->count == NEXT_MOST)
        return;
    repeat(t, v, without, more, &line);
    n->lines[n->count++] = line.data;
}

static void add(next_steps *n, const tool *t, const char *const *without, const char *more) {
    add_of(n, t, &verb_quantize, without, more);
}

static bool has_warning(const judging *j, const char *kind) {
    const char *found;
    for (int32_t i = 0; qsim_verdict_warning(j->verdict, i, &found); i++)
        if (strcmp(found, kind) == 0)
            return true;
    return false;
}

/* Adds a line with another --preprocess: `more` in place of the parts `without`. */
static void add_values(next_steps *n, const tool *t, const char *const *without, const char *more) {
    static const char *const own[] = {"preprocess", NULL};
    const char *s = args_value(&t->args, "preprocess");
    text line = {0}, word = {0};
    while (s && *s) {
        const size_t length = strcspn(s, ",");
        bool kept = true;
        for (size_t i = 0; without[i]; i++)
            kept = kept && strncmp(s, without[i], strlen(without[i])) != 0;
        if (kept)
            text_printf(&word, "%.*s,", (int)length, s);
        s += length + (s[length] == ',');
    }
    text_puts(&word, more);
    text_puts(&line, "--preprocess");
    text_shell_word(&line, word.data);
    add(n, t, own, line.data);
    text_free(&word);
    text_free(&line);
}

/* Are means and deviations given, by name or by a preset (no "=", first in the list)? */
static bool has_means(const char *s) {
    return s && (strstr(s, "mean=") || strstr(s, "std=") || strcspn(s, "=") >= strcspn(s, ","));
}

/* Adds lines with more samples, or other ones, where the samples say too little. */
static bool add_samples(next_steps *n, const tool *t, const judging *j) {
    static const char *const limit[] = {"limit", NULL};
    static const char *const data[] = {"data", "limit", "skip", "shape", NULL};
    const bool one = has_warning(j, "one-sample");
    if (!one && !j->made_up && !has_warning(j, "constant-input"))
        return false;
    if (one && !j->made_up && args_has(&t->args, "limit"))
        add(n, t, limit, "");
    else
        add(n, t, data, one && !j->made_up ? "--data MORE_SAMPLES" : "--data REAL_SAMPLES");
    return true;
}

/* Is the first input pictures of three colours? */
static bool takes_colours(const qsim_model *m) {
    qsim_value_info v = {.struct_size = sizeof(v)};
    return qsim_model_input_count(m) > 0 && qsim_model_input(m, 0, &v) == QSIM_OK && v.rank == 4 &&
           (v.dims[1] == 3 || v.dims[3] == 3);
}

/*
 * Adds lines with other ranges of the input than one unknown to the model: ImageNet's, 0…1, 0…255,
 * -1…1.
 */
static void add_input(next_steps *n, const tool *t, const quantizing *q, const judging *j) {
    static const char *const imagenet = "scale=1/255,mean=0.485:0.456:0.406,std=0.229:0.224:0.225";
    static const char *const centred = "scale=1/255,mean=0.5,std=0.5";
    static const char *const scale[] = {"scale=", NULL};
    static const char *const values[] = {"scale=", "mean=", "std=", NULL};
    const char *how = args_value(&t->args, "preprocess"), *spec = args_value(&t->args, "data");
    const bool array = spec && (strstr(spec, ".npy") || strstr(spec, ".npz") ||
                                strstr(spec, ".csv")); /* their scale is unknown */
    const char *plain = has_means(how) ? ",mean=0,std=1" : "";
    qsim_verdict_input_info in = {.struct_size = sizeof(in)};
    text more = {0};
    if (qsim_verdict_input(j->verdict, &in))
        return;
    if (in.greatest > 16 && in.least >= 0) {
        add_values(n, t, scale, "scale=1/255");
        return;
    }
    const bool is_centred = in.least < 0 && in.least >= -1 && in.greatest <= 1;
    if (!array && in.least < 0 && !is_centred)
        add_values(n, t, values, centred);
    if (!array && (is_centred || (in.least >= 0 && in.greatest <= 1)) && takes_colours(q->model))
        add_values(n, t, values, imagenet);
    if (!array && in.least < 0) {
        text_printf(&more, "scale=1/255%s", plain);
        add_values(n, t, values, more.data);
    }
    if (!array && in.greatest <= 16) {
        more.size = 0;
        text_printf(&more, "scale=1%s", plain);
        add_values(n, t, values, more.data);
    }
    if (!array && in.least >= 0)
        add_values(n, t, values, centred);
    text_free(&more);
}

void next_steps_find(const tool *t, const quantizing *q, const judging *j, next_steps *n) {
    static const char *const scheme[] = {"weight-scheme", NULL};
    static const char *const for_auto[] = {"set",      "recipe",     "save-recipe",
                                           "method",   "percentile", "search",
                                           "held-out", "labels",     NULL};
    static const char *const method[] = {"method", "percentile", "equalize", "fallback", NULL};
    static const char *const none[] = {NULL};
    const int32_t grade = qsim_verdict_grade(j->verdict);
    int32_t worst = QSIM_GRADE_NONE;
    for (int32_t i = 0; i < qsim_verdict_output_count(j->verdict); i++) {
        qsim_verdict_info o = {.struct_size = sizeof(o)};
        if (!qsim_verdict_output(j->verdict, i, &o) && o.grade > worst)
            worst = o.grade;
    }
    if (grade <= QSIM_GRADE_GOOD)
        return;
    /* If the data are at fault, other options do not help. */
    qsim_verdict_input_info in = {.struct_size = sizeof(in)};
    const bool strange = !qsim_verdict_input(j->verdict, &in) && in.fits < 0;
    if (add_samples(n, t, j))
        return;
    if (strange)
        add_input(n, t, q, j);
    if (strange || worst <= QSIM_GRADE_GOOD)
        return;
    if (has_warning(j, "raw-pixels"))
        add_input(n, t, q, j);
    if (args_has(&t->args, "weight-scheme") && q->options.weight_scheme)
        add(n, t, scheme, "--weight-scheme channel");
    if (q->options.mode != QSIM_MODE_STATIC)
        return;
    const bool calibrated = args_has(&t->args, "calibration"),
               searched = args_has(&t->args, "search");
    if (q->options.method == QSIM_METHOD_MINMAX && !q->chooses && !searched && !calibrated)
        add(n, t, method, "--method auto --equalize --fallback");
    else if (!searched && !args_has(&t->args, "fallback"))
        add(n, t, none, "--fallback");
    if (!calibrated)
        add_of(n, t, &verb_auto, for_auto, "");
}

void next_steps_free(next_steps *n) {
    for (size_t i = 0; i < n->count; i++)
        free(n->lines[i]);
}
