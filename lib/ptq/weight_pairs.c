/* SPDX-License-Identifier: MIT */
#include "ptq/weight_pairs.h"

size_t qs_pairs_taps(const qs_quantizer *q, const qs_layer *l) {
    const qs_node *n = &q->g->nodes[l->node];
    const int64_t *dims = q->g->values[n->inputs[1]].data->dims;
    const bool paired = l->form.reduce == QSIM_REDUCE_PAIRS;
    if (!paired || !(n->op->traits & QS_CONVOLVES))
        return paired;
    const bool depthwise = dims[1] == 1 && qs_node_int(n, "group", 1) == dims[0];
    return depthwise ? 0 : l->depth / (size_t)dims[1];
}

void qs_pairs_widen(const qs_quantizer *q, const qs_layer *l, const float *weights, size_t channel,
                    float *low, float *high) {
    const float *w = weights + channel * l->stride;
    const size_t taps = qs_pairs_taps(q, l);
    for (size_t k = 0; k < l->depth && taps > 0; k++) {
        const size_t other = qs_pair_of(k, l->depth, taps);
        const float sum = other != k ? w[k * l->step] + w[other * l->step] : 0;
        *low = sum < *low ? sum : *low;
        *high = sum > *high ? sum : *high;
    }
}
