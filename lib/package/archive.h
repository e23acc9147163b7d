/* SPDX-License-Identifier: MIT */
/* A package in memory, and functions that files which read and write packages share. */
#ifndef QS_ARCHIVE_H
#define QS_ARCHIVE_H

#include <stdatomic.h>

#include "base/base.h"
#include "base/file.h"

#include <qsim/package.h>

#define QS_MOST_ENTRIES   4096u
#define QS_MANIFEST       "manifest.json"
#define QS_SUMS           "SHA256SUMS"
#define QS_MANIFEST_BYTES (16u << 20)
#define QS_SUMS_BYTES     (8u << 20)
#define QS_SCHEMA         1

typedef struct qs_member {
    const char *name;
    const uint8_t *packed; /* in the archive */
    uint64_t size;
    uint16_t method;
    char sha256[65];
    uint8_t *inflated; /* NULL: not read yet, or stored without compression */
    bool verified;
} qs_member;

struct qsim_package {
    qsim_ctx *ctx;
    qs_arena arena;
    atomic_int holds;
    const char *name; /* for messages */
    qs_map map;       /* empty if the caller keeps the bytes */
    const uint8_t *data;
    size_t size;
    struct zip *zip;
    qs_member *members;
    size_t count;
    size_t model; /* index of the model that the manifest names */
};

/* Opens the package in `map`, which it takes over, also if it fails. */
int qs_package_of_map(qsim_ctx *ctx, qs_map *map, const char *name, qsim_package **out,
                      qsim_error *error);

/* Fails with `code` and "WHERE: WHAT: libzip's reason", or with NOMEM if memory was the reason. */
struct zip_error;
int qs_zip_fail(struct zip_error *e, int code, const char *where, const char *what,
                qsim_error *error);

/* Lists the members after checking the zip's structure (zip_directory.c). */
int qs_zip_directory(qsim_package *p, qsim_error *error);

/* What is wrong with the name of an entry; NULL: nothing. */
const char *qs_entry_name_fault(const char *name);
/*
 * Whether a and b cannot exist together: equal but for case, or one would be a folder of the other.
 */
bool qs_entry_names_clash(const char *a, const char *b);
int32_t qs_role_of_name(const char *name);
/* The name that an entry with this role has; NULL: it may have any. */
const char *qs_name_of_role(int32_t role);

/* What is wrong with a JSON text (RFC 8259, at most 64 deep); NULL: nothing. */
const char *qs_json_fault(const uint8_t *text, size_t size);
/* Reads schema and model from a manifest. Returns what is wrong with it; NULL: nothing. */
const char *qs_manifest_read(const uint8_t *text, size_t size, int64_t *schema,
                             const uint8_t **model, size_t *model_size);

#endif
