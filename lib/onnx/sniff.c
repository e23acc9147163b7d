/* SPDX-License-Identifier: MIT */
/* Files that people hand over in place of a model. */
#include "onnx/reader.h"

struct magic {
    const char *bytes;
    size_t offset, size;
    const char *what, *hint;
};

#define M(text) text, 0, sizeof(text) - 1
static const struct magic magics[] = {
    {M("version https://git-lfs"), "a Git LFS pointer", "fetch the file itself: git lfs pull"},
    {M("PK\3\4"), "a zip archive", "unpack it, or pass it where a package is taken"},
    {M("PK\5\6"), "an empty zip archive", ""},
    {M("\x1f\x8b"), "gzip data", "decompress it first: gunzip"},
    {M("\x78\x01"), "zlib data", "decompress it first"},
    {M("\x78\x9c"), "zlib data", "decompress it first"},
    {M("\x78\xda"), "zlib data", "decompress it first"},
    {M("\xfd\x37zXZ"), "xz data", "decompress it first: unxz"},
    {M("\x28\xb5\x2f\xfd"), "zstd data", "decompress it first: unzstd"},
    {M("BZh"), "bzip2 data", "decompress it first: bunzip2"},
    {M("\x89PNG"), "a PNG image", "an image is an input, not a model"},
    {M("\xff\xd8\xff"), "a JPEG image", "an image is an input, not a model"},
    {M("GIF8"), "a GIF image", "an image is an input, not a model"},
    {M("\x93NUMPY"), "a .npy array", "an array is an input, not a model"},
    {M("\x89HDF"), "an HDF5 file (Keras?)", "export it to ONNX first"},
    {"TFL3", 4, 4, "a TensorFlow Lite model", "convert it to ONNX first"},
    {"ORTM", 4, 4, "an ORT-format model", "take the .onnx file that it was made from"},
    {M("\x80\x02"), "a Python pickle (PyTorch?)", "export it to ONNX first"},
    {M("\x80\x03"), "a Python pickle (PyTorch?)", "export it to ONNX first"},
    {M("\x80\x04"), "a Python pickle (PyTorch?)", "export it to ONNX first"},
    {M("\x80\x05"), "a Python pickle (PyTorch?)", "export it to ONNX first"},
    {M("\x7f"
       "ELF"),
     "an ELF binary", ""},
    {M("%PDF"), "a PDF document", ""},
};

static int refuse(qsim_error *error, const char *name, const char *what, const char *hint) {
    qs_fail(error, QSIM_E_FORMAT, "%s: not an ONNX model: %s", name, what);
    if (hint[0])
        qs_hint(error, "%s", hint);
    return QSIM_E_FORMAT;
}

static qs_span skip_blanks(qs_span s) {
    if (s.size >= 3 && memcmp(s.data, "\xef\xbb\xbf", 3) == 0)
        s = (qs_span){s.data + 3, s.size - 3};
    while (s.size > 0 && (s.data[0] == ' ' || (s.data[0] >= '\t' && s.data[0] <= '\r')))
        s = (qs_span){s.data + 1, s.size - 1};
    return s;
}

/* HTML, XML and JSON: text whose first visible character no ONNX file can begin with. */
static const char *markup(qs_span file) {
    qs_span s = skip_blanks(file);
    if (s.size < 2)
        return NULL;
    if (s.data[0] == '<')
        return s.data[1] == '?' ? "an XML document" : "an HTML page";
    if (s.data[0] == '{' && (s.data[1] == '"' || s.data[1] == '\n' || s.data[1] == '\r'))
        return "JSON text";
    return NULL;
}

int qs_sniff(qs_span file, const char *name, qsim_error *error) {
    if (file.size == 0)
        return refuse(error, name, "the file is empty", "was the download interrupted?");
    for (size_t i = 0; i < QS_COUNT(magics); i++) {
        const struct magic *m = &magics[i];
        if (file.size >= m->offset + m->size &&
            memcmp(file.data + m->offset, m->bytes, m->size) == 0)
            return refuse(error, name, m->what, m->hint);
    }
    const char *text = markup(file);
    if (text)
        return refuse(error, name, text, "was an error page saved in place of the model?");
    size_t zeros = 0;
    while (zeros < file.size && zeros < 64 && file.data[zeros] == 0)
        zeros++;
    if (zeros == file.size || zeros == 64)
        return refuse(error, name, "it begins with zero bytes", "was the download interrupted?");
    return QSIM_OK;
}
