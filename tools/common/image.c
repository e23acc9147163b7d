/* SPDX-License-Identifier: MIT */
#include "common/image.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/other_formats.h"

bool image_is_name(const char *name) {
    static const char *const ends[] = {".jpg",  ".jpeg", ".jfif", ".png", ".bmp",
                                       ".webp", ".pgm",  ".ppm",  ".pnm"};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < sizeof(ends) / sizeof(*ends); i++)
        if (strcasecmp(dot, ends[i]) == 0)
            return true;
    return false;
}

unsigned char *image_alloc(int64_t width, int64_t height, int32_t channels) {
    const int64_t most = (int64_t)1 << 28;
    if (width < 1 || height < 1 || width > most || height > most / width)
        return NULL;
    return tool_alloc((size_t)(width * height * channels), 1);
}

static void set_channels(image *im, int32_t channels) {
    size_t n = (size_t)im->width * (size_t)im->height;
    if (im->channels == channels)
        return;
    unsigned char *from = im->pixels, *to = tool_alloc(n * (size_t)channels, 1);
    for (size_t i = 0; i < n; i++) {
        const unsigned char *p = from + i * (size_t)im->channels;
        if (channels == 1)
            to[i] = (unsigned char)((19595 * p[0] + 38470 * p[1] + 7471 * p[2] + 0x8000) >> 16);
        else
            memset(to + i * 3, p[0], 3);
    }
    free(from);
    im->pixels = to;
    im->channels = channels;
}

/* File formats, recognized by their first bytes. */
static const struct {
    const char *begin;
    size_t size;
    bool (*decode)(const void *data, size_t size, image *out, const char **why);
} formats[] = {
    {"\211PNG\r\n\032\n", 8, image_decode_png},
    {"\377\330", 2, image_decode_jpeg},
    {"RIFF", 4, image_decode_webp},
    {"BM", 2, image_decode_bmp},
    {"P5", 2, image_decode_pnm},
    {"P6", 2, image_decode_pnm},
};

int image_read(const tool *t, const char *path, int32_t channels, image *out) {
    void *data;
    size_t size;
    const char *why = "is not a picture";
    bool good = false;
    memset(out, 0, sizeof(*out));
    int code = tool_read_all(t, path, &data, &size);
    if (code)
        return code;
    for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++)
        if (size >= formats[i].size && memcmp(data, formats[i].begin, formats[i].size) == 0) {
            good = formats[i].decode(data, size, out, &why);
            break;
        }
    const char *other = other_format(data, size);
    free(data);
    if (!good) {
        free(out->pixels);
        out->pixels = NULL;
        if (other)
            return tool_fail(t, QSIM_E_FORMAT, "%s: is %s%s", path, other,
                             size > 0 ? ", which qsim does not read" : "");
        return tool_fail(t, QSIM_E_FORMAT, "%s: %s", path, why);
    }
    set_channels(out, channels);
    return EXIT_OK;
}
