/* SPDX-License-Identifier: MIT */
/* Runs one model of one form in every way; test_random_graphs.c lists the results that are equal.
 */
#ifndef TEST_RANDOM_CHECK_H
#define TEST_RANDOM_CHECK_H

#include "random_graph.h"

#define RC_OUTPUTS 512

enum rc_form { FLOATS, STATIC, QOPERATOR, DYNAMIC, WEIGHTS, PAIRS, FORMS };
extern const char *const rc_form_names[FORMS];

typedef struct rc_subject {
    uint64_t seed;
    enum rc_form form;
    uint8_t *file;
    size_t size;
    int64_t batch;
    bool fixed; /* the batch is fixed in the graph */
    bool exact; /* no float operators that optimizing fuses */
    size_t input_count;
    qsim_tensor x[RG_INPUTS], other[RG_INPUTS]; /* two sets of inputs */
    int64_t dims[RG_INPUTS][5];
} rc_subject;

typedef struct rc_result {
    int32_t count;
    qsim_tensor t[RC_OUTPUTS];
    int64_t dims[RC_OUTPUTS][QSIM_MAX_RANK];
    char name[RC_OUTPUTS][64];
} rc_result;

/* Makes contexts: every instruction set with 1, 2 and 3 threads; rc_end frees them. */
void rc_begin(void);
typedef struct rc_found {
    long checks, failures, shaky; /* shaky: differences that rounding of inputs explains */
} rc_found;
rc_found rc_sofar(void);
void rc_end(void);

void rc_fail(const rc_subject *s, const char *what, const char *detail);
void rc_check(bool good, const rc_subject *s, const char *what, const char *detail);

/* Writes the model into s->file, which is freed by the caller. */
void rc_save(rc_subject *s, const qsim_model *m);
/* Names of all computed tensors; valid as long as *model, which is loaded for it. */
size_t rc_computed(const rc_subject *s, const char **names, qsim_model **model);
/* Values of these tensors in the unoptimized graph. */
bool rc_tensors(const rc_subject *s, const char *const *names, size_t count, rc_result *r);
void rc_drop(rc_result *r);
/* Writes the model as SEED_FORM.onnx, and inputs and all tensors beside it (.txt, .bin). */
void rc_write(const rc_subject *s, const char *folder);
/* Checks all results that must be equal. */
void rc_examine(const rc_subject *s);

#endif
