/* SPDX-License-Identifier: MIT */
/* Writes manifest.json and SHA256SUMS. */
#include "package/packer.h"

#include <stdio.h>

#include "graph/model.h"

static void add(qs_text *t, const char *bytes, size_t size) {
    size_t need;
    if (t->failed || !qs_add(t->size, size, &need) ||
        !qs_grow(t->ctx, (void **)&t->data, &t->capacity, need, 1)) {
        t->failed = true;
        return;
    }
    memcpy(t->data + t->size, bytes, size);
    t->size = need;
}

static void puts_text(qs_text *t, const char *s) {
    add(t, s, strlen(s));
}

static void put_quoted(qs_text *t, const char *s) {
    char escape[8];
    puts_text(t, "\"");
    for (; *s; s++) {
        if (*s == '"' || *s == '\\') {
            puts_text(t, "\\");
            add(t, s, 1);
        } else if ((unsigned char)*s < 0x20) {
            snprintf(escape, sizeof(escape), "\\u%04x", (unsigned)*s);
            puts_text(t, escape);
        } else
            add(t, s, 1);
    }
    puts_text(t, "\"");
}

static void put_pair(qs_text *t, const char *indent, const char *key, const char *value) {
    puts_text(t, indent);
    put_quoted(t, key);
    puts_text(t, ": ");
    put_quoted(t, value);
}

static void put_metadata(qs_text *t, const qsim_model *m) {
    puts_text(t, ",\n      \"metadata\": {");
    for (size_t i = 0; i < m->property_count; i++) {
        puts_text(t, i ? "," : "");
        put_pair(t, "\n        ", m->properties[i].key, m->properties[i].value);
    }
    puts_text(t, m->property_count ? "\n      }" : "}");
}

static void put_part(qs_text *t, const qs_package_part *p) {
    char bytes[48];
    puts_text(t, "\n    {");
    put_pair(t, "\n      ", "name", p->name);
    put_pair(t, ",\n      ", "role", qsim_role_name(qs_role_of_name(p->name)));
    snprintf(bytes, sizeof(bytes), ",\n      \"bytes\": %zu", p->size);
    puts_text(t, bytes);
    put_pair(t, ",\n      ", "sha256", p->sha256);
    if (p->model)
        put_metadata(t, p->model);
    puts_text(t, "\n    }");
}

void qs_manifest_write(const qsim_packer *w, qs_text *out) {
    char head[96];
    snprintf(head, sizeof(head), "{\n  \"schema\": %d,\n  \"tool\": \"libqsim %s\"", QS_SCHEMA,
             qsim_version_string());
    puts_text(out, head);
    put_pair(out, ",\n  ", "model", w->main);
    puts_text(out, ",\n  \"options\": {");
    for (size_t i = 0; i < w->option_count; i++) {
        puts_text(out, i ? "," : "");
        put_pair(out, "\n    ", w->options[i].key, w->options[i].value);
    }
    puts_text(out, w->option_count ? "\n  },\n  \"entries\": [" : "},\n  \"entries\": [");
    for (size_t i = 0; i < w->part_count; i++) {
        puts_text(out, i ? "," : "");
        put_part(out, &w->parts[i]);
    }
    puts_text(out, "\n  ]\n}\n");
}

void qs_sums_write(const qsim_packer *w, qs_text *out) {
    for (size_t i = 0; i < w->part_count; i++) {
        puts_text(out, w->parts[i].sha256);
        puts_text(out, "  ");
        puts_text(out, w->parts[i].name);
        puts_text(out, "\n");
    }
}
