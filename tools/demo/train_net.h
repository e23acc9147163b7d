/* SPDX-License-Identifier: MIT */
/*
 * LeNetLite: Conv(1->8, 5x5) ReLU MaxPool2 Conv(8->16, 5x5) ReLU MaxPool2 FC(256->64) ReLU
 * FC(64->10), forward and backward.
 *
 * Eight images are computed at once, one per vector lane, so every layer is the same handful of
 * element-wise vector operations and no sum ever depends on the vector width. Sums over images and
 * lanes have one written order: training gives the same weights on every CPU and for every number
 * of threads.
 */
#ifndef TRAIN_NET_H
#define TRAIN_NET_H

#include <stddef.h>
#include <stdint.h>

#define NET_LANES   8 /* images per pass */
#define NET_SIDE    28
#define NET_PIXELS  (NET_SIDE * NET_SIDE)
#define NET_CLASSES 10
#define NET_PARAMS  20522

/* Weights in ONNX order: OIHW for Conv, [out][in] for Gemm with transB = 1. Gradients likewise. */
typedef union net_params {
    struct {
        float conv1_weight[8 * 25], conv1_bias[8];
        float conv2_weight[16 * 200], conv2_bias[16];
        float fc1_weight[64 * 256], fc1_bias[64];
        float fc2_weight[NET_CLASSES * 64], fc2_bias[NET_CLASSES];
    };
    float all[NET_PARAMS];
} net_params;

typedef float net_f8 __attribute__((vector_size(NET_LANES * sizeof(float))));

/* Input and output buffers of one pass; 32-byte aligned. */
typedef struct net_scratch {
    net_f8 x[NET_PIXELS];     /* in: pixels / 255 */
    int32_t label[NET_LANES]; /* in: class, or -1 for an unused lane */
    net_f8 logits[NET_CLASSES];
    net_f8 conv1[8 * 24 * 24], pool1[8 * 12 * 12]; /* pool* after ReLU */
    net_f8 conv2[16 * 8 * 8], pool2[16 * 4 * 4], fc1[64];
    net_f8 d_logits[NET_CLASSES], d_fc1[64], d_pool2[16 * 4 * 4], d_conv2[16 * 8 * 8];
    net_f8 d_pool1[8 * 12 * 12], d_conv1[8 * 24 * 24];
} net_scratch;

/* The passes for one instruction set. */
typedef struct net_passes {
    void (*forward)(const net_params *p, net_scratch *s);
    /* After forward: sets *grad to the sum over the lanes of d(cross entropy) / d(parameter). */
    void (*backward)(const net_params *p, net_scratch *s, net_params *grad);
} net_passes;

extern const net_passes net_passes_base, net_passes_avx2;

/* The fastest passes that this CPU runs; all give the same bits. */
const net_passes *net_passes_select(void);

/* Writes image `lane` to the scratch memory: NET_PIXELS bytes, 0 to 255. */
void net_load(net_scratch *s, size_t lane, const uint8_t *pixels, int32_t label);

/* He's uniform initialization; biases are 0. */
void net_init(net_params *p, uint64_t seed);

/* The class with the largest logit of a lane after forward; the first of equals. */
int32_t net_top1(const net_scratch *s, size_t lane);

/*
 * Softmax of a lane's logits in double precision, with an exp of plain arithmetic: the C library's
 * may differ between CPUs.
 */
void net_softmax(const net_scratch *s, size_t lane, double probability[NET_CLASSES]);

/* Next number of a splitmix64 generator. */
uint64_t net_random(uint64_t *state);

#endif
