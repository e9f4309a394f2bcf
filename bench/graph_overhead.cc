// What the graph costs over a bare loop of the same stage bodies, and what a second core brings.
//
//     echopipe_graph_overhead FOLDER [ROUNDS]
//
// The images of FOLDER are read into memory first. A round runs, in turn: the bare loop, the graph
// on one thread, the graph on two, and an arithmetic control loop on one thread and on two (what
// the machine gives at best). Prints one JSON object with the medians and the spread.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sys/resource.h>

#include <echopipe/pipeline/graph/graph.h>
#include <echopipe/pipeline/graph/plan.h>
#include <echopipe/pipeline/graph/segment.h>

namespace echopipe::internal {
namespace {

constexpr const char* kSpec = R"(
  source { uri: "memory" }
  stage { decode {} }
  stage { random_resized_crop { height: 224 width: 224 } }
  stage { random_flip {} }
  stage { normalize {} }
  stage { batch { size: 32 remainder: DROP } })";
constexpr size_t kImageFloats = size_t{3} * 224 * 224;

// Records that are in memory already, in order.
class MemorySource final : public Source {
 public:
  explicit MemorySource(const std::vector<std::shared_ptr<const Record>>& records)
      : records_(records) {}

  void Poll(uint64_t wanted, std::vector<SourceItem>* out) override {
    for (; wanted > 0 && !AtEnd(); --wanted, ++next_) {
      SourceItem item;
      item.ordinal = next_;
      item.ends_epoch = next_ + 1 == records_.size();
      item.uri = records_[next_]->uri;
      item.key = records_[next_]->key;
      item.record = records_[next_];
      out->push_back(std::move(item));
    }
  }
  bool AtEnd() const override { return next_ == records_.size(); }
  void Reread(std::vector<RecordPlace> /*places*/) override {}
  uint64_t fingerprint() const override { return 0; }
  void Advance(uint64_t) override {}
  SourceState state() const override { return {}; }
  SourceCounters counters() const override { return {}; }
  std::optional<uint64_t> epoch_size() const override { return records_.size(); }

 private:
  const std::vector<std::shared_ptr<const Record>>& records_;
  size_t next_ = 0;
};

std::vector<std::shared_ptr<const Record>> Load(const std::string& folder) {
  BufferPool pool;
  std::vector<std::shared_ptr<const Record>> records;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file() || entry.path().extension() == ".txt") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    std::shared_ptr<Buffer> buffer = pool.Allocate(bytes.size());
    std::copy(bytes.begin(), bytes.end(), buffer->data());
    auto record = std::make_shared<Record>();
    record->uri = std::make_shared<std::string>(entry.path());
    record->key = entry.path();
    record->members = {{"image", std::move(buffer)}};
    records.push_back(std::move(record));
  }
  return records;
}

// The segment's own Process(), one item after the other, written into one batch after the other.
void BareLoop(const PipelineSpec& spec, const std::vector<std::shared_ptr<const Record>>& records) {
  BufferPool pool;
  const std::shared_ptr<Clock> clock = MakeSteadyClock();
  Plan plan = MakePlan(spec);
  Segment segment(std::move(plan.segments[0]), {.writes_batches = true}, pool, *clock);
  std::shared_ptr<Buffer> batch;
  for (size_t i = 0; i < records.size(); ++i) {
    if (i % 32 == 0) batch = pool.Allocate(32 * kImageFloats * sizeof(float));
    auto example = std::make_shared<Example>();
    const auto& bytes = records[i]->members[0].bytes;
    example->Set("image", Tensor(DType::kBytes, {static_cast<int64_t>(bytes->size())}, bytes));
    auto item = std::make_shared<Item>();
    item->identity.ordinal = i;
    item->example = std::move(example);
    const Message done = segment.Process(Message::Of(std::move(item)));
    segment.writer()->WriteTo(done.item->example->Get("image"),
                              batch->data() + i % 32 * kImageFloats * sizeof(float));
  }
}

void RunGraph(const PipelineSpec& spec, const std::vector<std::shared_ptr<const Record>>& records,
              int threads) {
  RuntimeOptions options;
  options.threads = threads;
  Graph graph(spec, options, MakeSteadyClock(), [&](BufferPool&, const std::function<void()>&) {
    return std::make_unique<MemorySource>(records);
  });
  while (graph.Take()) {
  }
}

void Arithmetic(int threads) {
  const auto work = [](uint64_t rounds) {
    volatile uint64_t sink = 0;
    uint64_t x = 1;
    for (uint64_t i = 0; i < rounds; ++i) x = x * 6364136223846793005u + 1442695040888963407u;
    sink = x;
    (void)sink;
  };
  constexpr uint64_t kRounds = 400'000'000;
  std::vector<std::jthread> workers;
  workers.reserve(static_cast<size_t>(threads));
  for (int i = 0; i < threads; ++i) workers.emplace_back(work, kRounds / threads);
}

struct Cost {
  double wall = 0;
  double cpu = 0;
};

Cost Measure(const std::function<void()>& run) {
  const auto cpu_now = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
  };
  const double cpu = cpu_now();
  const auto begin = std::chrono::steady_clock::now();
  run();
  return {std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(),
          cpu_now() - cpu};
}

void Print(const char* name, std::vector<double> values, const char* end = ",\n") {
  std::sort(values.begin(), values.end());
  std::printf("  \"%s\": {\"median\": %.4f, \"min\": %.4f, \"max\": %.4f}%s", name,
              values[values.size() / 2], values.front(), values.back(), end);
}

}  // namespace
}  // namespace echopipe::internal

int main(int argc, char** argv) {
  using namespace echopipe;            // NOLINT(google-build-using-namespace)
  using namespace echopipe::internal;  // NOLINT(google-build-using-namespace)
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s FOLDER [ROUNDS]\n", argv[0]);
    return 2;
  }
  const int rounds = argc > 2 ? std::max(1, std::atoi(argv[2])) : 7;
  const PipelineSpec spec = PipelineSpec::FromText(kSpec);
  const std::vector<std::shared_ptr<const Record>> records = Load(argv[1]);

  std::vector<double> wall;
  std::vector<double> cpu;
  std::vector<double> scaling;
  for (int round = -1; round < rounds; ++round) {
    const Cost bare = Measure([&] { BareLoop(spec, records); });
    const Cost one = Measure([&] { RunGraph(spec, records, 1); });
    const Cost two = Measure([&] { RunGraph(spec, records, 2); });
    const Cost control_one = Measure([] { Arithmetic(1); });
    const Cost control_two = Measure([] { Arithmetic(2); });
    if (round < 0) continue;  // warm-up
    wall.push_back(one.wall / bare.wall);
    cpu.push_back(one.cpu / bare.cpu);
    scaling.push_back(one.wall / two.wall / (control_one.wall / control_two.wall));
  }
  std::printf("{\n  \"images\": %zu,\n  \"rounds\": %d,\n", records.size(), rounds);
  Print("graph_over_bare_loop_wall", wall);
  Print("graph_over_bare_loop_cpu", cpu);
  Print("two_threads_over_one_against_control", scaling, "\n}\n");
  return 0;
}
