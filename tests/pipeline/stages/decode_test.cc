#include <cstring>
#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>

#include <echopipe/pipeline/stages/decode.h>
#include <echopipe/proto/pipeline.pb.h>
#include <echopipe/tests/pipeline/stages/decoding.h>

namespace echopipe::internal {

extern const StageType kDecodeStage;

namespace {

using echopipe::testing::MakeExif;
using echopipe::testing::MakeJpeg;
using echopipe::testing::MakePicture;
using echopipe::testing::MakePng;
using ::testing::HasSubstr;

class DecodeStageTest : public ::testing::Test {
 protected:
  Tensor Encoded(const std::string& image) {
    TensorBuilder builder(DType::kBytes, {static_cast<int64_t>(image.size())}, pool_);
    std::memcpy(builder.data(), image.data(), image.size());
    return std::move(builder).Finish();
  }

  Example ExampleOf(const std::string& image, const std::string& feature = "image") {
    Example example;
    example.Set(feature, Encoded(image));
    return example;
  }

  BufferPool pool_;
  StageContext context_{pool_, {}};
  proto::Stage message_;
};

// The field that validation names, or "".
std::string InvalidField(const proto::Stage& message) {
  try {
    kDecodeStage.validate(message);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.details().where;
  }
  return "";
}

TEST_F(DecodeStageTest, BytesBecomePixels) {
  const std::string png = MakePng(MakePicture(6, 4, 3));
  Example example = ExampleOf(png);
  const auto stage = kDecodeStage.make(message_, {});
  EXPECT_TRUE(stage->Apply(example, context_));
  EXPECT_EQ(example.Get("image").dtype(), DType::kUint8);
  EXPECT_EQ(example.Get("image").shape(), (Shape{4, 6, 3}));
  EXPECT_EQ(Pixels(example.Get("image")), Pixels(Decode(png)));
}

TEST_F(DecodeStageTest, FieldsReachTheDecoder) {
  proto::Decode& decode = *message_.mutable_decode();
  decode.set_feature("left");
  decode.set_color(proto::Decode::GRAY);
  decode.set_apply_orientation(false);
  Example example = ExampleOf(MakeJpeg(6, 4, {.exif = MakeExif(6)}), "left");
  DecodeStage(decode).Apply(example, context_);
  EXPECT_EQ(example.Get("left").shape(), (Shape{4, 6, 1}));
  EXPECT_EQ(example.Find("image"), nullptr);
}

TEST_F(DecodeStageTest, OrientationIsAppliedByDefault) {
  Example example = ExampleOf(MakeJpeg(6, 4, {.exif = MakeExif(6)}));
  DecodeStage(message_.decode()).Apply(example, context_);
  EXPECT_EQ(example.Get("image").shape(), (Shape{6, 4, 3}));
}

TEST_F(DecodeStageTest, EachCapHolds) {
  const auto code_with = [this](auto set) {
    proto::Decode decode;
    set(decode);
    Example example = ExampleOf(MakeJpeg(64, 64, {.progressive = true}));
    try {
      DecodeStage(decode).Apply(example, context_);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kInternal;
  };
  EXPECT_EQ(code_with([](auto& decode) { decode.set_max_pixels(4095); }),
            ErrorCode::kLimitExceeded);
  EXPECT_EQ(code_with([](auto& decode) { decode.set_max_bytes(99); }), ErrorCode::kLimitExceeded);
  EXPECT_EQ(code_with([](auto& decode) { decode.set_max_scans(2); }), ErrorCode::kLimitExceeded);
}

TEST_F(DecodeStageTest, BoxIsWhatApplyAndACutWouldGive) {
  const std::string jpeg =
      MakeJpeg(90, 70, {.h_sampling = 2, .v_sampling = 2, .exif = MakeExif(8)});
  const DecodeStage stage(message_.decode());
  Example whole = ExampleOf(jpeg);
  stage.Apply(whole, context_);
  Example example = ExampleOf(jpeg);
  const ImageInfo info = stage.Info(example);
  EXPECT_EQ(info.width, 70);
  EXPECT_EQ(info.height, 90);
  const PixelBox box{info.width - 41, 17, 41, 30};
  stage.ApplyBox(example, box, context_);
  EXPECT_EQ(example.Get("image").shape(), (Shape{30, 41, 3}));
  EXPECT_EQ(Pixels(example.Get("image")), Cut(whole.Get("image"), box));
}

TEST_F(DecodeStageTest, ErrorNamesTheFeatureAndLeavesTheExampleAsItWas) {
  Example example = ExampleOf("<html>");
  const DecodeStage stage(message_.decode());
  for (const auto& call : {std::function([&] { stage.Apply(example, context_); }),
                           std::function([&] { stage.Info(example); }), std::function([&] {
                             stage.ApplyBox(example, {0, 0, 1, 1}, context_);
                           })}) {
    try {
      call();
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
      EXPECT_THAT(error.details().where, HasSubstr("image"));
    }
  }
  EXPECT_EQ(example.Get("image").dtype(), DType::kBytes);
}

TEST_F(DecodeStageTest, DecodingTwiceIsInvalid) {
  Example example = ExampleOf(MakeJpeg(6, 4));
  const DecodeStage stage(message_.decode());
  stage.Apply(example, context_);
  try {
    stage.Apply(example, context_);
    ADD_FAILURE() << "decoded twice";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("uint8 [4, 6, 3]"));
  }
}

TEST_F(DecodeStageTest, ValidationNamesTheFieldOutOfRange) {
  EXPECT_EQ(InvalidField(message_), "");
  proto::Decode& decode = *message_.mutable_decode();
  decode.set_max_pixels(0);
  EXPECT_EQ(InvalidField(message_), "max_pixels");
  decode.set_max_pixels((uint64_t{1} << 32) + 1);
  EXPECT_EQ(InvalidField(message_), "max_pixels");
  decode.set_max_pixels(1);
  decode.set_max_bytes(0);
  EXPECT_EQ(InvalidField(message_), "max_bytes");
  decode.set_max_bytes(1);
  decode.set_max_scans(10'001);
  EXPECT_EQ(InvalidField(message_), "max_scans");
  decode.set_max_scans(1);
  EXPECT_EQ(InvalidField(message_), "");
  decode.set_color(static_cast<proto::Decode::Color>(7));
  EXPECT_EQ(InvalidField(message_), "color");
}

TEST_F(DecodeStageTest, SampleIsAValidMessage) {
  proto::Stage sample;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(std::string(kDecodeStage.sample),
                                                            sample.mutable_decode()));
  EXPECT_EQ(InvalidField(sample), "");
}

}  // namespace
}  // namespace echopipe::internal
