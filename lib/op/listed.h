/* SPDX-License-Identifier: MIT */
/*
 * Which rows the operator table has. A build with -Doperators leaves out those that listed.py does
 * not list: QS_LISTED_id is ", 1" for the others.
 */
#ifndef QS_LISTED_H
#define QS_LISTED_H

/* Expand to macro(id), or to nothing where the row is left out. */
#ifndef QS_OPERATORS
#define QS_IF_LISTED(macro, id) macro(id)
#define QS_LEFT_OUT             ""
#else
#include "op/listed_operators.h"

#define QS_IF_LISTED(macro, id)        QS_PICK(QS_LISTED_##id, 0)(macro, id)
#define QS_PICK(...)                   QS_PICK_SECOND(__VA_ARGS__, )
#define QS_PICK_SECOND(a, second, ...) QS_PICKED_##second
#define QS_PICKED_0(macro, id)
#define QS_PICKED_1(macro, id) macro(id)
#endif

#endif
