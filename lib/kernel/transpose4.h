/* SPDX-License-Identifier: MIT */
/*
 * 4 x 4 transposes of dwords and bytes for packing weights, in 128-bit vectors, which every
 * instruction set has, through the compiler's shuffles. No alignment is needed.
 */
#ifndef QK_TRANSPOSE4_H
#define QK_TRANSPOSE4_H

#include <stdint.h>
#include <string.h>

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define QK_SHUFFLES 1
#endif
#endif

#ifdef QK_SHUFFLES
typedef uint32_t qk_four __attribute__((vector_size(16)));
typedef uint16_t qk_eight __attribute__((vector_size(16)));
typedef uint64_t qk_two __attribute__((vector_size(16)));
typedef uint8_t qk_sixteen __attribute__((vector_size(16)));
typedef int8_t qk_signed __attribute__((vector_size(16)));
typedef float qk_floats __attribute__((vector_size(16)));
#endif

#ifdef QK_SHUFFLES
/* Transposes four rows of four dwords. Named arguments, so that all stay in registers. */
static inline __attribute__((always_inline)) void qk_transpose4_dwords(qk_four *a, qk_four *b,
                                                                       qk_four *c, qk_four *d) {
    const qk_four low = __builtin_shufflevector(*a, *b, 0, 4, 1, 5);
    const qk_four high = __builtin_shufflevector(*a, *b, 2, 6, 3, 7);
    const qk_four low2 = __builtin_shufflevector(*c, *d, 0, 4, 1, 5);
    const qk_four high2 = __builtin_shufflevector(*c, *d, 2, 6, 3, 7);
    *a = __builtin_shufflevector(low, low2, 0, 1, 4, 5);
    *b = __builtin_shufflevector(low, low2, 2, 3, 6, 7);
    *c = __builtin_shufflevector(high, high2, 0, 1, 4, 5);
    *d = __builtin_shufflevector(high, high2, 2, 3, 6, 7);
}
#endif

/* from[c] + at: 16 bytes of column c; row i goes to to[i]; every dword is xored with `flip`. */
static inline __attribute__((always_inline)) void qk_transpose_dwords(const uint8_t *const from[4],
                                                                      size_t at, uint32_t flip,
                                                                      uint8_t *const to[4]) {
#ifdef QK_SHUFFLES
    const qk_four flips = {flip, flip, flip, flip};
    qk_four a, b, c, d;
    memcpy(&a, from[0] + at, 16);
    memcpy(&b, from[1] + at, 16);
    memcpy(&c, from[2] + at, 16);
    memcpy(&d, from[3] + at, 16);
    a ^= flips, b ^= flips, c ^= flips, d ^= flips;
    qk_transpose4_dwords(&a, &b, &c, &d);
    memcpy(to[0], &a, 16);
    memcpy(to[1], &b, 16);
    memcpy(to[2], &c, 16);
    memcpy(to[3], &d, 16);
#else
    for (int i = 0; i < 4; i++)
        for (int c = 0; c < 4; c++) {
            uint32_t v;
            memcpy(&v, from[c] + at + 4 * i, 4);
            v ^= flip;
            memcpy(to[i] + 4 * c, &v, 4);
        }
#endif
}

/* Four rows of 16 bytes become 16 columns of 4 bytes, four of them at each of to[0] … to[3]. */
static inline void qk_transpose_bytes(const uint8_t *const from[4], uint8_t flip,
                                      uint8_t *const to[4]) {
#ifdef QK_SHUFFLES
    qk_sixteen a, b, c, d;
    qk_eight ab, cd, four;
    memcpy(&a, from[0], 16);
    memcpy(&b, from[1], 16);
    memcpy(&c, from[2], 16);
    memcpy(&d, from[3], 16);
#define PAIRS(x, y, at)                                                                            \
    (qk_eight)(__builtin_shufflevector(x, y, (at), (at) + 16, (at) + 1, (at) + 17, (at) + 2,       \
                                       (at) + 18, (at) + 3, (at) + 19, (at) + 4, (at) + 20,        \
                                       (at) + 5, (at) + 21, (at) + 6, (at) + 22, (at) + 7,         \
                                       (at) + 23) ^                                                \
               flip)
#define HALF(at, i)                                                                                \
    ab = PAIRS(a, b, at);                                                                          \
    cd = PAIRS(c, d, at);                                                                          \
    four = __builtin_shufflevector(ab, cd, 0, 8, 1, 9, 2, 10, 3, 11);                              \
    memcpy(to[i], &four, 16);                                                                      \
    four = __builtin_shufflevector(ab, cd, 4, 12, 5, 13, 6, 14, 7, 15);                            \
    memcpy(to[(i) + 1], &four, 16);
    HALF(0, 0)
    HALF(8, 2)
#undef HALF
#undef PAIRS
#else
    for (int c = 0; c < 16; c++)
        for (int i = 0; i < 4; i++)
            to[c / 4][c % 4 * 4 + i] = (uint8_t)(from[i][c] ^ flip);
#endif
}

#ifdef QK_SHUFFLES
/* Nine taps of four channels, a dword per tap; in memory a channel's taps are adjacent. */
typedef struct qk_nine {
    qk_four first, next, last; /* of `last`, the first dword */
} qk_nine;

static inline __attribute__((always_inline)) qk_nine qk_nine_taps(const uint8_t *in,
                                                                  uint32_t flip) {
    const qk_four flips = {flip, flip, flip, flip};
    qk_sixteen a, b, c, d8;
    uint64_t d;
    memcpy(&a, in, 16);
    memcpy(&b, in + 9, 16);
    memcpy(&c, in + 18, 16);
    memcpy(&d, in + 27, 8);
    memcpy(&d8, in + 20, 16); /* reads no byte after the 36 */
    d8 = (qk_sixteen)((qk_two)d8 >> 56);
#define ZIP(x, y, at)                                                                              \
    (qk_eight) __builtin_shufflevector(x, y, at, at + 16, at + 1, at + 17, at + 2, at + 18,        \
                                       at + 3, at + 19, at + 4, at + 20, at + 5, at + 21, at + 6,  \
                                       at + 22, at + 7, at + 23)
    const qk_eight ab = ZIP(a, b, 0), cd = ZIP(c, (qk_sixteen)(qk_two){d}, 0), ab8 = ZIP(a, b, 8),
                   cd8 = ZIP(c, d8, 8);
#undef ZIP
    return (qk_nine){
        (qk_four)__builtin_shufflevector(ab, cd, 0, 8, 1, 9, 2, 10, 3, 11) ^ flips,
        (qk_four)__builtin_shufflevector(ab, cd, 4, 12, 5, 13, 6, 14, 7, 15) ^ flips,
        (qk_four)__builtin_shufflevector(ab8, cd8, 0, 8, 1, 9, 2, 10, 3, 11) ^ flips,
    };
}

/* from[c]: 36 bytes of column c, four channels of 3 x 3 taps, to `to` + y * down + x * across. */
static inline void qk_transpose_nine(const uint8_t *const from[4], uint32_t flip, uint8_t *to,
                                     size_t across, size_t down) {
    qk_nine a = qk_nine_taps(from[0], flip), b = qk_nine_taps(from[1], flip);
    qk_nine c = qk_nine_taps(from[2], flip), d = qk_nine_taps(from[3], flip);
    qk_transpose4_dwords(&a.first, &b.first, &c.first, &d.first);
    memcpy(to, &a.first, 16);
    memcpy(to + across, &b.first, 16);
    memcpy(to + 2 * across, &c.first, 16);
    memcpy(to + down, &d.first, 16);
    qk_transpose4_dwords(&a.next, &b.next, &c.next, &d.next);
    memcpy(to + down + across, &a.next, 16);
    memcpy(to + down + 2 * across, &b.next, 16);
    memcpy(to + 2 * down, &c.next, 16);
    memcpy(to + 2 * down + across, &d.next, 16);
    qk_transpose4_dwords(&a.last, &b.last, &c.last, &d.last);
    memcpy(to + 2 * down + 2 * across, &a.last, 16);
}
#endif

/* Interleaves the bytes of x and of x + 8 * count, 8 * count of each, into y. */
static inline void qk_zip_bytes(const uint8_t *x, size_t count, uint8_t *y) {
    const uint8_t *other = x + 8 * count;
    for (size_t i = 0; i < count; i++) {
#ifdef QK_SHUFFLES
        uint64_t a, b;
        memcpy(&a, x + 8 * i, 8);
        memcpy(&b, other + 8 * i, 8);
        const qk_sixteen v =
            __builtin_shufflevector((qk_sixteen)(qk_two){a}, (qk_sixteen)(qk_two){b}, 0, 16, 1, 17,
                                    2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
        memcpy(y + 16 * i, &v, 16);
#else
        for (size_t k = 8 * i; k < 8 * i + 8; k++) {
            y[2 * k] = x[k];
            y[2 * k + 1] = other[k];
        }
#endif
    }
}

#endif
