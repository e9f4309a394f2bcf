#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <jerror.h>
#include <jpeglib.h>

#include <echopipe/base/error.h>
#include <echopipe/pipeline/stages/image_formats.h>

namespace echopipe::internal {
namespace {

constexpr uint8_t kEndOfImage = 0xd9;

// ---- The header, read without libjpeg ----

bool HasPayload(int marker) { return marker != 0x01 && !(marker >= 0xd0 && marker <= kEndOfImage); }

// One marker segment: its code and what follows its length. Markers without a length have none.
struct Segment {
  int marker = 0;
  std::span<const uint8_t> payload;
};

// Walks the segments before the first scan. Bytes between segments are passed over, as libjpeg
// does.
class SegmentWalker {
 public:
  explicit SegmentWalker(std::span<const uint8_t> bytes) : rest_(bytes) {}

  Segment Next() {
    Segment segment{.marker = NextMarker(), .payload = {}};
    if (HasPayload(segment.marker)) segment.payload = TakePayload();
    return segment;
  }

 private:
  int NextMarker() {
    uint8_t previous = 0;
    while (!rest_.empty()) {
      const uint8_t byte = rest_.front();
      rest_ = rest_.subspan(1);
      if (previous == 0xff && byte != 0xff && byte != 0) return byte;
      previous = byte;
    }
    ThrowEndsInHeader();
  }

  std::span<const uint8_t> TakePayload() {
    if (rest_.size() < 2) ThrowEndsInHeader();
    const size_t length = BigEndian16(rest_.data());
    if (length < 2) ThrowImageError(ErrorCode::kCorrupt, "a JPEG segment's length is below 2");
    if (rest_.size() < length) ThrowEndsInHeader();
    const auto payload = rest_.subspan(2, length - 2);
    rest_ = rest_.subspan(length);
    return payload;
  }

  [[noreturn]] static void ThrowEndsInHeader() {
    ThrowImageError(ErrorCode::kTruncated, "the JPEG ends in its header");
  }

  std::span<const uint8_t> rest_;
};

bool IsFrameHeader(int marker) {
  return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

std::string Hex(int marker) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "0xFF%02X", static_cast<unsigned>(marker));
  return text.data();
}

// Baseline, extended, progressive; the last two also with arithmetic coding.
bool IsProcessRead(int marker) { return marker <= 0xc2 || marker == 0xc9 || marker == 0xca; }

ImageInfo ReadFrameHeader(const Segment& segment) {
  if (!IsProcessRead(segment.marker)) {
    ThrowImageError(ErrorCode::kUnsupported, "lossless and hierarchical JPEG are not read",
                    "frame type " + Hex(segment.marker));
  }
  if (segment.payload.size() < 6) {
    ThrowImageError(ErrorCode::kCorrupt, "the JPEG frame header is too short");
  }
  const uint8_t* frame = segment.payload.data();
  ImageInfo info;
  info.stored_height = static_cast<int>(BigEndian16(frame + 1));
  info.stored_width = static_cast<int>(BigEndian16(frame + 3));
  info.channels = frame[5];
  if (frame[0] != 8) {
    ThrowImageError(ErrorCode::kUnsupported, "only JPEG of 8 bits is read",
                    std::to_string(frame[0]) + " bits");
  }
  if (info.stored_height == 0) {
    ThrowImageError(ErrorCode::kUnsupported, "JPEG that tells its height only later is not read");
  }
  if (info.stored_width == 0) ThrowImageError(ErrorCode::kCorrupt, "the JPEG has no columns");
  if (info.channels != 1 && info.channels != 3 && info.channels != 4) {
    ThrowImageError(ErrorCode::kUnsupported, "unusual number of JPEG components",
                    std::to_string(info.channels), "1, 3 or 4");
  }
  return info;
}

// The TIFF structure in an APP1 segment, or nothing.
std::span<const uint8_t> ExifOf(const Segment& segment) {
  using namespace std::string_view_literals;
  constexpr std::string_view kName = "Exif\0\0"sv;
  const bool is_exif = segment.marker == 0xe1 && segment.payload.size() >= kName.size() &&
                       std::memcmp(segment.payload.data(), kName.data(), kName.size()) == 0;
  return is_exif ? segment.payload.subspan(kName.size()) : std::span<const uint8_t>();
}

// Where scans end: behind an end marker, in front of a segment that is cut off, or with the bytes.
struct ScansEnd {
  enum class Kind { kMarker, kSegment, kBytes };

  size_t offset = 0;
  Kind kind = Kind::kBytes;
};

// `scans` begins with a scan's data, in which every 0xFF is stuffed with a zero or begins a marker.
ScansEnd FindScansEnd(std::span<const uint8_t> scans) {
  size_t at = 0;
  for (;;) {
    const auto* marker = static_cast<const uint8_t*>(
        at < scans.size() ? std::memchr(&scans[at], 0xff, scans.size() - at) : nullptr);
    if (marker == nullptr) return {.offset = scans.size()};
    const auto begin = static_cast<size_t>(marker - scans.data());
    at = begin + 1;
    if (at == scans.size()) return {.offset = begin};
    if (scans[at] == 0xff) continue;  // the next one may begin the marker
    if (scans[at] == kEndOfImage) return {at + 1, ScansEnd::Kind::kMarker};
    const int code = scans[at++];
    if (code == 0 || !HasPayload(code)) continue;
    const size_t length = scans.size() - at < 2 ? 2 : BigEndian16(&scans[at]);
    if (scans.size() - at < length) return {begin, ScansEnd::Kind::kSegment};
    at += length;
  }
}

// ---- The pixels, by libjpeg ----

// libjpeg's errors, kept until the C code has been left by longjmp.
struct JpegErrors : jpeg_error_mgr {
  std::jmp_buf jump;
  ErrorCode code = ErrorCode::kCorrupt;
  std::array<char, JMSG_LENGTH_MAX> message{};
  bool accepts_truncated = false;
  bool is_truncated = false;
  bool ends_in_segment = false;  // the scans before it must be whole
};

[[noreturn]] void Leave(j_common_ptr common, ErrorCode code) {
  auto* errors = static_cast<JpegErrors*>(common->err);
  errors->code = code;
  errors->format_message(common, errors->message.data());
  std::longjmp(errors->jump, 1);
}

ErrorCode CodeOfError(int message) {
  switch (message) {
    case JERR_INPUT_EMPTY:
    case JERR_INPUT_EOF:
      return ErrorCode::kTruncated;
    case JERR_ARITH_NOTIMPL:
    case JERR_BAD_PRECISION:
    case JERR_CCIR601_NOTIMPL:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
    case JERR_NOTIMPL:
    case JERR_NOT_COMPILED:
    case JERR_SOF_UNSUPPORTED:
      return ErrorCode::kUnsupported;
    case JERR_IMAGE_TOO_BIG:
    case JERR_NO_BACKING_STORE:  // beyond max_memory_to_use
    case JERR_WIDTH_OVERFLOW:
      return ErrorCode::kLimitExceeded;
    case JERR_OUT_OF_MEMORY:
      return ErrorCode::kResourceExhausted;
    default:
      return ErrorCode::kCorrupt;
  }
}

// Warnings after which every pixel is still what the file says.
bool IsHarmless(int message) {
  switch (message) {
    case JWRN_ADOBE_XFORM:      // an unknown transform is taken as YCbCr or YCCK
    case JWRN_BOGUS_ICC:        // profiles are not used
    case JWRN_EXTRANEOUS_DATA:  // bytes between a segment's end and the next marker
    case JWRN_JFIF_MAJOR:       // a later revision of JFIF
    case JWRN_NOT_SEQUENTIAL:   // spectral selection in a baseline scan, which has none
      return true;
    default:
      return false;
  }
}

ErrorCode CodeOfWarning(j_common_ptr common) {
  const int message = common->err->msg_code;
  const bool at_end = reinterpret_cast<j_decompress_ptr>(common)->unread_marker == kEndOfImage;
  if (message == JWRN_JPEG_EOF) return ErrorCode::kTruncated;
  // In the midst of a block, or where a restart marker was due.
  if (at_end && (message == JWRN_HIT_MARKER || message == JWRN_MUST_RESYNC)) {
    const bool ends_in_segment = static_cast<const JpegErrors*>(common->err)->ends_in_segment;
    return ends_in_segment ? ErrorCode::kCorrupt : ErrorCode::kTruncated;
  }
  return ErrorCode::kCorrupt;
}

// Want of bytes alone is none of data: bits of the last ones may be left.
bool HasFirstRow(j_common_ptr common) {
  const auto* decoder = reinterpret_cast<j_decompress_ptr>(common);
  return common->err->msg_code == JWRN_JPEG_EOF || decoder->input_scan_number > 1 ||
         decoder->input_iMCU_row > 0;
}

void OnWarning(j_common_ptr common) {
  if (IsHarmless(common->err->msg_code)) return;
  auto* errors = static_cast<JpegErrors*>(common->err);
  const ErrorCode code = CodeOfWarning(common);
  if (code == ErrorCode::kTruncated && errors->accepts_truncated && HasFirstRow(common)) {
    errors->is_truncated = true;
  } else {
    Leave(common, code);
  }
}

extern "C" {

void OnJpegError(j_common_ptr common) { Leave(common, CodeOfError(common->err->msg_code)); }

// level: -1 for a warning, else a trace message.
void OnJpegMessage(j_common_ptr common, int level) {
  if (level < 0) OnWarning(common);
}

void PrintNothing(j_common_ptr) {}

void OnJpegProgress(j_common_ptr common);

}  // extern "C"

struct ScanLimit : jpeg_progress_mgr {
  uint64_t max_scans = 0;
};

void OnJpegProgress(j_common_ptr common) {
  const uint64_t max_scans = static_cast<const ScanLimit*>(common->progress)->max_scans;
  const int scans = reinterpret_cast<j_decompress_ptr>(common)->input_scan_number;
  if (static_cast<uint64_t>(scans) <= max_scans) return;
  auto* errors = static_cast<JpegErrors*>(common->err);
  errors->code = ErrorCode::kLimitExceeded;
  std::snprintf(errors->message.data(), errors->message.size(), "more scans than max_scans (%llu)",
                static_cast<unsigned long long>(max_scans));
  std::longjmp(errors->jump, 1);
}

// R = round((255 - C)(255 - K) / 255), G and B likewise; `flip` is 255 for plain values and 0 for
// Adobe's, which are stored as 255 - C. 255 is odd, so that no quotient ends in a half; the shifts
// are that rounding division, exact for all products of two bytes.
void CmykToRgb(const uint8_t* cmyk, size_t pixels, uint8_t flip, uint8_t* rgb) {
  for (size_t i = 0; i < pixels; ++i) {
    const uint32_t black = cmyk[4 * i + 3] ^ flip;
    for (size_t c = 0; c < 3; ++c) {
      const uint32_t product = (cmyk[4 * i + c] ^ flip) * black + 128;
      rgb[3 * i + c] = static_cast<uint8_t>((product + (product >> 8)) >> 8);
    }
  }
}

// One libjpeg decompressor. Nothing with a destructor lives in a frame that a longjmp crosses:
// every call into libjpeg is a lambda of plain calls given to Guard().
class JpegReader {
 public:
  JpegReader(std::span<const uint8_t> bytes, const DecodeOptions& options)
      : bytes_(bytes), options_(options) {
    jpeg_std_error(&errors_);
    errors_.error_exit = OnJpegError;
    errors_.emit_message = OnJpegMessage;
    errors_.output_message = PrintNothing;
    decoder_.err = &errors_;
    progress_.progress_monitor = OnJpegProgress;
    progress_.max_scans = options.max_scans;
  }
  ~JpegReader() { jpeg_destroy_decompress(&decoder_); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  void ReadHeader(const ImageInfo& info) {
    Guard([this] {
      jpeg_create_decompress(&decoder_);
      decoder_.mem->max_memory_to_use = MaxMemory();
      decoder_.progress = &progress_;
      jpeg_mem_src(&decoder_, bytes_.data(), bytes_.size());
      jpeg_read_header(&decoder_, TRUE);
    });
    if (decoder_.image_width != static_cast<JDIMENSION>(info.stored_width) ||
        decoder_.image_height != static_cast<JDIMENSION>(info.stored_height)) {
      ThrowImageError(ErrorCode::kInternal, "JPEG: the size was read in two ways");
    }
    if (options_.accept_truncated && decoder_.arith_code == FALSE) {
      AcceptTruncated();
    } else {
      CheckHasEnd();
    }
  }

  // Takes in all scans of a file that has several.
  void Start() {
    const bool inks =
        decoder_.jpeg_color_space == JCS_CMYK || decoder_.jpeg_color_space == JCS_YCCK;
    const bool gray = options_.color == DecodeOptions::Color::kGray;
    decoder_.out_color_space = inks ? JCS_CMYK : gray ? JCS_GRAYSCALE : JCS_RGB;
    decoder_.do_block_smoothing = FALSE;
    Guard([this] { jpeg_start_decompress(&decoder_); });
  }

  /// The data so far ended early.
  bool is_truncated() const { return errors_.is_truncated; }

  void ReadBox(const PixelBox& box, BufferPool& pool, uint8_t* out) {
    const Columns columns = CropColumns(box);
    Guard([this, &box] {
      if (box.y > 0) jpeg_skip_scanlines(&decoder_, static_cast<JDIMENSION>(box.y));
    });
    const bool straight = decoder_.out_color_space != JCS_CMYK && columns.count == box.width;
    if (straight) {
      ReadRows(out, RowBytes(box), box.height);
      return;
    }
    const size_t stride =
        static_cast<size_t>(columns.count) * static_cast<size_t>(decoder_.output_components);
    const auto strip = pool.Allocate(stride * kStripRows);
    for (int y = 0; y < box.height; y += kStripRows) {
      const int rows = std::min(kStripRows, box.height - y);
      ReadRows(strip->data(), stride, rows);
      for (int i = 0; i < rows; ++i) {
        WriteRow(strip->data() + static_cast<size_t>(i) * stride, box.x - columns.first, box.width,
                 out + static_cast<size_t>(y + i) * RowBytes(box));
      }
    }
  }

 private:
  static constexpr int kStripRows = 16;

  struct Columns {
    int first = 0;
    int count = 0;
  };

  template <class Calls>
  void Guard(Calls calls) {
    static_assert(std::is_trivially_destructible_v<Calls>);
    if (setjmp(errors_.jump) != 0) {
      ThrowImageError(errors_.code, std::string("JPEG: ") + errors_.message.data());
    }
    calls();
  }

  // Coefficients take two bytes a sample, in up to four components, padded to whole blocks.
  long MaxMemory() const {
    constexpr uint64_t kBase = uint64_t{64} << 20;
    const uint64_t pixels = std::min<uint64_t>(options_.max_pixels, uint64_t{1} << 32);
    return static_cast<long>(kBase + 8 * pixels);
  }

  // In a scan's data every 0xFF is stuffed, so that an end marker there is one. The first scan
  // begins where the header ended; a thumbnail's end marker lies before it.
  void CheckHasEnd() const {
    const auto scans = bytes_.last(decoder_.src->bytes_in_buffer);
    for (size_t at = scans.size(); at >= 2; --at) {
      if (scans[at - 1] == kEndOfImage && scans[at - 2] == 0xff) return;
    }
    ThrowImageError(ErrorCode::kTruncated, "the JPEG has no end marker");
  }

  // From here on the end of the data is the picture's end, unless that is marked: then data that
  // end early are damaged ones. A segment between scans that is cut off is left out: libjpeg would
  // go on in it with the end marker that it makes up.
  void AcceptTruncated() {
    const auto scans = bytes_.last(decoder_.src->bytes_in_buffer);
    const ScansEnd end = FindScansEnd(scans);
    decoder_.src->bytes_in_buffer = end.offset;
    errors_.is_truncated = end.kind != ScansEnd::Kind::kMarker;
    errors_.accepts_truncated = errors_.is_truncated;
    errors_.ends_in_segment = end.kind == ScansEnd::Kind::kSegment;
  }

  size_t RowBytes(const PixelBox& box) const {
    return static_cast<size_t>(box.width) * static_cast<size_t>(ChannelsOf(options_.color));
  }

  // Restricts decoding to the columns of the box. Smooth upsampling looks one chroma sample to
  // each side and takes the first and last columns for the picture's edges; so at least one sample
  // more is decoded on both sides. The ends lie on multiples of the widest MCU.
  Columns CropColumns(const PixelBox& box) {
    const int width = static_cast<int>(decoder_.output_width);
    const int margin = decoder_.max_h_samp_factor;
    const int step = DCTSIZE * decoder_.max_h_samp_factor;
    const int first = std::max(0, box.x - margin) / step * step;
    const int past = box.x + box.width + margin;
    const int last = std::min(width, (past + step - 1) / step * step);
    auto offset = static_cast<JDIMENSION>(first);
    auto count = static_cast<JDIMENSION>(last - first);
    if (last - first < width) {
      Guard([this, &offset, &count] { jpeg_crop_scanline(&decoder_, &offset, &count); });
    }
    return {static_cast<int>(offset), static_cast<int>(count)};
  }

  void ReadRows(uint8_t* to, size_t stride, int rows) {
    Guard([this, to, stride, rows] {
      std::array<JSAMPROW, kStripRows> pointers;
      for (int y = 0; y < rows;) {
        const int wanted = std::min(kStripRows, rows - y);
        for (int i = 0; i < wanted; ++i) {
          pointers[static_cast<size_t>(i)] = to + static_cast<size_t>(y + i) * stride;
        }
        y += static_cast<int>(
            jpeg_read_scanlines(&decoder_, pointers.data(), static_cast<JDIMENSION>(wanted)));
      }
    });
  }

  // Writes `width` pixels, from the given column on.
  void WriteRow(uint8_t* row, int from_column, int width, uint8_t* out) const {
    const auto components = static_cast<size_t>(decoder_.output_components);
    const auto pixels = static_cast<size_t>(width);
    uint8_t* from = row + static_cast<size_t>(from_column) * components;
    if (decoder_.out_color_space != JCS_CMYK) {
      std::memcpy(out, from, pixels * components);
      return;
    }
    const uint8_t flip = decoder_.saw_Adobe_marker ? 0 : 255;
    const bool gray = options_.color == DecodeOptions::Color::kGray;
    CmykToRgb(from, pixels, flip, gray ? from : out);
    if (gray) RgbToGray(from, pixels, out);
  }

  std::span<const uint8_t> bytes_;
  const DecodeOptions& options_;
  JpegErrors errors_{};
  ScanLimit progress_{};
  jpeg_decompress_struct decoder_{};
};

}  // namespace

ImageInfo ReadJpegInfo(std::span<const uint8_t> bytes) {
  if (bytes.size() < 2) ThrowImageError(ErrorCode::kTruncated, "the JPEG ends in its header");
  SegmentWalker walker(bytes.subspan(2));
  int orientation = 1;
  for (;;) {
    const Segment segment = walker.Next();
    if (const auto exif = ExifOf(segment); !exif.empty()) orientation = ExifOrientation(exif);
    if (segment.marker == 0xda || segment.marker == kEndOfImage) {
      ThrowImageError(ErrorCode::kCorrupt, "the JPEG has no frame header");
    }
    if (IsFrameHeader(segment.marker)) {
      ImageInfo info = ReadFrameHeader(segment);
      info.orientation = orientation;
      return info;
    }
  }
}

Tensor DecodeJpeg(std::span<const uint8_t> bytes, const ImageInfo& info,
                  const DecodeOptions& options, const PixelBox& box, BufferPool& pool,
                  bool* is_truncated) {
  JpegReader reader(bytes, options);
  reader.ReadHeader(info);
  reader.Start();
  TensorBuilder out(DType::kUint8, {box.height, box.width, ChannelsOf(options.color)}, pool);
  reader.ReadBox(box, pool, out.data());
  *is_truncated = reader.is_truncated();
  return std::move(out).Finish();
}

}  // namespace echopipe::internal
