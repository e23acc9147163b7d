/* SPDX-License-Identifier: MIT */
#include "pass/expression.h"

#include "base/base.h"
#include "pass/eval.h"

#define MOST_BYTES ((size_t)1 << 20) /* of a node's results */

/* The copy of a value, made if there is none yet; the bytes of constants are shared. */
static qs_id copy_value(qs_expression *e, qs_id v) {
    for (int32_t i = 0; i < e->count; i++)
        if (e->of[i] == v)
            return e->copy[i];
    if (e->count == QS_EXPRESSION_VALUES)
        return QSIM_E_LIMIT;
    const qs_const *c = e->from->values[v].data;
    const bool one =
        c && c->elements == 1; /* as a scalar, since the leaf's copy may have one axis */
    const qs_id id =
        c ? qs_graph_add_const(e->g, NULL, c->dtype, one ? 0 : c->rank, c->dims, c->data, false)
          : qs_graph_add_value(e->g, NULL);
    if (id < 0)
        return id;
    e->of[e->count] = v;
    e->copy[e->count++] = id;
    return id;
}

int qs_expression_begin(qs_expression *e, qs_id leaf, int32_t dtype, int32_t rank,
                        const int64_t *dims, const void *data) {
    size_t bytes = (size_t)qsim_dtype_bits(dtype) / 8;
    for (int32_t i = 0; i < rank; i++)
        bytes *= (size_t)dims[i];
    e->count = 0;
    if (qs_graph_create(e->ctx, &e->g))
        return QSIM_E_NOMEM;
    void *own = qs_arena_alloc64(&e->g->arena, bytes);
    if (!own)
        return QSIM_E_NOMEM;
    memcpy(own, data, bytes);
    const qs_id x = qs_graph_add_const(e->g, NULL, dtype, rank, dims, own, false);
    if (x < 0)
        return x;
    e->of[0] = leaf;
    e->copy[0] = x;
    e->count = 1;
    return QSIM_OK;
}

int qs_expression_add(qs_expression *e, qs_id node) {
    const qs_node *n = &e->from->nodes[node];
    qs_id in[8];
    if (n->input_count > (int32_t)QS_COUNT(in))
        return QSIM_E_LIMIT;
    for (int32_t i = 0; i < n->input_count; i++) {
        in[i] = n->inputs[i] == QS_NONE ? QS_NONE : copy_value(e, n->inputs[i]);
        if (in[i] < 0 && n->inputs[i] != QS_NONE)
            return in[i];
    }
    const qs_id out = copy_value(e, n->outputs[0]);
    const qs_id id = out < 0 ? out : qs_graph_add_like(e->g, n, in, &out);
    return id < 0 ? id : QSIM_OK;
}

int qs_expression_value(qs_expression *e, qs_id value, const qs_const **out) {
    const qs_eval eval = {.ctx = e->ctx,
                          .graph = e->g,
                          .values = e->g->values,
                          .address = qs_eval_addresses(&e->g->arena, e->g),
                          .arena = &e->g->arena,
                          .model = e->model,
                          .error = e->error};
    bool done = true;
    int code = eval.address ? QSIM_OK : QSIM_E_NOMEM;
    for (size_t i = 0; i < e->g->node_count && done && !code; i++)
        code = qs_eval_const(&eval, (qs_id)i, NULL, MOST_BYTES, &done);
    const qs_id result = code ? QS_NONE : copy_value(e, value);
    *out = code || !done || result < 0 ? NULL : e->g->values[result].data;
    return code;
}

void qs_expression_end(qs_expression *e) {
    qs_graph_free(e->g);
    e->g = NULL;
}
