/* SPDX-License-Identifier: MIT */
/*
 * Integer kernels in 256-bit vectors: the template of i8_avx2.c and i8_avxvnni.c. Before including
 * it, define
 *
 *   TARGET              the target attribute
 *   TABLE               name of the table that is defined here
 *   LOAD_B(v)           declares what DOT wants of 8 columns at b + 32 * v: without OWN_PRODUCT
 * w<v> LOAD_A(r)           and of the dword at p<r> + i, in all lanes DOT(r, v) accumulates into
 * a<r>_<v> OWN_PRODUCT         or nothing: gemm_u8s8 is defined behind it dot(acc, x, w) function:
 * dwords of 4 u8 x dwords of 4 s8, added up W_GROUP, window_dot as i8_window.h wants them
 */
#include <immintrin.h>

#include "kernel/i8.h"
#include "kernel/i8_post.h"

#define W_LANES 2
#define INLINE  TARGET static inline __attribute__((always_inline))

INLINE __m256i load(const void *p) {
    return _mm256_loadu_si256(p);
}

INLINE __m128i load_half(const void *p) {
    return _mm_loadu_si128(p);
}

INLINE __m256i broadcast(const uint8_t *p) {
    int32_t dword;
    memcpy(&dword, p, 4);
    return _mm256_set1_epi32(dword);
}

/* Defined by the including file, after this point. */
INLINE __m256i dot(__m256i acc, __m256i x, __m256i w);

/* ---- requantization ---- */

typedef struct epilogue {
    __m256i zp, lo, hi;
    __m256 low, high;
    bool clamp;
    bool limits; /* lo and hi are not those of a byte */
} epilogue;

typedef struct sink {
    uint8_t *out;
    ptrdiff_t stride;
    const float *mult;
    const int32_t *init; /* of the tile's rows, or NULL */
    int32_t cols, rows;
    epilogue e;
    const float *scale, *add; /* qk_out_i8's */
} sink;

INLINE epilogue epilogue_of(const qk_out_i8 *o) {
    return (epilogue){_mm256_set1_epi16((short)o->zp),
                      _mm256_set1_epi8((char)o->lo),
                      _mm256_set1_epi8((char)o->hi),
                      _mm256_set1_ps(o->scale ? o->low : (float)(o->lo - o->zp)),
                      _mm256_set1_ps(o->scale ? o->high : (float)(o->hi - o->zp)),
                      o->clamp,
                      o->lo > 0 || o->hi < 255};
}

INLINE __m256i scale(__m256i acc, __m256 m, const epilogue *e) {
    __m256 v = _mm256_mul_ps(_mm256_cvtepi32_ps(acc), m);
    if (e->clamp)
        v = _mm256_min_ps(_mm256_max_ps(v, e->low), e->high);
    return _mm256_cvtps_epi32(v);
}

INLINE __m256i narrow(__m256i a, __m256i b, const epilogue *e) {
    return _mm256_adds_epi16(_mm256_packs_epi32(a, b), e->zp);
}

INLINE __m256i narrow_u8(__m256i a, __m256i b, const epilogue *e) {
    __m256i y = _mm256_packus_epi16(a, b);
    if (__builtin_expect(e->limits, false))
        y = _mm256_min_epu8(_mm256_max_epu8(y, e->lo), e->hi);
    return y;
}

/* The first n of 16 bytes. */
INLINE void store_first(uint8_t *out, __m128i y, int32_t n) {
    if (n >= 16) {
        _mm_storeu_si128((__m128i *)(void *)out, y);
        return;
    }
    if (n & 8) {
        _mm_storel_epi64((__m128i *)(void *)out, y);
        y = _mm_unpackhi_epi64(y, y);
        out += 8;
    }
    uint64_t left = (uint64_t)_mm_cvtsi128_si64(y);
    if (n & 4) {
        memcpy(out, &left, 4);
        left >>= 32;
        out += 4;
    }
    for (n &= 3; n > 0; n--, left >>= 8)
        *out++ = (uint8_t)left;
}

INLINE void store_i32(uint8_t *out, __m256i a, __m256i b, int32_t n) {
    const __m256i row[2] = {_mm256_permute2x128_si256(a, b, 0x20),
                            _mm256_permute2x128_si256(a, b, 0x31)};
    memcpy(out, row, 4 * (size_t)n);
}

/* Sums as they are stored. */
INLINE __m256i as_floats(const sink *s, __m256i acc, int32_t column) {
    const __m256 scaled =
        _mm256_mul_ps(_mm256_cvtepi32_ps(acc), _mm256_loadu_ps(s->scale + column));
    const __m256 v = _mm256_add_ps(scaled, _mm256_loadu_ps(s->add + column));
    return _mm256_castps_si256(_mm256_min_ps(s->e.high, _mm256_max_ps(s->e.low, v)));
}

/* In each lane eight columns of the first row and then those of the second. */
INLINE __m256i two_rows(const epilogue *e, const float *mult, __m256i a0, __m256i b0, __m256i a1,
                        __m256i b1) {
    const __m256 m = _mm256_loadu_ps(mult), n = _mm256_loadu_ps(mult + 8);
    return narrow_u8(narrow(scale(a0, m, e), scale(b0, n, e), e),
                     narrow(scale(a1, m, e), scale(b1, n, e), e), e);
}

/* Two rows of 16 columns, or one. */
INLINE void finish(const sink *s, int32_t r, __m256i a0, __m256i b0, __m256i a1, __m256i b1) {
    uint8_t *const out = s->out + r * s->stride, *const next = out + s->stride;
    const int32_t n = s->cols;
    const bool both = r + 1 < s->rows;
    if (!s->mult) {
        if (s->scale) {
            a0 = as_floats(s, a0, 0);
            b0 = as_floats(s, b0, 8);
            a1 = as_floats(s, a1, 0);
            b1 = as_floats(s, b1, 8);
        }
        store_i32(out, a0, b0, n);
        if (both)
            store_i32(next, a1, b1, n);
        return;
    }
    const __m256i y = _mm256_permute4x64_epi64(two_rows(&s->e, s->mult, a0, b0, a1, b1), 0xd8);
    store_first(out, _mm256_castsi256_si128(y), n);
    if (both)
        store_first(next, _mm256_extracti128_si256(y, 1), n);
}

/* Any rows, by way of memory: one function for all tiles. */
TARGET __attribute__((noinline)) static void finish_any(const sink *s, const __m256i (*sums)[2]) {
    for (int32_t r = 0; r < s->rows; r += 2)
        finish(s, r, sums[r][0], sums[r][1], sums[r + 1][0], sums[r + 1][1]);
}

/* The usual case: u8 without a clamp, and 16 or 8 columns. */
INLINE bool is_plain(const sink *s) {
    return s->mult && !s->e.clamp && (s->cols & 7) == 0;
}

INLINE void finish_plain(const sink *s, const epilogue *e, int32_t r, __m256i a0, __m256i b0,
                         __m256i a1, __m256i b1) {
    const ptrdiff_t last = s->rows - 1;
    uint8_t *const out = s->out + (r < last ? r : last) * s->stride;
    uint8_t *const next = s->out + (r + 1 < last ? r + 1 : last) * s->stride;
    __m256i y = two_rows(e, s->mult, a0, b0, a1, b1);
    if (__builtin_expect(s->cols == 16, true)) {
        y = _mm256_permute4x64_epi64(y, 0xd8);
        _mm_storeu_si128((__m128i *)(void *)out, _mm256_castsi256_si128(y));
        _mm_storeu_si128((__m128i *)(void *)next, _mm256_extracti128_si256(y, 1));
    } else {
        const __m128i both = _mm256_castsi256_si128(y);
        _mm_storel_epi64((__m128i *)(void *)out, both); /* anywhere, as doubles may not lie */
        _mm_storeh_pi((__m64 *)(void *)next, _mm_castsi128_ps(both));
    }
}

/* ---- tiles of 16 columns ---- */

#define R1(F) F(0)
#define R3(F) F(0) F(1) F(2)
#define R4(F) R3(F) F(3)
#define R6(F) R4(F) F(4) F(5)

#define DECLARE(r)                                                                                 \
    __m256i a##r##_0 = load(bias), a##r##_1 = load(bias + 8);                                      \
    const uint8_t *p##r = row[r];
#define INIT(r)                                                                                    \
    a##r##_0 = _mm256_add_epi32(a##r##_0, _mm256_set1_epi32(s->init[r]));                          \
    a##r##_1 = _mm256_add_epi32(a##r##_1, _mm256_set1_epi32(s->init[r]));
#define STEP(r)                                                                                    \
    LOAD_A(r)                                                                                      \
    DOT(r, 0)                                                                                      \
    DOT(r, 1)

/*
 * What is not plain goes by way of memory. Where rows may be missing (ROWS is not a constant) the
 * last one is stored in their place, too.
 */
#define PLAIN(r, q) finish_plain(&to, &e, r, a##r##_0, a##r##_1, a##q##_0, a##q##_1);
#define PLAIN_3     PLAIN(0, 1) PLAIN(2, 2)
#define PLAIN_4     PLAIN(0, 1) PLAIN(2, 3)
#define PLAIN_6     PLAIN_4 PLAIN(4, 5)
#define SUMS_OF(r)  {a##r##_0, a##r##_1},
#define SUMS_3      R3(SUMS_OF) SUMS_OF(2)
#define SUMS_4      R4(SUMS_OF)
#define SUMS_6      R6(SUMS_OF)
#define FINISH(NR, ROWS)                                                                           \
    if (__builtin_expect(is_plain(s) && s->rows == (ROWS), 1)) {                                   \
        sink to = *s;                                                                              \
        to.rows = ROWS;                                                                            \
        epilogue e = s->e;                                                                         \
        e.clamp = false;                                                                           \
        PLAIN_##NR                                                                                 \
    } else {                                                                                       \
        const __m256i all[][2] = {SUMS_##NR};                                                      \
        finish_any(s, all);                                                                        \
    }

/* w0 and w1 are kept to the end: gcc would otherwise move sums into their registers and back. */
#define TILE(NR, ROWS)                                                                             \
    TARGET __attribute__((noinline)) static void tile_##NR(                                        \
        const qk_gemm_u8s8 *g, const uint8_t *const *row, const sink *s) {                         \
        const int8_t *b = g->b;                                                                    \
        const int32_t *bias = g->o.bias;                                                           \
        R##NR(DECLARE) if (__builtin_expect(s->init != NULL, 0)) {                                 \
            R##NR(INIT)                                                                            \
        }                                                                                          \
        for (int32_t seg = 0; seg < g->segs; seg++) {                                              \
            ptrdiff_t i = g->seg_offset ? g->seg_offset[seg] : 0;                                  \
            const ptrdiff_t end = i + 4 * (ptrdiff_t)g->k4;                                        \
            do {                                                                                   \
                LOAD_B(0) LOAD_B(1) R##NR(STEP) b += 64;                                           \
                __asm__("" : : "v"(w0), "v"(w1));                                                  \
            } while ((i += 4) < end);                                                              \
        }                                                                                          \
        FINISH(NR, ROWS)                                                                           \
    }

/* A single row: four dwords at a time, so that no sum waits for the one before. */
#define ZERO_SUM(r) __m256i a##r##_0 = _mm256_setzero_si256(), a##r##_1 = a##r##_0;
#define NEXT_DWORD(r)                                                                              \
    { LOAD_B(0) LOAD_B(1) STEP(r) b += 64; }
#define ALL(v) _mm256_add_epi32(_mm256_add_epi32(a0_##v, a1_##v), _mm256_add_epi32(a2_##v, a3_##v))
TARGET __attribute__((noinline)) static void one_row(const qk_gemm_u8s8 *g, int32_t r) {
    const sink s = {(uint8_t *)g->out + r * g->out_stride,
                    0,
                    g->o.mult,
                    NULL,
                    g->cols < 16 ? g->cols : 16,
                    1,
                    epilogue_of(&g->o),
                    g->o.scale,
                    g->o.add};
    const uint8_t *p0 = g->rows ? g->rows[r] : g->a + r * g->a_stride;
    const uint8_t *p1 = p0 + 4, *p2 = p0 + 8, *p3 = p0 + 12;
    const int8_t *b = g->b;
    const __m256i init = _mm256_set1_epi32(g->row_init ? g->row_init[r] : 0);
    R4(ZERO_SUM)
    for (int32_t seg = 0; seg < g->segs; seg++) {
        ptrdiff_t i = g->seg_offset ? g->seg_offset[seg] : 0;
        const ptrdiff_t end = i + 4 * (ptrdiff_t)g->k4;
        for (; end - i >= 16; i += 16) {
            R4(NEXT_DWORD)
        }
        for (; i < end; i += 4)
            NEXT_DWORD(0)
    }
    a0_0 = _mm256_add_epi32(_mm256_add_epi32(ALL(0), init), load(g->o.bias));
    a0_1 = _mm256_add_epi32(_mm256_add_epi32(ALL(1), init), load(g->o.bias + 8));
    finish(&s, 0, a0_0, a0_1, a0_0, a0_1);
}

/* ---- sums of rows ---- */

TARGET static void row_sums_u8(const qk_gemm_u8s8 *g, int32_t k, int32_t factor, int32_t *out) {
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

/* ---- depthwise: 32 channels, four taps at a time ---- */

INLINE void store_channels(const sink *s, __m256i y) {
    uint8_t row[32];
    if (s->cols == 32) {
        _mm256_storeu_si256((__m256i *)(void *)s->out, y);
        return;
    }
    _mm256_storeu_si256((__m256i *)(void *)row, y);
    memcpy(s->out, row, (size_t)s->cols);
}

/* Vector v, lane l, element e holds channel 16 * l + 4 * v + e. */
INLINE void finish_channels(const sink *s, __m256i a0, __m256i a1, __m256i a2, __m256i a3) {
    if (!s->mult) {
        int32_t row[32];
        if (s->scale) {
            a0 = as_floats(s, a0, 0);
            a1 = as_floats(s, a1, 8);
            a2 = as_floats(s, a2, 16);
            a3 = as_floats(s, a3, 24);
        }
        __m256i v[4] = {
            _mm256_permute2x128_si256(a0, a1, 0x20), _mm256_permute2x128_si256(a2, a3, 0x20),
            _mm256_permute2x128_si256(a0, a1, 0x31), _mm256_permute2x128_si256(a2, a3, 0x31)};
        memcpy(row, v, sizeof(row));
        memcpy(s->out, row, 4 * (size_t)s->cols);
        return;
    }
    const __m256 m0 = _mm256_loadu_ps(s->mult), m1 = _mm256_loadu_ps(s->mult + 8);
    const __m256 m2 = _mm256_loadu_ps(s->mult + 16), m3 = _mm256_loadu_ps(s->mult + 24);
    const epilogue *e = &s->e;
    store_channels(s, narrow_u8(narrow(scale(a0, m0, e), scale(a1, m1, e), e),
                                narrow(scale(a2, m2, e), scale(a3, m3, e), e), e));
}

/* last: where the taps of the last four are; the first one stands for those that are missing. */
INLINE void depthwise_pixel(const qk_depthwise_u8s8 *d, const int32_t *last, const uint8_t *a,
                            const int8_t *w, const int32_t *bias, const sink *s) {
    __m256i a0 = load(bias), a1 = load(bias + 8), a2 = load(bias + 16), a3 = load(bias + 24);
    for (int32_t t = 0; t < d->taps; t += 4, w += 128) {
        const int32_t *at = t + 4 <= d->taps ? d->tap_offset + t : last;
        __m256i t0 = load(a + at[0]), t1 = load(a + at[1]);
        __m256i t2 = load(a + at[2]), t3 = load(a + at[3]);
        __m256i lo01 = _mm256_unpacklo_epi8(t0, t1), hi01 = _mm256_unpackhi_epi8(t0, t1);
        __m256i lo23 = _mm256_unpacklo_epi8(t2, t3), hi23 = _mm256_unpackhi_epi8(t2, t3);
        a0 = dot(a0, _mm256_unpacklo_epi16(lo01, lo23), load(w));
        a1 = dot(a1, _mm256_unpackhi_epi16(lo01, lo23), load(w + 32));
        a2 = dot(a2, _mm256_unpacklo_epi16(hi01, hi23), load(w + 64));
        a3 = dot(a3, _mm256_unpackhi_epi16(hi01, hi23), load(w + 96));
    }
    finish_channels(s, a0, a1, a2, a3);
}

TARGET static void depthwise_u8s8(const qk_depthwise_u8s8 *d) {
    size_t element = d->o.mult ? 1 : 4, block_bytes = 128 * (size_t)((d->taps + 3) / 4);
    const int8_t *w = d->w;
    sink s = {NULL, 0, NULL, NULL, 0, 1, epilogue_of(&d->o), NULL, NULL};
    int32_t last[4];
    for (int32_t i = 0, t = d->taps & ~3; i < 4; i++)
        last[i] = d->tap_offset[t + i < d->taps ? t + i : 0];
    for (int32_t c = 0; c < d->channels; c += 32, w += block_bytes) {
        s.out = (uint8_t *)d->out + element * (size_t)c;
        s.mult = d->o.mult ? d->o.mult + c : NULL;
        s.scale = d->o.scale ? d->o.scale + c : NULL;
        s.add = d->o.scale ? d->o.add + c : NULL;
        s.cols = d->channels - c < 32 ? d->channels - c : 32;
        const uint8_t *a = d->a + c;
        for (int32_t r = 0; r < d->m; r++, a += d->a_stride, s.out += d->out_stride)
            depthwise_pixel(d, last, a, w, d->o.bias + c, &s);
    }
}

#include "kernel/x86/i8_window.h"

TARGET static void requantize_u8(const int32_t *acc, size_t n, float m, int32_t zp, int32_t lo,
                                 int32_t hi, uint8_t *y) {
    qk_out_i8 o = {.zp = zp, .lo = lo, .hi = hi, .clamp = true};
    epilogue e = epilogue_of(&o);
    for (size_t i = 0; i < n; i += 8) {
        int32_t sums[8] = {0};
        uint8_t bytes[32];
        size_t count = n - i < 8 ? n - i : 8;
        memcpy(sums, acc + i, 4 * count);
        __m256i v = scale(load(sums), _mm256_set1_ps(m), &e), zero = _mm256_setzero_si256();
        v = _mm256_packus_epi16(narrow(v, zero, &e), zero);
        _mm256_storeu_si256((__m256i *)(void *)bytes, v);
        memcpy(bytes + 4, bytes + 16, 4);
        memcpy(y + i, bytes, count);
    }
}

/* ---- the product ---- */

/* Segments of at most `bytes`, one behind the other; three, which are usual, without a loop. */
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

TARGET static void gather_u8(const qk_gather_u8 *g) {
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

#ifdef OWN_PRODUCT
TARGET static void gemm_u8s8(const qk_gemm_u8s8 *g);
TARGET static void gemm_panels(const qk_gemm_u8s8 *g, int32_t panels);
#else
#define TILE_ROWS 6
TILE(6, 6)
TILE(4, s->rows)

INLINE const uint8_t *source_row(const qk_gemm_u8s8 *g, ptrdiff_t r) {
    return g->rows ? g->rows[r] : g->a + r * g->a_stride;
}

INLINE void take_rows(const qk_gemm_u8s8 *g, int32_t r, int32_t count, const uint8_t **row,
                      int32_t *init) {
    for (int32_t i = 0; i < count; i++) {
        const int32_t at = r + i < g->m ? r + i : g->m - 1;
        row[i] = source_row(g, at);
        init[i] = g->row_init ? g->row_init[at] : 0;
    }
}

/* Less than a whole tile, whose missing rows are aliased to the last one. */
TARGET static void gemm_rest(const qk_gemm_u8s8 *g, int32_t r, sink *s) {
    const uint8_t *row[TILE_ROWS];
    int32_t init[TILE_ROWS];
    s->rows = g->m - r;
    s->init = g->row_init ? init : NULL;
    if (s->rows == 1) {
        one_row(g, r);
    } else if (s->rows <= 4) {
        take_rows(g, r, 4, row, init);
        tile_4(g, row, s);
    } else {
        take_rows(g, r, TILE_ROWS, row, init);
        tile_6(g, row, s);
    }
}

TARGET static void gemm_rows(const qk_gemm_u8s8 *g) {
    sink s = {g->out,    g->out_stride,      g->o.mult,  NULL,    g->cols,
              TILE_ROWS, epilogue_of(&g->o), g->o.scale, g->o.add};
    ptrdiff_t r = 0;
    for (; r + TILE_ROWS <= g->m; r += TILE_ROWS, s.out += TILE_ROWS * s.stride) {
        const uint8_t *row[TILE_ROWS];
        for (int32_t i = 0; i < TILE_ROWS; i++)
            row[i] = source_row(g, r + i);
        s.init = g->row_init ? g->row_init + r : NULL;
        tile_6(g, row, &s);
    }
    if (r < g->m)
        gemm_rest(g, (int32_t)r, &s);
}

TARGET static void gemm_u8s8(const qk_gemm_u8s8 *g) {
    if (g->gather)
        gather_u8(g->gather);
    if (g->m == 1)
        one_row(g, 0);
    else
        gemm_rows(g);
}
#endif

TARGET static void post_row(const qk_post_row_i8 *p) {
    qk_post_row(p);
}

const qk_i8 TABLE = {
    .lanes = 2,
    .widest = 16,
    .gemm = gemm_u8s8,
#ifdef OWN_PRODUCT
    .panels = gemm_panels,
    .panel_rows = INT32_MAX,
    .planes = true,
#endif
    .row_sums = row_sums_u8,
    .gather = gather_u8,
    .depthwise = depthwise_u8s8,
    .window = window_u8s8,
    .window_group = W_GROUP,
    .requantize = requantize_u8,
    .post = post_row,
};
