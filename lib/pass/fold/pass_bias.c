/* SPDX-License-Identifier: MIT */
/*
 * conv(x) + c is a convolution with a bias where c has one number a channel, or one for all; so it
 * is with a transposed one.
 */
#include "pass/pass.h"

/* The convolution without a bias that makes `v`, read by nothing else; QS_NONE: none. */
static qs_id bare_conv(const qs_graph *g, const qs_uses *uses, qs_id v) {
    qs_id id = v == QS_NONE ? QS_NONE : qs_pass_producer(g, v, "Conv");
    if (id == QS_NONE && v != QS_NONE)
        id = qs_pass_producer(g, v, "ConvTranspose");
    if (id == QS_NONE || g->values[v].is_output || uses->start[v + 1] - uses->start[v] != 1)
        return QS_NONE;
    const qs_node *n = &g->nodes[id];
    return qs_node_input(n, 2) == QS_NONE ? id : QS_NONE;
}

/* Whether `c`, added to a value of that shape, is one number for each of its channels. */
static bool is_per_channel(const qs_const *c, const qs_value *v) {
    if (!c || c->dtype != QSIM_FLOAT || v->rank < 3 || c->rank > v->rank || c->elements == 0)
        return false;
    const int64_t channels = v->dims[1].size;
    for (int32_t i = 0; i < c->rank; i++) {
        const int32_t axis = i + v->rank - c->rank;
        if (c->dims[i] != 1 && (axis != 1 || c->dims[i] != channels))
            return false;
    }
    return channels > 0;
}

static int add_bias(qs_pass *p, qs_id conv, qs_id add, const qs_const *c, int64_t channels) {
    qs_graph *g = p->graph;
    float *b = qs_arena_alloc64(&g->arena, (size_t)channels * sizeof(float));
    if (!b)
        return qs_pass_no_memory(p);
    for (size_t i = 0; i < (size_t)channels; i++)
        b[i] = (float)qs_const_at(c, c->elements == 1 ? 0 : i);
    const qs_id bias = qs_pass_const(p, QSIM_FLOAT, 1, &channels, b);
    if (bias < 0)
        return bias;
    if (qs_node_grow_inputs(g, conv, 3))
        return qs_pass_no_memory(p);
    qs_node_set_input(g, conv, 2, bias);
    const qs_id y = g->nodes[add].outputs[0];
    qs_graph_remove_node(g, add);
    qs_pass_set_output(p, conv, 0, y);
    return QSIM_OK;
}

int qs_pass_bias(qs_pass *p) {
    qs_graph *g = p->graph;
    qs_uses uses;
    int code = QSIM_OK;
    size_t found = 0;
    if (qs_graph_uses(g, &uses))
        return qs_pass_no_memory(p);
    for (size_t i = 0; i < g->order_count && !code; i++) {
        const qs_id id = g->order[i];
        const qs_node *n = &g->nodes[id];
        if (!qs_node_is(n, "", "Add"))
            continue;
        for (int32_t k = 0; k < 2; k++) {
            const qs_id conv = bare_conv(g, &uses, n->inputs[k]);
            const qs_const *c = g->values[n->inputs[1 - k]].data;
            const qs_value *v = &g->values[n->inputs[k]];
            if (conv == QS_NONE || !is_per_channel(c, v))
                continue;
            code = add_bias(p, conv, id, c, v->dims[1].size);
            found++;
            break;
        }
    }
    qs_uses_free(g, &uses);
    return code || !found ? code : qs_pass_finish(p);
}
