// Any bytes as a binary file of a training run, or as one record of such a file with a checksum that fits: read without
// fault, and the same however they are cut into pieces. The first byte chooses: 0 the file, 1 a record of W&B, 2 of
// TensorBoard.
#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "source/log/run_file.hpp"

namespace {

using namespace vramtrack;

std::string little_endian(std::uint64_t value, std::size_t size) {
  std::string out;
  for (std::size_t i = 0; i < size; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

std::string wandb_file(std::string_view record) {
  record = record.substr(0, 32'000);
  const std::string typed = std::string(1, '\1') + std::string(record);
  return std::string(":W&B\xe1\xbe\0", 7) +
         little_endian(::crc32(0, reinterpret_cast<const Bytef*>(typed.data()), static_cast<uInt>(typed.size())), 4) +
         little_endian(record.size(), 2) + typed;
}

std::uint32_t masked_crc32c(std::string_view bytes) {
  std::uint32_t crc = 0xffffffffU;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? 0x82f63b78U : 0);
  }
  crc = ~crc;
  return ((crc >> 15U) | (crc << 17U)) + 0xa282ead8U;
}

std::string event_file(std::string_view event) {
  const std::string length = little_endian(event.size(), 8);
  return length + little_endian(masked_crc32c(length), 4) + std::string(event) + little_endian(masked_crc32c(event), 4);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string file = data[0] == 1 ? wandb_file(input) : data[0] == 2 ? event_file(input) : std::string(input);
  const auto recognised = RunFile::recognise(file);
  if (!recognised || *recognised == nullptr) {
    if (data[0] == 1 || data[0] == 2) std::abort();  // it is one
    return 0;
  }
  const auto& whole = *recognised;
  std::string lines;
  whole->feed(file, lines);
  whole->end();
  const auto cut = std::move(*RunFile::recognise(file));
  std::string again;
  for (std::size_t at = 0; at < file.size(); at += 7) cut->feed(std::string_view(file).substr(at, 7), again);
  cut->end();
  if (lines != again || whole->warning() != cut->warning()) std::abort();
  return 0;
}
