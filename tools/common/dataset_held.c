/* SPDX-License-Identifier: MIT */
/* Samples of a data set that are held out, and the numbers of the others. */
#include "common/dataset_sets.h"
#include "common/utf8.h"

#define LEAST_SPLIT 8 /* units; two of eight are held out */

int64_t dataset_hold_out(dataset *d, int64_t most) {
    const int64_t units = (d->end - d->first) / d->unit, rest = (d->all - d->end) / d->unit;
    const int64_t bound = most / d->unit;
    d->period = d->beyond = 0;
    if (bound > 0 && rest > 0 && (rest >= LEAST_SPLIT || units < LEAST_SPLIT)) {
        const int64_t held = (rest < bound ? rest : bound) * d->unit;
        d->beyond = d->end + held;
        return held;
    }
    int64_t held = units < LEAST_SPLIT ? 0 : units / 5 > 2 ? units / 5 : 2;
    held = held < bound ? held : bound;
    d->period = held > 0 ? units / held : 0;
    return held > 0 ? units / d->period * d->unit : 0;
}

int64_t dataset_samples(const dataset *d) {
    const int64_t held = d->period ? (d->end - d->first) / d->unit / d->period * d->unit : 0;
    if (d->using_held)
        return d->beyond ? d->beyond - d->end : held;
    return d->end - d->first - held;
}

/* Neither held out nor skipped; where units are single samples or files. */
static bool is_given(const dataset *d, int64_t at) {
    const bool held = d->period && (at - d->first) % d->period == d->period - 1;
    return !held && !(d->skipped && d->skipped[at]);
}

int64_t dataset_number(const dataset *d, int64_t sample) {
    for (int64_t at = d->first; d->skipped && at < d->end; at++)
        if (is_given(d, at) && sample-- == 0)
            return at;
    const int64_t unit = sample / d->unit, kept = d->period - 1; /* of a period's units */
    const int64_t at = kept > 0 ? unit / kept * d->period + unit % kept : unit;
    return d->first + at * d->unit + sample % d->unit;
}

void dataset_name_sample(const dataset *d, int64_t sample, int64_t all, text *out) {
    const int64_t at = dataset_number(d, sample);
    for (int64_t i = d->first; d->files.files && i < d->end; i++)
        all -= is_given(d, i);
    if (d->files.files && all == 0) /* else a file has several */
        utf8_printable(out, tool_base_name(d->files.files[(size_t)at * d->inputs]), 60);
    else
        text_printf(out, "sample %lld", (long long)at);
}
