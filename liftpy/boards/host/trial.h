/* Building, running, judging and timing one candidate on one device. */
#ifndef TRIAL_H
#define TRIAL_H

#include "device.h"
#include "outcome.h"
#include "plan.h"
#include "reference.h"

/* What earlier candidates showed: the result of the first correct one, by component (NULL before
 * there is one), and the median time of the fastest (0 before there is one). */
struct first {
    unsigned char **component;
    double best_ns;
};

/* Tries a candidate. `repeats` is the number of timed runs, or 0 for the rule of the plan. The
 * reference kernel is timed before and after these. */
struct outcome tried(const struct plan *plan, const struct candidate *candidate,
                     const struct device *device, size_t repeats, struct first *first,
                     struct reference *reference);

void drop_outcome(struct outcome *outcome);

void drop_first(struct first *first, const struct plan *plan);

#endif
