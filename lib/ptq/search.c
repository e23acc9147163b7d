/* SPDX-License-Identifier: MIT */
/* qsim_search: methods, one after the other, that each change a recipe. */
#include "ptq/search.h"

#include <math.h>

/* Adding a method touches its file and this table. */
static const struct method {
    const char *name;
    bool needs_inputs, needs_score;
    int (*run)(qs_search *s);
} methods[] = {
    {"greedy", true, false, qs_search_greedy},
    {"anneal", false, true, qs_search_anneal},
};

const char *qsim_search_method(int32_t index) {
    return index >= 0 && index < (int32_t)QS_COUNT(methods) ? methods[index].name : NULL;
}

int32_t qsim_search_method_needs_inputs(int32_t index) {
    return qsim_search_method(index) && methods[index].needs_inputs;
}

int qs_search_progress(const qs_search *s, const char *what, size_t done, size_t total) {
    if (s->options.progress && s->options.progress(s->options.progress_user, what, done, total))
        return qs_fail(s->error, QSIM_E_CANCELLED, "%s: search cancelled", s->prepared->name);
    return QSIM_OK;
}

int qs_search_score(qs_search *s, double *score) {
    qsim_model *m;
    int code = qs_quantize_prepared(s->prepared, s->c, &s->base, &m, s->error);
    if (code)
        return code;
    if (s->options.score(s->options.score_user, m, score))
        code = qs_fail(s->error, QSIM_E_CANCELLED, "%s: search cancelled", s->prepared->name);
    qsim_model_free(m);
    return code;
}

/* The method whose name begins the list; the list goes on after it. */
static const struct method *next_method(const char **list) {
    const size_t length = strcspn(*list, ",");
    const char *name = *list;
    *list += length + (name[length] == ',');
    for (size_t i = 0; i < QS_COUNT(methods); i++)
        if (strlen(methods[i].name) == length && memcmp(methods[i].name, name, length) == 0)
            return &methods[i];
    return NULL;
}

static int check_options(const qs_search *s) {
    const qsim_search_options *o = &s->options;
    if (o->reserved)
        return qs_fail(s->error, QSIM_E_VERSION, "search: a reserved option is set");
    if (o->steps < 0 || o->start_percentile < 0 || o->start_percentile > 100 || o->max_drop < 0)
        return qs_fail(s->error, QSIM_E_ARGUMENT, "search: an option is out of range");
    for (const char *list = o->methods ? o->methods : ""; *list;) {
        const struct method *m = next_method(&list);
        if (!m)
            return qs_fail(s->error, QSIM_E_ARGUMENT, "search: '%s' names a method that is unknown",
                           o->methods);
        if (m->needs_score && !o->score)
            return qs_fail(s->error, QSIM_E_ARGUMENT, "search: %s needs a score function", m->name);
        if (m->needs_inputs && (!o->inputs || o->input_count == 0))
            return qs_fail(s->error, QSIM_E_ARGUMENT, "search: %s needs inputs", m->name);
    }
    return QSIM_OK;
}

static int run_methods(qs_search *s) {
    int code = QSIM_OK;
    for (const char *list = s->options.methods ? s->options.methods : ""; *list && !code;) {
        const struct method *m = next_method(&list);
        code = m->run(s);
        if (!m->needs_score)
            s->best = NAN; /* what an earlier one scored has changed */
    }
    if (!code && isnan(s->best) && s->options.score)
        code = qs_search_score(s, &s->best);
    return code;
}

/* What was found goes to the caller, also where the search ended early. */
static int search(qs_search *s, qsim_recipe *found) {
    int code = qsim_recipe_create(s->prepared->ctx, &s->recipe, s->error);
    if (!code && s->base.recipe)
        code = qsim_recipe_merge(s->recipe, s->base.recipe, s->error);
    if (!code) {
        s->base.recipe = s->recipe;
        code = run_methods(s);
        if (!code || code == QSIM_E_CANCELLED) {
            int merged = qsim_recipe_merge(found, s->recipe, code ? NULL : s->error);
            code = code ? code : merged;
        }
    }
    qsim_recipe_free(s->recipe);
    return code;
}

int qsim_search(const qsim_model *model, const qsim_calibration *c,
                const qsim_quantize_options *base, const qsim_search_options *options,
                qsim_recipe *found, double *score, qsim_error *error) {
    qs_search s = {.c = c, .best = NAN, .error = error};
    qsim_model *prepared = NULL;
    qs_error_clear(error);
    if (!model || !c || !found)
        return qs_fail(error, QSIM_E_ARGUMENT, "search: an argument is missing");
    int code = QS_OPTIONS(s.options, options, error);
    if (!code)
        code = qs_quantizer_options(base, &s.base, error);
    if (!code)
        code = check_options(&s);
    if (!code)
        code = qs_calibration_check(c, model, error);
    if (!code)
        code = qs_recipe_check(s.base.recipe, model, error);
    if (!code)
        code = qs_ptq_prepared(model, c, &prepared, error);
    if (code)
        return code;
    s.prepared = prepared;
    s.base.progress = NULL; /* a candidate's own steps would drown those of the search */
    s.base.decided = NULL;
    code = search(&s, found);
    qsim_model_free(prepared);
    if (score)
        *score = s.best;
    return code;
}
