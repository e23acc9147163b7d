/* SPDX-License-Identifier: MIT */
#include "op/nn/float_jobs.h"

#include "kernel/u8.h"

/* A multiple of the rows of many tiles. */
#define ROWS ((size_t)24)
/* Terms of a sum that kernels compute at once; weights that a part of a longer sum reads. */
#define MOST_TERMS  ((size_t)1 << 20)
#define PART_FLOATS ((size_t)1 << 23)
/* Work beside multiply-accumulates, in units of them: to store an output, to find a segment, and
 * for lanes that a narrow panel leaves empty. */
#define STORE  ((size_t)96)
#define FIND   ((size_t)6)
#define NARROW ((size_t)8)

/* Most multiply-accumulates that a kernel does at once; the C kernel, `part`, takes longer. */
static size_t most_macs(const qk_f32 *k) {
    return k->gemm == k->part ? QS_CHECK_MACS / 16 : QS_CHECK_MACS;
}

/* The work of one output. */
static size_t work_of(const qk_gemm_f32 *g) {
    return g->segs * (g->k + FIND) + STORE;
}

/* Computes the sums of one row and one panel, some terms at a time. */
QS_COLD static void long_sums(const qsim_ctx *ctx, const qk_f32 *k, const qk_gemm_f32 *g) {
    const size_t width = qk_panel_width(k->panel, g->cols, 0), most = PART_FLOATS / width;
    const size_t segs = most / (g->k + FIND) + 1; /* whole segments, or a part of one */
    qk_gemm_f32 part = *g;
    part.panel = k->panel;
    for (size_t s = 0, i = 0; s < g->segs && !qs_stop_code(ctx);) {
        part.a = g->a + i;
        part.seg = g->seg + s;
        part.at = g->at ? g->at + s : NULL;
        part.b = g->b + (g->at ? i : s * g->k + i) * (g->b_row ? g->b_row : width);
        part.segs = segs < g->segs - s ? segs : g->segs - s;
        part.k = g->k - i < most ? g->k - i : most;
        i = i + part.k < g->k ? i + part.k : 0;
        s += i ? 0 : part.segs;
        part.open = g->open || s < g->segs;
        k->part(&part);
        part.begun = true;
    }
}

/* Computes the rows of one panel. */
QS_COLD static void long_panel(const qsim_ctx *ctx, const qk_f32 *k, const qk_gemm_f32 *g) {
    const size_t terms = g->segs * g->k;
    const size_t floats = work_of(g) * (qk_panel_width(k->panel, g->cols, 0) + NARROW);
    const size_t share = most_macs(k) / floats;
    const size_t some = share < ROWS ? share + 1 : share / ROWS * ROWS;
    const size_t rows = terms > MOST_TERMS ? 1 : some;
    qk_gemm_f32 part = *g;
    for (size_t r = 0; r < g->rows && !qs_stop_code(ctx); r += rows) {
        part.rows = g->rows - r < rows ? g->rows - r : rows;
        part.row = g->row + r;
        part.out = g->out ? g->out + r : NULL;
        part.c = g->c + (g->out ? 0 : r * g->ldc);
        if (terms > MOST_TERMS)
            long_sums(ctx, k, &part);
        else
            k->gemm(&part);
    }
}

QS_COLD static void long_gemm(const qsim_ctx *ctx, const qk_f32 *k, const qk_gemm_f32 *g) {
    const size_t panel = k->panel;
    const double share = qs_real(most_macs(k)) / (qs_real(g->rows) * qs_real(work_of(g)));
    const bool one = share < qs_real(panel) || g->segs * g->k > MOST_TERMS;
    const size_t cols = one ? panel : qs_whole(share) / panel * panel;
    qk_gemm_f32 part = *g;
    for (size_t col = 0; col < g->cols && !qs_stop_code(ctx); col += cols) {
        part.cols = g->cols - col < cols ? g->cols - col : cols;
        part.b = qk_gemm_column(g, col);
        part.bias = g->bias + col;
        part.c = g->c + col;
        if (one)
            long_panel(ctx, k, &part);
        else
            k->gemm(&part);
    }
}

void qs_gemm_f32(const qsim_ctx *ctx, const qk_f32 *k, const qk_gemm_f32 *g) {
    const double macs = qs_real(g->rows) * qs_real(work_of(g)) * qs_real(g->cols + NARROW);
    if (macs > (double)most_macs(k) || g->segs * g->k > MOST_TERMS)
        long_gemm(ctx, k, g);
    else
        k->gemm(g);
}

/* Floats packed between two checks for a stop. */
#define PACKED ((size_t)1 << 20)

/* Whether a kernel transposes panels: terms are adjacent, columns apart, floats aligned. */
static bool is_transpose(const qk_u8 *k, const qk_pack_source *s) {
    return k->transpose32 != qk_transpose32_c && s->inner == 1 && s->outer_step == 1 &&
           s->col_step > 1 && (uintptr_t)s->src % sizeof(float) == 0;
}

/* Packs n columns; panels without zeros to fill in are transposes. */
static void pack_transposed(const qsim_ctx *ctx, float *packed, size_t k, size_t n,
                            const qk_pack_source *source) {
    const size_t panel = ctx->kernels->f32->panel;
    qk_pack_source rest = *source;
    const float *src = source->src;
    size_t width;
    while (n > 0 && (width = qk_panel_width(panel, n, 0)) <= n) {
        ctx->kernels->u8->transpose32(src, (size_t)rest.col_step, packed, k, width);
        packed += width * k;
        src += width * (size_t)rest.col_step;
        n -= width;
    }
    rest.src = src;
    qk_pack_f32(packed, panel, k, n, &rest);
}

void qs_pack_f32(const qsim_ctx *ctx, float *packed, size_t k, size_t cols,
                 const qk_pack_source *source, bool flush) {
    const size_t panel = ctx->kernels->f32->panel, piece = (PACKED / (panel * k + 1) + 1) * panel;
    const bool matrix = source->inner == 1 || source->inner == k;
    const size_t most = piece > panel || !matrix ? k + 1 : PACKED / panel;
    qk_pack_source s = *source;
    if (matrix) {
        s.outer_step = s.inner == 1 ? s.outer_step : s.inner_step;
        s.inner = 1;
    }
    const bool transposes = is_transpose(ctx->kernels->u8, &s);
    for (size_t col = 0; col < cols; col += piece) {
        const size_t n = cols - col < piece ? cols - col : piece;
        const size_t width = qk_panel_width(panel, n, 0);
        for (size_t i = 0; i < k && !qs_stop_code(ctx); i += most) { /* terms of one panel */
            const ptrdiff_t at = (ptrdiff_t)col * s.col_step + (ptrdiff_t)i * s.outer_step;
            s.src = (const uint8_t *)source->src + at * (ptrdiff_t)sizeof(float);
            const size_t terms = k - i < most ? k - i : most;
            float *to = packed + col * k + i * width;
            if (transposes)
                pack_transposed(ctx, to, terms, n, &s);
            else
                qk_pack_f32(to, panel, terms, n, &s);
            if (flush)
                qk_flush_denormals(to, ((n + 7) & ~(size_t)7) * terms);
        }
    }
}

/* Divides a job into halves by lines, pixels or channels; false: there is but one of each. */
QS_COLD static bool halves(const qk_depthwise_f32 *d, qk_depthwise_f32 *a, qk_depthwise_f32 *b) {
    *a = *b = *d;
    if (d->lines > 1) {
        a->lines /= 2;
        b->lines -= a->lines;
        b->a += (ptrdiff_t)a->lines * d->line_step;
        b->c += (ptrdiff_t)a->lines * d->out_line;
        a->cut.bottom = b->cut.top = false;
    } else if (d->pixels >= 2 * QK_DEPTHWISE_3X3_LEAST) {
        a->pixels /= 2;
        b->pixels -= a->pixels;
        b->a += (ptrdiff_t)a->pixels * d->pixel_step;
        b->c += (ptrdiff_t)a->pixels * d->out_pixel;
        a->cut.right = b->cut.left = false;
    } else {
        a->channels = qs_align(d->channels / 2, 16);
        if (a->channels >= d->channels)
            return false;
        b->channels -= a->channels;
        b->a += a->channels;
        b->w += a->channels;
        b->bias += a->channels;
        b->c += a->channels;
    }
    return true;
}

void qs_depthwise_f32(const qsim_ctx *ctx, void (*kernel)(const qk_depthwise_f32 *d),
                      const qk_depthwise_f32 *d) {
    /* With few channels the C kernel takes little less time than with eight. */
    const double outputs = qs_real(d->lines) * qs_real(d->pixels) * qs_real(d->channels + 6);
    const double macs = outputs * qs_real(d->down * d->across + 4);
    qk_depthwise_f32 a, b;
    if (macs <= (double)most_macs(ctx->kernels->f32) || !halves(d, &a, &b)) {
        kernel(d);
    } else if (!qs_stop_code(ctx)) {
        qs_depthwise_f32(ctx, kernel, &a);
        qs_depthwise_f32(ctx, kernel, &b);
    }
}
