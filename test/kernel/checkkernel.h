/* SPDX-License-Identifier: MIT */
/*
 * checkkernel: every kernel of every table, the C kernels among them, byte for byte against a plain
 * loop over its definition, on random shapes with guarded, poisoned outputs. Where the definition
 * has a tolerance (elementary functions, sums in trees), the C kernel is compared with it and the
 * others with the C kernel. The same cases are also timed.
 *
 * To add a family: write check_<family>.c with an array of ck_case, declare it at the end of this
 * file, add it to `families` in checkkernel.c and the file to meson.build.
 */
#ifndef CHECKKERNEL_H
#define CHECKKERNEL_H

#include "base/base.h"
#include "kernel/table.h"

typedef struct ck_state {
    const qk_table *c; /* the specification */
    const qk_table *t; /* the table under test; c, too */
    uint64_t random;
    const uint8_t *choices; /* results of ck_random before `random`, 4 bytes each */
    size_t left;            /* bytes left of choices */
    const char *isa;        /* name of t */
    const char *name;       /* name of the running case */
    long failures, comparisons;
    struct ck_block *blocks;
} ck_state;

typedef struct ck_case {
    const char *name;
    void (*check)(ck_state *s); /* one random round; called many times */
    void (*bench)(ck_state *s); /* fixed shapes through ck_time; NULL: nothing to time */
} ck_case;

uint32_t ck_random(ck_state *s);
int32_t ck_between(ck_state *s, int32_t least, int32_t greatest);
float ck_real(ck_state *s, float least, float greatest);

/*
 * Memory of one round, freed after it. Outputs are poisoned, with guard bytes before and after that
 * ck_same checks. Inputs are random bytes followed by exactly the 64 readable bytes that kernels
 * may count on, so that the address sanitizer sees reads beyond.
 */
void *ck_output(ck_state *s, size_t bytes);
void *ck_input(ck_state *s, size_t bytes);
void *ck_floats(ck_state *s, size_t count, float least, float greatest);
void ck_free(ck_state *s);

/*
 * Counts a comparison; on a difference, or a touched guard, prints case, `shape` and the first
 * differing byte. Both are ck_output blocks of `bytes`.
 */
void ck_same(ck_state *s, const void *expected, const void *actual, size_t bytes,
             const char *shape);

/* Requantization by the design's definition, independent of the library's. */
uint8_t ck_requantize(int64_t acc, float m, int32_t zp, int32_t lo, int32_t hi);

/* Prints the best time of many calls, and the rates of macs and bytes that are not 0. */
void ck_time(ck_state *s, const char *shape, double macs, double bytes, void (*call)(void *arg),
             void *arg);

/*
 * Nanoseconds of loading a tile from the first-level cache now: in virtual machines 3 to 4 at some
 * times and three times as much at others, when AMX is slower, too. 0 in a build without AMX. Only
 * for processes that have taken AMX.
 */
double ck_tile_load_ns(void);

/* Settings of ck_time, from the command line. */
typedef struct ck_timing_options {
    bool tab_separated; /* for bench/kernels.sh */
    bool names_only;    /* the same without times */
    const char *serve;  /* times runs of this shape on command, for bench/layers.sh */
    bool upper;         /* runs each shape once and calls ck_upper_in_use */
} ck_timing_options;
extern ck_timing_options ck_timing;

/*
 * On x86: true if the upper halves of vector registers are in use after a kernel, which slows SSE
 * instructions on many CPUs.
 */
bool ck_upper_in_use(void);
void ck_upper_clear(void);
/* False if the CPU does not tell. */
bool ck_upper_known(void);

/* evex256.c, smallblocks.c and amxemulated.c; NULL where they cannot run */
const qk_table *ck_table_evex256(void);
const qk_table *ck_table_smallblocks(void);
const qk_table *ck_table_amxemulated(void);

extern const ck_case ck_cases_i8[];
extern const size_t ck_cases_i8_count;
extern const ck_case ck_cases_f32[];
extern const size_t ck_cases_f32_count;
extern const ck_case ck_cases_pool[];
extern const size_t ck_cases_pool_count;
extern const ck_case ck_cases_ew[], ck_cases_u8[];
extern const size_t ck_cases_ew_count, ck_cases_u8_count;

extern const ck_case ck_cases_casts[], ck_cases_maps[], ck_cases_nbits[];
extern const size_t ck_cases_casts_count, ck_cases_maps_count, ck_cases_nbits_count;

extern const ck_case ck_cases_conv_i8[];
extern const size_t ck_cases_conv_i8_count;

#endif
