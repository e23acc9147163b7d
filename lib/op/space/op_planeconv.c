/* SPDX-License-Identifier: MIT */
/*
 * Conv and ConvTranspose of channels-first images [N, C, space...] with one to three axes: of
 * doubles, and of floats over three axes whose weights' sizes are not in the file. Each result is
 * computed separately, summed in double in the order of the channels, then of the taps.
 */
#include "op/nn/conv_float.h"
#include "op/nn/phases.h"
#include "op/nn/window.h"

#define AXES QS_WINDOW_AXES

/* Tap t connects position o of the output with position i of the input: i = o stride + t dilation -
 * before, or transposed o = i stride + t dilation - before. */
typedef struct plane_axis {
    int64_t in, out, kernel, stride, dilation, before;
} plane_axis;

typedef struct conv_params {
    bool transposed, wide, biased; /* wide: of doubles */
    size_t c, cg, mg, m;        /* channels of the input, of a group of it; of the output: mg, m */
    size_t area, taps, results; /* results: positions of one output plane */
    size_t count;               /* of all results */
    plane_axis a[AXES];         /* from the first axis to the last */
} conv_params;

typedef struct conv_job {
    const conv_params *p;
    const void *x, *w, *bias;
    void *y;
} conv_job;

static double number_at(const conv_params *p, const void *x, size_t i) {
    return p->wide ? ((const double *)x)[i] : (double)((const float *)x)[i];
}

static bool source(const conv_params *p, int axis, int64_t o, int64_t t, int64_t *i) {
    const plane_axis *a = &p->a[axis];
    *i = p->transposed ? o - t * a->dilation + a->before
                       : o * a->stride + t * a->dilation - a->before;
    if (p->transposed && (*i < 0 || *i % a->stride != 0))
        return false;
    *i = p->transposed ? *i / a->stride : *i;
    return *i >= 0 && *i < a->in;
}

/* The sum over one plane of the input and one of the weights, for one position of the output. */
static double sum_plane(const conv_job *j, size_t x, size_t w, const int64_t o[AXES]) {
    const conv_params *p = j->p;
    double sum = 0;
    int64_t i[AXES];
    for (int64_t a = 0; a < p->a[0].kernel; a++) {
        if (!source(p, 0, o[0], a, &i[0]))
            continue;
        for (int64_t b = 0; b < p->a[1].kernel; b++) {
            if (!source(p, 1, o[1], b, &i[1]))
                continue;
            for (int64_t c = 0; c < p->a[2].kernel; c++) {
                const int64_t tap = (a * p->a[1].kernel + b) * p->a[2].kernel + c;
                if (source(p, 2, o[2], c, &i[2]))
                    sum += number_at(p, j->x,
                                     x + (size_t)((i[0] * p->a[1].in + i[1]) * p->a[2].in + i[2])) *
                           number_at(p, j->w, w + (size_t)tap);
            }
        }
    }
    return sum;
}

static void conv_range(const void *arg, size_t begin, size_t end) {
    const conv_job *j = arg;
    const conv_params *p = j->p;
    for (size_t k = begin; k < end; k++) {
        const size_t m = k / p->results % p->m, n = k / p->results / p->m, g = m / p->mg;
        int64_t o[AXES], rest = (int64_t)(k % p->results);
        for (int i = AXES; i-- > 0; rest /= p->a[i].out)
            o[i] = rest % p->a[i].out;
        double sum = p->biased ? number_at(p, j->bias, m) : 0;
        for (size_t c = 0; c < p->cg; c++) {
            const size_t w = p->transposed ? (g * p->cg + c) * p->mg + m % p->mg : m * p->cg + c;
            sum += sum_plane(j, (n * p->c + g * p->cg + c) * p->area, w * p->taps, o);
        }
        if (p->wide)
            ((double *)j->y)[k] = sum;
        else
            ((float *)j->y)[k] = (float)sum;
    }
}

static void run_conv(const qs_step *s, const qs_frame *f) {
    const conv_params *p = s->params;
    const conv_job j = {p, qs_step_in(s, f, 0), qs_step_in(s, f, 1),
                        p->biased ? qs_step_in(s, f, 2) : NULL, qs_step_out(s, f, 0)};
    qs_ranges(f->ctx, p->count, 1 + QS_GRAIN / (4 * (p->taps * p->cg + 1)), conv_range, &j);
}

/* The windows' and the phases' slots begin with the second axis. */
#define SLOT(k) (((k) + 2) % AXES)

static int read_window(const qs_infer *x, conv_params *p) {
    qs_window w;
    const int code = qs_window_infer(x, 0, x->in[1]->dims + 2, &w);
    for (int k = 0; k < AXES && !code; k++)
        p->a[k] = (plane_axis){w.in[SLOT(k)],     w.out[SLOT(k)],      w.kernel[SLOT(k)],
                               w.stride[SLOT(k)], w.dilation[SLOT(k)], w.before[SLOT(k)]};
    return code;
}

static int read_transposed(const qs_infer *x, conv_params *p) {
    qs_transposed g;
    const int code = qs_transposed_read(x, &g);
    for (int k = 0; k < AXES && !code; k++) {
        const qs_transposed_axis *a = &g.a[SLOT(k)];
        p->a[k] = (plane_axis){a->in, a->out, a->kernel, a->stride, a->dilation, a->before};
    }
    return code;
}

static int lower_conv(qs_lower *l, bool transposed) {
    const qs_value *v = qs_lower_in(l, 0), *w = qs_lower_in(l, 1), *y = qs_lower_out(l, 0);
    const size_t groups = (size_t)qs_node_int(l->node, "group", 1);
    conv_params *p = qs_lower_params(l, sizeof(*p));
    qs_infer x;
    if (!p)
        return QSIM_E_NOMEM;
    qs_lower_infer(l, &x);
    p->transposed = transposed;
    p->wide = v->dtype == QSIM_DOUBLE;
    p->biased = qs_lower_in(l, 2) != NULL;
    p->c = (size_t)v->dims[1].size;
    p->m = (size_t)y->dims[1].size;
    p->cg = p->c / groups;
    p->mg = p->m / groups;
    p->area = (size_t)qs_dims_product(v->dims, 2, v->rank);
    p->taps = (size_t)qs_dims_product(w->dims, 2, w->rank);
    p->results = (size_t)qs_dims_product(y->dims, 2, y->rank);
    p->count = qs_value_elements(y);
    l->step->run = run_conv;
    const double macs = qs_real(p->count) * qs_real(p->taps) * qs_real(p->cg);
    l->step->macs = macs < 9e18 ? (int64_t)macs : INT64_MAX;
    return transposed ? read_transposed(&x, p) : read_window(&x, p);
}

static int lower_plane(qs_lower *l) {
    return lower_conv(l, false);
}
static int lower_transposed(qs_lower *l) {
    return lower_conv(l, true);
}

static const qs_attr_rule attrs[] = {
    QS_CONV_ATTRS(0),
    {"output_padding", QSIM_ATTR_INTS, 0, 0},
    {"output_shape", QSIM_ATTR_INTS, 0, 0},
};

QS_OP(qsim_planeconv, .domain = QS_DOMAIN_QSIM, .name = "PlaneConv", .min_in = 2, .max_in = 3,
      QS_ATTRS(attrs), .traits = QS_PLAIN, .macs = QS_MACS_CONV, .weight_inputs = 1 << 1,
      .kernel = QS_KERNEL_PLANE_CONV, .infer = qs_conv_infer, .lower = lower_plane);
QS_OP(qsim_planeconvtranspose, .domain = QS_DOMAIN_QSIM, .name = "PlaneConvTranspose", .min_in = 2,
      .max_in = 3, QS_ATTRS(attrs), .traits = QS_PLAIN, .macs = QS_MACS_CONVTRANSPOSE,
      .weight_inputs = 1 << 1, .kernel = QS_KERNEL_PLANE_CONV, .infer = qs_convtranspose_infer,
      .lower = lower_transposed);
