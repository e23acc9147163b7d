/* SPDX-License-Identifier: MIT */
/* The calibration file: saved files load, malformed ones are refused with the line's number. */
#include "test.h"

#include <unistd.h>

#include "base/file.h"
#include "ptq/calibration.h"

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
static const char hash[] = HASH;

static qsim_calibration *make(void) {
    static const char *const names[4] = {"conv1", "a \"b\\c\" \x01 #\xc3\xa9", "zero", "x"};
    qsim_calibration *c = NULL;
    CHECK_INT(qs_calibration_new(NULL, &c, NULL), QSIM_OK);
    memcpy(c->model, hash, sizeof(hash));
    for (int i = 0; i < 4; i++)
        CHECK_INT(qs_calibration_add(c, names[i], strlen(names[i]), NULL), QSIM_OK);
    return c;
}

static void feed(qsim_calibration *c, uint64_t seed, int n) {
    const float zero = 0;
    for (int i = 0; i < n; i++) {
        float v = (float)test_random(&seed) / 65536.0f - 20000, small = v * 1e-42f;
        CHECK_INT(qsim_observer_feed(c->tensors[0].kept.observer, &v, 1), QSIM_OK);
        CHECK_INT(qsim_observer_feed(c->tensors[1].kept.observer, &small, 1), QSIM_OK);
        CHECK_INT(qsim_observer_feed(c->tensors[2].kept.observer, &zero, 1), QSIM_OK);
        v = v * v;
        CHECK_INT(qsim_observer_feed(c->tensors[3].kept.observer, &v, 1), QSIM_OK);
    }
    qs_means *m = &c->tensors[0].kept.means;
    m->axis = 1;
    CHECK_INT(qs_means_reserve(c->ctx, m, 3), QSIM_OK);
    for (int i = 0; i < 3 * n; i++) {
        const float v = (float)test_random(&seed) / 65536.0f - 20000;
        qs_exact_add(&m->sum[i % 3], (double)v);
        m->extreme[i % 3] = v < m->extreme[i % 3] ? v : m->extreme[i % 3];
        m->extreme[3 + i % 3] = v > m->extreme[3 + i % 3] ? v : m->extreme[3 + i % 3];
    }
    m->positions += (uint64_t)n;
    c->samples += n;
}

/* The text of a calibration, NUL-terminated; free() it. */
static char *text_of(const qsim_calibration *c) {
    char path[] = "calibration_XXXXXX";
    int fd = mkstemp(path);
    if (fd >= 0)
        close(fd);
    CHECK_INT(qsim_calibration_save(c, path, 0, NULL), QSIM_E_EXISTS);
    CHECK_INT(qsim_calibration_save(c, path, 1, NULL), QSIM_OK);
    FILE *f = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);
    CHECK(f && text && fread(text, 1, (1 << 20) - 1, f) > 0);
    fclose(f);
    remove(path);
    return text;
}

static int load(const char *text, qsim_calibration **c, qsim_error *e) {
    return qsim_calibration_load_memory(NULL, text, strlen(text), "t.qcal", c, e);
}

static void test_round_trip(void) {
    qsim_calibration *c = make(), *back = NULL, *empty = make();
    feed(c, 1, 500);
    char *text = text_of(c), *again;
    char a[65], b[65];
    CHECK_INT(load(text, &back, NULL), QSIM_OK);
    CHECK_INT(qsim_calibration_samples(back), 500);
    CHECK_INT(qsim_calibration_count(back), 4);
    CHECK_STR(qsim_calibration_name(back, 1), c->tensors[1].name);
    CHECK_STR(qsim_calibration_model(back), hash);
    for (int i = 0; i < 4; i++) {
        CHECK(qsim_observer_min(qsim_calibration_observer(back, i)) ==
              c->tensors[i].kept.observer->min);
        CHECK(qsim_observer_max(qsim_calibration_observer(back, i)) ==
              c->tensors[i].kept.observer->max);
        CHECK_INT(qsim_observer_count(qsim_calibration_observer(back, i)), 500);
    }
    again = text_of(back);
    CHECK_STR(again, text);
    CHECK_INT(qs_calibration_hash(c->ctx, c, NULL, a), QSIM_OK);
    CHECK_INT(qs_calibration_hash(back->ctx, back, NULL, b), QSIM_OK);
    CHECK_STR(a, b);
    feed(back, 2, 1);
    CHECK_INT(qs_calibration_hash(back->ctx, back, NULL, b), QSIM_OK);
    CHECK(strcmp(a, b) != 0);
    CHECK_INT(qsim_calibration_feed(back, NULL, 0, NULL), QSIM_E_STATE);
    free(text);
    free(again);
    qsim_calibration_free(c);
    qsim_calibration_free(back);
    /* Tensors without values are not written. */
    text = text_of(empty);
    CHECK(strstr(text, "tensor") == NULL);
    CHECK_INT(load(text, &back, NULL), QSIM_OK);
    CHECK_INT(qsim_calibration_count(back), 0);
    free(text);
    qsim_calibration_free(back);
    qsim_calibration_free(empty);
}

/* Three parts merged in every order and association give the same bytes. */
static void test_merge(void) {
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    char *parts[3], first[65] = "", hex[65];
    for (int i = 0; i < 3; i++) {
        qsim_calibration *c = make();
        feed(c, 10 + (uint64_t)i, 40 * (i + 1));
        parts[i] = text_of(c);
        qsim_calibration_free(c);
    }
    for (int k = 0; k < 12; k++) {
        qsim_calibration *c[3] = {NULL};
        for (int i = 0; i < 3; i++)
            CHECK_INT(load(parts[orders[k % 6][i]], &c[i], NULL), QSIM_OK);
        if (k < 6) {
            CHECK_INT(qsim_calibration_merge(c[0], c[1], NULL), QSIM_OK);
            CHECK_INT(qsim_calibration_merge(c[0], c[2], NULL), QSIM_OK);
        } else {
            CHECK_INT(qsim_calibration_merge(c[1], c[2], NULL), QSIM_OK);
            CHECK_INT(qsim_calibration_merge(c[0], c[1], NULL), QSIM_OK);
        }
        CHECK_INT(qs_calibration_hash(c[0]->ctx, c[0], NULL, hex), QSIM_OK);
        if (!first[0])
            memcpy(first, hex, 65);
        CHECK_STR(hex, first);
        CHECK_INT(qsim_calibration_samples(c[0]), 240);
        for (int i = 0; i < 3; i++)
            qsim_calibration_free(c[i]);
    }
    /* Another model, other tensors. */
    qsim_calibration *a = make(), *b = make();
    b->model[5] = 'f';
    CHECK_INT(qsim_calibration_merge(a, b, NULL), QSIM_E_MISMATCH);
    b->model[5] = a->model[5];
    CHECK_INT(qsim_calibration_merge(a, b, NULL), QSIM_OK);
    CHECK_INT(qs_calibration_add(b, "more", 4, NULL), QSIM_OK);
    CHECK_INT(qsim_calibration_merge(a, b, NULL), QSIM_E_MISMATCH);
    qsim_calibration_free(a);
    qsim_calibration_free(b);
    for (int i = 0; i < 3; i++)
        free(parts[i]);
}

#define HEAD "qsim-calibration 1\nmodel " HASH "\n"
#define MEAN "means \"z\" 1 4 1p0\n"
#define ZERO "tensor \"z\" 0x0.0p+0 0x0.0p+0 -160 0 1 7\n"

static void test_edited(void) {
    qsim_calibration *c = NULL;
    float low, high;
    const char *text = "# mine\r\n\n" HEAD "samples 2 # so few\n" ZERO
                       "#tensor \"gone\" 0x0.0p+0 0x0.0p+0 -160 0 1 7\n"
                       "  tensor \"y\" 0x0p+0 0x0p+0 -160 0 1 18446744073709551615 # all zero";
    CHECK_INT(load(text, &c, NULL), QSIM_OK);
    CHECK_INT(qsim_calibration_count(c), 2);
    CHECK_INT(qsim_calibration_range(c, "z", 0, 0, QSIM_UINT8, 0, &low, &high), QSIM_OK);
    CHECK(low == 0 && high == 0);
    CHECK_INT(qsim_calibration_range(c, "gone", 0, 0, QSIM_UINT8, 0, &low, &high),
              QSIM_E_NOT_FOUND);
    qsim_calibration_free(c);
    static const char *const most[] = {/* at a limit: samples, axis, bytes left for counts */
                                       HEAD "samples 9223372036854775807\n",
                                       HEAD "samples 1\n" ZERO "means \"z\" 15 4 1p0\n",
                                       HEAD "samples 1\ntensor \"z\" 0x0p+0 0x0p+0 -160 0 1 7"};
    for (size_t i = 0; i < QS_COUNT(most); i++) {
        CHECK_INT(load(most[i], &c, NULL), QSIM_OK);
        CHECK(i > 0 || qsim_calibration_samples(c) == INT64_MAX);
        qsim_calibration_free(c);
    }
}

static const struct {
    const char *text;
    int code;
    const char *message;
} hostile[] = {
    {"", QSIM_E_FORMAT, "line 1"},
    {"\n\n# only comments\n", QSIM_E_FORMAT, "not a calibration file"},
    {"<html>", QSIM_E_FORMAT, "not a calibration file"},
    {"calibration 1\nmodel " HASH "\nsamples 1\n", QSIM_E_FORMAT, "not a calibration file"},
    {"qsim-calibration 1\nmodels " HASH "\nsamples 1\n", QSIM_E_FORMAT, "expected 'model'"},
    {HEAD "sample 1\n", QSIM_E_FORMAT, "expected 'samples' and their number"},
    {"qsim-calibration 2\n", QSIM_E_UNSUPPORTED, "version 2"},
    {"qsim-calibration 1 2\n", QSIM_E_FORMAT, "expected the end of the line, not '2'"},
    {"qsim-calibration 99999999999999999999\n", QSIM_E_FORMAT, "line 1"},
    {"qsim-calibration 1\nmodel 01234\n", QSIM_E_FORMAT, "64"},
    {"qsim-calibration 1\nmodel zz23456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n",
     QSIM_E_FORMAT, "line 2"},
    {HEAD, QSIM_E_FORMAT, "samples"},
    {HEAD "samples -1\n", QSIM_E_FORMAT, "samples"},
    {HEAD "samples 9223372036854775808\n", QSIM_E_FORMAT, "line 3"},
    {HEAD "samples 1 1\n", QSIM_E_FORMAT, "line 3"},
    {HEAD "samples 1\nvector \"z\"\n", QSIM_E_FORMAT, "line 4"},
    {HEAD "samples 1\ntensor z 1 2\n", QSIM_E_FORMAT, "name in quotation marks"},
    {HEAD "samples 1\ntensor \"z 1 2\n", QSIM_E_FORMAT, "does not end"},
    {HEAD "samples 1\ntensor \"\" 0x0p+0 0x0p+0 -160 0 1 7\n", QSIM_E_FORMAT, "malformed"},
    {HEAD "samples 1\ntensor \"\\q\" 0x0p+0 0x0p+0 -160 0 1 7\n", QSIM_E_FORMAT, "malformed"},
    {HEAD "samples 1\ntensor \"\\x00\" 0x0p+0 0x0p+0 -160 0 1 7\n", QSIM_E_FORMAT, "malformed"},
    {HEAD "samples 1\ntensor \"\\x1\" 0x0p+0 0x0p+0 -160 0 1 7\n", QSIM_E_FORMAT, "malformed"},
    {HEAD "samples 1\n" ZERO ZERO, QSIM_E_FORMAT, "line 5: calibration: tensor 'z' appears twice"},
    {HEAD "samples 1\ntensor \"z\" nan nan -160 0 1 7\n", QSIM_E_FORMAT, "floats"},
    {HEAD "samples 1\ntensor \"z\" 0x0p+0 inf -160 0 1 7\n", QSIM_E_FORMAT, "floats"},
    {HEAD "samples 1\ntensor \"z\" 0x0p+0 0x0p+ -160 0 1 7\n", QSIM_E_FORMAT, "floats"},
    {HEAD "samples 1\ntensor \"z\" 0x0p+0 0x0p+00000 -160 0 1 7\n", QSIM_E_FORMAT, "floats"},
    {HEAD "samples 1\ntensor \"z\" 0x0p+0 0x1.0p+128 117 0 1 7\n", QSIM_E_FORMAT, "floats"},
    {HEAD "samples 1\ntensor \"z\" 0x0p+0 0x1.0000001p+1 -9 0 1 7\n", QSIM_E_FORMAT, "floats"},
    {HEAD "samples 1\ntensor \"z\" 0x0p+0 0x1.8p+9999999 -9 0 1 7\n", QSIM_E_FORMAT, "floats"},
    {HEAD "samples 1\ntensor \"z\" 0x0p+0 0x1p-200 -9 0 1 7\n", QSIM_E_FORMAT, "floats"},
    {HEAD "samples 1\ntensor \"z\" 0x1p+0 0x0p+0 -10 0 1 7\n", QSIM_E_FORMAT, "greater"},
    {HEAD "samples 1\ntensor \"z\" 0x0p+0 0x1p+0 5 0 1 7\n", QSIM_E_FORMAT, "exponent"},
    {HEAD "samples 1\ntensor \"z\" 0x0p+0 0x1p+0 -160 0 1 7\n", QSIM_E_FORMAT, "exponent"},
    {HEAD "samples 1\ntensor \"z\" 0x0p+0 0x0p+0 -161 0 1 7\n", QSIM_E_FORMAT, "exponent"},
    {HEAD "samples 1\ntensor \"z\" 0x0p+0 0x0p+0 -159 0 1 7\n", QSIM_E_FORMAT, "exponent"},
    {HEAD "samples 1\ntensor \"z\" 0x0p+0 0x0p+0 -160 1 1 7 7\n", QSIM_E_FORMAT, "number of bins"},
    {HEAD "samples 1\ntensor \"z\" 0x0p+0 0x0p+0 -160 0 0\n", QSIM_E_FORMAT, "number of bins"},
    {HEAD "samples 1\ntensor \"z\" 0x0p+0 0x0p+0 -160 0 2 7 7\n", QSIM_E_FORMAT, "number of bins"},
    {HEAD "samples 1\ntensor \"z\" 0x0p+0 0x1p+0 -10 0 5 7 7 7 7 7\n", QSIM_E_FORMAT,
     "number of bins"},
    {HEAD "samples 1\ntensor \"z\" 0x0p+0 0x1p+0 -10 0 1025\n", QSIM_E_FORMAT, "cut off"},
    {HEAD "samples 1\ntensor \"z\" 0x0p+0 0x1p+0 -10 0 4000000000\n", QSIM_E_FORMAT, "in range"},
    {HEAD "samples 1\ntensor \"z\" 0x0p+0 0x1p+0 -10 -5 1025\n", QSIM_E_FORMAT, "number of bins"},
    {HEAD "samples 1\ntensor \"z\" 0x0p+0 0x0p+0 -160 0 1\n", QSIM_E_FORMAT, "line 4"},
    {HEAD "samples 1\ntensor \"z\" 0x0p+0 0x0p+0 -160 0 1 x\n", QSIM_E_FORMAT, "count"},
    {HEAD "samples 1\ntensor \"z\" 0x0p+0 0x0p+0 -160 0 1 -7\n", QSIM_E_FORMAT, "count"},
    {HEAD "samples 1\ntensor \"z\" 0x0p+0 0x0p+0 -160 0 1 7 8\n", QSIM_E_FORMAT, "more counts"},
    {HEAD "samples 1\ntensor \"z\" 0x0p+0 0x0p+0 -160 0 1 0\n", QSIM_E_FORMAT, "empty bin"},
    {HEAD "samples 1\ntensor \"z\" 0x0p+0 0x0p+0 -160 0 1 18446744073709551616\n", QSIM_E_FORMAT,
     "count"},
    {HEAD "samples 1\n" ZERO "means z 1 4 1p0\n", QSIM_E_FORMAT, "name in quotation marks"},
    {HEAD "samples 1\n" ZERO "means \"z\" -1 4 1p0\n", QSIM_E_FORMAT, "line 5: axis"},
    {HEAD "samples 1\n" ZERO "means \"z\" 16 4 1p0\n", QSIM_E_FORMAT, "axis"},
    {HEAD "samples 1\n" ZERO "means \"z\" 1 0 1p0\n", QSIM_E_FORMAT, "positions"},
    {HEAD "samples 1\n" ZERO "means \"z\" 1 4\n", QSIM_E_FORMAT, "sums are missing"},
    {HEAD "samples 1\n" ZERO "means \"z\" 1 4 2p0\n", QSIM_E_FORMAT, "sum is malformed"},
    {HEAD "samples 1\n" ZERO "means \"z\" 1 4 1p0 1.5\n", QSIM_E_FORMAT, "sum is malformed"},
    {HEAD "samples 1\n" ZERO "means \"z\" 1 4 1p0\nmeans \"z\" 1 4 1p0\n", QSIM_E_FORMAT, "twice"},
    {HEAD "samples 1\n" ZERO "extremes \"z\" 0x0p0 0x0p0\n", QSIM_E_FORMAT, "without means"},
    {HEAD "samples 1\n" ZERO MEAN "extremes \"z\" 0x0p0\n", QSIM_E_FORMAT, "two for each mean"},
    {HEAD "samples 1\n" ZERO MEAN "extremes \"z\" 0x1p0 0x0p0\n", QSIM_E_FORMAT,
     "line 6: extremes are not the least and the greatest"},
    {HEAD "samples 1\n" ZERO MEAN "extremes \"z\" 1 2\n", QSIM_E_FORMAT, "extremes are not"},
    {HEAD "samples 1\n" ZERO MEAN "extremes \"z\" 0x0p0 0x0p0\nextremes \"z\" 0x0p0 0x0p0\n",
     QSIM_E_FORMAT, "twice"},
};

/* Sums of three channels, 3, -0.5 and 0, over 4 positions; a tensor that is not there. */
static void test_means(void) {
    qsim_calibration *c = NULL;
    CHECK_INT(load(HEAD "samples 1\n" ZERO "means \"z\" 1 4 3p0 -1p-1 0 # 0.75 ...\n"
                        "means \"gone\" 1 4 nonsense\n",
                   &c, NULL),
              QSIM_OK);
    const qs_means *m = c ? qs_calibration_means(c, "z", NULL) : NULL;
    CHECK(m && m->channels == 3 && m->axis == 1 && m->positions == 4);
    if (m)
        CHECK(qs_exact_mean(&m->sum[0], 4) == 0.75 && qs_exact_mean(&m->sum[1], 4) == -0.125 &&
              qs_exact_mean(&m->sum[2], 4) == 0);
    CHECK(c && !qs_calibration_means(c, "gone", NULL));
    qsim_calibration_free(c);
}

static void refused(const char *text, int code, const char *message) {
    qsim_calibration *c = NULL;
    qsim_error e;
    CHECK_INT(load(text, &c, &e), code);
    CHECK(c == NULL && strstr(e.message, message) != NULL);
    if (!strstr(e.message, message))
        fprintf(stderr, "%s\n%s\n", text, e.message);
    qsim_calibration_free(c);
}

static const char *const legal[] = {
    "qsim-calibration 1\n",         "model " HASH "\n", "samples 1\n", ZERO, MEAN,
    "extremes \"z\" 0x0p0 0x0p0\n",
};

/* With legal lines after the bad one: that the file ends is not what refuses it. */
static void continued(const char *text, int code, const char *message) {
    char whole[1024];
    size_t lines = 0;
    for (const char *p = text; *p; p++)
        lines += *p == '\n';
    if (strcmp(text, HEAD) == 0) /* only the end is wrong with it */
        return;
    snprintf(whole, sizeof(whole), "%s", text);
    for (size_t i = lines; lines && i < QS_COUNT(legal); i++)
        strcat(whole, legal[i]);
    refused(whole, code, message);
}

/* Each line with a word more, and without its last. */
static void test_words(void) {
    for (size_t i = 0; i < QS_COUNT(legal); i++)
        for (int more = 0; more <= 1; more++) {
            char text[1024] = "", line[16];
            for (size_t k = 0; k < QS_COUNT(legal); k++) {
                strcat(text, legal[k]);
                if (k == i)
                    strcpy(more ? strrchr(text, '\n') : strrchr(text, ' '), more ? " 1p0\n" : "\n");
            }
            /* A sum more is a channel more, and two extremes are too few for it. */
            snprintf(line, sizeof(line), "line %zu", i == 4 && more ? i + 2 : i + 1);
            refused(text, QSIM_E_FORMAT, line);
        }
}

static void test_hostile(void) {
    static char many[8192] =
        HEAD "samples 1\ntensor \"z\" 0x0p+0 0x1p+0 -10 0 1025"; /* 2^64 values */
    strcat(many, " 18446744073709551615");
    for (int i = 1; i < 1025; i++)
        strcat(many, " 1");
    qsim_calibration *none = NULL;
    qsim_error why;
    CHECK_INT(load(many, &none, &why), QSIM_E_FORMAT);
    CHECK(strstr(why.message, "the counts do not fit 64 bits") != NULL);
    CHECK_INT(qsim_calibration_load_memory(NULL, NULL, 1, "t", &none, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_calibration_load_memory(NULL, "", 0, "t", NULL, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_calibration_load(NULL, NULL, &none, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_calibration_load(NULL, "t", NULL, NULL), QSIM_E_ARGUMENT);
    for (size_t i = 0; i < QS_COUNT(hostile); i++) {
        refused(hostile[i].text, hostile[i].code, hostile[i].message);
        continued(hostile[i].text, hostile[i].code, hostile[i].message);
    }
}

/* A valid file cut anywhere, or with any byte changed, is loaded or refused, never misread. */
static void test_mutations(void) {
    qsim_calibration *c = make(), *back;
    feed(c, 3, 3);
    char *text = text_of(c);
    size_t n = strlen(text);
    uint64_t seed = 5;
    for (int i = 0; i < 3000; i++) {
        size_t at = i < 300 ? (size_t)i : test_random(&seed) % n, size = i % 2 ? n : at;
        char *copy = malloc(n);
        memcpy(copy, text, n);
        copy[at] = (char)test_random(&seed);
        back = NULL;
        if (qsim_calibration_load_memory(NULL, copy, size, NULL, &back, NULL) == QSIM_OK)
            CHECK(qsim_calibration_count(back) <= 4);
        qsim_calibration_free(back);
        free(copy);
    }
    free(text);
    qsim_calibration_free(c);
}

int main(void) {
    test_round_trip();
    test_merge();
    test_edited();
    test_hostile();
    test_words();
    test_means();
    test_mutations();
    return test_done();
}
