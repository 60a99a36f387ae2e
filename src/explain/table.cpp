#include "explain/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/order.hpp"
#include "core/printable.hpp"
#include "explain/cause.hpp"
#include "explain/pattern.hpp"
#include "explain/words.hpp"

namespace vramtrack::explain {
namespace {

constexpr std::size_t kMostLineBytes = 4096;
constexpr std::size_t kMostTables = 1000;
constexpr std::size_t kMostKinds = 4096;  ///< sizes, or operations, of one dump
constexpr std::size_t kMostBuffers = 64;
constexpr std::size_t kLargest = 8;
constexpr std::size_t kNameBytes = 120;
/// Maximum number of lines between two of a table's own: tracebacks and loggers write into it.
constexpr std::uint64_t kBetween = 30;

/// None of them is a failure: they add to one.
const Wording kDump{"bfc_dump", "TensorFlow, JAX/XLA", "any", Role::context, Cause::unknown, "", ""};
const Wording kBuffers{"xla_buffers", "JAX/XLA", "any", Role::context, Cause::unknown, "", ""};
const Wording kSteps{"creation_steps", "any", "any", Role::context, Cause::unknown, "", ""};
const Wording kTensors{"tf_usage", "TensorFlow", "1.5 and newer", Role::context, Cause::unknown, "", ""};

constexpr std::string_view kLogger = "bfc_allocator.cc:";

/// The text after `key`, without blanks; nullopt: not in `text`.
std::optional<std::string_view> behind(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  return trimmed(text.substr(at + key.size()));
}

std::optional<double> size_behind(std::string_view text, std::string_view key) {
  const auto rest = behind(text, key);
  std::size_t at = 0;
  return rest ? read_size(*rest, at) : std::nullopt;
}

/// The value of `name` in 'op_name="..." source_line=7'; empty: absent.
std::string_view attribute(std::string_view text, std::string_view name) {
  const auto rest = behind(text, name);
  if (!rest || rest->empty()) return {};
  if (rest->front() != '"') return rest->substr(0, rest->find_first_of(" ,}"));
  return rest->substr(1, std::min(rest->find('"', 1), rest->size()) - 1);
}

/// "jit(main)/jit(_einsum)/dot_general[precision=None]" -> "jit(_einsum)/dot_general": the end of a path identifies
/// it.
std::string operation(std::string_view name) {
  name = name.substr(0, name.find('['));
  std::size_t at = name.rfind('/');
  if (at != std::string_view::npos && at > 0) at = name.rfind('/', at - 1);
  if (at != std::string_view::npos) name.remove_prefix(at + 1);
  return std::string(name.substr(0, kNameBytes));
}

std::string_view file_name(std::string_view path) {
  const std::size_t at = path.rfind('/');
  return at == std::string_view::npos ? path : path.substr(at + 1);
}

/// Whether only a list's own words precede `at`: nothing, or a logger's prefix.
bool begins_line(std::string_view line, std::size_t at) {
  const std::string_view before = trimmed(line.substr(0, at));
  return before.empty() || before.back() == ']' || before.back() == '.' || before.back() == ')' ||
         before.back() == '|' || before.back() == '>';
}

std::vector<Holding> largest_of(std::vector<Holding> all, const Wording& table) {
  order(all, [](const Holding& a, const Holding& b) { return a.bytes > b.bytes; });
  if (all.size() > kLargest) all.resize(kLargest);
  for (Holding& holding : all) holding.table = table.name;
  return all;
}

}  // namespace

void TableReader::feed(std::string_view piece) {
  while (!piece.empty()) {
    const std::size_t end = piece.find('\n');
    const std::string_view part = piece.substr(0, end);
    if (rest_.empty() && end != std::string_view::npos) {
      ++line_;
      take_line(part.substr(0, kMostLineBytes));
    } else {
      rest_ += part.substr(0, kMostLineBytes - std::min(kMostLineBytes, rest_.size()));
      if (end != std::string_view::npos) {
        ++line_;
        take_line(rest_);
        rest_.clear();
      }
    }
    if (end == std::string_view::npos) return;
    piece.remove_prefix(end + 1);
  }
}

std::vector<Message> TableReader::finish() {
  if (!rest_.empty()) {
    ++line_;
    take_line(rest_);
    rest_.clear();
  }
  end_dump();
  end_list();
  end_smi();
  return std::move(tables_);
}

void TableReader::take_line(std::string_view line) {
  if (const std::size_t at = line.find(kLogger); at != std::string_view::npos) {
    const std::size_t text = line.find("] ", at);
    if (text != std::string_view::npos && take_dump_line(line.substr(text + 2))) return;
  }
  if (line.find("NVIDIA-SMI") != std::string_view::npos || line_ > smi_line_ + kBetween) end_smi();
  if (smi_.take(line, line_)) {
    smi_line_ = line_;
    return;
  }
  if (dump_ && line_ > dump_->last_line + kBetween) end_dump();
  if (line.find("Peak buffers:") != std::string_view::npos ||
      line.find("Largest program allocations in ") != std::string_view::npos)
    return begin_list(kBuffers);
  if (line.find("Current usage from device: ") != std::string_view::npos) return begin_list(kTensors);
  // "Previously created components and free GPU memory before/after creation (GiB):"
  const std::string_view title = trimmed(line);
  if (title.ends_with(':') && title.find("before") != std::string_view::npos &&
      title.find("after") != std::string_view::npos && title.find("free") != std::string_view::npos) {
    begin_list(kSteps);
    const std::string one = "1" + std::string(attribute(title, "("));
    std::size_t end = 0;
    list_->unit_bytes = read_size(one, end).value_or(1);
    return;
  }
  if (!list_) return;
  if (list_->wording == &kSteps) {
    if (!take_step_line(title)) return end_list();
    list_->last_line = line_;
    return;
  }
  if (list_->wording == &kBuffers ? take_buffer_line(line) : take_tensor_line(line))
    list_->last_line = line_;
  else if (line_ > list_->last_line + kBetween)
    end_list();
}

bool TableReader::take_dump_line(std::string_view text) {
  text = trimmed(text);
  const bool is_bin = text.starts_with("Bin (");
  // "Bin (256): ..." is the first line of a dump.
  if (dump_ && text.starts_with("Bin (256)")) end_dump();
  const bool is_free = text.starts_with("Free ");
  const bool is_chunk = is_free || text.starts_with("InUse at ") || text.starts_with("Chunk at ");
  const bool is_size = text.find(" Chunks of size ") != std::string_view::npos;
  const bool is_state = text.starts_with("Size: ");
  if (!is_bin && !is_chunk && !is_size && !is_state) return false;
  if (!dump_) dump_.emplace().line = line_;
  dump_->last_line = line_;
  if (is_bin) take_bin(text);
  if (is_chunk) take_chunk(text, is_free);
  if (is_state && text.substr(0, text.find(", ")).find("in_use: 0") != std::string_view::npos)
    if (const auto bytes = size_behind(text, "Size: "))
      dump_->bin_piece_bytes = std::max(dump_->bin_piece_bytes.value_or(0), *bytes);
  if (is_size) {
    std::size_t at = 0;
    const auto count = read_number(text, at);
    const auto bytes = size_behind(text, " Chunks of size ");
    if (!dump_->is_summarised) dump_->sizes.clear();
    dump_->is_summarised = true;
    if (count && bytes && dump_->sizes.size() < kMostKinds)
      dump_->sizes[*bytes] += static_cast<std::uint64_t>(std::min(*count, 1e15));
  }
  return true;
}

/// "Bin (256): Total Chunks: 34, Chunks in use: 33. 8.5KiB allocated for chunks. 8.2KiB in use in bin. ..."
void TableReader::take_bin(std::string_view text) {
  const auto number = [&](std::string_view key) {
    const auto rest = behind(text, key);
    std::size_t at = 0;
    return rest ? read_number(*rest, at) : std::nullopt;
  };
  /// The size that precedes `key`.
  const auto size_before = [&](std::string_view key) -> std::optional<double> {
    const std::size_t end = text.find(key);
    if (end == std::string_view::npos) return std::nullopt;
    const std::size_t begin = text.find_last_of(" \t", end - 1);
    std::size_t at = 0;
    return read_size(text.substr(begin + 1, end - begin - 1), at);
  };
  const auto total = number("Total Chunks:");
  const auto in_use = number("Chunks in use:");
  const auto allocated = size_before(" allocated for chunks");
  const auto used = size_before(" in use in bin");
  if (!total || !in_use || !allocated || !used || *total < *in_use || *allocated < *used) return;
  dump_->used_bytes += *used;
  if (*total == *in_use) return;
  // The bins are in ascending order: the last one with a single free chunk shows its size.
  const double free = *allocated - *used;
  dump_->free_bytes += free;
  dump_->free_chunks += static_cast<std::uint64_t>(std::min(*total - *in_use, 1e15));
  dump_->bin_piece_bytes = *total - *in_use == 1 ? std::optional(free) : std::nullopt;
}

/// "InUse at 4384b1b000 of size 604651520 by op MatMul action_count 12 step 0 next 100"; older versions write
/// "Chunk at", or "next 100" before the size.
void TableReader::take_chunk(std::string_view text, bool is_free) {
  const auto bytes = size_behind(text, " of size ");
  if (!bytes) return;
  BfcDump& dump = *dump_;
  dump.lists_chunks = true;
  if (is_free) {
    dump.listed_free_bytes += *bytes;
    ++dump.listed_free_chunks;
    dump.largest_listed_bytes = std::max(dump.largest_listed_bytes, *bytes);
    return;
  }
  dump.listed_used_bytes += *bytes;
  if (!dump.is_summarised && (dump.sizes.size() < kMostKinds || dump.sizes.contains(*bytes))) ++dump.sizes[*bytes];
  const auto op = behind(text, " by op ");
  if (!op) return;
  const std::string name(op->substr(0, std::min(op->find(" action_count"), kNameBytes)));
  if (!dump.ops.contains(name) && dump.ops.size() >= kMostKinds) return;
  Holding& holding = dump.ops[name];
  holding.count = holding.bytes > 0 ? holding.count + 1 : 1;
  holding.bytes += *bytes;
  holding.by = name;
}

void TableReader::begin_list(const Wording& wording) {
  end_list();
  list_.emplace();
  list_->wording = &wording;
  list_->line = list_->last_line = line_;
}

/// A line of XLA's list; false: it is not one.
bool TableReader::take_buffer_line(std::string_view line) {
  const std::size_t size = line.find("Size: ");
  if (size != std::string_view::npos && begins_line(line, size)) {
    const auto bytes = size_behind(line, "Size: ");
    if (!bytes || list_->all.size() >= kMostBuffers) return bytes.has_value();
    list_->all.emplace_back().bytes = *bytes;
    return true;
  }
  if (list_->all.empty()) return false;
  Holding& holding = list_->all.back();
  if (const auto rest = behind(line, "Operator: ")) {
    std::string_view name = attribute(*rest, "op_name=");
    if (name.empty()) name = attribute(*rest, "op_type=");
    holding.by = operation(name);
    const std::string_view file = attribute(*rest, "source_file=");
    if (!file.empty())
      holding.by += fmt::format(" ({}:{})", file_name(file), attribute(*rest, "source_line=").substr(0, 8));
    return true;
  }
  for (const std::string_view key : {"Entry Parameter Subshape: ", "Shape: "})
    if (const auto rest = behind(line, key)) {
      holding.shape = rest->substr(0, std::min(rest->find_first_of("{ "), kNameBytes));
      if (holding.by.empty() && key.starts_with("Entry")) holding.by = "an argument";
      return true;
    }
  if (const auto padding = size_behind(line, "Extra memory due to padding: ")) {
    holding.padding_bytes = *padding;
    return true;
  }
  for (const std::string_view key : {"XLA Label: ", "XLA label: "})
    if (const auto rest = behind(line, key)) {
      if (holding.by.empty()) holding.by = operation(rest->substr(0, rest->find_first_of(" =")));
      return true;
    }
  return line.find("==========") != std::string_view::npos;
}

/// "  250.78MiB from network/conv2d_5/Conv2D"
bool TableReader::take_tensor_line(std::string_view line) {
  line = trimmed(line);
  std::size_t at = 0;
  const auto bytes = read_size(line, at);
  const auto name = behind(line.substr(std::min(at, line.size())), "from ");
  if (!bytes || !name || name->empty()) return false;
  const std::string by(name->substr(0, kNameBytes));
  if (const auto known = list_->positions.find(by); known != list_->positions.end()) {
    list_->all[known->second].bytes += *bytes;
    ++list_->all[known->second].count;
  } else if (list_->all.size() < kMostKinds) {
    list_->positions.emplace(by, list_->all.size());
    list_->all.emplace_back();
    list_->all.back().bytes = *bytes;
    list_->all.back().by = by;
  }
  return true;
}

/// "Model: 139.55 / 110.70": what a step took, by what was free before and after it; the unit is the title's, or its
/// own.
bool TableReader::take_step_line(std::string_view line) {
  const std::size_t colon = line.rfind(": ");
  if (colon == std::string_view::npos || colon == 0) return false;
  const std::string_view rest = line.substr(colon + 2);
  std::size_t at = 0, plain = 0;
  const auto before = read_size(rest, at);
  const bool has_unit = before && read_number(rest, plain) && at > plain;
  at = std::min(rest.find_first_not_of(" /", at), rest.size());
  for (const std::string_view mark : {"->", "\xe2\x86\x92"})
    if (rest.substr(at).starts_with(mark)) at = std::min(rest.find_first_not_of(' ', at + mark.size()), rest.size());
  const auto after = read_size(rest, at);
  if (!before || !after || !trimmed(rest.substr(at)).empty()) return false;
  const double bytes = (*before - *after) * (has_unit ? 1 : list_->unit_bytes);
  if (bytes <= 0 || list_->all.size() >= kMostBuffers) return true;
  Holding& holding = list_->all.emplace_back();
  holding.bytes = bytes;
  holding.by = line.substr(0, std::min(colon, kNameBytes));
  return true;
}

void TableReader::end_dump() {
  if (!dump_ || tables_.size() >= kMostTables) return dump_.reset();
  const BfcDump& dump = *dump_;
  Message& table = tables_.emplace_back();
  table.wording = &kDump;
  table.line = dump.line;
  table.last_line = dump.last_line;
  // Both cover all chunks, unless the text was truncated: the larger one is more complete. Bins are rounded.
  const bool by_bins = dump.used_bytes + dump.free_bytes >= 0.99 * (dump.listed_used_bytes + dump.listed_free_bytes);
  const double free = by_bins ? dump.free_bytes : dump.listed_free_bytes;
  const double used = by_bins ? dump.used_bytes : dump.listed_used_bytes;
  const std::uint64_t pieces = by_bins ? dump.free_chunks : dump.listed_free_chunks;
  const bool is_whole = dump.lists_chunks && dump.listed_free_bytes >= free * 0.99;
  if (used > 0) {
    table.figures.set(Figure::allocated, used);
    table.figures.set(Figure::unallocated, free);
    table.figures.set(Figure::reserved, used + free);
    table.figures.set(Figure::pieces, static_cast<double>(pieces));
    if (free <= 0)
      table.figures.set(Figure::piece, 0);
    else if (is_whole)
      table.figures.set(Figure::piece, dump.largest_listed_bytes);
    else if (dump.bin_piece_bytes && *dump.bin_piece_bytes <= free * 1.01)
      table.figures.set(Figure::piece, *dump.bin_piece_bytes);
  }
  std::vector<Holding> all;
  for (const auto& [name, holding] : dump.ops) all.push_back(holding);
  if (all.empty())
    for (const auto& [bytes, count] : dump.sizes) {
      Holding& holding = all.emplace_back();
      holding.bytes = bytes * static_cast<double>(count);
      holding.count = count;
    }
  table.largest = largest_of(std::move(all), kDump);
  dump_.reset();
}

void TableReader::end_list() {
  if (list_ && !list_->all.empty() && tables_.size() < kMostTables) {
    Message& table = tables_.emplace_back();
    table.wording = list_->wording;
    table.line = list_->line;
    table.last_line = list_->last_line;
    table.largest = largest_of(std::move(list_->all), *list_->wording);
  }
  list_.reset();
}

void TableReader::end_smi() {
  if (tables_.size() < kMostTables) smi_.end(tables_);
}

std::string holding_words(const Holding& holding) {
  std::string out = printable(holding.shape);
  if (holding.count > 1)
    out += fmt::format("{}in {} pieces{}", out.empty() ? "" : " ", holding.count,
                       holding.by.empty() && holding.shape.empty()
                           ? fmt::format(" of {}", size_words(holding.bytes / static_cast<double>(holding.count)))
                           : "");
  else if (holding.by.empty() && holding.shape.empty())
    out = "in one piece";
  if (!holding.by.empty()) out += fmt::format("{}of {}", out.empty() ? "" : " ", printable(holding.by));
  if (holding.padding_bytes > 0) out += fmt::format(", {} of it padding", size_words(holding.padding_bytes));
  return out;
}

std::string_view table_words(std::string_view table) {
  if (table == kDump.name) return "the allocator's chunks";
  if (table == kSteps.name) return "created before it";
  if (table == kTensors.name) return "TensorFlow's tensors";
  return "XLA's arrays";
}

std::size_t table_count(const std::vector<Holding>& largest) {
  std::size_t count = 0;
  std::string_view last;
  for (const Holding& holding : largest)
    if (std::exchange(last, holding.table) != holding.table) ++count;
  return count;
}

std::string holdings_words(const std::vector<Holding>& largest) {
  constexpr std::size_t kMost = 3;
  const bool is_one = table_count(largest) < 2;
  const std::size_t most = is_one ? kMost : kMost - 1;
  std::string out;
  for_each_largest(largest, most, [&](const Holding& holding, bool begins_table) {
    if (!out.empty()) out += "; ";
    if (begins_table && holding.table == kSteps.name)
      out += "created before it: ";
    else if (begins_table)
      out += is_one ? "the largest: " : fmt::format("the largest of {}: ", table_words(holding.table));
    out += fmt::format("{} {}", size_words(holding.bytes), holding_words(holding));
  });
  return out;
}

}  // namespace vramtrack::explain
