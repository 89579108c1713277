#include "resident.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "image.h"
#include "limits.h"
#include "text.h"

static void check(const struct resident *resident, cl_int code, const char *call, const char *of)
{
    if (code != CL_SUCCESS)
        give_up("%s returned %s for %s on %s", call, error_name(code), of, resident->device->name);
}

/* --- preparation --- */

static void check_device(const struct network *network, const struct device *device)
{
    cl_uint bits = 0;
    cl_int code = clGetDeviceInfo(device->id, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof bits, &bits,
                                  NULL);
    if (code != CL_SUCCESS)
        give_up("clGetDeviceInfo returned %s for %s", error_name(code), device->name);
    if (!bits || network->alignment % (bits / 8 ? bits / 8 : 1))
        give_up("%s cannot run this plan of %s: tensors are at multiples of %zu bytes\n%s needs "
                "multiples of %zu\nplan for this device and export again, or choose another with "
                "--device",
                device->name, network->name, network->alignment, device->name, (size_t)bits / 8);
    for (size_t i = 0; i < network->extensions; i++)
        if (!has_extension(device, network->extension[i]))
            give_up("%s cannot run this plan of %s: its kernels need %s\nchoose another device "
                    "with --device",
                    device->name, network->name, network->extension[i]);
}

static cl_program built(const struct resident *resident, const struct data *source)
{
    cl_int code;
    cl_device_id id = resident->device->id;
    const char *start = (const char *)source->bytes;
    cl_program program =
        clCreateProgramWithSource(resident->context, 1, &start, &source->size, &code);
    check(resident, code, "clCreateProgramWithSource", source->file);
    code = clBuildProgram(program, 1, &id, resident->network->options, NULL, NULL);
    if (code != CL_SUCCESS) {
        size_t size = 0;
        clGetProgramBuildInfo(program, id, CL_PROGRAM_BUILD_LOG, 0, NULL, &size);
        char *log = room_for(size + 1, 1);
        clGetProgramBuildInfo(program, id, CL_PROGRAM_BUILD_LOG, size, log, NULL);
        give_up("%s cannot be built for %s: clBuildProgram returned %s\n%s", source->file,
                resident->device->name, error_name(code), log);
    }
    return program;
}

static void allocate(struct resident *resident, const struct step *step)
{
    const struct device *device = resident->device;
    cl_int code;
    if (step->bytes > device->largest_buffer)
        give_up("%s cannot run this plan of %s: it needs a buffer of %zu bytes\nthe device allows "
                "at most %llu\nplan with less memory (--memory-limit), or choose another device",
                device->name, resident->network->name, step->bytes,
                (unsigned long long)device->largest_buffer);
    resident->memory[step->memory] =
        clCreateBuffer(resident->context, CL_MEM_READ_WRITE, step->bytes, NULL, &code);
    check(resident, code, "clCreateBuffer", "an allocation");
}

/* Has a memory object released at the end. */
static void keep(struct resident *resident, cl_mem part)
{
    resident->part = one_more(resident->part, resident->parts, sizeof *resident->part);
    resident->part[resident->parts++] = part;
}

/* The part of an allocation at a place, which is released at the end. */
static cl_mem part_at(struct resident *resident, const struct place *place)
{
    cl_int code;
    cl_buffer_region region = {place->offset, place->bytes};
    cl_mem part = clCreateSubBuffer(resident->memory[place->memory], CL_MEM_READ_WRITE,
                                    CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
    check(resident, code, "clCreateSubBuffer", "a part of an allocation");
    keep(resident, part);
    return part;
}

/* The image of a part of an allocation, which is released at the end. */
static cl_mem image_at(struct resident *resident, const struct place *place, const char *function)
{
    cl_int code;
    const struct device *device = resident->device;
    if (place->bytes / place->texel > device->image_texels)
        give_up("%s cannot run this plan of %s: %s reads an image of %zu texels\nthe device allows "
                "at most %zu\nplan for this device and export again, or choose another with "
                "--device",
                device->name, resident->network->name, function, place->bytes / place->texel,
                device->image_texels);
    cl_mem image = image_of(resident->context, part_at(resident, place), place->bytes,
                            place->texel, &code);
    check(resident, code, "clCreateImage", function);
    keep(resident, image);
    return image;
}

/* The kernel of a launch with its arguments. */
static cl_kernel armed(struct resident *resident, const struct launch *launch)
{
    cl_int code;
    struct text reason = {0}, detail = {0};
    const char *function = launch->range.function;
    cl_kernel kernel = clCreateKernel(resident->program[launch->program], function, &code);
    check(resident, code, "clCreateKernel", function);
    if (!kernel_fits(resident->device, kernel, &launch->range, &reason, &detail))
        give_up("%s cannot run this plan of %s: %s\nplan for this device and export again, or "
                "choose another with --device",
                resident->device->name, resident->network->name, reason.bytes);
    for (size_t i = 0; i < launch->arguments; i++) {
        const struct place *place = &launch->argument[i];
        cl_mem part = place->texel ? image_at(resident, place, function) : part_at(resident, place);
        code = clSetKernelArg(kernel, (cl_uint)i, sizeof part, &part);
        check(resident, code, "clSetKernelArg", function);
    }
    if (launch->range.in_loop) {
        cl_int iteration = launch->range.iteration;
        code = clSetKernelArg(kernel, (cl_uint)launch->arguments, sizeof iteration, &iteration);
        check(resident, code, "clSetKernelArg", function);
    }
    return kernel;
}

static void release_parts(struct resident *resident)
{
    while (resident->parts)
        clReleaseMemObject(resident->part[--resident->parts]);
}

static void enqueue(struct resident *resident, const struct launch *launch, cl_kernel kernel,
                    cl_event *event)
{
    const struct range *range = &launch->range;
    cl_int code = clEnqueueNDRangeKernel(resident->queue, kernel, (cl_uint)range->dimensions, NULL,
                                         range->global, range->local[0] ? range->local : NULL, 0,
                                         NULL, event);
    check(resident, code, "clEnqueueNDRangeKernel", range->function);
}

static void prepare(struct resident *resident, const struct step *step)
{
    cl_mem *memory = &resident->memory[step->memory];
    if (step->kind == ALLOCATE) {
        allocate(resident, step);
    } else if (step->kind == UPLOAD) {
        cl_int code = clEnqueueWriteBuffer(resident->queue, *memory, CL_TRUE, 0, step->bytes,
                                           resident->network->weights.bytes + step->offset, 0, NULL,
                                           NULL);
        check(resident, code, "clEnqueueWriteBuffer", "constants");
    } else if (step->kind == RELEASE) {
        clReleaseMemObject(*memory);
        *memory = NULL;
    } else {
        cl_kernel kernel = armed(resident, &step->launch);
        enqueue(resident, &step->launch, kernel, NULL);
        check(resident, clFinish(resident->queue), "clFinish", step->launch.range.function);
        clReleaseKernel(kernel);
        release_parts(resident);
    }
}

struct resident *make_resident(const struct network *network, const struct device *device)
{
    struct resident *resident = room_for(1, sizeof *resident);
    cl_int code;
    cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                          (cl_context_properties)device->platform, 0};
    resident->network = network;
    resident->device = device;
    check_device(network, device);
    resident->context = clCreateContext(properties, 1, &device->id, NULL, NULL, &code);
    check(resident, code, "clCreateContext", network->name);
    resident->queue =
        clCreateCommandQueue(resident->context, device->id, CL_QUEUE_PROFILING_ENABLE, &code);
    check(resident, code, "clCreateCommandQueue", network->name);
    int advances = 0;
    code = look_at_clock(resident->context, resident->queue, &advances);
    check(resident, code, "a command that is timed", network->name);
    resident->by_host = !advances;
    resident->program = room_for(network->programs, sizeof *resident->program);
    for (size_t i = 0; i < network->programs; i++)
        resident->program[i] = built(resident, &network->program[i]);
    resident->memory = room_for(network->memories, sizeof *resident->memory);
    for (size_t i = 0; i < network->steps; i++)
        prepare(resident, &network->step[i]);
    resident->kernel = room_for(network->launches, sizeof *resident->kernel);
    for (size_t i = 0; i < network->launches; i++)
        resident->kernel[i] = armed(resident, &network->launch[i]);
    return resident;
}

/* --- runs --- */

void fill_arena(struct resident *resident, unsigned char byte)
{
    if (!resident->network->arena)
        return;
    cl_int code = clEnqueueFillBuffer(resident->queue, resident->memory[0], &byte, 1, 0,
                                      resident->network->arena, 0, NULL, NULL);
    check(resident, code, "clEnqueueFillBuffer", "the arena");
}

static void download(struct resident *resident, const struct array *array,
                     unsigned char *const *given, unsigned char *found)
{
    const struct source *source = &array->source;
    if (source->kind == GIVEN) {
        memcpy(found, given[source->from], array->bytes);
    } else if (source->kind == WEIGHTS) {
        memcpy(found, resident->network->weights.bytes + source->from, array->bytes);
    } else if (source->kind == ARENA) {
        cl_int code = clEnqueueReadBuffer(resident->queue, resident->memory[0], CL_TRUE,
                                          source->from, array->bytes, found, 0, NULL, NULL);
        check(resident, code, "clEnqueueReadBuffer", array->name);
    }
}

static unsigned long long nanoseconds(const struct resident *resident, cl_event event,
                                      const char *function)
{
    cl_ulong start = 0, end = 0;
    cl_int code =
        clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof start, &start, NULL);
    check(resident, code, "clGetEventProfilingInfo", function);
    code = clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL);
    check(resident, code, "clGetEventProfilingInfo", function);
    return end > start ? end - start : 0;
}

void run(struct resident *resident, unsigned char *const *given, unsigned char **found,
         unsigned long long *ns)
{
    const struct network *network = resident->network;
    cl_event *event = room_for(network->launches, sizeof *event);
    for (size_t i = 0; i < network->inputs; i++) {
        const struct array *input = &network->input[i];
        if (input->source.kind != ARENA)
            continue;
        cl_int code =
            clEnqueueWriteBuffer(resident->queue, resident->memory[0], CL_TRUE, input->source.from,
                                 input->bytes, given[i], 0, NULL, NULL);
        check(resident, code, "clEnqueueWriteBuffer", input->name);
    }
    if (resident->by_host) /* what came before is none of the first launch's time */
        check(resident, clFinish(resident->queue), "clFinish", network->name);
    for (size_t i = 0; i < network->launches; i++) {
        double begun = seconds();
        enqueue(resident, &network->launch[i], resident->kernel[i], &event[i]);
        if (!resident->by_host)
            continue;
        check(resident, clFinish(resident->queue), "clFinish", network->launch[i].range.function);
        ns[i] = (unsigned long long)(1e9 * (seconds() - begun));
    }
    for (size_t i = 0; i < network->launches; i++) {
        const char *function = network->launch[i].range.function;
        check(resident, clWaitForEvents(1, &event[i]), "clWaitForEvents", function);
        if (!resident->by_host)
            ns[i] = nanoseconds(resident, event[i], function);
        clReleaseEvent(event[i]);
    }
    for (size_t i = 0; i < network->outputs; i++)
        download(resident, &network->output[i], given, found[i]);
    free(event);
}

void free_resident(struct resident *resident)
{
    const struct network *network = resident->network;
    clFinish(resident->queue);
    for (size_t i = 0; i < network->launches; i++)
        clReleaseKernel(resident->kernel[i]);
    release_parts(resident);
    for (size_t i = 0; i < network->memories; i++)
        if (resident->memory[i])
            clReleaseMemObject(resident->memory[i]);
    for (size_t i = 0; i < network->programs; i++)
        clReleaseProgram(resident->program[i]);
    clReleaseCommandQueue(resident->queue);
    clReleaseContext(resident->context);
    void *const parts[] = {resident->program, resident->memory, resident->kernel, resident->part,
                           resident};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        free(parts[i]);
}
