/* SPDX-License-Identifier: MIT */
/* Element-wise float kernels in 256-bit vectors, AVX2 with FMA3. */
#include "kernel/table.h"

#ifdef QK_YMM
#include <immintrin.h>

#include "kernel/elementary.h"
#include "kernel/ew_maps.h"
#include "kernel/x86/ew_x86.h"
#include "quant/observer_loops.h"

#define TARGET     __attribute__((target("avx2,fma")))
#define TARGET_F16 __attribute__((target("avx2,fma,f16c")))
#define INLINED    __attribute__((always_inline)) static inline
#define INLINE     TARGET INLINED
#define V          __m256
#define I          __m256i
#define W          8
#define TABLE      qk_ew_avx2

INLINE V load(const float *x) {
    return _mm256_loadu_ps(x);
}

INLINE void store(float *y, V v) {
    _mm256_storeu_ps(y, v);
}

INLINE __m256i first(size_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int32_t)n),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

INLINE V get_some(const float *x, size_t n) {
    return _mm256_maskload_ps(x, first(n));
}

INLINE void put_some(float *y, V v, size_t n) {
    _mm256_maskstore_ps(y, first(n), v);
}

typedef V nans;

INLINE nans no_nans(void) {
    return _mm256_setzero_ps();
}

INLINE nans add_nans(nans a, V v) {
    return _mm256_or_ps(a, _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
}

INLINE bool any_nan(nans a) {
    return _mm256_movemask_ps(a) != 0;
}

INLINE V absolute(V v) {
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), v);
}

INLINE I no_bits(void) {
    return _mm256_setzero_si256();
}

INLINE I greater_bits(I a, V v) {
    return _mm256_max_epi32(a, _mm256_castps_si256(absolute(v)));
}

/* The same as qk_scale_exp. */
INLINE V scale_exp(V p, V k) {
    const I n = _mm256_castps_si256(k), half = _mm256_srli_epi32(n, 1);
    const I a = _mm256_slli_epi32(half, 23), b = _mm256_slli_epi32(_mm256_sub_epi32(n, half), 23);
    return p * _mm256_castsi256_ps(a) * _mm256_castsi256_ps(b);
}

INLINE V join(V x, V bound, V small, V large) {
    large = _mm256_or_ps(large, _mm256_and_ps(x, _mm256_set1_ps(-0.0f)));
    return _mm256_blendv_ps(large, small, _mm256_cmp_ps(absolute(x), bound, _CMP_LT_OQ));
}

INLINE V one_where(V far, V x) {
    const V one = _mm256_or_ps(_mm256_and_ps(x, _mm256_set1_ps(-0.0f)), _mm256_set1_ps(1.0f));
    return _mm256_blendv_ps(x, one, far);
}

#define QK_F                         V
#define QK_CURVE                     INLINE
#define QK_NAME(name)                v_##name
#define QK_K(c)                      _mm256_set1_ps(c)
#define QK_FMA(a, b, c)              _mm256_fmadd_ps(a, b, c)
#define QK_FNMA(a, b, c)             _mm256_fnmadd_ps(a, b, c)
#define QK_MIN(a, b)                 _mm256_min_ps(a, b)
#define QK_MAX(a, b)                 _mm256_max_ps(a, b)
#define QK_ABS(x)                    absolute(x)
#define QK_SCALE(p, k)               scale_exp(p, k)
#define QK_JOIN(x, b, s, l)          join(x, QK_K(b), s, l)
#define QK_FAR                       V
#define QK_REACHES(x, b)             _mm256_cmp_ps(absolute(x), QK_K(b), _CMP_GE_OQ)
#define QK_ONE_WHERE(far, x)         one_where(far, x)
#define QK_SCALE_WHERE(far, p, k, s) _mm256_blendv_ps(s, scale_exp(p, k), far)

static void softmax(const float *x, float *y, size_t n, size_t rows, bool logs) {
    qk_softmax_by(&TABLE, x, y, n, rows, logs);
}

#include "kernel/elementary_curves.h"

static TARGET size_t bins(const float *x, size_t n, float inverse, uint16_t *at, qs_waiting *w) {
    qs_waiting rest = *w;
    const I zeros =
        _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(QS_SIDE));
    _Static_assert(QS_ZEROS == W, "a bin for the zeros of each lane");
    for (size_t i = 0; i < n; i += W) {
        const V v = get_some(x + i, n - i);
        const I none = _mm256_castps_si256(_mm256_cmp_ps(v, _mm256_setzero_ps(), _CMP_EQ_OQ));
        const I bin = _mm256_cvtps_epi32(_mm256_floor_ps(v * _mm256_set1_ps(inverse)));
        const I below = _mm256_blendv_epi8(bin, zeros, none);
        const I index = _mm256_add_epi32(below, _mm256_set1_epi32(QS_SIDE));
        const I narrow = _mm256_permute4x64_epi64(_mm256_packus_epi32(index, index), 0x08);
        _mm_storeu_si128((void *)(at + i), _mm256_castsi256_si128(narrow));
        qs_count_some(&rest, 1);
    }
    *w = rest;
    return n;
}

static TARGET bool extremes(const float *x, size_t n, float *min, float *max, qs_waiting *w) {
    (void)w;
    return qs_extremes(x, n, min, max);
}

static TARGET bool read_rows(qs_row_read *r, qs_waiting *w) {
    r->found = QS_NOT_FOUND;
    if (!r->sum)
        return extremes(r->x, r->rows * r->channels, &r->min, &r->max, w);
    return qs_rows(r);
}

TARGET size_t qk_add_sums_avx2(double *high, double *low, const double *x, size_t count) {
    return qs_sums_aside(high, low, x, count);
}

TARGET uint16_t qk_add_table_avx2(uint16_t *restrict into, const uint16_t *restrict from,
                                  size_t n) {
    return qs_table_sum(into, from, n);
}

#define NORMALIZE qk_normalize_avx2
#include "kernel/x86/ew_vectors.h"

/* ---- kernels that memory limits ---- */

INLINE V widen(V v) {
    return _mm256_cvtepi32_ps(_mm256_castps_si256(v));
}

/* Whole vectors, so that the compiler makes no loop for a remainder. */
#define MAPPED ((size_t)16)

TARGET QS_NOINLINE static void map_whole(qk_curve f, const float *param, const float *x, float *y,
                                         size_t n) {
    qk_map(f, param, x, y, n & ~(MAPPED - 1));
}

TARGET void qk_map_avx2(qk_curve f, const float *param, const float *x, float *y, size_t n) {
    const size_t rest = n % MAPPED, whole = n - rest;
    float last[MAPPED] = {0};
    map_whole(f, param, x, y, whole);
    if (rest == 0)
        return;
    memcpy(last, x + whole, rest * sizeof(*last));
    map_whole(f, param, last, last, MAPPED);
    memcpy(y + whole, last, rest * sizeof(*last));
}

/* NaNs become that of 0x7e00: the conversion would keep their bits. */
TARGET_F16 INLINED __m128i half_of(V v) {
    const V number = _mm256_cmp_ps(v, v, _CMP_ORD_Q);
    return _mm256_cvtps_ph(_mm256_blendv_ps(QK_K(NAN), v, number), _MM_FROUND_TO_NEAREST_INT);
}

/* As dwords. The conversion makes INT32_MIN of what is out of range; ~INT32_MIN is INT32_MAX. */
INLINE I dwords_of(V v) {
    const V number = _mm256_and_ps(v, _mm256_cmp_ps(v, v, _CMP_ORD_Q));
    const V over = _mm256_cmp_ps(v, QK_K(0x1p31f), _CMP_GE_OQ);
    return _mm256_xor_si256(_mm256_castps_si256(over), _mm256_cvttps_epi32(number));
}

INLINE __m128i halves(const uint16_t *x) {
    return _mm_loadu_si128((const void *)x);
}

INLINE V of_brains(__m128i x) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16));
}

/* Bytes have a sign where flip is 128; those of bool are at most 1. */
INLINE V of_bytes(const uint8_t *x, I most, I flip) {
    const I v = _mm256_min_epi32(most, _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)x)));
    return _mm256_cvtepi32_ps(_mm256_sub_epi32(_mm256_xor_si256(v, flip), flip));
}

/* The lowest bytes of two vectors of dwords. */
INLINE void put_bytes(uint8_t *y, I a, I b) {
    const I low = _mm256_set1_epi32(255);
    a = _mm256_packus_epi32(_mm256_and_si256(a, low), _mm256_and_si256(b, low));
    a = _mm256_permute4x64_epi64(a, 0xd8);
    a = _mm256_permute4x64_epi64(_mm256_packus_epi16(a, a), 0x08);
    _mm_storeu_si128((void *)y, _mm256_castsi256_si128(a));
}

INLINE I is_set(V v) {
    return _mm256_srli_epi32(
        _mm256_castps_si256(_mm256_cmp_ps(v, _mm256_setzero_ps(), _CMP_NEQ_UQ)), 31);
}

TARGET_F16 void qk_cast_avx2(qk_cast how, const void *vx, void *vy, size_t n) {
    const I most = _mm256_set1_epi32(how == QK_FROM_BOOL ? 1 : 255);
    const I flip = _mm256_set1_epi32(how == QK_FROM_S8 ? 128 : 0);
    const float least = how == QK_TO_U8 ? 0.0f : -128.0f;
    const V low = QK_K(least), high = QK_K(least + 255.0f);
    const float *const x = vx;
    float *const y = vy;
    const uint16_t *const x16 = vx;
    uint8_t *const bytes = vy;
#define CAST(step, statement)                                                                      \
    for (size_t i = 0; i < n; i += (step))                                                         \
        statement;                                                                                 \
    break;
#define BYTES(value) CAST(2 * W, put_bytes(bytes + i, value(load(x + i)), value(load(x + i + W))))
#define CLAMPED(v)   dwords_of(QK_MIN(high, QK_MAX(low, v)))
    switch (how) {
    case QK_FROM_HALF: CAST(W, store(y + i, _mm256_cvtph_ps(halves(x16 + i))))
    case QK_FROM_BRAIN: CAST(W, store(y + i, of_brains(halves(x16 + i))))
    case QK_FROM_S32: CAST(W, store(y + i, widen(load(x + i))))
    case QK_TO_HALF: CAST(W, _mm_storeu_si128((void *)((uint16_t *)vy + i), half_of(load(x + i))))
    case QK_TO_S32: CAST(W, store(y + i, _mm256_castsi256_ps(dwords_of(load(x + i)))))
    case QK_TO_BOOL: BYTES(is_set)
    case QK_TO_U8:
    case QK_TO_S8: BYTES(CLAMPED)
    default: CAST(W, store(y + i, of_bytes((const uint8_t *)vx + i, most, flip)))
    }
#undef CAST
#undef BYTES
#undef CLAMPED
}

/* Runs STEP(left) on each vector of n elements; only the last one may be incomplete. */
#define ALONG(STEP)                                                                                \
    {                                                                                              \
        size_t i = 0;                                                                              \
        for (; i + W <= n; i += W)                                                                 \
            STEP((size_t)W)                                                                        \
        if (i < n)                                                                                 \
            STEP(n - i)                                                                            \
    }

TARGET void qk_divide_avx2(const float *x, float d, float *y, size_t n) {
#define STEP(left) put(y + i, get(x + i, left) / QK_K(d), left);
    ALONG(STEP)
#undef STEP
}

TARGET void qk_subtract_avx2(const float *x, float a, float b, float *y, size_t n) {
#define STEP(left) put(y + i, get(x + i, left) - QK_K(a) - QK_K(b), left);
    ALONG(STEP)
#undef STEP
}

TARGET static void normalize_row(const qk_norm *how, const float *x, float shift, float factor,
                                 float *y, size_t n) {
    const float *const scale = how->scale, *const bias = how->bias;
#define STEP(left)                                                                                 \
    {                                                                                              \
        V v = (get(x + i, left) - QK_K(shift)) * QK_K(factor) * get(scale + i, left);              \
        if (bias)                                                                                  \
            v += get(bias + i, left);                                                              \
        put(y + i, v, left);                                                                       \
    }
    ALONG(STEP)
#undef STEP
}

TARGET void qk_bound_avx2(const float *a, const float *b, float lo, float hi, float *y, size_t n) {
#define BOUND(v, left)   put(y + i, QK_MIN(QK_K(hi), QK_MAX(QK_K(lo), v)), left);
#define STEP(left)       BOUND(get(a + i, left), left)
#define STEP_ADDED(left) BOUND(get(a + i, left) + get(b + i, left), left)
    if (b)
        ALONG(STEP_ADDED)
    else
        ALONG(STEP)
#undef STEP
#undef STEP_ADDED
}

TARGET void qk_muladd_avx2(const float *x, const float *f, const float *b, float lo, float hi,
                           float *y, size_t n) {
#define STEP(left)       BOUND(get(x + i, left) * get(f + i, left), left)
#define STEP_ADDED(left) BOUND(get(x + i, left) * get(f + i, left) + get(b + i, left), left)
    if (b)
        ALONG(STEP_ADDED)
    else
        ALONG(STEP)
#undef STEP
#undef STEP_ADDED
}

TARGET void qk_scale_avx2(const void *x, const qk_scale *how, float *y, size_t n) {
    const V by = QK_K(how->rows ? 1.0f : how->factor), then = QK_K(how->rows ? how->factor : 1.0f);
    const V lo = QK_K(how->lo), hi = QK_K(how->hi);
    const float *const sums = x, *const factors = how->scale, *const bias = how->bias;
#define SCALED(left) /* a product with 1 is exact */                                               \
    V v = widen(get(sums + i, left)) * (by * get(factors + i, left)) * then;
#define STEP(left)                                                                                 \
    {                                                                                              \
        SCALED(left)                                                                               \
        put(y + i, QK_MIN(hi, QK_MAX(lo, v)), left);                                               \
    }
#define STEP_BIAS(left)                                                                            \
    {                                                                                              \
        SCALED(left)                                                                               \
        v += get(bias + i, left);                                                                  \
        put(y + i, QK_MIN(hi, QK_MAX(lo, v)), left);                                               \
    }
    if (bias)
        ALONG(STEP_BIAS)
    else
        ALONG(STEP)
#undef STEP
}

/* The sum of 8 lanes, 4-2-1. */
INLINE float fold(V sum) {
    const __m128 v4 = _mm256_castps256_ps128(sum) + _mm256_extractf128_ps(sum, 1);
    const __m128 v2 = v4 + _mm_movehl_ps(v4, v4);
    return _mm_cvtss_f32(v2) + _mm_cvtss_f32(_mm_movehdup_ps(v2));
}

/*
 * Sums by the tree over 16 lanes (ew.h). A macro: as an inline function with a constant, clang 14
 * makes the last elements of a row some 5 ns slower.
 */
#define TREE(name, TERM)                                                                           \
    TARGET float name(const float *x, float shift, size_t n) {                                     \
        V low = QK_K(0.0f), high = QK_K(0.0f);                                                     \
        float part[16];                                                                            \
        size_t i = 0;                                                                              \
        (void)shift;                                                                               \
        for (; i + 16 <= n; i += 16) {                                                             \
            const V v = load(x + i), w = load(x + i + W);                                          \
            low += TERM(v, QK_K(shift));                                                           \
            high += TERM(w, QK_K(shift));                                                          \
        }                                                                                          \
        store(part, low);                                                                          \
        store(part + W, high);                                                                     \
        for (size_t k = 0; i + k < n; k++)                                                         \
            part[k] += TERM(x[i + k], shift);                                                      \
        return fold(load(part) + load(part + W));                                                  \
    }

#define ITSELF(v, shift) (v)
#define SQUARE(v, shift) (((v) - (shift)) * ((v) - (shift)))

TREE(qk_sum_avx2, ITSELF)
TREE(qk_sum_squares_avx2, SQUARE)

void qk_normalize_avx2(const qk_norm *how, const float *x, float *y, size_t n, size_t rows) {
    for (size_t r = 0; r < rows; r++, x += n, y += n) {
        const float mean = how->centred ? qk_sum_avx2(x, 0, n) / (float)n : 0.0f;
        const float variance = qk_sum_squares_avx2(x, mean, n) / (float)n;
        const float inverse = 1.0f / sqrtf(variance + how->epsilon);
        normalize_row(how, x, mean, inverse, y, n);
        if (how->mean)
            how->mean[r] = mean;
        if (how->inverse)
            how->inverse[r] = inverse;
    }
}

#endif
