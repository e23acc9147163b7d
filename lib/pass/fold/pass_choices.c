/* SPDX-License-Identifier: MIT */
/*
 * An If with two branches alike is loaded as a Where (onnx/branches.c), also of bools, for which
 * ONNX Runtime has no kernel. In files it chooses bytes, between casts.
 */
#include "graph/subgraph.h"
#include "pass/pass.h"

/* A new value for the bytes of a value of bools. */
static qs_id bytes_of(qs_pass *p, qs_id bools) {
    const qs_id y = qs_pass_value(p, bools);
    if (y < 0)
        return y;
    p->graph->values[y].dtype = QSIM_UINT8;
    const char *name = p->graph->values[bools].name;
    const int code = name[0] ? qs_pass_name(p, y, name) : QSIM_OK;
    return code ? code : y;
}

static int choose_bytes(qs_pass *p, const qs_uses *uses, qs_id node, bool *changed) {
    qs_graph *g = p->graph;
    const qs_id y = g->nodes[node].outputs[0];
    (void)uses;
    if (!(qs_node_traits(g, &g->nodes[node]) & QS_CHOOSES) || g->values[y].dtype != QSIM_BOOL)
        return QSIM_OK;
    for (int32_t i = 1; i < 3; i++) {
        const qs_id x = g->nodes[node].inputs[i];
        qs_id bytes = bytes_of(p, x);
        bytes = bytes < 0 ? bytes : qs_pass_cast(p, x, QSIM_UINT8, bytes);
        if (bytes < 0)
            return bytes;
        qs_node_set_input(g, node, i, bytes);
    }
    qs_id bytes = bytes_of(p, y);
    if (bytes < 0)
        return bytes;
    qs_pass_set_output(p, node, 0, bytes);
    bytes = qs_pass_cast(p, bytes, QSIM_BOOL, y);
    *changed = true;
    return bytes < 0 ? bytes : QSIM_OK;
}

static int choose_inside(void *user, qs_graph *g, qs_node *n, qs_subgraph *sub) {
    qs_pass inner = *(const qs_pass *)user;
    (void)g, (void)n;
    inner.graph = sub->graph;
    return qs_pass_choices(&inner);
}

int qs_pass_choices(qs_pass *p) {
    const int code = qs_pass_nodes(p, choose_bytes);
    return code ? code : qs_subgraphs_visit(p->graph, choose_inside, p);
}
