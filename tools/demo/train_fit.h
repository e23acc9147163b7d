/* SPDX-License-Identifier: MIT */
/* Training and evaluation of LeNetLite: Adam, batches of 64, a learning rate that falls to 0. */
#ifndef TRAIN_FIT_H
#define TRAIN_FIT_H

#include "train_net.h"
#include "train_team.h"

/* Adjacent images of NET_PIXELS bytes each, and their classes below NET_CLASSES. */
typedef struct train_set {
    const uint8_t *images, *labels;
    size_t count;
} train_set;

typedef struct train_fit train_fit;

/* Initializes weights; `epochs` sets the decay of the learning rate. NULL: out of memory. */
train_fit *fit_create(train_team *team, train_set set, uint64_t seed, size_t epochs);

/* Steps of one epoch, and of all. */
size_t fit_steps_per_epoch(const train_fit *fit);

/* One step of Adam on the next batch. Each epoch shuffles the images. */
void fit_step(train_fit *fit);

/* The number of images of `set` that the weights of this step classify right. */
size_t fit_evaluate(train_fit *fit, train_set set);

const net_params *fit_params(const train_fit *fit);

void fit_free(train_fit *fit);

#endif
