/* SPDX-License-Identifier: MIT */
/*
 * Reads entries of an open package. The hash of an entry is checked once, before its bytes are
 * returned.
 */
#include "package/archive.h"

#include <stdio.h>
#include <zip.h>

#define BLOCK ((size_t)1 << 16)

static int fail_zip(const qsim_package *p, const qs_member *m, zip_error_t *e, qsim_error *error) {
    char what[128];
    snprintf(what, sizeof(what), "entry '%.100s' is damaged", m->name);
    return qs_zip_fail(e, QSIM_E_FORMAT, p->name, what, error);
}

/*
 * Reads an entry to `out` (NULL: nowhere) through libzip, which checks the CRC at its end. Asks for
 * one byte more than its size, to detect an entry that is longer.
 */
static int read_through(const qsim_package *p, const qs_member *m, zip_file_t *f, uint8_t *out,
                        uint8_t *block, qsim_error *error) {
    qs_sha256 hash;
    char hex[65];
    uint64_t at = 0;
    qs_sha256_init(&hash);
    for (;;) {
        zip_int64_t n = zip_fread(f, block, BLOCK);
        if (n < 0)
            return fail_zip(p, m, zip_file_get_error(f), error);
        if (n == 0)
            break;
        if ((uint64_t)n > m->size - at)
            return qs_fail(error, QSIM_E_FORMAT, "%s: entry '%s' is larger than the directory says",
                           p->name, m->name);
        if (out)
            memcpy(out + at, block, (size_t)n);
        qs_sha256_add(&hash, block, (size_t)n);
        at += (uint64_t)n;
    }
    if (at != m->size)
        return qs_fail(error, QSIM_E_FORMAT, "%s: entry '%s' is smaller than the directory says",
                       p->name, m->name);
    qs_sha256_hex(&hash, hex);
    if (m->sha256[0] && strcmp(hex, m->sha256) != 0)
        return qs_fail(error, QSIM_E_FORMAT,
                       "%s: entry '%s' has another hash than " QS_SUMS " says", p->name, m->name);
    return QSIM_OK;
}

static int verify(qsim_package *p, size_t index, qsim_error *error) {
    qs_member *m = &p->members[index];
    zip_file_t *f = NULL;
    uint8_t *block = qs_alloc(p->ctx, BLOCK, 1);
    /* No entry has 4 GiB (zip_directory.c). */
    uint8_t *out = m->method && !m->inflated ? qs_alloc(p->ctx, (size_t)m->size, 1) : NULL;
    int code = QSIM_OK;
    if (!block || (m->method && !m->inflated && !out))
        code = qs_fail(error, QSIM_E_NOMEM, "%s: out of memory for entry '%s'", p->name, m->name);
    else if (!(f = zip_fopen_index(p->zip, index, 0)))
        code = fail_zip(p, m, zip_get_error(p->zip), error);
    else
        code = read_through(p, m, f, out, block, error);
    if (f)
        zip_fclose(f);
    qs_free(p->ctx, block);
    if (code) {
        qs_free(p->ctx, out);
        return code;
    }
    if (out)
        m->inflated = out;
    m->verified = true;
    return QSIM_OK;
}

int qsim_package_data(qsim_package *p, int32_t index, const void **data, size_t *size,
                      qsim_error *error) {
    qs_error_clear(error);
    if (!p || !data || !size || index < 0 || (size_t)index >= p->count)
        return qs_fail(error, QSIM_E_ARGUMENT, "qsim_package_data: bad argument");
    qs_member *m = &p->members[index];
    *data = NULL;
    *size = 0;
    int code = m->verified ? QSIM_OK : verify(p, (size_t)index, error);
    if (code)
        return code;
    *data = m->method ? m->inflated : m->packed;
    *size = (size_t)m->size;
    return QSIM_OK;
}

int32_t qsim_package_count(const qsim_package *p) {
    return p ? (int32_t)p->count : 0;
}

int qsim_package_get(const qsim_package *p, int32_t index, qsim_package_entry *entry) {
    if (!p || !entry || index < 0 || (size_t)index >= p->count)
        return QSIM_E_ARGUMENT;
    const qs_member *m = &p->members[index];
    qsim_package_entry own = {.name = m->name,
                              .sha256 = m->sha256,
                              .bytes = m->size,
                              .role = qs_role_of_name(m->name),
                              .stored = m->method == 0};
    return qs_give(entry, &own, sizeof(own));
}

int32_t qsim_package_find(const qsim_package *p, const char *name) {
    for (size_t i = 0; p && name && i < p->count; i++)
        if (strcmp(p->members[i].name, name) == 0)
            return (int32_t)i;
    return QSIM_E_NOT_FOUND;
}

int32_t qsim_package_find_role(const qsim_package *p, int32_t role) {
    if (p && role == QSIM_ROLE_MODEL)
        return (int32_t)p->model;
    for (size_t i = 0; p && i < p->count; i++)
        if (qs_role_of_name(p->members[i].name) == role)
            return (int32_t)i;
    return QSIM_E_NOT_FOUND;
}
