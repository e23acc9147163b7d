/* SPDX-License-Identifier: MIT */
/*
 * Finds the tensors whose channels can be multiplied by factors, and applies the factors of a
 * recipe.
 */
#include "ptq/equalize.h"

#include <math.h>

#include "base/ctx.h"
#include "pass/pass.h"
#include "ptq/recipe.h"

/* ---- constants ---- */

/* A float constant that only one input reads; else NULL. */
static const qs_const *own_constant(const qs_graph *g, const qs_uses *uses, qs_id value) {
    const qs_const *c = value == QS_NONE ? NULL : g->values[value].data;
    const bool fits = c && c->dtype == QSIM_FLOAT && !g->values[value].is_output;
    return fits && uses->start[value + 1] - uses->start[value] == 1 ? c : NULL;
}

/* The weights of a convolution or product; NULL: the node is another one. */
static const qs_const *weights_of(const qs_graph *g, const qs_uses *uses, const qs_node *n) {
    if (n->op->kind != QS_KIND_WEIGHTS)
        return NULL;
    const qs_const *w = own_constant(g, uses, qs_node_input(n, 1));
    const bool convolves = n->op->traits & QS_CONVOLVES;
    if (!w || w->elements == 0 || qs_node_int(n, "transA", 0) != 0 ||
        (convolves ? w->rank < 3 : !(n->op->traits & QS_MULTIPLIES) || w->rank != 2))
        return NULL;
    return convolves && qs_op_weight_axis(n, w->rank) != 0 ? NULL : w;
}

qs_weight_map qs_weight_map_of(const qs_graph *g, const qs_node *n) {
    const qs_const *w = g->values[n->inputs[1]].data;
    qs_weight_map s = {.groups = 1, .taps = 1};
    const int32_t axis = qs_op_weight_axis(n, w->rank);
    s.outputs_first = axis == 0;
    s.outputs = (size_t)w->dims[axis];
    s.depth = w->elements / s.outputs;
    if (n->op->traits & QS_CONVOLVES) {
        s.groups = (size_t)qs_node_int(n, "group", 1);
        s.taps = s.depth / (size_t)w->dims[1];
    }
    s.inputs = s.depth / s.taps * s.groups;
    return s;
}

/* ---- producers ---- */

static bool add_gain(const qs_graph *g, const qs_uses *uses, qs_id value, qs_site *s) {
    const qs_const *c = own_constant(g, uses, value);
    if (!c || c->elements != s->channels || c->rank < 1 ||
        c->dims[c->rank - 1] != (int64_t)s->channels || s->gain_count == QS_COUNT(s->gains))
        return false;
    s->gains[s->gain_count++] = value;
    return true;
}

/*
 * Whether the node is a layer with constant weights; adds these and its bias to the gains, weights
 * first.
 */
static bool is_made_by_layer(const qs_graph *g, const qs_uses *uses, const qs_node *n, qs_site *s) {
    const qs_const *w = weights_of(g, uses, n);
    if (!w)
        return false;
    s->channels = (size_t)w->dims[qs_op_weight_axis(n, w->rank)];
    s->gains[0] = n->inputs[1];
    s->gain_count = 1;
    const qs_id bias = qs_node_input(n, 2);
    return bias == QS_NONE || add_gain(g, uses, bias, s);
}

/*
 * Whether the node is a normalization; adds the inputs in which its output is linear, which its row
 * has, to the gains.
 */
static bool is_normalized(const qs_graph *g, const qs_uses *uses, const qs_node *n, qs_site *s) {
    bool any = false;
    for (int32_t i = 0; i < n->input_count; i++) {
        if (!qs_op_in(n->op->gain_inputs, i) || n->inputs[i] == QS_NONE)
            continue;
        if (!add_gain(g, uses, n->inputs[i], s))
            return false;
        any = true;
    }
    s->normalized = any;
    return any;
}

/* x of x + b or x * a with a constant vector along the last axis; or QS_NONE. */
static qs_id other_operand(const qs_graph *g, const qs_uses *uses, const qs_node *n, qs_site *s) {
    for (int32_t i = 0; i < 2; i++)
        if (qs_is_activation(g, n->inputs[!i]) && add_gain(g, uses, n->inputs[i], s))
            return n->inputs[!i];
    return QS_NONE;
}

static bool keep_tensor(qsim_ctx *ctx, qs_site *s, qs_id value, int32_t axis) {
    if (!qs_grow(ctx, (void **)&s->tensors, &s->tensor_capacity, s->tensor_count,
                 sizeof(*s->tensors)))
        return false;
    s->tensors[s->tensor_count++] = (qs_carrier){value, axis};
    return true;
}

static bool has_one_reader(const qs_graph *g, const qs_uses *uses, qs_id value) {
    return !g->values[value].is_output && uses->start[value + 1] - uses->start[value] == 1;
}

/*
 * Whether the operand to which a vector is added is linear in constants, too: a product with
 * weights, or x * a. *between: that operand, which is multiplied by the factors as well.
 */
static bool is_sum(const qs_graph *g, const qs_uses *uses, qs_id x, qs_site *s, qs_id *between) {
    const qs_value *inner = &g->values[x];
    const qs_node *m = inner->producer == QS_NONE ? NULL : &g->nodes[inner->producer];
    const qs_id bias = s->gains[0];
    qs_site under = {.channels = s->channels};
    if (!m || !m->op || !has_one_reader(g, uses, x))
        return false;
    const bool layer = !(m->op->traits & QS_CONVOLVES) && is_made_by_layer(g, uses, m, &under);
    if (!layer) {
        under = (qs_site){.channels = s->channels};
        if (!(m->op->traits & QS_SCALES) || other_operand(g, uses, m, &under) == QS_NONE)
            return false;
    }
    if (under.channels != s->channels || under.gain_count == QS_COUNT(s->gains))
        return false;
    memcpy(s->gains, under.gains, sizeof(s->gains));
    s->gain_count = under.gain_count;
    s->gains[s->gain_count++] = bias;
    s->normalized = !layer;
    s->producer = inner->producer;
    *between = x;
    return true;
}

/*
 * Fills gains, and the axis of the tensor's channels; false: factors cannot be moved into its
 * producer.
 */
static bool find_producer(const qs_graph *g, const qs_uses *uses, qs_id tensor, qs_site *s,
                          int32_t *axis, qs_id *between) {
    const qs_value *v = &g->values[tensor];
    const qs_node *n = v->producer == QS_NONE ? NULL : &g->nodes[v->producer];
    *between = QS_NONE;
    if (!n || !n->op || v->rank < 2 || n->outputs[0] != tensor)
        return false;
    *axis = n->op->traits & QS_CONVOLVES ? 1 : v->rank - 1;
    s->producer = v->producer;
    if (is_made_by_layer(g, uses, n, s))
        return true;
    const int64_t size = v->dims[v->rank - 1].size;
    s->gain_count = 0;
    s->channels = size > 0 ? (size_t)size : 0;
    if (is_normalized(g, uses, n, s))
        return true;
    const bool adds = n->op->traits & QS_ADDS;
    s->gain_count = 0;
    s->normalized = true;
    if (!adds && !(n->op->traits & QS_SCALES))
        return false;
    const qs_id x = other_operand(g, uses, n, s);
    return x != QS_NONE && (!adds || is_sum(g, uses, x, s, between));
}

/* ---- nodes between, and readers ---- */

/* Number of contiguous elements of one channel; 0: not known. */
static int64_t inner_size(const qs_value *v, int32_t axis) {
    int64_t size = 1;
    for (int32_t i = axis + 1; i < v->rank && size > 0; i++)
        size = v->dims[i].size > 0 ? size * v->dims[i].size : 0;
    return size;
}

/* The axis of the same channels after a reshape; -1: not known. */
static int32_t reshaped_axis(const qs_value *x, int32_t axis, const qs_value *y, int64_t channels) {
    const int64_t inner = inner_size(x, axis);
    for (int32_t i = 0; i < y->rank && inner > 0; i++)
        if (y->dims[i].size == channels && inner_size(y, i) == inner)
            return i;
    return -1;
}

/* Reads a bound of a Clip; false: it is not known. */
static bool read_bound(const qs_graph *g, const qs_node *n, int32_t input, float *value) {
    const qs_id id = qs_node_input(n, input);
    const qs_const *c = id == QS_NONE ? NULL : g->values[id].data;
    if (id == QS_NONE)
        return true;
    if (!c || c->dtype != QSIM_FLOAT || c->elements != 1)
        return false;
    memcpy(value, c->data, sizeof(*value));
    return true;
}

/*
 * The axis of the channels after the node if f(k x) = k f(x) for k > 0; else -1. This also holds
 * for a Clip with lower bound 0 as long as values stay below its upper bound.
 */
static int32_t commuting_axis(const qs_graph *g, const qs_node *n, qs_carrier x, qs_site *s) {
    const qs_value *from = &g->values[x.value], *to = &g->values[n->outputs[0]];
    const uint32_t traits = qs_node_traits(g, n);
    const bool image = x.axis == 1 && (traits & QS_NEEDS_LAST);
    bool keep;
    if (n->output_count != 1 || n->inputs[0] != x.value)
        return -1;
    if (n->op->kind == QS_KIND_POOL && (traits & QS_ELEMENTWISE)) {
        float low = 0, high = INFINITY;
        if (n->op->setting_inputs &&
            (!read_bound(g, n, 1, &low) || !read_bound(g, n, 2, &high) || low != 0))
            return -1;
        s->most = high < s->most ? high : s->most;
        return x.axis;
    }
    if (n->op->kind == QS_KIND_POOL)
        return image || (x.axis == 1 && qs_is_global_mean(g, n, &keep)) ? 1 : -1;
    if (n->op->kind != QS_KIND_MOVEMENT)
        return -1;
    if (traits & QS_RESHAPES)
        return reshaped_axis(from, x.axis, to, (int64_t)s->channels);
    return image ? 1 : -1; /* MaxPool */
}

/* Whether a node multiplies the channels by weights that only it reads. */
static bool is_reader(const qs_graph *g, const qs_uses *uses, const qs_node *n, qs_carrier x,
                      const qs_site *s) {
    const qs_const *w = weights_of(g, uses, n);
    const bool convolves = n->op->traits & QS_CONVOLVES;
    if (!w || n->inputs[0] != x.value || n->inputs[1] == x.value)
        return false;
    const int32_t axis = convolves ? 1 : g->values[x.value].rank - 1;
    const qs_weight_map map = qs_weight_map_of(g, n);
    return x.axis == axis && map.inputs == s->channels && map.inputs % map.groups == 0;
}

/*
 * Finds the readers of every tensor that carries factors. *fits: false if one neither commutes with
 * factors nor has weights.
 */
static int follow_readers(qsim_ctx *ctx, const qs_graph *g, const qs_uses *uses, qs_site *s,
                          bool *fits) {
    for (size_t t = 0; t < s->tensor_count && *fits; t++) {
        const qs_carrier x = s->tensors[t];
        *fits = !g->values[x.value].is_output;
        for (qs_id u = uses->start[x.value]; u < uses->start[x.value + 1] && *fits; u++) {
            const qs_node *n = &g->nodes[uses->nodes[u]];
            if (!n->op)
                *fits = false;
            else if (is_reader(g, uses, n, x, s)) {
                if (!qs_grow(ctx, (void **)&s->readers, &s->reader_capacity, s->reader_count,
                             sizeof(*s->readers)))
                    return QSIM_E_NOMEM;
                s->readers[s->reader_count++] = uses->nodes[u];
            } else {
                const int32_t axis = commuting_axis(g, n, x, s);
                *fits = axis >= 0;
                if (*fits && !keep_tensor(ctx, s, n->outputs[0], axis))
                    return QSIM_E_NOMEM;
            }
        }
    }
    return QSIM_OK;
}

void qs_site_free(qsim_ctx *ctx, qs_site *s) {
    qs_free(ctx, s->tensors);
    qs_free(ctx, s->readers);
    *s = (qs_site){.channels = 0};
}

int qs_site_find(qsim_ctx *ctx, const qs_graph *g, const qs_uses *uses, qs_id tensor,
                 qs_site *out) {
    int32_t axis;
    qs_id between;
    bool fits = true;
    int code = QSIM_OK;
    *out = (qs_site){.most = INFINITY};
    if (!find_producer(g, uses, tensor, out, &axis, &between))
        return QSIM_OK;
    if (!keep_tensor(ctx, out, tensor, axis))
        code = QSIM_E_NOMEM;
    if (!code)
        code = follow_readers(ctx, g, uses, out, &fits);
    if (!code && between != QS_NONE && !keep_tensor(ctx, out, between, axis))
        code = QSIM_E_NOMEM;
    if (code || !fits)
        out->reader_count = 0;
    return code;
}

/* ---- moving factors ---- */

static int mark(qs_quantizer *q, const qs_site *s, const qsim_recipe_entry *e) {
    const char *model = q->model->name;
    if (s->reader_count == 0)
        return qs_fail(q->error, QSIM_E_UNSUPPORTED,
                       "%s: the recipe equalizes '%s': factors can be moved only from a layer or "
                       "normalization with constants of its own to layers with weights",
                       model, e->name);
    if ((size_t)e->shift_count != s->channels)
        return qs_fail(q->error, QSIM_E_MISMATCH,
                       "%s: the recipe equalizes '%s' by %lld factors, not %zu", model, e->name,
                       (long long)e->shift_count, s->channels);
    for (size_t i = 0; i < s->tensor_count; i++) {
        const qs_id value = s->tensors[i].value;
        q->scaled[value] = (qs_scaled){.factor = e->shift,
                                       .channels = s->channels,
                                       .axis = s->tensors[i].axis,
                                       .name = q->g->values[value].name,
                                       .first = i == 0};
    }
    return QSIM_OK;
}

int qs_equalize_find(qs_quantizer *q) {
    const qsim_recipe *r = q->g == q->model->graph ? q->options.recipe : NULL;
    int code = QSIM_OK;
    for (size_t i = 0; r && i < r->count && !code; i++) {
        const qsim_recipe_entry *e = &r->entries[i];
        qs_site s;
        if (e->kind != QSIM_RECIPE_EQUALIZE)
            continue;
        const qs_id value = qs_graph_find(q->g, e->name);
        if (value == QS_NONE || (size_t)value >= q->value_count)
            return qs_fail(q->error, QSIM_E_NOT_FOUND,
                           "%s: the recipe's tensor '%s' does not exist", q->model->name, e->name);
        if (!q->scaled)
            q->scaled = qs_calloc(q->ctx, q->value_count + 1, sizeof(*q->scaled));
        if (!q->scaled)
            return QSIM_E_NOMEM;
        code = qs_site_find(q->ctx, q->g, &q->uses, value, &s);
        code = code ? QSIM_E_NOMEM : mark(q, &s, e);
        qs_site_free(q->ctx, &s);
    }
    return code;
}

/* The floats of a constant, and a copy to be changed. */
static float *begin_change(qs_quantizer *q, qs_id value, const float **old) {
    const qs_const *c = q->g->values[value].data;
    *old = qs_graph_aligned(q->g, value);
    return *old ? qs_arena_alloc(&q->g->arena, c->elements, sizeof(float)) : NULL;
}

static int end_change(qs_quantizer *q, qs_id value, const float *data) {
    qs_const *c = qs_arena_alloc(&q->g->arena, 1, sizeof(*c));
    if (!c)
        return QSIM_E_NOMEM;
    *c = *q->g->values[value].data;
    c->data = data;
    c->source = (qs_span){NULL, 0};
    c->external = false;
    q->g->values[value].data = c;
    return QSIM_OK;
}

/*
 * Multiplies a constant of the tensor's producer by the factors: weights, or a vector of the
 * channels.
 */
static int multiply(qs_quantizer *q, const qs_site *s, qs_id value, const float *factor) {
    const float *old;
    float *made = begin_change(q, value, &old);
    const size_t elements = q->g->values[value].data->elements;
    const bool weights = value == s->gains[0] && !s->normalized;
    qs_weight_map map = {0};
    if (!made)
        return QSIM_E_NOMEM;
    if (weights)
        map = qs_weight_map_of(q->g, &q->g->nodes[s->producer]);
    for (size_t i = 0; i < elements; i++)
        made[i] = old[i] * factor[weights ? qs_weight_output(&map, i) : i];
    return end_change(q, value, made);
}

static int divide(qs_quantizer *q, qs_id node, const float *factor) {
    const qs_node *n = &q->g->nodes[node];
    const qs_id value = n->inputs[1];
    const float *old;
    float *made = begin_change(q, value, &old);
    const qs_weight_map map = qs_weight_map_of(q->g, n);
    if (!made)
        return QSIM_E_NOMEM;
    for (size_t i = 0; i < q->g->values[value].data->elements; i++)
        made[i] = old[i] / factor[qs_weight_input(&map, i)];
    return end_change(q, value, made);
}

int qs_equalize_apply(qs_quantizer *q) {
    int code = QSIM_OK;
    for (size_t v = 0; q->scaled && v < q->value_count && !code; v++) {
        const float *factor = q->scaled[v].factor;
        qs_site s;
        if (!q->scaled[v].first)
            continue;
        if (qs_site_find(q->ctx, q->g, &q->uses, (qs_id)v, &s))
            code = QSIM_E_NOMEM;
        for (size_t i = 0; i < s.gain_count && !code; i++)
            code = multiply(q, &s, s.gains[i], factor);
        for (size_t i = 0; i < s.reader_count && !code; i++)
            code = divide(q, s.readers[i], factor);
        qs_site_free(q->ctx, &s);
    }
    return code;
}

float qs_layer_factor(const qs_quantizer *q, const qs_layer *l, size_t k) {
    const qs_node *n = &q->g->nodes[l->node];
    const bool known = q->scaled && (size_t)n->inputs[0] < q->value_count;
    const float *factor = known ? q->scaled[n->inputs[0]].factor : NULL;
    const qs_const *w = q->g->values[n->inputs[1]].data;
    const size_t inputs = n->op->traits & QS_CONVOLVES ? (size_t)w->dims[1] : l->depth;
    return factor ? factor[k / (l->depth / inputs)] : 1;
}

/* Renames "X" and its names after QuantizeLinear to "X_equalized". */
static int rename_one(qs_quantizer *q, const char *name, const char *suffix) {
    const char *old = qs_write_joined(q, name, suffix);
    const char *base = qs_write_joined(q, name, "_equalized");
    const qs_id id = old ? qs_graph_find(q->g, old) : QS_NONE;
    const char *wanted = base ? qs_write_name(q, base, suffix) : NULL;
    if (!old || !wanted || (id != QS_NONE && qs_graph_rename(q->g, id, wanted)))
        return QSIM_E_NOMEM;
    return QSIM_OK;
}

int qs_equalize_rename(qs_quantizer *q) {
    static const char *const suffixes[] = {"", "_DequantizeLinear_Output"};
    for (size_t v = 0; q->scaled && v < q->value_count; v++)
        for (size_t i = 0; q->scaled[v].factor && i < QS_COUNT(suffixes); i++) {
            int code = rename_one(q, q->scaled[v].name, suffixes[i]);
            if (code)
                return code;
        }
    for (size_t k = 0; q->scaled && k < q->g->node_count; k++)
        q->g->nodes[k].changed = true; /* its message has the old names */
    return QSIM_OK;
}
