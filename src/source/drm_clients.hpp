// Which process holds how much video memory through which DRM device: /proc/PID/fdinfo.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vramtrack::drm {

/// What one open file of a DRM device reports (the kernel's drm-usage-stats).
struct Client {
  std::string driver;
  std::string pci_address;                  ///< normal_pci_address(); empty for devices that are not on PCI
  std::uint64_t id = 0;                     ///< drm-client-id: the same for duplicated and inherited descriptors
  std::optional<std::uint64_t> vram_bytes;  ///< nullopt if the driver reports none
  std::optional<std::uint64_t> gtt_bytes;   ///< host memory mapped for the GPU; nullopt likewise
};

/// Parses the text of /proc/PID/fdinfo/FD; nullopt if the file does not belong to a DRM device. Pure. Memory: "gtt" is
/// kept separately; every region of the device's own memory counts (amdgpu and nouveau "vram", xe "vram0"..., i915
/// "local0"...): its resident amount, else that of the older drm-memory- key, else its total, in bytes, KiB, MiB or
/// GiB.
std::optional<Client> parse_fdinfo(std::string_view text);

/// One process's memory on one device.
struct Holder {
  std::string pci_address;
  std::uint32_t pid = 0;
  std::optional<std::uint64_t> bytes;      ///< the device's own memory
  std::optional<std::uint64_t> gtt_bytes;  ///< host memory mapped for the GPU; counts if the GPU has little of its own
};

struct ClientScan {
  std::vector<Holder> holders;  ///< one entry per device and pid
  std::size_t unreadable = 0;   ///< processes with open files that we may not read
};

/// Follows the DRM files of all processes under one /proc. Not thread-safe.
class ClientScanner {
 public:
  explicit ClientScanner(std::string proc_root) : proc_root_(std::move(proc_root)) {}

  /// Reads the known DRM files. With `discover_first`, or if one of them no longer exists, searches all processes for
  /// such files. A client shared by several processes is counted once, for the lowest pid.
  /// Cost: one small read per known DRM file; discovery reads every process's descriptor table (about 1 ms per hundred
  /// processes), so it should not run at every poll.
  ClientScan scan(bool discover_first);

 private:
  struct OpenFile {
    std::uint32_t pid;
    std::string fdinfo_path;
  };
  void discover();
  /// Returns false if one of the known files could not be read.
  bool read_known(ClientScan& result) const;

  std::string proc_root_;
  std::vector<OpenFile> files_;  ///< sorted by pid
  std::size_t unreadable_ = 0;
};

}  // namespace vramtrack::drm
