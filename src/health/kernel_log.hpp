// DriverLog: what the NVIDIA driver wrote to the kernel log about the health of GPUs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vramtrack {

/// One kind of message about one GPU, however often it was written. Its texts are foreign bytes: print them through
/// core/printable.
struct DriverEvent {
  enum class Kind : std::uint8_t {
    xid,               ///< "NVRM: Xid (PCI:0000:65:00): 79, pid=1234, name=python, ..."
    off_the_bus,       ///< "NVRM: GPU 0000:65:00.0: GPU has fallen off the bus."
    version_mismatch,  ///< "NVRM: API mismatch: the client has the version 550.54.14, but this kernel module has ..."
  };
  Kind kind = Kind::xid;
  std::string pci_address;  ///< "0000:65:00" in lower case, without the function; empty if the message names none
  std::uint64_t code = 0;   ///< the number of an XID
  std::uint64_t count = 0;  ///< number of messages, at least 1
  // From the last of them:
  std::optional<std::uint32_t> pid;
  std::string process;                 ///< at most 64 bytes
  std::string text;                    ///< the message from "NVRM:" on, at most 256 bytes
  std::optional<double> since_boot_s;  ///< when it was written, if the log states it
  // For a version mismatch; at most 32 bytes each:
  std::string client_version;
  std::string module_version;
};

/// Reads lines and keeps one event per kind, GPU, XID and severity: a fatal message is not lost behind later ones
/// that are not. Messages that the driver wrote before it was last loaded are
/// forgotten, as are those about a GPU before the one that no recovery is needed any more (XID 154, "None").
/// Holds at most 1024 events, whatever the input is. Not thread-safe.
class DriverLogReader {
 public:
  /// One line as in `dmesg`, `journalctl -k` and kern.log, with or without a newline. A message of the driver counts
  /// only where a kernel's line has it: at the beginning, or after "[time] ", "kernel: " or the like; so a
  /// program's name that contains such text makes no event. Bytes past the first 4096 are not read. O(length).
  void line(std::string_view line);
  /// One record of /dev/kmsg: "priority,sequence,microseconds,flags;message". Records that programs wrote are
  /// ignored, as are messages written earlier than `oldest_s` or later than `newest_s` after boot.
  void kmsg_record(std::string_view record, double oldest_s = 0,
                   double newest_s = std::numeric_limits<double>::infinity());
  /// The lines of a whole file.
  void lines(std::string_view text);

  /// In the order in which they were first seen.
  [[nodiscard]] const std::vector<DriverEvent>& events() const { return events_; }
  /// The number of messages for which there was no place among 1024 events.
  [[nodiscard]] std::uint64_t dropped() const { return dropped_; }

 private:
  void message(std::string_view text, std::optional<double> since_boot_s);
  void xid(std::string_view text, std::optional<double> since_boot_s);
  void mismatch(std::string_view text, std::optional<double> since_boot_s);
  void add(DriverEvent event);
  void forget(const std::string& pci_address);

  std::vector<DriverEvent> events_;
  std::uint64_t dropped_ = 0;
  std::optional<std::size_t> open_mismatch_;  ///< in events_: its second half is on the next line
};

/// The version in the first line of /proc/driver/nvidia/version; empty if there is none. Pure.
std::string module_version_of(std::string_view proc_text);

}  // namespace vramtrack
