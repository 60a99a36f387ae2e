// What people are told, as JSON: the same object in the API, in analysis lines and in notifications (docs/openapi.yaml,
// schema Told).
#pragma once

#include <string>
#include <vector>

#include "core/json.hpp"
#include "report/told.hpp"

namespace vramtrack {

inline Json facts_json(const std::vector<Fact>& facts) {
  auto out = Json::array();
  for (const Fact& fact : facts) out.push_back({{"label", fact.label}, {"text", fact.text}});
  return out;
}

/// Adds the fields that have content: an empty text or list is left out.
inline void add_said(Json& out, const char* name, const std::string& text) {
  if (!text.empty()) out[name] = text;
}
inline void add_said(Json& out, const char* name, const std::vector<Fact>& facts) {
  if (!facts.empty()) out[name] = facts_json(facts);
}

inline Json told_json(const Told& told) {
  Json out = {{"verdict", told.verdict},
              {"headline", told.headline},
              {"tone", to_string(told.tone)},
              {"word", told.word},
              {"word_tone", to_string(told.word_tone)},
              {"concern", told.concern}};
  add_said(out, "severity", told.severity);
  add_said(out, "pattern", told.pattern);
  add_said(out, "forecast", told.forecast);
  add_said(out, "end", told.end);
  add_said(out, "suspect", told.suspect);
  add_said(out, "by", told.by);
  add_said(out, "stall", told.stall);
  if (!told.stall.empty()) out["stall_tone"] = to_string(told.stall_tone);
  add_said(out, "next", told.next);
  add_said(out, "unattributed", told.unattributed);
  add_said(out, "facts", told.facts);
  add_said(out, "advice", told.advice);
  add_said(out, "dissent", told.dissent);
  return out;
}

/// Null where it is not known.
inline Json headroom_json(const SeriesView& s) {
  if (!s.headroom) return nullptr;
  const Headroom& h = *s.headroom;
  const auto pid = [](std::uint32_t of) { return of != 0 ? Json(of) : Json(nullptr); };
  return {{"peak_bytes", h.peak_bytes},
          {"more_bytes", h.more_bytes},
          {"earlier_runs", h.earlier_runs},
          {"left_bytes", h.left_bytes},
          {"pid", pid(h.pid)},
          {"beside_pid", pid(h.beside_pid)},
          {"words", headroom_words(h, s.key.pid == 0 ? s.device.capacity_bytes : std::optional<std::uint64_t>())}};
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

inline Json told_json(const ToldAlert& told) {
  Json out = {{"what", told.what}, {"severity", told.severity}, {"tone", to_string(told.tone)}, {"state", told.state}};
  add_said(out, "figures", told.figures);
  add_said(out, "ended", told.ended);
  return out;
}

}  // namespace vramtrack
