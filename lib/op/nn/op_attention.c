/* SPDX-License-Identifier: MIT */
/*
 * Attention of ONNX, from opset 23 on. Inputs: query, key, value, mask, past key, past value, used
 * keys of each batch. Outputs: result, present key, present value, scores. Heads are an axis of
 * their own (batch, heads, sequence, size) or packed in the last one (batch, sequence, heads *
 * size).
 *
 * Products are multiplied by the scale; ONNX's function multiplies both factors by its root. Query
 * i is at position i + past or, without past keys but with counts of used ones, at i + used -
 * queries; causality and windows refer to these positions.
 */
#include "op/nn/attention.h"

#include <assert.h>
#include <math.h>

#include "tensor/array.h"

enum { Q, K, V, MASK, PAST_KEY, PAST_VALUE, USED };
enum { Y, PRESENT_KEY, PRESENT_VALUE, SCORES };

/* Sizes; -1: unknown. */
typedef struct form {
    bool packed;
    int64_t batches, heads, kv_heads, queries, fresh, past, keys, width, v_width;
} form;

/* Size of one of `heads` heads that are packed in `whole` numbers. */
static int divide(const qs_infer *x, int64_t whole, int64_t heads, int64_t *size) {
    *size = whole < 0 ? -1 : whole / heads;
    if (whole >= 0 && whole % heads)
        return qs_infer_fail(x, QSIM_E_SHAPE, "%lld numbers are not %lld heads", (long long)whole,
                             (long long)heads);
    return QSIM_OK;
}

static int packed_sizes(const qs_infer *x, form *f) {
    const qs_dim *q = x->in[Q]->dims, *k = x->in[K]->dims, *v = x->in[V]->dims;
    int64_t key_width = -1;
    if (f->heads <= 0 || f->kv_heads <= 0)
        return qs_infer_fail(x, QSIM_E_VALUE, "q_num_heads is %lld, kv_num_heads %lld",
                             (long long)f->heads, (long long)f->kv_heads);
    f->queries = q[1].size;
    f->fresh = k[1].size;
    int code = divide(x, q[2].size, f->heads, &f->width);
    if (!code)
        code = divide(x, k[2].size, f->kv_heads, &key_width);
    if (!code)
        code = divide(x, v[2].size, f->kv_heads, &f->v_width);
    if (!code)
        code = qs_infer_match(x, &f->width, key_width, "sizes of heads of query and key");
    return code ? code : qs_infer_match(x, &f->fresh, v[1].size, "keys and values");
}

static int split_sizes(const qs_infer *x, form *f) {
    const qs_dim *q = x->in[Q]->dims, *k = x->in[K]->dims, *v = x->in[V]->dims;
    f->queries = q[2].size;
    f->fresh = k[2].size;
    f->width = q[3].size;
    f->v_width = v[3].size;
    int code = qs_infer_match(x, &f->heads, q[1].size, "q_num_heads and heads of the query");
    if (!code)
        code = qs_infer_match(x, &f->kv_heads, k[1].size, "kv_num_heads and heads of the key");
    if (!code)
        code = qs_infer_match(x, &f->kv_heads, v[1].size, "heads of key and value");
    if (!code)
        code = qs_infer_match(x, &f->width, k[3].size, "sizes of heads of query and key");
    return code ? code : qs_infer_match(x, &f->fresh, v[2].size, "keys and values");
}

/* Merges the sizes of a past key or value: (batch, heads, past, size). */
static int match_past(const qs_infer *x, int32_t index, form *f) {
    const qs_value *v = qs_infer_in(x, index);
    if (!v || v->rank < 0)
        return QSIM_OK;
    int code = qs_infer_rank(x, index, 4);
    if (!code)
        code = qs_infer_match(x, &f->batches, v->dims[0].size, "batches of query and cache");
    if (!code)
        code = qs_infer_match(x, &f->kv_heads, v->dims[1].size, "heads of key and cache");
    if (!code)
        code = qs_infer_match(x, &f->past, v->dims[2].size, "past keys and values");
    return code ? code
                : qs_infer_match(x, index == PAST_KEY ? &f->width : &f->v_width, v->dims[3].size,
                                 "sizes of heads and of the cache's");
}

/* Whether the mask broadcasts to (batch, heads, queries, keys), its last axis possibly shorter. */
static int check_mask(const qs_infer *x, const form *f) {
    const qs_value *m = qs_infer_in(x, MASK);
    const int64_t whole[4] = {f->batches, f->heads, f->queries, f->keys};
    if (!m || m->rank < 0)
        return QSIM_OK;
    bool fits = m->rank >= 1 && m->rank <= 4;
    for (int32_t i = 0; i < m->rank && fits; i++) {
        const int64_t size = m->dims[i].size, of = whole[4 - m->rank + i];
        fits = size < 0 || of < 0 || (i == m->rank - 1 ? size <= of : size == of || size == 1);
    }
    return fits ? QSIM_OK
                : qs_infer_fail(x, QSIM_E_SHAPE,
                                "the mask does not broadcast to %lld x %lld x %lld x %lld",
                                (long long)whole[0], (long long)whole[1], (long long)whole[2],
                                (long long)whole[3]);
}

static int check_used(const qs_infer *x, const form *f) {
    const qs_value *v = qs_infer_in(x, USED);
    if (!v || v->rank < 0)
        return QSIM_OK;
    int64_t count = v->rank == 1 ? v->dims[0].size : 0;
    const int code = qs_infer_rank(x, USED, 1);
    return code ? code : qs_infer_match(x, &count, f->batches, "counts of keys and batches");
}

static int read_form(const qs_infer *x, form *f) {
    const qs_value *q = x->in[Q], *k = x->in[K], *v = x->in[V];
    *f = (form){.packed = q->rank == 3,
                .batches = q->dims[0].size,
                .heads = qs_node_int(x->node, "q_num_heads", -1),
                .kv_heads = qs_node_int(x->node, "kv_num_heads", -1),
                .past = qs_infer_in(x, PAST_KEY) ? -1 : 0};
    int code = f->packed ? packed_sizes(x, f) : split_sizes(x, f);
    if (!code)
        code = qs_infer_match(x, &f->batches, k->dims[0].size, "batches of query and key");
    if (!code)
        code = qs_infer_match(x, &f->batches, v->dims[0].size, "batches of query and value");
    for (int32_t i = PAST_KEY; i <= PAST_VALUE && !code; i++)
        code = match_past(x, i, f);
    if (!code && f->heads >= 0 && f->kv_heads >= 0 &&
        (f->kv_heads == 0 ? f->heads != 0 : f->heads % f->kv_heads != 0))
        return qs_infer_fail(x, QSIM_E_SHAPE, "%lld heads share %lld key heads",
                             (long long)f->heads, (long long)f->kv_heads);
    f->keys = f->past < 0 || f->fresh < 0 ? -1 : f->past + f->fresh;
    if (!code)
        code = check_mask(x, f);
    return code ? code : check_used(x, f);
}

static int check_attributes(const qs_infer *x) {
    const qs_node *n = x->node;
    const int64_t mode = qs_node_int(n, "qk_matmul_output_mode", 0);
    const int64_t type = qs_node_int(n, "softmax_precision", QSIM_FLOAT);
    const int64_t left = qs_node_int(n, "left_window_size", -1);
    const int64_t right = qs_node_int(n, "right_window_size", -1);
    const float cap = qs_node_float(n, "softcap", 0), scale = qs_node_float(n, "scale", 1);
    if (mode < QS_QK_PRODUCT || mode > QS_QK_SOFTMAX)
        return qs_infer_fail(x, QSIM_E_VALUE, "qk_matmul_output_mode is %lld", (long long)mode);
    if (type != QSIM_FLOAT && type != QSIM_DOUBLE && type != QSIM_FLOAT16 && type != QSIM_BFLOAT16)
        return qs_infer_fail(x, QSIM_E_VALUE, "softmax_precision is %lld", (long long)type);
    if (left < -1 || right < -1)
        return qs_infer_fail(x, QSIM_E_VALUE, "windows of %lld and %lld keys", (long long)left,
                             (long long)right);
    if (!(cap >= 0 && cap < INFINITY) || !(fabsf(scale) < INFINITY))
        return qs_infer_fail(x, QSIM_E_VALUE, "softcap is %g, scale %g", (double)cap,
                             (double)scale);
    if (!qs_infer_in(x, PAST_KEY) != !qs_infer_in(x, PAST_VALUE))
        return qs_infer_fail(x, QSIM_E_VALUE,
                             "past key without past value, or past value without past key");
    return QSIM_OK;
}

static int check_types(const qs_infer *x) {
    const int32_t rank = x->in[Q]->rank, dtype = x->in[Q]->dtype;
    const bool real = dtype == QSIM_FLOAT || dtype == QSIM_DOUBLE;
    const uint32_t own = real ? QS_T(dtype) : QS_T_REAL;
    const uint32_t types[] = {own, own, own, own | QS_T(QSIM_BOOL), own, own, QS_T(QSIM_INT64)};
    int code = QSIM_OK;
    for (int32_t i = 0; i < (int32_t)QS_COUNT(types) && !code; i++) {
        const qs_value *v = i < USED && real ? qs_infer_in(x, i) : NULL;
        const bool other = v && v->dtype == (dtype == QSIM_FLOAT ? QSIM_DOUBLE : QSIM_FLOAT);
        code = other ? qs_infer_same_type(x, Q, i) : qs_infer_type(x, i, types[i]);
    }
    for (int32_t i = 0; i < 3 && !code; i++)
        if (x->in[i]->rank >= 0 &&
            ((x->in[i]->rank != 3 && x->in[i]->rank != 4) || (rank >= 0 && x->in[i]->rank != rank)))
            return qs_infer_fail(x, QSIM_E_SHAPE, "input %d has rank %d, input 0 has %d", (int)i,
                                 (int)x->in[i]->rank, (int)rank);
    return code;
}

static int give_unknown(const qs_infer *x) {
    int code = QSIM_OK;
    for (int32_t i = Y; i <= SCORES && !code; i++)
        code = qs_infer_out(x, i, x->in[Q]->dtype, -1, NULL);
    return code;
}

static int infer_attention(qs_infer *x) {
    form f;
    int code = check_types(x);
    if (!code)
        code = check_attributes(x);
    if (!code && (x->in[Q]->rank < 0 || x->in[K]->rank < 0 || x->in[V]->rank < 0))
        return give_unknown(x);
    if (!code)
        code = read_form(x, &f);
    if (code)
        return code;
    const qs_dim batch = {f.batches, x->in[Q]->dims[0].symbol}, heads = {f.heads, NULL};
    const qs_dim queries = x->in[Q]->dims[f.packed ? 1 : 2], keys = {f.keys, NULL};
    const qs_dim kv = {f.kv_heads, NULL};
    const int64_t all = f.heads < 0 || f.v_width < 0 ? -1 : f.heads * f.v_width;
    const qs_dim packed[3] = {batch, queries, {all, NULL}};
    const qs_dim split[4] = {batch, heads, queries, {f.v_width, NULL}};
    const int32_t dtype = x->in[Q]->dtype;
    code = qs_infer_out(x, Y, dtype, f.packed ? 3 : 4, f.packed ? packed : split);
    if (!code)
        code = qs_infer_out(x, PRESENT_KEY, dtype, 4,
                            (const qs_dim[]){batch, kv, keys, {f.width, NULL}});
    if (!code)
        code = qs_infer_out(x, PRESENT_VALUE, dtype, 4,
                            (const qs_dim[]){batch, kv, keys, {f.v_width, NULL}});
    return code ? code
                : qs_infer_out(x, SCORES, dtype, 4, (const qs_dim[]){batch, heads, queries, keys});
}

/* ---- the step ---- */

typedef struct attention_params {
    qs_attention a;
    qs_cache key, value;
    bool joined[2];        /* keys, values: read from the present cache */
    size_t cache_bytes[2]; /* scratch bytes of a cache that is no output */
    size_t keys_bytes;     /* scratch bytes of the counts of keys */
    int64_t past;
    void (*run)(const qsim_ctx *ctx, const qs_attention *a, const qs_attention_data *data);
    bool counted; /* positions follow from the counts of used keys */
    int32_t inputs, outputs;
} attention_params;

static const void *optional_in(const attention_params *p, const qs_step *s, const qs_frame *f,
                               int32_t index) {
    return index < p->inputs ? qs_step_in(s, f, index) : NULL;
}

static void *optional_out(const attention_params *p, const qs_step *s, const qs_frame *f,
                          int32_t index) {
    return index < p->outputs ? qs_step_out(s, f, index) : NULL;
}

typedef struct attention_job {
    const attention_params *p;
    const void *past[2], *fresh[2];
    void *present[2]; /* NULL: fresh keys or values are read in place */
} attention_job;

/* Joins past and fresh keys or values of an item. */
static void join_item(const void *arg, size_t item, bool values) {
    const attention_job *j = arg;
    if (j->present[values])
        qs_cache_join(values ? &j->p->value : &j->p->key, j->past[values], j->fresh[values],
                      j->present[values], item);
}

/* Reads the counts of used keys; false: one is out of range. */
static bool read_used(const attention_params *p, const int64_t *used, qs_attention_keys *of,
                      const qs_frame *f) {
    const int64_t keys = (int64_t)p->a.keys, queries = (int64_t)p->a.queries;
    for (size_t b = 0; b < p->a.batches; b++) {
        const int64_t n = used ? used[b] : keys;
        if (n < 0 || n > keys) {
            qs_step_outside(f, "number of keys", n, 0, keys + 1, -1);
            return false;
        }
        of[b] = (qs_attention_keys){p->counted ? n - queries : p->past, n};
    }
    return true;
}

static void run_attention(const qs_step *s, const qs_frame *f) {
    const attention_params *p = s->params;
    char *scratch = f->scratch;
    qs_attention_keys *of = f->scratch;
    attention_job j = {.p = p};
    scratch += p->keys_bytes;
    if (!read_used(p, optional_in(p, s, f, USED), of, f))
        return;
    qs_attention_data d = {.q = qs_step_in(s, f, Q),
                           .mask = optional_in(p, s, f, MASK),
                           .of = of,
                           .y = qs_step_out(s, f, Y),
                           .qk = optional_out(p, s, f, SCORES),
                           .prepare = join_item,
                           .arg = &j};
    for (int32_t i = 0; i < 2; i++) {
        j.past[i] = optional_in(p, s, f, PAST_KEY + i);
        j.fresh[i] = qs_step_in(s, f, K + i);
        if (!p->joined[i])
            continue;
        j.present[i] = optional_out(p, s, f, PRESENT_KEY + i);
        if (!j.present[i]) {
            j.present[i] = scratch;
            scratch += p->cache_bytes[i];
        }
    }
    d.k = j.present[0] ? j.present[0] : j.fresh[0];
    d.v = j.present[1] ? j.present[1] : j.fresh[1];
    d.scratch = scratch;
    p->run(f->ctx, &p->a, &d);
}

static void place_mask(qs_attention *a, const qs_value *m) {
    size_t step = 1, *const steps[] = {&a->mask.row, &a->mask.head, &a->mask.batch};
    if (!m)
        return;
    assert(m->rank >= 1 && m->rank <= 4); /* check_mask has checked it */
    a->mask_kind = m->dtype == QSIM_BOOL ? QS_MASK_BOOL : QS_MASK_FLOAT;
    a->mask_keys = (size_t)m->dims[m->rank - 1].size;
    for (int32_t i = 1; i < m->rank; i++) {
        step *= (size_t)m->dims[m->rank - i].size;
        *steps[i - 1] = m->dims[m->rank - 1 - i].size == 1 ? 0 : step;
    }
}

static void set_options(const qs_lower *l, qs_attention *a) {
    const qs_node *n = l->node;
    const int64_t most = INT32_MAX; /* a window this wide holds any sequence */
    const int64_t left = qs_node_int(n, "left_window_size", -1);
    const int64_t right = qs_node_int(n, "right_window_size", -1);
    a->scale = qs_node_float(n, "scale", 1.0f / sqrtf((float)qs_real(a->width ? a->width : 1)));
    a->scale64 =
        qs_node_attr(n, "scale") ? (double)a->scale : 1 / sqrt(a->width ? qs_real(a->width) : 1);
    a->cap = qs_node_float(n, "softcap", 0);
    a->causal = qs_node_int(n, "is_causal", 0) != 0;
    a->precise = qs_node_int(n, "softmax_precision", QSIM_FLOAT) == QSIM_DOUBLE;
    a->left = left < most ? left : -1;
    a->right = right < most ? right : -1;
    a->qk_mode =
        qs_lower_out(l, SCORES) ? (int32_t)qs_node_int(n, "qk_matmul_output_mode", 0) : QS_QK_NONE;
}

static void set_sizes(qs_attention *a, const form *f) {
    a->batches = (size_t)f->batches;
    a->heads = (size_t)f->heads;
    a->kv_heads = (size_t)f->kv_heads;
    a->queries = (size_t)f->queries;
    a->keys = (size_t)f->keys;
    a->width = (size_t)f->width;
    a->v_width = (size_t)f->v_width;
    qs_heads (*const place)(size_t, size_t, size_t) = f->packed ? qs_heads_packed : qs_heads_dense;
    a->q = place(a->heads, a->queries, a->width);
    a->y = place(a->heads, a->queries, a->v_width);
    a->k = place(a->kv_heads, (size_t)f->fresh, a->width);
    a->v = place(a->kv_heads, (size_t)f->fresh, a->v_width);
}

/* Plans the joined keys or values; *bytes grows if they are no output. */
static int place_cache(const qs_lower *l, attention_params *p, const form *f, int32_t which,
                       size_t *bytes) {
    qs_heads *read = which ? &p->a.v : &p->a.k;
    const size_t width = which ? p->a.v_width : p->a.width;
    const bool present = qs_lower_out(l, PRESENT_KEY + which) != NULL;
    const size_t element = qs_element_size(qs_lower_in(l, Q)->dtype);
    *(which ? &p->value : &p->key) = (qs_cache){
        p->a.batches, p->a.kv_heads, (size_t)f->past, (size_t)f->fresh, width, element, *read};
    p->joined[which] = present || qs_lower_in(l, PAST_KEY + which) != NULL;
    if (!p->joined[which])
        return QSIM_OK;
    *read = qs_heads_dense(p->a.kv_heads, p->a.keys, width);
    size_t all = element;
    if (present)
        return QSIM_OK;
    if (!qs_mul(all, p->a.batches, &all) || !qs_mul(all, read->batch, &all) || all > SIZE_MAX / 8 ||
        !qs_add(*bytes, qs_align(all, 64), bytes))
        return qs_fail(l->error, QSIM_E_LIMIT, "an attention is too large");
    p->cache_bytes[which] = qs_align(all, 64);
    return QSIM_OK;
}

static int lower_attention(qs_lower *l) {
    qs_infer x;
    form f;
    qs_lower_infer(l, &x);
    int code = read_form(&x, &f);
    attention_params *p = code ? NULL : qs_lower_params(l, sizeof(*p));
    if (!p)
        return code ? code : QSIM_E_NOMEM;
    set_sizes(&p->a, &f);
    set_options(l, &p->a);
    place_mask(&p->a, qs_lower_in(l, MASK));
    p->past = f.past;
    p->counted = qs_lower_in(l, USED) && !qs_lower_in(l, PAST_KEY);
    p->inputs = l->node->input_count;
    p->outputs = l->node->output_count;
    p->keys_bytes = qs_align(p->a.batches * sizeof(qs_attention_keys), 64);
    size_t bytes = p->keys_bytes, own = 0;
    for (int32_t i = 0; i < 2 && !code; i++)
        code = place_cache(l, p, &f, i, &bytes);
    const bool doubles = qs_lower_in(l, Q)->dtype == QSIM_DOUBLE;
    p->run = doubles ? qs_attention64_run : qs_attention_run;
    if (!code)
        code = (doubles ? qs_attention64_plan : qs_attention_plan)(l, &p->a, &own);
    if (!code && !qs_add(bytes, own, &l->step->scratch))
        code = qs_fail(l->error, QSIM_E_LIMIT, "an attention is too large");
    l->step->run = run_attention;
    return code;
}

static const qs_attr_rule attention_attrs[] = {
    {"is_causal", QSIM_ATTR_INT, 23, 0},         {"kv_num_heads", QSIM_ATTR_INT, 23, 0},
    {"q_num_heads", QSIM_ATTR_INT, 23, 0},       {"qk_matmul_output_mode", QSIM_ATTR_INT, 23, 0},
    {"scale", QSIM_ATTR_FLOAT, 23, 0},           {"softcap", QSIM_ATTR_FLOAT, 23, 0},
    {"softmax_precision", QSIM_ATTR_INT, 23, 0}, {"left_window_size", QSIM_ATTR_INT, 25, 0},
    {"right_window_size", QSIM_ATTR_INT, 25, 0},
};

QS_OP(attention, .name = "Attention", .since = 23, .min_in = 3, .max_in = 6, .max_out = 4,
      QS_MORE(QS_HISTORY(.later = {{24, 3, 7, 4}})), QS_ATTRS(attention_attrs),
      .traits = QS_READS_EXACTLY, .setting_inputs = 1 << MASK | 1 << USED,
      .kernel = QS_KERNEL_ATTENTION, .infer = infer_attention, .lower = lower_attention);
