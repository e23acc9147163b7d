/* SPDX-License-Identifier: MIT */
/*
 * Half precision: nodes that compute in float16 or bfloat16 compute in float, and values between
 * them stay floats. A value is rounded to its half type where it is an output of the graph, and
 * where its reader needs the exact number: an operator on its bits, one whose result has another
 * type (a comparison, a quantized tensor) or a discontinuous one (Round). Operators that only move
 * or choose elements work on either type. Before that, integers are cast for operators that compute
 * them as floats.
 */
#include "pass/pass.h"
#include "tensor/minifloat.h"

typedef struct halves {
    qs_pass *p;
    qs_graph *g;
    /* By value of the graph before the pass: */
    int32_t *type;  /* float16, bfloat16, or 0 */
    qs_id *wide;    /* the value as a float; QS_NONE: not made yet, as below */
    qs_id *rounded; /* the value as a float that was rounded to the half type */
    qs_id *narrow;  /* the value in its half type */
    bool *computed; /* the producer now makes a float */
    bool *exact;    /* by node: the operator takes the half type */
    size_t values;
} halves;

/* ---- twins ---- */

qs_id qs_pass_cast(qs_pass *p, qs_id from, int32_t to, qs_id y) {
    qs_graph *g = p->graph;
    const int32_t version = qs_graph_import(g, "") >= 6 ? 0 : 13;
    g->values[y].dtype = to;
    const qs_id id = qs_pass_node(p, "", "Cast", "", version, &from, 1, &y, 1);
    if (id < 0)
        return id;
    return qs_node_set_int(g, id, "to", to) ? qs_pass_no_memory(p) : y;
}

static qs_id new_cast(qs_pass *p, qs_id from, int32_t to) {
    const qs_id y = qs_pass_value(p, from);
    return y < 0 ? y : qs_pass_cast(p, from, to, y);
}

/* Converts a constant in half precision to floats. */
static qs_id widen_const(halves *h, qs_id value) {
    const qs_const *c = h->g->values[value].data;
    const bool brain = c->dtype == QSIM_BFLOAT16;
    const uint8_t *from = c->data;
    float *to = qs_arena_alloc(&h->g->arena, c->elements + 1, sizeof(*to));
    if (!to)
        return qs_pass_no_memory(h->p);
    for (size_t i = 0; i < c->elements; i++) {
        uint16_t bits;
        memcpy(&bits, from + 2 * i, sizeof(bits));
        to[i] = brain ? qs_brain_value(bits) : qs_half_value(bits);
    }
    return qs_pass_placed_const(h->p, QSIM_FLOAT, c->rank, c->dims, to);
}

static qs_id wide(halves *h, qs_id v) {
    if (h->wide[v] == QS_NONE)
        h->wide[v] = h->g->values[v].data ? widen_const(h, v) : new_cast(h->p, v, QSIM_FLOAT);
    return h->wide[v];
}

static qs_id narrow(halves *h, qs_id v) {
    if (h->narrow[v] == QS_NONE && h->wide[v] != v)
        h->narrow[v] = qs_pass_cast(h->p, h->wide[v], h->type[v], v);
    else if (h->narrow[v] == QS_NONE)
        h->narrow[v] = new_cast(h->p, v, h->type[v]);
    return h->narrow[v];
}

static qs_id rounded(halves *h, qs_id v) {
    if (!h->computed[v])
        return wide(h, v);
    if (h->rounded[v] == QS_NONE) {
        const qs_id half = narrow(h, v);
        h->rounded[v] = half < 0 ? half : new_cast(h->p, half, QSIM_FLOAT);
    }
    return h->rounded[v];
}

/* ---- nodes ---- */

static bool is_half_value(const halves *h, qs_id v) {
    return v != QS_NONE && (size_t)v < h->values && h->type[v];
}

typedef qs_id (*twin_fn)(halves *h, qs_id v);

static int replace_inputs(halves *h, qs_id id, twin_fn twin) {
    for (int32_t i = 0; i < h->g->nodes[id].input_count; i++) {
        const qs_id v = h->g->nodes[id].inputs[i];
        if (!is_half_value(h, v))
            continue;
        const qs_id other = twin(h, v);
        if (other < 0)
            return other;
        if (other != v)
            qs_node_set_input(h->g, id, i, other);
    }
    return QSIM_OK;
}

/*
 * Makes output `index` a float. If it is an output of the graph, the node gets another value, and a
 * Cast makes the output later.
 */
static int widen_output(halves *h, qs_id id, int32_t index) {
    const qs_id v = h->g->nodes[id].outputs[index];
    qs_id made = v;
    if (h->g->values[v].is_output) {
        made = qs_pass_value(h->p, v);
        if (made < 0)
            return made;
        qs_pass_set_output(h->p, id, index, made);
    }
    qs_value *y = &h->g->values[made];
    y->dtype = QSIM_FLOAT;
    y->declared = false;
    y->source = (qs_span){NULL, 0};
    h->wide[v] = made;
    h->narrow[v] = QS_NONE;
    h->computed[v] = true;
    return QSIM_OK;
}

/* Sets attributes that name a half type as the type of the result to float. */
static int widen_attrs(halves *h, qs_id id) {
    static const char *const names[] = {"dtype", "output_dtype", "output_datatype", "precision"};
    for (size_t i = 0; i < QS_COUNT(names); i++) {
        const qs_attr *a = qs_node_attr(&h->g->nodes[id], names[i]);
        if (a && a->type == QSIM_ATTR_INT && (a->u.i == QSIM_FLOAT16 || a->u.i == QSIM_BFLOAT16) &&
            qs_node_set_int(h->g, id, names[i], QSIM_FLOAT))
            return qs_pass_no_memory(h->p);
    }
    return QSIM_OK;
}

static int widen(halves *h, qs_id id) {
    const qs_graph *g = h->g;
    bool exact = (qs_node_traits(g, &g->nodes[id]) & QS_JUMPS) != 0;
    for (int32_t i = 0; i < g->nodes[id].output_count; i++) {
        const qs_id v = g->nodes[id].outputs[i];
        exact = exact || (v != QS_NONE && !h->type[v] && g->values[v].dtype != QSIM_FLOAT);
    }
    int code = replace_inputs(h, id, exact ? rounded : wide);
    if (!code)
        code = widen_attrs(h, id);
    for (int32_t i = 0; i < g->nodes[id].output_count && !code; i++)
        if (is_half_value(h, g->nodes[id].outputs[i]))
            code = widen_output(h, id, i);
    return code;
}

/*
 * Whether a node casts a float to a half type: such a Cast is dropped, and the value stays a float
 * until a reader needs it rounded.
 */
static bool rounds_float(const halves *h, const qs_node *n) {
    const qs_id x = qs_node_input(n, 0);
    if (!qs_node_is_onnx(n, "Cast") || !is_half_value(h, n->outputs[0]))
        return false;
    return is_half_value(h, x) ? h->computed[x] && h->type[x] == h->type[n->outputs[0]]
                               : h->g->values[x].dtype == QSIM_FLOAT;
}

static int drop_cast(halves *h, qs_id id) {
    qs_node *n = &h->g->nodes[id];
    n->op_type = "Identity";
    n->attr_count = 0;
    n->changed = true;
    const int code = qs_pass_resolve(h->p, id);
    return code ? code : widen(h, id);
}

/*
 * Whether the node also works on floats: it moves or chooses elements, and all its results have a
 * half type.
 */
static bool is_generic(const halves *h, const qs_node *n) {
    bool half = (qs_node_traits(h->g, n) & (QS_MOVES | QS_ELEMENTWISE)) && !qs_node_attr(n, "to");
    for (int32_t i = 0; i < n->output_count; i++)
        half = half && is_half_value(h, n->outputs[i]);
    return half;
}

static int convert_node(halves *h, qs_id id) {
    const qs_node *n = &h->g->nodes[id];
    bool half = false, computed = false;
    for (int32_t i = 0; i < n->input_count; i++) {
        const qs_id v = n->inputs[i];
        half = half || is_half_value(h, v);
        computed = computed || (is_half_value(h, v) && h->computed[v]);
    }
    if (rounds_float(h, n))
        return drop_cast(h, id);
    if (!half)
        return QSIM_OK;
    if (h->exact[id] && !(computed && is_generic(h, n)))
        return replace_inputs(h, id, narrow);
    return widen(h, id);
}

/* ---- integers ---- */

/* Whether the node's input is of an integer type that its row computes as integers_as. */
static bool takes_integers(const qs_pass *p, qs_id id) {
    const qs_graph *g = p->graph;
    const qs_node *n = &g->nodes[id];
    const qs_id x = qs_node_input(n, 0);
    qs_value out[1];
    qs_dim dims[1][QSIM_MAX_RANK];
    return x != QS_NONE && qs_op_takes_integers(n->op, g->values[x].dtype) &&
           qs_op_infer_exact(g, g->values, id, out, dims, p->model, NULL);
}

/* Adds a Cast before the node, and one after it if the result has the integers' type. */
static int convert_integers(qs_pass *p, qs_id id) {
    qs_graph *g = p->graph;
    const qs_id from = g->nodes[id].inputs[0], y = g->nodes[id].outputs[0];
    const int32_t to = g->nodes[id].op->integers_as;
    const qs_id x = new_cast(p, from, to);
    if (x < 0)
        return x;
    qs_node_set_input(g, id, 0, x);
    if (g->values[y].dtype != g->values[from].dtype)
        return QSIM_OK;
    const qs_id made = qs_pass_value(p, y);
    if (made < 0)
        return made;
    g->values[made].dtype = to;
    qs_pass_set_output(p, id, 0, made);
    return qs_pass_cast(p, made, g->values[y].dtype, y) < 0 ? QSIM_E_NOMEM : QSIM_OK;
}

static int convert_all_integers(qs_pass *p) {
    const size_t count = p->graph->order_count;
    bool any = false;
    int code = QSIM_OK;
    for (size_t k = 0; k < count && !code; k++)
        if (takes_integers(p, p->graph->order[k])) {
            any = true;
            code = convert_integers(p, p->graph->order[k]);
        }
    return any && !code ? qs_pass_finish(p) : code;
}

/* ---- the pass ---- */

/* Finds the nodes whose operators take half precision; called before any node is changed. */
static int find_exact(halves *h) {
    const qs_graph *g = h->g;
    size_t capacity = 1;
    for (size_t k = 0; k < g->order_count; k++)
        if ((size_t)g->nodes[g->order[k]].output_count > capacity)
            capacity = (size_t)g->nodes[g->order[k]].output_count;
    qs_value *out = qs_alloc(h->p->ctx, capacity, sizeof(*out));
    qs_dim(*dims)[QSIM_MAX_RANK] = qs_alloc(h->p->ctx, capacity, sizeof(*dims));
    for (size_t k = 0; out && dims && k < g->order_count; k++) {
        const qs_id id = g->order[k];
        bool half = false;
        for (int32_t i = 0; i < g->nodes[id].input_count; i++)
            half = half || is_half_value(h, g->nodes[id].inputs[i]);
        if (half)
            h->exact[id] = qs_node_has_subgraph(&g->nodes[id]) ||
                           !qs_op_infer_exact(g, g->values, id, out, dims, h->p->model, NULL);
    }
    const bool done = out && dims;
    qs_free(h->p->ctx, dims);
    qs_free(h->p->ctx, out);
    return done ? QSIM_OK : qs_pass_no_memory(h->p);
}

static int convert_graph(halves *h) {
    qs_graph *g = h->g;
    const size_t count = g->order_count;
    for (size_t v = 0; v < h->values; v++) {
        h->type[v] = qs_is_half(g->values[v].dtype) ? g->values[v].dtype : 0;
        h->wide[v] = QS_NONE;
        h->rounded[v] = QS_NONE;
        h->narrow[v] = (qs_id)v;
    }
    int code = find_exact(h);
    for (size_t k = 0; k < count && !code; k++)
        code = convert_node(h, g->order[k]);
    for (size_t v = 0; v < h->values && !code; v++)
        if (h->computed[v] && g->values[v].is_output && narrow(h, (qs_id)v) < 0)
            code = QSIM_E_NOMEM;
    return code ? code : qs_pass_finish(h->p);
}

bool qs_graph_has_half(const qs_graph *g) {
    for (size_t v = 0; v < g->value_count; v++)
        if (qs_is_half(g->values[v].dtype))
            return true;
    return false;
}

int qs_pass_half(qs_pass *p) {
    qs_graph *g = p->graph;
    int code = convert_all_integers(p);
    if (code || !qs_graph_has_half(g))
        return code;
    const size_t values = g->value_count + 1, nodes = g->node_count + 1;
    halves h = {.p = p,
                .g = g,
                .type = qs_calloc(p->ctx, values, sizeof(*h.type)),
                .wide = qs_calloc(p->ctx, values, sizeof(*h.wide)),
                .rounded = qs_calloc(p->ctx, values, sizeof(*h.rounded)),
                .narrow = qs_calloc(p->ctx, values, sizeof(*h.narrow)),
                .computed = qs_calloc(p->ctx, values, sizeof(*h.computed)),
                .exact = qs_calloc(p->ctx, nodes, sizeof(*h.exact)),
                .values = g->value_count};
    const bool allocated = h.type && h.wide && h.rounded && h.narrow && h.computed && h.exact;
    code = allocated ? convert_graph(&h) : qs_pass_no_memory(p);
    qs_free(p->ctx, h.exact);
    qs_free(p->ctx, h.computed);
    qs_free(p->ctx, h.narrow);
    qs_free(p->ctx, h.rounded);
    qs_free(p->ctx, h.wide);
    qs_free(p->ctx, h.type);
    return code;
}
