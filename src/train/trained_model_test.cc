#include "train/trained_model.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/bytes.h"
#include "base/temp_dir.h"

namespace talweg {
namespace {

template <class Real>
std::vector<std::byte> bytes_from(std::vector<Real> values) {
  const Bytes bytes = bytes_of(std::span<const Real>(values));
  return {bytes.begin(), bytes.end()};
}

TrainedModel small_model() {
  TrainedModel model;
  model.tables.push_back(
      {"weights", true, 2, ValueType::kFloat32, {3, 7, 1'000'000'007}, bytes_from<float>({1, 2, 3, 4, 5, 6})});
  model.tables.push_back({"bias", false, 1, ValueType::kFloat64, {}, bytes_from<double>({0.5})});
  model.tables.push_back({"odd", false, 1, ValueType::kFloat32, {}, bytes_from<float>({-1, 0, 1})});
  model.tables.push_back({"none", true, 1, ValueType::kFloat64, {}, {}});
  return model;
}

TEST(TrainedModel, a_file_gives_back_what_was_saved) {
  const TempDir dir;
  const TrainedModel model = small_model();
  ASSERT_TRUE(save_model(model, "name: x\n", dir.path("m")).ok());
  const auto loaded = load_model(dir.path("m"));
  ASSERT_TRUE(loaded.ok()) << loaded.status().text();
  EXPECT_EQ(*loaded, model);
  EXPECT_EQ(loaded->checksum(), model.checksum());
  EXPECT_EQ(dir.files(), 1u) << "no temporary file stays";
}

TEST(TrainedModel, saving_again_replaces_the_file) {
  const TempDir dir;
  TrainedModel model = small_model();
  ASSERT_TRUE(save_model(model, "", dir.path("m")).ok());
  model.tables.pop_back();
  ASSERT_TRUE(save_model(model, "", dir.path("m")).ok());
  const auto loaded = load_model(dir.path("m"));
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(*loaded, model);
}

TEST(TrainedModel, a_folder_that_is_not_there_is_an_error) {
  const TempDir dir;
  EXPECT_EQ(save_model(small_model(), "", dir.path("no/m")).code(), Code::kNotFound);
  EXPECT_FALSE(load_model(dir.path("m")).ok());
}

TEST(TrainedModel, the_checksum_depends_on_keys_and_values) {
  TrainedModel model = small_model();
  const uint32_t checksum = model.checksum();
  model.tables[0].keys[1] = 8;
  EXPECT_NE(model.checksum(), checksum);
  model = small_model();
  model.tables[1].values[0] ^= std::byte{1};
  EXPECT_NE(model.checksum(), checksum);
}

TEST(TrainedModel, a_file_cut_short_anywhere_is_refused) {
  const TempDir dir;
  ASSERT_TRUE(save_model(small_model(), "name: x\n", dir.path("m")).ok());
  const std::string whole = TempDir::read(dir.path("m"));
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(load_model(dir.write("cut", whole.substr(0, length))).ok()) << length << " of " << whole.size();
  }
  EXPECT_FALSE(load_model(dir.write("long", whole + std::string(8, '\0'))).ok());
}

TEST(TrainedModel, a_file_with_any_bit_flipped_is_refused) {
  const TempDir dir;
  ASSERT_TRUE(save_model(small_model(), "name: x\n", dir.path("m")).ok());
  const std::string whole = TempDir::read(dir.path("m"));
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
    EXPECT_FALSE(load_model(dir.write("damaged", damaged)).ok()) << "bit " << bit % 8 << " of byte " << bit / 8;
  }
}

}  // namespace
}  // namespace talweg
