#include "core/byte_input.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "core/errno_words.hpp"
#include "core/units.hpp"

namespace vramtrack {
namespace {

constexpr std::size_t kRawBytes = 256 * kBytesPerKiB;
/// A harmless size: below it, no ratio is too high.
constexpr std::uint64_t kAlwaysBytes = 64 * kBytesPerMiB;
constexpr std::size_t kMagicBytes = 4;

struct ZstdFree {
  void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
};

enum class Packing : std::uint8_t { none, gzip, zstd };

}  // namespace

struct ByteInput::State {
  std::string name;
  ByteInputOptions options;
  int fd = -1;
  std::span<const std::uint8_t> memory;  ///< the part not yet read if fd is -1
  std::optional<std::uint64_t> size;
  std::string warning;

  Packing packing = Packing::none;
  std::vector<std::uint8_t> raw;  ///< a window of the bytes as they are on the disk
  std::size_t raw_at = 0, raw_end = 0;
  bool raw_done = false;   ///< nothing follows this window
  bool frame_done = true;  ///< between two gzip members or zstd frames
  std::string damage;      ///< what unpack() found wrong; empty: nothing
  std::uint64_t packed_bytes = 0, unpacked_bytes = 0;
  z_stream zlib{};
  bool zlib_open = false;
  std::unique_ptr<ZSTD_DStream, ZstdFree> zstd;
  std::vector<std::uint8_t> peeked;  ///< already read, but not yet returned
  std::size_t peeked_at = 0;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (zlib_open) inflateEnd(&zlib);
    if (fd >= 0) ::close(fd);
  }

  Result<std::size_t> read_raw(std::uint8_t* into, std::size_t most) {
    if (fd < 0) {
      const std::size_t n = std::min(most, memory.size());
      if (n > 0) std::memcpy(into, memory.data(), n);
      memory = memory.subspan(n);
      return n;
    }
    for (;;) {
      const ssize_t n = ::read(fd, into, most);
      if (n >= 0) return static_cast<std::size_t>(n);
      if (errno != EINTR) return fail(fmt::format("{}: {}", name, errno_words(errno)));
    }
  }

  /// Reads the first bytes (a pipe may deliver them in pieces) and determines the compression from them.
  Status begin() {
    raw.resize(kRawBytes);
    while (raw_end < kMagicBytes && !raw_done) {
      const auto n = read_raw(raw.data() + raw_end, raw.size() - raw_end);
      if (!n) return fail(n.error());
      raw_done = *n == 0;
      raw_end += *n;
    }
    packed_bytes = raw_end;
    const auto starts = [this](std::initializer_list<std::uint8_t> magic) {
      return raw_end >= magic.size() && std::equal(magic.begin(), magic.end(), raw.begin());
    };
    if (starts({0x1f, 0x8b})) packing = Packing::gzip;
    if (starts({0x28, 0xb5, 0x2f, 0xfd})) packing = Packing::zstd;
    if (packing == Packing::none) return {};
    size.reset();
    if (packing == Packing::gzip) {
      zlib_open = inflateInit2(&zlib, 15 + 16) == Z_OK;
      if (!zlib_open) return fail(name + ": no memory to decompress it");
    } else {
      zstd.reset(ZSTD_createDStream());
      if (zstd == nullptr) return fail(name + ": no memory to decompress it");
    }
    return {};
  }

  Result<std::size_t> read(std::span<std::uint8_t> into) {
    return packing == Packing::none ? read_plain(into) : read_packed(into);
  }

  Result<std::size_t> read_plain(std::span<std::uint8_t> into) {
    if (raw_at == raw_end) {
      if (!raw.empty()) std::vector<std::uint8_t>().swap(raw);
      return raw_done ? Result<std::size_t>{0} : read_raw(into.data(), into.size());
    }
    const std::size_t n = std::min(into.size(), raw_end - raw_at);
    std::memcpy(into.data(), raw.data() + raw_at, n);
    raw_at += n;
    return n;
  }

  Result<std::size_t> read_packed(std::span<std::uint8_t> into) {
    for (;;) {
      if (const Status filled = refill(); !filled) return fail(filled.error());
      // Padding after the last frame is not the start of another one.
      if (frame_done)
        while (raw_at < raw_end && raw[raw_at] == 0) ++raw_at;
      const bool at_end = raw_at == raw_end && raw_done;
      if (frame_done && raw_at == raw_end) {
        if (at_end) return std::size_t{0};
        continue;
      }
      // At the end, too: zstd may still hold output that did not fit before.
      const std::size_t n = packing == Packing::gzip ? inflate_some(into) : unzstd_some(into);
      unpacked_bytes += n;
      if (options.most_ratio > 0 && unpacked_bytes > kAlwaysBytes && unpacked_bytes / options.most_ratio > packed_bytes)
        return fail(
            fmt::format("{}: {} compressed bytes have expanded to {}, which is suspiciously large for {}; if you "
                        "trust it, decompress it and read the plain file",
                        name, packed_bytes, unpacked_bytes, options.contents));
      if (at_end && n == 0 && !frame_done && damage.empty())
        damage = fmt::format("is cut off after {} bytes", packed_bytes);
      if (!damage.empty()) return end_at_damage(n);
      if (n > 0) return n;
    }
  }

  Status refill() {
    if (raw_at < raw_end || raw_done) return {};
    const auto n = read_raw(raw.data(), raw.size());
    if (!n) return fail(n.error());
    raw_done = *n == 0;
    raw_at = 0;
    raw_end = *n;
    packed_bytes += *n;
    return {};
  }

  /// `n` bytes were unpacked before the damage was found.
  Result<std::size_t> end_at_damage(std::size_t n) {
    const std::string what =
        fmt::format("{}: the {} data {}", name, packing == Packing::gzip ? "gzip" : "zstd", damage);
    if (options.is_damage_an_error) return fail(what + "; copy the file again");
    warning = what + "; the data before that is read";
    damage.clear();
    raw_at = raw_end;
    raw_done = frame_done = true;
    return n;
  }

  void damaged(const char* why) {
    damage = fmt::format("is damaged at byte {}: {}", packed_bytes - (raw_end - raw_at), why);
  }

  std::size_t inflate_some(std::span<std::uint8_t> into) {
    if (frame_done) {
      inflateReset(&zlib);
      frame_done = false;
    }
    zlib.next_in = raw.data() + raw_at;
    zlib.avail_in = static_cast<uInt>(raw_end - raw_at);
    zlib.next_out = into.data();
    zlib.avail_out = static_cast<uInt>(std::min<std::size_t>(into.size(), kBytesPerGiB));
    const uInt room = zlib.avail_out;
    const int status = ::inflate(&zlib, Z_NO_FLUSH);
    raw_at = raw_end - zlib.avail_in;
    if (status == Z_STREAM_END) {
      frame_done = true;
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      damaged(zlib.msg != nullptr ? zlib.msg : "no reason given");
    }
    return room - zlib.avail_out;
  }

  std::size_t unzstd_some(std::span<std::uint8_t> into) {
    ZSTD_inBuffer in{raw.data(), raw_end, raw_at};
    ZSTD_outBuffer out{into.data(), into.size(), 0};
    const std::size_t status = ZSTD_decompressStream(zstd.get(), &out, &in);
    raw_at = in.pos;
    if (ZSTD_isError(status) != 0U)
      damaged(ZSTD_getErrorName(status));
    else
      frame_done = status == 0;
    return out.pos;
  }
};

ByteInput::ByteInput(std::unique_ptr<State> state) : state_(std::move(state)) {}
ByteInput::ByteInput(ByteInput&&) noexcept = default;
ByteInput& ByteInput::operator=(ByteInput&&) noexcept = default;
ByteInput::~ByteInput() = default;

Result<ByteInput> ByteInput::open(const std::string& path, const ByteInputOptions& options) {
  auto state = std::make_unique<State>();
  state->name = path == "-" ? "standard input" : path;
  state->options = options;
  state->fd = path == "-" ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (state->fd < 0) return fail(fmt::format("{}: {}", path, errno_words(errno)));
  struct stat info {};
  if (::fstat(state->fd, &info) != 0) return fail(fmt::format("{}: {}", path, errno_words(errno)));
  if (S_ISDIR(info.st_mode)) return fail(fmt::format("{} is a directory; name the {} in it", path, options.contents));
  if (S_ISREG(info.st_mode)) state->size = static_cast<std::uint64_t>(info.st_size);
  if (const Status begun = state->begin(); !begun) return fail(begun.error());
  return ByteInput(std::move(state));
}

Result<ByteInput> ByteInput::over(std::span<const std::uint8_t> bytes, std::string name,
                                  const ByteInputOptions& options) {
  auto state = std::make_unique<State>();
  state->name = std::move(name);
  state->options = options;
  state->memory = bytes;
  state->size = bytes.size();
  if (const Status begun = state->begin(); !begun) return fail(begun.error());
  return ByteInput(std::move(state));
}

Result<std::span<const std::uint8_t>> ByteInput::peek(std::size_t most) {
  std::vector<std::uint8_t>& peeked = state_->peeked;
  peeked.resize(most);
  std::size_t have = 0;
  while (have < most) {
    const auto n = state_->read(std::span(peeked).subspan(have));
    if (!n) return fail(n.error());
    if (*n == 0) break;
    have += *n;
  }
  peeked.resize(have);
  return std::span<const std::uint8_t>(peeked);
}

Result<std::size_t> ByteInput::read(std::span<std::uint8_t> into) {
  if (const std::size_t left = state_->peeked.size() - state_->peeked_at; left > 0) {
    const std::size_t n = std::min(left, into.size());
    std::memcpy(into.data(), state_->peeked.data() + state_->peeked_at, n);
    state_->peeked_at += n;
    if (n == left) {
      std::vector<std::uint8_t>().swap(state_->peeked);
      state_->peeked_at = 0;
    }
    return n;
  }
  return state_->read(into);
}
const std::string& ByteInput::warning() const {
  return state_->warning;
}
std::optional<std::uint64_t> ByteInput::size_bytes() const {
  return state_->size;
}
bool ByteInput::seek(std::uint64_t offset) {
  State& s = *state_;
  if (s.fd < 0 || !s.size || ::lseek(s.fd, static_cast<off_t>(offset), SEEK_SET) < 0) return false;
  s.raw_at = s.raw_end = 0;
  s.raw_done = false;
  return true;
}
const std::string& ByteInput::name() const {
  return state_->name;
}

}  // namespace vramtrack
