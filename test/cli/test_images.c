/* SPDX-License-Identifier: MIT */
/* Reading of pictures: PNG and BMP without loss, JPEG nearly so; resizing as Pillow does it.
 * Numbers, options and lists of --preprocess, on either side of each bound. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../test.h"
#include "common/image.h"
#include "words.h"

#ifdef TOOL_PNG
#include <png.h>
#endif
#ifdef TOOL_JPEG
#include <jpeglib.h>
#endif

enum { WIDTH = 13, HEIGHT = 9 };

#if defined(TOOL_PNG) || defined(TOOL_JPEG) || defined(TOOL_WEBP)
/* Draws a smooth picture, of which JPEG loses little. */
static void draw(unsigned char *rgb) {
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++) {
            unsigned char *p = rgb + (y * WIDTH + x) * 3;
            p[0] = (unsigned char)(10 * x + 40);
            p[1] = (unsigned char)(20 * y + 30);
            p[2] = (unsigned char)(100 + x + y);
        }
}

/* Checks that decoded bytes are within `off` of the drawn ones, and that half a file is refused. */
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
    for (int i = 0; i < 3; i++) /* JPEG with colour at full resolution */
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

static const int32_t any[] = {-1, -1};

static void check_sizes(void) {
    tool t = {.quiet = true, .state = &(tool_state){.error = NULL}};
    image im = ramp(16, 8);
    preprocess how = {.resize = {16, 8}};
    CHECK_INT(image_fit(&t, "ramp", &how, any, &im), EXIT_OK);
    for (int i = 0; i < 128; i++) /* the same size: the same bytes */
        CHECK_INT(im.pixels[i], i % 16 * 8 + i / 16);
    how = (preprocess){.resize = {4, 0}, .shorter = true};
    CHECK_INT(image_fit(&t, "ramp", &how, any, &im), EXIT_OK);
    CHECK(im.width == 8 && im.height == 4);
    for (int i = 8; i < 24; i++) /* a ramp stays one, away from the border */
        if (i % 8 > 0 && i % 8 < 7)
            CHECK(abs(im.pixels[i] - (i % 8 * 16 + 4 + i / 8 * 2)) <= 1);
    how = (preprocess){.crop = {2, 4}};
    unsigned char corner = im.pixels[3];
    CHECK_INT(image_fit(&t, "ramp", &how, any, &im), EXIT_OK);
    CHECK(im.width == 2 && im.height == 4 && im.pixels[0] == corner);
    how = (preprocess){.pad = {4, 6}, .fill_count = 1, .fill = {9}};
    CHECK_INT(image_fit(&t, "ramp", &how, any, &im), EXIT_OK);
    CHECK(im.width == 4 && im.height == 6);
    CHECK(im.pixels[0] == 9 && im.pixels[5] == corner && im.pixels[23] == 9);
    free(im.pixels);
}

/* Checks sizes that follow from the model's input. */
static void check_fit(void) {
    static const struct {
        int fit;
        int32_t wanted[2], width, height;
    } cases[] = {
        {FIT_CROP, {24, 16}, 24, 16},    {FIT_CROP, {-1, -1}, 224, 224},
        {FIT_STRETCH, {10, 20}, 10, 20}, {FIT_LETTERBOX, {30, 20}, 30, 20},
        {FIT_TEXT, {-1, 32}, 64, 32},    {FIT_TEXT, {100, 32}, 100, 32},
        {FIT_TEXT, {-1, -1}, 32, 32},
    };
    tool t = {.quiet = true, .state = &(tool_state){.error = NULL}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        image im = ramp(32, 16);
        preprocess how = {.fit = cases[i].fit};
        CHECK_INT(image_fit(&t, "ramp", &how, cases[i].wanted, &im), EXIT_OK);
        CHECK_INT(im.width, cases[i].width);
        CHECK_INT(im.height, cases[i].height);
        free(im.pixels);
    }
}

/* Compares with Pillow's numbers, printed by pictures.py --golden. */
static void check_golden(void) {
    static const unsigned char small[] = {
        101, 131, 142, 119, 121, 142, 121, 132, 121, 120, 110, 132, 147, 111, 143,
        113, 129, 125, 124, 127, 123, 122, 123, 128, 153, 132, 133, 133, 122, 126,
        103, 146, 116, 130, 129, 128, 151, 147, 138, 155, 138, 128, 143, 149, 125};
    static const unsigned char narrow[] = {
        42,  95,  148, 135, 175, 181, 120, 92,  98,  72,  125, 178, 139, 169, 160, 104, 84,
        99,  102, 150, 165, 207, 89,  80,  151, 104, 86,  102, 138, 144, 182, 81,  87,  110,
        139, 192, 77,  130, 159, 147, 119, 99,  104, 140, 155, 150, 104, 95,  150, 141, 95,
        103, 117, 153, 171, 152, 124, 124, 154, 135, 85,  138, 120, 157, 163, 135, 140, 142,
        144, 165, 118, 110, 111, 140, 132, 138, 118, 120, 161, 141, 113, 139, 168, 150};
    for (int k = 0; k < 2; k++) {
        image im = {malloc(7 * 11 * 3), 11, 7, 3};
        for (int i = 0; im.pixels && i < 7 * 11 * 3; i++) {
            int c = i % 3, x = i / 3 % 11, y = i / 33;
            im.pixels[i] = (unsigned char)(x * 37 + y * 91 + c * 53 + x * y * 5);
        }
        CHECK(image_resize(&im, k ? 4 : 5, k ? 7 : 3));
        CHECK(memcmp(im.pixels, k ? narrow : small, k ? sizeof(narrow) : sizeof(small)) == 0);
        free(im.pixels);
    }
}

/* A picture of 3 x 2 in each form of BMP: the upper row red, green, blue, the lower one black,
 * grey, white. */
static void check_bmp(int bits, bool down, bool bitfields) {
    static const unsigned char want[] = {255, 0, 0, 0,   255, 0,   0,   0,   255,
                                         0,   0, 0, 128, 128, 128, 255, 255, 255};
    const size_t colours = bits == 4 ? 6 : bits == 8 ? 256 : 0;
    unsigned char file[54 + 1024 + 64] = {'B', 'M'}, *p = file + 54, *palette = p;
    size_t row = ((size_t)bits * 3 + 31) / 32 * 4;
    memcpy(file + 14, "\50\0\0\0\3\0\0\0", 8);
    file[22] = down ? 254 : 2;
    memset(file + 23, down ? 255 : 0, 3);
    file[26] = 1;
    file[28] = (unsigned char)bits;
    if (bitfields) {
        file[30] = 3;
        memcpy(p, "\377\0\0\0\0\377\0\0\0\0\377", 12);
        p += 12;
    }
    for (int i = 0; bits <= 8 && i < 6; i++)
        for (int c = 0; c < 3; c++)
            palette[i * 4 + c] = want[i * 3 + 2 - c];
    p += 4 * colours;
    file[46] = (unsigned char)colours; /* 0 of 8 bits: all 256 */
    file[10] = (unsigned char)(p - file);
    file[11] = (unsigned char)((p - file) >> 8);
    for (int y = 0; y < 2; y++)
        for (int x = 0; x < 3; x++) {
            unsigned char *at = p + (size_t)(down ? y : 1 - y) * row;
            const unsigned char *rgb = want + (y * 3 + x) * 3;
            if (bits == 4)
                at[x / 2] = (unsigned char)(at[x / 2] | (y * 3 + x) << (x % 2 ? 0 : 4));
            else if (bits == 8)
                at[x] = (unsigned char)(y * 3 + x);
            else
                for (int c = 0; c < 3; c++)
                    at[x * bits / 8 + c] = rgb[bitfields ? c : 2 - c];
        }
    image im = {0};
    const char *why = "";
    size_t size = (size_t)(p - file) + 2 * row;
    CHECK(image_decode_bmp(file, size, &im, &why));
    CHECK(im.width == 3 && im.height == 2 && im.channels == 3);
    CHECK(im.pixels && memcmp(im.pixels, want, sizeof(want)) == 0);
    free(im.pixels);
    im.pixels = NULL;
    const size_t padding = row - ((size_t)bits * 3 + 7) / 8; /* of the last row, may be missing */
    CHECK(image_decode_bmp(file, size - padding, &im, &why));
    free(im.pixels);
    im.pixels = NULL;
    CHECK(!image_decode_bmp(file, size - padding - 1, &im, &why));
    CHECK(!image_decode_bmp(file, size - row, &im, &why));
    free(im.pixels);
}

/* A BMP of 4 x 2 with one field of its header changed is refused, and not by running out of memory.
 */
static void check_hostile(void) {
    static const struct {
        int at, bytes;
        uint32_t value;
    } fields[] = {
        {18, 4, 0},          {18, 4, 0x80000000}, {18, 4, 0x7fffffff}, {18, 4, 200000},
        {22, 4, 0},          {22, 4, 0x80000000}, {22, 4, 0x7fffffff}, {22, 4, 3},
        {10, 4, 0xffffffff}, {10, 4, 1000},       {14, 4, 13},         {14, 4, 0xffffffff},
        {28, 2, 16},         {28, 2, 0},          {28, 2, 64},         {28, 2, 0xffff},
        {30, 4, 1},          {30, 4, 3},          {30, 4, 99},         {0, 1, 'A'},
    };
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
        unsigned char file[54 + 24] = {'B', 'M'};
        file[10] = 54;
        file[14] = 40;
        file[18] = 4;
        file[22] = 2;
        file[28] = 24;
        image im = {0};
        const char *why = "";
        if (i == 0) { /* the unchanged file is accepted */
            CHECK(image_decode_bmp(file, sizeof(file), &im, &why));
            free(im.pixels);
            im.pixels = NULL;
        }
        for (int k = 0; k < fields[i].bytes; k++)
            file[fields[i].at + k] = (unsigned char)(fields[i].value >> 8 * k);
        why = "";
        CHECK(!image_decode_bmp(file, sizeof(file), &im, &why) && *why);
        free(im.pixels);
    }
    image nine = {0};
    const char *no = "";
    CHECK(image_decode_pnm("P5 9 1 255\nabcdefghi", 20, &nine, &no));
    CHECK(nine.width == 9 && nine.height == 1 && memcmp(nine.pixels, "abcdefghi", 9) == 0);
    free(nine.pixels);
    static const char *const pnm[] = {
        "P5",         "P6 9999999 9999999 255\n", "P5 0 4 255\n", "P5 4 4 65535\nxx",
        "P5 4 4 255", "P6 2 1 255\nabcde",        "P2 1 1 255 7"};
    for (size_t i = 0; i < sizeof(pnm) / sizeof(*pnm); i++) {
        image im = {0};
        const char *why = "";
        CHECK(!image_decode_pnm(pnm[i], strlen(pnm[i]), &im, &why) && *why);
        free(im.pixels);
    }
}

#ifdef TOOL_WEBP
#include <webp/encode.h>

static void check_webp(void) {
    unsigned char rgb[WIDTH * HEIGHT * 3];
    uint8_t *file = NULL;
    draw(rgb);
    size_t size = WebPEncodeLosslessRGB(rgb, WIDTH, HEIGHT, WIDTH * 3, &file);
    CHECK(size > 0);
    check_decoder(image_decode_webp, file, size, 0);
    WebPFree(file);
}
#endif

/* Checks the upright form of 1 2 3 over 4 5 6 for each orientation of JEITA CP-3451: with 6 the
 * top of the scene is at the right side of the file, with 8 at the left. */
static void check_orientation(void) {
    static const unsigned char pixels[6] = {1, 2, 3, 4, 5, 6};
    static const unsigned char shown[9][6] = {
        {0},
        {1, 2, 3, 4, 5, 6},
        {3, 2, 1, 6, 5, 4},
        {6, 5, 4, 3, 2, 1},
        {4, 5, 6, 1, 2, 3},
        {1, 4, 2, 5, 3, 6},
        {4, 1, 5, 2, 6, 3},
        {6, 3, 5, 2, 4, 1},
        {3, 6, 2, 5, 1, 4},
    };
    for (int o = 1; o <= 8; o++) {
        image im = {image_alloc(3, 2, 1), 3, 2, 1};
        memcpy(im.pixels, pixels, sizeof(pixels));
        image_orient(&im, o);
        CHECK(im.width == (o < 5 ? 3 : 2) && im.height == (o < 5 ? 2 : 3));
        CHECK(memcmp(im.pixels, shown[o], sizeof(pixels)) == 0);
        free(im.pixels);
    }
    unsigned char big[] = "\377\330\377\341\0\042Exif\0\0MM\0*\0\0\0\10\0\1\1\22\0\3\0\0\0\1"
                          "\0\6\0\0\0\0\0\0\377\332";
    unsigned char little[] = "\377\330\377\341\0\042Exif\0\0II*\0\10\0\0\0\1\0\22\1\3\0\1\0\0\0"
                             "\10\0\0\0\0\0\0\0\377\332";
    CHECK_INT(image_jpeg_orientation(big, sizeof(big) - 1), 6);
    CHECK_INT(image_jpeg_orientation(little, sizeof(little) - 1), 8);
    for (size_t n = 0; n < sizeof(big) - 1; n++) /* a file cut anywhere */
        CHECK(image_jpeg_orientation(big, n) == 1 || n > 35);
    big[31] = 9; /* no such orientation */
    CHECK_INT(image_jpeg_orientation(big, sizeof(big) - 1), 1);
    memset(big + 16, 0xff, 4); /* a directory far outside of the file */
    CHECK_INT(image_jpeg_orientation(big, sizeof(big) - 1), 1);
}

/* ---- bounds of headers ---- */

static void put(unsigned char *at, uint32_t value, int bytes) {
    for (int i = 0; i < bytes; i++)
        at[i] = (unsigned char)(value >> 8 * i);
}

/* Decodes from memory that ends with the file; 0 if it is refused, else width times height. */
static int64_t decoded(bool (*decode)(const void *, size_t, image *, const char **),
                       const void *data, size_t size, const char **why) {
    image im = {0};
    void *copy = exact_copy(data, size);
    *why = "";
    const bool good = decode(copy, size, &im, why);
    CHECK(good == !**why);
    free(im.pixels);
    free(copy);
    return good ? (int64_t)im.width * im.height : 0;
}

/* The start of a BMP with a header of `header` bytes, 12 for the oldest. */
static void bmp_head(unsigned char *file, uint32_t header, uint32_t offset, int size, int bits) {
    const bool core = header == 12;
    file[0] = 'B';
    file[1] = 'M';
    put(file + 10, offset, 4);
    put(file + 14, header, 4);
    put(file + 18, (uint32_t)size, core ? 2 : 4);
    put(file + (core ? 20 : 22), 1, core ? 2 : 4);
    put(file + (core ? 24 : 28), (uint32_t)bits, 2);
}

/* Files of one row, and whether they are read; the pixels may lie where the header does. */
static const struct {
    uint32_t header, offset;
    int width, bits;
    size_t size;
    uint32_t way, colours, masks;
    const char *why; /* a part of it; NULL: the file is read */
} bmps[] = {
    {12, 23, 1, 24, 26, 0, 0, 0, NULL}, /* the shortest */
    {12, 22, 1, 24, 25, 0, 0, 0, "not a BMP"},
    {12, 24, 1, 24, 26, 0, 0, 0, "shorter"},
    {11, 26, 1, 24, 64, 0, 0, 0, "not a BMP"},
    {13, 26, 1, 24, 64, 0, 0, 0, "not a BMP"},
    {39, 54, 1, 24, 64, 0, 0, 0, "not a BMP"},
    {40, 54, 1, 24, 57, 0, 0, 0, NULL},
    {40, 54, 1, 24, 56, 0, 0, 0, "shorter"},
    {40, 50, 1, 24, 53, 0, 0, 0, "not a BMP"},
    {50, 50, 1, 24, 64, 0, 0, 0, NULL}, /* the header ends the file */
    {51, 50, 1, 24, 64, 0, 0, 0, "not a BMP"},
    {1024, 54, 1, 24, 1100, 0, 0, 0, NULL},
    {1025, 54, 1, 24, 1100, 0, 0, 0, "not a BMP"},
    {40, 54, 0, 24, 64, 0, 0, 0, "impossible size"},
    {40, 54, -1, 24, 64, 0, 0, 0, "impossible size"},
    {40, 54, 1, 0, 64, 0, 0, 0, "odd depth"},
    {40, 54, 1, 2, 72, 0, 0, 0, "odd depth"},
    {40, 54, 1, 16, 64, 0, 0, 0, "odd depth"},
    {40, 54, 1, 31, 64, 0, 0, 0, "odd depth"},
    {40, 54, 1, 33, 64, 0, 0, 0, "odd depth"},
    {40, 54, 1, 24, 64, 1, 0, 0, "run lengths"},
    {40, 54, 1, 24, 64, 2, 0, 0, "run lengths"},
    {40, 54, 1, 24, 80, 3, 0, 0xff00, "a form"},
    {40, 62, 1, 32, 66, 3, 0, 0xff00, NULL},
    {40, 61, 1, 32, 65, 3, 0, 0xff00, "a form"}, /* the masks are cut */
    {40, 66, 1, 32, 70, 6, 0, 0xff000000, NULL},
    {40, 66, 1, 32, 70, 4, 0, 0xff00, "a form"},
    {40, 66, 1, 32, 70, 5, 0, 0xff00, "a form"},
    {40, 66, 1, 32, 70, 3, 0, 0xff0, "a form"}, /* no whole byte */
    {40, 66, 1, 32, 70, 3, 0, 0, "a form"},
    {40, 58, 8, 1, 62, 0, 0, 0, NULL}, /* two colours */
    {40, 54, 8, 1, 61, 0, 0, 0, "palette is cut"},
    {40, 50, 8, 1, 58, 0, 1, 0, NULL}, /* one, the first */
    {40, 50, 8, 1, 57, 0, 1, 0, "palette is cut"},
    {12, 26, 8, 1, 32, 0, 0, 0, NULL},
    {12, 26, 8, 1, 31, 0, 0, 0, "palette is cut"},
    {12, 26, 1, 4, 26 + 48, 0, 0, 0, NULL},
    {12, 26, 1, 4, 26 + 47, 0, 0, 0, "palette is cut"},
    {40, 54, 1, 8, 54 + 1024, 0, 256, 0, NULL},
    {40, 54, 1, 8, 54 + 1028, 0, 257, 0, "palette is cut"},
    {40, 54, 1, 8, 54 + 1023, 0, 256, 0, "palette is cut"},
    {40, 1078, 1, 8, 54 + 1025, 0, 256, 1, NULL},
};

static void check_bmp_bounds(void) {
    static unsigned char file[1 << 18];
    const char *why;
    for (size_t i = 0; i < sizeof(bmps) / sizeof(*bmps); i++) {
        memset(file, 0, sizeof(file));
        for (int k = 0; k < 3 && bmps[i].masks; k++)
            put(file + 54 + 4 * k, bmps[i].masks, 4);
        bmp_head(file, bmps[i].header, bmps[i].offset, bmps[i].width, bmps[i].bits);
        if (bmps[i].header > 12) {
            put(file + 30, bmps[i].way, 4);
            put(file + 46, bmps[i].colours, 4);
        }
        const int64_t pixels = decoded(image_decode_bmp, file, bmps[i].size, &why);
        CHECK_INT(pixels, bmps[i].why ? 0 : bmps[i].width);
        if (bmps[i].why && !strstr(why, bmps[i].why))
            fprintf(stderr, "case %zu: %s\n", i, why);
        CHECK(!bmps[i].why || strstr(why, bmps[i].why));
    }
    memset(file, 0, sizeof(file)); /* widths go to 2^20 */
    for (int over = 0; over <= 1; over++) {
        bmp_head(file, 40, 62, (1 << 20) + over, 1);
        CHECK_INT(decoded(image_decode_bmp, file, sizeof(file), &why), over ? 0 : 1 << 20);
    }
    memset(file, 0, 128); /* a colour, and one that is not in the palette */
    bmp_head(file, 40, 58, 8, 1);
    put(file + 46, 1, 4);
    CHECK_INT(decoded(image_decode_bmp, file, 62, &why), 8);
    file[58] = 1;
    CHECK_INT(decoded(image_decode_bmp, file, 62, &why), 0);
    CHECK(strstr(why, "not in its palette") != NULL);
}

static void check_pnm_bounds(void) {
    static const struct {
        const char *text;
        int pixels; /* 0: refused */
    } cases[] = {
        {"P5 1 1 255\na", 1},
        {"P6 1 1 255\nabc", 1},
        {"P6 1 1 255\nab", 0},
        {"P6 1 1 255\nabcd", 1},
        {"P5 2 2 255\nabcd", 4},
        {"P5 2 2 255\nabc", 0},
        {"P5 3 2 255\nabcdef", 6},
        {"P5 3 2 255\nabcde", 0},
        {"P5\n#c\n1 #\n1\t255 a", 1},
        {"P5 1 1 255", 0},
        {"P5 1 1 255\n", 0},
        {"P5 1 1 254\na", 0},
        {"P5 1 1 256\na", 0},
        {"P5 1 1 2550\na", 0},
        {"P5 1 0 255\na", 0},
        {"P5 0 1 255\na", 0},
        {"P5 -1 1 255\na", 0},
        {"P5 1 1\na", 0},
        {"P5 / 1 255\na", 0},
        {"P5 : 1 255\na", 0},
        {"P5 9 1 255\nabcdefghi", 9},
        {"P4 1 1 255\na", 0},
        {"P7 1 1 255\na", 0},
        {"Q5 1 1 255\na", 0},
        {"P5", 0},
        {"P5 ", 0},
        {"P5 #", 0},
        {"P5 1 1 #", 0},
        {"P5 1", 0},
        {"P", 0},
        {"", 0},
        {"P5 10000001 1 255\na", 0},
    };
    const char *why;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const int64_t pixels =
            decoded(image_decode_pnm, cases[i].text, strlen(cases[i].text), &why);
        if (pixels != cases[i].pixels)
            fprintf(stderr, "%s\n", cases[i].text);
        CHECK_INT(pixels, cases[i].pixels);
    }
}

int main(void) {
    check_bmp_bounds();
    check_pnm_bounds();
    check_numbers();
    check_lists();
    check_tables();
#ifdef TOOL_JANSSON
    check_config();
    check_config_bytes();
#endif
    check_orientation();
    CHECK(image_is_name("a.b.JPG") && image_is_name("x.webp") && !image_is_name("png"));
#ifdef TOOL_PNG
    check_png();
#endif
#ifdef TOOL_JPEG
    check_jpeg();
#endif
#ifdef TOOL_WEBP
    check_webp();
#endif
    check_sizes();
    check_fit();
    check_golden();
    check_hostile();
    check_bmp(4, false, false);
    check_bmp(8, true, false);
    check_bmp(24, false, false);
    check_bmp(24, true, false);
    check_bmp(32, false, false);
    check_bmp(32, false, true);
    return test_done();
}
