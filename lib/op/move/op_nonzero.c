/* SPDX-License-Identifier: MIT */
/* NonZero and Compress: values select elements, so sizes are known only after the step. */
#include "op/rules.h"

#define FLOATS (QS_T_REAL | QS_T(QSIM_FLOAT16) | QS_T(QSIM_BFLOAT16))

/* Whether an element is not zero; -0 is zero. */
static bool is_set(const uint8_t *p, size_t bytes, bool is_float) {
    uint64_t bits = 0;
    memcpy(&bits, p, bytes);
    if (is_float)
        bits &= ~((uint64_t)1 << (bytes * 8 - 1));
    return bits != 0;
}

static int64_t elements_or_unknown(const qs_value *v) {
    return qs_dims_product(v->dims, 0, v->rank);
}

/* ---- NonZero ---- */

static int infer_nonzero(qs_infer *x) {
    const qs_value *v = x->in[0];
    int code = qs_infer_type(x, 0, QS_T_BYTES);
    if (code || v->rank < 0)
        return code ? code : qs_infer_out(x, 0, QSIM_INT64, 2, (qs_dim[]){{-1, NULL}, {-1, NULL}});
    const qs_dim dims[2] = {{v->rank ? v->rank : 1, NULL},
                            {x->bounds ? elements_or_unknown(v) : -1, NULL}};
    return qs_infer_out(x, 0, QSIM_INT64, 2, dims);
}

typedef struct nonzero_params {
    int32_t rank;
    size_t rows, row, element; /* a row runs along the last axis */
    bool is_float;
    int64_t dims[QSIM_MAX_RANK];
} nonzero_params;

static bool is_set_at(const nonzero_params *p, const uint8_t *x, size_t i) {
    return p->element == 1 ? x[i] != 0 : is_set(x + i * p->element, p->element, p->is_float);
}

static size_t count_set(const nonzero_params *p, const uint8_t *x, size_t n) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += is_set_at(p, x, i);
    return count;
}

/*
 * Writes the indices of the elements from..to of a row that are not zero, and returns the column of
 * y after them. at: index of the row along each axis but the last; y has rows of `count`.
 */
static int64_t *write_row(const nonzero_params *p, const uint8_t *x, size_t from, size_t to,
                          const int64_t *at, int64_t *y, size_t count) {
    for (size_t i = from; i < to; i++) {
        if (!is_set_at(p, x, i))
            continue;
        int64_t *column = y++;
        for (int32_t axis = 0; axis + 1 < p->rank; axis++, column += count)
            *column = at[axis];
        *column = (int64_t)i;
    }
    return y;
}

static void write_indices(const qs_frame *f, const nonzero_params *p, const uint8_t *x, int64_t *y,
                          size_t count) {
    int64_t at[QSIM_MAX_RANK] = {0};
    size_t done = 0;
    for (size_t row = 0; row < p->rows; row++, x += p->row * p->element) {
        for (size_t i = 0; i < p->row; i += QS_PIECE) {
            const size_t n = p->row - i < QS_PIECE ? p->row - i : QS_PIECE;
            if (qs_stopped_after(f->ctx, &done, n * p->element))
                return;
            y = write_row(p, x, i, i + n, at, y, count);
        }
        for (int32_t axis = p->rank - 1; axis-- > 0 && ++at[axis] == p->dims[axis];)
            at[axis] = 0;
    }
}

static void run_nonzero(const qs_step *s, const qs_frame *f) {
    const nonzero_params *p = s->params;
    const uint8_t *x = qs_step_in(s, f, 0);
    const size_t elements = p->rows * p->row;
    size_t count = 0;
    for (size_t i = 0, n; (n = qs_piece(f->ctx, i, elements)); i += n)
        count += count_set(p, x + i * p->element, n);
    if (qs_stopped(f->ctx))
        return;
    write_indices(f, p, x, qs_step_out(s, f, 0), count);
    f->sizes[0][1] = (int64_t)count;
}

static int lower_nonzero(qs_lower *l) {
    const qs_value *x = qs_lower_in(l, 0);
    nonzero_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->rank = x->rank;
    p->row = x->rank ? (size_t)x->dims[x->rank - 1].size : 1;
    p->rows = p->row ? qs_value_elements(x) / p->row : 0;
    p->element = qs_dtype_bytes(x->dtype);
    p->is_float = (FLOATS & QS_T(x->dtype)) != 0;
    for (int32_t i = 0; i < x->rank; i++)
        p->dims[i] = x->dims[i].size;
    l->step->run = run_nonzero;
    return QSIM_OK;
}

QS_OP(nonzero, .name = "NonZero", .since = 9, .min_in = 1, .traits = QS_BOUNDS,
      .kernel = QS_KERNEL_NONZERO, .infer = infer_nonzero, .lower = lower_nonzero);

/* ---- Compress ---- */

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int infer_compress(qs_infer *x) {
    const qs_value *v = x->in[0], *c = x->in[1];
    const qs_attr *axis = qs_node_attr(x->node, "axis");
    qs_dim dims[QSIM_MAX_RANK];
    int32_t at = 0;
    int code = qs_infer_type(x, 0, QS_T_BYTES);
    if (!code)
        code = qs_infer_type(x, 1, QS_T(QSIM_BOOL));
    if (!code)
        code = qs_infer_rank(x, 1, 1);
    if (code || v->rank < 0)
        return code ? code : qs_infer_out(x, 0, v->dtype, axis ? -1 : 1, &(qs_dim){-1, NULL});
    const bool known = x->bounds && c->rank == 1;
    if (!axis) {
        dims[0] = (qs_dim){known ? smaller(elements_or_unknown(v), c->dims[0].size) : -1, NULL};
        return qs_infer_out(x, 0, v->dtype, 1, dims);
    }
    code = qs_infer_axis(x, axis->u.i, v->rank, &at);
    if (code)
        return code;
    qs_value_dims(v, dims);
    dims[at] = (qs_dim){known ? smaller(v->dims[at].size, c->dims[0].size) : -1, NULL};
    return qs_infer_out(x, 0, v->dtype, v->rank, dims);
}

typedef struct compress_params {
    int32_t axis; /* axis of the result */
    size_t rows, picks, length,
        bytes; /* picks: conditions; a row has `length` entries of `bytes` */
} compress_params;

static void run_compress(const qs_step *s, const qs_frame *f) {
    const compress_params *p = s->params;
    const uint8_t *x = qs_step_in(s, f, 0), *condition = qs_step_in(s, f, 1);
    uint8_t *y = qs_step_out(s, f, 0);
    int64_t count = 0;
    for (size_t i = 0; i < p->picks; i++) {
        if (qs_stopped_at(f->ctx, i))
            return;
        count += condition[i] != 0;
    }
    size_t done = 0;
    for (size_t row = 0; row < p->rows; row++, x += p->length * p->bytes)
        for (size_t i = 0; i < p->picks && !qs_stopped_after(f->ctx, &done, p->bytes); i++)
            if (condition[i]) {
                qs_copy(f->ctx, y, x + i * p->bytes, p->bytes);
                y += p->bytes;
            }
    f->sizes[0][p->axis] = count;
}

static int lower_compress(qs_lower *l) {
    const qs_value *x = qs_lower_in(l, 0), *c = qs_lower_in(l, 1), *y = qs_lower_out(l, 0);
    const qs_attr *axis = qs_node_attr(l->node, "axis");
    compress_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    l->step->run = run_compress;
    p->rows = 1;
    p->length = qs_value_elements(x);
    p->bytes = qs_dtype_bytes(x->dtype);
    if (axis) {
        p->axis = (int32_t)(axis->u.i < 0 ? axis->u.i + x->rank : axis->u.i);
        p->length = (size_t)x->dims[p->axis].size;
        for (int32_t i = 0; i < x->rank; i++)
            *(i < p->axis ? &p->rows : &p->bytes) *= i == p->axis ? 1 : (size_t)x->dims[i].size;
    }
    p->picks = (size_t)y->dims[p->axis].size;
    if (p->picks > (size_t)c->dims[0].size)
        p->picks = (size_t)c->dims[0].size;
    return QSIM_OK;
}

static const qs_attr_rule axis_attrs[] = {{"axis", QSIM_ATTR_INT, 1, 0}};

QS_OP(compress, .name = "Compress", .since = 9, .min_in = 2, QS_ATTRS(axis_attrs),
      .traits = QS_BOUNDS, .setting_inputs = 1 << 1, .kernel = QS_KERNEL_COMPRESS,
      .infer = infer_compress, .lower = lower_compress);
