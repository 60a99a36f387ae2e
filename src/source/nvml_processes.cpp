#include "source/nvml_processes.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "core/order.hpp"

namespace vramtrack::nvml {
namespace {

/// The largest pid that Linux assigns (PID_MAX_LIMIT on 64-bit machines).
constexpr std::uint32_t kLargestPid = 4194304;

unsigned bit(ProcessList list) {
  return 1U << static_cast<unsigned>(list);
}

std::uint32_t pid_at(std::span<const std::byte> buffer, std::size_t offset) {
  std::uint32_t pid = 0;
  std::memcpy(&pid, buffer.data() + offset, sizeof pid);
  return pid;
}

auto identity(const GpuProcess& p) {
  return std::tie(p.pid, p.gpu_instance_id, p.compute_instance_id);
}

}  // namespace

std::string_view GpuProcess::kind() const {
  if ((lists & bit(ProcessList::mps)) != 0) return "MPS";
  const bool compute = (lists & bit(ProcessList::compute)) != 0;
  const bool graphics = (lists & bit(ProcessList::graphics)) != 0;
  return compute && graphics ? "C+G" : graphics ? "G" : "C";
}

Stride infer_stride(std::span<const std::byte> buffer, std::size_t count, const PidVisible& visible) {
  if (count < 2) return {};  // the first entry is the same either way
  struct Score {
    std::size_t visible = 0;
    std::size_t plausible = 0;
  };
  const auto score = [&](std::size_t stride) {
    Score result;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t pid = pid_at(buffer, i * stride);
      if (pid == 0 || pid > kLargestPid) continue;
      ++result.plausible;
      if (visible(pid)) ++result.visible;
    }
    return result;
  };
  const Score narrow = score(sizeof(ProcessV2));
  const Score wide = score(kR535Stride);
  if (narrow.visible != wide.visible) return {narrow.visible > wide.visible ? sizeof(ProcessV2) : kR535Stride, true};
  if (narrow.plausible != wide.plausible)
    return {narrow.plausible > wide.plausible ? sizeof(ProcessV2) : kR535Stride, false};
  const auto beyond = buffer.subspan(count * sizeof(ProcessV2), count * (kR535Stride - sizeof(ProcessV2)));
  const bool untouched = std::all_of(beyond.begin(), beyond.end(), [](std::byte b) { return b == kPoison; });
  return {untouched ? sizeof(ProcessV2) : kR535Stride, false};
}

void merge(std::vector<GpuProcess>& processes) {
  order(processes, [](const GpuProcess& a, const GpuProcess& b) { return identity(a) < identity(b); });
  std::size_t kept = 0;
  for (const GpuProcess& process : processes) {
    if (kept != 0 && identity(processes[kept - 1]) == identity(process)) {
      GpuProcess& into = processes[kept - 1];
      into.lists |= process.lists;
      if (process.bytes && (!into.bytes || *into.bytes < *process.bytes)) into.bytes = process.bytes;
    } else {
      processes[kept++] = process;
    }
  }
  processes.resize(kept);
}

int ProcessReader::read(Device device, std::vector<GpuProcess>& out) {
  out.clear();
  int failure = kSuccess;
  bool any = false;
  for (const ProcessList list : {ProcessList::compute, ProcessList::graphics, ProcessList::mps}) {
    const int code = read_list(device, list, out);
    if (code == kSuccess)
      any = true;
    else if (code != kNotSupported && code != kFunctionNotFound && failure == kSuccess)
      failure = code;
  }
  merge(out);
  if (failure != kSuccess) return failure;
  return any ? kSuccess : kNotSupported;
}

int ProcessReader::read_list(Device device, ProcessList list, std::vector<GpuProcess>& out) {
  // A list may grow between asking for its length and reading it, so the buffer has slack and there are a few tries.
  for (int tries = 0; tries < 8; ++tries) {
    const ProcessCallChoice choice = library_.process_call(list);
    if (choice.call == nullptr) return kFunctionNotFound;
    buffer_.assign(capacity_ * kR535Stride, kPoison);
    auto count = static_cast<unsigned>(capacity_);
    const int code = choice.call(device, &count, buffer_.data());
    if (code == kInsufficientSize) {
      capacity_ = std::max<std::size_t>(capacity_ * 2, count + std::size_t{16});
      continue;
    }
    if (code == kFunctionNotFound || code == kArgumentVersionMismatch) {
      if (!library_.strike_process_call(list)) return kFunctionNotFound;
      continue;
    }
    if (code == kSuccess) take(std::min<std::size_t>(count, capacity_), choice.version, list, out);
    return code;
  }
  return kInsufficientSize;
}

void ProcessReader::take(std::size_t count, int version, ProcessList list, std::vector<GpuProcess>& out) {
  std::size_t stride = sizeof(ProcessV1);
  if (version >= 2) {
    Stride inferred;
    if (!stride_) inferred = infer_stride(buffer_, count, visible_);
    if (inferred.certain) stride_ = inferred.bytes;
    stride = stride_.value_or(inferred.bytes);
  }
  for (std::size_t i = 0; i < count; ++i) {
    ProcessV2 entry{};
    entry.gpu_instance_id = entry.compute_instance_id = kNoInstance;
    // Version 1 is a prefix of version 2.
    std::memcpy(&entry, buffer_.data() + i * stride, std::min(stride, sizeof entry));
    if (entry.pid == 0) continue;
    GpuProcess process{entry.pid, entry.gpu_instance_id, entry.compute_instance_id, std::nullopt, bit(list)};
    if (entry.used != kNoValue) process.bytes = entry.used;
    out.push_back(process);
  }
}

}  // namespace vramtrack::nvml
