/* SPDX-License-Identifier: MIT */
/*
 * ScatterElements, Scatter and ScatterND: copy the data, then apply updates at the indices in
 * order; without a reduction, the last of several updates at one index remains.
 */
#include "op/elementwise/dense.h"
#include "op/move/index.h"

/* y[i] = y[i] op u[i]. Of floats, which are often updated one by one; other types are dense. */
typedef void (*update_fn)(float *y, const float *u, size_t n);

#define UPDATE(name, expression)                                                                   \
    static void name(float *y, const float *u, size_t n) {                                         \
        for (size_t i = 0; i < n; i++) {                                                           \
            const float a = y[i], b = u[i];                                                        \
            y[i] = expression;                                                                     \
        }                                                                                          \
    }
/* NaN on either side gives NaN. */
UPDATE(add, a + b)
UPDATE(multiply, (a)*b)
UPDATE(greatest, a != a || a > b ? a : b)
UPDATE(least, a != a || a < b ? a : b)

typedef struct by_type {
    update_fn floats;
    const qs_dense_fns *others;
} by_type;

/* As the words of the attribute, without the first one, "none". */
static const by_type by_word[] = {{add, &qs_dense_plus},
                                  {multiply, &qs_dense_times},
                                  {greatest, &qs_dense_greatest},
                                  {least, &qs_dense_least}};

/* ONNX has max and min since 18; torch writes them into files of 16, and ONNX Runtime takes them.
 */
static const char *reductions(const qs_node *n) {
    return n->version >= 16 ? "none|add|mul|max|min" : "none";
}

/* Checks the types of data and updates; the output has type and shape of the data. */
QS_COLD static int infer_updated(qs_infer *x, uint32_t index_types) {
    int32_t reduction;
    int code = qs_infer_word(x, "reduction", reductions(x->node), &reduction);
    if (!code)
        code = qs_infer_type(x, 0, reduction ? QS_T_ARITH : QS_T_BYTES);
    if (!code)
        code = qs_infer_type(x, 1, index_types);
    if (!code)
        code = qs_infer_same_type(x, 0, 2);
    return code ? code : qs_infer_like(x, 0, 0);
}

static int wrong_updates(const qs_infer *x) {
    return qs_infer_fail(x, QSIM_E_SHAPE, "the shape of the updates does not fit the indices");
}

static bool differ(qs_dim a, qs_dim b) {
    return a.size >= 0 && b.size >= 0 && a.size != b.size;
}

#define CANCEL_INTERVAL ((size_t)1 << 22)

static void start(const qs_step *s, const qs_frame *f, size_t bytes) {
    char *y = qs_step_out(s, f, 0);
    const char *x = qs_step_in(s, f, 0);
    if (x != y)
        qs_copy(f->ctx, y, x, bytes);
}

/* ---- ScatterElements ---- */

QS_COLD static int infer_scatter_elements(qs_infer *x) {
    const qs_value *in = x->in[0], *indices = x->in[1], *updates = x->in[2];
    int32_t axis = 0;
    int code = infer_updated(x, QS_T_INDEX);
    if (code || in->rank < 0)
        return code;
    code = qs_infer_axis(x, qs_node_int(x->node, "axis", 0), in->rank, &axis);
    if (!code)
        code = qs_infer_rank(x, 1, in->rank);
    if (code || indices->rank < 0)
        return code;
    if (updates->rank >= 0 && updates->rank != indices->rank)
        return wrong_updates(x);
    for (int32_t i = 0; i < in->rank; i++) {
        const int64_t a = in->dims[i].size, b = indices->dims[i].size;
        if (i != axis && a >= 0 && b > a)
            return qs_infer_fail(x, QSIM_E_SHAPE, "axis %d: %lld indices for a size of %lld",
                                 (int)i, (long long)b, (long long)a);
        if (updates->rank >= 0 && differ(indices->dims[i], updates->dims[i]))
            return wrong_updates(x);
    }
    return qs_infer_indices(x, 1, in->dims[axis].size);
}

typedef struct scatter_params {
    bool updates; /* by `floats` or else `other`; false: updates replace elements */
    update_fn floats;
    qs_dense other;
    size_t bytes, all; /* bytes of an element, of the data */
    /* for ScatterElements */
    int32_t rank, axis;
    bool wide;
    int64_t size; /* the data's size of the axis */
    size_t count, dims[QSIM_MAX_RANK], steps[QSIM_MAX_RANK];
} scatter_params;

/* Most updates between two checks for a stop. */
#define MOST_ALIKE ((size_t)1 << 15)

static void update(const scatter_params *p, char *y, const char *u, size_t n) {
    if (p->floats)
        p->floats((float *)(void *)y, (const float *)(const void *)u, n);
    else
        qs_dense_run(&p->other, y, 1, u, 1, y, n);
}

static void scatter(const scatter_params *p, char *y, const char *u, size_t n) {
    if (p->updates)
        update(p, y, u, n);
    else
        qs_copy_element(y, u, n * p->bytes);
}

/*
 * How many indices from k on are the same, in a row of the last axis: an index that was expanded
 * along it. Their updates are done together.
 */
static size_t alike(const scatter_params *p, const char *indices, size_t k) {
    const size_t n = p->dims[p->rank - 1], bytes = p->wide ? 8 : 4;
    const bool rows = p->axis < p->rank - 1 && n <= MOST_ALIKE;
    indices += k * bytes;
    return rows && memcmp(indices, indices + bytes, (n - 1) * bytes) == 0 ? n : 1;
}

static void run_scatter_elements(const qs_step *s, const qs_frame *f) {
    const scatter_params *p = s->params;
    const void *indices = qs_step_in(s, f, 1);
    const char *updates = qs_step_in(s, f, 2);
    char *y = qs_step_out(s, f, 0);
    size_t at[QSIM_MAX_RANK] = {0}, base = 0; /* base: offset without the axis */
    start(s, f, p->all);
    for (size_t k = 0, n = 1, done = 0;
         k < p->count && !qs_stopped_after(f->ctx, &done, n * p->bytes); k += n) {
        const int64_t index = qs_index_wrap(qs_index_at(indices, p->wide, k), p->size);
        const int32_t last = p->rank - 1;
        if (index < 0) {
            qs_index_outside(f, qs_index_at(indices, p->wide, k), p->size, p->axis);
            return;
        }
        n = at[last] == 0 ? alike(p, indices, k) : 1;
        scatter(p, y + (base + (size_t)index * p->steps[p->axis]) * p->bytes,
                updates + k * p->bytes, n);
        at[last] += n - 1;
        base += n - 1;
        for (int32_t i = p->rank; i-- > 0;) {
            const size_t step = i == p->axis ? 0 : p->steps[i];
            base += step;
            if (++at[i] < p->dims[i])
                break;
            base -= step * at[i];
            at[i] = 0;
        }
    }
}

QS_COLD static scatter_params *scatter_params_of(qs_lower *l, qs_step_fn run) {
    const qs_value *x = qs_lower_in(l, 0);
    scatter_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return NULL;
    const int32_t word = qs_node_word(l->node, "reduction", reductions(l->node));
    p->updates = word > 0;
    if (p->updates && x->dtype == QSIM_FLOAT)
        p->floats = by_word[word - 1].floats;
    else if (p->updates)
        p->other = qs_dense_of(by_word[word - 1].others, x->dtype);
    p->bytes = qs_dtype_bytes(x->dtype);
    p->all = qs_value_elements(x) * p->bytes;
    l->step->run = run;
    return p;
}

QS_COLD static int lower_scatter_elements(qs_lower *l) {
    const qs_value *x = qs_lower_in(l, 0), *indices = qs_lower_in(l, 1);
    const int64_t axis = qs_node_int(l->node, "axis", 0);
    scatter_params *p = scatter_params_of(l, run_scatter_elements);
    if (!p)
        return QSIM_E_NOMEM;
    size_t step = 1;
    p->rank = x->rank;
    p->axis = (int32_t)(axis < 0 ? axis + x->rank : axis);
    p->wide = indices->dtype == QSIM_INT64;
    p->size = x->dims[p->axis].size;
    p->count = qs_value_elements(indices);
    for (int32_t i = x->rank; i-- > 0; step *= (size_t)x->dims[i].size) {
        p->dims[i] = (size_t)indices->dims[i].size;
        p->steps[i] = step;
    }
    return QSIM_OK;
}

/* To version 11: Scatter is the former name of ScatterElements. */
QS_COLD static int upgrade_scatter(qs_graph *g, qs_id node, int32_t to, qsim_error *error) {
    (void)error;
    if (to < 11)
        return QSIM_OK;
    g->nodes[node].op_type = "ScatterElements";
    g->nodes[node].changed = true;
    return QSIM_OK;
}

static const qs_attr_rule elements_attrs[] = {{"axis", QSIM_ATTR_INT, 9, 0},
                                              {"reduction", QSIM_ATTR_STRING, 16, 0}};
static const qs_attr_rule scatter_attrs[] = {{"axis", QSIM_ATTR_INT, 9, 0}};

QS_OP(scatter_elements, .name = "ScatterElements", .since = 11, .min_in = 3,
      QS_ATTRS(elements_attrs), .traits = QS_READS_EXACTLY, .setting_inputs = 1 << 1,
      .kernel = QS_KERNEL_SCATTER, .infer = infer_scatter_elements,
      .lower = lower_scatter_elements);
QS_OP(scatter, .name = "Scatter", .since = 9, .until = 10, .min_in = 3, QS_ATTRS(scatter_attrs),
      .traits = QS_READS_EXACTLY, .setting_inputs = 1 << 1, .kernel = QS_KERNEL_SCATTER,
      .infer = infer_scatter_elements, QS_MORE(QS_HISTORY(.upgrade = upgrade_scatter)),
      .lower = lower_scatter_elements);

/* ---- ScatterND ---- */

/* Indices are (tuples..., k), updates (tuples..., and the axes of the data after the first k). */
QS_COLD static int infer_scatter_nd(qs_infer *x) {
    const qs_value *in = x->in[0], *indices = x->in[1], *updates = x->in[2];
    const int32_t q = indices->rank;
    int code = infer_updated(x, QS_T(QSIM_INT64));
    if (code || in->rank < 0 || q < 0)
        return code;
    if (in->rank == 0 || q == 0)
        return qs_infer_fail(x, QSIM_E_SHAPE, "a scalar has no axis");
    const int64_t k = indices->dims[q - 1].size;
    if (k < 0)
        return QSIM_OK;
    if (k == 0 || k > in->rank)
        return qs_infer_fail(x, QSIM_E_SHAPE, "tuples of %lld indices for %d axes", (long long)k,
                             (int)in->rank);
    if (updates->rank < 0)
        return QSIM_OK;
    if (updates->rank != q - 1 + in->rank - (int32_t)k)
        return wrong_updates(x);
    for (int32_t i = 0; i < updates->rank; i++)
        if (differ(updates->dims[i], i < q - 1 ? indices->dims[i] : in->dims[i - q + 1 + k]))
            return wrong_updates(x);
    return QSIM_OK;
}

/* Writes an update of megabytes, in pieces with checks for a stop. */
static void write_long(const qsim_ctx *ctx, const scatter_params *p, char *y, const char *u,
                       size_t block) {
    for (size_t at = 0, n; (n = qs_piece(ctx, at, block)); at += n)
        if (p->updates)
            update(p, y + at * p->bytes, u + at * p->bytes, n);
        else
            memcpy(y + at * p->bytes, u + at * p->bytes, n * p->bytes);
}

static void run_scatter_nd(const qs_step *s, const qs_frame *f) {
    const scatter_params *p = s->params;
    const int64_t *tuple = qs_step_in(s, f, 1);
    const char *u = qs_step_in(s, f, 2);
    char *y = qs_step_out(s, f, 0);
    const size_t k = (size_t)p->rank, block = p->steps[0], bytes = block * p->bytes;
    start(s, f, p->all);
    size_t done = 0; /* bytes since the last check for a stop */
    for (size_t t = 0; t < p->count; t++, tuple += k, u += bytes) {
        size_t at = 0;
        done += bytes + 16;
        if (done > CANCEL_INTERVAL) {
            done = 0;
            if (qs_stopped(f->ctx))
                return;
        }
        for (size_t i = 0; i < k; i++) {
            const int64_t index = qs_index_wrap(tuple[i], (int64_t)p->dims[i]);
            if (index < 0) {
                qs_index_outside(f, tuple[i], (int64_t)p->dims[i], (int32_t)i);
                return;
            }
            at = at * p->dims[i] + (size_t)index;
        }
        if (bytes > QS_COPY_PIECE)
            write_long(f->ctx, p, y + at * bytes, u, block);
        else if (p->updates)
            update(p, y + at * bytes, u, block);
        else
            qs_copy_element(y + at * bytes, u, bytes);
    }
}

QS_COLD static int lower_scatter_nd(qs_lower *l) {
    const qs_value *x = qs_lower_in(l, 0), *indices = qs_lower_in(l, 1);
    scatter_params *p = scatter_params_of(l, run_scatter_nd);
    if (!p)
        return QSIM_E_NOMEM;
    p->rank = (int32_t)indices->dims[indices->rank - 1].size; /* the first k axes */
    p->count = (size_t)qs_dims_product(indices->dims, 0, indices->rank - 1);
    p->steps[0] = (size_t)qs_dims_product(x->dims, p->rank, x->rank);
    for (int32_t i = 0; i < p->rank; i++)
        p->dims[i] = (size_t)x->dims[i].size;
    return QSIM_OK;
}

static const qs_attr_rule nd_attrs[] = {{"reduction", QSIM_ATTR_STRING, 16, 0}};

QS_OP(scatter_nd, .name = "ScatterND", .since = 11, .min_in = 3, QS_ATTRS(nd_attrs),
      .traits = QS_READS_EXACTLY, .setting_inputs = 1 << 1, .kernel = QS_KERNEL_SCATTER,
      .infer = infer_scatter_nd, .lower = lower_scatter_nd);
