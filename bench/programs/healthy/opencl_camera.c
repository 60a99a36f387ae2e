/* Denoises the frames of a camera. The previous frame is released when the next one has been made. */
#include <string.h>

#include "opencl_setup.h"

static cl_mem previous;

static cl_mem make_image(const void* pixels) {
  const cl_image_format format = {CL_RGBA, CL_UNORM_INT8};
  cl_image_desc shape;
  cl_int error;
  memset(&shape, 0, sizeof shape);
  shape.image_type = CL_MEM_OBJECT_IMAGE2D;
  shape.image_width = 640;
  shape.image_height = 480;
  cl_mem image = clCreateImage(context, CL_MEM_COPY_HOST_PTR, &format, &shape, (void*)pixels, &error);
  check(error, "clCreateImage");
  return image;
}

int main(void) {
  use_device();
  char* pixels = calloc(1, 640 * 480 * 4);
  for (int frame = 0; frame < 150; ++frame) {
    cl_mem now = make_image(pixels);
    check(clFinish(queue), "clFinish");
    if (previous != NULL) clReleaseMemObject(previous);
    previous = now;
  }
  free(pixels);
  return 0;
}
