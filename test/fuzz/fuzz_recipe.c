/* SPDX-License-Identifier: MIT */
/* libFuzzer target: bytes as a recipe. What loads is written, read again and merged: the same text.
 */
#include <stdlib.h>
#include <string.h>

#include <qsim/recipe.h>

#include "fuzz.h"

/* The build names a file to start from. */
size_t fuzz_seed(size_t index, uint8_t *buffer, size_t capacity) {
    (void)index, (void)buffer, (void)capacity;
    return 0;
}

static char *text_of(const qsim_recipe *r, size_t *size) {
    if (qsim_recipe_text(r, NULL, 0, size, NULL))
        abort();
    char *text = malloc(*size);
    if (!text || qsim_recipe_text(r, text, *size, size, NULL))
        abort();
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    qsim_recipe *r = NULL, *again = NULL;
    size_t first, second;
    if (qsim_recipe_load_memory(NULL, data, size, "fuzz", &r, NULL))
        return 0;
    char *text = text_of(r, &first);
    if (qsim_recipe_load_memory(NULL, text, first, NULL, &again, NULL))
        abort();
    for (int32_t i = 0; i < qsim_recipe_count(r); i++) {
        qsim_recipe_entry e = {.struct_size = sizeof(e)};
        if (qsim_recipe_get(r, i, &e) || qsim_recipe_find(r, e.kind, e.name) != i ||
            qsim_recipe_set(again, &e, NULL))
            abort();
    }
    if (qsim_recipe_merge(again, r, NULL))
        abort();
    char *same = text_of(again, &second);
    if (first != second || memcmp(text, same, first) != 0)
        abort();
    free(text);
    free(same);
    qsim_recipe_free(r);
    qsim_recipe_free(again);
    return 0;
}
