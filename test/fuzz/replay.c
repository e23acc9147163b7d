/* SPDX-License-Identifier: MIT */
/*
 * Runs a fuzz target without libFuzzer: over the files named as arguments, or over small shared
 * models, each with a number of reproducible mutations. `replay [-n MUTATIONS] [FILE…]`
 */
#include "test.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t state = 1;

static uint32_t draw(uint32_t below) {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (uint32_t)((state * 2685821657736338717ull) >> 32) % below;
}

static uint8_t *read_file(const char *path, size_t *size) {
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END))
        return NULL;
    long n = ftell(f);
    rewind(f);
    uint8_t *data = n < 0 ? NULL : malloc((size_t)n + 1);
    *size = data ? fread(data, 1, (size_t)n, f) : 0;
    fclose(f);
    return data;
}

/* Bytes set, flipped, removed or doubled; mostly near the beginning, where the structure is. */
static size_t mutate(uint8_t *p, size_t size) {
    for (uint32_t k = 1 + draw(4); k-- > 0 && size > 1;) {
        uint32_t reach = draw(2) && size > 512 ? 512 : (uint32_t)size;
        size_t at = draw(reach), n = 1 + draw(8);
        switch (draw(4)) {
        case 0: p[at] = (uint8_t)draw(256); break;
        case 1: p[at] ^= (uint8_t)(1u << draw(8)); break;
        case 2:
            n = n < size - at ? n : size - at;
            memmove(p + at, p + at + n, size - at - n);
            size -= n;
            break;
        default: p[at] = (uint8_t)(p[at] + (draw(2) ? 1 : 255)); break;
        }
    }
    return size;
}

static int run(const char *path, long mutations) {
    size_t size = 0;
    uint8_t *data = read_file(path, &size), *copy = data ? malloc(size + 1) : NULL;
    if (data && copy) {
        LLVMFuzzerTestOneInput(data, size);
        for (long k = 0; k < mutations; k++) {
            memcpy(copy, data, size);
            LLVMFuzzerTestOneInput(copy, mutate(copy, size));
        }
    }
    int ok = data && copy;
    free(data);
    free(copy);
    return ok;
}

int main(int argc, char **argv) {
    static const char *const shared[] = {"models/mnist-8.onnx",
                                         "models/mlptiny_kws_dscnn_int8.onnx",
                                         "models/fashion_lenetlite.onnx"};
    char path[1024];
    long mutations = 500;
    int first = 1;
    if (argc > 2 && strcmp(argv[1], "-n") == 0) {
        mutations = strtol(argv[2], NULL, 10);
        first = 3;
    }
    for (int i = first; i < argc; i++)
        CHECK(run(argv[i], mutations));
    for (size_t i = 0; first >= argc && i < sizeof(shared) / sizeof(shared[0]); i++)
        CHECK(run(test_shared(shared[i], path), mutations));
    return test_done();
}
