#include "trace/torch_snapshot.hpp"

#include <gmock/gmock.h>

#include <fstream>

#include "../packed.hpp"
#include "golden.hpp"
#include "sample.hpp"
#include "trace/profile.hpp"

namespace vramtrack::trace::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string error_of(const std::string& pickle) {
  Symbols symbols;
  const auto snapshot = read(pickle, symbols);
  return snapshot ? "read" : snapshot.error().message;
}

/// Everything that was read, as text, so that whole readings can be compared.
std::string everything(const Snapshot& s, const Symbols& symbols) {
  std::string out;
  const auto stack = [&](StackId id) {
    std::string words;
    for (const FrameId f : symbols.stack(id)) words += frame_words(symbols, f) + "<";
    return words;
  };
  for (const Segment& g : s.segments)
    out += "segment " + std::to_string(g.device) + " " + std::to_string(g.address) + " " +
           std::to_string(g.size_bytes) + " " + std::to_string(g.pool.second) + " " + std::to_string(g.block_count) +
           " " + stack(g.stack) + "\n";
  for (const Block& b : s.blocks)
    out += "block " + std::to_string(b.address) + " " + std::to_string(b.size_bytes) + " " +
           std::to_string(b.requested_bytes) + " " + std::to_string(static_cast<int>(b.state)) + " " + stack(b.stack) +
           "\n";
  for (const auto* traces : {&s.traces, &s.host_traces})
    for (const DeviceTrace& t : *traces) {
      out += "trace " + std::to_string(t.device) + " " + std::to_string(t.event_count) + " " +
             std::to_string(t.net_bytes) + " " + std::to_string(t.peak_net_bytes) + "\n";
      for (std::size_t i = 0; i < t.events.size(); ++i)
        out += "event " + std::string(kActionNames[static_cast<std::size_t>(t.events[i].action)]) + " " +
               std::to_string(t.events[i].address) + " " + std::to_string(t.events[i].size_bytes) + " " +
               std::to_string(t.events[i].time_us) + " " + stack(t.events[i].stack) + "\n";
    }
  if (s.settings)
    out += "settings " + s.settings->text + " " + std::to_string(s.settings->max_split_bytes.value_or(7)) + " " +
           std::to_string(s.settings->garbage_collection_threshold.value_or(7)) + "\n";
  for (const Annotation& a : s.annotations)
    out += "annotation " + std::string(symbols.text(a.name)) + " " + std::to_string(a.time_us) + "\n";
  for (const std::string& note : s.notes) out += "note " + note + "\n";
  return out;
}

TEST(TorchSnapshot, ReadsOneOfEverything) {
  Symbols symbols;
  const auto s = read(Writer(4).dump(sample(Era::v25)), symbols);
  ASSERT_TRUE(s) << s.error().message;
  EXPECT_EQ(
      everything(*s, symbols),
      "segment 0 18446742974197923840 20971520 3 3 /home/me/train.py:12 step</home/me/train.py:40 run<\n"
      "block 18446742974197923840 8388608 8388508 0 /home/me/train.py:12 step</home/me/train.py:40 run<\n"
      "block 18446742974206312448 4194304 4194304 1 /home/me/train.py:40 run</home/me/train.py:40 run<\n"
      "block 18446742974210506752 8388608 0 2 \n"
      "trace 0 5 8388508 8388508\n"
      "event alloc 18446742974210506752 1048576 1700000000000010 /home/me/train.py:12 step</home/me/train.py:40 run<\n"
      "event free_requested 18446742974210506752 1048576 1700000000000020 \n"
      "event free_completed 18446742974210506752 1048576 1700000000000030 \n"
      "event oom 5242880 103809024 1700000000000040 /home/me/train.py:40 run</home/me/train.py:40 run<\n"
      "event alloc 18446742974197923840 8388508 1700000000000050 /home/me/train.py:12 step</home/me/train.py:40 run<\n"
      "trace 1 0 0 0\n"
      "settings max_split_size_mb:64 -1 0.500000\n"
      "annotation Optimizer.step 1700000000000005\n");
}

/// PyTorch 2.15 with anomaly detection: the call of the operation for which the gradient is computed.
TEST(TorchSnapshot, MemoryOfTheBackwardPassHasTheLinesOfTheForwardPass) {
  const Py forward = py(List{py("  File \"/home/me/train.py\", line 9, in <module>\n    loss = model(w, x)\n"),
                             py("  File \"/home/me/a, in b.py\", line 4, in model\n    h = x @ w\n"), py("no frame"),
                             py("  File \"/home/me/train.py\", line x, in model\n"), py(7)});
  const auto block = [&](std::uint64_t at, const Py& frames) {
    return py(Dict{{"address", py(at)},
                   {"size", py(512)},
                   {"state", py("active_allocated")},
                   {"frames", frames},
                   {"forward_frames", forward}});
  };
  const Py apply = py(List{frame("apply", "/home/me/function.py", 3)});
  const Py segment = py(Dict{{"address", py(4096)},
                             {"total_size", py(1024)},
                             {"blocks", py(List{block(4096, py(List{})), block(4608, apply)})}});
  const Py event = py(Dict{{"action", py("alloc")},
                           {"addr", py(4096)},
                           {"size", py(512)},
                           {"frames", py(List{})},
                           {"forward_frames", forward}});
  Symbols symbols;
  const auto s = read(
      Writer(4).dump(py(Dict{{"segments", py(List{segment})}, {"device_traces", py(List{py(List{event})})}})), symbols);
  ASSERT_TRUE(s) << s.error().message;
  const auto words = [&](StackId stack) {
    std::vector<std::string> out;
    for (const FrameId each : symbols.stack(stack)) out.push_back(frame_words(symbols, each));
    return out;
  };
  const std::string inner = "/home/me/a, in b.py:4 backward() of model",
                    outer = "/home/me/train.py:9 backward() of <module>";
  EXPECT_THAT(words(s->blocks[0].stack), ::testing::ElementsAre(inner, outer));
  EXPECT_THAT(words(s->blocks[1].stack), ::testing::ElementsAre("/home/me/function.py:3 apply", inner, outer));
  EXPECT_THAT(words(s->traces[0].events[0].stack), ::testing::ElementsAre(inner, outer));
  EXPECT_EQ(site_words(symbols, s->blocks[0].stack), inner);
}

TEST(TorchSnapshot, ReadsTheSameOfEveryProtocolAndCompression) {
  for (const Era era : {Era::bare_list, Era::v20, Era::v21, Era::v25, Era::v212}) {
    std::string first;
    for (const int protocol : {4, 0, 1, 2, 3, 5}) {
      for (const bool jit : {false, true}) {
        if (jit && protocol != 2) continue;
        const std::string pickle = Writer(protocol, jit).dump(sample(era));
        for (const std::string& packed :
             {pickle, packed::gzip(pickle), packed::zstd(pickle),
              packed::gzip(pickle.substr(0, 99)) + packed::gzip(pickle.substr(99)), pickle + std::string(3, '\0')}) {
          Symbols symbols;
          const auto s = read(packed, symbols);
          ASSERT_TRUE(s) << s.error().message << " protocol " << protocol << " jit " << jit << " era "
                         << static_cast<int>(era);
          if (first.empty()) first = everything(*s, symbols);
          EXPECT_EQ(everything(*s, symbols), first) << "protocol " << protocol << " jit " << jit;
        }
      }
    }
    EXPECT_THAT(first, HasSubstr("8388608 8388508 0 /home/me/train.py:12 step<")) << static_cast<int>(era);
  }
}

TEST(TorchSnapshot, OldEras) {
  Symbols symbols;
  const auto bare = read(Writer(2).dump(sample(Era::bare_list)), symbols);
  ASSERT_TRUE(bare) << bare.error().message;
  EXPECT_TRUE(bare->is_bare_list);
  EXPECT_TRUE(bare->traces.empty());
  ASSERT_EQ(bare->blocks.size(), 3U);
  // No addresses in the file: the segment's address, and one block after another.
  EXPECT_EQ(bare->blocks[2].address, 0xffffff0000000000 + 12 * kMiB);
  EXPECT_EQ(bare->blocks[0].requested_bytes, 8 * kMiB - 100) << "of the latest of its history";
  const auto v20 = read(Writer(4).dump(sample(Era::v20)), symbols);
  ASSERT_TRUE(v20) << v20.error().message;
  EXPECT_EQ(v20->traces.at(0).events[0].time_us, kNoTime);
}

TEST(TorchSnapshot, NewerFieldsAndActions) {
  Symbols symbols;
  const auto s = read(Writer(5).dump(sample(Era::v212)), symbols);
  ASSERT_TRUE(s) << s.error().message;
  EXPECT_EQ(s->host_segments.size(), 1U);
  ASSERT_EQ(s->host_traces.size(), 1U);
  EXPECT_EQ(s->host_traces[0].event_count, 2U);
  EXPECT_EQ(s->traces.at(0).counts[static_cast<std::size_t>(Action::annotate)], 1U);
  EXPECT_EQ(s->traces.at(0).counts[static_cast<std::size_t>(Action::other)], 1U);
  ASSERT_EQ(s->notes.size(), 1U);
  EXPECT_THAT(s->notes[0], HasSubstr("'something_new'"));
  const AllocEvent& first = s->traces[0].events[0];
  EXPECT_EQ(s->origins[first.origin].pool, (PoolId{0, 3}));
  EXPECT_FALSE(s->origins[first.origin].is_labelled()) << "N/A and an empty text are none";
  EXPECT_EQ(symbols.text(s->origins[s->traces[0].events[4].origin].metadata), "step 7");
}

TEST(TorchSnapshot, LiveBlocksHaveTheLabelsOfTheirAllocation) {
  for (const bool keep_events : {true, false}) {
    Symbols symbols;
    ReadOptions options;
    options.keep_events = keep_events;
    const auto s = read(Writer(4).dump(sample(Era::v212)), symbols, options);
    ASSERT_TRUE(s) << s.error().message;
    EXPECT_EQ(symbols.text(s->origins[s->blocks[0].origin].metadata), "step 7");
    EXPECT_EQ(s->blocks[1].origin, 0U);
    ASSERT_EQ(s->block_annotations.size(), 1U);
    EXPECT_EQ(s->block_annotations[0].block, 0U);
    EXPECT_EQ(symbols.text(s->block_annotations[0].text), "kept for later");
  }
}

/// A trace of one device with the given entries, and one block of 5 bytes at 512.
std::string trace_of(List events, Dict more = {}) {
  Dict root{{"segments",
             py(List{py(Dict{{"address", py(512)},
                             {"total_size", py(5)},
                             {"blocks", py(List{py(Dict{{"size", py(5)}, {"state", py("active_allocated")}})})}})})},
            {"device_traces", py(List{py(std::move(events))})}};
  for (auto& field : more) root.push_back(field);
  return Writer(4).dump(py(root));
}
Py labelled(const char* action, int address, const char* key, const Py& value) {
  return py(Dict{{"action", py(action)}, {"addr", py(address)}, {"size", py(5)}, {key, value}});
}

TEST(TorchSnapshot, LabelsAreThoseOfTheLatestAllocation) {
  const auto labels = [](List events) {
    Symbols symbols;
    const auto s = read(trace_of(std::move(events)), symbols);
    if (!s) return s.error().message;
    const Origin& origin = s->origins[s->blocks.at(0).origin];
    std::string out = std::string(symbols.text(origin.metadata)) + "|" +
                      std::string(symbols.text(origin.compile_context)) + "|" +
                      std::string(symbols.text(origin.internal));
    for (const BlockAnnotation& annotation : s->block_annotations)
      out += "|" + std::string(symbols.text(annotation.text));
    return out;
  };
  const auto metadata = [](const char* action, const char* text) {
    return labelled(action, 512, "user_metadata", py(text));
  };
  EXPECT_EQ(labels({metadata("alloc", "a")}), "a||");
  EXPECT_EQ(labels({metadata("alloc", "a"), metadata("annotate", "b"), metadata("annotate", "b")}), "a|||b");
  EXPECT_EQ(labels({metadata("alloc", "a"), metadata("annotate", "b"), metadata("alloc", "")}), "||") << "another one";
  EXPECT_EQ(labels({metadata("alloc", "a"), metadata("free_requested", ""), metadata("alloc", "c")}), "c||");
  EXPECT_EQ(labels({metadata("annotate", "b")}), "|||b") << "its allocation is not in the ring any more";
  EXPECT_EQ(labels({labelled("alloc", 512, "compile_context", py("0/1"))}), "|0/1|");
  EXPECT_EQ(labels({labelled("alloc", 512, "internal_metadata", py("prefix"))}), "||prefix");
  EXPECT_EQ(labels({labelled("alloc", 4096, "user_metadata", py("a"))}), "||") << "of another block";
  EXPECT_EQ(labels({labelled("alloc", 512, "user_metadata", py(7))}), "||") << "no text";
  EXPECT_EQ(labels({labelled("alloc", 512, "pool_id", py("none"))}), "||");
}

TEST(TorchSnapshot, HostTracesAreOneListOrOneOfEachDevice) {
  const Py event = py(Dict{{"action", py("alloc")}, {"addr", py(1)}, {"size", py(7)}});
  const Py other = py(Dict{{"action", py("alloc")}, {"addr", py(2)}, {"size", py(8)}});
  for (const Py& traces : {py(List{event, other}), py(List{py(List{event, other})})}) {
    Symbols symbols;
    const auto s = read(trace_of({}, {{"host_traces", traces}}), symbols);
    ASSERT_TRUE(s) << s.error().message;
    ASSERT_EQ(s->host_traces.size(), 1U);
    EXPECT_EQ(s->host_traces[0].net_bytes, 15);
  }
  EXPECT_THAT(error_of(Writer(4).dump(py(Dict{{"device_traces", py(List{event, other})}}))),
              HasSubstr("a list of traces holds a dict"));
}

TEST(TorchSnapshot, SpansOfAnOlderKindAreAnnotations) {
  const auto span = [](const char* stage, int time_us) {
    return py(Dict{{"action", py("user_defined")},
                   {"addr", py(0)},
                   {"time_us", py(time_us)},
                   {"frames", py(List{frame(stage, "Optimizer.step", 0)})}});
  };
  Symbols symbols;
  const auto s = read(trace_of({span("START", 5), span("END", 9)}), symbols);
  ASSERT_TRUE(s) << s.error().message;
  EXPECT_TRUE(s->notes.empty());
  ASSERT_EQ(s->annotations.size(), 2U);
  EXPECT_EQ(symbols.text(s->annotations[0].name), "Optimizer.step");
  EXPECT_TRUE(s->annotations[0].is_start);
  EXPECT_EQ(s->annotations[1].time_us, 9);
}

TEST(TorchSnapshot, WhatTheProgramNotedOfAnOom) {
  Symbols symbols;
  const Py note = py(Dict{{"device", py(1)},
                          {"asked_bytes", py(7)},
                          {"device_free_bytes", py(3)},
                          {"device_total_bytes", py(90)},
                          {"allowed_bytes", py(None{})}});
  const auto s = read(trace_of({}, {{"vramtrack_oom", note}}), symbols);
  ASSERT_TRUE(s) << s.error().message;
  ASSERT_TRUE(s->oom);
  EXPECT_EQ(s->oom->device, 1U);
  EXPECT_EQ(s->oom->asked_bytes, 7U);
  EXPECT_EQ(s->oom->device_total_bytes, 90U);
  EXPECT_FALSE(s->oom->allowed_bytes);
  EXPECT_FALSE(read(trace_of({}, {{"vramtrack_oom", py(Dict{})}}), symbols)->oom);
}

TEST(TorchSnapshot, CountsWithoutKeepingEvents) {
  Symbols symbols;
  ReadOptions options;
  options.keep_events = false;
  const auto s = read(Writer(4).dump(sample(Era::v25)), symbols, options);
  ASSERT_TRUE(s);
  EXPECT_TRUE(s->traces.at(0).events.empty());
  EXPECT_EQ(s->traces.at(0).event_count, 5U);
  EXPECT_EQ(s->traces.at(0).peak_net_bytes, static_cast<std::int64_t>(8 * kMiB - 100));
  EXPECT_EQ(s->traces.at(0).last_time_us - s->traces.at(0).first_time_us, 40);
}

TEST(TorchSnapshot, NothingIsExecuted) {
  const std::string refused[] = {"cos\nsystem\n",
                                 std::string("\x93", 1),
                                 "R",
                                 "b",
                                 "ios\nsystem\n",
                                 "o",
                                 "\x81",
                                 "\x92",
                                 "\x82\x01",
                                 "\x83\x01\x01",
                                 std::string("\x84\x01\0\0\0", 5),
                                 "Pid\n",
                                 "Q",
                                 "\x97",
                                 "\x98"};
  const char* const names[] = {"GLOBAL", "STACK_GLOBAL", "REDUCE",    "BUILD",       "INST",
                               "OBJ",    "NEWOBJ",       "NEWOBJ_EX", "EXT1",        "EXT2",
                               "EXT4",   "PERSID",       "BINPERSID", "NEXT_BUFFER", "READONLY_BUFFER"};
  for (std::size_t i = 0; i < std::size(refused); ++i)
    EXPECT_THAT(
        error_of("\x80\x04}(\x8c\x08segments" + refused[i] + "u."),
        AllOf(HasSubstr("at byte 14: opcode " + std::string(names[i]) + " "), HasSubstr("nothing was executed")))
        << names[i];
}

TEST(TorchSnapshot, ErrorsSayWhereAndWhat) {
  const auto of_segment = [](Dict segment) {
    return Writer(4).dump(py(Dict{{"segments", py(List{py(std::move(segment))})}}));
  };
  const auto of_traces = [](List traces) { return Writer(4).dump(py(Dict{{"device_traces", py(std::move(traces))}})); };
  const Py again = py(List{py(Dict{{"action", py("oom")}})});
  List segments, events;
  for (int i = 0; i < 32; ++i)
    segments.push_back(py(Dict{{"address", py(1)}, {"total_size", py(std::int64_t{1} << 59)}}));
  for (int i = 0; i < 64; ++i)
    events.push_back(py(Dict{{"action", py("segment_map")}, {"addr", py(0)}, {"size", py(std::int64_t{1} << 55)}}));
  std::string refused;
  for (const std::string& bad : {
           std::string(),
           std::string("PK\x03\x04zip"),
           std::string("hello"),
           std::string("\x80\x09."),
           std::string("\x80\x04}(\xff"),
           std::string("\x80\x04}."),
           std::string("\x80\x04]}\x8c\x01xK\x01sa."),
           // a string longer than the file
           std::string("\x80\x04}X\xff\xff\xff\x7fhello"),
           std::string("\x80\x04}\x8d\xff\xff\xff\xff\xff\xff\xff\xff", 12),
           // fields with other types
           of_segment(Dict{{"total_size", py("many")}}),
           of_segment(Dict{{"total_size", py(-4)}}),
           of_segment(Dict{{"address", py(Wide{1, 1})}}),
           Writer(4).dump(py(Dict{{"segments", py(3)}})),
           of_traces(List{py(List{py(3)})}),
           of_traces(List{again, again}),
           // a memo index far beyond the file, an empty stack, endless nesting
           std::string("\x80\x02}r\xff\xff\xff\x7f."),
           "\x80\x02}" + std::string(5'000'000, 'N'),
           "\x80\x02]" + std::string(5'000'000, '('),
           std::string("\x80\x02}h\x05."),
           std::string("\x80\x02(K\x01l."),
           // items of a byte or two in the file and a hundred in memory
           of_traces(List(5000, py(List{}))),
           of_traces(List{py(List{py(Dict{})})}),
           of_segment(Dict{{"total_size", py(1)}, {"blocks", py(List{py(Dict{})})}}),
           // sums larger than any machine
           Writer(4).dump(py(Dict{{"segments", py(segments)}})),
           of_segment(Dict{{"total_size", py(1)}}),
           Writer(4).dump(py(Dict{{"segments", py(List{})}, {"device_traces", py(List{py(events)})}})),
       }) {
    const std::string message = error_of(bad);
    EXPECT_NE(message, "read");
    refused += message + "\n";
  }
  expect_golden("words/trace/refused_snapshots.txt", refused);
}

TEST(TorchSnapshot, EmptySharedListsAreFine) {
  Symbols symbols;
  const Py empty = py(List{});
  const auto s = read(
      Writer(4).dump(py(Dict{{"segments", py(List{})},
                             {"device_traces", py(List{empty, empty, py(List{py(Dict{{"action", py("oom")}})})})}})),
      symbols);
  ASSERT_TRUE(s) << s.error().message;
  ASSERT_EQ(s->traces.size(), 3U);
  EXPECT_EQ(s->traces[2].event_count, 1U);
}

TEST(TorchSnapshot, ContainersThatContainThemselves) {
  // d = {}; d["segments"] = d
  EXPECT_THAT(error_of("\x80\x04}\x94(\x8c\x08segmentsh\0u."), HasSubstr("at byte"));
  EXPECT_THAT(error_of(std::string("\x80\x04}\x94(\x8c\x08segmentsh\0u.", 18)), HasSubstr("contains itself"));
  // A list of frames that contains itself.
  EXPECT_THAT(error_of(std::string("\x80\x04}(\x8c\x0d"
                                   "device_traces]]}(\x8c\x06"
                                   "frames]\x94h\0aua.",
                                   40)),
              HasSubstr("at byte"));
}

TEST(TorchSnapshot, AnUnbalancedStackIsRefused) {
  EXPECT_THAT(error_of("\x80\x02" + std::string(1'000'000, ']')), HasSubstr("at byte"));
}

TEST(TorchSnapshot, WhatIsPackedTooWellIsRefused) {
  std::string nothing = "\x80\x04}";
  for (std::size_t i = 0; i < 80 * kMiB / 2; ++i) nothing += "N0";
  for (const std::string& bomb : {packed::gzip(nothing + "."), packed::zstd(nothing + ".")})
    EXPECT_THAT(error_of(bomb), HasSubstr("decompress it"));
  EXPECT_THAT(error_of(nothing + "."), HasSubstr("without segments")) << "the plain file is read";
  // A file that is small in total may be compressed by any ratio.
  EXPECT_THAT(error_of(packed::zstd("\x80\x04}" + nothing.substr(3, 32 * kMiB) + ".")), HasSubstr("without segments"));
}

TEST(TorchSnapshot, EveryCutIsAnError) {
  for (const int protocol : {0, 2, 4}) {
    const std::string whole = Writer(protocol).dump(sample(Era::v25));
    for (std::size_t length = 0; length < whole.size(); ++length) {
      Symbols symbols;
      const auto s = read(whole.substr(0, length), symbols);
      ASSERT_FALSE(s) << "cut after " << length;
      EXPECT_THAT(s.error().message, HasSubstr("at byte ")) << s.error().message;
    }
  }
  const std::string packed = packed::gzip(Writer(4).dump(sample(Era::v25)));
  for (std::size_t length = 4; length < packed.size(); ++length)
    EXPECT_NE(error_of(packed.substr(0, length)), "read") << length;
}

TEST(TorchSnapshot, WhatFollowsIsSaid) {
  Symbols symbols;
  const auto s = read(Writer(4).dump(sample(Era::v25)) + "more", symbols);
  ASSERT_TRUE(s);
  ASSERT_EQ(s->notes.size(), 1U);
  EXPECT_THAT(s->notes[0], HasSubstr("was not read"));
}

TEST(TorchSnapshot, LongStringsAndIntegers) {
  Symbols symbols;
  const std::string name(600'000, 'x');  // longer than the window
  const auto s = read(
      Writer(4).dump(py(Dict{
          {"segments", py(List{py(Dict{{"address", py(1)},
                                       {"total_size", py(1)},
                                       {name, py(Wide{1, 1})},
                                       {"blocks", py(List{py(Dict{{"size", py(1)}, {"state", py(name)}})})}})})}})),
      symbols);
  ASSERT_TRUE(s) << s.error().message;
  EXPECT_EQ(s->segments.at(0).size_bytes, 1U);
}

/// A million of them in a separate run: make damage-snapshots.
TEST(TorchSnapshot, MutatedFilesNeverBreakIt) {
  const char* const wanted = std::getenv("VRAMTRACK_MUTATIONS");
  const long count = wanted != nullptr ? std::atol(wanted) : 20'000;
  std::vector<std::string> seeds;
  for (const Era era : {Era::bare_list, Era::v20, Era::v212})
    for (const int protocol : {0, 2, 4}) seeds.push_back(Writer(protocol, protocol == 2).dump(sample(era)));
  std::uint64_t state = 88172645463325252;
  const auto random = [&state](std::uint64_t below) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
  };
  long read_count = 0;
  for (long i = 0; i < count; ++i) {
    std::string bytes = seeds[random(seeds.size())];
    for (std::uint64_t n = 1 + random(8); n > 0; --n) {
      const std::size_t at = random(bytes.size());
      switch (random(5)) {
        case 0:
          bytes[at] = static_cast<char>(random(256));
          break;
        case 1:
          bytes.erase(at, 1 + random(16));
          break;
        case 2:
          bytes.insert(at, 1 + random(4), "(}]aeus.hq\x94\x86"[random(12)]);
          break;
        case 3:
          bytes.insert(at, bytes.substr(random(bytes.size()), random(64)));
          break;
        default:
          bytes[at] = static_cast<char>(bytes[at] ^ (1 << random(8)));
      }
      if (bytes.empty()) bytes = "]";
    }
    Symbols symbols;
    const auto s = read(bytes, symbols);
    if (!s) {
      ASSERT_FALSE(s.error().message.empty());
      continue;
    }
    ++read_count;
    for (const Segment& segment : s->segments) ASSERT_LE(segment.first_block + segment.block_count, s->blocks.size());
  }
  EXPECT_GT(read_count, 0);
  RecordProperty("read", std::to_string(read_count));
}

}  // namespace
}  // namespace vramtrack::trace::test
