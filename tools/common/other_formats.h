/* SPDX-License-Identifier: MIT */
/* Pictures, documents and films that qsim does not read, by their first bytes. */
#ifndef TOOL_OTHER_FORMATS_H
#define TOOL_OTHER_FORMATS_H

#include <stddef.h>

/* "a GIF picture", or "empty", or NULL: none that is known. */
const char *other_format(const void *data, size_t size);

#endif
