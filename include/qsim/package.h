/* SPDX-License-Identifier: MIT */
/*
 * qsim/package.h - models, calibration, preprocessing, labels and a report in one zip file.
 *
 * A package is an ordinary zip archive that holds
 *
 *     *.onnx             one model or more, external data beside them under the names they use
 *     calibration.qcal   a calibration file
 *     preprocess.txt     how inputs are made, as `qsim --preprocess` takes it
 *     labels.txt         the names of the classes, one a line
 *     report.json        an evaluation report
 *     manifest.json      what is inside, for people and tools; "schema" is 1, "model" names the
 *                        model that is loaded when none is asked for
 *     SHA256SUMS         the hash of every other entry, as sha256sum writes and checks it
 *
 * qsim_model_load takes a package wherever it takes an .onnx file. Nothing is unpacked for that:
 * stored entries are used in place, deflated ones are inflated into memory.
 *
 * A package is checked before it is used. Refused by name: names that are absolute,
 * have "..", backslashes, colons, control bytes, or that some system reserves; two names that
 * differ in case only; links, devices and folders; encryption; compression other than deflate;
 * entries that overlap, that local headers describe otherwise, that are not listed in SHA256SUMS or
 * have another size, CRC or hash; more than 4096 entries; archives of 4 GiB and more (zip64); and
 * contents that inflate to more than 64 MiB plus 100 times the archive.
 *
 * Packages being read or written belong to one thread at a time. Models made from them do not.
 */
#ifndef QSIM_PACKAGE_H
#define QSIM_PACKAGE_H

#include <qsim/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The role of an entry, which follows from its name. */
#define QSIM_ROLE_DATA        0 /* anything else, external data for instance */
#define QSIM_ROLE_MODEL       1 /* *.onnx */
#define QSIM_ROLE_CALIBRATION 2 /* calibration.qcal */
#define QSIM_ROLE_PREPROCESS  3 /* preprocess.txt */
#define QSIM_ROLE_LABELS      4 /* labels.txt */
#define QSIM_ROLE_REPORT      5 /* report.json */
#define QSIM_ROLE_MANIFEST    6 /* manifest.json, written by the library */
#define QSIM_ROLE_SUMS        7 /* SHA256SUMS, written by the library */
#define QSIM_ROLE_COUNT       8

/* "data", "model", …; NULL out of range. Static. */
QSIM_API const char *qsim_role_name(int32_t role);

/* ---- read --------------------------------------------------------------------------------- */

/* An open package. */
typedef struct qsim_package qsim_package;

/* Facts about an entry. `struct_size` is set by the caller; `name` and `sha256` live as long as the
 * package. */
typedef struct qsim_package_entry {
    size_t struct_size;
    const char *name;   /* UTF-8, components separated by '/' */
    const char *sha256; /* 64 hexadecimal digits as SHA256SUMS has them; "" for that file itself */
    uint64_t bytes;     /* inflated */
    int32_t role;       /* QSIM_ROLE_* */
    int32_t stored;     /* 1: not compressed */
} qsim_package_entry;

/* 1 if these bytes begin as a zip archive does, else 0. */
QSIM_API int qsim_package_sniff(const void *data, size_t size);

/*
 * Opens a package; the file is mapped. Checked here: the directory, every name, SHA256SUMS and
 * manifest.json; an entry's own bytes are checked when they are first read. `flags` is 0 or
 * QSIM_LOAD_COPY. Errors: IO, FORMAT, UNSUPPORTED (compression, encryption, a manifest of a later
 * schema), LIMIT, NOMEM.
 */
QSIM_API int qsim_package_open(qsim_ctx *ctx, const char *path, int32_t flags, qsim_package **out,
                               qsim_error *error);
/* The same from memory, which must stay until the package and all models from it are freed. `name`
 * is for messages and may be NULL. */
QSIM_API int qsim_package_open_memory(qsim_ctx *ctx, const void *data, size_t size,
                                      const char *name, qsim_package **out, qsim_error *error);
/* Releases the caller's reference; models made from the package keep the memory that they use. */
QSIM_API void qsim_package_free(qsim_package *package);

/* How many entries there are. */
QSIM_API int32_t qsim_package_count(const qsim_package *package);
/* Entry `index`, in the order of names. Errors: ARGUMENT (index, struct_size). */
QSIM_API int qsim_package_get(const qsim_package *package, int32_t index,
                              qsim_package_entry *entry);
/* Index of the entry of that name, or QSIM_E_NOT_FOUND. */
QSIM_API int32_t qsim_package_find(const qsim_package *package, const char *name);
/* Index of the first entry with that role, or QSIM_E_NOT_FOUND; of models, the one that the
 * manifest names. */
QSIM_API int32_t qsim_package_find_role(const qsim_package *package, int32_t role);

/*
 * The bytes of an entry, checked against size, CRC and hash the first time. They belong to the
 * package and stay until it is freed. Errors: ARGUMENT, FORMAT (damaged), NOMEM.
 */
QSIM_API int qsim_package_data(qsim_package *package, int32_t index, const void **data,
                               size_t *size, qsim_error *error);

/*
 * Loads a model straight from the package: `name`, or NULL for the one that the manifest names. Of
 * `options` flags and name are used; external data comes from the package alone. Errors: NOT_FOUND
 * (no such model), those of qsim_package_data and of qsim_model_load.
 */
QSIM_API int qsim_package_model(qsim_package *package, const char *name,
                                const qsim_load_options *options, qsim_model **out,
                                qsim_error *error);

/* Replaces files of the same names; without it a folder that is not empty is QSIM_E_EXISTS. */
#define QSIM_UNPACK_REPLACE 1

/*
 * Writes every entry below `folder`, which is made if it is not there (its parent must be). All
 * entries are checked and written to a temporary folder beside it before anything appears in it: a
 * refused package or a full disk leaves nothing behind. Links inside `folder` are not followed.
 * Errors: EXISTS, IO, FORMAT, NOMEM.
 */
QSIM_API int qsim_package_unpack(qsim_package *package, const char *folder, int32_t flags,
                                 qsim_error *error);

/* ---- write -------------------------------------------------------------------------------- */

/* A package under construction: entries are added in any order, then it is saved. */
typedef struct qsim_packer qsim_packer;

/* `ctx` may be NULL. Never needs options: saving takes flags. Errors: ARGUMENT, NOMEM. */
QSIM_API int qsim_packer_create(qsim_ctx *ctx, qsim_packer **out, qsim_error *error);
QSIM_API void qsim_packer_free(qsim_packer *packer);

/*
 * Adds a model file and the external data that it uses. `name` is what it is called in the package
 * (".onnx" is appended where it is missing); NULL: the last component of `path`. The model must
 * load; the first one added is the one that the manifest names. Equal external data that several
 * models share is stored once. Errors: EXISTS (the name is taken), VALUE (bad name), those of
 * qsim_model_load.
 */
QSIM_API int qsim_packer_model(qsim_packer *packer, const char *path, const char *name,
                               qsim_error *error);

/*
 * Adds an entry; the bytes are copied. CALIBRATION, PREPROCESS, LABELS and REPORT have their fixed
 * names and `name` is NULL; with DATA, `name` is a relative path. Checked are a calibration's form,
 * that texts are UTF-8 and that a report is JSON. Errors: ARGUMENT, EXISTS, VALUE, FORMAT, NOMEM.
 */
QSIM_API int qsim_packer_add(qsim_packer *packer, int32_t role, const char *name, const void *data,
                             size_t size, qsim_error *error);

/*
 * Adds a line to the manifest's "options"; a key given twice keeps the later value. Errors:
 * ARGUMENT, VALUE (not UTF-8), NOMEM.
 */
QSIM_API int qsim_packer_option(qsim_packer *packer, const char *key, const char *value,
                                qsim_error *error);

/* Replaces an existing file; without it an existing file gives QSIM_E_EXISTS. */
#define QSIM_PACK_REPLACE 1
/* Deflates the entries: then the bytes depend on the version of zlib, too. */
#define QSIM_PACK_DEFLATE 2

/*
 * Writes the package to `path`, as qsim_model_save does: beside it, flushed, renamed. Entries are
 * sorted by name with one fixed date and fixed attributes, so the same entries and options give the
 * same bytes at any time and in every time zone. Errors: STATE (no model was added), EXISTS, IO,
 * LIMIT (4 GiB), NOMEM.
 */
QSIM_API int qsim_packer_save(qsim_packer *packer, const char *path, int32_t flags,
                              qsim_error *error);

#ifdef __cplusplus
}
#endif
#endif
