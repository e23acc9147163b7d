/* SPDX-License-Identifier: MIT */
#ifndef QSIM_DATA_H
#define QSIM_DATA_H
#include <qsim/base.h>
#endif
