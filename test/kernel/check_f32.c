/* SPDX-License-Identifier: MIT */
/* Float kernels against plain loops in the same order of sums, bit for bit. */
#include "checkkernel.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernel/f32.h"

static size_t size_between(ck_state *s, int32_t least, int32_t greatest) {
    return (size_t)ck_between(s, least, greatest);
}

static float clamp(float v, float lo, float hi) {
    v = v < lo ? lo : v;
    return v > hi ? hi : v;
}

/* ---- products ---- */

typedef struct product {
    size_t m, n, segs, k, a_floats;
    size_t depth;       /* number of rows of w */
    const float *a, *w; /* w: [depth][n] */
    const float *bias;
    ptrdiff_t *row, *seg, *out; /* out and at: NULL or scattered */
    size_t *at;
    float *packed, *c;
    qk_gemm_f32 g;
    const qk_f32 *t;
} product;

static void make_product(ck_state *s, product *p) {
    p->g.lo = ck_between(s, 0, 2) ? -INFINITY : ck_real(s, -1.0f, 0.0f);
    p->g.hi = ck_between(s, 0, 2) ? INFINITY : ck_real(s, 0.0f, 2.0f);
    p->row = ck_output(s, p->m * sizeof(ptrdiff_t));
    p->seg = ck_output(s, p->segs * sizeof(ptrdiff_t));
    p->a_floats = p->m * p->k + p->segs * p->k + p->k;
    p->a = ck_floats(s, p->a_floats, -2.0f, 2.0f);
    p->w = ck_floats(s, p->depth * p->n, -1.0f, 1.0f);
    float *bias = ck_floats(s, qs_align(p->n, 64), -1.0f, 1.0f);
    p->bias = bias;
    for (size_t i = 0; i < p->m; i++)
        p->row[i] = (ptrdiff_t)size_between(s, 0, (int32_t)(p->m * p->k));
    for (size_t i = 0; i < p->segs; i++)
        p->seg[i] = (ptrdiff_t)size_between(s, 0, (int32_t)(p->segs * p->k));
}

static void pack_product(ck_state *s, product *p, const qk_f32 *t, float *c, size_t ldc) {
    size_t floats = 0;
    qk_pack_f32_size(t->panel, p->depth, p->n, &floats);
    p->packed = ck_floats(s, floats, -1.0f, 1.0f);
    const qk_pack_source source = {p->w, 1, (ptrdiff_t)p->n, 0, 1};
    qk_pack_f32(p->packed, t->panel, p->depth, p->n, &source);
    p->t = t;
    p->g = (qk_gemm_f32){.a = p->a,
                         .row = p->row,
                         .seg = p->seg,
                         .rows = p->m,
                         .segs = p->segs,
                         .k = p->k,
                         .b = p->packed,
                         .bias = p->bias,
                         .cols = p->n,
                         .lo = p->g.lo,
                         .hi = p->g.hi,
                         .c = c,
                         .ldc = ldc,
                         .out = p->out,
                         .at = p->at,
                         .depth = p->depth};
}

static float product_at(const product *p, size_t i, size_t j) {
    float acc = 0.0f;
    for (size_t t = 0; t < p->segs * p->k; t++) {
        const size_t segment = t / p->k, first = p->at ? p->at[segment] : segment * p->k;
        const float *a = p->a + p->row[i] + p->seg[segment];
        acc = fmaf(a[t % p->k], p->w[(first + t % p->k) * p->n + j], acc);
    }
    acc += p->bias[j];
    return clamp(acc, p->g.lo, p->g.hi);
}

/* As at an image's border: segments use any rows of w, every other output is elsewhere. */
static void scatter_product(ck_state *s, product *p, size_t ldc) {
    p->at = ck_output(s, p->segs * sizeof(size_t));
    p->out = ck_output(s, p->m * sizeof(ptrdiff_t));
    for (size_t i = 0; i < p->segs; i++)
        p->at[i] = size_between(s, 0, (int32_t)(p->depth - p->k));
    for (size_t i = 0; i < p->m; i++)
        p->out[i] = (ptrdiff_t)((i < p->m / 2 ? i : p->m - 1 - (i - p->m / 2)) * ldc);
}

/* Runs the segments in several jobs, with sums in the output; the first or last may be empty. */
static void run_in_parts(ck_state *s, const product *p) {
    qk_gemm_f32 g = p->g;
    size_t done = 0;
    do {
        g.seg = p->seg + done;
        g.at = p->at + done;
        g.segs = size_between(s, 0, (int32_t)(p->segs - done));
        done += g.segs;
        g.open = done < p->segs || ck_between(s, 0, 1);
        g.next = ck_between(s, 0, 1) ? p->packed : NULL;
        g.next_floats = g.next ? p->depth * p->n : 0;
        p->t->gemm(&g);
        g.begun = true;
    } while (g.open);
}

/* Weights that are read as they lie: columns of a matrix, a multiple of 8. */
static void place_product(ck_state *s, product *p) {
    const size_t step = p->n + size_between(s, 0, 40);
    float *b = ck_floats(s, (p->depth - 1) * step + p->n, -1.0f, 1.0f);
    for (size_t i = 0; i < p->depth; i++)
        memcpy(b + i * step, p->w + i * p->n, p->n * sizeof(*b));
    p->g.b = b;
    p->g.b_row = step;
}

typedef enum product_kind {
    ANY,
    LINES,  /* rows are one element apart, like the pixels of a one-channel image */
    PARTS,  /* one panel, with adjacent weights, in several jobs */
    MATRIX, /* unpacked weights */
} product_kind;

static void check_product(ck_state *s, product_kind kind) {
    const bool in_line = kind == LINES, in_parts = kind == PARTS;
    product p = {.m = size_between(s, 1, in_line ? 90 : 40),
                 .n = size_between(s, 1, in_line ? 10 : 150)};
    p.n = in_parts ? s->t->f32->panel : kind == MATRIX ? qs_align(p.n, 8) : p.n;
    p.segs = size_between(s, 1, 5);
    p.k = size_between(s, 1, in_parts ? 90 : 40);
    const bool scattered = in_parts || ck_between(s, 0, 1);
    p.depth = p.segs * p.k + (scattered ? size_between(s, 0, 20) : 0);
    make_product(s, &p);
    const size_t line = size_between(s, 1, 70);
    for (size_t i = 0; i < p.m && in_line; i++)
        p.row[i] = (ptrdiff_t)(i % line + i / line * 3 % p.k);
    const size_t ldc = p.n + size_between(s, 0, 9), floats = (p.m - 1) * ldc + p.n;
    float *expected = ck_output(s, floats * sizeof(float));
    float *actual = ck_output(s, floats * sizeof(float));
    if (scattered)
        scatter_product(s, &p, ldc);
    for (size_t i = 0; i < p.m; i++)
        for (size_t j = 0; j < p.n; j++)
            expected[(p.out ? (size_t)p.out[i] : i * ldc) + j] = product_at(&p, i, j);
    pack_product(s, &p, s->t->f32, actual, ldc);
    if (kind == MATRIX)
        place_product(s, &p);
    if (in_parts)
        run_in_parts(s, &p);
    else
        s->t->f32->gemm(&p.g);
    char text[96];
    snprintf(text, sizeof(text), "%zux%zu, %zu segments of %zu", p.m, p.n, p.segs, p.k);
    ck_same(s, expected, actual, floats * sizeof(float), text);
    if (s->t->isa != QSIM_ISA_C)
        return;
    float *plain = ck_output(s, floats * sizeof(float)); /* without FMA3 instructions */
    pack_product(s, &p, &qk_f32_c, plain, ldc);
    if (kind == MATRIX)
        place_product(s, &p);
    qk_f32_c.gemm(&p.g);
    ck_same(s, expected, plain, floats * sizeof(float), text);
}

static void check_gemm(ck_state *s) {
    check_product(s, ANY);
}
static void check_lines(ck_state *s) {
    check_product(s, LINES);
}
static void check_parts(ck_state *s) {
    if (s->t->f32->parts)
        check_product(s, PARTS);
}
static void check_matrix(ck_state *s) {
    check_product(s, MATRIX);
}

static void call_gemm(void *arg) {
    const product *p = arg;
    p->t->gemm(&p->g);
}

/* Rows in lines of `line` pixels, `step` floats apart; lines and segments `pitch` floats apart. */
static void bench_product(ck_state *s, const char *text, size_t m, size_t n, size_t segs, size_t k,
                          size_t line, size_t pitch, size_t step) {
    product p = {.m = m, .n = n, .segs = segs, .k = k, .depth = segs * k};
    p.g.lo = -INFINITY;
    p.g.hi = INFINITY;
    p.row = ck_output(s, m * sizeof(ptrdiff_t));
    p.seg = ck_output(s, segs * sizeof(ptrdiff_t));
    for (size_t i = 0; i < m; i++)
        p.row[i] = (ptrdiff_t)(i / line * pitch + i % line * step);
    for (size_t i = 0; i < segs; i++)
        p.seg[i] = (ptrdiff_t)(i * pitch);
    p.a = ck_floats(s, (size_t)p.row[m - 1] + (size_t)p.seg[segs - 1] + k, -1.0f, 1.0f);
    p.w = ck_floats(s, segs * k * n, -1.0f, 1.0f);
    p.bias = ck_floats(s, qs_align(n, 64), -1.0f, 1.0f);
    pack_product(s, &p, s->t->f32, ck_output(s, m * n * sizeof(float)), n);
    ck_time(s, text, (double)(m * n) * (double)(segs * k), 4.0 * (double)(m * n), call_gemm, &p);
}

static void bench_gemm(ck_state *s) {
    bench_product(s, "256x256x256", 256, 256, 1, 256, 1, 256, 0);
    bench_product(s, "3x3 64->64 @56", 56 * 56, 64, 3, 192, 56, 58 * 64, 64);
    bench_product(s, "1x1 64->256 @56", 56 * 56, 256, 1, 64, 56 * 56, 0, 64);
    bench_product(s, "7x7 s2 3->64 @224", 112 * 28, 64, 7, 21, 112, 230 * 3, 6);
    bench_product(s, "3x3 s2 3->32 @224", 112 * 28, 32, 3, 9, 112, 450 * 3, 6);
    bench_product(s, "1x1 16->96 @112", 112 * 28, 96, 1, 16, 112 * 28, 0, 16);
    bench_product(s, "1x1 144->24 @56", 56 * 56, 24, 1, 144, 56 * 56, 0, 144);
    bench_product(s, "3x3 s2 3->8 @224", 112 * 28, 8, 3, 9, 112, 450 * 3, 6);
    bench_product(s, "5x5 1->8 @28", 24 * 24, 8, 5, 5, 24, 28, 1);
    bench_product(s, "5x5 8->16 @12", 8 * 8, 16, 5, 40, 8, 12 * 8, 8);
    bench_product(s, "1x256x64", 1, 64, 1, 256, 1, 256, 0);
    bench_product(s, "64x256x64", 64, 64, 1, 256, 1, 256, 0);
    bench_product(s, "1x1024x1024", 1, 1024, 1, 1024, 1, 1024, 0);
    bench_product(s, "1024x1024x1024, blocks of 120", 120, 1024, 1, 1024, 1, 1024, 0);
    bench_product(s, "32x4096x4096", 32, 4096, 1, 4096, 1, 4096, 0);
}

/* ---- depthwise ---- */

typedef struct depthwise {
    qk_depthwise_f32 d;
    const qk_f32 *t;
} depthwise;

/* Pixels in lines of `line`, `step` apart in an image; a window of across x down. */
typedef struct dw_shape {
    size_t line, pixels, channels, across, down, step;
} dw_shape;

static void make_depthwise(ck_state *s, depthwise *p, const dw_shape *z) {
    const size_t pitch = ((z->line - 1) * z->step + z->across) * z->channels;
    const size_t stride = qs_align(z->channels, 16), lines = z->pixels / z->line;
    const size_t floats = ((lines - 1) * z->step + z->down) * pitch;
    float *w = ck_floats(s, z->down * z->across * stride, -1.0f, 1.0f);
    for (size_t i = 0; i < z->down * z->across * stride; i++)
        if (i % stride >= z->channels)
            w[i] = 0.0f;
    p->d = (qk_depthwise_f32){.a = ck_floats(s, floats, -1.0f, 1.0f),
                              .lines = lines,
                              .pixels = z->line,
                              .line_step = (ptrdiff_t)(z->step * pitch),
                              .pixel_step = (ptrdiff_t)(z->step * z->channels),
                              .down = z->down,
                              .across = z->across,
                              .tap_down = (ptrdiff_t)pitch,
                              .tap_across = (ptrdiff_t)z->channels,
                              .channels = z->channels,
                              .stride = stride,
                              .w_down = z->across * stride,
                              .w = w,
                              .bias = ck_floats(s, stride, -1.0f, 1.0f),
                              .lo = ck_real(s, -2.0f, 0.0f),
                              .hi = ck_real(s, 0.0f, 2.0f),
                              .out_line = (ptrdiff_t)(z->line * z->channels),
                              .out_pixel = (ptrdiff_t)z->channels};
    if (s->t->f32->parts) /* like operators */
        p->d.stretch = z->step == 2 ? 2 : floats > 1 << 18 ? 4 : 0;
    p->t = s->t->f32;
}

static float depthwise_at(const qk_depthwise_f32 *d, size_t y, size_t x, size_t j) {
    const float *a = d->a + y * (size_t)d->line_step + x * (size_t)d->pixel_step + j;
    const size_t top = d->cut.top && y == 0, bottom = d->cut.bottom && y == d->lines - 1;
    const size_t left = d->cut.left && x == 0, right = d->cut.right && x == d->pixels - 1;
    float acc = 0.0f;
    for (size_t ky = top; ky < d->down - bottom; ky++)
        for (size_t kx = left; kx < d->across - right; kx++)
            acc = fmaf(a[ky * (size_t)d->tap_down + kx * (size_t)d->tap_across],
                       d->w[ky * d->w_down + kx * d->stride + j], acc);
    return clamp(acc + d->bias[j], d->lo, d->hi);
}

/* Like an image's border: fewer taps than weights, a line of outputs wider than pixels. */
static void cut_depthwise(ck_state *s, qk_depthwise_f32 *d) {
    d->across -= d->across > 1 && ck_between(s, 0, 1);
    d->down -= size_between(s, 0, (int32_t)d->down);
    d->out_line += (ptrdiff_t)d->channels * ck_between(s, 0, 3);
    if (ck_between(s, 0, 3) == 0) { /* dilation */
        d->across = (d->across + 1) / 2;
        d->tap_across *= 2;
    }
}

static void check_depthwise(ck_state *s) {
    depthwise p;
    const size_t line = size_between(s, 1, 25), lines = size_between(s, 1, 6);
    const int32_t most = ck_between(s, 0, 3) ? 5 : 17; /* kernels are made for 3 and 5 */
    const dw_shape shape = {line,
                            line * lines,
                            size_between(s, 1, 90),
                            size_between(s, 1, most),
                            size_between(s, 1, ck_between(s, 0, 1) ? 5 : most),
                            size_between(s, 1, 3)};
    make_depthwise(s, &p, &shape);
    qk_depthwise_f32 *d = &p.d;
    if (ck_between(s, 0, 1))
        cut_depthwise(s, d);
    const size_t floats = lines * (size_t)d->out_line;
    float *expected = ck_output(s, floats * sizeof(float));
    d->c = ck_output(s, floats * sizeof(float));
    for (size_t i = 0; i < lines * line * d->channels; i++) {
        const size_t y = i / d->channels / line, x = i / d->channels % line, j = i % d->channels;
        expected[y * (size_t)d->out_line + x * d->channels + j] = depthwise_at(d, y, x, j);
    }
    s->t->f32->depthwise(d);
    char text[96];
    snprintf(text, sizeof(text), "%zux%zu pixels, %zu channels, %zux%zu taps, step %zu", lines,
             line, d->channels, d->down, d->across, shape.step);
    ck_same(s, expected, d->c, floats * sizeof(float), text);
}

/* Elements outside the image are NaN: they must not count. */
static void cut_sides(ck_state *s, qk_depthwise_f32 *d, float *a) {
    const size_t height = (d->lines - 1) * (size_t)(d->line_step / d->tap_down) + 3;
    const size_t width = (size_t)(d->tap_down / d->tap_across);
    d->cut = (qk_cut){.top = ck_between(s, 0, 1),
                      .bottom = ck_between(s, 0, 1),
                      .left = ck_between(s, 0, 1),
                      .right = ck_between(s, 0, 1)};
    for (size_t i = 0; i < height * width; i++) {
        const size_t y = i / width, x = i % width;
        if ((d->cut.top && y == 0) || (d->cut.bottom && y == height - 1) ||
            (d->cut.left && x == 0) || (d->cut.right && x == width - 1))
            for (size_t j = 0; j < d->channels; j++)
                a[i * d->channels + j] = j % 2 ? NAN : INFINITY;
    }
}

static void check_depthwise_3x3(ck_state *s) {
    if (!s->t->f32->depthwise_3x3)
        return;
    depthwise p;
    const size_t line = size_between(s, QK_DEPTHWISE_3X3_LEAST, 30), lines = size_between(s, 1, 35);
    const dw_shape shape = {line, line * lines,         size_between(s, 1, 40), 3,
                            3,    size_between(s, 1, 2)};
    make_depthwise(s, &p, &shape);
    qk_depthwise_f32 *d = &p.d;
    const size_t floats = lines * line * d->channels, down = size_between(s, 1, 2);
    const size_t inputs = ((lines - 1) * down + 3) * (size_t)d->tap_down;
    d->line_step = (ptrdiff_t)down * d->tap_down;
    d->stretch = size_between(s, 0, 5);
    float *a = ck_floats(s, inputs, -1.0f, 1.0f);
    d->a = a;
    cut_sides(s, d, a);
    float *expected = ck_output(s, floats * sizeof(float));
    d->c = ck_output(s, floats * sizeof(float));
    for (size_t i = 0; i < floats; i++)
        expected[i] =
            depthwise_at(d, i / d->channels / line, i / d->channels % line, i % d->channels);
    s->t->f32->depthwise_3x3(d);
    char text[96];
    snprintf(text, sizeof(text), "%zux%zu pixels, %zu channels, steps %zu %zu, cut %d%d%d%d", lines,
             line, d->channels, down, shape.step, d->cut.top, d->cut.bottom, d->cut.left,
             d->cut.right);
    ck_same(s, expected, d->c, floats * sizeof(float), text);
}

static void call_depthwise(void *arg) {
    const depthwise *p = arg;
    p->t->depthwise(&p->d);
}

static void bench_depthwise(ck_state *s) {
    static const struct {
        size_t size, channels, kernel, step;
    } shapes[] = {{112, 32, 3, 1}, {56, 144, 3, 1}, {14, 384, 3, 1}, {7, 960, 3, 1},
                  {14, 240, 5, 1}, {56, 96, 3, 2},  {7, 576, 3, 2}};
    for (size_t i = 0; i < QS_COUNT(shapes); i++) {
        const size_t n = shapes[i].size, c = shapes[i].channels, k = shapes[i].kernel;
        depthwise p;
        const dw_shape shape = {n, n * n, c, k, k, shapes[i].step};
        make_depthwise(s, &p, &shape);
        p.d.c = ck_output(s, n * n * c * sizeof(float));
        char text[64];
        snprintf(text, sizeof(text), "%zux%zu s%zu %zu @%zu", k, k, shape.step, c, n * shape.step);
        ck_time(s, text, (double)(n * n * c * k * k), 4.0 * (double)(n * n * c), call_depthwise,
                &p);
    }
}

const ck_case ck_cases_f32[] = {
    {"gemm-f32", check_gemm, bench_gemm},
    {"gemm-f32-lines", check_lines, NULL},
    {"gemm-f32-parts", check_parts, NULL},
    {"gemm-f32-matrix", check_matrix, NULL},
    {"depthwise-f32", check_depthwise, bench_depthwise},
    {"depthwise-f32-3x3", check_depthwise_3x3, NULL},
};
const size_t ck_cases_f32_count = QS_COUNT(ck_cases_f32);
