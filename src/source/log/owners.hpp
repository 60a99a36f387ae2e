// Whose a figure is: what the fields of a record say about the GPU, the process and the program that it belongs to. One
// rule for the columns of tables, the keys of JSON, the labels of metrics and the fields of text:
// docs/design/0032-records.md. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "source/log/columns.hpp"
#include "source/log/roster.hpp"

namespace vramtrack {

/// What the fields of a record say about its GPU. Missing ones stay empty.
struct OwnerIds {
  std::string_view uuid;
  std::string_view pci_bus_id;  ///< as pci_address_of() writes it
  std::string_view index;       ///< as written: "3", "cuda:1", "GPU-8f1c...", or another id
  std::string_view origin;      ///< the machine, job or program; several are joined by '/'
  std::string_view partition;   ///< "gi3"
  std::string_view share;       ///< what else distinguishes records of one GPU at one time: a pod
  std::string_view name;        ///< of the model
};

/// Appends a part to an id of several: "n1" and "0" become "n1/0". An empty part is none.
void add_part(std::string& id, std::string_view part);

/// "xcp3" for the value of a field titled "XCP"; empty if there is none, or for 0, which stands for the GPU itself.
std::string partition_named(std::string_view title, std::string_view value);

/// The GPU that they name: by its UUID, which is unique; else by its address, its number or another id, in this order.
/// These are unique only within one origin, and an origin without any of them is one GPU. A partition, and a share of a
/// GPU that a UUID names, are devices of their own, with that GPU as their parent; other shares are further origins.
LogDevice device_of(const OwnerIds& ids);

/// Whether fields of this role name an owner: a machine, a user, a GPU, a partition. O(1).
bool names_owner(ColumnRole role);
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

/// Whether ids number the rows, not GPUs: each row has another one while time advances. If a head is too short for
/// every GPU to have had its first reading, ids do not repeat either, but then time does not advance. Empty `times`:
/// the log has none. O(n log n).
bool number_rows(std::span<const std::string_view> ids, std::span<const std::string_view> times);

/// Whether a field with this title and these values may name an owner: that of an owner, or of no measure. A count is
/// no name, but "row" may also title the letters of a machine room's rows.
bool may_name_owner(std::string_view title, std::span<const std::string_view> values);

/// The records of a log's head with memory in use: an element of each list per record.
struct HeadRecords {
  std::vector<std::string> owners;      ///< what names the owner, in any form
  std::vector<std::string_view> times;  ///< as written; empty: none
  std::vector<double> amounts;          ///< NaN: none
};

/// The values of a field in each of those records; empty where it is missing.
using HeadField = std::vector<std::string_view>;

/// Positions of the fields that also name the owner, in order. With their values, records of one owner that share a
/// time no longer have different amounts, at most of such times; only fields count whose values are few, repeat, and
/// occur at most times between their first and last. So does the name of a program without a pid, the job on a machine,
/// a slot beside a host. A measurement does not, nor a name that only changes in the course of time. Of several sets
/// the smallest is chosen, then the first. Empty unless an owner has such records at a third of its times. O(records x
/// fields), times 162 at worst.
std::vector<std::size_t> find_owner_fields(HeadRecords records, std::span<const HeadField> fields);

/// The warning about readings that the fields with these titles distinguish.
std::string distinguished_by_fields(std::span<const std::string> names);

}  // namespace vramtrack
