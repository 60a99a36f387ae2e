#include "explain/anchors.hpp"

#include "explain/pattern.hpp"

namespace vramtrack::explain {

void Anchors::add(std::string_view text) {
  texts_.push_back(text);
}

void Anchors::build() {
  for (const std::string_view text : texts_)
    for (const char c : text)
      if (auto& its_class = classes_[static_cast<unsigned char>(c)]; its_class == 0)
        its_class = static_cast<std::uint8_t>(class_count_++);
  const auto add_node = [this] {
    nodes_.emplace_back();
    steps_.resize(nodes_.size() * class_count_);
    return static_cast<std::uint32_t>(nodes_.size() - 1);
  };
  add_node();
  for (std::uint32_t index = 0; index < texts_.size(); ++index) {
    std::uint32_t node = 0;
    for (const char c : texts_[index]) {
      if (step(node, c) == 0) {
        const std::uint32_t added = add_node();
        step(node, c) = added;
      }
      node = step(node, c);
    }
    nodes_[node].ends.push_back(index);
  }
  // Breadth first: the fallback of a node is shorter than the node, and so already complete.
  std::vector<std::uint32_t> order;
  for (std::size_t c = 0; c < class_count_; ++c)
    if (steps_[c] != 0) order.push_back(steps_[c]);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::uint32_t node = order[i];
    const std::uint32_t fallback = nodes_[node].fallback;
    nodes_[node].shorter = nodes_[fallback].ends.empty() ? nodes_[fallback].shorter : fallback;
    for (std::size_t c = 0; c < class_count_; ++c) {
      std::uint32_t& next = steps_[node * class_count_ + c];
      const std::uint32_t after_fallback = steps_[fallback * class_count_ + c];
      if (next == 0) {
        next = after_fallback;
      } else {
        nodes_[next].fallback = after_fallback;
        order.push_back(next);
      }
    }
  }
}

void Anchors::find(std::string_view text, std::vector<Hit>& out) const {
  std::uint32_t node = 0;
  for (std::size_t at = 0; at < text.size();) {
    const char c = normal(text[at]);
    node = steps_[node * class_count_ + classes_[static_cast<unsigned char>(c)]];
    at = c == ' ' ? skip_blanks(text, at) : at + 1;
    for (std::uint32_t ended = node; ended != 0; ended = nodes_[ended].shorter)
      for (const std::uint32_t index : nodes_[ended].ends) out.push_back({at, index});
  }
}

}  // namespace vramtrack::explain
