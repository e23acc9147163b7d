/* SPDX-License-Identifier: MIT */
#include "op/nn/finish.h"

#include <math.h>

#include "base/ctx.h"
#include "kernel/table.h"

int qs_finish_infer(const qs_infer *x, int32_t index) {
    const qs_value *y = &x->out[0], *other = index < x->node->input_count ? x->in[index] : NULL;
    if (!other)
        return QSIM_OK;
    bool same = other->dtype == QSIM_FLOAT && (other->rank < 0 || other->rank == y->rank);
    for (int32_t i = 0; same && i < y->rank && other->rank >= 0; i++)
        same = other->dims[i].size < 0 || y->dims[i].size < 0 ||
               other->dims[i].size == y->dims[i].size;
    return same ? QSIM_OK : qs_infer_fail(x, QSIM_E_SHAPE, "the sum has another shape");
}

static qs_curve curve_of(const qs_node *n, const char *name, const char *param) {
    const qs_attr *a = qs_node_attr(n, name), *p = qs_node_attr(n, param);
    char text[32] = "";
    if (!a || !p || a->u.s.size >= sizeof(text) || p->count != 2)
        return (qs_curve){0};
    memcpy(text, a->u.s.data, a->u.s.size);
    qs_curve c = qs_curve_find(text);
    for (int i = 0; i < 2; i++)
        c.param[i] = (double)p->u.floats[i];
    return c;
}

int qs_finish_then(qs_graph *g, qs_id id, const qs_node *from) {
    const qs_curve c = qs_curve_of(from);
    const float param[2] = {(float)c.param[0], (float)c.param[1]};
    const qs_attr name = {.name = "then",
                          .type = QSIM_ATTR_STRING,
                          .u.s = {(const uint8_t *)from->op_type, strlen(from->op_type)}};
    const qs_attr list = {.name = "then_param",
                          .type = QSIM_ATTR_FLOATS,
                          .count = 2,
                          .u.floats = qs_arena_copy(&g->arena, param, sizeof(param))};
    if (!list.u.floats || qs_node_set_attr(g, id, &name) || qs_node_set_attr(g, id, &list))
        return QSIM_E_NOMEM;
    return QSIM_OK;
}

void qs_finish_then_is_first(qs_graph *g, qs_id id) {
    const qs_node *n = &g->nodes[id];
    for (int32_t i = 0; i < n->attr_count; i++) {
        if (qs_same(n->attrs[i].name, "then"))
            n->attrs[i].name = "first";
        else if (qs_same(n->attrs[i].name, "then_param"))
            n->attrs[i].name = "first_param";
    }
}

qs_finish qs_finish_lower(const qs_lower *l, int32_t other) {
    const qk_ew *k = l->ctx->kernels->ew;
    return (qs_finish){.ew = k,
                       .first = curve_of(l->node, "first", "first_param"),
                       .curve = curve_of(l->node, "then", "then_param"),
                       .sum = other < l->node->input_count && qs_lower_in(l, other) != NULL,
                       .lo = qs_node_float(l->node, "sum_lo", -INFINITY),
                       .hi = qs_node_float(l->node, "sum_hi", INFINITY)};
}
