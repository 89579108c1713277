/* The OpenCL devices of a board: finding one, and what it says of itself. */
#ifndef DEVICE_H
#define DEVICE_H

#include "opencl.h"
#include "plan.h"
#include "text.h"

struct device {
    cl_platform_id platform;
    cl_device_id id;
    cl_device_type type;
    char *name, *driver, *platform_name;
    size_t ordinal; /* 1 for the second of two equal ones, and so on */
    cl_ulong local_memory, largest_buffer, global_memory;
    size_t largest_group, largest_items[3];
};

/* Every device, in the order of the loader. Ends the program if there is none. */
struct device *find_devices(size_t *count);

/* The device that a number or a part of "PLATFORM DEVICE" names. NULL is the one that the bundle was
   made for, or, of a bundle that was made for none, the first GPU, or the first device. Ends the
   program if there is none such. */
const struct device *choose(const struct device *devices, size_t count, const char *named,
                            const struct plan *plan);

/* Adds a line for each device. */
void list(struct text *text, const struct device *devices, size_t count);

/* Adds what tells a device from others, as the JSON begins that `describe` adds: no limits, which a
   driver may take from the memory that happens to be free. */
void identify(struct text *text, const struct device *device);

/* Adds what liftpy knows of a device, as JSON on one line. */
void describe(struct text *text, const struct device *device, const struct plan *plan);

/* Whether a device has an extension. */
int has_extension(const struct device *device, const char *name);

/* The name of an error of OpenCL. */
const char *error_name(cl_int code);

void free_devices(struct device *devices, size_t count);

#endif
