/* SPDX-License-Identifier: MIT */
/*
 * INT8 products of a single row, AVX-512 VNNI: neighbouring dwords go to different accumulators, so
 * that no dot product waits for the one before. Accumulators are named variables, so the bodies
 * stay macros.
 */
#ifndef QK_I8_GEMV_AVX512_H
#define QK_I8_GEMV_AVX512_H

#include "kernel/x86/i8_requant_avx512.h"
#include "kernel/x86/i8_gemm_tile_avx512.h"

/*
 * Every weight is read once, so loads are the limit: one load takes 16 dwords of the row. x holds
 * four of them in every lane; without OPAQUE clang would load each by itself.
 */
#define DWORD(d, r)     const __m512i x##r = _mm512_shuffle_epi32(x, 0x55 * d);
#define B(W, d, v)      _mm512_loadu_si512(b + 4 * W * d + 64 * v)
#define B_HALF(W, d, v) _mm256_loadu_si256((const void *)(b + 4 * W * d + 64 * v))
/* Weights of the next dword are loaded after these: out of order they arrive a third later. */
#define IN_ORDER(a, b, c, d) __asm__ volatile("" : "+v"(a), "+v"(b), "+v"(c), "+v"(d))
#define NEXT_64(d, r)                                                                              \
    {                                                                                              \
        DWORD(d, r)                                                                                \
        DOT(r, 0, B(64, d, 0))                                                                     \
        DOT(r, 1, B(64, d, 1)) DOT(r, 2, B(64, d, 2)) DOT(r, 3, B(64, d, 3));                      \
        IN_ORDER(a##r##_0, a##r##_1, a##r##_2, a##r##_3);                                          \
    }
#define NEXT_32(r) DWORD(r, r) DOT(r, 0, B(32, r, 0)) DOT(r, 1, B(32, r, 1))
#define NEXT_24(r) DWORD(r, r) DOT(r, 0, B(24, r, 0)) DOT_HALF(r, B_HALF(24, r, 1))
#define NEXT_16(r) DWORD(r, r) DOT(r, 0, B(16, r, 0))
#define NEXT_8(r)  DWORD(r, r) DOT_HALF(r, B_HALF(8, r, 0))
#define FOUR_64    NEXT_64(0, 0) NEXT_64(1, 1) NEXT_64(2, 0) NEXT_64(3, 1)
#define FOUR_32    R4(NEXT_32)
#define FOUR_24    R4(NEXT_24)
#define FOUR_16    R4(NEXT_16)
#define FOUR_8     R4(NEXT_8)
#define ONE_64     LOAD_64 DOT(0, 0, b0) DOT(0, 1, b1) DOT(0, 2, b2) DOT(0, 3, b3)
#define ONE_32     LOAD_32 DOT(0, 0, b0) DOT(0, 1, b1)
#define ONE_24     LOAD_24 DOT(0, 0, b0) DOT_HALF(0, bh)
#define ONE_16     LOAD_16 DOT(0, 0, b0)
#define ONE_8      LOAD_HALF(0) DOT_HALF(0, bh)

/* NONE: further accumulators, from zero. ADD: the sums of all. */
#define NONE(r, v)   __m512i a##r##_##v = _mm512_setzero_si512();
#define NONE_HALF(r) __m256i h##r = _mm256_setzero_si256();
#define NONE_64      NONE(1, 0) NONE(1, 1) NONE(1, 2) NONE(1, 3)
#define NONE_32      NONE_16 NONE(1, 1) NONE(2, 1) NONE(3, 1)
#define NONE_24      NONE_16 NONE_8
#define NONE_16      NONE(1, 0) NONE(2, 0) NONE(3, 0)
#define NONE_8       NONE_HALF(1) NONE_HALF(2) NONE_HALF(3)
#define ADD_TWO(v)   a0_##v = _mm512_add_epi32(a0_##v, a1_##v);
#define ADD(v)                                                                                     \
    a0_##v = _mm512_add_epi32(_mm512_add_epi32(a0_##v, a1_##v), _mm512_add_epi32(a2_##v, a3_##v));
#define ADD_64 ADD_TWO(0) ADD_TWO(1) ADD_TWO(2) ADD_TWO(3)
#define ADD_32 ADD(0) ADD(1)
#define ADD_24 ADD(0) ADD_8
#define ADD_16 ADD(0)
#define ADD_8  h0 = _mm256_add_epi32(_mm256_add_epi32(h0, h1), _mm256_add_epi32(h2, h3));

/* Converts one row of up to 32 columns to bytes; `order` sorts the dwords of the packed lanes. */
INLINE void finish_one(const sink *s, kind how, __m512i a, __m512 ma, __m512i b, __m512 mb,
                       __m512i order) {
    const __m512i v = _mm512_packs_epi32(scaled(a, ma, s, how), scaled(b, mb, s, how));
    _mm512_mask_storeu_epi8(s->out, s->mask, _mm512_permutexvar_epi32(order, joined(v, v, s, how)));
}

#define ORDER       _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 0, 0, 0, 0, 0, 0, 0, 0)
#define PAIRED      _mm512_setr_epi32(0, 1, 4, 5, 8, 9, 12, 13, 0, 0, 0, 0, 0, 0, 0, 0)
#define WIDE(h)     _mm512_castsi256_si512(h)
#define M16(i)      _mm512_loadu_ps(s->mult + i)
#define HALF(m)     _mm512_castps256_ps512(_mm256_loadu_ps(m))
#define M8(i)       HALF(s->mult + i)
#define PLAIN_64    finish_64(s, KIND_PLAIN, 0, a0_0, a0_1, a0_2, a0_3);
#define PLAIN_32    finish_one(s, KIND_PLAIN, a0_0, M16(0), a0_1, M16(16), PAIRED);
#define PLAIN_24    finish_one(s, KIND_PLAIN, a0_0, M16(0), WIDE(h0), M8(16), ORDER);
#define PLAIN_16    finish_one(s, KIND_PLAIN, a0_0, M16(0), a0_0, M16(0), ORDER);
#define PLAIN_8     finish_one(s, KIND_PLAIN, WIDE(h0), M8(0), WIDE(h0), M8(0), ORDER);
#define UNCOMMON_64 finish_any_64(g, out, a0_0, a0_1, a0_2, a0_3);
#define UNCOMMON_32 finish_any_32(g, out, a0_0, a0_1);
#define UNCOMMON_24 finish_any_24(g, out, a0_0, WIDE(h0));
#define UNCOMMON_16 finish_any_24(g, out, a0_0, a0_0);
#define UNCOMMON_8  finish_any_24(g, out, WIDE(h0), WIDE(h0));

INLINE bool is_uncommon(const qk_gemm_u8s8 *g) {
    return __builtin_expect(!g->o.mult || g->o.clamp, false);
}

INLINE sink row_sink(const qk_gemm_u8s8 *g, uint8_t *out) {
    sink at = sink_of(g);
    at.rows = 1;
    at.out = out;
    return at;
}

TARGET QS_NOINLINE static void finish_any_64(const qk_gemm_u8s8 *g, uint8_t *out, __m512i a,
                                             __m512i b, __m512i c, __m512i d) {
    const sink s = row_sink(g, out);
    finish_4(&s, 0, a, b, c, d);
}

TARGET QS_NOINLINE static void finish_any_32(const qk_gemm_u8s8 *g, uint8_t *out, __m512i a,
                                             __m512i b) {
    const sink at = row_sink(g, out), *s = &at;
    if (s->mult) {
        finish_one(s, KIND_ANY, a, M16(0), b, M16(16), PAIRED);
        return;
    }
    if (s->scale) {
        FLOATS(a, 0);
        FLOATS(b, 1);
    }
    store_i32_2(s, 0, a, b);
}

/* Factors of 24, 16 or 8 columns: those of the first vector, and of the second. */
INLINE __m512 first_of(const float *m, int32_t width) {
    return width == 8 ? HALF(m) : _mm512_loadu_ps(m);
}

INLINE __m512 others_of(const float *m, int32_t width) {
    return width == 24 ? HALF(m + 16) : first_of(m, width);
}

TARGET QS_NOINLINE static void finish_any_24(const qk_gemm_u8s8 *g, uint8_t *out, __m512i a,
                                             __m512i b) {
    const sink at = row_sink(g, out), *s = &at;
    const int32_t w = g->width;
    if (s->mult) {
        finish_one(s, KIND_ANY, a, first_of(s->mult, w), b, others_of(s->mult, w), ORDER);
        return;
    }
    if (s->scale) {
        a = as_floats(s, a, first_of(s->scale, w), first_of(s->add, w));
        b = as_floats(s, b, others_of(s->scale, w), others_of(s->add, w));
    }
    store_i32(s, 0, 0, a);
    store_i32(s, 0, 1, b);
}

/* The sums of one row by one panel, over all segments. */
#define ROW_SUMS(W, SEGMENT)                                                                       \
    SET_##W(0) NONE_##W if (__builtin_expect(init != NULL, false)) {                               \
        INIT_##W(0)                                                                                \
    }                                                                                              \
    const int32_t *at_seg = g->seg_offset;                                                         \
    for (int32_t segs = g->segs; segs > 0; segs--) {                                               \
        const uint8_t *p = at_seg ? row + *at_seg++ : row;                                         \
        SEGMENT(W)                                                                                 \
    }                                                                                              \
    ADD_##W

/*
 * 16 dwords of the row per load: loads from the first-level cache are the limit. The last load ends
 * with the row: where several pixels are a row, it may lie beyond the image already.
 */
#define BY_SIXTEEN(W)                                                                              \
    for (int32_t left = g->k4; left > 0; left -= 16, p += 64) {                                    \
        int32_t n = left < 16 ? left : 16;                                                         \
        __m512i y = n == 16 ? _mm512_loadu_si512(p) : _mm512_maskz_loadu_epi32(mask16(n), p);      \
        OPAQUE_POINTER(n)                                                                          \
        OPAQUE(y)                                                                                  \
        for (; n >= 4; n -= 4, b += 16 * W) {                                                      \
            __m512i x = _mm512_shuffle_i32x4(y, y, 0);                                             \
            OPAQUE(x)                                                                              \
            FOUR_##W y = _mm512_shuffle_i32x4(y, y, 0x39);                                         \
            OPAQUE_POINTER(n)                                                                      \
        }                                                                                          \
        for (; n > 0; n--, b += 4 * W) {                                                           \
            OPAQUE_POINTER(n) /* else gcc counts the turns twice, or unrolls the loop */           \
            const __m512i x0 = _mm512_broadcastd_epi32(_mm512_castsi512_si128(y));                 \
            ONE_##W y = _mm512_alignr_epi32(y, y, 1);                                              \
        }                                                                                          \
    }

/* 4 dwords of the row per load: weights from beyond that cache arrive 1 to 3 % sooner. */
#define BY_FOUR(W)                                                                                 \
    int32_t left = g->k4;                                                                          \
    for (; left >= 4; left -= 4, p += 16, b += 16 * W) {                                           \
        __m512i x = _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)p));                      \
        OPAQUE(x)                                                                                  \
        FOUR_##W                                                                                   \
    }                                                                                              \
    for (; left > 0; left--, p += 4, b += 4 * W) {                                                 \
        const __m512i x0 = broadcast(p);                                                           \
        ONE_##W                                                                                    \
    }

/*
 * single_W: one row by one panel. The cost of a call counts here: nothing is kept on the stack, and
 * other kinds than the plain one come last, in functions of their own.
 *
 * Compiling for size, gcc would leave the upper halves of registers in use, which slows down the
 * SSE code that runs next: here, as in i8_avx512vnni.c, they are cleared explicitly.
 */
#define SINGLE(W)                                                                                  \
    TARGET QS_NOINLINE static void single_##W(const qk_gemm_u8s8 *g, const uint8_t *row,           \
                                              const int32_t *init, uint8_t *out) {                 \
        const int8_t *b = g->b;                                                                    \
        const int32_t *bias = g->o.bias;                                                           \
        ROW_SUMS(W, BY_SIXTEEN)                                                                    \
        if (is_uncommon(g)) {                                                                      \
            UNCOMMON_##W                                                                           \
        } else {                                                                                   \
            const sink at = row_sink(g, out), *s = &at;                                            \
            PLAIN_##W                                                                              \
        }                                                                                          \
        _mm256_zeroupper();                                                                        \
    }

SINGLE(64)
SINGLE(32)
SINGLE(24)
SINGLE(16)
SINGLE(8)

/* One row by panels of 64 columns: no panel waits for the epilogue of the one before. */
TARGET QS_NOINLINE static void several_64(const qk_gemm_u8s8 *g, int32_t panels) {
    const uint8_t *row = g->rows ? g->rows[0] : g->a;
    const int32_t *bias = g->o.bias, *init = g->row_init;
    const int8_t *b = g->b;
    const bool rare = is_uncommon(g);
    sink at = row_sink(g, g->out), *s = &at;
    for (int32_t rest = g->cols; panels > 0; panels--, bias += 64, rest -= 64) {
        s->cols = rest < 64 ? rest : 64;
        s->mask = mask64(rest);
        ROW_SUMS(64, BY_FOUR)
        if (rare) {
            finish_4(s, 0, a0_0, a0_1, a0_2, a0_3);
        } else {
            PLAIN_64
        }
        s->out += s->mult ? 64 : 256;
        if (s->mult)
            s->mult += 64;
        if (s->scale)
            s->scale += 64, s->add += 64;
    }
    _mm256_zeroupper();
}

#endif
