/* SPDX-License-Identifier: MIT */
/* Initial models of targets. */
#ifndef FUZZ_MODEL_SEEDS_H
#define FUZZ_MODEL_SEEDS_H

#include <qsim/model.h>

#include "proto.h"

#define FUZZ_MODELS       6
#define FUZZ_MESSAGES     14 /* that no builder makes */
#define FUZZ_IN_TWO_FILES 2  /* so many of them, the first ones, need FUZZ_OUTSIDE */
#define FUZZ_OUTSIDE                                                                               \
    "outside.bin" /* the file that these keep tensors in, 32 bytes at least                        \
                   */

/* The index-th network, float, as QDQ or in integers; NULL: there are no more. */
qsim_model *fuzz_model(size_t index);

/* The index-th message: these networks, then messages that no builder makes; 0: no more. */
size_t fuzz_model_bytes(size_t index, uint8_t *buffer, size_t capacity);

/*
 * Messages in layer_seeds.c: tensors of another file in graphs inside, in branches and beside a
 * call; padded images; layers in half precision; products that become MatMul or MatMulNBits.
 */
void fuzz_far(proto *model);
void fuzz_padded(proto *model);
void fuzz_half(proto *model);
void fuzz_products(proto *model);

/* The index-th model with one odd field, or file of another kind; 0: there are no more. */
size_t fuzz_odd_bytes(size_t index, uint8_t *buffer, size_t capacity);

#endif
