#include "trace/byte_input.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

namespace vramtrack::trace {
namespace {

constexpr std::size_t kRawBytes = 256 * 1024;
/// Real snapshots shrink 12 to 60 times, under zstd's strongest setting too. A file that goes far beyond that, past a
/// size that is no burden to anyone, is made to fill memory: what is read is at most so many times what is on the disk.
constexpr std::uint64_t kMostRatio = 250;
constexpr std::uint64_t kAlwaysBytes = 64ULL << 20;

struct ZstdFree {
  void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
};

enum class Packing : std::uint8_t { none, gzip, zstd };

}  // namespace

struct ByteInput::State {
  std::string name;
  int fd = -1;
  std::span<const std::uint8_t> memory;  ///< what is left of it, when fd is -1
  std::optional<std::uint64_t> size;

  Packing packing = Packing::none;
  std::vector<std::uint8_t> raw;  ///< a window of the packed bytes
  std::size_t raw_at = 0, raw_end = 0;
  bool raw_done = false;
  bool frame_done = true;  ///< between two gzip members or zstd frames
  std::uint64_t packed_bytes = 0, unpacked_bytes = 0;
  z_stream zlib{};
  bool zlib_open = false;
  std::unique_ptr<ZSTD_DStream, ZstdFree> zstd;
  std::vector<std::uint8_t> peeked;  ///< read already, not yet given
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
      if (errno != EINTR) return fail(fmt::format("{}: {}", name, std::generic_category().message(errno)));
    }
  }

  /// Reads the first bytes and settles the packing by them.
  Status begin() {
    raw.resize(kRawBytes);
    while (raw_end < 4 && !raw_done) {
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
      if (inflateInit2(&zlib, 15 + 16) != Z_OK) return fail(name + ": no memory to decompress it");
      zlib_open = true;
    } else {
      zstd.reset(ZSTD_createDStream());
      if (zstd == nullptr) return fail(name + ": no memory to decompress it");
    }
    return {};
  }

  Result<std::size_t> read(std::span<std::uint8_t> into) {
    if (packing == Packing::none) {
      if (raw_at < raw_end) {
        const std::size_t n = std::min(into.size(), raw_end - raw_at);
        std::memcpy(into.data(), raw.data() + raw_at, n);
        raw_at += n;
        if (raw_at == raw_end) std::vector<std::uint8_t>().swap(raw);
        return n;
      }
      return read_raw(into.data(), into.size());
    }
    for (;;) {
      if (raw_at == raw_end && !raw_done) {
        const auto n = read_raw(raw.data(), raw.size());
        if (!n) return fail(n.error());
        raw_done = *n == 0;
        raw_at = 0;
        raw_end = *n;
        packed_bytes += *n;
      }
      if (raw_at == raw_end && raw_done) {
        if (frame_done) return std::size_t{0};
        return fail(
            fmt::format("{}: the compressed file is cut off after {} bytes; copy it again", name, packed_bytes));
      }
      auto n = unpack(into);
      if (!n) return n;
      unpacked_bytes += *n;
      if (unpacked_bytes > kAlwaysBytes && unpacked_bytes / kMostRatio > packed_bytes)
        return fail(
            fmt::format("{}: {} compressed bytes have become {} and go on, more than snapshots shrink; if you "
                        "trust it, decompress it and read the plain file",
                        name, packed_bytes, unpacked_bytes));
      if (*n > 0) return n;
      // Padding behind the last frame is not the start of another one.
      if (frame_done && raw_at < raw_end && raw[raw_at] == 0) {
        raw_at = raw_end;
        if (raw_done) return std::size_t{0};
      }
    }
  }

  Result<std::size_t> unpack(std::span<std::uint8_t> into) {
    return packing == Packing::gzip ? inflate_some(into) : unzstd_some(into);
  }

  Result<std::size_t> inflate_some(std::span<std::uint8_t> into) {
    if (frame_done) {
      inflateReset(&zlib);
      frame_done = false;
    }
    zlib.next_in = raw.data() + raw_at;
    zlib.avail_in = static_cast<uInt>(raw_end - raw_at);
    zlib.next_out = into.data();
    zlib.avail_out = static_cast<uInt>(std::min<std::size_t>(into.size(), 1U << 30));
    const uInt room = zlib.avail_out;
    const int status = ::inflate(&zlib, Z_NO_FLUSH);
    raw_at = raw_end - zlib.avail_in;
    if (status == Z_STREAM_END) {
      frame_done = true;
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      return fail(fmt::format("{}: broken gzip data at byte {}: {}; copy the file again", name,
                              packed_bytes - zlib.avail_in, zlib.msg != nullptr ? zlib.msg : "no reason given"));
    }
    return std::size_t{room - zlib.avail_out};
  }

  Result<std::size_t> unzstd_some(std::span<std::uint8_t> into) {
    ZSTD_inBuffer in{raw.data(), raw_end, raw_at};
    ZSTD_outBuffer out{into.data(), into.size(), 0};
    const std::size_t status = ZSTD_decompressStream(zstd.get(), &out, &in);
    raw_at = in.pos;
    if (ZSTD_isError(status) != 0U)
      return fail(fmt::format("{}: broken zstd data at byte {}: {}; copy the file again", name,
                              packed_bytes - (raw_end - raw_at), ZSTD_getErrorName(status)));
    frame_done = status == 0;
    return out.pos;
  }
};

ByteInput::ByteInput(std::unique_ptr<State> state) : state_(std::move(state)) {}
ByteInput::ByteInput(ByteInput&&) noexcept = default;
ByteInput& ByteInput::operator=(ByteInput&&) noexcept = default;
ByteInput::~ByteInput() = default;

Result<ByteInput> ByteInput::open(const std::string& path) {
  auto state = std::make_unique<State>();
  state->name = path == "-" ? "standard input" : path;
  state->fd = path == "-" ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (state->fd < 0) return fail(fmt::format("{}: {}", path, std::generic_category().message(errno)));
  struct stat info {};
  if (::fstat(state->fd, &info) != 0) return fail(fmt::format("{}: {}", path, std::generic_category().message(errno)));
  if (S_ISDIR(info.st_mode)) return fail(path + ": is a folder; name the snapshot in it");
  if (S_ISREG(info.st_mode)) state->size = static_cast<std::uint64_t>(info.st_size);
  if (const Status begun = state->begin(); !begun) return fail(begun.error());
  return ByteInput(std::move(state));
}

Result<ByteInput> ByteInput::over(std::span<const std::uint8_t> bytes, std::string name) {
  auto state = std::make_unique<State>();
  state->name = std::move(name);
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
std::optional<std::uint64_t> ByteInput::size_bytes() const {
  return state_->size;
}
const std::string& ByteInput::name() const {
  return state_->name;
}

}  // namespace vramtrack::trace
