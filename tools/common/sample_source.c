/* SPDX-License-Identifier: MIT */
#include "common/sample_source.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool sound_is_name(const char *path) {
    static const char *const ends[] = {".wav", ".flac", ".ogg", ".opus", ".mp3",
                                       ".aif", ".aiff", ".au",  ".caf",  ".w64"};
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < sizeof(ends) / sizeof(*ends); i++)
        if (strcasecmp(dot, ends[i]) == 0)
            return true;
    return false;
}

int sample_source(const tool *t, const char *path, const slot *s, const preprocess *given,
                  source *src, preprocess *how) {
    *how = *given;
    if (image_is_name(path))
        return image_source(t, path, s, given, src, how);
    if (sound_is_name(path))
        return sound_source(t, path, s, given->rate, src);
    return source_open(t, path, s->name, src);
}
