/* SPDX-License-Identifier: MIT */
/* Which columns of a pooling window lie inside the image. For every instruction set. */
#ifndef QK_POOL_WINDOW_H
#define QK_POOL_WINDOW_H

#include "kernel/f32.h"
#include "quant/requantize.h"

typedef struct qk_window {
    ptrdiff_t first; /* column of the first tap inside */
    size_t count;    /* taps inside, dw columns apart */
    size_t divisor;  /* divisor of an average */
} qk_window;

/* Taps of a window from `start` on that lie before column `end`. */
static inline size_t qk_taps_before(const qk_pool *p, ptrdiff_t start, ptrdiff_t end) {
    const ptrdiff_t dw = (ptrdiff_t)p->dw;
    if (start + (ptrdiff_t)(p->kw - 1) * dw < end)
        return p->kw;
    return start >= end ? 0 : (size_t)((end - 1 - start) / dw) + 1;
}

static inline qk_window qk_window_at(const qk_pool *p, size_t ox) {
    const ptrdiff_t start = (ptrdiff_t)(ox * p->sw) - p->left, dw = (ptrdiff_t)p->dw;
    const size_t inside = qk_taps_before(p, start, (ptrdiff_t)p->width);
    qk_window w = {start, inside, 0};
    if (start < 0) {
        const size_t outside = (size_t)((dw - 1 - start) / dw);
        const size_t skip = outside < inside ? outside : inside;
        w.first = start + (ptrdiff_t)skip * dw;
        w.count = inside - skip;
    }
    w.divisor = p->count_pads
                    ? p->count_rows * qk_taps_before(p, start, (ptrdiff_t)p->width + p->right)
                    : p->count_rows * w.count;
    /* A window wholly outside has the sum 0: any divisor will do. */
    w.divisor = w.divisor ? w.divisor : 1;
    return w;
}

/* Sets inside and inside_end, once per image, since it divides. */
static inline void qk_pool_set_inside(qk_pool *p) {
    const ptrdiff_t span = (ptrdiff_t)((p->kw - 1) * p->dw), sw = (ptrdiff_t)p->sw;
    const ptrdiff_t last = (ptrdiff_t)p->width - 1 - span; /* the last column to begin at */
    const ptrdiff_t first = p->left > 0 ? (p->left + sw - 1) / sw : 0;
    ptrdiff_t end = last + p->left < 0 ? 0 : (last + p->left) / sw + 1;
    end = end < (ptrdiff_t)p->ow ? end : (ptrdiff_t)p->ow;
    const bool any = last >= 0 && first < end;
    p->inside = any ? (size_t)first : 0;
    p->inside_end = any ? (size_t)end : 0;
}

/* The offset of the first window inside. */
static inline ptrdiff_t qk_pool_first(const qk_pool *p) {
    return ((ptrdiff_t)(p->inside * p->sw) - p->left) * (ptrdiff_t)p->channels;
}

/*
 * Joins *n outputs to one run where they and their windows are contiguous: returns the elements of
 * a run, and sets *n to the number of runs.
 */
static inline size_t qk_pool_run(const qk_pool *p, size_t *n) {
    const bool together = p->sw == 1 && p->y_step == p->channels && *n > 0;
    const size_t windows = together ? *n : 1;
    *n = together ? 1 : *n;
    return windows * p->channels;
}

static inline float qk_average_multiplier(const qk_pool *p, const qk_window *w) {
    return p->x_scale / (p->y_scale * (float)w->divisor);
}

#endif
