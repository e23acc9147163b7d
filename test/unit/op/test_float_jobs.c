/* SPDX-License-Identifier: MIT */
/*
 * Jobs of float kernels that are computed in pieces: each sum against fused multiply-adds in the
 * order of its terms, for every instruction set; and none is computed once the context is stopped.
 */
#include "test.h"

#include <math.h>
#include <stdlib.h>

#include "kernel/context.h"
#include "op/nn/float_jobs.h"

static float small(size_t i) {
    return (float)(i * 2654435761u % 2001) / 1000.0f - 1.0f;
}

static float clamp(float v, float lo, float hi) {
    v = v < lo ? lo : v;
    return v > hi ? hi : v;
}

static qsim_ctx *context(int32_t isa) {
    const qsim_ctx_options o = {.struct_size = sizeof(o), .threads = 1, .isa = isa};
    qsim_ctx *ctx = NULL;
    return qsim_ctx_create(&o, &ctx, NULL) ? NULL : ctx;
}

/*
 * 2 rows of `segs` segments of k terms, 3 columns; 8 of a matrix whose rows are b_row apart. All
 * segments have the same weights and begin at an element of a of their own, so that many terms take
 * little memory.
 */
static void check_sums(const qsim_ctx *ctx, size_t segs, size_t k, bool at, size_t b_row) {
    enum { MOST = 8 };
    const size_t cols = b_row ? 8 : 3, width = b_row ? b_row : 8;
    const qk_f32 *table = ctx->kernels->f32;
    const ptrdiff_t row[] = {0, 1}, out[] = {(ptrdiff_t)cols, 0};
    float bias[64] = {0.5f, -0.25f, 1000.0f}, c[2 * MOST] = {0};
    float *a = malloc((k + 128) * sizeof(*a)), *b = calloc(k * width + QK_PACK_SLACK, sizeof(*b));
    ptrdiff_t *seg = malloc(segs * sizeof(*seg));
    size_t *rows = calloc(segs, sizeof(*rows));
    for (size_t i = 0; i < k + 128; i++)
        a[i] = small(i);
    for (size_t i = 0; i < k; i++)
        for (size_t j = 0; j < cols; j++)
            b[i * width + j] = small(i * cols + j + 7);
    for (size_t s = 0; s < segs; s++)
        seg[s] = (ptrdiff_t)(s % 50);
    const qk_gemm_f32 g = {.a = a,
                           .row = row,
                           .seg = seg,
                           .rows = 2,
                           .segs = segs,
                           .k = k,
                           .b = b,
                           .b_row = b_row,
                           .bias = bias,
                           .cols = cols,
                           .lo = -2000,
                           .hi = 900,
                           .c = c,
                           .out = out,
                           .at = at ? rows : NULL,
                           .depth = k};
    qs_gemm_f32(ctx, table, &g);
    for (size_t r = 0; r < 2; r++)
        for (size_t j = 0; j < cols; j++) {
            float sum = 0;
            for (size_t s = 0; s < segs; s++)
                for (size_t i = 0; i < k; i++)
                    sum = fmaf(a[r + s % 50 + i], b[i * width + j], sum);
            CHECK_NEAR(c[(1 - r) * cols + j], clamp(sum + bias[j], -2000, 900), 0);
        }
    memset(c, 0, sizeof(c));
    qsim_ctx_cancel((qsim_ctx *)(uintptr_t)ctx, 1);
    qs_gemm_f32(ctx, table, &g);
    qsim_ctx_cancel((qsim_ctx *)(uintptr_t)ctx, 0);
    for (size_t i = 0; i < 2 * cols; i++)
        CHECK_NEAR(c[i], 0, 0);
    free(a), free(b), free(seg), free(rows);
}

/*
 * `rows` pixels of k terms by columns of several panels: pieces of columns and of rows. The matrix
 * lies by rows or by columns; one by rows is also used as it lies.
 */
static void check_matrix(const qsim_ctx *ctx, size_t rows, size_t k, size_t cols, bool by_columns) {
    const size_t panel = ctx->kernels->f32->panel;
    size_t floats = 0;
    CHECK(qk_pack_f32_size(panel, k, cols, &floats));
    float *src = malloc(k * cols * sizeof(*src)), *b = malloc(floats * sizeof(*b));
    float *a = malloc((k + rows + 16) * sizeof(*a)), *c = malloc(rows * cols * sizeof(*c));
    float *bias = calloc(cols + 64, sizeof(*bias));
    ptrdiff_t *row = malloc(rows * sizeof(*row));
    for (size_t i = 0; i < k * cols; i++)
        src[i] = small(i);
    for (size_t i = 0; i < k + rows + 16; i++)
        a[i] = small(3 * i);
    for (size_t r = 0; r < rows; r++)
        row[r] = (ptrdiff_t)r;
    const size_t down = by_columns ? 1 : cols, across = by_columns ? k : 1;
    const qk_pack_source source = {src, 1, (ptrdiff_t)down, 0, (ptrdiff_t)across};
    qs_pack_f32(ctx, b, k, cols, &source, false);
    qk_gemm_f32 g = {.a = a,
                     .row = row,
                     .seg = (const ptrdiff_t[]){0},
                     .rows = rows,
                     .segs = 1,
                     .k = k,
                     .b = b,
                     .bias = bias,
                     .cols = cols,
                     .lo = -INFINITY,
                     .hi = INFINITY,
                     .c = c,
                     .ldc = cols};
    for (int in_place = 0; in_place <= (!by_columns && cols % 8 == 0); in_place++) {
        memset(c, 0, rows * cols * sizeof(*c));
        qs_gemm_f32(ctx, ctx->kernels->f32, &g);
        g.b = src;
        g.b_row = cols;
        for (size_t n = 0; n < 400; n++) { /* the last ones, and some of all */
            const size_t at = n < 200 ? rows * cols - 1 - n : n * 7919 % (rows * cols);
            float sum = 0;
            for (size_t i = 0; i < k; i++)
                sum = fmaf(a[at / cols + i], src[i * down + at % cols * across], sum);
            CHECK_NEAR(c[at], sum + 0.0f, 0);
        }
    }
    free(src), free(b), free(a), free(c), free(bias), free(row);
}

/* Lines, pixels and channels of which each piece has but a part. Taps share a line of weights. */
static void check_depthwise(const qsim_ctx *ctx, size_t lines, size_t pixels, size_t channels,
                            size_t down) {
    enum { ACROSS = 128, STRIDE = 48 };
    float a[16 * STRIDE], w[ACROSS * STRIDE], bias[STRIDE] = {0};
    float *c = calloc(lines * pixels * STRIDE, sizeof(*c));
    for (size_t i = 0; i < QS_COUNT(a); i++)
        a[i] = small(i);
    for (size_t i = 0; i < QS_COUNT(w); i++)
        w[i] = i % STRIDE < channels ? small(5 * i) : 0;
    const qk_depthwise_f32 d = {.a = a,
                                .lines = lines,
                                .pixels = pixels,
                                .line_step = STRIDE,
                                .pixel_step = 1,
                                .down = down,
                                .across = ACROSS,
                                .channels = channels,
                                .stride = STRIDE,
                                .w = w,
                                .bias = bias,
                                .lo = -INFINITY,
                                .hi = INFINITY,
                                .c = c,
                                .out_line = (ptrdiff_t)(pixels * STRIDE),
                                .out_pixel = STRIDE};
    qs_depthwise_f32(ctx, ctx->kernels->f32->depthwise, &d);
    for (size_t i = 0; i < lines * pixels * STRIDE; i += 11) {
        const size_t j = i % STRIDE, x = i / STRIDE % pixels, y = i / STRIDE / pixels;
        float sum = 0;
        for (size_t t = 0; t < down * ACROSS && j < channels; t++)
            sum = fmaf(a[y * STRIDE + x + j], w[t % ACROSS * STRIDE + j], sum);
        CHECK_NEAR(c[i], sum, 0);
    }
    free(c);
}

int main(void) {
    for (int32_t isa = QSIM_ISA_C; isa <= QSIM_ISA_AMX; isa++) {
        qsim_ctx *ctx = qsim_isa_available(isa) ? context(isa) : NULL;
        if (!ctx)
            continue;
        check_sums(ctx, 8300, 1024, true, 0); /* 8.5 million terms, whole segments at a time */
        check_sums(ctx, 1, 8500001, false, 0);
        check_sums(ctx, 8, 1100003, true, 0); /* a segment in parts */
        check_sums(ctx, 1, 1100003, false, 24);
        check_matrix(ctx, 131, 4099, 200, false);
        check_matrix(ctx, 1501, 1031, 67, false);
        check_matrix(ctx, 131, 4099, 200, true);
        check_matrix(ctx, 5, 70003, 72, true); /* a panel in parts */
        check_depthwise(ctx, 5, 9, 40, 512);
        check_depthwise(ctx, 1, 2, 48, 8192);
        qsim_ctx_free(ctx);
    }
    return test_done();
}
