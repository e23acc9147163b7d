/* SPDX-License-Identifier: MIT */
/*
 * Det, and Inverse of com.microsoft: determinants and inverses of square matrices, by elimination
 * in doubles with the largest pivot. The inverse of a matrix that has none is NaN.
 */
#include "op/rules.h"

#include <math.h>

#include "base/ctx.h"

static bool inverts(const qs_node *n) {
    return n->domain[0] != 0;
}

QS_COLD static int infer_det(qs_infer *x) {
    const qs_value *v = x->in[0];
    int code = qs_infer_type(x, 0, QS_T_REAL);
    if (!code)
        code = qs_infer_least_rank(x, 0, 2);
    if (code || v->rank < 0)
        return code ? code : qs_infer_unknown(x, v->dtype);
    const int64_t rows = v->dims[v->rank - 2].size, columns = v->dims[v->rank - 1].size;
    if (rows >= 0 && columns >= 0 && rows != columns)
        return qs_infer_fail(x, QSIM_E_SHAPE, "a matrix of %lld rows and %lld columns",
                             (long long)rows, (long long)columns);
    return inverts(x->node) ? qs_infer_like(x, 0, 0)
                            : qs_infer_out(x, 0, v->dtype, v->rank - 2, v->dims);
}

typedef struct det_params {
    size_t count, n, width; /* of the rows that are eliminated */
    bool wide;              /* of doubles */
} det_params;

static void swap_rows(double *a, double *b, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const double t = a[i];
        a[i] = b[i];
        b[i] = t;
    }
}

/*
 * Makes the first n columns of m, n rows of `width` numbers, a triangle or, if there are more, a
 * diagonal. False: they have no inverse, or the run was stopped, and *det is 0.
 */
static bool eliminate(const qsim_ctx *ctx, double *m, size_t n, size_t width, double *det) {
    *det = 1;
    for (size_t k = 0; k < n; k++) {
        size_t top = k;
        for (size_t r = k + 1; r < n; r++)
            top = fabs(m[r * width + k]) > fabs(m[top * width + k]) ? r : top;
        if (top != k) {
            swap_rows(m + top * width, m + k * width, width);
            *det = -*det;
        }
        const double pivot = m[k * width + k];
        *det *= pivot;
        if (pivot == 0 || qs_stop_code(ctx)) {
            *det = 0;
            return false;
        }
        for (size_t r = width > n ? 0 : k + 1; r < n; r++) {
            const double f = r == k ? 0 : m[r * width + k] / pivot;
            for (size_t c = k; c < width && f != 0; c++)
                m[r * width + c] -= f * m[k * width + c];
        }
    }
    return true;
}

static double number_at(const det_params *p, const void *x, size_t i) {
    return p->wide ? ((const double *)x)[i] : (double)((const float *)x)[i];
}

static void put_number(const det_params *p, void *y, size_t i, double v) {
    if (p->wide)
        ((double *)y)[i] = v;
    else
        ((float *)y)[i] = (float)v;
}

static void run_det(const qs_step *s, const qs_frame *f) {
    const det_params *p = s->params;
    const size_t n = p->n, width = p->width;
    const void *x = qs_step_in(s, f, 0);
    void *y = qs_step_out(s, f, 0);
    double *m = f->scratch;
    for (size_t i = 0; i < p->count; i++) {
        for (size_t k = 0; k < n * width; k++)
            m[k] = k % width < n ? number_at(p, x, (i * n + k / width) * n + k % width)
                                 : k % width - n == k / width;
        double det;
        const bool any = eliminate(f->ctx, m, n, width, &det);
        if (width == n)
            put_number(p, y, i, det);
        for (size_t k = 0; k < n * n && width > n; k++)
            put_number(p, y, i * n * n + k,
                       any ? m[k / n * width + n + k % n] / m[k / n * (width + 1)] : NAN);
    }
}

QS_COLD static int lower_det(qs_lower *l) {
    const qs_value *x = qs_lower_in(l, 0);
    det_params *p = qs_lower_params(l, sizeof(*p));
    size_t bytes;
    if (!p)
        return QSIM_E_NOMEM;
    p->n = (size_t)x->dims[x->rank - 1].size;
    p->width = inverts(l->node) ? 2 * p->n : p->n;
    p->count = (size_t)qs_dims_product(x->dims, 0, x->rank - 2);
    p->wide = x->dtype == QSIM_DOUBLE;
    if (!qs_mul(p->n, p->width, &bytes) || !qs_mul(bytes, sizeof(double), &bytes))
        return QSIM_E_NOMEM;
    l->step->scratch = bytes;
    l->step->run = run_det;
    return QSIM_OK;
}

QS_OP(det, .name = "Det", .since = 11, .min_in = 1, .traits = QS_PLAIN, .kernel = QS_KERNEL_DET,
      .infer = infer_det, .lower = lower_det);
QS_OP(ms_inverse, .domain = QS_DOMAIN_MICROSOFT, .name = "Inverse", .min_in = 1, .traits = QS_PLAIN,
      .kernel = QS_KERNEL_DET, .infer = infer_det, .lower = lower_det);
