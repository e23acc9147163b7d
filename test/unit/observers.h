/* SPDX-License-Identifier: MIT */
/* Observers for tests of lib/quant. */
#ifndef TEST_OBSERVERS_H
#define TEST_OBSERVERS_H

#include "test.h"

#include "kernel/ew.h"
#include "quant/observer.h"

/* Whether two observers have counted the same. */
static inline bool same_counts(const qsim_observer *a, const qsim_observer *b) {
    qs_observer_settle(a);
    qs_observer_settle(b);
    return a->count == b->count && memcmp(&a->min, &b->min, sizeof(a->min)) == 0 &&
           memcmp(&a->max, &b->max, sizeof(a->max)) == 0 && a->exponent == b->exponent &&
           !a->bins == !b->bins &&
           (!a->bins || memcmp(a->bins, b->bins, 2 * QS_SIDE * sizeof(*a->bins)) == 0);
}

static inline qsim_observer *new_observer(void) {
    qsim_observer *o = NULL;
    CHECK_INT(qsim_observer_create(NULL, NULL, &o, NULL), QSIM_OK);
    return o;
}

#endif
