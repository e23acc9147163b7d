/* SPDX-License-Identifier: MIT */
#include "common/gunzip.h"

#include <stdlib.h>

#ifdef TOOL_ZLIB
#include <zlib.h>

#define LIMIT ((size_t)1 << 32)

/* Size of the IDX file at `p` by its header; LIMIT if it is no IDX file. */
static size_t idx_size(const unsigned char *p, size_t have) {
    static const size_t element[] = {1, 1, 0, 2, 4, 4, 8};
    if (have < 4 || p[0] || p[1] || p[2] < 8 || p[2] > 14 || have < 4 + 4 * (size_t)p[3])
        return LIMIT;
    size_t n = element[p[2] - 8];
    for (size_t i = 0; i < p[3]; i++) {
        const unsigned char *d = p + 4 + 4 * i;
        size_t dim = (size_t)d[0] << 24 | (size_t)d[1] << 16 | (size_t)d[2] << 8 | d[3];
        if (dim && n > LIMIT / dim)
            return LIMIT;
        n *= dim;
    }
    return n + 4 + 4 * (size_t)p[3];
}

/* Inflates to the end, or until there is more than the IDX header says. */
static int inflate_all(z_stream *z, text *out) {
    unsigned char block[65536];
    size_t limit = LIMIT;
    int code = Z_OK;
    while (code == Z_OK && out->size <= limit) {
        z->next_out = block;
        z->avail_out = sizeof(block);
        code = inflate(z, Z_NO_FLUSH);
        size_t n = sizeof(block) - z->avail_out;
        if (out->size == 0)
            limit = idx_size(block, n);
        text_add(out, (const char *)block, n);
        if (code == Z_BUF_ERROR)
            return Z_BUF_ERROR;
    }
    return out->size > limit || code == Z_STREAM_END ? Z_OK : code;
}

int tool_gunzip(const tool *t, const char *path, const void *data, size_t size, void **out,
                size_t *out_size) {
    z_stream z = {0};
    text all = {0};
    if (size > UINT32_MAX)
        return tool_fail(t, QSIM_E_LIMIT, "%s: a gzip file over 4 GB", path);
    z.next_in = (unsigned char *)(uintptr_t)data;
    z.avail_in = (unsigned)size;
    if (inflateInit2(&z, 15 + 16) != Z_OK)
        return tool_fail(t, QSIM_E_NOMEM, "%s: out of memory", path);
    int code = inflate_all(&z, &all);
    inflateEnd(&z);
    if (code != Z_OK || all.size > LIMIT) {
        text_free(&all);
        return code == Z_OK
                   ? tool_fail(t, QSIM_E_LIMIT, "%s: inflates to more than 4 GB", path)
                   : tool_fail(t, QSIM_E_FORMAT, "%s: damaged or truncated gzip stream", path);
    }
    *out = all.data ? all.data : tool_alloc(1, 1);
    *out_size = all.size;
    return EXIT_OK;
}

#else

int tool_gunzip(const tool *t, const char *path, const void *data, size_t size, void **out,
                size_t *out_size) {
    (void)data, (void)size, (void)out, (void)out_size;
    return tool_fail(
        t, QSIM_E_UNSUPPORTED,
        "%s: this qsim was built without zlib (Debian: zlib1g-dev) and cannot read .gz: gunzip the file first",
        path);
}

#endif
