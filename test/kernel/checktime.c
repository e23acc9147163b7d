/* SPDX-License-Identifier: MIT */
/* Timing of the cases: for people, for scripts, and on command in turns with other programs. */
#include "checkkernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "kernel/i8.h"
#include "kernel/x86/amx_tiles.h"

ck_timing_options ck_timing;

#define ROUNDS 1000

static double clock_of(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Mean time of some calls: elapsed, and of the processor, whose reading costs 0.2 us. */
typedef struct span {
    double wall, cpu;
} span;

static span mean_of(long calls, void (*call)(void *arg), void *arg) {
    double cpu = clock_of(CLOCK_PROCESS_CPUTIME_ID), wall = clock_of(CLOCK_MONOTONIC);
    for (long i = 0; i < calls; i++)
        call(arg);
    wall = clock_of(CLOCK_MONOTONIC) - wall;
    cpu = clock_of(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    return (span){wall / (double)calls, cpu / (double)calls};
}

/* The number of calls that take some 100 us, so that reading the clocks costs nothing beside. */
static long calls_of(void (*call)(void *arg), void *arg) {
    long calls = 1;
    while (calls < 1 << 20 && (double)calls * mean_of(calls, call, arg).wall < 1e-4)
        calls *= 2;
    return calls;
}

/* The protocol of bench/worker.c: `ready`, then for each line `run N` times of N runs in all. */
static void serve(void (*call)(void *arg), void *arg) {
    char line[64];
    mean_of(1, call, arg);
    printf("ready 0 0 0\n");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        long runs = strncmp(line, "run ", 4) ? 0 : strtol(line + 4, NULL, 10);
        const long calls = calls_of(call, arg);
        for (long done = 0; done < runs; done += calls)
            printf("%s%.3f", done ? " " : "", 1e6 * mean_of(calls, call, arg).cpu);
        printf("\n");
        fflush(stdout);
    }
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/*
 * The least elapsed time; or, where a neighbour on the same processor lengthens all calls, the
 * median processor time (whose extremes a virtual machine may get wrong).
 */
static double best_time(void (*call)(void *arg), void *arg) {
    static double cpu[ROUNDS];
    double best = 1e30, start = clock_of(CLOCK_MONOTONIC);
    size_t round = 0;
    mean_of(1, call, arg);
    const long calls = calls_of(call, arg);
    for (; round < ROUNDS && (round < 5 || clock_of(CLOCK_MONOTONIC) - start < 0.25); round++) {
        span t = mean_of(calls, call, arg);
        best = t.wall < best ? t.wall : best;
        cpu[round] = t.cpu;
    }
    qsort(cpu, round, sizeof(*cpu), by_size);
    return best < cpu[round / 2] ? best : cpu[round / 2];
}

double ck_tile_load_ns(void) {
    double best = 0;
#ifdef QK_AMX
    enum { LOADS = 1000 };
    static _Alignas(64) uint8_t rows[16 * 64];
    tile_config c = {.palette = 1, .bytes = {64}, .rows = {16}};
    TILE_CONFIG(&c);
    for (int round = 0; round < 20; round++) {
        double wall = clock_of(CLOCK_MONOTONIC);
        for (int i = 0; i < LOADS; i++)
            TILE_LOAD(0, rows, 64);
        wall = 1e9 / LOADS * (clock_of(CLOCK_MONOTONIC) - wall);
        best = round == 0 || wall < best ? wall : best;
    }
    TILE_RELEASE();
#endif
    return best;
}

void ck_time(ck_state *s, const char *shape, double macs, double bytes, void (*call)(void *arg),
             void *arg) {
    const char *isa = qsim_isa_name(s->t->isa);
    if (ck_timing.upper) {
        ck_upper_clear();
        call(arg);
        if (ck_upper_in_use()) {
            fprintf(stderr, "%s %s [%s]: leaves upper halves of registers in use\n", s->isa,
                    s->name, shape);
            s->failures++;
        }
        s->comparisons++;
        return;
    }
    if (ck_timing.serve) {
        if (strcmp(shape, ck_timing.serve) == 0)
            serve(call, arg);
        return;
    }
    double best = ck_timing.names_only ? 0 : best_time(call, arg);
    const bool tiles = s->t->isa == QSIM_ISA_AMX && macs > 0 && !ck_timing.names_only;
    const double tile = tiles ? ck_tile_load_ns() : 0;
    if (ck_timing.names_only || ck_timing.tab_separated) {
        printf("%s\t%s\t%s\t%.6f\t%.0f\t%.0f", isa, s->name, shape, best * 1e6, macs, bytes);
        if (tile > 0)
            printf("\t%.2f", tile);
        printf("\n");
    } else {
        printf("%-11s %-18s %-30s %10.2f us", isa, s->name, shape, best * 1e6);
        if (macs > 0)
            printf(" %8.1f GMAC/s", macs / best * 1e-9);
        if (bytes > 0)
            printf(" %8.2f GB/s", bytes / best * 1e-9);
        if (tile > 0)
            printf("   tile load %.1f ns", tile);
        printf("\n");
    }
    fflush(stdout);
}
