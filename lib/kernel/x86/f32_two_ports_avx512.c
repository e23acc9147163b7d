/* SPDX-License-Identifier: MIT */
/*
 * Float products in 512-bit vectors for cores with two ports for them, which need operands twice as
 * fast: tiles of 6 rows by 64 columns need fewer loads per product than tiles of 4 rows, and
 * weights from beyond the second-level cache are read in blocks, the next one prefetched during
 * one.
 *
 * A block is a range of the terms of a panel. Incomplete sums are kept in c, as floats: no rounding
 * is added, and the order of terms stays.
 */
#include <assert.h>

#include "kernel/f32.h"

#ifdef QK_AVX512VNNI
#include "kernel/x86/f32_zmm.h"

#include "kernel/f32_tile.h"

#define PANEL 64

/* Tests make all three small. */
#ifndef BLOCK_TERMS
/* Up to this many terms the end of a tile of 6 rows costs more than its products gain. */
#define FEW_TERMS 64
/* Weights that do not stay in a second-level cache beside other data: half a megabyte. */
#define FAR_FLOATS ((size_t)128 * 1024)
/* Terms of a block: 128 KB of weights. From 256 to 768 it makes no difference. */
#define BLOCK_TERMS ((size_t)512)
#endif
/* Fewer rows take as long as reading the weights takes. */
#define FEW_ROWS 6

/* All rows of a job by one block of a panel. */
typedef struct part {
    const qk_gemm_f32 *g; /* its rows; the segments and k of the block */
    size_t row;
    const float *b, *bias;
    float *c;
    bool begun, open;
    const char *next; /* cache lines to prefetch, one per turn */
    size_t lines;
    float *to; /* as in a tile */
    const ptrdiff_t *out;
} part;

typedef void (*part_fn)(const part *t);

#define RESUME(r)                                                                                  \
    ROW(r)                                                                                         \
    c##r##_0 = LOAD(o##r), c##r##_1 = LOAD(o##r + LANES);                                          \
    c##r##_2 = LOAD(o##r + 2 * LANES), c##r##_3 = LOAD(o##r + 3 * LANES);
#define LEAVE(r)                                                                                   \
    ROW(r)                                                                                         \
    STORE(o##r, c##r##_0);                                                                         \
    STORE(o##r + LANES, c##r##_1);                                                                 \
    STORE(o##r + 2 * LANES, c##r##_2);                                                             \
    STORE(o##r + 3 * LANES, c##r##_3);
#define COMPLETE(r) ROW(r) FULL(r, 0) FULL(r, 1) FULL(r, 2) FULL(r, 3)

#define OUTPUTS                                                                                    \
    const ptrdiff_t *const out = t->out;                                                           \
    float *const c = t->to;

#define PART(name, rows)                                                                           \
    TARGET static void name(const part *t) {                                                       \
        const float *b = t->b;                                                                     \
        const char *next = t->next;                                                                \
        size_t lines = t->lines;                                                                   \
        REP##rows(ZERO4) if (t->begun) {                                                           \
            OUTPUTS REP##rows(RESUME)                                                              \
        }                                                                                          \
        for (size_t s = 0; s < t->g->segs; s++) {                                                  \
            RELOAD                                                                                 \
            const qk_gemm_f32 *const g = t->g;                                                     \
            const ptrdiff_t *const row = g->row + t->row;                                          \
            const size_t k = g->k;                                                                 \
            const float *const a = g->a + g->seg[s];                                               \
            b = g->at ? t->b + g->at[s] * PANEL : b;                                               \
            size_t i = 0;                                                                          \
            REP##rows(SEGMENT) if (k == 0) continue;                                               \
            do {                                                                                   \
                if (lines > 0) {                                                                   \
                    _mm_prefetch(next, _MM_HINT_T1);                                               \
                    next += 64;                                                                    \
                    lines--;                                                                       \
                }                                                                                  \
                LOADB4 REP##rows(STEP4) b += PANEL;                                                \
            } while (++i < k);                                                                     \
        }                                                                                          \
        RELOAD OUTPUTS if (t->open) {                                                              \
            REP##rows(LEAVE)                                                                       \
        }                                                                                          \
        else {                                                                                     \
            const VEC lo = SET1(t->g->lo), hi = SET1(t->g->hi);                                    \
            BIAS4 REP##rows(COMPLETE)                                                              \
        }                                                                                          \
    }

PART(part_1, 1)
PART(part_2, 2)
PART(part_4, 4)
PART(part_5, 5)
PART(part_6, 6)

/*
 * Rows of the next tile: six, or fewer so that no tile has one or two, which would wait for the
 * whole panel. Only 1, 2, 3 and 7 rows cannot avoid such a tile.
 */
static size_t next_rows(size_t rest) {
    static const uint8_t last[] = {0, 1, 2, 2, 4, 5, 6, 5, 4, 5, 6, 6, 6, 5};
    return rest < sizeof(last) ? last[rest] : 6;
}

static void run_part(part *t) {
    static const part_fn fn[] = {NULL, part_1, part_2, NULL, part_4, part_5, part_6};
    const char *const end = t->next + 64 * t->lines;
    const qk_gemm_f32 *const g = t->g;
    const size_t rows = g->rows, share = (t->lines * 6 + rows - 1) / rows;
    ptrdiff_t line[6] = {0};
    for (size_t i = 1; i < QS_COUNT(line); i++)
        line[i] = line[i - 1] + (ptrdiff_t)g->ldc;
    t->row = 0;
    for (size_t step; t->row < rows; t->row += step, t->next += 64 * t->lines) {
        const size_t left = (size_t)(end - t->next) / 64;
        t->lines = left < share ? left : share;
        step = next_rows(rows - t->row);
        t->to = t->c + (g->out ? 0 : t->row * g->ldc);
        t->out = g->out ? g->out + t->row : line;
        fn[step](t);
    }
}

/* A block's terms: whole segments, or a piece of one from term `from` on. */
typedef struct block {
    size_t segment, segments, from, k;
} block;

/* The block after b, of `most` terms at most; b is not the last one. */
static block next_block(const qk_gemm_f32 *g, block b, size_t most) {
    const size_t pieces = (g->k + most - 1) / most;
    if (pieces > 1 && g->segs > 0) {
        const size_t piece = (g->k + pieces - 1) / pieces;
        b.from += b.k;
        if (b.from == g->k)
            b.from = 0, b.segment++;
        b.segments = 1;
        b.k = g->k - b.from < piece ? g->k - b.from : piece;
    } else {
        const size_t rest = g->segs - b.segment - b.segments, fit = g->k ? most / g->k : rest;
        b.segment += b.segments;
        b.segments = rest < fit ? rest : fit;
        b.k = g->k;
    }
    return b;
}

/* Computes a panel in blocks of `most` terms at most. `far`: prefetches the weights that follow. */
static void run_panel(const qk_gemm_f32 *g, size_t col, size_t most, bool far) {
    const size_t depth = qk_gemm_depth(g), last = (g->cols / PANEL * PANEL - col) * depth;
    const float *const panel = g->b + col * depth;
    qk_gemm_f32 job = *g;
    part t = {.g = &job, .bias = g->bias + col, .c = g->c + col, .begun = g->begun};
    for (block b = next_block(g, (block){0}, most);; b = next_block(g, b, most)) {
        const size_t terms = b.segments * b.k, after = b.segment * g->k + b.from + terms;
        const bool end = b.segment + b.segments >= g->segs && b.from + b.k >= g->k;
        job.seg = g->seg + b.segment;
        job.segs = b.segments;
        job.k = b.k;
        job.a = g->a + b.from;
        job.at = g->at ? g->at + b.segment : NULL;
        t.b = panel + (g->at ? b.from : after - terms) * PANEL;
        t.open = !end || g->open;
        size_t floats = far ? terms * PANEL : 0;
        t.next = (const char *)(panel + after * PANEL);
        if (after * PANEL >= last && g->next)
            t.next = (const char *)g->next, floats = g->next_floats;
        else if (after * PANEL >= last)
            floats = 0;
        t.lines = floats / LANES;
        run_part(&t);
        t.begun = true;
        if (end)
            return;
    }
}

TARGET void qk_gemm_f32_two_ports(const qk_gemm_f32 *g) {
    assert(qk_gemm_f32_valid(&qk_f32_two_ports, g));
    const size_t depth = qk_gemm_depth(g), terms = g->segs * g->k;
    const size_t whole = g->cols / PANEL * PANEL;
    const bool parts = g->begun || g->open;
    const bool apart = g->b_row && g->b_row != PANEL;
    if (!parts && (terms <= FEW_TERMS || g->rows < FEW_ROWS || whole == 0 || apart)) {
        qk_f32_avx512.gemm(g);
        return;
    }
    const bool far = depth * g->cols >= FAR_FLOATS;
    for (size_t col = 0; col < whole; col += PANEL)
        run_panel(g, col, far ? BLOCK_TERMS : SIZE_MAX / 2, far);
    if (whole < g->cols) {
        qk_gemm_f32 rest = *g;
        rest.b += whole * depth;
        rest.bias += whole;
        rest.cols -= whole;
        rest.c += whole;
        qk_f32_avx512.gemm(&rest);
    }
    _mm256_zeroupper();
}
#endif
