// Each line of the two fixtures is one text: those that only mention a message, and those that are messages.
#include "explain/quotation.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "explain/reader.hpp"
#include "paths.hpp"

namespace vramtrack::explain {
namespace {

/// "\n" in a line stands for a line feed.
std::vector<std::string> texts_of(const std::string& name) {
  std::ifstream in(tests_dir() + "/fixtures/explain/" + name);
  std::vector<std::string> out;
  std::string line;
  while (std::getline(in, line)) {
    if (line.empty() || line.starts_with("%")) continue;
    for (std::size_t at = 0; (at = line.find("\\n", at)) != std::string::npos;) line.replace(at, 2, "\n");
    out.push_back(line);
  }
  return out;
}

void expect_mention(std::string_view text) {
  EXPECT_TRUE(read_messages(text).empty()) << text;
}
void expect_message(std::string_view text) {
  EXPECT_FALSE(read_messages(text).empty()) << text;
}

TEST(Quotation, IsNoMessage) {
  const auto texts = texts_of("quotations.txt");
  ASSERT_GE(texts.size(), 60U);
  for (const std::string& text : texts) {
    Reader reader;
    reader.feed(text);
    const auto messages = reader.finish();
    EXPECT_TRUE(messages.empty()) << text << "\n  taken for: " << messages.front().wording->name;
    EXPECT_NE(reader.quotation_line(), 0U) << text;
  }
}

TEST(Quotation, AMessageIsNone) {
  const auto texts = texts_of("messages.txt");
  ASSERT_GE(texts.size(), 60U);
  for (const std::string& text : texts) expect_message(text);
}

TEST(Quotation, AStringInAListOfMessagesIsOne) {
  const std::string code =
      "TEXTS = [\n"
      "    \"RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1234567 bytes.\",\n"
      "    \"Failed to allocate request for 3.00GiB on device ordinal 1\",\n"
      "    r'CUDA error: out of memory',\n"
      "]\n"
      "def test_each_text_is_found():\n";
  expect_mention(code);
  const std::string cell =
      "  \"traceback\": [\n"
      "    \"Cell In[3], line 1\",\n"
      "    \"RuntimeError: CUDA error: out of memory\",\n"
      "    \"Compile with more checks\"\n";
  EXPECT_FALSE(read_messages(cell).empty()) << "the lines of one error";
}

TEST(Quotation, APageAboutItsSubjectIsNoReport) {
  const std::string paragraph =
      "The error occurs when the weights of a model exceed the available GPU memory, and it is the most frequent one "
      "at the start of a server.\n";
  const std::string page = "GPU Out of Memory\nWhat it means\n" + paragraph + "Explanation\n" + paragraph;
  expect_mention(page);
  const std::string report = "GPU out of memory\nSteps\n" + paragraph + "My log\n" + paragraph;
  EXPECT_FALSE(read_messages(report).empty()) << "somebody writes of themselves";
  expect_message(page + "Output\nE: GPU out of memory: 2 GiB requested, 1 GiB free\n");
}

TEST(Quotation, AQuestionOfWhoeverItHappenedToIsAReport) {
  const std::string log = "The service starts and then ends again, each time that a request arrives from a client.\n";
  expect_message(log + "\nThere is a reason called `OOMKilled`, may I know what to change?\n");
  expect_mention(log + "\nWhat does `OOMKilled` mean?\n");
  expect_message(log + "\nFixed the driver, i had an old one, now the error is cuMemAlloc(): out of memory\n");
}

TEST(Quotation, DoesNotHideTheMessageBesideIt) {
  const auto messages = read_messages(
      "Tips: if you see CUDA out of memory, lower the batch size\n"
      "RuntimeError: CUDA error: out of memory\n");
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_EQ(messages[0].line, 2U);
}

TEST(Quotation, ALineOfALogInACommentIsNone) {
  expect_message("# ERROR: LoadError: Out of GPU memory trying to allocate 11.921 GiB");
  expect_message("Higher values yield `ERROR on proc 0: Insufficient memory on accelerator (src/pair.cpp:110)`");
  expect_mention("# RuntimeError: CUDA out of memory");
}

TEST(Quotation, EscapedLinesAreLines) {
  expect_message(R"({"exc":"line 3, in f\n    if you:\n      run()\nRuntimeError: CUDA error: out of memory\n"})");
  expect_mention(R"({"text":"a\nif you see CUDA out of memory\nb"})");
}

TEST(Quotation, ATextMayBeCutAnywhere) {
  for (const char* const name : {"quotations.txt", "messages.txt"})
    for (const std::string& text : texts_of(name))
      for (std::size_t size = 0; size < text.size(); ++size) {
        EXPECT_LE(read_messages(std::string_view(text).substr(0, size)).size(), 4U);
        EXPECT_LE(read_messages(std::string_view(text).substr(size)).size(), 4U);
      }
}

TEST(Quotation, ColoursAndCarriageReturnsDoNotMatter) {
  expect_message("\x1b[31m\x1b[1mRuntimeError: CUDA out of memory\x1b[0m\r\n");
  expect_mention("\x1b[1mTip:\x1b[0m if you see CUDA out of memory\r\n");
}

TEST(Quotation, PiecesOfAnySizeGiveTheSame) {
  std::string text;
  while (text.size() < 3'000'000)
    text += std::string(200, 'x') + ". If you see the error CUDA out of memory, lower it\nCUDA error: out of memory\n";
  const auto whole = read_messages(text);
  for (const std::size_t piece : {4095U, 1'000'003U}) {
    Reader reader;
    for (std::size_t at = 0; at < text.size(); at += piece) reader.feed(std::string_view(text).substr(at, piece));
    const auto messages = reader.finish();
    ASSERT_EQ(messages.size(), whole.size());
    for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_EQ(messages[i].line, whole[i].line);
  }
}

TEST(Quotation, AReportMaySpeakOfItInGeneral) {
  // The sentence alone reports no failure, and the text around it contains no other.
  const std::string spoken = "The trainer stops with CUDA out of memory on small cards.\n";
  const std::string told = "The limits of the pod:\n        memory: 40Gi\n        nvidia.com/gpu: 1\n";
  expect_mention("The result is a CUDA out-of-memory error during a deployment.");
  EXPECT_EQ(read_messages("nvidia-smi shows these processes on the T4:\n3794364 5144MiB\n3798331 1562 MiB\n\n"
                          "The result is a CUDA out-of-memory error during a subsequent deployment.\n")
                .size(),
            1U);
  // Code, lists, conditions and questions are mentions in any text.
  for (const std::string mention :
       {"If you see CUDA out of memory, lower the batch.\n", "- CUDA out of memory: lower the batch size\n",
        "    except RuntimeError:  # CUDA out of memory\n", "What is CUDA out of memory?\n"})
    expect_mention(told + told + mention);
  // A failure reported in the text decides alone.
  const auto messages = read_messages(spoken + told + "worker 3: CUDA out of memory\n");
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_EQ(messages[0].line, 5U);
}

TEST(Quotation, InTheCommentOfAProgram) {
  expect_mention("/**\n * Frees the cache.\n * @return -1 if there is no memory\n */\n");
  expect_mention("  NO_SPACE = 1,  /* Ran out of memory. */\n");
}

}  // namespace
}  // namespace vramtrack::explain
