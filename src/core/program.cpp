#include "core/program.hpp"

#include <algorithm>
#include <array>

#include "core/ascii.hpp"
#include "core/printable.hpp"

namespace vramtrack {
namespace {

constexpr std::array<std::string_view, 4> kOutcomes = {"settled", "rising", "leaked", "out_of_memory"};

/// Parts of an option's name that mark a value which changes from run to run and does not affect what the program does.
constexpr auto kIncidental = std::to_array<std::string_view>(
    {"port", "rank", "seed",      "output",  "out",    "outdir",   "log",    "logdir",   "logging", "name",   "id",
     "pid",  "host", "addr",      "address", "url",    "endpoint", "master", "node",     "gpu",     "device", "run",
     "tag",  "time", "timestamp", "date",    "socket", "token",    "key",    "password", "fd"});
/// Parts that make the value matter nevertheless: "--model-name".
constexpr auto kEssential =
    std::to_array<std::string_view>({"model", "dataset", "data", "config", "size", "num", "batch"});

/// "32", "-1", "0.001", "1e-4": a number and nothing else.
bool is_decimal(std::string_view word) {
  std::size_t at = 0;
  bool digits = false;
  if (at < word.size() && (word[at] == '-' || word[at] == '+')) ++at;
  for (; at < word.size(); ++at) {
    if (is_digit(word[at])) {
      digits = true;
      continue;
    }
    const bool exponent = digits && (word[at] == 'e' || word[at] == 'E');
    const bool sign = (word[at] == '-' || word[at] == '+') && (word[at - 1] == 'e' || word[at - 1] == 'E');
    if (word[at] != '.' && !exponent && !sign) return false;
  }
  return digits;
}

/// "--master-port", "master_port", "MASTER_PORT": one of its parts is incidental, and none is essential.
bool is_incidental(std::string_view option) {
  bool incidental = false;
  bool essential = false;
  std::string part;
  const auto take = [&] {
    const auto is_in = [&](const auto& words) { return std::find(words.begin(), words.end(), part) != words.end(); };
    incidental |= is_in(kIncidental);
    essential |= is_in(kEssential);
    part.clear();
  };
  for (const char c : option) {
    if (is_ascii_letter(c))
      part += lower(c);
    else
      take();
  }
  take();
  return incidental && !essential;
}

/// The word after a flag may be what is run, instead of the flag's value.
bool is_script(std::string_view word) {
  return word.ends_with(".py") || word.ends_with(".sh");
}

bool is_temporary(std::string_view path) {
  return path.starts_with("/tmp/") || path.starts_with("/var/tmp/") || path.starts_with("/dev/shm/") ||
         path.starts_with("/run/user/") || path.starts_with("/scratch/");
}

/// The length of the hexadecimal number at `at` if it is long enough to be an id: digits and letters, eight or more
/// characters; the dashes of a UUID belong to it. 0 if there is none.
std::size_t id_length(std::string_view word, std::size_t at) {
  if (at > 0 && (is_ascii_letter(word[at - 1]) || is_digit(word[at - 1]))) return 0;
  std::size_t end = at;
  std::size_t digits = 0;
  std::size_t hex = 0;
  for (; end < word.size() && (is_hex_digit(word[end]) || (word[end] == '-' && hex >= 8)); ++end) {
    digits += is_digit(word[end]) ? 1U : 0U;
    hex += is_hex_digit(word[end]) ? 1U : 0U;
  }
  while (end > at && word[end - 1] == '-') --end;
  if (end < word.size() && is_ascii_letter(word[end])) return 0;
  return hex >= 8 && digits > 0 ? end - at : 0;
}

/// Each run of digits, together with the characters that join them in dates and times, becomes one '#'.
std::string without_digits(std::string_view word) {
  std::string out;
  for (std::size_t at = 0; at < word.size();) {
    if (const std::size_t id = id_length(word, at); id > 0) {
      at += id;
    } else if (is_digit(word[at])) {
      const auto joins = [&](std::size_t i) {
        return i + 1 < word.size() &&
               (word[i] == '-' || word[i] == ':' || word[i] == '_' || word[i] == 'T' || word[i] == '.') &&
               is_digit(word[i + 1]);
      };
      while (at < word.size() && (is_digit(word[at]) || joins(at))) ++at;
    } else {
      out += word[at++];
      continue;
    }
    out += '#';
  }
  return out;
}

std::string normalised_value(std::string_view value) {
  if (is_decimal(value)) return std::string(value);
  if (is_temporary(value)) return "/tmp/#";
  return without_digits(value);
}

std::vector<std::string_view> words_of(std::string_view command) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at < command.size();) {
    const std::size_t begin = command.find_first_not_of(' ', at);
    if (begin == std::string_view::npos) break;
    const std::size_t end = std::min(command.find(' ', begin), command.size());
    words.push_back(command.substr(begin, end - begin));
    at = end;
  }
  return words;
}

bool is_interpreter(std::string_view name) {
  return name.starts_with("python") || name == "bash" || name == "sh" || name == "torchrun" || name == "accelerate" ||
         name == "deepspeed" || name == "julia" || name == "perl" || name == "ruby" || name == "node" || name == "java";
}

/// The executable's name and, for an interpreter, the name of what it runs.
std::string display_name(std::string_view command, std::string_view comm) {
  const std::vector<std::string_view> words = words_of(command);
  if (words.empty()) return printable(without_digits(comm));
  const std::string_view executable = base_name(words.front());
  // A server may write anything into its title.
  std::string name = without_digits(executable.substr(0, executable.find(':')));
  if (executable.starts_with("python")) name = "python";
  if (is_interpreter(executable)) {
    for (std::size_t i = 1; i < words.size(); ++i) {
      if (words[i] == "-m" && i + 1 < words.size()) {
        name += " -m " + without_digits(words[i + 1]);
        break;
      }
      if (words[i] == "-c") break;  // code, which may contain anything
      const bool names_script = words[i].front() != '-' && (words[i].find('.') != std::string_view::npos ||
                                                            words[i].find('/') != std::string_view::npos);
      if (names_script && words[i].find('=') == std::string_view::npos) {
        name += ' ' + without_digits(base_name(words[i]));
        break;
      }
    }
  }
  constexpr std::size_t kMostName = 80;
  return printable(name.substr(0, kMostName));
}

}  // namespace

std::string_view to_string(RunOutcome outcome) {
  return kOutcomes[static_cast<std::size_t>(outcome)];
}

std::string normalised_command(std::string_view command) {
  std::string out;
  bool value_is_incidental = false;
  for (const std::string_view word : words_of(command)) {
    if (!out.empty()) out += ' ';
    const bool is_option = word.front() == '-' && !is_decimal(word);
    const std::size_t equals = word.find('=');
    if (equals != std::string_view::npos && equals > 0) {
      const std::string_view name = word.substr(0, equals);
      out += without_digits(name) + '=';
      out += is_incidental(name) ? "#" : normalised_value(word.substr(equals + 1));
      value_is_incidental = false;
    } else if (is_option) {
      out += without_digits(word);
      value_is_incidental = is_incidental(word);
    } else {
      out += value_is_incidental && !is_script(word) ? "#" : normalised_value(word);
      value_is_incidental = false;
    }
  }
  return out;
}

ProgramIdentity program_identity(const ProcessInfo& process) {
  ProgramIdentity identity;
  const std::string& command = process.command.empty() ? process.name : process.command;
  if (command.empty()) return identity;
  identity.user = process.user;
  const std::vector<std::string_view> words = words_of(command);
  identity.is_bare = words.size() == 1 && is_interpreter(base_name(words.front()));
  identity.name = display_name(process.command, process.name);
  // A container's id and a job's number are new in each run; a name may be that of the image.
  const bool is_id = process.container.size() >= 12 && std::all_of(process.container.begin(), process.container.end(),
                                                                   [](char c) { return is_hex_digit(c); });
  identity.text = process.host + '\n' + process.user + '\n' +
                  (process.container.empty() ? ""
                   : is_id                   ? "container"
                                             : without_digits(process.container)) +
                  '\n' + (process.slurm_job.empty() ? "" : "slurm") + '\n' + normalised_command(command);
  // A new image, which has a new tag, is a new program. Job names count up ("sweep-17").
  if (!process.image.empty()) identity.text += '\n' + process.image;
  if (!process.job_name.empty()) identity.text += '\n' + without_digits(process.job_name);
  return identity;
}

}  // namespace vramtrack
