/* SPDX-License-Identifier: MIT */
/* Counts multiply-accumulates: outputs times the length of each one's sum. */
#include "op/rules.h"

/* Multiplies *macs by the sizes in [from, to), unknown ones taken as 1; false on overflow. */
static bool multiply(const qs_value *v, int32_t from, int32_t to, int64_t *macs) {
    for (int32_t i = from; i < to; i++)
        if (!qs_mul64(*macs, v->dims[i].size < 0 ? 1 : v->dims[i].size, macs))
            return false;
    return true;
}

/* Finds weights and output of a node; false if one is left out or of unknown rank. */
static bool find(const qs_graph *g, const qs_node *n, const qs_value **w, const qs_value **y) {
    int32_t at = 0;
    while (at < 15 && !qs_op_in(n->op->weight_inputs, at))
        at++;
    if (qs_node_input(n, at) == QS_NONE || n->output_count < 1 || n->outputs[0] == QS_NONE)
        return false;
    *w = &g->values[n->inputs[at]];
    *y = &g->values[n->outputs[0]];
    return (*w)->rank >= 1 && (*y)->rank >= 0;
}

static int64_t of_conv(const qs_graph *g, const qs_node *n) {
    const qs_value *w, *y;
    int64_t macs = 1;
    const bool known =
        find(g, n, &w, &y) && multiply(y, 0, y->rank, &macs) && multiply(w, 1, w->rank, &macs);
    return known ? macs : -1;
}

static int64_t of_product(const qs_graph *g, const qs_node *n) {
    const qs_value *w, *y;
    int64_t macs = 1;
    if (!find(g, n, &w, &y))
        return -1;
    const int32_t k = qs_node_int(n, "transB", 0) ? w->rank - 1 : w->rank > 1 ? w->rank - 2 : 0;
    return multiply(y, 0, y->rank, &macs) && multiply(w, k, k + 1, &macs) ? macs : -1;
}

/* Per element of input 0, the weights that it multiplies. */
static int64_t of_convtranspose(const qs_graph *g, const qs_node *n) {
    const qs_value *x = &g->values[n->inputs[0]], *w = &g->values[n->inputs[1]];
    int64_t macs = 1;
    const bool known = x->rank >= 0 && w->rank >= 1 && multiply(x, 0, x->rank, &macs) &&
                       multiply(w, 1, w->rank, &macs);
    return known ? macs : -1;
}

/* All elements of W (directions, gates * hidden, features) and of R (directions, gates * hidden,
 * hidden), once per step and sample. */
static int64_t of_recurrent(const qs_graph *g, const qs_node *n) {
    const qs_value *x = &g->values[n->inputs[0]], *w = &g->values[n->inputs[1]];
    const qs_value *r = &g->values[n->inputs[2]];
    int64_t steps = 1, of_x = 1, of_h = 1, macs;
    const bool known = x->rank == 3 && w->rank == 3 && r->rank == 3 && multiply(x, 0, 2, &steps) &&
                       multiply(w, 0, 3, &of_x) && multiply(r, 0, 3, &of_h) &&
                       qs_add64(of_x, of_h, &macs) && qs_mul64(macs, steps, &macs);
    return known ? macs : -1;
}

int64_t qs_op_macs(const qs_graph *g, qs_id node) {
    const qs_node *n = &g->nodes[node];
    switch (n->op ? n->op->macs : QS_MACS_NONE) {
    case QS_MACS_CONV: return of_conv(g, n);
    case QS_MACS_PRODUCT: return of_product(g, n);
    case QS_MACS_CONVTRANSPOSE: return of_convtranspose(g, n);
    case QS_MACS_RECURRENT: return of_recurrent(g, n);
    default: return 0;
    }
}
