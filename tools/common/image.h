/* SPDX-License-Identifier: MIT */
/*
 * Pictures as samples: PNG and JPEG where their libraries are there, PGM and PPM always. They are
 * u8, [1, height, width, channels], after --preprocess resize= and crop=.
 */
#ifndef TOOL_IMAGE_H
#define TOOL_IMAGE_H

#include "common/feed.h"

typedef struct image {
    unsigned char *pixels; /* rows of interleaved RGB or grey */
    int32_t width, height, channels;
} image;

/* By the name's end: .png, .jpg, .jpeg, .pgm, .ppm. */
bool image_is_name(const char *name);
/* Reads a picture as RGB (grey, with one channel, is 0.299 R + 0.587 G + 0.114 B). */
int image_read(const tool *t, const char *path, int32_t channels, image *out);
/* The other formats: false and `why` (static text) where the bytes are no such picture. */
bool image_decode_png(const void *data, size_t size, image *out, const char **why);
bool image_decode_jpeg(const void *data, size_t size, image *out, const char **why);
/* Memory for pixels of a size that came from a file; NULL where it is absurd. */
unsigned char *image_room(int64_t width, int64_t height, int32_t channels);
/* resize=, then crop= from the middle. */
int image_fit(const tool *t, const char *path, const preprocess *how, image *im);

/*
 * A picture as a source for a slot [N,C,H,W] or [N,H,W,C]; `how` is what is to be done with it:
 * the pixels 0..1 where `given` says nothing else.
 */
int image_source(const tool *t, const char *path, const slot *s, const preprocess *given,
                 source *src, preprocess *how);

/*
 * Labels of files by their names, from lines "NAME NUMBER" (or with a comma or tab) of the file
 * `labels`, or of labels.txt in the folder where there is one; *out stays NULL where there is none.
 */
int image_labels(const tool *t, const char *folder, const char *labels, char *const *files,
                 size_t count, size_t inputs, int64_t **out);

#endif
