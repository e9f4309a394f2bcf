#include <memory>
#include <utility>

#include <echopipe/base/error.h>
#include <echopipe/pipeline/stages/decode.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::internal {
namespace {

constexpr uint64_t kMostPixels = uint64_t{1} << 32;
constexpr uint64_t kMostBytes = uint64_t{1} << 40;
constexpr uint64_t kMostScans = 10'000;

DecodeOptions OptionsOf(const proto::Decode& message) {
  DecodeOptions options;
  if (message.color() == proto::Decode::GRAY) options.color = DecodeOptions::Color::kGray;
  if (message.has_apply_orientation()) options.apply_orientation = message.apply_orientation();
  if (message.has_max_pixels()) options.max_pixels = message.max_pixels();
  if (message.has_max_bytes()) options.max_bytes = message.max_bytes();
  if (message.has_max_scans()) options.max_scans = message.max_scans();
  options.accept_truncated = message.accept_truncated();
  return options;
}

void CheckCap(std::string_view field, uint64_t value, uint64_t most) {
  if (value >= 1 && value <= most) return;
  ThrowInvalidField(field, "the cap is out of range", std::to_string(value),
                    "1 to " + std::to_string(most));
}

void ValidateDecode(const proto::Stage& message) {
  const proto::Decode& decode = message.decode();
  if (!proto::Decode::Color_IsValid(decode.color())) {
    ThrowInvalidField("color", "no such colour", std::to_string(decode.color()), "RGB or GRAY");
  }
  const DecodeOptions options = OptionsOf(decode);
  CheckCap("max_pixels", options.max_pixels, kMostPixels);
  CheckCap("max_bytes", options.max_bytes, kMostBytes);
  CheckCap("max_scans", options.max_scans, kMostScans);
}

std::unique_ptr<Stage> MakeDecode(const proto::Stage& message, const UserFunctions&) {
  return std::make_unique<DecodeStage>(message.decode());
}

}  // namespace

DecodeStage::DecodeStage(const proto::Decode& message)
    : feature_(FeatureOrImage(message.feature())), options_(OptionsOf(message)) {}

bool DecodeStage::Apply(Example& example, const StageContext& context) const {
  Decode(example, std::nullopt, context);
  return true;
}

ImageInfo DecodeStage::Info(const Example& example) const {
  const std::span<const uint8_t> encoded = Encoded(example);
  try {
    return ReadImageInfo(encoded, options_);
  } catch (const Error& error) {
    throw error.Within(feature_);
  }
}

void DecodeStage::ApplyBox(Example& example, const PixelBox& box,
                           const StageContext& context) const {
  Decode(example, box, context);
}

std::span<const uint8_t> DecodeStage::Encoded(const Example& example) const {
  const Tensor& tensor = example.Get(feature_);
  if (tensor.dtype() != DType::kBytes) {
    throw Error({.code = ErrorCode::kInvalidArgument,
                 .what = "the feature is not an encoded image (is it decoded twice?)",
                 .where = feature_,
                 .got = std::string(ToString(tensor.dtype())) + " " + tensor.shape().ToString(),
                 .wanted = "bytes [n]"});
  }
  return tensor.bytes();
}

void DecodeStage::Decode(Example& example, const std::optional<PixelBox>& box,
                         const StageContext& context) const {
  const std::span<const uint8_t> encoded = Encoded(example);
  try {
    bool is_truncated = false;
    example.Set(feature_, DecodeImage(encoded, options_, context.pool, box, &is_truncated));
    if (is_truncated) example.mutable_provenance().partial = true;
  } catch (const Error& error) {
    throw error.Within(feature_);
  }
}

extern const StageType kDecodeStage;
const StageType kDecodeStage{
    .name = "decode",
    .help = "Makes pixels of an encoded image (JPEG, PNG, WebP or BMP).",
    .sample = "color: RGB apply_orientation: true max_pixels: 100000000 accept_truncated: false",
    .validate = ValidateDecode,
    .make = MakeDecode,
};

}  // namespace echopipe::internal
