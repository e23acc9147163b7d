/* SPDX-License-Identifier: MIT */
/*
 * INT8 products by tiles (AMX). A block is one or two tiles of up to 16 rows by a panel of 64 or 32
 * columns. Its sums go to memory and are converted to results among the products of the next block,
 * beside which the vector units are idle. Weights are packed as for i8_avx512vnni.c, whose kernels
 * compute products that tiles do not suit: single rows, rows at arbitrary addresses. Every core
 * with tiles has two ports for dot products of 512 bits.
 *
 * A file that includes this names its table TABLE; the kernel tests do so with emulated tiles.
 */
#include <assert.h>

#include "kernel/x86/amx_tiles.h"
#include "kernel/x86/i8_requant_avx512.h"

#define TILE_ROWS 16
/* The least number of multiplications that tiles are used for; kernel tests always use them. */
#ifndef TILES_FROM
#define TILES_FROM(m) (QK_I8_TILES_FROM / ((m) < TILE_ROWS ? 1 : 2))
#endif
#define MOST_TILES 32 /* whose addresses a tiling holds at a time */

/*
 * The division of a product's rows into tiles, the same in each line. The last tile of a line
 * begins earlier where rows are missing, and computes some of its rows twice.
 */
typedef struct tiling {
    const uint8_t *at[MOST_TILES]; /* address of a tile's first row */
    int32_t place[MOST_TILES];     /* number of that row in the product */
    int32_t rows;                  /* of each tile */
    int32_t line, per_line;        /* rows and tiles of a line */
    int32_t tiles;                 /* tiles of the product */
} tiling;

/* Sums of up to two tiles that are to be converted to results. */
typedef struct stream {
    void (*finish)(struct stream *p, int32_t rows); /* NULL: conversion is inlined */
    const int32_t *sums, *bias;
    const int32_t *init[2]; /* row_init of each tile's rows, or NULL */
    uint8_t *out[2];        /* address of each tile's results */
    int32_t here, left;     /* rows not yet converted: of the first tile, of both */
    sink s;
} stream;

/* The state of a product. */
typedef struct work {
    const qk_gemm_u8s8 *g;
    stream before;      /* sums of the block before */
    int32_t some;       /* rows of `before` that each inner step (64 bytes of k) converts */
    int32_t fetch;      /* cache lines of weights that each inner step prefetches */
    const int8_t *next; /* the next of these lines */
    int32_t *sums;      /* this block's sums: memory[0] and memory[1] in turn */
    tiling t;
    _Alignas(4096) int32_t memory[2][2 * TILE_ROWS * 64];
} work;

/* ---- sums to results ---- */

INLINE void step_rows(stream *p, int32_t rows, int32_t width) {
    p->sums += rows * width;
    p->out[0] += rows * p->s.stride;
    p->init[0] = p->init[0] ? p->init[0] + rows : NULL;
    p->left -= rows;
    p->here -= rows;
    if (p->here == 0) {
        p->here = p->left;
        p->out[0] = p->out[1];
        p->init[0] = p->init[1];
    }
}

/* Constants of a panel of 64 columns, kept in registers for all of its rows. */
typedef struct columns {
    __m512i bias0, bias1, bias2, bias3;
    __m512 mult0, mult1, mult2, mult3, add0, add1, add2, add3;
} columns;

INLINE columns columns_of(const stream *p, kind how) {
    const float *mult = how == KIND_FLOAT ? p->s.scale : p->s.mult;
    columns c = {.bias0 = _mm512_loadu_si512(p->bias),
                 .bias1 = _mm512_loadu_si512(p->bias + 16),
                 .bias2 = _mm512_loadu_si512(p->bias + 32),
                 .bias3 = _mm512_loadu_si512(p->bias + 48),
                 .mult0 = _mm512_loadu_ps(mult),
                 .mult1 = _mm512_loadu_ps(mult + 16),
                 .mult2 = _mm512_loadu_ps(mult + 32),
                 .mult3 = _mm512_loadu_ps(mult + 48)};
    if (how == KIND_FLOAT) {
        c.add0 = _mm512_loadu_ps(p->s.add);
        c.add1 = _mm512_loadu_ps(p->s.add + 16);
        c.add2 = _mm512_loadu_ps(p->s.add + 32);
        c.add3 = _mm512_loadu_ps(p->s.add + 48);
    }
    return c;
}

#define SUMS(v, bias) _mm512_add_epi32(_mm512_load_si512(p->sums + 16 * v), bias)

/* Converts the next row, of 64 columns, to bytes without a clamp or to floats. */
INLINE void finish_row(stream *p, const columns *c, kind how) {
    sink *s = &p->s;
    __m512i a = SUMS(0, c->bias0), b = SUMS(1, c->bias1);
    __m512i d = SUMS(2, c->bias2), e = SUMS(3, c->bias3);
    if (p->init[0]) {
        const __m512i init = _mm512_set1_epi32(*p->init[0]);
        a = _mm512_add_epi32(a, init), b = _mm512_add_epi32(b, init);
        d = _mm512_add_epi32(d, init), e = _mm512_add_epi32(e, init);
    }
    s->out = p->out[0];
    if (how == KIND_FLOAT) {
        store_i32_4(s, 0, as_floats(s, a, c->mult0, c->add0), as_floats(s, b, c->mult1, c->add1),
                    as_floats(s, d, c->mult2, c->add2), as_floats(s, e, c->mult3, c->add3));
    } else {
        TO_BYTES(y, s, how, a, c->mult0, b, c->mult1, d, c->mult2, e, c->mult3)
        store_u8_64(s, 0, y);
    }
    step_rows(p, 1, 64);
}

/* Converts rows of one tile, of any kind; rows of 32 columns two at a time. */
INLINE void finish_some(const stream *p, int32_t rows, kind how, int32_t width) {
    const kind rows_as = how == KIND_PLAIN ? KIND_PLAIN : KIND_ANY;
    sink s = p->s;
    const int32_t *sums = p->sums, *init = p->init[0], high = width - 32, step = 64 / width;
    const __m512i bias0 = _mm512_loadu_si512(p->bias), bias1 = _mm512_loadu_si512(p->bias + 16);
    const __m512i bias2 = _mm512_loadu_si512(p->bias + high);
    const __m512i bias3 = _mm512_loadu_si512(p->bias + high + 16);
    s.out = p->out[0];
    s.rows = step;
    for (int32_t r = 0; r < rows; r += step, sums += 64, s.out += step * s.stride) {
        __m512i a = _mm512_add_epi32(_mm512_load_si512(sums), bias0);
        __m512i b = _mm512_add_epi32(_mm512_load_si512(sums + 16), bias1);
        __m512i c = _mm512_add_epi32(_mm512_load_si512(sums + 32), bias2);
        __m512i d = _mm512_add_epi32(_mm512_load_si512(sums + 48), bias3);
        if (how == KIND_ANY && rows - r < step)
            s.rows = rows - r;
        if (init) {
            const __m512i first = _mm512_set1_epi32(init[r]);
            const __m512i second = _mm512_set1_epi32(init[r + s.rows - 1]);
            a = _mm512_add_epi32(a, first), b = _mm512_add_epi32(b, first);
            c = _mm512_add_epi32(c, second), d = _mm512_add_epi32(d, second);
        }
        if (width == 64)
            finish_64(&s, rows_as, 0, a, b, c, d);
        else
            finish_32(&s, rows_as, 0, a, b, c, d);
    }
}

INLINE void finish(stream *p, int32_t rows, kind how, int32_t width) {
    for (int32_t now; rows > 0 && p->left > 0; rows -= now) {
        now = rows < p->here ? rows : p->here;
        finish_some(p, now, how, width);
        step_rows(p, now, width);
    }
}

#define FINISH(name, width, how)                                                                   \
    TARGET static void name(stream *p, int32_t rows) {                                             \
        finish(p, rows, how, width);                                                               \
    }

FINISH(any_64, 64, KIND_ANY)
FINISH(bytes_32, 32, KIND_PLAIN)
FINISH(floats_32, 32, KIND_FLOAT)
FINISH(any_32, 32, KIND_ANY)

/* ---- a block ---- */

#define FAR 512 /* bytes; longer rows and their weights overflow the first-level cache */

#define LOAD_WEIGHTS(tile, from)                                                                   \
    if (far)                                                                                       \
        TILE_LOAD_T1(tile, from, 4 * width);                                                       \
    else                                                                                           \
        TILE_LOAD(tile, from, 4 * width);

/*
 * Multiplies tile i and, if `two`, the next one by the panel at b, half a panel at a time; then
 * converts the rest of the block before. b NULL: only the latter. Function calls among products
 * cost more than the products, so the usual kinds make none.
 */
INLINE void block(work *k, int32_t i, const int8_t *b, bool two, kind how) {
    const qk_gemm_u8s8 *g = k->g;
    const int32_t k64 = g->k4 / 16, width = how == KIND_ANY ? g->width : 64;
    const int32_t fetch = k->fetch, some = k->some;
    const ptrdiff_t stride = g->a_stride;
    const bool far = !two || 4 * g->segs * g->k4 > FAR;
    const int8_t *next = k->next;
    stream own, *p = &k->before;
    columns c;
    if (how != KIND_ANY) {
        own = k->before; /* a copy, kept in registers */
        p = &own;
        c = columns_of(p, how);
    }
    for (int32_t half = 0; b && half < width; half += 32) {
        const int8_t *w = b + 4 * half;
        TILE_ZERO(0);
        TILE_ZERO(1);
        TILE_ZERO(2);
        TILE_ZERO(3);
        for (int32_t seg = 0; seg < g->segs; seg++) {
            const ptrdiff_t offset = g->seg_offset ? g->seg_offset[seg] : 0;
            const uint8_t *p0 = k->t.at[i] + offset, *p1 = k->t.at[i + two] + offset;
            for (int32_t n = 0; n < k64; n++, p0 += 64, p1 += 64, w += 64 * width) {
                LOAD_WEIGHTS(6, w)
                LOAD_WEIGHTS(7, w + 64)
                TILE_LOAD(4, p0, stride);
                TILE_DOT(0, 4, 6);
                TILE_DOT(1, 4, 7);
                if (two) {
                    TILE_LOAD(5, p1, stride);
                    TILE_DOT(2, 5, 6);
                    TILE_DOT(3, 5, 7);
                }
                /* the vector units and far loads are idle beside products */
                for (int32_t f = fetch; f > 0; f--, next += 64)
                    _mm_prefetch((const char *)next, _MM_HINT_T1);
                if (how == KIND_ANY && p->left > 0)
                    p->finish(p, some);
                for (int32_t r = some; how != KIND_ANY && r > 0 && p->left > 0; r--)
                    finish_row(p, &c, how);
            }
        }
        int32_t *to = k->sums + half, *second = to + k->t.rows * width;
        TILE_STORE(0, to, 4 * width);
        TILE_STORE(1, to + 16, 4 * width);
        if (two) {
            TILE_STORE(2, second, 4 * width);
            TILE_STORE(3, second + 16, 4 * width);
        }
    }
    if (how == KIND_ANY)
        p->finish(p, p->left);
    while (how != KIND_ANY && p->left > 0)
        finish_row(p, &c, how);
    k->next = next;
}

TARGET QS_NOINLINE static void block_bytes(work *k, int32_t i, const int8_t *b, bool two) {
    block(k, i, b, two, KIND_PLAIN);
}

TARGET QS_NOINLINE static void block_floats(work *k, int32_t i, const int8_t *b, bool two) {
    block(k, i, b, two, KIND_FLOAT);
}

TARGET QS_NOINLINE static void block_any(work *k, int32_t i, const int8_t *b, bool two) {
    block(k, i, b, two, KIND_ANY);
}

static void run_block(work *k, int32_t i, const int8_t *b, bool two) {
    if (k->before.finish)
        block_any(k, i, b, two);
    else if (k->g->o.mult)
        block_bytes(k, i, b, two);
    else
        block_floats(k, i, b, two);
}

/* ---- the product ---- */

static tiling tiling_of(const qk_gemm_u8s8 *g) {
    tiling t;
    t.line = g->line > 0 ? g->line : g->m;
    t.per_line = (t.line + TILE_ROWS - 1) / TILE_ROWS;
    t.rows = (t.line + t.per_line - 1) / t.per_line;
    if (g->width == 32 && t.rows % 2 && t.rows < t.line) /* rows are converted in pairs */
        t.rows++;
    t.tiles = g->m / t.line * t.per_line;
    return t;
}

/* Places the tiles from `first` on, MOST_TILES at most; returns their number. */
static int32_t place_tiles(tiling *t, const qk_gemm_u8s8 *g, int32_t first) {
    const int32_t count = t->tiles - first < MOST_TILES ? t->tiles - first : MOST_TILES;
    int32_t y = first / t->per_line, x = first % t->per_line * t->rows;
    for (int32_t i = 0; i < count; i++, x += t->rows) {
        if (x >= t->line)
            x = 0, y++;
        const int32_t from = x > t->line - t->rows ? t->line - t->rows : x;
        t->at[i] = g->a + y * g->line_stride + from * g->a_stride;
        t->place[i] = y * t->line + from;
    }
    return count;
}

static void configure(int32_t rows) {
    tile_config c = {.palette = 1};
    for (int32_t i = 0; i < 8; i++) {
        c.rows[i] = (uint8_t)(i < 6 ? rows : 16);
        c.bytes[i] = 64;
    }
    TILE_CONFIG(&c);
}

/* The fields of a stream that are the same for all blocks. */
TARGET static stream stream_of(const work *k) {
    static void (*const all[3][2])(stream *, int32_t) = {
        {any_32, any_64}, {bytes_32, NULL}, {floats_32, NULL}};
    const qk_gemm_u8s8 *g = k->g;
    const bool rare = g->o.mult ? g->o.clamp : !g->o.scale, odd = g->width == 32 && k->t.rows % 2;
    return (stream){.finish = all[rare || odd ? 0
                                  : g->o.mult ? 1
                                              : 2][g->width == 64],
                    .bias = g->o.bias,
                    .s = sink_of(g)};
}

/* Sets k->before to the sums in k->sums: of tile i and, if `two`, the next one, by a panel. */
TARGET static void follow(work *k, int32_t i, bool two, int32_t panel) {
    const qk_gemm_u8s8 *g = k->g;
    const int32_t width = g->width, column = panel * width, left = g->cols - column;
    stream *p = &k->before;
    p->sums = k->sums;
    p->bias = g->o.bias + column;
    p->here = k->t.rows;
    p->left = k->t.rows << two;
    for (int32_t n = 0; n < 1 + two; n++) {
        const int32_t row = k->t.place[i + n];
        p->init[n] = g->row_init ? g->row_init + row : NULL;
        p->out[n] =
            (uint8_t *)g->out + row * g->out_stride + (ptrdiff_t)column * (g->o.mult ? 1 : 4);
    }
    p->s.cols = left < width ? left : width;
    p->s.mask = mask64(p->s.cols);
    p->s.mult = g->o.mult ? g->o.mult + column : NULL;
    p->s.scale = g->o.scale ? g->o.scale + column : NULL;
    p->s.add = g->o.scale ? g->o.add + column : NULL;
}

#define GROUP (128 << 10) /* bytes of weights that stay in the second-level cache */

/*
 * Multiplies `count` tiles by panels [first, end), which stay in the second-level cache; rows stay
 * in the first-level one. The `more` panels after them are prefetched meanwhile: in a whole network
 * no layer's weights are in a cache.
 */
TARGET static void run_group(work *k, int32_t count, int32_t first, int32_t end, int32_t more) {
    const qk_gemm_u8s8 *g = k->g;
    const int32_t width = g->width, steps = width / 32 * g->segs * (g->k4 / 16);
    const ptrdiff_t bytes = (ptrdiff_t)32 * 64 * steps;
    const int64_t turns = (int64_t)((count + 1) / 2) * (end - first);
    k->next = g->b + end * bytes;
    k->fetch = (int32_t)((32 * more + turns - 1) / turns);
    for (int32_t i = 0; i < count; i += 2)
        for (int32_t panel = first; panel < end; panel++) {
            const bool two = i + 1 < count;
            const int32_t some = (k->before.left + steps - 1) / steps;
            k->some = some + some % 2; /* in short bursts: loads of tiles go on behind them */
            run_block(k, i, g->b + panel * bytes, two);
            follow(k, i, two, panel);
            k->sums = k->sums == k->memory[0] ? k->memory[1] : k->memory[0];
        }
}

TARGET QS_NOINLINE static void by_tiles(const qk_gemm_u8s8 *g, int32_t panels) {
    work k;
    const int64_t bytes = (int64_t)4 * g->segs * g->k4 * g->width;
    const int32_t most = bytes < GROUP ? (int32_t)(GROUP / bytes) : 1;
    k.g = g;
    k.t = tiling_of(g);
    k.sums = k.memory[0];
    k.before = stream_of(&k);
    configure(k.t.rows);
    for (int32_t first = 0, count; first < k.t.tiles; first += count) {
        count = place_tiles(&k.t, g, first);
        for (int32_t panel = 0, end; panel < panels; panel = end) {
            end = panels - panel < most ? panels : panel + most;
            run_group(&k, count, panel, end, panels - end < most ? panels - end : most);
        }
        run_block(&k, 0, NULL, false);
        k.before.left = 0;
    }
    TILE_RELEASE();
    _mm256_zeroupper();
}

/* ---- the table ---- */

/* Panel by panel, by vectors: for rows at arbitrary addresses, or few rows. */
static void panels_by_vectors(const qk_gemm_u8s8 *g, int32_t panels) {
    const qk_i8 *t = &qk_i8_two_ports;
    qk_gemm_u8s8 one = *g;
    if (g->m == 1 && g->width == 64) {
        t->panels(g, panels);
        return;
    }
    for (int32_t i = 0; i < panels; i++) {
        const int32_t left = g->cols - i * g->width;
        one.cols = left < g->width ? left : g->width;
        t->gemm(&one);
        one.gather = NULL;
        one.b += 4 * (size_t)g->segs * (size_t)g->k4 * (size_t)g->width;
        one.out = (uint8_t *)one.out + (ptrdiff_t)g->width * (g->o.mult ? 1 : 4);
        one.o.bias += g->width;
        one.o.mult = one.o.mult ? one.o.mult + g->width : NULL;
        one.o.scale = one.o.scale ? one.o.scale + g->width : NULL;
        one.o.add = one.o.scale ? one.o.add + g->width : NULL;
    }
}

/* Line by line: the vector kernels know no lines. */
static void by_vectors(const qk_gemm_u8s8 *g, int32_t panels) {
    qk_gemm_u8s8 one = *g;
    one.line = 0;
    one.m = g->line > 0 ? g->line : g->m;
    for (int32_t r = 0; r < g->m; r += one.m) {
        panels_by_vectors(&one, panels);
        one.a += g->line_stride;
        one.out = (uint8_t *)one.out + one.m * g->out_stride;
        one.row_init = one.row_init ? one.row_init + one.m : NULL;
    }
}

TARGET static void panels_by_tiles(const qk_gemm_u8s8 *g, int32_t panels) {
    assert(qk_gemm_u8s8_valid(&TABLE, g, panels));
    const int64_t macs = 4 * (int64_t)g->segs * g->k4 * g->cols * g->m;
    if (g->rows || g->m < 2 || macs < TILES_FROM(g->m)) {
        by_vectors(g, panels);
        return;
    }
    if (g->gather)
        qk_i8_two_ports.gather(g->gather);
    by_tiles(g, panels);
}

static void gemm_by_tiles(const qk_gemm_u8s8 *g) {
    int32_t one = 1;
    __asm__("" : "+r"(one)); /* keeps gcc from a copy of by_tiles for one panel */
    panels_by_tiles(g, one);
}

/* Line by line: the vector kernels know no lines. */
static void row_sums(const qk_gemm_u8s8 *g, int32_t k, int32_t factor, int32_t *out) {
    qk_gemm_u8s8 one = *g;
    if (g->line > 0)
        one.m = g->line;
    one.line = 0;
    for (int32_t r = 0; r < g->m; r += one.m, one.a += g->line_stride)
        qk_i8_two_ports.row_sums(&one, k, factor, out + r);
}

static void gather(const qk_gather_u8 *g) {
    qk_i8_two_ports.gather(g);
}

static void requantize(const int32_t *acc, size_t n, float m, int32_t zp, int32_t lo, int32_t hi,
                       uint8_t *y) {
    qk_i8_two_ports.requantize(acc, n, m, zp, lo, hi, y);
}

static void post(const qk_post_row_i8 *p) {
    qk_i8_two_ports.post(p);
}

const qk_i8 TABLE = {
    .lanes = 4,
    .widest = 64,
    .tiles = true,
    .below = &qk_i8_two_ports,
    .gemm = gemm_by_tiles,
    .panels = panels_by_tiles,
    .panel_rows = INT32_MAX,
    .row_sums = row_sums,
    .gather = gather,
    .pack_side = qk_pack_side_avx512vnni,
    .depthwise = qk_depthwise_u8s8_avx512vnni,
    .window = qk_window_u8s8_avx512vnni,
    .window_group = 4,
    .window_floats = 2,
    .requantize = requantize,
    .post = post,
};
