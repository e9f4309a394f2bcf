#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <echopipe/base/export.h>

namespace echopipe {

/// What went wrong, in one word. A bad example's `kind` is one of these too.
enum class ErrorCode {
  kInvalidArgument,    ///< a spec, an option or a call that cannot be meant
  kNotFound,           ///< a file, folder, class or function that is not there
  kIo,                 ///< storage refused or failed
  kUnavailable,        ///< a server does not answer, tried for long enough
  kEmpty,              ///< no bytes where an example should be
  kTruncated,          ///< bytes end too early
  kCorrupt,            ///< bytes contradict their format
  kUnsupported,        ///< a format, or a variant of one, that is not read here
  kLimitExceeded,      ///< over a stated cap (pixels, bytes, scans, bad examples)
  kShapeMismatch,      ///< tensors that should be stacked have unequal shapes or types
  kMissingMember,      ///< a sample lacks a member that the spec asks for
  kUserFunction,       ///< a user's Map or Filter function threw
  kResourceExhausted,  ///< no memory, or over the memory cap
  kStopped,            ///< Stop() was called
  kForked,             ///< used in a child process after fork()
  kInternal,           ///< a broken promise of our own
};

/// The code's name in snake case: "truncated".
ECHOPIPE_EXPORT std::string_view ToString(ErrorCode code);

/// The one exception type of the library.
///
/// `what()` reads "where: what (got ..., wanted ...)", leaving out what is empty.
/// Threads: immutable after construction.
class ECHOPIPE_EXPORT Error : public std::exception {
 public:
  struct Details {
    ErrorCode code = ErrorCode::kInternal;
    std::string what = {};    ///< one sentence, no full stop
    std::string where = {};   ///< the file, field, stage or point it is about
    std::string got = {};     ///< the value found, if one was
    std::string wanted = {};  ///< the values allowed, if they can be named
  };

  explicit Error(Details details);

  const char* what() const noexcept override { return message_.c_str(); }
  ErrorCode code() const { return details_.code; }
  const Details& details() const { return details_; }

  /// The same error, found while working on `where`: "where: old where: what".
  Error Within(std::string_view where) const;

 private:
  Details details_;
  std::string message_;
};

/// That there is no memory. Made, moved and copied without any: its text is short enough to need
/// none.
ECHOPIPE_EXPORT Error OutOfMemory();

/// A value, or the error that stands in its place: errors that travel as messages.
template <class T>
class Result {
 public:
  Result(T value) : state_(std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return state_.index() == 0; }
  /// Precondition: !ok().
  const Error& error() const { return std::get<1>(state_); }
  /// The value; throws the error if there is none.
  T& value() & {
    ThrowIfError();
    return std::get<0>(state_);
  }
  const T& value() const& {
    ThrowIfError();
    return std::get<0>(state_);
  }
  T value() && {  // no reference: it would dangle in `for (... : f().value())`
    ThrowIfError();
    return std::get<0>(std::move(state_));
  }

 private:
  void ThrowIfError() const {
    if (!ok()) throw error();
  }

  std::variant<T, Error> state_;
};

}  // namespace echopipe
