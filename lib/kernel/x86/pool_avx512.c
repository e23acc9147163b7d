/* SPDX-License-Identifier: MIT */
/* Pooling of u8, AVX-512: 64 channels at once. */
#include "kernel/x86/pool_x86.h"

#ifdef QK_AVX512VNNI
#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))

#define VEC   __m512i
#define LANES 64

#define LOAD(p)              _mm512_loadu_si512(p)
#define STORE_FIRST(p, v, n) _mm512_mask_storeu_epi8(p, ~(__mmask64)0 >> (64 - (n)), v)
#define PICK_INDEX           __m512i
#define PICK_MOST            5
#define PICK_LOAD(i)         _mm512_loadu_si512(i)
#define PICK(v, i)           _mm512_permutexvar_epi32(i, v)

#include "kernel/pool_tile.h"

#define AS_IT_IS(v, count) (v)
POOL(max_u8, uint8_t, _mm512_setzero_si512(), _mm512_max_epu8, AS_IT_IS, "GCC unroll 2")

/* Pixels that fit a ymm: most loads of a zmm would cross cache lines for nothing. */
void qk_max_u8_avx512(const qk_pool *p) {
    if (p->sw > 1 && p->channels > 4 * PICK_MOST && p->channels <= 32)
        qk_max_u8_avx2(p);
    else
        max_u8(p);
}

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
