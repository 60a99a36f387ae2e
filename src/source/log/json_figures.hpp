// The figures in a JSON object, at any depth, and whose they are: {"gpus": [{"id": 0, "mem_used_mb": 4000}, ...]}.
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

/// Whose a figure is, according to the objects and lists around it.
struct FigureOwner {
  LogDevice gpu;             ///< what is not said stays empty
  bool is_gpu = false;       ///< a key says that it is a GPU, or an id is that of one
  bool by_place = false;     ///< the index is the place in a list
  std::string unsure_index;  ///< the keys that lead to the index, if they may also lead to a measure ("gpu")
  std::string index_text;    ///< what is written there
  std::optional<std::uint32_t> pid;
  std::string process;  ///< its name

  /// Whether anything says which GPU it is.
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
  bool is_amount = true;  ///< false: a text that is not an amount, or a number below zero
  FigureOwner owner;
};

/// What the keys of a log turned out to mean.
struct FigureKeys {
  std::vector<std::string> measures;  ///< the keys that lead to what looks like an index, but is a measure
  std::vector<std::string> series;    ///< of the outermost object, those that tell programs or machines apart
};

/// What the member `key` of `object` says of who wrote it: its text, or the name within it ("host": {"name": "node7"}).
std::string_view series_text(const JsonValue& object, std::string_view key);

/// Finds the figures of one object after another. Not thread-safe.
class FigureReader {
 public:
  explicit FigureReader(FigureKeys keys) : keys_(std::move(keys)) {}

  /// The figures of `object`, in order, valid until the next call. Each element of a list of objects is an owner of its
  /// own, and so is each number of a list of numbers (also written as text: "[9000, 3997]", "9000;3997"). A figure that
  /// has no value (null, "N/A") is left out.
  /// `of`: what tells the object apart from others; empty: nothing.
  const std::vector<JsonFigure>& read(const JsonValue& object, std::string_view of = {});

 private:
  class Walk;

  FigureKeys keys_;
  std::vector<JsonFigure> found_;
  std::unordered_map<std::string, Column> columns_;  ///< by key
};

}  // namespace vramtrack
