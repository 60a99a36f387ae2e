// The same service with an owner for each piece of memory: an exception frees it.
#include <stdexcept>
#include <vector>

#include "cuda_setup.h"

namespace {

constexpr int kRequests = 3000;

class Buffer {
 public:
  explicit Buffer(size_t bytes) { CHECK(cuMemAlloc(&memory_, bytes)); }
  ~Buffer() { cuMemFree(memory_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  CUdeviceptr get() const { return memory_; }

 private:
  CUdeviceptr memory_ = 0;
};

float score(int id, const std::vector<float>& values) {
  const Buffer input(values.size() * sizeof(float));
  CHECK(cuMemcpyHtoD(input.get(), values.data(), values.size() * sizeof(float)));
  if (id % 10 == 0) throw std::invalid_argument("values out of range");
  const Buffer output(sizeof(float));
  float result = 0;
  CHECK(cuMemcpyDtoH(&result, output.get(), sizeof result));
  return result;
}

}  // namespace

int main() {
  use_device(0);
  int refused = 0;
  for (int id = 0; id < kRequests; ++id) {
    try {
      score(id, std::vector<float>(16384, 1.0F));
    } catch (const std::invalid_argument&) {
      ++refused;
    }
  }
  std::printf("%d refused\n", refused);
}
