/* SPDX-License-Identifier: MIT */
/*
 * INT8 kernels in 256-bit vectors without products, for AVX2 and AVX-VNNI: row sums,
 * requantization, im2row, the general epilogue.
 */
#include <assert.h>

#include "kernel/i8.h"
#include "kernel/i8_post.h"

#ifdef QK_YMM_I8
#define TARGET __attribute__((target("avx2,fma")))
#include "kernel/x86/i8_requant_avx2.h"

TARGET void qk_finish_any_ymm(const sink *s, const __m256i (*sums)[2]) {
    for (int32_t r = 0; r < s->rows; r += 2)
        finish(s, r, sums[r][0], sums[r][1], sums[r + 1][0], sums[r + 1][1]);
}

TARGET void qk_row_sums_u8_ymm(const qk_gemm_u8s8 *g, int32_t k, int32_t factor, int32_t *out) {
    static const uint8_t masks[64] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
                                      255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
                                      255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
    const __m256i zero = _mm256_setzero_si256();
    for (int32_t r = 0; r < g->m; r++) {
        const uint8_t *row = g->rows ? g->rows[r] : g->a + r * g->a_stride;
        __m256i sum = zero;
        for (int32_t seg = 0; seg < g->segs; seg++) {
            const uint8_t *a = row + (g->seg_offset ? g->seg_offset[seg] : 0);
            for (int32_t left = k; left > 0; left -= 32, a += 32) {
                __m256i x = _mm256_and_si256(load(a), load(masks + (left < 32 ? 32 - left : 0)));
                sum = _mm256_add_epi64(sum, _mm256_sad_epu8(x, zero));
            }
        }
        __m128i v = _mm_add_epi64(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
        v = _mm_add_epi64(v, _mm_unpackhi_epi64(v, v));
        out[r] = (int32_t)((uint32_t)_mm_cvtsi128_si32(v) * (uint32_t)factor);
    }
}

TARGET void qk_requantize_u8_ymm(const int32_t *acc, size_t n, float m, int32_t zp, int32_t lo,
                                 int32_t hi, uint8_t *y) {
    qk_out_i8 o = {.zp = zp, .lo = lo, .hi = hi, .clamp = true};
    epilogue e = epilogue_of(&o);
    for (size_t i = 0; i < n; i += 8) {
        int32_t sums[8] = {0};
        uint8_t bytes[32];
        size_t count = n - i < 8 ? n - i : 8;
        memcpy(sums, acc + i, 4 * count);
        __m256i v = scale(load(sums), _mm256_set1_ps(m), &e), zero = _mm256_setzero_si256();
        v = _mm256_packus_epi16(pack_words(v, zero, &e), zero);
        _mm256_storeu_si256((__m256i *)(void *)bytes, v);
        memcpy(bytes + 4, bytes + 16, 4);
        memcpy(y + i, bytes, count);
    }
}

/* Copies segments of at most `bytes` end to end; three, the usual number, without a loop. */
INLINE void gather_line(const qk_gather_u8 *g, const uint8_t *a, uint8_t *to, int32_t rows,
                        int32_t bytes) {
    const int32_t *at = g->seg_offset;
    const ptrdiff_t step = g->a_stride, k = g->k, out_step = g->out_stride;
    for (; g->segs == 3 && bytes == 16 && rows > 0; rows--, a += step, to += out_step) {
        const __m128i x = load_half(a + at[0]), y = load_half(a + at[1]), z = load_half(a + at[2]);
        _mm_storeu_si128((__m128i *)(void *)to, x);
        _mm_storeu_si128((__m128i *)(void *)(to + k), y);
        _mm_storeu_si128((__m128i *)(void *)(to + 2 * k), z);
    }
    for (; rows > 0; rows--, a += step, to += out_step) {
        uint8_t *out = to;
        for (int32_t s = 0; s < g->segs; s++, out += k)
            for (int32_t i = 0; i < bytes; i += 32)
                _mm256_storeu_si256((__m256i *)(void *)(out + i), load(a + at[s] + i));
    }
}

TARGET void qk_gather_u8_ymm(const qk_gather_u8 *g) {
    assert(qk_gather_u8_valid(g));
    const uint8_t *a = g->a;
    uint8_t *out = g->out;
    for (int32_t left = g->m, n; left > 0; left -= n, a += g->line_stride) {
        n = g->line > 0 && g->line < left ? g->line : left;
        if (g->k <= 16)
            gather_line(g, a, out, n, 16);
        else
            gather_line(g, a, out, n, g->k <= 32 ? 32 : 64);
        out += n * g->out_stride;
    }
}

TARGET void qk_post_row_ymm(const qk_post_row_i8 *p) {
    qk_post_row(p);
}
#endif
