/* SPDX-License-Identifier: MIT */
/* What tests of saving look at: whether a folder holds anything beside the file. */
#ifndef TEST_FOLDER_COUNT_H
#define TEST_FOLDER_COUNT_H

#include <dirent.h>
#include <string.h>

/* The entries of a folder, hidden ones too. */
static inline int folder_count(const char *folder) {
    int n = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    if (d)
        closedir(d);
    return n;
}

#endif
