/* SPDX-License-Identifier: MIT */
/* Det: determinants of square matrices, by elimination in doubles with the largest pivot. */
#include "op/rules.h"

#include <math.h>

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
    return qs_infer_out(x, 0, v->dtype, v->rank - 2, v->dims);
}

typedef struct det_params {
    size_t count, n;
    bool wide; /* of doubles */
} det_params;

static void swap_rows(double *a, double *b, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const double t = a[i];
        a[i] = b[i];
        b[i] = t;
    }
}

/* The determinant of m, n by n, which is overwritten. */
static double eliminate(double *m, size_t n) {
    double det = 1;
    for (size_t k = 0; k < n; k++) {
        size_t top = k;
        for (size_t r = k + 1; r < n; r++)
            top = fabs(m[r * n + k]) > fabs(m[top * n + k]) ? r : top;
        if (top != k) {
            swap_rows(m + top * n, m + k * n, n);
            det = -det;
        }
        det *= m[k * n + k];
        if (m[k * n + k] == 0)
            return 0;
        for (size_t r = k + 1; r < n; r++) {
            const double f = m[r * n + k] / m[k * n + k];
            for (size_t c = k; c < n; c++)
                m[r * n + c] -= f * m[k * n + c];
        }
    }
    return det;
}

static void run_det(const qs_step *s, const qs_frame *f) {
    const det_params *p = s->params;
    const size_t size = p->n * p->n;
    const void *x = qs_step_in(s, f, 0);
    void *y = qs_step_out(s, f, 0);
    double *m = f->scratch;
    for (size_t i = 0; i < p->count; i++) {
        for (size_t k = 0; k < size; k++)
            m[k] = p->wide ? ((const double *)x)[i * size + k]
                           : (double)((const float *)x)[i * size + k];
        const double det = eliminate(m, p->n);
        if (p->wide)
            ((double *)y)[i] = det;
        else
            ((float *)y)[i] = (float)det;
    }
}

QS_COLD static int lower_det(qs_lower *l) {
    const qs_value *x = qs_lower_in(l, 0);
    det_params *p = qs_lower_params(l, sizeof(*p));
    size_t bytes;
    if (!p)
        return QSIM_E_NOMEM;
    p->n = (size_t)x->dims[x->rank - 1].size;
    p->count = qs_value_elements(qs_lower_out(l, 0));
    p->wide = x->dtype == QSIM_DOUBLE;
    if (!qs_mul(p->n, p->n, &bytes) || !qs_mul(bytes, sizeof(double), &bytes))
        return QSIM_E_NOMEM;
    l->step->scratch = bytes;
    l->step->run = run_det;
    return QSIM_OK;
}

QS_OP(det, .name = "Det", .since = 11, .min_in = 1, .traits = QS_PLAIN, .kernel = QS_KERNEL_DET,
      .infer = infer_det, .lower = lower_det);
