/* SPDX-License-Identifier: MIT */
/* Flip, internal: converts between int8 and uint8, x ^ 0x80; zero points move by 128. */
#include "op/rules.h"

typedef struct flip_params {
    size_t count;
} flip_params;

typedef struct flip_task {
    const uint8_t *x;
    uint8_t *y;
} flip_task;

QS_COLD static int infer_flip(qs_infer *x) {
    int code = qs_infer_type(x, 0, QS_T_8BIT);
    int32_t dtype = x->in[0]->dtype == QSIM_INT8 ? QSIM_UINT8 : QSIM_INT8;
    return code ? code : qs_infer_out(x, 0, dtype, x->in[0]->rank, x->in[0]->dims);
}

static void flip_range(const void *arg, size_t begin, size_t end) {
    const flip_task *t = arg;
    typedef uint64_t pair __attribute__((vector_size(16)));
    const uint64_t signs = 0x8080808080808080u;
    const pair both = {signs, signs};
    pair v;
    for (; end - begin >= sizeof(v); begin += sizeof(v)) {
        memcpy(&v, t->x + begin, sizeof(v));
        v ^= both;
        memcpy(t->y + begin, &v, sizeof(v));
    }
    for (; begin < end; begin++)
        t->y[begin] = t->x[begin] ^ 0x80;
}

static void run_flip(const qs_step *step, const qs_frame *f) {
    const flip_params *p = step->params;
    flip_task t = {qs_step_in(step, f, 0), qs_step_out(step, f, 0)};
    qs_ranges(f->ctx, p->count, QS_GRAIN, flip_range, &t);
}

QS_COLD static int lower_flip(qs_lower *l) {
    flip_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->count = qs_value_elements(qs_lower_in(l, 0));
    l->step->run = run_flip;
    return QSIM_OK;
}

QS_OP(qsim_flip, .domain = QS_DOMAIN_QSIM, .name = "Flip", .min_in = 1, .traits = QS_ELEMENTWISE,
      .kernel = QS_KERNEL_FLIP, .infer = infer_flip, .lower = lower_flip);
