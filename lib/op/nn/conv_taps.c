/* SPDX-License-Identifier: MIT */
#include "op/nn/conv_taps.h"

#include "op/nn/float_jobs.h"

/* Floats of weights that exceed the second-level cache beside other data: half a megabyte. */
#define FAR_FLOATS ((size_t)128 * 1024)
/* Fewest channels: each tap loads and stores all sums. */
#define LEAST_CHANNELS ((size_t)64)

qs_tap_span qs_taps_inside(size_t at, size_t before, size_t taps, size_t dilation, size_t size) {
    qs_tap_span s = {0, 0};
    if (at < before)
        s.from = (before - at + dilation - 1) / dilation;
    if (size + before > at)
        s.to = (size + before - at - 1) / dilation + 1;
    s.to = s.to < taps ? s.to : taps;
    return s.from < s.to ? s : (qs_tap_span){0, 0};
}

bool qs_taps_suit(const qk_f32 *k, const qs_conv_form *f, const qs_geometry *g) {
    return k->parts && f->groups == 1 && !f->depthwise && f->cg >= LEAST_CHANNELS &&
           f->mg % k->panel == 0 && f->floats >= FAR_FLOATS && g->n * g->oh * g->ow > 0;
}

/* ---- tables ---- */

static bool make_column(qs_arena *arena, const qs_taps *t, size_t kx, size_t lines,
                        qs_tap_column *c) {
    const qs_geometry *g = t->g;
    for (size_t ox = 0; ox < g->ow; ox++) {
        const qs_tap_span in = qs_taps_inside(ox * g->sw, g->left, t->form->kw, g->dw, g->w);
        if (kx < in.from || kx >= in.to)
            continue;
        c->ox = c->count ? c->ox : ox;
        c->count++;
    }
    const bool dense = c->count == g->ow;
    const size_t pixels = lines * c->count + 1; /* not 0: the table has to exist */
    c->row = qs_arena_alloc(arena, pixels, sizeof(*c->row));
    c->out = dense ? NULL : qs_arena_alloc(arena, pixels, sizeof(*c->out));
    if (!c->row || (!dense && !c->out))
        return false;
    for (size_t y = 0, i = 0; y < lines; y++)
        for (size_t x = 0; x < c->count; x++, i++) {
            c->row[i] = (ptrdiff_t)(y * g->sh * t->line + x * g->sw * g->c);
            if (!dense)
                c->out[i] = (ptrdiff_t)((y * g->ow + x) * t->stride);
        }
    return true;
}

QS_COLD bool qs_taps_make(qs_arena *arena, qs_taps *t, size_t lines) {
    const qs_geometry *g = t->g;
    t->inside = qs_arena_alloc(arena, g->oh, sizeof(*t->inside));
    t->columns = qs_arena_alloc(arena, t->form->kw, sizeof(*t->columns));
    if (!t->inside || !t->columns)
        return false;
    for (size_t oy = 0; oy < g->oh; oy++)
        t->inside[oy] = qs_taps_inside(oy * g->sh, g->top, t->form->kh, g->dh, g->h);
    for (size_t kx = 0; kx < t->form->kw; kx++)
        if (!make_column(arena, t, kx, lines, &t->columns[kx]))
            return false;
    return true;
}

/* ---- execution ---- */

/* Adds a tap to the sums of a panel, which begin at y. */
static void run_tap(const qsim_ctx *ctx, const qs_taps *t, const qs_taps_part *part,
                    qk_gemm_f32 *job, size_t ky, size_t kx, float *y) {
    const qs_geometry *g = t->g;
    const qs_tap_column *c = &t->columns[kx];
    size_t from = part->oy;
    while (from < part->end && (ky < t->inside[from].from || ky >= t->inside[from].to))
        from++;
    size_t to = from;
    while (to < part->end && ky >= t->inside[to].from && ky < t->inside[to].to)
        to++;
    if (from == to || c->count == 0)
        return;
    job->a = part->image + (from * g->sh + ky * g->dh - g->top) * t->line +
             (c->ox * g->sw + kx * g->dw - g->left) * g->c;
    job->row = c->row;
    job->out = c->out;
    job->rows = (to - from) * c->count;
    job->c = y + ((from - part->oy) * g->ow + c->ox) * t->stride;
    qs_gemm_f32(ctx, t->kernels, job);
}

/* Computes all taps of a panel, that of the job; next: weights to prefetch, or NULL. */
static void run_panel(const qsim_ctx *ctx, const qs_taps *t, const qs_taps_part *part,
                      qk_gemm_f32 job, const float *next) {
    const qs_conv_form *f = t->form;
    const size_t floats = f->cg * t->kernels->panel;
    qk_gemm_f32 all = job; /* all pixels without terms: begins the sums, and finishes them below */
    all.open = true;
    qs_gemm_f32(ctx, t->kernels, &all);
    job.segs = 1;
    job.begun = job.open = true;
    job.next_floats = floats;
    for (size_t tap = 0; tap < f->taps; tap++) {
        const bool last = tap + 1 == f->taps;
        job.b = all.b + tap * floats;
        job.next = last ? next : job.b + floats;
        job.next_floats = job.next ? floats : 0;
        run_tap(ctx, t, part, &job, tap / f->kw, tap % f->kw, all.c);
    }
    all.begun = true;
    all.open = false;
    qs_gemm_f32(ctx, t->kernels, &all);
}

void qs_taps_run(const qsim_ctx *ctx, const qs_taps *t, const qs_conv_weights *w,
                 const qs_taps_part *part) {
    const size_t last = part->first + part->columns;
    const size_t panel = t->kernels->panel, depth = t->form->taps * t->form->cg;
    qk_gemm_f32 job = {.a = part->image,
                       .row = t->columns->row,
                       .seg = (const ptrdiff_t[]){0},
                       .rows = (part->end - part->oy) * t->g->ow,
                       .k = t->form->cg,
                       .cols = panel,
                       .lo = t->lo,
                       .hi = t->hi,
                       .ldc = t->stride};
    for (size_t col = part->first; col < last; col += panel) {
        job.b = w->packed + col * depth;
        job.bias = w->bias + col;
        job.c = part->y + col;
        run_panel(ctx, t, part, job, col + panel < last ? job.b + panel * depth : NULL);
    }
}
