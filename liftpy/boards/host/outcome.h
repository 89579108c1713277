/* The outcome of a candidate. */
#ifndef OUTCOME_H
#define OUTCOME_H

#include "text.h"

/* `kind` is one of liftpy/explore/measure/outcome.py; `detail` has data for liftpy, as NAME=VALUE.
   `times` has a row for each run and a column for each launch of the run phase, in nanoseconds.
   `allocated` is the number of bytes that are allocated by clCreateBuffer at the end of a run. */
struct outcome {
    const char *kind;
    struct text reason, detail;
    double error, rms, build_seconds;
    int has_error;
    unsigned long long prepare_ns, *times;
    size_t allocated, runs, launches;
};

#endif
