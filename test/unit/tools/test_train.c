/* SPDX-License-Identifier: MIT */
/* LeNetLite's passes against a plain double-precision network and its numeric gradient. */
#include "test.h"

#include "train_net.h"

#include <math.h>

static size_t side_out(size_t side) {
    return side - 4;
}

static void plain_conv(const double *in, size_t ci_count, size_t side, const double *w,
                       const double *bias, size_t co_count, double *out) {
    const size_t os = side_out(side);
    for (size_t co = 0; co < co_count; co++)
        for (size_t y = 0; y < os; y++)
            for (size_t x = 0; x < os; x++) {
                double sum = bias[co];
                for (size_t ci = 0; ci < ci_count; ci++)
                    for (size_t ky = 0; ky < 5; ky++)
                        for (size_t kx = 0; kx < 5; kx++)
                            sum += w[((co * ci_count + ci) * 5 + ky) * 5 + kx] *
                                   in[(ci * side + y + ky) * side + x + kx];
                out[(co * os + y) * os + x] = sum;
            }
}

static void plain_relu_pool(const double *in, size_t channels, size_t side, double *out) {
    for (size_t c = 0; c < channels; c++)
        for (size_t y = 0; y < side / 2; y++)
            for (size_t x = 0; x < side / 2; x++) {
                const double *v = in + (c * side + 2 * y) * side + 2 * x;
                double m = fmax(fmax(v[0], v[1]), fmax(v[side], v[side + 1]));
                out[(c * side / 2 + y) * (side / 2) + x] = fmax(m, 0.0);
            }
}

static void plain_fc(const double *in, size_t n, const double *w, const double *bias, size_t outs,
                     double *out) {
    for (size_t o = 0; o < outs; o++) {
        out[o] = bias[o];
        for (size_t i = 0; i < n; i++)
            out[o] += w[o * n + i] * in[i];
    }
}

/* Parameters in the order of net_params: weight and bias of conv1, conv2, fc1, fc2. */
static void plain_logits(const double *p, const uint8_t *pixels, double logits[10]) {
    static double x[784], c1[8 * 576], p1[8 * 144], c2[16 * 64], p2[256], f1[64];
    for (size_t i = 0; i < 784; i++)
        x[i] = (double)((float)pixels[i] / 255.0f);
    plain_conv(x, 1, 28, p, p + 200, 8, c1);
    plain_relu_pool(c1, 8, 24, p1);
    plain_conv(p1, 8, 12, p + 208, p + 3408, 16, c2);
    plain_relu_pool(c2, 16, 8, p2);
    plain_fc(p2, 256, p + 3424, p + 19808, 64, f1);
    for (size_t i = 0; i < 64; i++)
        f1[i] = fmax(f1[i], 0.0);
    plain_fc(f1, 64, p + 19872, p + 20512, 10, logits);
}

/* Sum of the cross entropies of the images whose label counts. */
static double plain_loss(const double *p, uint8_t images[][784], const int32_t *labels) {
    double loss = 0.0;
    for (size_t k = 0; k < NET_LANES; k++) {
        double logits[10], sum = 0.0;
        if (labels[k] < 0)
            continue;
        plain_logits(p, images[k], logits);
        for (size_t c = 0; c < 10; c++)
            sum += exp(logits[c] - logits[labels[k]]);
        loss += log(sum);
    }
    return loss;
}

static uint8_t images[NET_LANES][784];
static const int32_t labels[NET_LANES] = {3, 1, 4, 1, -1, 9, 2, 6};
static net_params params, grad, other_grad;
static double exact[NET_PARAMS]; /* the same parameters */
static _Alignas(64) net_scratch scratch, other;

static void make_case(void) {
    uint64_t state = 42;
    net_init(&params, 7);
    for (size_t i = 0; i < 8; i++)
        params.conv1_bias[i] = 0.01f * (float)i;
    for (size_t i = 0; i < NET_PARAMS; i++)
        exact[i] = (double)params.all[i];
    /* Images of noise around a ramp. */
    for (size_t k = 0; k < NET_LANES; k++)
        for (size_t i = 0; i < 784; i++)
            images[k][i] = (uint8_t)((i * (k + 1) / 8 + test_random(&state) % 64) % 256);
    for (size_t k = 0; k < NET_LANES; k++)
        net_load(&scratch, k, images[k], labels[k]);
    other = scratch;
}

static void check_logits(void) {
    for (size_t k = 0; k < NET_LANES; k++) {
        double logits[10];
        plain_logits(exact, images[k], logits);
        for (size_t c = 0; c < 10; c++)
            CHECK_NEAR(scratch.logits[c][k], logits[c], 1e-4);
    }
}

static void check_softmax(void) {
    double probability[10], sum = 0.0, expected = 0.0;
    net_softmax(&scratch, 0, probability);
    for (size_t c = 0; c < 10; c++)
        expected += exp((double)scratch.logits[c][0]);
    for (size_t c = 0; c < 10; c++) {
        CHECK_NEAR(probability[c], exp((double)scratch.logits[c][0]) / expected, 1e-14);
        sum += probability[c];
    }
    CHECK_NEAR(sum, 1.0, 1e-14);
}

static double numeric_gradient(size_t i) {
    const double old = exact[i], step = 1e-6;
    exact[i] = old + step;
    const double above = plain_loss(exact, images, labels);
    exact[i] = old - step;
    const double below = plain_loss(exact, images, labels);
    exact[i] = old;
    return (above - below) / (2 * step);
}

/* A sample of every layer's weights, and all biases but fc1's. */
static void check_gradient(void) {
    const size_t spans[][3] = {{0, 208, 5},        {208, 3424, 53},   {3408, 3424, 1},
                               {3424, 19808, 401}, {19808, 19872, 5}, {19872, 20522, 29},
                               {200, 208, 1},      {20512, 20522, 1}};
    for (size_t s = 0; s < sizeof(spans) / sizeof(spans[0]); s++)
        for (size_t i = spans[s][0]; i < spans[s][1]; i += spans[s][2]) {
            const double expected = numeric_gradient(i);
            CHECK_NEAR(grad.all[i], expected, 1e-3 + 1e-3 * fabs(expected));
        }
}

int main(void) {
    make_case();
    net_passes_base.forward(&params, &scratch);
    net_passes_base.backward(&params, &scratch, &grad);
    check_logits();
    check_softmax();
    check_gradient();
    /* The best passes of this CPU give the same bits. */
    net_passes_select()->forward(&params, &other);
    net_passes_select()->backward(&params, &other, &other_grad);
    CHECK(memcmp(&other_grad, &grad, sizeof(grad)) == 0);
    CHECK(memcmp(other.logits, scratch.logits, sizeof(scratch.logits)) == 0);
    return test_done();
}
