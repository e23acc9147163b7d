/* SPDX-License-Identifier: MIT */
/* The content of an ONNX file: graph, weights (inside the graph), metadata. */
#ifndef QS_MODEL_H
#define QS_MODEL_H

#include <stdatomic.h>

#include "base/base.h"
#include "graph/graph.h"

#include <qsim/model.h>

typedef struct qs_property {
    const char *key, *value;
} qs_property;

/* The files that the constants of a model point into; shared by models that are made from it. */
struct qs_source;

/* The results of functions that inspect a model, made on first use (exec/views.c). */
typedef struct qs_views {
    void (*free)(qsim_ctx *ctx, struct qs_views *views);
} qs_views;

struct qsim_model {
    qsim_ctx *ctx;
    qs_graph *graph;
    struct qsim_model *base;  /* whose names and bytes this one borrows; a counted reference; NULL
                                 for a loaded one */
    struct qs_source *source; /* maps, owned by the onnx layer; NULL for a built or derived one */
    void (*free_source)(struct qsim_model *model);
    /*
     * Lets the system drop the pages of the source's mapped files until they are read again; may be
     * NULL.
     */
    void (*release_pages)(const struct qsim_model *model);
    const char *name; /* for messages: the file */
    int64_t ir_version;
    qs_property *properties; /* metadata_props, in the graph's arena */
    size_t property_count, property_capacity;
    const char *producer_name, *producer_version;
    qs_span
        *kept; /* fields of ModelProto to write back as they were: docs, functions, unknown ones */
    size_t kept_count, kept_capacity;
    qs_span *kept_graph; /* the same of GraphProto */
    size_t kept_graph_count, kept_graph_capacity;
    int64_t bytes;        /* of the file; 0: not loaded from one */
    bool inspect_only;    /* loaded with QSIM_LOAD_INSPECT or QSIM_LOAD_CHECK */
    bool flattened;       /* branches or calls were read as nodes that the file does not have */
    qsim_error *problems; /* problems that QSIM_LOAD_CHECK has collected */
    size_t problem_count, problem_capacity;
    atomic_size_t saved_bytes; /* of the file that saving writes; 0: not counted yet */
    qs_views *_Atomic views;
    atomic_int holds;
};

/* A new model over a clone of `base`'s graph, with its metadata; takes a reference to `base`. */
int qs_model_derive(const qsim_model *base, qsim_model **out, qsim_error *error);
/* The same; STATE for a model that was loaded for inspection, whose graph cannot be rewritten. */
int qs_model_derive_whole(const qsim_model *base, qsim_model **out, qsim_error *error);
int qs_model_create(qsim_ctx *ctx, qsim_model **out, qsim_error *error); /* empty graph */
qsim_model *qs_model_hold(const qsim_model *model);
int qs_model_set_property(qsim_model *model, const char *key, const char *value);

#endif
