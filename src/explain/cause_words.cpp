#include "explain/cause_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/units.hpp"
#include "explain/cause.hpp"
#include "explain/codes.hpp"
#include "explain/processes.hpp"
#include "explain/words.hpp"

namespace vramtrack::explain {

namespace {
/// The kernel kills a remaining process if the memory is filled by something that it may not kill.
constexpr double kSmallVictimBytes = 64 * kMiB;
/// The parts of a balance may exceed their total by this factor, because each is rounded.
constexpr double kAddsUp = 1.005;
/// No card has this much: a number that overflowed, or "none" written as the maximum.
constexpr double kLargestRequest = 0x1p50;

}  // namespace

std::string free_words(double free, double piece, const Failure& f) {
  if (free <= 0) return "nothing free";
  const double pieces = f.figures.get(Figure::pieces).value_or(0);
  if (pieces <= 1) return fmt::format("{} free in one piece", size_words(piece));
  return fmt::format("{} free in {:.0f} pieces, the largest of {}", size_words(free), pieces, size_words(piece));
}

std::string table_use_words(const Failure& f) {
  const double used = f.figures.get(Figure::used).value_or(0);
  const bool is_nobodys = f.others.empty() && used > ordinary_outside_bytes(f.figures.get(Figure::total).value_or(0));
  const std::string_view when =
      f.used_line > f.last_line ? " (made after it: what the failed program held may be gone)" : "";
  return fmt::format("{} of the device's {} were in use according to the table of nvidia-smi in line {}{}{}{}",
                     size_words(f.figures.get(Figure::used).value_or(0)),
                     size_words(f.figures.get(Figure::total).value_or(0)), f.used_line, when,
                     f.others.empty() ? "" : ": ",
                     is_nobodys ? ", which lists no process: of one that has ended and left it, of another container "
                                  "or user (fuser -v /dev/nvidia* as root)"
                                : processes_words(f.others));
}

bool is_host_code(const Failure& f) {
  const auto code = code_in(lower(f.text));
  return !f.figures.get(Figure::asked) && !f.figures.get(Figure::resident) && code && code->shortage == Shortage::host;
}

void diagnose_host_code(Failure& f) {
  f.cause = Cause::unknown;
  f.because = "the driver gives its code for the host's memory, which it also gives for other failures, and no figure";
  f.missing_evidence =
      "how much of the host's memory was free when it failed (free -m); if there was room, another version of the "
      "driver, or another device, shows whether the driver is at fault";
  f.figures.clear(Figure::total);  // of the device
}

void diagnose_host(Failure& f) {
  const auto asked = f.figures.get(Figure::asked);
  const auto free = f.figures.get(Figure::free);
  const auto resident = f.figures.get(Figure::resident);
  const auto limit = f.figures.get(Figure::allowed) ? f.figures.get(Figure::allowed) : f.figures.get(Figure::total);
  f.cause = f.wording->otherwise;
  if (f.cause == Cause::unknown) {
    f.because =
        "the process was ended by signal 9 (SIGKILL), which the kernel sends when the host's memory runs out, "
        "and which people, time limits and schedulers send too";
    return;
  }
  if (f.wording->name == "statement_killed") {
    f.because =
        "the process was ended by signal 9 (SIGKILL), which the kernel sends when the host's memory runs out, and the "
        "text names no other sender (dmesg -T | grep -i -e oom -e killed shows what the kernel ended)";
    return;
  }
  const double held = f.figures.get(Figure::allocated).value_or(0) + asked.value_or(0);
  if (const auto allowed = f.figures.get(Figure::allowed); allowed && held > *allowed && held > asked.value_or(0)) {
    f.cause = Cause::limit;
    f.because = fmt::format(
        "{} were requested and {} were held, and {} allows its program {}: its own limit, not the host's memory",
        size_words(asked.value_or(0)), size_words(held - asked.value_or(0)), who(*f.wording), size_words(*allowed));
    return;
  }
  if (f.cause == Cause::limit) {
    f.because =
        fmt::format("the memory that {} allows its program ran out, not that of the host or of a GPU", who(*f.wording));
    return;
  }
  const bool is_pin = f.wording->name == "statement_pinned" || f.wording->name == "ggml_pinned";
  if (is_pin && asked == 0) {
    f.cause = Cause::unknown;
    f.because =
        "not even the smallest piece of the host's memory could be pinned: pinning does not work here, and the host's "
        "memory is not short";
    f.missing_evidence =
        "whether any program pins memory here: the driver and its version, the limit of locked memory (ulimit -l, "
        "--ulimit memlock=-1 of the container)";
    return;
  }
  f.because = is_pin ? "the driver could not lock that much of the host's memory (pin it)"
              : f.wording->name == "statement_shm"
                  ? "the shared memory of the host (/dev/shm) ran out, not that of a GPU"
                  : "the memory of the host ran out, not that of a GPU";
  if (asked && free)
    f.because += fmt::format(": {} were needed and {} were available", size_words(*asked), size_words(*free));
  else if (asked && limit)
    f.because += fmt::format(": {} were needed and the machine has {}", size_words(*asked), size_words(*limit));
  else if (asked)
    f.because += fmt::format(": {} were requested in one piece", size_words(*asked));
  else if (f.wording->name == "ray_summary")
    f.because +=
        fmt::format(": Ray ended {:.0f} workers because their node ran low", f.figures.get(Figure::count).value_or(0));
  else if (resident && limit)
    f.because += fmt::format(": {} of {} were in use", size_words(*resident), size_words(*limit));
  else if (resident)
    f.because +=
        fmt::format(": the process that was ended held {}{}", size_words(*resident),
                    *resident < kSmallVictimBytes ? ", which fills no host: others, or the kernel, hold the rest" : "");
  if (!f.others.empty()) f.because += "; the most is held by " + processes_words(f.others);
}

void diagnose_resource(Failure& f) {
  f.cause = Cause::resource;
  const auto asked = f.figures.get(Figure::asked) ? f.figures.get(Figure::asked) : f.figures.get(Figure::needed);
  const auto limit = f.figures.get(Figure::allowed) ? f.figures.get(Figure::allowed) : f.figures.get(Figure::total);
  f.because =
      f.wording->name == "statement_address"
          ? "the addresses of the program ran out (of 32 bits they end at 2 to 4 GiB), not the memory of a GPU"
      : f.wording->name == "statement_thread"
          ? "the host allowed no more threads: their limit is reached, or there is no memory for their stacks"
      : asked && limit && *asked > *limit
          ? fmt::format("a kernel needs {} of the memory on the chip, and may have {}", size_words(*asked),
                        size_words(*limit))
          : "a kernel needs more of the memory or registers on the chip than there are: not the memory of the device";
}

bool is_handle(const Failure& f) {
  return f.figures.get(Figure::asked).value_or(0) <= 0 &&
         has_any(lower(f.text),
                 "textureobject|surfaceobject|createstream|streamcreate|createevent|eventcreate|createfence|"
                 "createsemaphore|descriptorset|createcontext|ctxcreate|createsampler");
}

std::string balance_words(const Failure& f) {
  const auto get = [&f](Figure figure) { return f.figures.get(figure).value_or(0); };
  const auto total = f.figures.get(Figure::total);
  const auto free = f.figures.get(Figure::free);
  const auto allowed = f.figures.get(Figure::allowed);
  const bool counts_use =
      allowed && (get(Figure::used) > *allowed || (!free && get(Figure::used) + get(Figure::asked) > *allowed));
  const double held = std::max(
      {get(Figure::reserved), get(Figure::allocated) + get(Figure::unallocated), counts_use ? get(Figure::used) : 0.0});
  const double asked = std::max(get(Figure::asked), get(Figure::needed));
  double others = get(Figure::outside);
  if (others <= 0)
    for (const OtherProcess& each : f.others) others += each.bytes;
  std::string sum;
  double rest = 0;  // for the request
  const auto add = [&sum](double bytes, std::string_view what) {
    if (bytes >= kMiB) sum += fmt::format("{}{} {}", sum.empty() ? "" : " + ", size_words(bytes), what);
  };
  if (const double most = std::min(allowed.value_or(0), total.value_or(allowed.value_or(0)));
      most > 0 && (held > 0 || asked > most) && (!free || *free >= asked)) {
    rest = most - held;
    add(held, "held");
    sum = fmt::format("{} allowed{}{}", size_words(most), sum.empty() ? "" : " - ", sum);
    if (asked <= 0 && held > most) sum += fmt::format(": {} too much", size_words(held - most));
  } else if (total && (free || (f.figures.get(Figure::used) && f.used_line <= f.last_line))) {
    rest = free.value_or(*total - get(Figure::used));
    const double own = std::max(held, get(Figure::process));
    // Figures of other moments or devices do not add up: no sum is better than a false one.
    if (rest < 0 || own + rest > *total * kAddsUp) return {};
    const double allocated = get(Figure::allocated);
    add(allocated, "allocated");
    add(held - allocated, allocated > 0 ? "cached" : "reserved");
    add(own - held, held > 0 ? "of this process beside its allocator" : "of this process");
    add(*total - rest - own, own > 0 ? "held outside" : "in use");
    add(rest, "free");
    sum = fmt::format("{} = {}", size_words(*total), sum);
  } else if (total && asked > 0 && !free && !f.may_name_itself && f.used_line == 0 && others > 0 &&
             others + held <= *total) {
    rest = *total - others - held;
    add(held, "allocated");
    add(others, held > 0 ? "held outside" : "of others");
    add(rest, held > 0 ? "beside both" : "beside them");
    sum = fmt::format("{} = {}", size_words(*total), sum);
  } else if (const auto planned = f.figures.get(Figure::planned);
             total && asked > 0 && !free && planned && held <= 0 && *planned <= *total) {
    rest = *total - *planned;
    add(*planned, "planned");
    add(rest, "beside that");
    sum = fmt::format("{} = {}", size_words(*total), sum);
  } else if (free && asked > 0) {
    rest = *free;
    sum = fmt::format("{} free", size_words(rest));
  }
  if (sum.empty() || asked <= 0 || asked >= kLargestRequest) return sum;
  // Why a request that would have fit by the sum failed all the same.
  const std::string_view although = asked > rest                      ? ""
                                    : f.cause == Cause::fragmentation ? ", but not in one piece"
                                    : f.cause == Cause::full || f.cause == Cause::too_big
                                        ? ", of which the driver keeps some back"
                                        : "";
  return fmt::format("{}; {} asked for: {} {}{}", sum, size_words(asked), size_words(std::abs(asked - rest)),
                     asked > rest ? "short" : "to spare", although);
}

std::string wording_words(const Failure& f) {
  const auto asked = f.figures.get(Figure::asked);
  std::string out = asked ? fmt::format("{} were requested", size_words(*asked)) : "";
  const auto add = [&out](std::string_view words) {
    if (!out.empty()) out += "; ";
    out += words;
  };
  switch (f.cause) {
    case Cause::limit:
      add(fmt::format(
          "{} refused because of its own limit{}", who(*f.wording),
          f.figures.get(Figure::allowed) ? fmt::format(", {}", size_words(*f.figures.get(Figure::allowed))) : ""));
      break;
    case Cause::too_big:
      if (const auto needed = f.figures.get(Figure::needed))
        add(fmt::format("it needs {} in all", size_words(*needed)));
      if (f.wording->name == "torch_mps_buffer") {
        add("Metal does not allocate as much in one piece on this machine");
        break;
      }
      add(fmt::format("{} did not find that much free{}", who(*f.wording),
                      has_any(lower(f.text), "shared host memory|host and device|gpu and host|gpu and system")
                          ? ", neither on the GPU nor in the host's memory, of which it may take a share"
                          : ""));
      break;
    case Cause::bad_size:
      add("the size that was requested is itself wrong: no machine has as much");
      break;
    case Cause::outside:
      if (const auto slept = f.figures.get(Figure::slept))
        add(fmt::format("the {} that it gave back when it went to sleep are held by others now", size_words(*slept)));
      else
        add("the memory was released before, and others hold it now");
      break;
    case Cause::fragmentation:
      add(fmt::format(
          "{} had {}", who(*f.wording),
          free_words(f.figures.get(Figure::free).value_or(0), f.figures.get(Figure::piece).value_or(0), f)));
      break;
    case Cause::full:
      add(fmt::format("{} had filled the device before", who(*f.wording)));
      if (const auto free = f.figures.get(Figure::free)) out += fmt::format(": {} were free", size_words(*free));
      break;
    default:
      if (const auto needed = f.figures.get(Figure::needed))
        add(fmt::format("the program needs {} in all", size_words(*needed)));
      if (f.wording->name == "statement_session")
        add("no encoder session could be opened, for lack of memory or because as many are open as the driver allows");
      else if (f.wording->name == "statement")
        add("the message says neither which memory ran out, the host's or a device's, nor who holds it");
      else
        add(fmt::format("{} says that memory ran out, but not who holds it", who(*f.wording)));
      if (f.used_line > 0 && f.figures.get(Figure::used) && f.figures.get(Figure::total)) add(table_use_words(f));
      if (takes_device_at_start(*f.wording))
        add("its own arrays may have filled what it takes of the device when it starts, or others held the device "
            "before");
  }
  return out;
}

}  // namespace vramtrack::explain
