#include "source/sim/random.hpp"

#include <cmath>
#include <numbers>

namespace vramtrack::sim {

double Random::normal() {
  const double radius = std::sqrt(-2 * std::log(1 - uniform()));
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

double Random::exponential(double mean) {
  return -mean * std::log(1 - uniform());
}

double Random::log_uniform(double low, double high) {
  return low * std::exp(uniform() * std::log(high / low));
}

std::uint64_t substream(std::uint64_t seed, std::uint64_t number) {
  return Random{seed ^ Random{number ^ 0xD1B54A32D192ED03ULL}.next()}.next();
}

std::uint64_t substream(std::uint64_t seed, std::string_view name) {
  std::uint64_t hash = 0xCBF29CE484222325ULL;  // FNV-1a, 64 bit
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  return substream(seed, hash);
}

}  // namespace vramtrack::sim
