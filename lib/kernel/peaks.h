/* SPDX-License-Identifier: MIT */
/* Loops for qsim_machine_measure: what the best instructions of this CPU do at most. */
#ifndef QK_PEAKS_H
#define QK_PEAKS_H

#include "base/base.h"

/* A loop over registers only; loop NULL: none is written for this CPU. */
typedef struct qk_peak {
    void (*loop)(int64_t turns);
    double macs; /* of one turn */
} qk_peak;

qk_peak qk_peak_int8(void);
qk_peak qk_peak_float(void);

/* Reads `bytes`, a multiple of 512, from 64-byte aligned memory. */
typedef void (*qk_read_fn)(const void *memory, size_t bytes);
qk_read_fn qk_peak_read(void);

#endif
