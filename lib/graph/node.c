/* SPDX-License-Identifier: MIT */
/* Attributes and inputs of nodes. */
#include "graph/graph.h"

#include <stdarg.h>
#include <stdio.h>

int qs_node_fail(qsim_error *error, int code, const char *model, const qs_node *n,
                 const char *format, ...) {
    char what[320];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    return qs_fail(error, code, "%s: %s (node '%s', %s)", model, what, n->name, n->op_type);
}

const qs_attr *qs_node_attr(const qs_node *n, const char *name) {
    for (int32_t i = 0; i < n->attr_count; i++)
        if (qs_same(n->attrs[i].name, name))
            return &n->attrs[i];
    return NULL;
}

int64_t qs_node_int(const qs_node *n, const char *name, int64_t fallback) {
    const qs_attr *a = qs_node_attr(n, name);
    return a && a->type == QSIM_ATTR_INT ? a->u.i : fallback;
}

float qs_node_float(const qs_node *n, const char *name, float fallback) {
    const qs_attr *a = qs_node_attr(n, name);
    return a && a->type == QSIM_ATTR_FLOAT ? a->u.f : fallback;
}

bool qs_node_is(const qs_node *n, const char *domain, const char *op_type) {
    return !n->removed && qs_same(n->op_type, op_type) && qs_same(n->domain, domain);
}

bool qs_node_is_onnx(const qs_node *n, const char *op_type) {
    return qs_node_is(n, "", op_type);
}

qs_id qs_node_input(const qs_node *n, int32_t index) {
    return index < n->input_count ? n->inputs[index] : QS_NONE;
}

const qs_const *qs_node_const(const qs_graph *g, const qs_node *n, int32_t index) {
    const qs_id v = qs_node_input(n, index);
    return v == QS_NONE ? NULL : g->values[v].data;
}

int qs_node_set_attr(qs_graph *g, qs_id node, const qs_attr *attr) {
    qs_node *n = &g->nodes[node];
    n->changed = true;
    for (int32_t i = 0; i < n->attr_count; i++)
        if (qs_same(n->attrs[i].name, attr->name)) {
            const char *name = n->attrs[i].name;
            n->attrs[i] = *attr;
            n->attrs[i].name = name;
            return QSIM_OK;
        }
    qs_attr *attrs = qs_arena_alloc(&g->arena, (size_t)n->attr_count + 1, sizeof(*attrs));
    char *name = qs_arena_string(&g->arena, attr->name, strlen(attr->name));
    if (!attrs || !name)
        return QSIM_E_NOMEM;
    if (n->attr_count)
        memcpy(attrs, n->attrs, (size_t)n->attr_count * sizeof(*attrs));
    attrs[n->attr_count] = *attr;
    attrs[n->attr_count].name = name;
    n->attrs = attrs;
    n->attr_count++;
    return QSIM_OK;
}

int qs_node_set_int(qs_graph *g, qs_id node, const char *name, int64_t value) {
    qs_attr a = {.name = name, .type = QSIM_ATTR_INT, .u.i = value};
    return qs_node_set_attr(g, node, &a);
}

int qs_node_set_float(qs_graph *g, qs_id node, const char *name, float value) {
    qs_attr a = {.name = name, .type = QSIM_ATTR_FLOAT, .u.f = value};
    return qs_node_set_attr(g, node, &a);
}

int qs_node_set_ints(qs_graph *g, qs_id node, const char *name, const int64_t *v, int32_t count) {
    qs_attr a = {.name = name, .type = QSIM_ATTR_INTS, .count = count};
    a.u.ints = qs_arena_copy(&g->arena, v, (size_t)count * sizeof(*v));
    return a.u.ints ? qs_node_set_attr(g, node, &a) : QSIM_E_NOMEM;
}

void qs_node_drop_attr(qs_graph *g, qs_id node, const char *name) {
    qs_node *n = &g->nodes[node];
    for (int32_t i = 0; i < n->attr_count; i++)
        if (qs_same(n->attrs[i].name, name)) {
            memmove(&n->attrs[i], &n->attrs[i + 1],
                    (size_t)(n->attr_count - i - 1) * sizeof(n->attrs[0]));
            n->attr_count--;
            n->changed = true;
            return;
        }
}
