/* SPDX-License-Identifier: MIT */
/* Pooling of u8, AVX2: 32 channels at once. */
#include "kernel/x86/pool_x86.h"

#ifdef QK_YMM
#include <immintrin.h>

#define TARGET __attribute__((target("avx2")))

#define VEC   __m256i
#define LANES 32

#define LOAD(p)              _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define STORE_FIRST(p, v, n) store_first(p, v, n)
#define PICK_INDEX           __m256i
#define PICK_MOST            2
#define PICK_LOAD(i)         LOAD(i)
#define PICK(v, i)           _mm256_permutevar8x32_epi32(v, i)
#define PICK_STORE(p, v, n)  store_half(p, _mm256_castsi256_si128(v), n)

TARGET QS_COLD static void store_bytes(uint8_t *p, __m128i v, size_t n) {
    uint64_t rest = (uint64_t)_mm_cvtsi128_si64(v);
    for (; n > 0; n--, rest >>= 8)
        *p++ = (uint8_t)rest;
}

TARGET static inline void store_below_16(uint8_t *p, __m128i v, size_t n) {
    if (n & 8) {
        _mm_storel_epi64((__m128i *)(void *)p, v);
        v = _mm_unpackhi_epi64(v, v);
        p += 8;
    }
    if (n & 7)
        store_bytes(p, v, n & 7);
}

TARGET static inline void store_half(uint8_t *p, __m128i v, size_t n) {
    if (n == 16)
        _mm_storeu_si128((__m128i *)(void *)p, v);
    else
        store_below_16(p, v, n);
}

TARGET static inline void store_first(uint8_t *p, __m256i v, size_t n) {
    __m128i low = _mm256_castsi256_si128(v);
    if (n == 32) {
        _mm256_storeu_si256((__m256i *)(void *)p, v);
        return;
    }
    if (n & 16) {
        _mm_storeu_si128((__m128i *)(void *)p, low);
        low = _mm256_extracti128_si256(v, 1);
        p += 16;
    }
    store_below_16(p, low, n);
}

#include "kernel/pool_tile.h"

#define AS_IT_IS(v, count) (v)
POOL(max_u8, uint8_t, _mm256_setzero_si256(), _mm256_max_epu8, AS_IT_IS, "GCC unroll 2")

void qk_max_u8_avx2(const qk_pool *p) {
    max_u8(p);
}

#define FLOATS       __m256
#define W(f)         _mm256_##f
#define ZERO         _mm256_setzero_si256()
#define LOAD_HALF(p) _mm_loadu_si128((const __m128i *)(const void *)(p))
#define IN_ORDER(v)  _mm256_permute4x64_epi64(v, 0xd8)

#include "kernel/x86/pool_average.h"

void qk_average_u8_avx2(const qk_pool *p) {
    average_u8(p);
}
#endif
