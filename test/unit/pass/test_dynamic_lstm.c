/* SPDX-License-Identifier: MIT */
/* DynamicQuantizeLSTM, run by sessions, against its definition in double. */
#include "net.h"

#include <math.h>

#define MS "com.microsoft"

static double sigmoid(double v) {
    return 1 / (1 + exp(-v));
}

/* Compares the last states, output y of a net, at the highest and the lowest level. */
static void near(net *n, const qsim_tensor *in, size_t inputs, int64_t batch, int64_t hidden,
                 const double *expected) {
    const int64_t dims[] = {1, batch, hidden};
    net_output(n, "y");
    NET_OK(n, net_end(n));
    for (int level = 0; level < 2; level++) {
        float y[6];
        qsim_tensor out = net_tensor(QSIM_FLOAT, 3, dims, y);
        NET_OK(n,
               net_run(n, level ? QSIM_LEVEL_ALL : QSIM_LEVEL_DISABLE, false, in, inputs, &out, 1));
        for (int64_t i = 0; i < batch * hidden; i++)
            CHECK_NEAR(y[i], expected[i], 2e-6);
    }
    net_free(n);
}

/*
 * One step from zero states, hidden size 1: gates i, o, f, c of (q - zero point) * scale; x rounded
 * as DynamicQuantizeLinear does.
 */
static void one_step(qsim_ctx *ctx) {
    static float x[2] = {1.3f, -0.8f};
    static const uint8_t w[8] = {90, 140, 128, 200, 30, 128, 7, 160}, r[4] = {1, 2, 3, 4};
    static const uint8_t zero[1] = {128};
    static const float scale[4] = {0.02f, 0.01f, 0.5f, 0.005f}, state[1] = {0.1f};
    const qsim_tensor in = net_tensor(QSIM_FLOAT, NET_DIMS(1, 1, 2), x);
    double gate[4], y[1], rounded[2];
    net n;
    const float low = fminf(0, fminf(x[0], x[1])), high = fmaxf(0, fmaxf(x[0], x[1]));
    const float step = (high - low) / 255;
    for (int i = 0; i < 2; i++)
        rounded[i] = (double)(rintf(x[i] / step) * step);
    for (int i = 0; i < 4; i++)
        gate[i] = (rounded[0] * (w[i] - 128) + rounded[1] * (w[4 + i] - 128)) * (double)scale[i];
    y[0] = sigmoid(gate[1]) * tanh(sigmoid(gate[0]) * tanh(gate[3]));
    net_begin(&n, ctx, 13);
    CHECK_INT(qs_graph_set_import(n.g, MS, 1), 0);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(1, 1, 2));
    net_const(&n, "w", QSIM_UINT8, NET_DIMS(1, 2, 4), w);
    net_const(&n, "r", QSIM_UINT8, NET_DIMS(1, 1, 4), r);
    net_const(&n, "ws", QSIM_FLOAT, NET_DIMS(1, 4), scale);
    net_const(&n, "wz", QSIM_UINT8, NET_DIMS(1, 4), (const uint8_t[]){128, 128, 128, 128});
    net_const(&n, "rs", QSIM_FLOAT, NET_DIMS(1), state);
    net_const(&n, "rz", QSIM_UINT8, NET_DIMS(1), zero);
    const qs_id node = net_node(&n, MS, "DynamicQuantizeLSTM", "x,w,r,,,,,,ws,wz,rs,rz", "all,y");
    qs_node_set_int(n.g, node, "hidden_size", 1);
    near(&n, &in, 1, 1, 1, y);
}

/* h rounded as DynamicQuantizeLinear does. */
static void round_state(const double h[3], double rounded[3]) {
    double low = 0, high = 0;
    for (int i = 0; i < 3; i++) {
        low = fmin(low, h[i]);
        high = fmax(high, h[i]);
    }
    const double step = high > low ? (high - low) / 255 : 1, zero = rint(-low / step);
    for (int i = 0; i < 3; i++)
        rounded[i] = (fmin(255, fmax(0, rint(h[i] / step) + zero)) - zero) * step;
}

/*
 * Three steps of two samples and states of 3 by recurrent weights in 8 bits, with a scale and a
 * zero point for each of 12 columns, or for all. Inputs count by their sums alone: W is all ones.
 */
static void recurrent_steps(qsim_ctx *ctx, bool is_signed, bool each, bool fixed) {
    const int32_t type = is_signed ? QSIM_INT8 : QSIM_UINT8;
    uint8_t r[36], zero[12], ones[12];
    float scale[12], steps[6] = {0.5f, -0.25f, 1, 0.75f, -1, 0.125f};
    double h[2][3] = {{0}}, c[2][3] = {{0}}, y[6];
    net n;
    for (int i = 0; i < 36; i++)
        r[i] = (uint8_t)(i * 89 + 17);
    for (int i = 0; i < 12; i++) {
        scale[i] = each ? 0.002f * (float)(i % 4 + 1) : 0.006f;
        zero[i] = (uint8_t)(each ? (is_signed ? 3 * i - 9 : 120 + i) : 7);
        ones[i] = 1;
    }
    const float range = 2, unit = range / 255; /* the inputs' */
    for (int t = 0; t < 6; t++) {
        const int k = t % 2;
        double before[3], gate[12];
        const double in = rint((double)steps[t] / (double)unit) * (double)unit;
        round_state(h[k], before);
        for (int i = 0; i < 12; i++) {
            gate[i] = in;
            for (int j = 0; j < 3; j++) {
                const int w = is_signed ? (int8_t)r[j * 12 + i] : r[j * 12 + i];
                const int z = is_signed ? (int8_t)zero[i] : zero[i];
                gate[i] += before[j] * (w - z) * (double)scale[i];
            }
        }
        for (int i = 0; i < 3; i++) {
            c[k][i] = sigmoid(gate[6 + i]) * c[k][i] + sigmoid(gate[i]) * tanh(gate[9 + i]);
            h[k][i] = y[3 * k + i] = sigmoid(gate[3 + i]) * tanh(c[k][i]);
        }
    }
    qsim_tensor in[2] = {net_tensor(QSIM_FLOAT, NET_DIMS(3, 2, 1), steps),
                         net_tensor(type, NET_DIMS(1, 3, 12), r)};
    net_begin(&n, ctx, 13);
    CHECK_INT(qs_graph_set_import(n.g, MS, 1), 0);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(3, 2, 1));
    if (fixed)
        net_const(&n, "r", type, NET_DIMS(1, 3, 12), r);
    else
        net_input(&n, "r", type, NET_DIMS(1, 3, 12));
    net_const(&n, "w", type, NET_DIMS(1, 1, 12), ones);
    net_const(&n, "ws", QSIM_FLOAT, NET_DIMS(1), (const float[]){1});
    net_const(&n, "wz", type, NET_DIMS(1), (const uint8_t[]){0});
    if (each) {
        net_const(&n, "rs", QSIM_FLOAT, NET_DIMS(1, 12), scale);
        net_const(&n, "rz", type, NET_DIMS(1, 12), zero);
    } else {
        net_const(&n, "rs", QSIM_FLOAT, NET_DIMS(1), scale);
        net_const(&n, "rz", type, NET_DIMS(1), zero);
    }
    const qs_id node = net_node(&n, MS, "DynamicQuantizeLSTM", "x,w,r,,,,,,ws,wz,rs,rz", "all,y");
    qs_node_set_int(n.g, node, "hidden_size", 3);
    near(&n, in, fixed ? 1 : 2, 2, 3, y);
}

/* Sums over more states could leave int32: the message says how many are taken. */
static void many_states(qsim_ctx *ctx) {
    enum { STATES = 32769 };
    static uint8_t ones[4 * STATES];
    net n;
    net_begin(&n, ctx, 13);
    CHECK_INT(qs_graph_set_import(n.g, MS, 1), 0);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(1, 1, 1));
    net_input(&n, "r", QSIM_UINT8, NET_DIMS(1, STATES, 4 * STATES));
    net_const(&n, "w", QSIM_UINT8, NET_DIMS(1, 1, 4 * STATES), ones);
    net_const(&n, "s", QSIM_FLOAT, NET_DIMS(1), (const float[]){1});
    const qs_id node = net_node(&n, MS, "DynamicQuantizeLSTM", "x,w,r,,,,,,s,,s", "all,y");
    qs_node_set_int(n.g, node, "hidden_size", STATES);
    net_output(&n, "y");
    NET_OK(&n, net_end(&n));
    CHECK_INT(net_run(&n, QSIM_LEVEL_ALL, false, NULL, 0, NULL, 0), QSIM_E_LIMIT);
    CHECK(strstr(n.error.message, "32769 states, with weights of 8 bits at most 32768"));
    net_free(&n);
}

int main(void) {
    qsim_ctx *ctx = NULL;
    CHECK_INT(qsim_ctx_create(NULL, &ctx, NULL), 0);
    one_step(ctx);
    for (int k = 0; k < 8; k++)
        recurrent_steps(ctx, k & 1, k & 2, k & 4);
    many_states(ctx);
    qsim_ctx_free(ctx);
    return test_done();
}
