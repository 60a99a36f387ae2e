#include "host/waits.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include "host/small_file.hpp"

namespace vramtrack {
namespace {

/// Where a call has its limit.
struct Call {
  long number;
  enum class Limit : std::uint8_t { none, pointer, milliseconds } limit;
  std::size_t argument;  ///< of a pointer: null without a limit; of milliseconds: negative
  bool is_for_any_file;
};

constexpr Call kCalls[] = {
    {SYS_read, Call::Limit::none, 0, false},
    {SYS_readv, Call::Limit::none, 0, false},
    {SYS_recvfrom, Call::Limit::none, 0, false},
    {SYS_recvmsg, Call::Limit::none, 0, false},
    {SYS_accept, Call::Limit::none, 0, false},
    {SYS_accept4, Call::Limit::none, 0, false},
    {SYS_wait4, Call::Limit::none, 0, false},
    {SYS_waitid, Call::Limit::none, 0, false},
    {SYS_rt_sigsuspend, Call::Limit::none, 0, false},
    {SYS_futex, Call::Limit::pointer, 3, false},
    {SYS_rt_sigtimedwait, Call::Limit::pointer, 2, false},
    {SYS_pselect6, Call::Limit::pointer, 4, true},
    {SYS_ppoll, Call::Limit::pointer, 2, true},
    {SYS_epoll_pwait, Call::Limit::milliseconds, 3, true},
#ifdef SYS_epoll_pwait2
    {SYS_epoll_pwait2, Call::Limit::pointer, 3, true},
#endif
#ifdef SYS_pause
    {SYS_pause, Call::Limit::none, 0, false},
#endif
#ifdef SYS_select
    {SYS_select, Call::Limit::pointer, 4, true},
#endif
#ifdef SYS_poll
    {SYS_poll, Call::Limit::milliseconds, 2, true},
#endif
#ifdef SYS_epoll_wait
    {SYS_epoll_wait, Call::Limit::milliseconds, 3, true},
#endif
};

}  // namespace

std::optional<Wait> parse_wait(std::string_view syscall) {
  // "202 0x7feaf0000ba0 0x189 0x0 0x0 0x0 0xffffffff 0x7feaf4caf8c0 0x7feaf52a3f16"
  const auto number = parse_unsigned(syscall.substr(0, syscall.find(' ')));
  if (!number) return std::nullopt;
  const auto call = std::find_if(std::begin(kCalls), std::end(kCalls),
                                 [&](const Call& c) { return static_cast<std::uint64_t>(c.number) == *number; });
  if (call == std::end(kCalls)) return Wait();
  for (std::size_t i = 0; i <= call->argument; ++i)
    syscall.remove_prefix(std::min(syscall.size(), syscall.find(' ') + 1));
  std::string_view word = syscall.substr(0, syscall.find(' '));
  word.remove_prefix(word.starts_with("0x") ? 2 : 0);
  const auto limit = parse_unsigned(word, 16);
  Wait wait;
  wait.is_for_any_file = call->is_for_any_file;
  switch (call->limit) {
    case Call::Limit::none:
      wait.has_limit = false;
      break;
    case Call::Limit::pointer:
      wait.has_limit = limit != 0U;
      break;
    case Call::Limit::milliseconds:
      wait.has_limit = !limit || static_cast<std::int32_t>(*limit) >= 0;
      break;
  }
  return wait;
}

Wait waits_of(const std::string& proc_root, std::uint32_t pid) {
  std::error_code error;
  std::array<char, 256> buffer;
  Wait all{false, false};
  bool is_known = false;
  const std::filesystem::path tasks = proc_root + '/' + std::to_string(pid) + "/task";
  for (auto entry = std::filesystem::directory_iterator(tasks, error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (const auto name = read_small_file((entry->path() / "comm").c_str(), buffer);
        name && trimmed(*name) == kThreadOfDriver)
      continue;
    const auto text = read_small_file((entry->path() / "syscall").c_str(), buffer);
    if (!text) return {true, true};
    is_known = true;
    const auto wait = parse_wait(*text);
    all.has_limit = all.has_limit || !wait || wait->has_limit;
    all.is_for_any_file = all.is_for_any_file || (wait && wait->is_for_any_file);
  }
  return is_known && !error ? all : Wait{true, true};
}

}  // namespace vramtrack
