/* SPDX-License-Identifier: MIT */
/* Pictures decoded without a library: BMP, PGM and PPM. */
#include <stdlib.h>
#include <string.h>

#include "common/image.h"

static bool refuse(const char **why, const char *what) {
    *why = what;
    return false;
}

/* ---- PGM, PPM ---- */

/* The next number of a header, after white space and comments; 0: none. */
static int64_t pnm_number(const unsigned char *p, size_t size, size_t *at) {
    int64_t n = 0;
    while (*at < size && (p[*at] <= ' ' || p[*at] == '#')) {
        if (p[*at] == '#')
            while (*at < size && p[*at] != '\n')
                ++*at;
        else
            ++*at;
    }
    for (; *at < size && p[*at] >= '0' && p[*at] <= '9' && n < 1000000; ++*at)
        n = n * 10 + (p[*at] - '0');
    return n;
}

bool image_decode_pnm(const void *data, size_t size, image *out, const char **why) {
    const unsigned char *p = data;
    size_t at = 2;
    if (size < 3 || p[0] != 'P' || (p[1] != '5' && p[1] != '6'))
        return refuse(why, "is not a binary PGM or PPM");
    int32_t channels = p[1] == '5' ? 1 : 3;
    int64_t width = pnm_number(p, size, &at), height = pnm_number(p, size, &at);
    int64_t most = pnm_number(p, size, &at);
    if (most != 255 || at >= size || width < 1 || height < 1)
        return refuse(why, "is not a binary PGM or PPM of 8 bits");
    at++; /* one white-space byte */
    if ((int64_t)((size - at) / (size_t)channels) / width < height)
        return refuse(why, "is shorter than its size says");
    out->pixels = image_alloc(width, height, channels);
    if (!out->pixels)
        return refuse(why, "is larger than a picture may be");
    memcpy(out->pixels, p + at, (size_t)(width * height * channels));
    *out = (image){out->pixels, (int32_t)width, (int32_t)height, channels};
    return true;
}

/* ---- BMP ---- */

typedef struct bmp {
    const unsigned char *palette, *pixels;
    size_t colours, entry; /* palette: number of colours, bytes of each */
    int32_t width, height, bits;
    int32_t shift[3]; /* bit positions of red, green and blue in 32 bits */
    bool down;        /* rows are stored from top to bottom */
} bmp;

static uint32_t le(const unsigned char *p, int bytes) {
    uint32_t n = 0;
    while (bytes-- > 0)
        n = n << 8 | p[bytes];
    return n;
}

/* Reads masks of whole bytes, which all common programs write. */
static bool read_masks(const unsigned char *p, bmp *b) {
    for (int i = 0; i < 3; i++) {
        uint32_t mask = le(p + 4 * i, 4);
        b->shift[i] = -1;
        for (int shift = 0; shift < 32; shift += 8)
            if (mask == (uint32_t)0xff << shift)
                b->shift[i] = shift;
        if (b->shift[i] < 0)
            return false;
    }
    return true;
}

/* Reads BITMAPCOREHEADER, or BITMAPINFOHEADER and its successors. */
static bool read_header(const unsigned char *p, size_t size, bmp *b, const char **why) {
    uint32_t header = size >= 26 ? le(p + 14, 4) : 0, way = 0;
    bool core = header == 12;
    if (size < 26 || p[0] != 'B' || p[1] != 'M' || (!core && (header < 40 || header > 1024)) ||
        size < 14 + (size_t)header)
        return refuse(why, "is not a BMP");
    int64_t width = core ? (int64_t)le(p + 18, 2) : (int32_t)le(p + 18, 4);
    int64_t height = core ? (int64_t)le(p + 20, 2) : (int32_t)le(p + 22, 4);
    b->bits = (int32_t)le(p + (core ? 24 : 28), 2);
    b->down = height < 0;
    height = b->down ? -height : height;
    if (width < 1 || height < 1 || width > 1 << 20 || height > 1 << 20)
        return refuse(why, "is a BMP of an impossible size");
    b->width = (int32_t)width;
    b->height = (int32_t)height;
    way = core ? 0 : le(p + 30, 4);
    if (way == 1 || way == 2)
        return refuse(why, "is a BMP with run lengths, which qsim does not read: save it without");
    if (b->bits != 1 && b->bits != 4 && b->bits != 8 && b->bits != 24 && b->bits != 32)
        return refuse(why, "is a BMP of 16 bits a pixel or another odd depth: save it with 24");
    b->shift[0] = 16;
    b->shift[1] = 8;
    b->shift[2] = 0;
    if (way != 0 &&
        !((way == 3 || way == 6) && b->bits == 32 && size >= 66 && read_masks(p + 54, b)))
        return refuse(why, "is a BMP of a form that qsim does not read: save it with 24 bits");
    b->entry = core ? 3 : 4;
    b->colours = core || b->bits > 8 ? 0 : le(p + 46, 4);
    if (b->bits <= 8 && b->colours == 0)
        b->colours = (size_t)1 << b->bits;
    b->palette = p + 14 + header;
    return b->bits > 8 || (b->colours <= 256 && b->colours * b->entry <= size - 14 - header) ||
           refuse(why, "is a BMP whose palette is cut");
}

/* Reads one row as RGB; false: a pixel's colour is not in the palette. */
static bool read_row(const bmp *b, const unsigned char *row, unsigned char *rgb) {
    for (int32_t x = 0; x < b->width; x++, rgb += 3) {
        if (b->bits <= 8) {
            int32_t per = 8 / b->bits, shift = (per - 1 - x % per) * b->bits;
            size_t i = (size_t)(row[x / per] >> shift & ((1 << b->bits) - 1));
            if (i >= b->colours)
                return false;
            for (size_t c = 0; c < 3; c++)
                rgb[c] = b->palette[i * b->entry + 2 - c];
        } else {
            uint32_t pixel = le(row + x * (b->bits / 8), b->bits / 8);
            for (size_t c = 0; c < 3; c++)
                rgb[c] = (unsigned char)(pixel >> b->shift[c]);
        }
    }
    return true;
}

bool image_decode_bmp(const void *data, size_t size, image *out, const char **why) {
    const unsigned char *p = data;
    bmp b = {0};
    if (!read_header(p, size, &b, why))
        return false;
    size_t stride = ((size_t)b.width * (size_t)b.bits + 31) / 32 * 4, at = le(p + 10, 4);
    size_t last = ((size_t)b.width * (size_t)b.bits + 7) / 8; /* the last row may end early */
    if (at > size || (size - at) / stride + ((size - at) % stride >= last) < (size_t)b.height)
        return refuse(why, "is shorter than its size says");
    out->pixels = image_alloc(b.width, b.height, 3);
    if (!out->pixels)
        return refuse(why, "is larger than a picture may be");
    for (int32_t y = 0; y < b.height; y++) {
        int32_t row = b.down ? y : b.height - 1 - y;
        if (!read_row(&b, p + at + (size_t)row * stride,
                      out->pixels + (size_t)y * (size_t)b.width * 3))
            return refuse(why, "is a BMP with a colour that is not in its palette");
    }
    *out = (image){out->pixels, b.width, b.height, 3};
    return true;
}
