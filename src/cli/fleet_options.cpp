#include "cli/fleet_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "act/http_post.hpp"
#include "cli/shared_arguments.hpp"
#include "core/regular_file.hpp"
#include "core/time.hpp"

namespace vramtrack::cli {
namespace {

constexpr std::size_t kMostSecret = 16 * 1024;
constexpr std::size_t kMostMapping = 1024 * 1024;

Result<std::string> read_file(const std::string& path, std::size_t most_bytes) {
  const auto file = RegularFile::open(path, Links::of_owner);
  if (!file) return fail(file.error());
  if (!*file) return fail(fmt::format("{}: no such file", path));
  return (*file)->read(most_bytes);
}

/// Reads a secret from the first line of a file.
Status read_secret(const std::string& path, const char* option, std::string& into) {
  if (path.empty()) return {};
  auto text = read_file(path, kMostSecret);
  if (!text) return fail(text.error().during(option));
  into = text->substr(0, text->find_first_of("\r\n"));
  if (into.empty()) return fail(fmt::format("{}: the first line of {} is empty", option, path));
  return {};
}

/// The server at `address`, with the credentials and headers for every server.
Result<fleet::ServerAddress> server_of(const FleetOptions& o, const std::string& address) {
  auto url = act::parse_url(address);
  if (!url) return fail(url.error().during("--url"));
  fleet::ServerAddress server;
  server.url = std::move(*url);
  while (server.url.path.ends_with('/')) server.url.path.pop_back();
  for (const std::string& header : o.headers) {
    const std::size_t colon = header.find(':');
    const std::size_t value = header.find_first_not_of(' ', colon == std::string::npos ? colon : colon + 1);
    if (colon == std::string::npos || colon == 0 || value == std::string::npos ||
        header.find_first_of("\r\n") != std::string::npos)
      return fail(fmt::format("--header: \"{}\" is not a header; expected NAME: VALUE", header));
    server.headers.emplace_back(header.substr(0, colon), header.substr(value));
  }
  if (const Status read = read_secret(o.bearer_token_file, "--bearer-token-file", server.bearer_token); !read)
    return fail(read.error());
  if (const Status read = read_secret(o.basic_auth_file, "--basic-auth-file", server.user_and_password); !read)
    return fail(read.error());
  if (!server.user_and_password.empty() && server.user_and_password.find(':') == std::string::npos)
    return fail(fmt::format("--basic-auth-file: {} must hold USER:PASSWORD", o.basic_auth_file));
  server.ca_file = o.ca_file;
  return server;
}

}  // namespace

void add_fleet_options(Arguments& arguments, FleetOptions& o) {
  arguments
      .repeated("--url", "URL", "Address of a server, for example http://prometheus:9090; several are read as one",
                text(o.urls))
      .required()
      .in_manual(
          "A server that does not answer is reported, and the machines of the others are judged. A GPU that several "
          "servers report counts once.");
  arguments.repeated("--tenant", "ID", "Read this tenant of Mimir or Cortex (header X-Scope-OrgID)", text(o.tenants));
  arguments.repeated("--only", "LABEL=VALUE", "Read only series with this label; LABEL=~REGEX for several values",
                     text(o.only));
  arguments.option("--shard", "I/N", "Judge one of N parts of the fleet, for example 2/8", text(o.shard))
      .in_manual("Machines are assigned to parts by name, so N scans with 1/N to N/N judge each machine once.");
  arguments.option("--exporters", "FILE", "Metrics and labels of other exporters (TOML)", text(o.exporters_file))
      .file();
  const std::vector<std::string> paths = {"remote-read", "export", "query-range"};
  arguments
      .option("--read-by", "NAME",
              "Read by: remote-read, export, query-range (default: the best that the server supports)",
              one_of(paths, o.read_by))
      .completes(paths);
  arguments.option("--step", "DURATION", "Time between two values of query-range (default 30s, at least 1s)",
                   [&o](const std::string& word) -> Status {
                     const auto seconds = typed_duration_s(word);
                     if (!seconds) return fail(seconds.error());
                     if (*seconds < 1) return fail("must be at least 1s");
                     return o.step_s = *seconds, Status();
                   });
  arguments.repeated("--header", "HEADER", "Send a header, for example 'X-Scope-OrgID: team'", text(o.headers));
  arguments.option("--bearer-token-file", "FILE", "Send the token in this file", text(o.bearer_token_file)).file();
  arguments.option("--basic-auth-file", "FILE", "Send USER:PASSWORD from this file", text(o.basic_auth_file)).file();
  arguments.option("--ca-file", "FILE", "Trust the certificates in this file", text(o.ca_file)).file();
  arguments.option("--threads", "N", "Number of threads that judge (default: one per processor)",
                   whole_number([&o](std::uint64_t n) { o.threads = n; }, 1, 1024));
  add_detector(arguments, o.config);
  add_config(arguments, o.config);
}

Result<std::vector<fleet::ServerAddress>> servers_of(const FleetOptions& o) {
  std::vector<fleet::ServerAddress> out;
  for (const std::string& url : o.urls) {
    const auto server = server_of(o, url);
    if (!server) return fail(server.error());
    if (o.tenants.empty()) out.push_back(*server);
    for (const std::string& tenant : o.tenants) {
      if (tenant.empty() || tenant.find_first_of("\r\n") != std::string::npos)
        return fail("--tenant: expected the id of a tenant, for example team-a");
      out.push_back(*server);
      out.back().headers.emplace_back("X-Scope-OrgID", tenant);
    }
  }
  return out;
}

Result<fleet::Reader> reader_of(const FleetOptions& o) {
  const auto servers = servers_of(o);
  if (!servers) return fail(servers.error());
  std::optional<fleet::ReadPath> chosen;
  for (const fleet::ReadPath path :
       {fleet::ReadPath::remote_read, fleet::ReadPath::export_lines, fleet::ReadPath::query_range})
    if (to_string(path) == o.read_by) chosen = path;
  std::vector<fleet::ServerToRead> out;
  for (const fleet::ServerAddress& server : *servers) out.push_back({server, chosen});
  return fleet::Reader(std::move(out), o.step_s);
}

Result<fleet::Mapping> mapping_of(const FleetOptions& o) {
  if (o.exporters_file.empty()) return fleet::Mapping::read();
  auto text = read_file(o.exporters_file, kMostMapping);
  if (!text) return fail(text.error().during("--exporters"));
  return fleet::Mapping::read(*text, o.exporters_file);
}

Result<fleet::PlanOptions> plan_of(const FleetOptions& o) {
  fleet::PlanOptions plan;
  if (!o.shard.empty()) {
    const auto shard = fleet::parse_shard(o.shard);
    if (!shard) return fail(shard.error().during("--shard"));
    plan.shard = *shard;
  }
  for (const std::string& only : o.only) {
    const std::size_t equals = only.find('=');
    const bool is_regex = equals != std::string::npos && only.substr(equals, 2) == "=~";
    const std::string value = equals == std::string::npos ? "" : only.substr(equals + (is_regex ? 2 : 1));
    const bool is_name =
        equals != std::string::npos && equals > 0 &&
        only.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") >= equals;
    if (!is_name || value.empty())
      return fail(fmt::format("--only: \"{}\" is not a label; expected LABEL=VALUE or LABEL=~REGEX", only));
    plan.only.push_back({only.substr(0, equals), value, is_regex});
  }
  return plan;
}

unsigned threads_of(const FleetOptions& o) {
  return o.threads > 0 ? static_cast<unsigned>(o.threads) : std::max(std::thread::hardware_concurrency(), 1U);
}

}  // namespace vramtrack::cli
