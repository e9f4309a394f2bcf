#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <echopipe/io/storage.h>

namespace echopipe::internal {

/// Makes requests of reads: neighbouring ranges are merged, large ones split.
///
///     reads     [a 0-1][a 1-2]   [b 0-9]          [a 2-3]
///     requests  [a 0-1-2-3]      [b 0-4] [b 4-8] [b 8-9]
///
/// Order     The oldest read comes first. A request takes along waiting reads of its object that
///           end at most max_gap in front of it or begin at most max_gap behind it, the gaps being
///           read in vain, as long as it stays within max_request.
/// Unknown   As long as an object's size is unknown, one request asks for the beginning of a range
///           that does not fit into one; the rest of it waits for SetSize().
/// Threads   One caller at a time.
/// Cost      O(log n) per read or request, n reads waiting.
class ReadPlan {
 public:
  struct Options {
    uint64_t max_request = uint64_t{4} << 20;  ///< >= 1
    uint64_t max_gap = uint64_t{16} << 10;
  };
  /// What a request brings for a read: bytes [offset, offset + length) of the object.
  struct Part {
    uint64_t read = 0;
    uint64_t offset = 0;
    uint64_t length = 0;
  };
  struct Request {
    std::string path;
    uint64_t offset = 0;
    uint64_t length = 0;
    std::vector<Part> parts = {};  ///< by offset; they do not overlap
  };

  explicit ReadPlan(const Options& options) : options_(options) {}

  /// Numbers of reads ascend. Precondition: length >= 1.
  void Add(uint64_t read, const ReadRequest& request);
  /// Nothing more is to be asked for this read.
  void Remove(uint64_t read);
  /// The object of this read ends there: what waits of it is cut, and held back no more.
  void SetSize(uint64_t read, uint64_t object_size);
  void Clear();
  /// No read is due.
  bool empty() const { return due_.empty(); }
  /// The next request, of at most `most_bytes` (but one) beside its first part's range, if a read
  /// is due.
  std::optional<Request> Next(uint64_t most_bytes);

 private:
  struct Waiting {
    std::string path;
    uint64_t offset = 0;
    uint64_t length = 0;
    bool size_is_known = false;
  };
  using ByPlace = std::map<std::pair<std::string, uint64_t>, std::set<uint64_t>>;

  uint64_t EndOf(const Waiting& waiting) const;
  void Enter(uint64_t read, const Waiting& waiting);
  void Leave(uint64_t read, const Waiting& waiting);
  Part TakeFirst();
  bool TakeBehind(Request& request, uint64_t most);
  bool TakeInFront(Request& request, uint64_t most);
  Part TakeWhole(uint64_t read);

  Options options_;
  std::unordered_map<uint64_t, Waiting> reads_;  // due, or held back for their size
  std::set<uint64_t> due_;
  ByPlace begins_;  // of those due that fit into a request whole
  ByPlace ends_;
};

}  // namespace echopipe::internal
