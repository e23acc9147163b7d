/* SPDX-License-Identifier: MIT */
#include "common/other_formats.h"

#include <string.h>

static const struct {
    size_t at;
    const char *bytes, *what;
} formats[] = {
    {0, "GIF8", "a GIF picture"},
    {0, "II*", "a TIFF picture"},
    {0, "MM\377*", "a TIFF picture"},
    {4, "ftypheic", "a HEIC picture"},
    {4, "ftypheix", "a HEIC picture"},
    {4, "ftypmif1", "a HEIC picture"},
    {4, "ftypavif", "an AVIF picture"},
    {4, "ftyp", "a film"},
    {4, "jP  ", "a JPEG 2000 picture"},
    {4, "JXL ", "a JPEG XL picture"},
    {0, "8BPS", "a Photoshop picture"},
    {0, "%PDF", "a PDF"},
    {0, "<!", "a web page"},
    {0, "<html", "a web page"},
    {0, "<svg", "an SVG drawing"},
    {0, "<?xml", "XML, such as an SVG drawing"},
};

/* \377 in a pattern stands for a 0. */
static int begins(const char *data, const char *bytes) {
    for (; *bytes; data++, bytes++)
        if (*data != (*bytes == '\377' ? 0 : *bytes))
            return 0;
    return 1;
}

const char *other_format(const void *data, size_t size) {
    if (size == 0)
        return "empty";
    for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++)
        if (size >= formats[i].at + strlen(formats[i].bytes) &&
            begins((const char *)data + formats[i].at, formats[i].bytes))
            return formats[i].what;
    return NULL;
}
