/* SPDX-License-Identifier: MIT */
/* Relu and Clip become bounds of the operator that makes their input. */
#include "pass/pass.h"

#include <math.h>

static bool takes_bounds(const qs_node *n) {
    return (n->op->traits & QS_TAKES_BOUNDS) && !qs_node_attr(n, "lo") && !qs_node_attr(n, "hi");
}

/*
 * Reads a bound of Clip from its input; if that is left out, *bound stays. False: it is not
 * constant.
 */
static bool read_bound(const qs_graph *g, const qs_node *n, int32_t index, double *bound) {
    if (index >= n->input_count || n->inputs[index] == QS_NONE)
        return true;
    return qs_const_scalar(g, n->inputs[index], bound);
}

bool qs_node_bounds(const qs_graph *g, const qs_node *n, double *lo, double *hi) {
    *lo = -INFINITY;
    *hi = INFINITY;
    if (qs_node_is_onnx(n, "Relu")) {
        *lo = 0;
        return true;
    }
    if (!qs_node_is_onnx(n, "Clip"))
        return false;
    if (n->version < 11) {
        *lo = (double)qs_node_float(n, "min", -INFINITY);
        *hi = (double)qs_node_float(n, "max", INFINITY);
        return true;
    }
    return read_bound(g, n, 1, lo) && read_bound(g, n, 2, hi);
}

static int set_bounds(qs_pass *p, qs_id node, double lo, double hi) {
    qs_graph *g = p->graph;
    g->nodes[node].domain = "qsim";
    if ((lo > -INFINITY && qs_node_set_float(g, node, "lo", (float)lo)) ||
        (hi < INFINITY && qs_node_set_float(g, node, "hi", (float)hi)))
        return qs_pass_no_memory(p);
    return qs_pass_resolve(p, node);
}

static int fuse_bounds(qs_pass *p, const qs_uses *uses, qs_id id, bool *changed) {
    qs_graph *g = p->graph;
    double lo, hi;
    if (!qs_node_bounds(g, &g->nodes[id], &lo, &hi) || !(lo <= hi))
        return QSIM_OK;
    const qs_id x = g->nodes[id].inputs[0], y = g->nodes[id].outputs[0];
    const qs_id producer = qs_only_producer(g, uses, x);
    if (producer == QS_NONE || !takes_bounds(&g->nodes[producer]) ||
        g->values[x].dtype != QSIM_FLOAT)
        return QSIM_OK;
    *changed = true;
    qs_graph_remove_node(g, id);
    qs_pass_set_output(p, producer, 0, y);
    return set_bounds(p, producer, lo, hi);
}

int qs_pass_fuse(qs_pass *p) {
    return qs_pass_nodes(p, fuse_bounds);
}
