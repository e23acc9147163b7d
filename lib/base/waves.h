/* SPDX-License-Identifier: MIT */
/*
 * A step whose output overlaps its input in memory goes through its rows in waves: in ascending
 * order where the output begins before the input, in descending order where it begins after it. A
 * wave begins once the previous one is done. No row is overwritten before it is read, provided that
 * the two begin far enough from each other.
 */
#ifndef QS_WAVES_H
#define QS_WAVES_H

#include "base/base.h"

/*
 * Work of each thread in one wave, at whose end all threads wait for each other, which takes about
 * 1 us.
 */
#define QS_WAVE_NS 200000.0
/* Bytes after a row that kernels may read without using them. */
#define QS_OVER_READ ((size_t)64)

/*
 * How many items a wave has: a multiple of `slices`; with one slice, all. `ns`: work of all items.
 */
size_t qs_wave(size_t items, size_t slices, double ns);

/* First item of the first wave. The next one's is `wave` after, or before if `backwards`. */
static inline size_t qs_wave_first(size_t items, size_t wave, bool backwards) {
    return backwards ? (items - 1) / wave * wave : 0;
}

/* The rows that windows sliding down images read. */
typedef struct qs_reach {
    size_t h, oh;           /* rows of an image and of its output */
    size_t step, top, taps; /* of the window: stride, padding above the image, height */
    size_t row, out;        /* bytes of a row and of one of the output */
    /* Results: bytes by which the output has to begin before the input, or after it. */
    size_t min_lead, min_lag;
} qs_reach;

/* Adds a wave: output rows from `row` of `image` to before row `end` of image `last`. */
void qs_reach_wave(qs_reach *r, size_t image, size_t row, size_t last, size_t end);

#endif
