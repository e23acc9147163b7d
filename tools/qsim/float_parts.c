/* SPDX-License-Identifier: MIT */
#include "float_parts.h"

#include <stdlib.h>
#include <string.h>

#include "common/feed.h"
#include "quantized.h"

/* Is this a float weight? It is longer than 1 on two axes or more. */
static bool is_weight(const qsim_value_info *v) {
    int wide = 0;
    for (int32_t i = 0; i < v->rank; i++)
        wide += v->dims[i] > 1;
    return v->data && is_float(v->dtype) && wide >= 2;
}

/* Bytes of a node's float weights; beside codes, floats are their scales (also per block). */
static int64_t weight_bytes(const tensor_names *all, const qsim_node_info *n) {
    int64_t bytes = 0;
    for (int32_t i = 0; i < n->input_count; i++) {
        const qsim_value_info *v = tensor_named(all, n->inputs[i]);
        if (v && is_codes(v->dtype))
            return 0;
        const bool operand = i >= 64 || n->operands >> i & 1;
        if (v && v->dtype == QSIM_FLOAT16 && strcmp(n->op_type, "Cast") == 0)
            return 0; /* stored in fewer bits, as codes are */
        bytes += v && operand && is_weight(v) ? (int64_t)v->bytes : 0;
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
    tensor_names all;
    memset(out, 0, sizeof(*out));
    tensor_names_read(m, &all);
    for (int32_t i = 0; i < qsim_model_node_count(m); i++) {
        qsim_node_info n = {.struct_size = sizeof(n)};
        if (qsim_model_node(m, i, &n) != QSIM_OK)
            continue;
        int64_t bytes = weight_bytes(&all, &n);
        const char *name = n.name[0] || n.output_count == 0 ? n.name : n.outputs[0];
        if (bytes > 0 && !(skip && skip(user, name)))
            add(out, n.op_type, bytes);
    }
    if (out->count > 0)
        qsort(out->items, out->count, sizeof(*out->items), by_bytes);
    tensor_names_free(&all);
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
