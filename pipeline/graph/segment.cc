#include <array>
#include <exception>
#include <new>
#include <utility>

#include <echopipe/pipeline/graph/bad_examples.h>
#include <echopipe/pipeline/graph/segment.h>
#include <echopipe/pipeline/stages/decode.h>

namespace echopipe::internal {

const CropStage* CropBehind(const std::vector<PlannedStage>& stages, size_t decode) {
  const auto* at = dynamic_cast<const DecodeStage*>(stages[decode].stage.get());
  if (at == nullptr || decode + 1 == stages.size()) return nullptr;
  const auto* crop = dynamic_cast<const CropStage*>(stages[decode + 1].stage.get());
  return crop != nullptr && crop->feature() == at->feature() ? crop : nullptr;
}

const WritingStage* WriterOf(const std::vector<PlannedStage>& stages) {
  return stages.empty() ? nullptr : dynamic_cast<const WritingStage*>(stages.back().stage.get());
}

Segment::Segment(std::vector<PlannedStage> stages, const Options& options, BufferPool& pool,
                 const Clock& clock)
    : stages_(std::move(stages)), options_(options), pool_(pool), clock_(clock) {
  for (size_t i = 0; i < stages_.size(); ++i) {
    meters_.push_back(std::make_unique<StageMeter>());
    crop_behind_.push_back(CropBehind(stages_, i));
  }
  if (options_.writes_batches) writer_ = WriterOf(stages_);
}

StageContext Segment::ContextOf(const PlannedStage& stage, const Identity& identity) const {
  std::array<uint64_t, 5 + Identity::kMaxEchoPoints> words{
      options_.seed, stage.index, identity.epoch, identity.ordinal, identity.echo_points};
  size_t count = 5;
  for (const uint32_t use : identity.uses()) words[count++] = use;
  return {.pool = pool_, .random_key = HashToKey(std::span(words).first(count))};
}

void Segment::Run(Item& item, std::string_view* stage_at_work, TraceBody& trace) {
  auto example = std::make_shared<Example>(*item.example);
  example->mutable_provenance().identity = item.identity;
  example->mutable_provenance().age = item.age;
  example->mutable_provenance().stands_in = item.stands_in;
  Clock::Time begin = clock_.Now();
  trace.Begin(begin);
  const auto count = [&](size_t stage) {
    const Clock::Time end = clock_.Now();
    meters_[stage]->Add(end - begin);
    trace.AddStep(stages_[stage].name, begin, end);
    begin = end;
  };
  for (size_t i = 0; i < stages_.size(); ++i) {
    *stage_at_work = stages_[i].name;
    if (writer_ != nullptr && i + 1 == stages_.size()) {
      item.written = writer_->OutputFor(example->Get(writer_->feature()));
      break;
    }
    if (DecodeBox(i, *example, item.identity)) {
      count(i++);
      *stage_at_work = stages_[i].name;
      crop_behind_[i - 1]->ApplyToBox(*example, ContextOf(stages_[i], item.identity));
      count(i);
      continue;
    }
    const bool stays = stages_[i].stage->Apply(*example, ContextOf(stages_[i], item.identity));
    count(i);
    if (!stays) {
      item.example = nullptr;
      return;
    }
  }
  item.example = std::move(example);
}

bool Segment::DecodeBox(size_t stage, Example& example, const Identity& identity) const {
  const CropStage* crop = crop_behind_[stage];
  if (crop == nullptr) return false;
  const auto& decode = static_cast<const DecodeStage&>(*stages_[stage].stage);
  const ImageInfo info = decode.Info(example);
  const PixelBox box = crop->Box(info.height, info.width, ContextOf(stages_[stage + 1], identity));
  decode.ApplyBox(example, box, ContextOf(stages_[stage], identity));
  return true;
}

Message Segment::Process(Message message) {
  if (message.kind != Message::Kind::kItem || !message.item->example || stages_.empty()) {
    return message;
  }
  Item& item = *message.item;
  std::string_view stage;
  std::optional<Error> failure;
  TraceBody trace(options_.trace, options_.name, item.identity);
  try {
    Run(item, &stage, trace);
    return message;
  } catch (const Error& error) {
    failure = error;
  } catch (const std::bad_alloc&) {
    failure = OutOfMemory();
  } catch (const std::exception& error) {
    failure = Error({.code = ErrorCode::kInternal, .what = error.what()});
  }
  trace.AddFailure(stage, *failure);
  const Provenance& provenance = item.example->provenance();
  const auto bad =
      std::make_shared<BadExample>(BadExample{provenance.uri ? *provenance.uri : "", provenance.key,
                                              std::string(stage), *std::move(failure)});
  if (EndsPipeline(bad->error, options_.fail_on_bad) && !item.destination) {
    Message end = Message::End(std::make_shared<Error>(NamedError(*bad)));
    end.sequence = message.sequence;
    return end;
  }
  item.bad = bad;
  item.example = nullptr;
  return message;
}

std::vector<StageStats> Segment::Stats(int threads) const {
  std::vector<StageStats> stats;
  for (size_t i = 0; i < stages_.size(); ++i) {
    const uint64_t items = meters_[i]->items();
    const double busy = meters_[i]->busy_s();
    stats.push_back(
        {.name = stages_[i].name,
         .items = items,
         .busy_s = busy,
         .seconds_per_item = items == 0 ? 0 : busy / static_cast<double>(items) / threads});
  }
  return stats;
}

}  // namespace echopipe::internal
