/* SPDX-License-Identifier: MIT */
/*
 * Convolutions and pools that write their output over their input: the same bits as in a network
 * that reads all tensors again at the end.
 */
#include "net.h"

#include "exec/run.h"

#include <math.h>

#define LAYERS 4

typedef struct made {
    net n;
    bool integer; /* tensors are u8 */
    int layers;
    int64_t batch, channels, h, w;
    size_t bytes; /* of the input */
} made;

static const char *const tensors[LAYERS + 1] = {"t0", "t1", "t2", "t3", "t4"};

static const char *const pooled[LAYERS] = {"p0", "p1", "p2", "p3"};
static const char *const floats[LAYERS] = {"f0", "f1", "f2", "f3"};

static int64_t draw(uint64_t *state, int64_t from, int64_t to) {
    return from + (int64_t)(test_random(state) % (uint32_t)(to - from + 1));
}

/* An operator that is fused into the convolution before it: y = op(x). */
static void add_behind(net *n, uint64_t *state, int layer, const char *x, const char *y,
                       const char *input) {
    char names[64], t[16];
    const uint32_t kind = test_random(state) % 4;
    snprintf(t, sizeof(t), "s%d", layer);
    if (kind == 0) {
        net_node(n, "", "Sigmoid", x, t);
        snprintf(names, sizeof(names), "%s,%s", x, t);
        net_node(n, "", "Mul", names, y);
    } else if (kind == 1 && input) {
        snprintf(names, sizeof(names), "%s,%s", x, input);
        net_node(n, "", "Add", names, y);
    } else {
        net_node(n, "", "Relu", x, y);
    }
}

/* An infinite weight: padding then changes results, as any other value does. */
static void add_weights(net *n, uint64_t *state, const char *name, const int64_t *dims,
                        bool infinite) {
    const size_t count = (size_t)(dims[0] * dims[1] * dims[2] * dims[3]);
    float *v = malloc(count * sizeof(float));
    for (size_t i = 0; i < count; i++)
        v[i] = (float)(test_random(state) % 2048) / 4096 - 0.25f;
    if (infinite)
        v[count / 2] = INFINITY;
    net_const(n, name, QSIM_FLOAT, 4, dims, v);
    free(v);
}

static void add_bytes(net *n, uint64_t *state, const char *name, const int64_t *dims) {
    const size_t count = (size_t)(dims[0] * dims[1] * dims[2] * dims[3]);
    int8_t *v = malloc(count);
    for (size_t i = 0; i < count; i++)
        v[i] = (int8_t)(test_random(state) % 256);
    net_const(n, name, QSIM_INT8, 4, dims, v);
    free(v);
}

static qs_id conv_node(made *m, uint64_t *state, int layer, const int64_t *dims, const char *c) {
    char names[64], w[16];
    const bool last = layer + 1 == m->layers;
    snprintf(w, sizeof(w), "w%d", layer);
    if (m->integer) {
        add_bytes(&m->n, state, w, dims);
        snprintf(names, sizeof(names), "%s,xs,xz,%s,ws,wz,ys,xz", tensors[layer], w);
        return net_node(&m->n, "", "QLinearConv", names, c);
    }
    add_weights(&m->n, state, w, dims, last && dims[0] > 1 && test_random(state) % 2);
    snprintf(names, sizeof(names), "%s,%s", tensors[layer], w);
    return net_node(&m->n, "", "Conv", names, c);
}

static void add_conv(made *m, uint64_t *state, int layer, int64_t *channels) {
    char c[16];
    const bool depthwise = test_random(state) % 3 == 0, pointwise = test_random(state) % 3 == 0;
    const int64_t k = pointwise ? 1 : draw(state, 1, 3), d = k > 1 ? draw(state, 1, 2) : 1;
    const int64_t group = depthwise ? *channels : test_random(state) % 4 == 0 ? 2 : 1;
    const int64_t out = depthwise ? *channels : 2 * draw(state, 2, 12);
    const bool same = test_random(state) % 2 && k != 2;
    const int64_t pad = same ? (k - 1) / 2 * d : draw(state, 0, (k - 1) * d);
    const bool sum = same && group == 1 && out == *channels && layer > 0;
    const int64_t strides[] = {same ? 1 : draw(state, 1, 2), same ? 1 : draw(state, 1, 2)};
    snprintf(c, sizeof(c), "c%d", layer);
    const char *y = m->integer ? tensors[layer + 1] : c;
    const qs_id id = conv_node(m, state, layer, (const int64_t[]){out, *channels / group, k, k}, y);
    net_ints(&m->n, id, "strides", 2, strides);
    net_ints(&m->n, id, "dilations", 2, (const int64_t[]){d, d});
    net_ints(&m->n, id, "pads", 4,
             (const int64_t[]){pad, pad, pad, same ? pad : draw(state, 0, pad)});
    CHECK_INT(qs_node_set_int(m->n.g, id, "group", group), 0);
    if (!m->integer)
        add_behind(&m->n, state, layer, c, tensors[layer + 1], sum ? tensors[layer] : NULL);
    *channels = out;
}

static void begin_made(made *m, qsim_ctx *ctx) {
    net_begin(&m->n, ctx, 13);
    net_input(&m->n, "t0", m->integer ? QSIM_UINT8 : QSIM_FLOAT,
              NET_DIMS(m->batch, m->channels, m->h, m->w));
    net_float(&m->n, "xs", 0.5f);
    net_float(&m->n, "ws", 0.0625f);
    net_float(&m->n, "ys", 30.0f);
    net_byte(&m->n, "xz", QSIM_UINT8, 100);
    net_byte(&m->n, "wz", QSIM_INT8, 0);
}

static void add_pool(made *m, uint64_t *state, int layer) {
    const int64_t k = draw(state, 2, 3), pad = draw(state, 0, k - 1);
    const int64_t strides[] = {draw(state, 1, 2), draw(state, 1, 2)};
    const bool average = !m->integer && test_random(state) % 2;
    const qs_id id = net_node(&m->n, "", average ? "AveragePool" : "MaxPool", tensors[layer],
                              tensors[layer + 1]);
    net_ints(&m->n, id, "kernel_shape", 2, (const int64_t[]){k, k});
    net_ints(&m->n, id, "strides", 2, strides);
    net_ints(&m->n, id, "pads", 4, (const int64_t[]){pad, 0, draw(state, 0, pad), pad});
}

static void make_random(made *m, qsim_ctx *ctx, uint64_t seed, bool integer) {
    uint64_t state = seed;
    m->integer = integer;
    m->layers = 1 + (int)(test_random(&state) % LAYERS);
    m->batch = draw(&state, 1, 3);
    m->channels = 2 * draw(&state, 2, 12);
    m->h = draw(&state, 48, integer ? 240 : 120);
    m->w = draw(&state, 48, integer ? 160 : 80);
    begin_made(m, ctx);
    for (int64_t layer = 0, channels = m->channels; layer < m->layers; layer++)
        if (layer > 0 && test_random(&state) % 3 == 0)
            add_pool(m, &state, (int)layer);
        else
            add_conv(m, &state, (int)layer, &channels);
}

/* Images of 16 channels in the middle, large enough that two threads work in several waves. */
static void make_equal(made *m, qsim_ctx *ctx, bool integer) {
    static const int64_t channels[] = {1, 16, 16, 16, 1};
    uint64_t state = 7;
    m->integer = integer;
    m->layers = LAYERS;
    m->batch = m->channels = 1;
    m->h = integer ? 320 : 160;
    m->w = integer ? 192 : 96;
    begin_made(m, ctx);
    for (int i = 0; i < LAYERS; i++)
        net_ints(&m->n,
                 conv_node(m, &state, i, (const int64_t[]){channels[i + 1], channels[i], 3, 3},
                           tensors[i + 1]),
                 "pads", 4, (const int64_t[]){1, 1, 1, 1});
}

/* The third layer adds `other` to its result: its own input, t2, or what the first layer made, t1.
 */
static void make_sum(made *m, qsim_ctx *ctx, bool integer, const char *other) {
    char names[16];
    uint64_t state = 11;
    *m = (made){.integer = integer, .layers = LAYERS, .batch = 1, .channels = 16};
    m->h = integer ? 320 : 160;
    m->w = integer ? 192 : 96;
    begin_made(m, ctx);
    for (int i = 0; i < LAYERS; i++) {
        const char *y = i == 2 ? "own" : tensors[i + 1];
        net_ints(&m->n, conv_node(m, &state, i, (const int64_t[]){16, 16, 3, 3}, y), "pads", 4,
                 (const int64_t[]){1, 1, 1, 1});
    }
    if (!integer) {
        snprintf(names, sizeof(names), "own,%s", other);
        net_node(&m->n, "", "Add", names, "t3");
        return;
    }
    net_node(&m->n, "", "DequantizeLinear", "own,ys,xz", "a");
    snprintf(names, sizeof(names), "%s,ys,xz", other);
    net_node(&m->n, "", "DequantizeLinear", names, "b");
    net_node(&m->n, "", "Add", "a,b", "sum");
    net_node(&m->n, "", "QuantizeLinear", "sum,ys,xz", "t3");
}

static void end_made(made *m) {
    for (int i = 0; i < m->layers; i++) {
        char names[64];
        snprintf(names, sizeof(names), "%s,xs,xz", tensors[i]);
        if (m->integer)
            net_node(&m->n, "", "DequantizeLinear", names, floats[i]);
        net_node(&m->n, "", "GlobalAveragePool", m->integer ? floats[i] : tensors[i], pooled[i]);
    }
    for (int i = m->layers; i-- > 0;)
        net_output(&m->n, i + 1 == m->layers ? tensors[i + 1] : pooled[i + 1]);
    net_output(&m->n, pooled[0]);
    NET_OK(&m->n, net_end(&m->n));
    m->bytes = (size_t)(m->batch * m->channels * m->h * m->w) * (m->integer ? 1 : sizeof(float));
}

typedef struct outcome {
    uint8_t *y;
    size_t bytes, arena;
    int overlaps;
} outcome;

/* The parallel_for of an application without threads: tasks run one by one. */
static void one_by_one(void *user, size_t n, qsim_task_fn task, void *arg) {
    (void)user;
    for (size_t i = n; i-- > 0;)
        task(arg, i);
}

static void fill(const made *m, uint8_t *x, int round) {
    const size_t each = m->integer ? 1 : sizeof(float);
    for (size_t i = 0; i < m->bytes / each; i++) {
        const uint32_t v = (uint32_t)i * 2654435761u + (uint32_t)round * 40503u;
        const float f = (float)(v >> 20) / 2048 - 1;
        if (m->integer)
            x[i] = (uint8_t)(v >> 24);
        else
            memcpy(x + i * each, &f, each);
    }
}

/* `lent`: the caller's parallel_for runs tasks; `kept`: all tensors are kept until the end. */
static outcome execute(made *m, int32_t threads, bool lent, bool kept) {
    const qsim_ctx_options co = {
        .struct_size = sizeof(co), .threads = threads, .parallel_for = lent ? one_by_one : NULL};
    const qsim_session_options o = {
        .struct_size = sizeof(o), .outputs = &tensors[m->layers], .output_count = kept ? 0 : 1};
    const int64_t dims[] = {m->batch, m->channels, m->h, m->w};
    uint8_t *x = malloc(m->bytes);
    static uint8_t file[1 << 20];
    size_t size = 0;
    qsim_ctx *ctx = NULL;
    qsim_model *model = NULL;
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    qsim_tensor in = net_tensor(m->integer ? QSIM_UINT8 : QSIM_FLOAT, 4, dims, x),
                out[LAYERS + 1] = {{0}};
    outcome result = {0};
    NET_OK(&m->n, qsim_ctx_create(&co, &ctx, &m->n.error));
    NET_OK(&m->n, qsim_model_save_memory(m->n.model, file, sizeof(file), &size, &m->n.error));
    NET_OK(&m->n, qsim_model_load_memory(ctx, file, size, NULL, &model, &m->n.error));
    NET_OK(&m->n, qsim_session_create(model, kept ? NULL : &o, &s, &m->n.error));
    NET_OK(&m->n, qsim_run_create(s, &r, &m->n.error));
    for (int round = 0; round < 2 && r; round++) { /* the second reuses memory */
        fill(m, x, round);
        NET_OK(&m->n,
               qsim_run_execute(r, &in, 1, out, kept ? (size_t)m->layers + 1 : 1, &m->n.error));
    }
    for (size_t i = 0; r && r->plan && i < r->plan->step_count; i++)
        result.overlaps += r->plan->steps[i].overlaps;
    result.bytes = out[0].bytes;
    result.arena = qsim_run_arena_bytes(r);
    result.y = malloc(result.bytes + 1);
    if (out[0].data)
        memcpy(result.y, out[0].data, result.bytes);
    qsim_run_free(r);
    qsim_session_free(s);
    qsim_model_free(model);
    qsim_ctx_free(ctx);
    free(x);
    return result;
}

/* Compares results; returns the number of steps that wrote over their input. */
static int check(made *m, int32_t threads, bool lent, size_t most) {
    const outcome want = execute(m, 1, false, true), got = execute(m, threads, lent, false);
    CHECK_INT(want.overlaps, 0);
    CHECK(want.bytes > 0 && want.bytes == got.bytes);
    CHECK(want.bytes == got.bytes && memcmp(want.y, got.y, want.bytes) == 0);
    CHECK(got.arena <= most);
    free(want.y);
    free(got.y);
    return got.overlaps;
}

static void random_nets(qsim_ctx *ctx, bool integer) {
    int overlaps = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        made m;
        make_random(&m, ctx, seed, integer);
        end_made(&m);
        overlaps += check(&m, 1, false, SIZE_MAX);
        check(&m, 3, false, SIZE_MAX);
        net_free(&m.n);
    }
    CHECK(overlaps > 20);
}

static void equal_layers(qsim_ctx *ctx, bool integer) {
    made m;
    make_equal(&m, ctx, integer);
    end_made(&m);
    const size_t bytes = 16 * m.bytes;
    CHECK(check(&m, 1, false, bytes + bytes / 4) > 0);
    CHECK(check(&m, 2, false, bytes + bytes * 3 / 4) > 0);
    CHECK(check(&m, 2, true, bytes + bytes * 3 / 4) > 0);
    net_free(&m.n);
}

/*
 * Three tensors of the same size are needed at once, but for a sum that is stored over one. It is
 * not stored over what the convolution still reads.
 */
static void sums(qsim_ctx *ctx, bool integer) {
    for (int32_t threads = 1; threads <= 3; threads++)
        for (int own = 0; own < 2; own++) {
            made m;
            make_sum(&m, ctx, integer, own ? "t2" : "t1");
            end_made(&m);
            check(&m, threads, false, own ? SIZE_MAX : m.bytes * 5 / 2);
            net_free(&m.n);
        }
}

int main(void) {
    qsim_ctx *ctx;
    CHECK_INT(qsim_ctx_create(NULL, &ctx, NULL), 0);
    for (int integer = 0; integer < 2; integer++) {
        random_nets(ctx, integer);
        equal_layers(ctx, integer);
        sums(ctx, integer);
    }
    qsim_ctx_free(ctx);
    return test_done();
}
