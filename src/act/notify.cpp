#include "act/notify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "act/http_post.hpp"
#include "act/outbox.hpp"
#include "act/queue_file.hpp"
#include "act/run_program.hpp"

namespace vramtrack::act {
namespace {

/// While something waits, the time of day is looked at this often: it may have been set.
constexpr std::chrono::seconds kLook{30};
constexpr std::size_t kMostInbox = 4096;
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

/// The first line of the file.
Result<std::string> read_token(const std::string& path) {
  std::ifstream in(path);
  std::string token;
  if (!in || !std::getline(in, token))
    return fail(fmt::format(
        "notify.webhook-token-file {}: cannot be read or is empty; put the token into its first line", path));
  while (!token.empty() && (token.back() == '\r' || token.back() == ' ')) token.pop_back();
  if (token.empty() || std::any_of(token.begin(), token.end(), [](char c) { return c <= ' ' || c == 0x7f; }))
    return fail(fmt::format("notify.webhook-token-file {}: its first line is not a token", path));
  return token;
}

using Deliver = std::function<Outcome(const Message&)>;

/// One channel and its thread; it has at most one message at a time.
struct Courier {
  std::string name;
  Deliver deliver;
  std::optional<Message> job;
  std::optional<std::pair<std::string, Outcome>> result;
  bool busy = false;
  std::thread thread;
};

}  // namespace

std::string notify_queue_path(const std::string& store_path) {
  return store_path + ".notify.json";
}

bool notifies(const NotifyConfig& config) {
  return !config.webhook.empty() || !config.slack.empty() || !config.exec.empty();
}

struct Notifier::Core {
  NotifierOptions options;
  OutboxRules rules;
  std::optional<QueueFile> file;
  Outbox outbox;  ///< the keeper's alone once it runs
  std::vector<std::unique_ptr<Courier>> couriers;
  std::thread keeper;
  std::atomic<bool> stop{false};  ///< the couriers': cuts off what is under way

  mutable std::mutex mutex;  ///< of what follows; never held over input or output
  std::condition_variable changed;
  std::vector<Note> inbox;
  std::uint64_t inbox_lost = 0;
  std::vector<std::string> warnings;
  Counts counts;
  bool end = false;   ///< the keeper's, once the couriers have stopped: their last results are kept
  bool idle = false;  ///< the keeper has nothing to do now, nor has any courier

  explicit Core(NotifierOptions given, std::vector<std::string> channels)
      : options(std::move(given)), rules(rules_of(options)), outbox(rules, std::move(channels)) {}

  void warn(std::string_view text) {
    if (warnings.size() < kMostWarnings) warnings.emplace_back(text);
  }

  void load() {
    const auto text = file->read();
    if (!text) return warn(text.error().message);
    if (!*text) return;
    if (const Status read = outbox.load(**text, options.now()); !read)
      warn(fmt::format("the queue of notifications is damaged ({}): it was moved to {}", read.error().message,
                       file->put_aside()));
  }

  void start() {
    for (const auto& courier : couriers) courier->thread = std::thread([this, &c = *courier] { carry(c); });
    keeper = std::thread([this] { keep(); });
  }

  /// A courier's life: takes a message, tells, hands the outcome back.
  void carry(Courier& courier) {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return stop || courier.job; });
      if (stop) return;
      const Message message = *std::exchange(courier.job, {});
      lock.unlock();
      Outcome outcome = courier.deliver(message);
      lock.lock();
      ++(outcome.kind == Outcome::Kind::delivered ? counts.delivered : counts.failed);
      courier.result = {message.id, std::move(outcome)};
      courier.busy = false;
      changed.notify_all();
    }
  }

  [[nodiscard]] bool has_work() const {
    return !inbox.empty() ||
           std::any_of(couriers.begin(), couriers.end(), [](const auto& c) { return c->result.has_value(); });
  }

  void keep() {
    std::uint64_t saved = 0;
    bool save_failed = false;
    std::unique_lock lock(mutex);
    for (;;) {
      const std::vector<Note> notes = std::exchange(inbox, {});
      std::vector<std::pair<std::string, std::pair<std::string, Outcome>>> results;
      for (const auto& c : couriers)
        if (c->result) results.emplace_back(c->name, *std::exchange(c->result, {}));
      lock.unlock();

      const Timestamp now = options.now();
      for (const Note& note : notes) outbox.take(note, now);
      for (const auto& [name, result] : results) outbox.settle(name, result.first, result.second, now);
      outbox.tick(now);
      std::string unsaved;
      if (file && outbox.revision() != saved) {
        if (const Status written = file->write(outbox.save()); !written) unsaved = written.error().message;
        saved = outbox.revision();
      }

      lock.lock();
      for (std::string& text : outbox.take_warnings()) warn(std::move(text));
      if (!unsaved.empty() && !save_failed) warn("notifications would not survive a restart: " + unsaved);
      save_failed = !unsaved.empty();
      counts.waiting = outbox.messages().size();
      counts.dropped = outbox.dropped();
      counts.incidents = outbox.incidents();
      if (end && !has_work()) return;
      bool busy = false;
      for (const auto& c : couriers) {
        if (const Message* message = c->busy || stop ? nullptr : outbox.due(c->name, now)) {
          c->job = *message;
          c->busy = true;
          changed.notify_all();
        }
        busy = busy || c->busy || c->result;
      }
      idle = !busy && inbox.empty();
      if (idle) changed.notify_all();
      const auto woken = [this] { return end || has_work(); };
      // While a courier is under way its outcome wakes this; what is due for it need not.
      const std::chrono::nanoseconds least = std::chrono::milliseconds(busy ? 500 : 10);
      if (const auto wake = outbox.wake())
        changed.wait_for(lock, std::clamp<std::chrono::nanoseconds>(*wake - now, least, kLook), woken);
      else
        changed.wait(lock, woken);
    }
  }
};

Notifier::Notifier(std::unique_ptr<Core> core) : core_(std::move(core)) {}

Notifier::~Notifier() {
  {
    const std::scoped_lock lock(core_->mutex);
    core_->stop = true;
  }
  core_->changed.notify_all();
  for (const auto& courier : core_->couriers) courier->thread.join();
  {
    const std::scoped_lock lock(core_->mutex);
    core_->end = true;
  }
  core_->changed.notify_all();
  core_->keeper.join();
}

Result<std::unique_ptr<Notifier>> Notifier::open(const NotifierOptions& options) {
  const NotifyConfig& config = options.config;
  std::vector<std::string> names;
  for (const auto& [name, used] : {std::pair{"webhook", !config.webhook.empty()},
                                   std::pair{"slack", !config.slack.empty()}, std::pair{"exec", !config.exec.empty()}})
    if (used) names.emplace_back(name);
  auto core = std::make_unique<Core>(options, names);
  Core* const c = core.get();
  const auto add = [c](const char* name, Deliver deliver) {
    c->couriers.push_back(std::make_unique<Courier>());
    c->couriers.back()->name = name;
    c->couriers.back()->deliver = std::move(deliver);
  };
  for (const auto& [name, address] : {std::pair{"webhook", &config.webhook}, std::pair{"slack", &config.slack}}) {
    if (address->empty()) continue;
    const bool is_slack = address == &config.slack;
    auto url = parse_url(*address);
    if (!url) return fail(url.error().during(fmt::format("notify.{}", name)));
    if (const Status can = can_post(*url); !can) return fail(can.error().during(fmt::format("notify.{}", name)));
    HttpTarget target{std::move(*url), {}, config.ca_file, config.timeout_seconds};
    if (!is_slack && !config.webhook_token_file.empty()) {
      auto token = read_token(config.webhook_token_file);
      if (!token) return fail(token.error());
      target.token = std::move(*token);
    }
    add(name, [c, target, is_slack](const Message& m) {
      return http_post(target, is_slack ? slack_body(m, c->rules) : webhook_body(m, c->rules), c->stop);
    });
  }
  if (!config.exec.empty()) {
    if (config.exec.front().empty()) return fail("notify.exec: its first element, the program, is empty");
    add("exec", [c, argv = config.exec, limit = config.timeout_seconds](const Message& m) {
      return run_program(argv, webhook_body(m, c->rules) + '\n', variables_of(m, c->rules), limit, c->stop);
    });
  }
  if (!options.queue_path.empty()) {
    auto file = QueueFile::open(options.queue_path);
    if (!file) return fail(file.error());
    c->file.emplace(std::move(*file));
    c->load();
  }
  c->start();
  return std::unique_ptr<Notifier>(new Notifier(std::move(core)));
}

void Notifier::tell(Note note) {
  {
    const std::scoped_lock lock(core_->mutex);
    core_->idle = false;
    if (core_->inbox.size() < kMostInbox)
      core_->inbox.push_back(std::move(note));
    else if (core_->inbox_lost++ == 0)
      core_->warn("alerts come faster than they can be queued: some are not sent");
  }
  core_->changed.notify_all();
}

std::size_t Notifier::settle(double at_most_s) {
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
