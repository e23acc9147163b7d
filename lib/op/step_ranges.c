/* SPDX-License-Identifier: MIT */
/* Divides a step's elements among threads, and into pieces between which it can be cancelled. */
#include "base/ctx.h"
#include "base/slices.h"
#include "op/rules.h"

size_t qs_piece(const qsim_ctx *ctx, size_t at, size_t n) {
    if (n - at <= QS_PIECE)
        return n - at;
    return at && qs_stopped(ctx) ? 0 : QS_PIECE;
}

typedef struct ranges {
    qs_range_fn fn;
    const void *arg;
    size_t n, unit, parts, step;
    const qsim_ctx *ctx; /* NULL: nothing can stop it */
} ranges;

static size_t range_begin(const ranges *r, size_t i) {
    const size_t at = qs_slice_begin((r->n + r->unit - 1) / r->unit, r->parts, i) * r->unit;
    return at < r->n ? at : r->n;
}

/* Computes [begin, end), at most `step` items between two checks for a stop. */
static void in_steps(const ranges *r, size_t begin, size_t end) {
    for (size_t n; begin < end && !(r->ctx && qs_stopped(r->ctx)); begin += n) {
        n = end - begin < r->step ? end - begin : r->step;
        r->fn(r->arg, begin, begin + n);
    }
}

static void ranges_task(void *arg, size_t i) {
    const ranges *r = arg;
    in_steps(r, range_begin(r, i), range_begin(r, i + 1));
}

#define LONGEST_PART_NS 2e6

void qs_ranges(const qsim_ctx *ctx, size_t n, size_t grain, qs_range_fn fn, const void *arg) {
    if (n > 0 && n <= grain) { /* less than a slice */
        fn(arg, 0, n);
        return;
    }
    const double work = grain ? qs_real(n) / qs_real(grain) * QS_SLICE_NS : 0.0;
    size_t parts = ctx ? qs_slice_count(ctx, n, work) : 1;
    /* Long work is divided into more parts, since a stop is noticed between parts. */
    if (ctx && work > qs_real(parts) * LONGEST_PART_NS && n > parts) {
        const double wanted = work / LONGEST_PART_NS;
        parts = wanted < qs_real(n) ? qs_whole(wanted) + 1 : n;
    }
    const size_t unit = n / (parts + !parts) < 16 * QS_RANGE_UNIT ? 1 : QS_RANGE_UNIT;
    /* A grain of one item may be much longer than a slice. */
    const size_t step = (grain * 16 + QS_RANGE_UNIT - 1) / QS_RANGE_UNIT * QS_RANGE_UNIT;
    ranges r = {fn, arg, n, unit, parts, grain > 1 ? step : 1, ctx};
    if (parts <= 1) {
        in_steps(&r, 0, n);
        return;
    }
    qs_parallel(ctx, parts, ranges_task, &r);
}
