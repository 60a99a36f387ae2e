// AlertingDetector: the common part of detectors that raise and end one alert after another.
#pragma once

#include <optional>
#include <string>

#include "detect/detector.hpp"

namespace vramtrack {

class AlertingDetector : public Detector {
 public:
  explicit AlertingDetector(const Scale& figures) : figures_(figures) {}
  void set_limit(std::optional<double> limit_bytes) override { limit_ = limit_bytes; }
  [[nodiscard]] bool alerting() const override { return alerting_; }
  [[nodiscard]] AlertEnd last_end() const override { return last_end_; }
  [[nodiscard]] std::string last_end_reason() const override { return last_end_reason_; }

 protected:
  const Scale& figures_;
  std::optional<double> limit_;
  bool alerting_ = false;
  AlertEnd last_end_ = AlertEnd::withdrawn;
  std::string last_end_reason_;
};

}  // namespace vramtrack
