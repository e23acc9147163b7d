/* SPDX-License-Identifier: MIT */
/* Completion scripts for shells, from the option tables. */
#include "common/args.h"

#include <string.h>

/* Is an option's value a file, or a word without a list of choices? */
static bool takes_file(const option *o) {
    return o->value && (strstr(o->value, "FILE") || strstr(o->value, "DIR") ||
                        strstr(o->value, "SPEC") || strstr(o->value, "json"));
}

/* Adds "a|b|c" with spaces in place of bars. */
static void add_words(const char *choices, text *out) {
    for (const char *c = choices; *c; c++)
        text_add(out, *c == '|' ? " " : c, 1);
}

/* Adds a string for single quotes of a shell, with a backslash before `escape` characters. */
static void add_quoted(const char *string, const char *escape, text *out) {
    for (const char *c = string; *c; c++) {
        if (*c == '\'')
            text_puts(out, "'\\''");
        else {
            if (strchr(escape, *c))
                text_puts(out, "\\");
            text_add(out, c, 1);
        }
    }
}

/* ---- bash ---- */

static void bash_options(const option *o, text *out) {
    for (; o && o->name; o++) {
        text_printf(out, " --%s", o->name);
        if (o->letter)
            text_printf(out, " -%c", o->letter);
    }
}

static void bash_choices(const char *verb_name, const option *o, text *out) {
    for (; o && o->name; o++) {
        if (!o->choices)
            continue;
        text_printf(out, "        %s:--%s) words=\"", verb_name, o->name);
        add_words(o->choices, out);
        text_puts(out, "\" ;;\n");
    }
}

/* Bash splits --mode=static at the equals sign; a data set may be two files, with a comma. */
static const char bash_head[] =
    "# bash completion for qsim, made by: qsim --completions bash\n"
    "_qsim() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
    "    local words=\n"
    "    COMPREPLY=()\n"
    "    if [ \"$cur\" = = ]; then\n"
    "        cur=\n"
    "    elif [ \"$prev\" = = ]; then\n"
    "        prev=${COMP_WORDS[COMP_CWORD-2]}\n"
    "    fi\n"
    "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
    "        COMPREPLY=($(compgen -W \"";

static const char bash_files[] =
    "    esac\n"
    "    if [ -n \"$words\" ]; then\n"
    "        COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
    "        return\n"
    "    fi\n"
    "    case $cur in\n"
    "    -*) ;;\n"
    "    *,*) COMPREPLY=($(compgen -P \"${cur%,*},\" -f -- \"${cur##*,}\")) && return ;;\n"
    "    *) return ;;\n"
    "    esac\n"
    "    case ${COMP_WORDS[1]} in\n";

static void bash_script(const verb *const *verbs, text *out) {
    text_puts(out, bash_head);
    for (size_t i = 0; verbs[i]; i++)
        text_printf(out, "%s ", verbs[i]->name);
    text_puts(out, "--help --version --completions\" -- \"$cur\"))\n"
                   "        return\n"
                   "    fi\n"
                   "    case ${COMP_WORDS[1]}:$prev in\n");
    for (size_t i = 0; verbs[i]; i++)
        bash_choices(verbs[i]->name, verbs[i]->options, out);
    bash_choices("*", common_options, out);
    text_puts(out, bash_files);
    for (size_t i = 0; verbs[i]; i++) {
        text_printf(out, "        %s) words=\"", verbs[i]->name);
        bash_options(verbs[i]->options, out);
        bash_options(args_common(verbs[i]), out);
        text_puts(out, "\" ;;\n");
    }
    text_puts(out, "    esac\n"
                   "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
                   "}\n"
                   "complete -o default -o filenames -F _qsim qsim\n");
}

/* ---- zsh ---- */

/* An argument of _arguments: '*'{-o+,--output=}'[help]:FILE:_files', or shorter. */
static void zsh_option(const option *o, text *out) {
    const char *sign = o->value ? "=" : "";
    text_puts(out, " \\\n            ");
    if (o->letter)
        text_printf(out, "'*'{-%c%s,--%s%s}'[", o->letter, o->value ? "+" : "", o->name, sign);
    else
        text_printf(out, "'*--%s%s[", o->name, sign);
    add_quoted(o->help, "[]:\\", out);
    text_puts(out, "]");
    if (o->value) {
        text_puts(out, ":");
        add_quoted(o->value, "[]:\\", out);
        text_puts(out, ":");
    }
    if (o->choices) {
        text_puts(out, "(");
        add_words(o->choices, out);
        text_puts(out, ")");
    } else if (takes_file(o))
        text_puts(out, "_files");
    text_puts(out, "'");
}

static void zsh_script(const verb *const *verbs, text *out) {
    text_puts(out, "#compdef qsim\n"
                   "# zsh completion for qsim, made by: qsim --completions zsh\n"
                   "_qsim() {\n"
                   "    local -a verbs common\n"
                   "    verbs=(\n");
    for (size_t i = 0; verbs[i]; i++) {
        text_printf(out, "        '%s:", verbs[i]->name);
        add_quoted(verbs[i]->summary, ":\\", out);
        text_puts(out, "'\n");
    }
    text_puts(out, "    )\n    common=(");
    for (const option *o = common_options; o->name; o++)
        zsh_option(o, out);
    text_puts(out, " \\\n    )\n"
                   "    if (( CURRENT == 2 )); then\n"
                   "        _describe -t commands verb verbs\n"
                   "        return\n"
                   "    fi\n"
                   "    shift words\n"
                   "    (( CURRENT-- ))\n"
                   "    case $words[1] in\n");
    for (size_t i = 0; verbs[i]; i++) {
        text_printf(out, "    %s)\n        _arguments $common", verbs[i]->name);
        for (const option *o = verbs[i]->options; o && o->name; o++)
            zsh_option(o, out);
        text_puts(out, " \\\n            '*:file:_files'\n        ;;\n");
    }
    text_puts(out, "    esac\n"
                   "}\n"
                   "if [ \"$funcstack[1]\" = _qsim ]; then\n"
                   "    _qsim \"$@\"\n"
                   "else\n"
                   "    compdef _qsim qsim\n"
                   "fi\n");
}

/* ---- fish ---- */

static void fish_options(const char *condition, const option *o, text *out) {
    for (; o && o->name; o++) {
        text_printf(out, "complete -c qsim -n '%s' -l %s", condition, o->name);
        if (o->letter)
            text_printf(out, " -s %c", o->letter);
        if (o->choices) {
            text_puts(out, " -x -a '");
            add_words(o->choices, out);
            text_puts(out, "'");
        } else if (o->value)
            text_puts(out, takes_file(o) ? " -r -F" : " -x");
        text_puts(out, " -d '");
        for (const char *c = o->help; *c; c++)
            text_printf(out, *c == '\'' || *c == '\\' ? "\\%c" : "%c", *c);
        text_puts(out, "'\n");
    }
}

static void fish_script(const verb *const *verbs, text *out) {
    text_puts(out, "# fish completion for qsim, made by: qsim --completions fish\n");
    for (size_t i = 0; verbs[i]; i++) {
        text_printf(out, "complete -c qsim -n __fish_use_subcommand -f -a %s -d '", verbs[i]->name);
        for (const char *c = verbs[i]->summary; *c; c++)
            text_printf(out, *c == '\'' || *c == '\\' ? "\\%c" : "%c", *c);
        text_puts(out, "'\n");
    }
    for (size_t i = 0; verbs[i]; i++) {
        text condition = {0};
        text_printf(&condition, "__fish_seen_subcommand_from %s", verbs[i]->name);
        fish_options(condition.data, verbs[i]->options, out);
        text_free(&condition);
    }
    fish_options("not __fish_use_subcommand", common_options, out);
}

bool args_completion(const verb *const *verbs, const char *shell, text *out) {
    static const struct {
        const char *shell;
        void (*write)(const verb *const *verbs, text *out);
    } shells[] = {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};
    for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++)
        if (strcmp(shell, shells[i].shell) == 0) {
            shells[i].write(verbs, out);
            return true;
        }
    return false;
}
