/* SPDX-License-Identifier: MIT */
/*
 * Writes several files into one folder, all or none. Names are relative paths that
 * qs_location_fault accepts.
 */
#ifndef QS_TREE_H
#define QS_TREE_H

#include "base/base.h"

/*
 * Files are written into a temporary folder, beside the target or, where that exists, inside it.
 * qs_tree_commit moves them to their places, qs_tree_abort removes them; one of the two must be
 * called with the names that were written. Links inside the target are never followed.
 */
typedef struct qs_tree {
    qsim_ctx *ctx;
    char *path, *temporary;
    int dir;     /* the temporary folder */
    bool exists; /* the target is there already */
} qs_tree;

/* Without `replace` a target that is not empty is QSIM_E_EXISTS. */
int qs_tree_open(qsim_ctx *ctx, const char *path, bool replace, qs_tree *tree, qsim_error *error);
int qs_tree_write(qs_tree *tree, const char *name, const void *data, size_t size,
                  qsim_error *error);
int qs_tree_commit(qs_tree *tree, const char *const *names, size_t count, qsim_error *error);
void qs_tree_abort(qs_tree *tree, const char *const *names, size_t count);

#endif
