/* SPDX-License-Identifier: MIT */
#include "train_export.h"

#include <stdio.h>

static void add_constant(qsim_builder *b, const char *name, int32_t rank, const int64_t *dims,
                         const float *values) {
    qsim_tensor t = {.dtype = QSIM_FLOAT, .rank = rank, .dims = dims, .data = (void *)values};
    if (qsim_tensor_size(t.dtype, rank, dims, NULL, &t.bytes) == QSIM_OK)
        qsim_builder_constant(b, name, &t);
}

static void add_weights(qsim_builder *b, const net_params *p) {
    add_constant(b, "conv1.weight", 4, (const int64_t[]){8, 1, 5, 5}, p->conv1_weight);
    add_constant(b, "conv1.bias", 1, (const int64_t[]){8}, p->conv1_bias);
    add_constant(b, "conv2.weight", 4, (const int64_t[]){16, 8, 5, 5}, p->conv2_weight);
    add_constant(b, "conv2.bias", 1, (const int64_t[]){16}, p->conv2_bias);
    add_constant(b, "fc1.weight", 2, (const int64_t[]){64, 256}, p->fc1_weight);
    add_constant(b, "fc1.bias", 1, (const int64_t[]){64}, p->fc1_bias);
    add_constant(b, "fc2.weight", 2, (const int64_t[]){NET_CLASSES, 64}, p->fc2_weight);
    add_constant(b, "fc2.bias", 1, (const int64_t[]){NET_CLASSES}, p->fc2_bias);
}

static void add_conv(qsim_builder *b, const char *name, const char *inputs, const char *output) {
    qsim_builder_node(b, "", "Conv", name, inputs, output);
    qsim_builder_attr_ints(b, "kernel_shape", (const int64_t[]){5, 5}, 2);
}

static void add_pool(qsim_builder *b, const char *name, const char *input, const char *output) {
    qsim_builder_node(b, "", "MaxPool", name, input, output);
    qsim_builder_attr_ints(b, "kernel_shape", (const int64_t[]){2, 2}, 2);
    qsim_builder_attr_ints(b, "strides", (const int64_t[]){2, 2}, 2);
}

static void add_fc(qsim_builder *b, const char *name, const char *inputs, const char *output) {
    qsim_builder_node(b, "", "Gemm", name, inputs, output);
    qsim_builder_attr_int(b, "transB", 1);
}

static void add_nodes(qsim_builder *b) {
    add_conv(b, "conv1", "input,conv1.weight,conv1.bias", "conv1_out");
    qsim_builder_node(b, "", "Relu", "relu1", "conv1_out", "relu1_out");
    add_pool(b, "pool1", "relu1_out", "pool1_out");
    add_conv(b, "conv2", "pool1_out,conv2.weight,conv2.bias", "conv2_out");
    qsim_builder_node(b, "", "Relu", "relu2", "conv2_out", "relu2_out");
    add_pool(b, "pool2", "relu2_out", "pool2_out");
    qsim_builder_node(b, "", "Flatten", "flatten", "pool2_out", "flatten_out");
    qsim_builder_attr_int(b, "axis", 1);
    add_fc(b, "fc1", "flatten_out,fc1.weight,fc1.bias", "fc1_out");
    qsim_builder_node(b, "", "Relu", "relu3", "fc1_out", "relu3_out");
    add_fc(b, "fc2", "relu3_out,fc2.weight,fc2.bias", "logits");
}

static void add_metadata(qsim_builder *b, const char *data_name, uint64_t seed, size_t epochs) {
    char text[32];
    qsim_builder_metadata(b, "dataset", data_name);
    snprintf(text, sizeof(text), "%llu", (unsigned long long)seed);
    qsim_builder_metadata(b, "seed", text);
    snprintf(text, sizeof(text), "%zu", epochs);
    qsim_builder_metadata(b, "epochs", text);
}

int train_export(const net_params *params, const char *data_name, uint64_t seed, size_t epochs,
                 qsim_model **out, qsim_error *error) {
    static const char *const batch[] = {"N", NULL, NULL, NULL};
    qsim_builder *b = NULL;
    int status = qsim_builder_create(NULL, 13, "lenetlite", &b, error);
    if (status != QSIM_OK)
        return status;
    qsim_builder_input(b, "input", QSIM_FLOAT, 4, (const int64_t[]){-1, 1, 28, 28}, batch);
    qsim_builder_output(b, "logits", QSIM_FLOAT, 2, (const int64_t[]){-1, NET_CLASSES}, batch);
    add_weights(b, params);
    add_nodes(b);
    add_metadata(b, data_name, seed, epochs);
    status = qsim_builder_finish(b, out, error);
    qsim_builder_free(b);
    return status;
}
