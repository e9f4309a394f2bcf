#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include <opencv2/imgproc.hpp>

#include <echopipe/base/error.h>
#include <echopipe/pipeline/stages/pixel_kernels.h>
#include <echopipe/pipeline/stages/pixels.h>

namespace echopipe::internal {
namespace {

// cv::resize deals rows to OpenCV's own threads if the output has 1.5 * 2^16 pixels or more and
// more than one row. Only the whole program's setting turns that off, and it is not ours to change.
constexpr int64_t kMaxSerialPixels = (3 << 15) - 1;

int Channels(const Tensor& pixels) { return static_cast<int>(pixels.shape()[2]); }

// A header over the box's pixels; OpenCV knows no const data.
cv::Mat Header(const uint8_t* data, int picture_width, int channels, const PixelBox& box) {
  const size_t stride = static_cast<size_t>(picture_width) * static_cast<size_t>(channels);
  const size_t offset = static_cast<size_t>(box.y) * stride +
                        static_cast<size_t>(box.x) * static_cast<size_t>(channels);
  return cv::Mat(box.height, box.width, CV_8UC(channels), const_cast<uint8_t*>(data) + offset,
                 stride);
}

int ToOpenCv(proto::Interpolation interpolation) {
  switch (interpolation) {
    case proto::NEAREST:
      return cv::INTER_NEAREST;
    case proto::AREA:
      return cv::INTER_AREA;
    case proto::BICUBIC:
      return cv::INTER_CUBIC;
    default:
      return cv::INTER_LINEAR;
  }
}

// Resizes along x alone: bands of rows are independent, and each is small enough.
void ResizeWidth(const cv::Mat& from, cv::Mat& to, int interpolation) {
  const int rows = static_cast<int>(std::max<int64_t>(1, kMaxSerialPixels / to.cols));
  for (int y = 0; y < to.rows; y += rows) {
    const cv::Range band(y, std::min(y + rows, to.rows));
    cv::Mat out = to.rowRange(band);
    cv::resize(from.rowRange(band), out, out.size(), 0, 0, interpolation);
  }
}

// Resizes along y alone, in bands of columns.
void ResizeHeight(const cv::Mat& from, cv::Mat& to, int interpolation) {
  const int columns = static_cast<int>(std::max<int64_t>(1, kMaxSerialPixels / to.rows));
  for (int x = 0; x < to.cols; x += columns) {
    const cv::Range band(x, std::min(x + columns, to.cols));
    cv::Mat out = to.colRange(band);
    cv::resize(from.colRange(band), out, out.size(), 0, 0, interpolation);
  }
}

// One axis after the other, that one first which makes the smaller picture in between.
void ResizeInBands(const cv::Mat& from, cv::Mat& to, int interpolation, BufferPool& pool) {
  const bool width_first = int64_t{from.rows} * to.cols <= int64_t{to.rows} * from.cols;
  const int rows = width_first ? from.rows : to.rows;
  const int columns = width_first ? to.cols : from.cols;
  const auto between =
      pool.Allocate(static_cast<size_t>(rows) * static_cast<size_t>(columns) * from.elemSize());
  cv::Mat middle(rows, columns, from.type(), between->data());
  if (width_first) {
    ResizeWidth(from, middle, interpolation);
    ResizeHeight(middle, to, interpolation);
  } else {
    ResizeHeight(from, middle, interpolation);
    ResizeWidth(middle, to, interpolation);
  }
}

}  // namespace

void CheckSpecSide(std::string_view field, uint32_t value) {
  if (value >= 1 && value <= kMaxSpecSide) return;
  ThrowInvalidField(field, "a size in pixels is out of range", std::to_string(value),
                    "1.." + std::to_string(kMaxSpecSide));
}

void CheckInterpolation(proto::Interpolation interpolation) {
  if (proto::Interpolation_IsValid(interpolation)) return;
  ThrowInvalidField("interpolation", "unknown value",
                    std::to_string(static_cast<int>(interpolation)),
                    "BILINEAR, NEAREST, AREA or BICUBIC");
}

PixelBox WholeOf(const Tensor& pixels) {
  return {.x = 0,
          .y = 0,
          .width = static_cast<int>(pixels.shape()[1]),
          .height = static_cast<int>(pixels.shape()[0])};
}

Tensor Crop(const Tensor& pixels, const PixelBox& box, BufferPool& pool) {
  const PixelBox whole = WholeOf(pixels);
  if (box == whole) return pixels;
  TensorBuilder builder(DType::kUint8, {box.height, box.width, pixels.shape()[2]}, pool);
  const size_t channels = static_cast<size_t>(pixels.shape()[2]);
  const size_t stride = static_cast<size_t>(box.width) * channels;
  const int left = std::clamp(-box.x, 0, box.width);
  const int right = std::clamp(whole.width - box.x, left, box.width);
  const size_t before = static_cast<size_t>(left) * channels;
  const size_t inside = static_cast<size_t>(right - left) * channels;
  uint8_t* out = builder.data();
  for (int y = box.y; y < box.y + box.height; ++y, out += stride) {
    if (y < 0 || y >= whole.height || inside == 0) {
      std::memset(out, 0, stride);
      continue;
    }
    const size_t first = static_cast<size_t>(y) * static_cast<size_t>(whole.width) +
                         static_cast<size_t>(box.x + left);
    std::memset(out, 0, before);
    std::memcpy(out + before, pixels.bytes().data() + first * channels, inside);
    std::memset(out + before + inside, 0, stride - before - inside);
  }
  return std::move(builder).Finish();
}

Tensor Resize(const Tensor& pixels, const PixelBox& box, int height, int width,
              proto::Interpolation interpolation, BufferPool& pool) {
  if (box.height == height && box.width == width) return Crop(pixels, box, pool);
  const int channels = Channels(pixels);
  TensorBuilder builder(DType::kUint8, {height, width, channels}, pool);
  const cv::Mat from =
      Header(pixels.bytes().data(), static_cast<int>(pixels.shape()[1]), channels, box);
  cv::Mat to = Header(builder.data(), width, channels, {.width = width, .height = height});
  if (int64_t{height} * width <= kMaxSerialPixels) {
    cv::resize(from, to, to.size(), 0, 0, ToOpenCv(interpolation));
  } else {
    ResizeInBands(from, to, ToOpenCv(interpolation), pool);
  }
  return std::move(builder).Finish();
}

Tensor Mirror(const Tensor& pixels, BufferPool& pool) {
  TensorBuilder builder(DType::kUint8, pixels.shape(), pool);
  const size_t width = static_cast<size_t>(pixels.shape()[1]);
  const size_t stride = width * static_cast<size_t>(pixels.shape()[2]);
  const uint8_t* in = pixels.bytes().data();
  uint8_t* out = builder.data();
  for (int64_t y = 0; y < pixels.shape()[0]; ++y, in += stride, out += stride) {
    if (Channels(pixels) == 3) {
      MirrorRow3(in, width, out);
    } else {
      std::reverse_copy(in, in + width, out);
    }
  }
  return std::move(builder).Finish();
}

}  // namespace echopipe::internal
