/* A queue of tasks that share buffers by their reference counts. A task that was cancelled keeps its reference. */
#include "opencl_setup.h"

typedef struct {
  cl_mem input;
  int is_cancelled;
} Task;

static Task make_task(cl_mem input, int is_cancelled) {
  const Task task = {input, is_cancelled};
  check(clRetainMemObject(input), "clRetainMemObject");
  return task;
}

static void run_task(Task task) {
  if (task.is_cancelled) return;
  check(clFinish(queue), "clFinish");
  clReleaseMemObject(task.input);
}

int main(void) {
  use_device();
  for (int i = 0; i < 500; ++i) {
    cl_int error;
    cl_mem input = clCreateBuffer(context, CL_MEM_READ_WRITE, 256 * 1024, NULL, &error);  // LEAK HERE
    check(error, "clCreateBuffer");
    Task tasks[3];
    for (int k = 0; k < 3; ++k) tasks[k] = make_task(input, i % 5 == 0 && k == 1);
    for (int k = 0; k < 3; ++k) run_task(tasks[k]);
    clReleaseMemObject(input);
  }
  return 0;
}
