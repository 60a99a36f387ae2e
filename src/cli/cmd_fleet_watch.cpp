// fleet watch: a continuous scan, with a page, an API and metrics.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <map>
#include <optional>

#include "agent/otlp.hpp"
#include "agent/server/guard.hpp"
#include "agent/server/listen.hpp"
#include "cli/cmd_fleet.hpp"
#include "cli/fleet_options.hpp"
#include "core/format.hpp"
#include "core/printable.hpp"
#include "fleet/context.hpp"
#include "fleet/packed.hpp"
#include "fleet/serve/site.hpp"
#include "fleet/status.hpp"
#include "fleet/watch.hpp"
#include "host/host_name.hpp"
#include "host/interrupt.hpp"

namespace vramtrack::cli {
namespace {

struct FleetWatchOptions : FleetOptions {
  double every_s = 30;
  double history_s = 86'400;
  std::string listen = "127.0.0.1:9837";
  std::string token_file;
  agent::TlsFiles tls{{}, {}, "--tls-certificate", "--tls-key"};
};

Timestamp now() {
  return std::chrono::system_clock::now();
}

int failed(Console& console, const std::string& why) {
  console.error("cannot watch the fleet: " + printable(why));
  return 2;
}

/// The token; empty if none is needed.
Result<std::string> token_of(const FleetWatchOptions& o) {
  if (!o.token_file.empty()) return agent::read_token(o.token_file);
  const auto address = agent::parse_listen(o.listen);
  if (!address) return fail(address.error().during("--listen"));
  if (agent::is_loopback_host(address->first)) return std::string();
  return fail(fmt::format(
      "--listen {} can be reached from other machines; pass --token-file, or anybody can read the jobs of your fleet",
      o.listen));
}

/// Null for plain HTTP.
Result<std::shared_ptr<const agent::TlsCertificate>> certificate_of(const FleetWatchOptions& o, Console& console) {
  if (o.tls.certificate.empty() && o.tls.key.empty()) return std::shared_ptr<const agent::TlsCertificate>();
  auto loaded = agent::TlsCertificate::load(o.tls);
  if (loaded && !(*loaded)->warning().empty()) console.error(printable((*loaded)->warning()));
  return loaded;
}

/// Prints a line when a job begins to leak, and one when the leak ends.
class Lines {
 public:
  explicit Lines(Console& console) : console_(console) {}

  void update(const fleet::FleetFindings& found, Timestamp time) {
    const LocalTimes local = console_.local_times();
    const std::string when = format_moment(time, false);
    std::map<std::string, std::string> leaking;
    for (const fleet::LeakingJob& job : found.jobs)
      if (job.state == fleet::JobState::leaks) leaking[job.name] = words_of(job);
    for (const auto& [name, words] : leaking)
      if (!leaking_.contains(name)) console_.write(fmt::format("{} {}\n", when, words));
    for (const auto& [name, words] : leaking_)
      if (!leaking.contains(name)) console_.write(fmt::format("{} {} no longer leaks\n", when, printable(name)));
    leaking_ = std::move(leaking);
  }

 private:
  static std::string words_of(const fleet::LeakingJob& job) {
    const fleet::LeakingGpu& first = job.leaks.front();
    std::string text = fmt::format("{} leaks: {} of {}, {}", printable(job.name), format_number(job.leaks.size()),
                                   format_count(job.gpus, "GPU"), format_scaled_rate(job.growth_bytes_per_s));
    if (!first.gpu->device.host.empty()) text += ", first on " + printable(first.gpu->device.host);
    if (job.oom_in_s) text += "; " + format_oom(*job.oom_in_s);
    return text;
  }

  Console& console_;
  std::map<std::string, std::string> leaking_;
};

/// One watch of one server or several.
class Watching {
 public:
  Watching(const FleetWatchOptions& o, const Config& config, Console& console)
      : o_(o), config_(config), console_(console), lines_(console) {
    status_.every_s = o.every_s;
  }

  int run() {
    auto reader = reader_of(o_);
    if (!reader) return failed(console_, reader.error().message);
    const auto mapping = mapping_of(o_);
    if (!mapping) return failed(console_, mapping.error().message);
    const auto plan = plan_of(o_);
    if (!plan) return failed(console_, plan.error().message);
    auto token = token_of(o_);
    if (!token) return failed(console_, token.error().message);
    const auto tls = certificate_of(o_, console_);
    if (!tls) return failed(console_, tls.error().message);
    fleet::FleetSite site({host_name(), std::move(*token)});
    agent::HttpConfig http;
    http.listen = o_.listen;
    http.tls = *tls;
    const auto listening = agent::HttpServer::start(http, site.site());
    if (!listening) return failed(console_, listening.error().message);
    const std::string url = (*tls ? "https://" : "http://") + (*listening)->address();
    const auto otlp = agent::open_otlp(
        {{}, "vramtrack-fleet", VRAMTRACK_VERSION, host_name(), now()}, [&site] { return site.metrics(); },
        [this](const std::string& text) { console_.error(printable(text)); });
    if (!otlp) return failed(console_, otlp.error().message);
    console_.error(fmt::format("the fleet is at {}/, and its metrics are at {}/metrics", url, url));
    words_.server = reader->origin();
    words_.usd_per_gpu_hour = config_.cost.usd_per_gpu_hour;
    words_.length = format_span(o_.history_s);
    fleet::FleetWatch watch(std::move(*reader), *mapping, options(*plan));
    for (auto next = std::chrono::steady_clock::now();; next += std::chrono::milliseconds(ms_every())) {
      if (!Interrupt::sleep_until(next)) return 0;
      next = std::max(next, std::chrono::steady_clock::now() - std::chrono::milliseconds(ms_every()));
      const auto begun = std::chrono::steady_clock::now();
      status_.time = now();
      if (const auto passed = watch.pass(fleet::ms_of(status_.time)); !passed)
        trouble(passed.error().why);
      else
        passed_well(watch.latest());
      if (Interrupt::requested()) return 0;
      status_.took_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
      fleet::FleetFindings found = fleet::find(watch.latest());
      if (const fleet::Reader* here = watch.here()) {
        words_.path = here->paths();
        fleet::add_caches(*here, *mapping, fleet::ms_of(status_.time), found);
      }
      publish(site, watch.latest(), found);
    }
  }

 private:
  [[nodiscard]] std::int64_t ms_every() const { return static_cast<std::int64_t>(o_.every_s * 1000); }

  [[nodiscard]] fleet::WatchOptions options(const fleet::PlanOptions& plan) const {
    fleet::WatchOptions out;
    out.scan.plan = plan;
    out.scan.config = config_;
    out.scan.threads = threads_of(o_);
    out.scan.is_cancelled = Interrupt::requested;
    out.history_ms = static_cast<std::int64_t>(o_.history_s * 1000);
    return out;
  }

  /// Reports a problem once, until it changes.
  void trouble(const std::string& why) {
    if (Interrupt::requested()) return;  // the interrupt is why it failed
    ++status_.failed_passes;
    if (why != status_.trouble) console_.error(printable(why) + "; trying again");
    status_.trouble = why;
  }

  void passed_well(const fleet::Scan& scan) {
    if (status_.passes == 0 && !scan.unknown.empty()) console_.error(unknown_metrics_text(scan.unknown));
    ++status_.passes;
    status_.samples += scan.samples;
    std::string why;
    for (const fleet::Unread& unread : scan.unread)
      if (why.empty()) why = fmt::format("{} could not be read: {}", words_of(unread), unread.why);
    if (!why.empty() && why != status_.trouble) console_.error(printable(why) + "; trying again");
    status_.trouble = why;
  }

  void publish(fleet::FleetSite& site, const fleet::Scan& shown, const fleet::FleetFindings& found) {
    site.publish({fleet::fleet_json(shown, found, words_, status_), fleet::fleet_metrics(shown, found, status_),
                  status_.trouble.empty()});
    lines_.update(found, status_.time);  // a reader of a line can look up what it refers to
  }

  const FleetWatchOptions& o_;
  const Config& config_;
  Console& console_;
  Lines lines_;
  fleet::ScanWords words_;
  fleet::PassStatus status_;
};

int watch(const FleetWatchOptions& o, const LayeredConfig& layers, Console& console) {
  return Watching(o, layers.config(), console).run();
}

Runner declare_watch(Arguments& arguments) {
  const auto o = std::make_shared<FleetWatchOptions>();
  const auto at_least = [](double least_s, double& into_s) {
    return duration([least_s, &into_s](double seconds) { into_s = std::max(seconds, least_s); });
  };
  arguments.option("--every", "DURATION", "Time between two passes (default 30s, at least 1s)",
                   at_least(1, o->every_s));
  arguments.option("--history", "DURATION",
                   "How much of the past to judge first when a machine is new (default 24h, at least 10min)",
                   at_least(600, o->history_s));
  arguments.option("--listen", "ADDRESS",
                   "Serve the page, /api/v1/fleet and /metrics on this address (default 127.0.0.1:9837)",
                   text(o->listen));
  arguments
      .option("--token-file", "FILE", "Require the token in this file; needed for addresses other than loopback",
              text(o->token_file))
      .file();
  arguments
      .option("--tls-certificate", "FILE", "Serve HTTPS with this certificate and its chain (PEM)",
              text(o->tls.certificate))
      .file()
      .in_manual("The files are read at startup: restart the watch after a renewal.");
  arguments
      .option("--tls-key", "FILE", "Its private key (PEM, not encrypted); others must not be able to read it",
              text(o->tls.key))
      .file();
  add_fleet_options(arguments, *o);
  return until_interrupted(configured<FleetWatchOptions>(o, watch));
}

}  // namespace

const CommandInfo fleet_watch_command{
    "watch", "Judge continuously, and serve a page, an API and metrics of the fleet",
    "Examples:\n"
    "  vramtrack fleet watch --url http://prometheus:9090\n"
    "  vramtrack fleet watch --url http://victoria:8428 --every 1min --history 7d --listen 127.0.0.1:9900\n"
    "Nothing is stored: after a restart, the history is read from the server again.\n"
    "Exit: 0 when interrupted, 2 when it could not start.",
    declare_watch};

}  // namespace vramtrack::cli
