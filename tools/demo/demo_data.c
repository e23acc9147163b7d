/* SPDX-License-Identifier: MIT */
#include "demo_data.h"

#include "common/array_source.h"

#include <stdlib.h>
#include <string.h>

#define SIDE   28
#define PIXELS (SIDE * SIDE)

/* The file's path, with .gz if only that exists. */
static void find_file(const char *dir, const char *part, const char *kind, text *path) {
    text_printf(path, "%s/%s-%s-ubyte", dir, part, kind);
    FILE *plain = fopen(path->data, "rb");
    if (plain)
        fclose(plain);
    else
        text_puts(path, ".gz");
}

/* Reads an array of bytes: [count] labels or, with rank 3, [count, 28, 28] pixels. */
static int read_bytes(const tool *t, const char *path, int32_t rank, uint8_t **out, size_t *count) {
    source s = {0};
    int code = source_open(t, path, NULL, &s);
    const qsim_array *a = &s.array;
    if (code == EXIT_OK && (!s.idx || a->dtype != QSIM_UINT8 || a->rank != rank))
        code =
            tool_fail(t, QSIM_E_SHAPE, "%s: not an IDX file of %d-dimensional bytes", path, rank);
    else if (code == EXIT_OK && rank == 3 && (a->dims[1] != SIDE || a->dims[2] != SIDE))
        code = tool_fail(t, QSIM_E_SHAPE, "%s: images are %lld x %lld, not 28 x 28", path,
                         (long long)a->dims[1], (long long)a->dims[2]);
    if (code == EXIT_OK) {
        *count = (size_t)a->dims[0];
        *out = tool_alloc(a->bytes + 1, 1);
        code = source_read(t, &s, 0, a->dims[0], *out, a->bytes);
    }
    source_close(&s);
    return code;
}

static int check_labels(const tool *t, const char *path, const demo_set *set, size_t labels) {
    if (labels != set->count || labels < 10)
        return tool_fail(t, QSIM_E_SHAPE, "%s: %zu labels for %zu images", path, labels,
                         set->count);
    for (size_t i = 0; i < labels; i++)
        if (set->labels[i] > 9)
            return tool_fail(t, QSIM_E_VALUE, "%s: label %zu is %d, above 9", path, i,
                             set->labels[i]);
    return EXIT_OK;
}

static int read_part(const tool *t, const char *dir, const char *part, uint8_t **owned,
                     demo_set *set) {
    text path[2] = {{0}, {0}};
    size_t labels = 0;
    find_file(dir, part, "images-idx3", &path[0]);
    find_file(dir, part, "labels-idx1", &path[1]);
    int code = read_bytes(t, path[0].data, 3, &owned[0], &set->count);
    if (code == EXIT_OK)
        code = read_bytes(t, path[1].data, 1, &owned[1], &labels);
    set->images = owned[0];
    set->labels = owned[1];
    if (code == EXIT_OK)
        code = check_labels(t, path[1].data, set, labels);
    text_free(&path[0]);
    text_free(&path[1]);
    return code;
}

/* Copies a name for tables, CSV files and pictures: plain characters only. */
static void set_name(char name[64], const char *from, size_t size) {
    const char *plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    size_t n = 0;
    for (; n < size && n < 63; n++)
        name[n] = from[n] && strchr(plain, from[n]) ? from[n] : '_';
    name[n] = 0;
}

static void find_name(const char *dir, char name[64]) {
    text path = {0};
    char line[64] = "";
    text_printf(&path, "%s/NAME", dir);
    FILE *f = fopen(path.data, "r");
    text_free(&path);
    if (f) {
        if (fgets(line, sizeof(line), f))
            line[strcspn(line, "\n")] = 0;
        fclose(f);
    }
    size_t end = strlen(dir);
    while (end > 1 && dir[end - 1] == '/')
        end--;
    size_t start = end;
    while (start > 0 && dir[start - 1] != '/')
        start--;
    if (line[0])
        set_name(name, line, strlen(line));
    else
        set_name(name, dir + start, end - start);
}

static void find_classes(const char *dir, demo_data *d) {
    static const char *const fashion[] = {"T-shirt/top", "Trouser",   "Pullover", "Dress",
                                          "Coat",        "Sandal",    "Shirt",    "Sneaker",
                                          "Bag",         "Ankle boot"};
    text path = {0};
    char line[32];
    for (int i = 0; i < 10; i++)
        snprintf(d->classes[i], sizeof(d->classes[i]), "%d", i);
    for (int i = 0; i < 10 && strncmp(d->name, "fashion", 7) == 0; i++)
        snprintf(d->classes[i], sizeof(d->classes[i]), "%s", fashion[i]);
    text_printf(&path, "%s/labels.txt", dir);
    FILE *f = fopen(path.data, "r");
    for (int i = 0; f && i < 10 && fgets(line, sizeof(line), f); i++) {
        line[strcspn(line, "\r\n")] = 0;
        if (*line)
            snprintf(d->classes[i], sizeof(d->classes[i]), "%s", line);
    }
    if (f)
        fclose(f);
    text_free(&path);
}

int demo_data_load(const tool *t, const char *dir, demo_data *d) {
    demo_set all = {0};
    *d = (demo_data){.name = ""};
    int code = read_part(t, dir, "train", d->owned, &all);
    if (code == EXIT_OK)
        code = read_part(t, dir, "t10k", d->owned + 2, &d->test);
    if (code != EXIT_OK)
        return code;
    const size_t train = all.count - all.count / 10;
    d->train = (demo_set){all.images, all.labels, train};
    d->validation = (demo_set){all.images + train * PIXELS, all.labels + train, all.count - train};
    find_name(dir, d->name);
    find_classes(dir, d);
    return EXIT_OK;
}

void demo_data_free(demo_data *d) {
    for (size_t i = 0; i < 4; i++)
        free(d->owned[i]);
    *d = (demo_data){.name = ""};
}
