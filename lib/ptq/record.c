/* SPDX-License-Identifier: MIT */
#include "ptq/record.h"

#include <math.h>

#define NO_TOP ((qs_top){-INFINITY, -INFINITY, -1})

QS_COLD int qs_record_create(qsim_ctx *ctx, int32_t bits, qs_record *r) {
    *r = (qs_record){.means = {.axis = -1}, .high = NO_TOP, .low = NO_TOP};
    return qs_observer_create(ctx, bits, &r->observer, NULL) ? QSIM_E_NOMEM : QSIM_OK;
}

void qs_record_free(qsim_ctx *ctx, qs_record *r) {
    qsim_observer_free(r->observer);
    qs_means_free(ctx, &r->means);
}

void qs_record_reset(qs_record *r) {
    qs_observer_reset(r->observer);
    qs_means *m = &r->means;
    if (m->sum && !m->aside)
        memset(m->sum, 0, m->channels * sizeof(*m->sum));
    if (m->sum) {
        memset(m->recent, 0, 2 * m->channels * sizeof(*m->recent));
        qs_extremes_reset(m->extreme, m->channels);
    }
    m->aside = m->alone = false;
    m->positions = 0;
    r->high = r->low = NO_TOP;
}

void qs_top_add(qs_top *top, float value, int64_t sample) {
    if (sample >= 0 && sample == top->sample) {
        top->value = value > top->value ? value : top->value;
    } else if (value > top->value) {
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

void qs_extremes_reset(float *extreme, size_t channels) {
    for (size_t c = 0; c < channels; c++) {
        extreme[c] = INFINITY;
        extreme[channels + c] = -INFINITY;
    }
}

void qs_extremes_merge(float *into, const float *from, size_t channels) {
    for (size_t c = 0; c < channels; c++) {
        const float low = from[c] + 0.0f, high = from[channels + c] + 0.0f; /* no -0 */
        into[c] = low < into[c] ? low : into[c];
        into[channels + c] = high > into[channels + c] ? high : into[channels + c];
    }
}

int qs_means_reserve(qsim_ctx *ctx, qs_means *m, size_t channels) {
    if (m->sum)
        return m->channels == channels ? QSIM_OK : QSIM_E_MISMATCH;
    m->sum = qs_calloc(ctx, channels + 1, sizeof(*m->sum));
    m->recent = qs_calloc(ctx, 2 * channels + 1, sizeof(*m->recent));
    m->extreme = qs_alloc(ctx, 2 * channels + 1, sizeof(*m->extreme));
    m->channels = channels;
    if (m->sum && m->recent && m->extreme) {
        qs_extremes_reset(m->extreme, channels);
        return QSIM_OK;
    }
    qs_means_free(ctx, m);
    m->sum = NULL;
    m->recent = NULL;
    m->extreme = NULL;
    return QSIM_E_NOMEM;
}

void qs_means_free(qsim_ctx *ctx, const qs_means *m) {
    qs_free(ctx, m->sum);
    qs_free(ctx, m->recent);
    qs_free(ctx, m->extreme);
}

qs_exact qs_means_sum(const qs_means *m, size_t channel) {
    qs_exact s = m->sum[channel];
    qs_exact_add(&s, m->recent[channel]);
    qs_exact_add(&s, m->recent[m->channels + channel]);
    return s;
}

double qs_means_mean(const qs_means *m, size_t channel) {
    const qs_exact s = qs_means_sum(m, channel);
    return qs_exact_mean(&s, m->positions);
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

void qs_record_merge_values(qs_record *into, const qs_record *from, int64_t first,
                            const qs_reads *reads) {
    (void)qs_observer_merge(into->observer, from->observer, reads);
    merge_top(&into->high, &from->high, first);
    merge_top(&into->low, &from->low, first);
}

void qs_means_merge(qs_means *into, const qs_means *from, size_t channels, const qs_reads *reads) {
    bool aside = into->aside && from->aside;
    for (size_t i = 0; i < (from->alone ? channels : 2 * channels); i += channels)
        aside &=
            qs_exact_add_each(into->sum, into->recent, from->recent + i, channels, reads->add_sums);
    if (!from->aside)
        qs_exact_merge(into->sum, from->sum, channels);
    into->aside = aside;
}

void qs_record_merge(qs_record *into, const qs_record *from, int64_t first, const qs_reads *reads) {
    qs_record_merge_values(into, from, first, reads);
    if (from->means.positions > 0) {
        qs_means_merge(&into->means, &from->means, from->means.channels, reads);
        qs_extremes_merge(into->means.extreme, from->means.extreme, from->means.channels);
        into->means.bare |= from->means.bare;
    }
    into->means.positions += from->means.positions;
}
