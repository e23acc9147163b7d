/* SPDX-License-Identifier: MIT */
/* qsim_model_hash: hashes the graph and its weights independently of how a file stores them. */
#include "graph/model.h"

static void add_number(qs_sha256 *h, int64_t value) {
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)((uint64_t)value >> (8 * i));
    qs_sha256_add(h, bytes, sizeof(bytes));
}

/* Hashes the length first, so that different lists of texts have different bytes. */
static void add_bytes(qs_sha256 *h, const void *data, size_t size) {
    add_number(h, (int64_t)size);
    if (size)
        qs_sha256_add(h, data, size);
}

static void add_text(qs_sha256 *h, const char *text) {
    add_bytes(h, text, strlen(text));
}

static void add_const(qs_sha256 *h, const qs_const *c) {
    add_number(h, c->dtype);
    add_number(h, c->rank);
    for (int32_t i = 0; i < c->rank; i++)
        add_number(h, c->dims[i]);
    if (c->dtype == QSIM_STRING)
        add_bytes(h, c->source.data, c->source.size);
    else
        add_bytes(h, c->data, c->bytes);
}

static void add_float(qs_sha256 *h, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    add_number(h, bits);
}

static void add_list(qs_sha256 *h, const qs_attr *a) {
    add_number(h, a->count);
    for (int32_t i = 0; i < a->count; i++) {
        if (a->type == QSIM_ATTR_INTS)
            add_number(h, a->u.ints[i]);
        else if (a->type == QSIM_ATTR_FLOATS)
            add_float(h, a->u.floats[i]);
        else
            add_bytes(h, a->u.strings[i].data, a->u.strings[i].size);
    }
}

static void add_attr(qs_sha256 *h, const qs_attr *a) {
    add_text(h, a->name);
    add_number(h, a->type);
    switch (a->type) {
    case QSIM_ATTR_FLOAT: add_float(h, a->u.f); break;
    case QSIM_ATTR_INT: add_number(h, a->u.i); break;
    case QSIM_ATTR_STRING: add_bytes(h, a->u.s.data, a->u.s.size); break;
    case QSIM_ATTR_TENSOR: add_const(h, a->u.tensor); break;
    case QSIM_ATTR_FLOATS:
    case QSIM_ATTR_INTS:
    case QSIM_ATTR_STRINGS: add_list(h, a); break;
    default: add_bytes(h, a->source.data, a->source.size); break;
    }
}

/* Hashes a value; the bytes of a constant where it is first read. `seen`: by value. */
static void add_value(qs_sha256 *h, const qs_graph *g, qs_id id, bool *seen) {
    add_text(h, id == QS_NONE ? "" : g->values[id].name);
    bool constant = id != QS_NONE && g->values[id].data && !seen[id];
    add_number(h, constant);
    if (!constant)
        return;
    seen[id] = true;
    add_const(h, g->values[id].data);
}

static void add_node(qs_sha256 *h, const qs_graph *g, const qs_node *n, bool *seen) {
    add_text(h, n->domain);
    add_text(h, n->op_type);
    add_number(h, n->version);
    add_number(h, n->input_count);
    for (int32_t i = 0; i < n->input_count; i++)
        add_value(h, g, n->inputs[i], seen);
    add_number(h, n->output_count);
    for (int32_t i = 0; i < n->output_count; i++)
        add_text(h, n->outputs[i] == QS_NONE ? "" : g->values[n->outputs[i]].name);
    add_number(h, n->attr_count);
    for (int32_t i = 0; i < n->attr_count; i++)
        add_attr(h, &n->attrs[i]);
}

int qsim_model_hash(const qsim_model *model, char hex[65]) {
    if (!model || !hex)
        return QSIM_E_ARGUMENT;
    const qs_graph *g = model->graph;
    bool *seen = qs_calloc(model->ctx, g->value_count, sizeof(*seen));
    if (!seen)
        return QSIM_E_NOMEM;
    qs_sha256 h;
    qs_sha256_init(&h);
    add_text(&h, "qsim-model-1");
    for (size_t i = 0; i < g->input_count; i++) {
        const qs_value *v = &g->values[g->inputs[i]];
        add_text(&h, v->name);
        add_number(&h, v->dtype);
        add_number(&h, v->rank);
        for (int32_t k = 0; k < v->rank; k++)
            add_number(&h, v->dims[k].size);
    }
    for (size_t i = 0; i < g->order_count; i++)
        if (!g->nodes[g->order[i]].removed)
            add_node(&h, g, &g->nodes[g->order[i]], seen);
    for (size_t i = 0; i < g->output_count; i++)
        add_value(&h, g, g->outputs[i], seen);
    qs_free(model->ctx, seen);
    qs_sha256_hex(&h, hex);
    return QSIM_OK;
}
