// Whose a figure is: what the fields of a record say about the GPU, the process and the program that it belongs to. One
// rule for the columns of tables, the keys of JSON, the labels of metrics and the fields of text:
// docs/design/0032-records.md. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "source/log/roster.hpp"

namespace vramtrack {

/// What the fields of a record say about its GPU. Missing ones stay empty.
struct OwnerIds {
  std::string_view uuid;
  std::string_view pci_bus_id;  ///< as pci_address_of() writes it
  std::string_view index;       ///< as written: "3", "cuda:1", "GPU-8f1c...", or another id
  std::string_view origin;      ///< the machine, job or program; several are joined by '/'
  std::string_view partition;   ///< "gi3"
  std::string_view name;        ///< of the model
};

/// The GPU that they name: by its UUID, which is unique; else by its address, its number or another id, in this order.
/// These are unique only within one origin, and an origin without any of them is one GPU.
LogDevice device_of(const OwnerIds& ids);

/// Whether a key in a line of text names its writer: a machine, job, program, thread or GPU ("host", "job_id"). That of
/// a phase ("split") does not. O(1).
bool names_origin(std::string_view key);
/// Whether a key names a program: "process_name", "command". O(1).
bool names_program(std::string_view key);

/// Why a record with a pid that cannot be read is left out.
inline constexpr std::string_view kNoPid = "no readable pid";

/// The pid in `text`; nullopt: it is none. No process has the number 0: tools write it if they do not know the process.
std::optional<std::uint32_t> pid_of(std::string_view text);

/// Whether the values of a field titled as a pid name no processes, since they number programs from 0, as ranks do: 0,
/// 1, ... with none left out. 0 alone says nothing. O(n log n).
bool number_programs(std::span<const std::string_view> pids);

/// Whether `values` distinguish records that nothing else does: at most of the times that several records of one of
/// `owners` share, each of them has another value. So does the name of a program if no pid is beside it, and the job on
/// a machine; a name that only changes in the course of time does not. All three are those of the same records.
/// O(n log n).
bool distinguish(std::span<const std::string_view> values, std::span<const std::string_view> times,
                 std::span<const std::string> owners);

/// Whether `values` are few and repeat, as those of an id do and measurements do not. O(n log n).
bool are_few(std::span<const std::string_view> values);

}  // namespace vramtrack
