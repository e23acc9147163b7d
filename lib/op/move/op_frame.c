/* SPDX-License-Identifier: MIT */
/* Trilu and CenterCropPad: keep a part of a tensor, zeros elsewhere. OneHot: sets one element. */
#include "op/move/index.h"

/* ---- Trilu ---- */

QS_COLD static int infer_trilu(qs_infer *x) {
    int64_t k;
    bool known;
    int code = qs_infer_type(x, 0, QS_T_BYTES);
    if (!code)
        code = qs_infer_type(x, 1, QS_T(QSIM_INT64));
    if (!code && qs_infer_in(x, 1))
        code = qs_infer_number(x, 1, &k, &known);
    if (!code)
        code = qs_infer_least_rank(x, 0, 2);
    return code ? code : qs_infer_like(x, 0, 0);
}

typedef struct trilu_params {
    bool upper, has_k;
    size_t rows, height, width, bytes; /* rows of all matrices; rows of one; columns */
} trilu_params;

typedef struct trilu_job {
    const qsim_ctx *ctx;
    const trilu_params *p;
    int64_t k; /* the diagonal, in [-height, width] */
    const char *x;
    char *y;
} trilu_job;

static void trilu_rows(const void *arg, size_t begin, size_t end) {
    const trilu_job *j = arg;
    const trilu_params *p = j->p;
    const int64_t width = (int64_t)p->width;
    for (size_t r = begin; r < end; r++) {
        const char *x = j->x + r * p->width * p->bytes;
        char *y = j->y + r * p->width * p->bytes;
        int64_t edge =
            (int64_t)(r % p->height) + j->k + !p->upper; /* first column beyond the diagonal */
        edge = edge < 0 ? 0 : edge > width ? width : edge;
        const size_t first = (size_t)edge * p->bytes, rest = p->width * p->bytes - first;
        if (p->upper) {
            qs_clear(j->ctx, y, first);
            qs_copy(j->ctx, y + first, x + first, rest);
        } else {
            qs_copy(j->ctx, y, x, first);
            qs_clear(j->ctx, y + first, rest);
        }
    }
}

static void run_trilu(const qs_step *s, const qs_frame *f) {
    const trilu_params *p = s->params;
    const int64_t least = -(int64_t)p->height - 1, most = (int64_t)p->width;
    trilu_job j = {f->ctx, p, 0, qs_step_in(s, f, 0), qs_step_out(s, f, 0)};
    if (p->has_k)
        memcpy(&j.k, qs_step_in(s, f, 1), sizeof(j.k));
    j.k = j.k < least ? least : j.k > most ? most : j.k;
    if (p->width)
        qs_ranges(f->ctx, p->rows, QS_GRAIN / (p->width + 1) + 1, trilu_rows, &j);
}

QS_COLD static int lower_trilu(qs_lower *l) {
    const qs_value *x = qs_lower_in(l, 0);
    trilu_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->upper = qs_node_int(l->node, "upper", 1) != 0;
    p->has_k = qs_lower_in(l, 1) != NULL;
    p->rows = (size_t)qs_dims_product(x->dims, 0, x->rank - 1);
    p->height = (size_t)x->dims[x->rank - 2].size;
    p->width = (size_t)x->dims[x->rank - 1].size;
    p->bytes = qs_dtype_bytes(x->dtype);
    l->step->run = run_trilu;
    return QSIM_OK;
}

static const qs_attr_rule trilu_attrs[] = {{"upper", QSIM_ATTR_INT, 14, 0}};

QS_OP(trilu, .name = "Trilu", .since = 14, .min_in = 1, .max_in = 2, QS_ATTRS(trilu_attrs),
      .traits = QS_PLAIN, .setting_inputs = 1 << 1, .kernel = QS_KERNEL_TRILU, .infer = infer_trilu,
      .lower = lower_trilu);

/* ---- CenterCropPad ---- */

QS_COLD static int infer_center(qs_infer *x) {
    const qs_value *in = x->in[0];
    int64_t axes[QSIM_MAX_RANK], shape[QSIM_MAX_RANK];
    int32_t count, given;
    uint32_t mask;
    qs_dim dims[QSIM_MAX_RANK];
    int code = qs_infer_type(x, 0, QS_T_BYTES);
    if (!code)
        code = qs_infer_attr_ints(x, "axes", axes, QSIM_MAX_RANK, &count);
    if (!code)
        code = qs_infer_ints(x, 1, shape, QSIM_MAX_RANK, &given);
    if (code || in->rank < 0)
        return code ? code : qs_infer_unknown(x, in->dtype);
    const bool all = count == QS_ABSENT;
    if (all)
        for (count = 0; count < in->rank; count++)
            axes[count] = count;
    code = qs_infer_axes(x, axes, count, in->rank, &mask);
    if (!code && given >= 0 && given != count)
        code = qs_infer_fail(x, QSIM_E_SHAPE, "%d sizes for %d axes", (int)given, (int)count);
    qs_value_dims(in, dims);
    for (int32_t i = 0; i < count && !code; i++) {
        const int64_t at = axes[i] < 0 ? axes[i] + in->rank : axes[i];
        dims[at] = (qs_dim){given < 0 ? -1 : shape[i], NULL};
        if (given >= 0 && shape[i] < 0)
            code = qs_infer_fail(x, QSIM_E_VALUE, "size %lld for axis %lld", (long long)shape[i],
                                 (long long)at);
    }
    return code ? code : qs_infer_out(x, 0, in->dtype, in->rank, dims);
}

typedef struct center_params {
    int32_t rank;
    size_t bytes, all, rows,
        row; /* bytes of an element, of the output; common rows, bytes of one */
    size_t from, to, dims[QSIM_MAX_RANK];      /* first common elements; common sizes */
    size_t x[QSIM_MAX_RANK], y[QSIM_MAX_RANK]; /* strides */
} center_params;

static void run_center(const qs_step *s, const qs_frame *f) {
    const center_params *p = s->params;
    const char *x = qs_step_in(s, f, 0);
    char *y = qs_step_out(s, f, 0);
    if (p->all > p->rows * p->row)
        qs_clear(f->ctx, y, p->all);
    size_t done = 0;
    for (size_t r = 0; r < p->rows && p->row && !qs_stopped_after(f->ctx, &done, p->row); r++) {
        size_t from = p->from, to = p->to, rest = r;
        for (int32_t i = p->rank - 1; i-- > 0; rest /= p->dims[i]) {
            from += rest % p->dims[i] * p->x[i];
            to += rest % p->dims[i] * p->y[i];
        }
        qs_copy(f->ctx, y + to, x + from, p->row);
    }
}

QS_COLD static int lower_center(qs_lower *l) {
    const qs_value *x = qs_lower_in(l, 0), *y = qs_lower_out(l, 0);
    center_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->bytes = qs_dtype_bytes(x->dtype);
    p->all = qs_value_elements(y) * p->bytes;
    p->rank = x->rank;
    p->rows = 1;
    p->row = p->bytes;
    size_t xs = p->bytes, ys = xs;
    for (int32_t i = x->rank; i-- > 0;) {
        const size_t a = (size_t)x->dims[i].size, b = (size_t)y->dims[i].size;
        p->x[i] = xs;
        p->y[i] = ys;
        p->dims[i] = a < b ? a : b;
        *(i == x->rank - 1 ? &p->row : &p->rows) *= p->dims[i];
        if (a > b) /* an odd difference crops or pads one more at the end */
            p->from += (a - b) / 2 * xs;
        else
            p->to += (b - a) / 2 * ys;
        xs *= a;
        ys *= b;
    }
    l->step->run = run_center;
    return QSIM_OK;
}

static const qs_attr_rule center_attrs[] = {{"axes", QSIM_ATTR_INTS, 18, 0}};

QS_OP(center_crop_pad, .name = "CenterCropPad", .since = 18, .min_in = 2, QS_ATTRS(center_attrs),
      .traits = QS_PLAIN, .shape_inputs = 1 << 1, .kernel = QS_KERNEL_CROP, .infer = infer_center,
      .lower = lower_center);

/* ---- OneHot ---- */

QS_COLD static int infer_onehot(qs_infer *x) {
    const qs_value *in = x->in[0], *values = x->in[2];
    int64_t depth = -1;
    int32_t axis = 0;
    bool known;
    qs_dim dims[QSIM_MAX_RANK + 1];
    int code = qs_infer_type(x, 0, QS_T_ARITH);
    if (!code)
        code = qs_infer_number(x, 1, &depth, &known);
    if (!code)
        code = qs_infer_type(x, 2, QS_T_BYTES);
    if (!code && known && depth < 1)
        code = qs_infer_fail(x, QSIM_E_VALUE, "the depth is %lld", (long long)depth);
    if (!code)
        code = qs_infer_list(x, 2, 2);
    if (code || in->rank < 0)
        return code ? code : qs_infer_unknown(x, values->dtype);
    code = qs_infer_axis(x, qs_node_int(x->node, "axis", -1), in->rank + 1, &axis);
    if (code)
        return code;
    for (int32_t i = 0; i <= in->rank; i++)
        dims[i] = i == axis ? (qs_dim){known ? depth : -1, NULL} : in->dims[i - (i > axis)];
    return qs_infer_out(x, 0, values->dtype, in->rank + 1, dims);
}

typedef struct onehot_params {
    int32_t dtype; /* type of the indices */
    bool negative; /* indices count from the end */
    size_t outer, depth, inner, bytes;
} onehot_params;

static void run_onehot(const qs_step *s, const qs_frame *f) {
    const onehot_params *p = s->params;
    const void *indices = qs_step_in(s, f, 0);
    const char *values = qs_step_in(s, f, 2);
    char *y = qs_step_out(s, f, 0);
    const size_t count = p->outer * p->inner;
    for (size_t at = 0, n; (n = qs_piece(f->ctx, at, count * p->depth)); at += n)
        qs_copy_rows(values, 0, y + at * p->bytes, (ptrdiff_t)p->bytes, p->bytes, n);
    for (size_t i = 0; i < count && !qs_stopped_at(f->ctx, i); i++) {
        const int64_t given = qs_number_at(indices, p->dtype, i);
        const int64_t at = qs_index_wrap(given, (int64_t)p->depth);
        if (at < 0 || (given < 0 && !p->negative))
            continue;
        const size_t place = (i / p->inner * p->depth + (size_t)at) * p->inner + i % p->inner;
        qs_copy_element(y + place * p->bytes, values + p->bytes, p->bytes);
    }
}

QS_COLD static int lower_onehot(qs_lower *l) {
    const qs_value *x = qs_lower_in(l, 0), *y = qs_lower_out(l, 0);
    const int64_t axis = qs_node_int(l->node, "axis", -1);
    onehot_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    const int32_t at = (int32_t)(axis < 0 ? axis + y->rank : axis);
    p->dtype = x->dtype;
    p->negative = l->node->version >= 11;
    p->outer = (size_t)qs_dims_product(x->dims, 0, at);
    p->inner = (size_t)qs_dims_product(x->dims, at, x->rank);
    p->depth = (size_t)y->dims[at].size;
    p->bytes = qs_dtype_bytes(y->dtype);
    l->step->run = run_onehot;
    return QSIM_OK;
}

static const qs_attr_rule onehot_attrs[] = {{"axis", QSIM_ATTR_INT, 9, 0}};

QS_OP(one_hot, .name = "OneHot", .since = 9, .min_in = 3, QS_ATTRS(onehot_attrs),
      .traits = QS_PLAIN, .shape_inputs = 1 << 1, .setting_inputs = 1 << 0,
      .kernel = QS_KERNEL_ONE_HOT, .infer = infer_onehot, .lower = lower_onehot);
