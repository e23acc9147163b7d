/* SPDX-License-Identifier: MIT */
/* Pairs tensors of a quantized model with those of the float model. */
#ifndef QS_COUNTERPARTS_H
#define QS_COUNTERPARTS_H

#include "graph/model.h"

/* A float value that node `node` makes and the name of its counterpart, which lives as long as the
 * quantized model. Non-zero ends the listing, which returns it. */
typedef int (*qs_pairs_fn)(void *user, qs_id node, qs_id value, const char *counterpart);

/* qsim_model_pairs, by ids of the float model. */
int qs_pairs_list(const qsim_model *model, const qsim_model *quantized, qs_pairs_fn pair,
                  void *user);

#endif
