#include "limits.h"

int kernel_fits(const struct device *device, cl_kernel kernel, const struct range *range,
                struct text *reason, struct text *detail)
{
    size_t most = 0, group = 1, made_for[3] = {0, 0, 0};
    cl_ulong local = 0;
    cl_int code = clGetKernelWorkGroupInfo(kernel, device->id, CL_KERNEL_WORK_GROUP_SIZE,
                                           sizeof most, &most, NULL);
    if (code == CL_SUCCESS)
        code = clGetKernelWorkGroupInfo(kernel, device->id, CL_KERNEL_LOCAL_MEM_SIZE, sizeof local,
                                        &local, NULL);
    if (code == CL_SUCCESS)
        code = clGetKernelWorkGroupInfo(kernel, device->id, CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
                                        sizeof made_for, made_for, NULL);
    if (code != CL_SUCCESS) {
        add(reason, "clGetKernelWorkGroupInfo returned %s for %s", error_name(code),
            range->function);
        return 0;
    }
    int same = 1;
    for (size_t i = 0; i < range->dimensions && range->local[0]; i++) {
        same = same && range->local[i] == made_for[i];
        group *= range->local[i];
        if (range->local[i] > device->largest_items[i]) {
            add(reason, "%s has %zu work-items in dimension %zu; the device allows at most %zu",
                range->function, range->local[i], i, device->largest_items[i]);
            return 0;
        }
    }
    /* A kernel that was compiled for this group and cannot run fails to launch. */
    if (same && group <= device->largest_group)
        most = group;
    if (group > most) {
        add(reason, "%s has work-groups of %zu work-items; the device runs it with at most %zu",
            range->function, group, most);
        add(detail, "kernel=%s figure=group number=%zu", range->function, most);
        return 0;
    }
    if (local > device->local_memory) {
        add(reason, "%s needs %llu bytes of local memory; the device has %llu", range->function,
            (unsigned long long)local, (unsigned long long)device->local_memory);
        add(detail, "kernel=%s figure=local number=%llu", range->function,
            (unsigned long long)local);
        return 0;
    }
    return 1;
}
