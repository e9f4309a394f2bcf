#include <algorithm>
#include <limits>

#include <echopipe/io/http/read_plan.h>

namespace echopipe::internal {
namespace {

uint64_t SaturatedSum(uint64_t a, uint64_t b) {
  return a > std::numeric_limits<uint64_t>::max() - b ? std::numeric_limits<uint64_t>::max()
                                                      : a + b;
}

}  // namespace

uint64_t ReadPlan::EndOf(const Waiting& waiting) const {
  return SaturatedSum(waiting.offset, waiting.length);
}

void ReadPlan::Enter(uint64_t read, const Waiting& waiting) {
  due_.insert(read);
  if (waiting.length > options_.max_request) return;
  begins_[{waiting.path, waiting.offset}].insert(read);
  ends_[{waiting.path, EndOf(waiting)}].insert(read);
}

void ReadPlan::Leave(uint64_t read, const Waiting& waiting) {
  const auto erase = [&](ByPlace& places, uint64_t at) {
    const auto place = places.find({waiting.path, at});
    if (place == places.end()) return;
    place->second.erase(read);
    if (place->second.empty()) places.erase(place);
  };
  due_.erase(read);
  erase(begins_, waiting.offset);
  erase(ends_, EndOf(waiting));
}

void ReadPlan::Add(uint64_t read, const ReadRequest& request) {
  const Waiting& waiting =
      reads_[read] = {.path = request.path, .offset = request.offset, .length = request.length};
  Enter(read, waiting);
}

void ReadPlan::Remove(uint64_t read) {
  const auto found = reads_.find(read);
  if (found == reads_.end()) return;
  Leave(read, found->second);
  reads_.erase(found);
}

void ReadPlan::SetSize(uint64_t read, uint64_t object_size) {
  const auto found = reads_.find(read);
  if (found == reads_.end()) return;
  Waiting& waiting = found->second;
  Leave(read, waiting);
  waiting.size_is_known = true;
  if (waiting.offset >= object_size) {
    reads_.erase(found);
    return;
  }
  waiting.length = std::min(waiting.length, object_size - waiting.offset);
  Enter(read, waiting);
}

void ReadPlan::Clear() {
  reads_.clear();
  due_.clear();
  begins_.clear();
  ends_.clear();
}

std::optional<ReadPlan::Request> ReadPlan::Next(uint64_t most_bytes) {
  if (due_.empty()) return std::nullopt;
  Request request{.path = reads_.at(*due_.begin()).path};
  request.parts.push_back(TakeFirst());
  request.offset = request.parts[0].offset;
  request.length = request.parts[0].length;
  const uint64_t most = std::min(most_bytes, options_.max_request);
  while (TakeBehind(request, most) || TakeInFront(request, most)) {
  }
  return request;
}

// The beginning of the oldest read's range.
ReadPlan::Part ReadPlan::TakeFirst() {
  const uint64_t read = *due_.begin();
  Waiting& waiting = reads_.at(read);
  if (waiting.length <= options_.max_request) return TakeWhole(read);
  const Part part{.read = read, .offset = waiting.offset, .length = options_.max_request};
  Leave(read, waiting);
  waiting.offset = SaturatedSum(waiting.offset, part.length);
  waiting.length -= part.length;
  if (waiting.size_is_known) Enter(read, waiting);
  return part;
}

ReadPlan::Part ReadPlan::TakeWhole(uint64_t read) {
  const Waiting waiting = reads_.at(read);
  Remove(read);
  return {.read = read, .offset = waiting.offset, .length = waiting.length};
}

bool ReadPlan::TakeBehind(Request& request, uint64_t most) {
  const uint64_t end = SaturatedSum(request.offset, request.length);
  const auto place = begins_.lower_bound({request.path, end});
  if (place == begins_.end() || place->first.first != request.path) return false;
  const uint64_t gap = place->first.second - end;
  const uint64_t read = *place->second.begin();
  const uint64_t length = SaturatedSum(request.length, gap + reads_.at(read).length);
  if (gap > options_.max_gap || length > most) return false;
  request.length = length;
  request.parts.push_back(TakeWhole(read));
  return true;
}

bool ReadPlan::TakeInFront(Request& request, uint64_t most) {
  const auto behind = ends_.upper_bound({request.path, request.offset});
  if (behind == ends_.begin()) return false;
  const auto place = std::prev(behind);
  if (place->first.first != request.path) return false;
  const uint64_t gap = request.offset - place->first.second;
  const uint64_t read = *place->second.begin();
  const uint64_t length = SaturatedSum(request.length, gap + reads_.at(read).length);
  if (gap > options_.max_gap || length > most) return false;
  request.length = length;
  request.parts.insert(request.parts.begin(), TakeWhole(read));
  request.offset = request.parts[0].offset;
  return true;
}

}  // namespace echopipe::internal
