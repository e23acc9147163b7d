/* SPDX-License-Identifier: MIT */
/* Random numbers that are a function of a key and a counter. */
#ifndef QS_RANDOM_H
#define QS_RANDOM_H

#include "base/base.h"

/*
 * Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3",
 * 2011).
 */
void qs_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

#endif
