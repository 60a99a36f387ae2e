// Reads [[policy]] tables. Every message names the file and the line.
#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "act/policy.hpp"
#include "core/settings.hpp"
#include "core/toml_depth.hpp"

namespace vramtrack::act {
namespace {

constexpr std::size_t kMostPolicies = 256;
constexpr std::size_t kMostSteps = 32;
constexpr double kLongest_s = 366 * 86400.0;

/// "ends_within" and "ends-within" are one key.
std::string key_of(std::string_view written) {
  std::string key(written);
  std::replace(key.begin(), key.end(), '_', '-');
  return key;
}

/// Collects the content of one file; the first error is kept.
class Reader {
 public:
  explicit Reader(std::string_view file) : file_(file) {}

  Result<Policies> read(const toml::array& tables) {
    Policies policies;
    policies.file = file_;
    if (tables.size() > kMostPolicies) return fail(fmt::format("{}: more than {} policies", file_, kMostPolicies));
    for (const toml::node& node : tables) {
      const toml::table* table = node.as_table();
      if (table == nullptr) continue;  // an array of tables has no other elements
      Policy policy = read_policy(*table);
      for (const Policy& other : policies.rules)
        if (other.name == policy.name)
          wrong(policy.line, fmt::format("the policy on line {} is also named '{}'; give each policy its own name",
                                         other.line, policy.name));
      policies.rules.push_back(std::move(policy));
      if (!error_.empty()) return fail(error_);
    }
    return policies;
  }

 private:
  void wrong(std::uint32_t line, const std::string& message) {
    if (error_.empty()) error_ = fmt::format("{}:{}: {}", file_, line, message);
  }
  static std::uint32_t line_of(const toml::node& node) { return node.source().begin.line; }

  void unknown(std::uint32_t line, std::string_view where, std::string_view key,
               const std::vector<std::string_view>& known) {
    wrong(line, fmt::format("unknown key '{}' {}; {}", key, where, near_words(key, known)));
  }

  std::string text(const toml::node& node, std::string_view key) {
    if (const auto* s = node.as_string()) return s->get();
    wrong(line_of(node), fmt::format("'{}' must be a string in quotes", key));
    return {};
  }

  /// One string, or an array of them.
  std::vector<std::string> texts(const toml::node& node, std::string_view key) {
    std::vector<std::string> out;
    if (const auto* s = node.as_string()) return {s->get()};
    const toml::array* array = node.as_array();
    if (array != nullptr)
      for (const toml::node& element : *array)
        if (const auto* s = element.as_string()) out.push_back(s->get());
    if (array == nullptr || out.size() != array->size() || out.empty())
      wrong(line_of(node), fmt::format("'{}' must be a string or an array of at least one string", key));
    return out;
  }

  std::optional<double> seconds(const toml::node& node, std::string_view key) {
    std::optional<double> value;
    if (const auto* i = node.as_integer()) value = static_cast<double>(i->get());
    if (const auto* d = node.as_floating_point()) value = d->get();
    if (const auto* s = node.as_string())
      if (const auto parsed = parse_duration_s(s->get())) value = *parsed;
    if (value && std::isfinite(*value) && *value >= 0 && *value <= kLongest_s) return value;
    wrong(line_of(node), fmt::format("'{}' must be a duration such as \"90s\" or \"10min\", at most 366 days", key));
    return std::nullopt;
  }

  std::optional<double> number(const toml::node& node, std::string_view key, double min, double max) {
    std::optional<double> value;
    if (const auto* i = node.as_integer()) value = static_cast<double>(i->get());
    if (const auto* d = node.as_floating_point()) value = d->get();
    if (value && std::isfinite(*value) && *value >= min && *value <= max) return value;
    wrong(line_of(node), fmt::format("'{}' must be a number from {} to {}", key, min, max));
    return std::nullopt;
  }

  std::optional<double> bytes(const toml::node& node, std::string_view key) {
    if (const auto* i = node.as_integer(); i != nullptr && i->get() >= 0) return static_cast<double>(i->get());
    if (const auto* s = node.as_string())
      if (const auto parsed = parse_bytes(s->get())) return static_cast<double>(*parsed);
    wrong(line_of(node), fmt::format("'{}' must be a size such as \"20GiB\"", key));
    return std::nullopt;
  }

  /// "10MiB/min"; bytes per second.
  std::optional<double> rate(const toml::node& node, std::string_view key) {
    const std::string written = node.is_string() ? text(node, key) : std::string();
    const std::size_t slash = written.find('/');
    constexpr std::array units = {std::pair{"s", 1.0}, std::pair{"min", 60.0}, std::pair{"h", 3600.0},
                                  std::pair{"d", 86400.0}};
    if (slash != std::string::npos)
      for (const auto& [unit, unit_s] : units)
        if (written.substr(slash + 1) == unit)
          if (const auto parsed = parse_bytes(written.substr(0, slash))) return static_cast<double>(*parsed) / unit_s;
    wrong(line_of(node),
          fmt::format("'{}' must be a rate such as \"10MiB/min\"; the units of time are s, min, h and d", key));
    return std::nullopt;
  }

  std::optional<Expression> expression(const std::string& pattern, std::string_view key, std::uint32_t line) {
    auto compiled = Regex::compile(pattern);
    if (compiled) return Expression{pattern, std::move(*compiled)};
    wrong(line, fmt::format("'{}': {}; escape special characters with a backslash", key, compiled.error().message));
    return std::nullopt;
  }

  std::vector<Expression> expressions(const toml::node& node, std::string_view key) {
    std::vector<Expression> out;
    for (const std::string& pattern : texts(node, key))
      if (auto made = expression(pattern, key, line_of(node))) out.push_back(std::move(*made));
    return out;
  }

  template <class E>
  std::optional<E> word(const std::string& written, std::string_view key, std::uint32_t line,
                        std::span<const std::string_view> known, std::size_t first = 0) {
    for (std::size_t i = first; i < known.size(); ++i)
      if (known[i] == key_of(written) || known[i] == written) return static_cast<E>(i);
    wrong(line, fmt::format("'{}' cannot be '{}'; {}", key, written, near_words(written, known.subspan(first))));
    return std::nullopt;
  }

  Policy read_policy(const toml::table& table) {
    Policy policy;
    policy.line = line_of(table);
    const toml::node* when = nullptr;
    const toml::node* steps = nullptr;
    for (const auto& entry : table) {
      const std::string key = key_of(entry.first.str());
      const toml::node& node = entry.second;
      if (key == "name")
        policy.name = text(node, key);
      else if (key == "when")
        when = &node;
      else if (key == "steps")
        steps = &node;
      else if (key == "allow")
        read_list(node, key, policy.allow_users, policy.allow_commands);
      else if (key == "deny")
        read_list(node, key, policy.deny_users, policy.deny_commands);
      else
        unknown(entry.first.source().begin.line, "in [[policy]]", key, {"name", "when", "allow", "deny", "steps"});
    }
    if (policy.name.find_first_not_of(" \t\r\n") == std::string::npos)
      wrong(policy.line, "a policy needs a name: write name = \"...\"");
    if (when != nullptr) read_when(*when, policy.when);
    if (steps == nullptr)
      wrong(policy.line, "a policy needs steps: write steps = [{ do = \"notify\" }]");
    else
      read_steps(*steps, policy);
    if (error_.empty()) policy.text = explain(policy);
    return policy;
  }

  void read_list(const toml::node& node, const std::string& name, std::vector<std::string>& users,
                 std::vector<Expression>& commands) {
    const toml::table* table = node.as_table();
    if (table == nullptr)
      return wrong(line_of(node),
                   fmt::format("'{0}' must be a table: {0} = {{ users = [...], commands = [...] }}", name));
    for (const auto& entry : *table) {
      const std::string key = key_of(entry.first.str());
      if (key == "users")
        users = texts(entry.second, key);
      else if (key == "commands")
        commands = expressions(entry.second, key);
      else
        unknown(entry.first.source().begin.line, "in '" + name + "'", key, {"users", "commands"});
    }
  }

  void read_when(const toml::node& node, Conditions& when) {
    const toml::table* table = node.as_table();
    if (table == nullptr) return wrong(line_of(node), "'when' must be a table: when = { kind = \"leak\" }");
    for (const auto& entry : *table)
      read_condition(key_of(entry.first.str()), entry.first.source().begin.line, entry.second, when);
  }

  void read_condition(const std::string& key, std::uint32_t line, const toml::node& node, Conditions& when) {
    if (key == "kind") {
      if (const auto kind = word<Trouble>(text(node, key), key, line, kTroubleWords)) when.trouble = *kind;
    } else if (key == "pattern") {
      for (const std::string& each : texts(node, key)) {
        std::string written = each;
        std::replace(written.begin(), written.end(), '-', '_');
        if (const auto pattern = word<Pattern>(written, key, line, words_of<Pattern>(), 1))
          when.patterns.push_back(*pattern);
      }
    } else if (key == "severity") {
      if (const auto severity = word<Severity>(text(node, key), key, line, words_of<Severity>(), 1))
        when.severity = *severity;
    } else if (key == "confidence") {
      when.confidence = number(node, key, 0, 1).value_or(0);
    } else if (key == "ends-within") {
      when.ends_within_s = seconds(node, key);
    } else if (key == "growth") {
      when.growth_bytes_per_s = rate(node, key);
    } else if (key == "held-for") {
      when.held_for_s = seconds(node, key);
    } else if (key == "user") {
      when.users = texts(node, key);
    } else if (key == "command") {
      when.commands = expressions(node, key);
    } else if (key == "container") {
      when.containers = expressions(node, key);
    } else if (key == "job") {
      when.jobs = expressions(node, key);
    } else if (key == "device") {
      if (const auto* index = node.as_integer())
        when.devices = {std::to_string(index->get())};
      else
        when.devices = texts(node, key);
    } else if (key == "labels") {
      const toml::table* labels = node.as_table();
      if (labels == nullptr) return wrong(line, "'labels' must be a table: labels = { framework = \"PyTorch\" }");
      for (const auto& entry : *labels) {
        const std::string name(entry.first.str());
        if (auto made = expression(text(entry.second, name), name, entry.first.source().begin.line))
          when.labels.emplace_back(name, std::move(*made));
      }
    } else {
      unknown(line, "in 'when'", key,
              {"kind", "pattern", "severity", "confidence", "ends-within", "growth", "held-for", "user", "command",
               "container", "job", "device", "labels"});
    }
  }

  void read_steps(const toml::node& node, Policy& policy) {
    const toml::array* array = node.as_array();
    if (array == nullptr || array->empty())
      return wrong(line_of(node), "'steps' must be an array of at least one step: steps = [{ do = \"notify\" }]");
    if (array->size() > kMostSteps)
      return wrong(line_of(node), fmt::format("a policy has more than {} steps; split it", kMostSteps));
    for (const toml::node& element : *array) {
      if (const toml::table* table = element.as_table())
        policy.steps.push_back(read_step(*table));
      else
        return wrong(line_of(element), "a step must be a table: { do = \"notify\" }");
    }
  }

  Step read_step(const toml::table& table) {
    Step step;
    step.line = line_of(table);
    const toml::node* named = table.get("do");
    std::vector<std::string_view> names;
    for (const ActionInfo* info : actions()) names.push_back(info->name);
    if (named == nullptr) {
      wrong(step.line,
            fmt::format("a step needs an action: write do = \"...\"; the actions are {}", fmt::join(names, ", ")));
      return step;
    }
    const std::string name = text(*named, "do");
    step.action = find_action(name);
    if (step.action == nullptr) {
      wrong(line_of(*named), fmt::format("unknown action '{}'; {}", name, near_words(name, names)));
      return step;
    }
    step.stops_on_failure = step.action->traits.stops_on_failure;
    for (const auto& entry : table) read_argument(entry.first, entry.second, step);
    for (const Parameter& parameter : step.action->parameters)
      if (parameter.is_required && !step.arguments.has(std::string(parameter.name)))
        wrong(step.line, fmt::format("'{}' needs '{}': {}", name, parameter.name, parameter.help));
    if (step.action->check != nullptr)
      if (const std::string missing = step.action->check(step.arguments); !missing.empty())
        wrong(step.line, fmt::format("'{}' {}", name, missing));
    return step;
  }

  void read_argument(const toml::key& written, const toml::node& node, Step& step) {
    const std::string key = key_of(written.str());
    if (key == "do") return;
    if (key == "after") return static_cast<void>(step.after_s = seconds(node, key).value_or(0));
    if (key == "usually-takes") return static_cast<void>(step.usually_takes_s = seconds(node, key));
    if (key == "on-failure") {
      constexpr std::array<std::string_view, 2> known = {"continue", "stop"};
      if (const auto chosen = word<int>(text(node, key), key, written.source().begin.line, known))
        step.stops_on_failure = *chosen == 1;
      return;
    }
    std::vector<std::string_view> names = {"do", "after", "usually-takes", "on-failure"};
    for (const Parameter& parameter : step.action->parameters) {
      names.push_back(parameter.name);
      if (parameter.name == key) return set_argument(parameter, node, step.arguments);
    }
    unknown(written.source().begin.line, fmt::format("of the step '{}'", step.action->name), key, names);
  }

  void set_argument(const Parameter& parameter, const toml::node& node, StepArguments& arguments) {
    const std::string name(parameter.name);
    const auto within = [&](std::optional<double> value) {
      if (!value) return;
      if (parameter.min < parameter.max && (*value < parameter.min || *value > parameter.max))
        return wrong(line_of(node), fmt::format("'{}' must be from {} to {}", name, parameter.min, parameter.max));
      arguments.set(name, *value);
    };
    switch (parameter.kind) {
      case ParameterKind::text:
        return arguments.set(name, text(node, name));
      case ParameterKind::words:
        return arguments.set(name, texts(node, name));
      case ParameterKind::duration:
        return within(seconds(node, name));
      case ParameterKind::number:
        return within(number(node, name, 0, 1e18));
      case ParameterKind::size:
        return within(bytes(node, name));
      case ParameterKind::flag:
        if (const auto* b = node.as_boolean()) return arguments.set(name, b->get());
        return wrong(line_of(node), fmt::format("'{}' must be true or false", name));
      case ParameterKind::signal:
        break;
    }
    std::optional<int> signal;
    if (const auto* i = node.as_integer()) signal = parse_signal(std::to_string(i->get()));
    if (const auto* s = node.as_string()) signal = parse_signal(s->get());
    if (signal) return arguments.set(name, static_cast<double>(*signal));
    wrong(line_of(node), fmt::format("'{}' must be a signal such as \"SIGUSR1\"", name));
  }

  std::string file_;
  std::string error_;
};

}  // namespace

Result<Policies> parse_policies(std::string_view toml, std::string_view file) {
  if (const Status bounded = check_key_depth(toml, file); !bounded) return fail(bounded.error());
  try {
    const toml::table table = toml::parse(toml);
    const toml::node* found = table.get("policy");
    if (found == nullptr) return Policies{std::string(file), {}};
    const toml::array* tables = found->as_array();
    if (tables == nullptr || !found->is_array_of_tables())
      return fail(fmt::format("{}:{}: policies are an array of tables; write [[policy]] before each", file,
                              found->source().begin.line));
    return Reader(file).read(*tables);
  } catch (const toml::parse_error& e) {
    return fail(
        fmt::format("{}:{}: not valid TOML: {}; correct this line", file, e.source().begin.line, e.description()));
  }
}

}  // namespace vramtrack::act
