#pragma once

#include <string>

#include <echopipe/pipeline/stages/stage.h>

namespace echopipe::internal {

/// A stage that changes the pixels of its feature, with some probability. A picture that it leaves
/// alone is not copied.
class RandomPixelStage : public Stage {
 public:
  bool Apply(Example& example, const StageContext& context) const final {
    const Tensor& pixels = GetPixels(example, feature_);
    RandomStream random = context.random();
    if (random.Bernoulli(probability_)) {
      example.Set(feature_, Change(pixels, random, context.pool));
    }
    return true;
  }

 protected:
  RandomPixelStage(const std::string& feature, double probability)
      : feature_(FeatureOrImage(feature)), probability_(probability) {}

  const std::string& feature() const { return feature_; }

 private:
  /// The changed picture, drawn from `random`.
  virtual Tensor Change(const Tensor& pixels, RandomStream& random, BufferPool& pool) const = 0;

  std::string feature_;
  double probability_;
};

}  // namespace echopipe::internal
