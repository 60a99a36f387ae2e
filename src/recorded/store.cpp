// What `vramtrack watch` recorded: see docs/formats/store.md.
#include <array>
#include <filesystem>
#include <fstream>

#include "recorded/recorded.hpp"

namespace vramtrack {
namespace {

class StoreSource final : public Source {
 public:
  StoreSource(std::unique_ptr<StoreReader> reader, Catalog& catalog) : reader_(std::move(reader)), catalog_(catalog) {}

  Result<Progress> poll(Timestamp, Batch& out) override {
    const Result<bool> more = reader_->read(catalog_, batch_);
    if (!more) {
      // The reader continues after the damage, but reading a file that only fails must end at some point.
      if (++damaged_ > kMostDamaged) return fail(more.error());
      notes_.warnings.push_back(more.error().message);
      return Progress::more;
    }
    if (!*more) return Progress::end;
    out.samples.insert(out.samples.end(), batch_.samples.begin(), batch_.samples.end());
    out.events.insert(out.events.end(), batch_.events.begin(), batch_.events.end());
    return Progress::more;
  }

  [[nodiscard]] const SourceNotes& notes() const override { return notes_; }

 private:
  static constexpr int kMostDamaged = 64;

  std::unique_ptr<StoreReader> reader_;
  Catalog& catalog_;
  Batch batch_;
  SourceNotes notes_;
  int damaged_ = 0;
};

/// Checks how every SQLite file begins. A pipe is not read from, because that would lose its beginning.
int is_sqlite_file(const std::string& path) {
  static constexpr std::string_view kMagic = "SQLite format 3";
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return 0;
  std::array<char, kMagic.size()> head{};
  std::ifstream in(path, std::ios::binary);
  in.read(head.data(), head.size());
  const bool is_sqlite =
      in.gcount() == static_cast<std::streamsize>(head.size()) && std::string_view(head.data(), head.size()) == kMagic;
  return is_sqlite ? 100 : 0;
}

/// The samples of the range, in time order. A damaged chunk is skipped and named in notes().warnings.
Result<std::vector<RecordedPart>> plan_store(const std::vector<std::string>& paths, const RecordedOptions& options) {
  const auto open = [path = paths.front(), range = options.range](Catalog& catalog) -> Result<std::unique_ptr<Source>> {
    auto reader = StoreReader::open(path);
    if (!reader) return fail(reader.error());
    (*reader)->select(range);
    return std::make_unique<StoreSource>(std::move(*reader), catalog);
  };
  return std::vector<RecordedPart>{{{paths.front()}, open, paths.front()}};
}

}  // namespace

extern const RecordedInfo store_recorded;
const RecordedInfo store_recorded{"store", is_sqlite_file, plan_store, 1, true};

}  // namespace vramtrack
