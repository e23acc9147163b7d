/* SPDX-License-Identifier: MIT */
/* Writes entries to files once all of them have been checked. */
#include "package/archive.h"

#include "base/tree.h"

static int verify_all(qsim_package *p, qsim_error *error) {
    const void *data;
    size_t size;
    int code = QSIM_OK;
    for (size_t i = 0; i < p->count && !code; i++)
        code = qsim_package_data(p, (int32_t)i, &data, &size, error);
    return code;
}

static int write_all(qsim_package *p, qs_tree *tree, qsim_error *error) {
    const void *data;
    size_t size;
    int code = QSIM_OK;
    for (size_t i = 0; i < p->count && !code; i++) {
        code = qsim_package_data(p, (int32_t)i, &data, &size, error);
        if (!code)
            code = qs_tree_write(tree, p->members[i].name, data, size, error);
    }
    return code;
}

int qsim_package_unpack(qsim_package *p, const char *folder, int32_t flags, qsim_error *error) {
    qs_tree tree;
    qs_error_clear(error);
    if (!p || !folder || (flags & ~QSIM_UNPACK_REPLACE))
        return qs_fail(error, QSIM_E_ARGUMENT, "qsim_package_unpack: bad argument");
    int code = verify_all(p, error);
    if (code)
        return code;
    const char **names = qs_alloc(p->ctx, p->count, sizeof(*names));
    if (!names)
        return qs_fail(error, QSIM_E_NOMEM, "%s: out of memory", p->name);
    for (size_t i = 0; i < p->count; i++)
        names[i] = p->members[i].name;
    code = qs_tree_open(p->ctx, folder, flags & QSIM_UNPACK_REPLACE, &tree, error);
    if (!code) {
        code = write_all(p, &tree, error);
        if (code)
            qs_tree_abort(&tree, names, p->count);
        else
            code = qs_tree_commit(&tree, names, p->count, error);
    }
    qs_free(p->ctx, names);
    return code;
}
