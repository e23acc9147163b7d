/* SPDX-License-Identifier: MIT */
/*
 * Units: operators with the activation or bias that they absorb, which are in float or in 8 bits
 * together.
 */
#include <math.h>

#include "ptq/gram.h"
#include "ptq/search.h"

static const char *keep_text(qs_units *u, const char *text) {
    const size_t n = strlen(text) + 1;
    char *copy = qs_arena_alloc(&u->arena, n, 1);
    return copy ? memcpy(copy, text, n) : NULL;
}

static bool is_unit(const qs_quantizer *q, qs_id node) {
    const qs_choice *c = &q->choices[node];
    return c->integer && !c->is_absorbed &&
           (c->kind == QS_KIND_WEIGHTS || c->kind == QS_KIND_ARITHMETIC || c->kind == QS_KIND_POOL);
}

/* Lists the activations with a scale that the unit reads or makes, each once. */
static int list_activations(const qs_quantizer *q, qs_id node, qs_units *u, qs_unit *unit) {
    const qs_node *n = &q->g->nodes[node];
    const int32_t reads = n->input_count;
    unit->activations = qs_arena_alloc(&u->arena, (size_t)reads + 1, sizeof(*unit->activations));
    if (!unit->activations)
        return QSIM_E_NOMEM;
    for (int32_t i = 0; i <= reads; i++) {
        if (i < reads && !qs_reads_codes(q, node, i))
            continue;
        const qs_id value = i < reads ? n->inputs[i] : qs_choice_output(q, node);
        const qs_id root = value == QS_NONE ? QS_NONE : q->activations[value].root;
        bool listed =
            root == QS_NONE || !q->activations[root].quantized || q->g->values[root].data != NULL;
        for (size_t k = 0; k < unit->activation_count && !listed; k++)
            listed = strcmp(unit->activations[k], q->g->values[root].name) == 0;
        if (listed)
            continue;
        const char *name = keep_text(u, q->g->values[root].name);
        if (!name)
            return QSIM_E_NOMEM;
        unit->activations[unit->activation_count++] = name;
    }
    return QSIM_OK;
}

static int add_unit(const qs_quantizer *q, qs_id node, qs_units *u) {
    const qs_choice *c = &q->choices[node];
    const qs_node *n = &q->g->nodes[node];
    qs_unit *unit = &u->items[u->count];
    *unit = (qs_unit){
        .kind = c->kind,
        .result = {.struct_size = sizeof(unit->result), .loss_alone = NAN, .agreement = NAN}};
    unit->name = keep_text(u, qs_node_label(q->g, node));
    unit->op_type = keep_text(u, n->op_type);
    unit->tensor = keep_text(u, q->g->values[qs_choice_output(q, node)].name);
    qs_id last = c->absorbs;
    while (last != QS_NONE && q->choices[last].absorbs != QS_NONE)
        last = q->choices[last].absorbs;
    if (last != QS_NONE)
        unit->takes = keep_text(u, qs_node_label(q->g, last));
    if (!unit->name || !unit->op_type || !unit->tensor || (c->absorbs != QS_NONE && !unit->takes) ||
        list_activations(q, node, u, unit))
        return QSIM_E_NOMEM;
    unit->result.name = unit->name;
    unit->result.op_type = unit->op_type;
    unit->result.takes = unit->takes;
    if (c->layer >= 0) {
        const qs_layer *l = &q->layers[c->layer];
        const int64_t weights = (int64_t)(l->channels * l->depth);
        unit->form = l->form;
        if (!qs_gram_find(q, l))
            unit->form.rounding = QSIM_ROUNDING_NEAREST;
        const int64_t bias = qs_node_input(n, 2) != QS_NONE ? (int64_t)l->channels : 0;
        unit->result.float_bytes = 4 * (weights + bias);
        unit->result.bytes = weights + 4 * bias;
    }
    u->count += unit->name[0] != 0; /* recipes cannot name a unit without name */
    return QSIM_OK;
}

int qs_units_find(qs_search *s, qs_units *u) {
    qs_quantizer q;
    qsim_ctx *ctx = s->prepared->ctx;
    *u = (qs_units){.floats = s->floats};
    qs_arena_init(&u->arena, ctx);
    int code = qs_search_begin(s, &q);
    if (!code)
        qs_activation_mark(&q);
    u->items = qs_calloc(ctx, q.node_count + 1, sizeof(*u->items));
    if (!code && !u->items)
        code = QSIM_E_NOMEM;
    for (size_t k = 0; !code && k < q.g->order_count; k++)
        if (is_unit(&q, q.g->order[k]))
            code = add_unit(&q, q.g->order[k], u);
    qs_search_end(&q);
    for (size_t i = 0; i < u->count && !code; i++) {
        const qsim_recipe_entry *e = qs_recipe_find(s->recipe, QSIM_RECIPE_LAYER, u->items[i].name);
        qsim_recipe_entry *initial = &u->items[i].initial;
        *initial = e ? *e : (qsim_recipe_entry){0};
        const size_t shifts = (size_t)initial->shift_count;
        float *shift = shifts ? qs_arena_alloc(&u->arena, shifts, sizeof(*shift)) : NULL;
        if (shifts && !shift)
            return QSIM_E_NOMEM;
        if (shifts)
            memcpy(shift, initial->shift, shifts * sizeof(*shift));
        initial->shift = shift;
    }
    return code;
}

void qs_units_free(qs_search *s, qs_units *u) {
    if (!s->prepared)
        return;
    qs_arena_free(&u->arena);
    qs_free(s->prepared->ctx, u->items);
}

int qs_unit_set(qs_search *s, const qs_unit *u, bool in_float) {
    qsim_recipe_entry e = {.kind = QSIM_RECIPE_LAYER};
    if (in_float) {
        e.action = QSIM_RECIPE_FLOAT;
    } else if (u->initial.kind) {
        e = u->initial;
    } else if (u->kind == QS_KIND_WEIGHTS) {
        qs_recipe_form(&u->form, &e);
    } else {
        e.action = QSIM_RECIPE_INTEGER;
    }
    return qs_recipe_put(s->recipe, &e, u->name);
}

int qs_unit_widen(qs_search *s, const qs_unit *u) {
    int code = QSIM_OK;
    for (size_t i = 0; i < u->activation_count && !code; i++) {
        const qsim_recipe_entry *old =
            qs_recipe_find(s->recipe, QSIM_RECIPE_TENSOR, u->activations[i]);
        qsim_recipe_entry e = qs_search_method_entry(s, s->base.method, s->base.percentile);
        if (old && old->action == QSIM_RECIPE_QUANTIZE)
            e = *old;
        e.dtype = qs_widened(e.dtype);
        code = qs_recipe_put(s->recipe, &e, u->activations[i]);
    }
    return code;
}

/* ---- costs ---- */

int qs_units_judge(qs_search *s, qsim_judgement *out) {
    qsim_model *m;
    int code = qs_quantize_prepared(s->prepared, s->c, &s->base, &m, s->error);
    if (code)
        return code;
    code = qs_judge_model(&s->judge, m, out, s->error);
    qsim_model_free(m);
    return code;
}

int qs_units_gains(qs_search *s, qs_units *u, bool wide, double loss, size_t total, size_t *done) {
    int code = QSIM_OK;
    for (*done = 0; *done < u->count && !code && !qs_search_is_over(s);) {
        qs_unit *unit = &u->items[*done];
        qsim_judgement without;
        code = qs_search_progress(s, unit->name, *done, total);
        if (!code)
            code = wide ? qs_unit_widen(s, unit) : qs_unit_set(s, unit, true);
        if (!code)
            code = qs_units_judge(s, &without);
        if (!code)
            code = wide ? qs_search_return(s) : qs_unit_set(s, unit, false);
        if (code)
            break;
        unit->result.loss_gained = loss - without.loss;
        ++*done;
    }
    return code;
}

static int measure_times(qs_search *s, qs_units *u, qs_node_time *t) {
    qsim_model *m;
    int code = qs_time_nodes(&s->judge, s->prepared, t, u->count, s->error);
    for (size_t i = 0; i < u->count; i++)
        u->items[i].result.float_us = t[i].us;
    if (!code)
        code = qs_quantize_prepared(s->prepared, s->c, &s->base, &m, s->error);
    if (code)
        return code;
    code = qs_time_nodes(&s->judge, m, t, u->count, s->error);
    for (size_t i = 0; i < u->count; i++)
        u->items[i].result.us = t[i].us;
    qsim_model_free(m);
    return code;
}

int qs_units_times(qs_search *s, qs_units *u) {
    for (size_t i = 0; s->options.cost && i < u->count; i++)
        s->options.cost(s->options.cost_user, u->items[i].name, &u->items[i].result.float_us,
                        &u->items[i].result.us);
    if (s->options.cost)
        return QSIM_OK;
    qs_node_time *t = qs_calloc(s->prepared->ctx, u->count + 1, sizeof(*t));
    if (!t)
        return QSIM_E_NOMEM;
    for (size_t i = 0; i < u->count; i++)
        t[i] = (qs_node_time){.name = u->items[i].name, .other = u->items[i].takes};
    int code = measure_times(s, u, t);
    qs_free(s->prepared->ctx, t);
    return code;
}

int qs_units_cost(qs_search *s, double *microseconds) {
    qs_quantizer q;
    double sum = 0;
    int code = qs_search_begin(s, &q);
    for (size_t k = 0; !code && k < q.g->order_count; k++) {
        double us[2] = {NAN, NAN};
        const qs_choice *c = &q.choices[q.g->order[k]];
        const bool counts = c->kind != QS_KIND_FLOAT && !c->is_absorbed;
        if (counts)
            s->options.cost(s->options.cost_user, qs_node_label(q.g, q.g->order[k]), &us[0],
                            &us[1]);
        sum += counts && isfinite(us[c->integer]) ? us[c->integer] : 0;
    }
    qs_search_end(&q);
    *microseconds = sum;
    return code;
}

/* ---- order and knee ---- */

size_t qs_units_sort(qs_unit *items, size_t count) {
    double total = 0, sum = 0, furthest = 0;
    size_t knee = 0;
    for (size_t i = 1; i < count; i++)
        for (size_t k = i; k > 0 && items[k].result.loss_gained > items[k - 1].result.loss_gained;
             k--) {
            const qs_unit swap = items[k];
            items[k] = items[k - 1];
            items[k - 1] = swap;
        }
    for (size_t i = 0; i < count; i++)
        total += qs_max(items[i].result.loss_gained, 0);
    for (size_t i = 0; i < count && total > 0; i++) {
        sum += qs_max(items[i].result.loss_gained, 0);
        const double above = sum / total - (double)(i + 1) / (double)count;
        if (above > furthest) {
            furthest = above;
            knee = i + 1;
        }
    }
    for (size_t i = 0; i < count; i++)
        items[i].result.before_knee = i < knee;
    return knee;
}
