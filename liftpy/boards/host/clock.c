#define _POSIX_C_SOURCE 199309L

#include "clock.h"

#include <time.h>

enum { PAUSE = 1000000 }; /* nanoseconds between two commands */

double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Fills a buffer, and gets the start or the end of this command, if it has timestamps. */
static cl_int filled(cl_command_queue queue, cl_mem buffer, cl_profiling_info which, cl_ulong *when,
                     int *stamped)
{
    const cl_uint zero = 0;
    cl_event event = NULL;
    cl_int code =
        clEnqueueFillBuffer(queue, buffer, &zero, sizeof zero, 0, sizeof zero, 0, NULL, &event);
    if (code != CL_SUCCESS)
        return code;
    code = clWaitForEvents(1, &event);
    if (code == CL_SUCCESS
        && clGetEventProfilingInfo(event, which, sizeof *when, when, NULL) != CL_SUCCESS)
        *stamped = 0;
    clReleaseEvent(event);
    return code;
}

/* The first command is complete before the pause, and the second is enqueued after it. So by any
   clock, at least the pause passes between the start of the first and the end of the second. Half
   of it is required, because a clock may be coarse. */
cl_int look_at_clock(cl_context context, cl_command_queue queue, int *advances)
{
    const struct timespec pause = {0, PAUSE};
    cl_ulong start = 0, end = 0;
    int stamped = 1;
    cl_int code;
    cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof(cl_uint), NULL, &code);
    if (code != CL_SUCCESS)
        return code;
    code = filled(queue, buffer, CL_PROFILING_COMMAND_START, &start, &stamped);
    double begun = seconds();
    nanosleep(&pause, NULL);
    double between = 1e9 * (seconds() - begun);
    if (code == CL_SUCCESS)
        code = filled(queue, buffer, CL_PROFILING_COMMAND_END, &end, &stamped);
    clReleaseMemObject(buffer);
    *advances = stamped && end > start && (double)(end - start) >= between / 2;
    return code;
}
