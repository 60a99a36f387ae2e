/* Leaks GPU memory on purpose through the CUDA driver interface, in even steps up to a cap. Needs no toolkit:
 *     cc -O2 -o leak_cuda leak_cuda.c -ldl
 *     ./leak_cuda [step MiB = 64] [period ms = 1000] [cap MiB = 2048] [hold s = 60] [device = 0]
 * Prints one line a step: seconds since start, MiB held by its own count. Exit 0: reached the cap and held it;
 * 77: no NVIDIA driver or GPU here; 1: the driver refused. All memory is given back when the process ends. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef int CUresult;
typedef int CUdevice;
typedef void* CUcontext;
typedef unsigned long long CUdeviceptr;

static void* driver;

static void* entry(const char* name) {
  void* symbol = dlsym(driver, name);
  if (symbol == NULL) {
    fprintf(stderr, "leak_cuda: libcuda.so.1 has no %s\n", name);
    exit(77);
  }
  return symbol;
}

static void check(CUresult code, const char* what, int exit_code) {
  if (code == 0) return;
  fprintf(stderr, "leak_cuda: %s: CUDA error %d\n", what, code);
  exit(exit_code);
}

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void sleep_ms(long ms) {
  struct timespec t = {ms / 1000, ms % 1000 * 1000000L};
  nanosleep(&t, NULL);
}

static long argument(int argc, char** argv, int index, long otherwise) {
  if (index >= argc) return otherwise;
  char* end = NULL;
  const long value = strtol(argv[index], &end, 10);
  if (end == argv[index] || *end != '\0' || value < 0) {
    fprintf(stderr, "leak_cuda: argument %d is no number: %s\n", index, argv[index]);
    exit(2);
  }
  return value;
}

int main(int argc, char** argv) {
  const long step_mib = argument(argc, argv, 1, 64);
  const long period_ms = argument(argc, argv, 2, 1000);
  const long cap_mib = argument(argc, argv, 3, 2048);
  const long hold_s = argument(argc, argv, 4, 60);
  const long ordinal = argument(argc, argv, 5, 0);

  driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == NULL) {
    fprintf(stderr, "leak_cuda: %s\n", dlerror());
    return 77;
  }
  CUresult (*init)(unsigned) = (CUresult(*)(unsigned))entry("cuInit");
  CUresult (*get)(CUdevice*, int) = (CUresult(*)(CUdevice*, int))entry("cuDeviceGet");
  CUresult (*retain)(CUcontext*, CUdevice) = (CUresult(*)(CUcontext*, CUdevice))entry("cuDevicePrimaryCtxRetain");
  CUresult (*current)(CUcontext) = (CUresult(*)(CUcontext))entry("cuCtxSetCurrent");
  CUresult (*allocate)(CUdeviceptr*, size_t) = (CUresult(*)(CUdeviceptr*, size_t))entry("cuMemAlloc_v2");
  CUresult (*fill)(CUdeviceptr, unsigned char, size_t) =
      (CUresult(*)(CUdeviceptr, unsigned char, size_t))entry("cuMemsetD8_v2");

  CUdevice device;
  CUcontext context;
  check(init(0), "cuInit", 77);
  check(get(&device, (int)ordinal), "cuDeviceGet", 77);
  check(retain(&context, device), "cuDevicePrimaryCtxRetain", 1);
  check(current(context), "cuCtxSetCurrent", 1);

  const double start = seconds();
  long held_mib = 0;
  while (held_mib + step_mib <= cap_mib && step_mib > 0) {
    CUdeviceptr lost;
    const size_t bytes = (size_t)step_mib << 20;
    check(allocate(&lost, bytes), "cuMemAlloc", 1);
    check(fill(lost, 1, bytes), "cuMemsetD8", 1);
    held_mib += step_mib;
    printf("%.1f s  %ld MiB\n", seconds() - start, held_mib);
    fflush(stdout);
    sleep_ms(period_ms);
  }
  sleep_ms(hold_s * 1000);
  return 0;
}
