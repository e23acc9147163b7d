/* SPDX-License-Identifier: MIT */
/*
 * What tiles of integer products are written in: a##r##_##v is the sum of row r and vector v of 16
 * columns, h##r of 8, x##r a dword of the row in all lanes, b##v and bh its weights.
 */
#ifndef QK_I8_TILE_ZMM_H
#define QK_I8_TILE_ZMM_H

#include "kernel/x86/i8_zmm.h"

INLINE __m512i broadcast(const uint8_t *p) {
    int32_t dword;
    memcpy(&dword, p, 4);
    return _mm512_set1_epi32(dword);
}

#define R2(F) F(0) F(1)
#define R4(F) F(0) F(1) F(2) F(3)
#define R8(F) R4(F) F(4) F(5) F(6) F(7)

/* What is known of a number or of what lies behind a pointer. */
#define FORGET(p) __asm__("" : "+r"(p));

#define ROW(r)         const uint8_t *p##r = row[r];
#define SET(r, v)      __m512i a##r##_##v = _mm512_loadu_si512(bias + 16 * v);
#define SET_HALF(r, v) __m256i h##r = _mm256_loadu_si256((const void *)(bias + 16 * v));
#define INIT(r, v)     a##r##_##v = _mm512_add_epi32(a##r##_##v, _mm512_set1_epi32(init[r]));
#define INIT_HALF(r)   h##r = _mm256_add_epi32(h##r, _mm256_set1_epi32(init[r]));
#define LOAD(v)                                                                                    \
    __m512i b##v = _mm512_loadu_si512(b + 64 * v);                                                 \
    KEEP(b##v)
#define LOAD_HALF(v)                                                                               \
    __m256i bh = _mm256_loadu_si256((const void *)(b + 64 * v));                                   \
    KEEP(bh)
#define BROADCAST(r) const __m512i x##r = broadcast(p##r + i);
#define KEEP(acc)    __asm__("" : "+v"(acc));
#define DOT(r, v, w)                                                                               \
    a##r##_##v = _mm512_dpbusd_epi32(a##r##_##v, x##r, w);                                         \
    KEEP(a##r##_##v)
#define DOT_HALF(r, w)                                                                             \
    h##r = _mm256_dpbusd_epi32(h##r, _mm512_castsi512_si256(x##r), w);                             \
    KEEP(h##r)

/* Of a row of 64, 32 … columns: where sums start, row_init, a dword of B, its products. */
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

#endif
