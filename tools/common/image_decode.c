/* SPDX-License-Identifier: MIT */
/* PNG, JPEG and WebP through the distribution's libraries. */
#include <stdlib.h>
#include <string.h>

#include "common/image.h"

#ifdef TOOL_PNG
#include <png.h>

bool image_decode_png(const void *data, size_t size, image *out, const char **why) {
    png_image png;
    memset(&png, 0, sizeof(png));
    png.version = PNG_IMAGE_VERSION;
    *why = "is not a readable PNG";
    if (!png_image_begin_read_from_memory(&png, data, size))
        return false;
    png.format = PNG_FORMAT_RGBA;
    unsigned char *rgba = image_alloc(png.width, png.height, 4);
    out->pixels = image_alloc(png.width, png.height, 3);
    out->width = (int32_t)png.width;
    out->height = (int32_t)png.height;
    out->channels = 3;
    bool good = rgba && out->pixels && png_image_finish_read(&png, NULL, rgba, 0, NULL);
    for (size_t i = 0; good && i < (size_t)png.width * png.height; i++)
        memcpy(out->pixels + i * 3, rgba + i * 4, 3); /* transparent pixels keep their colour */
    free(rgba);
    png_image_free(&png);
    return good;
}
#else
bool image_decode_png(const void *data, size_t size, image *out, const char **why) {
    (void)data, (void)size, (void)out;
    *why = "is a PNG, and this qsim was built without libpng (Debian: libpng-dev)";
    return false;
}
#endif

#ifdef TOOL_JPEG
#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>

typedef struct trap {
    struct jpeg_error_mgr base;
    jmp_buf back;
} trap;

static void spring(j_common_ptr info) {
    trap *t = (trap *)info->err;
    longjmp(t->back, 1);
}

static void say_nothing(j_common_ptr info) {
    (void)info;
}

/* A function of its own, so that no variable lives across the longjmp. */
static bool decode(struct jpeg_decompress_struct *jpeg, image *out) {
    if (jpeg_read_header(jpeg, TRUE) != JPEG_HEADER_OK)
        return false;
    jpeg->out_color_space = JCS_RGB;
    jpeg->dct_method = JDCT_ISLOW;
    out->pixels = image_alloc(jpeg->image_width, jpeg->image_height, 3);
    if (!out->pixels || !jpeg_start_decompress(jpeg) || jpeg->output_components != 3)
        return false;
    out->width = (int32_t)jpeg->output_width;
    out->height = (int32_t)jpeg->output_height;
    out->channels = 3;
    while (jpeg->output_scanline < jpeg->output_height) {
        JSAMPROW row = out->pixels + (size_t)jpeg->output_scanline * jpeg->output_width * 3;
        if (jpeg_read_scanlines(jpeg, &row, 1) != 1)
            return false;
    }
    return true;
}

bool image_decode_jpeg(const void *data, size_t size, image *out, const char **why) {
    struct jpeg_decompress_struct jpeg;
    trap errors;
    memset(&jpeg, 0, sizeof(jpeg));
    jpeg.err = jpeg_std_error(&errors.base);
    errors.base.error_exit = spring;
    errors.base.output_message = say_nothing;
    *why = "is not a readable JPEG";
    if (setjmp(errors.back)) {
        jpeg_destroy_decompress(&jpeg);
        return false;
    }
    jpeg_create_decompress(&jpeg);
    jpeg_mem_src(&jpeg, data, (unsigned long)size);
    bool good = decode(&jpeg, out);
    jpeg_destroy_decompress(&jpeg);
    if (good)
        image_orient(out, image_jpeg_orientation(data, size));
    return good;
}
#else
bool image_decode_jpeg(const void *data, size_t size, image *out, const char **why) {
    (void)data, (void)size, (void)out;
    *why = "is a JPEG, and this qsim was built without libjpeg (Debian: libjpeg-dev)";
    return false;
}
#endif

#ifdef TOOL_WEBP
#include <webp/decode.h>

bool image_decode_webp(const void *data, size_t size, image *out, const char **why) {
    int width = 0, height = 0;
    *why = "is not a readable WebP";
    if (!WebPGetInfo(data, size, &width, &height))
        return false;
    out->pixels = image_alloc(width, height, 3);
    out->width = width;
    out->height = height;
    out->channels = 3;
    size_t bytes = (size_t)width * (size_t)height * 3;
    return out->pixels && WebPDecodeRGBInto(data, size, out->pixels, bytes, width * 3) != NULL;
}
#else
bool image_decode_webp(const void *data, size_t size, image *out, const char **why) {
    (void)data, (void)size, (void)out;
    *why = "is a WebP, and this qsim was built without libwebp (Debian: libwebp-dev)";
    return false;
}
#endif
