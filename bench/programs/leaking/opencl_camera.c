/* Denoises the frames of a camera. The previous frame is kept for the next one, and its image is never released. */
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
  cl_mem image = clCreateImage(context, CL_MEM_COPY_HOST_PTR, &format, &shape, (void*)pixels, &error);  // LEAK HERE
  check(error, "clCreateImage");
  return image;
}

static void denoise(const void* pixels) {
  cl_int error;
  cl_mem output = clCreateBuffer(context, CL_MEM_READ_WRITE, 640 * 480 * 4, NULL, &error);
  check(error, "clCreateBuffer");
  previous = make_image(pixels);
  check(clFinish(queue), "clFinish");
  clReleaseMemObject(output);
}

int main(void) {
  use_device();
  char* pixels = calloc(1, 640 * 480 * 4);
  for (int frame = 0; frame < 150; ++frame) denoise(pixels);
  clReleaseMemObject(previous);
  free(pixels);
  return 0;
}
