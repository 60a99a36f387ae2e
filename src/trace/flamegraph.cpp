// The flame graph: an icicle of divs positioned here, in per cent, so that it works without any script. The script only
// zooms, searches, and switches to a second graph without the frames of the allocator and the framework.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "core/format.hpp"
#include "core/markup.hpp"
#include "trace/exports.hpp"

namespace vramtrack::trace {
namespace {

constexpr double kLeastShare = 1.0 / 2000;
constexpr std::size_t kMostDepth = 256;
constexpr std::size_t kMostLines = 200;  // lines of the table

struct Node {
  std::int64_t bytes = 0;
  std::int64_t blocks = 0;
  std::map<std::uint32_t, std::unique_ptr<Node>> children;  ///< by FrameId; kNoFrame: no stack
};
constexpr std::uint32_t kNoFrame = IdTable::kNone;

/// Colour class, by the owner of the code.
std::string_view kind_of(const Symbols& symbols, FrameId frame) {
  const std::string_view file = symbols.file(frame);
  if (file.empty() && symbols.name(frame).starts_with('(')) return "none";  // our frame: "(allocated before the trace)"
  if (!file.ends_with(".py") && !file.starts_with('<')) return "native";
  if (file.find("site-packages") != std::string_view::npos || file.find("dist-packages") != std::string_view::npos ||
      file.find("/lib/python") != std::string_view::npos || file.find("\\Lib\\") != std::string_view::npos)
    return file.find("torch") != std::string_view::npos ? "torch" : "library";
  return "own";
}

/// Frames of the allocator and the framework, which a person who looks for their own line skips.
bool is_below_own_code(std::string_view kind) {
  return kind == "native" || kind == "torch";
}

/// The profile as a tree from the outermost frame; `only_own`: without the allocator's and the framework's frames.
Node tree_of(const Profile& profile, const Symbols& symbols, bool only_own) {
  Node root;
  for (const StackBytes& held : profile) {
    if (held.bytes <= 0) continue;
    Node* node = &root;
    const auto descend = [&](std::uint32_t frame) {
      auto& child = node->children[frame];
      if (child == nullptr) child = std::make_unique<Node>();
      node = child.get();
      node->bytes += held.bytes;
      node->blocks += held.blocks;
    };
    root.bytes += held.bytes;
    root.blocks += held.blocks;
    const auto frames = symbols.stack(held.stack);
    const std::size_t outermost = std::min(frames.size(), kMostDepth);
    for (std::size_t i = 0; i < outermost; ++i) {
      const FrameId frame = frames[frames.size() - 1 - i];
      if (is_informative(symbols, frame) && !(only_own && is_below_own_code(kind_of(symbols, frame))))
        descend(index_of(frame));
    }
    if (frames.empty() || (only_own && node == &root)) descend(kNoFrame);
  }
  return root;
}

class Page {
 public:
  Page(const Symbols& symbols, std::int64_t total, std::string_view nameless)
      : symbols_(symbols), total_(std::max<std::int64_t>(total, 1)), nameless_(nameless) {}

  void draw(const Node& node, std::size_t depth, double left, std::string_view kind, const std::string& name) {
    depth_ = std::max(depth_, depth + 1);
    const double width = static_cast<double>(node.bytes) / static_cast<double>(total_);
    const std::string label =
        fmt::format("{} \u2014 {} ({:.1f} %), {}", name, format_size(node.bytes), 100 * width,
                    format_count(static_cast<std::uint64_t>(std::max<std::int64_t>(node.blocks, 0)), "block"));
    out_ += fmt::format(
        "<div class=\"f {}\" tabindex=\"0\" data-l=\"{:.6f}\" data-w=\"{:.6f}\" data-d=\"{}\" "
        "style=\"left:{:.4f}%;width:{:.4f}%;top:{}px\" title=\"{}\">{} <b>{}</b></div>\n",
        kind, left, width, depth, 100 * left, 100 * width, depth * 19, escape_markup(label), escape_markup(name),
        format_size(node.bytes));
    std::vector<std::pair<std::uint32_t, const Node*>> order;
    for (const auto& [frame, child] : node.children) order.emplace_back(frame, child.get());
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.second->bytes > b.second->bytes; });
    Node rest;
    for (const auto& [frame, child] : order) {
      if (static_cast<double>(child->bytes) < kLeastShare * static_cast<double>(total_) || depth >= kMostDepth) {
        rest.bytes += child->bytes;
        rest.blocks += child->blocks;
        continue;
      }
      if (frame == kNoFrame)
        draw(*child, depth + 1, left, "none", nameless_);
      else
        draw(*child, depth + 1, left, kind_of(symbols_, FrameId{frame}), frame_words(symbols_, FrameId{frame}));
      left += static_cast<double>(child->bytes) / static_cast<double>(total_);
    }
    if (static_cast<double>(rest.bytes) >= kLeastShare * static_cast<double>(total_))
      draw(rest, depth + 1, left, "none", "(smaller ones)");
  }
  [[nodiscard]] const std::string& divs() const { return out_; }
  [[nodiscard]] std::size_t depth() const { return depth_; }

 private:
  const Symbols& symbols_;
  std::int64_t total_;
  std::string nameless_;  ///< the name for memory without a frame
  std::string out_;
  std::size_t depth_ = 0;
};

/// The table of the lines that hold most.
std::string table_of(const Profile& profile, const Symbols& symbols, const LineOf& line_of, std::int64_t total) {
  std::string out =
      "<details><summary>as a table</summary><table><thead><tr><th scope=\"col\">line</th><th scope=\"col\">bytes</th>"
      "<th scope=\"col\">share</th><th scope=\"col\">blocks</th></tr></thead><tbody>\n";
  std::size_t shown = 0;
  for (const LineBytes& line : by_line(profile, line_of)) {
    if (line.bytes <= 0 || shown++ == kMostLines) break;
    out += fmt::format("<tr><td>{}</td><td>{}</td><td>{:.1f} %</td><td>{}</td></tr>\n",
                       escape_markup(site_words(symbols, line.frame)), format_size(line.bytes),
                       100 * static_cast<double>(line.bytes) / static_cast<double>(std::max<std::int64_t>(total, 1)),
                       format_number(static_cast<std::uint64_t>(std::max<std::int64_t>(line.blocks, 0))));
  }
  return out + "</tbody></table></details>\n";
}

constexpr std::string_view kHead = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>{title}</title>
<style>
:root{{color-scheme:light dark;--bg:#fff;--fg:#1b1f24;--dim:#59636e;--line:#fff;--own:#f2a65a;--library:#f0d38a;--torch:#a9c7ee;--native:#d3d6da;--none:#e6e6e6;--hit:#c2378f;--text:#16181b}}
@media(prefers-color-scheme:dark){{:root{{--bg:#14171a;--fg:#e8eaed;--dim:#9aa4af;--line:#14171a;--own:#d9883a;--library:#b79a4e;--torch:#5f8cc4;--native:#808891;--none:#9298a0;--hit:#ff7ac6;--text:#0d0f11}}}}
body{{margin:16px;background:var(--bg);color:var(--fg);font:14px/1.45 system-ui,sans-serif}}
h1{{font-size:18px;margin:0}}p{{margin:4px 0 12px;color:var(--dim)}}
.bar{{display:flex;flex-wrap:wrap;gap:8px 16px;align-items:center;margin-bottom:10px}}
.bar input,.bar button{{font:inherit;padding:4px 8px;border:1px solid var(--dim);border-radius:4px;background:var(--bg);color:var(--fg)}}
.key span{{display:inline-block;white-space:nowrap}}.key i{{display:inline-block;width:12px;height:12px;border-radius:2px;margin:0 4px 0 10px;vertical-align:-1px}}
.graph{{position:relative;overflow:hidden}}.f b{{font-weight:600;opacity:.85}}
details{{margin-top:16px;overflow-x:auto}}summary{{cursor:pointer}}table{{border-collapse:collapse;margin-top:8px}}th,td{{padding:2px 12px 2px 0;text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}}th:first-child,td:first-child{{text-align:left;white-space:normal;overflow-wrap:anywhere}}
.f{{position:absolute;box-sizing:border-box;height:18px;padding:0 4px;overflow:hidden;white-space:nowrap;text-overflow:ellipsis;font:12px/18px ui-monospace,Menlo,Consolas,monospace;color:var(--text);border-right:1px solid var(--line);border-radius:2px;cursor:pointer}}
.f:focus-visible{{outline:2px solid var(--hit);z-index:1}}
.own{{background:var(--own)}}.library{{background:var(--library)}}.torch{{background:var(--torch)}}.native{{background:var(--native)}}.none{{background:var(--none)}}
.hit{{box-shadow:inset 0 0 0 2px var(--hit)}}.above{{opacity:.55}}
#say{{min-height:1.5em;overflow-wrap:anywhere;color:var(--fg)}}
</style></head><body><main>
<h1>{title}</h1><p>{subtitle}</p>
<div class="bar"><input id="find" type="search" size="24" placeholder="search a file or function" aria-label="search">
<button id="all" type="button">show all</button>
<label><input id="only" type="checkbox"> hide allocator and framework frames</label>
<span class="key"><span><i class="own"></i>your code</span><span><i class="library"></i>libraries</span><span><i class="torch"></i>PyTorch</span><span><i class="native"></i>native</span><span><i class="none"></i>other</span></span></div>
<div id="say" aria-live="polite"></div>
<div class="graph" style="height:{height}px">
)";

constexpr std::string_view kTail = R"(</main><script>
"use strict";
const every=[...document.querySelectorAll(".f")],graphs=[...document.querySelectorAll(".graph")],say=document.getElementById("say");
const framesOf=graph=>every.filter(f=>f.parentElement===graph);
let frames=framesOf(graphs[0]);
for(const f of every){f.l=+f.dataset.l;f.w=+f.dataset.w;f.d=+f.dataset.d}
function zoom(to){
  const a=to.l,b=to.l+to.w,e=1e-7;
  for(const f of frames){
    const above=f.d<to.d&&f.l<=a+e&&f.l+f.w>=b-e,inside=f.l>=a-e&&f.l+f.w<=b+e&&f.d>=to.d;
    f.hidden=!(above||inside);
    f.classList.toggle("above",above);
    if(above){f.style.left="0%";f.style.width="100%"}
    else if(inside){f.style.left=100*(f.l-a)/to.w+"%";f.style.width=100*f.w/to.w+"%"}
  }
}
for(const f of every){
  f.addEventListener("click",()=>zoom(f));
  f.addEventListener("keydown",e=>{if(e.key==="Enter")zoom(f)});
  f.addEventListener("mouseenter",()=>say.textContent=f.title);
  f.addEventListener("focus",()=>say.textContent=f.title);
}
document.getElementById("all").addEventListener("click",()=>zoom(frames[0]));
document.addEventListener("keydown",e=>{if(e.key==="Escape")zoom(frames[0])});
document.getElementById("only").addEventListener("change",e=>{
  graphs.forEach((graph,i)=>graph.hidden=e.target.checked!==(i===1));
  frames=framesOf(graphs[e.target.checked?1:0]);
  zoom(frames[0]);
  search();
});
const find=document.getElementById("find");
find.addEventListener("input",search);
function search(){
  const what=find.value.toLowerCase();let share=0,until=-1;
  for(const f of frames){
    const hit=what!==""&&f.textContent.toLowerCase().includes(what);
    f.classList.toggle("hit",hit);
    if(hit&&f.l>=until-1e-9){share+=f.w;until=f.l+f.w}
  }
  say.textContent=what===""?"":(100*share).toFixed(1)+" % of the bytes are under frames that match";
}
</script></body></html>
)";

}  // namespace

std::string flamegraph_html(const Profile& profile, const Symbols& symbols, std::string_view title,
                            std::string_view subtitle) {
  return flamegraph_html(
      profile, symbols, [&symbols](StackId stack) { return site_of(symbols, stack); }, title, subtitle);
}

std::string flamegraph_html(const Profile& profile, const Symbols& symbols, const LineOf& line_of,
                            std::string_view title, std::string_view subtitle) {
  const Node whole = tree_of(profile, symbols, false);
  const Node own = tree_of(profile, symbols, true);
  Page page(symbols, whole.bytes, "(no stack recorded)");
  page.draw(whole, 0, 0, "none", "all");
  Page own_page(symbols, own.bytes, "(the framework alone, or no stack)");
  own_page.draw(own, 0, 0, "none", "all");
  return fmt::format(kHead, fmt::arg("title", escape_markup(title)), fmt::arg("subtitle", escape_markup(subtitle)),
                     fmt::arg("height", page.depth() * 19)) +
         page.divs() +
         fmt::format("</div>\n<div class=\"graph\" style=\"height:{}px\" hidden>\n", own_page.depth() * 19) +
         own_page.divs() + "</div>\n" + table_of(profile, symbols, line_of, whole.bytes) + std::string(kTail);
}

}  // namespace vramtrack::trace
