// The judge: vramtrack's own detector. Floors and peaks at twelve time scales, an e-process for drift, rival
// explanations weighed against a leak, a first-passage forecast. Mathematics: docs/detectors/judge.md.
// Private to judge.cpp, which decides, and judge_words.cpp, which puts findings into words.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "detect/creep.hpp"
#include "detect/cycles.hpp"
#include "detect/derived.hpp"
#include "detect/detector.hpp"
#include "detect/distributions.hpp"
#include "detect/doubling.hpp"
#include "detect/evidence.hpp"
#include "detect/experience.hpp"
#include "detect/facts.hpp"
#include "detect/growth.hpp"
#include "detect/pause.hpp"
#include "detect/period.hpp"
#include "detect/scales.hpp"
#include "detect/shape.hpp"
#include "detect/siblings.hpp"
#include "detect/standing.hpp"

namespace vramtrack {

extern const DetectorInfo judge_detector;

/// The probability, by the weights, that some level must show for an alert to stand. Far below the threshold for
/// raising: with one threshold for both, alerts would flicker.
inline constexpr double kKeepProbability = 0.4;

class Judge final : public Detector {
 public:
  /// What a judge reads: a series, the creep between the jumps of one, or the shift that all its quantiles share.
  enum class Of : std::uint8_t { series, creep, shift };
  explicit Judge(const DetectionConfig& config, const Scale& figures, Of of = Of::series)
      : config_(config), figures_(figures), of_(of) {}

  void observe(Timestamp time, double used_bytes) override;
  void set_limit(std::optional<double> limit_bytes) override { limit_bytes_ = limit_bytes; }
  void set_experience(const Experience* experience) override { experience_ = experience; }
  void set_siblings(const Siblings* siblings) override { siblings_ = siblings; }
  void set_facts(const Facts* facts) override { facts_ = facts; }
  void set_begin(Timestamp time, double bytes) override {
    life_ = time;
    life_bytes_ = static_cast<float>(bytes);
    began_ = true;
  }
  void set_precedent(const std::optional<Precedent>& precedent) override { precedent_ = precedent; }
  [[nodiscard]] bool alerting() const override {
    return alert_.stands() || creeping_.alerts() || cycling_.alerts() || doubling_.alerts();
  }
  [[nodiscard]] bool suspecting() const override {
    return suspicion_.stands() || creeping_.suspects() || shifting_.suspects() || cycling_.suspects() ||
           doubling_.suspects();
  }
  [[nodiscard]] double cycle_s() const override { return spokesman() == &cycling_ ? cycling_.judge().cycle_s() : 0; }
  [[nodiscard]] std::optional<FollowedRise> rise() const override {
    if (!growth_.lives()) return std::nullopt;
    return FollowedRise{growth_.number(), growth_.onset(), growth_.onset_bytes()};
  }
  bool confirm_at_end() override;
  [[nodiscard]] std::optional<double> most_left_bytes() const override;
  [[nodiscard]] bool may_be_loading() const override;
  [[nodiscard]] bool denies(Timestamp start, double net_bytes) const override;
  [[nodiscard]] Basis basis() const override;
  [[nodiscard]] Finding finding() const override;
  [[nodiscard]] AlertEnd last_end() const override { return end_; }
  [[nodiscard]] std::string last_end_reason() const override { return end_reason_; }
  [[nodiscard]] bool last_end_is_sure() const override { return end_is_sure_; }
  [[nodiscard]] std::vector<std::string> explain() const override;

 private:
  void on_close(std::uint32_t mask);
  void on_finest();
  void observe_derived();
  void observe_steps();
  /// The derived series whose finding represents this one; null: this one's own finding counts.
  [[nodiscard]] const Derived* spokesman() const;
  [[nodiscard]] Finding derived_finding(const Derived& derived) const;
  void weigh_level(std::size_t k);
  [[nodiscard]] bool worth_weighing(std::size_t k) const;
  [[nodiscard]] double min_growth_bytes() const { return config_.min_growth_mb * kMiB; }
  [[nodiscard]] double min_duration_s() const { return config_.minimum_duration_minutes * kSecondsPerMinute; }
  [[nodiscard]] std::optional<Evidence> weigh_in_context(std::size_t k) const;
  [[nodiscard]] ExperienceWord experienced(const Evidence& e) const;
  [[nodiscard]] SiblingsWord of_siblings(const Evidence& e) const;
  [[nodiscard]] double precedent_odds(const Evidence& e) const;
  [[nodiscard]] LifetimesWord lifetimes_of(const Evidence& e) const;
  [[nodiscard]] LifetimesWord lifetimes_of(const Standing& standing) const;
  [[nodiscard]] std::optional<Load> load_of(Timestamp start, Timestamp end, double net_bytes) const;
  [[nodiscard]] std::optional<Evidence> loading() const;
  [[nodiscard]] bool is_full() const;
  /// The life of the program that holds its memory.
  struct Life {
    Timestamp begin{};
    double bytes = 0;    ///< the memory held then
    bool known = false;  ///< whether it is known to have begun then
  };
  [[nodiscard]] Life life() const;
  void restart(bool keep_highs);
  void decide(Standing& standing);
  void end(Standing& standing, AlertEnd end, std::string reason, bool is_sure = false);
  [[nodiscard]] Pause pause_of_rise(Timestamp start, double net_bytes) const;
  [[nodiscard]] bool is_held();
  [[nodiscard]] bool finds_held() const;
  [[nodiscard]] EvidenceContext context() const;
  [[nodiscard]] bool is_late(const Evidence& e) const;
  [[nodiscard]] bool is_news(const Evidence& e) const;
  [[nodiscard]] bool suspects(const Evidence& e) const;
  [[nodiscard]] bool confirms(const Evidence& e) const;
  [[nodiscard]] double confidence_in(const Evidence& e) const;
  [[nodiscard]] double most_confidence(const Evidence& e, const SiblingsWord& siblings) const;
  [[nodiscard]] double most_of_load(const Evidence& e) const;
  [[nodiscard]] bool is_decided(const Evidence& e, const SiblingsWord& siblings) const;
  [[nodiscard]] bool beyond_horizon(const Evidence& e) const;
  [[nodiscard]] std::optional<Evidence> best() const;
  [[nodiscard]] std::size_t finest_useful() const;
  [[nodiscard]] bool goes_on_as_held() const;
  void follow_growth(const Evidence& e);
  [[nodiscard]] std::optional<Evidence> whole_growth() const;
  [[nodiscard]] static bool rises(const Evidence& e);
  [[nodiscard]] static bool is_reported(const Evidence& e);
  void describe_settling(Finding& f, const Evidence& e) const;
  void describe_load(Finding& f, const Evidence& e) const;
  void describe_rise(Finding& f, const Evidence& e) const;
  [[nodiscard]] std::string pause_words(const Standing& standing, std::string_view otherwise) const;
  void describe_pause(Finding& f, const std::optional<Evidence>& e) const;

  DetectionConfig config_;
  const Scale& figures_;
  Of of_;
  Scales scales_;
  Creep creep_;
  Derived creeping_;  ///< the creep, from when it first became meaningful
  Distributions distributions_;
  Derived shifting_;  ///< the shift that all quantiles share, in a busy series
  Derived cycling_;   ///< what remains after each of its cycles
  Derived doubling_;  ///< the pool, if it doubles
  Jumps jumps_;
  PeriodEstimate period_;
  Timestamp before_{};  ///< time and bytes of the sample before the last
  float before_bytes_ = 0;
  std::optional<double> limit_bytes_;
  const Experience* experience_ = nullptr;
  const Siblings* siblings_ = nullptr;
  const Facts* facts_ = nullptr;
  std::optional<Precedent> precedent_;
  Timestamp first_{};
  Timestamp program_first_{};  ///< as far as is known: the first sample after a restart that kept nothing
  Timestamp last_{};
  std::uint64_t samples_ = 0;
  float last_bytes_ = 0;
  /// When the program was last seen with next to nothing, else the first sample; and the memory it held then.
  Timestamp life_{};
  float life_bytes_ = 0;
  bool began_ = false;     ///< its life is known to have begun at `life_`, rather than merely not seen before
  bool again_ = false;     ///< it started over at `life_`, with a restart
  float epoch_first_ = 0;  ///< the first sample since the last restart
  float epoch_high_ = 0;   ///< highest peak since the last restart
  std::array<float, Scales::kLevels> probability_{};
  std::array<bool, Scales::kLevels> loads_{};  ///< the level's window shows a load
  std::optional<Timestamp> loaded_until_;      ///< when facts last showed a load that continued
  /// For each level's window: its start, and the probability that the rise continues, by its shape alone.
  struct Going {
    Timestamp start{};
    double probability = 1;
  };
  std::array<Going, Scales::kLevels> going_{};
  /// For each level's window: the rise that probability_ refers to.
  struct Rising {
    Timestamp start{};
    double net_bytes = 0;
  };
  std::array<Rising, Scales::kLevels> rises_{};
  /// The strongest evidence of the present growth. A rival that it has ruled out remains ruled out while the growth
  /// continues, even when the windows no longer show it.
  struct Held {
    double probability = 0;
    Timestamp start{};
    double net_bytes = 0;
    Timestamp time{};
    double floor_bytes = 0;
    double rate_bytes_per_s = 0;
    double gap_s = 0;            ///< how long it may stand still
    bool ends_in_sight = false;  ///< it would fill the memory before the horizon
  } held_;
  Growth growth_;
  std::optional<bool> is_held_;  ///< as of this close: used for both a suspicion and an alert
  bool was_slow_ = false;        ///< the present growth was slow_growth: its end lay beyond the horizon
  std::array<std::uint8_t, Scales::kLevels> skip_{};  ///< closes until the level is weighed again
  Standing suspicion_;
  Standing alert_;
  bool at_end_ = false;  ///< the alert was confirmed by confirm_at_end()
  AlertEnd end_ = AlertEnd::withdrawn;
  std::string end_reason_;
  bool end_is_sure_ = false;
};

}  // namespace vramtrack
