// Library: cpp-httplib's parser and writer on a stream of ours. The one place that knows it.
#pragma once

#include <memory>

#include "agent/server/http.hpp"
#include "agent/server/peer.hpp"
#include "agent/server/stream.hpp"

namespace vramtrack::agent {

/// What is known of the connection that a thread serves.
struct Connection {
  ClientStream stream;
  bool over_unix = false;
  Client client;
  bool answered = false;  ///< by the site, so that the library's own errors differ from its
  bool close = false;     ///< after this answer: something of the request may be unread
};

/// From any number of threads, each with its own connection.
class Library {
 public:
  /// `most_body_bytes` of a request.
  Library(Site site, std::size_t most_body_bytes);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  /// Reads the request whose head the connection's stream holds, and answers it. `last`: the connection is closed then,
  /// and the response says so. False: the connection is to be closed.
  bool serve_one(Connection& connection, bool last);
  /// Streams end from now on.
  void end_streams();

 private:
  class Server;
  std::unique_ptr<Server> server_;
};

}  // namespace vramtrack::agent
