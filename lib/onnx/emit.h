/* SPDX-License-Identifier: MIT */
/*
 * Writes messages to nanopb's output streams. A message that was read, and that still describes its
 * object, is written as it was read. All functions return false if the stream fails.
 */
#ifndef QS_EMIT_H
#define QS_EMIT_H

#include <pb_encode.h>

#include "graph/model.h"
#include "onnx/onnx_fields.h"
#include "onnx/wire.h"

typedef bool (*qs_emit_fn)(pb_ostream_t *out, const void *arg);

/* Writes a message as field `number`: body is called to size it, then to write it. */
bool qs_emit_message(pb_ostream_t *out, uint32_t number, qs_emit_fn body, const void *arg);
bool qs_emit_text(pb_ostream_t *out, uint32_t number, const char *text);
bool qs_emit_int(pb_ostream_t *out, uint32_t number, int64_t value);
bool qs_emit_span(pb_ostream_t *out, qs_span fields);

/* Writes a tensor with that name as TensorProto in field `number`. */
bool qs_emit_tensor(pb_ostream_t *out, uint32_t number, const char *name, const qs_const *tensor);
/* The same, with its bytes at `offset` of another file. */
bool qs_emit_outside(pb_ostream_t *out, uint32_t number, const char *name, const qs_const *tensor,
                     const char *location, uint64_t offset);
/* Writes a NodeProto as field of a GraphProto. */
bool qs_emit_node(pb_ostream_t *out, const qs_graph *graph, const qs_node *node);
/* Writes a ValueInfoProto in field `number`. */
bool qs_emit_value(pb_ostream_t *out, uint32_t number, const qs_value *value);
/* Writes the fields of a TensorProto: a file of one tensor. */
bool qs_emit_tensor_body(pb_ostream_t *out, const char *name, const qs_const *tensor);

#endif
