#include "act/notify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "act/channel.hpp"
#include "act/outbox.hpp"
#include "act/queue_file.hpp"
#include "core/out_of_memory.hpp"

namespace vramtrack::act {
namespace {

/// While something waits, the time of day is checked this often, because the clock may have been set.
constexpr std::chrono::seconds kLook{30};
/// Saving that failed, and work for which memory was lacking, is retried after this time.
constexpr std::chrono::seconds kAgain{1};
constexpr std::size_t kMostInbox = 4096;
constexpr std::size_t kUsualInbox = 64;  ///< memory for this many is always reserved
constexpr std::size_t kMostWarnings = 64;

Severity severity_of(const std::string& word) {
  for (const Severity s : {Severity::watch, Severity::warning, Severity::critical})
    if (word == to_string(s)) return s;
  return Severity::watch;
}

OutboxRules rules_of(const NotifierOptions& options) {
  OutboxRules rules;
  rules.min_severity = severity_of(options.config.min_severity);
  rules.resolved = options.config.resolved;
  rules.max_per_hour = static_cast<double>(options.config.max_per_hour);
  rules.retry_s = options.config.retry_seconds;
  rules.keep_s = options.config.keep_hours * 3600;
  rules.host = options.host;
  rules.simulated = options.simulated;
  rules.kept = !options.queue_path.empty();
  return rules;
}

/// One channel and its thread; it handles at most one message at a time.
struct Courier {
  std::string name;
  Deliver deliver;
  std::optional<Message> job;
  std::optional<std::pair<std::string, Outcome>> result;
  bool busy = false;
  std::thread thread;
};

/// The result of an attempt.
struct AttemptResult {
  const Courier* channel = nullptr;
  std::string id;
  Outcome outcome;
};

}  // namespace

std::string notify_queue_path(const std::string& store_path) {
  return store_path + ".notify.json";
}

bool notifies(const NotifyConfig& config) {
  return std::any_of(channels().begin(), channels().end(), [&](const ChannelInfo* c) { return c->configured(config); });
}

struct Notifier::Core {
  NotifierOptions options;
  OutboxRules rules;
  std::optional<QueueFile> file;
  std::unique_ptr<Outbox> outbox;  ///< used only by the keeper once it runs; replaced as a whole
  std::vector<std::unique_ptr<Courier>> couriers;
  std::vector<Note> notes;             ///< used by the keeper: taken from the inbox, not in the outbox yet
  std::vector<AttemptResult> results;  ///< likewise, results of attempts
  std::thread keeper;
  std::atomic<bool> stop{false};  ///< for the couriers: aborts attempts in progress

  mutable std::mutex mutex;  ///< guards the members below; never held during input or output
  std::condition_variable changed;
  std::vector<Note> inbox;
  std::uint64_t inbox_lost = 0;
  std::vector<std::string> warnings;
  Counts counts;
  bool end = false;   ///< for the keeper, once the couriers have stopped: their last results are kept
  bool idle = false;  ///< neither the keeper nor any courier has anything to do now

  explicit Core(NotifierOptions given, std::vector<std::string> channels)
      : options(std::move(given)),
        rules(rules_of(options)),
        outbox(std::make_unique<Outbox>(rules, std::move(channels))) {}

  ~Core() { end_threads(); }

  /// Never throws: if memory runs out, the warning is dropped.
  void warn(std::string_view text) noexcept {
    try {
      if (warnings.size() < kMostWarnings) warnings.emplace_back(text);
    } catch (const std::bad_alloc&) {
    }
  }

  /// A file that cannot be read or parsed is renamed and kept, because saving would overwrite it.
  Status load() {
    const auto text = file->read();
    if (text && !*text) return {};
    const Status read = text ? outbox->load(**text, options.now()) : fail(text.error());
    if (read) return {};
    const auto aside = file->put_aside();
    if (!aside) return fail(aside.error().during(read.error().message));
    warn(fmt::format("the queue of notifications {} ({}): it was moved to {}", text ? "is damaged" : "cannot be read",
                     read.error().message, *aside));
    return {};
  }

  Status start() {
    // The threads do not allocate memory unless they need it.
    inbox.reserve(kUsualInbox);
    notes.reserve(kUsualInbox);
    results.reserve(couriers.size());
    try {
      for (const auto& courier : couriers) courier->thread = std::thread([this, &c = *courier] { carry(c); });
      keeper = std::thread([this] { keep(); });
    } catch (const std::system_error& e) {
      return fail(fmt::format("no thread can be started for notifications: {}", e.what()));
    }
    return {};
  }

  /// Aborts attempts in progress and keeps their results.
  void end_threads() {
    {
      const std::scoped_lock lock(mutex);
      stop = true;
    }
    changed.notify_all();
    for (const auto& courier : couriers)
      if (courier->thread.joinable()) courier->thread.join();
    {
      const std::scoped_lock lock(mutex);
      end = true;
    }
    changed.notify_all();
    if (keeper.joinable()) keeper.join();
  }

  /// A courier's loop: takes a message, delivers it, returns the outcome.
  void carry(Courier& courier) {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return stop || courier.job; });
      if (stop) return;
      Message message = *std::exchange(courier.job, {});
      lock.unlock();
      Outcome outcome;
      try {
        outcome = courier.deliver(message);
      } catch (const std::exception&) {  // before the message was sent: no memory is allocated after delivery
        outcome = {Outcome::Kind::retry, kOutOfMemory, {}};
      }
      lock.lock();
      ++(outcome.kind == Outcome::Kind::delivered ? counts.delivered : counts.failed);
      courier.result.emplace(std::move(message.id), std::move(outcome));
      courier.busy = false;
      changed.notify_all();
    }
  }

  [[nodiscard]] bool has_work() const {
    return !inbox.empty() ||
           std::any_of(couriers.begin(), couriers.end(), [](const auto& c) { return c->result.has_value(); });
  }

  /// Applies everything that happened since the last call or, if memory is lacking, nothing (returns false).
  bool apply(Timestamp now) noexcept {
    try {
      auto next = std::make_unique<Outbox>(*outbox);
      for (const Note& note : notes) next->take(note, now);
      for (const AttemptResult& result : results)
        next->take_outcome(result.channel->name, result.id, result.outcome, now);
      next->tick(now);
      outbox = std::move(next);  // a pointer: moving lists may allocate memory
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }

  void keep() {
    std::uint64_t saved = 0;
    bool save_failed = false;
    int tries_at_end = 0;
    std::unique_lock lock(mutex);
    for (;;) {
      // Inputs that could not be applied last time come first.
      if (notes.empty()) notes.swap(inbox);
      if (results.empty())
        for (const auto& c : couriers)
          if (c->result) {
            results.push_back({c.get(), std::move(c->result->first), std::move(c->result->second)});
            c->result.reset();
          }
      lock.unlock();

      const Timestamp now = options.now();
      const bool applied = apply(now);
      if (applied) {
        notes.clear();
        results.clear();
      }
      Status written;
      if (file && outbox->revision() != saved) {
        written = or_out_of_memory([&] { return file->write(outbox->save()); });
        if (written) saved = outbox->revision();
      }

      lock.lock();
      add_warnings(written || save_failed ? std::string() : written.error().message);
      save_failed = !written;
      counts.waiting = outbox->messages().size();
      counts.dropped = outbox->dropped();
      counts.incidents = outbox->incidents();
      if (end && !has_work() && ((applied && written) || ++tries_at_end > 3)) return;
      // A message whose outcome is not in the outbox yet would be sent again.
      const bool sent = applied && hand_out(now);
      const bool busy =
          std::any_of(couriers.begin(), couriers.end(), [](const auto& c) { return c->busy || c->result; });
      idle = !busy && inbox.empty() && sent;
      if (idle) changed.notify_all();
      const auto woken = [this] { return end || has_work(); };
      // While a courier is busy, its outcome wakes this thread, so its due messages need not.
      const std::chrono::nanoseconds least = std::chrono::milliseconds(busy ? 500 : 10);
      if (!sent)
        changed.wait_for(lock, kAgain);
      else if (const auto wake = outbox->wake())
        changed.wait_for(lock, std::clamp<std::chrono::nanoseconds>(*wake - now, least, most_wait(save_failed)), woken);
      else if (save_failed)
        changed.wait_for(lock, kAgain, woken);
      else
        changed.wait(lock, woken);
    }
  }

  static std::chrono::nanoseconds most_wait(bool save_failed) { return save_failed ? kAgain : kLook; }

  void add_warnings(const std::string& unsaved) noexcept {
    try {
      for (const std::string& text : outbox->take_warnings()) warn(text);
      if (!unsaved.empty()) warn("notifications would not survive a restart: " + unsaved);
    } catch (const std::bad_alloc&) {
    }
  }

  /// Gives each free courier its due message; false if memory was lacking.
  bool hand_out(Timestamp now) noexcept {
    try {
      for (const auto& c : couriers) {
        const Message* message = c->busy || c->result || stop ? nullptr : outbox->due(c->name, now);
        if (message == nullptr) continue;
        c->job = *message;
        c->busy = true;
        changed.notify_all();
      }
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }
};

Notifier::Notifier(std::unique_ptr<Core> core) : core_(std::move(core)) {}

Notifier::~Notifier() = default;

Result<std::unique_ptr<Notifier>> Notifier::open(const NotifierOptions& options) {
  return or_out_of_memory([&]() -> Result<std::unique_ptr<Notifier>> {
    const NotifyConfig& config = options.config;
    std::vector<std::string> names;
    for (const ChannelInfo* channel : channels())
      if (channel->configured(config)) names.emplace_back(channel->name);
    auto core = std::make_unique<Core>(options, names);
    Core* const c = core.get();
    for (const ChannelInfo* channel : channels()) {
      if (!channel->configured(config)) continue;
      auto deliver = channel->make({c->options.config, c->rules, c->stop});
      if (!deliver) return fail(deliver.error());
      c->couriers.push_back(std::make_unique<Courier>());
      c->couriers.back()->name = channel->name;
      c->couriers.back()->deliver = std::move(*deliver);
    }
    if (!options.queue_path.empty()) {
      auto file = QueueFile::open(options.queue_path);
      if (!file) return fail(file.error());
      c->file.emplace(std::move(*file));
      if (const Status loaded = c->load(); !loaded) return fail(loaded.error());
    }
    if (const Status started = c->start(); !started) return fail(started.error());
    return std::unique_ptr<Notifier>(new Notifier(std::move(core)));
  });
}

void Notifier::notify(Note note) {
  {
    const std::scoped_lock lock(core_->mutex);
    core_->idle = false;
    bool taken = core_->inbox.size() < kMostInbox;
    try {
      if (taken) core_->inbox.push_back(std::move(note));
    } catch (const std::bad_alloc&) {
      taken = false;
    }
    if (!taken && core_->inbox_lost++ == 0)
      core_->warn("alerts arrive faster than they can be queued: some are not sent");
  }
  core_->changed.notify_all();
}

std::size_t Notifier::flush(double at_most_s) {
  std::unique_lock lock(core_->mutex);
  core_->changed.wait_for(lock, from_seconds(at_most_s), [this] { return core_->idle && core_->inbox.empty(); });
  return core_->counts.waiting;
}

Timestamp Notifier::now() const {
  return core_->options.now();
}

std::vector<std::string> Notifier::take_warnings() {
  const std::scoped_lock lock(core_->mutex);
  return std::exchange(core_->warnings, {});
}

Notifier::Counts Notifier::counts() const {
  const std::scoped_lock lock(core_->mutex);
  return core_->counts;
}

}  // namespace vramtrack::act
