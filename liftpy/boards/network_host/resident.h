/* A network on a device: one arena, constants uploaded once, kernels whose arguments are set. */
#ifndef RESIDENT_H
#define RESIDENT_H

#include "device.h"
#include "network.h"

struct resident {
    const struct network *network;
    const struct device *device;
    cl_context context;
    cl_command_queue queue;
    cl_program *program;
    cl_mem *memory;
    cl_kernel *kernel; /* one for each launch of a run */
    size_t parts;
    cl_mem *part; /* sub-buffers and images, which kernels have as arguments */
    int by_host;  /* whether the host's clock times launches */
};

/* Builds the kernels, and uploads and packs the constants. Exits if the device cannot run them. */
struct resident *make_resident(const struct network *network, const struct device *device);

/* Fills the arena with a byte. */
void fill_arena(struct resident *resident, unsigned char byte);

/* Runs the network. `given` are the values of the inputs, and `found` gets those of the results;
   `ns` gets the nanoseconds of each launch. */
void run(struct resident *resident, unsigned char *const *given, unsigned char **found,
         unsigned long long *ns);

void free_resident(struct resident *resident);

#endif
