/* SPDX-License-Identifier: MIT */
/* Recognizes other files that are given in place of an ONNX model, to name their format. */
#include "onnx/reader.h"

struct magic {
    const char *bytes;
    uint16_t offset, size;
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
    {M("II*\0"), "a TIFF image", "an image is an input, not a model"},
    {M("MM\0*"), "a TIFF image", "an image is an input, not a model"},
    {"WEBP", 8, 4, "a WebP image", "an image is an input, not a model"},
    {"WAVE", 8, 4, "a .wav sound", "a sound is an input, not a model"},
    {M("\0\0\x08"), "an IDX array", "an array is an input, not a model"},
    {M("\x93NUMPY"), "a .npy array", "an array is an input, not a model"},
    {M("\x89HDF"), "an HDF5 file (Keras?)", "export it to ONNX first"},
    {"TFL3", 4, 4, "a TensorFlow Lite model", "convert it to ONNX first"},
    {"ORTM", 4, 4, "an ORT-format model", "take the .onnx file that it was made from"},
    {M("\x80\x02"), "a Python pickle (PyTorch?)", "export it to ONNX first"},
    {M("\x80\x03"), "a Python pickle (PyTorch?)", "export it to ONNX first"},
    {M("\x80\x04"), "a Python pickle (PyTorch?)", "export it to ONNX first"},
    {M("\x80\x05"), "a Python pickle (PyTorch?)", "export it to ONNX first"},
    {M("GGUF"), "a GGUF file (llama.cpp)", "take the ONNX form of that model"},
    {M("7767517\n"), "an ncnn model", "take the ONNX file that it was made from"},
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

/* Recognizes HTML, XML and JSON by a first character that no ONNX file begins with. */
static const char *markup(qs_span file) {
    qs_span s = skip_blanks(file);
    if (s.size < 2)
        return NULL;
    if (s.data[0] == '<')
        return s.data[1] == '?' ? "an XML document (OpenVINO?)" : "an HTML page";
    if (s.data[0] == '{' && (s.data[1] == '"' || s.data[1] == '\n' || s.data[1] == '\r'))
        return "JSON text";
    return NULL;
}

/* Whether a file is text; the first bytes of an ONNX file include some below 32. */
static bool is_text(qs_span file) {
    bool lines = false;
    const size_t most = 256, n = file.size < most ? file.size : most;
    for (size_t i = 0; i < n; i++) {
        uint8_t c = file.data[i];
        if (c == 127 || (c < 32 && c != '\n' && c != '\r' && c != '\t'))
            return false;
        lines = lines || c == '\n';
    }
    return lines || n == most;
}

/* Whether a file is in safetensors format: the size of a JSON text, and then the text. */
static bool is_safetensors(qs_span f) {
    return f.size > 10 && f.data[8] == '{' && f.data[9] == '"' && f.data[7] == 0 && f.data[6] == 0;
}

/* Whether a file is a bitmap, which has four reserved bytes that are 0. */
static bool is_bmp(qs_span f) {
    return f.size > 26 && memcmp(f.data, "BM", 2) == 0 && memcmp(f.data + 6, "\0\0\0\0", 4) == 0;
}

/* Skips tag `tag` and a length; false: another tag is there. */
static bool skip_tag(qs_span *f, uint8_t tag) {
    if (f->size < 3 || f->data[0] != tag)
        return false;
    size_t n = 1;
    while (n < f->size && n < 10 && f->data[n] & 0x80)
        n++;
    *f = (qs_span){f->data + n + 1, f->size - n - 1 < f->size ? f->size - n - 1 : 0};
    return true;
}

/*
 * GraphDef is a list of nodes, field 1, that begin with a name, field 1, and an operator, field 2;
 * ONNX has a number in field 1. SavedModel has the number 1 in field 1, and then field 2, a message
 * that begins with another one in field 1.
 */
static const char *tensorflow(qs_span f) {
    qs_span node = f, saved = f;
    if (skip_tag(&node, 0x0a) && node.size > 2 && node.data[0] == 0x0a &&
        node.data[1] + 2u < node.size && node.data[node.data[1] + 2u] == 0x12)
        return "a TensorFlow graph (frozen .pb)";
    if (f.size > 4 && f.data[0] == 8 && f.data[1] == 1) {
        saved = (qs_span){f.data + 2, f.size - 2};
        if (skip_tag(&saved, 0x12) && saved.size > 0 && saved.data[0] == 0x0a)
            return "a TensorFlow SavedModel";
    }
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
    if (is_safetensors(file))
        return refuse(error, name, "a safetensors file (weights without a graph)",
                      "export the model to ONNX: torch.onnx.export");
    if (is_bmp(file))
        return refuse(error, name, "a BMP image", "an image is an input, not a model");
    text = tensorflow(file);
    if (text)
        return refuse(error, name, text, "convert it to ONNX first: tf2onnx");
    if (is_text(file))
        return refuse(error, name, "lines of text (a table?)", "a table is an input, not a model");
    size_t zeros = 0;
    while (zeros < file.size && zeros < 64 && file.data[zeros] == 0)
        zeros++;
    if (zeros == file.size || zeros == 64)
        return refuse(error, name, "it begins with zero bytes", "was the download interrupted?");
    return QSIM_OK;
}
