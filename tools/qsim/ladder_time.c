/* SPDX-License-Identifier: MIT */
/* What qsim auto leaves of its budget for the trial, which comes last and cannot be cut short. */
#include "ladder.h"

/*
 * The first attempt runs the float model twice on the searched samples and the quantized one once,
 * and measures a time; the trial runs the float model once on its samples and a quantized one
 * twice, of which one may be in float for the most part. As much again is for the step that the
 * search is in, since quantizing is not given up, and for a machine that has other work as well.
 */
double ladder_trial_ms(double first, size_t searched, size_t tried) {
    const double share = searched > 0 ? (double)tried / (double)searched : 1;
    return 2 * first * (share > 1 ? share : 1);
}

/* Without an attempt nothing would be there to keep. */
bool ladder_ends(const ladder *l, double now) {
    return l->count > 0 && now >= l->begun + l->seconds * 1e3 - l->reserve;
}
