/* SPDX-License-Identifier: MIT */
/* Any file as a source of an input: a picture, a sound, a table of numbers, an array. */
#ifndef TOOL_SAMPLE_SOURCE_H
#define TOOL_SAMPLE_SOURCE_H

#include "common/image.h"

/* Opens a file; `how`: the preprocessing left to do, which is `given` for arrays and tables. */
int sample_source(const tool *t, const char *path, const slot *s, const preprocess *given,
                  source *src, preprocess *how);

/* Is this the name of a sound: .wav, .flac, .ogg, .opus, .mp3, .aif, .aiff, .au, .caf, .w64? */
bool sound_is_name(const char *path);
/*
 * Reads a sound as floats from -1 to 1: [1,..,1,frames], or windows [N,..,frames] if the input has
 * a fixed number of frames; frames are along slot_sound_axis. Files with several channels or
 * another rate than --preprocess rate= (16000 Hz) are refused: nothing is resampled.
 */
int sound_source(const tool *t, const char *path, const slot *s, int32_t rate, source *src);

#endif
