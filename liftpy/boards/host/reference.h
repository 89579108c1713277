/* A fixed kernel whose time shows whether the device is disturbed: throttled, or shared. liftpy
 * compares its times with each other. */
#ifndef REFERENCE_H
#define REFERENCE_H

#include "loaded.h"

struct reference {
    struct loaded loaded;
    struct outcome outcome;
    int used;
};

/* Builds the kernel. It is not used if the plan has none, if it cannot be run, or if a run takes so
 * long that the device is a simulator. */
void open_reference(struct reference *reference, const struct plan *plan,
                    const struct device *device);

/* The nanoseconds of the shortest of some runs after a warm-up; 0 if it is not used. */
unsigned long long look(struct reference *reference);

void close_reference(struct reference *reference);

#endif
