/* SPDX-License-Identifier: MIT */
/* Inputs that pools have inside only (op/window.h): the tensor that they write into, as it is so
 * far, and after it a table that their bytes are looked up in. */
#ifndef QS_POOL_H
#define QS_POOL_H

#define QS_POOL_OVER  1 /* of MaxPool and averages of floats */
#define QS_QPOOL_OVER 5 /* of averages of bytes */

#endif
