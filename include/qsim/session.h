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
 * A session is a compiled model: fused graph and packed weights. It is immutable, and any number of
 * threads may share it. A run is the memory that one thread needs to execute a session; each thread
 * makes its own. The first execution with a new combination of input shapes makes a plan and
 * allocates memory; a run keeps its last four plans, and executing one of them allocates nothing.
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
/* The memory that one thread needs to execute a session. One thread at a time. */
typedef struct qsim_run qsim_run;

typedef struct qsim_session_options {
    size_t struct_size; /* sizeof(qsim_session_options) */
    /*
     * The names of the session's outputs, in this order: any tensors of the graph. NULL: the
     * graph's outputs.
     */
    const char *const *outputs;
    size_t output_count; /* names in `outputs` */
    /*
     * The context whose memory, threads and instruction set the session and its runs use; NULL: the
     * model's context. So sessions of one model may differ in these. The caller may free the
     * context after qsim_session_create.
     */
    qsim_ctx *ctx;
    int32_t level; /* QSIM_LEVEL_* */
    int32_t reserved;
    /*
     * The seed of the model's random numbers (RandomNormalLike, Bernoulli, ...). A random number is
     * a function of this seed, the node's name, the element's index and the iteration of a Loop. So
     * the same inputs give the same outputs in every run, on every CPU, in float and quantized. For
     * other numbers set another seed, here or with qsim_run_set_seed. If a node has an attribute
     * `seed`, that is used in place of this seed and the node's name.
     */
    uint64_t seed;
} qsim_session_options;

/*
 * Compiles a model. `options` may be NULL. The model may be freed afterwards. Errors: ARGUMENT,
 * VERSION (options), NOT_FOUND (an output's name), STATE (the model was loaded for inspection),
 * UNSUPPORTED, SHAPE, DTYPE, NOMEM.
 */
QSIM_API int qsim_session_create(const qsim_model *model, const qsim_session_options *options,
                                 qsim_session **out, qsim_error *error);
/* Releases the caller's reference to the session. */
QSIM_API void qsim_session_free(qsim_session *session);

/* The number of inputs and outputs of qsim_run_execute. */
QSIM_API int32_t qsim_session_input_count(const qsim_session *session);
QSIM_API int32_t qsim_session_output_count(const qsim_session *session);
/*
 * The name of an input or output by its index, from 0, in the order of qsim_run_execute. NULL if
 * out of range. It lives as long as the session.
 */
QSIM_API const char *qsim_session_input_name(const qsim_session *session, int32_t index);
QSIM_API const char *qsim_session_output_name(const qsim_session *session, int32_t index);
/* The bytes of packed weights and tables, which all runs share. */
QSIM_API size_t qsim_session_bytes(const qsim_session *session);

/*
 * Whether node `index` of the model, as qsim_model_node counts nodes, runs in integers in this
 * session. 1: it computes on 8-bit tensors, or is fused into an operator that does. 0: it runs in
 * float, converts between float and integers (QuantizeLinear, DequantizeLinear), is not executed,
 * or does not exist.
 */
QSIM_API int32_t qsim_session_node_integer(const qsim_session *session, int32_t index);

/*
 * Creates a run. The session may be freed afterwards. This will never need options: settings belong
 * to the session, and those of one run have functions below. Errors: ARGUMENT, NOMEM.
 */
QSIM_API int qsim_run_create(const qsim_session *session, qsim_run **out, qsim_error *error);
QSIM_API void qsim_run_free(qsim_run *run);

/*
 * Plans and allocates for the shapes of these inputs, so that executing with these shapes allocates
 * nothing. The inputs' data is not read and may be NULL, except for inputs whose value sets the
 * sizes of other tensors (the shape of a Reshape); a plan is valid for one value of such inputs.
 * Errors: those of qsim_run_execute.
 */
QSIM_API int qsim_run_reserve(qsim_run *run, const qsim_tensor *inputs, size_t input_count,
                              qsim_error *error);

/*
 * Executes the session. `inputs` and `outputs` are in the session's order; the counts must be those
 * of the session. The caller sets `data` and `bytes` of each output:
 *
 * - data NULL: the output is in memory of the run, valid until the run's next execute or reserve or
 *   until it is freed;
 * - data not NULL: the output is written to this buffer of `bytes` bytes, which must be enough.
 *
 * The call sets dtype, rank, dims and bytes (the exact size) of each output; dims belong to the run
 * and are valid as long as its memory. An input buffer need not be larger than its tensor, and must
 * not overlap an output buffer. Errors: ARGUMENT (counts, missing data, a buffer that is too
 * small), DTYPE, SHAPE (the message names the input, or the node whose rule is broken or whose
 * result has another size than the model states), LIMIT (an activation of 16 GiB), NOMEM,
 * CANCELLED, TIME.
 */
QSIM_API int qsim_run_execute(qsim_run *run, const qsim_tensor *inputs, size_t input_count,
                              qsim_tensor *outputs, size_t output_count, qsim_error *error);

/*
 * Cancels the execution in progress, also in the middle of a step, or else the next one: it ends
 * with QSIM_E_CANCELLED, and the contents of its outputs are undefined. Any thread may call this.
 * qsim_ctx_cancel cancels all work of a context.
 */
QSIM_API void qsim_run_cancel(qsim_run *run);

/*
 * Sets the seed of random numbers (qsim_session_options.seed) for the following executions. With
 * one seed all executions give the same numbers; set another one before each if they should differ.
 */
QSIM_API void qsim_run_set_seed(qsim_run *run, uint64_t seed);

/* The bytes of activation memory of the plan used last. */
QSIM_API size_t qsim_run_arena_bytes(const qsim_run *run);

/* Describes one step of a run: one call of a kernel. Profiles are in qsim/profile.h. */
typedef struct qsim_step_info {
    size_t struct_size;   /* sizeof(qsim_step_info), set by the caller */
    const char *node;     /* name of the (fused) node, or of its first output if it has no name */
    const char *op_type;  /* the operator that is executed */
    const char *kernel;   /* kernel family */
    int64_t macs;         /* multiply-accumulates of one execution */
    uint64_t nanoseconds; /* duration in the last execution, if timing is on */
    uint64_t start_ns;    /* start in the last execution, on a clock that only runs forward */
    /*
     * Bytes of all inputs, weights as the graph stores them. An input that the node lists again
     * counts once, unless more than 64 others stand between.
     */
    int64_t bytes_read;
    int64_t bytes_written; /* of all outputs */
    int32_t input_count;   /* for qsim_run_step_tensor; counts optional inputs that are left out */
    int32_t output_count;
    int32_t isa; /* the instruction set of its kernel, QSIM_ISA_*; in an AMX context AVX512VNNI for
                    steps that AMX does not make faster */
    int32_t reserved;
} qsim_step_info;

/* Turns the timing of steps on (1) or off (0, the default). */
QSIM_API void qsim_run_set_timing(qsim_run *run, int32_t on);
/* The number of steps of the plan used last; 0 before the first execute or reserve. */
QSIM_API int32_t qsim_run_step_count(const qsim_run *run);
/*
 * Describes step `index`, from 0, in the order of execution. Texts live as long as the session.
 * Errors: ARGUMENT (index, struct_size).
 */
QSIM_API int qsim_run_step(const qsim_run *run, int32_t index, qsim_step_info *info);

#ifdef __cplusplus
}
#endif
#endif
