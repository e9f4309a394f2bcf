#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <echopipe/pipeline/example.h>
#include <echopipe/pipeline/stages/image_codec.h>
#include <echopipe/pipeline/stages/stage.h>

namespace echopipe::proto {
class Decode;
}

namespace echopipe::internal {

/// Makes pixels of an encoded image: bytes [n] become [H, W, C] uint8.
///
/// In front of a CropStage on the same feature, Apply() may be replaced by Info(), the crop's
/// Box() and ApplyBox(): the pixels are the same, for less work.
///
/// Errors   See DecodeImage(): typed by what is wrong; pixels for missing data only where the
///          message accepts them, and then the example's provenance says so.
///          A truncated JPEG is bad whatever the box; but ApplyBox() does not notice corrupt data
///          below its box (in a JPEG of one scan), which Apply() would.
/// Threads  Immutable: any thread.
/// Cost     Info() reads the header alone.
class DecodeStage final : public Stage {
 public:
  /// Precondition: the message is valid.
  explicit DecodeStage(const proto::Decode& message);

  std::string_view feature() const { return feature_; }
  bool Apply(Example& example, const StageContext& context) const override;

  /// The header of the example's image; its width and height are those that Apply() would give.
  ImageInfo Info(const Example& example) const;
  /// Apply(), then the cut of `box` from the pixels.
  void ApplyBox(Example& example, const PixelBox& box, const StageContext& context) const;

 private:
  std::span<const uint8_t> Encoded(const Example& example) const;
  void Decode(Example& example, const std::optional<PixelBox>& box,
              const StageContext& context) const;

  std::string feature_;
  DecodeOptions options_;
};

}  // namespace echopipe::internal
