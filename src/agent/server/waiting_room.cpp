#include "agent/server/waiting_room.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include "agent/server/message.hpp"

namespace vramtrack::agent {
namespace {

Response refusal(const WaitingRoom::Guest& guest) {
  const bool share = guest.why == FairQuota::Answer::share_used;
  return refused(
      share ? 429 : 503, share ? "too_many_connections" : "busy",
      share ? fmt::format(
                  "{} has too many connections open, and other clients may need some; close some of them, or try again",
                  guest.client.peer.name)
            : "too many connections are open; try again");
}

}  // namespace

WaitingRoom::~WaitingRoom() {
  for (const Guest& guest : guests_) ::close(guest.fd);
}

void WaitingRoom::enter(Guest guest, Clock::time_point now) {
  if (guests_.size() >= kMostGuests) throw_one_out();
  guest.until = now + kPatience;
  ++counts_[guest.client.peer.name];
  guests_.push_back(std::move(guest));
  look(std::prev(guests_.end()), now);  // its request has often arrived already
}

void WaitingRoom::look(std::span<const pollfd> polled, Clock::time_point now) {
  auto it = guests_.begin();
  for (const pollfd& one : polled) it = one.revents != 0 || now >= it->until ? look(it, now) : std::next(it);
}

WaitingRoom::Guests::iterator WaitingRoom::look(Guests::iterator it, Clock::time_point now) {
  Guest& guest = *it;
  std::array<char, 4096> chunk;
  bool gone = false;
  for (int n = 0; n < 4 && !gone; ++n) {  // an endless sender gets no more attention than others
    const ssize_t got = ::recv(guest.fd, chunk.data(), chunk.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) break;
    gone = got <= 0;
    if (got <= 0 || guest.answered) continue;
    guest.begun.append(chunk.data(), static_cast<std::size_t>(got));
    if (guest.begun.find("\r\n\r\n") != std::string::npos || guest.begun.size() > kMostHeadBytes) decide(guest, now);
    if (guest.fd < 0) return forget(it);  // it got a place
  }
  if (!gone && now >= guest.until && !guest.answered) answer(guest, refusal(guest), now);
  if (!gone && now < guest.until) return std::next(it);
  ::close(guest.fd);
  return forget(it);
}

WaitingRoom::Guests::iterator WaitingRoom::forget(Guests::iterator it) {
  const auto count = counts_.find(it->client.peer.name);
  if (--count->second == 0) counts_.erase(count);
  return guests_.erase(it);
}

void WaitingRoom::decide(Guest& guest, Clock::time_point now) {
  const std::size_t end = guest.begun.find("\r\n\r\n");
  if (end == std::string::npos) return answer(guest, refusal(guest), now);
  auto head = parse_head(std::string_view(guest.begun).substr(0, end + 4), 0);
  if (!head) return answer(guest, refusal(guest), now);
  Request& request = head->request;
  const bool reads = request.method == "GET" || request.method == "HEAD";
  if (reads && request.path == "/healthz") {
    request.over_unix = guest.over_unix;
    request.uid = guest.client.uid;
    request.peer = guest.client.peer;
    Response response = house_.health(request);
    if (request.method == "HEAD") response.body.reset();
    return answer(guest, response, now);
  }
  if (reads && request.path == "/metrics" && house_.metrics(guest)) {
    guest.fd = -1;
    return;
  }
  answer(guest, refusal(guest), now);
}

void WaitingRoom::answer(Guest& guest, const Response& response, Clock::time_point now) {
  const std::string text = closing_answer(response);
  // These are a few hundred bytes; if they do not fit at once, the client is not reading.
  [[maybe_unused]] const ssize_t sent = ::send(guest.fd, text.data(), text.size(), MSG_NOSIGNAL);
  ::shutdown(guest.fd, SHUT_WR);
  guest.answered = true;
  guest.begun.clear();
  guest.begun.shrink_to_fit();
  // The client closes after reading; closing earlier would reset data in transit.
  guest.until = std::max(guest.until, now + kPatience / 2);
}

void WaitingRoom::throw_one_out() {
  const auto crowd = std::max_element(counts_.begin(), counts_.end(),
                                      [](const auto& a, const auto& b) { return a.second < b.second; });
  const auto of_crowd = [&](const Guest& g) { return g.client.peer.name == crowd->first; };
  const auto it = std::find_if(guests_.begin(), guests_.end(), of_crowd);
  ::close(it->fd);  // without an answer, because a flood must stay cheap
  forget(it);
}

void WaitingRoom::add_to(std::vector<pollfd>& fds) const {
  for (const Guest& guest : guests_) fds.push_back({guest.fd, POLLIN, 0});
}

int WaitingRoom::patience_ms(Clock::time_point now) const {
  if (guests_.empty()) return -1;
  const auto first = std::min_element(guests_.begin(), guests_.end(),
                                      [](const Guest& a, const Guest& b) { return a.until < b.until; });
  return static_cast<int>(
      std::max<std::int64_t>(0, std::chrono::ceil<std::chrono::milliseconds>(first->until - now).count()));
}

}  // namespace vramtrack::agent
