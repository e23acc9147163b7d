/* SPDX-License-Identifier: MIT */
/* Fashion-MNIST, or a data set in its format. */
#ifndef DEMO_DATA_H
#define DEMO_DATA_H

#include "common/tool.h"

/* `count` images of 784 bytes each and their classes, 0 to 9. Owned by the demo_data. */
typedef struct demo_set {
    const uint8_t *images, *labels;
    size_t count;
} demo_set;

typedef struct demo_data {
    char name[64];              /* from the file NAME in the folder, else the folder's name */
    char classes[10][32];       /* from labels.txt there; else Fashion-MNIST's, or digits */
    demo_set train, validation; /* the last tenth of the training images is for validation */
    demo_set test;
    uint8_t *owned[4];
} demo_data;

/*
 * Reads {train,t10k}-{images-idx3,labels-idx1}-ubyte, plain or with .gz. Prints errors and returns
 * the exit code. `d` may be freed either way.
 */
int demo_data_load(const tool *t, const char *dir, demo_data *d);
void demo_data_free(demo_data *d);

#endif
