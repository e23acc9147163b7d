/* SPDX-License-Identifier: MIT */
#include "op/elementwise/pairs.h"

#include "op/broadcast.h"

typedef struct pair_params {
    qs_dense dense;
    qs_types_fn of_types; /* in place of dense */
    int32_t types[2];
    bool swapped; /* a of `dense` is input 1 */
    qs_broadcast broadcast;
} pair_params;

/* ---- broadcasting before version 7 ---- */

const qs_attr_rule qs_legacy_attrs[3] = {{"axis", QSIM_ATTR_INT, 1, 6},
                                         {"broadcast", QSIM_ATTR_INT, 1, 6},
                                         {"consumed_inputs", QSIM_ATTR_INTS, 1, 5}};

QS_COLD bool qs_legacy_operand(const qs_node *n, const qs_value *a, const qs_value *b,
                               qs_value *wide, qs_dim dims[QSIM_MAX_RANK]) {
    *wide = *b;
    if (!qs_node_int(n, "broadcast", 0) || a->rank < 0 || b->rank < 0)
        return true;
    int64_t axis = qs_node_int(n, "axis", (int64_t)a->rank - b->rank);
    axis = axis < 0 ? axis + a->rank : axis;
    if (axis < 0 || axis > a->rank - b->rank)
        return false;
    wide->rank = a->rank - (int32_t)axis;
    wide->dims = dims;
    for (int32_t i = 0; i < wide->rank; i++)
        dims[i] = i < b->rank ? b->dims[i] : (qs_dim){1, NULL};
    return true;
}

QS_COLD static int upgrade_legacy(qs_graph *g, qs_id node, int32_t to, qsim_error *error) {
    qs_node *n = &g->nodes[node];
    qs_value wide;
    qs_dim dims[QSIM_MAX_RANK];
    int64_t axes[QSIM_MAX_RANK], count;
    if (n->version >= 7 || to < 7)
        return QSIM_OK;
    const qs_value *b = &g->values[n->inputs[1]];
    int32_t rank = b->rank;
    bool fits = qs_legacy_operand(n, &g->values[n->inputs[0]], b, &wide, dims);
    if (!fits || (qs_node_attr(n, "axis") && rank < 0))
        return qs_fail(error, QSIM_E_UNSUPPORTED,
                       "the axis of a broadcast of unknown rank cannot be upgraded (node '%s', %s)",
                       n->name, n->op_type);
    qs_node_drop_attr(g, node, "broadcast");
    qs_node_drop_attr(g, node, "axis");
    if (wide.rank == rank)
        return QSIM_OK;
    count = wide.rank - rank;
    for (int64_t i = 0; i < count; i++)
        axes[i] = rank + i;
    return qs_upgrade_unsqueeze(g, node, to, axes, count, error);
}

const qs_op_more qs_legacy_more = {QS_HISTORY(.upgrade = upgrade_legacy)};

/* ---- rules and steps ---- */

QS_COLD int qs_infer_pair_of(qs_infer *x, int32_t dtype, const qs_value *b) {
    int32_t rank;
    qs_dim dims[QSIM_MAX_RANK];
    int code = qs_infer_broadcast(x, x->in[0], b, &rank, dims);
    return code ? code : qs_infer_out(x, 0, dtype, rank, dims);
}

QS_COLD int qs_infer_pair(qs_infer *x, int32_t dtype) {
    qs_value wide;
    qs_dim dims[QSIM_MAX_RANK];
    if (!qs_legacy_operand(x->node, x->in[0], x->in[1], &wide, dims))
        return qs_infer_fail(x, QSIM_E_SHAPE, "rank %d does not lie within rank %d at this axis",
                             (int)x->in[1]->rank, (int)x->in[0]->rank);
    return qs_infer_pair_of(x, dtype, &wide);
}

static void pair_row(const void *arg, const void *a, const void *b, void *y, size_t n) {
    const pair_params *p = arg;
    const qs_loops *l = &p->broadcast.loops;
    if (p->of_types)
        p->of_types(p->types, a, l->inner_a, b, l->inner_b, y, n);
    else if (p->swapped)
        qs_dense_run(&p->dense, b, l->inner_b, a, l->inner_a, y, n);
    else
        qs_dense_run(&p->dense, a, l->inner_a, b, l->inner_b, y, n);
}

static void run_pair(const qs_step *s, const qs_frame *f) {
    const pair_params *p = s->params;
    qs_broadcast_run(&p->broadcast, f->ctx, qs_step_in(s, f, 0), qs_step_in(s, f, 1),
                     qs_step_out(s, f, 0), p);
}

/* b: input 1, maybe with another shape. */
QS_COLD static int lower_of(qs_lower *l, const qs_dense_fns *fns, qs_types_fn of_types,
                            const qs_value *b) {
    const qs_value *a = qs_lower_in(l, 0), *y = qs_lower_out(l, 0);
    pair_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    if (fns)
        p->dense = qs_dense_of(fns, a->dtype);
    p->of_types = of_types;
    p->types[0] = a->dtype;
    p->types[1] = b->dtype;
    p->broadcast.fn = pair_row;
    p->broadcast.size_a = qs_dtype_bytes(a->dtype);
    p->broadcast.size_b = qs_dtype_bytes(b->dtype);
    p->broadcast.size_y = qs_dtype_bytes(y->dtype);
    p->broadcast.grain = QS_GRAIN / 8;
    qs_loops_make(&p->broadcast.loops, a, b, y);
    qs_broadcast_spread(&p->broadcast);
    l->step->run = run_pair;
    return QSIM_OK;
}

QS_COLD static int lower(qs_lower *l, const qs_dense_fns *fns, qs_types_fn of_types) {
    qs_value wide;
    qs_dim dims[QSIM_MAX_RANK];
    (void)qs_legacy_operand(l->node, qs_lower_in(l, 0), qs_lower_in(l, 1), &wide, dims);
    return lower_of(l, fns, of_types, &wide);
}

QS_COLD int qs_lower_pair(qs_lower *l, const qs_dense_fns *fns) {
    return lower(l, fns, NULL);
}

QS_COLD int qs_lower_swapped(qs_lower *l, const qs_dense_fns *fns) {
    const int code = lower(l, fns, NULL);
    if (!code)
        ((pair_params *)l->step->params)->swapped = true;
    return code;
}

QS_COLD int qs_lower_types(qs_lower *l, qs_types_fn of_types) {
    return lower(l, NULL, of_types);
}

QS_COLD int qs_lower_pair_of(qs_lower *l, const qs_dense_fns *fns, const qs_value *b) {
    return lower_of(l, fns, NULL, b);
}
