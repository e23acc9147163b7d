/* SPDX-License-Identifier: MIT */
#include "ptq/record.h"

#include <math.h>

#define NO_TOP ((qs_top){-INFINITY, -INFINITY, -1})

int qs_record_create(qsim_ctx *ctx, int32_t bits, qs_record *r, qsim_error *error) {
    *r = (qs_record){.means = {.axis = -1}, .high = NO_TOP, .low = NO_TOP};
    return qs_observer_create(ctx, bits, &r->observer, error);
}

void qs_record_free(qsim_ctx *ctx, qs_record *r) {
    qsim_observer_free(r->observer);
    qs_free(ctx, r->means.sum);
}

void qs_record_reset(qs_record *r) {
    qs_observer_reset(r->observer);
    if (r->means.sum)
        memset(r->means.sum, 0, r->means.channels * sizeof(*r->means.sum));
    r->means.positions = 0;
    r->high = r->low = NO_TOP;
}

void qs_top_add(qs_top *top, float value, int64_t sample) {
    if (value > top->value) {
        top->next = top->value;
        top->value = value;
        top->sample = sample;
    } else if (value > top->next) {
        top->next = value;
    }
}

static void merge_top(qs_top *into, const qs_top *from, int64_t first) {
    qs_top_add(into, from->value, from->sample < 0 ? -1 : first + from->sample);
    qs_top_add(into, from->next, -1);
}

int qs_means_reserve(qsim_ctx *ctx, qs_means *m, size_t channels) {
    if (m->sum)
        return m->channels == channels ? QSIM_OK : QSIM_E_MISMATCH;
    m->sum = qs_calloc(ctx, channels + 1, sizeof(*m->sum));
    m->channels = channels;
    return m->sum ? QSIM_OK : QSIM_E_NOMEM;
}

int qs_record_reserve(qsim_ctx *ctx, qs_record *into, const qs_record *from) {
    int code = qs_observer_reserve(into->observer, from->observer);
    if (code || from->means.positions == 0)
        return code;
    if (into->means.positions > UINT64_MAX - from->means.positions)
        return QSIM_E_LIMIT;
    if (into->means.axis != from->means.axis)
        return QSIM_E_MISMATCH;
    return qs_means_reserve(ctx, &into->means, from->means.channels);
}

void qs_record_merge(qs_record *into, const qs_record *from, int64_t first) {
    (void)qsim_observer_merge(into->observer, from->observer);
    if (from->means.positions > 0)
        for (size_t c = 0; c < from->means.channels; c++)
            qs_exact_merge(&into->means.sum[c], &from->means.sum[c]);
    into->means.positions += from->means.positions;
    merge_top(&into->high, &from->high, first);
    merge_top(&into->low, &from->low, first);
}
