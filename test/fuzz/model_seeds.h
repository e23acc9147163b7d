/* SPDX-License-Identifier: MIT */
/* Initial models of targets. */
#ifndef FUZZ_MODEL_SEEDS_H
#define FUZZ_MODEL_SEEDS_H

#include <qsim/model.h>

#define FUZZ_MODELS       6
#define FUZZ_MESSAGES     10          /* that no builder makes */
#define FUZZ_IN_TWO_FILES FUZZ_MODELS /* which of them needs FUZZ_OUTSIDE */
#define FUZZ_OUTSIDE                                                                               \
    "outside.bin" /* the file that one seed keeps a tensor in, 32 bytes at least                   \
                   */

/* The index-th network, float, as QDQ or in integers; NULL: there are no more. */
qsim_model *fuzz_model(size_t index);

/* The index-th message: these networks, then messages that no builder makes; 0: no more. */
size_t fuzz_model_bytes(size_t index, uint8_t *buffer, size_t capacity);

/* The index-th model with one odd field, or file of another kind; 0: there are no more. */
size_t fuzz_odd_bytes(size_t index, uint8_t *buffer, size_t capacity);

#endif
