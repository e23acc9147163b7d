/* SPDX-License-Identifier: MIT */
/*
 * Recurrent layers of doubles, which are rare: sums over k in order, one sample of one direction
 * after the other, or on several threads.
 */
#include "op/nn/recurrent.h"

/* Terms of a sum between two checks for a stop. */
#define SOME_TERMS ((size_t)1024)

typedef struct plan {
    qs_recurrent r;
    bool in[8], out[3];
    size_t lane; /* doubles of scratch memory per sample and direction */
} plan;

typedef struct job {
    const qsim_ctx *ctx;
    const plan *p;
    const double *x, *w, *rec, *bias, *h0, *c0, *peephole;
    const int32_t *lengths;
    double *y, *yh, *yc, *scratch;
} job;

/* One sample of one direction. */
typedef struct lane {
    const job *j;
    const double *w, *rec, *bias, *peephole; /* of the direction; the last two may be NULL */
    const qs_curve64 *act;
    double *gates, *h, *c, *gated, *next;
} lane;

static double dot(const lane *l, const double *a, const double *b, size_t n) {
    double sum = 0;
    for (size_t k = 0; k < n && !(k % SOME_TERMS == 0 && qs_stopped(l->j->ctx)); k++)
        sum = sum + a[k] * b[k];
    return sum;
}

static double activate(const lane *l, int which, double v) {
    const double clip = (double)l->j->p->r.clip;
    v = v < -clip ? -clip : v > clip ? clip : v;
    return l->act[which].fn(l->act[which].param, v);
}

/* The state's part of a row of all gates. */
static double from_state(const lane *l, const double *h, size_t row) {
    const size_t n = (size_t)l->j->p->r.hidden;
    return dot(l, h, l->rec + row * n, n);
}

/* Both biases of a row, or the state's alone. */
static double bias_of(const lane *l, size_t row, bool both) {
    const qs_recurrent *r = &l->j->p->r;
    const double own = l->bias ? l->bias[(size_t)(r->gates * r->hidden) + row] : 0;
    return l->bias && both ? l->bias[row] + own : own;
}

/* The inputs' part of all gates. */
static void project(const lane *l, const double *x) {
    const qs_recurrent *r = &l->j->p->r;
    const size_t n = (size_t)r->hidden, k = (size_t)r->input, rows = (size_t)r->gates * n;
    const size_t summed = r->cell == QS_GRU && r->before_reset ? 2 * n : rows;
    for (size_t i = 0; i < rows; i++) {
        const double b = i < summed ? bias_of(l, i, true) : l->bias ? l->bias[i] : 0;
        l->gates[i] = dot(l, x, l->w + i * k, k) + b;
    }
}

/* Gates i, o, f, c; peepholes i, o, f. */
static void lstm_cell(const lane *l) {
    const qs_recurrent *r = &l->j->p->r;
    const size_t n = (size_t)r->hidden;
    const double *p = l->peephole;
    double *g = l->gates;
    for (size_t i = 0; i < 4 * n; i++)
        g[i] = from_state(l, l->h, i) + g[i];
    for (size_t i = 0; i < n; i++) {
        const double in = activate(l, 0, p ? g[i] + p[i] * l->c[i] : g[i]);
        double keep = g[2 * n + i];
        keep = r->coupled ? 1 - in : activate(l, 0, p ? keep + p[2 * n + i] * l->c[i] : keep);
        l->c[i] = keep * l->c[i] + in * activate(l, 1, g[3 * n + i]);
        const double out = activate(l, 0, p ? g[n + i] + p[n + i] * l->c[i] : g[n + i]);
        l->h[i] = out * activate(l, 2, l->c[i]);
    }
}

/* Gates z, r, h. */
static void gru_cell(const lane *l) {
    const qs_recurrent *r = &l->j->p->r;
    const size_t n = (size_t)r->hidden;
    double *g = l->gates;
    for (size_t i = 0; i < 2 * n; i++)
        g[i] = activate(l, 0, from_state(l, l->h, i) + g[i]);
    for (size_t i = 0; i < n; i++)
        l->gated[i] = g[n + i] * l->h[i];
    for (size_t i = 0; i < n; i++) {
        const size_t row = 2 * n + i;
        const double own = r->before_reset
                               ? g[n + i] * (from_state(l, l->h, row) + bias_of(l, row, false))
                               : from_state(l, l->gated, row);
        l->next[i] = (1 - g[i]) * activate(l, 1, g[row] + own) + g[i] * l->h[i];
    }
    memcpy(l->h, l->next, n * sizeof(*l->h));
}

static void rnn_cell(const lane *l) {
    const size_t n = (size_t)l->j->p->r.hidden;
    for (size_t i = 0; i < n; i++)
        l->next[i] = activate(l, 0, from_state(l, l->h, i) + l->gates[i]);
    memcpy(l->h, l->next, n * sizeof(*l->h));
}

/* Which state of y, in its layout, is that of a time, direction and sample. */
static size_t y_row(const qs_recurrent *r, size_t time, size_t d, size_t sample) {
    const size_t directions = (size_t)r->directions, batch = (size_t)r->batch;
    return r->batch_first ? (sample * (size_t)r->time + time) * directions + d
                          : (time * directions + d) * batch + sample;
}

static void run_steps(const lane *l, size_t d, size_t sample) {
    const job *j = l->j;
    const qs_recurrent *r = &j->p->r;
    const size_t n = (size_t)r->hidden, time = (size_t)r->time;
    const size_t length = j->lengths ? (size_t)j->lengths[sample] : time;
    const bool back = r->reverse || d == 1;
    for (size_t s = 0; s < time && !qs_stopped(j->ctx); s++) {
        const size_t at = s < length && back ? length - 1 - s : s;
        const size_t x = r->batch_first ? sample * time + at : at * (size_t)r->batch + sample;
        double *y = j->y ? j->y + y_row(r, at, d, sample) * n : NULL;
        if (s >= length) {
            if (y)
                memset(y, 0, n * sizeof(*y));
            continue;
        }
        project(l, j->x + x * (size_t)r->input);
        if (r->cell == QS_LSTM)
            lstm_cell(l);
        else if (r->cell == QS_GRU)
            gru_cell(l);
        else
            rnn_cell(l);
        if (y)
            memcpy(y, l->h, n * sizeof(*y));
    }
}

static void load_state(double *to, const double *from, size_t at, size_t n) {
    if (from)
        memcpy(to, from + at, n * sizeof(*to));
    else
        memset(to, 0, n * sizeof(*to));
}

static void store_state(double *to, const double *from, size_t at, size_t n) {
    if (to)
        memcpy(to + at, from, n * sizeof(*to));
}

/* Runs lanes (direction, sample). */
static void lane_range(const void *arg, size_t begin, size_t end) {
    const job *j = arg;
    const qs_recurrent *r = &j->p->r;
    const size_t n = (size_t)r->hidden, rows = (size_t)r->gates * n, batch = (size_t)r->batch;
    for (size_t i = begin; i < end; i++) {
        const size_t d = i / batch, sample = i % batch;
        const size_t at = n * (r->batch_first ? sample * (size_t)r->directions + d : i);
        lane l = {.j = j, .w = j->w + d * rows * (size_t)r->input, .rec = j->rec + d * rows * n};
        l.bias = j->bias ? j->bias + d * 2 * rows : NULL;
        l.peephole = j->peephole ? j->peephole + d * 3 * n : NULL;
        l.act = r->act64[d];
        l.gates = j->scratch + i * j->p->lane;
        l.h = l.gates + rows;
        l.c = l.h + n;
        l.gated = l.c + n;
        l.next = l.gated + n;
        load_state(l.h, j->h0, at, n);
        load_state(l.c, j->c0, at, n);
        run_steps(&l, d, sample);
        store_state(j->yh, l.h, at, n);
        store_state(j->yc, l.c, at, n);
    }
}

static const void *input(const qs_step *s, const qs_frame *f, int32_t index) {
    const plan *p = s->params;
    return p->in[index] ? qs_step_in(s, f, index) : NULL;
}

static void run_recurrent(const qs_step *s, const qs_frame *f) {
    const plan *p = s->params;
    const job j = {.ctx = f->ctx,
                   .p = p,
                   .x = qs_step_in(s, f, 0),
                   .w = qs_step_in(s, f, 1),
                   .rec = qs_step_in(s, f, 2),
                   .bias = input(s, f, 3),
                   .lengths = input(s, f, 4),
                   .h0 = input(s, f, 5),
                   .c0 = input(s, f, 6),
                   .peephole = input(s, f, 7),
                   .y = p->out[0] ? qs_step_out(s, f, 0) : NULL,
                   .yh = p->out[1] ? qs_step_out(s, f, 1) : NULL,
                   .yc = p->out[2] ? qs_step_out(s, f, 2) : NULL,
                   .scratch = f->scratch};
    if (qs_recurrent_lengths(&p->r, j.lengths, f))
        qs_ranges(f->ctx, (size_t)(p->r.directions * p->r.batch), 1, lane_range, &j);
}

QS_COLD int qs_recurrent_lower64(qs_lower *l, const qs_recurrent *r) {
    plan *p = qs_lower_params(l, sizeof(*p));
    const size_t n = (size_t)r->hidden, lanes = (size_t)(r->directions * r->batch);
    size_t bytes;
    if (!p)
        return QSIM_E_NOMEM;
    p->r = *r;
    for (int32_t i = 0; i < 8; i++)
        p->in[i] = qs_lower_in(l, i) != NULL;
    for (int32_t i = 0; i < 3; i++)
        p->out[i] = qs_lower_out(l, i) != NULL;
    if (!qs_mul(n, (size_t)r->gates + 4, &p->lane) || !qs_mul(p->lane, sizeof(double), &bytes) ||
        !qs_mul(bytes, lanes, &l->step->scratch))
        return qs_scratch_too_large(l->error);
    l->step->run = run_recurrent;
    return QSIM_OK;
}
