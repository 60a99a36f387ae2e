/* Takes and releases HIP memory as its argument says; prints what the API answered. On the double of tests/fake/hip. */
#include <stdio.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

typedef struct {
  void* pointer;
  size_t pitch, width, height;
} Pitched;
typedef struct {
  size_t width, height, depth;
} Extent;
typedef struct {
  int x, y, z, w, kind;
} Format;
int hipSetDevice(int);
int hipMalloc(void**, size_t);
int hipExtMallocWithFlags(void**, size_t, unsigned);
int hipMallocManaged(void**, size_t, unsigned);
int hipMallocAsync(void**, size_t, void*);
int hipMallocFromPoolAsync(void**, size_t, void*, void*);
int hipMallocPitch(void**, size_t*, size_t, size_t);
int hipMalloc3D(Pitched*, Extent);
int hipMallocArray(void**, const Format*, size_t, size_t, unsigned);
int hipMalloc3DArray(void**, const Format*, Extent, unsigned);
int hipFreeArray(void*);
int hipFree(void*);
int hipFreeAsync(void*, void*);
int hipHostMalloc(void**, size_t, unsigned);
int hipMallocHost(void**, size_t);
int hipHostFree(void*);
int hipFreeHost(void*);
int hipMemCreate(void**, size_t, const int*, unsigned long long);
int hipMemMap(void*, size_t, size_t, void*, unsigned long long);
int hipMemUnmap(void*, size_t);
int hipMemRelease(void*);
int hipMemGetInfo(size_t*, size_t*);
int hipDeviceReset(void);
int hipGetProcAddress(const char*, void**, int, unsigned long, int*);

static void* memory(size_t bytes) {
  void* made = NULL;
  const int error = hipMalloc(&made, bytes);
  if (error != 0) printf("refused %zu: %d\n", bytes, error);
  return made;
}

__attribute__((noinline)) static void leak_memory(void) {
  memory(MIB);
}

static void allocations(int is_leaking) {
  for (int i = 0; i < 20; ++i) {
    hipFree(memory(MIB));
    if (is_leaking && i % 2 == 0) leak_memory();
  }
  hipFree(NULL);
}

static void kinds(void) {
  void* made;
  size_t pitch;
  Pitched pitched;
  const Format format = {8, 8, 8, 8, 1};
  hipExtMallocWithFlags(&made, MIB, 0);
  hipMallocManaged(&made, 2 * MIB, 1);
  hipMallocAsync(&made, 3 * MIB, NULL);
  hipMallocFromPoolAsync(&made, 4 * MIB, NULL, NULL);
  hipMallocPitch(&made, &pitch, 1000, 1024);
  hipMalloc3D(&pitched, (Extent){1000, 1024, 2});
  hipMallocArray(&made, &format, 512, 512, 0);
  hipMalloc3DArray(&made, &format, (Extent){512, 512, 2}, 0);
  hipHostMalloc(&made, 5 * MIB, 0);
  hipMallocHost(&made, 6 * MIB);
  hipMallocAsync(&made, 7 * MIB, NULL);
  hipFreeAsync(made, NULL);
  hipMallocArray(&made, &format, 512, 512, 0);
  hipFreeArray(made);
  hipHostMalloc(&made, 8 * MIB, 0);
  hipHostFree(made);
  hipMallocHost(&made, 8 * MIB);
  hipFreeHost(made);
}

static void virtual_memory(void) {
  void *a, *b, *c;
  char* at = (char*)0x700000000000;
  const int on_device_1[4] = {1, 0, 1, 1};
  hipMemCreate(&a, 2 * MIB, on_device_1, 0);
  hipMemMap(at, 2 * MIB, 0, a, 0);
  hipMemRelease(a); /* mapped: stays */
  hipMemCreate(&b, 4 * MIB, on_device_1, 0);
  hipMemMap(at + 2 * MIB, 4 * MIB, 0, b, 0);
  hipMemRelease(b);
  hipMemUnmap(at + 2 * MIB, 4 * MIB); /* gone */
  hipMemCreate(&c, 8 * MIB, on_device_1, 0);
  hipMemMap(at + 16 * MIB, 8 * MIB, 0, c, 0);
  hipMemUnmap(at + 16 * MIB, 8 * MIB); /* stays: its handle is held */
}

static void limit(void) {
  size_t free_bytes, total;
  void* a = memory(6 * MIB);
  memory(6 * MIB);
  hipMemGetInfo(&free_bytes, &total);
  printf("free %zu of %zu\n", free_bytes, total);
  hipFree(a);
  printf("again %d\n", memory(6 * MIB) != NULL);
}

static void devices(void) {
  memory(MIB);
  hipSetDevice(1);
  memory(2 * MIB);
  memory(3 * MIB);
  hipDeviceReset();
  memory(4 * MIB);
  memory((size_t)2 << 30);
}

static void by_name(void) {
  int (*allocate)(void**, size_t) = NULL;
  void *found = NULL, *other = NULL, *made = NULL;
  hipGetProcAddress("hipMalloc", &found, 60100000, 0, NULL);
  *(void**)&allocate = found;
  allocate(&made, MIB);
  printf("%d %d %d\n", made != NULL, hipGetProcAddress("hipNoSuch", &other, 60100000, 0, NULL), other == NULL);
}

int main(int count, char** arguments) {
  const char* what = count > 1 ? arguments[1] : "healthy";
  if (strcmp(what, "healthy") == 0) allocations(0);
  if (strcmp(what, "leak") == 0) allocations(1);
  if (strcmp(what, "kinds") == 0) kinds();
  if (strcmp(what, "virtual") == 0) virtual_memory();
  if (strcmp(what, "limit") == 0) limit();
  if (strcmp(what, "devices") == 0) devices();
  if (strcmp(what, "by name") == 0) by_name();
  return 0;
}
