/* SPDX-License-Identifier: MIT */
/* What the option tables say, for people and for bash. */
#include "common/args.h"

#include <string.h>

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
        text_printf(out, ": %s", o->choices);
    text_puts(out, "\n");
    text_free(&t);
}

void args_help(const verb *v, text *out) {
    text_printf(out, "usage: %s%s [options]%s%s\n\n%s\n\noptions:\n", args_prefix(v), v->name,
                v->operands[0] ? " " : "", v->operands, v->summary);
    for (const option *o = v->options; o && o->name; o++)
        help_option(o, out);
    for (const option *o = common_options; o->name; o++)
        help_option(o, out);
}

static void add_words(const option *o, text *out) {
    for (; o && o->name; o++) {
        text_printf(out, " --%s", o->name);
        if (o->letter)
            text_printf(out, " -%c", o->letter);
    }
}

static void add_choices(const option *o, text *out) {
    for (; o && o->name; o++) {
        if (!o->choices)
            continue;
        text_printf(out, "        --%s) words=\"", o->name);
        for (const char *c = o->choices; *c; c++)
            text_add(out, *c == '|' ? " " : c, 1);
        text_puts(out, "\" ;;\n");
    }
}

void args_completion(const verb *const *verbs, text *out) {
    text_puts(out, "# bash completion for qsim, made by: qsim --completions bash\n"
                   "_qsim() {\n"
                   "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                   "    local words=\n"
                   "    COMPREPLY=()\n"
                   "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
                   "        COMPREPLY=($(compgen -W \"");
    for (size_t i = 0; verbs[i]; i++)
        text_printf(out, "%s ", verbs[i]->name);
    text_puts(out, "--help --version --completions\" -- \"$cur\"))\n"
                   "        return\n"
                   "    fi\n"
                   "    case ${COMP_WORDS[1]}:$prev in\n");
    text choices = {0};
    add_choices(common_options, &choices);
    for (size_t i = 0; verbs[i]; i++) {
        text own = {0};
        add_choices(verbs[i]->options, &own);
        /* "        --mode)" becomes "        quantize:--mode)". */
        for (char *line = own.data; line && *line; line = strchr(line, '\n') + 1)
            text_printf(out, "        %s:%.*s\n", verbs[i]->name, (int)strcspn(line + 8, "\n"),
                        line + 8);
        text_free(&own);
    }
    for (char *line = choices.data; line && *line; line = strchr(line, '\n') + 1)
        text_printf(out, "        *:%.*s\n", (int)strcspn(line + 8, "\n"), line + 8);
    text_free(&choices);
    text_puts(out, "    esac\n"
                   "    if [ -n \"$words\" ]; then\n"
                   "        COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
                   "        return\n"
                   "    fi\n"
                   "    case $cur in\n"
                   "    -*) ;;\n"
                   "    *) return ;;\n"
                   "    esac\n"
                   "    case ${COMP_WORDS[1]} in\n");
    for (size_t i = 0; verbs[i]; i++) {
        text_printf(out, "        %s) words=\"", verbs[i]->name);
        add_words(verbs[i]->options, out);
        add_words(common_options, out);
        text_puts(out, "\" ;;\n");
    }
    text_puts(out, "    esac\n"
                   "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
                   "}\n"
                   "complete -o default -o filenames -F _qsim qsim\n");
}
