/* SPDX-License-Identifier: MIT */
/*
 * Template of the tiles of float products for one vector width; included once by each file of an
 * instruction set, after it has defined
 *
 *   TARGET               the function attribute
 *   VEC, LANES           vector of LANES floats
 *   LOAD(p) SET1(x) FMA(a, b, c) ADD MAX MIN STORE(p, v)
 *   STORE_FIRST(p, v, n) stores the first n lanes, 1 <= n <= LANES
 *
 * TILE(name, rows, vectors) makes a tile of `rows` output pixels by `vectors` * LANES columns.
 * Every accumulator is a named variable, because compilers spill arrays: so TILE and the macros of
 * f32_depthwise*.h are no functions.
 */
#define REP1(X)  X(0)
#define REP2(X)  REP1(X) X(1)
#define REP3(X)  REP2(X) X(2)
#define REP4(X)  REP3(X) X(3)
#define REP5(X)  REP4(X) X(4)
#define REP6(X)  REP5(X) X(5)
#define REP7(X)  REP6(X) X(6)
#define REP8(X)  REP7(X) X(7)
#define REP9(X)  REP8(X) X(8)
#define REP10(X) REP9(X) X(9)

#define MOST_ROWS 8

/*
 * The place of a tile in its job: its columns, B from there on, and what run_tile() sets. Where
 * rows go is always a table: for two cases gcc would make each tile's end twice.
 */
typedef struct tile {
    const qk_gemm_f32 *g;
    const float *b, *bias;
    float *c;
    size_t width; /* of the panel: floats between rows of B */
    size_t last;  /* columns of the last vector that exist */
    size_t row;
    float *to;            /* what the offsets of the tile's rows are added to */
    const ptrdiff_t *out; /* these offsets */
    ptrdiff_t line[MOST_ROWS];
} tile;

typedef void (*tile_fn)(const tile *t);

/* Hides from gcc how a vector was computed, so that an accumulator stays in its register. */
#if QK_ARM
#define OPAQUE(v) __asm__("" : "+w"(v));
#else
#define OPAQUE(v) __asm__("" : "+v"(v));
#endif
/* A vector that gcc shall not load again at each use; 16 registers are too few for that. */
#if QK_X86 && LANES == 8
#define OPAQUE_LOAD(v)
#else
#define OPAQUE_LOAD(v) OPAQUE(v)
#endif
/* If gcc knew that sums are 0 it would set them twice, for no segments and for some. */
#define ZERO(r, v)                                                                                 \
    VEC c##r##_##v = SET1(0.0f);                                                                   \
    OPAQUE(c##r##_##v)
#define ZERO1(r) ZERO(r, 0)
#define ZERO2(r) ZERO1(r) ZERO(r, 1)
#define ZERO3(r) ZERO2(r) ZERO(r, 2)
#define ZERO4(r) ZERO3(r) ZERO(r, 3)
#define LOADB(v)                                                                                   \
    VEC b##v = LOAD(b + v * LANES);                                                                \
    OPAQUE_LOAD(b##v)
#define LOADB1 LOADB(0)
#define LOADB2 LOADB1 LOADB(1)
#define LOADB3 LOADB2 LOADB(2)
#define LOADB4 LOADB3 LOADB(3)
#define MADD(r, v)                                                                                 \
    c##r##_##v = FMA(x##r, b##v, c##r##_##v);                                                      \
    OPAQUE(c##r##_##v)
#define X(r)     VEC x##r = SET1(a##r[i]);
#define STEP1(r) X(r) MADD(r, 0)
#define STEP2(r) X(r) MADD(r, 0) MADD(r, 1)
#define STEP3(r) X(r) MADD(r, 0) MADD(r, 1) MADD(r, 2)
#define STEP4(r) X(r) MADD(r, 0) MADD(r, 1) MADD(r, 2) MADD(r, 3)

#define END(r, v)  MIN(hi, MAX(lo, ADD(c##r##_##v, bias##v)))
#define ROW(r)     float *const o##r = c + out[r];
#define FULL(r, v) STORE(o##r + v * LANES, END(r, v));
#define LAST(r, v) STORE_FIRST(o##r + v * LANES, END(r, v), last);
#define OUT1(r)    ROW(r) LAST(r, 0)
#define OUT2(r)    ROW(r) FULL(r, 0) LAST(r, 1)
#define OUT3(r)    ROW(r) FULL(r, 0) FULL(r, 1) LAST(r, 2)
#define OUT4(r)    ROW(r) FULL(r, 0) FULL(r, 1) FULL(r, 2) LAST(r, 3)

#define BIAS1 const VEC bias0 = LOAD(t->bias);
#define BIAS2 BIAS1 const VEC bias1 = LOAD(t->bias + LANES);
#define BIAS3 BIAS2 const VEC bias2 = LOAD(t->bias + 2 * LANES);
#define BIAS4 BIAS3 const VEC bias3 = LOAD(t->bias + 3 * LANES);

/* The barrier keeps gcc from computing the address again at each use. */
#define SEGMENT(r)                                                                                 \
    const float *a##r = a + row[r];                                                                \
    __asm__("" : "+r"(a##r));

/* Keeps gcc from holding values that are a load away in registers or vectors that loops need. */
#define RELOAD __asm__ volatile("" ::: "memory");

#define TILE(name, rows, vectors)                                                                  \
    TARGET static void name(const tile *t) {                                                       \
        const float *b = t->b;                                                                     \
        REP##rows(ZERO##vectors) for (size_t s = 0; s < t->g->segs; s++) {                         \
            RELOAD                                                                                 \
            const qk_gemm_f32 *const g = t->g;                                                     \
            const ptrdiff_t *const row = g->row + t->row;                                          \
            const size_t width = t->width, k = g->k;                                               \
            const float *const a = g->a + g->seg[s];                                               \
            b = g->at ? t->b + g->at[s] * width : b;                                               \
            size_t i = 0;                                                                          \
            REP##rows(SEGMENT) if (k == 0) continue;                                               \
            do { /* compiling for size, gcc would test a while loop at its head */                 \
                LOADB##vectors REP##rows(STEP##vectors) b += width;                                \
            } while (++i < k);                                                                     \
        }                                                                                          \
        RELOAD                                                                                     \
        const qk_gemm_f32 *const g = t->g;                                                         \
        const VEC lo = SET1(g->lo), hi = SET1(g->hi);                                              \
        const size_t last = t->last;                                                               \
        const ptrdiff_t *const out = t->out;                                                       \
        float *const c = t->to;                                                                    \
        BIAS##vectors REP##rows(OUT##vectors)                                                      \
    }

/* Runs a tile at row r of its job; t->line is set. */
static inline void run_tile(tile *t, size_t r, tile_fn run) {
    const qk_gemm_f32 *const g = t->g;
    t->row = r;
    t->to = t->c + (g->out ? 0 : r * g->ldc);
    t->out = g->out ? g->out + r : t->line;
    run(t);
}

/*
 * Runs the rows of a job through tiles of one width: fn[i] takes 2^i rows, `big` takes `most`. Two
 * rows go one by one where fn[1] is NULL: that is as fast, as sums wait for each other.
 */
static inline void run_rows(tile *t, const tile_fn *fn, size_t most, tile_fn big) {
    const qk_gemm_f32 *const g = t->g;
    size_t r = 0;
    t->line[0] = 0;
    for (size_t i = 1; i < MOST_ROWS; i++)
        t->line[i] = t->line[i - 1] + (ptrdiff_t)g->ldc;
    while (r < g->rows) {
        const size_t rest = g->rows - r;
        size_t step = most;
        tile_fn run = big;
        if (rest < most) {
            const int i = rest >= 4 ? 2 : rest >= 2 && fn[1];
            step = (size_t)1 << i;
            run = fn[i];
        }
        run_tile(t, r, run);
        r += step;
    }
}
