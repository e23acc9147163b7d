/* SPDX-License-Identifier: MIT */
#include "common/folder.h"

#include "common/image.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct names {
    char **items;
    size_t count;
} names;

static void add(names *n, char *item) {
    n->items = tool_grow(n->items, n->count + 2, sizeof(*n->items));
    n->items[n->count++] = item;
    n->items[n->count] = NULL;
}

static char *join(const char *folder, const char *name) {
    text t = {0};
    text_printf(&t, "%s/%s", folder, name);
    return t.data;
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_array(const char *name) {
    const char *dot = strrchr(name, '.');
    return image_is_name(name) || (dot && (strcmp(dot, ".npy") == 0 || strcmp(dot, ".npz") == 0 ||
                                           strcmp(dot, ".pb") == 0));
}

static bool exists(const char *path) {
    struct stat st;
    return stat(path, &st) == 0;
}

static bool has_input(const char *folder) {
    char *first = join(folder, "input_0.pb");
    bool there = exists(first);
    free(first);
    return there;
}

static void add_inputs(names *files, const char *folder, size_t inputs) {
    for (size_t i = 0; i < inputs; i++) {
        char name[32];
        snprintf(name, sizeof(name), "input_%zu.pb", i);
        add(files, join(folder, name));
    }
}

bool folder_is(const char *path, size_t size) {
    struct stat st;
    char *copy = tool_copy(path);
    copy[size] = 0;
    bool yes = stat(copy, &st) == 0 && S_ISDIR(st.st_mode);
    free(copy);
    return yes;
}

void folder_free(char **files) {
    for (size_t i = 0; files && files[i]; i++)
        free(files[i]);
    free(files);
}

/* Sorted names of what counts in a folder: arrays and test_data_set_* folders. */
static int read_names(const tool *t, const char *path, names *found) {
    DIR *dir = opendir(path);
    if (!dir)
        return tool_fail(t, QSIM_E_IO, "%s: cannot open: %s", path, strerror(errno));
    for (struct dirent *e; (e = readdir(dir)) != NULL;)
        if (is_array(e->d_name) || strncmp(e->d_name, "test_data_set_", 14) == 0)
            add(found, tool_copy(e->d_name));
    closedir(dir);
    if (found->count > 0)
        qsort(found->items, found->count, sizeof(*found->items), by_name);
    return EXIT_OK;
}

int folder_list(const tool *t, const char *path, size_t inputs, char ***files, size_t *groups) {
    names found = {0}, list = {0};
    int code = read_names(t, path, &found);
    if (has_input(path))
        add_inputs(&list, path, inputs);
    else
        for (size_t i = 0; i < found.count; i++) {
            char *full = join(path, found.items[i]);
            if (strncmp(found.items[i], "test_data_set_", 14) == 0) {
                if (has_input(full))
                    add_inputs(&list, full, inputs);
            } else
                for (size_t k = 0; k < inputs; k++)
                    add(&list, tool_copy(full));
            free(full);
        }
    folder_free(found.items);
    if (code == EXIT_OK && list.count == 0)
        code = tool_fail(
            t, QSIM_E_FORMAT,
            "%s: no .npy, .npz or .pb files, no pictures and no test_data_set_* in this folder",
            path);
    *files = list.items;
    *groups = inputs ? list.count / inputs : 0;
    return code;
}

int folder_make(const tool *t, const char *path) {
    struct stat st;
    if (mkdir(path, 0777) == 0)
        return EXIT_OK;
    if (errno == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return EXIT_OK;
    return tool_fail(t, QSIM_E_IO, "%s: cannot make the folder: %s", path,
                     strerror(errno == EEXIST ? ENOTDIR : errno));
}
