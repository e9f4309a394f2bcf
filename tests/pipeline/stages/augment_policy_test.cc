// rand_augment and trivial_augment_wide.

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/pipeline/stages/augment_policy.h>
#include <echopipe/tests/pipeline/stages/stage_testing.h>
#include <echopipe/tests/pipeline/stages/torchvision_references.h>

namespace echopipe::internal {
namespace {

using ::testing::StartsWith;

// In the order of PolicyOperation.
const std::vector<std::string> kNames = {
    "Identity", "ShearX",   "ShearY",    "TranslateX", "TranslateY", "Rotate",       "Brightness",
    "Color",    "Contrast", "Sharpness", "Posterize",  "Solarize",   "AutoContrast", "Equalize"};

PolicyOperation OperationOf(const std::string& name) {
  const auto found = std::ranges::find(kNames, name);
  EXPECT_NE(found, kNames.end()) << name;
  return static_cast<PolicyOperation>(found - kNames.begin());
}

PolicyStrength StrengthOf(const std::string& policy) {
  return policy == "rand_augment" ? PolicyStrength::kRandAugment
                                  : PolicyStrength::kTrivialAugmentWide;
}

TEST(AugmentPolicyTest, TheMagnitudesAreTorchvisionsToTheLastBit) {
  ASSERT_EQ(kNames.size(), kPolicyOperations);
  std::map<std::string, int> operations;
  for (const TorchvisionMagnitudes& wanted : AllTorchvisionMagnitudes()) {
    SCOPED_TRACE(wanted.policy + " " + wanted.operation + " " + std::to_string(wanted.bins));
    const PolicyOperation operation = OperationOf(wanted.operation);
    EXPECT_EQ(HasSign(operation), wanted.is_signed);
    const auto bins = static_cast<uint32_t>(wanted.bins);
    for (uint32_t bin = 0; bin < bins; ++bin) {
      const float magnitude = MagnitudeOf(StrengthOf(wanted.policy), operation, bin, bins,
                                          {wanted.height, wanted.width, 3});
      EXPECT_EQ(magnitude, wanted.values.empty() ? 0 : wanted.values.at(bin));
    }
    ++operations[wanted.policy];
  }
  // Each of both sizes.
  EXPECT_EQ(operations["rand_augment"], 2 * kPolicyOperations);
  EXPECT_EQ(operations["trivial_augment_wide"], 2 * kPolicyOperations);
}

auto ApplyBy(const std::string& name, proto::Interpolation interpolation) {
  return [=](const Tensor& pixels, const std::vector<double>& magnitude) {
    BufferPool pool;
    const Sampling sampling = {.interpolation = interpolation};
    return ApplyOperation(pixels, OperationOf(name), magnitude.at(0), sampling, pool);
  };
}

TEST(AugmentPolicyTest, EachOperationIsTorchvisionsAndInBilinearWithinOne) {
  for (const std::string& name : kNames) {
    ExpectLikeTorchvision(name + " nearest", 0, ApplyBy(name, proto::NEAREST));
  }
  for (const char* name : {"ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate"}) {
    ExpectLikeTorchvision(name + std::string(" bilinear"), 1, ApplyBy(name, proto::BILINEAR));
  }
}

// What may come out of a picture, and how probable it is.
class Outcomes {
 public:
  explicit Outcomes(const Tensor& pixels) : pixels_(pixels) {}

  // Every operation and sign at this bin, which has this probability.
  void AddBin(PolicyStrength strength, uint32_t bin, uint32_t bins, double probability) {
    for (uint32_t i = 0; i < kPolicyOperations; ++i) {
      const auto operation = static_cast<PolicyOperation>(i);
      const double magnitude = MagnitudeOf(strength, operation, bin, bins, pixels_.shape());
      for (const double sign : {1.0, -1.0}) {
        if (sign < 0 && !HasSign(operation)) continue;
        const double share = HasSign(operation) ? 0.5 : 1;
        Add(operation, sign * magnitude, probability * share / kPolicyOperations);
      }
    }
  }

  void ExpectOf(const Stage& stage, int examples) const {
    std::map<std::string, int> counts;
    for (int i = 0; i < examples; ++i) {
      ++counts[Text(Apply(stage, pixels_, static_cast<uint64_t>(i)))];
    }
    for (const auto& [result, count] : counts) EXPECT_TRUE(probabilities_.contains(result));
    for (const auto& [result, probability] : probabilities_) {
      const double deviation = std::sqrt(examples * probability * (1 - probability));
      EXPECT_NEAR(counts[result], examples * probability, 6 * deviation);
    }
  }

  size_t size() const { return probabilities_.size(); }

 private:
  static std::string Text(const Tensor& tensor) {
    return {tensor.bytes().begin(), tensor.bytes().end()};
  }

  void Add(PolicyOperation operation, double magnitude, double probability) {
    BufferPool pool;
    const Tensor result = ApplyOperation(pixels_, operation, magnitude, {}, pool);
    probabilities_[Text(result)] += probability;
  }

  Tensor pixels_;
  std::map<std::string, double> probabilities_;
};

// Large enough to be equalized, and with a contrast that can be stretched.
Tensor SomePicture() {
  return Picture(17, 18, 3,
                 [](int y, int x, int c) { return 40 + (x * 9 + y * x + c * 31) % 150; });
}

TEST(RandAugmentTest, EachOperationAndSignIsAsProbableAsTheOthers) {
  Outcomes outcomes(SomePicture());
  outcomes.AddBin(PolicyStrength::kRandAugment, 9, 31, 1);
  EXPECT_EQ(outcomes.size(), 23U);  // 9 of the 14 have a sign
  outcomes.ExpectOf(*MakeStage(kRandAugmentStage, "num_ops: 1"), 14'000);
}

TEST(RandAugmentTest, MagnitudeAndBinsAreThoseGiven) {
  Outcomes outcomes(SomePicture());
  outcomes.AddBin(PolicyStrength::kRandAugment, 4, 7, 1);
  outcomes.ExpectOf(*MakeStage(kRandAugmentStage, "num_ops: 1 magnitude: 4 num_magnitude_bins: 7"),
                    2000);
}

TEST(TrivialAugmentWideTest, EachOperationBinAndSignIsAsProbableAsTheOthers) {
  Outcomes outcomes(SomePicture());
  for (uint32_t bin = 0; bin < 3; ++bin) {
    outcomes.AddBin(PolicyStrength::kTrivialAugmentWide, bin, 3, 1.0 / 3);
  }
  EXPECT_GT(outcomes.size(), 30U);
  outcomes.ExpectOf(*MakeStage(kTrivialAugmentWideStage, "num_magnitude_bins: 3"), 14'000);
}

TEST(RandAugmentTest, OperationsFollowOneAnother) {
  // Two that are both the identity have a probability of 1/196.
  const Tensor pixels = SomePicture();
  const auto count_identities = [&](const std::string& fields) {
    const auto stage = MakeStage(kRandAugmentStage, fields);
    int count = 0;
    for (uint64_t i = 0; i < 4000; ++i) {
      count += Apply(*stage, pixels, i).buffer() == pixels.buffer();
    }
    return count;
  };
  EXPECT_NEAR(count_identities("num_ops: 1"), 4000 / 14, 98);
  EXPECT_NEAR(count_identities(""), 4000 / 196, 27);
  EXPECT_NEAR(count_identities("num_ops: 3"), 4000 / 2744, 8);
}

TEST(AugmentPolicyTest, FillIsWhatComesFromOutside) {
  BufferPool pool;
  const Tensor black = Picture(20, 20, 3, [](int, int, int) { return 0; });
  const Sampling sampling = {.fill = {7, 8, 9}};
  const Tensor moved = ApplyOperation(black, PolicyOperation::kTranslateX, 5, sampling, pool);
  EXPECT_EQ(Bytes(moved)[0], 7);
  EXPECT_EQ(Bytes(moved)[1], 8);
  for (const StageType* type : {&kRandAugmentStage, &kTrivialAugmentWideStage}) {
    const auto stage = MakeStage(*type, "fill: [7, 8, 9]");
    EXPECT_EQ(CodeOf([&] { Apply(*stage, Noise(8, 8, 1)); }), ErrorCode::kShapeMismatch);
  }
}

TEST(AugmentPolicyTest, ValidationNamesTheField) {
  for (const StageType* type : {&kRandAugmentStage, &kTrivialAugmentWideStage}) {
    const auto message = [&](const std::string& fields) { return InvalidMessage(*type, fields); };
    EXPECT_EQ(message(""), "");
    EXPECT_THAT(message("num_magnitude_bins: 1"), StartsWith("num_magnitude_bins: "));
    EXPECT_THAT(message("num_magnitude_bins: 1001"), StartsWith("num_magnitude_bins: "));
    EXPECT_THAT(message("interpolation: AREA"), StartsWith("interpolation: "));
    EXPECT_THAT(message("fill: -1"), StartsWith("fill: "));
  }
  const auto message = [](const char* fields) { return InvalidMessage(kRandAugmentStage, fields); };
  EXPECT_THAT(message("num_ops: 0"), StartsWith("num_ops: "));
  EXPECT_THAT(message("num_ops: 17"), StartsWith("num_ops: "));
  EXPECT_THAT(message("magnitude: 31"), StartsWith("magnitude: "));
  EXPECT_THAT(message("num_magnitude_bins: 9"), StartsWith("magnitude: "));
}

}  // namespace
}  // namespace echopipe::internal
