/* SPDX-License-Identifier: MIT */
/* Scales of activations: finds the values that share a scale, and computes it. */
#include "base/ctx.h"
#include "ptq/quantizer.h"
#include "ptq/recipe.h"

static void mark(qs_quantizer *q, qs_id value) {
    q->activations[value].quantized = true;
}

/*
 * Works in order of execution, so that the input of an operator that moves elements has its root.
 */
void qs_activation_mark(qs_quantizer *q) {
    for (size_t i = 0; i < q->value_count; i++)
        q->activations[i] = (qs_activation){.root = (qs_id)i,
                                            .scale_id = QS_NONE,
                                            .zero_id = QS_NONE,
                                            .read = QS_NONE,
                                            .made = QS_NONE};
    for (size_t k = 0; k < q->g->order_count; k++) {
        qs_id node = q->g->order[k];
        const qs_node *n = &q->g->nodes[node];
        const qs_choice *c = &q->choices[node];
        if (!c->integer || c->is_absorbed)
            continue;
        for (int32_t i = 0; i < n->input_count; i++)
            if (qs_reads_codes(q, node, i))
                mark(q, n->inputs[i]);
        if (c->kind != QS_KIND_MOVEMENT) {
            mark(q, qs_choice_output(q, node));
            continue;
        }
        for (int32_t i = 0; i < n->output_count; i++) {
            mark(q, n->outputs[i]);
            q->activations[n->outputs[i]].root = q->activations[n->inputs[0]].root;
        }
    }
}

int32_t qs_widened(int32_t dtype) {
    return dtype == QSIM_INT8 ? QSIM_INT16 : dtype == QSIM_UINT8 ? QSIM_UINT16 : dtype;
}

/* The root of a quantized value; NULL: it is not quantized. */
static qs_activation *root_of(const qs_quantizer *q, qs_id value) {
    if (value == QS_NONE || (size_t)value >= q->value_count || !q->activations[value].quantized)
        return NULL;
    return &q->activations[q->activations[value].root];
}

static void widen(const qs_quantizer *q, qs_id value) {
    qs_activation *a = root_of(q, value);
    if (a)
        a->dtype = qs_widened(a->dtype);
}

/* Gives 16 bits to all activations that a node, with the nodes that it absorbs, reads and makes. */
static void widen_node(const qs_quantizer *q, qs_id node) {
    const qs_node *n = &q->g->nodes[node];
    for (int32_t i = 0; i < n->input_count; i++)
        widen(q, n->inputs[i]);
    for (int32_t i = 0; i < n->output_count; i++)
        widen(q, n->outputs[i]);
    widen(q, qs_choice_output(q, node));
}

/* Sets the types of roots. A constant has the type of the result, or 16 bits if readers differ. */
static void choose_types(const qs_quantizer *q) {
    for (size_t i = 0; i < q->value_count; i++)
        q->activations[i].dtype = qs_recipe_type(q, (qs_id)i);
    for (size_t k = 0; k < q->g->order_count; k++)
        if (q->choices[q->g->order[k]].integer && q->choices[q->g->order[k]].wide)
            widen_node(q, q->g->order[k]);
    for (size_t k = 0; k < q->g->order_count; k++) {
        const qs_id node = q->g->order[k];
        const qs_node *n = &q->g->nodes[node];
        const qs_choice *c = &q->choices[node];
        const qs_activation *y =
            c->integer && !c->is_absorbed ? root_of(q, qs_choice_output(q, node)) : NULL;
        for (int32_t i = 0; y && i < n->input_count; i++) {
            qs_activation *x = qs_reads_codes(q, node, i) ? root_of(q, n->inputs[i]) : NULL;
            if (x && q->g->values[n->inputs[i]].data && !qs_is_wide(x->dtype))
                x->dtype = y->dtype;
        }
    }
}

bool qs_wide_wanted(const qsim_quantize_options *o) {
    bool wanted = qs_is_wide(o->activation_type);
    for (size_t i = 0; i < o->rule_count && !wanted; i++) {
        qsim_rule rule;
        wanted = !qs_rule_get(o, i, &rule, NULL) && rule.action == QSIM_RULE_INT16;
    }
    for (size_t i = 0; o->recipe && i < o->recipe->count && !wanted; i++)
        wanted = qs_is_wide(o->recipe->entries[i].dtype);
    return wanted && o->mode == QSIM_MODE_STATIC;
}

/* Least and greatest value of a constant operand; the range includes 0. */
static int constant_range(qs_quantizer *q, qs_id value, float *low, float *high) {
    const float *x = qs_graph_aligned(q->g, value);
    size_t n = q->g->values[value].data->elements;
    if (!x)
        return QSIM_E_NOMEM;
    if (!qs_all_finite(x, n))
        return qs_fail(q->error, QSIM_E_VALUE, "%s: constant '%s' holds a NaN or an infinity",
                       q->model->name, q->g->values[value].name);
    *low = *high = 0;
    for (size_t i = 0; i < n; i++) {
        *low = x[i] < *low ? x[i] : *low;
        *high = x[i] > *high ? x[i] : *high;
    }
    return QSIM_OK;
}

/*
 * The range of a tensor whose channels are multiplied by factors, from the extremes of each
 * channel.
 */
static int scaled_range(const qs_quantizer *q, const qs_scaled *s, qs_range *range) {
    int32_t index;
    const qs_means *m = q->c ? qs_calibration_means(q->c, s->name, &index) : NULL;
    if (!m || m->axis != s->axis || m->channels != s->channels || m->bare) {
        qs_fail(q->error, QSIM_E_ARGUMENT,
                "%s: the recipe equalizes '%s': the calibration has no extremes of its channels",
                q->model->name, s->name);
        qs_hint(q->error, "calibrate again, or write the tensor's range into the recipe");
        return QSIM_E_ARGUMENT;
    }
    range->given = QSIM_RECIPE_METHOD;
    range->method = QSIM_METHOD_MINMAX;
    range->low = range->high = 0;
    for (size_t c = 0; c < m->channels; c++) {
        const float low = m->extreme[c] * s->factor[c];
        const float high = m->extreme[m->channels + c] * s->factor[c];
        range->low = low < range->low ? low : range->low;
        range->high = high > range->high ? high : range->high;
    }
    return QSIM_OK;
}

static int find_range(qs_quantizer *q, qs_id value, qs_range *range) {
    const qs_value *v = &q->g->values[value];
    const int32_t dtype = q->activations[value].dtype;
    qs_recipe_range(q, value, range);
    if (qs_is_wide(dtype) && range->method != QSIM_METHOD_PERCENTILE)
        range->method = QSIM_METHOD_MINMAX; /* with 16 bits the whole range is fine enough */
    if (v->data)
        return constant_range(q, value, &range->low, &range->high);
    if (range->given & QSIM_RECIPE_RANGE)
        return QSIM_OK;
    if (q->scaled && q->scaled[value].factor)
        return scaled_range(q, &q->scaled[value], range);
    const qsim_observer *o = q->c ? qs_calibration_find(q->c, v->name, NULL) : NULL;
    if (!o)
        return qs_fail(q->error, QSIM_E_NOT_FOUND, "%s: tensor '%s' was not calibrated",
                       q->model->name, v->name);
    int code = qsim_observer_range(o, range->method, range->percentile, dtype, range->flags,
                                   &range->low, &range->high);
    return code ? qs_fail(q->error, code, "%s: no range for tensor '%s': %s", q->model->name,
                          v->name, qsim_error_text(code))
                : QSIM_OK;
}

int qs_activation_choose(qs_quantizer *q) {
    qs_activation_mark(q);
    choose_types(q);
    for (size_t i = 0; i < q->value_count; i++) {
        qs_activation *a = &q->activations[i];
        if (!a->quantized || a->root != (qs_id)i)
            continue;
        int code = qs_go_on(q->ctx, q->model->name, q->error);
        if (!code)
            code = find_range(q, (qs_id)i, &a->range);
        if (code)
            return code;
        code = qsim_qparams_choose(a->range.low, a->range.high, a->dtype, a->range.flags, &a->scale,
                                   &a->zero_point);
        if (code)
            return qs_fail(q->error, code, "%s: no scale for tensor '%s' in [%g, %g]",
                           q->model->name, q->g->values[i].name, (double)a->range.low,
                           (double)a->range.high);
    }
    return qs_curves_narrow(q);
}
