/* SPDX-License-Identifier: MIT */
#include "op/broadcast.h"

#include "op/elementwise/dense.h"
#include "op/rules.h"

/* Bytes of a tile: a part of the first cache. */
#define TILE ((size_t)4096)

void qs_broadcast_strides(const qs_value *v, int32_t rank, size_t *strides) {
    size_t step = 1;
    for (int32_t i = rank - 1; i >= 0; i--) {
        int32_t k = i - (rank - v->rank);
        bool varies = k >= 0 && v->dims[k].size != 1;
        strides[i] = varies ? step : 0;
        if (varies)
            step *= (size_t)v->dims[k].size;
    }
}

QS_COLD void qs_loops_make(qs_loops *l, const qs_value *a, const qs_value *b, const qs_value *y) {
    size_t sa[QSIM_MAX_RANK], sb[QSIM_MAX_RANK];
    memset(l, 0, sizeof(*l));
    qs_broadcast_strides(a, y->rank, sa);
    qs_broadcast_strides(b, y->rank, sb);
    int32_t n = 0; /* merged axes, outermost first */
    for (int32_t i = 0; i < y->rank; i++) {
        size_t d = (size_t)y->dims[i].size;
        if (d == 1)
            continue;
        if (n > 0 && l->a[n - 1] == sa[i] * d && l->b[n - 1] == sb[i] * d) {
            l->dims[n - 1] *= d;
            l->a[n - 1] = sa[i];
            l->b[n - 1] = sb[i];
            continue;
        }
        l->dims[n] = d;
        l->a[n] = sa[i];
        l->b[n++] = sb[i];
    }
    l->inner = n ? l->dims[n - 1] : 1;
    l->inner_a = n ? l->a[n - 1] : 1;
    l->inner_b = n ? l->b[n - 1] : 1;
    l->rank = n ? n - 1 : 0;
    l->rows = 1;
    for (int32_t i = 0; i < l->rank; i++)
        l->rows *= l->dims[i];
    if (l->inner == 0)
        l->rows = 0;
}

void qs_loops_offsets(const qs_loops *l, size_t row, size_t *a, size_t *b) {
    *a = 0;
    *b = 0;
    for (int32_t i = l->rank - 1; i >= 0; i--) {
        size_t at = row % l->dims[i];
        row /= l->dims[i];
        *a += at * l->a[i];
        *b += at * l->b[i];
    }
}

bool qs_loops_repeat(const qs_loops *l, size_t size_a, size_t size_b) {
    if (l->rows == 0 || l->rank == 0 || l->inner_a != 1 || l->inner_b != 1)
        return false;
    const size_t n = l->inner, a = l->a[l->rank - 1], b = l->b[l->rank - 1];
    return (a == n && b == 0 && n <= TILE / 2 / size_b) ||
           (a == 0 && b == n && n <= TILE / 2 / size_a);
}

/* Bytes of a row up to which copies cost less than a call. */
#define SHORT ((size_t)1024)

QS_COLD void qs_broadcast_spread(qs_broadcast *how) {
    qs_loops *l = &how->loops;
    const size_t size = how->size_a > how->size_b ? how->size_a : how->size_b;
    if (l->rows <= 1 || l->inner > SHORT / size || l->inner_a == l->inner_b)
        return;
    how->spread = l->inner_a ? l->b : l->a;
    l->inner_a = l->inner_b = 1;
}

typedef struct job {
    const qs_broadcast *how;
    const qsim_ctx *ctx;
    const char *a, *b;
    char *y;
    const void *arg;
    size_t most; /* rows in a tile, 1: none */
} job;

/* Computes rows [begin, end). */
static void in_rows(const void *arg, size_t begin, size_t end) {
    const job *j = arg;
    const qs_broadcast *s = j->how;
    const qs_loops *l = &s->loops;
    const size_t n = l->inner, same = l->rank ? l->dims[l->rank - 1] : 1;
    const bool second = s->spread ? s->spread == l->b : l->rank && l->b[l->rank - 1] == 0;
    const size_t element = second ? s->size_b : s->size_a, size = n * element;
    const char *have = NULL;
    _Alignas(64) char tile[TILE + 16];
    for (size_t r = begin, k; r < end; r += k) {
        size_t oa, ob;
        qs_loops_offsets(l, r, &oa, &ob);
        const char *a = j->a + oa * s->size_a, *b = j->b + ob * s->size_b;
        k = same - r % same < j->most ? same - r % same : j->most;
        k = end - r < k ? end - r : k;
        if (j->most > 1 || s->spread) {
            const char **row = second ? &b : &a;
            for (size_t i = 0; s->spread && i < k; i++)
                qs_spread(*row + i * s->spread[l->rank - 1] * element, element, tile + i * size,
                          size);
            if (!s->spread && *row != have)
                qs_copy_rows(have = *row, 0, tile, (ptrdiff_t)size, size, j->most);
            *row = tile;
        }
        char *y = j->y + r * n * s->size_y;
        for (size_t at = 0, count; (count = qs_piece(j->ctx, at, k * n)); at += count)
            s->fn(j->arg, a + at * l->inner_a * s->size_a, b + at * l->inner_b * s->size_b,
                  y + at * s->size_y, count);
    }
}

/* Computes elements [begin, end) of the only row. */
static void in_span(const void *arg, size_t begin, size_t end) {
    const job *j = arg;
    const qs_broadcast *s = j->how;
    s->fn(j->arg, j->a + begin * s->loops.inner_a * s->size_a,
          j->b + begin * s->loops.inner_b * s->size_b, j->y + begin * s->size_y, end - begin);
}

void qs_broadcast_run(const qs_broadcast *s, const qsim_ctx *ctx, const void *a, const void *b,
                      void *y, const void *arg) {
    const qs_loops *l = &s->loops;
    job j = {s, ctx, a, b, y, arg, 1};
    if (l->rows == 1) {
        qs_ranges(ctx, l->inner, s->grain, in_span, &j);
        return;
    }
    const size_t *dense = s->spread == l->a ? l->b : l->a;
    if (s->spread ? dense[l->rank - 1] == l->inner : qs_loops_repeat(l, s->size_a, s->size_b)) {
        const size_t same = l->dims[l->rank - 1];
        const bool first = s->spread ? s->spread == l->a : l->b[l->rank - 1] != 0;
        const size_t fits = TILE / (l->inner * (first ? s->size_a : s->size_b));
        j.most = fits < same ? fits : same;
    }
    qs_ranges(ctx, l->rows, s->grain / (l->inner + 1) + 1, in_rows, &j);
}
