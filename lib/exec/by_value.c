/* SPDX-License-Identifier: MIT */
/*
 * Inputs whose values sizes depend on: the shape of a Reshape, the axes of a reduction. A plan
 * holds for one value of them, as it does for one shape of the others.
 */
#include "exec/exec.h"

/* Whether the sizes of a node's outputs depend on the value of its input `index`. */
static bool shapes_output(const qs_node *n, int32_t index) {
    static const struct {
        const char *name;
        uint32_t inputs; /* bit mask */
    } table[] = {
        {"Reshape", 2},
        {"Pad", 2 | 8},
        {"Slice", 2 | 4 | 8 | 16},
        {"Squeeze", 2},
        {"Split", 2},
        {"Unsqueeze", 2},
        {"Expand", 2},
        {"Tile", 2},
        {"TopK", 2},
        {"OneHot", 2},
        {"Resize", 2 | 4 | 8},
        {"Upsample", 2},
        {"Range", 7},
        {"ConstantOfShape", 1},
    };
    if (n->domain[0] && strcmp(n->domain, "qsim") != 0)
        return false;
    if (strncmp(n->op_type, "Reduce", 6) == 0)
        return index == 1;
    for (size_t i = 0; i < QS_COUNT(table); i++)
        if (strcmp(n->op_type, table[i].name) == 0)
            return index < 32 && (table[i].inputs >> index & 1);
    return false;
}

static bool is_shape(const qs_node *n) {
    return qs_node_is(n, "", "Shape") || qs_node_is(n, "", "Size");
}

int qs_find_by_value(qsim_session *s) {
    const qs_graph *g = s->graph;
    bool *needed = qs_calloc(s->ctx, g->value_count + 1, sizeof(*needed));
    s->by_value = qs_arena_alloc(&s->arena, g->input_count + 1, sizeof(*s->by_value));
    if (!needed || !s->by_value) {
        qs_free(s->ctx, needed);
        return QSIM_E_NOMEM;
    }
    for (size_t i = g->order_count; i-- > 0;) {
        const qs_node *n = &g->nodes[g->order[i]];
        bool all = false;
        for (int32_t k = 0; k < n->output_count; k++)
            all |= n->outputs[k] != QS_NONE && needed[n->outputs[k]];
        for (int32_t k = 0; k < n->input_count; k++)
            if (n->inputs[k] != QS_NONE && (shapes_output(n, k) || (all && !is_shape(n))))
                needed[n->inputs[k]] = true;
    }
    for (size_t i = 0; i < g->input_count; i++) {
        s->by_value[i] = needed[g->inputs[i]];
        s->any_by_value |= s->by_value[i];
    }
    qs_free(s->ctx, needed);
    return QSIM_OK;
}
