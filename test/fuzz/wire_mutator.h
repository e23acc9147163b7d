/* SPDX-License-Identifier: MIT */
/* Mutations that know protobuf's wire format: of fields, not of bytes. */
#ifndef FUZZ_WIRE_H
#define FUZZ_WIRE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Changes one field of the message in `data`, which has room for `capacity`: removes or repeats it,
 * puts another field's content or a telling value into it, moves it to another message, numbers it
 * anew. The lengths of the messages around it are written anew. `other` may be NULL: a message to
 * take fields from. Returns the new size.
 */
size_t fuzz_wire_mutate(uint8_t *data, size_t size, size_t capacity, const uint8_t *other,
                        size_t other_size, uint32_t seed);

#endif
