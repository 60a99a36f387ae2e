#include "act/action.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "act/policy.hpp"
#include "core/format.hpp"
#include "core/registry.hpp"

namespace vramtrack::act {

#define VRAMTRACK_ACTION(name) extern const ActionInfo name##_action;
#include "act/actions.def"

namespace {

constexpr std::array kActions = {
#define VRAMTRACK_ACTION(name) &name##_action,
#include "act/actions.def"
};

template <class T>
T value_or(const std::map<std::string, ArgumentValue>& values, const std::string& name, T otherwise) {
  const auto at = values.find(name);
  if (at == values.end()) return otherwise;
  const T* value = std::get_if<T>(&at->second);
  return value != nullptr ? *value : otherwise;
}

std::string number_words(std::span<const Parameter> parameters, const std::string& name, double value) {
  const auto parameter =
      std::find_if(parameters.begin(), parameters.end(), [&](const Parameter& p) { return p.name == name; });
  const ParameterKind kind = parameter == parameters.end() ? ParameterKind::number : parameter->kind;
  if (kind == ParameterKind::signal) return signal_name(static_cast<int>(value));
  if (kind == ParameterKind::duration) return format_span(value);
  return kind == ParameterKind::size ? format_bytes(value) : fmt::format("{}", value);
}

}  // namespace

std::string StepArguments::text(const std::string& name, std::string otherwise) const {
  return value_or(values_, name, std::move(otherwise));
}

std::vector<std::string> StepArguments::words(const std::string& name) const {
  return value_or(values_, name, std::vector<std::string>{});
}

double StepArguments::number(const std::string& name, double otherwise) const {
  return value_or(values_, name, otherwise);
}

bool StepArguments::flag(const std::string& name, bool otherwise) const {
  return value_or(values_, name, otherwise);
}

std::string StepArguments::words_for_people(std::span<const Parameter> parameters) const {
  std::string out;
  for (const auto& [name, value] : values_) {
    if (!out.empty()) out += ", ";
    out += name + ' ';
    if (const auto* text = std::get_if<std::string>(&value)) out += *text;
    if (const auto* list = std::get_if<std::vector<std::string>>(&value))
      out += fmt::format("{}", fmt::join(*list, " "));
    if (const auto* number = std::get_if<double>(&value)) out += number_words(parameters, name, *number);
    if (const auto* flag = std::get_if<bool>(&value)) out += *flag ? "true" : "false";
  }
  return out;
}

std::span<const ActionInfo* const> actions() {
  return kActions;
}

const ActionInfo* find_action(std::string_view name) {
  return find_named(actions(), name);
}

}  // namespace vramtrack::act
