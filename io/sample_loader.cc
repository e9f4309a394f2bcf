#include <algorithm>
#include <memory>
#include <utility>

#include <echopipe/io/sample_loader.h>

namespace echopipe::internal {

Sample ParseSample(const ShardFormat& format, const std::shared_ptr<const std::string>& shard,
                   const RecordPlace& place, const Result<ReadResult>& bytes, BufferPool& pool) {
  if (!bytes.ok()) return {.offset = place.offset, .error = bytes.error()};
  const Buffer& data = *bytes.value().data;
  const std::unique_ptr<SampleReader> reader = format.Read(shard, pool, place.offset);
  reader->SetShardSize(place.offset + data.size());
  reader->Feed(data.bytes());
  reader->Finish();
  std::optional<Sample> sample = reader->Next();
  // A good one fills its place: there is no other behind it.
  const bool fits = sample && data.size() == place.length &&
                    (sample->error || sample->next_offset == place.offset + place.length);
  if (fits) return *std::move(sample);
  return {.offset = place.offset,
          .error = Error({.code = ErrorCode::kTruncated,
                          .what = "no sample at byte " + std::to_string(place.offset) + " any more",
                          .where = *shard})};
}

SampleLoader::SampleLoader(const ShardFormat& format, uint64_t most_reads, ReadQueue& reads)
    : format_(format), most_reads_(most_reads), reads_(reads) {}

void SampleLoader::Add(std::shared_ptr<const std::string> uri, const RecordPlace& place,
                       Done done) {
  jobs_.push_back({.uri = std::move(uri), .place = place, .done = std::move(done)});
}

bool SampleLoader::Take(const ReadQueue::Arrival& arrival) {
  const auto found = std::find_if(jobs_.begin(), jobs_.end(),
                                  [&](const Job& job) { return job.serial == arrival.serial; });
  if (found == jobs_.end()) return false;
  const Job job = std::move(*found);
  jobs_.erase(found);
  --reads_under_way_;
  Sample sample = ParseSample(format_, job.uri, job.place, arrival.result, reads_.pool());
  const uint64_t came = arrival.result.ok() ? arrival.result.value().data->size() : 0;
  const uint64_t held = sample.record ? sample.record->size() : 0;
  reads_.Release(came - held);
  job.done(std::move(sample), held);
  return true;
}

void SampleLoader::StartReads() {
  for (Job& job : jobs_) {
    if (job.serial) continue;
    if (reads_under_way_ == most_reads_) return;
    const bool oldest = &job == &jobs_.front();
    if (!reads_.HasRoom(job.place.length) && !(oldest && reads_.HasReadRoom())) return;
    job.serial =
        reads_.Start({.path = *job.uri, .offset = job.place.offset, .length = job.place.length});
    ++reads_under_way_;
  }
}

}  // namespace echopipe::internal
