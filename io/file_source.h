#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <echopipe/io/epoch_order.h>
#include <echopipe/io/formats/file_listing.h>
#include <echopipe/io/in_flight.h>
#include <echopipe/io/read_queue.h>
#include <echopipe/io/record_order.h>
#include <echopipe/io/source.h>
#include <echopipe/io/source_trail.h>

namespace echopipe::internal {

/// The records of a listing of files in epoch order, a file each.
///
/// Order      Full shuffle: a permutation of the listing for each epoch. Window: the listing
///            through a shuffle window. Neither: as listed. RecordOrder::kAsReady: in an epoch what
///            has arrived comes first.
/// Reading    The first 256 KiB of a file, then, if it is larger, the rest; many files at once.
/// Bad items  A file that cannot be read, is empty, larger than max_record_bytes, or changes while
///            it is read.
/// Errors     Poll() throws kNotFound once a file is missing because its root is (a folder, or the
///            manifest that names it).
class FileSource final : public Source {
 public:
  static constexpr uint64_t kFirstRead = uint64_t{256} << 10;

  FileSource(std::unique_ptr<const FileListing> listing, const EpochOptions& options,
             RecordOrder order, const SourceState& start, uint64_t max_record_bytes,
             std::shared_ptr<Storage> storage, BufferPool& pool, const SourceLimits& limits,
             std::function<void()> wake);

  void Poll(uint64_t wanted, std::vector<SourceItem>* out) override;
  void Reread(std::vector<RecordPlace> places) override;
  bool AtEnd() const override;
  void Advance(uint64_t items) override { trail_.Advance(items); }
  SourceState state() const override { return trail_.state(); }
  uint64_t fingerprint() const override { return fingerprint_; }
  SourceCounters counters() const override { return reads_.counters(); }
  std::optional<uint64_t> epoch_size() const override { return order_.epoch_size(); }

 private:
  /// One file between its place in the order and its delivery.
  struct File {
    enum class Stage { kReadingFirst, kWaitingForRest, kReadingRest, kReady };

    ListingOrder::Position position;
    std::optional<uint64_t> reread = {};  // its index among them
    Stage stage = Stage::kReadingFirst;
    uint64_t serial = 0;  // of the read under way
    uint64_t size = 0;
    std::shared_ptr<const Buffer> first = nullptr;
    std::shared_ptr<const Buffer> rest = nullptr;
    std::optional<Error> error = {};

    bool IsReady() const { return stage == Stage::kReady; }
  };

  void CheckRoot(const File& file);
  void TakeArrivals();
  void OnArrival(File& file, const Result<ReadResult>& result);
  void OnFirst(File& file, const ReadResult& result);
  void OnRest(File& file, const ReadResult& result);
  void Fail(File& file, Error error);
  void StartReads(uint64_t wanted);
  void StartRereads();
  template <class Files>
  bool StartRests(Files& files);
  void Start(File& file, uint64_t offset, uint64_t length);
  SourceItem MakeItem(File file);
  std::shared_ptr<const Buffer> Join(const File& file);
  bool RootIsGone(uint64_t record);

  std::unique_ptr<const FileListing> listing_;
  uint64_t max_record_bytes_;
  SourceTrail trail_;
  ListingOrder order_;
  uint64_t fingerprint_;
  InFlight<File> files_;
  std::vector<RecordPlace> rereads_;  // all of them
  size_t next_reread_ = 0;            // not begun
  std::list<File> rereading_;
  uint64_t most_rereading_;
  std::optional<Error> fatal_;
  ReadQueue reads_;  // last: ended before the rest goes
};

}  // namespace echopipe::internal
