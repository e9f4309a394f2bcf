#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include <jpeglib.h>

#include <echopipe/base/error.h>
#include <echopipe/bench/demo_jpeg.h>

namespace echopipe {
namespace {

// libjpeg's state and output; freed however encoding ends.
struct Encoder {
  Encoder() {
    info.err = jpeg_std_error(&errors);
    errors.error_exit = [](j_common_ptr common) {
      std::longjmp(static_cast<Encoder*>(common->client_data)->on_error, 1);
    };
    errors.output_message = [](j_common_ptr) {};
    info.client_data = this;
  }
  ~Encoder() {
    jpeg_destroy_compress(&info);
    std::free(bytes);
  }
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  // False if libjpeg gave up. No object with a destructor lives between setjmp and longjmp.
  bool Encode(const uint8_t* pixels, const DemoJpegOptions& options) {
    if (setjmp(on_error) != 0) return false;
    jpeg_create_compress(&info);
    info.client_data = this;
    jpeg_mem_dest(&info, &bytes, &size);
    info.image_width = static_cast<JDIMENSION>(options.width);
    info.image_height = static_cast<JDIMENSION>(options.height);
    info.input_components = 3;
    info.in_color_space = JCS_RGB;
    jpeg_set_defaults(&info);
    jpeg_set_quality(&info, options.quality, TRUE);
    jpeg_start_compress(&info, TRUE);
    while (info.next_scanline < info.image_height) {
      auto* row = const_cast<JSAMPROW>(pixels) +
                  static_cast<size_t>(info.next_scanline) * info.image_width * 3;
      jpeg_write_scanlines(&info, &row, 1);
    }
    jpeg_finish_compress(&info);
    return true;
  }

  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  std::jmp_buf on_error{};
  unsigned char* bytes = nullptr;
  unsigned long size = 0;  // NOLINT(google-runtime-int): libjpeg's type
};

}  // namespace

std::string EncodeDemoJpeg(std::span<const uint8_t> pixels, const DemoJpegOptions& options) {
  Encoder encoder;
  if (!encoder.Encode(pixels.data(), options)) {
    throw Error({.code = ErrorCode::kInternal, .what = "libjpeg cannot encode a demo picture"});
  }
  return {reinterpret_cast<const char*>(encoder.bytes), encoder.size};
}

}  // namespace echopipe
