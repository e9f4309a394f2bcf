#include <algorithm>
#include <array>

#include <echopipe/pipeline/stages/stage.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::internal {

extern const StageType kBatchStage;
extern const StageType kCenterCropStage;
extern const StageType kColorJitterStage;
extern const StageType kDecodeStage;
extern const StageType kEchoStage;
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

std::span<const StageType* const> StageTypes() {
  static constexpr std::array kTypes{&kBatchStage,
                                     &kCenterCropStage,
                                     &kColorJitterStage,
                                     &kDecodeStage,
                                     &kEchoStage,
                                     &kFilterStage,
                                     &kGaussianBlurStage,
                                     &kMapStage,
                                     &kNormalizeStage,
                                     &kRandAugmentStage,
                                     &kRandomAdjustSharpnessStage,
                                     &kRandomAffineStage,
                                     &kRandomAutocontrastStage,
                                     &kRandomCropStage,
                                     &kRandomEqualizeStage,
                                     &kRandomErasingStage,
                                     &kRandomFlipStage,
                                     &kRandomGrayscaleStage,
                                     &kRandomInvertStage,
                                     &kRandomPosterizeStage,
                                     &kRandomResizedCropStage,
                                     &kRandomRotationStage,
                                     &kRandomSolarizeStage,
                                     &kResizeStage,
                                     &kTrivialAugmentWideStage};
  return kTypes;
}

const StageType* FindStageType(const proto::Stage& message) {
  const google::protobuf::OneofDescriptor* kinds = proto::Stage::descriptor()->oneof_decl(0);
  const google::protobuf::FieldDescriptor* field =
      message.GetReflection()->GetOneofFieldDescriptor(message, kinds);
  if (field == nullptr) return nullptr;
  const auto types = StageTypes();
  const auto found = std::ranges::find(types, std::string_view(field->name()), &StageType::name);
  return found == types.end() ? nullptr : *found;
}

}  // namespace echopipe::internal
