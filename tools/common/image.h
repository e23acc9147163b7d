/* SPDX-License-Identifier: MIT */
/*
 * Pictures as samples: JPEG, PNG and WebP if their libraries are there, BMP, PGM and PPM always.
 * They are u8, [1, height, width, channels].
 */
#ifndef TOOL_IMAGE_H
#define TOOL_IMAGE_H

#include "common/feed.h"

typedef struct image {
    unsigned char *pixels; /* rows of interleaved RGB or grey */
    int32_t width, height, channels;
} image;

/* Is this a picture's name: .jpg, .jpeg, .jfif, .png, .bmp, .webp, .pgm, .ppm, .pnm? */
bool image_is_name(const char *name);
/* Reads a picture as RGB, or as grey where `channels` is 1 (ITU-R 601-2 in PIL's integers). */
int image_read(const tool *t, const char *path, int32_t channels, image *out);
/* Allocates pixels for sizes from a file; NULL for absurd sizes. */
unsigned char *image_alloc(int64_t width, int64_t height, int32_t channels);

/* EXIF orientation, 1 to 8; 1: pixels are upright. */
int image_jpeg_orientation(const void *jpeg, size_t size);
void image_orient(image *im, int orientation);

/* Decoders: false and `why` (static text) if the bytes are not in the format. */
bool image_decode_png(const void *data, size_t size, image *out, const char **why);
bool image_decode_jpeg(const void *data, size_t size, image *out, const char **why);
bool image_decode_webp(const void *data, size_t size, image *out, const char **why);
bool image_decode_bmp(const void *data, size_t size, image *out, const char **why);
bool image_decode_pnm(const void *data, size_t size, image *out, const char **why);

/* Resizes and crops as --preprocess says, for a model's width and height (-1: any). */
int image_fit(const tool *t, const char *path, const preprocess *how, const int32_t wanted[2],
              image *im);
/* PIL's bilinear resize: antialiased, rounded to 8 bits after each axis. False: out of memory. */
bool image_resize(image *im, int32_t width, int32_t height);

/* Reads a picture as a source for a slot [N,C,H,W] or [N,H,W,C]; `how`: what is left to do. */
int image_source(const tool *t, const char *path, const slot *s, const preprocess *given,
                 source *src, preprocess *how);

#endif
