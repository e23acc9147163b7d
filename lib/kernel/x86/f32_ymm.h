/* SPDX-License-Identifier: MIT */
/* Vectors of 8 floats (AVX2, FMA3) for the templates of float kernels. */
#ifndef QK_F32_YMM_H
#define QK_F32_YMM_H

#include <immintrin.h>

#include "kernel/f32.h"

#define TARGET __attribute__((target("avx2,fma")))
#define VEC    __m256
#define LANES  8

#define LOAD(p)      _mm256_loadu_ps(p)
#define STORE(p, v)  _mm256_storeu_ps(p, v)
#define SET1(x)      _mm256_set1_ps(x)
#define FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#define ADD(a, b)    _mm256_add_ps(a, b)
/* maxps gives its second operand when one is NaN. */
#define MAX(a, b)            _mm256_max_ps(a, b)
#define MIN(a, b)            _mm256_min_ps(a, b)
#define STORE_FIRST(p, v, n) store_first(p, v, n)

/* A full store where possible: masked ones are slow on some CPUs. */
__attribute__((target("avx2,fma"), always_inline)) static inline void store_first(float *p,
                                                                                  __m256 v,
                                                                                  size_t n) {
    if (n == LANES) {
        _mm256_storeu_ps(p, v);
    } else {
        const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        _mm256_maskstore_ps(p, _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lane), v);
    }
}

#endif
