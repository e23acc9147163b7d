/* SPDX-License-Identifier: MIT */
/* Executes pools: rows of output pixels, divided among threads. */
#include "op/nn/pool.h"

#include <math.h>

#include "base/slices.h"
#include "base/waves.h"
#include "kernel/pool_window.h"
#include "kernel/table.h"
#include "kernel/u8.h"
#include "op/nn/window.h"

/* Bytes of the image that one kernel call reads, approximately. */
#define GROUP_BYTES ((size_t)8 * 1024)

/* Elements read between two checks for a stop, approximately. */
#define PIECE ((size_t)1 << 20)

typedef struct pool_job {
    const qsim_ctx *ctx; /* tells whether the run was stopped */
    const qs_pool_plan *p;
    const char *x;
    char *y;
    char *scratch;
    const uint8_t *table;
    const qk_u8 *bytes;
    qk_pool row;
    size_t first, count; /* rows of this wave */
} pool_job;

/* Number of window rows, of a window that begins at row `start`, that are before row `end`. */
static size_t taps_before(const qs_pool_plan *p, ptrdiff_t start, ptrdiff_t end) {
    const ptrdiff_t dh = (ptrdiff_t)p->dh;
    if (start + (ptrdiff_t)(p->kh - 1) * dh < end)
        return p->kh;
    return start >= end ? 0 : (size_t)((end - 1 - start) / dh) + 1;
}

/* Completes `r` for one output row; *first: the image's row of its first tap. */
static void pool_row(const qs_pool_plan *p, size_t oy, qk_pool *r, size_t *first) {
    const ptrdiff_t start = (ptrdiff_t)(oy * p->sh) - (ptrdiff_t)p->top, dh = (ptrdiff_t)p->dh;
    const size_t before = taps_before(p, start, (ptrdiff_t)p->h);
    size_t skip = start < 0 ? (size_t)((dh - 1 - start) / dh) : 0;
    skip = skip < before ? skip : before;
    r->kh = p->w ? before - skip : 0; /* an image without columns may have any number of rows */
    *first = r->kh ? (size_t)(start + (ptrdiff_t)skip * dh) : 0;
    r->count_rows = r->count_pads ? taps_before(p, start, (ptrdiff_t)(p->h + p->bottom)) : r->kh;
}

static size_t less(size_t a, size_t b) {
    return a > b ? a - b : 0;
}

/* Elements of a window that is computed here, as a kernel would not check for a stop for long. */
#define LONG  ((size_t)1 << 23)
#define LANES ((size_t)16)

static float element_at(const qs_pool_plan *p, const char *x, size_t at) {
    float f;
    if (p->element == 1)
        return (float)((const uint8_t *)x)[at];
    memcpy(&f, x + at * sizeof(f), sizeof(f));
    return f;
}

/* Computes channels [c, c + n) of one long window, with the bits of the C kernels. */
QS_COLD static void long_window(const pool_job *j, const qk_pool *r, const qk_window *w, size_t c,
                                size_t n, char *y) {
    const bool bytes = j->p->element == 1,
               max = bytes || j->p->kernel == j->ctx->kernels->f32->max_f32;
    const ptrdiff_t first = w->first * (ptrdiff_t)r->channels + (ptrdiff_t)c;
    float sum[LANES];
    size_t done = 0;
    for (size_t i = 0; i < n; i++)
        sum[i] = max && !bytes ? -INFINITY : 0;
    for (size_t ky = 0; ky < r->kh; ky++) {
        size_t at = (size_t)((ptrdiff_t)ky * r->row_step + first);
        for (size_t kx = 0; kx < w->count && !qs_stopped_at(j->ctx, done); kx++, done++) {
            for (size_t i = 0; i < n; i++) {
                const float v = element_at(j->p, r->x, at + i);
                sum[i] = !max ? sum[i] + v : v > sum[i] ? v : sum[i];
            }
            at += r->dw * r->channels;
        }
    }
    for (size_t i = 0; i < n; i++) {
        sum[i] = max ? sum[i] : sum[i] / (float)w->divisor;
        if (bytes)
            y[i] = (char)(uint8_t)sum[i];
        else
            memcpy(y + i * sizeof(float), &sum[i], sizeof(float));
    }
}

/* Computes outputs of long windows. */
QS_NOINLINE QS_COLD static void long_windows(const pool_job *j, const qk_pool *r) {
    const size_t element = j->p->element;
    qk_pool line = *r;
    for (size_t i = 0; i < r->lines; i++) {
        for (size_t ox = 0; ox < r->ow; ox++) {
            const qk_window w = qk_window_at(r, ox);
            for (size_t c = 0; c < r->channels; c += LANES)
                long_window(j, &line, &w, c, less(r->channels, c) < LANES ? r->channels - c : LANES,
                            (char *)line.y + (ox * r->y_step + c) * element);
        }
        line.x = (const char *)line.x + r->line_step * (ptrdiff_t)element;
        line.y = (char *)line.y + r->out_line * (ptrdiff_t)element;
    }
}

/* Averages of bytes have sums of 32 bits and so no long windows; vectors of bytes are fast. */
static void call_kernel(const pool_job *j, const qk_pool *r) {
    const bool vectors = j->p->element == 1 && j->p->kernel != qk_max_u8_c;
    const size_t most = (vectors ? 8 * LONG : LONG) / (r->channels + 3);
    if (r->kh * r->kw <= most || j->p->quantized)
        j->p->kernel(r);
    else
        long_windows(j, r);
}

/* Computes columns of an output row: in y, or in `scratch`, and copies them to y. */
QS_NOINLINE static void make_columns(const pool_job *j, qk_pool *r, char *scratch, char *y) {
    const qs_pool_plan *p = j->p;
    const size_t n = p->c * p->element, step = p->y_step * p->element;
    r->y = scratch ? scratch : y;
    call_kernel(j, r);
    if (j->table)
        j->bytes->table(j->table, r->y, n, (uint8_t *)y, step, n, r->ow);
    else if (scratch)
        qs_copy_rows(r->y, (ptrdiff_t)(p->pick ? n * p->pick : n), y, (ptrdiff_t)step, n,
                     p->pick ? p->ow : r->ow);
}

/* Computes output rows; a long one in pieces. */
QS_NOINLINE static void make_row(const pool_job *j, qk_pool *r, char *scratch, char *y) {
    const qk_pool whole = *r;
    const size_t most = PIECE / (j->p->c * (r->kh + 1) * (r->kw + 1)) + 1;
    if (r->lines > 1 || whole.ow <= most) {
        make_columns(j, r, scratch, y);
        return;
    }
    for (size_t at = 0; at < whole.ow && !qs_stopped(j->ctx); at += most) {
        r->ow = less(whole.ow, at) < most ? whole.ow - at : most;
        r->left = whole.left - (ptrdiff_t)(at * whole.sw);
        r->inside = less(whole.inside, at);
        r->inside_end = less(whole.inside_end, at) < r->ow ? less(whole.inside_end, at) : r->ow;
        make_columns(j, r, scratch, y + at * j->p->y_step * j->p->element);
    }
    *r = whole;
}

/* Computes maxima along the input rows of `count` output rows; returns the first input row. */
static size_t join_rows(const pool_job *j, const char *image, size_t oy, size_t count, char *to) {
    const qs_pool_plan *p = j->p;
    const size_t line = p->w * p->c * p->element, above = oy * p->sh;
    const size_t first = above < p->top ? 0 : above - p->top;
    size_t end = above + (count - 1) * p->sh + (p->kh - 1) * p->dh + 1;
    end = end < p->top ? 0 : end - p->top;
    end = end < p->h ? end : p->h;
    qk_pool r = p->along;
    const size_t lines = first < end ? end - first : 0;
    const size_t most = PIECE / (p->c * r.ow * (r.kw + 1)) + 1;
    for (size_t i = 0; i < lines && !qs_stopped(j->ctx); i += r.lines) {
        r.lines = lines - i < most ? lines - i : most;
        r.x = image + (first + i) * line;
        r.y = to + i * p->ow * p->c * p->element;
        call_kernel(j, &r);
    }
    return first;
}

/* Output rows, of `left` from oy on, for one kernel call: their input stays in the cache. */
static size_t rows_at_once(const qs_pool_plan *p, size_t oy, size_t left) {
    if (oy < p->whole || oy >= p->whole_end)
        return 1;
    const size_t bytes = (size_t)p->row.line_step * p->element, most = GROUP_BYTES / bytes + 1;
    left = left < p->whole_end - oy ? left : p->whole_end - oy;
    return left < most ? left : most;
}

static void pool_slice(void *arg, size_t slice) {
    const pool_job *j = arg;
    const qs_pool_plan *p = j->p;
    char *const own = j->scratch + slice * (p->line + p->band_bytes);
    char *const scratch = p->line ? own : NULL;
    const size_t most = p->band ? p->band : p->oh;
    const size_t line = (p->band ? p->ow : p->w) * p->c * p->element;
    const size_t end = j->first + qs_slice_begin(j->count, p->slices, slice + 1);
    qk_pool r = j->row;
    for (size_t i = j->first + qs_slice_begin(j->count, p->slices, slice), stop;
         i < end && !qs_stopped(j->ctx);) {
        const char *x = j->x + i / p->oh * p->h * p->w * p->c * p->element;
        size_t oy = i % p->oh, skipped = 0, first = 0;
        stop = i + (p->oh - oy < most ? p->oh - oy : most);
        stop = stop < end ? stop : end;
        if (p->band) {
            skipped = join_rows(j, x, oy, stop - i, own + p->line);
            x = own + p->line;
        }
        for (; i < stop && !qs_stopped(j->ctx); i += r.lines, oy += r.lines) {
            pool_row(p, oy, &r, &first);
            r.lines = rows_at_once(p, oy, stop - i);
            r.x = r.kh ? x + (first - skipped) * line : x;
            if (p->band) {
                r.kw = r.kh;
                r.kh = 1;
            }
            make_row(j, &r, scratch, j->y + (i * p->ow * p->y_step + p->column) * p->element);
        }
    }
}

/* Index of the first greatest element of one window in [N, C, H, W]. */
static int64_t index_of(const qsim_ctx *ctx, const qs_pool_plan *p, const char *x, size_t image,
                        size_t c, size_t oy, size_t ox) {
    qk_pool r = p->row;
    size_t first = 0, best_y = 0, best_x = 0, taps = 0;
    float best = -INFINITY;
    bool found = false;
    pool_row(p, oy, &r, &first);
    const ptrdiff_t left = (ptrdiff_t)(ox * r.sw) - r.left;
    for (size_t ky = 0; ky < r.kh; ky++) {
        for (size_t kx = 0; kx < r.kw && !qs_stopped_at(ctx, taps); kx++, taps++) {
            const ptrdiff_t column = left + (ptrdiff_t)(kx * r.dw);
            if (column < 0 || column >= (ptrdiff_t)p->w)
                continue;
            const size_t iy = first + ky * p->dh, ix = (size_t)column;
            const float v = element_at(p, x, ((image * p->h + iy) * p->w + ix) * p->c + c);
            if (!found || v > best) {
                best = v;
                best_y = iy;
                best_x = ix;
            }
            found = true;
        }
    }
    const size_t plane = (image * p->c + c) * p->h * p->w;
    return (int64_t)(plane + (p->column_major ? best_x * p->h + best_y : best_y * p->w + best_x));
}

static void write_indices(const qsim_ctx *ctx, const qs_pool_plan *p, const char *x,
                          int64_t *indices) {
    const size_t taps = p->kh * p->row.kw + 1;
    for (size_t i = 0, done = 0; i < p->n * p->c * p->oh * p->ow; i++, done += taps) {
        if (done > PIECE / 8) {
            done = 0;
            if (qs_stopped(ctx))
                return;
        }
        const size_t plane = i / (p->oh * p->ow);
        indices[i] = index_of(ctx, p, x, plane / p->c, plane % p->c, i / p->ow % p->oh, i % p->ow);
    }
}

QS_COLD void qs_run_pool(const qs_step *s, const qs_frame *f) {
    const qs_pool_plan *p = s->params;
    pool_job j = {.ctx = f->ctx,
                  .p = p,
                  .x = qs_step_in(s, f, 0),
                  .y = qs_step_out(s, f, 0),
                  .scratch = f->scratch,
                  .table = p->table ? qs_step_in(s, f, p->table) : NULL,
                  .bytes = f->ctx->kernels->u8,
                  .row = p->row};
    if (p->quantized) {
        const uint8_t *x_zero = qs_step_in(s, f, 2);
        const uint8_t *y_zero = p->has_y_zero ? qs_step_in(s, f, 4) : NULL;
        memcpy(&j.row.x_scale, qs_step_in(s, f, 1), sizeof(float));
        memcpy(&j.row.y_scale, qs_step_in(s, f, 3), sizeof(float));
        j.row.x_zero = x_zero ? *x_zero : 0;
        j.row.y_zero = y_zero ? *y_zero : 0;
    }
    const size_t items = p->n * p->oh, wave = s->overlaps ? p->wave : items;
    const bool backwards = s->overlaps && (uintptr_t)j.y > (uintptr_t)j.x;
    j.first = qs_wave_first(items, wave, backwards);
    for (; j.first < items && !qs_stopped(f->ctx);
         j.first += backwards ? -wave : wave) { /* below 0 wraps to above items */
        j.count = items - j.first < wave ? items - j.first : wave;
        qs_parallel(f->ctx, p->slices, pool_slice, &j);
    }
}

void qs_run_pool_indices(const qs_step *s, const qs_frame *f) {
    qs_run_pool(s, f);
    write_indices(f->ctx, s->params, qs_step_in(s, f, 0), qs_step_out(s, f, 1));
}
