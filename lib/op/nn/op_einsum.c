/* SPDX-License-Identifier: MIT */
/*
 * Einsum: any equation over any number of operands. Every letter is a loop; letters that the result
 * lacks are summed over, the last one innermost. A letter that an operand has twice follows its
 * diagonal; an axis of size 1 is broadcast. Floats are summed in double, integers wrap. Equations
 * of two operands of floats that are products of matrices become MatMul, which is faster and which
 * quantization knows; those without a sum become Mul.
 */
#include "op/expand.h"
#include "op/nn/einsum.h"

#define OPERANDS QS_EINSUM_OPERANDS
#define LETTERS  QS_EINSUM_LETTERS

/* The axes of a term as letters; those of the ellipsis count from 52. */
typedef struct term {
    int32_t rank;
    int32_t letters[QSIM_MAX_RANK];
} term;

typedef struct equation {
    int32_t operands, dots; /* dots: most axes of an ellipsis */
    term in[OPERANDS], out;
    qs_dim dims[LETTERS];
    bool used[LETTERS];
} equation;

/* A term as in the text: its letters, and the place of the ellipsis among them; -1: none. */
typedef struct text_term {
    int32_t count, dots_at;
    int32_t letters[QSIM_MAX_RANK];
} text_term;

QS_COLD static int32_t letter_of(char c) {
    return c >= 'a' && c <= 'z' ? c - 'a' : c >= 'A' && c <= 'Z' ? c - 'A' + 26 : -1;
}

/* Reads up to a comma, an arrow or the end; moves *at there. */
QS_COLD static int read_term(const qs_infer *x, qs_span s, size_t *at, text_term *t) {
    *t = (text_term){.dots_at = -1};
    for (; *at < s.size; ++*at) {
        const char c = (char)s.data[*at];
        if (c == ',' || c == '-')
            break;
        if (c == ' ')
            continue;
        if (c == '.' && t->dots_at < 0 && s.size - *at >= 3 &&
            memcmp(s.data + *at, "...", 3) == 0) {
            t->dots_at = t->count;
            *at += 2;
            continue;
        }
        const int32_t letter = letter_of(c);
        if (letter < 0)
            return qs_infer_fail(x, QSIM_E_VALUE, "the equation has a character %d at %zu", c, *at);
        if (t->count == QSIM_MAX_RANK)
            return qs_infer_fail(x, QSIM_E_LIMIT, "a term has more than %d letters", QSIM_MAX_RANK);
        t->letters[t->count++] = letter;
    }
    return QSIM_OK;
}

/* Replaces the ellipsis of a term by `dots` axes, the last ones of e->dots. */
QS_COLD static int expand_ellipsis(const qs_infer *x, const equation *e, const text_term *t,
                                   int32_t dots, term *out) {
    if (t->count + dots > QSIM_MAX_RANK)
        return qs_infer_fail(x, QSIM_E_LIMIT, "a term has more than %d axes", QSIM_MAX_RANK);
    out->rank = 0;
    for (int32_t i = 0; i <= t->count; i++) {
        for (int32_t k = 0; i == t->dots_at && k < dots; k++)
            out->letters[out->rank++] = 52 + e->dots - dots + k;
        if (i < t->count)
            out->letters[out->rank++] = t->letters[i];
    }
    return QSIM_OK;
}

/* Merges the sizes of an operand's axes with those of the other operands. */
QS_COLD static int join_sizes(const qs_infer *x, equation *e, int32_t operand) {
    const qs_value *v = x->in[operand];
    const term *t = &e->in[operand];
    for (int32_t i = 0; i < t->rank; i++) {
        qs_dim *d = &e->dims[t->letters[i]];
        const qs_dim size = v->dims[i];
        if (!e->used[t->letters[i]] || d->size == 1) {
            *d = size;
        } else if (size.size > 1 || size.size == 0) {
            if (d->size >= 0 && d->size != size.size)
                return qs_infer_fail(
                    x, QSIM_E_SHAPE,
                    "axis %d of operand %d has size %lld, others of its letter %lld", (int)i,
                    (int)operand, (long long)size.size, (long long)d->size);
            *d = size;
        }
        e->used[t->letters[i]] = true;
    }
    return QSIM_OK;
}

/* Without an arrow the result is the ellipsis, then the letters that occur once, by ASCII. */
QS_COLD static void imply_result(const text_term *terms, int32_t count, text_term *out) {
    int32_t times[52] = {0};
    *out = (text_term){.dots_at = -1};
    for (int32_t i = 0; i < count; i++) {
        out->dots_at = terms[i].dots_at >= 0 ? 0 : out->dots_at;
        for (int32_t k = 0; k < terms[i].count; k++)
            times[terms[i].letters[k]]++;
    }
    for (int32_t i = 0; i < 52; i++) {
        const int32_t letter = (i + 26) % 52; /* capitals come first */
        if (times[letter] == 1 && out->count < QSIM_MAX_RANK)
            out->letters[out->count++] = letter;
    }
}

QS_COLD static int read_result(const qs_infer *x, qs_span s, size_t at, const text_term *terms,
                               int32_t count, text_term *out) {
    if (at == s.size) {
        imply_result(terms, count, out);
        return QSIM_OK;
    }
    if (s.size - at < 2 || s.data[at + 1] != '>')
        return qs_infer_fail(x, QSIM_E_VALUE, "the equation has a dash that is no arrow");
    at += 2;
    int code = read_term(x, s, &at, out);
    if (!code && at < s.size)
        code = qs_infer_fail(x, QSIM_E_VALUE, "the equation goes on behind its result");
    return code;
}

/* Checks that the result's letters are those of operands, each once. */
QS_COLD static int check_result(const qs_infer *x, const equation *e) {
    bool seen[LETTERS] = {false};
    for (int32_t i = 0; i < e->out.rank; i++) {
        const int32_t letter = e->out.letters[i];
        if (seen[letter] || !e->used[letter])
            return qs_infer_fail(x, QSIM_E_VALUE, "letter %d of the result is %s", (int)i,
                                 seen[letter] ? "there twice" : "of no operand");
        seen[letter] = true;
    }
    return QSIM_OK;
}

/* Reads a term for each operand, up to the arrow or the end. */
QS_COLD static int read_terms(const qs_infer *x, qs_span s, size_t *at, text_term *terms) {
    const int32_t count = x->node->input_count;
    int32_t found = 0;
    bool more = true;
    if (count > OPERANDS)
        return qs_infer_fail(x, QSIM_E_LIMIT, "%d operands; at most %d are possible", (int)count,
                             OPERANDS);
    for (; more && found < count; found++) {
        int code = read_term(x, s, at, &terms[found]);
        if (code)
            return code;
        more = *at < s.size && s.data[*at] == ',';
        *at += more;
    }
    return !more && found == count
               ? QSIM_OK
               : qs_infer_fail(x, QSIM_E_GRAPH, "the equation has %s terms than the node inputs",
                               more ? "more" : "fewer");
}

QS_COLD static int count_dots(const qs_infer *x, const text_term *terms, equation *e) {
    e->operands = x->node->input_count;
    for (int32_t i = 0; i < e->operands; i++) {
        const int32_t rank = x->in[i]->rank, dots = rank - terms[i].count;
        if (dots < 0 || (dots > 0 && terms[i].dots_at < 0))
            return qs_infer_fail(x, QSIM_E_SHAPE, "term %d has %d letters, operand %d has rank %d",
                                 (int)i, (int)terms[i].count, (int)i, (int)rank);
        e->dots = terms[i].dots_at >= 0 && dots > e->dots ? dots : e->dots;
    }
    return QSIM_OK;
}

/* Reads the equation for operands whose ranks are all known. */
QS_COLD static int read_equation(const qs_infer *x, equation *e) {
    const qs_attr *a = qs_node_attr(x->node, "equation");
    text_term terms[OPERANDS], result = {0};
    size_t at = 0;
    memset(e, 0, sizeof(*e));
    if (!a)
        return qs_infer_fail(x, QSIM_E_GRAPH, "attribute '%s' is missing", "equation");
    int code = read_terms(x, a->u.s, &at, terms);
    if (!code)
        code = read_result(x, a->u.s, at, terms, x->node->input_count, &result);
    if (!code)
        code = count_dots(x, terms, e);
    for (int32_t i = 0; i < e->operands && !code; i++) {
        code = expand_ellipsis(x, e, &terms[i], x->in[i]->rank - terms[i].count, &e->in[i]);
        code = code ? code : join_sizes(x, e, i);
    }
    if (!code)
        code = expand_ellipsis(x, e, &result, result.dots_at >= 0 ? e->dots : 0, &e->out);
    return code ? code : check_result(x, e);
}

QS_COLD static int infer_einsum(qs_infer *x) {
    qs_dim dims[QSIM_MAX_RANK];
    equation e;
    bool ranks = true;
    int code = QSIM_OK;
    for (int32_t i = 0; i < x->node->input_count && i < OPERANDS && !code; i++) {
        if (!x->in[i])
            return qs_infer_fail(x, QSIM_E_GRAPH, "input %d is left out", (int)i);
        code = qs_infer_type(x, i, QS_T_ARITH);
        code = code ? code : qs_infer_same_type(x, 0, i);
        ranks = ranks && x->in[i]->rank >= 0;
    }
    if (code || !ranks)
        return code ? code : qs_infer_unknown(x, x->in[0]->dtype);
    code = read_equation(x, &e);
    if (code)
        return code;
    for (int32_t i = 0; i < e.out.rank; i++)
        dims[i] = e.dims[e.out.letters[i]];
    return qs_infer_out(x, 0, x->in[0]->dtype, e.out.rank, dims);
}

/* ---- steps ---- */

QS_COLD static void put_total(int32_t dtype, void *y, size_t i, qs_total sum) {
    switch (qs_dtype_bytes(dtype)) {
    case 1: ((uint8_t *)y)[i] = (uint8_t)sum.whole; break;
    case 2: ((uint16_t *)y)[i] = (uint16_t)sum.whole; break;
    case 4:
        if (dtype == QSIM_FLOAT)
            ((float *)y)[i] = (float)sum.real;
        else
            ((uint32_t *)y)[i] = (uint32_t)sum.whole;
        break;
    default: ((qs_total *)y)[i] = sum; break;
    }
}

/* Adds the operands' offsets at iteration `i` of loops [from, to) to `at`. */
QS_COLD static void move_to(const qs_einsum *p, size_t i, int32_t from, int32_t to, size_t *at) {
    for (int32_t loop = to; loop-- > from; i /= p->dims[loop])
        for (int32_t k = 0; k < p->operands; k++)
            at[k] += i % p->dims[loop] * p->steps[loop][k];
}

typedef struct einsum_job {
    const qsim_ctx *ctx;
    const qs_einsum *p;
    const void *x[OPERANDS];
    void *y;
} einsum_job;

QS_COLD static void einsum_range(const void *arg, size_t begin, size_t end) {
    const einsum_job *j = arg;
    const qs_einsum *p = j->p;
    const size_t line = p->kept ? p->dims[p->kept - 1] : 1;
    for (size_t o = begin, beside; o < end; o += beside) {
        size_t base[OPERANDS] = {0}, at[OPERANDS];
        qs_total sums[QS_EINSUM_BESIDE] = {{0}}; /* 0 as an integer, too */
        beside = !p->columns ? 1 : line - o % line < end - o ? line - o % line : end - o;
        beside = beside < QS_EINSUM_BESIDE ? beside : QS_EINSUM_BESIDE;
        move_to(p, o, 0, p->kept, base);
        for (size_t i = 0; i < p->sums && !qs_stopped_at(j->ctx, i * beside); i++) {
            memcpy(at, base, sizeof(at));
            move_to(p, i, p->kept, p->loops, at);
            for (size_t k = 0, n; (n = qs_piece(j->ctx, k, p->inner)); k += n) {
                const size_t whole = p->columns ? n & ~(size_t)3 : 0;
                if (whole)
                    p->columns(p, j->x, at, k, whole, beside, sums);
                for (size_t c = 0; whole < n && c < beside; c++) {
                    at[p->dense] += c;
                    p->row(p, j->x, at, k + whole, n - whole, sums + c);
                    at[p->dense] -= c;
                }
            }
        }
        for (size_t i = 0; i < beside; i++)
            put_total(p->dtype, j->y, o + i, sums[i]);
    }
}

QS_COLD static void run_einsum(const qs_step *s, const qs_frame *f) {
    const qs_einsum *p = s->params;
    einsum_job j = {.ctx = f->ctx, .p = p, .y = qs_step_out(s, f, 0)};
    for (int32_t i = 0; i < p->operands; i++)
        j.x[i] = qs_step_in(s, f, i);
    const size_t work = p->sums * p->inner * (size_t)p->operands;
    qs_ranges(f->ctx, p->outputs, 1 + QS_GRAIN / 4 / (work + 1), einsum_range, &j);
}

/* Adds the loop over a letter. Axes of size 1 have stride 0; equal letters add their strides. */
QS_COLD static void add_loop(qs_einsum *p, const qs_infer *x, const equation *e, int32_t letter) {
    const int32_t loop = p->loops++;
    p->dims[loop] = (size_t)e->dims[letter].size;
    for (int32_t k = 0; k < e->operands; k++) {
        size_t step = 1;
        for (int32_t axis = e->in[k].rank; axis-- > 0;) {
            const size_t size = (size_t)x->in[k]->dims[axis].size;
            if (e->in[k].letters[axis] == letter && size != 1)
                p->steps[loop][k] += step;
            step *= size;
        }
    }
}

QS_COLD static int lower_einsum(qs_lower *l) {
    qs_infer x;
    equation e;
    qs_einsum *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    qs_lower_infer(l, &x);
    int code = read_equation(&x, &e);
    if (code)
        return code;
    for (int32_t i = 0; i < e.out.rank; i++) {
        add_loop(p, &x, &e, e.out.letters[i]);
        e.used[e.out.letters[i]] = false;
    }
    p->kept = p->loops;
    for (int32_t letter = 0; letter < LETTERS; letter++)
        if (e.used[letter])
            add_loop(p, &x, &e, letter);
    p->operands = e.operands;
    p->dtype = x.in[0]->dtype;
    qs_einsum_loops(p);
    p->inner = p->sums = 1;
    if (p->loops > p->kept) {
        p->inner = p->dims[--p->loops];
        memcpy(p->inner_steps, p->steps[p->loops], sizeof(p->inner_steps));
    }
    for (int32_t i = p->kept; i < p->loops; i++)
        p->sums *= p->dims[i];
    p->outputs = qs_value_elements(qs_lower_out(l, 0));
    l->step->run = run_einsum;
    return QSIM_OK;
}

/* ---- expansion ---- */

/*
 * An equation as a product of matrices: letters of both operands and the result count batches, the
 * result's other letters are rows, of the left operand, or columns, and the rest is summed over.
 * All rows but the last may also stay axes, over which MatMul broadcasts the right operand.
 */
typedef struct product {
    int32_t left;  /* the operand that is the left factor */
    int32_t cost;  /* transposes of activations; -1: sizes are missing */
    term axes[3];  /* of the factors and the product, before letters become one axis */
    term shape[3]; /* of Reshapes to the factors and of the product, as sizes; rank 0: none */
} product;

QS_COLD static int32_t place_of(const term *t, int32_t letter) {
    for (int32_t i = 0; i < t->rank; i++)
        if (t->letters[i] == letter)
            return i;
    return -1;
}

QS_COLD static void append(term *t, const term *more) {
    for (int32_t i = 0; i < more->rank; i++)
        t->letters[t->rank++] = more->letters[i];
}

QS_COLD static bool differ(const term *a, const term *b) {
    return memcmp(a->letters, b->letters, (size_t)a->rank * sizeof(*a->letters)) != 0;
}

/*
 * Whether letter `axis` of operand k fits a product, which has no diagonals, no sums over one
 * operand, and equal sizes on both sides of a sum; sizes that only a run tells are taken for equal.
 * Counts letters summed over, and those of one operand.
 */
QS_COLD static bool fits_product(const equation *e, const qs_infer *x, int32_t k, int32_t axis,
                                 int32_t *sums, int32_t *single) {
    const int32_t letter = e->in[k].letters[axis], other = place_of(&e->in[!k], letter);
    const int64_t size = x->in[k]->dims[axis].size;
    const bool kept = place_of(&e->out, letter) >= 0;
    if (size == 0 || place_of(&e->in[k], letter) != axis || (!kept && other < 0))
        return false;
    *sums += !kept;
    *single += other < 0;
    const int64_t opposite = other < 0 ? size : x->in[!k]->dims[other].size;
    return kept || size == opposite || (size != 1 && opposite != 1);
}

QS_COLD static bool is_product(const equation *e, const qs_infer *x) {
    int32_t sums = 0, single = 0;
    for (int32_t k = 0; k < 2; k++)
        for (int32_t i = 0; i < e->in[k].rank; i++)
            if (!fits_product(e, x, k, i, &sums, &single))
                return false;
    return sums && single;
}

/* Adds the size of all letters as one axis; -1: not known. */
QS_COLD static void add_size(const equation *e, const term *letters, term *shape) {
    int64_t size = 1;
    for (int32_t i = 0; i < letters->rank && size >= 0; i++) {
        const int64_t more = e->dims[letters->letters[i]].size;
        size = more < 0 || size > INT32_MAX / more ? -1 : size * more;
    }
    shape->letters[shape->rank++] = (int32_t)size;
}

/*
 * Makes shape `index`: `kept` axes, then letters `a` and `b`, as one axis each or apart. A single
 * letter `a` needs no size, nor does one axis more.
 */
QS_COLD static void plan_shape(const equation *e, product *p, int32_t index, int32_t kept,
                               const term *a, const term *b) {
    term *shape = &p->shape[index];
    int32_t unknown = 0;
    if (a->rank == 1 && b->rank == 1)
        return;
    if (kept + 2 > QSIM_MAX_RANK) {
        p->cost = -1;
        return;
    }
    shape->rank = kept;
    for (int32_t g = 0; g < 2; g++) {
        const term *t = g ? b : a;
        if (index < 2)
            add_size(e, t, shape);
        for (int32_t i = 0; index == 2 && i < t->rank; i++)
            add_size(e, &(term){1, {t->letters[i]}}, shape);
        if (!g && a->rank == 1)
            shape->letters[kept] = 0;
    }
    for (int32_t i = kept; i < shape->rank; i++)
        unknown += shape->letters[i] < 0;
    p->cost = unknown > 1 ? -1 : p->cost;
}

/* Plans a product. To transpose a constant right factor, a layer's weights, costs nothing. */
QS_COLD static product plan_product(const equation *e, const qs_infer *x, int32_t left,
                                    bool outer) {
    enum { OUTER, BATCH, ROWS, SUMS, COLS };
    static const uint8_t has[3] = {15, 1 << BATCH | 1 << SUMS | 1 << COLS, 31 - (1 << SUMS)};
    const term *a = &e->in[left], *b = &e->in[!left];
    const bool fixed = x->in[!left]->data != NULL;
    term g[5] = {{0}};
    product p = {.left = left};
    for (int32_t i = 0; i < e->out.rank; i++) {
        const int32_t letter = e->out.letters[i];
        append(&g[place_of(a, letter) < 0   ? COLS
                  : place_of(b, letter) < 0 ? ROWS
                                            : BATCH],
               &(term){1, {letter}});
    }
    for (int32_t i = 0; i < a->rank; i++)
        if (place_of(&e->out, a->letters[i]) < 0)
            append(&g[SUMS], &(term){1, {a->letters[i]}});
    if (outer && g[ROWS].rank > 1) {
        g[OUTER] = g[ROWS];
        g[ROWS] = (term){1, {g[OUTER].letters[--g[OUTER].rank]}};
    }
    for (int32_t i = 0; i < 15; i++)
        if (has[i / 5] >> i % 5 & 1)
            append(&p.axes[i / 5], &g[i % 5]);
    p.cost = differ(a, &p.axes[0]) + (!fixed && differ(b, &p.axes[1])) +
             differ(&e->out, &p.axes[2]) + (!fixed && x->in[left]->data ? 4 : 0);
    plan_shape(e, &p, 0, g[OUTER].rank + g[BATCH].rank, &g[ROWS], &g[SUMS]);
    plan_shape(e, &p, 1, g[BATCH].rank, &g[SUMS], &g[COLS]);
    plan_shape(e, &p, 2, g[OUTER].rank + g[BATCH].rank, &g[ROWS], &g[COLS]);
    return p;
}

/* Puts the axes `from` of a value in the order `to`. */
QS_COLD static qs_id reordered(qs_expand *ex, qs_id value, const term *from, const term *to) {
    int64_t perm[QSIM_MAX_RANK];
    for (int32_t i = 0; i < to->rank; i++)
        perm[i] = place_of(from, to->letters[i]);
    return differ(from, to) ? qs_expand_transpose(ex, value, perm, to->rank) : value;
}

QS_COLD static qs_id reshaped(qs_expand *ex, qs_id value, const term *shape) {
    int64_t sizes[QSIM_MAX_RANK];
    for (int32_t i = 0; i < shape->rank; i++)
        sizes[i] = shape->letters[i];
    return shape->rank ? qs_expand_reshape(ex, value, sizes, shape->rank) : value;
}

QS_COLD static void make_product(qs_expand *ex, const equation *e, const product *p) {
    qs_id factor[2];
    for (int32_t k = 0; k < 2; k++) {
        const int32_t i = k ^ p->left;
        const qs_id x = reordered(ex, qs_expand_in(ex, i), &e->in[i], &p->axes[k]);
        factor[k] = reshaped(ex, x, &p->shape[k]);
    }
    const qs_id y = qs_expand_two(ex, "MatMul", factor[0], factor[1]);
    ex->out[0] = reordered(ex, reshaped(ex, y, &p->shape[2]), &p->axes[2], &e->out);
}

/* Whether nothing is summed over and no operand has a letter twice: the result is Mul. */
QS_COLD static bool is_broadcast(const equation *e) {
    for (int32_t k = 0; k < 2; k++)
        for (int32_t i = 0; i < e->in[k].rank; i++)
            if (place_of(&e->in[k], e->in[k].letters[i]) != i ||
                place_of(&e->out, e->in[k].letters[i]) < 0)
                return false;
    return true;
}

/* Multiplies the operands, whose axes are put in the order of the result; others get size 1. */
QS_COLD static void make_broadcast(qs_expand *ex, const equation *e) {
    qs_id factor[2];
    for (int32_t k = 0; k < 2; k++) {
        term own = {0};
        int64_t others[QSIM_MAX_RANK];
        int32_t count = 0;
        for (int32_t i = 0; i < e->out.rank; i++) {
            if (place_of(&e->in[k], e->out.letters[i]) >= 0) {
                append(&own, &(term){1, {e->out.letters[i]}});
            } else if (own.rank > 0) {
                others[count] = own.rank + count;
                count++;
            }
        }
        factor[k] = reordered(ex, qs_expand_in(ex, k), &e->in[k], &own);
        if (count)
            factor[k] =
                qs_expand_two(ex, "Unsqueeze", factor[k], qs_expand_list(ex, others, count));
    }
    ex->out[0] = qs_expand_two(ex, "Mul", factor[0], factor[1]);
}

/* Takes the first one, of the four ways to write a product, with the fewest transposes. */
QS_COLD static void expand_einsum(qs_expand *ex) {
    const qs_infer x = qs_expand_view(ex);
    equation e;
    product best = {.cost = -1};
    for (int32_t i = 0; i < x.node->input_count; i++)
        if (i == 2 || x.in[i]->rank < 0)
            return;
    ex->code = read_equation(&x, &e);
    if (!ex->code && e.operands == 1 && e.out.rank == e.in[0].rank)
        ex->out[0] = reordered(ex, qs_expand_in(ex, 0), &e.in[0], &e.out);
    if (ex->code || e.operands != 2 || x.in[0]->dtype != QSIM_FLOAT)
        return;
    if (is_broadcast(&e)) {
        make_broadcast(ex, &e);
        return;
    }
    if (!is_product(&e, &x))
        return;
    for (int32_t way = 0; way < 4; way++) {
        const product p = plan_product(&e, &x, way / 2, way % 2 == 0);
        best = p.cost >= 0 && (best.cost < 0 || p.cost < best.cost) ? p : best;
    }
    if (best.cost >= 0)
        make_product(ex, &e, &best);
}

static const qs_attr_rule einsum_attrs[] = {{"equation", QSIM_ATTR_STRING, 12, 0}};

QS_OP(einsum, .name = "Einsum", .since = 12, .min_in = 1, .max_in = -1, QS_ATTRS(einsum_attrs),
      .traits = QS_PLAIN, .kernel = QS_KERNEL_EINSUM, .infer = infer_einsum, .lower = lower_einsum,
      .expand = expand_einsum);
