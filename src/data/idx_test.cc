#include "data/idx.h"

#include <gtest/gtest.h>

#include <string>

#include "base/temp_dir.h"
#include "data/cache.h"
#include "data/test_files.h"

namespace talweg {
namespace {

// Two images of 2 x 2 pixels.
std::string images() { return test::idx({2, 2, 2}, std::string("\x00\xff\x33\x00\x00\x00\x00\x01", 8)); }
std::string labels() { return test::idx({2}, "\x07\x03"); }

Result<Dataset> read(const std::string& path, const std::string& labels = "") {
  DatasetOptions options;
  options.path = path;
  options.cache = false;
  options.read.labels = labels;
  return open_dataset(options);
}

void expect_images(const Result<Dataset>& data) {
  ASSERT_TRUE(data.ok()) << data.status().text();
  ASSERT_EQ(data->rows(), 2u);
  EXPECT_EQ(data->label(0), 7.0f);
  EXPECT_EQ(data->label(1), 3.0f);
  ASSERT_EQ(data->row_size(0), 2u);
  EXPECT_EQ(data->entry(0, 0), (std::pair<uint64_t, float>(1, 1.0f)));
  EXPECT_EQ(data->entry(0, 1), (std::pair<uint64_t, float>(2, 51 / 255.0f)));
  ASSERT_EQ(data->row_size(1), 1u);
  EXPECT_EQ(data->entry(1, 0), (std::pair<uint64_t, float>(3, 1 / 255.0f)));
}

TEST(Idx, images_find_their_labels_by_the_usual_names) {
  TempDir folder;
  folder.write("train-labels-idx1-ubyte", labels());
  expect_images(read(folder.write("train-images-idx3-ubyte", images())));
  folder.write("t10k-labels.idx1-ubyte", labels());
  expect_images(read(folder.write("t10k-images.idx3-ubyte", images())));
}

TEST(Idx, the_labels_file_may_be_named) {
  TempDir folder;
  const std::string pictures = folder.write("pictures.idx", images());
  expect_images(read(pictures, folder.write("answers", labels())));
  EXPECT_EQ(read(pictures).status().message(), pictures + ": its name does not tell the file of the labels: set it");
}

TEST(Idx, compressed_files_are_read_as_they_are_handed_out) {
  TempDir folder;
  folder.write("train-labels-idx1-ubyte.gz", test::gzip(labels()));
  expect_images(read(folder.write("train-images-idx3-ubyte.gz", test::gzip(images()))));
}

TEST(Idx, files_that_do_not_fit_are_refused) {
  TempDir folder;
  const std::string good_labels = folder.write("l", labels());
  const auto complaint = [&](const std::string& content, const std::string& labels_path) {
    const std::string path = folder.write("a.idx", content);
    const std::string message = read(path, labels_path).status().message();
    return message.substr(message.find("a.idx"));
  };
  EXPECT_EQ(complaint("\x01 no", good_labels), "a.idx is not an IDX file: it does not start as one");
  EXPECT_EQ(complaint(std::string("\0\0\x0d\x01", 4), good_labels),
            "a.idx has elements of type 0x0d: only unsigned bytes (0x08) are read");
  EXPECT_EQ(complaint(std::string("\0\0\x08\x03\0\0", 6), good_labels), "a.idx is cut short within its header");
  EXPECT_EQ(complaint(images() + "x", good_labels), "a.idx has 9 bytes of data, which is not what its shape says");
  EXPECT_EQ(complaint(test::idx({~0u, ~0u, ~0u}, "x"), good_labels),
            "a.idx has 1 bytes of data, which is not what its shape says");
  EXPECT_EQ(complaint(images(), folder.write("m", test::idx({3}, "abc"))),
            "a.idx has 2 rows, but " + folder.path("m") + " has 3 labels");
  EXPECT_EQ(read(folder.path("a.idx"), folder.path("none")).status().code(), Code::kNotFound);
}

TEST(Idx, another_state_of_the_labels_does_not_take_the_cache) {
  TempDir folder;
  DatasetOptions options;
  options.path = folder.write("images.idx", images());
  const std::string path = folder.write("labels.idx", labels());
  expect_images(open_dataset(options));
  expect_images(open_dataset(options));
  folder.write("labels.idx", test::idx({2, 1}, "\x05\x06"));
  EXPECT_EQ(open_dataset(options)->label(0), 5.0f);
}

}  // namespace
}  // namespace talweg
