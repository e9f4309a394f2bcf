// Tar archives: as they are, and with the headers' checksums put right. The first line holds the
// size of the pieces that are fed (0: all at once); the rest is the archive.
//
// Parses: io/formats/tar_reader.cc

#include <algorithm>
#include <array>
#include <cstdio>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <echopipe/base/error.h>
#include <echopipe/base/random.h>
#include <echopipe/io/formats/tar_reader.h>
#include <echopipe/tests/fuzz/fuzz_input.h>

namespace {

using echopipe::Error;
using echopipe::internal::TarReader;
using echopipe::testing::FuzzInput;
using echopipe::testing::Require;

using Kind = TarReader::Kind;

struct Member {
  std::string path;
  uint64_t size = 0;
  uint64_t header_offset = 0;
  std::string data = {};
  bool operator==(const Member&) const = default;
};

/// All that a reader makes of an archive.
struct Content {
  std::vector<Member> members = {};
  std::string error = {};
  bool operator==(const Content&) const = default;
};

class Reading {
 public:
  Reading(std::string_view archive, size_t piece) : archive_(archive), piece_(piece) {}

  Content Run(bool size_is_known) {
    if (size_is_known) reader_.SetShardSize(archive_.size());
    try {
      while (Step()) Require(reader_.offset() <= fed_);
      for (const Member& member : content_.members) Require(member.data.size() == member.size);
    } catch (const Error& error) {
      content_.error = error.what();
    }
    return std::move(content_);
  }

 private:
  // False at the end.
  bool Step() {
    const TarReader::Event event = reader_.Next();
    switch (event.kind) {
      case Kind::kNeedBytes:
        Feed();
        return true;
      case Kind::kMember:
        Require(event.size <= TarReader::kMaxMemberBytes);
        Require(event.path.size() <= TarReader::kMaxNameBytes);
        Require(event.header_offset < fed_ && event.header_offset % 512 == 0);
        content_.members.push_back({event.path, event.size, event.header_offset});
        return true;
      case Kind::kData:
        Require(!content_.members.empty() && !event.data.empty());
        content_.members.back().data.append(event.data.begin(), event.data.end());
        Require(content_.members.back().data.size() <= content_.members.back().size);
        return true;
      case Kind::kEnd:
        return false;
    }
    return false;
  }

  void Feed() {
    Require(!finished_);
    // Its own memory, so that reads behind the piece, and of pieces before, are found.
    const std::string_view next = archive_.substr(fed_, piece_);
    bytes_.assign(next.begin(), next.end());
    bytes_.shrink_to_fit();
    fed_ += next.size();
    finished_ = next.empty();
    if (finished_) {
      reader_.Finish();
    } else {
      reader_.Feed(bytes_);
    }
  }

  std::string_view archive_;
  size_t piece_;
  size_t fed_ = 0;
  bool finished_ = false;
  std::vector<uint8_t> bytes_;
  TarReader reader_{"shard"};
  Content content_;
};

// Of the headers: the blocks with the magic of ustar or GNU.
std::string WithRightChecksums(std::string archive) {
  constexpr size_t kBlock = 512;
  constexpr size_t kMagicAt = 257;
  constexpr size_t kChecksumAt = 148;
  for (size_t at = 0; at + kBlock <= archive.size(); at += kBlock) {
    if (!std::string_view(archive).substr(at + kMagicAt).starts_with("ustar")) continue;
    const auto block = archive.begin() + static_cast<std::ptrdiff_t>(at);
    // As if its own field held blanks.
    std::array<char, 8> field;
    field.fill(' ');
    std::ranges::copy(field, block + kChecksumAt);
    const auto add = [](unsigned sum, char c) { return sum + static_cast<uint8_t>(c); };
    const unsigned sum = std::accumulate(block, block + kBlock, 0U, add);
    std::snprintf(field.data(), field.size(), "%06o", sum);
    std::ranges::copy(field, block + kChecksumAt);
  }
  return archive;
}

void CheckArchive(std::string_view archive, size_t piece) {
  const Content whole = Reading(archive, std::max<size_t>(archive.size(), 1)).Run(false);
  if (piece > 0) Require(Reading(archive, piece).Run(false) == whole);
  // A known size makes errors come earlier, and no others.
  const Content known = Reading(archive, std::max<size_t>(piece, 512)).Run(true);
  Require(known.error.empty() == whole.error.empty());
  if (whole.error.empty()) Require(known == whole);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzInput input(data, size);
  const auto piece = static_cast<size_t>(input.TakeNumber() % 2000);
  const std::string_view archive = input.TakeRest();
  CheckArchive(archive, piece);
  CheckArchive(WithRightChecksums(std::string(archive)), piece);
  return 0;
}
