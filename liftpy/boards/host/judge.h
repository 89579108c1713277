/* Judges whether a result is correct, by the rule of liftpy/explore/measure/check.py. */
#ifndef JUDGE_H
#define JUDGE_H

#include "lines.h"

/* The differences of a component from its expected values. */
struct verdict {
    double error;   /* the largest difference, relative to the largest value; infinity for NaN */
    int wrong;      /* whether that exceeds the tolerance */
    size_t element; /* its position */
    double wanted, got;
    double squares; /* the sum of the squares of all differences */
};

/* Compares a component with its expected values, at their points. */
struct verdict judged(const struct expected *expected, const unsigned char *result);

/* Compares two results of one component element by element, and reports the largest difference. The
   memory that the two runs write had different contents before, so their results differ only if
   they read unwritten memory or left elements unwritten. */
struct verdict compared(const struct expected *expected, const unsigned char *one,
                        const unsigned char *other);

/* An element as a number. */
double element(const struct scalar *scalar, const unsigned char *bytes, size_t index);

#endif
