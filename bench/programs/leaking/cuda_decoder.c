/* Decodes a video. A damaged frame is skipped, and its surface with it: every fourth one is never freed. */
#include "cuda_setup.h"

#define FRAMES 400

static int decode(CUdeviceptr surface, int frame) {
  CHECK(cuMemsetD8(surface, (unsigned char)frame, 4096));
  return frame % 4 == 3 ? -1 : 0;
}

static void show_frame(int frame) {
  CUdeviceptr surface, rgb;
  size_t pitch;
  CHECK(cuMemAllocPitch(&surface, &pitch, 1920, 1080 * 3 / 2, 4));  // LEAK HERE
  if (decode(surface, frame) != 0) return;
  CHECK(cuMemAlloc(&rgb, 1920 * 1080 * 4));
  CHECK(cuMemFree(rgb));
  CHECK(cuMemFree(surface));
}

int main(void) {
  use_device(0);
  CUdeviceptr reference;
  CHECK(cuMemAlloc(&reference, 16 * MIB));
  for (int frame = 0; frame < FRAMES; ++frame) show_frame(frame);
  CHECK(cuMemFree(reference));
  return 0;
}
