/* SPDX-License-Identifier: MIT */
/*
 * Reads the protobuf wire format field by field. The value of a field is a span of the message's
 * bytes, never a copy. nanopb only writes messages (emit.h): its reader fills structs, and would be
 * linked as a whole for reading single numbers.
 */
#ifndef QS_WIRE_H
#define QS_WIRE_H

#include <pb.h>

#include "base/base.h"
#include "graph/graph.h"

typedef struct qs_wire {
    const uint8_t *at, *end;
    const char *problem;
} qs_wire;

typedef struct qs_field {
    uint32_t number;
    uint32_t type;  /* PB_WT_VARINT, PB_WT_64BIT, PB_WT_STRING or PB_WT_32BIT */
    uint64_t value; /* of a number */
    qs_span data;   /* of a string, message or packed list: its payload */
    qs_span whole;  /* tag, length and payload */
} qs_field;

void qs_wire_begin(qs_wire *wire, qs_span message);

/* Reads the next field. Returns 1; 0 at the end of the message; -1: the bytes are malformed. */
int qs_wire_next(qs_wire *wire, qs_field *field);

/* What was malformed, after -1: a static text. */
const char *qs_wire_problem(const qs_wire *wire);

/* The payload of the last field `number` of a message, empty if there is none. */
qs_span qs_wire_find(qs_span message, uint32_t number);

bool qs_span_is(qs_span span, const char *text);

/*
 * A repeated field of numbers in any mixture of packed and single occurrences, read one after the
 * other. `width` is the wire type of a single one: PB_WT_VARINT, PB_WT_32BIT or PB_WT_64BIT.
 */
typedef struct qs_numbers {
    qs_wire message, packed;
    uint32_t number, width;
    bool inside;
} qs_numbers;

void qs_numbers_begin(qs_numbers *numbers, qs_span message, uint32_t number, uint32_t width);
/*
 * Reads the next value. Returns 1; 0 at the end; -1: the bytes are malformed. A field of another
 * wire type, which qs_schema_check refuses, has none.
 */
int qs_numbers_next(qs_numbers *numbers, uint64_t *value);
/* Number of values; -1: the bytes are malformed. */
int64_t qs_numbers_count(qs_span message, uint32_t number, uint32_t width);

static inline float qs_bits_float(uint64_t bits) {
    uint32_t low = (uint32_t)bits;
    float f;
    memcpy(&f, &low, sizeof(f));
    return f;
}

#endif
