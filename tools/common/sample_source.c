/* SPDX-License-Identifier: MIT */
#include "common/sample_source.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool is_sound(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot && strcasecmp(dot, ".wav") == 0;
}

int sample_source(const tool *t, const char *path, const slot *s, const preprocess *given,
                  source *src, preprocess *how) {
    *how = *given;
    if (image_is_name(path))
        return image_source(t, path, s, given, src, how);
    if (is_sound(path))
        return sound_source(t, path, s, given->rate, src);
    return source_open(t, path, s->name, src);
}
