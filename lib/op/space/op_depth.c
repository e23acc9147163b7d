/* SPDX-License-Identifier: MIT */
/*
 * DepthColumns, DepthRows and DepthSum, internal: with them a convolution over three spatial axes
 * is computed by one over two. DepthColumns turns the slices in a window of the first axis into
 * channels; DepthRows joins the results, slice by slice, to a tensor of three axes; DepthSum does
 * so for transposed convolutions and adds up overlapping slices.
 *
 *     columns[n * depth_out + d][c * kernel + k] = x[n][c][d * stride + k * dilation - before]
 *     rows[n][m][d] = y[n * depth_out + d][m]
 *     sum[n][m][d] = bias[m] + sum over k of y[n * depth_in + i][m * kernel + k],
 *                    i * stride + k * dilation - before = d
 */
#include "op/nn/window.h"

typedef struct depth_form {
    int64_t kernel, stride, dilation, before, out; /* out -1: unknown */
} depth_form;

enum { PADS_GIVEN, SAME_UPPER, SAME_LOWER }; /* attribute "same" */

QS_COLD static int64_t attr_of(const qs_node *n, const char *name, int64_t least,
                               int64_t fallback) {
    const int64_t v = qs_node_int(n, name, fallback);
    return v < least ? least : v > QS_WINDOW_LIMIT ? QS_WINDOW_LIMIT : v;
}

/* Reads the attributes for an axis of size `in`; -1: unknown. */
static depth_form read_form(const qs_node *n, int64_t in) {
    depth_form f = {attr_of(n, "kernel", 1, 1), attr_of(n, "stride", 1, 1),
                    attr_of(n, "dilation", 1, 1), attr_of(n, "before", 0, 0), -1};
    const int64_t same = qs_node_int(n, "same", PADS_GIVEN), span = (f.kernel - 1) * f.dilation + 1;
    if (in < 0)
        return f;
    if (same == PADS_GIVEN) {
        const int64_t last = in + f.before + attr_of(n, "after", 0, 0) - span;
        f.out = last < 0 ? 0 : last / f.stride + 1;
        return f;
    }
    f.out = (in + f.stride - 1) / f.stride;
    const int64_t total = (f.out - 1) * f.stride + span - in;
    f.before = total <= 0 ? 0 : same == SAME_LOWER ? total - total / 2 : total / 2;
    return f;
}

QS_COLD static int64_t times(int64_t a, int64_t b) {
    int64_t all;
    return a < 0 || b < 0 || !qs_mul64(a, b, &all) ? -1 : all;
}

typedef struct depth_params {
    depth_form form;
    size_t batch, channels, in, out; /* channels: of the tensor with three spatial axes */
    size_t plane;                    /* elements of a slice of one channel */
    size_t bytes;
    bool filled;
} depth_params;

typedef struct depth_job {
    const depth_params *p;
    const uint8_t *x;
    const void *fill; /* fill value, or a bias */
    uint8_t *y;
} depth_job;

/* `five` (rank 5) has the channels and slices to compute; in: size of the first spatial axis. */
QS_COLD static depth_params *params_of(qs_lower *l, const qs_value *five, int64_t in) {
    depth_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return NULL;
    p->form = read_form(l->node, in);
    p->in = (size_t)in;
    p->out = (size_t)p->form.out;
    p->batch = (size_t)five->dims[0].size;
    p->channels = (size_t)five->dims[1].size;
    p->plane = (size_t)five->dims[3].size * (size_t)five->dims[4].size;
    p->bytes = qs_dtype_bytes(five->dtype);
    return p;
}

/* ---- DepthColumns ---- */

QS_COLD static int infer_columns(qs_infer *x) {
    const qs_value *v = x->in[0];
    if (v->rank != 5)
        return qs_infer_fail(x, QSIM_E_INTERNAL, "the input has rank %d, not 5", (int)v->rank);
    const depth_form f = read_form(x->node, v->dims[2].size);
    const qs_dim dims[4] = {{times(v->dims[0].size, f.out), NULL},
                            {times(v->dims[1].size, f.kernel), NULL},
                            v->dims[3],
                            v->dims[4]};
    return qs_infer_out(x, 0, v->dtype, 4, dims);
}

QS_COLD static void columns_range(const void *arg, size_t begin, size_t end) {
    const depth_job *j = arg;
    const depth_params *p = j->p;
    const size_t slice = p->plane * p->bytes, taps = (size_t)p->form.kernel;
    for (size_t i = begin; i < end; i++) {
        const size_t tap = i % taps, c = i / taps % p->channels;
        const size_t d = i / taps / p->channels % p->out, n = i / taps / p->channels / p->out;
        const int64_t at =
            (int64_t)d * p->form.stride + (int64_t)tap * p->form.dilation - p->form.before;
        uint8_t *y = j->y + i * slice;
        if (at >= 0 && at < (int64_t)p->in)
            memcpy(y, j->x + ((n * p->channels + c) * p->in + (size_t)at) * slice, slice);
        else
            memset(y, j->fill ? *(const uint8_t *)j->fill : 0, slice);
    }
}

QS_COLD static void run_columns(const qs_step *s, const qs_frame *f) {
    const depth_params *p = s->params;
    const depth_job j = {p, qs_step_in(s, f, 0), p->filled ? qs_step_in(s, f, 1) : NULL,
                         qs_step_out(s, f, 0)};
    const size_t slices = p->batch * p->out * p->channels * (size_t)p->form.kernel;
    qs_ranges(f->ctx, slices, 1 + QS_GRAIN / (1 + p->plane * p->bytes), columns_range, &j);
}

QS_COLD static int lower_columns(qs_lower *l) {
    const qs_value *v = qs_lower_in(l, 0);
    depth_params *p = params_of(l, v, v->dims[2].size);
    if (!p)
        return QSIM_E_NOMEM;
    p->filled = l->node->input_count > 1 && qs_lower_in(l, 1);
    if (p->filled && (p->bytes != 1 || qs_value_elements(qs_lower_in(l, 1)) != 1))
        return qs_fail(l->error, QSIM_E_UNSUPPORTED,
                       "%s: a zero point for each channel (node '%s')", l->model, l->node->name);
    l->step->run = run_columns;
    return QSIM_OK;
}

/* ---- DepthRows ---- */

/* Input 1 is the tensor from which DepthColumns made the columns. */
QS_COLD static int infer_rows(qs_infer *x) {
    const qs_value *y = x->in[0], *v = x->in[1];
    if (y->rank != 4 || v->rank != 5)
        return qs_infer_fail(x, QSIM_E_INTERNAL, "the inputs have ranks %d and %d", (int)y->rank,
                             (int)v->rank);
    const depth_form f = read_form(x->node, v->dims[2].size);
    const qs_dim dims[5] = {v->dims[0], y->dims[1], {f.out, NULL}, y->dims[2], y->dims[3]};
    return qs_infer_out(x, 0, y->dtype, 5, dims);
}

QS_COLD static void rows_range(const void *arg, size_t begin, size_t end) {
    const depth_job *j = arg;
    const depth_params *p = j->p;
    const size_t slice = p->plane * p->bytes;
    for (size_t i = begin; i < end; i++) {
        const size_t d = i % p->out, m = i / p->out % p->channels, n = i / p->out / p->channels;
        memcpy(j->y + i * slice, j->x + ((n * p->out + d) * p->channels + m) * slice, slice);
    }
}

QS_COLD static void run_rows(const qs_step *s, const qs_frame *f) {
    const depth_params *p = s->params;
    const depth_job j = {p, qs_step_in(s, f, 0), NULL, qs_step_out(s, f, 0)};
    qs_ranges(f->ctx, p->batch * p->out * p->channels, 1 + QS_GRAIN / (1 + p->plane * p->bytes),
              rows_range, &j);
}

QS_COLD static int lower_rows(qs_lower *l) {
    depth_params *p = params_of(l, qs_lower_out(l, 0), qs_lower_in(l, 1)->dims[2].size);
    if (!p)
        return QSIM_E_NOMEM;
    l->step->run = run_rows;
    return QSIM_OK;
}

/* ---- DepthSum ---- */

/* Size that the kernel covers over all slices, minus the padding; "after" may be negative. */
QS_COLD static int64_t sum_size(const qs_node *n, int64_t in) {
    const depth_form f = read_form(n, -1);
    const int64_t after = qs_node_int(n, "after", 0);
    return in < 0 ? -1 : (in - 1) * f.stride + (f.kernel - 1) * f.dilation + 1 - f.before - after;
}

/* Inputs: results over two spatial axes, the tensor with three, and a bias. */
QS_COLD static int infer_sum(qs_infer *x) {
    const depth_form f = read_form(x->node, -1);
    int code = qs_infer_type(x, 0, QS_T_FLOAT);
    if (!code)
        code = infer_rows(x);
    if (code)
        return code;
    x->dims[0][2] = (qs_dim){sum_size(x->node, x->in[1]->dims[2].size), NULL};
    if (x->dims[0][1].size >= 0)
        x->dims[0][1] = (qs_dim){x->dims[0][1].size / f.kernel, NULL};
    return QSIM_OK;
}

/* Computes one slice of the output, its terms in the order of the kernel. */
QS_COLD static void sum_slice(const depth_job *j, size_t i) {
    const depth_params *p = j->p;
    const size_t d = i % p->out, m = i / p->out % p->channels, n = i / p->out / p->channels;
    const float *from = (const float *)(const void *)j->x, *bias = j->fill;
    float *y = (float *)(void *)j->y + i * p->plane;
    for (size_t k = 0; k < p->plane; k++)
        y[k] = bias ? bias[m] : 0.0f;
    for (int64_t tap = 0; tap < p->form.kernel; tap++) {
        const int64_t at = (int64_t)d + p->form.before - tap * p->form.dilation;
        if (at < 0 || at % p->form.stride || at / p->form.stride >= (int64_t)p->in)
            continue;
        const size_t slice = n * p->in + (size_t)(at / p->form.stride);
        const float *t =
            from + ((slice * p->channels + m) * (size_t)p->form.kernel + (size_t)tap) * p->plane;
        for (size_t k = 0; k < p->plane; k++)
            y[k] += t[k];
    }
}

QS_COLD static void sum_range(const void *arg, size_t begin, size_t end) {
    for (size_t i = begin; i < end; i++)
        sum_slice(arg, i);
}

QS_COLD static void run_sum(const qs_step *s, const qs_frame *f) {
    const depth_params *p = s->params;
    const depth_job j = {p, qs_step_in(s, f, 0), p->filled ? qs_step_in(s, f, 2) : NULL,
                         qs_step_out(s, f, 0)};
    qs_ranges(f->ctx, p->batch * p->out * p->channels, 1 + QS_GRAIN / (1 + p->plane * 8), sum_range,
              &j);
}

QS_COLD static int lower_sum(qs_lower *l) {
    depth_params *p = params_of(l, qs_lower_out(l, 0), qs_lower_in(l, 1)->dims[2].size);
    if (!p)
        return QSIM_E_NOMEM;
    p->out = (size_t)qs_lower_out(l, 0)->dims[2].size;
    p->filled = l->node->input_count > 2 && qs_lower_in(l, 2);
    l->step->run = run_sum;
    return QSIM_OK;
}

static const qs_attr_rule depth_attrs[] = {
    {"kernel", QSIM_ATTR_INT, 0, 0},   {"stride", QSIM_ATTR_INT, 0, 0},
    {"dilation", QSIM_ATTR_INT, 0, 0}, {"before", QSIM_ATTR_INT, 0, 0},
    {"after", QSIM_ATTR_INT, 0, 0},    {"same", QSIM_ATTR_INT, 0, 0},
};

QS_OP(qsim_depthcolumns, .domain = QS_DOMAIN_QSIM, .name = "DepthColumns", .min_in = 1, .max_in = 2,
      QS_ATTRS(depth_attrs), .traits = QS_PLAIN, .setting_inputs = 1 << 1,
      .kernel = QS_KERNEL_DEPTH_COLUMNS, .infer = infer_columns, .lower = lower_columns);
QS_OP(qsim_depthrows, .domain = QS_DOMAIN_QSIM, .name = "DepthRows", .min_in = 2,
      QS_ATTRS(depth_attrs), .traits = QS_PLAIN, .setting_inputs = 1 << 1,
      .kernel = QS_KERNEL_DEPTH_ROWS, .infer = infer_rows, .lower = lower_rows);
QS_OP(qsim_depthsum, .domain = QS_DOMAIN_QSIM, .name = "DepthSum", .min_in = 2, .max_in = 3,
      QS_ATTRS(depth_attrs), .traits = QS_PLAIN, .setting_inputs = 1 << 1 | 1 << 2,
      .kernel = QS_KERNEL_DEPTH_SUM, .infer = infer_sum, .lower = lower_sum);
