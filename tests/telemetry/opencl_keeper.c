/* Memory of OpenCL, as it is told. */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <string.h>

#include "commands.h"

static cl_context context;
static cl_command_queue queue;

static void open_device(void) {
  cl_platform_id platform;
  cl_device_id device;
  if (clGetPlatformIDs(1, &platform, NULL) != CL_SUCCESS ||
      clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) != CL_SUCCESS)
    give_up("no OpenCL device (pocl-opencl-icd)");
  context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
  queue = clCreateCommandQueueWithProperties(context, device, NULL, NULL);
}

__attribute__((noinline)) static cl_mem buffer(size_t bytes) {
  return clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, NULL, NULL); /* LINE buffer */
}

static void references(void) {
  const cl_buffer_region region = {0, MIB};
  cl_mem kept = buffer(2 * MIB); /* retained once more than released */
  clRetainMemObject(kept);
  clRetainMemObject(kept);
  clReleaseMemObject(kept);
  clReleaseMemObject(kept);
  cl_mem gone = buffer(3 * MIB);
  clRetainMemObject(gone);
  clReleaseMemObject(gone);
  clReleaseMemObject(gone);
  cl_mem whole = buffer(4 * MIB); /* its part holds it */
  clCreateSubBuffer(whole, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, NULL);
  clReleaseMemObject(whole);
  cl_mem other = buffer(5 * MIB); /* gone with its part */
  cl_mem part = clCreateSubBuffer(other, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, NULL);
  clReleaseMemObject(other);
  clReleaseMemObject(part);
}

static void kinds(void) {
  static char host[MIB];
  clCreateBuffer(context, CL_MEM_USE_HOST_PTR, sizeof host, host, NULL);
  clCreateBufferWithProperties(context, NULL, CL_MEM_READ_WRITE, 3 * MIB, NULL, NULL);
  const cl_image_format format = {CL_RGBA, CL_UNORM_INT8};
  cl_image_desc shape;
  memset(&shape, 0, sizeof shape);
  shape.image_type = CL_MEM_OBJECT_IMAGE2D;
  shape.image_width = 1024;
  shape.image_height = 512;
  clCreateImage(context, CL_MEM_READ_WRITE, &format, &shape, NULL, NULL);
  clSVMAlloc(context, CL_MEM_READ_WRITE, 7 * MIB, 0);
  clSVMFree(context, clSVMAlloc(context, CL_MEM_READ_WRITE, 9 * MIB, 0));
  void* later[2] = {clSVMAlloc(context, CL_MEM_READ_WRITE, 11 * MIB, 0),
                    clSVMAlloc(context, CL_MEM_READ_WRITE, 13 * MIB, 0)};
  clEnqueueSVMFree(queue, 2, later, NULL, NULL, 0, NULL, NULL);
  clFinish(queue);
}

/* More in one call than the tracer follows. */
static void many(void) {
  void* blocks[20];
  for (int i = 0; i < 20; ++i) blocks[i] = clSVMAlloc(context, CL_MEM_READ_WRITE, MIB, 0);
  clEnqueueSVMFree(queue, 20, blocks, NULL, NULL, 0, NULL, NULL);
  clFinish(queue);
}

static void obey(char command, int number) {
  if (command == 'o') open_device();
  if (command == 'r') references();
  if (command == 'a') kinds();
  if (command == 'm') many();
  if (command == 'l') clCreateBuffer(context, CL_MEM_READ_WRITE, (size_t)1 << 50, NULL, NULL);
  for (int i = 0; i < number; ++i) {
    if (command == 'k') buffer(MIB);
    if (command == 'u') clReleaseMemObject(buffer(4 * MIB));
  }
}
