#include "trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "judge.h"
#include "loaded.h"

/* Stores the times of a run. */
static void keep(struct outcome *outcome, const unsigned long long *ns)
{
    for (size_t i = 0; i < outcome->launches; i++) {
        size_t place = outcome->runs * outcome->launches + i;
        outcome->times = one_more(outcome->times, place, sizeof *outcome->times);
        outcome->times[place] = ns[i];
    }
    outcome->runs++;
}

/* Runs once more; stores the times if `counts`. */
static int timed(struct loaded *loaded, int counts)
{
    unsigned long long *ns = room_for(loaded->candidate->launches, sizeof *ns);
    int fine = ran_again(loaded, ns);
    if (fine && counts)
        keep(loaded->outcome, ns);
    free(ns);
    return fine;
}

/* The nanoseconds of a stored run. */
static double run_ns(const struct outcome *outcome, size_t run)
{
    double total = 0;
    for (size_t i = 0; i < outcome->launches; i++)
        total += (double)outcome->times[run * outcome->launches + i];
    return total;
}

static int smaller(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double median_ns(const struct outcome *outcome)
{
    double *ns = room_for(outcome->runs, sizeof *ns);
    for (size_t i = 0; i < outcome->runs; i++)
        ns[i] = run_ns(outcome, i);
    qsort(ns, outcome->runs, sizeof *ns, smaller);
    double median = (ns[(outcome->runs - 1) / 2] + ns[outcome->runs / 2]) / 2;
    free(ns);
    return median;
}

/* Whether the last stored run took so much longer than the best candidate that few are enough. */
static int is_slow(const struct loaded *loaded, double best_ns)
{
    const struct plan *plan = loaded->plan;
    double ns = run_ns(loaded->outcome, loaded->outcome->runs - 1);
    return best_ns > 0 ? ns > plan->slow * best_ns : ns >= plan->first_ns;
}

/* Times a slow candidate, of which the checked run counts; returns 0 if a run failed. Stores no run
 * if one is not slow. */
static int timed_if_slow(struct loaded *loaded, double best_ns)
{
    const struct plan *plan = loaded->plan;
    struct outcome *outcome = loaded->outcome;
    double spent = 0;
    keep(outcome, loaded->checked);
    while (is_slow(loaded, best_ns)) {
        spent += run_ns(outcome, outcome->runs - 1);
        if (outcome->runs >= plan->slow_repeats || spent >= plan->slow_ns)
            return 1;
        if (!timed(loaded, 1))
            return 0;
    }
    outcome->runs = 0;
    return 1;
}

/* Timed runs after a warm-up: at least `least`, and more for a fast candidate. */
static int timed_often(struct loaded *loaded, size_t repeats, double best_ns)
{
    const struct plan *plan = loaded->plan;
    struct outcome *outcome = loaded->outcome;
    for (size_t i = 0; i < plan->warmup; i++)
        if (!timed(loaded, 0))
            return 0;
    if (!timed(loaded, 1))
        return 0;
    double once = run_ns(outcome, 0), enough = round(plan->enough_ns / fmax(once, 1));
    if (!repeats && best_ns > 0 && plan->slow_repeats && once > plan->far * best_ns)
        repeats = plan->least;
    if (!repeats)
        repeats = (size_t)fmax((double)plan->least, fmin((double)plan->most, enough));
    while (outcome->runs < repeats)
        if (!timed(loaded, 1))
            return 0;
    return 1;
}

static int measured(struct loaded *loaded, size_t repeats, struct first *first)
{
    struct outcome *outcome = loaded->outcome;
    for (size_t i = 0; i < loaded->candidate->launches; i++)
        outcome->launches += loaded->candidate->launch[i].phase == RUN;
    if (!repeats && loaded->plan->slow_repeats && !timed_if_slow(loaded, first->best_ns))
        return 0;
    if (!outcome->runs && !timed_often(loaded, repeats, first->best_ns))
        return 0;
    double median = median_ns(outcome);
    if (median > 0) {
        first->best_ns = first->best_ns > 0 ? fmin(first->best_ns, median) : median;
        return 1;
    }
    outcome->kind = "refused";
    add(&outcome->reason, "the driver reports 0 ns for every launch: its event times are useless");
    return 0;
}

/* Timed runs between two looks at the reference kernel, whose times are added to the detail. */
static int watched(struct loaded *loaded, size_t repeats, struct first *first,
                   struct reference *reference)
{
    unsigned long long before = look(reference);
    int fine = measured(loaded, repeats, first);
    unsigned long long after = fine ? look(reference) : 0;
    if (before && after)
        add(&loaded->outcome->detail, "reference=%llu:%llu", before, after);
    if (fine && loaded->by_host)
        add(&loaded->outcome->detail, "%sclock=host", loaded->outcome->detail.length ? " " : "");
    return fine;
}

/* --- judgement --- */

/* Whether two runs with different poison gave the same result, and it is the expected one. */
static int right(struct loaded *loaded, unsigned char **result, unsigned char **again)
{
    struct outcome *outcome = loaded->outcome;
    double squares = 0;
    size_t points = 0;
    for (size_t i = 0; i < loaded->plan->components; i++) {
        const struct expected *expected = &loaded->plan->expected[i];
        struct verdict twice = compared(expected, result[i], again[i]);
        struct verdict once = judged(expected, result[i]);
        outcome->has_error = 1;
        outcome->error = fmax(outcome->error, once.error);
        squares += once.squares;
        points += expected->points;
        outcome->rms = points ? sqrt(squares / (double)points) : 0;
        if (!twice.wrong && !once.wrong)
            continue;
        outcome->kind = "wrong";
        if (once.wrong) {
            add(&outcome->reason,
                "element %zu of component %zu of the result is %.9g, it should be "
                "%.9g",
                once.element, i, once.got, once.wanted);
            add(&outcome->detail, "component=%zu element=%zu got=%.17g", i, once.element, once.got);
        } else {
            add(&outcome->reason,
                "element %zu of component %zu of the result depends on memory that no "
                "work-item wrote: it is %.9g, and %.9g in a second run",
                twice.element, i, twice.wanted, twice.got);
            add(&outcome->detail, "component=%zu element=%zu got=nan", i, twice.element);
        }
        return 0;
    }
    return 1;
}

/* Records where a correct result differs most from the first one; liftpy judges this element when
 * it imports the row. */
static void note_suspects(struct loaded *loaded, unsigned char **result, struct first *first)
{
    const struct plan *plan = loaded->plan;
    if (!first->component) {
        first->component = room_for(plan->components, sizeof *first->component);
        for (size_t i = 0; i < plan->components; i++) {
            size_t size = plan->expected[i].count * plan->expected[i].scalar->size;
            first->component[i] = memcpy(room_for(size, 1), result[i], size);
        }
        return;
    }
    for (size_t i = 0; i < plan->components; i++) {
        struct verdict far = compared(&plan->expected[i], first->component[i], result[i]);
        if (far.error > plan->expected[i].tolerance)
            add(&loaded->outcome->detail, "%ssuspect=%zu:%zu:%.17g",
                loaded->outcome->detail.length ? " " : "", i, far.element, far.got);
    }
}

static void judge_and_time(struct loaded *loaded, size_t repeats, struct first *first,
                           struct reference *reference)
{
    const struct plan *plan = loaded->plan;
    const struct candidate *candidate = loaded->candidate;
    unsigned char **result[2];
    for (int k = 0; k < 2; k++) {
        result[k] = room_for(plan->components, sizeof **result);
        for (size_t i = 0; i < plan->components; i++)
            result[k][i] = room_for(candidate->buffer[candidate->result[i]].bytes, 1);
    }
    if (ran(loaded, 1, result[1]) && ran(loaded, 0, result[0])
        && right(loaded, result[0], result[1]) && watched(loaded, repeats, first, reference)) {
        loaded->outcome->kind = "measured";
        note_suspects(loaded, result[0], first);
        add(&loaded->outcome->reason, "right to %.1e, %zu runs%s%s", loaded->outcome->error,
            loaded->outcome->runs, loaded->by_host ? " " : "", loaded->by_host ? BY_HOST : "");
    }
    for (int k = 0; k < 2; k++) {
        for (size_t i = 0; i < plan->components; i++)
            free(result[k][i]);
        free(result[k]);
    }
}

struct outcome tried(const struct plan *plan, const struct candidate *candidate,
                     const struct device *device, size_t repeats, struct first *first,
                     struct reference *reference)
{
    struct outcome outcome = {0};
    struct loaded loaded = {
        .plan = plan, .candidate = candidate, .device = device, .outcome = &outcome};
    if (load(&loaded))
        judge_and_time(&loaded, repeats, first, reference);
    unload(&loaded);
    return outcome;
}

void drop_outcome(struct outcome *outcome)
{
    drop(&outcome->reason);
    drop(&outcome->detail);
    free(outcome->times);
}

void drop_first(struct first *first, const struct plan *plan)
{
    for (size_t i = 0; first->component && i < plan->components; i++)
        free(first->component[i]);
    free(first->component);
}
