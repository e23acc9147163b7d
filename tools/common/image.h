/* SPDX-License-Identifier: MIT */
/*
 * Pictures as samples: JPEG, PNG and WebP where their libraries are there, BMP, PGM and PPM always.
 * They are u8, [1, height, width, channels].
 */
#ifndef TOOL_IMAGE_H
#define TOOL_IMAGE_H

#include "common/feed.h"

typedef struct image {
    unsigned char *pixels; /* rows of interleaved RGB or grey */
    int32_t width, height, channels;
} image;

/* By the name's end: .jpg, .jpeg, .png, .bmp, .webp, .pgm, .ppm, .pnm. */
bool image_is_name(const char *name);
/* Reads a picture as RGB, or as grey where `channels` is 1 (ITU-R 601-2 in PIL's integers). */
int image_read(const tool *t, const char *path, int32_t channels, image *out);
/* Memory for pixels of a size that came from a file; NULL where it is absurd. */
unsigned char *image_room(int64_t width, int64_t height, int32_t channels);

/* 1 to 8, how a camera says that its pixels are to be turned; 1: as they are. */
int image_jpeg_orientation(const void *jpeg, size_t size);
void image_orient(image *im, int orientation);

/* The formats: false and `why` (static text) where the bytes are no such picture. */
bool image_decode_png(const void *data, size_t size, image *out, const char **why);
bool image_decode_jpeg(const void *data, size_t size, image *out, const char **why);
bool image_decode_webp(const void *data, size_t size, image *out, const char **why);
bool image_decode_bmp(const void *data, size_t size, image *out, const char **why);
bool image_decode_pnm(const void *data, size_t size, image *out, const char **why);

/* Sizes as --preprocess wants them, for a model's width and height (-1: any). */
int image_fit(const tool *t, const char *path, const preprocess *how, const int32_t wanted[2],
              image *im);
/* PIL's bilinear: antialiased, rounded to 8 bits after each axis. False: no memory for the size. */
bool image_resize(image *im, int32_t width, int32_t height);

/*
 * A picture as a source for a slot [N,C,H,W] or [N,H,W,C]; `how` is what is to be done with its
 * pixels.
 */
int image_source(const tool *t, const char *path, const slot *s, const preprocess *given,
                 source *src, preprocess *how);

#endif
