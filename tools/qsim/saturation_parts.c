/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "saturation.h"

/* Names of a node's inputs or outputs as the builder takes them. */
static void join(text *out, const char *const *names, int32_t count) {
    text_puts(out, "");
    for (int32_t i = 0; i < count; i++)
        text_printf(out, "%s%s", i ? "," : "", names[i]);
}

static void add_strings(qsim_builder *b, const qsim_attr_info *a) {
    char **values = tool_alloc((size_t)a->count, sizeof(*values));
    for (int32_t i = 0; i < a->count; i++) {
        text value = {0};
        text_add(&value, a->strings[i].data, a->strings[i].size);
        values[i] = value.data ? value.data : tool_copy("");
    }
    if (a->type == QSIM_ATTR_STRING)
        qsim_builder_attr_string(b, a->name, values[0]);
    else
        qsim_builder_attr_strings(b, a->name, (const char *const *)values, (size_t)a->count);
    for (int32_t i = 0; i < a->count; i++)
        free(values[i]);
    free(values);
}

/* Adds an attribute, of a type that obstacle() lets pass, to the node added last. */
static void add_attribute(qsim_builder *b, const qsim_attr_info *a) {
    if (a->type == QSIM_ATTR_INT)
        qsim_builder_attr_int(b, a->name, *a->ints);
    else if (a->type == QSIM_ATTR_FLOAT)
        qsim_builder_attr_float(b, a->name, *a->floats);
    else if (a->type == QSIM_ATTR_INTS)
        qsim_builder_attr_ints(b, a->name, a->ints, (size_t)a->count);
    else if (a->type == QSIM_ATTR_FLOATS)
        qsim_builder_attr_floats(b, a->name, a->floats, (size_t)a->count);
    else if (a->type == QSIM_ATTR_TENSOR)
        qsim_builder_attr_tensor(b, a->name, &a->tensor);
    else
        add_strings(b, a);
}

/* Why a node cannot be copied; NULL: it can. */
static const char *obstacle(const qsim_model *m, int32_t node, const qsim_node_info *n) {
    qsim_attr_info a = {.struct_size = sizeof(a)};
    for (int32_t i = 0; i < n->input_count; i++)
        if (strchr(n->inputs[i], ','))
            return "an input's name has a comma";
    for (int32_t i = 0; i < n->output_count; i++)
        if (strchr(n->outputs[i], ','))
            return "an output's name has a comma";
    for (int32_t i = 0; qsim_model_attr(m, node, i, &a) == QSIM_OK; i++)
        if (a.type == QSIM_ATTR_GRAPH)
            return "it has a graph inside";
        else if (a.type == QSIM_ATTR_OTHER)
            return "it has an attribute that is a type or a sparse tensor";
    return NULL;
}

static void add_node(qsim_builder *b, const qsim_model *m, int32_t node, const qsim_node_info *n) {
    text inputs = {0}, outputs = {0};
    qsim_attr_info a = {.struct_size = sizeof(a)};
    join(&inputs, n->inputs, n->input_count);
    join(&outputs, n->outputs, n->output_count);
    qsim_builder_node(b, n->domain, n->op_type, n->name, inputs.data, outputs.data);
    for (int32_t i = 0; qsim_model_attr(m, node, i, &a) == QSIM_OK; i++)
        add_attribute(b, &a);
    if (n->domain[0])
        qsim_builder_import(b, n->domain, (int32_t)qsim_model_opset(m, n->domain));
    text_free(&inputs);
    text_free(&outputs);
}

/* ---- what a part consists of ---- */

typedef struct part {
    const saturation *s;
    size_t layer;
    int32_t *nodes;    /* those nodes, in the order of the model at the end */
    size_t node_count; /* of which the first `done` were looked at */
    size_t done;
    name_index leaves; /* constants, inputs and results of other layers, some listed again */
} part;

/* Adds the node that makes a tensor, or the tensor if no node of the part does. */
static void want(part *p, const char *tensor) {
    const int32_t maker = name_index_find(&p->s->makers, tensor),
                  layer = name_index_find(&p->s->results, tensor);
    if (maker < 0 || (layer >= 0 && (size_t)layer != p->layer))
        name_index_add(&p->leaves, tensor, 0);
    else if (!p->s->in_part[maker]) {
        p->s->in_part[maker] = true;
        p->nodes = tool_grow(p->nodes, p->node_count + 1, sizeof(*p->nodes));
        p->nodes[p->node_count++] = maker;
    }
}

static int by_number(const void *a, const void *b) {
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static void collect(part *p, const char *const *tensors, size_t count) {
    for (size_t i = 0; i < count; i++)
        want(p, tensors[i]);
    while (p->done < p->node_count) {
        qsim_node_info n = {.struct_size = sizeof(n)};
        if (qsim_model_node(p->s->model, p->nodes[p->done++], &n) == QSIM_OK)
            for (int32_t k = 0; k < n.input_count; k++)
                if (n.inputs[k][0])
                    want(p, n.inputs[k]);
    }
    if (p->node_count > 0)
        qsort(p->nodes, p->node_count, sizeof(*p->nodes), by_number);
    name_index_sort(&p->leaves);
}

static void add_leaf(qsim_builder *b, const part *p, const qsim_value_info *v) {
    const int32_t layer = name_index_find(&p->s->results, v->name);
    const int32_t dtype = layer < 0                    ? v->dtype
                          : p->s->layers[layer].scales ? QSIM_FLOAT
                                                       : QSIM_INT32;
    if (v->data)
        qsim_builder_constant(
            b, v->name,
            &(qsim_tensor){v->dtype, v->rank, v->dims, (void *)(uintptr_t)v->data, v->bytes});
    else if (v->rank < 0)
        qsim_builder_input_as(b, v->name, dtype == QSIM_INT32 ? "int32" : "float");
    else
        qsim_builder_input(b, v->name, dtype, v->rank, v->dims, v->dim_names);
}

static void add_leaves(qsim_builder *b, const part *p) {
    for (size_t i = 0; i < p->leaves.count; i++) {
        const char *name = p->leaves.entries[i].name;
        const qsim_value_info *v = tensor_named(&p->s->tensors, name);
        if (v && (i == 0 || strcmp(name, p->leaves.entries[i - 1].name) != 0))
            add_leaf(b, p, v);
    }
}

/* Adds the nodes; prints errors. */
static int add_nodes(const tool *t, qsim_builder *b, const part *p) {
    for (size_t i = 0; i < p->node_count; i++) {
        qsim_node_info n = {.struct_size = sizeof(n)};
        int code = qsim_model_node(p->s->model, p->nodes[i], &n);
        if (code)
            return tool_fail(t, code, "%s: %s", p->s->file, qsim_error_text(code));
        const char *why = obstacle(p->s->model, p->nodes[i], &n);
        if (why)
            return tool_fail(t, QSIM_E_UNSUPPORTED,
                             "%s: node '%.100s' (%s) cannot be simulated: %s", p->s->file, n.name,
                             n.op_type, why);
        add_node(b, p->s->model, p->nodes[i], &n);
    }
    return EXIT_OK;
}

static int build(const tool *t, const part *p, const char *const *tensors, size_t count,
                 qsim_model **out) {
    const saturation *s = p->s;
    qsim_builder *b = NULL;
    qsim_error e;
    if (qsim_builder_create(t->ctx, (int32_t)qsim_model_opset(s->model, NULL),
                            tool_base_name(s->file), &b, &e))
        return tool_error(t, s->file, &e);
    add_leaves(b, p);
    int code = add_nodes(t, b, p);
    for (size_t i = 0; i < count; i++)
        if (name_index_find(&s->makers, tensors[i]) >= 0)
            qsim_builder_output_as(b, tensors[i], NULL);
    if (code == EXIT_OK && qsim_builder_finish(b, out, &e))
        code = tool_error(t, s->file, &e);
    qsim_builder_free(b);
    return code;
}

int saturation_make_part(const tool *t, const saturation *s, const char *const *tensors,
                         size_t count, size_t layer, qsim_model **out) {
    part p = {.s = s, .layer = layer};
    collect(&p, tensors, count);
    const int code = build(t, &p, tensors, count, out);
    for (size_t i = 0; i < p.node_count; i++)
        s->in_part[p.nodes[i]] = false;
    free(p.nodes);
    name_index_free(&p.leaves);
    return code;
}
