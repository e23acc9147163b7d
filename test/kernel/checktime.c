/* SPDX-License-Identifier: MIT */
/* Timing of the cases: for people, for scripts, and on command in turns with other programs. */
#include "checkkernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

ck_timing_options ck_timing;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The protocol of bench/worker.c: `ready`, then N times in microseconds for each line `run N`. */
static void serve(void (*call)(void *arg), void *arg) {
    char line[64];
    call(arg);
    printf("ready 0 0 0\n");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        long runs = strncmp(line, "run ", 4) ? 0 : strtol(line + 4, NULL, 10);
        for (long i = 0; i < runs; i++) {
            double t = now();
            call(arg);
            printf("%s%.3f", i ? " " : "", 1e6 * (now() - t));
        }
        printf("\n");
        fflush(stdout);
    }
}

static double best_time(void (*call)(void *arg), void *arg) {
    double best = 1e30, start = now();
    call(arg);
    double once = now() - start;
    int calls = once > 1e-4 ? 1 : (int)(1e-4 / (once + 1e-9)) + 1;
    for (int round = 0; round < 1000 && (round < 5 || now() - start < 0.25); round++) {
        double t = now();
        for (int i = 0; i < calls; i++)
            call(arg);
        t = (now() - t) / calls;
        best = t < best ? t : best;
    }
    return best;
}

void ck_time(ck_state *s, const char *shape, double macs, double bytes, void (*call)(void *arg),
             void *arg) {
    const char *isa = qsim_isa_name(s->t->isa);
    if (ck_timing.serve) {
        if (strcmp(shape, ck_timing.serve) == 0)
            serve(call, arg);
        return;
    }
    double best = ck_timing.names_only ? 0 : best_time(call, arg);
    if (ck_timing.names_only || ck_timing.tab_separated) {
        printf("%s\t%s\t%s\t%.6f\t%.0f\t%.0f\n", isa, s->name, shape, best * 1e6, macs, bytes);
    } else {
        printf("%-11s %-18s %-30s %10.2f us", isa, s->name, shape, best * 1e6);
        if (macs > 0)
            printf(" %8.1f GMAC/s", macs / best * 1e-9);
        if (bytes > 0)
            printf(" %8.2f GB/s", bytes / best * 1e-9);
        printf("\n");
    }
    fflush(stdout);
}
