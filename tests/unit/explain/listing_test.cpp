// A row of a table of errors is a quotation, and a row of a log or of results is a failure.
#include "explain/listing.hpp"

#include <gtest/gtest.h>

#include <string>

#include "explain/explanation.hpp"
#include "explain/reader.hpp"

namespace vramtrack::explain {
namespace {

const std::string kTorch =
    "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 23.70 GiB total capacity; 20.10 GiB already allocated; "
    "1.10 GiB free; 21.20 GiB reserved in total by PyTorch)";
const std::string kLater =
    "CUDA out of memory. Tried to allocate 4.00 GiB (GPU 0; 23.70 GiB total capacity; 18.30 GiB already allocated; "
    "2.10 GiB free; 19.20 GiB reserved in total by PyTorch)";
const std::string kOther = "failed to allocate 512 MiB, 100 MiB free of 8192 MiB";

/// `pattern` with the messages in place of %1, %2 (the same with other figures) and %3 (another).
std::string filled(std::string pattern) {
  for (const auto& [mark, message] : {std::pair("%1", kTorch), std::pair("%2", kLater), std::pair("%3", kOther)})
    for (std::size_t at = pattern.find(mark); at != std::string::npos; at = pattern.find(mark, at + message.size()))
      pattern.replace(at, 2, message);
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

TEST(Listing, ATableOfErrorsIsNoFailure) {
  for (const char* const table :
       {"# Known errors\n\n| code | message |\n|---|---|\n| E12 | %3 |\n| E13 | %1 |\n",
        "Known errors\n============\n\n+------+---------+\n| code | message |\n+======+=========+\n| E12  | %3 |\n"
        "+------+---------+\n| E13  | %1 |\n+------+---------+\n",
        ".. list-table::\n   :header-rows: 1\n\n   * - code\n     - message\n   * - E12\n     - %3\n   * - E13\n     - "
        "%1\n",
        "<table>\n<tr><th>code</th><th>message</th></tr>\n<tr><td>E12</td><td>%3</td></tr>\n<tr>\n  <td>E13</td>\n  "
        "<td>%1</td>\n</tr>\n</table>\n",
        "code,severity,message\nE11,warning,the queue is full\nE12,error,\"%3\"\nE13,error,\"%1\"\n",
        "Code  Message\n----  -------\nE12   %3\nE13   %1\n",
        "{\"id\": 1, \"text\": \"%1\"}\n{\"id\": 2, \"text\": \"%3\"}\n"})
    expect_quotation(table);
}

TEST(Listing, AMessageThatItsRowExplainsIsNoFailure) {
  expect_quotation(
      "| Error | Cause | Remedy |\n|---|---|---|\n| %1 | the batch is too large | lower it |\n"
      "| NCCL timeout | a rank is gone | restart it |\n");
  expect_failure("| Error | GPU | Version |\n|---|---|---|\n| %1 | 0 | 2.1 |\n| none | 1 | 2.1 |\n");
}

TEST(Listing, ATableOfWhatHappenedIsAFailure) {
  for (const char* const table :
       {"| time | level | message |\n|---|---|---|\n| 12:00:05 | ERROR | %3 |\n| 12:00:07 | ERROR | %1 |\n",
        "| batch | result |\n|---|---|\n| 8 | 1.2 s |\n| 16 | %1 |\n| 32 | %2 |\n",
        "| Field | Value |\n|---|---|\n| GPU | RTX 3090 |\n| Error | %1 |\n",
        "| level | message |\n|---|---|\n| INFO | epoch 3 |\n| ERROR | %3 |\n| ERROR | %1 |\n",
        "| test | result | message |\n|---|---|---|\n| a | failed | %3 |\n| b | failed | %1 |\n",
        "job,exit_code,stderr\n1,0,\n2,1,\"%1\"\n3,137,Killed\n",
        "time,level,message\n2026-03-01T12:00:01,error,\"%3\"\n2026-03-01T12:00:05,error,\"%1\"\n",
        "{\"level\": \"error\", \"message\": \"%1\"}\n{\"level\": \"error\", \"message\": \"%3\"}\n",
        "I ran it on two machines:\n\n| GPU | error |\n|---|---|\n| RTX 3090 | %1 |\n| RTX 3060 | %3 |\n",
        "<table>\n<tr><th>time</th><th>message</th></tr>\n<tr><td>12:00:07</td><td>%1</td></tr>\n"
        "<tr><td>12:00:08</td><td>%3</td></tr>\n</table>\n",
        "| ERROR | %1 |\n| ERROR | %3 |\n"})
    expect_failure(table);
}

TEST(Listing, AnArrayOfOtherFailuresIsNoFailure) {
  expect_quotation("{\n  \"messages\": [\n    \"%1\",\n    \"%3\"\n  ]\n}\n");
  expect_quotation("restart_on:\n  - \"%1\"\n  - \"%3\"\n  - \"NCCL error\"\n");
  expect_quotation("{\n  \"E11\": \"the queue is full\",\n  \"E12\": \"%3\",\n  \"E13\": \"%1\"\n}\n");
  // One run reports its failure more than once, with the same size.
  expect_failure("{\n  \"errors\": [\n    \"%1\",\n    \"failed to allocate 2.00 GiB\"\n  ]\n}\n");
  expect_failure("{\n  \"exit_code\": 1,\n  \"errors\": [\n    \"%1\",\n    \"%3\"\n  ]\n}\n");
  expect_failure("{\n  \"error\": \"%1\",\n  \"detail\": \"%3\"\n}\n");
  expect_failure("  \"text\": [\n    \"%1\\n\",\n    \"%3\\n\"\n  ]\n");
}

TEST(Listing, AnItemOfAListOfHtmlIsNoFailure) {
  expect_quotation("<h2>Known errors</h2>\n<ul>\n<li>%3</li>\n<li>%1</li>\n</ul>\n");
  expect_failure("<ul>\n<li>step 1</li>\n<li>%1</li>\n</ul>\n");
}

TEST(Listing, AnyTableMayBeCutAnywhere) {
  const std::string text = filled(
      "<table><tr><th>a</th><td>%1</td></tr></table>\n| a | b |\n|---|---|\n| 1 | %1 |\n\na,b\n1,\"%3\"\n\n"
      ".. list-table::\n   * - a\n     - %3\n{\"a\": 1, \"b\": \"%3\"}\n- \"%1\"\n");
  for (std::size_t i = 0; i < text.size(); ++i)
    for (const std::size_t end : {i, text.size()}) {
      is_listed(Lines(text, i, end));
      is_listed(Lines(std::string_view(text).substr(0, end), i, end));
      is_listed(Lines(std::string_view(text).substr(i), 0, end - i));
    }
}

}  // namespace
}  // namespace vramtrack::explain
