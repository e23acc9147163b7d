/* SPDX-License-Identifier: MIT */
/*
 * Integer kernels for AVX2. maddubs saturates on full-range operands, so bytes are widened: the
 * even and the odd bytes of a dword are two madd_epi16, exact, and as fast on most cores.
 */
#include "kernel/table.h"

#if QK_X86
#define TARGET    __attribute__((target("avx2,fma")))
#define TABLE     qk_i8_avx2
#define TILE_ROWS 4
#define W_GROUP   2

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
#endif
