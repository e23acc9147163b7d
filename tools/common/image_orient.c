/* SPDX-License-Identifier: MIT */
/*
 * Cameras store pixels in the sensor's order and the rotation in EXIF: tag 0x0112, 1 to 8, in the
 * first directory of a TIFF in segment APP1 of a JPEG (JEITA CP-3451, section 4.6.4).
 */
#include <stdlib.h>
#include <string.h>

#include "common/image.h"

typedef struct tiff {
    const unsigned char *data;
    size_t size;
    bool big; /* most significant byte first */
} tiff;

static uint32_t read_at(const tiff *t, size_t at, int bytes) {
    uint32_t v = 0;
    if (t->size < (size_t)bytes || at > t->size - (size_t)bytes)
        return 0;
    for (int i = 0; i < bytes; i++)
        v = v << 8 | t->data[at + (size_t)(t->big ? i : bytes - 1 - i)];
    return v;
}

static int tiff_orientation(const tiff *t) {
    const size_t directory = read_at(t, 4, 4), count = read_at(t, directory, 2);
    for (size_t i = 0; i < count; i++) {
        const size_t entry = directory + 2 + i * 12;
        if (read_at(t, entry, 2) == 0x0112)
            return (int)read_at(t, entry + 8, 2);
    }
    return 1;
}

int image_jpeg_orientation(const void *jpeg, size_t size) {
    const unsigned char *p = jpeg;
    for (size_t at = 2; at + 4 <= size && p[at] == 0xff && p[at + 1] != 0xda;) {
        const size_t length = (size_t)p[at + 2] << 8 | p[at + 3];
        if (p[at + 1] == 0xe1 && length >= 16 && at + 2 + length <= size &&
            memcmp(p + at + 4, "Exif\0", 6) == 0) {
            const tiff t = {p + at + 10, length - 8, p[at + 10] == 'M'};
            const int o = tiff_orientation(&t);
            return o >= 1 && o <= 8 ? o : 1;
        }
        at += 2 + length;
    }
    return 1;
}

/* 2 mirrors, 3 rotates by 180 degrees, 4 flips; 5 to 8 do so after exchanging rows and columns. */
void image_orient(image *im, int orientation) {
    const bool swap = orientation >= 5;
    const bool right = orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
    const bool down = orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
    const int32_t width = swap ? im->height : im->width, height = swap ? im->width : im->height;
    const size_t pixel = (size_t)im->channels;
    if (orientation < 2 || orientation > 8)
        return;
    unsigned char *to = tool_alloc((size_t)width * (size_t)height, pixel);
    for (int32_t y = 0; y < height; y++)
        for (int32_t x = 0; x < width; x++) {
            const int32_t a = right ? width - 1 - x : x, b = down ? height - 1 - y : y;
            const size_t from = swap ? (size_t)a * (size_t)im->width + (size_t)b
                                     : (size_t)b * (size_t)im->width + (size_t)a;
            memcpy(to + ((size_t)y * (size_t)width + (size_t)x) * pixel, im->pixels + from * pixel,
                   pixel);
        }
    free(im->pixels);
    im->pixels = to;
    im->width = width;
    im->height = height;
}
