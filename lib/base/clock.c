/* SPDX-License-Identifier: MIT */
/* POSIX: elsewhere this file alone needs another body. */
#include "base/base.h"

#include <time.h>

uint64_t qs_clock_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
