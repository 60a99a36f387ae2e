#include "source/sim/shape.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/registry.hpp"

namespace vramtrack::sim {

#define VRAMTRACK_SHAPE(name) extern const ShapeKind name##_shape;
#include "source/sim/shapes.def"

namespace {

/// Applies what all shapes have in common: onset, until, release, and periodic partial release.
struct Framed {
  Curve curve;
  double neutral, onset_s, until_s, release_s, release_every_s, release_share;
  double released = 0;
  double releases = 0;

  double operator()(double t_s) {
    if (t_s < onset_s || t_s >= release_s) return neutral;
    const double local_s = std::min(t_s, until_s) - onset_s;
    if (local_s < 0) return neutral;
    while (release_every_s > 0 && (releases + 1) * release_every_s <= local_s) {
      ++releases;
      released += release_share * (curve(releases * release_every_s) - released);
    }
    return curve(local_s) - released;
  }
};

}  // namespace

double ShapeSpec::operator[](std::string_view key) const {
  for (std::size_t i = 0; i < kind->parameters.size(); ++i)
    if (kind->parameters[i].key == key) return values[i];
  return std::numeric_limits<double>::quiet_NaN();
}

std::span<const ShapeKind* const> shape_kinds() {
  static const std::array kinds = {
#define VRAMTRACK_SHAPE(name) &name##_shape,
#include "source/sim/shapes.def"
  };
  return kinds;
}

const ShapeKind* find_shape_kind(std::string_view name) {
  return find_named(shape_kinds(), name);
}

Curve make_curve(const ShapeSpec& spec, Random random) {
  return Framed{spec.kind->make(spec, random), spec.multiply ? 1.0 : 0.0, spec.onset_s, spec.until_s, spec.release_s,
                spec.release_every_s,          spec.release_share};
}

}  // namespace vramtrack::sim
