/* SPDX-License-Identifier: MIT */
/* The operator table: one line per operator. */
#include "op/rules.h"

/* X(name): qs_op_NAME is defined in its family's file. Any order; rows of one operator with
 * different versions stand for its different forms. */
// clang-format off
#define OPERATORS(X) \
    X(abs) \
    X(acos) \
    X(acosh) \
    X(add) \
    X(affinegrid) \
    X(and) \
    X(argmax) \
    X(argmin) \
    X(asin) \
    X(asinh) \
    X(atan) \
    X(atanh) \
    X(attention) \
    X(averagepool) \
    X(batchnormalization) \
    X(bitcast) \
    X(bitshift) \
    X(bitwise_and) \
    X(bitwise_not) \
    X(bitwise_or) \
    X(bitwise_xor) \
    X(blackmanwindow) \
    X(cast) \
    X(cast_like) \
    X(causalconv) \
    X(ceil) \
    X(celu) \
    X(center_crop_pad) \
    X(clip) \
    X(col2im) \
    X(compress) \
    X(concat) \
    X(constant) \
    X(constant_of_shape) \
    X(conv) \
    X(convinteger) \
    X(convtranspose) \
    X(cos) \
    X(cosh) \
    X(cum_prod) \
    X(cum_sum) \
    X(deformconv) \
    X(depth_to_space) \
    X(dequantize) \
    X(det) \
    X(dft) \
    X(div) \
    X(dropout) \
    X(dynamic_quantize) \
    X(einsum) \
    X(elu) \
    X(equal) \
    X(erf) \
    X(exp) \
    X(expand) \
    X(eyelike) \
    X(flatten) \
    X(floor) \
    X(gather) \
    X(gather_elements) \
    X(gather_nd) \
    X(gelu) \
    X(gemm) \
    X(globalaveragepool) \
    X(globallppool) \
    X(globalmaxpool) \
    X(greater) \
    X(greater_or_equal) \
    X(group_normalization) \
    X(gridsample) \
    X(gru) \
    X(hammingwindow) \
    X(hannwindow) \
    X(hardmax) \
    X(hardsigmoid) \
    X(hardswish) \
    X(identity) \
    X(if) \
    X(isinf) \
    X(isnan) \
    X(instance_normalization) \
    X(layernorm) \
    X(leakyrelu) \
    X(less) \
    X(less_or_equal) \
    X(linearattention) \
    X(log) \
    X(log_softmax) \
    X(loop) \
    X(lp_normalization) \
    X(lrn) \
    X(lppool) \
    X(lstm) \
    X(matmul) \
    X(matmulinteger) \
    X(max) \
    X(maxpool) \
    X(maxpool_1) \
    X(maxunpool) \
    X(mean) \
    X(mean_variance) \
    X(melweightmatrix) \
    X(min) \
    X(mish) \
    X(mod) \
    X(ms_attention) \
    X(ms_biasgelu) \
    X(ms_biassplitgelu) \
    X(ms_dequantize) \
    X(ms_dynamicquantizematmul) \
    X(ms_embedding) \
    X(ms_fastgelu) \
    X(ms_fusedconv) \
    X(ms_fusedgemm) \
    X(ms_fusedmatmul) \
    X(ms_gatherblocks) \
    X(ms_gelu) \
    X(ms_groupquery) \
    X(ms_matmulintegertofloat) \
    X(ms_multihead) \
    X(ms_nbits) \
    X(ms_nhwcmaxpool) \
    X(ms_qgemm) \
    X(ms_qlinearaveragepool) \
    X(ms_qlinearconv) \
    X(ms_qlinearglobalaveragepool) \
    X(ms_qlinearreducemean) \
    X(ms_qlinearwhere) \
    X(ms_quantize) \
    X(ms_quickgelu) \
    X(ms_rotary) \
    X(ms_simplified_skipnorm) \
    X(ms_skipnorm) \
    X(mul) \
    X(neg) \
    X(nms) \
    X(nonzero) \
    X(not) \
    X(one_hot) \
    X(or) \
    X(pad) \
    X(pow) \
    X(prelu) \
    X(qlinear_add) \
    X(qlinear_concat) \
    X(qlinear_leakyrelu) \
    X(qlinear_mul) \
    X(qlinear_sigmoid) \
    X(qlinear_softmax) \
    X(qlinearconv) \
    X(qlinearmatmul) \
    X(quantize) \
    X(range) \
    X(reciprocal) \
    X(reduce_l1) \
    X(reduce_l2) \
    X(reduce_log_sum) \
    X(reduce_log_sum_exp) \
    X(reduce_max) \
    X(reduce_mean) \
    X(reduce_min) \
    X(reduce_prod) \
    X(reduce_sum) \
    X(reduce_sum_square) \
    X(relu) \
    X(reshape) \
    X(resize) \
    X(reverse_sequence) \
    X(rmsnorm) \
    X(rnn) \
    X(rotary) \
    X(roialign) \
    X(round) \
    X(scan) \
    X(scatter) \
    X(scatter_elements) \
    X(scatter_nd) \
    X(selu) \
    X(shape) \
    X(shrink) \
    X(sigmoid) \
    X(sign) \
    X(simplified_layernorm) \
    X(sin) \
    X(sinh) \
    X(size) \
    X(slice) \
    X(softmax) \
    X(softplus) \
    X(softsign) \
    X(space_to_depth) \
    X(split) \
    X(sqrt) \
    X(squeeze) \
    X(stft) \
    X(sub) \
    X(sum) \
    X(swiglu) \
    X(swish) \
    X(tan) \
    X(tanh) \
    X(tensorscatter) \
    X(thresholdedrelu) \
    X(tile) \
    X(topk) \
    X(transpose) \
    X(trilu) \
    X(unique) \
    X(unsqueeze) \
    X(upsample) \
    X(where) \
    X(xor) \
    /* internal */ \
    X(qsim_add) \
    X(qsim_averagepool) \
    X(qsim_batchnormalization) \
    X(qsim_conv) \
    X(qsim_convinteger) \
    X(qsim_convtranspose) \
    X(qsim_convinteger_scaled) \
    X(qsim_depthcolumns) \
    X(qsim_depthrows) \
    X(qsim_depthsum) \
    X(qsim_div) \
    X(qsim_flip) \
    X(qsim_gemm) \
    X(qsim_globalaveragepool) \
    X(qsim_matmul) \
    X(qsim_insert) \
    X(qsim_matmulinteger) \
    X(qsim_matmulinteger_scaled) \
    X(qsim_maxpool) \
    X(lookup) \
    X(qsim_mul) \
    X(muladd) \
    X(qsim_planeaveragepool) \
    X(qsim_planemaxpool) \
    X(qsim_qlinear_add) \
    X(qsim_qlinear_concat) \
    X(qsim_shuffle) \
    X(qsim_qlinear_softmax) \
    X(qsim_qlinear_mul) \
    X(qsim_qlinearaveragepool) \
    X(qsim_qlinearconv) \
    X(qsim_qlinearglobalaveragepool) \
    X(qsim_qlinearmatmul) \
    X(qsim_resize) \
    X(qsim_silu) \
    X(qsim_quantize_rows) \
    X(qsim_sub) \
    X(qsim_table) \
    X(qsim_upsample)
// clang-format on

#define DECLARE(name) extern const qs_op qs_op_##name;
OPERATORS(DECLARE)

#define ROW(name) &qs_op_##name,
static const qs_op *const table[] = {OPERATORS(ROW)};

size_t qs_op_count(void) {
    return QS_COUNT(table);
}

const qs_op *qs_op_at(size_t index) {
    return table[index];
}

static const char *plain_domain(const char *domain) {
    return !domain || qs_same(domain, "ai.onnx") ? "" : domain;
}

/* The newest version that a row is for. */
static int32_t until(const qs_op *op) {
    return op->until ? op->until : op->domain ? INT16_MAX : QS_OPSET_NEWEST;
}

const qs_op *qs_op_find(const char *domain, const char *name, int64_t version, bool *known) {
    domain = plain_domain(domain);
    if (known)
        *known = false;
    for (size_t i = 0; i < QS_COUNT(table); i++) {
        const qs_op *op = table[i];
        if (!qs_same(op->name, name) || !qs_same(plain_domain(op->domain), domain))
            continue;
        if (known)
            *known = true;
        if (version >= op->since && version <= until(op))
            return op;
    }
    return NULL;
}

int64_t qs_op_newest_opset(void) {
    return QS_OPSET_NEWEST;
}

/* Counts of a version; what the row leaves out is filled in. */
static qs_counts counts_at(const qs_op *op, int32_t version) {
    const int16_t min_out = op->min_out ? op->min_out : 1;
    qs_counts c = {op->since, op->min_in, op->max_in ? op->max_in : op->min_in,
                   op->max_out ? op->max_out : min_out};
    for (size_t i = 0; i < QS_COUNT(op->later); i++)
        if (op->later[i].since && version >= op->later[i].since)
            c = op->later[i];
    return c;
}

static int check_counts(const qs_infer *x, const qs_op *op) {
    const qs_node *n = x->node;
    const qs_counts c = counts_at(op, n->version);
    const int32_t min_out = op->outputs_optional ? 0 : op->min_out ? op->min_out : 1;
    if (n->input_count < c.min_in || (c.max_in >= 0 && n->input_count > c.max_in))
        return qs_infer_fail(x, QSIM_E_GRAPH, "%d inputs, expected %d to %d", (int)n->input_count,
                             c.min_in, c.max_in);
    if (n->output_count < min_out || (c.max_out >= 0 && n->output_count > c.max_out))
        return qs_infer_fail(x, QSIM_E_GRAPH, "%d outputs, expected %d to %d", (int)n->output_count,
                             (int)min_out, c.max_out);
    for (int32_t i = 0; i < c.min_in; i++)
        if (n->inputs[i] == QS_NONE)
            return qs_infer_fail(x, QSIM_E_GRAPH, "input %d is left out", (int)i);
    for (int32_t i = 0; i < min_out; i++)
        if (n->outputs[i] == QS_NONE)
            return qs_infer_fail(x, QSIM_E_GRAPH, "output %d has no name", (int)i);
    return QSIM_OK;
}

static int find_rule(const qs_op *op, const char *name, int32_t version) {
    for (int32_t i = 0; i < op->attr_count; i++) {
        const qs_attr_rule *r = &op->attrs[i];
        if (qs_same(r->name, name) && version >= r->since && (!r->until || version <= r->until))
            return i;
    }
    return -1;
}

static int check_attrs(const qs_infer *x, const qs_op *op) {
    uint64_t seen = 0;
    for (int32_t i = 0; i < x->node->attr_count; i++) {
        const qs_attr *a = &x->node->attrs[i];
        int rule = find_rule(op, a->name, x->node->version);
        if (rule < 0)
            return qs_infer_fail(x, QSIM_E_UNSUPPORTED, "attribute '%s' is not known", a->name);
        if (a->type != op->attrs[rule].type)
            return qs_infer_fail(x, QSIM_E_GRAPH, "attribute '%s' has the wrong type", a->name);
        if (seen & 1ull << rule)
            return qs_infer_fail(x, QSIM_E_GRAPH, "attribute '%s' is given twice", a->name);
        seen |= 1ull << rule;
    }
    return QSIM_OK;
}

int qs_op_resolve(qs_graph *g, qs_id node, const char *model, qsim_error *error) {
    qs_node *n = &g->nodes[node];
    bool known = false;
    qs_infer x = {.graph = g, .node = n, .node_id = node, .model = model, .error = error};
    n->op = NULL;
    const qs_op *op = qs_op_find(n->domain, n->op_type, n->version, &known);
    if (!op && known)
        return qs_infer_fail(&x, QSIM_E_UNSUPPORTED, "this version of operator %s is not supported",
                             n->op_type);
    if (!op && plain_domain(n->domain)[0])
        return qs_infer_fail(&x, QSIM_E_UNSUPPORTED, "operator %s of domain %s is not supported",
                             n->op_type, n->domain);
    if (!op)
        return qs_infer_fail(&x, QSIM_E_UNSUPPORTED, "operator %s is not supported", n->op_type);
    int code = check_counts(&x, op);
    if (!code)
        code = check_attrs(&x, op);
    if (!code)
        n->op = op;
    return code;
}

uint32_t qs_node_traits(const qs_graph *g, const qs_node *n) {
    if (n->removed || !n->op)
        return 0;
    return n->op->traits | (n->op->also ? n->op->also(g, n) : 0);
}

static bool is_parameter(qs_operand o, int32_t index) {
    return o.zero_point && (index == o.scale || index == o.zero_point);
}

bool qs_op_is_operand(const qs_op *op, int32_t index) {
    const qs_operands *q = &op->quantized;
    if (qs_op_in(op->shape_inputs | op->setting_inputs, index))
        return false;
    if (is_parameter(q->y, index))
        return false;
    if (q->step && index >= q->x[0].at)
        index = q->x[0].at + (index - q->x[0].at) % q->step;
    return !is_parameter(q->x[0], index) && !is_parameter(q->x[1], index) &&
           !is_parameter(q->w, index);
}

int32_t qs_op_weight_axis(const qs_node *n, int32_t rank) {
    const int32_t axis = n->op->weight_axis + (n->op->weight_axis < 0 ? rank : 0);
    if (qs_node_int(n, "transB", 0))
        return rank - 1 - axis;
    if (axis > 0 && qs_node_int(n, "group", 1) != 1)
        return -1; /* it counts the channels of one group */
    return axis;
}
