/* SPDX-License-Identifier: MIT */
/* Data of the command-line tests: arrays, pictures, sounds and other files. */
#include "fixtures.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void need(int code, const char *what) {
    if (code == QSIM_OK)
        return;
    fprintf(stderr, "fixtures: %s: %s\n", what, qsim_error_name(code));
    exit(1);
}

void write_file(const char *path, const void *head, size_t head_size, const void *body,
                size_t body_size) {
    qsim_bytes pieces[] = {{head, head_size}, {body, body_size}};
    need(qsim_file_write(NULL, path, QSIM_FILE_REPLACE, pieces, 2, NULL), path);
}

void write_npy(const char *path, int32_t dtype, int32_t rank, const int64_t *dims,
               const void *data) {
    char header[QSIM_NPY_HEADER_MAX];
    size_t bytes = 0;
    qsim_tensor t = {dtype, rank, dims, NULL, 0};
    need(qsim_tensor_size(dtype, rank, dims, NULL, &bytes), path);
    write_file(path, header, (size_t)qsim_npy_header(&t, header), data, bytes);
}

/* Pseudo-random values between -1 and 1. */
float *values(size_t count, uint32_t seed) {
    float *v = malloc(count * sizeof(*v));
    for (size_t i = 0; v && i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        v[i] = (float)(int32_t)(seed >> 8 & 0xffff) / 32768.0f - 1.0f;
    }
    return v;
}

/* Eight samples for id.onnx; the label of the last one is not its greatest number. */
static void make_labelled(void) {
    float x[24] = {0};
    int64_t y[8];
    for (int i = 0; i < 8; i++) {
        x[i * 3 + i % 3] = 1;
        y[i] = i < 7 ? i % 3 : 0;
    }
    write_npy("x3.npy", QSIM_FLOAT, 2, (int64_t[]){8, 3}, x);
    write_npy("y3.npy", QSIM_INT64, 1, (int64_t[]){8}, y);
    y[2] = 3;
    write_npy("y_bad.npy", QSIM_INT64, 1, (int64_t[]){8}, y);
    write_npy("y_few.npy", QSIM_INT64, 1, (int64_t[]){7}, y);
}

static void make_arrays(void) {
    static const float a[] = {1, -2}, b[] = {10, 1};
    float *x = values(32 * 4, 3), nan_row[4] = {0};
    double wide[128];
    int64_t integers[] = {1, 2, 3, 4};
    for (int i = 0; i < 128; i++)
        wide[i] = (double)x[i];
    write_npy("x4.npy", QSIM_FLOAT, 2, (int64_t[]){32, 4}, x);
    write_npy("zero4.npy", QSIM_FLOAT, 2, (int64_t[]){32, 4}, (float[128]){0});
    write_npy("x4_f8.npy", QSIM_DOUBLE, 2, (int64_t[]){32, 4}, wide);
    write_npy("x4_i8.npy", QSIM_INT64, 2, (int64_t[]){1, 4}, integers);
    for (int i = 64; i < 128; i++)
        x[i] /= 8;
    write_npy("x4_drift.npy", QSIM_FLOAT, 2, (int64_t[]){32, 4}, x); /* its second half is x4 / 8 */
    write_npy("a.npy", QSIM_FLOAT, 2, (int64_t[]){1, 2}, a);
    write_npy("b.npy", QSIM_FLOAT, 2, (int64_t[]){1, 2}, b);
    memset(nan_row, 0xff, sizeof(nan_row));
    write_npy("nan.npy", QSIM_FLOAT, 2, (int64_t[]){1, 4}, nan_row);
    free(x);
}

/* Six pictures, white in the lower half where the label is 1. */
static void make_pictures(void) {
    uint8_t head[16] = {0, 0, 8, 3, 0, 0, 0, 6, 0, 0, 0, 4, 0, 0, 0, 4}, pixels[96] = {0};
    uint8_t label_head[8] = {0, 0, 8, 1, 0, 0, 0, 6}, labels[6];
    for (int i = 0; i < 6; i++) {
        labels[i] = (uint8_t)(i % 2);
        memset(pixels + i * 16 + i % 2 * 8, 255, 8);
    }
    write_file("images.idx3-ubyte", head, 16, pixels, 96);
    write_file("labels.idx1-ubyte", label_head, 8, labels, 6);
    write_npy("pixels.npy", QSIM_UINT8, 3, (int64_t[]){6, 4, 4}, pixels);
    for (int i = 0; i < 6; i++) {
        char name[] = "picture0.pgm";
        name[7] = (char)('0' + i);
        write_file(name, "P5\n# drawn\n4 4\n255\n", 19, pixels + i * 16, 16);
    }
}

/* A .wav of 16 bits. */
static void write_wav(const char *path, uint8_t channels, uint16_t rate, const int16_t *samples,
                      uint8_t bytes) {
    uint8_t head[44] = "RIFF....WAVEfmt \20\0\0\0\1\0";
    memcpy(head + 36, "data", 4);
    memset(head + 4, 0, 4);
    head[4] = (uint8_t)(36 + bytes);
    head[22] = channels;
    head[24] = (uint8_t)rate;
    head[25] = (uint8_t)(rate >> 8);
    head[32] = (uint8_t)(2 * channels);
    head[34] = 16;
    head[40] = bytes;
    write_file(path, head, sizeof(head), samples, bytes);
}

/* A zip archive with one empty entry, like files of PyTorch. */
static void write_zip(const char *path, const char *entry) {
    uint8_t file[256] = "PK\3\4\24", *p = file + 30, n = (uint8_t)strlen(entry);
    file[26] = n;
    memcpy(p, entry, n);
    p += n;
    uint8_t directory = (uint8_t)(p - file);
    memcpy(p, "PK\1\2\24\0\24", 7);
    p[28] = n;
    memcpy(p + 46, entry, n);
    p += 46 + n;
    memcpy(p, "PK\5\6", 4);
    p[8] = p[10] = 1;
    p[12] = (uint8_t)(p - file - directory);
    p[16] = directory;
    write_file(path, file, (size_t)(p + 22 - file), NULL, 0);
}

/* Files that are one sample each. */
static void make_samples(void) {
    static const int16_t tone[] = {0, 8192, 16384, 8192, 0, -8192, -16384, -8192};
    static const uint8_t red[] = {'B', 'M', 62, 0, 0, 0, 0,   0,   0,   0,   58, 0, 0, 0, 40, 0,
                                  0,   0,   1,  0, 0, 0, 255, 255, 255, 255, 1,  0, 8, 0, 0,  0,
                                  0,   0,   4,  0, 0, 0, 0,   0,   0,   0,   0,  0, 0, 0, 1,  0,
                                  0,   0,   0,  0, 0, 0, 0,   0,   255, 0,   0,  0, 0, 0};
    write_file("white.ppm", "P6 1 1 255\n\377\377\377", 14, NULL, 0);
    write_file("colours.ppm", "P6 2 1 255\n\377\0\0\0\0\377", 17, NULL, 0);
    write_file("red.bmp", red, sizeof(red), NULL, 0);
    write_wav("tone.wav", 1, 16000, tone, sizeof(tone));
    write_wav("stereo.wav", 2, 44100, tone, sizeof(tone));
}

void make_data(void) {
    static const char html[] = "<html><body>404</body></html>\n";
    make_labelled();
    make_arrays();
    make_pictures();
    make_samples();
    write_zip("model.pt", "model/data.pkl");
    write_zip("other.zip", "readme.txt");
    write_file("junk.onnx", html, sizeof(html) - 1, NULL, 0);
    write_file("names.txt", "zero\none\ntwo, \"2\"\n", 18, NULL, 0);
}
