#include "source/log/record_sorter.hpp"

#include <algorithm>
#include <cstring>

namespace vramtrack {
namespace {

constexpr std::size_t kLeastWindow = 64 * kBytesPerKiB;

/// Precedes the text of a record in the spool.
struct Header {
  std::int64_t key;
  std::uint64_t line;
  std::uint32_t length;
  std::uint32_t complete;
};

}  // namespace

Status RecordSorter::add(const LogRecord& record) {
  if (!entries_.empty() && text_.size() + record.text.size() + entries_.size() * sizeof(Entry) > buffer_bytes_)
    if (auto ok = spill(); !ok) return ok;
  entries_.push_back(
      {record.key, record.line, text_.size(), static_cast<std::uint32_t>(record.text.size()), record.complete});
  text_ += record.text;
  ++size_;
  return {};
}

Status RecordSorter::spill() {
  if (!spool_) {
    auto made = Spool::make();
    if (!made) return fail(std::move(made.error()));
    spool_.emplace(std::move(*made));
  }
  std::stable_sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) { return a.key < b.key; });
  Run run;
  run.at = spool_->size_bytes();
  std::string out;
  for (const Entry& e : entries_) {
    const Header header{e.key, e.line, e.length, e.complete ? 1U : 0U};
    out.append(reinterpret_cast<const char*>(&header), sizeof header);
    out.append(text_, e.offset, e.length);
    if (out.size() < kBytesPerMiB) continue;
    if (auto ok = spool_->append(out); !ok) return ok;
    out.clear();
  }
  if (auto ok = spool_->append(out); !ok) return ok;
  run.end = spool_->size_bytes();
  runs_.push_back(std::move(run));
  text_.clear();
  entries_.clear();
  return {};
}

bool RecordSorter::later(std::size_t a, std::size_t b) const {
  // With equal keys, the records of the earlier run come first: they were added first.
  return runs_[a].front.key != runs_[b].front.key ? runs_[a].front.key > runs_[b].front.key : a > b;
}

Status RecordSorter::start() {
  started_ = true;
  if (runs_.empty()) {
    std::stable_sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) { return a.key < b.key; });
    return {};
  }
  if (!entries_.empty())
    if (auto ok = spill(); !ok) return ok;
  text_ = {};
  entries_ = {};
  const std::size_t window = std::max(kLeastWindow, buffer_bytes_ / runs_.size());
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    runs_[i].window.resize(window);
    auto more = advance(runs_[i]);
    if (!more) return fail(std::move(more.error()));
    if (*more) heap_.push_back(i);
  }
  std::make_heap(heap_.begin(), heap_.end(), [this](std::size_t a, std::size_t b) { return later(a, b); });
  return {};
}

Status RecordSorter::fill(Run& run, std::size_t least) {
  std::memmove(run.window.data(), run.window.data() + run.begin, run.filled - run.begin);
  run.filled -= run.begin;
  run.begin = 0;
  if (run.window.size() < least) run.window.resize(least);
  const std::size_t room = std::min<std::uint64_t>(run.window.size() - run.filled, run.end - run.at);
  auto n = spool_->read_at(run.at, {run.window.data() + run.filled, room});
  if (!n) return fail(std::move(n.error()));
  if (*n != room) return fail("a temporary file was cut off while it was being read");
  run.at += room;
  run.filled += room;
  return {};
}

/// Reads the run's next record into its front.
Result<bool> RecordSorter::advance(Run& run) {
  if (run.begin == run.filled && run.at == run.end) return false;
  if (run.filled - run.begin < sizeof(Header))
    if (auto ok = fill(run, sizeof(Header)); !ok) return fail(std::move(ok.error()));
  Header header;
  std::memcpy(&header, run.window.data() + run.begin, sizeof header);
  const std::size_t whole = sizeof header + header.length;
  if (run.filled - run.begin < whole)
    if (auto ok = fill(run, whole); !ok) return fail(std::move(ok.error()));
  run.front = {header.key, header.line, header.complete != 0,
               std::string_view(run.window.data() + run.begin + sizeof header, header.length)};
  run.begin += whole;
  return true;
}

Result<bool> RecordSorter::next(LogRecord& out) {
  if (!started_)
    if (auto ok = start(); !ok) return fail(std::move(ok.error()));
  if (runs_.empty()) {
    if (taken_ == entries_.size()) return false;
    const Entry& e = entries_[taken_++];
    out = {e.key, e.line, e.complete, std::string_view(text_).substr(e.offset, e.length)};
    return true;
  }
  const auto order = [this](std::size_t a, std::size_t b) { return later(a, b); };
  if (current_ != SIZE_MAX) {
    auto more = advance(runs_[current_]);
    if (!more) return fail(std::move(more.error()));
    if (*more) {
      heap_.push_back(current_);
      std::push_heap(heap_.begin(), heap_.end(), order);
    }
    current_ = SIZE_MAX;
  }
  if (heap_.empty()) return false;
  std::pop_heap(heap_.begin(), heap_.end(), order);
  current_ = heap_.back();
  heap_.pop_back();
  out = runs_[current_].front;
  return true;
}

}  // namespace vramtrack
