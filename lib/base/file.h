/* SPDX-License-Identifier: MIT */
/*
 * Files: read-only mapping and atomic replacement. With tree.h the only place that knows the
 * platform's file calls.
 */
#ifndef QS_FILE_H
#define QS_FILE_H

#include "base/base.h"

/* A file's bytes, read-only. */
typedef struct qs_map {
    const uint8_t *data;
    size_t size;
    bool mapped; /* else: allocated */
} qs_map;

/*
 * Opens a regular file and maps it; anything else that can be read (a pipe), or any file with
 * `copy`, is read into memory. Directories, devices and FIFOs are refused by name without blocking.
 */
int qs_map_open(qsim_ctx *ctx, const char *path, bool copy, qs_map *map, qsim_error *error);

/*
 * Why a path, which may begin with '/', could lead elsewhere than its components say, or cannot be
 * printed; NULL if neither.
 */
const char *qs_path_fault(const char *path);
/* Why a location that a model names is not acceptable, NULL if it is. */
const char *qs_location_fault(const char *location);

/*
 * Opens `location`, a relative path as a model names it, below `folder`: every component is opened
 * without following links out of it, no "..", no absolute path, no drive, no control bytes; regular
 * files only, and never blocks.
 */
int qs_map_open_below(qsim_ctx *ctx, const char *folder, const char *location, bool copy,
                      qs_map *map, qsim_error *error);

/* Lets the system drop the map's pages, which come back when read. */
void qs_map_forget(const qs_map *map);
void qs_map_close(qsim_ctx *ctx, qs_map *map);

/* A text of the first `n` bytes of `a`, and `b`; NULL: out of memory. */
char *qs_text_join(qsim_ctx *ctx, const char *a, size_t n, const char *b);

/* Writes six letters for a temporary name, others at each call. `*state` is 0 before the first. */
void qs_fresh_letters(char *letters, uint64_t *state);

/*
 * A file being written. Bytes go to a temporary file in the target's folder, without a name where
 * the system has such files: a killed process leaves nothing behind. qs_out_commit flushes it and
 * renames it over the target, qs_out_abort removes it. One of the two must be called.
 */
typedef struct qs_out {
    qsim_ctx *ctx;
    char *path;
    char *shown; /* the path as it was given, for messages: links not followed */
    char *temporary;
    int fd;
    bool nameless;
    bool placed;               /* by qs_out_commit, which may fail after that */
    uint64_t written, flushed; /* bytes, and those of them that are on the disk */
    size_t piece;              /* bytes of one write, and between two flushes */
    int code;                  /* first failure: later writes do nothing */
    int stopped;               /* QSIM_E_CANCELLED or QSIM_E_TIME: as after a failure */
} qs_out;

int qs_out_open(qsim_ctx *ctx, const char *path, bool replace, qs_out *out, qsim_error *error);
int qs_out_write(qs_out *out, const void *data, size_t size);
/* Continues writing at this offset; bytes skipped are zero. */
int qs_out_seek(qs_out *out, uint64_t at);
/* Opens the bytes written so far for reading; to be closed before commit or abort. */
int qs_out_map(const qs_out *out, qs_map *map, qsim_error *error);
int qs_out_commit(qs_out *out, qsim_error *error);
void qs_out_abort(qs_out *out);

/* Removes a file, if it is there and may be removed; never a folder. */
void qs_file_remove(qsim_ctx *ctx, const char *path);

#endif
