#include "core/byte_input.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>

#include "../packed.hpp"
#include "../temp_folder.hpp"
#include "core/units.hpp"

namespace vramtrack {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::span<const std::uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

struct Reading {
  std::string text;
  std::string error;
  std::string warning;
};

/// Reads everything, `step` bytes at a time.
Reading read_all(ByteInput& input, std::size_t step) {
  Reading out;
  std::vector<std::uint8_t> buffer(step);
  for (;;) {
    const auto n = input.read(buffer);
    if (!n) {
      out.error = n.error().message;
      return out;
    }
    if (*n == 0) break;
    out.text.append(reinterpret_cast<const char*>(buffer.data()), *n);
  }
  out.warning = input.warning();
  return out;
}

Reading read_bytes(const std::string& bytes, const ByteInputOptions& options = {}, std::size_t step = 4096) {
  auto input = ByteInput::over(bytes_of(bytes), "it", options);
  if (!input) return {"", input.error().message, ""};
  return read_all(*input, step);
}

/// Text that compresses to about half, so that compressed streams of it are long.
std::string some_text(std::size_t size) {
  std::string text;
  for (std::uint64_t i = 1; text.size() < size; ++i) text += std::to_string(i * 2654435761U) + "\n";
  text.resize(size);
  return text;
}

TEST(ByteInput, RecognisesPackingByTheFirstBytes) {
  const std::string text = some_text(600'000);
  for (const std::string& bytes : {text, packed::gzip(text), packed::zstd(text)})
    for (const std::size_t step : {7U, 4096U, 1'000'000U}) {
      const Reading reading = read_bytes(bytes, {}, step);
      EXPECT_EQ(reading.error, "");
      EXPECT_EQ(reading.text, text) << "in steps of " << step;
      EXPECT_EQ(reading.warning, "");
    }
  EXPECT_EQ(read_bytes("").text, "");
  EXPECT_EQ(read_bytes("\x1f").text, "\x1f") << "too short to be packed";
}

TEST(ByteInput, ReadsSeveralFramesAsOneAndPaddingAsNone) {
  const std::string first = some_text(1000);
  const std::string more(300'000, 'x');  // the padding is longer than the part of the file in memory
  const std::string padding(600'000, '\0');
  for (const auto pack : {packed::gzip, packed::zstd}) {
    EXPECT_EQ(read_bytes(pack(first) + pack(more)).text, first + more);
    const Reading padded = read_bytes(pack(first) + padding);
    EXPECT_EQ(padded.error, "");
    EXPECT_EQ(padded.text, first);
  }
}

TEST(ByteInput, ZstdHandsOutWhatHadNoRoomAtTheEndOfTheFile) {
  // A small frame without a checksum: the input is used up long before all output has been taken.
  const std::string text(100'000, 'x');
  const Reading reading = read_bytes(packed::zstd(text), {}, 10);
  EXPECT_EQ(reading.error, "");
  EXPECT_EQ(reading.text.size(), text.size());
}

TEST(ByteInput, DamageIsAnErrorOrAWarning) {
  const std::string text = some_text(600'000);
  ByteInputOptions lenient;
  lenient.is_damage_an_error = false;
  for (const auto& [bytes, packing] : {std::pair(packed::gzip(text), "gzip"), std::pair(packed::zstd(text), "zstd")}) {
    const std::string cut = bytes.substr(0, bytes.size() / 2);
    const std::string words =
        "it: the " + std::string(packing) + " data is cut off after " + std::to_string(cut.size()) + " bytes";
    EXPECT_EQ(read_bytes(cut).error, words + "; copy the file again");
    const Reading rest = read_bytes(cut, lenient);
    EXPECT_EQ(rest.error, "");
    EXPECT_EQ(rest.warning, words + "; the data before that is read");
    EXPECT_GT(rest.text.size(), 100'000U);
    EXPECT_THAT(text, StartsWith(rest.text));

    std::string broken = bytes;
    for (std::size_t i = broken.size() / 2; i < broken.size() / 2 + 64; ++i) broken[i] = '\x55';
    EXPECT_THAT(read_bytes(broken).error,
                AllOf(HasSubstr("data is damaged at byte "), HasSubstr("copy the file again")));
    const Reading before = read_bytes(broken, lenient);
    EXPECT_EQ(before.error, "");
    EXPECT_THAT(before.warning, HasSubstr("the data before that is read"));

    EXPECT_THAT(read_bytes(bytes + "rubbish").error, HasSubstr("data is damaged at byte "));
    EXPECT_EQ(read_bytes(bytes + "rubbish", lenient).text, text);
  }
}

TEST(ByteInput, RatioGuardIsAnOption) {
  const std::string bomb = packed::zstd(std::string(80 * kBytesPerMiB, 'x'));
  ByteInputOptions guarded;
  guarded.contents = "snapshots";
  guarded.most_ratio = 250;
  EXPECT_THAT(read_bytes(bomb, guarded, kBytesPerMiB).error,
              AllOf(HasSubstr("suspiciously large for snapshots"), HasSubstr("decompress it and read the plain file")));
  EXPECT_EQ(read_bytes(bomb, {}, kBytesPerMiB).text.size(), 80 * kBytesPerMiB);
  EXPECT_EQ(read_bytes(packed::zstd(std::string(60 * kBytesPerMiB, 'x')), guarded, kBytesPerMiB).error, "");
}

TEST(ByteInput, FilesHaveASizeAndAPlaceOnlyWhenPlain) {
  const TempFolder folder;
  const std::string text = some_text(400'000);
  std::ofstream(folder.file("plain"), std::ios::binary) << text;
  std::ofstream(folder.file("packed"), std::ios::binary) << packed::gzip(text);
  auto plain = ByteInput::open(folder.file("plain"));
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_EQ(plain->size_bytes(), text.size());
  EXPECT_EQ(plain->name(), folder.file("plain"));
  EXPECT_EQ(read_all(*plain, 5000).text, text);
  ASSERT_TRUE(plain->seek(399'000));
  EXPECT_EQ(read_all(*plain, 300).text, text.substr(399'000));
  ASSERT_TRUE(plain->seek(0));
  EXPECT_EQ(read_all(*plain, 300'000).text, text);

  auto compressed = ByteInput::open(folder.file("packed"));
  ASSERT_TRUE(compressed) << compressed.error().message;
  EXPECT_EQ(compressed->size_bytes(), std::nullopt);
  EXPECT_FALSE(compressed->seek(0));
  EXPECT_EQ(read_all(*compressed, 5000).text, text);

  auto memory = ByteInput::over(bytes_of(text), "memory");
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->size_bytes(), text.size());
  EXPECT_FALSE(memory->seek(0));
}

TEST(ByteInput, ReadsAPipe) {
  const std::string bytes = packed::gzip("hello");
  int ends[2] = {};
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  ASSERT_EQ(::write(ends[1], bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  ::close(ends[1]);
  auto input = ByteInput::open("/proc/self/fd/" + std::to_string(ends[0]));
  ::close(ends[0]);
  ASSERT_TRUE(input) << input.error().message;
  EXPECT_EQ(input->size_bytes(), std::nullopt);
  EXPECT_EQ(read_all(*input, 2).text, "hello");
}

TEST(ByteInput, ErrorsNameTheFileAndTheReason) {
  const TempFolder folder;
  const auto missing = ByteInput::open(folder.file("missing"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message, folder.file("missing") + ": No such file or directory");
  ByteInputOptions options;
  options.contents = "log files";
  const auto directory = ByteInput::open(folder.path(), options);
  ASSERT_FALSE(directory);
  EXPECT_EQ(directory.error().message, folder.path() + " is a directory; name the log files in it");
}

}  // namespace
}  // namespace vramtrack
