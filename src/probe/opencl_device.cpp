#include "probe/opencl_device.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "probe/devices.hpp"
#include "probe/self.hpp"
#include "probe/table.hpp"

namespace vramtrack::probe::opencl {
namespace {

// Extensions: cl_khr_device_uuid, cl_khr_pci_bus_info, cl_nv_device_attribute_query, cl_amd_device_attribute_query.
constexpr cl_device_info kUuid = 0x106A;
constexpr cl_device_info kPciBusInfo = 0x410F;
constexpr cl_device_info kPciBusNvidia = 0x4008;
constexpr cl_device_info kPciSlotNvidia = 0x4009;
constexpr cl_device_info kPciDomainNvidia = 0x400A;
constexpr cl_device_info kTopologyAmd = 0x4037;
constexpr cl_uint kNvidia = 0x10DE;

Table<int> numbers;
void forget_numbers() {
  numbers.reset();
}
VRAMTRACK_ON_FORK(forget_numbers);

template <class T>
bool ask(const Next& next, cl_device_id device, cl_device_info what, T& into) {
  std::size_t bytes = 0;
  return next.clGetDeviceInfo(device, what, sizeof into, &into, &bytes) == CL_SUCCESS && bytes <= sizeof into;
}

void add_hex(Line<64>& line, std::uint32_t value, int digits) {
  for (int shift = (digits - 1) * 4; shift >= 0; shift -= 4)
    line.add(std::string_view(&"0123456789abcdef"[value >> static_cast<unsigned>(shift) & 0xfU], 1));
}

void name_by_pci(Line<64>& line, std::uint32_t domain, std::uint32_t bus, std::uint32_t device,
                 std::uint32_t function) {
  line.add("pci:");
  add_hex(line, domain, 4);
  line.add(":");
  add_hex(line, bus, 2);
  line.add(":");
  add_hex(line, device, 2);
  line.add(".");
  add_hex(line, function, 1);
}

/// Writes the driver's UUID, which CUDA and Vulkan return as well; else the bus location; else our own number.
void name(const Next& next, cl_device_id device, Line<64>& line) {
  cl_uint vendor = 0;
  ask(next, device, CL_DEVICE_VENDOR_ID, vendor);
  std::uint8_t uuid[16] = {};
  if (ask(next, device, kUuid, uuid)) {
    line.add(uuid_text(uuid, vendor == kNvidia).text);
    return;
  }
  cl_uint pci[4] = {};
  if (ask(next, device, kPciBusInfo, pci)) {
    name_by_pci(line, pci[0], pci[1], pci[2], pci[3]);
    return;
  }
  cl_uint bus = 0;
  cl_uint slot = 0;
  cl_uint domain = 0;
  if (ask(next, device, kPciBusNvidia, bus) && ask(next, device, kPciSlotNvidia, slot)) {
    ask(next, device, kPciDomainNvidia, domain);
    name_by_pci(line, domain, bus, slot >> 3U, slot & 7U);
    return;
  }
  std::uint8_t topology[24] = {};  // type (1: PCIe) in 4 bytes, 17 unused, bus, device, function
  if (ask(next, device, kTopologyAmd, topology) && topology[0] == 1) {
    name_by_pci(line, 0, topology[21], topology[22], topology[23]);
    return;
  }
  static std::atomic<std::uint64_t> unnamed{0};
  line.add("opencl:").add(unnamed.fetch_add(1, std::memory_order_relaxed));
}

int number_of(const Next& next, cl_device_id device) {
  void* parent = nullptr;  // a sub-device has its parent's memory
  for (int i = 0; i < 8 && ask(next, device, CL_DEVICE_PARENT_DEVICE, parent) && parent != nullptr; ++i)
    device = static_cast<cl_device_id>(parent);
  int number = -1;
  if (numbers.find(key_of(nullptr, device), number)) return number;
  Line<64> uuid;
  name(next, device, uuid);
  char text[128] = {};
  if (!ask(next, device, CL_DEVICE_NAME, text)) std::memcpy(text, "OpenCL device", 14);
  cl_ulong bytes = 0;
  ask(next, device, CL_DEVICE_GLOBAL_MEM_SIZE, bytes);
  number = number_of_device(uuid.view(), text, bytes);
  numbers.put(key_of(nullptr, device), number);
  return number;
}

}  // namespace

int device_of(const Next& next, cl_context context) {
  cl_device_id devices[64] = {};
  if (next.clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof devices, devices, nullptr) != CL_SUCCESS) return -1;
  const int number = number_of(next, devices[0]);
  record_numbered_device(number);
  return number;
}

}  // namespace vramtrack::probe::opencl
