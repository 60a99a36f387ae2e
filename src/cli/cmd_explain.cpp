// explain: explains the out-of-memory messages in a text. The output's contract is docs/formats/explain.md.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "cli/commands.hpp"
#include "cli/output_option.hpp"
#include "cli/progress.hpp"
#include "core/byte_input.hpp"
#include "core/format.hpp"
#include "core/printable.hpp"
#include "explain/explanation.hpp"
#include "explain/pasted.hpp"
#include "explain/render.hpp"
#include "explain/sequence.hpp"

namespace vramtrack::cli {
namespace {

constexpr int kExplained = 0;
constexpr int kNoMessage = 1;
constexpr int kFailed = 2;

struct ExplainOptions {
  std::vector<std::string> files;
  std::string format = "text";
};

struct Reading {
  std::vector<explain::Message> messages;
  std::uint64_t quotation_line = 0;  ///< see Reader::quotation_line()
  std::string head;                  ///< at most explain::kPastedBytes
};

/// The messages of one file, which is read as a stream.
Result<Reading> read_file(const std::string& path) {
  auto input = ByteInput::open(path, {"text files", false, 0});
  if (!input) return fail(input.error());
  explain::Reader reader;
  Reading reading;
  std::array<std::uint8_t, 1 << 16> bytes;
  for (;;) {
    const auto size = input->read(bytes);
    if (!size) return fail(size.error());
    if (*size == 0) break;
    const std::string_view piece(reinterpret_cast<const char*>(bytes.data()), *size);
    reader.feed(piece);
    reading.head += piece.substr(0, explain::kPastedBytes - reading.head.size());
  }
  reading.messages = reader.finish();
  reading.quotation_line = reader.quotation_line();
  return reading;
}

/// The answer for a text in which no allocation fails.
std::string nothing_found(const std::string& name, const Reading& reading) {
  std::string out = fmt::format("{}: no out-of-memory message found", name);
  if (const explain::Pasted text = explain::pasted(reading.head); !text.what.empty())
    return out + fmt::format(". It {}{}{}", printable(text.what), text.next_step.empty() ? "" : "; ", text.next_step);
  const auto events = explain::events_of({}, reading.messages);
  if (events.empty() && reading.quotation_line > 0)
    return out + fmt::format(
                     "; line {} only mentions one. If it is a message, pass it with its figures, on a line of "
                     "its own",
                     format_number(reading.quotation_line));
  if (events.empty())
    return out + "; if it contains one, please report its wording (docs/explain.md lists the known ones)";
  for (std::size_t i = 0; i < events.size(); ++i)
    out += fmt::format("{}{}", i == 0 ? ", but " : "; ", explain::event_words(events[i]));
  return out;
}

int explain_files(const ExplainOptions& options, Console& console) {
  const std::vector<std::string> files = options.files.empty() ? std::vector<std::string>{"-"} : options.files;
  // The program that writes to the pipe may be writing to this terminal, too.
  std::optional<Progress> progress;
  if (std::find(files.begin(), files.end(), "-") == files.end()) progress.emplace(console, files);
  int exit_code = kExplained;
  bool is_first = true;
  for (const std::string& file : files) {
    const std::string name = file == "-" ? "standard input" : file;
    const auto reading = read_file(file);
    if (!reading) {
      const std::string& why = reading.error().message;  // names the file, but not standard input
      console.error(fmt::format("cannot explain {}", why.starts_with(name) ? why : name + ": " + why));
      exit_code = kFailed;
      continue;
    }
    const auto explanation = explain::explain(reading->messages);
    if (!explanation) {
      console.error(nothing_found(name, *reading));
      exit_code = std::max(exit_code, kNoMessage);
      continue;
    }
    if (options.format == "json") {
      console.write(explain::explanation_json(*explanation, file == "-" ? "" : file) + '\n');
    } else {
      if (!is_first) console.write("\n");
      console.write_prose(explain::explanation_text(*explanation, name));
    }
    is_first = false;
    if (console.gone()) break;
  }
  return exit_code;
}

Runner declare(Arguments& arguments) {
  const auto options = std::make_shared<ExplainOptions>();
  arguments
      .operands("FILE", "Logs, tracebacks or any other text, also .gz and .zst; - is standard input (default)",
                text(options->files))
      .file();
  arguments.format({"text", "json"}, "Write as: text (default), json", text(options->format));
  return with_output(arguments, [options](Console& console) { return explain_files(*options, console); });
}

}  // namespace

const CommandInfo explain_command{
    "explain", "Explain out-of-memory messages in any text: what filled the memory, who is responsible, what to do",
    "Examples:\n"
    "  vramtrack explain train.log\n"
    "  python train.py 2>&1 | tee train.log | vramtrack explain\n"
    "  dmesg | vramtrack explain\n"
    "  vramtrack explain --format json slurm-4711.out\n"
    "Exit: 0 explained, 1 no message found, 2 a file could not be read. See docs/explain.md.",
    declare};

}  // namespace vramtrack::cli
