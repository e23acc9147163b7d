/* SPDX-License-Identifier: MIT */
/* Pictures as the tools read them: PNG without loss, JPEG nearly, sizes and crops. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../test.h"
#include "common/image.h"

#ifdef TOOL_PNG
#include <png.h>
#endif
#ifdef TOOL_JPEG
#include <jpeglib.h>
#endif

enum { WIDTH = 13, HEIGHT = 9 };

#if defined(TOOL_PNG) || defined(TOOL_JPEG)
/* Smooth, so that JPEG loses little. */
static void draw(unsigned char *rgb) {
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++) {
            unsigned char *p = rgb + (y * WIDTH + x) * 3;
            p[0] = (unsigned char)(10 * x + 40);
            p[1] = (unsigned char)(20 * y + 30);
            p[2] = (unsigned char)(100 + x + y);
        }
}

/* The decoded bytes, each within `off` of what was drawn; cut in half they are no picture. */
static void check_decoder(bool (*decode)(const void *, size_t, image *, const char **),
                          const void *data, size_t size, int off) {
    unsigned char rgb[WIDTH * HEIGHT * 3];
    image im = {0};
    const char *why = "";
    draw(rgb);
    CHECK(decode(data, size, &im, &why));
    CHECK(im.width == WIDTH && im.height == HEIGHT && im.channels == 3);
    int worst = 0;
    for (int i = 0; im.pixels && i < WIDTH * HEIGHT * 3; i++)
        worst = abs(im.pixels[i] - rgb[i]) > worst ? abs(im.pixels[i] - rgb[i]) : worst;
    CHECK(worst <= off);
    free(im.pixels);
    memset(&im, 0, sizeof(im));
    CHECK(!decode(data, 20, &im, &why) && *why);
    free(im.pixels);
}

#endif

#ifdef TOOL_PNG
static void check_png(void) {
    unsigned char rgb[WIDTH * HEIGHT * 3], file[4096];
    png_image png;
    png_alloc_size_t size = sizeof(file);
    memset(&png, 0, sizeof(png));
    png.version = PNG_IMAGE_VERSION;
    png.width = WIDTH;
    png.height = HEIGHT;
    png.format = PNG_FORMAT_RGB;
    draw(rgb);
    CHECK(png_image_write_to_memory(&png, file, &size, 0, rgb, 0, NULL));
    check_decoder(image_decode_png, file, size, 0);
}
#endif

#ifdef TOOL_JPEG
static void check_jpeg(void) {
    unsigned char rgb[WIDTH * HEIGHT * 3], *file = NULL;
    unsigned long size = 0;
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_compress(&jpeg);
    jpeg_mem_dest(&jpeg, &file, &size);
    jpeg.image_width = WIDTH;
    jpeg.image_height = HEIGHT;
    jpeg.input_components = 3;
    jpeg.in_color_space = JCS_RGB;
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, 100, TRUE);
    for (int i = 0; i < 3; i++) /* colour at full resolution */
        jpeg.comp_info[i].h_samp_factor = jpeg.comp_info[i].v_samp_factor = 1;
    jpeg_start_compress(&jpeg, TRUE);
    draw(rgb);
    for (int y = 0; y < HEIGHT; y++) {
        JSAMPROW row = rgb + y * WIDTH * 3;
        jpeg_write_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_compress(&jpeg);
    check_decoder(image_decode_jpeg, file, size, 4); /* two roundings of colour, one of the DCT */
    jpeg_destroy_compress(&jpeg);
    free(file);
}
#endif

static image ramp(int32_t width, int32_t height) {
    image im = {malloc((size_t)(width * height)), width, height, 1};
    for (int32_t i = 0; im.pixels && i < width * height; i++)
        im.pixels[i] = (unsigned char)(i % width * 8 + i / width);
    return im;
}

static void check_sizes(void) {
    tool t = {.quiet = true};
    image im = ramp(16, 8);
    preprocess how = {.resize = {16, 8}};
    CHECK_INT(image_fit(&t, "ramp", &how, &im), EXIT_OK);
    for (int i = 0; i < 128; i++) /* the same size: the same bytes */
        CHECK_INT(im.pixels[i], i % 16 * 8 + i / 16);
    how = (preprocess){.resize = {4, 0}}; /* the shorter side */
    CHECK_INT(image_fit(&t, "ramp", &how, &im), EXIT_OK);
    CHECK(im.width == 8 && im.height == 4);
    for (int i = 8; i < 24; i++) /* a ramp stays one, away from the border */
        if (i % 8 > 0 && i % 8 < 7)
            CHECK(abs(im.pixels[i] - (i % 8 * 16 + 4 + i / 8 * 2)) <= 1);
    how = (preprocess){.crop = {2, 4}};
    unsigned char corner = im.pixels[3];
    CHECK_INT(image_fit(&t, "ramp", &how, &im), EXIT_OK);
    CHECK(im.width == 2 && im.height == 4 && im.pixels[0] == corner);
    free(im.pixels);
}

int main(void) {
    CHECK(image_is_name("a.b.JPG") && image_is_name("x.png") && !image_is_name("png"));
#ifdef TOOL_PNG
    check_png();
#endif
#ifdef TOOL_JPEG
    check_jpeg();
#endif
    check_sizes();
    return test_done();
}
