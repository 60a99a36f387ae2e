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

// Each is a separate handle; what it stands for is there as long as the caller says.
int cuMemRelease(unsigned long long handle) {
  free((void*)handle);
  return 0;
}

int cuMemMap(unsigned long long address, size_t bytes, size_t offset, unsigned long long handle,
             unsigned long long flags) {
  (void)bytes, (void)offset, (void)handle, (void)flags;
  return address == 0;  // CUDA_ERROR_INVALID_VALUE
}

int cuMemUnmap(unsigned long long address, size_t bytes) {
  (void)bytes;
  return address == 0;
}

int cuMemRetainAllocationHandle(unsigned long long* out, const void* address) {
  (void)address;
  return make(out);
}

int cuMemImportFromShareableHandle(unsigned long long* out, void* shared, int kind) {
  (void)shared, (void)kind;
  return make(out);
}

int cuImportExternalMemory(unsigned long long* out, const void* description) {
  (void)description;
  return make(out);
}

struct ipc_handle {
  char bytes[64];
};

int cuIpcOpenMemHandle_v2(unsigned long long* out, struct ipc_handle handle, unsigned flags) {
  (void)handle, (void)flags;
  return make(out);
}

int cuIpcCloseMemHandle(unsigned long long address) {
  free((void*)address);
  return 0;
}

int cuModuleLoadData(unsigned long long* out, const void* image) {
  if (image == NULL) return 200;  // CUDA_ERROR_INVALID_IMAGE
  return make(out);
}

int cuModuleUnload(unsigned long long module) {
  free((void*)module);
  return 0;
}

int cuLibraryLoadData(unsigned long long* out, const void* code, void* options, void** values, unsigned count,
                      void* more, void** more_values, unsigned more_count) {
  (void)code, (void)options, (void)values, (void)count, (void)more, (void)more_values, (void)more_count;
  return make(out);
}

int cuGraphInstantiateWithFlags(unsigned long long* out, void* graph, unsigned long long flags) {
  (void)graph, (void)flags;
  return make(out);
}

int cuGraphExecDestroy(unsigned long long exec) {
  free((void*)exec);
  return 0;
}

int cuCtxCreate_v2(unsigned long long* out, unsigned flags, int device) {
  (void)flags, (void)device;
  return make(out);
}

int cuDevicePrimaryCtxRetain(unsigned long long* out, int device) {
  static char contexts[16];  // the same for each owner
  *out = (unsigned long long)&contexts[device];
  return 0;
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
