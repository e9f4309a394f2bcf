// Antialiased resizing, and which resize of torchvision's is which of ours.

#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <hwy/targets.h>

#include <echopipe/pipeline/stages/pixels.h>
#include <echopipe/pipeline/stages/resample.h>
#include <echopipe/tests/pipeline/stages/stage_testing.h>
#include <echopipe/tests/pipeline/stages/torchvision_references.h>

namespace echopipe::internal {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// To the height and width that are the reference's parameters.
auto ResizedBy(const std::string& fields) {
  return [fields](const Tensor& pixels, const std::vector<double>& size) {
    const auto stage =
        MakeStage(kResizeStage, fields + " height: " + std::to_string(static_cast<int>(size[0])) +
                                    " width: " + std::to_string(static_cast<int>(size[1])));
    return Apply(*stage, pixels);
  };
}

TEST(ResampleTest, IsPillowsBitForBit) {
  ExpectLikeTorchvision("Pillow bilinear", 0, ResizedBy("antialias: true"));
  ExpectLikeTorchvision("Pillow bicubic", 0, ResizedBy("antialias: true interpolation: BICUBIC"));
}

TEST(ResampleTest, IsWithinOneOfTorchvisionsForTensors) {
  ExpectLikeTorchvision("antialias bilinear", 1, ResizedBy("antialias: true"));
  ExpectLikeTorchvision("antialias bicubic", 1,
                        ResizedBy("antialias: true interpolation: BICUBIC"));
}

TEST(ResampleTest, WithoutItResizingIsTorchvisionsWithoutIt) {
  ExpectLikeTorchvision("plain nearest", 0, ResizedBy("interpolation: NEAREST"));
  ExpectLikeTorchvision("plain bilinear", 1, ResizedBy("interpolation: BILINEAR"));
  ExpectLikeTorchvision("plain bicubic", 1, ResizedBy("interpolation: BICUBIC"));
}

TEST(ResampleTest, AveragesWhatItShrinks) {
  const Tensor row = Picture(1, 8, 1, [](int, int x, int) { return x == 3 ? 160 : 0; });
  // A triangle of four pixels to each side, of which two are outside: 3.5 is its sum.
  EXPECT_THAT(Bytes(ResizedBy("antialias: true")(row, {1, 2})),
              ElementsAre(std::round(160 * 0.625 / 3.5), std::round(160 * 0.375 / 3.5)));
}

TEST(ResampleTest, EveryInstructionSetGivesTheSameValues) {
  const auto many_outputs = [] {
    std::vector<uint8_t> all;
    for (int width = 1; width <= 70; ++width) {
      for (const int channels : {1, 3}) {
        for (const char* fields : {"antialias: true", "antialias: true interpolation: BICUBIC"}) {
          const Tensor resized = ResizedBy(fields)(Noise(9, width, channels), {7.0, 71.0 - width});
          all.insert(all.end(), resized.bytes().begin(), resized.bytes().end());
        }
      }
    }
    return all;
  };
  const std::vector<uint8_t> best = many_outputs();
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    EXPECT_EQ(many_outputs(), best) << hwy::TargetName(target);
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

TEST(ResampleTest, ABoxIsResizedAsIfItHadBeenCutOutBefore) {
  BufferPool pool;
  RandomStream random(Key(7));
  for (int i = 0; i < 300; ++i) {
    const auto below = [&](int n) { return static_cast<int>(random.Between(0, n - 1)); };
    const Tensor pixels = Noise(1 + below(60), 1 + below(60), i % 2 == 0 ? 3 : 1);
    PixelBox box = WholeOf(pixels);
    box.x = below(box.width);
    box.y = below(box.height);
    box.width = 1 + below(box.width - box.x);
    box.height = 1 + below(box.height - box.y);
    const int height = i % 5 == 0 ? box.height : 1 + below(40);
    const int width = i % 7 == 0 ? box.width : 1 + below(40);
    const auto interpolation = i % 4 < 2 ? proto::BILINEAR : proto::BICUBIC;
    const Tensor cut = CutOut(pixels, box);
    ASSERT_EQ(Bytes(ResizeAntialiased(pixels, box, height, width, interpolation, pool)),
              Bytes(ResizeAntialiased(cut, WholeOf(cut), height, width, interpolation, pool)));
  }
}

TEST(ResampleTest, ARandomResizedCropIsAntialiasedIfAskedTo) {
  BufferPool pool;
  const Tensor pixels = Noise(40, 40, 3);
  // The box is the whole picture.
  const std::string fields =
      "height: 9 width: 11 min_scale: 1 max_scale: 1 min_ratio: 1 max_ratio: 1";
  const auto cropped = [&](const std::string& more) {
    return Bytes(Apply(*MakeStage(kRandomResizedCropStage, fields + more), pixels));
  };
  const PixelBox whole = WholeOf(pixels);
  EXPECT_EQ(cropped(" antialias: true"),
            Bytes(ResizeAntialiased(pixels, whole, 9, 11, proto::BILINEAR, pool)));
  EXPECT_EQ(cropped(""), Bytes(Resize(pixels, whole, 9, 11, proto::BILINEAR, pool)));
}

TEST(ResampleTest, WhatIsFlatStaysFlat) {
  const Tensor white = Picture(37, 41, 3, [](int, int, int) { return 255; });
  for (const char* fields : {"antialias: true", "antialias: true interpolation: BICUBIC"}) {
    for (const std::vector<double>& size :
         std::vector<std::vector<double>>{{1, 1}, {3, 300}, {90, 2}, {36, 40}}) {
      EXPECT_THAT(Bytes(ResizedBy(fields)(white, size)), ::testing::Each(255));
    }
  }
}

TEST(ResampleTest, ValidationNamesAntialias) {
  for (const StageType* type : {&kResizeStage, &kRandomResizedCropStage}) {
    const auto message = [&](const std::string& interpolation) {
      return InvalidMessage(*type,
                            "height: 3 width: 3 antialias: true interpolation: " + interpolation);
    };
    EXPECT_EQ(message("BILINEAR"), "");
    EXPECT_EQ(message("BICUBIC"), "");
    EXPECT_THAT(message("AREA"), AllOf(StartsWith("antialias: "), HasSubstr("AREA")));
    EXPECT_THAT(message("NEAREST"), AllOf(StartsWith("antialias: "), HasSubstr("NEAREST")));
  }
}

}  // namespace
}  // namespace echopipe::internal
