/* SPDX-License-Identifier: MIT */
#ifndef QSIM_OP_H
#define QSIM_OP_H
#include <qsim/base.h>
#endif
