#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <opencv2/core/parallel/parallel_backend.hpp>
#include <opencv2/imgproc.hpp>

#include <echopipe/pipeline/stages/pixels.h>
#include <echopipe/tests/pipeline/stages/stage_testing.h>

namespace echopipe::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::unique_ptr<Stage> ResizeStage(int height, int width, const std::string& interpolation) {
  return MakeStage(kResizeStage, "height: " + std::to_string(height) + " width: " +
                                     std::to_string(width) + " interpolation: " + interpolation);
}

Tensor Row(const std::vector<int>& values) {
  return Picture(1, static_cast<int>(values.size()), 1,
                 [&](int, int x, int) { return values[static_cast<size_t>(x)]; });
}

TEST(ResizeTest, NearestTakesThePixelAtTheFloorOfItsPlace) {
  const Tensor row = Row({10, 20, 30, 40, 50});
  EXPECT_THAT(Bytes(Apply(*ResizeStage(1, 2, "NEAREST"), row)), ElementsAre(10, 30));
  EXPECT_THAT(Bytes(Apply(*ResizeStage(1, 3, "NEAREST"), row)), ElementsAre(10, 20, 40));
}

TEST(ResizeTest, BilinearBlendsBetweenPixelCentres) {
  EXPECT_THAT(Bytes(Apply(*ResizeStage(1, 4, "BILINEAR"), Row({0, 100}))),
              ElementsAre(0, 25, 75, 100));
}

TEST(ResizeTest, BilinearReadsOnlyTheNearestPixelsOfWhatItShrinks) {
  const Tensor row = Row({0, 10, 20, 200, 0, 40, 60, 200});
  EXPECT_THAT(Bytes(Apply(*ResizeStage(1, 2, "BILINEAR"), row)), ElementsAre(15, 50));
}

TEST(ResizeTest, AreaAveragesWhatItShrinks) {
  const Tensor row = Row({0, 10, 20, 50, 0, 40, 60, 100});
  EXPECT_THAT(Bytes(Apply(*ResizeStage(1, 2, "AREA"), row)), ElementsAre(20, 50));
}

TEST(ResizeTest, BicubicGoesBeyondTheEdgesOfAStep) {
  const std::vector<uint8_t> row =
      Bytes(Apply(*ResizeStage(1, 8, "BICUBIC"), Row({100, 100, 200, 200})));
  EXPECT_LT(*std::ranges::min_element(row), 100);
  EXPECT_GT(*std::ranges::max_element(row), 200);
}

// Bilinear interpolation in double precision, with pixel centres at half coordinates.
double Bilinear(const Tensor& pixels, int height, int width, int y, int x, int c) {
  const auto place = [](int i, int64_t from, int to) {
    const double centre = (i + 0.5) * static_cast<double>(from) / to - 0.5;
    return std::clamp(centre, 0.0, static_cast<double>(from - 1));
  };
  const auto value = [&](int64_t row, int64_t column) {
    row = std::min(row, pixels.shape()[0] - 1);
    column = std::min(column, pixels.shape()[1] - 1);
    const int64_t index = (row * pixels.shape()[1] + column) * pixels.shape()[2] + c;
    return static_cast<double>(pixels.bytes()[static_cast<size_t>(index)]);
  };
  const double fy = place(y, pixels.shape()[0], height);
  const double fx = place(x, pixels.shape()[1], width);
  const auto row = static_cast<int64_t>(fy);
  const auto column = static_cast<int64_t>(fx);
  const double v = fy - static_cast<double>(row);
  const double u = fx - static_cast<double>(column);
  return (1 - v) * ((1 - u) * value(row, column) + u * value(row, column + 1)) +
         v * ((1 - u) * value(row + 1, column) + u * value(row + 1, column + 1));
}

struct Sizes {
  int from_height = 0;
  int from_width = 0;
  int height = 0;
  int width = 0;
};

class ResizeSizes : public ::testing::TestWithParam<Sizes> {};

TEST_P(ResizeSizes, BilinearIsWithinOneAndAHalfOfTheExactValue) {
  const Sizes& size = GetParam();
  for (const int channels : {1, 3}) {
    const Tensor from = Noise(size.from_height, size.from_width, channels);
    const Tensor to = Apply(*ResizeStage(size.height, size.width, "BILINEAR"), from);
    ASSERT_EQ(to.shape(), Shape({size.height, size.width, channels}));
    double worst = 0;
    size_t i = 0;
    for (int y = 0; y < size.height; ++y) {
      for (int x = 0; x < size.width; ++x) {
        for (int c = 0; c < channels; ++c, ++i) {
          const double exact = Bilinear(from, size.height, size.width, y, x, c);
          worst = std::max(worst, std::abs(exact - to.bytes()[i]));
        }
      }
    }
    EXPECT_LT(worst, 1.5);
  }
}

TEST_P(ResizeSizes, EveryInterpolationAgreesWithOneCallOfOpenCv) {
  const Sizes& size = GetParam();
  RandomStream random(Key(5));
  // No black and white: bicubic goes beyond these, and is cut off there once more in a large one.
  const Tensor from = Picture(size.from_height, size.from_width, 3, [&](int, int, int) {
    return static_cast<int>(random.Between(96, 159));
  });
  const bool enlarges_one_side = (size.height > size.from_height) != (size.width > size.from_width);
  const std::pair<std::string, int> kinds[] = {{"BILINEAR", cv::INTER_LINEAR},
                                               {"NEAREST", cv::INTER_NEAREST},
                                               {"AREA", cv::INTER_AREA},
                                               {"BICUBIC", cv::INTER_CUBIC}};
  for (const auto& [name, kind] : kinds) {
    // OpenCV takes one call that enlarges one side for linear on both.
    if (kind == cv::INTER_AREA && enlarges_one_side) continue;
    const cv::Mat in(size.from_height, size.from_width, CV_8UC3,
                     const_cast<uint8_t*>(from.bytes().data()));
    cv::Mat expected;
    cv::resize(in, expected, {size.width, size.height}, 0, 0, kind);
    const Tensor to = Apply(*ResizeStage(size.height, size.width, name), from);
    int worst = 0;
    for (size_t i = 0; i < to.bytes().size(); ++i) {
      worst = std::max(worst, std::abs(to.bytes()[i] - expected.data[i]));
    }
    // A large one is rounded to whole values between its axes.
    EXPECT_LE(worst, size.height * size.width < (3 << 15) ? 0 : 2) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Grid, ResizeSizes,
                         ::testing::Values(Sizes{1, 1, 1, 1}, Sizes{1, 1, 7, 5}, Sizes{7, 5, 1, 1},
                                           Sizes{1, 300, 40, 2}, Sizes{300, 1, 2, 40},
                                           Sizes{31, 17, 62, 34}, Sizes{64, 64, 32, 32},
                                           Sizes{75, 100, 44, 44}, Sizes{30, 40, 313, 314},
                                           Sizes{40, 30, 314, 314}, Sizes{500, 600, 384, 384},
                                           Sizes{9, 900, 400, 300}, Sizes{3, 2, 16384, 7},
                                           Sizes{2, 3, 7, 16384}),
                         [](const auto& test) {
                           const Sizes& s = test.param;
                           return std::to_string(s.from_height) + "x" +
                                  std::to_string(s.from_width) + "to" + std::to_string(s.height) +
                                  "x" + std::to_string(s.width);
                         });

TEST(ResizeTest, ABoxIsResizedAsIfItHadBeenCutOutBefore) {
  BufferPool pool;
  RandomStream random(Key(7));
  for (int i = 0; i < 200; ++i) {
    const auto below = [&](int n) {
      return static_cast<int>(random.Below(static_cast<uint32_t>(n)));
    };
    const Tensor pixels = Noise(1 + below(60), 1 + below(60), i % 2 == 0 ? 3 : 1);
    PixelBox box = WholeOf(pixels);
    box.x = below(box.width);
    box.y = below(box.height);
    box.width = 1 + below(box.width - box.x);
    box.height = 1 + below(box.height - box.y);
    const int height = 1 + below(40);
    const int width = i % 10 == 0 ? 9000 : 1 + below(40);
    const auto interpolation = static_cast<proto::Interpolation>(i % 4);
    const Tensor cut = CutOut(pixels, box);
    EXPECT_EQ(Bytes(Resize(pixels, box, height, width, interpolation, pool)),
              Bytes(Resize(cut, WholeOf(cut), height, width, interpolation, pool)));
  }
}

TEST(ResizeTest, TheShorterSideIsSetAndTheLongerOneRoundedDown) {
  const auto shape = [](int height, int width, int side) {
    const auto stage = MakeStage(kResizeStage, "shorter_side: " + std::to_string(side));
    return Apply(*stage, Noise(height, width, 1)).shape();
  };
  EXPECT_EQ(shape(375, 500, 256), Shape({256, 341, 1}));
  EXPECT_EQ(shape(500, 375, 256), Shape({341, 256, 1}));
  EXPECT_EQ(shape(8, 8, 5), Shape({5, 5, 1}));
  EXPECT_EQ(shape(1, 1000, 3), Shape({3, 3000, 1}));
  EXPECT_EQ(shape(7, 20, 7), Shape({7, 20, 1}));
}

TEST(ResizeTest, ALongerSideBeyondTheLimitIsAnErrorBeforeAnythingIsAllocated) {
  const auto stage = MakeStage(kResizeStage, "shorter_side: 16384");
  EXPECT_EQ(CodeOf([&] { Apply(*stage, Noise(1, 5000, 1)); }), ErrorCode::kLimitExceeded);
}

// Counts the times OpenCV would deal work to threads.
class CountingThreads : public cv::parallel::ParallelForAPI {
 public:
  void parallel_for(int tasks, FN_parallel_for_body_cb_t body, void* data) override {
    ++calls;
    body(0, tasks, data);
  }
  int getThreadNum() const override { return 0; }
  int getNumThreads() const override { return 8; }
  int setNumThreads(int) override { return 8; }
  const char* getName() const override { return "counting"; }

  int calls = 0;
};

TEST(ResizeTest, OpenCvIsNeverAskedToDealOutWork) {
  const auto threads = std::make_shared<CountingThreads>();
  cv::parallel::setParallelForBackend(threads, false);
  cv::Mat control;
  cv::resize(cv::Mat::zeros(100, 100, CV_8UC3), control, {314, 314});
  EXPECT_GT(threads->calls, 0) << "the count would not notice";

  threads->calls = 0;
  for (const std::string interpolation : {"BILINEAR", "NEAREST", "AREA", "BICUBIC"}) {
    for (const Sizes& size :
         {Sizes{375, 500, 313, 314}, Sizes{375, 500, 314, 314}, Sizes{20, 2000, 1024, 1024},
          Sizes{2000, 20, 1024, 1024}, Sizes{3, 4, 16384, 8}, Sizes{4, 3, 8, 16384},
          Sizes{4, 3, 8, 65535}, Sizes{2000, 3, 65535, 8}}) {
      BufferPool pool;
      const Tensor from = Noise(size.from_height, size.from_width, 3);
      proto::Interpolation kind;
      ASSERT_TRUE(proto::Interpolation_Parse(interpolation, &kind));
      Resize(from, WholeOf(from), size.height, size.width, kind, pool);
    }
  }
  EXPECT_EQ(threads->calls, 0);
  cv::parallel::setParallelForBackend(std::shared_ptr<cv::parallel::ParallelForAPI>(), false);
}

TEST(ResizeTest, ValidationNamesTheField) {
  EXPECT_THAT(InvalidMessage(kResizeStage, ""), StartsWith("height: "));
  EXPECT_THAT(InvalidMessage(kResizeStage, "width: 3"), StartsWith("height: "));
  EXPECT_THAT(InvalidMessage(kResizeStage, "height: 3"), StartsWith("width: "));
  EXPECT_THAT(InvalidMessage(kResizeStage, "height: 16385 width: 1"), HasSubstr("1..16384"));
  EXPECT_THAT(InvalidMessage(kResizeStage, "shorter_side: 16385"), StartsWith("shorter_side: "));
  EXPECT_THAT(InvalidMessage(kResizeStage, "shorter_side: 1 height: 1"),
              StartsWith("shorter_side: "));
  EXPECT_THAT(InvalidMessage(kResizeStage, "height: 1 width: 1 interpolation: 9"),
              StartsWith("interpolation: "));
  EXPECT_EQ(InvalidMessage(kResizeStage, "height: 16384 width: 1"), "");
}

}  // namespace
}  // namespace echopipe::internal
