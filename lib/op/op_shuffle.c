/* SPDX-License-Identifier: MIT */
/*
 * QLinearShuffle, internal: QLinearConcat of two tensors along the last axis, whose channels then
 * alternate, a0 b0 a1 b1 ..., and may be split in two: what ShuffleNet has between its units. Done
 * for as many pixels at a time as stay in the cache. Attribute first: channels of output 0.
 */
#include "base/ctx.h"
#include "kernel/fours.h"
#include "kernel/table.h"
#include "kernel/u8.h"
#include "op/qconcat.h"

#define CHUNK 4096

QS_RARE static int infer(qs_infer *x) {
    int code = qs_qconcat_infer(x);
    const int64_t first = qs_node_int(x->node, "first", 0);
    const qs_value *a = qs_infer_in(x, 2), *b = qs_infer_in(x, 5);
    if (code)
        return code;
    if (x->out[0].rank < 1 || !b || x->out[0].dtype != QSIM_UINT8)
        return qs_infer_fail(x, QSIM_E_INTERNAL, "two unsigned operands are expected");
    const int32_t last = x->out[0].rank - 1;
    const int64_t c = a->dims[last].size, all = 2 * c;
    if (qs_node_int(x->node, "axis", 0) != last || c < 1 || c > CHUNK || b->dims[last].size != c ||
        first < 1 || (x->node->output_count == 1 ? first != all : first >= all))
        return qs_infer_fail(x, QSIM_E_INTERNAL, "%lld of %lld channels", (long long)first,
                             (long long)all);
    qs_dim dims[QSIM_MAX_RANK];
    memcpy(dims, x->out[0].dims, ((size_t)last + 1) * sizeof(*dims));
    for (int32_t i = 0; i < x->node->output_count && !code; i++) {
        dims[last] = (qs_dim){i ? all - first : first, NULL};
        code = qs_infer_out(x, i, QSIM_UINT8, last + 1, dims);
    }
    return code;
}

typedef struct shuffle_params {
    const uint8_t *tables;
    bool same[2]; /* the table changes nothing */
    size_t pixels, channels, first;
} shuffle_params;

typedef struct shuffle_job {
    const shuffle_params *p;
    const qk_u8 *k;
    const uint8_t *x[2];
    uint8_t *y[2];
} shuffle_job;

/* y = a0 b0 a1 b1 ..., sixteen of each. */
static inline void weave16(const uint8_t *a, const uint8_t *b, uint8_t *y) {
#ifdef QK_SHUFFLES
    qk_sixteen x[2], z[2];
    memcpy(&x[0], a, 16);
    memcpy(&x[1], b, 16);
    z[0] =
        __builtin_shufflevector(x[0], x[1], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    z[1] = __builtin_shufflevector(x[0], x[1], 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30,
                                   15, 31);
    memcpy(y, z, 32);
#else
    for (int i = 0; i < 16; i++) {
        y[2 * i] = a[i];
        y[2 * i + 1] = b[i];
    }
#endif
}

QS_RARE static void weave_few(const uint8_t *a, const uint8_t *b, uint8_t *y, size_t n) {
    for (size_t i = 0; i < n; i++) {
        y[2 * i] = a[i];
        y[2 * i + 1] = b[i];
    }
}

/* The same of n each; the last sixteen overlap those before. */
static inline void weave(const uint8_t *a, const uint8_t *b, uint8_t *y, size_t n) {
    if (n < 16) {
        weave_few(a, b, y, n);
        return;
    }
    for (size_t i = 0; i + 16 <= n; i += 16)
        weave16(a + i, b + i, y + 2 * i);
    weave16(a + n - 16, b + n - 16, y + 2 * (n - 16));
}

/* Pixels whose two rows of c bytes are here, to where they belong from pixel `at` on. */
static void place(const shuffle_job *j, const uint8_t *a, const uint8_t *b, size_t at, size_t n) {
    const size_t c = j->p->channels, first = j->p->first, rest = 2 * c - first, half = first / 2;
    uint8_t row[2 * CHUNK];
    if (!j->y[1]) {
        weave(a, b, j->y[0] + at * 2 * c, n * c);
        return;
    }
    for (size_t r = 0; r < n; r++, a += c, b += c) {
        uint8_t *y0 = j->y[0] + (at + r) * first, *y1 = j->y[1] + (at + r) * rest;
        if (first % 2) {
            weave(a, b, row, c);
            memcpy(y0, row, first);
            memcpy(y1, row + first, rest);
        } else {
            weave(a, b, y0, half);
            weave(a + half, b + half, y1, c - half);
        }
    }
}

static void shuffle_range(const void *arg, size_t begin, size_t end) {
    const shuffle_job *j = arg;
    const shuffle_params *p = j->p;
    const size_t c = p->channels, most = CHUNK / c;
    uint8_t made[2][CHUNK + 320];
    for (size_t at = begin, n; at < end; at += n) {
        const uint8_t *x[2] = {j->x[0] + at * c, j->x[1] + at * c};
        n = end - at < most ? end - at : most;
        for (int i = 0; i < 2; i++) {
            if (p->same[i])
                continue;
            j->k->table(p->tables + 256 * i, x[i], 0, made[i], 0, n * c, 1);
            x[i] = made[i];
        }
        place(j, x[0], x[1], at, n);
    }
}

static void run_shuffle(const qs_step *s, const qs_frame *f) {
    const shuffle_params *p = s->params;
    const shuffle_job job = {
        .p = p,
        .k = f->ctx->kernels->u8,
        .x = {qs_step_in(s, f, 2), qs_step_in(s, f, 5)},
        .y = {qs_step_out(s, f, 0), p->first < 2 * p->channels ? qs_step_out(s, f, 1) : NULL}};
    qs_ranges(f->ctx, p->pixels, QS_GRAIN / p->channels + 1, shuffle_range, &job);
}

static bool changes_nothing(const uint8_t *table) {
    for (int i = 0; i < 256; i++)
        if (table[i] != i)
            return false;
    return true;
}

QS_RARE static int lower(qs_lower *l) {
    const qs_value *x = qs_lower_in(l, 2);
    if (!l->packed)
        return qs_fail(l->error, QSIM_E_INTERNAL, "%s: a shuffle without tables", l->model);
    shuffle_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->tables = l->packed;
    for (int i = 0; i < 2; i++)
        p->same[i] = changes_nothing(p->tables + 256 * i);
    p->channels = (size_t)x->dims[x->rank - 1].size;
    p->pixels = (size_t)qs_dims_product(x->dims, 0, x->rank - 1);
    p->first = (size_t)qs_node_int(l->node, "first", 0);
    l->step->run = run_shuffle;
    l->step->kernel = "shuffle";
    return QSIM_OK;
}

static const qs_attr_rule attrs[] = {{"axis", QS_ATTR_INT, 0, 0}, {"first", QS_ATTR_INT, 0, 0}};

const qs_op qs_op_qsim_qlinear_shuffle = {.domain = "qsim",
                                          .name = "QLinearShuffle",
                                          .until = INT16_MAX,
                                          .min_in = 8,
                                          .max_in = 8,
                                          .min_out = 1,
                                          .max_out = 2,
                                          .attrs = attrs,
                                          .attr_count = QS_COUNT(attrs),
                                          .infer = infer,
                                          .pack = qs_qconcat_pack,
                                          .lower = lower};
