/* SPDX-License-Identifier: MIT */
/* Execution of operators on quantized integers. */
#include "op/int8/int8_op.h"

#include "base/slices.h"

typedef struct run {
    const qs_i8_plan *p;
    const qs_step *s;
    const qs_frame *f;
    const uint8_t *x;
    uint8_t *y, *scratch;
    const void *after_arg;
} run;

static const void *role_in(const run *k, int32_t index) {
    return index < 0 || index >= k->p->input_count ? NULL : qs_step_in(k->s, k->f, index);
}

/* The part of a list that belongs to matrix `from`, or the list that all matrices share. */
static const void *part(const void *list, int64_t count, int64_t each, int64_t from, size_t size) {
    if (!list || count <= each)
        return list;
    return (const uint8_t *)list + (size_t)(from * each) * size;
}

static void read_floats(const run *k, qs_i8_rules *r) {
    r->floats = k->p->packed->columns;
    r->x_scale = *(const float *)role_in(k, QS_I8_X_SCALE);
    r->low = k->p->floats.low;
    r->high = k->p->floats.high;
}

static void read_rules(const run *k, int64_t batch, uint8_t *memory, qs_i8_rules *r) {
    const qs_i8_plan *p = k->p;
    const qs_i8_roles *at = p->roles;
    int64_t m = p->conv.g.ho, n = p->shape.w.n;
    int64_t xb = p->x_matrix ? p->x_matrix[batch] : 0, wb = p->w_matrix ? p->w_matrix[batch] : 0;
    const uint8_t *x_zp = part(role_in(k, at->x_zp), p->x_zps, m, xb, 1);
    const float *x_scale = part(role_in(k, at->x_scale), p->x_scales, m, xb, 4);
    const float *y_scale = role_in(k, at->y_scale);
    const uint8_t *y_zp = role_in(k, at->y_zp);
    *r = (qs_i8_rules){.ctx = k->f->ctx,
                       .int32_out = p->int32_out,
                       .x_scale = x_scale ? x_scale[0] : 1.0f,
                       .y_scale = y_scale ? y_scale[0] : 1.0f,
                       .w_scale = part(role_in(k, at->w_scale), p->w_scales, n, wb, 4),
                       .w_scales = p->w_scales,
                       .bias = role_in(k, p->floats.integers ? QS_I8_ADD : at->bias),
                       .x_zp = x_zp ? x_zp[0] : 0,
                       .y_zp = y_zp ? y_zp[0] : 0,
                       .lo = p->lo,
                       .hi = p->hi,
                       .wide = p->wide};
    if (p->floats.direct)
        read_floats(k, r);
    if (!p->rows)
        return;
    int32_t *row_zp = (int32_t *)(void *)memory;
    float *row_scale = (float *)(void *)(memory + p->row_bytes / 2);
    for (int64_t i = 0; i < m; i++) {
        row_zp[i] = x_zp ? x_zp[p->x_zps == 1 ? 0 : i] : 0;
        row_scale[i] = x_scale ? x_scale[p->x_scales == 1 ? 0 : i] : 1.0f;
    }
    r->row_zp = row_zp;
    r->row_scale = p->int32_out ? NULL : row_scale;
}

static void run_batch(const run *k, int64_t batch, uint8_t *memory) {
    const qs_i8_plan *p = k->p;
    qs_conv_i8 conv = p->conv;
    qs_i8_weights weights;
    qs_i8_rules rules;
    qs_i8_epilogue e;
    int64_t xb = p->x_matrix ? p->x_matrix[batch] : 0, wb = p->w_matrix ? p->w_matrix[batch] : 0;
    if (p->packed) {
        weights = p->packed->weights;
    } else {
        qk_source_i8 source = p->shape.source;
        int64_t columns = (int64_t)p->shape.w.n * p->shape.w.groups;
        int64_t matrix = columns * source.c * source.kh * source.kw;
        qs_i8_list zp = {part(role_in(k, p->roles->w_zp), p->w_zps, columns, wb, 1), p->w_zps,
                         p->w_signed};
        source.w = (const int8_t *)role_in(k, p->roles->w) + wb * matrix;
        source.flip = p->w_signed ? 0 : 0x80;
        source.ctx = k->f->ctx;
        qs_i8_weights_fill(&conv.w, &source, p->shape.group_stride, &zp, NULL, memory, &weights);
        memory += p->weights_bytes;
    }
    read_rules(k, batch, memory, &rules);
    memory += p->row_bytes;
    qs_i8_epilogue_fill(&conv.w, &weights, &rules, memory, &e);
    memory += p->epilogue_bytes;
    conv.b = weights.b;
    conv.w_zp = weights.row_zp;
    conv.o = e.o;
    conv.x_zp = (uint8_t)rules.x_zp;
    conv.post = e.use_post ? &e.post : NULL;
    conv.after_arg = k->after_arg;
    qs_conv_i8_run(k->f->ctx, &conv, k->x + xb * p->x_bytes,
                   k->y + batch * p->y_elements * (p->int32_out ? 4 : 1), memory, false);
}

static void run_task(void *arg, size_t task) {
    const run *k = arg;
    const qs_i8_plan *p = k->p;
    int64_t end = p->batches * ((int64_t)task + 1) / p->tasks;
    for (int64_t i = p->batches * (int64_t)task / p->tasks; i < end; i++)
        run_batch(k, i, k->scratch + task * p->task_bytes);
}

void qs_i8_run_prepared(const qs_step *s, const qs_frame *f) {
    const qs_i8_plan *p = s->params;
    qs_conv_i8_run(f->ctx, &p->conv, qs_step_in(s, f, p->roles->x), qs_step_out(s, f, 0),
                   f->scratch, s->overlaps);
}

static void prepare_and_run(const qs_step *s, const qs_frame *f, const void *after_arg) {
    const qs_i8_plan *p = s->params;
    run k = {p, s, f, qs_step_in(s, f, p->roles->x), qs_step_out(s, f, 0), f->scratch, after_arg};
    if (p->tasks == 1)
        run_task(&k, 0);
    else
        qs_parallel(f->ctx, (size_t)p->tasks, run_task, &k);
}

void qs_i8_run_preparing(const qs_step *s, const qs_frame *f) {
    prepare_and_run(s, f, NULL);
}

void qs_i8_run(const qs_step *s, const qs_frame *f, const void *after_arg) {
    if (s->run == qs_i8_run_preparing)
        prepare_and_run(s, f, after_arg);
    else
        s->run(s, f);
}
