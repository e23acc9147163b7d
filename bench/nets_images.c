/* SPDX-License-Identifier: MIT */
/* ResNet-50, MobileNetV2 and SqueezeNet 1.1 at 224 x 224, 1000 classes. */
#include "nets.h"

#include <math.h>
#include <string.h>

static net_value image(net *n) {
    const int64_t dims[] = {1, 3, 224, 224};
    net_value x = {"input", 3};
    qsim_builder_input(n->b, x.name, QSIM_FLOAT, 4, dims, NULL);
    return x;
}

static net_value conv_relu(net *n, const net_value *x, const net_conv_shape *shape) {
    net_value y = net_conv(n, x, shape);
    return net_unary(n, "Relu", &y);
}

/* GlobalAveragePool, Flatten and the classifier, which names the graph's output. */
static void classify(net *n, const net_value *x) {
    const int64_t out[] = {1, 1000}, weights[] = {1000, x->channels};
    net_value pooled = net_unary(n, "GlobalAveragePool", x);
    net_value flat = net_unary(n, "Flatten", &pooled);
    qsim_builder_attr_int(n->b, "axis", 1);
    net_value w = net_weights(n, "weight", 2, weights, sqrtf(3.0f / (float)x->channels));
    net_value b = net_weights(n, "bias", 1, weights, 0.05f);
    char list[4 * NET_NAME];
    strcpy(list, flat.name);
    strcat(strcat(list, ","), w.name);
    strcat(strcat(list, ","), b.name);
    qsim_builder_node(n->b, "", "Gemm", "classifier", list, "output");
    qsim_builder_attr_int(n->b, "transB", 1);
    qsim_builder_output(n->b, "output", QSIM_FLOAT, 2, out, NULL);
}

static net_value bottleneck(net *n, const net_value *x, int64_t width, int64_t stride) {
    const net_conv_shape reduce = {width, 1, 1, 0, 1, 0}, middle = {width, 3, stride, 1, 1, 0},
                         expand = {4 * width, 1, 1, 0, 1, 0.3f},
                         project = {4 * width, 1, stride, 0, 1, 0.7f};
    net_value y = conv_relu(n, x, &reduce);
    y = conv_relu(n, &y, &middle);
    y = net_conv(n, &y, &expand);
    net_value shortcut = x->channels == 4 * width && stride == 1 ? *x : net_conv(n, x, &project);
    y = net_binary(n, "Add", &y, &shortcut);
    return net_unary(n, "Relu", &y);
}

void net_resnet50(net *n) {
    static const int blocks[] = {3, 4, 6, 3};
    const net_conv_shape first = {64, 7, 2, 3, 1, 0};
    net_value x = image(n);
    x = conv_relu(n, &x, &first);
    x = net_max_pool(n, &x, 3, 2, 1, 0);
    for (int stage = 0; stage < 4; stage++)
        for (int block = 0; block < blocks[stage]; block++)
            x = bottleneck(n, &x, (int64_t)64 << stage, stage && !block ? 2 : 1);
    classify(n, &x);
}

static net_value inverted_residual(net *n, const net_value *x, int64_t expansion, int64_t channels,
                                   int64_t stride) {
    const int64_t width = x->channels * expansion;
    const net_conv_shape expand = {width, 1, 1, 0, 1, 0},
                         depthwise = {width, 3, stride, 1, width, 0},
                         project = {channels, 1, 1, 0, 1, 0.7f};
    net_value y = *x;
    if (expansion > 1) {
        y = net_conv(n, &y, &expand);
        y = net_relu6(n, &y);
    }
    y = net_conv(n, &y, &depthwise);
    y = net_relu6(n, &y);
    y = net_conv(n, &y, &project);
    return stride == 1 && x->channels == channels ? net_binary(n, "Add", x, &y) : y;
}

void net_mobilenetv2(net *n) {
    static const struct {
        int expansion, channels, repeats, stride;
    } stages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                  {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
    const net_conv_shape first = {32, 3, 2, 1, 1, 0}, last = {1280, 1, 1, 0, 1, 0};
    net_value x = image(n);
    x = net_conv(n, &x, &first);
    x = net_relu6(n, &x);
    for (size_t i = 0; i < sizeof(stages) / sizeof(*stages); i++)
        for (int block = 0; block < stages[i].repeats; block++)
            x = inverted_residual(n, &x, stages[i].expansion, stages[i].channels,
                                  block ? 1 : stages[i].stride);
    x = net_conv(n, &x, &last);
    x = net_relu6(n, &x);
    classify(n, &x);
}

static net_value fire(net *n, const net_value *x, int64_t squeeze, int64_t expand) {
    const net_conv_shape s = {squeeze, 1, 1, 0, 1, 0}, e1 = {expand, 1, 1, 0, 1, 0},
                         e3 = {expand, 3, 1, 1, 1, 0};
    net_value narrow = conv_relu(n, x, &s);
    net_value one = conv_relu(n, &narrow, &e1), three = conv_relu(n, &narrow, &e3);
    net_value y = net_binary(n, "Concat", &one, &three);
    qsim_builder_attr_int(n->b, "axis", 1);
    y.channels = 2 * expand;
    return y;
}

void net_squeezenet(net *n) {
    const net_conv_shape first = {64, 3, 2, 0, 1, 0}, last = {1000, 1, 1, 0, 1, 0};
    const int64_t out[] = {1, 1000};
    static const int squeeze[] = {16, 16, 32, 32, 48, 48, 64, 64};
    net_value x = image(n);
    x = conv_relu(n, &x, &first);
    x = net_max_pool(n, &x, 3, 2, 0, 1);
    for (int i = 0; i < 8; i++) {
        x = fire(n, &x, squeeze[i], 4 * squeeze[i]);
        if (i == 1 || i == 3)
            x = net_max_pool(n, &x, 3, 2, 0, 1);
    }
    x = conv_relu(n, &x, &last);
    x = net_unary(n, "GlobalAveragePool", &x);
    qsim_builder_node(n->b, "", "Flatten", "flat", x.name, "output");
    qsim_builder_attr_int(n->b, "axis", 1);
    qsim_builder_output(n->b, "output", QSIM_FLOAT, 2, out, NULL);
}
