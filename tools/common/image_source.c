/* SPDX-License-Identifier: MIT */
/* Pictures as inputs: the shape and channel order that a model expects. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/feed.h"
#include "common/image.h"

/* The slot's number of channels, 1 or 3, and whether they are its last axis; 0: none. */
static int32_t channels_of(const slot *s, bool *last) {
    int64_t front = s->rank == 4 ? s->dims[1] : 0, back = s->rank == 4 ? s->dims[3] : 0;
    *last = false;
    if (front == 1 || front == 3)
        return (int32_t)front;
    *last = back == 1 || back == 3;
    return *last ? (int32_t)back : 0;
}

/* Converts interleaved channels to planes. */
static void make_planes(image *im) {
    size_t n = (size_t)im->width * (size_t)im->height, channels = (size_t)im->channels;
    unsigned char *to = tool_alloc(n * channels, 1);
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < channels; c++)
            to[c * n + i] = im->pixels[i * channels + c];
    free(im->pixels);
    im->pixels = to;
}

static void swap_red_and_blue(image *im) {
    size_t n = (size_t)im->width * (size_t)im->height;
    for (unsigned char *p = im->pixels; im->channels == 3 && n-- > 0; p += 3) {
        unsigned char red = p[0];
        p[0] = p[2];
        p[2] = red;
    }
}

/* Warns if a mean in units of 0..255 is given without a scale: the range of values is a guess. */
static void warn_of_mean(const tool *t, const preprocess *given) {
    bool pixels = false;
    for (int i = 0; i < given->mean_count; i++)
        pixels = pixels || given->mean[i] > 1;
    if (pixels && !given->scaled && given->std_count == 0 && !t->state->mean_warned)
        tool_warn(t,
                  "--preprocess: mean=%g is one of pixels 0..255, and pictures become 0..1: it "
                  "is divided by 255, too (scale=1 keeps 0..255)",
                  given->mean[0]);
    t->state->mean_warned = true;
}

/* Reads pixels in the model's order of channels and in the size of --preprocess. */
static int read_pixels(const tool *t, const char *path, const slot *s, const preprocess *given,
                       int32_t channels, bool last, image *im) {
    const int64_t *dims = s->dims + (last ? 1 : 2);
    const int32_t wanted[2] = {dims[1] > 16384 ? 16384 : (int32_t)dims[1],
                               dims[0] > 16384 ? 16384 : (int32_t)dims[0]};
    int code = image_read(t, path, channels, im);
    if (code == EXIT_OK && given->bgr)
        swap_red_and_blue(im);
    return code ? code : image_fit(t, path, given, wanted, im);
}

int image_source(const tool *t, const char *path, const slot *s, const preprocess *given,
                 source *src, preprocess *how) {
    image im = {0};
    bool last;
    int32_t channels = channels_of(s, &last);
    memset(src, 0, sizeof(*src));
    if (!channels)
        return tool_fail(t, QSIM_E_SHAPE,
                         "%s: a picture, but input '%.100s' has no axis of 1 or 3 channels", path,
                         s->name);
    int code = read_pixels(t, path, s, given, channels, last, &im);
    if (code) {
        free(im.pixels);
        return code;
    }
    if (!last)
        make_planes(&im);
    *how = *given;
    if (is_float(s->dtype) || (s->scale > 0 && given->given)) /* else the pixels themselves */
        preprocess_of_pixels(given, how);
    how->channels_last = false;
    how->channels_at_end = last;
    warn_of_mean(t, given);
    size_t bytes = (size_t)im.width * (size_t)im.height * (size_t)channels;
    src->kind = SOURCE_PROTO; /* needs no decoding */
    src->path = path;
    src->picture = true;
    src->elements = im.pixels;
    src->array = (qsim_array){.struct_size = sizeof(src->array),
                              .dtype = QSIM_UINT8,
                              .rank = 4,
                              .dims = {1, im.height, im.width, channels},
                              .elements = bytes,
                              .bytes = bytes};
    if (!last) {
        const int64_t planes[] = {1, channels, im.height, im.width};
        memcpy(src->array.dims, planes, sizeof(planes));
    }
    return EXIT_OK;
}
