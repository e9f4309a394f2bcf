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
///           read in vain, as long as it stays within the bytes it may have.
/// Unknown   As long as an object's size is unknown, one request asks for the beginning of a range
///           that does not fit into one; the rest of it waits for SetSize().
/// Threads   One caller at a time.
/// Cost      O(log n) per read or request, n reads waiting.
class ReadPlan {
 public:
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

  explicit ReadPlan(uint64_t max_gap) : max_gap_(max_gap) {}

  /// Numbers of reads ascend. Precondition: length >= 1.
  void Add(uint64_t read, const ReadRequest& request);
  /// Nothing more is to be asked for this read.
  void Remove(uint64_t read);
  /// The object of this read ends there: what waits of it is cut, and held back no more.
  void SetSize(uint64_t read, uint64_t object_size);
  void Clear();
  /// No read is due.
  bool empty() const { return due_.empty(); }
  /// The next request, if a read is due. `most_bytes` >= 1 bounds it; one read's range may be half
  /// as large again, rather than be split.
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
  Part TakeFirst(uint64_t most);
  bool TakeBehind(Request& request, uint64_t most);
  bool TakeInFront(Request& request, uint64_t most);
  Part TakeWhole(uint64_t read);

  uint64_t max_gap_;
  std::unordered_map<uint64_t, Waiting> reads_;  // due, or held back for their size
  std::set<uint64_t> due_;
  ByPlace begins_;  // of those due
  ByPlace ends_;
};

}  // namespace echopipe::internal
