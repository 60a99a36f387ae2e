#include "core/moments.hpp"

#include <algorithm>

namespace vramtrack {

void Moments::add(double t_s, double y) {
  n += 1;
  const double dt = t_s - mean_t;
  const double dy = y - mean_y;
  const double share = 1 / n;
  mean_t += dt * share;
  mean_y += dy * share;
  const double new_dy = y - mean_y;
  tt += dt * (t_s - mean_t);
  ty += dt * new_dy;
  yy += dy * new_dy;
}

void Moments::merge(const Moments& other) {
  step_tt += other.step_tt;
  step_ty += other.step_ty;
  step_yy += other.step_yy;
  if (other.n == 0) return;
  if (n == 0) {
    const double stt = step_tt, sty = step_ty, syy = step_yy;
    *this = other;
    step_tt = stt;
    step_ty = sty;
    step_yy = syy;
    return;
  }
  const double sum = n + other.n;
  const double dt = other.mean_t - mean_t;
  const double dy = other.mean_y - mean_y;
  const double share = other.n / sum;
  const double weight = n * share;
  tt += other.tt + dt * dt * weight;
  ty += other.ty + dt * dy * weight;
  yy += other.yy + dy * dy * weight;
  mean_t += dt * share;
  mean_y += dy * share;
  n = sum;
}

Moments moments_of(std::span<const double> t_s, std::span<const double> y) {
  Moments m;
  m.n = static_cast<double>(t_s.size());
  for (std::size_t i = 0; i < t_s.size(); ++i) {
    m.mean_t += t_s[i];
    m.mean_y += y[i];
  }
  m.mean_t /= std::max(m.n, 1.0);
  m.mean_y /= std::max(m.n, 1.0);
  for (std::size_t i = 0; i < t_s.size(); ++i) {
    const double dt = t_s[i] - m.mean_t;
    const double dy = y[i] - m.mean_y;
    m.tt += dt * dt;
    m.ty += dt * dy;
    m.yy += dy * dy;
  }
  return m;
}

}  // namespace vramtrack
