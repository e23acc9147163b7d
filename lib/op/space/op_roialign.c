/* SPDX-License-Identifier: MIT */
/*
 * RoiAlign: the mean, or the greatest weighted corner, of samples in bins of regions. Coordinates
 * and sums are in the image's type, as the operator defines.
 */
#include <assert.h>
#include <math.h>

#include "op/rules.h"

#define HALF_PIXEL_SINCE 16

typedef struct roi_params {
    bool max, half_pixel, is_double;
    double scale;
    int64_t sampling;
    size_t rois, batch, channels, h, w, oh, ow;
} roi_params;

/*
 * A sample: four pixels of a channel around its position, their weights, and the result that it is
 * a part of; outside of the image it is 0.
 */
typedef struct roi_sample {
    bool outside, first; /* first: of its result */
    size_t at[4], to;
    float weight[4];
    double weight64[4]; /* the same; for images of doubles */
} roi_sample;

/* A region: its image, corner, size of bins, and samples of a bin. */
typedef struct region {
    size_t image;
    double y, x, bin_h, bin_w;
    int64_t grid_h, grid_w;
} region;

typedef struct roi_job {
    const qsim_ctx *ctx; /* tells whether the run was stopped */
    const roi_params *p;
    const void *x, *rois;
    const int64_t *images;
    void *y;
} roi_job;

/* ---- rules ---- */

QS_COLD static int check_sizes(const qs_infer *x) {
    const qs_value *rois = x->in[1];
    const int32_t ranks[] = {4, 2, 1};
    int code = QSIM_OK;
    for (int32_t i = 0; i < 3 && !code; i++)
        code = qs_infer_rank(x, i, ranks[i]);
    if (!code)
        code = qs_infer_size(x, 1, 1, 4);
    return code || rois->rank < 0 ? code : qs_infer_size(x, 2, 0, rois->dims[0].size);
}

QS_COLD static int read_roi(const qs_infer *x, roi_params *p) {
    const qs_node *n = x->node;
    const int64_t oh = qs_node_int(n, "output_height", 1), ow = qs_node_int(n, "output_width", 1);
    p->scale = (double)qs_node_float(n, "spatial_scale", 1.0f);
    p->sampling = qs_node_int(n, "sampling_ratio", 0);
    p->oh = (size_t)oh;
    p->ow = (size_t)ow;
    int32_t max, unshifted;
    int code = qs_infer_word(x, "mode", "avg|max", &max);
    if (!code)
        code = qs_infer_word(x, "coordinate_transformation_mode", "half_pixel|output_half_pixel",
                             &unshifted);
    if (code)
        return code;
    p->max = max;
    p->half_pixel = n->version >= HALF_PIXEL_SINCE && !unshifted;
    if (oh < 1 || ow < 1 || oh > INT32_MAX || ow > INT32_MAX || p->sampling < 0 ||
        p->sampling > INT32_MAX || !isfinite(p->scale))
        return qs_infer_fail(x, QSIM_E_VALUE,
                             "output_height %lld, output_width %lld, sampling_ratio %lld, "
                             "spatial_scale %g",
                             (long long)oh, (long long)ow, (long long)p->sampling, p->scale);
    return QSIM_OK;
}

QS_COLD static int infer_roialign(qs_infer *x) {
    const qs_value *v = x->in[0], *rois = x->in[1];
    roi_params p;
    int code = qs_infer_type(x, 0, QS_T_REAL);
    if (!code)
        code = qs_infer_same_type(x, 0, 1);
    if (!code)
        code = qs_infer_type(x, 2, QS_T(QSIM_INT64));
    if (!code)
        code = check_sizes(x);
    if (!code)
        code = read_roi(x, &p);
    if (code)
        return code;
    const qs_dim dims[4] = {rois->rank == 2 ? rois->dims[0] : (qs_dim){-1, NULL},
                            v->rank == 4 ? v->dims[1] : (qs_dim){-1, NULL},
                            {(int64_t)p.oh, NULL},
                            {(int64_t)p.ow, NULL}};
    return qs_infer_out(x, 0, v->dtype, 4, dims);
}

/* ---- steps ---- */

/*
 * Rounds to the image's type: +, -, * and / of floats, computed in double and rounded, have the
 * bits of float arithmetic.
 */
QS_NOINLINE static double as_type(const roi_params *p, double v) {
    return p->is_double ? v : (double)(float)v;
}

QS_COLD static double number_at(const roi_params *p, const void *x, size_t i) {
    return p->is_double ? ((const double *)x)[i] : (double)((const float *)x)[i];
}

/* Samples of a bin along an axis: as the attribute says, or one per pixel. */
QS_COLD static int64_t samples(const roi_params *p, double bin) {
    const double most = INT32_MAX;
    if (p->sampling > 0)
        return p->sampling;
    return bin > 0 ? (int64_t)(bin < most ? ceil(bin) : most) : 0;
}

QS_COLD static bool find_region(const roi_job *j, size_t roi, region *r) {
    const roi_params *p = j->p;
    const double offset = p->half_pixel ? 0.5 : 0.0;
    double edge[4];
    for (size_t i = 0; i < 4; i++) {
        edge[i] = as_type(p, as_type(p, number_at(p, j->rois, roi * 4 + i) * p->scale) - offset);
        if (!(fabs(edge[i]) <= INT32_MAX))
            return false;
    }
    double w = as_type(p, edge[2] - edge[0]), h = as_type(p, edge[3] - edge[1]);
    if (!p->half_pixel) {
        w = w > 1 ? w : 1;
        h = h > 1 ? h : 1;
    }
    r->image = (size_t)j->images[roi];
    r->x = edge[0];
    r->y = edge[1];
    r->bin_w = as_type(p, w / qs_real(p->ow));
    r->bin_h = as_type(p, h / qs_real(p->oh));
    r->grid_w = samples(p, r->bin_w);
    r->grid_h = samples(p, r->bin_h);
    return j->images[roi] >= 0 && r->image < p->batch;
}

/* Position of sample i of `count` in bin `bin` along an axis. */
QS_COLD static double sample_position(const roi_params *p, double from, double size, size_t bin,
                                      int64_t i, int64_t count) {
    const double start = as_type(p, from + as_type(p, qs_real(bin) * size));
    const double in = as_type(p, as_type(p, ((double)i + 0.5) * size) / (double)count);
    return as_type(p, start + in);
}

/* Finds the two pixels around a position, and the weight of the second; false outside the image. */
QS_COLD static bool find_neighbours(const roi_params *p, double v, size_t size, size_t at[2],
                                    double *weight) {
    if (!(v >= -1 && v <= qs_real(size)) || size == 0)
        return false;
    v = v > 0 ? v : 0;
    at[0] = qs_whole(v);
    at[1] = at[0] + 1;
    if (at[0] >= size - 1) {
        at[0] = at[1] = size - 1;
        v = qs_real(at[0]);
    }
    *weight = as_type(p, v - qs_real(at[0]));
    return true;
}

QS_COLD static void find_pixels(const roi_params *p, double y, double x, roi_sample *s) {
    size_t row[2], column[2];
    double ly = 0, lx = 0;
    s->outside =
        !find_neighbours(p, y, p->h, row, &ly) || !find_neighbours(p, x, p->w, column, &lx);
    const double hy = as_type(p, 1 - ly), hx = as_type(p, 1 - lx);
    for (size_t i = 0; i < 4; i++) {
        s->at[i] = s->outside ? 0 : row[i / 2] * p->w + column[i % 2];
        s->weight64[i] = as_type(p, (i / 2 ? ly : hy) * (i % 2 ? lx : hx));
        s->weight[i] = (float)s->weight64[i];
    }
}

/* The greatest of a result so far and the weighted pixels of a sample. */
#define GREATEST(name, T)                                                                          \
    QS_COLD static T name(const roi_sample *s, const T v[4], T y) {                                \
        y = s->first || v[0] > y ? v[0] : y;                                                       \
        y = v[1] > y ? v[1] : y;                                                                   \
        y = v[2] > y ? v[2] : y;                                                                   \
        return v[3] > y ? v[3] : y;                                                                \
    }

/* Adds samples to the results of one channel, or keeps the greatest. */
#define ADD_SAMPLES(name, T, weight, greatest)                                                     \
    static void name(bool max, const roi_sample *s, size_t n, const T *x, T *y) {                  \
        for (; n > 0; n--, s++) {                                                                  \
            const T *w = s->weight, a = w[0] * x[s->at[0]], b = w[1] * x[s->at[1]];                \
            const T c = w[2] * x[s->at[2]], d = w[3] * x[s->at[3]], none[4] = {0};                 \
            T *to = y + s->to;                                                                     \
            if (max)                                                                               \
                *to = greatest(s, s->outside ? none : (const T[]){a, b, c, d}, *to);               \
            else                                                                                   \
                *to += s->outside ? 0 : a + b + c + d;                                             \
        }                                                                                          \
    }
GREATEST(greatest_f32, float)
GREATEST(greatest_f64, double)
ADD_SAMPLES(add_f32, float, weight, greatest_f32)
ADD_SAMPLES(add_f64, double, weight64, greatest_f64)

/* Samples that are found before they are added for one channel after another. */
#define SAMPLES 128

/* Channels `begin` to `end` - 1 of one region. */
typedef struct roi_part {
    const roi_job *j;
    const region *r;
    size_t roi, begin, end;
    size_t done; /* work since the last check for a stop */
} roi_part;

/* Adds the samples for all channels of the part; false: stopped. */
QS_COLD static bool flush(roi_part *t, const roi_sample *s, size_t n) {
    const roi_params *p = t->j->p;
    const size_t area = p->oh * p->ow, plane = p->h * p->w;
    for (size_t c = t->begin; c < t->end && plane > 0; c++) {
        const size_t from = (t->r->image * p->channels + c) * plane;
        const size_t to = (t->roi * p->channels + c) * area;
        if (qs_stopped_after(t->j->ctx, &t->done, n * 64))
            return false;
        if (p->is_double)
            add_f64(p->max, s, n, (const double *)t->j->x + from, (double *)t->j->y + to);
        else
            add_f32(p->max, s, n, (const float *)t->j->x + from, (float *)t->j->y + to);
    }
    return true;
}

/* Finds the samples of all bins and adds them, some at a time; false: stopped. */
QS_COLD static bool add_region(roi_part *t) {
    const roi_params *p = t->j->p;
    const region *r = t->r;
    roi_sample list[SAMPLES];
    size_t n = 0;
    for (size_t bin = 0; bin < p->oh * p->ow; bin++)
        for (int64_t iy = 0; iy < r->grid_h; iy++)
            for (int64_t ix = 0; ix < r->grid_w; ix++) {
                roi_sample *s = &list[n++];
                s->to = bin;
                s->first = iy == 0 && ix == 0;
                find_pixels(p, sample_position(p, r->y, r->bin_h, bin / p->ow, iy, r->grid_h),
                            sample_position(p, r->x, r->bin_w, bin % p->ow, ix, r->grid_w), s);
                if (n == SAMPLES && !flush(t, list, n))
                    return false;
                n %= SAMPLES;
            }
    return flush(t, list, n);
}

/* Divides the sums of a part by the number of samples. */
QS_COLD static void divide(const roi_part *t) {
    const roi_params *p = t->j->p;
    const double count = (double)t->r->grid_h * (double)t->r->grid_w;
    const size_t area = p->oh * p->ow, first = (t->roi * p->channels + t->begin) * area;
    const size_t n = (t->end - t->begin) * area;
    for (size_t i = 0; i < n && !p->max && count > 1; i++)
        if (p->is_double)
            ((double *)t->j->y)[first + i] /= count;
        else
            ((float *)t->j->y)[first + i] = (float)((double)((float *)t->j->y)[first + i] / count);
}

/* Computes channels of regions: item i is channel i % channels of region i / channels. */
QS_COLD static void roi_range(const void *arg, size_t begin, size_t end) {
    const roi_job *j = arg;
    const roi_params *p = j->p;
    const size_t bytes = (p->is_double ? sizeof(double) : sizeof(float)) * p->oh * p->ow;
    roi_part t = {.j = j};
    memset((uint8_t *)j->y + begin * bytes, 0, (end - begin) * bytes);
    for (size_t i = begin; i < end; i += t.end - t.begin) {
        region r = {0};
        t.r = &r;
        t.roi = i / p->channels;
        t.begin = i % p->channels;
        t.end = end - i < p->channels - t.begin ? t.begin + end - i : p->channels;
        if (!find_region(j, t.roi, &r))
            continue;
        if (!add_region(&t))
            return;
        divide(&t);
    }
}

QS_COLD static void run_roialign(const qs_step *s, const qs_frame *f) {
    const roi_params *p = s->params;
    const roi_job j = {f->ctx,
                       p,
                       qs_step_in(s, f, 0),
                       qs_step_in(s, f, 1),
                       qs_step_in(s, f, 2),
                       qs_step_out(s, f, 0)};
    bool right = true;
    for (size_t i = 0; i < p->rois; i++) {
        assert(j.images);
        right = find_region(&j, i, &(region){0}) && right;
        if (j.images[i] < 0 || j.images[i] >= (int64_t)p->batch)
            qs_step_outside(f, "batch index", j.images[i], 0, (int64_t)p->batch, -1);
    }
    if (!right)
        qs_step_fails(f);
    qs_ranges(f->ctx, p->rois * p->channels, 1 + QS_GRAIN / (16 * p->oh * p->ow + 1), roi_range,
              &j);
}

QS_COLD static int lower_roialign(qs_lower *l) {
    const qs_value *v = qs_lower_in(l, 0);
    qs_infer x;
    roi_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    qs_lower_infer(l, &x);
    int code = read_roi(&x, p);
    p->is_double = v->dtype == QSIM_DOUBLE;
    p->rois = (size_t)qs_lower_in(l, 1)->dims[0].size;
    p->batch = (size_t)v->dims[0].size;
    p->channels = (size_t)v->dims[1].size;
    p->h = (size_t)v->dims[2].size;
    p->w = (size_t)v->dims[3].size;
    l->step->run = run_roialign;
    return code;
}

/* Before version 16 there was one coordinate mode, which is not the later default. */
QS_COLD static int upgrade_roialign(qs_graph *g, qs_id node, int32_t to, qsim_error *error) {
    static const char old[] = "output_half_pixel";
    qs_attr a = {.name = "coordinate_transformation_mode", .type = QSIM_ATTR_STRING};
    if (to < HALF_PIXEL_SINCE || g->nodes[node].version >= HALF_PIXEL_SINCE)
        return QSIM_OK;
    a.u.s = (qs_span){(const uint8_t *)old, sizeof(old) - 1};
    return qs_node_set_attr(g, node, &a) ? qs_op_no_memory(error) : QSIM_OK;
}

static const qs_attr_rule roi_attrs[] = {
    {"mode", QSIM_ATTR_STRING, 10, 0},
    {"output_height", QSIM_ATTR_INT, 10, 0},
    {"output_width", QSIM_ATTR_INT, 10, 0},
    {"sampling_ratio", QSIM_ATTR_INT, 10, 0},
    {"spatial_scale", QSIM_ATTR_FLOAT, 10, 0},
    {"coordinate_transformation_mode", QSIM_ATTR_STRING, HALF_PIXEL_SINCE, 0},
};

QS_OP(roialign, .name = "RoiAlign", .since = 10, .min_in = 3, QS_ATTRS(roi_attrs),
      .traits = QS_PLAIN, .setting_inputs = 1 << 1 | 1 << 2, .kernel = QS_KERNEL_ROI_ALIGN,
      .infer = infer_roialign, QS_MORE(QS_HISTORY(.upgrade = upgrade_roialign)),
      .lower = lower_roialign);
