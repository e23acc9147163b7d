/* SPDX-License-Identifier: MIT */
/* qsim/qsim.h - the whole public interface of libqsim. Each header can also be included alone. */
#ifndef QSIM_QSIM_H
#define QSIM_QSIM_H

#include <qsim/base.h>
#include <qsim/compare.h>
#include <qsim/data.h>
#include <qsim/model.h>
#include <qsim/op.h>
#include <qsim/package.h>
#include <qsim/profile.h>
#include <qsim/ptq.h>
#include <qsim/quant.h>
#include <qsim/recipe.h>
#include <qsim/session.h>
#include <qsim/verdict.h>

#endif
