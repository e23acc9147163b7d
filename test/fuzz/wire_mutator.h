/* SPDX-License-Identifier: MIT */
/* Mutations of the fields of protobuf's wire format instead of bytes. */
#ifndef FUZZ_WIRE_H
#define FUZZ_WIRE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Changes one field of the message in `data`, which has room for `capacity`: removes or repeats it,
 * gives it another field's content or a telling value, moves it to another message, or changes its
 * number. The lengths of enclosing messages are adjusted. `other`: a message to take fields from,
 * or NULL. Returns the new size.
 */
size_t fuzz_wire_mutate(uint8_t *data, size_t size, size_t capacity, const uint8_t *other,
                        size_t other_size, uint32_t seed);

/* Repeats one field, or the bytes of its content, up to the capacity. Returns the new size. */
size_t fuzz_wire_grow(uint8_t *data, size_t size, size_t capacity, uint32_t seed);

#endif
