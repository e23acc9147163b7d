/* SPDX-License-Identifier: MIT */
#include "common/image.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool image_is_name(const char *name) {
    static const char *const ends[] = {".png", ".jpg", ".jpeg", ".pgm", ".ppm"};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < sizeof(ends) / sizeof(*ends); i++)
        if (strcasecmp(dot, ends[i]) == 0)
            return true;
    return false;
}

unsigned char *image_room(int64_t width, int64_t height, int32_t channels) {
    const int64_t most = (int64_t)1 << 28;
    if (width < 1 || height < 1 || width > most || height > most / width)
        return NULL;
    return tool_alloc((size_t)(width * height * channels), 1);
}

/* ---- PGM, PPM ---- */

/* The next number of a header, after white space and comments; -1: none. */
static int64_t pnm_number(const unsigned char *p, size_t size, size_t *at) {
    int64_t n = 0;
    while (*at < size && (p[*at] <= ' ' || p[*at] == '#')) {
        if (p[*at] == '#')
            while (*at < size && p[*at] != '\n')
                ++*at;
        else
            ++*at;
    }
    size_t first = *at;
    for (; *at < size && p[*at] >= '0' && p[*at] <= '9' && n < 1000000; ++*at)
        n = n * 10 + (p[*at] - '0');
    return *at > first ? n : -1;
}

static bool decode_pnm(const unsigned char *p, size_t size, image *out, const char **why) {
    size_t at = 2;
    *why = "is not a binary PGM or PPM of 8 bits";
    int32_t channels = p[1] == '5' ? 1 : 3;
    int64_t width = pnm_number(p, size, &at), height = pnm_number(p, size, &at);
    int64_t most = pnm_number(p, size, &at);
    if (most != 255 || at >= size || !(out->pixels = image_room(width, height, channels)))
        return false;
    size_t bytes = (size_t)(width * height * channels);
    at++; /* one white space */
    *why = "is shorter than its size says";
    if (size - at < bytes)
        return false;
    memcpy(out->pixels, p + at, bytes);
    *out = (image){out->pixels, (int32_t)width, (int32_t)height, channels};
    return true;
}

/* ---- any ---- */

static void set_channels(image *im, int32_t channels) {
    size_t n = (size_t)im->width * (size_t)im->height;
    if (im->channels == channels)
        return;
    unsigned char *from = im->pixels, *to = tool_alloc(n * (size_t)channels, 1);
    for (size_t i = 0; i < n; i++) {
        const unsigned char *p = from + i * (size_t)im->channels;
        if (channels == 1)
            to[i] = (unsigned char)((299 * p[0] + 587 * p[1] + 114 * p[2] + 500) / 1000);
        else
            memset(to + i * 3, p[0], 3);
    }
    free(from);
    im->pixels = to;
    im->channels = channels;
}

int image_read(const tool *t, const char *path, int32_t channels, image *out) {
    void *data;
    size_t size;
    const char *why = "is not a picture";
    bool good = false;
    memset(out, 0, sizeof(*out));
    int code = tool_read_all(t, path, &data, &size);
    if (code)
        return code;
    const unsigned char *p = data;
    if (size >= 8 && memcmp(p, "\211PNG\r\n\032\n", 8) == 0)
        good = image_decode_png(p, size, out, &why);
    else if (size >= 3 && p[0] == 0xff && p[1] == 0xd8)
        good = image_decode_jpeg(p, size, out, &why);
    else if (size >= 3 && p[0] == 'P' && (p[1] == '5' || p[1] == '6'))
        good = decode_pnm(p, size, out, &why);
    free(data);
    if (!good) {
        free(out->pixels);
        out->pixels = NULL;
        return tool_fail(t, QSIM_E_FORMAT, "%s: %s", path, why);
    }
    set_channels(out, channels);
    return EXIT_OK;
}

/* ---- size ---- */

/*
 * One axis of `lines` lines, `from` to `to` places of `inner` bytes each: a triangle over the two
 * nearest pixels, or over all that a smaller picture's pixel covers.
 */
static void resample(const unsigned char *in, size_t lines, int32_t from, int32_t to, size_t inner,
                     unsigned char *out) {
    double scale = (double)from / to, reach = scale > 1 ? scale : 1;
    for (int32_t x = 0; x < to; x++) {
        double centre = (x + 0.5) * scale;
        int32_t first = (int32_t)(centre - reach), last = (int32_t)ceil(centre + reach);
        first = first < 0 ? 0 : first;
        last = last > from ? from : last;
        for (size_t line = 0; line < lines; line++)
            for (size_t c = 0; c < inner; c++) {
                double sum = 0, weights = 0;
                for (int32_t k = first; k < last; k++) {
                    double w = 1 - fabs(k + 0.5 - centre) / reach;
                    if (w <= 0)
                        continue;
                    sum += w * in[(line * (size_t)from + (size_t)k) * inner + c];
                    weights += w;
                }
                out[(line * (size_t)to + (size_t)x) * inner + c] =
                    (unsigned char)(sum / weights + 0.5);
            }
    }
}

static bool resize(image *im, int32_t width, int32_t height) {
    size_t channels = (size_t)im->channels;
    unsigned char *wide = image_room(width, im->height, im->channels);
    unsigned char *both = image_room(width, height, im->channels);
    if (wide && both) {
        resample(im->pixels, (size_t)im->height, im->width, width, channels, wide);
        resample(wide, 1, im->height, height, (size_t)width * channels, both);
        free(im->pixels);
        *im = (image){both, width, height, im->channels};
        both = NULL;
    }
    bool good = wide && !both;
    free(wide);
    free(both);
    return good;
}

static void crop(image *im, int32_t width, int32_t height) {
    size_t row = (size_t)width * (size_t)im->channels;
    size_t left = (size_t)(im->width - width) / 2, top = (size_t)(im->height - height) / 2;
    for (size_t y = 0; y < (size_t)height; y++)
        memmove(im->pixels + y * row,
                im->pixels + ((top + y) * (size_t)im->width + left) * (size_t)im->channels, row);
    im->width = width;
    im->height = height;
}

int image_fit(const tool *t, const char *path, const preprocess *how, image *im) {
    int32_t width = how->resize[0], height = how->resize[1];
    if (width && !height) { /* the shorter side; the other one follows */
        int64_t side = width, w = im->width, h = im->height;
        width = (int32_t)(w <= h ? side : (w * side + h / 2) / h);
        height = (int32_t)(w <= h ? (h * side + w / 2) / w : side);
    }
    if (width && !resize(im, width, height))
        return tool_fail(t, QSIM_E_LIMIT, "%s: cannot be made %d x %d", path, width, height);
    if (!how->crop[0])
        return EXIT_OK;
    if (how->crop[0] > im->width || how->crop[1] > im->height)
        return tool_fail(t, QSIM_E_SHAPE, "%s: %d x %d, too small for crop=%d:%d", path, im->width,
                         im->height, how->crop[0], how->crop[1]);
    crop(im, how->crop[0], how->crop[1]);
    return EXIT_OK;
}
