/* The clocks: the host's, and that of a device, if its timestamps advance. */
#ifndef CLOCK_H
#define CLOCK_H

#include "opencl.h"

#define BY_HOST "timed by the host's clock, since the device's timestamps do not advance"

/* Seconds by the host's monotonic clock. */
double seconds(void);

/* Sets `advances` to whether the timestamps of a profiling queue advance while the host waits.
   Returns an OpenCL error code. */
cl_int look_at_clock(cl_context context, cl_command_queue queue, int *advances);

#endif
