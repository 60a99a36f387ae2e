// How often the leak gate is right: each healthy family, each with a small leak added, and each family of leaks, RUNS
// times (200). Prints the tables of docs/leak-gate.md. Ends with 1 when healthy runs fail more often than the error
// rate allows, or leaks beyond the limit pass more often than theirs.
//
//     gate_families [RUNS [SEED]]
//
// SEED (0) is added to each run's seed. The test was tuned on 0: another one shows what it does to series that nobody
// saw.
#include "families.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "gate/leak_gate.hpp"

namespace vramtrack::gate {
namespace {

using made::Family;
using made::kMib;

constexpr double kErrorRate = 1e-4;
constexpr double kPassError = 1e-3;  ///< of the bound that a pass is based on

struct Counted {
  int passes = 0;
  int fails = 0;
  int inconclusive = 0;  ///< and warming up, and too short
};

Counted run(const Family& family, int runs, std::uint64_t first_seed, double leak_mib) {
  Counted counted;
  for (int n = 0; n < runs; ++n) {
    const auto y = made::series_of(family, first_seed + static_cast<std::uint64_t>(n), leak_mib);
    LeakGate gate({0.2 * kMib, kErrorRate, 4}, {});
    for (std::size_t i = 0; i < y.size() && !gate.finished(); ++i) gate.add(y[i]);
    switch (gate.result().outcome) {
      case Outcome::passes:
        ++counted.passes;
        break;
      case Outcome::fails:
        ++counted.fails;
        break;
      default:
        ++counted.inconclusive;
    }
  }
  return counted;
}

/// The chance of `count` events or more where `expected` are.
double chance_of(int count, double expected) {
  double term = std::exp(-expected);
  double below = 0;
  for (int n = 0; n < count; ++n) {
    below += term;
    term *= expected / (n + 1);
  }
  return 1 - below;
}

/// The highest rate at which this few failures come in one of twenty measurements (the exact bound of Poisson's law).
double upper_bound(int failures, int runs) {
  double low = 0;
  double high = 10.0 + 3.0 * failures;
  for (int n = 0; n < 60; ++n) {
    const double middle = (low + high) / 2;
    (chance_of(failures + 1, middle) < 0.95 ? low : high) = middle;
  }
  return high / runs;
}

/// More errors than chance explains: this many come in less than one measurement of a hundred, of all `families`
/// together.
bool exceeds(int errors, int runs, double rate, std::size_t families) {
  return errors > 0 && chance_of(errors, rate * runs) < 0.01 / static_cast<double>(families);
}

void row(const Family& family, const Counted& c) {
  fmt::print("| {} | {} | {} | {} |\n", family.words, c.passes, c.inconclusive, c.fails);
}

int measure(int runs, std::uint64_t seed) {
  int wrong = 0;
  const auto healthy = made::healthy_families();
  fmt::print("| healthy | passes | inconclusive | fails | failure rate below |\n|---|---|---|---|---|\n");
  int failures = 0;
  for (const Family& family : healthy) {
    const Counted c = run(family, runs, seed + 1, 0);
    failures += c.fails;
    wrong += exceeds(c.fails, runs, kErrorRate, healthy.size());
    fmt::print("| {} | {} | {} | {} | {:.2g} |\n", family.words, c.passes, c.inconclusive, c.fails,
               upper_bound(c.fails, runs));
  }
  const int all = static_cast<int>(healthy.size()) * runs;
  fmt::print("\n{} of {} healthy runs failed: the rate is below {:.2g} (95 %)\n\n", failures, all,
             upper_bound(failures, all));
  wrong += exceeds(failures, all, kErrorRate, 1);

  fmt::print("| with 0.5 MiB per iteration more | passes | inconclusive | fails |\n|---|---|---|---|\n");
  for (const Family& family : healthy) {
    const Counted c = run(family, runs, seed + 5001, 0.5);
    row(family, c);
    wrong += exceeds(c.passes, runs, kPassError, healthy.size());
  }
  fmt::print("\n| leaks | passes | inconclusive | fails |\n|---|---|---|---|\n");
  for (const Family& family : made::leaking_families()) {
    const Counted c = run(family, runs, seed + 9001, 0);
    row(family, c);
    wrong += exceeds(c.passes, runs, kPassError, healthy.size());
  }
  fmt::print("\n{}\n", wrong == 0 ? "as promised" : "NOT as promised");
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace vramtrack::gate

int main(int argc, char** argv) {
  return vramtrack::gate::measure(argc > 1 ? std::atoi(argv[1]) : 200,
                                  argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0);
}
