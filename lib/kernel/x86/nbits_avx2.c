/* SPDX-License-Identifier: MIT */
/* Products with weights in blocks in 256-bit vectors, AVX2 and FMA3. */
#include "kernel/table.h"

#ifdef QK_YMM
#include <immintrin.h>
#include <string.h>

#define TARGET    __attribute__((target("avx2,fma")))
#define INLINE    TARGET __attribute__((always_inline)) static inline
#define V         __m256
#define I         __m256i
#define LANES     8
#define TABLE     qk_nbits_avx2
#define MOST_ROWS 2

#define load_f(p)     _mm256_loadu_ps(p)
#define store_f(p, v) _mm256_storeu_ps(p, v)
#define load_i(p)     _mm256_loadu_si256((const void *)(p))
#define set_f(x)      _mm256_set1_ps(x)
#define set_i(x)      _mm256_set1_epi32(x)
#define add_f(a, b)   _mm256_add_ps(a, b)
#define sub_f(a, b)   _mm256_sub_ps(a, b)
#define mul_f(a, b)   _mm256_mul_ps(a, b)
#define fma(a, b, c)  _mm256_fmadd_ps(a, b, c)
#define add_i(a, b)   _mm256_add_epi32(a, b)
#define mul_i(a, b)   _mm256_mullo_epi32(a, b)
#define neg_i(a)      _mm256_sub_epi32(_mm256_setzero_si256(), a)
#define to_float(x)   _mm256_cvtepi32_ps(x)
#define low(x)        _mm256_and_si256(x, _mm256_set1_epi8(15))
#define down4(x)      _mm256_srli_epi32(x, 4)
#define load_zeros(p) _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)(p)))

INLINE V code_f(I x) {
    const I code = _mm256_and_si256(x, _mm256_set1_epi32(15));
    return _mm256_cvtepi32_ps(_mm256_sub_epi32(code, _mm256_set1_epi32(8)));
}

INLINE I four(const int8_t *a) {
    int32_t v;
    memcpy(&v, a, sizeof(v));
    return _mm256_set1_epi32(v);
}

/* Two products are at most 3,810, four 7,620: no sum of 16 bits saturates. */
INLINE I dot2(I s, I lo, I hi, const int8_t *a) {
    const I pairs =
        _mm256_add_epi16(_mm256_maddubs_epi16(lo, four(a)), _mm256_maddubs_epi16(hi, four(a + 4)));
    return _mm256_add_epi32(s, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

/* Codes of 8 bits are 16 times their upper halves and their lower halves. */
INLINE I dot8(I s, I x, I y, const int8_t *a) {
    const I upper = dot2(_mm256_setzero_si256(), low(down4(x)), low(down4(y)), a);
    return _mm256_add_epi32(dot2(s, low(x), low(y), a), _mm256_slli_epi32(upper, 4));
}

#include "kernel/x86/nbits_x86.h"
#endif
