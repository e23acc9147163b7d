/* SPDX-License-Identifier: MIT */
/*
 * qsim/base.h - version, errors, data types, memory, context: included by all other headers.
 *
 * Conventions of the whole library
 *
 * - Errors. A function that can fail returns int: QSIM_OK (0) or a negative QSIM_E_* code. Those
 *   that read, build or compile something also take a `qsim_error *`, owned by the caller, or NULL.
 *   It describes the first failure of the call, and is emptied (code 0, no message) on success.
 * - Options. Option structs begin with `size_t struct_size`, set by the caller to sizeof the struct
 *   it was compiled against. A field that is zero has its default; a NULL pointer in place of the
 *   struct means all defaults. A field that a newer caller sets and this library does not know
 * gives QSIM_E_VERSION; it is never ignored. Structs that the library fills begin in the same way.
 * - Threads. A context, model and session are immutable after creation and may be used from any
 *   number of threads at once. A run, an observer, a calibration and a builder belong to one thread
 *   at a time. A call uses at most 128 KiB of its thread's stack, tasks of parallel_for 64 KiB.
 * - Memory. Everything is allocated through the context's allocator. Opaque objects are
 *   reference-counted inside, so they may be freed in any order. Every *_free accepts NULL; other
 *   functions need valid objects. On failure `*out` is NULL. Where a function takes `ctx`, NULL
 *   stands for a default context, which lives as long as the object made with it.
 * - Texts are UTF-8, paths are as the system spells them.
 * - Results do not depend on the CPU, the instruction set or the number of threads.
 *
 * The library never prints, never exits and never aborts on bad input.
 */
#ifndef QSIM_BASE_H
#define QSIM_BASE_H

#include <stddef.h>
#include <stdint.h>

#define QSIM_VERSION_MAJOR 0
#define QSIM_VERSION_MINOR 1
#define QSIM_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

#ifndef QSIM_API
#if defined(_WIN32) && defined(QSIM_BUILDING)
#define QSIM_API __declspec(dllexport)
#elif defined(_WIN32) /* nothing: the same for the DLL and for the static library */
#define QSIM_API
#elif defined(__GNUC__)
#define QSIM_API __attribute__((visibility("default")))
#else
#define QSIM_API
#endif
#endif

/* Version of the library that is linked: major << 16 | minor << 8 | patch. */
QSIM_API uint32_t qsim_version(void);

/* The same as text, for instance "0.1.0". Static. */
QSIM_API const char *qsim_version_string(void);

/* ---- errors ------------------------------------------------------------------------------- */

/*
 * Every code with its name and its short text: the one list that constants, qsim_error_name() and
 * qsim_error_text() are generated from. Numbers are spaced so that a family can grow.
 */
#define QSIM_ERROR_LIST(X)                                                                         \
    X(INTERNAL, -1, "internal failure")                                                            \
    X(ARGUMENT, -10, "invalid argument")                                                           \
    X(VERSION, -11, "options from a newer version of the library")                                 \
    X(NOT_FOUND, -12, "no such name")                                                              \
    X(STATE, -13, "not possible in this state")                                                    \
    X(NOMEM, -20, "out of memory")                                                                 \
    X(IO, -21, "input/output error")                                                               \
    X(EXISTS, -22, "output exists")                                                                \
    X(FORMAT, -30, "malformed data")                                                               \
    X(UNSUPPORTED, -31, "not supported")                                                           \
    X(DTYPE, -32, "wrong data type")                                                               \
    X(SHAPE, -33, "shapes do not fit")                                                             \
    X(VALUE, -34, "value out of range")                                                            \
    X(GRAPH, -35, "malformed graph")                                                               \
    X(LIMIT, -36, "a limit of the library is exceeded")                                            \
    X(MISMATCH, -37, "belongs to another model")                                                   \
    X(CANCELLED, -40, "cancelled")                                                                 \
    X(TIME, -41, "out of time")

#define QSIM_ERROR_CODE(name, number, text) , QSIM_E_##name = number
enum { QSIM_OK = 0 QSIM_ERROR_LIST(QSIM_ERROR_CODE) };
#undef QSIM_ERROR_CODE

/* Why a call failed. Frozen layout. Both texts are UTF-8, one line, control bytes escaped. */
typedef struct qsim_error {
    int32_t code;      /* QSIM_E_*, or QSIM_OK when nothing failed */
    int32_t flags;     /* reserved, 0 */
    char message[384]; /* what is wrong, where (node, operator, tensor, value), by which rule */
    char hint[192];    /* what would help, or "" */
} qsim_error;

/* "QSIM_E_SHAPE" for QSIM_E_SHAPE; "QSIM_OK" for 0; "QSIM_E_?" for anything unknown. Static. */
QSIM_API const char *qsim_error_name(int code);

/* The short English text of a code. Static. */
QSIM_API const char *qsim_error_text(int code);

/* ---- data types --------------------------------------------------------------------------- */

/* ONNX TensorProto.DataType numbers, named even where nothing computes on them. */
#define QSIM_UNDEFINED      0
#define QSIM_FLOAT          1
#define QSIM_UINT8          2
#define QSIM_INT8           3
#define QSIM_UINT16         4
#define QSIM_INT16          5
#define QSIM_INT32          6
#define QSIM_INT64          7
#define QSIM_STRING         8
#define QSIM_BOOL           9
#define QSIM_FLOAT16        10
#define QSIM_DOUBLE         11
#define QSIM_UINT32         12
#define QSIM_UINT64         13
#define QSIM_COMPLEX64      14
#define QSIM_COMPLEX128     15
#define QSIM_BFLOAT16       16
#define QSIM_FLOAT8E4M3FN   17
#define QSIM_FLOAT8E4M3FNUZ 18
#define QSIM_FLOAT8E5M2     19
#define QSIM_FLOAT8E5M2FNUZ 20
#define QSIM_UINT4          21
#define QSIM_INT4           22
#define QSIM_FLOAT4E2M1     23
#define QSIM_FLOAT8E8M0     24
#define QSIM_UINT2          25
#define QSIM_INT2           26

/* "float", "uint8", "int4", …; "undefined" for a number that is no data type. Static. */
QSIM_API const char *qsim_dtype_name(int32_t dtype);

/* Bits of one element (4 for int4, 2 for int2, 0 for strings and unknown types). */
QSIM_API int32_t qsim_dtype_bits(int32_t dtype);

/* ---- memory, log, progress, threads ------------------------------------------------------- */

/*
 * An allocator. Frozen layout. `alloc` returns memory aligned to `align` (a power of two) or NULL;
 * `free` is given the size that was asked for. Both must be callable from several threads at once.
 */
typedef struct qsim_allocator {
    void *(*alloc)(void *user, size_t size, size_t align);
    void (*free)(void *user, void *ptr, size_t size);
    void *user;
} qsim_allocator;

#define QSIM_LOG_ERROR   1
#define QSIM_LOG_WARNING 2
#define QSIM_LOG_INFO    3

/*
 * Receives one line of UTF-8 without a line end, for people: its wording may change. May be called
 * from any thread that calls the library.
 */
typedef void (*qsim_log_fn)(void *user, int32_t level, const char *line);

/*
 * Reports progress of long work: `done` of `total` steps, `what` names the current one (a node, a
 * file). Returning non-zero cancels: the work ends with QSIM_E_CANCELLED.
 */
typedef int32_t (*qsim_progress_fn)(void *user, const char *what, uint64_t done, uint64_t total);

/* Calls task(arg, i) for every i in [0, n) and returns when all are done; may be serial. */
typedef void (*qsim_task_fn)(void *arg, size_t i);
typedef void (*qsim_parallel_fn)(void *user, size_t n, qsim_task_fn task, void *arg);

/*
 * Instruction sets. AUTO takes the best that the CPU has and this build contains. The numbers are
 * names: a larger one is not a better one, and later versions add some. They leave no gap, so that
 * a list of all ends where qsim_isa_name gives NULL.
 */
#define QSIM_ISA_AUTO       0
#define QSIM_ISA_C          1
#define QSIM_ISA_AVX2       2
#define QSIM_ISA_AVXVNNI    3
#define QSIM_ISA_AVX512VNNI 4
#define QSIM_ISA_NEON       5
#define QSIM_ISA_NEONDOT    6
#define QSIM_ISA_NEONI8MM   7
/*
 * Intel's tiles, above AVX512VNNI. The operating system has to grant them to a process: on Linux
 * the context asks for that when AUTO would choose AMX, or when AMX is asked for. Granted once, it
 * holds for all threads and children, and signals' frames grow by 8 KB: sigaltstack() then refuses
 * stacks smaller than sysconf(_SC_MINSIGSTKSZ). Where it is refused (an alternate signal stack is
 * too small, or a filter forbids it), AUTO is AVX512VNNI. A host that does not want this chooses
 * AVX512VNNI.
 */
#define QSIM_ISA_AMX 8

/* "c", "avx2", … as the command line spells it; NULL for an unknown number. Static. */
QSIM_API const char *qsim_isa_name(int32_t isa);

/* ---- context ------------------------------------------------------------------------------ */

/* Allocator, log, CPU features, kernels and threads. Immutable after creation. */
typedef struct qsim_ctx qsim_ctx;

/*
 * Limits for all objects of a context together, and for files. 0: the default. The error names the
 * limit, its value and the amount needed; its code is QSIM_E_LIMIT, for `memory` QSIM_E_NOMEM, for
 * `milliseconds` QSIM_E_TIME. Ranks over QSIM_MAX_RANK and JSON nested over 64 deep are always
 * refused.
 */
typedef struct qsim_limits {
    size_t struct_size;    /* sizeof(qsim_limits) */
    uint64_t memory;       /* bytes held at once, mapped files aside; default: no limit */
    uint64_t milliseconds; /* from the context's creation on, for all calls; default: no limit */
    uint64_t file;         /* bytes of a file; default: 1 TiB */
    uint64_t stream;       /* bytes of a pipe, or of a file read into memory; default: 16 GiB */
    uint64_t nodes;        /* of a model, its subgraphs included; default: 4,000,000 */
    uint64_t values;       /* tensors that a graph names; default: 16,000,000 */
    uint64_t elements;     /* of one constant; default: 2^40 */
    uint64_t attributes;   /* of one node; default: 1,000 */
    uint64_t nesting;      /* of graphs in graphs, at most 16, which is the default */
    uint64_t entries;      /* of a package, at most 4096, which is the default */
    uint64_t ratio;        /* inflated bytes of a package per byte of its file; default: 100 */
    uint64_t threads;      /* of a context; default: 1024 */
} qsim_limits;

typedef struct qsim_ctx_options {
    size_t struct_size;              /* sizeof(qsim_ctx_options) */
    const qsim_allocator *allocator; /* copied; NULL: the C library's */
    qsim_log_fn log;                 /* NULL: silent */
    void *log_user;
    qsim_parallel_fn parallel_for; /* NULL: an own pool of `threads` threads */
    void *parallel_user;
    int32_t threads; /* 0: as many as this process may use CPUs; started when first needed */
    int32_t isa;     /* QSIM_ISA_*; one that the CPU lacks gives QSIM_E_UNSUPPORTED */
    const qsim_limits *limits; /* copied; NULL: the defaults */
} qsim_ctx_options;

/*
 * Creates a context. `options` may be NULL. Errors: ARGUMENT, VERSION, UNSUPPORTED, LIMIT
 * (threads), NOMEM.
 *
 * After fork() a context serves the child as well as the parent: its threads are started anew where
 * they are needed, and both free it. Objects that another thread was using at that moment may only
 * be freed in the child.
 */
QSIM_API int qsim_ctx_create(const qsim_ctx_options *options, qsim_ctx **out, qsim_error *error);

/* Releases the caller's reference; the last model or session of the context frees its memory. */
QSIM_API void qsim_ctx_free(qsim_ctx *ctx);

/* The instruction set whose kernels this context runs, QSIM_ISA_*. */
QSIM_API int32_t qsim_ctx_isa(const qsim_ctx *ctx);

/*
 * The number of threads that share work, the calling one included; with parallel_for, the most
 * tasks that work is split into. A context starts its threads at the first step that is split and
 * ends them when it is freed; one whose objects only read, count or write files starts none.
 */
QSIM_API int32_t qsim_ctx_threads(const qsim_ctx *ctx);

/*
 * While `on` is not 0, all calls on objects of this context, in progress or new, end with
 * QSIM_E_CANCELLED: loading, session creation, calibration, quantization, search, execution (inside
 * a step, too), saving. Objects stay usable; results of a cancelled call are not defined. 0 allows
 * work again: set it once the cancelled calls have returned. May be called from any thread and from
 * signal handlers; `ctx` may be NULL.
 */
QSIM_API void qsim_ctx_cancel(qsim_ctx *ctx, int32_t on);

/* The limits of a context, defaults filled in. Errors: ARGUMENT (struct_size). */
QSIM_API int qsim_ctx_limits(const qsim_ctx *ctx, qsim_limits *limits);

/* Bytes that all objects of the context hold now; 0 if the context has no memory limit. */
QSIM_API uint64_t qsim_ctx_memory(const qsim_ctx *ctx);

/* 1 if this build has kernels for `isa` and this CPU can run them, else 0. */
QSIM_API int32_t qsim_isa_available(int32_t isa);

/* ---- tensors ------------------------------------------------------------------------------ */

#define QSIM_MAX_RANK 16

/*
 * A view of a tensor. Frozen layout. Owns nothing: the function that makes the view says how long
 * `dims` and `data` live. Contiguous, row-major (last axis fastest). Types under 8 bits are packed,
 * the first element in the low bits; the tail of the last byte is zero.
 */
typedef struct qsim_tensor {
    int32_t dtype;       /* QSIM_FLOAT, … */
    int32_t rank;        /* 0 (a scalar) to QSIM_MAX_RANK */
    const int64_t *dims; /* rank sizes, each >= 0; may be NULL when rank is 0 */
    void *data;          /* aligned to the element size */
    size_t bytes;        /* readable (or writable) bytes at data */
} qsim_tensor;

/*
 * How many elements and bytes a tensor of this type and shape has. Either result may be NULL.
 * Errors: DTYPE (unknown or string type), SHAPE (rank, negative size), LIMIT (does not fit size_t).
 */
QSIM_API int qsim_tensor_size(int32_t dtype, int32_t rank, const int64_t *dims, size_t *elements,
                              size_t *bytes);

#ifdef __cplusplus
}
#endif
#endif
