/* SPDX-License-Identifier: MIT */
#include "common/folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/system.h"

char *folder_join(const char *folder, const char *name) {
    text t = {0};
    size_t n = strlen(folder);
    text_printf(&t, "%s%s%s", folder, n > 1 && folder[n - 1] == '/' ? "" : "/", name);
    return t.data;
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void folder_free(char **names) {
    for (size_t i = 0; names && names[i]; i++)
        free(names[i]);
    free(names);
}

int folder_read(const tool *t, const char *path, char ***names, size_t *count) {
    DIR *dir = opendir(path);
    char **items = tool_alloc(1, sizeof(*items));
    size_t n = 0;
    *names = items;
    *count = 0;
    if (!dir)
        return tool_fail(t, QSIM_E_IO, "%s: cannot open: %s", path, strerror(errno));
    for (struct dirent *e; (e = readdir(dir)) != NULL;)
        if (e->d_name[0] != '.') {
            items = tool_grow(items, n + 2, sizeof(*items));
            items[n++] = tool_copy(e->d_name);
            items[n] = NULL;
        }
    closedir(dir);
    if (n > 0)
        qsort(items, n, sizeof(*items), by_name);
    *names = items;
    *count = n;
    return EXIT_OK;
}

bool folder_is(const char *path, size_t size) {
    struct stat st;
    char *copy = tool_copy(path);
    copy[size] = 0;
    bool yes = stat(copy, &st) == 0 && S_ISDIR(st.st_mode);
    free(copy);
    return yes;
}

int folder_make(const tool *t, const char *path) {
    struct stat st;
    if (system_make_folder(path) == 0)
        return EXIT_OK;
    if (errno == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return EXIT_OK;
    return tool_fail(t, QSIM_E_IO, "%s: cannot make the folder: %s", path,
                     strerror(errno == EEXIST ? ENOTDIR : errno));
}
