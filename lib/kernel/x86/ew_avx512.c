/* SPDX-License-Identifier: MIT */
/* Element-wise float kernels in 512-bit vectors, AVX-512. */
#include "kernel/table.h"

#ifdef QK_AVX512VNNI
#include <immintrin.h>

#include "kernel/elementary.h"
#include "kernel/x86/ew_x86.h"

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi2,popcnt")))
#define INLINE TARGET __attribute__((always_inline)) static inline
#define V      __m512
#define I      __m512i
#define W      16
#define TABLE  qk_ew_avx512

INLINE V load(const float *x) {
    return _mm512_loadu_ps(x);
}

INLINE void store(float *y, V v) {
    _mm512_storeu_ps(y, v);
}

INLINE V get_some(const float *x, size_t n) {
    return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), x);
}

INLINE void put_some(float *y, V v, size_t n) {
    _mm512_mask_storeu_ps(y, (__mmask16)((1u << n) - 1), v);
}

typedef __mmask16 nans;

INLINE nans no_nans(void) {
    return 0;
}

INLINE nans add_nans(nans a, V v) {
    return a | _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
}

INLINE bool any_nan(nans a) {
    return a != 0;
}

INLINE I no_bits(void) {
    return _mm512_setzero_si512();
}

INLINE I greater_bits(I a, V v) {
    return _mm512_max_epi32(a, _mm512_castps_si512(_mm512_abs_ps(v)));
}

INLINE V join(V x, V bound, V small, V large) {
    /* selects by the bits of -0: the sign of x, the rest of large */
    const __m512i sign = _mm512_set1_epi32(INT32_MIN);
    const __m512i l =
        _mm512_ternarylogic_epi32(sign, _mm512_castps_si512(x), _mm512_castps_si512(large), 0xca);
    const __mmask16 below = _mm512_cmp_ps_mask(_mm512_abs_ps(x), bound, _CMP_LT_OQ);
    return _mm512_mask_mov_ps(_mm512_castsi512_ps(l), below, small);
}

INLINE __mmask16 reaches(V x, V bound) {
    return _mm512_cmp_ps_mask(_mm512_abs_ps(x), bound, _CMP_GE_OQ);
}

INLINE V one_where(__mmask16 far, V x) {
    const __m512i sign = _mm512_set1_epi32(INT32_MIN);
    const __m512i one = _mm512_castps_si512(_mm512_set1_ps(1.0f)); /* (x & sign) | one */
    return _mm512_castsi512_ps(
        _mm512_mask_ternarylogic_epi32(_mm512_castps_si512(x), far, sign, one, 0xea));
}

#define QK_F                 V
#define QK_CURVE             INLINE
#define QK_NAME(name)        v_##name
#define QK_K(c)              _mm512_set1_ps(c)
#define QK_FMA(a, b, c)      _mm512_fmadd_ps(a, b, c)
#define QK_FNMA(a, b, c)     _mm512_fnmadd_ps(a, b, c)
#define QK_MIN(a, b)         _mm512_min_ps(a, b)
#define QK_MAX(a, b)         _mm512_max_ps(a, b)
#define QK_ABS(x)            _mm512_abs_ps(x)
#define QK_SCALE(p, k)       _mm512_scalef_ps(p, k - QK_K(12582912.0f + 254.0f))
#define QK_JOIN(x, b, s, l)  join(x, QK_K(b), s, l)
#define QK_FAR               __mmask16
#define QK_REACHES(x, b)     reaches(x, QK_K(b))
#define QK_ONE_WHERE(far, x) one_where(far, x)
#define QK_SCALE_WHERE(far, p, k, s)                                                               \
    _mm512_mask_scalef_ps(s, far, p, k - QK_K(12582912.0f + 254.0f))

/* ---- reads of observers ---- */

/* The first `left` of 16 lanes. */
INLINE __mmask16 lanes(size_t left) {
    return (__mmask16)(left < W ? (1u << left) - 1 : 0xffff);
}

/* A sum with 1.5 * 2^23 that is rounded down has floor(v * inverse) in its lowest bits. */
INLINE I index_of(V v, V inverse) {
    return _mm512_castps_si512(_mm512_fmadd_round_ps(v, inverse,
                                                     _mm512_set1_ps(12582912.0f + QS_SIDE),
                                                     _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC));
}

/* The words of two vectors of indices, as the halves of each lane. */
INLINE I words_of(I low, I high) {
    return _mm512_ternarylogic_epi32(_mm512_set1_epi32(0xffff), low, _mm512_slli_epi32(high, 16),
                                     0xca);
}

/* a + b; fused: by a product with 1, in units that are free while others convert and compare. */
INLINE __m512d add_to(__m512d a, __m512d b, bool fused) {
    return fused ? _mm512_fmadd_pd(b, _mm512_set1_pd(1.0), a) : _mm512_add_pd(a, b);
}

/*
 * Stores the bins of a step, `held`, and finds those of the next two vectors, without bin 0, which
 * has zeros, often most of the values. They are stored one step later: the address of a store is
 * known late, as it depends on the number of bins before it, and loads wait for it.
 */
INLINE I next_bins(V low, V high, V inverse, __mmask32 wanted, I held, uint16_t **at,
                   size_t *more) {
    const I both = words_of(index_of(low, inverse), index_of(high, inverse));
    const __mmask32 kept = _mm512_mask_cmpneq_epi16_mask(wanted, both, _mm512_set1_epi16(QS_SIDE));
    _mm512_storeu_si512(*at, held);
    *at += *more;
    *more = (size_t)__builtin_popcount(kept);
    return _mm512_maskz_compress_epi16(kept, both);
}

/* The extremes of values of no channels, and their bins if these are wanted. */
TARGET static bool read_values(qs_row_read *r, qs_waiting *w) {
    const V f = _mm512_set1_ps(r->inverse);
    V low = _mm512_set1_ps(INFINITY), high = _mm512_set1_ps(-INFINITY);
    I top = no_bits(), held = no_bits();
    qs_waiting rest = *w;
    const float *x = r->x;
    const __mmask32 wanted = r->at ? UINT32_MAX : 0;
    uint16_t none[2 * W], *at = r->at ? r->at : none;
    size_t more = 0, left = r->rows * r->channels;
    for (; left >= 2 * W; left -= 2 * W, x += 2 * W) {
        const V a = load(x), b = load(x + W);
        low = _mm512_min_ps(low, _mm512_min_ps(a, b));
        high = _mm512_max_ps(high, _mm512_max_ps(a, b));
        top = greater_bits(greater_bits(top, a), b);
        /*
         * Neighbours are of lanes far apart: both vectors may be of the same channels, whose values
         * are alike, and an increment of a counter waits for the previous one of the same counter.
         */
        const V far = _mm512_shuffle_f32x4(b, b, 0x4e);
        held = next_bins(a, far, f, wanted, held, &at, &more);
        qs_count_some(&rest, 6);
    }
    for (; left > 0; left -= left < W ? left : W, x += W) {
        const __mmask16 m = lanes(left);
        const V v = _mm512_maskz_loadu_ps(m, x);
        low = _mm512_mask_min_ps(low, m, low, v);
        high = _mm512_mask_max_ps(high, m, high, v);
        top = greater_bits(top, v);
        held = next_bins(v, _mm512_setzero_ps(), f, wanted, held, &at, &more);
    }
    _mm512_storeu_si512(at, held);
    *w = rest;
    r->found = r->at ? (size_t)(at - r->at) + more : QS_NOT_FOUND;
    r->min = _mm512_reduce_min_ps(low) + 0.0f;
    r->max = _mm512_reduce_max_ps(high) + 0.0f;
    return _mm512_reduce_max_epi32(top) < 0x7f800000;
}

TARGET static bool extremes(const float *x, size_t n, float *min, float *max, qs_waiting *w) {
    qs_row_read r = {.x = x, .rows = 1, .channels = n};
    const bool finite = read_values(&r, w);
    *min = r.min;
    *max = r.max;
    return finite;
}

/* The same as qs_bins, in another order and without bin 0. */
TARGET static size_t bins(const float *x, size_t n, float inverse, uint16_t *at, qs_waiting *w) {
    qs_row_read r = {.x = x, .rows = 1, .channels = n, .inverse = inverse, .at = at};
    (void)read_values(&r, w);
    return r.found;
}

/* What columns are read with, and what is found in them. */
typedef struct columns {
    size_t rows, channels;
    V inverse, low, high; /* extremes of all */
    __mmask32 wanted;     /* bins */
    uint16_t *at;
    qs_waiting waiting;
} columns;

/*
 * As qs_read_columns, of `vectors` times 16 channels, or up to 15 fewer: the last vector has the
 * lanes of `last`. Bins are found of two vectors at a time.
 */
INLINE __mmask8 read_columns(columns *r, const float *x, size_t vectors, __mmask16 last,
                             double *sum, float *least, float *most) {
    V low[4], high[4];
    __m512d part[8];
    I held = no_bits();
    size_t more = 0;
    __mmask8 bad = 0;
#define LANES(k) (k + 1 < vectors ? (__mmask16)0xffff : last)
#pragma GCC unroll 4 /* so that all stays in registers */
    for (size_t k = 0; k < vectors; k++) {
        low[k] = _mm512_set1_ps(INFINITY);
        high[k] = _mm512_set1_ps(-INFINITY);
        part[2 * k] = _mm512_maskz_loadu_pd((__mmask8)LANES(k), sum + k * W);
        part[2 * k + 1] = _mm512_maskz_loadu_pd((__mmask8)(LANES(k) >> 8), sum + k * W + 8);
    }
    for (size_t i = 0; i < r->rows; i++, x += r->channels) {
        V v[4];
#pragma GCC unroll 4
        for (size_t k = 0; k < vectors; k++) {
            v[k] = k + 1 < vectors ? load(x + k * W) : _mm512_maskz_loadu_ps(last, x + k * W);
            const __m512d l = _mm512_cvtps_pd(_mm512_castps512_ps256(v[k]));
            const __m512d h = _mm512_cvtps_pd(_mm512_extractf32x8_ps(v[k], 1));
            low[k] = _mm512_min_ps(low[k], v[k]); /* lanes outside of `last` are not stored */
            high[k] = _mm512_max_ps(high[k], v[k]);
            part[2 * k] = add_to(part[2 * k], l, vectors > 1);
            part[2 * k + 1] = add_to(part[2 * k + 1], h, vectors > 1);
            if (k % 2 == 1)
                held = next_bins(v[k - 1], v[k], r->inverse, r->wanted, held, &r->at, &more);
        }
        qs_count_some(&r->waiting, vectors + vectors / 2);
    }
    if (vectors > 1)
        _mm512_storeu_si512(r->at, held);
    r->at += more;
#pragma GCC unroll 4
    for (size_t k = 0; k < vectors; k++) {
        const __mmask16 m = LANES(k);
#pragma GCC unroll 2
        for (size_t j = 0; j < 2; j++) {
            const __m512d p = part[2 * k + j];
            bad |= _mm512_cmp_pd_mask(p - p, _mm512_setzero_pd(), _CMP_NEQ_UQ);
            _mm512_mask_storeu_pd(sum + k * W + 8 * j, (__mmask8)(m >> (8 * j)), p);
        }
        r->low = _mm512_mask_min_ps(r->low, m, r->low, low[k]);
        r->high = _mm512_mask_max_ps(r->high, m, r->high, high[k]);
        const V l = _mm512_maskz_loadu_ps(m, least + k * W);
        const V h = _mm512_maskz_loadu_ps(m, most + k * W);
        _mm512_mask_storeu_ps(least + k * W, m, _mm512_min_ps(l, low[k]));
        _mm512_mask_storeu_ps(most + k * W, m, _mm512_max_ps(h, high[k]));
    }
#undef LANES
    return bad;
}

TARGET static bool read_rows(qs_row_read *r, qs_waiting *w) {
    if (!r->sum)
        return read_values(r, w);
    /* Bins of all columns are found, or none. */
    const bool wanted = r->at && (r->channels + W - 1) / W % 2 == 0;
    uint16_t none[2 * W];
    columns all = {.rows = r->rows,
                   .channels = r->channels,
                   .inverse = _mm512_set1_ps(r->inverse),
                   .low = _mm512_set1_ps(INFINITY),
                   .high = _mm512_set1_ps(-INFINITY),
                   .wanted = wanted ? UINT32_MAX : 0,
                   .at = wanted ? r->at : none,
                   .waiting = *w};
    float *least = r->extreme, *most = least + r->channels;
    __mmask8 bad = 0;
    size_t c = 0;
#define COLUMNS(n)                                                                                 \
    bad |= read_columns(&all, r->x + c, n, lanes(r->channels - c - (n - 1) * W), r->sum + c,       \
                        least + c, most + c);                                                      \
    c += n * W
    while (r->channels > c + 3 * W) {
        COLUMNS(4);
    }
    if (r->channels > c + W) {
        COLUMNS(2);
    }
    if (r->channels > c) {
        COLUMNS(1);
    }
#undef COLUMNS
    *w = all.waiting;
    r->found = wanted ? (size_t)(all.at - r->at) : QS_NOT_FOUND;
    r->min = _mm512_reduce_min_ps(all.low) + 0.0f;
    r->max = _mm512_reduce_max_ps(all.high) + 0.0f;
    return !bad;
}

#include "kernel/elementary_curves.h"

/* ---- softmax: the ends of up to ROWS rows overlap ---- */

#define ROWS ((size_t)16)

INLINE V some(const float *x, size_t left) {
    return left >= W ? load(x) : get_some(x, left);
}

INLINE void put_up_to(float *y, V v, size_t left) {
    if (left >= W)
        store(y, v);
    else
        put_some(y, v, left);
}

/* The greatest element to *top; false if an element is a NaN. */
INLINE bool top_of(const float *x, size_t n, float *top) {
    V most = _mm512_set1_ps(-INFINITY);
    nans bad = no_nans();
    for (size_t i = 0; i < n; i += W) {
        const V v = n - i >= W
                        ? load(x + i)
                        : _mm512_mask_loadu_ps(most, (__mmask16)((1u << (n - i)) - 1), x + i);
        most = _mm512_max_ps(most, v);
        bad = add_nans(bad, v);
    }
    *top = _mm512_reduce_max_ps(most);
    return !any_nan(bad);
}

/* The sum of 16 lanes, 8-4-2-1. */
INLINE float fold(V sum) {
    const __m256 v8 = _mm512_castps512_ps256(sum) + _mm512_extractf32x8_ps(sum, 1);
    const __m128 v4 = _mm256_castps256_ps128(v8) + _mm256_extractf128_ps(v8, 1);
    const __m128 v2 = v4 + _mm_movehl_ps(v4, v4);
    return _mm_cvtss_f32(v2) + _mm_cvtss_f32(_mm_movehdup_ps(v2));
}

/*
 * y = exp(x - top), which only `kept` stores; returns the sum of y by the tree of ew.h, where
 * missing lanes add 0.
 */
INLINE float exps_of(const float *x, float top, float *y, size_t n, bool kept) {
    V sum = _mm512_setzero_ps();
    for (size_t i = 0; i < n; i += W) {
        const V v = v_exp(some(x + i, n - i) - _mm512_set1_ps(top));
        if (kept)
            put_up_to(y + i, v, n - i);
        const __mmask16 there = (__mmask16)(n - i >= W ? 0xffff : (1u << (n - i)) - 1);
        sum = _mm512_mask_add_ps(sum, there, sum, v);
    }
    return fold(sum);
}

/*
 * v / d as a division rounds it, at a fifth of its time: v * (1 / d) is within two units in the
 * last place, the first correction brings it within one, after which the second one rounds right
 * (Markstein). Valid where nothing underflows and d's fraction is not all ones; else by division.
 */
INLINE V quotient(V v, V d, V by) {
    const __mmask16 small = _mm512_cmp_ps_mask(v, _mm512_set1_ps(0x1p-60f), _CMP_NGE_UQ);
    if (_mm512_mask_cmp_ps_mask(small, v, _mm512_setzero_ps(), _CMP_NEQ_UQ))
        return v / d;
    V q = v * by;
    q = _mm512_fmadd_ps(_mm512_fnmadd_ps(d, q, v), by, q);
    return _mm512_fmadd_ps(_mm512_fnmadd_ps(d, q, v), by, q);
}

INLINE void divide_row(float *y, float sum, size_t n) {
    if (!(sum >= 1 && sum < 0x1p60f) || (qk_bits(sum) & 0x7fffff) == 0x7fffff) {
        qk_divide_avx2(y, sum, y, n);
        return;
    }
    const V d = _mm512_set1_ps(sum), by = _mm512_set1_ps(1 / sum);
    for (size_t i = 0; i < n; i += W)
        put_up_to(y + i, quotient(some(y + i, n - i), d, by), n - i);
}

TARGET static void softmax(const float *x, float *y, size_t n, size_t rows, bool logs) {
    float top[ROWS], sum[ROWS];
    for (size_t count; rows > 0; rows -= count, x += count * n, y += count * n) {
        bool numbers = true;
        count = rows < ROWS ? rows : ROWS;
        for (size_t r = 0; r < count; r++)
            numbers = top_of(x + r * n, n, top + r) && numbers;
        if (!numbers) {
            qk_softmax_by(&TABLE, x, y, n, count, logs);
            continue;
        }
        for (size_t r = 0; r < count; r++)
            sum[r] = exps_of(x + r * n, top[r], y + r * n, n, !logs);
        for (size_t r = 0; r < count; r++)
            if (logs)
                qk_subtract_avx2(x + r * n, top[r], (float)qk_log64((double)sum[r]), y + r * n, n);
            else
                divide_row(y + r * n, sum[r], n);
    }
}

/* ---- normalization: sums of several rows do not wait for each other's additions ---- */

#define TOGETHER ((size_t)8)

INLINE V term(V v, bool squares) {
    return squares ? _mm512_mul_ps(v, v) : v;
}

/* Trees (ew.h) of the squares of x - shift, or of x - 0; n elements of each row. */
INLINE void sums_of(const float *x, const float *shift, size_t n, bool squares, float *sum) {
    V part[TOGETHER], by[TOGETHER];
    size_t i = 0;
    for (size_t r = 0; r < TOGETHER; r++) {
        part[r] = _mm512_setzero_ps();
        by[r] = _mm512_set1_ps(shift[r]);
    }
    for (; i + W <= n; i += W)
        for (size_t r = 0; r < TOGETHER; r++)
            part[r] += term(load(x + r * n + i) - by[r], squares);
    const __mmask16 rest = (__mmask16)((1u << (n - i)) - 1);
    for (size_t r = 0; r < TOGETHER; r++) {
        const V v = term(_mm512_maskz_loadu_ps(rest, x + r * n + i) - by[r], squares);
        sum[r] = fold(_mm512_mask_add_ps(part[r], rest, part[r], v));
    }
}

INLINE void normalize_row(const float *x, V mean, V inverse, const float *scale, const float *bias,
                          float *y, size_t n) {
    size_t i = 0;
    for (; i + W <= n; i += W) {
        const V v = (load(x + i) - mean) * inverse * load(scale + i);
        store(y + i, bias ? _mm512_add_ps(v, load(bias + i)) : v);
    }
    if (i == n)
        return;
    const V v = (get_some(x + i, n - i) - mean) * inverse * get_some(scale + i, n - i);
    put_some(y + i, bias ? _mm512_add_ps(v, get_some(bias + i, n - i)) : v, n - i);
}

TARGET static void normalize_rows(const qk_norm *how, const float *x, float *y, size_t n) {
    float mean[TOGETHER] = {0}, sum[TOGETHER], inverse[TOGETHER];
    if (how->centred)
        sums_of(x, mean, n, false, sum);
    for (size_t r = 0; r < TOGETHER; r++)
        mean[r] = how->centred ? sum[r] / (float)n : 0.0f;
    sums_of(x, mean, n, true, sum);
    for (size_t r = 0; r < TOGETHER; r++)
        inverse[r] = 1.0f / sqrtf(sum[r] / (float)n + how->epsilon);
    for (size_t r = 0; r < TOGETHER; r++)
        normalize_row(x + r * n, QK_K(mean[r]), QK_K(inverse[r]), how->scale, how->bias, y + r * n,
                      n);
    if (how->mean)
        memcpy(how->mean, mean, sizeof(mean));
    if (how->inverse)
        memcpy(how->inverse, inverse, sizeof(inverse));
}

/* The rows that are left over run by the kernel of 8 lanes. */
TARGET static void normalize(const qk_norm *how, const float *x, float *y, size_t n, size_t rows) {
    qk_norm at = *how;
    for (; rows >= TOGETHER; rows -= TOGETHER, x += TOGETHER * n, y += TOGETHER * n) {
        normalize_rows(&at, x, y, n);
        at.mean = at.mean ? at.mean + TOGETHER : NULL;
        at.inverse = at.inverse ? at.inverse + TOGETHER : NULL;
    }
    qk_normalize_avx2(&at, x, y, n, rows);
}

#define NORMALIZE normalize
#include "kernel/x86/ew_vectors.h"
#endif
