/* The OpenCL devices of a board: finding one, and its properties. */
#ifndef DEVICE_H
#define DEVICE_H

#include "opencl.h"
#include "text.h"

struct device {
    cl_platform_id platform;
    cl_device_id id;
    cl_device_type type;
    char *name, *driver, *platform_name;
    size_t ordinal; /* 1 for the second of several equal devices, and so on */
    cl_ulong local_memory, largest_buffer, global_memory;
    size_t largest_group, largest_items[3];
    size_t image_texels; /* the most texels of an image of a buffer; 0 if there are no images */
};

/* The device that a bundle was made for: NULL if there is none. The platform is NULL if the device
   was not attached then, and `device` may be a part of its name. */
struct target {
    char *device, *platform;
};

/* All devices, in the order of the loader. Exits if there is none. */
struct device *find_devices(size_t *count);

/* The device that a number or a part of "PLATFORM DEVICE" names. NULL selects the device that the
   bundle was made for; if it was made for none, the first GPU, or the first device. Exits if there
   is no such device. */
const struct device *choose(const struct device *devices, size_t count, const char *named,
                            const struct target *target);

/* Adds a line for each device. */
void list(struct text *text, const struct device *devices, size_t count);

/* Adds the properties that identify a device, as the beginning of the JSON that `describe` adds.
   Limits are not among them, because a driver may derive limits from the free memory. */
void identify(struct text *text, const struct device *device);

/* Adds the description of a device for liftpy, as JSON on one line. Of its extensions it has the
   `count` known ones, or all if `known` is NULL. */
void describe(struct text *text, const struct device *device, char *const *known, size_t count);

/* Whether a device has an extension, or its compiler has a feature of OpenCL C 3. */
int has_extension(const struct device *device, const char *name);

/* The major version of OpenCL that a device has. */
size_t opencl_version(const struct device *device);

/* The name of an OpenCL error code. */
const char *error_name(cl_int code);

void free_devices(struct device *devices, size_t count);

#endif
