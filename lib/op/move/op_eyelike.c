/* SPDX-License-Identifier: MIT */
/* EyeLike: ones on a diagonal of a matrix of the input's size. */
#include "op/rules.h"

QS_COLD static int infer_eyelike(qs_infer *x) {
    const qs_value *v = x->in[0];
    const int64_t dtype = qs_node_int(x->node, "dtype", v->dtype);
    const int code = qs_infer_rank(x, 0, 2);
    if (code)
        return code;
    if (dtype && (dtype < 0 || dtype >= 32 || !((QS_T_ARITH | QS_T(QSIM_BOOL)) & QS_T(dtype))))
        return qs_infer_fail(x, QSIM_E_DTYPE, "elements of type %lld are not supported",
                             (long long)dtype);
    return qs_infer_out(x, 0, (int32_t)dtype, v->rank, v->dims);
}

typedef struct eye_params {
    int64_t rows, columns, k;
    size_t element;
    union {
        float f;
        double d;
        uint64_t u; /* little-endian: narrower types read its low bytes */
    } one;
} eye_params;

static void run_eyelike(const qs_step *s, const qs_frame *f) {
    const eye_params *p = s->params;
    char *y = qs_step_out(s, f, 0);
    if (p->rows && p->columns)
        qs_clear(f->ctx, y, (size_t)p->rows * (size_t)p->columns * p->element);
    for (int64_t r = p->k < 0 ? -p->k : 0; r < p->rows && r < p->columns - p->k; r++)
        memcpy(y + (size_t)(r * p->columns + r + p->k) * p->element, &p->one, p->element);
}

QS_COLD static int lower_eyelike(qs_lower *l) {
    const qs_value *y = qs_lower_out(l, 0);
    eye_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    const int64_t k = qs_node_int(l->node, "k", 0);
    p->rows = y->dims[0].size;
    p->columns = y->dims[1].size;
    /* a diagonal outside the matrix is empty */
    p->k = k > p->columns ? p->columns : k < -p->rows ? -p->rows : k;
    p->element = qs_dtype_bytes(y->dtype);
    p->one.u = 1;
    if (y->dtype == QSIM_FLOAT)
        p->one.f = 1.0f;
    else if (y->dtype == QSIM_DOUBLE)
        p->one.d = 1.0;
    l->step->run = run_eyelike;
    return QSIM_OK;
}

static const qs_attr_rule eye_attrs[] = {{"dtype", QSIM_ATTR_INT, 9, 0},
                                         {"k", QSIM_ATTR_INT, 9, 0}};

QS_OP(eyelike, .name = "EyeLike", .since = 9, .min_in = 1, QS_ATTRS(eye_attrs),
      .traits = QS_READS_EXACTLY, .kernel = QS_KERNEL_FILL, .infer = infer_eyelike,
      .lower = lower_eyelike);
