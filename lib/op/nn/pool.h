/* SPDX-License-Identifier: MIT */
/* Pools as they are executed: lowered by op_pool.c, run by pool_rows.c. */
#ifndef QS_POOL_H
#define QS_POOL_H

#include "kernel/f32.h"
#include "op/step.h"

/* Inputs that pools have inside only (op/window.h): the tensor that they write into, as it is so
 * far, and after it a table that their bytes are looked up in. */

#define QS_POOL_OVER  1 /* of MaxPool and averages of floats */
#define QS_QPOOL_OVER 5 /* of averages of bytes */

typedef struct qs_pool_plan {
    void (*kernel)(const qk_pool *p);
    size_t n, h, w, c, oh, ow, element;
    size_t y_step, column; /* elements of a pixel of the output, and those before the results */
    size_t line;           /* bytes of a row that is made apart; 0: where it belongs */
    size_t kh, sh, dh, top, bottom;
    size_t whole, whole_end; /* rows with windows that lie inside: several for one call */
    size_t slices;
    size_t wave; /* rows that are done before any of the next, if the output is over the input */
    qk_pool row; /* what is the same for every row */
    /* Maxima of large windows: first those along the rows under `band` rows of the output, which
     * take band_bytes, then those down their columns, by `row`; 0: both at once. */
    size_t band, band_bytes;
    qk_pool along;
    bool quantized, has_y_zero, column_major;
    int32_t table; /* the input; 0: there is none */
} qs_pool_plan;

/* Steps whose params are such a plan; the latter makes Indices, too. */
void qs_run_pool(const qs_step *s, const qs_frame *f);
void qs_run_pool_indices(const qs_step *s, const qs_frame *f);

#endif
