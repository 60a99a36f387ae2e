#include "cli/arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/number_text.hpp"
#include "core/time.hpp"

namespace vramtrack::cli {

namespace {

/// Names of an option that people type besides the documented one, for every command that has the option.
struct OtherNames {
  std::string_view name;
  std::string_view shown;
  std::string_view silent;
};
constexpr OtherNames kOtherNames[] = {
    {"--output", "-o", ""}, {"--since", "", "--from"}, {"--until", "", "--to"}, {"--duration", "", "--seconds"}};

}  // namespace

std::vector<std::string> Argument::names() const {
  std::vector<std::string> all = also;
  all.push_back(name);
  return all;
}

Argument& Arguments::add(Argument argument) {
  for (const OtherNames& other : kOtherNames) {
    if (other.name != argument.name) continue;
    if (!other.shown.empty()) argument.also.emplace_back(other.shown);
    if (!other.silent.empty()) argument.silent.emplace_back(other.silent);
  }
  return all_.emplace_back(std::move(argument));
}

Argument& Arguments::flag(std::string name, std::string help, bool& into) {
  return flag(std::move(name), std::move(help), [&into] { into = true; });
}

Argument& Arguments::flag(std::string name, std::string help, std::function<void()> on) {
  return add({.name = std::move(name),
              .help = std::move(help),
              .takes = Takes::nothing,
              .set = [on = std::move(on)](const std::string&) { return on(), Status(); }});
}

Argument& Arguments::option(std::string name, std::string metavar, std::string help, SetWord set) {
  return add({std::move(name), std::move(metavar), std::move(help), Takes::one, std::move(set)});
}

Argument& Arguments::list(std::string name, std::string metavar, std::string help, SetWord set) {
  return add({std::move(name), std::move(metavar), std::move(help), Takes::list, std::move(set)});
}

Argument& Arguments::repeated(std::string name, std::string metavar, std::string help, SetWord set) {
  return add({std::move(name), std::move(metavar), std::move(help), Takes::repeated, std::move(set)});
}

Argument& Arguments::several(std::string name, std::string metavar, std::string help, SetWord set) {
  return add({std::move(name), std::move(metavar), std::move(help), Takes::several, std::move(set)});
}

Argument& Arguments::format(std::vector<std::string> known, std::string help, SetWord set) {
  const bool has_json = std::find(known.begin(), known.end(), "json") != known.end();
  Argument& option = this->option("--format", "NAME", std::move(help), one_of(known, set)).completes(std::move(known));
  if (has_json) flag("--json", "The same as --format json", [set = std::move(set)] { static_cast<void>(set("json")); });
  return option;
}

Argument& Arguments::json(std::string help, bool& into) {
  option("--format", "NAME", "Print as: text (default), json",
         one_of({"text", "json"}, [&into](const std::string& word) { return into = word == "json", Status(); }))
      .completes({"text", "json"});
  return flag("--json", std::move(help), into);
}

Argument& Arguments::output(std::string& into) {
  return option("--output", "FILE", "Write to this file instead of standard output",
                [&into](const std::string& word) { return into = word == "-" ? "" : word, Status(); })
      .file();
}

Argument& Arguments::operand(std::string name, std::string help, SetWord set) {
  return add({std::move(name), "", std::move(help), Takes::one, std::move(set)});
}

Argument& Arguments::operands(std::string name, std::string help, SetWord set) {
  return add({std::move(name), "", std::move(help), Takes::several, std::move(set)});
}

void Arguments::put_in_group(Group group, std::size_t first) {
  for (std::size_t i = first; i < all_.size(); ++i) all_[i].group = group;
}

SetWord text(std::string& into) {
  return [&into](const std::string& word) { return into = word, Status(); };
}

SetWord text(std::optional<std::string>& into) {
  return [&into](const std::string& word) { return into = word, Status(); };
}

SetWord text(std::vector<std::string>& into) {
  return [&into](const std::string& word) { return into.push_back(word), Status(); };
}

SetWord file_to_write(std::string& into) {
  return [&into](const std::string& word) -> Status {
    if (word == "-") return fail("this file cannot go to standard output: name a file (./- for a file named -)");
    into = word;
    return {};
  };
}

Result<double> typed_duration_s(std::string_view word) {
  if (!word.empty() && word.find_first_not_of("0123456789. ") == std::string_view::npos)
    return fail(fmt::format("'{0}' has no unit; write, for example, {0}s, {0}min or {0}h", word));
  return parse_duration_s(word);
}

SetWord duration(std::optional<double>& into_s) {
  return duration([&into_s](double seconds) { into_s = seconds; });
}

SetWord duration(std::function<void(double seconds)> into) {
  return [into = std::move(into)](const std::string& word) -> Status {
    const auto seconds = typed_duration_s(word);
    if (!seconds) return fail(seconds.error());
    if (*seconds <= 0) return fail("must be greater than zero, for example 1s");
    into(*seconds);
    return {};
  };
}

SetWord whole_number(std::function<void(std::uint64_t)> into, std::uint64_t min, std::uint64_t max) {
  return [into = std::move(into), min, max](const std::string& word) -> Status {
    const auto value = parse_number<std::uint64_t>(word);
    if (!value || *value < min || *value > max)
      return fail(max >= UINT32_MAX ? fmt::format("'{}' is not a whole number, {} or greater", word, min)
                                    : fmt::format("'{}' is not a whole number from {} to {}", word, min, max));
    into(*value);
    return {};
  };
}

SetWord number(double& into, double min, double max) {
  return [&into, min, max](const std::string& word) -> Status {
    const auto value = parse_number<double>(word);
    if (!value || !(*value >= min && *value <= max))
      return fail(fmt::format("'{}' is not a number from {} to {}", word, min, max));
    into = *value;
    return {};
  };
}

SetWord device_memory(std::function<void(std::uint64_t bytes)> into) {
  return [into = std::move(into)](const std::string& word) -> Status {
    const auto bytes = parse_bytes(word);
    if (!bytes) return fail(bytes.error());
    if (*bytes == 0) return fail("must be greater than zero, for example 24GiB");
    if (*bytes < (1U << 20U))
      return fail(fmt::format("{} bytes is too small for a GPU's memory; give a unit, for example 24GiB", *bytes));
    into(*bytes);
    return {};
  };
}

SetWord capacity(std::optional<std::uint64_t>& into_bytes) {
  return device_memory([&into_bytes](std::uint64_t bytes) { into_bytes = bytes; });
}

SetWord memory_limit(std::function<void(std::uint64_t bytes)> into) {
  return [into = std::move(into)](const std::string& word) -> Status {
    if (word != "0") return device_memory(into)(word);
    into(0);
    return {};
  };
}

SetWord one_of(std::vector<std::string> known, SetWord into) {
  return [known = std::move(known), into = std::move(into)](const std::string& word) -> Status {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
    for (const std::string& one : known)
      if (std::equal(one.begin(), one.end(), word.begin(), word.end(),
                     [&](char a, char b) { return lower(a) == lower(b); }))
        return into(one);
    return fail(fmt::format("'{}' is not one of: {}", word, joined(known)));
  };
}

SetWord one_of(std::vector<std::string> known, std::string& into) {
  return one_of(std::move(known), text(into));
}

std::string joined(const std::vector<std::string>& words, std::string_view separator) {
  return fmt::format("{}", fmt::join(words, separator));
}

}  // namespace vramtrack::cli
