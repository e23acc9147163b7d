/* SPDX-License-Identifier: MIT */
/*
 * Products in vectors of 16 pixels instead of 16 columns: with 8 columns the ordinary tile leaves
 * half of each vector empty and needs a load for every product. The sums and their order are the
 * same.
 */
#include "kernel/x86/f32_gemm_n8.h"

#ifdef QK_AVX512VNNI
#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,fma")))
#define INLINE TARGET __attribute__((always_inline)) static inline

#define COLUMNS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)

#define ZERO(j) __m512 c##j##_0 = _mm512_setzero_ps(), c##j##_1 = _mm512_setzero_ps();
#define STEP(j)                                                                                    \
    {                                                                                              \
        const __m512 w = _mm512_set1_ps(b[j]);                                                     \
        c##j##_0 = _mm512_fmadd_ps(x0, w, c##j##_0);                                               \
        c##j##_1 = _mm512_fmadd_ps(x1, w, c##j##_1);                                               \
        __asm__("" : "+v"(c##j##_0), "+v"(c##j##_1));                                              \
    }
#define FINISH(v, j) _mm512_min_ps(hi, _mm512_max_ps(lo, _mm512_add_ps(v, _mm512_set1_ps(bias[j]))))
#define END(j)                                                                                     \
    c##j##_0 = FINISH(c##j##_0, j);                                                                \
    c##j##_1 = FINISH(c##j##_1, j);
#define HALF(j, v, h) _mm512_extractf32x8_ps(c##j##_##v, h)
#define WRITE(v, h)                                                                                \
    write_pixels(HALF(0, v, h), HALF(1, v, h), HALF(2, v, h), HALF(3, v, h), HALF(4, v, h),        \
                 HALF(5, v, h), HALF(6, v, h), HALF(7, v, h), c, g->ldc, n, 16 * v + 8 * h, mask)

#define LOW(a, b)  _mm256_permute2f128_ps(a, b, 0x20)
#define HIGH(a, b) _mm256_permute2f128_ps(a, b, 0x31)

/* Transposes 8 columns of 8 pixels and stores those of pixels [first, first + 8) below n. */
INLINE void write_pixels(__m256 r0, __m256 r1, __m256 r2, __m256 r3, __m256 r4, __m256 r5,
                         __m256 r6, __m256 r7, float *c, size_t ldc, size_t n, size_t first,
                         __mmask8 mask) {
    const __m256 a0 = _mm256_unpacklo_ps(r0, r1), a1 = _mm256_unpackhi_ps(r0, r1);
    const __m256 a2 = _mm256_unpacklo_ps(r2, r3), a3 = _mm256_unpackhi_ps(r2, r3);
    const __m256 a4 = _mm256_unpacklo_ps(r4, r5), a5 = _mm256_unpackhi_ps(r4, r5);
    const __m256 a6 = _mm256_unpacklo_ps(r6, r7), a7 = _mm256_unpackhi_ps(r6, r7);
    const __m256 b0 = _mm256_shuffle_ps(a0, a2, 0x44), b1 = _mm256_shuffle_ps(a0, a2, 0xee);
    const __m256 b2 = _mm256_shuffle_ps(a1, a3, 0x44), b3 = _mm256_shuffle_ps(a1, a3, 0xee);
    const __m256 b4 = _mm256_shuffle_ps(a4, a6, 0x44), b5 = _mm256_shuffle_ps(a4, a6, 0xee);
    const __m256 b6 = _mm256_shuffle_ps(a5, a7, 0x44), b7 = _mm256_shuffle_ps(a5, a7, 0xee);
    const __m256 rows[8] = {LOW(b0, b4),  LOW(b1, b5),  LOW(b2, b6),  LOW(b3, b7),
                            HIGH(b0, b4), HIGH(b1, b5), HIGH(b2, b6), HIGH(b3, b7)};
    c += first * ldc;
    if (first + 8 <= n) {
#pragma GCC unroll 8
        for (size_t i = 0; i < 8; i++)
            _mm256_mask_storeu_ps(c + i * ldc, mask, rows[i]);
        return;
    }
#pragma GCC unroll 8
    for (size_t i = 0; i < 8; i++)
        if (first + i < n)
            _mm256_mask_storeu_ps(c + i * ldc, mask, rows[i]);
}

TARGET void qk_gemm_narrow_avx512(const qk_gemm_f32 *g, size_t r, size_t n, const float *panel,
                                  const float *bias, float *c, size_t cols) {
    const __mmask16 pixels = (__mmask16)((1u << (n - 16)) - 1u);
    const __mmask8 mask = (__mmask8)((1u << cols) - 1u);
    COLUMNS(ZERO)
    for (size_t s = 0; s < g->segs; s++) {
        const float *a = g->a + g->row[r] + g->seg[s];
        const float *b = panel + (g->at ? g->at[s] : s * g->k) * 8;
        for (size_t i = 0; i < g->k; i++, b += 8) {
            const __m512 x0 = _mm512_loadu_ps(a + i);
            const __m512 x1 = _mm512_maskz_loadu_ps(pixels, a + i + 16);
            COLUMNS(STEP)
        }
    }
    const __m512 lo = _mm512_set1_ps(g->lo), hi = _mm512_set1_ps(g->hi);
    COLUMNS(END)
    c += qk_gemm_out(g, r);
    WRITE(0, 0);
    WRITE(0, 1);
    WRITE(1, 0);
    if (n > 24)
        WRITE(1, 1);
}
#endif
