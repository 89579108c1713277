#include "trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "judge.h"
#include "loaded.h"

/* Runs once more; stores the times if `counts`. */
static int timed(struct loaded *loaded, int counts)
{
    struct outcome *outcome = loaded->outcome;
    unsigned long long *ns = room_for(loaded->candidate->launches, sizeof *ns);
    int fine = ran_again(loaded, ns);
    for (size_t i = 0; fine && counts && i < outcome->launches; i++) {
        size_t place = outcome->runs * outcome->launches + i;
        outcome->times = one_more(outcome->times, place, sizeof *outcome->times);
        outcome->times[place] = ns[i];
    }
    outcome->runs += (size_t)(fine && counts);
    free(ns);
    return fine;
}

/* Timed runs after a warm-up: at least `least`, and more for a fast candidate. */
static int measured(struct loaded *loaded, size_t repeats)
{
    const struct plan *plan = loaded->plan;
    struct outcome *outcome = loaded->outcome;
    for (size_t i = 0; i < loaded->candidate->launches; i++)
        outcome->launches += loaded->candidate->launch[i].phase == RUN;
    for (size_t i = 0; i < plan->warmup; i++)
        if (!timed(loaded, 0))
            return 0;
    if (!timed(loaded, 1))
        return 0;
    double once = 0;
    for (size_t i = 0; i < outcome->launches; i++)
        once += (double)outcome->times[i];
    double enough = round(plan->enough_ns / fmax(once, 1));
    if (!repeats)
        repeats = (size_t)fmax((double)plan->least, fmin((double)plan->most, enough));
    while (outcome->runs < repeats)
        if (!timed(loaded, 1))
            return 0;
    double total = 0;
    for (size_t i = 0; i < outcome->runs * outcome->launches; i++)
        total += (double)outcome->times[i];
    if (total > 0)
        return 1;
    outcome->kind = "refused";
    add(&outcome->reason, "the driver reports 0 ns for every launch: its event times are useless");
    return 0;
}

/* Timed runs between two looks at the reference kernel, whose times are added to the detail. */
static int watched(struct loaded *loaded, size_t repeats, struct reference *reference)
{
    unsigned long long before = look(reference);
    int fine = measured(loaded, repeats);
    unsigned long long after = fine ? look(reference) : 0;
    if (before && after)
        add(&loaded->outcome->detail, "reference=%llu:%llu", before, after);
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
        && right(loaded, result[0], result[1]) && watched(loaded, repeats, reference)) {
        loaded->outcome->kind = "measured";
        note_suspects(loaded, result[0], first);
        add(&loaded->outcome->reason, "right to %.1e, %zu runs", loaded->outcome->error,
            loaded->outcome->runs);
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
    struct loaded loaded = {plan, candidate, device, &outcome, NULL, NULL, NULL, NULL, NULL};
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
