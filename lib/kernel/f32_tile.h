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

/* The place of a tile in its job: its first row, its columns, and B from there on. */
typedef struct tile {
    const qk_gemm_f32 *g;
    size_t row;
    const float *b, *bias;
    float *c;
    size_t width; /* of the panel: floats between rows of B */
    size_t last;  /* columns of the last vector that exist */
} tile;

typedef void (*tile_fn)(const tile *t);

#define ZERO1(r) VEC c##r##_0 = SET1(0.0f);
#define ZERO2(r) ZERO1(r) VEC c##r##_1 = SET1(0.0f);
#define ZERO3(r) ZERO2(r) VEC c##r##_2 = SET1(0.0f);
#define ZERO4(r) ZERO3(r) VEC c##r##_3 = SET1(0.0f);

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
#define ROW(r)     float *const o##r = c + (out ? out[r] : (ptrdiff_t)r * ldc);
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
        const ptrdiff_t ldc = (ptrdiff_t)g->ldc, *const out = g->out ? g->out + t->row : NULL;     \
        float *const c = t->c + (out ? 0 : t->row * g->ldc);                                       \
        BIAS##vectors REP##rows(OUT##vectors)                                                      \
    }

/*
 * Runs the rows of a job through tiles of one width: fn[i] takes 2^i rows, `big` takes `most`. Two
 * rows go one by one where fn[1] is NULL: that is as fast, as sums wait for each other.
 */
static inline void run_rows(const qk_gemm_f32 *g, tile *t, const tile_fn *fn, size_t most,
                            tile_fn big) {
    size_t r = 0;
    while (r < g->rows) {
        const size_t rest = g->rows - r;
        size_t step = most;
        tile_fn run = big;
        if (rest < most) {
            const int i = rest >= 4 ? 2 : rest >= 2 && fn[1];
            step = (size_t)1 << i;
            run = fn[i];
        }
        t->row = r;
        run(t);
        r += step;
    }
}
