#include "core/json.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/printable.hpp"

namespace vramtrack {
namespace {

using ::testing::HasSubstr;

std::string throws(const auto& read) {
  try {
    read();
  } catch (const JsonMismatch& why) {
    return why.what();
  }
  return "nothing";
}

TEST(Json, ABracedListIsAnObjectWhereAllItsItemsArePairsThatBeginWithAText) {
  const Json value = {{"z", 1}, {"a", {1, -2, 2.5}}, {"list", {{"x", "y"}}}, {"none", nullptr}, {"yes", true}};
  EXPECT_EQ(json_text(value), R"({"z":1,"a":[1,-2,2.5],"list":{"x":"y"},"none":null,"yes":true})");
  EXPECT_EQ(json_text(Json{"a", "b"}), R"(["a","b"])");
  EXPECT_EQ(json_text(Json{{1, "b"}}), R"([[1,"b"]])");
  EXPECT_EQ(json_text(Json::array()), "[]");
  EXPECT_EQ(json_text(Json::object()), "{}");
  EXPECT_EQ(json_text(Json(std::vector<std::string>{"a", "b"})), R"(["a","b"])");
  EXPECT_EQ(json_text(Json(std::map<std::string, std::string>{{"a", "b"}})), R"({"a":"b"})");
  EXPECT_EQ(json_text({{"twice", 1}, {"twice", 2}}), R"({"twice":2})");
}

TEST(Json, MembersAreMadeReplacedTakenOverAndErased) {
  Json value;
  value["b"] = 1;
  value["a"].push_back("x");
  value["b"] = 2;
  value.update({{"c", 3}, {"b", 4}});
  EXPECT_EQ(json_text(value), R"({"b":4,"a":["x"],"c":3})");
  value.erase("a");
  EXPECT_EQ(json_text(value), R"({"b":4,"c":3})");
  EXPECT_EQ(value.size(), 2U);
}

/// The form that documents have always had: other programs' tests, and comparisons of two documents, depend on it.
TEST(Json, NumbersAreWrittenAsTheLibraryDoes) {
  for (const double number : {0.0,
                              -0.0,
                              1.0,
                              -1.5,
                              0.1,
                              1e-3,
                              1.25e-4,
                              1e-5,
                              1.5e-7,
                              123456.0,
                              1e14,
                              1e15,
                              123456789012345.6,
                              1e16,
                              1.5e16,
                              1e20,
                              1e22,
                              1.7976931348623157e308,
                              5e-324,
                              2.2250738585072014e-308,
                              1.0 / 3,
                              2.0 / 3e5,
                              1e100,
                              0.30000000000000004,
                              999999999999999.9,
                              100.25,
                              1e-10})
    EXPECT_EQ(json_text(Json(number)), nlohmann::json(number).dump());
  EXPECT_EQ(json_text(Json(std::numeric_limits<double>::infinity())), "null");
  EXPECT_EQ(json_text(Json(std::nan(""))), "null");
  EXPECT_EQ(json_text(Json(std::numeric_limits<std::uint64_t>::max())), "18446744073709551615");
  EXPECT_EQ(json_text(Json(std::numeric_limits<std::int64_t>::min())), "-9223372036854775808");
}

TEST(Json, TextsAreWrittenAsTheLibraryDoesAndHarmless) {
  for (const std::string text :
       {"plain", "a\"b\\c/d", "x\ny\tz\r\n", "\x1b[0m\b\f\x7f", "R² 東京 \u202e", "\xff", ""}) {
    const std::string library = nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    EXPECT_EQ(json_text(Json(text)), printable_json(library));
  }
}

TEST(Json, IndentedTextIsThatOfTheLibrary) {
  const std::string text = R"({"a":[1,{"b":[]}],"c":{},"d":"e"})";
  EXPECT_EQ(json_text(Json::parse(text).value(), 1), nlohmann::ordered_json::parse(text).dump(1));
  EXPECT_EQ(json_text(Json::parse(text).value()), text);
}

TEST(Json, WhatIsParsedIsWrittenAgain) {
  const std::string text =
      R"({"whole":12,"less":-12,"most":18446744073709551615,"point":1.0,"e":1e+30,"text":"ä\n","list":[true,false,null,[]],"in":{"a":{}}})";
  const auto value = Json::parse(text);
  ASSERT_TRUE(value.has_value());
  EXPECT_EQ(json_text(*value), text);
  EXPECT_TRUE(value->at("whole").is_number_unsigned());
  EXPECT_FALSE(value->at("less").is_number_unsigned());
  EXPECT_TRUE(value->at("less").is_number_integer());
  EXPECT_FALSE(value->at("point").is_number_integer());
}

TEST(Json, OfMembersOfTheSameNameTheLastOneCounts) {
  EXPECT_EQ(json_text(Json::parse(R"({"a":1,"b":2,"a":3})").value()), R"({"a":3,"b":2})");
  EXPECT_EQ(json_text(Json::parse(R"({"b":1,"a":2,"c":3,"a":4,"b":[5],"a":{"a":6,"a":7}})").value()),
            R"({"b":[5],"a":{"a":7},"c":3})");
  std::string many;
  for (int i = 0; i < 100'000; ++i) many += fmt::format(R"({}"{}":{})", i == 0 ? '{' : ',', i % 50'000, i);
  EXPECT_EQ(Json::parse(many + '}').value().size(), 50'000U) << "in a time that does not grow with their square";
}

TEST(Json, WhatIsNoJsonIsRefusedWithItsOffset) {
  EXPECT_EQ(Json::parse(R"({"a":1,})").error().message, "offset 7: this is not valid JSON");
  EXPECT_EQ(Json::parse(R"({"a":1,})", 100).error().message, "offset 107: this is not valid JSON");
  EXPECT_THAT(Json::parse("").error().message, HasSubstr("this is not valid JSON"));
  EXPECT_FALSE(Json::parse("[1e999]").has_value());
  EXPECT_TRUE(Json::parse(std::string(64, '[') + std::string(64, ']')).has_value());
  EXPECT_EQ(Json::parse(std::string(1'000'000, '[')).error().message, "JSON that is nested more than 64 deep");
}

TEST(Json, AValueOfAnotherTypeIsNamed) {
  const Json value = {{"text", "a"}, {"big", 1000}, {"below", -1}, {"list", {"a", 1}}};
  EXPECT_EQ(value.get<std::string>("text"), "a");
  EXPECT_EQ(value.get<std::uint16_t>("big"), 1000);
  EXPECT_EQ(value.get<double>("big"), 1000.0);
  EXPECT_EQ(value.value("missing", "else"), "else");
  EXPECT_EQ(throws([&] { return value.get<bool>("text"); }), R"("text": expected true or false)");
  EXPECT_EQ(throws([&] { return value.get<std::uint8_t>("big"); }),
            R"("big": expected a whole number within its range)");
  EXPECT_EQ(throws([&] { return value.get<std::uint32_t>("below"); }),
            R"("below": expected a whole number within its range)");
  EXPECT_EQ(throws([&] { return value.get<std::vector<std::string>>("list"); }), R"("list": expected a string)");
  EXPECT_EQ(throws([&] { return value.get<bool>("none"); }), R"(there is no "none")");
  EXPECT_EQ(throws([&] { return value.at("list").at(2); }), "expected a list of more than 2 values");
  EXPECT_EQ(Json(1).find("a"), nullptr);
  EXPECT_EQ(Json(1).size(), 0U);
}

}  // namespace
}  // namespace vramtrack
