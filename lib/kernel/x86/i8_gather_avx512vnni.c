/* SPDX-License-Identifier: MIT */
/* Kernel rows of few channels, put behind each other: first layers have no dwords to waste. */
#include "kernel/i8.h"

#if QK_X86
#include "kernel/x86/i8_zmm.h"

/* Two pixels' segments lie in 16 bytes each, and all of one pixel's fit into 32. */
static bool is_small(const qk_gather_u8 *g) {
    return g->segs <= 4 && g->a_stride >= 0 && g->a_stride + g->k <= 16 && g->segs * g->k <= 32 &&
           g->out_stride == 32;
}

INLINE __m512i lanes_at(const uint8_t *p, const int32_t *offset) {
    __m512i v = _mm512_castsi128_si512(_mm_loadu_si128((const void *)(p + offset[0])));
    v = _mm512_inserti32x4(v, _mm_loadu_si128((const void *)(p + offset[1])), 1);
    v = _mm512_inserti32x4(v, _mm_loadu_si128((const void *)(p + offset[2])), 2);
    return _mm512_inserti32x4(v, _mm_loadu_si128((const void *)(p + offset[3])), 3);
}

/* A segment per lane; one permutation makes two rows. */
TARGET static void gather_small(const qk_gather_u8 *g) {
    const __m128i count = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const ptrdiff_t step = g->a_stride;
    const uint8_t *a = g->a;
    uint8_t from[64 + 16] = {0}, *out = g->out;
    int32_t offset[4];
    for (int32_t s = 0; s < 4; s++)
        offset[s] = g->seg_offset[s < g->segs ? s : 0];
    for (int32_t pixel = 0; pixel < 2; pixel++)
        for (int32_t s = 0; s < g->segs; s++)
            _mm_storeu_si128((void *)(from + 32 * pixel + s * g->k),
                             _mm_add_epi8(count, _mm_set1_epi8((char)(16 * s + pixel * step))));
    const __m512i order = _mm512_loadu_si512(from);
    for (const uint8_t *end = out + 32 * (ptrdiff_t)g->m; out < end; a += 2 * step, out += 64)
        _mm512_storeu_si512(out, _mm512_permutexvar_epi8(order, lanes_at(a, offset)));
}

TARGET static void gather_32(const qk_gather_u8 *g) {
    const uint8_t *a = g->a;
    for (int32_t r = 0; r < g->m; r++, a += g->a_stride) {
        uint8_t *out = g->out + r * g->out_stride;
        for (int32_t s = 0; s < g->segs; s++, out += g->k)
            _mm256_storeu_si256((void *)out,
                                _mm256_loadu_si256((const void *)(a + g->seg_offset[s])));
    }
}

TARGET static void gather_64(const qk_gather_u8 *g) {
    const uint8_t *a = g->a;
    for (int32_t r = 0; r < g->m; r++, a += g->a_stride) {
        uint8_t *out = g->out + r * g->out_stride;
        for (int32_t s = 0; s < g->segs; s++, out += g->k)
            _mm512_storeu_si512(out, _mm512_loadu_si512(a + g->seg_offset[s]));
    }
}

TARGET void qk_gather_u8_avx512vnni(const qk_gather_u8 *g) {
    if (is_small(g))
        gather_small(g);
    else if (g->k <= 32)
        gather_32(g);
    else
        gather_64(g);
}
#endif
