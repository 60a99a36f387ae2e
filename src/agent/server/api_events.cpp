// /api/v1/events: views, ticks and alerts as they occur, as server-sent events.
#include <fmt/format.h>

#include <algorithm>

#include "agent/server/api_parts.hpp"
#include "report/conclusion_words.hpp"
#include "report/health.hpp"

namespace vramtrack::agent {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kAlive{15};       ///< a stream sends a comment after this long without data
constexpr std::chrono::seconds kFullView{10};    ///< a stream sends a view at least this often
constexpr std::chrono::milliseconds kWait{500};  ///< a stream waits this long for a sample, so stopping is as quick

/// The text about a device, without the figures that change with every sample.
std::string conclusion_text(const View& view, const SeriesView& device) {
  const ConclusionWords words = conclusion_words(view, device);
  return words.headline + words.forecast + words.end;
}

/// A text that changes when something that a person would notice changes, not with every sample.
std::string fingerprint(const View& view) {
  std::string out;
  for (const SeriesView& s : view.series) {
    const Finding& f = s.verdict.finding;
    out +=
        fmt::format("{}:{}{}{}{}{}{}{}:{}:{};", index_of(s.id), static_cast<int>(f.state), static_cast<int>(f.pattern),
                    static_cast<int>(s.verdict.severity), f.leak ? 1 : 0, s.ended ? 1 : 0, s.paused ? 1 : 0,
                    s.ignored ? 1 : 0, s.alerts.size(), s.verdict.suspect ? s.verdict.suspect->pid : 0);
    if (s.key.metric == Metric::device_used)
      out +=
          fmt::format("{};h{}:{}:{};", conclusion_text(view, s), static_cast<int>(judge_health(s, view.time).condition),
                      s.health && s.health->throttle ? s.health->throttle->bits : 0,
                      s.last_xid ? s.last_xid->time.time_since_epoch().count() : 0);
    if (s.stall) out += fmt::format("z{}{};", static_cast<int>(s.stall->judgement), static_cast<int>(s.stall->cause));
    for (const Alert& a : s.alerts) out += fmt::format("{}{}", static_cast<int>(a.ended), static_cast<int>(a.severity));
  }
  return out + std::to_string(view.notices.size());
}

std::string alerts_fingerprint(const View& view) {
  std::string out;
  for (const SeriesView& s : view.series)
    for (const Alert& a : s.alerts)
      out += fmt::format("{}@{}:{}{};", index_of(s.id), a.raised.time_since_epoch().count(), static_cast<int>(a.ended),
                         static_cast<int>(a.severity));
  return out;
}

}  // namespace

Response Api::events(const Request& request, const ApiConfig& config) {
  struct Stream {
    std::uint64_t generation = 0;
    std::uint64_t id = 0;
    std::string seen;
    std::string seen_alerts;
    steady_clock::time_point full;  ///< when the last view was sent
    steady_clock::time_point sent;
  };
  auto taken = streams_.take(request.peer);
  if (taken.answer == FairQuota::Answer::share_used)
    return refused(429, "too_many_streams",
                   request.peer.name + " has too many streams open, and other clients may need some; close one");
  if (taken.answer == FairQuota::Answer::full)
    return refused(503, "too_many_streams",
                   "too many streams are open: agent.max-streams is the limit; close one, or raise the limit");
  // The place is taken from here until the stream ends, however it ends.
  const auto place = std::make_shared<Held>(std::move(taken.held));
  Response out;
  out.content_type = "text/event-stream";
  if (request.method == "HEAD") return out;
  const auto state = std::make_shared<Stream>();
  out.stream = [this, place, state, who = rights(request, config), token = config.token](const Write& write) {
    const auto event = [&](const char* name, const std::string& data) {
      state->sent = steady_clock::now();
      return write(fmt::format("id: {}\nevent: {}\ndata: {}\n\n", ++state->id, name, data));
    };
    const auto snapshot = published_.wait_after(state->generation, kWait);
    if (published_.closed()) return false;
    const auto now = steady_clock::now();
    const auto settings = this->config();
    if (settings->token != token) return false;  // clients admitted by the old token must send the new one
    if (!snapshot) {
      if (now - state->sent < kAlive) return true;
      state->sent = now;
      return write(": alive\n\n");
    }
    const bool first = state->generation == 0;
    state->generation = snapshot->generation;
    const Text seen = cache_->get(snapshot->generation, "fingerprint", [&] { return fingerprint(*snapshot->view); });
    const bool news = *seen != state->seen && now - state->full >= std::chrono::seconds(1);
    if (first || news || now - state->full >= kFullView) {
      state->seen = *seen;
      state->full = now;
      if (!event("view", *view_text(*snapshot, who))) return false;
    } else if (!event("tick", *tick_text(*snapshot))) {
      return false;
    }
    const Text alerts =
        cache_->get(snapshot->generation, "alerts fingerprint", [&] { return alerts_fingerprint(*snapshot->view); });
    const std::string key = *alerts + alerts_state();
    if (!first && key == state->seen_alerts) return true;
    state->seen_alerts = key;
    return event("alerts", *alerts_text(snapshot.get(), *settings));
  };
  return out;
}

}  // namespace vramtrack::agent
