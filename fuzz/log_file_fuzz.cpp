// Any bytes as a log file, through the whole path: unpacking, decoding, recognising, reading, ordering.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "source/log/recording.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vramtrack;
  static const int fd = ::memfd_create("log", MFD_CLOEXEC);
  if (fd < 0 || ::ftruncate(fd, 0) != 0 || ::pwrite(fd, data, size, 0) != static_cast<ssize_t>(size)) std::abort();
  LogOptions options;
  options.timezone = "Europe/Berlin";
  auto plan = plan_recordings({"/proc/self/fd/" + std::to_string(fd)}, options);
  if (!plan) return 0;
  for (Recording& recording : *plan) {
    Catalog catalog;
    auto source = open_recording(std::move(recording), catalog);
    if (!source) std::abort();  // it was recognised a moment ago
    Batch batch;
    std::vector<Timestamp> last;
    for (Progress progress = Progress::more; progress == Progress::more;) {
      batch.clear();
      const auto polled = (*source)->poll({}, batch);
      if (!polled) break;
      progress = *polled;
      // A series never goes back in time.
      for (const Sample& sample : batch.samples) {
        if (last.size() <= index_of(sample.series)) last.resize(index_of(sample.series) + 1, Timestamp::min());
        Timestamp& before = last[index_of(sample.series)];
        if (sample.time < before) std::abort();
        before = sample.time;
      }
    }
  }
  return 0;
}
