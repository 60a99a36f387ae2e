#include "scenario.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "live.hpp"

namespace fake_nvml {
namespace {

#ifdef FAKE_NVML_FOR_FAKE_DRIVER
constexpr bool kBuiltForFakeDriver = true;
#else
constexpr bool kBuiltForFakeDriver = false;
#endif

[[noreturn]] void stop(const std::string& where, const std::string& what) {
  std::fprintf(stderr, "fake NVML: %s: %s\n", where.c_str(), what.c_str());
  std::abort();
}

/// One line, taken apart; knows where it stands for messages.
struct Line {
  std::string where, verb;
  std::vector<std::string> plain;
  std::map<std::string, std::string> values;

  std::string text(const std::string& key, const std::string& otherwise) const {
    const auto it = values.find(key);
    return it == values.end() ? otherwise : it->second;
  }
  std::uint64_t number(const std::string& key, std::uint64_t otherwise) const {
    const auto it = values.find(key);
    return it == values.end() ? otherwise : size(it->second);
  }
  std::uint64_t size(const std::string& text) const {
    if (text == "none") return kNone;
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (end == text.c_str()) stop(where, "not a number: " + text);
    double unit = 1;
    if (*end == 'K') unit = 1024.0;
    if (*end == 'M') unit = 1024.0 * 1024;
    if (*end == 'G') unit = 1024.0 * 1024 * 1024;
    if (unit != 1) ++end;
    if (*end != '\0') stop(where, "not a size: " + text);
    return static_cast<std::uint64_t>(value * unit);
  }
  Amount amount(const std::string& key, const char* otherwise = "0") const {
    std::string rest = text(key, otherwise);
    Amount result;
    const auto cut = [&rest](char mark) -> std::optional<std::string> {
      const std::size_t at = rest.find(mark);
      if (at == std::string::npos) return std::nullopt;
      std::string tail = rest.substr(at + 1);
      rest.resize(at);
      return tail;
    };
    if (const auto limit = cut('<')) result.limit = size(*limit);
    if (const auto period = cut('%')) result.period = size(*period);
    if (const auto growth = cut('+')) result.growth = size(*growth);
    result.values.clear();
    std::istringstream parts(rest);
    for (std::string part; std::getline(parts, part, ',');) result.values.push_back(size(part));
    if (result.values.empty()) stop(where, key + " is empty");
    return result;
  }
  Span span() const { return {number("from", 0), number("to", ~std::uint64_t{0})}; }
};

Line take_apart(const std::string& text, const std::string& where) {
  Line line;
  line.where = where;
  std::string word;
  bool quoted = false;
  std::vector<std::string> words;
  for (const char c : text + ' ') {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == '#' && !quoted) {
      break;
    } else if ((c == ' ' || c == '\t') && !quoted) {
      if (!word.empty()) words.push_back(word);
      word.clear();
    } else {
      word += c;
    }
  }
  if (!word.empty()) words.push_back(word);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    if (i == 0)
      line.verb = words[i];
    else if (equals == std::string::npos)
      line.plain.push_back(words[i]);
    else
      line.values[words[i].substr(0, equals)] = words[i].substr(equals + 1);
  }
  return line;
}

Device* gpu_of(const Scenario& scenario, const Line& line) {
  const std::uint64_t index = line.number("gpu", 0);
  if (index >= scenario.gpus.size()) stop(line.where, "no such gpu before this line");
  return scenario.gpus[index];
}

unsigned lists_of(const std::string& text) {
  unsigned lists = 0;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, '+');) lists |= part == "MPS" ? 4U : part == "G" ? 2U : 1U;
  return lists;
}

constexpr const char* kHealthKeys[] = {"temp",      "power",          "power_limit",     "clock",
                                       "fan",       "pcie_rx",        "throttle",        "ecc",
                                       "corrected", "uncorrected",    "corrected_total", "uncorrected_total",
                                       "remapped",  "repair_pending", "repair_failed",   "retire_pending"};

Device* read_device(const Line& line) {
  auto* device = new Device;
  device->uuid = line.text("uuid", "");
  device->name = line.text("name", "Fake GPU");
  device->pci = line.text("pci", "");
  if (line.values.count("live") != 0) device->live = static_cast<unsigned>(line.number("live", 0));
  device->total = line.amount("total", device->live ? "0" : "80G");
  if (device->live) describe_live(*device);
  device->holders = line.text("holders", "");
  device->reserved = line.number("reserved", 0);
  device->used = line.amount("used");
  if (line.values.count("util") != 0) device->gpu_percent = static_cast<unsigned>(line.number("util", 0));
  if (line.values.count("memutil") != 0) device->memory_percent = static_cast<unsigned>(line.number("memutil", 0));
  for (const char* key : kHealthKeys)
    if (line.values.count(key) != 0) device->health[key] = line.amount(key);
  return device;
}

void add(Scenario& scenario, const Line& line) {
  if (line.verb == "clock") {
    scenario.clock_from_environment = !line.plain.empty() && line.plain[0] == "env";
  } else if (line.verb == "gpu") {
    Device* gpu = read_device(line);
    gpu->index = static_cast<unsigned>(scenario.gpus.size());
    if (gpu->uuid.empty()) gpu->uuid = "GPU-" + std::to_string(gpu->index);
    scenario.gpus.push_back(gpu);
  } else if (line.verb == "mig") {
    Device* instance = read_device(line);
    instance->parent = gpu_of(scenario, line);
    instance->index = instance->parent->index;
    instance->pci = instance->parent->pci;
    instance->gpu_instance = static_cast<std::uint32_t>(line.number("gi", 0));
    instance->compute_instance = static_cast<std::uint32_t>(line.number("ci", 0));
    instance->parent->instances.push_back(instance);
  } else if (line.verb == "process") {
    Process process;
    const std::string pid = line.text("pid", "self");
    process.pid = pid == "self" ? static_cast<std::uint32_t>(getpid()) : static_cast<std::uint32_t>(line.size(pid));
    process.lists = lists_of(line.text("list", "C"));
    process.used = line.amount("used");
    if (line.values.count("sm") != 0) process.sm = line.amount("sm");
    process.span = line.span();
    if (line.values.count("gi") != 0) {
      process.gpu_instance = static_cast<std::uint32_t>(line.number("gi", 0));
      process.compute_instance = static_cast<std::uint32_t>(line.number("ci", 0));
    }
    gpu_of(scenario, line)->processes.push_back(process);
  } else if (line.verb == "limit") {
    gpu_of(scenario, line)->limits.push_back({line.text("cgroup", "/"), line.amount("hard"), line.amount("soft")});
  } else if (line.verb == "error") {
    Failure failure;
    failure.call = line.text("call", "any");
    if (line.values.count("gpu") != 0) failure.gpu = static_cast<unsigned>(line.number("gpu", 0));
    failure.code = static_cast<int>(line.number("code", 999));
    failure.span = line.span();
    scenario.failures.push_back(failure);
  } else if (line.verb == "xid") {
    scenario.xids.push_back(
        {static_cast<unsigned>(line.number("gpu", 0)), line.number("code", 0), line.number("at", 0)});
  } else if (line.verb == "note") {
    scenario.notes.push_back({line.text("file", ""), line.number("at", 0)});
  } else {
    stop(line.where, "expected clock, gpu, mig, process, limit, error, xid or note, found: " + line.verb);
  }
}

}  // namespace

std::uint64_t Amount::at(std::uint64_t tick) const {
  const std::uint64_t base = values[tick < values.size() ? tick : values.size() - 1];
  if (base == kNone) return kNone;
  const std::uint64_t value = base + growth * (period != 0 ? tick % period : tick);
  return value < limit ? value : limit;
}

Scenario read_scenario(const char* path) {
  if (path == nullptr) {
    if (!kBuiltForFakeDriver && std::getenv("VRAMTRACK_FAKE_GPU_STATE") == nullptr)
      stop("VRAMTRACK_FAKE_NVML", "names no scenario file");
    return live_machine();
  }
  std::ifstream file(path);
  if (!file) stop(path, "cannot be read");
  Scenario scenario;
  std::string text;
  for (int number = 1; std::getline(file, text); ++number) {
    const Line line = take_apart(text, std::string(path) + ":" + std::to_string(number));
    if (!line.verb.empty()) add(scenario, line);
  }
  return scenario;
}

}  // namespace fake_nvml
