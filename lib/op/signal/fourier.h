/* SPDX-License-Identifier: MIT */
/* Discrete Fourier transform of any length, in double, with the same bits on every CPU. */
#ifndef QS_FOURIER_H
#define QS_FOURIER_H

#include "op/step.h"

typedef struct qs_complex {
    double re, im;
} qs_complex;

/* e^(2 pi i k / n), 0 <= k < n, within two units in the last place. */
qs_complex qs_turn(size_t k, size_t n);

/* Tables shared by transforms of one length. */
typedef struct qs_fourier {
    size_t n;
    size_t terms;            /* the greatest prime factor of n */
    const qs_complex *turns; /* e^(2 pi i k / n) for k in [0, n) */
} qs_fourier;

/* False: out of memory. n >= 1. */
bool qs_fourier_make(qs_fourier *f, size_t n, qs_arena *arena);

/*
 * y[k] = sum over j of x[j] e^(-+ 2 pi i j k / n), - forward, + inverse (not divided by n), by
 * decimation in time with the prime factors of n. `terms`: f->terms numbers of scratch memory; x
 * and y do not overlap.
 */
void qs_fourier_run(const qsim_ctx *ctx, const qs_fourier *f, const qs_complex *x, qs_complex *y,
                    qs_complex *terms, bool inverse);

#endif
