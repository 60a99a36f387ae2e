// Runs a program for each message and passes the message as JSON on standard input and in variables.
#include <array>

#include "act/channel.hpp"
#include "act/run_program.hpp"

namespace vramtrack::act {
namespace {

constexpr std::array kSettings = {ChannelSetting{"exec", true}};

Result<Deliver> make(const ChannelContext& context) {
  if (context.config.exec.front().empty()) return fail("notify.exec: its first element, the program, is empty");
  return [argv = context.config.exec, limit = context.config.timeout_seconds, &rules = context.rules,
          &stop = context.stop](const Message& m) {
    return run_program(argv, webhook_body(m, rules) + '\n', variables_of(m, rules), limit, stop);
  };
}

}  // namespace

extern const ChannelInfo exec_channel;
const ChannelInfo exec_channel{
    .name = "exec",
    .settings = kSettings,
    .configured = [](const NotifyConfig& config) { return !config.exec.empty(); },
    .make = make,
};

}  // namespace vramtrack::act
