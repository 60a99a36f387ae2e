// Category: the purpose of memory. It is derived from the frames of the allocating stack (categories.def), unless the
// program itself reported one for a block, which takes precedence. Every live byte is in exactly one category.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trace/profile.hpp"
#include "trace/snapshot.hpp"
#include "trace/symbols.hpp"

namespace vramtrack::trace {

/// The strength of a rule; categories.def explains them.
enum class RuleStrength : std::uint8_t { sure, hint, calls_back };
struct CategoryRule {
  Category category = Category::unknown;
  RuleStrength strength = RuleStrength::hint;
  std::string_view function, file, reason;
};
std::span<const CategoryRule> category_rules();

/// The categories of the stacks of one Symbols, each looked up once. Not thread-safe. Memory: 8 bytes per frame and
/// about 20 per stack.
class StackCategories {
 public:
  /// `symbols` must outlive it.
  explicit StackCategories(const Symbols& symbols) : symbols_(&symbols) {}
  Category of(StackId stack) {
    const CategoryRule* const rule = rule_of(stack);
    return rule == nullptr ? Category::unknown : rule->category;
  }
  /// The rule that decided; null if no frame matches any.
  const CategoryRule* rule_of(StackId stack);

 private:
  struct FrameRules {
    bool is_known = false;
    bool is_own = false;                ///< Python code other than PyTorch's
    std::int16_t sure = -1, hint = -1;  ///< index of the matching rule; -1: none
  };
  FrameRules rules_of(FrameId frame);

  const Symbols* symbols_;
  std::vector<FrameRules> frames_;
  std::unordered_map<std::uint32_t, std::int16_t> stacks_;
};

struct NamedBytes {
  StringId name = kNoText;
  std::int64_t bytes = 0;
};

struct CategoryBytes {
  std::int64_t bytes = 0;
  std::int64_t blocks = 0;
  std::int64_t reported_bytes = 0;  ///< the part that the program reported
  std::vector<NamedBytes> named;    ///< the named part of reported_bytes; largest first after CategoryTotals::sort()
};

/// Bytes by category. Their sum equals what was added.
class CategoryTotals {
 public:
  void add(Category category, std::int64_t bytes, std::int64_t blocks) {
    CategoryBytes& held = by_[static_cast<std::size_t>(category)];
    held.bytes += bytes;
    held.blocks += blocks;
  }
  void add_reported(Category category, StringId name, std::int64_t bytes, std::int64_t blocks);
  void sort();
  [[nodiscard]] const CategoryBytes& operator[](Category category) const {
    return by_[static_cast<std::size_t>(category)];
  }
  [[nodiscard]] std::int64_t bytes() const;
  /// The categories that hold anything, most bytes first; unknown last.
  [[nodiscard]] std::vector<Category> held() const;

 private:
  std::array<CategoryBytes, kCategories> by_;
};

/// What the program reported about blocks whose stack, or call site, is `stack`.
struct ReportedBytes {
  StackId stack = kNoStack;
  Category category = Category::unknown;
  StringId name = kNoText;
  std::int64_t bytes = 0;
  std::int64_t blocks = 0;
};

/// Divides `profile` by category: for each stack as in `reported`, and the rest by its frames.
CategoryTotals categorize(std::span<const StackBytes> profile, std::span<const ReportedBytes> reported,
                          StackCategories& stacks);

/// Requested bytes of the live blocks of one device, or of all.
CategoryTotals categories_of(const Snapshot& snapshot, StackCategories& stacks,
                             std::optional<std::uint32_t> device = {});

/// A program's reports about the blocks it holds, while its trace is read: Record::label and Record::free. `Place`: the
/// key of the reader's sums. 56 bytes per reported block.
class LiveReports {
 public:
  struct BlockReport {
    std::uint32_t place = 0;
    Category category = Category::unknown;
    std::uint32_t name = 0;  ///< number of the name's text
    std::int64_t bytes = 0;
    std::int64_t blocks = 0;
  };
  /// Takes a report about the live block at `address`. Earlier reports about it no longer count.
  void take(std::uint64_t address, const BlockReport& reported) { by_address_[address] = reported; }
  /// Ignores a block without a report.
  void gave_back(std::uint64_t address) {
    if (!by_address_.empty()) by_address_.erase(address);
  }
  /// Null if nothing was reported about it.
  [[nodiscard]] const BlockReport* find(std::uint64_t address) const {
    if (by_address_.empty()) return nullptr;
    const auto known = by_address_.find(address);
    return known == by_address_.end() ? nullptr : &known->second;
  }
  /// Visits the reports in no particular order.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& [address, reported] : by_address_) visit(reported);
  }
  [[nodiscard]] bool empty() const { return by_address_.empty(); }

 private:
  std::unordered_map<std::uint64_t, BlockReport> by_address_;
};

}  // namespace vramtrack::trace
