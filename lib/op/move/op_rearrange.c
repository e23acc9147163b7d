/* SPDX-License-Identifier: MIT */
/* DepthToSpace, SpaceToDepth and ReverseSequence: every element moves to another place. */
#include "op/move/index.h"

/* ---- DepthToSpace, SpaceToDepth ---- */

static bool to_space(const qs_node *n) {
    return strcmp(n->op_type, "DepthToSpace") == 0;
}

/* Sizes (N, C, H, W), divided or multiplied by the block's. */
QS_COLD static int infer_blocks(qs_infer *x) {
    const qs_value *in = x->in[0];
    const int64_t block = qs_node_int(x->node, "blocksize", 0);
    const bool space = to_space(x->node);
    qs_dim dims[4];
    int code = qs_infer_type(x, 0, QS_T_BYTES);
    if (!code && (block < 1 || block > INT16_MAX))
        code = qs_infer_fail(x, QSIM_E_VALUE, "blocksize is %lld", (long long)block);
    if (!code)
        code = qs_infer_word(x, "mode", "DCR|CRD", &(int32_t){0});
    if (!code)
        code = qs_infer_rank(x, 0, 4);
    if (code || in->rank < 0)
        return code ? code : qs_infer_unknown(x, in->dtype);
    dims[0] = in->dims[0];
    for (int32_t i = 1; i < 4; i++) {
        const int64_t size = in->dims[i].size, by = i == 1 ? block * block : block;
        const bool divides = space == (i == 1);
        if (divides && size >= 0 && size % by)
            return qs_infer_fail(x, QSIM_E_SHAPE, "axis %d of size %lld is no multiple of %lld",
                                 (int)i, (long long)size, (long long)by);
        if (!divides && size > INT64_MAX / by)
            return qs_infer_fail(x, QSIM_E_LIMIT, "output 0 is larger than memory can be");
        dims[i] = (qs_dim){size < 0 ? -1 : divides ? size / by : size * by, NULL};
    }
    return qs_infer_out(x, 0, in->dtype, 4, dims);
}

/*
 * Transposes: the deep side is (N, channels and the block's two axes, H, W), the wide one (N,
 * channels, H, block, W, block). Channels come first in mode CRD.
 */
QS_COLD static int lower_blocks(qs_lower *l) {
    static const int32_t perms[3][6] = {{0, 3, 5, 1, 2, 4}, {0, 3, 4, 1, 5, 2}, {0, 1, 4, 2, 5, 3}};
    const bool space = to_space(l->node), first = qs_node_string_is(l->node, "mode", "CRD", false);
    const qs_dim *x = qs_lower_in(l, 0)->dims;
    const int64_t b = qs_node_int(l->node, "blocksize", 1), n = x[0].size, c = x[1].size;
    const int64_t wide[6] = {n, c, x[2].size / b, b, x[3].size / b, b}, few = c / b / b;
    const int64_t deep[6] = {n, first ? few : b, b, first ? b : few, x[2].size, x[3].size};
    return qs_lower_transpose(l, space ? deep : wide, perms[space + (space && first)], 6);
}

static const qs_attr_rule depth_attrs[] = {{"blocksize", QSIM_ATTR_INT, 1, 0},
                                           {"mode", QSIM_ATTR_STRING, 11, 0}};
static const qs_attr_rule space_attrs[] = {{"blocksize", QSIM_ATTR_INT, 1, 0}};

QS_OP(depth_to_space, .name = "DepthToSpace", .min_in = 1, QS_ATTRS(depth_attrs),
      .traits = QS_MOVES | QS_KEEPS | QS_KEEPS_ONCE | QS_READS_EXACTLY, .kernel = QS_KERNEL_BLOCKS,
      .infer = infer_blocks, .lower = lower_blocks);
QS_OP(space_to_depth, .name = "SpaceToDepth", .min_in = 1, QS_ATTRS(space_attrs),
      .traits = QS_MOVES | QS_KEEPS | QS_KEEPS_ONCE | QS_READS_EXACTLY, .kernel = QS_KERNEL_BLOCKS,
      .infer = infer_blocks, .lower = lower_blocks);

/* ---- ReverseSequence ---- */

QS_COLD static int infer_reverse(qs_infer *x) {
    const qs_value *in = x->in[0], *lengths = x->in[1];
    const int64_t batch = qs_node_int(x->node, "batch_axis", 1);
    const int64_t time = qs_node_int(x->node, "time_axis", 0);
    int code = qs_infer_type(x, 0, QS_T_BYTES);
    if (!code)
        code = qs_infer_type(x, 1, QS_T(QSIM_INT64));
    if (!code && (batch < 0 || batch > 1 || time != 1 - batch))
        code = qs_infer_fail(x, QSIM_E_VALUE, "batch_axis is %lld, time_axis %lld; one is 0, one 1",
                             (long long)batch, (long long)time);
    if (!code)
        code = qs_infer_least_rank(x, 0, 2);
    if (!code)
        code = qs_infer_rank(x, 1, 1);
    if (code || in->rank < 0 || lengths->rank < 0)
        return code ? code : qs_infer_like(x, 0, 0);
    const int64_t a = in->dims[batch].size, b = lengths->dims[0].size;
    if (a >= 0 && b >= 0 && a != b)
        return qs_infer_fail(x, QSIM_E_SHAPE, "%lld lengths for a batch of %lld", (long long)b,
                             (long long)a);
    return qs_infer_like(x, 0, 0);
}

typedef struct reverse_params {
    size_t batch, time, batch_step, time_step, block; /* steps and block in bytes */
} reverse_params;

static void run_reverse(const qs_step *s, const qs_frame *f) {
    const reverse_params *p = s->params;
    const char *x = qs_step_in(s, f, 0);
    const int64_t *lengths = qs_step_in(s, f, 1);
    char *y = qs_step_out(s, f, 0);
    for (size_t b = 0; b < p->batch; b++)
        if (lengths[b] < 0 || lengths[b] > (int64_t)p->time) {
            qs_step_outside(f, "length", lengths[b], 0, (int64_t)p->time + 1, -1);
            return;
        }
    for (size_t b = 0; b < p->batch; b++) {
        const size_t n = (size_t)lengths[b];
        for (size_t t = 0; t < p->time && !qs_stopped_at(f->ctx, t); t++) {
            const size_t from = t < n ? n - 1 - t : t, at = b * p->batch_step;
            qs_copy_element(y + at + t * p->time_step, x + at + from * p->time_step, p->block);
        }
    }
}

QS_COLD static int lower_reverse(qs_lower *l) {
    const qs_value *x = qs_lower_in(l, 0);
    const int64_t batch = qs_node_int(l->node, "batch_axis", 1);
    reverse_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->block = (size_t)qs_dims_product(x->dims, 2, x->rank) * qs_dtype_bytes(x->dtype);
    p->batch = (size_t)x->dims[batch].size;
    p->time = (size_t)x->dims[1 - batch].size;
    p->batch_step = batch ? p->block : p->block * p->time;
    p->time_step = batch ? p->block * p->batch : p->block;
    l->step->run = run_reverse;
    return QSIM_OK;
}

static const qs_attr_rule reverse_attrs[] = {{"batch_axis", QSIM_ATTR_INT, 10, 0},
                                             {"time_axis", QSIM_ATTR_INT, 10, 0}};

QS_OP(reverse_sequence, .name = "ReverseSequence", .since = 10, .min_in = 2,
      QS_ATTRS(reverse_attrs), .traits = QS_MOVES | QS_KEEPS | QS_KEEPS_ONCE | QS_READS_EXACTLY,
      .setting_inputs = 1 << 1, .kernel = QS_KERNEL_REVERSE, .infer = infer_reverse,
      .lower = lower_reverse);
