/* SPDX-License-Identifier: MIT */
/*
 * Quantization with parameters found during execution: DynamicQuantizeLinear, over a whole tensor,
 * and the internal QuantizeRows, where every row has a scale of its own and zero point 128.
 */
#include "op/int8/qvalue.h"

#include "base/ctx.h"
#include "base/slices.h"
#include "kernel/ew.h"
#include "kernel/table.h"
#include "kernel/u8.h"
#include "quant/requantize.h"

#define MAX_TASKS 64

/* ---- DynamicQuantizeLinear ---- */

QS_COLD static int infer_dynamic(qs_infer *x) {
    int code = qs_infer_type(x, 0, QS_T_FLOAT);
    if (!code)
        code = qs_infer_out(x, 0, QSIM_UINT8, x->in[0]->rank, x->in[0]->dims);
    if (!code)
        code = qs_infer_out(x, 1, QSIM_FLOAT, 0, NULL);
    return code ? code : qs_infer_out(x, 2, QSIM_UINT8, 0, NULL);
}

typedef struct dynamic_params {
    size_t elements, part;
    size_t tasks;
} dynamic_params;

typedef struct dynamic_job {
    const dynamic_params *p;
    const qsim_ctx *ctx;
    const qk_ew *k;
    const float *x;
    uint8_t *y;
    void (*quantize)(const float *x, size_t n, float scale, int32_t zp, uint8_t flip, uint8_t *y);
    float scale;
    int32_t zp;
    float low[MAX_TASKS], high[MAX_TASKS];
} dynamic_job;

static size_t part_end(const dynamic_params *p, size_t task) {
    return task + 1 == p->tasks ? p->elements : (task + 1) * p->part;
}

static void find_range(void *arg, size_t task) {
    dynamic_job *job = arg;
    const size_t begin = task * job->p->part, n = part_end(job->p, task) - begin;
    float *low = &job->low[task], *high = &job->high[task], least, most;
    for (size_t at = 0, count; (count = qs_piece(job->ctx, at, n)); at += count) {
        job->k->range(job->x + begin + at, count, &least, &most);
        *low = at ? qs_minf(least, *low) : least;
        *high = at ? qs_maxf(most, *high) : most;
    }
}

static void quantize_part(void *arg, size_t task) {
    const dynamic_job *job = arg;
    const size_t begin = task * job->p->part, n = part_end(job->p, task) - begin;
    for (size_t at = begin, count; (count = qs_piece(job->ctx, at, begin + n)); at += count)
        job->quantize(job->x + at, count, job->scale, job->zp, 0, job->y + at);
}

static void for_all(const qs_frame *f, const dynamic_params *p, qsim_task_fn fn, void *job) {
    if (p->tasks == 1)
        fn(job, 0);
    else
        qs_parallel(f->ctx, p->tasks, fn, job);
}

static void run_dynamic(const qs_step *s, const qs_frame *f) {
    const dynamic_params *p = s->params;
    dynamic_job job = {.p = p,
                       .ctx = f->ctx,
                       .k = f->ctx->kernels->ew,
                       .x = qs_step_in(s, f, 0),
                       .y = qs_step_out(s, f, 0)};
    for_all(f, p, find_range, &job);
    float low = 0.0f, high = 0.0f;
    for (size_t i = 0; i < p->tasks; i++) {
        low = qs_minf(job.low[i], low);
        high = qs_maxf(job.high[i], high);
    }
    const qs_q8 q = qs_q8_dynamic(low, high);
    job.scale = q.scale;
    job.zp = q.zero_point;
    const qk_u8 *u8 = f->ctx->kernels->u8;
    job.quantize = qk_within(high, job.scale, job.zp) ? u8->quantize_within : u8->quantize;
    for_all(f, p, quantize_part, &job);
    *(float *)qs_step_out(s, f, 1) = job.scale;
    *(uint8_t *)qs_step_out(s, f, 2) = (uint8_t)job.zp;
}

QS_COLD static int lower_dynamic(qs_lower *l) {
    dynamic_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->elements = qs_value_elements(qs_lower_in(l, 0));
    p->tasks = qs_slice_count(l->ctx, MAX_TASKS, qs_real(p->elements) / QS_QUANTIZED);
    p->part = p->elements / p->tasks;
    l->step->run = run_dynamic;
    return QSIM_OK;
}

QS_OP(dynamic_quantize, .name = "DynamicQuantizeLinear", .since = 11, .min_in = 1, .min_out = 3,
      .traits = QS_RANGED | QS_QUANTIZES, .kernel = QS_KERNEL_DYNAMIC_QUANTIZE,
      .infer = infer_dynamic, .lower = lower_dynamic);

/* ---- QuantizeRows ---- */

/* A row: all axes from `axis` on. Outputs: u8, and the scales with those axes of size 1. */
QS_COLD static int rows_axis(const qs_infer *x, int32_t *axis) {
    return qs_infer_axis(x, qs_node_int(x->node, "axis", -1), x->in[0]->rank, axis);
}

QS_COLD static int infer_rows(qs_infer *x) {
    const qs_value *v = x->in[0];
    qs_dim dims[QSIM_MAX_RANK];
    int32_t axis = 0;
    int code = qs_infer_type(x, 0, QS_T_FLOAT);
    if (!code && v->rank >= 0)
        code = rows_axis(x, &axis);
    for (int32_t i = 0; i < v->rank; i++)
        dims[i] = i < axis ? v->dims[i] : (qs_dim){1, NULL};
    if (!code)
        code = qs_infer_out(x, 0, QSIM_UINT8, v->rank, v->dims);
    return code ? code : qs_infer_out(x, 1, QSIM_FLOAT, v->rank, dims);
}

typedef struct rows_params {
    size_t rows, count;
} rows_params;

typedef struct rows_job {
    const rows_params *p;
    const qk_ew *k;
    const qk_u8 *u8;
    const float *x;
    uint8_t *y;
    float *scale;
} rows_job;

static void quantize_rows(const void *arg, size_t begin, size_t end) {
    const rows_job *job = arg;
    size_t n = job->p->count;
    for (size_t r = begin; r < end; r++) {
        float m = job->k->magnitude(job->x + r * n, n);
        float scale = (m < 1e-30f ? 1e-30f : m) / 127.0f;
        job->u8->quantize(job->x + r * n, n, scale, 128, 0, job->y + r * n);
        job->scale[r] = scale;
    }
}

static void run_rows(const qs_step *s, const qs_frame *f) {
    const rows_params *p = s->params;
    rows_job job = {p,
                    f->ctx->kernels->ew,
                    f->ctx->kernels->u8,
                    qs_step_in(s, f, 0),
                    qs_step_out(s, f, 0),
                    qs_step_out(s, f, 1)};
    qs_ranges(f->ctx, p->rows, QS_GRAIN / 4 / (p->count + 1) + 1, quantize_rows, &job);
}

QS_COLD static int lower_rows(qs_lower *l) {
    const qs_value *x = qs_lower_in(l, 0);
    qs_infer rules;
    int32_t axis = 0;
    qs_lower_infer(l, &rules);
    int code = rows_axis(&rules, &axis);
    if (code)
        return code;
    rows_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->rows = (size_t)qs_dims_product(x->dims, 0, axis);
    p->count = (size_t)qs_dims_product(x->dims, axis, x->rank);
    l->step->run = run_rows;
    return QSIM_OK;
}

static const qs_attr_rule rows_attrs[] = {{"axis", QSIM_ATTR_INT, 0, 0}};

QS_OP(qsim_quantize_rows, .domain = QS_DOMAIN_QSIM, .name = "QuantizeRows", .min_in = 1,
      .min_out = 2, QS_ATTRS(rows_attrs), .traits = QS_RANGED | QS_QUANTIZES, .axis = -1,
      .kernel = QS_KERNEL_QUANTIZE_ROWS, .infer = infer_rows, .lower = lower_rows);
