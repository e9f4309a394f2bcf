#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/pipeline/stages/stage.h>
#include <echopipe/proto/pipeline.pb.h>
#include <echopipe/tests/cli/program.h>
#include <echopipe/tests/support/files.h>

namespace echopipe::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::Not;
using ::testing::SizeIs;

// The spec that these flags make.
std::string SpecOf(std::vector<std::string> flags) {
  flags.insert(flags.begin(), {"run", "--print-spec"});
  const ProgramRun run = RunProgram(flags);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return run.out;
}

std::string ErrorOf(std::vector<std::string> flags) {
  flags.insert(flags.begin(), "run");
  const ProgramRun run = RunProgram(flags);
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.out, IsEmpty());
  return run.err;
}

std::string Help() { return RunProgram({"run", "--help"}).out; }

std::string WithHyphens(std::string name) {
  for (char& c : name) {
    if (c == '_') c = '-';
  }
  return name;
}

TEST(FlagsTest, FlagsMakeTheSpecInTheirOrder) {
  EXPECT_EQ(SpecOf({"--seed",
                    "7",
                    "--source",
                    "a/",
                    "--source",
                    "b/",
                    "--format",
                    "image_folder",
                    "--shuffle",
                    "full {}",
                    "--epochs",
                    "3",
                    "--take",
                    "100",
                    "--decode",
                    "--echo",
                    "factor: 1.5",
                    "--random-resized-crop",
                    "height: 8 width: 9",
                    "--echo",
                    "3",
                    "--batch",
                    "32",
                    "--bad-examples",
                    "policy: SKIP max_count: 10",
                    "--steps-per-epoch",
                    "5"}),
            R"(seed: 7
source {
  uri: "a/"
  uri: "b/"
  format: IMAGE_FOLDER
  shuffle {
    full {
    }
  }
  epochs: 3
  take: 100
}
stage {
  decode {
  }
}
stage {
  echo {
    factor: 1.5
  }
}
stage {
  random_resized_crop {
    height: 8
    width: 9
  }
}
stage {
  echo {
    factor: 3
  }
}
stage {
  batch {
    size: 32
  }
}
bad_examples {
  policy: SKIP
  max_count: 10
}
steps_per_epoch: 5
)");
}

TEST(FlagsTest, ShuffleHasShortForms) {
  EXPECT_EQ(SpecOf({"--shuffle", "full"}), SpecOf({"--shuffle", "full {}"}));
  EXPECT_EQ(SpecOf({"--shuffle", "300"}), SpecOf({"--shuffle", "window: 300"}));
}

TEST(FlagsTest, UnderscoresInNamesAreHyphensAndThoseInValuesStay) {
  EXPECT_EQ(SpecOf({"--steps_per_epoch=4", "--random_crop", "padding: 4"}),
            SpecOf({"--steps-per-epoch", "4", "--random-crop=padding: 4"}));
  EXPECT_THAT(SpecOf({"--source=my_photos"}), HasSubstr("\"my_photos\""));
}

TEST(FlagsTest, TheLastOfARepeatedFieldCounts) {
  EXPECT_EQ(SpecOf({"--shuffle", "full", "--shuffle", "300", "--epochs", "2", "--epochs", "0"}),
            SpecOf({"--shuffle", "300", "--epochs", "0"}));
  EXPECT_EQ(SpecOf({"--tar", "image: 'png'", "--tar", "label: 'txt'"}),
            SpecOf({"--tar", "label: 'txt'"}));
}

TEST(FlagsTest, FlagsReplaceFieldsOfTheSpecFileAndAddStages) {
  const TempFolder folder;
  const std::string spec = folder.Write("job.txtpb",
                                        "seed: 5 source { uri: 'a' epochs: 9 take: 4 }\n"
                                        "stage { decode {} }");
  EXPECT_EQ(SpecOf({spec, "--seed", "0", "--source", "b", "--epochs", "2", "--batch", "8"}),
            SpecOf({"--source", "b", "--epochs", "2", "--take", "4", "--decode", "--batch", "8"}));
}

TEST(FlagsTest, EveryFieldAndStageHasItsHelpWithAnExample) {
  const std::string help = Help();
  for (const internal::StageType* type : internal::StageTypes()) {
    if (type->name == "map" || type->name == "filter") continue;
    const std::string flag = "--" + WithHyphens(std::string(type->name)) + " ";
    EXPECT_THAT(help, AllOf(HasSubstr("  " + flag), HasSubstr("Example: " + flag),
                            HasSubstr(std::string(type->help))));
  }
  const auto* source = proto::Source::descriptor();
  for (int i = 0; i < source->field_count(); ++i) {
    const std::string& name = source->field(i)->name();
    EXPECT_THAT(help, HasSubstr("  --" + (name == "uri" ? "source" : WithHyphens(name)) + " "));
  }
  EXPECT_THAT(help, Not(HasSubstr("A field of the spec, as text.")));
}

TEST(FlagsTest, StagesThatCallFunctionsHaveNoFlags) {
  EXPECT_THAT(Help(), AllOf(Not(HasSubstr("--map")), Not(HasSubstr("--filter"))));
}

TEST(FlagsTest, EveryExampleOfTheHelpIsAccepted) {
  for (const internal::StageType* type : internal::StageTypes()) {
    if (type->name == "map" || type->name == "filter") continue;
    EXPECT_THAT(SpecOf({"--" + std::string(type->name), std::string(type->sample)}),
                HasSubstr(std::string(type->name) + " {"));
  }
}

TEST(FlagsTest, EveryHelpTellsTheExitCodesOnce) {
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{}, {"run"}, {"demo"}, {"demo-data"}}) {
    std::vector<std::string> arguments = command;
    arguments.emplace_back("--help");
    const std::string help = RunProgram(arguments).out;
    EXPECT_THAT(help, HasSubstr("Exit codes"));
    EXPECT_EQ(help.find("Exit codes"), help.rfind("Exit codes")) << help;
  }
}

TEST(FlagsTest, HelpTellsTheExitCodes) {
  EXPECT_THAT(Help(), AllOf(HasSubstr("  0 "), HasSubstr("  2 "), HasSubstr("  3 "),
                            HasSubstr("  4 "), HasSubstr("  130 ")));
}

TEST(FlagsTest, AnUnknownFlagIsNamedWithTheNearestOne) {
  EXPECT_THAT(ErrorOf({"--ecoh", "2"}), HasSubstr("no flag --ecoh; did you mean --echo?"));
  EXPECT_THAT(ErrorOf({"--random_resize_crop=2"}),
              HasSubstr("no flag --random-resize-crop; did you mean --random-resized-crop?"));
  EXPECT_THAT(ErrorOf({"--quite-another-thing"}), Not(HasSubstr("did you mean")));
}

TEST(FlagsTest, AWrongValueIsNamedWithItsFlag) {
  EXPECT_THAT(ErrorOf({"--echo", "facto: 2"}), AllOf(HasSubstr("--echo"), HasSubstr("facto")));
  EXPECT_THAT(ErrorOf({"--epochs", "many"}), AllOf(HasSubstr("--epochs"), HasSubstr("many")));
  EXPECT_THAT(ErrorOf({"--take", "5 epochs: 3"}), HasSubstr("--take"));
  EXPECT_THAT(ErrorOf({"--shuffle", "full {} } epochs: 3 x {"}), HasSubstr("--shuffle"));
  EXPECT_THAT(ErrorOf({"--format", "zip"}), AllOf(HasSubstr("--format"), HasSubstr("ZIP")));
  EXPECT_THAT(ErrorOf({"--threads", "two"}), HasSubstr("--threads"));
  EXPECT_THAT(ErrorOf({"--consumer-ms", "-1"}), HasSubstr("--consumer-ms"));
}

TEST(FlagsTest, ANumberOutOfRangeIsRefusedWithItsFlag) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {"--consumer-ms", {"nan", "inf", "-inf", "-1", "3600001", "80ms", ""}},
      {"--max-batches",
       {"0", "-1", "1.5", "1e3", "true", "0x10", "1000000000001", "99999999999999999999"}},
      {"--threads", {"-1", "1025", "nan"}},
      {"--reads-in-flight", {"0", "1025"}},
      {"--prefetch", {"1", "1025"}},
      {"--rank", {"-1", "1", "99999999999999999999"}},
      {"--world", {"0", "-1", "1000001"}},
      {"--memory-cap", {"0", "0.5", "nan", "inf", "-1M"}},
      {"--bandwidth", {"0", "0.5", "0Mbit", "inf", "1e300"}},
      {"--latency", {"nans", "infs", "3601s"}},
  };
  for (const auto& [flag, values] : cases) {
    for (const std::string& value : values) {
      std::string argument = flag;
      argument += "=" + value;
      const std::string error = ErrorOf({"--source", "photos", "--batch", "2", argument});
      EXPECT_THAT(error, AllOf(HasSubstr(flag), SizeIs(Le(200u)))) << value;
    }
  }
}

TEST(FlagsTest, JitterNeedsALatency) {
  EXPECT_THAT(ErrorOf({"--jitter", "5ms"}), AllOf(HasSubstr("--jitter"), HasSubstr("--latency")));
}

TEST(FlagsTest, QuantitiesHaveUnits) {
  for (const char* rate : {"4Q", "M", "-1M", "1e99", "nan", "4Mi bit", ""}) {
    EXPECT_THAT(ErrorOf({std::string("--bandwidth=") + rate}), HasSubstr("--bandwidth")) << rate;
  }
  for (const char* time : {"5", "5m", "-5ms"}) {
    EXPECT_THAT(ErrorOf({std::string("--latency=") + time}), HasSubstr("--latency")) << time;
  }
  for (const char* rate : {"4096", "4M", "1.5MB/s", "512Ki", "80Mbit", "80Mbit/s"}) {
    SpecOf({"--bandwidth", rate, "--latency", "250us", "--jitter", "1.5ms", "--memory-cap", "2G"});
  }
}

TEST(FlagsTest, ASpecFileThatCannotBeReadIsNamed) {
  const TempFolder folder;
  EXPECT_THAT(ErrorOf({folder.Path("none.txtpb")}), HasSubstr("none.txtpb"));
  EXPECT_THAT(ErrorOf({folder.path()}), HasSubstr(folder.path().string()));
  EXPECT_THAT(ErrorOf({folder.Write("bad.txtpb", "seed: 1\nsauce {}")}),
              AllOf(HasSubstr("bad.txtpb:2:"), HasSubstr("sauce")));
}

TEST(FlagsTest, ASpecCanComeFromStandardInput) {
  const TempFolder folder;
  const std::vector<std::string> launcher = {
      "sh", "-c", "exec \"$@\" < " + folder.Write("job", "seed: 5"), "sh"};
  EXPECT_EQ(RunProgram({"run", "-", "--print-spec"}, launcher).out, "seed: 5\n");
  const std::vector<std::string> wrong = {"sh", "-c",
                                          "exec \"$@\" < " + folder.Write("bad", "sauce {}"), "sh"};
  EXPECT_THAT(RunProgram({"run", "-"}, wrong).err, HasSubstr("standard input:1:"));
}

TEST(FlagsTest, ASpecOfMoreThanTheCapIsRefused) {
  EXPECT_THAT(ErrorOf({"/dev/zero"}), AllOf(HasSubstr("/dev/zero"), HasSubstr("16 MiB")));
  const std::vector<std::string> launcher = {"sh", "-c", "exec \"$@\" < /dev/zero", "sh"};
  EXPECT_THAT(RunProgram({"run", "-"}, launcher).err, HasSubstr("16 MiB"));
}

TEST(FlagsTest, WithoutASubcommandTheHelpIsShown) {
  const ProgramRun run = RunProgram({});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("demo-data"));
}

}  // namespace
}  // namespace echopipe::testing
