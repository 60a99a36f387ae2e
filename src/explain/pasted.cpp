#include "explain/pasted.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/format.hpp"
#include "core/printable.hpp"
#include "core/units.hpp"
#include "explain/cause.hpp"
#include "explain/explanation.hpp"
#include "explain/pattern.hpp"
#include "explain/processes.hpp"
#include "explain/smi_table.hpp"
#include "explain/words.hpp"

namespace vramtrack::explain {
namespace {

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.find_first_not_of(" \t") != std::string_view::npos) out.push_back(line);
    at = end + 1;
  }
  return out;
}

/// The parts of a line between bars, tabs or runs of two blanks.
std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> out;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t end = std::min({line.find('|', at), line.find('\t', at), line.find("  ", at), line.size()});
    if (const std::string_view cell = trimmed(line.substr(at, end - at)); !cell.empty()) out.push_back(cell);
    at = end + 1;
  }
  return out;
}

/// The size in a cell.
std::optional<double> size_of(std::string_view cell) {
  std::size_t at = 0;
  const auto bytes = read_size(cell, at);
  return bytes && at == cell.size() ? bytes : std::nullopt;
}

/// A single summary of PyTorch's allocator. Several are readings, which `analyze` reads.
Pasted memory_summary(const std::vector<std::string_view>& lines, const std::string& words) {
  constexpr std::string_view kTitle = "cuda memory summary, device id ";
  const std::size_t title = words.find(kTitle);
  if (title == std::string::npos || words.find(kTitle, title + 1) != std::string::npos) return {};
  std::optional<double> allocated, peak, reserved;
  for (const std::string_view line : lines) {
    const auto cells = cells_of(line);
    if (cells.size() < 3) continue;
    if (cells[0] == "Allocated memory" && !allocated) {
      allocated = size_of(cells[1]);
      peak = size_of(cells[2]);
    }
    if (cells[0] == "GPU reserved memory" && !reserved) reserved = size_of(cells[1]);
  }
  if (!allocated || !reserved) return {};
  std::size_t at = title + kTitle.size();
  const auto device = read_number(words, at);
  return {
      fmt::format("is one torch.cuda.memory_summary() of device {:.0f}: {} are allocated ({} at most) and {} reserved, "
                  "of which {} are cached",
                  device.value_or(0), size_words(*allocated), size_words(peak.value_or(*allocated)),
                  size_words(*reserved), size_words(std::max(0.0, *reserved - *allocated))),
      "one summary shows one moment. Print it at several steps, which vramtrack analyze reads, or write "
      "torch.cuda.memory._dump_snapshot(FILE), of which vramtrack snapshot summary shows the lines that hold it",
      false};
}

Pasted ollama(const std::vector<std::string_view>& lines, const std::string&) {
  if (lines.empty() || !lines[0].starts_with("NAME") || lines[0].find("PROCESSOR") == std::string_view::npos) return {};
  double all = 0;
  std::string models;
  bool is_shared = false;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const auto cells = cells_of(lines[i]);
    if (cells.size() < 4) continue;
    const auto size = size_of(cells[2]);
    if (!size) continue;
    all += *size;
    is_shared = is_shared || cells[3].find("CPU") != std::string_view::npos;
    if (i < 5)
      models += fmt::format("{}{} ({}, {})", models.empty() ? "" : ", ", cells[0], size_words(*size), cells[3]);
  }
  if (models.empty()) return {"is the list of `ollama ps`, and no model is loaded", "", false};
  return {
      fmt::format("is the list of `ollama ps`: models of {} are loaded: {}", size_words(all), models),
      fmt::format("{}vramtrack holders shows what each process holds, and vramtrack watch how it changes",
                  is_shared ? "a model with a share of CPU did not fit on the GPU: take a shorter context (num_ctx) or "
                              "a smaller quantization, or end the others (ollama stop MODEL); "
                            : "ollama stop MODEL frees one; "),
      false};
}

/// The task manager of Chrome and Edge, copied: with a column of GPU memory.
Pasted browser_tasks(const std::vector<std::string_view>& lines, const std::string&) {
  if (lines.empty()) return {};
  const auto titles = cells_of(lines[0]);
  const auto column = std::find_if(titles.begin(), titles.end(), [](auto each) { return lower(each) == "gpu memory"; });
  if (column == titles.end() || titles.size() < 3 || lower(titles[0]) != "task") return {};
  std::vector<std::pair<double, std::string_view>> tasks;
  double all = 0;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const auto cells = cells_of(lines[i]);
    if (cells.size() != titles.size()) continue;
    const auto size = size_of(cells[static_cast<std::size_t>(column - titles.begin())]);
    if (!size) continue;
    all += *size;
    tasks.emplace_back(*size, cells[0]);
  }
  std::stable_sort(tasks.begin(), tasks.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string most;
  for (std::size_t i = 0; i < tasks.size() && i < 3; ++i)
    most += fmt::format("{}{} ({})", i == 0 ? "" : ", ", tasks[i].second, size_words(tasks[i].first));
  return {
      fmt::format("is a browser's task manager: its tasks hold {} of GPU memory{}{}", size_words(all),
                  most.empty() ? "" : ", the most: ", most),
      "the GPU process holds what pages draw, and each tab its own textures: close the tab that holds most. vramtrack "
      "holders shows the browser beside other programs",
      false};
}

Pasted browser_page(const std::vector<std::string_view>&, const std::string& words) {
  if (!has_any(words, "graphics feature status") || !has_any(words, "driver information|gpu0")) return {};
  return {"is a browser's page about its GPU (chrome://gpu): features and drivers, and no use of memory",
          "the browser's task manager (Shift+Esc) has a column of GPU memory; vramtrack holders shows what the browser "
          "holds on the device",
          false};
}

/// "Before loading: 512 MiB", "After loading: 9216 MiB", "Difference: 8704 MiB"
Pasted before_and_after(const std::vector<std::string_view>& lines, const std::string&) {
  constexpr std::size_t kMostLines = 40;
  if (lines.size() > kMostLines) return {};
  std::optional<double> before, after;
  for (const std::string_view line : lines) {
    const std::string words = lower(line);
    std::optional<double>* const figure = has_any(words, "before")  ? &before
                                          : has_any(words, "after") ? &after
                                                                    : nullptr;
    if (figure == nullptr || *figure || !has_any(words, "mem|vram|gpu|alloc")) continue;
    for (std::size_t at = 0; at < words.size() && !*figure; ++at) {
      if (!is_digit(words[at]) || (at > 0 && is_part(words[at - 1]))) continue;
      std::size_t number_end = at;
      std::size_t end = at;
      if (read_number(words, number_end) && read_size(words, end) && end > number_end) {
        std::size_t from = at;
        *figure = read_size(words, from);
      }
      at = std::max(at, end - (end > at ? 1 : 0));
    }
  }
  if (!before || !after) return {};
  const std::string change = *after >= *before ? fmt::format("{} more", size_words(*after - *before))
                                               : fmt::format("{} less", size_words(*before - *after));
  return {fmt::format("shows {} before and {} after: {}", size_words(*before), size_words(*after), change),
          "two figures cannot tell a leak from what the program needs. Print it at each step, which vramtrack "
          "analyze reads, or run vramtrack watch beside the program",
          true};
}

/// A table of nvidia-smi or gpustat without a message.
Pasted device_table(const std::vector<std::string_view>& lines, const std::string&) {
  SmiTable table;
  std::uint64_t number = 0;
  for (const std::string_view line : lines) table.take(line, ++number);
  std::vector<Message> devices;
  table.end(devices);
  std::string words;
  bool is_nobodys = false;
  for (const Message& device : devices) {
    const auto used = device.figures.get(Figure::used);
    const auto total = device.figures.get(Figure::total);
    if (!used || !total) {
      words += fmt::format("{}{}", words.empty() ? "" : "; ", processes_words(device.others));
      is_nobodys = is_nobodys || std::any_of(device.others.begin(), device.others.end(),
                                             [](const OtherProcess& each) { return each.name == "without a name"; });
      continue;
    }
    const bool has_no_owner = device.others.empty() && *used > ordinary_outside_bytes(*total);
    is_nobodys = is_nobodys || has_no_owner;
    words += fmt::format("{}{} of {} are in use and {} free{}", words.empty() ? "" : "; ", size_words(*used),
                         size_words(*total), size_words(*total - *used),
                         has_no_owner            ? ", and no process is listed that holds them"
                         : device.others.empty() ? ""
                                                 : ", held by " + processes_words(device.others));
  }
  if (words.empty()) return {};
  return {"is a table of nvidia-smi: " + words,
          is_nobodys
              ? "a process of another container or user, or one that has ended and left it, holds the memory (where it "
                "has a pid and no name, its children may keep it: end them): look as root and outside the container "
                "(fuser -v /dev/nvidia*); a reset of the GPU by its administrator is the last means"
              : "vramtrack holders shows the same with what each process is, and vramtrack watch how it changes",
          true};
}

}  // namespace

Pasted pasted(std::string_view text) {
  if (text.size() >= kPastedBytes) return {};
  const auto lines = lines_of(text);
  const std::string words = lower(text);
  for (const auto read : {memory_summary, ollama, browser_tasks, browser_page, device_table, before_and_after})
    if (Pasted found = read(lines, words); !found.what.empty()) return found;
  return {};
}

}  // namespace vramtrack::explain
