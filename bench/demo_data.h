#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

namespace echopipe {

struct DemoDataOptions {
  int images = 1000;  ///< in 1..1,000,000
  int classes = 10;   ///< in 1..100
  int width = 500;    ///< in pixels, in 16..8192
  int height = 375;   ///< in pixels, in 16..8192
  uint64_t seed = 1;
  /// Called now and then, on the caller's thread, with the number of images done.
  std::function<void(int done)> progress = {};
};

/// Makes a folder of photo-like JPEGs for trying things out: `class_00/image_000000.jpg`, ...
///
/// At 500 x 375 the files are of 40 to 110 KB, as photos are. A model can learn the classes.
/// Order    A function of the options alone: the same bytes with the same libjpeg.
/// End      A complete folder is left as it is; one that was interrupted is completed.
/// Errors   kInvalidArgument for an option out of range, and for a folder that holds anything
///          else, or demo data of other options. kIo if a file cannot be written.
/// Threads  Draws on all processors. One call at a time for a folder.
void MakeDemoData(const std::filesystem::path& folder, const DemoDataOptions& options = {});

}  // namespace echopipe
