/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer target: bytes as a list of calls of the packer. Entries that were added are in the
 * package, with their bytes, and in the folder that it is unpacked to; nothing is written
 * elsewhere.
 */
#include <string.h>

#include <qsim/qsim.h>

#include "fuzz.h"
#include "fuzz_folder.h"
#include "model_seeds.h"

#define MOST_ENTRIES 24

typedef struct entry {
    char name[24];
    const uint8_t *data;
    size_t size;
} entry;

typedef struct added {
    entry list[MOST_ENTRIES];
    size_t count;
} added;

/* A name of valid and invalid letters. */
static void take_name(fuzz_bytes *b, char name[24]) {
    static const char letters[] = "abc./\\:\x01\xc3\xa9 ~_-0AB\xff*?x";
    const size_t n = fuzz_below(b, 23);
    for (size_t i = 0; i < n; i++)
        name[i] = letters[fuzz_below(b, sizeof(letters) - 1)];
    name[n] = 0;
}

/* Content of several blocks of 64 KiB, and near their ends: at first zeros, then what no method
 * shortens. */
static void take_blocks(entry *e, size_t blocks) {
    static uint8_t large[(8 << 16) + 1];
    uint32_t state = 1;
    for (size_t i = sizeof(large) / 4; i < sizeof(large); i++)
        large[i] = (uint8_t)((state = state * 1664525u + 1013904223u) >> 24);
    e->data = large;
    e->size = (blocks << 16) + 1 - blocks % 3;
}

static void add_data(qsim_packer *w, fuzz_bytes *b, added *all) {
    entry *e = &all->list[all->count];
    take_name(b, e->name);
    const uint8_t size = fuzz_byte(b);
    e->size = size % 64 < b->left ? size % 64 : b->left;
    e->data = b->data;
    b->data += e->size;
    b->left -= e->size;
    if (size >= 248)
        take_blocks(e, size - 247u);
    const int32_t role = (int32_t)fuzz_below(b, 10);
    const int code =
        fuzz_legal(qsim_packer_add(w, role, role ? NULL : e->name, e->data, e->size, NULL));
    if (code == QSIM_OK && role == QSIM_ROLE_DATA && all->count + 1 < MOST_ENTRIES)
        all->count++;
}

static void build(qsim_packer *w, fuzz_bytes *b, added *all) {
    char name[24], value[24];
    for (int k = 0; k < 40 && b->left > 0; k++)
        switch (fuzz_below(b, 4)) {
        case 0:
            take_name(b, name);
            fuzz_legal(qsim_packer_model(w, fuzz_file("m.onnx"), *name ? name : NULL, NULL));
            break;
        case 1:
            take_name(b, name);
            take_name(b, value);
            fuzz_legal(qsim_packer_option(w, name, value, NULL));
            break;
        default: add_data(w, b, all);
        }
}

/* Compares the bytes in the package, and in the file below the folder. */
static void compare(qsim_package *p, const fuzz_heap *heap, const entry *e, bool unpacked) {
    const void *data = NULL;
    char path[128];
    size_t size = 0;
    qsim_file *f = NULL;
    const int32_t index = qsim_package_find(p, e->name);
    fuzz_must(heap, index >= 0 && qsim_package_data(p, index, &data, &size, NULL) == QSIM_OK &&
                        size == e->size && (size == 0 || memcmp(data, e->data, size) == 0));
    if (!unpacked)
        return;
    snprintf(path, sizeof(path), "%s/out/%s", fuzz_folder(), e->name);
    if (qsim_file_open(NULL, path, QSIM_FILE_COPY, &f, NULL) || qsim_file_size(f) != e->size)
        abort();
    qsim_file_close(f);
}

static void attempt(qsim_ctx *ctx, const fuzz_heap *heap, const uint8_t *data, size_t size) {
    fuzz_bytes b = {data, size};
    added all = {.count = 0};
    qsim_packer *w = NULL;
    qsim_package *p = NULL;
    const int32_t deflate = fuzz_byte(&b) % 2 ? QSIM_PACK_DEFLATE : 0;
    char folder[128];
    snprintf(folder, sizeof(folder), "%s/out", fuzz_folder());
    if (fuzz_legal(qsim_packer_create(ctx, &w, NULL)) == QSIM_OK) {
        build(w, &b, &all);
        if (fuzz_legal(qsim_packer_save(w, fuzz_file("p.zip"), QSIM_PACK_REPLACE | deflate,
                                        NULL)) == QSIM_OK &&
            fuzz_must(heap, qsim_package_open(ctx, fuzz_file("p.zip"), 0, &p, NULL) == QSIM_OK)) {
            const bool out = qsim_package_unpack(p, folder, 0, NULL) == QSIM_OK;
            fuzz_must(heap, out);
            /* A second time: refused without the flag, then over the existing files. */
            if (out && qsim_package_unpack(p, folder, 0, NULL) == QSIM_OK)
                abort();
            if (out && all.count < 2)
                fuzz_must(heap,
                          qsim_package_unpack(p, folder, QSIM_UNPACK_REPLACE, NULL) == QSIM_OK);
            for (size_t i = 0; i < all.count; i++)
                compare(p, heap, &all.list[i], out);
        }
    }
    qsim_package_free(p);
    qsim_packer_free(w);
    fuzz_remove(folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static bool begun;
    if (!begun) {
        qsim_model *m = fuzz_model(0);
        if (qsim_model_save(m, fuzz_file("m.onnx"), NULL, NULL))
            abort();
        qsim_model_free(m);
    }
    begun = true;
    fuzz_run(attempt, data, size);
    return 0;
}

/* A model, then one option and one file; two models and files in folders; a file of eight blocks.
 */
size_t fuzz_seed(size_t index, uint8_t *buffer, size_t capacity) {
    static const uint8_t seeds[][32] = {
        {0, 0, 1, 0, 1, 2, 0, 1, 1, 2, 2, 2, 0, 1, 5, 'h', 'e', 'l', 'l', 'o', 0},
        {1, 0, 1, 0, 0, 1, 1, 2, 4, 0, 4, 1, 2, 3, 'a', 'b', 'c', 0, 2, 4, 1, 4, 1, 2, 0, 0},
        {1, 2, 1, 0, 255, 0},
    };
    if (index >= sizeof(seeds) / sizeof(seeds[0]) || capacity < sizeof(seeds[0]))
        return 0;
    memcpy(buffer, seeds[index], sizeof(seeds[0]));
    return sizeof(seeds[0]);
}
