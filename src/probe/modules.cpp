#include "probe/modules.hpp"

#include <elf.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "probe/ring.hpp"

namespace vramtrack::probe {
namespace {

Modules the_modules;

/// Uses /proc/thread-self if the kernel has it (3.17): /proc/self is the main thread, which may end before the others.
int open_own(const char* name) {
  Line<64> path;
  const int file = open(path.add("/proc/thread-self/").add(name).c_str(), O_RDONLY | O_CLOEXEC);
  if (file >= 0) return file;
  Line<64> older;
  return open(older.add("/proc/self/").add(name).c_str(), O_RDONLY | O_CLOEXEC);
}

std::uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

/// A hash of the ELF header and first notes, which hold the build id. It differs between files, and is always the same
/// for one file.
std::uint64_t identity_of(std::uint64_t elf, std::uint64_t notes) {
  std::uint64_t words[16] = {};
  if (!read_memory(elf, words, 64)) return 0;
  if (notes != 0 && !read_memory(notes, words + 8, 64)) return 0;
  std::uint64_t hash = 1;
  for (const std::uint64_t word : words) hash = (hash ^ word ^ hash >> 29U) * 0x9e3779b97f4a7c15U;
  return hash | 1U;
}

void read_headers(Module& module) {
  Elf64_Ehdr header{};
  if (!read_memory(module.elf, &header, sizeof header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr)) {
    module.elf = 0;
    return;
  }
  const std::uint64_t program = getauxval(AT_PHDR);
  module.is_program = program == module.elf + header.e_phoff;
  bool has_bias = false;
  std::uint64_t table = 0, dynamic = 0, notes = 0;
  for (unsigned i = 0; i < header.e_phnum && i < 64; ++i) {
    Elf64_Phdr segment{};
    if (!read_memory(module.elf + header.e_phoff + i * sizeof segment, &segment, sizeof segment)) break;
    if (segment.p_type == PT_LOAD && !has_bias && segment.p_offset < 4096) {
      module.bias = module.elf - (segment.p_vaddr - segment.p_offset);
      has_bias = true;
    }
    if (segment.p_type == PT_GNU_EH_FRAME) table = segment.p_vaddr;
    if (segment.p_type == PT_DYNAMIC) dynamic = segment.p_vaddr;
    // Linkers may put a property note into a separate segment; the build id is in the last one.
    if (segment.p_type == PT_NOTE && segment.p_filesz >= 24) notes = segment.p_vaddr;
  }
  if (!has_bias) return;
  if (table != 0) module.table = module.bias + table;
  if (dynamic != 0) module.dynamic = module.bias + dynamic;
  if (notes != 0) module.notes = module.bias + notes;
  module.identity = identity_of(module.elf, module.notes);
  if (module.identity == 0) {
    module.notes = 0;
    module.identity = identity_of(module.elf, 0);
  }
}

std::uint64_t hex(std::string_view& text) {
  std::uint64_t value = 0;
  while (!text.empty()) {
    const char c = text.front();
    if (c >= '0' && c <= '9')
      value = value << 4U | static_cast<unsigned>(c - '0');
    else if (c >= 'a' && c <= 'f')
      value = value << 4U | static_cast<unsigned>(c - 'a' + 10);
    else
      break;
    text.remove_prefix(1);
  }
  return value;
}
bool skip(std::string_view& text, char wanted) {
  if (text.empty() || text.front() != wanted) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

bool read_memory(std::uint64_t address, void* into, std::size_t bytes) {
  const iovec local{into, bytes};
  const iovec remote{reinterpret_cast<void*>(address), bytes};  // NOLINT(performance-no-int-to-ptr)
  const int saved = errno;
  // Use the thread's own number: once the main thread has ended, its number has no memory.
  auto got = syscall(SYS_process_vm_readv, static_cast<pid_t>(thread_id()), &local, 1UL, &remote, 1UL, 0UL);
  // A sandbox may forbid the call; then use the file with the same contents.
  if (got < 0 && (errno == EPERM || errno == ENOSYS)) {
    const int file = open_own("mem");
    if (file >= 0) {
      got = pread(file, into, bytes, static_cast<off_t>(address));
      close(file);
    }
  }
  errno = saved;
  return got == static_cast<ssize_t>(bytes);
}

bool parse_mapping(std::string_view line, Mapping& into) {
  // 7f0000000000-7f0000001000 r-xp 00001000 fe:00 12345      /usr/lib/libc.so.6
  into = {};
  into.begin = hex(line);
  if (!skip(line, '-')) return false;
  into.end = hex(line);
  if (!skip(line, ' ') || line.size() < 5) return false;
  into.is_readable = line[0] == 'r';
  into.is_executable = line[2] == 'x';
  line.remove_prefix(4);
  if (!skip(line, ' ')) return false;
  into.offset = hex(line);
  if (!skip(line, ' ')) return false;
  into.device = hex(line) << 32U;
  if (!skip(line, ':')) return false;
  into.device |= hex(line);
  if (!skip(line, ' ')) return false;
  while (!line.empty() && line.front() >= '0' && line.front() <= '9') {
    into.inode = into.inode * 10 + static_cast<unsigned>(line.front() - '0');
    line.remove_prefix(1);
  }
  while (skip(line, ' ')) {
  }
  into.path = {line.data(), std::min<std::size_t>(line.size(), 1023)};
  return into.end > into.begin;
}

Maps::Maps() : file_(open_own("maps")) {}
Maps::~Maps() {
  if (file_ >= 0) close(file_);
}

bool Maps::next(Mapping& into) {
  for (;;) {
    const std::string_view rest(buffer_ + at_, size_ - at_);
    const std::size_t end = rest.find('\n');
    if (end != std::string_view::npos) {
      at_ += end + 1;
      if (parse_mapping({rest.data(), end}, into)) return true;
      continue;
    }
    // A line that fills the buffer is longer than a path can be, so its incomplete text is dropped.
    if (at_ == 0 && size_ == sizeof buffer_) size_ = 0;
    std::memmove(buffer_, buffer_ + at_, size_ - at_);
    size_ -= at_;
    at_ = 0;
    const ssize_t got = file_ < 0 ? 0 : read(file_, buffer_ + size_, sizeof buffer_ - size_);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    size_ += static_cast<std::size_t>(got);
  }
}

Modules& modules() {
  return the_modules;
}

std::uint32_t Modules::look_up(std::uint64_t address) const {
  const std::uint32_t count = count_.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < count; ++i)
    if (address >= ranges_[i].begin.load(std::memory_order_relaxed) &&
        address < ranges_[i].end.load(std::memory_order_relaxed))
      return i + 1;
  return 0;
}

std::uint32_t Modules::find(std::uint64_t address) {
  if (const std::uint32_t known = look_up(address)) return known;
  // Garbage is seldom an address at all, and no reason to read the maps.
  unsigned char byte = 0;
  if (!read_memory(address, &byte, 1)) return 0;
  const Locked locked(spin_);
  if (const std::uint32_t known = look_up(address)) return known;  // another thread has just read it
  const std::uint64_t begin_ns = monotonic_ns();
  if (begin_ns < next_read_ns_) return 0;
  if (!read_maps()) return 0;
  const std::uint32_t found = look_up(address);
  if (found == 0) {
    const std::uint64_t end_ns = monotonic_ns();
    next_read_ns_ = end_ns + (end_ns - begin_ns) * 20;
  }
  return found;
}

void Modules::add(const Mapping& mapping, std::uint64_t elf) {
  const std::uint32_t count = count_.load(std::memory_order_relaxed);
  if (count == kMost - 1) return;
  Module& module = modules_[count];
  module.begin = mapping.begin;
  module.end = mapping.end;
  module.offset = mapping.offset;
  module.device = mapping.device;
  module.inode = mapping.inode;
  module.elf = elf;
  if (elf != 0) read_headers(module);
  std::string_view name = mapping.path;
  name.remove_prefix(name.rfind('/') + 1);  // keeps all of it if there is none
  module.has_python_name = name.find("python") != std::string_view::npos;
  module.path = probe::record_text(mapping.path);
  ranges_[count].begin.store(mapping.begin, std::memory_order_relaxed);
  ranges_[count].end.store(mapping.end, std::memory_order_relaxed);
  count_.store(count + 1, std::memory_order_release);
}

bool Modules::read_maps() {
  if (ranges_ == nullptr) {
    modules_ = static_cast<Module*>(reserve(kMost * sizeof(Module)));
    if (modules_ == nullptr) return false;
    ranges_ = static_cast<Range*>(reserve(kMost * sizeof(Range)));
    if (ranges_ == nullptr) return false;
  }
  static std::uint64_t seen[kMost / 64];
  std::memset(seen, 0, sizeof seen);
  const std::uint32_t known = count_.load(std::memory_order_relaxed);
  Maps maps;
  Mapping mapping;
  Mapping first;  // the mapping of the same file with its ELF header
  bool any = false;
  while (maps.next(mapping)) {
    any = true;
    if (mapping.offset == 0 && mapping.is_readable && !mapping.path.empty()) first = mapping;
    if (!mapping.is_executable) continue;
    std::uint32_t same = 0;
    while (same < known && (ranges_[same].begin.load(std::memory_order_relaxed) != mapping.begin ||
                            ranges_[same].end.load(std::memory_order_relaxed) != mapping.end))
      ++same;
    const Module& module = modules_[same < known ? same : 0];
    if (same < known && module.inode == mapping.inode && module.device == mapping.device &&
        module.offset == mapping.offset &&
        (module.elf == 0 || identity_of(module.elf, module.notes) == module.identity)) {
      seen[same / 64] |= std::uint64_t{1} << same % 64;
      continue;
    }
    const bool is_elf =
        !mapping.path.empty() && first.inode == mapping.inode && first.device == mapping.device && first.end != 0;
    add(mapping, is_elf ? first.begin : 0);
  }
  if (!any) return false;
  bool is_any_gone = false;
  for (std::uint32_t i = 0; i < known; ++i)
    if ((seen[i / 64] >> i % 64 & 1U) == 0 && ranges_[i].end.load(std::memory_order_relaxed) != 0) {
      ranges_[i].end.store(0, std::memory_order_relaxed);
      modules_[i].is_gone.store(true, std::memory_order_relaxed);
      is_any_gone = true;
    }
  if (is_any_gone) epoch_.fetch_add(1, std::memory_order_acq_rel);
  return true;
}

bool Modules::is_same(std::uint32_t number) {
  Module& module = modules_[number - 1];
  if (module.is_gone.load(std::memory_order_relaxed)) return false;
  if (module.elf == 0 || identity_of(module.elf, module.notes) == module.identity) return true;
  const Locked locked(spin_);
  ranges_[number - 1].end.store(0, std::memory_order_relaxed);
  module.is_gone.store(true, std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_acq_rel);
  return false;
}

void Modules::record(std::uint32_t number) {
  Module& module = modules_[number - 1];
  if (module.is_recorded.load(std::memory_order_acquire)) return;
  ring().put(head_of(Record::module, Call::none, 0, 0, module.path), module.offset, module.begin,
             module.end - module.begin);
  module.is_recorded.store(true, std::memory_order_release);
}

void Modules::forget() {
  spin_.reset();
  give_back(modules_, kMost * sizeof(Module));
  give_back(ranges_, kMost * sizeof(Range));
  modules_ = nullptr;
  ranges_ = nullptr;
  next_read_ns_ = 0;
  count_.store(0, std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace vramtrack::probe
