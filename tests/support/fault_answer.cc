#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <ctime>
#include <optional>
#include <string_view>
#include <system_error>

#include <time.h>

#include <echopipe/tests/support/fault_answer.h>

namespace echopipe::testing {
namespace {

constexpr std::string_view kBoundary = "THIS_STRING_SEPARATES";
constexpr const char* kDateFormat = "%a, %d %b %Y %H:%M:%S GMT";

// [begin, end) of an object. It cannot be served if it begins at or after the object's end.
struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = 0;
};

std::optional<uint64_t> ParseNumber(std::string_view text) {
  uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return number;
}

// "bytes=2-5", "bytes=2-" or "bytes=-3". Nothing for what is to be ignored: several ranges, too.
std::optional<ByteRange> ParseRange(std::string_view text, uint64_t size) {
  constexpr std::string_view kUnit = "bytes=";
  const size_t dash = text.find('-');
  if (!text.starts_with(kUnit) || dash == std::string_view::npos) return std::nullopt;
  const std::string_view first = text.substr(kUnit.size(), dash - kUnit.size());
  const std::optional<uint64_t> last = ParseNumber(text.substr(dash + 1));
  if (first.empty() && last) return ByteRange{size - std::min(size, *last), size};
  const std::optional<uint64_t> begin = ParseNumber(first);
  if (!begin || (!last && dash + 1 < text.size()) || (last && *last < *begin)) return std::nullopt;
  return ByteRange{*begin, last ? std::min(size, *last + 1) : size};
}

// By If-Range: what has changed is sent whole.
std::optional<ByteRange> WantedRange(const HttpHeaders& headers, const ServedObject& object,
                                     const Fault& fault) {
  const std::string version = FindHeader(headers, "if-range");
  const bool changed =
      !version.empty() && version != object.etag && version != object.last_modified;
  if (fault.form == Fault::Form::kWholeObject) return std::nullopt;
  if (changed && !fault.ignores_conditions) return std::nullopt;
  return ParseRange(FindHeader(headers, "range"), object.size);
}

// A list of ETags, or "*" for any.
bool Matches(std::string_view list, const std::string& etag) {
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    std::string_view one = list.substr(0, comma);
    list.remove_prefix(std::min(comma + 1, list.size()));
    while (one.starts_with(' ')) one.remove_prefix(1);
    while (one.ends_with(' ')) one.remove_suffix(1);
    if (one == "*" || one == etag) return true;
  }
  return false;
}

std::optional<int64_t> ParseDate(const std::string& text) {
  std::tm time = {};
  const char* end = strptime(text.c_str(), kDateFormat, &time);
  if (end == nullptr || *end != '\0') return std::nullopt;
  return timegm(&time);
}

bool ConditionsHold(const HttpHeaders& headers, const ServedObject& object) {
  const std::string etags = FindHeader(headers, "if-match");
  if (!etags.empty()) return Matches(etags, object.etag);
  const std::optional<int64_t> since = ParseDate(FindHeader(headers, "if-unmodified-since"));
  return !since || *ParseDate(object.last_modified) <= *since;
}

uint64_t Shifted(uint64_t place, int64_t shift, uint64_t low, uint64_t high) {
  const auto shifted = static_cast<int64_t>(place) + shift;
  return static_cast<uint64_t>(
      std::clamp(shifted, static_cast<int64_t>(low), static_cast<int64_t>(high)));
}

std::string ContentRange(const AnswerBody& body) {
  return "bytes " + std::to_string(body.begin) + "-" + std::to_string(body.end - 1) + "/" +
         std::to_string(body.object.size);
}

std::string_view Reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 206:
      return "Partial Content";
    case 404:
      return "Not Found";
    case 412:
      return "Precondition Failed";
    case 416:
      return "Range Not Satisfiable";
    default:
      return "Status";
  }
}

// Writes the head line by line; empty values leave their headers out.
class HeadWriter {
 public:
  explicit HeadWriter(int status) {
    text_ = "HTTP/1.1 " + std::to_string(status) + " " + std::string(Reason(status)) + "\r\n";
  }
  void Add(std::string_view name, const std::string& value) {
    if (!value.empty()) text_ += std::string(name) + ": " + value + "\r\n";
  }
  std::string Finish() { return text_ + "\r\n"; }

 private:
  std::string text_;
};

// What an answer has apart from its length.
struct Content {
  int status = 0;
  std::string type = "text/plain";
  std::string range = {};
  std::string etag = {};
  std::string last_modified = {};
  std::string accept_ranges = {};
  AnswerBody body = {};
};

Content StatusContent(int status, const std::string& text) {
  Content content{.status = status};
  content.body.before = text;
  return content;
}

void AsMultipart(Content* content) {
  AnswerBody& body = content->body;
  const std::string boundary(kBoundary);
  body.before = "--" + boundary + "\r\nContent-Type: " + content->type +
                "\r\nContent-Range: " + content->range + "\r\n\r\n";
  body.after = "\r\n--" + boundary + "--\r\n";
  content->type = "multipart/byteranges; boundary=" + boundary;
  content->range.clear();
}

void TakeRange(ByteRange range, const Fault& fault, Content* content) {
  AnswerBody& body = content->body;
  const uint64_t size = body.object.size;
  body.begin = Shifted(range.begin, fault.begin_shift, 0, size);
  body.end = Shifted(range.end, fault.end_shift, body.begin, size);
  content->status = 206;
  content->range = ContentRange(body);
  if (fault.form == Fault::Form::kMultipart) AsMultipart(content);
}

Content ObjectContent(const HttpHeaders& headers, const ServedObject& object, const Fault& fault) {
  std::optional<ByteRange> range = WantedRange(headers, object, fault);
  if (range && range->begin >= object.size) {
    Content content = StatusContent(416, "416\n");
    content.range = "bytes */" + std::to_string(object.size);
    return content;
  }
  Content content{.status = 200,
                  .type = object.content_type,
                  .etag = object.etag,
                  .last_modified = object.last_modified};
  if (fault.form != Fault::Form::kWholeObject) content.accept_ranges = "bytes";
  content.body = {.before = {}, .object = object, .begin = 0, .end = object.size, .after = {}};
  if (!range && fault.form == Fault::Form::kMultipart) range = ByteRange{0, object.size};
  if (range) TakeRange(*range, fault, &content);
  return content;
}

Content TrueContent(const HttpHeaders& headers, const ServedObject* object, const Fault& fault) {
  if (fault.status) return StatusContent(*fault.status, fault.status_body);
  if (object == nullptr) return StatusContent(404, "404\n");
  if (!fault.ignores_conditions && !ConditionsHold(headers, *object))
    return StatusContent(412, "412\n");
  return ObjectContent(headers, *object, fault);
}

std::string MakeHead(const Content& content, const Fault& fault, bool closes) {
  HeadWriter head(content.status);
  head.Add("Content-Type", content.type);
  if (fault.length == Fault::Length::kStated) {
    const auto size = static_cast<int64_t>(content.body.size());
    head.Add("Content-Length", std::to_string(size + fault.content_length_error));
  }
  if (fault.length == Fault::Length::kChunked) head.Add("Transfer-Encoding", "chunked");
  head.Add("Content-Range", fault.content_range.value_or(content.range));
  head.Add("Accept-Ranges", content.accept_ranges);
  head.Add("ETag", fault.etag.value_or(content.etag));
  head.Add("Last-Modified", fault.last_modified.value_or(content.last_modified));
  head.Add("Retry-After", fault.retry_after);
  head.Add("Location", fault.location);
  for (const auto& [name, value] : fault.more_headers) head.Add(name, value);
  if (closes) head.Add("Connection", "close");
  return head.Finish();
}

}  // namespace

void ServedObject::Copy(uint64_t offset, std::span<char> to) const {
  if (bytes != nullptr) {
    bytes->copy(to.data(), to.size(), offset);
  } else {
    for (char& byte : to) byte = SparseByte(offset++);
  }
}

// The finaliser of splitmix64.
char SparseByte(uint64_t offset) {
  uint64_t bits = offset + 0x9E3779B97F4A7C15;
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB;
  return static_cast<char>(bits >> 56);
}

std::string SparseBytes(uint64_t offset, uint64_t length) {
  std::string bytes(length, '\0');
  for (char& byte : bytes) byte = SparseByte(offset++);
  return bytes;
}

std::string AnswerBody::Piece(uint64_t offset, uint64_t length) const {
  std::string piece;
  if (offset < before.size()) piece = before.substr(offset, length);
  uint64_t place = offset + piece.size() - before.size();  // in the object's stretch
  const uint64_t stretch = end - begin;
  if (piece.size() < length && place < stretch) {
    const uint64_t size = std::min(length - piece.size(), stretch - place);
    const size_t old_size = piece.size();
    piece.resize(old_size + size);
    object.Copy(begin + place, std::span(piece).subspan(old_size));
    place += size;
  }
  if (piece.size() < length) piece += after.substr(place - stretch, length - piece.size());
  return piece;
}

FaultAnswer MakeAnswer(const std::string& method, const HttpHeaders& headers,
                       const ServedObject* object, const Fault& fault) {
  if (!fault.raw.empty()) return {.status = 0, .head = fault.raw, .closes = true};
  Content content = TrueContent(headers, object, fault);
  const bool closes =
      FindHeader(headers, "connection") == "close" || fault.length == Fault::Length::kNone;
  FaultAnswer answer{.status = content.status,
                     .head = MakeHead(content, fault, closes),
                     .length = fault.length,
                     .closes = closes};
  if (method == "HEAD") {
    answer.length = Fault::Length::kStated;
  } else {
    answer.body = std::move(content.body);
  }
  return answer;
}

std::string HttpDate(int64_t unix_seconds) {
  std::tm time = {};
  gmtime_r(&unix_seconds, &time);
  std::array<char, 64> text;
  return {text.data(), std::strftime(text.data(), text.size(), kDateFormat, &time)};
}

}  // namespace echopipe::testing
