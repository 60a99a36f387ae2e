#include "core/xid.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace vramtrack {
namespace {

constexpr XidInfo kXids[] = {
#define VRAMTRACK_XID(code, cause, severity, meaning, advice) \
  {code, XidCause::cause, XidSeverity::severity, meaning, advice},
#include "core/xid.def"
#undef VRAMTRACK_XID
};

static_assert(std::is_sorted(std::begin(kXids), std::end(kXids),
                             [](const XidInfo& a, const XidInfo& b) { return a.code <= b.code; }),
              "xid.def is in the order of the numbers, each once");

bool is_word_letter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '\'';
}

/// The last word of `text`, which is removed from it.
std::string_view last_word(std::string_view& text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '-')) text.remove_suffix(1);
  std::size_t begin = text.size();
  while (begin > 0 && is_word_letter(text[begin - 1])) --begin;
  const std::string_view word = text.substr(begin);
  text.remove_suffix(word.size());
  return word;
}

/// "non-", "non ", "not ", "not a ", "isn't ": whether the end of the text negates the next word.
bool ends_with_denial(std::string_view text) {
  std::string_view word = last_word(text);
  if (word == "a" || word == "be" || word == "considered") word = last_word(text);
  return word == "non" || word == "not" || word == "no" || word == "never" || word.ends_with("n't");
}

/// "=0", ": no": whether the beginning of the text negates the word before.
bool begins_with_denial(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  if (text.empty() || (text.front() != '=' && text.front() != ':')) return false;
  text.remove_prefix(1);
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  const auto end = std::find_if_not(text.begin(), text.end(), is_word_letter);
  const std::string_view word = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  return word == "0" || word == "no" || word == "false";
}

/// `line` without what it quotes of the process, which anybody may name freely: "pid=1, name=fatal, ".
std::string without_process_name(std::string_view line) {
  constexpr std::string_view kName = "name=";
  std::string out(line);
  const std::size_t at = out.find(kName);
  if (at == std::string::npos) return out;
  const std::size_t end = out.find(", ", at);
  return end == std::string::npos ? out : out.erase(at, end - at);
}

/// Whether `line` has the word and does not negate it; not a part of a name such as GPU_FATAL_TIMEOUT.
bool names_fatal(std::string_view line) {
  constexpr std::string_view kWord = "fatal";
  std::string low = without_process_name(line);
  std::transform(low.begin(), low.end(), low.begin(), [](unsigned char c) { return std::tolower(c); });
  const std::string_view all = low;
  for (std::size_t at = all.find(kWord); at != std::string_view::npos; at = all.find(kWord, at + 1)) {
    const std::string_view before = all.substr(0, at);
    const std::string_view after = all.substr(at + kWord.size());
    const bool is_word =
        (before.empty() || !is_word_letter(before.back())) && (after.empty() || !is_word_letter(after.front()));
    if (is_word && !ends_with_denial(before) && !begins_with_denial(after)) return true;
  }
  return false;
}

}  // namespace

std::span<const XidInfo> known_xids() {
  return kXids;
}

const XidInfo* find_xid(std::uint64_t code) {
  const auto* const at = std::lower_bound(std::begin(kXids), std::end(kXids), code,
                                          [](const XidInfo& info, std::uint64_t wanted) { return info.code < wanted; });
  return at != std::end(kXids) && at->code == code ? at : nullptr;
}

XidSeverity xid_severity(std::uint64_t code, std::string_view line) {
  const XidInfo* const info = find_xid(code);
  const bool is_programs = info != nullptr && info->cause == XidCause::application;
  if (!is_programs && names_fatal(line)) return XidSeverity::critical;
  return info != nullptr ? info->severity : XidSeverity::warning;
}

std::string_view xid_advice(std::uint64_t code) {
  const XidInfo* const info = find_xid(code);
  return info != nullptr ? info->advice
                         : "look it up in NVIDIA's list of XID errors (docs.nvidia.com/deploy/xid-errors)";
}

std::string describe_xid(std::uint64_t code) {
  if (const XidInfo* info = find_xid(code)) return fmt::format("XID {}: {}", code, info->meaning);
  return fmt::format("XID {}: see NVIDIA's list of XID errors", code);
}

}  // namespace vramtrack
