/* SPDX-License-Identifier: MIT */
/*
 * Runs a fuzz target without libFuzzer: over the files named as arguments and the target's own
 * seeds, without either over small shared models, each with a number of reproducible mutations.
 * `replay [-s START] [-n MUTATIONS] [FILE…]`: START draws other mutations than those of each day.
 * `replay -d FOLDER` writes the target's own seeds there, as an initial corpus for libFuzzer. The
 * input of a target that aborts is kept in `replay-found`; so is that of a report of the address
 * sanitizer with ASAN_OPTIONS=abort_on_error=1.
 */
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "fuzz.h"
#include "test.h"
#include "wire_mutator.h"

#define ROOM  4096              /* the most that mutations of fields add */
#define GROWN ((size_t)3 << 20) /* the largest input that others grow to */
#define RARE  4000              /* one mutation of so many grows its input */

static uint64_t state = 1;

/* The input in progress, for `found`. */
static const uint8_t *input;
static size_t input_size;

/* Keeps the input of a target that aborted. */
static void found(int signal_number) {
    static const char text[] = "replay: the input is in replay-found\n";
    const int fd = open("replay-found", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    const bool kept = fd >= 0 && write(fd, input, input_size) == (ssize_t)input_size;
    if (kept && write(2, text, sizeof(text) - 1) < 0)
        _exit(3);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void run_one(const uint8_t *data, size_t size) {
    input = data;
    input_size = size;
    LLVMFuzzerTestOneInput(data, size);
}

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

/* Sets, flips, removes or doubles bytes, mostly near the beginning, where the structure is. */
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

#ifdef FUZZ_WIRE
static size_t grow(uint8_t *p, size_t size, size_t capacity) {
    return fuzz_wire_grow(p, size, capacity, draw(UINT32_MAX));
}
#else
/* Repeats the bytes from one to the next that equals it, which keeps lists and rows legal. */
static size_t grow(uint8_t *p, size_t size, size_t capacity) {
    const size_t at = size ? draw((uint32_t)size) : 0;
    const uint8_t *next = size - at > 1 ? memchr(p + at + 1, p[at], size - at - 1) : NULL;
    const size_t n = next ? (size_t)(next - p) - at : 1;
    size_t more = draw((uint32_t)(capacity - size));
    more -= more % n;
    if (size == 0)
        return 0;
    memmove(p + at + more, p + at, size - at);
    for (size_t done = n, some; done < more; done += some) {
        some = done < more - done ? done : more - done;
        memcpy(p + at + done, p + at, some);
    }
    return size + more;
}
#endif

/* Each mutation gets a buffer of exactly its size, so that reads beyond it are seen. */
static int run_bytes(const uint8_t *data, size_t size, long mutations) {
    const size_t capacity = size + ROOM < GROWN ? GROWN : size + ROOM;
    uint8_t *copy = malloc(capacity);
    run_one(data, size);
    for (long k = 0; copy && k < mutations; k++) {
        memcpy(copy, data, size);
        size_t n = draw(RARE) == 0 ? grow(copy, size, capacity) : size;
#ifdef FUZZ_WIRE
        for (uint32_t fields = draw(4); fields > 0; fields--)
            n = fuzz_wire_mutate(copy, n, capacity, NULL, 0, draw(UINT32_MAX));
        if (n == size)
#endif
            n = mutate(copy, n);
        uint8_t *exact = malloc(n ? n : 1);
        if (exact) {
            memcpy(exact, copy, n);
            run_one(exact, n);
        }
        free(exact);
    }
    free(copy);
    return copy != NULL;
}

static int run(const char *path, long mutations) {
    size_t size = 0;
    uint8_t *data = read_file(path, &size);
    int ok = data && run_bytes(data, size, mutations);
    free(data);
    return ok;
}

/* Runs the target's own seeds; returns their number. */
static size_t run_seeds(long mutations) {
    static uint8_t seed[65536];
    size_t count = 0, size;
    while ((size = fuzz_seed(count, seed, sizeof(seed))) > 0) {
        CHECK(run_bytes(seed, size, mutations));
        count++;
    }
    return count;
}

static void write_seeds(const char *folder) {
    static uint8_t seed[65536];
    char path[1024];
    size_t size;
    for (size_t i = 0; (size = fuzz_seed(i, seed, sizeof(seed))) > 0; i++) {
        snprintf(path, sizeof(path), "%s/seed%zu", folder, i);
        FILE *f = fopen(path, "wb");
        CHECK(f && fwrite(seed, 1, size, f) == size);
        CHECK(f && fclose(f) == 0);
    }
}

int main(int argc, char **argv) {
    static const char *const shared[] = {"models/mnist-8.onnx",
                                         "models/mlptiny_kws_dscnn_int8.onnx",
                                         "models/fashion_lenetlite.onnx"};
    char path[1024];
    long mutations = 500;
    int first = 1;
    signal(SIGABRT, found);
    if (argc > 2 && strcmp(argv[1], "-d") == 0) {
        write_seeds(argv[2]);
        return test_failures != 0;
    }
    if (argc > 2 && strcmp(argv[1], "-s") == 0) {
        state += strtoull(argv[2], NULL, 10);
        first = 3;
    }
    if (argc > first + 1 && strcmp(argv[first], "-n") == 0) {
        mutations = strtol(argv[first + 1], NULL, 10);
        first += 2;
    }
    for (int i = first; i < argc; i++)
        CHECK(run(argv[i], mutations));
    if (run_seeds(mutations) > 0)
        return test_done();
    for (size_t i = 0; first >= argc && i < sizeof(shared) / sizeof(shared[0]); i++)
        CHECK(run(test_shared(shared[i], path), mutations));
    return test_done();
}
