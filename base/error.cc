#include <echopipe/base/error.h>

namespace echopipe {

std::string_view ToString(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid_argument";
    case ErrorCode::kNotFound:
      return "not_found";
    case ErrorCode::kIo:
      return "io";
    case ErrorCode::kUnavailable:
      return "unavailable";
    case ErrorCode::kEmpty:
      return "empty";
    case ErrorCode::kTruncated:
      return "truncated";
    case ErrorCode::kCorrupt:
      return "corrupt";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kLimitExceeded:
      return "limit_exceeded";
    case ErrorCode::kShapeMismatch:
      return "shape_mismatch";
    case ErrorCode::kMissingMember:
      return "missing_member";
    case ErrorCode::kUserFunction:
      return "user_function";
    case ErrorCode::kResourceExhausted:
      return "resource_exhausted";
    case ErrorCode::kStopped:
      return "stopped";
    case ErrorCode::kForked:
      return "forked";
    case ErrorCode::kInternal:
      return "internal";
  }
  return "internal";
}

Error::Error(Details details) : details_(std::move(details)) {
  if (!details_.where.empty()) message_ = details_.where + ": ";
  message_ += details_.what;
  std::string found;
  if (!details_.got.empty()) found = "got " + details_.got;
  if (!details_.wanted.empty())
    found += (found.empty() ? "wanted " : ", wanted ") + details_.wanted;
  if (!found.empty()) message_ += " (" + found + ")";
}

Error OutOfMemory() {
  return Error({.code = ErrorCode::kResourceExhausted, .what = "out of memory"});
}

Error Error::Within(std::string_view where) const {
  Details outer = details_;
  outer.where = outer.where.empty() ? std::string(where) : std::string(where) + ": " + outer.where;
  return Error(std::move(outer));
}

}  // namespace echopipe
