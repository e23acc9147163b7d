/* SPDX-License-Identifier: MIT */
/*
 * Executes recurrent layers. The inputs' part of all gates is one matrix product over all times and
 * samples; then come the time steps in order, each for all samples. Samples and directions are
 * independent and divided among threads.
 */
#include "op/nn/float_jobs.h"
#include "op/nn/recurrent.h"

#include <math.h>

#include "base/slices.h"

#define ROWS 240 /* of the inputs' product, per piece */

/* ---- weights ---- */

/* Packed weights of one direction: W, then R in one or two parts (GRU: z and r, then h). */
typedef struct part {
    size_t k, cols, floats, at;
} part;

typedef struct form {
    part w, r[2];
    qs_states8 states; /* in place of these, with weights of 8 bits */
    size_t floats;     /* of one direction */
} form;

static bool add_part(const qk_f32 *kernels, part *p, size_t k, size_t cols, size_t *at) {
    p->k = k;
    p->cols = cols;
    p->at = *at;
    if (!qk_pack_f32_size(kernels->panel, k, cols, &p->floats) || p->floats > SIZE_MAX / 64)
        return false;
    p->floats = qs_align(p->floats, 16);
    return qs_add(*at, p->floats, at);
}

QS_COLD static bool form_make(const qsim_ctx *ctx, const qs_recurrent *r, form *f) {
    const qk_f32 *kernels = ctx->kernels->f32;
    const size_t h = (size_t)r->hidden, gates = (size_t)r->gates;
    size_t at = 0;
    memset(f, 0, sizeof(*f));
    if (r->integer) {
        const bool made = qs_states8_make(ctx, r, &f->states);
        f->w.cols = f->r[0].cols = gates * h;
        f->floats = f->states.floats;
        return made;
    }
    bool fits = h < SIZE_MAX / 1024 && add_part(kernels, &f->w, (size_t)r->input, gates * h, &at);
    if (r->cell == QS_GRU)
        fits = fits && add_part(kernels, &f->r[0], h, 2 * h, &at) &&
               add_part(kernels, &f->r[1], h, h, &at);
    else
        fits = fits && add_part(kernels, &f->r[0], h, gates * h, &at);
    f->floats = at;
    return fits && at < SIZE_MAX / 64;
}

/* Packs the transpose of `data`: its rows become columns. */
static void pack_part(const qk_f32 *kernels, const part *p, const void *data, float *to) {
    const qk_pack_source source = {data, 1, 1, 0, (ptrdiff_t)p->k};
    qk_pack_f32(to + p->at, kernels->panel, p->k, p->cols, &source);
}

/* Inputs 1 to 3: W and R, or scales, R and zero points. */
QS_COLD static void pack_all(const qk_f32 *kernels, const qs_recurrent *r, const form *f,
                             const void *const in[4], float *to) {
    const size_t h = (size_t)r->hidden, rows = (size_t)r->gates * h;
    const qs_weights8 bytes = {in[2], in[1], in[3]};
    const float *w = in[1], *rec = in[2];
    for (int32_t d = 0; d < r->directions; d++, to += f->floats) {
        if (r->integer) {
            qs_states8_pack(&f->states, r, &bytes, d, to);
            continue;
        }
        pack_part(kernels, &f->w, w + (size_t)d * rows * (size_t)r->input, to);
        pack_part(kernels, &f->r[0], rec + (size_t)d * rows * h, to);
        if (f->r[1].cols)
            pack_part(kernels, &f->r[1], rec + ((size_t)d * rows + 2 * h) * h, to);
    }
}

QS_COLD int qs_recurrent_pack(qs_pack *p, const qs_recurrent *r) {
    const void *in[4] = {NULL, qs_pack_const(p, 1), qs_pack_const(p, 2),
                         r->integer ? qs_pack_const(p, 3) : NULL};
    form f;
    if (!in[1] || !in[2] || (r->integer && !in[3] && qs_node_input(p->node, 3) != QS_NONE))
        return QSIM_OK; /* packed in every run */
    if (!form_make(p->ctx, r, &f))
        return qs_weights_too_large(p->error);
    float *to = qs_arena_alloc64(p->arena, f.floats * (size_t)r->directions * sizeof(float));
    if (!to)
        return qs_fail(p->error, QSIM_E_NOMEM, "out of memory");
    pack_all(p->ctx->kernels->f32, r, &f, in, to);
    p->result = to;
    return QSIM_OK;
}

/* ---- the plan ---- */

typedef struct plan {
    const qk_f32 *kernels;
    const qk_ew *ew;
    qs_recurrent r;
    form form;
    const float *packed; /* NULL: packed into scratch memory in every run */
    bool in[8], out[3];
    size_t time, batch, hidden, width; /* width: of all gates */
    size_t bias, projected, states;    /* floats of one direction, padding included */
    size_t gates_row, gates_direction; /* strides of the inputs' part */
    size_t pieces;                     /* pieces of a direction's projection */
    size_t slices, parts;              /* slices of the projection; parts of the batch */
    ptrdiff_t *x_row, *h_row;          /* offsets of rows: of x in order of time, of the state */
} plan;

typedef struct job {
    const qsim_ctx *ctx; /* tells whether the run was stopped */
    const plan *p;
    const float *x, *bias, *peephole, *h0, *c0, *packed;
    const int32_t *lengths;
    const float *projected; /* the inputs' part of all gates */
    float *y, *yh, *yc;
    float *none, *biases, *states;
} job;

/* Makes the biases: one of -0 that adds nothing, Wb + Rb, and Rb where GRU adds it separately. */
static void make_biases(const job *j) {
    const plan *p = j->p;
    const size_t h = p->hidden, n = p->width;
    for (size_t i = 0; i < p->bias; i++)
        j->none[i] = -0.0f;
    for (int32_t d = 0; d < p->r.directions; d++) {
        const float *b = j->bias ? j->bias + (size_t)d * 2 * n : NULL;
        float *wb = j->biases + (size_t)d * 2 * p->bias, *rb = wb + p->bias;
        const size_t summed = p->r.cell == QS_GRU && p->r.before_reset ? n - h : n;
        for (size_t i = 0; i < p->bias; i++)
            wb[i] = rb[i] = -0.0f;
        for (size_t i = 0; i < n && b; i++)
            wb[i] = i < summed ? b[i] + b[n + i] : b[i];
        for (size_t i = summed; i < n && b; i++)
            rb[i - summed] = b[n + i];
    }
}

/* Multiplies rows of a by a part of a direction's packed weights; g: a, row, rows, bias, c, ldc. */
static void product(const job *j, const part *w, const float *packed, qk_gemm_f32 *g) {
    g->seg = (const ptrdiff_t[]){0};
    g->segs = 1;
    g->k = w->k;
    g->b = packed + w->at;
    g->cols = w->cols;
    g->lo = -INFINITY;
    g->hi = INFINITY;
    qs_gemm_f32(j->ctx, j->p->kernels, g);
}

/* Computes pieces (direction, rows in order of time) of the inputs' part. */
static void project_slice(void *arg, size_t slice) {
    const job *j = arg;
    const plan *p = j->p;
    const size_t items = p->pieces * (size_t)p->r.directions, all = p->time * p->batch;
    const size_t end = qs_slice_begin(items, p->slices, slice + 1);
    for (size_t i = qs_slice_begin(items, p->slices, slice); i < end && !qs_stopped(j->ctx); i++) {
        const size_t d = i / p->pieces, first = i % p->pieces * ROWS;
        const size_t rows = all - first < ROWS ? all - first : ROWS;
        product(j, &p->form.w, j->packed + d * p->form.floats,
                &(qk_gemm_f32){.a = j->x,
                               .row = p->x_row + first,
                               .rows = rows,
                               .bias = j->biases + d * 2 * p->bias,
                               .c = (float *)j->projected + d * p->projected + first * p->width,
                               .ldc = p->width});
    }
}

void qs_states8_columns(const qs_columns8 *from, size_t n, qs_q8 q, int32_t rest, float *to) {
    const int32_t *sums = from->sums, *zps = from->zps;
    const float *scales = from->scales;
    int32_t *restrict init = (int32_t *)(void *)to;
    float *restrict scale = to + n;
    for (size_t i = 0; i < n; i++) {
        init[i] = -q.zero_point * sums[i] - zps[i] * rest;
        scale[i] = q.scale * scales[i];
    }
}

/* ---- one step of one sample ---- */

/* A range of samples in one direction, and its scratch memory. */
typedef struct lane {
    const job *j;
    const plan *p;
    size_t d, first, count;
    const float *packed, *rb, *peephole;
    const qs_curve *act;
    float *gates, *curved, *h, *c, *extra; /* per sample; curved and extra: of one sample */
    float *rounded;                        /* scratch memory of a product in 8 bits */
} lane;

static void add_into(float *restrict y, const float *restrict x, size_t n) {
    for (size_t i = 0; i < n; i++)
        y[i] = y[i] + x[i];
}

QS_NOINLINE static void add_scaled(float *restrict y, const float *restrict x,
                                   const float *restrict by, size_t n) {
    for (size_t i = 0; i < n; i++)
        y[i] = y[i] + by[i] * x[i];
}

/* Gates i, o, f, c; peepholes i, o, f. */
static void lstm_cell(const lane *l, float *g, float *restrict h, float *restrict c) {
    const plan *p = l->p;
    const size_t n = p->hidden;
    const float clip = p->r.clip;
    float *y = l->curved;
    if (l->peephole) {
        add_scaled(g, c, l->peephole, n);
        add_scaled(g + 2 * n, c, l->peephole + 2 * n, n);
    }
    if (!l->peephole) {
        qs_activate(p->ew, &l->act[0], clip, g, y, 3 * n);
    } else {
        qs_activate(p->ew, &l->act[0], clip, g, y, n);
        qs_activate(p->ew, &l->act[0], clip, g + 2 * n, y + 2 * n, n);
    }
    qs_activate(p->ew, &l->act[1], clip, g + 3 * n, y + 3 * n, n);
    for (size_t i = 0; i < n && p->r.coupled; i++)
        y[2 * n + i] = 1.0f - y[i];
    QS_IVDEP
    for (size_t i = 0; i < n; i++)
        c[i] = y[2 * n + i] * c[i] + y[i] * y[3 * n + i];
    if (l->peephole) {
        add_scaled(g + n, c, l->peephole + n, n);
        qs_activate(p->ew, &l->act[0], clip, g + n, y + n, n);
    }
    memcpy(g, c, n * sizeof(*g));
    qs_activate(p->ew, &l->act[2], clip, g, y, n);
    QS_IVDEP
    for (size_t i = 0; i < n; i++)
        h[i] = y[n + i] * y[i];
}

/* Gates z, r, h; xw: the inputs' part, whose z and r are in g already. */
static void gru_cell(const lane *l, float *g, const float *xw, float *restrict h) {
    const plan *p = l->p;
    const size_t n = p->hidden;
    const float clip = p->r.clip;
    const ptrdiff_t zero = 0;
    float *y = l->curved, *t = l->extra;
    qs_activate(p->ew, &l->act[0], clip, g, y, 2 * n);
    if (p->r.before_reset) {
        product(l->j, &p->form.r[1], l->packed,
                &(qk_gemm_f32){.a = h, .row = &zero, .rows = 1, .bias = l->rb, .c = t, .ldc = n});
        QS_IVDEP
        for (size_t i = 0; i < n; i++)
            g[i] = xw[2 * n + i] + y[n + i] * t[i];
    } else {
        QS_IVDEP
        for (size_t i = 0; i < n; i++)
            t[i] = y[n + i] * h[i];
        product(
            l->j, &p->form.r[1], l->packed,
            &(qk_gemm_f32){.a = t, .row = &zero, .rows = 1, .bias = xw + 2 * n, .c = g, .ldc = n});
    }
    qs_activate(p->ew, &l->act[1], clip, g, y + 2 * n, n);
    QS_IVDEP
    for (size_t i = 0; i < n; i++)
        h[i] = (1.0f - y[i]) * y[2 * n + i] + y[i] * h[i];
}

static void rnn_cell(const lane *l, float *g, float *h) {
    qs_activate(l->p->ew, &l->act[0], l->p->r.clip, g, l->curved, l->p->hidden);
    memcpy(h, l->curved, l->p->hidden * sizeof(*h));
}

/* ---- time ---- */

static float *y_at(const lane *l, size_t time, size_t sample) {
    const plan *p = l->p;
    const size_t directions = (size_t)p->r.directions;
    const size_t row = p->r.batch_first ? (sample * p->time + time) * directions + l->d
                                        : (time * directions + l->d) * p->batch + sample;
    return l->j->y + row * p->hidden;
}

static size_t state_at(const lane *l, size_t sample) {
    const plan *p = l->p;
    const size_t directions = (size_t)p->r.directions;
    return p->hidden * (p->r.batch_first ? sample * directions + l->d : l->d * p->batch + sample);
}

static const float *inputs_part(const lane *l, size_t time, size_t sample) {
    const plan *p = l->p;
    return l->j->projected + l->d * p->gates_direction + (time * p->batch + sample) * p->gates_row;
}

/* Computes step s of sample i of the lane; its gates hold the state's part. */
static void step_sample(const lane *l, size_t s, size_t i, bool biased) {
    const plan *p = l->p;
    const size_t sample = l->first + i, n = p->hidden;
    const size_t length = l->j->lengths ? (size_t)l->j->lengths[sample] : p->time;
    float *h = l->h + i * n;
    if (s >= length) {
        if (l->j->y)
            memset(y_at(l, s, sample), 0, n * sizeof(*h));
        return;
    }
    const bool back = p->r.reverse || l->d == 1;
    const size_t time = back ? length - 1 - s : s;
    const float *xw = inputs_part(l, time, sample);
    float *g = l->gates + i * p->form.r[0].cols;
    if (!biased)
        add_into(g, xw, p->form.r[0].cols);
    if (p->r.cell == QS_LSTM)
        lstm_cell(l, g, h, l->c + i * n);
    else if (p->r.cell == QS_GRU)
        gru_cell(l, g, xw, h);
    else
        rnn_cell(l, g, h);
    if (l->j->y)
        memcpy(y_at(l, time, sample), h, n * sizeof(*h));
}

static void load_state(const lane *l, const float *from, float *to) {
    const size_t n = l->p->hidden;
    for (size_t i = 0; i < l->count; i++) {
        if (from)
            memcpy(to + i * n, from + state_at(l, l->first + i), n * sizeof(*to));
        else
            memset(to + i * n, 0, n * sizeof(*to));
    }
}

static void store_state(const lane *l, const float *from, float *to) {
    const size_t n = l->p->hidden;
    for (size_t i = 0; i < l->count && to; i++)
        memcpy(to + state_at(l, l->first + i), from + i * n, n * sizeof(*to));
}

/* Runs a lane. With one sample of full length the kernel adds the inputs' part: the same sum. */
static void run_lane(const lane *l) {
    const plan *p = l->p;
    const job *j = l->j;
    const bool biased = l->count == 1 && !j->lengths && !p->r.integer,
               back = p->r.reverse || l->d == 1;
    load_state(l, j->h0, l->h);
    if (p->r.cell == QS_LSTM)
        load_state(l, j->c0, l->c);
    for (size_t s = 0; s < p->time && !qs_stopped(j->ctx); s++) {
        const size_t time = back ? p->time - 1 - s : s;
        const float *bias = j->none;
        if (biased)
            bias = inputs_part(l, time, l->first);
        for (size_t i = 0; i < l->count && p->r.integer; i++)
            qs_states8_multiply(j->ctx, &p->form.states, l->packed, l->h + i * p->hidden, j->none,
                                l->rounded, l->gates + i * p->width);
        if (!p->r.integer)
            product(j, &p->form.r[0], l->packed,
                    &(qk_gemm_f32){.a = l->h,
                                   .row = p->h_row,
                                   .rows = l->count,
                                   .bias = bias,
                                   .c = l->gates,
                                   .ldc = p->form.r[0].cols});
        for (size_t i = 0; i < l->count; i++)
            step_sample(l, s, i, biased);
    }
    store_state(l, l->h, j->yh);
    if (p->r.cell == QS_LSTM)
        store_state(l, l->c, j->yc);
}

/* Runs the lane (direction, part of the batch) of a slice. */
static void lane_slice(void *arg, size_t slice) {
    const job *j = arg;
    const plan *p = j->p;
    const size_t d = slice / p->parts, i = slice % p->parts, n = p->hidden;
    lane l = {.j = j, .p = p, .d = d, .first = qs_slice_begin(p->batch, p->parts, i)};
    l.count = qs_slice_begin(p->batch, p->parts, i + 1) - l.first;
    l.packed = j->packed + d * p->form.floats;
    l.rb = j->biases + (2 * d + 1) * p->bias;
    l.peephole = j->peephole ? j->peephole + d * 3 * n : NULL;
    l.act = p->r.act[d];
    l.gates = j->states + slice * p->states;
    l.curved = l.gates + qs_align(l.count * p->form.r[0].cols + p->width, 16);
    l.extra = l.curved + qs_align(p->width, 16);
    l.h = l.extra + qs_align(n, 16);
    l.c = l.h + qs_align(l.count * n, 16);
    l.rounded = l.c + qs_align(l.count * n, 16);
    run_lane(&l);
}

bool qs_recurrent_lengths(const qs_recurrent *r, const int32_t *lengths, const qs_frame *f) {
    for (int64_t i = 0; i < r->batch && lengths; i++)
        if (lengths[i] < 0 || lengths[i] > r->time) {
            qs_step_outside(f, "length", lengths[i], 0, r->time + 1, -1);
            return false;
        }
    return true;
}

static const void *input(const qs_step *s, const qs_frame *f, int32_t index) {
    const plan *p = s->params;
    return p->in[index] ? qs_step_in(s, f, index) : NULL;
}

static void run_recurrent(const qs_step *s, const qs_frame *f) {
    const plan *p = s->params;
    float *scratch = f->scratch;
    job j = {.ctx = f->ctx,
             .p = p,
             .x = qs_step_in(s, f, 0),
             .bias = p->r.integer ? NULL : input(s, f, 3),
             .lengths = input(s, f, 4),
             .h0 = input(s, f, 5),
             .c0 = input(s, f, 6),
             .peephole = input(s, f, 7),
             .packed = p->packed,
             .y = p->out[0] ? qs_step_out(s, f, 0) : NULL,
             .yh = p->out[1] ? qs_step_out(s, f, 1) : NULL,
             .yc = p->out[2] ? qs_step_out(s, f, 2) : NULL};
    const size_t directions = (size_t)p->r.directions;
    if (!qs_recurrent_lengths(&p->r, j.lengths, f))
        return;
    j.none = scratch;
    j.biases = j.none + p->bias;
    float *const projected = j.biases + 2 * directions * p->bias;
    j.projected = p->r.integer ? j.x : projected;
    j.states = projected + directions * p->projected;
    if (!j.packed) {
        float *to = j.states + directions * p->parts * p->states;
        pack_all(
            p->kernels, &p->r, &p->form,
            (const void *const[4]){NULL, qs_step_in(s, f, 1), qs_step_in(s, f, 2), input(s, f, 3)},
            to);
        j.packed = to;
    }
    make_biases(&j);
    if (!p->r.integer)
        qs_parallel(f->ctx, p->slices, project_slice, &j);
    qs_parallel(f->ctx, directions * p->parts, lane_slice, &j);
}

/* ---- lowering ---- */

static bool add_product(size_t *sum, size_t a, size_t b) {
    size_t n;
    return qs_mul(a, b, &n) && qs_add(*sum, n, sum);
}

QS_COLD static bool size_scratch(qs_lower *l, plan *p) {
    const size_t n = p->hidden, d = (size_t)p->r.directions;
    const size_t each = (p->batch + p->parts - 1) / p->parts;
    size_t rows, total;
    p->bias = qs_align(p->width + 64, 64);
    if (!qs_mul(p->time, p->batch, &rows) ||
        !qs_mul(rows, p->r.integer ? 0 : p->width, &p->projected) ||
        !qs_add(p->projected, 128, &p->projected))
        return false;
    p->projected &= ~(size_t)15;
    p->states = 128 + 2 * p->width + n + p->form.states.scratch;
    if (!add_product(&p->states, each, p->form.r[0].cols) || !add_product(&p->states, each, 2 * n))
        return false;
    p->states = qs_align(p->states, 16);
    total = p->bias;
    return add_product(&total, 2 * d, p->bias) && add_product(&total, d, p->projected) &&
           add_product(&total, d * p->parts, p->states) &&
           (p->packed || add_product(&total, d, p->form.floats)) &&
           qs_mul(total, sizeof(float), &l->step->scratch);
}

QS_COLD static bool make_rows(qs_lower *l, plan *p) {
    const size_t rows = p->time * p->batch, k = p->r.integer ? 0 : (size_t)p->r.input;
    p->x_row = qs_arena_alloc(l->arena, rows + 1, sizeof(*p->x_row));
    p->h_row = qs_arena_alloc(l->arena, p->batch, sizeof(*p->h_row));
    for (size_t i = 0; i < rows && p->x_row; i++) {
        const size_t t = i / p->batch, b = i % p->batch;
        p->x_row[i] = (ptrdiff_t)((p->r.batch_first ? b * p->time + t : i) * k);
    }
    for (size_t i = 0; i < p->batch && p->h_row; i++)
        p->h_row[i] = (ptrdiff_t)(i * p->hidden);
    return p->x_row && p->h_row;
}

QS_COLD int qs_recurrent_lower(qs_lower *l, const qs_recurrent *r) {
    plan *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    l->step->run = qs_run_nothing;
    p->kernels = l->ctx->kernels->f32;
    p->ew = l->ctx->kernels->ew;
    p->r = *r;
    p->packed = l->packed;
    p->time = (size_t)r->time;
    p->batch = (size_t)r->batch;
    p->hidden = (size_t)r->hidden;
    if (!p->batch || !p->hidden)
        return QSIM_OK; /* no elements */
    if (!form_make(l->ctx, r, &p->form))
        return qs_weights_too_large(l->error);
    p->width = p->form.w.cols;
    for (int32_t i = 0; i < 8; i++)
        p->in[i] = qs_lower_in(l, i) != NULL;
    for (int32_t i = 0; i < 3; i++)
        p->out[i] = qs_lower_out(l, i) != NULL;
    const double gates = qs_real(p->time) * qs_real(p->batch) * r->directions * qs_real(p->width);
    const double x_macs = r->integer ? 0 : gates * (double)r->input;
    const double h_macs = gates * qs_real(p->hidden);
    p->pieces = (p->time * p->batch + ROWS - 1) / ROWS;
    p->slices = qs_slice_count(l->ctx, p->pieces * (size_t)r->directions, x_macs / QS_MACS_F32);
    p->parts = qs_slice_count(l->ctx, p->batch, h_macs / (double)r->directions / QS_MACS_F32);
    l->step->macs = x_macs + h_macs < 9e18 ? (int64_t)(x_macs + h_macs) : INT64_MAX;
    if (!size_scratch(l, p))
        return qs_scratch_too_large(l->error);
    p->gates_row = r->integer ? (size_t)r->directions * p->width : p->width;
    p->gates_direction = r->integer ? p->width : p->projected;
    if (!make_rows(l, p))
        return qs_fail(l->error, QSIM_E_NOMEM, "out of memory");
    l->step->run = run_recurrent;
    return QSIM_OK;
}
