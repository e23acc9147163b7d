/* SPDX-License-Identifier: MIT */
/* Sums, products, pools and concatenation of quantized tensors. */
#include "pass/qdq/qdq.h"

static bool core_is(const qs_qdq *d, const qs_target *t, const char *op_type) {
    return t->core != QS_NONE && qs_node_is_onnx(&d->g->nodes[t->core], op_type);
}

static const char *domain(const qs_qdq *d) {
    return d->p->standard ? "com.microsoft" : "qsim";
}

/* Whether the integer operator may be made. In files it is one of com.microsoft, without bounds. */
static bool may_contribute(const qs_qdq *d, const qs_target *t) {
    return !d->p->standard || (d->p->contributed && !t->bounded);
}

/* ---- Add, Mul ---- */

/*
 * Whether the result is a table of one tensor: a session makes a QTable of it, and a file keeps the
 * QDQ pairs.
 */
static bool is_table(const qs_qdq *d, const qs_quantized *a, const qs_quantized *b) {
    const qs_const *x = d->g->values[a->x].data, *y = d->g->values[b->x].data;
    return a->x == b->x || (x && x->elements == 1) || (y && y->elements == 1);
}

int qs_qdq_binary(qs_qdq *d, qs_target *t, bool *done) {
    bool add = core_is(d, t, "Add"), found;
    qs_quantized a, b;
    if (!may_contribute(d, t) || (!add && !core_is(d, t, "Mul")))
        return QSIM_OK;
    const qs_id x[2] = {d->g->nodes[t->core].inputs[0], d->g->nodes[t->core].inputs[1]};
    int code = qs_qdq_operand(d, x[0], &a, &found);
    if (code || !found)
        return code;
    code = qs_qdq_operand(d, x[1], &b, &found);
    if (code || !found ||
        (d->p->standard && (a.dtype != t->q.dtype || b.dtype != t->q.dtype || is_table(d, &a, &b))))
        return code;
    if (qs_qdq_zero_point(d, &a) < 0 || qs_qdq_zero_point(d, &b) < 0 ||
        qs_qdq_zero_point(d, &t->q) < 0)
        return QSIM_E_NOMEM;
    const qs_id in[8] = {a.x, a.scale, a.zp, b.x, b.scale, b.zp, t->q.scale, t->q.zp};
    const qs_id made =
        qs_qdq_replace(d, t, domain(d), add ? "QLinearAdd" : "QLinearMul", in, 8, QS_NONE);
    *done = true;
    return made < 0 ? made : qs_qdq_set_bounds(d, t, made);
}

/* ---- average pools ---- */

bool qs_is_global_mean(const qs_graph *g, const qs_node *n, bool *keep) {
    if (!qs_node_is_onnx(n, "ReduceMean"))
        return false;
    const int32_t rank = g->values[n->inputs[0]].rank;
    *keep = qs_node_int(n, "keepdims", 1) != 0;
    return rank >= 3 && qs_node_axes(g, n, rank) == (1u << rank) - 4;
}

/* The pool's node; negative: error. */
static qs_id emit_pool(qs_qdq *d, qs_target *t, qs_quantized *x, const char *op_type,
                       bool attributes) {
    if (qs_qdq_zero_point(d, x) < 0 || qs_qdq_zero_point(d, &t->q) < 0)
        return QSIM_E_NOMEM;
    const qs_id in[5] = {x->x, x->scale, x->zp, t->q.scale, t->q.zp};
    const qs_id made =
        qs_qdq_replace(d, t, domain(d), op_type, in, 5, attributes ? t->core : QS_NONE);
    const int code = made < 0 ? made : qs_qdq_set_bounds(d, t, made);
    return code ? code : made;
}

/* Adds a Flatten of [N,C,1,...] to [N,C] after the pool `made`. */
static int flatten(qs_qdq *d, qs_id made, int32_t rank) {
    qs_graph *g = d->g;
    qs_id y = g->nodes[made].outputs[0], pooled = qs_pass_value(d->p, y);
    qs_dim dims[QSIM_MAX_RANK] = {{0}};
    if (pooled < 0)
        return pooled;
    for (int32_t i = 0; i < rank; i++)
        dims[i].size = i < 2 && g->values[y].rank == 2 ? g->values[y].dims[i].size : 1;
    if (qs_value_set_shape(g, pooled, g->values[y].dtype, rank, dims))
        return qs_pass_no_memory(d->p);
    qs_pass_set_output(d->p, made, 0, pooled);
    qs_id node = qs_pass_node(d->p, "", "Flatten", "", 13, &pooled, 1, &y, 1);
    return node < 0 ? node : QSIM_OK;
}

int qs_qdq_pool(qs_qdq *d, qs_target *t, bool *done) {
    qs_quantized x;
    bool keep = true;
    if (!may_contribute(d, t) || t->core == QS_NONE)
        return QSIM_OK;
    bool window = core_is(d, t, "AveragePool"), global = core_is(d, t, "GlobalAveragePool");
    bool mean = !d->p->standard && qs_is_global_mean(d->g, &d->g->nodes[t->core], &keep);
    if ((!window && !global && !mean) || !qs_qdq_source(d, d->g->nodes[t->core].inputs[0], &x) ||
        (d->p->standard && x.dtype != t->q.dtype))
        return QSIM_OK;
    int32_t rank = d->g->values[x.x].rank;
    if (window && rank > 4)
        return QSIM_OK; /* averages over three axes of space stay float */
    const qs_id made =
        emit_pool(d, t, &x, window ? "QLinearAveragePool" : "QLinearGlobalAveragePool", window);
    *done = true;
    return made < 0 ? made : keep ? QSIM_OK : flatten(d, made, rank);
}

/* ---- Concat ---- */

int qs_qdq_concat(qs_qdq *d, qs_target *t, bool *done) {
    if (!core_is(d, t, "Concat") || t->bounded)
        return QSIM_OK;
    int32_t count = d->g->nodes[t->core].input_count;
    bool same = true;
    qs_id *in = qs_arena_alloc(&d->g->arena, (size_t)count * 4 + 2, sizeof(*in));
    qs_id *plain = in ? in + 3 * count + 2 : NULL;
    if (!in)
        return qs_pass_no_memory(d->p);
    for (int32_t i = 0; i < count; i++) {
        qs_quantized x;
        bool found;
        int code = qs_qdq_operand(d, d->g->nodes[t->core].inputs[i], &x, &found);
        if (code || !found || (d->p->standard && x.dtype != t->q.dtype))
            return code;
        if (qs_qdq_zero_point(d, &x) < 0)
            return QSIM_E_NOMEM;
        plain[i] = in[2 + 3 * i] = x.x;
        in[3 + 3 * i] = x.scale;
        in[4 + 3 * i] = x.zp;
        same &= qs_qdq_same(t, &x);
    }
    if (!same && !may_contribute(d, t))
        return QSIM_OK;
    if (qs_qdq_zero_point(d, &t->q) < 0)
        return QSIM_E_NOMEM;
    in[0] = t->q.scale;
    in[1] = t->q.zp;
    const qs_id made =
        same ? qs_qdq_replace(d, t, "", "Concat", plain, count, t->core)
             : qs_qdq_replace(d, t, domain(d), "QLinearConcat", in, 3 * count + 2, t->core);
    *done = true;
    return made < 0 ? made : qs_pass_resolve(d->p, made);
}

/* ---- Softmax ---- */

/* QLinearSoftmax gives the same bits as the three nodes, row by row, along the last axis only. */
int qs_qdq_softmax(qs_qdq *d, qs_target *t, bool *done) {
    qs_quantized x;
    if (d->p->standard || t->bounded || !core_is(d, t, "Softmax") ||
        !qs_qdq_source(d, d->g->nodes[t->core].inputs[0], &x))
        return QSIM_OK;
    const qs_node *n = &d->g->nodes[t->core];
    const int64_t version = n->version, rank = d->g->values[x.x].rank;
    int64_t axis = qs_node_int(n, "axis", version < 13 ? 1 : -1);
    axis += axis < 0 ? rank : 0;
    if (axis != rank - 1 || rank < 1)
        return QSIM_OK;
    if (qs_qdq_zero_point(d, &x) < 0 || qs_qdq_zero_point(d, &t->q) < 0)
        return QSIM_E_NOMEM;
    const qs_id in[5] = {x.x, x.scale, x.zp, t->q.scale, t->q.zp};
    const qs_id made = qs_qdq_replace(d, t, "qsim", "QLinearSoftmax", in, 5, QS_NONE);
    *done = true;
    if (made < 0)
        return made;
    if (qs_node_set_int(d->g, made, "axis", axis) || qs_node_set_int(d->g, made, "opset", version))
        return qs_pass_no_memory(d->p);
    return qs_pass_resolve(d->p, made);
}

/* ---- LayerNormalization ---- */

/*
 * The operator gives the same bits as the three nodes, row by row. Scale and bias have the length
 * of a row.
 */
int qs_qdq_layernorm(qs_qdq *d, qs_target *t, bool *done) {
    const qs_graph *g = d->g;
    qs_quantized x;
    if (d->p->standard || t->bounded || !core_is(d, t, "LayerNormalization") ||
        !qs_qdq_source(d, g->nodes[t->core].inputs[0], &x))
        return QSIM_OK;
    const qs_node *n = &g->nodes[t->core];
    const qs_value *v = &g->values[x.x];
    const int64_t row = v->rank > 0 ? v->dims[v->rank - 1].size : -1;
    const int64_t axis = qs_node_int(n, "axis", -1);
    bool fits = row > 0 && (axis == -1 || axis == v->rank - 1) &&
                qs_node_int(n, "stash_type", QSIM_FLOAT) == QSIM_FLOAT;
    for (int32_t i = 1; i < n->input_count && fits; i++)
        fits =
            n->inputs[i] == QS_NONE || qs_value_elements(&g->values[n->inputs[i]]) == (size_t)row;
    for (int32_t i = 1; i < n->output_count && fits; i++)
        fits = n->outputs[i] == QS_NONE;
    if (!fits)
        return QSIM_OK;
    if (qs_qdq_zero_point(d, &x) < 0 || qs_qdq_zero_point(d, &t->q) < 0)
        return QSIM_E_NOMEM;
    const qs_id bias = n->input_count > 2 ? n->inputs[2] : QS_NONE;
    const qs_id in[7] = {x.x, x.scale, x.zp, t->q.scale, t->q.zp, n->inputs[1], bias};
    *done = true;
    const qs_id made = qs_qdq_replace(d, t, "qsim", "QLinearLayerNormalization", in,
                                      bias == QS_NONE ? 6 : 7, t->core);
    return made < 0 ? made : qs_pass_resolve(d->p, made);
}
