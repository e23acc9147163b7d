/* SPDX-License-Identifier: MIT */
/*
 * LSTM, GRU and RNN: attributes and shapes. The internal LSTM takes the inputs' part of all gates,
 * (time, batch, directions * gates), and recurrent weights of 8 bits, (directions, hidden, gates);
 * in place of W their scales and in place of the biases their zero points.
 */
#include <math.h>

#include "op/nn/recurrent.h"

/* ---- attributes ---- */

static int read_direction(const qs_infer *x, qs_recurrent *r) {
    enum { FORWARD, REVERSE, BOTH };
    int32_t direction;
    const int code = qs_infer_word(x, "direction", "forward|reverse|bidirectional", &direction);
    r->reverse = direction == REVERSE;
    r->directions = direction == BOTH ? 2 : 1;
    return code;
}

static int read_attrs(const qs_infer *x, qs_recurrent *r) {
    const int64_t layout = qs_node_int(x->node, "layout", 0);
    r->integer = x->node->domain[0] != 0;
    r->cell = x->node->op_type[0] == 'L' ? QS_LSTM : x->node->op_type[0] == 'G' ? QS_GRU : QS_RNN;
    r->gates = r->cell == QS_LSTM ? 4 : r->cell == QS_GRU ? 3 : 1;
    r->clip = qs_node_float(x->node, "clip", INFINITY);
    r->batch_first = layout == 1;
    r->coupled = qs_node_int(x->node, "input_forget", 0) != 0;
    r->before_reset = qs_node_int(x->node, "linear_before_reset", 0) != 0;
    r->hidden = qs_node_int(x->node, "hidden_size", -1);
    if (layout != 0 && layout != 1)
        return qs_infer_fail(x, QSIM_E_VALUE, "attribute layout is %lld", (long long)layout);
    if (!(r->clip >= 0.0f))
        return qs_infer_fail(x, QSIM_E_VALUE, "attribute clip is %g", (double)r->clip);
    if (qs_node_attr(x->node, "hidden_size") && r->hidden < 1)
        return qs_infer_fail(x, QSIM_E_VALUE, "attribute hidden_size is %lld",
                             (long long)r->hidden);
    int code = read_direction(x, r);
    return code ? code : qs_activations_read(x, r);
}

/* ---- shapes ---- */

/* Checks one size of input `index`, or takes it over if it was unknown. */
static int meet(const qs_infer *x, int32_t index, int32_t axis, int64_t *size) {
    const qs_value *v = qs_infer_in(x, index);
    if (!v || v->rank < 0 || v->dims[axis].size < 0)
        return QSIM_OK;
    if (*size < 0)
        *size = v->dims[axis].size;
    return qs_infer_size(x, index, axis, *size);
}

static int check_input(const qs_infer *x, int32_t index, int32_t rank, uint32_t types) {
    const int code = qs_infer_rank(x, index, rank);
    return code ? code : qs_infer_type(x, index, types);
}

/* n * hidden; -1 if unknown, or on overflow. */
static int64_t times(int64_t hidden, int64_t n) {
    int64_t out;
    return hidden >= 0 && qs_mul64(hidden, n, &out) ? out : -1;
}

/* A list of the internal LSTM has a number for each direction; *columns: for each column, too. */
static int check_list(const qs_infer *x, int32_t index, int64_t columns, const qs_recurrent *r,
                      bool *each) {
    const qs_value *v = qs_infer_in(x, index);
    const int64_t count = v && v->rank >= 0 ? qs_dims_product(v->dims, 0, v->rank) : -1;
    *each = v && v->rank == 2;
    return count < 0 || (*each && columns < 0) || count == r->directions * (*each ? columns : 1)
               ? QSIM_OK
               : qs_infer_fail(x, QSIM_E_SHAPE, "input %d has %lld elements", (int)index,
                               (long long)count);
}

/* Sizes that inputs share; from GATES on they follow from others. */
enum { TIME, BATCH, DIRECTIONS, INPUT, HIDDEN, GATES, BOTH, PEEPHOLES, ALL, SIZES };
/* Layers: of floats, the internal LSTM, any; SWAPS: attribute layout swaps axes 0 and 1, too. */
enum { FLOATS = 1, BYTES, ANY, SWAPS = 4 };

/* Where an input has a size. */
typedef struct place {
    int8_t input, axis, size, of;
} place;

static const place places[] = {
    {0, 0, TIME, ANY | SWAPS},
    {0, 1, BATCH, ANY | SWAPS},
    {0, 2, INPUT, FLOATS},
    {2, 2, HIDDEN, FLOATS},
    {2, 1, HIDDEN, BYTES},
    {1, 0, DIRECTIONS, FLOATS}, /* DERIVED */
    {1, 1, GATES, FLOATS},
    {1, 2, INPUT, FLOATS},
    {2, 0, DIRECTIONS, ANY},
    {2, 1, GATES, FLOATS},
    {2, 2, GATES, BYTES},
    {0, 2, ALL, BYTES},
    {3, 0, DIRECTIONS, FLOATS},
    {3, 1, BOTH, FLOATS},
    {7, 0, DIRECTIONS, ANY},
    {7, 1, PEEPHOLES, ANY},
    {4, 0, BATCH, ANY},
    {5, 0, DIRECTIONS, ANY | SWAPS},
    {5, 1, BATCH, ANY | SWAPS},
    {5, 2, HIDDEN, ANY},
    {6, 0, DIRECTIONS, ANY | SWAPS},
    {6, 1, BATCH, ANY | SWAPS},
    {6, 2, HIDDEN, ANY},
};
#define DERIVED 5 /* the first place after those that tell HIDDEN */

static int read_sizes(const qs_infer *x, qs_recurrent *r) {
    int64_t sizes[SIZES] = {-1, -1, r->directions, -1, r->hidden};
    int code = QSIM_OK;
    for (size_t i = 0; i < QS_COUNT(places) && !code; i++) {
        const place *p = &places[i];
        const int32_t axis = p->axis ^ (p->of & SWAPS && r->batch_first);
        if (i == DERIVED) {
            sizes[GATES] = times(sizes[HIDDEN], r->gates);
            sizes[BOTH] = times(sizes[GATES], 2);
            sizes[PEEPHOLES] = times(sizes[HIDDEN], 3);
            sizes[ALL] = times(sizes[GATES], r->directions);
        }
        if (p->of & (r->integer ? BYTES : FLOATS))
            code = meet(x, p->input, axis, &sizes[p->size]);
    }
    r->time = sizes[TIME];
    r->batch = sizes[BATCH];
    r->input = sizes[INPUT];
    r->hidden = sizes[HIDDEN];
    if (code || !r->integer)
        return code;
    if (r->hidden > QS_STATES8)
        return qs_infer_fail(x, QSIM_E_LIMIT,
                             "%lld states, with weights of 8 bits at most 32768: sums are int32",
                             (long long)r->hidden);
    r->is_unsigned = qs_infer_in(x, 2)->dtype == QSIM_UINT8;
    code = check_list(x, 1, sizes[GATES], r, &r->scales);
    return code ? code : check_list(x, 3, sizes[GATES], r, &r->zero_points);
}

/* Reads all attributes and shapes. */
static int read_all(const qs_infer *x, qs_recurrent *r) {
    static const int8_t ranks[] = {3, 3, 3, 2, 1, 3, 3, 2};
    memset(r, 0, sizeof(*r));
    int code = read_attrs(x, r);
    const qs_value *first = qs_infer_in(x, 0);
    const uint32_t real = first && first->dtype ? QS_T_REAL & QS_T(first->dtype) : QS_T_REAL;
    for (int32_t i = 0; i < (int32_t)QS_COUNT(ranks) && !code; i++) {
        const uint32_t types = r->integer && (i == 2 || i == 3) ? QS_T_8BIT
                               : r->integer && i != 4           ? QS_T_FLOAT
                               : i == 4                         ? QS_T(QSIM_INT32)
                               : i                              ? real
                                                                : QS_T_REAL;
        code = r->integer && (i == 1 || i == 3) ? qs_infer_type(x, i, types)
                                                : check_input(x, i, ranks[i], types);
    }
    return code ? code : read_sizes(x, r);
}

static int infer_recurrent(qs_infer *x) {
    qs_recurrent r;
    int code = read_all(x, &r);
    if (code)
        return code;
    const qs_value *v = x->in[0];
    const qs_dim unknown = {-1, NULL};
    const qs_dim time = v->rank == 3 ? v->dims[r.batch_first] : unknown;
    qs_dim batch = v->rank == 3 ? v->dims[!r.batch_first] : unknown;
    if (batch.size < 0 && r.batch >= 0)
        batch = (qs_dim){r.batch, NULL};
    /* The states, and the first output, which has time in front of the directions. */
    qs_dim last[3], all[4];
    last[r.batch_first] = (qs_dim){r.directions, NULL};
    last[!r.batch_first] = batch;
    last[2] = all[3] = (qs_dim){r.hidden, NULL};
    all[r.batch_first] = time;
    all[r.batch_first + 1] = last[r.batch_first];
    all[r.batch_first ? 0 : 2] = batch;
    for (int32_t i = 0; i < x->node->output_count && !code; i++)
        code = qs_infer_out(x, i, v->dtype, i ? 3 : 4, i ? last : all);
    return code;
}

/* ---- packing and lowering ---- */

static int pack_recurrent(qs_pack *p) {
    qs_infer x = {.graph = p->graph,
                  .node = p->node,
                  .node_id = p->node_id,
                  .model = p->model,
                  .error = p->error};
    qs_recurrent r;
    if (p->graph->values[p->node->inputs[0]].dtype == QSIM_DOUBLE)
        return QSIM_OK;
    int code = read_all(&x, &r);
    return code ? code : qs_recurrent_pack(p, &r);
}

static int lower_recurrent(qs_lower *l) {
    qs_infer x;
    qs_recurrent r;
    qs_lower_infer(l, &x);
    int code = read_all(&x, &r);
    if (code)
        return code;
    return qs_lower_in(l, 0)->dtype == QSIM_DOUBLE ? qs_recurrent_lower64(l, &r)
                                                   : qs_recurrent_lower(l, &r);
}

/* Before version 7 the first output needed an attribute. */
static int upgrade_recurrent(qs_graph *g, qs_id node, int32_t to, qsim_error *error) {
    (void)error;
    if (to >= 7)
        qs_node_drop_attr(g, node, "output_sequence");
    return QSIM_OK;
}

/* ---- rows ---- */

#define COMMON_ATTRS                                                                               \
    {"activation_alpha", QSIM_ATTR_FLOATS, 1, 0}, {"activation_beta", QSIM_ATTR_FLOATS, 1, 0},     \
        {"activations", QSIM_ATTR_STRINGS, 1, 0}, {"clip", QSIM_ATTR_FLOAT, 1, 0},                 \
        {"direction", QSIM_ATTR_STRING, 1, 0}, {"hidden_size", QSIM_ATTR_INT, 1, 0},               \
        {"output_sequence", QSIM_ATTR_INT, 1, 6}, {                                                \
        "layout", QSIM_ATTR_INT, 14, 0                                                             \
    }

static const qs_attr_rule rnn_attrs[] = {COMMON_ATTRS};
static const qs_attr_rule gru_attrs[] = {COMMON_ATTRS,
                                         {"linear_before_reset", QSIM_ATTR_INT, 3, 0}};
static const qs_attr_rule lstm_attrs[] = {COMMON_ATTRS, {"input_forget", QSIM_ATTR_INT, 1, 0}};

QS_OP(lstm, .name = "LSTM", .min_in = 3, .max_in = 8, .max_out = 3, QS_ATTRS(lstm_attrs),
      .traits = QS_OMITS_OUTPUTS, .weight_axis = 1, .weight_inputs = 1 << 1 | 1 << 2,
      .macs = QS_MACS_RECURRENT, .kernel = QS_KERNEL_LSTM, .infer = infer_recurrent,
      QS_MORE(QS_HISTORY(.upgrade = upgrade_recurrent), .pack = pack_recurrent),
      .lower = lower_recurrent);
QS_OP(gru, .name = "GRU", .min_in = 3, .max_in = 6, .max_out = 2, QS_ATTRS(gru_attrs),
      .traits = QS_OMITS_OUTPUTS, .weight_axis = 1, .weight_inputs = 1 << 1 | 1 << 2,
      .macs = QS_MACS_RECURRENT, .kernel = QS_KERNEL_GRU, .infer = infer_recurrent,
      QS_MORE(QS_HISTORY(.upgrade = upgrade_recurrent), .pack = pack_recurrent),
      .lower = lower_recurrent);
QS_OP(rnn, .name = "RNN", .min_in = 3, .max_in = 6, .max_out = 2, QS_ATTRS(rnn_attrs),
      .traits = QS_OMITS_OUTPUTS, .weight_axis = 1, .weight_inputs = 1 << 1 | 1 << 2,
      .macs = QS_MACS_RECURRENT, .kernel = QS_KERNEL_RNN, .infer = infer_recurrent,
      QS_MORE(QS_HISTORY(.upgrade = upgrade_recurrent), .pack = pack_recurrent),
      .lower = lower_recurrent);
QS_OP(qsim_lstm, .domain = QS_DOMAIN_QSIM, .name = "LSTM", .min_in = 3, .max_in = 8, .max_out = 3,
      QS_ATTRS(lstm_attrs), .traits = QS_OMITS_OUTPUTS | QS_INTEGER, .weight_inputs = 1 << 2,
      .kernel = QS_KERNEL_LSTM, .infer = infer_recurrent, QS_MORE(.pack = pack_recurrent),
      .lower = lower_recurrent);
