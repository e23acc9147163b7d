/* SPDX-License-Identifier: MIT */
/* Products with weights in blocks in 512-bit vectors, AVX-512 VNNI. */
#include "kernel/table.h"

#ifdef QK_AVX512VNNI
#include <immintrin.h>
#include <string.h>

#define TARGET    __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))
#define INLINE    TARGET __attribute__((always_inline)) static inline
#define V         __m512
#define I         __m512i
#define LANES     16
#define TABLE     qk_nbits_avx512
#define MOST_ROWS 8

#define load_f(p)     _mm512_loadu_ps(p)
#define store_f(p, v) _mm512_storeu_ps(p, v)
#define load_i(p)     _mm512_loadu_si512(p)
#define set_f(x)      _mm512_set1_ps(x)
#define set_i(x)      _mm512_set1_epi32(x)
#define add_f(a, b)   _mm512_add_ps(a, b)
#define sub_f(a, b)   _mm512_sub_ps(a, b)
#define mul_f(a, b)   _mm512_mul_ps(a, b)
#define fma(a, b, c)  _mm512_fmadd_ps(a, b, c)
#define add_i(a, b)   _mm512_add_epi32(a, b)
#define mul_i(a, b)   _mm512_mullo_epi32(a, b)
#define neg_i(a)      _mm512_sub_epi32(_mm512_setzero_si512(), a)
#define to_float(x)   _mm512_cvtepi32_ps(x)
#define low(x)        _mm512_and_si512(x, _mm512_set1_epi8(15))
#define down4(x)      _mm512_srli_epi32(x, 4)
#define load_zeros(p) _mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)(p)))

/* The permutation reads the lowest 4 bits alone. */
INLINE V code_f(I x) {
    return _mm512_permutexvar_ps(
        x, _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7));
}

INLINE I four(const int8_t *a) {
    int32_t v;
    memcpy(&v, a, sizeof(v));
    return _mm512_set1_epi32(v);
}

INLINE I dot2(I s, I lo, I hi, const int8_t *a) {
    return _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(s, lo, four(a)), hi, four(a + 4));
}

#define dot8(s, x, y, a) dot2(s, x, y, a)

#include "kernel/x86/nbits_x86.h"
#endif
