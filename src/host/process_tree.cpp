#include "host/process_tree.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>

#include "core/order.hpp"
#include "host/process.hpp"
#include "host/small_file.hpp"

namespace vramtrack {

std::vector<ListedProcess> list_processes(const std::string& proc_root) {
  std::vector<ListedProcess> all;
  std::error_code error;
  for (auto entry = std::filesystem::directory_iterator(proc_root, error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const auto pid = parse_unsigned(entry->path().filename().string());
    if (!pid || *pid > 0xffffffffU) continue;
    const auto text = read_text_file((entry->path() / "stat").string(), 4096);  // it may end at any moment
    const auto stat = text ? parse_stat(*text) : std::nullopt;
    if (!stat) continue;
    ListedProcess one;
    one.pid = static_cast<std::uint32_t>(*pid);
    one.parent_pid = stat->parent_pid;
    one.group = stat->group;
    one.session = stat->session;
    one.start_ticks = std::max<std::uint64_t>(stat->start_ticks, 1);
    one.state = stat->state;
    one.is_forked_only = stat->is_forked_only;
    one.name = stat->name;
    all.push_back(std::move(one));
  }
  order(all, [](const ListedProcess& a, const ListedProcess& b) { return a.pid < b.pid; });
  return all;
}

std::vector<std::vector<std::uint32_t>> processes_around(const std::string& proc_root, std::uint32_t pid) {
  constexpr std::size_t kMostParents = 64;
  constexpr std::size_t kMostOfSession = 4000;
  const std::vector<ListedProcess> all = list_processes(proc_root);
  const auto find = [&all](std::uint32_t wanted) {
    return std::find_if(all.begin(), all.end(), [wanted](const ListedProcess& p) { return p.pid == wanted; });
  };
  std::vector<std::vector<std::uint32_t>> out;
  const auto own = find(pid);
  if (own == all.end()) return out;
  std::set<std::uint32_t> known = {pid};
  for (auto at = find(own->parent_pid); at != all.end() && out.size() < kMostParents; at = find(at->parent_pid)) {
    if (!known.insert(at->pid).second) break;
    out.push_back({at->pid});
  }
  std::vector<std::uint32_t> beside;
  for (const ListedProcess& one : all)
    if (one.session == own->session && beside.size() < kMostOfSession && !known.contains(one.pid))
      beside.push_back(one.pid);
  if (!beside.empty()) out.push_back(std::move(beside));
  return out;
}

std::set<std::uint32_t> process_tree(const std::string& proc_root, std::uint32_t root) {
  std::multimap<std::uint32_t, std::uint32_t> children;
  for (const ListedProcess& one : list_processes(proc_root)) children.emplace(one.parent_pid, one.pid);
  std::set<std::uint32_t> tree = {root};
  std::vector<std::uint32_t> open = {root};
  while (!open.empty()) {
    const std::uint32_t parent = open.back();
    open.pop_back();
    const auto [first, last] = children.equal_range(parent);
    for (auto child = first; child != last; ++child)
      if (tree.insert(child->second).second) open.push_back(child->second);
  }
  return tree;
}

}  // namespace vramtrack
