/* SPDX-License-Identifier: MIT */
/*
 * INT8 kernels for AVX2: products of four rows by 16 columns, a chunk of the sums for all panels at
 * a time, and depthwise convolution (i8_dw_*.h). maddubs saturates on full-range operands, so bytes
 * are widened: the even and the odd bytes of a dword take two madd_epi16, exact, and as fast on
 * most cores.
 */
#include "kernel/table.h"

#ifdef QK_AVX2
#define TARGET  __attribute__((target("avx2,fma")))
#define TABLE   qk_i8_avx2
#define W_GROUP 2

#define LOAD_B(v)                                                                                  \
    const __m256i e##v = _mm256_cvtepi8_epi16(load_half(b + 16 * v));                              \
    const __m256i o##v = _mm256_cvtepi8_epi16(load_half(b + 32 + 16 * v));
#define LOAD_A(r)                                                                                  \
    const __m256i x##r = broadcast(p##r + i);                                                      \
    const __m256i xe##r = _mm256_and_si256(x##r, _mm256_set1_epi16(0xff));                         \
    const __m256i xo##r = _mm256_srli_epi16(x##r, 8);
#define DOT(r, v)                                                                                  \
    a##r##_##v = _mm256_add_epi32(a##r##_##v, _mm256_madd_epi16(xe##r, e##v));                     \
    a##r##_##v = _mm256_add_epi32(a##r##_##v, _mm256_madd_epi16(xo##r, o##v));                     \
    __asm__("" : "+x"(a##r##_##v));

#define OWN_PRODUCT
#include "kernel/x86/i8_ymm.h"

INLINE __m256i dot(__m256i acc, __m256i x, __m256i w) {
    __m256i even = _mm256_madd_epi16(_mm256_and_si256(x, _mm256_set1_epi16(0xff)),
                                     _mm256_srai_epi16(_mm256_slli_epi16(w, 8), 8));
    __m256i odd = _mm256_madd_epi16(_mm256_srli_epi16(x, 8), _mm256_srai_epi16(w, 8));
    return _mm256_add_epi32(acc, _mm256_add_epi32(even, odd));
}

/* Adds in place: gcc would move every other sum from register to register. */
INLINE __m256i window_dot(__m256i acc, __m256i x, __m256i w) {
    const __m256i products = _mm256_madd_epi16(x, w);
    __asm__("vpaddd %1, %0, %0" : "+x"(acc) : "x"(products));
    return acc;
}

#include "kernel/x86/i8_dw_rows_avx2.h"
#include "kernel/x86/i8_dw_window.h"

/* ---- products of several rows ---- */

/*
 * Products by pairs (Winograd's inner product, 1968): (x0 + w1) * (x1 + w0) = x0 * w0 + x1 * w1 +
 * x0 * x1 + w0 * w1. The last two terms depend on a row and on a column alone and are subtracted
 * again: half as many multiplications for twice as many additions, which can go to any port. 118
 * GMAC/s in registers, where a multiplication and an addition for each pair reach 96. Exact: no
 * factor leaves 16 bits, sums wrap as all do.
 */
#define CHUNK 512         /* dwords of a row that are widened at a time, for all panels */
#define MOST  32          /* panels at a time */
#define SWEEP (256 << 10) /* bytes of their weights, which are read again for every four rows */

typedef struct pairs {
    uint32_t even[4][CHUNK + 8], odd[4][CHUNK + 8]; /* four rows, as words */
    int32_t start[4];                               /* row_init minus each row's sum of x0 * x1 */
    __m256i columns[MOST][2];                       /* each column's sum of w0 * w1, negated */
    __m256i sums[MOST][4][2];                       /* accumulators between two chunks */
} pairs;

TARGET __attribute__((noinline)) static void column_pairs(const int8_t *b, int32_t n,
                                                          __m256i out[2]) {
    __m256i p0 = _mm256_setzero_si256(), p1 = p0;
    for (int32_t i = 0; i < n; i++, b += 64) {
        LOAD_B(0) LOAD_B(1) p0 = _mm256_sub_epi32(p0, _mm256_madd_epi16(e0, o0));
        p1 = _mm256_sub_epi32(p1, _mm256_madd_epi16(e1, o1));
    }
    out[0] = p0, out[1] = p1;
}

/* Widens dwords [first, first + n) of four rows from r on, their segments end to end. */
#define AT(i)   const uint8_t *p##i = source_row(g, r + i);
#define ZERO(i) __m256i z##i = _mm256_setzero_si256();
#define WIDEN(i)                                                                                   \
    {                                                                                              \
        const __m256i x = _mm256_and_si256(load(p##i + from), mask);                               \
        const __m256i e = _mm256_and_si256(x, low), o = _mm256_srli_epi16(x, 8);                   \
        _mm256_storeu_si256((void *)(t->even[i] + at), e);                                         \
        _mm256_storeu_si256((void *)(t->odd[i] + at), o);                                          \
        z##i = _mm256_add_epi32(z##i, _mm256_madd_epi16(e, o));                                    \
    }
INLINE const uint8_t *source_row(const qk_gemm_u8s8 *g, int32_t r) {
    r = r < g->m ? r : g->m - 1;
    return g->rows ? g->rows[r] : g->a + r * g->a_stride;
}

TARGET __attribute__((noinline)) static void widen_rows(const qk_gemm_u8s8 *g, int32_t r,
                                                        int32_t first, int32_t n, pairs *t) {
    static const int32_t masks[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    const __m256i low = _mm256_set1_epi16(0xff);
    int32_t seg = first > 0 ? first / g->k4 : 0, skip = first - seg * g->k4;
    R4(AT) R4(ZERO) for (int32_t at = 0, end; at < n; at = end, seg++, skip = 0) {
        ptrdiff_t from = (g->seg_offset ? g->seg_offset[seg] : 0) + 4 * (ptrdiff_t)skip;
        end = g->k4 - skip < n - at ? at + g->k4 - skip : n;
        for (; at < end; at += 8, from += 32) {
            const __m256i mask = load(masks + (end - at < 8 ? 8 - (end - at) : 0));
            R4(WIDEN)
        }
    }
    z0 = _mm256_hadd_epi32(_mm256_hadd_epi32(z0, z1), _mm256_hadd_epi32(z2, z3));
    const __m128i sums = _mm_add_epi32(_mm256_castsi256_si128(z0), _mm256_extracti128_si256(z0, 1));
    __m128i init = _mm_setzero_si128();
    for (int32_t i = 0; g->row_init && first == 0 && i < 4 && r + i < g->m; i++)
        t->start[i] = g->row_init[r + i];
    if (g->row_init && first == 0)
        init = _mm_loadu_si128((const void *)t->start);
    _mm_storeu_si128((void *)t->start, _mm_sub_epi32(init, sums));
}

#define FIRST(r)                                                                                   \
    const __m256i s##r = _mm256_set1_epi32(t->start[r]);                                           \
    __m256i a##r##_0 = _mm256_add_epi32(c0, s##r), a##r##_1 = _mm256_add_epi32(c1, s##r);
#define NEXT(r)                                                                                    \
    a##r##_0 = _mm256_add_epi32(sums[r][0], s##r), a##r##_1 = _mm256_add_epi32(sums[r][1], s##r);
/* Multiplies a dword of a row, even bytes at x + at, odd ones `odd` further, by 16 columns. */
#define PAIRS(at, s0, s1)                                                                          \
    "vpbroadcastd " at "(%[x]), %%ymm12\n\t"                                                       \
    "vpbroadcastd %c[odd]+" at "(%[x]), %%ymm13\n\t"                                               \
    "vpaddw %%ymm12, %%ymm10, %%ymm14\n\t"                                                         \
    "vpaddw %%ymm13, %%ymm8, %%ymm15\n\t"                                                          \
    "vpaddw %%ymm12, %%ymm11, %%ymm12\n\t"                                                         \
    "vpaddw %%ymm13, %%ymm9, %%ymm13\n\t"                                                          \
    "vpmaddwd %%ymm14, %%ymm15, %%ymm14\n\t"                                                       \
    "vpmaddwd %%ymm12, %%ymm13, %%ymm12\n\t"                                                       \
    "vpaddd %%ymm14, %[" s0 "], %[" s0 "]\n\t"                                                     \
    "vpaddd %%ymm12, %[" s1 "], %[" s1 "]\n\t"
#define OPERANDS(r) [s##r##0] "+x"(a##r##_0), [s##r##1] "+x"(a##r##_1)
#define OPERANDS_3  OPERANDS(0), OPERANDS(1), OPERANDS(2)
#define PAIRS_3                                                                                    \
    PAIRS("0", "s00", "s01")                                                                       \
    PAIRS("%c[row]", "s10", "s11") PAIRS("2*%c[row]", "s20", "s21")
#define PAIRS_4 PAIRS_3 PAIRS("3*%c[row]", "s30", "s31")
#define COLUMNS                                                                                    \
    "vpmaddwd %%ymm8, %%ymm10, %%ymm14\n\t"                                                        \
    "vpmaddwd %%ymm9, %%ymm11, %%ymm15\n\t"                                                        \
    "vpsubd %%ymm14, %[p0], %[p0]\n\t"                                                             \
    "vpsubd %%ymm15, %[p1], %[p1]\n\t"
/* The loop needs all 16 vector registers: compilers left alone spill some. */
#define PAIRS_LOOP(STEPS, ...)                                                                     \
    __asm__("1:\n\t"                                                                               \
            "vpmovsxbw (%[b]), %%ymm8\n\t"                                                         \
            "vpmovsxbw 16(%[b]), %%ymm9\n\t"                                                       \
            "vpmovsxbw 32(%[b]), %%ymm10\n\t"                                                      \
            "vpmovsxbw 48(%[b]), %%ymm11\n\t" STEPS "add $64, %[b]\n\t"                            \
            "add $4, %[x]\n\t"                                                                     \
            "cmp %[end], %[b]\n\t"                                                                 \
            "jne 1b"                                                                               \
            : __VA_ARGS__, [b] "+r"(b), [x] "+r"(x)                                                \
            : [end] "r"(end), [row] "i"(sizeof(t->even[0])), [odd] "i"(sizeof(t->even)), "m"(*t)   \
            : "cc", "memory", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",         \
              "xmm15");
#define KEEP_SUMS(r) sums[r][0] = a##r##_0, sums[r][1] = a##r##_1;

/* Adds dwords [first, first + n) of four rows by 16 columns to the results, or to `sums`. */
INLINE void pairs_tile(const pairs *t, const int8_t *b, int32_t first, int32_t n, __m256i c0,
                       __m256i c1, __m256i (*sums)[2], bool last, const sink *s) {
    const int8_t *end = b + 64 * (ptrdiff_t)n;
    const uint32_t *x = t->even[0];
    R4(FIRST)
    if (first > 0) {
        R4(NEXT)
    }
    if (n > 0) {
        PAIRS_LOOP(PAIRS_4, OPERANDS_3, OPERANDS(3))
    }
    if (last) {
        FINISH(4, 4)
    } else {
        R4(KEEP_SUMS)
    }
}

/* The same for three rows, which leave registers for the sums of w0 * w1: c0 and c1 lack them. */
#define ADD_COLUMNS(r)                                                                             \
    a##r##_0 = _mm256_add_epi32(a##r##_0, p0), a##r##_1 = _mm256_add_epi32(a##r##_1, p1);
INLINE void pairs_tile_3(const pairs *t, const int8_t *b, int32_t first, int32_t n, __m256i c0,
                         __m256i c1, __m256i (*sums)[2], bool last, const sink *s) {
    const int8_t *end = b + 64 * (ptrdiff_t)n;
    const uint32_t *x = t->even[0];
    __m256i p0 = _mm256_setzero_si256(), p1 = p0;
    R3(FIRST)
    if (first > 0) {
        R3(NEXT)
    }
    if (n > 0) {
        PAIRS_LOOP(PAIRS_3 COLUMNS, OPERANDS_3, [p0] "+x"(p0), [p1] "+x"(p1))
    }
    R3(ADD_COLUMNS)
    if (last) {
        FINISH(3, 3)
    } else {
        R3(KEEP_SUMS)
    }
}

/* Computes four rows from r on, or the last three, by `panels` panels. */
TARGET static void four_rows(const qk_gemm_u8s8 *g, int32_t r, int32_t panels, sink *s, pairs *t) {
    const int32_t depth = g->segs * g->k4, element = g->o.mult ? 1 : 4;
    s->rows = g->m - r < 4 ? g->m - r : 4;
    for (int32_t first = 0; first == 0 || first < depth; first += CHUNK) {
        const int32_t n = depth - first < CHUNK ? depth - first : CHUNK;
        const int8_t *b = g->b + 64 * (ptrdiff_t)first;
        widen_rows(g, r, first, n, t);
        s->out = (uint8_t *)g->out + r * s->stride;
        s->mult = g->o.mult;
        s->scale = g->o.scale;
        s->add = g->o.add;
        for (int32_t p = 0; p < panels; p++, b += 64 * (ptrdiff_t)depth) {
            s->cols = g->cols - 16 * p < 16 ? g->cols - 16 * p : 16;
            const __m256i c0 = load(g->o.bias + 16 * p), c1 = load(g->o.bias + 16 * p + 8);
            const bool last = first + n >= depth;
            if (s->rows == 3)
                pairs_tile_3(t, b, first, n, c0, c1, t->sums[p], last, s);
            else
                pairs_tile(t, b, first, n, _mm256_add_epi32(c0, t->columns[p][0]),
                           _mm256_add_epi32(c1, t->columns[p][1]), t->sums[p], last, s);
            s->out += 16 * element;
            if (s->mult)
                s->mult += 16;
            if (s->scale) {
                s->scale += 16;
                s->add += 16;
            }
        }
    }
}

/* Moves g to the next panel, `bytes` further. */
INLINE void next_panel(qk_gemm_u8s8 *g, int64_t bytes) {
    g->b += bytes;
    g->out = (uint8_t *)g->out + (g->o.mult ? 16 : 64);
    g->o.bias += 16;
    if (g->o.mult)
        g->o.mult += 16;
    if (g->o.scale) {
        g->o.scale += 16;
        g->o.add += 16;
    }
    g->cols -= 16;
}

/* Rows by fours; one or two remaining rows cost less one by one. */
TARGET static void gemm_panels(const qk_gemm_u8s8 *all, int32_t panels) {
    assert(qk_gemm_u8s8_valid(&TABLE, all, panels));
    const int64_t depth = all->segs * (int64_t)all->k4, bytes = 64 * depth;
    const int64_t most = SWEEP / (bytes + 1) + 1;
    const int32_t fours = all->m % 4 < 3 ? all->m - all->m % 4 : all->m;
    qk_gemm_u8s8 g = *all;
    pairs t;
    if (g.gather)
        qk_gather_u8_ymm(g.gather);
    for (int32_t count; panels > 0; panels -= count) {
        count = panels < most ? panels : (int32_t)most;
        count = count < MOST ? count : MOST;
        for (int32_t p = 0; p < count && fours > 3; p++)
            column_pairs(g.b + bytes * p, (int32_t)depth, t.columns[p]);
        sink s = {g.out, g.out_stride, g.o.mult, NULL, 0, 0, epilogue_of(&g.o), NULL, NULL};
        for (int32_t r = 0; r < fours; r += 4)
            four_rows(&g, r, count, &s, &t);
        for (int32_t p = 0; p < count; p++, next_panel(&g, bytes))
            for (int32_t r = fours; r < g.m; r++)
                one_row(&g, r);
    }
}

TARGET static void gemm_u8s8(const qk_gemm_u8s8 *g) {
    gemm_panels(g, 1);
}
#endif
