/* SPDX-License-Identifier: MIT */
/*
 * A data set for machines without a real one: drawn silhouettes of ten kinds of clothes, in the
 * files and sizes of Fashion-MNIST. It is called "procedural" wherever it is used.
 */
#ifndef TRAIN_PROCEDURAL_H
#define TRAIN_PROCEDURAL_H

#include <qsim/base.h>

#include <stddef.h>
#include <stdint.h>

/* Draws one image of class `label` (0 to 9): 28 x 28 bytes. */
void procedural_draw(uint64_t *random, size_t label, uint8_t pixels[28 * 28]);

/*
 * Writes four IDX files, of `train` and `test` images and their classes, and a file NAME with
 * "procedural" into `dir`, which must exist; existing files are replaced. The bytes depend on
 * nothing else.
 */
int procedural_write(const char *dir, size_t train, size_t test, qsim_error *error);

#endif
