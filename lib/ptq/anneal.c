/* SPDX-License-Identifier: MIT */
/*
 * Chooses percentiles of activation ranges by simulated annealing. It begins with the ranges that
 * the search began with, or with one percentile for all tensors if that has a better score. A move
 * changes the percentile of one tensor or restores its initial range, and is kept or undone by its
 * score. The generator is seeded and the logarithm is the library's: with equal scores the moves
 * are equal on every machine.
 */
#include <math.h>

#include "ptq/search.h"
#include "quant/observer.h"

#define LEAST_CUT 1e-4 /* percent */
#define MOST_CUT  10.0

typedef struct annealing {
    qs_search *s;
    int32_t *tensors; /* the tensors that have a scale, as indices in the calibration */
    size_t tensor_count;
    qsim_recipe_entry *initial; /* the entry of each of these tensors before the annealing */
    double *now, *next;         /* percentiles of these tensors; NaN: the initial range */
    double score;               /* of `now` */
    double hot, cold;           /* temperatures, from the first step to the last */
    uint64_t random;
} annealing;

static uint32_t draw(annealing *w) {
    w->random ^= w->random >> 12;
    w->random ^= w->random << 25;
    w->random ^= w->random >> 27;
    return (uint32_t)((w->random * 2685821657736338717ull) >> 32);
}

/* A random number in (0, 1). */
static double draw_fraction(annealing *w) {
    return ((double)draw(w) + 0.5) / 4294967296.0;
}

static void copy_all(const annealing *w, double *to, const double *from) {
    memcpy(to, from, w->tensor_count * sizeof(*to));
}

static void set_all(const annealing *w, double *to, double percentile) {
    for (size_t i = 0; i < w->tensor_count; i++)
        to[i] = percentile;
}

/* Saves the entry of each tensor, or the one that the options give it. */
static void save_entries(const annealing *w) {
    const qs_search *s = w->s;
    for (size_t i = 0; i < w->tensor_count; i++) {
        const char *name = s->c->tensors[w->tensors[i]].name;
        const qsim_recipe_entry *e = qs_recipe_find(s->recipe, QSIM_RECIPE_TENSOR, name);
        w->initial[i] = e ? *e : qs_search_method_entry(s, s->base.method, s->base.percentile);
    }
}

/* Scores a candidate with these percentiles; `tensor`: the name of the changed one. */
static int score_of(const annealing *w, const double *percentiles, const char *tensor,
                    double percentile, double *score) {
    char change[QS_CHANGE];
    int code = QSIM_OK;
    for (size_t i = 0; i < w->tensor_count && !code; i++) {
        const qsim_recipe_entry cut =
            qs_search_method_entry(w->s, QSIM_METHOD_PERCENTILE, percentiles[i]);
        code =
            qs_search_set_range(w->s, w->tensors[i], isnan(percentiles[i]) ? &w->initial[i] : &cut);
    }
    qs_search_name_cut(tensor, percentile, change);
    return code ? code : qs_search_step(w->s, change, score);
}

/* The lowest score that a move may lead to, if there is a score function and a float score. */
static double limit(const annealing *w) {
    const double drop = w->s->options.max_drop > 0 ? w->s->options.max_drop : 2;
    return w->s->options.score ? w->s->options.float_score - drop : -INFINITY;
}

static int begin(annealing *w) {
    const double wider[3] = {w->s->options.start_percentile, 99.9, 99.99};
    int code = QSIM_OK;
    set_all(w, w->now, NAN);
    w->score = w->s->best; /* of the first candidate, the configuration of the options */
    for (int i = 0; i < 3 && !code; i++) {
        double score;
        if (!(wider[i] > 0))
            continue;
        set_all(w, w->next, wider[i]);
        code = score_of(w, w->next, "all ranges", wider[i], &score);
        if (!code && score > w->score) {
            copy_all(w, w->now, w->next);
            w->score = score;
        }
    }
    /* In percent of accuracy, or as a part of the loss. */
    w->hot = w->s->options.score ? 0.5 : 0.1 * fabs(w->score);
    w->cold = w->hot / 25;
    return code;
}

/*
 * Changes how much is cut off the range of one tensor, or restores its initial range. Returns its
 * index.
 */
static uint32_t move(annealing *w) {
    static const double factors[4] = {0.25, 0.5, 2, 4};
    const uint32_t tensor = draw(w) % (uint32_t)w->tensor_count, kind = draw(w) % 9;
    double cut = 100 - w->now[tensor];
    copy_all(w, w->next, w->now);
    if (kind == 8) {
        w->next[tensor] = NAN;
        return tensor;
    }
    cut = (isnan(cut) || cut <= 0 ? 0.01 : cut) * factors[kind % 4];
    w->next[tensor] = 100 - (cut < LEAST_CUT ? LEAST_CUT : cut > MOST_CUT ? MOST_CUT : cut);
    return tensor;
}

static int anneal(annealing *w) {
    const int32_t steps = w->s->options.steps ? w->s->options.steps : 200;
    for (int32_t i = 0; i < steps && !qs_search_is_over(w->s); i++) {
        double score;
        int code = qs_search_progress(w->s, "annealing", (size_t)i, (size_t)steps);
        if (code)
            return code;
        const uint32_t moved = move(w);
        code =
            score_of(w, w->next, w->s->c->tensors[w->tensors[moved]].name, w->next[moved], &score);
        if (code)
            return code;
        const double gain = score - w->score;
        const double temperature = w->hot + (w->cold - w->hot) * i / steps;
        const bool accept = gain >= 0 || qs_logarithm(draw_fraction(w)) < gain / temperature;
        if (!accept || !(gain > 0 || score >= limit(w)))
            continue;
        copy_all(w, w->now, w->next);
        w->score = score;
    }
    return QSIM_OK;
}

int qs_search_anneal(qs_search *s) {
    annealing w = {.s = s, .random = s->options.seed * 2654435769u + 88172645463325252u};
    qsim_ctx *ctx = s->prepared->ctx;
    const size_t count = s->c->count + 1;
    w.tensors = qs_alloc(ctx, count, sizeof(*w.tensors));
    w.initial = qs_alloc(ctx, count, sizeof(*w.initial));
    w.now = qs_alloc(ctx, count, sizeof(*w.now));
    w.next = qs_alloc(ctx, count, sizeof(*w.next));
    int code = w.tensors && w.initial && w.now && w.next
                   ? qs_search_tensors(s, w.tensors, &w.tensor_count)
                   : QSIM_E_NOMEM;
    if (w.random == 0)
        w.random = 1;
    if (!code) {
        save_entries(&w);
        code = begin(&w);
    }
    if (!code && w.tensor_count > 0)
        code = anneal(&w);
    qs_free(ctx, w.tensors);
    qs_free(ctx, w.initial);
    qs_free(ctx, w.now);
    qs_free(ctx, w.next);
    return code;
}
