#include "optim/shampoo.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "optim/clip.h"

namespace talweg {
namespace {

using Matrix = Eigen::MatrixXd;
template <class Real>
using StoredMatrix = Eigen::Map<Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;

// (sum + epsilon * I)^(-1/4). No eigenvalue can be below epsilon but by rounding. Sums that have overflowed have no
// roots: what follows from them is not a number, and shows as such in the weights.
Matrix inverse_fourth_root(Matrix sum, double epsilon) {
  sum.diagonal().array() += epsilon;
  const Eigen::Index side = sum.rows();
  if (!sum.allFinite()) return Matrix::Constant(side, side, std::numeric_limits<double>::quiet_NaN());
  const Eigen::SelfAdjointEigenSolver<Matrix> solved(sum);
  const Eigen::VectorXd roots = solved.eigenvalues().unaryExpr(
      [epsilon](double value) { return 1 / std::sqrt(std::sqrt(std::max(value, epsilon))); });
  return solved.eigenvectors() * roots.asDiagonal() * solved.eigenvectors().transpose();
}

template <class Real>
class Shampoo final : public Optimizer<Real> {
 public:
  Shampoo(const OptimizerConfig& config, BlockShape shape)
      : lr_(config.lr),
        l2_(config.l2),
        epsilon_(config.epsilon.value_or(1e-6)),
        every_(static_cast<uint64_t>(config.precondition_every)),
        clip_(config),
        rows_(static_cast<Eigen::Index>(shape.rows)),
        columns_(static_cast<Eigen::Index>(shape.columns)) {}

  size_t state_per_weight() const override {
    const Eigen::Index values = (rows_ * rows_ + columns_ * columns_) * (every_ > 1 ? 2 : 1);
    return static_cast<size_t>((values + rows_ * columns_ - 1) / (rows_ * columns_));
  }
  Real initial_state(size_t) const override { return 0; }
  bool needs_whole_block() const override { return true; }

  void apply(const Rows<Real>& rows) override {
    CHECK(rows.width == static_cast<size_t>(rows_ * columns_) && rows.state_offset == rows.width);
    const Real* gradients = rows.gradients;
    for (const uint32_t r : rows.rows) {
      apply_block(rows.row(r), gradients, rows.rate, rows.number);
      gradients += rows.width;
    }
  }

 private:
  void apply_block(Real* block, const Real* gradients, double rate, uint64_t number) const {
    StoredMatrix<Real> weights(block, rows_, columns_);
    StoredMatrix<Real> left(block + rows_ * columns_, rows_, rows_);
    StoredMatrix<Real> right(left.data() + rows_ * rows_, columns_, columns_);
    const Matrix gradient = clipped(gradients) + l2_ * weights.template cast<double>();
    const Matrix left_sum = left.template cast<double>() + gradient * gradient.transpose();
    const Matrix right_sum = right.template cast<double>() + gradient.transpose() * gradient;
    left = left_sum.cast<Real>();
    right = right_sum.cast<Real>();

    Matrix step;
    if (every_ == 1) {
      step = inverse_fourth_root(left_sum, epsilon_) * gradient * inverse_fourth_root(right_sum, epsilon_);
    } else {
      StoredMatrix<Real> left_root(right.data() + columns_ * columns_, rows_, rows_);
      StoredMatrix<Real> right_root(left_root.data() + rows_ * rows_, columns_, columns_);
      // The diagonal of a root is never zero: where it is, none was taken yet.
      if ((number - 1) % every_ == 0 || left_root(0, 0) == 0) {
        left_root = inverse_fourth_root(left_sum, epsilon_).cast<Real>();
        right_root = inverse_fourth_root(right_sum, epsilon_).cast<Real>();
      }
      step = left_root.template cast<double>() * gradient * right_root.template cast<double>();
    }
    weights -= (lr_ * rate * step).template cast<Real>();
  }

  Matrix clipped(const Real* gradients) const {
    const size_t width = static_cast<size_t>(rows_ * columns_);
    const RowClip<Real> clip = clip_.of_row(gradients, width);
    Matrix result(rows_, columns_);
    for (Eigen::Index r = 0; r < rows_; ++r) {
      for (Eigen::Index c = 0; c < columns_; ++c) result(r, c) = clip(gradients[r * columns_ + c]);
    }
    return result;
  }

  const double lr_, l2_, epsilon_;
  const uint64_t every_;
  const Clip clip_;
  const Eigen::Index rows_, columns_;
};

}  // namespace

template <class Real>
Result<std::unique_ptr<Optimizer<Real>>> make_shampoo(const OptimizerConfig& config, BlockShape shape) {
  if (shape.rows == 0 || shape.columns == 0) {
    return error(Code::kInvalid, "optimizer {}: needs a dense table with columns; a sparse table or a vector has none",
                 config.type);
  }
  if (std::max(shape.rows, shape.columns) > kMaxShampooSide) {
    return error(Code::kInvalid, "optimizer {}: a block of {} x {} is too large; at most {} x {} are allowed",
                 config.type, shape.rows, shape.columns, kMaxShampooSide, kMaxShampooSide);
  }
  if (config.epsilon == 0) {
    return error(Code::kInvalid, "optimizer {}: epsilon must be more than 0, or its matrices have no roots",
                 config.type);
  }
  std::unique_ptr<Optimizer<Real>> made = std::make_unique<Shampoo<Real>>(config, shape);
  return made;
}
template Result<std::unique_ptr<Optimizer<float>>> make_shampoo(const OptimizerConfig&, BlockShape);
template Result<std::unique_ptr<Optimizer<double>>> make_shampoo(const OptimizerConfig&, BlockShape);

}  // namespace talweg
