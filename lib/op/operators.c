/* SPDX-License-Identifier: MIT */
/* The operator table: one line per operator. */
#include "op/listed.h"
#include "op/rules.h"

#include <stdio.h>

/*
 * X(name): the row qs_op_NAME is defined in its family's file. One list per domain, in alphabetical
 * order of the operators' names, in which qs_op_find searches; several rows of one operator are its
 * forms in different versions.
 */
// clang-format off
#define OPERATORS_ONNX(X) \
    X(abs) \
    X(acos) \
    X(acosh) \
    X(add) \
    X(affine) \
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
    X(bernoulli) \
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
    X(concat_from_sequence) \
    X(constant) \
    X(constant_of_shape) \
    X(conv) \
    X(convinteger) \
    X(convtranspose) \
    X(cos) \
    X(cosh) \
    X(crop) \
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
    X(gridsample) \
    X(group_normalization) \
    X(gru) \
    X(hammingwindow) \
    X(hannwindow) \
    X(hardmax) \
    X(hardsigmoid) \
    X(hardswish) \
    X(identity) \
    X(if) \
    X(imagescaler) \
    X(instance_normalization) \
    X(isinf) \
    X(isnan) \
    X(layernorm) \
    X(leakyrelu) \
    X(less) \
    X(less_or_equal) \
    X(linearattention) \
    X(log) \
    X(log_softmax) \
    X(loop) \
    X(lp_normalization) \
    X(lppool) \
    X(lrn) \
    X(lstm) \
    X(matmul) \
    X(matmulinteger) \
    X(max) \
    X(maxpool) \
    X(maxpool_1) \
    X(maxroipool) \
    X(maxunpool) \
    X(mean) \
    X(mean_variance) \
    X(melweightmatrix) \
    X(min) \
    X(mish) \
    X(mod) \
    X(mul) \
    X(multinomial) \
    X(neg) \
    X(loss) \
    X(nms) \
    X(nonzero) \
    X(not) \
    X(one_hot) \
    X(optional) \
    X(optional_get) \
    X(optional_has) \
    X(or) \
    X(pad) \
    X(parametricsoftplus) \
    X(pow) \
    X(prelu) \
    X(qlinearconv) \
    X(qlinearmatmul) \
    X(quantize) \
    X(random_normal) \
    X(random_normal_like) \
    X(random_uniform) \
    X(random_uniform_like) \
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
    X(roialign) \
    X(rotary) \
    X(round) \
    X(scaledtanh) \
    X(scan) \
    X(scatter) \
    X(scatter_elements) \
    X(scatter_nd) \
    X(selu) \
    X(sequence_at) \
    X(sequence_construct) \
    X(sequence_empty) \
    X(sequence_erase) \
    X(sequence_insert) \
    X(sequence_length) \
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
    X(entropy_loss) \
    X(softplus) \
    X(softsign) \
    X(space_to_depth) \
    X(split) \
    X(split_to_sequence) \
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
    X(xor)
#define OPERATORS_MICROSOFT(X) \
    X(ms_attention) \
    X(ms_biasadd) \
    X(ms_biasgelu) \
    X(ms_biassplitgelu) \
    X(ms_causalconv) \
    X(ms_convtransposedynamicpads) \
    X(ms_dequantize) \
    X(ms_dynamicquantizelstm) \
    X(ms_dynamicquantizematmul) \
    X(ms_embedding) \
    X(ms_fastgelu) \
    X(ms_fusedconv) \
    X(ms_fusedgemm) \
    X(ms_fusedmatmul) \
    X(ms_gatherblocks) \
    X(ms_gelu) \
    X(ms_gridsample) \
    X(ms_groupnorm) \
    X(ms_groupquery) \
    X(ms_inverse) \
    X(ms_linearattention) \
    X(ms_bnb4) \
    X(ms_matmulintegertofloat) \
    X(ms_nbits) \
    X(ms_multihead) \
    X(ms_nhwcconv) \
    X(ms_nhwcfusedconv) \
    X(ms_nhwcmaxpool) \
    X(ms_pad) \
    X(ms_qattention) \
    X(ms_qembedding) \
    X(ms_qgemm) \
    X(qlinear_add) \
    X(ms_qlinearaveragepool) \
    X(qlinear_concat) \
    X(ms_qlinearconv) \
    X(ms_qlinearglobalaveragepool) \
    X(qlinear_leakyrelu) \
    X(qlinear_mul) \
    X(ms_qlinearreducemean) \
    X(qlinear_sigmoid) \
    X(qlinear_softmax) \
    X(ms_qlinearwhere) \
    X(ms_quantize) \
    X(ms_quickgelu) \
    X(ms_rotary) \
    X(ms_skipgroupnorm) \
    X(ms_skipnorm) \
    X(ms_simplified_skipnorm) \
    X(ms_transposematmul) \
    X(ms_trilu)
#define OPERATORS_QSIM(X) \
    X(qsim_add) \
    X(qsim_averagepool) \
    X(qsim_batchnormalization) \
    X(qsim_conv) \
    X(qsim_convinteger) \
    X(qsim_convinteger_scaled) \
    X(qsim_convtranspose) \
    X(qsim_depthcolumns) \
    X(qsim_depthrows) \
    X(qsim_depthsum) \
    X(qsim_div) \
    X(qsim_flip) \
    X(qsim_gemm) \
    X(qsim_globalaveragepool) \
    X(qsim_insert) \
    X(lookup) \
    X(qsim_lstm) \
    X(qsim_matmul) \
    X(qsim_matmulinteger) \
    X(qsim_matmulinteger_scaled) \
    X(qsim_maxpool) \
    X(qsim_mul) \
    X(muladd) \
    X(qsim_planeaveragepool) \
    X(qsim_planeconv) \
    X(qsim_planeconvtranspose) \
    X(qsim_planemaxpool) \
    X(qsim_qlinear_add) \
    X(qsim_qlinearaveragepool) \
    X(qsim_qlinear_concat) \
    X(qsim_qlinearconv) \
    X(qsim_qlinearglobalaveragepool) \
    X(qsim_qlinear_layernorm) \
    X(qsim_qlinearmatmul) \
    X(qsim_qlinear_mul) \
    X(qsim_qlinear_softmax) \
    X(qsim_piecewise) \
    X(qsim_table) \
    X(qsim_quantize_rows) \
    X(qsim_resize) \
    X(qsim_shuffle) \
    X(qsim_silu) \
    X(qsim_sub) \
    X(qsim_upsample)
// clang-format on

#define OPERATORS(X) OPERATORS_ONNX(X) OPERATORS_MICROSOFT(X) OPERATORS_QSIM(X)

#define DECLARE(name) extern const qs_op qs_op_##name;
OPERATORS(DECLARE)

#define ROW(name)        &qs_op_##name,
#define LISTED_ROW(name) QS_IF_LISTED(ROW, name)
static const qs_op *const table[] = {OPERATORS(LISTED_ROW)};

#define ONE(name)        +1
#define LISTED_ONE(name) QS_IF_LISTED(ONE, name)
enum {
    ONNX_END = OPERATORS_ONNX(LISTED_ONE),
    MICROSOFT_END = ONNX_END OPERATORS_MICROSOFT(LISTED_ONE),
    QSIM_END = MICROSOFT_END OPERATORS_QSIM(LISTED_ONE),
};
_Static_assert(QSIM_END == QS_COUNT(table), "each row is of one domain");

static const struct {
    const char *domain;
    size_t begin, end; /* rows */
} domains[] = {
    [QS_DOMAIN_ONNX] = {"", 0, ONNX_END},
    [QS_DOMAIN_MICROSOFT] = {"com.microsoft", ONNX_END, MICROSOFT_END},
    [QS_DOMAIN_QSIM] = {"qsim", MICROSOFT_END, QSIM_END},
};

const char *qs_op_domain(const qs_op *op) {
    return domains[op->domain].domain;
}

size_t qs_op_count(void) {
    return QS_COUNT(table);
}

const qs_op *qs_op_at(size_t index) {
    return table[index];
}

static const char *plain_domain(const char *domain) {
    return !domain || qs_same(domain, "ai.onnx") ? "" : domain;
}

/* The newest version that a row covers. */
static int32_t until(const qs_op *op) {
    return op->until ? op->until : op->domain ? INT16_MAX : QS_OPSET_NEWEST;
}

static char lower_case(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

int qs_op_compare(const char *a, const char *b) {
    while (*a && lower_case(*a) == lower_case(*b))
        a++, b++;
    return (unsigned char)lower_case(*a) - (unsigned char)lower_case(*b);
}

/* The first row of [begin, end) whose name is not before `name`. */
static size_t lower_bound(size_t begin, size_t end, const char *name) {
    while (begin < end) {
        const size_t middle = begin + (end - begin) / 2;
        if (qs_op_compare(table[middle]->name, name) < 0)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

const qs_op *qs_op_find(const char *domain, const char *name, int64_t version, bool *known) {
    const qs_op *found = NULL;
    size_t d = 0;
    domain = plain_domain(domain);
    if (known)
        *known = false;
    while (d < QS_COUNT(domains) && !qs_same(domains[d].domain, domain))
        d++;
    if (d == QS_COUNT(domains))
        return NULL;
    for (size_t i = lower_bound(domains[d].begin, domains[d].end, name);
         i < domains[d].end && !found && qs_op_compare(table[i]->name, name) == 0; i++) {
        if (!qs_same(table[i]->name, name))
            continue;
        if (known)
            *known = true;
        if (version >= table[i]->since && version <= until(table[i]))
            found = table[i];
    }
    return found;
}

int64_t qs_op_newest_opset(void) {
    return QS_OPSET_NEWEST;
}

/* Counts of inputs and outputs at a version, with defaults filled in. */
static qs_counts counts_at(const qs_op *op, int32_t version) {
    const int8_t min_out = op->min_out ? op->min_out : 1;
    qs_counts c = {0, op->min_in, op->max_in ? op->max_in : op->min_in,
                   op->max_out ? op->max_out : min_out};
    const qs_history *h = qs_op_more_of(op)->history;
    for (size_t i = 0; h && i < QS_COUNT(h->later); i++)
        if (h->later[i].since && version >= h->later[i].since)
            c = h->later[i];
    return c;
}

/* Fails because a node has `count` inputs or outputs; most: -1 where there may be any number. */
QS_COLD static int refuse_count(const qs_infer *x, const char *what, int count, int least,
                                int most) {
    char wanted[40];
    const char *format = most < 0 ? "%d or more" : most == least ? "%d" : "%d to %d";
    snprintf(wanted, sizeof(wanted), format, least, most);
    return qs_infer_fail(x, QSIM_E_GRAPH, "%d %s, expected %s", count, what, wanted);
}

static int check_counts(const qs_infer *x, const qs_op *op) {
    const qs_node *n = x->node;
    const qs_counts c = counts_at(op, n->version);
    const int32_t min_out = op->traits & QS_OMITS_OUTPUTS ? 0 : op->min_out ? op->min_out : 1;
    if (n->input_count < c.min_in || (c.max_in >= 0 && n->input_count > c.max_in))
        return refuse_count(x, "inputs", n->input_count, c.min_in, c.max_in);
    if (n->output_count < min_out || (c.max_out >= 0 && n->output_count > c.max_out))
        return refuse_count(x, "outputs", n->output_count, min_out, c.max_out);
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
        if (rule < 0) {
            const int code =
                qs_infer_fail(x, QSIM_E_UNSUPPORTED, "attribute '%s' is not known", a->name);
            qs_hint_supported(x->error);
            return code;
        }
        if (a->type != op->attrs[rule].type)
            return qs_infer_fail(x, QSIM_E_GRAPH, "attribute '%s' has the wrong type", a->name);
        if (seen & 1ull << rule)
            return qs_infer_fail(x, QSIM_E_GRAPH, "attribute '%s' is given twice", a->name);
        seen |= 1ull << rule;
    }
    return QSIM_OK;
}

/* Whether the operator is one that -Doperators leaves out. */
static bool is_left_out(const char *domain, const char *name) {
    bool is = false;
    for (const char *left = QS_LEFT_OUT; *left && !is; left += strlen(left) + 1) {
        const size_t length = strlen(domain), skip = length ? length + 1 : 0;
        is =
            strncmp(left, domain, length) == 0 && strlen(left) > skip && qs_same(left + skip, name);
    }
    return is;
}

/* Refuses a node whose operator has no row for it, and says which there are. */
QS_COLD static int refuse_operator(const qs_infer *x, bool known) {
    const qs_node *n = x->node;
    const char *domain = plain_domain(n->domain);
    if (is_left_out(domain, n->op_type)) {
        qs_infer_fail(x, QSIM_E_UNSUPPORTED, "this build of libqsim has no operator %s",
                      n->op_type);
        qs_hint(x->error, "build it with this operator in -Doperators");
        return QSIM_E_UNSUPPORTED;
    }
    char opsets[64] = "";
    size_t size = 0;
    for (size_t d = 0; known && d < QS_COUNT(domains); d++)
        for (size_t i = domains[d].begin; i < domains[d].end && size + 24 < sizeof(opsets); i++)
            if (qs_same(domains[d].domain, domain) && qs_same(table[i]->name, n->op_type))
                size +=
                    (size_t)snprintf(opsets + size, sizeof(opsets) - size, "%s%d to %d",
                                     size ? ", " : "", (int)table[i]->since, (int)until(table[i]));
    const int code =
        known ? qs_infer_fail(x, QSIM_E_UNSUPPORTED, "this version of operator %s is not supported",
                              n->op_type)
        : domain[0]
            ? qs_infer_fail(x, QSIM_E_UNSUPPORTED, "operator %s of domain %s is not supported",
                            n->op_type, domain)
            : qs_infer_fail(x, QSIM_E_UNSUPPORTED, "operator %s is not supported", n->op_type);
    if (known)
        qs_hint(x->error, "supported are its opsets %s", opsets);
    else
        qs_hint_supported(x->error);
    return code;
}

int qs_op_resolve(qs_graph *g, qs_id node, const char *model, qsim_error *error) {
    qs_node *n = &g->nodes[node];
    bool known = false;
    qs_infer x = {.graph = g, .node = n, .node_id = node, .model = model, .error = error};
    n->op = NULL;
    const qs_op *op = qs_op_find(n->domain, n->op_type, n->version, &known);
    if (!op)
        return refuse_operator(&x, known);
    int code = check_counts(&x, op);
    if (!code)
        code = check_attrs(&x, op);
    if (!code)
        n->op = op;
    /* Random numbers depend on the name, so it stays if a pass renames the output. */
    if (!code && (op->traits & QS_RANDOM) && !n->name[0] && g->values[n->outputs[0]].name)
        n->name = g->values[n->outputs[0]].name;
    return code;
}

/* One after the other: a table of pointers or of equal lengths would be twice as large. */
#define KERNEL_NAME(name, text) text "\0"
static const char kernel_names[] = QS_KERNEL_NAMES(KERNEL_NAME);

const char *qs_op_kernel(const qs_op *op) {
    const char *name = kernel_names;
    for (int i = 0; i < op->kernel; i++)
        name += strlen(name) + 1;
    return name;
}

uint32_t qs_node_traits(const qs_graph *g, const qs_node *n) {
    if (n->removed || !n->op)
        return 0;
    return n->op->traits | (n->op->more && n->op->more->also ? n->op->more->also(g, n) : 0);
}

const qs_op_more *qs_op_more_of(const qs_op *op) {
    static const qs_op_more none;
    return op->more ? op->more : &none;
}

bool qs_node_in_onnx(const qs_node *n) {
    return !n->domain[0] && n->version >= qs_op_more_of(n->op)->in_onnx;
}

const qs_operands *qs_op_operands(const qs_op *op) {
    static const qs_operands none;
    return op->more && op->more->operands ? op->more->operands : &none;
}

static bool is_parameter(qs_operand o, int32_t index) {
    return o.zero_point && (index == o.scale || index == o.zero_point);
}

bool qs_op_is_operand(const qs_op *op, int32_t index) {
    const qs_operands *q = qs_op_operands(op);
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
        return -1; /* the axis has the channels of one group only */
    return axis;
}
