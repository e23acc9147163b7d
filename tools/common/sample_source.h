/* SPDX-License-Identifier: MIT */
/* Any file as a source for an input: a picture, a sound, a table of numbers, an array. */
#ifndef TOOL_SAMPLE_SOURCE_H
#define TOOL_SAMPLE_SOURCE_H

#include "common/image.h"

/* Opens it; `how` is what is to be done with it, `given` for what is neither picture nor sound. */
int sample_source(const tool *t, const char *path, const slot *s, const preprocess *given,
                  source *src, preprocess *how);

/*
 * A .wav as [1,..,1,frames] of floats from -1 to 1, or in windows [N,..,frames] where the input has
 * frames of its own; refused where it has several channels or another rate than --preprocess rate=
 * (16000 Hz): nothing is resampled.
 */
int sound_source(const tool *t, const char *path, const slot *s, int32_t rate, source *src);

#endif
