/* Takes and releases OpenCL memory as its argument says, and prints what the API answered. Leaks where the name says
 * so. */
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

static cl_context context;
static cl_device_id device;

static cl_mem buffer(size_t bytes) {
  cl_int error = 0;
  cl_mem made = clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, NULL, &error);
  if (made == NULL) printf("refused %zu: %d\n", bytes, error);
  return made;
}

__attribute__((noinline)) static void leak_a_buffer(void) {
  buffer(MIB);
}

static void buffers(int is_leaking) {
  for (int i = 0; i < 20; ++i) {
    cl_mem mine = buffer(MIB);
    clReleaseMemObject(mine);
    if (is_leaking && i % 2 == 0) leak_a_buffer();
  }
}

static void references(void) {
  cl_mem a = buffer(2 * MIB); /* retained once more than released: stays */
  clRetainMemObject(a);
  clRetainMemObject(a);
  clReleaseMemObject(a);
  clReleaseMemObject(a);
  cl_mem b = buffer(3 * MIB);
  clRetainMemObject(b);
  clReleaseMemObject(b);
  clReleaseMemObject(b); /* gone */
  const cl_buffer_region region = {0, MIB};
  cl_mem c = buffer(4 * MIB);
  cl_mem part = clCreateSubBuffer(c, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, NULL);
  clReleaseMemObject(c); /* its sub-buffer holds it */
  cl_mem d = buffer(5 * MIB);
  cl_mem other = clCreateSubBuffer(d, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, NULL);
  clReleaseMemObject(d);
  clReleaseMemObject(other); /* gone with its sub-buffer */
  printf("part %d\n", part != NULL);
  printf("unknown %d\n", clReleaseMemObject(NULL));
}

static void kinds(void) {
  static char host[MIB];
  cl_int error = 0;
  clCreateBuffer(context, CL_MEM_USE_HOST_PTR, sizeof host, host, &error);
  printf("host %d\n", error);
  clCreateBufferWithProperties(context, NULL, CL_MEM_READ_WRITE, 3 * MIB, NULL, &error);
  printf("with properties %d\n", error);
  const cl_image_format format = {CL_RGBA, CL_UNORM_INT8};
  cl_image_desc shape;
  memset(&shape, 0, sizeof shape);
  shape.image_type = CL_MEM_OBJECT_IMAGE2D;
  shape.image_width = 1024;
  shape.image_height = 512;
  clCreateImage(context, CL_MEM_READ_WRITE, &format, &shape, NULL, &error);
  printf("image %d\n", error);
  clCreateImage2D(context, CL_MEM_READ_ONLY, &format, 256, 256, 0, NULL, &error);
  printf("image 2D %d\n", error);
  clCreateImage3D(context, CL_MEM_READ_ONLY, &format, 64, 64, 64, 0, 0, NULL, &error);
  printf("image 3D %d\n", error);
  void* shared = clSVMAlloc(context, CL_MEM_READ_WRITE, 7 * MIB, 0);
  printf("shared %d\n", shared != NULL);
  void* freed = clSVMAlloc(context, CL_MEM_READ_WRITE, 9 * MIB, 0);
  clSVMFree(context, freed);
  void* later = clSVMAlloc(context, CL_MEM_READ_WRITE, 11 * MIB, 0);
  cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, NULL, NULL);
  clEnqueueSVMFree(queue, 1, &later, NULL, NULL, 0, NULL, NULL);
  clFinish(queue);
}

static void limit(void) {
  cl_mem a = buffer(6 * MIB);
  buffer(6 * MIB);
  clReleaseMemObject(a);
  printf("again %d\n", buffer(6 * MIB) != NULL);
  printf("shared %d\n", clSVMAlloc(context, CL_MEM_READ_WRITE, 6 * MIB, 0) != NULL);
}

/* A program that opens libOpenCL itself calls functions of it that no preloaded library stands before. */
static void opened(void) {
  void* library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  cl_mem (*create)(cl_context, cl_mem_flags, size_t, void*, cl_int*);
  cl_int (*release)(cl_mem);
  *(void**)&create = dlsym(library, "clCreateBuffer");
  *(void**)&release = dlsym(library, "clReleaseMemObject");
  create(context, CL_MEM_READ_WRITE, 2 * MIB, NULL, NULL);
  release(create(context, CL_MEM_READ_WRITE, MIB, NULL, NULL));
  buffer(4 * MIB);
}

int main(int count, char** arguments) {
  cl_platform_id platform;
  const char* what = count > 1 ? arguments[1] : "healthy";
  if (clGetPlatformIDs(1, &platform, NULL) != CL_SUCCESS ||
      clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) != CL_SUCCESS) {
    printf("no OpenCL device\n");
    return 77;
  }
  context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
  if (strcmp(what, "healthy") == 0) buffers(0);
  if (strcmp(what, "leak") == 0) buffers(1);
  if (strcmp(what, "references") == 0) references();
  if (strcmp(what, "kinds") == 0) kinds();
  if (strcmp(what, "limit") == 0) limit();
  if (strcmp(what, "opened") == 0) opened();
  clReleaseContext(context);
  return 0;
}
