// Any bytes as a NumPy array, an archive of them, or IDX files: nothing out of bounds, no memory beyond what the input
// can fill, and a table that is taken gives as many rows as it says. The first byte chooses the format.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "data/idx.h"
#include "data/npy.h"

namespace {

using talweg::Bytes;
using talweg::DenseTable;
using talweg::Result;

void check(const Result<DenseTable>& table) {
  if (!table.ok()) return;
  talweg::RowBlock block;
  talweg::BadRows bad;
  bad.most = ~uint64_t{0};
  CHECK(table->parse(0, table->rows(), &block, &bad).ok());
  CHECK(block.rows() + bad.count == table->rows());
  CHECK(block.nonzeros() <= table->rows() * table->row_bytes());
}

Result<DenseTable> npy_table(Bytes file) {
  ASSIGN(talweg::DenseArray array, talweg::parse_npy(file, "fuzz"));
  return DenseTable::with_label_column(std::move(array), "1");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  // A copy of exactly this size, so that a read past the end is caught.
  std::vector<std::byte> exact(size - 1);
  if (size > 1) std::memcpy(exact.data(), data + 1, size - 1);
  const Bytes bytes(exact);
  if (data[0] % 3 == 0) check(npy_table(bytes));
  if (data[0] % 3 == 1) check(talweg::parse_npz(bytes, "fuzz"));
  if (data[0] % 3 == 2) {
    const size_t cut = std::min<size_t>(bytes.size(), data[0] / 3);
    check(talweg::parse_idx(bytes.subspan(cut), "images", bytes.first(cut), "labels"));
  }
  return 0;
}
