// What holds for every augmentation, over a grid of stages.

#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/tests/pipeline/stages/stage_testing.h>

namespace echopipe::internal {
namespace {

struct Case {
  const char* name = "";
  const StageType* type = nullptr;
  const char* fields = "";
  bool random = false;
};

class StageLaws : public ::testing::TestWithParam<Case> {
 protected:
  std::unique_ptr<Stage> Make() const { return MakeStage(*GetParam().type, GetParam().fields); }
};

TEST_P(StageLaws, TheInputIsNeverWrittenTo) {
  const auto stage = Make();
  const Tensor pixels = Noise(61, 83, 3);
  const std::vector<uint8_t> before = Bytes(pixels);
  for (uint64_t i = 0; i < 10; ++i) {
    Apply(*stage, pixels, i);
    ASSERT_EQ(Bytes(pixels), before);
  }
}

TEST_P(StageLaws, TheResultIsAFunctionOfTheIdentityAlone) {
  const Tensor pixels = Noise(61, 83, 3);
  const auto stage = Make();
  const auto again = Make();
  std::set<std::string> results;
  for (uint64_t i = 0; i < 20; ++i) {
    const std::vector<uint8_t> result = Bytes(Apply(*stage, pixels, i));
    EXPECT_EQ(result, Bytes(Apply(*stage, pixels, i)));
    EXPECT_EQ(result, Bytes(Apply(*again, pixels, i)));
    results.insert(std::string(result.begin(), result.end()));
  }
  EXPECT_EQ(results.size() > 1, GetParam().random);
}

TEST_P(StageLaws, PicturesOfOneChannelAndOfOnePixelPass) {
  const auto stage = Make();
  for (const int channels : {1, 3}) {
    for (const auto& [height, width] : {std::pair{61, 83}, std::pair{1, 1}}) {
      const StageType* type = GetParam().type;
      const bool needs_more = type == &kRandomCropStage || type == &kGaussianBlurStage;
      if (needs_more && height == 1) continue;
      const Tensor result = Apply(*stage, Noise(height, width, channels));
      const Shape& shape = result.shape();
      const bool planes = GetParam().type == &kNormalizeStage;
      EXPECT_EQ(shape.rank(), 3U);
      EXPECT_EQ(planes ? shape[0] : shape[2], channels);
    }
  }
}

TEST_P(StageLaws, OtherFeaturesAndTheLabelAreLeftAlone) {
  BufferPool pool;
  Example example;
  const Tensor other = Noise(61, 83, 3);
  example.Set("image", other);
  example.Set("mask", Noise(61, 83, 1));
  example.set_label(7);
  const auto stage =
      MakeStage(*GetParam().type, GetParam().fields + std::string(" feature: 'mask'"));
  EXPECT_TRUE(stage->Apply(example, {.pool = pool, .random_key = Key(3)}));
  EXPECT_EQ(example.Get("image").buffer(), other.buffer());
  EXPECT_EQ(example.label(), 7);
  EXPECT_EQ(example.features().size(), 2U);
}

TEST_P(StageLaws, WhatIsNoPictureIsAnErrorThatNamesTheFeature) {
  BufferPool pool;
  const auto stage = Make();
  const auto error_for = [&](const Tensor& tensor) -> std::string {
    Example example;
    example.Set("image", tensor);
    try {
      stage->Apply(example, {.pool = pool, .random_key = Key(3)});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.what();
    }
    return "";
  };
  const auto empty = [&](DType dtype, const Shape& shape) {
    return TensorBuilder(dtype, shape, pool).Finish();
  };
  for (const Tensor& tensor : {Tensor(), empty(DType::kFloat32, {4, 4, 3}),
                               empty(DType::kUint8, {4, 4, 2}), empty(DType::kUint8, {4, 4}),
                               empty(DType::kUint8, {0, 4, 3}), empty(DType::kUint8, {4, 0, 3})}) {
    EXPECT_THAT(error_for(tensor), ::testing::StartsWith("image: "));
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, StageLaws,
    ::testing::Values(
        Case{"resize", &kResizeStage, "height: 20 width: 30"},
        Case{"shorter_side", &kResizeStage, "shorter_side: 16 interpolation: AREA"},
        Case{"large_resize", &kResizeStage, "height: 320 width: 330 interpolation: BICUBIC"},
        Case{"antialiased_resize", &kResizeStage, "height: 20 width: 30 antialias: true"},
        Case{"center_crop", &kCenterCropStage, "height: 32 width: 90"},
        Case{"random_crop", &kRandomCropStage, "height: 32 width: 32", true},
        Case{"padded_random_crop", &kRandomCropStage, "height: 61 width: 83 padding: 4", true},
        Case{"random_resized_crop", &kRandomResizedCropStage, "height: 24 width: 25", true},
        Case{"random_flip", &kRandomFlipStage, "", true},
        Case{"color_jitter", &kColorJitterStage,
             "brightness: 0.4 contrast: 0.4 saturation: 0.4 hue: 0.1", true},
        Case{"random_grayscale", &kRandomGrayscaleStage, "probability: 0.5", true},
        Case{"gaussian_blur", &kGaussianBlurStage, "kernel_size: 23", true},
        Case{"random_autocontrast", &kRandomAutocontrastStage, ""},  // noise is stretched already
        Case{"random_equalize", &kRandomEqualizeStage, "", true},
        Case{"random_invert", &kRandomInvertStage, "", true},
        Case{"random_posterize", &kRandomPosterizeStage, "bits: 3", true},
        Case{"random_solarize", &kRandomSolarizeStage, "threshold: 128", true},
        Case{"random_adjust_sharpness", &kRandomAdjustSharpnessStage, "factor: 2", true},
        Case{"random_rotation", &kRandomRotationStage, "degrees: 30", true},
        Case{"expanding_rotation", &kRandomRotationStage,
             "degrees: 170 expand: true interpolation: BILINEAR", true},
        Case{"random_affine", &kRandomAffineStage,
             "degrees: 10 translate_x: 0.1 min_scale: 0.8 max_scale: 1.2 shear: 5", true},
        Case{"rand_augment", &kRandAugmentStage, "", true},
        Case{"trivial_augment_wide", &kTrivialAugmentWideStage, "interpolation: BILINEAR", true},
        Case{"random_erasing", &kRandomErasingStage, "", true},
        Case{"noise_erasing", &kRandomErasingStage, "fill: NOISE probability: 1", true},
        Case{"normalize", &kNormalizeStage, "mean: 0.5 std: 0.25"},
        Case{"normalize_to_float16", &kNormalizeStage, "mean: 0.5 std: 0.25 type: FLOAT16"}),
    [](const auto& test) { return std::string(test.param.name); });

class CropStageLaws : public StageLaws {};

TEST_P(CropStageLaws, ApplyingToTheBoxAloneGivesWhatApplyGives) {
  BufferPool pool;
  const auto stage = Make();
  const auto& crop = dynamic_cast<const CropStage&>(*stage);
  EXPECT_EQ(crop.feature(), "image");
  RandomStream random(Key(99));
  for (uint64_t i = 0; i < 500; ++i) {
    const bool fits_alone = GetParam().type == &kRandomCropStage;
    const int height = static_cast<int>(random.Between(fits_alone ? 13 : 1, 70));
    const int width = static_cast<int>(random.Between(fits_alone ? 17 : 1, i % 10 == 0 ? 900 : 70));
    const Tensor pixels = Noise(height, width, i % 3 == 0 ? 1 : 3);
    const StageContext context = {.pool = pool, .random_key = Key(i)};
    const PixelBox box = crop.Box(height, width, context);
    ASSERT_GE(box.x, 0);
    ASSERT_GE(box.y, 0);
    ASSERT_GE(box.width, 1);
    ASSERT_GE(box.height, 1);
    ASSERT_LE(box.x + box.width, width);
    ASSERT_LE(box.y + box.height, height);
    Example cut;
    cut.Set("image", CutOut(pixels, box));
    crop.ApplyToBox(cut, context);
    const Tensor whole = Apply(*stage, pixels, i);
    ASSERT_EQ(cut.Get("image").shape(), whole.shape());
    ASSERT_EQ(Bytes(cut.Get("image")), Bytes(whole));
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, CropStageLaws,
    ::testing::Values(
        Case{"center_crop", &kCenterCropStage, "height: 31 width: 40"},
        Case{"random_crop", &kRandomCropStage, "height: 13 width: 17", true},
        Case{"random_resized_crop", &kRandomResizedCropStage, "height: 24 width: 25", true},
        Case{"area", &kRandomResizedCropStage, "height: 9 width: 8 interpolation: AREA", true},
        Case{"antialiased", &kRandomResizedCropStage,
             "height: 19 width: 16 interpolation: BICUBIC antialias: true", true},
        Case{"large", &kRandomResizedCropStage, "height: 2000 width: 50", true}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace echopipe::internal
