// The exporters from core, under the names that this module uses.
#pragma once

#include "core/exporters.hpp"
#include "core/metric_labels.hpp"

namespace vramtrack::fleet {

using exporters::ContextMetrics;
using exporters::Exporter;
using exporters::first_of;
using exporters::Labels;
using exporters::Mapping;
using exporters::MetricMeaning;
using exporters::Names;
using exporters::Role;
using exporters::value_of;
using exporters::WorkloadLabels;

}  // namespace vramtrack::fleet
