/* SPDX-License-Identifier: MIT */
/*
 * QLinearMatMul and MatMulInteger: any rank, batches broadcast. Parameters of a may be given per
 * row, of b per column, for all batches or for each.
 */
#include "op/elementwise/factor.h"
#include "op/int8/int8_post_ops.h"
#include "op/int8/int8_op.h"

static const qs_i8_roles qlinear = QS_I8_QLINEAR, integer = QS_I8_INTEGER;

/* Checks a list's length: 1, `each` (rows or columns of a matrix), or `each` per matrix. */
static int check_list(const qs_infer *x, int32_t index, int64_t each, const qs_factor *f) {
    const qs_value *v = index < 0 ? NULL : qs_infer_in(x, index);
    const int64_t n = v && v->rank >= 0 ? qs_dims_product(v->dims, 0, v->rank) : -1;
    const int64_t matrices = qs_dims_product(f->dims, 0, f->rank - 2);
    const bool fits = each < 0 || matrices < 0 || n == each * matrices;
    return fits ? QSIM_OK : qs_infer_each(x, index, each);
}

static int check_lists(const qs_infer *x, const qs_i8_roles *r, const qs_factor *a,
                       const qs_factor *b) {
    int code = check_list(x, r->x_scale, a->rows, a);
    if (!code)
        code = check_list(x, r->x_zp, a->rows, a);
    if (!code)
        code = check_list(x, r->w_scale, b->cols, b);
    if (!code)
        code = check_list(x, r->w_zp, b->cols, b);
    if (!code && r->bias >= 0)
        code = qs_infer_count(x, r->bias, b->cols);
    return code;
}

/* The right factor; with "transB" (the internal QLinearMatMul) the weights are its transpose. */
static qs_value right_of(const qs_node *n, const qs_value *v, qs_dim transposed[2]) {
    qs_value b = *v;
    if (v->rank != 2 || !qs_node_int(n, "transB", 0))
        return b;
    transposed[0] = v->dims[1];
    transposed[1] = v->dims[0];
    b.dims = transposed;
    return b;
}

static int infer(const qs_infer *x, const qs_i8_roles *r) {
    const qs_value *va = qs_infer_in(x, r->x);
    int code = qs_i8_check(x, r, -1, true);
    if (code)
        return code;
    qs_dim transposed[2];
    const qs_value right = right_of(x->node, qs_infer_in(x, r->w), transposed), *vb = &right;
    code = qs_infer_product(x, va, vb, qs_i8_out_type(x, r));
    if (code || va->rank < 0 || vb->rank < 0)
        return code;
    const qs_factor a = qs_factor_of(va, false), b = qs_factor_of(vb, true);
    return check_lists(x, r, &a, &b);
}

static int infer_qlinear(qs_infer *x) {
    return infer(x, &qlinear);
}

static int infer_internal(qs_infer *x) {
    int code = infer_qlinear(x);
    return code ? code : qs_i8_infer_post_ops(x);
}

static int infer_integer(qs_infer *x) {
    return infer(x, &integer);
}

static bool shape_of(const qs_node *n, const qs_value *v, qs_i8_shape *s) {
    qs_dim transposed[2];
    const qs_value right = right_of(n, v, transposed);
    qs_factor b = qs_factor_of(&right, true);
    if (b.rows > INT32_MAX || b.cols > INT32_MAX)
        return false;
    memset(s, 0, sizeof(*s));
    s->w = (qs_conv_i8_weights){.groups = 1,
                                .n = (int32_t)b.cols,
                                .kh = 1,
                                .kw = 1,
                                .c = (int32_t)b.rows,
                                .contiguous = true};
    s->source = (qk_source_i8){.n = s->w.n, .kh = 1, .kw = 1, .c = s->w.c, .sn = 1, .sc = b.cols};
    if (right.dims == transposed) {
        s->source.sn = b.rows;
        s->source.sc = 1;
    }
    s->matrices = qs_dims_product(b.dims, 0, b.rank - 2);
    return true;
}

static int pack(qs_pack *p, const qs_i8_roles *r) {
    qs_i8_shape shape;
    if (!qs_pack_const(p, r->w))
        return QSIM_OK;
    if (!shape_of(p->node, &p->graph->values[p->node->inputs[r->w]], &shape))
        return qs_node_fail(p->error, QSIM_E_LIMIT, p->model, p->node, "the weights are too large");
    return qs_i8_pack(p, r, &shape);
}

static int pack_qlinear(qs_pack *p) {
    return pack(p, &qlinear);
}

static int pack_integer(qs_pack *p) {
    return pack(p, &integer);
}

/* Lists the two matrices that each batch multiplies. */
static int make_batches(qs_lower *l, qs_infer *x, const qs_factor *a, const qs_factor *b,
                        qs_i8_plan *p) {
    qs_dim dims[QSIM_MAX_RANK];
    int32_t rank = 0;
    int code = qs_infer_batches(x, a, b, &rank, dims);
    if (code)
        return code;
    p->batches = qs_dims_product(dims, 0, rank);
    size_t count = p->batches > 0 ? (size_t)p->batches : 0;
    int64_t *list = qs_arena_alloc(l->arena, 2 * count + 1, sizeof(*list));
    if (!list)
        return qs_infer_fail(x, QSIM_E_NOMEM, "out of memory");
    for (size_t i = 0; i < count; i++) {
        list[i] = (int64_t)qs_factor_matrix(a, dims, rank, i);
        list[count + i] = (int64_t)qs_factor_matrix(b, dims, rank, i);
    }
    p->x_matrix = list;
    p->w_matrix = list + count;
    return QSIM_OK;
}

/* Whether all rows of a form one product: b is one matrix, and a has one scale and zero point. */
static bool one_product(const qs_lower *l, const qs_i8_roles *r, const qs_i8_shape *s) {
    const int32_t rows[] = {r->x_scale, r->x_zp};
    for (size_t i = 0; i < QS_COUNT(rows); i++) {
        const qs_value *v = rows[i] < 0 ? NULL : qs_lower_in(l, rows[i]);
        if (v && qs_value_elements(v) != 1)
            return false;
    }
    return s->matrices == 1;
}

/* Completes a plan that the caller has zeroed. */
QS_COLD static int lower_roles(qs_lower *l, const qs_i8_roles *r, qs_i8_plan *p) {
    qs_dim transposed[2];
    const qs_value *va = qs_lower_in(l, r->x), *vb = qs_lower_in(l, r->w);
    const qs_value right = right_of(l->node, vb, transposed);
    qs_factor a = qs_factor_of(va, false), b = qs_factor_of(&right, true);
    qs_infer x;
    qs_lower_infer(l, &x);
    p->roles = r;
    p->batches = 1;
    int64_t rows = a.rows, batches = qs_dims_product(a.dims, 0, a.rank - 2);
    if (!shape_of(l->node, vb, &p->shape) || batches < 0)
        return qs_infer_fail(&x, QSIM_E_LIMIT, "a matrix product is too large");
    if (one_product(l, r, &p->shape)) {
        if (!qs_mul64(rows, batches, &rows))
            rows = INT64_MAX;
    } else {
        int code = make_batches(l, &x, &a, &b, p);
        if (code)
            return code;
    }
    if (rows > INT32_MAX)
        return qs_infer_fail(&x, QSIM_E_LIMIT, "a matrix product has %lld rows", (long long)rows);
    p->x_bytes = rows * a.cols;
    p->y_elements = rows * b.cols;
    const qs_conv_i8 conv = p->conv;
    p->conv = qs_i8_rows((int32_t)rows);
    p->conv.after = conv.after;
    p->conv.after_in_place = conv.after_in_place;
    return qs_i8_lower(l, p);
}

static int lower_qlinear(qs_lower *l) {
    qs_i8_post_ops *b = qs_lower_params(l, sizeof(*b));
    if (!b)
        return QSIM_E_NOMEM;
    qs_i8_plan_post_ops(l, b);
    int code = lower_roles(l, &qlinear, &b->product);
    return code ? code : qs_i8_lower_post_ops(l, b);
}

int qs_matmulinteger_lower(qs_lower *l, const qs_i8_floats *how) {
    qs_i8_plan *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->floats = *how;
    return lower_roles(l, &integer, p);
}

static int lower_integer(qs_lower *l) {
    return qs_matmulinteger_lower(l, &(qs_i8_floats){0});
}

static const qs_attr_rule internal_attrs[] = {
    {"lo", QSIM_ATTR_INT, 0, 0},
    {"hi", QSIM_ATTR_INT, 0, 0},
    {"transB", QSIM_ATTR_INT, 0, 0},
    QS_I8_POST_OPS_ATTRS,
};

QS_OP(qlinearmatmul, .name = "QLinearMatMul", .since = 10, .min_in = 8,
      .traits = QS_MULTIPLIES | QS_INTEGER, .weight_inputs = 1 << 3,
      QS_MORE(QS_OPERANDS(.x = {{0, 1, 2}}, .w = {3, 4, 5}, .y = {0, 6, 7}, .prefix = 7),
              .pack = pack_qlinear),
      .macs = QS_MACS_PRODUCT, .kernel = QS_KERNEL_GEMM_INT8, .infer = infer_qlinear,
      .lower = lower_qlinear);

QS_OP(qsim_qlinearmatmul, .domain = QS_DOMAIN_QSIM, .name = "QLinearMatMul", .min_in = 8,
      .max_in = QS_I8_INPUTS, QS_ATTRS(internal_attrs), .traits = QS_MULTIPLIES | QS_INTEGER,
      .weight_inputs = 1 << 3,
      QS_MORE(QS_OPERANDS(.x = {{0, 1, 2}}, .w = {3, 4, 5}, .y = {0, 6, 7}), .pack = pack_qlinear),
      .macs = QS_MACS_PRODUCT, .kernel = QS_KERNEL_GEMM_INT8, .infer = infer_internal,
      .lower = lower_qlinear);

QS_OP(matmulinteger, .name = "MatMulInteger", .since = 10, .min_in = 2, .max_in = 4,
      .traits = QS_MULTIPLIES | QS_INTEGER, .weight_inputs = 1 << 1,
      QS_MORE(QS_OPERANDS(.x = {{0, QS_NO_SCALE, 2}}, .w = {1, QS_NO_SCALE, 3}),
              .pack = pack_integer),
      .macs = QS_MACS_PRODUCT, .kernel = QS_KERNEL_GEMM_INT8, .infer = infer_integer,
      .lower = lower_integer);

QS_OP(qsim_matmulinteger, .domain = QS_DOMAIN_QSIM, .name = "MatMulInteger", .min_in = 2,
      .max_in = 4, .traits = QS_MULTIPLIES | QS_INTEGER, .weight_inputs = 1 << 1,
      QS_MORE(QS_OPERANDS(.x = {{0, QS_NO_SCALE, 2}}, .w = {1, QS_NO_SCALE, 3}),
              .pack = pack_integer),
      .macs = QS_MACS_PRODUCT, .kernel = QS_KERNEL_GEMM_INT8, .infer = infer_integer,
      .lower = lower_integer);
