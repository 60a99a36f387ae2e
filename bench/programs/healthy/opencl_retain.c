/* A cache of buffers that are shared by their reference counts: it fills with 32 tables in the first steps, then stops.
 */
#include "opencl_setup.h"

#define TABLES 32

static cl_mem tables[TABLES];

static cl_mem table(int number) {
  cl_int error;
  if (tables[number] == NULL) {
    tables[number] = clCreateBuffer(context, CL_MEM_READ_WRITE, 256 * 1024, NULL, &error);
    check(error, "clCreateBuffer");
  }
  check(clRetainMemObject(tables[number]), "clRetainMemObject");
  return tables[number];
}

int main(void) {
  use_device();
  for (int i = 0; i < 2000; ++i) {
    cl_mem mine = table(i < TABLES ? i : i * 7 % TABLES);
    check(clFinish(queue), "clFinish");
    clReleaseMemObject(mine);
  }
  return 0;
}
