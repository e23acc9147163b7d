/* SPDX-License-Identifier: MIT */
/* Finds numbers by names, so that work on every name of a model does not grow with its square. */
#ifndef QSIM_NAME_INDEX_H
#define QSIM_NAME_INDEX_H

#include <qsim/model.h>

typedef struct name_entry {
    const char *name;
    int32_t value;
} name_entry;

/* Zeroed at first. Names are borrowed. */
typedef struct name_index {
    name_entry *entries;
    size_t count, capacity;
} name_index;

void name_index_add(name_index *x, const char *name, int32_t value);
/* After the last name_index_add, before the first name_index_find. */
void name_index_sort(name_index *x);
/* The least value of the name; -1: there is none. Values are not negative. */
int32_t name_index_find(const name_index *x, const char *name);
/* How many entries the name has. */
size_t name_index_count(const name_index *x, const char *name);
void name_index_free(name_index *x);

/* Sorted: for each name that a node of the model reads, the nodes that do. */
void name_index_readers(const qsim_model *m, name_index *x);
/* Sorted: for each name that a node of the model makes, the node. */
void name_index_makers(const qsim_model *m, name_index *x);
/* Sorted: the model's outputs. */
void name_index_outputs(const qsim_model *m, name_index *x);

#endif
