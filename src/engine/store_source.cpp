#include "engine/store_source.hpp"

namespace vramtrack {
namespace {

class StoreSource final : public Source {
 public:
  StoreSource(std::unique_ptr<StoreReader> reader, Catalog& catalog) : reader_(std::move(reader)), catalog_(catalog) {}

  Result<Progress> poll(Timestamp, Batch& out) override {
    const Result<bool> more = reader_->read(catalog_, batch_);
    if (!more) {
      // The reader goes on behind the damage, but a file that only fails must come to an end.
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

}  // namespace

Result<std::unique_ptr<Source>> open_store_source(const std::string& path, const TimeRange& range, Catalog& catalog) {
  auto reader = StoreReader::open(path);
  if (!reader) return fail(reader.error());
  (*reader)->select(range);
  return std::make_unique<StoreSource>(std::move(*reader), catalog);
}

}  // namespace vramtrack
