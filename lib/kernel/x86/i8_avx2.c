/* SPDX-License-Identifier: MIT */
/*
 * Integer kernels for AVX2. maddubs saturates on full-range operands, so bytes are widened: the
 * even and the odd bytes of a dword are two madd_epi16, exact, and as fast on most cores.
 */
#include "kernel/table.h"

#if QK_X86
#define TARGET  __attribute__((target("avx2,fma")))
#define TABLE   qk_i8_avx2
#define W_GROUP 2

#define LOAD_B(v)                                                                                  \
    const __m256i w##v = load(b + 32 * v);                                                         \
    const __m256i e##v = _mm256_srai_epi16(_mm256_slli_epi16(w##v, 8), 8);                         \
    const __m256i o##v = _mm256_srai_epi16(w##v, 8);
#define LOAD_A(r)                                                                                  \
    const __m256i x##r = broadcast(p##r + i);                                                      \
    const __m256i xe##r = _mm256_and_si256(x##r, _mm256_set1_epi16(0xff));                         \
    const __m256i xo##r = _mm256_srli_epi16(x##r, 8);
#define DOT(r, v)                                                                                  \
    a##r##_##v = _mm256_add_epi32(a##r##_##v, _mm256_madd_epi16(xe##r, e##v));                     \
    a##r##_##v = _mm256_add_epi32(a##r##_##v, _mm256_madd_epi16(xo##r, o##v));                     \
    __asm__("" : "+x"(a##r##_##v));

/*
 * Tiles of several rows widen eight dwords of each row at a time, the even bytes of all and the odd
 * ones, and then broadcast them from memory: that leaves only the weights to be widened beside the
 * products, and no more vectors than there are registers.
 */
#define SEGMENT(NR)                                                                                \
    for (ptrdiff_t left = g->k4; left > 0; left -= 8, i += 32) {                                   \
        uint8_t wide[NR][64];                                                                      \
        R##NR(WIDEN) FORGET(b) const ptrdiff_t end = left < 8 ? 4 * left : 32;                     \
        for (ptrdiff_t j = 0; j < end; j += 4, b += 64) {                                          \
            EVEN(0) EVEN(1) R##NR(STEP_EVEN) FORGET(b) ODD(0) ODD(1) R##NR(STEP_ODD)               \
        }                                                                                          \
    }
/* The compiler is to believe that `wide` is read here, and to load weights again, not keep them. */
#define FORGET(b) __asm__("" : "+r"(b) : : "memory");
#define WIDEN(r)                                                                                   \
    {                                                                                              \
        const __m256i x = load(p##r + i);                                                          \
        _mm256_storeu_si256((__m256i *)(void *)wide[r],                                            \
                            _mm256_and_si256(x, _mm256_set1_epi16(0xff)));                         \
        _mm256_storeu_si256((__m256i *)(void *)(wide[r] + 32), _mm256_srli_epi16(x, 8));           \
    }
#define EVEN(v)                                                                                    \
    __m256i e##v = _mm256_srai_epi16(_mm256_slli_epi16(load(b + 32 * v), 8), 8);                   \
    __asm__("" : "+x"(e##v));
#define ODD(v)                                                                                     \
    __m256i o##v = _mm256_srai_epi16(load(b + 32 * v), 8);                                         \
    __asm__("" : "+x"(o##v));
/* Both products before both sums: in pairs of one each the sums take the pipes of the products. */
#define STEP_PAIR(r, w, at)                                                                        \
    {                                                                                              \
        __m256i x, y;                                                                              \
        __asm__("vpbroadcastd %[a], %[x]\n\t"                                                      \
                "vpmaddwd %[x], %[w0], %[y]\n\t"                                                   \
                "vpmaddwd %[x], %[w1], %[x]\n\t"                                                   \
                "vpaddd %[y], %[s0], %[s0]\n\t"                                                    \
                "vpaddd %[x], %[s1], %[s1]"                                                        \
                : [x] "=&x"(x), [y] "=&x"(y), [s0] "+x"(a##r##_0), [s1] "+x"(a##r##_1)             \
                : [a] "m"(wide[r][at + j]), [w0] "x"(w##0), [w1] "x"(w##1));                       \
    }
#define STEP_EVEN(r) STEP_PAIR(r, e, 0)
#define STEP_ODD(r)  STEP_PAIR(r, o, 32)

#include "kernel/x86/i8_ymm.h"

INLINE __m256i dot(__m256i acc, __m256i x, __m256i w) {
    __m256i even = _mm256_madd_epi16(_mm256_and_si256(x, _mm256_set1_epi16(0xff)),
                                     _mm256_srai_epi16(_mm256_slli_epi16(w, 8), 8));
    __m256i odd = _mm256_madd_epi16(_mm256_srli_epi16(x, 8), _mm256_srai_epi16(w, 8));
    return _mm256_add_epi32(acc, _mm256_add_epi32(even, odd));
}

INLINE __m256i window_dot(__m256i acc, __m256i x, __m256i w) {
    return _mm256_add_epi32(acc, _mm256_madd_epi16(x, w));
}

#include "kernel/x86/i8_slide_ymm.h"
#endif
