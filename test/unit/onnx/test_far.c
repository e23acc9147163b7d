/* SPDX-License-Identifier: MIT */
/*
 * Tensors in another file, of attributes, of graphs inside and beside branches and calls that are
 * read as other nodes than the file has: a model that is saved as one file needs no other one, and
 * in two files it has the same results.
 */
#include "test.h"
#include "proto.h"

#include "graph/model.h"

#include <stdbool.h>
#include <unistd.h>

#include <qsim/qsim.h>

#define PATH  "far-saved.onnx"
#define COUNT 300 /* so many floats stand in the second file when there are two */

static const int64_t dims[] = {COUNT};
static float numbers[COUNT]; /* 1 2 3 ... */

enum { LOOP, IF, CALL, FORMS };

static int give(void *user, const char *location, const void **data, size_t *size) {
    (void)user;
    CHECK_STR(location, "far.bin");
    *data = numbers;
    *size = sizeof(numbers);
    return 0;
}

/* The numbers, in the file or in another one. */
static proto tensor(const char *name, bool far) {
    proto t = {0};
    proto_int(&t, 1, COUNT);
    proto_int(&t, 2, QSIM_FLOAT);
    if (name)
        proto_text(&t, 8, name);
    proto_text(&t, 12, "documentation");
    if (far) {
        proto_external(&t, "location", "far.bin");
        proto_int(&t, 14, 1);
    } else {
        proto_bytes(&t, 9, numbers, sizeof(numbers));
    }
    return t;
}

/* z = c + w and three steps more, of w each: c is an attribute, the step is in the Loop. */
static void add_loop(proto *graph, bool far) {
    proto node = {0}, a = {0}, t = tensor(NULL, far);
    proto_text(&a, 1, "value");
    proto_take(&a, 5, &t);
    proto_int(&a, 20, 4);
    proto_text(&node, 2, "c");
    proto_text(&node, 4, "Constant");
    proto_take(&node, 5, &a);
    proto_take(graph, 1, &node);
    proto_free(&t);
    t = tensor("step", far);
    proto_constant(graph, "three", QSIM_INT64, -1, "\3\0\0\0\0\0\0\0", 8);
    proto_node(graph, "Add", NULL, "c", "w", "d");
    proto_loop(graph, "d", &t, QSIM_FLOAT, dims, 1);
    proto_free(&node);
    proto_free(&a);
    proto_free(&t);
}

/* z = c ? -w : |w| + w; the graph has the nodes of both. */
static void add_if(proto *graph, bool far) {
    proto then = {0}, otherwise = {0}, t = tensor("more", far);
    proto_node(&then, "Neg", NULL, "w", NULL, "t");
    proto_name(&then, 12, "t");
    proto_take(&otherwise, 5, &t);
    proto_node(&otherwise, "Abs", NULL, "w", NULL, "t");
    proto_node(&otherwise, "Add", NULL, "t", "more", "u");
    proto_name(&otherwise, 12, "u");
    proto_if(graph, NULL, "flag", &then, &otherwise, "z");
    proto_free(&then);
    proto_free(&otherwise);
    proto_free(&t);
}

/* z = F(w), which is w + w. */
static void add_call(proto *graph, proto *file) {
    proto node = {0}, f = {0}, import = {0};
    proto_text(&node, 1, "w");
    proto_text(&node, 2, "z");
    proto_text(&node, 4, "F");
    proto_text(&node, 7, "mine");
    proto_take(graph, 1, &node);
    proto_text(&f, 1, "F");
    proto_text(&f, 4, "p");
    proto_text(&f, 5, "q");
    for (int i = 0; i < 2; i++) {
        proto_text(&node, 1, i ? "r" : "p");
        if (i)
            proto_text(&node, 1, "p");
        proto_text(&node, 2, i ? "q" : "r");
        proto_text(&node, 4, i ? "Add" : "Identity");
        proto_take(&f, 7, &node);
    }
    proto_int(&import, 2, 13);
    proto_take(&f, 9, &import);
    proto_text(&f, 10, "mine");
    proto_take(file, 25, &f);
    proto_text(&import, 1, "mine");
    proto_int(&import, 2, 1);
    proto_take(file, 8, &import);
    proto_free(&node);
    proto_free(&f);
    proto_free(&import);
}

/* y = -z */
static proto model(int form, bool far) {
    proto file = {0}, functions = {0}, graph = {0}, t = tensor("w", far);
    proto_take(&graph, 5, &t);
    if (form == LOOP)
        add_loop(&graph, far);
    else if (form == IF)
        add_if(&graph, far);
    else
        add_call(&graph, &functions);
    proto_node(&graph, "Neg", "last", "z", NULL, "y");
    proto_text(&graph, 2, "g");
    proto_value(&graph, 11, "flag", QSIM_BOOL, NULL, 0);
    proto_value(&graph, 12, "y", QSIM_FLOAT, dims, 1);
    proto_model(&file, &graph);
    proto_raw(&file, functions.data, functions.size);
    proto_free(&functions);
    proto_free(&graph);
    proto_free(&t);
    return file;
}

static void check_run(const qsim_model *m, int form) {
    qsim_session *s = NULL;
    qsim_run *run = NULL;
    qsim_error e = {0};
    CHECK_INT(qsim_session_create(m, NULL, &s, &e), QSIM_OK);
    CHECK_INT(qsim_run_create(s, &run, &e), QSIM_OK);
    for (uint8_t flag = 0; flag < 2; flag++) {
        const qsim_tensor in = {QSIM_BOOL, 0, NULL, &flag, 1};
        const float factor = form == LOOP ? -5 : form == IF && flag ? 1 : -2;
        qsim_tensor out = {0};
        CHECK_INT(qsim_run_execute(run, &in, 1, &out, 1, &e), QSIM_OK);
        for (int i = 0; i < COUNT && out.data; i++)
            if (((const float *)out.data)[i] != factor * numbers[i]) {
                CHECK_FAIL("another result");
                break;
            }
    }
    CHECK_STR(e.message, "");
    qsim_run_free(run);
    qsim_session_free(s);
}

/* Whether a file has these letters. */
static bool has(const uint8_t *bytes, size_t size, const char *letters) {
    for (size_t i = 0; i + strlen(letters) <= size; i++)
        if (memcmp(bytes + i, letters, strlen(letters)) == 0)
            return true;
    return false;
}

/*
 * Saved as one file in memory, and in two. Only a file of the same nodes as the graph is kept, with
 * the name of its producer.
 */
static void check_saved(const qsim_model *m, int form, bool kept) {
    static uint8_t bytes[1 << 16];
    const qsim_save_options o = {.struct_size = sizeof(o),
                                 .flags = QSIM_SAVE_EXTERNAL | QSIM_SAVE_REPLACE};
    qsim_error e = {0};
    size_t size = 0;
    for (int files = 1; files <= 2; files++) {
        qsim_model *again = NULL;
        CHECK_INT(files == 1 ? qsim_model_save_memory(m, bytes, sizeof(bytes), &size, &e)
                             : qsim_model_save(m, PATH, &o, &e),
                  QSIM_OK);
        CHECK_INT(files == 1 ? qsim_model_load_memory(NULL, bytes, size, NULL, &again, &e)
                             : qsim_model_load(NULL, PATH, NULL, &again, &e),
                  QSIM_OK);
        CHECK_STR(e.message, "");
        CHECK(files == 2 || has(bytes, size, "a test") == kept);
        CHECK((qsim_model_external_file(again, 0) != NULL) == (files == 2));
        CHECK(!qsim_model_external_file(again, 1));
        if (again)
            check_run(again, form);
        qsim_model_free(again);
    }
}

int main(void) {
    for (int i = 0; i < COUNT; i++)
        numbers[i] = (float)(i + 1);
    for (int form = 0; form < FORMS; form++)
        for (int far = 0; far < 2; far++) {
            const qsim_load_options o = {.struct_size = sizeof(o), .external = give};
            proto file = model(form, far);
            qsim_model *m = NULL, *derived = NULL;
            qsim_error e = {0};
            CHECK_INT(qsim_model_load_memory(NULL, file.data, file.size, &o, &m, &e), QSIM_OK);
            CHECK_STR(e.message, "");
            CHECK_INT(qs_model_derive(m, &derived, NULL), QSIM_OK);
            check_run(m, form);
            check_saved(m, form, form == LOOP || !far);
            check_saved(derived, form, false);
            qsim_model_free(derived);
            qsim_model_free(m);
            proto_free(&file);
        }
    unlink(PATH);
    unlink(PATH ".data");
    for (int i = 1; i < 10; i++) {
        char data[] = PATH ".data0";
        data[sizeof(data) - 2] = (char)('0' + i);
        unlink(data);
    }
    return test_done();
}
