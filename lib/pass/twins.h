/* SPDX-License-Identifier: MIT */
/*
 * Twins, for passes that change the form of tensors: their layout or the sign of their bytes. A
 * value gets at most one twin, the same tensor in the other form, made when a node first needs it.
 * If the value's producer writes the twin, the value itself is pending: a conversion makes it only
 * if a node reads it in the model's form. So pairs of conversions that cancel never arise.
 */
#ifndef QS_TWINS_H
#define QS_TWINS_H

#include "pass/pass.h"

typedef struct qs_twins {
    qs_pass *p;
    size_t count;  /* values when the pass began: only they have entries below */
    qs_id *of;     /* the twin of each, or QS_NONE */
    bool *pending; /* exists as its twin only */
    /* A new value of the type and shape of the twin of v; negative: error. */
    qs_id (*value)(qs_pass *p, qs_id v);
    /* Adds a node that converts `from` into `to`, a twin if to_twin. */
    int (*convert)(qs_pass *p, qs_id from, qs_id to, bool to_twin);
} qs_twins;

/* Makes the entries; p, value and convert are set. To be freed also after an error. */
int qs_twins_init(qs_twins *t);
void qs_twins_free(qs_twins *t);
bool qs_twins_is_pending(const qs_twins *t, qs_id v);
/* The twin of a value, made by a conversion if there is none yet; negative: error. */
qs_id qs_twins_get(qs_twins *t, qs_id v);
/* Makes the node write the twin of output `index`: the value becomes pending. */
int qs_twins_emit(qs_twins *t, qs_id node, int32_t index);
/* Makes a pending value in the model's form, by a conversion of its twin. */
int qs_twins_restore(qs_twins *t, qs_id v);
/* The same for every input of a node that is pending. */
int qs_twins_restore_inputs(qs_twins *t, qs_id node);

#endif
