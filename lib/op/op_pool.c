/* SPDX-License-Identifier: MIT */
/*
 * MaxPool, AveragePool, GlobalAveragePool and the integer averages QLinearAveragePool and
 * QLinearGlobalAveragePool. Executed channels last, one row of output pixels after the other.
 * MaxPool's Indices keep the shape [N, C, spatial...] and count in it, whatever the layout.
 *
 * Internal (pool.h): with "into" the results are channels of a larger tensor, looked up in a table
 * if there is one.
 */
#include <math.h>

#include "base/slices.h"
#include "base/waves.h"
#include "kernel/pool_window.h"
#include "kernel/u8.h"
#include "op/pool.h"
#include "op/window.h"

/* ---- rules ---- */

/* Makes output 0, inferred before, the tensor that it is part of, if there is one. */
QS_RARE static int infer_into(const qs_infer *x, int32_t over) {
    const qs_value *table = x->node->input_count > over + 1 ? x->in[over + 1] : NULL;
    if (table && (x->out[0].dtype != QSIM_UINT8 || table->dtype != QSIM_UINT8 || table->rank != 1 ||
                  table->dims[0].size != 256))
        return qs_infer_fail(x, QSIM_E_INTERNAL, "the table does not fit");
    return qs_window_into(x, over);
}

QS_RARE static int infer_maxpool(qs_infer *x) {
    int code = qs_infer_type(x, 0, QS_T_FLOAT | QS_T_8BIT);
    if (code)
        return code;
    const qs_value *v = x->in[0];
    const bool indices = x->node->output_count > 1 && x->node->outputs[1] != QS_NONE;
    if (indices && x->node->version < 8 && !x->node->domain[0])
        return qs_infer_fail(x, QSIM_E_GRAPH, "2 outputs before opset 8");
    if (v->rank < 0) {
        code = qs_infer_out(x, 1, QSIM_INT64, -1, NULL);
        return code ? code : qs_infer_out(x, 0, v->dtype, -1, NULL);
    }
    qs_window w;
    qs_dim dims[4];
    code = qs_window_infer(x, 0, NULL, &w);
    if (code)
        return code;
    int32_t rank = qs_window_dims(&w, w.channels, dims);
    code = qs_infer_out(x, 0, v->dtype, rank, dims);
    code = code ? code : infer_into(x, QS_POOL_OVER);
    w.channels_last = false;
    qs_window_dims(&w, w.channels, dims);
    return code ? code : qs_infer_out(x, 1, QSIM_INT64, rank, dims);
}

QS_RARE static int infer_average(qs_infer *x) {
    const qs_value *v = x->in[0];
    if (v->rank < 0)
        return qs_infer_out(x, 0, v->dtype, -1, NULL);
    qs_window w;
    qs_dim dims[4];
    int code = qs_window_infer(x, 0, NULL, &w);
    if (code)
        return code;
    int32_t rank = qs_window_dims(&w, w.channels, dims);
    return qs_infer_out(x, 0, v->dtype, rank, dims);
}

QS_RARE static int infer_average_float(qs_infer *x) {
    int code = qs_infer_type(x, 0, QS_T_FLOAT);
    code = code ? code : infer_average(x);
    return code ? code : infer_into(x, QS_POOL_OVER);
}

QS_RARE static int infer_global(qs_infer *x) {
    const qs_value *v = x->in[0];
    if (v->rank < 0)
        return qs_infer_out(x, 0, v->dtype, -1, NULL);
    if (v->rank < 3)
        return qs_infer_fail(x, QSIM_E_SHAPE, "the input has rank %d, expected 3 or more",
                             (int)v->rank);
    qs_dim dims[QSIM_MAX_RANK];
    const int32_t channels = qs_node_int(x->node, "channels_last", 0) ? v->rank - 1 : 1;
    for (int32_t i = 0; i < v->rank; i++)
        dims[i] = i == 0 || i == channels ? v->dims[i] : (qs_dim){1, NULL};
    return qs_infer_out(x, 0, v->dtype, v->rank, dims);
}

QS_RARE static int infer_global_float(qs_infer *x) {
    int code = qs_infer_type(x, 0, QS_T_FLOAT);
    code = code ? code : infer_global(x);
    return code ? code : infer_into(x, QS_POOL_OVER);
}

/* Inputs: x, its scale and zero point, those of y. Zero points may be left out. */
QS_RARE static int check_quantized(const qs_infer *x) {
    if (!x->in[3])
        return qs_infer_fail(x, QSIM_E_GRAPH, "input 3, the output's scale, is left out");
    for (int32_t i = 0; i < 5; i++) {
        const qs_value *v = x->in[i];
        const bool scale = i == 1 || i == 3;
        int code = scale ? qs_infer_scale(x, i) : qs_infer_type(x, i, QS_T_8BIT);
        if (!code && (i == 2 || i == 4))
            code = qs_infer_same_type(x, 0, i);
        if (code)
            return code;
        if (i == 0 || !v)
            continue;
        if (v->rank > 1 || (v->rank == 1 && v->dims[0].size >= 0 && v->dims[0].size != 1))
            return qs_infer_fail(x, QSIM_E_SHAPE, "input %d is not a single number", (int)i);
    }
    return QSIM_OK;
}

QS_RARE static int infer_average_quantized(qs_infer *x) {
    int code = check_quantized(x);
    code = code ? code : infer_average(x);
    return code ? code : infer_into(x, QS_QPOOL_OVER);
}

QS_RARE static int infer_global_quantized(qs_infer *x) {
    int code = check_quantized(x);
    code = code ? code : infer_global(x);
    return code ? code : infer_into(x, QS_QPOOL_OVER);
}

/* ---- execution ---- */

#define THIN 64 /* bytes: the longest vectors */
/* Bytes of rows whose maxima along the rows are kept until those down the columns are found. */
#define BAND_BYTES ((size_t)32 * 1024)

typedef struct pool_plan {
    void (*kernel)(const qk_pool *p);
    size_t n, h, w, c, oh, ow, element;
    size_t y_step, column; /* elements of a pixel of the output, and those before the results */
    size_t line;           /* bytes of a row that is made apart; 0: where it belongs */
    size_t kh, sh, dh, top, bottom;
    size_t slices;
    size_t wave; /* rows that are done before any of the next, if the output is over the input */
    qk_pool row; /* what is the same for every row */
    /* Maxima of large windows: first those along the rows under `band` rows of the output, which
     * take band_bytes, then those down their columns, by `row`; 0: both at once. */
    size_t band, band_bytes;
    qk_pool along;
    bool quantized, has_y_zero, column_major;
    int32_t table; /* the input; 0: there is none */
} pool_plan;

typedef struct pool_job {
    const pool_plan *p;
    const char *x;
    char *y;
    char *scratch;
    const uint8_t *table;
    const qk_u8 *bytes;
    qk_pool row;
    size_t first, count; /* rows at hand */
} pool_job;

/* Window rows of output row oy that lie before `end`. */
static size_t taps_before(const pool_plan *p, ptrdiff_t start, ptrdiff_t end) {
    const ptrdiff_t dh = (ptrdiff_t)p->dh;
    if (start + (ptrdiff_t)(p->kh - 1) * dh < end)
        return p->kh;
    return start >= end ? 0 : (size_t)((end - 1 - start) / dh) + 1;
}

/* Completes `r` for one output row; *first is the image's row of its first tap. */
static void pool_row(const pool_plan *p, size_t oy, qk_pool *r, size_t *first) {
    const ptrdiff_t start = (ptrdiff_t)(oy * p->sh) - (ptrdiff_t)p->top, dh = (ptrdiff_t)p->dh;
    const size_t before = taps_before(p, start, (ptrdiff_t)p->h);
    size_t skip = start < 0 ? (size_t)((dh - 1 - start) / dh) : 0;
    skip = skip < before ? skip : before;
    r->kh = before - skip;
    *first = r->kh ? (size_t)(start + (ptrdiff_t)skip * dh) : 0;
    r->count_rows = r->count_pads ? taps_before(p, start, (ptrdiff_t)(p->h + p->bottom)) : r->kh;
}

/* One row of output pixels: where it belongs, or apart, dense, and then there. */
static void make_row(const pool_job *j, qk_pool *r, char *apart, char *y) {
    const pool_plan *p = j->p;
    const size_t n = p->c * p->element, step = p->y_step * p->element;
    r->y = apart ? apart : y;
    p->kernel(r);
    if (j->table)
        j->bytes->table(j->table, r->y, n, (uint8_t *)y, step, n, p->ow);
    else if (apart)
        qs_copy_rows(r->y, (ptrdiff_t)n, y, (ptrdiff_t)step, n, p->ow);
}

/* Maxima along the rows under the windows of `count` rows of the output; returns the first row. */
static size_t join_rows(const pool_plan *p, const char *image, size_t oy, size_t count, char *to) {
    const size_t line = p->w * p->c * p->element, above = oy * p->sh;
    const size_t first = above < p->top ? 0 : above - p->top;
    size_t end = above + (count - 1) * p->sh + (p->kh - 1) * p->dh + 1;
    end = end < p->top ? 0 : end - p->top;
    qk_pool r = p->along;
    for (size_t i = first; i < end && i < p->h; i++, to += p->ow * p->c * p->element) {
        r.x = image + i * line;
        r.y = to;
        p->kernel(&r);
    }
    return first;
}

static void pool_slice(void *arg, size_t slice) {
    const pool_job *j = arg;
    const pool_plan *p = j->p;
    char *const own = j->scratch + slice * (p->line + p->band_bytes);
    char *const apart = p->line ? own : NULL;
    const size_t most = p->band ? p->band : p->oh;
    const size_t line = (p->band ? p->ow : p->w) * p->c * p->element;
    const size_t end = j->first + qs_slice_begin(j->count, p->slices, slice + 1);
    qk_pool r = j->row;
    for (size_t i = j->first + qs_slice_begin(j->count, p->slices, slice), stop; i < end;) {
        const char *x = j->x + i / p->oh * p->h * p->w * p->c * p->element;
        size_t oy = i % p->oh, skipped = 0, first = 0;
        stop = i + (p->oh - oy < most ? p->oh - oy : most);
        stop = stop < end ? stop : end;
        if (p->band) {
            skipped = join_rows(p, x, oy, stop - i, own + p->line);
            x = own + p->line;
        }
        for (; i < stop; i++, oy++) {
            pool_row(p, oy, &r, &first);
            r.x = r.kh ? x + (first - skipped) * line : x;
            if (p->band) {
                r.kw = r.kh;
                r.kh = 1;
            }
            make_row(j, &r, apart, j->y + (i * p->ow * p->y_step + p->column) * p->element);
        }
    }
}

static float element_at(const pool_plan *p, const char *x, size_t at) {
    float f;
    if (p->element == 1)
        return (float)((const uint8_t *)x)[at];
    memcpy(&f, x + at * sizeof(f), sizeof(f));
    return f;
}

/* Index of the first greatest element of one window in [N, C, H, W]. */
static int64_t index_of(const pool_plan *p, const char *x, size_t image, size_t c, size_t oy,
                        size_t ox) {
    qk_pool r = p->row;
    size_t first = 0, best_y = 0, best_x = 0;
    float best = -INFINITY;
    bool found = false;
    pool_row(p, oy, &r, &first);
    const ptrdiff_t left = (ptrdiff_t)(ox * r.sw) - r.left;
    for (size_t ky = 0; ky < r.kh; ky++) {
        for (size_t kx = 0; kx < r.kw; kx++) {
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

static void write_indices(const pool_plan *p, const char *x, int64_t *indices) {
    for (size_t i = 0; i < p->n * p->c * p->oh * p->ow; i++) {
        const size_t plane = i / (p->oh * p->ow);
        indices[i] = index_of(p, x, plane / p->c, plane % p->c, i / p->ow % p->oh, i % p->ow);
    }
}

static void run_pool(const qs_step *s, const qs_frame *f) {
    const pool_plan *p = s->params;
    pool_job j = {.p = p,
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
    const size_t items = p->n * p->oh, wave = s->slides ? p->wave : items;
    const bool backwards = s->slides && (uintptr_t)j.y > (uintptr_t)j.x;
    j.first = qs_wave_first(items, wave, backwards);
    for (; j.first < items; j.first += backwards ? -wave : wave) { /* below 0 is above items */
        j.count = items - j.first < wave ? items - j.first : wave;
        qs_parallel(f->ctx, p->slices, pool_slice, &j);
    }
}

static void run_max_indices(const qs_step *s, const qs_frame *f) {
    run_pool(s, f);
    write_indices(s->params, qs_step_in(s, f, 0), qs_step_out(s, f, 1));
}

static void run_nothing(const qs_step *s, const qs_frame *f) {
    (void)s;
    (void)f;
}

/* ---- lowering ---- */

static void set_window(pool_plan *p, const qs_window *w) {
    p->n = (size_t)w->batch.size;
    p->c = (size_t)w->channels.size;
    p->h = (size_t)w->in[0];
    p->w = (size_t)w->in[1];
    p->oh = (size_t)w->out[0];
    p->ow = (size_t)w->out[1];
    p->kh = (size_t)w->kernel[0];
    p->sh = (size_t)w->stride[0];
    p->dh = (size_t)w->dilation[0];
    p->top = (size_t)w->before[0];
    p->bottom = (size_t)w->after[0];
    p->row.kw = (size_t)w->kernel[1];
    p->row.sw = (size_t)w->stride[1];
    p->row.dw = (size_t)w->dilation[1];
    p->row.left = (ptrdiff_t)w->before[1];
    p->row.right = (ptrdiff_t)w->after[1];
}

/* The whole image is one window. */
static void set_global(pool_plan *p, const qs_value *v) {
    p->n = (size_t)v->dims[0].size;
    p->c = (size_t)v->dims[v->rank - 1].size;
    p->w = (size_t)v->dims[v->rank - 2].size;
    p->h = (size_t)qs_dims_product(v->dims, 1, v->rank - 2);
    p->oh = p->ow = p->sh = p->dh = 1;
    p->kh = p->h;
    p->row.kw = p->w;
    p->row.sw = p->row.dw = 1;
}

QS_RARE /* How far from each other output and input have to begin where one lies over the other. */
    static void
    pool_distances(const pool_plan *p, qs_step *step) {
    const size_t items = p->n * p->oh;
    qs_reach r = {.h = p->h,
                  .oh = p->oh,
                  .step = p->sh,
                  .top = p->top,
                  .taps = (p->kh - 1) * p->dh + 1,
                  .row = p->w * p->c * p->element,
                  .out = p->ow * p->c * p->element};
    for (size_t i = 0; i < items; i += p->wave) {
        const size_t last = (items - i < p->wave ? items : i + p->wave) - 1;
        qs_reach_wave(&r, i / p->oh, i % p->oh, last / p->oh, last % p->oh + 1);
    }
    step->before = r.before;
    step->behind = r.behind;
}

/*
 * Output pixels, and where in them the results are; `over`: the input that they may lie in. Vectors
 * of several pixels want them side by side.
 */
static void set_output(qs_lower *l, pool_plan *p, int32_t over) {
    const int64_t into = qs_node_int(l->node, "into", 0);
    p->y_step = into ? (size_t)into : p->c;
    p->column = into ? (size_t)qs_node_int(l->node, "column", 0) : 0;
    if (l->node->input_count > over && qs_lower_in(l, over))
        l->step->over = over;
    if (l->node->input_count > over + 1 && qs_lower_in(l, over + 1))
        p->table = over + 1;
    const bool thin = p->row.sw == 1 && p->c * p->element < THIN;
    const bool apart = p->table || (p->y_step != p->c && thin);
    p->row.y_step = apart ? p->c : p->y_step;
    p->line = apart ? (p->ow * p->c * p->element + 127) / 64 * 64 : 0;
}

static int lower_pool(qs_lower *l, bool global, int32_t over, pool_plan **out) {
    const qs_value *v = qs_lower_in(l, 0);
    qs_infer x;
    qs_lower_infer(l, &x);
    if (!qs_node_int(l->node, "channels_last", 0))
        return qs_infer_fail(&x, QSIM_E_UNSUPPORTED, "pools are executed channels last only");
    if (v->dtype == QSIM_INT8)
        return qs_infer_fail(&x, QSIM_E_UNSUPPORTED, "pools are executed on uint8, not int8");
    pool_plan *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    *out = p;
    l->step->run = run_nothing;
    l->step->kernel = "pool";
    if (global) {
        set_global(p, v);
    } else {
        qs_window w;
        int code = qs_window_infer(&x, 0, NULL, &w);
        if (code)
            return code;
        set_window(p, &w);
    }
    p->element = qs_dtype_bytes(v->dtype);
    p->row.width = p->w;
    p->row.ow = p->ow;
    p->row.channels = p->c;
    p->row.row_step = (ptrdiff_t)(p->dh * p->w * p->c);
    qk_pool_set_inside(&p->row);
    set_output(l, p, over);
    const size_t outputs = p->n * p->oh * p->ow * p->c;
    if (outputs == 0)
        return QSIM_OK;
    const double taps = (double)outputs * (double)p->kh * (double)p->row.kw;
    const double ns = taps * (double)p->element / QS_POOLED;
    p->slices = qs_slice_count(l->ctx, p->n * p->oh, ns);
    p->wave = qs_wave(p->n * p->oh, p->slices, ns);
    l->step->scratch = p->slices * p->line;
    if (p->y_step == p->c && !p->line)
        pool_distances(p, l->step);
    l->step->run = run_pool;
    return QSIM_OK;
}

/*
 * The same maxima in fewer steps, and the same of two zeros: the first in the order of the taps.
 * Bands overlap by a window, so one is two windows high or more.
 */
QS_RARE static void separate(qs_lower *l, pool_plan *p) {
    const size_t kw = p->row.kw, span = (p->kh - 1) * p->dh + 1;
    const size_t along = (p->sh < span ? p->sh : span) * kw; /* taps for one output */
    if (p->kh * kw <= 2 * (along + p->kh) || p->ow > p->w)
        return;
    const size_t line = p->ow * p->c * p->element;
    size_t rows = BAND_BYTES / line < 2 * span ? 2 * span : BAND_BYTES / line;
    rows = rows < p->h ? rows : p->h > span ? p->h : span;
    p->band = (rows - span) / p->sh + 1;
    p->band = p->band < p->oh ? p->band : p->oh;
    if (rows >= p->h)
        p->band = p->oh;
    p->along = p->row;
    p->along.kh = 1;
    p->along.y_step = p->c;
    /* The band is one row, whose windows have taps p->dh lines apart. */
    p->row.dw = p->dh * p->ow;
    p->row.width = p->h * p->ow;
    p->row.sw = 1;
    p->row.left = 0;
    p->row.inside = 0;
    p->row.inside_end = p->ow;
    p->band_bytes = qs_align((rows < p->h ? rows : p->h) * line + QS_OVER_READ, 64);
    const double taps = (double)(p->n * p->oh * line) * (double)(along + p->kh);
    p->slices = qs_slice_count(l->ctx, p->n * p->oh, taps / QS_POOLED);
    p->wave = p->slices * p->band;
    l->step->scratch = p->slices * (p->line + p->band_bytes);
    if (l->step->before)
        pool_distances(p, l->step);
}

QS_RARE static int lower_maxpool(qs_lower *l) {
    pool_plan *p = NULL;
    int code = lower_pool(l, false, QS_POOL_OVER, &p);
    if (code)
        return code;
    const qk_f32 *k = l->ctx->kernels->f32;
    p->kernel = p->element == 1 ? k->max_u8 : k->max_f32;
    p->column_major = qs_node_int(l->node, "storage_order", 0) != 0;
    if (l->step->run != run_pool)
        return QSIM_OK;
    if (!qs_lower_out(l, 1)) {
        separate(l, p);
        return QSIM_OK;
    }
    l->step->run = run_max_indices;
    l->step->before = l->step->behind = 0; /* it looks at the input again */
    return QSIM_OK;
}

QS_RARE static int lower_average_float(qs_lower *l, bool global) {
    pool_plan *p = NULL;
    int code = lower_pool(l, global, QS_POOL_OVER, &p);
    if (code)
        return code;
    p->kernel = l->ctx->kernels->f32->average_f32;
    p->row.count_pads = qs_node_int(l->node, "count_include_pad", 0) != 0;
    return QSIM_OK;
}

QS_RARE static int lower_average_quantized(qs_lower *l, bool global) {
    pool_plan *p = NULL;
    int code = lower_pool(l, global, QS_QPOOL_OVER, &p);
    if (code)
        return code;
    size_t taps;
    if (!qs_mul(p->kh, p->row.kw, &taps) || taps > INT32_MAX / 255)
        return qs_fail(l->error, QSIM_E_LIMIT, "an average over more than %d numbers",
                       INT32_MAX / 255);
    p->kernel = l->ctx->kernels->f32->average_u8;
    p->row.count_pads = qs_node_int(l->node, "count_include_pad", 0) != 0;
    p->row.lo = (int32_t)qs_node_int(l->node, "lo", 0);
    p->row.hi = (int32_t)qs_node_int(l->node, "hi", 255);
    p->has_y_zero = qs_lower_in(l, 4) != NULL;
    p->quantized = true;
    return QSIM_OK;
}

QS_RARE static int lower_averagepool(qs_lower *l) {
    return lower_average_float(l, false);
}
QS_RARE static int lower_global(qs_lower *l) {
    return lower_average_float(l, true);
}
QS_RARE static int lower_qaveragepool(qs_lower *l) {
    return lower_average_quantized(l, false);
}
QS_RARE static int lower_qglobal(qs_lower *l) {
    return lower_average_quantized(l, true);
}

/* ---- rows ---- */

static const qs_attr_rule maxpool_attrs[] = {
    QS_WINDOW_ATTRS(1),
    {"storage_order", QS_ATTR_INT, 8, 0},
    {"ceil_mode", QS_ATTR_INT, 10, 0},
    {"dilations", QS_ATTR_INTS, 10, 0},
};
static const qs_attr_rule average_attrs[] = {
    QS_WINDOW_ATTRS(1),
    {"count_include_pad", QS_ATTR_INT, 7, 0},
    {"ceil_mode", QS_ATTR_INT, 10, 0},
    {"dilations", QS_ATTR_INTS, 19, 0},
};
static const qs_attr_rule internal_attrs[] = {
    QS_WINDOW_ATTRS(0),
    {"channels_last", QS_ATTR_INT, 0, 0},
    {"ceil_mode", QS_ATTR_INT, 0, 0},
    {"dilations", QS_ATTR_INTS, 0, 0},
    {"storage_order", QS_ATTR_INT, 0, 0},
    {"count_include_pad", QS_ATTR_INT, 0, 0},
    QS_INTO_ATTRS,
};
static const qs_attr_rule last_attrs[] = {
    {"channels_last", QS_ATTR_INT, 0, 0},
    {"lo", QS_ATTR_INT, 0, 0}, /* from here internal */
    {"hi", QS_ATTR_INT, 0, 0},
    QS_INTO_ATTRS,
};
static const qs_attr_rule qaverage_attrs[] = {
    QS_WINDOW_ATTRS(0),
    {"channels_last", QS_ATTR_INT, 0, 0},
    {"ceil_mode", QS_ATTR_INT, 0, 0},
    {"count_include_pad", QS_ATTR_INT, 0, 0},
    {"dilations", QS_ATTR_INTS, 0, 0}, /* from here internal */
    {"lo", QS_ATTR_INT, 0, 0},
    {"hi", QS_ATTR_INT, 0, 0},
    QS_INTO_ATTRS,
};
#define QAVERAGE_PUBLIC 7

#define ROW(id, space, text, first, last, ins, outs, rules, count, check, make)                    \
    const qs_op qs_op_##id = {.domain = space,                                                     \
                              .name = text,                                                        \
                              .since = first,                                                      \
                              .until = last,                                                       \
                              .min_in = ins == 5 ? 2 : ins, /* zero points may be left out */      \
                              .max_in = ins + (last == INT16_MAX ? 2 : 0),                         \
                              .min_out = 1,                                                        \
                              .max_out = outs,                                                     \
                              .attrs = rules,                                                      \
                              .attr_count = count,                                                 \
                              .infer = check,                                                      \
                              .lower = make};

ROW(maxpool, "", "MaxPool", 1, QS_OPSET_NEWEST, 1, 2, maxpool_attrs, QS_COUNT(maxpool_attrs),
    infer_maxpool, NULL)
ROW(qsim_maxpool, "qsim", "MaxPool", 0, INT16_MAX, 1, 2, internal_attrs, QS_COUNT(internal_attrs),
    infer_maxpool, lower_maxpool)
ROW(averagepool, "", "AveragePool", 1, QS_OPSET_NEWEST, 1, 1, average_attrs,
    QS_COUNT(average_attrs), infer_average_float, NULL)
ROW(qsim_averagepool, "qsim", "AveragePool", 0, INT16_MAX, 1, 1, internal_attrs,
    QS_COUNT(internal_attrs), infer_average_float, lower_averagepool)
ROW(globalaveragepool, "", "GlobalAveragePool", 1, QS_OPSET_NEWEST, 1, 1, NULL, 0,
    infer_global_float, NULL)
ROW(qsim_globalaveragepool, "qsim", "GlobalAveragePool", 0, INT16_MAX, 1, 1, last_attrs,
    QS_COUNT(last_attrs), infer_global_float, lower_global)
ROW(ms_qlinearaveragepool, "com.microsoft", "QLinearAveragePool", 1, 1, 5, 1, qaverage_attrs,
    QAVERAGE_PUBLIC, infer_average_quantized, lower_qaveragepool)
ROW(qsim_qlinearaveragepool, "qsim", "QLinearAveragePool", 0, INT16_MAX, 5, 1, qaverage_attrs,
    QS_COUNT(qaverage_attrs), infer_average_quantized, lower_qaveragepool)
ROW(ms_qlinearglobalaveragepool, "com.microsoft", "QLinearGlobalAveragePool", 1, 1, 5, 1,
    last_attrs, 1, infer_global_quantized, lower_qglobal)
ROW(qsim_qlinearglobalaveragepool, "qsim", "QLinearGlobalAveragePool", 0, INT16_MAX, 5, 1,
    last_attrs, QS_COUNT(last_attrs), infer_global_quantized, lower_qglobal)
