/* SPDX-License-Identifier: MIT */
/*
 * Checks that a message and all messages in it are well formed. Loading does so once, also for
 * fields that are only kept, so that later code can rely on wire types, lengths and text. Doc
 * strings may have any bytes, since no code reads them.
 */
#ifndef QS_SCHEMA_H
#define QS_SCHEMA_H

#include "onnx/wire.h"

enum qs_message {
    QS_MESSAGE_MODEL,
    QS_MESSAGE_GRAPH,
    QS_MESSAGE_NODE,
    QS_MESSAGE_ATTR,
    QS_MESSAGE_VALUE,
    QS_MESSAGE_TENSOR,
    QS_MESSAGE_SEGMENT,
    QS_MESSAGE_SPARSE,
    QS_MESSAGE_TYPE,
    QS_MESSAGE_TENSOR_TYPE,
    QS_MESSAGE_ELEMENT, /* sequence or optional */
    QS_MESSAGE_MAP,
    QS_MESSAGE_OPAQUE,
    QS_MESSAGE_SHAPE,
    QS_MESSAGE_DIM,
    QS_MESSAGE_PAIR,
    QS_MESSAGE_OPSET,
    QS_MESSAGE_FUNCTION,
    QS_MESSAGE_TRAINING,
    QS_MESSAGE_ANNOTATION,
    QS_MESSAGE_COUNT,
};

/* Greatest depth of messages: 64 nested graphs and the messages in the innermost one. */
#define QS_MESSAGE_DEPTH 200

/*
 * Errors: FORMAT, which names the kind of message and the byte of the file `name`, and LIMIT
 * (depth). Takes linear time, no recursion and no memory.
 */
int qs_schema_check(qs_span message, enum qs_message kind, const char *name, qsim_error *error);

/* Whether a text is well-formed UTF-8 without NUL. */
bool qs_text_ok(qs_span text);

#endif
