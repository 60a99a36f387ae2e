#include "trace/category.hpp"

#include <algorithm>

#include "core/order.hpp"

namespace vramtrack::trace {
namespace {

constexpr std::array<std::string_view, kCategories> kNames = {
    "weights",       "gradients", "optimizer_state", "activations", "kv_cache", "other_cache", "workspaces",
    "communication", "inputs",    "contexts",        "code",        "graphs",   "managed",     "unknown"};
constexpr std::array<std::string_view, kCategories> kWords = {
    "weights",       "gradients", "optimizer state", "activations", "KV cache", "other caches", "workspaces",
    "communication", "inputs",    "contexts",        "code",        "graphs",   "managed",      "unknown"};

using enum RuleStrength;
constexpr CategoryRule kRules[] = {
#define VRAMTRACK_CATEGORY(category, strength, function, file, reason) \
  {Category::category, strength, function, file, reason},
#include "trace/categories.def"
#undef VRAMTRACK_CATEGORY
};

bool matches(std::string_view pattern, std::string_view text) {
  if (pattern.starts_with('=')) {  // Python names may be qualified: Module.cuda.<locals>.<lambda>
    const std::string_view name = pattern.substr(1);
    return text.ends_with(name) && (text.size() == name.size() || text[text.size() - name.size() - 1] == '.');
  }
  return text.find(pattern) != std::string_view::npos;
}

}  // namespace

std::string_view category_name(Category category) {
  return kNames[static_cast<std::size_t>(category)];
}

std::string_view category_words(Category category) {
  return kWords[static_cast<std::size_t>(category)];
}

std::optional<Category> parse_category(std::string_view name) {
  const auto* const known = std::find(kNames.begin(), kNames.end(), name);
  if (known == kNames.end()) return {};
  return static_cast<Category>(known - kNames.begin());
}

std::span<const CategoryRule> category_rules() {
  return kRules;
}

StackCategories::FrameRules StackCategories::rules_of(FrameId frame) {
  if (index_of(frame) >= frames_.size()) frames_.resize(index_of(frame) + 1);
  FrameRules& found = frames_[index_of(frame)];
  if (found.is_known) return found;
  found.is_known = true;
  const std::string_view function = symbols_->name(frame), file = symbols_->file(frame);
  const auto rules = category_rules();
  found.is_own = is_python(*symbols_, frame) && !is_framework(*symbols_, frame);
  for (std::size_t i = 0; i < rules.size() && found.sure < 0; ++i) {
    const bool is_hint = rules[i].strength == hint;
    if (is_hint && found.hint >= 0) continue;
    if (!matches(rules[i].function, function) || !matches(rules[i].file, file)) continue;
    (is_hint ? found.hint : found.sure) = static_cast<std::int16_t>(i);
  }
  return found;
}

const CategoryRule* StackCategories::rule_of(StackId stack) {
  const auto [known, is_new] = stacks_.try_emplace(index_of(stack), std::int16_t{-1});
  std::int16_t& rule = known->second;
  bool is_own_within = false;
  if (is_new)
    for (const FrameId frame : symbols_->stack(stack)) {
      const FrameRules its = rules_of(frame);
      if (its.sure >= 0) {
        const bool is_call = category_rules()[static_cast<std::size_t>(its.sure)].strength == calls_back;
        if (!is_call || !is_own_within) rule = its.sure;
        break;
      }
      if (its.hint >= 0) rule = its.hint;  // the last one is the outermost
      is_own_within = is_own_within || its.is_own;
    }
  return rule < 0 ? nullptr : &category_rules()[static_cast<std::size_t>(rule)];
}

void CategoryTotals::add_reported(Category category, StringId name, std::int64_t bytes, std::int64_t blocks) {
  add(category, bytes, blocks);
  CategoryBytes& held = by_[static_cast<std::size_t>(category)];
  held.reported_bytes += bytes;
  if (name != kNoText) held.named.push_back({name, bytes});
}

void CategoryTotals::sort() {
  for (CategoryBytes& held : by_) {
    // Several blocks may have the same name, such as shards and lists.
    order(held.named, [](const NamedBytes& a, const NamedBytes& b) { return a.name < b.name; });
    std::size_t last = 0;
    for (std::size_t i = 1; i < held.named.size(); ++i)
      if (held.named[i].name == held.named[last].name)
        held.named[last].bytes += held.named[i].bytes;
      else
        held.named[++last] = held.named[i];
    if (!held.named.empty()) held.named.resize(last + 1);
    order(held.named, [](const NamedBytes& a, const NamedBytes& b) { return a.bytes > b.bytes; });
  }
}

std::int64_t CategoryTotals::bytes() const {
  std::int64_t sum = 0;
  for (const CategoryBytes& held : by_) sum += held.bytes;
  return sum;
}

std::vector<Category> CategoryTotals::held() const {
  std::vector<Category> out;
  for (std::size_t i = 0; i < kCategories; ++i)
    if (by_[i].bytes != 0 || by_[i].blocks != 0) out.push_back(static_cast<Category>(i));
  std::stable_sort(out.begin(), out.end(), [this](Category a, Category b) {
    if ((a == Category::unknown) != (b == Category::unknown)) return b == Category::unknown;
    return (*this)[a].bytes > (*this)[b].bytes;
  });
  return out;
}

CategoryTotals categorize(std::span<const StackBytes> profile, std::span<const ReportedBytes> reported,
                          StackCategories& stacks) {
  CategoryTotals out;
  std::unordered_map<std::uint32_t, StackBytes> reported_of;
  for (const ReportedBytes& each : reported) {
    out.add_reported(each.category, each.name, each.bytes, each.blocks);
    StackBytes& sum = reported_of[index_of(each.stack)];
    sum.bytes += each.bytes;
    sum.blocks += each.blocks;
  }
  for (const StackBytes& held : profile) {
    StackBytes rest = held;
    if (const auto known = reported_of.find(index_of(held.stack)); known != reported_of.end()) {
      rest.bytes -= known->second.bytes;
      rest.blocks -= known->second.blocks;
    }
    if (rest.bytes != 0 || rest.blocks != 0) out.add(stacks.of(held.stack), rest.bytes, rest.blocks);
  }
  out.sort();
  return out;
}

CategoryTotals categories_of(const Snapshot& snapshot, StackCategories& stacks, std::optional<std::uint32_t> device) {
  CategoryTotals out;
  for (const Segment& segment : snapshot.segments) {
    if (device && segment.device != *device) continue;
    auto reported =
        std::lower_bound(snapshot.block_categories.begin(), snapshot.block_categories.end(), segment.first_block,
                         [](const BlockCategory& a, std::size_t block) { return a.block < block; });
    for (std::size_t i = segment.first_block; i < segment.first_block + segment.block_count; ++i) {
      const Block& block = snapshot.blocks[i];
      const bool is_reported = reported != snapshot.block_categories.end() && reported->block == i;
      const auto bytes = static_cast<std::int64_t>(block.requested_bytes);
      if (block.state == BlockState::active) {
        if (is_reported)
          out.add_reported(reported->category, reported->name, bytes, 1);
        else
          out.add(stacks.of(block.stack), bytes, 1);
      }
      if (is_reported) ++reported;
    }
  }
  out.sort();
  return out;
}

}  // namespace vramtrack::trace
