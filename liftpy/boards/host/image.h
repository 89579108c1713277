/* Images of buffers, which some kernels read in texels of four scalars. */
#ifndef IMAGE_H
#define IMAGE_H

#include "opencl.h"

/* An image of the first `bytes` bytes of a buffer. `texel` is 16 for scalars of 32 bits, 8 for those
   of 16 bits. It shares the memory of the buffer. */
cl_mem image_of(cl_context context, cl_mem buffer, size_t bytes, size_t texel, cl_int *code);

/* The most texels of an image of a buffer; 0 if a device has no images. */
size_t most_texels(cl_device_id device);

#endif
