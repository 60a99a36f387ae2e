/* What every generated stub does: returns its library's code. VRAMTRACK_FAKE_GPU_STUBS=trace names each one that is
 * called, =abort ends the program at the first. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

__attribute__((noinline)) static long stub_called(const char* name, long code) {
  const char* mode = getenv("VRAMTRACK_FAKE_GPU_STUBS");
  if (mode != NULL && *mode != '\0') fprintf(stderr, "fake GPU: stub %s called\n", name);
  if (mode != NULL && strcmp(mode, "abort") == 0) abort();
  return code;
}

static char stub_object[4096];

#define STUB(name, code)             \
  EXPORT long name(void) {           \
    return stub_called(#name, code); \
  }
/* A call that makes something gives a handle of it. */
#define STUB_CREATE(name, code)             \
  EXPORT long name(void** handle) {         \
    if ((code) == 0) *handle = stub_object; \
    return stub_called(#name, code);        \
  }
