/* SPDX-License-Identifier: MIT */
/* The report on FP32 and INT8: table, numbers, charts. */
#ifndef DEMO_REPORT_H
#define DEMO_REPORT_H

#include "demo_eval.h"

#include "common/json.h"

#define DEMO_COUNTS (DEMO_CLASSES * DEMO_CLASSES)

/* The results for one network. */
typedef struct demo_mode {
    const char *name;
    size_t val_correct, test_correct;
    uint64_t confusion[DEMO_COUNTS]; /* test images: [actual][predicted] */
    demo_times single, batch;        /* times of one run of 1 and of DEMO_BATCH images */
    int64_t weight_bytes, file_bytes;
} demo_mode;

typedef struct demo_result {
    const char *data_name;
    const char *classes[DEMO_CLASSES];
    size_t val_count, test_count, calibration_count;
    demo_mode mode[2]; /* FP32, INT8 */
    uint64_t agree, only_fp32,
        only_int8; /* test images with the same class; with only one of them right */
    const char *isa;
    int32_t threads;
} demo_result;

/* Counts predictions for the test images: fills all of the result but other fields of the modes. */
void demo_count(demo_result *r, const uint8_t *labels, const uint8_t *const predicted[2]);

/* Accuracy on the test images in percent. */
double demo_accuracy(const demo_result *r, size_t mode);

void demo_table(const demo_result *r, text *out);

/* The same as JSON. */
void demo_json(const demo_result *r, int met, json *out);

/* Lists the goals that are met; returns 1 if accuracy and size are. Times never decide. */
int demo_bars(const demo_result *r, text *out);

/* Writes summary.csv, confusion_*.csv, per_class.csv and the charts into `dir`. */
int demo_write(const demo_result *r, const char *dir, qsim_error *error);

#endif
