/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer target: bytes as a model file with another file beside it. A model that loads is
 * packed, and the package's model has the same constants; saved in one file and in two, it has
 * those that something reads. Then the same bytes with a callback that gives data of any length.
 */
#include <string.h>

#include <qsim/qsim.h>

#include "fuzz.h"
#include "fuzz_folder.h"
#include "model_seeds.h"

static const uint8_t outside[64] = {0, 0, 128, 63, 0, 0, 0, 64, 1, 2, 3, 4};

static unsigned read_all(const void *data, size_t size) {
    unsigned sum = 0;
    for (size_t i = 0; i < size; i++)
        sum = sum * 31 + ((const uint8_t *)data)[i];
    return sum;
}

/* Reads every constant to its last byte; returns a sum of all bytes. */
static unsigned constants(const qsim_model *m) {
    qsim_value_info v = {.struct_size = sizeof(v)};
    unsigned sum = 0;
    for (int32_t i = 0; i < qsim_model_value_count(m); i++)
        if (qsim_model_value(m, i, &v) == QSIM_OK && v.data)
            sum += read_all(v.data, v.bytes);
    return sum;
}

/* Loads the same model from a package. */
static void pack(qsim_ctx *ctx, const fuzz_heap *heap, unsigned expected) {
    qsim_packer *w = NULL;
    qsim_package *p = NULL;
    qsim_model *m = NULL;
    if (fuzz_legal(qsim_packer_create(ctx, &w, NULL)) == QSIM_OK &&
        fuzz_legal(qsim_packer_model(w, fuzz_file("m.onnx"), NULL, NULL)) == QSIM_OK &&
        fuzz_legal(qsim_packer_save(w, fuzz_file("p.zip"), QSIM_PACK_REPLACE, NULL)) == QSIM_OK &&
        fuzz_must(heap, qsim_package_open(ctx, fuzz_file("p.zip"), 0, &p, NULL) == QSIM_OK) &&
        fuzz_must(heap, qsim_package_model(p, NULL, NULL, &m, NULL) == QSIM_OK))
        fuzz_must(heap, constants(m) == expected);
    qsim_model_free(m);
    qsim_package_free(p);
    qsim_packer_free(w);
}

/* Whether the constants of `again` are constants of m. */
static bool has_all(const qsim_model *m, const qsim_model *again) {
    qsim_value_info v = {.struct_size = sizeof(v)}, w = {.struct_size = sizeof(w)};
    for (int32_t i = 0; i < qsim_model_value_count(again); i++) {
        bool found = qsim_model_value(again, i, &v) || !v.data;
        for (int32_t k = 0; k < qsim_model_value_count(m) && !found; k++)
            found = !qsim_model_value(m, k, &w) && w.data && strcmp(v.name, w.name) == 0 &&
                    v.bytes == w.bytes && memcmp(v.data, w.data, v.bytes) == 0;
        if (!found)
            return false;
    }
    return true;
}

/* The same model with all its bytes in one file. */
static void inside(qsim_ctx *ctx, const fuzz_heap *heap, const qsim_model *m) {
    qsim_model *again = NULL;
    size_t need = 0;
    if (fuzz_legal(qsim_model_save_memory(m, NULL, 0, &need, NULL)) || need > 1u << 22)
        return;
    uint8_t *bytes = malloc(need);
    if (bytes && fuzz_must(heap, !qsim_model_save_memory(m, bytes, need, &need, NULL)) &&
        fuzz_must(heap, !qsim_model_load_memory(ctx, bytes, need, NULL, &again, NULL)))
        fuzz_must(heap, has_all(m, again));
    qsim_model_free(again);
    free(bytes);
}

/* The same model with its large tensors in a file of their own. */
static void beside(qsim_ctx *ctx, const fuzz_heap *heap, const qsim_model *m) {
    static const qsim_save_options o = {.struct_size = sizeof(o),
                                        .flags = QSIM_SAVE_REPLACE | QSIM_SAVE_EXTERNAL};
    qsim_model *again = NULL;
    if (fuzz_legal(qsim_model_save(m, fuzz_file("s.onnx"), &o, NULL)) == QSIM_OK &&
        fuzz_must(heap, !qsim_model_load(ctx, fuzz_file("s.onnx"), NULL, &again, NULL)))
        fuzz_must(heap, has_all(m, again));
    qsim_model_free(again);
}

typedef struct given {
    uint8_t *data; /* of exactly `size` bytes, so that reads beyond it are seen */
    size_t size;
} given;

static int give(void *user, const char *location, const void **data, size_t *size) {
    const given *g = user;
    if (strlen(location) % 5 == 4)
        return -7;
    *data = g->data;
    *size = g->size;
    return 0;
}

static void attempt(qsim_ctx *ctx, const fuzz_heap *heap, const uint8_t *data, size_t size) {
    given g = {malloc(size % 40 + 1), size % 40};
    qsim_load_options o = {.struct_size = sizeof(o), .external = give, .external_user = &g};
    qsim_model *m = NULL;
    if (!g.data)
        return;
    memset(g.data, 1, g.size + 1);
    if (fuzz_legal(qsim_model_load(ctx, fuzz_file("m.onnx"), NULL, &m, NULL)) == QSIM_OK) {
        pack(ctx, heap, constants(m));
        inside(ctx, heap, m);
        beside(ctx, heap, m);
    }
    qsim_model_free(m);
    if (fuzz_legal(qsim_model_load_memory(ctx, data, size, &o, &m, NULL)) == QSIM_OK)
        constants(m);
    qsim_model_free(m);
    free(g.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static bool begun;
    if (!begun)
        fuzz_write(fuzz_file(FUZZ_OUTSIDE), outside, sizeof(outside));
    begun = true;
    fuzz_write(fuzz_file("m.onnx"), data, size);
    fuzz_run(attempt, data, size);
    return 0;
}

size_t fuzz_seed(size_t index, uint8_t *buffer, size_t capacity) {
    return fuzz_model_bytes(index, buffer, capacity);
}
