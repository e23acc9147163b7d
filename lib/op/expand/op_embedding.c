/* SPDX-License-Identifier: MIT */
/*
 * EmbedLayerNormalization of ONNX Runtime: rows of three tables (words, positions, segments) are
 * summed and normalized. Inputs: word ids, segment ids, word table, position table, segment table,
 * scale, bias, mask, positions. Outputs: result, number of words in the mask, the sum.
 * QEmbedLayerNormalization has the tables, scale and bias in 8 bits, then after the mask their
 * scales and their zero points; no positions and no sum.
 */
#include "op/expand.h"

enum { WORDS, SEGMENTS, WORD_TABLE, POSITION_TABLE, SEGMENT_TABLE, SCALE, SHIFT, MASK, POSITIONS };
/* Distances from the index of a table to those of its scale and its zero point. */
enum { TO_SCALE = POSITIONS - WORD_TABLE, TO_ZERO = TO_SCALE + SHIFT + 1 - WORD_TABLE };

static bool is_quantized(const qs_node *n) {
    return n->op_type[0] == 'Q';
}

/* Checks the scale and the zero point of a table. */
static int check_parameters(const qs_infer *x, int32_t table) {
    const qs_value *zero = qs_infer_in(x, table + TO_ZERO);
    if (!qs_infer_in(x, table + TO_SCALE) || !zero)
        return qs_infer_fail(x, QSIM_E_GRAPH, "input %d has no scale or no zero point", (int)table);
    const int code = qs_infer_any_scale(x, table + TO_SCALE);
    return code ? code : qs_infer_same_type(x, table, table + TO_ZERO);
}

QS_COLD static int infer_embedding(qs_infer *x) {
    static const int32_t needed[] = {WORD_TABLE, POSITION_TABLE, SCALE, SHIFT};
    const qs_value *ids = x->in[WORDS], *table = x->in[WORD_TABLE];
    const bool quantized = is_quantized(x->node);
    int code = QSIM_OK;
    for (size_t i = 0; i < QS_COUNT(needed); i++)
        if (!qs_infer_in(x, needed[i]))
            return qs_infer_fail(x, QSIM_E_GRAPH, "input %d is left out", (int)needed[i]);
    for (int32_t i = WORDS; i <= POSITIONS - quantized && !code; i++) {
        const bool ints = i < WORD_TABLE || i > SHIFT;
        if (!qs_infer_in(x, i))
            continue;
        code = qs_infer_type(x, i, ints ? QS_T(QSIM_INT32) : quantized ? QS_T_8BIT : QS_T_FLOAT);
        if (!code && !ints && quantized)
            code = check_parameters(x, i);
    }
    if (!code)
        code = qs_infer_rank(x, WORDS, 2);
    if (!code)
        code = qs_infer_rank(x, WORD_TABLE, 2);
    if (!code && !qs_infer_in(x, SEGMENTS) != !qs_infer_in(x, SEGMENT_TABLE))
        code = qs_infer_fail(x, QSIM_E_VALUE,
                             "segment ids without their table, or the table without them");
    if (code || ids->rank < 0 || table->rank < 0)
        return code ? code : qs_infer_unknown(x, QSIM_FLOAT);
    const qs_dim y[3] = {ids->dims[0], ids->dims[1], table->dims[1]};
    code = qs_infer_out(x, 0, QSIM_FLOAT, 3, y);
    if (!code)
        code = qs_infer_out(x, 1, QSIM_INT32, 1, y);
    return code || quantized ? code : qs_infer_out(x, 2, QSIM_FLOAT, 3, y);
}

/* Numbers of input `table` as floats. */
static qs_id floats(qs_expand *e, int32_t table, qs_id numbers) {
    return is_quantized(&e->graph->nodes[e->node_id])
               ? qs_expand_add(e, "DequantizeLinear", numbers, qs_expand_in(e, table + TO_SCALE),
                               qs_expand_in(e, table + TO_ZERO))
               : numbers;
}

static qs_id rows(qs_expand *e, int32_t table, qs_id ids) {
    return floats(e, table, qs_expand_two(e, "Gather", qs_expand_in(e, table), ids));
}

/* The positions 0, 1, ... of the words of a batch. */
static qs_id counted(qs_expand *e) {
    const qs_id sizes = qs_expand_one(e, "Shape", qs_expand_in(e, WORDS));
    const qs_id count = qs_expand_two(e, "Gather", sizes, qs_expand_number(e, QSIM_INT64, 1));
    return qs_expand_add(e, "Range", qs_expand_number(e, QSIM_INT64, 0), count,
                         qs_expand_number(e, QSIM_INT64, 1));
}

/* The number of words in each batch's mask; without a mask, 0. */
static qs_id words_of(qs_expand *e) {
    const qs_id mask = qs_expand_in(e, MASK);
    const qs_id of = mask == QS_NONE ? qs_expand_in(e, WORDS) : mask;
    const qs_id ones = mask == QS_NONE ? qs_expand_two(e, "Sub", of, of) : of;
    const qs_id y = qs_expand_two(e, "ReduceSum", ones, qs_expand_list(e, (const int64_t[]){1}, 1));
    qs_expand_int(e, y, "keepdims", 0);
    return y;
}

static void expand_embedding(qs_expand *e) {
    const qs_node n = *e->node;
    const qs_id given = is_quantized(&n) ? QS_NONE : qs_expand_in(e, POSITIONS);
    const qs_id segments = qs_expand_in(e, SEGMENTS);
    const float epsilon = qs_node_float(&n, "epsilon", 1e-12f);
    if (qs_expand_stays(e))
        return;
    qs_id sum = qs_expand_two(e, "Add", rows(e, WORD_TABLE, qs_expand_in(e, WORDS)),
                              rows(e, POSITION_TABLE, given == QS_NONE ? counted(e) : given));
    if (segments != QS_NONE)
        sum = qs_expand_two(e, "Add", sum, rows(e, SEGMENT_TABLE, segments));
    const qs_id y =
        qs_expand_add(e, "LayerNormalization", sum, floats(e, SCALE, qs_expand_in(e, SCALE)),
                      floats(e, SHIFT, qs_expand_in(e, SHIFT)));
    qs_expand_float(e, y, "epsilon", epsilon);
    e->out[0] = y;
    if (n.output_count > 1 && n.outputs[1] != QS_NONE)
        e->out[1] = words_of(e);
    e->out[2] = sum;
}

static const qs_attr_rule embedding_attrs[] = {{"epsilon", QSIM_ATTR_FLOAT, 1, 0},
                                               {"mask_index_type", QSIM_ATTR_INT, 1, 0}};

QS_OP(ms_embedding, .domain = QS_DOMAIN_MICROSOFT, .name = "EmbedLayerNormalization", .min_in = 1,
      .max_in = 9, .max_out = 3, QS_ATTRS(embedding_attrs), .traits = QS_PLAIN,
      .setting_inputs = 1 << WORDS | 1 << SEGMENTS | 1 << MASK | 1 << POSITIONS,
      .infer = infer_embedding, .expand = expand_embedding);
/* Scales and zero points of the three tables; SCALE and SHIFT are operands with theirs. */
#define TABLE_PARAMETERS (7 << (WORD_TABLE + TO_SCALE) | 7 << (WORD_TABLE + TO_ZERO))

QS_OP(ms_qembedding, .domain = QS_DOMAIN_MICROSOFT, .name = "QEmbedLayerNormalization", .min_in = 1,
      .max_in = 18, .max_out = 2, .attrs = embedding_attrs, .attr_count = 1, .traits = QS_PLAIN,
      .setting_inputs = 1 << WORDS | 1 << SEGMENTS | 1 << MASK | TABLE_PARAMETERS,
      QS_MORE(QS_OPERANDS(.w = {SCALE, SCALE + TO_SCALE, SCALE + TO_ZERO},
                          .x = {{SHIFT, SHIFT + TO_SCALE, SHIFT + TO_ZERO}})),
      .infer = infer_embedding, .expand = expand_embedding);
