#include "trace/keeper_looks.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "core/order.hpp"
#include "core/printable.hpp"

namespace vramtrack::trace {
namespace {

constexpr std::size_t kMostKept = 1U << 16U;

}  // namespace

void KeeperLooks::take(const probe::Slot& slot, const LiveCell* cell) {
  if (cell == nullptr || open_.size() >= kMostKept) return;
  open_.push_back({probe::number_of(slot), cell->site, probe::flags_of(slot), slot.address, cell->time_us, cell->held(),
                   slot.bytes});
}

void KeeperLooks::end(const probe::Slot& slot, const std::vector<CallSite>& sites, const ProcessNames& names) {
  last_ = {probe::time_us_of(slot), slot.address != 0 || slot.bytes != 0,
           std::string(printable(names.text(probe::number_of(slot))))};
  if (last_->was_made) take_in(last_->time_us - std::min(slot.bytes, last_->time_us), sites, names);
  open_.clear();
}

void KeeperLooks::take_in(std::uint64_t begun_us, const std::vector<CallSite>& sites, const ProcessNames& names) {
  sites_.assign(sites.size(), {});
  for (std::size_t i = 0; i < sites.size(); ++i) sites_[i].live_blocks = sites[i].live.blocks;
  std::map<std::uint32_t, std::int64_t> named;  // sampled bytes, by text
  std::map<std::uint32_t, std::map<std::uint32_t, std::vector<const KeptBlock*>>> by_site;
  for (const KeptBlock& block : open_) {
    if ((block.flags & probe::kUnheldBlock) != 0) {
      ++sites_[block.site].unheld;
    } else if ((block.flags & probe::kUnaskedBlock) != 0) {
      ++sites_[block.site].unasked;
    } else {
      named[block.text] += block.held.bytes;
      by_site[block.site][block.text].push_back(&block);
    }
  }
  for (auto& [site, by_text] : by_site) {
    std::vector<std::pair<FoundKeeper, std::set<std::uint64_t>>> found;
    for (auto& [number, blocks] : by_text) {
      auto& [keeper, addresses] = found.emplace_back();
      std::vector<std::uint64_t> births_us;
      for (const KeptBlock* block : blocks) {
        addresses.insert(block->address);
        births_us.push_back(block->time_us);
        keeper.stands_for.bytes += block->held.bytes;
        keeper.stands_for.blocks += block->held.blocks;
      }
      const double factor = static_cast<double>(std::min(blocks.front()->all_bytes, kMostBytes)) /
                            static_cast<double>(std::max<std::int64_t>(1, named[number]));
      for (std::int64_t* each : {&keeper.stands_for.bytes, &keeper.stands_for.blocks})
        *each = std::llround(std::min(static_cast<double>(*each) * factor, static_cast<double>(kMostBytes)));
      std::sort(births_us.begin(), births_us.end());
      keeper.first_us = births_us.front();
      keeper.middle_us = births_us[births_us.size() / 2];
      keeper.last_us = births_us.back();
      keeper.words = printable(names.text(number));
      keeper.is_rooted = (blocks.front()->flags & probe::kRootedKeeper) != 0;
      keeper.has_graphs = (blocks.front()->flags & probe::kGraphKeeper) != 0;
      keeper.blocks = addresses.size();
      keeper.looked_us = begun_us;
      keeper.live_blocks = sites[site].live.blocks;
    }
    order(found, [](const auto& a, const auto& b) {
      return std::pair(a.first.is_rooted, a.first.blocks) > std::pair(b.first.is_rooted, b.first.blocks);
    });
    std::vector<FoundKeeper>& its = keepers_[site];
    // A reference cycle may outlive the function with the variable that led to it, until garbage collection.
    const auto is_known = [](const FoundKeeper& keeper) { return keeper.is_rooted && keeper.blocks > 1; };
    const bool is_rooted =
        std::any_of(found.begin(), found.end(), [](const auto& each) { return each.first.is_rooted; });
    if (!is_rooted && std::any_of(its.begin(), its.end(), is_known)) continue;
    its.clear();
    for (std::size_t i = 0; i < found.size(); ++i) {
      const auto keeps_the_same = [&](const auto& other) {
        const auto in_both = std::count_if(found[i].second.begin(), found[i].second.end(),
                                           [&](std::uint64_t address) { return other.second.contains(address); });
        return 4 * static_cast<std::size_t>(in_both) > found[i].second.size();
      };
      if (std::none_of(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(i), keeps_the_same))
        its.push_back(found[i].first);
    }
  }
}

}  // namespace vramtrack::trace
