/* SPDX-License-Identifier: MIT */
/*
 * LSTM, GRU and RNN against their formulas in double precision, on random shapes and options, of
 * floats and of doubles; and the same bits on every instruction set, with any number of threads and
 * in batches of any size.
 */
#include "op_random.h"

#include <math.h>

typedef struct layer {
    char cell; /* 'L', 'G', 'R' */
    int64_t time, batch, input, hidden, directions, gates;
    bool reverse, batch_first, before_reset, bias, lengths, states, peephole, other, constant,
        coupled;
    double clip; /* 0: none */
    float *x, *w, *r, *b, *h0, *c0, *p;
    int32_t *len;
} layer;

static double clamp(double v, double lo, double hi) {
    return v < lo ? lo : v > hi ? hi : v;
}

/* Activation f (0), g (1) or h (2): the defaults, or `other`s. */
static double curve(const layer *l, int which, double v) {
    if (l->clip > 0)
        v = clamp(v, -l->clip, l->clip);
    if (l->cell == 'R')
        return l->other ? (v < 0 ? 0 : v) : tanh(v);
    if (l->other)
        return which == 0 ? clamp((double)0.2f * v + 0.5, 0, 1) : v / (1 + fabs(v));
    return which == 0 ? 1 / (1 + exp(-v)) : tanh(v);
}

/* The part of x and of h in gate g, element i, and both biases. */
static double gate(const layer *l, int64_t d, int64_t g, int64_t i, const float *x, const double *h,
                   bool with_h, bool with_rb) {
    const int64_t row = (d * l->gates + g) * l->hidden + i;
    const float *b = l->b + d * 2 * l->gates * l->hidden + g * l->hidden + i;
    double sum = l->bias ? (double)b[0] + (with_rb ? (double)b[l->gates * l->hidden] : 0) : 0;
    for (int64_t k = 0; k < l->input; k++)
        sum += (double)x[k] * (double)l->w[row * l->input + k];
    for (int64_t k = 0; k < l->hidden && with_h; k++)
        sum += h[k] * (double)l->r[row * l->hidden + k];
    return sum;
}

static void lstm_step(const layer *l, int64_t d, const float *x, double *h, double *c) {
    double next[64];
    const float *p = l->p + d * 3 * l->hidden;
    for (int64_t i = 0; i < l->hidden; i++) {
        const double pi = l->peephole ? (double)p[i] : 0,
                     po = l->peephole ? (double)p[l->hidden + i] : 0,
                     pf = l->peephole ? (double)p[2 * l->hidden + i] : 0;
        const double in = curve(l, 0, gate(l, d, 0, i, x, h, true, true) + pi * c[i]);
        const double forget =
            l->coupled ? 1 - in : curve(l, 0, gate(l, d, 2, i, x, h, true, true) + pf * c[i]);
        c[i] = forget * c[i] + in * curve(l, 1, gate(l, d, 3, i, x, h, true, true));
        next[i] = curve(l, 0, gate(l, d, 1, i, x, h, true, true) + po * c[i]) * curve(l, 2, c[i]);
    }
    memcpy(h, next, (size_t)l->hidden * sizeof(*h));
}

static void gru_step(const layer *l, int64_t d, const float *x, double *h) {
    const int64_t n = l->hidden;
    double next[64], reset[64], gated[64];
    for (int64_t i = 0; i < n; i++) {
        reset[i] = curve(l, 0, gate(l, d, 1, i, x, h, true, true));
        gated[i] = reset[i] * h[i];
    }
    for (int64_t i = 0; i < n; i++) {
        const double z = curve(l, 0, gate(l, d, 0, i, x, h, true, true));
        double v = gate(l, d, 2, i, x, gated, !l->before_reset, !l->before_reset);
        if (l->before_reset) {
            double rec = l->bias ? (double)l->b[d * 6 * n + 5 * n + i] : 0;
            for (int64_t k = 0; k < n; k++)
                rec += h[k] * (double)l->r[((d * 3 + 2) * n + i) * n + k];
            v += reset[i] * rec;
        }
        next[i] = (1 - z) * curve(l, 1, v) + z * h[i];
    }
    memcpy(h, next, (size_t)n * sizeof(*h));
}

static void rnn_step(const layer *l, int64_t d, const float *x, double *h) {
    double next[64];
    for (int64_t i = 0; i < l->hidden; i++)
        next[i] = curve(l, 0, gate(l, d, 0, i, x, h, true, true));
    memcpy(h, next, (size_t)l->hidden * sizeof(*h));
}

static bool differs(const or_tensor *y, int64_t at, double expected) {
    const bool wide = y->dtype == QSIM_DOUBLE;
    const double v = wide ? ((double *)y->data)[at] : (double)((float *)y->data)[at];
    return !(fabs(v - expected) <= (wide ? 1e-12 : 2e-5));
}

/* One sample in one direction: checks its rows of the outputs. */
static long check_sample(const layer *l, const or_result *r, int64_t d, int64_t b) {
    const int64_t n = l->hidden, steps = l->lengths ? l->len[b] : l->time;
    const int64_t state = (l->batch_first ? b * l->directions + d : d * l->batch + b) * n;
    double h[64] = {0}, c[64] = {0};
    long wrong = 0;
    for (int64_t i = 0; i < n && l->states; i++) {
        h[i] = (double)l->h0[state + i];
        c[i] = (double)l->c0[state + i];
    }
    for (int64_t s = 0; s < l->time; s++) {
        const int64_t t = s >= steps ? s : d == 1 || l->reverse ? steps - 1 - s : s;
        const int64_t at = l->batch_first ? b * l->time + t : t * l->batch + b;
        const int64_t out =
            l->batch_first ? at * l->directions + d : (t * l->directions + d) * l->batch + b;
        const float *x = l->x + at * l->input;
        if (s < steps && l->cell == 'L')
            lstm_step(l, d, x, h, c);
        else if (s < steps && l->cell == 'G')
            gru_step(l, d, x, h);
        else if (s < steps)
            rnn_step(l, d, x, h);
        for (int64_t i = 0; i < n; i++)
            wrong += differs(&r->out[0], out * n + i, s < steps ? h[i] : 0);
    }
    for (int64_t i = 0; i < n; i++) {
        wrong += differs(&r->out[1], state + i, h[i]);
        if (l->cell == 'L')
            wrong += differs(&r->out[2], state + i, c[i]);
    }
    return wrong;
}

static or_case make_case(const layer *l) {
    const int64_t n = l->hidden, d = l->directions, g = l->gates;
    const char *op = l->cell == 'L' ? "LSTM" : l->cell == 'G' ? "GRU" : "RNN";
    or_case c = {.domain = "", .op = op, .version = 14, .inputs = 6, .outputs = 2};
    const or_tensor x = {QSIM_FLOAT, 3, {l->time, l->batch, l->input}, l->x, false};
    const or_tensor h = {QSIM_FLOAT, 3, {d, l->batch, n}, l->states ? l->h0 : NULL, false};
    c.in[0] = x;
    c.in[1] = (or_tensor){QSIM_FLOAT, 3, {d, g * n, l->input}, l->w, l->constant};
    c.in[2] = (or_tensor){QSIM_FLOAT, 3, {d, g * n, n}, l->r, l->constant};
    c.in[3] = (or_tensor){QSIM_FLOAT, 2, {d, 2 * g * n}, l->bias ? l->b : NULL, l->constant};
    c.in[4] = (or_tensor){QSIM_INT32, 1, {l->batch}, l->lengths ? l->len : NULL, false};
    c.in[5] = h;
    if (l->cell == 'L') {
        c.inputs = 8;
        c.outputs = 3;
        c.in[6] = h;
        c.in[6].data = l->states ? l->c0 : NULL;
        c.in[7] = (or_tensor){QSIM_FLOAT, 2, {d, 3 * n}, l->peephole ? l->p : NULL, l->constant};
    }
    if (l->batch_first) {
        c.in[0].dims[0] = c.in[5].dims[0] = c.in[6].dims[0] = l->batch;
        c.in[0].dims[1] = l->time;
        c.in[5].dims[1] = c.in[6].dims[1] = d;
        c.attrs[c.attr_count++] = or_int("layout", 1);
    }
    c.attrs[c.attr_count++] = or_string("direction", d == 2       ? "bidirectional"
                                                     : l->reverse ? "reverse"
                                                                  : "forward");
    c.attrs[c.attr_count++] = or_int("hidden_size", n);
    if (l->before_reset)
        c.attrs[c.attr_count++] = or_int("linear_before_reset", 1);
    if (l->coupled)
        c.attrs[c.attr_count++] = or_int("input_forget", 1);
    if (l->clip > 0)
        c.attrs[c.attr_count++] = or_float("clip", (float)l->clip);
    if (l->other) {
        or_attr a = {.name = "activations", .type = QSIM_ATTR_STRINGS};
        const int each = l->cell == 'L' ? 3 : l->cell == 'G' ? 2 : 1;
        a.count = each * (int32_t)d;
        for (int32_t i = 0; i < a.count; i++)
            a.strings[i] = l->cell == 'R' ? "Relu" : i % each ? "softsign" : "HardSigmoid";
        c.attrs[c.attr_count++] = a;
    }
    return c;
}

static layer random_layer(int i) {
    layer l = {.cell = "LGR"[i % 3], .time = between(1, 9), .batch = between(1, 7)};
    l.gates = l.cell == 'L' ? 4 : l.cell == 'G' ? 3 : 1;
    l.input = between(1, 40);
    l.hidden = between(1, 50);
    l.directions = between(1, 2);
    l.reverse = l.directions == 1 && between(0, 1);
    l.batch_first = between(0, 1);
    l.before_reset = l.cell == 'G' && between(0, 1);
    l.bias = between(0, 3) > 0;
    l.lengths = between(0, 2) == 0;
    l.states = between(0, 1);
    l.peephole = l.cell == 'L' && between(0, 2) == 0;
    l.other = between(0, 3) == 0;
    l.coupled = l.cell == 'L' && i % 4 == 0;
    l.constant = between(0, 2) > 0;
    l.clip = between(0, 3) == 0 ? 0.75 : 0;
    if (i % 10 == 9) { /* large enough to be cut for threads */
        l.time = 30;
        l.batch = 20;
    }
    const size_t n = (size_t)l.hidden, d = (size_t)l.directions, g = (size_t)l.gates;
    l.x = random_floats((size_t)(l.time * l.batch * l.input), 1);
    l.w = random_floats(d * g * n * (size_t)l.input, 0.4);
    l.r = random_floats(d * g * n * n, 0.3);
    l.b = random_floats(d * 2 * g * n, 0.5);
    l.h0 = random_floats(d * n * (size_t)l.batch, 1);
    l.c0 = random_floats(d * n * (size_t)l.batch, 1);
    l.p = random_floats(d * 3 * n, 0.5);
    l.len = or_memory((size_t)l.batch * sizeof(*l.len));
    for (int64_t k = 0; k < l.batch; k++)
        l.len[k] = (int32_t)between(0, l.time);
    return l;
}

static void free_layer(layer *l) {
    void *all[] = {l->x, l->w, l->r, l->b, l->h0, l->c0, l->p, l->len};
    for (size_t i = 0; i < QS_COUNT(all); i++)
        free(all[i]);
}

/* The same numbers as doubles, on every context. */
static void doubles(const layer *l, or_case c, qsim_ctx **ctx, int contexts) {
    or_result first = {0};
    for (int32_t i = 0; i < c.inputs; i++) {
        or_tensor *t = &c.in[i];
        if (!t->data || t->dtype != QSIM_FLOAT)
            continue;
        double *to = or_memory(or_elements(t) * sizeof(*to));
        for (size_t k = 0; k < or_elements(t); k++)
            to[k] = (double)((float *)t->data)[k];
        t->data = to;
        t->dtype = QSIM_DOUBLE;
    }
    for (int k = 0; k < contexts; k++) {
        or_result r = or_run(ctx[k], &c, false);
        CHECK_INT(r.code, 0);
        long wrong = 0;
        for (int64_t s = 0; s < l->directions * l->batch && k == 0 && !r.code; s++)
            wrong += check_sample(l, &r, s / l->batch, s % l->batch);
        for (int32_t o = 0; o < c.outputs && k > 0 && !r.code; o++)
            wrong += memcmp(r.out[o].data, first.out[o].data, or_elements(&r.out[o]) * 8) != 0;
        CHECK_INT(wrong, 0);
        if (k == 0)
            first = r;
        else
            or_free(&r);
    }
    or_free(&first);
    for (int32_t i = 0; i < c.inputs; i++)
        if (c.in[i].dtype == QSIM_DOUBLE)
            free(c.in[i].data);
}

static void random_layers(qsim_ctx **ctx, int contexts) {
    for (int i = 0; i < 90; i++) {
        layer l = random_layer(i);
        or_case c = make_case(&l);
        or_result first = {0};
        for (int k = 0; k < contexts; k++) {
            or_result r = or_run(ctx[k], &c, false);
            CHECK_INT(r.code, 0);
            if (r.code)
                fprintf(stderr, "%s\n", r.error.message);
            long wrong = 0;
            for (int64_t s = 0; s < l.directions * l.batch && k == 0 && !r.code; s++)
                wrong += check_sample(&l, &r, s / l.batch, s % l.batch);
            for (int32_t o = 0; o < c.outputs && k > 0 && !r.code; o++)
                wrong += memcmp(r.out[o].data, first.out[o].data, or_elements(&r.out[o]) * 4) != 0;
            CHECK_INT(wrong, 0);
            if (wrong)
                fprintf(stderr, "case %d, context %d: %c T%d B%d I%d H%d D%d\n", i, k, l.cell,
                        (int)l.time, (int)l.batch, (int)l.input, (int)l.hidden, (int)l.directions);
            if (k == 0)
                first = r;
            else
                or_free(&r);
        }
        or_free(&first);
        doubles(&l, c, ctx, contexts);
        free_layer(&l);
    }
}

/* ---- refusals ---- */

static int refusal(qsim_ctx *ctx, const or_attr *attr, int input, int axis) {
    layer l = {.cell = 'L', .time = 2, .batch = 1, .input = 3, .hidden = 4, .directions = 1};
    float zeros[64] = {0};
    l.gates = 4;
    l.x = l.w = l.r = l.b = l.h0 = l.c0 = l.p = zeros;
    l.bias = l.states = l.peephole = true;
    or_case c = make_case(&l);
    if (attr)
        c.attrs[c.attr_count++] = *attr;
    if (input >= 0)
        c.in[input].dims[axis]++;
    or_result r = or_run(ctx, &c, true);
    return r.code;
}

static void refuses(qsim_ctx *ctx) {
    const or_attr clip = or_float("clip", NAN), layout = or_int("layout", 2),
                  size = or_int("hidden_size", -3);
    or_attr unknown = {.name = "activations", .type = QSIM_ATTR_STRINGS, .count = 3};
    unknown.strings[0] = unknown.strings[1] = unknown.strings[2] = "Swish";
    or_attr few = unknown;
    few.count = 2;
    CHECK_INT(refusal(ctx, NULL, -1, 0), 0);
    CHECK_INT(refusal(ctx, &clip, -1, 0), QSIM_E_VALUE);
    CHECK_INT(refusal(ctx, &layout, -1, 0), QSIM_E_VALUE);
    CHECK_INT(refusal(ctx, &size, -1, 0), QSIM_E_VALUE);
    CHECK_INT(refusal(ctx, &unknown, -1, 0), QSIM_E_UNSUPPORTED);
    CHECK_INT(refusal(ctx, &few, -1, 0), QSIM_E_VALUE);
    for (int i = 0; i < 8; i++)
        for (int axis = i == 0 ? 2 : 0; axis < (i == 3 || i == 7 ? 2 : 3) && i != 4; axis++)
            CHECK_INT(refusal(ctx, NULL, i, axis), QSIM_E_SHAPE);
}

int main(void) {
    or_seed = 20250607;
    qsim_ctx *ctx[2 * QS_ISA_COUNT];
    int contexts = or_contexts(ctx, 1);
    contexts += or_contexts(ctx + contexts, 3);
    random_layers(ctx, contexts);
    refuses(ctx[0]);
    for (int i = 0; i < contexts; i++)
        qsim_ctx_free(ctx[i]);
    return test_done();
}
