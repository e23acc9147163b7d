/* SPDX-License-Identifier: MIT */
/* Which columns of a pooling window lie inside the image. For every instruction set. */
#ifndef QK_POOL_WINDOW_H
#define QK_POOL_WINDOW_H

#include "kernel/f32.h"
#include "quant/requantize.h"

typedef struct qk_window {
    ptrdiff_t first; /* column of the first tap inside */
    size_t count;    /* taps inside, dw columns apart */
} qk_window;

static inline qk_window qk_window_at(const qk_pool *p, size_t ox) {
    qk_window w = {(ptrdiff_t)(ox * p->sw) - p->left, p->kw};
    const ptrdiff_t dw = (ptrdiff_t)p->dw, width = (ptrdiff_t)p->width;
    if (w.first < 0) {
        size_t skip = (size_t)((-w.first + dw - 1) / dw);
        skip = skip < w.count ? skip : w.count;
        w.first += (ptrdiff_t)skip * dw;
        w.count -= skip;
    }
    if (w.count != 0 && w.first + (ptrdiff_t)(w.count - 1) * dw >= width) {
        w.count = w.first >= width ? 0 : (size_t)((width - 1 - w.first) / dw) + 1;
    }
    return w;
}

/* What an average divides by. A window wholly outside has sum 0: any divisor will do. */
static inline size_t qk_window_count(const qk_pool *p, size_t inside) {
    size_t n = p->fixed ? p->fixed : p->kh * inside;
    return n ? n : 1;
}

static inline float qk_average_multiplier(const qk_pool *p, size_t inside) {
    return p->x_scale / (p->y_scale * (float)qk_window_count(p, inside));
}

#endif
