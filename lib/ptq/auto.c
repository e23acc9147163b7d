/* SPDX-License-Identifier: MIT */
/*
 * The search `auto` tries one method after the other and keeps the result if it is judged better:
 * ranges by other methods; equalization between layers; the few units in float that spoil the
 * result; GPTQ rounding and bias correction on the network's own activations. Then it keeps units
 * in float or 16 bits, those with the greatest gain for their cost first, until max_drop is met (if
 * it is not, once more from before refinement, then in other modes, then many at once), and at last
 * units that 8 bits make slower on this machine.
 */
#include <math.h>
#include <stdio.h>

#include "ptq/gram.h"
#include "ptq/search.h"

#define NO_LOSS     1e-6 /* a smaller loss counts as none */
#define SLOWER      1.05 /* ratio of times that counts as slower: two measurements differ by less */
#define LEAST_BYTES 64.0 /* with LEAST_US: bounds the worth of units that cost almost nothing */
#define LEAST_US    0.1

/* The gain of keeping a unit in float; per byte or microsecond if the goal is size or latency. */
static double worth(const qs_search *s, const qs_unit *u) {
    const qsim_unit *t = &u->result;
    if (s->options.goal == QSIM_GOAL_SIZE)
        return t->loss_gained / qs_max((double)(t->float_bytes - t->bytes), LEAST_BYTES);
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

/* Keeps one more unit in float; s->best changes if that is better. */
static int add_float(qs_search *s, const qs_unit *u) {
    char what[160];
    snprintf(what, sizeof(what), "'%.80s' in float, %d unit%s in all", u->name, (int)s->floats + 1,
             s->floats ? "s" : "");
    int code = qs_unit_set(s, u, true);
    s->floats++;
    return code ? code : qs_search_try(s, what, NULL);
}

/* Gives a unit's activations 16 bits, and undoes it if that is not better. */
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
 * Keeps units in float one after the other and judges all of them together each time; a unit
 * without gain is returned to integers. At least one layer with weights stays in integers, since
 * the result has to be quantized. 16 bits, which cost no bytes of weights, are tried before float.
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
        if (is_done(s, i >= knee) || unit->result.loss_gained <= 0)
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

/*
 * Keeps as many units in float at once as max_drop asks for, those with the greatest gain for their
 * cost first: a number found by bisection. For the goal ACCURACY the smallest model is the best,
 * too: the one with the least loss has all units in float.
 */
static int bisect_floats(qs_search *s, qs_units *u) {
    size_t least = 1, most = u->count, last = most;
    int32_t floats = s->floats;
    const int32_t goal = s->options.goal;
    int code = QSIM_OK;
    sort_by_worth(s, u->items, u->count);
    if (goal == QSIM_GOAL_ACCURACY)
        s->options.goal = QSIM_GOAL_SIZE;
    for (size_t i = 0; i < u->count; i++) /* a layer that stays in integers */
        last = u->items[i].kind == QS_KIND_WEIGHTS ? i : last;
    while (least < most && !code && !qs_search_is_over(s)) {
        const size_t count = (least + most) / 2;
        const double best = s->best;
        char what[80];
        s->floats = u->floats + (int32_t)(count - (last < count));
        snprintf(what, sizeof(what), "%d units in float at once", (int)s->floats);
        for (size_t i = 0; i < u->count && !code; i++)
            code = qs_unit_set(s, &u->items[i], i < count && i != last);
        if (!code)
            code = qs_search_try(s, what, NULL);
        floats = s->best < best || s->best > best ? s->floats : floats;
        if (s->met)
            most = count;
        else
            least = count + 1;
    }
    s->floats = floats;
    s->options.goal = goal;
    return code ? code : qs_search_return(s);
}

/*
 * If each of several units spoils the result as much as all of them, none gains by being in float
 * alone: many have to be in float at once. Gains do not show which ones: if there is time, the
 * losses of each unit alone in integers take their place.
 */
static int add_together(qs_search *s, qs_units *u) {
    int code = bisect_floats(s, u);
    if (!code)
        code = qs_units_alone(s, u, u->count);
    for (size_t i = 0; i < u->count && !code; i++) {
        if (isnan(u->items[i].result.loss_alone))
            return qs_search_return(s);
        u->items[i].result.loss_gained = u->items[i].result.loss_alone;
    }
    return code ? code : bisect_floats(s, u);
}

static bool is_float(const qs_search *s, const qs_unit *u) {
    const qsim_recipe_entry *e = qs_recipe_find(s->recipe, QSIM_RECIPE_LAYER, u->name);
    return e && e->action == QSIM_RECIPE_FLOAT;
}

/* Returns units to integers, the least gain first, as long as max_drop is met. */
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

/*
 * Keeps all units in float that are slower in integers, and undoes it if that is not better by the
 * goal.
 */
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
        if (is_float(s, unit) || !(unit->result.us > unit->result.float_us * SLOWER) ||
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

/* Lists the units whose weights can have 4 bits, those with the most weights first. */
static size_t list_narrow(qs_search *s, const qs_units *u, qs_unit *to, int *code) {
    qs_quantizer q;
    size_t count = 0;
    *code = qs_search_begin(s, &q);
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
            to[count++].result.loss_gained = NAN;
        }
    qs_search_end(&q);
    return count;
}

/*
 * Sets the weights of the first `count` units to 4 bits. Bias shifts in the recipe are dropped,
 * since they are for 8 bits.
 */
static int set_narrow(qs_search *s, const qs_unit *items, size_t count) {
    int code = QSIM_OK;
    for (size_t i = 0; i < count && !code; i++) {
        const qsim_recipe_entry *old = qs_recipe_find(s->recipe, QSIM_RECIPE_LAYER, items[i].name);
        qsim_recipe_entry e = {.kind = QSIM_RECIPE_LAYER};
        qs_recipe_form(&items[i].form, &e);
        if (old && old->bias_correction == QSIM_BIAS_CORRECTION_OFF)
            e.bias_correction = old->bias_correction;
        code = qs_recipe_put(s->recipe, &e, items[i].name);
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
        items[i].result.loss_gained =
            (s->judgement.loss - alone.loss) / (double)(items[i].result.float_bytes + 1);
        code = qs_search_return(s);
    }
    (void)qs_units_sort(items, count);
    return code;
}

/* Sets as many units to 4 bits as max_drop allows: all, or a number found by bisection. */
static int add_narrow(qs_search *s, const qs_units *u) {
    qs_unit *items = qs_alloc(s->prepared->ctx, u->count + 1, sizeof(*items));
    int code = QSIM_OK;
    if (!items)
        return QSIM_E_NOMEM;
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
 * Refinement is one attempt, not one for each layer. It is judged by the loss alone, since the
 * model's size and time do not change.
 */
static int refine(qs_search *s) {
    const double time = s->microseconds;
    const int32_t goal = s->options.goal;
    qs_search_state begun;
    if (s->base.mode != QSIM_MODE_STATIC || s->base.no_bias_correction)
        return QSIM_OK;
    int code = qs_search_save(s, &begun);
    if (code)
        return code;
    qs_judge_copy(&s->judge, QS_LOSSES_BEST, QS_LOSSES_BEGUN);
    s->quiet = true;
    s->options.goal = QSIM_GOAL_ACCURACY;
    code = qs_search_refine(s);
    s->quiet = false;
    s->options.goal = goal;
    const double refined = s->best;
    const bool found = refined > begun.score;
    bool sure = found && qs_judge_is_sure(&s->judge, QS_LOSSES_BEST, QS_LOSSES_BEGUN, QS_SURE);
    if (!code) /* it clears the error */
        code = qs_search_return(s);
    if (!sure) {
        qs_search_restore(s, &begun);
        qs_judge_copy(&s->judge, QS_LOSSES_BEGUN, QS_LOSSES_BEST);
    }
    const char *what = REFINED ", stopped early";
    if (!code && found) {
        what = REFINED;
        if (sure)
            s->best = NAN; /* so that the attempt is reported as the best */
        code = qs_search_try(s, what, NULL);
        if (isnan(s->best))
            s->best = refined;
        else
            sure = false; /* the attempt was reported */
    }
    if (code == QSIM_E_CANCELLED && sure)
        code = qs_search_stop(s, &begun, what, time);
    qsim_recipe_free(begun.recipe);
    return code;
}

/* Leaves half of the time for what follows: refining, or one unit after the other, may take all. */
static void halve_time(qs_search *s) {
    const uint64_t now = qs_clock_ns();
    if (s->end > now)
        s->end -= (s->end - now) / 2;
}

/* Runs a method on the best candidate so far, unless the aim is reached or the time is over. */
static int improve_by(qs_search *s, int (*method)(qs_search *s)) {
    if (qs_search_is_over(s) || is_done(s, false))
        return QSIM_OK;
    const int code = method(s);
    return code ? code : qs_search_return(s);
}

/* What comes before units get more bits one by one; *before: the state before refinement. */
static int improve(qs_search *s, qs_search_state *before) {
    const uint64_t end = s->end;
    int code = qs_search_ranges(s);
    if (!code)
        code = qs_search_return(s);
    if (!code)
        code = improve_by(s, qs_search_equalize);
    if (!code)
        code = improve_by(s, qs_search_smooth);
    if (!code && bits_of(s) & QSIM_BITS_FLOAT)
        code = improve_by(s, qs_search_fallback);
    if (!code)
        code = qs_search_save(s, before);
    halve_time(s);
    if (!code)
        code = improve_by(s, refine);
    s->end = end;
    return code;
}

/* Gives units more bits, those with the greatest gain in the present network first. */
static int add_bits(qs_search *s, qs_units *u) {
    const bool floats = (bits_of(s) & QSIM_BITS_FLOAT) != 0;
    size_t done;
    int code = qs_units_gains(s, u, !floats, s->judgement.loss, u->count, &done);
    return !code && done == u->count ? add_precision(s, u) : code;
}

static void copy_times(qs_units *to, const qs_units *from) {
    for (size_t i = 0; i < to->count; i++)
        for (size_t k = 0; k < from->count; k++)
            if (strcmp(to->items[i].name, from->items[k].name) == 0) {
                to->items[i].result.us = from->items[k].result.us;
                to->items[i].result.float_us = from->items[k].result.float_us;
            }
}

/*
 * Refined biases compensate errors of a network in 8 bits. They fit less once units are in float,
 * so that each unit gains little. If max_drop is not met with them, units get more bits again
 * without them, and the better of both results is kept.
 */
static int add_bits_unrefined(qs_search *s, qs_search_state *before, qs_units *u) {
    qs_search_state refined;
    qs_units own = {0};
    int code = qs_search_save(s, &refined);
    if (code)
        return code;
    qs_search_restore(s, before);
    s->rival = &refined;
    code = qs_search_return(s);
    if (!code)
        code = qs_units_find(s, &own);
    if (!code)
        copy_times(&own, u);
    if (!code)
        code = add_bits(s, &own);
    s->rival = NULL;
    const bool better = qs_search_is_better(s, &refined);
    if (!better)
        qs_search_restore(s, &refined);
    qsim_recipe_free(refined.recipe);
    qs_units_free(s, better && !code ? u : &own);
    if (better && !code)
        *u = own;
    return code ? code : qs_search_return(s);
}

/* ---- other modes ---- */

/* Whether the next candidate has a layer with quantized weights. */
static int has_layers(qs_search *s, bool *any) {
    qs_quantizer q;
    int code = qs_search_begin(s, &q);
    *any = false;
    for (size_t k = 0; !code && k < q.g->order_count; k++)
        *any = *any || qs_recipe_quantized(&q, q.g->order[k]);
    qs_search_end(&q);
    return code;
}

/*
 * Quantizes in another mode; s->best changes if that is better. A mode that has nothing to
 * quantize, or cannot do what the given recipe says, is left out.
 */
static int try_mode(qs_search *s, int32_t mode, const char *what) {
    const int32_t floats = s->floats;
    bool any = false;
    int code = qs_search_restart(s, mode);
    s->floats = 0;
    if (!code)
        code = has_layers(s, &any);
    if (!code && any)
        code = qs_search_try(s, what, NULL);
    if (code == QSIM_E_UNSUPPORTED) {
        qs_error_clear(s->error);
        code = QSIM_OK;
    }
    if (s->mode != mode)
        s->floats = floats;
    return code ? code : qs_search_return(s);
}

/*
 * Tries the modes in which scales of activations need not be known before. Weights alone make
 * nothing faster: for the goal ACCURACY they are tried only if the mode before loses too much, too.
 * If no mode meets max_drop, the search goes on without them, and *rival is the best of them.
 */
static int add_modes(qs_search *s, qs_search_state *rival) {
    const int32_t bits = bits_of(s), begun = s->mode;
    const bool accuracy = s->options.goal == QSIM_GOAL_ACCURACY;
    qs_search_state own;
    int code = qs_search_save(s, &own);
    if (!code && bits & QSIM_BITS_DYNAMIC)
        code = try_mode(s, QSIM_MODE_DYNAMIC, "activations in 8 bits while the model runs");
    if (!code && bits & QSIM_BITS_WEIGHTS && !(accuracy && qs_search_is_met(s)))
        code = try_mode(s, QSIM_MODE_WEIGHTS, "weights alone in 8 bits");
    if (!code && s->mode != begun && !qs_search_is_met(s)) {
        code = qs_search_save(s, rival);
        qs_search_restore(s, &own);
        s->rival = rival;
        if (!code)
            code = qs_search_return(s);
    }
    qsim_recipe_free(own.recipe);
    return code;
}

/* Keeps the better one of the best candidate so far and the rival, if there is one. */
static void settle(qs_search *s, qs_search_state *rival) {
    s->rival = NULL;
    if (rival->recipe && !qs_search_is_better(s, rival))
        qs_search_restore(s, rival);
    qsim_recipe_free(rival->recipe);
}

/* What is left once units have more bits: many units, and units that cost bytes or time. */
static int trade(qs_search *s, qs_units *u) {
    const int32_t bits = bits_of(s), goal = s->options.goal;
    const bool floats = (bits & QSIM_BITS_FLOAT) != 0;
    int code = QSIM_OK;
    if (floats && !qs_search_is_met(s) && s->judgement.loss >= NO_LOSS && !qs_search_is_over(s))
        code = add_together(s, u);
    if (!code && goal != QSIM_GOAL_ACCURACY && s->floats > 1)
        code = return_to_integers(s, u);
    if (!code && goal == QSIM_GOAL_SIZE && bits & QSIM_BITS_4 && !qs_search_is_over(s))
        code = add_narrow(s, u);
    if (!code && floats && goal != QSIM_GOAL_SIZE && !qs_search_is_over(s))
        code = keep_slower(s, u);
    return code;
}

int qs_search_auto(qs_search *s) {
    const int32_t bits = bits_of(s), begun = s->mode;
    const bool floats = (bits & QSIM_BITS_FLOAT) != 0,
               accuracy = s->options.goal == QSIM_GOAL_ACCURACY;
    qs_units u = {0};
    qs_search_state before = {.score = NAN}, rival = {.score = NAN};
    int code = improve(s, &before);
    if (code || qs_search_is_over(s)) {
        qsim_recipe_free(before.recipe);
        return code;
    }
    s->proof = 0; /* what follows gives bits back, or is for size and time */
    const bool more = (bits & (QSIM_BITS_FLOAT | QSIM_BITS_16)) && !is_done(s, false);
    const bool others = bits & (QSIM_BITS_DYNAMIC | QSIM_BITS_WEIGHTS) && begun == QSIM_MODE_STATIC;
    const uint64_t end = s->end;
    halve_time(s);
    code = qs_units_find(s, &u);
    if (!code && floats && s->options.goal != QSIM_GOAL_SIZE)
        code = qs_units_times(s, &u);
    const bool refined = s->best > before.score;
    if (!code && more)
        code = add_bits(s, &u);
    if (!code && more && refined && !qs_search_is_met(s) && !qs_search_is_over(s))
        code = add_bits_unrefined(s, &before, &u);
    s->end = end;
    if (!code && others && (!qs_search_is_met(s) || (!accuracy && s->floats > 0)))
        code = add_modes(s, &rival);
    if (!code && s->mode == begun)
        code = trade(s, &u);
    settle(s, &rival);
    qs_units_free(s, &u);
    qsim_recipe_free(before.recipe);
    return code;
}
