/* SPDX-License-Identifier: MIT */
/*
 * Folds sizes that are known before a run: Shape and Size, or what Gather and Slice take of them,
 * become constants, nodes that compute with these are folded, and shapes that depend on them are
 * inferred, until nothing changes.
 */
#include "op/rules.h"
#include "pass/pass.h"

/* The result of a node that reads sizes; -1: it does not, or one of them is not known. */
static int32_t read_sizes(const qs_graph *g, const qs_node *n, int64_t out[QSIM_MAX_RANK]) {
    const bool all = qs_node_is_onnx(n, "Size");
    const qs_value *v = all ? &g->values[n->inputs[0]] : NULL;
    qs_dim dims[QSIM_MAX_RANK];
    int32_t count = -1;
    if (all && v->rank >= 0 && !v->is_output) {
        count = v->rank;
        qs_value_dims(v, dims);
    } else if (qs_node_is_onnx(n, "Shape") || qs_node_is_onnx(n, "Gather") ||
               qs_node_is_onnx(n, "Slice")) {
        count = qs_known_sizes(g, g->values, n->outputs[0], dims);
    }
    for (int32_t i = 0; i < count; i++) {
        if (dims[i].size < 0)
            return -1;
        out[i] = dims[i].size;
        if (all && i && !qs_mul64(out[0], out[i], &out[0]))
            return -1;
    }
    out[0] = all && count == 0 ? 1 : out[0];
    return all && count >= 0 ? 1 : count;
}

/* Replaces a node that reads sizes by a constant if they are known; *changed: it has. */
static int fold_sizes(qs_pass *p, qs_id id, bool *changed) {
    qs_graph *g = p->graph;
    const qs_node *n = &g->nodes[id];
    int64_t sizes[QSIM_MAX_RANK] = {0}, count;
    count = read_sizes(g, n, sizes);
    if (count < 0)
        return QSIM_OK;
    const bool scalar = g->values[n->outputs[0]].rank == 0;
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

/*
 * Expands operators: copied subgraphs may hold any of them, and for operators on sequences ranks
 * may have to be inferred first.
 */
static int expand(qs_pass *p) {
    int code = qs_pass_identities(p);
    if (!code && !p->standard)
        code = qs_pass_loops(p);
    if (!code && !p->standard)
        code = qs_pass_sequences(p);
    return code ? code : qs_pass_expand(p);
}

int qs_pass_shapes(qs_pass *p) {
    bool changed = true, copied = false;
    int code = qs_pass_branches(p, &copied);
    if (!code)
        code = expand(p);
    while (changed && !code) {
        changed = copied = false;
        for (size_t i = 0; i < p->graph->order_count && !code; i++)
            code = fold_sizes(p, p->graph->order[i], &changed);
        if (!code && changed)
            code = qs_pass_fold(p, 0);
        if (!code && changed)
            code = qs_op_infer_graph(p->graph, p->model, p->error);
        if (!code)
            code = qs_pass_branches(p, &copied);
        changed = changed || copied;
        if (!code && changed)
            code = expand(p);
    }
    return code;
}
