/* The part of OpenCL 1.2 that this program uses, as in the specification: types, constants and
   functions. The functions are looked up in a library that is loaded at run time, so that building
   the program needs neither headers nor a library. */
#ifndef OPENCL_H
#define OPENCL_H

#include <stddef.h>
#include <stdint.h>

typedef int32_t cl_int;
typedef uint32_t cl_uint, cl_bool, cl_device_info, cl_platform_info, cl_program_build_info;
typedef uint32_t cl_kernel_work_group_info, cl_profiling_info, cl_buffer_create_type;
typedef uint64_t cl_ulong, cl_device_type, cl_mem_flags, cl_command_queue_properties;
typedef intptr_t cl_context_properties;
typedef struct _cl_platform_id *cl_platform_id;
typedef struct _cl_device_id *cl_device_id;
typedef struct _cl_context *cl_context;
typedef struct _cl_command_queue *cl_command_queue;
typedef struct _cl_mem *cl_mem;
typedef struct _cl_program *cl_program;
typedef struct _cl_kernel *cl_kernel;
typedef struct _cl_event *cl_event;

typedef struct {
    size_t origin, size;
} cl_buffer_region;

typedef struct {
    cl_uint image_channel_order, image_channel_data_type;
} cl_image_format;

typedef struct {
    cl_uint image_type;
    size_t image_width, image_height, image_depth, image_array_size;
    size_t image_row_pitch, image_slice_pitch;
    cl_uint num_mip_levels, num_samples;
    cl_mem buffer;
} cl_image_desc;

#define CL_SUCCESS 0
#define CL_DEVICE_NOT_FOUND -1
#define CL_DEVICE_NOT_AVAILABLE -2
#define CL_COMPILER_NOT_AVAILABLE -3
#define CL_MEM_OBJECT_ALLOCATION_FAILURE -4
#define CL_OUT_OF_RESOURCES -5
#define CL_OUT_OF_HOST_MEMORY -6
#define CL_PROFILING_INFO_NOT_AVAILABLE -7
#define CL_MEM_COPY_OVERLAP -8
#define CL_IMAGE_FORMAT_MISMATCH -9
#define CL_IMAGE_FORMAT_NOT_SUPPORTED -10
#define CL_BUILD_PROGRAM_FAILURE -11
#define CL_MAP_FAILURE -12
#define CL_MISALIGNED_SUB_BUFFER_OFFSET -13
#define CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST -14
#define CL_COMPILE_PROGRAM_FAILURE -15
#define CL_LINKER_NOT_AVAILABLE -16
#define CL_LINK_PROGRAM_FAILURE -17
#define CL_KERNEL_ARG_INFO_NOT_AVAILABLE -19
#define CL_INVALID_VALUE -30
#define CL_INVALID_DEVICE_TYPE -31
#define CL_INVALID_PLATFORM -32
#define CL_INVALID_DEVICE -33
#define CL_INVALID_CONTEXT -34
#define CL_INVALID_QUEUE_PROPERTIES -35
#define CL_INVALID_COMMAND_QUEUE -36
#define CL_INVALID_MEM_OBJECT -38
#define CL_INVALID_IMAGE_FORMAT_DESCRIPTOR -39
#define CL_INVALID_IMAGE_SIZE -40
#define CL_INVALID_BINARY -42
#define CL_INVALID_BUILD_OPTIONS -43
#define CL_INVALID_PROGRAM -44
#define CL_INVALID_PROGRAM_EXECUTABLE -45
#define CL_INVALID_KERNEL_NAME -46
#define CL_INVALID_KERNEL_DEFINITION -47
#define CL_INVALID_KERNEL -48
#define CL_INVALID_ARG_INDEX -49
#define CL_INVALID_ARG_VALUE -50
#define CL_INVALID_ARG_SIZE -51
#define CL_INVALID_KERNEL_ARGS -52
#define CL_INVALID_WORK_DIMENSION -53
#define CL_INVALID_WORK_GROUP_SIZE -54
#define CL_INVALID_WORK_ITEM_SIZE -55
#define CL_INVALID_GLOBAL_OFFSET -56
#define CL_INVALID_EVENT_WAIT_LIST -57
#define CL_INVALID_EVENT -58
#define CL_INVALID_OPERATION -59
#define CL_INVALID_BUFFER_SIZE -61
#define CL_INVALID_GLOBAL_WORK_SIZE -63
#define CL_INVALID_PROPERTY -64
#define CL_INVALID_IMAGE_DESCRIPTOR -65
#define CL_INVALID_COMPILER_OPTIONS -66
#define CL_INVALID_LINKER_OPTIONS -67

#define CL_BUFFER_CREATE_TYPE_REGION 0x1220
#define CL_CONTEXT_PLATFORM 0x1084
#define CL_DEVICE_EXTENSIONS 0x1030
#define CL_DEVICE_GLOBAL_MEM_SIZE 0x101F
#define CL_DEVICE_IMAGE_MAX_BUFFER_SIZE 0x1040
#define CL_DEVICE_IMAGE_SUPPORT 0x1016
#define CL_DEVICE_LOCAL_MEM_SIZE 0x1023
#define CL_DEVICE_MAX_COMPUTE_UNITS 0x1002
#define CL_DEVICE_MAX_MEM_ALLOC_SIZE 0x1010
#define CL_DEVICE_MAX_WORK_GROUP_SIZE 0x1004
#define CL_DEVICE_MAX_WORK_ITEM_SIZES 0x1005
#define CL_DEVICE_MEM_BASE_ADDR_ALIGN 0x1019
#define CL_DEVICE_NAME 0x102B
#define CL_DEVICE_VERSION 0x102F
#define CL_DEVICE_OPENCL_C_FEATURES 0x106F
#define CL_DEVICE_OPENCL_C_VERSION 0x103D
#define CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT 0x100A
#define CL_DEVICE_TYPE 0x1000
#define CL_DEVICE_TYPE_ALL 0xFFFFFFFF
#define CL_DEVICE_TYPE_CPU (1 << 1)
#define CL_DEVICE_TYPE_GPU (1 << 2)
#define CL_DEVICE_VENDOR 0x102C
#define CL_DRIVER_VERSION 0x102D
#define CL_FLOAT 0x10DE
#define CL_HALF_FLOAT 0x10DD
#define CL_KERNEL_LOCAL_MEM_SIZE 0x11B2
#define CL_KERNEL_WORK_GROUP_SIZE 0x11B0
#define CL_KERNEL_COMPILE_WORK_GROUP_SIZE 0x11B1
#define CL_MEM_OBJECT_IMAGE1D_BUFFER 0x10F6
#define CL_MEM_READ_ONLY (1 << 2)
#define CL_MEM_READ_WRITE (1 << 0)
#define CL_PLATFORM_NAME 0x0902
#define CL_PROFILING_COMMAND_END 0x1283
#define CL_PROFILING_COMMAND_START 0x1282
#define CL_PROGRAM_BUILD_LOG 0x1183
#define CL_QUEUE_PROFILING_ENABLE (1 << 1)
#define CL_RGBA 0x10B5
#define CL_TRUE 1

/* Every function: X gets its return type, its name, and the types of its parameters. */
#define OPENCL_FUNCTIONS(X) \
    X(cl_int, clBuildProgram, (cl_program, cl_uint, const cl_device_id *, const char *, void \
      (*)(cl_program, void *), void *)) \
    X(cl_mem, clCreateBuffer, (cl_context, cl_mem_flags, size_t, void *, cl_int *)) \
    X(cl_command_queue, clCreateCommandQueue, (cl_context, cl_device_id, \
      cl_command_queue_properties, cl_int *)) \
    X(cl_context, clCreateContext, (const cl_context_properties *, cl_uint, const \
      cl_device_id *, void (*)(const char *, const void *, size_t, void *), void *, cl_int *)) \
    X(cl_mem, clCreateImage, (cl_context, cl_mem_flags, const cl_image_format *, const \
      cl_image_desc *, void *, cl_int *)) \
    X(cl_kernel, clCreateKernel, (cl_program, const char *, cl_int *)) \
    X(cl_program, clCreateProgramWithSource, (cl_context, cl_uint, const char **, const \
      size_t *, cl_int *)) \
    X(cl_mem, clCreateSubBuffer, (cl_mem, cl_mem_flags, cl_buffer_create_type, const void *, \
      cl_int *)) \
    X(cl_int, clEnqueueFillBuffer, (cl_command_queue, cl_mem, const void *, size_t, size_t, \
      size_t, cl_uint, const cl_event *, cl_event *)) \
    X(cl_int, clEnqueueNDRangeKernel, (cl_command_queue, cl_kernel, cl_uint, const size_t *, \
      const size_t *, const size_t *, cl_uint, const cl_event *, cl_event *)) \
    X(cl_int, clEnqueueReadBuffer, (cl_command_queue, cl_mem, cl_bool, size_t, size_t, void \
      *, cl_uint, const cl_event *, cl_event *)) \
    X(cl_int, clEnqueueWriteBuffer, (cl_command_queue, cl_mem, cl_bool, size_t, size_t, \
      const void *, cl_uint, const cl_event *, cl_event *)) \
    X(cl_int, clFinish, (cl_command_queue)) \
    X(cl_int, clGetDeviceIDs, (cl_platform_id, cl_device_type, cl_uint, cl_device_id *, \
      cl_uint *)) \
    X(cl_int, clGetDeviceInfo, (cl_device_id, cl_device_info, size_t, void *, size_t *)) \
    X(cl_int, clGetEventProfilingInfo, (cl_event, cl_profiling_info, size_t, void *, size_t \
      *)) \
    X(cl_int, clGetKernelWorkGroupInfo, (cl_kernel, cl_device_id, cl_kernel_work_group_info, \
      size_t, void *, size_t *)) \
    X(cl_int, clGetPlatformIDs, (cl_uint, cl_platform_id *, cl_uint *)) \
    X(cl_int, clGetPlatformInfo, (cl_platform_id, cl_platform_info, size_t, void *, size_t \
      *)) \
    X(cl_int, clGetProgramBuildInfo, (cl_program, cl_device_id, cl_program_build_info, \
      size_t, void *, size_t *)) \
    X(cl_int, clReleaseCommandQueue, (cl_command_queue)) \
    X(cl_int, clReleaseContext, (cl_context)) \
    X(cl_int, clReleaseEvent, (cl_event)) \
    X(cl_int, clReleaseKernel, (cl_kernel)) \
    X(cl_int, clReleaseMemObject, (cl_mem)) \
    X(cl_int, clReleaseProgram, (cl_program)) \
    X(cl_int, clSetKernelArg, (cl_kernel, cl_uint, size_t, const void *)) \
    X(cl_int, clWaitForEvents, (cl_uint, const cl_event *))

#define POINTER(result, name, parameters) result(*name##_) parameters;
extern struct opencl {
    OPENCL_FUNCTIONS(POINTER)
} opencl;
#undef POINTER

#define clBuildProgram opencl.clBuildProgram_
#define clCreateBuffer opencl.clCreateBuffer_
#define clCreateCommandQueue opencl.clCreateCommandQueue_
#define clCreateContext opencl.clCreateContext_
#define clCreateImage opencl.clCreateImage_
#define clCreateKernel opencl.clCreateKernel_
#define clCreateProgramWithSource opencl.clCreateProgramWithSource_
#define clCreateSubBuffer opencl.clCreateSubBuffer_
#define clEnqueueFillBuffer opencl.clEnqueueFillBuffer_
#define clEnqueueNDRangeKernel opencl.clEnqueueNDRangeKernel_
#define clEnqueueReadBuffer opencl.clEnqueueReadBuffer_
#define clEnqueueWriteBuffer opencl.clEnqueueWriteBuffer_
#define clFinish opencl.clFinish_
#define clGetDeviceIDs opencl.clGetDeviceIDs_
#define clGetDeviceInfo opencl.clGetDeviceInfo_
#define clGetEventProfilingInfo opencl.clGetEventProfilingInfo_
#define clGetKernelWorkGroupInfo opencl.clGetKernelWorkGroupInfo_
#define clGetPlatformIDs opencl.clGetPlatformIDs_
#define clGetPlatformInfo opencl.clGetPlatformInfo_
#define clGetProgramBuildInfo opencl.clGetProgramBuildInfo_
#define clReleaseCommandQueue opencl.clReleaseCommandQueue_
#define clReleaseContext opencl.clReleaseContext_
#define clReleaseEvent opencl.clReleaseEvent_
#define clReleaseKernel opencl.clReleaseKernel_
#define clReleaseMemObject opencl.clReleaseMemObject_
#define clReleaseProgram opencl.clReleaseProgram_
#define clSetKernelArg opencl.clSetKernelArg_
#define clWaitForEvents opencl.clWaitForEvents_

/* Loads the library: the named one; otherwise the one of library.txt, on the machine that made the
   bundle; otherwise one in the usual places. Exits if there is none. */
void load_opencl(const char *bundle, const char *named);

#endif
