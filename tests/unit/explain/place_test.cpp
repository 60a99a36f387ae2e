// The position of a text distinguishes a quotation from a failure, whatever figures it contains.
#include "explain/place.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "explain/explanation.hpp"
#include "explain/reader.hpp"

namespace vramtrack::explain {
namespace {

/// Messages with two or more figures, from several programs.
const std::vector<std::string>& messages() {
  static const std::vector<std::string> all = {
      "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
      "24.00 "
      "GiB of which 1.10 GiB is free.",
      "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 7.79 GiB total capacity; 6.10 GiB already "
      "allocated; 17.62 MiB free; 6.20 GiB reserved in total by PyTorch)",
      "failed to allocate 512 MiB of 8192 MiB: out of memory",
      "MPS backend out of memory (MPS allocated: 15.20 GiB, other allocations: 2.10 GiB, max allowed: 18.13 GiB). "
      "Tried "
      "to allocate 1.00 GiB on private pool.",
      "Not enough GPU memory: 6.1 GiB requested, 4.1 GiB free of 23.6 GiB"};
  return all;
}

void expect_failure(const std::string& text) {
  EXPECT_TRUE(explain(read_messages(text))) << text;
}
void expect_quotation(const std::string& text) {
  Reader reader;
  reader.feed(text);
  EXPECT_TRUE(reader.finish().empty()) << text;
  EXPECT_GT(reader.quotation_line(), 0U) << text;
}

TEST(Place, TheMessagesAreFailuresAlone) {
  for (const std::string& message : messages()) {
    expect_failure(message);
    expect_failure("epoch 3\n" + message + "\n");
    expect_failure("    " + message);
  }
}

TEST(Place, AStringOfCodeIsNoFailure) {
  for (const std::string& message : messages())
    for (const std::string code :
         {"MESSAGE = \"%\"\ndef test_parse():\n    assert parse(MESSAGE).free == 1\n", "const char* kText = \"%\";\n",
          "const text: string = '%';\n", "text := `%`\n", "static constexpr auto kText = R\"(%)\";\n",
          "    assert parse(\"%\").free == 1\n", "  EXPECT_TRUE(is_found(\"%\"));\n", "    result = parse('%')\n",
          "TEXTS = [\n    \"%\",\n    'other'\n]\n", "@pytest.mark.parametrize(\"text\", [\n    \"%\",\n])\n",
          "TEXT = (\n    \"first \"\n    \"%\"\n)\n", "LOG = \"\"\"\nstep 1\n%\n\"\"\"\n", "check(\"\"\"%\"\"\")\n",
          "  for (const auto& text :\n       {\"one\", \"%\"}) {\n    const auto words = answer(text);\n    "
          "EXPECT_TRUE(words.empty());\n  }\n",
          "int main() {\n  setup();\n  report(kError, 3,\n         \"%\");\n  return 0;\n}\n",
          "def parse(text):\n    \"\"\"Reads this:\n\n    %\n    \"\"\"\n"}) {
      std::string text = code;
      text.replace(text.find('%'), 1, message);
      expect_quotation(text);
    }
}

TEST(Place, AStringOfALogIsAFailure) {
  for (const std::string& message : messages())
    for (const std::string log :
         {"{\n  \"id\": 4,\n  \"error\": \"%\",\n  \"code\": 500\n}\n",
          "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n    "
          "run(x)\n  File \"b.py\", line 9, in run\n    out = g(x)\nServerError: \"%\"\n",
          "level=error msg=\"%\"\n", "{\"level\": \"error\", \"message\": \"%\"}\n",
          "  \"traceback\": [\n    \"%\",\n  ]\n", "[RuntimeError('%')]\n", "ERROR worker failed: '%'\n",
          "time=2026-03-01T10:00:00Z level=ERROR error=\"%\"\n", "error: \"%\"\n", "Exception: OutOfMemoryError('%')\n",
          "{'error': '%'}\n", "I got \"%\" when I ran it on my card.\n"}) {
      std::string text = log;
      text.replace(text.find('%'), 1, message);
      expect_failure(text);
    }
}

TEST(Place, AHelpTextIsNoFailure) {
  for (const std::string& message : messages()) {
    expect_quotation("usage: tool [options]\n  --max-mem N   abort with \"" + message + "\" when exceeded\n");
    expect_quotation("usage: tool [options]\n  -m, --max-mem N\n        abort with the message\n        " + message +
                     "\n");
    expect_failure("--scale=0.5 ends with " + message + "\n");
    expect_failure("$ tool --max-mem 8\n" + message + "\n");
    expect_failure("usage: tool [options]\n\n" + message + "\n");
  }
}

TEST(Place, AnErrorInAListOfErrorsIsNoFailure) {
  for (const std::string& message : messages()) {
    expect_quotation("Known errors:\n\n- " + message + "\n- RuntimeError: NCCL error\n");
    expect_quotation("## Errors\n* `cudaErrorNoDevice`: no card\n* " + message + "\n");
    expect_quotation("The tool knows these texts:\n1. ValueError: no model\n2. " + message + "\n");
    expect_failure("I get two errors:\n\n- " + message + "\n- RuntimeError: NCCL error\n");
    expect_failure("errors:\n- " + message + "\n- RuntimeError: NCCL error\n");
    expect_failure("2 errors occurred:\n  * " + message + "\n  * RuntimeError: NCCL error\n");
    expect_failure("These two errors occurred:\n\n- " + message + "\n- RuntimeError: NCCL error\n");
    expect_quotation("These errors are raised:\n\n- " + message + "\n- RuntimeError: NCCL error\n");
    expect_quotation("The expected errors are:\n\n- " + message + "\n- RuntimeError: NCCL error\n");
    expect_failure("Steps:\n\n- start the server\n- " + message + "\n");
  }
}

TEST(Place, AnExampleOfADocumentIsNoFailure) {
  for (const std::string& message : messages()) {
    const std::string block = "The error looks like this:\n```\n" + message + "\n```\n";
    expect_quotation("# Notes\n" + block + "To fix it lower the batch size.\n");
    expect_quotation("Troubleshooting\n===============\n\nA typical message::\n\n    " + message +
                     "\n\nReduce ``--batch-size``.\n");
    expect_quotation("On a small card you may see:\n\n~~~text\n" + message + "\n~~~\n");
    expect_quotation("# Notes\n\nIt prints:\n\n    " + message + "\n\nLower the batch size.\n");
    expect_quotation("# Notes\n\nWith exit code 1 it prints:\n\n```\n" + message + "\n```\n");
    // Without a title it is a report, and so is a place where people write about their own failure.
    expect_failure(block);
    expect_failure("# Bug\nMy card is new.\n" + block);
    expect_failure("# Nightly run\n\nJob 4 failed with:\n```\n" + message + "\n```\n");
    expect_failure("# Bug\n\n```\n" + message + "\n```\n");
    expect_failure("### Logs\nThe end of the log:\n```\n" + message + "\n```\n");
  }
}

TEST(Place, ALabelledBlockOfWhichNobodySpeaksIsAFailure) {
  for (const std::string& message : messages())
    for (const std::string label : {"Steps to reproduce:", "Output:", "**Full error:**", "Relevant log output:"}) {
      const std::string report = "# Crash at step 3\n\n" + label + "\n\n```\n" + message + "\n```\n";
      expect_failure(report);
      expect_failure(report + "\n## Environment\nDebian 12\n");
      expect_failure(report + "\nVersions:\n```\n2.3\n```\n");
      expect_quotation(report + "\nThe batch is too large for the card.\n");
    }
}

TEST(Place, ABlockOfARunIsAFailureWhereverItIsPasted) {
  for (const std::string& message : messages())
    for (const std::string run :
         {"2026-03-01 10:00:00 step 3\n%", "Traceback (most recent call last):\n  File \"train.py\", line 3\n%",
          "[rank0]: %", "$ python train.py\n%", "epoch 1\nepoch 2\nepoch 3\n%", "ERROR: %", "train.py:12: %",
          "E0301 10:00:00.000000 4711 api.py:826] %", "%\nProcess finished with exit code 134",
          "%\nsrun: error: node7: task 0: Exited with exit code 1", "worker (pid=4711) %", "%\n/home/ann/runs/7/core",
          "in 0x7f3a12bc40d0\n%"}) {
      std::string block = run;
      block.replace(block.find('%'), 1, message);
      expect_failure("# Memory\n\nThis is what it ends with:\n```\n" + block + "\n```\n");
    }
}

TEST(Place, ATitleBeginsADocument) {
  EXPECT_TRUE(begins_with_title("\n\n# Notes\n"));
  EXPECT_TRUE(begins_with_title("Notes\n=====\n"));
  EXPECT_TRUE(begins_with_title("<h1>Notes</h1>\n"));
  for (const char* const text :
       {"", "\n", "## Bug\n", "#1 failed\n", "==== ROCm ====\n", "Notes\n", "Notes\n=", "a\n\n===\n"})
    EXPECT_FALSE(begins_with_title(text)) << text;
}

TEST(Place, AnyTextMayBeCutAnywhere) {
  const std::string text = "# Notes\n\n- A: b\n- " + messages()[0] + "\n\nIt prints:\n```py\nTEXT = \"\"\"\n" +
                           messages()[1] + "\n\"\"\"\n```\n";
  for (std::size_t i = 0; i < text.size(); ++i) {
    EXPECT_LE(read_messages(std::string_view(text).substr(i)).size(), 4U);
    EXPECT_LE(read_messages(std::string_view(text).substr(0, i)).size(), 4U);
    for (const std::size_t end : {i, text.size()}) place_of(text, i, end, i % 2 == 0);
  }
}

}  // namespace
}  // namespace vramtrack::explain
