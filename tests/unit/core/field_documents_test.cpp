// Descriptions of the fields elsewhere (documents, the page's types, Python's classes) match core/verdict_fields.hpp.
// VRAMTRACK_UPDATE=1 rewrites them, between a line "fields: NAME" and a line "end".
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "core/verdict_fields.hpp"
#include "paths.hpp"

namespace vramtrack {
namespace {

using Lines = std::vector<std::string>;

template <class T>
struct Held {
  using type = T;
  static constexpr bool kOptional = false;
};
template <class T>
struct Held<std::optional<T>> {
  using type = T;
  static constexpr bool kOptional = true;
};
template <class Get, class Object>
using ValueOf = std::remove_cvref_t<decltype(std::declval<Field<Get>>().of(std::declval<Object&>()))>;

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return out;
}

template <class E>
std::string quoted_words(std::string_view between) {
  std::string out;
  for (const std::string_view word : words_of<E>()) out += fmt::format("{}\"{}\"", out.empty() ? "" : between, word);
  return out;
}

/// "State" if the enumeration has a name of its own in the page and in openapi.yaml.
template <class E>
constexpr std::string_view name_of() {
  if (std::same_as<E, State>) return "State";
  if (std::same_as<E, Pattern>) return "Pattern";
  return std::same_as<E, Severity> ? "Severity" : "";
}
template <HasFields T>
constexpr std::string_view name_of() {
  if (std::same_as<T, Interval>) return "Interval";
  if (std::same_as<T, Finding>) return "Finding";
  if (std::same_as<T, End>) return "End";
  if (std::same_as<T, Stall>) return "Stall";
  return std::same_as<T, Suspect> ? "Suspect" : "";
}

// --- the flat lines ----------------------------------------------------------------------------------------------

/// One row of docs/formats/analysis.md.
template <class T>
std::string row(std::string_view field, const FieldOptions& options, std::string_view meaning) {
  using Value = typename Held<T>::type;
  const std::string or_null = Held<T>::kOptional || options.null_when_none ? " or null" : "";
  std::string name = fmt::format("`{}`", field);
  std::string type;
  if constexpr (std::same_as<Value, Timestamp>) {
    name += fmt::format(", `{}_s`", field);
    type = Held<T>::kOptional ? "time and number, or null" : "time or null, number";
  } else if constexpr (std::same_as<Value, bool>) {
    type = "boolean";
  } else if constexpr (std::integral<Value>) {
    type = "integer" + or_null;
  } else if constexpr (std::same_as<Value, double>) {
    type = options.unit == Unit::ratio ? "number, 0 to 1" : "number" + or_null;
  } else if constexpr (std::same_as<Value, Interval>) {
    type = "interval" + or_null;
  } else if constexpr (std::same_as<Value, std::vector<std::string>>) {
    type = "array of text";
  } else if constexpr (std::same_as<Value, std::vector<Finding>>) {
    type = "array of objects";
  } else if constexpr (HasFields<Value>) {
    type = "object" + or_null;
  } else {
    type = "text" + or_null;
  }
  return fmt::format("| {} | {} | {} |", name, type, meaning);
}

template <class... Objects>
Lines markdown(std::uint8_t Positions::*line) {
  Lines out = {"| field | type | meaning |", "|---|---|---|"};
  for_each_in_line(
      line,
      [&]<class Get, class Object>(const Field<Get>& field, const Object&) {
        out.push_back(row<ValueOf<Get, const Object>>(field.name, field.options, field.meaning));
      },
      Objects{}...);
  return out;
}

template <class T>
std::string python_type(const FieldOptions& options) {
  using Value = typename Held<T>::type;
  std::string type = "str";
  if constexpr (std::same_as<Value, bool>)
    type = "bool";
  else if constexpr (std::integral<Value>)
    type = "int";
  else if constexpr (std::same_as<Value, double>)
    type = "float";
  else if constexpr (std::same_as<Value, std::vector<std::string>>)
    return "Tuple[str, ...]";
  else if constexpr (std::same_as<Value, std::vector<Finding>>)
    return "Tuple[Finding, ...]";
  else if constexpr (HasFields<Value>)
    type = name_of<Value>();
  return Held<T>::kOptional || options.null_when_none ? "Optional[" + type + "]" : type;
}

/// Attributes of a class in python/vramtrack/verdict.py. Those from the first sequence on have defaults.
template <class... Objects>
Lines python(std::uint8_t Positions::*line) {
  Lines out;
  bool defaults = false;
  for_each_in_line(
      line,
      [&]<class Get, class Object>(const Field<Get>& field, const Object&) {
        using T = ValueOf<Get, const Object>;
        if constexpr (std::same_as<typename Held<T>::type, Timestamp>) {
          out.push_back(fmt::format("{}: Optional[str]", field.name));
          out.push_back(fmt::format("{}_s: {}", field.name, Held<T>::kOptional ? "Optional[float]" : "float"));
        } else {
          const std::string type = python_type<T>(field.options);
          const bool sequence = type.rfind("Tuple", 0) == 0;
          defaults = defaults || sequence;
          const std::string_view name = field.options.attribute.empty() ? field.name : field.options.attribute;
          out.push_back(fmt::format("{}: {}{}", name, type, !defaults ? "" : sequence ? " = ()" : " = None"));
        }
      },
      Objects{}...);
  return out;
}

// --- the View ----------------------------------------------------------------------------------------------------

template <class T>
std::string typescript_type() {
  using Value = typename Held<T>::type;
  std::string type;
  if constexpr (std::same_as<Value, Timestamp>)
    type = "Time";
  else if constexpr (std::same_as<Value, bool>)
    type = "boolean";
  else if constexpr (std::is_arithmetic_v<Value>)
    type = "number";
  else if constexpr (std::same_as<Value, std::string>)
    type = "string";
  else if constexpr (std::same_as<Value, std::vector<std::string>>)
    type = "string[]";
  else if constexpr (std::same_as<Value, std::vector<Finding>>)
    type = "Finding[]";
  else if constexpr (name_of<Value>() != "")
    type = name_of<Value>();
  else
    type = quoted_words<Value>(" | ");
  return type + (Held<T>::kOptional ? " | null" : "");
}

template <class T>
Lines typescript() {
  Lines out;
  for_each_field<T>([&]<class Get>(const Field<Get>& field) {
    out.push_back(fmt::format("{}: {};", field.name, typescript_type<ValueOf<Get, const T>>()));
  });
  return out;
}

Lines typescript_words() {
  return {fmt::format("export type Severity = {};", quoted_words<Severity>(" | ")),
          fmt::format("export type State = {};", quoted_words<State>(" | ")),
          fmt::format("export type Pattern = {};", quoted_words<Pattern>(" | "))};
}

template <class T>
std::string openapi_schema(std::string_view description) {
  using Value = typename Held<T>::type;
  const auto reference = [](std::string_view name) { return fmt::format("$ref: \"#/components/schemas/{}\"", name); };
  const std::string nullable = Held<T>::kOptional ? ", nullable: true" : "";
  const std::string also = nullable + (description.empty() ? "" : ", description: \"" + escaped(description) + '"');
  if constexpr (std::same_as<Value, Timestamp>) {
    return "{type: string, format: date-time" + also + '}';
  } else if constexpr (std::same_as<Value, bool>) {
    return "{type: boolean" + also + '}';
  } else if constexpr (std::integral<Value>) {
    return "{type: integer" + also + '}';
  } else if constexpr (std::same_as<Value, double>) {
    return "{type: number" + also + '}';
  } else if constexpr (std::same_as<Value, std::string>) {
    return "{type: string" + also + '}';
  } else if constexpr (std::same_as<Value, std::vector<std::string>>) {
    return "{type: array, items: {type: string}" + also + '}';
  } else if constexpr (std::same_as<Value, std::vector<Finding>>) {
    return "{type: array, items: {" + reference("Finding") + '}' + also + '}';
  } else if constexpr (std::same_as<Value, Suspect>) {
    return '{' + reference("Suspect") + '}';  // that schema itself states that it may be null
  } else if constexpr (name_of<Value>() != "") {
    if (Held<T>::kOptional) return "{allOf: [{" + reference(name_of<Value>()) + "}]" + also + '}';
    return '{' + reference(name_of<Value>()) + '}';
  } else {
    return fmt::format("{{type: string, enum: [{}]{}}}", fmt::join(words_of<Value>(), ", "), also);
  }
}

template <class T>
Lines openapi() {
  Lines out;
  for_each_field<T>([&]<class Get>(const Field<Get>& field) {
    // A field that is null in a line is omitted here, because the words are for the line.
    out.push_back(fmt::format(
        "{}: {}", field.name,
        openapi_schema<ValueOf<Get, const T>>(field.options.null_when_none ? std::string_view() : field.meaning)));
  });
  return out;
}

Lines openapi_words() {
  return {fmt::format("Severity: {{type: string, enum: [{}]}}", fmt::join(words_of<Severity>(), ", ")),
          fmt::format("State: {{type: string, enum: [{}]}}", fmt::join(words_of<State>(), ", ")),
          fmt::format("Pattern: {{type: string, enum: [{}]}}", fmt::join(words_of<Pattern>(), ", "))};
}

// --- the files ---------------------------------------------------------------------------------------------------

struct Region {
  std::string file;
  std::string name;
  Lines lines;
};
std::ostream& operator<<(std::ostream& out, const Region& region) {
  return out << region.file << ", fields of " << region.name;
}

std::vector<Region> regions() {
  const std::string analysis = "docs/formats/analysis.md";
  const std::string api = "docs/openapi.yaml";
  const std::string page = "page/src/types.ts";
  const std::string python_file = "python/vramtrack/verdict.py";
  return {{analysis, "verdict", markdown<Finding, Verdict>(&Positions::verdict)},
          {analysis, "dissent", markdown<Finding>(&Positions::dissent)},
          {analysis, "suspect", markdown<Suspect>(&Positions::suspect)},
          {analysis, "end", markdown<End>(&Positions::end)},
          {analysis, "run", markdown<vramtrack::Run>(&Positions::run)},
          {analysis, "alert", markdown<Finding, Alert>(&Positions::alert)},
          {analysis, "stall", markdown<Stall>(&Positions::stall)},
          {api, "words", openapi_words()},
          {api, "Interval", openapi<Interval>()},
          {api, "Suspect", openapi<Suspect>()},
          {api, "End", openapi<End>()},
          {api, "Finding", openapi<Finding>()},
          {api, "Verdict", openapi<Verdict>()},
          {api, "Alert", openapi<Alert>()},
          {api, "Stall", openapi<Stall>()},
          {page, "words", typescript_words()},
          {page, "Interval", typescript<Interval>()},
          {page, "Suspect", typescript<Suspect>()},
          {page, "End", typescript<End>()},
          {page, "Finding", typescript<Finding>()},
          {page, "Verdict", typescript<Verdict>()},
          {page, "Alert", typescript<Alert>()},
          {page, "Stall", typescript<Stall>()},
          {python_file, "Suspect", python<Suspect>(&Positions::suspect)},
          {python_file, "End", python<End>(&Positions::end)},
          {python_file, "Run", python<vramtrack::Run>(&Positions::run)},
          {python_file, "Finding", python<Finding>(&Positions::dissent)},
          {python_file, "Alert", python<Finding, Alert>(&Positions::alert)},
          {python_file, "Verdict", python<Finding, Verdict>(&Positions::verdict)}};
}

class FieldDocuments : public ::testing::TestWithParam<Region> {};

TEST_P(FieldDocuments, SayWhatIsDeclared) {
  const Region& region = GetParam();
  const std::string path = source_dir() + '/' + region.file;
  std::stringstream buffer;
  buffer << std::ifstream(path).rdbuf();
  std::string text = buffer.str();
  const auto marker = text.find("fields: " + region.name + (region.file.ends_with(".md") ? " -->\n" : "\n"));
  ASSERT_NE(marker, std::string::npos) << region.file << ": the line \"fields: " << region.name << "\" is missing";
  const auto line = text.rfind('\n', marker) + 1;
  const std::string indent = text.substr(line, text.find_first_not_of(' ', line) - line);
  const auto begin = text.find('\n', marker) + 1;
  auto end = begin;  // end of the region: the start of the line that ends it
  const auto ends = [&](auto at) {
    const std::string rest = text.substr(at, text.find('\n', at) - at);
    return rest == indent + "# end" || rest == indent + "// end" || rest == "<!-- end -->";
  };
  while (end < text.size() && !ends(end)) end = text.find('\n', end) + 1;
  ASSERT_LT(end, text.size()) << region.file << ": no line ends the fields of " << region.name;
  std::string expected;
  for (const std::string& one : region.lines) expected += indent + one + '\n';
  if (std::getenv("VRAMTRACK_UPDATE") != nullptr)
    std::ofstream(path) << text.replace(begin, end - begin, expected);
  else
    EXPECT_EQ(text.substr(begin, end - begin), expected)
        << "mend " << region.file << ", fields of " << region.name
        << ", or src/core/verdict_fields.hpp; VRAMTRACK_UPDATE=1 core_test --gtest_filter='*FieldDocuments*' rewrites "
           "the first";
}

INSTANTIATE_TEST_SUITE_P(Files, FieldDocuments, ::testing::ValuesIn(regions()), [](const auto& region) {
  std::string name = region.param.file + '_' + region.param.name;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
});

// --- the declaration itself --------------------------------------------------------------------------------------

/// Fields in the line, and those that the walk over the positions finds: fewer if there is a gap, more if two share a
/// position.
template <class... Objects>
void expect_positions(std::uint8_t Positions::*line, std::string_view name) {
  std::size_t standing = 0;
  std::size_t highest = 0;
  const auto count = [&](const auto& field) {
    if (field.at.*line == 0) return;
    ++standing;
    highest = std::max<std::size_t>(highest, field.at.*line);
  };
  (for_each_field<Objects>(count), ...);
  std::size_t found = 0;
  for_each_in_line(
      line, [&](const auto&, const auto&) { ++found; }, Objects{}...);
  EXPECT_EQ(found, standing) << name << ": a place is left out";
  EXPECT_EQ(highest, standing) << name << ": two fields have the same place";
}

TEST(VerdictFields, PlacesOfALineAreCountedFromOneWithoutAGap) {
  expect_positions<Finding, Verdict>(&Positions::verdict, "verdict");
  expect_positions<Finding>(&Positions::dissent, "dissent");
  expect_positions<Suspect>(&Positions::suspect, "suspect");
  expect_positions<End>(&Positions::end, "end");
  expect_positions<vramtrack::Run>(&Positions::run, "run");
  expect_positions<Finding, Alert>(&Positions::alert, "alert");
  expect_positions<Stall>(&Positions::stall, "stall");
  expect_positions<Finding, Verdict>(&Positions::status, "status");
}

// A new member breaks the bindings here: declare it in core/verdict_fields.hpp, then name it here.
TEST(VerdictFields, EveryMemberIsDeclared) {
  const auto count = [](const auto& fields) { return std::tuple_size_v<std::remove_cvref_t<decltype(fields)>>; };
  [[maybe_unused]] const auto& [detector, leak, stage, state, pattern, spike, confidence, growth, r2, oom, onset,
                                oom_if_growing, because] = Finding{};
  EXPECT_EQ(count(kFields<Finding>), 13U);
  [[maybe_unused]] const auto& [pid, start_ticks, command, share] = Suspect{};
  EXPECT_EQ(count(kFields<Suspect>), 4U);
  [[maybe_unused]] const auto& [how, end_time, end_pid, end_ticks, end_command, used, grew, since, sure_then, r2_then,
                                while_loading] = End{};
  EXPECT_EQ(count(kFields<End>), 11U);
  [[maybe_unused]] const auto& [begin, run_end, peak, run_how, run_pid, run_grew, run_since, first_alert] =
      vramtrack::Run{};
  EXPECT_EQ(count(kFields<vramtrack::Run>), 8U + 1) << "lead_s is derived";
  [[maybe_unused]] const auto& [time, series, severity, finding, dissent, suspect, framework, causes, advice,
                                last_end] = Verdict{};
  EXPECT_EQ(count(kFields<Verdict>), 10U - 1) << "all but the series, which says whose verdict it is";
  [[maybe_unused]] const auto& [of, raised, cleared, ended, worst, found, suspected_for_s, end_reason, kind, end_kind,
                                paged_because, incident] = Alert{};
  EXPECT_EQ(count(kFields<Stall>), 8U + 1) << "and its old name of stalled_for_s";
  [[maybe_unused]] const auto& [judgement, cause, quiet_since, stalled_for_s, sure, held, what, evidence] = Stall{};
  EXPECT_EQ(count(kFields<Alert>), 12U - 1 + 2)
      << "all but the series; lead_s, and the old name of suspected_for_s, are derived";
}

// For one release, so that programs that read the old names keep working.
TEST(VerdictFields, OldNamesOfDurationsSayTheSame) {
  Alert alert;
  EXPECT_EQ(suspected_s(alert), std::nullopt);
  alert.suspected_for_s = 90;
  EXPECT_EQ(suspected_s(alert), 90);
  Stall stall;
  stall.stalled_for_s = 1800;
  EXPECT_EQ(stalled_s(stall), 1800);
}

TEST(VerdictFields, LeadIsFromTheRaiseToTheEnd) {
  Alert alert;
  alert.raised = Timestamp{std::chrono::seconds{100}};
  EXPECT_EQ(lead_s(alert), std::nullopt) << "it stands";
  alert.cleared = Timestamp{std::chrono::milliseconds{1580'250}};
  EXPECT_EQ(lead_s(alert), 1480.25);
}

}  // namespace
}  // namespace vramtrack
