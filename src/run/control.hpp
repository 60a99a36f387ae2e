// The control socket of a run: only its user can change limits, set marks and query memory.
//
// run/client is the client. A connection sends one line and gets one back, "ok ..." or "error: ...":
//   limit BYTES | soft-limit BYTES | mark NAME | status | report | categories | kept | kept NUMBER
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.hpp"

namespace vramtrack::run {

/// One request. Parsing is pure; an Error states what was expected.
struct ControlRequest {
  std::optional<std::uint64_t> limit_bytes;
  std::optional<std::uint64_t> soft_limit_bytes;
  std::optional<std::string> mark;
  bool asks_status = false;
  std::optional<std::uint64_t> kept;  ///< 0: search for what keeps memory; else return this search's result
  bool asks_categories = false;       ///< "PID:weights=BYTES,activations=BYTES PID:...", of a run with --watch
  bool asks_report = false;           ///< the sites so far, in the format of `vramtrack trace report --format json`
};
Result<ControlRequest> parse_control(std::string_view line);

/// Listens on `folder`/control. Not thread-safe; never waits.
class ControlSocket {
 public:
  /// The answer to a request, without its newline.
  using Answer = std::function<std::string(const ControlRequest& request)>;

  static Result<ControlSocket> open(const std::string& folder);
  ControlSocket(ControlSocket&& other) noexcept;
  ControlSocket& operator=(ControlSocket&& other) noexcept;
  ~ControlSocket();

  /// Answers pending requests, and closes connections of other users.
  void serve(const Answer& answer);

 private:
  ControlSocket() = default;
  std::string path_;
  int socket_ = -1;
};

}  // namespace vramtrack::run
