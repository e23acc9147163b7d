/* SPDX-License-Identifier: MIT */
#include "kernel/table.h"

#if QK_X86
#include <immintrin.h>

#include "kernel/elementary.h"
#include "kernel/ew.h"

#define TARGET __attribute__((target("avx2,fma")))
#define INLINE TARGET __attribute__((always_inline)) static inline
#define V      __m256
#define I      __m256i
#define W      8
#define TABLE  qk_ew_avx2

INLINE V load(const float *x) {
    return _mm256_loadu_ps(x);
}

INLINE void store(float *y, V v) {
    _mm256_storeu_ps(y, v);
}

INLINE __m256i first(size_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int32_t)n),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

INLINE V get_some(const float *x, size_t n) {
    return _mm256_maskload_ps(x, first(n));
}

INLINE void put_some(float *y, V v, size_t n) {
    _mm256_maskstore_ps(y, first(n), v);
}

INLINE V widen(V v) {
    return _mm256_cvtepi32_ps(_mm256_castps_si256(v));
}

typedef V nans;

INLINE nans no_nans(void) {
    return _mm256_setzero_ps();
}

INLINE nans add_nans(nans a, V v) {
    return _mm256_or_ps(a, _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
}

INLINE bool any_nan(nans a) {
    return _mm256_movemask_ps(a) != 0;
}

INLINE V absolute(V v) {
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), v);
}

INLINE I no_bits(void) {
    return _mm256_setzero_si256();
}

INLINE I greater_bits(I a, V v) {
    return _mm256_max_epi32(a, _mm256_castps_si256(absolute(v)));
}

/* As qk_scale_exp. */
INLINE V scale_exp(V p, V k) {
    const I n = _mm256_castps_si256(k), half = _mm256_srli_epi32(n, 1);
    const I a = _mm256_slli_epi32(half, 23), b = _mm256_slli_epi32(_mm256_sub_epi32(n, half), 23);
    return p * _mm256_castsi256_ps(a) * _mm256_castsi256_ps(b);
}

INLINE V join(V x, V bound, V small, V large) {
    large = _mm256_or_ps(large, _mm256_and_ps(x, _mm256_set1_ps(-0.0f)));
    return _mm256_blendv_ps(large, small, _mm256_cmp_ps(absolute(x), bound, _CMP_LT_OQ));
}

#define QK_F                V
#define QK_CURVE            INLINE
#define QK_NAME(name)       v_##name
#define QK_K(c)             _mm256_set1_ps(c)
#define QK_FMA(a, b, c)     _mm256_fmadd_ps(a, b, c)
#define QK_MIN(a, b)        _mm256_min_ps(a, b)
#define QK_MAX(a, b)        _mm256_max_ps(a, b)
#define QK_ABS(x)           absolute(x)
#define QK_SCALE(p, k)      scale_exp(p, k)
#define QK_JOIN(x, b, s, l) join(x, QK_K(b), s, l)

#include "kernel/elementary_curves.h"
#include "kernel/x86/ew_vectors.h"
#endif
