#include "trace/origin.hpp"

#include "trace/hash.hpp"

namespace vramtrack::trace {
namespace {

std::uint32_t hash_of(const Origin& origin) {
  std::uint64_t hash = hash_seed();
  for (const std::uint64_t part : {static_cast<std::uint64_t>(origin.stream), origin.pool.first, origin.pool.second,
                                   std::uint64_t{index_of(origin.metadata)} << 32 | index_of(origin.compile_context),
                                   std::uint64_t{index_of(origin.internal)}})
    hash = mixed((hash ^ part) * hash_seed());
  return static_cast<std::uint32_t>(hash);
}

}  // namespace

std::uint32_t Origins::intern(const Origin& origin) {
  // Events of one thread arrive in runs.
  if (last_ < all_.size() && all_[last_] == origin) return last_;
  const std::uint32_t hash = hash_of(origin);
  last_ = ids_.find(hash, [&](std::uint32_t id) { return all_[id] == origin; });
  if (last_ != IdTable::kNone) return last_;
  if (all_.size() == kMost) return last_ = static_cast<std::uint32_t>(kMost - 1);
  last_ = static_cast<std::uint32_t>(all_.size());
  all_.push_back(origin);
  ids_.insert(hash, last_);
  return last_;
}

}  // namespace vramtrack::trace
