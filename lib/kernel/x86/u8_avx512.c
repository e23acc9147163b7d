/* SPDX-License-Identifier: MIT */
/*
 * Element-wise kernels on 8 bits, AVX-512 VNNI with VBMI: 64 elements at a time, the rest under a
 * mask. A dot product extracts a byte of four and subtracts the zero point; results are packed with
 * saturation, within lanes, and put in order once.
 */
#include <assert.h>

#include "kernel/table.h"

#ifdef QK_AVX512VNNI
#include <immintrin.h>

#include "kernel/u8_loops.h"
#include "kernel/x86/u8_quantize.h"

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,avx512vnni")))
#define INLINE TARGET __attribute__((always_inline)) static inline

INLINE __mmask64 left(size_t n) {
    return n >= 64 ? ~(__mmask64)0 : ((__mmask64)1 << n) - 1;
}

/* Converts 64 results to bytes, zero point added, lane by lane. */
INLINE __m512i pack(const __m512 *v, __m512i zp) {
    __m512i a = _mm512_packs_epi32(_mm512_cvtps_epi32(v[0]), _mm512_cvtps_epi32(v[1]));
    __m512i b = _mm512_packs_epi32(_mm512_cvtps_epi32(v[2]), _mm512_cvtps_epi32(v[3]));
    a = _mm512_adds_epi16(a, zp);
    b = _mm512_adds_epi16(b, zp);
    return _mm512_packus_epi16(a, b);
}

/* ---- tables ---- */

typedef struct byte_table {
    __m512i page[4];
} byte_table;

INLINE void load_table(byte_table *t, const uint8_t *table) {
#pragma GCC unroll 16
    for (size_t i = 0; i < 4; i++)
        t->page[i] = _mm512_loadu_si512(table + 64 * i);
}

INLINE __m512i look_up(const byte_table *t, __m512i x) {
    __m512i low = _mm512_permutex2var_epi8(t->page[0], x, t->page[1]);
    __m512i high = _mm512_permutex2var_epi8(t->page[2], x, t->page[3]);
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(x), low, high);
}

INLINE void store_16(uint8_t *y, __m128i v) {
    _mm_storeu_si128((__m128i *)(void *)y, v);
}

INLINE void store_32(uint8_t *y, __m256i v) {
    _mm256_storeu_si256((__m256i *)(void *)y, v);
}

TARGET static void table_avx512(const uint8_t *table, const uint8_t *x, size_t x_stride, uint8_t *y,
                                size_t y_stride, size_t n, size_t rows) {
    byte_table t;
    load_table(&t, table);
    /* Adjacent short rows fill a vector: four of 16 bytes, or two of 32. */
    for (; n == 16 && x_stride == 16 && rows >= 4; rows -= 4, x += 64, y += 4 * y_stride) {
        const __m512i v = look_up(&t, _mm512_loadu_si512(x));
        store_16(y, _mm512_castsi512_si128(v));
        store_16(y + y_stride, _mm512_extracti32x4_epi32(v, 1));
        store_16(y + 2 * y_stride, _mm512_extracti32x4_epi32(v, 2));
        store_16(y + 3 * y_stride, _mm512_extracti32x4_epi32(v, 3));
    }
    for (; n == 32 && x_stride == 32 && rows >= 2; rows -= 2, x += 64, y += 2 * y_stride) {
        const __m512i v = look_up(&t, _mm512_loadu_si512(x));
        store_32(y, _mm512_castsi512_si256(v));
        store_32(y + y_stride, _mm512_extracti64x4_epi64(v, 1));
    }
    for (size_t r = 0; r < rows; r++, x += x_stride, y += y_stride) {
        size_t i = 0;
        for (; i + 64 <= n; i += 64)
            _mm512_storeu_si512(y + i, look_up(&t, _mm512_loadu_si512(x + i)));
        if (i < n) {
            __mmask64 m = left(n - i);
            _mm512_mask_storeu_epi8(y + i, m, look_up(&t, _mm512_maskz_loadu_epi8(m, x + i)));
        }
    }
}

/* ---- two inputs interleaved ---- */

/* Tables of both inputs; byte orders that interleave their first 32 bytes, and their last. */
typedef struct weaver {
    byte_table a, b;
    __m512i low, high;
} weaver;

/* Pairs of a row, the number after the last whole 64, and their masks. */
typedef struct run {
    size_t n, rest;
    __mmask64 x, low, high;
} run;

INLINE run run_of(size_t n) {
    const size_t rest = n % 64;
    return (run){n, rest, left(rest), left(2 * rest), rest > 32 ? left(2 * rest - 64) : 0};
}

/* Branches test numbers, not masks: gcc would test those in mask registers, which takes longer. */
INLINE void weave_row(const uint8_t *a, const uint8_t *b, uint8_t *y, const run *r, const weaver *w,
                      bool looks_up) {
    for (size_t i = r->n / 64; i; i--, a += 64, b += 64, y += 128) {
        __m512i x = _mm512_loadu_si512(a), z = _mm512_loadu_si512(b);
        x = looks_up ? look_up(&w->a, x) : x;
        z = looks_up ? look_up(&w->b, z) : z;
        _mm512_storeu_si512(y, _mm512_permutex2var_epi8(x, w->low, z));
        _mm512_storeu_si512(y + 64, _mm512_permutex2var_epi8(x, w->high, z));
    }
    if (!r->rest)
        return;
    __m512i x = _mm512_maskz_loadu_epi8(r->x, a), z = _mm512_maskz_loadu_epi8(r->x, b);
    x = looks_up ? look_up(&w->a, x) : x;
    z = looks_up ? look_up(&w->b, z) : z;
    _mm512_mask_storeu_epi8(y, r->low, _mm512_permutex2var_epi8(x, w->low, z));
    if (r->rest > 32)
        _mm512_mask_storeu_epi8(y + 64, r->high, _mm512_permutex2var_epi8(x, w->high, z));
}

/* Works on a copy, which stores cannot alias: it stays in registers. */
INLINE void weave_rows(const qk_shuffle *s, const weaver *from, bool looks_up) {
    const size_t n = s->n, first = s->first, rest = 2 * n - first, half = first / 2;
    const weaver w = *from;
    const uint8_t *a = s->a, *b = s->b;
    uint8_t *y0 = s->y0, *y1 = s->y1;
    if (rest == 0) {
        const run all = run_of(n * s->rows);
        weave_row(a, b, y0, &all, &w, looks_up);
        return;
    }
    const run here = run_of(half), there = run_of(n - half);
    for (size_t r = 0; r < s->rows; r++, a += n, b += n, y0 += first, y1 += rest) {
        weave_row(a, b, y0, &here, &w, looks_up);
        weave_row(a + half, b + half, y1, &there, &w, looks_up);
    }
}

TARGET static void shuffle_avx512(const qk_shuffle *s) {
    uint8_t same[256];
    uint16_t order[32];
    weaver w;
    if (s->first % 2) {
        qk_shuffle_by(s, table_avx512);
        return;
    }
    for (size_t i = 0; i < 32; i++)
        order[i] = (uint16_t)(0x4000 + 0x0101 * i);
    w.low = _mm512_loadu_si512(order);
    w.high = _mm512_add_epi8(w.low, _mm512_set1_epi8(32));
    if (!s->table_a && !s->table_b) {
        weave_rows(s, &w, false);
        return;
    }
    for (size_t i = 0; i < 256; i++)
        same[i] = (uint8_t)i;
    load_table(&w.a, s->table_a ? s->table_a : same);
    load_table(&w.b, s->table_b ? s->table_b : same);
    weave_rows(s, &w, true);
}

/*
 * Looks up 64 floats, byte by byte of each. The elements are permuted first, so that interleaving
 * within lanes puts them in order.
 */
INLINE void floats_of(const byte_table *t, __m512i x, __m512i *out) {
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i z = _mm512_permutexvar_epi32(order, x);
    const __m512i a = look_up(&t[0], z), b = look_up(&t[1], z);
    const __m512i c = look_up(&t[2], z), d = look_up(&t[3], z);
    const __m512i low = _mm512_unpacklo_epi8(a, b), high = _mm512_unpackhi_epi8(a, b);
    const __m512i top = _mm512_unpacklo_epi8(c, d), far = _mm512_unpackhi_epi8(c, d);
    out[0] = _mm512_unpacklo_epi16(low, top);
    out[1] = _mm512_unpackhi_epi16(low, top);
    out[2] = _mm512_unpacklo_epi16(high, far);
    out[3] = _mm512_unpackhi_epi16(high, far);
}

TARGET static void lookup_avx512(const float *table, const uint8_t *x, float *y, size_t n) {
    uint8_t bytes[4][256];
    byte_table t[4];
    __m512i v[4];
    size_t i = 0;
    if (n < 64) {
        qk_lookup_c(table, x, y, n);
        return;
    }
    for (size_t k = 0; k < 256; k += 16)
        for (uint32_t b = 0; b < 4; b++) {
            const __m512i wide = _mm512_srlv_epi32(_mm512_loadu_si512(table + k),
                                                   _mm512_set1_epi32((int32_t)(8 * b)));
            store_16(bytes[b] + k, _mm512_cvtepi32_epi8(wide));
        }
#pragma GCC unroll 16
    for (size_t b = 0; b < 4; b++)
        load_table(&t[b], bytes[b]);
    for (; i + 64 <= n; i += 64) {
        floats_of(t, _mm512_loadu_si512(x + i), v);
#pragma GCC unroll 16
        for (size_t k = 0; k < 4; k++)
            _mm512_storeu_si512(y + i + 16 * k, v[k]);
    }
    if (i == n)
        return;
    const __mmask64 m = left(n - i);
    floats_of(t, _mm512_maskz_loadu_epi8(m, x + i), v);
#pragma GCC unroll 16
    for (size_t k = 0; k < 4; k++)
        _mm512_mask_storeu_epi32(y + i + 16 * k, (__mmask16)(m >> 16 * k), v[k]);
}

/* ---- sums and products ---- */

typedef struct binary {
    __m512 ma, mb;
    __m512i za, zb, zc, lo, hi, flip_a, flip_b, flip_c;
} binary;

/* False where a result may exceed int32: the AVX2 kernels clamp before they convert. */
static bool fits_int32(const qk_u8_pair *w, bool mul) {
    float a = w->ma < 0 ? -w->ma : w->ma, b = w->mb < 0 ? -w->mb : w->mb;
    return mul ? a < 16384.0f : a < 1048576.0f && b < 1048576.0f;
}

INLINE binary load_binary(const qk_u8_pair *w) {
    return (binary){
        .za = _mm512_set1_epi32(-w->za),
        .zb = _mm512_set1_epi32(-w->zb),
        .ma = _mm512_set1_ps(w->ma),
        .mb = _mm512_set1_ps(w->mb),
        .zc = _mm512_set1_epi16((int16_t)w->zc),
        .lo = _mm512_set1_epi8((char)((int32_t)w->lo + w->zc)),
        .hi = _mm512_set1_epi8((char)((int32_t)w->hi + w->zc)),
        .flip_a = _mm512_set1_epi8((char)w->flip_a),
        .flip_b = _mm512_set1_epi8((char)w->flip_b),
        .flip_c = _mm512_set1_epi8((char)w->flip_c),
    };
}

/* True where a needs no flip, and c neither flip nor clamp. */
static bool is_plain(const qk_u8_pair *w) {
    return !w->flip_a && !w->flip_c && (int32_t)w->lo + w->zc <= 0 && (int32_t)w->hi + w->zc >= 255;
}

/* Adds zp, the negated zero point, to 64 bytes: v[i] has byte i of every four. */
INLINE void terms(__m512i x, __m512i zp, __m512i *v) {
#pragma GCC unroll 16
    for (int i = 0; i < 4; i++)
        v[i] = _mm512_dpbusd_epi32(zp, x, _mm512_set1_epi32(1 << 8 * i));
}

#define FLOAT(v) _mm512_cvtepi32_ps(v)

/* A sum or a product of terms. The product is exact as an integer, too: one conversion, not two. */
INLINE __m512 value(__m512i a, __m512i b, const binary *k, bool mul) {
    return mul ? _mm512_mul_ps(FLOAT(_mm512_mullo_epi32(a, b)), k->ma)
               : _mm512_add_ps(_mm512_mul_ps(k->ma, FLOAT(a)), _mm512_mul_ps(k->mb, FLOAT(b)));
}

/* Keeps gcc from mixing the steps of several results, which costs sums 6 %. */
#define IN_TURN(v) __asm__ volatile("" : "+v"(v))

INLINE __m512i binary_64(__m512i x, __m512i z, const binary *w, bool mul, bool plain) {
    const binary k = *w;
    __m512i p[4], q[4];
    __m512 v[4];
    terms(plain ? x : _mm512_xor_si512(x, k.flip_a), k.za, p);
    terms(plain ? z : _mm512_xor_si512(z, k.flip_b), k.zb, q);
#pragma GCC unroll 16
    for (size_t i = 0; i < 4; i++) {
        IN_TURN(p[i]);
        IN_TURN(q[i]);
        v[i] = value(p[i], q[i], &k, mul);
        IN_TURN(v[i]);
    }
    const __m512i order = _mm512_set4_epi32(0x0f0b0703, 0x0e0a0602, 0x0d090501, 0x0c080400);
    __m512i y = _mm512_shuffle_epi8(pack(v, k.zc), order);
    if (plain)
        return y;
    y = _mm512_max_epu8(y, k.lo);
    return _mm512_xor_si512(_mm512_min_epu8(y, k.hi), k.flip_c);
}

INLINE void binaries(const uint8_t *a, size_t sa, const uint8_t *b, size_t sb, uint8_t *c, size_t n,
                     const qk_u8_pair *w, bool mul, bool plain) {
    const binary k = load_binary(w);
    const __m512i a0 = _mm512_set1_epi8((char)*a), b0 = _mm512_set1_epi8((char)*b);
    size_t i = 0;
    for (; i + 64 <= n; i += 64) {
        __m512i x = sa ? _mm512_loadu_si512(a + i) : a0;
        __m512i z = sb ? _mm512_loadu_si512(b + i) : b0;
        _mm512_storeu_si512(c + i, binary_64(x, z, &k, mul, plain));
    }
    if (i < n) {
        __mmask64 m = left(n - i);
        __m512i x = sa ? _mm512_maskz_loadu_epi8(m, a + i) : a0;
        __m512i z = sb ? _mm512_maskz_loadu_epi8(m, b + i) : b0;
        _mm512_mask_storeu_epi8(c + i, m, binary_64(x, z, &k, mul, plain));
    }
}

TARGET static void add_avx512(const uint8_t *a, size_t sa, const uint8_t *b, size_t sb, uint8_t *c,
                              size_t n, const qk_u8_pair *w) {
    if (fits_int32(w, false) && n && sa && sb && is_plain(w) && !w->flip_b)
        binaries(a, 1, b, 1, c, n, w, false, true); /* the usual case of residual connections */
    else if (fits_int32(w, false) && n)
        binaries(a, sa, b, sb, c, n, w, false, false);
    else
        qk_u8_avx2.add(a, sa, b, sb, c, n, w);
}

TARGET static void mul_avx512(const uint8_t *a, size_t sa, const uint8_t *b, size_t sb, uint8_t *c,
                              size_t n, const qk_u8_pair *w) {
    if (fits_int32(w, true) && n)
        binaries(a, sa, b, sb, c, n, w, true, false);
    else
        qk_u8_avx2.mul(a, sa, b, sb, c, n, w);
}

/* Factors are converted once for all rows: products of two terms are exact as floats, too. */
INLINE __m512i scale_64(__m512i x, const float *factors, const binary *w) {
    const __m512i order = _mm512_set4_epi32(0x0f0b0703, 0x0e0a0602, 0x0d090501, 0x0c080400);
    const binary k = *w;
    __m512i p[4];
    __m512 v[4];
    terms(x, k.za, p);
#pragma GCC unroll 16
    for (size_t i = 0; i < 4; i++)
        v[i] = _mm512_mul_ps(_mm512_mul_ps(FLOAT(p[i]), _mm512_load_ps(factors + 16 * i)), k.ma);
    return _mm512_shuffle_epi8(pack(v, k.zc), order);
}

TARGET static void scale_avx512(const uint8_t *restrict a, const uint8_t *restrict b, size_t m,
                                uint8_t *restrict c, size_t n, const qk_u8_pair *w) {
    _Alignas(64) float factors[QK_SCALE_MOST];
    assert(m > 0 && m % 64 == 0 && m <= QK_SCALE_MOST);
    if (!fits_int32(w, true) || !is_plain(w)) {
        for (size_t i = 0; i < n; i += m)
            mul_avx512(a + i, 1, b, 1, c + i, n - i < m ? n - i : m, w);
        return;
    }
    const binary k = load_binary(w);
    for (size_t i = 0; i < m; i += 64) {
        __m512i q[4];
        terms(_mm512_xor_si512(_mm512_loadu_si512(b + i), k.flip_b), k.zb, q);
#pragma GCC unroll 16
        for (size_t j = 0; j < 4; j++)
            _mm512_store_ps(factors + i + 16 * j, FLOAT(q[j]));
    }
    size_t at = 0, i = 0;
    for (; i + 64 <= n; i += 64) {
        _mm512_storeu_si512(c + i, scale_64(_mm512_loadu_si512(a + i), factors + at, &k));
        at = at + 64 < m ? at + 64 : 0;
    }
    if (i < n) {
        const __mmask64 rest = left(n - i);
        const __m512i x = _mm512_maskz_loadu_epi8(rest, a + i);
        _mm512_mask_storeu_epi8(c + i, rest, scale_64(x, factors + at, &k));
    }
}

/* ---- two lines for each channel ---- */

/* Results of the 16 channels from c on that the mask has, before they are rounded. */
INLINE __m512 piecewise_16(const qk_piecewise *w, const uint8_t *x, size_t c, __mmask16 m) {
    const __m512i bytes = _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(m, x + c));
    const __m512i i = _mm512_sub_epi32(bytes, _mm512_set1_epi32(w->zx));
    const __mmask16 below = m & _mm512_movepi32_mask(i);
    const __m512 d = FLOAT(i), above = _mm512_maskz_loadu_ps(m, w->above + c);
    const __m512 slope = _mm512_mask_loadu_ps(above, below, w->below + c);
    return _mm512_add_ps(_mm512_mul_ps(d, slope), _mm512_maskz_loadu_ps(m, w->offset + c));
}

/* The n channels from c on, at most 64. */
INLINE __m512i piecewise_64(const qk_piecewise *w, const uint8_t *x, size_t c, size_t n) {
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const int32_t lo = (int32_t)w->lo + w->zy, hi = (int32_t)w->hi + w->zy;
    const __mmask64 m = left(n);
    __m512 v[4];
#pragma GCC unroll 16
    for (size_t k = 0; k < 4; k++)
        v[k] = piecewise_16(w, x, c + 16 * k, (__mmask16)(m >> 16 * k));
    const __m512i packed = pack(v, _mm512_set1_epi16((int16_t)w->zy));
    const __m512i y = _mm512_permutexvar_epi32(order, packed);
    return _mm512_min_epu8(_mm512_max_epu8(y, _mm512_set1_epi8((char)lo)),
                           _mm512_set1_epi8((char)hi));
}

TARGET static void piecewise_avx512(const qk_piecewise *w, const uint8_t *x, uint8_t *y, size_t n,
                                    size_t rows) {
    const qk_piecewise k = *w;
    for (size_t r = 0; r < rows; r++, x += n, y += n) {
        size_t c = 0;
        for (; c + 64 <= n; c += 64)
            _mm512_storeu_si512(y + c, piecewise_64(&k, x, c, 64));
        if (c < n)
            _mm512_mask_storeu_epi8(y + c, left(n - c), piecewise_64(&k, x, c, n - c));
    }
}

/* ---- quantization ---- */

/*
 * x / scale, rounded as division rounds: with r the reciprocal, rounded to nearest, x * r corrected
 * once is one of the two floats around the quotient, and corrected twice (the remainder of such a
 * float is exact) the nearer one. A third of the time that the divider takes.
 */
typedef struct division {
    __m512 least, most, less, more, middle, scale, r;
    __m512i zp, flip;
} division;

INLINE division load_division(const qk_bracket *b, float scale, int32_t zp, uint8_t flip) {
    return (division){
        .least = _mm512_set1_ps(b->least),
        .most = _mm512_set1_ps(b->most),
        .less = _mm512_set1_ps(b->less),
        .more = _mm512_set1_ps(b->more),
        .middle = _mm512_set1_ps(b->middle),
        .scale = _mm512_set1_ps(scale),
        .r = _mm512_set1_ps(1.0f / scale),
        .zp = _mm512_set1_epi16((int16_t)zp),
        .flip = _mm512_set1_epi8((char)flip),
    };
}

/* The first step leaves no NaN; floats above 0 are ordered as their bits are. */
INLINE __m512 between(__m512 x, const division *d) {
    const __m512i v = _mm512_castps_si512(_mm512_max_ps(x, d->least));
    return _mm512_castsi512_ps(_mm512_min_epi32(v, _mm512_castps_si512(d->most)));
}

/* Writes 64 results; false if one of them is near the middle of two integers. */
INLINE bool quantize_plain(const __m512 *x, const division *d, uint8_t *y, bool within) {
    __m512i differ = _mm512_setzero_si512();
#pragma GCC unroll 16
    for (size_t k = 0; k < 4; k++) {
        const __m512 v = within ? _mm512_max_ps(x[k], d->least) : between(x[k], d);
        const __m512i a = _mm512_castps_si512(_mm512_fmadd_ps(v, d->less, d->middle));
        const __m512i b = _mm512_castps_si512(_mm512_fmadd_ps(v, d->more, d->middle));
        differ = _mm512_ternarylogic_epi32(differ, a, b, 0xf6); /* differ | (a ^ b) */
        _mm512_mask_cvtepi32_storeu_epi8(y + 16 * k, 0xffff, a);
    }
    return _mm512_test_epi32_mask(differ, differ) == 0;
}

INLINE __m512 divide(__m512 x, const division *d) {
    const __m512 v = between(x, d);
    __m512 q = _mm512_mul_ps(v, d->r);
    q = _mm512_fmadd_ps(_mm512_fnmadd_ps(q, d->scale, v), d->r, q);
    return _mm512_fmadd_ps(_mm512_fnmadd_ps(q, d->scale, v), d->r, q);
}

INLINE __m512i quantize_64(const __m512 *x, const division *d) {
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m512 v[4];
#pragma GCC unroll 16
    for (size_t k = 0; k < 4; k++)
        v[k] = divide(x[k], d);
    return _mm512_xor_si512(_mm512_permutexvar_epi32(order, pack(v, d->zp)), d->flip);
}

INLINE void quantize_any(const float *x, size_t n, float scale, int32_t zp, uint8_t flip,
                         uint8_t *y, bool within) {
    qk_bracket b;
    if (!qk_bracket_of(&b, scale, zp, flip)) {
        qk_u8_avx2.quantize(x, n, scale, zp, flip, y);
        return;
    }
    const division d = load_division(&b, scale, zp, flip);
    __m512 v[4];
    size_t i = 0;
    for (; i + 64 <= n; i += 64) {
#pragma GCC unroll 16
        for (size_t k = 0; k < 4; k++)
            v[k] = _mm512_loadu_ps(x + i + 16 * k);
        if (!quantize_plain(v, &d, y + i, within))
            _mm512_storeu_si512(y + i, quantize_64(v, &d));
    }
    if (i < n) {
        __mmask64 m = left(n - i);
#pragma GCC unroll 16
        for (size_t k = 0; k < 4; k++)
            v[k] = _mm512_maskz_loadu_ps((__mmask16)(m >> 16 * k), x + i + 16 * k);
        _mm512_mask_storeu_epi8(y + i, m, quantize_64(v, &d));
    }
}

TARGET static void quantize_avx512(const float *x, size_t n, float scale, int32_t zp, uint8_t flip,
                                   uint8_t *y) {
    quantize_any(x, n, scale, zp, flip, y, false);
}

TARGET static void quantize_within_avx512(const float *x, size_t n, float scale, int32_t zp,
                                          uint8_t flip, uint8_t *y) {
    quantize_any(x, n, scale, zp, flip, y, true);
}

TARGET static void dequantize_avx512(const uint8_t *x, size_t n, float scale, int32_t zp,
                                     uint8_t flip, float *y) {
    const __m512i flips = _mm512_set1_epi32(flip), zero = _mm512_set1_epi32(zp);
    const __m512 factor = _mm512_set1_ps(scale);
    for (size_t i = 0; i < n; i += 16) {
        const __mmask16 m = (__mmask16)left(n - i);
        const __m128i bytes = n - i >= 16 ? _mm_loadu_si128((const __m128i *)(const void *)(x + i))
                                          : _mm_maskz_loadu_epi8(m, x + i);
        __m512i v = _mm512_xor_si512(_mm512_cvtepu8_epi32(bytes), flips);
        v = _mm512_sub_epi32(v, zero);
        const __m512 out = _mm512_mul_ps(_mm512_cvtepi32_ps(v), factor);
        if (n - i >= 16)
            _mm512_storeu_ps(y + i, out);
        else
            _mm512_mask_storeu_ps(y + i, m, out);
    }
}

const qk_u8 qk_u8_avx512 = {.add = add_avx512,
                            .mul = mul_avx512,
                            .scale = scale_avx512,
                            .piecewise = piecewise_avx512,
                            .table = table_avx512,
                            .shuffle = shuffle_avx512,
                            .shuffle32 = qk_shuffle32_avx2,
                            .interleave = qk_interleave_avx2,
                            .lookup = lookup_avx512,
                            .quantize = quantize_avx512,
                            .quantize_within = quantize_within_avx512,
                            .dequantize = dequantize_avx512,
                            .transpose8 = qk_transpose8_avx2,
                            .transpose32 = qk_transpose32_avx2};
#endif
