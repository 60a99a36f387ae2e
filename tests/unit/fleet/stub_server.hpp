// A server for one metric that speaks VictoriaMetrics' API, in this process: its data is a map in memory.
#pragma once

#include <fmt/format.h>
#include <httplib.h>

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "fleet/reader.hpp"

namespace vramtrack::fleet {

class StubServer {
 public:
  StubServer() {
    server_.Get("/api/v1/label/(.*)/values", [this](const httplib::Request& request, httplib::Response& answer) {
      const std::lock_guard lock(mutex_);
      if (fails) return refuse(answer);
      std::string names;
      if (request.matches[1] == "__name__") names = "\"DCGM_FI_DEV_FB_USED\"";
      if (request.matches[1] == "Hostname")
        for (const auto& [host, samples] : samples_)
          if (!excludes(request.get_param_value("match[]"), host)) names += (names.empty() ? "\"" : ",\"") + host + '"';
      answer.set_content("{\"status\":\"success\"," + warnings() + "\"data\":[" + names + "]}", "application/json");
    });
    server_.Post("/api/v1/series", [this](const httplib::Request& request, httplib::Response& answer) {
      const std::lock_guard lock(mutex_);
      if (fails) return refuse(answer);
      std::string series;
      for (const auto& [host, samples] : samples_)
        if (request.get_param_value("match[]").find(host) != std::string::npos)
          series += (series.empty() ? "" : ",") + labels_of("USED", host);
      answer.set_content("{\"status\":\"success\",\"data\":[" + series + "]}", "application/json");
    });
    server_.Post("/api/v1/export", [this](const httplib::Request& request, httplib::Response& answer) {
      const std::lock_guard lock(mutex_);
      ++exports;
      if (fails) return refuse(answer);
      const auto ms = [&](const char* name) {
        return static_cast<std::int64_t>(std::stod(request.get_param_value(name)) * 1000 + 0.5);
      };
      const std::string match = request.get_param_value("match[]");
      std::string lines;
      for (const auto& [host, samples] : samples_) {
        if (match.find(host) == std::string::npos || excludes(match, host) || host == without_) continue;
        std::string values, times;
        for (auto it = samples.lower_bound(ms("start")); it != samples.end() && it->first <= ms("end"); ++it) {
          values += fmt::format("{}{}", values.empty() ? "" : ",", it->second);
          times += fmt::format("{}{}", times.empty() ? "" : ",", it->first);
        }
        if (values.empty()) continue;
        for (const char* metric : {"USED", "TOTAL"})
          if (match.find(metric) != std::string::npos)
            lines += fmt::format(R"({{"metric":{},"values":[{}],"timestamps":[{}]}})"
                                 "\n",
                                 labels_of(metric, host), metric[0] == 'T' ? all_of(values, 81559) : values, times);
      }
      answer.set_content(lines, "application/stream+json");
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
  }
  ~StubServer() {
    server_.stop();
    thread_.join();
  }
  StubServer(const StubServer&) = delete;
  StubServer& operator=(const StubServer&) = delete;

  void put(const std::string& host, std::int64_t time_ms, int mib) {
    const std::lock_guard lock(mutex_);
    samples_[host][time_ms] = mib;
  }
  /// Sets the UUID of a host's GPU; by default it is "GPU-" and the host's name, which is not a UUID.
  void set_uuid(const std::string& host, const std::string& uuid) {
    const std::lock_guard lock(mutex_);
    uuids_[host] = uuid;
  }
  void set_failing(bool is_failing) {
    const std::lock_guard lock(mutex_);
    fails = is_failing;
  }

  /// The store with the samples of that host is unavailable; empty: none is.
  void set_without(const std::string& host) {
    const std::lock_guard lock(mutex_);
    without_ = host;
  }

  [[nodiscard]] Reader reader() const {
    ServerAddress address;
    address.url.host = "127.0.0.1";
    address.url.port = static_cast<std::uint16_t>(port_);
    return {address, ReadPath::export_lines};
  }
  /// The server as one of several.
  [[nodiscard]] ServerToRead to_read() const {
    ServerAddress address;
    address.url.host = "127.0.0.1";
    address.url.port = static_cast<std::uint16_t>(port_);
    return {address, ReadPath::export_lines};
  }

  std::atomic<int> exports = 0;

 private:
  /// Whether a matcher requests another host.
  static bool excludes(const std::string& match, const std::string& host) {
    constexpr std::string_view kEquals = "Hostname=\"";
    const std::size_t at = match.find(kEquals);
    return at != std::string::npos && match.compare(at + kEquals.size(), host.size() + 1, host + '"') != 0;
  }
  std::string labels_of(const char* metric, const std::string& host) const {
    const auto uuid = uuids_.find(host);
    return fmt::format(R"({{"__name__":"DCGM_FI_DEV_FB_{}","Hostname":"{}","UUID":"{}","gpu":"0"}})", metric, host,
                       uuid == uuids_.end() ? "GPU-" + host : uuid->second);
  }
  std::string warnings() const { return without_.empty() ? "" : "\"warnings\":[\"a store is away\"],"; }
  static void refuse(httplib::Response& answer) {
    answer.status = 500;
    answer.set_content("broken", "text/plain");
  }
  static std::string all_of(const std::string& values, int mib) {
    std::string out = std::to_string(mib);
    for (const char c : values)
      if (c == ',') out += ',' + std::to_string(mib);
    return out;
  }

  httplib::Server server_;
  int port_ = 0;
  std::thread thread_;
  std::mutex mutex_;
  bool fails = false;
  std::map<std::string, std::map<std::int64_t, int>> samples_;
  std::map<std::string, std::string> uuids_;
  std::string without_;
};

}  // namespace vramtrack::fleet
