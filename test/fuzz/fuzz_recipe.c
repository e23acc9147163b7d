/* SPDX-License-Identifier: MIT */
/* libFuzzer target: bytes as a recipe, which is written, read again and merged: the same text. */
#include <stdlib.h>
#include <string.h>

#include <qsim/recipe.h>

#include "fuzz.h"
#include "fuzz_folder.h"

#define HEAD                                                                                       \
    "qsim-recipe 1\n"                                                                              \
    "model 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n"

/* Small recipes, and each that is wrong in one place; the build names a larger initial one. */
size_t fuzz_seed(size_t index, uint8_t *buffer, size_t capacity) {
    static const char *const texts[] = {
        HEAD "equalize \"a\" 3 1 0.5 4\nlayer \"a\" weights uint4 block 16 asymmetric\n",
        HEAD "equalize \"a\" 3 1 -2 0\n",
        HEAD "equalize \"a\" 3 1 2\n",
        HEAD "equalize \"a\" 2.5 1 2\n",
        HEAD "equalize \"a\" 99999999999 1\n",
        HEAD "equalize \"a\" 1 x\n",
        HEAD "equalize \"a\"\n",
        HEAD "smooth \"a\" 2 0.5 4\n",
        HEAD "layer \"a\" bias-correction on\nlayer \"b\" bias-correction 3 1 2 3\n",
        HEAD "layer \"a\" float\nlayer \"a\" float\n",
        HEAD "layer \"a\"\n",
        HEAD "layer \"a\" nothing\n",
        HEAD "layer \"a\" weights int8 int8\n",
        HEAD "layer \"a\" weights int8 channel channel\n",
        HEAD "layer \"a\" weights int4 block 0\n",
        HEAD "layer \"a\" rounding nothing\n",
        HEAD "tensor \"a\" uint8 method percentile 0\n",
        HEAD "tensor \"a\" uint8 method nothing\n",
        HEAD "tensor \"a\" uint8 range 2 1\n",
        HEAD "tensor \"a\" uint16 range -1\n",
        HEAD "tensor \"a\" weights int8\n",
        HEAD "calibration 01\n",
        "qsim-recipe 2\n",
        "qsim-recipe 11111111111111111111111111111111111111111111111111111111\n",
        "recipe\n",
    };
    return fuzz_text_seed(texts, sizeof(texts) / sizeof(*texts), index, buffer, capacity);
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

/* A file gives the same recipe as memory. */
static void load(const uint8_t *data, size_t size) {
    qsim_recipe *a = NULL, *b = NULL;
    fuzz_write(fuzz_file("r"), data, size);
    if (qsim_recipe_load(NULL, fuzz_file("r"), &a, NULL) !=
        qsim_recipe_load_memory(NULL, data, size, "r", &b, NULL))
        abort();
    qsim_recipe_free(a);
    qsim_recipe_free(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_run(attempt, data, size);
    if (size > 0 && data[size / 2] % 16 == 0)
        load(data, size);
    return 0;
}
