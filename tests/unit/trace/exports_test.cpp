#include "trace/exports.hpp"

#include <gmock/gmock.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>

#include "core/json_text.hpp"
#include "golden.hpp"
#include "paths.hpp"
#include "sample.hpp"
#include "trace/live_set.hpp"

namespace vramtrack::trace::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Made {
  Symbols symbols;
  Profile profile;
};

Made two_stacks() {
  Made made;
  Symbols& s = made.symbols;
  const auto f = [&](const char* name, const char* file, std::uint32_t number) {
    return Frame{s.intern(name), s.intern(file), number};
  };
  made.profile.push_back(
      {stack_of(s, {f("forward", "/home/me/w/net.py", 7), f("main;x", "/home/me/w/run.py", 2)}), 300, 3});
  made.profile.push_back(
      {stack_of(s, {f("backward", "/home/me/w/net.py", 9), f("main;x", "/home/me/w/run.py", 2)}), 100, 1});
  made.profile.push_back({kNoStack, 50, 2});
  return made;
}

TEST(Exports, Folded) {
  const Made made = two_stacks();
  expect_golden("words/trace/folded.txt", folded(made.profile, made.symbols));
}

TEST(Exports, Speedscope) {
  const Made made = two_stacks();
  const std::string text = speedscope(made.profile, made.symbols, "live \"memory\"");
  EXPECT_THAT(text, HasSubstr(R"("samples":[[1,2],[1,3],[0]],"weights":[300,100,50])"));
  EXPECT_THAT(text, HasSubstr(R"({"name":"forward","file":"/home/me/w/net.py","line":7})"));
  EXPECT_THAT(text, HasSubstr(R"("name":"live \"memory\"","unit":"bytes","startValue":0,"endValue":450)"));
}

/// Reads protobuf's wire format: (field, varint or bytes) pairs.
struct Wire {
  std::string_view left;
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; !left.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(left.front());
      left.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) break;
    }
    return value;
  }
  bool next(std::uint64_t& field, std::uint64_t& number, std::string_view& bytes) {
    if (left.empty()) return false;
    const std::uint64_t tag = varint();
    field = tag >> 3;
    number = varint();
    bytes = {};
    if ((tag & 7) == 2) {
      bytes = left.substr(0, number);
      left.remove_prefix(number);
    }
    return true;
  }
};

TEST(Exports, Pprof) {
  const Made made = two_stacks();
  const auto packed = pprof(made.profile, made.symbols);
  ASSERT_TRUE(packed);
  std::string text(1 << 16, '\0');
  z_stream stream{};
  ASSERT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  std::string in = *packed;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  ASSERT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  text.resize(stream.total_out);
  inflateEnd(&stream);
  std::vector<std::string> strings;
  std::vector<std::vector<std::uint64_t>> locations;
  std::vector<std::vector<std::uint64_t>> values;
  Wire wire{text};
  std::uint64_t field = 0;
  std::uint64_t number = 0;
  std::string_view bytes;
  int functions = 0;
  while (wire.next(field, number, bytes)) {
    if (field == 6) strings.emplace_back(bytes);
    if (field == 5) ++functions;
    if (field != 2) continue;
    Wire sample{bytes};
    std::uint64_t inner = 0;
    std::string_view list;
    while (sample.next(inner, number, list)) {
      std::vector<std::uint64_t> numbers;
      for (Wire each{list}; !each.left.empty();) numbers.push_back(each.varint());
      (inner == 1 ? locations : values).push_back(numbers);
    }
  }
  EXPECT_EQ(values, (std::vector<std::vector<std::uint64_t>>{{3, 300}, {1, 100}, {2, 50}}));
  EXPECT_EQ(locations, (std::vector<std::vector<std::uint64_t>>{{1, 2}, {3, 2}, {4}}));
  EXPECT_EQ(functions, 4);
  ASSERT_FALSE(strings.empty());
  EXPECT_EQ(strings[0], "");
  EXPECT_THAT(strings, ::testing::IsSupersetOf({"inuse_space", "bytes", "forward", "/home/me/w/net.py"}));
}

TEST(Exports, FlamegraphHoldsItsOwnAndNothingElse) {
  Made made = two_stacks();
  const Frame hostile{made.symbols.intern("<script>alert(1)</script>"), made.symbols.intern("a&b.py"), 1};
  made.profile.push_back({stack_of(made.symbols, {hostile}), 40, 1});
  const std::string page = flamegraph_html(made.profile, made.symbols, "a <title>", "sub & title");
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert(1)"));
  EXPECT_THAT(page, HasSubstr("a &lt;title&gt;"));
  EXPECT_THAT(page, Not(HasSubstr("http")));
  // 300 of 490 bytes, at the left, one level below the frame that both stacks share.
  EXPECT_THAT(page, HasSubstr("left:0.0000%;width:81.6327%;top:19px\" title=\"me/w"));
  EXPECT_THAT(page, HasSubstr("left:0.0000%;width:61.2245%;top:38px\" title=\"me/w"));
}

TEST(Exports, FlamegraphHasASecondGraphWithoutTheFrameworkAndATable) {
  Symbols symbols;
  const Frame own{symbols.intern("main"), symbols.intern("/home/me/w/run.py"), 2};
  const Frame torch{symbols.intern("linear"), symbols.intern("/usr/lib/python3/site-packages/torch/nn.py"), 9};
  const Frame native{symbols.intern("at::empty"), symbols.intern("empty.cpp"), 0};
  const Profile profile{{stack_of(symbols, {native, torch, own}), 300, 2},
                        {stack_of(symbols, {native, torch}), 100, 1}};
  const std::string page = flamegraph_html(profile, symbols, "title", "");
  const std::size_t second = page.find("hidden>");
  ASSERT_NE(second, std::string::npos);
  const std::string whole = page.substr(0, second);
  const std::string only_own = page.substr(second, page.find("<details>") - second);
  EXPECT_THAT(whole, HasSubstr("linear"));
  EXPECT_THAT(only_own, Not(HasSubstr("linear")));
  EXPECT_THAT(only_own, Not(HasSubstr("at::empty")));
  EXPECT_THAT(only_own, HasSubstr("me/w/run.py:2 main <b>300 bytes</b>"));
  EXPECT_THAT(only_own, HasSubstr("no stack) <b>100 bytes</b>"));
  EXPECT_THAT(page, HasSubstr("<tr><td>me/w/run.py:2 main</td><td>300 bytes</td><td>75.0 %</td><td>2</td></tr>"));
}

TEST(Exports, EventsAsCsvAndChromeTrace) {
  Symbols symbols;
  const auto s = read(Writer(4).dump(sample(Era::v25)), symbols);
  ASSERT_TRUE(s);
  std::string csv;
  events_csv(*s, symbols, {}, [&](std::string_view text) {
    csv += text;
    return true;
  });
  EXPECT_THAT(
      csv, HasSubstr("\n0,0,1700000000000010,alloc,18446742974210506752,1048576,0,,1048576,4194304,20971520,/home/me/"
                     "train.py:12 step,,\n"));
  EXPECT_THAT(csv, HasSubstr("\n0,3,1700000000000040,oom,,103809024,0,5242880,0,4194304,20971520,"));
  std::string trace;
  chrome_trace(*s, symbols, {}, [&](std::string_view text) {
    trace += text;
    return true;
  });
  EXPECT_THAT(
      trace,
      HasSubstr(
          R"({"ph":"C","name":"memory","pid":0,"tid":0,"ts":1700000000000010,"args":{"live_bytes":1048576,"pending_free_bytes":4194304}})"));
  EXPECT_THAT(trace, HasSubstr(R"("name":"out of memory")"));
  EXPECT_THAT(trace, HasSubstr(R"({"ph":"B","name":"Optimizer.step")"));
  // A sink that is full ends the export.
  int calls = 0;
  events_csv(*s, symbols, {}, [&](std::string_view) { return ++calls < 1; });
  EXPECT_EQ(calls, 1);
}

TEST(JsonText, EscapesWhatMustBe) {
  JsonText j;
  j.begin_object()
      .field("a\"b", "x\n\\\x01\xff\xc3\xa9")
      .field("n", 0.5)
      .key("l")
      .begin_array()
      .value(1)
      .value(true)
      .null()
      .end_array()
      .end_object();
  EXPECT_EQ(j.text(), "{\"a\\\"b\":\"x\\n\\\\?\xef\xbf\xbd\xc3\xa9\",\"n\":0.5,\"l\":[1,true,null]}");
}

TEST(Site, IsTheLineThatAPersonWouldChange) {
  Symbols s;
  const auto site = [&](std::vector<std::pair<const char*, const char*>> frames) {
    std::vector<Frame> all;
    std::uint32_t number = 0;
    for (const auto& [name, file] : frames) all.push_back({s.intern(name), s.intern(file), ++number});
    return site_words(s, stack_of(s, all));
  };
  EXPECT_EQ(site({{"torch::unwind::unwind()", "??"},
                  {"_apply", "/usr/lib/python3.11/site-packages/torch/nn/modules/module.py"},
                  {"load", "/home/me/train.py"}}),
            "/home/me/train.py:3 load");
  EXPECT_EQ(site({{"fwd", "D:\\env\\Lib\\site-packages\\torch\\nn\\linear.py"},
                  {"attend", "D:\\env\\Lib\\site-packages\\transformers\\llama.py"},
                  {"run", "D:\\Python\\Lib\\runpy.py"}}),
            "site-packages\\transformers\\llama.py:2 attend");
  EXPECT_EQ(site({{"c10::alloc", "CUDACachingAllocator.cpp"}, {"PyUnicode_Tailmatch", "??"}}),
            "CUDACachingAllocator.cpp:1 c10::alloc");
  EXPECT_EQ(site({}), "(no stack recorded)");
  EXPECT_EQ(site({{"<module>", "<stdin>"}}), "<stdin>:1 <module>");
}

/// Other people's recordings, outside the checkout: docs/formats/torch-snapshot.md describes them.
TEST(RealSnapshots, ReplayAgreesWithTheReference) {
  const std::filesystem::path folder = std::filesystem::path(source_dir()) / ".." / "shared" / "traces" / "snapshots";
  if (!std::filesystem::is_directory(folder))
    GTEST_SKIP() << "no recordings in " << folder << "; they are not part of the repository";
  int compared = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".pickle") continue;
    Symbols symbols;
    const auto snapshot = read_torch_snapshot(entry.path().string(), symbols);
    ASSERT_TRUE(snapshot) << snapshot.error().message;
    EXPECT_FALSE(snapshot->segments.empty());
    EXPECT_TRUE(snapshot->notes.empty()) << entry.path() << ": " << snapshot->notes.front();
    for (const DeviceTrace& trace : snapshot->traces) {
      std::ifstream reference(folder /
                              (entry.path().stem().string() + "_dev" + std::to_string(trace.device) + "_timeline.csv"));
      std::string row;
      if (trace.event_count == 0 || !std::getline(reference, row)) continue;
      const Replay replay(*snapshot, trace.device, symbols);
      EXPECT_EQ(replay.mismatch_count(), 0U);
      // The reference ends at the blocks' rounded sizes and moves by requested ones: equal except for a constant.
      std::int64_t apart = 0;
      for (const Segment& segment : snapshot->segments)
        for (std::size_t i = segment.first_block; i < segment.first_block + segment.block_count; ++i)
          if (segment.device == trace.device && snapshot->blocks[i].state == BlockState::active)
            apart += static_cast<std::int64_t>(snapshot->blocks[i].size_bytes - snapshot->blocks[i].requested_bytes);
      replay.run([&](const AllocEvent&, const Change&, const Moment& now) {
        ASSERT_TRUE(std::getline(reference, row));
        ASSERT_EQ(now.live_bytes + now.pending_bytes + apart, std::stoll(row.substr(row.rfind(',') + 1))) << row;
      });
      ++compared;
    }
  }
  EXPECT_GE(compared, 1);
}

}  // namespace
}  // namespace vramtrack::trace::test
