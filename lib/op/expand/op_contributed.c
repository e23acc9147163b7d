/* SPDX-License-Identifier: MIT */
/*
 * Operators of com.microsoft that ai.onnx has, too: exporters wrote these before ONNX's opset had
 * them.
 */
#include "op/expand.h"

QS_COLD static int infer_contributed(qs_infer *x) {
    return qs_expand_infer(x, x->node->op_type, NULL, 0);
}

#define LINEAR_SINCE 20 /* GridSample's modes are linear and cubic; before: bilinear, bicubic */

static void rename_mode(qs_expand *e, qs_id y) {
    const qs_attr *a = qs_node_attr(&e->graph->nodes[e->node_id], "mode");
    qs_attr mode = a ? *a : (qs_attr){0};
    if (!a || e->code || e->graph->nodes[e->graph->values[y].producer].version < LINEAR_SINCE ||
        mode.u.s.size < 2 || memcmp(mode.u.s.data, "bi", 2) != 0)
        return;
    mode.u.s.data += 2;
    mode.u.s.size -= 2;
    mode.source = (qs_span){NULL, 0};
    qs_expand_attr(e, y, &mode);
}

void qs_expand_contributed(qs_expand *e) {
    const qs_node n = *e->node;
    if (qs_expand_stays(e) || (n.op->lower && !e->only_onnx))
        return;
    const qs_id y = qs_expand_many(e, n.op_type, n.inputs, n.input_count, n.output_count);
    for (int32_t i = 0; i < n.attr_count; i++)
        qs_expand_copy(e, y, n.attrs[i].name, n.attrs[i].name);
    rename_mode(e, y);
    for (int32_t i = 0; i < n.output_count && !e->code; i++)
        e->out[i] = y + i;
}

static const qs_attr_rule sample_attrs[] = {{"mode", QSIM_ATTR_STRING, 1, 0}, /* of Pad, too */
                                            {"align_corners", QSIM_ATTR_INT, 1, 0},
                                            {"padding_mode", QSIM_ATTR_STRING, 1, 0}};
static const qs_attr_rule trilu_attrs[] = {{"upper", QSIM_ATTR_INT, 1, 0}};
static const qs_attr_rule causal_attrs[] = {{"activation", QSIM_ATTR_STRING, 1, 0}};
static const qs_attr_rule linear_attrs[] = {{"chunk_size", QSIM_ATTR_INT, 1, 0},
                                            {"kv_num_heads", QSIM_ATTR_INT, 1, 0},
                                            {"q_num_heads", QSIM_ATTR_INT, 1, 0},
                                            {"scale", QSIM_ATTR_FLOAT, 1, 0},
                                            {"update_rule", QSIM_ATTR_STRING, 1, 0}};

#define CONTRIBUTED(id, text, ...)                                                                 \
    QS_OP(id, .domain = QS_DOMAIN_MICROSOFT, .name = text, .traits = QS_PLAIN,                     \
          .infer = infer_contributed, .expand = qs_expand_contributed, __VA_ARGS__)

CONTRIBUTED(ms_causalconv, "CausalConvWithState", .min_in = 2, .max_in = 4, .max_out = 2,
            QS_ATTRS(causal_attrs));
CONTRIBUTED(ms_gridsample, "GridSample", .min_in = 2, .setting_inputs = 1 << 1,
            QS_ATTRS(sample_attrs));
CONTRIBUTED(ms_linearattention, "LinearAttention", .min_in = 3, .max_in = 6, .max_out = 2,
            QS_ATTRS(linear_attrs));
CONTRIBUTED(ms_pad, "Pad", .min_in = 2, .max_in = 3, .shape_inputs = 1 << 1,
            .setting_inputs = 1 << 2, .attrs = sample_attrs, .attr_count = 1);
CONTRIBUTED(ms_trilu, "Trilu", .min_in = 1, .max_in = 2, .setting_inputs = 1 << 1,
            QS_ATTRS(trilu_attrs));
