/* SPDX-License-Identifier: MIT */
#include "random_graph.h"

#include "test.h"

#include <math.h>
#include <stdarg.h>

uint32_t rg_draw(rg *g, uint32_t n) {
    return (uint32_t)(((uint64_t)test_random(&g->shape) * n) >> 32);
}

bool rg_chance(rg *g, uint32_t percent) {
    return rg_draw(g, 100) < percent;
}

/* Like rg_chance(), with the random state that only quantization uses. */
static bool form_chance(rg *g, uint32_t percent) {
    return test_random(&g->form) % 100 < percent;
}

const char *rg_text(rg *g, const char *format, ...) {
    /* Long lists of names are kept in neighbouring slots. */
    char long_text[512];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(long_text, sizeof(long_text), format, arguments);
    va_end(arguments);
    int32_t slots = length / (int32_t)sizeof(g->name[0]) + 1;
    if (length < 0 || (size_t)length >= sizeof(long_text) || g->names + slots > RG_NAMES) {
        CHECK_FAIL("a random graph has too many names");
        exit(test_done());
    }
    char *text = g->name[g->names];
    g->names += slots;
    memcpy(text, long_text, (size_t)length + 1);
    return text;
}

/* Writes a name of a tensor. */
static void spell(char *name, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, 16, format, arguments);
    va_end(arguments);
}

/* ---- constants ---- */

static void constant(rg *g, const char *name, int32_t dtype, int32_t rank, const int64_t *dims,
                     const void *data) {
    qsim_tensor t = {.dtype = dtype, .rank = rank, .dims = dims};
    union {
        const void *from;
        void *to;
    } bytes = {data};
    t.data = bytes.to;
    qsim_tensor_size(dtype, rank, dims, NULL, &t.bytes);
    qsim_builder_constant(g->b, name, &t);
}

static float *random_values(rg *g, size_t count, float size, float around) {
    float *v = malloc((count + 1) * sizeof(float));
    for (size_t i = 0; i < count; i++)
        v[i] = ((float)(test_random(&g->shape) >> 8) * (2.0f / 16777216.0f) - 1) * size + around;
    return v;
}

static size_t elements(int32_t rank, const int64_t *dims) {
    size_t n = 1;
    for (int32_t i = 0; i < rank; i++)
        n *= (size_t)dims[i];
    return n;
}

const char *rg_floats(rg *g, int32_t rank, const int64_t *dims, float size, float around) {
    const char *name = rg_text(g, "c%d", g->constants++);
    float *v = random_values(g, elements(rank, dims), size, around);
    constant(g, name, QSIM_FLOAT, rank, dims, v);
    free(v);
    return name;
}

const char *rg_scalar(rg *g, float value) {
    const char *name = rg_text(g, "c%d", g->constants++);
    constant(g, name, QSIM_FLOAT, 0, NULL, &value);
    return name;
}

const char *rg_index(rg *g, int64_t value) {
    const char *name = rg_text(g, "c%d", g->constants++);
    constant(g, name, QSIM_INT64, 0, NULL, &value);
    return name;
}

const char *rg_ints(rg *g, size_t count, const int64_t *values) {
    const char *name = rg_text(g, "c%d", g->constants++);
    const int64_t dims[] = {(int64_t)count};
    constant(g, name, QSIM_INT64, 1, dims, values);
    return name;
}

/* DequantizeLinear of a constant `name`_q, with result `name`. */
static void constant_back(rg *g, const char *name, int32_t dtype, const float *scale, size_t scales,
                          const void *zero, int32_t axis) {
    const int64_t dims[] = {(int64_t)scales};
    const char *s = rg_text(g, "%s_s", name), *z = rg_text(g, "%s_z", name);
    constant(g, s, QSIM_FLOAT, scales > 1, dims, scale);
    constant(g, z, dtype, scales > 1, dims, zero);
    qsim_builder_node(g->b, "", "DequantizeLinear", rg_text(g, "%s_dq", name),
                      rg_text(g, "%s_q,%s,%s", name, s, z), name);
    if (scales > 1)
        qsim_builder_attr_int(g->b, "axis", axis);
}

/* Writes the weights as integers after a DequantizeLinear. */
static void weight_integers(rg *g, const char *name, int32_t rank, const int64_t *dims,
                            int32_t axis, const float *v) {
    static int32_t zero[4096];
    static int8_t low_zero[4096];
    const size_t n = elements(rank, dims);
    const bool per_channel = form_chance(g, 60), u8 = form_chance(g, 15);
    const bool zeros = form_chance(g, 15) || u8, narrow = form_chance(g, 60);
    uint8_t *q = malloc(n + 1);
    g->weight_count = per_channel ? (size_t)dims[axis] : 1;
    const int32_t common = zeros ? (u8 ? 120 : -8) + (int32_t)(test_random(&g->form) % 17) : 0;
    for (size_t i = 0; i < g->weight_count; i++) {
        float jitter = (float)(test_random(&g->form) % 64) / 64 + 0.5f;
        float largest = 0;
        for (size_t k = 0; k < n; k++)
            largest = fmaxf(largest, fabsf(v[k]));
        g->weight_scale[i] = largest * jitter / (narrow ? 127.0f : 100.0f) + 1e-6f;
        zero[i] = common;
        low_zero[i] = (int8_t)(uint8_t)common;
    }
    qsim_tensor from = {QSIM_FLOAT, rank, dims, NULL, n * sizeof(float)};
    float *copy = malloc((n + 1) * sizeof(float));
    memcpy(copy, v, n * sizeof(float));
    from.data = copy;
    qsim_tensor to = {u8 ? QSIM_UINT8 : QSIM_INT8, rank, dims, q, n};
    qsim_qparams p = {to.dtype, axis, 0, g->weight_count, g->weight_scale, zero};
    qsim_error e = {0};
    CHECK_INT(qsim_tensor_quantize(&from, &p, &to, &e), 0);
    constant(g, rg_text(g, "%s_q", name), to.dtype, rank, dims, q);
    constant_back(g, name, to.dtype, g->weight_scale, g->weight_count, low_zero, axis);
    free(copy);
    free(q);
}

const char *rg_weight(rg *g, int32_t rank, const int64_t *dims, float size, int32_t axis) {
    const char *name = rg_text(g, "w%d", g->constants++);
    float *v = random_values(g, elements(rank, dims), size, 0);
    g->weight_count = 0;
    if (g->ranges && form_chance(g, 92))
        weight_integers(g, name, rank, dims, axis, v);
    else
        constant(g, name, QSIM_FLOAT, rank, dims, v);
    free(v);
    return name;
}

const char *rg_bias(rg *g, int64_t count, int32_t input) {
    const char *name = rg_text(g, "b%d", g->constants++);
    const rg_tensor *x = &g->t[input];
    float *v = random_values(g, (size_t)count, 0.3f, 0);
    if (g->ranges && g->weight_count && x->quantized[0] && form_chance(g, 80)) {
        static float scale[4096];
        static const int32_t zero[4096];
        int32_t *q = malloc(((size_t)count + 1) * sizeof(*q));
        for (size_t i = 0; i < (size_t)count; i++) {
            scale[i] = x->scale * g->weight_scale[g->weight_count > 1 ? i : 0];
            q[i] = (int32_t)fmaxf(-1e8f, fminf(1e8f, rintf(v[i] / scale[i])));
        }
        constant(g, rg_text(g, "%s_q", name), QSIM_INT32, 1, &count, q);
        constant_back(g, name, QSIM_INT32, scale, g->weight_count > 1 ? (size_t)count : 1, zero, 0);
        free(q);
    } else {
        constant(g, name, QSIM_FLOAT, 1, &count, v);
    }
    free(v);
    return name;
}

/* ---- activations ---- */

int32_t rg_pick(rg *g, int32_t rank) {
    /* Mostly one of the last tensors, so that graphs are deep. */
    for (int tries = 0; tries < 24; tries++) {
        uint32_t n = (uint32_t)g->count;
        uint32_t back = rg_chance(g, 70) ? rg_draw(g, n < 3 ? n : 3) : rg_draw(g, n);
        int32_t t = g->count - 1 - (int32_t)back;
        if (rank == 0 || g->t[t].rank == rank)
            return t;
    }
    return -1;
}

static const int64_t one[1] = {1};

static const char *other_scale(rg *g, const rg_tensor *t) {
    const float scale = t->scale * 1.375f;
    const char *name = rg_text(g, "%s_o%d", t->name, t->used);
    constant(g, rg_text(g, "%s_s", name), QSIM_FLOAT, t->parameter_rank, one, &scale);
    qsim_builder_node(g->b, "", "QuantizeLinear", rg_text(g, "n_%s_q", name),
                      rg_text(g, "%s,%s_s,%s_z", t->name, name, t->name), rg_text(g, "%s_q", name));
    qsim_builder_node(g->b, "", "DequantizeLinear", rg_text(g, "n_%s", name),
                      rg_text(g, "%s_q,%s_s,%s_z", name, name, t->name), name);
    return name;
}

const char *rg_in(rg *g, int32_t tensor) {
    rg_tensor *t = &g->t[tensor];
    t->used++;
    if (!t->quantized[0] || form_chance(g, 3))
        return t->name;
    if (form_chance(g, 3)) /* the same floats, quantized by another scale */
        return other_scale(g, t);
    /* Quantizers write one DequantizeLinear for all readers, or one for each. */
    if (!t->back[0] || form_chance(g, 30)) {
        spell(t->back, "%s_d%d", t->name, t->used);
        qsim_builder_node(g->b, "", "DequantizeLinear", rg_text(g, "n_%s", t->back),
                          rg_text(g, "%s,%s_s,%s_z", t->quantized, t->name, t->name), t->back);
    }
    return rg_text(g, "%s", t->back);
}

const char *rg_both(rg *g, int32_t x, int32_t y) {
    const char *first = rg_in(g, x);
    return rg_text(g, "%s,%s", first, rg_in(g, y));
}

static void parameters(rg *g, int32_t tensor, int32_t from) {
    rg_tensor *t = &g->t[tensor];
    const rg_range *r = &g->ranges[tensor];
    t->dtype = g->activation ? g->activation : form_chance(g, 50) ? QSIM_UINT8 : QSIM_INT8;
    uint32_t how = test_random(&g->form) % 100;
    if (how < 30 && from >= 0 && g->t[from].quantized[0]) {
        t->dtype = g->t[from].dtype;
        t->scale = g->t[from].scale;
        t->zero_point = g->t[from].zero_point;
        return;
    }
    qsim_qparams_choose(r->low, r->high, t->dtype, how < 50 ? QSIM_RANGE_SYMMETRIC : 0, &t->scale,
                        &t->zero_point);
    if (how >= 85)
        t->scale = ldexpf(1, (int)ceilf(log2f(t->scale)));
    if (how >= 95)
        t->scale *= 0.25f; /* saturates */
}

void rg_written(rg *g, int32_t tensor) {
    rg_tensor *t = &g->t[tensor];
    if (!g->ranges || t->quantized[0] || form_chance(g, 12))
        return;
    parameters(g, tensor, tensor ? tensor - 1 : -1);
    const uint8_t z = (uint8_t)t->zero_point;
    t->parameter_rank = (g->form >> 24) % 4 == 0; /* nothing is drawn: graphs stay as they were */
    constant(g, rg_text(g, "%s_s", t->name), QSIM_FLOAT, t->parameter_rank, one, &t->scale);
    constant(g, rg_text(g, "%s_z", t->name), t->dtype, t->parameter_rank, one, &z);
    spell(t->quantized, "%s_q", t->name);
    qsim_builder_node(g->b, "", "QuantizeLinear", rg_text(g, "n_%s", t->quantized),
                      rg_text(g, "%s,%s_s,%s_z", t->name, t->name, t->name), t->quantized);
}

int32_t rg_announce(rg *g, int32_t from, int32_t rank, const int64_t *dims) {
    if (g->count == RG_TENSORS) {
        CHECK_FAIL("a random graph has too many tensors");
        exit(test_done());
    }
    rg_tensor *t = &g->t[g->count];
    memset(t, 0, sizeof(*t));
    spell(t->name, "t%d", g->count);
    t->rank = rank;
    memcpy(t->dims, dims, (size_t)rank * sizeof(*dims));
    t->power = from < 0 ? 1 : g->t[from].power;
    return g->count++;
}

void rg_many(rg *g, const char *op, const char *inputs, const char *outputs) {
    qsim_builder_node(g->b, "", op, rg_text(g, "n%d_%s", g->nodes, op), inputs, outputs);
    g->nodes++;
}

void rg_node(rg *g, const char *op, const char *inputs) {
    rg_many(g, op, inputs, rg_text(g, "t%d", g->count));
}

int32_t rg_made(rg *g, int32_t from, int32_t rank, const int64_t *dims) {
    int32_t t = rg_announce(g, from, rank, dims);
    rg_written(g, t);
    return t;
}

/* ---- graphs ---- */

static const char *type_of(rg *g, const char *dtype, int32_t rank, const int64_t *dims) {
    char text[128];
    int at = snprintf(text, sizeof(text), "%s[%s", dtype, g->fixed ? "" : "N");
    for (int32_t i = g->fixed ? 0 : 1; i < rank; i++)
        at += snprintf(text + at, sizeof(text) - (size_t)at, "%s%d", i ? "," : "", (int)dims[i]);
    return rg_text(g, "%s]", text);
}

static void input(rg *g, int32_t rank, const int64_t *dims) {
    int32_t t = rg_announce(g, -1, rank, dims);
    g->input_count++;
    /* Some inputs have an integer type. */
    if (g->ranges && form_chance(g, 15)) {
        rg_tensor *x = &g->t[t];
        parameters(g, t, -1);
        const uint8_t z = (uint8_t)x->zero_point;
        constant(g, rg_text(g, "%s_s", x->name), QSIM_FLOAT, 0, NULL, &x->scale);
        constant(g, rg_text(g, "%s_z", x->name), x->dtype, 0, NULL, &z);
        spell(x->quantized, "%s_q", x->name);
        spell(x->back, "%s", x->name);
        qsim_builder_input_as(g->b, x->quantized,
                              type_of(g, x->dtype == QSIM_INT8 ? "int8" : "uint8", rank, dims));
        qsim_builder_node(g->b, "", "DequantizeLinear", rg_text(g, "n_%s", x->name),
                          rg_text(g, "%s_q,%s_s,%s_z", x->name, x->name, x->name), x->name);
        return;
    }
    qsim_builder_input_as(g->b, g->t[t].name, type_of(g, "float", rank, dims));
    rg_written(g, t);
}

static void inputs(rg *g) {
    const uint32_t kind = rg_draw(g, 10);
    int64_t dims[] = {g->batch, 0, 0, 0};
    dims[1] = RG_ONE_OF(g, 1, 3, 3, 7, 8, 16, 17, 32, 33, 64);
    if (kind < 8) {
        dims[2] = RG_ONE_OF(g, 1, 4, 5, 7, 8, 12, 13, 20, 28);
        dims[3] = rg_chance(g, 60) ? dims[2] : RG_ONE_OF(g, 1, 3, 6, 9, 16, 31);
        input(g, 4, dims);
        if (rg_chance(g, 15)) {
            dims[1] = RG_ONE_OF(g, 1, 3, 16, 33);
            input(g, 4, dims);
        }
    } else if (kind == 8) {
        dims[2] = RG_ONE_OF(g, 1, 4, 9, 16, 33);
        input(g, 3, dims);
    } else {
        dims[1] = RG_ONE_OF(g, 1, 5, 16, 40, 65, 130);
        input(g, 2, dims);
    }
    if (g->volume && g->input_count < RG_INPUTS)
        input(g, 5,
              (int64_t[]){g->batch, RG_ONE_OF(g, 1, 2, 3, 4, 16, 17), 1 + rg_draw(g, 6),
                          1 + rg_draw(g, 12), 1 + rg_draw(g, 12)});
}

static void outputs(rg *g) {
    bool any = false;
    for (int32_t i = (int32_t)g->input_count; i < g->count; i++) {
        rg_tensor *t = &g->t[i];
        if (t->used && !rg_chance(g, 8))
            continue;
        any = true;
        const char *name = t->name;
        if (t->quantized[0] && form_chance(g, 80))
            name = form_chance(g, 35) ? t->quantized : rg_in(g, i);
        t->output = true;
        qsim_builder_output_as(g->b, name, NULL);
    }
    if (!any)
        qsim_builder_output_as(g->b, g->t[g->count - 1].name, NULL);
}

qsim_model *rg_make(rg *g, uint64_t seed, const rg_range *ranges, qsim_ctx *ctx,
                    qsim_error *error) {
    static const int32_t opsets[] = {13, 13, 17, 18, 20, 21, 23};
    qsim_model *m = NULL;
    memset(g, 0, sizeof(*g));
    g->seed = seed;
    g->ranges = ranges;
    g->shape = seed * 0x9e3779b97f4a7c15u + 0x1234567;
    g->form = seed * 0xbf58476d1ce4e5b9u + 0x7654321;
    for (int i = 0; i < 8; i++) { /* the states of neighbouring seeds differ after a few steps */
        test_random(&g->shape);
        test_random(&g->form);
    }
    g->opset = opsets[rg_draw(g, 7)];
    g->batch = 1 + rg_draw(g, 3);
    g->fixed = rg_chance(g, 20);
    g->want = 3 + (int32_t)rg_draw(g, 22);
    const uint32_t types = test_random(&g->form) % 10;
    g->activation = types < 5 ? QSIM_UINT8 : types < 9 ? QSIM_INT8 : 0;
    if (qsim_builder_create(ctx, g->opset, rg_text(g, "seed%d", (int)seed), &g->b, error))
        return NULL;
    g->volume = rg_chance(g, 20);
    inputs(g);
    for (int tries = 0; g->nodes < g->want && g->count < RG_TENSORS - 24 && tries < 200; tries++) {
        uint32_t kind = rg_draw(g, 100);
        (void)(g->volume && rg_chance(g, 30) ? rg_volume(g)
               : kind < 42                   ? rg_layer(g)
               : kind < 60                   ? rg_curve(g)
               : kind < 72                   ? rg_other(g)
                                             : rg_move(g));
    }
    outputs(g);
    qsim_builder_finish(g->b, &m, error);
    qsim_builder_free(g->b);
    g->b = NULL;
    return m;
}
