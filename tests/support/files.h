#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace echopipe::testing {

/// A fresh folder, removed with everything in it at the end of the scope.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// The full path of a name inside; folders on the way are made.
  std::string Path(std::string_view name) const;
  /// Writes a file; returns its full path.
  std::string Write(std::string_view name, std::string_view bytes) const;

 private:
  std::filesystem::path path_;
};

/// The whole file. Fails the test if it cannot be read.
std::string ReadFile(const std::filesystem::path& path);

/// The folder of real data named by the environment variable ECHOPIPE_TEST_DATA, or "" if there is
/// none: then skip with kNoTestData.
std::filesystem::path TestData();
inline constexpr std::string_view kNoTestData =
    "skipped: needs real data; set ECHOPIPE_TEST_DATA to a folder with photos/ and cifar10/";

}  // namespace echopipe::testing
