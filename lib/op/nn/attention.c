/* SPDX-License-Identifier: MIT */
#include "op/nn/float_jobs.h"
#include "op/nn/attention.h"

#include <math.h>

#include "base/ctx.h"
#include "base/slices.h"
#include "kernel/elementary.h"
#include "kernel/ew.h"
#include "kernel/table.h"
#include "op/nn/reduce.h"

/* Queries per block: a multiple of the rows of every kernel's tile. */
#define BLOCK_ROWS ((size_t)48)
/* Queries that read values in place, wherever rows of them lie. */
#define FEW_ROWS ((size_t)8)
/* Floats that a kernel may read beyond the end of a row. */
#define SLACK ((size_t)16)

typedef struct job {
    const qs_attention *a;
    const qs_attention_data *d;
    const qsim_ctx *ctx;
} job;

/* Scratch memory of a slice. */
typedef struct scratch {
    float *k, *v, *scores, *bias, *factors, *q;
} scratch;

static scratch scratch_of(const job *j, size_t slice) {
    const qs_attention *a = j->a;
    scratch r;
    r.k = (float *)j->d->scratch + slice * a->slice_floats;
    r.v = r.k + a->k_floats;
    r.scores = r.v + a->v_floats;
    r.bias = r.scores + a->score_floats;
    r.factors = r.bias + a->bias_floats;
    r.q = r.factors + a->bias_floats;
    return r;
}

/* ---- one row of scores ---- */

void qs_attention_visible(const qs_attention *a, int64_t position, int64_t used, int64_t *begin,
                          int64_t *end) {
    *begin = a->left >= 0 && position - a->left > 0 ? position - a->left : 0;
    *end = used;
    if (a->causal && position + 1 < *end)
        *end = position + 1;
    if (a->right >= 0 && position + a->right + 1 < *end)
        *end = position + a->right + 1;
    if (*end < 0)
        *end = 0;
    if (*begin > *end)
        *begin = *end;
}

/* Adds the mask to the scores [begin, end); false if it excludes all of these keys. */
static bool add_mask(const qs_attention *a, const void *mask, float *s, size_t begin, size_t end) {
    bool any = false;
    for (size_t k = begin; k < end; k++) {
        float bias = -INFINITY;
        if (k < a->mask_keys)
            bias = a->mask_kind == QS_MASK_FLOAT     ? ((const float *)mask)[k]
                   : ((const uint8_t *)mask)[k] != 0 ? 0.0f
                                                     : -INFINITY;
        s[k] += bias;
        any = any || bias != -INFINITY;
    }
    return any;
}

/* Softmax in double: sums are in order, without lanes. */
static void softmax_precise(float *s, size_t n, bool further, float sink) {
    double top = further ? (double)sink : (double)s[0], sum;
    for (size_t i = 0; i < n; i++)
        top = (double)s[i] > top ? (double)s[i] : top;
    sum = further ? qk_exp64((double)sink - top) : 0.0;
    for (size_t i = 0; i < n; i++)
        sum += qk_exp64((double)s[i] - top);
    for (size_t i = 0; i < n; i++)
        s[i] = (float)(qk_exp64((double)s[i] - top) / sum);
}

/* Softmax with `sink` as one more score, whose share is dropped. */
static void softmax_smooth(const qk_ew *k, float *s, size_t n, float sink) {
    const float most = k->greatest(s, n, 0), top = most > sink ? most : sink;
    float share;
    k->exp_shifted(&sink, top, &share, 1);
    k->exp_shifted(s, top, s, n);
    k->divide(s, k->sum(s, 0, n) + share, s, n);
}

static void softmax(const job *j, size_t head, float *s, size_t n) {
    const qs_attention *a = j->a;
    const float sink = a->smooth && j->d->sinks ? j->d->sinks[head] : 0.0f;
    if (a->precise)
        softmax_precise(s, n, a->smooth, sink);
    else if (a->smooth)
        softmax_smooth(j->ctx->kernels->ew, s, n, sink);
    else
        qs_softmax_row(j->ctx, s, s, n);
}

typedef struct place {
    size_t batch, head, query;
} place;

static void put_qk(const job *j, const place *at, int32_t what, const float *s) {
    const qs_attention *a = j->a;
    if (what != a->qk_mode)
        return;
    const size_t row = (at->batch * a->heads + at->head) * a->queries + at->query;
    memcpy((float *)j->d->qk + row * a->keys, s, a->keys * sizeof(*s));
}

/* Turns a row of n products into softmax shares; n is all keys if scores are an output. */
static void finish_row(const job *j, const place *at, float *s, size_t n) {
    const qs_attention *a = j->a;
    const qs_attention_keys *of = &j->d->of[at->batch];
    const qk_ew *k = j->ctx->kernels->ew;
    int64_t first, last;
    qs_attention_visible(a, of->first + (int64_t)at->query, of->used, &first, &last);
    const size_t begin = (size_t)first, end = (size_t)last;
    const size_t scores = a->qk_mode == QS_QK_NONE ? end : n;
    for (size_t i = 0; i < scores; i++)
        s[i] *= a->scale;
    put_qk(j, at, QS_QK_PRODUCT, s);
    if (a->cap > 0 && scores) {
        k->divide(s, a->cap, s, scores);
        k->tanh(s, s, scores);
        for (size_t i = 0; i < scores; i++)
            s[i] *= a->cap;
    }
    put_qk(j, at, QS_QK_CAPPED, s);
    for (size_t i = 0; i < begin && i < scores; i++)
        s[i] = -INFINITY;
    for (size_t i = end; i < scores; i++)
        s[i] = -INFINITY;
    bool any = begin < end;
    if (any && a->mask_kind != QS_MASK_NONE) {
        const size_t row =
            at->batch * a->mask.batch + at->head * a->mask.head + at->query * a->mask.row;
        const size_t bytes = a->mask_kind == QS_MASK_FLOAT ? sizeof(float) : 1;
        any = add_mask(a, (const char *)j->d->mask + row * bytes, s, begin, end);
    }
    put_qk(j, at, QS_QK_MASKED, s);
    if (any)
        softmax(j, at->head, s, end);
    if (any)
        memset(s + end, 0, (n - end) * sizeof(*s));
    else
        memset(s, 0, n * sizeof(*s));
    put_qk(j, at, QS_QK_SOFTMAX, s);
}

/* ---- products ---- */

static void multiply(const job *j, const qk_gemm_f32 *shape) {
    qk_gemm_f32 g = *shape;
    const ptrdiff_t segment = 0;
    g.seg = &segment;
    g.segs = 1;
    g.lo = -INFINITY;
    g.hi = INFINITY;
    if (g.k && g.cols && g.rows)
        qs_gemm_f32(j->ctx, j->a->kernels, &g);
    else
        for (size_t r = 0; r < g.rows && g.cols; r++)
            memset(g.c + qk_gemm_out(&g, r), 0, g.cols * sizeof(*g.c));
}

/* Whether all keys are used and only the scale comes between products and softmax. */
static bool is_plain(const qs_attention *a, size_t used) {
    return used == a->keys && a->mask_kind == QS_MASK_NONE && !a->causal && a->left < 0 &&
           a->right < 0 && a->cap == 0 && a->qk_mode == QS_QK_NONE && !a->precise && !a->smooth;
}

/* The same as finish_row for many rows of a plain attention. */
static void finish_rows(const job *j, const scratch *m, float *s, size_t rows) {
    const size_t n = j->a->keys;
    for (size_t r = 0; r < rows && j->a->scale != 1.0f; r++)
        j->ctx->kernels->ew->muladd(s + r * n, m->factors, NULL, -INFINITY, INFINITY, s + r * n, n);
    qs_softmax_rows(j->ctx, s, s, n, rows);
}

/* Queries that are computed together: those of one head, or all those of several. */
typedef struct block {
    place first;
    size_t heads, queries, rows; /* rows: heads * queries */
    const float *q;
    ptrdiff_t q_row[BLOCK_ROWS];
} block;

/* Offsets of a block's rows in a tensor. */
static void place_rows(const block *b, const qs_heads *in, ptrdiff_t *row) {
    for (size_t i = 0; i < b->heads; i++)
        for (size_t q = 0; q < b->queries; q++)
            *row++ = (ptrdiff_t)(i * in->head + q * in->row);
}

/* Finds the block's rows of the query. The tensor's last rows are copied: kernels read beyond. */
static void begin_block(const job *j, const scratch *m, block *b) {
    const qs_attention *a = j->a;
    const place *at = &b->first;
    b->rows = b->heads * b->queries;
    b->q = (const float *)j->d->q + at->batch * a->q.batch + at->head * a->q.head +
           at->query * a->q.row;
    place_rows(b, &a->q, b->q_row);
    if (at->batch + 1 < a->batches || at->head + b->heads < a->heads ||
        at->query + b->queries < a->queries)
        return;
    for (size_t r = 0; r < b->rows; r++) {
        memcpy(m->q + r * a->width, b->q + b->q_row[r], a->width * sizeof(*b->q));
        b->q_row[r] = (ptrdiff_t)(r * a->width);
    }
    b->q = m->q;
}

/* End of the keys that the last of a block's queries, and so any of them, may attend to. */
static size_t seen(const job *j, const block *b) {
    const qs_attention_keys *of = &j->d->of[b->first.batch];
    int64_t begin, end;
    qs_attention_visible(j->a, of->first + (int64_t)(b->first.query + b->queries - 1), of->used,
                         &begin, &end);
    return (size_t)end;
}

/* Keys that a block is scored with: whole panels leave out some that no query may attend to. */
static size_t scored(const job *j, const block *b, size_t n) {
    const size_t panel = j->a->kernels->panel;
    const size_t whole = (seen(j, b) + panel - 1) / panel * panel;
    return j->a->qk_mode == QS_QK_NONE && whole < n ? whole : n;
}

/* Multiplies a block's queries with the first n keys. */
static void score(const job *j, const scratch *m, const block *b, const float *k, size_t n) {
    const qk_gemm_f32 scores = {.a = b->q,
                                .row = b->q_row,
                                .rows = b->rows,
                                .k = j->a->width,
                                .b = k,
                                .bias = m->bias,
                                .cols = n,
                                .c = m->scores,
                                .ldc = j->a->keys};
    multiply(j, &scores);
}

/* Makes shares of a block's n scores, of which `used` keys have values. */
static void finish_block(const job *j, const scratch *m, const block *b, size_t n, size_t used) {
    const place *first = &b->first;
    if (n > 0 && is_plain(j->a, used)) {
        finish_rows(j, m, m->scores, b->rows);
        return;
    }
    for (size_t r = 0; r < b->rows; r++) {
        const place at = {first->batch, first->head + r / b->queries,
                          first->query + r % b->queries};
        finish_row(j, &at, m->scores + r * j->a->keys, n);
    }
}

/* The values of a key head, packed or in place (qk_gemm_f32's b and b_row), and how many are used.
 */
typedef struct head_values {
    const float *v;
    size_t row, used;
} head_values;

static void share_values(const job *j, const scratch *m, const block *b, const head_values *v) {
    const qs_attention *a = j->a;
    const size_t met = seen(j, b), start = 0;
    const place *at = &b->first;
    ptrdiff_t share[BLOCK_ROWS], y[BLOCK_ROWS];
    place_rows(b, &a->y, y);
    for (size_t r = 0; r < b->rows; r++)
        share[r] = (ptrdiff_t)(r * a->keys);
    const qk_gemm_f32 values = {.a = m->scores,
                                .row = share,
                                .rows = b->rows,
                                .k = met,
                                .b = v->v,
                                .b_row = v->row,
                                .bias = m->bias,
                                .cols = a->v_width,
                                .at = met == v->used ? NULL : &start,
                                .depth = v->used,
                                .c = (float *)j->d->y + at->batch * a->y.batch +
                                     at->head * a->y.head + at->query * a->y.row,
                                .out = y};
    multiply(j, &values);
}

static const float *packed_keys(const job *j, const scratch *m, size_t item, size_t n) {
    const qs_attention *a = j->a;
    const size_t at = item / a->kv_heads * a->k.batch + item % a->kv_heads * a->k.head;
    const qk_pack_source k = {(const float *)j->d->k + at, 1, 1, 0, (ptrdiff_t)a->k.row};
    if (j->d->prepare)
        j->d->prepare(j->d->arg, item, false);
    if (n && a->width)
        qs_pack_f32(j->ctx, m->k, a->width, n, &k, false);
    return m->k;
}

static head_values place_values(const job *j, const scratch *m, size_t item, size_t used) {
    const qs_attention *a = j->a;
    const size_t at = item / a->kv_heads * a->v.batch + item % a->kv_heads * a->v.head;
    const qk_pack_source v = {(const float *)j->d->v + at, 1, (ptrdiff_t)a->v.row, 0, 1};
    if (j->d->prepare)
        j->d->prepare(j->d->arg, item, true);
    if (a->v_in_place)
        return (head_values){v.src, a->v.row, used};
    if (used && a->v_width)
        qs_pack_f32(j->ctx, m->v, used, a->v_width, &v, false);
    return (head_values){m->v, 0, used};
}

/* Computes the query heads of one key head. Unused keys are only read if scores are an output. */
static void attend_head(const job *j, const scratch *m, size_t item) {
    const qs_attention *a = j->a;
    const size_t batch = item / a->kv_heads, kv_head = item % a->kv_heads;
    const size_t group = a->heads / a->kv_heads, used = (size_t)j->d->of[batch].used;
    const size_t n = a->qk_mode == QS_QK_NONE ? used : a->keys;
    const float *k = packed_keys(j, m, item, n);
    const head_values v = place_values(j, m, item, used);
    for (size_t i = 0; i < group; i += a->together)
        for (size_t q = 0; q < a->queries && !qs_stopped(j->ctx); q += BLOCK_ROWS) {
            const size_t heads = group - i, queries = a->queries - q;
            block b = {.first = {batch, kv_head * group + i, q},
                       .heads = heads < a->together ? heads : a->together,
                       .queries = queries < BLOCK_ROWS ? queries : BLOCK_ROWS};
            begin_block(j, m, &b);
            const size_t met = scored(j, &b, n);
            score(j, m, &b, k, met);
            finish_block(j, m, &b, met, used);
            share_values(j, m, &b, &v);
        }
}

static void attend_slice(void *arg, size_t slice) {
    const job *j = arg;
    const qs_attention *a = j->a;
    const size_t items = a->batches * a->kv_heads;
    const scratch m = scratch_of(j, slice);
    for (size_t i = 0; i < a->bias_floats; i++) {
        m.bias[i] = -0.0f;
        m.factors[i] = a->scale;
    }
    const size_t end = qs_slice_begin(items, a->slices, slice + 1);
    for (size_t i = qs_slice_begin(items, a->slices, slice); i < end; i++)
        attend_head(j, &m, i);
}

void qs_attention_run(const qsim_ctx *ctx, const qs_attention *a, const qs_attention_data *data) {
    job j = {a, data, ctx};
    if (a->batches && a->kv_heads)
        qs_parallel(ctx, a->slices, attend_slice, &j);
}

/* ---- planning ---- */

static int too_large(qs_lower *l) {
    return qs_fail(l->error, QSIM_E_LIMIT, "an attention is too large");
}

/* Chooses which queries are computed together, and whether values are packed for them. */
static void plan_blocks(qs_attention *a) {
    const size_t group = a->kv_heads ? a->heads / a->kv_heads : 0;
    const size_t queries = a->queries < BLOCK_ROWS ? a->queries : BLOCK_ROWS;
    a->together = queries ? BLOCK_ROWS / queries : 1;
    a->together = a->together < group ? a->together : group;
    a->rows = a->together * queries;
    const bool once = a->rows == group * a->queries, dense = a->v.row == a->v_width;
    a->v_in_place = a->v_width % 8 == 0 && (once ? dense || a->rows <= FEW_ROWS
                                                 : dense && a->v_width <= a->kernels->panel);
}

QS_COLD int qs_attention_plan(qs_lower *l, qs_attention *a, size_t *bytes) {
    const double macs = qs_real(a->batches) * qs_real(a->heads) * qs_real(a->queries) *
                        qs_real(a->keys) * qs_real(a->width + a->v_width);
    a->kernels = l->ctx->kernels->f32;
    plan_blocks(a);
    const size_t values = a->v_in_place ? 0 : a->keys;
    if (!qk_pack_f32_size(a->kernels->panel, a->width, a->keys, &a->k_floats) ||
        !qk_pack_f32_size(a->kernels->panel, values, a->v_width, &a->v_floats) ||
        !qs_mul(a->rows, a->keys, &a->score_floats) || !qs_mul(a->rows, a->width, &a->q_floats) ||
        a->k_floats > SIZE_MAX / 64 || a->v_floats > SIZE_MAX / 64 ||
        a->score_floats > SIZE_MAX / 64 || a->q_floats > SIZE_MAX / 64)
        return too_large(l);
    a->k_floats = qs_align(a->k_floats, 16);
    a->v_floats = qs_align(a->v_floats, 16);
    a->score_floats = qs_align(a->score_floats + SLACK, 16);
    a->bias_floats = qs_align(a->keys > a->v_width ? a->keys : a->v_width, 64);
    a->q_floats = qs_align(a->q_floats + SLACK, 16);
    a->slice_floats =
        a->k_floats + a->v_floats + a->score_floats + 2 * a->bias_floats + a->q_floats;
    a->slices = qs_slice_count(l->ctx, a->batches * a->kv_heads, macs / QS_MACS_F32);
    l->step->macs = macs < 9e18 ? (int64_t)macs : INT64_MAX;
    if (!qs_mul(a->slice_floats, a->slices, bytes) || !qs_mul(*bytes, sizeof(float), bytes))
        return too_large(l);
    return QSIM_OK;
}

/* ---- caches ---- */

void qs_cache_join(const qs_cache *c, const void *past, const void *fresh, void *to, size_t item) {
    const size_t row = c->width * c->element, old = c->past * row;
    const size_t from = item / c->heads * c->from.batch + item % c->heads * c->from.head;
    char *entry = (char *)to + item * (old + c->fresh * row);
    if (old)
        memcpy(entry, (const char *)past + item * old, old);
    qs_copy_rows((const char *)fresh + from * c->element, (ptrdiff_t)(c->from.row * c->element),
                 entry + old, (ptrdiff_t)row, row, c->fresh);
}

qs_heads qs_heads_dense(size_t heads, size_t rows, size_t width) {
    return (qs_heads){heads * rows * width, rows * width, width};
}

qs_heads qs_heads_packed(size_t heads, size_t rows, size_t width) {
    return (qs_heads){rows * heads * width, width, heads * width};
}
