#include "store/functions.h"

#include <fmt/ranges.h>

#include <cstring>

#include "base/config.h"
#include "store/limits.h"

namespace talweg {
namespace {

// Calls visit(weight) for every weight of the shard.
template <class Visit>
void each_weight(Table& table, Visit visit) {
  uint64_t cursor = 0;
  for (bool done = false; !done;) {
    const ExportPiece piece = table.export_from(cursor, limits::kExportPieceBytes);
    const auto visit_all = [&]<class Real>(Real) {
      ByteCursor values(piece.values.bytes());
      for (const Real weight : values.take<Real>(piece.values.size() / sizeof(Real))) visit(weight);
    };
    table.spec().type == ValueType::kFloat32 ? visit_all(float{}) : visit_all(double{});
    cursor = piece.next;
    done = piece.done;
  }
}

template <class T>
std::vector<std::byte> bytes_from(T value) {
  std::vector<std::byte> bytes(sizeof(T));
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

Result<std::vector<std::byte>> sum_of_squares(Table& table, Bytes) {
  double sum = 0;
  each_weight(table, [&](double weight) { sum += weight * weight; });
  return bytes_from(sum);
}

Result<std::vector<std::byte>> zeros(Table& table, Bytes) {
  uint64_t count = 0;
  each_weight(table, [&](double weight) { count += weight == 0 ? 1 : 0; });
  return bytes_from(count);
}

}  // namespace

FunctionRegistry FunctionRegistry::standard() {
  FunctionRegistry registry;
  registry.add("sum_of_squares", sum_of_squares);
  registry.add("zeros", zeros);
  return registry;
}

Result<const ServerFunction*> FunctionRegistry::find(const std::string& name) const {
  const auto found = functions_.find(name);
  if (found != functions_.end()) return &found->second;
  std::vector<std::string> known;
  for (const auto& [known_name, function] : functions_) known.push_back(known_name);
  const auto near = nearest(name, known);
  return error(Code::kNotFound, "there is no server function '{}'{}; there are: {}", name,
               near ? fmt::format(" (did you mean '{}'?)", *near) : "", fmt::join(known, ", "));
}

}  // namespace talweg
