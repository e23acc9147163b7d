/* SPDX-License-Identifier: MIT */
/*
 * Folds sizes that are known before a run: Shape and Size become constants, nodes that compute with
 * these are folded, and shapes that depend on them are inferred, until nothing changes.
 */
#include "pass/pass.h"

static int64_t clamped(int64_t at, int32_t rank) {
    at = at < 0 ? at + rank : at;
    return at < 0 ? 0 : at > rank ? rank : at;
}

/*
 * The result of Shape or Size; -1: a size is not known before a run. Sizes of graph outputs are not
 * used, since models may state wrong ones.
 */
static int32_t read_sizes(const qs_graph *g, const qs_node *n, int64_t out[QSIM_MAX_RANK]) {
    const qs_value *v = &g->values[n->inputs[0]];
    const bool all = qs_node_is(n, "", "Size");
    if (v->rank < 0 || v->is_output)
        return -1;
    const int64_t from = clamped(qs_node_int(n, "start", 0), v->rank);
    const int64_t to = clamped(qs_node_int(n, "end", v->rank), v->rank);
    int32_t count = 0;
    for (int64_t i = from; i < to; i++) {
        out[count++] = v->dims[i].size;
        if (v->dims[i].size < 0)
            return -1;
    }
    for (int32_t i = 1; i < count && all; i++)
        if (!qs_mul64(out[0], out[i], &out[0]))
            return -1;
    out[0] = all && count == 0 ? 1 : out[0];
    return all ? 1 : count;
}

/* Replaces Shape or Size by a constant if the sizes are known; *changed: it has. */
static int fold_sizes(qs_pass *p, qs_id id, bool *changed) {
    qs_graph *g = p->graph;
    const qs_node *n = &g->nodes[id];
    int64_t sizes[QSIM_MAX_RANK] = {0}, count;
    if (!(qs_node_traits(g, n) & QS_READS_SIZES) || (count = read_sizes(g, n, sizes)) < 0)
        return QSIM_OK;
    const bool scalar = qs_node_is(n, "", "Size");
    const qs_id y = n->outputs[0], c = qs_pass_const(p, QSIM_INT64, scalar ? 0 : 1, &count, sizes);
    if (c < 0)
        return c;
    qs_graph_remove_node(g, id);
    g->values[y].data = g->values[c].data;
    *changed = true;
    const qs_dim dim = {count, NULL};
    return qs_value_set_shape(g, y, QSIM_INT64, scalar ? 0 : 1, &dim) ? qs_pass_no_memory(p)
                                                                      : QSIM_OK;
}

int qs_pass_shapes(qs_pass *p) {
    bool changed = true;
    while (changed) {
        int code = QSIM_OK;
        changed = false;
        for (size_t i = 0; i < p->graph->order_count && !code; i++)
            code = fold_sizes(p, p->graph->order[i], &changed);
        if (!code && changed)
            code = qs_pass_fold(p, 0);
        if (!code && changed)
            code = qs_op_infer_graph(p->graph, p->model, p->error);
        if (!code)
            code = qs_pass_branches(p, &changed);
        if (code)
            return code;
    }
    return QSIM_OK;
}
