/* SPDX-License-Identifier: MIT */
/* The parts that networks are made of. */
#include "nets.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static float uniform(net *n, float limit) {
    n->random ^= n->random >> 12;
    n->random ^= n->random << 25;
    n->random ^= n->random >> 27;
    uint32_t top = (uint32_t)((n->random * 2685821657736338717ull) >> 40);
    return limit * ((float)top / 8388608.0f - 1.0f);
}

net_value net_new(net *n, const char *what) {
    net_value v = {.channels = 0};
    snprintf(v.name, sizeof(v.name), "%s_%d", what, n->serial++);
    return v;
}

static void constant(net *n, const net_value *v, int32_t dtype, int32_t rank, const int64_t *dims,
                     const void *data, size_t bytes) {
    /* The builder only reads the bytes, but qsim_tensor.data is not const. */
    qsim_tensor t = {dtype, rank, dims, (void *)(uintptr_t)data, bytes};
    qsim_builder_constant(n->b, v->name, &t);
}

net_value net_weights(net *n, const char *what, int32_t rank, const int64_t *dims, float limit) {
    net_value v = net_new(n, what);
    size_t count = 1;
    for (int32_t i = 0; i < rank; i++)
        count *= (size_t)dims[i];
    float *data = malloc(count * sizeof(*data));
    if (!data) {
        n->failed = 1;
        return v;
    }
    for (size_t i = 0; i < count; i++)
        data[i] = uniform(n, limit);
    constant(n, &v, QSIM_FLOAT, rank, dims, data, count * sizeof(*data));
    free(data);
    return v;
}

net_value net_filled(net *n, const char *what, int64_t count, float value) {
    net_value v = net_new(n, what);
    float *data = malloc((size_t)count * sizeof(*data));
    if (!data) {
        n->failed = 1;
        return v;
    }
    for (int64_t i = 0; i < count; i++)
        data[i] = value;
    constant(n, &v, QSIM_FLOAT, 1, &count, data, (size_t)count * sizeof(*data));
    free(data);
    return v;
}

net_value net_scalar(net *n, const char *what, float value) {
    net_value v = net_new(n, what);
    constant(n, &v, QSIM_FLOAT, 0, NULL, &value, sizeof(value));
    return v;
}

net_value net_sizes(net *n, const char *what, const int64_t *values, size_t count) {
    net_value v = net_new(n, what);
    const int64_t dims = (int64_t)count;
    constant(n, &v, QSIM_INT64, 1, &dims, values, count * sizeof(*values));
    return v;
}

net_value net_node(net *n, const char *op, const net_value *const *inputs) {
    char list[8 * NET_NAME] = "", node[NET_NAME + 8];
    net_value y = net_new(n, op);
    for (size_t i = 0; inputs[i]; i++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof(list) - used, "%s%s", i ? "," : "", inputs[i]->name);
    }
    y.channels = inputs[0]->channels;
    snprintf(node, sizeof(node), "node_%s", y.name);
    qsim_builder_node(n->b, "", op, node, list, y.name);
    return y;
}

net_value net_unary(net *n, const char *op, const net_value *x) {
    const net_value *inputs[] = {x, NULL};
    return net_node(n, op, inputs);
}

net_value net_binary(net *n, const char *op, const net_value *x, const net_value *y) {
    const net_value *inputs[] = {x, y, NULL};
    return net_node(n, op, inputs);
}

static void pair(net *n, const char *name, int64_t value) {
    const int64_t two[] = {value, value};
    qsim_builder_attr_ints(n->b, name, two, 2);
}

static void window(net *n, int64_t kernel, int64_t stride, int64_t pad) {
    const int64_t pads[] = {pad, pad, pad, pad};
    pair(n, "kernel_shape", kernel);
    pair(n, "strides", stride);
    qsim_builder_attr_ints(n->b, "pads", pads, 4);
}

net_value net_conv(net *n, const net_value *x, const net_conv_shape *shape) {
    const int64_t per_group = x->channels / shape->groups;
    const int64_t dims[] = {shape->channels, per_group, shape->kernel, shape->kernel};
    float fan_in = (float)(per_group * shape->kernel * shape->kernel);
    float gain = shape->gain > 0 ? shape->gain : 1.0f;
    net_value w = net_weights(n, "weight", 4, dims, gain * sqrtf(6.0f / fan_in));
    net_value b = net_weights(n, "bias", 1, dims, 0.05f);
    const net_value *inputs[] = {x, &w, &b, NULL};
    net_value y = net_node(n, "Conv", inputs);
    window(n, shape->kernel, shape->stride, shape->pad);
    pair(n, "dilations", 1);
    qsim_builder_attr_int(n->b, "group", shape->groups);
    y.channels = shape->channels;
    return y;
}

net_value net_relu6(net *n, const net_value *x) {
    net_value least = net_scalar(n, "least", 0), greatest = net_scalar(n, "greatest", 6);
    const net_value *inputs[] = {x, &least, &greatest, NULL};
    return net_node(n, "Clip", inputs);
}

net_value net_max_pool(net *n, const net_value *x, int64_t kernel, int64_t stride, int64_t pad,
                       int64_t ceil_mode) {
    net_value y = net_unary(n, "MaxPool", x);
    window(n, kernel, stride, pad);
    qsim_builder_attr_int(n->b, "ceil_mode", ceil_mode);
    return y;
}

net_value net_dense(net *n, const net_value *x, int64_t from, int64_t to, float gain) {
    const int64_t dims[] = {from, to};
    net_value w = net_weights(n, "weight", 2, dims, gain * sqrtf(3.0f / (float)from));
    net_value b = net_weights(n, "bias", 1, &to, 0.05f);
    net_value product = net_binary(n, "MatMul", x, &w);
    return net_binary(n, "Add", &b, &product);
}
