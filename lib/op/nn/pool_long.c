/* SPDX-License-Identifier: MIT */
/*
 * Averages of whole large images, channels last. The kernels of pools add the elements of a window
 * one after the other; over millions of pixels that loses digits, so sums are made in blocks, as by
 * ReduceMean.
 */
#include "op/nn/pool.h"

#include "op/nn/reduce_axes.h"

#define LEAST ((size_t)4096) /* pixels; four times as many as a lane of a block adds */

typedef struct long_average {
    qs_reduce mean; /* of one image */
    size_t images, y_step, column;
} long_average;

static void run_long_average(const qs_step *s, const qs_frame *f) {
    const long_average *p = s->params;
    const float *x = qs_step_in(s, f, 0);
    float *y = (float *)qs_step_out(s, f, 0) + p->column;
    for (size_t i = 0; i < p->images; i++, x += p->mean.count * p->mean.outputs, y += p->y_step)
        qs_reduce_run(&p->mean, f->ctx, x, y);
}

bool qs_pool_is_long(const qs_pool_plan *p) {
    return p->kh == p->h && p->row.kw == p->w && p->oh == 1 && p->ow == 1 && p->top == 0 &&
           p->bottom == 0 && p->row.left == 0 && p->row.right == 0 && p->kh * p->row.kw >= LEAST;
}

QS_COLD int qs_lower_long_average(qs_lower *l, const qs_pool_plan *plan) {
    const size_t pixels = plan->h * plan->w;
    const long_average made = {.mean = {.kind = QS_REDUCE_MEAN,
                                        .bytes = sizeof(float),
                                        .fn = qs_reduce_f32,
                                        .kept = 1,
                                        .kept_dims = {plan->c},
                                        .kept_strides = {1},
                                        .outputs = plan->c,
                                        .count = pixels,
                                        .reduced = 1,
                                        .dims = {pixels},
                                        .strides = {plan->c},
                                        .rows = {1, pixels, plan->c}},
                               .images = plan->n,
                               .y_step = plan->y_step,
                               .column = plan->column};
    long_average *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    *p = made;
    l->step->run = run_long_average;
    l->step->scratch = 0;
    l->step->min_lead = l->step->min_lag = 0; /* it reads the input as long as it writes */
    return QSIM_OK;
}
