// The formulas against published figures for public models (tests/fixtures/sizing/published.json names the source of
// each; they were written down before the first comparison).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>

#include "paths.hpp"
#include "sizing/answer.hpp"
#include "sizing/hugging_face.hpp"

namespace vramtrack::sizing {
namespace {

using Json = nlohmann::json;

double estimate(const Json& row) {
  ModelFacts model = facts_of_config(row["config"].dump()).value();
  const Json& asked = row["request"];
  Request request;
  request.context_tokens = asked.value("tokens", 4096.0);
  request.shards = asked.value("shards", 1.0);
  if (asked.contains("cache"))
    request.cache_element_bytes = cache_type_bytes(asked["cache"].get<std::string>()).value();
  if (asked.contains("weights")) request.weight_bits = weight_type_bits(asked["weights"].get<std::string>()).value();
  const auto what = row["what"].get<std::string>();
  if (what == "parameters") return model.parameters;
  if (what == "weights") return weights_on_gpu_bytes(model, request);
  if (what == "cache")
    return cache_bytes(model, request.context_tokens, 1, cache_bytes_per_element(model, request), request.shards);
  if (what == "tokens")
    return asked["bytes"].get<double>() /
           cache_bytes_per_token(model, cache_bytes_per_element(model, request), request.shards);
  model.is_gguf = true;  // as in llama.cpp
  if (what == "weights on GPU of llama.cpp") return weights_on_gpu_bytes(model, request);
  for (const Part& part : need_of(model, request).parts)
    if (part.name == "working memory")
      return part.low_bytes + (asked.value("flash", true) ? 0 : scores_without_flash_bytes(model, request));
  ADD_FAILURE() << what;
  return 0;
}

TEST(Published, TheMedianErrorIsSmall) {
  std::ifstream file(tests_dir() + "/fixtures/sizing/published.json");
  const Json rows = Json::parse(file);
  std::vector<double> errors;
  std::set<std::string> models;
  for (const Json& row : rows) {
    const double error = std::abs(estimate(row) / row["truth"].get<double>() - 1);
    errors.push_back(error);
    models.insert(row["model"].get<std::string>());
    EXPECT_LT(error, 0.2) << row["model"] << ' ' << row["what"];
    if (error > 0.02)
      std::cout << row["model"] << ", " << row["what"] << ": " << 100 * (estimate(row) / row["truth"].get<double>() - 1)
                << " %\n";
  }
  std::sort(errors.begin(), errors.end());
  std::cout << models.size() << " models, " << errors.size() << " figures, median error "
            << 100 * errors[errors.size() / 2] << " %, the worst " << 100 * errors.back() << " %\n";
  EXPECT_GE(models.size(), 20U);
  EXPECT_LT(errors[errors.size() / 2], 0.02);
}

}  // namespace
}  // namespace vramtrack::sizing
