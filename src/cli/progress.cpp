#include "cli/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <utility>

#include "core/format.hpp"
#include "core/printable.hpp"

namespace vramtrack::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kPatience{2};
constexpr std::chrono::milliseconds kRedraw{250};

/// How far each file that this process has open has been read, from the kernel: by any reader, and compressed or not.
std::map<std::string, std::uint64_t> positions() {
  std::map<std::string, std::uint64_t> out;
  std::error_code ec;
  for (fs::directory_iterator each("/proc/self/fd", ec), end; !ec && each != end; each.increment(ec)) {
    std::error_code gone;
    const fs::path file = fs::read_symlink(each->path(), gone);
    std::ifstream info("/proc/self/fdinfo/" + each->path().filename().string());
    std::string word;
    std::uint64_t at = 0;
    if (!gone && info >> word >> at && word == "pos:") {
      std::uint64_t& farthest = out[file.string()];
      farthest = std::max(farthest, at);
    }
  }
  return out;
}

/// How much of the files has been read so far.
class FilesRead {
 public:
  explicit FilesRead(const std::vector<std::string>& files) {
    for (const std::string& file : files) {
      std::error_code ec;
      const fs::path whole = fs::canonical(file, ec);
      const std::uintmax_t size = ec ? 0 : fs::file_size(whole, ec);
      if (!ec && size > 0) sizes_[whole.string()] = {static_cast<std::uint64_t>(size), 0};
    }
  }

  /// ": 34 %"; empty if the sizes are not known.
  std::string words() {
    const auto open = positions();
    double all = 0;
    double read = 0;
    for (auto& [file, size] : sizes_) {
      auto& [whole, most] = size;
      if (const auto at = open.find(file); at != open.end()) most = std::max(most, std::min(whole, at->second));
      all += static_cast<double>(whole);
      read += static_cast<double>(most);
    }
    return all > 0 ? fmt::format(": {:.0f} % read", 100 * read / all) : std::string();
  }

 private:
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> sizes_;  ///< by path: size, and how much has been read
};

}  // namespace

Progress::Progress(Console& console, std::string what, std::vector<std::string> files)
    : console_(console), what_(printable(what)), files_(std::move(files)) {
  if (::isatty(STDERR_FILENO) == 1) thread_ = std::thread([this] { run(); });
}

Progress::Progress(Console& console, std::string what) : Progress(console, std::move(what), {}) {}

Progress::Progress(Console& console, const std::vector<std::string>& files)
    : Progress(console, fmt::format("reading {}", fmt::join(files, ", ")), files) {}

Progress::~Progress() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
  console_.set_progress({});
}

void Progress::show(std::string done) {
  const std::lock_guard lock(mutex_);
  done_ = std::move(done);
}

void Progress::run() {
  const auto begun = std::chrono::steady_clock::now();
  FilesRead read(files_);
  std::unique_lock lock(mutex_);
  for (auto wait = std::chrono::milliseconds(kPatience); !changed_.wait_for(lock, wait, [this] { return is_over_; });
       wait = kRedraw) {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
    console_.set_progress(
        fmt::format("{}{}, {:.0f} s so far", what_, done_.empty() ? read.words() : ": " + done_, took.count()));
  }
}

}  // namespace vramtrack::cli
