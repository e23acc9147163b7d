/* SPDX-License-Identifier: MIT */
/*
 * DFT and STFT: transform rows of numbers, computed in double. The last axis holds a number's real
 * part and, if its size is 2, the imaginary part.
 */
#include "op/rules.h"
#include "op/signal/fourier.h"

#include "base/slices.h"

#define POINT_NS 20.0 /* nanoseconds of one thread per point of a transform */

/* Strides in elements: of outer and inner axes, and of a row's points; parts of a number. */
typedef struct side {
    size_t outer, inner, step, parts;
} side;

typedef struct dft_params {
    qs_fourier f;
    size_t rows, inner; /* row r is r / inner of the outer axes and r % inner of the inner ones */
    size_t x_points, y_points;   /* points read, and points written */
    size_t slices, slice_points; /* slice_points: complex numbers of scratch memory per slice */
    side x, y;
    int32_t window; /* index of the input that points are multiplied by; 0: none */
    bool inverse, mirrored, is_double;
} dft_params;

typedef struct dft_job {
    const dft_params *p;
    const void *x, *window;
    void *y;
    qs_complex *scratch;
    const qsim_ctx *ctx; /* tells whether the run was stopped */
} dft_job;

QS_COLD static double number_at(const void *x, size_t i, bool is_double) {
    return is_double ? ((const double *)x)[i] : (double)((const float *)x)[i];
}

QS_COLD static void put_number(void *y, size_t i, double v, bool is_double) {
    if (is_double)
        ((double *)y)[i] = v;
    else
        ((float *)y)[i] = (float)v;
}

QS_COLD static void gather(const dft_job *j, size_t row, qs_complex *to) {
    const dft_params *p = j->p;
    const size_t from = row / p->inner * p->x.outer + row % p->inner * p->x.inner;
    for (size_t i = 0; i < p->f.n; i++) {
        const size_t at = from + i * p->x.step;
        to[i] = (qs_complex){0, 0};
        if (i >= p->x_points)
            continue;
        to[i].re = number_at(j->x, at, p->is_double);
        to[i].im = p->x.parts > 1 ? number_at(j->x, at + 1, p->is_double) : 0;
        if (j->window) {
            const double w = number_at(j->window, i, p->is_double);
            to[i].re *= w;
            to[i].im *= w;
        }
    }
    for (size_t i = p->f.n / 2 + 1; p->mirrored && i < p->f.n; i++)
        to[i] = (qs_complex){to[p->f.n - i].re, -to[p->f.n - i].im};
}

QS_COLD static void scatter(const dft_job *j, size_t row, const qs_complex *from) {
    const dft_params *p = j->p;
    const size_t to = row / p->inner * p->y.outer + row % p->inner * p->y.inner;
    const double divisor = p->inverse ? qs_real(p->f.n) : 1.0;
    for (size_t i = 0; i < p->y_points; i++) {
        const size_t at = to + i * p->y.step;
        put_number(j->y, at, from[i].re / divisor, p->is_double);
        if (p->y.parts > 1)
            put_number(j->y, at + 1, from[i].im / divisor, p->is_double);
    }
}

QS_COLD static void transform_rows(void *arg, size_t slice) {
    const dft_job *j = arg;
    const dft_params *p = j->p;
    qs_complex *x = j->scratch + slice * p->slice_points, *y = x + p->f.n, *terms = y + p->f.n;
    const size_t end = qs_slice_begin(p->rows, p->slices, slice + 1);
    for (size_t row = qs_slice_begin(p->rows, p->slices, slice); row < end && !qs_stopped(j->ctx);
         row++) {
        gather(j, row, x);
        qs_fourier_run(j->ctx, &p->f, x, y, terms, p->inverse);
        scatter(j, row, y);
    }
}

QS_COLD static void run_dft(const qs_step *s, const qs_frame *f) {
    const dft_params *p = s->params;
    dft_job j = {p,
                 qs_step_in(s, f, 0),
                 p->window ? qs_step_in(s, f, p->window) : NULL,
                 qs_step_out(s, f, 0),
                 f->scratch,
                 f->ctx};
    if (p->rows > 0)
        qs_parallel(f->ctx, p->slices, transform_rows, &j);
}

/* Completes the parameters for transforms of n points. */
QS_COLD static int finish(qs_lower *l, dft_params *p, size_t n) {
    if (!qs_fourier_make(&p->f, n, l->arena))
        return qs_fail(l->error, QSIM_E_NOMEM, "out of memory");
    p->is_double = qs_lower_in(l, 0)->dtype == QSIM_DOUBLE;
    p->slices = qs_slice_count(l->ctx, p->rows, qs_real(p->rows) * qs_real(n) * POINT_NS);
    p->slice_points = 2 * n + p->f.terms;
    l->step->scratch = p->slices * p->slice_points * sizeof(qs_complex);
    l->step->run = run_dft;
    return QSIM_OK;
}

/* Reads a single integer, input `index`; *given: 1 if it is constant, else as in qs_infer_ints. */
QS_COLD static int read_number(const qs_infer *x, int32_t index, int64_t *out, int32_t *given) {
    int code = qs_infer_ints(x, index, out, 1, given);
    if (!code && *given == 0)
        return qs_infer_fail(x, QSIM_E_SHAPE, "input %d is empty, expected a number", (int)index);
    return code;
}

/* Checks the length of a transform. */
QS_COLD static int check_length(const qs_infer *x, int64_t n) {
    return n >= 1 && n <= INT32_MAX / 8 ? QSIM_OK
                                        : qs_infer_fail(x, n < 1 ? QSIM_E_VALUE : QSIM_E_LIMIT,
                                                        "a transform of %lld points", (long long)n);
}

/* Reads the last axis: 1 or 2 parts of a number; -1: unknown. */
QS_COLD static int read_parts(const qs_infer *x, int64_t *parts) {
    const qs_value *v = x->in[0];
    *parts = v->dims[v->rank - 1].size;
    return *parts == 1 || *parts == 2 || *parts < 0
               ? QSIM_OK
               : qs_infer_fail(x, QSIM_E_SHAPE, "a number has %lld parts, expected 1 or 2",
                               (long long)*parts);
}

QS_COLD static int one_side_of_complex(const qs_infer *x) {
    return qs_infer_fail(x, QSIM_E_VALUE, "onesided is 1, and the input is complex");
}

/* ---- DFT ---- */

#define DFT_AXIS_INPUT 20 /* the first version whose axis is an input */

typedef struct dft_form {
    bool inverse, onesided;
    int32_t axis;      /* -1: unknown */
    int64_t n;         /* points of a transform; -1: unknown */
    int64_t out;       /* points of a result */
    int64_t parts;     /* of the input */
    int64_t out_parts; /* parts of the result */
} dft_form;

QS_COLD static int read_dft_axis(const qs_infer *x, dft_form *d) {
    const int32_t rank = x->in[0]->rank;
    int64_t axis = x->node->version >= DFT_AXIS_INPUT ? -2 : qs_node_int(x->node, "axis", 1);
    int32_t given = QS_ABSENT;
    int code = x->node->version >= DFT_AXIS_INPUT ? read_number(x, 2, &axis, &given) : QSIM_OK;
    d->axis = -1;
    if (code || given == QS_DYNAMIC)
        return code;
    code = qs_infer_axis(x, axis, rank, &d->axis);
    if (!code && d->axis == rank - 1)
        return qs_infer_fail(x, QSIM_E_VALUE, "axis %lld holds the parts of numbers",
                             (long long)axis);
    return code;
}

QS_COLD static int read_dft_length(const qs_infer *x, dft_form *d) {
    int64_t length = -1;
    int32_t given;
    int code = read_number(x, 1, &length, &given);
    const int64_t in = d->axis < 0 ? -1 : x->in[0]->dims[d->axis].size;
    if (code)
        return code;
    d->n = given == QS_DYNAMIC ? -1 : given == 1 ? length : in;
    if (given == QS_ABSENT && in >= 0 && d->inverse && d->onesided)
        d->n = 2 * (in - 1);
    if (given == 1 || d->n >= 0)
        code = check_length(x, d->n);
    d->out = d->onesided && !d->inverse && d->n >= 0 ? d->n / 2 + 1 : d->n;
    return code;
}

QS_COLD static int read_dft(const qs_infer *x, dft_form *d) {
    d->inverse = qs_node_int(x->node, "inverse", 0) != 0;
    d->onesided = qs_node_int(x->node, "onesided", 0) != 0;
    int code = qs_infer_least_rank(x, 0, 2);
    if (!code)
        code = read_parts(x, &d->parts);
    if (!code && d->onesided && !d->inverse && d->parts == 2)
        code = one_side_of_complex(x);
    if (!code)
        code = read_dft_axis(x, d);
    if (!code)
        code = read_dft_length(x, d);
    d->out_parts = d->onesided && d->inverse ? 1 : 2;
    return code;
}

QS_COLD static int infer_dft(qs_infer *x) {
    const qs_value *v = x->in[0];
    qs_dim dims[QSIM_MAX_RANK];
    dft_form d;
    int code = qs_infer_type(x, 0, QS_T_REAL);
    if (code || v->rank < 0)
        return code ? code : qs_infer_unknown(x, v->dtype);
    code = read_dft(x, &d);
    if (code)
        return code;
    for (int32_t i = 0; i < v->rank; i++)
        dims[i] = d.axis < 0 ? (qs_dim){-1, NULL} : v->dims[i];
    if (d.axis >= 0)
        dims[d.axis] = (qs_dim){d.out, NULL};
    dims[v->rank - 1] = (qs_dim){d.out_parts, NULL};
    return qs_infer_out(x, 0, v->dtype, v->rank, dims);
}

QS_COLD static int lower_dft(qs_lower *l) {
    const qs_value *v = qs_lower_in(l, 0);
    qs_infer x;
    dft_form d;
    dft_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    qs_lower_infer(l, &x);
    int code = read_dft(&x, &d);
    if (code)
        return code;
    const size_t in = (size_t)v->dims[d.axis].size, out = (size_t)d.out;
    const size_t parts = (size_t)d.parts, of = (size_t)d.out_parts;
    p->inner = (size_t)qs_dims_product(v->dims, d.axis + 1, v->rank - 1);
    p->rows = (size_t)qs_dims_product(v->dims, 0, d.axis) * p->inner;
    p->inverse = d.inverse;
    p->mirrored = d.inverse && d.onesided;
    const size_t most = p->mirrored ? (size_t)d.n / 2 + 1 : (size_t)d.n;
    p->x_points = in < most ? in : most;
    p->y_points = out;
    p->x = (side){in * p->inner * parts, parts, p->inner * parts, parts};
    p->y = (side){out * p->inner * of, of, p->inner * of, of};
    return finish(l, p, (size_t)d.n);
}

/* Turns the axis into an input, since its default changed from 1 to -2. */
QS_COLD static int upgrade_dft(qs_graph *g, qs_id node, int32_t to, qsim_error *error) {
    if (to < DFT_AXIS_INPUT || g->nodes[node].version >= DFT_AXIS_INPUT)
        return QSIM_OK;
    const int64_t axis = qs_node_int(&g->nodes[node], "axis", 1);
    return qs_upgrade_input(g, node, "axis", 2,
                            qs_upgrade_const(g, "axis", QSIM_INT64, 0, NULL, &axis), error);
}

static const qs_attr_rule dft_attrs[] = {{"axis", QSIM_ATTR_INT, 17, DFT_AXIS_INPUT - 1},
                                         {"inverse", QSIM_ATTR_INT, 17, 0},
                                         {"onesided", QSIM_ATTR_INT, 17, 0}};

QS_OP(dft, .name = "DFT", .since = 17, .min_in = 1, .max_in = 2,
      QS_MORE(QS_HISTORY(.later = {{DFT_AXIS_INPUT, 1, 3, 1}}, .upgrade = upgrade_dft)),
      QS_ATTRS(dft_attrs), .traits = QS_PLAIN, .shape_inputs = 1 << 1 | 1 << 2,
      .kernel = QS_KERNEL_FOURIER, .infer = infer_dft, .lower = lower_dft);

/* ---- STFT ---- */

typedef struct stft_form {
    bool onesided;
    int64_t step, n, frames, bins, parts; /* -1: unknown */
} stft_form;

/* Reads the length of a frame: the window's length and the input have to agree. */
QS_COLD static int read_frame(const qs_infer *x, stft_form *s) {
    const qs_value *w = qs_infer_in(x, 2);
    int32_t given;
    int64_t length = -1;
    int code = read_number(x, 3, &length, &given);
    if (code)
        return code;
    code = qs_infer_rank(x, 2, 1);
    if (code)
        return code;
    if (!w && given == QS_ABSENT)
        return qs_infer_fail(x, QSIM_E_GRAPH, "neither a window nor frame_length is given");
    const int64_t of_window = w && w->rank == 1 ? w->dims[0].size : -1;
    if (given == 1 && of_window >= 0 && of_window != length)
        return qs_infer_fail(x, QSIM_E_SHAPE, "frame_length is %lld, the window has %lld numbers",
                             (long long)length, (long long)of_window);
    s->n = given == 1 ? length : of_window;
    return given == 1 || s->n >= 0 ? check_length(x, s->n) : QSIM_OK;
}

QS_COLD static int read_stft(const qs_infer *x, stft_form *s) {
    const qs_value *v = x->in[0];
    int32_t given;
    s->onesided = qs_node_int(x->node, "onesided", 1) != 0;
    s->step = s->frames = s->bins = -1;
    s->parts = 1;
    /* PyTorch's exporter leaves out the last axis of a real signal. */
    int code = v->rank == 2 ? QSIM_OK : qs_infer_rank(x, 0, 3);
    if (!code && v->rank == 3)
        code = read_parts(x, &s->parts);
    if (!code && s->onesided && s->parts == 2)
        code = one_side_of_complex(x);
    if (!code)
        code = read_number(x, 1, &s->step, &given);
    if (!code)
        code = read_frame(x, s);
    if (code)
        return code;
    if (given == 1 && s->step < 1)
        return qs_infer_fail(x, QSIM_E_VALUE, "frame_step is %lld", (long long)s->step);
    const int64_t length = v->dims[1].size;
    if (length >= 0 && s->n > length)
        return qs_infer_fail(x, QSIM_E_SHAPE, "a frame of %lld numbers of a signal that has %lld",
                             (long long)s->n, (long long)length);
    if (s->n >= 0)
        s->bins = s->onesided ? s->n / 2 + 1 : s->n;
    if (s->n >= 0 && given == 1 && length >= 0)
        s->frames = (length - s->n) / s->step + 1;
    return QSIM_OK;
}

QS_COLD static int infer_stft(qs_infer *x) {
    const qs_value *v = x->in[0];
    stft_form s;
    int code = qs_infer_type(x, 0, QS_T_REAL);
    if (!code)
        code = qs_infer_same_type(x, 0, 2);
    if (code || v->rank < 0)
        return code ? code : qs_infer_unknown(x, v->dtype);
    code = read_stft(x, &s);
    const qs_dim dims[4] = {
        code ? (qs_dim){-1, NULL} : v->dims[0], {s.frames, NULL}, {s.bins, NULL}, {2, NULL}};
    return code ? code : qs_infer_out(x, 0, v->dtype, 4, dims);
}

QS_COLD static int lower_stft(qs_lower *l) {
    const qs_value *v = qs_lower_in(l, 0);
    qs_infer x;
    stft_form s;
    dft_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    qs_lower_infer(l, &x);
    int code = read_stft(&x, &s);
    if (code)
        return code;
    const size_t parts = (size_t)s.parts, bins = (size_t)s.bins, frames = (size_t)s.frames;
    p->inner = frames;
    p->rows = (size_t)v->dims[0].size * frames;
    p->x_points = (size_t)s.n;
    p->y_points = bins;
    p->x = (side){(size_t)v->dims[1].size * parts, (size_t)s.step * parts, parts, parts};
    p->y = (side){frames * bins * 2, bins * 2, 2, 2};
    p->window = qs_node_input(l->node, 2) == QS_NONE ? 0 : 2;
    return finish(l, p, (size_t)s.n);
}

static const qs_attr_rule stft_attrs[] = {{"onesided", QSIM_ATTR_INT, 17, 0}};

QS_OP(stft, .name = "STFT", .since = 17, .min_in = 2, .max_in = 4, QS_ATTRS(stft_attrs),
      .traits = QS_PLAIN, .shape_inputs = 1 << 1 | 1 << 3, .setting_inputs = 1 << 2,
      .kernel = QS_KERNEL_FOURIER, .infer = infer_stft, .lower = lower_stft);
