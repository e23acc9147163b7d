/* SPDX-License-Identifier: MIT */
/*
 * Loops for qsim_machine_measure, which reach the limits of an instruction set, and the choice of
 * tiles.
 */
#ifndef QK_PEAKS_H
#define QK_PEAKS_H

#include "base/base.h"

/* A loop in registers; loop is NULL if there is none. */
typedef struct qk_peak {
    void (*loop)(int64_t turns);
    double macs; /* multiply-accumulates of one turn */
} qk_peak;

/* The loops for instruction set `isa`, which this CPU has; none for C, which has no vectors. */
qk_peak qk_peak_int8(int32_t isa);
qk_peak qk_peak_float(int32_t isa);
/* The loop for tiles, for a process that has taken AMX (qs_cpu_take_isa). */
qk_peak qk_peak_tiles(void);

/*
 * Whether this core has two ports for dot products of 512 bits, as Zen 5 and Intel's servers: it
 * needs eight to twelve products at a time. CPU models do not tell: eight and four are timed, which
 * takes some 10 us. For CPUs that run avx512vnni; false on other architectures.
 */
bool qk_two_ports(void);

/* Reads `bytes`, a multiple of 512, from 64-byte aligned memory. */
typedef void (*qk_read_fn)(const void *memory, size_t bytes);
qk_read_fn qk_peak_read(void);

#endif
