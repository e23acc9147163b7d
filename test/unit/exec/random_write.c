/* SPDX-License-Identifier: MIT */
/* Writes a model, its inputs and all its tensors, for comparison with another runtime. */
#include "random_check.h"

#include <stdio.h>
#include <stdlib.h>

static bool put(const char *folder, const rc_subject *s, const char *ending, const void *bytes,
                size_t size) {
    char path[1024];
    snprintf(path, sizeof(path), "%s/%d_%s.%s", folder, (int)s->seed, rc_form_names[s->form],
             ending);
    FILE *f = fopen(path, "wb");
    bool good = f && fwrite(bytes, 1, size, f) == size;
    if (f)
        good &= fclose(f) == 0;
    return good;
}

/* One line of the list: kind, name, type, shape, and place in the data. */
static void list(FILE *f, const char *kind, const char *name, const qsim_tensor *t, size_t *at) {
    fprintf(f, "%s %s %s %zu %zu", kind, name, qsim_dtype_name(t->dtype), *at, t->bytes);
    for (int32_t i = 0; i < t->rank; i++)
        fprintf(f, " %lld", (long long)t->dims[i]);
    fputc('\n', f);
    *at += t->bytes;
}

static bool put_tensors(const char *folder, const rc_subject *s, const qsim_model *m,
                        const rc_result *r) {
    char path[1024];
    size_t at = 0;
    qsim_value_info v = {.struct_size = sizeof(v)};
    snprintf(path, sizeof(path), "%s/%d_%s.txt", folder, (int)s->seed, rc_form_names[s->form]);
    FILE *text = fopen(path, "wb");
    snprintf(path, sizeof(path), "%s/%d_%s.bin", folder, (int)s->seed, rc_form_names[s->form]);
    FILE *data = fopen(path, "wb");
    bool good = text && data;
    for (size_t i = 0; good && i < s->input_count; i++) {
        qsim_model_input(m, (int32_t)i, &v);
        list(text, "in", v.name, &s->x[i], &at);
        good = fwrite(s->x[i].data, 1, s->x[i].bytes, data) == s->x[i].bytes;
    }
    for (int32_t i = 0; good && i < r->count; i++) {
        list(text, "out", r->name[i], &r->t[i], &at);
        good = fwrite(r->t[i].data, 1, r->t[i].bytes, data) == r->t[i].bytes;
    }
    if (text)
        good &= fclose(text) == 0;
    if (data)
        good &= fclose(data) == 0;
    return good;
}

void rc_write(const rc_subject *s, const char *folder) {
    static const char *names[RC_OUTPUTS];
    static rc_result r;
    qsim_model *m = NULL;
    const size_t count = rc_computed(s, names, &m);
    bool good = m && rc_tensors(s, names, count, &r);
    if (good)
        good = put(folder, s, "onnx", s->file, s->size) && put_tensors(folder, s, m, &r);
    rc_check(good, s, "write", folder);
    rc_drop(&r);
    qsim_model_free(m);
}
