/* SPDX-License-Identifier: MIT */
#include "train_net.h"

#include <math.h>

const net_passes *net_passes_select(void) {
#ifdef NET_HAVE_AVX2
    if (__builtin_cpu_supports("avx2"))
        return &net_passes_avx2;
#endif
    return &net_passes_base;
}

void net_load(net_scratch *s, size_t lane, const uint8_t *pixels, int32_t label) {
    for (size_t i = 0; i < NET_PIXELS; i++)
        s->x[i][lane] = (float)pixels[i] / 255.0f;
    s->label[lane] = label;
}

uint64_t net_random(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static void init_uniform(float *weight, size_t count, size_t fan_in, uint64_t *state) {
    const double limit = sqrt(6.0 / (double)fan_in);
    for (size_t i = 0; i < count; i++) {
        const double unit = (double)(net_random(state) >> 11) * 0x1p-52 - 1.0; /* [-1, 1) */
        weight[i] = (float)(unit * limit);
    }
}

void net_init(net_params *p, uint64_t seed) {
    *p = (net_params){.all = {0}};
    init_uniform(p->conv1_weight, 8 * 25, 25, &seed);
    init_uniform(p->conv2_weight, 16 * 200, 200, &seed);
    init_uniform(p->fc1_weight, 64 * 256, 256, &seed);
    init_uniform(p->fc2_weight, NET_CLASSES * 64, 64, &seed);
}

int32_t net_top1(const net_scratch *s, size_t lane) {
    int32_t best = 0;
    for (int32_t c = 1; c < NET_CLASSES; c++)
        if (s->logits[c][lane] > s->logits[best][lane])
            best = c;
    return best;
}

/* exp(x) for x <= 0: 2^k times the Taylor series on [-ln(2)/2, ln(2)/2]. */
static double exp_negative(double x) {
    if (!(x > -700.0))
        return 0.0;
    const double k = floor(x * 0x1.71547652b82fep+0 + 0.5);
    const double r = (x - k * 0x1.62e42fee00000p-1) - k * 0x1.a39ef35793c76p-33;
    double sum = 1.0;
    for (int i = 13; i > 0; i--)
        sum = 1.0 + sum * r / i;
    return ldexp(sum, (int)k);
}

void net_softmax(const net_scratch *s, size_t lane, double probability[NET_CLASSES]) {
    const float max = s->logits[net_top1(s, lane)][lane];
    double sum = 0.0;
    for (size_t c = 0; c < NET_CLASSES; c++) {
        probability[c] = exp_negative((double)s->logits[c][lane] - (double)max);
        sum += probability[c];
    }
    for (size_t c = 0; c < NET_CLASSES; c++)
        probability[c] /= sum;
}
