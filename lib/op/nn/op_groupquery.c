/* SPDX-License-Identifier: MIT */
/*
 * GroupQueryAttention of ONNX Runtime: causal attention over a cache, with rotary positions.
 * Inputs: query (or packed query, key and value), key, value, past key, past value, last used key
 * of each batch, used keys of the longest batch ("total"), cosines, sines, positions, bias, sinks.
 *
 * A batch's new entries end at its last used key; a first prompt, whose length is the total, begins
 * at 0 in every batch, shorter batches being padded at the end. Keys are rotated before they are
 * stored. The present cache has as many entries as the past one, or the total if that is more;
 * entries after the new ones are 0.
 */
#include "op/nn/attention.h"
#include "op/nn/rotary.h"

#include <math.h>

enum { Q, K, V, PAST_KEY, PAST_VALUE, LAST, TOTAL, COSINE, SINE, POSITIONS, BIAS, SINKS };
enum { Y, PRESENT_KEY, PRESENT_VALUE };

/* Sizes; -1: unknown. */
typedef struct form {
    bool packed, turns;
    int64_t batches, queries, heads, kv_heads, width, past, total, entries;
} form;

static int check_types(const qs_infer *x) {
    static const uint32_t types[] = {QS_T_FLOAT, QS_T_FLOAT,       QS_T_FLOAT,       QS_T_FLOAT,
                                     QS_T_FLOAT, QS_T(QSIM_INT32), QS_T(QSIM_INT32), QS_T_FLOAT,
                                     QS_T_FLOAT, QS_T(QSIM_INT64), QS_T_FLOAT,       QS_T_FLOAT};
    int code = QSIM_OK;
    for (int32_t i = 0; i < (int32_t)QS_COUNT(types) && !code; i++)
        code = qs_infer_in(x, i) ? qs_infer_type(x, i, types[i]) : QSIM_OK;
    for (int32_t i = SINKS + 1; i < x->node->input_count && !code; i++)
        if (qs_infer_in(x, i))
            return qs_infer_fail(x, QSIM_E_UNSUPPORTED,
                                 "input %d, of quantized caches or norms, is not supported",
                                 (int)i);
    if (!code && (!qs_infer_in(x, LAST) || !qs_infer_in(x, TOTAL)))
        return qs_infer_fail(x, QSIM_E_VALUE, "the lengths of sequences are missing");
    if (!code && !qs_infer_in(x, K) != !qs_infer_in(x, V))
        return qs_infer_fail(x, QSIM_E_VALUE, "key without value, or value without key");
    if (!code && !qs_infer_in(x, PAST_KEY) != !qs_infer_in(x, PAST_VALUE))
        return qs_infer_fail(x, QSIM_E_VALUE,
                             "past key without past value, or past value without past key");
    return code;
}

static int check_attributes(const qs_infer *x, form *f) {
    static const struct {
        const char *name;
        int8_t value; /* the only one that is supported */
    } fixed[] = {{"causal", 1}, {"qk_output", 0}, {"sliding_window_cache", 0}};
    const qs_node *n = x->node;
    const float cap = qs_node_float(n, "softcap", 0), scale = qs_node_float(n, "scale", 0);
    const int64_t window = qs_node_int(n, "local_window_size", -1);
    f->heads = qs_node_int(n, "num_heads", 0);
    f->kv_heads = qs_node_int(n, "kv_num_heads", 0);
    f->turns = qs_node_int(n, "do_rotary", 0) != 0;
    if (f->heads < 1 || f->kv_heads < 1 || f->heads > INT32_MAX || f->kv_heads > f->heads ||
        f->heads % f->kv_heads)
        return qs_infer_fail(x, QSIM_E_VALUE, "num_heads is %lld, kv_num_heads %lld",
                             (long long)f->heads, (long long)f->kv_heads);
    if (window < -1 || window == 0)
        return qs_infer_fail(x, QSIM_E_VALUE, "local_window_size is %lld", (long long)window);
    if (!(cap >= 0 && cap < INFINITY) || !(fabsf(scale) < INFINITY))
        return qs_infer_fail(x, QSIM_E_VALUE, "softcap is %g, scale %g", (double)cap,
                             (double)scale);
    if (f->turns && (!qs_infer_in(x, COSINE) || !qs_infer_in(x, SINE)))
        return qs_infer_fail(x, QSIM_E_VALUE, "do_rotary without cosines and sines");
    for (size_t i = 0; i < QS_COUNT(fixed); i++)
        if (qs_node_int(n, fixed[i].name, fixed[i].value) != fixed[i].value)
            return qs_infer_fail(x, QSIM_E_UNSUPPORTED, "%s is not %d", fixed[i].name,
                                 (int)fixed[i].value);
    if (!qs_node_string_is(n, "k_quant_type", "NONE", true) ||
        !qs_node_string_is(n, "v_quant_type", "NONE", true))
        return qs_infer_fail(x, QSIM_E_UNSUPPORTED, "quantized caches are not supported");
    return QSIM_OK;
}

static int check_operands(const qs_infer *x, const form *f) {
    const int64_t kv = f->width < 0 ? -1 : f->kv_heads * f->width;
    const int64_t fresh[3] = {f->batches, f->queries, kv};
    const int64_t past[4] = {f->batches, f->kv_heads, f->past, f->width};
    const int64_t angles[2] = {-1, f->width < 0 ? -1 : f->width / 2};
    const int64_t ids[2] = {f->batches, f->queries};
    int code = qs_infer_sizes(x, K, 3, fresh);
    if (!code)
        code = qs_infer_sizes(x, V, 3, fresh);
    for (int32_t i = PAST_KEY; i <= PAST_VALUE && !code; i++)
        code = qs_infer_sizes(x, i, 4, past);
    for (int32_t i = COSINE; i <= SINE && !code && f->turns; i++)
        code = qs_infer_sizes(x, i, 2, angles);
    if (!code)
        code = qs_infer_sizes(x, POSITIONS, 2, ids);
    return code ? code : qs_infer_sizes(x, SINKS, 1, &f->heads);
}

static int read_form(const qs_infer *x, form *f) {
    const qs_value *q = x->in[Q], *past = qs_infer_in(x, PAST_KEY), *last = qs_infer_in(x, LAST);
    const qs_value *all = qs_infer_in(x, TOTAL);
    const int64_t totals = all->rank < 0 ? -1 : qs_dims_product(all->dims, 0, all->rank);
    int64_t total = -1;
    int32_t count = 0;
    int code = check_attributes(x, f);
    if (code)
        return code;
    f->packed = !qs_infer_in(x, K);
    f->batches = q->dims[0].size;
    f->queries = q->dims[1].size;
    const int64_t heads = f->packed ? f->heads + 2 * f->kv_heads : f->heads;
    const int64_t hidden = q->dims[2].size;
    if (hidden >= 0 && (hidden % heads || (f->turns && hidden / heads % 2)))
        return qs_infer_fail(x, QSIM_E_SHAPE, "%lld numbers are not %lld heads", (long long)hidden,
                             (long long)heads);
    f->width = hidden < 0 ? -1 : hidden / heads;
    f->past = !past ? 0 : past->rank == 4 ? past->dims[2].size : -1;
    code = qs_infer_ints(x, TOTAL, &total, 1, &count);
    f->total = count == 1 ? total : -1;
    if (!code && ((totals >= 0 && totals != 1) || (count == 1 && total < 0)))
        return qs_infer_fail(x, QSIM_E_VALUE, "the total is %lld", (long long)total);
    f->entries = f->past < 0 || f->total < 0 ? -1 : f->past > f->total ? f->past : f->total;
    if (!code && last->rank >= 0 && f->batches >= 0 &&
        qs_dims_product(last->dims, 0, last->rank) >= 0 &&
        qs_dims_product(last->dims, 0, last->rank) != f->batches)
        return qs_infer_fail(x, QSIM_E_SHAPE, "there is not one length for each batch");
    return code ? code : check_operands(x, f);
}

/* The bias is (batch or 1, heads or 1, queries, total). */
static int check_bias(const qs_infer *x, const form *f) {
    const qs_value *v = qs_infer_in(x, BIAS);
    const int64_t whole[4] = {f->batches, f->heads, f->queries, f->total};
    bool fits = !v || v->rank < 0 || v->rank == 4;
    for (int32_t i = 0; v && i < v->rank && fits; i++)
        fits = v->dims[i].size < 0 || whole[i] < 0 || v->dims[i].size == whole[i] ||
               (i < 2 && v->dims[i].size == 1);
    return fits ? QSIM_OK : qs_infer_fail(x, QSIM_E_SHAPE, "the bias has another shape");
}

static int infer_groupquery(qs_infer *x) {
    const qs_value *q = x->in[Q];
    form f;
    int code = check_types(x);
    if (!code)
        code = qs_infer_rank(x, Q, 3);
    if (!code && q->rank < 0) {
        code = qs_infer_out(x, Y, QSIM_FLOAT, -1, NULL);
        for (int32_t i = PRESENT_KEY; i <= PRESENT_VALUE && !code; i++)
            code = qs_infer_out(x, i, QSIM_FLOAT, -1, NULL);
        return code;
    }
    if (!code)
        code = read_form(x, &f);
    if (!code)
        code = check_bias(x, &f);
    if (code)
        return code;
    const int64_t hidden = f.width < 0 ? -1 : f.width * f.heads;
    const qs_dim y[3] = {q->dims[0], q->dims[1], {hidden, NULL}};
    const qs_dim cache[4] = {q->dims[0], {f.kv_heads, NULL}, {f.entries, NULL}, {f.width, NULL}};
    code = qs_infer_out(x, Y, QSIM_FLOAT, 3, y);
    for (int32_t i = PRESENT_KEY; i <= PRESENT_VALUE && !code; i++)
        code = qs_infer_out(x, i, QSIM_FLOAT, 4, cache);
    return code;
}

/* ---- the step ---- */

typedef struct group_params {
    qs_attention a;
    qs_heads k, v; /* strides of fresh keys and values */
    size_t past, entries, angles;
    size_t key_at, value_at; /* floats before keys and values in a packed query */
    size_t keys_bytes, rotated_bytes, cache_bytes;
    bool packed, turns, interleaved, present[2];
    int32_t inputs;
} group_params;

typedef struct group_job {
    const group_params *p;
    const qs_attention_keys *of;
    const float *q, *k, *v, *past_k, *past_v, *cosine, *sine;
    const int64_t *positions;
    float *rotated, *present_k, *present_v;
} group_job;

static const void *optional(const group_params *p, const qs_step *s, const qs_frame *f,
                            int32_t index) {
    return index < p->inputs ? qs_step_in(s, f, index) : NULL;
}

static size_t position_of(const group_job *j, size_t batch, size_t at) {
    if (j->positions)
        return (size_t)j->positions[batch * j->p->a.queries + at];
    return (size_t)j->of[batch].first + at;
}

static void turn(const group_job *j, size_t batch, size_t at, const float *x, float *y) {
    const group_params *p = j->p;
    const size_t width = p->a.width, half = width / 2, row = position_of(j, batch, at) * half;
    if (p->turns)
        qs_rotate(x, j->cosine + row, j->sine + row, y, width, half, p->interleaved);
    else
        memcpy(y, x, width * sizeof(*y));
}

/* Rotates rows (batch, query, head) of the query. */
static void turn_queries(const void *arg, size_t begin, size_t end) {
    const group_job *j = arg;
    const group_params *p = j->p;
    for (size_t r = begin; r < end; r++) {
        const size_t head = r % p->a.heads, at = r / p->a.heads % p->a.queries;
        const size_t batch = r / p->a.heads / p->a.queries;
        const size_t row = p->packed ? p->k.row : p->a.heads * p->a.width;
        const float *x = j->q + (batch * p->a.queries + at) * row + head * p->a.width;
        turn(j, batch, at, x, j->rotated + r * p->a.width);
    }
}

/* Writes the cache of keys or values of item (batch, head): past entries, fresh ones, zeros. */
static void store_head(const void *arg, size_t item, bool values) {
    const group_job *j = arg;
    const group_params *p = j->p;
    const qs_heads *from = values ? &p->v : &p->k;
    const size_t width = p->a.width, batch = item / p->a.kv_heads, head = item % p->a.kv_heads;
    const size_t first = (size_t)j->of[batch].first, after = first + p->a.queries;
    const float *past = values ? j->past_v : j->past_k, *fresh = values ? j->v : j->k;
    float *to = (values ? j->present_v : j->present_k) + item * p->entries * width;
    if (first)
        memcpy(to, past + item * p->past * width, first * width * sizeof(*to));
    fresh += batch * from->batch + head * from->head;
    for (size_t at = 0; at < p->a.queries; at++, fresh += from->row) {
        float *entry = to + (first + at) * width;
        if (values)
            memcpy(entry, fresh, width * sizeof(*to));
        else
            turn(j, batch, at, fresh, entry);
    }
    memset(to + after * width, 0, (p->entries - after) * width * sizeof(*to));
}

/* Reads the lengths; false: they do not fit each other or the buffers. */
static bool read_lengths(const group_params *p, const int32_t *last, int32_t total,
                         qs_attention_keys *of, const qs_frame *f) {
    const int64_t queries = (int64_t)p->a.queries, capacity = (int64_t)p->entries;
    const int64_t angles = p->turns ? (int64_t)p->angles : INT64_MAX;
    if (total < queries || total > capacity) {
        qs_step_outside(f, "total_sequence_length", total, queries, capacity + 1, -1);
        return false;
    }
    for (size_t b = 0; b < p->a.batches; b++) {
        const int64_t used = (int64_t)last[b] + 1, first = total == queries ? 0 : used - queries;
        if (used < 0 || used > total || first < 0 || first > (int64_t)p->past ||
            first + queries > angles) {
            int64_t end = total < angles ? total : angles;
            if (total != queries && end > (int64_t)p->past + queries)
                end = (int64_t)p->past + queries;
            qs_step_outside(f, "seqlens_k", last[b], total == queries ? -1 : queries - 1, end, -1);
            return false;
        }
        of[b] = (qs_attention_keys){first, used};
    }
    return true;
}

static bool read_positions(const group_params *p, const int64_t *positions, const qs_frame *f) {
    for (size_t i = 0; positions && p->turns && i < p->a.batches * p->a.queries; i++)
        if (positions[i] < 0 || positions[i] >= (int64_t)p->angles) {
            qs_step_outside(f, "position", positions[i], 0, (int64_t)p->angles, -1);
            return false;
        }
    return true;
}

static void run_groupquery(const qs_step *s, const qs_frame *f) {
    const group_params *p = s->params;
    char *scratch = f->scratch;
    qs_attention_keys *of = f->scratch;
    const int32_t *total = qs_step_in(s, f, TOTAL);
    group_job j = {.p = p,
                   .of = of,
                   .q = qs_step_in(s, f, Q),
                   .past_k = optional(p, s, f, PAST_KEY),
                   .past_v = optional(p, s, f, PAST_VALUE),
                   .cosine = optional(p, s, f, COSINE),
                   .sine = optional(p, s, f, SINE),
                   .positions = optional(p, s, f, POSITIONS)};
    if (!p->a.queries || !p->a.batches)
        return;
    if (!read_lengths(p, qs_step_in(s, f, LAST), *total, of, f) ||
        !read_positions(p, j.positions, f))
        return;
    j.k = p->packed ? j.q + p->key_at : qs_step_in(s, f, K);
    j.v = p->packed ? j.q + p->value_at : qs_step_in(s, f, V);
    j.rotated = (float *)(void *)(scratch += p->keys_bytes);
    scratch += p->rotated_bytes;
    j.present_k = p->present[0] ? qs_step_out(s, f, PRESENT_KEY) : (float *)(void *)scratch;
    scratch += p->present[0] ? 0 : p->cache_bytes;
    j.present_v = p->present[1] ? qs_step_out(s, f, PRESENT_VALUE) : (float *)(void *)scratch;
    scratch += p->present[1] ? 0 : p->cache_bytes;
    const size_t rows = p->a.batches * p->a.queries * p->a.heads, width = p->a.width;
    qs_ranges(f->ctx, rows, QS_GRAIN / (width + 1) + 1, turn_queries, &j);
    const qs_attention_data d = {.q = j.rotated,
                                 .k = j.present_k,
                                 .v = j.present_v,
                                 .mask = optional(p, s, f, BIAS),
                                 .sinks = optional(p, s, f, SINKS),
                                 .of = of,
                                 .y = qs_step_out(s, f, Y),
                                 .scratch = (float *)(void *)scratch,
                                 .prepare = store_head,
                                 .arg = &j};
    qs_attention_run(f->ctx, &p->a, &d);
}

static void set_attention(const qs_lower *l, const form *f, qs_attention *a) {
    const qs_value *bias = qs_lower_in(l, BIAS);
    const int64_t window = qs_node_int(l->node, "local_window_size", -1);
    const float scale = qs_node_float(l->node, "scale", 0);
    const size_t width = (size_t)f->width;
    *a = (qs_attention){.batches = (size_t)f->batches,
                        .heads = (size_t)f->heads,
                        .kv_heads = (size_t)f->kv_heads,
                        .queries = (size_t)f->queries,
                        .keys = (size_t)f->entries,
                        .width = width,
                        .v_width = width,
                        .scale = scale != 0 ? scale : 1.0f / sqrtf((float)(width ? width : 1)),
                        .cap = qs_node_float(l->node, "softcap", 0),
                        .causal = true,
                        .smooth = qs_node_int(l->node, "smooth_softmax", 0) == 1 ||
                                  qs_lower_in(l, SINKS) != NULL,
                        .left = window > 0 && window < INT32_MAX ? window - 1 : -1,
                        .right = -1,
                        .qk_mode = QS_QK_NONE};
    a->q = a->y = qs_heads_packed(a->heads, a->queries, width);
    a->k = a->v = qs_heads_dense(a->kv_heads, a->keys, width);
    if (!bias)
        return;
    a->mask_kind = QS_MASK_FLOAT;
    a->mask_keys = (size_t)bias->dims[3].size;
    a->mask.row = a->mask_keys;
    a->mask.head = bias->dims[1].size == 1 ? 0 : a->mask.row * a->queries;
    a->mask.batch =
        bias->dims[0].size == 1 ? 0 : a->mask.row * a->queries * (size_t)bias->dims[1].size;
}

static int place_scratch(qs_lower *l, group_params *p) {
    size_t own, rotated = sizeof(float), cache = sizeof(float);
    int code = qs_attention_plan(l, &p->a, &own);
    if (code)
        return code;
    if (!qs_mul(rotated, p->a.batches, &rotated) || !qs_mul(rotated, p->a.q.batch, &rotated) ||
        !qs_mul(cache, p->a.batches, &cache) || !qs_mul(cache, p->a.k.batch, &cache) ||
        rotated > SIZE_MAX / 8 || cache > SIZE_MAX / 8)
        return qs_fail(l->error, QSIM_E_LIMIT, "an attention is too large");
    p->keys_bytes = qs_align(p->a.batches * sizeof(qs_attention_keys), 64);
    p->rotated_bytes = qs_align(rotated + 64, 64); /* kernels read up to 64 bytes beyond a row */
    p->cache_bytes = qs_align(cache, 64);
    l->step->scratch = p->keys_bytes + p->rotated_bytes + own;
    for (int i = 0; i < 2; i++)
        l->step->scratch += p->present[i] ? 0 : p->cache_bytes;
    return QSIM_OK;
}

static int lower_groupquery(qs_lower *l) {
    qs_infer x;
    form f;
    qs_lower_infer(l, &x);
    int code = read_form(&x, &f);
    group_params *p = code ? NULL : qs_lower_params(l, sizeof(*p));
    if (!p)
        return code ? code : QSIM_E_NOMEM;
    const size_t width = (size_t)f.width;
    set_attention(l, &f, &p->a);
    p->past = (size_t)f.past;
    p->entries = (size_t)f.entries;
    p->packed = f.packed;
    p->turns = f.turns;
    p->interleaved = qs_node_int(l->node, "rotary_interleaved", 0) != 0;
    p->inputs = l->node->input_count;
    p->angles = f.turns ? (size_t)qs_lower_in(l, COSINE)->dims[0].size : 0;
    if (f.turns && (size_t)qs_lower_in(l, SINE)->dims[0].size < p->angles)
        p->angles = (size_t)qs_lower_in(l, SINE)->dims[0].size;
    p->present[0] = qs_lower_out(l, PRESENT_KEY) != NULL;
    p->present[1] = qs_lower_out(l, PRESENT_VALUE) != NULL;
    p->k = qs_heads_packed(p->a.kv_heads, p->a.queries, width);
    if (p->packed) {
        p->key_at = p->a.heads * width;
        p->value_at = p->key_at + p->a.kv_heads * width;
        p->k.row = p->value_at + p->a.kv_heads * width;
        p->k.batch = p->k.row * p->a.queries;
    }
    p->v = p->k;
    l->step->run = run_groupquery;
    return place_scratch(l, p);
}

static const qs_attr_rule group_attrs[] = {
    {"num_heads", QSIM_ATTR_INT, 1, 0},
    {"kv_num_heads", QSIM_ATTR_INT, 1, 0},
    {"scale", QSIM_ATTR_FLOAT, 1, 0},
    {"softcap", QSIM_ATTR_FLOAT, 1, 0},
    {"local_window_size", QSIM_ATTR_INT, 1, 0},
    {"do_rotary", QSIM_ATTR_INT, 1, 0},
    {"rotary_interleaved", QSIM_ATTR_INT, 1, 0},
    {"smooth_softmax", QSIM_ATTR_INT, 1, 0},
    /* ONNX Runtime's optimizer writes those of quantized caches and norms, too. */
    {"causal", QSIM_ATTR_INT, 1, 0},
    {"qk_output", QSIM_ATTR_INT, 1, 0},
    {"sliding_window_cache", QSIM_ATTR_INT, 1, 0},
    {"qk_norm_epsilon", QSIM_ATTR_FLOAT, 1, 0},
    {"k_quant_type", QSIM_ATTR_STRING, 1, 0},
    {"v_quant_type", QSIM_ATTR_STRING, 1, 0},
};

QS_OP(ms_groupquery, .domain = QS_DOMAIN_MICROSOFT, .name = "GroupQueryAttention", .min_in = 1,
      .max_in = 16, .max_out = 3, QS_ATTRS(group_attrs), .traits = QS_READS_EXACTLY,
      .shape_inputs = 1 << TOTAL,
      .setting_inputs = 1 << LAST | 1 << COSINE | 1 << SINE | 1 << POSITIONS | 1 << BIAS |
                        1 << SINKS,
      .kernel = QS_KERNEL_ATTENTION, .infer = infer_groupquery, .lower = lower_groupquery);
