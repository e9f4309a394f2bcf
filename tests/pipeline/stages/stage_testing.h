#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <echopipe/base/buffer.h>
#include <echopipe/base/error.h>
#include <echopipe/pipeline/example.h>
#include <echopipe/pipeline/stages/stage.h>

namespace echopipe::internal {

extern const StageType kCenterCropStage;
extern const StageType kColorJitterStage;
extern const StageType kFilterStage;
extern const StageType kGaussianBlurStage;
extern const StageType kMapStage;
extern const StageType kNormalizeStage;
extern const StageType kRandAugmentStage;
extern const StageType kRandomAdjustSharpnessStage;
extern const StageType kRandomAffineStage;
extern const StageType kRandomAutocontrastStage;
extern const StageType kRandomCropStage;
extern const StageType kRandomEqualizeStage;
extern const StageType kRandomErasingStage;
extern const StageType kRandomFlipStage;
extern const StageType kRandomGrayscaleStage;
extern const StageType kRandomInvertStage;
extern const StageType kRandomPosterizeStage;
extern const StageType kRandomResizedCropStage;
extern const StageType kRandomRotationStage;
extern const StageType kRandomSolarizeStage;
extern const StageType kResizeStage;
extern const StageType kTrivialAugmentWideStage;

/// A stage from its message's fields as text ("height: 2"), after they have been validated.
std::unique_ptr<Stage> MakeStage(const StageType& type, const std::string& fields,
                                 const UserFunctions& functions = {});

/// The error of validate(), as "field: ..."; "" if there is none.
std::string InvalidMessage(const StageType& type, const std::string& fields);

/// The code of the error that the call throws; fails the test if it throws none.
ErrorCode CodeOf(const std::function<void()>& call);

/// Pixels [height, width, channels] from a function of (y, x, c).
Tensor Picture(int height, int width, int channels, const std::function<int(int, int, int)>& value);
/// Pixels without any pattern.
Tensor Noise(int height, int width, int channels);
/// The box's pixels, cut out one by one; black outside of the picture.
Tensor CutOut(const Tensor& pixels, const PixelBox& box);

/// The random numbers of the i-th identity.
RandomKey Key(uint64_t i);

/// What the stage makes of the feature "image" under the i-th identity.
Tensor Apply(const Stage& stage, const Tensor& image, uint64_t i = 0);

std::vector<uint8_t> Bytes(const Tensor& tensor);

/// The chi-square statistic of counts that should all be equal, minus its mean, in units of its
/// standard deviation: above 6 in fewer than one of a million samples of fair counts.
double ChiSquareSigmas(const std::vector<int>& counts);

}  // namespace echopipe::internal
