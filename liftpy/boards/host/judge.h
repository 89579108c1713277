/* Whether a result is what the program means. The rule is that of liftpy/explore/measure/check.py. */
#ifndef JUDGE_H
#define JUDGE_H

#include "plan.h"

/* How far a component of a result is from what it must be. */
struct verdict {
    double error;   /* the largest difference, relative to the largest value; infinity for NaN */
    int wrong;      /* whether that is beyond the tolerance */
    size_t element; /* where it is */
    double wanted, got;
    double squares; /* the sum of the squares of all differences */
};

/* Compares a component with its expected values, at their points. */
struct verdict judged(const struct expected *expected, const unsigned char *result);

/* Compares two results of one component element by element: where they differ most. Two runs that
   began with different contents of the memory that they write differ only where they read, or left
   as it was, what nobody wrote. */
struct verdict compared(const struct expected *expected, const unsigned char *one,
                        const unsigned char *other);

/* An element as a number. */
double element(const struct scalar *scalar, const unsigned char *bytes, size_t index);

#endif
