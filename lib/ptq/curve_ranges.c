/* SPDX-License-Identifier: MIT */
/*
 * Narrows the ranges of activations that only curves read to where the curves are not flat: Sigmoid
 * of anything below -7 rounds to 0. The range's codes are then finer where they matter.
 */
#include "base/ctx.h"
#include "pass/expression.h"
#include "ptq/quantizer.h"

#define POINTS 1024
/* Values outside of the range change a result by at most this part of its step. */
#define TOLERANCE 0.25f

/* The points of a range that are not in a flat end of a curve: the first and the last. */
typedef struct steep {
    size_t first, last;
} steep;

/* Computes results of a node and those that it absorbs, from values of `source`. */
static int compute(const qs_quantizer *q, qs_id node, qs_id source, const float *x,
                   qs_expression *e, const float **y) {
    const qs_const *c = NULL;
    const int64_t points = POINTS;
    int code = qs_expression_begin(e, source, QSIM_FLOAT, 1, &points, x);
    for (qs_id n = node; n != QS_NONE && !code; n = q->choices[n].absorbs)
        code = qs_expression_add(e, n);
    if (!code)
        code = qs_expression_value(e, qs_choice_output(q, node), &c);
    *y = c && c->elements == POINTS && c->dtype == QSIM_FLOAT ? c->data : NULL;
    return code == QSIM_E_LIMIT ? QSIM_OK : code;
}

/* The number of points, from `from` on in steps of 1 or -1, between which y moves by `most`. */
static size_t flat(const float *y, float low, float high, size_t from, bool up, float most) {
    float least = 0, greatest = 0;
    for (size_t n = 0; n < POINTS; n++) {
        const float v = y[up ? from + n : from - n];
        const float kept = v < low ? low : v > high ? high : v;
        if (!(v - v == 0)) /* infinite, or no number */
            return n;
        least = n == 0 || kept < least ? kept : least;
        greatest = n == 0 || kept > greatest ? kept : greatest;
        if (greatest - least > most)
            return n;
    }
    return POINTS;
}

/* Widens `s` by the points at which the curve that begins with `node` is not flat. */
static int add_curve(const qs_quantizer *q, qs_id node, qs_id source, const float *x, steep *s) {
    const qs_activation *a = &q->activations[qs_choice_output(q, node)];
    qs_expression e = {.ctx = q->ctx, .from = q->g, .model = q->model->name, .error = q->error};
    const float most = TOLERANCE * a->scale, *y;
    const int code = compute(q, node, source, x, &e, &y);
    const size_t left = y ? flat(y, a->range.low, a->range.high, 0, true, most) : 0;
    const size_t right = y ? flat(y, a->range.low, a->range.high, POINTS - 1, false, most) : 0;
    qs_expression_end(&e);
    /* The last flat point is the end of the range. */
    const size_t first = left ? left - 1 : 0, last = POINTS - 1 - (right ? right - 1 : 0);
    if (left < POINTS) {
        s->first = first < s->first ? first : s->first;
        s->last = last > s->last ? last : s->last;
    }
    return code;
}

/* The node that begins the curve in integers of which `reader` is part; QS_NONE: none. */
static qs_id curve_of(const qs_quantizer *q, qs_id reader, qs_id source) {
    const qs_choice *c = &q->choices[reader];
    const qs_id first = c->curve != QS_NONE ? c->curve : reader;
    const qs_activation *y = &q->activations[qs_choice_output(q, first)];
    const bool fits = c->integer && (c->curve != QS_NONE || !c->is_absorbed) &&
                      (c->kind != QS_KIND_MOVEMENT) && qs_curve_source(q, first) == source &&
                      y->quantized && y->root == qs_choice_output(q, first) && y->scale > 0;
    return fits ? first : QS_NONE;
}

/* Whether the range of a value is its own, and its readers are all curves. */
static bool may_narrow(const qs_quantizer *q, qs_id value, const bool *shared) {
    const qs_activation *a = &q->activations[value];
    const qs_value *v = &q->g->values[value];
    if (!a->quantized || a->root != value || shared[value] || v->data || v->is_output ||
        qs_is_wide(a->dtype) || a->range.given & QSIM_RECIPE_RANGE ||
        q->uses.start[value] == q->uses.start[value + 1])
        return false;
    for (qs_id u = q->uses.start[value]; u < q->uses.start[value + 1]; u++)
        if (curve_of(q, q->uses.nodes[u], value) == QS_NONE)
            return false;
    return true;
}

static int narrow(qs_quantizer *q, qs_id value) {
    qs_activation *a = &q->activations[value];
    float x[POINTS];
    steep s = {POINTS, 0};
    for (size_t i = 0; i < POINTS; i++) {
        const float part = (float)i / (POINTS - 1);
        x[i] = a->range.low * (1 - part) + a->range.high * part;
    }
    int code = QSIM_OK;
    for (qs_id u = q->uses.start[value]; u < q->uses.start[value + 1] && !code; u++)
        if (curve_of(q, q->uses.nodes[u], value) == q->uses.nodes[u]) /* once for each curve */
            code = add_curve(q, q->uses.nodes[u], value, x, &s);
    if (code || s.first >= s.last)
        return code;
    a->range.low = x[s.first] < 0 ? x[s.first] : 0;
    a->range.high = x[s.last] > 0 ? x[s.last] : 0;
    return qsim_qparams_choose(a->range.low, a->range.high, a->dtype, a->range.flags, &a->scale,
                               &a->zero_point);
}

int qs_curves_narrow(qs_quantizer *q) {
    bool *shared = qs_calloc(q->ctx, q->value_count + 1, sizeof(*shared));
    int code = shared ? QSIM_OK : QSIM_E_NOMEM;
    for (size_t i = 0; i < q->value_count && !code; i++)
        if (q->activations[i].quantized && q->activations[i].root != (qs_id)i)
            shared[q->activations[i].root] = true;
    /* From the end: the range of a curve's result, which another may read, is final then. */
    for (size_t k = q->g->order_count; k-- > 0 && !code;) {
        const qs_node *n = &q->g->nodes[q->g->order[k]];
        code = qs_go_on(q->ctx, q->model->name, q->error);
        for (int32_t i = 0; i < n->output_count && !code; i++)
            if (n->outputs[i] != QS_NONE && may_narrow(q, n->outputs[i], shared))
                code = narrow(q, n->outputs[i]);
    }
    qs_free(q->ctx, shared);
    return code;
}
