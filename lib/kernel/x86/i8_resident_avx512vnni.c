/* SPDX-License-Identifier: MIT */
/*
 * Products with short sums: all weights of a panel stay in registers, one or two rows make a step.
 * Such a step's epilogue costs as much as its products, and small steps overlap better.
 */
#include "kernel/i8.h"

#if QK_X86
#include "kernel/x86/i8_finish_zmm.h"

#define KEEP(v) __asm__("" : "+v"(v));

#define F4(F) F(0) F(1) F(2) F(3)
#define F8(F) F4(F) F(4) F(5) F(6) F(7)

INLINE __m512i dword_at(const uint8_t *p, int32_t d) {
    int32_t dword;
    memcpy(&dword, p + 4 * (ptrdiff_t)d, 4);
    return _mm512_set1_epi32(dword);
}

INLINE const uint8_t *row_at(const qk_gemm_u8s8 *g, int32_t r, ptrdiff_t offset) {
    return (g->rows ? g->rows[r] : g->a + r * g->a_stride) + offset;
}

#define WEIGHT(d, v, vectors)                                                                      \
    __m512i w##d##_##v =                                                                           \
        d < dwords ? _mm512_loadu_si512(g->b + 64 * (vectors * d + v)) : _mm512_setzero_si512();   \
    if (d < dwords)                                                                                \
    KEEP(w##d##_##v)
#define SUM(acc, x, d, v) acc = _mm512_dpbusd_epi32(acc, x, w##d##_##v);

/* ---- 64 columns, at most 4 dwords: one row ---- */

#define WEIGHTS_64(d) WEIGHT(d, 0, 4) WEIGHT(d, 1, 4) WEIGHT(d, 2, 4) WEIGHT(d, 3, 4)
#define STEP_64(d)                                                                                 \
    if (d < dwords) {                                                                              \
        const __m512i x = dword_at(p, d);                                                          \
        SUM(a0, x, d, 0) SUM(a1, x, d, 1) SUM(a2, x, d, 2) SUM(a3, x, d, 3)                        \
    }

INLINE void rows_64(const qk_gemm_u8s8 *g, sink s, kind how, int32_t dwords) {
    const ptrdiff_t offset = g->seg_offset ? g->seg_offset[0] : 0;
    const int32_t *bias = g->o.bias;
    F4(WEIGHTS_64)
    for (int32_t r = 0; r < g->m; r++, s.out += s.stride) {
        const uint8_t *p = row_at(g, r, offset);
        __m512i a0 = _mm512_loadu_si512(bias), a1 = _mm512_loadu_si512(bias + 16);
        __m512i a2 = _mm512_loadu_si512(bias + 32), a3 = _mm512_loadu_si512(bias + 48);
        if (g->row_init) {
            const __m512i init = _mm512_set1_epi32(g->row_init[r]);
            a0 = _mm512_add_epi32(a0, init), a1 = _mm512_add_epi32(a1, init);
            a2 = _mm512_add_epi32(a2, init), a3 = _mm512_add_epi32(a3, init);
        }
        F4(STEP_64)
        finish_64(&s, how, 0, a0, a1, a2, a3);
    }
}

/* ---- 32 columns, at most 8 dwords: two rows ---- */

#define WEIGHTS_32(d) WEIGHT(d, 0, 2) WEIGHT(d, 1, 2)
#define STEP_32(d)                                                                                 \
    if (d < dwords) {                                                                              \
        const __m512i x = dword_at(p, d), y = dword_at(q, d);                                      \
        SUM(a0, x, d, 0) SUM(a1, x, d, 1) SUM(b0, y, d, 0) SUM(b1, y, d, 1)                        \
    }

INLINE void rows_32(const qk_gemm_u8s8 *g, sink s, kind how, int32_t dwords) {
    const ptrdiff_t offset = g->seg_offset ? g->seg_offset[0] : 0;
    const int32_t *bias = g->o.bias;
    F8(WEIGHTS_32)
    for (int32_t r = 0; r + 2 <= g->m; r += 2, s.out += 2 * s.stride) {
        const uint8_t *p = row_at(g, r, offset), *q = row_at(g, r + 1, offset);
        __m512i a0 = _mm512_loadu_si512(bias), a1 = _mm512_loadu_si512(bias + 16);
        __m512i b0 = a0, b1 = a1;
        if (g->row_init) {
            const __m512i i0 = _mm512_set1_epi32(g->row_init[r]);
            const __m512i i1 = _mm512_set1_epi32(g->row_init[r + 1]);
            a0 = _mm512_add_epi32(a0, i0), a1 = _mm512_add_epi32(a1, i0);
            b0 = _mm512_add_epi32(b0, i1), b1 = _mm512_add_epi32(b1, i1);
        }
        F8(STEP_32)
        finish_32(&s, how, 0, a0, a1, b0, b1);
    }
}

/* ---- which one ---- */

#define CASE(W, D)                                                                                 \
    case D:                                                                                        \
        if (how == KIND_ZERO)                                                                      \
            rows_##W(g, *s, KIND_ZERO, D);                                                         \
        else                                                                                       \
            rows_##W(g, *s, KIND_PLAIN, D);                                                        \
        break;

TARGET int32_t qk_gemm_resident_avx512vnni(const qk_gemm_u8s8 *g, const sink *s, kind how) {
    if (how == KIND_ANY || g->segs != 1)
        return 0;
    if (g->width == 64 && g->k4 <= 4) {
        switch (g->k4) {
            CASE(64, 1)
            CASE(64, 2)
            CASE(64, 3)
            CASE(64, 4)
        }
        return g->m;
    }
    if (g->width == 32 && g->k4 <= 8) {
        switch (g->k4) {
            CASE(32, 1)
            CASE(32, 2)
            CASE(32, 3)
            CASE(32, 4)
            CASE(32, 5)
            CASE(32, 6)
            CASE(32, 7)
            CASE(32, 8)
        }
        return g->m / 2 * 2;
    }
    return 0;
}
#endif
