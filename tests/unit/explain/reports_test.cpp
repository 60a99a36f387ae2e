// The messages of tests/fixtures/explain/reports.txt, each from a public report, against the report's outcome; those of
// arithmetic.txt, in which the figures alone show the cause; and the words of the answers to those of answers.txt.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "explain/explanation.hpp"
#include "explain/render.hpp"
#include "golden.hpp"
#include "paths.hpp"

namespace vramtrack::explain {
namespace {

struct Report {
  std::string cause, program, citation, outcome;
  std::string text;
};

std::vector<Report> reports(const std::string& file = "reports.txt") {
  std::ifstream in(tests_dir() + "/fixtures/explain/" + file);
  std::vector<Report> out;
  std::string line;
  while (std::getline(in, line)) {
    if (line.rfind("## ", 0) == 0) {
      Report& report = out.emplace_back();
      std::string* const fields[] = {&report.cause, &report.program, &report.citation, &report.outcome};
      std::size_t at = 3;
      for (std::string* const field : fields) {
        const std::size_t end = std::min(line.find(" | ", at), line.size());
        *field = line.substr(at, end - at);
        at = std::min(end + 3, line.size());
      }
    } else if (!out.empty()) {
      out.back().text += line + '\n';
    }
  }
  return out;
}

std::string text_of(const std::string& path) {
  std::ifstream in(source_dir() + path);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(Reports, AreExplainedAsTheyEnded) {
  std::size_t right = 0;
  std::size_t with_outcome = 0;
  std::map<std::string, std::size_t> unknown_of;
  std::set<std::string> programs;
  const auto all = reports();
  ASSERT_GE(all.size(), 80U);
  std::set<const Wording*> used;
  for (const Report& report : all) {
    const auto messages = read_messages(report.text);
    for (const Message& message : messages) used.insert(message.wording);
    const auto explanation = explain(messages);
    if (report.cause == "none") {
      EXPECT_FALSE(explanation) << report.citation << ": " << headline(*explanation, "");
      if (!explanation) ++right;
      continue;
    }
    EXPECT_TRUE(explanation) << report.citation << ": no message found in\n" << report.text;
    if (!explanation) continue;
    programs.insert(std::string(explanation->failure().wording->program));
    if (report.outcome.rfind("figures", 0) != 0 && report.outcome.rfind("none", 0) != 0) ++with_outcome;
    const bool is_right = cause_name(explanation->cause) == report.cause;
    right += is_right ? 1 : 0;
    if (!is_right)
      std::cout << "wrong: " << report.citation << " (" << report.program << "): " << report.cause << ", but "
                << headline(*explanation, "") << '\n';
    EXPECT_FALSE(explanation->because.empty()) << report.citation;
    EXPECT_NE(explanation->next_step.empty(), explanation->missing_evidence.empty()) << report.citation;
  }
  std::cout << right << " of " << all.size() << " right, of " << programs.size() << " programs; " << with_outcome
            << " reports tell their outcome, the others' figures show it or nobody could tell\n";
  const auto unknown =
      std::count_if(all.begin(), all.end(), [](const Report& report) { return report.cause == "unknown"; });
  for (const std::string& words :
       {fmt::format("has {} messages from public reports", all.size()),
        fmt::format("| messages | {}, of {} programs |", all.size(), programs.size()),
        fmt::format("| right | {} |", right), fmt::format("| wrong | {}: ", all.size() - right),
        fmt::format("| the report tells its outcome | {} |", with_outcome),
        fmt::format("In {} of them the message does not show the cause", unknown)})
    EXPECT_NE(text_of("/docs/explain.md").find(words), std::string::npos) << "docs/explain.md: " << words;
  const std::string numbers = fmt::format("{} messages of public reports, of {} programs; {} are explained right",
                                          all.size(), programs.size(), right);
  EXPECT_NE(text_of("/docs/design/0024-explain.md").find(numbers), std::string::npos) << numbers;
  EXPECT_GE(programs.size(), 15U);
  EXPECT_GE(right * 100, all.size() * 95);
}

TEST(Reports, ArithmeticDecidesWhateverTheWording) {
  const auto all = reports("arithmetic.txt");
  ASSERT_GE(all.size(), 25U);
  for (const Report& message : all) {
    const auto explanation = explain(read_messages(message.text));
    ASSERT_TRUE(explanation) << message.text;
    EXPECT_EQ(cause_name(explanation->cause), message.cause) << message.program << ": " << message.citation << "\n"
                                                             << explanation->because;
  }
}

TEST(Answers, AreOfTheirCauseAndInTheWordsOfTheGolden) {
  std::string words;
  for (const Report& message : reports("answers.txt")) {
    const std::string& title = message.program;
    const auto explanation = explain(read_messages(message.text));
    ASSERT_TRUE(explanation) << title;
    EXPECT_EQ(cause_name(explanation->cause), message.cause) << title << ": " << explanation->because;
    words += fmt::format("## {}\n{}\n", title, explanation_text(*explanation, ""));
  }
  expect_golden("words/explain/answers.txt", words);
}

TEST(Reports, AreCited) {
  for (const Report& report : reports()) {
    EXPECT_NE(report.citation.find('/'), std::string::npos) << report.citation;
    EXPECT_NE(report.citation.find('#'), std::string::npos) << report.citation;
    EXPECT_FALSE(report.outcome.empty()) << report.citation;
  }
}

}  // namespace
}  // namespace vramtrack::explain
