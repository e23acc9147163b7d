/* SPDX-License-Identifier: MIT */
/* libFuzzer target: bytes as a recipe, which is written, read again and merged: the same text. */
#include <stdlib.h>
#include <string.h>

#include <qsim/recipe.h>

#include "fuzz.h"

/* The build names an initial file. */
size_t fuzz_seed(size_t index, uint8_t *buffer, size_t capacity) {
    (void)index, (void)buffer, (void)capacity;
    return 0;
}

/* NULL if memory was refused. */
static char *text_of(const fuzz_heap *heap, const qsim_recipe *r, size_t *size) {
    if (!fuzz_must(heap, qsim_recipe_text(r, NULL, 0, size, NULL) == QSIM_OK))
        return NULL;
    char *text = malloc(*size);
    if (!text || fuzz_must(heap, qsim_recipe_text(r, text, *size, size, NULL) == QSIM_OK))
        return text;
    free(text);
    return NULL;
}

/* Finds every entry and sets it again. */
static void copy(const fuzz_heap *heap, const qsim_recipe *r, qsim_recipe *again) {
    for (int32_t i = 0; i < qsim_recipe_count(r); i++) {
        qsim_recipe_entry e = {.struct_size = sizeof(e)};
        if (qsim_recipe_get(r, i, &e) || qsim_recipe_find(r, e.kind, e.name) != i)
            abort();
        fuzz_must(heap, qsim_recipe_set(again, &e, NULL) == QSIM_OK);
    }
    fuzz_must(heap, qsim_recipe_merge(again, r, NULL) == QSIM_OK);
}

static void attempt(qsim_ctx *ctx, const fuzz_heap *heap, const uint8_t *data, size_t size) {
    qsim_recipe *r = NULL, *again = NULL;
    size_t first, second;
    char *same = NULL;
    if (fuzz_legal(qsim_recipe_load_memory(ctx, data, size, "fuzz", &r, NULL)))
        return;
    char *text = text_of(heap, r, &first);
    if (text && fuzz_must(heap, !qsim_recipe_load_memory(ctx, text, first, NULL, &again, NULL))) {
        copy(heap, r, again);
        same = text_of(heap, again, &second);
        fuzz_must(heap, same && first == second && memcmp(text, same, first) == 0);
    }
    free(text);
    free(same);
    qsim_recipe_free(r);
    qsim_recipe_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_run(attempt, data, size);
    return 0;
}
