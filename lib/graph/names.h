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
/* A name that is not among the names: `base`_N, from N = first on, or NULL: out of memory. `base`
 * is among them. It is in the arena, not put, and not given again. */
const char *qs_names_unused(const struct qs_names *names, qs_arena *arena, const char *base,
                            uint32_t first);
/* NULL: out of memory. After a stop the copy may be incomplete. */
struct qs_names *qs_names_clone(qsim_ctx *ctx, const struct qs_names *names);

#endif
