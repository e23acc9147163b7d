/* SPDX-License-Identifier: MIT */
/* Loops for qsim_machine_measure: what the best instructions of this CPU do at most. And which
 * tiles suit it. */
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
/* For a process that may use tiles: qs_cpu_take_isa. */
qk_peak qk_peak_tiles(void);

/*
 * Do eight dot products of 512 bits that do not wait for each other leave this core idle? So do
 * those with two ports and a latency of 5 or 6, which want tiles of twelve. CPU models do not tell:
 * twelve and eight are timed, which takes some 10 us. For CPUs that run avx512vnni; false where
 * none is.
 */
bool qk_two_ports(void);

/* Reads `bytes`, a multiple of 512, from 64-byte aligned memory. */
typedef void (*qk_read_fn)(const void *memory, size_t bytes);
qk_read_fn qk_peak_read(void);

#endif
