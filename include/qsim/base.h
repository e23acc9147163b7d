/* SPDX-License-Identifier: MIT */
/*
 * qsim/base.h - version, errors, data types, memory, context. All other headers include it.
 *
 * Conventions of the whole library
 *
 * - Errors. A function that can fail returns int: QSIM_OK (0) or a negative QSIM_E_* code.
 *   Functions that read, build or compile something also take a `qsim_error *`, which the caller
 *   owns and which may be NULL. It receives the first failure of the call; on success it is emptied
 *   (code 0, no message). Comments list codes without the prefix: "Errors: SHAPE" means
 *   QSIM_E_SHAPE.
 * - Options. An options struct begins with `size_t struct_size`, which the caller sets to the
 *   sizeof of the struct. A field that is zero has its default; NULL in place of the struct means
 *   all defaults. If a newer caller sets a field that this library does not know, the call fails
 *   with QSIM_E_VERSION. Structs that the library fills begin with `struct_size`, too; the caller
 *   sets it unless the struct's comment says that the library does.
 * - Threads. A context, a model and a session are immutable after creation; any number of threads
 *   may use them at once. All other objects (a run, an observer, a calibration, a builder, ...)
 *   belong to one thread at a time. A call uses at most 128 KiB of its thread's stack; a task of
 *   parallel_for uses at most 64 KiB.
 * - Memory. All memory comes from the context's allocator. Opaque objects are reference-counted
 *   inside, so they may be freed in any order. Every *_free accepts NULL; all other functions need
 *   valid objects. A function that makes an object stores it in `*out`, which the caller owns and
 *   frees; on failure `*out` is NULL. Where a function takes `ctx`, NULL means a default context,
 *   which lives as long as the object made with it.
 * - Callbacks return: no exception and no longjmp may leave one.
 * - Floating point. Executing a session sets rounding to nearest and keeps denormals, in all its
 *   threads, and restores the caller's settings. All other functions expect rounding to nearest.
 * - Texts are UTF-8. Paths are spelled as the system spells them. A returned text that is called
 *   static is never freed.
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

/* The version of the linked library: major << 16 | minor << 8 | patch. */
QSIM_API uint32_t qsim_version(void);

/* The same version as text, for instance "0.1.0". Static. */
QSIM_API const char *qsim_version_string(void);

/* ---- errors ------------------------------------------------------------------------------- */

/*
 * Every error code: name, number, short text. The constants QSIM_E_*, qsim_error_name() and
 * qsim_error_text() are generated from this list. Later versions may add codes.
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

/*
 * Why a call failed. Frozen layout: no field is ever added. Both texts are one line of UTF-8 with
 * control bytes escaped.
 */
typedef struct qsim_error {
    int32_t code;      /* QSIM_E_*, or QSIM_OK when nothing failed */
    int32_t flags;     /* reserved, 0 */
    char message[384]; /* what is wrong, where (node, operator, tensor, value), by which rule */
    char hint[192];    /* what would help, or "" */
} qsim_error;

/* The name of a code: "QSIM_E_SHAPE", "QSIM_OK" for 0, "QSIM_E_?" for an unknown one. Static. */
QSIM_API const char *qsim_error_name(int code);

/* The short English text of a code, as in the list above. Static. */
QSIM_API const char *qsim_error_text(int code);

/* ---- data types --------------------------------------------------------------------------- */

/* The numbers of ONNX's TensorProto.DataType. Not every operator supports every type. */
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

/* The name of a type: "float", "uint8", "int4", …; "undefined" for any other number. Static. */
QSIM_API const char *qsim_dtype_name(int32_t dtype);

/* The bits of one element: 32 for float, 4 for int4, …; 0 for strings and unknown types. */
QSIM_API int32_t qsim_dtype_bits(int32_t dtype);

/* ---- memory, log, progress, threads ------------------------------------------------------- */

/*
 * An allocator. Frozen layout. `alloc` returns `size` bytes aligned to `align` (a power of two), or
 * NULL. `free` gets the size that `alloc` was asked for. Several threads may call both at once.
 * `user` is passed to both, here and in all callbacks of the library.
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
 * Receives one message of the log: UTF-8, without a line end. `level` is QSIM_LOG_*. The wording is
 * for people and may change. The function runs on whichever thread called the library.
 */
typedef void (*qsim_log_fn)(void *user, int32_t level, const char *line);

/*
 * Receives the progress of long work: `done` of `total` steps are done; `what` names the current
 * step (a node, a file). A result other than 0 cancels the work, which ends with QSIM_E_CANCELLED.
 */
typedef int32_t (*qsim_progress_fn)(void *user, const char *what, uint64_t done, uint64_t total);

/* One part of the library's parallel work, which a qsim_parallel_fn calls. */
typedef void (*qsim_task_fn)(void *arg, size_t i);
/*
 * The application's own parallel loop: it calls task(arg, i) once for every i in [0, n), on any
 * threads and in any order, and returns when all calls have returned. It may be serial.
 */
typedef void (*qsim_parallel_fn)(void *user, size_t n, qsim_task_fn task, void *arg);

/*
 * Instruction sets that have kernels of their own. AUTO is the fastest one that the CPU has and
 * this build contains. The numbers are names: a larger number is not a faster instruction set.
 * Later versions may add some, without gaps: counting up from 0, qsim_isa_name gives NULL first
 * after the last one.
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
 * Intel's AMX: tile registers in addition to AVX512VNNI. A process needs the operating system's
 * permission to use them. On Linux qsim_ctx_create asks for it if `isa` is AMX, or if it is AUTO
 * and the CPU has AMX. The permission then holds for all threads and child processes, and signal
 * frames grow by 8 KB: sigaltstack() refuses stacks smaller than sysconf(_SC_MINSIGSTKSZ). If Linux
 * refuses (an alternate signal stack is too small, or a filter forbids the call), AUTO is
 * AVX512VNNI. An application that does not want this sets `isa` to AVX512VNNI.
 */
#define QSIM_ISA_AMX 8

/* The name that `qsim --isa` takes: "auto", "c", "avx2", …; NULL: no such number. Static. */
QSIM_API const char *qsim_isa_name(int32_t isa);

/* ---- context ------------------------------------------------------------------------------ */

/* A context: allocator, log, instruction set, kernels, threads and limits. */
typedef struct qsim_ctx qsim_ctx;

/*
 * Limits for all objects of a context together, and for files. 0 means the default. A call that
 * would exceed a limit fails with QSIM_E_LIMIT (`memory`: QSIM_E_NOMEM, `milliseconds`:
 * QSIM_E_TIME); the message, or of `memory` the hint, has the limit's name and value and the amount
 * needed. A rank over QSIM_MAX_RANK and JSON nested over 64 deep are always refused.
 */
typedef struct qsim_limits {
    size_t struct_size;    /* sizeof(qsim_limits) */
    uint64_t memory;       /* bytes allocated at once, without mapped files; default: no limit */
    uint64_t milliseconds; /* since the context was created; default: no limit */
    uint64_t file;         /* bytes of a file; default: 1 TiB */
    uint64_t stream;       /* bytes of a pipe, or of a file read into memory; default: 16 GiB */
    uint64_t nodes;        /* nodes of a model and its subgraphs; default: 4,000,000 */
    uint64_t values;       /* tensors that a graph names; default: 16,000,000 */
    uint64_t elements;     /* elements of one constant; default: 2^40 */
    uint64_t attributes;   /* attributes of one node; default: 1,000 */
    uint64_t nesting;      /* depth of subgraphs in subgraphs; default and maximum: 16 */
    uint64_t entries;      /* entries of a package; default and maximum: 4096 */
    uint64_t ratio;        /* inflated bytes of a package per byte of its file; default: 100 */
    uint64_t threads;      /* threads of a context; default: 1024 */
} qsim_limits;

typedef struct qsim_ctx_options {
    size_t struct_size;              /* sizeof(qsim_ctx_options) */
    const qsim_allocator *allocator; /* copied; NULL: malloc and free of the C library */
    qsim_log_fn log;                 /* receives warnings; NULL: none */
    void *log_user;
    qsim_parallel_fn parallel_for; /* NULL: the context has a pool of `threads` threads */
    void *parallel_user;
    int32_t threads;           /* 0: one for each CPU that this process may use */
    int32_t isa;               /* QSIM_ISA_*; QSIM_E_UNSUPPORTED if the CPU or the build lacks it */
    const qsim_limits *limits; /* copied; NULL: the defaults */
} qsim_ctx_options;

/*
 * Creates a context. `options` may be NULL. The caller frees it with qsim_ctx_free.
 * Errors: ARGUMENT, VERSION, UNSUPPORTED, LIMIT (threads), NOMEM.
 *
 * After fork() both processes may use the context and both free it; the child starts threads of its
 * own when it needs them. If another thread was using an object during fork(), the child may only
 * free that object.
 */
QSIM_API int qsim_ctx_create(const qsim_ctx_options *options, qsim_ctx **out, qsim_error *error);

/*
 * Releases the caller's reference. The context's memory is freed when the last object made with it
 * is freed.
 */
QSIM_API void qsim_ctx_free(qsim_ctx *ctx);

/* The instruction set of the kernels that this context uses, QSIM_ISA_*. */
QSIM_API int32_t qsim_ctx_isa(const qsim_ctx *ctx);

/*
 * The number of threads that share work, the calling one included. With parallel_for, it is the
 * largest number of tasks that work is split into. A context starts its threads at the first work
 * that is split, and ends them when it is freed. Reading, inspecting and writing files starts none,
 * but a file of 32 MB and more that was replaced or given up is closed by a thread of its own,
 * which then ends: the system takes long to release its pages.
 */
QSIM_API int32_t qsim_ctx_threads(const qsim_ctx *ctx);

/*
 * Cancels all calls on objects of this context while `on` is not 0: calls in progress and new ones
 * end with QSIM_E_CANCELLED. That holds for loading, session creation, calibration, quantization,
 * search, execution (also in the middle of a step) and saving. Objects stay usable; the results of
 * a cancelled call are undefined. To allow work again, wait until the cancelled calls have returned
 * and call this with 0. Any thread and any signal handler may call it; `ctx` may be NULL.
 */
QSIM_API void qsim_ctx_cancel(qsim_ctx *ctx, int32_t on);

/*
 * Copies the limits of a context to `limits`, with defaults filled in. The caller sets struct_size.
 * Errors: ARGUMENT (struct_size).
 */
QSIM_API int qsim_ctx_limits(const qsim_ctx *ctx, qsim_limits *limits);

/* The bytes that all objects of the context hold now; 0 if the context has no memory limit. */
QSIM_API uint64_t qsim_ctx_memory(const qsim_ctx *ctx);

/* 1 if this build has kernels for `isa` and this CPU can run them, else 0. Needs no context. */
QSIM_API int32_t qsim_isa_available(int32_t isa);

/* ---- tensors ------------------------------------------------------------------------------ */

/* The largest number of axes of a tensor. */
#define QSIM_MAX_RANK 16

/*
 * A view of a tensor. Frozen layout. It owns nothing: the function that makes the view says how
 * long `dims` and `data` live. Elements are contiguous in row-major order (last axis fastest).
 * Elements under 8 bits are packed, the first one in the low bits of a byte; unused bits of the
 * last byte are zero.
 */
typedef struct qsim_tensor {
    int32_t dtype;       /* QSIM_FLOAT, … */
    int32_t rank;        /* 0 (a scalar) to QSIM_MAX_RANK */
    const int64_t *dims; /* rank sizes, each >= 0; may be NULL when rank is 0 */
    void *data;          /* aligned to the element size */
    size_t bytes;        /* readable (or writable) bytes at data */
} qsim_tensor;

/* Bytes somewhere in memory. Frozen layout. */
typedef struct qsim_bytes {
    const void *data;
    size_t size;
} qsim_bytes;

/*
 * Sets `*elements` and `*bytes` to what a tensor of this type and shape has. `dims` holds `rank`
 * sizes. Either result pointer may be NULL.
 * Errors: DTYPE (unknown or string type), SHAPE (rank, negative size), LIMIT (does not fit size_t).
 */
QSIM_API int qsim_tensor_size(int32_t dtype, int32_t rank, const int64_t *dims, size_t *elements,
                              size_t *bytes);

#ifdef __cplusplus
}
#endif
#endif
