/* SPDX-License-Identifier: MIT */
/*
 * For every test program. A failed check prints its place and expression, and the program goes on;
 * main returns test_done(), which is 0 only if no check failed and at least one was made. A test
 * that cannot run on this machine calls test_skip("why"): meson counts it as skipped.
 */
#ifndef QS_TEST_H
#define QS_TEST_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long test_checks, test_failures;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        test_checks++;                                                                             \
        if (!(condition)) {                                                                        \
            test_failures++;                                                                       \
            fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);                \
        }                                                                                          \
    } while (0)

/* Records a failure without a condition. */
#define CHECK_FAIL(what)                                                                           \
    do {                                                                                           \
        test_checks++;                                                                             \
        test_failures++;                                                                           \
        fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, what);                          \
    } while (0)

#define CHECK_INT(actual, expected)                                                                \
    do {                                                                                           \
        long long test_a = (long long)(actual), test_e = (long long)(expected);                    \
        test_checks++;                                                                             \
        if (test_a != test_e) {                                                                    \
            test_failures++;                                                                       \
            fprintf(stderr, "%s:%d: failed: %s is %lld, expected %lld\n", __FILE__, __LINE__,      \
                    #actual, test_a, test_e);                                                      \
        }                                                                                          \
    } while (0)

#define CHECK_STR(actual, expected)                                                                \
    do {                                                                                           \
        const char *test_a = (actual), *test_e = (expected);                                       \
        test_checks++;                                                                             \
        if (!test_a || strcmp(test_a, test_e) != 0) {                                              \
            test_failures++;                                                                       \
            fprintf(stderr, "%s:%d: failed: %s is \"%s\", expected \"%s\"\n", __FILE__, __LINE__,  \
                    #actual, test_a ? test_a : "(null)", test_e);                                  \
        }                                                                                          \
    } while (0)

/* What is answered to sizes that only 64 bits can count. */
#define TEST_WIDE(code) (SIZE_MAX > UINT32_MAX ? (code) : QSIM_E_LIMIT)

/* |actual - expected| <= tolerance; a NaN fails. */
#define CHECK_NEAR(actual, expected, tolerance)                                                    \
    do {                                                                                           \
        double test_a = (double)(actual), test_e = (double)(expected);                             \
        double test_d = test_a > test_e ? test_a - test_e : test_e - test_a;                       \
        test_checks++;                                                                             \
        if (!(test_d <= (tolerance))) {                                                            \
            test_failures++;                                                                       \
            fprintf(stderr, "%s:%d: failed: %s is %.9g, expected %.9g within %.3g\n", __FILE__,    \
                    __LINE__, #actual, test_a, test_e, (double)(tolerance));                       \
        }                                                                                          \
    } while (0)

/* A small reproducible generator (xorshift64*), so that a failure can be repeated. */
static inline uint32_t test_random(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (uint32_t)((*state * 2685821657736338717ull) >> 32);
}

/* A copy that ends where its memory does, so that AddressSanitizer sees what reads on; free() it.
 */
static inline void *exact_copy(const void *data, size_t size) {
    void *copy = calloc(1, size);
    if (size && !copy)
        exit(1);
    if (size)
        memcpy(copy, data, size);
    return copy;
}

static inline int test_done(void) {
    fprintf(stderr, "%ld checks, %ld failed\n", test_checks, test_failures);
    return test_failures != 0 || test_checks == 0;
}

/* Ends the program as skipped, unless a check has failed already. */
static inline void test_skip(const char *why) {
    fprintf(stderr, "skipped: %s\n", why);
    exit(test_failures ? 1 : 77);
}

/*
 * Path of shared data, in $QSIM_SHARED or ../shared. Without it the test is skipped, or fails if
 * QSIM_REQUIRE_SHARED is 1.
 */
static inline const char *test_shared(const char *path, char buffer[1024]) {
    const char *root = getenv("QSIM_SHARED");
    const char *required = getenv("QSIM_REQUIRE_SHARED");
    snprintf(buffer, 1024, "%s/%s", root ? root : "../shared", path);
    FILE *f = fopen(buffer, "rb");
    if (f) {
        fclose(f);
        return buffer;
    }
    if (required && strcmp(required, "1") == 0) {
        fprintf(stderr, "missing: %s\n", buffer);
        exit(1);
    }
    fprintf(stderr, "missing: %s\n", buffer);
    test_skip("shared data is not here");
    return NULL;
}

#endif
