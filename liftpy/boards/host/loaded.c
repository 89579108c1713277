#include "loaded.h"

#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "image.h"
#include "limits.h"

/* Returns whether a call succeeded; if not, records the error in the outcome. */
static int succeeded(struct loaded *loaded, cl_int code, const char *call, const char *of)
{
    if (code == CL_SUCCESS)
        return 1;
    loaded->outcome->kind = "refused";
    add(&loaded->outcome->reason, "%s returned %s for %s", call, error_name(code), of);
    return 0;
}

/* --- limits of the device --- */

static size_t held(const struct candidate *candidate, int phase)
{
    size_t total = 0;
    for (size_t s = 0; s < candidate->slots; s++)
        for (size_t b = 0; b < candidate->buffers; b++)
            if (candidate->buffer[b].slot == s && candidate->buffer[b].phases & phase) {
                total += candidate->slot[s].bytes;
                break;
            }
    return total;
}

static int images_fit(struct loaded *loaded)
{
    for (size_t i = 0; i < loaded->candidate->launches; i++) {
        const struct launch *launch = &loaded->candidate->launch[i];
        for (size_t k = 0; k < launch->arguments; k++) {
            const struct buffer *buffer = &loaded->candidate->buffer[launch->argument[k]];
            if (!launch->texel[k] || buffer->bytes / launch->texel[k] <= loaded->device->image_texels)
                continue;
            add(&loaded->outcome->reason,
                "it reads %s through an image of %zu texels; the device allows at most %zu",
                buffer->name, buffer->bytes / launch->texel[k], loaded->device->image_texels);
            return 0;
        }
    }
    return 1;
}

static int fits(struct loaded *loaded)
{
    const struct candidate *candidate = loaded->candidate;
    const struct device *device = loaded->device;
    struct text *reason = &loaded->outcome->reason;
    loaded->outcome->kind = "refused";
    for (size_t i = 0; i < candidate->extensions; i++) {
        if (!has_extension(device, candidate->extension[i])) {
            add(reason, "it needs %s, which the device lacks", candidate->extension[i]);
            return 0;
        }
    }
    for (size_t i = 0; i < candidate->slots; i++) {
        if (candidate->slot[i].bytes > device->largest_buffer) {
            add(reason, "it needs a buffer of %zu bytes (%s); the device allows at most %llu",
                candidate->slot[i].bytes, candidate->slot[i].name,
                (unsigned long long)device->largest_buffer);
            return 0;
        }
    }
    if (!images_fit(loaded))
        return 0;
    for (int phase = PREPARE; phase <= RUN; phase++) {
        if (held(candidate, phase) > device->global_memory) {
            add(reason, "it needs %zu bytes in its %s phase; the device has %llu",
                held(candidate, phase), phase == RUN ? "run" : "prepare",
                (unsigned long long)device->global_memory);
            return 0;
        }
    }
    return 1;
}

static int range_fits(struct loaded *loaded, const struct launch *launch, cl_kernel kernel)
{
    struct outcome *outcome = loaded->outcome;
    outcome->kind = "refused";
    return kernel_fits(loaded->device, kernel, &launch->range, &outcome->reason, &outcome->detail);
}

/* --- build --- */

static void keep_log(struct loaded *loaded, cl_int code)
{
    size_t size = 0;
    struct outcome *outcome = loaded->outcome;
    cl_device_id id = loaded->device->id;
    clGetProgramBuildInfo(loaded->program, id, CL_PROGRAM_BUILD_LOG, 0, NULL, &size);
    char *log = room_for(size + 1, 1);
    clGetProgramBuildInfo(loaded->program, id, CL_PROGRAM_BUILD_LOG, size, log, NULL);
    outcome->kind = "build_failed";
    add(&outcome->reason, "clBuildProgram returned %s\n%.16000s", error_name(code), log);
    fprintf(stderr, "board: %s (%s) failed to build: clBuildProgram returned %s\n%s\n",
            loaded->candidate->id, loaded->candidate->file, error_name(code), log);
    free(log);
}

static const char *options_of(const struct loaded *loaded)
{
    const struct candidate *candidate = loaded->candidate;
    for (size_t i = 0; i < candidate->optionals; i++) {
        const struct optional *found = &candidate->optional[i];
        if (opencl_version(loaded->device) >= found->version
            && has_extension(loaded->device, found->extension))
            return found->options;
    }
    return loaded->plan->options;
}

static int built(struct loaded *loaded)
{
    const struct candidate *candidate = loaded->candidate;
    cl_device_id id = loaded->device->id;
    cl_int code;
    struct data source = read_data(loaded->plan->folder, candidate->file, candidate->sha256);
    const char *start = (const char *)source.bytes;
    loaded->program = clCreateProgramWithSource(loaded->context, 1, &start, &source.size, &code);
    free(source.bytes);
    free(source.file);
    if (!succeeded(loaded, code, "clCreateProgramWithSource", candidate->id))
        return 0;
    const char *options = options_of(loaded);
    double begun = seconds();
    code = clBuildProgram(loaded->program, 1, &id, options, NULL, NULL);
    loaded->outcome->build_seconds = seconds() - begun;
    if (code != CL_SUCCESS) {
        keep_log(loaded, code);
        return 0;
    }
    for (size_t i = 0; i < candidate->launches; i++) {
        const struct launch *launch = &candidate->launch[i];
        loaded->kernel[i] = clCreateKernel(loaded->program, launch->range.function, &code);
        if (!succeeded(loaded, code, "clCreateKernel", launch->range.function)
            || !range_fits(loaded, launch, loaded->kernel[i]))
            return 0;
    }
    return 1;
}

/* --- memory --- */

static int allocated(struct loaded *loaded, const struct buffer *buffer)
{
    cl_int code = CL_SUCCESS;
    size_t bytes = loaded->candidate->slot[buffer->slot].bytes;
    if (!loaded->slot[buffer->slot])
        loaded->slot[buffer->slot] =
            clCreateBuffer(loaded->context, CL_MEM_READ_WRITE, bytes, NULL, &code);
    return succeeded(loaded, code, "clCreateBuffer", buffer->name);
}

/* Releases the slots without a buffer of these phases. */
static void release_beyond(struct loaded *loaded, int phases)
{
    const struct candidate *candidate = loaded->candidate;
    for (size_t s = 0; s < candidate->slots; s++) {
        int needed = 0;
        for (size_t b = 0; b < candidate->buffers; b++)
            needed |= candidate->buffer[b].slot == s && candidate->buffer[b].phases & phases;
        if (!needed && loaded->slot[s]) {
            for (size_t b = 0; b < candidate->buffers; b++)
                if (candidate->buffer[b].slot == s && loaded->image[b]) {
                    clReleaseMemObject(loaded->image[b]);
                    loaded->image[b] = NULL;
                }
            clReleaseMemObject(loaded->slot[s]);
            loaded->slot[s] = NULL;
        }
    }
}

static int uploaded(struct loaded *loaded, int role, int overwritten_only)
{
    for (size_t b = 0; b < loaded->candidate->buffers; b++) {
        const struct buffer *buffer = &loaded->candidate->buffer[b];
        if ((int)buffer->role != role || !buffer->phases
            || (overwritten_only && !buffer->overwritten))
            continue;
        if (!allocated(loaded, buffer))
            return 0;
        cl_int code = clEnqueueWriteBuffer(loaded->queue, loaded->slot[buffer->slot], CL_TRUE, 0,
                                           buffer->bytes, loaded->plan->input[buffer->input].bytes,
                                           0, NULL, NULL);
        if (!succeeded(loaded, code, "clEnqueueWriteBuffer", buffer->name))
            return 0;
    }
    return 1;
}

enum { NONE = -1 }; /* as the number of a poison: poison nothing */

/* Fills a buffer with a poison. */
static int filled(struct loaded *loaded, const struct buffer *buffer, int poison)
{
    if (!allocated(loaded, buffer))
        return 0;
    cl_int code = clEnqueueFillBuffer(loaded->queue, loaded->slot[buffer->slot],
                                      buffer->scalar->poison[poison], buffer->scalar->size, 0,
                                      buffer->bytes, 0, NULL, NULL);
    return succeeded(loaded, code, "clEnqueueFillBuffer", buffer->name);
}

/* Whether a phase must write a buffer before it reads it. */
static int is_written(const struct buffer *buffer, int phase)
{
    return buffer->role != INPUT && buffer->role != CONSTANT && (buffer->phases & phase)
           && !(phase == RUN && buffer->role == PACKED);
}

/* Poisons the buffers that a phase must write, to detect elements that it does not write. */
static int poisoned(struct loaded *loaded, int phase, int poison)
{
    int fine = 1;
    for (size_t b = 0; fine && b < loaded->candidate->buffers; b++)
        if (is_written(&loaded->candidate->buffer[b], phase))
            fine = filled(loaded, &loaded->candidate->buffer[b], poison);
    return fine;
}

/* Whether a launch of a run is the first that uses a buffer, and the buffer shares its memory with
   others, all of which the run writes. */
static int begins(const struct candidate *candidate, size_t number, size_t argument)
{
    const struct buffer *buffer = &candidate->buffer[argument];
    int shared = 0;
    for (size_t b = 0; b < candidate->buffers; b++) {
        if (b == argument || candidate->buffer[b].slot != buffer->slot)
            continue;
        if (!is_written(&candidate->buffer[b], RUN))
            return 0;
        shared = 1;
    }
    for (size_t i = 0; shared && i < number; i++)
        for (size_t a = 0; candidate->launch[i].phase == RUN && a < candidate->launch[i].arguments;
             a++)
            if (candidate->launch[i].argument[a] == argument)
                return 0;
    return shared && is_written(buffer, RUN);
}

/* Poisons the buffers in shared memory that a launch is the first to use. */
static int poisoned_before(struct loaded *loaded, size_t number, int poison)
{
    const struct launch *launch = &loaded->candidate->launch[number];
    int fine = 1;
    for (size_t i = 0; fine && poison != NONE && launch->phase == RUN && i < launch->arguments; i++)
        if (begins(loaded->candidate, number, launch->argument[i]))
            fine = filled(loaded, &loaded->candidate->buffer[launch->argument[i]], poison);
    return fine
           && (!loaded->by_host /* the launch's time does not include the fill */
               || succeeded(loaded, clFinish(loaded->queue), "clFinish", launch->range.function));
}

static int downloaded(struct loaded *loaded, unsigned char **result)
{
    for (size_t i = 0; i < loaded->candidate->results; i++) {
        const struct buffer *buffer = &loaded->candidate->buffer[loaded->candidate->result[i]];
        if (!allocated(loaded, buffer))
            return 0;
        cl_int code = clEnqueueReadBuffer(loaded->queue, loaded->slot[buffer->slot], CL_TRUE, 0,
                                          buffer->bytes, result[i], 0, NULL, NULL);
        if (!succeeded(loaded, code, "clEnqueueReadBuffer", buffer->name))
            return 0;
    }
    return 1;
}

/* --- runs --- */

/* The image of a buffer, with texels of so many bytes. NULL if the driver makes none. */
static cl_mem *image_in(struct loaded *loaded, size_t number, size_t texel)
{
    const struct buffer *buffer = &loaded->candidate->buffer[number];
    cl_int code = CL_SUCCESS;
    if (!loaded->image[number])
        loaded->image[number] =
            image_of(loaded->context, loaded->slot[buffer->slot], buffer->bytes, texel, &code);
    return succeeded(loaded, code, "clCreateImage", buffer->name) ? &loaded->image[number] : NULL;
}

static int armed(struct loaded *loaded, size_t number)
{
    const struct launch *launch = &loaded->candidate->launch[number];
    for (size_t i = 0; i < launch->arguments; i++) {
        const struct buffer *buffer = &loaded->candidate->buffer[launch->argument[i]];
        if (!allocated(loaded, buffer))
            return 0;
        const cl_mem *given = launch->texel[i]
                                  ? image_in(loaded, launch->argument[i], launch->texel[i])
                                  : &loaded->slot[buffer->slot];
        if (!given)
            return 0;
        cl_int code = clSetKernelArg(loaded->kernel[number], (cl_uint)i, sizeof *given, given);
        if (!succeeded(loaded, code, "clSetKernelArg", launch->range.function))
            return 0;
    }
    if (!launch->range.in_loop)
        return 1;
    cl_int iteration = launch->range.iteration;
    cl_int code = clSetKernelArg(loaded->kernel[number], (cl_uint)launch->arguments,
                                 sizeof iteration, &iteration);
    return succeeded(loaded, code, "clSetKernelArg", launch->range.function);
}

static int launched(struct loaded *loaded, size_t number, cl_event *event)
{
    const struct range *range = &loaded->candidate->launch[number].range;
    cl_int code = clEnqueueNDRangeKernel(loaded->queue, loaded->kernel[number],
                                         (cl_uint)range->dimensions, NULL, range->global,
                                         range->local[0] ? range->local : NULL, 0, NULL, event);
    return succeeded(loaded, code, "clEnqueueNDRangeKernel", range->function);
}

/* Launches a kernel and waits for it; `ns` gets the nanoseconds by the host's clock. */
static int timed_by_host(struct loaded *loaded, size_t number, cl_event *event,
                         unsigned long long *ns)
{
    double begun = seconds();
    if (!launched(loaded, number, event))
        return 0;
    cl_int code = clFinish(loaded->queue);
    *ns = (unsigned long long)(1e9 * (seconds() - begun));
    return succeeded(loaded, code, "clFinish", loaded->candidate->launch[number].range.function);
}

static int waited(struct loaded *loaded, const char *function, cl_event event,
                  unsigned long long *ns)
{
    cl_ulong start = 0, end = 0;
    if (!succeeded(loaded, clWaitForEvents(1, &event), "clWaitForEvents", function))
        return 0;
    if (loaded->by_host)
        return 1;
    cl_int code =
        clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof start, &start, NULL);
    if (!succeeded(loaded, code, "clGetEventProfilingInfo", function))
        return 0;
    code = clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL);
    *ns = end > start ? end - start : 0;
    return succeeded(loaded, code, "clGetEventProfilingInfo", function);
}

/* Runs the launches of a phase and waits for them; `ns` gets the nanoseconds of each. */
static int executed(struct loaded *loaded, int phase, int poison, unsigned long long *ns)
{
    const struct candidate *candidate = loaded->candidate;
    cl_event *event = room_for(candidate->launches, sizeof *event);
    int fine = !loaded->by_host /* what came before is none of the first launch's time */
               || succeeded(loaded, clFinish(loaded->queue), "clFinish", candidate->id);
    for (size_t i = 0, number = 0; fine && i < candidate->launches; i++) {
        if (candidate->launch[i].phase != phase)
            continue;
        fine = poisoned_before(loaded, i, poison) && armed(loaded, i)
               && (loaded->by_host ? timed_by_host(loaded, i, &event[i], &ns[number])
                                   : launched(loaded, i, &event[i]));
        number++;
    }
    for (size_t i = 0; i < candidate->launches; i++) {
        if (!event[i])
            continue;
        fine = fine && waited(loaded, candidate->launch[i].range.function, event[i], ns++);
        clReleaseEvent(event[i]);
    }
    free(event);
    return fine;
}

int ran(struct loaded *loaded, int poison, unsigned char **result)
{
    struct outcome *outcome = loaded->outcome;
    unsigned long long *ns = room_for(loaded->candidate->launches, sizeof *ns);
    free(loaded->checked);
    loaded->checked = ns;
    release_beyond(loaded, 0);
    int fine = poisoned(loaded, PREPARE, poison) && uploaded(loaded, CONSTANT, 0)
               && executed(loaded, PREPARE, poison, ns);
    outcome->prepare_ns = 0;
    for (size_t i = 0; i < loaded->candidate->launches; i++)
        outcome->prepare_ns += ns[i];
    release_beyond(loaded, RUN);
    fine = fine && poisoned(loaded, RUN, poison) && uploaded(loaded, INPUT, 0)
           && executed(loaded, RUN, poison, ns) && downloaded(loaded, result);
    outcome->allocated = 0;
    for (size_t s = 0; s < loaded->candidate->slots; s++)
        outcome->allocated += loaded->slot[s] ? loaded->candidate->slot[s].bytes : 0;
    return fine;
}

int ran_again(struct loaded *loaded, unsigned long long *ns)
{
    return uploaded(loaded, INPUT, 1) && executed(loaded, RUN, NONE, ns);
}

/* --- loading and unloading --- */

static int opened(struct loaded *loaded)
{
    cl_int code;
    cl_device_id id = loaded->device->id;
    cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                          (cl_context_properties)loaded->device->platform, 0};
    loaded->context = clCreateContext(properties, 1, &id, NULL, NULL, &code);
    if (!succeeded(loaded, code, "clCreateContext", loaded->device->name))
        return 0;
    loaded->queue = clCreateCommandQueue(loaded->context, id, CL_QUEUE_PROFILING_ENABLE, &code);
    if (!succeeded(loaded, code, "clCreateCommandQueue", loaded->device->name))
        return 0;
    int advances = 0;
    code = look_at_clock(loaded->context, loaded->queue, &advances);
    loaded->by_host = !advances;
    return succeeded(loaded, code, "a command that is timed", loaded->device->name);
}

int load(struct loaded *loaded)
{
    loaded->kernel = room_for(loaded->candidate->launches, sizeof *loaded->kernel);
    loaded->slot = room_for(loaded->candidate->slots, sizeof *loaded->slot);
    loaded->image = room_for(loaded->candidate->buffers, sizeof *loaded->image);
    return fits(loaded) && opened(loaded) && built(loaded);
}

void unload(struct loaded *loaded)
{
    if (loaded->queue)
        clFinish(loaded->queue);
    release_beyond(loaded, 0);
    for (size_t i = 0; i < loaded->candidate->launches; i++)
        if (loaded->kernel[i])
            clReleaseKernel(loaded->kernel[i]);
    if (loaded->program)
        clReleaseProgram(loaded->program);
    if (loaded->queue)
        clReleaseCommandQueue(loaded->queue);
    if (loaded->context)
        clReleaseContext(loaded->context);
    free(loaded->kernel);
    free(loaded->slot);
    free(loaded->image);
    free(loaded->checked);
}
