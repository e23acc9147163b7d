/* SPDX-License-Identifier: MIT */
/*
 * GridSample and AffineGrid. A grid has, for each point of the result, a position in the image as
 * coordinates in [-1, 1], the last spatial axis first. Positions are computed in the grid's type,
 * the taps' weights and sums in double. NaN is outside.
 */
#include <math.h>

#include "op/rules.h"
#include "op/space/taps.h"

#define SPACE 3 /* most spatial axes */

typedef enum sample_mode { NEAREST, LINEAR, CUBIC } sample_mode;
typedef enum sample_padding { ZEROS, BORDER, REFLECTION } sample_padding;

typedef struct sample_params {
    sample_mode mode;
    sample_padding padding;
    bool aligned, grid_double, x_double;
    int32_t axes;
    size_t size[SPACE]; /* of the image */
    size_t points, channels, area, bytes;
    size_t batch;
} sample_params;

typedef struct sample_job {
    const sample_params *p;
    const uint8_t *x;
    const void *grid;
    uint8_t *y;
} sample_job;

/* ---- rules ---- */

#define NAMES_SINCE 20 /* before it, modes had the names for two axes */

QS_COLD static int read_modes(const qs_infer *x, sample_mode *mode, sample_padding *padding) {
    static const sample_mode modes[] = {LINEAR, NEAREST, CUBIC};
    const bool early = x->node->version < NAMES_SINCE;
    int32_t at, outside = 0;
    int code =
        qs_infer_word(x, "mode", early ? "bilinear|nearest|bicubic" : "linear|nearest|cubic", &at);
    if (!code)
        code = qs_infer_word(x, "padding_mode", "zeros|border|reflection", &outside);
    *mode = modes[at < 0 ? 0 : at];
    *padding = (sample_padding)outside;
    return code;
}

QS_COLD static int check_grid(const qs_infer *x) {
    const qs_value *v = x->in[0], *g = x->in[1];
    const int32_t rank = v->rank >= 0 ? v->rank : g->rank;
    int code = v->rank < 0 ? QSIM_OK : qs_infer_rank(x, 1, v->rank);
    if (code)
        return code;
    if (rank >= 0 && (rank < 3 || rank > SPACE + 2))
        return qs_infer_fail(x, rank < 3 ? QSIM_E_SHAPE : QSIM_E_UNSUPPORTED,
                             "the input has rank %d; 3 to %d are supported", (int)rank, SPACE + 2);
    if (rank >= 0)
        code = qs_infer_size(x, 1, rank - 1, rank - 2);
    return code || v->rank < 0 ? code : qs_infer_size(x, 1, 0, v->dims[0].size);
}

QS_COLD static int infer_gridsample(qs_infer *x) {
    const qs_value *v = x->in[0], *g = x->in[1];
    sample_mode mode;
    sample_padding padding;
    qs_dim dims[QSIM_MAX_RANK];
    int code = read_modes(x, &mode, &padding);
    if (!code)
        code = qs_infer_type(x, 0, mode == NEAREST ? QS_T_BYTES : QS_T_REAL);
    if (!code)
        code = qs_infer_type(x, 1, QS_T_REAL);
    if (!code)
        code = check_grid(x);
    if (code || v->rank < 0 || g->rank < 0)
        return code ? code : qs_infer_unknown(x, v->dtype);
    const bool empty = qs_dims_product(v->dims, 2, v->rank) == 0;
    if (empty && padding != ZEROS)
        return qs_infer_fail(x, QSIM_E_SHAPE, "the image is empty");
    for (int32_t i = 2; i < v->rank; i++)
        if (v->dims[i].size > INT32_MAX)
            return qs_infer_fail(x, QSIM_E_LIMIT, "axis of size %lld", (long long)v->dims[i].size);
    dims[0] = v->dims[0].size >= 0 ? v->dims[0] : g->dims[0];
    dims[1] = v->dims[1];
    for (int32_t i = 2; i < v->rank; i++)
        dims[i] = g->dims[i - 1];
    return qs_infer_out(x, 0, v->dtype, v->rank, dims);
}

/* ---- positions ---- */

/* Turns a coordinate in [-1, 1] into a position among `size` pixels, in the grid's arithmetic. */
QS_COLD static double place_of(const sample_params *p, const void *grid, size_t i, size_t size) {
    if (p->grid_double) {
        const double g = ((const double *)grid)[i], n = qs_real(size);
        return p->aligned ? (g + 1) / 2 * (n - 1) : ((g + 1) * n - 1) / 2;
    }
    return (double)qs_grid_place(((const float *)grid)[i], (float)qs_real(size), p->aligned);
}

/* Mirrors x at low and high until it lies between them. */
QS_COLD static double reflect(double x, double low, double high) {
    const double range = high - low;
    if (x >= low && x <= high)
        return x;
    if (range <= 0)
        return low;
    const double away = x < low ? low - x : x - high;
    const double turns = floor(away / range), rest = away - turns * range;
    const bool even = fmod(turns, 2) == 0;
    return (x < low) == even ? low + rest : high - rest;
}

/* The pixel for index i, by the padding mode; -1: zero. */
QS_COLD static int64_t pixel_of(const sample_params *p, double i, size_t size) {
    const double last = qs_real(size) - 1;
    if (i >= 0 && i <= last)
        return (int64_t)i;
    if (p->padding == ZEROS)
        return -1;
    if (p->padding == REFLECTION)
        i = reflect(i, p->aligned ? 0 : -0.5, p->aligned ? last : last + 0.5);
    return i < 0 ? 0 : i > last ? (int64_t)last : (int64_t)i;
}

/*
 * Moves a position outside the image by the padding mode. Beside the border cubic sums take the
 * border's values for the pixels that are not there, as PyTorch and ONNX Runtime do.
 */
QS_COLD static double inside(const sample_params *p, double x, size_t size) {
    const double far = 1e15, last = (double)size - 1;
    const double low = p->aligned ? 0 : -0.5, high = p->aligned ? last : last + 0.5;
    x = x > far ? far : x > -far ? x : -far;
    if (x >= low && x <= high)
        return x;
    if (p->padding == BORDER && p->mode != CUBIC)
        return x < 0 ? 0 : x > last ? last : x;
    return p->padding == REFLECTION ? reflect(x, low, high) : x;
}

/* Keys' kernel with a = -0.75 for the pixels -1, 0, 1, 2 around a position t after pixel 0. */
QS_COLD static void cubic_weights(double t, double w[4]) {
    const double a = -0.75, u = t + 1, v = 1 - t, z = 2 - t;
    w[0] = ((a * u - 5 * a) * u + 8 * a) * u - 4 * a;
    w[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
    w[2] = ((a + 2) * v - (a + 3)) * v * v + 1;
    w[3] = ((a * z - 5 * a) * z + 8 * a) * z - 4 * a;
}

/* Finds pixels and weights along one axis; returns their number. */
QS_COLD static size_t axis_taps(const sample_params *p, double x, size_t size, int64_t at[4],
                                double weight[4]) {
    x = inside(p, p->mode == NEAREST ? rint(x) : x, size);
    if (p->mode == NEAREST) {
        weight[0] = 1;
        at[0] = pixel_of(p, x, size);
        return 1;
    }
    const double first = floor(x), t = x - first;
    const size_t count = p->mode == LINEAR ? 2 : 4;
    if (p->mode == LINEAR) {
        weight[0] = 1 - t;
        weight[1] = t;
    } else {
        cubic_weights(t, weight);
    }
    for (size_t k = 0; k < count; k++)
        at[k] = pixel_of(p, first + (double)k - (count == 4), size);
    return count;
}

/* Finds the taps of one point of the grid: those of each axis times those of the axes before. */
QS_COLD static size_t find_taps(const sample_params *p, const void *grid, size_t point, size_t *to,
                                double *by) {
    size_t count = 1;
    to[0] = 0;
    by[0] = 1;
    for (int32_t axis = 0; axis < p->axes; axis++) {
        const size_t i = (point + 1) * (size_t)p->axes - 1 - (size_t)axis, size = p->size[axis];
        int64_t at[4];
        double weight[4];
        const size_t all = axis_taps(p, place_of(p, grid, i, size), size, at, weight);
        size_t n = 0;
        for (size_t k = 0; k < all; k++)
            if (at[k] >= 0) {
                at[n] = at[k];
                weight[n++] = weight[k];
            }
        for (size_t b = count; b-- > 0;) { /* from the end on: in place */
            const size_t line = to[b] * size;
            const double w = by[b];
            for (size_t k = n; k-- > 0;) {
                to[b * n + k] = line + (size_t)at[k];
                by[b * n + k] = w * weight[k];
            }
        }
        count *= n;
    }
    return count;
}

/* ---- steps ---- */

/* Results of one channel; nearest: copies of pixels, or 0. */
static void put_nearest(const qs_taps *t, const uint8_t *x, uint8_t *y, size_t bytes) {
    for (size_t i = 0; i < t->points; i++, y += bytes)
        if (t->count[i])
            memcpy(y, x + t->at[i * t->most] * bytes, bytes);
        else
            memset(y, 0, bytes);
}

static void put_double(const qs_taps *t, const double *x, double *y) {
    for (size_t i = 0; i < t->points; i++) {
        y[i] = 0;
        for (size_t k = 0; k < t->count[i]; k++)
            y[i] += t->weight[i * t->most + k] * x[t->at[i * t->most + k]];
    }
}

/* Results of t->points points from `first` on, all of image n. */
static void put_points(const sample_job *j, const qs_taps *t, size_t n, size_t first) {
    const sample_params *p = j->p;
    for (size_t c = n * p->channels; c < (n + 1) * p->channels; c++) {
        const uint8_t *x = j->x + c * p->area * p->bytes;
        uint8_t *y = j->y + (c * p->points + first) * p->bytes;
        if (p->mode == NEAREST)
            put_nearest(t, x, y, p->bytes);
        else if (p->x_double)
            put_double(t, (const void *)x, (void *)y);
        else
            qs_taps_sum(t, (const void *)x, (void *)y);
    }
}

static void sample_range(const void *arg, size_t begin, size_t end) {
    const sample_job *j = arg;
    const sample_params *p = j->p;
    qs_taps t;
    t.most = p->mode == CUBIC ? 4 : 2;
    for (int32_t i = 1; i < p->axes; i++)
        t.most *= p->mode == CUBIC ? 4 : 2;
    for (size_t point = begin; point < end; point += t.points) {
        const size_t first = point % p->points, left = p->points - first;
        t.points = left < end - point ? left : end - point;
        t.points = t.points < QS_TAPS / t.most ? t.points : QS_TAPS / t.most;
        memset(t.count, 0, t.points * sizeof(*t.count));
        if (p->mode == LINEAR && p->axes == 2 && !p->grid_double)
            qs_taps_between(&t, (const float *)j->grid + 2 * point, p->size, p->aligned);
        for (size_t i = 0; i < t.points; i++)
            if (t.count[i] == 0)
                t.count[i] =
                    find_taps(p, j->grid, point + i, t.at + i * t.most, t.weight + i * t.most);
        put_points(j, &t, point / p->points, first);
    }
}

QS_COLD static void run_gridsample(const qs_step *s, const qs_frame *f) {
    const sample_params *p = s->params;
    const sample_job j = {p, qs_step_in(s, f, 0), qs_step_in(s, f, 1), qs_step_out(s, f, 0)};
    qs_ranges(f->ctx, p->batch * p->points, 1 + QS_GRAIN / (64 + p->channels * 64), sample_range,
              &j);
}

QS_COLD static int lower_gridsample(qs_lower *l) {
    const qs_value *v = qs_lower_in(l, 0), *y = qs_lower_out(l, 0);
    qs_infer x;
    sample_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    qs_lower_infer(l, &x);
    int code = read_modes(&x, &p->mode, &p->padding);
    p->aligned = qs_node_int(l->node, "align_corners", 0) != 0;
    p->grid_double = qs_lower_in(l, 1)->dtype == QSIM_DOUBLE;
    p->x_double = v->dtype == QSIM_DOUBLE;
    p->axes = v->rank - 2;
    for (int32_t i = 0; i < p->axes; i++)
        p->size[i] = (size_t)v->dims[2 + i].size;
    p->batch = (size_t)v->dims[0].size;
    p->channels = (size_t)v->dims[1].size;
    p->area = (size_t)qs_dims_product(v->dims, 2, v->rank);
    p->points = (size_t)qs_dims_product(y->dims, 2, y->rank);
    p->bytes = qs_dtype_bytes(v->dtype);
    l->step->run = run_gridsample;
    return code;
}

QS_COLD static int upgrade_gridsample(qs_graph *g, qs_id node, int32_t to, qsim_error *error) {
    const qs_node *n = &g->nodes[node];
    qs_attr a = {.name = "mode", .type = QSIM_ATTR_STRING};
    if (to < NAMES_SINCE || n->version >= NAMES_SINCE || !qs_node_attr(n, "mode") ||
        qs_node_string_is(n, "mode", "nearest", false))
        return QSIM_OK;
    const char *name = qs_node_string_is(n, "mode", "bicubic", false) ? "cubic" : "linear";
    a.u.s = (qs_span){(const uint8_t *)name, strlen(name)};
    return qs_node_set_attr(g, node, &a) ? qs_op_no_memory(error) : QSIM_OK;
}

static const qs_attr_rule sample_attrs[] = {{"align_corners", QSIM_ATTR_INT, 16, 0},
                                            {"mode", QSIM_ATTR_STRING, 16, 0},
                                            {"padding_mode", QSIM_ATTR_STRING, 16, 0}};

QS_OP(gridsample, .name = "GridSample", .since = 16, .min_in = 2, QS_ATTRS(sample_attrs),
      .traits = QS_READS_EXACTLY, .setting_inputs = 1 << 1, .integers_as = QSIM_DOUBLE,
      .kernel = QS_KERNEL_GRID_SAMPLE, .infer = infer_gridsample,
      QS_MORE(QS_HISTORY(.upgrade = upgrade_gridsample)), .lower = lower_gridsample);

/* ---- AffineGrid ---- */

typedef struct affine_params {
    int32_t axes;
    size_t size[SPACE], points, batch;
    bool aligned, is_double;
} affine_params;

typedef struct affine_job {
    const affine_params *p;
    const void *theta;
    void *y;
} affine_job;

/* Inputs: theta [batch, axes, axes + 1]; batch, channels and sizes. */
QS_COLD static int infer_affinegrid(qs_infer *x) {
    const qs_value *theta = x->in[0], *v = x->in[1];
    int64_t size[SPACE + 2];
    qs_dim dims[SPACE + 2];
    int32_t count;
    int code = qs_infer_type(x, 0, QS_T_REAL);
    if (!code)
        code = qs_infer_ints(x, 1, size, SPACE + 2, &count);
    if (!code)
        code = qs_infer_rank(x, 0, 3);
    if (!code && count == QS_DYNAMIC)
        count = v->rank == 1 && v->dims[0].size >= 0 ? -(int32_t)v->dims[0].size : 0;
    if (code || count == 0)
        return code ? code : qs_infer_unknown(x, theta->dtype);
    const int32_t rank = count < 0 ? -count : count;
    if (rank != 4 && rank != 5)
        return qs_infer_fail(x, QSIM_E_SHAPE, "size has %d numbers, expected 4 or 5", (int)rank);
    for (int32_t i = 0; i < rank - 1; i++) {
        dims[i] = (qs_dim){count < 0 ? -1 : size[i ? i + 1 : 0], NULL};
        if (count > 0 && dims[i].size < 0)
            return qs_infer_fail(x, QSIM_E_VALUE, "size has the element %lld",
                                 (long long)dims[i].size);
    }
    dims[rank - 1] = (qs_dim){rank - 2, NULL};
    const int64_t want[3] = {dims[0].size, rank - 2, rank - 1};
    for (int32_t i = 0; i < 3 && !code; i++)
        code = qs_infer_size(x, 0, i, want[i]);
    return code ? code : qs_infer_out(x, 0, theta->dtype, rank, dims);
}

/* Coordinate i of `size` in [-1, 1]; with aligned corners and size 1, -1. */
QS_COLD static double coordinate(size_t i, size_t size, bool aligned) {
    if (aligned)
        return size > 1 ? 2.0 * qs_real(i) / qs_real(size - 1) - 1 : -1;
    return (2.0 * qs_real(i) + 1) / qs_real(size) - 1;
}

QS_COLD static void affine_range(const void *arg, size_t begin, size_t end) {
    const affine_job *j = arg;
    const affine_params *p = j->p;
    const size_t axes = (size_t)p->axes;
    for (size_t point = begin; point < end; point++) {
        double at[SPACE + 1];
        size_t rest = point % p->points;
        for (size_t i = 0; i < axes; i++) { /* the last axis first */
            const size_t size = p->size[axes - 1 - i];
            at[i] = coordinate(rest % size, size, p->aligned);
            rest /= size;
        }
        at[axes] = 1;
        for (size_t row = 0; row < axes; row++) {
            const size_t from = (point / p->points * axes + row) * (axes + 1);
            double sum = 0;
            for (size_t k = 0; k <= axes; k++)
                sum += at[k] * (p->is_double ? ((const double *)j->theta)[from + k]
                                             : (double)((const float *)j->theta)[from + k]);
            if (p->is_double)
                ((double *)j->y)[point * axes + row] = sum;
            else
                ((float *)j->y)[point * axes + row] = (float)sum;
        }
    }
}

QS_COLD static void run_affinegrid(const qs_step *s, const qs_frame *f) {
    const affine_params *p = s->params;
    const affine_job j = {p, qs_step_in(s, f, 0), qs_step_out(s, f, 0)};
    qs_ranges(f->ctx, p->batch * p->points, QS_GRAIN / 16, affine_range, &j);
}

QS_COLD static int lower_affinegrid(qs_lower *l) {
    const qs_value *y = qs_lower_out(l, 0);
    affine_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->axes = y->rank - 2;
    for (int32_t i = 0; i < p->axes; i++)
        p->size[i] = (size_t)y->dims[1 + i].size;
    p->batch = (size_t)y->dims[0].size;
    p->points = (size_t)qs_dims_product(y->dims, 1, y->rank - 1);
    p->aligned = qs_node_int(l->node, "align_corners", 0) != 0;
    p->is_double = y->dtype == QSIM_DOUBLE;
    l->step->run = run_affinegrid;
    return QSIM_OK;
}

static const qs_attr_rule affine_attrs[] = {{"align_corners", QSIM_ATTR_INT, 20, 0}};

QS_OP(affinegrid, .name = "AffineGrid", .since = 20, .min_in = 2, QS_ATTRS(affine_attrs),
      .traits = QS_READS_EXACTLY, .shape_inputs = 1 << 1, .kernel = QS_KERNEL_AFFINE_GRID,
      .infer = infer_affinegrid, .lower = lower_affinegrid);
