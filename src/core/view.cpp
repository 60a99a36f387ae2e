#include "core/view.hpp"

namespace vramtrack {

SeriesView::SeriesView() = default;
SeriesView::SeriesView(const SeriesView&) = default;
SeriesView& SeriesView::operator=(const SeriesView&) = default;
SeriesView::SeriesView(SeriesView&&) noexcept = default;
SeriesView& SeriesView::operator=(SeriesView&&) noexcept = default;
SeriesView::~SeriesView() = default;

}  // namespace vramtrack
