/* SPDX-License-Identifier: MIT */
/*
 * Averages of whole large images, channels last. The kernels of pools add the elements of a window
 * one after the other; over millions of pixels that loses digits, so sums are made in blocks, as by
 * ReduceMean.
 */
#include "op/nn/pool.h"

#include "base/ctx.h"
#include "op/nn/reduce.h"
#include "op/nn/reduce_axes.h"

#define LEAST ((size_t)4096) /* pixels; four times as many as a lane of a block adds */
#define GROUP ((size_t)64)   /* channels that are averaged at once */

typedef struct long_average {
    qs_reduce mean; /* of one image */
    size_t images, y_step, column;
} long_average;

typedef struct long_job {
    const qsim_ctx *ctx;
    const long_average *p;
    const float *x;
    float *y;
} long_job;

/* Groups of channels, of all images. */
static void average_groups(const void *arg, size_t begin, size_t end) {
    const long_job *j = arg;
    const size_t channels = j->p->mean.outputs, groups = (channels + GROUP - 1) / GROUP;
    for (size_t g = begin; g < end; g++) {
        const size_t image = g / groups, at = g % groups * GROUP, left = channels - at;
        const float *x = j->x + image * j->p->mean.count * channels + at;
        float *y = j->y + image * j->p->y_step + j->p->column + at;
        for (size_t n = left < GROUP ? left : GROUP, done; n > 0; n -= done, x += done, y += done)
            done = qs_reduce_f32(&j->p->mean, j->ctx, x, y, n);
    }
}

static void run_long_average(const qs_step *s, const qs_frame *f) {
    const long_average *p = s->params;
    const long_job job = {f->ctx, p, qs_step_in(s, f, 0), qs_step_out(s, f, 0)};
    const size_t groups = (p->mean.outputs + GROUP - 1) / GROUP;
    qs_ranges(f->ctx, p->images * groups, 1, average_groups, &job);
}

bool qs_pool_is_long(const qs_pool_plan *p) {
    return p->kh == p->h && p->row.kw == p->w && p->oh == 1 && p->ow == 1 && p->top == 0 &&
           p->bottom == 0 && p->row.left == 0 && p->row.right == 0 && p->kh * p->row.kw >= LEAST;
}

int qs_lower_long_average(qs_lower *l, const qs_pool_plan *plan) {
    const size_t pixels = plan->h * plan->w;
    const long_average made = {.mean = {.kind = QS_REDUCE_MEAN,
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
