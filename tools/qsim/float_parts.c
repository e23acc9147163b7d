/* SPDX-License-Identifier: MIT */
#include "float_parts.h"

#include <stdlib.h>
#include <string.h>

/* Constants of a model, sorted by name. */
typedef struct constants {
    qsim_value_info *items;
    size_t count;
} constants;

static int by_name(const void *a, const void *b) {
    return strcmp(((const qsim_value_info *)a)->name, ((const qsim_value_info *)b)->name);
}

/* Is this a float weight? It is longer than 1 on two axes or more. */
static bool is_weight(const qsim_value_info *v) {
    int wide = 0;
    bool is_float = v->dtype == QSIM_FLOAT || v->dtype == QSIM_DOUBLE || v->dtype == QSIM_FLOAT16 ||
                    v->dtype == QSIM_BFLOAT16;
    for (int32_t i = 0; i < v->rank; i++)
        wide += v->dims[i] > 1;
    return v->data && is_float && wide >= 2;
}

static void find_constants(const qsim_model *m, constants *c) {
    int32_t count = qsim_model_value_count(m);
    c->items = tool_alloc(count > 0 ? (size_t)count : 1, sizeof(*c->items));
    c->count = 0;
    for (int32_t i = 0; i < count; i++) {
        qsim_value_info *v = &c->items[c->count];
        v->struct_size = sizeof(*v);
        if (qsim_model_value(m, i, v) == QSIM_OK && is_weight(v))
            c->count++;
    }
    qsort(c->items, c->count, sizeof(*c->items), by_name);
}

/* Does this operator take scales as float inputs (also per block)? */
static bool takes_scales(const char *op_type) {
    return strcmp(op_type, "DequantizeLinear") == 0 || strcmp(op_type, "MatMulNBits") == 0 ||
           strcmp(op_type, "GatherBlockQuantized") == 0;
}

static int64_t weight_bytes(const constants *c, const qsim_node_info *n) {
    int64_t bytes = 0;
    if (takes_scales(n->op_type))
        return 0;
    for (int32_t i = 0; i < n->input_count && c->count > 0; i++) {
        qsim_value_info wanted = {.name = n->inputs[i]};
        const qsim_value_info *v = bsearch(&wanted, c->items, c->count, sizeof(*c->items), by_name);
        bytes += v ? (int64_t)v->bytes : 0;
    }
    return bytes;
}

static void add(float_parts *f, const char *op_type, int64_t bytes) {
    size_t i = 0;
    while (i < f->count && strcmp(f->items[i].op_type, op_type) != 0)
        i++;
    if (i == f->count) {
        f->items = tool_grow(f->items, f->count + 1, sizeof(*f->items));
        f->items[f->count++] = (float_part){op_type, 0, 0};
    }
    f->items[i].nodes++;
    f->items[i].bytes += bytes;
    f->nodes++;
    f->bytes += bytes;
}

static int by_bytes(const void *a, const void *b) {
    const float_part *x = a, *y = b;
    return x->bytes != y->bytes ? (x->bytes < y->bytes ? 1 : -1) : strcmp(x->op_type, y->op_type);
}

void float_parts_find(const qsim_model *m, float_parts_skip skip, void *user, float_parts *out) {
    constants c;
    memset(out, 0, sizeof(*out));
    find_constants(m, &c);
    for (int32_t i = 0; i < qsim_model_node_count(m); i++) {
        qsim_node_info n = {.struct_size = sizeof(n)};
        if (qsim_model_node(m, i, &n) != QSIM_OK)
            continue;
        int64_t bytes = weight_bytes(&c, &n);
        const char *name = n.name[0] || n.output_count == 0 ? n.name : n.outputs[0];
        if (bytes > 0 && !(skip && skip(user, name)))
            add(out, n.op_type, bytes);
    }
    if (out->count > 0)
        qsort(out->items, out->count, sizeof(*out->items), by_bytes);
    free(c.items);
}

void float_parts_text(const float_parts *f, text *out) {
    const size_t most = 6;
    char b[32];
    for (size_t i = 0; i < f->count && i < most; i++)
        text_printf(out, "%s%s %d (%s)", i ? ", " : "", f->items[i].op_type, f->items[i].nodes,
                    tool_bytes((double)f->items[i].bytes, b));
    if (f->count > most)
        text_printf(out, " and %zu operators more", f->count - most);
}

void float_parts_free(float_parts *f) {
    free(f->items);
    memset(f, 0, sizeof(*f));
}
