/* SPDX-License-Identifier: MIT */
/*
 * INT8 products, AVX-512 VNNI: tiles of 2 to 8 rows by 64, 32, 24, 16 or 8 columns.
 *
 * A tile's accumulators are named variables made by macros (gcc 12 runs arrays of more than some 16
 * vectors at half speed), so TILE and SHORT_TILES stay macros: a##r##_##v is the sum of row r and
 * vector v of 16 columns, h##r that of 8 columns; x##r is a dword of the row in all lanes; b##v and
 * bh are weights.
 */
#ifndef QK_I8_GEMM_TILE_AVX512_H
#define QK_I8_GEMM_TILE_AVX512_H

#include "kernel/x86/i8_requant_avx512.h"
#include "kernel/x86/i8_im2row_avx512.h"

INLINE __m512i broadcast(const uint8_t *p) {
    int32_t dword;
    memcpy(&dword, p, 4);
    return _mm512_set1_epi32(dword);
}

#define R2(F)  F(0) F(1)
#define R3(F)  R2(F) F(2)
#define R4(F)  R3(F) F(3)
#define R6(F)  R4(F) F(4) F(5)
#define R8(F)  R6(F) F(6) F(7)
#define R12(F) R8(F) F(8) F(9) F(10) F(11)

/* Hides from the compiler the value of a number or pointer, and so what it points to. */
#define OPAQUE_POINTER(p) __asm__("" : "+r"(p));

#define ROW(r)         const uint8_t *p##r = row[r];
#define SET(r, v)      __m512i a##r##_##v = _mm512_loadu_si512(bias + 16 * v);
#define SET_HALF(r, v) __m256i h##r = _mm256_loadu_si256((const void *)(bias + 16 * v));
#define INIT(r, v)     a##r##_##v = _mm512_add_epi32(a##r##_##v, _mm512_set1_epi32(init[r]));
#define INIT_HALF(r)   h##r = _mm256_add_epi32(h##r, _mm256_set1_epi32(init[r]));
#define LOAD(v)                                                                                    \
    __m512i b##v = _mm512_loadu_si512(b + 64 * v);                                                 \
    OPAQUE(b##v)
#define LOAD_HALF(v)                                                                               \
    __m256i bh = _mm256_loadu_si256((const void *)(b + 64 * v));                                   \
    OPAQUE(bh)
#define BROADCAST(r) const __m512i x##r = broadcast(p##r + i);
#define DOT(r, v, w)                                                                               \
    a##r##_##v = _mm512_dpbusd_epi32(a##r##_##v, x##r, w);                                         \
    OPAQUE(a##r##_##v)
#define DOT_HALF(r, w)                                                                             \
    h##r = _mm256_dpbusd_epi32(h##r, _mm512_castsi512_si256(x##r), w);                             \
    OPAQUE(h##r)

/* For a row of 64, 32 … columns: start of its sums, row_init, a dword of B, its products. */
#define SET_64(r)  SET(r, 0) SET(r, 1) SET(r, 2) SET(r, 3)
#define SET_32(r)  SET(r, 0) SET(r, 1)
#define SET_24(r)  SET(r, 0) SET_HALF(r, 1)
#define SET_16(r)  SET(r, 0)
#define SET_8(r)   SET_HALF(r, 0)
#define INIT_64(r) INIT(r, 0) INIT(r, 1) INIT(r, 2) INIT(r, 3)
#define INIT_32(r) INIT(r, 0) INIT(r, 1)
#define INIT_24(r) INIT(r, 0) INIT_HALF(r)
#define INIT_16(r) INIT(r, 0)
#define INIT_8(r)  INIT_HALF(r)
#define LOAD_64    LOAD(0) LOAD(1) LOAD(2) LOAD(3)
#define LOAD_32    LOAD(0) LOAD(1)
#define LOAD_24    LOAD(0) LOAD_HALF(1)
#define LOAD_16    LOAD(0)
#define LOAD_8     LOAD_HALF(0)

#define STEP_64(r) BROADCAST(r) DOT(r, 0, b0) DOT(r, 1, b1) DOT(r, 2, b2) DOT(r, 3, b3)
#define STEP_32(r) BROADCAST(r) DOT(r, 0, b0) DOT(r, 1, b1)
#define STEP_24(r) /* full and half vectors in turn: 2 % faster */                                 \
    BROADCAST(r) if (r % 2 == 0){DOT(r, 0, b0)} DOT_HALF(r, bh) if (r % 2) {                       \
        DOT(r, 0, b0)                                                                              \
    }
#define STEP_16(r) BROADCAST(r) DOT(r, 0, b0)
#define STEP_8(r)  BROADCAST(r) DOT_HALF(r, bh)

#define FINISH_64(r)          finish_64(s, how, r, a##r##_0, a##r##_1, a##r##_2, a##r##_3);
#define FINISH_32(r, q)       finish_32(s, how, r, a##r##_0, a##r##_1, a##q##_0, a##q##_1);
#define FINISH_16(r, q, t, u) finish_16(s, how, r, a##r##_0, a##q##_0, a##t##_0, a##u##_0);
#define FINISH_2x64           FINISH_64(0) FINISH_64(1)
#define FINISH_4x64           R4(FINISH_64)
#define FINISH_4x32           FINISH_32(0, 1) FINISH_32(2, 3)
#define FINISH_8x32           FINISH_4x32 FINISH_32(4, 5) FINISH_32(6, 7)
#define FINISH_4x16           FINISH_16(0, 1, 2, 3)
#define FINISH_8x16           FINISH_4x16 FINISH_16(4, 5, 6, 7)
#define FINISH_8x8            finish_8(s, how, join(h0, h1), join(h2, h3), join(h4, h5), join(h6, h7));
#define FINISH_8x24                                                                                \
    finish_24(s, how, a0_0, a1_0, a2_0, a3_0, a4_0, a5_0, a6_0, a7_0, join(h0, h1), join(h2, h3),  \
              join(h4, h5), join(h6, h7));

/* Addresses of rows [r, r + count) of the product. */
INLINE void rows_at(const qk_gemm_u8s8 *g, int32_t r, int32_t count, const uint8_t **row) {
    const uint8_t *p = g->a + r * g->a_stride;
#pragma GCC unroll 12
    for (int32_t i = 0; i < count; i++, p += g->a_stride)
        row[i] = g->rows ? g->rows[r + i] : p;
}

/*
 * tile_RxW: R rows of W columns. `plain`: whole tiles of bytes without a clamp (KIND_PLAIN); all
 * else is stored by FINISH_ANY. Tiles of 4 rows and 64 columns prefetch a cache line of the next
 * panel beside each dword, s->lines of them.
 */
#define TILE(NR, W)                                                                                \
    TARGET static void tile_##NR##x##W(const qk_gemm_u8s8 *g, const uint8_t *const *row,           \
                                       const sink *s, bool plain) {                                \
        const int8_t *b = g->b;                                                                    \
        const int32_t *bias = g->o.bias;                                                           \
        const int32_t *init = s->init;                                                             \
        const char *next = s->next;                                                                \
        int32_t lines = s->lines;                                                                  \
        (void)next, (void)lines;                                                                   \
        R##NR(ROW) R##NR(SET_##W) if (init) {                                                      \
            R##NR(INIT_##W)                                                                        \
        }                                                                                          \
        for (int32_t seg = 0; seg < g->segs; seg++) {                                              \
            ptrdiff_t i = g->seg_offset ? g->seg_offset[seg] : 0;                                  \
            const ptrdiff_t end = i + 4 * (ptrdiff_t)g->k4;                                        \
            do { /* compiling for size, gcc would test a while loop at its head */                 \
                if (NR == 4 && W == 64 && lines > 0) {                                             \
                    _mm_prefetch(next, _MM_HINT_T1);                                               \
                    next += 64;                                                                    \
                    lines--;                                                                       \
                }                                                                                  \
                LOAD_##W R##NR(STEP_##W) b += 4 * W;                                               \
            } while ((i += 4) < end);                                                              \
            OPAQUE_POINTER(g) /* so that fields are loaded where they are used, */                 \
            OPAQUE_POINTER(s) /* not kept in registers */                                          \
        }                                                                                          \
        if (plain) {                                                                               \
            const kind how = KIND_PLAIN;                                                           \
            FINISH_##NR##x##W                                                                      \
        } else {                                                                                   \
            FINISH_ANY_##W(NR)                                                                     \
        }                                                                                          \
    }

typedef void (*tile_fn)(const qk_gemm_u8s8 *g, const uint8_t *const *row, const sink *s,
                        bool plain);

#endif
