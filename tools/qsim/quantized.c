/* SPDX-License-Identifier: MIT */
#include "quantized.h"

#include <stdlib.h>
#include <string.h>

#include "common/feed.h"

static int by_name(const void *a, const void *b) {
    return strcmp(((const qsim_value_info *)a)->name, ((const qsim_value_info *)b)->name);
}

void tensor_names_read(const qsim_model *m, tensor_names *all) {
    const int32_t count = qsim_model_value_count(m);
    *all = (tensor_names){tool_alloc(count > 0 ? (size_t)count : 0, sizeof(*all->items)), 0};
    for (int32_t i = 0; i < count; i++) {
        qsim_value_info *v = &all->items[all->count];
        v->struct_size = sizeof(*v);
        all->count += qsim_model_value(m, i, v) == QSIM_OK;
    }
    if (all->count > 0)
        qsort(all->items, all->count, sizeof(*all->items), by_name);
}

const qsim_value_info *tensor_named(const tensor_names *all, const char *name) {
    const qsim_value_info key = {.name = name};
    return all->count ? bsearch(&key, all->items, all->count, sizeof(key), by_name) : NULL;
}

void tensor_names_free(tensor_names *all) {
    free(all->items);
    *all = (tensor_names){NULL, 0};
}

/* The type of input `i`; QSIM_UNDEFINED: it is missing, or its type is not known. */
static int32_t type_of(const tensor_names *all, const qsim_node_info *n, int32_t i) {
    const qsim_value_info *v = i < n->input_count ? tensor_named(all, n->inputs[i]) : NULL;
    return v ? v->dtype : QSIM_UNDEFINED;
}

bool is_codes(int32_t dtype) {
    return (dtype >= QSIM_UINT8 && dtype <= QSIM_INT16) || dtype >= QSIM_FLOAT8E4M3FN;
}

/* Input `i` has codes, the next one is their scale, and their zero point follows, or nothing. */
static bool is_operand(const tensor_names *all, const qsim_node_info *n, int32_t i) {
    const int32_t type = type_of(all, n, i), zero = i + 2;
    /* With floats before it (MatMulNBits), scale and zero point have forms of their own. */
    if (i > 0 && is_float(type_of(all, n, i - 1)))
        return false;
    return (is_codes(type) || type == QSIM_INT32) && is_float(type_of(all, n, i + 1)) &&
           (type_of(all, n, zero) == type || zero >= n->input_count ||
            (zero + 1 == n->input_count && !n->inputs[zero][0]));
}

/* Input `i` is the scale of output 0, followed by a zero point unless x and scale are all. */
static bool is_of_output(const tensor_names *all, const qsim_node_info *n, int32_t i) {
    const qsim_value_info *y = n->output_count ? tensor_named(all, n->outputs[0]) : NULL;
    const int32_t type = y ? y->dtype : QSIM_UNDEFINED;
    if (type == QSIM_UNDEFINED || is_float(type) || !is_float(type_of(all, n, i)))
        return false;
    return type_of(all, n, i + 1) == type ||
           (i == 1 && n->input_count == 2 && is_float(type_of(all, n, 0)));
}

bool quantized_next(const tensor_names *all, const qsim_node_info *n, int32_t *from, quantized *q) {
    for (int32_t i = *from; i < n->input_count; i++) {
        if (is_operand(all, n, i))
            *q = (quantized){n->inputs[i], i, i + 1, i + 2};
        else if (is_of_output(all, n, i))
            *q = (quantized){n->outputs[0], -1, i, i + 1};
        else
            continue;
        *from = q->zero + 1;
        return true;
    }
    return false;
}
