// Filters images. The result is handed to a list for the viewer, which shows the last one and forgets none.
#include <level_zero/ze_api.h>

#include <cstdlib>
#include <vector>

namespace {

int the_context, the_device;  // handles of the loader are opaque

class Image {
 public:
  explicit Image(size_t bytes) {
    const ze_device_mem_alloc_desc_t how{ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC, nullptr, 0, 0};
    const auto result = zeMemAllocDevice(&the_context, &how, bytes, 64, &the_device, &memory_);  // LEAK HERE
    if (result != ZE_RESULT_SUCCESS) std::abort();
  }
  ~Image() {
    if (memory_ != nullptr) zeMemFree(&the_context, memory_);
  }
  Image(Image&& other) noexcept : memory_(other.memory_) { other.memory_ = nullptr; }

 private:
  void* memory_ = nullptr;
};

std::vector<Image> shown;

void filter(size_t bytes) {
  const Image input(bytes);
  Image output(bytes / 2);
  shown.push_back(std::move(output));
}

}  // namespace

int main() {
  for (int i = 0; i < 80; ++i) filter(1U << 20U);
}
