/* SPDX-License-Identifier: MIT */
/* PNG, JPEG and WebP through the distribution's libraries. */
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "common/image.h"

#ifdef TOOL_PNG
#include <png.h>

typedef struct png_bytes {
    const unsigned char *at;
    size_t left;
} png_bytes;

static void take_bytes(png_structp png, png_bytep out, size_t size) {
    png_bytes *b = png_get_io_ptr(png);
    if (size > b->left)
        png_error(png, "too short");
    memcpy(out, b->at, size);
    b->at += size;
    b->left -= size;
}

static void stop(png_structp png, png_const_charp why) {
    (void)why;
    png_longjmp(png, 1);
}

static void go_on(png_structp png, png_const_charp why) {
    (void)png, (void)why;
}

static png_voidp png_memory(png_structp png, png_alloc_size_t size) {
    (void)png;
    return tool_alloc(size, 1);
}

static void png_release(png_structp png, png_voidp memory) {
    (void)png;
    free(memory);
}

/*
 * RGB of 8 bits as Pillow and OpenCV make it, on whose values models were trained: of 16 bits the
 * upper 8, transparent pixels with their colour, and no conversion by a gamma that the file tells.
 * Returns the number of passes over the rows.
 */
static int set_form(png_structp png, png_infop info) {
    png_set_strip_16(png);
    png_set_palette_to_rgb(png);
    png_set_expand_gray_1_2_4_to_8(png);
    png_set_strip_alpha(png);
    png_set_gray_to_rgb(png);
    const int passes = png_set_interlace_handling(png);
    png_read_update_info(png, info);
    return passes;
}

/* A function of its own, so that no variable lives across the longjmp. */
static bool read_png(png_structp png, png_infop info, image *out) {
    png_read_info(png, info);
    const png_uint_32 width = png_get_image_width(png, info),
                      height = png_get_image_height(png, info);
    const int passes = set_form(png, info);
    out->pixels = image_alloc(width, height, 3);
    if (!out->pixels || png_get_rowbytes(png, info) != (size_t)width * 3)
        return false;
    out->width = (int32_t)width;
    out->height = (int32_t)height;
    out->channels = 3;
    for (int pass = 0; pass < passes; pass++)
        for (png_uint_32 y = 0; y < height; y++)
            png_read_row(png, out->pixels + (size_t)y * width * 3, NULL);
    return true;
}

bool image_decode_png(const void *data, size_t size, image *out, const char **why) {
    png_bytes bytes = {data, size};
    *why = "is not a readable PNG";
    png_structp png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, NULL, stop, go_on, NULL,
                                               png_memory, png_release);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    bool good = false;
    if (info && setjmp(png_jmpbuf(png)) == 0) {
        png_set_read_fn(png, &bytes, take_bytes);
        good = read_png(png, info, out);
    }
    png_destroy_read_struct(&png, &info, NULL);
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

/* a * b / 255, rounded, for 0 to 255. */
static unsigned char product(unsigned a, unsigned b) {
    const unsigned p = a * b + 128;
    return (unsigned char)((p + (p >> 8)) >> 8);
}

/* A row of inks, which files hold inverted, as RGB in its beginning: Pillow's integers. */
static void mix_inks(unsigned char *row, JDIMENSION width) {
    for (JDIMENSION x = 0; x < width; x++) {
        const unsigned char *inks = row + (size_t)x * 4;
        const unsigned char light = inks[3];
        for (int c = 0; c < 3; c++)
            row[(size_t)x * 3 + (size_t)c] =
                (unsigned char)(light - product(255u - inks[c], light));
    }
}

/* A function of its own, so that no variable lives across the longjmp. */
static bool decode(struct jpeg_decompress_struct *jpeg, image *out) {
    if (jpeg_read_header(jpeg, TRUE) != JPEG_HEADER_OK)
        return false;
    const bool inks = jpeg->num_components == 4;
    jpeg->out_color_space = inks ? JCS_CMYK : JCS_RGB;
    jpeg->dct_method = JDCT_ISLOW;
    /* A row of inks is longer: the last one ends behind the pixels. */
    out->pixels = image_alloc(jpeg->image_width, (int64_t)jpeg->image_height + inks, 3);
    if (!out->pixels || !jpeg_start_decompress(jpeg) || jpeg->output_components != 3 + inks)
        return false;
    out->width = (int32_t)jpeg->output_width;
    out->height = (int32_t)jpeg->output_height;
    out->channels = 3;
    while (jpeg->output_scanline < jpeg->output_height) {
        JSAMPROW row = out->pixels + (size_t)jpeg->output_scanline * jpeg->output_width * 3;
        if (jpeg_read_scanlines(jpeg, &row, 1) != 1)
            return false;
        if (inks)
            mix_inks(row, jpeg->output_width);
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
