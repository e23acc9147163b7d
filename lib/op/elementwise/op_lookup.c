/* SPDX-License-Identifier: MIT */
/* Lookup, internal: a float curve of dequantized bytes as a table of 256 floats. Passes make it. */
#include "op/rules.h"

#include "base/ctx.h"
#include "kernel/table.h"
#include "kernel/u8.h"

QS_COLD static int infer_lookup(qs_infer *x) {
    const qs_value *in = x->in[0];
    int code = qs_infer_type(x, 0, QS_T(QSIM_UINT8));
    if (!code)
        code = qs_infer_type(x, 1, QS_T_FLOAT);
    if (!code && (x->in[1]->rank != 1 || x->in[1]->dims[0].size != 256))
        code = qs_infer_fail(x, QSIM_E_SHAPE, "a table has 256 elements");
    return code ? code : qs_infer_out(x, 0, QSIM_FLOAT, in->rank, in->dims);
}

typedef struct lookup_job {
    const qk_u8 *k;
    const float *table;
    const uint8_t *x;
    float *y;
} lookup_job;

static void lookup_range(const void *arg, size_t begin, size_t end) {
    const lookup_job *j = arg;
    j->k->lookup(j->table, j->x + begin, j->y + begin, end - begin);
}

static void run_lookup(const qs_step *s, const qs_frame *f) {
    const size_t *elements = s->params;
    const lookup_job job = {f->ctx->kernels->u8, qs_step_in(s, f, 1), qs_step_in(s, f, 0),
                            qs_step_out(s, f, 0)};
    qs_ranges(f->ctx, *elements, QS_GRAIN, lookup_range, &job);
}

QS_COLD static int lower_lookup(qs_lower *l) {
    size_t *elements = qs_lower_params(l, sizeof(*elements));
    if (!elements)
        return QSIM_E_NOMEM;
    *elements = qs_value_elements(qs_lower_in(l, 0));
    l->step->run = run_lookup;
    return QSIM_OK;
}

QS_OP(lookup, .domain = QS_DOMAIN_QSIM, .name = "Lookup", .min_in = 2, .traits = QS_ELEMENTWISE,
      .setting_inputs = 1 << 1, .kernel = QS_KERNEL_LOOKUP, .infer = infer_lookup,
      .lower = lower_lookup);
