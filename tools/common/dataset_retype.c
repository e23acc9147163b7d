/* SPDX-License-Identifier: MIT */
/* The same samples for a second model, whose inputs have other types of real numbers. */
#include <stdlib.h>

#include "common/dataset_sets.h"

int dataset_retype(dataset *d, const qsim_model *model, batch *b) {
    int code = EXIT_OK;
    if (!d->other_feeds) {
        d->other_feeds = tool_alloc(d->inputs, sizeof(*d->other_feeds));
        d->other_tensors = tool_alloc(d->inputs, sizeof(*d->other_tensors));
    }
    for (size_t i = 0; i < d->inputs && code == EXIT_OK; i++) {
        slot s = d->slots[i];
        d->other_tensors[i] = d->tensors[i];
        if (slot_retype(model, (int32_t)i, &s) && s.dtype != d->slots[i].dtype &&
            slot_is_real(&d->slots[i]) && slot_is_real(&s))
            code = feed_read_as(d->t, &d->feeds[i], &s, &d->other_feeds[i], &d->other_tensors[i]);
    }
    b->inputs = d->other_tensors;
    return code;
}

void dataset_close_other(dataset *d) {
    for (size_t i = 0; i < d->inputs && d->other_feeds; i++)
        feed_close(&d->other_feeds[i]);
    free(d->other_feeds);
    free(d->other_tensors);
}
