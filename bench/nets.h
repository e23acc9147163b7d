/* SPDX-License-Identifier: MIT */
/*
 * Networks with random weights, built through the public functions as PyTorch's exporter writes
 * them: BatchNormalization folded, ReLU6 as Clip. Weights are uniform with He's variance, from one
 * seed, so that a file is the same everywhere.
 */
#ifndef BENCH_NETS_H
#define BENCH_NETS_H

#include <qsim/qsim.h>

#define NET_NAME 64

typedef struct net {
    qsim_builder *b;
    uint64_t random;
    int serial; /* numbers the names */
    int failed; /* no memory; builder calls keep their own failure */
} net;

/* A tensor of the graph: its name and, for images, its channels. */
typedef struct net_value {
    char name[NET_NAME];
    int64_t channels;
} net_value;

typedef struct net_conv_shape {
    int64_t channels, kernel, stride, pad, groups;
    float gain; /* of the weights' standard deviation; 0: 1 */
} net_conv_shape;

/* A new tensor's name, after `what`. */
net_value net_new(net *n, const char *what);

/* A constant of uniform random values in [-limit, limit), and one of a given value. */
net_value net_weights(net *n, const char *what, int32_t rank, const int64_t *dims, float limit);
net_value net_filled(net *n, const char *what, int64_t count, float value);
net_value net_scalar(net *n, const char *what, float value);
net_value net_sizes(net *n, const char *what, const int64_t *values, size_t count);

/* One node of one output; `inputs` are NULL-ended. Attributes may follow. */
net_value net_node(net *n, const char *op, const net_value *const *inputs);
net_value net_unary(net *n, const char *op, const net_value *x);
net_value net_binary(net *n, const char *op, const net_value *x, const net_value *y);

net_value net_conv(net *n, const net_value *x, const net_conv_shape *shape);
net_value net_relu6(net *n, const net_value *x);
net_value net_max_pool(net *n, const net_value *x, int64_t kernel, int64_t stride, int64_t pad,
                       int64_t ceil_mode);
/* x W + b over the last axis. */
net_value net_dense(net *n, const net_value *x, int64_t from, int64_t to, float gain);

/* Whole graphs, from an input to an output that they name. */
void net_resnet50(net *n);
void net_mobilenetv2(net *n);
void net_squeezenet(net *n);
void net_bert(net *n);

#endif
