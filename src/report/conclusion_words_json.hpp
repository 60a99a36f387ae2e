// ConclusionWords as JSON: the same object in the API, in analysis lines and in notifications (docs/openapi.yaml,
// schema ConclusionWords).
#pragma once

#include <string>
#include <vector>

#include "core/json.hpp"
#include "report/conclusion_words.hpp"

namespace vramtrack {

inline Json facts_json(const std::vector<Fact>& facts) {
  auto out = Json::array();
  for (const Fact& fact : facts) out.push_back({{"label", fact.label}, {"text", fact.text}});
  return out;
}

inline void add_nonempty(Json& out, const char* name, const std::vector<Fact>& facts) {
  if (!facts.empty()) out[name] = facts_json(facts);
}

inline Json conclusion_words_json(const ConclusionWords& words) {
  Json out = {{"verdict", words.verdict},
              {"headline", words.headline},
              {"tone", to_string(words.tone)},
              {"word", words.word},
              {"word_tone", to_string(words.word_tone)},
              {"concern", words.concern}};
  add_nonempty(out, "severity", words.severity);
  add_nonempty(out, "pattern", words.pattern);
  add_nonempty(out, "forecast", words.forecast);
  add_nonempty(out, "end", words.end);
  add_nonempty(out, "suspect", words.suspect);
  add_nonempty(out, "by", words.by);
  add_nonempty(out, "stall", words.stall);
  if (!words.stall.empty()) out["stall_tone"] = to_string(words.stall_tone);
  add_nonempty(out, "next", words.next);
  add_nonempty(out, "unattributed", words.unattributed);
  add_nonempty(out, "facts", words.facts);
  add_nonempty(out, "advice", words.advice);
  add_nonempty(out, "dissent", words.dissent);
  return out;
}

/// Null if unknown.
inline Json headroom_json(const SeriesView& s, const Scale& scale) {
  if (!s.headroom) return nullptr;
  const Headroom& h = *s.headroom;
  const auto pid = [](std::uint32_t of) { return of != 0 ? Json(of) : Json(nullptr); };
  return {
      {"peak_bytes", h.peak_bytes},
      {"more_bytes", h.more_bytes},
      {"earlier_runs", h.earlier_runs},
      {"left_bytes", h.left_bytes},
      {"pid", pid(h.pid)},
      {"beside_pid", pid(h.beside_pid)},
      {"words", headroom_words(h, s.key.pid == 0 ? s.device.capacity_bytes : std::optional<std::uint64_t>(), scale)}};
}

inline Json wall_json(const SeriesView& s) {
  if (!s.wall) return nullptr;
  return {{"bytes", s.wall->bytes},
          {"used_bytes", s.wall->used_bytes},
          {"processes", s.wall->processes},
          {"growth_bytes_per_s", s.wall->growth_bytes_per_s},
          {"name", s.wall->name}};
}

inline Json host_json(const SeriesView& s) {
  if (!s.host) return nullptr;
  const auto known = [](const std::optional<std::uint64_t>& bytes) { return bytes ? Json(*bytes) : Json(nullptr); };
  return {{"anonymous_bytes", s.host->anonymous_bytes},
          {"resident_bytes", known(s.host->resident_bytes)},
          {"pinned_bytes", known(s.host->pinned_bytes)},
          {"available_bytes", known(s.host->available_bytes)}};
}

inline Json mark_growth_json(const SeriesView& s) {
  if (!s.mark_growth) return nullptr;
  return {
      {"name", s.mark_growth->name}, {"last", s.mark_growth->last}, {"bytes_per_mark", s.mark_growth->bytes_per_mark}};
}

inline Json conclusion_words_json(const AlertWords& words) {
  Json out = {
      {"what", words.what}, {"severity", words.severity}, {"tone", to_string(words.tone)}, {"state", words.state}};
  add_nonempty(out, "figures", words.figures);
  add_nonempty(out, "ended", words.ended);
  return out;
}

}  // namespace vramtrack
