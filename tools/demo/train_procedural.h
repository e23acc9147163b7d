/* SPDX-License-Identifier: MIT */
/*
 * A data set for machines that cannot get a real one: drawn silhouettes of ten kinds of clothes in
 * the files and sizes of Fashion-MNIST. Called "procedural" wherever it is used.
 */
#ifndef TRAIN_PROCEDURAL_H
#define TRAIN_PROCEDURAL_H

#include <qsim/base.h>

#include <stdint.h>

/* Draws one image of class `label` (0 to 9): 28 x 28 bytes. */
void procedural_draw(uint64_t *random, size_t label, uint8_t pixels[28 * 28]);

/*
 * Writes the four IDX files of 60,000 and 10,000 images and a file NAME that says "procedural" into
 * `dir`, which must exist; files that are there are replaced. The bytes are always the same.
 */
int procedural_write(const char *dir, qsim_error *error);

#endif
