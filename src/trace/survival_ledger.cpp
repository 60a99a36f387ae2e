#include "trace/survival_ledger.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>

namespace vramtrack::trace {
namespace {

/// Shares of Limits::blocks: what may remain after thinning, and the most that the top sites may keep.
constexpr double kLeft = 0.75;
constexpr double kTopShare = 0.5;
/// With fewer blocks than this share, new blocks are exact again.
constexpr double kRoomy = 0.25;

}  // namespace

double SurvivalLedger::Block::stands_for() const {
  return std::max(static_cast<double>(bytes), static_cast<double>(threshold));
}

SurvivalLedger::SurvivalLedger(const Limits& limits) : limits_(limits) {}

/// Uniform in (0, 1]: splitmix64 of a counter and the address, so that the same events give the same figures.
double SurvivalLedger::draw(std::uint64_t address) {
  std::uint64_t z = (draws_ += 0x9e3779b97f4a7c15U) ^ address;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return (static_cast<double>((z ^ (z >> 31U)) >> 11U) + 1) * 0x1p-53;
}

SurvivalLedger::Account& SurvivalLedger::owner(const Block& block) {
  Account& account = accounts_[block.index];
  return account.serial == block.serial ? account : rest_;
}

/// The stretch that contains the window; a new one if the window is the newest.
SurvivalLedger::Windows& SurvivalLedger::windows_at(Account& account, std::uint32_t window) {
  std::vector<Windows>& all = account.windows;
  if (all.empty() || all.back().last < window) {
    if (all.size() == kMostCohorts) {
      // Keep the older half more coarsely: join it in pairs.
      std::size_t kept = 0;
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (i % 2 == 1 && i < kMostCohorts / 2) {
          Windows& into = all[kept - 1];
          into.last = all[i].last;
          into.allocated_bytes += all[i].allocated_bytes;
          into.live_bytes += all[i].live_bytes;
        } else {
          all[kept++] = all[i];
        }
      }
      all.resize(kept);
    }
    all.push_back({window, window, 0, 0});
    return all.back();
  }
  // Windows between two stretches were empty.
  const auto at = std::lower_bound(all.begin(), all.end(), window,
                                   [](const Windows& w, std::uint32_t sought) { return w.last < sought; });
  return *at;
}

void SurvivalLedger::count(const Block& block, double sign) {
  Account& account = owner(block);
  const double bytes = static_cast<double>(block.bytes), stands_for = block.stands_for();
  account.live_bytes += sign * stands_for;
  account.live_blocks += sign * (bytes > 0 ? stands_for / bytes : 1);
  // Variance of the estimator: (1 - p) / p² * bytes², with p = bytes / threshold.
  account.variance += sign * stands_for * (stands_for - bytes);
  windows_at(account, block.window).live_bytes += sign * stands_for;
  live_bytes_ += sign * stands_for;
}

/// Moves the account of the site that holds the least into rest_.
void SurvivalLedger::make_room() {
  const auto least = std::min_element(accounts_.begin(), accounts_.end(),
                                      [](const Account& a, const Account& b) { return a.live_bytes < b.live_bytes; });
  ++evicted_;
  rest_.live_bytes += least->live_bytes;
  rest_.live_blocks += least->live_blocks;
  rest_.variance += least->variance;
  rest_.allocated_bytes += least->allocated_bytes;
  rest_.last_s = std::max(rest_.last_s, least->last_s);
  std::vector<Windows> all;
  std::merge(rest_.windows.begin(), rest_.windows.end(), least->windows.begin(), least->windows.end(),
             std::back_inserter(all), [](const Windows& a, const Windows& b) { return a.first < b.first; });
  // Join overlapping stretches, then the oldest ones until there are few enough.
  std::vector<Windows> joined;
  const auto join = [](Windows& into, const Windows& next) {
    into.last = std::max(into.last, next.last);
    into.allocated_bytes += next.allocated_bytes;
    into.live_bytes += next.live_bytes;
  };
  for (const Windows& next : all)
    if (!joined.empty() && next.first <= joined.back().last)
      join(joined.back(), next);
    else
      joined.push_back(next);
  while (joined.size() > kMostCohorts) {
    std::vector<Windows> coarse;
    for (std::size_t i = 0; i < joined.size(); ++i)
      if (i % 2 == 1 && i < joined.size() / 2)
        join(coarse.back(), joined[i]);
      else
        coarse.push_back(joined[i]);
    joined = std::move(coarse);
  }
  rest_.windows = std::move(joined);
  indices_.erase(least->site);
  *least = {};
}

std::uint32_t SurvivalLedger::index_of_site(SiteNumber site) {
  const auto known = indices_.find(site);
  if (known != indices_.end()) return known->second;
  std::uint32_t index = 0;
  if (accounts_.size() < limits_.sites) {
    index = static_cast<std::uint32_t>(accounts_.size());
    accounts_.emplace_back();
  } else {
    make_room();
    const auto free = std::find_if(accounts_.begin(), accounts_.end(), [](const Account& a) { return a.serial == 0; });
    index = static_cast<std::uint32_t>(free - accounts_.begin());
  }
  accounts_[index].site = site;
  accounts_[index].serial = next_serial_++;
  indices_.emplace(site, index);
  return index;
}

void SurvivalLedger::allocate(std::uint64_t address, std::uint64_t bytes, SiteNumber site, double time_s,
                              std::uint64_t sampled_below) {
  free(address);
  if (static_cast<double>(blocks_.size()) < kRoomy * static_cast<double>(limits_.blocks))
    top_threshold_ = threshold_ = 0;
  const std::uint32_t index = index_of_site(site);
  Account& account = accounts_[index];
  const auto window = static_cast<std::uint32_t>(std::max(0.0, time_s) / kWindow_s);
  const double stands_for = static_cast<double>(std::max(bytes, sampled_below));
  account.allocated_bytes += stands_for;
  account.last_s = time_s;
  windows_at(account, window).allocated_bytes += stands_for;
  // A block that has passed a threshold drew a number below bytes / threshold, so it is thinned like one drawn
  // here.
  const double passed = stands_for > 0 ? static_cast<double>(bytes) / stands_for : 1;
  Block block{address,
              bytes,
              window,
              account.serial,
              index,
              static_cast<float>(draw(address) * passed),
              std::max(static_cast<float>(sampled_below), account.is_top ? top_threshold_ : threshold_)};
  if (block.threshold * block.draw > static_cast<float>(bytes)) return;
  blocks_.put(block);
  count(block, 1);
  if (blocks_.size() > limits_.blocks) thin();
}

void SurvivalLedger::free(std::uint64_t address) {
  Block* const known = blocks_.find(address);
  if (known == nullptr) return;
  count(*known, -1);
  blocks_.erase(known);
}

void SurvivalLedger::clear() {
  const Limits limits = limits_;
  *this = SurvivalLedger(limits);
}

void SurvivalLedger::mark_top() {
  std::vector<Account*> all;
  for (Account& account : accounts_) {
    account.is_top = false;
    all.push_back(&account);
  }
  const std::size_t count = std::min(limits_.top_sites, all.size());
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count), all.end(),
                    [](const Account* a, const Account* b) { return a->live_bytes > b->live_bytes; });
  for (std::size_t i = 0; i < count; ++i) all[i]->is_top = true;
}

/// Leaves kLeft of the blocks: raises the threshold of the sites that are not at the top, and that of the top sites
/// only if they alone have more than kTopShare.
void SurvivalLedger::thin() {
  mark_top();
  // The threshold at which a block is dropped, by group.
  std::vector<float> goes_at[2];
  blocks_.for_each([&](const Block& block) {
    goes_at[owner(block).is_top ? 1 : 0].push_back(static_cast<float>(block.bytes) / block.draw);
  });
  const auto most = static_cast<double>(limits_.blocks);
  const auto top = std::min(static_cast<std::size_t>(kTopShare * most), goes_at[1].size());
  const std::size_t budgets[] = {static_cast<std::size_t>(kLeft * most) - top, top};
  float* const thresholds[] = {&threshold_, &top_threshold_};
  for (std::size_t group = 0; group < 2; ++group) {
    std::vector<float>& all = goes_at[group];
    if (all.size() <= budgets[group]) continue;
    const auto at = all.begin() + static_cast<std::ptrdiff_t>(budgets[group]);
    std::nth_element(all.begin(), at, all.end(), std::greater<>());
    *thresholds[group] = std::max(*thresholds[group], std::nextafter(*at, std::numeric_limits<float>::infinity()));
  }
  std::vector<Block> kept;
  blocks_.for_each([&](const Block& block) {
    Block next = block;
    next.threshold = std::max(next.threshold, owner(block).is_top ? top_threshold_ : threshold_);
    if (next.threshold * next.draw <= static_cast<float>(next.bytes)) kept.push_back(next);
  });
  // Recompute the sums, which also removes accumulated rounding errors.
  const auto empty = [](Account& account) {
    account.live_bytes = account.live_blocks = account.variance = 0;
    for (Windows& windows : account.windows) windows.live_bytes = 0;
  };
  for (Account& account : accounts_) empty(account);
  empty(rest_);
  live_bytes_ = 0;
  blocks_ = {};
  for (const Block& block : kept) {
    blocks_.put(block);
    count(block, 1);
  }
}

SiteAccount SurvivalLedger::account(const Account& account) {
  SiteAccount out{account.site,
                  std::max(0.0, account.live_bytes),
                  std::max(0.0, account.live_blocks),
                  std::sqrt(std::max(0.0, account.variance)),
                  account.allocated_bytes,
                  account.last_s,
                  {}};
  for (const Windows& w : account.windows)
    out.cohorts.push_back({w.first * kWindow_s, (w.last + 1.0) * kWindow_s, w.allocated_bytes,
                           std::clamp(w.live_bytes, 0.0, w.allocated_bytes)});
  return out;
}

std::vector<SiteAccount> SurvivalLedger::accounts() const {
  std::vector<SiteAccount> all;
  for (const Account& each : accounts_)
    if (each.serial != 0) all.push_back(account(each));
  std::stable_sort(all.begin(), all.end(),
                   [](const SiteAccount& a, const SiteAccount& b) { return a.live_bytes > b.live_bytes; });
  return all;
}

std::size_t SurvivalLedger::memory_bytes() const {
  std::size_t bytes = 2 * std::max<std::size_t>(blocks_.size(), 64) * sizeof(Block) +
                      accounts_.capacity() * (sizeof(Account) + 64) + indices_.size() * 64;
  for (const Account& account : accounts_) bytes += account.windows.capacity() * sizeof(Windows);
  return bytes + rest_.windows.capacity() * sizeof(Windows);
}

SiteLifetimes lifetimes_of(const SiteAccount& account, std::string site, double now_s) {
  SiteLifetimes out{std::move(site),
                    account.live_bytes,
                    account.live_blocks,
                    account.error_bytes,
                    std::max(0.0, now_s - account.last_s),
                    {}};
  std::size_t stretch = kStretches_s.size();  // the stretch of the last entry in `out`
  for (const Cohort& cohort : account.cohorts) {
    const double youngest_s = std::max(0.0, now_s - cohort.end_s), oldest_s = std::max(0.0, now_s - cohort.begin_s);
    const double middle_s = (youngest_s + oldest_s) / 2;
    std::size_t mine = 0;
    while (middle_s >= kStretches_s[mine]) ++mine;
    if (mine != stretch) out.ages.push_back({youngest_s, oldest_s, 0, 0});
    stretch = mine;
    out.ages.back().youngest_s = youngest_s;
    out.ages.back().allocated_bytes += cohort.allocated_bytes;
    out.ages.back().live_bytes += cohort.live_bytes;
  }
  return out;
}

}  // namespace vramtrack::trace
