/* SPDX-License-Identifier: MIT */
/*
 * Floats in place of QuantizeLinear and DequantizeLinear. A pair cuts values off at the ends of its
 * range. If the range ends at zero, that is an activation such as Relu which quantizing has
 * absorbed, and a Clip takes its place. Any other range comes from calibration.
 */
#include "ptq/conversion.h"

#include "base/ctx.h"
#include "op/rules.h"

#include <qsim/quant.h>

typedef struct floats {
    qs_pass *p;
    qs_graph *g;
    qs_eval eval;
    bool *least; /* by value: no element is below zero */
    bool *given; /* by value: holds an input's elements, moved or not, or is a constant */
} floats;

/* Whether no element of a node's results is below zero, as far as its operands tell. */
static bool is_least(const floats *f, const qs_node *n) {
    const uint32_t traits = qs_node_traits(f->g, n);
    double lo, hi;
    if (qs_node_bounds(f->g, n, &lo, &hi))
        return lo >= 0;
    if (!(traits & (QS_MOVES | QS_ADDS | QS_SCALES)) && n->op->kind != QS_KIND_POOL)
        return traits & QS_SOFTMAX;
    for (int32_t i = 0; i < n->input_count; i++)
        if (n->inputs[i] != QS_NONE && qs_op_is_operand(n->op, i) && !f->least[n->inputs[i]])
            return false;
    return true;
}

/* A constant that DequantizeLinear reads becomes floats, with the name that it has had once. */
static int fold(floats *f, qs_id id) {
    const qs_id y = f->g->nodes[id].outputs[0];
    const char *old = f->g->values[y].name;
    const char *name = qs_convert_cut(f->g, old, "_DequantizeLinear_Output");
    bool done;
    f->eval.values = f->g->values; /* which move when values are added */
    const int code = qs_eval_const(&f->eval, id, NULL, SIZE_MAX, &done);
    if (code || !done)
        return code ? code : qs_convert_refuse(f->p, id, "its floats are too large");
    qs_graph_remove_node(f->g, id);
    if (!name || (qs_graph_find(f->g, name) == QS_NONE && qs_graph_rename(f->g, y, name)))
        return QSIM_E_NOMEM;
    return QSIM_OK;
}

/* Replaces a DequantizeLinear by a Clip of x to `ends`, or by an Identity. */
static int put(floats *f, qs_id id, qs_id x, const float *ends) {
    const qs_id y = f->g->nodes[id].outputs[0];
    qs_id in[3] = {x};
    for (int32_t i = 0; ends && i < 2; i++)
        if ((in[1 + i] = qs_pass_const(f->p, QSIM_FLOAT, 0, NULL, &ends[i])) < 0)
            return in[1 + i];
    qs_graph_remove_node(f->g, id);
    f->least[y] = ends ? ends[0] >= 0 : f->least[x];
    const qs_id made = qs_pass_node(f->p, "", ends ? "Clip" : "Identity", f->g->nodes[id].name, 0,
                                    in, ends ? 3 : 1, &y, 1);
    return made < 0 ? made : QSIM_OK;
}

/* Leaves a pair out: `q` is the node that quantizes, `id` the one that dequantizes. */
static int leave_out(floats *f, const qs_node *q, qs_id id) {
    const qs_graph *g = f->g;
    const qs_id x = q->inputs[0], by = qs_node_input(q, 2);
    int32_t low = 0, high = 0;
    double zero = 0, scale = 0;
    if (f->least[x])
        return put(f, id, x, NULL);
    if (qsim_dtype_limits(g->values[q->outputs[0]].dtype, 0, &low, &high) ||
        (by != QS_NONE && !qs_const_scalar(g, by, &zero)) ||
        !qs_const_scalar(g, q->inputs[1], &scale))
        return qs_convert_refuse(f->p, id, "its scale and zero point are not one constant each");
    const int32_t z = (int32_t)zero;
    const float s = (float)scale, ends[2] = {(float)(low - z) * s, (float)(high - z) * s};
    return put(f, id, x, low == z || high == z ? ends : NULL);
}

static int dequantize(floats *f, qs_id id) {
    const qs_graph *g = f->g;
    const qs_node *n = &g->nodes[id];
    const qs_id from = g->values[n->inputs[0]].producer;
    if (qs_node_is_constant(g, n, 0, n->input_count))
        return fold(f, id);
    const qs_node *q = from == QS_NONE ? n : &g->nodes[from];
    if (q->op->traits & QS_QUANTIZES && q->output_count == 1 &&
        qs_convert_same(g, q->inputs[1], n->inputs[1]) &&
        qs_convert_same(g, qs_node_input(q, 2), qs_node_input(n, 2)))
        return leave_out(f, q, id);
    return f->given[n->inputs[0]]
               ? QSIM_OK
               : qs_convert_refuse(f->p, id, "nodes compute the integers that it reads");
}

static int visit(floats *f, qs_id id) {
    const qs_node *n = &f->g->nodes[id];
    const int code = qs_go_on(f->p->ctx, f->p->model, f->p->error);
    if (code || qs_node_traits(f->g, n) & QS_DEQUANTIZES)
        return code ? code : dequantize(f, id);
    const bool least = is_least(f, n), moves = qs_node_traits(f->g, n) & QS_MOVES;
    const bool given = moves && n->inputs[0] != QS_NONE && f->given[n->inputs[0]];
    for (int32_t i = 0; i < n->output_count; i++)
        if (n->outputs[i] != QS_NONE) {
            f->least[n->outputs[i]] = least;
            f->given[n->outputs[i]] = given;
        }
    return QSIM_OK;
}

int qs_convert_floats(qs_pass *p) {
    qs_graph *g = p->graph;
    const size_t count = g->order_count;
    floats f = {.p = p,
                .g = g,
                .eval = {.ctx = p->ctx,
                         .graph = g,
                         .address = qs_eval_addresses(&g->arena, g),
                         .arena = &g->arena,
                         .model = p->model,
                         .error = p->error},
                .least = qs_arena_alloc(&g->arena, g->value_count + 1, sizeof(bool)),
                .given = qs_arena_alloc(&g->arena, g->value_count + 1, sizeof(bool))};
    int code = f.eval.address && f.least && f.given ? QSIM_OK : QSIM_E_NOMEM;
    for (size_t v = 0; v < g->value_count && !code; v++)
        f.given[v] = g->values[v].producer == QS_NONE;
    for (size_t k = 0; k < count && !code; k++)
        code = visit(&f, g->order[k]);
    if (!code)
        code = qs_graph_sort(g, p->error);
    if (!code)
        code = qs_pass_identities(p);
    return code ? code : qs_pass_finish(p);
}
