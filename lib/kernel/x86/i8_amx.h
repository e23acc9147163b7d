/* SPDX-License-Identifier: MIT */
/*
 * INT8 products by tiles. A block is one or two tiles of up to 16 rows by a panel of 64 or 32
 * columns. Its sums go to memory, and become results among the products of the next block, beside
 * which the vector units are idle. Weights lie as i8_avx512vnni.c has them, which computes what
 * tiles do not suit: single rows, rows at any addresses. Every core with tiles has two ports.
 *
 * A file that includes this names its table TABLE; the kernel tests do so with emulated tiles.
 */
#include <assert.h>

#include "kernel/x86/amx_tiles.h"
#include "kernel/x86/i8_requant_avx512.h"

#define TILE_ROWS  16
#define MOST_TILES 32 /* whose rows' places are known at a time */

/* How the rows of a product become tiles: evenly in each line; the last one begins earlier, and
 * some of its rows are computed twice. */
typedef struct tiling {
    const uint8_t *at[MOST_TILES];         /* where a tile's first row begins */
    int32_t place[MOST_TILES * TILE_ROWS]; /* rows of the product that the tiles' rows are */
    int32_t rows;                          /* of each tile */
    int32_t line, per_line;                /* rows and tiles of a line */
    int32_t tiles;                         /* in all */
} tiling;

/* Sums on their way to the results: of 64 columns a row at a time, of 32 two. */
typedef struct stream {
    const int32_t *sums, *place, *bias;
    int32_t left; /* how many times */
    sink s;
} stream;

/* A product under way. */
typedef struct work {
    const qk_gemm_u8s8 *g;
    tiling t;
    stream before; /* the block before */
    int32_t *sums; /* room for two blocks */
    bool far;      /* weights come from beyond the first cache */
    int32_t fetch; /* lines of the next panel to be fetched with each 64 bytes of rows, or 0 */
} work;

INLINE kind kind_by_tiles(const qk_gemm_u8s8 *g) {
    if (g->o.mult)
        return g->o.clamp ? KIND_ANY : KIND_PLAIN;
    return g->o.scale ? KIND_FLOAT : KIND_ANY;
}

/* ---- sums to results ---- */

#define SUMS(v) _mm512_add_epi32(_mm512_load_si512(p->sums + 16 * v), bias##v)

INLINE void finish_rows(stream *p, const qk_gemm_u8s8 *g, kind how, int32_t width) {
    sink s = p->s;
    const __m512i bias0 = _mm512_loadu_si512(p->bias), bias1 = _mm512_loadu_si512(p->bias + 16);
    const __m512i bias2 = width == 64 ? _mm512_loadu_si512(p->bias + 32) : bias0;
    const __m512i bias3 = width == 64 ? _mm512_loadu_si512(p->bias + 48) : bias1;
    __m512i a = SUMS(0), b = SUMS(1), c = SUMS(2), d = SUMS(3);
    if (g->row_init) {
        const __m512i first = _mm512_set1_epi32(g->row_init[p->place[0]]);
        const __m512i second =
            width == 64 || s.rows == 1 ? first : _mm512_set1_epi32(g->row_init[p->place[1]]);
        a = _mm512_add_epi32(a, first), b = _mm512_add_epi32(b, first);
        c = _mm512_add_epi32(c, second), d = _mm512_add_epi32(d, second);
    }
    s.out += p->place[0] * s.stride;
    if (width == 64)
        finish_64(&s, how, 0, a, b, c, d);
    else
        finish_32(&s, how, 0, a, b, c, d);
    p->sums += width == 64 || s.rows == 2 ? 64 : 32;
    p->place += s.rows;
}

/* What is left of a stream that follows no other block, or whose kind is rare: row by row. */
TARGET QS_NOINLINE static void drain(stream *p, const qk_gemm_u8s8 *g) {
    const int32_t rows = p->left * p->s.rows;
    p->s.rows = 1;
    for (int32_t r = 0; r < rows; r++)
        if (g->width == 64)
            finish_rows(p, g, KIND_ANY, 64);
        else
            finish_rows(p, g, KIND_ANY, 32);
    p->left = 0;
}

/* ---- a block ---- */

#define LOAD_WEIGHTS(tile, from)                                                                   \
    if (far)                                                                                       \
        TILE_LOAD_T1(tile, from, 4 * width);                                                       \
    else                                                                                           \
        TILE_LOAD(tile, from, 4 * width);

/* Tile i and, if `two`, the next one by the panel at b; half a panel of 64 columns at a time. */
INLINE void block(work *k, int32_t i, const int8_t *b, int32_t *sums, bool two, int32_t width,
                  kind how) {
    const qk_gemm_u8s8 *g = k->g;
    const int32_t k64 = g->k4 / 16, steps = width / 32 * g->segs * k64;
    const ptrdiff_t stride = g->a_stride;
    const bool far = k->far;
    stream p = k->before;
    const int32_t some = (p.left + steps - 1) / steps;
    const int8_t *next = b + (ptrdiff_t)64 * width * g->segs * k64 +
                         (ptrdiff_t)i * k->fetch * 32 * (width / 32) * g->segs * k64;
    for (int32_t half = 0; half < width / 32; half++) {
        const int8_t *w = b + 128 * half;
        TILE_ZERO(0);
        TILE_ZERO(1);
        TILE_ZERO(2);
        TILE_ZERO(3);
        for (int32_t seg = 0; seg < g->segs; seg++) {
            const ptrdiff_t offset = g->seg_offset ? g->seg_offset[seg] : 0;
            const uint8_t *p0 = k->t.at[i] + offset, *p1 = k->t.at[two ? i + 1 : i] + offset;
            for (int32_t n = 0; n < k64; n++, p0 += 64, p1 += 64, w += 64 * width) {
                LOAD_WEIGHTS(6, w)
                TILE_LOAD(4, p0, stride);
                TILE_DOT(0, 4, 6);
                LOAD_WEIGHTS(7, w + 64)
                TILE_DOT(1, 4, 7);
                if (two) {
                    TILE_LOAD(5, p1, stride);
                    TILE_DOT(2, 5, 6);
                    TILE_DOT(3, 5, 7);
                }
                for (int32_t r = some; r > 0 && p.left > 0; r--, p.left--)
                    finish_rows(&p, g, how, width);
                for (int32_t f = k->fetch; f > 0; f--, next += 64)
                    _mm_prefetch((const char *)next, _MM_HINT_T1);
            }
        }
        int32_t *to = sums + 32 * half, *second = to + k->t.rows * width;
        TILE_STORE(0, to, 4 * width);
        TILE_STORE(1, to + 16, 4 * width);
        if (two) {
            TILE_STORE(2, second, 4 * width);
            TILE_STORE(3, second + 16, 4 * width);
        }
    }
}

#define BLOCK(name, width, how)                                                                    \
    TARGET QS_NOINLINE static void name(work *k, int32_t i, const int8_t *b, bool two) {           \
        block(k, i, b, k->sums, two, width, how);                                                  \
    }

BLOCK(block_32, 32, KIND_PLAIN)
BLOCK(block_64, 64, KIND_PLAIN)
BLOCK(block_32_floats, 32, KIND_FLOAT)
BLOCK(block_64_floats, 64, KIND_FLOAT)

typedef void (*block_fn)(work *k, int32_t i, const int8_t *b, bool two);

static block_fn block_of(bool floats, bool wide) {
    static const block_fn all[2][2] = {{block_32, block_64}, {block_32_floats, block_64_floats}};
    return all[floats][wide];
}

/* ---- the product ---- */

static tiling tiling_of(const qk_gemm_u8s8 *g) {
    tiling t;
    t.line = g->line > 0 ? g->line : g->m;
    t.per_line = (t.line + TILE_ROWS - 1) / TILE_ROWS;
    t.rows = (t.line + t.per_line - 1) / t.per_line;
    if (g->width == 32 && t.rows % 2 && t.rows < t.line) /* rows become results in pairs */
        t.rows++;
    t.tiles = g->m / t.line * t.per_line;
    return t;
}

/* Tiles from `first` on, as many as there is room for; returns their number. */
static int32_t place_tiles(tiling *t, const qk_gemm_u8s8 *g, int32_t first) {
    const int32_t count = t->tiles - first < MOST_TILES ? t->tiles - first : MOST_TILES;
    int32_t y = first / t->per_line, x = first % t->per_line * t->rows;
    int32_t *place = t->place;
    for (int32_t i = 0; i < count; i++, x += t->rows) {
        if (x >= t->line)
            x = 0, y++;
        const int32_t from = x > t->line - t->rows ? t->line - t->rows : x;
        t->at[i] = g->a + y * g->line_stride + from * g->a_stride;
        for (int32_t r = 0; r < t->rows; r++)
            *place++ = y * t->line + from + r;
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

#define FAR 512 /* bytes of a row beyond which rows and weights fill the first cache */

/* The block of tiles i and, if `two`, the next one by panel `panel`, and what becomes of it. */
TARGET static void run_block(work *k, int32_t i, bool two, int32_t panel, size_t panel_bytes) {
    const qk_gemm_u8s8 *g = k->g;
    const kind how = kind_by_tiles(g);
    const int32_t width = g->width, rows = k->t.rows << two, left = g->cols - panel * width;
    const bool rare =
        how == KIND_ANY || (width == 32 && rows % 2) || (width == 32 && k->t.rows % 2);
    block_of(how == KIND_FLOAT, width == 64)(k, i, g->b + (size_t)panel * panel_bytes, two);
    stream *p = &k->before;
    p->sums = k->sums;
    p->place = k->t.place + i * k->t.rows;
    p->bias = g->o.bias + panel * width;
    p->s = sink_of(g);
    p->s.out += (ptrdiff_t)panel * width * (g->o.mult ? 1 : 4);
    p->s.cols = left < width ? left : width;
    p->s.mult = g->o.mult ? g->o.mult + panel * width : NULL;
    p->s.scale = g->o.scale ? g->o.scale + panel * width : NULL;
    p->s.add = g->o.scale ? g->o.add + panel * width : NULL;
    p->s.rows = rare || width == 64 ? 1 : 2;
    p->left = rows / p->s.rows;
    if (rare)
        drain(p, g);
}

/*
 * A panel meets all rows before the next one, which is fetched meanwhile: in a whole network no
 * layer's weights are in the cache. Where they are, pairs of tiles first would be a sixth faster.
 */
TARGET QS_NOINLINE static void by_tiles(const qk_gemm_u8s8 *g, int32_t panels) {
    _Alignas(64) int32_t sums[2][2 * TILE_ROWS * 64];
    const size_t panel_bytes = 4 * (size_t)g->segs * (size_t)g->k4 * (size_t)g->width;
    const int32_t bytes = 4 * g->segs * g->k4;
    work k = {.g = g, .t = tiling_of(g), .far = bytes > FAR, .sums = sums[0]};
    configure(k.t.rows);
    for (int32_t first = 0, count; first < k.t.tiles; first += count) {
        count = place_tiles(&k.t, g, first);
        for (int32_t panel = 0; panel < panels; panel++) {
            k.fetch = panel + 1 < panels ? (64 + count - 1) / count : 0;
            for (int32_t i = 0; i < count; i += 2) {
                run_block(&k, i, i + 1 < count, panel, panel_bytes);
                k.sums = k.sums == sums[0] ? sums[1] : sums[0];
            }
        }
        drain(&k.before, g);
    }
    TILE_RELEASE();
    _mm256_zeroupper();
}

/* ---- the table ---- */

/* Panel by panel where rows are anywhere. */
static void by_vectors(const qk_gemm_u8s8 *g, int32_t panels) {
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

TARGET static void panels_by_tiles(const qk_gemm_u8s8 *g, int32_t panels) {
    assert(qk_gemm_u8s8_valid(&TABLE, g, panels));
    if (g->rows || g->m < 2) {
        by_vectors(g, panels);
        return;
    }
    if (g->gather)
        qk_i8_two_ports.gather(g->gather);
    by_tiles(g, panels);
}

static void gemm_by_tiles(const qk_gemm_u8s8 *g) {
    int32_t one = 1;
    __asm__("" : "+r"(one)); /* else gcc would compile by_tiles for one panel again */
    panels_by_tiles(g, one);
}

/* Those below know no lines. */
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
    .depthwise = qk_depthwise_u8s8_avx512vnni,
    .window = qk_window_u8s8_avx512vnni,
    .window_group = 4,
    .window_floats = 2,
    .requantize = requantize,
    .post = post,
};
