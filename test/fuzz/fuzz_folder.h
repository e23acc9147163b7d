/* SPDX-License-Identifier: MIT */
/* A folder for targets that need files, in memory if possible, one per process. */
#ifndef FUZZ_FOLDER_H
#define FUZZ_FOLDER_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char fuzz_folder_path[64];

/* Removes a folder and its contents, one folder deep. */
static inline void fuzz_remove(const char *folder) {
    char path[400];
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        snprintf(path, sizeof(path), "%.120s/%s", folder, e->d_name);
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..") && unlink(path) != 0)
            fuzz_remove(path);
    }
    if (d)
        closedir(d);
    rmdir(folder);
}

static inline void fuzz_folder_end(void) {
    fuzz_remove(fuzz_folder_path);
}

/* The folder's path; it is made on first use and removed when the process ends. */
static inline const char *fuzz_folder(void) {
    struct stat s;
    if (!*fuzz_folder_path) {
        const char *root =
            stat("/dev/shm", &s) == 0 && access("/dev/shm", W_OK) == 0 ? "/dev/shm" : ".";
        snprintf(fuzz_folder_path, sizeof(fuzz_folder_path), "%s/fuzz-XXXXXX", root);
        if (!mkdtemp(fuzz_folder_path))
            abort();
        atexit(fuzz_folder_end);
    }
    return fuzz_folder_path;
}

/* The path of a file in the folder, valid until the next call. */
static inline const char *fuzz_file(const char *name) {
    static char path[128];
    snprintf(path, sizeof(path), "%s/%s", fuzz_folder(), name);
    return path;
}

static inline void fuzz_write(const char *path, const void *data, size_t size) {
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, size, f) != size || fclose(f))
        abort();
}

#endif
