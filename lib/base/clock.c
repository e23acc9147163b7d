/* SPDX-License-Identifier: MIT */
/* The clock. POSIX; for other systems only this file has to change. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L /* clock_gettime, which -std=c11 hides */
#endif
#include "base/base.h"

#include <time.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <x86intrin.h>
#endif

uint64_t qs_clock_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t qs_clock_ticks(void) {
#if defined(__x86_64__) && defined(__GNUC__)
    return __rdtsc();
#elif defined(__aarch64__) && defined(__GNUC__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return qs_clock_ns();
#endif
}
