#include "explain/wording.hpp"

namespace vramtrack::explain {

std::string_view cause_name(Cause cause) {
  switch (cause) {
    case Cause::leak:
      return "leak";
    case Cause::fragmentation:
      return "fragmentation";
    case Cause::too_big:
      return "too_big";
    case Cause::full:
      return "full";
    case Cause::limit:
      return "limit";
    case Cause::outside:
      return "outside";
    case Cause::host:
      return "host";
    case Cause::unknown:
      break;
  }
  return "unknown";
}

std::span<const Wording> wordings() {
  static constexpr Wording kWordings[] = {
#define VRAMTRACK_WORDING(name, program, versions, role, otherwise, setting, text) \
  {name, program, versions, Role::role, Cause::otherwise, setting, text},
#include "explain/wordings.def"
#undef VRAMTRACK_WORDING
  };
  return kWordings;
}

}  // namespace vramtrack::explain
