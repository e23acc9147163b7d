/* SPDX-License-Identifier: MIT */
#include "op/nn/finish.h"

#include <math.h>

#include "base/ctx.h"
#include "kernel/table.h"

int qs_finish_infer(const qs_infer *x, int32_t index) {
    const qs_value *y = &x->out[0], *other = index < x->node->input_count ? x->in[index] : NULL;
    if (!other)
        return QSIM_OK;
    bool same = other->dtype == QSIM_FLOAT && (other->rank < 0 || other->rank == y->rank);
    for (int32_t i = 0; same && i < y->rank && other->rank >= 0; i++)
        same = other->dims[i].size < 0 || y->dims[i].size < 0 ||
               other->dims[i].size == y->dims[i].size;
    return same ? QSIM_OK : qs_infer_fail(x, QSIM_E_SHAPE, "the sum has another shape");
}

static qk_ew_f32_fn curve_of(const qk_ew *k, int64_t which) {
    return which == QS_THEN_SILU        ? k->silu
           : which == QS_THEN_HARDSWISH ? k->hardswish
           : which == QS_THEN_SIGMOID   ? k->sigmoid
                                        : NULL;
}

qs_finish qs_finish_lower(const qs_lower *l, int32_t other) {
    const qk_ew *k = l->ctx->kernels->ew;
    return (qs_finish){.ew = k,
                       .first = curve_of(k, qs_node_int(l->node, "first", 0)),
                       .curve = curve_of(k, qs_node_int(l->node, "then", 0)),
                       .sum = other < l->node->input_count && qs_lower_in(l, other) != NULL,
                       .lo = qs_node_float(l->node, "sum_lo", -INFINITY),
                       .hi = qs_node_float(l->node, "sum_hi", INFINITY)};
}
