/* SPDX-License-Identifier: MIT */
/*
 * Parses a zip's directory. libzip accepts archives that other programs read differently: names
 * with a NUL, a second directory in the comment, entries that overlap. Here an archive has one
 * interpretation: the directory ends where the archive does, and entries are in its order, each
 * once.
 */
#include "base/ctx.h"
#include "package/archive.h"

#include <stdio.h>

#define END_BYTES   22u
#define ENTRY_BYTES 46u
#define LOCAL_BYTES 30u

#define FLAG_ENCRYPTED  0x0001u
#define FLAG_DESCRIPTOR 0x0008u /* sizes follow the data, as in streams */
#define FLAG_PATCHED    0x0020u
#define FLAG_STRONG     0x0040u
#define FLAG_MASKED     0x2000u

#define MODE_TYPE    0170000u
#define MODE_REGULAR 0100000u

/* Fields that are both in a local header and in the directory. */
typedef struct shared {
    uint16_t flags, method, name, extra;
    uint32_t crc, packed, size;
} shared;

static uint16_t get16(const uint8_t *p) {
    return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t get32(const uint8_t *p) {
    return (uint32_t)get16(p) | (uint32_t)get16(p + 2) << 16;
}

static shared get_shared(const uint8_t *p) {
    return (shared){get16(p),     get16(p + 2),  get16(p + 20), get16(p + 22),
                    get32(p + 8), get32(p + 12), get32(p + 16)};
}

static int damaged(const qsim_package *p, const char *what, qsim_error *error) {
    return qs_fail(error, QSIM_E_FORMAT, "%s: damaged package: %s", p->name, what);
}

static int bad_entry(const qsim_package *p, int code, const char *name, const char *what,
                     qsim_error *error) {
    return qs_fail(error, code, "%s: entry '%s' %s", p->name, name, what);
}

/* Checks an entry of the directory. */
static int check_entry(const qsim_package *p, const uint8_t *e, const shared *s, const char *name,
                       qsim_error *error) {
    const char *fault = qs_entry_name_fault(name);
    char method[64];
    if (strlen(name) != s->name)
        fault = "has a NUL in its name";
    if (fault)
        return bad_entry(p, QSIM_E_VALUE, name, fault, error);
    uint32_t mode = get32(e + 38) >> 16;
    if (e[5] == 3 && (mode & MODE_TYPE) != 0 && (mode & MODE_TYPE) != MODE_REGULAR)
        return bad_entry(p, QSIM_E_VALUE, name,
                         "is not a regular file: a link, a device or the like", error);
    if (s->flags & (FLAG_ENCRYPTED | FLAG_STRONG | FLAG_MASKED))
        return bad_entry(p, QSIM_E_UNSUPPORTED, name, "is encrypted", error);
    if (s->flags & FLAG_PATCHED)
        return bad_entry(p, QSIM_E_UNSUPPORTED, name, "is patch data", error);
    if (s->method != 0 && s->method != 8) {
        snprintf(method, sizeof(method), "has compression method %d; 0 and 8 are read", s->method);
        return bad_entry(p, QSIM_E_UNSUPPORTED, name, method, error);
    }
    if (s->packed == UINT32_MAX || s->size == UINT32_MAX || get32(e + 42) == UINT32_MAX)
        return bad_entry(p, QSIM_E_LIMIT, name, "has zip64 sizes; packages stay below 4 GiB",
                         error);
    if (get16(e + 34) != 0)
        return bad_entry(p, QSIM_E_UNSUPPORTED, name, "lies on another disk", error);
    if (s->method == 0 ? s->packed != s->size : s->size / 1032u > s->packed)
        return bad_entry(p, QSIM_E_FORMAT, name, "cannot have the size that the directory says",
                         error);
    return QSIM_OK;
}

/* Checks that the local header agrees with the directory; *at: the end of the entry. */
static int check_local(const qsim_package *p, size_t offset, size_t limit, const shared *s,
                       qs_member *m, size_t *at, qsim_error *error) {
    if (offset < *at)
        return bad_entry(p, QSIM_E_FORMAT, m->name, "overlaps the one before it", error);
    if (offset > limit || limit - offset < LOCAL_BYTES ||
        memcmp(p->data + offset, "PK\3\4", 4) != 0)
        return bad_entry(p, QSIM_E_FORMAT, m->name, "is not where the directory says", error);
    shared l = get_shared(p->data + offset + 6);
    size_t head = LOCAL_BYTES + (size_t)l.name + l.extra;
    if (head > limit - offset || s->packed > limit - offset - head)
        return bad_entry(p, QSIM_E_FORMAT, m->name, "is longer than the archive", error);
    if (l.name != s->name || memcmp(p->data + offset + LOCAL_BYTES, m->name, s->name) != 0)
        return bad_entry(p, QSIM_E_FORMAT, m->name, "has another name in its local header", error);
    bool later = (l.flags & FLAG_DESCRIPTOR) && l.crc == 0 && l.packed == 0 && l.size == 0;
    if (l.flags != s->flags || l.method != s->method ||
        (!later && (l.crc != s->crc || l.packed != s->packed || l.size != s->size)))
        return bad_entry(p, QSIM_E_FORMAT, m->name,
                         "has another size, checksum or method in its local header", error);
    m->packed = p->data + offset + head;
    m->size = s->size;
    m->method = s->method;
    *at = offset + head + s->packed;
    return QSIM_OK;
}

static int check_names(const qsim_package *p, qsim_error *error) {
    for (size_t i = 0; i < p->count; i++)
        for (size_t k = 0; k < i; k++)
            if (qs_entry_names_clash(p->members[i].name, p->members[k].name))
                return qs_fail(error, QSIM_E_FORMAT,
                               "%s: entries '%s' and '%s' would be one file on some systems",
                               p->name, p->members[k].name, p->members[i].name);
    return QSIM_OK;
}

static int check_total(const qsim_package *p, qsim_error *error) {
    const uint64_t ratio = p->ctx->limits.ratio;
    uint64_t inflated = 0, limit = UINT64_MAX;
    if (ratio < UINT32_MAX) /* a package is below 4 GiB */
        limit = ((uint64_t)64 << 20) + ratio * (uint64_t)p->size;
    for (size_t i = 0; i < p->count; i++)
        inflated += p->members[i].method ? p->members[i].size : 0;
    if (inflated > limit)
        return qs_fail(
            error, QSIM_E_LIMIT,
            "%s: %zu bytes would inflate to %llu, more than 64 MiB + %llu times as much: "
            "the limit 'ratio'",
            p->name, p->size, (unsigned long long)inflated, (unsigned long long)ratio);
    return QSIM_OK;
}

/* Reads the end record. The directory is from *from to before *to. */
static int find_directory(qsim_package *p, size_t *from, size_t *to, qsim_error *error) {
    if (!qsim_package_sniff(p->data, p->size))
        return qs_fail(error, QSIM_E_FORMAT,
                       "%s: not a package: it does not start as a zip archive", p->name);
    if (p->size < END_BYTES)
        return damaged(p, "it is too short for a zip archive", error);
    const uint8_t *end = p->data + p->size - END_BYTES;
    if (memcmp(end, "PK\5\6", 4) != 0 || get16(end + 20) != 0)
        return damaged(p, "its end is cut off or followed by something else", error);
    size_t size = get32(end + 12), offset = get32(end + 16);
    if (get16(end + 4) || get16(end + 6) || get16(end + 8) != get16(end + 10))
        return damaged(p, "it is one part of several", error);
    if (p->size > UINT32_MAX || offset == UINT32_MAX)
        return qs_fail(error, QSIM_E_LIMIT, "%s: zip64; packages stay below 4 GiB", p->name);
    *to = p->size - END_BYTES;
    if (offset > *to || size != *to - offset)
        return damaged(p, "its directory is not where it should be", error);
    *from = offset;
    p->count = get16(end + 10);
    if (p->count == 0)
        return qs_fail(error, QSIM_E_FORMAT, "%s: the archive is empty", p->name);
    return QS_LIMIT(p->ctx, entries, p->count, error, p->name);
}

int qs_zip_directory(qsim_package *p, qsim_error *error) {
    size_t from = 0, to = 0, local = 0;
    int code = find_directory(p, &from, &to, error);
    if (code)
        return code;
    const size_t limit = from;
    p->members = qs_arena_alloc(&p->arena, p->count, sizeof(*p->members));
    if (!p->members)
        return qs_fail(error, QSIM_E_NOMEM, "%s: out of memory", p->name);
    for (size_t i = 0; i < p->count; i++) {
        const uint8_t *e = p->data + from;
        if (to - from < ENTRY_BYTES || memcmp(e, "PK\1\2", 4) != 0)
            return damaged(p, "its directory ends early", error);
        shared s = get_shared(e + 8);
        size_t length = ENTRY_BYTES + (size_t)s.name + s.extra + get16(e + 32);
        if (to - from < length)
            return damaged(p, "its directory ends early", error);
        char *name = qs_arena_string(&p->arena, (const char *)e + ENTRY_BYTES, s.name);
        if (!name)
            return qs_fail(error, QSIM_E_NOMEM, "%s: out of memory", p->name);
        p->members[i].name = name;
        code = check_entry(p, e, &s, name, error);
        if (!code)
            code = check_local(p, get32(e + 42), limit, &s, &p->members[i], &local, error);
        if (code)
            return code;
        from += length;
    }
    if (from != to)
        return damaged(p, "its directory has more than its entries", error);
    code = check_names(p, error);
    return code ? code : check_total(p, error);
}
