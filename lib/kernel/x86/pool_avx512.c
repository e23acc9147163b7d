/* SPDX-License-Identifier: MIT */
/* Average pooling of u8, AVX-512: 64 channels at once. Maxima are as fast in 256 bits. */
#include "kernel/x86/pool_x86.h"

#ifdef QK_AVX512VNNI
#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))

#define VEC   __m512i
#define LANES 64

#define LOAD(p)              _mm512_loadu_si512(p)
#define STORE_FIRST(p, v, n) _mm512_mask_storeu_epi8(p, ~(__mmask64)0 >> (64 - (n)), v)
#define INLINE               TARGET __attribute__((always_inline)) static inline

#include "kernel/pool_window.h"

#define FLOATS       __m512
#define W(f)         _mm512_##f
#define ZERO         _mm512_setzero_si512()
#define LOAD_HALF(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define IN_ORDER(v)  _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), v)

#include "kernel/x86/pool_average.h"

void qk_average_u8_avx512(const qk_pool *p) {
    average_u8(p);
}
#endif
