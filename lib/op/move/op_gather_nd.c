/* SPDX-License-Identifier: MIT */
/* GatherElements: elements by an index along one axis. GatherND: slices by tuples of indices. */
#include <assert.h>

#include "op/move/index.h"

/* ---- GatherElements ---- */

QS_COLD static int infer_gather_elements(qs_infer *x) {
    const qs_value *in = x->in[0], *indices = x->in[1];
    int32_t axis = 0;
    int code = qs_infer_type(x, 0, QS_T_BYTES);
    if (!code)
        code = qs_infer_type(x, 1, QS_T_INDEX);
    if (!code)
        code = qs_infer_out(x, 0, in->dtype, indices->rank, indices->dims);
    if (code || in->rank < 0 || indices->rank < 0)
        return code;
    if (in->rank == 0 || in->rank != indices->rank)
        return qs_infer_fail(x, QSIM_E_SHAPE, "data of rank %d and indices of rank %d",
                             (int)in->rank, (int)indices->rank);
    code = qs_infer_axis(x, qs_node_int(x->node, "axis", 0), in->rank, &axis);
    for (int32_t i = 0; i < in->rank && !code; i++) {
        const int64_t a = in->dims[i].size, b = indices->dims[i].size;
        if (i != axis && a >= 0 && b > a)
            code = qs_infer_fail(x, QSIM_E_SHAPE, "axis %d: %lld indices for a size of %lld",
                                 (int)i, (long long)b, (long long)a);
    }
    return code ? code : qs_infer_indices(x, 1, in->dims[axis].size);
}

typedef struct elements_params {
    int32_t rank, axis;
    qs_gathering row_of; /* how a row is gathered */
    size_t rows, row;
    size_t dims[QSIM_MAX_RANK],
        steps[QSIM_MAX_RANK]; /* sizes of the indices; strides of the data, in elements */
} elements_params;

typedef struct elements_job {
    const qsim_ctx *ctx;
    const elements_params *p;
    const char *x;
    const char *indices;
    char *y;
} elements_job;

/* The data's offset of row `row` of the indices, the gathered axis left out. */
static size_t row_begin(const elements_params *p, size_t row) {
    size_t at = 0;
    for (int32_t i = p->rank - 1; i-- > 0; row /= p->dims[i])
        if (i != p->axis)
            at += row % p->dims[i] * p->steps[i];
    return at;
}

static void gather_rows(const void *arg, size_t begin, size_t end) {
    const elements_job *j = arg;
    const elements_params *p = j->p;
    const qs_gathering *g = &p->row_of;
    const size_t index = g->wide ? 8 : 4;
    for (size_t r = begin; r < end; r++) {
        const char *x = j->x + row_begin(p, r) * g->bytes;
        for (size_t i = 0, n; (n = qs_piece(j->ctx, i, p->row)); i += n) {
            const size_t k = r * p->row + i;
            qs_index_gather(g, x + i * g->step * g->bytes, j->indices + k * index,
                            j->y + k * g->bytes, n);
        }
    }
}

static void run_gather_elements(const qs_step *s, const qs_frame *f) {
    const elements_params *p = s->params;
    const elements_job j = {f->ctx, p, qs_step_in(s, f, 0), qs_step_in(s, f, 1),
                            qs_step_out(s, f, 0)};
    const qs_gathering *g = &p->row_of;
    size_t i = 0;
    for (size_t n; (n = qs_piece(f->ctx, i, p->rows * p->row)); i += n) {
        const char *indices = j.indices + i * (g->wide ? 8 : 4);
        const size_t at = qs_index_find_outside(indices, g->wide, n, g->size);
        if (at < n) {
            qs_index_outside(f, qs_index_at(indices, g->wide, at), g->size, p->axis);
            return;
        }
    }
    if (i && i == p->rows * p->row) /* else there are none, or the run is stopped */
        qs_ranges(f->ctx, p->rows, QS_GRAIN / 8 / p->row + 1, gather_rows, &j);
}

QS_COLD static int lower_gather_elements(qs_lower *l) {
    const qs_value *x = qs_lower_in(l, 0), *indices = qs_lower_in(l, 1);
    const int64_t axis = qs_node_int(l->node, "axis", 0);
    elements_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    size_t step = 1;
    p->rank = x->rank;
    p->axis = (int32_t)(axis < 0 ? axis + x->rank : axis);
    for (int32_t i = x->rank; i-- > 0; step *= (size_t)x->dims[i].size) {
        p->dims[i] = (size_t)indices->dims[i].size;
        p->steps[i] = step;
    }
    p->row_of = (qs_gathering){.size = x->dims[p->axis].size,
                               .step = p->axis < x->rank - 1,
                               .along = p->steps[p->axis],
                               .bytes = qs_dtype_bytes(x->dtype),
                               .wide = indices->dtype == QSIM_INT64};
    p->row = p->dims[x->rank - 1];
    p->rows = p->row ? qs_value_elements(indices) / p->row : 0;
    l->step->run = run_gather_elements;
    return QSIM_OK;
}

static const qs_attr_rule axis_attrs[] = {{"axis", QSIM_ATTR_INT, 11, 0}};

QS_OP(gather_elements, .name = "GatherElements", .since = 11, .min_in = 2, QS_ATTRS(axis_attrs),
      .traits = QS_MOVES | QS_READS_EXACTLY, .setting_inputs = 1 << 1, .kernel = QS_KERNEL_GATHER,
      .infer = infer_gather_elements, .lower = lower_gather_elements);

/* ---- GatherND ---- */

/* Indices are (batch..., tuples..., k); a tuple indexes the k axes after the batch axes. */
QS_COLD static int infer_gather_nd(qs_infer *x) {
    const qs_value *in = x->in[0], *indices = x->in[1];
    const int64_t batch = qs_node_int(x->node, "batch_dims", 0);
    const int32_t q = indices->rank;
    qs_dim dims[2 * QSIM_MAX_RANK];
    int32_t rank = 0;
    int code = qs_infer_type(x, 0, QS_T_BYTES);
    if (!code)
        code = qs_infer_type(x, 1, QS_T(QSIM_INT64));
    if (code || in->rank < 0 || q < 0)
        return code ? code : qs_infer_unknown(x, in->dtype);
    if (in->rank == 0 || q == 0)
        return qs_infer_fail(x, QSIM_E_SHAPE, "a scalar has no axis");
    if (batch < 0 || batch >= q || batch >= in->rank)
        return qs_infer_fail(x, QSIM_E_VALUE, "batch_dims is %lld, of ranks %d and %d",
                             (long long)batch, (int)in->rank, (int)q);
    for (int32_t i = 0; i < (int32_t)batch; i++)
        if (in->dims[i].size >= 0 && indices->dims[i].size >= 0 &&
            in->dims[i].size != indices->dims[i].size)
            return qs_infer_fail(x, QSIM_E_SHAPE, "batch axis %d has sizes %lld and %lld", (int)i,
                                 (long long)in->dims[i].size, (long long)indices->dims[i].size);
    const int64_t k = indices->dims[q - 1].size;
    if (k < 0)
        return qs_infer_unknown(x, in->dtype);
    if (k == 0 || k > in->rank - batch)
        return qs_infer_fail(x, QSIM_E_SHAPE, "tuples of %lld indices for %lld axes", (long long)k,
                             (long long)(in->rank - batch));
    for (int32_t i = 0; i < q - 1; i++)
        dims[rank++] = indices->dims[i];
    for (int32_t i = (int32_t)(batch + k); i < in->rank; i++)
        dims[rank++] = in->dims[i];
    return qs_infer_out(x, 0, in->dtype, rank, dims);
}

typedef struct nd_params {
    size_t tuples, batch, k, block; /* tuples per batch; block: bytes that a tuple selects */
    size_t batch_bytes;             /* bytes of the data per batch */
    int64_t sizes[QSIM_MAX_RANK];
    int32_t first; /* axis of a tuple's first index */
} nd_params;

typedef struct nd_job {
    const nd_params *p;
    const char *x;
    const int64_t *indices;
    char *y;
} nd_job;

/* Index of the block that a tuple selects; false if an index is outside its axis. */
static bool tuple_at(const nd_params *p, const int64_t *tuple, size_t *at) {
    *at = 0;
    for (size_t i = 0; i < p->k; i++) {
        const int64_t index = qs_index_wrap(tuple[i], p->sizes[i]);
        if (index < 0)
            return false;
        *at = *at * (size_t)p->sizes[i] + (size_t)index;
    }
    return true;
}

static void gather_tuples(const void *arg, size_t begin, size_t end) {
    const nd_job *j = arg;
    const nd_params *p = j->p;
    size_t at;
    for (size_t t = begin; t < end; t++)
        if (tuple_at(p, j->indices + t * p->k, &at))
            qs_copy_element(j->y + t * p->block,
                            j->x + t / p->tuples * p->batch_bytes + at * p->block, p->block);
}

static void run_gather_nd(const qs_step *s, const qs_frame *f) {
    const nd_params *p = s->params;
    const nd_job j = {p, qs_step_in(s, f, 0), qs_step_in(s, f, 1), qs_step_out(s, f, 0)};
    const size_t tuples = p->tuples * p->batch;
    size_t at;
    for (size_t t = 0; t < tuples; t++) {
        assert(j.indices);
        if (qs_stopped_at(f->ctx, t))
            return;
        if (!tuple_at(p, j.indices + t * p->k, &at)) {
            const int64_t *tuple = j.indices + t * p->k;
            size_t i = 0;
            while (qs_index_wrap(tuple[i], p->sizes[i]) >= 0)
                i++;
            qs_index_outside(f, tuple[i], p->sizes[i], p->first + (int32_t)i);
            return;
        }
    }
    qs_ranges(f->ctx, tuples, QS_GRAIN / (p->block + 1) + 1, gather_tuples, &j);
}

QS_COLD static int lower_gather_nd(qs_lower *l) {
    const qs_value *x = qs_lower_in(l, 0), *indices = qs_lower_in(l, 1);
    const int32_t batch = (int32_t)qs_node_int(l->node, "batch_dims", 0), q = indices->rank;
    const int32_t k = (int32_t)indices->dims[q - 1].size;
    nd_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->k = (size_t)k;
    p->first = batch;
    p->batch = (size_t)qs_dims_product(indices->dims, 0, batch);
    p->tuples = (size_t)qs_dims_product(indices->dims, batch, q - 1);
    p->block = (size_t)qs_dims_product(x->dims, batch + k, x->rank) * qs_dtype_bytes(x->dtype);
    p->batch_bytes = (size_t)qs_dims_product(x->dims, batch, x->rank) * qs_dtype_bytes(x->dtype);
    for (int32_t i = 0; i < k; i++)
        p->sizes[i] = x->dims[batch + i].size;
    l->step->run = run_gather_nd;
    return QSIM_OK;
}

static const qs_attr_rule batch_attrs[] = {{"batch_dims", QSIM_ATTR_INT, 12, 0}};

QS_OP(gather_nd, .name = "GatherND", .since = 11, .min_in = 2, QS_ATTRS(batch_attrs),
      .traits = QS_MOVES | QS_READS_EXACTLY, .setting_inputs = 1 << 1, .kernel = QS_KERNEL_GATHER,
      .infer = infer_gather_nd, .lower = lower_gather_nd);
