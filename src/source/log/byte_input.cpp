#include "source/log/byte_input.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

namespace vramtrack {
namespace {

constexpr std::size_t kRawBytes = 128 * 1024;
constexpr std::size_t kWideBytes = 64 * 1024;

enum class Packing : std::uint8_t { none, gzip, zstd };
enum class Encoding : std::uint8_t { undecided, utf8, utf16_little, utf16_big };

}  // namespace

struct ByteInput::State {
  std::string path;
  int fd = -1;
  Packing packing = Packing::none;
  Encoding encoding = Encoding::undecided;
  std::vector<char> raw;  ///< bytes as they are on disk
  std::size_t raw_at = 0, raw_end = 0;
  bool raw_done = false;
  z_stream gz{};
  bool gz_open = false;
  bool gz_member_done = false;
  ZSTD_DStream* zst = nullptr;
  std::size_t zst_left = 0;  ///< what the decoder still expects; 0 between frames
  std::vector<char> wide;    ///< unpacked bytes waiting to be decoded
  std::size_t wide_at = 0, wide_end = 0;
  bool unpacked_done = false;
  unsigned high_surrogate = 0;
  std::size_t plain_size = 0;
  std::string warning;

  ~State() {
    if (gz_open) inflateEnd(&gz);
    if (zst != nullptr) ZSTD_freeDStream(zst);
    if (fd > STDIN_FILENO) ::close(fd);
  }

  Result<std::size_t> read_disk(char* to, std::size_t size) {
    while (true) {
      const ssize_t n = ::read(fd, to, size);
      if (n >= 0) return static_cast<std::size_t>(n);
      if (errno != EINTR) return fail(fmt::format("{}: {}", path, std::strerror(errno)));
    }
  }

  Status refill() {
    if (raw_done || raw_at < raw_end) return {};
    auto n = read_disk(raw.data(), raw.size());
    if (!n) return fail(std::move(n.error()));
    raw_at = 0;
    raw_end = *n;
    raw_done = *n == 0;
    return {};
  }

  Result<std::size_t> unpack(char* to, std::size_t size) {
    switch (packing) {
      case Packing::none:
        break;
      case Packing::gzip:
        return unpack_gzip(to, size);
      case Packing::zstd:
        return unpack_zstd(to, size);
    }
    if (raw_at < raw_end) {
      const std::size_t n = std::min(size, raw_end - raw_at);
      std::memcpy(to, raw.data() + raw_at, n);
      raw_at += n;
      return n;
    }
    return raw_done ? Result<std::size_t>{0} : read_disk(to, size);
  }

  Result<std::size_t> unpack_gzip(char* to, std::size_t size) {
    gz.next_out = reinterpret_cast<Bytef*>(to);
    gz.avail_out = static_cast<uInt>(std::min<std::size_t>(size, 1U << 30));
    const uInt wanted = gz.avail_out;
    while (gz.avail_out == wanted) {
      if (auto ok = refill(); !ok) return fail(std::move(ok.error()));
      if (raw_at == raw_end) {
        if (!gz_member_done) warning = fmt::format("{}: the gzip data breaks off; what came before is read", path);
        break;
      }
      if (gz_member_done) {
        // Another member may follow (cat a.gz b.gz); anything else is padding.
        if (static_cast<unsigned char>(raw[raw_at]) != 0x1f) break;
        inflateReset(&gz);
        gz_member_done = false;
      }
      gz.next_in = reinterpret_cast<Bytef*>(raw.data() + raw_at);
      gz.avail_in = static_cast<uInt>(raw_end - raw_at);
      const int rc = inflate(&gz, Z_NO_FLUSH);
      raw_at = raw_end - gz.avail_in;
      if (rc == Z_STREAM_END) {
        gz_member_done = true;
      } else if (rc != Z_OK && rc != Z_BUF_ERROR) {
        warning = fmt::format("{}: the gzip data is damaged ({}); what came before is read", path,
                              gz.msg != nullptr ? gz.msg : "bad data");
        raw_at = raw_end;
        raw_done = gz_member_done = true;
        break;
      }
    }
    return std::size_t{wanted - gz.avail_out};
  }

  Result<std::size_t> unpack_zstd(char* to, std::size_t size) {
    ZSTD_outBuffer out{to, size, 0};
    while (out.pos == 0) {
      if (auto ok = refill(); !ok) return fail(std::move(ok.error()));
      ZSTD_inBuffer in{raw.data(), raw_end, raw_at};
      const bool at_end = raw_at == raw_end;
      const std::size_t left = ZSTD_decompressStream(zst, &out, &in);
      raw_at = in.pos;
      if (ZSTD_isError(left) != 0) {
        warning =
            fmt::format("{}: the zstd data is damaged ({}); what came before is read", path, ZSTD_getErrorName(left));
        raw_at = raw_end;
        raw_done = true;
        zst_left = 0;
        break;
      }
      if (at_end && out.pos == 0) {
        if (zst_left != 0 && warning.empty())
          warning = fmt::format("{}: the zstd data breaks off; what came before is read", path);
        break;
      }
      zst_left = left;
    }
    return out.pos;
  }

  /// Decodes UTF-16 from `wide` into UTF-8 at `to`; size >= 4.
  std::size_t decode(char* to, std::size_t size) {
    std::size_t n = 0;
    while (wide_end - wide_at >= 2 && n + 4 <= size) {
      const auto a = static_cast<unsigned char>(wide[wide_at]);
      const auto b = static_cast<unsigned char>(wide[wide_at + 1]);
      wide_at += 2;
      unsigned unit = encoding == Encoding::utf16_little ? a | (unsigned{b} << 8) : b | (unsigned{a} << 8);
      if (unit >= 0xd800 && unit < 0xdc00) {
        high_surrogate = unit;
        continue;
      }
      if (unit >= 0xdc00 && unit < 0xe000)
        unit = high_surrogate != 0 ? 0x10000 + ((high_surrogate - 0xd800) << 10) + (unit - 0xdc00) : '?';
      high_surrogate = 0;
      const auto put = [&](unsigned byte) { to[n++] = static_cast<char>(byte); };
      if (unit < 0x80) {
        put(unit);
      } else if (unit < 0x800) {
        put(0xc0 | (unit >> 6));
        put(0x80 | (unit & 0x3f));
      } else if (unit < 0x10000) {
        put(0xe0 | (unit >> 12));
        put(0x80 | ((unit >> 6) & 0x3f));
        put(0x80 | (unit & 0x3f));
      } else {
        put(0xf0 | (unit >> 18));
        put(0x80 | ((unit >> 12) & 0x3f));
        put(0x80 | ((unit >> 6) & 0x3f));
        put(0x80 | (unit & 0x3f));
      }
    }
    return n;
  }

  Status refill_wide() {
    std::memmove(wide.data(), wide.data() + wide_at, wide_end - wide_at);
    wide_end -= wide_at;
    wide_at = 0;
    auto n = unpack(wide.data() + wide_end, wide.size() - wide_end);
    if (!n) return fail(std::move(n.error()));
    wide_end += *n;
    unpacked_done = *n == 0;
    return {};
  }

  /// Looks at the first unpacked bytes: a byte-order mark, or the zero bytes of UTF-16 without one.
  Status settle_encoding() {
    while (wide_end < 64 && !unpacked_done)
      if (auto ok = refill_wide(); !ok) return ok;
    const auto byte = [&](std::size_t i) { return i < wide_end ? static_cast<unsigned char>(wide[i]) : 0x100U; };
    encoding = Encoding::utf8;
    if (byte(0) == 0xff && byte(1) == 0xfe) {
      encoding = Encoding::utf16_little;
      wide_at = 2;
    } else if (byte(0) == 0xfe && byte(1) == 0xff) {
      encoding = Encoding::utf16_big;
      wide_at = 2;
    } else if (byte(0) == 0xef && byte(1) == 0xbb && byte(2) == 0xbf) {
      wide_at = 3;
    } else if (wide_end >= 16) {
      std::size_t even = 0;
      std::size_t odd = 0;
      const std::size_t looked = std::min<std::size_t>(wide_end, 64) / 2 * 2;
      for (std::size_t i = 0; i < looked; ++i)
        if (wide[i] == '\0') (i % 2 == 0 ? even : odd) += 1;
      if (odd * 2 == looked && even == 0) encoding = Encoding::utf16_little;
      if (even * 2 == looked && odd == 0) encoding = Encoding::utf16_big;
    }
    return {};
  }
};

ByteInput::ByteInput(std::unique_ptr<State> state) : state_(std::move(state)) {}
ByteInput::~ByteInput() = default;

Result<std::unique_ptr<ByteInput>> ByteInput::open(const std::string& path) {
  auto state = std::make_unique<State>();
  State& s = *state;
  s.path = path == "-" ? "standard input" : path;
  s.fd = path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (s.fd < 0) return fail(fmt::format("{}: {}", path, std::strerror(errno)));
  struct stat about {};
  if (::fstat(s.fd, &about) == 0 && S_ISDIR(about.st_mode))
    return fail(fmt::format("{}: is a directory; name the log files in it", path));
  s.raw.resize(kRawBytes);
  s.wide.resize(kWideBytes);
  // A pipe may hand over its first bytes in pieces.
  while (s.raw_end < 4 && !s.raw_done) {
    auto n = s.read_disk(s.raw.data() + s.raw_end, s.raw.size() - s.raw_end);
    if (!n) return fail(std::move(n.error()));
    s.raw_end += *n;
    s.raw_done = *n == 0;
  }
  const auto magic = [&](std::initializer_list<unsigned> bytes) {
    std::size_t i = 0;
    for (const unsigned b : bytes)
      if (i >= s.raw_end || static_cast<unsigned char>(s.raw[i++]) != b) return false;
    return true;
  };
  if (magic({0x1f, 0x8b})) {
    s.packing = Packing::gzip;
    s.gz_open = inflateInit2(&s.gz, 15 + 16) == Z_OK;
    if (!s.gz_open) return fail(fmt::format("{}: no memory to unpack gzip", s.path));
  } else if (magic({0x28, 0xb5, 0x2f, 0xfd})) {
    s.packing = Packing::zstd;
    s.zst = ZSTD_createDStream();
    if (s.zst == nullptr) return fail(fmt::format("{}: no memory to unpack zstd", s.path));
    s.zst_left = 1;
  } else if (magic({'B', 'Z', 'h'}) || magic({0xfd, '7', 'z', 'X'}) || magic({'P', 'K', 3, 4})) {
    return fail(fmt::format("{}: packed with bzip2, xz or zip, which are not read; unpack it first", s.path));
  }
  if (auto ok = s.settle_encoding(); !ok) return fail(std::move(ok.error()));
  if (s.packing == Packing::none && s.encoding == Encoding::utf8 && path != "-" && S_ISREG(about.st_mode))
    s.plain_size = static_cast<std::size_t>(about.st_size);
  return std::unique_ptr<ByteInput>(new ByteInput(std::move(state)));
}

Result<std::size_t> ByteInput::read(char* to, std::size_t size) {
  State& s = *state_;
  if (s.encoding == Encoding::utf8) {
    if (s.wide_at < s.wide_end) {
      const std::size_t n = std::min(size, s.wide_end - s.wide_at);
      std::memcpy(to, s.wide.data() + s.wide_at, n);
      s.wide_at += n;
      return n;
    }
    return s.unpack(to, size);
  }
  if (size < 4) return std::size_t{0};
  while (true) {
    if (const std::size_t n = s.decode(to, size); n > 0) return n;
    if (s.unpacked_done) return std::size_t{0};
    if (auto ok = s.refill_wide(); !ok) return fail(std::move(ok.error()));
  }
}

const std::string& ByteInput::warning() const {
  return state_->warning;
}
std::size_t ByteInput::plain_size() const {
  return state_->plain_size;
}

bool ByteInput::seek(std::size_t offset) {
  State& s = *state_;
  if (s.plain_size == 0 || ::lseek(s.fd, static_cast<off_t>(offset), SEEK_SET) < 0) return false;
  s.wide_at = s.wide_end = s.raw_at = s.raw_end = 0;
  s.raw_done = false;
  return true;
}

}  // namespace vramtrack
