/* SPDX-License-Identifier: MIT */
/*
 * Models whose inputs and outputs are integers: QuantizeLinear behind inputs and DequantizeLinear
 * before outputs are left to the caller, who asks qsim_model_scale for their numbers.
 */
#include "base/ctx.h"
#include "op/op.h"
#include "pass/pass.h"
#include "tensor/minifloat.h"

#include <qsim/ptq.h>

/* ---- scales ---- */

typedef struct scale {
    double scale, zero_point;
} scale;

/*
 * Reads the constants of operand `o`, or of the like operand `offset` inputs behind it; false: they
 * have several elements or are none, or `o` is no operand with a scale.
 */
static bool read_scale(const qs_graph *g, const qs_node *n, const qs_operand *o, int32_t offset,
                       scale *out) {
    const qs_id zero = qs_node_input(n, o->zero_point + offset);
    out->zero_point = 0;
    return o->zero_point && o->scale != QS_NO_SCALE &&
           qs_const_scalar(g, qs_node_input(n, o->scale + offset), &out->scale) &&
           (zero == QS_NONE || qs_const_scalar(g, zero, &out->zero_point));
}

/* The scale that a node states for the integers of `value`, which it reads or makes. */
static bool find_scale(const qs_graph *g, const qs_node *n, qs_id value, scale *out) {
    const qs_operands *o = n->op && n->op->more ? n->op->more->operands : NULL;
    if (!o)
        return false;
    if (n->output_count > 0 && n->outputs[0] == value)
        return read_scale(g, n, &o->y, 0, out);
    for (int32_t i = 0; o->step && o->x[0].at + i < n->input_count; i += o->step)
        if (n->inputs[o->x[0].at + i] == value)
            return read_scale(g, n, &o->x[0], i, out);
    for (int32_t k = 0; k < 2; k++)
        if (qs_node_input(n, o->x[k].at) == value && read_scale(g, n, &o->x[k], 0, out))
            return true;
    return false;
}

/* Whether a node only moves the elements of its input 0, as Transpose and Reshape do. */
static bool only_moves(const qs_graph *g, qs_id node) {
    const qs_node *n = &g->nodes[node];
    return (qs_node_traits(g, n) & QS_KEEPS_ONCE) && n->output_count == 1 &&
           n->outputs[0] != QS_NONE && (n->input_count == 1 || !qs_op_is_operand(n->op, 1));
}

/* The scale that the node states which computes the elements of `value`. */
static bool find_before(const qs_graph *g, qs_id value, scale *out) {
    for (qs_id v = value; g->values[v].producer != QS_NONE;) {
        const qs_id node = g->values[v].producer;
        if (find_scale(g, &g->nodes[node], v, out))
            return true;
        if (!only_moves(g, node) || g->nodes[node].inputs[0] == QS_NONE)
            return false;
        v = g->nodes[node].inputs[0];
    }
    return false;
}

/* Whether the outputs of a node consist of elements of its operands, which it does not look at. */
static bool moves(const qs_graph *g, const qs_node *n) {
    const uint32_t traits = qs_node_traits(g, n);
    return (traits & QS_KEEPS_ONCE) ||
           ((traits & QS_MOVES) && !(traits & (QS_NEEDS_LAST | QS_TAKES_LAST)) &&
            !n->op->setting_inputs);
}

static bool reads_operand(const qs_node *n, qs_id value) {
    for (int32_t i = 0; i < n->input_count; i++)
        if (n->inputs[i] == value && qs_op_is_operand(n->op, i))
            return true;
    return false;
}

/* The scale that a node states which reads `value`, or what others make of it that move it. */
static bool find_behind(const qs_graph *g, qs_id value, scale *out) {
    for (size_t k = 0; k < g->order_count; k++) {
        const qs_node *n = &g->nodes[g->order[k]];
        if (find_scale(g, n, value, out))
            return true;
        if (n->op && moves(g, n) && n->output_count == 1 && reads_operand(n, value))
            value = n->outputs[0];
    }
    return false;
}

int qsim_model_scale(const qsim_model *model, const char *tensor, double *scale_out,
                     int64_t *zero_point, qsim_error *error) {
    qs_error_clear(error);
    if (!model || !tensor || !scale_out || !zero_point)
        return qs_fail_missing(error, "scale");
    const qs_graph *g = model->graph;
    const qs_id value = qs_graph_find(g, tensor);
    scale found;
    if (value == QS_NONE || qs_is_real(g->values[value].dtype) ||
        (!find_before(g, value, &found) && !find_behind(g, value, &found)))
        return qs_fail(error, QSIM_E_NOT_FOUND,
                       "%s: no operator has one scale for a tensor '%.100s'", model->name, tensor);
    *scale_out = found.scale;
    *zero_point = (int64_t)found.zero_point;
    return QSIM_OK;
}

/* ---- inputs ---- */

static int refuse(const qs_pass *p, qs_id node, qs_id value, const char *what) {
    const qs_graph *g = p->graph;
    const char *name = g->values[value].name;
    if (node == QS_NONE)
        return qs_fail(p->error, QSIM_E_UNSUPPORTED, "%s: %s '%.100s' is computed by no node",
                       p->model, what, name);
    return qs_node_fail(p->error, QSIM_E_UNSUPPORTED, p->model, &g->nodes[node],
                        "%s '%.100s' cannot be integers: it is not %s by one scale", what, name,
                        g->values[value].is_output ? "dequantized" : "quantized");
}

static void set_integers(qs_graph *g, qs_id value, int32_t dtype) {
    qs_value *v = &g->values[value];
    v->dtype = dtype;
    v->declared = false;
    v->source = (qs_span){NULL, 0};
}

/* Makes `from`, and all that nodes up to `to` move its elements to, integers. */
static void become_integers(qs_graph *g, qs_id from, qs_id to, int32_t dtype) {
    for (qs_id v = to; v != from; v = g->nodes[g->values[v].producer].inputs[0])
        set_integers(g, v, dtype);
    set_integers(g, from, dtype);
}

/*
 * Values in place of others, by id of the others; QS_NONE: they stay. A pass notes them and changes
 * nodes at its end, so that it walks over each node's inputs and outputs once.
 */
typedef struct rename {
    qs_id read; /* what the readers of the value read */
    qs_id made; /* what its producer makes */
} rename;

/* Applies renames of values 0 to `values` - 1 to nodes 0 to `nodes` - 1. */
static void apply(qs_pass *p, const rename *renames, size_t values, size_t nodes) {
    qs_graph *g = p->graph;
    for (size_t k = 0; k < nodes; k++) {
        const qs_node *n = &g->nodes[k];
        for (int32_t i = 0; i < n->input_count && !n->removed; i++) {
            const qs_id x = n->inputs[i];
            if (x != QS_NONE && (size_t)x < values && renames[x].read != QS_NONE)
                qs_node_set_input(g, (qs_id)k, i, renames[x].read);
        }
        for (int32_t i = 0; i < n->output_count && !n->removed; i++) {
            const qs_id y = n->outputs[i];
            if (y != QS_NONE && (size_t)y < values && renames[y].made != QS_NONE)
                qs_pass_set_output(p, (qs_id)k, i, renames[y].made);
        }
    }
}

/* How far the elements of inputs are followed; both by value id. */
typedef struct flow {
    qs_id *from;  /* the input whose elements the value holds, moved or not; or QS_NONE */
    qs_id *first; /* of an input: the first node that quantizes its elements; or QS_NONE */
} flow;

/*
 * The input whose elements a node reads; or QS_NONE. *alone: all its operands hold elements of this
 * one, and it reads them as operands only.
 */
static qs_id source_of(const flow *f, const qs_node *n, bool *alone) {
    qs_id source = QS_NONE;
    *alone = true;
    for (int32_t i = 0; i < n->input_count; i++) {
        const qs_id from = n->inputs[i] == QS_NONE ? QS_NONE : f->from[n->inputs[i]];
        const bool operand = n->inputs[i] != QS_NONE && qs_op_is_operand(n->op, i);
        *alone &= operand == (from != QS_NONE) && (source == QS_NONE || from == source || !operand);
        source = from == QS_NONE ? source : from;
    }
    return source;
}

/* Whether the nodes quantize by the same scale and zero point to the same type. */
static bool quantize_alike(const qs_graph *g, const qs_node *n, const qs_node *m) {
    scale a, b;
    return find_scale(g, n, n->outputs[0], &a) && find_scale(g, m, m->outputs[0], &b) &&
           a.scale == b.scale && a.zero_point == b.zero_point &&
           g->values[n->outputs[0]].dtype == g->values[m->outputs[0]].dtype;
}

/* Follows the elements of inputs through a node; refuses one that computes with floats. */
static int follow(const qs_pass *p, const flow *f, qs_id node) {
    const qs_graph *g = p->graph;
    const qs_node *n = &g->nodes[node];
    bool alone, fits;
    const qs_id source = source_of(f, n, &alone);
    if (source == QS_NONE)
        return QSIM_OK;
    fits = alone && !g->values[source].is_output;
    for (int32_t i = 0; i < n->output_count; i++)
        fits = fits && n->outputs[i] != QS_NONE && !g->values[n->outputs[i]].is_output;
    if (fits && moves(g, n)) {
        for (int32_t i = 0; i < n->output_count; i++)
            f->from[n->outputs[i]] = source;
        return QSIM_OK;
    }
    fits = fits && (qs_node_traits(g, n) & QS_QUANTIZES);
    if (fits && f->first[source] == QS_NONE)
        f->first[source] = node;
    fits = fits && quantize_alike(g, n, &g->nodes[f->first[source]]);
    return fits ? QSIM_OK : refuse(p, node, source, "input");
}

/* Leaves out the nodes that quantize inputs; all that moves their elements moves integers. */
static void take_followed(qs_graph *g, const qs_uses *uses, const flow *f, rename *renames) {
    for (size_t k = 0; k < g->order_count; k++) {
        const qs_node *n = &g->nodes[g->order[k]];
        const qs_id x = n->input_count > 0 ? n->inputs[0] : QS_NONE;
        if (x == QS_NONE || f->from[x] == QS_NONE || !(qs_node_traits(g, n) & QS_QUANTIZES))
            continue;
        renames[n->outputs[0]].read = x;
        qs_graph_remove_node(g, g->order[k]);
    }
    for (size_t v = 0; v < uses->values; v++) {
        const qs_id first = f->from[v] == QS_NONE ? QS_NONE : f->first[f->from[v]];
        if (first != QS_NONE)
            set_integers(g, (qs_id)v, g->values[g->nodes[first].outputs[0]].dtype);
    }
}

/* Inputs that nodes quantize, each by one scale, become what these make. */
static int take_inputs(qs_pass *p, const qs_uses *uses, rename *renames) {
    qs_graph *g = p->graph;
    const flow f = {.from = qs_alloc(p->ctx, uses->values, sizeof(qs_id)),
                    .first = qs_alloc(p->ctx, uses->values, sizeof(qs_id))};
    int code = f.from && f.first ? QSIM_OK : qs_pass_no_memory(p);
    for (size_t v = 0; v < uses->values && !code; v++)
        f.from[v] = f.first[v] = QS_NONE;
    for (size_t i = 0; i < g->input_count && !code; i++)
        if (qs_is_real(g->values[g->inputs[i]].dtype))
            f.from[g->inputs[i]] = g->inputs[i];
    for (size_t k = 0; k < g->order_count && !code; k++)
        code = follow(p, &f, g->order[k]);
    if (!code)
        take_followed(g, uses, &f, renames);
    qs_free(p->ctx, f.from);
    qs_free(p->ctx, f.first);
    return code;
}

/* ---- outputs ---- */

/* The tensor whose elements an output has, before nodes that only move them for it. */
static qs_id begin_of_moves(const qs_graph *g, const qs_uses *uses, qs_id y) {
    if (uses->start[y] < uses->start[y + 1]) /* others read it as floats */
        return y;
    for (;;) {
        const qs_id node = g->values[y].producer;
        if (node == QS_NONE || !only_moves(g, node) ||
            qs_only_reader(g, uses, g->nodes[node].inputs[0]) == QS_NONE)
            return y;
        y = g->nodes[node].inputs[0];
    }
}

/* The first node that dequantizes an activation in 8 or 16 bits; QS_NONE: there is none. */
static qs_id find_dequantizing(const qs_graph *g) {
    for (size_t k = 0; k < g->order_count; k++) {
        const qs_node *n = &g->nodes[g->order[k]];
        if (!(qs_node_traits(g, n) & QS_DEQUANTIZES))
            continue;
        const qs_value *x = &g->values[n->inputs[0]];
        if (!x->data && x->dtype >= QSIM_UINT8 && x->dtype <= QSIM_INT16)
            return g->order[k];
    }
    return QS_NONE;
}

/*
 * Quantizes an output of Softmax, in the type of the model's activations. Its elements are from 0
 * to 1 whatever the data: the codes stand for 0, 1 / 2^bits ... 1 - 1 / 2^bits. `like` is a node
 * that dequantizes: it has the domain that this type needs.
 */
static int quantize_shares(qs_pass *p, qs_id y, qs_id like, rename *renames) {
    qs_graph *g = p->graph;
    const int32_t dtype = g->values[g->nodes[like].inputs[0]].dtype;
    int32_t low = 0, high = 0;
    (void)qsim_dtype_limits(dtype, 0, &low, &high);
    const float step = 1.0f / (float)(high - low + 1);
    const int16_t low16 = (int16_t)low;
    const int8_t low8 = (int8_t)low;
    const qs_id in[3] = {
        qs_pass_value(p, y), qs_pass_const(p, QSIM_FLOAT, 0, NULL, &step),
        qs_pass_const(p, dtype, 0, NULL, high > 255 ? (const void *)&low16 : (const void *)&low8)};
    if (in[0] < 0 || in[1] < 0 || in[2] < 0)
        return QSIM_E_NOMEM;
    renames[y] = (rename){in[0], in[0]};
    become_integers(g, y, y, dtype);
    const qs_id made =
        qs_pass_node(p, g->nodes[like].domain, "QuantizeLinear", "", 0, in, 3, &y, 1);
    return made < 0 ? made : QSIM_OK;
}

/* An output that a node dequantizes becomes what that node reads; one of Softmax is quantized. */
static int take_output(qs_pass *p, const qs_uses *uses, qs_id y, qs_id like, rename *renames) {
    qs_graph *g = p->graph;
    const qs_id begin = begin_of_moves(g, uses, y), node = g->values[begin].producer;
    scale ignored;
    if (node == QS_NONE)
        return refuse(p, node, y, "output");
    const qs_node *n = &g->nodes[node];
    if (like != QS_NONE && g->values[y].dtype == QSIM_FLOAT && qs_node_traits(g, n) & QS_SOFTMAX)
        return quantize_shares(p, y, like, renames);
    const qs_id x = n->inputs[0];
    if (!(qs_node_traits(g, n) & QS_DEQUANTIZES) || !find_scale(g, n, x, &ignored) ||
        g->values[x].is_output || g->values[x].producer == QS_NONE || renames[x].made != QS_NONE)
        return refuse(p, node, y, "output");
    if (uses->start[y] < uses->start[y + 1]) {
        const qs_id floats = qs_pass_value(p, y);
        if (floats < 0)
            return floats;
        renames[y] = (rename){floats, floats};
    } else {
        qs_graph_remove_node(g, node);
    }
    become_integers(g, begin, y, g->values[x].dtype);
    renames[x] = (rename){begin, begin};
    return QSIM_OK;
}

static int take_outputs(qs_pass *p, const qs_uses *uses, rename *renames) {
    const qs_graph *g = p->graph;
    const qs_id like = find_dequantizing(g);
    int code = QSIM_OK;
    for (size_t i = 0; i < g->output_count && !code; i++)
        if (qs_is_real(g->values[g->outputs[i]].dtype))
            code = take_output(p, uses, g->outputs[i], like, renames);
    return code;
}

static int with_renames(qs_pass *p, int (*all)(qs_pass *p, const qs_uses *uses, rename *renames)) {
    const size_t nodes = p->graph->node_count;
    qs_uses uses;
    if (qs_graph_uses(p->graph, &uses))
        return qs_pass_no_memory(p);
    rename *renames = qs_alloc(p->ctx, uses.values, sizeof(*renames));
    for (size_t v = 0; v < uses.values && renames; v++)
        renames[v] = (rename){QS_NONE, QS_NONE};
    int code = renames ? all(p, &uses, renames) : qs_pass_no_memory(p);
    if (!code)
        apply(p, renames, uses.values, nodes);
    qs_free(p->ctx, renames);
    qs_uses_free(p->graph, &uses);
    return code ? code : qs_pass_finish(p);
}

static int take(qs_pass *p, int32_t which) {
    int code = QSIM_OK;
    if (which & QSIM_INTEGER_INPUTS)
        code = with_renames(p, take_inputs);
    if (!code && which & QSIM_INTEGER_OUTPUTS)
        code = with_renames(p, take_outputs);
    return code ? code : qs_pass_names(p);
}

int qsim_model_integer_io(const qsim_model *model, int32_t which, qsim_model **out,
                          qsim_error *error) {
    const bool valid = which > 0 && which <= (QSIM_INTEGER_INPUTS | QSIM_INTEGER_OUTPUTS);
    return qs_pass_derive(valid ? model : NULL, "integers", take, which, out, error);
}
