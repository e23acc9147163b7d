/* SPDX-License-Identifier: MIT */
/*
 * Pairs of int8 weights whose products with uint8 activations ONNX Runtime adds in 16 bits on x86
 * CPUs without VNNI (vpmaddubsw). It lays windows out as rows, kernel positions first, input
 * channels last, and pairs neighbours: 255 * (a + b) stays within 16 bits as long as two weights of
 * one sign add up to at most 128 in size.
 */
#ifndef QS_WEIGHT_PAIRS_H
#define QS_WEIGHT_PAIRS_H

#include "ptq/quantizer.h"

#define QS_PAIR_MOST 128

/* The kernel positions of a layer's windows; 0: ONNX Runtime adds no two products in 16 bits. */
size_t qs_pairs_taps(const qs_quantizer *q, const qs_layer *l);

/* The weight that is paired with weight k of a channel; k: none. */
static inline size_t qs_pair_of(size_t k, size_t depth, size_t taps) {
    const size_t inputs = depth / taps, other = (k % taps * inputs + k / taps) ^ 1;
    return other < depth ? other % inputs * taps + other / inputs : k;
}

/*
 * Widens the range of a channel's weights to that of the sums of pairs: with a scale for this range
 * no pair exceeds 127 before rounding, and 128 after it.
 */
void qs_pairs_widen(const qs_quantizer *q, const qs_layer *l, const float *weights, size_t channel,
                    float *low, float *high);

#endif
