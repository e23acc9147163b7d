/* SPDX-License-Identifier: MIT */
/* Attention of doubles, which is rare: one query after the other. */
#include "op/nn/attention.h"

#include <math.h>

#include "base/ctx.h"
#include "base/slices.h"
#include "kernel/elementary64.h"

/* Keys between two checks for a stop. */
#define SOME_KEYS ((size_t)1024)

typedef struct job {
    const qs_attention *a;
    const qs_attention_data *d;
    const qsim_ctx *ctx;
} job;

typedef struct place {
    size_t batch, head, query;
} place;

static double dot(const double *a, const double *b, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum = sum + a[i] * b[i];
    return sum;
}

/* What the mask adds to the score of a key. */
static double bias_of(const job *j, const place *at, size_t key) {
    const qs_attention *a = j->a;
    const size_t row =
        at->batch * a->mask.batch + at->head * a->mask.head + at->query * a->mask.row;
    if (a->mask_kind == QS_MASK_NONE)
        return 0;
    if (key >= a->mask_keys)
        return -INFINITY;
    if (a->mask_kind == QS_MASK_FLOAT)
        return ((const double *)j->d->mask)[row + key];
    return ((const uint8_t *)j->d->mask)[row + key] ? 0 : -INFINITY;
}

static void softmax(double *s, size_t n) {
    double top = s[0], sum = 0;
    for (size_t i = 0; i < n; i++)
        top = s[i] > top ? s[i] : top;
    for (size_t i = 0; i < n; i++) {
        s[i] = qk_exp64(s[i] - top);
        sum = sum + s[i];
    }
    for (size_t i = 0; i < n; i++)
        s[i] = s[i] / sum;
}

/* Makes the softmax shares of n keys in s; `qk`: the output's row of scores, or NULL. */
static void shares(const job *j, const place *at, double *s, size_t n, double *qk) {
    const qs_attention *a = j->a;
    const qs_attention_keys *of = &j->d->of[at->batch];
    const size_t kv_head = at->head / (a->heads / a->kv_heads);
    const double *q = (const double *)j->d->q + at->batch * a->q.batch + at->head * a->q.head +
                      at->query * a->q.row;
    const double *k = (const double *)j->d->k + at->batch * a->k.batch + kv_head * a->k.head;
    int64_t begin, end;
    bool any = false;
    qs_attention_visible(a, of->first + (int64_t)at->query, of->used, &begin, &end);
    for (size_t i = 0; i < n && !(i % SOME_KEYS == 0 && qs_stopped(j->ctx)); i++) {
        double x = dot(q, k + i * a->k.row, a->width) * a->scale64;
        const double whole = x, cap = (double)a->cap;
        x = cap > 0 ? cap * qk_tanh64(x / cap) : x;
        const double capped = x;
        const bool outside = i < (size_t)begin || i >= (size_t)end;
        const double bias = outside ? -INFINITY : bias_of(j, at, i);
        any = any || bias != -INFINITY;
        s[i] = outside ? bias : x + bias;
        if (qk)
            qk[i] = a->qk_mode == QS_QK_PRODUCT  ? whole
                    : a->qk_mode == QS_QK_CAPPED ? capped
                                                 : s[i];
    }
    if (any)
        softmax(s, n);
    else
        memset(s, 0, n * sizeof(*s));
    if (qk && a->qk_mode == QS_QK_SOFTMAX)
        memcpy(qk, s, n * sizeof(*s));
}

static void attend(const job *j, const place *at, double *s) {
    const qs_attention *a = j->a;
    const size_t kv_head = at->head / (a->heads / a->kv_heads);
    const size_t used = (size_t)j->d->of[at->batch].used;
    const size_t n = a->qk_mode == QS_QK_NONE ? used : a->keys;
    const size_t row = (at->batch * a->heads + at->head) * a->queries + at->query;
    double *qk = a->qk_mode == QS_QK_NONE ? NULL : (double *)j->d->qk + row * a->keys;
    const double *v = (const double *)j->d->v + at->batch * a->v.batch + kv_head * a->v.head;
    double *y =
        (double *)j->d->y + at->batch * a->y.batch + at->head * a->y.head + at->query * a->y.row;
    shares(j, at, s, n, qk);
    memset(y, 0, a->v_width * sizeof(*y));
    for (size_t k = 0; k < used && !(k % SOME_KEYS == 0 && qs_stopped(j->ctx)); k++)
        for (size_t i = 0; i < a->v_width && s[k] != 0; i++)
            y[i] = y[i] + s[k] * v[k * a->v.row + i];
}

static void attend_slice(void *arg, size_t slice) {
    const job *j = arg;
    const qs_attention *a = j->a;
    const size_t items = a->batches * a->kv_heads, group = a->heads / a->kv_heads;
    const size_t end = qs_slice_begin(items, a->slices, slice + 1);
    double *s = (double *)j->d->scratch + slice * a->score_floats;
    for (size_t i = qs_slice_begin(items, a->slices, slice); i < end; i++) {
        for (int values = 0; values < 2 && j->d->prepare; values++)
            j->d->prepare(j->d->arg, i, values != 0);
        for (size_t r = 0; r < group * a->queries && !qs_stopped(j->ctx); r++) {
            const place at = {i / a->kv_heads, i % a->kv_heads * group + r / a->queries,
                              r % a->queries};
            attend(j, &at, s);
        }
    }
}

void qs_attention64_run(const qsim_ctx *ctx, const qs_attention *a, const qs_attention_data *data) {
    job j = {a, data, ctx};
    if (a->batches && a->kv_heads)
        qs_parallel(ctx, a->slices, attend_slice, &j);
}

int qs_attention64_plan(qs_lower *l, qs_attention *a, size_t *bytes) {
    const double macs = qs_real(a->batches) * qs_real(a->heads) * qs_real(a->queries) *
                        qs_real(a->keys) * qs_real(a->width + a->v_width);
    a->slices = qs_slice_count(l->ctx, a->batches * a->kv_heads, macs);
    l->step->macs = macs < 9e18 ? (int64_t)macs : INT64_MAX;
    a->score_floats = a->keys;
    if (a->keys > SIZE_MAX / 64 || !qs_mul(a->keys, a->slices, bytes) ||
        !qs_mul(*bytes, sizeof(double), bytes) || *bytes > SIZE_MAX / 8)
        return qs_fail(l->error, QSIM_E_LIMIT, "an attention is too large");
    *bytes = qs_align(*bytes, 64);
    return QSIM_OK;
}
