/* SPDX-License-Identifier: MIT */
/* Declarations that the examples in the public headers assume. */
#ifndef EXAMPLES_H
#define EXAMPLES_H

#include <qsim/qsim.h>

static qsim_error e, error;
static qsim_model *model, *int8;
static qsim_session *session;
static qsim_run *run;
static qsim_calibration *c;
static qsim_file *f;
static qsim_array a;
static qsim_tensor inputs[1], outputs[1], batches[4];
static qsim_profile_fn on_event;
static float x[16];
static const float weights[640], bias[10];
enum { batch_count = 4 };

#endif
