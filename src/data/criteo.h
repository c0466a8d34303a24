// The layout of the Criteo click logs: no header; in each line, separated by tabs, the label, 13 counts and 26 category
// names (hexadecimal in the logs; any text is taken). An empty field is missing.
//
// Every field that is there becomes one key of value 1, by data/feature_hash.h with the column's number from 1 (the
// label is column 1): a name is hashed as it stands, a count by its bucket. Buckets are those that the winners of the
// Kaggle contest made the custom: v below 2 has its own, which is v; another's is 2 + floor(ln(v)^2).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "data/feature_hash.h"
#include "data/row_block.h"

namespace talweg {

// What is computed once for a file. Immutable and thread-safe.
class CriteoLayout {
 public:
  static constexpr size_t kCounts = 13, kNames = 26, kFeatures = kCounts + kNames, kColumns = 1 + kFeatures;

  explicit CriteoLayout(unsigned hash_bits);

  int64_t bucket(int64_t count) const {
    if (count < kOwnBuckets) return count;
    return count < static_cast<int64_t>(small_.size()) ? small_[static_cast<size_t>(count)] : large_bucket(count);
  }
  const FeatureHash& hash() const { return hash_; }
  // Of a feature, from 0.
  uint64_t seed(size_t feature) const { return seeds_[feature]; }

 private:
  static constexpr int64_t kOwnBuckets = 2;  // counts below this have each their own

  int64_t large_bucket(int64_t count) const;

  FeatureHash hash_;
  std::array<uint64_t, kFeatures> seeds_;
  std::vector<int64_t> least_;        // of each logarithmic bucket: the least count in it
  std::array<uint16_t, 4096> small_;  // the bucket of each small count
};

// As parse_libsvm.
Status parse_criteo(std::string_view text, size_t first_line, const std::string& file, const CriteoLayout& layout,
                    RowBlock* out, BadRows* bad = nullptr);

}  // namespace talweg
