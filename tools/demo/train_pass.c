/* SPDX-License-Identifier: MIT */
/*
 * The passes of train_net.h; compiled once per instruction set, with NET_PASSES as the result's
 * name. Vectors are only combined element by element, so the instruction set changes no bits.
 */
#include "train_net.h"

#include <string.h>

typedef net_f8 f8;
typedef int32_t i8 __attribute__((vector_size(sizeof(f8))));

/* The sum of the eight lanes, always by this tree. */
static float lane_sum(const f8 *v) {
    const float *f = (const float *)v;
    return ((f[0] + f[4]) + (f[2] + f[6])) + ((f[1] + f[5]) + (f[3] + f[7]));
}

/* 5x5 convolution of `in` [ci_count][side][side], eight output channels at a time. */
static void conv_forward(const f8 *in, size_t ci_count, size_t side, const float *weight,
                         const float *bias, f8 *out) {
    const size_t out_side = side - 4, taps = ci_count * 25, plane = out_side * out_side;
    for (size_t pos = 0; pos < plane; pos++) {
        const f8 *window = in + pos / out_side * side + pos % out_side;
        f8 acc[8];
        for (size_t co = 0; co < 8; co++)
            acc[co] = (f8){0} + bias[co];
        for (size_t ci = 0; ci < ci_count; ci++)
            for (size_t ky = 0; ky < 5; ky++)
                for (size_t kx = 0; kx < 5; kx++) {
                    const f8 v = window[(ci * side + ky) * side + kx];
                    const float *w = weight + ci * 25 + ky * 5 + kx;
                    for (size_t co = 0; co < 8; co++)
                        acc[co] += w[co * taps] * v;
                }
        for (size_t co = 0; co < 8; co++)
            out[co * plane + pos] = acc[co];
    }
}

/* Gradients of two output channels' weights for one input channel. */
static void conv_weight_pair(const f8 *in, size_t side, const f8 *d_out, float *d_weight,
                             size_t taps) {
    const size_t out_side = side - 4, plane = out_side * out_side;
    for (size_t ky = 0; ky < 5; ky++) {
        f8 a[5] = {{0}}, b[5] = {{0}};
        for (size_t y = 0; y < out_side; y++)
            for (size_t x = 0; x < out_side; x++) {
                const f8 *v = in + (y + ky) * side + x;
                const f8 da = d_out[y * out_side + x], db = d_out[plane + y * out_side + x];
                for (size_t kx = 0; kx < 5; kx++) {
                    a[kx] += da * v[kx];
                    b[kx] += db * v[kx];
                }
            }
        for (size_t kx = 0; kx < 5; kx++) {
            d_weight[ky * 5 + kx] = lane_sum(&a[kx]);
            d_weight[taps + ky * 5 + kx] = lane_sum(&b[kx]);
        }
    }
}

static void conv_weight_grad(const f8 *in, size_t ci_count, size_t side, const f8 *d_out,
                             size_t co_count, float *d_weight, float *d_bias) {
    const size_t plane = (side - 4) * (side - 4), taps = ci_count * 25;
    for (size_t co = 0; co < co_count; co += 2)
        for (size_t ci = 0; ci < ci_count; ci++)
            conv_weight_pair(in + ci * side * side, side, d_out + co * plane,
                             d_weight + co * taps + ci * 25, taps);
    for (size_t co = 0; co < co_count; co++) {
        f8 acc = {0};
        for (size_t i = 0; i < plane; i++)
            acc += d_out[co * plane + i];
        d_bias[co] = lane_sum(&acc);
    }
}

/* Gradient with respect to the eight input channels of the second convolution. */
static void conv_input_grad(const f8 *d_out, size_t co_count, size_t side, const float *weight,
                            f8 *d_in) {
    const size_t out_side = side - 4, plane = side * side;
    for (size_t pos = 0; pos < plane; pos++) {
        const size_t y = pos / side, x = pos % side;
        const size_t ky0 = y < out_side ? 0 : y - out_side + 1, ky1 = y < 4 ? y : 4;
        const size_t kx0 = x < out_side ? 0 : x - out_side + 1, kx1 = x < 4 ? x : 4;
        f8 acc[8] = {{0}};
        for (size_t co = 0; co < co_count; co++)
            for (size_t ky = ky0; ky <= ky1; ky++)
                for (size_t kx = kx0; kx <= kx1; kx++) {
                    const f8 d = d_out[(co * out_side + y - ky) * out_side + x - kx];
                    const float *w = weight + co * 200 + ky * 5 + kx;
                    for (size_t ci = 0; ci < 8; ci++)
                        acc[ci] += w[ci * 25] * d;
                }
        for (size_t ci = 0; ci < 8; ci++)
            d_in[ci * plane + pos] = acc[ci];
    }
}

/* max(0, v): the four values are at v[0], v[1] and one row further. */
static void relu_pool(const f8 *in, size_t channels, size_t side, f8 *out) {
    const size_t half = side / 2, cells = channels * half * half;
    for (size_t i = 0; i < cells; i++) {
        const f8 *v = in + i / half * 2 * side + i % half * 2;
        f8 max = {0};
        for (size_t k = 0; k < 4; k++) {
            const f8 a = v[k / 2 * side + k % 2];
            const i8 larger = a > max;
            max = (f8)((larger & (i8)a) | (~larger & (i8)max));
        }
        out[i] = max;
    }
}

/* Gives each cell's gradient to the first of its maxima, if that is positive. */
static void relu_pool_grad(const f8 *in, const f8 *out, const f8 *d_out, size_t channels,
                           size_t side, f8 *d_in) {
    const size_t half = side / 2, cells = channels * half * half;
    for (size_t i = 0; i < cells; i++) {
        const size_t first = i / half * 2 * side + i % half * 2;
        i8 open = out[i] > (f8){0};
        for (size_t k = 0; k < 4; k++) {
            const size_t at = first + k / 2 * side + k % 2;
            const i8 here = open & (in[at] == out[i]);
            d_in[at] = (f8)(here & (i8)d_out[i]);
            open &= ~here;
        }
    }
}

static void fc_forward(const f8 *in, size_t in_count, const float *weight, const float *bias,
                       size_t out_count, f8 *out) {
    for (size_t o = 0; o < out_count; o += 2) {
        const float *w = weight + o * in_count;
        f8 a = (f8){0} + bias[o], b = (f8){0} + bias[o + 1];
        for (size_t i = 0; i < in_count; i++) {
            a += w[i] * in[i];
            b += w[in_count + i] * in[i];
        }
        out[o] = a;
        out[o + 1] = b;
    }
}

static void fc_input_grad(const f8 *d_out, size_t out_count, const float *weight, size_t in_count,
                          f8 *d_in) {
    for (size_t i = 0; i < in_count; i += 8) {
        f8 acc[8] = {{0}};
        for (size_t o = 0; o < out_count; o++)
            for (size_t k = 0; k < 8; k++)
                acc[k] += weight[o * in_count + i + k] * d_out[o];
        memcpy(d_in + i, acc, sizeof(acc));
    }
}

/* Vectors run across inputs here, so `in` is transposed first; lanes are summed in order. */
static void fc_weight_grad(const f8 *in, size_t in_count, const f8 *d_out, size_t out_count,
                           float *d_weight, float *d_bias) {
    f8 transposed[NET_LANES][256 / 8];
    for (size_t i = 0; i < in_count; i++)
        for (size_t lane = 0; lane < NET_LANES; lane++)
            ((float *)transposed[lane])[i] = in[i][lane];
    for (size_t o = 0; o < out_count; o++) {
        for (size_t i = 0; i < in_count / 8; i++) {
            f8 acc = {0};
            for (size_t lane = 0; lane < NET_LANES; lane++)
                acc += d_out[o][lane] * transposed[lane][i];
            memcpy(d_weight + o * in_count + i * 8, &acc, sizeof(acc));
        }
        d_bias[o] = lane_sum(&d_out[o]);
    }
}

static void forward(const net_params *p, net_scratch *s) {
    conv_forward(s->x, 1, 28, p->conv1_weight, p->conv1_bias, s->conv1);
    relu_pool(s->conv1, 8, 24, s->pool1);
    for (size_t co = 0; co < 16; co += 8)
        conv_forward(s->pool1, 8, 12, p->conv2_weight + co * 200, p->conv2_bias + co,
                     s->conv2 + co * 64);
    relu_pool(s->conv2, 16, 8, s->pool2);
    fc_forward(s->pool2, 256, p->fc1_weight, p->fc1_bias, 64, s->fc1);
    for (size_t i = 0; i < 64; i++)
        s->fc1[i] = (f8)((s->fc1[i] > (f8){0}) & (i8)s->fc1[i]);
    fc_forward(s->fc1, 64, p->fc2_weight, p->fc2_bias, NET_CLASSES, s->logits);
}

static void loss_grad(net_scratch *s) {
    for (size_t lane = 0; lane < NET_LANES; lane++) {
        double probability[NET_CLASSES];
        net_softmax(s, lane, probability);
        for (int32_t c = 0; c < NET_CLASSES; c++) {
            const double d = probability[c] - (c == s->label[lane] ? 1.0 : 0.0);
            s->d_logits[c][lane] = s->label[lane] < 0 ? 0.0f : (float)d;
        }
    }
}

static void backward(const net_params *p, net_scratch *s, net_params *grad) {
    loss_grad(s);
    fc_weight_grad(s->fc1, 64, s->d_logits, NET_CLASSES, grad->fc2_weight, grad->fc2_bias);
    fc_input_grad(s->d_logits, NET_CLASSES, p->fc2_weight, 64, s->d_fc1);
    for (size_t i = 0; i < 64; i++)
        s->d_fc1[i] = (f8)((s->fc1[i] > (f8){0}) & (i8)s->d_fc1[i]);
    fc_weight_grad(s->pool2, 256, s->d_fc1, 64, grad->fc1_weight, grad->fc1_bias);
    fc_input_grad(s->d_fc1, 64, p->fc1_weight, 256, s->d_pool2);
    relu_pool_grad(s->conv2, s->pool2, s->d_pool2, 16, 8, s->d_conv2);
    conv_weight_grad(s->pool1, 8, 12, s->d_conv2, 16, grad->conv2_weight, grad->conv2_bias);
    conv_input_grad(s->d_conv2, 16, 12, p->conv2_weight, s->d_pool1);
    relu_pool_grad(s->conv1, s->pool1, s->d_pool1, 8, 24, s->d_conv1);
    conv_weight_grad(s->x, 1, 28, s->d_conv1, 8, grad->conv1_weight, grad->conv1_bias);
}

const net_passes NET_PASSES = {forward, backward};
