// The declared fields (core/verdict_fields.hpp) as JSON, in two forms: exact, for clients that read it back, and
// rounded in flat lines, for programs and users.
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/json.hpp"
#include "core/verdict_fields.hpp"
#include "report/conclusion.hpp"
#include "report/scaled.hpp"
#include "report/view_json.hpp"

namespace vramtrack::fields {

using json = Json;

// --- exact -----------------------------------------------------------------------------------------------------

/// Times to the nanosecond, sizes and figures unchanged; a figure that is not finite becomes null.
inline json exact(double value) {
  return std::isfinite(value) ? json(value) : json(nullptr);
}
inline json exact(Timestamp time) {
  return exact_time(time);
}
template <class T>
requires(std::integral<T> || std::same_as<T, std::string> || std::same_as<T, std::vector<std::string>>) json
    exact(const T& value) {
  return value;
}
/// Null for an empty text, which is unknown.
inline json text_or_null(const std::string& text) {
  return text.empty() ? json(nullptr) : json(text);
}
template <class E>
requires std::is_enum_v<E> json exact(E value) {
  return to_string(value);
}
template <HasFields T>
json exact(const T& object);
template <HasFields T>
json exact(const std::vector<T>& objects) {
  json out = json::array();
  for (const T& object : objects) out.push_back(exact(object));
  return out;
}
template <class T>
json exact(const std::optional<T>& value) {
  return value ? exact(*value) : json(nullptr);
}
template <HasFields T>
json exact(const T& object) {
  json out = json::object();
  for_each_field<T>([&](const auto& field) { out[field.name] = exact(field.of(object)); });
  return out;
}

/// The fields of `objects` that belong in the line, each unrounded.
template <class... Objects>
json exact_line(std::uint8_t Positions::*line, const Objects&... objects) {
  json out = json::object();
  for_each_in_line(
      line, [&](const auto& field, const auto& object) { out[field.name] = exact(field.of(object)); }, objects...);
  return out;
}

// --- lines -----------------------------------------------------------------------------------------------------

/// Always finite, and rounded to six significant digits: enough for the meaning, and the same with every compiler.
inline double number(double value) {
  if (std::isnan(value)) return 0;
  if (std::isinf(value)) return std::copysign(std::numeric_limits<double>::max(), value);
  if (value == 0) return 0;
  const double magnitude = std::pow(10.0, 5 - std::floor(std::log10(std::abs(value))));
  const double rounded = std::round(value * magnitude) / magnitude;
  return std::isfinite(rounded) ? rounded : value;
}

/// Seconds to the millisecond.
inline double seconds(double value) {
  return std::isfinite(value) ? std::round(value * 1000) / 1000 : 0;
}

/// Turns times into the two forms of the contract.
struct LineClock {
  Timestamp start;
  bool relative = false;
  [[nodiscard]] json date(const std::optional<Timestamp>& t) const {
    return t && !relative ? json(iso8601(*t)) : json(nullptr);
  }
  [[nodiscard]] json offset_s(const std::optional<Timestamp>& t) const {
    return t ? json(seconds(seconds_between(start, *t))) : json(nullptr);
  }
};

template <class... Objects>
json line(std::uint8_t Positions::*positions, const LineClock& clock, const Objects&... objects);

/// Writes the values of one line, each under its name; a time under two names.
struct LineWriter {
  json& out;
  const LineClock& clock;

  static json value(double v, const FieldOptions& options) {
    if (options.unit == Unit::seconds) return seconds(v);
    return number(options.unit == Unit::ratio ? std::clamp(v, 0.0, 1.0) : v);
  }
  static json value(const Interval& i, const FieldOptions&) {
    return {{"low", number(i.low)}, {"mid", number(i.mid)}, {"high", number(i.high)}};
  }
  static json value(bool v, const FieldOptions&) { return v; }
  static json value(const std::vector<std::string>& v, const FieldOptions&) { return v; }
  static json value(const std::string& v, const FieldOptions& options) {
    return options.null_when_none && v.empty() ? json(nullptr) : json(v);
  }
  static json value(std::unsigned_integral auto v, const FieldOptions& options) {
    return options.null_when_none && v == 0 ? json(nullptr) : json(v);
  }
  template <class E>
  requires std::is_enum_v<E>
  static json value(E v, const FieldOptions& options) {
    return options.null_when_none && v == E{} ? json(nullptr) : json(to_string(v));
  }
  template <class T>
  static json value(const std::optional<T>& v, const FieldOptions& options) {
    return v ? value(*v, options) : json(nullptr);
  }

  template <class T>
  [[nodiscard]] json line_or_null(std::uint8_t Positions::*positions, const std::optional<T>& object) const {
    return object ? line(positions, clock, *object) : json(nullptr);
  }

  template <class Get, class Object>
  void operator()(const Field<Get>& field, const Object& object) const {
    using T = std::remove_cvref_t<decltype(field.of(object))>;
    const std::string name(field.name);
    if constexpr (std::same_as<T, Timestamp> || std::same_as<T, std::optional<Timestamp>>) {
      out[name] = clock.date(field.of(object));
      out[name + "_s"] = clock.offset_s(field.of(object));
    } else if constexpr (std::same_as<T, std::vector<Finding>>) {
      out[name] = json::array();
      for (const Finding& f : field.of(object)) out[name].push_back(line(&Positions::dissent, clock, f));
    } else if constexpr (std::same_as<T, std::optional<Suspect>>) {
      out[name] = line_or_null(&Positions::suspect, field.of(object));
    } else if constexpr (std::same_as<T, std::optional<End>>) {
      out[name] = line_or_null(&Positions::end, field.of(object));
    } else if constexpr (!std::same_as<T, Finding>) {  // a finding's fields are in the line directly
      out[name] = value(field.of(object), field.options);
    }
  }
};

/// The fields of `objects` that belong in the line.
template <class... Objects>
json line(std::uint8_t Positions::*positions, const LineClock& clock, const Objects&... objects) {
  json out = json::object();
  for_each_in_line(positions, LineWriter{out, clock}, objects...);
  return out;
}

/// The conclusion about the series: see report/conclusion.hpp.
inline json verdict_line(const Conclusion& conclusion, const LineClock& clock) {
  return line(&Positions::verdict, clock, conclusion.finding(), conclusion.verdict());
}
inline json run_line(const Run& run, const LineClock& clock) {
  return line(&Positions::run, clock, run);
}
inline json stall_line(const Stall& stall, const LineClock& clock) {
  return line(&Positions::stall, clock, stall);
}
inline json alert_line(const Alert& a, const LineClock& clock) {
  return line(&Positions::alert, clock, a.finding, a);
}

// --- scale -----------------------------------------------------------------------------------------------------

/// Multiplies every number in `value`.
inline void multiply(json& value, double by) {
  if (by == 1) return;
  if (value.is_number()) value = number(value.get<double>() * by);
  if (value.is_object())
    for (auto& [name, part] : value.items()) multiply(part, by);
}

/// `value` with each name and its figures converted by scaled_name(); elements of arrays without names stay unchanged.
/// A figure that is not in bytes is null under its name in bytes, so that readers of that name notice it.
inline json in_scale(const json& value, const Scale& scale) {
  if (value.is_array()) {
    json out = json::array();
    for (const json& part : value) out.push_back(in_scale(part, scale));
    return out;
  }
  if (!value.is_object()) return value;
  json out = json::object();
  for (const auto& [key, part] : value.items()) {
    const ScaledName scaled = scaled_name(key, scale);
    json& its = out[scaled.name] = in_scale(part, scale);
    multiply(its, scaled.factor);
    if (!scaled.null_name.empty()) out[scaled.null_name] = nullptr;
  }
  return out;
}

/// A complete line of output: in `scale`, and with its unit of counting, if it counts steps.
inline json line_in_scale(json row, const Scale& scale) {
  if (!scale.counts_steps() && scale.counts_bytes()) return row;
  if (scale.counts_steps()) row["counts"] = scale.step;
  return in_scale(row, scale);
}

}  // namespace vramtrack::fields
