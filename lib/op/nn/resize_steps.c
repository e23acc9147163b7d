/* SPDX-License-Identifier: MIT */
/* Executes Resize. */
#include "kernel/table.h"
#include "kernel/u8.h"
#include "op/nn/resize.h"
#include "op/rules.h"

/* ---- nearest ---- */

/*
 * A row of the result is `count` blocks of `block` bytes, `step` bytes apart, the first one at byte
 * `column`; the outer axes select the input's row.
 */
typedef struct nearest_params {
    int32_t rank;
    size_t rows, count, block, step, column, element;
    bool table, beyond; /* beyond: an entry of `last` is outside of the image */
    size_t dims[QSIM_MAX_RANK], strides[QSIM_MAX_RANK];
    const int64_t *index[QSIM_MAX_RANK]; /* of the outer axes; NULL: not resized */
    const int64_t *last;
    float outside;
} nearest_params;

typedef struct resize_job {
    const qsim_ctx *ctx;
    const void *p;
    const char *x;
    char *y;
    const qk_u8 *bytes;
    const uint8_t *table;
} resize_job;

#define PICK(T)                                                                                    \
    static void pick_##T(const T *restrict x, T *restrict y, const int64_t *index, size_t n) {     \
        for (size_t i = 0; i < n; i++)                                                             \
            y[i] = x[index[i] < 0 ? 0 : index[i]];                                                 \
    }
PICK(uint8_t)
PICK(uint16_t)
PICK(uint32_t)
PICK(uint64_t)

QS_COLD static void fill_outside(char *y, size_t count, bool fine, float value) {
    const double wide = (double)value;
    const size_t element = fine ? sizeof(wide) : sizeof(value);
    for (size_t i = 0; i < count; i++)
        memcpy(y + i * element, fine ? (const void *)&wide : (const void *)&value, element);
}

/* Blocks that are not contiguous or are long; equal neighbours are written together. */
QS_COLD static void nearest_blocks(const resize_job *job, const char *x, char *y,
                                   const int64_t *last, size_t n) {
    const nearest_params *p = job->p;
    for (size_t i = 0, same; i < n; i += same, y += same * p->step) {
        const char *const from = x + (size_t)(last[i] < 0 ? 0 : last[i]) * p->block;
        for (same = 1; i + same < n && last[i + same] == last[i];)
            same++;
        if (job->table)
            job->bytes->table(job->table, (const uint8_t *)from, 0, (uint8_t *)y, p->step, p->block,
                              same);
        else
            qs_copy_many_rows(job->ctx, from, 0, y, (ptrdiff_t)p->step, p->block, same);
    }
}

/* Elements [at, at + n) of a row. */
QS_COLD static void nearest_piece(const resize_job *job, const char *x, char *y, size_t at,
                                  size_t n) {
    const nearest_params *p = job->p;
    const int64_t *last = p->last + at;
    y += at * p->step;
    switch (p->step == p->block && !job->table ? p->block : 0) {
    case 1: pick_uint8_t((const void *)x, (void *)y, last, n); break;
    case 2: pick_uint16_t((const void *)x, (void *)y, last, n); break;
    case 4: pick_uint32_t((const void *)x, (void *)y, last, n); break;
    case 8: pick_uint64_t((const void *)x, (void *)y, last, n); break;
    default: nearest_blocks(job, x, y, last, n);
    }
    for (size_t i = 0; i < n && p->beyond; i++)
        if (last[i] < 0)
            fill_outside(y + i * p->step, p->block / p->element, p->element == 8, p->outside);
}

QS_COLD static void nearest_row(const resize_job *job, const char *x, char *y) {
    const nearest_params *p = job->p;
    for (size_t at = 0, n; (n = qs_piece(job->ctx, at, p->count)); at += n)
        nearest_piece(job, x, y, at, n);
}

/* Copies the row above. */
QS_COLD static void repeat_row(const qsim_ctx *ctx, const nearest_params *p, char *y) {
    const size_t line = p->count * p->step;
    if (p->step == p->block)
        qs_copy(ctx, y, y - line, line);
    else
        qs_copy_many_rows(ctx, y - line, (ptrdiff_t)p->step, y, (ptrdiff_t)p->step, p->block,
                          p->count);
}

QS_COLD static void nearest_range(const void *arg, size_t begin, size_t end) {
    const resize_job *job = arg;
    const nearest_params *p = job->p;
    const size_t line = p->count * p->step;
    size_t before = SIZE_MAX; /* offset of the input of the row above */
    for (size_t row = begin; row < end; row++) {
        size_t at = 0, rest = row;
        bool outside = false;
        char *y = job->y + row * line + p->column;
        for (int32_t i = p->rank; i-- > 0; rest /= p->dims[i]) {
            const size_t k = rest % p->dims[i];
            const int64_t from = p->index[i] ? p->index[i][k] : (int64_t)k;
            outside |= from < 0;
            at += (size_t)(from < 0 ? 0 : from) * p->strides[i];
        }
        for (size_t i = 0; outside && i < p->count; i++)
            fill_outside(y + i * p->step, p->block / p->element, p->element == 8, p->outside);
        if (!outside && at == before)
            repeat_row(job->ctx, p, y);
        else if (!outside)
            nearest_row(job, job->x + at, y);
        before = outside ? SIZE_MAX : at;
    }
}

static void run_nearest(const qs_step *s, const qs_frame *f) {
    const nearest_params *p = s->params;
    const resize_job job = {.ctx = f->ctx,
                            .p = p,
                            .x = qs_step_in(s, f, 0),
                            .y = qs_step_out(s, f, 0),
                            .bytes = f->ctx->kernels->u8,
                            .table = p->table ? qs_step_in(s, f, QS_RESIZE_TABLE) : NULL};
    qs_ranges(f->ctx, p->rows, QS_GRAIN * 2 / (p->count * p->block + 1) + 1, nearest_range, &job);
}

/* A row covers the last axis that is resized, with "into" that of pixels. */
QS_COLD int qs_resize_lower_nearest(qs_lower *l, float outside, const qs_resize_taps *taps) {
    const qs_value *x = qs_lower_in(l, 0), *y = qs_lower_out(l, 0);
    nearest_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    const size_t element = qs_dtype_bytes(x->dtype), into = (size_t)qs_node_int(l->node, "into", 0);
    int32_t axis = x->rank - 1;
    p->block = p->element = element;
    while (into ? axis == x->rank - 1 : taps[axis].identity)
        p->block *= (size_t)x->dims[axis--].size;
    p->step = into ? into * element : p->block;
    p->column = into ? (size_t)qs_node_int(l->node, "column", 0) * element : 0;
    p->table = l->node->input_count > QS_RESIZE_TABLE && qs_lower_in(l, QS_RESIZE_TABLE);
    if (l->node->input_count > QS_RESIZE_OVER && qs_lower_in(l, QS_RESIZE_OVER))
        l->step->reuses = QS_RESIZE_OVER;
    p->last = taps[axis].index;
    p->count = (size_t)y->dims[axis].size;
    for (size_t i = 0; i < p->count; i++)
        p->beyond |= p->last[i] < 0;
    p->rank = axis;
    p->rows = 1;
    p->outside = outside;
    size_t stride = p->block * (size_t)x->dims[axis].size;
    for (int32_t i = axis; i-- > 0; stride *= (size_t)x->dims[i].size) {
        p->dims[i] = (size_t)y->dims[i].size;
        p->index[i] = taps[i].identity ? NULL : taps[i].index;
        p->strides[i] = stride;
        p->rows *= p->dims[i];
    }
    l->step->run = run_nearest;
    return QSIM_OK;
}

/* ---- linear and cubic: one axis after the other ---- */

typedef struct filter_pass {
    size_t outer, in, out, inner;
    qs_resize_taps taps;
} filter_pass;

typedef struct filter_params {
    int32_t count;
    float outside;
    size_t half; /* bytes of each of the two buffers between passes */
    filter_pass pass[QSIM_MAX_RANK];
} filter_params;

typedef struct filter_job {
    const filter_pass *p;
    const char *x;
    char *y;
    float outside;
} filter_job;

/* Sums start with the first product and add the others in the order of the taps. */
static void filter_row(const filter_pass *p, const float *x, float *restrict y,
                       const int64_t *index, const float *weight) {
    const float *restrict a = x + (size_t)index[0] * p->inner;
    const float *restrict b = x + (size_t)index[1] * p->inner;
    const float wa = weight[0], wb = weight[1];
    for (size_t j = 0; j < p->inner; j++)
        y[j] = wa * a[j] + wb * b[j];
    for (size_t t = 2; t < p->taps.taps; t++) {
        const float *restrict c = x + (size_t)index[t] * p->inner;
        const float w = weight[t];
        for (size_t j = 0; j < p->inner; j++)
            y[j] = y[j] + w * c[j];
    }
}

/* The same of n positions, each of one number. */
static void filter_line(const filter_pass *p, const float *x, float *restrict y,
                        const int64_t *index, const float *weight, size_t n) {
    const size_t taps = p->taps.taps;
    for (size_t i = 0; i < n; i++, index += taps, weight += taps) {
        float sum = weight[0] * x[index[0] < 0 ? 0 : index[0]] + weight[1] * x[index[1]];
        for (size_t t = 2; t < taps; t++)
            sum = sum + weight[t] * x[index[t]];
        y[i] = sum;
    }
}

static void filter_row_fine(const filter_pass *p, const double *x, double *restrict y,
                            const int64_t *index, const double *weight) {
    for (size_t j = 0; j < p->inner; j++) {
        double sum = weight[0] * x[(size_t)index[0] * p->inner + j];
        for (size_t t = 1; t < p->taps.taps; t++)
            sum = sum + weight[t] * x[(size_t)index[t] * p->inner + j];
        y[j] = sum;
    }
}

/* Computes rows (outer, position of the result). */
static void filter_range(const void *arg, size_t begin, size_t end) {
    const filter_job *job = arg;
    const filter_pass *p = job->p;
    const bool fine = p->taps.fine != NULL, line = p->inner == 1 && !fine;
    const size_t element = fine ? sizeof(double) : sizeof(float);
    for (size_t row = begin, n; row < end; row += n) {
        const size_t at = row % p->out, i = at * p->taps.taps, left = p->out - at;
        const char *x = job->x + row / p->out * p->in * p->inner * element;
        char *y = job->y + row * p->inner * element;
        n = !line ? 1 : left < end - row ? left : end - row;
        if (line)
            filter_line(p, (const void *)x, (void *)y, p->taps.index + i, p->taps.weight + i, n);
        else if (p->taps.index[i] >= 0 && fine)
            filter_row_fine(p, (const void *)x, (void *)y, p->taps.index + i, p->taps.fine + i);
        else if (p->taps.index[i] >= 0)
            filter_row(p, (const void *)x, (void *)y, p->taps.index + i, p->taps.weight + i);
        for (size_t k = 0; k < n; k++)
            if (p->taps.index[i + k * p->taps.taps] < 0)
                fill_outside(y + k * p->inner * element, p->inner, fine, job->outside);
    }
}

static void run_filter(const qs_step *s, const qs_frame *f) {
    const filter_params *p = s->params;
    const char *x = qs_step_in(s, f, 0);
    char *scratch = f->scratch;
    for (int32_t i = 0; i < p->count; i++) {
        const filter_pass *pass = &p->pass[i];
        const bool last = i + 1 == p->count;
        char *y = last ? qs_step_out(s, f, 0) : scratch + (size_t)(i % 2) * p->half;
        const filter_job job = {pass, x, y, p->outside};
        const size_t work = pass->inner * pass->taps.taps;
        qs_ranges(f->ctx, pass->outer * pass->out, QS_GRAIN / 4 / (work + 1) + 1, filter_range,
                  &job);
        x = y;
    }
}

QS_COLD int qs_resize_lower_filter(qs_lower *l, float outside, const qs_resize_taps *taps) {
    const qs_value *x = qs_lower_in(l, 0), *y = qs_lower_out(l, 0);
    filter_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    size_t between = 0, outer = 1;
    p->outside = outside;
    for (int32_t i = 0; i < x->rank; i++) {
        filter_pass *pass = &p->pass[p->count];
        const size_t in = (size_t)x->dims[i].size, out = (size_t)y->dims[i].size;
        size_t inner = 1, floats;
        for (int32_t k = i + 1; k < x->rank; k++)
            inner *= (size_t)x->dims[k].size;
        if (!qs_mul(outer, out, &floats) || !qs_mul(floats, inner, &floats))
            return qs_scratch_too_large(l->error);
        if (!taps[i].identity) {
            *pass = (filter_pass){outer, in, out, inner, taps[i]};
            p->count++;
            between = floats > between ? floats : between;
        }
        outer *= out;
    }
    if (!qs_mul(qs_align(between, 16), qs_dtype_bytes(x->dtype), &p->half) ||
        (p->count > 1 && !qs_mul(p->half, p->count > 2 ? 2 : 1, &l->step->scratch)))
        return qs_scratch_too_large(l->error);
    l->step->run = run_filter;
    return QSIM_OK;
}
