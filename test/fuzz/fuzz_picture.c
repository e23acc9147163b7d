/* SPDX-License-Identifier: MIT */
/* libFuzzer target: bytes as a BMP, PGM or PPM; accepted pictures are resized and padded. */
#include <string.h>

#include "common/image.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const preprocess how = {.letterbox = {20, 10}};
    static const int32_t any[] = {-1, -1};
    const tool t = {.quiet = true, .state = &(tool_state){.error = NULL}};
    const char *why;
    image im = {0};
    bool pnm = size > 0 && data[0] == 'P';
    bool good = (pnm ? image_decode_pnm : image_decode_bmp)(data, size, &im, &why);
    size_t pixels = (size_t)im.width * (size_t)im.height;
    if (good &&
        pixels * (size_t)im.channels / 64 > size) /* one bit gives at most a pixel of 3 bytes */
        abort();
    if (good && pixels < 100000 && image_fit(&t, "fuzz", &how, any, &im) != EXIT_OK)
        abort();
    free(im.pixels);
    return 0;
}

/* BMPs of 5 x 3 of each depth, with masks, upside down; a PGM and a PPM. */
size_t fuzz_seed(size_t index, uint8_t *buffer, size_t capacity) {
    static const uint8_t depth[] = {1, 4, 8, 24, 32, 32, 24};
    static const char *const pnm[] = {"P5 4 2 255\nabcdefgh", "P6 # a comment\n2 1\n255\nabcdef"};
    size_t bmps = sizeof(depth), size;
    if (capacity < 512 || index >= bmps + 2)
        return 0;
    if (index >= bmps) {
        size = strlen(pnm[index - bmps]);
        memcpy(buffer, pnm[index - bmps], size);
        return size;
    }
    memset(buffer, 0, 512);
    memcpy(buffer, "BM", 2);
    buffer[14] = 40;
    buffer[18] = 5;
    buffer[22] = index == 6 ? 253 : 3;
    memset(buffer + 23, index == 6 ? 255 : 0, 3);
    buffer[28] = depth[index];
    buffer[30] = index == 5 ? 3 : 0;
    size = 54;
    if (index == 5) {
        memcpy(buffer + 54, "\377\0\0\0\0\377\0\0\0\0\377", 12);
        size += 12;
    }
    if (depth[index] <= 8) {
        buffer[46] = 2;
        memset(buffer + 58, 255, 3);
        size += 8;
    }
    buffer[10] = (uint8_t)size;
    return size + (5u * depth[index] + 31) / 32 * 4 * 3;
}
