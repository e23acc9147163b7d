/* SPDX-License-Identifier: MIT */
/*
 * ONNX Runtime's quantized operators that are expanded into others: integer products with float
 * results (MatMulIntegerToFloat, DynamicQuantizeMatMul), QGemm, QLinearWhere, QLinearReduceMean,
 * DynamicQuantizeLSTM. Sums of a product are exact integers; float results are float(sum) * (scale
 * of a * scale of b) + bias.
 */
#include "op/expand.h"

/* ---- products ---- */

QS_COLD static int check_floats(const qs_infer *x, int32_t first, int32_t count) {
    int code = QSIM_OK;
    for (int32_t i = first; i < first + count && !code; i++)
        code = qs_infer_in(x, i) ? qs_infer_type(x, i, QS_T_FLOAT) : QSIM_OK;
    return code;
}

/* Applies MatMul's shape rule to inputs 0 and 1 as if they were floats. */
QS_COLD static int infer_product(qs_infer *x, bool quantizes, int32_t bias) {
    qs_value in[2] = {*x->in[0], *x->in[1]};
    int code = qs_infer_type(x, 0, quantizes ? QS_T_FLOAT : QS_T_8BIT);
    if (!code)
        code = qs_infer_type(x, 1, QS_T_8BIT);
    if (!code)
        code = check_floats(x, bias, 1);
    in[0].dtype = in[1].dtype = QSIM_FLOAT;
    return code ? code : qs_expand_infer(x, "MatMul", in, 2);
}

/* float(a b) * scale + bias */
static qs_id product(qs_expand *e, const qs_id in[4], qs_id scale, qs_id bias) {
    const qs_id sums = qs_expand_many(e, "MatMulInteger", in, in[3] == QS_NONE ? 3 : 4, 1);
    const qs_id floats = qs_expand_cast(e, sums, QSIM_FLOAT);
    const qs_id y = qs_expand_two(e, "Mul", floats, scale);
    return bias == QS_NONE ? y : qs_expand_two(e, "Add", y, bias);
}

/* Inputs: a, b, scale of a, scale of b, zero point of a, of b, bias. */
QS_COLD static int infer_tofloat(qs_infer *x) {
    const int code = check_floats(x, 2, 2);
    return code ? code : infer_product(x, false, 6);
}

static void expand_tofloat(qs_expand *e) {
    const qs_id in[4] = {qs_expand_in(e, 0), qs_expand_in(e, 1), qs_expand_in(e, 4),
                         qs_expand_in(e, 5)};
    const qs_id scale = qs_expand_two(e, "Mul", qs_expand_in(e, 2), qs_expand_in(e, 3));
    e->out[0] = product(e, in, scale, qs_expand_in(e, 6));
}

/* Inputs: a, b, scale of b, zero point of b, bias. */
QS_COLD static int infer_dynamic(qs_infer *x) {
    const int code = check_floats(x, 2, 1);
    return code ? code : infer_product(x, true, 4);
}

static void expand_dynamic(qs_expand *e) {
    const qs_id x = qs_expand_in(e, 0);
    const qs_id q = qs_expand_many(e, "DynamicQuantizeLinear", &x, 1, 3);
    const int32_t step = e->code ? 0 : 1;
    const qs_id in[4] = {q, qs_expand_in(e, 1), q + 2 * step, qs_expand_in(e, 3)};
    const qs_id scale = qs_expand_two(e, "Mul", q + step, qs_expand_in(e, 2));
    e->out[0] = product(e, in, scale, qs_expand_in(e, 4));
}

QS_OP(ms_matmulintegertofloat, .domain = QS_DOMAIN_MICROSOFT, .name = "MatMulIntegerToFloat",
      .min_in = 4, .max_in = 7, .traits = QS_PLAIN,
      QS_MORE(QS_OPERANDS(.x = {{0, 2, 4}}, .w = {1, 3, 5})), .infer = infer_tofloat,
      .expand = expand_tofloat);
QS_OP(ms_dynamicquantizematmul, .domain = QS_DOMAIN_MICROSOFT, .name = "DynamicQuantizeMatMul",
      .min_in = 3, .max_in = 5, .traits = QS_PLAIN, QS_MORE(QS_OPERANDS(.w = {1, 2, 3})),
      .infer = infer_dynamic, .expand = expand_dynamic);

/* ---- QGemm ---- */

enum { A, A_SCALE, A_ZERO, B, B_SCALE, B_ZERO, C, Y_SCALE, Y_ZERO };

QS_COLD static int infer_qgemm(qs_infer *x) {
    qs_value in[3] = {*x->in[A], *x->in[B], *x->in[A]};
    const qs_value *c = qs_infer_in(x, C), *zero = qs_infer_in(x, Y_ZERO);
    int code = qs_infer_type(x, A, QS_T_8BIT);
    if (!code)
        code = qs_infer_type(x, B, QS_T_8BIT);
    if (!code && c)
        code = qs_infer_type(x, C, QS_T(QSIM_INT32));
    if (!code && !qs_infer_in(x, Y_SCALE) != !zero)
        code = qs_infer_fail(
            x, QSIM_E_GRAPH,
            "the result's scale without its zero point, or the zero point without it");
    if (code)
        return code;
    in[0].dtype = in[1].dtype = QSIM_FLOAT;
    if (c)
        in[2] = *c;
    in[2].dtype = QSIM_FLOAT;
    qs_infer own = *x;
    own.in[1] = x->in[B];
    own.in[2] = c;
    code = qs_expand_infer(&own, "Gemm", in, 3);
    if (!code && zero)
        x->out[0].dtype = zero->dtype;
    return code;
}

static qs_id transposed(qs_expand *e, int32_t index, const char *name) {
    const qs_id x = qs_expand_in(e, index);
    if (!qs_node_int(&e->graph->nodes[e->node_id], name, 0))
        return x;
    return qs_expand_transpose(e, x, (const int64_t[]){1, 0}, 2);
}

/*
 * Without a scale for the result it is float; with one, sums are requantized as in QLinearMatMul,
 * with C as its bias if C is a list of columns.
 */
static void expand_qgemm(qs_expand *e) {
    const float alpha = qs_node_float(e->node, "alpha", 1.0f);
    const qs_value *c = qs_expand_value(e, C);
    const bool list = !c || (c->rank == 1 && c->data);
    qs_id in[9] = {0}, c_id = qs_expand_in(e, C);
    if (e->standard)
        return;
    in[0] = transposed(e, A, "transA");
    in[3] = transposed(e, B, "transB");
    in[1] = qs_expand_in(e, A_SCALE);
    if (alpha != 1.0f)
        in[1] = qs_expand_two(e, "Mul", in[1], qs_expand_number(e, QSIM_FLOAT, (double)alpha));
    if (qs_expand_in(e, Y_SCALE) != QS_NONE && list) {
        const int32_t from[] = {2, A_ZERO, 4, B_SCALE, 5, B_ZERO, 6, Y_SCALE, 7, Y_ZERO, 8, C};
        for (size_t i = 0; i < QS_COUNT(from); i += 2)
            in[from[i]] = qs_expand_in(e, from[i + 1]);
        e->out[0] = qs_expand_own(e, "QLinearMatMul", in, c ? 9 : 8, 1);
        return;
    }
    const qs_id factors[4] = {in[0], in[3], qs_expand_in(e, A_ZERO), qs_expand_in(e, B_ZERO)};
    const qs_id scale = qs_expand_two(e, "Mul", in[1], qs_expand_in(e, B_SCALE));
    qs_id sums = qs_expand_many(e, "MatMulInteger", factors, 4, 1);
    if (c_id != QS_NONE)
        sums = qs_expand_two(e, "Add", sums, c_id);
    const qs_id floats = qs_expand_cast(e, sums, QSIM_FLOAT);
    e->out[0] = qs_expand_two(e, "Mul", floats, scale);
    if (qs_expand_in(e, Y_SCALE) != QS_NONE)
        e->out[0] = qs_expand_add(e, "QuantizeLinear", e->out[0], qs_expand_in(e, Y_SCALE),
                                  qs_expand_in(e, Y_ZERO));
}

static const qs_attr_rule qgemm_attrs[] = {{"alpha", QSIM_ATTR_FLOAT, 1, 0},
                                           {"transA", QSIM_ATTR_INT, 1, 0},
                                           {"transB", QSIM_ATTR_INT, 1, 0}};

QS_OP(ms_qgemm, .domain = QS_DOMAIN_MICROSOFT, .name = "QGemm", .min_in = 6, .max_in = 9,
      QS_ATTRS(qgemm_attrs), .traits = QS_PLAIN,
      QS_MORE(QS_OPERANDS(.x = {{A, A_SCALE, A_ZERO}}, .w = {B, B_SCALE, B_ZERO},
                          .y = {0, Y_SCALE, Y_ZERO}, .prefix = 1)),
      .infer = infer_qgemm, .expand = expand_qgemm);

/* ---- computed in floats ---- */

static qs_id floats_of(qs_expand *e, int32_t x) {
    return qs_expand_add(e, "DequantizeLinear", qs_expand_in(e, x), qs_expand_in(e, x + 1),
                         qs_expand_in(e, x + 2));
}

/* Quantizes y to output 0, with scale and zero point at inputs `scale` and the next. */
static void quantize_output(qs_expand *e, qs_id y, int32_t scale) {
    e->out[0] =
        qs_expand_add(e, "QuantizeLinear", y, qs_expand_in(e, scale), qs_expand_in(e, scale + 1));
}

/* Inputs: condition, x and y each with scale and zero point, scale and zero point of the result. */
QS_COLD static int infer_where(qs_infer *x) {
    int code = qs_infer_type(x, 1, QS_T_8BIT);
    if (!code)
        code = qs_infer_same_type(x, 1, 4);
    int32_t rank = -1;
    qs_dim dims[QSIM_MAX_RANK], all[QSIM_MAX_RANK];
    if (!code)
        code = qs_infer_type(x, 0, QS_T(QSIM_BOOL));
    if (!code)
        code = qs_infer_broadcast(x, x->in[1], x->in[4], &rank, dims);
    const qs_value both = {.rank = rank, .dims = dims};
    if (!code)
        code = qs_infer_broadcast(x, x->in[0], &both, &rank, all);
    return code ? code : qs_infer_out(x, 0, x->in[1]->dtype, rank, all);
}

static void expand_where(qs_expand *e) {
    if (!e->standard)
        quantize_output(
            e, qs_expand_add(e, "Where", qs_expand_in(e, 0), floats_of(e, 1), floats_of(e, 4)), 7);
}

QS_OP(ms_qlinearwhere, .domain = QS_DOMAIN_MICROSOFT, .name = "QLinearWhere", .min_in = 9,
      .traits = QS_PLAIN,
      QS_MORE(QS_OPERANDS(.x = {{1, 2, 3}, {4, 5, 6}}, .y = {0, 7, 8}, .prefix = 7)),
      .infer = infer_where, .expand = expand_where);

/* Inputs: x, scale, zero point, scale and zero point of the result. */
QS_COLD static int infer_mean(qs_infer *x) {
    qs_value in = *x->in[0];
    int code = qs_infer_type(x, 0, QS_T_8BIT);
    in.dtype = QSIM_FLOAT;
    if (!code)
        code = qs_expand_infer(x, "ReduceMean", &in, 1);
    if (!code)
        x->out[0].dtype = x->in[0]->dtype;
    return code;
}

static void expand_mean(qs_expand *e) {
    const qs_attr *axes = qs_node_attr(e->node, "axes");
    qs_id in[2];
    if (e->standard)
        return;
    in[0] = floats_of(e, 0);
    in[1] = axes ? qs_expand_list(e, axes->u.ints, axes->count) : QS_NONE;
    const qs_id y = qs_expand_many(e, "ReduceMean", in, axes ? 2 : 1, 1);
    qs_expand_copy(e, y, "keepdims", "keepdims");
    quantize_output(e, y, 3);
}

static const qs_attr_rule mean_attrs[] = {{"axes", QSIM_ATTR_INTS, 1, 0},
                                          {"keepdims", QSIM_ATTR_INT, 1, 0}};

QS_OP(ms_qlinearreducemean, .domain = QS_DOMAIN_MICROSOFT, .name = "QLinearReduceMean", .min_in = 5,
      QS_ATTRS(mean_attrs), .traits = QS_PLAIN,
      QS_MORE(QS_OPERANDS(.x = {{0, 1, 2}}, .y = {0, 3, 4}, .prefix = 7)), .infer = infer_mean,
      .expand = expand_mean);

/* ---- DynamicQuantizeLSTM ---- */

/*
 * Inputs: x, w, r, bias, lengths, states, peepholes; w and r are (directions, inputs, gates),
 * LSTM's transposed, in 8 bits with a scale and zero point per direction, or per column of its
 * gates. x is rounded to 8 bits with one scale for all of it, as ONNX Runtime does, and the state
 * in each step.
 */
enum { LSTM_W = 1, LSTM_R, LSTM_BIAS, LSTM_INPUTS = 8, W_SCALE = 8, R_SCALE = 10 };

QS_COLD static int infer_dynamiclstm(qs_infer *x) {
    qs_value in[3] = {*x->in[0], *x->in[1], *x->in[2]};
    qs_dim dims[2][3];
    int code = QSIM_OK;
    for (int32_t i = LSTM_W; i <= LSTM_R && !code; i++) {
        const int32_t scale = i == LSTM_W ? W_SCALE : R_SCALE;
        const qs_value *v = qs_infer_in(x, scale);
        code = qs_infer_type(x, i, QS_T_8BIT);
        if (!code)
            code = check_floats(x, scale, 1);
        if (!code && (!v || (v->rank >= 0 && v->rank != 1 && v->rank != 2)))
            code = qs_infer_fail(x, QSIM_E_SHAPE, "input %d is no list of scales", (int)scale);
        if (!code && qs_infer_in(x, scale + 1))
            code = qs_infer_type(x, scale + 1, QS_T(x->in[i]->dtype));
        in[i].dtype = QSIM_FLOAT;
        if (in[i].rank != 3)
            continue;
        dims[i - 1][0] = in[i].dims[0];
        dims[i - 1][1] = in[i].dims[2];
        dims[i - 1][2] = in[i].dims[1];
        in[i].dims = dims[i - 1];
    }
    return code ? code : qs_expand_infer(x, "LSTM", in, 3);
}

/* A list for all columns of W: one number, or one for each column, of each direction. */
static qs_id lstm_columns(qs_expand *e, int32_t index) {
    const int64_t last = 1, all = -1, sizes[] = {1, qs_expand_value(e, LSTM_W)->dims[2].size};
    const qs_value *v = qs_expand_value(e, index);
    qs_id x = qs_expand_in(e, index);
    if (!v)
        return QS_NONE;
    if (v->rank == 1) {
        x = qs_expand_two(e, "Unsqueeze", x, qs_expand_list(e, &last, 1));
        x = qs_expand_two(e, "Expand", x, qs_expand_list(e, sizes, 2));
    }
    return qs_expand_reshape(e, x, &all, 1);
}

/* The inputs' part of all gates: one product for both directions, and the sum of both biases. */
static qs_id lstm_gates(qs_expand *e) {
    static const int64_t halves[] = {0, 2, -1}, columns[] = {0, -1}, all = -1, half = 1;
    const qs_id x = qs_expand_in(e, 0);
    const qs_id q = qs_expand_many(e, "DynamicQuantizeLinear", &x, 1, 3);
    const int32_t step = e->code ? 0 : 1;
    qs_id w = qs_expand_transpose(e, qs_expand_in(e, LSTM_W), (const int64_t[]){1, 0, 2}, 3);
    w = qs_expand_reshape(e, w, columns, 2);
    qs_id bias = qs_expand_in(e, LSTM_BIAS);
    if (bias != QS_NONE) {
        bias = qs_expand_reshape(e, bias, halves, 3);
        bias = qs_expand_two(e, "ReduceSum", bias, qs_expand_list(e, &half, 1));
        bias = qs_expand_reshape(e, bias, &all, 1);
    }
    const qs_id in[4] = {q, w, q + 2 * step, lstm_columns(e, W_SCALE + 1)};
    const qs_id scale = qs_expand_two(e, "Mul", q + step, lstm_columns(e, W_SCALE));
    return product(e, in, scale, bias);
}

/* The floats of weights for LSTM; their scales have one axis, or the second of two. */
static qs_id lstm_weights(qs_expand *e, int32_t index, int32_t scale) {
    const bool columns = qs_expand_value(e, scale)->rank == 2;
    const int64_t all = -1;
    qs_id in[3] = {qs_expand_in(e, index), qs_expand_in(e, scale), qs_expand_in(e, scale + 1)};
    for (int32_t i = 1; i < 3 && columns; i++)
        if (in[i] != QS_NONE)
            in[i] = qs_expand_reshape(e, in[i], &all, 1);
    const qs_id y = qs_expand_add(e, "DequantizeLinear", in[0], in[1], in[2]);
    qs_expand_int(e, y, "axis", columns ? 2 : 0);
    return qs_expand_transpose(e, y, (const int64_t[]){0, 2, 1}, 3);
}

/* Whether DequantizeLinear has a form for these scales. */
static bool has_axis(const qs_expand *e, int32_t scale) {
    const qs_value *v = qs_expand_value(e, scale);
    return v->rank == 1 || (v->rank == 2 && v->dims[0].size == 1);
}

static void expand_dynamiclstm(qs_expand *e) {
    static const char *const names[] = {
        "activation_alpha", "activation_beta", "activations", "clip",
        "direction",        "hidden_size",     "input_forget"};
    const int32_t outputs = e->node->output_count;
    const qs_value *w = qs_expand_value(e, LSTM_W);
    qs_id in[LSTM_INPUTS];
    const bool floats = e->only_onnx && has_axis(e, W_SCALE) && has_axis(e, R_SCALE);
    if ((e->standard && !floats) || w->rank != 3 || w->dims[2].size < 0)
        return;
    for (int32_t i = 0; i < LSTM_INPUTS; i++)
        in[i] = qs_expand_in(e, i);
    if (floats) {
        in[1] = lstm_weights(e, LSTM_W, W_SCALE);
        in[2] = lstm_weights(e, LSTM_R, R_SCALE);
    } else {
        in[0] = lstm_gates(e);
        in[1] = qs_expand_in(e, R_SCALE);
        in[3] = qs_expand_in(e, R_SCALE + 1);
    }
    const qs_id y = floats ? qs_expand_many(e, "LSTM", in, LSTM_INPUTS, outputs)
                           : qs_expand_own(e, "LSTM", in, LSTM_INPUTS, outputs);
    for (size_t i = 0; i < QS_COUNT(names); i++)
        qs_expand_copy(e, y, names[i], names[i]);
    for (int32_t i = 0; i < outputs && !e->code; i++)
        e->out[i] = y + i;
}

static const qs_attr_rule lstm_attrs[] = {
    {"activation_alpha", QSIM_ATTR_FLOATS, 1, 0}, {"activation_beta", QSIM_ATTR_FLOATS, 1, 0},
    {"activations", QSIM_ATTR_STRINGS, 1, 0},     {"clip", QSIM_ATTR_FLOAT, 1, 0},
    {"direction", QSIM_ATTR_STRING, 1, 0},        {"hidden_size", QSIM_ATTR_INT, 1, 0},
    {"input_forget", QSIM_ATTR_INT, 1, 0}};

QS_OP(ms_dynamicquantizelstm, .domain = QS_DOMAIN_MICROSOFT, .name = "DynamicQuantizeLSTM",
      .min_in = 3, .max_in = 12, .max_out = 3, QS_ATTRS(lstm_attrs), .traits = QS_OMITS_OUTPUTS,
      .setting_inputs = 15 << LSTM_INPUTS, .infer = infer_dynamiclstm,
      .expand = expand_dynamiclstm);
