/* SPDX-License-Identifier: MIT */
/*
 * Pads before convolutions and averages: against a plain loop at every level. At the highest one no
 * step pads where zeros surround the image, and one does where anything else is asked for.
 */
#include "net.h"

enum { C = 2, H = 5, W = 6, OUT = 3, K = 3, MOST = 2000 };

static float x[C * H * W], weights[OUT * (C + 1) * K * K], expected[MOST], y[MOST];

typedef struct form {
    const char *op; /* Conv or AveragePool */
    int64_t opset;
    int64_t pads[6];  /* of the Pad: before channels, rows, columns; behind them */
    float value;      /* that it fills with */
    const char *mode; /* NULL: constant */
    int64_t own[4];   /* of the operator */
    const char *auto_pad;
    bool by_axes;      /* the Pad names its axes */
    bool quantized;    /* with the zero point 3 */
    bool also;         /* the Pad's result is an output, too */
    bool ceil, inside; /* ceil_mode; count_include_pad */
    int left;          /* steps that still pad */
} form;

static int64_t clamp(int64_t i, int64_t size) {
    return i < 0 ? 0 : i < size ? i : size - 1;
}

/* The padded image at channel c, row r and column s, all without the Pad's leads. */
static float padded(const form *f, int64_t c, int64_t r, int64_t s) {
    const bool out = c < 0 || c >= C || r < 0 || r >= H || s < 0 || s >= W;
    if (out && !f->mode)
        return f->value;
    return x[(clamp(c, C) * H + clamp(r, H)) * W + clamp(s, W)];
}

/* Fills `expected`; returns the number of results. Windows reach into the operator's padding. */
static size_t compute(const form *f) {
    const bool conv = f->op[0] == 'C';
    const int64_t *p = f->pads, rows = H + p[1] + p[4], columns = W + p[2] + p[5];
    const int64_t channels = C + p[0] + p[3];
    const bool same = f->auto_pad && f->auto_pad[0] == 'S';
    const int64_t top = same ? 1 : f->own[0], start = same ? 1 : f->own[1];
    const int64_t h = rows + top + (same ? 1 : f->own[2]) - K + 1;
    const int64_t w = columns + start + (same ? 1 : f->own[3]) - K + 1;
    size_t n = 0;
    for (int64_t o = 0; o < (conv ? OUT : channels); o++)
        for (int64_t i = 0; i < h * w; i++) {
            double sum = 0, count = 0;
            for (int64_t k = 0; k < (conv ? channels : 1) * K * K; k++) {
                const int64_t c = conv ? k / (K * K) : o;
                const int64_t r = i / w + k / K % K - top, s = i % w + k % K - start;
                if (r < 0 || r >= rows || s < 0 || s >= columns)
                    continue;
                count++;
                sum += (double)(padded(f, c - p[0], r - p[1], s - p[2]) *
                                (conv ? weights[o * channels * K * K + k] : 1));
            }
            expected[n++] = (float)(conv ? sum : sum / (f->inside ? K * K : count));
        }
    return n;
}

static void add_pad(net *n, const form *f, const char *from) {
    const int64_t *p = f->pads, axes[] = {-2, 3, 1};
    const int64_t all[] = {0, p[0], p[1], p[2], 0, p[3], p[4], p[5]};
    const int64_t some[] = {p[1], p[2], p[0], p[4], p[5], p[3]};
    char in[64];
    if (f->opset >= 11) {
        net_const(n, "pads", QSIM_INT64, 1, (int64_t[]){f->by_axes ? 6 : 8},
                  f->by_axes ? some : all);
        net_const(n, "axes", QSIM_INT64, 1, (int64_t[]){3}, axes);
        net_float(n, "value", f->value);
    }
    snprintf(in, sizeof(in), "%s%s%s", from, f->opset < 11 ? "" : ",pads,value",
             f->by_axes ? ",axes" : "");
    const qs_id pad = net_node(n, "", "Pad", in, "p");
    if (f->mode)
        net_string(n, pad, "mode", f->mode);
    if (f->opset >= 11)
        return;
    net_ints(n, pad, "pads", 8, all);
    CHECK_INT(qs_node_set_float(n->g, pad, "value", f->value), 0);
}

static void add_operator(net *n, const form *f, const char *from, const char *to) {
    char in[64];
    const bool conv = f->op[0] == 'C';
    snprintf(in, sizeof(in), "%s%s", from, !conv ? "" : f->quantized ? ",w_d" : ",w");
    const qs_id id = net_node(n, "", f->op, in, to);
    if (!conv)
        net_ints(n, id, "kernel_shape", 2, (int64_t[]){K, K});
    if (f->auto_pad)
        net_string(n, id, "auto_pad", f->auto_pad);
    else
        net_ints(n, id, "pads", 4, f->own);
    if (f->ceil)
        qs_node_set_int(n->g, id, "ceil_mode", 1);
    if (f->inside)
        qs_node_set_int(n->g, id, "count_include_pad", 1);
}

static void build(net *n, const form *f) {
    net_begin(n, NULL, f->opset);
    net_input(n, "x", QSIM_FLOAT, NET_DIMS(1, C, H, W));
    net_const(n, "w", QSIM_FLOAT, NET_DIMS(OUT, C + f->pads[0] + f->pads[3], K, K), weights);
    if (f->quantized) {
        net_pair(n, "x", QSIM_UINT8, 1, 3, 0);
        net_pair(n, "w", QSIM_INT8, 1, 0, 0);
        add_pad(n, f, "x_d");
        net_pair(n, "p", QSIM_UINT8, 1, 3, 0);
        add_operator(n, f, "p_d", "r");
        net_pair(n, "r", QSIM_UINT8, 1, 0, 0);
        net_output(n, "r_d");
    } else {
        add_pad(n, f, "x");
        add_operator(n, f, "p", "r");
        net_output(n, "r");
    }
    if (f->also)
        net_output(n, "p");
    NET_OK(n, net_end(n));
}

/* Runs at a level and returns the number of steps that pad. */
static int run(net *n, const form *f, int32_t level, size_t size) {
    static float padding[MOST];
    qsim_session_options o = {.struct_size = sizeof(o), .level = level};
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    const qsim_tensor in = net_tensor(QSIM_FLOAT, 4, (int64_t[]){1, C, H, W}, x);
    qsim_tensor out[2] = {{.data = y, .bytes = sizeof(y)},
                          {.data = padding, .bytes = sizeof(padding)}};
    int found = 0;
    NET_OK(n, qs_session_compile(n->model, &o, 0, &s, &n->error));
    NET_OK(n, qsim_run_create(s, &r, &n->error));
    NET_OK(n, qsim_run_execute(r, &in, 1, out, f->also ? 2 : 1, &n->error));
    CHECK_INT(out[0].bytes, size * sizeof(float));
    for (int32_t i = 0; i < qsim_run_step_count(r); i++) {
        qsim_step_info info = {.struct_size = sizeof(info)};
        CHECK_INT(qsim_run_step(r, i, &info), 0);
        found += strcmp(info.kernel, "select") == 0;
    }
    qsim_run_free(r);
    qsim_session_free(s);
    return found;
}

static void check(const form *f) {
    const size_t size = compute(f);
    net n;
    build(&n, f);
    for (int32_t level = QSIM_LEVEL_DISABLE; level <= QSIM_LEVEL_ALL; level++) {
        memset(y, 1, sizeof(y));
        const int left = run(&n, f, level, size);
        CHECK_INT(left, level < QSIM_LEVEL_BASIC ? 1 : f->left);
        for (size_t i = 0; i < size; i++)
            CHECK_NEAR(y[i], expected[i], 1e-6);
    }
    qsim_model_free(n.model);
}

#define SPACE                                                                                      \
    { 0, 1, 2, 0, 2, 0 }

int main(void) {
    static const form forms[] = {
        {.op = "Conv", .opset = 10, .pads = SPACE},
        {.op = "Conv", .opset = 13, .pads = SPACE},
        {.op = "Conv", .opset = 18, .pads = SPACE, .by_axes = true},
        {.op = "Conv", .opset = 13, .pads = SPACE, .own = {2, 0, 1, 1}},
        {.op = "Conv", .opset = 13, .pads = SPACE, .auto_pad = "VALID"},
        {.op = "Conv", .opset = 13, .pads = SPACE, .quantized = true},
        {.op = "AveragePool", .opset = 13, .pads = SPACE},
        {.op = "AveragePool",
         .opset = 18,
         .pads = SPACE,
         .by_axes = true,
         .own = {1, 0, 0, 1},
         .inside = true},
        /* left as they are */
        {.op = "Conv", .opset = 13, .pads = SPACE, .value = 1, .left = 1},
        {.op = "Conv", .opset = 13, .pads = SPACE, .value = 1, .quantized = true, .left = 1},
        {.op = "Conv", .opset = 10, .pads = SPACE, .value = -1, .left = 1},
        {.op = "Conv", .opset = 13, .pads = SPACE, .mode = "edge", .left = 1},
        {.op = "Conv", .opset = 13, .pads = {1, 1, 1, 0, 1, 1}, .left = 1},
        {.op = "Conv", .opset = 13, .pads = {0, 1, -1, 0, 1, 1}, .left = 1},
        {.op = "Conv", .opset = 13, .pads = SPACE, .auto_pad = "SAME_UPPER", .left = 1},
        {.op = "Conv",
         .opset = 13,
         .pads = SPACE,
         .also = true,
         .left = 1}, /* for the output alone */
        {.op = "AveragePool", .opset = 13, .pads = SPACE, .own = {1, 0, 0, 1}, .left = 1},
        {.op = "AveragePool", .opset = 13, .pads = {0, 3, 1, 0, 0, 1}, .left = 1},
        {.op = "AveragePool", .opset = 13, .pads = SPACE, .ceil = true, .left = 1},
    };
    for (int i = 0; i < C * H * W; i++)
        x[i] = (float)(i * 7919 % 8);
    for (int i = 0; i < OUT * (C + 1) * K * K; i++)
        weights[i] = (float)(i % 3 == 0);
    for (size_t i = 0; i < QS_COUNT(forms); i++)
        check(&forms[i]);
    return test_done();
}
