#include "explain/wording.hpp"

namespace vramtrack::explain {

std::string_view cause_name(Cause cause) {
  switch (cause) {
    case Cause::leak:
      return "leak";
    case Cause::fragmentation:
      return "fragmentation";
    case Cause::bad_size:
      return "bad_size";
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
    case Cause::resource:
      return "resource";
    case Cause::unknown:
      break;
  }
  return "unknown";
}

std::vector<std::string_view> texts_of(const Wording& wording) {
  std::vector<std::string_view> out;
  std::string_view rest = wording.text;
  for (std::size_t at = rest.find("||"); at != std::string_view::npos; at = rest.find("||")) {
    out.push_back(rest.substr(0, at));
    rest.remove_prefix(at + 2);
  }
  if (!rest.empty()) out.push_back(rest);
  return out;
}

std::string_view who(const Wording& wording) {
  return wording.program == "any" ? "the program" : wording.program;
}

std::string_view resource_of(const Wording& wording) {
  return wording.role == Role::device          ? "objects of the driver"
         : wording.name == "statement_thread"  ? "threads"
         : wording.name == "statement_address" ? "addresses"
                                               : "memory on the chip";
}

std::span<const Wording> wordings() {
  static constexpr Wording kWordings[] = {
#define VRAMTRACK_MARK(...)
#define VRAMTRACK_WORDING(name, program, versions, role, otherwise, setting, text) \
  {name, program, versions, Role::role, Cause::otherwise, setting, text},
#define VRAMTRACK_EVENT(name, program, what, text) {name, program, "any", Role::event, Cause::unknown, what, text},
#define VRAMTRACK_FRAME(name, program, text) {name, program, "any", Role::frame, Cause::unknown, "", text},
#include "explain/wordings.def"
#undef VRAMTRACK_FRAME
#undef VRAMTRACK_EVENT
#undef VRAMTRACK_WORDING
#undef VRAMTRACK_MARK
  };
  return kWordings;
}

std::span<const ProgramMark> marks() {
  static constexpr ProgramMark kMarks[] = {
#define VRAMTRACK_WORDING(...)
#define VRAMTRACK_EVENT(...)
#define VRAMTRACK_FRAME(...)
#define VRAMTRACK_MARK(name, program, role, otherwise, setting, marks) \
  {marks, {name, program, "any", Role::role, Cause::otherwise, setting, ""}},
#include "explain/wordings.def"
#undef VRAMTRACK_MARK
#undef VRAMTRACK_FRAME
#undef VRAMTRACK_EVENT
#undef VRAMTRACK_WORDING
  };
  return kMarks;
}

}  // namespace vramtrack::explain
