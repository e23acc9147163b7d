/* SPDX-License-Identifier: MIT */
/* Element-wise kernels on 8 bits, AVX2; tables are looked up 16 entries at a time. */
#include "kernel/table.h"

#ifdef QK_YMM
#include <immintrin.h>

#include "kernel/u8_loops.h"
#include "kernel/x86/u8_quantize.h"

#define TARGET __attribute__((target("avx2,fma")))
#define INLINE TARGET __attribute__((always_inline)) static inline

INLINE __m128i load_16(const uint8_t *x) {
    return _mm_loadu_si128((const __m128i *)(const void *)x);
}

INLINE __m256i load_32(const uint8_t *x) {
    return _mm256_loadu_si256((const __m256i *)(const void *)x);
}

INLINE void store_32(uint8_t *y, __m256i v) {
    _mm256_storeu_si256((__m256i *)(void *)y, v);
}

INLINE void store_16(uint8_t *y, __m128i v) {
    _mm_storeu_si128((__m128i *)(void *)y, v);
}

QK_U8_INTERLEAVE(loops, TARGET)
/* The few elements that do not fill a vector; compiled for size. */
QK_U8_TABLE(rest, TARGET QS_COLD)
QK_U8_DEQUANTIZE(rest, TARGET QS_COLD)

/*
 * A table has 16 rows of 16 bytes; the low 4 bits of x are looked up in all of them. A shuffle
 * gives 0 where the index is negative, so the highest bit selects a row or the eighth after it; the
 * bits between, shifted into the sign, select among those by blends.
 */
typedef struct key {
    __m256i first, second, bit[3];
} key;

INLINE __m256i look_up_1(const __m256i *row, const key *k) {
    return _mm256_or_si256(_mm256_shuffle_epi8(row[0], k->first),
                           _mm256_shuffle_epi8(row[8], k->second));
}

INLINE __m256i look_up_2(const __m256i *row, const key *k) {
    return _mm256_blendv_epi8(look_up_1(row, k), look_up_1(row + 1, k), k->bit[0]);
}

INLINE __m256i look_up_4(const __m256i *row, const key *k) {
    return _mm256_blendv_epi8(look_up_2(row, k), look_up_2(row + 2, k), k->bit[1]);
}

INLINE __m256i look_up(const __m256i *row, __m256i x) {
    const __m256i first = _mm256_and_si256(x, _mm256_set1_epi8((char)0x8f));
    const key k = {first,
                   _mm256_xor_si256(first, _mm256_set1_epi8((char)0x80)),
                   {_mm256_slli_epi16(x, 3), _mm256_slli_epi16(x, 2), _mm256_add_epi8(x, x)}};
    return _mm256_blendv_epi8(look_up_4(row, &k), look_up_4(row + 4, &k), k.bit[2]);
}

INLINE void load_rows(const uint8_t *table, __m256i *row) {
    for (size_t r = 0; r < 16; r++)
        row[r] = _mm256_broadcastsi128_si256(
            _mm_loadu_si128((const __m128i *)(const void *)(table + 16 * r)));
}

TARGET static void table_avx2(const uint8_t *table, const uint8_t *x, size_t x_stride, uint8_t *y,
                              size_t y_stride, size_t n, size_t rows) {
    const size_t whole = n & ~(size_t)31;
    __m256i row[16];
    if (n >= 32)
        load_rows(table, row);
    for (size_t r = 0; r < rows && whole; r++)
        for (size_t i = 0; i < whole; i += 32) {
            const void *from = x + r * x_stride + i;
            void *to = y + r * y_stride + i;
            _mm256_storeu_si256(to, look_up(row, _mm256_loadu_si256(from)));
        }
    table_rest(table, x + whole, x_stride, y + whole, y_stride, n - whole, rows);
}

QK_U8_SHUFFLE(avx2)

/* ---- sums and products ---- */

typedef struct pair {
    __m256 ma, mb, za, zb, hi;
    __m256i bits_a, bits_b, zc, lo, flip_c;
} pair;

/* The float 2^23 + i, i an integer from 0 to 2^23 - 1, has i in its low bits. */
#define BIG      0x1p23f
#define BIG_BITS 0x4b000000

INLINE pair load_pair(const qk_u8_pair *w) {
    return (pair){
        .ma = _mm256_set1_ps(w->ma),
        .mb = _mm256_set1_ps(w->mb),
        .za = _mm256_set1_ps(BIG + (float)w->za),
        .zb = _mm256_set1_ps(BIG + (float)w->zb),
        .hi = _mm256_set1_ps(w->hi),
        .bits_a = _mm256_set1_epi32(BIG_BITS | w->flip_a),
        .bits_b = _mm256_set1_epi32(BIG_BITS | w->flip_b),
        .zc = _mm256_set1_epi16((int16_t)w->zc),
        .lo = _mm256_set1_epi8((char)((int32_t)w->lo + w->zc)),
        .flip_c = _mm256_set1_epi8((char)w->flip_c),
    };
}

/* Flips, converts and subtracts the zero point in two steps, both exact. */
INLINE __m256 term(const uint8_t *x, __m256i bits, __m256 zp) {
    const __m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)x);
    const __m256i v = _mm256_xor_si256(_mm256_cvtepu8_epi32(bytes), bits);
    return _mm256_sub_ps(_mm256_castsi256_ps(v), zp);
}

/* A sum or a product of terms, before it is rounded. */
INLINE __m256 value(__m256 a, __m256 b, const pair *k, bool mul) {
    return mul ? _mm256_mul_ps(_mm256_mul_ps(a, b), k->ma)
               : _mm256_add_ps(_mm256_mul_ps(k->ma, a), _mm256_mul_ps(k->mb, b));
}

/* Packs 32 words, which are in the order of lanes, to bytes in their own order. */
INLINE __m256i bytes_of(__m256i low, __m256i high) {
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    return _mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, high), order);
}

/* Packs 32 integers plus the zero point to bytes, with saturation. */
INLINE __m256i pack(const __m256i *r, __m256i zp) {
    return bytes_of(_mm256_adds_epi16(_mm256_packs_epi32(r[0], r[1]), zp),
                    _mm256_adds_epi16(_mm256_packs_epi32(r[2], r[3]), zp));
}

INLINE void pair_32(const uint8_t *a, const uint8_t *b, uint8_t *c, const pair *w, bool mul) {
    const pair k = *w;
    __m256i r[4];
#pragma GCC unroll 16
    for (size_t i = 0; i < 4; i++) {
        const __m256 ta = term(a + 8 * i, k.bits_a, k.za);
        const __m256 tb = term(b + 8 * i, k.bits_b, k.zb);
        /* Values that are too small, and NaNs, become INT32_MIN. */
        r[i] = _mm256_cvtps_epi32(_mm256_min_ps(k.hi, value(ta, tb, &k, mul)));
    }
    const __m256i y = _mm256_max_epu8(pack(r, k.zc), k.lo);
    store_32(c, _mm256_xor_si256(y, k.flip_c));
}

/* An operand of one element is repeated 32 times in `same`; the last elements go through `last`. */
INLINE void pairs(const uint8_t *a, size_t sa, const uint8_t *b, size_t sb, uint8_t *c, size_t n,
                  const qk_u8_pair *w, bool mul) {
    if (n == 0)
        return;
    const pair k = load_pair(w);
    uint8_t same[2][32], last[3][32] = {{0}};
    memset(same[0], *a, 32);
    memset(same[1], *b, 32);
    const uint8_t *pa = sa ? a : same[0], *pb = sb ? b : same[1];
    const size_t next_a = sa ? 32 : 0, next_b = sb ? 32 : 0;
    size_t i = 0;
    for (; i + 32 <= n; i += 32, pa += next_a, pb += next_b)
        pair_32(pa, pb, c + i, &k, mul);
    if (i == n)
        return;
    memcpy(last[0], pa, n - i);
    memcpy(last[1], pb, n - i);
    pair_32(last[0], last[1], last[2], &k, mul);
    memcpy(c + i, last[2], n - i);
}

TARGET static void add_avx2(const uint8_t *a, size_t sa, const uint8_t *b, size_t sb, uint8_t *c,
                            size_t n, const qk_u8_pair *w) {
    pairs(a, sa, b, sb, c, n, w, false);
}

TARGET static void mul_avx2(const uint8_t *a, size_t sa, const uint8_t *b, size_t sb, uint8_t *c,
                            size_t n, const qk_u8_pair *w) {
    pairs(a, sa, b, sb, c, n, w, true);
}

/* ---- two lines for each channel ---- */

QK_U8_PIECEWISE(rest, TARGET QS_COLD)

/* Eight channels from c on. */
INLINE __m128i piecewise_8(const qk_piecewise *w, const uint8_t *x, size_t c) {
    const __m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)(x + c));
    const __m256i i = _mm256_sub_epi32(_mm256_cvtepu8_epi32(bytes), _mm256_set1_epi32(w->zx));
    const __m256 d = _mm256_cvtepi32_ps(i), above = _mm256_loadu_ps(w->above + c);
    const __m256 slope = _mm256_blendv_ps(above, _mm256_loadu_ps(w->below + c), d);
    __m256 v = _mm256_add_ps(_mm256_mul_ps(d, slope), _mm256_loadu_ps(w->offset + c));
    v = _mm256_min_ps(_mm256_max_ps(v, _mm256_set1_ps(w->lo)), _mm256_set1_ps(w->hi));
    const __m256i r = _mm256_add_epi32(_mm256_cvtps_epi32(v), _mm256_set1_epi32(w->zy));
    const __m128i words =
        _mm_packs_epi32(_mm256_castsi256_si128(r), _mm256_extracti128_si256(r, 1));
    return _mm_packus_epi16(words, words);
}

TARGET static void piecewise_avx2(const qk_piecewise *w, const uint8_t *x, uint8_t *y, size_t n,
                                  size_t rows) {
    const qk_piecewise k = *w;
    const size_t whole = n & ~(size_t)7;
    const qk_piecewise last = {.below = k.below + whole,
                               .above = k.above + whole,
                               .offset = k.offset + whole,
                               .zx = k.zx,
                               .zy = k.zy,
                               .lo = k.lo,
                               .hi = k.hi};
    for (size_t r = 0; r < rows; r++, x += n, y += n) {
        for (size_t c = 0; c < whole; c += 8)
            _mm_storel_epi64((__m128i *)(void *)(y + c), piecewise_8(&k, x, c));
        if (whole < n)
            piecewise_rest(&last, x + whole, y + whole, n - whole, 1);
    }
}

/* ---- quantization ---- */

typedef struct division {
    __m256 scale, lo, hi;
    __m256i zp, flip;
} division;

INLINE void quantize_32(const float *x, const division *d, uint8_t *y) {
    __m256i r[4];
#pragma GCC unroll 16
    for (size_t k = 0; k < 4; k++) {
        const __m256 q = _mm256_div_ps(_mm256_loadu_ps(x + 8 * k), d->scale);
        r[k] = _mm256_cvtps_epi32(_mm256_min_ps(_mm256_max_ps(q, d->lo), d->hi));
    }
    store_32(y, _mm256_xor_si256(pack(r, d->zp), d->flip));
}

/*
 * Quantizes 32 elements at a time from i on; returns the first i where one of 32 results is near
 * the middle of two integers, or fewer than 32 are left.
 */
INLINE size_t quantize_from(const float *x, size_t i, size_t n, const qk_bracket *b, uint8_t *y,
                            bool within) {
    const __m256 least = _mm256_set1_ps(b->least), most = _mm256_set1_ps(b->most);
    const __m256 less = _mm256_set1_ps(b->less), more = _mm256_set1_ps(b->more);
    const __m256 middle = _mm256_set1_ps(b->middle);
    const __m256i low = _mm256_set1_epi32(255);
    for (; i + 32 <= n; i += 32) {
        __m256i differ = _mm256_setzero_si256(), r[4];
#pragma GCC unroll 16
        for (size_t k = 0; k < 4; k++) {
            const __m256 v = _mm256_max_ps(_mm256_loadu_ps(x + i + 8 * k), least);
            const __m256 w = within ? v : _mm256_min_ps(v, most);
            const __m256i first = _mm256_castps_si256(_mm256_fmadd_ps(w, less, middle));
            const __m256i last = _mm256_castps_si256(_mm256_fmadd_ps(w, more, middle));
            differ = _mm256_or_si256(differ, _mm256_xor_si256(first, last));
            r[k] = _mm256_and_si256(first, low);
        }
        if (!_mm256_testz_si256(differ, differ))
            break;
        store_32(y + i, bytes_of(_mm256_packs_epi32(r[0], r[1]), _mm256_packs_epi32(r[2], r[3])));
    }
    return i;
}

typedef size_t (*plain_fn)(const float *x, size_t i, size_t n, const qk_bracket *b, uint8_t *y);

TARGET __attribute__((noinline)) static size_t quantize_plain(const float *x, size_t i, size_t n,
                                                              const qk_bracket *b, uint8_t *y) {
    return quantize_from(x, i, n, b, y, false);
}

TARGET __attribute__((noinline)) static size_t within_plain(const float *x, size_t i, size_t n,
                                                            const qk_bracket *b, uint8_t *y) {
    return quantize_from(x, i, n, b, y, true);
}

TARGET static void quantize_any(const float *x, size_t n, float scale, int32_t zp, uint8_t flip,
                                uint8_t *y, plain_fn run) {
    const division d = {_mm256_set1_ps(scale), _mm256_set1_ps((float)-zp),
                        _mm256_set1_ps((float)(255 - zp)), _mm256_set1_epi16((int16_t)zp),
                        _mm256_set1_epi8((char)flip)};
    qk_bracket b;
    const bool plain = qk_bracket_of(&b, scale, zp, flip);
    float last[32] = {0};
    uint8_t bytes[32];
    size_t i = plain ? run(x, 0, n, &b, y) : 0;
    while (i + 32 <= n) {
        quantize_32(x + i, &d, y + i);
        i = plain ? run(x, i + 32, n, &b, y) : i + 32;
    }
    if (i == n)
        return;
    memcpy(last, x + i, 4 * (n - i));
    quantize_32(last, &d, bytes);
    memcpy(y + i, bytes, n - i);
}

static void quantize_avx2(const float *x, size_t n, float scale, int32_t zp, uint8_t flip,
                          uint8_t *y) {
    quantize_any(x, n, scale, zp, flip, y, quantize_plain);
}

static void quantize_within_avx2(const float *x, size_t n, float scale, int32_t zp, uint8_t flip,
                                 uint8_t *y) {
    quantize_any(x, n, scale, zp, flip, y, within_plain);
}

/* ---- planes to channels ---- */

/* Row 3 v + c: the pixel of plane c at byte i of part v: 16 v + i = 3 pixel + c; 128: none. */
static const uint8_t thirds[9][16] = {
    {0, 128, 128, 1, 128, 128, 2, 128, 128, 3, 128, 128, 4, 128, 128, 5},
    {128, 0, 128, 128, 1, 128, 128, 2, 128, 128, 3, 128, 128, 4, 128, 128},
    {128, 128, 0, 128, 128, 1, 128, 128, 2, 128, 128, 3, 128, 128, 4, 128},
    {128, 128, 6, 128, 128, 7, 128, 128, 8, 128, 128, 9, 128, 128, 10, 128},
    {5, 128, 128, 6, 128, 128, 7, 128, 128, 8, 128, 128, 9, 128, 128, 10},
    {128, 5, 128, 128, 6, 128, 128, 7, 128, 128, 8, 128, 128, 9, 128, 128},
    {128, 11, 128, 128, 12, 128, 128, 13, 128, 128, 14, 128, 128, 15, 128, 128},
    {128, 128, 11, 128, 128, 12, 128, 128, 13, 128, 128, 14, 128, 128, 15, 128},
    {10, 128, 128, 11, 128, 128, 12, 128, 128, 13, 128, 128, 14, 128, 128, 15},
};

/* Returns the number of pixels done. */
TARGET static size_t interleave_3(const uint8_t *x, size_t plane, uint8_t *y, size_t n) {
    const uint8_t *const x1 = x + plane, *const x2 = x1 + plane;
    __m256i from[3][3];
    size_t i = 0;
#pragma GCC unroll 16
    for (size_t k = 0; k < 9; k++)
        from[k / 3][k % 3] = _mm256_broadcastsi128_si256(load_16(thirds[k]));
    for (; i + 32 <= n; i += 32, y += 96) {
        const __m256i a = load_32(x + i), b = load_32(x1 + i), c = load_32(x2 + i);
        __m256i part[3];
#pragma GCC unroll 16
        for (size_t v = 0; v < 3; v++)
            part[v] = _mm256_or_si256(_mm256_or_si256(_mm256_shuffle_epi8(a, from[v][0]),
                                                      _mm256_shuffle_epi8(b, from[v][1])),
                                      _mm256_shuffle_epi8(c, from[v][2]));
        store_32(y, _mm256_permute2x128_si256(part[0], part[1], 0x20));
        store_32(y + 32, _mm256_blend_epi32(part[2], part[0], 0xf0));
        store_32(y + 64, _mm256_permute2x128_si256(part[1], part[2], 0x31));
    }
    return i;
}

TARGET static size_t interleave_4(const uint8_t *x, size_t plane, uint8_t *y, size_t n) {
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const __m128i a = load_16(x + i), b = load_16(x + plane + i);
        const __m128i c = load_16(x + 2 * plane + i), d = load_16(x + 3 * plane + i);
        const __m128i ab = _mm_unpacklo_epi8(a, b), ab2 = _mm_unpackhi_epi8(a, b);
        const __m128i cd = _mm_unpacklo_epi8(c, d), cd2 = _mm_unpackhi_epi8(c, d);
        store_16(y + 4 * i, _mm_unpacklo_epi16(ab, cd));
        store_16(y + 4 * i + 16, _mm_unpackhi_epi16(ab, cd));
        store_16(y + 4 * i + 32, _mm_unpacklo_epi16(ab2, cd2));
        store_16(y + 4 * i + 48, _mm_unpackhi_epi16(ab2, cd2));
    }
    return i;
}

TARGET void qk_interleave_avx2(const uint8_t *x, size_t plane, size_t planes, uint8_t *y,
                               size_t n) {
    const size_t i = planes == 3   ? interleave_3(x, plane, y, n)
                     : planes == 4 ? interleave_4(x, plane, y, n)
                                   : 0;
    interleave_loops(x + i, plane, planes, y + i * planes, n - i);
}

/* ---- dequantization ---- */

INLINE __m256 dequantize_8(const uint8_t *x, __m256i flips, __m256i zero, __m256 factor) {
    const __m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)x);
    const __m256i v = _mm256_xor_si256(_mm256_cvtepu8_epi32(bytes), flips);
    return _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_sub_epi32(v, zero)), factor);
}

TARGET static void dequantize_avx2(const uint8_t *x, size_t n, float scale, int32_t zp,
                                   uint8_t flip, float *y) {
    const __m256i flips = _mm256_set1_epi32(flip), zero = _mm256_set1_epi32(zp);
    const __m256 factor = _mm256_set1_ps(scale);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const __m256 low = dequantize_8(x + i, flips, zero, factor);
        _mm256_storeu_ps(y + i + 8, dequantize_8(x + i + 8, flips, zero, factor));
        _mm256_storeu_ps(y + i, low);
    }
    if (i < n)
        dequantize_rest(x + i, n - i, scale, zp, flip, y + i);
}

const qk_u8 qk_u8_avx2 = {.add = add_avx2,
                          .mul = mul_avx2,
                          .piecewise = piecewise_avx2,
                          .table = table_avx2,
                          .shuffle = shuffle_avx2,
                          .shuffle32 = qk_shuffle32_avx2,
                          .interleave = qk_interleave_avx2,
                          .lookup = qk_lookup_c,
                          .quantize = quantize_avx2,
                          .quantize_within = quantize_within_avx2,
                          .dequantize = dequantize_avx2,
                          .transpose8 = qk_transpose8_avx2,
                          .transpose32 = qk_transpose32_avx2};
#endif
