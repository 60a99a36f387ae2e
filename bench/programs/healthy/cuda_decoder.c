/* Decodes a video with a ring of surfaces: eight are made as they are first needed, then they are used again. */
#include "cuda_setup.h"

#define FRAMES 400
#define SURFACES 8

static CUdeviceptr surfaces[SURFACES];

static CUdeviceptr surface_of(int frame) {
  CUdeviceptr* surface = &surfaces[frame % SURFACES];
  size_t pitch;
  if (*surface == 0) CHECK(cuMemAllocPitch(surface, &pitch, 1920, 1080 * 3 / 2, 4));
  return *surface;
}

static void show_frame(int frame) {
  CUdeviceptr rgb;
  CHECK(cuMemsetD8(surface_of(frame), (unsigned char)frame, 4096));
  CHECK(cuMemAlloc(&rgb, 1920 * 1080 * 4));
  CHECK(cuMemFree(rgb));
}

int main(void) {
  use_device(0);
  for (int frame = 0; frame < FRAMES; ++frame) show_frame(frame);
  for (int i = 0; i < SURFACES; ++i) CHECK(cuMemFree(surfaces[i]));
  return 0;
}
