#include "health/kernel_log.hpp"

#include <algorithm>
#include <charconv>

#include "core/ascii.hpp"
#include "core/xid.hpp"
#include "host/small_file.hpp"

namespace vramtrack {
namespace {

constexpr std::size_t kLineBytes = 4096;
constexpr std::size_t kTextBytes = 256;
constexpr std::size_t kNameBytes = 64;
constexpr std::size_t kVersionBytes = 32;
constexpr std::size_t kMostEvents = 1024;
constexpr std::uint64_t kRecoveryChanged = 154;

template <class T>
std::optional<T> leading_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end == text.data()) return std::nullopt;
  return value;
}

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

/// The part of `text` after `mark`; nullopt if it is not there.
std::optional<std::string_view> after(std::string_view text, std::string_view mark) {
  const std::size_t at = text.find(mark);
  if (at == std::string_view::npos) return std::nullopt;
  return text.substr(at + mark.size());
}

/// "0000:65:00" at the beginning of `text`, in lower case; empty if something else is there. The domain may have up to
/// eight digits, of which only the last four are kept if the others are zero.
std::string pci_address_at(std::string_view text) {
  constexpr std::size_t kDomainDigits = 4;
  constexpr std::size_t kMostDomainDigits = 8;
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::string_view rest = text.substr(colon);  // ":65:00"
  const bool is_address = colon >= kDomainDigits && colon <= kMostDomainDigits &&
                          std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(colon), is_hex_digit) &&
                          rest.size() >= 6 && is_hex_digit(rest[1]) && is_hex_digit(rest[2]) && rest[3] == ':' &&
                          is_hex_digit(rest[4]) && is_hex_digit(rest[5]) &&
                          (rest.size() == 6 || !is_hex_digit(rest[6]));
  if (!is_address) return {};
  std::string out(text.substr(0, colon + 6));
  while (out.find(':') > kDomainDigits && out.front() == '0') out.erase(0, 1);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

/// The first address anywhere in `text`.
std::string pci_address_in(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i)
    if (is_hex_digit(text[i]) && (i == 0 || !is_hex_digit(text[i - 1])))
      if (std::string found = pci_address_at(text.substr(i)); !found.empty()) return found;
  return {};
}

/// "550.54.14" at the beginning of `text`, without a full stop after it.
std::string version_at(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && end < kVersionBytes && (is_digit(text[end]) || text[end] == '.' || text[end] == '-'))
    ++end;
  while (end > 0 && !is_digit(text[end - 1])) --end;
  return std::string(text.substr(0, end));
}

void trim_end(std::string_view& text) {
  text.remove_suffix(text.size() - (text.find_last_not_of(" \t") + 1));
}

/// Whether a kernel's line begins like this: with nothing, "<3>", "kern  :err   :" or "host kernel:". The first word of
/// a syslog line that ends with a colon names its writer; anything that a program adds after its own name is ignored.
bool is_kernels(std::string_view prefix) {
  if (prefix.empty() || prefix.starts_with("kern  :")) return true;
  if (prefix.size() == 3 && prefix.front() == '<' && prefix.back() == '>') return prefix[1] >= '0' && prefix[1] <= '7';
  return (prefix == "kernel:" || prefix.ends_with(" kernel:")) && prefix.find(": ") == std::string_view::npos;
}

/// Whether the text before a message is what a log puts there: nothing, blanks, "[ 12.345678] ", "host kernel: ",
/// "3,1234,5678,-;".
bool is_log_prefix(std::string_view prefix) {
  if (prefix.ends_with(';')) {
    prefix.remove_suffix(1);
    return !prefix.empty() && is_digit(prefix.front()) && prefix.find_first_of(" \t") == std::string_view::npos;
  }
  if (!prefix.empty() && prefix.back() != ' ' && prefix.back() != '\t') return false;  // no blank before the message
  trim_end(prefix);
  while (prefix.ends_with(']')) {  // the time, and the thread behind it: "[ 12.345678][ T1234]"
    const std::size_t open = prefix.rfind('[');
    if (open == std::string_view::npos) return false;
    prefix = prefix.substr(0, open);
    trim_end(prefix);
  }
  return is_kernels(prefix);
}

/// The seconds in the last "[ 4564.303882] " of `prefix`.
std::optional<double> stamp_of(std::string_view prefix) {
  for (std::size_t open = prefix.rfind('['); open != std::string_view::npos; open = prefix.rfind('[')) {
    std::string_view inside = prefix.substr(open + 1);
    inside.remove_prefix(std::min(inside.find_first_not_of(' '), inside.size()));
    const std::size_t point = inside.find('.');
    const auto seconds = leading_number<std::uint32_t>(inside);
    const auto micros = seconds && point != std::string_view::npos
                            ? leading_number<std::uint32_t>(inside.substr(point + 1))
                            : std::nullopt;
    if (micros && *micros < 1'000'000) return *seconds + *micros * 1e-6;
    prefix = prefix.substr(0, open);
  }
  return std::nullopt;
}

}  // namespace

void DriverLogReader::lines(std::string_view text) {
  while (!text.empty()) line(next_line(text));
}

void DriverLogReader::line(std::string_view line) {
  line = line.substr(0, kLineBytes);
  const std::size_t at = line.find("NVRM: ");
  if (at == std::string_view::npos || !is_log_prefix(line.substr(0, at))) return;
  message(line.substr(at), stamp_of(line.substr(0, at)));
}

void DriverLogReader::kmsg_record(std::string_view record, double oldest_s, double newest_s) {
  record = record.substr(0, kLineBytes);
  const std::size_t semicolon = record.find(';');
  if (semicolon == std::string_view::npos) return;
  const std::string_view header = record.substr(0, semicolon);
  const auto priority = leading_number<std::uint32_t>(header);
  constexpr std::uint32_t kKernelFacilityEnds = 8;  // below: facility 0; what programs write has another
  if (!priority || *priority >= kKernelFacilityEnds) return;
  std::optional<double> since_boot_s;
  if (const auto sequence = after(header, ","))
    if (const auto stamp = after(*sequence, ","))
      if (const auto micros = leading_number<std::uint64_t>(*stamp)) since_boot_s = static_cast<double>(*micros) * 1e-6;
  if (since_boot_s && (*since_boot_s < oldest_s || *since_boot_s > newest_s)) return;
  std::string_view body = record.substr(semicolon + 1);
  body = body.substr(0, body.find('\n'));  // the lines that follow describe the device
  // The kernel writes a line feed within a message as "\x0a".
  constexpr std::string_view kLineFeed = "\\x0a";
  while (!body.empty()) {
    const std::size_t end = body.find(kLineFeed);
    std::string_view one = body.substr(0, end);
    one.remove_prefix(std::min(one.find_first_not_of(' '), one.size()));
    if (one.starts_with("NVRM: ")) message(one, since_boot_s);
    body.remove_prefix(end == std::string_view::npos ? body.size() : end + kLineFeed.size());
  }
}

void DriverLogReader::message(std::string_view text, std::optional<double> since_boot_s) {
  while (!text.empty() && (text.back() == '\r' || text.back() == ' ' || text.back() == '\n')) text.remove_suffix(1);
  std::string_view body = text;
  take(body, "NVRM: ");
  if (open_mismatch_) {
    if (const auto version = after(body, "this kernel module has the version "))
      events_[*open_mismatch_].module_version = version_at(*version);
    open_mismatch_.reset();
  }
  if (body.starts_with("loading NVIDIA UNIX")) {
    events_.clear();
  } else if (body.starts_with("Xid (")) {
    xid(text, since_boot_s);
  } else if (body.starts_with("API mismatch: ")) {
    mismatch(text, since_boot_s);
  } else if (body.find("has fallen off the bus") != std::string_view::npos) {
    add({.kind = DriverEvent::Kind::off_the_bus,
         .pci_address = pci_address_in(body),
         .text = std::string(text.substr(0, kTextBytes)),
         .since_boot_s = since_boot_s});
  }
}

void DriverLogReader::xid(std::string_view text, std::optional<double> since_boot_s) {
  std::string_view body = text;
  take(body, "NVRM: Xid (");
  take(body, "PCI:");
  const std::size_t close = body.find("): ");
  if (close == std::string_view::npos) return;
  DriverEvent event;
  event.pci_address = pci_address_at(body.substr(0, std::min(close, body.find(' '))));
  body.remove_prefix(close + 3);
  const auto code = leading_number<std::uint32_t>(body);
  if (!code) return;
  event.code = *code;
  const std::size_t comma = body.find(", ");
  if (comma != std::string_view::npos) {
    std::string_view rest = body.substr(comma + 2);
    if (take(rest, "pid=")) {
      event.pid = leading_number<std::uint32_t>(rest);
      if (const auto name = after(rest, ", name=")) {
        const std::string_view its = name->substr(0, name->find(", ")).substr(0, kNameBytes);
        if (its != "<unknown>") event.process = std::string(its);
      }
    }
  }
  if (event.code == kRecoveryChanged && body.ends_with("(None)")) {
    forget(event.pci_address);
    return;
  }
  event.text = std::string(text.substr(0, kTextBytes));
  event.since_boot_s = since_boot_s;
  add(std::move(event));
}

void DriverLogReader::mismatch(std::string_view text, std::optional<double> since_boot_s) {
  DriverEvent event;
  event.kind = DriverEvent::Kind::version_mismatch;
  if (const auto client = after(text, "the client has the version ")) event.client_version = version_at(*client);
  if (const auto module = after(text, "kernel module has the version ")) event.module_version = version_at(*module);
  event.text = std::string(text.substr(0, kTextBytes));
  event.since_boot_s = since_boot_s;
  const bool is_half = event.module_version.empty();
  add(std::move(event));
  const auto last = std::find_if(events_.begin(), events_.end(), [](const DriverEvent& one) {
    return one.kind == DriverEvent::Kind::version_mismatch;
  });
  if (is_half && last != events_.end()) open_mismatch_ = static_cast<std::size_t>(last - events_.begin());
}

void DriverLogReader::add(DriverEvent event) {
  const auto same = std::find_if(events_.begin(), events_.end(), [&](const DriverEvent& one) {
    return one.kind == event.kind && one.code == event.code && one.pci_address == event.pci_address &&
           xid_severity(one.code, one.text) == xid_severity(event.code, event.text);
  });
  if (same == events_.end()) {
    if (events_.size() >= kMostEvents) {
      ++dropped_;
      return;
    }
    event.count = 1;
    events_.push_back(std::move(event));
    return;
  }
  event.count = same->count + 1;
  *same = std::move(event);
}

void DriverLogReader::forget(const std::string& pci_address) {
  std::erase_if(events_, [&](const DriverEvent& one) {
    return one.kind != DriverEvent::Kind::version_mismatch && one.pci_address == pci_address;
  });
}

std::string module_version_of(std::string_view proc_text) {
  std::string_view line = proc_text.substr(0, std::min(proc_text.find('\n'), kLineBytes));
  while (!line.empty()) {
    const std::string_view word = line.substr(0, line.find_first_of(" \t"));
    std::string version = version_at(word);
    if (version == word && version.find('.') != std::string::npos) return version;
    line.remove_prefix(std::min(word.size() + 1, line.size()));
  }
  return {};
}

}  // namespace vramtrack
