/* SPDX-License-Identifier: MIT */
/*
 * A Pad of zeros around the image that a convolution or an average reads becomes its padding.
 * Exporters of TensorFlow and PyTorch write such Pads. In a quantized image zero is the zero point.
 */
#include "pass/pass.h"

#include "op/rules.h"

/* Padding along the axes of space, the leads of all before their tails. */
typedef struct space_pads {
    int32_t axes;
    int64_t at[2 * QSIM_MAX_RANK];
} space_pads;

/* Whether the Pad fills with a constant that is `zero`. */
static bool fills_with(const qs_graph *g, const qs_node *pad, double zero) {
    const qs_id value = qs_node_input(pad, 2);
    double fill = (double)qs_node_float(pad, "value", 0);
    return qs_node_string_is(pad, "mode", "constant", true) &&
           (value == QS_NONE || qs_const_scalar(g, value, &fill)) && fill == zero;
}

/* Reads a Pad's constant pads and their axes. Returns the number of axes; -1: not known. */
static int32_t read_pads(const qs_graph *g, const qs_node *pad, int32_t rank, int64_t *pads,
                         int64_t *axes) {
    const qs_attr *a = qs_node_attr(pad, "pads");
    int32_t count = a ? a->count : qs_const_ints(qs_node_const(g, pad, 1), pads, 2 * QSIM_MAX_RANK);
    if (count > 2 * QSIM_MAX_RANK)
        return -1;
    if (a)
        memcpy(pads, a->u.ints, (size_t)count * sizeof(*pads));
    for (int32_t i = 0; i < rank; i++)
        axes[i] = i;
    const int32_t named = qs_node_input(pad, 3) == QS_NONE
                              ? rank
                              : qs_const_ints(qs_node_const(g, pad, 3), axes, QSIM_MAX_RANK);
    return named >= 0 && count == 2 * named ? named : -1;
}

/* Adds the Pad's pads to `sum`; false: it also pads batch or channels, or cuts. */
static bool add_pads(const qs_graph *g, const qs_node *pad, space_pads *sum) {
    int64_t pads[2 * QSIM_MAX_RANK], axes[QSIM_MAX_RANK];
    const int32_t rank = sum->axes + 2, count = read_pads(g, pad, rank, pads, axes);
    for (int32_t i = 0; i < count; i++) {
        const int64_t axis = axes[i] + (axes[i] < 0 ? rank : 0) - 2;
        const int64_t lead = pads[i], tail = pads[count + i];
        if (lead == 0 && tail == 0)
            continue;
        if (axis < 0 || axis >= sum->axes || lead < 0 || tail < 0 || lead > INT32_MAX ||
            tail > INT32_MAX)
            return false;
        sum->at[axis] += lead;
        sum->at[sum->axes + axis] += tail;
    }
    return count >= 0;
}

/* Reads the padding of a convolution or a pool; false: it depends on the image. */
static bool own_pads(const qs_node *n, space_pads *own) {
    const qs_attr *a = qs_node_attr(n, "pads");
    const int32_t word = qs_node_word(n, "auto_pad", QS_AUTO_PADS);
    if (word == QS_PAD_UPPER || word == QS_PAD_LOWER)
        return false;
    for (int32_t i = 0; i < 2 * own->axes; i++)
        own->at[i] = a && a->count == 2 * own->axes && word != QS_PAD_VALID ? a->u.ints[i] : 0;
    return true;
}

/*
 * Whether an average may count more padding: it counts all that it has, has no window in padding
 * alone, and none that reaches beyond it.
 */
static bool is_open_average(const qs_node *n, const space_pads *own, const space_pads *all) {
    const qs_attr *window = qs_node_attr(n, "kernel_shape");
    bool open = n->version >= 7 && qs_node_int(n, "ceil_mode", 0) == 0 && window &&
                window->count == own->axes;
    for (int32_t i = 0; open && i < 2 * own->axes; i++)
        open = (own->at[i] == 0 || qs_node_int(n, "count_include_pad", 0)) &&
               all->at[i] < window->u.ints[i % own->axes];
    return open;
}

/* Whether the node takes zeros around its image as padding, and the number that is zero there. */
static bool takes_zeros(const qs_graph *g, const qs_node *n, double *zero) {
    *zero = 0;
    if (qs_node_is_onnx(n, "AveragePool"))
        return true;
    if (!(qs_node_traits(g, n) & QS_CONVOLVES))
        return false;
    const int32_t at = qs_op_operands(n->op)->x[0].zero_point;
    const qs_id point = at > 0 ? qs_node_input(n, at) : QS_NONE;
    return point == QS_NONE || qs_const_scalar(g, point, zero);
}

static int fold_pad(qs_pass *p, const qs_uses *uses, qs_id node, bool *changed) {
    qs_graph *g = p->graph;
    const qs_node *n = &g->nodes[node];
    double zero;
    (void)uses;
    if (!takes_zeros(g, n, &zero))
        return QSIM_OK;
    const qs_id x = n->inputs[0], pad = qs_pass_producer(g, x, "Pad");
    space_pads own = {.axes = g->values[x].rank - 2}, all;
    if (pad == QS_NONE || own.axes < 1 || !own_pads(n, &own))
        return QSIM_OK;
    const bool average = qs_node_is_onnx(n, "AveragePool");
    all = own;
    if (!fills_with(g, &g->nodes[pad], zero) || !add_pads(g, &g->nodes[pad], &all) ||
        (average && !is_open_average(n, &own, &all)))
        return QSIM_OK;
    *changed = true;
    qs_node_drop_attr(g, node, "auto_pad");
    qs_node_set_input(g, node, 0, g->nodes[pad].inputs[0]);
    if (qs_node_set_ints(g, node, "pads", all.at, 2 * all.axes) ||
        (average && qs_node_set_int(g, node, "count_include_pad", 1)))
        return qs_pass_no_memory(p);
    return QSIM_OK;
}

int qs_pass_pads(qs_pass *p) {
    return qs_pass_nodes(p, fold_pad);
}
