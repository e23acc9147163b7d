/* SPDX-License-Identifier: MIT */
/*
 * INT8 products, AVX-512 VNNI, with short sums (4 dwords of 64 columns, 8 of 32): all weights of a
 * panel stay in registers, a step is one or two rows. The epilogue of such a step costs as much as
 * its products, and small steps overlap better.
 */
#include "kernel/i8.h"

#ifdef QK_AVX512VNNI
#include "kernel/x86/i8_requant_avx512.h"
#include "kernel/x86/i8_im2row_avx512.h"

#define F4(F) F(0) F(1) F(2) F(3)
#define F8(F) F4(F) F(4) F(5) F(6) F(7)

INLINE __m512i dword_at(const uint8_t *p, int32_t d) {
    int32_t dword;
    memcpy(&dword, p + 4 * (ptrdiff_t)d, 4);
    return _mm512_set1_epi32(dword);
}

/* Numbers of dwords without a loop of their own run as a larger one, with weights of zero. */
#define WEIGHT(d, v, vectors)                                                                      \
    __m512i w##d##_##v = d < dwords && d < g->k4                                                   \
                             ? _mm512_loadu_si512(g->b + 64 * (vectors * d + v))                   \
                             : _mm512_setzero_si512();                                             \
    if (d < dwords)                                                                                \
    OPAQUE(w##d##_##v)
#define SUM(acc, x, d, v) acc = _mm512_dpbusd_epi32(acc, x, w##d##_##v);

/*
 * A step's results are packed and stored after the products of the next one. Integer additions can
 * go to any port: earlier ones would be older than those products, and take their port.
 */
#define PENDING __m512i t0 = _mm512_setzero_si512(), t1 = t0, t2 = t0, t3 = t0;
#define BEHIND(a, b, c, d)                                                                         \
    __asm__("" : "+v"(a), "+v"(b), "+v"(c), "+v"(d), "+v"(t0), "+v"(t1), "+v"(t2), "+v"(t3));
#define SCALE(a, i, b, j, c, k, d, l)                                                              \
    t0 = scaled(a, _mm512_loadu_ps(s.mult + i), &s, how);                                          \
    t1 = scaled(b, _mm512_loadu_ps(s.mult + j), &s, how);                                          \
    t2 = scaled(c, _mm512_loadu_ps(s.mult + k), &s, how);                                          \
    t3 = scaled(d, _mm512_loadu_ps(s.mult + l), &s, how);

/* ---- 64 columns, at most 4 dwords: one row ---- */

#define WEIGHTS_64(d) WEIGHT(d, 0, 4) WEIGHT(d, 1, 4) WEIGHT(d, 2, 4) WEIGHT(d, 3, 4)
#define STEP_64(d)                                                                                 \
    if (d < dwords) {                                                                              \
        const __m512i x = dword_at(p, d);                                                          \
        SUM(a0, x, d, 0) SUM(a1, x, d, 1) SUM(a2, x, d, 2) SUM(a3, x, d, 3)                        \
    }

INLINE void rows_64(const qk_gemm_u8s8 *g, sink s, int32_t dwords) {
    const kind how = KIND_SHORT;
    const ptrdiff_t offset = g->seg_offset ? g->seg_offset[0] : 0;
    const int32_t *bias = g->o.bias;
    F4(WEIGHTS_64)
    const ptrdiff_t step = g->a_stride, stride = s.stride;
    const uint8_t *p = g->a + offset;
    const int32_t m = g->m, *init = g->row_init;
    ptrdiff_t move = 0; /* the first turn stores zeros where the second stores the first row */
    PENDING
    for (int32_t r = 0; r < m; r++, s.out += move, move = stride, p += step) {
        __m512i a0 = _mm512_loadu_si512(bias), a1 = _mm512_loadu_si512(bias + 16);
        __m512i a2 = _mm512_loadu_si512(bias + 32), a3 = _mm512_loadu_si512(bias + 48);
        if (init) {
            const __m512i i0 = _mm512_set1_epi32(init[r]);
            a0 = _mm512_add_epi32(a0, i0), a1 = _mm512_add_epi32(a1, i0);
            a2 = _mm512_add_epi32(a2, i0), a3 = _mm512_add_epi32(a3, i0);
        }
        F4(STEP_64)
        BEHIND(a0, a1, a2, a3)
        store_u8_64(&s, 0, bytes_of(t0, t1, t2, t3, &s, how));
        SCALE(a0, 0, a1, 16, a2, 32, a3, 48)
    }
    store_u8_64(&s, 0, bytes_of(t0, t1, t2, t3, &s, how));
}

/* ---- 32 columns, at most 8 dwords: two rows ---- */

#define WEIGHTS_32(d) WEIGHT(d, 0, 2) WEIGHT(d, 1, 2)
#define STEP_32(d)                                                                                 \
    if (d < dwords) {                                                                              \
        const __m512i x = dword_at(p, d), y = dword_at(q, d);                                      \
        SUM(a0, x, d, 0) SUM(a1, x, d, 1) SUM(b0, y, d, 0) SUM(b1, y, d, 1)                        \
    }

#define AHEAD 8 /* rows gathered in advance, so that their stores are done when they are read */

INLINE void rows_32(const qk_gemm_u8s8 *g, sink s, int32_t dwords, gatherer *ahead) {
    const kind how = KIND_SHORT;
    const ptrdiff_t offset = g->seg_offset ? g->seg_offset[0] : 0;
    const int32_t *bias = g->o.bias;
    F8(WEIGHTS_32)
    if (ahead->left > 0)
        gather_more(ahead, ahead->small ? AHEAD : ahead->left);
    const ptrdiff_t step = g->a_stride, stride = s.stride;
    const uint8_t *p = g->a + offset;
    const int32_t m = g->m, *init = g->row_init;
    ptrdiff_t move = 0;
    PENDING
    for (int32_t r = 0; r + 2 <= m; r += 2, s.out += move, move = 2 * stride, p += 2 * step) {
        const uint8_t *q = p + step;
        if (ahead->left > 0)
            gather_next_pair(ahead);
        __m512i a0 = _mm512_loadu_si512(bias), a1 = _mm512_loadu_si512(bias + 16);
        __m512i b0 = a0, b1 = a1;
        if (init) {
            const __m512i i0 = _mm512_set1_epi32(init[r]);
            const __m512i i1 = _mm512_set1_epi32(init[r + 1]);
            a0 = _mm512_add_epi32(a0, i0), a1 = _mm512_add_epi32(a1, i0);
            b0 = _mm512_add_epi32(b0, i1), b1 = _mm512_add_epi32(b1, i1);
        }
        F8(STEP_32)
        BEHIND(a0, a1, b0, b1)
        store_u8_32_2(&s, how, 0, bytes_of(t0, t1, t2, t3, &s, how));
        SCALE(a0, 0, a1, 16, b0, 0, b1, 16)
    }
    store_u8_32_2(&s, how, 0, bytes_of(t0, t1, t2, t3, &s, how));
}

/* ---- choice of the loop ---- */

/* Adding a zero point of 0 costs little: one kind serves both. */
TARGET QS_NOINLINE static void resident_64(const qk_gemm_u8s8 *g, const sink *s) {
    rows_64(g, *s, 4);
}

TARGET QS_NOINLINE static void resident_32(const qk_gemm_u8s8 *g, const sink *s, gatherer *ahead) {
    if (g->k4 <= 4) /* 1 to 3 are rare, 7 (3 x 3 of 3 channels) is as fast as 8 */
        rows_32(g, *s, 4, ahead);
    else
        rows_32(g, *s, 8, ahead);
}

TARGET int32_t qk_gemm_resident_avx512vnni(const qk_gemm_u8s8 *g, const sink *s, kind how,
                                           gatherer *ahead) {
    if (how == KIND_ANY || how == KIND_PLAIN || g->segs != 1 || g->rows || g->m < 2)
        return 0;
    if (g->width == 64 && g->k4 <= 4) {
        resident_64(g, s);
        return g->m;
    }
    if (g->width == 32 && g->k4 <= 8) {
        resident_32(g, s, ahead);
        return g->m / 2 * 2;
    }
    return 0;
}
#endif
