/* SPDX-License-Identifier: MIT */
/*
 * The search `auto` tries one method after the other and keeps what judges better: ranges by other
 * methods; equalization between layers; GPTQ rounding and bias correction on the network's own
 * activations. Then it puts units in float or 16 bits, those first that gain most for their cost,
 * until max_drop is met, and last those that 8 bits make slower on this machine.
 */
#include <math.h>
#include <stdio.h>

#include "ptq/gram.h"
#include "ptq/search.h"

#define NO_LOSS     1e-6 /* below this loss there is nothing to gain */
#define SLOWER      1.05 /* ratio of times that counts as slower: two measurements differ by less */
#define LEAST_BYTES 64.0 /* with LEAST_US: bounds the worth of units that cost almost nothing */
#define LEAST_US    0.1

/* The worth of keeping a unit in float, by the goal. */
static double worth(const qs_search *s, const qs_unit *u) {
    const qsim_unit *t = &u->told;
    if (s->options.goal == QSIM_GOAL_SIZE)
        return t->loss_gained / fmax((double)(t->float_bytes - t->bytes), LEAST_BYTES);
    if (s->options.goal == QSIM_GOAL_LATENCY) {
        const double more = t->float_us - t->us;
        return t->loss_gained / (more > LEAST_US ? more : LEAST_US); /* NaN, too */
    }
    return t->loss_gained;
}

static void sort_by_worth(const qs_search *s, qs_unit *items, size_t count) {
    for (size_t i = 1; i < count; i++)
        for (size_t k = i; k > 0 && worth(s, &items[k]) > worth(s, &items[k - 1]); k--) {
            const qs_unit swap = items[k];
            items[k] = items[k - 1];
            items[k - 1] = swap;
        }
}

static size_t weight_units(const qs_units *u) {
    size_t count = 0;
    for (size_t i = 0; i < u->count; i++)
        count += u->items[i].kind == QS_KIND_WEIGHTS;
    return count;
}

/* Whether the search has reached its aim. */
static bool is_done(const qs_search *s, bool past_knee) {
    if (qs_search_is_over(s) || s->judgement.loss < NO_LOSS)
        return true;
    return qs_search_is_met(s) && (s->options.goal != QSIM_GOAL_ACCURACY || past_knee);
}

/* Keeps one more unit in float; s->best shows whether that helped. */
static int add_float(qs_search *s, const qs_unit *u) {
    char what[160];
    snprintf(what, sizeof(what), "'%.80s' in float, %d unit%s in all", u->name, (int)s->floats + 1,
             s->floats ? "s" : "");
    int code = qs_unit_set(s, u, true);
    s->floats++;
    return code ? code : qs_search_try(s, what, NULL);
}

/* Gives a unit's activations 16 bits, unless that does not help. */
static int add_wide(qs_search *s, const qs_unit *u) {
    char what[160];
    snprintf(what, sizeof(what), "'%.80s' with 16 bits of activations", u->name);
    int code = qs_unit_widen(s, u);
    if (!code)
        code = qs_search_try(s, what, NULL);
    return code ? code : qs_search_return(s);
}

static int32_t bits_of(const qs_search *s) {
    return s->options.bits ? s->options.bits : QSIM_BITS_FLOAT;
}

/*
 * Keeps units in float one after the other, measuring them together each time; a unit that does not
 * help goes back. At least one layer with weights stays in integers: a float model is no answer.
 * With 16 bits, which cost no bytes of weights, a unit is in float only where those do not help.
 */
static int add_precision(qs_search *s, qs_units *u) {
    const size_t knee = qs_units_sort(u->items, u->count);
    const bool wide = (bits_of(s) & QSIM_BITS_16) != 0,
               floats = (bits_of(s) & QSIM_BITS_FLOAT) != 0;
    size_t layers = weight_units(u);
    int code = qs_search_return(s);
    sort_by_worth(s, u->items, u->count);
    for (size_t i = 0; i < u->count && !code; i++) {
        const qs_unit *unit = &u->items[i];
        const double before = s->best;
        const bool weights = unit->kind == QS_KIND_WEIGHTS;
        if (is_done(s, i >= knee) || unit->told.loss_gained <= 0)
            break;
        code = qs_search_progress(s, unit->name, i, u->count);
        if (!code && wide)
            code = add_wide(s, unit);
        if (code || s->best > before || !floats || (weights && layers == 1))
            continue;
        code = add_float(s, unit);
        if (!code && s->best > before)
            layers -= weights;
        else if (!code) {
            code = qs_unit_set(s, unit, false);
            s->floats--;
        }
    }
    return code;
}

static bool is_float(const qs_search *s, const qs_unit *u) {
    const qsim_recipe_entry *e = qs_recipe_find(s->recipe, QSIM_RECIPE_LAYER, u->name);
    return e && e->action == QSIM_RECIPE_FLOAT;
}

/* Puts units back to integers, the least gain first, that max_drop does not need in float. */
static int return_to_integers(qs_search *s, qs_units *u) {
    int code = qs_search_return(s);
    (void)qs_units_sort(u->items, u->count);
    for (size_t i = u->count; i-- > 0 && !code && s->floats > 1 && !qs_search_is_over(s);) {
        char what[160];
        const qs_unit *unit = &u->items[i];
        const int64_t bytes = s->bytes;
        const double time = s->microseconds;
        if (!is_float(s, unit) || !qs_search_is_met(s))
            continue;
        snprintf(what, sizeof(what), "'%.80s' in 8 bits again", unit->name);
        s->floats--;
        code = qs_unit_set(s, unit, false);
        if (!code)
            code = qs_search_try(s, what, NULL);
        if (!code && s->bytes == bytes && s->microseconds == time) {
            s->floats++;
            code = qs_unit_set(s, unit, true);
        }
    }
    return code;
}

/* Keeps all units in float that are slower in integers, if that is better by the goal. */
static int keep_slower(qs_search *s, const qs_units *u) {
    const double best = s->best, time = s->microseconds;
    const int32_t floats = s->floats;
    int32_t count = 0;
    size_t layers = weight_units(u);
    char what[80];
    int code = qs_search_return(s);
    for (size_t i = 0; i < u->count && !code; i++) {
        const qs_unit *unit = &u->items[i];
        const bool weights = unit->kind == QS_KIND_WEIGHTS;
        if (is_float(s, unit) || !(unit->told.us > unit->told.float_us * SLOWER) ||
            (weights && layers == 1))
            continue;
        code = qs_unit_set(s, unit, true);
        layers -= weights;
        count++;
    }
    if (code || count == 0)
        return code;
    s->floats += count;
    snprintf(what, sizeof(what), "%d unit%s in float that 8 bits make slower, %d in all",
             (int)count, count == 1 ? "" : "s", (int)s->floats);
    code = qs_search_try(s, what, NULL);
    if (!code && s->best == best && s->microseconds == time)
        s->floats = floats;
    return code;
}

/* ---- four bits ---- */

/* The units whose weights can have 4 bits, those with the most weights first. */
static size_t list_narrow(qs_search *s, const qs_units *u, qs_unit *to, int *code) {
    qs_quantizer q;
    qsim_model *m;
    size_t count = 0;
    *code = qs_model_derive(s->prepared, &m, s->error);
    if (*code)
        return 0;
    *code = qs_quantizer_init(&q, m, s->c, &s->base, s->error);
    q.means = s->c;
    for (size_t i = 0; i < u->count && !*code; i++)
        for (size_t k = 0; k < q.layer_count; k++) {
            const qs_layer *l = &q.layers[k];
            if (strcmp(qs_node_label(q.g, l->node), u->items[i].name) != 0 ||
                is_float(s, &u->items[i]) || !qs_narrow_suits(&q, l) || !qs_narrow_fits(&q, l))
                continue;
            to[count] = u->items[i];
            to[count].form = (qs_weight_form){
                .dtype = QSIM_INT4,
                .scheme = QSIM_WEIGHT_CHANNEL_SYMMETRIC,
                .rounding = qs_gram_find(&q, l) ? QSIM_ROUNDING_GPTQ : QSIM_ROUNDING_NEAREST};
            to[count++].told.loss_gained = NAN;
        }
    qs_quantizer_free(&q);
    qsim_model_free(m);
    return count;
}

/* Sets the weights of the first `count` of them in 4 bits. Biases that were given are of 8. */
static int set_narrow(qs_search *s, const qs_unit *items, size_t count) {
    int code = QSIM_OK;
    for (size_t i = 0; i < count && !code; i++) {
        const qsim_recipe_entry *old = qs_recipe_find(s->recipe, QSIM_RECIPE_LAYER, items[i].name);
        qsim_recipe_entry e = {.kind = QSIM_RECIPE_LAYER};
        qs_recipe_form(&items[i].form, &e);
        if (old && old->bias_correction == QSIM_BIAS_CORRECTION_OFF)
            e.bias_correction = old->bias_correction;
        code = qs_recipe_put(s->recipe, &e, items[i].name, s->error);
    }
    return code;
}

/* Measures the loss of each unit alone, and sorts by loss per byte, the least first. */
static int sort_narrow(qs_search *s, qs_unit *items, size_t count) {
    int code = QSIM_OK;
    for (size_t i = 0; i < count && !code; i++) {
        qsim_judgement alone;
        code = qs_search_progress(s, items[i].name, i, count);
        if (!code)
            code = set_narrow(s, &items[i], 1);
        if (!code)
            code = qs_units_judge(s, &alone);
        if (code || qs_search_is_over(s))
            return code;
        items[i].told.loss_gained =
            (s->judgement.loss - alone.loss) / (double)(items[i].told.float_bytes + 1);
        code = qs_search_return(s);
    }
    (void)qs_units_sort(items, count);
    return code;
}

/* As many units as max_drop allows: all of them, or found by halving. */
static int add_narrow(qs_search *s, const qs_units *u) {
    qs_unit *items = qs_alloc(s->prepared->ctx, u->count + 1, sizeof(*items));
    int code = QSIM_OK;
    if (!items)
        return qs_fail(s->error, QSIM_E_NOMEM, "search: out of memory");
    const size_t count = list_narrow(s, u, items, &code);
    size_t left = count, done = 0;
    if (!code)
        code = qs_search_return(s);
    if (!code)
        code = sort_narrow(s, items, count);
    while (left > 0 && done + left <= count && !code && !qs_search_is_over(s)) {
        char what[80];
        const int64_t bytes = s->bytes;
        snprintf(what, sizeof(what), "weights of %d unit%s in 4 bits", (int)(done + left),
                 done + left == 1 ? "" : "s");
        code = set_narrow(s, items, done + left);
        if (!code)
            code = qs_search_try(s, what, NULL);
        done += !code && s->bytes < bytes ? left : 0;
        left /= 2;
        if (!code)
            code = qs_search_return(s);
    }
    qs_free(s->prepared->ctx, items);
    return code;
}

/* ---- the method ---- */

#define REFINED "refined: rounding and biases"

/*
 * Refinement counts as one attempt, not one per layer. It is judged by the loss alone, since the
 * model's size and time stay.
 */
static int refine(qs_search *s) {
    const double best = s->best, time = s->microseconds;
    const int32_t goal = s->options.goal;
    if (s->base.mode != QSIM_MODE_STATIC || s->base.no_bias_correction)
        return QSIM_OK;
    s->quiet = true;
    s->options.goal = QSIM_GOAL_ACCURACY;
    int code = qs_search_refine(s);
    s->quiet = false;
    s->options.goal = goal;
    if (code == QSIM_E_CANCELLED && s->best > best)
        return qs_search_stop(s, REFINED ", as far as it came", time);
    if (!code) /* else it would empty the error */
        code = qs_search_return(s);
    if (code || !(s->best > best))
        return code;
    const double refined = s->best;
    s->best = NAN; /* so that the attempt is reported as the best */
    code = qs_search_try(s, REFINED, NULL);
    if (code != QSIM_E_CANCELLED || !isnan(s->best))
        return code;
    s->best = refined;
    return qs_search_stop(s, REFINED, time);
}

/* The stages before any unit leaves 8 bits; `before`: what refinement began with. */
static int improve(qs_search *s, qs_standing *before) {
    int (*const stages[])(qs_search *) = {qs_search_ranges, qs_search_equalize, qs_search_smooth,
                                          refine};
    int code = QSIM_OK;
    for (size_t i = 0; i < QS_COUNT(stages) && !code; i++) {
        if (i > 0 && (qs_search_is_over(s) || is_done(s, false)))
            break;
        if (stages[i] == refine)
            code = qs_search_stand(s, before);
        if (!code)
            code = stages[i](s);
        if (!code)
            code = qs_search_return(s);
    }
    return code;
}

/* Gives units more bits, those first that gain most in the network as it is. */
static int raise_units(qs_search *s, qs_units *u) {
    const bool floats = (bits_of(s) & QSIM_BITS_FLOAT) != 0;
    size_t done;
    int code = qs_units_gains(s, u, !floats, s->judgement.loss, u->count, &done);
    return !code && done == u->count ? add_precision(s, u) : code;
}

static void copy_times(qs_units *to, const qs_units *from) {
    for (size_t i = 0; i < to->count; i++)
        for (size_t k = 0; k < from->count; k++)
            if (strcmp(to->items[i].name, from->items[k].name) == 0) {
                to->items[i].told.us = from->items[k].told.us;
                to->items[i].told.float_us = from->items[k].told.float_us;
            }
}

/*
 * Refined biases are those of a network in 8 bits: behind units in float they fit less, and each
 * unit gains little alone. So where max_drop is not met that way, units are raised again without
 * them, and the better of the two stays.
 */
static int raise_unrefined(qs_search *s, qs_standing *before, qs_units *u) {
    qs_standing refined;
    qs_units own = {0};
    int code = qs_search_stand(s, &refined);
    if (code)
        return code;
    qs_search_resume(s, before);
    s->rival = &refined;
    code = qs_search_return(s);
    if (!code)
        code = qs_units_find(s, &own);
    if (!code)
        copy_times(&own, u);
    if (!code)
        code = raise_units(s, &own);
    s->rival = NULL;
    const bool better = qs_search_beats(s, &refined);
    if (!better)
        qs_search_resume(s, &refined);
    qsim_recipe_free(refined.recipe);
    qs_units_free(s, better && !code ? u : &own);
    if (better && !code)
        *u = own;
    return code ? code : qs_search_return(s);
}

int qs_search_auto(qs_search *s) {
    const int32_t bits = bits_of(s);
    const bool floats = (bits & QSIM_BITS_FLOAT) != 0, size = s->options.goal == QSIM_GOAL_SIZE;
    qs_units u = {0};
    qs_standing before = {.score = NAN};
    int code = improve(s, &before);
    if (code || qs_search_is_over(s)) {
        qsim_recipe_free(before.recipe);
        return code;
    }
    const bool more = (bits & (QSIM_BITS_FLOAT | QSIM_BITS_16)) && !is_done(s, false),
               times = floats && !size;
    code = qs_units_find(s, &u);
    if (!code && times)
        code = qs_units_times(s, &u);
    const bool refined = s->best > before.score;
    if (!code && more)
        code = raise_units(s, &u);
    if (!code && more && refined && !qs_search_is_met(s) && !qs_search_is_over(s))
        code = raise_unrefined(s, &before, &u);
    if (!code && s->options.goal != QSIM_GOAL_ACCURACY && s->floats > 1)
        code = return_to_integers(s, &u);
    if (!code && size && (bits & QSIM_BITS_4) && !qs_search_is_over(s))
        code = add_narrow(s, &u);
    if (!code && times && !qs_search_is_over(s))
        code = keep_slower(s, &u);
    qs_units_free(s, &u);
    qsim_recipe_free(before.recipe);
    return code;
}
