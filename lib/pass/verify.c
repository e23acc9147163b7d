/* SPDX-License-Identifier: MIT */
/* The invariants of a graph, checked one by one. Not part of release builds. */
#include "pass/verify.h"

#include "op/op.h"

typedef struct verifier {
    const qs_graph *g;
    const char *model, *after;
    qsim_error *error;
    size_t *position; /* by node: its position in `order`, from 1 on; 0: not in it */
} verifier;

static int broken(const verifier *v, const qs_node *n, const char *rule, qs_id value) {
    const char *name =
        value >= 0 && (size_t)value < v->g->value_count ? v->g->values[value].name : "";
    return qs_fail(v->error, QSIM_E_INTERNAL, "%s: after %s: %s (value %d '%s', node '%s', %s)",
                   v->model, v->after, rule, (int)value, name, n ? n->name : "",
                   n ? n->op_type : "none");
}

static bool in_range(const verifier *v, qs_id value) {
    return value >= 0 && (size_t)value < v->g->value_count;
}

/* ---- inputs, outputs ---- */

static int check_ports(const verifier *v) {
    const qs_graph *g = v->g;
    for (size_t i = 0; i < g->input_count; i++) {
        if (!in_range(v, g->inputs[i]))
            return broken(v, NULL, "a graph input is no value", g->inputs[i]);
        if (!g->values[g->inputs[i]].is_input || g->values[g->inputs[i]].producer != QS_NONE)
            return broken(v, NULL, "a graph input is not marked as one, or has a producer",
                          g->inputs[i]);
    }
    for (size_t i = 0; i < g->output_count; i++) {
        if (!in_range(v, g->outputs[i]))
            return broken(v, NULL, "a graph output is no value", g->outputs[i]);
        if (!g->values[g->outputs[i]].is_output)
            return broken(v, NULL, "a graph output is not marked as one", g->outputs[i]);
    }
    return QSIM_OK;
}

/* ---- nodes ---- */

static int check_ids(const verifier *v, const qs_node *n) {
    for (int32_t i = 0; i < n->input_count; i++)
        if (n->inputs[i] != QS_NONE && !in_range(v, n->inputs[i]))
            return broken(v, n, "an input of a node is no value", n->inputs[i]);
    for (int32_t i = 0; i < n->output_count; i++)
        if (n->outputs[i] != QS_NONE && !in_range(v, n->outputs[i]))
            return broken(v, n, "an output of a node is no value", n->outputs[i]);
    return QSIM_OK;
}

static int check_node(const verifier *v, qs_id id) {
    const qs_node *n = &v->g->nodes[id];
    int code = check_ids(v, n);
    if (code)
        return code;
    bool known;
    if (!n->op || n->op != qs_op_find(n->domain, n->op_type, n->version, &known))
        return broken(v, n, "a node is not looked up in the operator table", QS_NONE);
    if (!v->position[id])
        return broken(v, n, "a live node is not in the order", QS_NONE);
    for (int32_t i = 0; i < n->output_count; i++) {
        if (n->outputs[i] == QS_NONE)
            continue;
        const qs_value *y = &v->g->values[n->outputs[i]];
        if (y->producer != id)
            return broken(v, n, "a value has two producers, or does not know its one",
                          n->outputs[i]);
        if (y->data)
            return broken(v, n, "a constant has a producer", n->outputs[i]);
    }
    return QSIM_OK;
}

static int check_producer(const verifier *v, qs_id value) {
    const qs_id id = v->g->values[value].producer;
    if (id == QS_NONE)
        return QSIM_OK;
    if (id < 0 || (size_t)id >= v->g->node_count || v->g->nodes[id].removed)
        return broken(v, NULL, "the producer of a value does not exist", value);
    const qs_node *n = &v->g->nodes[id];
    for (int32_t i = 0; i < n->output_count; i++)
        if (n->outputs[i] == value)
            return QSIM_OK;
    return broken(v, n, "the producer of a value does not make it", value);
}

/* ---- order ---- */

static int check_order(const verifier *v) {
    const qs_graph *g = v->g;
    for (size_t i = 0; i < g->order_count; i++) {
        const qs_id id = g->order[i];
        if (id < 0 || (size_t)id >= g->node_count || g->nodes[id].removed)
            return broken(v, NULL, "the order has a node that does not exist", QS_NONE);
        if (v->position[id])
            return broken(v, &g->nodes[id], "the order has a node twice", QS_NONE);
        v->position[id] = i + 1;
    }
    return QSIM_OK;
}

/* Checks that every input is a constant, a graph input, or made by an earlier node. */
static int check_inputs(const verifier *v, qs_id id) {
    const qs_node *n = &v->g->nodes[id];
    for (int32_t i = 0; i < n->input_count; i++) {
        if (n->inputs[i] == QS_NONE)
            continue;
        const qs_value *x = &v->g->values[n->inputs[i]];
        if (x->producer == QS_NONE && !x->data && !x->is_input)
            return broken(v, n, "a value is read that nothing makes", n->inputs[i]);
        if (x->producer != QS_NONE && v->position[x->producer] >= v->position[id])
            return broken(v, n, "a node stands before the producer of its input", n->inputs[i]);
    }
    return QSIM_OK;
}

/* ---- types and shapes ---- */

/* Whether the stored type and shape agree with the inferred ones where both are known. */
static bool agree(const qs_value *stored, const qs_value *inferred) {
    if (stored->dtype && inferred->dtype && stored->dtype != inferred->dtype)
        return false;
    if (stored->rank < 0 || inferred->rank < 0)
        return true;
    if (stored->rank != inferred->rank)
        return false;
    for (int32_t i = 0; i < stored->rank; i++)
        if (stored->dims[i].size >= 0 && inferred->dims[i].size >= 0 &&
            stored->dims[i].size != inferred->dims[i].size)
            return false;
    return true;
}

static int check_shapes(const verifier *v, qs_id id) {
    const qs_node *n = &v->g->nodes[id];
    qsim_ctx *ctx = v->g->arena.ctx;
    const size_t count = (size_t)n->output_count + 1;
    qs_value *out = qs_alloc(ctx, count, sizeof(*out));
    qs_dim(*dims)[QSIM_MAX_RANK] = qs_alloc(ctx, count, sizeof(*dims));
    int code = QSIM_E_NOMEM;
    if (out && dims)
        code = qs_op_infer_node(v->g, v->g->values, id, out, dims, v->model, v->error);
    for (int32_t i = 0; i < n->output_count && !code; i++)
        if (n->outputs[i] != QS_NONE && !agree(&v->g->values[n->outputs[i]], &out[i]))
            code = broken(v, n, "a type or shape is not the one inferred", n->outputs[i]);
    qs_free(ctx, dims);
    qs_free(ctx, out);
    return code == QSIM_E_NOMEM ? qs_fail(v->error, code, "%s: out of memory", v->model) : code;
}

static int check_all(const verifier *v) {
    const qs_graph *g = v->g;
    int code = check_ports(v);
    if (!code)
        code = check_order(v);
    for (size_t i = 0; i < g->node_count && !code; i++)
        if (!g->nodes[i].removed)
            code = check_node(v, (qs_id)i);
    for (size_t i = 0; i < g->value_count && !code; i++)
        code = check_producer(v, (qs_id)i);
    for (size_t i = 0; i < g->order_count && !code; i++)
        code = check_inputs(v, g->order[i]);
    for (size_t i = 0; i < g->order_count && !code; i++)
        code = check_shapes(v, g->order[i]);
    return code;
}

int qs_graph_verify(const qs_graph *g, const char *model, const char *after, qsim_error *error) {
    verifier v = {.g = g, .model = model, .after = after, .error = error};
    v.position = qs_calloc(g->arena.ctx, g->node_count + 1, sizeof(*v.position));
    if (!v.position)
        return qs_fail(error, QSIM_E_NOMEM, "%s: out of memory", model);
    const int code = check_all(&v);
    qs_free(g->arena.ctx, v.position);
    return code;
}
