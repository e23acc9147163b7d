/* SPDX-License-Identifier: MIT */
/*
 * CausalConvWithState: convolves each channel of (batch, channels, length) with its own kernel of
 * size k. The state holds the k - 1 numbers before the first one; without a state they are 0.
 * Outputs: y[t] = bias + sum over j of w[j] x[t - (k - 1) + j], in order, and the next state; with
 * activation "silu" or "swish", y times its sigmoid.
 */
#include "op/rules.h"

#include "base/ctx.h"
#include "kernel/ew.h"
#include "kernel/table.h"

enum { X, W, BIAS, PAST };

static int check_inputs(const qs_infer *x) {
    static const int32_t ranks[] = {3, 3, 1, 3};
    int code = QSIM_OK;
    for (int32_t i = X; i <= PAST && !code; i++) {
        code = qs_infer_type(x, i, QS_T_FLOAT);
        if (!code)
            code = qs_infer_rank(x, i, ranks[i]);
    }
    return code ? code : qs_infer_word(x, "activation", "none|silu|swish", &(int32_t){0});
}

static int infer_causalconv(qs_infer *x) {
    const qs_value *in = x->in[X], *w = x->in[W];
    int code = check_inputs(x);
    if (code || in->rank < 0 || w->rank < 0)
        return code ? code : qs_infer_unknown(x, QSIM_FLOAT);
    const int64_t channels = in->dims[1].size, k = w->dims[2].size;
    const qs_dim state[3] = {in->dims[0], in->dims[1], {k < 0 ? -1 : k - 1, NULL}};
    if (k == 0)
        return qs_infer_fail(x, QSIM_E_SHAPE, "the window is empty");
    code = qs_infer_size(x, W, 0, channels);
    if (!code)
        code = qs_infer_size(x, W, 1, 1);
    if (!code)
        code = qs_infer_size(x, BIAS, 0, channels);
    for (int32_t i = 0; i < 3 && !code; i++)
        code = qs_infer_size(x, PAST, i, state[i].size);
    if (!code)
        code = qs_infer_like(x, 0, X);
    return code ? code : qs_infer_out(x, 1, QSIM_FLOAT, 3, state);
}

typedef struct causal_params {
    size_t rows, channels, length, taps;
    bool bias, past, silu, state;
} causal_params;

typedef struct causal_job {
    const qsim_ctx *ctx;
    const causal_params *p;
    const qk_ew *k;
    const float *x, *w, *bias, *past;
    float *y, *state;
} causal_job;

/* Number `at` of a row with the state in front of it. */
static float number(const causal_job *j, size_t row, size_t at) {
    const size_t before = j->p->taps - 1;
    if (at >= before)
        return j->x[row * j->p->length + at - before];
    return j->past ? j->past[row * before + at] : 0.0f;
}

static void causal_rows(const void *arg, size_t begin, size_t end) {
    const causal_job *j = arg;
    const causal_params *p = j->p;
    const size_t before = p->taps - 1;
    for (size_t r = begin; r < end; r++) {
        const size_t c = r % p->channels;
        float *y = j->y + r * p->length;
        for (size_t t = 0; t < p->length; t++) {
            if (p->taps > 1000 ? qs_stopped(j->ctx) : qs_stopped_at(j->ctx, t))
                return;
            float sum = 0.0f;
            for (size_t i = 0; i < p->taps; i++)
                sum += j->w[c * p->taps + i] * number(j, r, t + i);
            y[t] = j->bias ? sum + j->bias[c] : sum;
        }
        if (p->silu)
            for (size_t at = 0, n; (n = qs_piece(j->ctx, at, p->length)); at += n)
                j->k->silu(y + at, y + at, n);
        for (size_t i = 0; i < before && j->state; i++)
            j->state[r * before + i] = number(j, r, p->length + i);
    }
}

static void run_causalconv(const qs_step *s, const qs_frame *f) {
    const causal_params *p = s->params;
    const causal_job j = {.ctx = f->ctx,
                          .p = p,
                          .k = f->ctx->kernels->ew,
                          .x = qs_step_in(s, f, X),
                          .w = qs_step_in(s, f, W),
                          .bias = p->bias ? qs_step_in(s, f, BIAS) : NULL,
                          .past = p->past ? qs_step_in(s, f, PAST) : NULL,
                          .y = qs_step_out(s, f, 0),
                          .state = p->state ? qs_step_out(s, f, 1) : NULL};
    qs_ranges(f->ctx, p->rows, QS_GRAIN / (p->length * p->taps + 1) + 1, causal_rows, &j);
}

static int lower_causalconv(qs_lower *l) {
    const qs_value *x = qs_lower_in(l, X);
    causal_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->channels = (size_t)x->dims[1].size;
    p->rows = (size_t)x->dims[0].size * p->channels;
    p->length = (size_t)x->dims[2].size;
    p->taps = (size_t)qs_lower_in(l, W)->dims[2].size;
    p->bias = qs_lower_in(l, BIAS) != NULL;
    p->past = qs_lower_in(l, PAST) != NULL;
    p->silu = !qs_node_string_is(l->node, "activation", "none", true);
    p->state = qs_lower_out(l, 1) != NULL;
    l->step->run = run_causalconv;
    return QSIM_OK;
}

static const qs_attr_rule causal_attrs[] = {{"activation", QSIM_ATTR_STRING, 27, 0}};

QS_OP(causalconv, .name = "CausalConvWithState", .since = 27, .min_in = 2, .max_in = 4,
      .max_out = 2, QS_ATTRS(causal_attrs), .traits = QS_PLAIN,
      .kernel = QS_KERNEL_CAUSAL_CONVOLUTION, .infer = infer_causalconv, .lower = lower_causalconv);
