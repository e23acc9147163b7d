/* SPDX-License-Identifier: MIT */
/* Plan of a pool: made by op_pool.c, executed by pool_rows.c. */
#ifndef QS_POOL_H
#define QS_POOL_H

#include "kernel/f32.h"
#include "op/step.h"

/*
 * Inputs of internal forms only: the tensor that the results go into (window.h), and after it a
 * table in which bytes are looked up.
 */

#define QS_POOL_OVER  1 /* MaxPool and averages of floats */
#define QS_QPOOL_OVER 5 /* averages of bytes */

typedef struct qs_pool_plan {
    void (*kernel)(const qk_pool *p);
    size_t n, h, w, c, oh, ow, element;
    size_t y_step, column; /* elements per pixel of y; index of the first result */
    size_t line; /* bytes of a row computed in scratch memory; 0: rows are computed in y */
    size_t kh, sh, dh, top, bottom;
    size_t whole,
        whole_end; /* rows whose windows are inside the image: computed several per call */
    size_t slices;
    size_t wave; /* rows computed before any later one, if input and output overlap */
    qk_pool row; /* the fields that are the same for every row */
    /*
     * Large windows of MaxPool: `along` computes maxima along the input rows of `band` output rows
     * into band_bytes of scratch memory, `row` then those down the columns; 0: both at once.
     */
    size_t band, band_bytes;
    qk_pool along;
    /* Averages of few channels: `row` computes every column, of which each pick-th is kept; or 0.
     */
    size_t pick;
    bool quantized, has_y_zero, column_major;
    int32_t table; /* index of the input; 0: none */
} qs_pool_plan;

/* Run steps whose params are a qs_pool_plan; the latter computes Indices, too. */
void qs_run_pool(const qs_step *s, const qs_frame *f);
void qs_run_pool_indices(const qs_step *s, const qs_frame *f);

/* Whether an average of floats has the whole of a large image as its window. */
bool qs_pool_is_long(const qs_pool_plan *p);
/* Lowers such an average, of this plan, which it replaces. */
int qs_lower_long_average(qs_lower *l, const qs_pool_plan *plan);

#endif
