/* SPDX-License-Identifier: MIT */
/*
 * MaxRoiPool: the greatest pixel in bins of regions (batch index, x1, y1, x2, y2), whose scaled
 * corners are rounded to pixels and belong to them. A bin without pixels is 0.
 */
#include <assert.h>
#include <math.h>

#include "op/rules.h"

typedef struct roi_params {
    bool is_double;
    double scale;
    size_t rois, batch, channels, size[2], bins[2]; /* y, x */
} roi_params;

typedef struct roi_job {
    const roi_params *p;
    const void *x, *rois;
    void *y;
} roi_job;

QS_COLD static int read_roi(const qs_infer *x, roi_params *p) {
    const qs_value *v = x->in[0];
    int64_t bins[2] = {0, 0};
    int32_t count = 0;
    int code = qs_infer_attr_ints(x, "pooled_shape", bins, 2, &count);
    p->scale = (double)qs_node_float(x->node, "spatial_scale", 1.0f);
    p->is_double = v->dtype == QSIM_DOUBLE;
    if (!code && (count != 2 || bins[0] < 1 || bins[1] < 1 || !isfinite(p->scale)))
        code = qs_infer_fail(x, QSIM_E_VALUE,
                             "pooled_shape is not two sizes above 0, or "
                             "spatial_scale is not finite");
    if (!code)
        code = qs_infer_rank(x, 0, 4);
    if (!code)
        code = qs_infer_rank(x, 1, 2);
    if (!code)
        code = qs_infer_size(x, 1, 1, 5);
    p->bins[0] = (size_t)bins[0];
    p->bins[1] = (size_t)bins[1];
    return code;
}

QS_COLD static int infer_maxroipool(qs_infer *x) {
    const qs_value *v = x->in[0], *rois = x->in[1];
    roi_params p;
    int code = qs_infer_type(x, 0, QS_T_REAL);
    if (!code)
        code = qs_infer_same_type(x, 0, 1);
    if (!code)
        code = read_roi(x, &p);
    if (code)
        return code;
    const qs_dim unknown = {-1, NULL};
    const qs_dim dims[4] = {rois->rank == 2 ? rois->dims[0] : unknown,
                            v->rank == 4 ? v->dims[1] : unknown,
                            {(int64_t)p.bins[0], NULL},
                            {(int64_t)p.bins[1], NULL}};
    return qs_infer_out(x, 0, v->dtype, 4, dims);
}

QS_COLD static double number_at(const roi_params *p, const void *x, size_t i) {
    return p->is_double ? ((const double *)x)[i] : (double)((const float *)x)[i];
}

/* The nearest pixel, as far as a size can tell it; halves away from 0. */
QS_COLD static double pixel(const roi_params *p, double v) {
    v = p->is_double ? v * p->scale : (double)(float)(v * p->scale);
    return round(v > INT32_MAX ? INT32_MAX : v > INT32_MIN ? v : INT32_MIN);
}

/* Pixels [at[0], at[1]) of bin `bin` along an axis (0: y, 1: x) of a region. */
QS_COLD static void find_bin(const roi_job *j, size_t roi, size_t axis, size_t bin, size_t at[2]) {
    const roi_params *p = j->p;
    const double from = pixel(p, number_at(p, j->rois, roi * 5 + 2 - axis));
    const double to = pixel(p, number_at(p, j->rois, roi * 5 + 4 - axis));
    const double size = qs_max(to - from + 1, 1) / qs_real(p->bins[axis]);
    const double step = p->is_double ? size : (double)(float)size;
    for (size_t i = 0; i < 2; i++) {
        const double product = qs_real(bin + i) * step;
        const double edge = p->is_double ? product : (double)(float)product;
        const double v = from + (i ? ceil(edge) : floor(edge));
        at[i] = v > 0 ? qs_whole(qs_min(v, qs_real(p->size[axis]))) : 0;
    }
}

QS_COLD static void bin_range(const void *arg, size_t begin, size_t end) {
    const roi_job *j = arg;
    const roi_params *p = j->p;
    for (size_t i = begin; i < end; i++) {
        const size_t area = p->bins[0] * p->bins[1], roi = i / area / p->channels;
        size_t rows[2], columns[2];
        double most = -INFINITY;
        find_bin(j, roi, 0, i % area / p->bins[1], rows);
        find_bin(j, roi, 1, i % p->bins[1], columns);
        const size_t image = qs_whole(number_at(p, j->rois, roi * 5));
        const size_t plane = (image * p->channels + i / area % p->channels) * p->size[0];
        for (size_t y = rows[0]; y < rows[1]; y++)
            for (size_t x = columns[0]; x < columns[1]; x++) {
                const double v = number_at(p, j->x, (plane + y) * p->size[1] + x);
                most = v > most ? v : most;
            }
        most = rows[0] >= rows[1] || columns[0] >= columns[1] ? 0 : most;
        if (p->is_double)
            ((double *)j->y)[i] = most;
        else
            ((float *)j->y)[i] = (float)most;
    }
}

QS_COLD static void run_maxroipool(const qs_step *s, const qs_frame *f) {
    const roi_params *p = s->params;
    const roi_job j = {p, qs_step_in(s, f, 0), qs_step_in(s, f, 1), qs_step_out(s, f, 0)};
    const size_t each = p->channels * p->bins[0] * p->bins[1];
    assert(j.rois || p->rois == 0);
    for (size_t i = 0; i < p->rois; i++) {
        const double image = number_at(p, j.rois, i * 5);
        bool right = image >= 0 && image < qs_real(p->batch);
        for (size_t k = 1; k < 5; k++)
            right &= isfinite(number_at(p, j.rois, i * 5 + k)) != 0;
        if (!right) {
            memset(j.y, 0, p->rois * each * (p->is_double ? sizeof(double) : sizeof(float)));
            qs_step_fails(f);
            return;
        }
    }
    qs_ranges(f->ctx, p->rois * each, QS_GRAIN / 64, bin_range, &j);
}

QS_COLD static int lower_maxroipool(qs_lower *l) {
    const qs_value *v = qs_lower_in(l, 0);
    qs_infer x;
    roi_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    qs_lower_infer(l, &x);
    const int code = read_roi(&x, p);
    p->rois = (size_t)qs_lower_in(l, 1)->dims[0].size;
    p->batch = (size_t)v->dims[0].size;
    p->channels = (size_t)v->dims[1].size;
    p->size[0] = (size_t)v->dims[2].size;
    p->size[1] = (size_t)v->dims[3].size;
    l->step->run = run_maxroipool;
    return code;
}

static const qs_attr_rule roi_attrs[] = {{"pooled_shape", QSIM_ATTR_INTS, 1, 0},
                                         {"spatial_scale", QSIM_ATTR_FLOAT, 1, 0}};

QS_OP(maxroipool, .name = "MaxRoiPool", .min_in = 2, QS_ATTRS(roi_attrs), .traits = QS_PLAIN,
      .setting_inputs = 1 << 1, .kernel = QS_KERNEL_ROI_POOL, .infer = infer_maxroipool,
      .lower = lower_maxroipool);
