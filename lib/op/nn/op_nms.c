/* SPDX-License-Identifier: MIT */
/*
 * NonMaxSuppression: for each batch and class, the boxes by falling score without those that
 * overlap one selected before. The thresholds of score and overlap are exclusive.
 */
#include "op/rules.h"

#define COLUMNS 3 /* of the result: batch, class, box */

static int check(const qs_infer *x) {
    static const char *const names[] = {"the number of boxes", "the overlap", "the score"};
    const qs_value *boxes = x->in[0], *scores = x->in[1];
    int code = qs_infer_type(x, 0, QS_T_FLOAT);
    if (!code)
        code = qs_infer_type(x, 1, QS_T_FLOAT);
    for (int32_t i = 2; i < 5 && !code; i++) {
        const qs_value *v = qs_infer_in(x, i);
        code = v ? qs_infer_type(x, i, i == 2 ? QS_T(QSIM_INT64) : QS_T_FLOAT) : QSIM_OK;
        if (!code && v && !qs_is_single(v))
            return qs_infer_fail(x, QSIM_E_SHAPE, "%s is not a single value", names[i - 2]);
    }
    if (code)
        return code;
    if ((boxes->rank >= 0 && boxes->rank != 3) || (scores->rank >= 0 && scores->rank != 3))
        return qs_infer_fail(x, QSIM_E_SHAPE, "boxes and scores have ranks %d and %d, not 3",
                             (int)boxes->rank, (int)scores->rank);
    if (boxes->rank < 0 || scores->rank < 0)
        return QSIM_OK;
    const int64_t sides = boxes->dims[2].size;
    const int64_t pairs[2][2] = {{boxes->dims[0].size, scores->dims[0].size},
                                 {boxes->dims[1].size, scores->dims[2].size}};
    if (sides >= 0 && sides != 4)
        return qs_infer_fail(x, QSIM_E_SHAPE, "a box has %lld numbers, not 4", (long long)sides);
    for (int i = 0; i < 2; i++)
        if (pairs[i][0] >= 0 && pairs[i][1] >= 0 && pairs[i][0] != pairs[i][1])
            return qs_infer_fail(x, QSIM_E_SHAPE, "boxes have %lld %s, scores %lld",
                                 (long long)pairs[i][0], i ? "entries" : "batches",
                                 (long long)pairs[i][1]);
    return QSIM_OK;
}

static int infer_nms(qs_infer *x) {
    const qs_value *scores = x->in[1];
    qs_dim dims[2] = {{-1, NULL}, {COLUMNS, NULL}};
    int code = check(x);
    if (!code && x->bounds && scores->rank == 3)
        dims[0].size = qs_dims_product(scores->dims, 0, 3);
    return code ? code : qs_infer_out(x, 0, QSIM_INT64, 2, dims);
}

typedef struct nms_params {
    size_t batches, classes, boxes;
    bool center;   /* boxes are center x, y, width, height; else two corners y, x */
    bool given[5]; /* whether the input is present */
} nms_params;

/* Corners of a box, the lower one first. */
typedef struct corners {
    float y1, x1, y2, x2;
} corners;

static corners corners_of(const float *b, bool center) {
    if (center)
        return (corners){b[1] - b[3] / 2, b[0] - b[2] / 2, b[1] + b[3] / 2, b[0] + b[2] / 2};
    return (corners){b[0] < b[2] ? b[0] : b[2], b[1] < b[3] ? b[1] : b[3],
                     b[0] < b[2] ? b[2] : b[0], b[1] < b[3] ? b[3] : b[1]};
}

/* Whether intersection over union is greater than the limit. */
static bool overlaps(corners a, corners b, float limit) {
    const float y1 = a.y1 > b.y1 ? a.y1 : b.y1, y2 = a.y2 < b.y2 ? a.y2 : b.y2;
    const float x1 = a.x1 > b.x1 ? a.x1 : b.x1, x2 = a.x2 < b.x2 ? a.x2 : b.x2;
    if (!(y2 > y1) || !(x2 > x1))
        return false;
    const float both = (y2 - y1) * (x2 - x1);
    const float area_a = (a.y2 - a.y1) * (a.x2 - a.x1), area_b = (b.y2 - b.y1) * (b.x2 - b.x1);
    const float either = area_a + area_b - both;
    return area_a > 0 && area_b > 0 && either > 0 && both / either > limit;
}

/* Sifts entry `root` of a heap down: the best score is on top, of equal ones the first index. */
static void sift(size_t *list, size_t root, size_t count, const float *score) {
    for (size_t child; (child = 2 * root + 1) < count; root = child) {
        const size_t right = child + 1;
#define BETTER(i, j) (score[i] > score[j] || (score[i] == score[j] && (i) < (j)))
        if (right < count && BETTER(list[right], list[child]))
            child = right;
        if (!BETTER(list[child], list[root]))
            break;
        const size_t swap = list[root];
        list[root] = list[child];
        list[child] = swap;
    }
}

/* Pairs of boxes compared between two checks for a stop. */
#define CANCEL_INTERVAL ((size_t)1 << 20)

typedef struct nms_limits {
    int64_t most;
    float overlap, score;
    bool scored; /* a threshold of the score is given */
} nms_limits;

/*
 * Selects boxes of one batch and class into the end of `list`, the best one last; returns their
 * number. `list` and `taken` have an entry for each box. Only as many scores are sorted as are
 * looked at: the heap shrinks from the end of its entries, where the selected boxes are put.
 */
static size_t pick(const qsim_ctx *ctx, const nms_params *p, const nms_limits *limits,
                   const float *boxes, const float *score, size_t *list, corners *taken) {
    size_t count = 0, kept = 0;
    for (size_t i = 0; i < p->boxes && !qs_stopped_at(ctx, i); i++)
        if (!limits->scored || score[i] > limits->score)
            list[count++] = i;
    size_t *const end = list + p->boxes;
    memmove(end - count, list, count * sizeof(*list));
    list = end - count;
    for (size_t i = count / 2; i-- > 0 && !qs_stopped_at(ctx, i);)
        sift(list, i, count, score);
    size_t compared = 0;
    for (size_t left = count; left > 0 && (int64_t)kept < limits->most;) {
        const size_t best = list[0];
        list[0] = list[--left];
        sift(list, 0, left, score);
        compared += kept + 1;
        if (compared > CANCEL_INTERVAL) {
            compared = 0;
            if (qs_stopped(ctx))
                break;
        }
        const corners c = corners_of(boxes + best * 4, p->center);
        bool free = true;
        for (size_t k = 0; k < kept && free; k++)
            free = !overlaps(c, taken[k], limits->overlap);
        if (!free)
            continue;
        taken[kept++] = c;
        *(end - kept) = best;
    }
    return kept;
}

static void run_nms(const qs_step *s, const qs_frame *f) {
    const nms_params *p = s->params;
    const float *boxes = qs_step_in(s, f, 0), *scores = qs_step_in(s, f, 1);
    const int64_t *most = p->given[2] ? qs_step_in(s, f, 2) : NULL;
    int64_t *y = qs_step_out(s, f, 0), *begin = y;
    nms_limits limits = {.most = most ? *most : 0};
    size_t *list = f->scratch;
    corners *taken = (corners *)(void *)(list + p->boxes);
    const float *overlap = p->given[3] ? qs_step_in(s, f, 3) : NULL;
    const float *score = p->given[4] ? qs_step_in(s, f, 4) : NULL;
    limits.overlap = overlap ? *overlap : 0;
    limits.scored = score != NULL;
    limits.score = score ? *score : 0;
    for (size_t b = 0; b < p->batches; b++)
        for (size_t c = 0; c < p->classes && !qs_stopped(f->ctx); c++) {
            const size_t kept = pick(f->ctx, p, &limits, boxes + b * p->boxes * 4,
                                     scores + (b * p->classes + c) * p->boxes, list, taken);
            for (size_t i = 0; i < kept; i++, y += COLUMNS) {
                y[0] = (int64_t)b;
                y[1] = (int64_t)c;
                y[2] = (int64_t)list[p->boxes - 1 - i];
            }
        }
    f->sizes[0][0] = (y - begin) / COLUMNS;
}

static int lower_nms(qs_lower *l) {
    const qs_value *scores = qs_lower_in(l, 1);
    nms_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->batches = (size_t)scores->dims[0].size;
    p->classes = (size_t)scores->dims[1].size;
    p->boxes = (size_t)scores->dims[2].size;
    for (int32_t i = 0; i < (int32_t)QS_COUNT(p->given); i++)
        p->given[i] = qs_node_input(l->node, i) != QS_NONE;
    p->center = qs_node_int(l->node, "center_point_box", 0) != 0;
    l->step->scratch = p->boxes * (sizeof(size_t) + sizeof(corners)) + sizeof(corners);
    l->step->run = run_nms;
    return QSIM_OK;
}

static const qs_attr_rule nms_attrs[] = {{"center_point_box", QSIM_ATTR_INT, 10, 0}};

QS_OP(nms, .name = "NonMaxSuppression", .since = 10, .min_in = 2, .max_in = 5, QS_ATTRS(nms_attrs),
      .traits = QS_BOUNDS, .setting_inputs = 1 << 2 | 1 << 3 | 1 << 4,
      .kernel = QS_KERNEL_NON_MAX_SUPPRESSION, .infer = infer_nms, .lower = lower_nms);
