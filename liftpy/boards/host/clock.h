/* The clocks: the host's, and that of a device, if its timestamps advance. */
#ifndef CLOCK_H
#define CLOCK_H

#include "opencl.h"

#define BY_HOST "timed by the host's clock, since the device has no timestamps that advance"

/* Seconds by the host's monotonic clock. */
double seconds(void);

/* Sets `advances` to whether a profiling queue has timestamps that advance while the host waits.
   Returns an OpenCL error code; an error of the timestamps is none: they do not advance. */
cl_int look_at_clock(cl_context context, cl_command_queue queue, int *advances);

#endif
