/* SPDX-License-Identifier: MIT */
/*
 * Totals and panels of weights in any order of their axes, against one loop over the definition:
 * sizes around the blocks of the fast loops, flipped bytes, zero points, columns of ones.
 */
#include "test.h"

#include "kernel/i8.h"

#include <stdlib.h>

static uint64_t seed = 20261121;

static int32_t between(int32_t a, int32_t b) {
    return a + (int32_t)(test_random(&seed) % (uint32_t)(b - a + 1));
}

/* Strides of a tensor [n, kh, kw, c] whose axes lie in memory in any order, maybe with gaps. */
static size_t random_strides(qk_source_i8 *s) {
    int64_t counts[4] = {s->n, s->kh, s->kw, s->c}, strides[4], step = between(0, 9) ? 1 : 3;
    int32_t order[4] = {0, 1, 2, 3};
    /* Half of them as models have them: kernel columns, rows, channels, outputs. */
    const int32_t usual[4] = {2, 1, 3, 0};
    const bool any = between(0, 1);
    if (!any)
        memcpy(order, usual, sizeof(order));
    for (int32_t i = 0; i < 4 && any; i++) {
        int32_t k = between(i, 3), moved = order[i];
        order[i] = order[k];
        order[k] = moved;
    }
    for (int32_t i = 0; i < 4; i++) {
        strides[order[i]] = step;
        step *= counts[order[i]];
    }
    s->sn = strides[0];
    s->sy = strides[1];
    s->sx = strides[2];
    s->sc = strides[3];
    return (size_t)step + 1;
}

static int8_t *random_source(qk_source_i8 *s) {
    static const int32_t terms[] = {1, 2, 3, 4, 5, 16, 63, 64, 65, 127, 128, 130, 200, 4200};
    *s = (qk_source_i8){.n = between(1, 70), .kh = between(1, 3), .kw = between(1, 3)};
    if (between(0, 9) == 0)
        s->n = between(250, 520);
    s->c = terms[between(0, (int32_t)(sizeof(terms) / sizeof(*terms)) - (s->n > 70 ? 5 : 1))];
    s->flip = between(0, 1) ? 0x80 : 0;
    const bool matrix = between(0, 3) == 0; /* on the right of a product */
    if (matrix)
        s->n = between(60, 330), s->kh = s->kw = 1, s->c = 4 * between(1, 50);
    size_t bytes = random_strides(s);
    if (matrix)
        s->sn = 1, s->sc = s->n, bytes = (size_t)s->n * (size_t)s->c;
    int8_t *w = malloc(bytes);
    for (size_t i = 0; i < bytes; i++)
        w[i] = (int8_t)(between(0, 3) ? test_random(&seed) : between(0, 1) ? 0x7f : 0x80);
    s->w = w;
    return w;
}

static int32_t weight(const qk_source_i8 *s, int32_t n, int32_t y, int32_t x, int32_t c) {
    return (int8_t)((uint8_t)s->w[n * s->sn + y * s->sy + x * s->sx + c * s->sc] ^ s->flip);
}

static void check_totals(const qk_source_i8 *s) {
    int32_t first = between(0, s->n - 1), left = s->n - first, zp[QK_I8_TOTALS];
    int32_t count = between(1, left < QK_I8_TOTALS ? left : QK_I8_TOTALS);
    int64_t sum[QK_I8_TOTALS], above[QK_I8_TOTALS];
    bool some = between(0, 1);
    for (int32_t n = 0; n < QK_I8_TOTALS; n++)
        zp[n] = some ? between(-256, 255) : 0;
    qk_i8_totals(s, first, count, some ? zp : NULL, sum, above);
    for (int32_t n = 0; n < count; n++) {
        int64_t all = 0, up = 0, low = 0, high = 0, least, greatest;
        int32_t x_zp = between(0, 255);
        for (int32_t y = 0; y < s->kh; y++)
            for (int32_t x = 0; x < s->kw; x++)
                for (int32_t c = 0; c < s->c; c++) {
                    int64_t w = weight(s, first + n, y, x, c) - zp[n];
                    all += w;
                    up += w > 0 ? w : 0;
                    low += w > 0 ? -x_zp * w : (255 - x_zp) * w;
                    high += w > 0 ? (255 - x_zp) * w : -x_zp * w;
                }
        CHECK_INT(sum[n], all);
        CHECK_INT(above[n], up);
        qk_i8_bounds(sum[n], above[n], x_zp, &least, &greatest);
        CHECK_INT(least, low);
        CHECK_INT(greatest, high);
    }
}

/* Byte `j` of segment `seg` in column n of the packed matrix. */
static int32_t packed_term(const qk_source_i8 *s, const qk_form_i8 *f, bool merged, int32_t n,
                           int32_t seg, int32_t j) {
    if (n >= f->n || j >= f->k)
        return 0;
    if (n == s->n)
        return 1; /* the column of sums */
    return merged ? weight(s, n, seg, j / s->c, j % s->c)
                  : weight(s, n, seg / s->kw, seg % s->kw, j);
}

static void check_pack(const qk_i8 *t, const qk_source_i8 *s) {
    bool merged = between(0, 1), sum_column = between(0, 1);
    qk_form_i8 f;
    CHECK(qk_i8_form(t, s, merged, sum_column, &f));
    int8_t *packed = malloc(f.bytes + 64), *at = packed;
    int32_t *colsum = malloc((size_t)s->n * sizeof(*colsum)), wrong = 0;
    memset(packed, 0x55, f.bytes + 64);
    qk_i8_pack(t, s, merged, sum_column, packed, colsum);
    for (int32_t first = 0, width; first < f.n; first += width) {
        width = qk_i8_panel(t, f.n - first);
        for (int32_t seg = 0; seg < f.segs; seg++)
            for (int32_t four = 0; four < f.k4; four++)
                for (int32_t p = 0; p < 4 * width; p++) {
                    int32_t q = t->planes ? p / 64 * 64 + p % 32 * 2 + p % 64 / 32 : p;
                    int32_t n = first + qk_i8_column(t, width, q / 4);
                    wrong += *at++ != packed_term(s, &f, merged, n, seg, 4 * four + q % 4);
                }
    }
    CHECK_INT(wrong, 0);
    CHECK_INT(at - packed, f.bytes);
    for (int32_t i = 0; i < 64; i++)
        wrong += at[i] != 0x55;
    for (int32_t n = 0; n < s->n; n++) {
        int32_t sum = 0;
        for (int32_t i = 0; i < s->kh * s->kw * s->c; i++)
            sum += weight(s, n, i / s->c / s->kw, i / s->c % s->kw, i % s->c);
        wrong += colsum[n] != sum;
    }
    CHECK_INT(wrong, 0);
    free(packed);
    free(colsum);
}

/* Sums of some columns, and of none beside them. */
static void check_column_sums(const qk_source_i8 *s) {
    int32_t *sums = malloc((size_t)s->n * sizeof(*sums)), wrong = 0;
    const int32_t first = between(0, s->n), end = between(first, s->n);
    for (int32_t n = 0; n < s->n; n++)
        sums[n] = -7;
    qk_i8_column_sums(s, first, end, sums);
    for (int32_t n = 0; n < s->n; n++) {
        int32_t sum = 0;
        for (int32_t i = 0; i < s->kh * s->kw * s->c; i++)
            sum += weight(s, n, i / s->c / s->kw, i / s->c % s->kw, i % s->c);
        wrong += sums[n] != (n >= first && n < end ? sum : -7);
    }
    CHECK_INT(wrong, 0);
    free(sums);
}

static bool runs_vectors(void) {
#ifdef QK_AVX512VNNI
    return __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vbmi");
#else
    return false;
#endif
}

int main(void) {
    /* All can be packed for that have no kernel of their own for it, or a machine that runs it. */
    const qk_i8 *tables[] = {
        &qk_i8_c,
#ifdef QK_AVX2
        &qk_i8_avx2,
#endif
#ifdef QK_AVX512VNNI
        &qk_i8_avx512vnni,
#endif
#ifdef QK_AMX
        &qk_i8_amx,
#endif
    };
    for (int32_t round = 0; round < 400; round++) {
        qk_source_i8 s;
        int8_t *w = random_source(&s);
        check_totals(&s);
        check_column_sums(&s);
        qk_i8 t = *tables[(size_t)round % (sizeof(tables) / sizeof(*tables))];
        if (!runs_vectors())
            t.pack_side = NULL;
        check_pack(&t, &s);
        free(w);
    }
    return test_done();
}
