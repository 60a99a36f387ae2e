// The figures in a JSON object, at any depth, and their owners: {"gpus": [{"id": 0, "mem_used_mb": 4000}, ...]}.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "source/log/columns.hpp"
#include "source/log/json.hpp"
#include "source/log/roster.hpp"

namespace vramtrack {

/// The owner of a figure, according to the enclosing objects and lists.
struct FigureOwner {
  LogDevice gpu;             ///< missing fields stay empty
  bool is_gpu = false;       ///< a key names a GPU, or an id is a GPU's
  bool by_position = false;  ///< the index is the position in a list
  std::string unsure_index;  ///< the keys that lead to the index, if they may also lead to a measure ("gpu")
  std::string index_text;    ///< the text of the index
  std::optional<std::uint32_t> pid;
  std::string process;  ///< its name

  /// Whether anything identifies the GPU.
  [[nodiscard]] bool names_gpu() const {
    return gpu.index || !gpu.uuid.empty() || !gpu.pci_bus_id.empty() || !gpu.text.empty();
  }
};

/// A number in an object.
struct JsonFigure {
  std::string name;   ///< the keys that lead to it: "gpus > memory > used"; positions and ids are not part of it
  std::string above;  ///< the last key but one
  std::string key;    ///< the last one
  double number = 0;
  bool in_bytes = false;  ///< a text such as "4000 MiB", read
  bool is_amount = true;  ///< false: text that is not an amount, or a negative number
  FigureOwner owner;
};

/// What the keys of a log turn out to mean.
struct FigureKeys {
  std::vector<std::string> measures;  ///< the keys that lead to what looks like an index but is a measure
  std::vector<std::string> series;    ///< keys of the outermost object that distinguish programs or machines
};

/// The writer according to the member `key` of `object`: its text, or the name within it ("host": {"name": "node7"}).
std::string_view series_text(const JsonValue& object, std::string_view key);

/// Finds the figures of one object after another. Not thread-safe.
class FigureReader {
 public:
  explicit FigureReader(FigureKeys keys) : keys_(std::move(keys)) {}

  /// The figures of `object`, in order, valid until the next call. Each element of a list of objects has its own
  /// owner, and so has each number of a list of numbers (also written as text: "[9000, 3997]", "9000;3997"). A
  /// figure without a value (null, "N/A") is left out. `of`: distinguishes the object from others; empty: nothing
  /// does.
  const std::vector<JsonFigure>& read(const JsonValue& object, std::string_view of = {});

 private:
  class Walk;

  FigureKeys keys_;
  std::vector<JsonFigure> found_;
  std::unordered_map<std::string, Column> columns_;  ///< by key
};

}  // namespace vramtrack
