/* A renderer that finds the driver by dlopen and cuGetProcAddress. One scene at a time; the next one replaces it. */
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#undef cuGetProcAddress

typedef CUresult (*Resolver)(const char*, void**, int, unsigned long long, int*);

static CUresult (*init)(unsigned);
static CUresult (*device_get)(CUdevice*, int);
static CUresult (*context_retain)(CUcontext*, CUdevice);
static CUresult (*context_set)(CUcontext);
static CUresult (*managed)(CUdeviceptr*, size_t, unsigned);
static CUresult (*release)(CUdeviceptr);

static CUdeviceptr scene;

static void resolve(void** function, Resolver resolver, const char* name) {
  int status = 0;
  if (resolver(name, function, 12040, 0, &status) != CUDA_SUCCESS || *function == NULL) {
    fprintf(stderr, "the driver has no %s\n", name);
    exit(1);
  }
}

static void load_driver(void) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  Resolver resolver = library == NULL ? NULL : (Resolver)dlsym(library, "cuGetProcAddress_v2");
  if (resolver == NULL) exit(1);
  resolve((void**)&init, resolver, "cuInit");
  resolve((void**)&device_get, resolver, "cuDeviceGet");
  resolve((void**)&context_retain, resolver, "cuDevicePrimaryCtxRetain");
  resolve((void**)&context_set, resolver, "cuCtxSetCurrent");
  resolve((void**)&managed, resolver, "cuMemAllocManaged");
  resolve((void**)&release, resolver, "cuMemFree");
}

/* The last one stays loaded. */
static int load_scene(int number) {
  if (scene != 0 && release(scene) != CUDA_SUCCESS) return -1;
  return managed(&scene, (size_t)(number * 5 % 8 + 1) << 20, CU_MEM_ATTACH_GLOBAL);
}

int main(void) {
  CUdevice device;
  CUcontext context;
  load_driver();
  if (init(0) || device_get(&device, 0) || context_retain(&context, device) || context_set(context)) return 1;
  for (int number = 0; number < 60; ++number)
    if (load_scene(number) != 0) return 1;
  return 0;
}
