/* SPDX-License-Identifier: MIT */
/*
 * qsim/data.h - arrays from files: .npy, .npz and IDX; conversion of element types; whole files.
 *
 *     qsim_file_open(NULL, "x.npy", 0, &f, &e);
 *     a.struct_size = sizeof(a);
 *     qsim_npy_parse(qsim_file_data(f), qsim_file_size(f), 0, &a, &e);
 *     qsim_array_read(&a, qsim_file_data(f), qsim_file_size(f), 0, a.dims[0], x, a.bytes, &e);
 *
 * The parsers never evaluate expressions and never allocate. Sizes that a file states are checked
 * against its bytes before they are used. All functions are thread-safe.
 */
#ifndef QSIM_DATA_H
#define QSIM_DATA_H

#include <qsim/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- arrays in memory --------------------------------------------------------------------- */

/*
 * An array in the bytes of its file: type, shape, place and order of its elements. `struct_size` is
 * set by the caller. The file's data may be big-endian or in Fortran order, which qsim_array_read
 * converts.
 */
typedef struct qsim_array {
    size_t struct_size;
    int64_t dims[QSIM_MAX_RANK];
    size_t offset;   /* of the first element in the file */
    size_t elements; /* product of dims */
    size_t bytes;    /* of the elements */
    int32_t dtype;
    int32_t rank;
    int32_t fortran; /* 1: first axis fastest */
    int32_t swapped; /* 1: the other byte order than this machine's */
} qsim_array;

/*
 * Parses the header of a .npy file, versions 1.0 to 3.0. `size` bytes at `data` hold the header at
 * least; `file_size` is the size of the whole file where that is more (0: `size`), so that a member
 * of an archive can be judged before it is inflated. Element types: bool, (u)int8 to (u)int64,
 * float16, float, double.
 * Errors: FORMAT (no .npy, malformed header, more or fewer bytes than the shape says), UNSUPPORTED
 * (version; objects, structures, strings, complex numbers), LIMIT (rank, sizes).
 */
QSIM_API int qsim_npy_parse(const void *data, size_t size, uint64_t file_size, qsim_array *array,
                            qsim_error *error);

/*
 * Parses an IDX file (the format of MNIST): uint8, int8, int16, int32, float, double.
 * Errors: FORMAT, LIMIT.
 */
QSIM_API int qsim_idx_parse(const void *data, size_t size, qsim_array *array, qsim_error *error);

/*
 * Copies elements out of a parsed file's bytes, row-major and in this machine's byte order: of the
 * first axis, the `count` positions from `first` on (a scalar has one position). `capacity` is the
 * size of `out` in bytes.
 * Errors: ARGUMENT (range, capacity, `array` is not of these bytes), VALUE (a bool that is neither
 * 0 nor 1).
 */
QSIM_API int qsim_array_read(const qsim_array *array, const void *data, size_t size, int64_t first,
                             int64_t count, void *out, size_t capacity, qsim_error *error);

/*
 * Writes the header that goes before the bytes of a tensor to make a .npy file (version 1.0) into
 * `header` and returns its length, a multiple of 64. QSIM_E_UNSUPPORTED for types that .npy does
 * not have (int4, bfloat16, …), QSIM_E_SHAPE for a bad rank or size.
 */
#define QSIM_NPY_HEADER_MAX 512
QSIM_API int qsim_npy_header(const qsim_tensor *tensor, char header[QSIM_NPY_HEADER_MAX]);

/*
 * Converts every element of `from` to the type of `to`; the shapes must be equal, the buffers must
 * not overlap. To FLOAT and DOUBLE, from every type of qsim_npy_parse and BFLOAT16: exact where the
 * target can hold it, else rounded to the nearest (even). To an integer type, from integers and
 * bool: exact, a value that does not fit gives VALUE and leaves `to` undefined.
 * Errors: UNSUPPORTED (this pair of types), SHAPE, ARGUMENT (bytes do not fit the shape), VALUE.
 */
QSIM_API int qsim_tensor_convert(const qsim_tensor *from, const qsim_tensor *to, qsim_error *error);

/* ---- .npz --------------------------------------------------------------------------------- */

/* An open .npz: a zip whose members are .npy files. One thread at a time. */
typedef struct qsim_npz qsim_npz;

/*
 * Opens an .npz in memory, which must stay unchanged until qsim_npz_free. Every member's name and
 * header is checked here, before anything is inflated beyond its header. Never needs options.
 * Errors: FORMAT (no zip, no members, a member that is no .npy or says another size, two members of
 * one name, a name with "..", a backslash or a control byte), UNSUPPORTED (compression, encryption,
 * element type), LIMIT, NOMEM.
 */
QSIM_API int qsim_npz_open(qsim_ctx *ctx, const void *data, size_t size, qsim_npz **out,
                           qsim_error *error);
QSIM_API void qsim_npz_free(qsim_npz *npz);
/* How many members there are. */
QSIM_API int32_t qsim_npz_count(const qsim_npz *npz);
/* A member's name without ".npy"; NULL out of range. */
QSIM_API const char *qsim_npz_name(const qsim_npz *npz, int32_t index);
/*
 * Type and shape of a member; ignore its offset, fortran and swapped. Errors:
 * ARGUMENT (index, struct_size).
 */
QSIM_API int qsim_npz_array(const qsim_npz *npz, int32_t index, qsim_array *array);
/* Inflates a member into `out`, row-major. Errors: ARGUMENT, FORMAT (damaged), VALUE, NOMEM. */
QSIM_API int qsim_npz_read(qsim_npz *npz, int32_t index, void *out, size_t capacity,
                           qsim_error *error);

/* ---- TensorProto (.pb) -------------------------------------------------------------------- */

/*
 * Parses a serialized ONNX TensorProto and checks that it holds exactly the elements that its dims
 * say, in whichever field. Type, rank, dims, elements and bytes of `array` are set; its other
 * fields are 0. Errors: FORMAT, DTYPE (strings, unknown), UNSUPPORTED (external data), LIMIT.
 */
QSIM_API int qsim_proto_parse(const void *data, size_t size, qsim_array *array, qsim_error *error);
/* Decodes the elements of a TensorProto into `out`, row-major. Errors: as above, ARGUMENT. */
QSIM_API int qsim_proto_read(const void *data, size_t size, void *out, size_t capacity,
                             qsim_error *error);
/*
 * Serializes a tensor with raw_data. `*need` is set to the size; if `capacity` is smaller, nothing
 * is written and the result is still QSIM_OK. `name` may be NULL. Errors: ARGUMENT, DTYPE, SHAPE,
 * LIMIT.
 */
QSIM_API int qsim_proto_write(const qsim_tensor *tensor, const char *name, void *buffer,
                              size_t capacity, size_t *need);

/* ---- files -------------------------------------------------------------------------------- */

/* The bytes of a file, read-only. */
typedef struct qsim_file qsim_file;

/* Reads the file into memory instead of mapping it: for files that may shrink while in use. */
#define QSIM_FILE_COPY 1
/* For writing: an existing file is replaced; without it that is QSIM_E_EXISTS. */
#define QSIM_FILE_REPLACE 2

/* Maps a file. Directories, devices and FIFOs are refused. Errors: IO, NOMEM. */
QSIM_API int qsim_file_open(qsim_ctx *ctx, const char *path, int32_t flags, qsim_file **out,
                            qsim_error *error);
/* The bytes and their number; they live until qsim_file_close. */
QSIM_API const void *qsim_file_data(const qsim_file *file);
QSIM_API size_t qsim_file_size(const qsim_file *file);
QSIM_API void qsim_file_close(qsim_file *file);

/* Bytes somewhere in memory. Frozen layout. */
typedef struct qsim_bytes {
    const void *data;
    size_t size;
} qsim_bytes;

/*
 * Writes `count` pieces one after the other into a temporary file beside `path`, flushes it and
 * renames it: a crash or a full disk leaves an old file as it was. Errors: EXISTS, IO, NOMEM.
 */
QSIM_API int qsim_file_write(qsim_ctx *ctx, const char *path, int32_t flags,
                             const qsim_bytes *pieces, size_t count, qsim_error *error);

#ifdef __cplusplus
}
#endif
#endif
