// Makes a count that restarts with each epoch continuous, so that it can replace time.
#pragma once

#include <cstdint>
#include <optional>

namespace vramtrack {

class EpochCounter {
 public:
  /// The continuous count, if the next reading has `count` in `epoch`. A count that falls within its epoch is returned
  /// unchanged, after those of the previous epochs.
  std::uint64_t next(std::uint64_t count, std::uint64_t epoch) {
    if (last_ && epoch > epoch_ && count < *last_) before_ += *last_ + stride_ - count;
    if (epoch < epoch_) before_ = 0;  // another run
    if (last_ && count > *last_) stride_ = count - *last_;
    last_ = count;
    epoch_ = epoch;
    return before_ + count;
  }

 private:
  std::optional<std::uint64_t> last_;
  std::uint64_t epoch_ = 0;
  std::uint64_t stride_ = 1;  ///< between the last two counts that rose
  std::uint64_t before_ = 0;  ///< of all finished epochs
};

}  // namespace vramtrack
