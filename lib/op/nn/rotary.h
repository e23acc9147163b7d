/* SPDX-License-Identifier: MIT */
/* Rotary positions: pairs of numbers rotated by angles whose cosines and sines are cached. */
#ifndef QS_ROTARY_H
#define QS_ROTARY_H

#include "base/base.h"

/*
 * Rotates the first 2 * half of the `size` numbers of x, a pair (a, b) to (cos a - sin b, sin a +
 * cos b), each product and sum rounded; the rest is copied. Pairs are (i, i + half) or, with
 * `interleaved`, (2 i, 2 i + 1). x and y do not overlap.
 */
void qs_rotate(const float *x, const float *cosine, const float *sine, float *y, size_t size,
               size_t half, bool interleaved);

#endif
