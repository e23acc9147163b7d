/* SPDX-License-Identifier: MIT */
/* A system that starts no threads; with glibc, for files that define _GNU_SOURCE. */
#ifndef NO_THREADS_H
#define NO_THREADS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "test.h"

#if defined(__GLIBC__)
/* Lets new threads ask for more stack than there is, so that none starts; or, once more, for the
 * usual one. */
static void refuse_threads(bool on) {
    static pthread_attr_t usual;
    pthread_attr_t huge;
    if (on) {
        CHECK_INT(pthread_getattr_default_np(&usual), 0);
        CHECK_INT(pthread_attr_init(&huge), 0);
        CHECK_INT(pthread_attr_setstacksize(&huge, SIZE_MAX / 4 * 3), 0);
        CHECK_INT(pthread_setattr_default_np(&huge), 0);
        pthread_attr_destroy(&huge);
    } else {
        CHECK_INT(pthread_setattr_default_np(&usual), 0);
        pthread_attr_destroy(&usual);
    }
}
#endif

#endif
