/* SPDX-License-Identifier: MIT */
/* A hash map from value names to ids: open addressing, a keyed hash, keys borrowed. */
#ifndef QS_NAMES_H
#define QS_NAMES_H

#include "graph/graph.h"

struct qs_names *qs_names_create(qsim_ctx *ctx);
void qs_names_free(qsim_ctx *ctx, struct qs_names *names);
qs_id qs_names_find(const struct qs_names *names, const char *key);
/* Adds or replaces an entry. `key` must outlive the map. */
int qs_names_put(qsim_ctx *ctx, struct qs_names *names, const char *key, qs_id id);
/*
 * The number, 1 at first, that the next fresh name made from `key` tries; NULL if `key` is absent.
 * Valid until the next put.
 */
uint32_t *qs_names_counter(const struct qs_names *names, const char *key);
struct qs_names *qs_names_clone(qsim_ctx *ctx, const struct qs_names *names);

#endif
