/* A candidate on a device: its built kernels, its memory, its launches. */
#ifndef LOADED_H
#define LOADED_H

#include "device.h"
#include "outcome.h"
#include "plan.h"

/* Functions that can fail return 1 on success; otherwise 0, and `outcome` has the reason. */
struct loaded {
    const struct plan *plan;
    const struct candidate *candidate;
    const struct device *device;
    struct outcome *outcome;
    cl_context context; /* not shared: some drivers cannot reuse a context after an error */
    cl_command_queue queue;
    cl_program program;
    cl_kernel *kernel; /* one per launch */
    cl_mem *slot;      /* allocated when first needed */
    cl_mem *image;     /* one per buffer: the image of its slot, made when first needed */
    unsigned long long *checked; /* nanoseconds of each launch of the last call of `ran` */
    int by_host;                 /* whether the host's clock times launches */
};

/* Builds the kernels, if the device has what they need. */
int load(struct loaded *loaded);

/* Runs both phases on memory filled with the first or the second poison. */
int ran(struct loaded *loaded, int poison, unsigned char **result);

/* Runs once more; `ns` gets the nanoseconds of each launch. */
int ran_again(struct loaded *loaded, unsigned long long *ns);

void unload(struct loaded *loaded);
#endif
