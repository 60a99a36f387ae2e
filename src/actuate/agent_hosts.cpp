#include "actuate/agent_hosts.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "act/http_post.hpp"
#include "actuate/template.hpp"
#include "core/meaning.hpp"
#include "core/number_text.hpp"
#include "core/printable.hpp"

namespace vramtrack::actuate {
namespace {

constexpr std::string_view kSetting = "actuate.agent-hosts";

std::optional<std::uint64_t> number_of(std::string_view text, std::uint64_t most) {
  const auto value = parse_number<std::uint64_t>(text);
  return value && *value <= most ? value : std::nullopt;
}

/// The bytes of an IPv4 or IPv6 address; empty if the text is not one.
std::vector<unsigned char> address_bytes(const std::string& text) {
  std::vector<unsigned char> bytes(16);
  if (::inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1) return bytes;
  bytes.resize(4);
  if (::inet_pton(AF_INET, text.c_str(), bytes.data()) == 1) return bytes;
  return {};
}

/// Whether the resolver could take the name for an address ("127.1", "0x7f000001"): it ends in a number.
bool is_numeric(std::string_view name) {
  const std::string_view last = name.substr(name.rfind('.') + 1);
  return last.empty() || last.starts_with("0x") ||
         std::all_of(last.begin(), last.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_in(const std::vector<unsigned char>& address, const std::vector<unsigned char>& network, unsigned bits) {
  if (address.size() != network.size()) return false;
  for (unsigned bit = 0; bit < bits; ++bit)
    if (((address[bit / 8] ^ network[bit / 8]) & (0x80U >> bit % 8)) != 0) return false;
  return true;
}

/// `*` stands for any characters except a dot, so that "gn*" matches no name in another domain.
bool is_like(std::string_view name, std::string_view pattern) {
  if (pattern.empty()) return name.empty();
  if (pattern.front() != '*')
    return !name.empty() && name.front() == pattern.front() && is_like(name.substr(1), pattern.substr(1));
  for (std::size_t taken = 0;; ++taken) {
    if (is_like(name.substr(taken), pattern.substr(1))) return true;
    if (taken == name.size() || name[taken] == '.') return false;
  }
}

bool is_pattern(std::string_view text) {
  const std::size_t dot = text.rfind('.');
  const bool is_name =
      !text.empty() && text.size() <= 253 && std::count(text.begin(), text.end(), '*') <= 4 &&
      std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.' || c == '*';
      });
  // "gn1.*" would match a name in anybody's domain.
  return is_name && !is_numeric(text) &&
         (dot == std::string_view::npos || text.find('*', dot) == std::string_view::npos);
}

}  // namespace

Result<AgentHosts> AgentHosts::parse(const std::vector<std::string>& entries) {
  AgentHosts out;
  for (const std::string& entry : entries) {
    const auto wrong = [&entry](std::string_view why) {
      return fail(
          fmt::format("{}: '{}' {}; write, for example, gn*.example.org, 10.1.0.0/16:9474, or "
                      "gn1=https://10.1.0.1:9474",
                      kSetting, printable(entry), why));
    };
    if (const std::size_t equals = entry.find('='); equals != std::string::npos) {
      const std::string node = entry.substr(0, equals);
      const auto url = act::parse_url(entry.substr(equals + 1));
      if (node.empty() || !url) return wrong("is not NODE=URL");
      if (!out.nodes_.emplace(node, entry.substr(equals + 1)).second)
        return wrong("names a node that is already listed");
      continue;
    }
    Hosts hosts;
    std::string_view rest = entry;
    std::string_view host;
    const bool is_bracketed = rest.starts_with('[');
    if (is_bracketed) {
      const std::size_t end = rest.find(']');
      if (end == std::string_view::npos) return wrong("has no ']'");
      host = rest.substr(1, end - 1);
      rest.remove_prefix(end + 1);
    } else {
      host = rest.substr(0, rest.find_first_of(":/"));
      rest.remove_prefix(host.size());
    }
    hosts.network = address_bytes(std::string(host));
    if (is_bracketed && hosts.network.size() != 16) return wrong("has no IPv6 address in its brackets");
    hosts.prefix_bits = static_cast<unsigned>(8 * hosts.network.size());
    if (!hosts.network.empty() && rest.starts_with('/')) {
      const std::string_view bits =
          rest.substr(1, rest.find(':') == std::string_view::npos ? rest.size() : rest.find(':') - 1);
      const auto given = number_of(bits, hosts.prefix_bits);
      if (!given) return wrong("is not an address range");
      hosts.prefix_bits = static_cast<unsigned>(*given);
      rest.remove_prefix(1 + bits.size());
    }
    if (rest.starts_with(':')) {
      const auto port = number_of(rest.substr(1), 65535);
      if (!port || *port == 0) return wrong("has no port from 1 to 65535 after its ':'");
      hosts.port = static_cast<std::uint16_t>(*port);
      rest = {};
    }
    hosts.name = hosts.network.empty() ? lowered_word(host) : std::string();
    if (!rest.empty() || (hosts.network.empty() && !is_pattern(hosts.name)))
      return wrong("is neither a host, nor a pattern or range of hosts");
    out.hosts_.push_back(std::move(hosts));
  }
  return out;
}

bool AgentHosts::is_chosen_by_labels(const std::string& agents) {
  const std::size_t scheme = agents.find("://");
  const std::size_t host = scheme == std::string::npos ? 0 : scheme + 3;
  return agents.substr(0, agents.find('/', host)).find('{') != std::string::npos;
}

Result<AgentHosts::Address> AgentHosts::address(const std::string& agents, const Labels& labels,
                                                const std::string& node) const {
  if (const auto known = nodes_.find(node); known != nodes_.end()) return Address{known->second, true};
  auto text = filled(agents, labels);
  if (!text) return fail(text.error());
  if (!is_chosen_by_labels(agents)) return Address{std::move(*text)};
  const auto url = act::parse_url(*text);
  if (!url) return fail(fmt::format("'{}': {}", printable(*text), url.error().message));
  const std::string host = lowered_word(url->host);
  const std::vector<unsigned char> address = address_bytes(host);
  const auto is_it = [&](const Hosts& listed) {
    if (listed.port != url->port) return false;
    if (listed.name.empty()) return !address.empty() && is_in(address, listed.network, listed.prefix_bits);
    return address.empty() && !is_numeric(host) && is_like(host, listed.name);
  };
  if (std::any_of(hosts_.begin(), hosts_.end(), is_it)) return Address{std::move(*text)};
  return Address{std::move(*text), false,
                 fmt::format("the alert's labels name {}:{}, which is not an agent listed in {}", printable(url->host),
                             url->port, kSetting)};
}

}  // namespace vramtrack::actuate
