#include "image.h"

cl_mem image_of(cl_context context, cl_mem buffer, size_t bytes, size_t texel, cl_int *code)
{
    const cl_image_format format = {CL_RGBA, texel == 16 ? CL_FLOAT : CL_HALF_FLOAT};
    cl_image_desc described = {0};
    described.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER;
    described.image_width = bytes / texel;
    described.buffer = buffer;
    return clCreateImage(context, CL_MEM_READ_ONLY, &format, &described, NULL, code);
}

size_t most_texels(cl_device_id device)
{
    cl_bool any = 0;
    size_t most = 0;
    cl_int code = clGetDeviceInfo(device, CL_DEVICE_IMAGE_SUPPORT, sizeof any, &any, NULL);
    if (code == CL_SUCCESS && any)
        code = clGetDeviceInfo(device, CL_DEVICE_IMAGE_MAX_BUFFER_SIZE, sizeof most, &most, NULL);
    return code == CL_SUCCESS && any ? most : 0;
}
