// GGUF: the part of a llama.cpp model file's header that determines its memory need. The format is described at
// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md (versions 2 and 3).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "sizing/model.hpp"

namespace vramtrack::sizing {

/// One metadata value. For an array, its length and, if they are numbers and not too many, its numbers.
struct GgufValue {
  std::string text;
  std::vector<double> numbers;
  std::uint64_t count = 1;
};

struct GgufTensor {
  std::string name;
  std::uint32_t type = 0;
  double elements = 0;
  std::uint64_t offset = 0;  ///< from the beginning of the data
};

struct GgufHeader {
  std::uint32_t version = 0;
  std::map<std::string, GgufValue> values;
  std::vector<GgufTensor> tensors;
  std::size_t end = 0;  ///< where the header ends; the data begins at the next multiple of general.alignment
};

/// The result of reading: a header, or that it did not end within the bytes read, so that more of the file is needed.
struct GgufRead {
  bool is_cut = false;
  GgufHeader header;
};

/// The maximum size of a header: vocabularies of a million tokens take some tens of MiB.
inline constexpr std::size_t kMostGgufHeaderBytes = std::size_t{256} << 20U;

/// Reads the header from the first bytes of a file. Errors name the offset. Each length is compared with the available
/// bytes before anything is allocated. Pure; O(bytes).
Result<GgufRead> parse_gguf(std::string_view bytes);

/// The model's facts in the header. `data_bytes`: the size of the data after the header, in all parts of the file,
/// which bounds tensors of unknown types; 0: unknown. Pure.
Result<ModelFacts> facts_of(const GgufHeader& header, double data_bytes);

/// The number of files that the model was split into; 1: only this one.
std::size_t parts_of(const GgufHeader& header);

/// "Q4_K" and the size of this many elements; empty and 0 for an unknown type.
std::string_view gguf_type_name(std::uint32_t type);
double gguf_type_bytes(std::uint32_t type, double elements);

}  // namespace vramtrack::sizing
