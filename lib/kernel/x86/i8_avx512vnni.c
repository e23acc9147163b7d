/* SPDX-License-Identifier: MIT */
/*
 * Integer products for AVX-512 with VNNI.
 *
 * A tile's accumulators are named scalars made by macros, each kept in its register by an empty
 * asm: arrays of more than some 16 vectors run at half speed under gcc.
 */
#include "kernel/i8.h"
#include "kernel/i8_post.h"

#if QK_X86
#include "kernel/x86/i8_zmm.h"

/* ---- what becomes of rows narrower than 64 columns ---- */

INLINE void store_i32_2(const sink *s, int32_t r, __m512i a, __m512i b) {
    if (r >= s->rows)
        return;
    __m512i t = _mm512_shuffle_i32x4(a, b, 0x44);
    store_i32(s, r, 0, _mm512_shuffle_i32x4(t, t, 0xd8));
    t = _mm512_shuffle_i32x4(a, b, 0xee);
    store_i32(s, r, 1, _mm512_shuffle_i32x4(t, t, 0xd8));
}

INLINE void store_u8_32(const sink *s, int32_t r, __m256i y) {
    if (r < s->rows)
        _mm256_mask_storeu_epi8(s->out + r * s->stride, (__mmask32)mask64(s->cols), y);
}

/* Two rows of 32 columns. */
INLINE void finish_2(const sink *s, int32_t r, __m512i a0, __m512i b0, __m512i a1, __m512i b1) {
    if (!s->mult) {
        store_i32_2(s, r, a0, b0);
        store_i32_2(s, r + 1, a1, b1);
        return;
    }
    __m512 m0 = _mm512_loadu_ps(s->mult), m1 = _mm512_loadu_ps(s->mult + 16);
    __m512i y = narrow_u8(narrow(scale(a0, m0, &s->e), scale(b0, m1, &s->e), &s->e),
                          narrow(scale(a1, m0, &s->e), scale(b1, m1, &s->e), &s->e), &s->e);
    y = _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), y);
    store_u8_32(s, r, _mm512_castsi512_si256(y));
    store_u8_32(s, r + 1, _mm512_extracti64x4_epi64(y, 1));
}

INLINE void store_u8_16(const sink *s, int32_t r, __m128i y) {
    if (r < s->rows)
        _mm_mask_storeu_epi8(s->out + r * s->stride, mask16(s->cols), y);
}

/* Four rows of 16 columns. */
INLINE void finish_1(const sink *s, int32_t r, __m512i a, __m512i b, __m512i c, __m512i d) {
    if (!s->mult) {
        for (int32_t i = 0; i < 4; i++)
            if (r + i < s->rows)
                store_i32(s, r + i, 0, i == 0 ? a : i == 1 ? b : i == 2 ? c : d);
        return;
    }
    __m512 m = _mm512_loadu_ps(s->mult);
    __m512i y = narrow_u8(narrow(scale(a, m, &s->e), scale(b, m, &s->e), &s->e),
                          narrow(scale(c, m, &s->e), scale(d, m, &s->e), &s->e), &s->e);
    y = _mm512_permutexvar_epi32(
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), y);
    if (s->stride == 16 && s->cols == 16 && r + 4 <= s->rows) {
        _mm512_storeu_si512(s->out + 16 * r, y);
        return;
    }
    store_u8_16(s, r, _mm512_castsi512_si128(y));
    store_u8_16(s, r + 1, _mm512_extracti32x4_epi32(y, 1));
    store_u8_16(s, r + 2, _mm512_extracti32x4_epi32(y, 2));
    store_u8_16(s, r + 3, _mm512_extracti32x4_epi32(y, 3));
}

/* ---- tiles: R rows x V vectors of 16 columns ---- */

INLINE __m512i broadcast(const uint8_t *p) {
    int32_t dword;
    memcpy(&dword, p, 4);
    return _mm512_set1_epi32(dword);
}

#define V1(F, r)     F(r, 0)
#define V2(F, r)     F(r, 0) F(r, 1)
#define V4(F, r)     F(r, 0) F(r, 1) F(r, 2) F(r, 3)
#define R1(V, F)     V(F, 0)
#define R4(V, F)     V(F, 0) V(F, 1) V(F, 2) V(F, 3)
#define R8(V, F)     R4(V, F) V(F, 4) V(F, 5) V(F, 6) V(F, 7)
#define ROW_OF(F, r) F(r)

#define DECLARE(r, v) __m512i a##r##_##v = _mm512_loadu_si512(bias + 16 * v);
#define INIT(r, v)    a##r##_##v = _mm512_add_epi32(a##r##_##v, _mm512_set1_epi32(s->init[r]));
#define ROW(r)        const uint8_t *p##r = row[r];
#define LOAD_B(r, v)  const __m512i b##v = _mm512_loadu_si512(b + 64 * v);
#define LOAD_A(r)     const __m512i x##r = broadcast(p##r + i);
#define DOT(r, v)                                                                                  \
    a##r##_##v = _mm512_dpbusd_epi32(a##r##_##v, x##r, b##v);                                      \
    __asm__("" : "+v"(a##r##_##v));

#define FINISH_1x4(s) finish_4(s, 0, a0_0, a0_1, a0_2, a0_3);
#define FINISH_4x4(s)                                                                              \
    FINISH_1x4(s) finish_4(s, 1, a1_0, a1_1, a1_2, a1_3);                                          \
    finish_4(s, 2, a2_0, a2_1, a2_2, a2_3);                                                        \
    finish_4(s, 3, a3_0, a3_1, a3_2, a3_3);
#define FINISH_1x2(s) finish_2(s, 0, a0_0, a0_1, a0_0, a0_1);
#define FINISH_8x2(s)                                                                              \
    finish_2(s, 0, a0_0, a0_1, a1_0, a1_1);                                                        \
    finish_2(s, 2, a2_0, a2_1, a3_0, a3_1);                                                        \
    finish_2(s, 4, a4_0, a4_1, a5_0, a5_1);                                                        \
    finish_2(s, 6, a6_0, a6_1, a7_0, a7_1);
#define FINISH_1x1(s) finish_1(s, 0, a0_0, a0_0, a0_0, a0_0);
#define FINISH_8x1(s)                                                                              \
    finish_1(s, 0, a0_0, a1_0, a2_0, a3_0);                                                        \
    finish_1(s, 4, a4_0, a5_0, a6_0, a7_0);

#define TILE(NR, NV)                                                                               \
    TARGET static void tile_##NR##x##NV(const qk_gemm_u8s8 *g, const uint8_t *const *row,          \
                                        const sink *s) {                                           \
        const int8_t *b = g->b;                                                                    \
        const int32_t *bias = g->o.bias;                                                           \
        R##NR(V##NV, DECLARE) R##NR(ROW_OF, ROW) if (s->init) {                                    \
            R##NR(V##NV, INIT)                                                                     \
        }                                                                                          \
        for (int32_t seg = 0; seg < g->segs; seg++) {                                              \
            ptrdiff_t i = g->seg_offset ? g->seg_offset[seg] : 0;                                  \
            for (ptrdiff_t end = i + 4 * (ptrdiff_t)g->k4; i < end; i += 4, b += 64 * NV) {        \
                V##NV(LOAD_B, 0) R##NR(ROW_STEP_##NV, DOT)                                         \
            }                                                                                      \
        }                                                                                          \
        if (is_plain(s) && s->rows == NR) {                                                        \
            const sink f = plain_sink(s, NR);                                                      \
            FINISH_##NR##x##NV(&f)                                                                 \
        } else {                                                                                   \
            FINISH_##NR##x##NV(s)                                                                  \
        }                                                                                          \
    }

#define ROW_STEP_1(F, r) LOAD_A(r) V1(F, r)
#define ROW_STEP_2(F, r) LOAD_A(r) V2(F, r)
#define ROW_STEP_4(F, r) LOAD_A(r) V4(F, r)

TILE(4, 4)
TILE(1, 4)
TILE(8, 2)
TILE(1, 2)
TILE(8, 1)
TILE(1, 1)

typedef void (*tile_fn)(const qk_gemm_u8s8 *g, const uint8_t *const *row, const sink *s);

/* A short last block aliases its missing rows to the last one. */
TARGET static void gemm_u8s8(const qk_gemm_u8s8 *g) {
    int32_t height = g->width == 64 ? 4 : 8;
    tile_fn many = g->width == 64 ? tile_4x4 : g->width == 32 ? tile_8x2 : tile_8x1;
    tile_fn one = g->width == 64 ? tile_1x4 : g->width == 32 ? tile_1x2 : tile_1x1;
    int32_t init[8];
    sink s = {g->out, g->out_stride,     g->o.mult, g->row_init ? init : NULL, g->cols,
              0,      epilogue_of(&g->o)};
    for (int32_t r = 0; r < g->m; r += height, s.out += height * g->out_stride) {
        const uint8_t *row[8];
        for (int32_t i = 0; i < height; i++) {
            int32_t at = r + i < g->m ? r + i : g->m - 1;
            row[i] = g->rows ? g->rows[at] : g->a + at * g->a_stride;
            init[i] = g->row_init ? g->row_init[at] : 0;
        }
        s.rows = g->m - r < height ? g->m - r : height;
        (s.rows == 1 ? one : many)(g, row, &s);
    }
}

/* ---- sums of rows ---- */

/* Sums of the dwords of four vectors. */
INLINE __m128i sum_4(__m512i a, __m512i b, __m512i c, __m512i d) {
    __m512i ab = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    __m512i cd = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
    __m512i v = _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
    __m256i h = _mm256_add_epi32(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
    return _mm_add_epi32(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1));
}

TARGET static void row_sums_u8(const qk_gemm_u8s8 *g, int32_t k, int32_t factor, int32_t *out) {
    const __m512i ones = _mm512_set1_epi8(1);
    for (int32_t r = 0; r < g->m; r += 4) {
        const uint8_t *row[4];
        for (int32_t i = 0; i < 4; i++) {
            int32_t at = r + i < g->m ? r + i : g->m - 1;
            row[i] = g->rows ? g->rows[at] : g->a + at * g->a_stride;
        }
        __m512i a = _mm512_setzero_si512(), b = a, c = a, d = a;
        for (int32_t seg = 0; seg < g->segs; seg++) {
            ptrdiff_t at = g->seg_offset ? g->seg_offset[seg] : 0;
            for (int32_t j = 0; j < k; j += 64, at += 64) {
                const __mmask64 mask = mask64(k - j);
                a = _mm512_dpbusd_epi32(a, _mm512_maskz_loadu_epi8(mask, row[0] + at), ones);
                b = _mm512_dpbusd_epi32(b, _mm512_maskz_loadu_epi8(mask, row[1] + at), ones);
                c = _mm512_dpbusd_epi32(c, _mm512_maskz_loadu_epi8(mask, row[2] + at), ones);
                d = _mm512_dpbusd_epi32(d, _mm512_maskz_loadu_epi8(mask, row[3] + at), ones);
            }
        }
        __m128i sums = _mm_mullo_epi32(sum_4(a, b, c, d), _mm_set1_epi32(factor));
        _mm_mask_storeu_epi32(out + r, (__mmask8)(mask16(g->m - r) & 15), sums);
    }
}
TARGET static void requantize_u8(const int32_t *acc, size_t n, float m, int32_t zp, int32_t lo,
                                 int32_t hi, uint8_t *y) {
    qk_out_i8 o = {.zp = zp, .lo = lo, .hi = hi, .clamp = true};
    epilogue e = epilogue_of(&o);
    __m512i zero_point = _mm512_set1_epi32(zp);
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 mask = mask16(n - i < 16 ? (int32_t)(n - i) : 16);
        __m512i v = scale(_mm512_maskz_loadu_epi32(mask, acc + i), _mm512_set1_ps(m), &e);
        v = _mm512_add_epi32(v, zero_point);
        _mm512_mask_cvtepi32_storeu_epi8(y + i, mask, v);
    }
}

TARGET static void post_row(const qk_post_row_i8 *p) {
    qk_post_row(p);
}

const qk_i8 qk_i8_avx512vnni = {
    .lanes = 4,
    .widest = 64,
    .gemm = gemm_u8s8,
    .row_sums = row_sums_u8,
    .depthwise = qk_depthwise_u8s8_avx512vnni,
    .depthwise_rows = qk_depthwise_rows_u8s8_avx512vnni,
    .requantize = requantize_u8,
    .post = post_row,
};
#endif
