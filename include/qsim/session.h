/* SPDX-License-Identifier: MIT */
/*
 * qsim/session.h - execute a model.
 *
 *     qsim_model *m;  qsim_session *s;  qsim_run *r;
 *     qsim_model_load(NULL, "model.onnx", NULL, &m, &e);
 *     qsim_session_create(m, NULL, &s, &e);
 *     qsim_run_create(s, &r, &e);
 *     qsim_run_execute(r, inputs, 1, outputs, 1, &e);
 *     qsim_run_free(r); qsim_session_free(s); qsim_model_free(m);
 *
 * A session is a compiled model: fused graph and packed weights, immutable, shared by threads. A
 * run is one caller's scratch memory for it: one per thread. Executing allocates nothing for a
 * combination of input shapes that this run has executed or reserved; a new one is planned first,
 * and the last four plans are kept.
 */
#ifndef QSIM_SESSION_H
#define QSIM_SESSION_H

#include <qsim/base.h>
#include <qsim/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A compiled model. */
typedef struct qsim_session qsim_session;
/* One caller's memory to run it in. */
typedef struct qsim_run qsim_run;

typedef struct qsim_session_options {
    size_t struct_size; /* sizeof(qsim_session_options) */
    /*
     * Names of the session's outputs, in this order: any tensors that the graph names. NULL: the
     * graph's outputs.
     */
    const char *const *outputs;
    size_t output_count;
    /*
     * The context whose memory, threads and instruction set the session and its runs use; NULL: the
     * model's. So one model may have several sessions that differ in these. The context may be
     * freed after this call.
     */
    qsim_ctx *ctx;
    int32_t level; /* QSIM_LEVEL_* */
    int32_t reserved;
    /*
     * For the model's random numbers (RandomNormalLike, Bernoulli, ...). They are a function of
     * this seed, the node's name and the element's index, and of a Loop's iteration: the same
     * inputs give the same outputs in every run, on every CPU, in float and quantized. For other
     * numbers use another seed, here or by qsim_run_set_seed. A node's own seed, an attribute,
     * takes the place of this one and of the name.
     */
    uint64_t seed;
} qsim_session_options;

/*
 * Compiles a model. Errors: NOT_FOUND (an output name), UNSUPPORTED, SHAPE, DTYPE, NOMEM.
 * The model may be freed afterwards.
 */
QSIM_API int qsim_session_create(const qsim_model *model, const qsim_session_options *options,
                                 qsim_session **out, qsim_error *error);
QSIM_API void qsim_session_free(qsim_session *session);

/* How many tensors execute takes and gives. */
QSIM_API int32_t qsim_session_input_count(const qsim_session *session);
QSIM_API int32_t qsim_session_output_count(const qsim_session *session);
/* Names, by index in the order that execute takes and gives; NULL out of range. */
QSIM_API const char *qsim_session_input_name(const qsim_session *session, int32_t index);
QSIM_API const char *qsim_session_output_name(const qsim_session *session, int32_t index);
/* Bytes of packed weights and tables that all runs share. */
QSIM_API size_t qsim_session_bytes(const qsim_session *session);

/*
 * Whether node `index` of the model (as qsim_model_node counts them) runs in integers here: 1 if it
 * computes on 8-bit tensors, or its result exists only inside an operator that does; 0: it runs in
 * float, converts between both (QuantizeLinear, DequantizeLinear), is not executed at all, or does
 * not exist.
 */
QSIM_API int32_t qsim_session_node_integer(const qsim_session *session, int32_t index);

/*
 * The session may be freed afterwards. Never needs options: settings are the session's, and what
 * differs between runs is set on the run. Errors: NOMEM.
 */
QSIM_API int qsim_run_create(const qsim_session *session, qsim_run **out, qsim_error *error);
QSIM_API void qsim_run_free(qsim_run *run);

/*
 * Plans and allocates for these input shapes, so that executing them allocates nothing. Data
 * pointers are not read, but for inputs whose value decides on sizes (the shape of a Reshape): a
 * plan holds for one value of those. Errors: as of qsim_run_execute.
 */
QSIM_API int qsim_run_reserve(qsim_run *run, const qsim_tensor *inputs, size_t input_count,
                              qsim_error *error);

/*
 * Executes. `inputs` are in the session's order. For each output, a view whose `data` is not NULL
 * and whose `bytes` suffice is written into; one whose data is NULL is set to memory of the run,
 * valid until its next execute, reserve or free. dtype, rank and dims are always set (dims belong
 * to the run, same lifetime) and bytes to the exact size. Input buffers need only hold their exact
 * size and may not overlap output buffers. Errors: ARGUMENT (counts), DTYPE, SHAPE (message names
 * the input; or the node whose rule is broken, or whose result has not the size that the model
 * states of it, if it is no output), LIMIT (an activation of 16 GiB), NOMEM, CANCELLED.
 */
QSIM_API int qsim_run_execute(qsim_run *run, const qsim_tensor *inputs, size_t input_count,
                              qsim_tensor *outputs, size_t output_count, qsim_error *error);

/*
 * Makes the execution in progress (or the next one) end with QSIM_E_CANCELLED, inside a step, too;
 * the contents of outputs are then not defined. May be called from any thread. qsim_ctx_cancel
 * cancels all work of a context.
 */
QSIM_API void qsim_run_cancel(qsim_run *run);

/*
 * Changes the seed of random numbers (qsim_session_options.seed) from the next execute on: speech
 * or samples that should differ from one call to the next need a seed of their own for each.
 */
QSIM_API void qsim_run_set_seed(qsim_run *run, uint64_t seed);

/* Bytes of activation memory of the plan last used. */
QSIM_API size_t qsim_run_arena_bytes(const qsim_run *run);

/*
 * One executed step, described by qsim_run_step; `struct_size` is set by the caller. Profiles are
 * in qsim/profile.h.
 */
typedef struct qsim_step_info {
    size_t struct_size;
    const char *node;      /* name of the (fused) node; without one, of its first output */
    const char *op_type;   /* operator it runs as */
    const char *kernel;    /* kernel family */
    int64_t macs;          /* multiply-accumulates of one execution */
    uint64_t nanoseconds;  /* of the last execution, when timing is on */
    uint64_t start_ns;     /* its beginning, on a clock that only runs forward */
    int64_t bytes_read;    /* of all inputs, weights as the graph has them; each once */
    int64_t bytes_written; /* of all outputs */
    int32_t input_count;   /* for qsim_run_step_tensor, those left out included */
    int32_t output_count;
    int32_t isa; /* of its kernel, QSIM_ISA_*: in a context of AMX, AVX512VNNI for steps that tiles
                    do not make faster */
    int32_t reserved;
} qsim_step_info;

/* Turns per-step timing on (1) or off (0, the default). */
QSIM_API void qsim_run_set_timing(qsim_run *run, int32_t on);
/* Steps of the plan last used, in the order of execution; 0 before the first execute or reserve. */
QSIM_API int32_t qsim_run_step_count(const qsim_run *run);
/* Texts live as long as the session. Errors: ARGUMENT (index, struct_size). */
QSIM_API int qsim_run_step(const qsim_run *run, int32_t index, qsim_step_info *info);

#ifdef __cplusplus
}
#endif
#endif
