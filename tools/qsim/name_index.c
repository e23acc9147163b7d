/* SPDX-License-Identifier: MIT */
#include "name_index.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"

void name_index_add(name_index *x, const char *name, int32_t value) {
    if (x->count == x->capacity) {
        x->capacity = 2 * x->capacity + 64;
        x->entries = tool_grow(x->entries, x->capacity, sizeof(*x->entries));
    }
    x->entries[x->count++] = (name_entry){name, value};
}

static int by_name(const void *a, const void *b) {
    const name_entry *x = a, *y = b;
    const int order = strcmp(x->name, y->name);
    return order ? order : (x->value > y->value) - (x->value < y->value);
}

void name_index_sort(name_index *x) {
    if (x->count > 0)
        qsort(x->entries, x->count, sizeof(*x->entries), by_name);
}

/* The first entry that does not come before the name. */
static size_t lower_bound(const name_index *x, const char *name) {
    size_t low = 0, high = x->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (strcmp(x->entries[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int32_t name_index_find(const name_index *x, const char *name) {
    const size_t at = lower_bound(x, name);
    return at < x->count && strcmp(x->entries[at].name, name) == 0 ? x->entries[at].value : -1;
}

size_t name_index_count(const name_index *x, const char *name) {
    const size_t from = lower_bound(x, name);
    size_t to = from;
    while (to < x->count && strcmp(x->entries[to].name, name) == 0)
        to++;
    return to - from;
}

void name_index_free(name_index *x) {
    free(x->entries);
    *x = (name_index){NULL, 0, 0};
}

/* Adds the names that each node reads, or those that it makes. */
static void add_nodes(const qsim_model *m, bool made, name_index *x) {
    qsim_node_info n = {.struct_size = sizeof(n)};
    for (int32_t i = 0; qsim_model_node(m, i, &n) == QSIM_OK; i++)
        for (int32_t k = 0; k < (made ? n.output_count : n.input_count); k++)
            name_index_add(x, made ? n.outputs[k] : n.inputs[k], i);
    name_index_sort(x);
}

void name_index_readers(const qsim_model *m, name_index *x) {
    add_nodes(m, false, x);
}

void name_index_makers(const qsim_model *m, name_index *x) {
    add_nodes(m, true, x);
}

void name_index_outputs(const qsim_model *m, name_index *x) {
    for (int32_t i = 0; i < qsim_model_output_count(m); i++) {
        qsim_value_info v = {.struct_size = sizeof(v)};
        if (qsim_model_output(m, i, &v) == QSIM_OK)
            name_index_add(x, v.name, i);
    }
    name_index_sort(x);
}
