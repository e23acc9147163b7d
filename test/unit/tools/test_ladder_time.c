/* SPDX-License-Identifier: MIT */
/* When the search of qsim auto ends, so that the trial ends within the budget. Nothing is timed. */
#include "test.h"

#include "qsim/ladder.h"

static void test_reserve(void) {
    CHECK(ladder_trial_ms(100, 8, 8) > 100);
    CHECK(ladder_trial_ms(100, 8, 80) >= 10 * ladder_trial_ms(100, 8, 8));
    /* Few samples to try: models are made and compiled all the same. */
    CHECK(ladder_trial_ms(100, 80, 8) == ladder_trial_ms(100, 8, 8));
    CHECK(ladder_trial_ms(100, 0, 8) > 100);
}

static void test_ends(void) {
    ladder l = {.begun = 5000, .seconds = 10, .reserve = 3000};
    CHECK(!ladder_ends(&l, 1e9)); /* nothing was found yet */
    l.count = 1;
    CHECK(!ladder_ends(&l, 5000));
    CHECK(!ladder_ends(&l, 11999));
    CHECK(ladder_ends(&l, 12000));
    /* A trial longer than the budget: the plain attempt is all. */
    l.reserve = 20000;
    CHECK(ladder_ends(&l, 5000));
}

int main(void) {
    test_reserve();
    test_ends();
    return test_done();
}
