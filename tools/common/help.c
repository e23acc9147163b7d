/* SPDX-License-Identifier: MIT */
/* Prints the option tables as help; completion.c prints them for shells, manual.c for man. */
#include "common/args.h"

static void help_option(const option *o, text *out) {
    char left[64] = "    ";
    text t = {0};
    if (o->letter) {
        left[0] = '-';
        left[1] = o->letter;
        left[2] = ',';
    }
    text_printf(&t, "  %s--%s", left, o->name);
    if (o->value)
        text_printf(&t, " %s", o->value);
    text_printf(out, "%-28s  %s", t.data, o->help);
    if (o->choices)
        text_printf(out, "; one of %s", o->choices);
    text_puts(out, "\n");
    text_free(&t);
}

void args_help(const verb *v, text *out) {
    text_printf(out, "usage: %s%s [options]%s%s\n\n%s\n\n", args_prefix(v), v->name,
                v->operands[0] ? " " : "", v->operands, v->summary);
    if (v->example)
        text_printf(out, "for example: %s%s %s\n\n", args_prefix(v), v->name, v->example);
    text_puts(out, "options (defaults in parentheses):\n");
    for (const option *o = v->options; o && o->name; o++)
        help_option(o, out);
    for (const option *o = args_common(v); o->name; o++)
        help_option(o, out);
}
