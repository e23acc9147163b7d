/* SPDX-License-Identifier: MIT */
/*
 * ONNX Runtime's MultiHeadAttention and Attention, expanded into ai.onnx's Attention: heads are
 * packed in the last axis, biases are added before, masks of keys become numbers added to scores.
 * ONNX Runtime's Attention also includes the product with its weights.
 */
#include "op/expand.h"

enum { Q, K, V, BIAS, PADDING, SCORES_BIAS, PAST_KEY, PAST_VALUE, PAST_LENGTH };

/* ---- MultiHeadAttention ---- */

/*
 * Sizes; -1: unknown. Ranks: query 3, or 5 if it also holds keys and values; keys 3, 4 if heads are
 * an axis, or 5 if they also hold values.
 */
typedef struct form {
    int64_t heads, batches, queries, fresh, past, width, v_width;
} form;

static int64_t size_at(const qs_value *v, int32_t axis) {
    return v && v->rank > axis ? v->dims[axis].size : -1;
}

static int64_t per_head(int64_t all, int64_t heads) {
    return all < 0 ? -1 : all / heads;
}

static void read_keys(const qs_value *k, const qs_value *v, form *f) {
    const bool cache_form = k->rank == 4;
    f->fresh = size_at(k, cache_form ? 2 : 1);
    f->v_width = k->rank == 5        ? size_at(k, 4)
                 : v && v->rank == 4 ? size_at(v, 3)
                                     : per_head(size_at(v, 2), f->heads);
}

static int read_form(const qs_infer *x, form *f) {
    const qs_value *q = x->in[Q], *k = qs_infer_in(x, K), *v = qs_infer_in(x, V);
    *f = (form){.heads = qs_node_int(x->node, "num_heads", 0), .past = 0};
    if (f->heads < 1)
        return qs_infer_fail(x, QSIM_E_VALUE, "num_heads is %lld", (long long)f->heads);
    const bool whole = q->rank == 5 && !k && !v, keys = k && k->rank == 5 && !v && q->rank == 3;
    const bool cache_form =
        k && v && q->rank == 3 && k->rank == v->rank && (k->rank == 3 || k->rank == 4);
    if (q->rank >= 0 && (!k || k->rank >= 0) && !whole && !keys && !cache_form)
        return qs_infer_fail(x, QSIM_E_UNSUPPORTED,
                             "query, key and value in this form are not supported");
    f->batches = size_at(q, 0);
    f->queries = size_at(q, 1);
    f->fresh = f->queries;
    f->width = whole ? size_at(q, 4) : per_head(size_at(q, 2), f->heads);
    f->v_width = f->width;
    if (k)
        read_keys(k, v, f);
    f->past = qs_infer_in(x, PAST_KEY) ? size_at(qs_infer_in(x, PAST_KEY), 2) : 0;
    return QSIM_OK;
}

static int check_inputs(const qs_infer *x) {
    const qs_value *padding = qs_infer_in(x, PADDING);
    int code = QSIM_OK;
    for (int32_t i = Q; i <= PAST_VALUE && !code; i++)
        if (qs_infer_in(x, i))
            code = qs_infer_type(x, i, i == PADDING ? QS_T(QSIM_INT32) : QS_T_FLOAT);
    for (int32_t i = PAST_LENGTH; i < x->node->input_count && !code; i++)
        if (qs_infer_in(x, i))
            code = qs_infer_fail(x, QSIM_E_UNSUPPORTED, "input %d is not supported", (int)i);
    if (!code && !qs_infer_in(x, PAST_KEY) != !qs_infer_in(x, PAST_VALUE))
        code = qs_infer_fail(x, QSIM_E_VALUE,
                             "past key without past value, or past value without past key");
    if (!code && padding && (padding->rank < 1 || padding->rank > 3))
        code = qs_infer_fail(x, QSIM_E_UNSUPPORTED, "a mask of keys of rank %d is not supported",
                             (int)padding->rank);
    const int64_t n = size_at(padding, 0), batches = size_at(x->in[Q], 0);
    if (!code && padding && padding->rank == 1 && n >= 0 && batches >= 0 && n != batches)
        code = qs_infer_fail(x, QSIM_E_UNSUPPORTED,
                             "a mask of keys of %lld numbers is not supported", (long long)n);
    return code;
}

QS_COLD static int infer_multihead(qs_infer *x) {
    form f;
    int code = check_inputs(x);
    if (!code)
        code = read_form(x, &f);
    if (code)
        return code;
    const int64_t keys = f.past < 0 || f.fresh < 0 ? -1 : f.past + f.fresh;
    const qs_dim batch = {f.batches, NULL}, heads = {f.heads, NULL}, all = {keys, NULL};
    const qs_dim y[3] = {
        batch, {f.queries, NULL}, {f.v_width < 0 ? -1 : f.heads * f.v_width, NULL}};
    code = qs_infer_out(x, 0, QSIM_FLOAT, 3, y);
    for (int32_t i = 1; i <= 2 && !code; i++)
        code =
            qs_infer_out(x, i, QSIM_FLOAT, 4,
                         (const qs_dim[]){batch, heads, all, {i == 1 ? f.width : f.v_width, NULL}});
    return code;
}

/* Reshapes (batch, rows, heads, size) to (batch, rows, heads * size). */
static qs_id side_by_side(qs_expand *e, qs_id x) {
    return qs_expand_reshape(e, x, (const int64_t[]){0, 0, -1}, 3);
}

/* Brings (batch, heads, rows, size) into the same form. */
static qs_id joined(qs_expand *e, qs_id x) {
    return side_by_side(e, qs_expand_transpose(e, x, (const int64_t[]){0, 2, 1, 3}, 4));
}

/* Brings (batch, rows, heads * size) into (batch, heads, rows, size). */
static qs_id by_heads(qs_expand *e, qs_id x, int64_t heads) {
    const qs_id cut = qs_expand_reshape(e, x, (const int64_t[]){0, 0, heads, -1}, 4);
    return qs_expand_transpose(e, cut, (const int64_t[]){0, 2, 1, 3}, 4);
}

/* Whether keys and values are (batch, heads, rows, size), as a cache has them, and stay so. */
static bool keeps_heads(qs_expand *e) {
    const qs_value *k = qs_expand_value(e, K);
    return k && k->rank == 4 && qs_expand_in(e, BIAS) == QS_NONE;
}

/* Makes query, key and value, each (batch, rows, heads * size); heads > 0: with an axis of these.
 */
static void split_inputs(qs_expand *e, int64_t heads, qs_id in[3]) {
    static const int64_t ones[3] = {1, 1, 1};
    const int32_t q_rank = qs_expand_value(e, Q)->rank;
    const int32_t k_rank = qs_expand_value(e, K) ? qs_expand_value(e, K)->rank : 0;
    for (int32_t i = 0; i < 3; i++)
        in[i] = qs_expand_in(e, i);
    if (q_rank == 5 || k_rank == 5) {
        const int32_t first = q_rank == 5 ? 0 : 1, n = 3 - first;
        const qs_id parts = qs_expand_split(e, in[first], 3, ones, n);
        for (int32_t i = 0; i < n && !e->code; i++)
            in[first + i] = side_by_side(e, parts + i);
    }
    if (heads)
        in[Q] = by_heads(e, in[Q], heads);
    for (int32_t i = 1; i < 3 && k_rank == 4 && !heads; i++)
        in[i] = joined(e, in[i]);
}

static void add_biases(qs_expand *e, const form *f, qs_id in[3]) {
    const int64_t q = f->heads * f->width, sizes[3] = {q, q, f->heads * f->v_width};
    if (qs_expand_in(e, BIAS) == QS_NONE)
        return;
    const qs_id parts = qs_expand_split(e, qs_expand_in(e, BIAS), 0, sizes, 3);
    for (int32_t i = 0; i < 3 && !e->code; i++)
        in[i] = qs_expand_two(e, "Add", in[i], parts + i);
}

static qs_id unsqueezed(qs_expand *e, qs_id x, const int64_t *axes, int32_t n) {
    return qs_expand_two(e, "Unsqueeze", x, qs_expand_list(e, axes, n));
}

/* Size of axis `axis` of a value, as int32. */
static qs_id size_of(qs_expand *e, qs_id x, int64_t axis) {
    const qs_id sizes = qs_expand_one(e, "Shape", x);
    const qs_id size =
        qs_expand_two(e, "Gather", sizes, qs_expand_number(e, QSIM_INT64, (double)axis));
    const qs_id y = qs_expand_one(e, "Cast", size);
    qs_expand_int(e, y, "to", QSIM_INT32);
    return y;
}

/* Turns lengths of batches into a mask (batch, keys): a key's index is below its batch's length. */
static qs_id mask_of_lengths(qs_expand *e, qs_id lengths) {
    const int32_t from = qs_expand_in(e, K) == QS_NONE ? Q : K;
    const qs_id past = qs_expand_in(e, PAST_KEY);
    const bool cache_form = from == K && qs_expand_value(e, K)->rank == 4;
    qs_id count = size_of(e, qs_expand_in(e, from), cache_form ? 2 : 1);
    if (past != QS_NONE)
        count = qs_expand_two(e, "Add", count, size_of(e, past, 2));
    const qs_id keys = qs_expand_add(e, "Range", qs_expand_number(e, QSIM_INT32, 0), count,
                                     qs_expand_number(e, QSIM_INT32, 1));
    return qs_expand_two(e, "Less", keys, unsqueezed(e, lengths, (const int64_t[]){1}, 1));
}

/* Repeats a mask (batch, 1, 1, keys) for each row of the query, as ONNX Runtime wants it. */
static qs_id for_each_row(qs_expand *e, qs_id mask, qs_id query) {
    const qs_id one = qs_expand_list(e, (const int64_t[]){1}, 1);
    const qs_id rows = qs_expand_one(e, "Shape", query);
    qs_expand_int(e, rows, "start", 1);
    qs_expand_int(e, rows, "end", 2);
    const qs_id shape = qs_expand_concat(e, (const qs_id[]){rows, one}, 2, 0);
    return qs_expand_two(e, "Expand", mask, shape);
}

/* Makes the tensor added to scores: the bias, and a large negative number for masked keys. */
static qs_id mask_of(qs_expand *e, qs_id query) {
    static const int64_t axes[] = {1, 2};
    const float far = qs_node_float(&e->graph->nodes[e->node_id], "mask_filter_value", -10000.0f);
    const qs_id given = qs_expand_in(e, PADDING), bias = qs_expand_in(e, SCORES_BIAS);
    if (given == QS_NONE)
        return bias;
    const int32_t rank = qs_expand_value(e, PADDING)->rank;
    qs_id kept = given;
    if (rank == 1)
        kept = mask_of_lengths(e, given);
    else
        kept = qs_expand_two(e, "Greater", given, qs_expand_number(e, QSIM_INT32, 0));
    kept = unsqueezed(e, kept, axes, rank == 3 ? 1 : 2);
    const qs_id mask = qs_expand_add(e, "Where", kept, qs_expand_number(e, QSIM_FLOAT, 0),
                                     qs_expand_number(e, QSIM_FLOAT, (double)far));
    if (bias != QS_NONE)
        return qs_expand_two(e, "Add", mask, bias);
    return e->standard && rank < 3 ? for_each_row(e, mask, query) : mask;
}

static void expand_multihead(qs_expand *e) {
    const qs_infer x = qs_expand_view(e);
    const int32_t outputs = e->node->output_count < 3 ? e->node->output_count : 3;
    const qs_node *n = e->node;
    form f;
    qs_id in[6];
    if (qs_expand_stays(e) || read_form(&x, &f))
        return;
    const bool biased = qs_expand_in(e, BIAS) != QS_NONE;
    if (biased && (f.width < 0 || f.v_width < 0))
        return; /* the sizes of the bias's pieces are unknown */
    const bool causal = qs_node_int(n, "unidirectional", 0) != 0;
    const bool by_head = keeps_heads(e);
    split_inputs(e, by_head ? f.heads : 0, in);
    add_biases(e, &f, in);
    in[3] = mask_of(e, by_head ? qs_expand_in(e, Q) : in[Q]);
    in[4] = qs_expand_in(e, PAST_KEY);
    in[5] = qs_expand_in(e, PAST_VALUE);
    const qs_id y = qs_expand_many(e, "Attention", in, 6, outputs);
    if (!by_head) {
        qs_expand_int(e, y, "q_num_heads", f.heads);
        qs_expand_int(e, y, "kv_num_heads", f.heads);
    }
    qs_expand_int(e, y, "is_causal", causal);
    const float scale = qs_node_float(&e->graph->nodes[e->node_id], "scale", 0);
    if (scale != 0)
        qs_expand_float(e, y, "scale", scale);
    for (int32_t i = 0; i < outputs && !e->code; i++)
        e->out[i] = i == 0 && by_head ? joined(e, y) : y + i;
}

static const qs_attr_rule multihead_attrs[] = {{"num_heads", QSIM_ATTR_INT, 1, 0},
                                               {"mask_filter_value", QSIM_ATTR_FLOAT, 1, 0},
                                               {"scale", QSIM_ATTR_FLOAT, 1, 0},
                                               {"unidirectional", QSIM_ATTR_INT, 1, 0}};

QS_OP(ms_multihead, .domain = QS_DOMAIN_MICROSOFT, .name = "MultiHeadAttention", .min_in = 1,
      .max_in = 10, .max_out = 3, QS_ATTRS(multihead_attrs), .traits = QS_PLAIN,
      .setting_inputs = 1 << PADDING | 1 << SCORES_BIAS, .infer = infer_multihead,
      .expand = expand_multihead);

/* ---- Attention, QAttention ---- */

enum { X, W, B, MASK, PAST, ADDED };
/* QAttention has the first three in 8 bits, with scales and zero points. */
enum { X_SCALE = 3, W_SCALE, Q_MASK, X_ZERO, W_ZERO, Q_PAST };

/* Reads the sizes of query, key and value over all heads; -1: unknown. */
static int read_sizes(const qs_infer *x, int64_t sizes[3]) {
    const int64_t heads = qs_node_int(x->node, "num_heads", 0), all = size_at(x->in[W], 1);
    int32_t count;
    int code = qs_infer_attr_ints(x, "qkv_hidden_sizes", sizes, 3, &count);
    for (int32_t i = 0; i < 3 && !code && count < 0; i++)
        sizes[i] = all < 0 ? -1 : all / 3;
    const int64_t sum = sizes[0] + sizes[1] + sizes[2];
    if (!code && (heads < 1 || (count >= 0 && count != 3) || (all >= 0 && sum != all) ||
                  sizes[0] != sizes[1] || (sizes[0] >= 0 && sizes[0] % heads) ||
                  (sizes[2] >= 0 && sizes[2] % heads)))
        code = qs_infer_fail(x, QSIM_E_SHAPE, "%lld columns of weights for %lld heads",
                             (long long)all, (long long)heads);
    return code;
}

/* Sets the outputs; `types`: of input and weights; `mask_at`, `past_at`: indices of these inputs.
 */
QS_COLD static int infer_from(qs_infer *x, uint32_t types, int32_t mask_at, int32_t past_at) {
    const qs_value *v = x->in[X], *past = qs_infer_in(x, past_at);
    int64_t sizes[3] = {-1, -1, -1};
    int code = qs_infer_type(x, X, types);
    if (!code)
        code = qs_infer_type(x, W, types);
    if (!code && qs_infer_in(x, B))
        code = qs_infer_type(x, B, QS_T_FLOAT);
    if (!code && qs_infer_in(x, mask_at))
        code = qs_infer_type(x, mask_at, QS_T(QSIM_INT32));
    if (!code && (qs_node_int(x->node, "do_rotary", 0) ||
                  qs_node_int(x->node, "past_present_share_buffer", 0)))
        code = qs_infer_fail(x, QSIM_E_UNSUPPORTED,
                             "rotary positions and shared buffers are not supported");
    if (!code)
        code = read_sizes(x, sizes);
    if (!code && ((v->rank >= 0 && v->rank != 3) || (x->in[W]->rank >= 0 && x->in[W]->rank != 2)))
        code = qs_infer_fail(x, QSIM_E_SHAPE, "input and weights have rank %d and %d", (int)v->rank,
                             (int)x->in[W]->rank);
    if (code)
        return code;
    const int64_t heads = qs_node_int(x->node, "num_heads", 0), fresh = size_at(v, 1);
    const int64_t before = past ? size_at(past, 3) : 0;
    const qs_dim y[3] = {{size_at(v, 0), NULL}, {fresh, NULL}, {sizes[2], NULL}};
    const qs_dim cache[5] = {{2, NULL},
                             {size_at(v, 0), NULL},
                             {heads, NULL},
                             {before < 0 || fresh < 0 ? -1 : before + fresh, NULL},
                             {per_head(sizes[2], heads), NULL}};
    code = qs_infer_out(x, 0, QSIM_FLOAT, 3, y);
    return code ? code : qs_infer_out(x, 1, QSIM_FLOAT, 5, cache);
}

QS_COLD static int infer_attention(qs_infer *x) {
    return qs_infer_in(x, ADDED + 1)
               ? qs_infer_fail(x, QSIM_E_UNSUPPORTED, "shared buffers are not supported")
               : infer_from(x, QS_T_FLOAT, MASK, PAST);
}

QS_COLD static int infer_qattention(qs_infer *x) {
    const int code = qs_infer_type(x, X_SCALE, QS_T_FLOAT);
    return code ? code : infer_from(x, QS_T_8BIT, Q_MASK, Q_PAST);
}

/* Half `index` of the cache (2, batch, heads, entries, size). */
static qs_id half_of(qs_expand *e, qs_id past, int64_t index) {
    if (past == QS_NONE)
        return QS_NONE;
    return qs_expand_two(e, "Gather", past, qs_expand_number(e, QSIM_INT64, (double)index));
}

/* `all`: query, key and value side by side, of these sizes. */
static void attend(qs_expand *e, qs_id all, const int64_t sizes[3], qs_id mask, qs_id past,
                   qs_id added) {
    static const char *const names[] = {"num_heads", "mask_filter_value", "scale",
                                        "unidirectional"};
    static const int64_t front[1] = {0};
    const qs_node *n = &e->graph->nodes[e->node_id];
    const bool present = n->output_count > 1 && n->outputs[1] != QS_NONE;
    const qs_id parts = qs_expand_split(e, all, 2, sizes, 3);
    if (e->code)
        return;
    const qs_id in[8] = {parts, parts + 1, parts + 2,           QS_NONE,
                         mask,  added,     half_of(e, past, 0), half_of(e, past, 1)};
    const qs_id y = qs_expand_ms(e, "MultiHeadAttention", in, 8, present ? 3 : 1);
    for (size_t i = 0; i < QS_COUNT(names); i++)
        qs_expand_copy(e, y, names[i], names[i]);
    e->out[0] = y;
    if (!present || e->code)
        return;
    const qs_id halves[2] = {unsqueezed(e, y + 1, front, 1), unsqueezed(e, y + 2, front, 1)};
    e->out[1] = qs_expand_concat(e, halves, 2, 0);
}

static void expand_attention(qs_expand *e) {
    const qs_infer x = qs_expand_view(e);
    int64_t sizes[3];
    if (read_sizes(&x, sizes) || sizes[0] < 0)
        return;
    qs_id all = qs_expand_two(e, "MatMul", qs_expand_in(e, X), qs_expand_in(e, W));
    if (qs_expand_in(e, B) != QS_NONE)
        all = qs_expand_two(e, "Add", all, qs_expand_in(e, B));
    attend(e, all, sizes, qs_expand_in(e, MASK), qs_expand_in(e, PAST), qs_expand_in(e, ADDED));
}

static void expand_qattention(qs_expand *e) {
    static const int32_t from[] = {X, W, X_SCALE, W_SCALE, X_ZERO, W_ZERO, B};
    const qs_infer x = qs_expand_view(e);
    qs_id in[QS_COUNT(from)];
    int64_t sizes[3];
    if (read_sizes(&x, sizes) || sizes[0] < 0)
        return;
    for (size_t i = 0; i < QS_COUNT(from); i++)
        in[i] = qs_expand_in(e, from[i]);
    attend(e, qs_expand_ms(e, "MatMulIntegerToFloat", in, QS_COUNT(from), 1), sizes,
           qs_expand_in(e, Q_MASK), qs_expand_in(e, Q_PAST), QS_NONE);
}

static const qs_attr_rule attention_attrs[] = {
    {"qkv_hidden_sizes", QSIM_ATTR_INTS, 1, 0}, /* not of QAttention */
    {"num_heads", QSIM_ATTR_INT, 1, 0},         {"mask_filter_value", QSIM_ATTR_FLOAT, 1, 0},
    {"scale", QSIM_ATTR_FLOAT, 1, 0},           {"unidirectional", QSIM_ATTR_INT, 1, 0},
    {"do_rotary", QSIM_ATTR_INT, 1, 0},         {"past_present_share_buffer", QSIM_ATTR_INT, 1, 0}};

QS_OP(ms_attention, .domain = QS_DOMAIN_MICROSOFT, .name = "Attention", .min_in = 2, .max_in = 7,
      .max_out = 2, QS_ATTRS(attention_attrs), .traits = QS_PLAIN, .setting_inputs = 1 << MASK,
      .infer = infer_attention, .expand = expand_attention);
QS_OP(ms_qattention, .domain = QS_DOMAIN_MICROSOFT, .name = "QAttention", .min_in = 5, .max_in = 9,
      .max_out = 2, .attrs = attention_attrs + 1, .attr_count = QS_COUNT(attention_attrs) - 1,
      .traits = QS_PLAIN, .setting_inputs = 1 << Q_MASK,
      QS_MORE(QS_OPERANDS(.x = {{0, X_SCALE, X_ZERO}}, .w = {1, W_SCALE, W_ZERO})),
      .infer = infer_qattention, .expand = expand_qattention);
