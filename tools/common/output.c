/* SPDX-License-Identifier: MIT */
/* Outputs are judged before any work: may this file be written? */
#include <string.h>
#include <sys/stat.h>

#include <qsim/data.h>

#include "common/folder.h"

bool tool_may_write(const tool *t, const char *path, int *code) {
    struct stat st;
    if (strcmp(path, "-") == 0)
        return true;
    if (!path[0]) {
        *code = tool_usage(t, NULL, "the name of an output file is empty");
        return false;
    }
    const char *slash = strrchr(path, '/');
    if (slash && slash != path && !folder_is(path, (size_t)(slash - path))) {
        *code = tool_fail(t, QSIM_E_IO, "%s: the folder '%.*s' does not exist", path,
                          (int)(slash - path), path);
        return false;
    }
    if (stat(path, &st) != 0)
        return true;
    if (S_ISDIR(st.st_mode)) {
        *code = tool_fail(t, QSIM_E_IO, "%s: is a directory", path);
        return false;
    }
    if (t->force)
        return true;
    qsim_error e = {.code = QSIM_E_EXISTS, .hint = "-f replaces it"};
    snprintf(e.message, sizeof(e.message), "the output exists");
    *code = tool_error(t, path, &e);
    return false;
}

int tool_write(const tool *t, const char *path, const void *data, size_t size) {
    qsim_error e;
    if (strcmp(path, "-") == 0)
        return fwrite(data, 1, size, stdout) == size ? EXIT_OK : EXIT_IO;
    qsim_bytes piece = {data, size};
    int flags = t->force ? QSIM_FILE_REPLACE : 0;
    return qsim_file_write(t->ctx, path, flags, &piece, 1, &e) ? tool_error(t, path, &e) : EXIT_OK;
}
