/* SPDX-License-Identifier: MIT */
/*
 * Totals of weights, which bound a column's sums. Every weight of a network is read here when it is
 * loaded, so the loops follow the order of memory; the order makes no difference to sums of
 * integers.
 */
#include "kernel/i8.h"

#include "base/ctx.h"
#include "kernel/transpose4.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

/* Rows of bytes that 16-bit lanes add up: 256 times 255 would still fit. */
#define ROWS 64

typedef struct axis {
    int64_t count, stride;
} axis;

static void swap_if(axis *a, axis *b) {
    axis first = *a;
    if (first.stride > b->stride) {
        *a = *b;
        *b = first;
    }
}

/* Sorts axes by stride, the least first, and merges those that continue each other. */
static void axes_of(const qk_source_i8 *s, axis a[3]) {
    a[0] = (axis){s->c, s->c > 1 ? s->sc : 0};
    a[1] = (axis){s->kw, s->kw > 1 ? s->sx : 0};
    a[2] = (axis){s->kh, s->kh > 1 ? s->sy : 0};
    swap_if(&a[0], &a[1]);
    swap_if(&a[1], &a[2]);
    swap_if(&a[0], &a[1]);
    for (int32_t i = 1; i < 3; i++)
        if (a[i].stride == a[i - 1].stride * a[i - 1].count || a[i - 1].count == 1) {
            a[i] = (axis){a[i].count * a[i - 1].count,
                          a[i - 1].count == 1 ? a[i].stride : a[i - 1].stride};
            a[i - 1] = (axis){1, 0};
        }
}

/* Totals of 16 adjacent bytes: of the even ones, and of the odd ones. */
typedef struct lanes {
    uint16_t sum[2][8], above[2][8];
} lanes;

/*
 * Adds `rows` times 16 bytes, ROWS at most: `sum` of w + 128, `above` of w - zp where it is
 * positive, both in 0…255.
 */
static void add_lanes(lanes *l, const int8_t *w, int64_t rows, int64_t stride, uint8_t flip,
                      const int8_t zp[16]) {
#ifdef QK_SHUFFLES
    qk_signed zps, v;
    qk_eight sum[2] = {{0}}, above[2] = {{0}};
    memcpy(&zps, zp, sizeof(zps));
    for (int64_t r = 0; r < rows; r++) {
        memcpy(&v, w + r * stride, sizeof(v));
        __builtin_prefetch(w + r * stride + 64);
        v = (qk_signed)((qk_sixteen)v ^ flip);
        const qk_eight all = (qk_eight)((qk_sixteen)v ^ 0x80);
        const qk_eight up = (qk_eight)(((qk_sixteen)v - (qk_sixteen)zps) & (qk_sixteen)(v > zps));
        sum[0] += all & 0xff;
        sum[1] += all >> 8;
        above[0] += up & 0xff;
        above[1] += up >> 8;
    }
    memcpy(l->sum, sum, sizeof(sum));
    memcpy(l->above, above, sizeof(above));
#else
    memset(l, 0, sizeof(*l));
    for (int64_t r = 0; r < rows; r++)
        for (int n = 0; n < 16; n++) {
            const int v = (int8_t)((uint8_t)w[r * stride + n] ^ flip);
            l->sum[n % 2][n / 2] = (uint16_t)(l->sum[n % 2][n / 2] + v + 128);
            l->above[n % 2][n / 2] =
                (uint16_t)(l->above[n % 2][n / 2] + (v > zp[n] ? v - zp[n] : 0));
        }
#endif
}

/* Adds rows of adjacent columns, a multiple of 16 of them. */
static void add_rows(const int8_t *w, axis rows, int32_t columns, uint8_t flip, const int8_t *zp,
                     int64_t *sum, int64_t *above) {
    for (int64_t r = 0; r < rows.count; r += ROWS) {
        const int64_t count = rows.count - r < ROWS ? rows.count - r : ROWS;
        for (int32_t n = 0; n < columns; n += 16) {
            lanes l;
            add_lanes(&l, w + r * rows.stride + n, count, rows.stride, flip, zp + n);
            for (int32_t i = 0; i < 16; i++) {
                sum[n + i] += l.sum[i % 2][i / 2] - count * (128 + zp[n + i]);
                above[n + i] += l.above[i % 2][i / 2];
            }
        }
    }
}

/* Adds `count` adjacent weights of one column, a multiple of 16. */
static void add_bytes(const int8_t *w, int64_t count, uint8_t flip, int8_t zp, int64_t *sum,
                      int64_t *above) {
    int64_t all = 0, up = 0;
#if defined(__x86_64__)
    /* With w and zp moved into 0…255, the part above zp is a saturated difference. */
    const __m128i flips = _mm_set1_epi8((char)(flip ^ 0x80)), none = _mm_setzero_si128(),
                  zps = _mm_set1_epi8((char)((uint8_t)zp ^ 0x80));
    __m128i sums = none, ups = none;
    for (int64_t i = 0; i < count; i += 16) {
        const __m128i v =
            _mm_xor_si128(_mm_loadu_si128((const __m128i *)(const void *)(w + i)), flips);
        __builtin_prefetch(w + i + 512);
        sums = _mm_add_epi64(sums, _mm_sad_epu8(v, none));
        ups = _mm_add_epi64(ups, _mm_sad_epu8(_mm_subs_epu8(v, zps), none));
    }
    all = _mm_cvtsi128_si64(_mm_add_epi64(sums, _mm_unpackhi_epi64(sums, sums)));
    up = _mm_cvtsi128_si64(_mm_add_epi64(ups, _mm_unpackhi_epi64(ups, ups)));
#else
    int8_t zps[16];
    memset(zps, zp, sizeof(zps));
    for (int64_t i = 0; i < count;) {
        const int64_t rows = (count - i) / 16 < ROWS ? (count - i) / 16 : ROWS;
        lanes l;
        add_lanes(&l, w + i, rows, 16, flip, zps);
        for (int32_t n = 0; n < 8; n++) {
            all += l.sum[0][n] + l.sum[1][n];
            up += l.above[0][n] + l.above[1][n];
        }
        i += 16 * rows;
    }
#endif
    *sum += all - count * (128 + zp);
    *above += up;
}

/* Adds `count` weights of one column, `stride` apart. */
static void add_run(const int8_t *w, int64_t count, int64_t stride, uint8_t flip, int32_t zp,
                    int64_t *sum, int64_t *above) {
    int64_t all = 0, up = 0, i = 0;
    if (stride == 1 && count >= 16 && zp == (int8_t)zp) {
        i = count / 16 * 16;
        add_bytes(w, i, flip, (int8_t)zp, sum, above);
    }
    for (; i < count; i++) {
        int32_t v = (int8_t)((uint8_t)w[i * stride] ^ flip) - zp;
        all += v;
        up += v > 0 ? v : 0;
    }
    *sum += all;
    *above += up;
}

static void add_column(const qk_source_i8 *s, const axis a[3], int32_t n, int32_t zp, int64_t *sum,
                       int64_t *above) {
    for (int64_t i = 0; i < a[0].count; i++)
        for (int64_t k = 0; k < a[1].count; k++)
            add_run(s->w + n * s->sn + i * a[0].stride + k * a[1].stride, a[2].count, a[2].stride,
                    s->flip, zp, sum, above);
}

void qk_i8_totals(const qk_source_i8 *s, int32_t first, int32_t count, const int32_t *zp,
                  int64_t *sum, int64_t *above) {
    int8_t zps[QK_I8_TOTALS];
    int32_t side = s->sn == 1 ? count / 16 * 16 : 0; /* columns that are added side by side */
    axis a[3];
    axes_of(s, a);
    for (int32_t n = 0; n < count; n++) {
        sum[n] = above[n] = 0;
        zps[n] = (int8_t)(zp ? zp[n] : 0);
        if (zp && zp[n] != zps[n])
            side = 0;
    }
    for (int32_t n = side; n < count; n++)
        add_column(s, a, first + n, zp ? zp[n] : 0, &sum[n], &above[n]);
    for (int64_t i = 0; i < a[0].count && side; i++)
        for (int64_t k = 0; k < a[1].count; k++)
            add_rows(s->w + first + i * a[0].stride + k * a[1].stride, a[2], side, s->flip, zps,
                     sum, above);
}

void qk_i8_column_sums(const qk_source_i8 *s, int32_t n, int32_t end, int32_t *colsum) {
    int64_t sum[QK_I8_TOTALS], above[QK_I8_TOTALS];
    for (int32_t count; n < end && !qk_i8_stopped(s); n += count) {
        count = end - n < QK_I8_TOTALS ? end - n : QK_I8_TOTALS;
        qk_i8_totals(s, n, count, NULL, sum, above);
        for (int32_t i = 0; i < count; i++)
            colsum[n + i] = (int32_t)sum[i];
    }
}
