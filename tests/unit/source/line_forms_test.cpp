#include "source/log/line_forms.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "../paths.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

/// All of its contents, with the position of each view.
std::string written(const LineFigures& found, std::string_view line) {
  std::string out;
  const auto view = [&](std::string_view text) {
    if (text.empty())
      out += "- ";
    else
      out += std::to_string(text.data() - line.data()) + '+' + std::to_string(text.size()) + ' ';
  };
  const auto number = [&](auto value) { out += std::to_string(value) + ' '; };
  for (const std::string_view text :
       {found.stamp, found.minute, found.elapsed.text, found.gpu_word, found.pid_word, found.prefix, found.tag})
    view(text);
  number(found.elapsed.seconds);
  for (const auto* figures : {&found.figures, &found.unclear}) {
    out += "| ";
    for (const MemoryFigure& f : *figures) {
      number(static_cast<int>(f.role));
      number((f.has_role_word ? 1 : 0) + (f.is_of_gpu ? 2 : 0) + (f.is_memory ? 4 : 0) + (f.percent ? 8 : 0) +
             (f.is_open ? 16 : 0));
      number(f.number);
      number(f.unit_bytes);
      number(f.gpu);
      number(f.begin);
      number(f.digits_end);
      number(f.end);
      view(f.word);
      out += '\'' + f.label + "' ";
    }
  }
  for (const LineCount& count : found.counts) {
    number(static_cast<int>(count.meaning));
    number(count.value);
    number(count.begin);
    number(count.end);
    view(count.word);
  }
  number(found.gpu);
  number(found.gpu_begin);
  number(found.gpu_end);
  number(found.listed);
  if (found.pid) {
    number(*found.pid);
    number(found.pid_begin);
    number(found.pid_end);
  }
  return out;
}

std::string anew(std::string_view line) {
  LineFigures found;
  CutLine cut;
  LineStart start;
  find_figures_anew(line, found, Grouping::by_comma, cut, start);
  return written(found, line);
}

std::string remembered(std::string_view line) {
  static LineFigures found;  // still has what its last reader left in it
  find_figures(line, found);
  return written(found, line);
}

/// The same line with other digits.
std::string with_other_digits(std::string line, std::mt19937& random) {
  const bool all = random() % 2 == 0;
  for (char& c : line)
    if (logtext::is_digit(c) && (all || random() % 4 == 0)) c = static_cast<char>('0' + random() % 10);
  return line;
}

TEST(LineForms, WhatIsRememberedReadsAsItWouldAnew) {
  std::mt19937 random(1);  // NOLINT(cert-msc51-cpp): the same lines each time
  std::size_t lines = 0;
  for (const char* const folder : {"fixtures/log", "fixtures/text_logs", "../fuzz/corpus/log"})
    for (const auto& file :
         std::filesystem::recursive_directory_iterator(std::filesystem::path(tests_dir()) / folder)) {
      if (!file.is_regular_file() || file.file_size() > 4'000'000) continue;
      std::ifstream in(file.path(), std::ios::binary);
      std::size_t of_file = 0;
      for (std::string line; std::getline(in, line) && of_file < 150; ++of_file) {
        for (int i = 0; i < 8; ++i, ++lines) {
          const std::string read = i == 0 ? line : with_other_digits(line, random);
          ASSERT_EQ(remembered(read), anew(read)) << file.path() << ": " << read;
        }
      }
    }
  EXPECT_GT(lines, 20'000U);
}

TEST(LineForms, DigitsThatDecideAreLookedAt) {
  // Pairs of lines with the same form that read differently.
  const std::vector<std::vector<std::string>> lines = {
      {"mem 4000 MiB / 8000 MiB", "mem 9000 MiB / 8000 MiB", "mem 4000 MiB / 7000 MiB"},
      {"allocated / 1025 = 4000", "allocated / 1024 = 4000", "allocated / 1026 = 4000"},
      {"GPU 0 used 4000 MiB", "GPU 1 used 4000 MiB", "GPU 1 used 5000 MiB"},
      {"gpu 1025 used 4000 MiB", "gpu 1023 used 4000 MiB"},
      {"45:99:00 used 4000 MiB", "15:59:00 used 4000 MiB", "99:99:99 used 4000 MiB"},
      {"2772359200 used 4000 MiB", "1772359200 used 4000 MiB"},
      {"2026-13-01 10:00:00 mem 4000 MiB", "2026-12-01 10:00:00 mem 4000 MiB"},
      {"t=120s used 4000 MiB", "t=130s used 4000 MiB"},
      {"step 5 lr 1.2e-05 mem 4000 MiB", "step 6 lr 1.3e-05 mem 4100 MiB", "step 6 lr 1.3e-04 mem 4100 MiB"},
      {"used 6.19e+09", "used 6.19e+02", "used 6.20e+09"},
      {"used 4.000 MB", "used 0.123 MB", "used 5.123 MB"},
      {"mem: {0: 4000, 1: 5000}", "mem: {0: 4000, 0: 5000}"},
      {"used 4000 MiB (3.91 GiB)", "used 4000 MiB (7.91 GiB)"},
      {"pid 4242 used 4000 MiB", "pid 4343 used 4000 MiB"},
      {"used 1,200 MiB", "used 1,300 MiB", "used 0,300 MiB"},
  };
  for (const auto& of_form : lines)
    for (int round = 0; round < 2; ++round)
      for (const std::string& line : of_form) EXPECT_EQ(remembered(line), anew(line)) << line;
}

}  // namespace
}  // namespace vramtrack
