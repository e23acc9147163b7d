/* SPDX-License-Identifier: MIT */
/* The list of layers of qsim quantize. */
#include <stdlib.h>

#include "quantizing.h"

static int32_t keep(void *user, const qsim_layer_info *layer) {
    quantizing *q = user;
    q->layers = tool_grow(q->layers, q->layer_count + 1, sizeof(*q->layers));
    qsim_layer_info *own = &q->layers[q->layer_count++];
    *own = *layer;
    own->name = tool_copy(layer->name);
    own->op_type = tool_copy(layer->op_type);
    return 0;
}

int quantize_layers_read(const tool *t, quantizing *q) {
    qsim_error e;
    if (qsim_quantize_layers(q->model, q->calibration, &q->options, keep, q, &e) < 0)
        return quantize_error(t, q, &e);
    return EXIT_OK;
}

void quantize_layers_free(quantizing *q) {
    for (size_t i = 0; i < q->layer_count; i++) {
        free((void *)(uintptr_t)q->layers[i].name);
        free((void *)(uintptr_t)q->layers[i].op_type);
    }
    free(q->layers);
}
