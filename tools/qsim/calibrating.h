/* SPDX-License-Identifier: MIT */
/* Calibrations made from a data set or read from a file. */
#ifndef QSIM_CALIBRATING_H
#define QSIM_CALIBRATING_H

#include <qsim/ptq.h>

#include "common/dataset.h"

/* Names of the methods that choose ranges: QSIM_METHOD_* is the index; ended by NULL. */
extern const char *const range_methods[QSIM_METHOD_ENTROPY + 2];
/* Names of weight schemes: QSIM_WEIGHT_* is the index; ended by NULL. */
extern const char *const weight_schemes[QSIM_WEIGHT_CHANNEL_ASYMMETRIC + 2];

/* Runs the whole data set through a new calibration; prints errors. `options` may be NULL. */
int calibrate_data(const tool *t, const char *file, const qsim_model *m,
                   const qsim_calibration_options *options, dataset *d, qsim_calibration **out);
/* Reports data that had no sample. */
int calibration_has_data(const tool *t, const char *file, const qsim_calibration *c);
/* The outlier among all tensors, with its number in the data; NULL: none. The caller frees it. */
char *calibration_outlier(const qsim_calibration *c, const dataset *d);
/* Shows a calibration file: ranges and histograms (calibrate_show.c). */
int calibration_show(const tool *t, const char *file);
int calibration_open(const tool *t, const char *path, qsim_calibration **out);

#endif
