// A double of the CUDA driver's allocating functions, for programs that are traced while they run.
#include <stddef.h>
#include <stdlib.h>

int cuMemAlloc_v2(unsigned long long* out, size_t bytes) {
  if (bytes > (size_t)1 << 40) return 2;  // CUDA_ERROR_OUT_OF_MEMORY
  *out = (unsigned long long)malloc(64);
  return 0;
}

static int refuses;  // the error of each free; 0: none

void refuse_frees(int code) {
  refuses = code;
}

int cuMemFree_v2(unsigned long long address) {
  if (refuses) return refuses;
  free((void*)address);
  return 0;
}

// Calls another traced function: the memory is counted once.
int cuMemAllocPitch_v2(unsigned long long* out, size_t* pitch, size_t width, size_t rows, unsigned element) {
  (void)element;
  *pitch = (width + 511) / 512 * 512;
  return cuMemAlloc_v2(out, *pitch * rows);
}

static int make(unsigned long long* out) {
  *out = (unsigned long long)malloc(64);
  return 0;
}

int cuArrayCreate_v2(unsigned long long* out, const void* shape) {
  (void)shape;
  return make(out);
}

int cuArray3DCreate_v2(unsigned long long* out, const void* shape) {
  (void)shape;
  return make(out);
}

int cuMipmappedArrayCreate(unsigned long long* out, const void* shape, unsigned levels) {
  (void)shape, (void)levels;
  return make(out);
}

int cuArrayDestroy(unsigned long long array) {
  free((void*)array);
  return 0;
}

int cuMemCreate(unsigned long long* out, size_t bytes, const void* where, unsigned long long flags) {
  (void)where, (void)flags;
  return bytes > (size_t)1 << 40 ? 2 : make(out);
}

int cuCtxCreate_v2(unsigned long long* out, unsigned flags, int device) {
  (void)flags, (void)device;
  return make(out);
}

int cuDevicePrimaryCtxRetain(unsigned long long* out, int device) {
  (void)device;
  return make(out);
}

int cuCtxDestroy_v2(unsigned long long context) {
  free((void*)context);
  return 0;
}

int cuDevicePrimaryCtxRelease_v2(int device) {
  return device * 0;
}

int cuDevicePrimaryCtxReset_v2(int device) {
  return device * 0;
}

int cuCtxSetCurrent(unsigned long long context) {
  return (int)(context * 0);
}

int cuCtxPushCurrent_v2(unsigned long long context) {
  return (int)(context * 0);
}

int cuCtxPopCurrent_v2(unsigned long long* out) {
  *out = 0;
  return 0;
}
