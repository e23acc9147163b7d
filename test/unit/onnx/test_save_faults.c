/* SPDX-License-Identifier: MIT */
/*
 * Saving where files may not grow beyond each of several sizes: the error says so, the old file
 * stays and nothing else is left. Then wrong arguments, and models that no file can hold.
 */
#include "net.h"
#include "folder_count.h"
#include "test.h"

#include <qsim/model.h>

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER "save-faults"
#define NODES  4000

static const char old[] = "what was there before";

/* A chain of nodes with long names: some 300 KB without the constants, which are 600 KB. */
static qsim_model *model(void) {
    static float w[2000];
    const qsim_tensor t = {QSIM_FLOAT, 1, &(int64_t){2000}, w, sizeof(w)};
    char in[64] = "x", out[64], name[64];
    qsim_builder *b = NULL;
    qsim_model *m = NULL;
    qsim_error e = {0};
    CHECK_INT(qsim_builder_create(NULL, 13, "g", &b, &e), QSIM_OK);
    qsim_builder_input_as(b, "x", "float[2000]");
    for (int i = 0; i < NODES; i++) {
        snprintf(out, sizeof(out), "a value of some layer %d", i);
        if (i % 50 == 0) {
            snprintf(name, sizeof(name), "a weight of some layer %d", i);
            qsim_builder_constant(b, name, &t);
            strcat(strcat(in, ","), name);
        }
        qsim_builder_node(b, "", i % 50 ? "Relu" : "Add", out, in, out);
        memcpy(in, out, sizeof(in));
    }
    qsim_builder_output_as(b, in, NULL);
    CHECK_INT(qsim_builder_finish(b, &m, &e), QSIM_OK);
    qsim_builder_free(b);
    return m;
}

static void put(const char *path) {
    FILE *f = fopen(path, "w");
    CHECK(f && fputs(old, f) >= 0);
    CHECK(f && fclose(f) == 0);
}

static bool is_old(const char *path) {
    char text[sizeof(old)] = "";
    FILE *f = fopen(path, "r");
    const bool same = f && fgets(text, sizeof(text), f) && strcmp(text, old) == 0;
    if (f)
        fclose(f);
    return same;
}

static int save_within(const qsim_model *m, rlim_t most, int32_t flags, qsim_error *e) {
    const qsim_save_options o = {.struct_size = sizeof(o), .flags = flags};
    struct rlimit before, now;
    getrlimit(RLIMIT_FSIZE, &before);
    now = before;
    now.rlim_cur = most;
    setrlimit(RLIMIT_FSIZE, &now);
    const int code = qsim_model_save(m, FOLDER "/m.onnx", &o, e);
    setrlimit(RLIMIT_FSIZE, &before);
    return code;
}

static void check_sizes(const qsim_model *m, int32_t flags, int files) {
    qsim_error e = {0};
    size_t size = 0;
    CHECK_INT(qsim_model_save_memory(m, NULL, 0, &size, &e), QSIM_OK);
    for (size_t most = 0; most < (flags & QSIM_SAVE_EXTERNAL ? 300000 : size);
         most += most / 2 + 4096) {
        put(FOLDER "/m.onnx");
        CHECK_INT(save_within(m, (rlim_t)most, flags | QSIM_SAVE_REPLACE, &e), QSIM_E_IO);
        CHECK(strstr(e.message, "too large") != NULL);
        CHECK(is_old(FOLDER "/m.onnx"));
        CHECK_INT(folder_count(FOLDER), 1);
        unlink(FOLDER "/m.onnx");
        CHECK_INT(save_within(m, (rlim_t)most, flags, &e), QSIM_E_IO);
        CHECK_INT(folder_count(FOLDER), 0);
    }
    CHECK_INT(save_within(m, RLIM_INFINITY, flags, &e), QSIM_OK);
    CHECK_INT(save_within(m, RLIM_INFINITY, flags, &e), QSIM_E_EXISTS);
    CHECK_INT(save_within(m, RLIM_INFINITY, flags | QSIM_SAVE_REPLACE, &e), QSIM_OK);
    CHECK_INT(folder_count(FOLDER), files);
    unlink(FOLDER "/m.onnx");
    unlink(FOLDER "/m.onnx.data1");
    if (files == 2) { /* the other file is in the way */
        put(FOLDER "/m.onnx.data");
        CHECK_INT(save_within(m, RLIM_INFINITY, flags, &e), QSIM_E_EXISTS);
        CHECK(is_old(FOLDER "/m.onnx.data"));
        CHECK_INT(folder_count(FOLDER), 1);
        unlink(FOLDER "/m.onnx.data");
    }
}

static void check_arguments(const qsim_model *m) {
    const qsim_save_options unknown = {.struct_size = sizeof(unknown), .flags = 64},
                            reserved = {.struct_size = sizeof(reserved), .reserved = 1},
                            none = {.struct_size = 0};
    qsim_error e = {0};
    uint8_t byte;
    size_t need = 0;
    CHECK_INT(qsim_model_save(NULL, "m", NULL, &e), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_model_save(m, NULL, NULL, &e), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_model_save(m, "m", &unknown, &e), QSIM_E_VERSION);
    CHECK_INT(qsim_model_save(m, "m", &reserved, &e), QSIM_E_VERSION);
    CHECK(qsim_model_save(m, "m", &none, &e) < 0);
    CHECK_INT(qsim_model_save_memory(NULL, NULL, 0, &need, &e), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_model_save_memory(m, NULL, 0, NULL, &e), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_model_save_memory(m, NULL, 1, &need, &e), QSIM_E_ARGUMENT);
    byte = 7;
    (void)qsim_model_save_memory(m, &byte, 1, &need, &e); /* too small: what is needed is said */
    CHECK(byte == 7 && need > 1);
}

/* An operator of the library's own, or of a domain that is not imported, is in no file. */
static void check_operators(const char *domain, int code, const char *part) {
    net n;
    size_t need;
    net_begin(&n, NULL, 13);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(2));
    CHECK(net_node(&n, domain, "Odd", "x", "y") >= 0);
    net_output(&n, "y");
    CHECK_INT(qs_graph_sort(n.g, &n.error), QSIM_OK);
    CHECK_INT(qsim_model_save_memory(n.model, NULL, 0, &need, &n.error), code);
    CHECK(strstr(n.error.message, part) != NULL);
    n.g->nodes[0].removed = true;
    CHECK_INT(qsim_model_save_memory(n.model, NULL, 0, &need, &n.error), QSIM_OK);
    net_free(&n);
}

int main(void) {
    qsim_model *m = model();
    signal(SIGXFSZ, SIG_IGN);
    mkdir(FOLDER, 0777);
    check_sizes(m, 0, 1);
    check_sizes(m, QSIM_SAVE_EXTERNAL, 2);
    check_arguments(m);
    check_operators("qsim", QSIM_E_STATE, "internal");
    check_operators("elsewhere", QSIM_E_GRAPH, "'elsewhere'");
    qsim_model_free(m);
    rmdir(FOLDER);
    return test_done();
}
