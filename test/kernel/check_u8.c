/* SPDX-License-Identifier: MIT */
/* Element-wise kernels on 8 bits. */
#include "checkkernel.h"

#include "kernel/u8.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct ew_case {
    const qk_u8 *k;
    qk_u8_pair w;
    const void *a, *b;
    void *c;
    size_t n, sa, sb;
    int which; /* number of the kernel, see `call` */
    const uint8_t *table;
    size_t rows, x_stride, y_stride;
    float scale;
} ew_case;

static void call(void *arg) {
    const ew_case *e = arg;
    switch (e->which) {
    case 0: e->k->add(e->a, e->sa, e->b, e->sb, e->c, e->n, &e->w); break;
    case 1: e->k->mul(e->a, e->sa, e->b, e->sb, e->c, e->n, &e->w); break;
    case 2: e->k->table(e->table, e->a, e->x_stride, e->c, e->y_stride, e->n, e->rows); break;
    case 6: e->k->lookup((const float *)(const void *)e->table, e->a, e->c, e->n); break;
    case 5: e->k->interleave(e->a, e->n / 3, 3, e->c, e->n / 3); break;
    case 7: e->k->scale(e->a, e->b, 192, e->c, e->n, &e->w); break;
    case 3: e->k->quantize(e->a, e->n, e->scale, e->w.za, e->w.flip_a, e->c); break;
    case 8: e->k->quantize_within(e->a, e->n, e->scale, e->w.za, e->w.flip_a, e->c); break;
    default: e->k->dequantize(e->a, e->n, e->scale, e->w.za, e->w.flip_a, e->c); break;
    }
}

static void make(ew_case *e, ck_state *s, int which, size_t n) {
    *e = (ew_case){.which = which, .n = n, .sa = 1, .sb = 1};
    e->w.ma = ck_real(s, 0.001f, 2);
    e->w.mb = ck_real(s, 0.001f, 2);
    e->w.za = ck_between(s, 0, 255);
    e->w.zb = ck_between(s, 0, 255);
    e->w.zc = ck_between(s, 0, 255);
    e->w.lo = (float)-e->w.zc;
    e->w.hi = (float)(255 - e->w.zc);
    e->w.flip_a = ck_between(s, 0, 1) ? 0x80 : 0;
    e->w.flip_b = ck_between(s, 0, 1) ? 0x80 : 0;
    e->w.flip_c = ck_between(s, 0, 1) ? 0x80 : 0;
    e->a = ck_input(s, n);
    e->b = ck_input(s, n);
}

/* The definition in a plain loop, against which the C kernels are checked. */
static void plain(const ew_case *e, uint8_t *c) {
    const uint8_t *a = e->a, *b = e->b;
    for (size_t i = 0; i < e->n; i++) {
        float va = (float)((a[i * e->sa] ^ e->w.flip_a) - e->w.za);
        float vb = (float)((b[i * e->sb] ^ e->w.flip_b) - e->w.zb);
        float v = e->which ? va * vb * e->w.ma : e->w.ma * va + e->w.mb * vb;
        v = fminf(fmaxf(v, e->w.lo), e->w.hi);
        c[i] = (uint8_t)(((int32_t)rintf(v) + e->w.zc) ^ e->w.flip_c);
    }
}

static void check(ck_state *s, int which) {
    ew_case e;
    char shape[64];
    size_t n = (size_t)ck_between(s, 1, 200);
    int32_t form = ck_between(s, 0, 2);
    make(&e, s, which, n);
    e.sa = form != 1;
    e.sb = form != 2;
    if (ck_between(s, 0, 3) == 0) /* results near the end of int32, and beyond */
        e.w.ma = ldexpf(e.w.ma, ck_between(s, 8, 32));
    if (ck_between(s, 0, 3) == 0)
        e.w.mb = ldexpf(e.w.mb, ck_between(s, 8, 32));
    if (ck_between(s, 0, 9) == 0) { /* infinite terms, whose sum is NaN */
        e.w.ma = 3e38f;
        e.w.mb = -3e38f;
    }
    if (ck_between(s, 0, 1)) { /* like residual sums: neither bounds nor flips */
        e.w.flip_a = e.w.flip_b = e.w.flip_c = 0;
    } else {
        e.w.lo += (float)ck_between(s, 0, 9);
        e.w.hi -= (float)ck_between(s, 0, 9);
    }
    snprintf(shape, sizeof(shape), "n %zu strides %zu %zu", n, e.sa, e.sb);
    uint8_t *expected = ck_output(s, n), *actual = ck_output(s, n);
    plain(&e, expected);
    if (form == 0 && ck_between(s, 0, 1)) /* over the second operand */
        e.b = memcpy(actual, e.b, n);
    e.k = s->t->u8;
    e.c = actual;
    call(&e);
    ck_same(s, expected, actual, n, shape);
}

static void bench(ck_state *s, int which) {
    ew_case e;
    make(&e, s, which, 50000);
    e.k = s->t->u8;
    e.c = ck_output(s, e.n);
    ck_time(s, "n 50000", 0, (double)e.n * 3, call, &e);
}

#define CASE(name, which)                                                                          \
    static void check_##name(ck_state *s) {                                                        \
        check(s, which);                                                                           \
    }                                                                                              \
    static void bench_##name(ck_state *s) {                                                        \
        bench(s, which);                                                                           \
    }

CASE(add, 0)
CASE(mul, 1)

/* Products with factors of m columns, if the table has a kernel for them. */
static void check_scale(ck_state *s) {
    const size_t m = 64 * (size_t)ck_between(s, 1, ck_between(s, 0, 1) ? 16 : 3);
    const size_t n = (size_t)ck_between(s, 1, 400);
    char shape[64];
    ew_case e;
    if (!s->t->u8->scale)
        return;
    make(&e, s, 1, n > m ? n : m);
    e.n = n;
    if (ck_between(s, 0, 3) == 0) /* results near the end of int32, and beyond */
        e.w.ma = ldexpf(e.w.ma, ck_between(s, 8, 32));
    if (ck_between(s, 0, 3)) /* the usual case: uint8 without bounds */
        e.w.flip_a = e.w.flip_c = 0;
    else
        e.w.lo += (float)ck_between(s, 0, 9);
    uint8_t *expected = ck_output(s, n), *actual = ck_output(s, n), *spread = ck_output(s, n);
    for (size_t i = 0; i < n; i++)
        spread[i] = ((const uint8_t *)e.b)[i % m];
    s->t->u8->scale(e.a, e.b, m, actual, n, &e.w);
    e.b = spread;
    plain(&e, expected);
    snprintf(shape, sizeof(shape), "n %zu factors %zu", n, m);
    ck_same(s, expected, actual, n, shape);
}

static void bench_scale(ck_state *s) {
    ew_case e;
    make(&e, s, 7, 50000);
    e.w.flip_a = e.w.flip_c = 0;
    e.k = s->t->u8;
    e.c = ck_output(s, e.n);
    if (e.k->scale)
        ck_time(s, "n 50000 of 192", 0, (double)e.n * 2, call, &e);
}

/* ---- two lines for each channel ---- */

typedef struct piecewise_case {
    qk_piecewise_fn fn;
    qk_piecewise w;
    const uint8_t *x;
    uint8_t *y;
    size_t n, rows;
} piecewise_case;

static void call_piecewise(void *arg) {
    const piecewise_case *e = arg;
    e->fn(&e->w, e->x, e->y, e->n, e->rows);
}

static void make_piecewise(piecewise_case *e, ck_state *s, size_t n, size_t rows) {
    *e = (piecewise_case){.fn = s->t->u8->piecewise, .n = n, .rows = rows};
    e->w = (qk_piecewise){.below = ck_floats(s, n, -2, 2),
                          .above = ck_floats(s, n, -2, 2),
                          .offset = ck_floats(s, n, -99, 99),
                          .zx = ck_between(s, 0, 255),
                          .zy = ck_between(s, 0, 255)};
    e->w.lo = (float)-e->w.zy;
    e->w.hi = (float)(255 - e->w.zy);
    e->x = ck_input(s, n * rows);
    e->y = ck_output(s, n * rows);
}

static void check_piecewise(ck_state *s) {
    piecewise_case e;
    char shape[64];
    make_piecewise(&e, s, (size_t)ck_between(s, 1, 100), (size_t)ck_between(s, 1, 5));
    if (ck_between(s, 0, 1)) {
        e.w.lo += (float)ck_between(s, 0, 9);
        e.w.hi -= (float)ck_between(s, 0, 9);
    }
    uint8_t *expected = ck_output(s, e.n * e.rows);
    for (size_t i = 0; i < e.n * e.rows; i++) {
        const size_t c = i % e.n;
        const int32_t d = e.x[i] - e.w.zx;
        const float product = (float)d * (d < 0 ? e.w.below[c] : e.w.above[c]);
        const float v = fminf(fmaxf(product + e.w.offset[c], e.w.lo), e.w.hi);
        expected[i] = (uint8_t)((int32_t)rintf(v) + e.w.zy);
    }
    call_piecewise(&e);
    snprintf(shape, sizeof(shape), "%zu rows of %zu", e.rows, e.n);
    ck_same(s, expected, e.y, e.n * e.rows, shape);
}

static void bench_piecewise(ck_state *s) {
    piecewise_case e;
    make_piecewise(&e, s, 64, 1000);
    ck_time(s, "1000 rows of 64", 0, (double)(e.n * e.rows) * 2, call_piecewise, &e);
}

/* ---- tables, planes ---- */

static void check_table(ck_state *s) {
    ew_case e = {.which = 2,
                 .n = (size_t)ck_between(s, 1, 200),
                 .rows = (size_t)ck_between(s, 1, 5),
                 .table = ck_input(s, 256)};
    char shape[64];
    e.x_stride = e.n + (size_t)ck_between(s, 0, 9);
    e.y_stride = e.n + (size_t)ck_between(s, 0, 9);
    if (ck_between(s, 0, 3) == 0) { /* short rows without gaps, of whole vectors */
        e.n = e.x_stride = (size_t)8 << ck_between(s, 0, 3);
        e.rows = (size_t)ck_between(s, 1, 20);
        e.y_stride = e.n + (size_t)ck_between(s, 0, 64);
    }
    size_t bytes = e.y_stride * e.rows;
    const uint8_t *x = ck_input(s, e.x_stride * e.rows);
    uint8_t *expected = ck_output(s, bytes), *actual = ck_output(s, bytes);
    snprintf(shape, sizeof(shape), "%zu rows of %zu", e.rows, e.n);
    for (size_t r = 0; r < e.rows; r++)
        for (size_t i = 0; i < e.n; i++)
            expected[r * e.y_stride + i] = e.table[x[r * e.x_stride + i]];
    e.a = x;
    e.c = actual;
    e.k = s->t->u8;
    call(&e);
    ck_same(s, expected, actual, bytes, shape);
}

static void check_interleave(ck_state *s) {
    size_t n = (size_t)ck_between(s, 1, 300), planes = (size_t)ck_between(s, 1, 4);
    size_t plane = n + (size_t)ck_between(s, 0, 5), bytes = n * planes;
    char shape[64];
    const uint8_t *x = ck_input(s, plane * planes);
    uint8_t *expected = ck_output(s, bytes), *actual = ck_output(s, bytes);
    snprintf(shape, sizeof(shape), "%zu planes of %zu", planes, n);
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < planes; c++)
            expected[i * planes + c] = x[c * plane + i];
    s->t->u8->interleave(x, plane, planes, actual, n);
    ck_same(s, expected, actual, bytes, shape);
}

/* ---- two inputs interleaved ---- */

static void check_shuffle(ck_state *s) {
    const size_t n = (size_t)ck_between(s, 1, ck_between(s, 0, 1) ? 200 : 20);
    qk_shuffle k = {.n = n, .rows = (size_t)ck_between(s, 1, 40)};
    k.first = ck_between(s, 0, 2) ? (size_t)ck_between(s, 1, 2 * (int32_t)n - 1) : 2 * n;
    const size_t rest = 2 * n - k.first;
    k.a = ck_input(s, n * k.rows);
    k.b = ck_input(s, n * k.rows);
    k.table_a = ck_between(s, 0, 1) ? ck_input(s, 256) : NULL;
    k.table_b = ck_between(s, 0, 1) ? ck_input(s, 256) : NULL;
    uint8_t *y0 = ck_output(s, k.first * k.rows), *y1 = ck_output(s, rest * k.rows + 1);
    k.y0 = ck_output(s, k.first * k.rows);
    k.y1 = ck_output(s, rest * k.rows + 1);
    y1[rest * k.rows] = k.y1[rest * k.rows] = 7;
    for (size_t i = 0; i < 2 * n * k.rows; i++) {
        const size_t r = i / (2 * n), j = i % (2 * n), at = r * n + j / 2;
        const uint8_t *table = j % 2 ? k.table_b : k.table_a;
        const uint8_t x = j % 2 ? k.b[at] : k.a[at];
        *(j < k.first ? y0 + r * k.first + j : y1 + r * rest + j - k.first) = table ? table[x] : x;
    }
    s->t->u8->shuffle(&k);
    char shape[64];
    snprintf(shape, sizeof(shape), "%zu rows of %zu, %zu apart", k.rows, n, k.first);
    ck_same(s, y0, k.y0, k.first * k.rows, shape);
    ck_same(s, y1, k.y1, rest * k.rows + 1, shape);
}

/* The same for floats. */
static void check_shuffle32(ck_state *s) {
    const size_t n = (size_t)ck_between(s, 1, ck_between(s, 0, 1) ? 200 : 20);
    qk_shuffle k = {.n = n, .rows = (size_t)ck_between(s, 1, 10)};
    k.first = ck_between(s, 0, 2) ? (size_t)ck_between(s, 1, 2 * (int32_t)n - 1) : 2 * n;
    const size_t rest = 2 * n - k.first;
    const void *a = k.a = ck_input(s, 4 * n * k.rows), *b = k.b = ck_input(s, 4 * n * k.rows);
    uint8_t *y0 = ck_output(s, 4 * k.first * k.rows), *y1 = ck_output(s, 4 * rest * k.rows + 1);
    k.y0 = ck_output(s, 4 * k.first * k.rows);
    k.y1 = ck_output(s, 4 * rest * k.rows + 1);
    y1[4 * rest * k.rows] = k.y1[4 * rest * k.rows] = 7;
    for (size_t i = 0; i < 2 * n * k.rows; i++) {
        const size_t r = i / (2 * n), j = i % (2 * n), at = 4 * (r * n + j / 2);
        memcpy(j < k.first ? y0 + 4 * (r * k.first + j) : y1 + 4 * (r * rest + j - k.first),
               (const uint8_t *)(j % 2 ? b : a) + at, 4);
    }
    s->t->u8->shuffle32(&k);
    char shape[64];
    snprintf(shape, sizeof(shape), "%zu rows of %zu, %zu apart", k.rows, n, k.first);
    ck_same(s, y0, k.y0, 4 * k.first * k.rows, shape);
    ck_same(s, y1, k.y1, 4 * rest * k.rows + 1, shape);
}

typedef struct shuffle_bench {
    void (*run)(const qk_shuffle *s);
    qk_shuffle k;
} shuffle_bench;

static void call_shuffle(void *arg) {
    const shuffle_bench *b = arg;
    b->run(&b->k);
}

/* Times the shuffle between two units of ShuffleNetV2. */
static void bench_shuffle(ck_state *s) {
    shuffle_bench b = {s->t->u8->shuffle, {.n = 116, .rows = 196, .first = 116}};
    const size_t bytes = b.k.n * b.k.rows;
    b.k.a = ck_input(s, bytes);
    b.k.b = ck_input(s, bytes);
    b.k.table_a = b.k.table_b = ck_input(s, 256);
    b.k.y0 = ck_output(s, bytes);
    b.k.y1 = ck_output(s, bytes);
    ck_time(s, "196 x 116", 0, 4.0 * (double)bytes, call_shuffle, &b);
}

static void bench_shuffle32(ck_state *s) {
    shuffle_bench b = {s->t->u8->shuffle32, {.n = 116, .rows = 196, .first = 116}};
    const size_t bytes = 4 * b.k.n * b.k.rows;
    b.k.a = ck_input(s, bytes);
    b.k.b = ck_input(s, bytes);
    b.k.y0 = ck_output(s, bytes);
    b.k.y1 = ck_output(s, bytes);
    ck_time(s, "196 x 116", 0, 4.0 * (double)bytes, call_shuffle, &b);
}

static void check_lookup(ck_state *s) {
    const size_t n = (size_t)ck_between(s, 1, 300);
    const float *table = ck_floats(s, 256, -3, 3);
    const uint8_t *x = ck_input(s, n);
    float *expected = ck_output(s, 4 * n), *actual = ck_output(s, 4 * n);
    char shape[64];
    snprintf(shape, sizeof(shape), "n %zu", n);
    for (size_t i = 0; i < n; i++)
        expected[i] = table[x[i]];
    s->t->u8->lookup(table, x, actual, n);
    ck_same(s, expected, actual, 4 * n, shape);
}

/* ---- transposes ---- */

typedef struct transpose_case {
    void (*kernel)(const void *x, size_t line, void *y, size_t rows, size_t columns);
    const void *x;
    void *y;
    size_t line, rows, columns;
} transpose_case;

static void call_transpose(void *arg) {
    const transpose_case *t = arg;
    t->kernel(t->x, t->line, t->y, t->rows, t->columns);
}

/* Checks in memory of exactly the elements that are read: the last line ends with its rows. */
static void check_transpose(ck_state *s, size_t element) {
    const bool wide = ck_between(s, 0, 9) == 0, far = ck_between(s, 0, 9) == 0; /* pages apart */
    const size_t rows = (size_t)ck_between(s, 1, 70);
    const size_t columns = wide ? 1024 : (size_t)ck_between(s, 1, ck_between(s, 0, 1) ? 8 : 150);
    const size_t line = far ? 1024 : rows + (size_t)ck_between(s, 0, 5);
    const size_t bytes = rows * columns * element;
    transpose_case t = {.line = line, .rows = rows, .columns = columns};
    char shape[64];
    const char *x = ck_input(s, ((columns - 1) * line + rows) * element);
    char *expected = ck_output(s, bytes);
    snprintf(shape, sizeof(shape), "%zu x %zu of %zu bytes", rows, columns, element);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++)
            memcpy(expected + (r * columns + c) * element, x + (c * line + r) * element, element);
    t.kernel = element == 1 ? s->t->u8->transpose8 : s->t->u8->transpose32;
    t.x = x;
    t.y = ck_output(s, bytes);
    call_transpose(&t);
    ck_same(s, expected, t.y, bytes, shape);
}

static void bench_transpose(ck_state *s, size_t element) {
    transpose_case t = {.line = 3136, .rows = 3136, .columns = 64};
    const size_t bytes = t.rows * t.columns * element;
    t.kernel = element == 1 ? s->t->u8->transpose8 : s->t->u8->transpose32;
    t.x = ck_input(s, bytes);
    t.y = ck_output(s, bytes);
    ck_time(s, "3136 x 64", 0, (double)bytes * 2, call_transpose, &t);
}

static void check_transpose8(ck_state *s) {
    check_transpose(s, 1);
}
static void bench_transpose8(ck_state *s) {
    bench_transpose(s, 1);
}
static void check_transpose32(ck_state *s) {
    check_transpose(s, 4);
}
static void bench_transpose32(ck_state *s) {
    bench_transpose(s, 4);
}

/* ---- quantization ---- */

/* Values that are seldom at an edge of rounding: a block with one takes the slower path. */
static float *seldom_awkward(ck_state *s, size_t n, float scale) {
    float *x = ck_floats(s, n, -300, 300);
    for (size_t i = 0; i < n; i++)
        x[i] = ck_random(s) % 200 ? x[i] * scale : NAN;
    return x;
}

/* Floats whose quotients lie on, or next to, the edges of rounding; and any others. */
static float *awkward(ck_state *s, size_t n, float scale) {
    static const float special[] = {NAN, INFINITY, -INFINITY, 1e38f, -1e38f, 1e-44f, -0.0f};
    float *x = ck_floats(s, n, -300, 300);
    for (size_t i = 0; i < n; i++) {
        switch (ck_between(s, 0, 3)) {
        case 0: x[i] = ((float)ck_between(s, -260, 260) + 0.5f) * scale; break;
        case 1: x[i] *= scale; break;
        case 2: x[i] = special[ck_between(s, 0, 6)]; continue;
        default: break;
        }
        for (int32_t k = ck_between(s, -2, 2); k; k += k < 0 ? 1 : -1)
            x[i] = nextafterf(x[i], k < 0 ? -INFINITY : INFINITY);
    }
    return x;
}

static void check_quantize(ck_state *s) {
    static const float scales[] = {1e-30f, 1e30f, 1.0f, 0.0f, 1.99999988f, 0.003921569f};
    ew_case e = {.which = 3, .n = (size_t)ck_between(s, 1, 2000)};
    char shape[64];
    int32_t special = ck_between(s, 0, 20);
    e.scale = special < 6 ? scales[special] : ck_real(s, 0.0001f, 4);
    e.w.za = ck_between(s, 0, 255);
    e.w.flip_a = ck_between(s, 0, 1) ? 0x80 : 0;
    float *x = (ck_random(s) % 2 ? awkward : seldom_awkward)(s, e.n, e.scale);
    uint8_t *expected = ck_output(s, e.n), *actual = ck_output(s, e.n);
    snprintf(shape, sizeof(shape), "n %zu scale %a", e.n, (double)e.scale);
    if (ck_between(s, 0, 1) &&
        e.scale > 0) { /* larger values become as large as qk_within allows */
        float most = (256.4f - (float)e.w.za) * e.scale;
        for (int32_t k = 0; k < 200 && !qk_within(most, e.scale, e.w.za); k++)
            most -= ck_real(s, 0.0f, 0.05f) * e.scale;
        for (size_t i = 0; i < e.n; i++)
            x[i] = x[i] > most ? most : x[i];
        e.which = qk_within(most, e.scale, e.w.za) ? 8 : 3;
    }
    for (size_t i = 0; i < e.n; i++) {
        float v = x[i] / e.scale, lo = (float)-e.w.za, hi = (float)(255 - e.w.za);
        v = v > lo ? v : lo;
        v = v < hi ? v : hi;
        expected[i] = (uint8_t)(((int32_t)rintf(v) + e.w.za) ^ e.w.flip_a);
    }
    e.a = x;
    e.c = actual;
    e.k = s->t->u8;
    call(&e);
    ck_same(s, expected, actual, e.n, shape);
}

static void check_dequantize(ck_state *s) {
    ew_case e = {.which = 4, .n = (size_t)ck_between(s, 1, 300), .scale = ck_real(s, 0, 3)};
    char shape[64];
    e.w.za = ck_between(s, 0, 255);
    e.w.flip_a = ck_between(s, 0, 1) ? 0x80 : 0;
    const uint8_t *x = ck_input(s, e.n);
    float *expected = ck_output(s, 4 * e.n), *actual = ck_output(s, 4 * e.n);
    snprintf(shape, sizeof(shape), "n %zu", e.n);
    for (size_t i = 0; i < e.n; i++)
        expected[i] = (float)((x[i] ^ e.w.flip_a) - e.w.za) * e.scale;
    e.a = x;
    e.c = actual;
    e.k = s->t->u8;
    call(&e);
    ck_same(s, expected, actual, 4 * e.n, shape);
}

static void bench_bytes(ck_state *s, int which) {
    ew_case e = {.which = which,
                 .n = 50000,
                 .k = s->t->u8,
                 .rows = 1,
                 .table = ck_input(s, 1024),
                 .scale = 0.0123f,
                 .w = {.za = 128}};
    e.a = which == 3 ? (const void *)ck_floats(s, e.n, -2, 2) : ck_input(s, e.n);
    e.c = ck_output(s, which == 4 || which == 6 ? 4 * e.n : e.n);
    ck_time(s, "n 50000", 0, (double)e.n * (which == 2 || which == 5 ? 2 : 5), call, &e);
}

static void bench_interleave(ck_state *s) {
    bench_bytes(s, 5);
}
static void bench_lookup(ck_state *s) {
    bench_bytes(s, 6);
}
static void bench_table(ck_state *s) {
    bench_bytes(s, 2);
}
static void bench_quantize(ck_state *s) {
    bench_bytes(s, 3);
}
static void bench_dequantize(ck_state *s) {
    bench_bytes(s, 4);
}

const ck_case ck_cases_u8[] = {
    {"u8 add", check_add, bench_add},
    {"u8 mul", check_mul, bench_mul},
    {"u8 scale", check_scale, bench_scale},
    {"u8 piecewise", check_piecewise, bench_piecewise},
    {"u8 table", check_table, bench_table},
    {"u8 lookup", check_lookup, bench_lookup},
    {"u8 interleave", check_interleave, bench_interleave},
    {"u8 shuffle", check_shuffle, bench_shuffle},
    {"shuffle 32", check_shuffle32, bench_shuffle32},
    {"transpose 8", check_transpose8, bench_transpose8},
    {"transpose 32", check_transpose32, bench_transpose32},
    {"u8 quantize", check_quantize, bench_quantize},
    {"u8 dequantize", check_dequantize, bench_dequantize},
};
const size_t ck_cases_u8_count = QS_COUNT(ck_cases_u8);
