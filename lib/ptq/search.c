/* SPDX-License-Identifier: MIT */
/* qsim_search: runs methods one after the other, each of which changes a recipe. */
#include "base/ctx.h"
#include "ptq/no_memory.h"
#include "ptq/search.h"

#include <math.h>

/* A new method needs a row here. */
static const struct method {
    const char *name;
    bool needs_inputs, chooses; /* chooses: changes are kept only if they surely lower the loss */
    int (*run)(qs_search *s);
} methods[] = {
    {"greedy", false, false, qs_search_greedy},   {"anneal", false, false, qs_search_anneal},
    {"ranges", false, true, qs_search_ranges},    {"auto", true, true, qs_search_auto},
    {"refine", true, false, qs_search_refine},    {"equalize", true, false, qs_search_equalize},
    {"smooth", true, false, qs_search_smooth},    {"correction", false, true, qs_search_correction},
    {"fallback", true, true, qs_search_fallback},
};

const char *qsim_search_method(int32_t index) {
    return index >= 0 && index < (int32_t)QS_COUNT(methods) ? methods[index].name : NULL;
}

int32_t qsim_search_method_needs_inputs(int32_t index) {
    return qsim_search_method(index) && methods[index].needs_inputs;
}

static int cancelled(const qs_search *s) {
    return qs_fail(s->error, QSIM_E_CANCELLED, "%s: search cancelled", s->prepared->name);
}

int qs_search_begin(const qs_search *s, qs_quantizer *q) {
    qsim_model *m;
    *q = (qs_quantizer){.ctx = s->prepared->ctx, .g = s->prepared->graph};
    int code = qs_model_derive(s->prepared, &m, s->error);
    if (!code)
        code = qs_quantizer_init(q, m, m->graph, s->c, &s->base, s->error);
    q->means = s->c;
    return code;
}

void qs_search_end(qs_quantizer *q) {
    qsim_model *m = q->model;
    qs_quantizer_free(q);
    qsim_model_free(m);
}

int qs_search_progress(qs_search *s, const char *what, size_t done, size_t total) {
    s->judge.doing = what;
    s->judge.done = done;
    s->judge.total = total;
    if (s->options.progress && s->options.progress(s->options.progress_user, what, done, total))
        return cancelled(s);
    return qs_go_on(s->prepared->ctx, s->prepared->name, s->error);
}

bool qs_search_is_over(const qs_search *s) {
    return s->end && qs_clock_ns() >= s->end;
}

/* ---- candidates ---- */

static bool is_met(const qs_search *s, const qsim_judgement *of) {
    const double most = s->options.max_drop > 0 ? s->options.max_drop : 1;
    return qs_judge_drop(&s->judge, of) <= most;
}

bool qs_search_is_met(const qs_search *s) {
    return is_met(s, &s->judgement);
}

/* The results of a candidate. */
typedef struct candidate {
    qsim_model *model;
    qsim_judgement judgement;
    double score, microseconds;
    int64_t bytes;
    bool met;
} candidate;

static qs_search_state state_of(const qs_search *s) {
    return (qs_search_state){.recipe = s->best_recipe,
                             .score = s->best,
                             .microseconds = s->microseconds,
                             .judgement = s->judgement,
                             .bytes = s->bytes,
                             .floats = s->floats,
                             .mode = s->mode};
}

/*
 * Whether a candidate is better. Differences within 1 % of bytes and 5 % of measured times do not
 * count.
 */
static bool is_better(const qs_search *s, const candidate *c, const qs_search_state *than) {
    const double size = (double)c->bytes / (double)than->bytes;
    const double time = c->microseconds / than->microseconds;
    const bool met = s->judge.batches > 0 && is_met(s, &than->judgement);
    if (isnan(than->score))
        return true;
    const bool accuracy = s->options.goal == QSIM_GOAL_ACCURACY;
    /* If max_drop is given, meeting it counts more than the loss. */
    if (!s->options.score && c->met != met && (!accuracy || s->options.max_drop > 0))
        return c->met;
    if (!s->options.score && !accuracy) {
        const double ratio = s->options.goal == QSIM_GOAL_SIZE ? size : time;
        const double least = s->options.goal == QSIM_GOAL_SIZE ? 0.99 : 0.95;
        if (c->met && (ratio < least || ratio > 1 / least))
            return ratio < 1;
    }
    return c->score > than->score;
}

/* Copies a recipe; *copy: NULL after an error. */
static int copy_recipe(const qs_search *s, const qsim_recipe *recipe, qsim_recipe **copy) {
    int code = qsim_recipe_create(s->prepared->ctx, copy, s->error);
    if (!code && recipe)
        code = qsim_recipe_merge(*copy, recipe, s->error);
    if (code) {
        qsim_recipe_free(*copy);
        *copy = NULL;
    }
    return code;
}

static int keep(qs_search *s, const candidate *c) {
    qsim_recipe *copy = NULL;
    int code = copy_recipe(s, s->recipe, &copy);
    if (code)
        return code;
    qsim_recipe_free(s->best_recipe);
    s->best_recipe = copy;
    s->best = c->score;
    s->judgement = c->judgement;
    s->bytes = c->bytes;
    s->microseconds = c->microseconds;
    s->mode = s->base.mode;
    qs_judge_copy(&s->judge, QS_LOSSES_LAST, QS_LOSSES_BEST);
    return QSIM_OK;
}

static int report(qs_search *s, const candidate *c, const char *what, bool kept) {
    const qsim_attempt a = {.struct_size = sizeof(a),
                            .what = what,
                            .judgement = &c->judgement,
                            .model = c->model,
                            .recipe = s->recipe,
                            .bytes = c->bytes,
                            .microseconds = c->microseconds,
                            .floats = s->floats,
                            .kept = kept,
                            .met = c->met,
                            .mode = s->base.mode};
    return s->options.attempt(s->options.attempt_user, &a) ? cancelled(s) : QSIM_OK;
}

static int judge(qs_search *s, candidate *c, bool closely) {
    int code = QSIM_OK;
    if (s->options.score) {
        if (s->options.score(s->options.score_user, c->model, &c->score))
            code = cancelled(s);
    } else {
        code = qs_judge_model(&s->judge, c->model, &c->judgement, s->error);
        c->score = -c->judgement.loss;
        s->met = c->met = !code && is_met(s, &c->judgement);
    }
    if (code || !closely || s->judge.batches == 0)
        return code;
    c->bytes = qsim_model_bytes(c->model);
    if (c->bytes < 0)
        return qs_fail(s->error, (int)c->bytes, "search: a candidate's size: %s",
                       qsim_error_text((int)c->bytes));
    return s->options.cost ? qs_units_cost(s, &c->microseconds)
                           : qs_time_model(&s->judge, c->model, &c->microseconds, s->error);
}

static bool is_kept(const qs_search *s, const candidate *c) {
    const qs_search_state state = state_of(s);
    const bool proves = !s->options.score && isfinite(s->best + c->score);
    if (proves && s->proof < 0 && s->judge.samples > 1)
        return !qs_judge_is_sure(&s->judge, QS_LOSSES_BEST, QS_LOSSES_LAST, -s->proof);
    if (proves && s->proof > 0 &&
        !qs_judge_is_sure(&s->judge, QS_LOSSES_LAST, QS_LOSSES_BEST, s->proof))
        return false;
    return is_better(s, c, &state);
}

static int try_candidate(qs_search *s, const char *what, bool closely, double *score) {
    candidate c = {.microseconds = NAN, .judgement = {.struct_size = sizeof(c.judgement)}};
    int code = qs_quantize_prepared(s->prepared, s->c, &s->base, &c.model, s->error);
    if (code)
        return code;
    code = judge(s, &c, closely || s->options.goal != QSIM_GOAL_ACCURACY);
    const qs_search_state state = state_of(s);
    const bool kept = !code && (closely ? is_kept(s, &c) : is_better(s, &c, &state));
    const bool reported = kept && (!s->rival || is_better(s, &c, s->rival));
    if (kept)
        code = keep(s, &c);
    if (!code && what && s->options.attempt && !s->quiet)
        code = report(s, &c, what, reported);
    if (!code && score)
        *score = c.score;
    qsim_model_free(c.model);
    return code;
}

int qs_search_try(qs_search *s, const char *what, double *score) {
    return try_candidate(s, what, what != NULL, score);
}

int qs_search_step(qs_search *s, const char *what, double *score) {
    return try_candidate(s, what, false, score);
}

int qs_search_stop(qs_search *s, qs_search_state *before, const char *what, double microseconds) {
    candidate c = {.judgement = s->judgement, .microseconds = microseconds};
    int code = qs_search_return(s);
    if (!code && s->options.attempt)
        code = qs_quantize_prepared(s->prepared, s->c, &s->base, &c.model, s->error);
    c.bytes = c.model ? qsim_model_bytes(c.model) : -1;
    c.met = is_met(s, &c.judgement);
    if (c.bytes >= 0)
        (void)report(s, &c, what, true);
    else if (s->options.attempt)
        qs_search_restore(s, before);
    qsim_model_free(c.model);
    return cancelled(s);
}

int qs_search_save(const qs_search *s, qs_search_state *out) {
    *out = state_of(s);
    return copy_recipe(s, s->best_recipe, &out->recipe);
}

void qs_search_restore(qs_search *s, qs_search_state *from) {
    qsim_recipe_free(s->best_recipe);
    s->best_recipe = from->recipe;
    s->best = from->score;
    s->microseconds = from->microseconds;
    s->judgement = from->judgement;
    s->bytes = from->bytes;
    s->floats = from->floats;
    s->mode = from->mode;
    from->recipe = NULL;
}

bool qs_search_is_better(const qs_search *s, const qs_search_state *than) {
    const candidate c = {.judgement = s->judgement,
                         .score = s->best,
                         .microseconds = s->microseconds,
                         .bytes = s->bytes,
                         .met = qs_search_is_met(s)};
    return is_better(s, &c, than);
}

/* Makes a copy of a recipe that of the next candidate, in a mode. */
static int take(qs_search *s, const qsim_recipe *recipe, int32_t mode) {
    qsim_recipe *copy = NULL;
    int code = copy_recipe(s, recipe, &copy);
    if (code)
        return code;
    qsim_recipe_free(s->recipe);
    s->base.recipe = s->recipe = copy;
    s->base.mode = mode;
    return QSIM_OK;
}

int qs_search_return(qs_search *s) {
    return take(s, s->best_recipe, s->mode);
}

int qs_search_restart(qs_search *s, int32_t mode) {
    return take(s, s->given, mode);
}

/* ---- methods ---- */

/* The method whose name begins the list; *list: the rest. */
static const struct method *next_method(const char **list) {
    const char *name = *list;
    size_t length = 0;
    while (name[length] && name[length] != ',')
        length++;
    *list += length + (name[length] == ',');
    for (size_t i = 0; i < QS_COUNT(methods); i++)
        if (strlen(methods[i].name) == length && memcmp(methods[i].name, name, length) == 0)
            return &methods[i];
    return NULL;
}

static int check_options(const qs_search *s) {
    const qsim_search_options *o = &s->options;
    const bool inputs = o->inputs && o->input_count > 0;
    if (o->bits & ~(QSIM_BITS_FLOAT | QSIM_BITS_4 | QSIM_BITS_8 | QSIM_BITS_16 | QSIM_BITS_DYNAMIC |
                    QSIM_BITS_WEIGHTS))
        return qs_fail(s->error, QSIM_E_VERSION, "search: bits that this version does not know");
    if (o->steps < 0 || o->start_percentile < 0 || o->start_percentile > 100 || o->max_drop < 0 ||
        o->inputs_per_batch < 0 || o->goal < 0 || o->goal > QSIM_GOAL_LATENCY || o->seconds < 0)
        return qs_fail(s->error, QSIM_E_ARGUMENT, "search: an option is out of range");
    for (const char *list = o->methods ? o->methods : ""; *list;) {
        const struct method *m = next_method(&list);
        if (!m)
            return qs_fail(s->error, QSIM_E_ARGUMENT, "search: '%s' names a method that is unknown",
                           o->methods);
        if (m->needs_inputs && (!inputs || o->score))
            return qs_fail(s->error, QSIM_E_ARGUMENT, "search: %s needs inputs, and %s", m->name,
                           "no score function");
        if (!o->score && !inputs)
            return qs_fail(s->error, QSIM_E_ARGUMENT, "search: %s needs inputs or a score function",
                           m->name);
    }
    return QSIM_OK;
}

/*
 * Runs the methods. The configuration of the options is the first candidate, so that the result is
 * never worse.
 */
static int run_methods(qs_search *s) {
    const bool scored = s->options.score || s->judge.batches > 0;
    int code = scored ? qs_search_try(s, "as the options say", NULL) : QSIM_OK;
    for (const char *list = s->options.methods ? s->options.methods : ""; *list && !code;) {
        const struct method *m = next_method(&list);
        s->proof = m->chooses ? QS_SURE : 0;
        code = m->run(s);
        int returned = code && code != QSIM_E_CANCELLED ? QSIM_OK : qs_search_return(s);
        code = code ? code : returned;
    }
    return code;
}

int qs_search_open(qs_search *s, const qsim_model *model, const qsim_calibration *c,
                   const qsim_quantize_options *base, const qsim_search_options *options,
                   qsim_error *error) {
    qsim_model *prepared = NULL;
    *s = (qs_search){.c = c, .best = NAN, .microseconds = NAN, .error = error};
    int code = QS_OPTIONS(s->options, options, error);
    if (!code)
        code = qs_quantizer_options(base, &s->base, error);
    if (!code)
        code = check_options(s);
    if (!code)
        code = qs_calibration_check(c, model, error);
    if (!code)
        code = qs_recipe_check(s->base.recipe, model, error);
    if (!code)
        code = qs_ptq_prepared(model, c, &prepared, error);
    if (code)
        return code;
    s->prepared = prepared;
    s->mode = s->base.mode;
    s->given = s->base.recipe;
    s->base.progress = NULL; /* a candidate's progress would hide that of the search */
    s->base.decided = NULL;
    if (s->options.seconds > 0)
        s->end = qs_clock_ns() + (uint64_t)(qs_min(s->options.seconds, 1e9) * 1e9);
    code = qsim_recipe_create(prepared->ctx, &s->recipe, error);
    if (!code && s->base.recipe)
        code = qsim_recipe_merge(s->recipe, s->base.recipe, error);
    s->base.recipe = s->recipe;
    if (!code && s->options.inputs && s->options.input_count > 0)
        code = qs_judge_open(&s->judge, prepared, &s->options, error);
    return code;
}

void qs_search_close(qs_search *s) {
    if (!s->prepared)
        return;
    qs_judge_close(&s->judge);
    qsim_recipe_free(s->recipe);
    qsim_recipe_free(s->best_recipe);
    qsim_model_free((qsim_model *)(uintptr_t)s->prepared);
}

int qsim_search(const qsim_model *model, const qsim_calibration *c,
                const qsim_quantize_options *base, const qsim_search_options *options,
                qsim_recipe *found, double *score, qsim_error *error) {
    qs_search s;
    qs_error_clear(error);
    if (!model || !c || !found)
        return qs_fail_missing(error, "search");
    int code = qs_search_open(&s, model, c, base, options, error);
    if (!code)
        code = run_methods(&s);
    /* The best recipe goes to the caller, also if the search ended early. */
    const qsim_recipe *best = s.best_recipe ? s.best_recipe : s.recipe;
    if (best && (!code || code == QSIM_E_CANCELLED)) {
        int merged = qsim_recipe_merge(found, best, code ? NULL : error);
        code = code ? code : merged;
    }
    if (score)
        *score = s.best;
    qs_search_close(&s);
    return qs_no_memory_in("search", code, error);
}
