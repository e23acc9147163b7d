/* SPDX-License-Identifier: MIT */
/* A package under construction. */
#ifndef QS_PACKER_H
#define QS_PACKER_H

#include "package/archive.h"

typedef struct qs_package_part {
    const char *name;
    const void *data;
    size_t size;
    char sha256[65];
    const qsim_model *model; /* of a model's entry: for its metadata; NULL: another entry */
} qs_package_part;

typedef struct qs_choice {
    const char *key, *value;
} qs_choice;

struct qsim_packer {
    qsim_ctx *ctx;
    qs_arena arena;
    qs_package_part *parts;
    qs_choice *options;
    qsim_model **models; /* counted references: parts point into their files */
    size_t part_count, part_capacity, option_count, option_capacity, model_count, model_capacity;
    const char *main; /* the first model's name */
};

/* Text that grows; `failed`: there was no memory. The caller frees it. */
typedef struct qs_text {
    qsim_ctx *ctx;
    char *data;
    size_t size, capacity;
    bool failed;
} qs_text;

/* Write the manifest and the list of hashes of the sorted parts. */
void qs_manifest_write(const qsim_packer *w, qs_text *out);
void qs_sums_write(const qsim_packer *w, qs_text *out);

/* Appends a part. Its bytes have to stay, and its name has to be free. */
int qs_packer_part(qsim_packer *w, const qs_package_part *part, qsim_error *error);

#endif
