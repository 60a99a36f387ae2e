/* What the programs use of Level Zero, under its own names. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int ze_result_t;
typedef void* ze_context_handle_t;
typedef void* ze_device_handle_t;
typedef struct {
  int stype;
  const void* pNext;
  uint32_t flags, ordinal;
} ze_device_mem_alloc_desc_t;
enum { ZE_RESULT_SUCCESS = 0, ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC = 0x15 };

ze_result_t zeMemAllocDevice(ze_context_handle_t context, const ze_device_mem_alloc_desc_t* how, size_t bytes,
                             size_t alignment, ze_device_handle_t device, void** memory);
ze_result_t zeMemFree(ze_context_handle_t context, void* memory);

#ifdef __cplusplus
}
#endif
