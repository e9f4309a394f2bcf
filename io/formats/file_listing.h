#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace echopipe::internal {

/// Records that are a file each: their paths and labels, in listing order.
///
/// Threads  Immutable once made.
class FileListing {
 public:
  using Field = std::pair<std::string, std::string>;  ///< name and value

  virtual ~FileListing() = default;

  virtual uint64_t size() const = 0;
  /// The file of record i. Precondition, here and below: i < size().
  virtual std::string Path(uint64_t i) const = 0;
  virtual std::string Key(uint64_t i) const = 0;
  virtual std::optional<int64_t> Label(uint64_t i) const = 0;
  /// What passes through beside the file.
  virtual std::vector<Field> Fields(uint64_t /*i*/) const { return {}; }
  /// The folder or file that names it: without that, all of its records are gone.
  virtual const std::string& Root(uint64_t i) const = 0;
  /// A hash of keys, labels and fields, in order; where the roots are does not enter.
  virtual uint64_t Fingerprint() const = 0;
};

}  // namespace echopipe::internal
