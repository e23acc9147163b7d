/* SPDX-License-Identifier: MIT */
/*
 * NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss. x (N, C, ...): log probabilities or scores
 * of C classes; target (N, ...): the right class; optional weights (C). Each loss is
 * -x[target] weight[target], or 0 where the target is ignore_index; the mean is over the weights.
 */
#include "op/expand.h"

static const char reductions[] = "mean|sum|none";
enum { MEAN, SUM, NONE };

/* Whether axis `a` of x and axis `b` of y may be equally long. */
QS_NOINLINE static bool agree(const qs_value *x, int32_t a, const qs_value *y, int32_t b) {
    const int64_t n = x->dims[a].size, m = y->dims[b].size;
    return n < 0 || m < 0 || n == m;
}

static int check_shapes(const qs_infer *x) {
    const qs_value *scores = x->in[0], *target = x->in[1], *weights = x->in[2];
    if (scores->rank < 0)
        return QSIM_OK;
    bool fits = scores->rank >= 2 && (target->rank < 0 || target->rank == scores->rank - 1);
    for (int32_t i = 0; fits && i < target->rank; i++)
        fits = agree(scores, i + (i > 0), target, i);
    if (fits && weights && weights->rank >= 0)
        fits = weights->rank == 1 && agree(scores, 1, weights, 0);
    return fits ? QSIM_OK
                : qs_infer_fail(x, QSIM_E_SHAPE,
                                "target or weights do not fit scores (N, C, ...): they are "
                                "(N, ...) and (C)");
}

QS_COLD static int infer_loss(qs_infer *x) {
    int32_t reduction;
    int code = qs_infer_type(x, 0, QS_T_REAL);
    if (!code)
        code = qs_infer_type(x, 1, QS_T(QSIM_INT32) | QS_T(QSIM_INT64));
    if (!code && x->in[2])
        code = qs_infer_same_type(x, 0, 2);
    if (!code)
        code = qs_infer_word(x, "reduction", reductions, &reduction);
    if (!code)
        code = check_shapes(x);
    if (!code)
        code = qs_infer_out(x, 0, x->in[0]->dtype, reduction == NONE ? x->in[1]->rank : 0,
                            x->in[1]->dims);
    return code || x->node->output_count < 2 ? code : qs_infer_like(x, 1, 0);
}

static qs_id total(qs_expand *e, const char *op_type, qs_id x) {
    const qs_id y = qs_expand_one(e, op_type, x);
    qs_expand_int(e, y, "keepdims", 0);
    return y;
}

static void expand_nll(qs_expand *e, qs_id scores) {
    const qs_node n = *e->node;
    const qs_attr *ignored = qs_node_attr(&n, "ignore_index");
    const int32_t reduction = qs_node_word(&n, "reduction", reductions),
                  dtype = qs_expand_value(e, 0)->dtype, index = qs_expand_value(e, 1)->dtype;
    const qs_id zero = qs_expand_number(e, dtype, 0), weights = qs_expand_in(e, 2),
                one = qs_expand_list(e, (const int64_t[]){1}, 1);
    qs_id at = qs_expand_two(e, "Unsqueeze", qs_expand_in(e, 1), one), skip = QS_NONE, by = QS_NONE;
    if (ignored) {
        skip = qs_expand_two(e, "Equal", at, qs_expand_number(e, index, (double)ignored->u.i));
        at = qs_expand_add(e, "Where", skip, qs_expand_number(e, index, 0), at);
    }
    const qs_id right = qs_expand_two(e, "GatherElements", scores, at);
    qs_expand_int(e, right, "axis", 1);
    qs_id loss = qs_expand_one(e, "Neg", right);
    if (weights != QS_NONE) {
        by = qs_expand_two(e, "Gather", weights, at);
        loss = qs_expand_two(e, "Mul", loss, by);
    }
    if (ignored) {
        const qs_id weight = by == QS_NONE ? qs_expand_number(e, dtype, 1) : by;
        by = qs_expand_add(e, "Where", skip, zero, weight);
        loss = qs_expand_add(e, "Where", skip, zero, loss);
    }
    if (reduction == NONE)
        e->out[0] = qs_expand_two(e, "Squeeze", loss, one);
    else if (reduction == MEAN && by == QS_NONE)
        e->out[0] = total(e, "ReduceMean", loss);
    else
        e->out[0] = total(e, "ReduceSum", loss);
    if (reduction == MEAN && by != QS_NONE)
        e->out[0] = qs_expand_two(e, "Div", e->out[0], total(e, "ReduceSum", by));
}

static void expand_loss(qs_expand *e) {
    expand_nll(e, qs_expand_in(e, 0));
}

static void expand_entropy(qs_expand *e) {
    const qs_id y = qs_expand_one(e, "LogSoftmax", qs_expand_in(e, 0));
    qs_expand_int(e, y, "axis", 1);
    expand_nll(e, y);
    e->out[1] = y;
}

static const qs_attr_rule loss_attrs[] = {{"ignore_index", QSIM_ATTR_INT, 12, 0},
                                          {"reduction", QSIM_ATTR_STRING, 12, 0}};

QS_OP(loss, .name = "NegativeLogLikelihoodLoss", .since = 12, .min_in = 2, .max_in = 3,
      QS_ATTRS(loss_attrs), .traits = QS_PLAIN, .setting_inputs = 1 << 1, .infer = infer_loss,
      .expand = expand_loss);
QS_OP(entropy_loss, .name = "SoftmaxCrossEntropyLoss", .since = 12, .min_in = 2, .max_in = 3,
      .max_out = 2, QS_ATTRS(loss_attrs), .traits = QS_PLAIN, .setting_inputs = 1 << 1,
      .infer = infer_loss, .expand = expand_entropy);
