/* SPDX-License-Identifier: MIT */
/*
 * DeformConv over two spatial axes: a convolution whose taps are moved by offsets, interpolated
 * between four pixels (0 outside the image), and weighted by a mask. Sums in the order channel,
 * kernel row, kernel column: of doubles, or by fused multiply-adds of floats.
 */
#include <assert.h>
#include <math.h>

#include "base/slices.h"
#include "op/nn/float_jobs.h"
#include "op/nn/window.h"
#include "op/space/taps.h"

typedef struct deform_params {
    qs_window window;
    size_t n, c, m, h, w, oh, ow, kh, kw, groups, offset_groups, slices;
    bool is_double, has_bias, has_mask, in_panels;
    /* In panels: the kernels, where rows of the weights begin, and a bias that adds nothing. */
    const qk_f32 *kernels;
    ptrdiff_t *row;
    const float *no_bias;
} deform_params;

typedef struct deform_job {
    const deform_params *p;
    const void *x, *w, *offset, *bias, *mask;
    void *y;
    double *scratch;
    const qsim_ctx *ctx; /* tells whether the run was stopped */
} deform_job;

/* ---- rules ---- */

QS_COLD static int64_t times(int64_t a, int64_t b) {
    int64_t all;
    return a < 0 || b < 0 || !qs_mul64(a, b, &all) ? -1 : all;
}

QS_COLD static int check_groups(const qs_infer *x, int64_t group, int64_t offset_group) {
    const int64_t c = x->in[0]->dims[1].size, m = x->in[1]->dims[0].size;
    if (group < 1 || (c >= 0 && c % group) || (m >= 0 && m % group))
        return qs_infer_fail(x, QSIM_E_VALUE, "group is %lld for %lld and %lld channels",
                             (long long)group, (long long)c, (long long)m);
    if (offset_group < 1 || (c >= 0 && c % offset_group))
        return qs_infer_fail(x, QSIM_E_VALUE, "offset_group is %lld for %lld channels",
                             (long long)offset_group, (long long)c);
    return qs_infer_size(x, 1, 1, c < 0 ? -1 : c / group);
}

/* Checks offsets and masks: two numbers and one for each tap of each group, at each result. */
QS_COLD static int check_offsets(const qs_infer *x, const qs_window *w, int64_t offset_group) {
    const int64_t taps = times(times(w->kernel[0], w->kernel[1]), offset_group);
    const int64_t want[2][4] = {
        {w->batch.size, times(taps, 2), w->out[0], w->out[1]},
        {w->batch.size, taps, w->out[0], w->out[1]},
    };
    int code = QSIM_OK;
    for (int32_t i = 2; i < 5 && !code; i += 2)
        for (int32_t axis = 0; axis < 4 && !code; axis++)
            code = qs_infer_size(x, i, axis, want[i / 4][axis]);
    return code;
}

QS_COLD static int read_deform(const qs_infer *x, qs_window *w) {
    const int64_t offset_group = qs_node_int(x->node, "offset_group", 1);
    int code = check_groups(x, qs_node_int(x->node, "group", 1), offset_group);
    if (!code)
        code = qs_window_infer(x, 0, x->in[1]->dims + 2, w);
    if (!code)
        code = check_offsets(x, w, offset_group);
    if (!code)
        code = qs_infer_size(x, 3, 0, x->in[1]->dims[0].size);
    return code;
}

QS_COLD static int infer_deform(qs_infer *x) {
    static const int32_t ranks[5] = {4, 4, 4, 1, 4};
    qs_window w;
    qs_dim dims[QS_WINDOW_AXES + 2];
    for (int32_t i = 0; i < 5; i++) {
        int code = qs_infer_type(x, i, QS_T_REAL);
        code = code ? code : qs_infer_same_type(x, 0, i);
        if (code)
            return code;
        if (x->in[i] && x->in[i]->rank >= 0 && x->in[i]->rank != ranks[i])
            return qs_infer_fail(
                x, ranks[i] == 4 && x->in[i]->rank > 4 ? QSIM_E_UNSUPPORTED : QSIM_E_SHAPE,
                "input %d has rank %d, not %d", (int)i, (int)x->in[i]->rank, (int)ranks[i]);
    }
    if (x->in[0]->rank < 0 || x->in[1]->rank < 0)
        return qs_infer_unknown(x, x->in[0]->dtype);
    int code = read_deform(x, &w);
    if (code)
        return code;
    const int32_t rank = qs_window_dims(&w, x->in[1]->dims[0], dims);
    return qs_infer_out(x, 0, x->in[0]->dtype, rank, dims);
}

/* ---- steps ---- */

QS_COLD static double number_at(const deform_params *p, const void *x, size_t i) {
    return p->is_double ? ((const double *)x)[i] : (double)((const float *)x)[i];
}

/* Lists the pixels around a moved tap, and their weights. */
QS_COLD static void find_pixels(const deform_params *p, double y, double x, double mask, qs_taps *t,
                                size_t i) {
    const double y0 = floor(y), x0 = floor(x);
    size_t count = 0;
    if (y > -1 && x > -1 && y < qs_real(p->h) && x < qs_real(p->w))
        for (int k = 0; k < 4; k++) {
            const double row = y0 + k / 2, column = x0 + k % 2;
            const double down = k / 2 ? y - y0 : 1 - (y - y0),
                         right = k % 2 ? x - x0 : 1 - (x - x0);
            if (row < 0 || column < 0 || row >= qs_real(p->h) || column >= qs_real(p->w))
                continue;
            t->at[i * t->most + count] = qs_whole(row) * p->w + qs_whole(column);
            t->weight[i * t->most + count++] = down * right * mask;
        }
    t->count[i] = count;
}

/* Finds tap k of an offset group for the results from `first` on; points after the last one are 0.
 */
QS_COLD static void find_tap(const deform_job *j, size_t n, size_t group, size_t k, size_t first,
                             qs_taps *t) {
    const deform_params *p = j->p;
    const qs_window *w = &p->window;
    const size_t area = p->oh * p->ow, tap = (n * p->offset_groups + group) * p->kh * p->kw + k;
    for (size_t i = 0; i < t->points && first + i < area; i++) {
        const size_t at = first + i;
        const int64_t y = (int64_t)(at / p->ow) * w->stride[0] - w->before[0] +
                          (int64_t)(k / p->kw) * w->dilation[0];
        const int64_t x = (int64_t)(at % p->ow) * w->stride[1] - w->before[1] +
                          (int64_t)(k % p->kw) * w->dilation[1];
        find_pixels(p, (double)y + number_at(p, j->offset, tap * 2 * area + at),
                    (double)x + number_at(p, j->offset, (tap * 2 + 1) * area + at),
                    p->has_mask ? number_at(p, j->mask, tap * area + at) : 1, t, i);
    }
}

/* Gathers the samples of all channels and taps of one result. */
QS_COLD static void gather(const deform_job *j, size_t n, size_t at, double *to) {
    const deform_params *p = j->p;
    const size_t taps = p->kh * p->kw, share = p->c / p->offset_groups;
    qs_taps t;
    t.points = 1;
    t.most = 4;
    for (size_t c = 0; c < p->c; c += share)
        for (size_t k = 0; k < taps; k++) {
            find_tap(j, n, c / share, k, at, &t);
            for (size_t i = c; i < c + share; i++) {
                double sum = 0;
                for (size_t m = 0; m < t.count[0]; m++)
                    sum += t.weight[m] * number_at(p, j->x, (n * p->c + i) * p->h * p->w + t.at[m]);
                to[i * taps + k] = sum;
            }
        }
}

QS_COLD static void deform_pixels(void *arg, size_t slice) {
    const deform_job *j = arg;
    const deform_params *p = j->p;
    const size_t pixels = p->n * p->oh * p->ow, area = p->oh * p->ow;
    const size_t column = p->c / p->groups * p->kh * p->kw, mg = p->m / p->groups;
    double *samples = j->scratch + slice * p->c * p->kh * p->kw;
    const size_t end = qs_slice_begin(pixels, p->slices, slice + 1);
    for (size_t i = qs_slice_begin(pixels, p->slices, slice); i < end && !qs_stopped(j->ctx); i++) {
        gather(j, i / area, i % area, samples);
        for (size_t m = 0; m < p->m; m++) {
            const size_t to = (i / area * p->m + m) * area + i % area;
            double sum = p->has_bias ? number_at(p, j->bias, m) : 0;
            for (size_t k = 0; k < column; k++)
                sum += samples[m / mg * column + k] * number_at(p, j->w, m * column + k);
            if (p->is_double)
                ((double *)j->y)[to] = sum;
            else
                ((float *)j->y)[to] = (float)sum;
        }
    }
}

/* ---- of floats: a panel of samples, and a product by the weights ---- */

/* Gathers the samples of `width` results into a panel: a row for each channel and tap. */
QS_COLD static void fill_panel(const deform_job *j, size_t n, size_t first, size_t width,
                               float *panel) {
    const deform_params *p = j->p;
    const size_t taps = p->kh * p->kw, share = p->c / p->offset_groups;
    qs_taps t = {.points = width, .most = 4};
    assert(width * t.most <= QS_TAPS);
    for (size_t group = 0; group < p->offset_groups; group++)
        for (size_t k = 0; k < taps && !qs_stopped(j->ctx); k++) {
            find_tap(j, n, group, k, first, &t);
            for (size_t c = group * share; c < (group + 1) * share; c++)
                qs_taps_sum(&t, (const float *)j->x + (n * p->c + c) * p->h * p->w,
                            panel + (c * taps + k) * width);
        }
}

/* Computes up to a panel of results of one image, for all channels. */
QS_COLD static void deform_panel(const deform_job *j, size_t n, size_t first, size_t count,
                                 float *panel) {
    static const ptrdiff_t zero = 0;
    const deform_params *p = j->p;
    const size_t area = p->oh * p->ow, column = p->c / p->groups * p->kh * p->kw;
    const size_t mg = p->m / p->groups, width = qk_panel_width(p->kernels->panel, count, 0);
    float *y = (float *)j->y + n * p->m * area + first;
    fill_panel(j, n, first, width, panel);
    for (size_t g = 0; g < p->groups; g++) {
        const qk_gemm_f32 product = {.a = (const float *)j->w + g * mg * column,
                                     .row = p->row,
                                     .seg = &zero,
                                     .rows = mg,
                                     .segs = 1,
                                     .k = column,
                                     .b = panel + g * column * width,
                                     .bias = p->no_bias,
                                     .cols = count,
                                     .lo = -INFINITY,
                                     .hi = INFINITY,
                                     .c = y + g * mg * area,
                                     .ldc = area};
        qs_gemm_f32(j->ctx, p->kernels, &product);
    }
    for (size_t m = 0; m < p->m && p->has_bias; m++)
        for (size_t i = 0; i < count; i++)
            y[m * area + i] += ((const float *)j->bias)[m];
}

static size_t panel_floats(const deform_params *p) {
    return p->c * p->kh * p->kw * p->kernels->panel + QK_PACK_SLACK;
}

QS_COLD static void deform_panels(void *arg, size_t slice) {
    const deform_job *j = arg;
    const deform_params *p = j->p;
    const size_t area = p->oh * p->ow, width = p->kernels->panel;
    const size_t panels = (area + width - 1) / width;
    float *panel = (float *)(void *)j->scratch + slice * panel_floats(p);
    const size_t end = qs_slice_begin(p->n * panels, p->slices, slice + 1);
    for (size_t i = qs_slice_begin(p->n * panels, p->slices, slice); i < end && !qs_stopped(j->ctx);
         i++) {
        const size_t first = i % panels * width;
        deform_panel(j, i / panels, first, area - first < width ? area - first : width, panel);
    }
}

QS_COLD static void run_deform(const qs_step *s, const qs_frame *f) {
    const deform_params *p = s->params;
    deform_job j = {p,
                    qs_step_in(s, f, 0),
                    qs_step_in(s, f, 1),
                    qs_step_in(s, f, 2),
                    p->has_bias ? qs_step_in(s, f, 3) : NULL,
                    p->has_mask ? qs_step_in(s, f, 4) : NULL,
                    qs_step_out(s, f, 0),
                    f->scratch,
                    f->ctx};
    if (p->n * p->m * p->oh * p->ow > 0)
        qs_parallel(f->ctx, p->slices, p->in_panels ? deform_panels : deform_pixels, &j);
}

/* Lists the rows of a group's weights, and makes a bias of a panel. */
QS_COLD static int make_lists(qs_lower *l, deform_params *p) {
    const size_t width = p->kernels->panel, rows = p->m / p->groups;
    float *none = qs_arena_alloc(l->arena, width, sizeof(*none));
    p->row = qs_arena_alloc(l->arena, rows + 1, sizeof(*p->row));
    if (!none || !p->row)
        return qs_fail(l->error, QSIM_E_NOMEM, "out of memory");
    for (size_t i = 0; i < width; i++)
        none[i] = -0.0f;
    for (size_t i = 0; i < rows; i++)
        p->row[i] = (ptrdiff_t)(i * (p->c / p->groups * p->kh * p->kw));
    p->no_bias = none;
    return QSIM_OK;
}

QS_COLD static int lower_deform(qs_lower *l) {
    const qs_value *v = qs_lower_in(l, 0), *w = qs_lower_in(l, 1), *y = qs_lower_out(l, 0);
    qs_infer x;
    deform_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    qs_lower_infer(l, &x);
    int code = read_deform(&x, &p->window);
    p->n = (size_t)v->dims[0].size;
    p->c = (size_t)v->dims[1].size;
    p->h = (size_t)v->dims[2].size;
    p->w = (size_t)v->dims[3].size;
    p->m = (size_t)w->dims[0].size;
    p->kh = (size_t)w->dims[2].size;
    p->kw = (size_t)w->dims[3].size;
    p->oh = (size_t)y->dims[2].size;
    p->ow = (size_t)y->dims[3].size;
    p->groups = (size_t)qs_node_int(l->node, "group", 1);
    p->offset_groups = (size_t)qs_node_int(l->node, "offset_group", 1);
    p->is_double = v->dtype == QSIM_DOUBLE;
    p->has_bias = qs_node_input(l->node, 3) != QS_NONE;
    p->has_mask = qs_node_input(l->node, 4) != QS_NONE;
    p->kernels = l->ctx->kernels->f32;
    p->in_panels = !p->is_double && p->c > 0;
    const size_t pixels = p->n * p->oh * p->ow, samples = p->c * p->kh * p->kw;
    const size_t scratch =
        p->in_panels ? panel_floats(p) * sizeof(float) : samples * sizeof(double);
    p->slices =
        qs_slice_count(l->ctx, pixels, qs_real(pixels) * qs_real(samples) * qs_real(20 + p->m));
    if (!qs_mul(scratch, p->slices, &l->step->scratch))
        return qs_scratch_too_large(l->error);
    l->step->run = run_deform;
    return code ? code : make_lists(l, p);
}

static const qs_attr_rule deform_attrs[] = {
    {"dilations", QSIM_ATTR_INTS, 19, 0},    {"group", QSIM_ATTR_INT, 19, 0},
    {"kernel_shape", QSIM_ATTR_INTS, 19, 0}, {"offset_group", QSIM_ATTR_INT, 19, 0},
    {"pads", QSIM_ATTR_INTS, 19, 0},         {"strides", QSIM_ATTR_INTS, 19, 0},
};

QS_OP(deformconv, .name = "DeformConv", .since = 19, .min_in = 3, .max_in = 5,
      QS_ATTRS(deform_attrs), .traits = QS_PLAIN, .setting_inputs = 1 << 2 | 1 << 4,
      .kernel = QS_KERNEL_DEFORMED_CONV, .infer = infer_deform, .lower = lower_deform);
