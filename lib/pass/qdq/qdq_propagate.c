/* SPDX-License-Identifier: MIT */
/*
 * Propagates QuantizeLinear from after movement to before it: Q(reshape(v)) = reshape(Q(v)). Then
 * the producer of v can be matched, and a quarter of the bytes is moved.
 */
#include "pass/qdq/qdq.h"

/* Quantizes v as the target does. An earlier match may have done so already. */
static int quantize_input(qs_qdq *d, const qs_target *t, qs_id v, qs_quantized *x) {
    qs_graph *g = d->g;
    const qs_node *q = &g->nodes[t->node];
    const bool known = (size_t)v < d->values;
    const qs_id before = known ? d->quantized[v] : QS_NONE;
    *x = t->q;
    if (before != QS_NONE && g->nodes[before].inputs[1] == q->inputs[1] &&
        qs_node_input(&g->nodes[before], 2) == t->q.zp) {
        x->x = g->nodes[before].outputs[0];
        return QSIM_OK;
    }
    x->x = qs_pass_value(d->p, v);
    if (x->x < 0)
        return x->x;
    g->values[x->x].dtype = t->q.dtype;
    const qs_id in[3] = {v, q->inputs[1], t->q.zp};
    qs_id made = qs_pass_clone(d->p, t->node, q->domain, in, q->input_count, &x->x, 1);
    if (made < 0)
        return made;
    if (known)
        d->quantized[v] = made;
    return qs_pass_resolve(d->p, made);
}

/* Whether a value is a float that the session computes or gets as an input. */
static bool is_float(const qs_graph *g, qs_id v) {
    return v >= 0 && g->values[v].dtype == QSIM_FLOAT && !g->values[v].data;
}

/* Number of elements of `part`; axes that are unknown in `whole`, too, count as 1. -1: unknown. */
static int64_t elements(const qs_value *part, const qs_value *whole) {
    int64_t n = whole->rank < 0 || part->rank != whole->rank ? -1 : 1;
    for (int32_t i = 0; i < whole->rank && n >= 0; i++) {
        const bool open = part->dims[i].size < 0 && whole->dims[i].size < 0;
        if (!open && (part->dims[i].size < 0 || !qs_mul64(n, part->dims[i].size, &n)))
            n = -1;
    }
    return n;
}

/*
 * Whether only Slices read v, and together have at least as many elements: then quantizing v costs
 * no more than quantizing them.
 */
static bool is_only_sliced(const qs_qdq *d, qs_id v) {
    const qs_graph *g = d->g;
    int64_t sum = 0;
    if ((size_t)v >= d->values)
        return false;
    for (qs_id k = d->uses.start[v]; k < d->uses.start[v + 1]; k++) {
        const qs_node *n = &g->nodes[d->uses.nodes[k]];
        const int64_t part = strcmp(n->op_type, "Slice") != 0
                                 ? -1
                                 : elements(&g->values[n->outputs[0]], &g->values[v]);
        if (part < 0 || !qs_add64(sum, part, &sum))
            return false;
    }
    const int64_t all = elements(&g->values[v], &g->values[v]);
    return all >= 0 && sum >= all;
}

/*
 * Whether one node reads v, once. Graph outputs do not count as readers: asking for more outputs
 * must not change results.
 */
static bool is_read_once(const qs_qdq *d, qs_id v) {
    return (size_t)v < d->values && d->uses.start[v + 1] - d->uses.start[v] == 1;
}

static int quantize_operands(qs_qdq *d, const qs_target *t, bool *done) {
    const qs_node *n = &d->g->nodes[t->core];
    const int32_t count = n->input_count;
    qs_id *in = qs_arena_alloc(&d->g->arena, (size_t)count + 1, sizeof(*in));
    int code = in ? QSIM_OK : qs_pass_no_memory(d->p);
    for (int32_t i = 0; i < count && !code; i++) {
        qs_quantized x;
        code = quantize_input(d, t, d->g->nodes[t->core].inputs[i], &x);
        if (!code)
            in[i] = x.x;
    }
    *done = !code;
    if (code)
        return code;
    const qs_id made = qs_qdq_replace(d, t, "", "Concat", in, count, t->core);
    return made < 0 ? made : qs_pass_resolve(d->p, made);
}

int qs_qdq_propagate_q(qs_qdq *d, qs_target *t, bool *done) {
    const qs_graph *g = d->g;
    if (d->p->standard || t->bounded || t->core == QS_NONE)
        return QSIM_OK;
    const qs_node *n = &g->nodes[t->core];
    const qs_id v = n->inputs[0];
    if (qs_node_is_onnx(n, "Concat") && is_read_once(d, t->value))
        return quantize_operands(d, t, done);
    const bool slice = qs_node_is_onnx(n, "Slice") && is_only_sliced(d, v);
    if (!is_float(g, v) || !qs_qdq_is_movement(g, n) ||
        !(slice || ((qs_node_traits(g, n) & QS_KEEPS) && g->values[v].producer != QS_NONE)))
        return QSIM_OK;
    qs_quantized x;
    int code = quantize_input(d, t, v, &x);
    *done = !code;
    return code ? code : qs_qdq_move_integers(d, t, &x);
}
