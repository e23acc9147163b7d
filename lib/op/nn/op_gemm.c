/* SPDX-License-Identifier: MIT */
/* Gemm and MatMul on floats; on doubles and integers they are expanded into Einsum. */
#include <assert.h>

#include "op/elementwise/factor.h"
#include "op/expand.h"
#include "op/nn/product.h"

#define QS_T_FACTOR                                                                                \
    (QS_T_REAL | QS_T(QSIM_INT32) | QS_T(QSIM_INT64) | QS_T(QSIM_UINT32) | QS_T(QSIM_UINT64))

static int check_types(const qs_infer *x, int32_t count) {
    const bool own = x->node->domain[0] != 0;
    const int32_t dtype = x->in[0]->dtype;
    int code = QSIM_OK;
    for (int32_t i = 0; i < count && !code; i++) {
        const int32_t other = x->in[i] ? x->in[i]->dtype : 0;
        code = qs_infer_type(x, i, own ? QS_T_FLOAT : QS_T_FACTOR);
        if (!code && other && dtype && other != dtype)
            code = qs_infer_same_type(x, 0, i);
    }
    assert(x->in[0] && x->in[1]); /* operators here need two inputs */
    const bool ranked = x->in[0]->rank >= 0 && x->in[1]->rank >= 0;
    if (!code && dtype && dtype != QSIM_FLOAT && !ranked)
        return qs_infer_fail(x, QSIM_E_UNSUPPORTED, "ranks of %s factors must be in the file",
                             qsim_dtype_name(dtype));
    return code;
}

/* Other types than float are expanded, not lowered. */
static int check_lowered(const qs_lower *l) {
    qs_infer x;
    qs_lower_infer(l, &x);
    return x.in[0]->dtype == QSIM_FLOAT
               ? QSIM_OK
               : qs_infer_fail(&x, QSIM_E_UNSUPPORTED,
                               "the type of its factors must be in the file");
}

static qs_id einsum(qs_expand *e, const char *equation) {
    const qs_attr a = {.name = "equation",
                       .type = QSIM_ATTR_STRING,
                       .u.s = {(const uint8_t *)equation, strlen(equation)}};
    const qs_id y = qs_expand_two(e, "Einsum", qs_expand_in(e, 0), qs_expand_in(e, 1));
    qs_expand_attr(e, y, &a);
    return y;
}

static bool differ(const qs_dim *a, const qs_dim *b) {
    return a->size >= 0 && b->size >= 0 && a->size != b->size;
}

/* ---- Gemm ---- */

/* The addend has to broadcast to the output, never the other way round. */
static int check_addend(const qs_infer *x, const qs_value *c, const qs_dim *out) {
    if (!c || c->rank < 0)
        return QSIM_OK;
    bool fits = c->rank <= 2;
    for (int32_t i = 0; i < c->rank && fits; i++) {
        const qs_dim *d = &c->dims[i];
        fits = d->size == 1 || !differ(d, &out[i + 2 - c->rank]);
    }
    if (!fits)
        return qs_infer_fail(x, QSIM_E_SHAPE, "input 2 does not broadcast to %lld x %lld",
                             (long long)out[0].size, (long long)out[1].size);
    return QSIM_OK;
}

static int infer_gemm(qs_infer *x) {
    const qs_value *a = x->in[0], *b = x->in[1];
    int code = check_types(x, 3);
    for (int32_t i = 0; i < 2 && !code; i++)
        code = qs_infer_rank(x, i, 2);
    if (code || a->rank < 0 || b->rank < 0)
        return code ? code : qs_infer_unknown(x, a->dtype);
    const bool ta = qs_node_int(x->node, "transA", 0) != 0;
    const bool tb = qs_node_int(x->node, "transB", 0) != 0;
    const bool plain = qs_node_float(x->node, "alpha", 1.0f) == 1.0f &&
                       qs_node_float(x->node, "beta", 1.0f) == 1.0f;
    if (!plain && !(QS_T(a->dtype) & QS_T_REAL) && a->dtype)
        return qs_infer_fail(x, QSIM_E_UNSUPPORTED, "alpha and beta of integers must be 1");
    if (differ(&a->dims[!ta], &b->dims[tb]))
        return qs_infer_fail(x, QSIM_E_SHAPE, "the factors meet with %lld and %lld elements",
                             (long long)a->dims[!ta].size, (long long)b->dims[tb].size);
    const qs_dim out[2] = {a->dims[ta], b->dims[!tb]};
    code = check_addend(x, x->in[2], out);
    return code ? code : qs_infer_out(x, 0, a->dtype, 2, out);
}

static qs_right gemm_right(const qs_node *n, const qs_value *b) {
    const bool t = qs_node_int(n, "transB", 0) != 0;
    const size_t rows = (size_t)b->dims[0].size, cols = (size_t)b->dims[1].size;
    qs_right r = {rows, cols, 1, (ptrdiff_t)cols, 1};
    if (t)
        r = (qs_right){cols, rows, 1, 1, (ptrdiff_t)cols};
    return r;
}

static int pack_gemm(qs_pack *p) {
    const void *data = qs_pack_bytes(p, 1);
    if (!data || p->graph->values[p->node->inputs[1]].dtype != QSIM_FLOAT)
        return QSIM_OK;
    const qs_right right = gemm_right(p->node, &p->graph->values[p->node->inputs[1]]);
    return qs_product_pack(p, &right, data);
}

static int lower_gemm(qs_lower *l) {
    const qs_value *a = qs_lower_in(l, 0), *c = qs_lower_in(l, 2);
    const int code = check_lowered(l);
    if (code)
        return code;
    qs_product *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->right = gemm_right(l->node, qs_lower_in(l, 1));
    p->transposed = qs_node_int(l->node, "transA", 0) != 0;
    p->batches = 1;
    p->m = (size_t)a->dims[p->transposed].size;
    p->alpha = qs_node_float(l->node, "alpha", 1.0f);
    p->beta = qs_node_float(l->node, "beta", 1.0f);
    p->addend_input = c ? 2 : -1;
    if (c && c->rank > 0) {
        const int64_t cols = c->dims[c->rank - 1].size;
        p->addend_col = cols != 1;
        p->addend_row = c->rank == 2 && c->dims[0].size != 1 ? (ptrdiff_t)cols : 0;
    }
    return qs_product_lower(l, p);
}

/* Before opset 7 broadcasting needed an attribute; later it is always on. */
static int upgrade_gemm(qs_graph *g, qs_id node, int32_t to, qsim_error *error) {
    (void)error;
    if (to >= 7)
        qs_node_drop_attr(g, node, "broadcast");
    return QSIM_OK;
}

/* Multiplies x by the attribute `name`, alpha or beta. */
static qs_id scaled(qs_expand *e, qs_id x, const char *name, int32_t dtype) {
    const float by = qs_node_float(&e->graph->nodes[e->node_id], name, 1.0f);
    if (by == 1.0f)
        return x;
    return qs_expand_two(e, "Mul", x, qs_expand_number(e, dtype, (double)by));
}

QS_COLD static void expand_gemm(qs_expand *e) {
    static const char *const equations[2][2] = {{"mk,kn->mn", "mk,nk->mn"},
                                                {"km,kn->mn", "km,nk->mn"}};
    const int32_t dtype = qs_expand_value(e, 0)->dtype;
    const qs_id c = qs_expand_in(e, 2);
    if (dtype == QSIM_FLOAT || !dtype)
        return;
    const bool ta = qs_node_int(e->node, "transA", 0) != 0;
    const bool tb = qs_node_int(e->node, "transB", 0) != 0;
    e->out[0] = scaled(e, einsum(e, equations[ta][tb]), "alpha", dtype);
    if (c != QS_NONE)
        e->out[0] = qs_expand_two(e, "Add", e->out[0], scaled(e, c, "beta", dtype));
}

/* ---- MatMul ---- */

QS_COLD static void expand_matmul(qs_expand *e) {
    const qs_value *a = qs_expand_value(e, 0), *b = qs_expand_value(e, 1);
    if (a->dtype == QSIM_FLOAT || !a->dtype)
        return;
    e->out[0] = einsum(e, a->rank == 1   ? (b->rank == 1 ? "k,k->" : "k,...kn->...n")
                          : b->rank == 1 ? "...mk,k->...m"
                                         : "...mk,...kn->...mn");
}

static int infer_matmul(qs_infer *x) {
    int code = check_types(x, 2);
    return code ? code : qs_infer_product(x, x->in[0], x->in[1], x->in[0]->dtype);
}

static qs_right matmul_right(const qs_value *v) {
    const qs_factor b = qs_factor_of(v, true);
    const size_t k = (size_t)b.rows, n = (size_t)b.cols;
    const size_t count = (size_t)qs_dims_product(b.dims, 0, b.rank - 2);
    return (qs_right){k, n, count, (ptrdiff_t)n, 1};
}

static int pack_matmul(qs_pack *p) {
    const void *data = qs_pack_bytes(p, 1);
    if (!data || p->graph->values[p->node->inputs[1]].dtype != QSIM_FLOAT)
        return QSIM_OK;
    const qs_right right = matmul_right(&p->graph->values[p->node->inputs[1]]);
    return qs_product_pack(p, &right, data);
}

static int matmul_batches(qs_lower *l, qs_product *p, const qs_factor *a, const qs_factor *b,
                          const qs_dim *dims, int32_t rank) {
    p->batches = (size_t)qs_dims_product(dims, 0, rank);
    if (p->right.count == 1) { /* B is one matrix: all rows of A form one product */
        p->m *= p->batches;
        p->batches = 1;
        return QSIM_OK;
    }
    size_t *at = qs_arena_alloc(l->arena, p->batches, 2 * sizeof(*at));
    if (!at)
        return qs_fail(l->error, QSIM_E_NOMEM, "out of memory");
    p->a = at;
    p->b = at + p->batches;
    for (size_t i = 0; i < p->batches; i++) {
        at[i] = qs_factor_matrix(a, dims, rank, i) * p->m * p->right.k;
        at[p->batches + i] = qs_factor_matrix(b, dims, rank, i);
    }
    return QSIM_OK;
}

static int lower_matmul(qs_lower *l) {
    const qs_factor a = qs_factor_of(qs_lower_in(l, 0), false),
                    b = qs_factor_of(qs_lower_in(l, 1), true);
    qs_dim dims[QSIM_MAX_RANK];
    int32_t rank = 0;
    qs_infer x;
    qs_lower_infer(l, &x);
    int code = check_lowered(l);
    code = code ? code : qs_infer_batches(&x, &a, &b, &rank, dims);
    if (code)
        return code;
    qs_product *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->right = matmul_right(qs_lower_in(l, 1));
    p->m = (size_t)a.rows;
    p->alpha = 1.0f;
    p->beta = 1.0f;
    p->addend_input = -1;
    if (qs_value_elements(qs_lower_out(l, 0)) != 0)
        code = matmul_batches(l, p, &a, &b, dims, rank);
    return code ? code : qs_product_lower(l, p);
}

/* ---- rows ---- */

static const qs_attr_rule gemm_attrs[] = {
    {"alpha", QSIM_ATTR_FLOAT, 1, 0},   {"beta", QSIM_ATTR_FLOAT, 1, 0},
    {"transA", QSIM_ATTR_INT, 1, 0},    {"transB", QSIM_ATTR_INT, 1, 0},
    {"broadcast", QSIM_ATTR_INT, 1, 6},
};

static const qs_attr_rule internal_attrs[] = {
    {"lo", QSIM_ATTR_FLOAT, 0, 0},    {"hi", QSIM_ATTR_FLOAT, 0, 0}, /* MatMul has only these */
    {"alpha", QSIM_ATTR_FLOAT, 0, 0}, {"beta", QSIM_ATTR_FLOAT, 0, 0},
    {"transA", QSIM_ATTR_INT, 0, 0},  {"transB", QSIM_ATTR_INT, 0, 0},
};

QS_OP(gemm, .name = "Gemm", .min_in = 3,
      QS_MORE(QS_HISTORY(.later = {{11, 2, 3, 1}}, .upgrade = upgrade_gemm), .pack = pack_gemm),
      QS_ATTRS(gemm_attrs), .traits = QS_MULTIPLIES | QS_TAKES_BOUNDS, .weight_axis = 1,
      .weight_inputs = 1 << 1, .macs = QS_MACS_PRODUCT, .kind = QS_KIND_WEIGHTS,
      .kernel = QS_KERNEL_GEMM, .infer = infer_gemm, .lower = lower_gemm, .expand = expand_gemm);
QS_OP(qsim_gemm, .domain = QS_DOMAIN_QSIM, .name = "Gemm", .min_in = 2, .max_in = 3,
      QS_ATTRS(internal_attrs), .traits = QS_MULTIPLIES, .weight_inputs = 1 << 1,
      .macs = QS_MACS_PRODUCT, .kernel = QS_KERNEL_GEMM, .infer = infer_gemm,
      QS_MORE(.pack = pack_gemm), .lower = lower_gemm);

QS_OP(matmul, .name = "MatMul", .min_in = 2, .traits = QS_MULTIPLIES | QS_TAKES_BOUNDS,
      .weight_axis = -1, .weight_inputs = 1 << 1, .macs = QS_MACS_PRODUCT, .kind = QS_KIND_WEIGHTS,
      .kernel = QS_KERNEL_GEMM, .infer = infer_matmul, QS_MORE(.pack = pack_matmul),
      .lower = lower_matmul, .expand = expand_matmul);
QS_OP(qsim_matmul, .domain = QS_DOMAIN_QSIM, .name = "MatMul", .min_in = 2, .attrs = internal_attrs,
      .attr_count = 2, .traits = QS_MULTIPLIES, .weight_inputs = 1 << 1, .macs = QS_MACS_PRODUCT,
      .kernel = QS_KERNEL_GEMM, .infer = infer_matmul, QS_MORE(.pack = pack_matmul),
      .lower = lower_matmul);
