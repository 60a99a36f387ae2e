// A service that scores requests. A request that fails its check throws, and the raw pointer of its input is lost.
#include <stdexcept>
#include <vector>

#include "cuda_setup.h"

namespace {

constexpr int kRequests = 3000;

struct Request {
  int id;
  std::vector<float> values;
};

float score(const Request& request) {
  CUdeviceptr input = 0, output = 0;
  CHECK(cuMemAlloc(&input, request.values.size() * sizeof(float)));  // LEAK HERE
  CHECK(cuMemcpyHtoD(input, request.values.data(), request.values.size() * sizeof(float)));
  if (request.id % 10 == 0) throw std::invalid_argument("values out of range");
  CHECK(cuMemAlloc(&output, sizeof(float)));
  float result = 0;
  CHECK(cuMemcpyDtoH(&result, output, sizeof result));
  CHECK(cuMemFree(output));
  CHECK(cuMemFree(input));
  return result;
}

}  // namespace

int main() {
  use_device(0);
  int refused = 0;
  for (int id = 0; id < kRequests; ++id) {
    try {
      score({id, std::vector<float>(16384, 1.0F)});
    } catch (const std::invalid_argument&) {
      ++refused;
    }
  }
  std::printf("%d refused\n", refused);
}
