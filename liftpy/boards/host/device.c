#include "device.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image.h"

#define NAMED(code)                                                                                \
    case code: return #code

const char *error_name(cl_int code)
{
    static char unknown[32];
    switch (code) {
        NAMED(CL_DEVICE_NOT_FOUND);
        NAMED(CL_DEVICE_NOT_AVAILABLE);
        NAMED(CL_COMPILER_NOT_AVAILABLE);
        NAMED(CL_MEM_OBJECT_ALLOCATION_FAILURE);
        NAMED(CL_OUT_OF_RESOURCES);
        NAMED(CL_OUT_OF_HOST_MEMORY);
        NAMED(CL_PROFILING_INFO_NOT_AVAILABLE);
        NAMED(CL_MEM_COPY_OVERLAP);
        NAMED(CL_IMAGE_FORMAT_MISMATCH);
        NAMED(CL_IMAGE_FORMAT_NOT_SUPPORTED);
        NAMED(CL_BUILD_PROGRAM_FAILURE);
        NAMED(CL_MAP_FAILURE);
        NAMED(CL_MISALIGNED_SUB_BUFFER_OFFSET);
        NAMED(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
        NAMED(CL_COMPILE_PROGRAM_FAILURE);
        NAMED(CL_LINKER_NOT_AVAILABLE);
        NAMED(CL_LINK_PROGRAM_FAILURE);
        NAMED(CL_KERNEL_ARG_INFO_NOT_AVAILABLE);
        NAMED(CL_INVALID_VALUE);
        NAMED(CL_INVALID_DEVICE_TYPE);
        NAMED(CL_INVALID_PLATFORM);
        NAMED(CL_INVALID_DEVICE);
        NAMED(CL_INVALID_CONTEXT);
        NAMED(CL_INVALID_QUEUE_PROPERTIES);
        NAMED(CL_INVALID_COMMAND_QUEUE);
        NAMED(CL_INVALID_MEM_OBJECT);
        NAMED(CL_INVALID_IMAGE_FORMAT_DESCRIPTOR);
        NAMED(CL_INVALID_IMAGE_SIZE);
        NAMED(CL_INVALID_BINARY);
        NAMED(CL_INVALID_BUILD_OPTIONS);
        NAMED(CL_INVALID_PROGRAM);
        NAMED(CL_INVALID_PROGRAM_EXECUTABLE);
        NAMED(CL_INVALID_KERNEL_NAME);
        NAMED(CL_INVALID_KERNEL_DEFINITION);
        NAMED(CL_INVALID_KERNEL);
        NAMED(CL_INVALID_ARG_INDEX);
        NAMED(CL_INVALID_ARG_VALUE);
        NAMED(CL_INVALID_ARG_SIZE);
        NAMED(CL_INVALID_KERNEL_ARGS);
        NAMED(CL_INVALID_WORK_DIMENSION);
        NAMED(CL_INVALID_WORK_GROUP_SIZE);
        NAMED(CL_INVALID_WORK_ITEM_SIZE);
        NAMED(CL_INVALID_GLOBAL_OFFSET);
        NAMED(CL_INVALID_EVENT_WAIT_LIST);
        NAMED(CL_INVALID_EVENT);
        NAMED(CL_INVALID_OPERATION);
        NAMED(CL_INVALID_BUFFER_SIZE);
        NAMED(CL_INVALID_GLOBAL_WORK_SIZE);
        NAMED(CL_INVALID_PROPERTY);
        NAMED(CL_INVALID_IMAGE_DESCRIPTOR);
        NAMED(CL_INVALID_COMPILER_OPTIONS);
        NAMED(CL_INVALID_LINKER_OPTIONS);
    default: snprintf(unknown, sizeof unknown, "error %d", (int)code); return unknown;
    }
}

static void check(cl_int code, const char *call)
{
    if (code != CL_SUCCESS)
        give_up("%s returned %s", call, error_name(code));
}

/* The text without leading and trailing white space; frees the argument. */
static char *stripped(char *text)
{
    char *start = text + strspn(text, " \t\n"), *end = start + strlen(start);
    while (end > start && isspace((unsigned char)end[-1]))
        *--end = 0;
    char *found = copied(start);
    free(text);
    return found;
}

static char *device_text(cl_device_id id, cl_device_info what)
{
    size_t size = 0;
    check(clGetDeviceInfo(id, what, 0, NULL, &size), "clGetDeviceInfo");
    char *found = room_for(size + 1, 1);
    check(clGetDeviceInfo(id, what, size, found, NULL), "clGetDeviceInfo");
    return stripped(found);
}

static char *platform_name(cl_platform_id id)
{
    size_t size = 0;
    check(clGetPlatformInfo(id, CL_PLATFORM_NAME, 0, NULL, &size), "clGetPlatformInfo");
    char *found = room_for(size + 1, 1);
    check(clGetPlatformInfo(id, CL_PLATFORM_NAME, size, found, NULL), "clGetPlatformInfo");
    return stripped(found);
}

static void get(cl_device_id id, cl_device_info what, size_t size, void *value)
{
    check(clGetDeviceInfo(id, what, size, value, NULL), "clGetDeviceInfo");
}

static struct device described(cl_platform_id platform, cl_device_id id)
{
    struct device found = {0};
    size_t items[16] = {0}, size = 0;
    found.platform = platform;
    found.id = id;
    found.name = device_text(id, CL_DEVICE_NAME);
    found.driver = device_text(id, CL_DRIVER_VERSION);
    found.platform_name = platform_name(platform);
    get(id, CL_DEVICE_TYPE, sizeof found.type, &found.type);
    get(id, CL_DEVICE_LOCAL_MEM_SIZE, sizeof found.local_memory, &found.local_memory);
    get(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof found.largest_buffer, &found.largest_buffer);
    get(id, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof found.global_memory, &found.global_memory);
    get(id, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof found.largest_group, &found.largest_group);
    check(clGetDeviceInfo(id, CL_DEVICE_MAX_WORK_ITEM_SIZES, 0, NULL, &size), "clGetDeviceInfo");
    if (size > sizeof items)
        give_up("%s has too many work-item dimensions", found.name);
    get(id, CL_DEVICE_MAX_WORK_ITEM_SIZES, size, items);
    memcpy(found.largest_items, items, sizeof found.largest_items);
    found.image_texels = most_texels(id);
    return found;
}

static int equal(const struct device *one, const struct device *other)
{
    return !strcmp(one->name, other->name) && !strcmp(one->driver, other->driver)
           && !strcmp(one->platform_name, other->platform_name);
}

struct device *find_devices(size_t *count)
{
    struct device *found = NULL;
    cl_uint platforms = 0;
    cl_int code = clGetPlatformIDs(0, NULL, &platforms);
    *count = 0;
    if (code != CL_SUCCESS || !platforms)
        give_up("no OpenCL platform: clGetPlatformIDs returned %s", error_name(code));
    cl_platform_id *platform = room_for(platforms, sizeof *platform);
    check(clGetPlatformIDs(platforms, platform, NULL), "clGetPlatformIDs");
    for (cl_uint p = 0; p < platforms; p++) {
        cl_uint devices = 0;
        code = clGetDeviceIDs(platform[p], CL_DEVICE_TYPE_ALL, 0, NULL, &devices);
        if (code != CL_SUCCESS) {
            fprintf(stderr, "%s: a platform is skipped: clGetDeviceIDs returned %s\n",
                    program_name, error_name(code));
            continue;
        }
        cl_device_id *id = room_for(devices, sizeof *id);
        check(clGetDeviceIDs(platform[p], CL_DEVICE_TYPE_ALL, devices, id, NULL), "clGetDeviceIDs");
        for (cl_uint d = 0; d < devices; d++) {
            found = one_more(found, *count, sizeof *found);
            found[*count] = described(platform[p], id[d]);
            for (size_t i = 0; i < *count; i++)
                found[*count].ordinal += (size_t)equal(&found[i], &found[*count]);
            ++*count;
        }
        free(id);
    }
    free(platform);
    if (!*count)
        give_up("none of the %u OpenCL platforms has a device", (unsigned)platforms);
    return found;
}

static const char *kind(const struct device *device)
{
    if (device->type & CL_DEVICE_TYPE_CPU)
        return "CPU"; /* a simulator that claims every type counts as a CPU */
    return device->type & CL_DEVICE_TYPE_GPU ? "GPU" : "ACCELERATOR";
}

static void lower(char *text)
{
    for (; *text; text++)
        *text = (char)tolower((unsigned char)*text);
}

static int fits(const struct device *device, const char *named)
{
    struct text whole = {0}, part = {0};
    add(&whole, "%s %s", device->platform_name, device->name);
    add(&part, "%s", named);
    lower(whole.bytes);
    lower(part.bytes);
    int found = *named && strstr(whole.bytes, part.bytes) != NULL;
    drop(&whole);
    drop(&part);
    return found;
}

void list(struct text *text, const struct device *devices, size_t count)
{
    for (size_t i = 0; i < count; i++)
        add(text, "%zu  %s: %s, driver %s\n", i, devices[i].platform_name, devices[i].name,
            devices[i].driver);
}

static const struct device *wanted(const struct device *devices, size_t count,
                                   const struct target *target)
{
    struct text there = {0};
    for (size_t i = 0; i < count; i++)
        if (target->platform ? !strcmp(devices[i].platform_name, target->platform)
                                 && !strcmp(devices[i].name, target->device)
                           : fits(&devices[i], target->device))
            return &devices[i];
    list(&there, devices, count);
    give_up("the bundle is for %s%s%s, which this machine lacks. It has:\n%sName one of these with "
            "--device, or export for it",
            target->platform ? target->platform : "", target->platform ? ": " : "", target->device,
            there.bytes);
    return NULL;
}

const struct device *choose(const struct device *devices, size_t count, const char *named,
                            const struct target *target)
{
    if (!named && target->device)
        return wanted(devices, count, target);
    if (!named) {
        for (size_t i = 0; i < count; i++)
            if (!strcmp(kind(&devices[i]), "GPU"))
                return &devices[i];
        return devices;
    }
    if (*named && strspn(named, "0123456789") == strlen(named)) {
        if (strtoul(named, NULL, 10) < count)
            return &devices[strtoul(named, NULL, 10)];
    } else {
        for (size_t i = 0; i < count; i++)
            if (fits(&devices[i], named))
                return &devices[i];
    }
    give_up("no device matches '%s'; --list shows all", named);
    return NULL;
}

size_t opencl_version(const struct device *device)
{
    char *text = device_text(device->id, CL_DEVICE_VERSION); /* "OpenCL 2.1 ..." */
    size_t found = strtoul(text + strcspn(text, "0123456789"), NULL, 10);
    free(text);
    return found;
}

/* The names of a device's extensions and, with OpenCL 3, of its compiler's features, with spaces
   between them. */
static char *extensions(const struct device *device)
{
    struct {
        cl_uint version;
        char name[64];
    } *features;
    size_t size = 0;
    char *named = device_text(device->id, CL_DEVICE_EXTENSIONS);
    struct text all = {0};
    add(&all, "%s", named);
    free(named);
    if (opencl_version(device) >= 3) {
        check(clGetDeviceInfo(device->id, CL_DEVICE_OPENCL_C_FEATURES, 0, NULL, &size),
              "clGetDeviceInfo");
        features = room_for(size + 1, 1);
        get(device->id, CL_DEVICE_OPENCL_C_FEATURES, size, features);
        for (size_t i = 0; i < size / sizeof *features; i++)
            add(&all, " %.64s", features[i].name);
        free(features);
    }
    return all.bytes;
}

int has_extension(const struct device *device, const char *name)
{
    char *all = extensions(device);
    int found = 0;
    for (char *word = strtok(all, " "); word; word = strtok(NULL, " "))
        found |= !strcmp(word, name);
    free(all);
    return found;
}

static void describe_text(struct text *text, const char *key, char *value)
{
    add(text, "\"%s\": ", key);
    add_json(text, value);
    add(text, ", ");
    free(value);
}

void identify(struct text *text, const struct device *device)
{
    add(text, "{");
    describe_text(text, "name", copied(device->name));
    describe_text(text, "vendor", device_text(device->id, CL_DEVICE_VENDOR));
    describe_text(text, "platform", copied(device->platform_name));
    describe_text(text, "driver_version", copied(device->driver));
}

static void describe_extensions(struct text *text, const struct device *device,
                                char *const *known, size_t count)
{
    char *all = extensions(device);
    const char *between = "";
    add(text, "\"extensions\": [");
    for (char *word = strtok(all, " "); word; word = strtok(NULL, " ")) {
        int is_known = !known;
        for (size_t i = 0; known && i < count; i++)
            is_known |= !strcmp(word, known[i]);
        if (!is_known)
            continue;
        add(text, "%s", between);
        add_json(text, word);
        between = ", ";
    }
    add(text, "]");
    free(all);
}

void describe(struct text *text, const struct device *device, char *const *known, size_t count)
{
    cl_uint units = 0, width = 0;
    get(device->id, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units);
    get(device->id, CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT, sizeof width, &width);
    identify(text, device);
    describe_text(text, "opencl_c", device_text(device->id, CL_DEVICE_OPENCL_C_VERSION));
    describe_text(text, "type", copied(kind(device)));
    add(text, "\"compute_units\": %u, \"vector_width\": %u, \"ordinal\": %zu, ", (unsigned)units,
        (unsigned)width, device->ordinal);
    add(text, "\"max_work_group_size\": %zu, \"max_work_item_sizes\": [%zu, %zu, %zu], ",
        device->largest_group, device->largest_items[0], device->largest_items[1],
        device->largest_items[2]);
    add(text, "\"local_memory\": %llu, \"largest_buffer\": %llu, \"global_memory\": %llu, ",
        (unsigned long long)device->local_memory, (unsigned long long)device->largest_buffer,
        (unsigned long long)device->global_memory);
    add(text, "\"image_texels\": %zu, ", device->image_texels);
    describe_extensions(text, device, known, count);
    add(text, "}");
}

void free_devices(struct device *devices, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(devices[i].name);
        free(devices[i].driver);
        free(devices[i].platform_name);
    }
    free(devices);
}
