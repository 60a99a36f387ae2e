#include "symbolize/debug_names.hpp"

#include <cxxabi.h>
#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <fmt/format.h>
#include <gelf.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "core/printable.hpp"

namespace vramtrack::symbolize {
namespace {

char* no_extra_path = nullptr;
const Dwfl_Callbacks kCallbacks = {.find_elf = dwfl_build_id_find_elf,
                                   .find_debuginfo = dwfl_standard_find_debuginfo,
                                   .section_address = dwfl_offline_section_address,
                                   .debuginfo_path = &no_extra_path};

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

/// The linker's name, which includes namespaces; else the plain one.
std::string name_of(Dwarf_Die& die) {
  Dwarf_Attribute attribute;
  for (const unsigned kind : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name})
    if (dwarf_attr_integrate(&die, kind, &attribute) != nullptr)
      if (const char* const name = dwarf_formstring(&attribute)) return demangled(name);
  const char* const name = dwarf_diename(&die);
  return name == nullptr ? "" : name;
}

bool is_function(Dwarf_Die& die) {
  const int tag = dwarf_tag(&die);
  return tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine;
}

std::string hexadecimal(const unsigned char* bytes, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += fmt::format("{:02x}", bytes[i]);
  return out;
}

}  // namespace

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, Free> plain(abi::__cxa_demangle(name, nullptr, nullptr, &status));
  return status == 0 && plain != nullptr ? plain.get() : name;
}

/// One module's file.
class DebugNames::File {
 public:
  explicit File(const std::string& path) : dwfl_(dwfl_begin(&kCallbacks)) {
    if (dwfl_ == nullptr) return;
    dwfl_report_begin(dwfl_);
    module_ = dwfl_report_offline(dwfl_, path.c_str(), path.c_str(), -1);
    dwfl_report_end(dwfl_, nullptr, nullptr);
    elf_ = module_ == nullptr ? nullptr : dwfl_module_getelf(module_, &bias_);
    if (elf_ == nullptr) return;
    const unsigned char* bits = nullptr;
    GElf_Addr address = 0;
    if (const int size = dwfl_module_build_id(module_, &bits, &address); size > 0) build_id_ = hexadecimal(bits, size);
  }
  ~File() {
    if (dwfl_ != nullptr) dwfl_end(dwfl_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  [[nodiscard]] const std::string& build_id() const { return build_id_; }

  std::vector<trace::NativeName> look_up(std::uint64_t file_offset) {
    std::vector<trace::NativeName> out;
    GElf_Addr address = 0;
    // The call is before the return address: the address itself may belong to another line or another function.
    if (elf_ == nullptr || file_offset == 0 || !to_address(file_offset - 1, address)) return out;
    functions(address, out);
    if (out.empty()) {
      const char* const symbol = dwfl_module_addrname(module_, address);
      if (symbol == nullptr) return out;
      out.push_back({demangled(symbol), {}, 0});
    }
    Dwarf_Addr bias = 0;
    Dwarf_Die* const unit = unit_of(address, bias);
    Dwarf_Line* const source = unit == nullptr ? nullptr : dwarf_getsrc_die(unit, address - bias);
    int line = 0;
    if (source != nullptr && dwarf_lineno(source, &line) == 0)
      if (const char* const file = dwarf_linesrc(source, nullptr, nullptr)) {
        out.front().file = file;
        out.front().line = static_cast<std::uint32_t>(std::max(line, 0));
      }
    return out;
  }

 private:
  bool to_address(std::uint64_t file_offset, GElf_Addr& address) const {
    std::size_t count = 0;
    if (elf_getphdrnum(elf_, &count) != 0) return false;
    for (std::size_t i = 0; i < count; ++i) {
      GElf_Phdr header;
      if (gelf_getphdr(elf_, static_cast<int>(i), &header) == nullptr || header.p_type != PT_LOAD) continue;
      if (file_offset < header.p_offset || file_offset - header.p_offset >= header.p_filesz) continue;
      address = file_offset - header.p_offset + header.p_vaddr + bias_;
      return true;
    }
    return false;
  }

  /// The unit that contains the address; null if there is no debug information for it. `bias` is then subtracted from
  /// addresses. libdw uses only .debug_aranges, which Clang and Rust do not write: for theirs, each unit's own ranges
  /// are read once.
  Dwarf_Die* unit_of(GElf_Addr address, Dwarf_Addr& bias) {
    if (Dwarf_Die* const unit = dwfl_module_addrdie(module_, address, &bias)) return unit;
    if (dwfl_module_getdwarf(module_, &bias) == nullptr) return nullptr;
    if (!ranges_read_) read_ranges();
    const auto after = std::ranges::upper_bound(ranges_, address - bias, {}, &Range::begin);
    if (after == ranges_.begin() || address - bias >= std::prev(after)->end) return nullptr;
    return std::prev(after)->unit;
  }

  void read_ranges() {
    ranges_read_ = true;
    Dwarf_Addr bias = 0;
    for (Dwarf_Die* unit = nullptr; (unit = dwfl_module_nextcu(module_, unit, &bias)) != nullptr;) {
      Dwarf_Addr base = 0;
      Range range{0, 0, unit};
      for (std::ptrdiff_t at = 0; (at = dwarf_ranges(unit, at, &base, &range.begin, &range.end)) > 0;)
        if (range.begin < range.end) ranges_.push_back(range);
    }
    std::ranges::sort(ranges_, {}, &Range::begin);
  }

  /// The functions inlined at the address, innermost first, then the function itself. Lines of all but the first.
  void functions(GElf_Addr address, std::vector<trace::NativeName>& out) {
    Dwarf_Addr bias = 0;
    Dwarf_Die* const unit = unit_of(address, bias);
    if (unit == nullptr) return;
    Dwarf_Die* raw = nullptr;
    const int count = dwarf_getscopes(unit, address - bias, &raw);
    const std::unique_ptr<Dwarf_Die, Free> scopes(raw);
    int first = 0;
    while (first < count && !is_function(raw[first])) ++first;
    if (first >= count) return;
    // The scopes around an inlined function are those of its definition: those of its call site are its parents.
    Dwarf_Die innermost = raw[first];
    Dwarf_Die* raw_parents = nullptr;
    const int parents_count = dwarf_getscopes_die(&innermost, &raw_parents);
    const std::unique_ptr<Dwarf_Die, Free> parents(raw_parents);
    Dwarf_Files* files = nullptr;
    std::size_t file_count = 0;
    if (dwarf_getsrcfiles(unit, &files, &file_count) != 0) file_count = 0;
    trace::NativeName next;  // with the line at which the previous one was inlined
    for (int i = 0; i < parents_count; ++i) {
      if (!is_function(raw_parents[i])) continue;
      next.function = name_of(raw_parents[i]);
      if (!next.function.empty()) out.push_back(std::exchange(next, {}));
      if (dwarf_tag(&raw_parents[i]) != DW_TAG_inlined_subroutine) break;
      Dwarf_Attribute attribute;
      Dwarf_Word value = 0;
      if (dwarf_formudata(dwarf_attr(&raw_parents[i], DW_AT_call_line, &attribute), &value) == 0)
        next.line = static_cast<std::uint32_t>(value);
      if (dwarf_formudata(dwarf_attr(&raw_parents[i], DW_AT_call_file, &attribute), &value) == 0 && value < file_count)
        if (const char* const file = dwarf_filesrc(files, value, nullptr, nullptr)) next.file = file;
    }
  }

  /// Code of a unit, as the debug information numbers addresses.
  struct Range {
    Dwarf_Addr begin = 0;
    Dwarf_Addr end = 0;
    Dwarf_Die* unit = nullptr;
  };

  Dwfl* dwfl_ = nullptr;
  std::vector<Range> ranges_;  ///< by their begin; read when they are needed
  bool ranges_read_ = false;
  Dwfl_Module* module_ = nullptr;
  Elf* elf_ = nullptr;
  GElf_Addr bias_ = 0;
  std::string build_id_;
};

DebugNames::DebugNames() = default;
DebugNames::~DebugNames() = default;

std::vector<trace::NativeName> DebugNames::look_up(const std::string& module, std::string_view build_id,
                                                   std::uint64_t file_offset) {
  const auto [known, is_new] = files_.try_emplace(module);
  if (is_new) {
    auto file = std::make_unique<File>(module);
    if (!build_id.empty() && !file->build_id().empty() && file->build_id() != build_id)
      notes_.push_back(
          fmt::format("{}: has changed since the recording (build id {}, then {}): its functions are shown as offsets",
                      printable(module), file->build_id(), printable(build_id)));
    else
      known->second = std::move(file);
  }
  if (known->second == nullptr) return {};
  return known->second->look_up(file_offset);
}

std::vector<std::string> DebugNames::notes() const {
  return notes_;
}

std::string build_id_of(const std::string& path) {
  Dwfl* const dwfl = dwfl_begin(&kCallbacks);
  if (dwfl == nullptr) return {};
  dwfl_report_begin(dwfl);
  Dwfl_Module* const module = dwfl_report_offline(dwfl, path.c_str(), path.c_str(), -1);
  dwfl_report_end(dwfl, nullptr, nullptr);
  std::string out;
  GElf_Addr bias = 0;
  if (module != nullptr && dwfl_module_getelf(module, &bias) != nullptr) {
    const unsigned char* bits = nullptr;
    GElf_Addr address = 0;
    if (const int size = dwfl_module_build_id(module, &bits, &address); size > 0) out = hexadecimal(bits, size);
  }
  dwfl_end(dwfl);
  return out;
}

}  // namespace vramtrack::symbolize
