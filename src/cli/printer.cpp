#include "cli/printer.hpp"

#include <fmt/format.h>

#include "core/event_words.hpp"
#include "core/format.hpp"
#include "report/json.hpp"
#include "report/status.hpp"

namespace vramtrack::cli {

Printer::Printer(Pipeline& pipeline, Console& console, bool json, bool in_place)
    : pipeline_(pipeline),
      console_(console),
      block_(console),
      json_(json),
      is_local_(!json && console.is_terminal()),
      in_place_(in_place && !json && console.is_terminal()) {}

void Printer::listen() {
  Listener listener;
  listener.warning = [this](const std::string& text) { warn(text); };
  listener.event = [this](const Event& event) { print_event(event); };
  listener.alert = [this](const AlertNotice& notice) { print_alert(notice); };
  pipeline_.listen(std::move(listener));
}

void Printer::print(const std::string& text) {
  block_.erase();
  if (json_)
    console_.write(text);
  else
    console_.write_prose(text);
}

void Printer::warn(const std::string& text) {
  printed_.insert(text);
  block_.erase();
  console_.warn(text);
}

void Printer::print_event(const Event& event) {
  const LocalTimes local(is_local_);
  // The end of a process is visible in its alerts and in the table.
  if (!is_for_people(event)) return;
  const Catalog& catalog = pipeline_.catalog();
  if (json_)
    print(event_json(event, catalog.clock_is_relative));
  else
    print(fmt::format("{}  {}\n", catalog.moment(event.time), printable(event.text)));
}

void Printer::print_alert(const AlertNotice& notice) {
  const LocalTimes local(is_local_);
  if (json_)
    print(alert_json(notice.view, notice.series, notice.alert, notice.news));
  else if (notice.incident.news)
    print(alert_lines(notice.view, notice.series, notice.alert, *notice.incident.news, console_.style()));
}

std::string Printer::status_text(const View& view) const {
  const LocalTimes local(is_local_);
  return json_ ? find_report("json")->render(view, {}) : status_table(view, console_.style());
}

/// Prints the view's new warnings above the tables, each only once.
void Printer::print_new_warnings(const View& view) {
  if (json_) return;  // each row has them
  for (const std::string& text : view.warnings)
    if (printed_.insert(text).second) print(fmt::format("warning: {}\n", printable(text)));
}

void Printer::status() {
  const auto view = pipeline_.view();
  print_new_warnings(*view);
  shown_ = status_text(*view);
  shown_time_ = view->time;
  if (in_place_)
    block_.draw(shown_);
  else
    console_.write(shown_);
}

void Printer::last_status(bool explain) {
  block_.erase();
  const auto view = pipeline_.view(explain);
  const LocalTimes local(is_local_);
  if (explain && !json_) return console_.write_prose(find_report("text")->render(*view, console_.style()));
  print_new_warnings(*view);
  const std::string text = status_text(*view);
  if (in_place_ || explain || text != shown_ || view->time != shown_time_) console_.write(text);
}

}  // namespace vramtrack::cli
