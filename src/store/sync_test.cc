#include "store/sync.h"

#include <gtest/gtest.h>

namespace talweg {
namespace {

TEST(Sync, every_word_reads_back_as_it_was_written) {
  const std::pair<std::string_view, Sync> words[] = {
      {"bsp", Sync::bsp()},
      {"asp", Sync::asp()},
      {"ssp(0)", Sync::ssp(0)},
      {"ssp(4)", Sync::ssp(4)},
      {"ssp(9223372036854775807)", Sync::ssp(INT64_MAX)},
      {"backup(0)", Sync::backup(0)},
      {"backup(3)", Sync::backup(3)},
      {"value(0.1)", Sync::value(0.1)},
      {"value(1e-300)", Sync::value(1e-300)},
  };
  for (const auto& [text, sync] : words) {
    const auto read = Sync::from_text(text);
    ASSERT_TRUE(read.ok()) << read.status().text();
    EXPECT_EQ(*read, sync) << text;
    EXPECT_EQ(sync.text(), text);
  }
}

TEST(Sync, text_that_is_no_word_is_refused) {
  for (const std::string_view text :
       {"", "BSP", "bsp()", "asp(1)", "ssp", "ssp()", "ssp(x)", "ssp(4", "ssp 4", "ssp(4))", "ssp(1.5)", "ssp( 4)",
        "ssp(99999999999999999999)", "backup(1)x", "value(1,5)", "value"}) {
    const auto read = Sync::from_text(text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.status().code(), Code::kInvalid);
    EXPECT_EQ(read.status().message(),
              fmt::format("'{}' is none of bsp, asp, ssp(steps), backup(workers), value(distance)", text));
  }
}

TEST(Sync, numbers_out_of_range_are_named) {
  const std::pair<std::string_view, std::string_view> wrong[] = {
      {"ssp(-1)", "ssp(-1): the bound must be at least 0"},
      {"backup(-2)", "backup(-2): the number of backup workers must be at least 0"},
      {"value(0)", "value(0): the distance must be above 0"},
      {"value(-1)", "value(-1): the distance must be above 0"},
      {"value(inf)", "value(inf): the distance must be above 0"},
      {"value(nan)", "value(nan): the distance must be above 0"},
  };
  for (const auto& [text, message] : wrong) EXPECT_EQ(Sync::from_text(text).status().message(), message);
}

}  // namespace
}  // namespace talweg
