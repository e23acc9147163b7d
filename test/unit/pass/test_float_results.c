/* SPDX-License-Identifier: MIT */
/*
 * Products of quantized tensors whose results stay floats, as quantizers write that leave sums,
 * normalizations and curves alone: they run in integers, and their results are those of the literal
 * evaluation up to rounding, the same bits at every level.
 */
#include "net.h"

#include <math.h>

enum { MOST = 4096 };

/* Types of the tensor and of the weights; whether these have a scale and a zero point a channel. */
typedef struct form {
    int32_t x, w;
    bool channels;
} form;

static const form forms[] = {
    {QSIM_UINT8, QSIM_INT8, true},
    {QSIM_INT8, QSIM_INT8, false},
    {QSIM_UINT8, QSIM_UINT8, true},
    {QSIM_INT8, QSIM_UINT8, false},
};

/* "x" -> "x_d", and "w_d" of random bytes. */
static void begin(net *n, const form *f, int32_t rank, const int64_t *dims, int32_t w_rank,
                  const int64_t *w_dims, int32_t axis) {
    uint8_t bytes[MOST], zeros[64];
    float scales[64];
    uint64_t state = 17;
    size_t count = 1;
    const int64_t channels = f->channels ? w_dims[axis] : 1;
    for (int32_t i = 0; i < w_rank; i++)
        count *= (size_t)w_dims[i];
    CHECK(count <= sizeof(bytes) && channels <= 64);
    for (size_t i = 0; i < count; i++)
        bytes[i] = (uint8_t)test_random(&state);
    for (int64_t i = 0; i < channels; i++) {
        scales[i] = 0.002f + 0.0005f * (float)(i % 7);
        zeros[i] = (uint8_t)(f->w == QSIM_UINT8 ? 120 + i % 9 : i % 5 - 2);
    }
    net_begin(n, NULL, 13);
    net_input(n, "x", QSIM_FLOAT, rank, dims);
    net_pair(n, "x", f->x, 0.015f, f->x == QSIM_UINT8 ? 111 : -9, 0);
    net_const(n, "w", f->w, w_rank, w_dims, bytes);
    net_const(n, "w_s", QSIM_FLOAT, f->channels, &channels, scales);
    net_const(n, "w_z", f->w, f->channels, &channels, zeros);
    const qs_id back = net_node(n, "", "DequantizeLinear", "w,w_s,w_z", "w_d");
    CHECK_INT(qs_node_set_int(n->g, back, "axis", axis), 0);
}

/* A bias of floats, or of int32 with the scales of the products. */
static void bias(net *n, const form *f, int64_t channels, bool integers) {
    float v[64];
    int32_t q[64];
    for (int64_t i = 0; i < channels; i++) {
        v[i] = integers ? 0.015f * (0.002f + 0.0005f * (float)(f->channels ? i % 7 : 0))
                        : (float)(i % 5) - 2.25f;
        q[i] = (int32_t)(i * 317 % 4001 - 2000);
    }
    net_const(n, integers ? "b_s" : "b_d", QSIM_FLOAT, NET_DIMS(channels), v);
    if (!integers)
        return;
    net_const(n, "b", QSIM_INT32, NET_DIMS(channels), q);
    CHECK_INT(qs_node_set_int(n->g, net_node(n, "", "DequantizeLinear", "b,b_s", "b_d"), "axis", 0),
              0);
}

/* Does the model's node of this operator run in integers? */
static bool runs_in_integers(const net *n, const char *op_type) {
    qsim_session *s = NULL;
    bool found = false;
    CHECK_INT(qsim_session_create(n->model, NULL, &s, NULL), 0);
    for (int32_t i = 0; i < qsim_model_node_count(n->model); i++) {
        qsim_node_info info = {.struct_size = sizeof(info)};
        CHECK_INT(qsim_model_node(n->model, i, &info), 0);
        found |= strcmp(info.op_type, op_type) == 0 && qsim_session_node_integer(s, i);
    }
    qsim_session_free(s);
    return found;
}

static void judge(net *n, int32_t rank, const int64_t *dims, const char *op_type, bool integers) {
    static float x[MOST], want[MOST], first[MOST], got[MOST];
    uint64_t state = 5;
    double largest = 0;
    for (int i = 0; i < MOST; i++)
        x[i] = ((float)(test_random(&state) % 4001) - 2000) / 1100;
    const qsim_tensor in = net_tensor(QSIM_FLOAT, rank, dims, x);
    qsim_tensor out = {.data = want, .bytes = sizeof(want)};
    net_output(n, "y");
    NET_OK(n, net_end(n));
    NET_OK(n, net_run(n, 0, true, &in, 1, &out, 1));
    const size_t count = out.bytes / sizeof(float);
    for (size_t i = 0; i < count; i++)
        largest = fmax(largest, fabs((double)want[i]));
    CHECK(largest > 0.5);
    for (int32_t level = QSIM_LEVEL_DISABLE; level <= QSIM_LEVEL_ALL; level++) {
        qsim_tensor y = {.data = got, .bytes = sizeof(got)};
        NET_OK(n, net_run(n, level, false, &in, 1, &y, 1));
        CHECK_INT(y.bytes, out.bytes);
        for (size_t i = 0; i < count; i++)
            CHECK(fabs((double)got[i] - (double)want[i]) <= 1e-5 * largest);
        if (level == QSIM_LEVEL_DISABLE)
            memcpy(first, got, out.bytes);
        CHECK(!integers || memcmp(first, got, out.bytes) == 0);
    }
    CHECK_INT(runs_in_integers(n, op_type), integers);
    net_free(n);
}

static void conv(const form *f, int32_t rank, int64_t group, int with_bias) {
    const int64_t dims[] = {2, 4, 5, 6, 3}, w_dims[] = {8, 4 / group, 3, 3, 3};
    net n;
    begin(&n, f, rank, dims, rank, w_dims, 0);
    if (with_bias)
        bias(&n, f, 8, with_bias > 1);
    const qs_id c = net_node(&n, "", "Conv", with_bias ? "x_d,w_d,b_d" : "x_d,w_d", "y");
    CHECK_INT(qs_node_set_int(n.g, c, "group", group), 0);
    judge(&n, rank, dims, "Conv", true);
}

static void gemm(const form *f, bool transposed, int with_bias) {
    const int64_t dims[] = {7, 20}, w_dims[] = {transposed ? 12 : 20, transposed ? 20 : 12};
    net n;
    begin(&n, f, 2, dims, 2, w_dims, transposed ? 0 : 1);
    if (with_bias)
        bias(&n, f, 12, with_bias > 1);
    const qs_id c = net_node(&n, "", "Gemm", with_bias ? "x_d,w_d,b_d" : "x_d,w_d", "y");
    CHECK_INT(qs_node_set_int(n.g, c, "transB", transposed), 0);
    judge(&n, 2, dims, "Gemm", true);
}

/* As transformers have it: MatMul, Add of a bias, the residual, a curve. */
static void matmul(const form *f, bool with_bias) {
    const int64_t dims[] = {2, 5, 16};
    net n;
    begin(&n, f, 3, dims, NET_DIMS(16, 16), 1);
    net_node(&n, "", "MatMul", "x_d,w_d", "m");
    if (with_bias)
        bias(&n, f, 16, false);
    net_node(&n, "", "Add", with_bias ? "b_d,m" : "m,x", "a");
    net_node(&n, "", "Add", "a,x", "r");
    net_node(&n, "", "Tanh", "r", "y");
    judge(&n, 3, dims, "MatMul", true);
}

/* Left in floats: a product of a tensor that is not quantized, and one with factors of its own. */
static void others(void) {
    const int64_t dims[] = {7, 20};
    net n;
    begin(&n, &forms[0], 2, dims, NET_DIMS(20, 12), 1);
    net_node(&n, "", "MatMul", "x,w_d", "y");
    judge(&n, 2, dims, "MatMul", false);
    begin(&n, &forms[0], 2, dims, NET_DIMS(20, 12), 1);
    CHECK_INT(qs_node_set_float(n.g, net_node(&n, "", "Gemm", "x_d,w_d", "y"), "alpha", 0.5f), 0);
    judge(&n, 2, dims, "Gemm", false);
}

int main(void) {
    for (size_t i = 0; i < QS_COUNT(forms); i++) {
        for (int b = 0; b < 3; b++) {
            conv(&forms[i], 4, 1, b);
            gemm(&forms[i], b & 1, b);
        }
        conv(&forms[i], 4, 4, 1);
        conv(&forms[i], 3, 1, 1);
        conv(&forms[i], 5, 1, 0);
        gemm(&forms[i], true, 0);
        matmul(&forms[i], true);
        matmul(&forms[i], false);
    }
    others();
    return test_done();
}
