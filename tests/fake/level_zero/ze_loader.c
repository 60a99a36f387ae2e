/* A double of libze_loader.so.1: one device of 1 GiB whose memory is the heap's. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define TOTAL ((size_t)1 << 30)

static size_t held;
typedef struct {
  size_t bytes;
  int is_on_device;
} Head;

static int take(void** into, size_t bytes, int is_on_device) {
  if (is_on_device && (bytes > TOTAL || held + bytes > TOTAL)) return 0x70000003;
  Head* head = malloc(64);
  *head = (Head){bytes, is_on_device};
  if (is_on_device) held += bytes;
  *into = head;
  return 0;
}
/* The layouts of ze_device_properties_t and ze_device_memory_properties_t, by their offsets. */
EXPORT int zeDeviceGetProperties(void* device, char* into) {
  (void)device;
  if (*(uint32_t*)into != 3) return 0x78000004;
  memset(into + 96, 0xb7, 16);
  strcpy(into + 112, "Fake Data Center GPU Max");
  return 0;
}
EXPORT int zeDeviceGetMemoryProperties(void* device, uint32_t* count, char* into) {
  (void)device;
  if (*(uint32_t*)into != 7) return 0x78000004;
  *count = 1;
  *(uint64_t*)(into + 32) = TOTAL;
  return 0;
}
EXPORT int zeMemAllocDevice(void* context, const void* how, size_t bytes, size_t alignment, void* device, void** into) {
  (void)context, (void)how, (void)alignment, (void)device;
  return take(into, bytes, 1);
}
EXPORT int zeMemAllocShared(void* context, const void* how, const void* host, size_t bytes, size_t alignment,
                            void* device, void** into) {
  (void)context, (void)how, (void)host, (void)alignment, (void)device;
  return take(into, bytes, 1);
}
EXPORT int zeMemAllocHost(void* context, const void* how, size_t bytes, size_t alignment, void** into) {
  (void)context, (void)how, (void)alignment;
  return take(into, bytes, 0);
}
EXPORT int zeMemFree(void* context, void* memory) {
  (void)context;
  if (memory == NULL) return 0x78000007;
  Head* head = memory;
  if (head->is_on_device) held -= head->bytes;
  free(head);
  return 0;
}
EXPORT int zeMemFreeExt(void* context, const void* how, void* memory) {
  (void)how;
  return zeMemFree(context, memory);
}
