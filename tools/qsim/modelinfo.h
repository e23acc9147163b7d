/* SPDX-License-Identifier: MIT */
/* Facts about models that several verbs print. */
#ifndef QSIM_MODELINFO_H
#define QSIM_MODELINFO_H

#include "common/tool.h"

typedef struct op_count {
    const char *name;
    int count;
} op_count;

typedef struct model_facts {
    op_count *ops; /* by falling count, then name */
    size_t op_count;
    int nodes, integer_nodes, macs_unknown;
    int64_t macs;
} model_facts;

/* For each node: does a session compute it in integers? The caller frees the array. */
bool *model_integers(const qsim_model *m);
/* Whether nodes have graphs of their own. */
bool model_has_graphs(const qsim_model *m);
void model_collect(const qsim_model *m, const bool *integers, model_facts *f);
void model_facts_free(model_facts *f);

/* "[N,1,28,28]"; "?" for an unknown rank. */
void value_shape(const qsim_value_info *v, text *out);
/* {"name", "dtype", "shape"}; of an input or output of `m` also its scale, if it has one; with
 * `constant` the bytes of constants. `m` may be NULL. */
void json_value(json *j, const qsim_value_info *v, const qsim_model *m, bool constant);
/* opset, ir_version, inputs, outputs, operators, parameters, macs, bytes. */
void json_model(json *j, const qsim_model *m, const bool *integers);

/* Prints "label     text", over as many lines as needed. */
void table_line(const char *label, const char *format, ...) TOOL_PRINTF(2, 3);

#endif
