#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <echopipe/tests/support/fault.h>
#include <echopipe/tests/support/http_message.h>

namespace echopipe::testing {

/// What a FaultServer serves under a path.
struct ServedObject {
  std::shared_ptr<const std::string> bytes = {};  ///< null: byte i is SparseByte(i)
  uint64_t size = 0;
  std::string etag = {};
  std::string last_modified = {};
  std::string content_type = {};

  void Copy(uint64_t offset, std::span<char> to) const;
};

/// The bytes of synthetic objects: no two places look alike.
char SparseByte(uint64_t offset);
std::string SparseBytes(uint64_t offset, uint64_t length);

/// A body: a stretch of an object between two texts.
struct AnswerBody {
  std::string before = {};
  ServedObject object = {};
  uint64_t begin = 0;
  uint64_t end = 0;
  std::string after = {};

  uint64_t size() const { return before.size() + (end - begin) + after.size(); }
  /// Precondition: it lies inside.
  std::string Piece(uint64_t offset, uint64_t length) const;
};

struct FaultAnswer {
  int status = 0;         ///< 0: a raw answer
  std::string head = {};  ///< with the empty line behind it
  AnswerBody body = {};   ///< empty for HEAD
  Fault::Length length = Fault::Length::kStated;
  bool closes = false;  ///< the connection, at the answer's end
};

/// The answer to a request for an object (null: there is none). It leaves Pace and Stop, which are
/// about time, to the server.
FaultAnswer MakeAnswer(const std::string& method, const HttpHeaders& headers,
                       const ServedObject* object, const Fault& fault);

/// "Tue, 14 Nov 2023 22:13:20 GMT"
std::string HttpDate(int64_t unix_seconds);

}  // namespace echopipe::testing
