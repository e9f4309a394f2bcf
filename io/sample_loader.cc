#include <algorithm>
#include <utility>

#include <echopipe/io/sample_loader.h>

namespace echopipe::internal {

SampleLoader::SampleLoader(const ShardFormat& format, const SourceLimits& limits, ReadQueue& reads)
    : format_(format),
      most_reads_(std::max<uint64_t>(1, static_cast<uint64_t>(limits.reads_in_flight) / 2)),
      reads_(reads) {}

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
  Sample sample = Parse(job, arrival.result);
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

Sample SampleLoader::Parse(const Job& job, const Result<ReadResult>& result) {
  if (!result.ok()) return {.offset = job.place.offset, .error = result.error()};
  const std::unique_ptr<SampleReader> reader =
      format_.Read(job.uri, reads_.pool(), job.place.offset);
  reader->SetShardSize(job.place.offset + result.value().data->size());
  reader->Feed(result.value().data->bytes());
  reader->Finish();
  std::optional<Sample> sample = reader->Next();
  if (sample && result.value().data->size() == job.place.length) return *std::move(sample);
  return {
      .offset = job.place.offset,
      .error = Error({.code = ErrorCode::kTruncated,
                      .what = "no sample at byte " + std::to_string(job.place.offset) + " any more",
                      .where = *job.uri})};
}

}  // namespace echopipe::internal
