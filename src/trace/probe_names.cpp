#include "trace/probe_names.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/ascii.hpp"

namespace vramtrack::trace {
namespace {

/// Functions with which the C and C++ libraries start programs and threads: always present, never informative.
bool begins_a_thread(std::string_view name) {
  return name == "_start" || name == "start_thread" || name == "clone" || name.starts_with("__clone") ||
         name.starts_with("__libc_start") || name.starts_with("execute_native_thread_routine");
}

std::string_view module_path(const ProcessTrace& process, std::uint64_t address) {
  const MappedModule* const module = process.names().module_at(address);
  return module == nullptr ? std::string_view{} : module->path;
}

/// One call of this function runs Python frames up to the next entry frame. Compilers append ".cold" and ".lto_priv.0".
bool is_eval_loop(std::string_view function) {
  constexpr std::string_view kName = "_PyEval_EvalFrameDefault";
  return function.starts_with(kName) &&
         (function.size() == kName.size() || function[kName.size()] == '.' || function[kName.size()] == ' ');
}

/// Whether only the library of the frame is known.
bool is_library_alone(const Symbols& symbols, FrameId frame) {
  return symbols.frame(frame).line == 0 && symbols.name(frame) == base_name(symbols.file(frame));
}

/// Whether PyTorch's engine runs backward passes on the thread; no frame of the program is above those.
bool is_of_autograd(std::string_view thread) {
  return thread.starts_with("pt_autograd");
}
bool begins_autograd(std::string_view name) {
  return name.find("autograd::Engine::thread_init") != std::string_view::npos ||
         name.find("PythonEngine::thread_init") != std::string_view::npos;
}

/// The graph node that a frame evaluates, such as "AddmmBackward0" (Python's grad_fn shows this name); else empty.
std::string_view graph_node(std::string_view function) {
  constexpr std::string_view kNodes = "torch::autograd::generated::", kApply = "::apply";
  const std::size_t begin = function.find(kNodes);
  if (begin == std::string_view::npos) return {};
  function.remove_prefix(begin + kNodes.size());
  const std::size_t end = function.find(kApply);
  return end == std::string_view::npos ? std::string_view{} : function.substr(0, end);
}

}  // namespace

const std::vector<FrameId>& ProbeNames::native_frames(const ProcessTrace& process, std::uint64_t address) {
  const auto [known, is_new] = natives_[&process].try_emplace(address);
  std::vector<FrameId>& out = known->second;
  if (!is_new) return out;
  const MappedModule* const module = process.names().module_at(address);
  if (module == nullptr) {
    out.push_back(symbols_->intern(Frame{symbols_->intern(fmt::format("0x{:x}", address)), kNoText, 0}));
    return out;
  }
  const std::uint64_t offset = address - module->begin + module->file_offset;
  std::vector<NativeName> names;
  if (native_ != nullptr) names = native_->look_up(module->path, trace_->build_id(module->path), offset);
  // An address in a library that is not in the debug information adds nothing to the library's name.
  if (names.empty() && native_ != nullptr && !own_.is_own_native(module->path, {}))
    names.push_back({std::string(base_name(module->path)), module->path, 0});
  if (names.empty()) names.push_back({fmt::format("{}+0x{:x}", base_name(module->path), offset), module->path, 0});
  for (const NativeName& name : names) {
    const std::string& file = name.file.empty() ? module->path : name.file;
    out.push_back(symbols_->intern(Frame{symbols_->intern(name.function), symbols_->intern(file), name.line}));
    if (own_.is_own_native(module->path, name.file)) own_frames_.insert(index_of(out.back()));
  }
  return out;
}

FrameId ProbeNames::python_frame(const ProcessTrace& process, const RawFrame& raw) {
  const CodeObject* const code = process.names().code(static_cast<std::uint32_t>(raw.address));
  const std::string_view file = code == nullptr ? "" : process.names().text(code->file);
  const std::string_view name = code == nullptr ? "(unknown Python function)" : process.names().text(code->name);
  const std::uint32_t line = raw.line == 0 && code != nullptr ? code->first_line : raw.line;
  const FrameId frame = symbols_->intern(Frame{symbols_->intern(name), symbols_->intern(file), line});
  python_.insert(index_of(frame));
  if (own_.is_own_python(file)) own_frames_.insert(index_of(frame));
  return frame;
}

StackId ProbeNames::stack(const ProcessTrace& process, std::uint32_t number) {
  const auto [known, is_new] = stacks_[&process].try_emplace(number, kNoStack);
  if (!is_new) return known->second;
  const std::vector<RawFrame>& raw = process.names().stack(number);
  std::vector<FrameId> frames;
  std::vector<FrameId> python;
  std::vector<bool> is_entry;
  for (const RawFrame& frame : raw) {
    if (!frame.is_python) continue;
    python.push_back(python_frame(process, frame));
    is_entry.push_back(frame.is_entry);
  }
  std::size_t next = 0;
  std::size_t interpreter = raw.size();  // where the interpreter's frames begin
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i].is_python) continue;
    const auto& natives = native_frames(process, raw[i].address);
    if (interpreter == raw.size())
      if (is_interpreter(module_path(process, raw[i].address))) interpreter = frames.size();
    // The frames by which the interpreter called one frame from another are nobody's code.
    const bool is_between = next > 0 && next < python.size();
    if (next < python.size() && !natives.empty() && is_eval_loop(symbols_->name(natives.back()))) {
      do frames.push_back(python[next]);
      while (!is_entry[next++] && next < python.size());
    } else if (!is_between || !is_cpython(module_path(process, raw[i].address))) {
      for (const FrameId frame : natives)  // nameless functions of one library merge
        if (frames.empty() || frames.back() != frame || !is_library_alone(*symbols_, frame)) frames.push_back(frame);
    }
  }
  // The native frames of an interpreter without symbols add nothing to the Python frames.
  if (next == 0 && !python.empty() && interpreter < frames.size()) frames.resize(interpreter);
  frames.insert(frames.end(), python.begin() + static_cast<std::ptrdiff_t>(next), python.end());
  if (is_of_autograd(thread_of(process, number)) || std::any_of(frames.begin(), frames.end(), [this](FrameId frame) {
        return begins_autograd(symbols_->name(frame));
      })) {
    std::string name = "backward()";
    for (const FrameId frame : frames)
      if (const std::string_view node = graph_node(symbols_->name(frame)); !node.empty())
        name = fmt::format("backward() of {}", node);
    frames.push_back(symbols_->intern(Frame{symbols_->intern(name), kNoText, 0}));
  }
  return stacks_[&process][number] = symbols_->intern(frames);
}

/// The name of the thread that first allocated there.
std::string_view ProbeNames::thread_of(const ProcessTrace& process, std::uint32_t stack) {
  const auto [known, is_new] = threads_.try_emplace(&process);
  if (is_new)
    for (const CallSite& site : process.sites()) known->second.try_emplace(site.stack, site.thread);
  const auto thread = known->second.find(stack);
  return thread == known->second.end() ? std::string_view{} : process.names().thread_name(thread->second);
}

SiteLine ProbeNames::line(StackId stack) const {
  SiteLine out;
  for (const FrameId frame : symbols_->stack(stack)) {
    if (own_frames_.count(index_of(frame)) != 0) return {frame, true, true};
    const std::string_view name = symbols_->name(frame);
    if (!begins_a_thread(name) && is_informative(*symbols_, frame)) out = {frame, true, false};
  }
  if (!out.is_known && !symbols_->stack(stack).empty()) out = {symbols_->stack(stack).back(), true, false};
  return out;
}

LineOf ProbeNames::line_of() const {
  return [this](StackId stack) -> std::optional<FrameId> {
    const SiteLine found = line(stack);
    return found.is_known ? std::optional(found.frame) : std::nullopt;
  };
}

}  // namespace vramtrack::trace
