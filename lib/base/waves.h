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
static inline size_t qs_wave(size_t items, size_t slices, double ns) {
    const size_t most = (items + slices - 1) / slices;
    const double many = slices > 1 ? QS_WAVE_NS * (double)items / ns : 0.0;
    return slices * (many < (double)most ? (size_t)many + 1 : most);
}

/* First item of the first wave. The next one's is `wave` after, or before if `backwards`. */
static inline size_t qs_wave_first(size_t items, size_t wave, bool backwards) {
    return backwards ? (items - 1) / wave * wave : 0;
}

/* The rows that windows sliding down images read. */
typedef struct qs_reach {
    size_t h, oh;           /* rows of an image and of its output */
    size_t step, top, taps; /* of the window: stride, padding above the image, height */
    size_t row, out;        /* bytes of a row and of one of the output */
    /* Found: how far the output has to begin before the input, or after it, for the waves so far.
     */
    size_t min_lead, min_lag;
} qs_reach;

/* Rows of all images in front of row `row` of this one, `top` more counted, or of its end. */
static inline size_t qs_reach_rows(const qs_reach *r, size_t image, size_t row) {
    const size_t inside = row < r->top ? 0 : row - r->top;
    return image * r->h + (inside < r->h ? inside : r->h);
}

/* A wave from an output row of an image to the end `end` (of rows) of another. */
static inline void qs_reach_wave(qs_reach *r, size_t image, size_t row, size_t last, size_t end) {
    const size_t read = qs_reach_rows(r, image, row * r->step) * r->row;
    const size_t read_end =
        qs_reach_rows(r, last, (end - 1) * r->step + r->taps) * r->row + QS_OVER_READ;
    const size_t written = (image * r->oh + row) * r->out;
    const size_t written_end = (last * r->oh + end) * r->out;
    const size_t lead = written_end > read ? written_end - read : 1;
    const size_t lag = read_end > written ? read_end - written : 1;
    r->min_lead = lead > r->min_lead ? lead : r->min_lead;
    r->min_lag = lag > r->min_lag ? lag : r->min_lag;
}

#endif
