#include "train/hogwild.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <span>
#include <type_traits>

#include "base/rng.h"
#include "data/parallel.h"
#include "data/permutation.h"
#include "model/loss.h"
#include "optim/updates.h"

namespace talweg {
namespace {

// A thread takes a piece of this many blocks at a time, and brings its replicas up to date in between. Pieces begin
// small, while weights change fast, and grow with what is done.
constexpr uint64_t kFirstPiece = 2, kMostPiece = 64;
// Where the rate does not fall as a key is seen again, the changes of several threads add up to steps that are too long
// unless the replicas meet often, so there must be few of them.
constexpr size_t kMostReplicasAtFixedRate = 64;
// Keys in more than one of this many rows are common. They are found by looking at a sample.
constexpr uint64_t kCommonRows = 1024, kSampleRows = 8 * kCommonRows;
// So that the replicas stay in the first-level cache.
constexpr size_t kMostReplicas = 2048;
// How many rows ahead of its use something is fetched: a row's place, its keys, their weights.
constexpr size_t kPlaceAhead = 24, kKeysAhead = 12, kWeightsAhead = 4;
// Of a row; past this the processor's own prefetching has seen the stream.
constexpr size_t kMostLines = 8;
constexpr size_t kKeysPiece = size_t{1} << 16;

// A weight and its state travel together, so nobody sees the one without the other.
struct alignas(8) Cell {
  float weight = 0, state = 0;
  // State is never negative: where its sign is set, the cell stands for a replica, whose number the weight's bits are.
  uint64_t is_replicated() const { return std::bit_cast<uint32_t>(state) >> 31; }
  uint64_t replica() const { return std::bit_cast<uint32_t>(weight); }
  static Cell replicated(uint32_t number) { return {std::bit_cast<float>(number), -1}; }
};
static_assert(std::atomic_ref<Cell>::is_always_lock_free);

// A function that only prefetches is pure to GCC, which then leaves out calls of it; a volatile statement is not.
void fetch(const void* what) {
  __builtin_prefetch(what, 1);
  asm volatile("");
}

// Races are meant here. Relaxed accesses make them defined, and cost what plain ones do.
Cell load(Cell& cell) { return std::atomic_ref(cell).load(std::memory_order_relaxed); }
void store(Cell& cell, Cell value) { std::atomic_ref(cell).store(value, std::memory_order_relaxed); }

// Nobody's change is lost here but for one that comes between the load and the store. Without one since `before` was
// read, the result is `after` to the bit.
void merge(Cell& shared, Cell before, Cell after) {
  const Cell now = load(shared);
  const auto moved = [](float now, float before, float after) {
    return now == before ? after : now + (after - before);
  };
  store(shared, {moved(now.weight, before.weight, after.weight), moved(now.state, before.state, after.state)});
}

using Sgd = SgdUpdate<float>;
using Adagrad = AdagradUpdate<float>;

template <class Update>
void change(const Update& update, float& weight, float& state, float gradient) {
  std::array<float, Update::kState> held;
  if constexpr (Update::kState > 0) held[0] = state;
  update(weight, gradient, held);
  if constexpr (Update::kState > 0) state = held[0];
}

uint64_t blocks_of(const Dataset& data) { return (data.rows() + kHogwildBlock - 1) / kHogwildBlock; }

void append_block(const Dataset& data, uint64_t block, std::vector<uint64_t>* rows) {
  const uint64_t end = std::min<uint64_t>(data.rows(), (block + 1) * kHogwildBlock);
  for (uint64_t row = block * kHogwildBlock; row < end; ++row) rows->push_back(row);
}

// The blocks of an epoch cut into pieces: where each begins, and the end.
std::vector<uint64_t> pieces_of(uint64_t blocks, uint32_t threads, bool first_epoch, uint64_t most) {
  std::vector<uint64_t> begins{0};
  while (begins.back() < blocks) {
    const uint64_t fair = first_epoch ? begins.back() / (8 * threads) : most;
    begins.push_back(std::min(blocks, begins.back() + std::clamp(fair, kFirstPiece, most)));
  }
  return begins;
}

template <class Update>
class Hogwild {
 public:
  Hogwild(const Dataset& data, const HogwildOptions& options)
      : data_(data),
        options_(options),
        update_(options.optimizer),
        fresh_{0, Update::kState > 0 ? update_.initial_state(0) : 0},
        cells_(options.features),
        replicated_{fresh_} {
    // Alone, a thread needs no replica but the bias's.
    if (options.threads > 1) find_common_keys();
    for_each_key([this](size_t key) { cells_[key] = fresh_; });
    for (size_t i = 0; i < common_.size(); ++i) cells_[common_[i]] = Cell::replicated(static_cast<uint32_t>(i + 1));
    replicated_.resize(1 + common_.size(), fresh_);
  }

  HogwildResult run() {
    for (uint64_t epoch = 0; epoch < options_.epochs; ++epoch) {
      const Permutation order(blocks_of(data_), mix64(options_.seed) + epoch);
      const std::vector<uint64_t> begins =
          pieces_of(blocks_of(data_), options_.threads, epoch == 0, kFallingRate ? kMostPiece : kFirstPiece);
      parallel_for(options_.threads, begins.size() - 1,
                   [&](size_t piece) { Pass(*this).train(order, begins[piece], begins[piece + 1]); });
    }
    HogwildResult result;
    result.rows = data_.rows() * options_.epochs;
    result.bias = replicated_[0].weight;
    result.weights.resize(cells_.size());
    for_each_key([&](size_t key) { result.weights[key] = cells_[key].weight; });
    for (size_t i = 0; i < common_.size(); ++i) result.weights[common_[i]] = replicated_[1 + i].weight;
    return result;
  }

 private:
  static constexpr bool kFallingRate = Update::kState > 0;

  // A thread's work on one piece.
  class Pass {
   public:
    explicit Pass(Hogwild& shared) : shared_(shared), before_(shared.replicated_.size()) {
      for (size_t i = 0; i < before_.size(); ++i) before_[i] = load(shared.replicated_[i]);
      own_ = before_;
      tables_ = {shared.cells_.data(), own_.data()};
    }

    void train(const Permutation& order, uint64_t begin, uint64_t end) {
      for (uint64_t block = begin; block < end; ++block) append_block(shared_.data_, order(block), &rows_);
      for (size_t i = 0; i < rows_.size(); ++i) {
        fetch_ahead(i);
        shared_.data_.visit(rows_[i], [&](auto keys, std::span<const float> values) {
          train_row(keys, values, shared_.data_.label(rows_[i]));
        });
      }
      // Two threads that merge at once should not do so in step.
      const size_t first = begin % own_.size();
      for (size_t i = first; i < own_.size(); ++i) merge(shared_.replicated_[i], before_[i], own_[i]);
      for (size_t i = 0; i < first; ++i) merge(shared_.replicated_[i], before_[i], own_[i]);
    }

   private:
    void fetch_ahead(size_t i) const {
      const Dataset& data = shared_.data_;
      if (i + kPlaceAhead < rows_.size()) data.prefetch_place(rows_[i + kPlaceAhead]);
      if (i + kKeysAhead < rows_.size()) {
        data.visit(rows_[i + kKeysAhead], [&](auto keys, std::span<const float> values) {
          fetch_lines(keys);
          fetch_lines(values);
        });
      }
      if (i + kWeightsAhead >= rows_.size()) return;
      data.visit(rows_[i + kWeightsAhead], [&](auto keys, std::span<const float>) {
        for (const auto key : keys) fetch(&shared_.cells_[key]);
      });
    }

    template <class Value>
    static void fetch_lines(std::span<const Value> values) {
      constexpr size_t kPerLine = 64 / sizeof(Value);
      for (size_t i = 0; i < std::min(values.size(), kMostLines * kPerLine); i += kPerLine) fetch(values.data() + i);
    }

    // Where the weight is that this thread changes. Whether a key is common cannot be foretold, so there is no branch.
    Cell* place_of(uint64_t key) const {
      const Cell cell = load(tables_[0][key]);
      const uint64_t replicated = cell.is_replicated();
      return tables_[replicated] + ((key & (replicated - 1)) | (cell.replica() & -replicated));
    }

    template <class Key>
    void train_row(std::span<const Key> keys, std::span<const float> values, float label) {
      const size_t count = keys.size();
      if (places_.size() < count) {
        places_.resize(count);
        weights_.resize(count);
        states_.resize(count);
      }
      float score = own_[0].weight;
      for (size_t i = 0; i < count; ++i) {
        places_[i] = place_of(keys[i]);
        const Cell cell = load(*places_[i]);
        weights_[i] = cell.weight;
        states_[i] = cell.state;
        score += values.empty() ? cell.weight : cell.weight * values[i];
      }
      const float slope = LogisticLoss::slope(score, label);
      update_row(slope, values, count);
      for (size_t i = 0; i < count; ++i) store(*places_[i], {weights_[i], states_[i]});
      change(shared_.update_, own_[0].weight, own_[0].state, slope);
    }

    // Apart from the rest so that it runs on vectors: no two of its arrays overlap, and nothing else is written.
    void update_row(float slope, std::span<const float> values, size_t count) {
      const Update update = shared_.update_;
      float* __restrict const weights = weights_.data();
      float* __restrict const states = states_.data();
      if (values.empty()) {
        for (size_t i = 0; i < count; ++i) change(update, weights[i], states[i], slope);
      } else {
        for (size_t i = 0; i < count; ++i) change(update, weights[i], states[i], slope * values[i]);
      }
    }

    Hogwild& shared_;
    std::vector<Cell> before_, own_;  // the replicas, as they were read and as they are now; the bias is the first
    std::array<Cell*, 2> tables_;     // the shared cells, the replicas
    std::vector<uint64_t> rows_;
    std::vector<Cell*> places_;
    std::vector<float> weights_, states_;
  };

  template <class Use>
  void for_each_key(Use use) {
    const size_t keys = cells_.size();
    parallel_for(options_.threads, (keys + kKeysPiece - 1) / kKeysPiece, [&](size_t piece) {
      const size_t end = std::min(keys, (piece + 1) * kKeysPiece);
      for (size_t key = piece * kKeysPiece; key < end; ++key) use(key);
    });
  }

  // Counts in the cells, which are not in use yet.
  void find_common_keys() {
    const uint64_t blocks = std::min<uint64_t>(kSampleRows / kHogwildBlock, blocks_of(data_));
    const auto enough = static_cast<float>(std::max<uint64_t>(2, blocks * kHogwildBlock / kCommonRows));
    const Permutation order(blocks_of(data_), mix64(options_.seed));
    std::vector<uint64_t> rows;
    for (uint64_t block = 0; block < blocks; ++block) append_block(data_, order(block), &rows);
    for (const uint64_t row : rows) {
      data_.visit(row, [&](auto keys, std::span<const float>) {
        for (const auto key : keys) {
          if (++cells_[key].state == enough) common_.push_back(key);
        }
      });
    }
    std::sort(common_.begin(), common_.end(),
              [this](uint64_t a, uint64_t b) { return cells_[a].state > cells_[b].state; });
    common_.resize(std::min(common_.size(), kFallingRate ? kMostReplicas : kMostReplicasAtFixedRate));
  }

  const Dataset& data_;
  const HogwildOptions& options_;
  const Update update_;
  const Cell fresh_;
  std::vector<Cell> cells_;       // by key
  std::vector<Cell> replicated_;  // what the replicas are merged into: the bias, then the common keys
  std::vector<uint64_t> common_;
};

}  // namespace

Result<HogwildResult> train_hogwild(const Dataset& data, const HogwildOptions& options) {
  if (options.threads == 0) return error(Code::kInvalid, "hogwild needs at least one thread");
  if (data.rows() > 0 && data.max_key() >= options.features) {
    return error(Code::kInvalid, "hogwild: key {} is not below {}", data.max_key(), options.features);
  }
  if (options.optimizer.type == "sgd") return Hogwild<Sgd>(data, options).run();
  if (options.optimizer.type == "adagrad") return Hogwild<Adagrad>(data, options).run();
  return error(Code::kInvalid, "hogwild: the optimizer is sgd or adagrad, not '{}'", options.optimizer.type);
}

}  // namespace talweg
