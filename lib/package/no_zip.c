/* SPDX-License-Identifier: MIT */
/*
 * A build without libzip (QS_NO_ZIP) has this file in place of those that read and write archives:
 * the same functions, which refuse by name. Models in .onnx files load as always.
 */
#include "package/archive.h"

#include <qsim/data.h>

#ifdef QS_NO_ZIP

static int refuse(const char *function, qsim_error *error) {
    qs_error_clear(error);
    qs_fail(error, QSIM_E_UNSUPPORTED, "%s: this build of libqsim has no zip archives", function);
    qs_hint(error, "build it with -Dzip=enabled; that needs libzip");
    return QSIM_E_UNSUPPORTED;
}

/* ---- packages, reading ---- */

int qsim_package_sniff(const void *data, size_t size) {
    return data && size >= 4 && (memcmp(data, "PK\3\4", 4) == 0 || memcmp(data, "PK\5\6", 4) == 0);
}

int qs_package_of_map(qsim_ctx *ctx, qs_map *map, const char *name, qsim_package **out,
                      qsim_error *error) {
    *out = NULL;
    qs_map_close(ctx, map);
    return refuse(name, error);
}

int qsim_package_open(qsim_ctx *ctx, const char *path, int32_t flags, qsim_package **out,
                      qsim_error *error) {
    (void)ctx, (void)path, (void)flags;
    if (out)
        *out = NULL;
    return refuse("qsim_package_open", error);
}

int qsim_package_open_memory(qsim_ctx *ctx, const void *data, size_t size, const char *name,
                             qsim_package **out, qsim_error *error) {
    (void)ctx, (void)data, (void)size, (void)name;
    if (out)
        *out = NULL;
    return refuse("qsim_package_open_memory", error);
}

void qsim_package_free(qsim_package *p) {
    (void)p;
}

int32_t qsim_package_count(const qsim_package *p) {
    (void)p;
    return 0;
}

int qsim_package_get(const qsim_package *p, int32_t index, qsim_package_entry *entry) {
    (void)p, (void)index, (void)entry;
    return QSIM_E_UNSUPPORTED;
}

int32_t qsim_package_find(const qsim_package *p, const char *name) {
    (void)p, (void)name;
    return QSIM_E_UNSUPPORTED;
}

int32_t qsim_package_find_role(const qsim_package *p, int32_t role) {
    (void)p, (void)role;
    return QSIM_E_UNSUPPORTED;
}

int qsim_package_data(qsim_package *p, int32_t index, const void **data, size_t *size,
                      qsim_error *error) {
    (void)p, (void)index, (void)data, (void)size;
    return refuse("qsim_package_data", error);
}

int qsim_package_unpack(qsim_package *p, const char *folder, int32_t flags, qsim_error *error) {
    (void)p, (void)folder, (void)flags;
    return refuse("qsim_package_unpack", error);
}

/* ---- packages, writing ---- */

int qsim_packer_create(qsim_ctx *ctx, qsim_packer **out, qsim_error *error) {
    (void)ctx;
    if (out)
        *out = NULL;
    return refuse("qsim_packer_create", error);
}

void qsim_packer_free(qsim_packer *w) {
    (void)w;
}

int qsim_packer_model(qsim_packer *w, const char *path, const char *name, qsim_error *error) {
    (void)w, (void)path, (void)name;
    return refuse("qsim_packer_model", error);
}

int qsim_packer_add(qsim_packer *w, int32_t role, const char *name, const void *data, size_t size,
                    qsim_error *error) {
    (void)w, (void)role, (void)name, (void)data, (void)size;
    return refuse("qsim_packer_add", error);
}

int qsim_packer_option(qsim_packer *w, const char *key, const char *value, qsim_error *error) {
    (void)w, (void)key, (void)value;
    return refuse("qsim_packer_option", error);
}

int qsim_packer_save(qsim_packer *w, const char *path, int32_t flags, qsim_error *error) {
    (void)w, (void)path, (void)flags;
    return refuse("qsim_packer_save", error);
}

/* ---- .npz ---- */

int qsim_npz_open(qsim_ctx *ctx, const void *data, size_t size, qsim_npz **out, qsim_error *error) {
    (void)ctx, (void)data, (void)size;
    if (out)
        *out = NULL;
    return refuse("qsim_npz_open", error);
}

void qsim_npz_free(qsim_npz *z) {
    (void)z;
}

int32_t qsim_npz_count(const qsim_npz *z) {
    (void)z;
    return 0;
}

const char *qsim_npz_name(const qsim_npz *z, int32_t index) {
    (void)z, (void)index;
    return NULL;
}

int qsim_npz_array(const qsim_npz *z, int32_t index, qsim_array *array) {
    (void)z, (void)index, (void)array;
    return QSIM_E_UNSUPPORTED;
}

int qsim_npz_read(qsim_npz *z, int32_t index, void *out, size_t capacity, qsim_error *error) {
    (void)z, (void)index, (void)out, (void)capacity;
    return refuse("qsim_npz_read", error);
}
#endif
