/* SPDX-License-Identifier: MIT */
/* nets NAME FILE: writes a network with random weights; chainN is N tiny nodes in a row. */
#include "nets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    void (*make)(net *n);
} nets[] = {
    {"resnet50", net_resnet50},
    {"mobilenetv2", net_mobilenetv2},
    {"squeezenet", net_squeezenet},
    {"bert", net_bert},
};

/* A chain of nodes, to time the overhead of a node. LeakyRelu: two of them do not fold into one. */
static void chain(net *n, long length) {
    const int64_t dims[] = {1};
    net_value x = {"input", 1};
    qsim_builder_input(n->b, x.name, QSIM_FLOAT, 1, dims, NULL);
    for (long i = 1; i < length; i++) {
        x = net_unary(n, "LeakyRelu", &x);
        qsim_builder_attr_float(n->b, "alpha", 0.9f);
    }
    qsim_builder_node(n->b, "", "LeakyRelu", "last", x.name, "output");
    qsim_builder_output(n->b, "output", QSIM_FLOAT, 1, dims, NULL);
}

static int make(net *n, const char *name) {
    for (size_t i = 0; i < sizeof(nets) / sizeof(*nets); i++) {
        if (strcmp(name, nets[i].name) == 0) {
            nets[i].make(n);
            return 0;
        }
    }
    long length = strncmp(name, "chain", 5) ? 0 : strtol(name + 5, NULL, 10);
    if (length < 1 || length > 100000)
        return -1;
    chain(n, length);
    return 0;
}

int main(int argc, char **argv) {
    net n = {.random = 88172645463325252ull};
    qsim_error error = {0};
    qsim_model *model = NULL;
    if (argc != 3) {
        fprintf(stderr, "usage: nets resnet50|mobilenetv2|squeezenet|bert|chainN FILE\n");
        return 2;
    }
    int code = qsim_builder_create(NULL, 17, argv[1], &n.b, &error);
    if (!code && make(&n, argv[1])) {
        fprintf(stderr, "nets: no network is called %s\n", argv[1]);
        return 2;
    }
    if (!code)
        code = n.failed ? QSIM_E_NOMEM : qsim_builder_finish(n.b, &model, &error);
    const qsim_save_options save = {sizeof(save), QSIM_SAVE_REPLACE, 0};
    if (!code)
        code = qsim_model_save(model, argv[2], &save, &error);
    if (code)
        fprintf(stderr, "nets: %s: %s\n", argv[1], error.message);
    qsim_model_free(model);
    qsim_builder_free(n.b);
    return code ? 1 : 0;
}
