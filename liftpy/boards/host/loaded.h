/* A candidate on a device: its kernels built, its memory, its launches. */
#ifndef LOADED_H
#define LOADED_H

#include "device.h"
#include "outcome.h"
#include "plan.h"

/* Each function that can fail returns whether it did not; if it did, `outcome` says why. */
struct loaded {
    const struct plan *plan;
    const struct candidate *candidate;
    const struct device *device;
    struct outcome *outcome;
    cl_context context; /* of its own: some drivers cannot use one again after an error */
    cl_command_queue queue;
    cl_program program;
    cl_kernel *kernel; /* of each launch */
    cl_mem *slot;      /* allocated when first needed */
};

/* Builds the kernels, if the device has what they need. */
int load(struct loaded *loaded);

/* Prepares and runs from the beginning, on memory filled with the first or the second poison. */
int ran(struct loaded *loaded, int poison, unsigned char **result);

/* Runs once more; `ns` gets the nanoseconds of each launch. */
int ran_again(struct loaded *loaded, unsigned long long *ns);

void unload(struct loaded *loaded);

#endif
