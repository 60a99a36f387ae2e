// A string in the source of a program is a quotation, whatever shows the source.
#include "explain/source_text.hpp"

#include <gtest/gtest.h>

#include <string>

#include "explain/explanation.hpp"
#include "explain/reader.hpp"

namespace vramtrack::explain {
namespace {

const std::string kMessage =
    "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 23.70 GiB total capacity; 20.10 GiB already allocated; "
    "1.10 GiB free; 21.20 GiB reserved in total by PyTorch)";

std::string filled(std::string pattern) {
  for (std::size_t at = pattern.find('%'); at != std::string::npos; at = pattern.find('%', at + kMessage.size()))
    pattern.replace(at, 1, kMessage);
  return pattern;
}
void expect_failure(const std::string& pattern) {
  EXPECT_TRUE(explain(read_messages(filled(pattern)))) << filled(pattern);
}
void expect_quotation(const std::string& pattern) {
  Reader reader;
  reader.feed(filled(pattern));
  EXPECT_TRUE(reader.finish().empty()) << filled(pattern);
  EXPECT_GT(reader.quotation_line(), 0U) << filled(pattern);
}

TEST(SourceText, AStringInASourceLineIsNoFailure) {
  for (const char* const text :
       {// of a traceback
        "Traceback (most recent call last):\n  File \"a.py\", line 12, in <module>\n    assert \"%\" in "
        "str(e)\nAssertionError\n",
        "  File \"a.py\", line 40, in main\n    check(\n    ~~~~~^\n        parse(\"%\"))\nAssertionError\n",
        // of pytest, a compiler, grep, a diff
        "    def test_text():\n        e = run()\n>       assert \"%\" in str(e)\nE       AssertionError\n",
        "src/pool.c:41:3: warning: unused\n   41 |     die(\"%\");\n      |         ^~~\n",
        "src/messages.py:12:    \"%\",\nsrc/messages.py:13:    \"other\",\n",
        "tests/pool_test.cpp:40:  EXPECT_EQ(parse(\"%\").free, 100);\n",
        "@@ -10,3 +10,4 @@ MESSAGES = [\n     \"nothing\",\n+    \"%\",\n ]\n",
        // of data in code
        "@pytest.mark.parametrize(\"text, free\", [\n    (\"%\", 1.1),\n    (\"\", None),\n])\n",
        "\ttests := []struct {\n\t\tin   string\n\t\twant int\n\t}{\n\t\t{\"%\", 2},\n\t\t{name: \"b\", in: \"%\"},\n",
        "const MESSAGES: &[&str] = &[\n    \"%\",\n];\n", "INSERT INTO messages (id, text) VALUES\n  (1, '%');\n",
        // of a command and of its input
        "TEXTS = {\n    12: \"%\",\n    13: \"other\",\n}\n", "export const samples = [\n  { id: 1, text: '%' },\n];\n",
        // of pdb, a search below the name of its file, git blame
        "> /src/t.py(12)check()\n-> assert '%' in text\n(Pdb) q\n",
        "src/messages.py\n12:    \"%\",\n13:    \"other\",\n",
        "1f3c9e21 (Ann 2026-03-01 10:00:00 +0100 12)     \"%\",\n", "awk '/%/ { print FILENAME }' *.log\n",
        "if grep -q \"%\" train.log; then\n", "$ cat log | rg -n -e '%'\n",
        "cat > sample.log <<'EOF'\nepoch 3\n%\nEOF\n./parse sample.log\n"})
    expect_quotation(text);
}

TEST(SourceText, OutputBesideSourceIsAFailure) {
  for (const char* const text :
       {"Traceback (most recent call last):\n  File \"a.py\", line 12, in f\n    raise "
        "MemoryError(\"%\")\nMemoryError: "
        "%\n",
        "    def test_train():\n>       out = model(x)\nE       RuntimeError: %\n\ntest_train.py:8: RuntimeError\n",
        "worker.py:41: retrying\nworker.py:52: RuntimeError: %\n", "logs/job1.log:281:RuntimeError: %\n",
        "--- run1.log\n+++ run2.log\n@@ -1,2 +1,2 @@\n epoch 2\n-epoch 3\n+RuntimeError: %\n",
        "> Hello,\n>   it prints \"%\"\n> and ends.\n", "$ python - <<'EOF'\nimport train\nEOF\nRuntimeError: %\n",
        "+ cd /work\n+ python train.py\nRuntimeError: %\n", "  1 | RuntimeError: %\n", "`%` on my card\n",
        "run.log\n12: RuntimeError: %\n13: end\n", "worker -3 failed with '%'\n"})
    expect_failure(text);
}

TEST(SourceText, TheTextOfACommitIsNoFailure) {
  const std::string header = "commit 1f3c9e21d0b7\nMerge: 12ab 34cd\nAuthor: A <a@example.org>\nDate:   Tue Mar 3\n\n";
  expect_quotation(header + "    parse: older versions\n\n    \"%\" has its figures in brackets.\n");
  expect_failure(header + "    parse: older versions\n\n$ python train.py\n    %\n");
}

}  // namespace
}  // namespace vramtrack::explain
