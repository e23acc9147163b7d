/* SPDX-License-Identifier: MIT */
#include "op/nn/overlap.h"

#include <assert.h>
#include <math.h>

#include "base/slices.h"
#include "op/nn/float_jobs.h"

/* ---- the choice ---- */

#define LANES 8  /* columns of a product that take as long as one */
#define ADD   24 /* multiply-accumulates of a product that take as long as one sum beside it */

static size_t columns_of(const qs_value *w) {
    return (size_t)(w->dims[1].size * w->dims[2].size * (w->rank > 3 ? w->dims[3].size : 1));
}

bool qs_overlap_pays(const qs_transposed *g, const qs_value *w) {
    if (g->group != 1 || g->merged || w->rank > 4)
        return false;
    const double c = qs_real((uint64_t)w->dims[0].size), m = qs_real((uint64_t)w->dims[1].size);
    const double columns = qs_real(columns_of(w)), phases = columns / m * ceil(m / LANES);
    return c * LANES * ceil(columns / LANES) + columns * ADD < c * LANES * phases;
}

/* ---- packed weights ---- */

/* The weights (C, M, kernel) are a matrix: C rows; columns (M, kernel). */
static void pack_matrix(const qk_f32 *k, const float *w, size_t c, size_t columns, float *to) {
    const qk_pack_source source = {w, 1, (ptrdiff_t)columns, 0, 1};
    qk_pack_f32(to, k->panel, c, columns, &source);
}

QS_COLD int qs_overlap_pack(qs_pack *p, const float *w) {
    const qk_f32 *k = p->ctx->kernels->f32;
    const qs_value *v = &p->graph->values[p->node->inputs[1]];
    const size_t c = (size_t)v->dims[0].size, columns = columns_of(v);
    size_t floats;
    if (!qk_pack_f32_size(k->panel, c, columns, &floats))
        return qs_weights_too_large(p->error);
    float *to = qs_arena_alloc64(p->arena, floats * sizeof(float));
    if (!to)
        return qs_fail(p->error, QSIM_E_NOMEM, "out of memory");
    pack_matrix(k, w, c, columns, to);
    p->result = to;
    return QSIM_OK;
}

/* ---- the plan ---- */

typedef struct plan {
    const qk_f32 *kernels;
    const float *packed; /* NULL: packed into scratch memory in every run */
    const float *no_bias;
    ptrdiff_t *row;
    size_t n, c, m, columns, packed_floats;
    size_t in[2], out[2], kernel[2], stride[2], dilation[2], before[2];
    size_t ring; /* rows of windows that overlap in a row of the output */
    size_t slices;
    float lo, hi;
    bool has_bias;
} plan;

typedef struct job {
    const qsim_ctx *ctx;
    const plan *p;
    const float *x, *weights, *bias;
    float *y, *windows; /* a ring of rows for each slice */
} job;

#define PIECE 1024 /* pixels */

/* Pixels of a line of the ring: of rows that overlap with none, a piece is made at a time. */
static size_t ring_pixels(const plan *p) {
    return p->ring == 1 && p->in[1] > PIECE ? PIECE : p->in[1];
}

static size_t ring_floats(const plan *p) {
    return qs_align(p->ring * ring_pixels(p) * p->columns, 16);
}

/* Computes the windows of `pixels` pixels of the input. */
static void make_windows(const job *j, const float *x, size_t pixels, float *to) {
    static const ptrdiff_t zero = 0;
    const plan *p = j->p;
    const qk_gemm_f32 g = {.a = x,
                           .row = p->row,
                           .seg = &zero,
                           .rows = pixels,
                           .segs = 1,
                           .k = p->c,
                           .b = j->weights,
                           .bias = p->no_bias,
                           .cols = p->columns,
                           .lo = -INFINITY,
                           .hi = INFINITY,
                           .c = to,
                           .ldc = p->columns};
    qs_gemm_f32(j->ctx, p->kernels, &g);
}

/* Adds one tap of the windows of pixels begin ... end - 1 to one channel of a row of the output. */
static void add_tap(const plan *p, const float *from, size_t begin, size_t end, size_t kx,
                    float *y) {
    const size_t stride = p->stride[1], at = kx * p->dilation[1], before = p->before[1];
    const size_t room = p->out[1] + before; /* pixel i goes to i * stride + at - before */
    const size_t past = at < room ? (room - at + stride - 1) / stride : 0;
    const size_t least = at < before ? (before - at + stride - 1) / stride : 0;
    const size_t first = least > begin ? least : begin, last = past < end ? past : end;
    if (first >= last)
        return;
    const size_t columns = p->columns, step = stride * p->m;
    from += (first - begin) * columns;
    y += (first * stride + at - before) * p->m;
    for (size_t i = first; i < last; i++, from += columns, y += step)
        *y += *from;
}

/* Adds row ky of the windows of some pixels, which are those of row ky of each channel. */
static void add_windows(const job *j, const float *from, size_t begin, size_t end, size_t ky,
                        float *y) {
    const plan *p = j->p;
    from += ky * p->kernel[1];
    for (size_t c = 0; c < p->m && !qs_stopped(j->ctx); c++, from += p->kernel[0] * p->kernel[1])
        for (size_t kx = 0; kx < p->kernel[1]; kx++)
            add_tap(p, from + kx, begin, end, kx, y + c);
}

static void finish(const job *j, float *y) {
    const plan *p = j->p;
    for (size_t i = 0; i < p->out[1]; i++)
        for (size_t c = 0; c < p->m; c++, y++) {
            float v = j->bias ? *y + j->bias[c] : *y;
            v = v < p->lo ? p->lo : v;
            *y = v > p->hi ? p->hi : v;
        }
}

/* Adds row ky of the windows of row iy of the image x. */
static void add_row(const job *j, const float *x, size_t iy, size_t ky, float *ring, float *y) {
    const plan *p = j->p;
    const size_t pixels = ring_pixels(p);
    if (p->ring > 1)
        add_windows(j, ring + iy % p->ring * pixels * p->columns, 0, pixels, ky, y);
    /* From the last piece on: a tap of a pixel on the right comes first. */
    for (size_t end = p->ring == 1 ? p->in[1] : 0, i; end > 0; end = i) {
        i = (end - 1) / pixels * pixels;
        make_windows(j, x + (iy * p->in[1] + i) * p->c, end - i, ring);
        add_windows(j, ring, i, end, ky, y);
    }
}

/* Computes row `oy` of an image's output; *made: rows of the input whose windows are in the ring.
 */
static void make_row(const job *j, const float *x, size_t oy, float *ring, size_t *made, float *y) {
    const plan *p = j->p;
    const size_t line = p->in[1] * p->columns;
    const size_t low = (p->kernel[0] - 1) * p->dilation[0], top = oy + p->before[0];
    const size_t first = top > low ? (top - low + p->stride[0] - 1) / p->stride[0] : 0;
    memset(y, 0, p->out[1] * p->m * sizeof(*y));
    *made = *made > first ? *made : first;
    for (; p->ring > 1 && *made < p->in[0] && *made * p->stride[0] <= top; ++*made)
        make_windows(j, x + *made * p->in[1] * p->c, p->in[1], ring + *made % p->ring * line);
    for (size_t ky = 0; ky < p->kernel[0]; ky++) {
        const size_t down = ky * p->dilation[0];
        if (down <= top && (top - down) % p->stride[0] == 0 &&
            (top - down) / p->stride[0] < p->in[0])
            add_row(j, x, (top - down) / p->stride[0], ky, ring, y);
    }
    finish(j, y);
}

static void overlap_slice(void *arg, size_t slice) {
    const job *j = arg;
    const plan *p = j->p;
    const size_t rows = p->n * p->out[0], end = qs_slice_begin(rows, p->slices, slice + 1);
    size_t made = 0;
    for (size_t i = qs_slice_begin(rows, p->slices, slice); i < end && !qs_stopped(j->ctx); i++) {
        const size_t image = i / p->out[0], oy = i % p->out[0];
        made = oy == 0 ? 0 : made;
        make_row(j, j->x + image * p->in[0] * p->in[1] * p->c, oy,
                 j->windows + slice * ring_floats(p), &made, j->y + i * p->out[1] * p->m);
    }
}

static void run_overlap(const qs_step *s, const qs_frame *f) {
    const plan *p = s->params;
    float *scratch = f->scratch;
    job j = {.ctx = f->ctx,
             .p = p,
             .x = qs_step_in(s, f, 0),
             .weights = p->packed,
             .bias = p->has_bias ? qs_step_in(s, f, 2) : NULL,
             .y = qs_step_out(s, f, 0),
             .windows = scratch + p->packed_floats};
    if (!p->packed) {
        pack_matrix(p->kernels, qs_step_in(s, f, 1), p->c, p->columns, scratch);
        j.weights = scratch;
    }
    qs_parallel(f->ctx, p->slices, overlap_slice, &j);
}

/* ---- lowering ---- */

QS_COLD static int size_scratch(qs_lower *l, plan *p) {
    size_t floats = 0, line = 0;
    if (!p->packed) {
        if (!qk_pack_f32_size(p->kernels->panel, p->c, p->columns, &p->packed_floats))
            return qs_weights_too_large(l->error);
        p->packed_floats = qs_align(p->packed_floats, 16);
    }
    if (!qs_mul(ring_pixels(p), p->columns, &line) || !qs_mul(line, p->ring, &line) ||
        !qs_add(line, 16, &line) || !qs_mul(line, p->slices, &floats) ||
        !qs_add(floats, p->packed_floats, &floats) ||
        !qs_mul(floats, sizeof(float), &l->step->scratch))
        return qs_scratch_too_large(l->error);
    return QSIM_OK;
}

/* Makes the products' lists: offsets of pixels, and -0.0f for each column, since there is no bias.
 */
QS_COLD static int make_lists(qs_lower *l, plan *p) {
    const size_t width = qs_align(p->columns, 64);
    float *none = qs_arena_alloc(l->arena, width, sizeof(*none));
    p->row = qs_arena_alloc(l->arena, ring_pixels(p), sizeof(*p->row));
    if (!none || !p->row)
        return qs_fail(l->error, QSIM_E_NOMEM, "out of memory");
    for (size_t i = 0; i < width; i++)
        none[i] = -0.0f;
    for (size_t i = 0; i < ring_pixels(p); i++)
        p->row[i] = (ptrdiff_t)(i * p->c);
    p->no_bias = none;
    return QSIM_OK;
}

QS_COLD int qs_overlap_lower(qs_lower *l, const qs_transposed *g, double macs) {
    const qs_value *v = qs_lower_in(l, 0), *w = qs_lower_in(l, 1);
    plan *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->kernels = l->ctx->kernels->f32;
    p->packed = l->packed;
    p->has_bias = qs_lower_in(l, 2) != NULL;
    p->lo = qs_node_float(l->node, "lo", -INFINITY);
    p->hi = qs_node_float(l->node, "hi", INFINITY);
    p->n = (size_t)v->dims[0].size;
    p->c = (size_t)w->dims[0].size;
    p->m = (size_t)w->dims[1].size;
    p->columns = columns_of(w);
    for (int i = 0; i < 2; i++) {
        const qs_transposed_axis *a = &g->a[i];
        p->in[i] = (size_t)a->in;
        p->out[i] = (size_t)a->out;
        p->kernel[i] = (size_t)a->kernel;
        p->stride[i] = (size_t)a->stride;
        p->dilation[i] = (size_t)a->dilation;
        p->before[i] = (size_t)a->before;
    }
    assert(p->stride[0] > 0);
    p->ring = (p->kernel[0] - 1) * p->dilation[0] / p->stride[0] + 1;
    p->ring = p->ring < p->in[0] ? p->ring : p->in[0];
    /* A slice computes again the windows that reach into its first row. */
    const size_t rows = p->n * p->out[0] / (p->ring * p->stride[0]);
    p->slices = qs_slice_count(l->ctx, rows > 0 ? rows : 1, macs / QS_MACS_F32);
    l->step->run = run_overlap;
    const int code = size_scratch(l, p);
    return code ? code : make_lists(l, p);
}
