/* SPDX-License-Identifier: MIT */
/* Training and evaluation of LeNetLite: Adam, batches of 64, a learning rate that falls to 0. */
#ifndef TRAIN_FIT_H
#define TRAIN_FIT_H

#include "train_net.h"
#include "train_team.h"

/* Images of NET_PIXELS bytes each, one after the other, and their classes below NET_CLASSES. */
typedef struct train_set {
    const uint8_t *images, *labels;
    size_t count;
} train_set;

typedef struct train_fit train_fit;

/* Starts from fresh weights; `epochs` fixes how the learning rate falls. NULL: out of memory. */
train_fit *fit_create(train_team *team, train_set set, uint64_t seed, size_t epochs);

/* Steps of one epoch, and of all. */
size_t fit_steps_per_epoch(const train_fit *fit);

/* One step of Adam on the next batch. The order of the images is drawn anew for each epoch. */
void fit_step(train_fit *fit);

/* How many images of `set` the present weights put into the right class. */
size_t fit_evaluate(train_fit *fit, train_set set);

const net_params *fit_params(const train_fit *fit);

void fit_free(train_fit *fit);

#endif
