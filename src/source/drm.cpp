// Source "drm": AMD, Intel and other GPUs through what their kernel drivers show in /sys and /proc. Needs no library,
// and no privilege for the devices; only root sees the processes of other users.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "host/privilege.hpp"
#include "host/process_watch.hpp"
#include "source/drm_clients.hpp"
#include "source/drm_sysfs.hpp"
#include "source/source.hpp"

namespace vramtrack {
namespace drm {
namespace {

/// A new process is seen at most this late; discovery walks over all processes.
constexpr std::chrono::seconds kDiscoverEvery{5};
/// Cards come and go by hot-plug, driver reload and reset.
constexpr std::chrono::seconds kFindCardsEvery{10};

struct WatchedCard {
  Card card;
  SeriesId used{};
  std::size_t watched = 0;
  bool lost = false;
  bool present = true;
};

class DrmSource final : public Source {
 public:
  DrmSource(const SourcesConfig& config, Catalog& catalog)
      : sys_root_(config.sys_root), catalog_(catalog), watch_(config.proc_root, catalog), clients_(config.proc_root) {
    find_new_cards();
  }

  [[nodiscard]] bool sees_gpus() const { return !cards_.empty(); }
  [[nodiscard]] const SourceNotes& notes() const override { return notes_; }

  Result<Progress> poll(Timestamp now, Batch& out) override {
    if (now >= next_find_cards_) {
      next_find_cards_ = now + kFindCardsEvery;
      find_new_cards();
    }
    watch_.begin(now);
    for (WatchedCard& card : cards_) read_card(card, now, out);
    const bool discover = now >= next_discover_;
    if (discover) next_discover_ = now + kDiscoverEvery;
    const ClientScan scan = clients_.scan(discover);
    for (const Holder& holder : scan.holders) {
      const auto card = std::find_if(cards_.begin(), cards_.end(), [&](const WatchedCard& c) {
        return c.card.pci_address == holder.pci_address && c.present;
      });
      // Every program on a desktop has an open file without memory; a process is listed once it holds some.
      if (card == cards_.end() || card->lost) continue;
      auto bytes = holder.bytes;
      if (card->card.uses_gtt && holder.gtt_bytes) bytes = bytes.value_or(0) + *holder.gtt_bytes;
      if (bytes.value_or(0) == 0) continue;
      watch_.listed(card->watched, holder.pid, bytes, "");
    }
    watch_.end(out);
    refresh_notes(scan.unreadable);
    return Progress::more;
  }

 private:
  void find_new_cards() {
    const std::vector<Card> found = find_cards(sys_root_);
    for (WatchedCard& known : cards_)
      known.present = std::any_of(found.begin(), found.end(), [&](const Card& c) { return c.id == known.card.id; });
    for (const Card& card : found) {
      auto known =
          std::find_if(cards_.begin(), cards_.end(), [&](const WatchedCard& c) { return c.card.id == card.id; });
      const bool is_new = known == cards_.end();
      if (is_new) {
        cards_.emplace_back();
        known = cards_.end() - 1;
      }
      const bool uses_gtt = is_new ? shares_host_memory(card) : known->card.uses_gtt;
      known->card = card;
      known->card.uses_gtt = uses_gtt;
      describe(*known);
    }
  }

  void describe(WatchedCard& watched) {
    const Card& card = watched.card;
    DeviceInfo info;
    info.id = card.id;
    info.index = card.number;
    info.name = card.name;
    info.pci_bus_id = card.pci_address;
    info.capacity_bytes = capacity_bytes(card);
    info.shares_host_memory = card.uses_gtt;
    catalog_.describe(info);
    if (card.reports_used) watched.used = catalog_.intern({Metric::device_used, card.id, 0, 0});
    watched.watched = watch_.device(card.id);
  }

  void read_card(WatchedCard& watched, Timestamp now, Batch& out) {
    const auto used = watched.present && watched.card.reports_used ? used_bytes(watched.card) : std::nullopt;
    // A driver that reports no sum counts as answering as long as the card is present.
    const bool answers = watched.card.reports_used ? used.has_value() : watched.present;
    if (used) out.samples.push_back({now, watched.used, *used});
    if (!answers) watch_.unanswered(watched.watched);
    if (answers == !watched.lost) return;
    watched.lost = !answers;
    out.events.push_back(Event{.time = now,
                               .kind = answers ? Event::Kind::device_resumed : Event::Kind::device_lost,
                               .device_id = watched.card.id,
                               .pid = 0,
                               .pid_start_ticks = 0,
                               .text = answers ? "" : "its driver no longer reports the memory in use"});
  }

  void refresh_notes(std::size_t unreadable) {
    if (reported_ && watch_.unseen() == reported_unseen_ && unreadable == reported_unreadable_) return;
    reported_ = true;
    reported_unseen_ = watch_.unseen();
    reported_unreadable_ = unreadable;
    notes_.warnings = unseen_warnings(reported_unseen_, !may_read_others());
    if (unreadable != 0)
      notes_.warnings.push_back(
          fmt::format("open files of {} process{} of other users are not readable: their GPU memory counts in the "
                      "device's total but is not shown per process; run as root or with CAP_SYS_PTRACE",
                      unreadable, unreadable == 1 ? "" : "es"));
    for (const WatchedCard& watched : cards_)
      if (watched.card.uses_gtt)
        notes_.warnings.push_back(
            fmt::format("{} ({}) shares the host's memory: the figures are for its carve-out and what it has taken of "
                        "the host's memory (GTT); when that runs out, the kernel ends a process",
                        watched.card.name, watched.card.pci_address));
    for (const WatchedCard& watched : cards_)
      if (!watched.card.reports_used)
        notes_.warnings.push_back(fmt::format(
            "{} ({}): driver {} does not report the memory in use on the whole card: only its processes are watched",
            watched.card.name, watched.card.pci_address, watched.card.driver));
  }

  std::string sys_root_;
  Catalog& catalog_;
  ProcessWatch watch_;
  ClientScanner clients_;
  std::vector<WatchedCard> cards_;
  Timestamp next_find_cards_ = Timestamp::min();
  Timestamp next_discover_ = Timestamp::min();
  bool reported_ = false;
  Unseen reported_unseen_;
  std::size_t reported_unreadable_ = 0;
  SourceNotes notes_;
};

Result<std::unique_ptr<Source>> make(const SourcesConfig& config, Catalog& catalog) {
  auto source = std::make_unique<DrmSource>(config, catalog);
  if (!source->sees_gpus())
    return fail(
        fmt::format("no AMD, Intel or other GPU with memory of its own under {}/class/drm; if there is one, load its "
                    "kernel driver (amdgpu, xe, i915) and, in a container, mount /sys",
                    config.sys_root));
  return source;
}

}  // namespace
}  // namespace drm

extern const SourceInfo drm_source;
const SourceInfo drm_source = {"drm", "AMD, Intel and other GPUs, through /sys/class/drm and /proc/*/fdinfo",
                               drm::make};

}  // namespace vramtrack
