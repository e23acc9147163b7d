/* SPDX-License-Identifier: MIT */
/* The recipe object, for the files of lib/ptq. */
#ifndef QS_RECIPE_H
#define QS_RECIPE_H

#include "base/base.h"
#include "graph/names.h"

#include <qsim/recipe.h>

struct qsim_recipe {
    qsim_ctx *ctx;
    qs_arena arena; /* names */
    char model[65], calibration[65];
    qsim_recipe_entry *entries;
    size_t count, capacity;
    struct qs_names *names[3]; /* by kind - 1: name -> index in entries */
};

/* qsim_recipe_set for an entry with all fields, under this name. */
int qs_recipe_put(qsim_recipe *r, const qsim_recipe_entry *entry, const char *name);
/* The entry of a name, or NULL; `r` may be NULL. */
const qsim_recipe_entry *qs_recipe_find(const qsim_recipe *r, int32_t kind, const char *name);
/* What is wrong with an entry; NULL: nothing. */
const char *qs_recipe_fault(const qsim_recipe_entry *e);

/* ---- words of the file (recipe_words.c) ---- */

/* A word and its number; a list ends with NULL. */
typedef struct qs_word {
    const char *text;
    int32_t number;
} qs_word;

extern const qs_word qs_recipe_weight_types[], qs_recipe_tensor_types[], qs_recipe_granularities[],
    qs_recipe_roundings[], qs_recipe_switches[], qs_recipe_methods[];

/* The word for a number, or NULL. */
const char *qs_word_text(const qs_word *words, int32_t number);
/* The number for the `length` bytes at `text`; false: it is none of the words. */
bool qs_word_number(const qs_word *words, const char *text, size_t length, int32_t *number);

#endif
