/* SPDX-License-Identifier: MIT */
/*
 * LinearAttention: each key head has a state S (d_k, d_v) that is updated by one token after the
 * other and multiplied by the head's queries. Inputs: query, key, value (batch, tokens, heads *
 * size), past state (batch, heads, d_k, d_v), decay, beta. With update_rule
 *
 *     linear        S = S + k v'
 *     gated         S = exp(g) S + k v'
 *     delta         S = S + k (beta (v - S' k))'
 *     gated_delta   delta applied to exp(g) S
 *
 * and o = scale S' q; the decay g is per head or per row of its d_k, beta per head or one for all.
 * Everything in float32, sums over d_k in order.
 */
#include "op/rules.h"

#include "kernel/elementary.h"

#include <math.h>

enum { Q, K, V, PAST, DECAY, BETA };

/* Sizes; -1: unknown. */
typedef struct form {
    bool gated, delta;
    int64_t batches, tokens, heads, kv_heads, width, v_width;
} form;

static int read_rule(const qs_infer *x, form *f) {
    const qs_node *n = x->node;
    f->heads = qs_node_int(n, "q_num_heads", 0);
    f->kv_heads = qs_node_int(n, "kv_num_heads", 0);
    enum { GATED_DELTA, GATED, DELTA };
    int32_t rule;
    const int code = qs_infer_word(x, "update_rule", "gated_delta|gated|delta|linear", &rule);
    if (code)
        return code;
    f->gated = rule <= GATED;
    f->delta = rule == GATED_DELTA || rule == DELTA;
    if (f->heads < 1 || f->kv_heads < 1 || f->heads % f->kv_heads)
        return qs_infer_fail(x, QSIM_E_VALUE, "q_num_heads is %lld, kv_num_heads %lld",
                             (long long)f->heads, (long long)f->kv_heads);
    if (f->gated != (qs_infer_in(x, DECAY) != NULL) || f->delta != (qs_infer_in(x, BETA) != NULL))
        return qs_infer_fail(x, QSIM_E_VALUE,
                             "decay and beta are not the inputs that update_rule asks for");
    return QSIM_OK;
}

/* Reads the sizes of an input (batch, tokens, heads * size); *width: the size of a head. */
static int read_input(const qs_infer *x, int32_t index, form *f, int64_t heads, int64_t *width) {
    const qs_value *v = qs_infer_in(x, index);
    int code = qs_infer_type(x, index, QS_T_FLOAT);
    if (!code)
        code = qs_infer_rank(x, index, 3);
    if (code || v->rank < 0)
        return code;
    code = qs_infer_match(x, &f->batches, v->dims[0].size, "batches");
    if (!code)
        code = qs_infer_match(x, &f->tokens, v->dims[1].size, "tokens");
    const int64_t last = v->dims[2].size;
    if (!code && last >= 0 && last % heads)
        code = qs_infer_fail(x, QSIM_E_SHAPE, "input %d: %lld numbers are not %lld heads",
                             (int)index, (long long)last, (long long)heads);
    return code || last < 0 ? code : qs_infer_match(x, width, last / heads, "sizes of heads");
}

static int read_past(const qs_infer *x, form *f) {
    const qs_value *v = qs_infer_in(x, PAST);
    int64_t *const sizes[] = {&f->batches, &f->kv_heads, &f->width, &f->v_width};
    int code = v ? qs_infer_type(x, PAST, QS_T_FLOAT) : QSIM_OK;
    if (!code)
        code = qs_infer_rank(x, PAST, 4);
    if (code || !v || v->rank < 0)
        return code;
    for (int32_t i = 0; i < 4 && !code; i++)
        code = qs_infer_match(x, sizes[i], v->dims[i].size, "sizes of the state");
    return code;
}

/* Checks decay or beta: one number per head, or `others` numbers. */
static int read_gate(const qs_infer *x, int32_t index, form *f, int64_t others) {
    int64_t last = -1;
    if (!qs_infer_in(x, index))
        return QSIM_OK;
    const int code = read_input(x, index, f, 1, &last);
    if (!code && last >= 0 && last != f->kv_heads && others >= 0 && last != others)
        return qs_infer_fail(x, QSIM_E_SHAPE, "input %d has %lld numbers for %lld heads",
                             (int)index, (long long)last, (long long)f->kv_heads);
    return code;
}

static int read_form(const qs_infer *x, form *f) {
    *f = (form){.batches = -1, .tokens = -1, .width = -1, .v_width = -1};
    int code = read_rule(x, f);
    if (!code)
        code = read_input(x, Q, f, f->heads, &f->width);
    if (!code)
        code = read_input(x, K, f, f->kv_heads, &f->width);
    if (!code)
        code = read_input(x, V, f, f->kv_heads, &f->v_width);
    if (!code)
        code = read_past(x, f);
    if (!code)
        code = read_gate(x, DECAY, f, f->width < 0 ? -1 : f->kv_heads * f->width);
    return code ? code : read_gate(x, BETA, f, 1);
}

static int infer_linearattention(qs_infer *x) {
    const qs_id *in = x->node->inputs;
    form f;
    int code = read_form(x, &f);
    if (code)
        return code;
    /* Shape rules see half precision as float, so a state of another type would go unnoticed. */
    if (qs_infer_in(x, PAST) && x->values[in[PAST]].dtype != x->values[in[Q]].dtype)
        return qs_infer_fail(x, QSIM_E_UNSUPPORTED, "the state is of another type than the query");
    const qs_dim out[3] = {
        {f.batches, NULL}, {f.tokens, NULL}, {f.v_width < 0 ? -1 : f.heads * f.v_width, NULL}};
    const qs_dim state[4] = {
        {f.batches, NULL}, {f.kv_heads, NULL}, {f.width, NULL}, {f.v_width, NULL}};
    code = qs_infer_out(x, 0, QSIM_FLOAT, 3, out);
    return code ? code : qs_infer_out(x, 1, QSIM_FLOAT, 4, state);
}

/* ---- the step ---- */

typedef struct linear_params {
    bool gated, delta, past, state;
    size_t batches, tokens, heads, kv_heads, width, v_width;
    size_t decays, betas; /* numbers per token */
    float scale;
} linear_params;

typedef struct linear_job {
    const linear_params *p;
    const float *q, *k, *v, *past, *decay, *beta;
    float *y, *state, *rest; /* rest: v_width floats per head */
} linear_job;

static void decay_state(const linear_params *p, const float *g, float *state) {
    const bool rows = p->decays != p->kv_heads;
    for (size_t i = 0; i < p->width; i++) {
        const float factor = (float)qk_exp64((double)g[rows ? i : 0]);
        for (size_t d = 0; d < p->v_width; d++)
            state[i * p->v_width + d] *= factor;
    }
}

/* Multiplies the state: to[d] = sum over i of by[i] state[i][d]. */
static void multiply_state(const linear_params *p, const float *state, const float *by, float *to) {
    memset(to, 0, p->v_width * sizeof(*to));
    for (size_t i = 0; i < p->width; i++)
        for (size_t d = 0; d < p->v_width; d++)
            to[d] += by[i] * state[i * p->v_width + d];
}

static void take_token(const linear_job *j, size_t b, size_t h, size_t t, float *state,
                       float *rest) {
    const linear_params *p = j->p;
    const size_t token = b * p->tokens + t, group = p->heads / p->kv_heads;
    const float *k = j->k + (token * p->kv_heads + h) * p->width;
    const float *v = j->v + (token * p->kv_heads + h) * p->v_width;
    if (p->gated)
        decay_state(p, j->decay + token * p->decays + h * (p->decays / p->kv_heads), state);
    if (p->delta) {
        const float beta = j->beta[token * p->betas + (p->betas == 1 ? 0 : h)];
        multiply_state(p, state, k, rest);
        for (size_t d = 0; d < p->v_width; d++)
            rest[d] = beta * (v[d] - rest[d]);
        v = rest;
    }
    for (size_t i = 0; i < p->width; i++)
        for (size_t d = 0; d < p->v_width; d++)
            state[i * p->v_width + d] += k[i] * v[d];
    for (size_t g = 0; g < group; g++) {
        const size_t head = token * p->heads + h * group + g;
        float *y = j->y + head * p->v_width;
        multiply_state(p, state, j->q + head * p->width, y);
        for (size_t d = 0; d < p->v_width; d++)
            y[d] *= p->scale;
    }
}

static void linear_heads(const void *arg, size_t begin, size_t end) {
    const linear_job *j = arg;
    const linear_params *p = j->p;
    const size_t size = p->width * p->v_width;
    for (size_t r = begin; r < end; r++) {
        float *state = j->state + r * size;
        if (j->past)
            memcpy(state, j->past + r * size, size * sizeof(*state));
        else
            memset(state, 0, size * sizeof(*state));
        for (size_t t = 0; t < p->tokens; t++)
            take_token(j, r / p->kv_heads, r % p->kv_heads, t, state, j->rest + r * p->v_width);
    }
}

static void run_linear(const qs_step *s, const qs_frame *f) {
    const linear_params *p = s->params;
    const size_t heads = p->batches * p->kv_heads;
    float *scratch = f->scratch;
    const linear_job j = {.p = p,
                          .q = qs_step_in(s, f, Q),
                          .k = qs_step_in(s, f, K),
                          .v = qs_step_in(s, f, V),
                          .past = p->past ? qs_step_in(s, f, PAST) : NULL,
                          .decay = p->gated ? qs_step_in(s, f, DECAY) : NULL,
                          .beta = p->delta ? qs_step_in(s, f, BETA) : NULL,
                          .y = qs_step_out(s, f, 0),
                          .state = p->state ? qs_step_out(s, f, 1) : scratch + heads * p->v_width,
                          .rest = scratch};
    qs_ranges(f->ctx, heads, QS_GRAIN / (p->tokens * p->width * p->v_width + 1) + 1, linear_heads,
              &j);
}

static int lower_linear(qs_lower *l) {
    qs_infer x;
    form f;
    qs_lower_infer(l, &x);
    int code = read_form(&x, &f);
    linear_params *p = code ? NULL : qs_lower_params(l, sizeof(*p));
    if (!p)
        return code ? code : QSIM_E_NOMEM;
    const qs_value *decay = qs_lower_in(l, DECAY), *beta = qs_lower_in(l, BETA);
    const float scale = qs_node_float(l->node, "scale", 0);
    *p = (linear_params){.gated = f.gated,
                         .delta = f.delta,
                         .past = qs_lower_in(l, PAST) != NULL,
                         .state = qs_lower_out(l, 1) != NULL,
                         .batches = (size_t)f.batches,
                         .tokens = (size_t)f.tokens,
                         .heads = (size_t)f.heads,
                         .kv_heads = (size_t)f.kv_heads,
                         .width = (size_t)f.width,
                         .v_width = (size_t)f.v_width,
                         .decays = decay ? (size_t)decay->dims[2].size : 0,
                         .betas = beta ? (size_t)beta->dims[2].size : 0};
    p->scale = scale != 0 ? scale : 1.0f / sqrtf((float)qs_real(p->width ? p->width : 1));
    size_t floats = p->state ? p->v_width : (p->width + 1) * p->v_width;
    if (!qs_mul(floats, p->batches * p->kv_heads, &floats) || floats > SIZE_MAX / 8)
        return qs_fail(l->error, QSIM_E_LIMIT, "an attention is too large");
    l->step->scratch = floats * sizeof(float);
    l->step->run = run_linear;
    return QSIM_OK;
}

/* chunk_size is a hint for speed, which needs no code. */
static const qs_attr_rule linear_attrs[] = {{"chunk_size", QSIM_ATTR_INT, 27, 0},
                                            {"kv_num_heads", QSIM_ATTR_INT, 27, 0},
                                            {"q_num_heads", QSIM_ATTR_INT, 27, 0},
                                            {"scale", QSIM_ATTR_FLOAT, 27, 0},
                                            {"update_rule", QSIM_ATTR_STRING, 27, 0}};

QS_OP(linearattention, .name = "LinearAttention", .since = 27, .min_in = 3, .max_in = 6,
      .max_out = 2, QS_ATTRS(linear_attrs), .traits = QS_PLAIN,
      .kernel = QS_KERNEL_LINEAR_ATTENTION, .infer = infer_linearattention, .lower = lower_linear);
