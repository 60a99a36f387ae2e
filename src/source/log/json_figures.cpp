#include "source/log/json_figures.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "core/pci_address.hpp"
#include "source/log/cells.hpp"
#include "source/log/columns.hpp"
#include "source/log/labels.hpp"
#include "source/log/owners.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

using logtext::is_ascii_letter;
using logtext::trim;

constexpr std::string_view kWithin = " > ";
/// From this rank on, a key of the role `index` can only be an index.
constexpr int kSureIndex = 60;

/// Whether a word of `key` names a GPU: "gpus", "gpu_stats", "cuda", "devices".
bool mentions_gpu(std::string_view key) {
  const Label label = read_label(key);
  return label.gpu || label.vram;
}

/// Objects whose figures are not memory, whatever their keys: "utilization", "temperature", "pci", "host".
bool is_of_something_else(std::string_view key) {
  std::vector<Word> words;
  cut_words(key, words);
  if (words.empty()) return false;
  const Meaning first = words.front().meaning;
  return first == Meaning::rate || first == Meaning::measured || first == Meaning::host;
}

/// Takes "0", "GPU-8f1c...", "cuda:1" or "gpu2" as the id of a GPU; false if `text` is none of them.
bool take_id(std::string_view text, FigureOwner& owner) {
  text = trim(text);
  if (text.starts_with("GPU-") || text.starts_with("MIG-")) {
    owner.gpu.uuid = text;
    owner.is_gpu = true;
    return true;
  }
  const auto device = device_named(text);
  if (!device) return false;
  owner.gpu.index = device->index;
  owner.is_gpu |= is_ascii_letter(text.front());
  owner.by_position = false;
  return true;
}

}  // namespace

void FigureOwner::complete(const FigureOwner& its) {
  if (!names_gpu()) {
    gpu = its.gpu;
    index_key = its.index_key;
    index_text = its.index_text;
    is_unsure = its.is_unsure;
  }
  is_gpu |= its.is_gpu;
  if (!names_process()) {
    pid = its.pid;
    pid_is_unreadable = its.pid_is_unreadable;
    process = its.process;
  }
  if (partition.empty()) partition = its.partition;
  add_part(origin, its.origin);
}

LogDevice FigureOwner::device() const {
  if (origin.empty() && partition.empty() && share.empty()) return gpu;
  const std::string id = gpu.index ? std::to_string(*gpu.index) : gpu.text;
  return device_of({gpu.uuid, gpu.pci_bus_id, id, origin, partition, share, gpu.name});
}

namespace {

/// Whether a member of an object only describes the figures beside it: "labels": {"host": "n1", "gpu": 0}. Other
/// objects have ids of their own: {"request": {"device": "phone"}}.
bool describes(std::string_view key, const JsonValue& member) {
  constexpr std::array<std::string_view, 5> kKeys = {"tags", "labels", "attributes", "resource", "dimensions"};
  const bool is_description = std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end() || mentions_gpu(key);
  return member.is_object() && is_description &&
         std::none_of(member.members().begin(), member.members().end(), [](const auto& inner) {
           using enum ColumnRole;
           const ColumnRole role = classify_column(inner.first).role;
           return inner.second.is_object() || inner.second.is_array() || role == used || role == free ||
                  role == total || role == peak || role == percent || role == busy;
         });
}

}  // namespace

std::vector<std::pair<std::string, std::string_view>> fields_of(const JsonValue& object, FieldsOf of) {
  std::vector<std::pair<std::string, std::string_view>> out;
  for (const auto& [key, value] : object.members()) {
    if (!value.is_object() && !value.is_array()) out.emplace_back(key, value.text());
    if (!value.is_object() || (of == FieldsOf::descriptions && !describes(key, value))) continue;
    for (const auto& [inner, its] : value.members())
      if (!its.is_object() && !its.is_array()) out.emplace_back(key + std::string(kWithin) + inner, its.text());
  }
  return out;
}

std::string_view key_of(std::string_view name) {
  const std::size_t at = name.rfind(kWithin);
  return at == std::string_view::npos ? name : name.substr(at + kWithin.size());
}

std::string_view series_text(const JsonValue& object, std::string_view name) {
  const std::size_t at = name.find(kWithin);
  const JsonValue* value = object.find(name.substr(0, at));
  if (value != nullptr && at != std::string_view::npos) value = value->find(name.substr(at + kWithin.size()));
  if (value == nullptr) return {};
  if (!value->is_object()) return value->text();
  for (const std::string_view key : {"name", "hostname", "id", "ip"})
    if (const JsonValue* const inner = value->find(key); inner != nullptr && !inner->is_object()) return inner->text();
  return {};
}

class FigureReader::Walk {
 public:
  explicit Walk(FigureReader& reader) : keys_(reader.keys_), out_(reader.found_) {}

  void begin(const JsonValue& object, std::string_view of) {
    FigureOwner owner;
    identify(object, {}, false, owner);
    // Telegraf: {"name": "nvidia_smi", "tags": {"index": "0"}, "fields": {"memory_used": 4000}}
    for (const auto& [key, member] : object.members()) {
      if (!describes(key, member)) continue;
      FigureOwner its;
      identify(member, key, mentions_gpu(key), its);
      owner.complete(its);
    }
    const JsonValue* const source = object.find("name");
    owner.is_gpu |= source != nullptr && (mentions_gpu(source->text()) || source->text().starts_with("nvidia"));
    owner.origin = of;
    for (const std::string& key : keys_.series) add_part(owner.origin, series_text(object, key));
    if (!keys_.distinguishing.empty())
      for (const auto& [name, text] : fields_of(object))
        if (std::find(keys_.distinguishing.begin(), keys_.distinguishing.end(), name) != keys_.distinguishing.end())
          add_part(owner.share, text);
    members(object, {}, owner);
  }

 private:
  static std::string path(std::string_view above, std::string_view key) {
    if (above.empty()) return std::string(key);
    return std::string(above) + std::string(kWithin) + std::string(key);
  }

  /// Whether the values of a field, named as fields_of() does, show that it has no pids.
  [[nodiscard]] bool has_no_pids(const std::string& name) const {
    const auto has = [&](const std::vector<std::string>& names) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    return has(keys_.series) || has(keys_.measures);
  }

  /// What the members of `object` say about its owner. `in_list`: it is one of several.
  void identify(const JsonValue& object, const std::string& name, bool in_list, FigureOwner& owner) {
    int rank = 0;
    for (const auto& [key, value] : object.members()) {
      if (value.text().empty()) continue;
      const Column column = classify_column(key);
      const bool is_id = in_list && logtext::same_letters(key, "id");
      if (column.role == ColumnRole::index || is_id) {
        const std::string its = path(name, key);
        const int its_rank = is_id ? kSureIndex - 1 : column.rank;
        if (its_rank <= rank || std::find(keys_.measures.begin(), keys_.measures.end(), its) != keys_.measures.end())
          continue;
        if (!take_id(value.text(), owner)) {
          if (!value.is_string()) continue;
          owner.gpu.text = value.text();
          owner.by_position = false;
        }
        rank = its_rank;
        owner.is_gpu |= mentions_gpu(key);
        owner.index_key = its;
        owner.is_unsure = rank < kSureIndex && !is_id;
        owner.index_text = value.text();
      } else if (column.role == ColumnRole::uuid) {
        owner.gpu.uuid = value.text();
        owner.is_gpu |= mentions_gpu(key) || owner.gpu.uuid.starts_with("GPU-");
      } else if (column.role == ColumnRole::pci && !pci_address_of(value.text()).empty()) {
        owner.gpu.pci_bus_id = pci_address_of(value.text());
      } else if (column.role == ColumnRole::pid && !logtext::is_missing(value.text()) &&
                 !has_no_pids(path(name, key))) {
        owner.pid = pid_of(value.text());
        owner.pid_is_unreadable = !owner.pid;
      } else if (column.role == ColumnRole::process_name) {
        owner.process = value.text();
      } else if (column.role == ColumnRole::partition) {
        owner.partition = partition_named(key, value.text());
      } else if (column.role == ColumnRole::series && in_list) {
        add_part(owner.origin, value.text());
      } else if (column.role == ColumnRole::device_name && value.is_string() && in_list) {
        owner.gpu.name = value.text();
      }
    }
    if (owner.pid && owner.process.empty()) owner.process = std::exchange(owner.gpu.name, {});
  }

  /// The members of an array, or of an object whose keys are ids: each has its own owner.
  void elements(const JsonValue& list, const std::string& name, const FigureOwner& above) {
    std::vector<FigureOwner> owners;
    std::set<std::string> ids;
    std::set<std::string> names;
    for (const auto& [id, element] : list.members()) {
      FigureOwner& owner = owners.emplace_back(above);
      const bool has_id = !id.empty() && take_id(id, owner);
      if (!id.empty() && !has_id) add_part(owner.origin, id);  // of a host
      FigureOwner its;
      its.is_gpu = owner.is_gpu;
      if (element.is_object()) identify(element, name, true, its);
      if (!has_id && its.names_gpu()) owner.gpu = its.gpu;
      owner.gpu.name = its.gpu.name;
      owner.is_gpu = its.is_gpu;
      owner.index_key = its.index_key;
      owner.is_unsure = its.is_unsure;
      owner.index_text = its.index_text;
      add_part(owner.origin, its.origin);
      if (!its.partition.empty()) owner.partition = its.partition;
      if (its.names_process()) {
        owner.pid = its.pid;
        owner.pid_is_unreadable = its.pid_is_unreadable;
        owner.process = its.process;
      } else if (id.empty() && !its.names_any()) {
        owner.by_position = true;
      }
      ids.insert(owner.by_position ? std::string()
                                   : device_id(owner.device()) + ' ' + std::to_string(owner.pid.value_or(0)));
      if (!owner.gpu.name.empty()) names.insert(owner.gpu.name);
    }
    // Ids count only if they distinguish all elements. Names alone do so if no two are equal.
    const bool by_id = ids.size() == owners.size() && !ids.contains({});
    const bool by_name = owners.size() > 1 && names.size() == owners.size();
    for (std::size_t i = 0; i < owners.size(); ++i) {
      FigureOwner& owner = owners[i];
      const bool is_only_one = owners.size() == 1 && above.names_any();
      if ((owner.by_position || !by_id) && is_only_one) {
        owner.gpu = above.gpu;
        owner.by_position = above.by_position;
      } else if (owner.by_position || !by_id) {
        LogDevice gpu;
        gpu.name = owner.gpu.name;
        owner.gpu = gpu;
        owner.by_position = !by_name;
        owner.in_list_of = owners.size();
        if (!by_name) {
          owner.gpu.index = static_cast<int>(i);
        } else if (!take_id(gpu.name, owner)) {
          owner.gpu.text = gpu.name;
        }
      }
      // What the enclosing element is: a host, a job, a run, a GPU with partitions.
      if (above.names_gpu() && device_id(owner.gpu) != device_id(above.gpu))
        add_part(owner.origin, device_id(above.gpu));
      const JsonValue& element = list.members()[i].second;
      element.is_object() ? members(element, name, owner) : value(element, name, {}, owner);
    }
  }

  /// Whether the keys of `object` are ids of GPUs.
  static bool has_ids_for_keys(const JsonValue& object) {
    return !object.members().empty() &&
           std::all_of(object.members().begin(), object.members().end(), [](const auto& member) {
             FigureOwner ignored;
             return take_id(member.first, ignored) && !member.second.is_string();
           });
  }

  /// Whether the keys of `object` name machines, jobs or GPUs, since it is below "hosts", "models" or "devices".
  static bool has_names_for_keys(std::string_view key, const JsonValue& object) {
    if (!key.ends_with('s')) return false;
    const std::string_view one = key.substr(0, key.size() - 1);
    const ColumnRole role = classify_column(one).role;
    if (!names_owner(role) && !names_origin(one)) return false;
    return !object.members().empty() &&
           std::all_of(object.members().begin(), object.members().end(), [](const auto& member) {
             const Label label = read_label(member.first);
             return member.second.is_object() && !label.has_meaning();
           });
  }

  void members(const JsonValue& object, const std::string& name, const FigureOwner& owner) {
    const std::string above =
        name.substr(name.rfind(kWithin) == std::string::npos ? 0 : name.rfind(kWithin) + kWithin.size());
    for (const auto& [key, member] : object.members()) {
      const JsonValue* const amount = member.find("value");  // {"value": 905, "unit": "MB"}
      const JsonValue* const unit = member.find("unit");
      if (amount != nullptr && unit != nullptr && !amount->text().empty()) {
        text(amount->is_number() ? amount->text() + ' ' + unit->text() : amount->text(), path(name, key), {above, key},
             owner);
        continue;
      }
      if (!member.is_object() && !member.is_array()) {
        value(member, path(name, key), {above, key}, owner);
        continue;
      }
      if (is_of_something_else(key)) continue;
      FigureOwner of = owner;
      of.is_gpu |= mentions_gpu(key);
      if (member.is_array() || has_ids_for_keys(member) || has_names_for_keys(key, member)) {
        list_above_ = above;
        list_key_ = key;
        elements(member, path(name, key), of);
        continue;
      }
      const bool is_id = take_id(key, of);  // "gpu0": {...}
      const std::string its = is_id ? name : path(name, key);
      identify(member, its, mentions_gpu(key), of);
      members(member, its, of);
    }
  }

  struct Keys {
    std::string_view above, key;
  };

  void value(const JsonValue& value, const std::string& name, Keys keys, const FigureOwner& owner) {
    if (keys.key.empty()) keys = {list_above_, list_key_};
    if (value.is_number()) {
      add({name, std::string(keys.above), std::string(keys.key), value.number(), false, value.number() >= 0, owner});
    } else if (value.is_string()) {
      const auto parts = parts_of_list(value.text());
      if (parts.empty()) return text(value.text(), name, keys, owner);
      for (std::size_t i = 0; i < parts.size(); ++i) {
        FigureOwner of = owner;
        of.gpu.index = static_cast<int>(i);
        of.by_position = true;
        of.in_list_of = parts.size();
        text(parts[i], name, keys, of);
      }
    }
  }

  void text(std::string_view written, const std::string& name, Keys keys, const FigureOwner& owner) {
    written = trim(written);
    if (logtext::is_missing(written)) return;
    JsonFigure figure{name, std::string(keys.above), std::string(keys.key), 0, false, false, owner};
    logtext::Decimal number;
    std::uint64_t bytes = 0;
    if (logtext::read_decimal(written, number) &&
        logtext::read_amount(written, 1, bytes, false, &figure.in_bytes) == logtext::Amount::read) {
      figure.number = figure.in_bytes ? static_cast<double>(bytes) : number.value();
      figure.is_amount = true;
    }
    add(std::move(figure));
  }

  void add(JsonFigure figure) { out_.push_back(std::move(figure)); }

  const FigureKeys& keys_;
  std::vector<JsonFigure>& out_;
  std::string list_above_, list_key_;  ///< the keys of the list whose numbers are read
};

const std::vector<JsonFigure>& FigureReader::read(const JsonValue& object, std::string_view of) {
  found_.clear();
  Walk(*this).begin(object, of);
  return found_;
}

}  // namespace vramtrack
