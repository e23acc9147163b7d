/* SPDX-License-Identifier: MIT */
/*
 * qsim/package.h - models, calibration, preprocessing, labels and a report in one zip file.
 *
 * A package is an ordinary zip archive that holds
 *
 *     *.onnx             one or more models, and their external data under the names that they use
 *     calibration.qcal   a calibration file
 *     preprocess.txt     how inputs are made, as the option --preprocess of the command takes it
 *     labels.txt         the names of the classes, one per line
 *     report.json        an evaluation report
 *     manifest.json      the list of contents; "schema" is 1, "model" names the default model
 *     SHA256SUMS         the hash of every other entry, in the format of sha256sum
 *
 * qsim_model_load accepts a package wherever it accepts an .onnx file, and loads the default model.
 * Nothing is unpacked to disk: stored entries are used in place, deflated entries are inflated into
 * memory.
 *
 * A package is checked before it is used. The following are refused, with the entry's name: names
 * that are absolute, contain "..", backslashes, colons or control bytes, or are reserved on some
 * system; two names that differ in case only; links, devices and folders; encryption; compression
 * other than deflate; entries that overlap, or whose local header differs from the directory;
 * entries that SHA256SUMS does not list, or whose size, CRC or hash differs; more than 4096
 * entries; archives of 4 GiB and more (zip64); contents that inflate to more than 64 MiB plus 100
 * times the archive.
 *
 * A qsim_package and a qsim_packer belong to one thread at a time; models loaded from a package do
 * not.
 */
#ifndef QSIM_PACKAGE_H
#define QSIM_PACKAGE_H

#include <qsim/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The role of an entry follows from its name. */
#define QSIM_ROLE_DATA        0 /* all other names, for instance external data */
#define QSIM_ROLE_MODEL       1 /* *.onnx */
#define QSIM_ROLE_CALIBRATION 2 /* calibration.qcal */
#define QSIM_ROLE_PREPROCESS  3 /* preprocess.txt */
#define QSIM_ROLE_LABELS      4 /* labels.txt */
#define QSIM_ROLE_REPORT      5 /* report.json */
#define QSIM_ROLE_MANIFEST    6 /* manifest.json, written by the library */
#define QSIM_ROLE_SUMS        7 /* SHA256SUMS, written by the library */
#define QSIM_ROLE_COUNT       8

/* The name of a role: "data", "model", …; NULL if out of range. Static. */
QSIM_API const char *qsim_role_name(int32_t role);

/* ---- read --------------------------------------------------------------------------------- */

/* An open package. */
typedef struct qsim_package qsim_package;

/* Describes an entry. `name` and `sha256` live as long as the package. */
typedef struct qsim_package_entry {
    size_t struct_size; /* sizeof(qsim_package_entry), set by the caller */
    const char *name;   /* UTF-8, components separated by '/' */
    const char *sha256; /* 64 hexadecimal digits from SHA256SUMS; "" for SHA256SUMS itself */
    uint64_t bytes;     /* inflated size */
    int32_t role;       /* QSIM_ROLE_* */
    int32_t stored;     /* 1: not compressed */
} qsim_package_entry;

/* 1 if the `size` bytes at `data` begin like a zip archive, else 0. */
QSIM_API int qsim_package_sniff(const void *data, size_t size);

/*
 * Opens the package at `path` and maps it into memory. This call checks the directory, every name,
 * SHA256SUMS and manifest.json; the bytes of an entry are checked when they are first read. `flags`
 * is 0 or QSIM_LOAD_COPY. `ctx` may be NULL. Errors: IO, FORMAT, UNSUPPORTED (compression,
 * encryption, a manifest of a later schema), LIMIT, NOMEM.
 */
QSIM_API int qsim_package_open(qsim_ctx *ctx, const char *path, int32_t flags, qsim_package **out,
                               qsim_error *error);
/*
 * The same for the `size` bytes at `data`, which must stay unchanged until the package and all
 * models from it are freed. `name` is the package's name in messages and may be NULL.
 */
QSIM_API int qsim_package_open_memory(qsim_ctx *ctx, const void *data, size_t size,
                                      const char *name, qsim_package **out, qsim_error *error);
/* Releases the caller's reference; models made from the package keep the memory that they use. */
QSIM_API void qsim_package_free(qsim_package *package);

/* The number of entries. */
QSIM_API int32_t qsim_package_count(const qsim_package *package);
/* Describes entry `index`, from 0, in the order of names. Errors: ARGUMENT (index, struct_size). */
QSIM_API int qsim_package_get(const qsim_package *package, int32_t index,
                              qsim_package_entry *entry);
/* The index of the entry with this name, or QSIM_E_NOT_FOUND. */
QSIM_API int32_t qsim_package_find(const qsim_package *package, const char *name);
/*
 * The index of the first entry with this role, or QSIM_E_NOT_FOUND. For QSIM_ROLE_MODEL: the index
 * of the default model.
 */
QSIM_API int32_t qsim_package_find_role(const qsim_package *package, int32_t role);

/*
 * Sets `*data` and `*size` to the inflated bytes of entry `index`. The first call for an entry
 * checks size, CRC and hash. The bytes belong to the package and stay until it is freed. Errors:
 * ARGUMENT, FORMAT (damaged), NOMEM.
 */
QSIM_API int qsim_package_data(qsim_package *package, int32_t index, const void **data,
                               size_t *size, qsim_error *error);

/*
 * Loads the model `name` from the package; NULL: the default model. Of `options`, which may be
 * NULL, only `flags` and `name` are used: external data comes from the package only. Errors:
 * NOT_FOUND (no such model), those of qsim_package_data and of qsim_model_load.
 */
QSIM_API int qsim_package_model(qsim_package *package, const char *name,
                                const qsim_load_options *options, qsim_model **out,
                                qsim_error *error);

/*
 * Replaces files of the same names. Without this flag a folder that is not empty fails with
 * QSIM_E_EXISTS.
 */
#define QSIM_UNPACK_REPLACE 1

/*
 * Writes every entry to `folder`, which is made if it does not exist (its parent must exist).
 * `flags` is 0 or QSIM_UNPACK_REPLACE. All entries are checked and written to a temporary folder
 * beside it before the first one appears in `folder`: a refused package or a full disk leaves
 * nothing behind. Links inside of `folder` are not followed. Errors: EXISTS, IO, FORMAT, NOMEM.
 */
QSIM_API int qsim_package_unpack(qsim_package *package, const char *folder, int32_t flags,
                                 qsim_error *error);

/* ---- write -------------------------------------------------------------------------------- */

/* A package under construction: entries are added in any order, then it is saved. */
typedef struct qsim_packer qsim_packer;

/*
 * Starts an empty package. `ctx` may be NULL. This will never need options: qsim_packer_save takes
 * flags. Errors: ARGUMENT, NOMEM.
 */
QSIM_API int qsim_packer_create(qsim_ctx *ctx, qsim_packer **out, qsim_error *error);
QSIM_API void qsim_packer_free(qsim_packer *packer);

/*
 * Adds the model file at `path` and the external data that it uses. `name` is its name in the
 * package (".onnx" is appended if it is missing); NULL: the last component of `path`.
 * qsim_model_load must accept the model. The first model added is the default model. External data
 * that several models share is stored once. Errors: EXISTS (the name is taken), VALUE (bad name),
 * those of qsim_model_load.
 */
QSIM_API int qsim_packer_model(qsim_packer *packer, const char *path, const char *name,
                               qsim_error *error);

/*
 * Adds an entry; the `size` bytes at `data` are copied. `role` is CALIBRATION, PREPROCESS, LABELS
 * or REPORT, whose names are fixed (`name` is NULL), or DATA, whose `name` is a relative path. The
 * call checks the format of a calibration, that texts are UTF-8, and that a report is JSON. Errors:
 * ARGUMENT, EXISTS, VALUE, FORMAT, NOMEM.
 */
QSIM_API int qsim_packer_add(qsim_packer *packer, int32_t role, const char *name, const void *data,
                             size_t size, qsim_error *error);

/*
 * Adds `key` with `value` to the manifest's "options"; a key given twice keeps the later value.
 * Both texts are copied. Errors: ARGUMENT, VALUE (not UTF-8), NOMEM.
 */
QSIM_API int qsim_packer_option(qsim_packer *packer, const char *key, const char *value,
                                qsim_error *error);

/* Replaces an existing file. Without this flag an existing file fails with QSIM_E_EXISTS. */
#define QSIM_PACK_REPLACE 1
/* Compresses the entries with deflate. The package's bytes then also depend on zlib's version. */
#define QSIM_PACK_DEFLATE 2

/*
 * Writes the package to `path`. `flags` are QSIM_PACK_*, added up. The bytes go to a temporary file
 * in the same folder, which is flushed and then renamed. Entries are sorted by name and have one
 * fixed date and fixed attributes, so the same entries and options give the same bytes at any time
 * and in every time zone. Errors: STATE (no model was added), EXISTS, IO, LIMIT (4 GiB), NOMEM.
 */
QSIM_API int qsim_packer_save(qsim_packer *packer, const char *path, int32_t flags,
                              qsim_error *error);

#ifdef __cplusplus
}
#endif
#endif
