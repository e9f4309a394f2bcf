#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <echopipe/pipeline/graph/trace.h>
#include <echopipe/pipeline/graph/traced_storage.h>
#include <echopipe/pipeline/pipeline.h>
#include <echopipe/tests/support/fake_clock.h>
#include <echopipe/tests/support/fake_storage.h>
#include <echopipe/tests/support/image_data.h>

namespace echopipe {
namespace {

using internal::Trace;
using internal::TraceArgs;
using internal::TraceBody;
using nlohmann::json;
using namespace std::chrono_literals;
using testing::FakeClock;
using testing::FakeStorage;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::ReadFile;
using ::testing::SizeIs;
using testing::TempFolder;
using testing::WriteImages;

int64_t Nanoseconds(const json& microseconds) {
  return std::llround(microseconds.get<double>() * 1000);
}

/// A trace's file, read as a viewer does.
class TraceFile {
 public:
  explicit TraceFile(const std::string& path) : json_(json::parse(ReadFile(path))) {}

  std::vector<json> Events(const std::string& phase, const std::string& name = "") const {
    std::vector<json> events;
    for (const json& event : json_.at("traceEvents")) {
      if (event.at("ph") == phase && (name.empty() || event.at("name") == name)) {
        events.push_back(event);
      }
    }
    return events;
  }
  uint64_t lost() const { return json_.at("otherData").at("lost_events"); }

  /// By the name of its row.
  int64_t Row(const std::string& name) const {
    for (const json& event : Events("M", "thread_name")) {
      if (event.at("args").at("name") == name) return event.at("tid");
    }
    return -1;
  }

 private:
  json json_;
};

/// What is under way on one row: each within the one around it.
class Nesting {
 public:
  void Add(const json& span) {
    const int64_t begin = Nanoseconds(span.at("ts"));
    const int64_t end = begin + Nanoseconds(span.at("dur"));
    while (!ends_.empty() && ends_.back() <= begin) ends_.pop_back();
    nests_ = nests_ && (ends_.empty() || end <= ends_.back());
    ends_.push_back(end);
  }
  bool nests() const { return nests_; }

 private:
  std::vector<int64_t> ends_;
  bool nests_ = true;
};

bool SpansNest(const TraceFile& trace) {
  std::vector<json> spans = trace.Events("X");
  // As viewers do: of two that begin at once, the first is around the second.
  std::ranges::stable_sort(spans, {}, [](const json& span) { return Nanoseconds(span.at("ts")); });
  std::map<int64_t, Nesting> rows;
  for (const json& span : spans) rows[span.at("tid")].Add(span);
  return std::ranges::all_of(rows, [](const auto& row) { return row.second.nests(); });
}

bool EachBeginHasItsEnd(const TraceFile& trace) {
  std::map<uint64_t, int64_t> begun;
  for (const json& event : trace.Events("b")) begun[event.at("id")] = Nanoseconds(event.at("ts"));
  const std::vector<json> ends = trace.Events("e");
  for (const json& end : ends) {
    const auto begin = begun.find(end.at("id"));
    if (begin == begun.end() || begin->second > Nanoseconds(end.at("ts"))) return false;
    begun.erase(begin);
  }
  return begun.empty();
}

// ---- The file ----

class TraceFileTest : public ::testing::Test {
 protected:
  std::string path() const { return folder_.Path("trace.json"); }

  const TempFolder folder_;
  const std::shared_ptr<FakeClock> clock_ = std::make_shared<FakeClock>();
};

TEST_F(TraceFileTest, TimesAreThoseOfTheClockFromItsBeginningOn) {
  clock_->Advance(5s);
  Trace trace(path(), clock_);
  clock_->Advance(1234567ns);
  const Clock::Time begin = trace.Now();
  clock_->Advance(89ns);
  trace.AddSpan("work", begin, trace.Now(), TraceArgs().Add("epoch", 2));
  trace.Finish();
  const std::vector<json> spans = TraceFile(path()).Events("X", "work");
  ASSERT_THAT(spans, SizeIs(1));
  EXPECT_EQ(Nanoseconds(spans[0].at("ts")), 1234567);
  EXPECT_EQ(Nanoseconds(spans[0].at("dur")), 89);
  EXPECT_EQ(spans[0].at("args"), (json{{"epoch", 2}}));
}

TEST_F(TraceFileTest, NamesMayHoldAnyBytes) {
  Trace trace(path(), clock_);
  const std::string name = "\"a\\b\n\x01\xff\xc3\xa4/" + std::string(5000, 'x');
  trace.AddAsync("read", clock_->Now(), clock_->Now(), TraceArgs().Add("path", name));
  trace.Finish();
  const json read = TraceFile(path()).Events("b", "read").at(0);
  const std::string written = read.at("args").at("path");
  EXPECT_THAT(written, ::testing::StartsWith("\"a\\b\n\x01\xef\xbf\xbd\xc3\xa4/xxx"));
  EXPECT_LT(written.size(), 600u);
}

TEST_F(TraceFileTest, ABodyIsAroundItsSteps) {
  const Identity identity{.epoch = 1, .ordinal = 7, .echo_points = 1, .use = {3}};
  Trace trace(path(), clock_);
  {
    TraceBody body(&trace, "after source", identity);
    body.Begin(clock_->Now());
    for (const char* step : {"decode", "resize"}) {
      const Clock::Time begin = clock_->Now();
      clock_->Advance(10us);
      body.AddStep(step, begin, clock_->Now());
    }
    clock_->Advance(5us);
    body.AddFailure("normalize", Error({.code = ErrorCode::kShapeMismatch}));
  }
  trace.Finish();
  const TraceFile file(path());
  EXPECT_TRUE(SpansNest(file));
  const json body = file.Events("X", "after source").at(0);
  EXPECT_EQ(Nanoseconds(body.at("dur")), 25'000);
  EXPECT_EQ(body.at("args"), (json{{"epoch", 1}, {"ordinal", 7}, {"use", {3}}}));
  EXPECT_EQ(Nanoseconds(file.Events("X", "resize").at(0).at("ts")), 10'000);
  const json failed = file.Events("X", "normalize").at(0);
  EXPECT_EQ(Nanoseconds(failed.at("dur")), 5'000);
  EXPECT_EQ(failed.at("args").at("error"), "shape_mismatch");
}

TEST_F(TraceFileTest, WithoutATraceABodyReadsNoClockAndDoesNothing) {
  const Identity identity;
  TraceBody body(nullptr, "after source", identity);
  body.Begin(clock_->Now());
  body.AddStep("decode", clock_->Now(), clock_->Now());
  body.AddFailure("decode", Error({.code = ErrorCode::kCorrupt}));
}

TEST_F(TraceFileTest, EachThreadHasARowAndIsNamed) {
  Trace trace(path(), clock_);
  const Trace::Track track = trace.AddTrack("echo after decode");
  trace.AddInstant(track, "fresh", {});
  trace.NameThread("consumer");
  trace.AddSpan("Next", clock_->Now(), clock_->Now(), {});
  std::jthread([&] { trace.AddSpan("work", clock_->Now(), clock_->Now(), {}); }).join();
  trace.Finish();
  const TraceFile file(path());
  EXPECT_EQ(file.Events("i", "fresh").at(0).at("tid"), file.Row("echo after decode"));
  EXPECT_EQ(file.Events("X", "Next").at(0).at("tid"), file.Row("consumer"));
  EXPECT_EQ(file.Events("X", "work").at(0).at("tid"), file.Row("worker 1"));
}

// More than may wait, and the thread that writes cannot keep up with a loop for ever.
TEST_F(TraceFileTest, WhatIsLostIsCountedAndTheRestIsWhole) {
  Trace trace(path(), clock_);
  const std::string text(500, 'x');
  const uint64_t count = 4 * Trace::kMostWaiting / text.size();
  for (uint64_t i = 0; i < count; ++i) {
    trace.AddAsync("read", clock_->Now(), clock_->Now(), TraceArgs().Add("path", text));
  }
  trace.Finish();
  const TraceFile file(path());
  EXPECT_TRUE(EachBeginHasItsEnd(file));
  EXPECT_EQ(file.Events("b").size() + file.Events("e").size() + file.lost(), 2 * count);
}

TEST_F(TraceFileTest, WhatComesAfterItsEndIsLost) {
  Trace trace(path(), clock_);
  trace.Finish();
  trace.AddSpan("work", clock_->Now(), clock_->Now(), {});
  EXPECT_THAT(TraceFile(path()).Events("X"), IsEmpty());
}

// What a program leaves that is killed: the file as it is between two writes.
TEST_F(TraceFileTest, TheFileIsWholeFromTheBeginningOn) {
  Trace trace(path(), clock_);
  EXPECT_THAT(TraceFile(path()).Events("M"), SizeIs(1));
}

// Else a pipeline with a trace might find another index fit than one without.
TEST_F(TraceFileTest, StorageTellsBehindATraceWhatItTellsWithout) {
  const auto storage = std::make_shared<FakeStorage>();
  storage->Put("root/a.tar", "some bytes");
  storage->SetTime("root/a.tar", 7);
  const std::shared_ptr<Storage> traced =
      internal::MakeTracedStorage(storage, std::make_shared<Trace>(path(), clock_));
  EXPECT_EQ(traced->ModifiedAt("root/a.tar"), 7);
  EXPECT_EQ(traced->Size("root/a.tar").value(), 10U);
  EXPECT_THAT(traced->List("root").value(), SizeIs(1));
}

TEST_F(TraceFileTest, AFileThatCannotBeOpenedIsAnErrorAtOnce) {
  try {
    const Trace trace(folder_.path().string() + "/no/such/trace.json", clock_);
    ADD_FAILURE() << "opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    EXPECT_THAT(error.what(), HasSubstr("RuntimeOptions.trace"));
  }
}

TEST_F(TraceFileTest, AFileThatIsNoTraceIsLeftAlone) {
  folder_.Write("trace.json", "source { uri: 'photos/' }");
  try {
    const Trace trace(path(), clock_);
    ADD_FAILURE() << "opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr(path()));
  }
  EXPECT_EQ(ReadFile(path()), "source { uri: 'photos/' }");
}

TEST_F(TraceFileTest, ATraceIsReplaced) {
  Trace(path(), clock_).AddSpan("one", clock_->Now(), clock_->Now(), {});
  Trace(path(), clock_).AddSpan("two", clock_->Now(), clock_->Now(), {});
  EXPECT_THAT(TraceFile(path()).Events("X"), SizeIs(1));
}

TEST_F(TraceFileTest, AFullDiskIsToldAtTheEnd) {
  Trace trace("/dev/full", clock_);
  trace.AddSpan("work", clock_->Now(), clock_->Now(), {});
  EXPECT_THROW(trace.Finish(), Error);
}

// ---- Of a pipeline ----

PipelineSpec SpecOf(const TempFolder& folder, const std::string& stages) {
  return PipelineSpec::FromText("source { uri: '" + folder.path().string() +
                                "' epochs: 2 } bad_examples { policy: SKIP }" + stages);
}

struct Case {
  const char* name;
  const char* stages;
};

class PipelineTrace : public ::testing::TestWithParam<Case> {
 protected:
  void Run() {
    WriteImages(images_, 30, 3);
    images_.Write("class-0/broken.jpg", "no picture");
    const auto pipeline =
        Pipeline::Open(SpecOf(images_, GetParam().stages), {.threads = 2, .trace = path_});
    while (std::optional<Batch> batch = pipeline->Next()) steps_.push_back(batch->step());
    stats_ = pipeline->Stats();
  }

  const TempFolder images_;
  const TempFolder folder_;
  const std::string path_ = folder_.Path("trace.json");
  std::vector<uint64_t> steps_;
  PipelineStats stats_;
};

TEST_P(PipelineTrace, SpansNestAndReadsEnd) {
  Run();
  const TraceFile trace(path_);
  EXPECT_TRUE(SpansNest(trace));
  EXPECT_TRUE(EachBeginHasItsEnd(trace));
  EXPECT_EQ(trace.lost(), 0u);
}

TEST_P(PipelineTrace, CountsAreThoseOfTheStats) {
  Run();
  const TraceFile trace(path_);
  for (const StageStats& stage : stats_.stages) {
    if (stage.name == "read" || stage.name == "consumer") continue;
    const std::vector<json> spans = trace.Events("X", stage.name);
    const auto done = std::ranges::count_if(
        spans, [](const json& span) { return !span.at("args").contains("error"); });
    EXPECT_EQ(static_cast<uint64_t>(done), stage.items) << stage.name;
  }
  uint64_t bytes = 0;
  for (const json& read : trace.Events("b", "read")) {
    bytes += read.at("args").at("bytes").get<uint64_t>();
  }
  EXPECT_EQ(bytes, stats_.bytes_read);
  for (const EchoPointStats& point : stats_.echo_points) {
    const int64_t row = trace.Row("echo " + point.position);
    const auto of_row = [&](const std::string& name) {
      const std::vector<json> draws = trace.Events("i", name);
      return static_cast<uint64_t>(
          std::ranges::count_if(draws, [row](const json& draw) { return draw.at("tid") == row; }));
    };
    EXPECT_EQ(of_row("fresh"), point.admitted) << point.position;
    EXPECT_EQ(of_row("fresh") + of_row("echo"), point.draws);
  }
}

TEST_P(PipelineTrace, EachCallOfNextIsOneOfTheConsumersAndTellsItsStep) {
  Run();
  const TraceFile trace(path_);
  std::vector<uint64_t> steps;
  for (const json& call : trace.Events("X", "Next")) {
    EXPECT_EQ(call.at("tid"), trace.Row("consumer"));
    if (call.at("args").contains("step")) steps.push_back(call.at("args").at("step"));
  }
  EXPECT_EQ(steps, steps_);
  EXPECT_THAT(trace.Events("X", "Next"), SizeIs(steps_.size() + 1));
}

TEST_P(PipelineTrace, EachBatchIsFilledOnce) {
  Run();
  const TraceFile trace(path_);
  uint64_t examples = 0;
  for (const json& batch : trace.Events("i", "batch")) {
    examples += batch.at("args").at("examples").get<uint64_t>();
  }
  EXPECT_THAT(trace.Events("X", "fill"), SizeIs(examples));
}

TEST_P(PipelineTrace, CountersKeepToTheirBounds) {
  Run();
  const TraceFile trace(path_);
  for (const EchoPointStats& point : stats_.echo_points) {
    const std::vector<json> counters = trace.Events("C", "echo " + point.position);
    EXPECT_THAT(counters, Not(IsEmpty()));
    for (const json& counter : counters) {
      EXPECT_LE(counter.at("args").at("buffer"), 16);
      EXPECT_GE(counter.at("args").at("credits").get<int64_t>(), 0);
    }
    EXPECT_EQ(counters.back().at("args").at("buffer"), 0) << "at the end";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Specs, PipelineTrace,
    ::testing::Values(
        Case{"Plain",
             "stage { decode {} } stage { random_resized_crop { height: 8 width: 8 } }"
             "stage { random_flip {} } stage { normalize {} } stage { batch { size: 4 } }"},
        Case{"NothingIsWrittenIntoBatches",
             "stage { decode {} } stage { resize { height: 8 width: 8 } } "
             "stage { batch { size: 4 } }"},
        Case{"EchoedTwice",
             "stage { echo { factor: 2 shuffle_buffer: 16 spacing: 4 } } stage { decode {} } "
             "stage { echo { factor: 1.5 shuffle_buffer: 8 spacing: 4 } } "
             "stage { center_crop { height: 8 width: 8 } } stage { normalize {} } "
             "stage { batch { size: 4 } } "},
        Case{"BatchesEchoed",
             "stage { decode {} } stage { center_crop { height: 8 width: 8 } } "
             "stage { batch { size: 4 } } stage { echo { factor: 3 shuffle_buffer: 2 } }"}),
    [](const auto& param) { return param.param.name; });

// What Next() threw, as the trace of a pipeline tells that it makes whole.
std::string ErrorInTrace(const std::string& path) {
  const TraceFile trace(path);
  EXPECT_TRUE(SpansNest(trace));
  EXPECT_TRUE(EachBeginHasItsEnd(trace));
  return trace.Events("X", "Next").back().at("args").at("error");
}

PipelineSpec CropsOf(const TempFolder& folder, const std::string& source) {
  return PipelineSpec::FromText("source { uri: '" + folder.path().string() + "' " + source +
                                " } stage { decode {} } stage { center_crop { height: 8 width: 8 "
                                "} } stage { batch { size: 4 } }");
}

TEST(TraceTest, WhatFailsLeavesAWholeFile) {
  const TempFolder images;
  WriteImages(images, 30, 3);
  images.Write("class-2/broken.jpg", "no picture");
  const TempFolder folder;
  const std::string path = folder.Path("trace.json");
  EXPECT_THROW(
      {
        const auto pipeline = Pipeline::Open(CropsOf(images, ""), {.threads = 2, .trace = path});
        while (pipeline->Next()) {
        }
      },
      Error);
  EXPECT_EQ(ErrorInTrace(path), "unsupported");
}

TEST(TraceTest, WhatIsStoppedLeavesAWholeFile) {
  const TempFolder images;
  WriteImages(images, 30, 3);
  const TempFolder folder;
  const std::string path = folder.Path("trace.json");
  {
    const auto pipeline =
        Pipeline::Open(CropsOf(images, "epochs: 0"), {.threads = 2, .trace = path});
    EXPECT_TRUE(pipeline->Next());
    pipeline->Stop();
    EXPECT_THROW(pipeline->Next(), Error);
  }
  EXPECT_EQ(ErrorInTrace(path), "stopped");
}

TEST(TraceTest, BatchesAreTheSameWithATrace) {
  const TempFolder images;
  WriteImages(images, 30, 3);
  const TempFolder folder;
  const auto keys = [&](const std::string& path) {
    std::vector<std::string> all;
    const auto pipeline = Pipeline::Open(
        SpecOf(images,
               "stage { echo { factor: 2 } } stage { decode {} } "
               "stage { center_crop { height: 8 width: 8 } } stage { batch { size: 4 } }"),
        {.trace = path});
    for (const Batch& batch : *pipeline) {
      for (size_t i = 0; i < batch.size(); ++i) all.push_back(batch.provenance(i).key);
    }
    return all;
  };
  EXPECT_EQ(keys(folder.Path("trace.json")), keys(""));
}

TEST(TraceTest, WhatCannotBeWrittenIsLogged) {
  const TempFolder images;
  WriteImages(images, 5, 1);
  std::vector<std::string> messages;
  {
    const auto pipeline =
        Pipeline::Open(SpecOf(images,
                              "stage { decode {} } stage { center_crop { height: 8 width: 8 } } "
                              "stage { batch { size: 4 } }"),
                       {.log = [&](std::string_view message) { messages.emplace_back(message); },
                        .trace = "/dev/full"});
    while (pipeline->Next()) {
    }
  }
  EXPECT_THAT(messages, ::testing::Contains(HasSubstr("/dev/full: cannot be written")));
}

}  // namespace
}  // namespace echopipe
