#pragma once

namespace echopipe::cli {

/// What the program ends with; told by --help.
enum ExitCode : int {
  kOk = 0,
  kUsage = 2,               ///< a wrong flag, an invalid spec
  kFailed = 3,              ///< no data or no checkpoint there, or the pipeline failed
  kTooManyBadExamples = 4,  ///< over the limits of bad_examples; of verify: any
  kInterrupted = 130,       ///< by SIGINT, SIGTERM or SIGHUP
};

}  // namespace echopipe::cli
