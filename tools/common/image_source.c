/* SPDX-License-Identifier: MIT */
/* Pictures as a data set: which shape a model wants them in, and their labels. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/image.h"

/* 1 or 3 channels, and on which axis the slot has them; 0: nowhere. */
static int32_t channels_of(const slot *s, bool *last) {
    int64_t front = s->rank == 4 ? s->dims[1] : 0, back = s->rank == 4 ? s->dims[3] : 0;
    *last = false;
    if (front == 1 || front == 3)
        return (int32_t)front;
    *last = back == 1 || back == 3;
    return *last ? (int32_t)back : 0;
}

/* Planes instead of interleaved channels. */
static void make_planes(image *im) {
    size_t n = (size_t)im->width * (size_t)im->height, channels = (size_t)im->channels;
    unsigned char *to = tool_alloc(n * channels, 1);
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < channels; c++)
            to[c * n + i] = im->pixels[i * channels + c];
    free(im->pixels);
    im->pixels = to;
}

int image_source(const tool *t, const char *path, const slot *s, const preprocess *given,
                 source *src, preprocess *how) {
    image im;
    bool last;
    int32_t channels = channels_of(s, &last);
    memset(src, 0, sizeof(*src));
    if (!channels)
        return tool_fail(t, QSIM_E_SHAPE,
                         "%s: a picture, but input '%.100s' has no axis of 1 or 3 channels", path,
                         s->name);
    int code = image_read(t, path, channels, &im);
    if (code == EXIT_OK)
        code = image_fit(t, path, given, &im);
    if (code) {
        free(im.pixels);
        return code;
    }
    *how = *given;
    how->channels_last = false;
    how->resize[0] = how->crop[0] = 0; /* done */
    if (!last)
        make_planes(&im);
    if (s->dtype == QSIM_FLOAT && !given->given) {
        how->given = true;
        how->divide = 255;
    }
    size_t bytes = (size_t)im.width * (size_t)im.height * (size_t)channels;
    src->kind = SOURCE_PROTO; /* decoded already */
    src->path = path;
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

/* ---- labels ---- */

/* Splits "NAME NUMBER" in place. */
static bool split(char *line, char **name, int64_t *label) {
    line[strcspn(line, "\r")] = 0;
    char *end = line + strlen(line);
    while (end > line && !strchr(" \t,", end[-1]))
        end--;
    if (end == line || !parse_int(end, 0, INT32_MAX, label))
        return false;
    end[-1] = 0;
    *name = line;
    return true;
}

static void give_label(char *const *files, size_t count, const char *name, int64_t label,
                       int64_t *labels) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(tool_base_name(files[i]), name) == 0)
            labels[i] = label;
}

static int read_labels(const tool *t, const char *path, char *const *files, size_t count,
                       int64_t *labels) {
    void *data;
    size_t size;
    int number = 0;
    int code = tool_read_all(t, path, &data, &size);
    if (code)
        return code;
    char *copy = tool_alloc(size + 1, 1);
    memcpy(copy, data, size);
    free(data);
    for (size_t i = 0; i < count; i++)
        labels[i] = -1;
    for (char *line = copy, *next; line && code == EXIT_OK; line = next) {
        char *name;
        int64_t label;
        number++;
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        if (*line == 0 || *line == '#' || *line == '\r')
            continue;
        if (split(line, &name, &label))
            give_label(files, count, name, label, labels);
        else
            code = tool_fail(t, QSIM_E_FORMAT, "%s: line %d is not a file name and a number", path,
                             number);
    }
    for (size_t i = 0; i < count && code == EXIT_OK; i++)
        if (labels[i] < 0)
            code =
                tool_fail(t, QSIM_E_FORMAT, "%s: no label for %s", path, tool_base_name(files[i]));
    free(copy);
    return code;
}

int image_labels(const tool *t, const char *folder, const char *labels, char *const *files,
                 size_t count, size_t inputs, int64_t **out) {
    struct stat st;
    text own = {0};
    text_printf(&own, "%s/labels.txt", folder);
    int code = EXIT_OK;
    if (labels && inputs != 1) {
        code = tool_fail(t, QSIM_E_UNSUPPORTED, "%s: the model has %zu inputs, not one", labels,
                         inputs);
    } else if (labels || (inputs == 1 && stat(own.data, &st) == 0)) {
        *out = tool_alloc(count, sizeof(**out));
        code = read_labels(t, labels ? labels : own.data, files, count, *out);
    }
    text_free(&own);
    return code;
}
