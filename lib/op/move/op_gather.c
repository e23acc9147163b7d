/* SPDX-License-Identifier: MIT */
/* Gather: copies slices of one axis by index; negative indices count from the end. */
#include <assert.h>

#include "op/move/index.h"

QS_COLD static int infer_gather(qs_infer *x) {
    const qs_value *in = x->in[0], *indices = x->in[1];
    int32_t axis = 0, rank = 0;
    qs_dim dims[2 * QSIM_MAX_RANK];
    int code = qs_infer_type(x, 0, QS_T_BYTES);
    if (!code)
        code = qs_infer_type(x, 1, QS_T_INDEX);
    if (code || in->rank < 0)
        return code ? code : qs_infer_unknown(x, in->dtype);
    code = qs_infer_axis(x, qs_node_int(x->node, "axis", 0), in->rank, &axis);
    if (!code)
        code = qs_infer_indices(x, 1, in->dims[axis].size);
    if (code || indices->rank < 0)
        return code ? code : qs_infer_unknown(x, in->dtype);
    for (int32_t i = 0; i < axis; i++)
        dims[rank++] = in->dims[i];
    for (int32_t i = 0; i < indices->rank; i++)
        dims[rank++] = indices->dims[i];
    for (int32_t i = axis + 1; i < in->rank; i++)
        dims[rank++] = in->dims[i];
    return qs_infer_out(x, 0, in->dtype, rank, dims);
}

typedef struct gather_params {
    size_t outer, count, block; /* block: bytes that one index selects */
    int64_t size;
    int32_t axis;
    bool wide;
} gather_params;

#define CANCEL_INTERVAL ((size_t)1 << 22)

/* Gathers blocks as small as one element; false if they are not, or an index is outside. */
static bool gather_small(const gather_params *p, const qs_frame *f, const char *x,
                         const char *indices, char *y) {
    const qs_gathering g = {.size = p->size, .along = 1, .bytes = p->block, .wide = p->wide};
    const size_t width = p->wide ? 8 : 4;
    if (p->block > 8 || p->block & (p->block - 1))
        return false;
    size_t checked = 0, done = 0;
    for (size_t n; (n = qs_piece(f->ctx, checked, p->count)); checked += n)
        if (qs_index_find_outside(indices + checked * width, p->wide, n, p->size) < n)
            return false;
    if (checked < p->count) /* stopped */
        return true;
    for (size_t o = 0; o < p->outer; o++, x += (size_t)p->size * p->block) {
        for (size_t at = 0, n; (n = qs_piece(f->ctx, at, p->count)); at += n, y += n * p->block)
            qs_index_gather(&g, x, indices + at * width, y, n);
        if (qs_stopped_after(f->ctx, &done, 8 * p->count + 64))
            break;
    }
    return true;
}

static void run_gather(const qs_step *s, const qs_frame *f) {
    const gather_params *p = s->params;
    const char *x = qs_step_in(s, f, 0);
    const void *indices = qs_step_in(s, f, 1);
    char *y = qs_step_out(s, f, 0);
    const size_t n = p->block, step = p->count * n;
    size_t done = 0; /* bytes since the last check for a stop */
    if (p->count && gather_small(p, f, x, indices, y))
        return;
    for (size_t i = 0; i < p->count; i++, y += n) {
        done += n * p->outer + 16;
        if (done > CANCEL_INTERVAL) {
            done = 0;
            if (qs_stopped(f->ctx))
                return;
        }
        int64_t index = qs_index_at(indices, p->wide, i);
        index = index < 0 ? index + p->size : index;
        if (index >= 0 && index < p->size && p->outer == 1 && n < CANCEL_INTERVAL / 4) {
            qs_copy_rows(x + (size_t)index * n, 0, y, 0, n, 1);
            continue;
        }
        if (index >= 0 && index < p->size) {
            qs_copy_many_rows(f->ctx, x + (size_t)index * n, (ptrdiff_t)((size_t)p->size * n), y,
                              (ptrdiff_t)step, n, p->outer);
            continue;
        }
        for (size_t o = 0; o < p->outer; o++) {
            assert(y);
            qs_clear(f->ctx, y + o * step, n);
        }
        qs_index_outside(f, qs_index_at(indices, p->wide, i), p->size, p->axis);
    }
}

/* One constant index: the result is a view of the input if it is contiguous there. */
static int take_view(qs_lower *l, const gather_params *p) {
    qs_infer rules;
    qs_const c;
    qs_lower_infer(l, &rules);
    if (p->count != 1 || (p->outer != 1 && p->size != 1) || !qs_infer_const(&rules, 1, &c))
        return QSIM_OK;
    const int64_t index = qs_index_at(c.data, p->wide, 0);
    const size_t from = (size_t)(index < 0 ? index + p->size : index) * p->block;
    l->step->views = qs_arena_copy(l->arena, &from, sizeof(from));
    return l->step->views ? QSIM_OK : qs_fail(l->error, QSIM_E_NOMEM, "out of memory");
}

QS_COLD static int lower_gather(qs_lower *l) {
    const qs_value *x = qs_lower_in(l, 0), *indices = qs_lower_in(l, 1);
    int64_t axis = qs_node_int(l->node, "axis", 0);
    gather_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    int32_t at = (int32_t)(axis < 0 ? axis + x->rank : axis);
    p->outer = (size_t)qs_dims_product(x->dims, 0, at);
    p->block = (size_t)qs_dims_product(x->dims, at + 1, x->rank) * qs_dtype_bytes(x->dtype);
    p->size = x->dims[at].size;
    p->axis = at;
    p->count = qs_value_elements(indices);
    p->wide = indices->dtype == QSIM_INT64;
    if (p->block == 0)
        p->count = 0;
    l->step->run = run_gather;
    return take_view(l, p);
}

static const qs_attr_rule gather_attrs[] = {{"axis", QSIM_ATTR_INT, 1, 0}};

QS_OP(gather, .name = "Gather", .min_in = 2, QS_ATTRS(gather_attrs),
      .traits = QS_MOVES | QS_READS_EXACTLY, .setting_inputs = 1 << 1, .weight_inputs = 1 << 0,
      .kernel = QS_KERNEL_GATHER, .infer = infer_gather, .lower = lower_gather);
