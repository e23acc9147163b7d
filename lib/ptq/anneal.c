/* SPDX-License-Identifier: MIT */
/*
 * Percentiles of activation ranges by simulated annealing. A move changes how much is cut off one
 * tensor; the score decides. Seeded, and with an own logarithm: the same walk on every machine as
 * long as the scores are the same.
 */
#include <math.h>

#include "ptq/search.h"

#define HOT       0.5 /* temperatures in points of the score, from the first step to the last */
#define COLD      0.02
#define LEAST_CUT 1e-4 /* percent */
#define MOST_CUT  10.0

typedef struct walk {
    qs_search *s;
    int32_t *tensors; /* indices in the calibration of those that have a scale */
    size_t tensor_count;
    double *now, *next; /* percentiles of all calibrated tensors */
    double *kept;       /* of the best so far */
    double score;       /* of `now` */
    uint64_t random;
} walk;

static uint32_t draw(walk *w) {
    w->random ^= w->random >> 12;
    w->random ^= w->random << 25;
    w->random ^= w->random >> 27;
    return (uint32_t)((w->random * 2685821657736338717ull) >> 32);
}

/* In (0, 1). */
static double draw_fraction(walk *w) {
    return ((double)draw(w) + 0.5) / 4294967296.0;
}

static void copy_all(const walk *w, double *to, const double *from) {
    memcpy(to, from, w->s->c->count * sizeof(*to));
}

static void set_all(const walk *w, double *to, double percentile) {
    for (size_t i = 0; i < w->s->c->count; i++)
        to[i] = percentile;
}

/* Tensors whose ranges become scales. */
static int find_tensors(walk *w) {
    qs_search *s = w->s;
    qs_quantizer q;
    qsim_model *m;
    int code = qs_model_derive(s->prepared, &m, s->error);
    if (code)
        return code;
    code = qs_quantizer_init(&q, m, s->c, &s->base, s->error);
    if (!code)
        code = qs_activation_choose(&q);
    for (size_t i = 0; i < q.value_count && !code; i++) {
        int32_t index;
        if (q.activations[i].quantized && q.activations[i].root == (qs_id)i &&
            qs_calibration_find(s->c, q.g->values[i].name, &index))
            w->tensors[w->tensor_count++] = index;
    }
    qs_quantizer_free(&q);
    qsim_model_free(m);
    return code;
}

/* Sets percentiles in the recipe. */
static int set_percentiles(const walk *w, const double *percentiles) {
    qs_search *s = w->s;
    int code = QSIM_OK;
    for (size_t i = 0; i < w->tensor_count && !code; i++) {
        const char *name = s->c->tensors[w->tensors[i]].name;
        const qsim_recipe_entry e = {.kind = QSIM_RECIPE_TENSOR,
                                     .dtype = s->base.activation_type,
                                     .symmetric = s->base.activation_symmetric != 0,
                                     .flags = QSIM_RECIPE_METHOD,
                                     .method = QSIM_METHOD_PERCENTILE,
                                     .percentile = percentiles[w->tensors[i]]};
        code = qs_recipe_put(s->recipe, &e, name, s->error);
    }
    return code;
}

static int score_of(const walk *w, const double *percentiles, double *score) {
    int code = set_percentiles(w, percentiles);
    return code ? code : qs_search_score(w->s, score);
}

static double limit(const walk *w) {
    double drop = w->s->options.max_drop > 0 ? w->s->options.max_drop : 2;
    return w->s->options.float_score - drop;
}

static void keep(walk *w, const double *percentiles, double score) {
    if (!isnan(w->s->best) && score <= w->s->best)
        return;
    w->s->best = score;
    copy_all(w, w->kept, percentiles);
}

/*
 * Where the walk begins: at the start percentile for all, or, where that falls below the limit, at
 * the first of some wider ones that does not. If none does, the best of them is the answer.
 */
static int begin(walk *w, bool *found) {
    double wider[4] = {99, 99.9, 99.99, 100};
    if (w->s->options.start_percentile > 0)
        wider[0] = w->s->options.start_percentile;
    *found = false;
    for (int32_t i = 0; i < 4 && !*found; i++) {
        double score;
        if (i > 0 && wider[i] <= wider[0])
            continue;
        set_all(w, w->now, wider[i]);
        int code = score_of(w, w->now, &score);
        if (code)
            return code;
        keep(w, w->now, score);
        w->score = score;
        *found = score >= limit(w);
    }
    return QSIM_OK;
}

/* Halves or doubles what is cut off one tensor, or stops cutting. */
static void move(walk *w) {
    static const double factors[4] = {0.25, 0.5, 2, 4};
    int32_t tensor = w->tensors[draw(w) % w->tensor_count];
    uint32_t kind = draw(w) % 9;
    double cut = 100 - w->now[tensor];
    copy_all(w, w->next, w->now);
    if (kind == 8 || cut <= 0)
        cut = kind == 8 ? 0 : 0.01 * factors[kind % 4];
    else
        cut *= factors[kind % 4];
    if (cut > 0)
        cut = cut < LEAST_CUT ? LEAST_CUT : cut > MOST_CUT ? MOST_CUT : cut;
    w->next[tensor] = 100 - cut;
}

static int walk_on(walk *w) {
    int32_t steps = w->s->options.steps ? w->s->options.steps : 200;
    for (int32_t i = 0; i < steps; i++) {
        double score;
        int code = qs_search_progress(w->s, "annealing", (size_t)i, (size_t)steps);
        if (code)
            return code;
        move(w);
        code = score_of(w, w->next, &score);
        if (code)
            return code;
        double gain = score - w->score;
        double temperature = HOT + (COLD - HOT) * i / steps;
        bool accept = gain >= 0 || qs_logarithm(draw_fraction(w)) < gain / temperature;
        if (!accept || !(score >= limit(w)))
            continue;
        copy_all(w, w->now, w->next);
        w->score = score;
        keep(w, w->now, score);
    }
    return QSIM_OK;
}

int qs_search_anneal(qs_search *s) {
    walk w = {.s = s, .random = s->options.seed * 2654435769u + 88172645463325252u};
    qsim_ctx *ctx = s->prepared->ctx;
    size_t count = s->c->count + 1;
    bool found = false;
    s->best = NAN;
    w.tensors = qs_alloc(ctx, count, sizeof(*w.tensors));
    w.now = qs_alloc(ctx, count, sizeof(*w.now));
    w.next = qs_alloc(ctx, count, sizeof(*w.next));
    w.kept = qs_alloc(ctx, count, sizeof(*w.kept));
    int code = w.tensors && w.now && w.next && w.kept
                   ? find_tensors(&w)
                   : qs_fail(s->error, QSIM_E_NOMEM, "search: out of memory");
    if (w.random == 0)
        w.random = 1;
    if (!code)
        code = begin(&w, &found);
    if (!code && found && w.tensor_count > 0)
        code = walk_on(&w);
    if (!isnan(s->best)) {
        int set = set_percentiles(&w, w.kept);
        code = code ? code : set;
    }
    qs_free(ctx, w.tensors);
    qs_free(ctx, w.now);
    qs_free(ctx, w.next);
    qs_free(ctx, w.kept);
    return code;
}
