/* SPDX-License-Identifier: MIT */
#ifndef QSIM_QUANT_H
#define QSIM_QUANT_H
#include <qsim/base.h>
#endif
