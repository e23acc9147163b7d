/* SPDX-License-Identifier: MIT */
/*
 * qsim/data.h - arrays from files (.npy, .npz, IDX, TensorProto), conversion of element types, and
 * files as bytes. To read a .npy file into the buffer `x` of a.bytes bytes:
 *
 *     qsim_file_open(NULL, "x.npy", 0, &f, &e);
 *     a.struct_size = sizeof(a);
 *     qsim_npy_parse(qsim_file_data(f), qsim_file_size(f), 0, &a, &e);
 *     qsim_array_read(&a, qsim_file_data(f), qsim_file_size(f), 0, a.dims[0], x, a.bytes, &e);
 *
 * The parsers neither evaluate expressions nor allocate memory. They check the sizes that a file
 * states against its bytes before using them. Any number of threads may call all functions at once;
 * an open .npz belongs to one thread at a time.
 */
#ifndef QSIM_DATA_H
#define QSIM_DATA_H

#include <qsim/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- arrays in memory --------------------------------------------------------------------- */

/*
 * Describes an array that a file holds: type, shape, and where and in which order its elements are.
 * It points to nothing. A file may be big-endian or in Fortran order; qsim_array_read converts
 * both.
 */
typedef struct qsim_array {
    size_t struct_size; /* sizeof(qsim_array), set by the caller */
    int64_t dims[QSIM_MAX_RANK];
    size_t offset;   /* of the first element in the file, in bytes */
    size_t elements; /* product of dims */
    size_t bytes;    /* of all elements */
    int32_t dtype;   /* QSIM_FLOAT, … */
    int32_t rank;    /* how many of dims are used */
    int32_t fortran; /* 1: Fortran order, first axis fastest */
    int32_t swapped; /* 1: in the byte order that this machine does not have */
} qsim_array;

/*
 * Parses the header of a .npy file, versions 1.0 to 3.0, and fills `array`. `data` points to `size`
 * bytes, which contain the whole header. `file_size` is the size of the whole file; 0 means `size`.
 * So the first bytes of a compressed file are enough. Element types: bool, (u)int8 to (u)int64,
 * float16, float, double.
 * Errors: ARGUMENT (NULL, struct_size), FORMAT (no .npy, malformed header, more or fewer bytes than
 * the shape needs), UNSUPPORTED (version; objects, structures, strings, complex numbers), LIMIT
 * (rank, sizes).
 */
QSIM_API int qsim_npy_parse(const void *data, size_t size, uint64_t file_size, qsim_array *array,
                            qsim_error *error);

/*
 * Parses an IDX file (the format of MNIST) of `size` bytes at `data`, not compressed, and fills
 * `array`. Element types: uint8, int8, int16, int32, float, double.
 * Errors: ARGUMENT (NULL, struct_size), FORMAT, LIMIT.
 */
QSIM_API int qsim_idx_parse(const void *data, size_t size, qsim_array *array, qsim_error *error);

/*
 * Copies elements from a file into `out`, in row-major order and this machine's byte order. `array`
 * is what qsim_npy_parse or qsim_idx_parse made of the same `size` bytes at `data`. Copied are
 * `count` positions of the first axis, from position `first` on (a scalar has one position).
 * `capacity` is the size of `out` in bytes.
 * Errors: ARGUMENT (first or count out of range, `out` too small, `array` does not fit the bytes),
 * VALUE (a bool that is neither 0 nor 1).
 */
QSIM_API int qsim_array_read(const qsim_array *array, const void *data, size_t size, int64_t first,
                             int64_t count, void *out, size_t capacity, qsim_error *error);

/*
 * Writes the header of a .npy file (version 1.0) for `tensor` into `header`. The file is this
 * header followed by the tensor's bytes. Returns the header's length, a multiple of 64, or an
 * error: UNSUPPORTED (a type that .npy does not have: int4, bfloat16, …), SHAPE (rank or size).
 */
#define QSIM_NPY_HEADER_MAX 512 /* the greatest length */
QSIM_API int qsim_npy_header(const qsim_tensor *tensor, char header[QSIM_NPY_HEADER_MAX]);

/*
 * Converts every element of `from` to the type of `to` and writes it into the buffer of `to`. The
 * shapes must be equal; the buffers must not overlap. To FLOAT, DOUBLE, FLOAT16 and BFLOAT16, from
 * BFLOAT16 and every type that qsim_npy_parse reads: rounded to the nearest value of the target
 * type, ties to even (64-bit integers to FLOAT16 and BFLOAT16: to DOUBLE first). To an integer
 * type, from integers and bool: exact; a value that does not fit fails with VALUE and leaves the
 * contents of `to` undefined. Errors: UNSUPPORTED (this pair of types), SHAPE, ARGUMENT (bytes do
 * not fit the shape), VALUE.
 */
QSIM_API int qsim_tensor_convert(const qsim_tensor *from, const qsim_tensor *to, qsim_error *error);

/* ---- .npz --------------------------------------------------------------------------------- */

/* An open .npz file: a zip archive whose members are .npy files. One thread at a time. */
typedef struct qsim_npz qsim_npz;

/*
 * Opens the .npz file of `size` bytes at `data`, which must stay unchanged until qsim_npz_free.
 * This call checks the name and header of every member and inflates no more than the headers. It
 * will never need options.
 * Errors: FORMAT (no zip, no members, a member that is no .npy or has another size than its header
 * says, two members of one name, a name with "..", a backslash or a control byte), UNSUPPORTED
 * (compression, encryption, element type), LIMIT, NOMEM.
 */
QSIM_API int qsim_npz_open(qsim_ctx *ctx, const void *data, size_t size, qsim_npz **out,
                           qsim_error *error);
QSIM_API void qsim_npz_free(qsim_npz *npz);
/* The number of members. */
QSIM_API int32_t qsim_npz_count(const qsim_npz *npz);
/*
 * The name of member `index`, from 0, without ".npy"; NULL if out of range. It lives as long as
 * `npz`.
 */
QSIM_API const char *qsim_npz_name(const qsim_npz *npz, int32_t index);
/*
 * Gives type, shape, elements and bytes of member `index`; offset, fortran and swapped mean nothing
 * here. Errors: ARGUMENT (index, struct_size).
 */
QSIM_API int qsim_npz_array(const qsim_npz *npz, int32_t index, qsim_array *array);
/*
 * Inflates member `index` into `out`, in row-major order. `capacity` is the size of `out` in bytes,
 * at least the `bytes` of qsim_npz_array. Errors: ARGUMENT (index, capacity), FORMAT (damaged),
 * VALUE (a bool that is neither 0 nor 1), NOMEM.
 */
QSIM_API int qsim_npz_read(qsim_npz *npz, int32_t index, void *out, size_t capacity,
                           qsim_error *error);

/* ---- TensorProto (.pb) -------------------------------------------------------------------- */

/*
 * Parses a serialized ONNX TensorProto of `size` bytes at `data`, and checks that it holds as many
 * elements as its dims say, in whichever field. Sets type, rank, dims, elements and bytes of
 * `array`; offset, fortran and swapped are 0. Errors: ARGUMENT (NULL, struct_size), FORMAT, DTYPE
 * (strings, unknown types), UNSUPPORTED (external data), LIMIT.
 */
QSIM_API int qsim_proto_parse(const void *data, size_t size, qsim_array *array, qsim_error *error);
/*
 * Decodes the elements of the same bytes into `out`, in row-major order. `capacity` is the size of
 * `out` in bytes. Errors: those of qsim_proto_parse; ARGUMENT (capacity).
 */
QSIM_API int qsim_proto_read(const void *data, size_t size, void *out, size_t capacity,
                             qsim_error *error);
/*
 * Serializes a tensor as a TensorProto with raw_data and the name `name` (NULL: none). Sets `*need`
 * to its size in bytes. If `capacity`, the size of `buffer`, is smaller, nothing is written and the
 * result is still QSIM_OK: call with capacity 0 to learn the size. Errors: ARGUMENT, DTYPE, SHAPE,
 * LIMIT.
 */
QSIM_API int qsim_proto_write(const qsim_tensor *tensor, const char *name, void *buffer,
                              size_t capacity, size_t *need);

/* ---- files -------------------------------------------------------------------------------- */

/* An open file, whose bytes are in memory, read-only. */
typedef struct qsim_file qsim_file;

/* Reads the file into memory instead of mapping it: for files that may shrink while in use. */
#define QSIM_FILE_COPY 1
/* Replaces an existing file when writing. Without this flag it fails with QSIM_E_EXISTS. */
#define QSIM_FILE_REPLACE 2

/*
 * Maps the file at `path` into memory. `flags` is 0 or QSIM_FILE_COPY. Directories, devices and
 * FIFOs are refused. Errors: IO, NOMEM, LIMIT (qsim_limits.file, .stream).
 */
QSIM_API int qsim_file_open(qsim_ctx *ctx, const char *path, int32_t flags, qsim_file **out,
                            qsim_error *error);
/* The bytes and their number; they live until qsim_file_close. */
QSIM_API const void *qsim_file_data(const qsim_file *file);
QSIM_API size_t qsim_file_size(const qsim_file *file);
QSIM_API void qsim_file_close(qsim_file *file);

/*
 * Writes the file `path`, which holds `count` pieces one after the other. `flags` is 0 or
 * QSIM_FILE_REPLACE. The bytes go to a temporary file in the same folder, which is flushed and then
 * renamed: after a crash or with a full disk an old file is as it was. Errors: EXISTS, IO, NOMEM.
 */
QSIM_API int qsim_file_write(qsim_ctx *ctx, const char *path, int32_t flags,
                             const qsim_bytes *pieces, size_t count, qsim_error *error);

#ifdef __cplusplus
}
#endif
#endif
