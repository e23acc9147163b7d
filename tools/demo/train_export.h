/* SPDX-License-Identifier: MIT */
/* LeNetLite as an ONNX model. */
#ifndef TRAIN_EXPORT_H
#define TRAIN_EXPORT_H

#include "train_net.h"

#include <qsim/model.h>

/*
 * Builds the model: opset 13, input "input" float [N, 1, 28, 28] of pixels / 255, output "logits"
 * float [N, 10]. `data_name`, `seed` and `epochs` go into its metadata.
 */
int train_export(const net_params *params, const char *data_name, uint64_t seed, size_t epochs,
                 qsim_model **out, qsim_error *error);

#endif
